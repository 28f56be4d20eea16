"""The page of a comparison: self-contained, escaped, and a real browser opens it without an error."""

import re

import matplotlib.image
import pytest

from revarb.baselines.arx import ARX
from revarb.baselines.training_mean import Mean
from revarb.data.series import Series
from revarb.evaluation.comparison import compare
from revarb.evaluation.comparison.lines import Line, SeedRange
from revarb.report.page import Section, comparison_page, comparison_section
from support import small
from support.browser import open_page
from support.small_rivals import Broken, Zero


@pytest.fixture(scope="module")
def page():
    record = small.record(outputs=2)
    odd = Series(record.u, record.y, input_names=["u"], output_names=["<b>&", "a$b$"])
    models = {"Mean": Mean(), "ARX": ARX(2, 2), "REVARB": small.spec(), "<script>alert(1)</script>": Broken()}
    result = compare(odd, odd, models, seeds=1)
    section = comparison_section("test.csv", result)
    return comparison_page("Which model?", result.verdict, [section], {"made": "now", "versions": {"jax": "0"}})


def test_the_page_is_self_contained(page):
    assert not re.findall(r"""(?:src|href)\s*=\s*["'](?!#)""", page)
    assert "@import" not in page and "<script" not in page
    addresses = set(re.findall(r"https?://[^\s\"'<)]+", page))
    # Names of XML namespaces inside the SVG, which are not fetched.
    assert all(re.search(r"w3\.org|purl\.org|creativecommons\.org", address) for address in addresses)


def test_names_are_escaped(page):
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page and "&lt;b&gt;&amp;" in page


def test_it_begins_with_the_verdict_and_has_every_model(page):
    body = page[page.index("<body>") :]
    assert body.index('class="opening"') < body.index("<table>") < body.index("<svg")
    for text in ("Mean", "ARX", "REVARB", "1 of 1 seed(s) failed: no luck today", "held-out pieces", "95 % band"):
        assert text in page
    assert page.count("<svg") == 5  # one per output, one of the bands, and the residuals of two models


def test_it_shows_the_reliability_of_the_bands_and_the_start(page):
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


def test_without_a_band_there_is_no_picture_of_bands():
    unbanded = compare(small.record(), small.record(1), {"Zero": Zero()}, seeds=1)
    assert not any("bands" in caption for caption in comparison_section("", unbanded).pictures)


def test_a_browser_opens_it_without_an_error(page, browser, tmp_path):
    file = tmp_path / "page.html"
    file.write_text(page)
    done = open_page(browser, file, tmp_path, "--dump-dom")
    assert done.returncode == 0
    assert "CONSOLE" not in done.stderr
    assert done.stdout.count("<svg") == 5 and "<h2>test.csv</h2>" in done.stdout


def test_a_browser_draws_it(page, browser, tmp_path):
    """The figures are rendered: the picture has red pixels and is not blank."""
    file, picture = tmp_path / "page.html", tmp_path / "page.png"
    file.write_text(page)
    open_page(browser, file, tmp_path, "--window-size=1000,1600", f"--screenshot={picture}")
    pixels = matplotlib.image.imread(picture)[..., :3]
    red = (pixels[..., 0] > 0.6) & (pixels[..., 1] < 0.4) & (pixels[..., 2] < 0.4)
    assert red.sum() > 300
    assert (pixels.min(axis=2) < 0.4).mean() > 0.003


def test_an_error_on_a_page_would_be_noticed(browser, tmp_path):
    file = tmp_path / "broken.html"
    file.write_text("<!doctype html><script>nothing.here()</script>")
    assert "CONSOLE" in open_page(browser, file, tmp_path, "--dump-dom").stderr


def test_several_sections_have_their_verdicts_and_the_papers_numbers():
    result = compare(small.record(), small.record(1), {"Mean": Mean()}, seeds=1)
    sections = [
        Section("one", "First verdict.", result.lines, {}, paper={"Mean": 0.1234}),
        Section("two", "Second verdict.", result.lines, {}, remarks=["A remark."]),
    ]
    page = comparison_page("Table", "Opening.", sections, {})
    assert page.count("First verdict.") == 2 and "0.1234" in page and "<p>A remark.</p>" in page


def test_the_row_that_the_verdict_names_stands_out_and_no_failed_one():
    scores = ("rmse", "nrmse", "nlpd", "coverage95", "fit_seconds", "simulate_seconds")

    def line(model, method, value):
        return Line(model, method, dict.fromkeys(scores, SeedRange(value, value, value)), 1)

    lines = [Line("A", "", {}, 1, ("why",)), line("B", "mean", 2.0), line("B", "moments", 1.0), line("C", "mean", 1.5)]
    page = comparison_page("", "", [Section("", "", lines, {})], {})
    assert re.findall(r"<tr class=best><td>(.)</td><td>(\w+)", page) == [("B", "moments")]
    assert "class=best" not in comparison_page("", "", [Section("", "", lines[:1], {})], {})


def test_more_outputs_than_pictures_are_mentioned():
    record = small.record(outputs=8)
    section = comparison_section("many", compare(record, record, {"Mean": Mean()}, seeds=1))
    *outputs, bands = section.pictures
    assert len(outputs) == 6 and all("2 further output(s)" in caption for caption in outputs)
    assert bands.startswith("Reliability of the bands.")


def test_several_outputs_have_a_table_of_their_own():
    record = small.record(outputs=2)
    comparison = compare(record, record, {"Mean": Mean(), "ARX": ARX(2, 2)}, seeds=1)
    section = comparison_section("two outputs", comparison)
    page = comparison_page("t", "o", [section], {})
    assert section.apart is not None and section.apart.columns == ["model", "method", "y0", "y1"]
    assert "by output: RMSE (NRMSE)" in page and "<th>RMSE</th>" not in page and "<th>NRMSE</th>" in page
    assert comparison_section("a benchmark", comparison, comparison.lines).apart is None
