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
        Most workgroups.
    state : {None, "u64", "u32x2"}, optional
        As in `ScanTuning`.
    spin_limit : int, optional
        As in `ScanTuning`.
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
    team : int, optional
        Invocations that combine one row, a power of two.
    strip : int, optional
        Columns per workgroup, a power of two.
    max_blocks : int, optional
        Workgroups up to which rows and columns are cut.
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
        Reduce-then-scan, and `SegmentedReduce`: most workgroups.
    look : int, optional
        Look-back only: tiles that a lane polls at once, 1 to 32.
    tickets : bool, optional
        Look-back only: whether a workgroup takes its tile from a counter. None: on CPU adapters, and where the
        self-test finds it needed.
    state : {None, "u64", "u32x2"}, optional
        Form of the state words. None uses 64-bit atomics if the device has them.
    spin_limit : int, optional
        Polls after which a workgroup recomputes what is unpublished; 256 by default.
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
        Words of workgroup memory for items, a power of two from 64 to 4096, or 0.
    items : {None, "held", "late"}, optional
        Whether items stay in registers, or are read when they are written.
    order : {None, "tile", "subgroup"}, optional
        What orders items in workgroup memory.
    look : int, optional
        Look-back only: tiles that a lane polls at once, 1 to 32.
    ahead : int, optional
        Look-back only: how many tiles ahead of its own a workgroup counts.
    tickets : bool, optional
        As in `ScanTuning`.
    spin_limit : int, optional
        As in `ScanTuning`.
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
        Most workgroups.
    memory_words : int, optional
        Words of workgroup memory for counters; other workgroups count the bins that do not fit.
    copies : int, optional
        Most copies of the counters, from 1 to 32.
    merge : {None, "none", "quad", "tile"}, optional
        Which items of one bin are counted at once.
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
        Of the kernels that move keys, a multiple of 128 of at least 256.
    items : int, optional
        Keys per invocation and tile.
    parts : int, optional
        Of a tile in workgroup memory; must divide `items`.
    look : int, optional
        As in `ScanTuning`.
    tickets : bool, optional
        As in `ScanTuning`.
    spin_limit : int, optional
        As in `ScanTuning`; by default 4096 on a CPU adapter.
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
        As in `SortTuning`.
    items : int, optional
        Most keys per invocation: a workgroup sorts up to ``workgroup_size * items`` at once.
    window : int, optional
        With offsets: items whose segments a workgroup sorts, if they fit.
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
        Rows and columns of a workgroup, powers of two from 16 to 256.
    tile_k : int, optional
        Steps along k of a tile, a power of two from 4 to 64.
    thread_m, thread_n : int, optional
        Of an invocation, powers of two from 4 to 16.
    stages : int, optional
        With 2, the next tile is written while this one is read.
    unroll : int, optional
        Steps along k, a power of two of at most `tile_k`.
    """

    tile_m: int | None = field(default=None, metadata=_by(_power_of_two(16, 256)))
    tile_n: int | None = field(default=None, metadata=_by(_power_of_two(16, 256)))
    tile_k: int | None = field(default=None, metadata=_by(_power_of_two(4, 64)))
    thread_m: int | None = field(default=None, metadata=_by(_power_of_two(4, 16)))
    thread_n: int | None = field(default=None, metadata=_by(_power_of_two(4, 16)))
    stages: int | None = field(default=None, metadata=_by(_one_or_two))
    unroll: int | None = field(default=None, metadata=_by(_power_of_two(1, 64)))
