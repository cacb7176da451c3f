"""Operators on structs: the least or greatest with its index, moments, the first and the last, and field by field."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from ..errors import DatatypeError
from .datatype import VALUE_DATATYPES, Datatype, Struct
from .operations import OPERATIONS, operation_text
from .operators import Add, And, BinOp, Max, Min, Multiply, Or, TracedOp, Xor

_LAST_INDEX = 2**32 - 1
_INFINITY = 0x7F800000
#: The rank of every NaN: one more than that of infinity.
_NAN = 0xFF000001


@dataclass(frozen=True)
class _Form:
    """What an operator does on structs of some kind.

    Attributes
    ----------
    fits : callable
        Whether it combines items with fields of these types.
    wanted : str
        An expression that it takes, for messages.
    text : callable
        From the fields' names and types: the WGSL of ``combine``.
    twin : callable
        The same in numpy.
    struct : Struct, optional
        The one that it is made for.
    """

    fits: Callable[[tuple[str, ...]], bool]
    wanted: str
    text: Callable[[tuple[tuple[str, str], ...]], str]
    twin: Callable[[np.ndarray, np.ndarray], np.ndarray]
    struct: Struct | None = None

    def __call__(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return self.twin(a, b)


class StructOp(BinOp):
    """An operator of this library's own on structs."""

    numpy: _Form  # pyright: ignore[reportIncompatibleMethodOverride]  # a callable, too

    def _check_definition(self) -> None:
        """Refuse nothing: the texts are this library's own."""

    @property
    def builtin(self) -> bool:
        """Whether the text is this library's own: yes."""
        return True

    @property
    def rounded(self) -> bool:
        """Whether its text rounds products by themselves where the order is fixed."""
        return self == Moments

    def text_for(self, datatype: Datatype) -> str:
        """Return the text for items of a datatype."""
        self._check_takes(datatype)
        return self.numpy.text(_fields(datatype))

    def _check_takes(self, datatype: Datatype) -> None:
        if not isinstance(datatype, Struct) or not self.numpy.fits(tuple(of for _, of in _fields(datatype))):
            raise DatatypeError(f"{self._title} combines structs such as {self.numpy.wanted}, not items of {datatype}")

    def __reduce_ex__(self, protocol: Any) -> Any:
        # Copies, and what comes back from a pickle, are the operator itself.
        struct = self.numpy.struct
        return (_named, (self.name,)) if struct is None else (_on, (_FIELD_BY_FIELD[self.name][0], struct))


def _fields(datatype: Datatype) -> tuple[tuple[str, str], ...]:
    assert isinstance(datatype, Struct)
    return tuple((name, of.wgsl) for name, of in datatype.fields)


# ---- the least or greatest, with its index


def _names(items: np.ndarray) -> tuple[str, ...]:
    """Return the names of the fields of structured items."""
    names = items.dtype.names
    assert names, "items of a Struct have fields"
    return tuple(names)


def rank_text(type_name: str, largest: bool) -> str:
    """Return the statements that give the rank of a value, whose bits are ``word``: the greatest rank wins.

    Of floats, −0 and +0 have one rank, and every NaN has the greatest, as in numpy. A float's magnitude with its sign,
    as an integer in two's complement, is in the order of the floats. Made to start at 0 with negative infinity, it
    leaves all NaNs above positive infinity. These are four instructions.
    """
    if type_name == "f32":
        signed = "magnitude - sign" if largest else "sign - magnitude"
        return (
            "let sign = bitcast<u32>(bitcast<i32>(word) >> 31u); let magnitude = (word & 0x7fffffffu) ^ sign; "
            f"return min({signed} + {_INFINITY:#x}u, {_NAN:#x}u);"
        )
    ascending = "word" if type_name == "u32" else "(word ^ 0x80000000u)"
    return f"return {ascending};" if largest else f"return ~{ascending};"


def _rank(values: np.ndarray, largest: bool) -> np.ndarray:
    word = np.ascontiguousarray(values).view(np.uint32)
    with np.errstate(over="ignore"):
        if values.dtype.kind == "f":
            sign = (word.view(np.int32) >> np.int32(31)).view(np.uint32)
            magnitude = (word & np.uint32(0x7FFFFFFF)) ^ sign
            signed = magnitude - sign if largest else sign - magnitude
            return np.minimum(signed + np.uint32(_INFINITY), np.uint32(_NAN))
        ascending = word if values.dtype.kind == "u" else word ^ np.uint32(0x80000000)
    return ascending if largest else ~ascending


class ArgOp(StructOp):
    """An operator that keeps the item with the greatest rank."""


def _arg_operator(name: str, largest: bool) -> ArgOp:
    def text(fields: tuple[tuple[str, str], ...]) -> str:
        (value, type_name), (index, _), *_ = fields
        return f"""\
fn rank(word: u32) -> u32 {{ {rank_text(type_name, largest)} }}
fn combine(a: T, b: T) -> T {{
  let first = rank(bitcast<u32>(a.{value}));
  let second = rank(bitcast<u32>(b.{value}));
  if (second > first || (second == first && b.{index} < a.{index})) {{ return b; }}
  return a;
}}"""

    def twin(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        value, index = _names(a)[:2]
        first, second = _rank(a[value], largest), _rank(b[value], largest)
        return np.where((second > first) | ((second == first) & (b[index] < a[index])), b, a)

    def identity(datatype: Datatype) -> tuple[Any, ...]:
        assert isinstance(datatype, Struct)
        value = datatype.fields[0][1]
        return (value.lowest if largest else value.highest, _LAST_INDEX, *(0 for _ in datatype.fields[2:]))

    form = _Form(lambda types: len(types) >= 2 and types[1] == "u32", "gw.struct(value=x, index=gw.index)", text, twin)
    return ArgOp(name, identity, form, empty=False)


#: The item with the smallest first field; of several the one with the smallest second field, an index of u32.
ArgMin: ArgOp = _arg_operator("argmin", largest=False)
#: The item with the largest first field; of several the one with the smallest second field, an index of u32.
ArgMax: ArgOp = _arg_operator("argmax", largest=True)


def _arg_min_max() -> StructOp:
    def text(fields: tuple[tuple[str, str], ...]) -> str:
        (low, type_name), (low_index, _), (high, _), (high_index, _) = fields
        better = {
            value: f"second > first || (second == first && b.{index} < a.{index})"
            for value, index in ((low, low_index), (high, high_index))
        }
        steps = [
            f"""\
  {{
    let first = {value}_rank(bitcast<u32>(a.{value}));
    let second = {value}_rank(bitcast<u32>(b.{value}));
    if ({better[value]}) {{ found.{value} = b.{value}; found.{index} = b.{index}; }}
  }}"""
            for value, index in ((low, low_index), (high, high_index))
        ]
        ranks = [
            f"fn {value}_rank(word: u32) -> u32 {{ {rank_text(type_name, largest)} }}"
            for value, largest in ((low, False), (high, True))
        ]
        return "\n".join([*ranks, "fn combine(a: T, b: T) -> T {", "  var found = a;", *steps, "  return found;", "}"])

    def twin(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        found = np.empty(np.broadcast_shapes(a.shape, b.shape), a.dtype)
        names = _names(a)
        for value, index, largest in ((*names[:2], False), (*names[2:], True)):
            first, second = _rank(a[value], largest), _rank(b[value], largest)
            is_better = (second > first) | ((second == first) & (b[index] < a[index]))
            for name in (value, index):
                found[name] = np.where(is_better, b[name], a[name])
        return found

    def identity(datatype: Datatype) -> tuple[Any, ...]:
        assert isinstance(datatype, Struct)
        value = datatype.fields[0][1]
        return value.highest, _LAST_INDEX, value.lowest, _LAST_INDEX

    def fits(types: tuple[str, ...]) -> bool:
        return len(types) == 4 and types[0] == types[2] and types[1::2] == ("u32", "u32")

    wanted = "gw.struct(min=x, argmin=gw.index, max=x, argmax=gw.index)"
    return StructOp("argminmax", identity, _Form(fits, wanted, text, twin), empty=False)


#: `ArgMin` of the first two fields and `ArgMax` of the last two.
ArgMinMax: StructOp = _arg_min_max()


def _arg_rank() -> StructOp:
    def text(fields: tuple[tuple[str, str], ...]) -> str:
        high, low, index = (name for name, _ in fields)
        return f"""\
fn combine(a: T, b: T) -> T {{
  let before = b.{low} > a.{low} || (b.{low} == a.{low} && b.{index} < a.{index});
  if (b.{high} > a.{high} || (b.{high} == a.{high} && before)) {{ return b; }}
  return a;
}}"""

    def twin(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        high, low, index = _names(a)
        before = (b[low] > a[low]) | ((b[low] == a[low]) & (b[index] < a[index]))
        return np.where((b[high] > a[high]) | ((b[high] == a[high]) & before), b, a)

    form = _Form(lambda types: types == ("u32",) * 3, "gw.struct(high=x, low=y, index=gw.index) of u32", text, twin)
    return StructOp("argmax or argmin", (0, 0, _LAST_INDEX), form, empty=False)


#: The item with the greatest rank of 64 bits, its first two fields; of several the one with the smallest third field.
ArgRank: StructOp = _arg_rank()


# ---- field by field


def _by_fields(kinds: Callable[[int], str]) -> tuple[Callable[..., str], Callable[..., np.ndarray]]:
    """Return the text and the twin of an operator that is one of `OPERATIONS` on each field."""

    def text(fields: tuple[tuple[str, str], ...]) -> str:
        parts = (
            operation_text(kinds(k), type_name, type_name, [f"a.{name}", f"b.{name}"], 1)
            for k, (name, type_name) in enumerate(fields)
        )
        return f"fn combine(a: T, b: T) -> T {{ return T({', '.join(parts)}); }}"

    def twin(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        found = np.empty(np.broadcast_shapes(a.shape, b.shape), a.dtype)
        with np.errstate(all="ignore"):
            for k, name in enumerate(a.dtype.names or ()):
                found[name] = OPERATIONS[kinds(k)].numpy(a[name], b[name])
        return found

    return text, twin


_FIELD_BY_FIELD = {
    op.name: (op, kind) for op, kind in ((Add, "+"), (Multiply, "*"), (Min, "minimum"), (Max, "maximum"))
}


#: The operations of expressions that built-in operators are.
FIELD_OPERATIONS = {name: kind for name, (_, kind) in _FIELD_BY_FIELD.items()} | {"and": "&", "or": "|", "xor": "^"}


@lru_cache(maxsize=256)
def _on(op: BinOp, datatype: Struct) -> StructOp:
    kind = _FIELD_BY_FIELD[op.name][1]
    text, twin = _by_fields(lambda _: kind)
    identity = tuple(op.identity_for(of) for _, of in datatype.fields)
    form = _Form(lambda types: len(types) == len(identity), "gw.struct(a=x, b=y)", text, twin, datatype)
    return StructOp(op.name, identity, form, empty=op.empty)


def on_items(op: BinOp, datatype: Datatype) -> BinOp:
    """Return an operator for items of a datatype: of structs, sums, products, minima and maxima are field by field."""
    if isinstance(op, TracedOp):
        return op.on(datatype)
    own = _FIELD_BY_FIELD.get(op.name)
    return _on(op, datatype) if isinstance(datatype, Struct) and own is not None and op is own[0] else op


class _EachField(StructOp):
    """An operator of each field's own."""

    def __reduce_ex__(self, protocol: Any) -> Any:
        struct = self.numpy.struct
        assert struct is not None
        return each_field, (tuple(self.name.split(", ")), struct)


@lru_cache(maxsize=256)
def each_field(names: tuple[str, ...], datatype: Struct) -> StructOp:
    """Return an operator that combines each field with the built-in operator of that name."""
    kinds = [FIELD_OPERATIONS[name] for name in names]
    text, twin = _by_fields(lambda k: kinds[k])
    ops = {op.name: op for op in (Add, Multiply, Min, Max, And, Or, Xor)}
    identity = tuple(ops[name].identity_for(of) for name, (_, of) in zip(names, datatype.fields, strict=True))
    form = _Form(lambda types: len(types) == len(identity), "gw.struct(a=x, b=y)", text, twin, datatype)
    return _EachField(", ".join(names), identity, form)


def field_operators(op: BinOp) -> tuple[str, ...]:
    """Return the names of the operators of `each_field`; none for another operator."""
    return tuple(op.name.split(", ")) if isinstance(op, _EachField) else ()


def _min_max() -> StructOp:
    text, twin = _by_fields(lambda k: ("minimum", "maximum")[k])

    def identity(datatype: Datatype) -> tuple[Any, ...]:
        assert isinstance(datatype, Struct)
        (_, low), (_, high) = datatype.fields
        return low.highest, high.lowest

    form = _Form(lambda types: len(types) == 2, "gw.struct(min=x, max=x)", text, twin)
    return StructOp("minmax", identity, form, empty=False)


#: The minimum of the first field and the maximum of the second; NaN propagates.
MinMax: StructOp = _min_max()


# ---- moments


def _moments_text(fields: tuple[tuple[str, str], ...]) -> str:
    (count, _), *origin, (mean, _), (m2, _) = fields
    apart = ""
    for name, _ in origin:  # of integers the distance is exact before it is a float
        above = f"f32(u32(b.{name}) - u32(a.{name}))"
        below = f"f32(u32(a.{name}) - u32(b.{name}))"
        apart = f" + select(-{below}, {above}, b.{name} >= a.{name})"
    first = ", ".join(["count", *(f"a.{name}" for name, _ in origin)])
    return f"""\
fn combine(a: T, b: T) -> T {{
  if (a.{count} == 0u) {{ return b; }}
  if (b.{count} == 0u) {{ return a; }}
  let count = a.{count} + b.{count};
  let share = f32(b.{count}) / f32(count);
  let delta = (b.{mean} - a.{mean}){apart};
  let between = rounded(rounded(delta * delta) * rounded(f32(a.{count}) * share));
  return T({first}, a.{mean} + rounded(delta * share), (a.{m2} + b.{m2}) + between);
}}"""


def _moments_twin(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    count, *origin, mean, m2 = _names(a)
    found = np.empty(np.broadcast_shapes(a.shape, b.shape), a.dtype)
    found[count] = a[count] + b[count]
    with np.errstate(all="ignore"):
        share = b[count] / found[count].astype(np.float64)
        delta = b[mean].astype(np.float64) - a[mean]
        for name in origin:
            found[name], delta = a[name], delta + (b[name].astype(np.float64) - a[name])
        found[mean] = a[mean] + delta * share
        found[m2] = a[m2].astype(np.float64) + b[m2] + delta * delta * a[count] * share
    return np.where(a[count] == 0, b, np.where(b[count] == 0, a, found))


def _zeros(datatype: Datatype) -> tuple[int, ...]:
    assert isinstance(datatype, Struct)
    return tuple(0 for _ in datatype.fields)


#: Number, mean, and sum of squared distances from the mean: three fields of u32, f32 and f32. Of one value x they are
#: 1, x and 0, or NaN in place of the 0 where x is infinite or NaN. Of integers there is one field more, behind the
#: number: one of the items, which the mean is relative to; of one value x they are 1, x, 0 and 0. Source: T. Chan, G.
#: Golub and R. LeVeque, "Updating formulae and a pairwise algorithm for computing sample variances" (1979).
Moments: StructOp = StructOp(
    "moments", _zeros,
    _Form(
        lambda types: types[:1] + types[-2:] == ("u32", "f32", "f32") and types[1:-2] in ((), ("i32",), ("u32",)),
        "gw.struct(count=gw.u32(1), mean=x, m2=gw.f32(0))",
        _moments_text, _moments_twin,
    ),
)  # fmt: skip


def _wide_text(fields: tuple[tuple[str, str], ...]) -> str:
    count, low, middle, high = (name for name, _ in fields)
    return f"""\
fn combine(a: T, b: T) -> T {{
  let low = a.{low} + b.{low};
  let half = a.{middle} + b.{middle};
  let middle = half + u32(low < a.{low});
  return T(a.{count} + b.{count}, low, middle, a.{high} + b.{high} + u32(half < a.{middle} || middle < half));
}}"""


def _wide_twin(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    count, low, middle, high = _names(a)
    found = np.empty(np.broadcast_shapes(a.shape, b.shape), a.dtype)
    found[count], found[low], half = a[count] + b[count], a[low] + b[low], a[middle] + b[middle]
    found[middle] = half + (found[low] < a[low])
    found[high] = a[high] + b[high] + ((half < a[middle]) | (found[middle] < half))
    return found


#: Number, and the exact sum of integers as three words in two's complement, the lowest first: four fields of u32.
WideSum: StructOp = StructOp(
    "sum in 96 bits", _zeros,
    _Form(lambda types: types == ("u32",) * 4, "gw.struct(count=…, low=…, middle=…, high=…)", _wide_text, _wide_twin),
)  # fmt: skip


class SpreadOp(StructOp):
    """An operator that adds distances of items of some datatype, and their squares, in float64."""

    @property
    def items(self) -> str:
        """The name of the datatype."""
        return self.name.rpartition(" ")[2]

    @property
    def doubles(self) -> bool:
        """Whether its text computes in float64: yes."""
        return True


def _spread_text(fields: tuple[tuple[str, str], ...]) -> str:
    sums: list[str] = []
    for (low, _), (high, _) in (fields[:2], fields[2:]):
        a, b = (f"f64_of(vec2<u32>({item}.{low}, {item}.{high}))" for item in "ab")
        sums.append(f"words_of_f64(rounded64({a} + {b}))")
    return f"""\
fn combine(a: T, b: T) -> T {{
  let total = {sums[0]};
  let squares = {sums[1]};
  return T(total.x, total.y, squares.x, squares.y);
}}"""


def _spread_twin(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    words = [np.ascontiguousarray(each).view(np.float64) for each in np.broadcast_arrays(a, b)]
    return np.add(*words).view(a.dtype)


#: By datatype: the sum of the distances of items from one number, and that of their squares, as the words of two
#: numbers of float64. What is reduced are items beside that number: two words each (lib/partial_spread.wgsl). Source:
#: T. Chan, G. Golub and R. LeVeque, "Algorithms for computing the sample variance" (1983), shifted data.
SPREADS: dict[str, SpreadOp] = {
    name: SpreadOp(
        f"sums of distances of {name}", _zeros,
        _Form(lambda types: types == ("u32",) * 4, "gw.struct(low=…, high=…, …) of u32", _spread_text, _spread_twin),
    )
    for name in VALUE_DATATYPES
}  # fmt: skip


# ---- the first and the last


def _end_operator(name: str, kept: str, other: str) -> StructOp:
    def text(fields: tuple[tuple[str, str], ...]) -> str:
        return (
            f"fn combine(a: T, b: T) -> T {{ if ({kept}.{fields[0][0]} != 0u) {{ return {kept}; }} return {other}; }}"
        )

    def twin(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        items = {"a": a, "b": b}
        return np.where(items[kept][_names(a)[0]] != 0, items[kept], items[other])

    form = _Form(lambda types: types[0] == "u32", "gw.struct(is_item=gw.u32(1), value=x)", text, twin)
    return StructOp(name, _zeros, form, commutative=False)


#: The first item whose first field, of u32, is not 0.
First: StructOp = _end_operator("first", "a", "b")
#: The last item whose first field, of u32, is not 0.
Last: StructOp = _end_operator("last", "b", "a")

_BY_NAME: dict[str, StructOp] = {
    op.name: op for op in (ArgMin, ArgMax, ArgMinMax, ArgRank, MinMax, Moments, WideSum, *SPREADS.values(), First, Last)
}


def _named(name: str) -> StructOp:
    return _BY_NAME[name]
