"""What reduce and scan share: an operator, the form of the subgroups, and kernels over blocks of tiles."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import wgpu

from ..arguments import Argument
from ..binop import Add, BinOp, as_binop
from ..builder import PlanBuilder
from ..capabilities import Capabilities, SubgroupMode
from ..datatype import Datatype, as_datatype
from ..errors import ArgumentError
from ..layout import Operand
from ..primitive import Primitive
from ..tuning import Shape, Shapes, fixed_shapes, shapes_for

__all__ = ["HAS_CARRY", "RAW_INPUT", "RAW_OUTPUT", "OperatorPrimitive", "block_split", "operator_context"]

# Flags of shaders/lib/tile.wgsl and shaders/scan.wgsl.
RAW_INPUT = 1
RAW_OUTPUT = 2
HAS_CARRY = 4


def operator_context(op: BinOp, datatype: Datatype, mode: SubgroupMode, *, fixed_order: bool = False) -> dict[str, Any]:
    """Return what lib/operator.wgsl, lib/subgroup.wgsl and lib/workgroup.wgsl need to know."""
    acc = op.accumulator(datatype)
    return {
        "datatype": datatype.wgsl,
        "op": {
            "expression": op.expression,
            "wgsl": op.wgsl,
            "commutative": op.commutative,
            "subgroup_reduce": op.subgroup_reduce,
            "subgroup_exclusive_scan": op.subgroup_exclusive_scan,
        },
        "acc": {"wgsl": acc.wgsl, "key": acc.key},
        "subgroups": mode.kind,
        "emulated_size": mode.size,
        "fixed_order": fixed_order,
    }


class OperatorPrimitive(Primitive):
    """Base of primitives that combine items with an associative operator.

    Parameters
    ----------
    device : wgpu.GPUDevice or None
    datatype : Datatype, str or numpy dtype
    op : BinOp or str
    subgroups : None, bool or str
        None chooses by what the device has; see `Capabilities.subgroup_mode`.
    deterministic, compensated : bool, default False
        Ask for an order of combining that is the same everywhere. It makes a difference where combining rounds: for
        floats, except under minimum and maximum.
    capabilities : Capabilities, optional
    """

    arguments: ClassVar[tuple[Argument, ...]] = (Argument("input"), Argument("output", is_output=True))

    def __init__(
        self,
        device: wgpu.GPUDevice | None,
        datatype: Datatype | str | Any = "u32",
        op: BinOp | str = Add,
        *,
        subgroups: bool | str | None = None,
        deterministic: bool = False,
        compensated: bool = False,
        capabilities: Capabilities | None = None,
    ):
        super().__init__(device, capabilities=capabilities)
        self.datatype: Datatype = as_datatype(datatype)
        self.op: BinOp = as_binop(op)
        self._accumulator = self.op.accumulator(self.datatype)
        self._rounds = self._accumulator.wgsl == "f32"
        if compensated and self.op is not Add:
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
                    f"subgroups={subgroups!r} beside {asked}, whose order of additions is fixed without "
                    f"subgroups, since their size differs between adapters; leave out one of the two"
                )
            subgroups = False
        self.mode: SubgroupMode = self.capabilities.subgroup_mode(subgroups)

    @property
    def deterministic(self) -> bool:
        """Whether results are the same bits on every run and adapter: by a fixed order, or as nothing rounds."""
        return self._fixed_order is not None or not self._rounds

    def argument_datatype(self, name: str) -> Datatype:
        """The primitive's datatype, for input and output."""
        return self.datatype

    def _shapes_for(self, kernel: str, *, workgroup_size: int | None, vecs: int | None) -> Shapes:
        """Return the shapes of a kernel: the fixed one, what the caller wishes, or what tuning and table say."""
        wishes = {"workgroup_size": workgroup_size, "vecs": vecs}
        if self._fixed_order is not None:
            return fixed_shapes(kernel, self.capabilities, self._fixed_order, **wishes)
        return shapes_for(kernel, self.capabilities, self.mode, **wishes)

    def _context_for(self, shape: Shape, **more: Any) -> dict[str, Any]:
        """Values for the templates of all kernels with an operator."""
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
        constants: Mapping[str, int] | None = None,
        atomics: Mapping[str, str] | None = None,
        features: tuple[str, ...] = (),
        sibling: bool = False,
        **context: Any,
    ) -> None:
        """Add a kernel over tiles."""
        reads = {"input": input} if carries is None else {"input": input, "carries": carries}
        native = ("subgroup",) if self.mode.kind == "native" else ()
        builder.kernel(
            label,
            shader,
            reads=reads,
            writes={"output": output},
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
        single: bool = False,
        **more: Any,
    ) -> None:
        """Add a kernel whose workgroups each do a block of tiles; a single workgroup does all if asked to."""
        tiles, per_block, blocks = block_split(input.length, shape, single=single)
        self._add(
            builder, label, shader, shape, input=input, output=output,
            params={"tiles": tiles, "tiles_per_block": per_block, "blocks": blocks},
            workgroups=blocks, **more,
        )  # fmt: skip

    def _add_block_pairs(self, builder: PlanBuilder, shape: Shape, input: Operand, blocks: int) -> Operand:
        """Add the kernel that leaves each block's compensated sum, as a pair of words; return the pairs."""
        pairs = builder.scratch("pairs", 2 * blocks)
        self._add_blocks(
            builder, "sum blocks", "reduce_compensated.wgsl", shape, input=input, output=pairs, pairs=False
        )
        return pairs


def block_split(n: int, shape: Shape, *, single: bool = False) -> tuple[int, int, int]:
    """Return tiles, tiles per block and blocks for `n` items."""
    tiles = -(-n // shape.tile_items)
    per_block = tiles if single else -(-tiles // min(tiles, shape.max_blocks))
    return tiles, per_block, -(-tiles // per_block)
