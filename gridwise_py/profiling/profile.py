"""Profile: CPU and GPU times of a block of code, by region, primitive and kernel, like ``torch.profiler``."""

from __future__ import annotations

import contextlib
import itertools
import platform
import threading
import time
import weakref
from collections import Counter
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import wgpu

from ..backend.device_state import queue_uses
from ..backend.queues import wait_idle
from ..display.quantities import format_time
from ..display.terminal import clean
from ..errors import ArgumentError
from ..planning.plan import Plan
from ..runtime.context import context_of
from ..runtime.device import default_device
from ..runtime.event import Event
from ..runtime.gpu_clock import ClockDoubt, clock_doubt
from ..runtime.observer import Recordable
from ..runtime.run import record_marked
from ..storage.chrome_trace import ChromeTrace, GpuSlice
from ..timing.queries import TimingSession
from .nodes import Node
from .report import KeyAverages, averages

#: Readings of both clocks: at least so many, and more while other work on the machine disturbs them.
_ANCHORS, _MOST_ANCHORS = 5, 20
_GOOD_UNCERTAINTY_NS = 50e3


@dataclass(frozen=True)
class _Anchor:
    """A moment on both clocks."""

    ticks: int
    host_ns: int
    uncertainty_ns: float


# Threads that open and close profiles at the same moment take turns.
_turn = threading.Lock()


class Profile:
    """A recording of the work on a device while it is open.

    Attributes
    ----------
    device : wgpu.GPUDevice
    """

    def __init__(self, device: wgpu.GPUDevice):
        self.device = device
        self._context = context_of(device)
        # One per thread, for what is outside of all regions. Not by the thread's number: later threads get it again.
        self._roots: list[Node] = []
        self._local = threading.local()
        self._lock = threading.Lock()
        self._used = False
        self._begin_ns: int | None = None
        self._end_ns: int | None = None
        self._anchors: list[_Anchor] = []  # when it was opened, and when it was closed
        # Of each timed call, whether its clock is in doubt.
        self._doubts: list[ClockDoubt | None] = []
        self._uses_before: weakref.WeakKeyDictionary[wgpu.GPUDevice, int] = weakref.WeakKeyDictionary()
        self._elsewhere: tuple[str, ...] = ()

    # ---- opening and closing ----

    def __enter__(self) -> Profile:
        with _turn:
            if self._used:
                raise ArgumentError("this profile was used before; make a new one: with gw.profile(device) as prof")
            if self._context.observer is not None:
                raise ArgumentError("a profile is open on this device already; use prof.region(name) for parts of it")
            self._used, self._context.observer = True, self
        try:
            if not self._context.has_timestamps:
                self._context.warn_no_timestamps()
            self._align()
            self._stack()  # the lane of the thread that opens it comes first
        except BaseException:
            with _turn:
                self._used, self._context.observer = False, None
            raise
        self._uses_before = weakref.WeakKeyDictionary(queue_uses())
        self._begin_ns = time.perf_counter_ns()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_exception: object) -> None:
        with _turn:
            if not self._is_open:
                return
            self._context.observer = None
            self._elsewhere = self._work_elsewhere()
            self._end_ns = time.perf_counter_ns()
        if kind is None or issubclass(kind, Exception):  # after an interrupt nobody waits
            self._align()

    def _align(self) -> None:
        """Find a moment on both clocks: a stamp that was taken between two readings of the CPU's, the closest of some.

        Vulkan's calibrated timestamps would be closer (VK_KHR_calibrated_timestamps); wgpu-native gives no access.
        """
        if not self._context.has_timestamps:
            return
        best: _Anchor | None = None
        for number in range(_MOST_ANCHORS):
            if number >= _ANCHORS and best is not None and best.uncertainty_ns <= _GOOD_UNCERTAINTY_NS:
                break
            event = Event(self.device)
            wait_idle(self.device)
            before = time.perf_counter_ns()
            event.record()
            wait_idle(self.device)
            after = time.perf_counter_ns()
            span = event.stamps()
            if span.valid and (best is None or (after - before) / 2 < best.uncertainty_ns):
                best = _Anchor(span.begin_ticks, (before + after) // 2, (after - before) / 2)
        if best is not None:
            self._anchors.append(best)

    def _drift(self, period_ns: float) -> tuple[float, float] | None:
        """Return by what share the host's clock ran faster than the GPU's, and how surely; None with one anchor."""
        if len(self._anchors) < 2 or self._anchors[1].ticks <= self._anchors[0].ticks:
            return None
        first, last = self._anchors
        host_ns, gpu_ns = last.host_ns - first.host_ns, (last.ticks - first.ticks) * period_ns
        return host_ns / gpu_ns - 1, (first.uncertainty_ns + last.uncertainty_ns) / gpu_ns

    # ---- what users call ----

    @contextlib.contextmanager
    def region(self, name: str) -> Generator[None]:
        """Name a part of the code. Regions nest.

        Parameters
        ----------
        name : str
        """
        self._check_open()
        with self.span(name, "region"):
            yield

    def timestamp_writes(
        self,
        encoder: wgpu.GPUCommandEncoder,
        label: str,
        *,
        workgroups: Sequence[int] | None = None,
        moved_bytes: int | None = None,
    ) -> dict[str, object] | None:
        """Add your own pass: give the result to ``begin_compute_pass``.

        Parameters
        ----------
        encoder : wgpu.GPUCommandEncoder
            Of the pass; you submit it.
        label : str
        workgroups : sequence of int, optional
        moved_bytes : int, optional

        Returns
        -------
        dict or None
            For ``timestamp_writes=``; None without timestamps, or inside `commands` on this encoder.
        """
        self._check_open()
        if self._is_taken(encoder):
            return None
        args = {"workgroups": None if workgroups is None else list(workgroups), "bytes": moved_bytes}
        writes, source = None, None
        if self._context.has_timestamps:
            session = self._context.timing_helper.session()
            writes = session.span(label)
            session.mark(encoder)
            source = (session, 0)
        self._attach(Node(label, "pass", args=args, shapes=_shapes_of(workgroups), source=source))
        return writes

    @contextlib.contextmanager
    def commands(
        self, encoder: wgpu.GPUCommandEncoder, name: str, *, moved_bytes: int | None = None
    ) -> Generator[None]:
        """Record all commands on your encoder inside the block as one entry.

        What is submitted separately has its own rows.

        Parameters
        ----------
        encoder : wgpu.GPUCommandEncoder
            With no pass open; you submit it.
        name : str
        moved_bytes : int, optional
        """
        self._check_open()
        with self.copies(encoder, name, "commands", moved_bytes):
            yield

    def key_averages(self, group_by_input_shape: bool = False) -> KeyAverages:
        """Return calls and times by name; waits for the work.

        Parameters
        ----------
        group_by_input_shape : bool, default False
            Whether each shape has its row.
        """
        self._collect()
        return averages(self._all_roots(), self.device, group_by_input_shape, self.warnings)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What it leaves out, such as other devices."""
        elsewhere = self._work_elsewhere() if self._is_open else self._elsewhere
        found = [doubt for doubt in tuple(self._doubts) if doubt is not None]
        text = found[-1].warning(None) if found else None
        return elsewhere if text is None else (*elsewhere, f"{len(found)} of {len(self._doubts)} timed calls: {text}")

    def _work_elsewhere(self) -> tuple[str, ...]:
        """Return a sentence about what other devices were given to do while it was open."""
        found = Counter[str]()
        for device, uses in queue_uses().items():
            if device is not self.device:
                found[device.adapter.info["device"]] += uses - self._uses_before.get(device, 0)
        counts = [f"{clean(name)}: {uses} submissions or transfers" for name, uses in found.items() if uses]
        return (f"work on other devices is not in this profile ({'; '.join(counts)})",) if counts else ()

    def export_chrome_trace(self, path: str | Path) -> None:
        """Write a Chrome trace, for ui.perfetto.dev.

        Where the GPU's lane lies against the host's is approximate; ``otherData`` has the uncertainty, and the drift of
        the clocks.
        """
        self._collect()
        assert self._begin_ns is not None
        capabilities = self._context.capabilities
        trace = ChromeTrace(
            self._begin_ns,
            {
                "adapter": capabilities.adapter,
                "driver": capabilities.driver,
                "clock_alignment_uncertainty_ns": max((a.uncertainty_ns for a in self._anchors), default=None),
                "python": platform.python_version(),
            },
        )
        pieces: list[tuple[GpuSlice, float]] = []
        for root in self._all_roots():
            if not root.children:
                continue
            lane = trace.lane("host", root.name)
            for node in root.children:
                node.add_to(trace, lane)
            pieces += root.gpu_slices(lane)
        drift = self._drift(pieces[0][1]) if pieces else None
        trace.metadata["clock_drift_ppm"], trace.metadata["clock_drift_uncertainty_ppm"] = (
            (None, None) if drift is None else (1e6 * part for part in drift)
        )
        if pieces:
            first, period_ns = self._anchors[0], pieces[0][1]
            uncertainty_ns = max(a.uncertainty_ns for a in self._anchors)
            trace.gpu_slices(
                f"GPU queue (clock alignment approximate, ± {uncertainty_ns / 1e3:.0f} µs)",
                [piece for piece, _ in pieces], period_ns, (first.ticks, first.host_ns),
                drift=0.0 if drift is None else drift[0], process=f"GPU {capabilities.adapter}",
            )  # fmt: skip
        trace.write(path)

    def __repr__(self) -> str:
        state = "not used"
        if self._begin_ns is not None:
            end_ns = self._end_ns if self._end_ns is not None else time.perf_counter_ns()
            state = f"{'open' if self._is_open else 'closed'}, {format_time(end_ns - self._begin_ns)}"
        count = sum(child.begin_ns is not None for root in self._all_roots() for child in root.children)
        entries = f"{count} {'entry' if count == 1 else 'entries'}"
        elsewhere = "".join(f"; {text}" for text in self._elsewhere)
        return f"Profile({clean(self._context.capabilities.adapter)}, {state}, {entries}{elsewhere})"

    def _repr_html_(self) -> str | None:
        # Reading waits for the end of the work, which is for its user to ask for while it is open.
        if self._begin_ns is None or self._is_open:
            return None
        return self.key_averages()._repr_html_()  # pyright: ignore[reportPrivateUsage]  # IPython's name for it

    # ---- what this library calls; another thread may have closed the profile meanwhile, and then nothing is recorded

    @contextlib.contextmanager
    def span(self, name: str, kind: str, **args: Any) -> Generator[Node]:
        node = Node(name, kind, time.perf_counter_ns(), args=args)
        if not self._records:
            yield node
            return
        stack = self._stack()
        stack[-1].children.append(node)
        stack.append(node)
        try:
            yield node
        finally:
            node.end_ns = time.perf_counter_ns()
            stack.remove(node)

    def past_step(self, name: str, begin_ns: int, end_ns: int) -> None:
        """Add a step of the host that has already happened."""
        if end_ns > begin_ns:
            self._attach(Node(name, "host", begin_ns, end_ns))

    @contextlib.contextmanager
    def copies(
        self, encoder: wgpu.GPUCommandEncoder, name: str, kind: str, moved_bytes: int | None = None
    ) -> Generator[None]:
        """Record all commands on an encoder inside the block as one entry."""
        if not self._records or self._is_taken(encoder):
            yield
            return
        source = None
        if self._context.has_timestamps:
            source = (Event(self.device), Event(self.device))
            source[0].record(encoder)
        taken = self._taken()
        taken.append(encoder)
        try:
            yield
        finally:
            taken.pop()
        if source is not None:
            source[1].record(encoder)
        self._attach(Node(name, kind, args={"bytes": moved_bytes}, source=source))

    def kernels(
        self,
        plan: Plan,
        session: TimingSession | None,
        first: int,
        trials: int,
        encoder: wgpu.GPUCommandEncoder | None,
    ) -> None:
        """Take in the kernels of a plan, whose spans in the session begin at `first`; `encoder` as in `_is_taken`."""
        if self._is_taken(encoder):
            return
        if session is not None and self._records:
            self._doubts.append(clock_doubt(self.device))
        for i, kernel in enumerate(plan.kernels):
            bound = sum(plan.buffer(b.buffer).size_bytes for b in kernel.bindings)
            args = {
                "workgroups": list(kernel.workgroups), "trials": trials, "primitive": plan.primitive,
                "bytes": plan.work.moved_bytes, "bound_bytes": bound,
            }  # fmt: skip
            source = None if session is None else (session, first + i)
            self._attach(Node(kernel.label, "kernel", args=args, shapes=_shapes_of(kernel.workgroups), source=source))

    def record_primitive(
        self, name: str, call: Recordable, encoder: wgpu.GPUCommandEncoder, trials: int, timing: TimingSession | None
    ) -> None:
        """Record a primitive on a caller's encoder, with stamps, in the caller's session if there is one."""
        with self.span(name, "primitive") as node:
            node.shapes = call.shapes()
            if timing is None and self.times_kernels(encoder):
                session = self._context.timing_helper.session()
                record_marked(call.bound_plan, encoder, trials, session)
                self.kernels(call.bound_plan.plan, session, 0, trials, encoder)
                return
            first = 0 if timing is None else timing.span_count
            call.bound_plan.encode(encoder, trials=trials, timing=timing)
            self.kernels(call.bound_plan.plan, timing, first, trials, encoder)

    def times_kernels(self, encoder: wgpu.GPUCommandEncoder | None) -> bool:
        """Whether kernels get timestamps because of the profile; `encoder` as in `_is_taken`."""
        return self._context.has_timestamps and self._records and not self._is_taken(encoder)

    def allocated(self, size_bytes: int) -> None:
        if self._records:
            self._stack()[-1].allocated_bytes += size_bytes

    # ---- inside ----

    @property
    def _is_open(self) -> bool:
        return self._begin_ns is not None and self._end_ns is None

    @property
    def _records(self) -> bool:
        """Whether this thread's calls are recorded: while it is open, and to the end of a span that began then."""
        return self._is_open or len(getattr(self._local, "stack", ())) > 1

    def _check_open(self) -> None:
        if not self._is_open:
            raise ArgumentError("this profile is not open; use it inside of `with gw.profile(device) as prof:`")

    def _stack(self) -> list[Node]:
        """Return this thread's spans that have not ended, below them its root."""
        stack = getattr(self._local, "stack", None)
        if stack is None:
            with self._lock:
                root = Node(self._lane_name(), "root", time.perf_counter_ns())
                self._roots.append(root)
            stack = self._local.stack = [root]
        return stack

    def _lane_name(self) -> str:
        if not self._roots:
            return "host"
        name, known = f"host, {threading.current_thread().name}", {root.name for root in self._roots}
        # Threads may share a name; on one lane their spans would overlap.
        return next(unique for i in itertools.count(1) if (unique := name if i == 1 else f"{name} ({i})") not in known)

    def _all_roots(self) -> list[Node]:
        with self._lock:
            return list(self._roots)

    def _taken(self) -> list[wgpu.GPUCommandEncoder]:
        """Return the encoders on which this thread is inside of `commands`."""
        taken: list[wgpu.GPUCommandEncoder] | None = getattr(self._local, "taken", None)
        if taken is None:
            taken = self._local.taken = []
        return taken

    def _is_taken(self, encoder: wgpu.GPUCommandEncoder | None) -> bool:
        """Whether work on an encoder is a part of `commands` already; None stands for an encoder of the work's own."""
        return any(taken is encoder for taken in self._taken())

    def _attach(self, node: Node) -> None:
        if self._records:
            self._stack()[-1].children.append(node)

    def _collect(self) -> None:
        if self._begin_ns is None:
            raise ArgumentError("nothing was profiled yet; use it as `with gw.profile(device) as prof:`")
        if self._context.has_timestamps:
            self._context.timing_helper.collect()


def _shapes_of(workgroups: Sequence[int] | None) -> str | None:
    return None if workgroups is None else " × ".join(map(str, workgroups)) + " workgroups"


def profile(device: wgpu.GPUDevice | None = None) -> Profile:
    """Return a profile of a device, for a ``with`` block: it times the work inside, by region and kernel.

    Parameters
    ----------
    device : wgpu.GPUDevice, optional
        By default `default_device()`.

    Returns
    -------
    Profile

    Notes
    -----
    While a profile is open, each kernel has its own pass with timestamps, and the steps of uploads and downloads do
    not overlap, so that each can be timed. This costs CPU time. Without
    an open profile, a call only checks that there is none.

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
