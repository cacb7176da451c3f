"""Operations on numbers of 8 bytes in WGSL: by its own types, or integers as pairs of words where a device has none.

The functions that texts call are those of ``shaders/lib/wide_native.wgsl`` and ``wide_pairs.wgsl``.
"""

from __future__ import annotations

from collections.abc import Sequence

WIDE_TYPES = ("u64", "i64", "f64")
_INTEGERS = ("u64", "i64")
_BOOLS = {"<", "<=", ">", ">=", "==", "!="}
#: Of any type; those of one type come first. `T` is the type of the operands.
_NATIVE = {
    **{kind: f"({{0}} {kind} {{1}})" for kind in ("+", "-", "*", "/", "&", "|", "^", *_BOOLS)},
    "<<": "({0} << ({1} & 63u))", ">>": "({0} >> ({1} & 63u))",
    "//": "{T}_quotient({0}, {1})", "%": "{T}_remainder({0}, {1})", "**": "{T}_power({0}, {1})",
    "minimum": "select({1}, {0}, {0} <= {1})", "maximum": "select({1}, {0}, {0} >= {1})",
    "negative": "({T}(0) - {0})", "not": "~({0})", "abs": "select({0}, {T}(0) - {0}, {0} < {T}(0))",
    "sign": "({T}({0} > {T}(0)) - {T}({0} < {T}(0)))",
    **{kind: f"{kind}({{0}})" for kind in ("sqrt", "floor", "ceil")}, "rint": "round({0})",
    "popcount": "(countOneBits(words_of_u64({0}).x) + countOneBits(words_of_u64({0}).y))",
}  # fmt: skip
_NATIVE_OF = {
    ("!=", "f64"): "(!({0} == {1}))", ("negative", "f64"): "-({0})", ("abs", "f64"): "abs({0})",
    ("minimum", "f64"): "select({1}, {0}, ({0} <= {1}) || f64_is_nan({0}))",
    ("maximum", "f64"): "select({1}, {0}, ({0} >= {1}) || f64_is_nan({0}))",
    ("sign", "f64"): "select(sign({0}), {0}, f64_is_nan({0}))",
}  # fmt: skip
#: Of a number of f64 and itself; see `operations.operation_text`.
_OF_ITSELF = {
    "-": "f64_of_itself({0})", "!=": "f64_is_nan({0})", **dict.fromkeys(("==", "<=", ">="), "!f64_is_nan({0})")
}  # fmt: skip
_PAIRS = {
    "+": "u64_add({0}, {1})", "-": "u64_subtract({0}, {1})", "*": "u64_multiply({0}, {1})",
    **{kind: f"({{0}} {kind} {{1}})" for kind in "&|^"}, "not": "~({0})",
    "<<": "u64_left({0}, {1} & 63u)", ">>": "{T}_right({0}, {1} & 63u)",
    "//": "{T}_quotient({0}, {1})", "%": "{T}_remainder({0}, {1})", "**": "{T}_power({0}, {1})",
    "==": "all({0} == {1})", "!=": "any({0} != {1})", "<": "{T}_less({0}, {1})", ">": "{T}_less({1}, {0})",
    "<=": "!{T}_less({1}, {0})", ">=": "!{T}_less({0}, {1})",
    "minimum": "select({0}, {1}, {T}_less({1}, {0}))", "maximum": "select({0}, {1}, {T}_less({0}, {1}))",
    "negative": "u64_negate({0})", "abs": "i64_magnitude({0})",
    "popcount": "(countOneBits({0}.x) + countOneBits({0}.y))",
}  # fmt: skip
_PAIRS_OF = {
    ("sign", "i64"): "i64_sign({0})",
    ("sign", "u64"): "vec2<u32>(select(0u, 1u, any({0} != vec2<u32>(0u))), 0u)",
}
#: From what, to what; each also of the other type without, or with, a sign.
_PAIRS_CAST = {
    ("bool", "u64"): "vec2<u32>(select(0u, 1u, {0}), 0u)", ("u32", "u64"): "vec2<u32>({0}, 0u)",
    ("i32", "u64"): "u64_of_i32({0})", ("f32", "u64"): "u64_of_f32({0})", ("u64", "u32"): "{0}.x",
    ("u64", "i32"): "bitcast<i32>({0}.x)", ("u64", "bool"): "any({0} != vec2<u32>(0u))",
    ("u64", "f32"): "f32_of_u64({0})", ("i64", "f32"): "f32_of_i64({0})", ("f64", "f32"): "f32_of_f64({0})",
    ("u64", "u64"): "{0}",
}  # fmt: skip
#: What pairs of words do with f64, too.
_MOVED = ("select", "bitcast", "leaf", "spread", "number", "component", "gather", "previous", "next", "flip")


def word_count(type_name: str) -> int:
    """Return how many words a number of a type is."""
    return 2 if type_name in WIDE_TYPES else 1


def needs_doubles(kind: str, gives: str, takes: str | None) -> bool:
    """Whether an operation is one that only devices with float64 do; see `operation_text`."""
    is_known = kind in _MOVED or (kind, takes, gives) == ("cast", "f64", "f32")
    return "f64" in (gives, takes) and not is_known


def wide_text(kind: str, gives: str, takes: str, args: Sequence[str], pairs: bool) -> str:
    """Return the WGSL of an operation on one item, where what it takes or gives has 8 bytes.

    Parameters
    ----------
    kind, gives, takes, args
        As of `operation_text`.
    pairs : bool
        Whether integers are pairs of words.
    """
    if kind == "select":
        return f"select({args[2]}, {args[1]}, {args[0]})"
    if kind == "bitcast":
        return args[0] if pairs else f"bitcast<{gives}>({args[0]})"
    if kind == "cast":
        return _cast(gives, takes, pairs).format(args[0])
    if pairs:
        text = _PAIRS_OF.get((kind, takes)) or _PAIRS[kind]
    elif takes == "f64" and args[0] == args[-1] and kind in _OF_ITSELF:
        text = _OF_ITSELF[kind]
    else:
        text = _NATIVE_OF.get((kind, takes)) or _NATIVE[kind]
    return text.format(*args, T=takes)


def _cast(gives: str, takes: str, pairs: bool) -> str:
    if pairs:
        unsigned = tuple("u64" if each in _INTEGERS else each for each in (takes, gives))
        return _PAIRS_CAST.get((takes, gives)) or _PAIRS_CAST[unsigned[0], unsigned[1]]
    if gives == "bool":
        return f"!({{0}} == {takes}(0))"
    if takes == "bool":  # naga 29 does not fold f64(x) of a u64 that is known
        return f"select({gives}(0), {gives}(1), {{0}})"
    if (gives, takes) == ("i64", "u32"):  # naga 29 makes of i64(x) of a u32 what it is of an i32
        return "bitcast<i64>(u64({0}))"
    if takes == "i32" and gives in _INTEGERS:
        return f"{gives}_of_words(vec2<u32>(bitcast<u32>({{0}}), bitcast<u32>({{0}} >> 31u)))"
    if {gives, takes} == set(_INTEGERS):
        return f"bitcast<{gives}>({{0}})"
    return f"{gives}({{0}})"
