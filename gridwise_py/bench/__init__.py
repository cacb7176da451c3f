"""Benchmarks: cases, measurements, checks, results files, tables and plots."""

from .case import Case
from .results import results_document, to_dataframe, write_results
from .results_reader import read_results

__all__ = [
    "Case",
    "read_results",
    "results_document",
    "to_dataframe",
    "write_results",
]
