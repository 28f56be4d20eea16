"""Kill a process that writes a model file repeatedly: `python -m support.killed_writers FOLDER KILLS`.

It counts what was left. Every writer is a fork of this process, so that a kill costs milliseconds and not an import
of JAX.
"""

import itertools
import json
import os
import random
import signal
import sys
import time
from pathlib import Path

import numpy as np

from revarb.models.model_file import read_container, write_container
from revarb.runtime.files import write_atomic

SIZE = 200_000  # numbers in a model: a write takes milliseconds


def model_bytes(path, number):
    """A model file of this one number throughout."""
    return write_container(path, {"number": number}, {"values": np.full(SIZE, number)}).read_bytes()


def is_whole(path):
    """Whether the file is one of the models; `read_container` refuses a half by itself."""
    header, arrays = read_container(path)
    return bool((arrays["values"] == header["number"]).all())


def main(folder, kills):
    path = Path(folder) / "m.rgp"
    models, whole, while_writing = [model_bytes(path, number) for number in (1.0, 2.0)], 0, 0
    for _ in range(int(kills)):
        begun, begin = os.pipe()
        child = os.fork()
        if child == 0:
            os.write(begin, b".")
            for content in itertools.cycle(models):
                write_atomic(path, content)
        os.read(begun, 1)  # on a busy machine it may start late
        os.close(begun)
        os.close(begin)
        time.sleep(random.uniform(0.0, 0.05))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        whole += is_whole(path)
        for half in path.parent.glob(".revarb-*"):
            while_writing += 1
            half.unlink()
    print(json.dumps({"kills": int(kills), "whole": whole, "killed while writing": while_writing}))


if __name__ == "__main__":
    main(*sys.argv[1:])
