"""Speed and memory of one evaluation of the bound, beside GPy's psi statistics: `python -m bench`."""
