"""The conditions of a measurement: what was in force, and what a reader must be warned about. Uses no GPU."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ...display.quantities import format_time
from ..calibrate.canary import is_slower
from ..cases.mode import Mode
from .protocol import SamplingProtocol
from .sampler import WarmUp
from .samples import Samples

# A trial that exceeds the maximum of a submission by less than this factor gets no warning: its time is an estimate.
_LONG_TRIAL = 1.05


@dataclass(frozen=True)
class Conditions:
    """How samples were taken.

    Attributes
    ----------
    protocol : SamplingProtocol
        As it was asked for.
    mode : Mode
    warm : WarmUp
    batch_trials, submission_trials, block_samples : int
        Dispatches of a pass, trials of a submission, samples of a block.
    sampling_s : float
        How long sampling took.
    wait_method : str
        How the host waited for the GPU.
    has_timestamps : bool
    tick_step_ns : float or None
    fastest_canary_ns : float or None
        The fastest time of the canary that is known for the device.
    """

    protocol: SamplingProtocol
    mode: Mode
    warm: WarmUp
    batch_trials: int
    submission_trials: int
    block_samples: int
    sampling_s: float
    wait_method: str
    has_timestamps: bool
    tick_step_ns: float | None = None
    fastest_canary_ns: float | None = None

    def in_force(self, samples: Samples) -> dict[str, Any]:
        """Return the settings that were in force, as a results file has them."""
        return {
            "submission_trials": self.submission_trials,
            "batch_trials": self.batch_trials if self.mode is Mode.BATCH else None,
            "block_trials": self.block_samples,
            "block_samples": samples.block_samples,
            "left_out_blocks": [i for i, kept in enumerate(samples.settled.kept) if not kept],
            "fastest_canary_ns": self.fastest_canary_ns,
            "tick_step_ns": self.tick_step_ns,
            "warmup_measured_s": self.warm.seconds,
            "sampling_measured_s": self.sampling_s,
            "stationary": self.warm.stationary,
            "wait_method": self.wait_method,
        }

    def warnings(self, samples: Samples) -> list[str]:
        """Return the warnings about the conditions, and about the samples."""
        found: list[str] = []
        protocol, canary, fastest_ns = self.protocol, samples.settled.canary, self.fastest_canary_ns
        if not self.warm.stationary:
            found.append(f"times were not stationary after {self.warm.seconds:.2f} s of warm-up")
        if canary is not None and fastest_ns is not None and is_slower(canary, fastest_ns):
            found.append(
                f"the clock was below its best: the canary kernel took {canary.median_ns * 1e-3:.1f} µs, and "
                f"{fastest_ns * 1e-3:.1f} µs at the fastest that was seen on this device"
            )
        if not self.has_timestamps:
            found.append("the device has no timestamp-query: times are CPU walls")
        if self.wait_method == "read_buffer":
            found.append("each wait reads a buffer, which adds over 130 µs to CPU walls")
        wanted = protocol.batch_trials
        if wanted is not None and self.mode is Mode.BATCH and self.batch_trials < wanted:
            found.append(
                f"batch_trials={wanted} was cut to {self.batch_trials}, to keep a submission below "
                f"{protocol.max_submission_gpu_s:g} s of GPU time (max_submission_gpu_s)"
            )
        most_ns = protocol.max_submission_gpu_s * 1e9
        if self.warm.trial_ns > _LONG_TRIAL * most_ns:
            found.append(
                f"one trial takes {format_time(self.warm.trial_ns)}, more than the {format_time(most_ns)} of GPU time "
                f"that a submission should have (max_submission_gpu_s)"
            )
        return found + samples.warnings(self.tick_step_ns)
