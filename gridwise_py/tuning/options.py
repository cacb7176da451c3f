"""The ``tuning=`` of constructors: a frozen dataclass for each family of primitives.

Each field changes only the speed of a primitive, apart from the rounding of float sums. None leaves the choice to the
tables of this package, or to the results of `gridwise tune` on the adapter. An object checks its fields; the limits
of a device are checked when a primitive is constructed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal, Self, TypeAlias

from ..errors import ArgumentError
from ..planning.lookback_state import STATES
from ..types.capabilities import Capabilities, SubgroupsLike
from ..types.options import integer, one_of

__all__ = [
    "AxisTuning",
    "ElementwiseTuning",
    "HistogramTuning",
    "MatMulTuning",
    "ReduceTuning",
    "ScanTuning",
    "SegmentedSortTuning",
    "SortTuning",
    "StateForm",
    "StreamTuning",
    "Tuning",
]

StateForm: TypeAlias = Literal["u64", "u32x2"]
# Takes the name and the value of a field, and returns the value as it is kept.
_Check: TypeAlias = Callable[[str, Any], Any]
# With subgroups, so that only words that mean nothing on any device are refused.
_ANY_DEVICE = Capabilities(subgroup_size=32)


def _by(check: _Check) -> dict[str, _Check]:
    """Return the metadata of a field whose values pass a check, unless they are None."""
    return {"check": check}


@dataclass(frozen=True, kw_only=True, repr=False)
class Tuning:
    """Base of all tuning classes."""

    def __post_init__(self) -> None:
        for each in fields(self):
            value = getattr(self, each.name)
            if value is not None:
                object.__setattr__(self, each.name, each.metadata["check"](each.name, value))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self.to_dict().items())})"

    def to_dict(self) -> dict[str, Any]:
        """Return the fields that are not None, as JSON data."""
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        return {name: value for name, value in values.items() if value is not None}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Return the tuning that `to_dict` wrote.

        Raises
        ------
        ArgumentError
            If `data` is not a mapping, or has an unknown field or value.
        """
        known = [each.name for each in fields(cls)]
        if not isinstance(data, Mapping) or not set(data) <= set(known):
            raise ArgumentError(f"{data!r} is not a {cls.__name__}; its fields are {', '.join(known)}")
        return cls(**data)

    @classmethod
    def of(cls, tuning: Self | None) -> Self:
        """Return the caller's ``tuning=``; for None, a tuning that leaves every choice open.

        Raises
        ------
        ArgumentError
            If it is not a tuning of this class.
        """
        if tuning is None:
            return cls()
        if not isinstance(tuning, cls):
            raise ArgumentError(f"tuning= takes a gw.{cls.__name__}, not {tuning!r}")
        return tuning

    @classmethod
    def remedies(cls) -> dict[str, str]:
        """Return what `call_errors.explained` answers to a constructor's caller who gives a field directly."""
        return {each.name: f"give tuning=gw.{cls.__name__}({each.name}={{value}})" for each in fields(cls)}


def _positive(name: str, value: Any) -> int:
    return integer(name, value, 1)


def _word(name: str, value: Any) -> int:
    number = integer(name, value, 1)
    if number >= 1 << 32:
        raise ArgumentError(f"{name}={number} does not fit into 32 bits, which kernels use for it")
    return number


def _from_to(least: int, most: int) -> _Check:
    def check(name: str, value: Any) -> int:
        number = integer(name, value)
        if not least <= number <= most:
            raise ArgumentError(f"{name}={number} must be from {least} to {most}")
        return number

    return check


def _power_of_two(least: int, most: int | None = None) -> _Check:
    def check(name: str, value: Any) -> int:
        number = integer(name, value)
        if number < least or (most is not None and number > most) or number & (number - 1):
            bounds = f"of at least {least}" if most is None else f"from {least} to {most}"
            raise ArgumentError(f"{name}={number} must be a power of two {bounds}")
        return number

    return check


def _multiple_of_128(name: str, value: Any) -> int:
    number = integer(name, value)
    if number % 128 or number < 256:
        raise ArgumentError(f"{name}={number} must be a multiple of 128, and at least 256")
    return number


def _one_or_two(name: str, value: Any) -> int:
    number = integer(name, value)
    if number not in (1, 2):
        raise ArgumentError(f"{name}={number} must be 1 or 2")
    return number


def _truth(name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise ArgumentError(f"{name}={value!r} must be True, False or None")
    return value


def _state_form(name: str, value: Any) -> str:
    return one_of(name, value, STATES)


def _stage_items(name: str, value: Any) -> int:
    return integer(name, value) if value == 0 else _power_of_two(64, 4096)(name, value)


def _held_or_late(name: str, value: Any) -> str:
    return one_of(name, value, ("held", "late"))


def _tile_or_subgroup(name: str, value: Any) -> str:
    return one_of(name, value, ("tile", "subgroup"))


def _merge(name: str, value: Any) -> str:
    return one_of(name, value, ("none", "quad", "tile"))


def _subgroups(name: str, value: Any) -> Any:
    _ANY_DEVICE.subgroup_mode(value)
    return value


_INVOCATIONS, _VECS, _LOOK = _power_of_two(1), _from_to(1, 16), _from_to(1, 32)


@dataclass(frozen=True, kw_only=True, repr=False)
class ElementwiseTuning(Tuning):
    """The tuning of `VectorAdd`, `Map`, `Copy`, `Search` and `TopK`.

    Parameters
    ----------
    workgroup_size : int, optional
        Invocations per workgroup, a power of two.
    vecs : int, optional
        vec4 per invocation, 1 to 16; of a search, four queries.
    """

    workgroup_size: int | None = field(default=None, metadata=_by(_INVOCATIONS))
    vecs: int | None = field(default=None, metadata=_by(_VECS))


@dataclass(frozen=True, kw_only=True, repr=False)
class ReduceTuning(Tuning):
    """The tuning of `Reduce`.

    Parameters
    ----------
    workgroup_size : int, optional
        Invocations per workgroup, a power of two.
    vecs : int, optional
        vec4 per invocation and tile, 1 to 16.
    max_blocks : int, optional
        Largest number of workgroups, each of which combines a block of tiles.
    state : {None, "u64", "u32x2"}, optional
        Form of the words that hold the blocks' totals. None uses 64-bit atomics if the device has them.
    spin_limit : int, optional
        Number of unsuccessful polls for a block's total after which the last workgroup recomputes that block; 256 by
        default.
    subgroups : None, bool or str, optional
        None uses subgroups if the device has them; False uses workgroup memory and barriers only. ``"emulated-8"``
        emulates that size, for tests.
    """

    workgroup_size: int | None = field(default=None, metadata=_by(_INVOCATIONS))
    vecs: int | None = field(default=None, metadata=_by(_VECS))
    max_blocks: int | None = field(default=None, metadata=_by(_word))
    state: StateForm | None = field(default=None, metadata=_by(_state_form))
    spin_limit: int | None = field(default=None, metadata=_by(_word))
    subgroups: SubgroupsLike = field(default=None, metadata=_by(_subgroups))


@dataclass(frozen=True, kw_only=True, repr=False)
class AxisTuning(Tuning):
    """The tuning of `ReduceAxis`.

    Parameters
    ----------
    workgroup_size : int, optional
        Invocations per workgroup, a power of two.
    vecs : int, optional
        Loads of an invocation at once, 1 to 16.
    team : int, optional
        Rows only: invocations that combine one row, a power of two.
    strip : int, optional
        Columns only: invocations side by side in a workgroup, a power of two; the others are on top of them.
    max_blocks : int, optional
        Number of workgroups up to which rows and columns are cut into parts.
    subgroups : None, bool or str, optional
        As in `ReduceTuning`.
    """

    workgroup_size: int | None = field(default=None, metadata=_by(_INVOCATIONS))
    vecs: int | None = field(default=None, metadata=_by(_VECS))
    team: int | None = field(default=None, metadata=_by(_INVOCATIONS))
    strip: int | None = field(default=None, metadata=_by(_INVOCATIONS))
    max_blocks: int | None = field(default=None, metadata=_by(_word))
    subgroups: SubgroupsLike = field(default=None, metadata=_by(_subgroups))


@dataclass(frozen=True, kw_only=True, repr=False)
class ScanTuning(Tuning):
    """The tuning of `Scan`.

    Parameters
    ----------
    workgroup_size : int, optional
        Invocations per workgroup, a power of two.
    vecs : int, optional
        vec4 per invocation and tile, 1 to 16.
    max_blocks : int, optional
        Reduce-then-scan, and `SegmentedReduce`: largest number of workgroups, each of which does a block of tiles.
    look : int, optional
        Look-back only: tiles that a lane polls per round, 1 to 32. By default, a subgroup polls 32 in total.
    tickets : bool, optional
        Look-back only: whether a workgroup takes its tile from a counter, in the order in which workgroups start,
        instead of by its index. This costs one more memory round trip (8 % on an H200 at 2^28), but avoids tiles that
        are recomputed because of the order in which workgroups start. None uses tickets on CPU adapters (lavapipe
        starts in the middle of the grid) and if the self-test of the device finds that they are needed.
    state : {None, "u64", "u32x2"}, optional
        Look-back, and `SegmentedReduce` in one dispatch: form of the state words. None uses 64-bit atomics if the
        device has them.
    spin_limit : int, optional
        Look-back, and `SegmentedReduce` in one dispatch: total unsuccessful polls after which a workgroup recomputes
        itself what is unpublished; 256 by default.
    subgroups : None, bool or str, optional
        None uses subgroups if the device has them; False uses workgroup memory and barriers only. ``"emulated-8"``
        emulates that size, for tests.
    """

    workgroup_size: int | None = field(default=None, metadata=_by(_INVOCATIONS))
    vecs: int | None = field(default=None, metadata=_by(_VECS))
    max_blocks: int | None = field(default=None, metadata=_by(_word))
    look: int | None = field(default=None, metadata=_by(_LOOK))
    tickets: bool | None = field(default=None, metadata=_by(_truth))
    state: StateForm | None = field(default=None, metadata=_by(_state_form))
    spin_limit: int | None = field(default=None, metadata=_by(_word))
    subgroups: SubgroupsLike = field(default=None, metadata=_by(_subgroups))


@dataclass(frozen=True, kw_only=True, repr=False)
class StreamTuning(Tuning):
    """The tuning of `Select`, `Partition`, `Unique` and `RunLength`.

    Parameters
    ----------
    workgroup_size : int, optional
        Invocations per workgroup, a power of two.
    vecs : int, optional
        vec4 per invocation and tile, 1 to 16.
    stage : int, optional
        Words of workgroup memory through which items are written in order, a power of two from 64 to 4096; 0 writes
        them from registers, each to its place.
    items : {None, "held", "late"}, optional
        Whether items stay in registers from the load of their tile until they are written, or are read when they are
        written.
    order : {None, "tile", "subgroup"}, optional
        Whether items go through workgroup memory in the order of the whole tile, or each subgroup orders its own.
    look : int, optional
        Look-back only: tiles that a lane polls per round, 1 to 32.
    ahead : int, optional
        Look-back only: how many tiles behind the one that it writes a workgroup counts one before, so that few need to
        wait for counts; 0: it counts the one that it writes.
    tickets : bool, optional
        Look-back only: whether a workgroup takes its tile from a counter; see `ScanTuning`.
    spin_limit : int, optional
        Look-back only: total unsuccessful polls after which a workgroup recounts unpublished tiles itself; 256 by
        default.
    subgroups : None, bool or str, optional
        As in `ScanTuning`.
    """

    workgroup_size: int | None = field(default=None, metadata=_by(_INVOCATIONS))
    vecs: int | None = field(default=None, metadata=_by(_VECS))
    stage: int | None = field(default=None, metadata=_by(_stage_items))
    items: Literal["held", "late"] | None = field(default=None, metadata=_by(_held_or_late))
    order: Literal["tile", "subgroup"] | None = field(default=None, metadata=_by(_tile_or_subgroup))
    look: int | None = field(default=None, metadata=_by(_LOOK))
    ahead: int | None = field(default=None, metadata=_by(_from_to(0, 1 << 16)))
    tickets: bool | None = field(default=None, metadata=_by(_truth))
    spin_limit: int | None = field(default=None, metadata=_by(_word))
    subgroups: SubgroupsLike = field(default=None, metadata=_by(_subgroups))


@dataclass(frozen=True, kw_only=True, repr=False)
class HistogramTuning(Tuning):
    """The tuning of `Histogram` and `ReduceByIndex`.

    Parameters
    ----------
    workgroup_size : int, optional
        Invocations per workgroup, a power of two.
    vecs : int, optional
        vec4 per invocation and tile, 1 to 16.
    max_blocks : int, optional
        Largest number of workgroups, each of which counts several tiles and writes a table of counts.
    memory_words : int, optional
        Words of workgroup memory for counters. Bins that do not fit are counted by other workgroups, which read the
        same items.
    copies : int, optional
        Largest number of copies of the counters in workgroup memory, from 1 to 32; lanes take turns.
    merge : {None, "none", "quad", "tile"}, optional
        Which items of an invocation are counted at once if they are of one bin: four neighbours, or all of a tile, too.
    """

    workgroup_size: int | None = field(default=None, metadata=_by(_INVOCATIONS))
    vecs: int | None = field(default=None, metadata=_by(_VECS))
    max_blocks: int | None = field(default=None, metadata=_by(_positive))
    memory_words: int | None = field(default=None, metadata=_by(_positive))
    copies: int | None = field(default=None, metadata=_by(_from_to(1, 32)))
    merge: Literal["none", "quad", "tile"] | None = field(default=None, metadata=_by(_merge))


@dataclass(frozen=True, kw_only=True, repr=False)
class SortTuning(Tuning):
    """The tuning of `Sort`, `SortPairs` and `ArgSort`.

    Parameters
    ----------
    workgroup_size : int, optional
        Invocations of the kernels that rank and move keys, a multiple of 128 of at least 256.
    items : int, optional
        Keys per invocation and tile.
    parts : int, optional
        Number of parts in which a tile goes through workgroup memory; must divide `items`.
    look : int, optional
        ``"onesweep"`` only: tiles polled per round of a look-back, 1 to 32.
    tickets : bool, optional
        ``"onesweep"`` only: whether a workgroup takes its tile from a counter, in the order in which workgroups start.
        None uses tickets on CPU adapters and if the self-test of the device finds that they are needed.
    spin_limit : int, optional
        Total unsuccessful polls after which a workgroup recounts unpublished tiles itself. By default 256; 4096 on a
        CPU adapter, where the other workgroup may be waiting for a core.
    subgroups : None, bool or str, optional
        None uses subgroups if the device has them and is a GPU; False uses workgroup memory and barriers only.
        ``"emulated-8"`` emulates that size, for tests.
    """

    workgroup_size: int | None = field(default=None, metadata=_by(_multiple_of_128))
    items: int | None = field(default=None, metadata=_by(_positive))
    parts: int | None = field(default=None, metadata=_by(_positive))
    look: int | None = field(default=None, metadata=_by(_LOOK))
    tickets: bool | None = field(default=None, metadata=_by(_truth))
    spin_limit: int | None = field(default=None, metadata=_by(_word))
    subgroups: SubgroupsLike = field(default=None, metadata=_by(_subgroups))


@dataclass(frozen=True, kw_only=True, repr=False)
class SegmentedSortTuning(Tuning):
    """The tuning of `SegmentedSort`.

    Parameters
    ----------
    workgroup_size : int, optional
        Invocations of the kernels that rank keys, a multiple of 128 of at least 256.
    items : int, optional
        Keys per invocation, at most: a workgroup sorts up to ``workgroup_size * items`` at once.
    window : int, optional
        With offsets: a workgroup sorts the segments that begin in so many items, if they are short enough to fit.
        Longer ones are sorted by several workgroups.
    subgroups : None, bool or str, optional
        As for `SortTuning`.
    """

    workgroup_size: int | None = field(default=None, metadata=_by(_multiple_of_128))
    items: int | None = field(default=None, metadata=_by(_positive))
    window: int | None = field(default=None, metadata=_by(_positive))
    subgroups: SubgroupsLike = field(default=None, metadata=_by(_subgroups))


@dataclass(frozen=True, kw_only=True, repr=False)
class MatMulTuning(Tuning):
    """The tuning of `MatMul`.

    Parameters
    ----------
    tile_m, tile_n : int, optional
        Rows and columns of the output that a workgroup computes, powers of two from 16 to 256.
    tile_k : int, optional
        Steps along k that a tile in workgroup memory covers, a power of two from 4 to 64.
    thread_m, thread_n : int, optional
        Rows and columns of the output that an invocation computes, powers of two from 4 to 16.
    stages : int, optional
        1 or 2. With 2, the next tile is written to workgroup memory while the current one is read.
    unroll : int, optional
        Steps along k that are unrolled, a power of two of at most `tile_k`.
    """

    tile_m: int | None = field(default=None, metadata=_by(_power_of_two(16, 256)))
    tile_n: int | None = field(default=None, metadata=_by(_power_of_two(16, 256)))
    tile_k: int | None = field(default=None, metadata=_by(_power_of_two(4, 64)))
    thread_m: int | None = field(default=None, metadata=_by(_power_of_two(4, 16)))
    thread_n: int | None = field(default=None, metadata=_by(_power_of_two(4, 16)))
    stages: int | None = field(default=None, metadata=_by(_one_or_two))
    unroll: int | None = field(default=None, metadata=_by(_power_of_two(1, 64)))
