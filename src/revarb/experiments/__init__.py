"""The paper's experiments: one small TOML per table, run by `revarb reproduce`."""

from revarb.experiments import avatar
from revarb.experiments.calibration import CalibrationTable, load_calibration, run_calibration
from revarb.experiments.recognition import RecognitionTable, load_recognition, run_recognition
from revarb.experiments.table1 import (
    PROTOCOL,
    Benchmark,
    Outcome,
    Table1,
    state_headline,
    load_table1,
    run_table1,
)
from revarb.experiments.table2 import (
    MOTION_COLUMNS,
    MOTION_PROTOCOL,
    MotionRun,
    MotionScores,
    Table2,
    load_table2,
    score_motions,
    run_table2,
    name_variant,
)

__all__ = [
    "MOTION_COLUMNS",
    "MOTION_PROTOCOL",
    "PROTOCOL",
    "Benchmark",
    "CalibrationTable",
    "MotionRun",
    "MotionScores",
    "Outcome",
    "RecognitionTable",
    "Table1",
    "Table2",
    "avatar",
    "state_headline",
    "load_calibration",
    "load_recognition",
    "load_table1",
    "load_table2",
    "score_motions",
    "run_calibration",
    "run_recognition",
    "run_table1",
    "run_table2",
    "name_variant",
]
