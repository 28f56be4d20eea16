"""The command line, the only package that prints. A user's mistake is one line on stderr and exit status 2."""

# In the order in which `revarb --help` names them.
from revarb.cli import fit, trained_model, demo, compare  # noqa: I001
from revarb.cli.application import app, main

__all__ = ["app", "compare", "demo", "fit", "main", "trained_model"]
