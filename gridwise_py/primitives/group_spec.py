"""What a group-by computes, as data: the words that keys are sorted by, and the reductions of sorted rows.

All expressions of a call become one program, so a value that several aggregates need is computed, and moved, once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NoReturn, cast

import numpy as np

from ..errors import ArgumentError, DatatypeError
from ..types.datatype import DATATYPES, ITEM_DATATYPES, Datatype, Struct, as_datatype
from ..types.expression import Expression, Operators, as_node, converted, leaf
from ..types.expression_functions import StructExpression, bitcast, isnan, moments, result, sqrt, truth, where
from ..types.operators import Add, And, BinOp, Max, Min, Multiply, Or, Xor, as_binop
from ..types.options import integer
from ..types.program import Flat, Leaf, flatten
from ..types.struct_operators import FIELD_OPERATIONS, First, Last, Moments, each_field, on_items

#: The names of aggregates.
AGGREGATES: tuple[str, ...] = (
    "sum", "prod", "min", "max", "mean", "var", "std", "any", "all", "first", "last", "count", "size",
    "median", "quantile", "nunique",
)  # fmt: skip
#: Those that need the items of each group in order, which `group_by` computes and `GroupBy` does not.
ORDERED = ("median", "quantile", "nunique")
_OF_ROWS = ("count", "size")
#: What the third part of an aggregate is if it is not given: the correction, or the quantile.
_OPTIONS = {"var": 0.0, "std": 0.0, "quantile": 0.5}
# Modules whose functions stand for what they compute.
_SOURCES = (__name__.partition(".")[0], "numpy", "builtins")
#: The operators that names of aggregates stand for.
OPERATORS = {"sum": Add, "prod": Multiply, "min": Min, "max": Max}
# A vector of WGSL has four words, and one counts the groups.
_MOST_WORDS = 3
_MOST_KEY_BITS = 64
_RESERVED = ("n", "count", "keys", "trials", "encoder", "timing", "enable_gpu_timing", "enable_cpu_timing")
_NAN = 0x7FC00000
_SIGN = 0x80000000


class Count:
    """The type of `count`."""

    def __repr__(self) -> str:
        return "gw.count"


#: The aggregate that is the number of rows of a group: ``gw.group_by(keys, rows=gw.count)``.
count = Count()


@dataclass(frozen=True)
class Store:
    """An output of a reduction.

    Attributes
    ----------
    name : str
    datatype : Datatype
    form : str
        ``"result"`` for the result itself, ``"field"`` for a field of it, ``"some"`` for a field that is NaN where
        another one, a count, is 0; else the name of the aggregate.
    places : tuple of int
        The fields that it is made of.
    correction : float
        What the divisor of a variance is less than the number of rows.
    """

    name: str
    datatype: Datatype
    form: str = "result"
    places: tuple[int, ...] = ()
    correction: float = 0.0

    def expression(self) -> Any:
        """Return the expression of ``gw.result`` that is stored."""
        fields = [getattr(result, "abc"[k]) for k in self.places]
        if self.form == "field":
            return fields[0]
        if self.form in ("some", "mean"):
            value = fields[0] / converted("f32", fields[1]) if self.form == "mean" else fields[0]
            return where(fields[1] != 0, value, float("nan"))
        rows, _, squares = fields
        left = converted("f32", rows) - self.correction
        variance = where(left > 0.0, squares / left, float("nan"))
        return variance if self.form == "var" else sqrt(variance)


@dataclass(frozen=True)
class GroupPass:
    """One reduction of the sorted rows.

    Attributes
    ----------
    op : BinOp
    datatype : Datatype
        Of the items.
    places : tuple of int
        The results of the program that are the words of an item; none where it is a column of 8 bytes.
    column : str
        The argument that is that column.
    stores : tuple of Store
    """

    op: BinOp
    datatype: Datatype
    places: tuple[int, ...]
    column: str
    stores: tuple[Store, ...]


@dataclass(frozen=True)
class GroupKey:
    """A column of keys.

    Attributes
    ----------
    name : str
        The output's.
    datatype : Datatype
        Of what is stored.
    type : str
        Of its expression: u32, i32, f32 or bool; empty for a column of 8 bytes.
    bits : int
        How many bits of the code it takes.
    shift : int
        Where they are.
    """

    name: str
    datatype: Datatype
    type: str
    bits: int
    shift: int = 0


@dataclass(frozen=True)
class GroupSpec:
    """What a group-by computes.

    Attributes
    ----------
    flat : Flat
        Its first results are the words of the sorted keys, unless `column` is; the others are items.
    keys : tuple of GroupKey
    datatype : Datatype
        That keys are sorted as.
    end_bit : int or None
        They are sorted by the bits below it.
    is_coded : bool
        Whether the sorted keys are codes that pack the columns.
    columns : tuple of (str, Datatype)
        The arguments of 8 bytes, which expressions do not read; that of the keys is called ``"keys"``.
    passes : tuple of GroupPass
    """

    flat: Flat
    keys: tuple[GroupKey, ...]
    datatype: Datatype
    end_bit: int | None
    is_coded: bool
    columns: tuple[tuple[str, Datatype], ...]
    passes: tuple[GroupPass, ...]

    @property
    def key_words(self) -> int:
        """How many results of the program are words of keys."""
        return 0 if self.columns and self.columns[0][0] == "keys" else self.datatype.itemsize_bytes // 4

    @property
    def key_mask(self) -> int | None:
        """The bits of the sorted keys that count, where these may have others: of an only column that is no code.

        Kernels that sort ignore other bits anyway, and read a column faster than an expression of it; so those that
        come after apply it.
        """
        if self.is_coded or self.key_words != 1 or self.end_bit is None or self.end_bit >= 32:
            return None
        return (1 << self.end_bit) - 1

    @property
    def stores(self) -> tuple[Store, ...]:
        """The outputs, besides the keys and the count, in the order in which they were given."""
        return tuple(store for each in self.passes for store in each.stores)

    def without_arrays(self) -> GroupSpec:
        """Return it with names in place of arrays: what is equal for calls with other arrays."""
        return replace(self, flat=self.flat.without_arrays())


def group_spec(
    keys: Any,
    aggregates: Mapping[str, Any],
    *,
    key_bits: int | Sequence[int | None] | None = None,
    skipna: bool = False,
    wide_has_nan: bool = True,
    what: str = "GroupBy",
) -> GroupSpec:
    """Return what a group-by computes.

    Parameters
    ----------
    keys : Datatype, Expression, StructExpression, sequence or mapping of these
        A datatype is an argument called ``keys``.
    aggregates : mapping from str to object
    key_bits : int or sequence of int, optional
    skipna : bool
        Whether NaNs are left out, which kernels do for f32.
    wide_has_nan : bool
        Whether floats of 8 bytes may have NaNs, so that they are refused together with `skipna`.
    what : str
        For messages.

    Raises
    ------
    ArgumentError, DatatypeError
    """
    columns: list[tuple[str, Datatype]] = []
    found, words, wide = _keys(keys, key_bits, what)
    if wide is not None:
        columns.append(("keys", wide))
    if not aggregates:
        raise ArgumentError(f"{what} needs an aggregate, such as total=(x, gw.Add) or rows=gw.count")
    packing = _Packing(what, skipna, wide_has_nan)
    for name, given in aggregates.items():
        if not is_aggregate_name(name):
            raise ArgumentError(f"{what}: an aggregate cannot be called {name!r}; rename it")
        packing.add(name, given)
    nodes, passes = packing.finished()
    flat = flatten(*words, *nodes)
    passes = tuple(replace(each, places=tuple(k + len(words) for k in each.places)) for each in passes)
    columns += packing.columns
    is_coded = len(found) > 1 or next(iter(found)).type in ("f32", "bool")
    datatype = wide or DATATYPES.get(_sorted_as(found, words)) or ITEM_DATATYPES["u64"]
    end_bit = None if wide is not None else sum(key.bits for key in found)
    return GroupSpec(flat, found, datatype, end_bit, is_coded, tuple(columns), passes)


def is_aggregate_name(name: str) -> bool:
    """Whether an output of `GroupBy` can be called so."""
    return name.isidentifier() and name not in _RESERVED and not name.startswith("output_")


# ---- keys


def _sorted_as(keys: tuple[GroupKey, ...], words: Sequence[Expression]) -> str:
    return words[0].type if len(words) == 1 else "u64"


def _key_columns(keys: Any, what: str) -> dict[str, Any]:
    """Return the columns of keys by the names of outputs."""
    if isinstance(keys, StructExpression):
        keys = keys.fields
    if isinstance(keys, Mapping):
        named = {f"output_keys_{name}": each for name, each in cast(Mapping[str, Any], keys).items()}
    elif isinstance(keys, (tuple, list)):
        named = {f"output_keys_{k}": each for k, each in enumerate(cast(Sequence[Any], keys))}
    else:
        return {"output_keys": keys}
    if not named:
        raise ArgumentError(f"{what} needs a column of keys")
    return named


def _keys(
    keys: Any, key_bits: int | Sequence[int | None] | None, what: str
) -> tuple[tuple[GroupKey, ...], list[Expression], Datatype | None]:
    """Return the columns, the words of the sorted keys, and the datatype of a column of 8 bytes."""
    named = _key_columns(keys, what)
    given = [None] * len(named) if key_bits is None else [key_bits] if isinstance(key_bits, int) else list(key_bits)
    if len(given) != len(named):
        raise ArgumentError(f"{what}: key_bits has {len(given)} numbers, but there are {len(named)} columns of keys")
    nodes: list[Expression] = []
    found: list[GroupKey] = []
    for (name, column), asked in zip(named.items(), given, strict=True):
        if not isinstance(column, Operators):
            datatype = as_datatype(column, ITEM_DATATYPES)
            if datatype.itemsize_bytes == 8 and not datatype.is_several:
                if len(named) > 1:
                    raise DatatypeError(
                        f"{what}: a column of keys of {datatype} cannot be one of several; give columns of up to 4 "
                        f"bytes, and key_bits= where they are more than {_MOST_KEY_BITS} bits together"
                    )
                bits = 64 if asked is None else integer("key_bits", asked, 1)
                return (GroupKey(name, datatype, "", bits),), [], datatype
            column = leaf(name.removeprefix("output_"), datatype)
        node = as_node(column)
        bits = _bits_of(node, asked, what)
        stored = as_datatype("u32" if node.type == "bool" else node.type)
        nodes.append(node)
        found.append(GroupKey(name, stored, node.type, bits))
    total = sum(key.bits for key in found)
    if total > _MOST_KEY_BITS:
        described = " + ".join(str(key.bits) for key in found)
        raise ArgumentError(
            f"{what}: the keys have {described} = {total} bits, but at most {_MOST_KEY_BITS} are sorted by; say with "
            f"key_bits=(…) how many bits each column needs, or combine columns first, for example a * 100 + b"
        )
    if len(nodes) == 1 and nodes[0].type in ("u32", "i32"):
        key = found[0]
        return tuple(found), [bitcast("u32", nodes[0]) if key.bits < 32 else nodes[0]], None
    return _packed(nodes, found)


def _bits_of(node: Expression, asked: Any, what: str) -> int:
    most = 1 if node.type == "bool" else 32
    if asked is None:
        return most
    bits = integer("key_bits", asked, 1)
    if bits > most or (node.type == "f32" and bits != most):
        raise ArgumentError(
            f"{what}: key_bits={bits} for a column of {node.type}, which has {most}; give fewer bits for integers only"
        )
    return bits


def _code(node: Expression, key: GroupKey) -> Expression:
    """Return u32 whose order is that of the keys; equal keys have one code."""
    if node.type == "bool":
        return converted("u32", node)
    if node.type == "u32":
        return node if key.bits == 32 else node & ((1 << key.bits) - 1)
    if node.type == "i32":
        word = bitcast("u32", node)
        return word ^ _SIGN if key.bits == 32 else word & ((1 << key.bits) - 1)
    word = bitcast("u32", where(isnan(node), bitcast("f32", as_node(_NAN, "u32")), node))
    word = where(word == _SIGN, as_node(0, "u32"), word)  # −0 is +0
    return where(word >= _SIGN, ~word, word | _SIGN)


def _packed(nodes: list[Expression], keys: list[GroupKey]) -> tuple[tuple[GroupKey, ...], list[Expression], None]:
    """Return the columns with their places in a code, and its words, the low one first."""
    shift = sum(key.bits for key in keys)
    words: list[Expression | None] = [None] * (1 if shift <= 32 else 2)
    placed: list[GroupKey] = []
    for node, key in zip(nodes, keys, strict=True):
        shift -= key.bits  # the first column decides first
        placed.append(replace(key, shift=shift))
        code = _code(node, key)
        for k in range(len(words)):
            begin = shift - 32 * k
            if begin >= 32 or begin + key.bits <= 0:
                continue
            part = code << begin if begin > 0 else code >> -begin if begin < 0 else code
            before = words[k]
            words[k] = part if before is None else before | part
    return tuple(placed), [as_node(0, "u32") if word is None else word for word in words], None


def key_expression(key: GroupKey, words: int) -> Any:
    """Return a column of keys as an expression of the sorted code."""
    parts = [result] if words == 1 else [result.low, result.high]
    found: Any = None
    for k, word in enumerate(parts):
        begin = key.shift - 32 * k
        if begin >= 32 or begin + key.bits <= 0:
            continue
        part = word >> begin if begin > 0 else word << -begin if begin < 0 else word
        found = part if found is None else found | part
    if key.bits < 32:
        found = found & ((1 << key.bits) - 1)
    if key.type == "i32":
        return bitcast("i32", found ^ _SIGN if key.bits == 32 else found)
    if key.type == "f32":
        return bitcast("f32", where(found >= _SIGN, found ^ _SIGN, ~found))
    return found


# ---- aggregates


@dataclass
class _Bin:
    """Fields that one pass combines, each by its own operator."""

    fields: list[tuple[str, Expression]]
    stores: list[Store]

    def place(self, name: str, node: Expression) -> int:
        """Return the place of a field, which is added if there is none like it."""
        for k, (known, value) in enumerate(self.fields):
            if known == name and (value is node or (_is_one(value) and _is_one(node))):
                return k
        self.fields.append((name, node))
        return len(self.fields) - 1

    def room_for(self, fields: Sequence[tuple[str, Expression]]) -> bool:
        """Whether they fit."""
        copy = _Bin(list(self.fields), [])
        for name, node in fields:
            copy.place(name, node)
        return len(copy.fields) <= _MOST_WORDS


def _is_one(node: Expression) -> bool:
    return node.kind == "number" and node.type == "u32" and node.value == 1


_ONE = as_node(1, "u32")


def parsed_aggregate(what: str, name: str, given: Any) -> tuple[Any, str | BinOp, float]:
    """Return the column of an aggregate, what it computes, and its correction or quantile.

    Sums, products, minima and maxima are operators, all else is one of `AGGREGATES`; there is no column where rows are
    counted.

    Raises
    ------
    ArgumentError
        If it is none.
    """
    if isinstance(given, Count) or (isinstance(given, str) and given in _OF_ROWS):
        return None, "size", 0.0
    parts: list[Any] = list(cast(tuple[Any, ...], given)) if isinstance(given, tuple) else []
    if len(parts) not in (2, 3):
        shown = f"{given!r:.60}" if isinstance(given, str) else f"of type {type(cast(Any, given)).__name__}"
        how = given if isinstance(given, str) and given in AGGREGATES else "mean"
        raise ArgumentError(
            f"{what}: {name}= is {shown}, but an aggregate is (x, op), such as {name}=(x, {how!r}) or {name}=(x, "
            f"gw.Add); {name}=gw.count is the number of rows"
        )
    column, how = parts[0], parts[1]
    if isinstance(how, Count):
        how = "size"
    elif not isinstance(how, (str, BinOp)) and str(getattr(how, "__module__", "")).startswith(_SOURCES):
        how = getattr(how, "__name__", how)  # gw.mean and the like stand for what they compute
    if not isinstance(how, (str, BinOp)) or (isinstance(how, str) and how not in (*AGGREGATES, *BinOp.builtins)):
        raise ArgumentError(
            f"{what}: {name}= has the aggregate {how!r:.60}; known are {', '.join(AGGREGATES)}, and operators such as "
            f"gw.Add"
        )
    has_option = isinstance(how, str) and how in _OPTIONS
    option = _OPTIONS[cast(str, how)] if has_option else 0.0
    if len(parts) == 3:
        if not has_option:
            raise ArgumentError(
                f"{what}: {name}= has three parts; the third is the correction of var and std, or which quantile"
            )
        option = float(parts[2])
    if how == "quantile" and not 0 <= option <= 1:
        raise ArgumentError(f"{what}: {name}= is the quantile {option}, but quantiles are from 0 to 1")
    if isinstance(how, str):
        how = OPERATORS.get(how) or (how if how in AGGREGATES else as_binop(how))
    return column, how, option


def refuse_wide(what: str, name: str, datatype: object, how: object) -> NoReturn:
    """Raise since there is no such aggregate of items of 8 bytes."""
    raise DatatypeError(
        f"{what}: {name}= is the {how} of items of {datatype}, of which there are sums, products, minima and maxima; "
        f"convert them first, for example with x.astype(np.float32)"
    )


def refuse_wide_nan(what: str, name: str, datatype: object) -> NoReturn:
    """Raise since NaNs of items of 8 bytes are not left out."""
    raise DatatypeError(
        f"{what}: {name}= is of {datatype} on the GPU, where skipna=True is for f32; convert the items, for example "
        f"with x.astype(np.float32), or give arrays of numpy"
    )


class _Packing:
    """Distributes aggregates over passes."""

    def __init__(self, what: str, skipna: bool, wide_has_nan: bool):
        self._what = what
        self._skipna = skipna
        self._wide_has_nan = wide_has_nan
        #: What `_without` made of expressions, by their identity, so that aggregates of a column share it.
        self._made: dict[tuple[int, Any, Any], tuple[Expression, Expression]] = {}
        self._bins: list[_Bin] = []
        self._own: list[tuple[BinOp, Datatype, list[Expression], str, tuple[Store, ...]]] = []
        #: The arguments of 8 bytes.
        self.columns: list[tuple[str, Datatype]] = []

    def add(self, name: str, given: Any) -> None:
        """Take an aggregate."""
        column, how, correction = parsed_aggregate(self._what, name, given)
        if how in ORDERED:
            raise ArgumentError(f"{self._what}: {name}= is the {how}, which gw.group_by() computes")
        if how == "size":
            self._pack([("add", _ONE)], name, DATATYPES["u32"], "field")
            return
        if isinstance(column, StructExpression):
            self._add_struct(name, column, how)
            return
        if not isinstance(column, Operators):
            datatype = as_datatype(column, ITEM_DATATYPES)
            if datatype.itemsize_bytes == 8 and not datatype.is_several:
                self._add_wide(name, datatype, how)
                return
            column = leaf(f"{name}_items", datatype)
        self._add_number(name, as_node(column), how, correction)

    def _without(self, node: Expression, missing: Expression, item: Expression | None = None) -> Expression:
        """Return one number where an item is NaN, and where it is none the item itself, or another number."""
        key = id(node), missing.value, None if item is None else item.value
        if key not in self._made:
            self._made[key] = node, where(isnan(node), missing, node if item is None else item)
        return self._made[key][1]

    def _is_number(self, node: Expression) -> Expression:
        return self._without(node, as_node(0, "u32"), _ONE)

    def _add_number(self, name: str, node: Expression, how: str | BinOp, correction: float) -> None:
        f32, u32 = DATATYPES["f32"], DATATYPES["u32"]
        is_float, skips = node.type == "f32", node.type == "f32" and self._skipna
        if how == "count":
            self._pack([("add", self._is_number(node) if is_float else _ONE)], name, u32, "field")
            return
        if how in ("any", "all"):  # a NaN is true, and so changes nothing about "all"
            marked = truth(node) & ~isnan(node) if skips and how == "any" else truth(node)
            self._pack([((Or if how == "any" else And).name, converted("u32", marked))], name, u32, "field")
            return
        if node.type == "bool":
            node = converted("u32", node)
        datatype, one = as_datatype(node.type), self._is_number(node) if skips else _ONE

        def present(otherwise: Any) -> Expression:
            """Return the items, and a number in place of each NaN that is left out."""
            return self._without(node, as_node(float(otherwise), "f32")) if skips else node

        if how == "mean":
            self._pack([("add", converted("f32", present(0))), ("add", one)], name, f32, "mean")
        elif how in ("var", "std"):
            leaf_of = cast(Leaf, node.value) if node.kind == "leaf" else None
            if node.type != "f32" and (leaf_of is None or leaf_of.datatype.itemsize_bytes == 4):
                raise DatatypeError(
                    f"{self._what}: {name}= is the {how} of {node.type}, of which f32 holds 24 bits; where these are "
                    f"enough, give gw.f32(…) of the items, and else arrays of numpy to gw.group_by()"
                )
            items = list(moments(converted("f32", present(0))).fields.values())
            store = Store(name, f32, cast(str, how), (0, 1, 2), correction)
            self._own.append((Moments, _struct_of(items), [one, *items[1:]], "", (store,)))
        elif how in ("first", "last"):
            items, op = [one, node], First if how == "first" else Last
            store = Store(name, datatype, "some", (1, 0)) if skips else Store(name, datatype, "field", (1,))
            self._own.append((op, _struct_of(items), items, "", (store,)))
        elif isinstance(how, BinOp) and how.builtin and how.name in FIELD_OPERATIONS:
            if skips and how in (Min, Max):
                least = (how.name, present(np.inf if how is Min else -np.inf))
                self._pack([least, ("add", one)], name, datatype, "some")
            else:
                item = present(how.identity_for(datatype)) if skips else node
                self._pack([(how.name, item)], name, datatype, "field")
        else:
            assert isinstance(how, BinOp)
            item = present(how.identity_for(datatype)) if skips else node
            self._own.append((on_items(how, datatype), datatype, [item], "", (Store(name, datatype),)))

    def _add_struct(self, name: str, column: StructExpression, how: str | BinOp) -> None:
        if not isinstance(how, BinOp):
            raise DatatypeError(
                f"{self._what}: {name}= is the {how} of a struct; give one number, or an operator on structs"
            )
        items = list(column.fields.values())
        self._own.append((on_items(how, column.datatype), column.datatype, items, "", (Store(name, column.datatype),)))

    def _add_wide(self, name: str, datatype: Datatype, how: str | BinOp) -> None:
        if how == "count" and datatype.dtype.kind != "f":
            self._pack([("add", _ONE)], name, DATATYPES["u32"], "field")
            return
        if self._skipna and self._wide_has_nan and datatype.dtype.kind == "f":
            refuse_wide_nan(self._what, name, datatype)
        if not isinstance(how, BinOp):
            refuse_wide(self._what, name, datatype, how)
        argument = f"{name}_items"
        self.columns.append((argument, datatype))
        self._own.append((on_items(how, datatype), datatype, [], argument, (Store(name, datatype),)))

    def _pack(self, fields: list[tuple[str, Expression]], name: str, datatype: Datatype, form: str) -> None:
        chosen = next((each for each in self._bins if each.room_for(fields)), None)
        if chosen is None:
            chosen = _Bin([], [])
            self._bins.append(chosen)
        places = tuple(chosen.place(*field) for field in fields)
        chosen.stores.append(Store(name, datatype, form, places))

    def finished(self) -> tuple[list[Expression], tuple[GroupPass, ...]]:
        """Return the items, and the passes with their places among them."""
        nodes: list[Expression] = []
        passes: list[GroupPass] = []

        def places(items: Sequence[Expression]) -> tuple[int, ...]:
            nodes.extend(items)
            return tuple(range(len(nodes) - len(items), len(nodes)))

        for each in self._bins:
            items = [node for _, node in each.fields]
            names = [name for name, _ in each.fields]
            passes.append(_packed_pass(names, [node.type for node in items], places(items), each.stores))
        for op, datatype, items, column, stores in self._own:
            passes.append(GroupPass(op, datatype, places(items), column, stores))
        return nodes, tuple(passes)


_FIELD_OPERATORS = {op.name: op for op in (*OPERATORS.values(), And, Or, Xor)}


def _packed_pass(
    names: Sequence[str], types: Sequence[str], places: tuple[int, ...], stores: Sequence[Store]
) -> GroupPass:
    """Return the pass that combines fields, each by the built-in operator of a name."""
    if len(names) == 1 and len(stores) == 1:  # as ReduceByKey does it
        store = replace(stores[0], form="result", places=())
        return GroupPass(_FIELD_OPERATORS[names[0]], DATATYPES[types[0]], places, "", (store,))
    datatype = Struct("struct", **dict(zip("abc", types, strict=False)))
    return GroupPass(each_field(tuple(names), datatype), datatype, places, "", tuple(stores))


def parts_of(own: GroupPass, stores: Sequence[Store]) -> GroupPass:
    """Return a pass with some of its outputs, and only the fields that these need."""
    if len(stores) == len(own.stores):
        return own
    used = sorted({place for store in stores for place in store.places})
    assert isinstance(own.datatype, Struct)
    names = own.op.name.split(", ")
    moved = [replace(store, places=tuple(used.index(place) for place in store.places)) for store in stores]
    types = [own.datatype.fields[k][1].name for k in used]
    return _packed_pass([names[k] for k in used], types, tuple(own.places[k] for k in used), moved)


def _struct_of(items: Sequence[Expression]) -> Struct:
    return Struct("struct", **{"abc"[k]: node.type for k, node in enumerate(items)})
