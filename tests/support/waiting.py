"""Wait for a condition, with a deadline."""

import os
import select
import time

# Seconds until something that should have happened is given up: only a failure waits so long. On one busy core, another
# process needs a minute to import JAX and to compile.
DEADLINE = 600.0


def wait_until(condition, seconds=DEADLINE, every=0.05):
    """Poll a condition, and return its first true value."""
    end = time.monotonic() + seconds
    while not (answer := condition()):
        assert time.monotonic() < end, f"not within {seconds} s"
        time.sleep(every)
    return answer


def read_until(descriptor, enough=lambda text: False, seconds=DEADLINE):
    """Read from a terminal or pipe until a condition holds, or until the other end is closed."""
    text, end = b"", time.monotonic() + seconds
    while not enough(text):
        assert select.select([descriptor], [], [], max(0.0, end - time.monotonic()))[0], text
        try:
            more = os.read(descriptor, 10_000)
        except OSError:  # of a terminal
            more = b""
        if not more:
            break
        text += more
    return text
