"""The settings of a measurement."""

from __future__ import annotations

import reprlib
from dataclasses import asdict, dataclass
from typing import Any

from ...errors import ArgumentError
from ..stats.statistics import Stopping, StoppingRule

_MOST = (1 << 63) - 1
_LEAST = 1e-9
_MOST_S = 1e9  # 31 years
_LEAST_FLUSH_BYTES = 1 << 16  # no last-level cache is smaller


def _short(value: Any) -> str:
    """Return a value for a message, however many digits it has."""
    return reprlib.repr(value)


@dataclass(frozen=True)
class SamplingProtocol:
    """How a primitive is sampled.

    Parameters
    ----------
    samples : int, optional
        Exactly so many, unless the time is up. By default sampling stops when the 95 % interval of the median is
        narrow, or becomes no narrower.
    relative_interval : float
        Narrow: at most this share of the median.
    min_samples, max_samples, plateau_samples : int
        `plateau_samples`: the fewest that show that it becomes no narrower.
    timeout_s : float
        Without the warm-up.
    warmup_s, max_warmup_s, max_clock_warmup_s : float
        The work runs before until its times are stationary: at least for the first, at most for the second, or the
        third while the clock is low.
    block_trials : int
        Trials between two checks of the clock and the interval.
    submission_trials : int
        Most trials of a submission (cold and hot).
    max_submission_gpu_s : float
        Longest submission of several trials.
    batch_trials : int, optional
        Dispatches per pass in mode batch. By default those of 1 ms and 100 steps of the clock.
    flush_bytes : int, optional
        Of the buffer that empties the caches in mode cold.
    canary_passes : int
    check_unit : bool
    energy_windows : int
        In which the energy of a trial is measured, after the samples; at least 3 give an interval.
    energy_window_s : float
    seed : int
    """

    samples: int | None = None
    relative_interval: float = 0.01
    min_samples: int = 50
    max_samples: int = 10_000
    plateau_samples: int = 500
    timeout_s: float = 5.0
    warmup_s: float = 0.3
    max_warmup_s: float = 1.0
    max_clock_warmup_s: float = 2.0
    block_trials: int = 100
    submission_trials: int = 50
    max_submission_gpu_s: float = 0.1
    batch_trials: int | None = None
    flush_bytes: int | None = None
    canary_passes: int = 9
    check_unit: bool = True
    energy_windows: int = 0
    energy_window_s: float = 2.0
    seed: int = 0

    def __post_init__(self) -> None:
        # Within these limits a run ends, and the numbers in its results file neither overflow nor underflow.
        counts = ("samples", "min_samples", "max_samples", "plateau_samples", "block_trials", "submission_trials")
        for name in (*counts, "batch_trials", "flush_bytes", "canary_passes", "energy_windows"):
            value = getattr(self, name)
            least = {"flush_bytes": _LEAST_FLUSH_BYTES, "energy_windows": 0}.get(name, 1)
            good = isinstance(value, int) and not isinstance(value, bool) and least <= value <= _MOST
            if value is not None and not good:
                raise ArgumentError(f"{name} is {_short(value)}, but must be an integer from {least:,} to {_MOST:,}")
        for name in (
            "relative_interval",
            "timeout_s",
            "warmup_s",
            "max_warmup_s",
            "max_clock_warmup_s",
            "max_submission_gpu_s",
            "energy_window_s",
        ):
            value = getattr(self, name)
            number = isinstance(value, int | float) and not isinstance(value, bool)
            if not number or not (value == 0 or _LEAST <= value <= _MOST_S):
                raise ArgumentError(
                    f"{name} is {_short(value)}, but must be a finite number: 0, or from {_LEAST:g} to {_MOST_S:g}"
                )
        if not isinstance(self.check_unit, bool):
            raise ArgumentError(f"check_unit is {self.check_unit!r}, but must be true or false")
        if isinstance(self.seed, bool) or not isinstance(self.seed, int) or not 0 <= self.seed <= _MOST:
            raise ArgumentError(f"seed is {_short(self.seed)}, but must be an integer from 0 to {_MOST:,}")
        stopping = ("relative_interval", "timeout_s", "max_submission_gpu_s", "energy_window_s")
        if not all(getattr(self, name) for name in stopping):
            given = ", ".join(f"{name}={getattr(self, name)}" for name in stopping)
            raise ArgumentError(f"{given}: all must be more than 0, or sampling would never or always stop")

    def stopping(self) -> Stopping:
        """Return the stopping rule of one measurement."""
        rule = StoppingRule(
            relative_interval=self.relative_interval,
            timeout_s=self.timeout_s,
            max_samples=self.max_samples,
            min_samples=self.min_samples,
            plateau_samples=self.plateau_samples,
        )
        return Stopping(rule)

    def to_dict(self) -> dict[str, Any]:
        """Return all fields as JSON data."""
        return asdict(self)
