"""GP state-space models: particles, variational training, reduced rank with particle Gibbs."""
