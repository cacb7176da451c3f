"""Texts and tables of a report: summary, warnings, device cards, results, verdicts."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

from ...display.quantities import format_each, format_number, format_percent, format_time
from ...display.table import Cell, Table
from ...display.terminal import clean
from ..analysis.compare import Comparison
from ..analysis.lines import gpu_text, timed_text
from ..analysis.remarks import Remark, group_alike, remarks
from ..cases.names import n_text
from ..results.columns import QUANTITIES, Quantity, Shares, shown
from ..results.model import CalibrationData, Host, Kernel, Result, Results
from ..results.shares import copy_shares
from ..stats.series import Series
from .comparison import comparison_table as comparison_rows
from .roofline import PEAKS

# A longer table is slow to sort, and too long to read.
_MOST_ROWS = 2_000
_MOST_CASES = 40
# Columns that stay visible while the others scroll sideways, and their position.
_STAYING = {"case": "stays first", "n": "stays second"}

Row: TypeAlias = list[Cell]
#: Its columns and rows as JSON data.
PageTable: TypeAlias = dict[str, Any]


def page_table(
    columns: Iterable[str], numeric: Iterable[str], rows: Sequence[Row], label: str, left_out: list[str]
) -> PageTable:
    """Return a table as JSON data for the page; what is too long is left out, with a note in `left_out`."""
    if len(rows) > _MOST_ROWS:
        left_out.append(f"{label}: {len(rows) - _MOST_ROWS:,} of {len(rows):,} rows.")
    numeric = set(numeric)
    return {
        "columns": [
            {"title": title, "kind": " ".join([*["number"] * (title in numeric), _STAYING.get(title, "")]).strip()}
            for title in columns
        ],
        "rows": [[_in_json(cell) for cell in row] for row in rows[:_MOST_ROWS]],
    }


def _in_json(cell: Cell) -> dict[str, Any]:
    return {"text": clean(cell.text), "sort": cell.value, "kind": cell.kind}


# ---- summary


def headlines(documents: Sequence[Results], names: Sequence[str], left_out: list[str]) -> PageTable:
    """Return the summary table: for each file and primitive, the fastest case at the largest n.

    Parameters
    ----------
    documents : sequence of Results
        Pooled.
    names : sequence of str
    left_out : list of str
        Takes what was left out.
    """
    rows: dict[str, list[Row]] = {}
    for document, name in zip(documents, names, strict=True):
        shares = copy_shares(document)
        for primitive, result in _fastest(document.results).items():
            rates, share, timed = result.rates, shares[result.key], result.timed
            # Rows of one primitive are adjacent.
            rows.setdefault(primitive, []).append([
                Cell(result.name), Cell(n_text(result.n), result.n or None), Cell(name),
                Cell(timed_text(document, result), None if timed is None else timed.time_ns),
                Cell(format_number(rates.gbytes_per_s), rates.gbytes_per_s, "headline"),
                Cell(format_percent(share), share, "headline"),
                Cell(format_number(rates.gitems_per_s), rates.gitems_per_s),
            ])  # fmt: skip
    found = [row for of_primitive in rows.values() for row in of_primitive]
    columns = ["case", "n", "file", "time", "GB/s", "of copy", "G items/s"]
    if len(documents) == 1:
        columns.remove("file")
        found = [[*row[:2], *row[3:]] for row in found]
    return page_table(columns, ("n", "time", "GB/s", "of copy", "G items/s"), found, "The summary", left_out)


def devices_table(documents: Sequence[Results], names: Sequence[str], left_out: list[str]) -> PageTable | None:
    """Return the table with a row for each file and a column for each primitive; None for files of one device.

    A cell has the GB/s of the fastest case of the primitive at the largest n that most files have, so that a column has
    one n.

    Parameters
    ----------
    documents : sequence of Results
        Pooled.
    names : sequence of str
    left_out : list of str
        Takes what was left out.
    """
    if len({(document.device.adapter, document.device.backend) for document in documents}) < 2:
        return None
    if all(document.context.tool is not None for document in documents):
        return None  # other tools' files have no GB/s
    sizes: dict[str, Counter[int]] = {}
    for document in documents:
        for primitive, n in dict.fromkeys((result.primitive, result.n) for result in document.results):
            sizes.setdefault(primitive, Counter())[n] += 1
    largest = {primitive: max(counts, key=lambda n: (counts[n], n)) for primitive, counts in sizes.items()}
    titles = {primitive: f"{primitive} {n_text(n)}" for primitive, n in largest.items()}
    rows: list[Row] = []
    for document, name in zip(documents, names, strict=True):
        row = [Cell(document.device.title), Cell(document.device.backend), Cell(name)]
        for primitive, n in largest.items():
            of_size = [result for result in document.results if (result.primitive, result.n) == (primitive, n)]
            row.append(_speed_cell(of_size))
        rows.append(row)
    columns = ["GPU", "by", "file", *titles.values()]
    return page_table(columns, titles.values(), rows, "The table of devices", left_out)


def _speed_cell(results: Sequence[Result]) -> Cell:
    """Return the GB/s of the fastest of some results; or that all were wrong or failed."""
    right = _fastest(results)
    if right:
        (fastest,) = right.values()
        return Cell(format_number(fastest.rates.gbytes_per_s), fastest.rates.gbytes_per_s)
    return Cell("WRONG" if any(result.is_wrong for result in results) else "–")


def _fastest(results: Sequence[Result]) -> dict[str, Result]:
    """Return for each primitive the fastest right result at the largest n."""
    found: dict[str, Result] = {}
    best: dict[str, tuple[int, float]] = {}
    for result in results:
        if result.correct and result.timed is not None:
            rank = -result.n, result.timed.time_ns
            if result.primitive not in best or rank < best[result.primitive]:
                best[result.primitive], found[result.primitive] = rank, result
    return found


# ---- warnings


_SEVERITY = {"error": "error", "software": "important", "no GPU": "warning", "clock": "warning", "warning": "warning"}


def page_warnings(documents: Sequence[Results], names: Sequence[str]) -> list[dict[str, Any]]:
    """Return the warnings above all figures: errors first, similar warnings as one.

    Parameters
    ----------
    documents : sequence of Results
        Pooled.
    names : sequence of str

    Returns
    -------
    list of dict
        ``severity`` (``"error"``, ``"important"``, ``"warning"``, ``"note"``), ``file``, ``text``, ``cases``, ``more``
        (how many cases are not in the list).
    """
    found: list[dict[str, Any]] = []
    for document, name in zip(documents, names, strict=True):
        for group in group_alike([*_of_run(document), *remarks(document.device, document.results)]):
            kind = group[0].kind
            cases = [clean(case) for remark in group for case in remark.cases] if kind != "error" else []
            others = f" ({len(group)} such warnings, each with its own figures.)" if len(group) > 1 else ""
            found.append(
                {
                    "severity": _SEVERITY.get(kind, "note"),
                    "file": name,
                    "text": clean(group[0].text) + others,
                    "cases": cases[:_MOST_CASES],
                    "more": max(0, len(cases) - _MOST_CASES),
                }
            )
    return sorted(found, key=lambda one: ("error", "important", "warning", "note").index(one["severity"]))


def _of_run(document: Results) -> list[Remark]:
    found: list[Remark] = []
    if not document.complete:
        of = f" of {document.planned}" if document.planned else ""
        found.append(Remark("warning", f"The run was interrupted: {len(document.results)}{of} cases are here."))
    for git, whose in ((document.context.git, "The"), (document.context.user_git, "Your")):
        if git is not None and git.dirty:
            found.append(Remark("note", f"{whose} sources had changes that are in no commit."))
    return found


# ---- devices


def device_card(document: Results, name: str, file_name: str, content: bytes) -> dict[str, Any]:
    """Return title, tags, and pairs of name and value for the device and the run of a file."""
    device, context = document.device, document.context
    host = context.host
    step, period = device.tick_step_ns, device.tick_period_ns
    tick = "no timestamps" if period is None else f"steps of {step or period:g} ns, {period:g} ns per tick"
    if period is not None and device.tick_period_source:
        tick += f" ({device.tick_period_source})"
    calibration = device.calibration or CalibrationData()
    peaks: list[str] = []
    if calibration.copy:
        peaks.append(f"copy {format_number(max(speed.gbytes_per_s for speed in calibration.copy))} GB/s")
    if calibration.fma_gflops:
        peaks.append(f"FMA {format_number(calibration.fma_gflops)} GFLOP/s")
    for kind, gops in (calibration.peaks_gops or {}).items():
        peaks.append(f"{PEAKS.get(kind, kind)} {format_number(gops)} · 10⁹/s")
    floors = [
        f"{key.removesuffix('_ns').replace('_', ' ')} {format_time(value)}"
        for key, value in (device.floors or {}).items()
        if value is not None
    ]
    pairs = [
        ("driver", f"{device.driver} ({device.backend})"),
        ("vendor", device.vendor),
        ("subgroups", f"of {device.subgroup_size}" if device.subgroup_size else "none" if device.limits else None),
        ("GPU clock", tick if context.tool is None else None),
        ("ceilings, measured", ", ".join(peaks) or None),
        ("floors, measured", ", ".join(floors) or None),
        ("cases", f"{len(document.results)}"),
        ("measured", context.time.replace("T", " ")),
        ("versions", ", ".join(f"{key} {value}" for key, value in context.versions.items() if value is not None)),
        ("host", _host(host)),
        ("commit", None if context.git is None else str(context.git)),
        ("your commit", None if context.user_git is None else str(context.user_git)),
        ("command", None if not context.command else f"gridwise {' '.join(context.command)}"),
        ("suite", context.suite),
        ("file", f"{file_name}, {len(content):,} bytes, sha256 {hashlib.sha256(content).hexdigest()[:16]}…"),
    ]
    return {
        "name": name,
        "adapter": clean(device.adapter),
        "software": device.is_cpu,
        "type": clean(device.adapter_type),
        "pairs": [(key, clean(str(value))) for key, value in pairs if value not in (None, "")],
    }


def _host(host: Host) -> str:
    """Return what is known of a host: a page knows little."""
    system = f"{host.system} {host.release}".strip()
    cpus = None if host.cpu_count is None else f"{host.cpu_count} CPUs"
    return ", ".join(filter(None, (system, host.machine, cpus)))


# ---- results


def results_table(documents: Sequence[Results], names: Sequence[str], left_out: list[str]) -> PageTable:
    """Return the table of all pooled results: one row per result, and one per kernel.

    Surplus rows are left out, with a note in `left_out`.
    """
    found = {one.heading for document in documents for one, _ in shown(document)}
    quantities = [one for one in QUANTITIES if one.heading in found]
    rows: list[Row] = []
    for document, name in zip(documents, names, strict=True):
        shares = copy_shares(document)
        for result in document.results:
            rows += _result_rows(document, name, result, [_quantity_cell(one, result, shares) for one in quantities])
    headings = [one.heading for one in quantities]
    columns = ["case", "n", "file", "part", "GPU time", "CPU wall", *headings, "samples", "result"]
    if len(documents) == 1:
        columns.remove("file")
        rows = [[*row[:2], *row[3:]] for row in rows]
    numeric = ("n", "GPU time", "CPU wall", *headings, "samples")
    return page_table(columns, numeric, rows, "The table of results", left_out)


def _quantity_cell(quantity: Quantity, result: Result, shares: Shares) -> Cell:
    value = quantity.value(result, shares)
    return Cell(quantity.shown_text(result, value), value)


def _result_rows(document: Results, name: str, result: Result, quantities: list[Cell]) -> list[Row]:
    head = [Cell(result.name), Cell(n_text(result.n), result.n or None), Cell(name)]
    empty = Cell("–")

    def of_gpu(series: Series | None) -> Cell:
        summary = None if series is None else series.summary
        if summary is not None and isinstance(series, Kernel) and series.each_ns:
            return Cell(f"{format_time(summary.time_ns)}, {format_each(series.each_ns)}", summary.time_ns)
        return empty if summary is None else Cell(gpu_text(document, result, summary), summary.time_ns)

    def count(series: Series | None) -> Cell:
        summary = None if series is None else series.summary
        return empty if summary is None else Cell(f"{summary.count:,}", summary.count)

    gpu, cpu = result.gpu_span, result.cpu_wall
    wall = None if cpu is None else cpu.summary
    if result.error is not None:
        verdict = Cell("failed", kind="bad")
    else:
        right = Cell("right", kind="good") if result.checked else Cell("not checked")
        verdict = right if result.correct else Cell("WRONG", kind="bad")
    whole = [
        *head, Cell("whole", kind="whole"), of_gpu(gpu),
        empty if wall is None else Cell(wall.text(), wall.time_ns),
        *quantities, count(gpu or cpu), verdict,
    ]  # fmt: skip
    kernels = [
        [
            *head,
            Cell(kernel.name, kind="kernel"),
            of_gpu(kernel),
            empty,
            *[empty] * len(quantities),
            count(kernel),
            Cell(""),
        ]
        for kernel in result.shown_kernels
    ]
    return [whole, *kernels]


# ---- of tables that files and terminals show, too


def shown_table(table: Table, label: str, left_out: list[str]) -> PageTable:
    """Return a table as JSON data for the page; numbers of its cells sort the rows."""
    numeric = [column.heading for column in table.columns if column.right]
    rows = [list(row.cells) for row in table.rows]
    return page_table([column.heading for column in table.columns], numeric, rows, label, left_out)


def comparison_table(comparison: Comparison, label: str, left_out: list[str]) -> dict[str, Any]:
    """Return title, conclusion, remarks, and the table of rows or ranks of a comparison."""
    table = comparison_rows(comparison)
    made: dict[str, Any] = {"title": table.title, "conclusion": table.conclusion, "remarks": table.remarks}
    return made | {"table": shown_table(table, label, left_out)}
