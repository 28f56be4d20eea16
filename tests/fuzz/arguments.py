"""Arguments of users: arrays, tables, configurations, and files on the command line."""

import contextlib
import io
import json
from dataclasses import fields
from pathlib import Path

import numpy as np
from hypothesis import strategies as st

import revarb
from fuzz import samples, tables
from fuzz.arrays import arrays, finite, odd_objects, with_gaps
from fuzz.harness import Property, attempt, check_path
from fuzz.junk import NAMES, plain, real, simple, text, whole
from revarb import cli
from revarb.data.preprocessor import Preprocessor
from revarb.data.series import as_records
from revarb.data.table_file import Table
from revarb.data.windows import Order


def series_is_sound(case) -> None:
    """Matrices of finite numbers, but for outputs that were not measured."""
    kind, u, y, dt, names = case
    series = attempt(lambda: kind(u, y, dt=dt, input_names=names))
    if series is None:
        return
    assert series.u.dtype == series.y.dtype == np.float64 and series.u.ndim == series.y.ndim == 2
    assert np.isfinite(series.u).all() and not np.isinf(series.y).any()
    assert len(series.u) == len(series.y) and np.isfinite(series.dt) and series.dt > 0.0
    assert all(isinstance(name, str) for name in series.input_names) and repr(series)
    assert not series.u.flags.writeable and not series.y.flags.writeable
    assert not np.ma.is_masked(u) and series.missing >= np.ma.count_masked(y)


def z_scores_are_finite(case) -> None:
    """A record accepted for training has z-scores of ordinary size."""
    record = attempt(lambda: revarb.Series(*case))
    prep = attempt(lambda: Preprocessor.from_records(as_records([record]), Order(2, 2 if record.input_names else 0, 1)))
    if record is None or prep is None:
        return
    for block in attempt(lambda: prep.scale_records([record])) or ():
        assert np.isfinite(block.u_bar).all() and np.abs(block.u_bar).max(initial=0.0) < 1e6
        assert not np.isinf(block.y).any()


def simulation_is_finite(u) -> None:
    model = samples.model()
    for method in ("mean", "moments"):
        path = attempt(lambda method=method: model.simulate(u, method=method))
        check_path(path)
        assert path is None or (len(path) == len(u) and (path.std is None or (path.std > 0.0).all()))


def scores_are_numbers(case) -> None:
    """RMSE is finite below 1e300, shares are in [0, 1], and only the NRMSE of a constant output is NaN."""
    y, skip = case
    result = attempt(lambda: revarb.scores(samples.path(), y, skip=skip))
    if result is None:
        return
    measured = np.ma.filled(np.ma.asarray(y, dtype=np.float64), np.nan)
    huge = np.nanmax(np.abs(measured)) > 1e300
    assert (0.0 <= result.rmse < np.inf or huge) and not np.isnan(result.nlpd), result
    scored = measured[result.skip :]
    with np.errstate(over="ignore"):
        still = np.nanmax(scored) - np.nanmin(scored) < 1e-300
    assert not np.isnan(result.nrmse) or still, result
    assert all(0.0 <= share <= 1.0 for share in (result.coverage50, result.coverage90, result.coverage95)), result


FIELDS = {
    cls: tuple(field.name for field in fields(cls))
    for cls in (revarb.RGP, revarb.Recipe, revarb.Recognition, revarb.Stage)
}
values = plain | whole | real | st.lists(whole, max_size=3) | odd_objects | st.just(np.ones((2, 2)))


def _tables(cls: type):
    return st.dictionaries(st.sampled_from(FIELDS[cls]) | text, values, max_size=3)


sizes = st.integers(1, 5) | whole
stages = st.lists(_tables(revarb.Stage) | st.just({"free": ["mu"], "iterations": 1}) | values, max_size=2)
configurations = st.fixed_dictionaries(
    {},
    optional={
        "recipe": _tables(revarb.Recipe) | stages.map(lambda drawn: {"stages": drawn}) | values,
        "recognition": _tables(revarb.Recognition) | values,
        **dict.fromkeys(("lags", "input_lags", "input_delay", "hidden", "inducing"), sizes),
        "latent_dim": sizes | st.lists(sizes, max_size=3),
    },
) | _tables(revarb.RGP) | values  # fmt: skip


def configuration_is_sound(case) -> None:
    """An RGP that comes back from its own dictionary, which JSON can hold."""
    spec = attempt(lambda: revarb.RGP.from_dict(case))
    if spec is not None:
        assert revarb.RGP.from_dict(json.loads(json.dumps(spec.to_dict(), allow_nan=False))) == spec
        assert len(spec.latent_dims) == spec.hidden


FIT = ("fit", "none.csv", "-u", "u", "-y", "y", "-o", "m.rgp")  # no table, so that nothing is fitted


def command(*arguments: str) -> int:
    """Exit status of a command; a failed one has printed its reason in one line."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            cli.main(arguments)
        except SystemExit as end:
            status = end.code
    said = err.getvalue()
    assert status == 0 or (status == 2 and said.splitlines()[-1].startswith("error: ")), (status, said)
    assert all(line.startswith(("error: ", "warning: ", "hint: ")) for line in said.splitlines()), said
    return status


toml_values = st.sampled_from(
    ["1", "-1", "2.5", "nan", "inf", '"x"', "[]", "[1, 2]", "{}", "{a = 1}", "9" * 5000, "1e999", "true", "[[", "'",
     "1979-05-27", '"\\ud800"', "[" * 3000, "{a=" * 3000, "0x_1", "\x00"]
)  # fmt: skip
toml_keys = st.sampled_from([*FIELDS[revarb.RGP], "recipe.jitter", "recipe.stages", "recognition.hidden", '""', "a.b"])
toml_lines = st.tuples(toml_keys, toml_values).map(" = ".join) | st.sampled_from(
    ["[recipe]", "[[recipe.stages]]", "[a"]
)
toml_files = st.lists(toml_lines, max_size=4).map("\n".join).map(str.encode) | st.binary(max_size=40)


def config_file_is_read(content: bytes) -> None:
    Path("c.toml").write_bytes(content)
    command(*FIT, "--config", "c.toml")


def table_is_simulated(content: bytes) -> None:
    """A table through `revarb simulate`; what is written can be read again."""
    Path("t.csv").write_bytes(content)
    if not Path("sound.rgp").exists():
        samples.model().save("sound.rgp")
    if command("simulate", "sound.rgp", "t.csv", "-o", "p.csv", "--method", "mean") == 0:
        assert np.isfinite(Table("p.csv").columns(["y_mean"])).all()


columns = st.none() | st.lists(st.sampled_from(NAMES) | simple, max_size=3) | simple | st.just(np.array(["a"]))
record_kinds = st.sampled_from([revarb.Series, revarb.Window])
steps_of_time = st.just(1.0) | st.just(0.5) | simple
PROPERTIES = {
    "arrays into Series": Property(
        series_is_sound,
        st.tuples(record_kinds, arrays, arrays, steps_of_time, columns)
        | st.tuples(record_kinds, finite | st.none(), finite, st.just(1.0), st.none()),
        400,
    ),
    "numbers into z-scores": Property(z_scores_are_finite, st.tuples(finite | st.none(), finite | with_gaps), 250),
    "arrays into simulate": Property(simulation_is_finite, finite | arrays, 200),
    "arrays into scores": Property(
        scores_are_numbers, st.tuples(finite | arrays, st.none() | st.just(0) | whole | simple), 250
    ),
    "configurations": Property(configuration_is_sound, configurations, 500),
    "command line: config files": Property(config_file_is_read, toml_files, 150),
    "command line: tables": Property(table_is_simulated, tables.csv_files(st.sampled_from([2, 4, 5])), 30),
    **tables.PROPERTIES,
}
