"""Python programs in separate processes, which can import `support`."""

import os
import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).parent.parent


def environment(**more):
    """The variables of this process, with `tests/` on the path of Python."""
    path = os.pathsep.join([str(TESTS), *filter(None, [os.environ.get("PYTHONPATH")])])
    return {**os.environ, "PYTHONPATH": path, **more}


def run_python(*arguments, env=None):
    """`python ARGUMENT…` to its end; standard output and standard error are kept."""
    command = [sys.executable, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, env=env or environment(), check=False)
