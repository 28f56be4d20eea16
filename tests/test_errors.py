"""Errors, argument checks, and where warnings point."""

from dataclasses import replace

import numpy as np
import pytest

import revarb
from revarb import errors
from revarb.cli.application import main
from support.processes import run_python


def test_both_kinds_of_error_have_a_common_base_and_a_message_of_one_line():
    assert revarb.InputError.__mro__[1:3] == (errors.RevarbError, ValueError)
    assert revarb.ComputationError.__mro__[1:3] == (errors.RevarbError, RuntimeError)
    message = str(revarb.InputError("a\nb " * 1000))
    assert "\n" not in message and len(message) == errors.MAX_MESSAGE


WARNS = """
import numpy as np
import revarb
recipe = revarb.Recipe(stages=(revarb.Stage(("mu",), 1),))
spec = revarb.RGP(lags=2, input_lags=2, hidden=1, inducing=1000, recipe=recipe)
record = revarb.Series(np.sin(np.arange(40.0)), np.cos(np.arange(40.0)))
spec.fit(record)  # here
spec.fit(record, restarts=1)  # and here
"""


def test_a_warning_points_at_the_line_of_the_user(tmp_path):
    # In a separate process: the type checker of the tests adds frames to the stack.
    script = tmp_path / "user.py"
    script.write_text(WARNS)
    lines = [line for line in run_python(script).stderr.splitlines() if "UserWarning" in line]
    marked = [number for number, line in enumerate(WARNS.splitlines(), start=1) if "here" in line]
    assert [line.partition(": UserWarning")[0] for line in lines] == [f"{script}:{number}" for number in marked]


def test_a_simulation_that_diverges_is_a_computation_error(tmp_path, capsys):
    u = np.ones(400)
    y = np.concatenate([np.full(200, 1e-3), np.full(200, 2e-3)])
    y[::2] *= 1.0 + 1e-3
    model = revarb.ARX(lags=1, input_lags=1).fit(revarb.Series(u + np.arange(400) % 3, y))
    unstable = replace(model, model=replace(model.model, coefficients=10.0 * np.ones_like(model.model.coefficients)))
    with pytest.raises(revarb.ComputationError, match="diverged"):
        unstable.simulate(u)
    unstable.save(tmp_path / "unstable.rgp")
    (tmp_path / "u.csv").write_text("u\n" + "\n".join(str(value) for value in u))
    with pytest.raises(SystemExit) as stopped:
        main(["simulate", str(tmp_path / "unstable.rgp"), str(tmp_path / "u.csv"), "-o", str(tmp_path / "path.csv")])
    assert stopped.value.code == 1
    error = capsys.readouterr().err
    assert error.startswith("error: the simulation (method 'residuals') diverged") and error.count("\n") == 1
    assert not (tmp_path / "path.csv").exists()
