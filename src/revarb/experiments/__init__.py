"""The paper's experiments: one module and one TOML file each, run by `revarb reproduce`."""

from revarb.experiments.calibration import load_calibration
from revarb.experiments.export import load_export
from revarb.experiments.family import load_family
from revarb.experiments.field import load_field
from revarb.experiments.mpc import load_mpc
from revarb.experiments.outliers import load_outliers
from revarb.experiments.recognition import load_recognition
from revarb.experiments.table1 import load_table1
from revarb.experiments.table2 import load_table2

__all__ = [
    "load_calibration",
    "load_export",
    "load_family",
    "load_field",
    "load_mpc",
    "load_outliers",
    "load_recognition",
    "load_table1",
    "load_table2",
]
