"""Functions of expressions, with the names that numpy gives them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ..errors import ArgumentError, DatatypeError
from ..settings import SHADER_CHECKS, ShaderChecks
from .datatype import VALUE_DATATYPES, Struct
from .evaluation import value_of
from .expression import Expression, Later, Operators, as_node, deferred, gather, operation, same_type
from .operations import NUMPY_TYPES
from .options import one_of
from .program import flatten
from .wgsl_function import WgslFunction

__all__ = [
    "StructExpression", "bitcast", "ceil", "clip", "cos", "exp", "flip", "floor", "function", "gather", "isfinite",
    "isinf", "isnan", "log", "maximum", "minimum", "moments", "nan_to_num", "next", "popcount", "previous", "result",
    "rint", "sign", "sin", "sqrt", "struct", "tanh", "trunc", "truth", "where",
]  # fmt: skip

#: The bits of infinity, by the type of floats and that of their bits.
_INFINITY = {"f32": ("u32", 0x7F800000), "f64": ("u64", 0x7FF << 52)}


class StructExpression:
    """Several expressions as one: the fields of the items that a reduction or scan combines, or of an output.

    The fields are attributes, and items by their names.
    """

    def __init__(self, fields: dict[str, Expression]):
        self.fields: dict[str, Expression] = fields

    def __getattr__(self, name: str) -> Expression:
        fields = self.__dict__.get("fields", {})
        if name not in fields:
            raise AttributeError(f"a struct of {', '.join(fields)} has no field {name!r}")
        return fields[name]

    def __getitem__(self, name: str) -> Expression:
        if name not in self.fields:
            raise ArgumentError(f"a struct of {', '.join(self.fields)} has no field {name!r}")
        return self.fields[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.fields)

    @property
    def datatype(self) -> Struct:
        """The datatype of its items; bools are u32."""
        return Struct("struct", **{name: "u32" if e.type == "bool" else e.type for name, e in self.fields.items()})

    def numpy(self, *, size: int | None = None, **arrays: Any) -> np.ndarray:
        """Return its value in numpy, a structured array; see `Expression.numpy`."""
        return value_of(flatten(*self.fields.values(), names=tuple(self.fields)), arrays, size)

    def __repr__(self) -> str:
        return f"StructExpression({', '.join(f'{name}: {e.type}' for name, e in self.fields.items())})"


def struct(**fields: Any) -> Any:
    """Return expressions as the fields of one item.

    Parameters
    ----------
    **fields : Expression, Array or number
        One to four, of u32, i32, f32 or bool.
    """
    return _struct(tuple(fields), *fields.values())


@deferred
def _struct(names: tuple[str, ...], *values: Any) -> StructExpression:
    made = StructExpression({name: as_node(value) for name, value in zip(names, values, strict=True)})
    assert made.datatype  # refuses names and numbers of fields that no struct has
    return made


@deferred
def where(condition: Any, a: Any, b: Any) -> Any:
    """Return `a` where a condition holds, else `b`.

    Parameters
    ----------
    condition : Expression or Array
        Of bool.
    a, b : Expression, Array or number, or structs of these
        Of one type, or one of 8 bytes: then of the type that numpy promotes to. Both are computed for each item.

    Returns
    -------
    Expression
        Nothing is computed yet; `asarray` stores it.

    Examples
    --------
    >>> import numpy as np, gridwise_py as gw
    >>> x = gw.asarray(np.array([3, -1, 4], dtype=np.int32))
    >>> gw.asarray(gw.where(x > 0, x, 0)).to_numpy()
    array([3, 0, 4], dtype=int32)
    """
    chosen = as_node(condition)
    if chosen.type != "bool":
        raise DatatypeError(
            f"gw.where() needs a condition of bool, but it is of {chosen.type}; compare it, for example x != 0"
        )
    if isinstance(a, StructExpression) or isinstance(b, StructExpression):
        names = [tuple(x.fields) if isinstance(x, StructExpression) else None for x in (a, b)]
        if names[0] != names[1]:
            raise DatatypeError(f"gw.where() chooses between structs of the same fields, not between {a!r} and {b!r}")
        return StructExpression({name: where(chosen, a[name], b[name]) for name in names[0] or ()})
    first, second = same_type("gw.where()", a, b)
    return Expression("select", first.type, (chosen, first, second))


def truth(value: Expression) -> Expression:
    """Return whether items are not 0: of floats by their bits, since devices may flush denormals, and assume no NaN."""
    if value.type == "bool":
        return value
    if value.type in _INFINITY:
        value = bitcast(_INFINITY[value.type][0], value) << 1
    return value != 0


def moments(value: Expression) -> StructExpression:
    """Return the items that `Moments` combines: of integers and f32.

    The squared distance of an infinity or a NaN from itself is NaN, as in numpy. Bits say so: compilers assume that
    ``x - x`` and ``x * 0`` are 0.
    """
    if value.type != "f32":
        return struct(count=as_node(1, "u32"), origin=value, mean=as_node(0.0, "f32"), m2=as_node(0.0, "f32"))
    m2 = where(isfinite(value), as_node(0.0, "f32"), float("nan"))
    return struct(count=as_node(1, "u32"), mean=value, m2=m2)


def _unary(kind: str, sentence: str) -> Callable[[Any], Any]:
    def function(x: Any) -> Any:
        if not isinstance(x, Operators):
            x = as_node(x)
        return operation(kind, x)

    function.__name__ = function.__qualname__ = kind
    function.__doc__ = f"{sentence}\n\n    Parameters\n    ----------\n    x : Expression or Array\n    "
    return function


sqrt = _unary("sqrt", "Return the square root of floats, and of integers of 8 bytes in f64, as an expression.")
exp = _unary("exp", "Return e to the power of f32, as an expression.")
log = _unary("log", "Return the natural logarithm of f32, as an expression.")
sin = _unary("sin", "Return the sine of f32, as an expression.")
cos = _unary("cos", "Return the cosine of f32, as an expression.")
tanh = _unary("tanh", "Return the hyperbolic tangent of f32, as an expression.")
floor = _unary("floor", "Return floats rounded down, as an expression.")
ceil = _unary("ceil", "Return floats rounded up, as an expression.")
rint = _unary("rint", "Return floats rounded to the nearest integer, ties to even, as an expression.")
sign = _unary("sign", "Return −1, 0 or 1, as an expression.")
popcount = _unary("popcount", "Return the number of bits of u32 or u64 that are set, as an expression of u32.")


def _of_bits(name: str, sentence: str, symbol: str) -> Callable[[Any], Any]:
    """Return a function of floats that compares their bits but for the sign with those of infinity."""

    def function(x: Any) -> Any:
        value = as_node(x)
        if value.type not in _INFINITY:  # numpy, too, knows of integers and bools that they are finite
            return operation("==" if name == "isfinite" else "!=", value, value)
        bits, infinity = _INFINITY[value.type]
        return operation(symbol, bitcast(bits, value) << 1, infinity << 1)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"{sentence}\n\n    Parameters\n    ----------\n    x : Expression or Array\n    "
    return deferred(function)


isnan = _of_bits("isnan", "Return whether items are NaN, as an expression of bool.", ">")
isfinite = _of_bits("isfinite", "Return whether items are neither infinite nor NaN, as an expression of bool.", "<")
isinf = _of_bits("isinf", "Return whether items are infinite, as an expression of bool.", "==")


@deferred
def trunc(x: Any) -> Expression:
    """Return floats without what is behind the point, as an expression.

    Parameters
    ----------
    x : Expression or Array
    """
    value = as_node(x)
    return where(value < 0, ceil(value), floor(value))


@deferred
def nan_to_num(x: Any, nan: Any = 0.0, posinf: Any = None, neginf: Any = None) -> Expression:
    """Return the items with numbers in place of NaN and of infinities, by default the largest and the least ones.

    Parameters
    ----------
    x : Expression or Array
    nan, posinf, neginf : number, optional
    """
    value = as_node(x)
    if value.type not in _INFINITY:
        return value
    ends = np.finfo(NUMPY_TYPES[value.type])
    low = as_node(float(ends.min) if neginf is None else neginf, value.type)
    high = as_node(float(ends.max) if posinf is None else posinf, value.type)
    is_negative = (bitcast(_INFINITY[value.type][0], value) >> 8 * NUMPY_TYPES[value.type].itemsize - 1) != 0
    return where(isnan(value), as_node(nan, value.type), where(isinf(value), where(is_negative, low, high), value))


@deferred
def minimum(a: Any, b: Any) -> Expression:
    """Return the smaller of two items, as an expression; NaN propagates.

    Parameters
    ----------
    a, b : Expression, Array or number
    """
    return operation("minimum", a, b)


@deferred
def maximum(a: Any, b: Any) -> Expression:
    """Return the larger of two items, as an expression; NaN propagates.

    Parameters
    ----------
    a, b : Expression, Array or number
    """
    return operation("maximum", a, b)


@deferred
def clip(x: Any, low: Any = None, high: Any = None) -> Expression:
    """Return the items of `x`, those below `low` as `low`, and those above `high` as `high`.

    Parameters
    ----------
    x : Expression or Array
    low, high : Expression, Array, number or None
        None is no bound.
    """
    above = as_node(x) if low is None else maximum(x, low)
    return above if high is None else minimum(above, high)


@deferred
def bitcast(datatype: str, x: Any) -> Expression:
    """Return the bits of items as another datatype.

    Parameters
    ----------
    datatype : {"u32", "i32", "f32", "u64", "i64", "f64"}
        Of as many bytes.
    x : Expression or Array
    """
    if not isinstance(datatype, str) or datatype not in VALUE_DATATYPES:
        raise DatatypeError(f"gw.bitcast() gives {', '.join(VALUE_DATATYPES)}, not {datatype!r}")
    operand = as_node(x)
    if operand.type == "bool" or NUMPY_TYPES[operand.type].itemsize != NUMPY_TYPES[datatype].itemsize:
        bits = f"u{datatype[1:]}"
        raise DatatypeError(
            f"gw.bitcast() to {datatype} takes as many bytes, not {operand.type}; cast it: gw.{bits}(x)"
        )
    return operand if operand.type == datatype else Expression("bitcast", datatype, (operand,))


@deferred
def previous(x: Any) -> Expression:
    """Return each item's predecessor, of the first item itself.

    Parameters
    ----------
    x : Expression or Array
    """
    operand = as_node(x)
    return Expression("previous", operand.type, (operand,))


@deferred
def next(x: Any) -> Expression:
    """Return each item's successor, of the last item itself.

    Parameters
    ----------
    x : Expression or Array
    """
    operand = as_node(x)
    return Expression("next", operand.type, (operand,))


@deferred
def flip(x: Any) -> Expression:
    """Return the items in reverse order, as an expression.

    Parameters
    ----------
    x : Expression or Array
    """
    operand = as_node(x)
    return Expression("flip", operand.type, (operand,))


def function(
    text: str, *, numpy: Callable[..., Any] | None = None, shader_checks: ShaderChecks = "bounds"
) -> Callable[..., Any]:
    """Return a function of expressions that calls a function in WGSL.

    Parameters
    ----------
    text : str
        ``"fn f(x: f32, k: u32) -> f32 { … }"``, of u32, i32, f32 and bool; more functions and constants may follow.
    numpy : callable, optional
        The same on numpy arrays, for `Expression.numpy` and ``reference`` of primitives.
    shader_checks : {"bounds", "all", "none"}
        As of a `Kernel`.

    Returns
    -------
    callable

    Raises
    ------
    ArgumentError
        If the text holds something else.

    Examples
    --------
    >>> import numpy as np, gridwise_py as gw
    >>> half = gw.function("fn half(x: f32) -> f32 { return 0.5 * x; }", numpy=lambda x: x / 2)
    >>> half(gw.f32("x")).numpy(x=np.float32([2, 3]))
    array([1. , 1.5], dtype=float32)
    """
    found = WgslFunction.of(text, numpy, one_of("shader_checks", shader_checks, SHADER_CHECKS))

    @deferred
    def call(*args: Any) -> Expression:
        if len(args) != len(found.takes):
            raise ArgumentError(f"{found!r} takes {len(found.takes)} arguments, but was given {len(args)}")
        nodes: list[Expression] = []
        for value, type_name in zip(args, found.takes, strict=True):
            node = as_node(value, type_name if isinstance(value, (int, float)) and type_name != "bool" else None)
            if node.type != type_name:
                raise DatatypeError(f"{found!r} was given {node.type}; cast it, for example gw.{type_name}(x)")
            nodes.append(node)
        return Expression("function", found.gives, tuple(nodes), found)

    call.__name__ = call.__qualname__ = found.name
    call.__doc__ = f"Call the WGSL function {found!r}."
    return call


#: What a primitive computes for an item of its output: see its ``output=``.
result: Any = Later.named("result")
