"""Associative binary operators: what reduce and scan combine items with."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, TypeAlias, cast

import numpy as np

from ..errors import ArgumentError, DatatypeError, EmptyReductionError
from ..settings import ShaderChecks
from .capabilities import SubgroupMode
from .datatype import ITEM_DATATYPES, Datatype, Struct, as_datatype
from .operator_base import Operator, text_context
from .operator_text import BINARY, TextForm, check_builtin_name
from .traced import Traced, traced


@dataclass(frozen=True)
class Accumulator:
    """How items of a datatype are held while an operator combines them.

    Most operators hold items as they are. Minimum and maximum of floats hold *ordered keys*: the bits of the
    float, mapped to a u32 whose order is that of the floats, −0 below +0, with every NaN mapped to the key
    that wins. WGSL's own ``min`` drops NaN, leaves the order of the zeros open, and lets a compiler assume
    that there is no NaN, so this is the only portable way to numpy's semantics; integer minimum also is
    what subgroup hardware is fastest at.

    Numbers of 64 bits are two words, the low one first, and their minimum and maximum hold ordered keys of all kinds.

    Items that are several numbers are held as a vector of their words, since WGSL neither shuffles nor selects structs.
    An operator's text sees them as a struct, or as a ``vec2<f32>``; that costs nothing, since only bits are renamed.

    Attributes
    ----------
    wgsl : str
        WGSL type of an accumulator.
    number : str
        Name of the datatype that is computed with, of 4 or 8 bytes.
    key : str or None
        ``"min"`` or ``"max"`` where ordered keys are used.
    identity_words : tuple of int
        The accumulator's identity. Travels in the parameters, since Tint refuses a constant infinity.
    """

    wgsl: str
    number: str
    key: str | None
    identity_words: tuple[int, ...]

    @property
    def words(self) -> int:
        """Number of words."""
        return len(self.identity_words)

    @property
    def params(self) -> dict[str, int]:
        """The identity, as fields of `Params`."""
        names = ["identity_bits", *(f"identity_bits_{k}" for k in range(1, self.words))]
        return dict(zip(names, self.identity_words, strict=True))


@dataclass(frozen=True, eq=False, repr=False)
class BinOp(Operator):
    """An associative operator for reduce and scan, from `expression` or `wgsl`.

    Parameters
    ----------
    name : str
    identity : number, tuple, mapping or callable
        Neutral on both sides: a number, one for each datatype's name, or a function of the `Datatype`; of a `Struct`
        numbers for its fields, as a tuple or mapping.
    numpy : callable
        The same in numpy, ``f(a, b)``, item by item; for a `Struct` on structured arrays, with `Struct.array` for the
        result. `check`, `gridwise_py.measure` and ``reference`` compare with it.
    wgsl : str, optional
        Defines ``fn combine(a: T, b: T) -> T`` of the datatype's ``T``; a `Struct` has its fields, complex64 is
        ``vec2<f32>``. Only functions and constants are allowed, without names of WGSL's or this library's.
    expression : str, optional
        In ``a`` and ``b``, valid for scalars and for vectors.
    commutative : bool, default True
        False keeps the order of the items.
    subgroup_reduce, subgroup_exclusive_scan : str, optional
        WGSL built-ins that equal it.
    empty : bool, default True
        Whether a reduction of no items gives the identity; False raises.
    key : str, optional
        ``"min"`` or ``"max"``: use ordered keys for floats (see `Accumulator`).

    check : bool or sequence, default True
        Whether to compare it with numpy; or the values to do so with, where not all are valid.
    shader_checks : {"bounds", "all", "none"}
        As of a `Kernel`.

    Notes
    -----
    The operator must be associative; otherwise results are wrong. A dozen values are tried, in numpy when a primitive
    is first constructed with it, and on the GPU when that is first bound (docs/howto/own-operator.md). A failure for
    small integers raises; one only for large, negative or fractional values is a `GridwiseWarning`, because your data
    may have none. Passing proves nothing about other values.

    Examples
    --------
    >>> import numpy as np, gridwise_py as gw
    >>> xor = gw.BinOp("xor", identity=0, numpy=np.bitwise_xor, wgsl="fn combine(a: T, b: T) -> T { return a ^ b; }")
    """

    form: ClassVar[TextForm] = BINARY
    builtins: ClassVar[dict[str, BinOp]] = {}

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
    check: bool | Sequence[Any] = True
    shader_checks: ShaderChecks = "bounds"

    def __post_init__(self) -> None:
        self._check_definition()
        for option in ("subgroup_reduce", "subgroup_exclusive_scan"):
            check_builtin_name(self.name, option, getattr(self, option))
        if self.key not in (None, "min", "max"):
            raise ArgumentError(f"key={self.key!r} of BinOp {self.name!r} is unknown; known are None, 'min' and 'max'")

    def _key(self) -> tuple[Any, ...]:
        """What tells two operators apart; 0.0 and −0.0 are two identities."""
        identity = self.identity
        if isinstance(identity, Mapping):
            by_datatype = cast(Mapping[Any, Any], identity)
            identity = tuple(sorted((str(name), repr(value)) for name, value in by_datatype.items()))
        elif not callable(identity):
            identity = repr(identity)
        return (
            *super()._key(), identity, self.commutative, self.subgroup_reduce, self.subgroup_exclusive_scan, self.empty,
            self.key,
        )  # fmt: skip

    @classmethod
    def of(
        cls,
        name: str,
        function: Callable[[Any, Any], Any],
        *,
        identity: Any,
        commutative: bool = True,
        check: bool | Sequence[Any] = True,
    ) -> BinOp:
        """Return an operator from a Python function, which gives both its WGSL and its numpy twin.

        Parameters
        ----------
        name : str
        function : callable
            Takes two items and gives one, by functions of expressions. Fields of a `Struct` are attributes, and
            `struct` makes an item.
        identity, commutative, check
            As for `BinOp`.

        Returns
        -------
        BinOp
            For items of up to 4 bytes, and of structs.

        Examples
        --------
        >>> import numpy as np, gridwise_py as gw
        >>> larger = gw.BinOp.of("larger", lambda a, b: gw.where(a > b, a, b), identity=0)
        >>> larger.numpy(np.uint32([1, 5]), np.uint32([4, 2]))
        array([4, 5], dtype=uint32)
        """
        return TracedOp(name, identity, _Twin(function, f"BinOp {name!r}"), commutative=commutative, check=check)

    def identity_for(self, datatype: Datatype) -> Any:
        """The identity as a numpy scalar of `datatype`."""
        value = self.identity
        if callable(value):
            value = value(datatype)
        elif isinstance(value, Mapping) and not (isinstance(datatype, Struct) and datatype.name not in value):
            by_datatype = cast(Mapping[str, Any], value)
            if datatype.name not in by_datatype:
                raise ArgumentError(
                    f"BinOp {self.name!r} has no identity for {datatype.name}; it has them for {sorted(by_datatype)}"
                )
            value = by_datatype[datatype.name]
        return self.number(value, datatype, "identity")

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

    @property
    def rounded(self) -> bool:
        """Whether its text calls ``rounded`` on products, which lib/operator.wgsl defines."""
        return False

    @property
    def doubles(self) -> bool:
        """Whether its text computes in float64, by the functions that lib/operator.wgsl defines for it."""
        return False

    def accumulator(self, datatype: Datatype) -> Accumulator:
        """How results of `datatype` are held while they are combined."""
        self._check_takes(datatype)
        words = datatype.words(self.identity_for(datatype))
        kind, number = datatype.dtype.kind, datatype.computed_as
        if datatype.is_several:
            return Accumulator(_WGSL[len(words)], number, None, words)
        if self.key is not None and (kind == "f" or len(words) == 2):
            return Accumulator(_WGSL[len(words)], number, self.key, _ordered(kind, words))
        return Accumulator(_WGSL[2] if len(words) == 2 else datatype.wgsl, number, None, words)

    def _check_takes(self, datatype: Datatype) -> None:
        """Refuse what the operator does not combine.

        Raises
        ------
        DatatypeError
            For operators of numbers on structs, and of ordered numbers on complex ones.
        """
        if not datatype.is_several:
            return
        if isinstance(datatype, Struct) and self.builtin:
            raise DatatypeError(
                f"{self._title} combines numbers, but items of {datatype!r} have fields; give a gridwise_py.BinOp "
                f"whose wgsl= says how they are combined, or an Array of one field: "
                f"gw.asarray(x[{datatype.fields[0][0]!r}])"
            )
        if self.key is not None:
            remedy = (
                f"give key=None and a text that compares the fields of {datatype!r}"
                if isinstance(datatype, Struct)
                else "reduce the magnitudes, np.abs(x), or the parts, x.real and x.imag"
            )
            raise DatatypeError(f"{self._title} needs items that have an order, and {datatype} has none; {remedy}")


@dataclass(frozen=True)
class _Twin:
    """The numpy twin of an operator that was made from a Python function, which is traced at each use."""

    function: Callable[[Any, Any], Any]
    what: str

    def traced(self, datatype: Datatype) -> Traced:
        """Return what the function does on items of a datatype."""
        return traced(self.function, datatype, self.what)

    def __call__(self, a: Any, b: Any) -> Any:
        dtype = np.result_type(a, b) if np.asarray(a).dtype.names is None else np.asarray(a).dtype
        return self.traced(as_datatype(dtype, ITEM_DATATYPES))(a, b)


class TracedOp(BinOp):
    """An operator that was made from a Python function, or what `on` made of it for items of one datatype."""

    numpy: _Twin | Traced  # pyright: ignore[reportIncompatibleMethodOverride]  # a callable, too

    def _check_definition(self) -> None:
        if isinstance(self.numpy, _Twin) and not callable(self.numpy.function):
            raise ArgumentError(f"{self._title} needs a function of two items, not {self.numpy.function!r}")

    def _traced(self, datatype: Datatype) -> Traced:
        return self.numpy if isinstance(self.numpy, Traced) else self.numpy.traced(datatype)

    def on(self, datatype: Datatype) -> TracedOp:
        """Return the operator that it is now for items of a datatype; it keeps neither function nor closure."""
        identity = self.identity_for(datatype) if callable(self.identity) else self.identity
        return replace(self, identity=identity, numpy=self._traced(datatype))

    def text_for(self, datatype: Datatype) -> str:
        """Return the text for items of a datatype."""
        return self._traced(datatype).text()

    def checks_for(self, datatype: Datatype) -> ShaderChecks | None:
        """Return the run-time checks that a user's functions that it calls ask for; None without any."""
        return self._traced(datatype).shader_checks


_WGSL = {1: "u32", 2: "vec2<u32>", 3: "vec3<u32>", 4: "vec4<u32>"}
#: The name of an operator's function where kernels hold items as words, and combine those.
_ON_ITEMS = "combine_items"
#: (a + bi)(c + di); in a fixed order every product is rounded by itself. 1 is neutral: by the formula its product with
#: an infinity has a NaN, as numpy's, and a scan would show where its tiles begin.
_OR_ITSELF = "select(select({}, a, b.x == 1f && b.y == 0f), b, a.x == 1f && a.y == 0f)"
_COMPLEX_PRODUCT = _OR_ITSELF.format("T(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x)")
_SEALED_COMPLEX_PRODUCT = _OR_ITSELF.format("T(seal(a.x * b.x) - seal(a.y * b.y), seal(a.x * b.y) + seal(a.y * b.x))")
_SIGN = 0x80000000


def _ordered(kind: str, words: tuple[int, ...]) -> tuple[int, ...]:
    """Return the ordered key of a number that is no NaN."""
    *low, high = words
    if kind == "u":
        return words
    if kind == "i" or not high >> 31:
        return (*low, high ^ _SIGN)
    return tuple(word ^ 0xFFFFFFFF for word in words)


def _highest(datatype: Datatype) -> Any:
    return datatype.highest


def _lowest(datatype: Datatype) -> Any:
    return datatype.lowest


Add: BinOp = BinOp(
    "add", identity=0, numpy=np.add, expression="a + b",
    subgroup_reduce="subgroupAdd", subgroup_exclusive_scan="subgroupExclusiveAdd",
)  # fmt: skip
Multiply: BinOp = BinOp(
    "multiply", identity=1, numpy=np.multiply, expression="a * b",
    subgroup_reduce="subgroupMul", subgroup_exclusive_scan="subgroupExclusiveMul",
)  # fmt: skip
Min: BinOp = BinOp(
    "min", identity=_highest, numpy=np.minimum, expression="min(a, b)",
    subgroup_reduce="subgroupMin", empty=False, key="min",
)  # fmt: skip
Max: BinOp = BinOp(
    "max", identity=_lowest, numpy=np.maximum, expression="max(a, b)",
    subgroup_reduce="subgroupMax", empty=False, key="max",
)  # fmt: skip


class _BitOp(BinOp):
    """An operator on the bits of integers and bools."""

    @property
    def builtin(self) -> bool:
        """Whether the text is this library's own: yes."""
        return True

    def _check_takes(self, datatype: Datatype) -> None:
        if datatype.is_several or datatype.dtype.kind == "f":
            raise DatatypeError(
                f"{self._title} combines the bits of integers and bools, not of {datatype}; compare the items first, "
                f"x != 0, or give a view of their bits, x.view(np.uint32)"
            )

    def __reduce_ex__(self, protocol: Any) -> Any:
        # Copies, and what comes back from a pickle, are the operator itself.
        return _bit_op, (self.name,)


def _bit_op(name: str) -> BinOp:
    return {op.name: op for op in (And, Or, Xor)}[name]


def _all_bits(datatype: Datatype) -> Any:
    return -1 if datatype.dtype.kind == "i" else datatype.highest


And: BinOp = _BitOp("and", identity=_all_bits, numpy=np.bitwise_and, expression="a & b", subgroup_reduce="subgroupAnd")
Or: BinOp = _BitOp("or", identity=0, numpy=np.bitwise_or, expression="a | b", subgroup_reduce="subgroupOr")
Xor: BinOp = _BitOp("xor", identity=0, numpy=np.bitwise_xor, expression="a ^ b", subgroup_reduce="subgroupXor")

BinOp.builtins.update({op.name: op for op in (Add, Min, Max, Multiply)})

#: An operator, or the name of a built-in one.
BinOpLike: TypeAlias = BinOp | Literal["add", "multiply", "min", "max"]


def as_binop(value: BinOp | str) -> BinOp:
    """Return a `BinOp` for itself or for the name of a built-in one (``add min max multiply``)."""
    return BinOp.find(value)


def operator_context(
    op: BinOp,
    datatype: Datatype,
    mode: SubgroupMode,
    *,
    fixed_order: bool = False,
    source: Mapping[str, Any] | None = None,
    sink: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return what lib/operator.wgsl, lib/subgroup.wgsl and lib/workgroup.wgsl need to know.

    Parameters
    ----------
    op : BinOp
    datatype : Datatype
        Of the results.
    mode : SubgroupMode
    fixed_order : bool
    source, sink : mapping, optional
        What items and results are in memory (see `memory_context`); left out where both are `datatype`, of 4 bytes.
    """
    acc = op.accumulator(datatype)
    several = datatype.is_several
    text = text_context(op, datatype, "T" if several else acc.wgsl, _ON_ITEMS if several else "")
    one_word = acc.words == 1 and not several
    if several and op == Multiply:
        text = {"expression": _SEALED_COMPLEX_PRODUCT if fixed_order else _COMPLEX_PRODUCT, "wgsl": None}
    elif not one_word and not several and op.builtin and not isinstance(op, _BitOp):
        text = {"expression": f"wide_{op.name}(a, b)", "wgsl": None}
    reduce = op.subgroup_reduce if one_word else None
    exclusive_scan = op.subgroup_exclusive_scan if one_word else None
    own: dict[str, Any] = {
        "suffix": "", "type": "Acc", "combine": "combine", "identity": "identity()", "subgroup_reduce": reduce,
        "subgroup_exclusive_scan": exclusive_scan,
    }  # fmt: skip
    if isinstance(datatype, Struct) and op.commutative:  # H200, argmax of 2^20 as it was then: by scans 5.5 µs, so 5.2
        own["butterfly"] = True
    local = _local_sums(op, acc, source)
    context = {
        "datatype": acc.wgsl if not one_word and not several else datatype.wgsl,
        "op": {
            **text,
            "commutative": op.commutative,
            "subgroup_reduce": reduce,
            "subgroup_exclusive_scan": exclusive_scan,
            "rounded": op.rounded,
            "doubles": op.doubles,
        },
        # What is combined within a tile, and last, between tiles.
        "kinds": [own] if local is None else [local, {**own, "suffix": "_acc"}],
        "local": local is not None,
        "acc": {
            "wgsl": acc.wgsl, "key": acc.key, "words": acc.words, "number": acc.number, "order": datatype.dtype.kind,
            "bytes": datatype.itemsize_bytes,
            # Of items that are several numbers: the types of the words, by name.
            "fields": _fields(datatype),
            "struct": isinstance(datatype, Struct),
        },
        "subgroups": mode.kind,
        "emulated_size": mode.size,
        "fixed_order": fixed_order,
    }  # fmt: skip
    return context if source is None else {**context, "source": source, "sink": sink}


def _fields(datatype: Datatype) -> tuple[tuple[str, str], ...]:
    """Return the names and WGSL types of the words of an item that is several numbers; none for other items."""
    if isinstance(datatype, Struct):
        return tuple((field, of.wgsl) for field, of in datatype.fields)
    return (("x", "f32"), ("y", "f32")) if datatype.is_several else ()


def _local_sums(op: BinOp, acc: Accumulator, source: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return how a tile's items are added in 32 bits, where 64 bits are needed only between tiles.

    A tile of at most 2¹⁶ items of at most 16 bits has a sum of at most 32 bits.
    """
    small = source is not None and source["kind"] in "biu" and source["bytes"] <= 2
    if op != Add or acc.number not in ("u64", "i64") or not small:
        return None
    return {
        "suffix": "", "type": "Local", "combine": "local_combine", "identity": "Local()",
        "subgroup_reduce": op.subgroup_reduce, "subgroup_exclusive_scan": op.subgroup_exclusive_scan,
    }  # fmt: skip


def memory_context(datatype: Datatype | None) -> dict[str, Any]:
    """Return what lib/convert.wgsl needs to know of items in memory; None for accumulators of another kernel.

    Items that are several numbers lie in memory as their accumulators do.
    """
    if datatype is None or datatype.is_several:
        return {"name": "accumulators", "kind": "raw", "bytes": 4}
    return {"name": datatype.name, "kind": datatype.dtype.kind, "bytes": datatype.itemsize_bytes}
