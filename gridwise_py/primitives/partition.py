"""Partition: items in two or three parts, each in order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import wgpu

from ..call_errors import explained
from ..errors import ArgumentError
from ..planning.signature import Argument, SameAs, UpTo
from ..settings import ScanStrategy
from ..tuning.options import StreamTuning
from ..types.capabilities import Capabilities
from ..types.datatype import ITEM_DATATYPES, Datatype, ItemDatatypeLike
from ..types.expression import Operators
from .calls import PartitionCalls
from .engines.stream import FLAGS, Field, Mark, StreamPrimitive, count_argument
from .registry import register


@register("partition")
class Partition(PartitionCalls, StreamPrimitive):
    """Split items into those that a predicate marks and the rest, or into three parts; every part keeps the order.

    Parameters
    ----------
    device : wgpu.GPUDevice
    dtype : Datatype, str or numpy dtype, or expression, default "u32"
        As in `Select`.
    where : expression, or two of them, optional
        The predicates; the first that holds decides. Without them `execute` takes ``flags``, for three parts also
        ``second_flags``.
    parts : {2, 3}, optional
        By default 2, or as many as `where` says.
    flag_dtype : Datatype, str or numpy dtype, default "bool"
        As in `Select`.
    size, strategy, tuning, capabilities : optional
        As in `Select`.

    See Also
    --------
    execute : takes ``input`` and flags, shape (n,) each, or the leaves of the expressions; gives ``first``, ``second``
        of three, ``rest``, and ``counts``.

    Examples
    --------
    >>> import numpy as np, gridwise_py as gw
    >>> device = gw.request_device()
    >>> x = gw.asarray(np.array([3, 1, 4, 1, 5], dtype=np.uint32), device)
    >>> run = gw.Partition(device, gw.u32("x"), where=gw.u32("x") > 2).execute(x=x)
    >>> run.outputs["rest"].to_numpy()
    array([1, 1], dtype=uint32)
    """

    datatypes = ITEM_DATATYPES
    splits = True
    _label = "partition"
    arguments = (
        Argument("input"),
        Argument("flags", datatype="flag_datatype", length=SameAs("input", "every item needs one flag")),
        Argument("first", is_output=True, length=UpTo("input", count="counts")),
        Argument("rest", is_output=True, length=UpTo("input", count="counts", item=1)),
        count_argument("counts", 2),
    )

    @explained(StreamTuning.remedies())
    def __init__(
        self,
        device: wgpu.GPUDevice | None,
        dtype: ItemDatatypeLike | Operators = "u32",
        *,
        where: Operators | Sequence[Operators] | None = None,
        parts: int | None = None,
        flag_dtype: ItemDatatypeLike = "bool",
        size: int | None = None,
        strategy: ScanStrategy | None = None,
        tuning: StreamTuning | None = None,
        capabilities: Capabilities | None = None,
    ):
        predicates: list[Any] = [] if where is None else list(where) if isinstance(where, (list, tuple)) else [where]
        super().__init__(device, size=size, strategy=strategy, tuning=tuning, capabilities=capabilities)
        self.parts: int = (len(predicates) + 1 if predicates else 2) if parts is None else parts
        if self.parts not in (2, 3) or (predicates and len(predicates) != self.parts - 1):
            raise ArgumentError(
                f"Partition: {self.parts} parts with {len(predicates)} predicates; give one predicate for two parts, "
                f"or two for three"
            )
        self.datatype: Datatype = self._input("input", dtype, self.datatypes)
        names = ("flags", "second_flags")[: self.parts - 1]
        flags = predicates or [flag_dtype] * len(names)
        kinds = [self._input(name, of, FLAGS) for name, of in zip(names, flags, strict=True)]
        self.flag_datatype: Datatype = kinds[0]
        self.marks = tuple(Mark(name, kind) for name, kind in zip(names, kinds, strict=True))
        outputs = ("first", "rest") if self.parts == 2 else ("first", "second", "rest")
        self.fields = (Field(outputs, "input", self.datatype),)

    def _arguments(self) -> tuple[Argument, ...]:
        if self.parts == 2:
            return self.arguments
        outputs = self.fields[0].outputs
        return (
            *self.arguments[:2],
            Argument("second_flags", datatype=self.marks[1].datatype, length=SameAs("input")),
            *(
                Argument(name, is_output=True, length=UpTo("input", count="counts", item=k))
                for k, name in enumerate(outputs)
            ),
            count_argument("counts", len(outputs)),
        )

    def _twin(self, **inputs: np.ndarray) -> tuple[np.ndarray, ...]:
        items, left = inputs["input"], np.ones(inputs["input"].size, dtype=bool)
        found: list[np.ndarray] = []
        for mark in self.marks:
            marked = left & (inputs[mark.argument] != 0)
            found.append(items[marked])
            left &= ~marked
        found.append(items[left])
        return *found, np.array([part.size for part in found], dtype=np.uint32)
