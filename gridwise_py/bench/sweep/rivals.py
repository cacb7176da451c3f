"""Rounds of rivals: each round measures all that are left once, and what is clearly slower is left out of the next."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median, quantiles
from typing import Generic, TypeAlias, TypeVar

Key = TypeVar("Key", bound=Hashable)
#: The samples of each round, in ns.
Times: TypeAlias = Sequence[Sequence[float]]
#: Measures rivals once, in the round of a number; returns the samples of those that ran and were right.
MeasureOnce: TypeAlias = Callable[[Sequence[Key], int], Mapping[Key, Sequence[float]]]


@dataclass
class Rounds(Generic[Key]):
    """What was measured.

    Attributes
    ----------
    times : dict
        By rival; of one that failed, or was left out, fewer rounds than of others.
    left_out : dict
        By rival the factor by which it was slower in every round.
    loaded : bool
        Whether the adapter is a CPU, and other work took part of the machine.
    """

    times: dict[Key, list[Sequence[float]]] = field(default_factory=dict[Key, list[Sequence[float]]])
    left_out: dict[Key, float] = field(default_factory=dict[Key, float])
    loaded: bool = False

    def ratio(self, key: Key, first: Key) -> float:
        """Return the median of a rival's times by those of another, of the rounds that both have."""
        return median(median(one) / median(two) for one, two in zip(self.times[key], self.times[first], strict=False))


def take_rounds(
    measure_once: MeasureOnce[Key],
    keys: Sequence[Key],
    most: int,
    *,
    factors: Sequence[float] = (math.inf,),
    first: Key | None = None,
    least: int = 1,
    until: float = math.inf,
) -> Rounds[Key]:
    """Measure rivals in rounds.

    Parameters
    ----------
    measure_once : callable
    keys : sequence
        The rivals.
    most : int
        Rounds.
    factors : sequence of float
        As of `clearly_slower`.
    first : key, optional
        The rival that the others are left out against; by default the fastest.
    least : int
        Rounds of one that has no rival left.
    until : float
        No round begins later, but the first; as `time.perf_counter` counts.
    """
    found = Rounds({key: [] for key in keys})
    running = list(keys)
    for number in range(most):
        late = number > 0 and time.perf_counter() > until
        if not running or late or (len(running) == 1 and number >= least):
            break
        for key, samples in measure_once(running, number).items():
            found.times[key].append(samples)
        ran = {key: found.times[key] for key in running if len(found.times[key]) > number}
        found.left_out |= clearly_slower(ran, factors, first)
        running = [key for key in ran if key not in found.left_out]
    return found


def clearly_slower(rounds: Mapping[Key, Times], factors: Sequence[float], first: Key | None = None) -> dict[Key, float]:
    """Return which rivals need no further round, with the factor by which each was slower in every round.

    The lower quartile of each of its rounds is compared with the upper quartile of the first one's, so that neither a
    few slow samples nor one slow round put it out.

    Parameters
    ----------
    rounds : mapping from key to sequence of sequence of float
        Samples in ns, of as many rounds for each rival.
    factors : sequence of float
        After so many rounds; the last one is for all further ones.
    first : key, optional
        By default the fastest.
    """
    if len(rounds) < 2:
        return {}
    leader = min(rounds, key=lambda key: median(map(median, rounds[key]))) if first is None else first
    factor = factors[min(len(rounds[leader]), len(factors)) - 1]
    highest = [_quartiles(each)[1] for each in rounds[leader]]
    found: dict[Key, float] = {}
    for key, own in rounds.items():
        least = min(_quartiles(each)[0] / high for each, high in zip(own, highest, strict=True))
        if key != leader and least > factor:
            found[key] = factor
    return found


def _quartiles(samples: Sequence[float]) -> tuple[float, float]:
    if len(samples) < 2:
        return samples[0], samples[0]
    low, _, high = quantiles(samples, n=4, method="inclusive")
    return low, high
