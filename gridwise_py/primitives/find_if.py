"""FindIf: the first item for which a condition holds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import wgpu

from ..call_errors import explained
from ..planning.builder import PlanBuilder
from ..planning.kernel_request import KernelFile, Memory
from ..planning.layout import Layout
from ..planning.plan import Copy, Plan, Work
from ..planning.signature import Argument
from ..planning.windows import windows_of
from ..tuning.options import ElementwiseTuning
from ..tuning.shapes import shapes_for
from ..types.capabilities import Capabilities
from ..types.datatype import DATATYPES, STORAGE_DATATYPES, Datatype, ItemDatatypeLike, as_datatype
from ..types.expression import Operators, leaf
from ..types.expression_functions import truth
from .base import Primitive
from .calls import FindIfCalls
from .fusion import Fusion
from .registry import register


@register("find_if")
class FindIf(FindIfCalls, Primitive):
    """Find the first item for which a condition holds, or that is not 0.

    Parameters
    ----------
    device : wgpu.GPUDevice
    dtype : Datatype, str or numpy dtype, or expression, default "u32"
        The condition, such as ``gw.f32("x") > 3``; or the datatype of the items.
    tuning : ElementwiseTuning, optional
        Shape of the kernel; affects only the speed.
    capabilities : Capabilities, optional
        The capabilities to plan for, with None as device. By default those measured on the device.

    See Also
    --------
    execute : takes ``input``, shape (n,), or the leaves of the expression by their names; gives ``output`` of u32,
        shape (1,): the index, or the number of items if there is none.
    find_if, find : the functions.

    Notes
    -----
    One dispatch. A workgroup that starts after an earlier item was found reads nothing, so the time is about that of
    reading the items before the first one that is found. With ``trials=`` or in batches of trials all but the first
    one find it known, and tell no time.

    Examples
    --------
    >>> import numpy as np, gridwise_py as gw
    >>> device = gw.request_device()
    >>> x = gw.asarray(np.array([3, 1, 4, 1, 5], dtype=np.uint32), device)
    >>> gw.FindIf(device, gw.u32("x") > 3).execute(x=x).output.to_numpy()
    array([2], dtype=uint32)
    """

    takes_count = True
    datatypes: ClassVar[Mapping[str, Datatype]] = STORAGE_DATATYPES
    arguments = (
        Argument("input", chunked=True, any_shape=True),
        Argument("output", is_output=True, datatype=DATATYPES["u32"], length=1, overlap="any", any_shape=True),
    )

    @explained(ElementwiseTuning.remedies())
    def __init__(
        self,
        device: wgpu.GPUDevice | None,
        dtype: ItemDatatypeLike | Operators = "u32",
        *,
        tuning: ElementwiseTuning | None = None,
        capabilities: Capabilities | None = None,
    ):
        super().__init__(device, capabilities=capabilities)
        self.datatype: Datatype = as_datatype(self._take(dtype), self.datatypes)
        if self._fusion is None and self.datatype.itemsize_bytes < 4:
            # Expressions read items of 1 and 2 bytes several at a time.
            self._take(truth(leaf("input", self.datatype)))
        self._is_narrow: bool = self.datatype.itemsize_bytes < 4
        self.tuning: ElementwiseTuning = ElementwiseTuning.of(tuning)
        self._shapes = shapes_for("top_k", self.capabilities, tuning=self.tuning)

    @property
    def _asked_fusions(self) -> tuple[Fusion, ...]:
        return () if self._is_narrow else self._fusions

    def plan(self, layout: Layout) -> Plan:
        """Return the plan: one dispatch for each window."""
        builder = PlanBuilder("find_if", layout, self.capabilities)
        layout = self._reads(layout)
        items, output = layout["input"], layout["output"]
        n, item_bytes = items.length, items.item_bytes
        nothing = builder.constant("nothing", (n, 0, 0, 0))
        shape = self._shapes.at(n)
        windows = windows_of(layout, ["input"], self.capabilities, shape.tile_items) if n else []
        if windows:
            found = builder.scratch("found", 1)
            builder.step(Copy(nothing, 0, found.buffer, 0, 4))
            kind = self._fusion.datatype.dtype.kind if self._fusion else self.datatype.dtype.kind
            for window in windows:
                for each in (shape,) if window.index else self._shapes.all_for(n):
                    tiles = -(-window.length // each.tile_items)
                    builder.kernel(
                        window.label("find"),
                        KernelFile(
                            "find.wgsl",
                            context={"item_bytes": item_bytes, "kind": kind, "vecs": each.vecs},
                            constants={"WORKGROUP_SIZE": each.workgroup_size},
                        ),
                        Memory(reads=window.operands, atomics={"found": (found, "array<atomic<u32>>")}),
                        params={
                            "n": window.length,
                            "tiles": tiles,
                            "window_first": window.first,
                            **({"length": n} if builder.count is not None else {}),
                        },
                        extent="tiles",
                        sibling=each != shape,
                        counted_from=window.first,
                    )
            builder.step(Copy(found.buffer, 0, output.buffer, output.first_byte, 4))
        else:
            builder.step(Copy(nothing, 0, output.buffer, output.first_byte, 4))
        counted = builder.counted_work(n, items.nbytes // max(n, 1), 0)
        work = Work(n, items.nbytes, 4, counted=counted)
        return builder.build(work, {"workgroup_size": shape.workgroup_size, "vecs": shape.vecs})

    @classmethod
    def at_size(cls, n: int, **axes: Any) -> tuple[dict[str, Any], dict[str, int]]:
        """Return no options, and the length of the input."""
        return {}, {"input": n}

    def _reference(self, input: np.ndarray) -> np.ndarray:
        """Return numpy's result for the same input."""
        found = np.flatnonzero(input)
        return np.array([found[0] if found.size else input.size], dtype=np.uint32)
