"""Kill a process that writes a file repeatedly: `python -m support.killed_writers FILE KILLS`.

It counts the temporary files that were left. Every writer is a fork of this process, so that a kill costs milliseconds
and not an import of JAX.
"""

import itertools
import os
import random
import signal
import sys
import time
from pathlib import Path

from revarb.runtime.files import write_atomic

CONTENTS = [bytes([number]) * 2_000_000 for number in (1, 2)]  # a write takes milliseconds


def write_until_killed(path):
    for content in itertools.cycle(CONTENTS):
        write_atomic(path, content)


def kill_writer(path):
    """Kill a new writer at any moment."""
    begun, begin = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(begin, b".")
        write_until_killed(path)
    os.read(begun, 1)  # on a busy machine it may start late
    os.close(begun)
    os.close(begin)
    time.sleep(random.uniform(0.0, 0.05))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)


if __name__ == "__main__":
    path, halves = write_atomic(sys.argv[1], CONTENTS[0]), []
    for _ in range(int(sys.argv[2])):
        kill_writer(path)
        assert path.read_bytes() in CONTENTS
        halves += [half.unlink() for half in Path(path).parent.glob(".revarb-*")]
    print(len(halves))
