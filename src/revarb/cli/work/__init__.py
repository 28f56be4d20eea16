"""The work of the commands, apart from their options: `--help` imports none of it, and needs no JAX."""

import revarb.baselines  # noqa: F401 (registers the file formats of all models: a command may read any of them)
