"""The modes of a measurement."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal, TypeAlias


class Mode(StrEnum):
    """How trials are laid out on the GPU, and in which state of the caches."""

    COLD = "cold"  #: a pass per kernel and trial, in ABC ABC order; the last-level cache is flushed before each trial
    HOT = "hot"  #: the same without a flush
    BATCH = "batch"  #: all trials of a kernel in one pass: only a mean, for kernels near the step of the clock
    LATENCY = "latency"  #: a submission per trial: what a single call costs its caller


#: A mode, or its name.
ModeLike: TypeAlias = Mode | Literal["hot", "cold", "batch", "latency"]

MODES = tuple(mode.value for mode in Mode)
