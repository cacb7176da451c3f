"""CopyRanges: many ranges of items copied at once."""

from __future__ import annotations

from functools import cached_property

import numpy as np
import wgpu

from ..call_errors import explained
from ..errors import ArgumentError
from ..planning.builder import PlanBuilder
from ..planning.kernel_request import KernelFile, Memory
from ..planning.layout import Layout
from ..planning.plan import Plan, Work
from ..planning.signature import Argument, SameAs
from ..tuning.options import ElementwiseTuning
from ..tuning.shapes import shapes_for
from ..types.capabilities import Capabilities
from ..types.datatype import DATATYPES, STORAGE_DATATYPES, Datatype, ItemDatatypeLike, as_datatype
from .base import Primitive
from .calls import CopyRangesCalls
from .engines.segments import search_steps
from .scan import Scan

_U32 = DATATYPES["u32"]
_PER_RANGE = SameAs("lengths", "every range needs one")
# Items of an invocation in a tile: so many loads in flight.
_ITEMS = 8
# Workgroups, which take turns: some for each multiprocessor of a large GPU, and for a core of a CPU adapter.
_MOST_BLOCKS = 2112
_MOST_BLOCKS_CPU = 64


class CopyRanges(CopyRangesCalls, Primitive):
    """Copy many ranges of items of one array to other places.

    Parameters
    ----------
    device : wgpu.GPUDevice
    dtype : Datatype, str or numpy dtype, default "u32"
        Of the items; their bits are copied.
    tuning : ElementwiseTuning, optional
        Options that affect only the speed. By default the library's.
    capabilities : Capabilities, optional
        The capabilities to plan for, with None as device. By default those measured on the device.

    See Also
    --------
    execute : takes ``source``, of any length, ``source_offsets``, ``destination_offsets`` and ``lengths`` of u32, shape
        (ranges,) each, and ``output``, which must be given: what no range covers stays as it is.
    copy_ranges : the function.

    Notes
    -----
    Lengths are scanned first; then one dispatch copies all ranges. Its workgroups share the items equally, so ranges
    may differ in length as they like, from none to all items. Items of 1 and 2 bytes are written by atomics, since
    they share a word with others; that is slow.

    The sum of all lengths must be below 2³². Items outside of the source or of the output are left out. If ranges of
    the output overlap, one of their items stays at each place, and another one may on the next call. Nobody reports
    either, because only the GPU knows the offsets. The output must not share items with the source.

    Examples
    --------
    >>> import numpy as np, gridwise_py as gw
    >>> device = gw.request_device()
    >>> x, begins, to, lengths = (
    ...     gw.asarray(np.array(x, dtype=np.uint32), device) for x in ([5, 6, 7, 8], [2, 0], [0, 3], [2, 1])
    ... )
    >>> output = gw.zeros(5, "u32", device)
    >>> copy = gw.CopyRanges(device, "u32")
    >>> copy.execute(
    ...     source=x, source_offsets=begins, destination_offsets=to, lengths=lengths, output=output
    ... ).output.to_numpy()
    array([7, 8, 0, 5, 0], dtype=uint32)
    """

    datatypes = STORAGE_DATATYPES
    arguments = (
        Argument("source", chunked=True, any_shape=True),
        Argument("source_offsets", datatype=_U32, length=_PER_RANGE, is_apart=True),
        Argument("destination_offsets", datatype=_U32, length=_PER_RANGE, is_apart=True),
        Argument("lengths", datatype=_U32, is_apart=True),
        Argument("output", is_output=True, chunked=True, any_shape=True),
    )

    @explained(ElementwiseTuning.remedies())
    def __init__(
        self,
        device: wgpu.GPUDevice | None,
        dtype: ItemDatatypeLike = "u32",
        *,
        tuning: ElementwiseTuning | None = None,
        capabilities: Capabilities | None = None,
    ):
        super().__init__(device, capabilities=capabilities)
        self.datatype: Datatype = as_datatype(dtype, self.datatypes)
        self.tuning: ElementwiseTuning = ElementwiseTuning.of(tuning)
        self._shapes = shapes_for("elementwise", self.capabilities, tuning=self.tuning)

    @cached_property
    def _scan(self) -> Scan:
        """Scans the lengths."""
        return Scan(self._device, "u32", capabilities=self.capabilities)

    def plan(self, layout: Layout) -> Plan:
        """Return the plan: a scan of the lengths, and one dispatch."""
        builder = PlanBuilder("copy_ranges", layout, self.capabilities)
        source, lengths, output = layout["source"], layout["lengths"], layout["output"]
        ranges, moved = lengths.length, min(source.length, output.length)
        shape = self._shapes.at(output.length)
        if shape.workgroup_size < 2:
            raise ArgumentError("workgroup_size=1, but a search has two sides; use 2 or more")
        if ranges and moved:
            ends = builder.scratch("ends", ranges)
            builder.include("ends", self._scan, {"input": lengths, "output": ends}, counted=False)
            # Only the GPU knows how many items there are: workgroups take turns.
            most = _MOST_BLOCKS_CPU if self.capabilities.is_cpu else _MOST_BLOCKS
            offsets = {name: layout[name].by_words() for name in ("source_offsets", "destination_offsets")}
            for each in (some for some in self._shapes.all_for(output.length) if some.workgroup_size > 1):
                blocks = min(-(-output.length // (each.workgroup_size * _ITEMS)), most)
                lanes = each.workgroup_size // 2
                builder.kernel(
                    "copy",
                    KernelFile(
                        "copy_ranges.wgsl",
                        context={
                            "items": _ITEMS,
                            "item_bytes": self.datatype.itemsize_bytes,
                            "parts": 1,
                            "search_lanes": lanes,
                        },
                        constants={"WORKGROUP_SIZE": each.workgroup_size},
                    ),
                    Memory(
                        reads={"source": source.by_words(), **offsets, "ends": ends},
                        writes={"output": output.by_words()},
                        contended=("output",),
                    ),
                    params={
                        "ranges": ranges,
                        "blocks": blocks,
                        "source_length": source.length,
                        "output_length": output.length,
                        "search_steps": search_steps(ranges, lanes),
                    },
                    extent="blocks",
                    sibling=each != shape,
                )
        item_bytes = self.datatype.itemsize_bytes
        work = Work(source.length, moved * item_bytes + 12 * ranges, moved * item_bytes)
        return builder.build(work, {"ranges": ranges, "workgroup_size": shape.workgroup_size})

    def _reference(
        self, source: np.ndarray, source_offsets: np.ndarray, destination_offsets: np.ndarray, lengths: np.ndarray,
        output: np.ndarray,
    ) -> np.ndarray:  # fmt: skip
        """Return what numpy makes of the output's items; of ranges that overlap there, the last one's."""
        found = output.copy()
        columns = (each.tolist() for each in (source_offsets, destination_offsets, lengths))
        for begin, to, length in zip(*columns, strict=True):
            length = max(min(length, source.size - begin, output.size - to), 0)
            found[to : to + length] = source[begin : begin + length]
        return found
