"""Workloads: what runs under each name of the command line, which axes change it, and on which data.

A new primitive needs no line here: `register` gives it a name, `Primitive.at_size` the options of its constructor and
the lengths of its inputs, and its inputs are random items. It gets a row of `_ROWS` if it has axes of its own, or if
random items are no inputs for it. A new axis is a row of `USUAL_AXES` and of `sweep.axes.AXES`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ... import Datatype, Primitive, SegmentedTopK
from ...internals import REGISTRY
from .data import (
    RANGE_DATA,
    Maker,
    equal_segments,
    flags,
    late_flags,
    middle_places,
    permutation,
    random_counts,
    random_indices,
    random_runs,
    scattered_keys,
)
from .distributions import UNIFORM
from .own_primitives import STRUCT_REDUCTIONS, GroupSums, PermutedItems, ScatteredRanges


@dataclass(frozen=True)
class Workload:
    """What a benchmark runs under a name.

    Attributes
    ----------
    kind : type
        The class, which is made for a device with the options of `Primitive.at_size`.
    axes : tuple of str
        What it depends on besides n and datatype: ``op``, ``distribution``, and further ones, which
        `Primitive.at_size` and the makers of data receive.
    data : mapping from str to callable
        Makers of the inputs that are not just random items, by argument.
    datatype : str
        The constructor's option that the axis of this name sets.
    distributed : str or None
        The input that the axis ``distribution`` is for; None for the first.
    """

    kind: type[Primitive]
    axes: tuple[str, ...] = ()
    data: Mapping[str, Maker] = field(default_factory=dict[str, Maker])
    datatype: str = "dtype"
    distributed: str | None = None

    @property
    def datatypes(self) -> Mapping[str, Datatype]:
        """Those that it is measured with."""
        return self.kind.datatypes


#: The usual values of the axes besides n, datatype and mode.
USUAL_AXES: Mapping[str, str] = {
    "op": "add",
    "distribution": UNIFORM,
    "run": "8",
    "segment": "1024",
    "share": "0.5",
    "bins": "256",
    "k": "100",
    "along": "rows",
}

#: The rows that differ from the usual one.
_ROWS: Mapping[str, Workload] = {
    **{name: Workload(REGISTRY[name], ("op",)) for name in ("reduce", "scan")},
    **{name: Workload(REGISTRY[name], ("distribution",)) for name in ("sort", "sort_pairs", "argsort")},
    "find_if": Workload(REGISTRY["find_if"], ("share",), {"input": late_flags}),
    "select": Workload(REGISTRY["select"], ("share",), {"flags": flags}),
    "partition": Workload(REGISTRY["partition"], ("share",), {"flags": flags}),
    "unique": Workload(REGISTRY["unique"], ("run",), {"keys": random_runs}),
    "run_length": Workload(REGISTRY["run_length"], ("run",), {"keys": random_runs}),
    "scan_by_key": Workload(REGISTRY["scan_by_key"], ("op", "run"), {"keys": random_runs}, datatype="value_dtype"),
    "reduce_by_key": Workload(REGISTRY["reduce_by_key"], ("op", "run"), {"keys": random_runs}, datatype="value_dtype"),
    "segmented_scan": Workload(REGISTRY["segmented_scan"], ("op", "segment"), {"offsets": equal_segments}),
    "segmented_reduce": Workload(REGISTRY["segmented_reduce"], ("op", "segment"), {"offsets": equal_segments}),
    "reduce_axis": Workload(REGISTRY["reduce_axis"], ("op", "segment", "along")),
    "repeat": Workload(REGISTRY["repeat"], ("run",), {"counts": random_counts}),
    "histogram": Workload(REGISTRY["histogram"], ("bins", "distribution")),
    "reduce_by_index": Workload(
        REGISTRY["reduce_by_index"], ("op", "bins"), {"indices": random_indices}, datatype="value_dtype"
    ),
    "nth_element": Workload(REGISTRY["nth_element"], ("distribution",), {"places": middle_places}),
    "top_k": Workload(REGISTRY["top_k"], ("k", "distribution")),
    "segmented_sort": Workload(REGISTRY["segmented_sort"], ("segment", "distribution")),
    "segmented_top_k": Workload(SegmentedTopK, ("k", "segment", "distribution"), {"offsets": equal_segments}),
    "search": Workload(REGISTRY["search"], ("distribution",), distributed="queries"),
    "scatter": Workload(PermutedItems, (), {"indices": permutation}),
    "copy_ranges": Workload(ScatteredRanges, ("run",), RANGE_DATA),
    "group_by": Workload(GroupSums, ("run",), {"keys": scattered_keys}),
    **{name: Workload(kind) for name, kind in STRUCT_REDUCTIONS.items()},
}


#: By name: all primitives of the registry, and others.
WORKLOADS: Mapping[str, Workload] = {
    name: _ROWS[name] if name in _ROWS else Workload(REGISTRY[name]) for name in dict.fromkeys((*REGISTRY, *_ROWS))
}
