"""A folder with small CSV files, and the titles and legends of the figures of a command."""

import pytest


@pytest.fixture
def folder(in_empty_folder):
    """The current folder: train.csv, more.csv, test.csv and a quick configuration."""
    from support import small
    from support.command_line import CONFIG, write_record

    for name, seed in (("train.csv", 0), ("more.csv", 1), ("test.csv", 2)):
        write_record(name, small.record(seed))
    (in_empty_folder / "rgp.toml").write_text(CONFIG)
    return in_empty_folder


@pytest.fixture
def arx(folder):
    """A linear model of the first records, also in the file arx.rgp."""
    import revarb
    from support import small

    record = small.record(samples=200)
    model = revarb.ARX(2, 2).fit(revarb.Series(record.u, record.y, 1.0, ["valve"], ["pressure"]))
    model.save("arx.rgp")
    return model


@pytest.fixture
def drawn(monkeypatch):
    """The titles and legends of the figures that a command saves; the files are empty."""
    from matplotlib.figure import Figure

    texts = []

    def note(figure, *arguments, **options):
        legend = [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
        texts.append((figure.get_suptitle(), legend))

    monkeypatch.setattr(Figure, "savefig", note)
    return texts
