"""Tables in files: named columns in (CSV, Parquet) and out (CSV, JSON, Parquet), and their sampling intervals."""

from revarb.data.tables.csv_form import CsvForm
from revarb.data.tables.records import read_records
from revarb.data.tables.sampling import check_interval, common_interval
from revarb.data.tables.table import Table
from revarb.data.tables.writing import check_table_file, encode_csv, write_csv, write_table

__all__ = [
    "CsvForm",
    "Table",
    "check_interval",
    "check_table_file",
    "common_interval",
    "encode_csv",
    "read_records",
    "write_csv",
    "write_table",
]
