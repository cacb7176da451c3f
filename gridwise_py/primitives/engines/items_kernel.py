"""The base of kernels that compute items of any size, four at a time: casts, fills, gathers, sums of any shapes."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

import wgpu

from ...planning.builder import PlanBuilder
from ...planning.kernel_request import KernelFile, Memory
from ...planning.layout import Layout, Operand
from ...planning.plan import Plan, Work
from ...planning.windows import Window, windows_of
from ...tuning.shapes import shapes_for
from ...types.capabilities import FEATURES_OF_FLOAT64, Capabilities
from ...types.datatype import STORAGE_DATATYPES, Datatype, ItemDatatypeLike, as_datatype
from ..base import Primitive


def described(datatype: Datatype) -> dict[str, Any]:
    """Return a datatype as shaders' templates know it."""
    return {"name": datatype.name, "kind": datatype.dtype.kind, "bytes": datatype.itemsize_bytes}


class Words:
    """An argument that is a value, given as words of 4 bytes."""

    def __init__(self, name: str, count: int):
        self.name: str = name
        self._count = count

    def words(self, value: Any, what: str) -> tuple[int, ...]:
        """Return the words."""
        assert len(value) == self._count, f"{what}: {value} are not {self._count} words"
        return tuple(value)


class ItemsKernel(Primitive):
    """Base of primitives whose invocations each write four consecutive items of the output.

    Parameters
    ----------
    device : wgpu.GPUDevice or None
    dtype : Datatype, str or numpy dtype
        Of the output.
    capabilities : Capabilities, optional
    """

    #: Shader file; also the name in plans.
    shader: ClassVar[str]
    #: The inputs that are read in the order of the output, and so reach no further than its window.
    in_order: ClassVar[tuple[str, ...]] = ()

    datatypes = STORAGE_DATATYPES

    def __init__(
        self, device: wgpu.GPUDevice | None, dtype: ItemDatatypeLike, *, capabilities: Capabilities | None = None
    ):
        super().__init__(device, capabilities=capabilities)
        self.datatype: Datatype = as_datatype(dtype, STORAGE_DATATYPES)
        self._shapes = shapes_for("elementwise", self.capabilities)

    @abstractmethod
    def _context_values(self) -> dict[str, Any]:
        """Return what the shader's template needs to know, besides the shape and the output's datatype."""

    def _params(self, window: Window, values: Mapping[str, tuple[int, ...]]) -> dict[str, int]:
        """Return the further fields of the parameters for a window."""
        return {}

    def _prepared(self, builder: PlanBuilder, layout: Layout) -> dict[str, Operand]:
        """Add kernels that run before, and return what they leave for this one to read, by its name in the text."""
        return {}

    @property
    def _computes_float64(self) -> bool:
        """Whether the shader computes with float64, not only with its bits."""
        return False

    def plan(self, layout: Layout) -> Plan:
        """Return the plan: a dispatch for each window of the output."""
        return self._plan_with(layout, {})

    def _plan_with(self, layout: Layout, values: Mapping[str, tuple[int, ...]]) -> Plan:
        output = layout["output"]
        shape = self._shapes.at(output.length)
        inputs = self.signature.inputs
        builder = PlanBuilder(self.shader, layout, self.capabilities)
        prepared = self._prepared(builder, layout) if output.length else {}
        for window in windows_of(layout, [*self.in_order, "output"], self.capabilities, shape.tile_items):
            blocks = -(-window.length // shape.tile_items)
            reads = {name: window.operands.get(name, layout[name]) for name in inputs} | prepared
            builder.kernel(
                window.label(self.shader),
                KernelFile(
                    f"{self.shader}.wgsl",
                    context={"sink": described(self.datatype), "vecs": shape.vecs, **self._context_values()},
                    constants={"WORKGROUP_SIZE": shape.workgroup_size},
                    features=FEATURES_OF_FLOAT64 if self._computes_float64 else (),
                ),
                Memory(
                    reads=reads,
                    writes={"output": window.operands["output"]},
                    units=self._units({**reads, "output": output}),
                ),
                params={"n": window.length, "blocks": blocks, **self._params(window, values)},
                extent="blocks",
            )
        read_bytes = sum(layout[name].length * layout[name].item_bytes for name in inputs)
        work = Work(output.length, read_bytes, output.length * output.item_bytes)
        return builder.build(work, {"workgroup_size": shape.workgroup_size, "vecs": shape.vecs})

    def _units(self, operands: Mapping[str, Operand]) -> dict[str, int]:
        """Return how many consecutive bytes of each operand an invocation reads or writes."""
        return {name: 4 * operands[name].item_bytes for name in (*self.in_order, "output")}
