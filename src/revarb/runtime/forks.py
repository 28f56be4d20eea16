"""Processes that were forked after JAX had started: its threads are not there, and the first computation would hang."""

import os

from revarb.errors import InputError

_started = False  # whether this process, or the one it was forked from, has computed
_forked = False


def check_fork() -> None:
    """Refuse to compute in a process that was forked from one that has computed; a hang would say nothing."""
    global _started
    if _forked:
        raise InputError(
            "this process was forked after JAX had started, and JAX would hang in it; start processes with "
            "multiprocessing.get_context('spawn') or joblib, or use jobs="
        )
    _started = True


def _mark_child() -> None:
    global _forked
    _forked = _started


if hasattr(os, "register_at_fork"):  # not on Windows, which has no fork
    os.register_at_fork(after_in_child=_mark_child)
