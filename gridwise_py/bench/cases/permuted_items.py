"""A scatter as a case: each item goes to a place of its own, ``gw.put(output, indices, items)`` with a permutation."""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import Argument, SameAs, Scatter


class PermutedItems(Scatter):
    """The case: a `Scatter` whose output is as long as the items."""

    arguments = (*Scatter.arguments[:-1], Argument("output", is_output=True, length=SameAs("items")))

    @classmethod
    def at_size(cls, n: int, **axes: Any) -> tuple[dict[str, Any], dict[str, int]]:
        """Return no options, and the lengths of the inputs."""
        return {}, {"items": n, "indices": n}

    def _reference(self, items: np.ndarray, indices: np.ndarray, output: np.ndarray | None = None) -> np.ndarray:
        """Return the items in the order of their places; nothing of an output is left."""
        return super()._reference(items, indices, np.empty_like(items) if output is None else output)
