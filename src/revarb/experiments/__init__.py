"""The paper's experiments: one small TOML per table, run by `revarb reproduce`."""

from revarb.experiments.table1 import (
    PROTOCOL,
    Benchmark,
    Outcome,
    Table1,
    headline,
    load_table1,
    run_table1,
    shipped_text,
)

__all__ = ["PROTOCOL", "Benchmark", "Outcome", "Table1", "headline", "load_table1", "run_table1", "shipped_text"]
