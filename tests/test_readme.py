"""What the README says is what the results files say, and its Python runs."""

import os
import re
from html import escape
from pathlib import Path

import numpy as np
import pytest

import revarb
from readme_tables import RECOGNITION_SCORES, TABLES, block, by_dataset, marked, results
from revarb.evaluation.comparison import state_verdict
from revarb.evaluation.comparison.lines import mean_only_lines, summarise
from revarb.evaluation.comparison.verdict import ranking
from revarb.experiments.table1 import headline, load_table1
from revarb.experiments.table2 import MOTION_COLUMNS, load_table2, variant_name

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()


@pytest.mark.parametrize("name", TABLES)
def test_a_table_in_the_readme_comes_from_the_results(name):
    assert marked(README, name) == block(name), "run `python tests/readme_tables.py`"


def test_the_demo_in_the_readme_comes_from_the_results():
    rows = {row["model"]: row for row in results("demo.json")["rows"]}
    claim = re.search(
        r"RMSE ([\d.]+), where predicting the\ntraining mean gives ([\d.]+), and (\d+) %", README
    ).groups()
    moments, mean = rows["revarb, moments"], rows["training mean"]
    assert claim == (f"{moments['rmse']:.2f}", f"{mean['rmse']:.2f}", f"{100 * moments['coverage95']:.0f}")


def test_the_avatar_walks_and_runs_as_it_should():
    """Angles in the training range ± 15 %, no jump above 1.5 of training's, the gaits' frequencies, settled in 2 s."""
    step = next(row for row in results("avatar.json")["rows"] if row["signal"] == "step")
    assert step["seconds"] == pytest.approx(60.0) and step["range_excess"] < 0.15 and step["jump_ratio"] < 1.5
    assert [phase["gait"] for phase in step["phases"]] == ["walk", "run", "walk"]
    for phase in step["phases"]:
        assert phase["frequency"] == pytest.approx(phase["training_frequency"], rel=0.15)
        assert phase["settled_after"] < 2.0
    prep = next(row for row in results("bench.json")["rows"] if row["part"] == "frames")
    assert prep["threads"] == 1 and prep["seconds"] < 0.010


def test_the_calibrated_bands_are_honest():
    """Coverage, likelihood, no harm to the error, a measured window, missing outputs: medians over the seeds."""
    rows = results("calibration.json")["rows"]

    def median(score, **where):
        return float(np.median([row[score] for row in rows if where.items() <= row.items()]))

    def calibrated(score, dataset, model="REVARB, calibrated"):
        return median(score, dataset=dataset, model=model, start="cold", method="moments")

    for dataset in ("drive", "actuator", "dryer", "artificial_recorded"):
        assert 0.90 <= calibrated("coverage95", dataset) <= 0.99
    assert calibrated("nlpd", "drive") <= 0.15 and calibrated("nlpd", "actuator") <= 0.50
    arx = median("coverage95", dataset="gas_furnace", model="ARX, calibrated")
    assert calibrated("coverage95", "gas_furnace") >= arx
    for dataset in dict.fromkeys(row["dataset"] for row in rows):
        assert calibrated("rmse", dataset) <= 1.02 * calibrated("rmse", dataset, "REVARB, as fitted")
    for dataset in ("drive", "actuator"):
        ahead = {"dataset": dataset, "model": "REVARB, next 20 samples"}
        window, cold = (median("rmse", start=start, **ahead) for start in ("window of 20 samples", "cold"))
        assert window <= 0.7 * cold
    for method, complete in (("moments", "REVARB, as fitted"), ("mean", "REVARB, calibrated")):
        missing = median("rmse", model="REVARB, 20% of y missing", method=method)
        assert missing <= 1.15 * median("rmse", dataset="drive", model=complete, method=method, start="cold")


def test_what_the_readme_says_of_windows_and_gaps_is_what_was_found():
    rows = results("calibration.json")["rows"]

    def median(**where):
        return float(np.median([row["rmse"] for row in rows if where.items() <= row.items()]))

    def gain(dataset, start):
        ahead = {"dataset": dataset, "model": "REVARB, next 20 samples"}
        return round(100 * (1 - median(start="window of 20 samples", **ahead) / median(start=start, **ahead)))

    gap, drive = "REVARB, 20% of y missing", {"dataset": "drive", "start": "cold"}
    worse = [
        round(100 * (median(model=gap, method=method) / median(model=complete, method=method, **drive) - 1))
        for method, complete in (("moments", "REVARB, as fitted"), ("mean", "REVARB, calibrated"))
    ]
    for sentence in (
        f"by {gain('drive', 'cold')} % on Drive and {gain('actuator', 'cold')} % on Actuator",
        f"*long before*, by {gain('drive', 'cold, long before')} % and {gain('actuator', 'cold, long before')} %",
        f"the error is {worse[0]} % higher by moments, {worse[1]} % by the mean-only run",
    ):
        assert sentence in README


def test_an_evaluation_is_no_slower_than_the_peer():
    ratios = [row["ratio"] for row in results("bench.json")["rows"] if "ratio" in row]
    assert len(ratios) == 8 and min(ratios) >= 1.0


def test_a_results_file_says_where_it_was_made():
    for name in ("table1.json", "bench.json", "bench_h200.json", "demo.json"):
        meta = results(name)["meta"]
        assert {"made", "python", "versions", "processor", "cores"} <= set(meta)


def test_the_five_lines_of_python_run(recorded_data, capsys):
    """Also the golden number of recipe R0 on Drive: with seed 0 the paper's 0.2491 comes from the mean-only run."""
    code = re.search(r"```python\n(.*?)```", README, re.S).group(1)
    assert len(code.strip().splitlines()) == 5
    scope = {}
    exec(code, scope)
    assert capsys.readouterr().out.startswith("Scores(rmse=0.2")
    model, path, test = scope["model"], scope["path"], scope["split"].test
    assert revarb.scores(model.simulate(test.u, method="mean"), test.y).rmse < 0.27
    result = revarb.scores(path, test.y)
    # Another processor rounds otherwise, and a fit of Drive then may end in its other solution: near, not equal.
    rmse, percent = re.search(r"# rmse (\d\.\d+), (\d+) % of the speeds", code).groups()
    assert result.rmse == pytest.approx(float(rmse), abs=0.035)
    assert 100 * result.coverage95 == pytest.approx(float(percent), abs=3)
    assert result.rmse < 0.31 and result.nlpd < 0.25 and 0.90 <= result.coverage95 <= 0.99


def test_every_link_to_a_file_has_its_file():
    for document in ("README.md", "CONTRIBUTING.md", "NOTATION.md", "docs/derivation.md", "docs/decisions.md"):
        text = (ROOT / document).read_text()
        for target in re.findall(r"\]\(([^)#]+)\)", text):
            if not target.startswith("http"):
                assert os.path.exists((ROOT / document).parent / target), (document, target)  # noqa: PTH110


def test_the_committed_results_reach_the_paper():
    """Medians over the seeds, within 5 % of the paper's 0.2491, 0.3680 and 0.4513, and bands that hold."""
    lines = {
        (name, line.method): line.spread
        for name, these in by_dataset(results("table1.json")["rows"]).items()
        for line in these
        if line.model == "REVARB"
    }

    def median(dataset, method, score):
        return lines[dataset, method][score].median

    assert median("drive", "mean", "rmse") <= 0.26
    assert median("actuator", "mean", "rmse") <= 0.38
    assert median("artificial", "mean", "rmse") <= 0.47
    assert median("drive", "moments", "rmse") <= 0.28 and median("drive", "moments", "nlpd") <= 0.20
    assert median("actuator", "moments", "rmse") <= 0.37 and median("actuator", "moments", "nlpd") <= 0.55
    for dataset in ("drive", "actuator"):
        assert 0.90 <= median(dataset, "moments", "coverage95") <= 0.99


def test_revarb_is_first_where_it_is_in_the_paper_and_a_linear_model_is_enough_where_it_is_not():
    lines = by_dataset(results("table1.json")["rows"])
    for name in ("artificial", "drive", "actuator"):
        assert next(iter(ranking(lines[name], "rmse"))) == "REVARB"
    page = (ROOT / "docs" / "table1.html").read_text()
    sentence = headline(load_table1(), results("table1.json")["rows"])
    assert sentence.endswith("A linear model does as well on dryer and gas_furnace.") and escape(sentence) in page
    for name in ("dryer", "gas_furnace"):
        assert state_verdict(lines[name]).startswith("A linear model is enough here")
        assert f"{name} (not in the paper): {escape(state_verdict(lines[name]))}" in page


def test_the_committed_motions_reach_the_paper():
    lines = summarise(results("table2.json")["rows"], MOTION_COLUMNS)
    errors = {}
    for line in lines:
        errors.setdefault(line.model, []).append(line.ranges["motions_57"].median)
    shown = load_table2().shown
    best = min((line for line in lines if line.model == shown), key=lambda line: line.ranges["motions_57"].median)
    assert best.ranges["motions_57"].median <= 0.78 and best.ranges["pooled_57"].median <= 0.68
    rivals = min(*errors["Mean"], *errors["MLP-NARX"], *errors["GP-NARX"])
    assert all(max(errors[variant_name(variant)]) < rivals for variant in load_table2().variants)
    assert f"RMSE {min(errors[shown]):.3f}" in (ROOT / "docs" / "table2.html").read_text()


@pytest.mark.parametrize("dataset", ["drive", "actuator"])
def test_the_committed_networks_do_as_well_as_the_free_form(dataset):
    lines = by_dataset(results("recognition.json")["rows"], RECOGNITION_SCORES)[dataset]
    rmse = {(line.model, line.method): line.ranges["rmse"] for line in lines}
    networks, free = rmse["networks, output-error", "mean"], rmse["free form", "mean"]
    assert networks.high < rmse["Mean", "residuals"].median
    assert networks.median <= 1.1 * free.median
    assert rmse["networks, output-error: mixture", "mean"].median <= networks.median


def test_a_rival_far_from_the_papers_has_a_sentence():
    """A quarter better or worse than the paper's number needs a word, and a word needs such a number."""
    lines = by_dataset(results("table1.json")["rows"])
    for benchmark in load_table1().benchmarks:
        plain = mean_only_lines(lines[benchmark.name])
        ratios = {model: plain[model].ranges["rmse"].median / number for model, number in benchmark.paper.items()}
        far = {model for model, ratio in ratios.items() if not 0.8 <= ratio <= 1.25}
        assert far == set(benchmark.remarks), benchmark.name
