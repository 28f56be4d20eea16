"""Which model is best on your data: all of them on the same footing."""

from revarb.evaluation.comparison.comparison import Comparison, compare, default_models, run_comparison
from revarb.evaluation.comparison.lines import Line, Spread, plain_lines, summarise
from revarb.evaluation.comparison.runs import Run, Simulated, Spec, run_all
from revarb.evaluation.comparison.verdict import Score, is_linear_enough, ranking, verdict

__all__ = [
    "Comparison",
    "Line",
    "Run",
    "Score",
    "Simulated",
    "Spec",
    "Spread",
    "compare",
    "default_models",
    "is_linear_enough",
    "plain_lines",
    "ranking",
    "run_all",
    "run_comparison",
    "summarise",
    "verdict",
]
