"""Doctests: examples in docstrings print what is written there."""

import doctest
import importlib
from pathlib import Path

import pytest

import revarb

SOURCE = Path(revarb.__file__).parent
MODULES = sorted(
    ".".join(("revarb", *path.relative_to(SOURCE).with_suffix("").parts)).removesuffix(".__init__")
    for path in SOURCE.rglob("*.py")
    if ">>>" in path.read_text()
)
COMPILED_LONG = (  # their examples fit models
    "revarb.baselines.state_space.gpssm",
    "revarb.baselines.state_space.reduced_rank",
    "revarb.models.fitted_rgp",
    "revarb.models.live",
)
OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow if name in COMPILED_LONG else ()) for name in MODULES]
)
def test_examples(name, in_empty_folder):
    result = doctest.testmod(importlib.import_module(name), optionflags=OPTIONS)
    assert result.attempted > 0 and result.failed == 0
