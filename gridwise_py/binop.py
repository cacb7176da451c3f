"""Associative binary operators: what reduce and scan combine items with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np

from .datatype import DATATYPES, Datatype
from .errors import ArgumentError, EmptyReductionError
from .operator_text import check_builtin_name, check_expression, check_functions

__all__ = ["Accumulator", "Add", "BinOp", "BinOpLike", "Max", "Min", "Multiply", "as_binop"]


@dataclass(frozen=True)
class Accumulator:
    """How items of a datatype are held while an operator combines them.

    Most operators hold items as they are. Minimum and maximum of floats hold *ordered keys*: the bits of the
    float, mapped to a u32 whose order is that of the floats, −0 below +0, with every NaN mapped to the key
    that wins. WGSL's own ``min`` drops NaN, leaves the order of the zeros open, and lets a compiler assume
    that there is no NaN, so this is the only portable way to numpy's semantics; integer minimum also is
    what subgroup hardware is fastest at.

    Attributes
    ----------
    wgsl : str
        WGSL type of an accumulator.
    key : str or None
        ``"min"`` or ``"max"`` where ordered keys are used.
    identity_bits : int
        The accumulator's identity, as 32 bits. Travels in the parameters, since Tint refuses a constant
        infinity.
    """

    wgsl: str
    key: str | None
    identity_bits: int


@dataclass(frozen=True)
class BinOp:
    """An associative operator for reduce and scan.

    Give either `expression` or `wgsl`.

    Parameters
    ----------
    name : str
        What tables call it.
    identity : number, mapping from datatype name to number, or callable from Datatype to number
        The value e for which ``combine(e, x) == x == combine(x, e)``.
    numpy : callable
        Elementwise twin, ``f(a, b)`` on numpy arrays of the datatype; results are checked against it.
    wgsl : str, optional
        WGSL text that defines ``fn combine(a: T, b: T) -> T``; ``T`` is an alias of the datatype's WGSL type.
        Further functions and constants may stand beside it, and nothing else.
    expression : str, optional
        A WGSL expression of ``a`` and ``b`` that holds for scalars and vectors alike.
    commutative : bool, default True
        False takes a path that keeps the order of the items.
    subgroup_reduce, subgroup_exclusive_scan : str, optional
        WGSL built-ins that equal this operator.
    empty : bool, default True
        Whether a reduction of no items gives the identity; False raises, as numpy's minimum does.
    key : str, optional
        ``"min"`` or ``"max"``: use ordered keys for floats (see `Accumulator`).

    Notes
    -----
    The operator must be associative. Nothing can check that, and results are wrong if it is not.

    Examples
    --------
    >>> import numpy as np
    >>> xor = BinOp("xor", identity=0, numpy=np.bitwise_xor, wgsl="fn combine(a: T, b: T) -> T { return a ^ b; }")
    """

    name: str
    identity: Any
    numpy: Callable[[Any, Any], Any]
    wgsl: str | None = None
    expression: str | None = None
    commutative: bool = True
    subgroup_reduce: str | None = None
    subgroup_exclusive_scan: str | None = None
    empty: bool = True
    key: str | None = None

    def __post_init__(self) -> None:
        if (self.wgsl is None) == (self.expression is None):
            raise ArgumentError(
                f"BinOp {self.name!r} needs exactly one of wgsl= (a function 'combine') and expression=."
            )
        if self.wgsl is not None:
            check_functions(self.name, self.wgsl)
        else:
            check_expression(self.name, self.expression or "")
        for option in ("subgroup_reduce", "subgroup_exclusive_scan"):
            check_builtin_name(self.name, option, getattr(self, option))
        if self.key not in (None, "min", "max"):
            raise ArgumentError(f"key={self.key!r} of BinOp {self.name!r} is unknown; known are None, 'min' and 'max'")
        if not callable(self.numpy):
            raise ArgumentError(f"BinOp {self.name!r}: numpy= must be a callable f(a, b), not {self.numpy!r}")

    # A mapping as identity would make the generated hash fail; a name and a text say what an operator is.
    def __hash__(self) -> int:
        return hash((self.name, self.wgsl, self.expression, self.commutative))

    @property
    def builtin(self) -> bool:
        """Whether the text is this library's own (and may run in a trusted module)."""
        return self in (Add, Min, Max, Multiply)

    def identity_for(self, datatype: Datatype) -> Any:
        """The identity as a numpy scalar of `datatype`."""
        value = self.identity
        if callable(value):
            value = value(datatype)
        elif isinstance(value, Mapping):
            if datatype.name not in value:
                raise ArgumentError(
                    f"BinOp {self.name!r} has no identity for {datatype.name}; it has them for {sorted(value)}"
                )
            value = value[datatype.name]
        datatype.bits(value)  # raises where the value does not fit
        return datatype.dtype.type(value)

    def empty_result(self, datatype: Datatype) -> Any:
        """What a reduction of no items gives.

        Raises
        ------
        EmptyReductionError
            For minimum and maximum, as in numpy.
        """
        if not self.empty:
            raise EmptyReductionError(
                f"a reduction with {self.name} over 0 items has no result (numpy raises here, too); "
                f"give at least one item"
            )
        return self.identity_for(datatype)

    def accumulator(self, datatype: Datatype) -> Accumulator:
        """How items of `datatype` are held while they are combined."""
        bits = datatype.bits(self.identity_for(datatype))
        if self.key is not None and datatype.dtype.kind == "f":
            return Accumulator("u32", self.key, bits ^ (0xFFFFFFFF if bits >> 31 else 0x80000000))
        return Accumulator(datatype.wgsl, None, bits)

    def __repr__(self) -> str:
        return f"BinOp({self.name!r})"


Add: BinOp = BinOp(
    "add", identity=0, numpy=np.add, expression="a + b",
    subgroup_reduce="subgroupAdd", subgroup_exclusive_scan="subgroupExclusiveAdd",
)  # fmt: skip
Multiply: BinOp = BinOp(
    "multiply", identity=1, numpy=np.multiply, expression="a * b",
    subgroup_reduce="subgroupMul", subgroup_exclusive_scan="subgroupExclusiveMul",
)  # fmt: skip
Min: BinOp = BinOp(
    "min", identity=lambda d: d.highest, numpy=np.minimum, expression="min(a, b)",
    subgroup_reduce="subgroupMin", empty=False, key="min",
)  # fmt: skip
Max: BinOp = BinOp(
    "max", identity=lambda d: d.lowest, numpy=np.maximum, expression="max(a, b)",
    subgroup_reduce="subgroupMax", empty=False, key="max",
)  # fmt: skip

_BY_NAME = {op.name: op for op in (Add, Min, Max, Multiply)}


#: An operator, or the name of a built-in one.
BinOpLike: TypeAlias = BinOp | Literal["add", "multiply", "min", "max"]


def as_binop(value: BinOp | str) -> BinOp:
    """Return a `BinOp` for itself or for the name of a built-in one (``add min max multiply``)."""
    if isinstance(value, BinOp):
        return value
    if isinstance(value, str) and value in _BY_NAME:
        return _BY_NAME[value]
    raise ArgumentError(
        f"operator {value!r} is unknown; known are {', '.join(_BY_NAME)}, or give a gridwise_py.BinOp "
        f"(for datatypes {', '.join(DATATYPES)})"
    )
