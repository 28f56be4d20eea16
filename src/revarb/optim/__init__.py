"""Optimisers, independent of GPs: L-BFGS-B, Adam, batched runs of several, and the journal of a long run."""
