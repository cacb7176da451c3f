"""BoundCall: a primitive with checked and bound arguments, ready to run any number of times."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any, Generic

import wgpu

from ..backend.device_errors import device_errors
from ..backend.fork_guard import check_process
from ..backend.mapped_memory import MAP_USAGE
from ..backend.queues import DESTRUCTIONS
from ..call_errors import explained
from ..errors import ArgumentError
from ..planning.layout import COUNT
from ..planning.plan import Kernel, Plan, Work
from ..planning.signature import Signature
from ..timing.queries import GpuTiming, TimingSession
from .arguments import GIVEN, KEY, OUTPUTS, KnownArguments, ParsedCall, call_key
from .array import Array, new_array
from .chunked_array import Items, ItemsT, check_usable, parts
from .context import DeviceContext
from .encoders import check_encoder, check_session, watch_submission
from .executor import BoundPlan
from .memory import Lease
from .observer import Observer
from .recipes import Step
from .run import Run, launch
from .runnable import ASYNC_REMEDIES, PLAIN, Asked, Runnable, check_in_place, check_trials, to_the_end


class BoundCall(Runnable, Generic[ItemsT]):
    """A primitive with checked arguments, ready to run; made by `Primitive.bind`.

    It keeps its arrays; later calls of the primitive do not change it.

    Attributes
    ----------
    name : str
        The primitive's name.
    """

    _instead = "bind the arguments there, with primitive.bind(…)"
    #: Those of its buffers that can be mapped; None until it is repeated: most calls that make an output are not.
    _mappable: tuple[wgpu.GPUBuffer, ...] | None = None

    def __init__(
        self,
        name: str,
        context: DeviceContext,
        device: wgpu.GPUDevice,
        parsed: ParsedCall | KnownArguments,
        bound_plan: BoundPlan,
        launch_blocking: bool,
        known: Step | None = None,
    ):
        self.name: str = name
        self._context = context
        self._device = device
        self._parsed: ParsedCall | KnownArguments | None = parsed
        self._bound_plan = bound_plan
        self._launch_blocking = launch_blocking
        #: What calls with the same key have in common, where that is known.
        self.known: Step | None = known
        # All repetitions that are not timed are one object: nothing of it changes.
        self._run_untimed: Run[Any] = Run(bound_plan.plan, parsed[OUTPUTS], None, None)
        #: The number of `DESTRUCTIONS` at which its buffers were last seen.
        self._destructions: int = -1

    # ---- what it is ----

    @property
    def parsed(self) -> ParsedCall:
        """The checked arguments."""
        parsed = self._parsed
        if parsed is None:
            raise ArgumentError(f"this call of {self.name} was released; bind the arguments again")
        if not isinstance(parsed, ParsedCall):
            assert self.known is not None, "only what is known is left out"
            parsed = self._parsed = self.known.parsed(*parsed)
        return parsed

    def key_if_given(self, arrays: Mapping[str, Any]) -> tuple[Any, ...] | None:
        """Return this call's key if arguments have it for certain: the same objects, and the same ones left out."""
        parsed = self._parsed
        if parsed is None or 2 * len(arrays) != len(parsed[KEY]):
            return None
        given = parsed[GIVEN]
        for name, value in arrays.items():
            if given.get(name) is not value:
                return None
        return parsed[KEY]

    def is_repeated_by(self, signature: Signature, arrays: Mapping[str, Any]) -> bool:
        """Whether a call with these arguments is the same one: this one was given all that there are, outputs too."""
        parsed = self._parsed if type(self._parsed) is ParsedCall else self.parsed
        given = parsed.given
        if len(given) != len(parsed.arrays) or (COUNT in given and COUNT not in arrays and signature.takes_count):
            return False  # a call that names its inputs says how many items count
        for name, value in arrays.items():
            before = given.get(name)
            if value is before is not None:
                continue
            if type(value) is not Array or type(before) is not Array:
                return call_key(signature, arrays) == parsed.key
            if value.place != before.place:  # other objects may be the same items
                return False
        return True  # those that are left out are this call's

    @property
    def bound_plan(self) -> BoundPlan:
        """The plan on its buffers; ``bound_plan.encode(encoder)`` records it without any check."""
        return self._bound_plan

    @property
    def plan(self) -> Plan:
        """The plan."""
        return self._bound_plan.plan

    @property
    def arrays(self) -> dict[str, Items]:
        """All arguments, by name."""
        return self.parsed.arrays

    @property
    def outputs(self) -> dict[str, Any]:
        """The output arguments, by name."""
        return self.parsed.outputs

    @property
    def in_place(self) -> bool:
        """Whether an output overlaps an input, or is read, too."""
        return self.parsed.in_place

    @functools.cached_property
    def _leases(self) -> tuple[Lease, ...]:
        """Of all memory that its commands use."""
        own = self._bound_plan.leases
        return (*(part.lease for value in self.arrays.values() for part in parts(value)), *own)

    def shapes(self) -> str:
        """Return names, shapes and datatypes of the arguments."""
        return ", ".join(
            f"{name} {array.datatype.name}[{', '.join(map(str, array.shape))}]" for name, array in self.arrays.items()
        )

    @functools.cached_property
    def _named_notes(self) -> tuple[tuple[list[bool], str], ...]:
        """The note of each buffer's end, and what the buffer is in messages."""
        return tuple(
            (part.lease.destroyed, f"{self.plan.primitive}'s {name}")
            for name, value in self.arrays.items()
            for part in parts(value)
        )

    def check(self, trials: int = 1) -> None:
        """Raise if it cannot run.

        Raises
        ------
        ArgumentError
            If it was released, or `trials` is no number of trials.
        ForkError
            If the process was forked from one that had used the GPU.
        BufferUsageError
            If a buffer was destroyed, or is mapped.
        OverlapError
            If a repeated trial would read changed inputs.
        """
        check_process()
        mappable = self._mappable
        if mappable is None or self._destructions != DESTRUCTIONS.count:
            mappable = self._check_buffers()
        for buffer in mappable:
            if buffer.map_state != "unmapped":
                self._check_buffers()
        if type(trials) is not int or trials != 1 or self._parsed is None:
            check_trials(trials)
            check_in_place(self.name, trials, self.parsed.in_place)

    def _check_buffers(self) -> tuple[wgpu.GPUBuffer, ...]:
        destructions, arrays = DESTRUCTIONS.count, self.parsed.arrays
        for array in arrays.values():
            check_usable(array, None, self.name)
        buffers = (part.lease.buffer for value in arrays.values() for part in parts(value))
        # By a caller who has the buffer, now or later. No other buffer can be mapped again, once it is not.
        self._mappable = mappable = tuple(buffer for buffer in buffers if buffer.usage & MAP_USAGE)
        self._destructions = destructions
        return mappable

    # ---- running ----

    @explained()
    def execute(
        self,
        *,
        encoder: wgpu.GPUCommandEncoder | None = None,
        enable_gpu_timing: GpuTiming = False,
        enable_cpu_timing: bool = False,
        trials: int = 1,
    ) -> Run[ItemsT]:
        """Run it, with the options of `Primitive.execute`.

        Returns
        -------
        Run
        """
        self.check(trials)
        if encoder is None and not (enable_gpu_timing or enable_cpu_timing) and trials == 1:
            asked = PLAIN
        else:
            asked = Asked(enable_gpu_timing, enable_cpu_timing, trials, encoder)
            asked.check(self.name, self._device)
        observer = self._context.observer
        if observer is None:
            return self.run(asked, None)
        with observer.span(self.name, "primitive") as node:
            node.shapes = self.shapes()
            return self.run(asked, observer)

    @explained(ASYNC_REMEDIES)
    async def execute_async(
        self, *, enable_gpu_timing: GpuTiming = False, enable_cpu_timing: bool = False, trials: int = 1
    ) -> Run[ItemsT]:
        """Like `execute`, without blocking the event loop; returns when the work is done."""
        return await to_the_end(
            self.device,
            lambda: self.execute(
                enable_gpu_timing=enable_gpu_timing, enable_cpu_timing=enable_cpu_timing, trials=trials
            ),
        )

    @explained()
    def record(
        self, encoder: wgpu.GPUCommandEncoder, *, trials: int = 1, timing: TimingSession | None = None
    ) -> dict[str, Any]:
        """Record it on an encoder, as `Primitive.record`.

        Returns
        -------
        dict from str to Array or ChunkedArray
            The outputs.
        """
        self.check(trials)
        check_encoder(self.name, encoder, self.device)
        if timing is not None:
            check_session(self.name, timing, self.device)
        return self.encode(encoder, trials, timing)

    def encode(self, encoder: wgpu.GPUCommandEncoder, trials: int, timing: TimingSession | None) -> dict[str, Any]:
        """As `record`, with options that were checked."""
        watch_submission(encoder, self._named_notes, self.device, self._leases)
        observer = self._context.observer
        with device_errors(self.name, self.device):
            if observer is not None:
                observer.record_primitive(self.name, self, encoder, trials, timing)
            else:
                self._bound_plan.encode(encoder, trials=trials, timing=timing)
        return self.outputs

    def run(self, asked: Asked, observer: Observer | None) -> Run[Any]:
        """As `execute`, with options that were checked."""
        bound, context = self._bound_plan, self._context
        if asked is PLAIN and observer is None and not (context.recorders or self._launch_blocking):
            if not bound.ran:
                bound.begins()
            launch(self._device, bound, 1, self.name)
            return self._run_untimed
        measurement = self._run(bound, asked, observer)
        if measurement is None and asked.encoder is None:
            return self._run_untimed
        return Run(bound.plan, self._run_untimed.outputs, asked.encoder, measurement)

    def _plans(self) -> Sequence[tuple[Plan, int]]:
        return ((self._bound_plan.plan, 1),)

    def _kernels_and_work(self) -> tuple[Sequence[Kernel], Work | None]:
        return self.plan.kernels, self.plan.work

    def _given_to_recorders(self) -> tuple[str, object]:
        return self.name, self.parsed

    def _kept_by_encoders(self) -> tuple[tuple[tuple[list[bool], str], ...], tuple[Lease, ...]]:
        return self._named_notes, self._leases

    def _counts(self, encoder: wgpu.GPUCommandEncoder | None) -> Mapping[str, Array] | None:
        # Later calls may change them before the times are read.
        copies: dict[str, Array] = {}
        for part in self.plan.work.counted:
            count = self.arrays[part.count]
            if not isinstance(count, Array) or not count.lease.buffer.usage & wgpu.BufferUsage.COPY_SRC:
                continue  # nobody can read it: the work stays that of the most items
            if encoder is None and count.lease.buffer.usage & wgpu.BufferUsage.STORAGE:
                copies[part.count] = count.copy()
            elif encoder is None:
                copies[part.count] = count
            else:
                copy = copies[part.count] = new_array(self._context, 1, count.datatype)
                encoder.copy_buffer_to_buffer(count.lease.buffer, count.offset_bytes, copy.lease.buffer, 0, 4)
        return copies

    def release(self) -> None:
        """Drop the arguments. The call cannot run afterwards."""
        self._parsed = None
        self._run_untimed = Run(self.plan, {}, None, None)
        self._mappable = ()
        self.__dict__.pop("_named_notes", None)
        self.__dict__.pop("_leases", None)

    def __repr__(self) -> str:
        return f"BoundCall({self.name}, {'released' if self._parsed is None else self.shapes()})"
