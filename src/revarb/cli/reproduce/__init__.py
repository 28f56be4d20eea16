"""`revarb reproduce`: the paper's experiments, one module each."""

# In the order in which `revarb reproduce --help` names them.
from revarb.cli.reproduce import table1, table2, recognition, avatar, calibration, field, outliers, export, mpc, family  # noqa: I001
from revarb.cli.reproduce.options import experiments_app

__all__ = [
    "avatar",
    "calibration",
    "experiments_app",
    "export",
    "family",
    "field",
    "mpc",
    "outliers",
    "recognition",
    "table1",
    "table2",
]
