"""A fit that is killed: `python -m support.killed_fit CACHE EVALUATIONS ARGUMENT…` runs `revarb ARGUMENT…`.

The journal is begun at once, below CACHE, and the process ends itself by SIGKILL at that evaluation of the bound.
"""

import signal
import sys
from pathlib import Path

from revarb import cli
from revarb.runtime import unfinished
from support.journals import count_evaluations

if __name__ == "__main__":
    cache, evaluations, *arguments = sys.argv[1:]
    unfinished.DELAY_SECONDS = 0.0
    unfinished.user_cache_path = lambda name: Path(cache) / name
    with count_evaluations(press_at=int(evaluations), with_signal=signal.SIGKILL):
        cli.main(arguments)
