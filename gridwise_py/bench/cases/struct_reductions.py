"""Reductions to an index, a pair or a moment, as cases: each is a `Reduce` of an expression, as ``gw.argmax`` is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import wgpu

from ... import (
    DATATYPES,
    Add,
    ArgMax,
    ArgMin,
    ArgMinMax,
    Capabilities,
    Expression,
    MinMax,
    Moments,
    Primitive,
    Reduce,
    f32,
    index,
    leaf,
    result,
    sqrt,
    struct,
    u32,
)

_UNIT_ROUNDOFF = 2.0**-24
# The most additions that an item of a sum goes through, and the most tiles and steps of a variance; see `Reduce` and
# `gw.var`.
_SUM_STEPS, _MOMENT_STEPS = 1000, 256


class _StructReduction(Reduce):
    """Base of the cases.

    Parameters
    ----------
    device : wgpu.GPUDevice or None
    dtype : str
        Of the items.
    n : int
        Items.
    capabilities : Capabilities, optional
    """

    datatypes = DATATYPES

    def __init__(
        self, device: wgpu.GPUDevice | None, dtype: str = "u32", *, n: int, capabilities: Capabilities | None = None
    ):
        super().__init__(device, capabilities=capabilities, **self._options(leaf("input", dtype), n))

    @classmethod
    def at_size(cls, n: int, **axes: Any) -> tuple[dict[str, Any], dict[str, int]]:
        """Return the number of items, by which a mean divides."""
        return {"n": n}, {"input": n}

    def _options(self, x: Expression, n: int) -> dict[str, Any]:
        """Return what is reduced, and how."""
        raise NotImplementedError


class _ArgMax(_StructReduction):
    def _options(self, x: Expression, n: int) -> dict[str, Any]:
        return {"dtype": struct(value=x, index=index), "op": ArgMax, "output": result.index}

    def reference(self, input: np.ndarray) -> np.ndarray:
        return np.array([input.argmax()], dtype=np.uint32)


class _ArgMin(_StructReduction):
    def _options(self, x: Expression, n: int) -> dict[str, Any]:
        return {"dtype": struct(value=x, index=index), "op": ArgMin, "output": result.index}

    def reference(self, input: np.ndarray) -> np.ndarray:
        return np.array([input.argmin()], dtype=np.uint32)


class _ArgMinMax(_StructReduction):
    def _options(self, x: Expression, n: int) -> dict[str, Any]:
        return {"dtype": struct(min=x, argmin=index, max=x, argmax=index), "op": ArgMinMax}

    def reference(self, input: np.ndarray) -> np.ndarray:
        low, high = input.argmin(), input.argmax()
        return np.array([(input[low], low, input[high], high)], dtype=self.result_datatype.dtype)


class _MinMax(_StructReduction):
    def _options(self, x: Expression, n: int) -> dict[str, Any]:
        return {"dtype": struct(min=x, max=x), "op": MinMax}

    def reference(self, input: np.ndarray) -> np.ndarray:
        return np.array([(input.min(), input.max())], dtype=self.result_datatype.dtype)


def _doubles(items: np.ndarray) -> np.ndarray:
    """Return what the kernels convert items to, as doubles."""
    return items.astype(np.float32).astype(np.float64)


class _Mean(_StructReduction):
    def _options(self, x: Expression, n: int) -> dict[str, Any]:
        return {"dtype": f32(x), "op": Add, "output": result / float(n), "compensated": True}

    def reference(self, input: np.ndarray) -> np.ndarray:
        return np.array([_doubles(input).mean()], dtype=np.float32)

    def error_bound(self, input: np.ndarray) -> np.ndarray:
        """Return that of a compensated sum and a division."""
        items, u = _doubles(input), _UNIT_ROUNDOFF
        return np.array([4 * u * abs(items.mean()) + 2 * (_SUM_STEPS * u) ** 2 * np.abs(items).mean()])


class _Var(_StructReduction):
    def _options(self, x: Expression, n: int) -> dict[str, Any]:
        items = struct(count=u32(1), mean=f32(x), m2=f32(0))
        return {"dtype": items, "op": Moments, "output": result.m2 / f32(result.count)}

    def reference(self, input: np.ndarray) -> np.ndarray:
        return np.array([_doubles(input).var()], dtype=np.float32)

    def error_bound(self, input: np.ndarray) -> np.ndarray:
        """Return some steps times the errors of a step."""
        u = _UNIT_ROUNDOFF
        return _MOMENT_STEPS * (u + input.size * u**2) * self.reference(input).astype(np.float64)


class _Std(_Var):
    def _options(self, x: Expression, n: int) -> dict[str, Any]:
        return {**super()._options(x, n), "output": sqrt(result.m2 / f32(result.count))}

    def reference(self, input: np.ndarray) -> np.ndarray:
        return np.array([_doubles(input).std()], dtype=np.float32)


#: By the names of the functions.
STRUCT_REDUCTIONS: Mapping[str, type[Primitive]] = {
    "argmin": _ArgMin,
    "argmax": _ArgMax,
    "argminmax": _ArgMinMax,
    "minmax": _MinMax,
    "mean": _Mean,
    "var": _Var,
    "std": _Std,
}
