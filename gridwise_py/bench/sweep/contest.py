"""Kernels in several shapes, measured in turns: what `gridwise tune` is made of."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import ceil, isqrt
from typing import Any, NamedTuple, cast

import numpy as np
import wgpu

from ... import Array, BoundCall, Capabilities, Primitive, asarray, u32
from ...errors import ArgumentError, DeviceMemoryError
from ...internals import KERNELS, FlatNonzero, bracket, context_of, submit
from ..cases.case import Case
from ..cases.data import equal_segments


class Subject(NamedTuple):
    """What a kernel is measured with.

    Attributes
    ----------
    workload : str
        Whose primitive and data.
    options : mapping
        Of the constructor, besides those of the case.
    axes : mapping
        Of the case.
    dtype : str
    is_native : bool
        Whether only devices whose subgroups kernels can use have it.
    kind : type, optional
        Another primitive, which takes the same data.
    """

    workload: str
    options: Mapping[str, Any] = {}
    axes: Mapping[str, Any] = {}
    dtype: str = "u32"
    is_native: bool = False
    kind: type[Primitive] | None = None

    def runs_on(self, capabilities: Capabilities) -> bool:
        """Return whether a device has the kernel."""
        return not self.is_native or capabilities.subgroup_mode(None).kind == "native"


_LOOKBACK = {"strategy": "lookback"}
_OFFSETS = {"length": None}

#: By the names of `tuning.model.KERNELS`.
SUBJECTS: Mapping[str, Subject] = {
    "elementwise": Subject("vector_add"),
    "reduce": Subject("reduce"),
    "scan": Subject("scan", {"strategy": "reduce_then_scan"}),
    "scan_lookback": Subject("scan", _LOOKBACK),
    "search": Subject("search"),
    "transpose": Subject("transpose"),
    "merge": Subject("merge", dtype="f32"),
    "merge_network": Subject("merge", is_native=True),
    "top_k": Subject("top_k"),
    "by_key": Subject("reduce_by_key", _LOOKBACK),
    "segmented": Subject("segmented_scan", _LOOKBACK),
    "segmented_reduce": Subject("segmented_reduce", axes={"segment": 8}),
    "segmented_reduce_tiny": Subject("segmented_reduce", axes={"segment": 2}),
    "segmented_reduce_medium": Subject("segmented_reduce", axes={"segment": 16}),
    "histogram": Subject("histogram"),
    "histogram_ranges": Subject("histogram", axes={"bins": 1 << 15}),
    "stream": Subject("sort", _LOOKBACK, dtype="bool", kind=FlatNonzero),
    "stream_wide": Subject("unique", _LOOKBACK, dtype="u64"),
    "stream_flags": Subject("select", _LOOKBACK),
    "sort_keys": Subject("sort"),
    "sort_floats": Subject("sort", dtype="f32"),
    "sort_pairs": Subject("sort_pairs"),
    "sort_computed_pairs": Subject("sort_pairs", {"dtype": u32("keys") ^ 1}),
    "sort_wide": Subject("sort", dtype="u64"),
    "sort_wide_pairs": Subject("sort_pairs", dtype="u64"),
    "segmented_sort": Subject("segmented_sort", _OFFSETS),
    "segmented_sort_wide": Subject("segmented_sort", _OFFSETS, dtype="u64"),
    "matmul": Subject("matmul", dtype="f32"),
    "axis_rows": Subject("reduce_axis"),
    "axis_columns": Subject("reduce_axis", axes={"along": "columns"}),
}
_COLUMNS = 4096


def make_for(kernel: str, device: wgpu.GPUDevice, plain: Capabilities, fields: Mapping[str, int], n: int) -> Primitive:
    """Return the primitive to measure a kernel with at `n` items (of a product: of its output), in one shape."""
    subject, case = SUBJECTS[kernel], _case_of(kernel, n)
    if not subject.runs_on(plain):
        raise ArgumentError(f"the kernel {kernel!r} needs subgroups, which this device does not offer to kernels")
    make = cast(Callable[..., Primitive], subject.kind or case.workload.kind)
    tuning = KERNELS[kernel].family.from_dict(fields)
    return make(device, tuning=tuning, capabilities=plain, **{**case.options, **subject.options})


def _case_of(kernel: str, n: int) -> Case:
    subject = SUBJECTS[kernel]
    # Fewer columns than these have a kernel of their own, with the shapes of rows.
    axes = {**subject.axes, **({"segment": max(1, n // _COLUMNS)} if kernel == "axis_columns" else {})}
    case = Case.usual(subject.workload, isqrt(n) if kernel == "matmul" else n, **axes)
    return replace(case, datatype=subject.dtype)


def inputs_of(kernel: str, primitive: Primitive, n: int, seed: int = 0) -> dict[str, np.ndarray]:
    """Return random inputs for `n` items."""
    case = _case_of(kernel, n)
    found = case.inputs(primitive, seed)
    if kernel == "matmul":  # whole numbers, whose products add up without rounding
        return {name: np.rint(3 * items) for name, items in found.items()}
    if "length" in SUBJECTS[kernel].options:
        length = -(-n // int(case.numbers["segment"])) + 1
        found["offsets"] = equal_segments(np.random.default_rng(0), length, np.dtype(np.uint32), case.numbers)
    return found


# ---- measuring in turns


class Turns:
    """Bound calls that are timed in turns: each round takes all of them in a new random order.

    Parameters
    ----------
    device : wgpu.GPUDevice
    seed : int
        Of the orders.
    sample_ns : float
        About as long is what one time is taken of, so that the clock's step and the pass do not matter.

    Attributes
    ----------
    on_cpu : bool
        Whether the adapter is a CPU.
    """

    def __init__(self, device: wgpu.GPUDevice, seed: int = 0, sample_ns: float = 1e6):
        self._device, self._sample_ns = device, sample_ns
        context = context_of(device)
        self.on_cpu: bool = context.capabilities.is_cpu
        self._helper = context.timing_helper if context.has_timestamps else None
        self._rng = np.random.default_rng(seed)
        self._trials: dict[int, int] = {}

    def warm_up(self, calls: Mapping[int, BoundCall[Any]], seconds: float) -> None:
        """Run the calls for a while, so that the clock is up, and find out how many make a sample."""
        until = time.perf_counter() + seconds
        for key, call in calls.items():
            self._take(call, 1, 1)
            self._trials[key] = max(1, min(1000, ceil(self._sample_ns / self._take(call, 1, 1)[0])))
        while time.perf_counter() < until:
            self.round(calls, 1)

    def round(self, calls: Mapping[int, BoundCall[Any]], samples: int = 3) -> dict[int, tuple[float, ...]]:
        """Return some times of each call, in ns."""
        order = self._rng.permutation(list(calls)).tolist()
        return {key: self._take(calls[key], self._trials[key], samples) for key in order}

    def _take(self, call: BoundCall[Any], trials: int, samples: int) -> tuple[float, ...]:
        """Return some times of a call, which are of one submission where there are timestamps."""
        if self._helper is None:
            return tuple(self._wall_ns(call, trials) for _ in range(samples))
        session = self._helper.session()
        encoder = self._device.create_command_encoder(label="gridwise tune")
        for _ in range(samples):
            call.bound_plan.encode(encoder, trials=trials, timing=session)
        submit(self._device, [encoder.finish()], "tuning")
        session.submitted()
        ticks = session.ticks().astype(np.int64)
        spans = (ticks[:, 1] - ticks[:, 0]) * self._helper.tick_period_ns
        # A clock that moved backwards, or a span of no tick, is no time; but a caller divides by it.
        return tuple(np.maximum(spans.reshape(samples, -1).sum(axis=1) / trials, 1e-3).tolist())

    def _wall_ns(self, call: BoundCall[Any], trials: int) -> float:
        encoder = self._device.create_command_encoder(label="gridwise tune")
        call.bound_plan.encode(encoder, trials=trials)
        commands = [encoder.finish()]
        begin, _, end = bracket(self._device, lambda: submit(self._device, commands, "tuning"))
        return max(float(end - begin) / trials, 1e-3)


class Contest:
    """A kernel at one number of items: its own shape, and others near to it, with the arrays that all of them take.

    Parameters
    ----------
    kernel : str
    device : wgpu.GPUDevice
    capabilities : Capabilities
        Without what was tuned.
    fields : mapping
        Its own shape, which is the first of `calls`.
    n : int
    seed : int
    """

    def __init__(
        self,
        kernel: str,
        device: wgpu.GPUDevice,
        capabilities: Capabilities,
        fields: Mapping[str, int],
        n: int,
        seed: int = 0,
    ):
        self.kernel, self.device, self.n, self.fields = kernel, device, n, fields
        self._capabilities = capabilities
        #: The primitives, by the index of their shape in `shapes`.
        self.primitives: list[Primitive] = [make_for(kernel, device, capabilities, fields, n)]
        self.shapes: list[Mapping[str, int]] = [fields]
        self.inputs: dict[str, np.ndarray] = inputs_of(kernel, self.primitives[0], n, seed)
        given = {name: asarray(items, device) for name, items in self.inputs.items()}
        self.calls: dict[int, BoundCall[Any]] = {0: self.primitives[0].bind(**given)}
        self._arrays: dict[str, Array] = {**given, **self.calls[0].outputs}

    def add(self, shapes: Sequence[Mapping[str, int]]) -> list[int]:
        """Take part with other shapes, compiled side by side; return the indices of those that the device can run."""
        made: list[tuple[Mapping[str, int], Primitive]] = []
        for fields in shapes:
            try:
                primitive = make_for(self.kernel, self.device, self._capabilities, fields, self.n)
                plan = primitive.plan(self.calls[0].parsed.layout)
            except ArgumentError:  # over a limit
                continue
            if plan not in [call.plan for call in self.calls.values()]:
                made.append((fields, primitive))
        plans = [primitive.plan(self.calls[0].parsed.layout) for _, primitive in made]
        if plans:
            context_of(self.device).executor.pipelines_of(*plans)
        added: list[int] = []
        for fields, primitive in made:
            try:
                call = primitive.bind(**self._arrays)
            except DeviceMemoryError:  # those that fit are compared
                continue
            self.shapes.append(fields)
            self.primitives.append(primitive)
            added.append(len(self.shapes) - 1)
            self.calls[added[-1]] = call
        return added

    def results(self, index: int) -> dict[str, np.ndarray]:
        """Return the outputs of a shape, computed into arrays of other content."""
        names = [name for name in self._arrays if name not in self.inputs]
        for name in names:
            array = self._arrays[name]
            array.copy_from(np.full(array.size * array.dtype.itemsize, 0xA5, np.uint8).view(array.dtype))
        run = cast(Any, self.primitives[index]).execute(**self._arrays)
        return {name: cast(Array, array).to_numpy() for name, array in run.outputs.items()}
