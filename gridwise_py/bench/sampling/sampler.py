"""Takes raw samples: lays trials out in submissions, runs the canary around each block, reads ticks and walls."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np
import wgpu
from numpy.typing import NDArray

from ... import TimingSession, synchronize
from ...errors import ArgumentError
from ...internals import bracket, context_of, submit
from ..calibrate.canary import CanaryTime, canary_time, is_slower
from ..calibrate.kernels import CANARY
from ..cases.mode import Mode
from ..stats.statistics import is_stationary
from .protocol import SamplingProtocol
from .subjects import Recording, Runnable, Submitted, prepare_trials

_CHUNK_S = 0.004  # of warm-up work per submission: short gaps, and many samples
_MAX_CHUNK_TRIALS = 2048
_STATIONARY_WINDOW = 20  # the latest chunks, which are checked
_MAX_BLOCK_PAIRS = 4096  # of the pairs of queries of a device: a block is resolved at once
_BLOCK_S = 0.5  # a block of slow work is cut, so that the stopping rule is checked in time


@dataclass(frozen=True)
class WarmUp:
    """The result of a warm-up.

    Attributes
    ----------
    seconds : float
    trial_ns : float
        The time of a trial, at the end.
    stationary : bool
        Whether times were stationary at the end.
    clock_up : bool
        Whether the canary was then as fast as the fastest time known; true if none is known.
    """

    seconds: float
    trial_ns: float
    stationary: bool
    clock_up: bool = True


@dataclass(frozen=True)
class Block:
    """A block of raw samples.

    Attributes
    ----------
    ticks : numpy.ndarray or None
        Shape (samples, kernels, 2), uint64; None without timestamps.
    submissions : tuple of int
        For each sample the index of its submission in this block.
    walls_ns, submits_ns, encodes_ns : tuple of float
        Per submission; the last is empty where a function submits by itself.
    canaries : tuple of CanaryTime or None
        Before and after.
    previous_end_ticks : int or None
        The last timestamp of the canary before the block: a sample that begins earlier is stale.
    wall_step_ns : float
        The step of the CPU's clock: a wall may be longer than it was read by as much.
    """

    ticks: NDArray[np.uint64] | None
    submissions: tuple[int, ...]
    walls_ns: tuple[float, ...]
    submits_ns: tuple[float, ...]
    encodes_ns: tuple[float, ...]
    canaries: tuple[CanaryTime | None, CanaryTime | None]
    previous_end_ticks: int | None = None
    wall_step_ns: float = 0.0


def looks_stationary(chunks_ns: Sequence[float]) -> bool:
    """Whether the times of the latest chunks of a warm-up were stationary."""
    return len(chunks_ns) >= 3 and is_stationary(chunks_ns[-_STATIONARY_WINDOW:])


def previous_end(canary: NDArray[np.uint64]) -> int | None:
    """Return the last timestamp of a canary, shape (runs, 2); None if it is not valid."""
    begin, end = (int(stamp) for stamp in canary[-1])
    return end if 0 < begin < end else None


class Sampler:
    """Samples one subject in one mode.

    Parameters
    ----------
    device : wgpu.GPUDevice
    bound : Runnable or Submitted
        With at least one kernel.
    mode : Mode
    protocol : SamplingProtocol
    before_trial : sequence of callables
        Each records untimed work on a given encoder: restoring inputs, flushing caches.

    Raises
    ------
    ArgumentError
        If a block of one sample would need more timestamps than a device has.
    """

    def __init__(
        self,
        device: wgpu.GPUDevice,
        bound: Runnable | Submitted,
        mode: Mode,
        protocol: SamplingProtocol,
        before_trial: Sequence[Recording] = (),
    ):
        self.device = device
        self._bound = bound
        self.mode = mode
        self._protocol = protocol
        self._before_trial = tuple(before_trial)
        context = context_of(device)
        self._helper = context.timing_helper if context.has_timestamps else None
        self._canary = CANARY.bind(device)
        self._chunk = 1
        self.kernels: int = len(bound.labels)
        self.period_ns: float | None = None if self._helper is None else self._helper.tick_period_ns
        #: Trials in one submission of modes cold and hot, and dispatches in one pass of mode batch.
        self.submission_trials: int = 1
        self.batch_trials: int = 1
        #: Samples between two looks at the canary.
        self.block_samples: int = 1
        #: Samples of a block for which there are timestamps, the canary's left out.
        self._most_samples = max(1, _MAX_BLOCK_PAIRS // max(1, self.kernels))
        if self._helper is not None:
            most = self._helper.MAX_PAIRS
            free = most - 2 * protocol.canary_passes
            if free < self.kernels:
                raise ArgumentError(
                    f"a block of samples runs the canary {protocol.canary_passes:,} times before and after it "
                    f"(canary_passes) and the plan has {self.kernels} kernels, which is more than the {most:,} "
                    f"passes that can be timed at once; the largest canary_passes here is "
                    f"{max(0, most - self.kernels) // 2:,}"
                )
            self._most_samples = min(self._most_samples, max(1, free // max(1, self.kernels)))

    # ---- recording ----

    def _submit_chunk(self) -> None:
        """Submit some untimed trials and do not wait."""
        prepare_trials(self.device, self._bound, self._chunk, before_trial=self._before_trial)()

    def _wait(self) -> None:
        synchronize(self.device)
        if isinstance(self._bound, Submitted):
            self._bound.wait()

    def _canary_commands(self, session: TimingSession) -> wgpu.GPUCommandBuffer:
        encoder = self.device.create_command_encoder()
        for _ in range(self._protocol.canary_passes):
            self._canary.encode(encoder, timing=session)
        return encoder.finish()

    # ---- warming up ----

    def warm_up(self, fastest_canary_ns: float | None = None, busy_s: float = 0.0) -> WarmUp:
        """Run the same dispatches continuously until their times are stationary, and derive the size of submissions.

        Parameters
        ----------
        fastest_canary_ns : float, optional
            The fastest canary time known for this device. A GPU raises its clock in steps, and stays on some so long
            that times look stationary (an H200 for over 0.2 s, at less than half of its clock). While the canary is
            slower than the fastest, the warm-up continues.
        busy_s : float
            How long the GPU has been busy with other work until now, which counts as warm-up.
        """
        protocol = self._protocol
        start = time.perf_counter() - busy_s
        chunks: list[float] = []
        while True:
            begin = time.perf_counter_ns()
            # Two, so that the second is queued before the first is done: an idle GPU clocks down.
            self._submit_chunk()
            self._submit_chunk()
            self._wait()
            took_ns = time.perf_counter_ns() - begin
            trial_ns = took_ns / (2 * self._chunk)
            elapsed = time.perf_counter() - start
            if took_ns < _CHUNK_S * 1e9 and self._chunk < _MAX_CHUNK_TRIALS:
                self._chunk *= 2
                chunks.clear()
            else:
                chunks.append(trial_ns)
            stationary = looks_stationary(chunks)
            if elapsed >= (protocol.warmup_s if stationary else max(protocol.max_warmup_s, protocol.warmup_s)):
                clock_up = self._clock_is_up(fastest_canary_ns)
                if clock_up or elapsed >= protocol.max_clock_warmup_s:
                    break
        self._size(trial_ns)
        return WarmUp(elapsed, trial_ns, stationary, clock_up)

    def _clock_is_up(self, fastest_canary_ns: float | None) -> bool:
        if self._helper is None:
            return True
        with self._session() as session:
            # After work that keeps the clock high. The very first run compiles.
            self._submit_chunk()
            submit(self.device, [self._canary_commands(session)], "canary")
            session.submitted()
            canary = self._canary_time(session.ticks())
        return canary is None or not is_slower(canary, fastest_canary_ns)

    def _size(self, trial_ns: float) -> None:
        protocol = self._protocol
        most = max(1, int(min(protocol.max_submission_gpu_s * 1e9 / max(trial_ns, 1e-3), 1 << 62)))
        if self.mode is Mode.BATCH:
            wanted = protocol.batch_trials
            if wanted is None:
                step_ns = (context_of(self.device).capabilities.tick_step_ns or 0) if self._helper else 0
                # Spans of at least 100 steps, so long that the overhead of a pass, some µs, is below 1 %.
                wanted = max(1, math.ceil(max(1e6, 100 * step_ns) / trial_ns))
            self.batch_trials = min(wanted, most)
        elif self.mode is not Mode.LATENCY:
            self.submission_trials = min(protocol.submission_trials, most)
        per_sample_ns = trial_ns * self.batch_trials
        slow = max(1, int(_BLOCK_S * 1e9 / per_sample_ns))
        self.block_samples = max(1, min(protocol.block_trials, slow, self._most_samples))

    # ---- sampling ----

    def block(self, samples: int) -> Block:
        """Take `samples` samples, in the submissions of the mode, with the canary before and after."""
        if self._helper is None:
            return self._block(samples, None)
        with self._session() as session:
            return self._block(samples, session)

    @contextmanager
    def _session(self) -> Generator[TimingSession]:
        """Yield a session whose queries are returned even after an error."""
        assert self._helper is not None, "without timestamps there is no session"
        session = self._helper.session()
        try:
            yield session
        except BaseException:
            if not session.is_submitted():
                session.abandon()  # what was submitted comes before whatever uses the queries next
            raise

    def _canary_time(self, stamps: NDArray[np.uint64]) -> CanaryTime | None:
        assert self._helper is not None, "without timestamps there are no stamps"
        return canary_time(stamps, self._helper.tick_period_ns, context_of(self.device).capabilities.tick_step_ns)

    def _block(self, samples: int, session: TimingSession | None) -> Block:
        bound, device = self._bound, self.device
        # The GPU works while the CPU records, so that its clock stays up.
        self._submit_chunk()
        before = [] if session is None else [self._canary_commands(session)]
        if isinstance(bound, Submitted):
            found = self._called(bound, samples, before)
        else:
            found = self._submitted(bound, samples, before, session)
        if session is None:
            return found
        submit(device, [self._canary_commands(session)], "canary")
        session.submitted()
        stamps, passes = session.ticks(), self._protocol.canary_passes
        if not isinstance(bound, Submitted):
            found = replace(found, ticks=stamps[passes:-passes].reshape(samples, self.kernels, 2))
        return replace(
            found,
            canaries=(self._canary_time(stamps[:passes]), self._canary_time(stamps[-passes:])),
            previous_end_ticks=previous_end(stamps[:passes]),
        )

    def _submitted(
        self, bound: Runnable, samples: int, before: list[wgpu.GPUCommandBuffer], session: TimingSession | None
    ) -> Block:
        """Submit trials in the submissions of the mode."""
        counts = [self.submission_trials] * (samples // self.submission_trials)
        if samples % self.submission_trials:
            counts.append(samples % self.submission_trials)
        device = self.device
        encoded = [] if self.mode is Mode.LATENCY else [self._encode(bound, count, session) for count in counts]
        self._before(before)
        walls: list[tuple[int, int, int]] = []
        for i, count in enumerate(counts):
            commands, encode_ns = encoded[i] if encoded else self._encode(bound, count, session)
            t0, t1, t2 = bracket(device, lambda commands=commands: submit(device, [commands], bound.title))
            walls.append((t2 - t0, t1 - t0, encode_ns))
        submissions = tuple(i for i, count in enumerate(counts) for _ in range(count))
        wall_ns, submit_ns, encode_ns = (tuple(map(float, times)) for times in zip(*walls, strict=True))
        return Block(None, submissions, wall_ns, submit_ns, encode_ns, (None, None))

    def _called(self, call: Submitted, samples: int, before: list[wgpu.GPUCommandBuffer]) -> Block:
        """Call what submits by itself; its timestamps are read when all calls are done."""
        self._before(before)
        walls: list[tuple[int, int]] = []
        reads: list[Callable[[], tuple[tuple[int, int], ...] | None]] = []
        for _ in range(samples):
            t0, t1, t2 = bracket(self.device, call, call.used)
            walls.append((t2 - t0, t1 - t0))
            reads.append(call.stamps())
        stamps = [read() for read in reads]
        ticks = [stamp or ((0, 0),) * self.kernels for stamp in stamps]
        wall_ns, submit_ns = (tuple(map(float, times)) for times in zip(*walls, strict=True))
        timed = np.array(ticks, np.uint64) if any(stamps) else None
        return Block(timed, tuple(range(samples)), wall_ns, submit_ns, (), (None, None))

    def _before(self, canary: list[wgpu.GPUCommandBuffer]) -> None:
        """Run the canary before a block, once all is idle."""
        self._wait()
        if canary:
            bracket(self.device, lambda: submit(self.device, canary, "canary"))

    def _encode(self, bound: Runnable, count: int, session: TimingSession | None) -> tuple[wgpu.GPUCommandBuffer, int]:
        begin = time.perf_counter_ns()
        encoder = self.device.create_command_encoder()
        for _ in range(count):
            for record in self._before_trial:
                record(encoder)
            bound.encode(encoder, trials=self.batch_trials, timing=session)
        commands = encoder.finish()
        return commands, time.perf_counter_ns() - begin
