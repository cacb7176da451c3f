"""Benchmarks: cases, measurements, checks, results files, tables and reports."""

from .cases.case import Case
from .results.dataframe import to_dataframe
from .results.entries import results_document
from .results.reader import read_results
from .results.writer import write_results

__all__ = [
    "Case",
    "read_results",
    "results_document",
    "to_dataframe",
    "write_results",
]
