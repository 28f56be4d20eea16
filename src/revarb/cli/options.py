"""Options that several commands have."""

from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Option

RESUME = "; rerun with --resume to continue"  # the end of a message after Ctrl-C

InputColumns = Annotated[
    list[str] | None, Option("-u", "--input-column", metavar="COLUMN", help="Input column; repeat for several.")
]
OutputColumns = Annotated[
    list[str], Option("-y", "--output-column", metavar="COLUMN", help="Output column; repeat for several.")
]
FitOutputColumns = Annotated[
    list[str] | None,
    Option("-y", "--output-column", metavar="COLUMN", help="Output column; repeat for several. With --from none."),
]
Lags = Annotated[int | None, Option(help="State (or output) lags L; default: 10.")]
InputLags = Annotated[int | None, Option(help="Input lags L_u; default: 10.")]
InputDelay = Annotated[
    int | None,
    Option(help="Age of the newest input, in samples: 0 for feedthrough, k for a dead time of k samples; default: 1."),
]
Hidden = Annotated[int | None, Option(help="Hidden layers H of the RGP; default: 2.")]
LatentDim = Annotated[int | None, Option(help="Latent states per layer of the RGP; default: 1.")]
Config = Annotated[Path | None, Option(help="TOML file with fields of RGP and a table [recipe].")]
TimeStep = Annotated[float | None, Option(help="Sampling interval, for pictures; default: 1.")]
FitTimes = Annotated[
    str | None, Option("--time", metavar="COLUMN", help="Column of times; must be even, and gives dt.")
]
SplitGaps = Annotated[
    bool, Option("--split-gaps", help="Split files at gaps in their column of times into several records.")
]
SortTime = Annotated[bool, Option("--sort-time", help="Sort the rows of files by their column of times first.")]
ModelTimes = Annotated[
    str | None,
    Option("--time", metavar="COLUMN", help="Column of times, even and as in the fit; default: that of the fit."),
]
Decimal = Annotated[str | None, Option(metavar=".|,", help="Decimal sign of CSV files; default: found from the file.")]
Separator = Annotated[
    str | None, Option(metavar=", ; | tab space", help="Separator of CSV files; default: found from the file.")
]
SkipRows = Annotated[int, Option(help="Lines above the header of CSV files.", min=0)]
RecordFile = Annotated[
    Path, Argument(metavar="RECORD", help="CSV, Excel or Parquet file with the input and output columns.")
]
PathFile = Annotated[
    Path,
    Option("-o", "--out", help="Where to write the table: .csv, .json or .parquet; -: CSV to the standard output."),
]
ModelFile = Annotated[Path, Argument(metavar="MODEL", help="A model that `revarb fit` wrote.")]


def collect_given(**options: Any) -> dict[str, Any]:
    """The options that were given."""
    return {name: value for name, value in options.items() if value is not None}


def name_option(name: str, value: object = None) -> str:
    """An option as it is typed."""
    no = "no-" if name == "calibrate" and value is False else ""
    return f"--{no}{name.replace('_', '-')}"
