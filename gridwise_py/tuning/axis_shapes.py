"""The shapes of kernels that reduce along an axis, by the sizes of the array alone: not by what a binding holds.

All arrays are (matrices, rows, columns), of which the rows are combined; where there is one column, a matrix is a row
in memory, which `RowsShape` is for. The figures behind the numbers are in docs/contribute/performance.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd

from ..types.capabilities import Capabilities
from .model import KERNELS, Fields
from .options import AxisTuning
from .rows import overlay
from .shapes import ranges_of

# A part has at least so many loads per invocation, so that totals are few beside items.
_LEAST_STEPS = 4
_STRIP = 64
_STRIP_OF_TOTALS = 8
# Least share of invocations that have columns, in a kernel for few columns.
_LEAST_BUSY = 0.7


@dataclass(frozen=True)
class RowsShape:
    """How rows are combined that lie one behind the other.

    Attributes
    ----------
    workgroup_size : int
    vecs : int
        Quads that an invocation loads at once.
    team : int
        Invocations that combine one row, or one part of it.
    units : int
        Rows that a team combines at once.
    parts : int
        Parts of each row; with several, a second kernel combines their totals.
    part_quads : int
        Quads of a part.
    """

    workgroup_size: int
    vecs: int
    team: int
    units: int
    parts: int
    part_quads: int

    @property
    def looped(self) -> bool:
        """Whether an invocation loads more than once."""
        return self.part_quads > self.team * self.vecs

    @property
    def units_per_workgroup(self) -> int:
        """Rows or parts of a workgroup."""
        return self.workgroup_size // self.team * self.units


@dataclass(frozen=True)
class ColumnsShape:
    """How columns are combined, a strip of them and a block of rows by each workgroup.

    Attributes
    ----------
    workgroup_size : int
    vecs : int
        Rows that an invocation loads from at once.
    strip : int
        Invocations side by side.
    width : int
        Columns of an invocation, 1 or 4.
    rows_per_block : int
    parts : int
        Blocks of rows; with several, a second kernel combines their totals.
    """

    workgroup_size: int
    vecs: int
    strip: int
    width: int
    rows_per_block: int
    parts: int


@dataclass(frozen=True)
class NarrowShape:
    """How few columns are combined, whole rows by each workgroup.

    Attributes
    ----------
    workgroup_size : int
    vecs : int
        Tiles that an invocation loads from at once.
    lanes : int
        Invocations with columns; their quads, a tile, are whole rows.
    tiles_per_block : int
    rows_per_block : int
    parts : int
        Blocks of tiles; with several, a second kernel combines their totals.
    """

    workgroup_size: int
    vecs: int
    lanes: int
    tiles_per_block: int
    rows_per_block: int
    parts: int


AxisShape = RowsShape | ColumnsShape | NarrowShape


def axis_shape(
    matrices: int,
    rows: int,
    columns: int,
    *,
    commutative: bool,
    accumulators: bool,
    capabilities: Capabilities,
    is_fixed: bool,
    tuning: AxisTuning,
) -> AxisShape:
    """Return the shape for an array of (matrices, rows, columns), whose rows are combined.

    Parameters
    ----------
    matrices, rows, columns : int
    commutative : bool
        Whether the operator is.
    accumulators : bool
        Whether the array holds totals of parts, which a single further kernel has to combine.
    capabilities : Capabilities
    is_fixed : bool
        Whether the order of additions is: then the shape is a part of the results, and the same on every device.
    tuning : AxisTuning
    """
    usual = Capabilities() if is_fixed else capabilities
    most = usual.most_invocations

    def numbers(kernel: str) -> tuple[int, int, int]:
        """Return invocations, loads at once, and most workgroups."""
        fields = _fields(kernel, matrices * rows * columns, usual)
        wanted = tuning.workgroup_size or min(fields["workgroup_size"], 1 << (most.bit_length() - 1))
        blocks = 1 if accumulators else tuning.max_blocks or fields["max_blocks"]
        return wanted, tuning.vecs or fields["vecs"], blocks

    size, vecs, blocks = numbers("axis_rows")
    if columns == 1:
        return _rows_shape(matrices, rows, size, blocks, vecs, tuning)
    if commutative and not accumulators:
        narrow = _narrow_shape(matrices, rows, columns, size, blocks, vecs)
        if narrow is not None:
            return narrow
    size, vecs, blocks = numbers("axis_columns")
    return _columns_shape(matrices, rows, columns, size, blocks, vecs, accumulators, tuning)


def _fields(kernel: str, n: int, capabilities: Capabilities) -> Fields:
    """Return the fields of a tuning for arrays of `n` items: those that were tuned, else the model's."""
    shapes = overlay(KERNELS[kernel].rows(capabilities), ranges_of(kernel, capabilities))
    return shapes.at(n)


def _rows_shape(rows: int, items: int, size: int, most_parts: int, vecs: int, tuning: AxisTuning) -> RowsShape:
    # A row that does not begin at a multiple of 4 reaches into one more quad.
    quads = max(1, items // 4 if items % 4 == 0 else (items + 6) // 4)
    at_once = vecs
    team = tuning.team or min(size, _power_of_two(-(-quads // vecs)))
    team = min(team, size)
    vecs = min(vecs, -(-quads // team))
    step = team * vecs
    part_quads, parts = _cut(quads, step, rows, most_parts if 2 * rows <= most_parts else 1)
    units = 1 if part_quads > step else max(1, at_once // vecs)
    return RowsShape(size, vecs, team, units, parts, part_quads)


def _columns_shape(
    matrices: int,
    rows: int,
    columns: int,
    size: int,
    most_parts: int,
    vecs: int,
    accumulators: bool,
    tuning: AxisTuning,
) -> ColumnsShape:
    width = 4 if columns % 4 == 0 and not accumulators else 1
    vecs = min(vecs if width == 4 else 2 * vecs, max(1, rows))
    across = -(-columns // width)
    # As few invocations on top of each other as there are rows for, and not more side by side than there are columns.
    least = max(1, size // _power_of_two(max(1, rows // (2 * vecs)), down=True))
    # Totals are few: the more invocations share their rows, the sooner they are combined.
    strip = tuning.strip or max(least, _STRIP_OF_TOTALS if accumulators else _STRIP)
    strip = min(strip, size, _power_of_two(across))
    strips = -(-across // strip)
    workgroups = strips * matrices
    most = most_parts if 2 * workgroups <= most_parts else 1
    rows_per_block, parts = _cut(rows, size // strip * vecs, workgroups, most)
    return ColumnsShape(size, vecs, strip, width, rows_per_block, parts)


def _narrow_shape(matrices: int, rows: int, columns: int, size: int, most_parts: int, vecs: int) -> NarrowShape | None:
    """Return None where many invocations would have no columns, or a matrix would begin within a quad."""
    period = columns // gcd(columns, 4)
    lanes = size // period * period
    if lanes < _LEAST_BUSY * size or rows * columns > 1 << 30 or (matrices > 1 and rows * columns % 4):
        return None
    tile_rows = 4 * lanes // columns
    per_block, parts = _cut(-(-rows // tile_rows), vecs, matrices, most_parts)
    return NarrowShape(size, vecs, lanes, per_block, per_block * tile_rows, parts)


def _cut(length: int, step: int, workgroups: int, most: int) -> tuple[int, int]:
    """Return the length of a part, a whole number of steps, and the parts of a length.

    There are so many parts that the workgroups are as many as the most, where each has enough steps then.
    """
    parts = max(1, min(-(-most // max(1, workgroups)), length // (_LEAST_STEPS * step)))
    part = max(1, length) if parts == 1 else -(-length // (parts * step)) * step
    return part, max(1, -(-length // part))


def _power_of_two(n: int, *, down: bool = False) -> int:
    return 1 << (n.bit_length() - 1 if down else (n - 1).bit_length())
