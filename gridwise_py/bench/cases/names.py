"""Names of cases, the same in every command, table, picture and page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...display.quantities import format_count
from .distributions import UNIFORM
from .mode import Mode

#: Left out of names, because nearly every case has them.
_USUAL = (UNIFORM, Mode.BATCH.value)
#: Axes whose values need no name; values of other axes follow the axis name.
_BARE = ("op", "datatype", "distribution")


def n_text(n: int) -> str:
    """Return a number of items as text; a benchmark of another tool has none, which is 0."""
    return format_count(n) if n else "–"


def case_name(
    primitive: str,
    axes: Mapping[str, Any],
    mode: str = Mode.BATCH.value,
    n: int | None = None,
) -> str:
    """Return the name of a case, as ``"scan add u32 hot"``, or ``"scan add u32 hot n=2^18"``.

    Parameters
    ----------
    primitive : str
    axes : mapping
        The rest of the identity: operator, datatype, and other axes of a sweep.
    mode : str, default "batch"
        Batch and uniform data are not mentioned.
    n : int, optional
        Put behind the name. Tables have a column for it.
    """
    order = sorted(axes, key=lambda axis: _BARE.index(axis) if axis in _BARE else len(_BARE))
    given = [axis for axis in order if axes[axis] is not None]
    words = [primitive, *(str(axes[a]) if a in _BARE else f"{a}={axes[a]}" for a in given), str(mode)]
    name = " ".join(word for word in words if word not in _USUAL)
    return name if n is None else f"{name} n={format_count(n)}"
