"""The page of a comparison and its tables: self-contained, escaped, and a browser opens it without an error."""

import re

import matplotlib.image
import pytest

from revarb.analysis.comparison import compare
from revarb.analysis.report import comparison_page, output_grid
from revarb.baselines import ARX, Mean
from revarb.data.series import Series
from support import small
from support.browser import open_page
from support.small_rivals import Broken, Zero


@pytest.fixture(scope="module")
def page():
    record = small.record(outputs=2)
    odd = Series(record.u, record.y, input_names=["u"], output_names=["<b>&", "a$b$"])
    models = {"Mean": Mean(), "ARX": ARX(2, 2), "REVARB": small.spec(), "<script>alert(1)</script>": Broken()}
    result = compare(odd, odd, models, seeds=1)
    return comparison_page("Which model?", "test.csv", result, {"made": "now", "versions": {"jax": "0"}})


def test_the_page_is_self_contained_and_escaped(page):
    assert not re.findall(r"""(?:src|href)\s*=\s*["'](?!#)""", page)
    assert "@import" not in page and "<script" not in page
    addresses = set(re.findall(r"https?://[^\s\"'<)]+", page))
    # Names of XML namespaces inside the SVG, which are not fetched.
    assert all(re.search(r"w3\.org|purl\.org|creativecommons\.org", address) for address in addresses)

    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page and "&lt;b&gt;&amp;" in page


def test_it_begins_with_the_verdict_and_shows_every_model_and_its_bands(page):
    body = page[page.index("<body>") :]
    assert body.index('class="opening"') < body.index("<table>") < body.index("<svg")
    for text in ("1 of 1 seed(s) failed: no luck today", "held-out parts", "95 % band"):
        assert text in page
    assert page.count("<svg") == 5  # one per output, one of the bands, and the residuals of two models
    bands = page[: page.index("<figcaption>Reliability")]
    bands = bands[bands.rindex("<svg") :]
    for text in ("ARX (residuals)", "REVARB (moments)", "nominal level of the band", "predicted std"):
        assert text in bands
    assert "All numbers are from a cold start." in page
    assert len(re.findall(r"<figcaption>[^<]* from a cold start", page)) == 3


def test_it_shows_the_residuals_of_the_models_that_predict(page):
    captions = re.findall(r"<figcaption>(Residuals of [^<]*)</figcaption>", page)
    assert [caption.split(",")[0] for caption in captions] == ["Residuals of ARX", "Residuals of REVARB"]
    assert all("one step ahead along the measured record, first seed: " in caption for caption in captions)
    assert ["How to read it" in caption for caption in captions] == [True, False]
    assert "autocorrelation" in page[page.rindex("<svg") :]


def test_a_browser_opens_and_draws_it_without_an_error(page, browser, tmp_path):
    """The figures are rendered: the picture has red pixels and is not blank."""
    file, picture = tmp_path / "page.html", tmp_path / "page.png"
    file.write_text(page)
    done = open_page(browser, file, tmp_path, "--dump-dom")
    assert done.returncode == 0 and "CONSOLE" not in done.stderr
    assert done.stdout.count("<svg") == 5 and "<h2>test.csv</h2>" in done.stdout
    open_page(browser, file, tmp_path, "--window-size=1000,1600", f"--screenshot={picture}")
    pixels = matplotlib.image.imread(picture)[..., :3]
    red = (pixels[..., 0] > 0.6) & (pixels[..., 1] < 0.4) & (pixels[..., 2] < 0.4)
    assert red.sum() > 300 and (pixels.min(axis=2) < 0.4).mean() > 0.003


def test_an_error_on_a_page_would_be_noticed(browser, tmp_path):
    file = tmp_path / "broken.html"
    file.write_text("<!doctype html><script>nothing.here()</script>")
    assert "CONSOLE" in open_page(browser, file, tmp_path, "--dump-dom").stderr


def test_the_row_that_the_verdict_names_stands_out_and_no_failed_one():
    models = {"bad": Broken(), "Mean": Mean(), "REVARB": small.spec(hidden=1)}
    page = comparison_page("", "", compare(small.record(), small.record(1), models, seeds=1), {})
    assert re.findall(r"<tr class=best><td>(\w+)</td><td>(\w+)", page) == [("REVARB", "moments")]
    failed = comparison_page("", "", compare(small.record(), small.record(1), {"bad": Broken()}, seeds=1), {})
    assert "class=best" not in failed and "no luck today" in failed and "<svg" not in failed


def test_without_a_band_there_is_no_picture_of_bands():
    unbanded = compare(small.record(), [small.record(1), small.record(2)], {"Zero": Zero()}, seeds=1)
    captions = re.findall(r"<figcaption>([^<]*)", comparison_page("", "", unbanded, {}))
    assert len(captions) == 1 and "from a cold start (the first of 2 test records)" in captions[0]


def test_several_outputs_have_a_table_of_their_own_and_a_few_pictures():
    record = small.record(outputs=8)
    page = comparison_page("", "", compare(record, record, {"Mean": Mean()}, seeds=1), {})
    *outputs, bands = re.findall(r"<figcaption>([^<]*)", page)
    assert len(outputs) == 6 and all("2 further output(s)" in caption for caption in outputs)
    assert bands.startswith("Reliability of the bands.")
    assert "by output: RMSE (NRMSE)" in page and "<th>RMSE</th>" not in page and "<th>NRMSE</th>" in page


def test_a_comparison_by_output_has_medians_over_the_seeds():
    rows = [
        {"model": "ARX", "method": "residuals", "outputs": {"flow": {"rmse": rmse, "nrmse": 0.5}}}
        for rmse in (0.1, 0.3, 0.9)
    ]
    grid = output_grid([*rows, {"model": "LSTM", "method": ""}])
    assert grid.columns == ["model", "method", "flow"] and grid.rows == [["ARX", "residuals", "0.300 (0.500)"]]
    assert output_grid([{"model": "ARX", "method": "residuals"}]) is None
