"""Select: the items that a flag or a predicate marks, in order."""

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
from ..types.expression_functions import StructExpression
from .calls import SelectCalls
from .engines.stream import FLAGS, Field, Mark, StreamPrimitive, count_argument
from .registry import register


@register("select")
class Select(SelectCalls, StreamPrimitive):
    """Copy the items that a flag or a predicate marks, in order, and count them.

    Parameters
    ----------
    device : wgpu.GPUDevice
    dtype : Datatype, str or numpy dtype, or expression, default "u32"
        Any; or an expression, where each field of `struct` is an output.
    where : expression, optional
        The predicate. Without it `execute` takes ``flags``.
    flag_dtype : Datatype, str or numpy dtype, default "bool"
        What is not 0 selects.
    size : int, optional
        Room of the output, by default for all items. What does not fit is not written, but counted.
    strategy : {"auto", "reduce_then_scan", "lookback"}, optional
        ``"lookback"`` reads each item once, in one dispatch. ``"reduce_then_scan"`` reads the flags twice, in three
        dispatches, and no workgroup waits for another. ``"auto"`` takes look-back unless the device's self-test finds
        it unsafe.
    tuning : StreamTuning, optional
        Options that affect only the speed.
    capabilities : Capabilities, optional
        The capabilities to plan for, with None as device. By default those measured on the device.

    Raises
    ------
    DatatypeError
        If there is no such datatype, or, in a call, an Array holds another one.
    ArgumentError
        If an option is unknown or does not fit.
    LengthError
        In a call, if there is not one flag for each item.
    OverlapError
        In a call, if an output overlaps an input.

    See Also
    --------
    execute : takes ``input`` and ``flags``, shape (n,) each, or the leaves of the expressions by their names; gives
        ``output``, which carries its count, and ``count``.

    Notes
    -----
    Each item is read once, and the selected ones are written once. An item of 1 or 2 bytes is written by atomics, since
    it shares its word with others; that is slow. The outputs must not overlap the inputs.

    Sources: the stream compaction of D. Merrill and M. Garland, "Single-pass parallel prefix scan with decoupled
    look-back" (2016), with T. Smith, R. Levien and J. Owens, "Decoupled Fallback" (2025).

    Examples
    --------
    >>> import numpy as np, gridwise_py as gw
    >>> device = gw.request_device()
    >>> x = gw.asarray(np.array([3, 1, 4, 1, 5], dtype=np.uint32), device)
    >>> gw.Select(device, gw.u32("x"), where=gw.u32("x") > 2).execute(x=x).output.to_numpy()
    array([3, 4, 5], dtype=uint32)
    """

    datatypes = ITEM_DATATYPES
    _label = "select"
    arguments = (
        Argument("input"),
        Argument("flags", datatype="flag_datatype", length=SameAs("input", "every item needs one flag")),
        Argument("output", is_output=True, length=UpTo("input", count="count")),
        count_argument(),
    )

    @explained(StreamTuning.remedies())
    def __init__(
        self,
        device: wgpu.GPUDevice | None,
        dtype: ItemDatatypeLike | Operators | StructExpression = "u32",
        *,
        where: Operators | None = None,
        flag_dtype: ItemDatatypeLike = "bool",
        size: int | None = None,
        strategy: ScanStrategy | None = None,
        tuning: StreamTuning | None = None,
        capabilities: Capabilities | None = None,
    ):
        kernel = "stream_flags" if where is None else "stream"
        super().__init__(device, size=size, strategy=strategy, tuning=tuning, capabilities=capabilities, kernel=kernel)
        fields = dtype.fields if isinstance(dtype, StructExpression) else {"output": dtype}
        operands = ["input"] if len(fields) == 1 else [f"input_{k}" for k in range(len(fields))]
        kinds = [self._input(name, of, self.datatypes) for name, of in zip(operands, fields.values(), strict=True)]
        #: Of the items; of several fields that of the first.
        self.datatype: Datatype = kinds[0]
        self.flag_datatype: Datatype = self._input("flags", flag_dtype if where is None else where, FLAGS)
        self.marks = (Mark("flags", self.flag_datatype),)
        self.fields = tuple(
            Field((output,), name, kind) for output, name, kind in zip(fields, operands, kinds, strict=True)
        )

    def _arguments(self) -> tuple[Argument, ...]:
        first = str(self.fields[0].argument)
        same = SameAs(first, "every item needs one flag")
        return (
            *(
                Argument(str(field.argument), datatype=field.datatype, length=same if k else None)
                for k, field in enumerate(self.fields)
            ),
            Argument("flags", datatype=self.flag_datatype, length=same),
            *(
                Argument(field.outputs[0], is_output=True, datatype=field.datatype, length=UpTo(first, count="count"))
                for field in self.fields
            ),
            count_argument(),
        )

    def _twin(self, **inputs: np.ndarray) -> tuple[np.ndarray, ...]:
        marked = inputs["flags"] != 0
        kept = [inputs[str(field.argument)][marked] for field in self.fields]
        return *kept, np.array([marked.sum()], dtype=np.uint32)


class FlatNonzero(StreamPrimitive):
    """The positions (u32) of the items that are not 0, in order; see `Select`."""

    datatypes = STORAGE_DATATYPES
    _label = "flatnonzero"
    arguments = (
        Argument("input"),
        Argument("output", is_output=True, datatype=DATATYPES["u32"], length=UpTo("input", count="count")),
        count_argument(),
    )

    def __init__(
        self,
        device: wgpu.GPUDevice | None,
        dtype: ItemDatatypeLike | Operators = "u32",
        *,
        size: int | None = None,
        strategy: ScanStrategy | None = None,
        tuning: StreamTuning | None = None,
        capabilities: Capabilities | None = None,
    ):
        super().__init__(device, size=size, strategy=strategy, tuning=tuning, capabilities=capabilities)
        self.datatype: Datatype = self._input("input", dtype, self.datatypes)
        self.marks = (Mark("input", self.datatype),)
        self.fields = (Field(("output",), None, DATATYPES["u32"]),)

    def _twin(self, **inputs: np.ndarray) -> tuple[np.ndarray, ...]:
        found = np.flatnonzero(inputs["input"]).astype(np.uint32)
        return found, np.array([found.size], dtype=np.uint32)
