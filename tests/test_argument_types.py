"""Arguments of a wrong type, in a separate interpreter: in this one the type checker would refuse them first."""

import pytest

from support.processes import run_python

CASES = {
    "small.spec(lags=2.5)": "lags must be a whole number of at least 1, received 2.5",
    "RGP.from_dict({'recipe': 3})": "recipe must be a revarb.Recipe or one of 'R0', ",
    "RGP.from_dict({'recipe': {'stages': [{'free': 'mu', 'iterations': 3}]}})": "must be a list of parameter groups",
    "RGP(recipe='R9')": "recipe must be a revarb.Recipe or one of 'R0', 'fixed', ",
    "RGP(linear='yes')": "linear must be true or false, received 'yes'",
    "Recipe(jitter='small')": "recipe.jitter must be a finite number above 0, received 'small'",
    "small.spec().fit(np.zeros((5, 2)))": "record 0 is a ndarray, not a Series; wrap it: revarb.Series(u, y)",
    "revarb.ARX().fit(np.zeros(9), np.zeros(9))": "as the seed; wrap u and y: fit(revarb.Series(u, y))",
    "revarb.fit({'u': [1.0], 'y': [2.0]})": "received dict; wrap it: revarb.Series(u, y)",
    "small.spec().fit(small.record()).simulate(np.zeros(9), method='median')": "method must be 'moments', 'mean',",
    "small.spec().fit(small.record()).simulate(np.zeros(9), start='warm')": "start must be 'cold', 'measured',",
    "small.spec().fit(small.record()).predict(np.zeros(9))": "predict takes a measured revarb.Series(u, y), received",
    "small.spec().fit(None)": "a record must be a Series or a list of Series, received NoneType",
    "small.spec().fit(small.record(), seed=None)": "seed must be a whole number from 0 to",
    "Recipe(stages=5)": "recipe.stages must be a list of Stage(free, iterations), received 5",
    "Series([1j, 2j], [1, 2])": "u must be a table of real numbers, received complex128 values",
    "Series([1, 2], [1, 2], dt='x')": "dt must be a finite number above 0, received 'x'",
    "Series(np.zeros((3, 2)), [1, 2, 3], input_names='ab')": "needs a list of as many names, received 'ab'",
    "revarb.scores(np.zeros(3), [1, 2, 3])": "received a ndarray",
    "revarb.Mean().fit(small.record()).simulate(np.zeros(3), method='moments')": "method must be 'residuals', received",
    "revarb.compare(small.record(), small.record(), [revarb.Mean()])": "models must name at least one, such as",
    "revarb.compare(small.record(), small.record(), {1: revarb.Mean()})": "a model must be named by a text, received 1",
    "revarb.compare(small.record(), small.record(), {'A': 3})": "model 'A' must be a configuration with fit",
    "revarb.compare(small.record(), small.record(), seeds='two')": "a whole number of at least 1, received 'two'",
    "revarb.MLPNARX(units=3)": "units must be a list of whole numbers, received 3",
    "revarb.baselines.PerOutput('GPNARX')": "PerOutput takes a configuration, such as PerOutput(GPNARX()), received",
    "revarb.read_records(3, outputs='y')": "files must be a path or a list of paths, received 3",
    "revarb.read_records('a.csv', outputs=[3])": "outputs must be a column name or a list of them, received [3]",
    "revarb.read_records('a.csv', outputs='y', decimal=1)": "decimal must be '.' or ',', received 1",
    "revarb.read_records('a.csv', outputs='y', separator=['a'])": "separator must be one of , ; | tab space, received",
    "revarb.read_records('a.csv', outputs='y', split_gaps=1)": "split_gaps must be true or false, received 1",
    "revarb.read_records('a.csv', outputs='y', sort_time=1)": "sort_time must be true or false, received 1",
    "Series([1, 2], [1, 2], time_name=3)": "a column of times must be named by a text, received 3",
    "revarb.fit(small.record(), jobs=np.ones((2, 2)))": "jobs (or -1 for one per core) must be a whole number of at",
    "revarb.fit(small.record(), members=2.5)": "members must be a whole number of at least 1, received 2.5",
    "revarb.Candidate('a', 'x', None, 1, 0.0)": "error must be a finite number of at least 0, received 'x'",
    "revarb.Choice((), 'a', 'b', 'c')": "the candidate that was taken, 'a', is not among those that were tried",
}
PROGRAM = """
import numpy as np, revarb
from support import small
from revarb import RGP, Recipe, Series
for case in {cases!r}:
    try:
        eval(case)
    except revarb.InputError as error:
        print(error)
    else:
        print("accepted", case)
assert RGP(recipe="fixed") == RGP.from_dict({{"recipe": "fixed"}})  # a recipe by its name
"""


@pytest.fixture(scope="module")
def answers():
    done = run_python("-c", PROGRAM.format(cases=list(CASES)))
    assert done.returncode == 0, done.stderr
    return dict(zip(CASES, done.stdout.splitlines(), strict=True))


@pytest.mark.parametrize("case", CASES)
def test_a_wrong_type_is_refused_in_one_line(answers, case):
    assert CASES[case] in answers[case]
