"""How good simulations and their bands are: scores, reliability, comparisons, results files."""
