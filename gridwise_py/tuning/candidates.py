"""Which other shapes of a kernel are worth a measurement: those near to the one that it has, the nearest first."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from math import log2
from typing import TypeAlias

_Fields: TypeAlias = Mapping[str, int]

# By field: what its value is changed to. The numbers that kernels refuse are left out by whoever makes them.
_FACTORS: Mapping[str, tuple[float, ...]] = {
    "workgroup_size": (0.5, 2), "vecs": (0.5, 0.75, 1.5, 2), "max_blocks": (0.5, 1.5, 2),
    "tile_m": (0.5, 2), "tile_n": (0.5, 2), "tile_k": (0.5, 2), "thread_m": (0.5, 2), "thread_n": (0.5, 2),
    "unroll": (0.5, 2),
}  # fmt: skip
_STEPS: Mapping[str, tuple[int, ...]] = {"items": (-2, -1, 1, 2), "parts": (-1, 1), "look": (-1, 1), "stages": (-1, 1)}
# Of kernels that rank keys.
_STEP_OF_SORTS = 128
# Two changes at once count as much as one where they leave the size of a tile as it is.
_LEFT = 0.6


def candidates(fields: _Fields) -> Iterator[_Fields]:
    """Yield shapes that differ from one in a field or two, the nearest first."""
    others = {name: _values(name, fields) for name in fields}
    changes = [(name, value) for name, values in others.items() for value in values]
    found: list[tuple[float, _Fields]] = []
    for name, value in changes:
        found.append((_distance(fields[name], value), {**fields, name: value}))
    for (one, value), (two, other) in itertools.combinations(changes, 2):
        if one != two:
            changed = {**fields, one: value, two: other}
            apart = _distance(fields[one], value) + _distance(fields[two], other)
            found.append((apart * (_LEFT if _work(changed) == _work(fields) else 1), changed))
    for _, changed in sorted(found, key=lambda each: each[0]):
        yield changed


def _values(name: str, fields: _Fields) -> list[int]:
    value = fields[name]
    if name == "workgroup_size" and "items" in fields:
        return [value - _STEP_OF_SORTS, value + _STEP_OF_SORTS]
    if name in _FACTORS:
        changed = [round(value * factor) for factor in _FACTORS[name]]
    else:
        # A tile is a whole number of parts.
        unit = fields.get("parts", 1) if name == "items" else 1
        changed = [value + unit * step for step in _STEPS[name]]
    return [each for each in dict.fromkeys(changed) if each >= 1 and each != value]


def _distance(old: int, new: int) -> float:
    return abs(log2((new or 16) / (old or 16)))


def _work(fields: _Fields) -> int:
    """Return the size of a tile: of all numbers those that make it."""
    size = 1
    for name in ("workgroup_size", "vecs", "items", "tile_m", "tile_n"):
        size *= fields.get(name, 1)
    return size
