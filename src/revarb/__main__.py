"""`python -m revarb` is the `revarb` command."""

from revarb.cli import main

main()
