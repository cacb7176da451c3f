"""Primitives that only cases have: reductions as ``gw.argmax`` makes them, and others of which a case needs a form."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np
import wgpu

import gridwise_py as gw

_UNIT_ROUNDOFF = 2.0**-24
# The most additions that an item of a sum goes through, and the most tiles and steps of a variance; see `Reduce` and
# `gw.var`.
_SUM_STEPS, _MOMENT_STEPS = 1000, 256

#: Of items in numpy: a result, or how much it may differ.
_OfItems: TypeAlias = Callable[[np.ndarray], Any]


def _reduction(
    options: Callable[[gw.Expression, int], Mapping[str, Any]], expected: _OfItems, bound: _OfItems | None = None
) -> type[gw.Primitive]:
    """Return a `Reduce` of an expression.

    Parameters
    ----------
    options : callable
        Returns what is reduced, and how, of the items and their number.
    expected : callable
        Returns the result.
    bound : callable, optional
        Returns how much the result may differ; by default what follows from the operator.
    """

    class Reduction(gw.Reduce):
        datatypes = gw.DATATYPES

        def __init__(
            self,
            device: wgpu.GPUDevice | None,
            dtype: str = "u32",
            *,
            n: int,
            capabilities: gw.Capabilities | None = None,
        ):
            super().__init__(device, capabilities=capabilities, **options(gw.leaf("input", dtype), n))

        @classmethod
        def at_size(cls, n: int, **axes: Any) -> tuple[dict[str, Any], dict[str, int]]:
            """Return the number of items, by which a mean divides."""
            return {"n": n}, {"input": n}

        def reference(self, input: np.ndarray) -> np.ndarray:
            return np.array([expected(input)], dtype=self.output_datatype.dtype)

        if bound is not None:

            def error_bound(self, input: np.ndarray, bound: _OfItems = bound) -> np.ndarray:
                return np.array([bound(input)])

    return Reduction


def _doubles(items: np.ndarray) -> np.ndarray:
    """Return what the kernels convert items to, as doubles."""
    return items.astype(np.float32).astype(np.float64)


def _place(x: gw.Expression, op: Any) -> dict[str, Any]:
    return {"dtype": gw.struct(value=x, index=gw.index), "op": op, "output": gw.result.index}


def _moments(x: gw.Expression, output: Any) -> dict[str, Any]:
    return {"dtype": gw.struct(count=gw.u32(1), mean=gw.f32(x), m2=gw.f32(0)), "op": gw.Moments, "output": output}


def _mean_bound(items: np.ndarray) -> float:
    """Return that of a compensated sum and a division."""
    x, u = _doubles(items), _UNIT_ROUNDOFF
    return 4 * u * abs(x.mean()) + 2 * (_SUM_STEPS * u) ** 2 * np.abs(x).mean()


def _moment_bound(value: float, count: int) -> float:
    """Return some steps times the errors of a step."""
    return _MOMENT_STEPS * (_UNIT_ROUNDOFF + count * _UNIT_ROUNDOFF**2) * float(np.float32(value))


#: By the names of the functions.
STRUCT_REDUCTIONS: Mapping[str, type[gw.Primitive]] = {
    "argmin": _reduction(lambda x, n: _place(x, gw.ArgMin), np.argmin),
    "argmax": _reduction(lambda x, n: _place(x, gw.ArgMax), np.argmax),
    "argminmax": _reduction(
        lambda x, n: {"dtype": gw.struct(min=x, argmin=gw.index, max=x, argmax=gw.index), "op": gw.ArgMinMax},
        lambda items: (items.min(), items.argmin(), items.max(), items.argmax()),
    ),
    "minmax": _reduction(
        lambda x, n: {"dtype": gw.struct(min=x, max=x), "op": gw.MinMax}, lambda items: (items.min(), items.max())
    ),
    "mean": _reduction(
        lambda x, n: {"dtype": gw.f32(x), "op": gw.Add, "output": gw.result / float(n), "compensated": True},
        lambda items: _doubles(items).mean(),
        _mean_bound,
    ),
    "var": _reduction(
        lambda x, n: _moments(x, gw.result.m2 / gw.f32(gw.result.count)),
        lambda items: _doubles(items).var(),
        lambda items: _moment_bound(_doubles(items).var(), items.size),
    ),
    "std": _reduction(
        lambda x, n: _moments(x, gw.sqrt(gw.result.m2 / gw.f32(gw.result.count))),
        lambda items: _doubles(items).std(),
        lambda items: _moment_bound(_doubles(items).std(), items.size),
    ),
}


class GroupSums(gw.GroupBy):
    """The sum of the items of each key, as ``gw.group_by(keys, total=(items, gw.Add))``; keys are u32."""

    datatypes = gw.DATATYPES

    def __init__(
        self, device: wgpu.GPUDevice | None, dtype: str = "u32", *, key_bits: int = 32,
        capabilities: gw.Capabilities | None = None,
    ):  # fmt: skip
        total = {"total": (gw.leaf("items", dtype), gw.Add)}
        super().__init__(device, gw.leaf("keys", "u32"), total, key_bits=key_bits, capabilities=capabilities)

    @classmethod
    def at_size(cls, n: int, run: int = 8, **axes: Any) -> tuple[dict[str, Any], dict[str, int]]:
        """Return the bits of keys of which each has `run` rows on average, and the lengths of the inputs."""
        return {"key_bits": max(1, (max(n // run, 1) - 1).bit_length())}, {"keys": n, "items": n}


class PermutedItems(gw.Scatter):
    """A `Scatter` whose output is as long as the items: each goes to a place of its own."""

    arguments = (*gw.Scatter.arguments[:-1], gw.Argument("output", is_output=True, length=gw.SameAs("items")))

    @classmethod
    def at_size(cls, n: int, **axes: Any) -> tuple[dict[str, Any], dict[str, int]]:
        """Return no options, and the lengths of the inputs."""
        return {}, {"items": n, "indices": n}

    def _reference(self, items: np.ndarray, indices: np.ndarray, output: np.ndarray | None = None) -> np.ndarray:
        """Return the items in the order of their places; nothing of an output is left."""
        return super()._reference(items, indices, np.empty_like(items) if output is None else output)


class ScatteredRanges(gw.CopyRanges):
    """A `CopyRanges` of all items to other places; its output is as long as the source."""

    arguments = (*gw.CopyRanges.arguments[:-1], gw.Argument("output", is_output=True, length=gw.SameAs("source")))

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
