"""Scan: all prefix sums, inclusive or exclusive."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
import wgpu

from ..call_errors import explained
from ..errors import ArgumentError, OverlapError
from ..planning.builder import PlanBuilder
from ..planning.kernel_constants import HAS_CARRY, RAW_INPUT, RAW_OUTPUT
from ..planning.kernel_request import KernelFile, Memory
from ..planning.layout import COUNT, Layout, Operand
from ..planning.plan import Plan, Work
from ..planning.signature import Argument, SameAs
from ..planning.windows import part_of, windows_of
from ..settings import ScanStrategy
from ..tuning.options import ScanTuning
from ..types.capabilities import Capabilities
from ..types.datatype import Datatype, ItemDatatypeLike
from ..types.expression import Operators
from ..types.operators import Add, BinOp, BinOpLike, memory_context, operator_context
from ..types.options import one_of
from .calls import ScanCalls
from .engines.look_back import LookBackPrimitive
from .engines.operator import blocks_of, over_blocks, wider
from .registry import register

ScanKind: TypeAlias = Literal["inclusive", "exclusive"]
KINDS: tuple[ScanKind, ...] = get_args(ScanKind)

_INITIAL = Argument("initial", datatype="result_datatype", length=1, any_shape=True, in_order=False)

# lavapipe ends all loops of an invocation after 65,535 iterations; a recomputed tile takes about 100.
_MAX_TILES_WITHOUT_TICKETS_ON_CPU = 256


@register("scan")
class Scan(ScanCalls, LookBackPrimitive):
    """Compute all prefix sums, under any operator.

    Item i of the output combines items 0 to i of the input (inclusive), or 0 to i − 1 (exclusive, where item 0 is the
    operator's identity). Integers wrap. NaN propagates, and −0 is less than +0. The GPU may flush denormals. In place
    is possible.

    Parameters
    ----------
    device : wgpu.GPUDevice
    dtype : Datatype, str or numpy dtype, default "u32"
    op : BinOp or str, default Add
    kind : {"inclusive", "exclusive"}
    result_dtype : Datatype, str or numpy dtype, optional
        Of the results, and what items are combined as; by default that of the items. Items of 1 and 2 bytes are read
        as such: a sum of uint8 as uint64 takes the time of the bytes.
    strategy : {"auto", "reduce_then_scan", "lookback"}, optional
        ``"lookback"`` reads and writes each item once, in one dispatch: a chained scan with decoupled look-back and
        fallback. ``"reduce_then_scan"`` reads each item twice, in three dispatches, and no workgroup ever waits for
        another. ``"auto"`` takes look-back, except in place and on devices whose self-test finds look-back unsafe;
        then it takes reduce-then-scan. The self-test takes about 100 ms when a device's first scan is bound, and its
        result is kept on disk. Plans without a device assume that look-back is safe, except on CPU adapters. The
        default is the environment variable ``GRIDWISE_SCAN_STRATEGY`` (in place always reduce-then-scan), else
        ``"auto"``. ``run.plan.parameters["strategy"]`` has the choice.
    output : Expression, optional
        What is stored in place of a result: an expression of ``gw.result``, ``gw.index`` and numbers, such as
        ``gw.result / 2``. The fields of a struct are attributes, ``gw.result.sum / gw.result.count``.
    deterministic : bool, default False
        For floats: the same bits on every run and on every adapter that rounds according to IEEE 754, for any subgroup
        size, in place or not; see Notes for the cost. Integers, minima and maxima always have this property; the option
        does not affect them.
    compensated : bool, default False
        For float sums: also sums the rounding error of every addition, so the error of a prefix hardly grows with its
        length; see Notes. Implies `deterministic`. Integer sums are exact modulo 2³², and unaffected. Other operators
        raise.
    initial : bool, default False
        Whether calls take ``initial``, an Array of one item, which comes in front of all items.
    tuning : ScanTuning, optional
        Options that affect only the speed; see `ScanTuning`. By default the library's, or those from ``gridwise tune``.
    capabilities : Capabilities, optional
        The capabilities to plan for, with None as device. By default those measured on the device.

    Raises
    ------
    DatatypeError
        If the operator does not combine such items, the device does not compute with them, or, in a call, an Array
        holds others.
    ArgumentError
        If an option is unknown, or two do not go together.
    LengthError
        In a call, if the output has no room for the result.
    OverlapError
        In a call, if the output overlaps the input, and is not the same view.

    See Also
    --------
    execute : takes ``input`` and ``output``, shape (n,) each; with ``initial=True``, ``initial``.

    Notes
    -----
    An array that is larger than a binding of the device, or a `ChunkedArray`, takes its dispatches once per window
    (``windows`` in ``plan.parameters``). Each window starts from the total of all earlier ones, which stays on the GPU.

    **Float sums** round. Prefix i is within γ(h)·(|x₀| + … + |xᵢ|) of the exact one, where γ(h) = h·u/(1 − h·u),
    u = 2⁻²⁴, and h is the largest number of additions that involve an item (N. Higham, "Accuracy and stability of
    numerical algorithms", 2002, section 4.2). With w = ``workgroup_size``, v = ``vecs`` of ``plan.parameters`` and
    T = ⌈n/(4·w·v)⌉ tiles, h is at most 2·T + 4·v + 3·w + 20, for either strategy. A device that flushes denormals
    may add n·2⁻¹²⁶. The bounds hold unless something overflows. Each window adds one addition to h.

    **Deterministic** scans are reduce-then-scan without subgroups, in tiles of 4,096 items and at most 1,056 blocks,
    with any tuning, with h at most 5·⌈⌈n/4096⌉/blocks⌉ + 60. They cost more
    (docs/contribute/performance.md): each item is read twice, in three dispatches, while look-back reads it once,
    and each tile needs more barriers. Everything else about deterministic results is as for `Reduce`.

    **Compensated** scans take the dispatches and bytes of deterministic ones, and about 40 operations per item.
    Prefix i is within u·|x₀ + … + xᵢ| + 2·(h·u)²·(|x₀| + … + |xᵢ|) of the exact one, with
    h = 5·⌈⌈n/4096⌉/blocks⌉ + 70. Infinities, NaN and overflow, and the sources, are as for `Reduce`.

    Sources: ``"lookback"`` is D. Merrill and M. Garland, "Single-pass parallel prefix scan with decoupled look-back"
    (2016), with the fallback of T. Smith, R. Levien and J. Owens, "Decoupled Fallback" (2025). ``"reduce_then_scan"``
    is G. Blelloch, "Prefix sums and their applications" (1990).

    Examples
    --------
    >>> import numpy as np, gridwise_py as gw
    >>> device = gw.request_device()
    >>> x = gw.asarray(np.ones(5, dtype=np.uint32), device)
    >>> gw.Scan(device, "u32", gw.Add, kind="exclusive").execute(input=x).output.to_numpy()
    array([0, 1, 2, 3, 4], dtype=uint32)
    >>> before = gw.asarray(np.array([10], dtype=np.uint32), device)
    >>> gw.Scan(device, "u32", initial=True).execute(input=x, initial=before).output.to_numpy()
    array([11, 12, 13, 14, 15], dtype=uint32)
    """

    takes_count = True
    _kernel = "scan_lookback"
    _writes_all = True
    arguments = (
        Argument("input", chunked=True),
        Argument(
            "output", is_output=True, datatype="output_datatype", length=SameAs("input"), overlap="same view",
            chunked=True,
        ),
    )  # fmt: skip

    @explained(ScanTuning.remedies())
    def __init__(
        self,
        device: wgpu.GPUDevice | None,
        dtype: ItemDatatypeLike | Operators = "u32",
        op: BinOpLike = Add,
        kind: ScanKind = "inclusive",
        *,
        result_dtype: ItemDatatypeLike | None = None,
        output: Operators | None = None,
        strategy: ScanStrategy | None = None,
        deterministic: bool = False,
        compensated: bool = False,
        initial: bool = False,
        tuning: ScanTuning | None = None,
        capabilities: Capabilities | None = None,
    ):
        if not isinstance(initial, bool):
            raise ArgumentError(
                f"initial={initial!r:.60} of Scan says whether calls take a value to start from, True or False; give "
                f"the value to the call: gw.Scan(device, dtype, initial=True).execute(input=x, initial=value), where "
                f"value is an Array of one item, or call gw.scan(x, initial=value)"
            )
        #: Whether calls take the value that they start from.
        self.takes_initial: bool = initial
        self.tuning: ScanTuning = ScanTuning.of(tuning)
        super().__init__(
            device, dtype, op, result_dtype=result_dtype, deterministic=deterministic, compensated=compensated,
            subgroups=self.tuning.subgroups, output=output, capabilities=capabilities,
        )  # fmt: skip
        self.kind: ScanKind = one_of("kind", kind, KINDS)
        self._set_up(strategy)

    def _arguments(self) -> tuple[Argument, ...]:
        items, output = self.arguments
        if self._requested == "lookback":  # its fallback reads the input again
            output = replace(output, overlap="never")
        return (items, *([_INITIAL] if self.takes_initial else []), output)

    @cached_property
    def inclusive(self) -> Scan:
        """The inclusive scan with the same options that starts from nothing: itself, if it is one."""
        is_it = self.kind == "inclusive" and not self.takes_initial
        return self if is_it else self.inclusive_of(self.datatype, self.result_datatype)

    @cached_property
    def with_initial(self) -> Scan:
        """The scan with the same options whose calls take the value that they start from: itself, if it does."""
        if self.takes_initial:
            return self
        items: Any = self.datatype if self._fusion is None else self._fusion.flat.without_arrays()
        return self.replace(dtype=items, initial=True)

    def inclusive_of(self, items: Datatype, results: Datatype) -> Scan:
        """Return an inclusive scan with the same options, for items and results of these datatypes, from nothing."""
        return self.replace(dtype=items, result_dtype=results, kind="inclusive", initial=False, output=None)

    def choose_strategy(self, in_place: bool = False) -> str:
        """Return the strategy for a call; with ``"auto"`` this may test the device."""
        if in_place and self._requested != "lookback":  # which no environment asks for in place
            return "reduce_then_scan"
        return super().choose_strategy()

    def plan(self, layout: Layout) -> Plan:
        """Return the plan: three dispatches or fewer (reduce-then-scan), or one (look-back); more in windows."""
        builder = PlanBuilder("scan", layout, self.capabilities)
        layout = self._reads(layout)
        operand = layout["input"]
        n, result_bytes = self._items_in(operand), self.output_datatype.itemsize_bytes
        parameters = self.add_to(builder, layout)
        counted = builder.counted_work(n, operand.nbytes // max(n, 1), result_bytes)
        return builder.build(Work(n, operand.nbytes, n * result_bytes, max(0, n - 1), counted), parameters)

    def add_to(self, builder: PlanBuilder, layout: Layout) -> dict[str, Any]:
        """Add the steps to a plan; see `PlanBuilder.include`."""
        n = self._items_in(layout["input"])
        strategy = self.choose_strategy(in_place=n > 0 and layout.shares("input", "output"))
        parameters: dict[str, Any] = {
            "strategy": strategy,
            "subgroups": str(self.mode),
            "kind": self.kind,
            "deterministic": self.deterministic,
            "compensated": self.compensated,
        }
        if n and strategy == "lookback":
            parameters |= self._plan_lookback(builder, layout)
        elif n:
            parameters |= (self._plan_compensated if self.compensated else self._plan_blocks)(builder, layout)
        return parameters

    def _add_initial(self, builder: PlanBuilder, layout: Layout, output: Operand | None = None) -> Operand | None:
        """Add the kernel that writes the value to start from as an accumulator; return that, or None."""
        if not self.takes_initial:
            return None
        words, datatype = self._accumulator.words, self.result_datatype
        output = builder.scratch("start", words) if output is None else output
        given = part_of(layout["initial"], 0, datatype.elements, self.capabilities)
        context = operator_context(
            self.op, datatype, self.mode, fixed_order=self._fixed_order is not None, source=memory_context(datatype),
            sink=memory_context(None),
        )  # fmt: skip
        builder.kernel(
            "read the initial value",
            KernelFile(
                "scan_initial.wgsl",
                context={**context, "vecs": 1},
                constants={"WORKGROUP_SIZE": 1},
                shader_checks=self.op.checks_for(datatype),
                features=self._features,
            ),
            Memory(
                reads={"input": given},
                writes={"output": output},
                units=None if datatype.is_several else {"input": 4 * datatype.itemsize_bytes, "output": 16 * words},
            ),
            params={
                "n": 1,
                "flags": RAW_OUTPUT,
                **self._accumulator.params,
                **({} if self._fixed_order is None else {"zero": 0}),
            },
            extent=None,
        )
        return output

    def _plan_blocks(self, builder: PlanBuilder, layout: Layout) -> dict[str, Any]:
        n = self._items_in(layout["input"])
        shape = self._blocks_shapes.at(n)
        windows = self._block_windows(layout, ["input", "output"], shape)
        blocks = blocks_of(windows)
        words = self._accumulator.words
        carries, totals = builder.scratch("carries", words * blocks), builder.scratch("totals", words * blocks)
        initial = self._add_initial(builder, layout)
        before = builder.scratch("no_carries", words) if initial is None else initial
        has_initial = 0 if initial is None else HAS_CARRY
        for each in self._blocks_shapes.all_for(n):
            sibling = each != shape
            # A single block needs no totals, but longer inputs do.
            for part in windows[:1] if sibling else windows:
                self._add_blocks(
                    builder, part.window.label("reduce blocks"), "reduce_blocks.wgsl", each, split=part.split,
                    input=part.window.operands["input"], output=part.of_blocks(totals, words), flags=RAW_OUTPUT,
                    counted=True, sibling=sibling or blocks == 1,
                )  # fmt: skip
            tiles = -(-blocks // each.tile_items)
            self._add_blocks(
                builder, "scan totals", "scan.wgsl", each, exclusive=True, split=(tiles, tiles, 1), items=blocks,
                input=totals, output=carries, flags=RAW_INPUT | RAW_OUTPUT | has_initial, carries=before,
                sibling=sibling or blocks == 1,
            )  # fmt: skip
            for part in windows[:1] if sibling else windows:
                self._add_blocks(
                    builder, part.window.label("scan blocks" if blocks > 1 else "scan"), "scan.wgsl", each,
                    split=part.split, input=part.window.operands["input"], output=part.window.operands["output"],
                    exclusive=self.kind == "exclusive",
                    carries=part.of_blocks(carries, words) if blocks > 1 or initial is None else before.by_words(),
                    flags=HAS_CARRY if blocks > 1 else has_initial, counted=True, sibling=sibling,
                )  # fmt: skip
        return self._blocks_parameters(shape, self._blocks_shapes, windows)

    def _plan_compensated(self, builder: PlanBuilder, layout: Layout) -> dict[str, Any]:
        n = layout["input"].length
        shape = self._blocks_shapes.at(n)
        windows = self._block_windows(layout, ["input", "output"], shape)
        blocks = blocks_of(windows)
        # The value to start from is one pair more, behind the others, with the error 0 that scratch memory has.
        pairs = self._add_block_pairs(builder, shape, windows, more=1 if self.takes_initial else 0)
        carries = builder.scratch("carries", 2 * blocks)
        self._add_initial(builder, layout, replace(pairs, offset=2 * blocks, length=1).by_words())
        self._add(
            builder, "scan pairs", "scan_compensated_totals.wgsl", shape, input=pairs, output=carries,
            extent=None, has_initial=self.takes_initial, **over_blocks(builder, blocks, shape, n),
        )  # fmt: skip
        for part in windows:
            self._add_blocks(
                builder, part.window.label("scan blocks"), "scan_compensated.wgsl", shape, split=part.split,
                input=part.window.operands["input"], output=part.window.operands["output"],
                carries=part.of_blocks(carries, 2), exclusive=self.kind == "exclusive", counted=True,
            )  # fmt: skip
        return self._blocks_parameters(shape, self._blocks_shapes, windows)

    def _plan_lookback(self, builder: PlanBuilder, layout: Layout) -> dict[str, Any]:
        words = self._accumulator.words
        (shape, polls), *others = self._waiting.looks(self._items_in(layout["input"]), self._shapes, words)
        if layout["input"].overlaps(layout["output"]):
            raise OverlapError(
                "scan: strategy='lookback' cannot work in place, since a stalled tile is read again; leave out "
                "strategy=, or give a separate output"
            )
        tile_length = shape.tile_items * self.datatype.elements
        windows = windows_of(layout, ["input", "output"], self.capabilities, tile_length)
        if COUNT in layout:
            self._check_one_window(["input", "output"], len(windows))
        tiles = [-(-window.length // tile_length) for window in windows]
        tickets = self._waiting.tickets
        if self.capabilities.is_cpu and not tickets and max(tiles) > _MAX_TILES_WITHOUT_TICKETS_ON_CPU:
            raise ArgumentError(
                f"scan: tickets=False with {max(tiles)} tiles on a CPU adapter, which may start any of them first and "
                f"ends long loops early; at most {_MAX_TILES_WITHOUT_TICKETS_ON_CPU} tiles, or leave out tickets="
            )
        carried = len(windows) > 1 or self.takes_initial
        carries = builder.scratch("carries", words * (len(windows) + 1))
        self._add_initial(builder, layout, replace(carries, length=words).by_words())
        for window, count in zip(windows, tiles, strict=True):
            suffix = f"_{window.index}" if len(windows) > 1 else ""
            state = self._state.add_to(builder, count, suffix, words=words, spread=polls.spread)
            if carried:  # reads the total of all earlier windows, writes the total up to the end of this one
                state["carries"] = replace(carries, offset=words * window.index, length=2 * words).by_words()
            for each, way in ((shape, polls), *(() if len(windows) > 1 else others)):
                self._add(
                    builder, window.label("scan"), "scan_lookback.wgsl", each, **window.operands,
                    params={"tiles": count}, extent="tiles",
                    flags=HAS_CARRY if window.index or self.takes_initial else 0,
                    carry_out=carried, carried=carried, exclusive=self.kind == "exclusive",
                    tickets=tickets, counted=True, sibling=(each, way) in others, **state | way._asdict(),
                )  # fmt: skip
        return self._lookback_parameters(shape, tiles, look=polls.look)

    def _reference(self, input: np.ndarray, initial: np.ndarray | None = None) -> np.ndarray:
        """Return numpy's result for the same input, in the dtype of the result."""
        dtype = self.result_datatype.dtype
        if initial is not None:  # one item more, in front, whose own prefix is left out, or is the first result
            with np.errstate(over="ignore"):
                all_of = prefixes(self.op, np.concatenate([initial.reshape(1), input.astype(dtype)]).astype(dtype))
            return all_of[1:] if self.kind == "inclusive" else all_of[:-1]
        with np.errstate(over="ignore"):
            inclusive = prefixes(self.op, input.astype(dtype))
        if self.kind == "inclusive" or not input.size:
            return inclusive
        first = np.array([self.op.identity_for(self.result_datatype)], dtype=inclusive.dtype)
        return np.concatenate([first, inclusive[:-1]])


def prefixes(op: BinOp, items: np.ndarray) -> np.ndarray:
    """Return the inclusive scan of `items`, by the operator's numpy twin."""
    with np.errstate(all="ignore"):
        if isinstance(op.numpy, np.ufunc):
            wide = wider(items.dtype) if op.numpy in (np.add, np.multiply) else items.dtype
            return op.numpy.accumulate(items, dtype=wide).astype(items.dtype)
        # Hillis and Steele: keeps the order and needs few calls.
        result, distance = items.copy(), 1
        while distance < result.size:
            combined = op.numpy(result[:-distance], result[distance:]).astype(items.dtype)
            result = np.concatenate([result[:distance], combined])
            distance *= 2
        return result
