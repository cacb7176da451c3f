"""The ``tuning=`` of constructors: a frozen dataclass for each family of primitives.

Each field changes only the speed of a primitive, apart from the rounding of float sums. None leaves the choice to the
tables of this package, or to the results of `gridwise tune` on the adapter. An object checks its fields; the limits
of a device are checked when a primitive is constructed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Literal, Self, TypeAlias

from ..errors import ArgumentError
from ..planning.lookback_state import STATES
from ..types.capabilities import Capabilities, SubgroupsLike
from ..types.options import MOST_U32, integer, one_of

StateForm: TypeAlias = Literal["u64", "u32x2"]
# Takes the name and the value of a field, and returns the value as it is kept.
_Check: TypeAlias = Callable[[str, Any], Any]
# With subgroups, so that only words that mean nothing on any device are refused.
_ANY_DEVICE = Capabilities(subgroup_size=32)


@dataclass(frozen=True, kw_only=True, repr=False)
class Tuning:
    """Base of all tuning classes."""

    #: The checks of fields that have other values here than elsewhere.
    _own_checks: ClassVar[Mapping[str, _Check]] = {}

    def __post_init__(self) -> None:
        for name, value in self.to_dict().items():
            object.__setattr__(self, name, (self._own_checks.get(name) or _CHECKS[name])(name, value))

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


def _one_of(*words: str) -> _Check:
    return lambda name, value: one_of(name, value, words)


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


def _positive(name: str, value: Any) -> int:
    return integer(name, value, 1)


def _word(name: str, value: Any) -> int:
    number = integer(name, value, 1)
    if number > MOST_U32:
        raise ArgumentError(f"{name}={number} does not fit into 32 bits, which kernels use for it")
    return number


def _multiple_of_128(name: str, value: Any) -> int:
    number = integer(name, value)
    if number % 128 or number < 256:
        raise ArgumentError(f"{name}={number} must be a multiple of 128, and at least 256")
    return number


def _truth(name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise ArgumentError(f"{name}={value!r} must be True, False or None")
    return value


def _stage_items(name: str, value: Any) -> int:
    return integer(name, value) if value == 0 else _power_of_two(64, 4096)(name, value)


def _subgroups(name: str, value: Any) -> Any:
    del name
    _ANY_DEVICE.subgroup_mode(value)
    return value


#: The values that a field may have, whatever the family.
_CHECKS: Mapping[str, _Check] = {
    "workgroup_size": _power_of_two(1),
    "vecs": _from_to(1, 16),
    "max_blocks": _word,
    "team": _power_of_two(1),
    "strip": _power_of_two(1),
    "look": _from_to(1, 32),
    "tickets": _truth,
    "state": _one_of(*STATES),
    "spin_limit": _word,
    "subgroups": _subgroups,
    "stage": _stage_items,
    "order": _one_of("tile", "subgroup"),
    "items": _positive,
    "parts": _positive,
    "window": _positive,
    "memory_words": _positive,
    "copies": _from_to(1, 32),
    "merge": _one_of("none", "quad", "tile"),
    "tile_m": _power_of_two(16, 256),
    "tile_n": _power_of_two(16, 256),
    "tile_k": _power_of_two(4, 64),
    "thread_m": _power_of_two(4, 16),
    "thread_n": _power_of_two(4, 16),
    "stages": _from_to(1, 2),
    "unroll": _power_of_two(1, 64),
}


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

    workgroup_size: int | None = None
    vecs: int | None = None


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

    workgroup_size: int | None = None
    vecs: int | None = None
    max_blocks: int | None = None
    state: StateForm | None = None
    spin_limit: int | None = None
    subgroups: SubgroupsLike = None


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

    workgroup_size: int | None = None
    vecs: int | None = None
    team: int | None = None
    strip: int | None = None
    max_blocks: int | None = None
    subgroups: SubgroupsLike = None


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

    workgroup_size: int | None = None
    vecs: int | None = None
    max_blocks: int | None = None
    look: int | None = None
    tickets: bool | None = None
    state: StateForm | None = None
    spin_limit: int | None = None
    subgroups: SubgroupsLike = None


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
    tickets : bool, optional
        As in `ScanTuning`.
    spin_limit : int, optional
        As in `ScanTuning`.
    subgroups : None, bool or str, optional
        As in `ScanTuning`.
    """

    _own_checks: ClassVar[Mapping[str, _Check]] = {"items": _one_of("held", "late")}

    workgroup_size: int | None = None
    vecs: int | None = None
    stage: int | None = None
    items: Literal["held", "late"] | None = None
    order: Literal["tile", "subgroup"] | None = None
    look: int | None = None
    tickets: bool | None = None
    spin_limit: int | None = None
    subgroups: SubgroupsLike = None


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

    _own_checks: ClassVar[Mapping[str, _Check]] = {"max_blocks": _positive}

    workgroup_size: int | None = None
    vecs: int | None = None
    max_blocks: int | None = None
    memory_words: int | None = None
    copies: int | None = None
    merge: Literal["none", "quad", "tile"] | None = None


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

    _own_checks: ClassVar[Mapping[str, _Check]] = {"workgroup_size": _multiple_of_128}

    workgroup_size: int | None = None
    items: int | None = None
    parts: int | None = None
    look: int | None = None
    tickets: bool | None = None
    spin_limit: int | None = None
    subgroups: SubgroupsLike = None


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

    _own_checks: ClassVar[Mapping[str, _Check]] = {"workgroup_size": _multiple_of_128}

    workgroup_size: int | None = None
    items: int | None = None
    window: int | None = None
    subgroups: SubgroupsLike = None


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

    tile_m: int | None = None
    tile_n: int | None = None
    tile_k: int | None = None
    thread_m: int | None = None
    thread_n: int | None = None
    stages: int | None = None
    unroll: int | None = None
