"""Fuzzing: whatever comes in through a border, out comes a result or an `InputError`.

`python -m fuzz GROUP short` (in tests/) runs one group of properties in a process of its own, with little memory to
spare and a watch on every case; tests/test_fuzz.py does that. There are no annotations checked in that process, so
that the cases meet what a user's do.
"""
