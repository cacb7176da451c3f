"""The reference, error bound and operator of a primitive, for checks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from ... import BinOp, Datatype, Primitive, UnaryOp

__all__ = ["Oracle"]


@dataclass(frozen=True)
class Oracle:
    """Information on the right results of a primitive; None for parts that it does not provide.

    Attributes
    ----------
    reference : callable or None
        Takes its inputs as numpy arrays by name. Returns an array, or a tuple with one for each output.
    own_bound : callable or None
        Takes the same. Returns how much each item may differ from the reference.
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
    op: BinOp | UnaryOp | None
    datatype: Datatype | None
    kind: Literal["inclusive", "exclusive"] | None
    grouped: str | None

    @classmethod
    def of(cls, primitive: Primitive) -> Oracle:
        """Return that of a primitive."""
        names = ("error_bound", "op", "datatype", "kind", "grouped")
        reference = primitive.reference if primitive.has_reference else None
        return cls(reference, *(getattr(primitive, name, None) for name in names))

    def expected(self, inputs: Mapping[str, np.ndarray]) -> tuple[np.ndarray, ...]:
        """Return the expected outputs, one array each; there must be a reference."""
        assert self.reference is not None
        arrays = self.reference(**inputs)
        return arrays if isinstance(arrays, tuple) else (arrays,)
