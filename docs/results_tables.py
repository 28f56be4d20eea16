"""Tables and percentages of the documentation and of the README, made from results/*.json.

`python docs/results_tables.py` writes the README's table between its markers; pages take tables through the directive
`results-table` and percentages through the role `result` (docs/_ext/results_directives.py).
"""

import json
import re
from pathlib import Path

import numpy as np

from revarb.evaluation.comparison.lines import SCORES, mean_only_lines, summarise
from revarb.experiments.table1 import load_table1
from revarb.experiments.table2 import MOTION_COLUMNS, load_table2

ROOT = Path(__file__).parent.parent
RECOGNITION_SCORES = ("rmse", "nlpd", "coverage95")
MODELS = ("Mean", "ARX", "MLP-NARX", "LSTM", "GP-NARX", "REVARB")


def results(name):
    """Read a results file."""
    return json.loads((ROOT / "results" / name).read_text())


def spread(values):
    """Format a median with its range over the seeds."""
    low, middle, high = (f"{value:.3f}" for value in values)
    return middle if low == high else f"{middle} ({low} – {high})"


def by_dataset(rows, scores=SCORES):
    """Summarise the rows of every data set over its seeds."""
    names = dict.fromkeys(row["dataset"] for row in rows)
    return {name: summarise([row for row in rows if row["dataset"] == name], scores) for name in names}


def table1():
    """RMSE of the mean-only runs, the paper's numbers below ours."""
    paper = {benchmark.name: benchmark.paper for benchmark in load_table1().benchmarks}
    lines = [["data", "", *MODELS]]
    for name, these in by_dataset(results("table1.json")["rows"]).items():
        plain = mean_only_lines(these)
        lines.append([name, "ours", *(spread(plain[model].ranges["rmse"]) for model in MODELS)])
        if paper[name]:
            lines.append(["", "paper", *(f"{paper[name][m]:.4f}" if m in paper[name] else "–" for m in MODELS)])
    return lines


def bands():
    """Scores of the models that propagate their own uncertainty."""
    lines = [["data", "model", "RMSE, moments", "NLPD", "share in 95 % band"]]
    for name, these in by_dataset(results("table1.json")["rows"]).items():
        for line in these:
            if line.method == "moments":
                cells = (spread(line.ranges[score]) for score in ("rmse", "nlpd", "coverage95"))
                lines.append([name, line.model, *cells])
    return lines


def table2():
    """Human motion: every model by the better of its methods."""
    lines = [["model", "method", "paper", "motions", "pooled", "channels", "walks", "runs", "motions, 53", "in 95 %"]]
    paper = load_table2().paper
    better = {}
    for line in summarise(results("table2.json")["rows"], MOTION_COLUMNS):
        known = better.setdefault(line.model, line)
        if line.ranges["motions_57"].median < known.ranges["motions_57"].median:
            better[line.model] = line
    for model, line in better.items():
        errors = (f"{name}_57" for name in ("motions", "pooled", "channels", "walks", "runs"))
        cells = [spread(line.ranges[name]) for name in (*errors, "motions_53")]
        share = line.ranges["coverage95"].median
        printed = f"{paper[model]:.4f}" if model in paper else "–"
        lines.append([model, line.method, printed, *cells, "–" if np.isnan(share) else f"{share:.3f}"])
    return lines


def recognition():
    """The recognition model by start: members and mixture, mean-only and moments, and the networks alone."""
    lines = [["data", "model", "RMSE, mean-only", "RMSE, moments", "NLPD", "networks alone"]]
    for name, these in by_dataset(results("recognition.json")["rows"], RECOGNITION_SCORES).items():
        methods = {(line.model, line.method): line.ranges for line in these}
        for model in dict.fromkeys(line.model for line in these):
            plain, moments, alone = (methods.get((model, method)) for method in ("mean", "moments", "network"))
            plain = methods[model, "residuals"] if plain is None else plain
            band = [spread(moments[score]) if moments else "–" for score in ("rmse", "nlpd")]
            lines.append([name, model, spread(plain["rmse"]), *band, spread(alone["rmse"]) if alone else "–"])
    return lines


def calibration():
    """Calibrated bands, those of the fit and those of ARX; the effect of a measured window and of missing outputs."""
    lines = [["data", "model", "start", "RMSE", "NLPD", "in 95 %"]]
    rows = [row for row in results("calibration.json")["rows"] if row["method"] not in ("mean", "samples")]
    for name in dict.fromkeys(row["dataset"] for row in rows):
        own = [row for row in rows if row["dataset"] == name]
        for start in dict.fromkeys(row["start"] for row in own):
            for line in summarise([row for row in own if row["start"] == start], RECOGNITION_SCORES):
                scores = (spread(line.ranges["rmse"]), spread(line.ranges["nlpd"]))
                lines.append([name, line.model, start, *scores, f"{line.ranges['coverage95'].median:.3f}"])
    return lines


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
    lines = [["", "N", "cores", "revarb", "GPy", "ratio"]]
    for row in results("bench.json")["rows"]:
        ratio = f"{row['ratio']:.1f}" if "ratio" in row else ""
        size, cores = str(row["n"]), str(row["threads"])
        lines.append([row["name"], size, cores, seconds(row["seconds"]), seconds(row.get("peer_seconds")), ratio])
    return lines


def h200():
    """Times on a GPU."""
    return [["", "N", "time"]] + [
        [row["name"], str(row["n"]), seconds(row["seconds"])] for row in results("bench_h200.json")["rows"]
    ]


def demo():
    """Scores of `make demo`."""
    lines = [["model", "RMSE", "NLPD", "share in 50 % band", "in 90 %", "in 95 %"]]
    for row in results("demo.json")["rows"]:
        numbers = (row[name] for name in ("rmse", "nlpd", "coverage50", "coverage90", "coverage95"))
        lines.append([row["model"], *("–" if value is None else f"{value:.3f}" for value in numbers)])
    return lines


CALIBRATED = {"model": "REVARB, calibrated", "start": "cold", "method": "moments"}
"""What selects the rows of the calibrated model in results/calibration.json."""

OVERVIEW = {"drive": "Drive", "actuator": "Actuator", "artificial_recorded": "Artificial", "dryer": "Dryer (DaISy)"}
"""The paper's three records and one of DaISy, for the README."""


def median(rows, score, **where):
    """Median of a score over the rows whose columns have the given values."""
    return np.median([row[score] for row in rows if where.items() <= row.items()])


def overview():
    """REVARB, the best baseline, the training mean and the share in the calibrated 95 % band: medians over seeds."""
    lines = [["record", "REVARB", "best baseline", "training mean", "in the 95 % band"]]
    datasets = by_dataset(results("table1.json")["rows"])
    shares = results("calibration.json")["rows"]
    for name, label in OVERVIEW.items():
        rmse = {model: line.ranges["rmse"].median for model, line in mean_only_lines(datasets[name]).items()}
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
    "avatar": avatar,
    "bench": bench,
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
    "avatar": ("avatar.json",),
    "bench": ("bench.json",),
    "h200": ("bench_h200.json",),
}


def origin(source):
    """One line that says when, where and with which versions a results file was made."""
    meta = results(source)["meta"]
    versions = ", ".join(f"{name} {version}" for name, version in meta["versions"].items())
    place = f"{meta.get('device', meta['processor'])}, {meta['cores']} cores"
    busy = f" Load average in the minute before: {meta['load_before']:.1f}." if "load_before" in meta else ""
    return f"results/{source}: {meta['made'][:10]}, {place}, Python {meta['python']}, {versions}.{busy}"


def block(name):
    """A table as Markdown."""
    head, *rows = TABLES[name]()
    return "".join(f"| {' | '.join(cells)} |\n" for cells in [head, ["---"] * len(head), *rows])


def marked(text, name):
    """Return the text between `<!-- name -->` and `<!-- end -->`."""
    return re.search(rf"<!-- {name} -->\n(.*?)<!-- end -->", text, re.S).group(1)


def main():
    """Write the README's table."""
    readme = ROOT / "README.md"
    text = readme.read_text()
    updated = text.replace(marked(text, "overview"), block("overview"))
    if updated != text:
        readme.write_text(updated)


if __name__ == "__main__":
    main()
