"""NthElement: the items that a sort would put at some places."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import wgpu

from ..call_errors import explained
from ..errors import LimitError
from ..planning.builder import PlanBuilder
from ..planning.kernel_request import KernelFile, Memory
from ..planning.layout import Layout, Operand
from ..planning.plan import Fill, Plan, Work
from ..planning.signature import Argument
from ..tuning.options import HistogramTuning
from ..tuning.shapes import shapes_for
from ..types.capabilities import Capabilities
from ..types.datatype import DATATYPES, STORAGE_DATATYPES, Datatype, KeyDatatypeLike, as_datatype
from ..types.expression import Operators
from ..types.options import integer
from .base import Primitive
from .calls import NthElementCalls
from .engines.key_codes import key_codes, key_context, key_words
from .registry import register

_BINS = 2048
_TOP_BITS = 11
#: Places of one call: each may have a digit of its own, of 7 bits.
MOST_PLACES = 16
_SLOT_BITS = 7
# A buffer has room for this part of the items. Of uniform floats an eighth have the first digit of their median, and
# another one that of the largest, which says whether there is a NaN.
_CANDIDATES = 3
# Kernels add a tile to a place, in 32 bits.
_MOST_ITEMS = (1 << 32) - (1 << 20)


@register("nth_element")
class NthElement(NthElementCalls, Primitive):
    """Find the items that a sort would put at some places, without sorting.

    Parameters
    ----------
    device : wgpu.GPUDevice
    dtype : Datatype, str or numpy dtype, or expression, default "u32"
        Datatype of the items: bool, or integers and floats of 8 to 64 bits.
    count : int, default 1
        How many places, from 1 to 16.
    tuning : HistogramTuning, optional
        Shape of the kernels; affects only the speed.
    capabilities : Capabilities, optional
        The capabilities to plan for, with None as device. By default those measured on the device.

    See Also
    --------
    execute : takes ``input``, shape (n,), and ``places`` of u32, shape (count,), from 0 on; gives ``values``, shape
        (count,). A place behind the last item counts as the last one.
    nth_element, median, quantile : functions.

    Notes
    -----
    The order is that of `Sort`: −0 equals +0, and +0 is given for both; every NaN comes last.

    A radix select: the items are counted by their highest 11 bits, then those that share them with the item of a place
    by the next bits, and so on: items of 4 bytes in three dispatches for one place, in four for more. The input is read
    twice, if a third of the items at most has the first digits of the places: the second dispatch stores these. Of
    other data, such as many equal items, each dispatch reads the input. Source: J. Zhang, A. Naruse, X. Li and Y. Wang,
    "Parallel top-k algorithms on GPU: a comprehensive study and new methods" (2023).

    Examples
    --------
    >>> import numpy as np, gridwise_py as gw
    >>> device = gw.request_device()
    >>> x, places = (gw.asarray(np.array(x, dtype=np.uint32), device) for x in ([30, 10, 20, 40], [0, 2]))
    >>> gw.NthElement(device, "u32", 2).execute(input=x, places=places).output.to_numpy()
    array([10, 30], dtype=uint32)
    """

    takes_count = True
    datatypes: ClassVar[Mapping[str, Datatype]] = STORAGE_DATATYPES
    arguments = (
        Argument("input", chunked=True),
        Argument("places", datatype=DATATYPES["u32"], is_apart=True),
        Argument("values", is_output=True),
    )

    @explained(HistogramTuning.remedies())
    def __init__(
        self,
        device: wgpu.GPUDevice | None,
        dtype: KeyDatatypeLike | Operators = "u32",
        count: int = 1,
        *,
        tuning: HistogramTuning | None = None,
        capabilities: Capabilities | None = None,
    ):
        super().__init__(device, capabilities=capabilities)
        self.count: int = integer("count", count, 1, MOST_PLACES)
        self.datatype: Datatype = as_datatype(self._take(dtype), self.datatypes)
        self.tuning: HistogramTuning = HistogramTuning.of(tuning)
        self._shapes = shapes_for("histogram", self.capabilities, tuning=self.tuning)

    def _arguments(self) -> tuple[Argument, ...]:
        return tuple(each if each.name == "input" else replace(each, length=self.count) for each in self.arguments)

    @classmethod
    def at_size(cls, n: int, **axes: Any) -> tuple[dict[str, Any], dict[str, int]]:
        """Return the options for one place, and the lengths of the inputs."""
        return {"count": 1}, {"input": n, "places": 1}

    @property
    def _digits(self) -> list[tuple[int, int, int]]:
        """The word, the shift and the bits of each digit, from the highest one down."""
        most = _TOP_BITS if self.count == 1 else _SLOT_BITS
        digits: list[tuple[int, int, int]] = []
        for word in reversed(range(key_words(self.datatype))):
            lowest = max(32 - 8 * self.datatype.itemsize_bytes, 0)  # small keys are the upper part of a word
            end = 32
            if not digits:
                bits = min(_TOP_BITS, 32 - lowest)
                end -= bits
                digits.append((word, end, bits))
            steps = -(-(end - lowest) // most)
            for k in range(steps):
                begin = lowest + (end - lowest) * (steps - 1 - k) // (steps - k)
                digits.append((word, begin, end - begin))
                end = begin
        return digits

    def plan(self, layout: Layout) -> Plan:
        """Return the plan: one dispatch for each digit."""
        builder = PlanBuilder("nth_element", layout, self.capabilities)
        layout = self._reads(layout)
        items, places, values = (layout[name] for name in ("input", "places", "values"))
        n, words, digits = items.length, key_words(self.datatype), self._digits
        if n > _MOST_ITEMS:
            raise LimitError(f"NthElement: input has {n} items, but takes at most {_MOST_ITEMS}; split it")
        shape = self._shapes.at(n)
        parameters = {
            "count": self.count, "digits": len(digits), "workgroup_size": shape.workgroup_size, "vecs": shape.vecs,
            "max_blocks": shape.max_blocks,
        }  # fmt: skip
        work = Work(n, items.nbytes, values.nbytes, counted=builder.counted_work(n, items.nbytes // max(n, 1), 0))
        if not n and values.nbytes % 4 == 0 and builder.count is None:
            builder.step(Fill(values.buffer, values.first_byte, values.nbytes))
            return builder.build(work, parameters)
        if not n:  # one step, which writes zeros
            items = Operand(
                0, builder.constant("nothing", (0,) * 4), size_bytes=16, item_bytes=self.datatype.itemsize_bytes
            )
            digits = digits[:1]
        counts = builder.scratch("counts", _BINS + 16)
        memory = builder.scratch("memory", _BINS + 16 + (len(digits) + 1) * (4 + 4 * MOST_PLACES))
        candidates = builder.scratch("candidates", n // _CANDIDATES, 4 * words)
        known = 0
        for step, (word, shift, bits) in enumerate(digits):
            for each in self._shapes.all_for(n) if n else (shape,):
                blocks = max(min(-(-n // each.tile_items), each.max_blocks), 1)
                builder.kernel(
                    f"digit {step}",
                    KernelFile(
                        "nth_element.wgsl",
                        context={
                            **key_context(self.datatype),
                            "listed": False,
                            "first": not step,
                            "bins": _BINS,
                            "most_places": MOST_PLACES,
                            "top_bits": digits[0][2],
                            "vecs": each.vecs,
                            "workgroup_size": each.workgroup_size,
                            "vec4": items.item_bytes == 4,
                        },
                    ),
                    Memory(
                        reads={"input": items, **({} if step else {"places": places.by_words()})},
                        writes={**({"candidates": candidates.by_words()} if step else {}), "values": values.by_words()},
                        atomics={"counts": (counts, "array<atomic<u32>>"), "memory": (memory, "array<u32>")},
                    ),
                    params={
                        "n": n,
                        "blocks": blocks,
                        "places": self.count,
                        "step": step,
                        "digit_word": word,
                        "digit_shift": shift,
                        "digit_mask": (1 << bits) - 1,
                        "known_low": known & 0xFFFFFFFF,
                        "known_high": known >> 32,
                        "room": n // _CANDIDATES,
                        "is_last": int(step + 1 == len(digits)),
                    },
                    extent="blocks",
                    sibling=each != shape,
                    counted_from=0,
                )
            known |= ((1 << bits) - 1) << (32 * word + shift)
        return builder.build(work, parameters)

    def _reference(self, input: np.ndarray, places: np.ndarray) -> np.ndarray:
        """Return numpy's result for the same input."""
        if not input.size:
            return np.zeros(places.size, input.dtype)
        found = input[np.argsort(key_codes(input), kind="stable")[np.minimum(places, input.size - 1)]]
        return found + input.dtype.type(0) if input.dtype.kind == "f" else found
