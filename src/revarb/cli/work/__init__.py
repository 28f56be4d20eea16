"""The work of the commands, apart from their options: `--help` imports none of it, and needs no JAX."""
