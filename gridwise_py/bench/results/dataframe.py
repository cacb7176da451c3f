"""Results as a table of pandas or polars."""

from __future__ import annotations

from typing import Any

from ...errors import ArgumentError, DatatypeError
from ..stats.series import Series
from .columns import QUANTITIES
from .model import Result, Results


def to_dataframe(document: Results, kind: str = "pandas") -> Any:
    """Return a document as a table with a row for each series of times of each case.

    Parameters
    ----------
    document : Results
        As `read_results` returns it.
    kind : {"pandas", "polars"}

    Returns
    -------
    pandas.DataFrame or polars.DataFrame
        Columns: the case, ``part`` (``"whole"`` or ``"kernel"``), ``series``, statistics in ns, rates, and checks. A
        case without times has one row.

    Raises
    ------
    ArgumentError
        If `kind` is another word, or the package is not installed.
    DatatypeError
        If `document` is none.
    """
    if not hasattr(document, "results"):
        raise DatatypeError(
            f"to_dataframe() takes the results of benchmarks, not {type(document).__name__}; of an Array make a table "
            f"with pandas.DataFrame({{'x': array.to_numpy()}}), and of groups with groups.to_pandas()"
        )
    if kind not in ("pandas", "polars"):
        raise ArgumentError(f"kind={kind!r} is unknown; give 'pandas' or 'polars'")
    rows = records_of(document)
    try:
        if kind == "pandas":
            import pandas

            return pandas.DataFrame(rows)
        import polars

        return polars.DataFrame(rows, infer_schema_length=None)
    except ImportError as error:
        raise ArgumentError(f"to_dataframe(kind={kind!r}) needs the package {kind}: pip install {kind}") from error


def records_of(document: Results) -> list[dict[str, Any]]:
    """Return the rows of `to_dataframe`."""
    return [row for result in document.results for row in _rows(result, document.device.adapter)]


_STATISTICS = (
    "time_ns", "ci_low_ns", "ci_high_ns", "min_ns", "q1_ns", "median_ns", "q3_ns", "mean_ns", "std_ns", "mad_ns",
    "count", "outliers",
)  # fmt: skip


def _rows(result: Result, adapter: str) -> list[dict[str, Any]]:
    named: list[tuple[str | None, str | None, Series | None]]
    named = [("whole", name, series) for name, series in result.whole.series.items()]
    named += [("kernel", kernel.name, kernel) for kernel in result.kernels]
    return [
        {
            "primitive": result.primitive,
            "n": result.n,
            "mode": result.mode.value,
            "process": result.process,
            "round": result.round,
            **result.case,
            "adapter": adapter,
            "part": part,
            "series": name,
            **{key: None if series is None else getattr(series.summary, key, None) for key in _STATISTICS},
            "invalid": 0 if series is None else sum(series.invalid.values()),
            **{one.name: one.value(result, {}) for one in QUANTITIES if one.in_records},
            "shader_checks": getattr(series, "shader_checks", result.shader_checks),
            "checked": result.checked,
            "correct": result.correct,
            "error": result.error,
        }
        for part, name, series in named or [(None, None, None)]
    ]
