"""The tables of the README, made from results/*.json. `python tests/readme_tables.py` writes them into it."""

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
    return json.loads((ROOT / "results" / name).read_text())


def spread(values):
    low, middle, high = (f"{value:.3f}" for value in values)
    return middle if low == high else f"{middle} ({low} – {high})"


def by_dataset(rows, scores=SCORES):
    names = dict.fromkeys(row["dataset"] for row in rows)
    return {name: summarise([row for row in rows if row["dataset"] == name], scores) for name in names}


def table1():
    """RMSE of the mean-only runs, the paper's below ours."""
    paper = {benchmark.name: benchmark.paper for benchmark in load_table1().benchmarks}
    lines = [["data", "", *MODELS]]
    for name, these in by_dataset(results("table1.json")["rows"]).items():
        plain = mean_only_lines(these)
        lines.append([name, "ours", *(spread(plain[model].ranges["rmse"]) for model in MODELS)])
        if paper[name]:
            lines.append(["", "paper", *(f"{paper[name][m]:.4f}" if m in paper[name] else "–" for m in MODELS)])
    return lines


def bands():
    """How the models with an uncertainty of their own do with it."""
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
    """The recognition model by its starts, members and mixture, mean-only; the networks alone beside it."""
    lines = [["data", "model", "RMSE, mean-only", "RMSE, moments", "NLPD", "networks alone"]]
    for name, these in by_dataset(results("recognition.json")["rows"], RECOGNITION_SCORES).items():
        methods = {(line.model, line.method): line.spread for line in these}
        for model in dict.fromkeys(line.model for line in these):
            plain, moments, alone = (methods.get((model, method)) for method in ("mean", "moments", "network"))
            plain = methods[model, "residuals"] if plain is None else plain
            band = [spread(moments[score]) if moments else "–" for score in ("rmse", "nlpd")]
            lines.append([name, model, spread(plain["rmse"]), *band, spread(alone["rmse"]) if alone else "–"])
    return lines


def calibration():
    """Calibrated bands beside those of the fit and of ARX; what a window and missing outputs change."""
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
    """What the figures say of every signal, a line per phase."""
    lines = [["signal", "out of range", "jump", "gait", "hip, Hz", "in training, Hz", "settled after, s"]]
    for row in results("avatar.json")["rows"]:
        for number, phase in enumerate(row["phases"]):
            common = [row["signal"], f"{100 * row['range_excess']:.0f} %", f"{row['jump_ratio']:.2f}"]
            found = (f"{phase[name]:.2f}" for name in ("frequency", "training_frequency", "settled_after"))
            lines.append([*(common if number == 0 else [""] * 3), phase["gait"], *found])
    return lines


def seconds(value):
    if value is None:
        return ""
    return f"{1e3 * value:.1f} ms" if value < 1.0 else f"{value:.1f} s"


def bench():
    lines = [["", "N", "cores", "revarb", "GPy", "ratio"]]
    for row in results("bench.json")["rows"]:
        ratio = f"{row['ratio']:.1f}" if "ratio" in row else ""
        size, cores = str(row["n"]), str(row["threads"])
        lines.append([row["name"], size, cores, seconds(row["seconds"]), seconds(row.get("peer_seconds")), ratio])
    return lines


def h200():
    return [["", "N", "time"]] + [
        [row["name"], str(row["n"]), seconds(row["seconds"])] for row in results("bench_h200.json")["rows"]
    ]


TABLES = {
    "table1": table1,
    "bands": bands,
    "table2": table2,
    "recognition": recognition,
    "calibration": calibration,
    "avatar": avatar,
    "bench": bench,
    "h200": h200,
}


def block(name):
    """A table as Markdown."""
    head, *rows = TABLES[name]()
    return "".join(f"| {' | '.join(cells)} |\n" for cells in [head, ["---"] * len(head), *rows])


def marked(text, name):
    """What stands between `<!-- name -->` and `<!-- end -->`."""
    return re.search(rf"<!-- {name} -->\n(.*?)<!-- end -->", text, re.S).group(1)


def main():
    readme = ROOT / "README.md"
    text = readme.read_text()
    for name in TABLES:
        text = text.replace(f"<!-- {name} -->\n{marked(text, name)}", f"<!-- {name} -->\n{block(name)}")
    readme.write_text(text)


if __name__ == "__main__":
    main()
