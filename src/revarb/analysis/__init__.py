"""How good models, simulations and their bands are: scores, reliability, comparisons and their reports."""
