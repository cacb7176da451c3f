"""Unique: the first item of each run of equal ones."""

from __future__ import annotations

import numpy as np
import wgpu

from ..call_errors import explained
from ..planning.signature import Argument, SameAs, UpTo
from ..settings import ScanStrategy
from ..tuning.options import StreamTuning
from ..types.capabilities import Capabilities
from ..types.datatype import DATATYPES, ITEM_DATATYPES, STORAGE_DATATYPES, Datatype, ItemDatatypeLike
from ..types.expression import Operators
from .calls import UniqueCalls
from .engines.stream import Field, Mark, StreamPrimitive, count_argument
from .registry import register


@register("unique")
class Unique(UniqueCalls, StreamPrimitive):
    """Keep the first key of each run of equal keys, and its value.

    Of sorted keys these are the unique ones.

    Parameters
    ----------
    device : wgpu.GPUDevice
    dtype : Datatype, str or numpy dtype, or expression, default "u32"
        Of the keys: bool or numbers of 8 to 64 bits.
    value_dtype : Datatype, str or numpy dtype, or expression, optional
        Of the values; None for none.
    equal_nan : bool, default True
        Whether NaN equals NaN, as in numpy's `unique`; otherwise each is a run. −0 equals +0 in any case.
    size, strategy, tuning, capabilities : optional
        As in `Select`.

    See Also
    --------
    execute : takes ``keys``, shape (n,); gives ``output`` and ``count``. With values takes ``keys`` and ``values``;
        gives ``output_keys``, ``output_values`` and ``count``.

    Notes
    -----
    Keys are read once. A value is read only where its key is kept.

    Examples
    --------
    >>> import numpy as np, gridwise_py as gw
    >>> device = gw.request_device()
    >>> keys = gw.asarray(np.array([7, 7, 2, 2, 2, 7], dtype=np.uint32), device)
    >>> gw.Unique(device, "u32").execute(keys=keys).output.to_numpy()
    array([7, 2, 7], dtype=uint32)
    """

    datatypes = STORAGE_DATATYPES
    _label = "unique"
    arguments = (
        Argument("keys"),
        Argument("output", is_output=True, length=UpTo("keys", count="count")),
        count_argument(),
    )

    @explained(StreamTuning.remedies())
    def __init__(
        self,
        device: wgpu.GPUDevice | None,
        dtype: ItemDatatypeLike | Operators = "u32",
        value_dtype: ItemDatatypeLike | Operators | None = None,
        *,
        equal_nan: bool = True,
        size: int | None = None,
        strategy: ScanStrategy | None = None,
        tuning: StreamTuning | None = None,
        capabilities: Capabilities | None = None,
    ):
        super().__init__(device, size=size, strategy=strategy, tuning=tuning, capabilities=capabilities)
        self.datatype: Datatype = self._input("keys", dtype, self.datatypes)
        self.equal_nan: bool = bool(equal_nan)
        self.marks = (Mark("keys", self.datatype, heads=True, equal_nan=self.equal_nan),)
        if value_dtype is None:
            self.value_datatype: Datatype | None = None
            self.fields = (Field(("output",), "keys", self.datatype),)
        else:
            values = self.value_datatype = self._input("values", value_dtype, ITEM_DATATYPES)
            self.fields = (
                Field(("output_keys",), "keys", self.datatype),
                Field(("output_values",), "values", values, sparse=True),
            )

    def _arguments(self) -> tuple[Argument, ...]:
        if self.value_datatype is None:
            return self.arguments
        values = self.value_datatype
        return (
            Argument("keys"),
            Argument("values", datatype=values, length=SameAs("keys", "every key needs one value")),
            Argument("output_keys", is_output=True, length=UpTo("keys", count="count")),
            Argument("output_values", is_output=True, datatype=values, length=UpTo("keys", count="count")),
            count_argument(),
        )

    def _twin(self, **inputs: np.ndarray) -> tuple[np.ndarray, ...]:
        heads = run_heads(inputs["keys"], self.equal_nan)
        count = np.array([heads.sum()], dtype=np.uint32)
        return *(inputs[name][heads] for name in ("keys", "values") if name in inputs), count


class RunNumbers(StreamPrimitive):
    """For the sorted keys: ``output[places[i]]`` is the number of the run, from 0, that key i belongs to.

    With the order of the sort as places, these are the numbers of the unique keys in the order before it.

    Parameters
    ----------
    device : wgpu.GPUDevice or None
    dtype : Datatype, str or numpy dtype
        Of the keys.
    equal_nan, tuning, capabilities
        As in `Unique`.
    """

    datatypes = STORAGE_DATATYPES
    _label = "run_numbers"
    places = "places"
    arguments = (
        Argument("keys"),
        Argument("places", datatype=DATATYPES["u32"], length=SameAs("keys")),
        Argument("output", is_output=True, datatype=DATATYPES["u32"], length=SameAs("keys")),
        count_argument(),
    )

    def __init__(
        self,
        device: wgpu.GPUDevice | None,
        dtype: ItemDatatypeLike = "u32",
        *,
        equal_nan: bool = True,
        tuning: StreamTuning | None = None,
        capabilities: Capabilities | None = None,
    ):
        super().__init__(device, size=None, strategy=None, tuning=tuning, capabilities=capabilities)
        self.datatype: Datatype = self._input("keys", dtype, self.datatypes)
        self.marks = (Mark("keys", self.datatype, heads=True, equal_nan=equal_nan),)
        self.fields = ()

    def _twin(self, **inputs: np.ndarray) -> tuple[np.ndarray, ...]:
        numbers = np.cumsum(run_heads(inputs["keys"], self.marks[0].equal_nan), dtype=np.uint32)
        output = np.empty_like(numbers)
        output[inputs["places"]] = numbers - np.uint32(1)
        return output, numbers[-1:] if numbers.size else np.zeros(1, np.uint32)


def run_heads(keys: np.ndarray, equal_nan: bool = True) -> np.ndarray:
    """Return whether each key differs from the one before it."""
    heads = np.ones(keys.size, dtype=bool)
    heads[1:] = keys[1:] != keys[:-1]
    if equal_nan and keys.dtype.kind == "f":
        heads[1:] &= ~(np.isnan(keys[1:]) & np.isnan(keys[:-1]))
    return heads
