"""Benchmark records by name: `revarb.datasets.load("drive")`."""

from revarb.datasets.registry import Split, about, fetch, load, names

__all__ = ["Split", "about", "fetch", "load", "names"]
