"""One Gaussian process layer: kernel, psi statistics, collapsed bound, posterior, drawn functions. Pure functions."""
