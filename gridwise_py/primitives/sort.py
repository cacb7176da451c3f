"""Sort: stable radix sorts of keys and of key-value pairs, and argsort."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, get_args

import numpy as np
import wgpu

from ..call_errors import explained
from ..errors import ArgumentError, DatatypeError
from ..planning.builder import PlanBuilder
from ..planning.faults import HEALTHY, Faults
from ..planning.layout import Layout, Operand
from ..planning.lookback_state import SPIN_LIMIT
from ..planning.plan import Plan, Work
from ..planning.signature import Argument, SameAs
from ..planning.source import Source
from ..tuning.model import code_counts
from ..tuning.options import SortTuning
from ..tuning.rows import MOST_ITEMS, Shapes, overlay
from ..tuning.sort_shapes import sort_shapes_for
from ..types.capabilities import Capabilities, SubgroupMode
from ..types.datatype import (
    DATATYPES,
    STORAGE_DATATYPES,
    VALUE_DATATYPES,
    Datatype,
    KeyDatatypeLike,
    Struct,
    ValueDatatypeLike,
    as_datatype,
)
from ..types.expression import Operators
from ..types.options import integer, one_of
from .base import Primitive
from .calls import InputOutputCalls, SortPairsCalls
from .engines.key_codes import key_codes
from .engines.radix_sort import ONESWEEP, REDUCE_THEN_SCAN, SortConfig, SortStrategy, add_sort, digits_of, ranking_mode
from .registry import register
from .waiting import Waiting

# On a CPU adapter a tile's workgroup may wait for a core.
_SPIN_LIMIT_CPU = 4096


class Roles(NamedTuple):
    """The names of a sort's arguments; None if there is no such argument."""

    keys_in: str
    keys_out: str | None = None
    values_in: str | None = None
    values_out: str | None = None


class SortPrimitive(Primitive):
    """Base of all sorts; see `Sort`."""

    takes_count = True
    datatypes: ClassVar[Mapping[str, Datatype]] = STORAGE_DATATYPES
    _roles: ClassVar[Roles]
    _faults: ClassVar[Faults] = HEALTHY

    def __init__(
        self,
        device: wgpu.GPUDevice | None,
        datatype: KeyDatatypeLike | Operators,
        value_datatype: Datatype | None,
        *,
        descending: bool,
        begin_bit: int,
        end_bit: int | None,
        overwrite_input: bool,
        strategy: SortStrategy | None,
        tuning: SortTuning | None,
        capabilities: Capabilities | None,
        computes: bool = False,
    ):
        super().__init__(device, capabilities=capabilities)
        taken = self._take(datatype, self._roles.keys_in)
        #: Whether keys are an expression of two words.
        self._takes_pairs = isinstance(taken, Struct)
        self.datatype: Datatype = as_datatype(_of_pair(self.name, taken), self.datatypes)
        if overwrite_input and self._fusion is not None:
            raise ArgumentError(
                f"{self.name}: overwrite_input=True sorts in place, but keys that are an expression lie nowhere; leave "
                f"it out"
            )
        self.value_datatype = value_datatype
        self.descending: bool = bool(descending)
        self.overwrite_input = overwrite_input
        self.begin_bit: int = integer("begin_bit", begin_bit)
        self.end_bit: int | None = None if end_bit is None else integer("end_bit", end_bit)
        self._requested: SortStrategy | None = (
            None if strategy is None else one_of("strategy", strategy, get_args(SortStrategy))
        )
        self.tuning: SortTuning = SortTuning.of(tuning)
        if self._faults.epoch_bits is not None:
            raise ArgumentError(f"{self.name}: epoch_bits={self._faults.epoch_bits}, but words of sorts always have 1")
        self.mode: SubgroupMode = ranking_mode(self.capabilities, self.tuning.subgroups)
        self._digits = digits_of(self.datatype, self.begin_bit, self.end_bit)
        self._value_words = value_datatype.itemsize_bytes // 4 if value_datatype is not None else 0
        self._shapes = sort_shapes_for(
            self.capabilities, self.mode, self.datatype, self._value_words, self.tuning,
            computes=computes or self._fusion is not None,
        )  # fmt: skip

        # Sorts use 32-bit state words.
        spin_limit = _SPIN_LIMIT_CPU if self.capabilities.is_cpu else SPIN_LIMIT
        self._waiting = Waiting(self.capabilities, self._device, "u32x2", self.tuning, spin_limit)

    @cached_property
    def _configs(self) -> Shapes[SortConfig]:
        """The configurations by the number of keys; the first plan makes them, and may test the device for that."""
        strategy, tickets, waiting = self._requested, False, self._waiting
        if strategy != REDUCE_THEN_SCAN:
            tickets = waiting.tickets
            if strategy is None:
                strategy = ONESWEEP if waiting.is_safe else REDUCE_THEN_SCAN
        whole = self._digits == digits_of(self.datatype, 0, None)
        by_counts = self._requested is None and self._value_words == 0 and self.datatype.dtype.kind != "f" and whole
        config = SortConfig(
            key=self.datatype,
            descending=self.descending,
            value_words=self._value_words,
            generated=self.value_datatype is not None and self._roles.values_in is None,
            digits=self._digits,
            strategy=strategy,
            mode=self.mode,
            shape=self._shapes.rows[-1][1],
            capabilities=self.capabilities,
            tickets=tickets,
            spin_limit=waiting.spin_limit,
            counts=by_counts and self.datatype.itemsize_bytes == 1,
            faults=self._faults,
        )
        rows = tuple((up_to, replace(config, shape=shape)) for up_to, shape in self._shapes.rows)
        if by_counts and self.datatype.itemsize_bytes == 2 and not self.capabilities.is_cpu:
            above = code_counts(self.capabilities).least - 1
            rows = overlay(rows, ((above, MOST_ITEMS, replace(rows[-1][1], counts=True)),)).rows
        return Shapes(rows, self._shapes.source, self._shapes.tuned)

    def _reads(self, layout: Layout) -> Layout:
        layout = super()._reads(layout)
        if not self._takes_pairs:
            return layout
        keys = layout[self._roles.keys_in]
        assert isinstance(keys, Source)
        # The first field decides first: it is the high word.
        program = replace(keys.program, results=keys.program.results[::-1])
        pairs = replace(keys, program=program, length=keys.length // 2, item_bytes=8, is_struct=False, is_pair=True)
        operands: dict[str, Operand] = dict(layout)
        return Layout(operands | {self._roles.keys_in: pairs}, layout.values_given)

    def plan(self, layout: Layout) -> Plan:
        """Return the plan: one dispatch for up to one tile, else a histogram and one or three dispatches per digit."""
        builder = PlanBuilder(self.name.lower(), layout, self.capabilities)
        layout = self._reads(layout)
        operand = layout[self._roles.keys_in]
        n, key_bytes = operand.length, self.datatype.itemsize_bytes
        parameters = self.add_to(builder, layout)
        value_bytes = self.value_datatype.itemsize_bytes if self.value_datatype is not None else 0
        read = value_bytes if self._roles.values_in is not None else 0
        written = (key_bytes if self._roles.keys_out is not None else 0) + value_bytes
        read_bytes = operand.nbytes + n * read
        counted = builder.counted_work(n, read_bytes // max(n, 1), written)
        return builder.build(Work(n, read_bytes, n * written, counted=counted), parameters)

    def add_to(self, builder: PlanBuilder, layout: Layout) -> dict[str, Any]:
        """Add the steps to a plan; see `PlanBuilder.include`."""
        keys_in, keys_out, values_in, values_out = self._roles
        operand = layout[keys_in]
        keys = {"input": operand}
        values: dict[str, Operand] = {}
        if keys_out is not None:
            keys["output"] = layout[keys_out]
            if self.overwrite_input and operand.length and keys["output"] != operand:
                raise ArgumentError(
                    f"{self.name}: overwrite_input=True sorts in place; leave out {keys_out}=, or make a {self.name} "
                    f"without overwrite_input"
                )
        if values_out is not None:
            values = {"input": layout[values_in]} if values_in is not None else {}
            values["output"] = layout[values_out]
        return add_sort(builder, self._configs, keys, values)

    def _order(self, keys: np.ndarray) -> np.ndarray:
        codes = key_codes(keys, self.descending)
        bits = 8 * keys.dtype.itemsize
        end_bit = bits if self.end_bit is None else self.end_bit
        codes = codes & codes.dtype.type((1 << end_bit) - (1 << self.begin_bit))
        if bits > 32 or keys.size >= 1 << 32:
            return np.argsort(codes, kind="stable")
        # The same in a third of the time: positions in the low bits make all codes different.
        places = codes.astype(np.uint64) << np.uint64(32) | np.arange(keys.size, dtype=np.uint64)
        places.sort()
        return (places & np.uint64(0xFFFFFFFF)).astype(np.intp)


@register("sort")
class Sort(InputOutputCalls, SortPrimitive):
    """Sort keys; stable.

    Parameters
    ----------
    device : wgpu.GPUDevice
    dtype : Datatype, str or numpy dtype, default "u32"
        Datatype of the keys: bool, or integers and floats of 8 to 64 bits.
    descending : bool, default False
        Largest first. Equal keys keep their order in both directions.
    begin_bit, end_bit : int, optional
        Sort only by these bits, from `begin_bit` to `end_bit` (exclusive); by default by all. They are bits of the
        key's code, an unsigned integer: codes have the order of the keys.
    overwrite_input : bool, default False
        Sort in place: the outputs are the inputs, which saves memory.
    strategy : {None, "onesweep", "reduce_then_scan"}, optional
        ``"onesweep"`` counts all digits at once, and then reads and writes each item once per digit, with decoupled
        look-back and fallback. ``"reduce_then_scan"`` counts each digit before it moves the items, and no workgroup
        ever waits for another. None uses ``"onesweep"`` if the self-test of the device finds look-back safe.
    tuning : SortTuning, optional
        Options that affect only the speed; see `SortTuning`. By default the library's.
    capabilities : Capabilities, optional
        The capabilities to plan for, with None as device. By default those measured on the device.

    Raises
    ------
    DatatypeError
        If keys are of a datatype that is not sorted, or, in a call, an Array holds another one.
    ArgumentError
        If an option is unknown, or the bits do not lie in a key.
    LengthError
        In a call, if lengths differ, or an output has no room for the result.
    OverlapError
        In a call, if input and output overlap.

    See Also
    --------
    execute : takes ``input`` and ``output``, shape (n,) each.
    SortPairs, ArgSort

    Notes
    -----
    The order is that of numpy's stable sort: −0 equals +0 and keeps its sign, and every NaN comes last, also in
    descending order. The algorithm is a least significant digit radix sort with digits of 8 bits. A digit that is the
    same in all keys moves nothing: its dispatches end at once. Bools, integers of 8 bits, and on a GPU many of 16, are
    counted instead (unless a strategy or bits are given), and written by their counts: of equal keys none can be told
    from another.

    Temporary memory is one copy of the items, 2 KiB per digit, and 1 KiB per tile (``tiles`` in ``plan.parameters``)
    for ``"onesweep"`` or 2 KiB per block for ``"reduce_then_scan"``. Up to one tile of items needs no temporary
    memory: one workgroup sorts it in one dispatch. Arrays that are larger than a binding of the device are bound in
    segments, and chunks of a `ChunkedArray` one by one. The device's max-storage-buffers-per-shader-stage limits their
    number. Chunks of keys of 8 and 16 bits must begin at whole words of 4 bytes.

    Sources: ``"onesweep"``, and how keys are ranked, are A. Adinets and D. Merrill, "Onesweep: a faster least
    significant digit radix sort for GPUs" (2022); the fallback of its look-back is T. Smith, R. Levien and J. Owens,
    "Decoupled Fallback" (2025). ``"reduce_then_scan"`` is D. Merrill and A. Grimshaw, "High performance and scalable
    radix sorting" (2011).

    Examples
    --------
    >>> import numpy as np, gridwise_py as gw
    >>> device = gw.request_device()
    >>> x = gw.asarray(np.array([3, 1, 2], dtype=np.uint32), device)
    >>> gw.Sort(device, "u32", descending=True).execute(input=x).output.to_numpy()
    array([3, 2, 1], dtype=uint32)
    """

    arguments = (
        Argument("input", chunked=True),
        Argument("output", is_output=True, length=SameAs("input"), replaces="input", chunked=True),
    )
    _roles = Roles("input", "output")

    @explained(SortTuning.remedies())
    def __init__(
        self,
        device: wgpu.GPUDevice | None,
        dtype: KeyDatatypeLike | Operators = "u32",
        *,
        descending: bool = False,
        begin_bit: int = 0,
        end_bit: int | None = None,
        overwrite_input: bool = False,
        strategy: SortStrategy | None = None,
        tuning: SortTuning | None = None,
        capabilities: Capabilities | None = None,
    ):
        super().__init__(
            device, dtype, None,
            descending=descending, begin_bit=begin_bit, end_bit=end_bit, overwrite_input=overwrite_input,
            strategy=strategy, tuning=tuning, capabilities=capabilities,
        )  # fmt: skip

    def _reference(self, input: np.ndarray) -> np.ndarray:
        """Return the result of numpy's stable sort."""
        keys = _of_words(input)
        return keys[self._order(keys)]


@register("sort_pairs")
class SortPairs(SortPairsCalls, SortPrimitive):
    """Sort key-value pairs by key; stable.

    Parameters
    ----------
    device : wgpu.GPUDevice
    dtype : Datatype, str or numpy dtype, default "u32"
        Datatype of the keys: bool, or integers and floats of 8 to 64 bits.
    value_dtype : Datatype, str or numpy dtype, default "u32"
        Datatype of the values, of 4 or 8 bytes.
    descending : bool, default False
        Largest key first. Pairs with equal keys keep their order in both directions.
    begin_bit, end_bit : int, optional
        Sort only by these bits of the keys' codes, as in `Sort`; by default by all.
    overwrite_input : bool, default False
        Sort in place: the outputs are the inputs, which saves memory.
    strategy : {None, "onesweep", "reduce_then_scan"}, optional
        The algorithm; `Sort` describes both.
    tuning : SortTuning, optional
        Options that affect only the speed; see `SortTuning`. By default the library's.
    capabilities : Capabilities, optional
        The capabilities to plan for, with None as device. By default those measured on the device.

    Raises
    ------
    DatatypeError
        If keys or values are of a datatype that is not sorted or moved, or, in a call, an Array holds another one.
    ArgumentError
        If an option is unknown, or the bits do not lie in a key.
    LengthError
        In a call, if lengths differ, or an output has no room for the result.
    OverlapError
        In a call, if inputs and outputs overlap.

    See Also
    --------
    execute : takes ``keys``, ``values``, ``output_keys`` and ``output_values``, shape (n,) each.
    Sort : the order, and the temporary memory.

    Examples
    --------
    >>> import numpy as np, gridwise_py as gw
    >>> device = gw.request_device()
    >>> keys = gw.asarray(np.array([3, 1, 2], dtype=np.uint32), device)
    >>> values = gw.asarray(np.array([0.3, 0.1, 0.2], dtype=np.float32), device)
    >>> run = gw.SortPairs(device, "u32", "f32").execute(keys=keys, values=values)
    >>> run.outputs["output_values"].to_numpy()
    array([0.1, 0.2, 0.3], dtype=float32)
    """

    arguments = (
        Argument("keys", chunked=True),
        Argument("values", datatype="value_datatype", length=SameAs("keys", "every key needs one value"), chunked=True),
        Argument("output_keys", is_output=True, length=SameAs("keys"), replaces="keys", chunked=True),
        Argument(
            "output_values", is_output=True, datatype="value_datatype", length=SameAs("keys"), replaces="values",
            chunked=True,
        ),
    )  # fmt: skip
    _roles = Roles("keys", "output_keys", "values", "output_values")

    @explained(SortTuning.remedies())
    def __init__(
        self,
        device: wgpu.GPUDevice | None,
        dtype: KeyDatatypeLike | Operators = "u32",
        value_dtype: ValueDatatypeLike = "u32",
        *,
        descending: bool = False,
        begin_bit: int = 0,
        end_bit: int | None = None,
        overwrite_input: bool = False,
        strategy: SortStrategy | None = None,
        tuning: SortTuning | None = None,
        capabilities: Capabilities | None = None,
    ):
        super().__init__(
            device, dtype, as_datatype(value_dtype, VALUE_DATATYPES),
            descending=descending, begin_bit=begin_bit, end_bit=end_bit, overwrite_input=overwrite_input,
            strategy=strategy, tuning=tuning, capabilities=capabilities,
        )  # fmt: skip

    def _reference(self, keys: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the result of numpy's stable sort: keys and values."""
        keys = _of_words(keys)
        order = self._order(keys)
        return keys[order], values[order]


@register("argsort")
class ArgSort(InputOutputCalls, SortPrimitive):
    """Compute the indices (u32) that would sort the keys; stable.

    Parameters
    ----------
    device : wgpu.GPUDevice
    dtype : Datatype, str or numpy dtype, default "u32"
        Datatype of the keys: bool, or integers and floats of 8 to 64 bits.
    descending : bool, default False
        Index of the largest key first. Indices of equal keys ascend in both directions.
    begin_bit, end_bit : int, optional
        Sort only by these bits of the keys' codes, as in `Sort`; by default by all.
    strategy : {None, "onesweep", "reduce_then_scan"}, optional
        The algorithm; `Sort` describes both.
    tuning : SortTuning, optional
        Options that affect only the speed; see `SortTuning`. By default the library's.
    capabilities : Capabilities, optional
        The capabilities to plan for, with None as device. By default those measured on the device.

    Raises
    ------
    DatatypeError
        If keys are of a datatype that is not sorted, or, in a call, an Array holds another one.
    ArgumentError
        If an option is unknown, or the bits do not lie in a key.
    LengthError
        In a call, if lengths differ, or an output has no room for the result.
    OverlapError
        In a call, if input and output overlap.

    See Also
    --------
    execute : takes ``input`` and ``output``, shape (n,) each; the output is of u32.
    Sort : the order.

    Notes
    -----
    Temporary memory is that of `Sort` plus a second copy of the keys, because the keys are not an output.

    Examples
    --------
    >>> import numpy as np, gridwise_py as gw
    >>> device = gw.request_device()
    >>> x = gw.asarray(np.array([3, 1, 2], dtype=np.uint32), device)
    >>> gw.ArgSort(device, "u32").execute(input=x).output.to_numpy()
    array([1, 2, 0], dtype=uint32)
    """

    arguments = (
        Argument("input", chunked=True),
        Argument("output", is_output=True, datatype="value_datatype", length=SameAs("input"), chunked=True),
    )
    _roles = Roles("input", values_out="output")

    @explained(
        {
            **SortTuning.remedies(),
            "overwrite_input": "its result is indices, and it does not change the keys; leave it out",
        }
    )
    def __init__(
        self,
        device: wgpu.GPUDevice | None,
        dtype: KeyDatatypeLike | Operators = "u32",
        *,
        descending: bool = False,
        begin_bit: int = 0,
        end_bit: int | None = None,
        strategy: SortStrategy | None = None,
        tuning: SortTuning | None = None,
        capabilities: Capabilities | None = None,
    ):
        super().__init__(
            device, dtype, DATATYPES["u32"],
            descending=descending, begin_bit=begin_bit, end_bit=end_bit, overwrite_input=False,
            strategy=strategy, tuning=tuning, capabilities=capabilities,
        )  # fmt: skip

    def _reference(self, input: np.ndarray) -> np.ndarray:
        """Return the result of numpy's stable argsort, as u32."""
        return self._order(_of_words(input)).astype(np.uint32)


def _of_pair(name: str, keys: Any) -> Any:
    """Return the datatype of keys; a struct of two words is sorted as one number of 64 bits."""
    if not isinstance(keys, Struct):
        return keys
    kinds = [of.name for _, of in keys.fields]
    if kinds != ["u32", "u32"]:
        raise DatatypeError(
            f"{name}: a key that is a struct has two fields of u32, of which the first decides first, but these are of "
            f"{', '.join(kinds)}; give a code of u32 for each, such as gw.bitcast('u32', x) for floats of at least 0"
        )
    return STORAGE_DATATYPES["u64"]


def _of_words(keys: np.ndarray) -> np.ndarray:
    """Return keys as numbers: of a struct the first field is the high word."""
    if keys.dtype.names is None:
        return keys
    high, low = (keys[name].astype(np.uint64) for name in keys.dtype.names)
    return high << np.uint64(32) | low
