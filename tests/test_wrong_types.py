"""Mistakes of type, in an interpreter of their own: in this one the annotations would refuse them first."""

import subprocess
import sys

import pytest

CASES = {
    "small.spec(lags=2.5)": "lags must be a whole number of at least 1, received 2.5",
    "small.spec(lags=True)": "lags must be a whole number of at least 1, received True",
    "RGP.from_dict({'recipe': 3})": "recipe must be a table of values, received 3",
    "RGP(recipe='R0')": "recipe must be a revarb.Recipe, received 'R0'",
    "Recipe(jitter='small')": "recipe.jitter must be a finite number above 0, received 'small'",
    "small.spec().fit(np.zeros((5, 2)))": "record 0 is a ndarray, not a Series; wrap it: revarb.Series(u, y)",
    "small.spec().fit([small.record(), [1, 2]])": "record 1 is a list, not a Series",
    "small.spec().fit(small.record()).simulate(np.zeros(9), method='median')": "method must be 'moments', 'mean' or",
    "small.spec().fit(small.record()).simulate(np.zeros(9), initial='cold')": "initial does not fit: pass one of the",
    "revarb.load('no such file')": "cannot read the model file no such file",
}
PROGRAM = """
import numpy as np, revarb, small
from revarb import RGP, Recipe
for case in {cases!r}:
    try:
        eval(case)
    except revarb.InputError as error:
        print(error)
    else:
        print("accepted", case)
"""


@pytest.fixture(scope="module")
def answers():
    program = PROGRAM.format(cases=list(CASES))
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd="tests", check=False)
    assert done.returncode == 0, done.stderr
    return dict(zip(CASES, done.stdout.splitlines(), strict=True))


@pytest.mark.parametrize("case", CASES)
def test_a_wrong_type_is_refused_in_one_line(answers, case):
    assert CASES[case] in answers[case]
