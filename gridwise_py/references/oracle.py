"""The reference, error bound and operator of a primitive, for checks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np

from ..planning.layout import COUNT
from ..primitives.base import Primitive, ReferenceParts, reference_parts
from ..primitives.group_by import GroupBy, SortedItems, sorted_items
from ..types.datatype import Datatype
from ..types.operators import BinOp
from ..types.unary_operators import UnaryOp


@dataclass(frozen=True)
class Oracle:
    """Information on the right results of a primitive; None for parts that it does not provide.

    Attributes
    ----------
    reference : callable or None
        Takes its inputs as numpy arrays by name. Returns an array, or a tuple with one for each output.
    own_bound : callable or None
        Takes the same. Returns how much each item may differ from the reference.
    that_count : callable
        Takes the inputs by name, as a call does; returns those without ``n``, cut to it.
    parts : callable
        Returns the steps of the reference, with another operator or evaluation in place of its own if one is given.
    sorted_items : callable or None
        Of a group-by. Takes inputs by name; returns where each group begins, and what is combined.
    op : BinOp, UnaryOp or None
        The operator that combines its items, or is applied to each.
    datatype : Datatype or None
        Of its items.
    kind : {"inclusive", "exclusive"} or None
        Of a scan. Without it a result of an operator is one item.
    grouped : str or None
        The input whose items are combined in groups, of which only the reference knows the members.
    """

    reference: Callable[..., np.ndarray | tuple[np.ndarray, ...]] | None
    own_bound: Callable[..., np.ndarray] | None
    that_count: Callable[[Mapping[str, np.ndarray]], Mapping[str, np.ndarray]]
    parts: Callable[..., ReferenceParts]
    sorted_items: Callable[[Mapping[str, np.ndarray]], tuple[np.ndarray, list[SortedItems]]] | None
    op: BinOp | UnaryOp | None
    datatype: Datatype | None
    kind: Literal["inclusive", "exclusive"] | None
    grouped: str | None

    @classmethod
    def of(cls, primitive: Primitive) -> Oracle:
        """Return that of a primitive."""
        reference = primitive.reference if primitive.has_reference else None
        own_bound, *others = (
            getattr(primitive, name, None) for name in ("error_bound", "op", "datatype", "kind", "grouped")
        )
        groups = partial(sorted_items, primitive) if isinstance(primitive, GroupBy) else None
        cut, parts = partial(_that_count, primitive), partial(reference_parts, primitive)
        return cls(reference, own_bound, cut, parts, groups, *others)

    def expected(self, inputs: Mapping[str, np.ndarray]) -> tuple[np.ndarray, ...]:
        """Return the expected outputs, one array each; there must be a reference."""
        assert self.reference is not None
        return tuple_of(self.reference(**inputs))


def _that_count(primitive: Primitive, inputs: Mapping[str, np.ndarray]) -> Mapping[str, np.ndarray]:
    if not primitive.takes_count or COUNT not in inputs:
        return inputs
    n, is_counted = int(inputs[COUNT].item()), primitive.signature.is_counted
    return {name: items[:n] if is_counted(name) else items for name, items in inputs.items() if name != COUNT}


def tuple_of(arrays: np.ndarray | tuple[np.ndarray, ...]) -> tuple[np.ndarray, ...]:
    """Return what a reference returned as a tuple."""
    return arrays if isinstance(arrays, tuple) else (arrays,)
