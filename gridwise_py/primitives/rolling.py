"""RollingWindows: what the items of the window that ends at each item make."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

import wgpu

from ..call_errors import explained
from ..planning.builder import PlanBuilder
from ..planning.kernel_request import Invocations, KernelFile, Memory
from ..planning.layout import Layout, Operand
from ..planning.signature import Argument, Product
from ..planning.windows import Window
from ..types.capabilities import FEATURES_OF_FLOAT64, Capabilities
from ..types.datatype import DATATYPES, ItemDatatypeLike
from .engines.items_kernel import ItemsKernel, described

RollingResult = Literal["sum", "mean", "min", "max", "count", "var", "std"]
#: Items of a block, and blocks of one of the next level.
_FAN = 8
#: What is known of a stretch of items, where it is not the result itself: see lib/rolling_state.wgsl.
_FORMS: dict[str, str] = {"mean": "sum", "var": "moments", "std": "moments"}
#: What that has beside the number of valid items.
_FIELDS: dict[str, tuple[str, ...]] = {"count": (), "moments": ("value", "squares")}
_DIVIDED = "state.squares / {F}(state.count - params.correction)"
#: The result in WGSL, where it is not what is known.
_VALUES: dict[str, str] = {
    "count": "{F}(state.count)", "mean": "state.value / {F}(state.count)", "var": _DIVIDED, "std": f"sqrt({_DIVIDED})",
}  # fmt: skip
#: How texts have floats, and the words that they are in memory.
_FLOATS: dict[str, dict[str, Any]] = {
    "f32": {
        "F": "f32", "wide": False, "of_words": "bitcast<f32>", "to_words": "bitcast<u32>", "nan": "0x7fc00000u",
    },
    "f64": {
        "F": "f64", "wide": True, "of_words": "f64_of", "to_words": "words_of_f64", "nan": "Item(0u, 0x7ff80000u)",
    },
}  # fmt: skip


class RollingWindows(ItemsKernel):
    """Combine the valid items of the window that ends at each item; NaN where they are too few.

    Parameters
    ----------
    device : wgpu.GPUDevice or None
    dtype : Datatype, str or numpy dtype
        Of items and results: f32, or f64 on a device that computes with it.
    result : {"sum", "mean", "min", "max", "count", "var", "std"}
    rows, length : int
        How many rows there are, and how long each is; windows do not reach across rows.
    window : int
        Items of a window, at most the length.
    least : int
        Valid items that a result needs; of a mean, least or greatest 1 or more, of a variance more than `correction`.
    correction : int
        What the divisor of a variance is less than the number of items.
    segmented : bool
    capabilities : Capabilities, optional

    See Also
    --------
    execute : takes ``input`` and ``output``, and if `segmented` ``starts``, the first item of each item's segment
        (u32): windows do not reach before it.

    Notes
    -----
    Totals of blocks of 8 items come first, then of 8 blocks, and so on, as long as windows may hold two of them. Four
    neighbouring windows then take about 14 steps for each level, of which none subtracts. Source of the variances: T.
    Chan, G. Golub and R. LeVeque, "Updating formulae and a pairwise algorithm for computing sample variances" (1979).
    """

    shader: ClassVar[str] = "rolling"

    @explained()
    def __init__(
        self,
        device: wgpu.GPUDevice | None,
        dtype: ItemDatatypeLike,
        result: RollingResult,
        *,
        rows: int,
        length: int,
        window: int,
        least: int,
        correction: int = 0,
        segmented: bool = False,
        capabilities: Capabilities | None = None,
    ):
        self.rows, self.length = rows, length
        self._result, self._segmented = result, segmented
        self._values = {"length": length, "window": window, "least": least, "correction": correction}
        self._levels = 0
        while 2 * _FAN ** (self._levels + 1) <= window:
            self._levels += 1
        super().__init__(device, dtype, capabilities=capabilities)

    def _arguments(self) -> tuple[Argument, ...]:
        every = Product(("rows", "length"))
        starts = Argument("starts", datatype=DATATYPES["u32"], length=every, any_shape=True)
        return (
            Argument("input", length=every, any_shape=True),
            *([starts] if self._segmented else []),
            Argument("output", is_output=True, length=every, any_shape=True),
        )

    @property
    def _computes_float64(self) -> bool:
        return self.datatype.name == "f64"

    def _state_values(self, totals: str) -> dict[str, Any]:
        """Return what lib/rolling_state.wgsl needs to know, given the name of the totals that the text reads."""
        form = _FORMS.get(self._result, self._result)
        fields = _FIELDS.get(form, ("value",))
        return {"form": form, "fields": fields, "fan": _FAN, "totals": totals, **_FLOATS[self.datatype.name]}

    def _context_values(self) -> dict[str, Any]:
        state = self._state_values("totals" if self._levels else "")
        value = _VALUES.get(self._result, "state.value").format(F=state["F"])
        return {
            **state, "value": value, "levels": self._levels, "segmented": self._segmented, "rows": self.rows > 1,
        }  # fmt: skip

    def _places(self) -> list[int]:
        """Return where the totals of each level begin, and where the last ones end."""
        n, places = self.rows * self.length, [0]
        for level in range(self._levels):
            places.append(places[-1] + n // _FAN ** (level + 1))
        return places

    def _params(self, window: Window, values: Mapping[str, tuple[int, ...]]) -> dict[str, int]:
        levels = {f"level_{k + 1}": place for k, place in enumerate(self._places()[:-1])}
        return {"first": window.first, **self._values, **levels}

    def _prepared(self, builder: PlanBuilder, layout: Layout) -> dict[str, Operand]:
        """Add the kernels that compute the totals of blocks, level by level."""
        if not self._levels:
            return {}
        n, state = layout["input"].length, self._state_values("")
        places = self._places()
        fields = 1 + len(state["fields"])
        totals = builder.scratch("totals", max(places[-1], 1) * fields, self.datatype.itemsize_bytes)
        for level, place in enumerate(places[:-1]):
            blocks = n // _FAN ** (level + 1)
            source = {"below": totals} if level else {"input": layout["input"]}
            builder.kernel(
                f"totals {level + 1}",
                KernelFile(
                    "rolling_totals.wgsl",
                    context={**state, "sink": described(self.datatype), "totals": "below" if level else ""},
                    constants={"WORKGROUP_SIZE": self._shapes.at(n).workgroup_size},
                    features=FEATURES_OF_FLOAT64 if self._computes_float64 else (),
                ),
                Memory(reads=source, writes={"totals": totals}),
                params={"n": blocks, "source": places[level - 1] if level else 0, "place": place},
                extent=Invocations("n"),
            )
        return {"totals": totals}
