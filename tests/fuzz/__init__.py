"""Fuzzing: every input ends in a result of finite numbers or in a clear error of one line.

`python -m fuzz GROUP short` (in tests/) runs one group of properties in a separate process, with a limit on memory and
a timeout for every case; test_fuzz.py does that. Type annotations are not checked in that process, as in a user's.
"""
