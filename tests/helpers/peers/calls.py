"""A call as data: it can be made for numpy and for gridwise_py, written as Python, read again, and made smaller."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

import gridwise_py as gw

try:
    import pandas as pd
except ImportError:  # the extra `bench` brings it
    pd = None

#: Operators of Python by the names that calls of them have here.
OPERATORS: dict[str, Callable[..., Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "//": operator.floordiv,
    "%": operator.mod,
    "**": operator.pow,
    "&": operator.and_,
    "|": operator.or_,
    "^": operator.xor,
    "<<": operator.lshift,
    ">>": operator.rshift,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}
UNARY: dict[str, Callable[..., Any]] = {"neg": operator.neg, "abs_": operator.abs, "invert": operator.invert}
_UNARY_TEXT = {"neg": "-{}", "abs_": "abs({})", "invert": "~{}"}

#: What an argument is made as; those of the second group lie on the GPU, where numpy has the array itself.
ON_HOST = (
    "numpy",
    "strided",
    "reversed",
    "fortran",
    "swapped",
    "readonly",
    "list",
    "tuple",
    "scalar",
    "item",
    "series",
    "range",
)
ON_GPU = ("gpu", "view", "expr")


class Node:
    """What operators make calls of, so that the text of a call reads as Python."""

    __array_ufunc__ = None  # numbers of numpy leave operators to this class

    def __neg__(self) -> Call:
        return Call("neg", (self,))

    def __abs__(self) -> Call:
        return Call("abs_", (self,))

    def __invert__(self) -> Call:
        return Call("invert", (self,))

    def __getitem__(self, key: Any) -> Call:
        return Call("[]", (self, key))

    __hash__ = object.__hash__


def _binary(symbol: str) -> tuple[Callable[..., Call], Callable[..., Call]]:
    return (lambda a, b: Call(symbol, (a, b))), (lambda a, b: Call(symbol, (b, a)))


for _symbol, _function in OPERATORS.items():
    _name = _function.__name__.strip("_")
    _forward, _backward = _binary(_symbol)
    setattr(Node, f"__{_name}__", _forward)
    if _symbol not in ("<", "<=", ">", ">=", "==", "!="):
        setattr(Node, f"__r{_name}__", _backward)


@dataclass(frozen=True, eq=False)
class Given(Node):
    """An array, and what it is given as."""

    items: np.ndarray
    how: str = "numpy"


@dataclass(frozen=True, eq=False)
class Call(Node):
    """A function, an operator or a method by its name, and its arguments: values, `Given`, or other calls."""

    name: str
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = field(default_factory=dict)
    #: Whether something odd stands in place of an argument.
    is_odd: bool = False


def walk(value: Any) -> list[Given]:
    """Return all arrays in a value."""
    if isinstance(value, Given):
        return [value]
    if isinstance(value, Call):
        return walk(value.args) + walk(value.kwargs)
    if isinstance(value, (tuple, list)):
        return [each for item in value for each in walk(item)]
    if isinstance(value, dict):
        return [each for item in value.values() for each in walk(item)]
    return []


def leaves(value: Any) -> list[Any]:
    """Return all values in a call that are no arrays."""
    if isinstance(value, Call):
        return leaves(value.args) + leaves(value.kwargs)
    if isinstance(value, (tuple, list)):
        return [leaf for item in value for leaf in leaves(item)]
    if isinstance(value, dict):
        return [leaf for item in value.values() for leaf in leaves(item)]
    return [] if isinstance(value, Given) else [value]


def changed(value: Any, change: Callable[[Any], Any]) -> Any:
    """Return a value with every array and leaf of it replaced by what `change` makes of it."""
    if isinstance(value, Call):
        return replace(value, args=changed(value.args, change), kwargs=changed(value.kwargs, change))
    if isinstance(value, tuple):
        return tuple(changed(item, change) for item in value)
    if isinstance(value, list):
        return [changed(item, change) for item in value]
    if isinstance(value, dict):
        return {key: changed(item, change) for key, item in value.items()}
    return change(value)


def is_on_gpu(call: Any) -> bool:
    return any(given.how in ON_GPU for given in walk(call))


def names(call: Any) -> list[str]:
    """Return the names of a call and of those in it, the outermost first."""
    if isinstance(call, Call):
        return [call.name, *names(list(call.args)), *names(list(call.kwargs.values()))]
    if isinstance(call, (tuple, list)):
        return [name for item in call for name in names(item)]
    return []


# ---- made


def made(given: Given, gridwise: bool) -> Any:
    """Return an argument as it is given to one side."""
    x, how = given.items, given.how
    if how in ON_GPU:
        return _on_gpu(x, how) if gridwise else np.array(x)
    if how == "strided":
        doubled = np.zeros((*x.shape[:-1], 2 * x.shape[-1]), x.dtype) if x.ndim else np.zeros(1, x.dtype)
        view = doubled[..., ::2] if x.ndim else doubled.reshape(())
        view[...] = x
        return view
    if how == "reversed":
        return np.array(x[::-1], order="C")[::-1] if x.ndim else np.array(x)
    if how == "fortran":
        return np.array(x, order="F")
    if how == "swapped":
        return x.astype(x.dtype.newbyteorder())
    if how == "readonly":
        x = np.array(x)
        x.flags.writeable = False
        return x
    if how == "list":
        return x.tolist()
    if how == "range":
        return range(x.size)
    if how == "tuple":
        return tuple(x.tolist())
    if how == "scalar":
        return x.item()
    if how == "item":
        return x.reshape(())[()]
    if how == "series" and pd is not None and gridwise:  # methods of its own would answer numpy's functions
        return pd.Series(np.array(x))
    return np.array(x)


def _on_gpu(x: np.ndarray, how: str) -> Any:
    if how == "view" and x.ndim == 1:
        around = np.concatenate([x[:1].repeat(3), x, x[:1].repeat(2)]) if x.size else np.zeros(5, x.dtype)
        return gw.asarray(around)[3 if x.size else 2 : 3 + x.size if x.size else 2]
    array = gw.asarray(np.array(x))
    if how != "expr":
        return array
    return array * 1 if x.dtype.kind in "iuf" and x.dtype.itemsize == 4 else array.as_expression()


# ---- written and read


def _array_text(x: np.ndarray, most: int | None) -> str:
    if x.dtype.kind == "M":
        return f"np.array({x.astype(str).tolist()}, '{x.dtype.str[1:]}')"
    dtype = f"np.{np.dtype(x.dtype).name}" if x.dtype.kind != "U" else "np.str_"
    if dtype == "np.bool":
        dtype = "np.bool_"
    if x.size == 0 or (x.dtype.kind != "U" and x.size > 8 and x.flags.c_contiguous and not x.view(np.uint8).any()):
        return f"np.zeros({x.shape}, {dtype})"
    flat = x.ravel().tolist()
    if x.size > 8 and len(set(map(repr, flat))) == 1:
        return f"np.full({x.shape}, {_number(flat[0])}, {dtype})"
    if most is not None and x.size > most:
        return f"<{x.size} items of {dtype}, shape {x.shape}>"
    return f"np.array({_listed(x.tolist())}, {dtype})"


def _listed(value: Any) -> str:
    return f"[{', '.join(map(_listed, value))}]" if isinstance(value, list) else _number(value)


def _number(value: Any) -> str:
    return f"complex({value.real!r}, {value.imag!r})" if isinstance(value, complex) else repr(value)


_HOW_NUMPY = {
    "strided": "np.repeat({}, 2, axis=-1)[..., ::2]",
    "reversed": "{}[::-1].copy()[::-1]",
    "fortran": "np.asfortranarray({})",
    "swapped": "(lambda x: x.astype(x.dtype.newbyteorder()))({})",
    "list": "{}.tolist()",
    "tuple": "tuple({}.tolist())",
    "scalar": "{}.item()",
    "item": "{}[()]",
    "series": "pd.Series({})",
    "readonly": "np.broadcast_to({0}, {1})",
    "range": "range(len({}))",
}
_HOW_GRIDWISE = {
    "gpu": "gw.asarray({})",
    "view": "gw.asarray(np.pad({}, (3, 2)))[3:-2]",
    "expr": "gw.asarray({}).as_expression()",
}


def text(value: Any, style: str = "stored", most: int | None = None) -> str:
    """Write a call as Python: as it is stored, or to be pasted, with ``np.`` or with ``gw.`` functions."""

    def write(value: Any) -> str:
        return text(value, style, most)

    if isinstance(value, Given):
        array = _array_text(value.items, most)
        if value.how == "numpy":
            return array
        if style == "stored":
            return f"{value.how}({array})"
        pattern = _HOW_NUMPY.get(value.how) or (_HOW_GRIDWISE[value.how] if style == "gw" else "{}")
        return pattern.format(array, value.items.shape)
    if isinstance(value, Call):
        args = [write(arg) for arg in value.args]
        if value.name in OPERATORS and value.args[0] is value.args[1] and isinstance(value.args[0], Node):
            return f"(lambda x: x {value.name} x)({args[0]})"
        if value.name in OPERATORS:
            return f"({args[0]} {value.name} {args[1]})"
        if value.name in UNARY:
            return f"({_UNARY_TEXT[value.name].format(args[0])})"
        if value.name == "[]":
            return f"{args[0]}[{args[1]}]"
        given = ", ".join([*args, *(f"{key}={write(item)}" for key, item in value.kwargs.items())])
        if value.name.startswith("."):
            first, _, rest = given.partition(args[0])
            return f"{args[0]}{value.name}({(first + rest).removeprefix(', ')})"
        return f"{'m' if style == 'stored' else style}.{value.name}({given})"
    if isinstance(value, tuple):
        return f"({', '.join(map(write, value))}{',' if len(value) == 1 else ''})"
    if isinstance(value, list):
        return f"[{', '.join(map(write, value))}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{key!r}: {write(item)}' for key, item in value.items())}}}"
    if isinstance(value, np.dtype):
        return f"np.dtype({value.str!r})"
    if isinstance(value, type):
        return f"np.{value.__name__}" if issubclass(value, np.generic) else value.__name__
    return repr(value)


class _Recorded:
    """Whatever is called of it becomes a `Call`."""

    def __getattr__(self, name: str) -> Callable[..., Call]:
        return lambda *args, **kwargs: Call(name, args, kwargs)


def _method(name: str) -> Callable[..., Call]:
    return lambda self, *args, **kwargs: Call(f".{name}", (self, *args), kwargs)


METHODS = ("astype", "reshape", "ravel", "copy", "item", "tolist", "trim")
for _name in METHODS:
    setattr(Node, _name, _method(_name))


def parsed(source: str) -> Call:
    """Read a call that `text` wrote; arrays of numpy in it are given as they are."""
    space: dict[str, Any] = {"np": np, "m": _Recorded(), "nan": float("nan"), "inf": float("inf"), "array": np.array}
    space["gw"] = gw  # of `gw.count`
    space |= {how: (lambda x, how=how: Given(np.asarray(x), how)) for how in (*ON_HOST[1:], *ON_GPU)}
    space |= {"list": lambda x: Given(np.asarray(x), "list"), "tuple": lambda x: Given(np.asarray(x), "tuple")}
    call = eval(source, space)  # of files of this repository only
    return changed(call, lambda value: Given(value) if isinstance(value, np.ndarray) else value)
