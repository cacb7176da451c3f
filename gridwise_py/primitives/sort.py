"""Sort: stable radix sorts of keys, of keys with values, and of positions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar

import numpy as np
import wgpu

from ..call_errors import explained
from ..errors import ArgumentError
from ..planning.builder import PlanBuilder
from ..planning.layout import Layout, Operand
from ..planning.plan import Plan, Work
from ..planning.signature import Argument, SameAs
from ..runtime.lookback_selftest import look_back_choice
from ..tuning.shapes import Shapes
from ..tuning.sort_shapes import sort_shapes_for
from ..types.capabilities import Capabilities, SubgroupMode, SubgroupsLike
from ..types.datatype import (
    DATATYPES,
    STORAGE_DATATYPES,
    VALUE_DATATYPES,
    Datatype,
    KeyDatatypeLike,
    ValueDatatypeLike,
    as_datatype,
)
from ..types.options import integer, optional_integers
from .base import Primitive
from .radix_sort import ONESWEEP, REDUCE_THEN_SCAN, SortConfig, SortStrategy, add_sort, digits_of
from .registry import register
from .typed import InputOutput, KeysValues

__all__ = ["ArgSort", "Sort", "SortPairs", "SortPrimitive", "key_codes"]

_STRATEGIES = (ONESWEEP, REDUCE_THEN_SCAN)


class SortPrimitive(Primitive):
    """Base of all sorts; see `Sort`."""

    datatypes: ClassVar[Mapping[str, Datatype]] = STORAGE_DATATYPES
    #: Names of the arguments: keys in and out, values in and out; None if there is no such argument.
    _roles: ClassVar[tuple[str, str | None, str | None, str | None]]

    def __init__(
        self,
        device: wgpu.GPUDevice | None,
        datatype: KeyDatatypeLike,
        value_datatype: Datatype | None,
        *,
        descending: bool = False,
        begin_bit: int = 0,
        end_bit: int | None = None,
        overwrite_input: bool = False,
        strategy: SortStrategy | None = None,
        subgroups: SubgroupsLike = None,
        workgroup_size: int | None = None,
        items: int | None = None,
        parts: int | None = None,
        look: int | None = None,
        tickets: bool | None = None,
        spin_limit: int | None = None,
        stall_every: int = 0,
        capabilities: Capabilities | None = None,
    ):
        super().__init__(device, capabilities=capabilities)
        self.datatype: Datatype = as_datatype(datatype, self.datatypes)
        self.value_datatype = value_datatype
        self.overwrite_input = overwrite_input
        self.begin_bit: int = integer("begin_bit", begin_bit)
        self.end_bit: int | None = None if end_bit is None else integer("end_bit", end_bit)
        if strategy is not None and strategy not in _STRATEGIES:
            raise ArgumentError(f"strategy={strategy!r} is unknown; known are {', '.join(_STRATEGIES)}")
        is_cpu = self.capabilities.is_cpu
        spin_limit = (4096 if is_cpu else 256) if spin_limit is None else integer("spin_limit", spin_limit, 1)
        stall_every = integer("stall_every", stall_every, 0)
        # A CPU does a subgroup vote lane by lane, so ranking key by key takes fewer steps.
        self.mode: SubgroupMode = self.capabilities.subgroup_mode(False if subgroups is None and is_cpu else subgroups)
        # Sorts use 32-bit state words.
        state = None if strategy == REDUCE_THEN_SCAN else "u32x2"
        safe, needs_tickets = look_back_choice(self.capabilities, device, state)
        value_words = value_datatype.itemsize_bytes // 4 if value_datatype is not None else 0
        shapes = sort_shapes_for(
            self.capabilities,
            self.mode,
            self.datatype,
            value_words,
            **optional_integers(workgroup_size=workgroup_size, items=items, parts=parts, look=look),
        )
        config = SortConfig(
            key=self.datatype,
            descending=bool(descending),
            value_words=value_words,
            generated=value_datatype is not None and self._roles[2] is None,
            digits=digits_of(self.datatype, self.begin_bit, self.end_bit),
            strategy=strategy if strategy is not None else (ONESWEEP if safe else REDUCE_THEN_SCAN),
            mode=self.mode,
            shape=shapes.rows[-1][1],
            capabilities=self.capabilities,
            tickets=needs_tickets if tickets is None else tickets,
            spin_limit=spin_limit,
            stall_every=stall_every,
        )
        self._configs = Shapes(tuple((n, replace(config, shape=shape)) for n, shape in shapes.rows), shapes.source)

    @property
    def descending(self) -> bool:
        """Whether the largest comes first."""
        return self._configs.rows[-1][1].descending

    def plan(self, layout: Layout) -> Plan:
        """Return the plan: one dispatch for up to one tile, else a histogram and one or three dispatches per digit."""
        keys_in, keys_out, values_in, values_out = self._roles
        builder = PlanBuilder(self.name.lower(), layout, self.capabilities)
        operand = layout[keys_in]
        n, key_bytes = operand.length, self.datatype.itemsize_bytes
        keys = {"input": operand}
        values: dict[str, Operand] = {}
        if keys_out is not None:
            keys["output"] = layout[keys_out]
            if self.overwrite_input and n and keys["output"] != operand:
                raise ArgumentError(
                    f"{self.name}: overwrite_input=True sorts in place; leave out {keys_out}=, or make a {self.name} "
                    f"without overwrite_input"
                )
        if values_out is not None:
            values = {"input": layout[values_in]} if values_in is not None else {}
            values["output"] = layout[values_out]
        parameters = add_sort(builder, self._configs, keys, values)
        value_bytes = self.value_datatype.itemsize_bytes if self.value_datatype is not None else 0
        read = key_bytes + (value_bytes if values_in is not None else 0)
        written = (key_bytes if keys_out is not None else 0) + value_bytes
        return builder.build(Work(n, n * read, n * written), parameters)

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
class Sort(InputOutput, SortPrimitive):
    """Sort keys; stable.

    Parameters
    ----------
    device : wgpu.GPUDevice
    datatype : Datatype, str or numpy dtype, default "u32"
        Datatype of the keys: u32, i32, f32, u64, i64, f64 or f16.
    descending : bool, default False
        Largest first. Keys that are equal keep their order in both directions.
    begin_bit, end_bit : int, optional
        Sort by these bits only, from `begin_bit` up to but without `end_bit`; by default by all. They are bits of the
        key's code, an unsigned integer: codes have the order of the keys.
    overwrite_input : bool, default False
        Sort in place: the outputs are the inputs, and less memory is needed.
    strategy : {None, "onesweep", "reduce_then_scan"}, optional
        ``"onesweep"`` counts all digits at once, and then reads and writes each item once per digit, with decoupled
        look-back and fallback. ``"reduce_then_scan"`` counts each digit before it moves the items, and no workgroup
        ever waits for another. None takes ``"onesweep"`` if the self-test of the device finds look-back safe.
    subgroups : None, bool or str, optional
        None uses subgroups if the device has them; False uses workgroup memory and barriers only.
    workgroup_size, items, parts, look : int, optional
        Shape of the kernels: invocations, keys per invocation and tile, parts in which a tile goes through workgroup
        memory, tiles polled per round.
    tickets : bool, optional
        Whether a workgroup of ``"onesweep"`` takes its tile from a counter. None takes tickets on CPU adapters and if
        the self-test finds that they are needed.
    spin_limit : int, optional
        Total unsuccessful polls after which a workgroup recounts unpublished tiles itself. By default 256; 4096 on a
        CPU adapter, where the other workgroup may wait for a core.
    stall_every : int, optional
        Testing only: every `stall_every`-th tile never publishes (0: all do).
    capabilities : Capabilities, optional
        The capabilities to plan for, with None as device. By default those measured on the device.

    See Also
    --------
    execute : takes ``input`` and ``output``, shape (n,) each.
    SortPairs, ArgSort

    Notes
    -----
    The order is that of numpy's stable sort: −0 equals +0 and keeps its sign, and every NaN comes last, also in
    descending order. The algorithm is a least significant digit radix sort with digits of 8 bits. A digit in which all
    keys agree moves nothing: its dispatches end at once.

    Temporary memory is one copy of the items, 2 KiB per digit, and 1 KiB per tile (``tiles`` in ``plan.parameters``)
    for ``"onesweep"`` or 2 KiB per block for ``"reduce_then_scan"``. At most one tile of items needs no temporary
    memory: one workgroup sorts it in one dispatch. Arrays that are larger than a binding of the device are bound in
    segments, and chunks of a `ChunkedArray` one by one. The device's max-storage-buffers-per-shader-stage limits their
    number. Chunks of 16-bit keys must begin at even items.

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
    _roles = ("input", "output", None, None)

    def __init__(
        self,
        device: wgpu.GPUDevice | None,
        datatype: KeyDatatypeLike = "u32",
        *,
        descending: bool = False,
        begin_bit: int = 0,
        end_bit: int | None = None,
        overwrite_input: bool = False,
        strategy: SortStrategy | None = None,
        subgroups: SubgroupsLike = None,
        workgroup_size: int | None = None,
        items: int | None = None,
        parts: int | None = None,
        look: int | None = None,
        tickets: bool | None = None,
        spin_limit: int | None = None,
        stall_every: int = 0,
        capabilities: Capabilities | None = None,
    ):
        super().__init__(
            device, datatype, None,
            descending=descending, begin_bit=begin_bit, end_bit=end_bit, overwrite_input=overwrite_input,
            strategy=strategy, subgroups=subgroups, workgroup_size=workgroup_size, items=items, parts=parts, look=look,
            tickets=tickets, spin_limit=spin_limit, stall_every=stall_every, capabilities=capabilities,
        )  # fmt: skip

    def reference(self, input: np.ndarray) -> np.ndarray:
        """Return what numpy's stable sort gives."""
        return input[self._order(input)]


@register("sort_pairs")
class SortPairs(KeysValues, SortPrimitive):
    """Sort keys and move a value with each key; stable.

    Parameters
    ----------
    device : wgpu.GPUDevice
    datatype : Datatype, str or numpy dtype, default "u32"
        Datatype of the keys: u32, i32, f32, u64, i64, f64 or f16.
    value_datatype : Datatype, str or numpy dtype, default "u32"
        Datatype of the values, of 4 or 8 bytes; their bits are not changed.
    descending, begin_bit, end_bit, overwrite_input, strategy
        As for `Sort`.
    subgroups, workgroup_size, items, parts, look, tickets, spin_limit, stall_every
        Shape of the kernels and how workgroups wait, as for `Sort`.
    capabilities : Capabilities, optional
        The capabilities to plan for, with None as device. By default those measured on the device.

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
    _roles = ("keys", "output_keys", "values", "output_values")

    def __init__(
        self,
        device: wgpu.GPUDevice | None,
        datatype: KeyDatatypeLike = "u32",
        value_datatype: ValueDatatypeLike = "u32",
        *,
        descending: bool = False,
        begin_bit: int = 0,
        end_bit: int | None = None,
        overwrite_input: bool = False,
        strategy: SortStrategy | None = None,
        subgroups: SubgroupsLike = None,
        workgroup_size: int | None = None,
        items: int | None = None,
        parts: int | None = None,
        look: int | None = None,
        tickets: bool | None = None,
        spin_limit: int | None = None,
        stall_every: int = 0,
        capabilities: Capabilities | None = None,
    ):
        super().__init__(
            device, datatype, as_datatype(value_datatype, VALUE_DATATYPES),
            descending=descending, begin_bit=begin_bit, end_bit=end_bit, overwrite_input=overwrite_input,
            strategy=strategy, subgroups=subgroups, workgroup_size=workgroup_size, items=items, parts=parts, look=look,
            tickets=tickets, spin_limit=spin_limit, stall_every=stall_every, capabilities=capabilities,
        )  # fmt: skip

    def reference(self, keys: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return what numpy's stable sort gives: keys and values."""
        order = self._order(keys)
        return keys[order], values[order]


@register("argsort")
class ArgSort(InputOutput, SortPrimitive):
    """The positions (u32) that would sort the keys; stable.

    Parameters
    ----------
    device : wgpu.GPUDevice
    datatype : Datatype, str or numpy dtype, default "u32"
        Datatype of the keys: u32, i32, f32, u64, i64, f64 or f16.
    descending, begin_bit, end_bit, strategy
        As for `Sort`.
    subgroups, workgroup_size, items, parts, look, tickets, spin_limit, stall_every
        Shape of the kernels and how workgroups wait, as for `Sort`.
    capabilities : Capabilities, optional
        The capabilities to plan for, with None as device. By default those measured on the device.

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
    _roles = ("input", None, None, "output")

    @explained({"overwrite_input": "its result is positions, and the keys stay as they are; leave it out"})
    def __init__(
        self,
        device: wgpu.GPUDevice | None,
        datatype: KeyDatatypeLike = "u32",
        *,
        descending: bool = False,
        begin_bit: int = 0,
        end_bit: int | None = None,
        strategy: SortStrategy | None = None,
        subgroups: SubgroupsLike = None,
        workgroup_size: int | None = None,
        items: int | None = None,
        parts: int | None = None,
        look: int | None = None,
        tickets: bool | None = None,
        spin_limit: int | None = None,
        stall_every: int = 0,
        capabilities: Capabilities | None = None,
    ):
        super().__init__(
            device, datatype, DATATYPES["u32"],
            descending=descending, begin_bit=begin_bit, end_bit=end_bit, strategy=strategy, subgroups=subgroups,
            workgroup_size=workgroup_size, items=items, parts=parts, look=look, tickets=tickets, spin_limit=spin_limit,
            stall_every=stall_every, capabilities=capabilities,
        )  # fmt: skip

    def reference(self, input: np.ndarray) -> np.ndarray:
        """Return what numpy's stable argsort gives, as u32."""
        return self._order(input).astype(np.uint32)


def key_codes(keys: np.ndarray, descending: bool = False) -> np.ndarray:
    """Return unsigned integers whose order is the order of the keys.

    Parameters
    ----------
    keys : numpy.ndarray
        Items of 2, 4 or 8 bytes.
    descending : bool, default False
        Order of the keys; NaN comes last in both directions.
    """
    unsigned = np.dtype(f"u{keys.dtype.itemsize}")
    sign = unsigned.type(1 << (8 * unsigned.itemsize - 1))
    bits = keys.view(unsigned)
    if keys.dtype.kind == "u":
        codes = bits
    elif keys.dtype.kind == "i":
        codes = bits ^ sign
    else:
        bits = np.where(keys == 0, unsigned.type(0), bits)
        codes = np.where(bits & sign, ~bits, bits | sign)
    codes = ~codes if descending else codes
    return np.where(np.isnan(keys), ~unsigned.type(0), codes) if keys.dtype.kind == "f" else codes
