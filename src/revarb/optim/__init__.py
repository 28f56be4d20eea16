"""Optimisers that know nothing about GPs: L-BFGS-B, Adam, batches of them, and the journal of a long run."""
