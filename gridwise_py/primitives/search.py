"""Search: where queries go into sorted keys."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar, Literal, TypeAlias, get_args

import numpy as np
import wgpu

from ..call_errors import explained
from ..errors import DatatypeError, LimitError
from ..planning.builder import PlanBuilder
from ..planning.kernel_request import KernelFile, Memory
from ..planning.layout import Layout, Operand
from ..planning.plan import Fill, Plan, Work
from ..planning.signature import Argument, SameAs
from ..planning.windows import windows_of
from ..tuning.options import ElementwiseTuning
from ..tuning.shapes import shapes_for
from ..types.capabilities import Capabilities
from ..types.datatype import DATATYPES, STORAGE_DATATYPES, VALUE_DATATYPES, Datatype, KeyDatatypeLike, as_datatype
from ..types.expression import Operators
from ..types.options import one_of
from .base import Primitive
from .calls import SearchCalls
from .engines.key_codes import key_context
from .registry import register

#: Before or behind the keys that equal a query.
SearchSide: TypeAlias = Literal["left", "right"]
# Bytes of the table of keys in workgroup memory: eight such workgroups fit on a multiprocessor that has 64 KiB.
_TABLE_BYTES = 8192
# Samples cost a pass over the keys, and save half of the steps of each query.
_MOST_KEYS_A_QUERY = 8
# A search adds up to the number of keys to a position, in 32 bits.
_MOST_KEYS = (1 << 31) - 1


#: What can be searched: numbers of 2 bytes or more.
SEARCHED_DATATYPES: Mapping[str, Datatype] = VALUE_DATATYPES | {"f16": STORAGE_DATATYPES["f16"]}


@register("search")
class Search(SearchCalls, Primitive):
    """Find where queries go into sorted keys so that these stay sorted: numpy's ``searchsorted``.

    Parameters
    ----------
    device : wgpu.GPUDevice
    dtype : Datatype, str or numpy dtype, default "u32"
        Of keys and queries: u32, i32, f32, u64, i64, f64 or f16.
    side : {"left", "right"}, default "left"
        Before or behind keys that are equal.
    queries : Expression, optional
        Queries that are not stored: their leaves are arguments.
    sorter : bool, default False
        Whether `execute` takes ``sorter``, the indices (u32) that sort the keys.
    tuning : ElementwiseTuning, optional
        Shape of the kernel; affects only the speed. By default the library's, or the one from ``gridwise tune``.
    capabilities : Capabilities, optional
        The capabilities to plan for, with None as device. By default those measured on the device.

    See Also
    --------
    execute : takes ``sorted``, shape (k,), ``queries``, of any shape, ``output``, u32 of the shape of ``queries``, and
        ``sorter``, shape (k,).

    Notes
    -----
    The order is that of `Sort`: −0 equals +0, and every NaN comes last and equals every other. The keys must ascend in
    this order, which is not checked; among others the results are meaningless, but from 0 to k.

    One dispatch reads the queries and writes the indices. Each workgroup first copies 512 to 2,048 keys, evenly spaced,
    into workgroup memory: the upper half of a search needs no other memory. For many queries among keys of 4 bytes,
    another dispatch before takes samples of the keys, a third of their memory: a step then reads 16 bytes and decides
    between four parts. Sorted queries are faster than others, because neighbours read the same keys. There may be up to
    2³¹ − 1 keys.

    Examples
    --------
    >>> import numpy as np, gridwise_py as gw
    >>> device = gw.request_device()
    >>> keys, queries = (gw.asarray(np.array(x, dtype=np.uint32), device) for x in ([1, 3, 3, 7], [0, 3, 9]))
    >>> gw.Search(device, "u32").execute(sorted=keys, queries=queries).output.to_numpy()
    array([0, 1, 4], dtype=uint32)
    >>> first = gw.empty(9, "u32", device)  # the first key that is at least 0, 1, 2, …
    >>> gw.Search(device, "u32", queries=gw.index).execute(sorted=keys, output=first).output.to_numpy()
    array([0, 0, 1, 1, 3, 3, 3, 3, 4], dtype=uint32)
    """

    datatypes: ClassVar[Mapping[str, Datatype]] = SEARCHED_DATATYPES
    # Whether the output says if a query is among the keys, in place of its index.
    _member: ClassVar[bool] = False
    # Whether the keys may also descend, as their first and last one say.
    _either: ClassVar[bool] = False
    arguments = (
        Argument("sorted", chunked=True, ascending=True),
        Argument("queries", chunked=True, any_shape=True),
        Argument(
            "output", is_output=True, datatype=DATATYPES["u32"], length=SameAs("queries"), chunked=True, any_shape=True
        ),
    )

    @explained(ElementwiseTuning.remedies())
    def __init__(
        self,
        device: wgpu.GPUDevice | None,
        dtype: KeyDatatypeLike = "u32",
        *,
        side: SearchSide = "left",
        queries: Operators | None = None,
        sorter: bool = False,
        tuning: ElementwiseTuning | None = None,
        capabilities: Capabilities | None = None,
    ):
        super().__init__(device, capabilities=capabilities)
        self.datatype: Datatype = as_datatype(dtype, self.datatypes)
        self.side: SearchSide = one_of("side", side, get_args(SearchSide))
        self.sorter: bool = bool(sorter)
        if queries is not None:
            found = as_datatype(self._take(queries, "queries"), self.datatypes)
            if found != self.datatype:
                raise DatatypeError(
                    f"Search: the queries are of {found}, but the keys of {self.datatype}; cast the queries, for "
                    f"example gw.{self.datatype.name}(x)"
                )
        self.tuning: ElementwiseTuning = ElementwiseTuning.of(tuning)
        self._shapes = shapes_for("search", self.capabilities, tuning=self.tuning)

    def _arguments(self) -> tuple[Argument, ...]:
        keys, *others = self.arguments
        if not self.sorter:
            return self.arguments
        length = SameAs("sorted", "every key needs one index")
        index = Argument("sorter", datatype=DATATYPES["u32"], length=length, chunked=True)
        return (replace(keys, ascending=False), index, *others)

    def plan(self, layout: Layout) -> Plan:
        """Return the plan: one dispatch for each window of the queries, after one that takes samples of the keys.

        Without keys every index is 0. Few keys or few queries need no samples.
        """
        builder = PlanBuilder("search", layout, self.capabilities)
        layout = self._reads(layout)
        keys, queries = layout["sorted"], layout["queries"]
        shape = self._shapes.at(queries.length)
        if keys.length > _MOST_KEYS:
            raise LimitError(f"Search: sorted has {keys.length} keys, but takes at most {_MOST_KEYS}; split it")
        table_keys = _TABLE_BYTES // max(4, self.datatype.itemsize_bytes)
        levels = self._levels(keys.length, queries.length, table_keys)
        # The table has the last key of each span of 2^span_log2.
        span_log2 = 2 * (levels + 1) if levels else _shift_below(keys.length, table_keys)
        table_length = keys.length >> span_log2
        parameters = {
            "workgroup_size": shape.workgroup_size,
            "vecs": shape.vecs,
            "shape": self._shapes.source_of(shape),
            "table_keys": table_length,
            "levels": levels,
        }
        read_bytes = queries.nbytes + min(keys.length, queries.length) * self.datatype.itemsize_bytes
        work = Work(queries.length, read_bytes, queries.length * 4)
        if not keys.length:
            for part in layout["output"].parts if queries.length else ():
                builder.step(Fill(part.buffer, part.first_byte, part.length * 4))
            return builder.build(work, parameters)
        reads = {"sorted": keys if levels else keys.by_words()}
        if self.sorter:
            reads["sorter"] = layout["sorter"].by_words()
        if levels:
            reads["samples"] = self._add_samples(builder, keys, levels, queries.length)
        windows = windows_of(layout, ["queries", "output"], self.capabilities, shape.tile_items)
        for window in windows:
            for each in (shape,) if window.index else self._shapes.all_for(queries.length):
                blocks = -(-window.length // each.tile_items)
                builder.kernel(
                    window.label("search"),
                    KernelFile(
                        "search.wgsl",
                        context={
                            **key_context(self.datatype),
                            "side": self.side,
                            "member": self._member,
                            "either": self._either,
                            "sorter": self.sorter,
                            "samples": bool(levels),
                            "table_keys": table_keys,
                            "vecs": each.vecs,
                        },
                        constants={"WORKGROUP_SIZE": each.workgroup_size},
                    ),
                    Memory(
                        reads={**reads, "queries": window.operands["queries"].by_words()},
                        writes={"output": window.operands["output"].by_words()},
                    ),
                    params={
                        "n": window.length,
                        "blocks": blocks,
                        "length": keys.length,
                        "span_log2": span_log2,
                        "table_length": table_length,
                        "table_step": _power_of_two_below(table_length),
                        **({"levels": levels} if levels else {}),
                    },
                    extent="blocks",
                    sibling=each != shape,
                )
        return builder.build(work, parameters | {"windows": len(windows)})

    def _levels(self, keys: int, queries: int, table_keys: int) -> int:
        """Return how many levels of samples there are, each with a fourth of the one below; the table is above them."""
        if self.sorter or self.datatype.itemsize_bytes != 4 or queries * _MOST_KEYS_A_QUERY < keys:
            return 0
        return max(0, -(-_shift_below(keys, table_keys) // 2) - 1)

    def _add_samples(self, builder: PlanBuilder, keys: Operand, levels: int, queries: int) -> Operand:
        """Add the kernel that takes samples, and return where they lie."""
        sizes = [-(-(keys.length >> 2 * level) // 4) * 4 for level in range(1, levels + 1)]
        samples = builder.scratch("samples", sum(sizes))
        size = self._shapes.at(queries).workgroup_size
        for each in dict.fromkeys(shape.workgroup_size for shape in self._shapes.all_for(queries)):
            blocks = -(-(keys.length >> 2) // each)
            builder.kernel(
                "samples",
                KernelFile(
                    "search_samples.wgsl", context=key_context(self.datatype), constants={"WORKGROUP_SIZE": each}
                ),
                Memory(reads={"sorted": keys.by_words()}, writes={"samples": samples.by_words()}),
                params={"blocks": blocks, "length": keys.length, "levels": levels, "samples_length": samples.length},
                extent="blocks",
                sibling=each != size,
            )
        return samples

    def _reference(self, sorted: np.ndarray, queries: np.ndarray, sorter: np.ndarray | None = None) -> np.ndarray:
        """Return the result of numpy's searchsorted."""
        return np.searchsorted(sorted, queries, self.side, sorter).astype(np.uint32)


class IsIn(Search):
    """Whether each query is among the keys: 1 or 0 (u32); a NaN is not."""

    _member: ClassVar[bool] = True

    def _reference(self, sorted: np.ndarray, queries: np.ndarray, sorter: np.ndarray | None = None) -> np.ndarray:
        """Return the result of numpy's isin."""
        return np.isin(queries, sorted).astype(np.uint32)


class Bins(Search):
    """Where queries go among keys that ascend or descend: numpy's ``digitize``."""

    _either: ClassVar[bool] = True

    def _reference(self, sorted: np.ndarray, queries: np.ndarray, sorter: np.ndarray | None = None) -> np.ndarray:
        """Return the result of numpy's digitize."""
        return np.digitize(queries, sorted, self.side == "left").astype(np.uint32)


def _shift_below(n: int, most: int) -> int:
    """Return the least k for which n / 2^k, rounded down, is at most `most`."""
    shift = max(0, n.bit_length() - most.bit_length())
    return shift + (n >> shift > most)


def _power_of_two_below(n: int) -> int:
    """Return the largest power of two that is at most `n`; 0 for 0."""
    return 1 << n.bit_length() - 1 if n else 0
