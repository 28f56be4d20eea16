"""Everything that the data package refuses: one line that says what was wrong, what was received, what to do."""

import gzip
import sys
from datetime import UTC, datetime, timedelta
from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import revarb
from revarb.analysis.scores import scores
from revarb.baselines import ARX
from revarb.data import dataframes
from revarb.data.csv_file import CsvForm
from revarb.data.preprocessor import Preprocessor, ValueRange
from revarb.data.sampling import check_interval, measure_sampling, measure_together, split_at_gaps
from revarb.data.scaling import Standardiser
from revarb.data.series import Series, as_records
from revarb.data.table_file import Table, check_table_file
from revarb.data.trajectory import Trajectory
from revarb.data.windows import Order
from revarb.errors import InputError
from support import small
from support.tables import csv_table, parquet_table, times_table

RNG = np.random.default_rng(0)
NAN, INF = np.nan, np.inf
TIMES = pd.date_range("2026-01-01", periods=60, freq="4s")
PATH = Trajectory(np.zeros((4, 1)), np.ones((4, 1)), "moments", 0, ("level",))
FRAME = pd.DataFrame({"a": np.sin(np.arange(60.0) ** 1.5), "b": RNG.normal(size=60), "z": RNG.normal(size=60)}, TIMES)
MODEL = ARX(2, 2).fit(Series(FRAME[["a", "b"]], FRAME["z"]))
RENAMED, SWAPPED = (Series(inputs, FRAME["z"]) for inputs in (FRAME[["a"]].assign(c=FRAME["b"]), FRAME[["b", "a"]]))
MOMENTS = [datetime(2026, 11, 15, 20, 30, tzinfo=UTC) + timedelta(seconds=second) for second in (0, 1, 2, 5)]


def record(u, y, **options):
    return lambda folder: Series(u, y, **options)


def scale(*outputs, u=None):
    """Standardise records of these outputs, named pressure and flow."""
    names = ["pressure", "flow"][: np.ndim(outputs[0])]
    return lambda folder: Standardiser.from_records(
        [Series(np.arange(len(y)) % 3 if u is None else u, y, output_names=names) for y in outputs]
    )


def csv(text, *columns, missing=False, **form):
    """Read columns of a CSV file, by default y."""
    return lambda folder: csv_table(folder, text, **form).columns(columns or ["y"], missing=missing)


def parquet(columns, read=lambda table, column: table.columns([column]), column="y"):
    return lambda folder: read(parquet_table(folder, columns), column)


def file(name, content):
    """Open a file with this content; a folder for None."""

    def open_file(folder):
        _ = (folder / name).mkdir() if content is None else (folder / name).write_bytes(content)
        Table(folder / name)

    return open_file


def times(values, read=measure_sampling):
    """Read a CSV file with these times, separated by spaces."""
    return lambda folder: read(times_table(folder, values), "t")


def together(**steps):
    """Read Parquet files with these times together, split at gaps."""
    tables = [(f"{name}.parquet", {"t": times}) for name, times in steps.items()]
    read = partial(measure_together, column="t", split_gaps=True)
    return lambda folder: read([parquet_table(folder, times, name) for name, times in tables])


def one_of_several(table, column):
    measure_together([table], column)


def check_against(table, column):
    check_interval(table, column, 0.036)


def read(**changed):
    def read_table(folder):
        (folder / "t.csv").write_text("time,valve,level\n0.0,1,0.2\n0.5,0,\n1.0,1,0.1\n")
        values = {"files": folder / "t.csv", "inputs": ["valve"], "outputs": ["level"]} | changed
        revarb.read_records(values.pop("files"), **values)

    return read_table


def missing(values, rows, column=slice(None)):
    changed = np.array(values, dtype=float)
    changed[rows, column] = NAN
    return changed


def preprocessor(low, high):
    scaling, bounds = Standardiser(*4 * [np.ones(1)]), ValueRange(np.array(low), np.array(high))
    return lambda folder: Preprocessor(scaling, Order(1, 1, 1), ("u",), ("y",), 1.0, bounds)


def framed(times, **options):
    frame = FRAME[: len(times)].set_index(times)
    return lambda folder: Series(frame[["a"]], frame[["z"]], **options)


TWO, FAR = RNG.normal(size=(20, 2)), np.full((3, 2), 1.7e308)
LATE = Series(np.arange(20) % 3, missing(TWO[:, :1], slice(2, None)))
WIDE = Trajectory(np.zeros((3, 2)), None, "mean", 0, ("y", "z"))
WRONG_ROWS = (2, slice(None, None, 2), slice(None, None, -1), [0, 1])
WRONG_RANGES = (([0.0], [0.0]), ([1.0], [0.0]), ([0.0, 0.0], [1.0, 1.0]), ([0.0], [INF]), ([0.0], [1.0, 2.0]))

REFUSALS = [
    # Arrays.
    (record([1, 2, 3], [1, 2]), "same number of rows: u has 3, y has 2"),
    (record([1, NAN, 3], [1, 2, 3]), r"u has 1 value\(s\) that are not finite, the first \(nan\) in row 1, column 'u'"),
    (record(missing(np.zeros((4, 2)), 2, 1), np.zeros(4), input_names=["valve", "fan"]), "row 2, column 'fan'; remove"),
    (record([1, 2], [1, INF]), "y has 1 value.*row 1"),
    (record(np.zeros((2, 2, 2)), [1, 2]), r"u must be a vector or a matrix .*received shape \(2, 2, 2\)"),
    (record(["a", "b"], [1, 2]), "u must be a table of real numbers, received <U1 values"),
    (record([1, 2], np.empty((2, 0))), "y has no columns"),
    *[(record([1, 2], [1, 2], dt=dt), "dt must be a finite number above 0") for dt in (0.0, -1.0, NAN, INF)],
    (record(np.zeros((2, 2)), [1, 2], input_names=["valve"]), "needs a list of as many names"),
    (record(np.zeros((2, 2)), [1, 2], input_names=["a", "a"]), "column 'a' is named twice in u"),
    (record([1, 2], [1, 2], input_names=["a"], output_names=["a"]), "'a' is named as an input and as an output"),
    *[(lambda _, rows=rows: Series([0, 1], [1, 2])[rows], "a record is cut by a slice of con") for rows in WRONG_ROWS],
    (lambda _: as_records([Series([1, 2], [1, 2]), Series(np.zeros((2, 2)), [1, 2])]), "must agree in input_names"),
    (lambda _: as_records([Series([1, 2], [1, 2]), Series([1, 2], [1, 2], dt=0.5)]), "records must agree in dt"),
    (lambda _: as_records([]), "no record was given"),
    # Data frames.
    (record(pl.DataFrame({"mode": ["on", "off"]}), [1, 2]), "u must be .* numbers, but its column 'mode' holds Str"),
    (record(pd.DataFrame({"valve": [1.0, None]}), [1, 2]), "row 1, column 'valve'"),
    (record(pl.LazyFrame({"a": [1, 2]}), [1, 2]), r"u is a LazyFrame, .* call .collect\(\) first"),
    (record(pd.DataFrame([[1, 2], [3, 4]], columns=["a", "a"]), [1, 2]), "u is a data frame that cannot be read"),
    (record(pd.DataFrame({"a": [1, 2]}), pd.Series([1, 2], index=[1, 0])), "u and y have different row labels"),
    (record(pd.DataFrame({"a": np.array([1, "x"], dtype=object)}), [1, 2]), "in its column 'a': could not convert"),
    (framed(TIMES, dt=8.0), "dt is 8, but the row labels of u and y are 4 s apart; leave dt out"),
    (framed(TIMES.delete(12)), "u and y go from 2026-01-01 00:00:44 to 2026-01-01 00:00:52.*median is 4 s"),
    (framed(TIMES[::-1]), "must increase in even steps"),
    # Data frames that a model takes.
    (lambda _: MODEL.simulate(FRAME.rename(columns={"a": "c"})), r"u has no column 'a'; its columns are \['c', 'b'"),
    (lambda _: scores(MODEL.simulate(FRAME), FRAME[["a"]]), "y has no column 'z'"),
    (lambda _: MODEL.simulate(FRAME.set_index(TIMES + (TIMES - TIMES[0]))), "u are 8 s apart, but .* dt=4; resample"),
    (lambda _: scores(MODEL.simulate(FRAME), FRAME[["z"]][::-1]), "other row labels than the inputs of the simulation"),
    (lambda _: MODEL.simulate(FRAME).plot(FRAME[["z"]][::-1]), "other row labels than the inputs of the simulation"),
    (lambda _: MODEL.predict(RENAMED), r"the record has the columns \['a', 'c'\], the model \['a', 'b'\]"),
    (lambda _: MODEL.preprocessor.check_window(SWAPPED), r"columns \['b', 'a'\], the model \['a', 'b'\]; pass those"),
    (lambda _: MODEL.simulate(None), r"pass the inputs \['a', 'b'\] as u, one row per step, and no steps"),
    (lambda _: MODEL.simulate(FRAME[["a"]].to_numpy()), r"u has 1 column\(s\), but the model was trained with 2:"),
    (lambda _: MODEL.simulate(FRAME[:0]), "u has no rows; pass one row of inputs per step"),
    (lambda _: MODEL.predict(Series(FRAME["a"], FRAME["z"])), r"the record has 1 input\(s\), but the model 2: \['a'"),
    (lambda _: MODEL.predict(Series(np.ones((9, 2)), np.ones(9))), "the record has dt=1, but the model .* dt=4"),
    (lambda _: Preprocessor.from_records([small.record()[:3]], Order(2, 2, 1)), "record 0 has 3 samples.* at least 4"),
    (record([1, 2], [1, 2], output_names=["\ud800"]), "a column of y must be named by a text"),
    # Scaling, preprocessing, trajectories.
    *[(scale(TWO, u=TWO * [1, 0] + [0, value]), "input column 'u1' is constant") for value in (0.0, 7.5, 1e9)],
    (scale(missing(TWO, slice(1, None), 1), missing(TWO, slice(None))), "record 1 has no measured output value; l"),
    (scale(missing(TWO, slice(1, None), 1), missing(TWO, slice(None), 1)), "'flow' has 1 measured value.* at least 2"),
    (scale(missing(np.full((9, 1), 7.0), slice(0, 3))[:, 0]), r"'pressure' is constant \(7.0\) in all 9 rows of .*; a"),
    (scale(np.full(150, 7.0)), r"output column 'pressure' is constant \(7.0\) in the training data; leave it out"),
    (lambda _: Standardiser.from_records([Series(1e-9 * TWO, TWO)]).inputs(FAR), "too far from the training inputs"),
    (lambda _: Preprocessor.from_records([LATE], Order(2, 2, 1)), "column 'y' is measured in no row after the first 2"),
    *[(preprocessor(*ends), "the range of its inputs is not one finite interval per input") for ends in WRONG_RANGES],
    (lambda _: PATH.interval(95), "level must be between 0 and 1, received 95"),
    (lambda _: PATH.plot(others={"LSTM": WIDE}), r"'LSTM' of others has shape \(3, 2\), but the trajectory has"),
    # CSV files.
    (csv(""), "is empty; it needs a header line"),
    *[(csv(text), "is empty") for text in ("\n\n", ",\n,\n")],
    (csv("u,y\n"), "has column names but no data"),
    (csv("1,2\n3,4\n"), "begins with numbers"),
    (csv("u,u\n1,2\n"), "two columns named 'u'"),
    (csv("u,y\n1,2\n3\n"), r"line 3: 1 cells, but the header \(line 1\) names 2; --separator \(in Python separator=\)"),
    (csv("Logger 7\nu,y\n1,2\n"), r"line 2: 2 cells, but .*--skip-rows \(skip_rows=\) leaves out lines above the h"),
    (csv("t,y\n0,5,1,5\n"), "line 2: 4 cells, but .*--separator"),
    (csv("u|y\n1|2\n"), r"no column 'y'; its columns are u\|y; --separator"),
    (csv("u,z\n1,2\n"), "has no column 'y'; its columns are u, z"),
    (csv("u,y\n1,x\n"), "line 2, column 'y': 'x' is not a number"),
    (csv("u,y\n1,1_0\n"), "'1_0' is not a number"),
    (csv("u,y\n1,\n"), "line 2, column 'y': '' is no value, and only outputs may be missing; fill it"),
    (csv("u,y\n1,2\n\n1,nan\n"), "line 4, column 'y': 'nan' is no value"),
    (csv("u,y\n1,2\n,\n1,2\n"), "line 3, column 'y': '' is no value"),
    (csv("y\n1\ninf\n", missing=True), "line 3, column 'y': 'inf' is not finite"),
    (csv("y\n1\nnone\n", missing=True), "line 3, column 'y': 'none' is not a number"),
    (csv("t,y\n15.11.2026,off\n16.11.2026,3\n"), "line 2, column 'y': 'off' is not a number"),  # no row of units
    (csv("t;y\n#3;4\n1;2\n", "t"), "line 2, column 't': '#3' is not a number"),
    (csv("t;y\n0;1,500\n1;2,250\n"), "line 2, column 'y': '1,500' is not a number with a decimal point; --decimal ,"),
    (csv("t;y\n0.5;1\n1.0;2,5\n"), r"line 3, column 'y': '2,5' is not .*; --decimal , \(in Python decimal=','\) reads"),
    (csv("t;y\n0;1,500,000\n"), "'1,500,000' is not a number; leave out commas between thousands"),
    (csv("t;y\n0;1.500,25\n"), "'1.500,25' is not a number$"),
    (csv("z;y\n1,5;2.5\n", decimal=","), "'2.5' is not a number with a decimal comma; leave out --decimal"),
    (lambda _: CsvForm(decimal=";"), "decimal must be '.' or ',', received ';'"),
    (lambda _: CsvForm(separator="::"), r"separator must be one of , ; \| tab space, received '::'"),
    (lambda _: CsvForm(skip_rows=-1), "skip_rows must be a whole number of at least 0, received -1"),
    (file("t.csv", b"\xff\xfe\x00"), "t.csv is not a text file in UTF-8"),
    (file("t.csv.gz", gzip.compress(b"y\n1\n")[:-4]), "t.csv.gz is not a gzip file, or it is damaged"),
    *[(file(name, None), f"cannot read .*{name}") for name in ("folder.csv", "folder.parquet")],
    *[(lambda folder, name=name: Table(folder / name), f"cannot read .*{name}") for name in ("no.csv", "no.parquet")],
    (csv("u,y\n1," + 140_000 * "x" + "\n"), "line 2: field larger than field limit .*; save it as CSV"),
    # Parquet files.
    (parquet({"y": ["1", "2"]}), "t.parquet, column 'y' holds values of type string, which are not numbers"),
    (parquet({"y": [[1.0], [2.0]]}), "column 'y' holds values of type list"),
    (parquet({"y": [datetime(2026, 1, 1)]}), "column 'y' holds values of type timestamp"),
    (parquet({"y": [1.0, INF]}), r"row 1 \(counted from 0\), column 'y': 'inf' is not finite"),
    (parquet({"y": [1.0, NAN]}), r"row 1 \(counted from 0\), column 'y': 'nan' is no value"),
    (parquet({"y": pa.array([], pa.float64())}), "has column names but no data"),
    (parquet({"u": [1.0], "z": [2.0]}), "has no column 'y'; its columns are u, z"),
    (parquet(pa.Table.from_arrays([pa.array([1])] * 2, names=["y", "y"])), "has two columns named 'y'"),
    (file("text.parquet", b"u,y\n1,2\n" * 9), "text.parquet is not a Parquet file, or it is damaged"),
    # Times: uneven, and no times at all.
    (times("0 1 2 4 5"), r"t.csv, line 5, column 't': time goes from 2 to 4, but .* even steps \(their median is 1\)"),
    (times("0 1 2 2 3"), "line 5, column 't': time goes from 2 to 2"),
    (times("4 4 2"), r"time goes from 4 to 4, but it must increase .* \(their median is -1\)"),
    (times("0"), "has a single row"),
    (times("0 NA 2"), "line 3, column 't': 'NA' is no value"),
    (times("0 soon 2"), "line 3, column 't': 'soon' is not a number"),
    (times("2026-01-01 soon"), "line 3, column 't': 'soon' is not a time, neither in seconds nor as in 2026-11-15T20"),
    (times("01/02/2026 02/02/2026"), "line 2, column 't': '01/02/2026' is not a time"),
    (times("30.02.2026 01.03.2026"), "line 2, column 't': '30.02.2026' is not a time"),
    (times("15.11.26 16.11.26"), "line 2, column 't': '15.11.26' is not a time"),
    (times("2026-01-01 2026-01-02T00:00Z"), "some times have a time zone and some have none"),
    (times("2026-01-01 2026-01-02 2026-01-03 2026-01-05"), r"time goes from 2026-01-03 to 2026-01-05.* is 86400\)"),
    (parquet({"t": MOMENTS}, measure_sampling, "t"), r"row 3 \(counted.*: time goes from 2026-11-15T20:30:02"),
    (parquet({"t": [None, *MOMENTS]}, measure_sampling, "t"), r"row 0 \(counted from 0\), column 't': 'NaT' is no v"),
    (parquet({"t": ["a"] * 4}, measure_sampling, "t"), "column 't' holds values of type string"),
    (parquet({"t": MOMENTS}, measure_sampling, "time"), "has no column 'time'; its columns are t"),
    # Gaps in time, without and with the option that splits a file there.
    (times("0 1 2 4 5", one_of_several), r"line 5, .*from 2 to 4.* or read it as two records with --split-gaps \(spl"),
    (times("0 1 2 2 3", one_of_several), "from 2 to 2, .*or cut it in two there$"),
    # Times in another order, which can be sorted where none occurs twice; a second record below the first cannot.
    (times("0 1 3 2 4", one_of_several), r"line 5, column 't': .* back from 3 to 2: .*; --sort-time \(sort_time"),
    (times("4 0 1 2 9 3", one_of_several), r"line 3, .*back from 4 to 0: .*; --sort-time \(sort_time=True\) sorts"),
    (times("3 2 1", split_at_gaps), r"line 3, .*back from 3 to 2: .*; --sort-time \(sort_time=True\) sorts them$"),
    (times("0 1 3 2 4", check_against), "back from 3 to 2: the rows are not in order of time; sort them$"),
    (times("0 1 2 0 1 2", one_of_several), "from 2 to 0, .*or cut it in two there$"),
    (times("0 1 2 4 5", check_against), "or cut it in two there$"),  # nothing splits it
    (times("0 1 2 4 4 5", split_at_gaps), "line 6, column 't': time goes from 4 to 4"),
    (times("0 1 2 9 8 9 10", split_at_gaps), "line 6, column 't': time goes from 9 to 8"),
    (times("0 1 2 9 9.5 20 21 22 23", split_at_gaps), "line 6, .*from 9 to 9.5"),
    (times("0 1 2 9 10 10.5 11 20 21 22 23 24", split_at_gaps), "line 7, .*from 10 to 10.5"),
    (times("0 1 2 9 10.04 11.08 12.12 13.16 14.2 20 21 22 23 24 25 26", split_at_gaps),
     "between its gaps it is sampled every 1.04 from line 5 to line 10, but every 1 from line 11 to line 17"),
    (times("0 1 2 3 4 5 7 9 11 13", split_at_gaps), "4 of 10 samples stand alone .*, the first in line 8: .*res"),
    # Several files, and one for a model.
    (together(a=[0, 0.1, 0.2], b=[5, 5.1, 5.2], c=[0, 0.2, 0.4]), "c.parquet is sampled every 0.2, but .*a.parquet"),
    (together(a=[0, 0.1, 0.2, 7, 7.1], b=[0, 0.2, 0.4, 7, 7.2]), "b.parquet .*a.parquet every 0.1; resample one"),
    (parquet({"t": np.arange(9) / 30}, check_against, "t"), r"every 0.033\d*, but the model was fitted with dt=0.036"),
    # Records from files, and tables to files.
    (read(files=[]), "files must be a path or a list of paths"),
    (read(outputs=["height"]), "has no column 'height'; its columns are time, valve, level"),
    (read(time="time", dt=0.5), "dt and a column of times both give the sampling interval"),
    (read(inputs=["level"], outputs=["valve"]), "only outputs may be missing"),
    (read(split_gaps=True), r"--split-gaps \(split_gaps=True\) needs the column of times; give --time COLUMN"),
    (read(sort_time=True), r"--sort-time \(sort_time=True\) needs the column of times; give --time COLUMN"),
    (lambda _: check_table_file("t.xlsx"), "the ending .xlsx is not known; name it .csv, .json, .parquet"),
    (lambda _: check_table_file("t"), "it has no ending; name it .csv, .json, .parquet"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "message"), REFUSALS)
@pytest.mark.filterwarnings("ignore:.*(gap|steps differ)")
def test_refusals(tmp_path, call, message):
    with pytest.raises(InputError, match=message):
        call(tmp_path)


def test_a_damaged_parquet_file(tmp_path):
    parquet_table(tmp_path, {"y": np.arange(100.0)})
    whole = (tmp_path / "t.parquet").read_bytes()
    (tmp_path / "t.parquet").write_bytes(whole[:50] + bytes(200) + whole[250:])
    with pytest.raises(InputError, match=r"t.parquet is not a Parquet file, or it is damaged"):
        Table(tmp_path / "t.parquet")


def test_without_optional_libraries_it_says_what_to_install(tmp_path, monkeypatch):
    parquet_table(tmp_path, {"y": [1.0]})
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setattr(dataframes, "DEFAULT_BACKENDS", ("no_such_library",))
    for use in (Table, check_table_file):
        with pytest.raises(InputError, match=r'ing .*t.parquet needs pyarrow; pip install "revarb\[parquet\]"'):
            use(tmp_path / "t.parquet")
    with pytest.raises(InputError, match=r"pip install \"revarb\[pandas\]\""):
        PATH.to_frame()
