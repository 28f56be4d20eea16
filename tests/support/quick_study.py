"""All fits of a study, with quick models."""

from studies.study import RowsFile, check_rows, run_fits


def run_quick(study):
    """Rows, which are checked, and what is drawn."""
    rows, drawn = run_fits(study, study.list_fits(), RowsFile())
    check_rows(study, rows)
    return rows, drawn
