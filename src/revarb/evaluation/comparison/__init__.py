"""Comparison of models under equal conditions, over seeds, with a verdict."""

from revarb.evaluation.comparison.comparison import Comparison, compare, default_models, fixed_models, run_comparison
from revarb.evaluation.comparison.lines import Line, SeedRange, default_lines, mean_only_lines, summarise
from revarb.evaluation.comparison.runs import Run, Simulated, run_all
from revarb.evaluation.comparison.verdict import Score, is_linear_enough, ranking, state_verdict

__all__ = [
    "Comparison",
    "Line",
    "Run",
    "Score",
    "SeedRange",
    "Simulated",
    "compare",
    "default_lines",
    "default_models",
    "fixed_models",
    "is_linear_enough",
    "mean_only_lines",
    "ranking",
    "run_all",
    "run_comparison",
    "state_verdict",
    "summarise",
]
