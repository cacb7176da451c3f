"""What reduce and scan share: an operator, the form of the subgroups, and kernels over blocks of tiles."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import wgpu

from ..arguments import Argument
from ..binop import Add, BinOp, as_binop
from ..builder import PlanBuilder
from ..capabilities import Capabilities, SubgroupMode
from ..datatype import Datatype, as_datatype
from ..errors import ArgumentError
from ..layout import Operand
from ..primitive import Primitive
from ..tuning import Shape

__all__ = [
    "HAS_CARRY",
    "RAW_INPUT",
    "RAW_OUTPUT",
    "STATES",
    "ChainedState",
    "OperatorPrimitive",
    "block_split",
    "operator_context",
]

# Flags of shaders/lib/tile.wgsl and shaders/scan.wgsl.
RAW_INPUT = 1
RAW_OUTPUT = 2
HAS_CARRY = 4


def operator_context(op: BinOp, datatype: Datatype, mode: SubgroupMode) -> dict[str, Any]:
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
    capabilities : Capabilities, optional
    """

    arguments = (Argument("input"), Argument("output", is_output=True))

    def __init__(
        self,
        device: wgpu.GPUDevice | None,
        datatype: Datatype | str | Any = "u32",
        op: BinOp | str = Add,
        *,
        subgroups: bool | str | None = None,
        capabilities: Capabilities | None = None,
    ):
        super().__init__(device, capabilities=capabilities)
        self.datatype = as_datatype(datatype)
        self.op = as_binop(op)
        self.mode = self.capabilities.subgroup_mode(subgroups)
        self._accumulator = self.op.accumulator(self.datatype)

    def argument_datatype(self, name: str) -> Datatype:
        """The primitive's datatype, for input and output."""
        return self.datatype

    def _context_for(self, shape: Shape, **more: Any) -> dict[str, Any]:
        """Values for the templates of all kernels with an operator."""
        return {**operator_context(self.op, self.datatype, self.mode), "vecs": shape.vecs, **more}

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
            },
            workgroups=workgroups,
            constants={"WORKGROUP_SIZE": shape.workgroup_size, **(constants or {})},
            context=self._context_for(shape, **context),
            atomics=atomics,
            trusted=self.op.builtin,
            features=native + features,
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


STATES = ("u64", "u32x2")
# Bits of the epoch in a state word of each form.
_EPOCH_BITS = {"u64": 30, "u32x2": 14}
_WIDE = ("shader-int64", "shader-int64-atomic-all-ops")


@dataclass(frozen=True)
class ChainedState:
    """The words by which workgroups of one dispatch tell each other their totals (shaders/lib/state.wgsl).

    Attributes
    ----------
    form : {"u64", "u32x2"}
    epoch_bits : int
    spin_limit : int
        Looks in vain before a workgroup computes again what was not posted.
    stall_every : int
        For tests: every so many words one is never posted; 0 for none.
    by_rmw : bool
        Whether words are read by a read-modify-write.
    """

    form: str
    epoch_bits: int
    spin_limit: int
    stall_every: int
    by_rmw: bool

    @classmethod
    def choose(
        cls, capabilities: Capabilities, form: str | None, epoch_bits: int | None, spin_limit: int, stall_every: int
    ) -> ChainedState:
        """Return the state for a device: 64-bit atomics where it has them, unless `form` says otherwise.

        Raises
        ------
        ArgumentError
            If the device cannot do it, or a number is out of range.
        """
        wide = capabilities.features.issuperset(_WIDE)
        if form is None:
            form = "u64" if wide else "u32x2"
        if form not in STATES:
            raise ArgumentError(f"state={form!r} is unknown; known are {', '.join(STATES)}")
        if form == "u64" and not wide:
            raise ArgumentError(
                f"state='u64' needs the features {' and '.join(map(repr, _WIDE))}, which the device of "
                f"{capabilities.adapter!r} was not made with; use state='u32x2'"
            )
        most = _EPOCH_BITS[form]
        if epoch_bits is None:
            epoch_bits = most
        if not 1 <= epoch_bits <= most:
            raise ArgumentError(f"epoch_bits={epoch_bits} must be from 1 to {most} for state={form!r}")
        if spin_limit < 1 or stall_every < 0:
            raise ArgumentError(f"spin_limit={spin_limit} must be at least 1, stall_every={stall_every} at least 0")
        # A read-modify-write sees what a plain load might be given from a cache; CPU adapters lose nothing by it.
        return cls(form, epoch_bits, spin_limit, stall_every, capabilities.is_cpu)

    def add_to(self, builder: PlanBuilder, words: int) -> dict[str, Any]:
        """Add the scratch buffers for that many words, and return what `OperatorPrimitive._add` takes for them."""
        wide = self.form == "u64"
        builder.scratch("control", 4)
        builder.scratch("states", 2 * words)
        return {
            "constants": {
                "SPIN_LIMIT": self.spin_limit,
                "EPOCH_BITS": self.epoch_bits,
                "STALL_EVERY": self.stall_every,
            },
            "atomics": {"control": "array<atomic<u32>>", "states": f"array<atomic<{'u64' if wide else 'u32'}>>"},
            "features": _WIDE if wide else (),
            "control": "control",
            "state": self.form,
            "read_by_rmw": self.by_rmw,
        }

    def parameters(self) -> dict[str, Any]:
        """Return what a plan reports."""
        return {"state": self.form, "spin_limit": self.spin_limit, "read_by_rmw": self.by_rmw}


def block_split(n: int, shape: Shape, *, single: bool = False) -> tuple[int, int, int]:
    """Return tiles, tiles per block and blocks for `n` items."""
    tiles = -(-n // shape.tile_items)
    per_block = tiles if single else -(-tiles // min(tiles, shape.max_blocks))
    return tiles, per_block, -(-tiles // per_block)
