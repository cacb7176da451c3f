"""Turns plans into wgpu commands. The only module that makes bind groups and scratch buffers, and asks for pipelines.

What was made is kept with its plan: a repeated call with the same shapes finds all of it, allocates nothing and
composes no text. With the plans that were not used for longest go their pipelines, and the texts of these.
"""

from __future__ import annotations

import itertools
import threading
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np
import wgpu

from ..backend.device_errors import device_errors, is_trouble, lacks_memory, watch_errors
from ..backend.device_state import state_of
from ..backend.queues import submit, wait_idle, write_timestamp
from ..backend.raw_commands import RawCommands, RawDispatch, RawTransfer, raw_commands
from ..errors import BufferUsageError, DeviceError
from ..planning.plan import BufferSpec, Copy, Fill, Kernel, Plan
from ..settings import ShaderChecks, strictest
from ..timing.queries import TimingSession
from .encodable import Spans
from .encoding_order import StepUse
from .memory import Lease, MemoryPool
from .observer import Observer
from .pipelines import Pipeline, PipelineCache

_USAGE = wgpu.BufferUsage
_OWN_USAGE = {
    "params": _USAGE.UNIFORM | _USAGE.COPY_DST,
    "constant": _USAGE.STORAGE | _USAGE.COPY_SRC | _USAGE.COPY_DST,
}
_MAX_PLANS = 256
_MAX_PIPELINES = 256
# Of the plans' own buffers; a sort's are as large as what it sorts, and wgpu does not say how much memory a GPU has.
_MAX_OWN_BYTES = 2 << 30
# Bind groups are small. A loop over some arrays meets each of them with a few blocks of the allocator.
_MAX_BINDINGS = 64


@dataclass(frozen=True)
class BufferRange:
    """The part of a caller's buffer that a plan's argument is bound to."""

    buffer: wgpu.GPUBuffer
    offset_bytes: int
    size_bytes: int


class BoundPlan:
    """A plan with real buffers: ready to be encoded any number of times."""

    __slots__ = (
        "__weakref__", "_uses", "arguments", "cost", "labels", "leases", "own_buffers", "plan", "ran", "raw", "steps",
        "title",
    )  # fmt: skip

    def __init__(
        self,
        plan: Plan,
        steps: list[RawDispatch | RawTransfer],
        own: Mapping[str, wgpu.GPUBuffer] = MappingProxyType({}),
        leases: tuple[Lease, ...] = (),
        raw: RawCommands | None = None,
        arguments: Mapping[str, tuple[weakref.ref[wgpu.GPUBuffer], int, int]] = MappingProxyType({}),
    ):
        self.plan: Plan = plan
        #: The steps for the C functions; None where there are no steps, or no such functions.
        self.raw: RawCommands | None = raw
        #: Those that are not a caller's, by name: scratch, parameters and constants.
        self.own_buffers: Mapping[str, wgpu.GPUBuffer] = own
        #: Those that are: buffer, offset and size. A cached plan must not keep the buffers.
        self.arguments: Mapping[str, tuple[weakref.ref[wgpu.GPUBuffer], int, int]] = arguments
        #: Of the scratch: while somebody may run the plan, it is nobody else's.
        self.leases: tuple[Lease, ...] = leases
        self._uses: list[StepUse] | None = None
        self.steps: list[RawDispatch | RawTransfer] = steps
        self.labels: tuple[str, ...] = tuple(step.label for step in steps if isinstance(step, RawDispatch))
        self.title: str = f"{plan.primitive} ({', '.join(self.labels)})"  # in messages
        #: Whether all of its pipelines were dispatched before, by it or by others.
        self.ran: bool = False
        #: How much of a batch it is: its dispatches, and the MiB that it moves.
        self.cost: int = len(steps) + (plan.work.moved_bytes >> 20)

    def encode(
        self,
        encoder: wgpu.GPUCommandEncoder,
        *,
        trials: int = 1,
        timing: Spans | None = None,
    ) -> None:
        """Record the plan, each dispatch `trials` times.

        With `timing`, each kernel gets a pass of its own, with timestamps; without, or if it takes timestamps inside of
        passes, neighbouring dispatches share one pass.
        """
        if not self.ran:
            self.begins()
        if timing is None and self.raw is not None and self.raw.record(encoder, trials):
            return
        encode_steps(encoder, ((step, trials) for step in self.steps), timing)

    def labels_within(self, label: str) -> tuple[str, ...]:
        """Return what its kernels are called in a call with a label, or none: of several the label comes before."""
        own = self.labels
        return own if not label else (label,) if len(own) == 1 else tuple(f"{label} {one}" for one in own)

    @property
    def pass_count(self) -> int:
        """The passes that it has without timing."""
        return pass_count(self.steps)

    @property
    def uses(self) -> list[StepUse]:
        """Which buffers each step uses; asked for while the caller holds the arguments."""
        if self._uses is not None:
            return self._uses
        numbers = {name: buffer.uid for name, buffer in self.own_buffers.items()}
        for name, (reference, _, _) in self.arguments.items():
            buffer = reference()
            assert buffer is not None, "the caller holds the arguments of a call"
            numbers[name] = buffer.uid
        self._uses = [_use(step, numbers) for step in self.plan.steps]
        return self._uses

    def begins(self) -> bool:
        """Note that it is dispatched now; return whether one of its pipelines never was before."""
        if self.ran:
            return False
        self.ran, is_first = True, False
        for step in self.steps:
            if isinstance(step, RawDispatch):
                is_first |= not step.pipeline.__dict__.get("_gridwise_ran", False)
                step.pipeline.__dict__["_gridwise_ran"] = True
        return is_first

    def run_blocking(self, device: wgpu.GPUDevice, *, trials: int, timing: TimingSession | None) -> None:
        """Submit step by step and wait after each, so that an error surfaces at the step that made it."""
        watch = watch_errors()
        watch.take()
        for step in self.steps:
            encoder = device.create_command_encoder(label="gridwise blocking")
            BoundPlan(self.plan, [step]).encode(encoder, trials=trials, timing=timing)
            label = step.label if isinstance(step, RawDispatch) else "transfer"
            submit(device, [encoder.finish()], f"{self.plan.primitive}, step {label!r}")
            wait_idle(device)
            errors = watch.take()
            if errors:
                raise DeviceError(f"{self.plan.primitive}, step {label!r} failed: {'; '.join(errors)}")


def _use(step: Kernel | Fill | Copy, numbers: Mapping[str, int]) -> StepUse:
    if isinstance(step, Fill):
        return StepUse(frozenset(), frozenset((numbers[step.buffer],)), is_transfer=True)
    if isinstance(step, Copy):
        source, destination = frozenset((numbers[step.source],)), frozenset((numbers[step.destination],))
        return StepUse(source - destination, destination, is_transfer=True)
    writes = frozenset(numbers[one.buffer] for one in step.bindings if one.access == "read_write")
    return StepUse(frozenset(numbers[one.buffer] for one in step.bindings) - writes, writes)


def pass_count(steps: Iterable[RawDispatch | RawTransfer | None]) -> int:
    """Return the number of passes of steps whose neighbouring dispatches share one; None: another pass begins."""
    return sum(is_dispatch for is_dispatch, _ in itertools.groupby(steps, lambda step: isinstance(step, RawDispatch)))


def encode_steps(
    encoder: wgpu.GPUCommandEncoder, steps: Iterable[tuple[RawDispatch | RawTransfer, int] | None], timing: Spans | None
) -> None:
    """Record steps by wgpu-py's public calls, each dispatch as often as the number says; see `BoundPlan.encode`.

    None: another pass begins.
    """
    inside = timing is not None and timing.inside
    compute = None
    try:
        for one in steps:
            step, trials = (None, 0) if one is None else one
            is_transfer = isinstance(step, RawTransfer)
            if compute is not None and (step is None or is_transfer or (timing is not None and not inside)):
                ended, compute = compute, None
                ended.end()
            if step is None:
                continue
            if is_transfer:
                _transfer(encoder, step)
                continue
            # A span for each kernel, in their order, also where the pass is shared.
            writes = None if timing is None else timing.span(step.label)
            if compute is None:
                of_pass = timing.shared_pass(step.label) if timing is not None and inside else writes
                compute = encoder.begin_compute_pass(label=step.label, timestamp_writes=of_pass)
            compute.set_pipeline(step.pipeline)
            compute.set_bind_group(0, step.group)
            if inside:
                _stamp(compute, writes, "beginning_of_pass_write_index")
            x, y, z = step.workgroups
            for _ in range(trials):
                compute.dispatch_workgroups(x, y, z)
            if inside:
                _stamp(compute, writes, "end_of_pass_write_index")
    finally:
        if compute is not None:  # after a failure, too: an open pass would lock a caller's encoder
            compute.end()


def _stamp(compute: wgpu.GPUComputePassEncoder, writes: Any, which: str) -> None:
    write_timestamp(compute, writes["query_set"], writes[which])


def _transfer(encoder: wgpu.GPUCommandEncoder, step: RawTransfer) -> None:
    source, destination = step.buffers()
    if source is None:
        encoder.clear_buffer(destination, step.destination_offset_bytes, step.size_bytes)
    else:
        encoder.copy_buffer_to_buffer(
            source,
            step.source_offset_bytes,
            destination,
            step.destination_offset_bytes,
            step.size_bytes,
        )


#: Of each argument the buffer's number, offset and size, in the order of the arguments' names; one after another.
BindingKey: TypeAlias = tuple[int, ...]


@dataclass(slots=True)
class _Binding:
    """A bound plan in the cache, and what drops it when a caller's buffer goes."""

    key: BindingKey
    bound: BoundPlan
    last_use: int  # its number among all uses of plans
    # Not `weakref.finalize`, whose list for the whole process would keep the device for as long as the buffers, which
    # the device keeps.
    watches: tuple[weakref.ref[wgpu.GPUBuffer], ...]


def _watch(
    buffer: wgpu.GPUBuffer, bindings: dict[BindingKey, _Binding], key: BindingKey
) -> weakref.ref[wgpu.GPUBuffer]:
    """Forget a binding when a buffer goes."""
    return weakref.ref(buffer, lambda _: bindings.pop(key, None))


def _keep_most_recent(bindings: dict[BindingKey, _Binding]) -> None:
    """Drop the bindings that were not used for longest, where there are too many."""
    if len(bindings) > _MAX_BINDINGS:
        # A copy, made in one step of C: buffers that go meanwhile change the dict.
        oldest_first = sorted(list(bindings.values()), key=lambda binding: binding.last_use)
        for binding in oldest_first[:-_MAX_BINDINGS]:
            bindings.pop(binding.key, None)


class PlanInstance:
    """A plan on a device: pipelines, and the buffers that belong to the plan and not to the caller."""

    def __init__(self, executor: Executor, plan: Plan):
        self.plan = plan
        self.pipelines = executor.pipelines.get(plan)
        # Kept for plans of other lengths.
        self._siblings = executor.pipelines.get_siblings_ahead(plan)
        self.last_use = next(executor.uses)
        self.leases: list[Lease] = []
        self.own = {spec.name: self._make(executor, spec) for spec in plan.buffers if spec.role != "argument"}
        self.own_bytes = sum(buffer.size for buffer in self.own.values())
        self._uses = executor.uses
        self.bindings: dict[BindingKey, _Binding] = {}

    def find(self, key: BindingKey) -> BoundPlan | None:
        """Return the plan where it is bound to these buffers already."""
        # Each step is one step of C, and what is found stays good if another thread drops it from the cache: no lock.
        binding = self.bindings.get(key)
        if binding is None:
            return None
        self.last_use = binding.last_use = next(self._uses)
        return binding.bound

    def _make(self, executor: Executor, spec: BufferSpec) -> wgpu.GPUBuffer:
        label = f"{self.plan.primitive} {spec.name}"
        if spec.role != "scratch":
            return executor.make_buffer(label, spec)
        lease = executor.take_scratch(label, spec.size_bytes)
        self.leases.append(lease)
        return lease.buffer

    def release(self) -> None:
        """Forget the bindings, for whose buffers' end nobody watches then."""
        self.bindings.clear()


class Executor:
    """Makes and keeps wgpu objects for plans on one device."""

    def __init__(
        self,
        device: wgpu.GPUDevice,
        memory: MemoryPool | None = None,
        observer: Callable[[], Observer | None] = lambda: None,
    ):
        self._device_reference = weakref.ref(device)
        self.memory: MemoryPool = memory if memory is not None else MemoryPool(device)
        self._observer = observer
        self._state = state_of(device)
        self._lock = threading.RLock()
        # Not an OrderedDict: going through one hashes each plan again, and an interrupt in there becomes a KeyError.
        self._plans: dict[Plan, PlanInstance] = {}
        self.uses: itertools.count[int] = itertools.count(1)  # numbers all uses of plans
        self.pipelines: PipelineCache = PipelineCache(device)

    @property
    def device(self) -> wgpu.GPUDevice:
        """The device."""
        device = self._device_reference()
        assert device is not None, "an executor outlived its device"
        return device

    @property
    def counts(self) -> dict[str, int]:
        """How many objects of each kind are kept."""
        return {
            "modules": self.pipelines.modules,
            "pipelines": len(self.pipelines),
            "plans": len(self._plans),
            "bindings": sum(len(instance.bindings) for instance in self._plans.values()),
            "own_bytes": sum(instance.own_bytes for instance in self._plans.values()),
        }

    def clear(self) -> None:
        """Forget everything; it is made again when needed."""
        with self._lock:
            while self._plans:
                self._forget(next(iter(self._plans)))

    def _forget(self, plan: Plan) -> int:
        """Drop a plan, and return how many bytes its own buffers had."""
        instance = self._plans.pop(plan)
        instance.release()
        return instance.own_bytes

    def _make(self, plan: Plan) -> PlanInstance:
        """Make a plan's objects. Where memory is short, drop the cached plans and try once more."""
        try:
            return PlanInstance(self, plan)
        except wgpu.GPUError as error:
            if not self._plans or not lacks_memory(error):
                raise
        # Outside of the handler: inside it, the error keeps the half-made objects alive.
        self.clear()
        wait_idle(self.device)
        return PlanInstance(self, plan)

    def _add(self, plan: Plan) -> PlanInstance:
        """Make a plan's objects, and let others go, the least recently used first, until all bounds are kept."""
        instance = self._plans[plan] = self._make(plan)
        others = sorted(self._plans.values(), key=lambda other: other.last_use)
        others.remove(instance)
        while others and (len(self._plans) > _MAX_PLANS or len(self.pipelines) > _MAX_PIPELINES):
            self._forget(others.pop(0).plan)
        total = self.counts["own_bytes"]
        for old in others:
            # Those below their share are never too much, and may have pipelines that nothing else keeps.
            if total > _MAX_OWN_BYTES and old.own_bytes > _MAX_OWN_BYTES // _MAX_PLANS:
                total -= self._forget(old.plan)
        return instance

    def as_run(self, plan: Plan) -> Plan:
        """Return a plan with the run-time checks that its texts have on the device."""
        level = self._state.shader_checks
        if level is None or all(shader.shader_checks == level for shader in plan.shaders.values()):
            return plan
        return plan.with_checks(level)

    def checks_since(self, use: int) -> ShaderChecks | None:
        """Return the strictest run-time checks of the plans that were used after a number of `uses`; None without."""
        used = [instance.plan for instance in tuple(self._plans.values()) if instance.last_use > use]
        return strictest(level for plan in used for level in plan.shader_checks)

    def pipelines_of(self, *plans: Plan) -> list[Pipeline]:
        """Return the pipelines of plans, compiling what is missing. They are kept for as long as the caller does.

        Raises
        ------
        ShaderError
            If a text does not compile.
        """
        with device_errors(f"{plans[0].primitive}, compiling", self.device):
            return self.pipelines.get(*map(self.as_run, plans))

    def _compiled_before(self, plan: Plan) -> list[Pipeline]:
        """Compile a new plan's pipelines outside of the lock: other threads bind plans that are ready meanwhile."""
        if plan in self._plans:
            return []
        try:
            return self.pipelines.get(plan)
        except wgpu.GPUError as error:
            if not lacks_memory(error):
                raise
        return []  # to be compiled under the lock, where there is a way to make room

    def instance_of(self, plan: Plan) -> weakref.ref[PlanInstance] | None:
        """Return what finds a plan's bindings, while the plan is kept."""
        instance = self._plans.get(plan)
        return None if instance is None else weakref.ref(instance)

    def bind(self, plan: Plan, arguments: Mapping[str, BufferRange]) -> BoundPlan:
        """Return `plan` on the given buffers, making what is missing.

        Parameters
        ----------
        plan : Plan
        arguments : mapping from str to BufferRange
            For each of the plan's buffers with the role "argument".

        Raises
        ------
        ShaderError
            If a text does not compile.
        BufferUsageError
            If wgpu refuses a buffer, such as one that was destroyed before this library saw it.
        """
        plan = self.as_run(plan)
        key = tuple(
            number for _, r in sorted(arguments.items()) for number in (r.buffer.uid, r.offset_bytes, r.size_bytes)
        )
        with device_errors(f"{plan.primitive}, binding", self.device):
            _kept = self._compiled_before(plan)
        with self._lock, device_errors(f"{plan.primitive}, binding", self.device):
            instance = self._plans.get(plan)
            if instance is None:
                instance = self._add(plan)
            use = instance.last_use = next(self.uses)
            binding = instance.bindings.get(key)
            if binding is None:
                bound = self._make_binding(
                    instance.plan, instance.pipelines, instance.own, tuple(instance.leases), arguments
                )
                # A bind group keeps its buffers' memory: it goes when the caller drops one of them.
                watches = tuple(_watch(r.buffer, instance.bindings, key) for r in arguments.values())
                binding = instance.bindings[key] = _Binding(key, bound, use, watches)
                _keep_most_recent(instance.bindings)
            binding.last_use = use
            return binding.bound

    def _make_binding(
        self,
        plan: Plan,
        pipelines: Sequence[Pipeline],
        own: Mapping[str, wgpu.GPUBuffer],
        leases: tuple[Lease, ...],
        arguments: Mapping[str, BufferRange],
    ) -> BoundPlan:
        # A block of memory may be larger than what the plan asks for.
        ranges = {
            spec.name: (own[spec.name], 0, spec.size_bytes) for spec in plan.buffers if spec.role != "argument"
        } | {name: (r.buffer, r.offset_bytes, r.size_bytes) for name, r in arguments.items()}
        steps: list[RawDispatch | RawTransfer] = []
        of_kernels = iter(pipelines)
        for step in plan.steps:
            if isinstance(step, Kernel):
                steps.append(self._dispatch(step, next(of_kernels), ranges))
            elif isinstance(step, Fill):
                buffer, offset, _ = ranges[step.buffer]
                steps.append(RawTransfer(None, 0, weakref.ref(buffer), offset + step.offset_bytes, step.size_bytes))
            else:
                assert isinstance(step, Copy)
                source, source_offset, _ = ranges[step.source]
                destination, offset, _ = ranges[step.destination]
                steps.append(
                    RawTransfer(
                        weakref.ref(source),
                        source_offset + step.source_offset_bytes,
                        weakref.ref(destination),
                        offset + step.destination_offset_bytes,
                        step.size_bytes,
                    )
                )
        raw = raw_commands(self.device, steps)
        held = {name: (weakref.ref(r.buffer), r.offset_bytes, r.size_bytes) for name, r in arguments.items()}
        return BoundPlan(plan, steps, own, leases, raw, held)

    def apart(self, bound: BoundPlan, like: BoundPlan | None = None) -> BoundPlan:
        """Return the same plan on the same arguments with other scratch, which the caller keeps by keeping the result.

        The scratch is new, or that of `like`, of the same plan. The caller holds the arguments.
        """
        arguments: dict[str, BufferRange] = {}
        for name, (reference, offset_bytes, size_bytes) in bound.arguments.items():
            buffer = reference()
            assert buffer is not None, "the caller holds the arguments of a call"
            arguments[name] = BufferRange(buffer, offset_bytes, size_bytes)
        plan = bound.plan
        with self._lock, device_errors(f"{plan.primitive}, binding", self.device):
            if like is not None:
                return self._make_binding(plan, self.pipelines.get(plan), like.own_buffers, like.leases, arguments)
            instance = PlanInstance(self, plan)
            return self._make_binding(plan, instance.pipelines, instance.own, tuple(instance.leases), arguments)

    def _dispatch(
        self, kernel: Kernel, pipeline: Pipeline, ranges: Mapping[str, tuple[wgpu.GPUBuffer, int, int]]
    ) -> RawDispatch:
        entries: list[dict[str, object]] = []
        for binding in kernel.bindings:
            buffer, offset, size = ranges[binding.buffer]
            if binding.size_bytes is not None:
                offset, size = offset + binding.offset_bytes, binding.size_bytes
            entries.append({"binding": binding.index, "resource": {"buffer": buffer, "offset": offset, "size": size}})
        try:
            group = self.device.create_bind_group(label=kernel.label, layout=pipeline.layout.group, entries=entries)
        except wgpu.GPUError as error:
            if is_trouble(error):
                raise
            raise BufferUsageError(
                f"kernel {kernel.label!r} cannot be bound to its buffers "
                f"({', '.join(b.buffer for b in kernel.bindings)}): {error}"
            ) from error
        return RawDispatch(kernel.label, pipeline.compute, group, kernel.workgroups)

    def take_scratch(self, label: str, size_bytes: int) -> Lease:
        """Return memory for a plan's temporary data, which holds zeros."""
        self._note(size_bytes)
        return self.memory.take_zeroed(size_bytes, label)

    def _note(self, size_bytes: int) -> None:
        observer = self._observer()
        if observer is not None:
            observer.allocated(size_bytes)

    def make_buffer(self, label: str, spec: BufferSpec) -> wgpu.GPUBuffer:
        """Make a buffer for a plan's parameters or constants."""
        self._note(spec.size_bytes)
        assert spec.words is not None, "parameters and constants have contents"
        return self.device.create_buffer_with_data(
            label=label, data=np.array(spec.words, dtype=np.uint32), usage=_OWN_USAGE[spec.role]
        )
