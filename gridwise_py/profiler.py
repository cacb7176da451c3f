"""Profile: what the CPU and the GPU did in a block of code, by region, primitive and kernel; as ``torch.profiler``."""

from __future__ import annotations

import contextlib
import platform
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import wgpu

from ._wgpu_native import submit, wait_idle
from .context import context_of
from .device import default_device
from .errors import ArgumentError
from .event import Event
from .plan import Plan
from .profile_nodes import GpuWork, Node
from .profile_report import KeyAverages, averages
from .run import record_marked
from .timing import TimingSession
from .trace import ChromeTrace, GpuSlice

__all__ = ["Profile", "profile"]

_ANCHORS = 5


class Profile:
    """What was done on a device while it was open; made by `profile`.

    Attributes
    ----------
    device : wgpu.GPUDevice
    """

    def __init__(self, device: wgpu.GPUDevice):
        self.device = device
        self._context = context_of(device)
        self._roots: dict[int, Node] = {}  # by thread; what is outside of all regions
        self._local = threading.local()
        self._lock = threading.Lock()
        self._begin_ns: int | None = None
        self._end_ns: int | None = None
        self._anchor: tuple[int, int, float] | None = None  # ticks, host ns, uncertainty in ns

    # ---- opening and closing ----

    def __enter__(self) -> Profile:
        if self._begin_ns is not None:
            raise ArgumentError("this profile was used before; make a new one: with gw.profile(device) as prof")
        if self._context.profiler is not None:
            raise ArgumentError("a profile is open on this device already; use prof.region(name) for parts of it")
        if not self._context.has_timestamps:
            self._context.warn_no_timestamps()
        self._align()
        self._begin_ns = time.perf_counter_ns()
        self._context.profiler = self
        return self

    def __exit__(self, *_exception: object) -> None:
        self._context.profiler = None
        self._end_ns = time.perf_counter_ns()
        self._align()

    def _align(self) -> None:
        """Find a moment on both clocks: a stamp that was taken between two readings of the CPU's."""
        if not self._context.has_timestamps:
            return
        for _ in range(_ANCHORS):
            event = Event(self.device)
            wait_idle(self.device)
            before = time.perf_counter_ns()
            event.record()
            wait_idle(self.device)
            after = time.perf_counter_ns()
            span = event.stamps()
            if span.valid and (self._anchor is None or (after - before) / 2 < self._anchor[2]):
                self._anchor = (span.begin_ticks, (before + after) // 2, (after - before) / 2)

    # ---- what users call ----

    @contextlib.contextmanager
    def region(self, name: str) -> Iterator[None]:
        """Name a part of the code; regions nest, and hold what is executed in them.

        Parameters
        ----------
        name : str
        """
        with self._span(name, "region"):
            yield

    def timestamp_writes(
        self,
        encoder: wgpu.GPUCommandEncoder,
        label: str,
        *,
        workgroups: Sequence[int] | None = None,
        moved_bytes: int | None = None,
    ) -> dict[str, object] | None:
        """Take in a pass of your own: give the result to ``begin_compute_pass`` or ``begin_render_pass``.

        Parameters
        ----------
        encoder : wgpu.GPUCommandEncoder
            On which the pass will be, and which you submit.
        label : str
        workgroups : sequence of int, optional
        moved_bytes : int, optional
            What it reads and writes, for the trace.

        Returns
        -------
        dict or None
            For the argument ``timestamp_writes``; None where the device has no timestamps.
        """
        self._check_open()
        args = {"workgroups": None if workgroups is None else list(workgroups), "bytes": moved_bytes}
        writes, source = None, None
        if self._context.has_timestamps:
            session = self._context.timing_helper.session()
            writes = session.span(label)
            session.mark(encoder)
            source = (session, 0)
        self._attach(GpuWork(label, "pass", args, source))
        return writes

    @contextlib.contextmanager
    def commands(
        self, encoder: wgpu.GPUCommandEncoder, name: str, *, moved_bytes: int | None = None, kind: str = "commands"
    ) -> Iterator[None]:
        """Take in, as one, whatever is recorded on your encoder inside: copies, passes of other libraries.

        Parameters
        ----------
        encoder : wgpu.GPUCommandEncoder
            With no pass open; you submit it.
        name : str
        moved_bytes : int, optional
            For the trace.
        """
        self._check_open()
        source = None
        if self._context.has_timestamps:
            source = (Event(self.device), Event(self.device))
            source[0].record(encoder)
        self._local.inside = True  # what is in it is not counted again
        try:
            yield
        finally:
            self._local.inside = False
        if source is not None:
            source[1].record(encoder)
        self._attach(GpuWork(name, kind, {"bytes": moved_bytes}, source))

    def key_averages(self, group_by_input_shape: bool = False) -> KeyAverages:
        """Return calls and times by name; waits for the end of the work.

        Parameters
        ----------
        group_by_input_shape : bool, default False
            Whether calls with different shapes are different rows.
        """
        self._collect()
        records = [record for root in self._roots.values() for record in root.records()]
        return averages(records, self.device, group_by_input_shape)

    def export_chrome_trace(self, path: str | Path) -> None:
        """Write a Chrome trace, for ui.perfetto.dev: a lane per host thread, and one for the GPU's queue.

        Where the GPU's lane lies against the host's is approximate; ``otherData`` says by how much.
        """
        self._collect()
        assert self._begin_ns is not None
        capabilities = self._context.capabilities
        uncertain_ns = None if self._anchor is None else self._anchor[2]
        trace = ChromeTrace(
            self._begin_ns,
            {
                "adapter": capabilities.adapter,
                "driver": capabilities.driver,
                "clock_alignment_uncertainty_ns": uncertain_ns,
                "python": platform.python_version(),
            },
        )
        pieces: list[tuple[GpuSlice, float]] = []
        for root in self._roots.values():
            lane = trace.lane("host", root.name)
            for node in root.children:
                node.add_to(trace, lane)
            pieces += root.gpu_slices(lane)
        if pieces:
            assert self._anchor is not None
            queue = f"GPU queue (clock alignment approximate, ± {uncertain_ns / 1e3:.0f} µs)"
            process = f"GPU {capabilities.adapter}"
            trace.gpu_slices(queue, [piece for piece, _ in pieces], pieces[0][1], self._anchor[:2], process=process)
        trace.write(path)

    def __repr__(self) -> str:
        state = "not used" if self._begin_ns is None else "open" if self._end_ns is None else "closed"
        return f"Profile({state}, {sum(len(root.children) for root in self._roots.values())} entries)"

    # ---- what this library calls while it is open ----

    @contextlib.contextmanager
    def _span(self, name: str, kind: str, **args: Any) -> Iterator[Node]:
        self._check_open()
        stack = self._stack()
        node = Node(name, kind, time.perf_counter_ns(), args=args)
        stack[-1].children.append(node)
        stack.append(node)
        try:
            yield node
        finally:
            node.end_ns = time.perf_counter_ns()
            stack.remove(node)

    def _step(self, name: str, begin_ns: int, end_ns: int) -> None:
        """Add a step of the host that has already happened."""
        if end_ns > begin_ns:
            self._stack()[-1].children.append(Node(name, "host", begin_ns, end_ns))

    def _kernels(self, plan: Plan, session: TimingSession | None, first: int, trials: int) -> None:
        """Take in the kernels of a plan, whose spans in the session begin at `first`."""
        for i, kernel in enumerate(plan.kernels):
            bound = sum(plan.buffer(b.buffer).size_bytes for b in kernel.bindings)
            args = {
                "workgroups": list(kernel.workgroups), "trials": trials, "primitive": plan.primitive,
                "bytes": plan.work.moved_bytes, "bound_bytes": bound,
            }  # fmt: skip
            self._attach(GpuWork(kernel.label, "kernel", args, None if session is None else (session, first + i)))

    def _record_primitive(
        self, name: str, ready: Any, encoder: wgpu.GPUCommandEncoder, trials: int, timing: TimingSession | None
    ) -> None:
        """Record a primitive on a caller's encoder, with stamps, in the caller's session if there is one."""
        with self._span(name, "primitive") as node:
            node.shapes = ready.shapes()
            if timing is None and self._times_kernels:
                session = self._context.timing_helper.session()
                record_marked(ready.bound, encoder, trials, session)
                self._kernels(ready.bound.plan, session, 0, trials)
                return
            first = 0 if timing is None else timing.span_count
            ready.bound.encode(encoder, trials=trials, timing=timing)
            self._kernels(ready.bound.plan, timing, first, trials)

    @property
    def _times_kernels(self) -> bool:
        return self._context.has_timestamps and not getattr(self._local, "inside", False)

    def _allocated(self, size_bytes: int) -> None:
        self._stack()[-1].allocated_bytes += size_bytes

    def _upload(self, buffer: wgpu.GPUBuffer, offset_bytes: int, data: np.ndarray) -> None:
        """Upload through a staging buffer, so that the GPU's part can be timed by itself."""
        size = -(-data.nbytes // 4) * 4
        with self._span("upload", "transfer", bytes=data.nbytes):
            with self._span("copy to staging", "host"):
                staging = self.device.create_buffer(
                    label="gridwise upload", size=size, usage=wgpu.BufferUsage.COPY_SRC, mapped_at_creation=True
                )
                staging.write_mapped(data)
                staging.unmap()
            encoder = self.device.create_command_encoder(label="gridwise upload")
            with self.commands(encoder, "copy to GPU", moved_bytes=size, kind="copy"):
                encoder.copy_buffer_to_buffer(staging, 0, buffer, offset_bytes, size)
            with self._span("submit", "host"):
                submit(self.device, [encoder.finish()], "upload")

    # ---- inside ----

    def _check_open(self) -> None:
        if self._begin_ns is None or self._end_ns is not None:
            raise ArgumentError("this profile is not open; use it inside of `with gw.profile(device) as prof:`")

    def _stack(self) -> list[Node]:
        stack = getattr(self._local, "stack", None)
        if stack is None:
            with self._lock:
                name = f"host, {threading.current_thread().name}" if self._roots else "host"
                root = self._roots[threading.get_ident()] = Node(name, "root", time.perf_counter_ns())
            stack = self._local.stack = [root]
        return stack

    def _attach(self, work: GpuWork) -> None:
        if not getattr(self._local, "inside", False):
            self._stack()[-1].gpu.append(work)

    def _collect(self) -> None:
        if self._begin_ns is None:
            raise ArgumentError("nothing was profiled yet; use it as `with gw.profile(device) as prof:`")
        if self._context.has_timestamps:
            self._context.timing_helper.collect()


def profile(device: wgpu.GPUDevice | None = None) -> Profile:
    """Return a profile of a device, for ``with``: what is done on the device inside is timed, by region and kernel.

    Primitives, their kernels, uploads and downloads join by themselves. Name parts of your code with
    ``prof.region(name)``; bring in passes of your own with ``prof.timestamp_writes`` or ``prof.commands``.

    Parameters
    ----------
    device : wgpu.GPUDevice, optional
        By default `default_device()`.

    Returns
    -------
    Profile

    Notes
    -----
    While it is open, each kernel has a pass of its own with timestamps, and uploads go through a staging buffer of
    their own, so that each can be timed: calls take the CPU longer (benchmarks/profile_overhead.py measures how much).
    Without a profile, a call does nothing more than look whether there is one.

    Examples
    --------
    >>> import numpy as np, gridwise_py as gw
    >>> device = gw.request_device()
    >>> with gw.profile(device) as prof:
    ...     with prof.region("prefix sums"):
    ...         y = gw.cumsum(np.ones(1000, dtype=np.uint32), device=device)
    >>> [row.calls for row in prof.key_averages() if row.name == "Scan"]
    [1]
    """
    return Profile(device if device is not None else default_device())
