"""`revarb check`."""

import matplotlib.image
import pytest

import revarb
from support import small
from support.command_line import run, with_cells


@pytest.fixture
def model(folder):
    record = small.record(samples=200)
    fitted = revarb.ARX(2, 2).fit(revarb.Series(record.u, record.y, 1.0, ["valve"], ["pressure"]))
    fitted.save("arx.rgp")
    return fitted


def test_it_says_what_is_left_and_draws_it(capsys, folder, model):
    code, out, err = run(capsys, "check", "arx.rgp", "train.csv", "-o", "picture.png", "--max-lag", "8")
    record = small.record(0)
    expected = model.residuals(revarb.Series(record.u, record.y, 1.0, ["valve"], ["pressure"]), 8)
    (row,) = expected.summary().tables[0].rows
    assert code == 0 and err == "" and out.splitlines()[0] == expected.sentence
    assert "train.csv\nresiduals one step ahead" in out and "wrote picture.png" in out
    assert all(text in " ".join(out.split()) for text in row)
    assert matplotlib.image.imread("picture.png").shape[1] > 800


def test_gaps_are_left_out_and_the_picture_has_a_default_name(capsys, folder, model):
    with_cells(folder, "gaps.csv", "NaN", range(20, 30))
    code, out, _ = run(capsys, "check", "arx.rgp", "gaps.csv")
    used = 60 - model.skip - 10 - 1  # without the first rows, the gap, and the value after it
    assert code == 0 and f"pressure {used}" in " ".join(out.split()) and (folder / "check.png").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("mean.rgp", "test.csv"), "mean.rgp contains a FittedMean, which cannot predict and has no residuals"),
        (("no.rgp", "test.csv"), "cannot read the model file no.rgp"),
        (("arx.rgp", "no.csv"), "cannot read no.csv"),
        (("arx.rgp", "test.csv", "-o", "check.svg"), "the picture is a PNG file; choose a name that ends in .png"),
        (("arx.rgp", "test.csv", "-o", "no/check.png"), "the folder no does not exist"),
        (("arx.rgp", "table.png", "-o", "table.png"), "-o table.png would overwrite a file that is read"),
        (("arx.rgp", "test.csv", "--max-lag", "0"), "max_lag (at most half of the rows that count) must be a"),
        (("arx.rgp", "short.csv"), "residual analysis takes at least 20: pass a longer record"),
    ],
)
def test_a_mistake_is_one_line_and_status_2(capsys, folder, model, arguments, message):
    revarb.Mean().fit(small.record()).save("mean.rgp")
    (folder / "short.csv").write_text("\n".join((folder / "test.csv").read_text().splitlines()[:15]))
    code, out, err = run(capsys, "check", *arguments)
    assert code == 2 and message in err and err.startswith("error: ") and err.count("\n") == 1
    assert out == "" and not (folder / "check.png").exists()
