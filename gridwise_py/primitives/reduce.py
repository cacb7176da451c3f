"""Reduce: combine all items into one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import wgpu

from ..binop import Add, BinOp
from ..builder import PlanBuilder
from ..capabilities import Capabilities
from ..chained_state import ChainedState
from ..datatype import Datatype
from ..layout import Layout
from ..plan import Copy, Plan, Work
from ..tuning import shapes_for
from .operator_primitive import OperatorPrimitive, block_split

__all__ = ["Reduce"]


class Reduce(OperatorPrimitive):
    """Combine all items with an associative operator.

    The result keeps the datatype (integers wrap, unlike `numpy.sum`, which widens). The mapping of items to
    invocations is fixed, so that a float result is the same from run to run on one device. No items give the
    operator's identity; an empty minimum or maximum raises. NaN propagates, and −0 orders below +0, as in numpy.
    The GPU may flush denormals.

    Parameters
    ----------
    device : wgpu.GPUDevice
    datatype : Datatype, str or numpy dtype, default "u32"
    op : BinOp or str, default Add
        A non-commutative operator takes a path that keeps the order of the items.
    subgroups : None, bool or str, optional
        None chooses by what the device has; False uses workgroup memory and barriers only.
    state : {None, "u64", "u32x2"}, optional
        Form of the words that hold the blocks' totals; None takes 64-bit atomics where the device has them.
    workgroup_size, vecs : int, optional
        Shape of the kernel: invocations, and vec4 per invocation and tile.
    spin_limit : int, default 256
        Looks in vain before the last workgroup computes a block again.
    stall_every, epoch_bits : int, optional
        For tests: every so many blocks one never posts; width of the epoch.

    See Also
    --------
    Primitive.execute : takes ``input``, shape (n,), and ``output``, shape (1,).

    Notes
    -----
    One dispatch: each workgroup combines a block of tiles, and the last one to finish combines the blocks' totals. No
    workgroup waits for another. Reads 4 bytes per item.

    Examples
    --------
    >>> import numpy as np, gridwise_py as gw
    >>> device = gw.request_device()
    >>> x = gw.asarray(np.arange(10, dtype=np.uint32), device)
    >>> gw.Reduce(device, "u32", gw.Max).execute(input=x).output.to_numpy()
    array([9], dtype=uint32)
    """

    def __init__(
        self,
        device: wgpu.GPUDevice | None,
        datatype: Datatype | str | Any = "u32",
        op: BinOp | str = Add,
        *,
        subgroups: bool | str | None = None,
        state: str | None = None,
        workgroup_size: int | None = None,
        vecs: int | None = None,
        spin_limit: int = 256,
        stall_every: int = 0,
        epoch_bits: int | None = None,
        capabilities: Capabilities | None = None,
    ):
        super().__init__(device, datatype, op, subgroups=subgroups, capabilities=capabilities)
        self._state = ChainedState.choose(self.capabilities, state, epoch_bits, spin_limit, stall_every)
        self._shapes = shapes_for("reduce", self.capabilities, self.mode, workgroup_size=workgroup_size, vecs=vecs)

    def output_length(self, name: str, lengths: Mapping[str, int]) -> int:
        """One item."""
        return 1

    def may_overlap(self, output: str, argument: str, identical: bool) -> bool:
        """The result is written when everything has been read."""
        return True

    def plan(self, layout: Layout) -> Plan:
        """Return the plan: none, one or two dispatches."""
        item_bytes = self.datatype.itemsize_bytes
        operand, output = layout["input"], layout["output"]
        builder = PlanBuilder("reduce", layout, self.capabilities)
        n, blocks = operand.length, 0
        shape = self._shapes.at(n)
        if n == 0:
            bits = self.datatype.bits(self.op.empty_result(self.datatype))
            name = builder.constant("identity", (bits,))
            builder.step(Copy(name, 0, output.buffer, output.offset * item_bytes, item_bytes))
        else:
            _, _, blocks = block_split(n, shape)
            state = self._state.add_to(builder, blocks)
            for each in (shape, *self._shapes.others(n)):
                self._add_blocks(
                    builder, "reduce", "reduce.wgsl", each,
                    input=operand, output=output, posts=True, tickets=False, sibling=each != shape, **state,
                )  # fmt: skip
        return builder.build(
            Work(n, n * item_bytes, item_bytes, max(0, n - 1)),
            {
                "subgroups": str(self.mode),
                "workgroup_size": shape.workgroup_size,
                "vecs": shape.vecs,
                "shape": self._shapes.source,
                "blocks": blocks,
                **self._state.parameters(),
            },
        )

    def reference(self, input: np.ndarray) -> np.ndarray:
        """Return what numpy gives for the same input, shape (1,), in the input's dtype."""
        if input.size == 0:
            return np.array([self.op.empty_result(self.datatype)], dtype=input.dtype)
        return np.array([fold(self.op, input)], dtype=input.dtype)


def fold(op: BinOp, items: np.ndarray) -> Any:
    """Combine items from left to right, by the operator's numpy twin."""
    if isinstance(op.numpy, np.ufunc):
        wide = np.float64 if items.dtype.kind == "f" and op.numpy in (np.add, np.multiply) else items.dtype
        with np.errstate(all="ignore"):
            return op.numpy.reduce(items, dtype=wide)
    # Associativity allows halving, which keeps the order and needs few calls.
    while items.size > 1:
        odd = items[-1:] if items.size % 2 else items[:0]
        with np.errstate(all="ignore"):
            items = np.concatenate([op.numpy(items[:-1:2], items[1::2]).astype(items.dtype), odd])
    return items[0]
