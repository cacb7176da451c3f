"""Expressions: arrays that are not stored. Plain data; a kernel that reads one computes its items as it goes.

A node has a type (u32, i32, f32 or bool) and arguments, which are nodes. `types.program` turns an expression into a
list of steps, which has a value in numpy; `planning.source` writes these as WGSL.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np

from ..errors import ArgumentError, DatatypeError, ImplicitConversionError
from .datatype import DATATYPES, as_datatype
from .program import NUMPY_TYPES, Bound, Leaf, Stored, flatten
from .wgsl_words import RESERVED_WORDS

__all__ = ["Expression", "Operators", "f32", "i32", "index", "leaf", "stored", "u32", "where"]

_NUMBERS = ("u32", "i32", "f32")
_INTEGERS = ("u32", "i32")
#: Names that ``execute`` has already, or that primitives give to their other arguments.
_RESERVED = frozenset(
    {
        "n", "count", "size", "encoder", "trials", "timing", "enable_gpu_timing", "enable_cpu_timing", "device", "out",
        "self",
    }
)  # fmt: skip


class Operators:
    """Python's operators, which give expressions. A subclass is an expression, or stands for one."""

    __slots__ = ()

    def as_expression(self) -> Expression:
        """Return it as an expression."""
        raise NotImplementedError

    def __add__(self, other: Any) -> Expression:
        return _binary("+", self, other, _NUMBERS)

    def __radd__(self, other: Any) -> Expression:
        return _binary("+", other, self, _NUMBERS)

    def __sub__(self, other: Any) -> Expression:
        return _binary("-", self, other, _NUMBERS)

    def __rsub__(self, other: Any) -> Expression:
        return _binary("-", other, self, _NUMBERS)

    def __mul__(self, other: Any) -> Expression:
        return _binary("*", self, other, _NUMBERS)

    def __rmul__(self, other: Any) -> Expression:
        return _binary("*", other, self, _NUMBERS)

    def __truediv__(self, other: Any) -> Expression:
        return _binary("/", self, other, ("f32",))

    def __rtruediv__(self, other: Any) -> Expression:
        return _binary("/", other, self, ("f32",))

    def __lt__(self, other: Any) -> Expression:
        return _binary("<", self, other, _NUMBERS, "bool")

    def __le__(self, other: Any) -> Expression:
        return _binary("<=", self, other, _NUMBERS, "bool")

    def __gt__(self, other: Any) -> Expression:
        return _binary(">", self, other, _NUMBERS, "bool")

    def __ge__(self, other: Any) -> Expression:
        return _binary(">=", self, other, _NUMBERS, "bool")

    def __eq__(self, other: Any) -> Any:
        return _binary("==", self, other, (*_NUMBERS, "bool"), "bool")

    def __ne__(self, other: Any) -> Any:
        return _binary("!=", self, other, (*_NUMBERS, "bool"), "bool")

    __hash__ = object.__hash__

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        # With a number of numpy on the left, numpy is asked first.
        symbol = _UFUNCS.get(ufunc.__name__)
        if symbol is None or method != "__call__" or options or not _is_numpy_number(inputs[0]):
            raise ImplicitConversionError(
                f"numpy.{ufunc.__name__} does not compute on the GPU; upload arrays of numpy with gw.asarray(x), call "
                f".to_numpy() for what numpy shall compute, or use this library's functions, such as gw.where"
            )
        return symbol(*inputs)


def _is_numpy_number(value: Any) -> bool:
    return isinstance(value, (np.ndarray, np.generic)) and value.ndim == 0


@dataclass(frozen=True, eq=False, repr=False)
class Expression(Operators):
    """An array that is not stored: each of its items is computed where a kernel reads it.

    Made from leaves, ``gw.f32("x")``, or from Arrays, by Python's operators and this library's functions.

    Attributes
    ----------
    kind : str
        What it does: ``"leaf"``, ``"index"``, ``"number"``, or the name of an operation.
    type : str
        ``"u32"``, ``"i32"``, ``"f32"`` or ``"bool"``.
    args : tuple of Expression
    value : object
        What else tells it apart from others of its kind: the name of a leaf, the number.
    """

    kind: str
    type: str
    args: tuple[Expression, ...] = ()
    value: Hashable = None

    def as_expression(self) -> Expression:
        """Return itself."""
        return self

    def numpy(self, **arrays: Any) -> np.ndarray:
        """Return its value in numpy.

        Parameters
        ----------
        **arrays : numpy.ndarray
            By the names of the leaves. Arrays on the GPU that are part of the expression are copied from there.

        Returns
        -------
        numpy.ndarray
            Of uint32, int32, float32 or bool.
        """
        return flatten(self).value(arrays)

    def __bool__(self) -> NoReturn:
        raise ImplicitConversionError(
            "an expression has no truth value: use gw.where(condition, a, b) to choose, and & | ~ to combine conditions"
        )

    def __array__(self, *_args: Any, **_kwargs: Any) -> NoReturn:
        raise ImplicitConversionError(
            "an expression holds no items; store it with gw.asarray(expression), or give its leaves to .numpy()"
        )

    def __repr__(self) -> str:
        return f"Expression({self.kind}, {self.type})"


def leaf(name: str, datatype: Any) -> Expression:
    """Return the leaf that stands for an argument of ``execute``.

    Parameters
    ----------
    name : str
    datatype : Datatype, str or numpy dtype

    Raises
    ------
    ArgumentError
        If it cannot be the name of an argument.
    DatatypeError
        If expressions do not take such items.
    """
    _check_name(name)
    found = as_datatype(datatype, DATATYPES)
    return Expression("leaf", found.name, (), Leaf(name, found))


def _check_name(name: Any) -> None:
    if not isinstance(name, str) or not name.isidentifier():
        raise ArgumentError(f"the name of a leaf must be a name in Python, such as 'x', not {name!r}")
    if name in _RESERVED or name.startswith("output") or (name in RESERVED_WORDS and not name.islower()):
        raise ArgumentError(f"a leaf cannot be called {name!r}: execute() has an argument of this name; rename it")


def _leaf_or_cast(type_name: str, value: Any) -> Expression:
    if isinstance(value, str):
        return leaf(value, type_name)
    return cast(type_name, value)


def f32(value: Any) -> Expression:
    """Return a leaf of float32 by its name, or an expression converted to float32."""
    return _leaf_or_cast("f32", value)


def u32(value: Any) -> Expression:
    """Return a leaf of uint32 by its name, or an expression converted to uint32."""
    return _leaf_or_cast("u32", value)


def i32(value: Any) -> Expression:
    """Return a leaf of int32 by its name, or an expression converted to int32."""
    return _leaf_or_cast("i32", value)


#: The number of the item, from 0.
index = Expression("index", "u32")


def cast(type_name: str, value: Any) -> Expression:
    """Return an expression converted to another type, as numpy's astype converts."""
    operand = as_node(value, type_name)
    return operand if operand.type == type_name else Expression("cast", type_name, (operand,))


def where(condition: Any, a: Any, b: Any) -> Expression:
    """Return `a` where a condition holds, else `b`."""
    chosen = as_node(condition, "bool")
    if chosen.type != "bool":
        raise DatatypeError(
            f"gw.where() needs a condition of bool, but it is of {chosen.type}; compare it, for example x != 0"
        )
    first, second = _same_type("gw.where()", a, b)
    return Expression("select", first.type, (chosen, first, second))


# ---- making nodes


def as_node(value: Any, type_name: str | None = None) -> Expression:
    """Return an expression for itself, an array, or a number.

    Parameters
    ----------
    value : object
    type_name : str, optional
        The type of a Python number; by default i32 or f32.

    Raises
    ------
    DatatypeError
        If it is none of these, or the type does not hold the number.
    """
    if isinstance(value, Operators):
        return value.as_expression()
    if isinstance(value, np.ndarray):
        if value.ndim:
            raise DatatypeError(
                f"a numpy array of shape {value.shape} cannot be part of an expression, which is computed on the GPU; "
                f"upload it with gw.asarray(x), or give a leaf, gw.f32('x'), and call .numpy(x=…)"
            )
        value = value[()]
    return _number(value, type_name)


def stored(array: Stored) -> Expression:
    """Return the leaf that is an array.

    Raises
    ------
    DatatypeError
        If expressions do not take its items.
    """
    datatype = array.datatype
    if datatype.name not in DATATYPES:
        raise DatatypeError(
            f"expressions take items of {', '.join(DATATYPES)}, but the array is of {datatype}; convert it with "
            f"x.astype(…)"
        )
    return Expression("leaf", datatype.name, (), Bound(array))


def _number(value: Any, type_name: str | None) -> Expression:
    if isinstance(value, (bool, np.bool_)):
        own, value = "bool", bool(value)
    elif isinstance(value, (np.uint32, np.int32, np.float32)):
        own = {"uint32": "u32", "int32": "i32", "float32": "f32"}[value.dtype.name]
        return _held(value.item(), own)
    elif isinstance(value, (int, np.integer)):
        own, value = "i32", int(value)
    elif isinstance(value, (float, np.floating)):
        own, value = "f32", float(value)
    else:
        raise DatatypeError(
            f"{value!r:.60} cannot be part of an expression; it is made of leaves such as gw.f32('x'), of Arrays, and "
            f"of numbers"
        )
    if type_name is None or own == "bool":
        return _held(value, own)
    if own == "f32" and type_name != "f32":
        raise DatatypeError(
            f"{value!r} is a float, but the other side is of {type_name}; cast that, gw.f32(…), or give an integer"
        )
    return _held(value, own if type_name == "bool" else type_name)


def _held(value: Any, type_name: str) -> Expression:
    """Return the node of a number; raise where its type cannot hold it."""
    dtype = NUMPY_TYPES[type_name]
    if dtype.kind in "iu" and not np.iinfo(dtype).min <= value <= np.iinfo(dtype).max:
        raise DatatypeError(f"{value} is not a number of {type_name}; cast the other side, or give another number")
    with np.errstate(over="ignore"):
        word = int(value) if type_name == "bool" else int(np.array(value, dtype).view(np.uint32))
    return Expression("number", type_name, (), word)


def _is_number(value: Any) -> bool:
    """Whether a value takes the type of the other side."""
    return isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(
        value, (bool, np.uint32, np.int32, np.float32)
    )


def _same_type(what: str, a: Any, b: Any) -> tuple[Expression, Expression]:
    """Return two operands of one type; a Python number takes that of the other.

    Raises
    ------
    DatatypeError
        If the types differ; the message names the cast.
    """
    if _is_number(a) and not _is_number(b):
        second = as_node(b)
        first = as_node(a, second.type)
    else:
        first = as_node(a)
        second = as_node(b, first.type if _is_number(b) else None)
        if _is_number(a) and _is_number(b) and first.type != second.type:
            first, second = as_node(a, "f32"), as_node(b, "f32")
    if first.type != second.type:
        to = "f32" if "f32" in (first.type, second.type) else "i32" if "i32" in (first.type, second.type) else "u32"
        raise DatatypeError(
            f"{what} has operands of {first.type} and {second.type}, which are not converted by themselves; cast one "
            f"of them, for example gw.{to}(…)"
        )
    return first, second


def _binary(symbol: str, a: Any, b: Any, types: tuple[str, ...], gives: str | None = None) -> Expression:
    first, second = _same_type(f"a {symbol} b", a, b)
    if first.type not in types:
        raise DatatypeError(
            f"a {symbol} b is for {', '.join(types)}, but both sides are of {first.type}; cast them, for example "
            f"gw.{types[-1]}(…)"
        )
    return Expression(symbol, gives or first.type, (first, second))


def _operation(symbol: str, types: tuple[str, ...], gives: str | None = None) -> Callable[[Any, Any], Expression]:
    return lambda a, b: _binary(symbol, a, b, types, gives)


#: What numpy's numbers call, where one is on the left.
_UFUNCS = {
    "add": _operation("+", _NUMBERS), "subtract": _operation("-", _NUMBERS), "multiply": _operation("*", _NUMBERS),
    "divide": _operation("/", ("f32",)), "less": _operation("<", _NUMBERS, "bool"),
    "less_equal": _operation("<=", _NUMBERS, "bool"), "greater": _operation(">", _NUMBERS, "bool"),
    "greater_equal": _operation(">=", _NUMBERS, "bool"), "equal": _operation("==", (*_NUMBERS, "bool"), "bool"),
    "not_equal": _operation("!=", (*_NUMBERS, "bool"), "bool"),
}  # fmt: skip
