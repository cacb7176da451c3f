"""Doubles: what means and variances are made of, item by item, in float64."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal

import numpy as np
import wgpu

from ..call_errors import explained
from ..planning.signature import Argument, SameAs, ValueRule
from ..planning.windows import Window
from ..types.capabilities import Capabilities
from ..types.datatype import DATATYPES, STORAGE_DATATYPES, Datatype, ItemDatatypeLike, as_datatype
from .engines.items_kernel import ItemsKernel, Words, described

_NUMBERS = ("number", "correction", "least")


class Doubles(ItemsKernel):
    """Compute floats of items, one of each: results of float64, and numbers also of float32.

    Parameters
    ----------
    device : wgpu.GPUDevice or None
    form : {"numbers", "distances", "quotients", "moments"}
        The items as floats, which of integers of 8 bytes are the distances from an origin below them; the squares of
        their distances from the origin; sums divided by a count less a correction; or the same of what `SPREADS` sum,
        two items for each result.
    dtype, result_dtype : Datatype, str or numpy dtype, default "f64"
        Of the items, of 4 or 8 bytes, and of the output.
    more : sequence of str
        Further arguments, of those of `execute`.
    takes_root : bool
    skips_nan : bool
        Whether of items of float64 that are NaN the result is 0, too.
    length, step : int
        An item's place in the origin and in the counts: that among `step` results, which `length` items make.
    capabilities : Capabilities, optional

    See Also
    --------
    execute : takes ``items`` and ``output``; with `more` ``origin``, ``mask`` (bool) and ``limit`` (one u32, how many
        items count), without which others are 0, and ``counts`` (u32); where it divides also ``number`` (in
        place of counts), ``correction``, and ``least`` (the divisor where it is not positive), as words of float64.
    """

    shader: ClassVar[str] = "doubles"

    @explained()
    def __init__(
        self,
        device: wgpu.GPUDevice | None,
        form: Literal["numbers", "distances", "quotients", "moments"],
        dtype: ItemDatatypeLike = "f64",
        result_dtype: ItemDatatypeLike = "f64",
        *,
        more: Sequence[str] = (),
        takes_root: bool = False,
        skips_nan: bool = False,
        length: int = 1,
        step: int = 1,
        capabilities: Capabilities | None = None,
    ):
        self.source: Datatype = as_datatype(dtype, STORAGE_DATATYPES)
        self._form, self._flags = form, {"takes_root": takes_root, "skips_nan": skips_nan}
        self._more = tuple(more)
        self._places = {"length": length, "step": step}
        in_order = ("items", "mask") if "mask" in self._more else ("items",)
        self.in_order = () if form == "moments" else in_order  # pyright: ignore[reportAttributeAccessIssue]
        super().__init__(device, result_dtype, capabilities=capabilities)

    def _arguments(self) -> tuple[Argument, ...]:
        words = DATATYPES["u32"]
        datatypes = {
            "origin": self.source,
            "mask": STORAGE_DATATYPES["bool"],
            "limit": words,
            "counts": words,
        }
        of_each = SameAs("items", per=2 if self._form == "moments" else 1)
        lengths = {"mask": of_each, "limit": 1}
        return (
            Argument("items", datatype=self.source, any_shape=True),
            *(
                Argument(name, datatype=datatypes[name], length=lengths.get(name), any_shape=True)
                for name in self._more
            ),
            Argument("output", is_output=True, length=of_each, any_shape=True),
        )

    @property
    def _divides(self) -> bool:
        return self._form in ("quotients", "moments")

    @property
    def _computes_float64(self) -> bool:
        return self.datatype.name == "f64"

    def _value_rules(self) -> Mapping[str, ValueRule]:
        return {name: Words(name, 2) for name in _NUMBERS} if self._divides else {}

    def _context_values(self) -> dict[str, Any]:
        return {
            "source": described(self.source), "form": self._form, "more": self._more, **self._flags,
        }  # fmt: skip

    def _params(self, window: Window, values: Mapping[str, tuple[int, ...]]) -> dict[str, int]:
        words = {
            f"{name}_{end}": word
            for name, each in values.items()
            for end, word in zip(("low", "high"), each, strict=True)
        }
        return {"first": window.first, **self._places, **words}


def words_of_double(value: float) -> tuple[int, ...]:
    """Return a number as the words of a float64, the low one first."""
    return tuple(np.float64(value).reshape(1).view(np.uint32).tolist())
