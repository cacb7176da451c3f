"""The operations of expressions: what they take and give, in numpy and in WGSL.

WGSL's operators hold for single numbers and for vectors, so one text serves both.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .library_functions import FLOOR_QUOTIENT, POWER, REMAINDER
from .wgsl_function import WgslFunction
from .wide_text import WIDE_TYPES, wide_text

#: The types of expressions, and numpy's.
NUMPY_TYPES: dict[str, np.dtype[Any]] = {
    "u32": np.dtype(np.uint32), "i32": np.dtype(np.int32), "f32": np.dtype(np.float32), "bool": np.dtype(np.bool_),
    "u64": np.dtype(np.uint64), "i64": np.dtype(np.int64), "f64": np.dtype(np.float64),
}  # fmt: skip
INTEGERS = ("u32", "i32", "u64", "i64")
_FLOATS = ("f32", "f64")
_NUMBERS = (*INTEGERS, *_FLOATS)
_NOT_A_NUMBER = "((bitcast<{U}>({0}) & {U}(0x7fffffffu)) > {U}(0x7f800000u))"


@dataclass(frozen=True)
class Operation:
    """An operation on items of one type.

    Attributes
    ----------
    types : tuple of str
        The types that it takes.
    numpy : callable
    text : str
        WGSL, with ``{0}``, ``{1}`` for the operands, ``{T}`` for their type and ``{U}`` for as many u32. Types of 8
        bytes have theirs in `wide_text`.
    texts : dict from str to str
        Of types with another text.
    functions : dict from str to WgslFunction
        Of types for which a function does it: `operation` makes a call of it, and the text is not used.
    gives : str or None
        The type of the result; None for that of the operands.
    remedy : str
        What to write for other types.
    """

    types: tuple[str, ...]
    numpy: Callable[..., Any]
    text: str
    texts: dict[str, str] = field(default_factory=dict[str, str])
    functions: dict[str, WgslFunction] = field(default_factory=dict[str, WgslFunction])
    gives: str | None = None
    remedy: str = ""


def _compared(symbol: str, function: Callable[..., Any]) -> Operation:
    equality = symbol in ("==", "!=")
    # A NaN differs from everything, itself too; shader compilers may make of != a comparison that is false for it.
    texts = {"f32": "(!({0} == {1}))"} if symbol == "!=" else {}
    return Operation(_NUMBERS + ("bool",) * equality, function, f"({{0}} {symbol} {{1}})", texts, gives="bool")


def _float(function: Callable[..., Any], name: str = "") -> Operation:
    types = _FLOATS if function in (np.sqrt, np.floor, np.ceil, np.rint) else ("f32",)
    remedy = "cast it: gw.f32(x); WGSL has it in f32 alone"
    return Operation(types, function, f"{name or function.__name__}({{0}})", remedy=remedy)


def _divided(symbol: str, function: Callable[..., Any], functions: dict[str, WgslFunction]) -> Operation:
    # A division by 0 gives 0, as in numpy.
    text = f"select({{T}}(0u), {{0}} {symbol[0]} max({{1}}, {{T}}(1u)), {{1}} != {{T}}(0u))"
    return Operation(_NUMBERS, function, text, functions=functions)


def _picked(symbol: str, name: str, function: Callable[..., Any]) -> Operation:
    # A NaN propagates, as in numpy: WGSL's own function may drop it.
    text = f"select({{1}}, {{0}}, ({{0}} {symbol} {{1}}) | {_NOT_A_NUMBER})"
    return Operation(_NUMBERS, function, f"{name}({{0}}, {{1}})", {"f32": text})


def _negated(a: Any) -> Any:
    return np.negative(a)


def _shifted_left(a: Any, b: Any) -> Any:
    return a << (b & (8 * a.dtype.itemsize - 1)).astype(a.dtype)


def _shifted_right(a: Any, b: Any) -> Any:
    return a >> (b & (8 * a.dtype.itemsize - 1)).astype(a.dtype)


def _power(a: Any, b: Any) -> Any:
    # numpy raises for integers to negative powers.
    return np.power(a, b) if a.dtype.kind == "f" else np.where(b < 0, 0, np.power(a, np.where(b < 0, 0, b)))


def _popcount(a: Any) -> Any:
    # numpy 1 has no bitwise_count.
    items = np.ascontiguousarray(a)
    bits = np.unpackbits(items.view(np.uint8).reshape(-1, items.dtype.itemsize), axis=1)
    return bits.sum(axis=1).reshape(np.shape(a))


#: By the kind of an expression.
OPERATIONS: dict[str, Operation] = {
    "+": Operation(_NUMBERS, operator.add, "({0} + {1})"),
    "-": Operation(_NUMBERS, operator.sub, "({0} - {1})"),
    "*": Operation(_NUMBERS, operator.mul, "({0} * {1})"),
    "/": Operation(
        _FLOATS, np.true_divide, "({0} / {1})", remedy="cast both, gw.f32(x); for integers there is a // b, too"
    ),
    "//": _divided("//", np.floor_divide, FLOOR_QUOTIENT),
    "%": _divided("%", np.remainder, REMAINDER),
    "**": Operation(
        ("f32", "u64", "i64"),
        _power,
        "",
        functions=POWER,
        remedy="give an integer from 1 to 64, x ** 3, or cast: gw.f32(x)",
    ),
    "<": _compared("<", operator.lt),
    "<=": _compared("<=", operator.le),
    ">": _compared(">", operator.gt),
    ">=": _compared(">=", operator.ge),
    "==": _compared("==", operator.eq),
    "!=": _compared("!=", operator.ne),
    "&": Operation((*INTEGERS, "bool"), np.bitwise_and, "({0} & {1})"),
    "|": Operation((*INTEGERS, "bool"), np.bitwise_or, "({0} | {1})"),
    "^": Operation((*INTEGERS, "bool"), np.bitwise_xor, "({0} ^ {1})", {"bool": "({0} != {1})"}),
    # As WGSL's, by less bits than there are.
    "<<": Operation(INTEGERS, _shifted_left, "({0} << ({1} & {U}(31u)))"),
    ">>": Operation(INTEGERS, _shifted_right, "({0} >> ({1} & {U}(31u)))"),
    "minimum": _picked("<=", "min", np.minimum),
    "maximum": _picked(">=", "max", np.maximum),
    "negative": Operation(_NUMBERS, _negated, "-({0})", {"u32": "({T}(0u) - {0})"}),
    "not": Operation((*INTEGERS, "bool"), np.invert, "~({0})", {"bool": "!({0})"}),
    "abs": Operation(_NUMBERS, np.abs, "abs({0})", {"u32": "{0}"}),
    "sign": Operation(
        _NUMBERS,
        np.sign,
        "sign({0})",
        {"u32": "min({0}, {T}(1u))", "f32": f"select(sign({{0}}), {{0}}, {_NOT_A_NUMBER})"},
    ),
    "popcount": Operation(
        ("u32", "u64"), _popcount, "countOneBits({0})", gives="u32", remedy="cast it: gw.u32(x) or gw.u64(x)"
    ),
    "sqrt": _float(np.sqrt),
    "exp": _float(np.exp),
    "log": _float(np.log),
    "sin": _float(np.sin),
    "cos": _float(np.cos),
    "tanh": _float(np.tanh),
    "floor": _float(np.floor),
    "ceil": _float(np.ceil),
    "rint": _float(np.rint, "round"),
}


# Of a number and itself. Compilers reckon as if there were neither infinity nor NaN, and fold x - x to 0, and x == x to
# true.
_FINITE = "((bitcast<{U}>({0}) & {U}(0x7f800000u)) != {U}(0x7f800000u))"
_OF_ITSELF = {
    "-": f"bitcast<{{T}}>(select(bitcast<{{U}}>({{0}}) | {{U}}(0x7fc00000u), {{U}}(0u), {_FINITE}))",
    **dict.fromkeys(("==", "<=", ">="), f"!{_NOT_A_NUMBER}"),
    "!=": _NOT_A_NUMBER,
}


def operation_text(kind: str, gives: str, takes: str, args: Sequence[str], lanes: int, *, pairs: bool = False) -> str:
    """Return the WGSL of an operation on one item, or on four of up to 4 bytes.

    Parameters
    ----------
    kind : str
        One of `OPERATIONS`, or ``"select"``, ``"cast"`` or ``"bitcast"``.
    gives, takes : str
        The types of the result, and of the first operand.
    args : sequence of str
        The texts of the operands.
    lanes : int
        1 or 4.
    pairs : bool
        Whether integers of 8 bytes are pairs of words.
    """
    if gives in WIDE_TYPES or takes in WIDE_TYPES:
        return wide_text(kind, gives, takes, args, pairs)

    def vector(name: str) -> str:
        return name if lanes == 1 else f"vec4<{name}>"

    if kind == "select":
        return f"select({args[2]}, {args[1]}, {args[0]})"
    if kind == "cast":
        return f"{vector(gives)}({args[0]})"
    if kind == "bitcast":
        return f"bitcast<{vector(gives)}>({args[0]})"
    if takes == "f32" and args[0] == args[-1] and kind in _OF_ITSELF:
        return _OF_ITSELF[kind].format(args[0], T=vector(takes), U=vector("u32"))
    operation = OPERATIONS[kind]
    text = operation.texts.get(takes, operation.text)
    return text.format(*args, T=vector(takes), U=vector("u32"))
