"""Records to one model: start values, the optimisation of the bound, and refits."""
