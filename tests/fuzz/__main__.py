"""`python -m fuzz GROUP short|long`: run the properties of a group; failures are on the standard error."""

import importlib
import os
import sys
import tempfile
import traceback
from pathlib import Path

import jax

from fuzz.harness import limit_memory, run, strict_warnings

group, length = sys.argv[1:]
jax.config.update("jax_enable_x64", True)
properties = importlib.import_module(f"fuzz.{group}").PROPERTIES
failed = []
with tempfile.TemporaryDirectory() as root:
    # Two folders deep, so that a name such as ../../x would be seen.
    folder = Path(root) / "outer" / "inner"
    folder.mkdir(parents=True)
    os.chdir(folder)
    importlib.import_module("fuzz.samples").warm_up()
    limit_memory()
    strict_warnings()
    for name, one in properties.items():
        try:
            run(one, length)
        except BaseException:  # also a failure of memory, or a SystemExit
            traceback.print_exc()
            failed.append(name)
    os.chdir("/")
if failed:
    sys.exit(f"failed: {', '.join(failed)}")
