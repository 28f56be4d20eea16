"""Which model is best on your data: all of them on the same footing."""

from revarb.comparison.compare import Comparison, Line, Spread, compare, default_models, run_comparison, summarise
from revarb.comparison.runs import Spec
from revarb.comparison.verdict import plain_lines, verdict

__all__ = [
    "Comparison",
    "Line",
    "Spec",
    "Spread",
    "compare",
    "default_models",
    "plain_lines",
    "run_comparison",
    "summarise",
    "verdict",
]
