"""RunLength: runs of equal keys, as values, starts and lengths."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import wgpu

from ..call_errors import explained
from ..errors import ArgumentError
from ..planning.signature import Argument, UpTo
from ..settings import ScanStrategy
from ..tuning.options import StreamTuning
from ..types.capabilities import Capabilities
from ..types.datatype import DATATYPES, STORAGE_DATATYPES, Datatype, ItemDatatypeLike
from ..types.expression import Operators
from .calls import RunLengthCalls
from .engines.stream import Field, Mark, StreamPrimitive, count_argument
from .registry import register
from .unique import run_heads

_OUTPUTS = ("values", "starts", "lengths")


@register("run_length")
class RunLength(RunLengthCalls, StreamPrimitive):
    """Encode runs of equal keys: the key, the position of the first one, and how many there are.

    Parameters
    ----------
    device : wgpu.GPUDevice
    dtype : Datatype, str or numpy dtype, or expression, default "u32"
        Of the keys: bool or numbers of 8 to 64 bits.
    outputs : sequence of str, default ("values", "starts", "lengths")
        Those that are wanted.
    equal_nan : bool, default True
        Whether NaN equals NaN; otherwise each is a run. −0 equals +0 in any case.
    size, strategy, tuning, capabilities : optional
        As in `Select`.

    See Also
    --------
    execute : takes ``keys``, shape (n,), and gives ``values``, ``starts``, ``lengths`` (the last two of u32) and
        ``count``.

    Notes
    -----
    One pass: the head of a run writes the length of the run before it, and the last tile closes the last run. The
    starts of runs of sorted rows are the row pointer of a sparse matrix without empty rows.

    Examples
    --------
    >>> import numpy as np, gridwise_py as gw
    >>> device = gw.request_device()
    >>> keys = gw.asarray(np.array([7, 7, 2, 2, 2, 7], dtype=np.uint32), device)
    >>> run = gw.RunLength(device, "u32").execute(keys=keys)
    >>> run.outputs["lengths"].to_numpy()
    array([2, 3, 1], dtype=uint32)
    """

    datatypes = STORAGE_DATATYPES
    _label = "run_length"
    arguments = (
        Argument("keys"),
        Argument("values", is_output=True, length=UpTo("keys", count="count")),
        *(
            Argument(name, is_output=True, datatype=DATATYPES["u32"], length=UpTo("keys", count="count"))
            for name in _OUTPUTS[1:]
        ),
        count_argument(),
    )

    @explained(StreamTuning.remedies())
    def __init__(
        self,
        device: wgpu.GPUDevice | None,
        dtype: ItemDatatypeLike | Operators = "u32",
        *,
        outputs: Sequence[str] = _OUTPUTS,
        equal_nan: bool = True,
        size: int | None = None,
        strategy: ScanStrategy | None = None,
        tuning: StreamTuning | None = None,
        capabilities: Capabilities | None = None,
    ):
        super().__init__(device, size=size, strategy=strategy, tuning=tuning, capabilities=capabilities)
        if isinstance(outputs, str) or not outputs or not set(outputs) <= set(_OUTPUTS):
            raise ArgumentError(f"outputs={outputs!r} must be some of {', '.join(_OUTPUTS)}, for example ('starts',)")
        self.outputs: tuple[str, ...] = tuple(name for name in _OUTPUTS if name in outputs)
        self.datatype: Datatype = self._input("keys", dtype, self.datatypes)
        self.equal_nan: bool = bool(equal_nan)
        self.marks = (Mark("keys", self.datatype, heads=True, equal_nan=self.equal_nan),)
        self.run_lengths = "lengths" in self.outputs
        fields = {
            "values": Field(("values",), "keys", self.datatype),
            "starts": Field(("starts",), None, DATATYPES["u32"]),
        }
        self.fields = tuple(field for name, field in fields.items() if name in self.outputs)

    def _arguments(self) -> tuple[Argument, ...]:
        return tuple(each for each in self.arguments if each.name in (*self.outputs, "keys", "count"))

    def _twin(self, **inputs: np.ndarray) -> tuple[np.ndarray, ...]:
        keys = inputs["keys"]
        starts = np.flatnonzero(run_heads(keys, self.equal_nan))
        found = {"values": keys[starts], "starts": starts, "lengths": np.diff(np.append(starts, keys.size))}
        chosen = [found[name] if name == "values" else found[name].astype(np.uint32) for name in self.outputs]
        return *chosen, np.array([starts.size], dtype=np.uint32)
