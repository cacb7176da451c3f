"""Reduce: combine all items into one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import wgpu

from ..call_errors import explained
from ..planning.builder import PlanBuilder
from ..planning.kernel_constants import RAW_INPUT, RAW_OUTPUT
from ..planning.layout import Layout, Operand
from ..planning.lookback_state import ChainedState
from ..planning.plan import Copy, Plan, Work
from ..planning.signature import Argument
from ..tuning.options import ReduceTuning
from ..tuning.rows import Shape
from ..types.capabilities import Capabilities
from ..types.datatype import Datatype, ItemDatatypeLike, Struct
from ..types.expression import Operators
from ..types.operators import Add, BinOp, BinOpLike
from ..types.struct_operators import ArgMax, ArgMinMax, ArgOp, Moments, SpreadOp, rank_text
from .calls import ReduceCalls
from .engines.operator import BlockWindow, OperatorPrimitive, blocks_of, over_blocks
from .registry import register


@register("reduce")
class Reduce(ReduceCalls, OperatorPrimitive):
    """Combine all items by an operator.

    Integers wrap. NaN propagates, and −0 is less than +0. The GPU may flush denormals. An empty minimum raises, unless
    only the GPU knows that it is empty: then it gives the identity. Float results are reproducible on one device.

    Parameters
    ----------
    device : wgpu.GPUDevice
    dtype : Datatype, str or numpy dtype, default "u32"
    op : BinOp or str, default Add
        A non-commutative operator keeps the order of the items.
    result_dtype : Datatype, str or numpy dtype, optional
        Of the results, and what items are combined as; by default that of the items. Items of 1 and 2 bytes are read
        as such: a sum of uint8 as uint64 takes the time of the bytes.
    output : Expression, optional
        What is stored in place of a result: an expression of ``gw.result``, ``gw.index`` and numbers, such as
        ``gw.result / 2``. The fields of a struct are attributes, ``gw.result.sum / gw.result.count``.
    deterministic : bool, default False
        For floats: the same bits on every run and on every adapter that rounds according to IEEE 754, for any subgroup
        size. Integers, minima and maxima always have this property; the option does not affect them.
    compensated : bool, default False
        For float sums: also sums the rounding error of every addition, so the error of the result hardly grows with n;
        see Notes. Implies `deterministic`. Integer sums are exact modulo 2³², and unaffected. Other operators raise.
    tuning : ReduceTuning, optional
        Options that affect only the speed; see `ReduceTuning`. By default the library's, or those from
        ``gridwise tune``.
    capabilities : Capabilities, optional
        The capabilities to plan for, with None as device. By default those measured on the device.

    Raises
    ------
    DatatypeError
        If the operator does not combine such items, the device does not compute with them, or, in a call, an Array
        holds others.
    ArgumentError
        If an option is unknown, or two do not go together.
    EmptyReductionError
        In a call, for the minimum or maximum of no items.

    See Also
    --------
    execute : takes ``input``, shape (n,), and ``output``, shape (1,).

    Notes
    -----
    One dispatch: each workgroup combines a block of tiles, and the last one to finish combines the blocks' totals. No
    workgroup waits for another. It reads each item once. Where the device has 64-bit atomics, one word holds the sum
    of integers of up to 32 bits, and how many blocks are in it. An input that is larger than a binding of the device,
    or a `ChunkedArray`, takes one dispatch per window (``windows`` in ``plan.parameters``) and one that combines all
    totals. Sources: the last workgroup is that of NVIDIA's sample threadFenceReduction; the blocks are G. Blelloch,
    "Prefix sums and their applications" (1990).

    **Float sums** round. The result is within γ(h)·Σ|x| of the exact one, where γ(h) = h·u/(1 − h·u), u = 2⁻²⁴, and h
    is the largest number of additions that involve an item (N. Higham, "Accuracy and stability of numerical
    algorithms", 2002, section 4.2). With w = ``workgroup_size``, v = ``vecs`` and b = ``blocks`` of
    ``plan.parameters``, h is at most v·⌈⌈n/(4·w·v)⌉/b⌉ + ⌈b/w⌉ + 2·w + 4: about 1,000 at 2²⁸ items on a GPU.
    A device that flushes denormals may add n·2⁻¹²⁶. The bounds hold unless something overflows. In windows the first
    term is that of the window with the longest blocks, with its n and b.

    **Deterministic** reductions combine without subgroups, in tiles of 4,096 items and at most 528 blocks, with any
    tuning; h is then at most 4·⌈⌈n/4096⌉/b⌉ + 21. Kernels prevent the compiler from reassociating an addition or
    multiplication (docs/contribute/algorithms.md). A NaN always has the bits ``0x7fc00000``. If denormals occur, a
    device that flushes them can differ from others. The WGSL of a user's operator is not protected: a compiler may
    contract a·b + c on one adapter and not on another. The order may change with the version of this library; the
    changelog then says so. Windows do not change the bits. For a `ChunkedArray` the order also depends on the lengths
    of its chunks.

    **Compensated** sums take two dispatches, with the same tiles, and about 14 operations per item. The result is
    within u·|Σx| + 2·(h·u)²·Σ|x| of the exact sum, with h = 4·⌈⌈n/4096⌉/b⌉ + 21: almost as if it were computed with
    twice the precision and rounded once. Infinities, NaN and overflow behave as in plain additions in the same order.
    Sources: D. Knuth's TwoSum ("The art of computer programming", volume 2, 4.2.2); T. Ogita, S. Rump and S. Oishi,
    "Accurate sum and dot product" (2005), proposition 4.5, here along a tree.

    Examples
    --------
    >>> import numpy as np, gridwise_py as gw
    >>> device = gw.request_device()
    >>> x = gw.asarray(np.arange(10, dtype=np.uint32), device)
    >>> gw.Reduce(device, "u32", gw.Max).execute(input=x).output.to_numpy()
    array([9], dtype=uint32)
    """

    takes_count = True
    # Any overlap is allowed: the result is written after everything was read.
    arguments = (
        Argument("input", chunked=True, any_shape=True),
        Argument("output", is_output=True, datatype="output_datatype", length=1, overlap="any", any_shape=True),
    )

    @explained(ReduceTuning.remedies())
    def __init__(
        self,
        device: wgpu.GPUDevice | None,
        dtype: ItemDatatypeLike | Operators = "u32",
        op: BinOpLike = Add,
        *,
        result_dtype: ItemDatatypeLike | None = None,
        output: Operators | None = None,
        deterministic: bool = False,
        compensated: bool = False,
        tuning: ReduceTuning | None = None,
        capabilities: Capabilities | None = None,
    ):
        self.tuning: ReduceTuning = ReduceTuning.of(tuning)
        super().__init__(
            device, dtype, op, result_dtype=result_dtype, deterministic=deterministic, compensated=compensated,
            subgroups=self.tuning.subgroups, output=output, capabilities=capabilities,
        )  # fmt: skip
        self._state = ChainedState.choose(self.capabilities, self.tuning.state, self.tuning.spin_limit, self._faults)
        self._partial = self._partial_context()
        self._shapes = self._shapes_for("reduce", self.tuning)

    def _partial_context(self) -> dict[str, Any]:
        """Return how an invocation makes one accumulator of its items of a tile; empty where it combines them."""
        if self.op == Moments:
            assert isinstance(self.result_datatype, Struct), "the operator takes nothing else"
            origin = [of.wgsl for _, of in self.result_datatype.fields[1:-2]]
            return {"partial": "moments", "branch_free": True, "origin": origin}
        if isinstance(self.op, SpreadOp):
            return {"partial": "spread", "branch_free": True, "distances_of": self.op.items, "pads": True}
        if not (isinstance(self.op, ArgOp) or self.op == ArgMinMax) or self._fusion is None:
            return {}
        # Their order must be that of the indices.
        program = self._fusion.flat.program
        if any(program.steps[k].kind != "index" for k in program.results[1::2]):
            return {}
        assert isinstance(self.result_datatype, Struct), "the operator takes nothing else"
        value = self.result_datatype.fields[0][1].wgsl
        sides = [self.op == ArgMax] if isinstance(self.op, ArgOp) else [False, True]
        return {"partial": "arg", "value": value, "sides": [(largest, rank_text(value, largest)) for largest in sides]}

    @property
    def _words_held(self) -> int:
        # One accumulator for each invocation, and the items of a tile as they were read.
        return 1 if self._partial and self._fusion is not None else super()._words_held

    def with_datatypes(self, items: Datatype, results: Datatype) -> Reduce:
        """Return a reduction with the same options for items and results of other datatypes; itself for its own."""
        if (items, results) == (self.datatype, self.result_datatype):
            return self
        return self.replace(dtype=items, result_dtype=results, output=None)

    def plan(self, layout: Layout) -> Plan:
        """Return the plan: at most two dispatches; with several windows one each and one more."""
        result_bytes = self.output_datatype.itemsize_bytes
        builder = PlanBuilder("reduce", layout, self.capabilities)
        layout = self._reads(layout)
        n = self._items_in(layout["input"])
        shape = self._shapes.at(n)
        windows = self._block_windows(layout, ["input"], shape)
        blocks = blocks_of(windows)
        if n == 0:
            self._plan_empty(builder, layout, shape)
        else:
            several = self._plan_windows if len(windows) > 1 else self._plan_plain
            plan = self._plan_compensated if self.compensated else several
            plan(builder, layout, shape, windows)
        return builder.build(
            Work(
                n,
                layout["input"].nbytes,
                result_bytes,
                max(0, n - 1),
                builder.counted_work(n, layout["input"].nbytes // max(n, 1), 0),
            ),
            {
                "subgroups": str(self.mode),
                "deterministic": self.deterministic,
                "compensated": self.compensated,
                "workgroup_size": shape.workgroup_size,
                "vecs": shape.vecs,
                "shape": self._shapes.source_of(shape),
                "blocks": blocks,
                "windows": len(windows),
                **({} if self.compensated else self._state.parameters()),
            },
        )

    def _plan_empty(self, builder: PlanBuilder, layout: Layout, shape: Shape) -> None:
        """Write the result of no items."""
        result, output = self.op.empty_result(self.result_datatype), layout["output"]
        if self.result_datatype.itemsize_bytes >= 4 and self._mapped is None:
            words = self.result_datatype.words(result)
            builder.step(Copy(builder.constant("identity", words), 0, output.buffer, output.first_byte, 4 * len(words)))
            return
        # Copies move whole words, of which others may have parts: combine no tiles.
        nothing = Operand(
            0, builder.constant("nothing", (0, 0, 0, 0)), size_bytes=16, item_bytes=layout["input"].item_bytes
        )
        self._add_blocks(
            builder, "reduce", "reduce_blocks.wgsl", shape, input=nothing, output=output, split=(0, 1, 1),
            **self._partial,
        )  # fmt: skip

    def _plan_plain(self, builder: PlanBuilder, layout: Layout, shape: Shape, windows: Sequence[BlockWindow]) -> None:
        (only,) = windows
        operand = only.window.operands["input"]
        if self.op == Add and self._accumulator.wgsl in ("u32", "i32") and self._state.form == "u64":
            state = self._state.add_sum_to(builder)
        else:
            state = self._state.add_to(builder, only.blocks, words=self._accumulator.words)
        for each in self._shapes.all_for(self._items_in(operand)):
            self._add_blocks(
                builder, "reduce", "reduce.wgsl", each, input=operand, output=layout["output"],
                tickets=False, sibling=each != shape, counted=True, **state, **self._partial,
            )  # fmt: skip

    def _plan_windows(self, builder: PlanBuilder, layout: Layout, shape: Shape, windows: Sequence[BlockWindow]) -> None:
        """Write the totals of all blocks, window by window, and combine them as a single dispatch would."""
        words = self._accumulator.words
        totals = builder.scratch("totals", words * blocks_of(windows))
        for each in windows:
            self._add_blocks(
                builder, each.window.label("reduce"), "reduce_blocks.wgsl", shape, input=each.window.operands["input"],
                output=each.of_blocks(totals, words), split=each.split, flags=RAW_OUTPUT, **self._partial,
            )  # fmt: skip
        self._add(
            builder, "combine", "reduce_totals.wgsl", shape, input=totals, output=layout["output"],
            params={"blocks": blocks_of(windows)}, extent=None, flags=RAW_INPUT,
        )  # fmt: skip

    def _plan_compensated(
        self, builder: PlanBuilder, layout: Layout, shape: Shape, windows: Sequence[BlockWindow]
    ) -> None:
        pairs = self._add_block_pairs(builder, shape, windows)
        self._add(
            builder, "sum", "reduce_compensated_totals.wgsl", shape, input=pairs, output=layout["output"],
            extent=None, **over_blocks(builder, blocks_of(windows), shape, self._items_in(layout["input"])),
        )  # fmt: skip

    def _reference(self, input: np.ndarray) -> np.ndarray:
        """Return numpy's result for the same input, shape (1,), in the dtype of the result."""
        dtype = self.result_datatype.dtype
        if input.size == 0:
            return np.array([self.op.empty_result(self.result_datatype)], dtype=dtype)
        with np.errstate(over="ignore"):
            return np.array([fold(self.op, input.astype(dtype))]).astype(dtype)


def fold(op: BinOp, items: np.ndarray) -> Any:
    """Combine items from left to right, by the operator's numpy twin."""
    if isinstance(op.numpy, np.ufunc):
        wide = np.float64 if items.dtype.kind == "f" and op.numpy in (np.add, np.multiply) else items.dtype
        with np.errstate(all="ignore"):
            return op.numpy.reduce(items, dtype=wide)
    # Pairwise halving keeps the order and needs few calls; the operator is associative.
    while items.size > 1:
        odd = items[-1:] if items.size % 2 else items[:0]
        with np.errstate(all="ignore"):
            items = np.concatenate([op.numpy(items[:-1:2], items[1::2]).astype(items.dtype), odd])
    return items[0]
