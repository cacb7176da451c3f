"""`measure_energy` and `compare_energy`: joules per call, by the sensor of the GPU's driver.

Sensors step: NVIDIA's counters move about every 100 ms, and see a part of the time only (Yang, Adamek, Armour,
"Part-time power measurements: nvidia-smi's lack of attention", SC24, arXiv 2312.02741). So work is repeated in windows
of seconds, each from one step of the sensor to another while the work goes on; kernels that are compared take turns;
and where a window holds too few steps there is no number.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import wgpu

from ... import BoundCall, Primitive, batch
from ... import Sequence as Captured
from ...display.quantities import format_time
from ...errors import ArgumentError, DatatypeError
from ...internals import EnergySensor, clock_held, gpu_of, integer, observe, submit, wait_idle
from ..stats.energy import LEAST_WINDOWS, EnergyResult, EnergyVerdict, EnergyWindow, energy_of, judged
from .returned import UsedDevices
from .subjects import Runnable, Subject, Submitted, uploaded

__all__ = [
    "EnergyComparison",
    "EnergyResult",
    "EnergyWindow",
    "Meter",
    "compare_energy",
    "in_turns",
    "measure_energy",
    "subject_energy",
    "window_of",
]

#: Of the sensor, in a window: with fewer, its steps decide the number.
_LEAST_STEPS = 10
#: One submission takes about so long: short beside a window, long beside the CPU's part of it.
_CHUNK_S = 0.01
_MOST_CALLS = 1 << 14  # of a submission
#: The work goes on for so many steps more to find one.
_PATIENCE = 5
_WARM_S = 1.0

Work: TypeAlias = BoundCall[Any] | Captured | Primitive | Callable[[], Any]


@dataclass(frozen=True)
class EnergyComparison:
    """Energies that were measured in turns.

    Attributes
    ----------
    baseline : str
    results : dict from str to EnergyResult
    ratios : dict from str to (float, float, float), or None
        To the baseline, with the 95 % interval.
    verdicts : dict from str to str, or None
        ``"less"`` or ``"more"`` if the interval lies beyond the threshold, ``"same"`` if within, else ``"ambiguous"``.
    """

    baseline: str
    results: Mapping[str, EnergyResult]
    ratios: Mapping[str, tuple[float, float, float] | None]
    verdicts: Mapping[str, EnergyVerdict | None]

    def __repr__(self) -> str:
        lines: list[str] = []
        for name, result in self.results.items():
            ratio, verdict = self.ratios.get(name), self.verdicts.get(name)
            said = "the baseline" if name == self.baseline else "not judged"
            if ratio is not None:
                change, low, high = (f"{100 * (one - 1):+.1f} %" for one in ratio)
                said = f"{verdict}: {change} ({low} to {high})"
            lines.append(f"{result!r}  {said}")
        return "\n".join(lines)


def measure_energy(
    call: Work,
    /,
    *,
    window_s: float = 2.0,
    windows: int = 5,
    calls: int | None = None,
    device: wgpu.GPUDevice | None = None,
    **arrays: Any,
) -> EnergyResult:
    """Measure the joules of a call, by the energy counter or the power sensor of the GPU's driver.

    The energy is that of the whole board, its idle power included: nothing else should use the GPU.

    Parameters
    ----------
    call : BoundCall, Sequence, Primitive or callable
        A primitive gets its arguments by name. A callable submits work.
    window_s : float, default 2.0
        Sensors step about every 100 ms.
    windows : int, default 5
        At least 3 give an interval.
    calls : int, optional
        Just so many in each window, without warm-up.
    device : wgpu.GPUDevice, optional
        As for `benchmark`.
    **arrays

    Returns
    -------
    EnergyResult

    Raises
    ------
    ArgumentError
        If an option does not fit, or the callable used no device that is known.
    DatatypeError
        If it is nothing that can be called.

    Examples
    --------
    >>> import numpy as np, gridwise_py as gw
    >>> device = gw.request_device("cpu")
    >>> x = gw.asarray(np.ones(1000, dtype=np.uint32), device)
    >>> result = gw.measure_energy(gw.Scan(device, "u32"), input=x)
    >>> result.joules is None, "no sensor" in result.reason
    (True, True)
    """
    integer("gw.measure_energy(): windows", windows, 1)
    _check_options("gw.measure_energy()", window_s, calls)
    _check_arrays("gw.measure_energy()", [call], arrays)
    prepared = _prepared("gw.measure_energy()", "the call", call, device, arrays)
    (result,) = _measured({_name(call): prepared}, window_s, windows, calls)
    return result


def compare_energy(
    calls: Mapping[str, Work],
    /,
    *,
    baseline: str | None = None,
    window_s: float = 2.0,
    rounds: int = 6,
    threshold: float = 0.02,
    device: wgpu.GPUDevice | None = None,
    **arrays: Any,
) -> EnergyComparison:
    """Measure the joules of several calls in turns, and judge which take less than the first.

    In each round every call has one window. A verdict is on the ratios within the rounds.

    Parameters
    ----------
    calls : mapping
        At least two, by name: what `measure_energy` takes.
    baseline : str, optional
        By default the first.
    window_s : float, default 2.0
    rounds : int, default 6
        At least 3.
    threshold : float, default 0.02
        Smaller differences are same.
    device : wgpu.GPUDevice, optional
        As for `measure_energy`.
    **arrays
        Each primitive gets those that it has.

    Returns
    -------
    EnergyComparison

    Raises
    ------
    ArgumentError, DatatypeError
        As for `measure_energy`; and if there is nothing to compare.
    """
    here = "gw.compare_energy()"
    if not isinstance(calls, Mapping) or len(calls) < 2:
        raise ArgumentError(f"{here} takes at least two calls by name: {{'old': old, 'new': new}}")
    first = next(iter(calls)) if baseline is None else baseline
    if first not in calls:
        raise ArgumentError(f"{here}: baseline={first!r} is none of {', '.join(calls)}")
    integer(f"{here}: rounds", rounds, LEAST_WINDOWS)
    if not 0 < threshold < 1:
        raise ArgumentError(f"{here}: threshold is {threshold!r}; it is a share between 0 and 1: 0.02 for 2 %")
    _check_options(here, window_s, None)
    _check_arrays(here, calls.values(), arrays)
    prepared = {name: _prepared(here, name, call, device, arrays) for name, call in calls.items()}
    if len({id(one.device) for one in prepared.values()}) > 1:
        raise ArgumentError(f"{here}: the calls use different devices; make all of them on one")
    results = {result.name: result for result in _measured(prepared, window_s, rounds, None)}
    found = {name: judged(results[first], results[name], threshold) for name in calls if name != first}
    return EnergyComparison(
        first,
        results,
        {name: None if one is None else (one.ratio, one.low, one.high) for name, one in found.items()},
        {name: None if one is None else one.verdict for name, one in found.items()},
    )


def subject_energy(subject: Subject, windows: int, window_s: float) -> EnergyResult:
    """Return the energy of a subject whose trials run one after the other, as those of mode batch do."""
    prepared = _of_runnable(subject.device, subject.runnable)
    (found,) = _measured({"": prepared}, window_s, windows, None)
    return found


# ---- what is run


@dataclass(frozen=True)
class _Prepared:
    """Work that can be submitted any number of times."""

    device: wgpu.GPUDevice
    submit: Callable[[int], object]  # so many calls
    wait: Callable[[], object]


def _check_options(here: str, window_s: float, calls: int | None) -> None:
    if isinstance(window_s, bool) or not isinstance(window_s, (int, float)) or not 0 < window_s <= 3600:
        raise ArgumentError(f"{here}: window_s is {window_s!r}; it is a time in seconds, above 0 and at most 3600")
    if calls is not None:
        integer(f"{here}: calls", calls, 1)


def _names(primitive: Primitive) -> set[str]:
    """Return the names of a primitive's arguments."""
    return {*primitive.signature.arguments, *primitive.signature.values}


def _check_arrays(here: str, calls: Iterable[Work], arrays: Mapping[str, Any]) -> None:
    """Refuse what no call would get."""
    known = {name for call in calls if isinstance(call, Primitive) for name in _names(call)}
    unknown = next((name for name in arrays if name not in known), None)
    if unknown is not None:
        raise ArgumentError(
            f"{here}: {unknown}= is an argument of nothing here: primitives that are not bound yet have "
            f"{', '.join(sorted(known)) or 'none'}"
        )


def _name(call: Work) -> str:
    name = getattr(call, "name", None) or getattr(call, "__name__", None)
    return name if isinstance(name, str) else type(call).__name__


def _prepared(here: str, name: str, call: Work, device: wgpu.GPUDevice | None, arrays: Mapping[str, Any]) -> _Prepared:
    if isinstance(call, Primitive):
        own = {key: value for key, value in arrays.items() if key in _names(call)}
        call = call.bind(**uploaded(own, call.signature.arguments, call.device))
    if isinstance(call, BoundCall):
        bound: BoundCall[Any] = call
        if not bound.in_place:
            # A submission of many dispatches: the GPU is at work, and does not wait for Python.
            return _Prepared(bound.device, lambda n: bound.execute(trials=n), lambda: wait_idle(bound.device))
        return _repeated(bound.device, bound.execute)
    if isinstance(call, Captured):
        return _repeated(call.device, call.execute)
    if not callable(call):
        raise DatatypeError(
            f"{here}: {name} is {type(call).__name__}, but must be a primitive or kernel with its arguments, a bound "
            f"call, a sequence, or a callable that submits GPU work"
        )
    devices = UsedDevices(device)
    of = device if device is not None else devices.first(call())
    return _repeated(of, call, lambda: [wait_idle(used) for used in devices.used()])


def _of_runnable(device: wgpu.GPUDevice, runnable: Runnable | Submitted) -> _Prepared:
    if isinstance(runnable, Submitted):
        return _repeated(device, runnable, runnable.wait)

    def submitted(count: int) -> None:
        encoder = device.create_command_encoder()
        runnable.encode(encoder, trials=count)
        submit(device, [encoder.finish()], runnable.title)

    return _Prepared(device, submitted, lambda: wait_idle(device))


def _repeated(device: wgpu.GPUDevice, call: Callable[[], Any], wait: Callable[[], object] | None = None) -> _Prepared:
    def submit(count: int) -> None:
        with batch(device):
            for _ in range(count):
                call()

    return _Prepared(device, submit, wait or (lambda: wait_idle(device)))


# ---- the windows


@dataclass
class Meter:
    """Reads joules off a sensor, and counts its steps.

    Attributes
    ----------
    sensor : EnergySensor
    clock : callable
        Returns seconds.
    moved : int
        How often the sensor stepped since the last `start`, as far as readings show it: a difference between two that
        are several steps apart counts as several. Of power, which has no steps that a window should begin with: how
        often it was read.
    failed : bool
        Whether the sensor once did not answer, or began anew.
    at_s : float
        By the clock, right after the last reading.
    """

    sensor: EnergySensor
    clock: Callable[[], float] = time.perf_counter
    moved: int = 0
    failed: bool = False
    _last: float | None = field(default=None, repr=False)
    at_s: float = field(default=0.0, repr=False)
    _joules: float = field(default=0.0, repr=False)
    _started: float = field(default=0.0, repr=False)

    @property
    def steps(self) -> int:
        """How often the sensor stepped since the last `start`."""
        # Of power by time: it may tell the same again.
        return self.moved if self.sensor.kind == "counter" else self._steps_in(self.at_s - self._started)

    def _steps_in(self, seconds: float) -> int:
        return int(seconds / self.sensor.step_s + 1e-6)

    def read(self) -> float:
        """Return the joules so far; of a sensor of power, what it told last is taken for the time since."""
        value, now, before_s = self.sensor.read(), self.clock(), self.at_s
        self.at_s = now
        if value is None:
            self.failed = True
            return self._joules
        if self._last is not None:
            if self.sensor.kind == "power" or value != self._last:
                self.moved += max(self._steps_in(now - before_s), 1)
            rise = value - self._last if self.sensor.kind == "counter" else self._last * (now - before_s)
            self.failed |= rise < 0
            self._joules += max(rise, 0.0)
        self._last = value
        return self._joules

    def start(self) -> float:
        """Begin anew; return the joules so far."""
        self.failed = False
        joules = self.read()  # if the sensor does not answer now, that counts
        self.moved, self._started = 0, self.at_s
        return joules


def window_of(
    meter: Meter, run: Callable[[], int], window_s: float, temperature: Callable[[], float | None]
) -> EnergyWindow | None:
    """Keep running from a step of the sensor to one at least `window_s` later; None if the sensor failed.

    If it steps no more, to the last step: what ran afterwards it has not counted.

    Parameters
    ----------
    meter : Meter
    run : callable
        Does a piece of the work to its end, and returns how many calls it was.
    window_s : float
    temperature : callable
    """
    patience_s = _PATIENCE * meter.sensor.step_s
    meter.start()
    begin_s = meter.clock()
    while not meter.moved and meter.clock() - begin_s < patience_s:
        run()
        meter.read()
    begin_j, begin_s, calls = meter.start(), meter.at_s, 0
    counted = 0.0, 0.0, 0, 0
    while True:
        moved = meter.moved
        calls += run()
        end_j, lasted_s = meter.read(), meter.at_s - begin_s
        has_stepped = meter.moved > moved
        if has_stepped or not moved:
            counted = end_j - begin_j, lasted_s, calls, meter.steps
        if lasted_s >= window_s and (has_stepped or lasted_s >= window_s + patience_s):
            break
    return None if meter.failed else EnergyWindow(*counted, temperature())


def _measured(prepared: Mapping[str, _Prepared], window_s: float, rounds: int, calls: int | None) -> list[EnergyResult]:
    device = next(iter(prepared.values())).device
    gpu = gpu_of(device)
    sensor = None if gpu is None else gpu.energy_sensor()
    if sensor is None:
        reason = _no_sensor(device, known=gpu is not None)
        return [EnergyResult(name=name, reason=reason) for name in prepared]
    with clock_held(device):
        runs = {name: _runner(one) if calls is None else _once(one, calls) for name, one in prepared.items()}
        once = calls is not None
        found = in_turns(runs, Meter(sensor), window_s, rounds, lambda: observe(device).get("temperature_c"), once=once)
    return list(found.values())


def _no_sensor(device: wgpu.GPUDevice, *, known: bool) -> str:
    adapter = device.adapter.info
    if adapter["adapter_type"] == "CPU":
        return f"no sensor: {adapter['device']} is no GPU"
    if known:
        return f"no sensor: the driver of {adapter['device']} tells neither energy nor power"
    return (
        f"no sensor: the driver of {adapter['device']} does not answer, or it is not certain which of several equal "
        f"GPUs it is; NVIDIA's needs the extra nvidia (pip install 'gridwise_py[nvidia]'), others Linux"
    )


def _runner(one: _Prepared, clock: Callable[[], float] = time.perf_counter) -> Callable[[], int]:
    """Return what runs a piece of work of about 10 ms, and returns how many calls it was."""
    count = 1
    while True:
        begin = clock()
        one.submit(count)
        one.wait()
        took_s = clock() - begin
        if took_s >= _CHUNK_S or count >= _MOST_CALLS:
            break
        count = min(_MOST_CALLS, max(2 * count, int(count * _CHUNK_S / max(took_s, 1e-6) / 2)))

    def run() -> int:
        one.submit(count)
        one.wait()
        return count

    return run


def _once(one: _Prepared, calls: int) -> Callable[[], int]:
    def run() -> int:
        one.submit(calls)
        one.wait()
        return calls

    return run


def in_turns(
    runs: Mapping[str, Callable[[], int]],
    meter: Meter,
    window_s: float,
    rounds: int,
    temperature: Callable[[], float | None],
    *,
    once: bool = False,
) -> dict[str, EnergyResult]:
    """Measure windows of several, in an order that is reversed from round to round."""
    windows: dict[str, list[EnergyWindow]] = {name: [] for name in runs}
    failed = False
    deadline = meter.clock() + _WARM_S
    while not once and meter.clock() < deadline:
        for run in runs.values():
            run()
    for number in range(rounds):
        for name in list(runs)[:: -1 if number % 2 else 1]:
            if once:
                found = _single(meter, runs[name], temperature)
            else:
                found = window_of(meter, runs[name], window_s, temperature)
            if found is None:
                failed = True
            else:
                windows[name].append(found)
    return {name: _result(name, taken, meter.sensor, failed=failed) for name, taken in windows.items()}


def _single(meter: Meter, run: Callable[[], int], temperature: Callable[[], float | None]) -> EnergyWindow | None:
    begin_j, begin_s = meter.start(), meter.at_s
    calls = run()
    end_j, end_s = meter.read(), meter.at_s
    return None if meter.failed else EnergyWindow(end_j - begin_j, end_s - begin_s, calls, meter.steps, temperature())


# ---- what is made of them


def _result(name: str, windows: Sequence[EnergyWindow], sensor: EnergySensor, *, failed: bool) -> EnergyResult:
    kept = tuple(windows)

    def none(reason: str) -> EnergyResult:
        return EnergyResult(name=name, windows=kept, sensor=sensor.name, reason=reason)

    if failed or not kept:
        return none(f"{sensor.name} did not answer in every window, or began anew")
    fewest = min(kept, key=lambda window: window.steps)
    if fewest.steps < _LEAST_STEPS:
        return none(
            f"below the sensor's resolution: {sensor.name} stepped {fewest.steps} times in a window of "
            f"{format_time(fewest.duration_s * 1e9)}, and a number needs {_LEAST_STEPS} (its step is about "
            f"{format_time(sensor.step_s * 1e9)}); repeat the call in longer windows"
        )
    if min(window.energy_j for window in kept) <= 0:
        return none(f"{sensor.name} counted nothing in a window of {format_time(fewest.duration_s * 1e9)}")
    return replace(energy_of(kept, sensor.name), name=name)
