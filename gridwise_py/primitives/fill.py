"""Fill and Arange: items that come from no input."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from ..planning.builder import PlanBuilder
from ..planning.layout import Layout
from ..planning.plan import Fill as FillStep
from ..planning.plan import Plan, Work
from ..planning.signature import Argument, ValueRule
from ..planning.windows import Window
from .engines.items_kernel import ItemsKernel, Words


class Fill(ItemsKernel):
    """Set all items to one value.

    See Also
    --------
    execute : takes ``value``, two words (the second one is 0 for items of up to 4 bytes), and ``output``.
    """

    shader: ClassVar[str] = "fill"
    arguments = (Argument("output", is_output=True, any_shape=True),)

    def _value_rules(self) -> Mapping[str, ValueRule]:
        return {"value": Words("value", 2)}

    def _context_values(self) -> dict[str, Any]:
        return {}

    def _params(self, window: Window, values: Mapping[str, tuple[int, ...]]) -> dict[str, int]:
        low, high = values["value"]
        return {"low": low, "high": high}

    def _plan_with(self, layout: Layout, values: Mapping[str, tuple[int, ...]]) -> Plan:
        output = layout["output"]
        size_bytes = output.length * output.item_bytes
        if any(values["value"]) or not size_bytes or output.first_byte % 4 or size_bytes % 4:
            return super()._plan_with(layout, values)
        builder = PlanBuilder(self.shader, layout, self.capabilities)
        builder.step(FillStep(output.buffer, output.first_byte, size_bytes))
        return builder.build(Work(output.length, 0, size_bytes), {})


class Arange(ItemsKernel):
    """Set item i to ``start + i * step``, as numpy rounds it.

    See Also
    --------
    execute : takes ``start`` and ``step``, two words each, and ``output``. For f16 the words are those of f32.
    """

    shader: ClassVar[str] = "arange"
    arguments = (Argument("output", is_output=True, any_shape=True),)

    def _value_rules(self) -> Mapping[str, ValueRule]:
        return {"start": Words("start", 2), "step": Words("step", 2)}

    @property
    def _computes_float64(self) -> bool:
        return self.datatype.name == "f64"

    def _context_values(self) -> dict[str, Any]:
        return {}

    def _params(self, window: Window, values: Mapping[str, tuple[int, ...]]) -> dict[str, int]:
        (start_low, start_high), (step_low, step_high) = values["start"], values["step"]
        return {
            "first": window.first, "zero": 0, "start_low": start_low, "start_high": start_high, "step_low": step_low,
            "step_high": step_high,
        }  # fmt: skip
