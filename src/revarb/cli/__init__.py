"""The command line: the only room that prints. A user's mistake is one line on stderr and exit status 2."""

# In the order in which `revarb --help` names them.
from revarb.cli import model, path, demo, compare, data, reproduce, avatar  # noqa: I001
from revarb.cli.app import app, main

__all__ = ["app", "avatar", "compare", "data", "demo", "main", "model", "path", "reproduce"]
