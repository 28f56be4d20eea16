"""`multiprocessing` with fork, in fresh interpreters."""

from support.processes import run_python

FIT = """
import multiprocessing, sys
import numpy as np, revarb

def fit(number):
    u = np.sin(np.arange(60.0) ** 1.5)
    try:
        return str(revarb.ARX(2, 2).fit(revarb.Series(u, np.cumsum(u))).status)
    except revarb.InputError as error:
        return str(error)

if __name__ == "__main__":
    {before}
    with multiprocessing.get_context("{method}").Pool(1) as pool:
        print(pool.map(fit, [0])[0])
"""


def run(tmp_path, before, method):
    script = tmp_path / "script.py"
    script.write_text(FIT.format(before=before, method=method))
    done = run_python(script)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_a_fork_after_a_fit_is_refused_with_the_remedy(tmp_path):
    said = run(tmp_path, "fit(0)", "fork")
    assert said.startswith("this process was forked after JAX had started") and "get_context('spawn')" in said


def test_a_spawned_process_fits(tmp_path):
    assert run(tmp_path, "fit(0)", "spawn") == "converged"
