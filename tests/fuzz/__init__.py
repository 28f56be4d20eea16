"""Fuzzing: every input ends in a result of finite numbers or in a clear error of one line.

`python -m fuzz GROUP short` (in tests/) runs one group of properties in a process of its own, with little memory to
spare and a watch on every case; test_fuzz.py does that. There are no annotations checked in that process, so
that the cases meet what a user's do.
"""
