"""Names of columns as C identifiers and in comments."""

import re
from pathlib import Path

import pytest

from revarb.models.export.c_identifiers import check_name, find_units, make_identifiers, quote_comment

WORDS = re.compile(r"[A-Z0-9][A-Z0-9_]*")


def test_identifiers_are_valid_and_differ():
    names = ["int", "Int", "in t", "", "***", "naïve", "x" * 90, "x" * 91, "A_2", "a", "A", "µ", "°C", "_lead", "\x00"]
    made = make_identifiers(names)
    assert len(set(made)) == len(names)
    assert all(WORDS.fullmatch(each) for each in made), made
    assert made[:5] == ("INT", "INT_2", "IN_T", "COLUMN_4", "COLUMN_5")
    assert made[8:11] == ("A_2", "A", "A_3")  # the second a may not become the first name
    assert max(map(len, made)) <= 43


@pytest.mark.parametrize(
    ("file", "name"),
    [("tank.c", "tank"), ("My Tank-2.c", "My_Tank_2"), ("2.c", "model_2"), ("温.c", "model"), ("_x.c", "x")],
)
def test_the_name_of_a_program_from_that_of_its_file(file, name):
    assert check_name(None, Path(file)) == name


@pytest.mark.parametrize(
    "text", ["*/", "/*", "**//", "*/*/", "/**/", "??/", "????", "a\\\nb", "\u202e", "\ud800", "/*/"]
)
def test_a_comment_stays_a_comment(text):
    quoted = quote_comment(text)
    assert "*/" not in quoted and "/*" not in quoted and "??" not in quoted and quoted.isprintable()
    quoted.encode()  # a lone surrogate could not be written


def test_units_are_given_or_in_brackets():
    assert find_units(["level [cm]", "T[°C] ", "[m]", "flow", "a []"], None) == {"level [cm]": "cm", "T[°C] ": "°C"}
    assert find_units(["level [cm]", "flow"], {"level [cm]": "m", "flow": " l/s "}) == {
        "level [cm]": "m",
        "flow": "l/s",
    }
