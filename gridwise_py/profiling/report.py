"""The table of a profile: times and calls by name."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, overload

import wgpu

from ..display.quantities import format_time
from ..display.table import COLUMN_GAP, fold, table_of, text_width
from ..display.terminal import clean, clean_lines
from ..errors import ArgumentError
from ..runtime.context import context_of
from ..types.options import one_of


@dataclass(frozen=True)
class Record:
    """One entry of a profile; `gpu_ns` is set for what ran on the GPU only, `cpu_ns` for all else."""

    name: str
    kind: str
    cpu_ns: int | None
    gpu_ns: float | None
    shapes: Any = None
    allocated_bytes: int = 0
    children: tuple[Record, ...] = ()

    @property
    def on_gpu(self) -> bool:
        """Whether it is GPU work, without a part on the host."""
        return self.cpu_ns is None

    def gpu_total_ns(self) -> float | None:
        """GPU time of it and all in it; None where some of it is not known."""
        if self.on_gpu:
            return self.gpu_ns
        return _total(child.gpu_total_ns() for child in self.children)

    def allocated_total_bytes(self) -> int:
        """Bytes allocated in it and all in it."""
        return self.allocated_bytes + sum(child.allocated_total_bytes() for child in self.children)


def _total(values: Any) -> float | None:
    total = 0.0
    for value in values:
        if value is None:
            return None
        total += value
    return total


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
        return format_time(time_ns, "not measured")

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


class _Sum:
    """Collects the entries of one name."""

    def __init__(self, name: str, kind: str, on_gpu: bool):
        self.name, self.kind, self.on_gpu = name, kind, on_gpu
        self.calls = 0
        self.self_cpu, self.cpu = 0.0, 0.0
        self.self_gpu: list[float | None] = []
        self.gpu: list[float | None] = []
        self.shapes: list[str] = []
        self.allocated = 0

    def row(self) -> KeyAverage:
        shapes = tuple(self.shapes[:_MOST_SHAPES]) + (("…",) if len(self.shapes) > _MOST_SHAPES else ())
        return KeyAverage(
            self.name, self.kind, self.calls,
            None if self.on_gpu else self.self_cpu, None if self.on_gpu else self.cpu,
            _total(self.self_gpu), _total(self.gpu), shapes, self.allocated,
        )  # fmt: skip


def averages(
    roots: Sequence[Record], device: wgpu.GPUDevice, by_shape: bool, warnings: Sequence[str] = ()
) -> KeyAverages:
    """Sum up a profile by name."""
    sums: dict[tuple[str, ...], _Sum] = {}

    def add(record: Record, above: frozenset[tuple[str, ...]]) -> None:
        key = (record.name, record.kind, *([str(record.shapes)] if by_shape else []))
        entry = sums.setdefault(key, _Sum(record.name, record.kind, record.on_gpu))
        entry.calls += 1
        shapes = None if record.shapes is None else str(record.shapes)
        if shapes is not None and shapes not in entry.shapes:
            entry.shapes.append(shapes)
        if record.cpu_ns is None:
            entry.self_gpu.append(record.gpu_ns)
        else:
            entry.self_cpu += record.cpu_ns - sum(child.cpu_ns or 0 for child in record.children)
        if key not in above:  # a region inside of one of its own name is in the total already
            entry.gpu.append(record.gpu_total_ns())
            entry.cpu += record.cpu_ns or 0
            entry.allocated += record.allocated_total_bytes()
        for child in record.children:
            add(child, above | {key})

    for root in roots:
        add(root, frozenset())
    capabilities = context_of(device).capabilities
    software = ", software on the CPU" if capabilities.is_cpu else ""
    return KeyAverages([entry.row() for entry in sums.values()], f"{capabilities.adapter}{software}", warnings)
