"""All that can be measured, each as a `Subject`: its arguments, its outputs, and how it is encoded or called.

It is what a `Benchmark` runs: a call of a primitive, calls one after the other, what a function records, and what a
function submits by itself. `measure`, `compare_kernels`, files of benchmarks and the fixture ``gpu_benchmark`` take
all of these.
"""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, TypeAlias, cast

import numpy as np
import wgpu

from ... import Array, BoundCall, ChunkedArray, Primitive, TimingSession, asarray, synchronize
from ... import Sequence as CapturedSequence
from ...errors import ArgumentError, DatatypeError
from ...internals import BoundPlan, context_of, overlapping, parts, stamped, submit
from ...settings import ShaderChecks
from ..cases.benchmarked import Benchmark, Run
from ..cases.mode import MODES, Mode
from .returned import UsedDevices, spans_of, timings_of

#: Records commands on an encoder.
Recording: TypeAlias = Callable[[wgpu.GPUCommandEncoder], None]


class Runnable(Protocol):
    """Commands that can be encoded any number of times."""

    @property
    def title(self) -> str:
        """What messages call it."""
        ...

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels of its spans."""
        ...

    def encode(self, encoder: wgpu.GPUCommandEncoder, *, trials: int = 1, timing: TimingSession | None = None) -> None:
        """Record it, each dispatch `trials` times; with `timing`, with timestamps around each of `labels`."""
        ...


@dataclass(frozen=True)
class Subject:
    """Something with its arguments, ready to be measured.

    Attributes
    ----------
    device : wgpu.GPUDevice
    name : str
    runnable : Runnable or Submitted
    arrays : mapping from str to Array or ChunkedArray
        All arguments that are known by name.
    outputs : mapping from str to Array or ChunkedArray
    unread : tuple of str
        Outputs that were made for it, whose content means nothing before it runs.
    in_place : tuple of str
        Arguments that it reads first, and changes then: a repetition would find other items.
    knows_outputs : bool
        Whether `outputs` is what it writes, and not all that it may write.
    n : int
    parameters, work : mapping
        As of a `Measurement`.
    shaders_sha256 : tuple of str
    shader_checks : tuple of str or None
        The run-time checks of what each label stands for.
    """

    device: wgpu.GPUDevice
    name: str
    runnable: Runnable | Submitted
    arrays: Mapping[str, Any]
    outputs: Mapping[str, Any]
    unread: tuple[str, ...] = ()
    in_place: tuple[str, ...] = ()
    knows_outputs: bool = True
    n: int = 0
    parameters: Mapping[str, Any] = field(default_factory=dict[str, Any])
    work: Mapping[str, int] = field(default_factory=dict[str, int])
    shaders_sha256: tuple[str, ...] = ()
    shader_checks: tuple[ShaderChecks | None, ...] = ()

    @property
    def plans(self) -> list[tuple[BoundPlan, int]] | None:
        """The plans that run, each with how often; None of a function."""
        return self.runnable.plans if isinstance(self.runnable, _Calls) else None

    def results(self) -> Any:
        """Return the outputs by name as they are now; of a function that submits and names none, what it returned."""
        if isinstance(self.runnable, Submitted) and not self.outputs:
            return self.runnable.returned
        return dict(self.outputs)


def benchmark_of(
    caller: str, subject: object, inputs: Mapping[str, Any], check: object = True, **options: Any
) -> Benchmark:
    """Return a benchmark that runs a subject; of a `Benchmark` itself, which has its inputs.

    Raises
    ------
    ArgumentError, DatatypeError
        If it is nothing that can be measured, a `Benchmark` is given inputs, or `check` does not fit.
    """
    if not isinstance(check, bool) and not callable(check):
        raise ArgumentError(
            f"{caller}: check= is {type(check).__name__}, but must be True, False or a function of the outputs; give "
            f"the right outputs as reference="
        )
    if options.get("reference") is not None and callable(check):
        raise ArgumentError(f"{caller}: reference= and a function as check= exclude each other; give one")
    if isinstance(subject, Benchmark):
        told = [*inputs, *(name for name, value in options.items() if value is not None)]
        if told:
            raise ArgumentError(f"{caller}: {told[0]}= is part of the gw.Benchmark that it is given; put it there")
        return subject
    has_kind = isinstance(subject, (Mapping, Sequence, Callable, *_OF_LIBRARY))
    if not has_kind or isinstance(subject, (str, Array, ChunkedArray)):
        raise DatatypeError(
            f"{caller} takes a gw.Kernel or another primitive with its arguments, several of them, a gw.Sequence, a "
            f"function, or a gw.Benchmark, not {type(subject).__name__}"
        )
    return Benchmark(cast(Run, subject), inputs, **options)


#: What has a device of its own.
_OF_LIBRARY = (Primitive, CapturedSequence)


def device_of(benchmark: Benchmark, given: wgpu.GPUDevice | None = None) -> wgpu.GPUDevice | None:
    """Return the device that something runs on; None of a function that submits, if it is not given.

    Raises
    ------
    ArgumentError
        If it is a function that records, and nobody says where.
    """
    run: Any = benchmark.run
    if given is not None:
        return given
    if not isinstance(run, _OF_LIBRARY) and not callable(run):
        run = next(iter(run.values() if isinstance(run, Mapping) else run), None)
    if isinstance(run, _OF_LIBRARY):
        return run.device
    for value in benchmark.inputs.values():
        if isinstance(value, (Array, ChunkedArray, wgpu.GPUBuffer)):
            return (Array(value, "u32") if isinstance(value, wgpu.GPUBuffer) else value).device
    if not callable(run) or _submits(run, benchmark.inputs):
        return None
    raise ArgumentError(f"{_name(benchmark)} records on an encoder, but of which device? Give device=")


def choose_mode(benchmark: Benchmark, mode: str | None, usual: str) -> Mode:
    """Return the mode to measure a benchmark in: if nobody names one, `usual`; what submits has latency only.

    Raises
    ------
    ArgumentError
        If there is no such mode, or it is not for a function that submits.
    """
    asked, run = mode or usual, cast(Any, benchmark.run)
    if asked not in MODES:
        raise ArgumentError(f"mode {asked!r} is unknown; known are {', '.join(MODES)}")
    if not _is_function(run):
        return Mode(asked)
    if not _submits(run, benchmark.inputs):
        if asked != Mode.BATCH.value or not _takes_timing(run, benchmark.inputs):
            return Mode(asked)
        if mode is None:
            return Mode.HOT
        raise ArgumentError(
            "mode 'batch' is not for a function that takes timing=, whose passes are timed trial by trial: use mode "
            "'hot', or leave the parameter out, for the time of the whole"
        )
    if mode not in (None, Mode.LATENCY.value):
        raise ArgumentError(
            f"mode {str(mode)!r} is not for a function that submits by itself, which is timed call by call: use mode "
            f"'latency', or let it record on an encoder"
        )
    return Mode.LATENCY


def _is_function(run: Any) -> bool:
    return callable(run) and not isinstance(run, (*_OF_LIBRARY, Mapping, Sequence))


def names_of(run: Any) -> set[str] | None:
    """Return the names of the arguments that something has; None if it takes any."""
    if isinstance(run, Primitive):
        return {*run.signature.arguments, *run.signature.values}
    if isinstance(run, (CapturedSequence, Benchmark)):
        return set()
    if isinstance(run, (Mapping, Sequence)):
        return {name for one in _listed(run) for name in names_of(one) or ()}
    parameters = _parameters(cast(Callable[..., Any], run)) if callable(run) else dict[str, inspect.Parameter]()
    return None if any(one.kind is one.VAR_KEYWORD for one in parameters.values()) else set(parameters)


def _listed(run: Any) -> list[Any]:
    return list(cast(Mapping[str, Any], run).values() if isinstance(run, Mapping) else run)


def _parameters(run: Callable[..., Any]) -> Mapping[str, inspect.Parameter]:
    try:
        return inspect.signature(run).parameters
    except (TypeError, ValueError):  # some builtins
        return {}


def _submits(run: Callable[..., Any], inputs: Mapping[str, Any]) -> bool:
    """Whether a function submits by itself: it can be called with its inputs alone, without an encoder."""
    parameters = _parameters(run)
    signature = inspect.Signature(list(parameters.values()), __validate_parameters__=False)
    for encoder in ((), (None,)):
        try:
            signature.bind(*encoder, **inputs)
        except TypeError:
            continue
        return not encoder
    names = ", ".join(inputs)
    raise ArgumentError(
        f"{_function_name(run)}({', '.join(parameters)}) can be called neither with an encoder and its inputs, "
        f"({', '.join(('encoder', *inputs))}), to record, nor with ({names}), to submit by itself; give it these "
        f"parameters"
    )


def _takes_timing(run: Callable[..., Any], inputs: Mapping[str, Any]) -> bool:
    """Whether a function that records takes a `TimingSession` for its passes."""
    return "timing" in _parameters(run) and "timing" not in inputs


def _function_name(run: Any) -> str:
    return str(getattr(run, "__name__", type(run).__name__)).replace("<lambda>", "lambda")


def _name(benchmark: Benchmark) -> str:
    """Return what something is called that nobody gave a name."""
    run: Any = benchmark.run
    if isinstance(run, Mapping):
        return " + ".join(map(str, cast(Mapping[Any, Any], run)))
    if isinstance(run, _OF_LIBRARY):
        return run.name
    if isinstance(run, Sequence):
        return " + ".join(str(getattr(one, "name", one)) for one in _listed(run))
    return _function_name(run)


def upload(given: Mapping[str, Any], names: Any, device: wgpu.GPUDevice) -> dict[str, Any]:
    """Return what a caller gave, with numpy arrays among `names` uploaded; others are values of uniforms."""
    return {
        name: asarray(value, device) if name in names and isinstance(value, np.ndarray) else value
        for name, value in given.items()
    }


def subject_of(device: wgpu.GPUDevice | None, name: str, benchmark: Benchmark) -> Subject:
    """Return what a benchmark runs as a subject; compiles it, and makes the outputs that are missing.

    A function that submits is called once, which tells its device if that is not given. Without a name it has its own.

    Raises
    ------
    ArgumentError
        If it is nothing that can be measured, is of another device, or an argument does not fit.
    """
    run, name = benchmark.run, name or _name(benchmark)
    if _is_function(run) and _submits(cast(Callable[..., Any], run), benchmark.inputs):
        found = _of_submitted(device, name, cast(Callable[..., Any], run), benchmark)
    elif device is None:
        raise ArgumentError("run holds nothing to measure; give it gw.Kernels or other primitives")
    elif isinstance(run, Primitive):
        found = _of_primitive(device, name, run, benchmark.inputs)
    elif isinstance(run, CapturedSequence):
        _check_device(device, name, run.device)
        arrays = _arrays(benchmark, device)
        written = {key: array for key, array in _only_arrays(arrays).items() if _uses(run.calls, array)[1]}
        found = _of_calls(device, name, run.calls, arrays, _named_outputs(benchmark, arrays) or written, run.labels)
        if isinstance(benchmark.outputs, Mapping):
            both = [key for key, array in benchmark.outputs.items() if benchmark.inputs.get(key) is array]
            found = replace(found, in_place=tuple(dict.fromkeys((*found.in_place, *both))))
    elif isinstance(run, (Mapping, Sequence)):
        found = _of_several(device, name, run, benchmark)
    elif callable(run):
        arrays = _arrays(benchmark, device)
        named = _named_outputs(benchmark, arrays)
        outputs = named or _only_arrays(arrays)
        # Of a reference without a name, there can be one output only.
        is_known = bool(named) or (len(outputs) == 1 and benchmark.reference is not None)
        recorded = _Recorded(device, name, run, arrays, takes_timing=_takes_timing(run, benchmark.inputs))
        found = Subject(device, name, recorded, {**arrays, **outputs}, outputs, knows_outputs=is_known)
    else:
        raise ArgumentError(
            f"{name}: run is {type(run).__name__}, but must be a gw.Kernel or another primitive, several of them, a "
            f"gw.Sequence, or a function"
        )
    if benchmark.outputs is not None and isinstance(run, (Primitive, Mapping, Sequence)):
        found = replace(found, outputs=_named_outputs(benchmark, found.arrays))
    return found if benchmark.work is None else replace(found, work=benchmark.work.totals())


def _of_primitive(device: wgpu.GPUDevice, name: str, primitive: Primitive, inputs: Mapping[str, Any]) -> Subject:
    _check_device(device, name, primitive.device)
    call = primitive.bind(**upload(inputs, primitive.signature.arguments, device))
    plan = call.plan
    computes = context_of(device).log is None
    counts = {part.count: int(call.arrays[part.count].item()) for part in plan.work.counted if computes}
    found = _of_calls(device, plan.primitive, [(call, 1)], call.arrays, call.outputs, call.bound_plan.labels)
    return replace(
        found, n=plan.work.items, parameters=dict(plan.parameters), work=plan.work.with_counts(counts).totals(),
        unread=tuple(key for key in call.outputs if key not in inputs),
    )  # fmt: skip


def _of_submitted(device: wgpu.GPUDevice | None, name: str, call: Callable[..., Any], benchmark: Benchmark) -> Subject:
    if benchmark.restore:
        raise ArgumentError(
            f"{name}: restore= is not for a function that submits by itself; let it put its arguments back, or record "
            f"on an encoder"
        )
    known = device_of(benchmark, device)
    arrays = benchmark.inputs if known is None else _arrays(benchmark, known)
    submitted = Submitted(name, (lambda: call(**arrays)) if arrays else call, known)
    return Subject(submitted.device, name, submitted, arrays, _named_outputs(benchmark, arrays))


def _of_several(device: wgpu.GPUDevice, name: str, run: Any, benchmark: Benchmark) -> Subject:
    """Bind kernels one after the other, each with the arguments that it has."""
    listed = list(cast(Mapping[str, Any], run).items()) if isinstance(run, Mapping) else [(None, one) for one in run]
    if not listed or not all(isinstance(one, Primitive) for _, one in listed):
        raise ArgumentError(f"{name}: run holds {run!r:.80}, but must hold gw.Kernels or other primitives")
    primitives = [cast(Primitive, one) for _, one in listed]
    known = {key for one in primitives for key in (*one.signature.arguments, *one.signature.values)}
    unknown = sorted(set(benchmark.inputs) - known)
    if unknown:
        raise ArgumentError(f"{name}: no kernel has an argument {unknown[0]!r}; they have {', '.join(sorted(known))}")
    arrays = upload(benchmark.inputs, {key for one in primitives for key in one.signature.arguments}, device)
    outputs: dict[str, Any] = {}
    calls: list[tuple[BoundCall[Any], int]] = []
    for one in primitives:
        _check_device(device, name, one.device)
        own = {*one.signature.arguments, *one.signature.values}
        call = one.bind(**{key: value for key, value in arrays.items() if key in own})
        arrays |= call.arrays
        outputs |= call.outputs
        calls.append((call, 1))
    # A kernel is called as its mapping does.
    labels: list[str] = []
    for (label, _), (call, _) in zip(listed, calls, strict=True):
        labels += call.bound_plan.labels_within(str(label or ""))
    found = _of_calls(device, name, calls, arrays, outputs, labels)
    return replace(found, unread=tuple(key for key in outputs if key not in benchmark.inputs))


def _of_calls(
    device: wgpu.GPUDevice,
    name: str,
    calls: Sequence[tuple[BoundCall[Any], int]],
    arrays: Mapping[str, Any],
    outputs: Mapping[str, Any],
    labels: Sequence[str],
) -> Subject:
    shaders = {kernel.shader for call, _ in calls for kernel in call.plan.kernels}
    known = {**arrays, **outputs}
    return Subject(
        device, name, _Calls(name, calls, labels), known, outputs,
        in_place=_in_place(calls, known), shaders_sha256=tuple(sorted(shaders)),
        shader_checks=tuple(level for call, _ in calls for level in call.plan.shader_checks),
    )  # fmt: skip


def _in_place(calls: Sequence[tuple[BoundCall[Any], int]], arrays: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the arguments that calls read first, and write then; of those that are the same items the first."""
    found: dict[object, str] = {}
    for name, array in _only_arrays(arrays).items():
        if all(_uses(calls, array)):
            found.setdefault(tuple(part.place for part in parts(array)), name)
    return tuple(found.values())


def _uses(calls: Sequence[tuple[BoundCall[Any], int]], array: Any) -> tuple[bool, bool]:
    """Return whether calls read an Array before one writes it, and whether any writes it.

    Whether a kernel of a user reads what it writes is not known: it counts as writing alone.
    """
    mine, reads_first = parts(array), False
    for call, _ in calls:
        reads, writes = (
            any(overlapping(mine, parts(own)) for key, own in call.arrays.items() if (key in call.outputs) is of)
            for of in (False, True)
        )
        reads_first |= reads
        if writes:
            return reads_first, True
    return reads_first, False


def _check_device(device: wgpu.GPUDevice, name: str, of: wgpu.GPUDevice) -> None:
    if of is not device:
        raise ArgumentError(
            f"{name}: what it runs is on another device than the one it was given; make it on the parameter device"
        )


def _arrays(benchmark: Benchmark, device: wgpu.GPUDevice) -> dict[str, Any]:
    return upload(benchmark.inputs, benchmark.inputs.keys(), device)


def _only_arrays(arrays: Mapping[str, Any]) -> dict[str, Any]:
    """Return those that may be written, where nobody says which are."""
    return {name: array for name, array in arrays.items() if isinstance(array, (Array, ChunkedArray))}


def _named_outputs(benchmark: Benchmark, arrays: Mapping[str, Any]) -> dict[str, Any]:
    """Return the outputs that a benchmark names."""
    named = benchmark.outputs
    if named is None:
        named = tuple(benchmark.reference) if isinstance(benchmark.reference, Mapping) else ()
    if isinstance(named, Mapping):
        return dict(named)
    names = (named,) if isinstance(named, str) else tuple(named)
    where = "reference" if benchmark.outputs is None else "outputs"
    for name in names:
        if name not in arrays:
            raise ArgumentError(
                f"{where} names {name!r}, which is none of {', '.join(arrays) or 'its inputs'}; in a gw.Benchmark give "
                f"outputs= as a mapping of names to the Arrays that are written"
            )
    return {name: arrays[name] for name in names}


# ---- what is encoded


def prepare_trials(
    device: wgpu.GPUDevice,
    runnable: Runnable | Submitted,
    trials: int = 1,
    session: TimingSession | None = None,
    before_trial: Sequence[Recording] = (),
) -> Callable[[], None]:
    """Encode something, and return what submits it.

    Parameters
    ----------
    device : wgpu.GPUDevice
    runnable : Runnable or Submitted
        What submits by itself is only called, and takes no session.
    trials : int
        How often.
    session : TimingSession, optional
    before_trial : sequence of callables
        Each records untimed work on a given encoder.
    """
    if isinstance(runnable, Submitted):
        return lambda: [runnable() for _ in range(trials)].clear()
    encoder = device.create_command_encoder()
    repeats, at_once = (trials, 1) if before_trial else (1, trials)
    for _ in range(repeats):
        for record in before_trial:
            record(encoder)
        runnable.encode(encoder, trials=at_once, timing=session)
    commands = [encoder.finish()]

    def send() -> None:
        submit(device, commands, runnable.title)
        if session is not None:
            session.submitted()

    return send


class _Calls:
    """Calls one after the other; `Runnable`."""

    def __init__(self, name: str, calls: Sequence[tuple[BoundCall[Any], int]], labels: Sequence[str]):
        self.plans: list[tuple[BoundPlan, int]] = [(call.bound_plan, trials) for call, trials in calls]
        self._kept = [call for call, _ in calls]  # with their arrays
        self.title: str = name
        self.labels: tuple[str, ...] = tuple(labels)

    def encode(self, encoder: wgpu.GPUCommandEncoder, *, trials: int = 1, timing: TimingSession | None = None) -> None:
        for plan, own in self.plans:
            plan.encode(encoder, trials=trials * own, timing=timing)


class Submitted:
    """What a function submits by itself: it cannot be encoded, so it is timed call by call.

    Parameters
    ----------
    name : str
    call : callable
        Without arguments. It is called at once, and tells so which devices it uses.
    device : wgpu.GPUDevice or None
        One that it uses for certain.

    Attributes
    ----------
    title : str
    returned : object
        What the last call returned.
    first_ns : float
        The time of the first call.
    device : wgpu.GPUDevice

    Raises
    ------
    ArgumentError
        If it used no device that is known.
    """

    def __init__(self, name: str, call: Callable[[], Any], device: wgpu.GPUDevice | None):
        self._call, self._devices = call, UsedDevices(device)
        self.title: str = name
        begin = time.perf_counter_ns()
        self.returned: Any = call()
        self.device: wgpu.GPUDevice = self._devices.first(self.returned)
        self.wait()
        self.first_ns = float(time.perf_counter_ns() - begin)
        spans = spans_of(timings_of(self.returned))
        #: Those of the spans that a call returns, if there are several.
        self.labels: tuple[str, ...] = tuple(span.label for span in spans) if len(spans) > 1 else (name,)

    def __call__(self) -> None:
        """Call it."""
        self.returned = self._call()

    def used(self) -> list[wgpu.GPUDevice]:
        """Return the devices that it uses."""
        return self._devices.used()

    def wait(self) -> None:
        """Wait for the end of its work."""
        for device in self.used():
            synchronize(device)

    def stamps(self) -> Callable[[], tuple[tuple[int, int], ...] | None]:
        """Return what reads begin and end of each of `labels` in the last call; None if it returned none."""
        timings = timings_of(self.returned)

        def read() -> tuple[tuple[int, int], ...] | None:
            spans = spans_of(timings)
            found = tuple((one.begin_ticks, one.end_ticks) for one in spans)
            if found and len(found) != len(self.labels):
                raise ArgumentError(_other_spans(self.title, len(found), len(self.labels)))
            return found or None

        return read


def _other_spans(name: str, found: int, first: int) -> str:
    return f"{name} timed {found} spans, but {first} at its first call; time the same passes each time"


class _Recorded:
    """What a function of a user records; `Runnable`.

    Its passes are its own, so there is one span: from a timestamp before the first of its commands to one after the
    last. A function that takes ``timing`` has the spans that it asks for, which a first recording tells.
    """

    def __init__(
        self, device: wgpu.GPUDevice, name: str, record: Callable[..., Any], arrays: Mapping[str, Any], *,
        takes_timing: bool,
    ):  # fmt: skip
        self._record, self._arrays = record, arrays
        self.title: str = name
        self.labels: tuple[str, ...] = (name,)
        self._times_passes = False
        if takes_timing and context_of(device).has_timestamps:
            session = context_of(device).timing_helper.session()
            record(device.create_command_encoder(), **arrays, timing=session)
            self._times_passes = bool(session.labels)
            self.labels = session.labels or self.labels
            session.abandon()

    def encode(self, encoder: wgpu.GPUCommandEncoder, *, trials: int = 1, timing: TimingSession | None = None) -> None:
        if self._times_passes and timing is not None:
            before = timing.span_count
            for _ in range(trials):
                self._record(encoder, **self._arrays, timing=timing)
            if timing.span_count - before != trials * len(self.labels):
                raise ArgumentError(_other_spans(self.title, timing.span_count - before, len(self.labels)))
            return
        with stamped(encoder, timing, self.labels[0]):
            for _ in range(trials):
                self._record(encoder, **self._arrays)
