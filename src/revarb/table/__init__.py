"""Tables in files: named columns in (CSV, Parquet), named columns out (CSV), and how they were sampled."""

from revarb.table.sampling import common_interval, is_same_interval, sampling_interval
from revarb.table.table import Table
from revarb.table.writing import write_table

__all__ = ["Table", "common_interval", "is_same_interval", "sampling_interval", "write_table"]
