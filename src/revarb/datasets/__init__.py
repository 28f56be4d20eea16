"""Benchmark data by name: `revarb.datasets.load("drive")`."""

from revarb.datasets import cmu35, mocap
from revarb.datasets.registry import Split, about, fetch, load, names

__all__ = ["Split", "about", "cmu35", "fetch", "load", "mocap", "names"]
