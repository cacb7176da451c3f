"""The table of a profile: times and calls by name."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, overload

import wgpu

from ..display.quantities import format_time
from ..display.table import COLUMN_GAP, fold, table_of, text_width
from ..display.terminal import clean, clean_lines
from ..errors import ArgumentError
from ..runtime.context import context_of
from ..types.options import one_of
from .nodes import Node


@dataclass(frozen=True)
class KeyAverage:
    """All entries of one name.

    Attributes
    ----------
    name : str
    kind : str
        ``"region"``, ``"primitive"``, ``"transfer"``, ``"host"``, or, on the GPU, ``"kernel"``, ``"pass"``, ``"copy"``
        or ``"commands"``.
    calls : int
    self_cpu_time_ns, cpu_time_total_ns : float or None
        Without and with nested entries; None for GPU work.
    self_gpu_time_ns, gpu_time_total_ns : float or None
        The same on the GPU. Only GPU work has self time. None if a part was not measured.
    shapes : tuple of str
    allocated_bytes : int
        Of the GPU.
    """

    name: str
    kind: str
    calls: int
    self_cpu_time_ns: float | None
    cpu_time_total_ns: float | None
    self_gpu_time_ns: float | None
    gpu_time_total_ns: float | None
    shapes: tuple[str, ...]
    allocated_bytes: int


# torch's names, for those who bring them along.
_SORT_KEYS = {
    "gpu_time_total": "gpu_time_total_ns",
    "cuda_time_total": "gpu_time_total_ns",
    "device_time_total": "gpu_time_total_ns",
    "self_gpu_time_total": "self_gpu_time_ns",
    "self_cuda_time_total": "self_gpu_time_ns",
    "self_device_time_total": "self_gpu_time_ns",
    "cpu_time_total": "cpu_time_total_ns",
    "self_cpu_time_total": "self_cpu_time_ns",
    "count": "calls",
    "calls": "calls",
    "allocated_bytes": "allocated_bytes",
    "name": "name",
}


_HEADINGS = ("name", "kind", "self CPU", "CPU total", "self GPU", "GPU total", "calls", "allocated", "shapes")
_TEXT_COLUMNS = [_HEADINGS.index(heading) for heading in ("name", "kind", "shapes")]
# These are folded into several lines where a table is narrow, but not below so many characters.
_NARROWEST = {"name": 16, "shapes": 18}
# Where that is not enough, these are left out, in this order.
_LEFT_OUT_FIRST = ("allocated", "self CPU", "kind", "self GPU", "CPU total")
# What a cell of a notebook shows without folding lines.
_WIDTH_WITHOUT_TERMINAL = 115


class KeyAverages(Sequence[KeyAverage]):
    """The rows of a profile, by name; `table` shows them.

    Attributes
    ----------
    warnings : tuple of str
        Reasons to doubt the GPU times.
    """

    def __init__(self, rows: Sequence[KeyAverage], title: str, warnings: Sequence[str] = ()):
        self._rows = tuple(rows)
        self._title = title
        self.warnings: tuple[str, ...] = tuple(warnings)

    def __len__(self) -> int:
        return len(self._rows)

    @overload
    def __getitem__(self, index: int) -> KeyAverage: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[KeyAverage, ...]: ...
    def __getitem__(self, index: int | slice) -> KeyAverage | tuple[KeyAverage, ...]:
        return self._rows[index]

    def __iter__(self) -> Iterator[KeyAverage]:
        return iter(self._rows)

    def sorted_by(self, sort_by: str | None) -> list[KeyAverage]:
        """Return the rows, the largest first.

        Raises
        ------
        ArgumentError
            If there is no such column.
        """
        if sort_by is None:
            return list(self._rows)
        column = _SORT_KEYS[one_of("sort_by", sort_by, _SORT_KEYS)]
        if column == "name":
            return sorted(self._rows, key=lambda row: row.name)
        known = [row for row in self._rows if getattr(row, column) is not None]
        unknown = [row for row in self._rows if getattr(row, column) is None]
        return sorted(known, key=lambda row: getattr(row, column), reverse=True) + unknown

    def table(self, sort_by: str | None = "gpu_time_total", row_limit: int = 100, width: int | None = None) -> str:
        """Return the rows as text.

        The last line names columns that are left out.

        Parameters
        ----------
        sort_by : str or None
            ``"gpu_time_total"``, ``"self_gpu_time_total"``, ``"cpu_time_total"``, ``"self_cpu_time_total"``,
            ``"calls"``, ``"allocated_bytes"``, ``"name"``, or torch's names; None for the order of first use.
        row_limit : int, default 100
            −1 for all.
        width : int, optional
            In characters; by default that of the terminal, or 115.
        """
        if row_limit < -1 or isinstance(row_limit, bool):
            raise ArgumentError(f"row_limit must be at least 0, or -1 for all rows, not {row_limit!r}")
        if width is not None and (width < 1 or isinstance(width, bool)):
            raise ArgumentError(f"width must be at least 1, or None for that of the terminal, not {width!r}")
        width = width if width is not None else _terminal_width()
        rows = self.sorted_by(sort_by)
        shown = rows if row_limit == -1 else rows[:row_limit]
        cells = [{heading: clean_lines(text) for heading, text in _cells(row).items()} for row in shown]
        widths = _column_widths(cells, width)
        table = table_of("", _HEADINGS, [tuple(row.values()) for row in cells], texts=_TEXT_COLUMNS)
        lines = [*fold(clean_lines(self._title), width), *table.lines(widths)]
        left_out = [heading for heading in _HEADINGS if heading not in widths]
        if left_out:
            enough = _total_width(_least_widths(cells))
            lines += fold(f"left out at a width of {width}: {', '.join(left_out)}; width={enough} shows all", width)
        if len(shown) < len(rows):
            lines.append(f"{len(rows) - len(shown)} more rows; row_limit=-1 shows all")
        for warning in self.warnings:
            lines += fold(f"doubtful: {clean_lines(warning)}", width)
        return "".join(f"{line}\n" for line in lines)

    def __repr__(self) -> str:
        return f"KeyAverages({len(self)} row{'s' if len(self) != 1 else ''}, {clean(self._title)})"

    def _repr_html_(self) -> str:
        rows = [tuple(_cells(row).values()) for row in self.sorted_by("gpu_time_total")]
        return table_of(self._title, _HEADINGS, rows, texts=_TEXT_COLUMNS, remarks=self.warnings).html()

    def __str__(self) -> str:
        return self.table()


def _cells(row: KeyAverage) -> dict[str, str]:
    """Return the texts of a row by heading."""

    def cpu_time(time_ns: float | None) -> str:
        return "–" if row.cpu_time_total_ns is None else format_time(time_ns)

    def gpu_time(time_ns: float | None) -> str:
        # Of what only the CPU does there is none.
        return "–" if time_ns == 0 and row.cpu_time_total_ns is not None else format_time(time_ns, "not measured")

    cells = (
        clean(row.name), row.kind, cpu_time(row.self_cpu_time_ns), cpu_time(row.cpu_time_total_ns),
        # Only GPU work has GPU time by itself.
        "–" if row.cpu_time_total_ns is not None else gpu_time(row.self_gpu_time_ns), gpu_time(row.gpu_time_total_ns),
        f"{row.calls:,}", f"{row.allocated_bytes:,} B" if row.allocated_bytes else "–", clean("; ".join(row.shapes)),
    )  # fmt: skip
    return dict(zip(_HEADINGS, cells, strict=True))


def _terminal_width() -> int:
    # A notebook's stdout is no terminal, and neither is a file.
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else _WIDTH_WITHOUT_TERMINAL


def _natural_widths(cells: Sequence[dict[str, str]]) -> dict[str, int]:
    """Return how wide each column is where nothing is folded."""
    return {heading: max(map(text_width, (heading, *(row[heading] for row in cells)))) for heading in _HEADINGS}


def _least_widths(cells: Sequence[dict[str, str]]) -> dict[str, int]:
    """Return how narrow each column may be."""
    return {heading: min(w, _NARROWEST.get(heading, w)) for heading, w in _natural_widths(cells).items()}


def _total_width(widths: dict[str, int]) -> int:
    return sum(widths.values()) + COLUMN_GAP * (len(widths) - 1)


def _column_widths(cells: Sequence[dict[str, str]], width: int) -> dict[str, int]:
    """Return the columns that fit into a width, and how wide each is."""
    widths = _least_widths(cells)
    for heading in _LEFT_OUT_FIRST:
        if _total_width(widths) > width:
            del widths[heading]
    natural, spare = _natural_widths(cells), max(0, width - _total_width(widths))
    # Half of what is left for names, the other half for shapes, then what these do not need for names again.
    for heading, most in (("name", (spare + 1) // 2), ("shapes", spare), ("name", spare)):
        more = min(natural[heading] - widths[heading], most, spare)
        widths[heading] += more
        spare -= more
    return widths


_MOST_SHAPES = 3


class _Visit(NamedTuple):
    """A node with the times of it and all in it; `counts` is false inside of a node of its name."""

    node: Node
    cpu_ns: int
    self_cpu_ns: float
    gpu_ns: float | None
    allocated_bytes: int
    counts: bool


def _sum(values: Iterable[float | None]) -> float | None:
    """Return the sum; None where a part is not known."""
    known = list(values)
    return None if None in known else float(sum(value for value in known if value is not None))


def _summarize(visits: Sequence[_Visit]) -> KeyAverage:
    """Return the row of all entries of one name."""
    first, outer = visits[0].node, [visit for visit in visits if visit.counts]
    on_gpu = first.begin_ns is None
    shapes = list(dict.fromkeys(visit.node.shapes for visit in visits if visit.node.shapes is not None))
    return KeyAverage(
        first.name,
        first.kind,
        len(visits),
        None if on_gpu else sum(visit.self_cpu_ns for visit in visits),
        None if on_gpu else float(sum(visit.cpu_ns for visit in outer)),
        _sum(visit.gpu_ns for visit in visits) if on_gpu else 0.0,
        _sum(visit.gpu_ns for visit in outer),
        (*shapes[:_MOST_SHAPES], *["…"] * (len(shapes) > _MOST_SHAPES)),
        sum(visit.allocated_bytes for visit in outer),
    )


def averages(
    roots: Sequence[Node], device: wgpu.GPUDevice, by_shape: bool, warnings: Sequence[str] = ()
) -> KeyAverages:
    """Sum up what is in the roots of a profile, by name."""
    by_name: dict[tuple[object, ...], list[_Visit]] = {}

    def add(node: Node, above: frozenset[tuple[object, ...]]) -> _Visit:
        key = (node.name, node.kind, node.shapes if by_shape else None)
        visits = by_name.setdefault(key, [])
        cpu_ns = node.cpu_ns or 0
        inner = [add(child, above | {key}) for child in node.children]
        visit = _Visit(
            node,
            cpu_ns,
            cpu_ns - sum(one.cpu_ns for one in inner),
            node.gpu_ns() if node.begin_ns is None else _sum(one.gpu_ns for one in inner),
            node.allocated_bytes + sum(one.allocated_bytes for one in inner),
            key not in above,
        )
        visits.append(visit)
        return visit

    for root in roots:
        for child in root.children:
            add(child, frozenset())
    capabilities = context_of(device).capabilities
    software = ", software on the CPU" if capabilities.is_cpu else ""
    rows = [_summarize(visits) for visits in by_name.values()]
    return KeyAverages(rows, f"{capabilities.adapter}{software}", warnings)
