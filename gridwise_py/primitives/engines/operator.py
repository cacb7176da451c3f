"""The common part of reduce and scan: an operator, the subgroup mode, and kernels over blocks of tiles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import wgpu

from ...errors import ArgumentError, DatatypeError, LimitError
from ...planning.builder import PlanBuilder
from ...planning.faults import HEALTHY, Faults
from ...planning.kernel_constants import RAW_INPUT, RAW_OUTPUT
from ...planning.kernel_request import Extent, KernelFile, Memory
from ...planning.layout import COUNT, Layout, Operand
from ...planning.windows import Window, windows_of
from ...runtime.operator_check import check_operator
from ...tuning.options import ReduceTuning, ScanTuning
from ...tuning.rows import Shape, Shapes
from ...tuning.shapes import fixed_shapes, shapes_for, suit
from ...types.capabilities import FEATURES_OF_FLOAT64, Capabilities, SubgroupMode, SubgroupsLike, check_float64
from ...types.datatype import ITEM_DATATYPES, Datatype, as_datatype
from ...types.expression import Operators
from ...types.operators import Add, BinOp, as_binop, memory_context, operator_context
from ...types.struct_operators import on_items
from ..base import Primitive
from ..mapped_output import MappedOutput


@dataclass(frozen=True)
class BlockWindow:
    """A window, and the split of its items into blocks of tiles.

    Attributes
    ----------
    window : Window
    split : tuple of int
        Number of tiles, tiles per block, and blocks.
    first_block : int
        Number of blocks in earlier windows.
    """

    window: Window
    split: tuple[int, int, int]
    first_block: int

    @property
    def blocks(self) -> int:
        """Number of blocks."""
        return self.split[2]

    def of_blocks(self, operand: Operand, words: int = 1) -> Operand:
        """Return the entries of this window's blocks in a table with `words` words per block."""
        return replace(operand, offset=words * self.first_block, length=words * self.blocks).by_words()


class OperatorPrimitive(Primitive):
    """Base of primitives that combine items with an associative operator.

    Parameters
    ----------
    device : wgpu.GPUDevice or None
    dtype : Datatype, str or numpy dtype
        Of the items.
    op : BinOp or str
    result_dtype : Datatype, str or numpy dtype, optional
        Of the results, and what is computed with; by default that of the items.
    deterministic, compensated : bool, default False
        Combine in the same order everywhere. This matters only if combining rounds: for floats, except with minimum
        and maximum.
    output : Expression, optional
        Of ``gw.result``: what is stored in place of the results.
    subgroups : None, bool or str
        The field of the tuning; see `Capabilities.subgroup_mode`.
    capabilities : Capabilities, optional
    """

    _faults: ClassVar[Faults] = HEALTHY
    datatypes: ClassVar[Mapping[str, Datatype]] = ITEM_DATATYPES
    #: The argument that may be an expression.
    _items: ClassVar[str] = "input"
    #: The argument whose items are combined in groups, where results combine only some of them.
    grouped: ClassVar[str | None] = None
    #: Whether there is a result for each item.
    _writes_all: ClassVar[bool] = False

    def __init__(
        self,
        device: wgpu.GPUDevice | None,
        dtype: Datatype | str | Any = "u32",
        op: BinOp | str = Add,
        *,
        result_dtype: Datatype | str | Any = None,
        deterministic: bool = False,
        compensated: bool = False,
        subgroups: SubgroupsLike = None,
        output: Operators | None = None,
        capabilities: Capabilities | None = None,
    ):
        super().__init__(device, capabilities=capabilities)
        self.datatype: Datatype = as_datatype(self._take(dtype, self._items), ITEM_DATATYPES)
        asked = self.datatype if result_dtype is None else result_dtype
        #: The datatype of the results, in which items are combined.
        self.result_datatype: Datatype = as_datatype(asked, ITEM_DATATYPES)
        self.op: BinOp = on_items(as_binop(op), self.result_datatype)
        if not self._combines_bools():
            check_conversion(self.datatype, self.result_datatype)
        if output is not None:
            self._mapped = MappedOutput(output, self.result_datatype)
        #: The datatype of what is stored.
        self.output_datatype: Datatype = self.result_datatype if self._mapped is None else self._mapped.datatype
        self._accumulator = self.op.accumulator(self.result_datatype)
        check_operator(self.op, self.result_datatype, None)
        self._rounds = (self.result_datatype.rounds or self.op.doubles) and self._accumulator.key is None
        # Minima and maxima of doubles compare bits, but other numbers have to become doubles first.
        doubles = self.result_datatype.name == "f64" and (self._rounds or self.datatype.name != "f64")
        self._features = FEATURES_OF_FLOAT64 if doubles or self.op.doubles else ()
        self._check_features()
        if compensated and self.op != Add:
            raise ArgumentError(
                f"compensated=True is for sums, but the operator is {self.op.name!r}: only the rounding errors of "
                f"additions are known exactly; leave out compensated=, or use op='add'"
            )
        if compensated and self._rounds and not self.datatype.name == self.result_datatype.name == "f32":
            raise ArgumentError(
                f"compensated=True is for f32, but the items are of {self.datatype} and the results of "
                f"{self.result_datatype}; leave it out, or convert the items to float32 first"
            )
        self.compensated: bool = compensated and self._rounds
        # The option that asks for a fixed order, as messages name it.
        asked = "compensated=True" if compensated else "deterministic=True" if deterministic else None
        self._fixed_order = asked if self._rounds else None
        if self._fixed_order is not None:
            if subgroups not in (None, False, "none"):
                raise ArgumentError(
                    f"subgroups={subgroups!r} together with {asked}, whose order of additions is fixed without "
                    f"subgroups, since their size differs between adapters; leave out one of the two"
                )
            subgroups = False
        self.mode: SubgroupMode = self.capabilities.subgroup_mode(subgroups)
        if not self.op.builtin:  # raises for a text that is written for another datatype
            operator_context(self.op, self.result_datatype, self.mode)

    def _combines_bools(self) -> bool:
        """Whether the items are an expression of bool, which kernels read as u32, and so are the results."""
        return self._fusion is not None and self._fusion.flat.types == ("bool",) and self.result_datatype.name == "bool"

    def _check_features(self) -> None:
        if self._features:
            check_float64(self.op.name, self.capabilities)

    def _features_of(self, flags: int) -> tuple[str, ...]:
        """Return those of a kernel: one that compares accumulators has no doubles."""
        return () if flags & RAW_INPUT and not self._rounds else self._features

    @property
    def _quads(self) -> int:
        """Consecutive quads of an invocation: 16 bytes of the smaller of items and results where that suits both.

        Neighbouring invocations write neighbouring bytes, so larger results take one quad at a time.
        """
        item_bytes, result_bytes = self.datatype.itemsize_bytes, self.result_datatype.itemsize_bytes
        if not self._writes_all or result_bytes <= item_bytes:
            return 4 // min(4, item_bytes, result_bytes)
        return 4 // min(4, result_bytes)

    @property
    def _adds_locally(self) -> bool:
        """Whether a tile's items are added in one word, though accumulators have two."""
        context = operator_context(self.op, self.result_datatype, self.mode, source=memory_context(self.datatype))
        return bool(context["local"])

    @property
    def _words_held(self) -> int:
        """How many words an invocation holds for each item of a tile, for the choice of a shape."""
        return 1 if self._adds_locally else self._accumulator.words

    def _items_in(self, operand: Operand) -> int:
        """Return how many items an argument has: layouts count the words of items that are several numbers."""
        return operand.length // self.datatype.elements

    def _item_context(self, *, raw_input: bool, raw_output: bool) -> tuple[int, int, dict[str, Any]]:
        """Return the bytes of an item read and written, and a template's context. Accumulators are reached by words."""
        source = None if raw_input else self.datatype
        sink = None if raw_output else self.result_datatype
        context = operator_context(
            self.op, self.result_datatype, self.mode, fixed_order=self._fixed_order is not None,
            source=memory_context(source), sink=memory_context(sink),
        )  # fmt: skip
        return source.itemsize_bytes if source else 4, sink.itemsize_bytes if sink else 4, context

    def _quads_of(self, flags: int) -> int:
        """Those of a kernel: one where it reads accumulators."""
        return 1 if flags & RAW_INPUT else self._quads

    def _units(self, flags: int) -> dict[str, int] | None:
        """Return how many consecutive bytes of each argument an invocation of a kernel reads or writes."""
        if self._is_plain or self.datatype.is_several:
            return None
        words = 4 * self._accumulator.words
        read = words if flags & RAW_INPUT else self.datatype.itemsize_bytes
        written = words if flags & RAW_OUTPUT else self.result_datatype.itemsize_bytes
        quads = self._quads_of(flags)
        return {"input": 4 * quads * read, "output": 4 * quads * written}

    @property
    def _is_plain(self) -> bool:
        """Whether items and results are of one datatype of 4 bytes, whose texts convert nothing."""
        alike = self.datatype == self.result_datatype
        return alike and self.datatype.itemsize_bytes == 4 and not self.datatype.is_several

    @property
    def deterministic(self) -> bool:
        """Whether results are the same bits on every run and adapter: the order is fixed, or nothing rounds."""
        return self._fixed_order is not None or not self._rounds

    @property
    def fixes_order(self) -> bool:
        """Whether items are combined in an order that depends on nothing but their number, which a caller asked for."""
        return self._fixed_order is not None

    def _check_on_device(self) -> None:
        """Compare a user's operator with its numpy twin on the device; see `check_operator`."""
        check_operator(self.op, self.result_datatype, self._device)

    def _shapes_for(self, kernel: str, tuning: ReduceTuning | ScanTuning) -> Shapes[Shape]:
        """Return the shapes of a kernel: the fixed ones, the caller's, the tuned ones or those of the table."""
        if self._fixed_order is not None:
            shapes = fixed_shapes(kernel, self.capabilities, self._fixed_order, tuning)
        else:
            chosen = shapes_for(kernel, self.capabilities, self.mode, tuning)
            shapes = suit(chosen, kernel, self.datatype.itemsize_bytes, self._words_held)
        # Rows are whole.
        quads = self._quads
        rows = tuple((up_to, replace(s, vecs=-(-s.vecs // quads) * quads)) for up_to, s in shapes.rows)
        return replace(shapes, rows=rows)

    def _context_for(self, shape: Shape, flags: int, **more: Any) -> dict[str, Any]:
        """Return the template values of all kernels with an operator."""
        memory: dict[str, Any] = {}
        if not self._is_plain:
            source, sink = (None if flags & RAW_INPUT else self.datatype), self.result_datatype
            memory = {
                "source": memory_context(source),
                "sink": memory_context(None if flags & RAW_OUTPUT else sink),
            }
            more |= {"quads": self._quads_of(flags)}
        context = operator_context(
            self.op, self.result_datatype, self.mode, fixed_order=self._fixed_order is not None, **memory
        )
        return {**context, "vecs": shape.vecs, **more}

    def _add(
        self,
        builder: PlanBuilder,
        label: str,
        shader: str,
        shape: Shape,
        *,
        input: Operand,
        output: Operand,
        params: Mapping[str, int],
        extent: Extent,
        flags: int = 0,
        carries: Operand | None = None,
        carry_out: bool = False,
        items: int | None = None,
        counted: bool = False,
        constants: Mapping[str, int] | None = None,
        atomics: Mapping[str, tuple[Operand, str]] | None = None,
        features: tuple[str, ...] = (),
        sibling: bool = False,
        **context: Any,
    ) -> None:
        """Add a kernel over tiles; with `carry_out` it also writes the carries."""
        writes = {"output": output}
        reads = {"input": input}
        if carries is not None:
            (writes if carry_out else reads)["carries"] = carries
        native = ("subgroup",) if self.mode.kind == "native" else ()
        builder.kernel(
            label,
            KernelFile(
                shader,
                context=self._context_for(shape, flags, **context),
                constants={"WORKGROUP_SIZE": shape.workgroup_size, **(constants or {})},
                shader_checks=self.op.checks_for(self.result_datatype),
                features=tuple(dict.fromkeys(native + self._features_of(flags) + features)),
            ),
            Memory(reads=reads, writes=writes, atomics=atomics or {}, units=self._units(flags)),
            params={
                "n": self._items_in(input) if items is None else items,
                **params,
                "flags": flags,
                **self._accumulator.params,
                **({} if self._fixed_order is None else {"zero": 0}),  # of lib/seal.wgsl
            },
            extent=extent,
            sibling=sibling,
            counted_from=0 if counted else None,
        )

    def _add_blocks(
        self,
        builder: PlanBuilder,
        label: str,
        shader: str,
        shape: Shape,
        *,
        input: Operand,
        output: Operand,
        split: tuple[int, int, int] | None = None,
        counted: bool = False,
        **more: Any,
    ) -> None:
        """Add a kernel whose workgroups each process a block of tiles; `split` defaults to that of the shape.

        `items` is the number of items where the operand counts words. With `counted` the GPU splits the items that
        count.
        """
        counted = counted and builder.count is not None
        if split is None:
            split = block_split(self._items_in(input), shape, counted=counted)
        tiles, per_block, blocks = split
        in_tiles = {"max_blocks": shape.max_blocks} if counted else {"tiles": tiles, "tiles_per_block": per_block}
        self._add(
            builder, label, shader, shape, input=input, output=output, params={**in_tiles, "blocks": blocks},
            extent="blocks", counted=counted, **more,
        )  # fmt: skip

    def _add_block_pairs(
        self, builder: PlanBuilder, shape: Shape, windows: Sequence[BlockWindow], *, more: int = 0
    ) -> Operand:
        """Add the kernels that write each block's compensated sum as a pair of words; return the pairs.

        Behind them there is room for `more` pairs.
        """
        pairs = builder.scratch("pairs", 2 * (blocks_of(windows) + more))
        for each in windows:
            self._add_blocks(
                builder, each.window.label("sum blocks"), "reduce_compensated.wgsl", shape,
                input=each.window.operands["input"], output=each.of_blocks(pairs, 2), split=each.split, counted=True,
            )  # fmt: skip
        return pairs

    def _block_windows(self, layout: Layout, names: Sequence[str], shape: Shape) -> list[BlockWindow]:
        """Split the arguments into windows, and these into blocks.

        In a fixed order, blocks depend on the piece of the arguments, and a window has whole blocks only. So the size
        of a binding changes no bit. Otherwise each window has as many blocks as suit the device.
        """
        fixed, elements, counted = self._fixed_order is not None, self.datatype.elements, COUNT in layout
        found: list[BlockWindow] = []

        def per_block(length: int) -> int:
            return block_split(length // elements, shape)[1] if fixed else 1

        def multiple(length: int) -> int:
            return per_block(length) * shape.tile_items * elements

        for window in windows_of(layout, names, self.capabilities, multiple):
            split = block_split(window.length // elements, shape, counted=counted)
            if fixed and not counted:
                tiles, each = split[0], per_block(window.piece_length)
                split = tiles, each, -(-tiles // each)
            found.append(BlockWindow(window, split, blocks_of(found)))
        if counted:
            self._check_one_window(names, len(found))
        return found

    def _check_one_window(self, names: Sequence[str], windows: int) -> None:
        """Raise LimitError where a call whose items the GPU counts has several windows."""
        if windows > 1:
            raise LimitError(
                f"{self.name}: only the GPU knows how many items count, and {' and '.join(names)} have room for more "
                f"than one binding of this device reaches ({windows} windows); give {names[0]}.trim(), which reads the "
                f"count of 4 bytes, or arrays with less room"
            )


def check_conversion(items: Datatype, results: Datatype) -> None:
    """Raise where items of one datatype cannot be combined as another.

    Raises
    ------
    DatatypeError
        Floats are not combined as integers, and numbers of 64 bits as no floats but f64.
    """
    source, sink = items.dtype.kind, results.dtype.kind
    if items.is_several or results.is_several:
        if items == results:
            return
        why = "since items that are several numbers are combined as what they are"
    elif source == "f" and sink != "f":
        why = "which has no fractions"
    elif sink == "f" and items.itemsize_bytes == 8 and results.itemsize_bytes < 8:
        why = "which would round every item"
    elif sink == "b" and source != "b":
        why = "which holds only 0 and 1"
    else:
        return
    raise DatatypeError(
        f"items of {items} are not combined as {results}, {why}; give another result_dtype=, or convert the items "
        f"first, for example in numpy with x.astype(np.{results.numpy_name})"
    )


def block_split(n: int, shape: Shape, *, counted: bool = False) -> tuple[int, int, int]:
    """Return tiles, tiles per block and blocks for `n` items; with `counted` blocks for any number up to `n`."""
    tiles = -(-n // shape.tile_items)
    per_block = -(-tiles // min(tiles, shape.max_blocks))
    if counted:  # fewer items may make more blocks
        return tiles, per_block, min(tiles, shape.max_blocks)
    return tiles, per_block, -(-tiles // per_block)


def over_blocks(builder: PlanBuilder, blocks: int, shape: Shape, n: int) -> dict[str, Any]:
    """Return what a kernel over the blocks of `n` items takes: all of them, or those that have items that count."""
    if builder.count is None:
        return {"params": {"blocks": blocks}}
    return {"params": {"blocks": blocks, "max_blocks": shape.max_blocks}, "items": n, "counted": True}


def blocks_of(windows: Sequence[BlockWindow]) -> int:
    """Return the number of blocks of all windows."""
    return windows[-1].first_block + windows[-1].blocks if windows else 0


def wider(dtype: np.dtype) -> np.dtype:
    """Return the dtype in which numpy adds or multiplies floats for a reference; that of other items is as it is.

    For f64 it is the widest that the platform has: one by one, 10^6 additions of f64 err more than a kernel does.
    """
    if dtype == np.float64:
        return np.dtype(np.longdouble)
    return np.dtype({"f": np.float64, "c": np.complex128}.get(dtype.kind, dtype))
