"""Expressions: arrays that are not stored. Plain data; a kernel that reads one computes its items as it goes.

A node has a type (u32, i32, f32, u64, i64, f64 or bool) and arguments, which are nodes. `types.program` turns an
expression into a list of steps, `types.evaluation` computes their value in numpy, and `planning.source` writes them as
WGSL.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn, TypeVar, cast

import numpy as np

from ..errors import ArgumentError, DatatypeError, ImplicitConversionError
from ..namespace import with_answers
from .datatype import STORAGE_DATATYPES, VALUE_DATATYPES, Datatype, Struct, as_datatype, conversion, value_words
from .evaluation import value_of
from .operations import INTEGERS, NUMPY_TYPES, OPERATIONS
from .program import Bound, Leaf, Stored, flatten
from .wide_text import WIDE_TYPES

#: Names of arguments that ``execute`` has already, or is to have.
_RESERVED = frozenset(
    {
        "n", "count", "size", "encoder", "trials", "timing", "enable_gpu_timing", "enable_cpu_timing", "device", "out",
        "self",
    }
)  # fmt: skip
#: What some functions combine word by word: items of up to 4 bytes.
LEAF_DATATYPES: dict[str, Datatype] = {
    name: datatype for name, datatype in STORAGE_DATATYPES.items() if datatype.itemsize_bytes <= 4
}
_MOST_COMPONENTS = 4
#: Of numbers of numpy that keep their type; others take that of the other side.
_WORD_DTYPES = tuple(NUMPY_TYPES[name] for name in ("u32", "i32", "f32"))
FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])


@with_answers
class Operators:
    """Python's operators, which give expressions. A subclass is an expression, or stands for one."""

    __slots__ = ()

    def as_expression(self) -> Expression:
        """Return it as an expression."""
        raise NotImplementedError

    def __add__(self, other: Any) -> Expression:
        return operation("+", self, other)

    def __radd__(self, other: Any) -> Expression:
        return operation("+", other, self)

    def __sub__(self, other: Any) -> Expression:
        return operation("-", self, other)

    def __rsub__(self, other: Any) -> Expression:
        return operation("-", other, self)

    def __mul__(self, other: Any) -> Expression:
        return operation("*", self, other)

    def __rmul__(self, other: Any) -> Expression:
        return operation("*", other, self)

    def __truediv__(self, other: Any) -> Expression:
        return operation("/", self, other)

    def __rtruediv__(self, other: Any) -> Expression:
        return operation("/", other, self)

    def __floordiv__(self, other: Any) -> Expression:
        return operation("//", self, other)

    def __rfloordiv__(self, other: Any) -> Expression:
        return operation("//", other, self)

    def __mod__(self, other: Any) -> Expression:
        return operation("%", self, other)

    def __rmod__(self, other: Any) -> Expression:
        return operation("%", other, self)

    def __pow__(self, other: Any) -> Expression:
        return _power(self, other)

    def __rpow__(self, other: Any) -> Expression:
        return _power(other, self)

    def __and__(self, other: Any) -> Expression:
        return operation("&", self, other)

    def __rand__(self, other: Any) -> Expression:
        return operation("&", other, self)

    def __or__(self, other: Any) -> Expression:
        return operation("|", self, other)

    def __ror__(self, other: Any) -> Expression:
        return operation("|", other, self)

    def __xor__(self, other: Any) -> Expression:
        return operation("^", self, other)

    def __rxor__(self, other: Any) -> Expression:
        return operation("^", other, self)

    def __lshift__(self, other: Any) -> Expression:
        return _shifted("<<", self, other)

    def __rlshift__(self, other: Any) -> Expression:
        return _shifted("<<", other, self)

    def __rshift__(self, other: Any) -> Expression:
        return _shifted(">>", self, other)

    def __rrshift__(self, other: Any) -> Expression:
        return _shifted(">>", other, self)

    def __lt__(self, other: Any) -> Expression:
        return operation("<", self, other)

    def __le__(self, other: Any) -> Expression:
        return operation("<=", self, other)

    def __gt__(self, other: Any) -> Expression:
        return operation(">", self, other)

    def __ge__(self, other: Any) -> Expression:
        return operation(">=", self, other)

    def __eq__(self, other: Any) -> Any:
        return operation("==", self, other)

    def __ne__(self, other: Any) -> Any:
        return operation("!=", self, other)

    def __neg__(self) -> Expression:
        return operation("negative", self)

    def __invert__(self) -> Expression:
        return operation("not", self)

    def __abs__(self) -> Expression:
        return operation("abs", self)

    __hash__ = object.__hash__

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        # With a number of numpy on the left, numpy is asked first.
        kind = _UFUNCS.get(ufunc.__name__)
        if kind is None or method != "__call__" or options or not _is_numpy_number(inputs[0]):
            raise ImplicitConversionError(
                f"numpy.{ufunc.__name__} does not compute on the GPU; upload arrays of numpy with gw.asarray(x), call "
                f".to_numpy() for what numpy shall compute, or use this library's functions, such as gw.where"
            )
        if kind == "**":
            return _power(*inputs)
        return _shifted(kind, *inputs) if kind in ("<<", ">>") else operation(kind, *inputs)


#: What numpy's numbers call, where one is on the left.
_UFUNCS = {
    "add": "+", "subtract": "-", "multiply": "*", "divide": "/", "floor_divide": "//", "remainder": "%",
    "power": "**", "bitwise_and": "&", "bitwise_or": "|", "bitwise_xor": "^", "left_shift": "<<", "right_shift": ">>",
    "less": "<", "less_equal": "<=", "greater": ">", "greater_equal": ">=", "equal": "==", "not_equal": "!=",
}  # fmt: skip


def _is_numpy_number(value: Any) -> bool:
    return isinstance(value, (np.ndarray, np.generic)) and value.ndim == 0


@dataclass(frozen=True, eq=False, repr=False)
class Expression(Operators):
    """An array that is not stored: the kernel that reads it computes its items.

    Made from leaves, ``gw.f32("x")``, or from Arrays, by Python's operators and this library's functions. Primitives
    and functions take it in place of an Array. ``gw.asarray`` stores it.

    Attributes
    ----------
    kind : str
        ``"leaf"``, ``"component"``, ``"scalar"``, ``"index"``, ``"number"``, ``"cast"``, ``"bitcast"``, ``"select"``,
        ``"gather"``, ``"function"``, or the name of an operation.
    type : str
        ``"u32"``, ``"i32"``, ``"f32"``, ``"u64"``, ``"i64"``, ``"f64"`` or ``"bool"``.
    args : tuple of Expression
    value : object
        By kind: a leaf's Leaf or Bound, a component's too, with its place, a scalar's name, a number's words (of a bool
        0 or 1), a function's WgslFunction. Else None.

    Examples
    --------
    >>> import numpy as np, gridwise_py as gw
    >>> x, y = gw.f32("x"), gw.f32("y")
    >>> larger = gw.where(x > y, x, y)
    >>> larger.numpy(x=np.float32([1, 5]), y=np.float32([2, 3]))
    array([2., 5.], dtype=float32)
    """

    kind: str
    type: str
    args: tuple[Expression, ...] = ()
    value: Hashable = None

    def as_expression(self) -> Expression:
        """Return itself."""
        return self

    def numpy(self, *, size: int | None = None, **arrays: Any) -> np.ndarray:
        """Return its value in numpy.

        Parameters
        ----------
        size : int, optional
            The items, where no leaf says it.
        **arrays : numpy.ndarray or number
            By the names of the leaves and scalars. Arrays on the GPU are copied from there.

        Returns
        -------
        numpy.ndarray
            Of the dtype of its type.

        Raises
        ------
        ArgumentError
            If a leaf is missing.
        LengthError
            If leaves differ in length.
        """
        return value_of(flatten(self), arrays, size)

    def __getitem__(self, key: Any) -> Expression:
        """Return the items at other indices: of u32 or i32, as an expression; those out of range become the nearest."""
        return gather(self, key)

    def __bool__(self) -> NoReturn:
        raise ImplicitConversionError(
            "an expression has no truth value: use gw.where(condition, a, b) to choose, and & | ~ to combine conditions"
        )

    def __array__(self, *_args: Any, **_kwargs: Any) -> NoReturn:
        raise ImplicitConversionError(
            "an expression holds no items; store it with gw.asarray(expression), or give its leaves to .numpy()"
        )

    def __iter__(self) -> NoReturn:
        raise ImplicitConversionError(
            "an expression has no items to iterate over; store it with gw.asarray(expression)"
        )

    def __len__(self) -> NoReturn:
        raise DatatypeError("an expression has no length of its own: that of its leaves is known when it is computed")

    def __repr__(self) -> str:
        shown = f" {self.value.name!r}" if isinstance(self.value, Leaf) else ""
        return f"Expression({self.kind}{shown}, {self.type})"


# ---- what is known later


class Later(Operators):
    """What stands for an expression whose type is known later: ``gw.result``, and what is computed from it."""

    __slots__ = ("_build",)

    def __init__(self, build: Callable[[Mapping[str, Any], dict[int, Any]], Any]):
        self._build = build

    @classmethod
    def named(cls, name: str) -> Later:
        """Return what stands for one of the names that `resolved` is given."""

        def build(given: Mapping[str, Any], _made: dict[int, Any]) -> Any:
            if name not in given:
                raise ArgumentError(f"gw.{name} is not known here; known are {', '.join(given)}")
            return given[name]

        return cls(build)

    def resolve(self, given: Mapping[str, Any], made: dict[int, Any]) -> Any:
        """Return the expression, given what names stand for; `made` keeps what several others use."""
        if id(self) not in made:
            made[id(self)] = self._build(given, made)
        return made[id(self)]

    def as_expression(self) -> NoReturn:
        """Raise: its type is not known."""
        raise ArgumentError("gw.result is for output= of a primitive, which says what it is")

    def __getattr__(self, name: str) -> Later:
        if name.startswith("_"):
            raise AttributeError(name)
        return Later(lambda given, made: getattr(self.resolve(given, made), name))

    def __getitem__(self, key: Any) -> NoReturn:
        raise ArgumentError("the items of gw.result are not indexed; its fields are attributes, such as gw.result.sum")

    def __bool__(self) -> NoReturn:
        raise ImplicitConversionError(
            "an expression has no truth value: use gw.where(condition, a, b) to choose, and & | ~ to combine conditions"
        )


def deferred(function: FunctionT) -> FunctionT:
    """Make a function of expressions wait where an argument is known later."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if not any(isinstance(value, Later) for value in (*args, *kwargs.values())):
            return function(*args, **kwargs)

        def build(given: Mapping[str, Any], made: dict[int, Any]) -> Any:
            def known(value: Any) -> Any:
                return value.resolve(given, made) if isinstance(value, Later) else value

            return function(*map(known, args), **{name: known(value) for name, value in kwargs.items()})

        return Later(build)

    return cast(FunctionT, call)


# ---- leaves


def leaf(name: str, datatype: Any, *, components: int = 1) -> Any:
    """Return the leaf that stands for an argument of ``execute``.

    Parameters
    ----------
    name : str
    datatype : Datatype, str or numpy dtype
        Items of 1 and 2 bytes are computed with as u32, i32, f32 or bool.
    components : int, default 1
        Of 2 to 4 items that belong together, such as a point: the attributes ``x``, ``y``, ``z`` and ``w``.

    Raises
    ------
    ArgumentError
        If it cannot be the name of an argument.
    DatatypeError
        If expressions do not take such items.
    """
    _check_name(name)
    found = _leaf_datatype(datatype, f"leaf {name!r}")
    if isinstance(components, bool) or components not in range(1, _MOST_COMPONENTS + 1):
        raise ArgumentError(f"leaf {name!r}: components must be 1 to {_MOST_COMPONENTS}, not {components!r}")
    if components == 1:
        return Expression("leaf", _computed_type(found), (), Leaf(name, found))
    own = Leaf(name, found, components)
    return Components(
        *(Expression("component", _computed_type(found), (), (own, place)) for place in range(components))
    )


class Components(tuple[Expression, ...]):
    """The expressions of items that belong together; ``x``, ``y``, ``z`` and ``w`` are the first four."""

    __slots__ = ()

    def __new__(cls, *parts: Expression) -> Components:
        return super().__new__(cls, parts)

    def __getattr__(self, name: str) -> Expression:
        place = "xyzw".find(name) if len(name) == 1 else -1
        if not 0 <= place < len(self):
            raise AttributeError(f"a leaf of {len(self)} components has {', '.join('xyzw'[: len(self)])}, not {name!r}")
        return self[place]


def _check_name(name: Any) -> None:
    if not isinstance(name, str) or not name.isidentifier():
        raise ArgumentError(f"the name of a leaf must be a name in Python, such as 'x', not {name!r}")
    if name in _RESERVED or name.startswith(("output", "array_")):
        raise ArgumentError(f"a leaf cannot be called {name!r}, which execute() needs for something else; rename it")


def _leaf_datatype(datatype: Any, what: str) -> Datatype:
    found = datatype if isinstance(datatype, Struct) else as_datatype(datatype, STORAGE_DATATYPES)
    if isinstance(found, Struct):
        raise DatatypeError(f"{what} is of structs; expressions read their fields, {what}[{found.fields[0][0]!r}]")
    if found.name not in STORAGE_DATATYPES:
        remedy = conversion(found.dtype, STORAGE_DATATYPES)
        raise DatatypeError(f"{what} is of {found}, but expressions read real numbers; {remedy}")
    return found


def _computed_type(datatype: Datatype) -> str:
    """Return the type that items are computed with."""
    return "bool" if datatype.name == "bool" else datatype.computed_as


def stored(array: Stored) -> Expression:
    """Return the leaf that is an array.

    Raises
    ------
    DatatypeError
        If expressions do not take its items.
    """
    datatype = array.datatype
    if datatype.name not in STORAGE_DATATYPES:
        _leaf_datatype(datatype, "the array")
    return Expression("leaf", _computed_type(datatype), (), Bound(array))


def stored_field(words: Stored, fields: Sequence[tuple[str, Datatype]], name: str) -> Expression:
    """Return a field of an array of structs.

    Parameters
    ----------
    words : Stored
        The array's words, of u32.
    fields : sequence of (str, Datatype)
        Of its items, each a word.
    name : str

    Raises
    ------
    ArgumentError
        If there is no such field.
    """
    names = [field for field, _ in fields]
    if name not in names:
        raise ArgumentError(f"an Array of structs of {', '.join(names)} has no field {name!r}")
    place = names.index(name)
    word = Expression("component", "u32", (), (Bound(words, len(names)), place))
    kind = fields[place][1].wgsl
    return word if kind == "u32" else Expression("bitcast", kind, (word,))


def scalar(name: str, datatype: Any) -> Expression:
    """Return what stands for a number, given to ``execute`` by its name; another number compiles nothing.

    For the only item of an Array use ``gw.gather(gw.f32("alpha"), 0)``.

    Parameters
    ----------
    name : str
    datatype : Datatype, str or numpy dtype
        Of 4 or 8 bytes.
    """
    _check_name(name)
    found = as_datatype(datatype, VALUE_DATATYPES)
    return Expression("scalar", found.name, (), name)


def _leaf_or_cast(type_name: str, value: Any, components: int) -> Any:
    if isinstance(value, str):
        return leaf(value, type_name, components=components)
    if components != 1:
        raise ArgumentError(f"components= is for a leaf: gw.{type_name}('name', components={components})")
    return converted(type_name, value)


def f32(value: Any, *, components: int = 1) -> Any:
    """Return a leaf of float32 by its name, or an expression converted to float32.

    Parameters
    ----------
    value : str, Expression, Array or number
    components : int, default 1
    """
    return _leaf_or_cast("f32", value, components)


def u32(value: Any, *, components: int = 1) -> Any:
    """Return what `f32` does, in uint32.

    Floats are truncated, and must be in range. Negative integers wrap.

    Parameters
    ----------
    value : str, Expression, Array or number
    components : int, default 1
    """
    return _leaf_or_cast("u32", value, components)


def i32(value: Any, *, components: int = 1) -> Any:
    """Return what `f32` does, in int32.

    Floats are truncated, and must be in range. Large u32 wrap.

    Parameters
    ----------
    value : str, Expression, Array or number
    components : int, default 1
    """
    return _leaf_or_cast("i32", value, components)


def f64(value: Any, *, components: int = 1) -> Any:
    """Return what `f32` does, in float64, which not every device computes with.

    Parameters
    ----------
    value : str, Expression, Array or number
    components : int, default 1
    """
    return _leaf_or_cast("f64", value, components)


def u64(value: Any, *, components: int = 1) -> Any:
    """Return what `u32` does, in uint64.

    Parameters
    ----------
    value : str, Expression, Array or number
    components : int, default 1
    """
    return _leaf_or_cast("u64", value, components)


def i64(value: Any, *, components: int = 1) -> Any:
    """Return what `i32` does, in int64.

    Parameters
    ----------
    value : str, Expression, Array or number
    components : int, default 1
    """
    return _leaf_or_cast("i64", value, components)


#: The number of the item, from 0.
index = Expression("index", "u32")


# ---- making nodes


@deferred
def converted(type_name: str, value: Any) -> Expression:
    """Return an expression converted to another type, as numpy's astype converts."""
    # A number is held as the type that is asked for: 2**31 is none of i32.
    operand = as_node(value, type_name if _is_untyped(value) and type_name != "bool" else None)
    return operand if operand.type == type_name else Expression("cast", type_name, (operand,))


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
    if isinstance(value, Components):
        raise DatatypeError("a leaf of several components is computed with one by one: p.x, p.y")
    return _number(value, type_name)


def _number(value: Any, type_name: str | None) -> Expression:
    if isinstance(value, (bool, np.bool_)):
        own, value = "bool", bool(value)
    elif isinstance(value, np.generic) and value.dtype in _WORD_DTYPES:
        return _held(value.item(), _type_of(value.dtype))
    elif isinstance(value, (int, np.integer)):
        own, value = "i32", int(cast(int, value))
    elif isinstance(value, (float, np.floating)):
        own, value = "f32", float(cast(float, value))
    else:
        raise DatatypeError(
            f"{value!r:.60} cannot be part of an expression; it is made of leaves such as gw.f32('x'), of Arrays, and "
            f"of numbers"
        )
    if type_name in (None, "bool") or own == "bool":
        return _held(value, own)
    if own == "f32" and type_name not in ("f32", "f64"):
        raise DatatypeError(
            f"{value!r} is a float, but the other side is of {type_name}; cast that, gw.f32(x), or give an integer"
        )
    return _held(value, type_name)


def _held(value: Any, type_name: str | None) -> Expression:
    """Return the node of a number; raise where its type cannot hold it."""
    assert type_name is not None
    if type_name == "bool":
        return Expression("number", type_name, (), int(value))
    dtype = NUMPY_TYPES[type_name]
    if dtype.kind in "iu" and not np.iinfo(dtype).min <= value <= np.iinfo(dtype).max:
        raise DatatypeError(f"{value} is not a number of {type_name}; cast the other side, or give another number")
    words = value_words(value, STORAGE_DATATYPES[type_name], "a number")
    return Expression("number", type_name, (), words[: dtype.itemsize // 4])


def _type_of(dtype: np.dtype[Any]) -> str:
    """Return the type of expressions of one of numpy."""
    return next(name for name, each in NUMPY_TYPES.items() if each == dtype)


def _numbers(*values: Any) -> tuple[Any, ...]:
    """Return values, and of arrays of numpy without dimensions their numbers."""
    return tuple(value[()] if isinstance(value, np.ndarray) and value.ndim == 0 else value for value in values)


def _is_untyped(value: Any) -> bool:
    """Whether a value takes the type of the other side."""
    if isinstance(value, np.generic) and value.dtype in _WORD_DTYPES:
        return False
    return isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)


def same_type(what: str, a: Any, b: Any) -> tuple[Expression, Expression]:
    """Return two operands of one type; a Python number takes that of the other.

    Where one has 8 bytes, both become what numpy promotes them to.

    Raises
    ------
    DatatypeError
        If the types differ, and none has 8 bytes; the message names the cast.
    """
    first, second = _operands(a, b)
    if first.type != second.type and (first.type in WIDE_TYPES or second.type in WIDE_TYPES):
        both = _type_of(np.result_type(NUMPY_TYPES[first.type], NUMPY_TYPES[second.type]))
        first, second = converted(both, first), converted(both, second)
    if first.type != second.type:
        types = (first.type, second.type)
        to = next(each for each in ("f32", "i32", "u32") if each in types)
        raise DatatypeError(
            f"{what}: the operands are of {first.type} and {second.type}, and no conversion is made unasked; cast one "
            f"of them, for example gw.{to}(x)"
        )
    return first, second


def _operands(a: Any, b: Any) -> tuple[Expression, Expression]:
    """Return two operands of their own types; a number of Python has that of the other."""
    a, b = _numbers(a, b)
    if _is_untyped(a) and not _is_untyped(b):
        second = as_node(b)
        return _beside(a, second.type), second
    if _is_untyped(b) and not _is_untyped(a):
        first = as_node(a)
        return first, _beside(b, first.type)
    is_float = _is_untyped(a) and any(isinstance(each, (float, np.floating)) for each in (a, b))
    return as_node(a, "f32" if is_float else None), as_node(b, "f32" if is_float else None)


def _beside(number: Any, type_name: str) -> Expression:
    """Return a number beside a type: of that type; beside 8 bytes numpy's keep theirs, and floats are f64."""
    if type_name in WIDE_TYPES:
        if isinstance(number, np.generic):
            size = max(4, number.dtype.itemsize)
            return _held(number.item(), f"{number.dtype.kind}{8 * size}")
        if isinstance(number, float):
            return _held(number, "f64")
    return as_node(number, type_name)


@deferred
def operation(kind: str, *operands: Any) -> Expression:
    """Return an operation of `OPERATIONS` on operands of one type.

    Raises
    ------
    DatatypeError
        If it does not take their type.
    """
    found = OPERATIONS[kind]
    shown = f"a {kind} b" if not kind[0].isalpha() else {"not": "~a", "negative": "-a"}.get(kind, f"gw.{kind}()")
    if found.gives == "bool" and len(operands) == 2:
        operands = _numbers(*operands)
        operands = tuple(_counted(*pair) for pair in (operands, operands[::-1]))
    if found.gives == "bool" and len(operands) == 2:
        if (beyond := _compared_beyond(kind, *operands)) is not None:
            return beyond
        operands = _operands(*operands)
        if {node.type for node in operands} in ({"u64", "i64"}, {"u64", "i32"}):
            return _compared_exactly(kind, *operands)
    if kind == "/":  # of 8 bytes in f64, also by a number that their type does not hold
        operands = tuple(_divided(*pair) for pair in (operands, operands[::-1]))
    nodes = (as_node(operands[0]),) if len(operands) == 1 else same_type(shown, *operands)
    type_name = nodes[0].type
    if kind in ("/", "sqrt", "rint") and type_name in ("u64", "i64"):
        nodes, type_name = tuple(converted("f64", node) for node in nodes), "f64"
    if kind in ("floor", "ceil") and type_name in INTEGERS:
        return nodes[0]
    if type_name not in found.types:
        to = next((each for each in ("f32", "u32") if each in found.types), found.types[0])
        remedy = found.remedy or ("compare it first: x != 0" if to == "bool" else f"cast it, for example gw.{to}(x)")
        raise DatatypeError(f"{shown} is for {', '.join(found.types)}, not for {type_name}; {remedy}")
    if kind == "abs" and type_name in ("u32", "u64"):
        return nodes[0]
    if type_name in found.functions:
        return Expression("function", type_name, nodes, found.functions[type_name])
    return Expression(kind, found.gives or type_name, nodes)


def _divided(number: Any, other: Any) -> Any:
    """Return an operand of a division: of Python's integers and bools beside 8 bytes a float."""
    is_wide = (
        type(number) in (int, bool, np.bool_)
        and isinstance(other, Operators)
        and other.as_expression().type in WIDE_TYPES
    )
    return float(number) if is_wide else number


def _compared_beyond(kind: str, a: Any, b: Any) -> Expression | None:
    """Return a comparison of integers with a whole number that their type does not hold; None for others."""
    number, other = (b, a) if isinstance(a, Operators) else (a, b)
    is_whole = isinstance(number, (int, np.integer)) and _is_untyped(number)
    node = other.as_expression() if is_whole and isinstance(other, Operators) else None
    if node is None or NUMPY_TYPES[node.type].kind not in "iu":
        return None
    ends = np.iinfo(cast(Any, NUMPY_TYPES[node.type]))
    if ends.min <= number <= ends.max:
        return None
    side = 1 if number > 0 else -1
    holds = OPERATIONS[kind].numpy(*((side, 0) if number is a else (0, side)))
    return operation("==" if holds else "!=", node, node)


def _compared_exactly(kind: str, a: Expression, b: Expression) -> Expression:
    """Return a comparison of u64 with integers that may be negative, which numpy compares exactly."""
    signed = a if b.type == "u64" else b
    # As if a negative number were -1, and the other one 0.
    outcome = bool(OPERATIONS[kind].numpy(*((-1, 0) if signed is a else (0, -1))))
    compared = operation(kind, converted("u64", a), converted("u64", b))
    return Expression("select", "bool", (operation("<", signed, 0), as_node(outcome), compared))


def _counted(value: Any, other: Any) -> Any:
    """Return a bool that is compared with a number as 0 or 1, as numpy compares it."""
    if not _is_untyped(other) or _is_untyped(value) or as_node(value).type != "bool":
        return value
    return converted("f32" if isinstance(other, (float, np.floating)) else "i32", value)


@deferred
def _shifted(kind: str, a: Any, bits: Any) -> Expression:
    """Return a shift: WGSL's by a number below 32, else what numpy gives of all bits, or of a negative number."""
    a, bits = _numbers(a, bits)
    items = as_node(a) if not _is_untyped(a) else _beside(a, as_node(bits).type)
    by = _beside(bits, items.type) if _is_untyped(bits) else as_node(bits)
    if items.type != by.type and (items.type in WIDE_TYPES or by.type in WIDE_TYPES):
        items, by = same_type(f"a {kind} b", items, by)
    if items.type not in INTEGERS or by.type not in INTEGERS:
        raise DatatypeError(
            f"a {kind} b is for integers, but the operands are of {items.type} and {by.type}; cast them: gw.u32(x)"
        )
    width = 64 if items.type in WIDE_TYPES else 32
    if by.type in WIDE_TYPES:
        by = operation("minimum", converted("u64", by), 64)
    by = converted("u32", by)  # a negative number is a large one
    if not isinstance(bits, Operators) and int(bits) in range(width):
        return Expression(kind, items.type, (items, by))
    if kind == ">>" and items.type in ("i32", "i64"):
        return Expression(kind, items.type, (items, operation("minimum", by, width - 1)))
    shifted = Expression(kind, items.type, (items, by))
    return Expression("select", items.type, (operation("<", by, width), shifted, as_node(0, items.type)))


_MOST_MULTIPLICATIONS = 64


def _whole_exponent(base: Expression, b: Any) -> int | None:
    """Return an exponent that multiplications make: a small whole number that is known; None for others."""
    is_number = isinstance(b, (int, float, np.integer, np.floating)) and not isinstance(b, bool)
    if not is_number or base.type == "bool":
        return None
    number = cast(float, b)
    is_float = base.type in ("f32", "f64")
    if isinstance(b, (float, np.floating)) and (not is_float or not float(number).is_integer()):
        return None
    least = -_MOST_MULTIPLICATIONS if is_float else 1
    return int(number) if least <= number <= _MOST_MULTIPLICATIONS and number else None


@deferred
def _power(a: Any, b: Any) -> Expression:
    """Return a power: by a small whole number by multiplications, and a division, else by WGSL's pow."""
    a, b = _numbers(a, b)
    if isinstance(b, (float, np.floating)) and b == 0.5 and not _is_untyped(a) and as_node(a).type in ("f32", "f64"):
        return operation("sqrt", a)  # as numpy does
    whole = None if _is_untyped(a) else _whole_exponent(as_node(a), b)
    if whole is None:
        return operation("**", a, b)
    base, result, power = as_node(a), None, abs(whole)
    while power:
        if power & 1:
            result = base if result is None else operation("*", result, base)
        power >>= 1
        if power:
            base = operation("*", base, base)
    assert result is not None
    return result if whole > 0 else operation("/", 1.0, result)


@deferred
def gather(x: Any, indices: Any) -> Expression:
    """Return the items of `x` at indices, ``x[indices]``.

    Parameters
    ----------
    x : Expression or Array
    indices : Expression, Array or int
        Integers. Below 0 they become 0, behind the end the last.
    """
    items = as_node(x)
    if isinstance(indices, (slice, list, tuple, str, bytes)) or indices is None:
        raise DatatypeError(
            f"an expression is indexed by an expression of integers, not by {indices!r:.40}; slice its Arrays first"
        )
    at = as_node(indices, "u32" if _is_untyped(indices) and indices >= 0 else None)
    if at.type in ("i64", "u64"):
        at = converted("u32", operation("minimum", operation("maximum", at, 0), 2**32 - 1))
    if at.type not in ("u32", "i32"):
        remedy = "a mask chooses with gw.compress(mask, x)" if at.type == "bool" else "cast them: gw.u32(x)"
        raise DatatypeError(f"indices are of {at.type}, but must be integers; {remedy}")
    return Expression("gather", items.type, (items, at))
