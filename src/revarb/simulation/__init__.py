"""Trained layers run on new inputs: mean, moments, samples, filtering, starts."""
