"""Simulation of trained layers on new inputs: mean, moments, samples, filtering, start states."""
