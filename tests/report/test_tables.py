from revarb.evaluation.scoring import Scores
from revarb.report.tables import output_grid, score_table


def test_outputs_with_different_units_are_not_summed_up():
    each = {"temperature": Scores(3.0, 0.1, 1.0, 0.5, 0.9, 0.95, 2), "flow": Scores(0.2, 0.3, 0.0, 0.5, 0.9, 0.95, 2)}
    both = Scores(2.0, 0.2, 0.5, 0.5, 0.9, 0.95, 2, each)
    table = score_table({"moments": both}, "simulation")
    names, errors = (list(table.columns[number].cells) for number in (0, 1))
    assert names == ["moments, temperature", "moments, flow", "moments, all"] and errors == ["3.000", "0.200", "–"]


def test_a_comparison_by_output_has_medians_over_the_seeds():
    rows = [
        {"model": "ARX", "method": "residuals", "outputs": {"flow": {"rmse": rmse, "nrmse": 0.5}}}
        for rmse in (0.1, 0.3, 0.9)
    ]
    grid = output_grid([*rows, {"model": "LSTM", "method": ""}])
    assert grid.columns == ["model", "method", "flow"] and grid.rows == [["ARX", "residuals", "0.300 (0.500)"]]
    assert output_grid([{"model": "ARX", "method": "residuals"}]) is None
