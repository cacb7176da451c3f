"""Primitive: what every data-parallel primitive, and every kernel of a user's own, is run through."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Mapping
from numbers import Integral
from typing import Any, ClassVar

import wgpu

from .. import settings
from ..backend.device_errors import device_error, device_errors
from ..backend.fork_guard import check_process, in_thread
from ..backend.wgpu_native import wait_idle
from ..call_errors import explained
from ..errors import ArgumentError, OverlapError, TimingUnavailable
from ..planning.layout import Layout
from ..planning.plan import Plan
from ..planning.windows import check_bindings
from ..runtime.arguments import (
    Argument,
    Items,
    Ready,
    bind_layout,
    check_encoder,
    check_overlaps,
    check_session,
    resolve,
    signature,
    watch,
    watch_submission,
)
from ..runtime.context import context_of
from ..runtime.executor import BoundPlan
from ..runtime.observer import Observer
from ..runtime.run import Measurement, Run, record_marked, submit, submit_blocking
from ..timing.queries import TimingSession
from ..timing.result import TimingResult
from ..types.capabilities import Capabilities
from ..types.datatype import DATATYPES, Datatype

__all__ = ["ASYNC_REMEDIES", "Primitive"]

_MAX_LAYOUTS = 64
#: What ``execute_async`` has not, and what to do.
ASYNC_REMEDIES = {"encoder": "it submits by itself; use execute(encoder=…) to record"}
# From a warning in `_run` to the line that called `execute`: `_execute`, `execute` and what explains its arguments.
_TO_CALLER = 6


class Primitive(ABC):
    """Base of all primitives. Make one once and execute it often.

    A subclass names its `arguments`, turns a `Layout` into a `Plan`, and says how long its outputs are.

    Parameters
    ----------
    device : wgpu.GPUDevice or None
        None for planning only, which then needs `capabilities`.
    capabilities : Capabilities, optional
        By default what was measured on the device.
    """

    #: Datatypes of the items that it works on, by name.
    datatypes: ClassVar[Mapping[str, Datatype]] = DATATYPES
    #: What ``execute`` takes, by name, in order.
    arguments: ClassVar[tuple[Argument, ...]] = ()

    def __init__(self, device: wgpu.GPUDevice | None, *, capabilities: Capabilities | None = None):
        if device is None and capabilities is None:
            raise ArgumentError(
                f"{type(self).__name__}: device is None; give gw.default_device() or gw.request_device() (or, for "
                f"planning only, capabilities=)"
            )
        self._context = context_of(device) if device is not None else None
        self._device = device
        self._capabilities = capabilities if capabilities is not None else self._context.capabilities
        self._given: dict[str, Items] = {}  # what the caller gave, and stays bound
        self._ready: Ready | None = None
        self._lock = threading.RLock()
        self._launch_blocking = settings.launch_blocking()
        self._plans: OrderedDict[Layout, Plan] = OrderedDict()
        self._last_timed: Measurement | None = None

    # ---- what a subclass says ----

    @abstractmethod
    def plan(self, layout: Layout) -> Plan:
        """Return the plan for arguments that lie as `layout` says. Pure: the same for the same layout."""

    @abstractmethod
    def argument_datatype(self, name: str) -> Datatype | None:
        """Return the datatype that an argument must have; None for any."""

    def output_length(self, name: str, lengths: Mapping[str, int]) -> int | None:
        """Return how many items an output has, given the lengths of the inputs; None for any number."""
        return None

    @classmethod
    def at_size(cls, n: int) -> tuple[dict[str, Any], dict[str, int]]:
        """Return what the constructor must be told for a benchmark of size n, and the lengths of the inputs."""
        return {}, {argument.name: n for argument in cls.arguments if not argument.is_output}

    def check_lengths(self, lengths: Mapping[str, int]) -> None:
        """Raise LengthError where the lengths of the inputs do not fit each other."""
        return

    def default_output(self, name: str, inputs: Mapping[str, Items]) -> Items | None:
        """Return the array that takes an output which was never given; None for a new one."""
        return None

    def may_overlap(self, output: str, argument: str, identical: bool) -> bool:
        """Whether an output may share items with another argument; `identical` if both are the same view."""
        return False

    @property
    def name(self) -> str:
        """What reports call it."""
        return type(self).__name__

    # ---- planning ----

    @property
    def device(self) -> wgpu.GPUDevice:
        """The device it runs on."""
        if self._device is None:
            raise ArgumentError(
                f"this {self.name} was made without a device, for planning only; to run it, make one on a device: "
                f"gw.default_device() or gw.request_device()"
            )
        return self._device

    @property
    def capabilities(self) -> Capabilities:
        """What plans are made for."""
        return self._capabilities

    @classmethod
    def plan_for(cls, *, capabilities: Capabilities, lengths: Mapping[str, int] | Layout, **options: Any) -> Plan:
        """Return a plan without any device.

        Parameters
        ----------
        capabilities : Capabilities
            Of a device, or invented.
        lengths : mapping from str to int, or Layout
            Items of each argument, each in a buffer of its own; or where they lie.
        **options
            What the constructor takes.
        """
        primitive = cls(None, capabilities=capabilities, **options)
        if isinstance(lengths, Layout):
            return primitive.plan(lengths)
        datatypes = {name: primitive.argument_datatype(name) for name in lengths}
        sizes = {name: datatype.itemsize_bytes for name, datatype in datatypes.items() if datatype is not None}
        return primitive.plan(Layout.separate(sizes, **lengths))

    def _plan_cached(self, layout: Layout) -> Plan:
        plan = self._plans.get(layout)
        if plan is None:
            plan = self.plan(layout)
            check_bindings(plan, self.capabilities)
            self._plans[layout] = plan
            while len(self._plans) > _MAX_LAYOUTS:
                self._plans.popitem(last=False)
        return plan

    # ---- binding ----

    @explained()
    def bind(self, **arrays: Items | wgpu.GPUBuffer | None) -> BoundPlan:
        """Check the arguments, make what is missing, and return the plan ready to be encoded.

        `BoundPlan.encode` records it on an encoder; `execute` and `record` do that by themselves.

        Arguments that are left out are those of the call before. An output that was never given is made.

        Raises
        ------
        ArgumentError
            If something does not fit; everything stays as it was.
        """
        return self._bind(arrays).bound

    def _bind(self, arrays: Mapping[str, Any], trials: int = 1) -> Ready:
        """Check everything about a call, and only then change anything."""
        check_process()  # before the lock, which a thread may have held when the process was forked
        if isinstance(trials, bool) or not isinstance(trials, Integral) or trials < 1:
            raise ArgumentError(f"trials must be an integer of at least 1, not {trials!r}")
        key = signature(arrays)
        with self._lock:
            ready = self._ready
            # A call that names its inputs but no output gets a new output, so that an earlier one stays as it is.
            if ready is not None and (not arrays or (key == ready.key and self._all_given())):
                for destroyed, buffer in ready.watched:
                    if destroyed[0] or buffer.map_state != "unmapped":
                        for array in ready.arrays.values():
                            array._check_usable("STORAGE", self.name)
                self._check_in_place(trials, ready.in_place)
                return ready
            given, used = resolve(self, self._given, arrays)
            layout, ranges = bind_layout(used, self.arguments, self.capabilities)
            in_place = check_overlaps(self.name, used, self.arguments, self.may_overlap)
            self._check_in_place(trials, in_place)
            plan = self._plan_cached(layout)
            outputs = {a.name: used[a.name] for a in self.arguments if a.is_output}
            if len(plan.kernels) < len(plan.steps):
                for output in outputs.values():
                    output._check_usable("COPY_DST", self.name)
            names = {spec.name for spec in plan.buffers if spec.role == "argument"}
            bound = self._context.executor.bind(plan, {k: v for k, v in ranges.items() if k in names})
            # Both or none: no interrupt comes between two stores.
            self._given, self._ready = given, Ready(key, bound, used, outputs, in_place, watch(used))
            return self._ready

    def _check_in_place(self, trials: int, in_place: bool) -> None:
        if trials > 1 and in_place:
            raise OverlapError(
                f"{self.name}: trials={trials} repeats the work, but the output overlaps an input, which the first "
                f"trial changes; give a separate output, or trials=1"
            )

    def release(self) -> None:
        """Forget the bound arguments, so that their memory can go."""
        with self._lock:
            self._given, self._ready = {}, None

    def _all_given(self) -> bool:
        return all(argument.name in self._given for argument in self.arguments)

    # ---- running ----

    @explained()
    def record(
        self,
        encoder: wgpu.GPUCommandEncoder,
        *,
        trials: int = 1,
        timing: TimingSession | None = None,
        **arrays: Any,
    ) -> dict[str, Items]:
        """Record the primitive on an encoder, and do nothing else.

        Parameters
        ----------
        encoder : wgpu.GPUCommandEncoder
        trials : int, default 1
            How often each dispatch is recorded.
        timing : TimingSession, optional
            Of this device's `timing_helper`: each kernel then becomes a pass with timestamps. The caller says
            ``timing.submitted()`` after submitting, or ``timing.mark(encoder)`` before finishing.
        **arrays
            The arguments.

        Returns
        -------
        dict from str to Array or ChunkedArray
            The outputs.
        """
        return self._record(arrays, encoder, trials, timing)

    def _record(
        self, arrays: Mapping[str, Any], encoder: wgpu.GPUCommandEncoder, trials: int, timing: TimingSession | None
    ) -> dict[str, Any]:
        check_encoder(self.name, encoder, self.device)
        if timing is not None:
            check_session(self.name, timing, self.device)
        ready = self._bind(arrays, trials)
        watch_submission(encoder, ready, self.device)
        observer = self._context.observer
        with device_errors(self.name, self.device):
            if observer is not None:
                observer.record_primitive(self.name, ready, encoder, trials, timing)
            else:
                ready.bound.encode(encoder, trials=trials, timing=timing)
        return ready.outputs

    @explained()
    def execute(
        self,
        *,
        encoder: wgpu.GPUCommandEncoder | None = None,
        enable_gpu_timing: bool = False,
        enable_cpu_timing: bool = False,
        trials: int = 1,
        **arrays: Any,
    ) -> Run[Any]:
        """Run the primitive.

        Parameters
        ----------
        encoder : wgpu.GPUCommandEncoder, optional
            To record on, without submitting. By default the primitive submits itself, and does not wait.
        enable_gpu_timing : bool, default False
            Take timestamps around each kernel; without ``timestamp-query`` GPU times are None, with a warning.
        enable_cpu_timing : bool, default False
            Wait until the queue is idle, take the time, submit, wait until it is idle, take the time.
        trials : int, default 1
            Dispatch each kernel this many times, one after the other. The result is that of one.
        **arrays : Array, ChunkedArray or wgpu.GPUBuffer
            The arguments, by name. Those left out are the ones of the call before; an output that was never given is
            made, and None for an output asks for a new one.

        Returns
        -------
        Run

        Raises
        ------
        ArgumentError
            If something does not fit; nothing was submitted, and everything is as it was.
        """
        return self._execute(arrays, encoder, enable_gpu_timing, enable_cpu_timing, trials)

    def _execute(
        self,
        arrays: Mapping[str, Any],
        encoder: wgpu.GPUCommandEncoder | None,
        enable_gpu_timing: bool,
        enable_cpu_timing: bool,
        trials: int,
    ) -> Run[Any]:
        if encoder is not None and enable_cpu_timing:
            raise ArgumentError(
                "enable_cpu_timing=True needs an encoder of the primitive's own, since it brackets the submission: "
                "leave out encoder=, or time the submission yourself"
            )
        if encoder is not None:
            check_encoder(self.name, encoder, self.device)
        # Without a device there is no context; binding says so.
        observer = None if self._context is None else self._context.observer
        if observer is not None:
            with observer.span(self.name, "primitive") as node:
                ready = self._bind(arrays, trials)
                node.shapes = ready.shapes()
                return self._run(ready, encoder, enable_gpu_timing, enable_cpu_timing, trials, observer)
        return self._run(self._bind(arrays, trials), encoder, enable_gpu_timing, enable_cpu_timing, trials, None)

    def _run(
        self,
        ready: Ready,
        encoder: wgpu.GPUCommandEncoder | None,
        enable_gpu_timing: bool,
        enable_cpu_timing: bool,
        trials: int,
        observer: Observer | None,
    ) -> Run[Any]:
        session = None
        if enable_gpu_timing or (observer is not None and observer.times_kernels(encoder)):
            if self._context.has_timestamps:
                session = self._context.timing_helper.session()
            else:
                self._context.warn_no_timestamps(stacklevel=_TO_CALLER)
        timed = enable_gpu_timing or enable_cpu_timing
        cpu: dict[str, Any] | None = {} if enable_cpu_timing else None
        try:
            if encoder is not None:
                watch_submission(encoder, ready, self.device)
                record_marked(ready.bound, encoder, trials, session)
            elif self._launch_blocking:
                submit_blocking(self.device, ready.bound, trials, session, cpu)
            else:
                submit(self._device, ready.bound, trials, session, cpu, observer)
        except BaseException as error:
            if session is not None and encoder is None and not session.is_submitted():
                session.abandon()
            if isinstance(error, wgpu.GPUError):
                raise device_error(error, self.name) from error
            raise
        if observer is not None:
            observer.kernels(ready.bound.plan, session, 0, trials, encoder)
        # An int of Python, so that whoever multiplies by it does so without the width of a numpy scalar.
        measurement = Measurement(ready.bound.plan, session, int(trials), cpu or {}) if timed else None
        if measurement is not None:
            self._last_timed = measurement
        return Run(ready.bound.plan, ready.outputs, encoder, measurement)

    @explained(ASYNC_REMEDIES)
    async def execute_async(
        self, *, enable_gpu_timing: bool = False, enable_cpu_timing: bool = False, trials: int = 1, **arrays: Any
    ) -> Run[Any]:
        """As `execute`, without blocking the event loop, and returning when the work is done.

        Takes what `execute` takes, except ``encoder``.
        """
        return await self._execute_async(arrays, enable_gpu_timing, enable_cpu_timing, trials)

    async def _execute_async(
        self, arrays: Mapping[str, Any], enable_gpu_timing: bool, enable_cpu_timing: bool, trials: int
    ) -> Run[Any]:
        def run() -> Run[Any]:
            result = self._execute(arrays, None, enable_gpu_timing, enable_cpu_timing, trials)
            wait_idle(self.device)
            return result

        return await in_thread(run)

    def get_timing_result(self) -> TimingResult:
        """Return what the last timed call measured; see `Run.get_timing_result`."""
        if self._last_timed is None:
            raise TimingUnavailable(
                f"this {self.name} has no timed run; call execute(enable_gpu_timing=True) or "
                f"execute(enable_cpu_timing=True) first"
            )
        return self._last_timed.result()

    async def get_timing_result_async(self) -> TimingResult:
        """As `get_timing_result`, without blocking the event loop."""
        return await in_thread(self.get_timing_result)

    def __repr__(self) -> str:
        return f"{self.name}({self.capabilities.adapter})"
