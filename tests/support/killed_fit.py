"""A fit that is killed: `python -m support.killed_fit CACHE EVALUATIONS ARGUMENT…` runs `revarb ARGUMENT…`.

The journal is begun at once, below CACHE, and the process ends itself by SIGKILL at that evaluation of the bound.
"""

import os
import signal
import sys
from pathlib import Path

from revarb import cli
from revarb.fitting import objective
from revarb.runtime import unfinished


def main(cache, evaluations, *arguments):
    """Patch, and run the command."""
    unfinished.DELAY_SECONDS = 0.0
    unfinished.user_cache_path = lambda name: Path(cache) / name
    real, left = objective.bound_and_gradient, int(evaluations)

    def counted(*args, **kwargs):
        nonlocal left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return real(*args, **kwargs)

    objective.bound_and_gradient = counted
    cli.main(arguments)


if __name__ == "__main__":
    main(*sys.argv[1:])
