"""The common part of reduce and scan: an operator, the subgroup mode, and kernels over blocks of tiles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import wgpu

from ..errors import ArgumentError
from ..planning.builder import PlanBuilder
from ..planning.faults import HEALTHY, Faults
from ..planning.layout import Layout, Operand
from ..planning.windows import Window, windows_of
from ..runtime.operator_check import check_operator
from ..tuning.options import ReduceTuning, ScanTuning
from ..tuning.shapes import Shape, Shapes, fixed_shapes, shapes_for
from ..types.capabilities import Capabilities, SubgroupMode, SubgroupsLike
from ..types.datatype import Datatype, as_datatype
from ..types.operators import Add, BinOp, as_binop, operator_context
from .base import Primitive

__all__ = ["BlockWindow", "OperatorPrimitive", "blocks_of"]


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
    datatype : Datatype, str or numpy dtype
    op : BinOp or str
    deterministic, compensated : bool, default False
        Combine in the same order everywhere. This matters only if combining rounds: for floats, except with minimum
        and maximum.
    subgroups : None, bool or str
        The field of the tuning; see `Capabilities.subgroup_mode`.
    capabilities : Capabilities, optional
    """

    _faults: ClassVar[Faults] = HEALTHY

    def __init__(
        self,
        device: wgpu.GPUDevice | None,
        datatype: Datatype | str | Any = "u32",
        op: BinOp | str = Add,
        *,
        deterministic: bool = False,
        compensated: bool = False,
        subgroups: SubgroupsLike = None,
        capabilities: Capabilities | None = None,
    ):
        super().__init__(device, capabilities=capabilities)
        self.datatype: Datatype = as_datatype(datatype)
        self.op: BinOp = as_binop(op)
        self._accumulator = self.op.accumulator(self.datatype)
        check_operator(self.op, self.datatype, None)
        self._rounds = self._accumulator.wgsl == "f32"
        if compensated and self.op != Add:
            raise ArgumentError(
                f"compensated=True is for sums, but the operator is {self.op.name!r}: only the rounding errors of "
                f"additions are known exactly; leave out compensated=, or use op='add'"
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
            operator_context(self.op, self.datatype, self.mode)

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
        check_operator(self.op, self.datatype, self._device)

    def _shapes_for(self, kernel: str, tuning: ReduceTuning | ScanTuning) -> Shapes[Shape]:
        """Return the shapes of a kernel: the fixed ones, the caller's, the tuned ones or those of the table."""
        if self._fixed_order is not None:
            return fixed_shapes(kernel, self.capabilities, self._fixed_order, tuning)
        return shapes_for(kernel, self.capabilities, self.mode, tuning)

    def _context_for(self, shape: Shape, **more: Any) -> dict[str, Any]:
        """Return the template values of all kernels with an operator."""
        context = operator_context(self.op, self.datatype, self.mode, fixed_order=self._fixed_order is not None)
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
        workgroups: int,
        flags: int = 0,
        carries: Operand | None = None,
        carry_out: bool = False,
        constants: Mapping[str, int] | None = None,
        atomics: Mapping[str, tuple[str, str]] | None = None,
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
            shader,
            reads=reads,
            writes=writes,
            params={
                "n": input.length,
                **params,
                "flags": flags,
                "identity_bits": self._accumulator.identity_bits,
                **({} if self._fixed_order is None else {"zero": 0}),  # of lib/seal.wgsl
            },
            workgroups=workgroups,
            constants={"WORKGROUP_SIZE": shape.workgroup_size, **(constants or {})},
            context=self._context_for(shape, **context),
            atomics=atomics,
            trusted=self.op.builtin,
            features=native + features,
            sibling=sibling,
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
        **more: Any,
    ) -> None:
        """Add a kernel whose workgroups each process a block of tiles; `split` defaults to that of the shape."""
        tiles, per_block, blocks = split if split is not None else block_split(input.length, shape)
        self._add(
            builder, label, shader, shape, input=input, output=output,
            params={"tiles": tiles, "tiles_per_block": per_block, "blocks": blocks},
            workgroups=blocks, **more,
        )  # fmt: skip

    def _add_block_pairs(self, builder: PlanBuilder, shape: Shape, windows: Sequence[BlockWindow]) -> Operand:
        """Add the kernels that write each block's compensated sum as a pair of words; return the pairs."""
        pairs = builder.scratch("pairs", 2 * blocks_of(windows))
        for each in windows:
            self._add_blocks(
                builder, each.window.label("sum blocks"), "reduce_compensated.wgsl", shape,
                input=each.window.operands["input"], output=each.of_blocks(pairs, 2), split=each.split,
            )  # fmt: skip
        return pairs

    def _block_windows(self, layout: Layout, names: Sequence[str], shape: Shape) -> list[BlockWindow]:
        """Split the arguments into windows, and these into blocks.

        In a fixed order, blocks depend on the piece of the arguments, and a window has whole blocks only. So the size
        of a binding changes no bit. Otherwise each window has as many blocks as suit the device.
        """
        fixed = self._fixed_order is not None
        found: list[BlockWindow] = []

        def per_block(items: int) -> int:
            return block_split(items, shape)[1] if fixed else 1

        for window in windows_of(layout, names, self.capabilities, lambda items: per_block(items) * shape.tile_items):
            split = block_split(window.length, shape)
            if fixed:
                tiles, each = split[0], per_block(window.piece_length)
                split = tiles, each, -(-tiles // each)
            found.append(BlockWindow(window, split, blocks_of(found)))
        return found


def block_split(n: int, shape: Shape) -> tuple[int, int, int]:
    """Return tiles, tiles per block and blocks for `n` items."""
    tiles = -(-n // shape.tile_items)
    per_block = -(-tiles // min(tiles, shape.max_blocks))
    return tiles, per_block, -(-tiles // per_block)


def blocks_of(windows: Sequence[BlockWindow]) -> int:
    """Return the number of blocks of all windows."""
    return windows[-1].first_block + windows[-1].blocks if windows else 0
