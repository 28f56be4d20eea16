"""Tables in files: named columns in (CSV, Parquet), named columns out (CSV), and their sampling intervals."""

from revarb.data.tables.records import read_records
from revarb.data.tables.sampling import check_interval, common_interval, is_same_interval, sampling_interval
from revarb.data.tables.table import Table
from revarb.data.tables.writing import write_table

__all__ = [
    "Table",
    "check_interval",
    "common_interval",
    "is_same_interval",
    "read_records",
    "sampling_interval",
    "write_table",
]
