"""The engine of scans and reductions within segments: by keys, or by offsets.

A kernel reads each item once. Its heads say what begins a segment, and its emission what is written: a result for each
item, for each run of equal keys, or for each segment.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import wgpu

from ...errors import DatatypeError, LengthError
from ...planning.builder import PlanBuilder
from ...planning.kernel_constants import HAS_CARRY, MORE_FOLLOWS
from ...planning.kernel_request import Extent, KernelFile, Memory
from ...planning.layout import Layout, Operand
from ...planning.source import Source
from ...planning.windows import Window, window_of_all, windows_of
from ...settings import ScanStrategy
from ...tuning.options import ScanTuning
from ...tuning.rows import Shape
from ...tuning.shapes import totals_invocations
from ...types.capabilities import Capabilities
from ...types.datatype import ITEM_DATATYPES, Datatype, as_datatype
from ...types.operators import Add, BinOp, BinOpLike, memory_context, operator_context
from ..fusion import FUSED, Fusion, flat_of
from .look_back import LookBackPrimitive
from .operator import BlockWindow, block_split, blocks_of, wider

#: What keys may be: they are compared, not computed with.
KEY_DATATYPES: Mapping[str, Datatype] = {
    name: datatype for name, datatype in ITEM_DATATYPES.items() if datatype.itemsize_bytes in (4, 8)
}
# A vector of WGSL has four words, and one counts the runs.
_MOST_WORDS = 3
# Results at ends of segments go through so many bytes of workgroup memory at a time.
_STAGED_BYTES = 8192
# Runs, too, where the device has room beside the totals of subgroups. Tiles of many runs take several turns (H200, 2^24
# items, 10, 16, 24 KiB: runs of 1 121, 113, 156 µs, runs of 8 61.8, 60.7, 85.2: with 24 KiB two workgroups fit, not
# three).
_STAGED_RUN_BYTES, _OTHER_STORAGE_BYTES = 16384, 128


class SegmentedPrimitive(LookBackPrimitive):
    """Base of primitives that combine items within segments.

    Parameters
    ----------
    device : wgpu.GPUDevice or None
    items : Datatype, str, numpy dtype or Expression
    op : BinOp or str
    strategy : {"auto", "reduce_then_scan", "lookback"}, optional
    deterministic : bool
    tuning : ScanTuning or None
    capabilities : Capabilities or None
    """

    _items = "items"
    grouped = "items"
    #: Of the items: those that are combined as they are stored.
    datatypes = KEY_DATATYPES
    #: Shader file names, and the name of the table of shapes.
    _heads: ClassVar[str]
    _emission: ClassVar[str]
    #: The arguments with an entry for each item.
    _per_item: ClassVar[tuple[str, ...]]
    #: The other arguments that are read, and those that are written.
    _also_read: ClassVar[tuple[str, ...]] = ()
    _also_written: ClassVar[tuple[str, ...]] = ()
    _kernel = "segmented"
    takes_count = True
    #: The datatype of the keys, where there are any.
    _key: Datatype | None = None
    _key_fusion: Fusion | None = None
    _exclusive: bool = False

    def __init__(
        self,
        device: wgpu.GPUDevice | None,
        items: Any = "u32",
        op: BinOpLike = Add,
        *,
        strategy: ScanStrategy | None = None,
        deterministic: bool = False,
        tuning: ScanTuning | None = None,
        capabilities: Capabilities | None = None,
    ):
        self.tuning: ScanTuning = ScanTuning.of(tuning)
        super().__init__(
            device, items, op, deterministic=deterministic, subgroups=self.tuning.subgroups, capabilities=capabilities
        )
        if self.datatype.itemsize_bytes < 4:
            raise DatatypeError(
                f"{type(self).__name__}: items are of {self.datatype}, but must have 4 bytes or more; convert them, in "
                f"numpy with x.astype(np.{'float32' if self.datatype.dtype.kind == 'f' else 'int32'})"
            )
        if self._accumulator.words > _MOST_WORDS:
            raise DatatypeError(
                f"{type(self).__name__}: items of {self.datatype} are {self._accumulator.words} words, but at most "
                f"{_MOST_WORDS} are combined; use structs of up to {_MOST_WORDS} fields"
            )
        self._set_up(strategy)

    def _take_keys(self, keys: Any) -> Datatype:
        """Return the datatype of the keys. If they are an expression, its leaves become the arguments."""
        if isinstance(keys, FUSED):
            flat = flat_of(keys)
            if flat.fields:
                raise DatatypeError(f"{type(self).__name__}: keys are numbers, not a struct; give one field of it")
            # The items may be an expression of arrays, too.
            self._key_fusion = Fusion(flat.renamed({name: f"key_{name}" for name, _ in flat.arrays}), "keys")
            keys = self._key_fusion.datatype
        self._key = as_datatype(keys, KEY_DATATYPES)
        return self._key

    @property
    def _fusions(self) -> tuple[Fusion, ...]:
        return super()._fusions if self._key_fusion is None else (self._key_fusion, *super()._fusions)

    def _check_lengths(self, layout: Layout) -> None:
        """Raise where keys and items, of which one is an expression, have different lengths."""
        keys, items = layout["keys"].length, self._items_in(layout["items"])
        if keys != items:
            raise LengthError(f"{self.name}: keys has {keys} items, but items has {items}; every key needs one item")

    @property
    def _is_plain(self) -> bool:
        """Whether items are of 4 bytes, so that texts convert nothing."""
        return self.datatype.itemsize_bytes == 4 and not self.datatype.is_several

    @property
    def _quads(self) -> int:
        return 1

    # ---- plans ----

    def _plan_items(self, builder: PlanBuilder, layout: Layout) -> dict[str, Any]:
        """Add the kernels; there are items or segments."""
        strategy = self.choose_strategy()
        if strategy == "lookback":
            return {"strategy": strategy, **self._plan_lookback(builder, layout, self._windows(builder, layout))}
        windows = self._windows_of_blocks(builder, layout, self._blocks_shapes.at(self._items_in(layout["items"])))
        return {"strategy": strategy, **self._plan_blocks(builder, layout, windows)}

    def _windows(self, builder: PlanBuilder, layout: Layout) -> list[Window]:
        """Return the windows of a look-back."""
        n = self._items_in(layout["items"])
        if n and not self.datatype.is_several:
            return windows_of(layout, self._per_item, self.capabilities, self._shapes.at(n).tile_items)
        return [self._whole(builder, layout)]

    def _windows_of_blocks(self, builder: PlanBuilder, layout: Layout, shape: Shape) -> list[BlockWindow]:
        """Return the windows of kernels that do blocks of tiles."""
        n = self._items_in(layout["items"])
        if n and not self.datatype.is_several:
            return self._block_windows(layout, self._per_item, shape)
        split = block_split(n, shape, counted=builder.count is not None) if n else (0, 1, 1)
        return [BlockWindow(self._whole(builder, layout), split, 0)]

    def _whole(self, builder: PlanBuilder, layout: Layout) -> Window:
        """Return one window: of no items, or of items that are several numbers, which layouts count unlike keys."""
        items = layout["items"]
        if items.length == 0:  # offsets may have segments all the same
            words = builder.constant("nothing", (0,) * 16)
            nothing = Operand(0, words, size_bytes=64, item_bytes=items.item_bytes)
            return Window.only(0, {name: nothing for name in self._per_item})
        operands = {name: layout[name] for name in self._per_item}
        return window_of_all(self.name, items.length, operands, self.capabilities)

    def _plan_blocks(self, builder: PlanBuilder, layout: Layout, parts: Sequence[BlockWindow]) -> dict[str, Any]:
        n = self._items_in(layout["items"])
        shape = self._blocks_shapes.at(n)
        blocks, words, elements = blocks_of(parts), 1 + self._accumulator.words, self.datatype.elements
        totals, carries = builder.scratch("totals", words * blocks), builder.scratch("carries", words * blocks)

        fixed = self._fixed_order is not None

        def add(each: Shape, part: BlockWindow, *, emits: bool, sibling: bool) -> None:
            window = part.window
            label = self._label if emits else "reduce blocks"
            operand = part.of_blocks(carries if emits else totals, words)
            self._add_kernel(
                builder, window.label(label), f"segmented_{'blocks' if emits else 'totals'}.wgsl", each, layout, window,
                params={
                    "whole": (window.piece_length if fixed else window.length) // elements,
                    "max_blocks": each.max_blocks, "blocks": part.blocks, "flags": window_flags(window),
                },
                items=window.length // elements, read={"carries": operand} if emits else {},
                written={} if emits else {"totals": operand}, emits=emits, extent="blocks", sibling=sibling,
                carried=len(parts) > 1,
            )  # fmt: skip

        for each in self._blocks_shapes.all_for(n):
            sibling = each != shape
            for part in parts[:1] if sibling else parts:
                add(each, part, emits=False, sibling=sibling)
            self._add_single(
                builder, "scan totals", "segmented_carries.wgsl", each, blocks, {"carries": carries}, totals, sibling
            )
            for part in parts[:1] if sibling else parts:
                add(each, part, emits=True, sibling=sibling)
        return self._blocks_parameters(shape, self._blocks_shapes, parts)

    def _add_single(
        self,
        builder: PlanBuilder,
        label: str,
        shader: str,
        shape: Shape,
        blocks: int,
        writes: Mapping[str, Operand],
        totals: Operand,
        sibling: bool,
    ) -> None:
        """Add the kernel of one workgroup that scans the totals of all blocks."""
        size = shape.workgroup_size
        if self._fixed_order is None:  # where it is fixed, the order of additions must not depend on the device
            total_bytes = 8 if self._accumulator.words == 1 else 16
            size = totals_invocations(blocks, shape, self.capabilities, total_bytes=total_bytes)
        builder.kernel(
            label,
            KernelFile(
                shader,
                context=self._segment_context(shape, 1),
                constants={"WORKGROUP_SIZE": size},
                shader_checks=self.op.checks_for(self.datatype),
                features=self._kernel_features(),
            ),
            Memory(reads={"totals": totals}, writes=writes),
            params={"blocks": blocks, **self._operator_params()},
            extent=None,
            sibling=sibling,
        )

    def _operator_params(self) -> dict[str, int]:
        """Return the fields of `Params` that belong to the operator."""
        return {**self._accumulator.params, **({} if self._fixed_order is None else {"zero": 0})}

    def _kernel_features(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*(("subgroup",) if self.mode.kind == "native" else ()), *self._features)))

    def _plan_lookback(self, builder: PlanBuilder, layout: Layout, windows: Sequence[Window]) -> dict[str, Any]:
        chain_words = 1 + self._accumulator.words
        words = chain_words if self._emission == "runs" else self._accumulator.words
        (shape, polls), *others = self._waiting.looks(self._items_in(layout["items"]), self._shapes, words)
        lengths = [window.length // self.datatype.elements for window in windows]
        tiles = [max(1, -(-length // shape.tile_items)) for length in lengths]
        carried = len(windows) > 1
        carries = builder.scratch("carries", chain_words * (len(windows) + 1))
        for window, length, count in zip(windows, lengths, tiles, strict=True):
            suffix = f"_{window.index}" if carried else ""
            state = self._state.add_to(builder, count, suffix, words=words, spread=polls.spread)
            part = replace(carries, offset=chain_words * window.index, length=2 * chain_words).by_words()
            for each, way in ((shape, polls), *(() if carried else others)):
                self._add_kernel(
                    builder, window.label(self._label), "segmented_lookback.wgsl", each, layout, window,
                    params={"tiles": count, "flags": window_flags(window)}, items=length,
                    written={"carries": part} if carried else {}, extent="tiles", sibling=(each, way) in others,
                    carried=carried, tickets=self._waiting.tickets, **state | way._asdict(),
                )  # fmt: skip
        return self._lookback_parameters(shape, tiles, look=polls.look)

    @property
    def _label(self) -> str:
        return "scan" if self._emission == "dense" else "reduce"

    def _parts(self, shape: Shape) -> int:
        """Return in how many parts a tile's results go through workgroup memory."""
        if self._emission != "ends":
            return 1
        tile_bytes = 4 * self._accumulator.words * shape.tile_items
        parts = 1
        while tile_bytes // parts > _STAGED_BYTES and parts < 32:
            parts *= 2
        return parts

    def _add_kernel(
        self,
        builder: PlanBuilder,
        label: str,
        shader: str,
        shape: Shape,
        layout: Layout,
        window: Window,
        *,
        params: Mapping[str, int],
        items: int,
        extent: Extent,
        read: Mapping[str, Operand] | None = None,
        written: Mapping[str, Operand] | None = None,
        emits: bool = True,
        constants: Mapping[str, int] | None = None,
        atomics: Mapping[str, tuple[Operand, str]] | None = None,
        features: tuple[str, ...] = (),
        sibling: bool = False,
        **context: Any,
    ) -> None:
        operands = dict(window.operands)
        if "keys" in operands and window.index:
            operands["keys"] = _with_item_before(operands["keys"], self.capabilities)
        reads = {name: operands[name] for name in self._per_item if name != "output"}
        reads |= {name: layout[name] for name in self._also_read} | dict(read or {})
        writes: dict[str, Operand] = {}
        if emits:
            writes = {"output": operands["output"]} if "output" in operands else {}
            # Different invocations write what lies in one vec4.
            writes |= {name: layout[name].by_words() for name in self._also_written}
        writes |= dict(written or {})
        parts = self._parts(shape)
        first = window.first // self.datatype.elements
        values: dict[str, int] = {
            "n": items if builder.count is not None else first + items, "first": first, "capacity": items,
            **params, **self._operator_params(),
        }  # fmt: skip
        if self._emission == "runs":
            values["size"] = layout["output_keys"].length
        if self._heads == "offsets":
            segments = values["segments"] = layout["offsets"].length - 1
            if self._emission == "ends":
                n = max(self._items_in(layout["items"]), 1)
                values["expected_ends"] = min(segments, segments * shape.tile_items // n)
            else:
                values["search_steps"] = search_steps(segments, shape.workgroup_size // (parts + 1))
        builder.kernel(
            label,
            KernelFile(
                shader,
                context=self._segment_context(shape, parts, emits=emits, **context),
                constants={"WORKGROUP_SIZE": shape.workgroup_size, **(constants or {})},
                shader_checks=self.op.checks_for(self.datatype),
                features=tuple(dict.fromkeys((*self._kernel_features(), *features))),
            ),
            Memory(reads=reads, writes=writes, atomics=atomics or {}),
            params=values,
            extent=extent,
            sibling=sibling,
            counted_from=first,
        )

    def _prefixes(self, items: np.ndarray, heads: np.ndarray) -> np.ndarray:
        """Return numpy's scan of each segment; exclusive ones begin with the identity."""
        inclusive = segmented_prefixes(self.op, items, heads)
        if not self._exclusive or items.size == 0:
            return inclusive
        result = np.empty_like(inclusive)
        result[1:] = inclusive[:-1]
        result[heads] = self.op.identity_for(self.datatype)
        return result

    def _segment_context(self, shape: Shape, parts: int, **more: Any) -> dict[str, Any]:
        memory: dict[str, Any] = {}
        if not self._is_plain:
            memory = {"source": memory_context(self.datatype), "sink": memory_context(self.datatype)}
        context = operator_context(
            self.op, self.datatype, self.mode, fixed_order=self._fixed_order is not None, **memory
        )
        # Reductions of a subgroup by shuffles: with those of WGSL, totals were wrong on an NVIDIA GPU
        # (docs/contribute/algorithms.md, "Rules of all kernels").
        values = [{**kind, "subgroup_reduce": None, "subgroup_exclusive_scan": None} for kind in context["kinds"]]
        chain = {
            "suffix": "_chain", "type": "Chain", "combine": "chain_combine", "identity": "chain_identity()",
            "subgroup_reduce": None, "subgroup_exclusive_scan": None,
        }  # fmt: skip
        counted = self._emission == "runs"
        kinds = [*values, chain] if counted else [chain, *values]
        if counted:
            more["chain"] = {
                "type": "Chain", "combine": "chain_combine", "identity": "chain_identity()",
                "words": 1 + self._accumulator.words,
            }  # fmt: skip
        key = self._key
        quads = _quads(shape.vecs)
        if counted:
            assert key is not None
            # Three words take the room of four. Each invocation has a value there, and twice as much of the chain.
            value_bytes = 4 << (self._accumulator.words - 1).bit_length()
            storage = self.capabilities.limits["max-compute-workgroup-storage-size"] - _OTHER_STORAGE_BYTES
            room = min(_STAGED_RUN_BYTES, storage - 3 * value_bytes * shape.workgroup_size)
            # The places of 32 runs are in another order.
            runs = max(1, room // (key.itemsize_bytes + value_bytes) // 32) * 32
            more["part_runs"] = min(shape.tile_items, runs)
        return {
            **context,
            "kinds": kinds,
            "branch_free": True,
            "vecs": shape.vecs,
            "quads": quads,
            "rows": shape.vecs // quads,
            "width": 4 * quads,
            "heads": self._heads,
            "emission": self._emission,
            "exclusive": self._exclusive,
            "items_are": "raw" if self.datatype.is_several else "words" if self._is_plain else "pairs",
            "parts": parts,
            "search_lanes": shape.workgroup_size // (parts + 1),
            "tile_items": shape.tile_items,
            "key": None if key is None else {"bytes": key.itemsize_bytes, "kind": key.dtype.kind},
            **more,
        }


def _quads(vecs: int) -> int:
    """Return the vec4 that a lane has side by side in a row: the more, the fewer scans over lanes a tile needs."""
    return next(quads for quads in (4, 2, 1) if vecs % quads == 0)


def window_flags(window: Window) -> int:
    return (HAS_CARRY if window.index else 0) | (MORE_FOLLOWS if window.index < window.count - 1 else 0)


def _with_item_before(operand: Operand, capabilities: Capabilities) -> Operand:
    """Return a window's operand with a binding that reaches the item before its first one, too."""
    if isinstance(operand, Source):
        streamed = operand.program.streamed
        leaves = tuple(
            _with_item_before(leaf, capabilities) if k in streamed else leaf for k, leaf in enumerate(operand.leaves)
        )
        return replace(operand, leaves=leaves)
    if operand.offset:
        return operand
    step = capabilities.limits["min-storage-buffer-offset-alignment"]
    return replace(
        operand, begin_bytes=operand.begin_bytes - step, size_bytes=operand.size_bytes + step,
        offset=step // operand.item_bytes,
    )  # fmt: skip


def search_steps(segments: int, lanes: int) -> int:
    """Return the steps in which so many lanes find a segment: one around a guess, then cuts into equal parts."""
    steps, left = int(segments > lanes), segments
    while left > 0:
        chunk = -(-left // (lanes + 1))
        left = max(chunk - 1, left - lanes * chunk)
        steps += 1
    return steps


def segments_of(name: str, layout: Layout) -> int:
    """Return the number of segments that offsets give; raise LengthError where there is no offset."""
    offsets = layout["offsets"].length
    if offsets == 0:
        raise LengthError(
            f"{name}: offsets has no items, but there is one offset more than segments; give np.zeros(1, np.uint32) "
            f"for no segments"
        )
    return offsets - 1


def with_buffer(builder: PlanBuilder, operand: Operand) -> Operand:
    """Return an operand that kernels can read: one without items may have no buffer, and gets temporary memory."""
    return operand if operand.length else replace(builder.scratch("no_items", 1, operand.item_bytes), length=0)


# ---- numpy's results ----


def heads_of_keys(keys: np.ndarray) -> np.ndarray:
    """Return whether each key begins a run; −0 equals +0, and a NaN one of the same bits."""
    if keys.dtype.kind == "f":
        keys = (keys + 0.0).view(f"u{keys.itemsize}")
    heads = np.ones(keys.size, dtype=bool)
    heads[1:] = keys[1:] != keys[:-1]
    return heads


def segmented_prefixes(op: BinOp, items: np.ndarray, heads: np.ndarray) -> np.ndarray:
    """Return the inclusive scan of items that begins again at each head, by the operator's numpy twin."""
    starts = np.flatnonzero(heads)
    if isinstance(op.numpy, np.ufunc) and starts.size < items.size // 1024:
        dtype = wider(items.dtype) if op.numpy in (np.add, np.multiply) else items.dtype
        with np.errstate(all="ignore"):
            parts = [op.numpy.accumulate(part, dtype=dtype).astype(items.dtype) for part in np.split(items, starts)]
        return np.concatenate(parts)
    result, distance = items.copy(), 1
    # Of each item, the distance to the head of its segment.
    indices = np.arange(items.size)
    begins = np.maximum.accumulate(np.where(heads, indices, 0)) if items.size else indices
    with np.errstate(all="ignore"):
        longest = int((indices - begins).max(initial=0))
        while distance <= longest:
            # Hillis and Steele: keeps the order and needs few calls.
            combined = op.numpy(result[:-distance], result[distance:]).astype(items.dtype)
            reaches = (indices - begins)[distance:] >= distance
            later = result[distance:].copy()
            later[reaches] = combined[reaches]
            result = np.concatenate([result[:distance], later])
            distance *= 2
    return result
