"""Small CSV and Parquet files."""

import pyarrow as pa
import pyarrow.parquet as pq

from revarb.data.csv_file import CsvForm
from revarb.data.table_file import Table


def csv_table(tmp_path, text, encoding="utf-8", **form):
    """A CSV file with this text, opened as `form` says."""
    path = tmp_path / "t.csv"
    path.write_bytes(text.encode(encoding))
    return Table(path, CsvForm(**form))


def times_table(tmp_path, times):
    """A CSV file with these times, a text where spaces separate them, or a list."""
    several = times.split() if isinstance(times, str) else times
    return csv_table(tmp_path, "t,y\n" + "\n".join(f"{each},1" for each in several))


def parquet_table(tmp_path, columns, name="t.parquet"):
    """A Parquet file with these columns, opened."""
    pq.write_table(columns if isinstance(columns, pa.Table) else pa.table(columns), tmp_path / name)
    return Table(tmp_path / name)
