"""Benchmarks: cases, measurements, checks, results files, tables and plots."""

from .case import Case, CaseResult, run_cases
from .results import read_results, results_document, to_dataframe, write_results

__all__ = [
    "Case",
    "CaseResult",
    "read_results",
    "results_document",
    "run_cases",
    "to_dataframe",
    "write_results",
]
