"""The files of this folder."""

from importlib.resources import files


def shipped_text(name: str) -> str:
    """A TOML file of this folder, as text."""
    return files("revarb.experiments").joinpath(name).read_text(encoding="utf-8")
