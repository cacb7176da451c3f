"""Ranges copied to other places, as a case: all items, in ranges of random lengths, in another order."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ... import Argument, CopyRanges, SameAs
from .data import Maker


class ScatteredRanges(CopyRanges):
    """The case: a `CopyRanges` whose output is as long as the source."""

    arguments = (*CopyRanges.arguments[:-1], Argument("output", is_output=True, length=SameAs("source")))

    @classmethod
    def at_size(cls, n: int, run: int = 8, **axes: Any) -> tuple[dict[str, Any], dict[str, int]]:
        """Return no options, and the lengths for ranges whose mean is `run`."""
        ranges = -(-n // run)
        return {}, {"source": n, "source_offsets": ranges, "destination_offsets": ranges, "lengths": ranges}

    def _reference(
        self, source: np.ndarray, source_offsets: np.ndarray, destination_offsets: np.ndarray, lengths: np.ndarray,
        output: np.ndarray | None = None,
    ) -> np.ndarray:  # fmt: skip
        """Return the items in the order of their places; nothing of an output is left."""
        del output
        begins, counts = source_offsets.astype(np.int64), lengths.astype(np.int64)
        # The ranges lie one behind another in the source, so item i of all is item i of it.
        places = np.repeat(destination_offsets.astype(np.int64) - begins, counts)
        places += np.arange(places.size)
        found = np.empty_like(source)
        found[places] = source
        return found


def _ranges(n: int, count: int) -> Mapping[str, np.ndarray]:
    """Return ranges that make n items, in the source one behind another, and in the output in another order."""
    rng = np.random.default_rng([n, count])
    ends = np.sort(rng.integers(0, n, count, endpoint=True))
    ends[-1:] = n
    lengths = np.diff(ends, prepend=0)
    order = rng.permutation(count)
    places = np.empty(count, np.int64)
    places[order] = np.cumsum(lengths[order]) - lengths[order]
    return {"lengths": lengths, "source_offsets": ends - lengths, "destination_offsets": places}


def _maker(name: str) -> Maker:
    def make(rng: np.random.Generator, length: int, dtype: np.dtype, axes: Mapping[str, Any]) -> np.ndarray:
        del rng  # the three arguments belong together
        return _ranges(axes["n"], length)[name].astype(dtype)

    return make


#: Makers of the arguments.
RANGE_DATA: Mapping[str, Maker] = {name: _maker(name) for name in ("lengths", "source_offsets", "destination_offsets")}
