"""Operators of one argument, which `Map` applies to each item."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np

from ..errors import ArgumentError
from ..settings import ShaderChecks
from .datatype import Datatype
from .operator_base import Operator, text_context
from .operator_text import UNARY, TextForm


@dataclass(frozen=True, eq=False, repr=False)
class UnaryOp(Operator):
    """An operator of one argument for `Map`, for u32, i32 or f32, from `expression` or `wgsl`.

    Parameters
    ----------
    name : str
    numpy : callable
        The same in numpy, ``f(x)``, item by item. `check`, `gridwise_py.measure` and ``reference`` compare with it, in
        the datatype.
    wgsl : str, optional
        Defines ``fn apply(x: T) -> T``, as in `BinOp`.
    expression : str, optional
        In ``x``, valid for scalars and for vectors.
    check : bool or sequence, default True
        As for `BinOp`.
    max_ulps : number, optional
        How far correct floats may be from numpy's, in units in the last place. By default the check allows a
        thousandth, comparisons one ulp of noise on the items.
    shader_checks : {"bounds", "all", "none"}
        As of a `Kernel`.

    Notes
    -----
    When a `Map` with it is first bound on a device, the GPU must agree with numpy on a dozen values, as scalars and as
    vec4. What fails is told as by a `BinOp`.

    Examples
    --------
    >>> import numpy as np, gridwise_py as gw
    >>> half = gw.UnaryOp("half", numpy=lambda x: x // 2, expression="x / 2", check=[0, 1, 2, 77])
    """

    form: ClassVar[TextForm] = UNARY
    builtins: ClassVar[dict[str, UnaryOp]] = {}

    name: str
    numpy: Callable[[Any], Any]
    wgsl: str | None = None
    expression: str | None = None
    check: bool | Sequence[Any] = True
    max_ulps: float | None = None
    shader_checks: ShaderChecks = "bounds"

    def __post_init__(self) -> None:
        self._check_definition()
        ulps = self.max_ulps
        if ulps is not None and not (isinstance(ulps, Real) and 0 <= ulps < float("inf")):
            raise ArgumentError(
                f"max_ulps={ulps!r} of UnaryOp {self.name!r} must be a number of 0 or more, or None where it is unknown"
            )

    def _key(self) -> tuple[Any, ...]:
        return (*super()._key(), self.max_ulps)

    def twin(self, items: np.ndarray) -> np.ndarray:
        """Return what the numpy twin gives, in the datatype of the items."""
        with np.errstate(all="ignore"):
            return np.asarray(self.numpy(items)).astype(items.dtype)


# The bits are changed: a multiplication by −1 may make 0 of a subnormal float.
_NEGATE = """
const has_fractions = T(1) / T(2) > T(0);
fn apply(x: T) -> T {
  let word = bitcast<u32>(x);
  return bitcast<T>(select(0u - word, word ^ 0x80000000u, has_fractions));
}"""

Negate: UnaryOp = UnaryOp("negate", numpy=np.negative, wgsl=_NEGATE, max_ulps=0)
Abs: UnaryOp = UnaryOp("abs", numpy=np.abs, expression="abs(x)", max_ulps=0)
Square: UnaryOp = UnaryOp("square", numpy=np.square, expression="x * x", max_ulps=0)

UnaryOp.builtins.update({op.name: op for op in (Negate, Abs, Square)})

#: An operator, or the name of a built-in one.
UnaryOpLike: TypeAlias = UnaryOp | Literal["negate", "abs", "square"]


def as_unaryop(value: UnaryOp | str) -> UnaryOp:
    """Return a `UnaryOp` for itself or for the name of a built-in one (``negate abs square``)."""
    return UnaryOp.find(value)


def unary_context(op: UnaryOp, datatype: Datatype) -> dict[str, Any]:
    """Return what lib/unary_operator.wgsl needs to know."""
    return {"datatype": datatype.wgsl, "op": text_context(op, datatype, datatype.wgsl)}


def ulps_of(items: np.ndarray, ulps: float) -> np.ndarray:
    """Return a number of units in the last place of each item, and nothing for items that are not finite."""
    if items.dtype.kind != "f":
        return np.zeros(items.size)
    finite = np.where(np.isfinite(items), items, 0)
    return ulps * np.abs(np.spacing(finite)).astype(np.float64)
