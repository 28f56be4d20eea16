import doctest
import importlib

import pytest


@pytest.mark.parametrize("module", ["series", "recipe", "datasets.registry"])
def test_examples_in_docstrings_print_what_they_say(module):
    result = doctest.testmod(importlib.import_module(f"revarb.{module}"))
    assert result.attempted > 0 and result.failed == 0
