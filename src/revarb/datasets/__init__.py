"""Benchmark records by name: `revarb.datasets.load("drive")`; motion capture files: `revarb.datasets.mocap`."""

from revarb.datasets import mocap
from revarb.datasets.registry import Split, about, fetch, load, names
from revarb.motion import cmu35

__all__ = ["Split", "about", "cmu35", "fetch", "load", "mocap", "names"]
