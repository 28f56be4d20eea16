"""Tables and percentages of the documentation and of the README, made from results/*.json.

`python docs/results_tables.py` writes the README's table between its markers; pages take tables through the
directive `results-table` and percentages through the role `result` (docs/_ext/results_directives.py).
"""

import json
import re
import sys
from functools import partial
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))  # for the studies, which are not installed

from studies import benchmarks as benchmark_study  # noqa: E402
from studies import beyond as beyond_study  # noqa: E402
from studies import export as export_study  # noqa: E402
from studies import long_records as long_study  # noqa: E402
from studies import mpc as mpc_study  # noqa: E402
from studies import official as official_study  # noqa: E402
from studies import outliers as outlier_study  # noqa: E402
from studies import state_space as state_space_study  # noqa: E402
from studies.benchmarks import CHOSEN  # noqa: E402
from studies.outliers import GAUSSIAN, KINDS, STUDENT  # noqa: E402
from studies.paper import table1 as table1_study  # noqa: E402
from studies.paper import table2 as table2_study  # noqa: E402
from studies.tables import mean_only_lines, select, summarise, target_grid  # noqa: E402

MODELS = ("Mean", "ARX", "MLP-NARX", "LSTM", "GP-NARX", "REVARB")


def results(name):
    """Read a results file."""
    return json.loads((ROOT / "results" / name).read_text())


def is_there(name):
    """Whether a results file has been written."""
    return (ROOT / "results" / name).is_file()


def spread(values):
    """Format a median with its range over the seeds."""
    low, middle, high = (f"{value:.3f}" for value in values)
    return middle if low == high else f"{middle} ({low} – {high})"


def by_dataset(rows):
    """The rows of every data set."""
    return {name: select(rows, dataset=name) for name in dict.fromkeys(row["dataset"] for row in rows)}


def target_table(study, name):
    """Every target of a study, what was found, and whether it is reached."""
    rows = results(name)["rows"] if is_there(name) else []
    return [["target", "found", ""], *(target_grid(study.STUDY().targets(rows)).rows if rows else [])]


def table1():
    """RMSE of the mean-only runs, the paper's numbers below ours."""
    paper = {benchmark.name: benchmark.paper for benchmark in table1_study.BENCHMARKS}
    lines = [["data", "", *MODELS]]
    for name, these in by_dataset(results("table1.json")["rows"]).items():
        plain = mean_only_lines(these)
        lines.append([name, "ours", *(spread(plain[model].range("rmse")) for model in MODELS)])
        if paper[name]:
            lines.append(["", "paper", *(f"{paper[name][m]:.4f}" if m in paper[name] else "–" for m in MODELS)])
    return lines


def bands():
    """Scores of the models that propagate their own uncertainty."""
    lines = [["data", "model", "RMSE, moments", "NLPD", "share in 95 % band"]]
    for name, these in by_dataset(results("table1.json")["rows"]).items():
        for line in summarise(these):
            if line.method == "moments":
                cells = (spread(line.range(score)) for score in ("rmse", "nlpd", "coverage95"))
                lines.append([name, line.model, *cells])
    return lines


def table2():
    """Human motion: every model by the better of its methods."""
    lines = [["model", "method", "paper", "motions", "pooled", "channels", "walks", "runs", "motions, 53", "in 95 %"]]
    paper, better = table2_study.PAPER, {}
    for line in summarise(results("table2.json")["rows"]):
        known = better.setdefault(line.model, line)
        if line.range("motions_57").median < known.range("motions_57").median:
            better[line.model] = line
    for model, line in better.items():
        errors = (f"{name}_57" for name in ("motions", "pooled", "channels", "walks", "runs"))
        cells = [spread(line.range(name)) for name in (*errors, "motions_53")]
        share = line.range("coverage95").median
        printed = f"{paper[model]:.4f}" if model in paper else "–"
        lines.append([model, line.method, printed, *cells, "–" if np.isnan(share) else f"{share:.3f}"])
    return lines


def recognition():
    """The recognition model by start: members and mixture, mean-only and moments, and the networks alone."""
    lines = [["data", "model", "RMSE, mean-only", "RMSE, moments", "NLPD", "networks alone"]]
    for name, these in by_dataset(results("recognition.json")["rows"]).items():
        methods = {(line.model, line.method): line for line in summarise(these)}
        for model in dict.fromkeys(model for model, _ in methods):
            plain, moments, alone = (methods.get((model, method)) for method in ("mean", "moments", "network"))
            plain = methods[model, "residuals"] if plain is None else plain
            band = [spread(moments.range(score)) if moments else "–" for score in ("rmse", "nlpd")]
            networks = spread(alone.range("rmse")) if alone else "–"
            lines.append([name, model, spread(plain.range("rmse")), *band, networks])
    return lines


def calibration():
    """Calibrated bands, those of the fit and those of ARX; the effect of a measured window and of missing outputs."""
    lines = [["data", "model", "start", "RMSE", "NLPD", "in 95 %"]]
    rows = [row for row in results("calibration.json")["rows"] if row["method"] not in ("mean", "samples")]
    for name, own in by_dataset(rows).items():
        for start in dict.fromkeys(row["start"] for row in own):
            for line in summarise(select(own, start=start)):
                scores = (spread(line.range("rmse")), spread(line.range("nlpd")))
                lines.append([name, line.model, start, *scores, f"{line.range('coverage95').median:.3f}"])
    return lines


OUTLIERS, EXPORT, MPC, LOOP = "outliers.json", "export.json", "mpc.json", "bench_loop.json"
BENCHMARKS, BEYOND, STATE_SPACE = "benchmarks.json", "beyond.json", "state_space.json"
OFFICIAL, LONG = "official.json", "long.json"
COMMANDS = {
    BENCHMARKS: f"python -m studies benchmarks --json results/{BENCHMARKS}",
    OFFICIAL: f"python -m studies benchmarks --official --json results/{OFFICIAL}",
    LONG: f"python -m studies long --json results/{LONG}",
    BEYOND: f"python -m studies beyond --json results/{BEYOND}",
    OUTLIERS: f"python -m studies outliers --json results/{OUTLIERS}",
    EXPORT: f"python -m studies export --json results/{EXPORT}",
    MPC: f"python -m studies mpc --json results/{MPC}",
    STATE_SPACE: f"python -m studies state_space --json results/{STATE_SPACE}",
    LOOP: f"python -m bench --only observer refits --json results/{LOOP}",
}
"""Of the files that take so long to make that they may be absent."""

OTHER_MODELS = ("Mean", "ARX", "GP-NARX", "MLP-NARX", "LSTM", "REVARB (R0)")


def benchmark_outcomes():
    """What was found on every benchmark; nothing before its command has been run."""
    return benchmark_study.list_outcomes(results(BENCHMARKS)["rows"] if is_there(BENCHMARKS) else [])


def benchmarks():
    """RMSE of all models by the mean-only run, of the chosen one also by moments, and the aims."""
    lines = [["record", "units", *OTHER_MODELS, CHOSEN, "by moments", "aim"]]
    for outcome in benchmark_outcomes():
        others = (f"{outcome.rmse(model).median:.3f}" for model in OTHER_MODELS)
        ours, record = (spread(outcome.rmse(CHOSEN)), spread(outcome.banded("rmse"))), outcome.record
        lines.append([record.name, record.units, *others, *ours, f"{record.aim:g}"])
    return lines


def benchmarks_choice():
    """What was chosen, its band and its time."""
    lines = [["record", "set", "NLPD", "in 95 %", "fit", "taken"]]
    for outcome in benchmark_outcomes():
        record, share = outcome.record, outcome.banded("coverage95").median
        fit = seconds(outcome.banded("fit_seconds").median)
        lines.append([record.name, record.set, spread(outcome.banded("nlpd")), f"{share:.3f}", fit, outcome.taken])
    return lines


def benchmarks_published():
    """Numbers that others published, beside the chosen model's."""
    known = [record for record in benchmark_study.RECORDS if record.published]
    methods = list(dict.fromkeys(method for record in known for method in record.published))
    ours = {outcome.record.name: spread(outcome.rmse(CHOSEN)) for outcome in benchmark_outcomes()}
    lines = [["record", *methods, CHOSEN]]
    for record in known:
        numbers = (f"{record.published[method]:.3f}" if method in record.published else "–" for method in methods)
        lines.append([record.name, *numbers, ours.get(record.name, "–")])
    return lines


README_RECORDS = {
    "drive": "motors with a belt",
    "actuator": "hydraulic actuator",
    "dryer": "hair dryer",
    "gas_furnace": "gas furnace",
    "ballbeam": "ball on a beam",
    "robot_arm": "flexible robot arm",
    "heating": "heating lamp",
}
"""The measured records with one input and one output, in words."""


def readme():
    """Errors of ARX, LSTM and the chosen model in % of the output's standard deviation, and its 95 % band."""
    lines = [["record", "linear (ARX)", "LSTM", "revarb", "in its band"]]
    rows = [row for row in results(BENCHMARKS)["rows"] if row["coverage95"] is not None and row["start"] == "cold"]
    for name, label in README_RECORDS.items():
        errors = [median(rows, "nrmse", dataset=name, model=model) for model in ("ARX", "LSTM", CHOSEN)]
        share = median(rows, "coverage95", dataset=name, model=CHOSEN)
        lines.append([label, *(f"{100 * value:.0f}" for value in errors), f"{100 * share:.0f} %"])
    return lines


def outlier_outcomes():
    """What was found on every data set with outliers; nothing before the command has been run."""
    return outlier_study.list_outcomes(results(OUTLIERS)["rows"] if is_there(OUTLIERS) else [])


def outlier_shares():
    """Heads of the columns of a table by share."""
    return ["clean", *(f"{100 * share:g} %" for share in outlier_study.SHARES)]


def outliers():
    """RMSE of every model by share, for both kinds."""
    lines = [["data", "outliers", "model", *outlier_shares()]]
    for outcome in outlier_outcomes():
        for kind in KINDS:
            for model in outcome.models:
                cells = (outlier_error(outcome, model, condition) for condition in outcome.conditions(kind))
                lines.append([outcome.name, kind, model, *cells])
    return lines


def outlier_error(outcome, model, condition):
    """RMSE over the seeds that did not fail, and how many failed."""
    failed = outcome.failed(model, condition)
    return spread(outcome.rmse(model, condition)) + (f" [{failed} failed]" if failed else "")


def outliers_bands():
    """NLPD and the share in the 95 % band of both noises, by moments."""
    lines = [["data", "outliers", "model", *outlier_shares()]]
    for outcome in outlier_outcomes():
        for kind in KINDS:
            for model in (GAUSSIAN, STUDENT):
                found = (
                    [outcome.banded(model, condition, score).median for score in ("nlpd", "coverage95")]
                    for condition in outcome.conditions(kind)
                )
                lines.append(
                    [outcome.name, kind, model, *(f"{nlpd:.2f}; {100 * inside:.0f} %" for nlpd, inside in found)]
                )
    return lines


def outliers_found():
    """Which outliers the weights of Student-t noise show."""
    lines = [["data", "outliers", "found at 5 % false alarms", "listed", "listed falsely"]]
    for outcome in outlier_outcomes():
        for condition in outlier_study.list_conditions(outcome):
            lines.append([outcome.name, str(condition), *outlier_study.detection_cells(outcome, condition)])
    return lines


def export():
    """Difference to simulate, size and time of every format; nothing before the command has been run."""
    lines = [["data", "format", "difference", "kB", "µs per step", "µs per step of a run", "JAX / it"]]
    rows = results(EXPORT)["rows"] if is_there(EXPORT) else []
    return [*lines, *([row["dataset"], *export_study.export_cells(row)] for row in rows)]


def mpc():
    """Tracking, violations and times of every controller; nothing before the command has been run."""
    head = ["controller", "tracking RMSE, mmol/L", "violations", "largest, mmol/L", "solve, ms", "95 %, ms"]
    return [[*head, "observer, ms"], *(mpc_study.control_table(results(MPC)["rows"]) if is_there(MPC) else [])]


def study_table(study, name, number):
    """One of the tables of a study; nothing before its command has been run."""
    if not is_there(name):
        return [["model"]]
    grid = study.STUDY().tables(results(name)["rows"])[number]
    return [grid.columns, *grid.rows]


def avatar():
    """The avatar's figures, a line per signal and phase."""
    lines = [["signal", "out of range", "jump", "gait", "hip, Hz", "in training, Hz", "settled after, s"]]
    for row in results("avatar.json")["rows"]:
        for number, phase in enumerate(row["phases"]):
            common = [row["signal"], f"{100 * row['range_excess']:.0f} %", f"{row['jump_ratio']:.2f}"]
            found = (f"{phase[name]:.2f}" for name in ("frequency", "training_frequency", "settled_after"))
            lines.append([*(common if number == 0 else [""] * 3), phase["gait"], *found])
    return lines


def seconds(value):
    """Format a time."""
    if value is None:
        return ""
    return f"{1e3 * value:.1f} ms" if value < 1.0 else f"{value:.1f} s"


def bench():
    """Times against GPy."""
    lines = [["", "N", "cores", "revarb", "GPy", "ratio", "of floor", ""]]
    for row in results("bench.json")["rows"]:
        ratios = [f"{row[name]:.1f}" if name in row else "" for name in ("ratio", "of_floor")]
        times = seconds(row["seconds"]), seconds(row.get("peer_seconds"))
        lines.append([row["name"], str(row["n"]), str(row["threads"]), *times, *ratios, _describe_bench(row)])
    return lines


def _describe_bench(row):
    # What a row of the bench has beside its time.
    parts = [
        f"{row['peak_mib']:.0f} MiB" if "peak_mib" in row else "",
        f"NRMSE {row['nrmse']:.3f}" if "nrmse" in row else "",
        f"{row['times_fit']:.1f} × the fit" if "times_fit" in row else "",
        f"{row['times_faster']:.1f} × faster than the slow way" if "times_faster" in row else "",
        _compare_ways(row),
    ]
    return ", ".join(part for part in parts if part)


def _compare_ways(row):
    # Errors of chosen models; with the slow way's where it was run.
    if "held_out_error" not in row:
        return ""
    return ", ".join(
        f"{words} error {row[name]:.3f}" + (f" ({row[f'slow_{name}']:.3f})" if f"slow_{name}" in row else "")
        for words, name in (("held-out", "held_out_error"), ("test", "rmse"))
    )


def loop_rows(part):
    """Rows of a part of the bench of observer and refit; nothing before the command has been run."""
    return [row for row in results(LOOP)["rows"] if row["part"] == part] if is_there(LOOP) else []


def observer():
    """Time of a step of the observer with its correction."""
    times = ((seconds(row["median_seconds"]), seconds(row["seconds"])) for row in loop_rows("observer"))
    return [["median", "99 % of the steps within"], *map(list, times)]


def refits():
    """Time and error of a refit, beside fits from scratch."""
    lines = [["", "time", "of the fit from scratch", "RMSE, test part"]]
    for row in loop_rows("refits"):
        share = f"{row['of_fit']:.2f}" if "of_fit" in row else ""
        lines.append(
            [row["name"], seconds(row["seconds"]), share, spread([row["rmse_low"], row["rmse"], row["rmse_high"]])]
        )
    return lines


def h200():
    """Times on a GPU."""
    return [["", "N", "time"]] + [
        [row["name"], str(row["n"]), seconds(row["seconds"])] for row in results("bench_h200.json")["rows"]
    ]


def demo():
    """Scores of `make demo`."""
    lines = [["model", "RMSE", "NRMSE", "NLPD", "share in 50 % band", "in 95 %"]]
    for row in results("demo.json")["rows"]:
        numbers = (row[name] for name in ("rmse", "nrmse", "nlpd", "coverage50", "coverage95"))
        lines.append([row["model"], *("–" if value is None else f"{value:.3f}" for value in numbers)])
    return lines


CALIBRATED = {"model": "REVARB, calibrated", "start": "cold", "method": "moments"}
"""What selects the rows of the calibrated model in results/calibration.json."""

OVERVIEW = {"drive": "Drive", "actuator": "Actuator", "artificial_recorded": "Artificial", "dryer": "Dryer (DaISy)"}
"""The paper's three records and one of DaISy."""


def median(rows, score, **where):
    """Median of a score over the rows whose columns have the given values."""
    return np.median([row[score] for row in rows if where.items() <= row.items()])


def overview():
    """REVARB, the best baseline, the training mean and the share in the calibrated 95 % band: medians over seeds."""
    lines = [["record", "REVARB", "best baseline", "training mean", "in the 95 % band"]]
    datasets = by_dataset(results("table1.json")["rows"])
    shares = results("calibration.json")["rows"]
    for name, label in OVERVIEW.items():
        rmse = {model: line.range("rmse").median for model, line in mean_only_lines(datasets[name]).items()}
        best = min((model for model in rmse if model not in ("REVARB", "Mean")), key=rmse.get)
        share = median(shares, "coverage95", dataset=name, **CALIBRATED)
        errors = f"{rmse['REVARB']:.3f}", f"{rmse[best]:.3f} ({best})", f"{rmse['Mean']:.3f}"
        lines.append([label, *errors, f"{100 * share:.0f} %"])
    return lines


def percentages():
    """Percentages that sentences quote, by name; all are of results/calibration.json, medians over the seeds."""
    rows = results("calibration.json")["rows"]
    shares = [median(rows, "coverage95", dataset=name, **CALIBRATED) for name in OVERVIEW]
    found = {"coverage low": min(shares), "coverage high": max(shares)}
    for name in ("drive", "actuator"):
        where = {"dataset": name, "model": "REVARB, next 20 samples"}
        window = median(rows, "rmse", start="window of 20 samples", **where)
        found[f"window {name}"] = 1.0 - window / median(rows, "rmse", start="cold", **where)
        found[f"settled {name}"] = 1.0 - window / median(rows, "rmse", start="cold, long before", **where)
    # Calibration does not change the mean-only run, so its rows serve as those of the fit.
    for method, complete in (("moments", "REVARB, as fitted"), ("mean", "REVARB, calibrated")):
        where = {"dataset": "drive", "method": method}
        gaps = median(rows, "rmse", model="REVARB, 20% of y missing", **where)
        found[f"missing {method}"] = gaps / median(rows, "rmse", model=complete, **where) - 1.0
    return {name: f"{100 * value:.0f} %" for name, value in found.items()}


TABLES = {
    "overview": overview,
    "demo": demo,
    "table1": table1,
    "bands": bands,
    "table2": table2,
    "recognition": recognition,
    "calibration": calibration,
    "benchmarks": benchmarks,
    "benchmarks_choice": benchmarks_choice,
    "benchmarks_targets": partial(target_table, benchmark_study, BENCHMARKS),
    "benchmarks_published": benchmarks_published,
    "official_places": partial(study_table, official_study, OFFICIAL, 0),
    "official_errors": partial(study_table, official_study, OFFICIAL, 1),
    "official_scores": partial(study_table, official_study, OFFICIAL, 2),
    "official_targets": partial(target_table, official_study, OFFICIAL),
    "long": partial(study_table, long_study, LONG, 0),
    "readme": readme,
    "outliers": outliers,
    "outliers_bands": outliers_bands,
    "outliers_found": outliers_found,
    "outliers_targets": partial(target_table, outlier_study, OUTLIERS),
    "export": export,
    "export_targets": partial(target_table, export_study, EXPORT),
    "mpc": mpc,
    "mpc_targets": partial(target_table, mpc_study, MPC),
    "beyond_bands": partial(study_table, beyond_study, BEYOND, 0),
    "beyond_warnings": partial(study_table, beyond_study, BEYOND, 1),
    "beyond_arx": partial(study_table, beyond_study, BEYOND, 2),
    "beyond_targets": partial(target_table, beyond_study, BEYOND),
    "state_space_continued": partial(study_table, state_space_study, STATE_SPACE, 0),
    "state_space_cold": partial(study_table, state_space_study, STATE_SPACE, 1),
    "state_space_known": partial(study_table, state_space_study, STATE_SPACE, 2),
    "state_space_long": partial(study_table, state_space_study, STATE_SPACE, 3),
    "state_space_targets": partial(target_table, state_space_study, STATE_SPACE),
    "avatar": avatar,
    "bench": bench,
    "observer": observer,
    "refits": refits,
    "h200": h200,
}


SOURCES = {
    "overview": ("table1.json", "calibration.json"),
    "demo": ("demo.json",),
    "table1": ("table1.json",),
    "bands": ("table1.json",),
    "table2": ("table2.json",),
    "recognition": ("recognition.json",),
    "calibration": ("calibration.json",),
    **{name: (BENCHMARKS,) for name in TABLES if name.startswith("benchmarks") or name == "readme"},
    **{name: (OFFICIAL,) for name in TABLES if name.startswith("official")},
    "long": (LONG,),
    **{name: (BEYOND,) for name in TABLES if name.startswith("beyond")},
    **{name: (OUTLIERS,) for name in TABLES if name.startswith("outliers")},
    **{name: (EXPORT,) for name in TABLES if name.startswith("export")},
    **{name: (MPC,) for name in TABLES if name.startswith("mpc")},
    **{name: (STATE_SPACE,) for name in TABLES if name.startswith("state_space")},
    "avatar": ("avatar.json",),
    "bench": ("bench.json",),
    "observer": (LOOP,),
    "refits": (LOOP,),
    "h200": ("bench_h200.json",),
}


def origin(source):
    """One line that says when, where and with which versions a results file was made."""
    if not is_there(source):
        return f"results/{source} has not been written yet: {COMMANDS[source]}"
    meta = results(source)["meta"]
    versions = ", ".join(f"{name} {version}" for name, version in meta["versions"].items())
    place = f"{meta.get('device', meta['processor'])}, {meta['cores']} cores"
    busy = f" Load average in the minute before: {meta['load_before']:.1f}." if "load_before" in meta else ""
    return f"results/{source}: {meta['made'][:10]}, {place}, Python {meta['python']}, {versions}.{busy}"


def block(name):
    """A table as Markdown; nothing where its results have not been written yet."""
    if not all(map(is_there, SOURCES[name])):
        return ""
    head, *rows = TABLES[name]()
    lines = [f"| {' | '.join(cells)} |\n" for cells in [head, ["---"] * len(head), *rows]]
    return "".join(lines)


def marked(text, name):
    """Return the text between `<!-- name -->` and `<!-- end -->`."""
    return re.search(rf"<!-- {name} -->\n(.*?)<!-- end -->", text, re.S).group(1)


def with_block(text, name):
    """Return the text with a table between its markers."""
    start = f"<!-- {name} -->\n"
    return text.replace(f"{start}{marked(text, name)}<!-- end -->", f"{start}{block(name)}<!-- end -->")


def main():
    """Write the README's table."""
    readme = ROOT / "README.md"
    text = readme.read_text()
    updated = with_block(text, "readme")
    if updated != text:
        readme.write_text(updated)


if __name__ == "__main__":
    main()
