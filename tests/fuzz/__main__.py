"""`python -m fuzz GROUP short|long`: one line of JSON per property."""

import importlib
import json
import os
import sys
import tempfile
from pathlib import Path

import jax

from fuzz.harness import limit_memory, run, strict_warnings

group, length = sys.argv[1:]
jax.config.update("jax_enable_x64", True)
properties = importlib.import_module(f"fuzz.{group}").PROPERTIES
with tempfile.TemporaryDirectory() as root:
    # Two folders deep, so that a name such as ../../x would be seen.
    folder = Path(root) / "outer" / "inner"
    folder.mkdir(parents=True)
    os.chdir(folder)
    importlib.import_module("fuzz.samples").warm_up()
    limit_memory()
    strict_warnings()
    for name, one in properties.items():
        print(json.dumps(run(name, one, length)._asdict()), flush=True)
    os.chdir("/")
