"""Joules per call, by the sensor of the GPU's driver.

Sensors step: NVIDIA's counters move about every 100 ms, and see a part of the time only (Yang, Adamek, Armour,
"Part-time power measurements: nvidia-smi's lack of attention", SC24, arXiv 2312.02741). So work is repeated in windows
of seconds, each from one step of the sensor to another while the work goes on; and where a window
holds too few steps there is no number.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

import wgpu

from ... import batch, synchronize
from ...display.quantities import format_time
from ...internals import EnergySensor, clock_held, gpu_of
from ..stats.energy import EnergyResult, EnergyWindow, energy_of
from .subjects import Runnable, Subject, Submitted, prepare_trials

__all__ = ["EnergyResult", "EnergyWindow", "Meter", "energy_in_windows", "subject_energy", "window_of"]

#: Of the sensor, in a window: with fewer, its steps decide the number.
_LEAST_STEPS = 10
#: One submission takes about so long: short beside a window, long beside the CPU's part of it.
_CHUNK_S = 0.01
_MOST_CALLS = 1 << 14  # of a submission
#: The work goes on for so many steps more to find one.
_PATIENCE = 5
_WARM_S = 1.0


def subject_energy(subject: Subject, windows: int, window_s: float) -> EnergyResult:
    """Return the energy of a subject whose trials run one after the other, as those of mode batch do."""
    device = subject.device
    gpu = gpu_of(device)
    sensor = None if gpu is None else gpu.energy_sensor()
    if gpu is None or sensor is None:
        return EnergyResult(reason=_no_sensor(device, known=gpu is not None))
    with clock_held(device):
        run = _runner(_submitting(device, subject.runnable))
        return energy_in_windows(run, Meter(sensor), window_s, windows, lambda: gpu.look().get("temperature_c"))


def _submitting(device: wgpu.GPUDevice, runnable: Runnable | Submitted) -> Callable[[int], None]:
    """Return what submits so many calls, and waits for their end."""

    def submitted(count: int) -> None:
        if isinstance(runnable, Submitted):
            with batch(device):
                for _ in range(count):
                    runnable()
            runnable.wait()
        else:
            prepare_trials(device, runnable, count)()
            synchronize(device)

    return submitted


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


def _runner(submitted: Callable[[int], None], clock: Callable[[], float] = time.perf_counter) -> Callable[[], int]:
    """Return what runs a piece of work of about 10 ms, and returns how many calls it was."""
    count = 1
    while True:
        begin = clock()
        submitted(count)
        took_s = clock() - begin
        if took_s >= _CHUNK_S or count >= _MOST_CALLS:
            break
        count = min(_MOST_CALLS, max(2 * count, int(count * _CHUNK_S / max(took_s, 1e-6) / 2)))

    def run() -> int:
        submitted(count)
        return count

    return run


def energy_in_windows(
    run: Callable[[], int], meter: Meter, window_s: float, windows: int, temperature: Callable[[], float | None]
) -> EnergyResult:
    """Return the energy of a call from so many windows, after a warm-up; other arguments are as of `window_of`."""
    deadline = meter.clock() + _WARM_S
    while meter.clock() < deadline:
        run()
    found = [window_of(meter, run, window_s, temperature) for _ in range(windows)]
    kept = tuple(window for window in found if window is not None)
    return _result(kept, meter.sensor, failed=len(kept) < windows)


# ---- what is made of them


def _result(kept: tuple[EnergyWindow, ...], sensor: EnergySensor, *, failed: bool) -> EnergyResult:
    def none(reason: str) -> EnergyResult:
        return EnergyResult(windows=kept, sensor=sensor.name, reason=reason)

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
    return energy_of(kept, sensor.name)
