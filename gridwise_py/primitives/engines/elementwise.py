"""The base of elementwise primitives: one kernel, whose workgroups each process one block of items."""

from __future__ import annotations

from typing import Any, ClassVar

import wgpu

from ...call_errors import explained
from ...planning.builder import PlanBuilder
from ...planning.kernel_request import KernelFile, Memory
from ...planning.layout import COUNT, Layout
from ...planning.plan import Plan, Work
from ...planning.signature import Argument, SameAs
from ...planning.windows import windows_of
from ...settings import ShaderChecks
from ...tuning.options import ElementwiseTuning
from ...tuning.shapes import shapes_for
from ...types.capabilities import Capabilities
from ...types.datatype import VALUE_DATATYPES, Datatype, ItemDatatypeLike, as_datatype
from ...types.expression import Operators
from ..base import Primitive


def elementwise_arguments(*inputs: str) -> tuple[Argument, ...]:
    """Return the arguments of a primitive that computes item i of ``output`` from item i of each input.

    All are of one shape. The output may be an input: one invocation reads and writes each item.
    """
    first, *others = inputs
    return (
        Argument(first, chunked=True, any_shape=True),
        *(Argument(name, length=SameAs(first), chunked=True, any_shape=True) for name in others),
        Argument("output", is_output=True, length=SameAs(first), overlap="same view", chunked=True, any_shape=True),
    )


class Elementwise(Primitive):
    """Base of primitives that compute item i of the output from item i of each input.

    Parameters
    ----------
    device : wgpu.GPUDevice or None
    dtype : Datatype, str or numpy dtype
    tuning : ElementwiseTuning, optional
    capabilities : Capabilities, optional
    """

    takes_count = True
    #: Shader file; also the name in plans and tables.
    shader: ClassVar[str]
    #: Operations per item.
    flops_per_item: ClassVar[int] = 0
    #: The run-time checks that a user's WGSL in the shader asks for.
    _shader_checks: ShaderChecks | None = None
    #: wgpu features that the shader needs.
    _features: tuple[str, ...] = ()
    # An H200 knows the pages of 8 GiB at a time, which other buffers share. Above that, four regions in turns take a
    # tenth less time than one; below, 0.4 % more (docs/contribute/performance.md, pages).
    _pages_known_bytes: ClassVar[int] = 15 << 29
    _regions_in_turns: ClassVar[int] = 4

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
        items = self._take(dtype)
        self.datatype: Datatype = as_datatype(items, self.datatypes if self._fusion is None else VALUE_DATATYPES)
        self.tuning: ElementwiseTuning = ElementwiseTuning.of(tuning)
        self._shapes = shapes_for("elementwise", self.capabilities, tuning=self.tuning)

    def _template_values(self) -> dict[str, Any]:
        """Return what the shader's template needs to know, besides the shape."""
        return {"datatype": self.datatype.wgsl}

    def _params(self) -> dict[str, int]:
        """Return the further fields of the parameters."""
        return {}

    def _units(self) -> dict[str, int] | None:
        """Return how many consecutive bytes of each argument an invocation reads or writes, where not 4 items of 4."""
        return None

    def _regions(self, layout: Layout) -> int:
        """Return the number of regions that take turns."""
        parts = {(part.buffer, part.first_byte): part for operand in layout.values() for part in operand.parts}
        touched_bytes = sum(part.length * part.item_bytes for part in parts.values())
        return self._regions_in_turns if touched_bytes > self._pages_known_bytes else 1

    def plan(self, layout: Layout) -> Plan:
        """Return the plan: one dispatch."""
        n = layout["output"].length
        shape = self._shapes.at(n)
        builder = PlanBuilder(self.shader, layout, self.capabilities)
        layout = self._reads(layout)
        inputs = [name for name in layout if name not in ("output", COUNT)]
        regions = self._regions(layout)
        windows = windows_of(layout, [*inputs, "output"], self.capabilities, shape.tile_items)
        for window in windows:
            for each in (shape,) if window.index else self._shapes.all_for(n):
                blocks = -(-window.length // each.tile_items)
                builder.kernel(
                    window.label(self.shader),
                    KernelFile(
                        f"{self.shader}.wgsl",
                        context={**self._template_values(), "vecs": each.vecs, "regions": regions},
                        constants={"WORKGROUP_SIZE": each.workgroup_size},
                        shader_checks=self._shader_checks,
                        features=self._features,
                    ),
                    Memory(
                        reads={name: window.operands[name] for name in inputs},
                        writes={"output": window.operands["output"]},
                        units=self._units(),
                    ),
                    params={"n": window.length, "blocks": blocks, **self._params()},
                    extent="blocks",
                    sibling=each != shape,
                    counted_from=window.first,
                )
        read_bytes, written_bytes = sum(layout[name].nbytes for name in inputs), layout["output"].nbytes
        counted = builder.counted_work(n, read_bytes // max(n, 1), written_bytes // max(n, 1))
        return builder.build(
            Work(n, read_bytes, written_bytes, self.flops_per_item * n, counted),
            {
                "workgroup_size": shape.workgroup_size,
                "vecs": shape.vecs,
                "shape": self._shapes.source_of(shape),
                "windows": len(windows),
                "regions": regions,
            },
        )
