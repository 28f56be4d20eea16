"""`python -m studies NAME`: run a study; without a name, list them."""

import argparse
import shlex
import sys
import warnings
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

STUDIES = {
    "table1": ("studies.paper.table1", "the paper's Table 1: system identification"),
    "table2": ("studies.paper.table2", "the paper's Table 2: human motion (long)"),
    "recognition": ("studies.paper.recognition", "networks instead of free latent means (long)"),
    "avatar": ("studies.paper.avatar", "the paper's avatar: motion by its speed; --live opens it in the browser"),
    "benchmarks": ("studies.benchmarks", "the chosen model on twelve records, beside baselines and published numbers"),
    "official": ("studies.official", "the same on the records of nonlinearbenchmark.org, by its protocol (long)"),
    "long": ("studies.long_records", "settings for long records, on two generated systems (long)"),
    "calibration": ("studies.calibration", "do bands hold what they say, calibrated and as fitted?"),
    "beyond": ("studies.beyond", "do bands and warnings hold where plants run beyond their training data?"),
    "outliers": ("studies.outliers", "outliers in the training outputs: Gaussian and Student-t noise (long)"),
    "state_space": ("studies.state_space", "GP state-space models beside REVARB (long)"),
    "export": ("studies.export", "exports to C, CasADi, ONNX and FMU: differences, sizes and times"),
    "mpc": ("studies.mpc", "model predictive control of a simulated reactor with learnt models"),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the study that is named; the exit status."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if not given:
        for name, (_, about) in STUDIES.items():
            print(f"python -m studies {name:12} {about}")
        return 0
    from revarb import InputError, RevarbError

    with warnings.catch_warnings():
        warnings.showwarning = lambda message, *_, **__: print(f"warning: {message}", file=sys.stderr)
        try:
            _run(given)
        except KeyboardInterrupt:
            print("interrupted: stopped before the end", file=sys.stderr)
            return 130
        except RevarbError as error:
            print(f"error: {' '.join(str(error).split())}", file=sys.stderr)
            return 2 if isinstance(error, InputError) else 1
    return 0


def _run(given: list[str]) -> None:
    parser = argparse.ArgumentParser("python -m studies", description=__doc__)
    parser.add_argument("name", choices=STUDIES)
    name = parser.parse_args(given[:1]).name
    module, about = STUDIES[name]
    study = import_module(module).STUDY
    options = make_parser(study, about).parse_args(given[1:])
    study(options.seeds, options.jobs).run(options, shlex.join(["python", "-m", "studies", *given]))


def make_parser(study, about: str = "") -> argparse.ArgumentParser:
    """The options that all studies share, and those of one study."""
    parser = argparse.ArgumentParser(f"python -m studies {study.name}", description=about)
    parser.add_argument("--seeds", type=_count, help=f"number of seeds (default {study.default_seeds})")
    parser.add_argument("--jobs", type=_count, default=1, help="number of processes")
    parser.add_argument("--only", action="append", metavar="RECORD", help="run this record; repeat for several")
    parser.add_argument("--rows", type=Path, help="keep every finished fit in this file, and continue from it")
    parser.add_argument("--json", type=Path, help="write all rows to this file")
    parser.add_argument("--page", type=Path, help="write an HTML page of all tables and figures")
    parser.add_argument("--pictures", type=Path, help="folder for figures")
    study.add_options(parser)
    return parser


def _count(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, received {number}")
    return number


if __name__ == "__main__":
    sys.exit(main())
