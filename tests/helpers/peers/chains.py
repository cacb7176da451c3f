"""The call of a generator of random numbers: a function, or a chain of two or three."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .calls import ON_GPU, OPERATORS, UNARY, Call, Given
from .draws import Draw
from .twins import TWINS

#: Functions of one array, whose result has the dtype and the length of it.
_SAME_LENGTH: tuple[Callable[[Draw, object], Call], ...] = (
    lambda d, x: Call("sort", (x,)),
    lambda d, x: Call("flip", (x,)),
    lambda d, x: Call("roll", (x, d.whole(-5, 5))),
    lambda d, x: Call("asarray", (x,)),
    lambda d, x: Call("maximum", (x, 1)),
    lambda d, x: Call("+", (x, x)),
    lambda d, x: Call("where", (Call(">", (x, 1)), x, 0)),
)
#: Those whose result is shorter, or carries its count.
_SHORTER: tuple[Callable[[Draw, object], Call], ...] = (
    lambda d, x: Call("compress", (Call(">", (x, d.pick((0, 1, 100)))), x)),
    lambda d, x: Call("unique", (x,)),
    lambda d, x: Call("[]", (x, slice(d.whole(0, 3), None))),
    lambda d, x: Call("[]", (x, slice(None, d.whole(0, 5)))),
    lambda d, x: Call("setdiff1d", (x, Given(np.array([1, 2], _dtype(x)), "gpu"))),
    lambda d, x: Call("repeat", (x, d.whole(0, 2))),
)


def _pair_of_shapes(d: Draw, x: object) -> Call:
    """Return a product of two arrays of different shapes, which numpy broadcasts or refuses."""
    n = d.whole(2, 6)
    shapes = d.pick((((n, 1), (1, n)), ((2, 3), (3, 2)), ((n, 2), (2,)), ((n,), (n, 1)), ((2, n), (n, 2))))
    return Call("*", tuple(Given(d.items(_dtype(x), shape, "few"), "gpu") for shape in shapes))


#: What takes one array of any length, without others that go with it.
_ENDS = (
    "sum",
    "min",
    "max",
    "prod",
    "cumsum",
    "mean",
    "any",
    "all",
    "argmax",
    "argmin",
    "count_nonzero",
    "sort",
    "argsort",
    "unique",
    "unique_all",
    "unique_counts",
    "flatnonzero",
    "nonzero",
    "reduce",
    "scan",
    "find",
    "minmax",
    "run_length_encode",
    "flip",
    "histogram",
    "isin",
    "union1d",
    "intersect1d",
    "setdiff1d",
    "var",
    "bincount",
    "top_k",
    "sign",
    "clip",
)


def _dtype(x: object) -> np.dtype:
    while isinstance(x, Call):
        x = x.args[-1] if x.name == "compress" else x.args[0]
    return x.items.dtype if isinstance(x, Given) else np.dtype(np.int32)


#: So many calls in turn are of one function and of few datatypes: compiling costs more than all else.
BLOCK = 8


def one_of(rng: np.random.Generator, only: tuple[str, ...] = ()) -> str:
    """Return the name of a function."""
    names = [name for name in TWINS if not only or name in only]
    weights = np.array([TWINS[name].weight for name in names])
    return names[int(rng.choice(len(names), p=weights / weights.sum()))]


def drawn_at(seed: int, index: int, only: tuple[str, ...] = (), alone: bool = False) -> Call:
    """Return the call that follows from a seed and an index; those `alone` share nothing with those before them."""
    if alone:
        rng = np.random.default_rng([seed, index])
        call = drawn(rng, only)
        return _odd(Draw(rng), call) if rng.random() < 0.3 else call
    block = np.random.default_rng([seed, index // BLOCK, BLOCK])
    return drawn(np.random.default_rng([seed, index]), (one_of(block, only),), Draw(block).dtypes())


def drawn(rng: np.random.Generator, only: tuple[str, ...] = (), dtypes: tuple[str, ...] = ()) -> Call:
    """Return the call that follows from a generator."""
    d = Draw(rng, dtypes)
    call = TWINS[one_of(rng, only)].draw(d)
    if d.chance(0.12):
        return _chained(d, call)
    return call


#: What an argument hardly ever is.
_ODD: tuple[Any, ...] = (
    None, True, -1, 0, 2**40, 2**64, 0.5, float("nan"), 1j, "", "float32", (), [], (0,), (1, 2), [[1, 2], [3]],
    slice(None), int, np.float32, np.float64(1.5), np.int8(-3), np.bool_(True),
    Given(np.zeros(0, np.float64), "list"), Given(np.arange(3.0)), Given(np.array(2, np.int64)),
    Given(np.array(["a", "b"])), Given(np.array([1, 2], np.complex64)), Given(np.zeros((0, 3), np.float32)),
)  # fmt: skip


def _odd(d: Draw, call: Call) -> Call:
    """Put something odd in place of an argument that is no array, or seldom of any.

    Not in `diff`, where numpy takes differences 2**31 times.
    """
    whole = [*range(len(call.args)), *call.kwargs]
    places = [at for at in whole if not isinstance(call.args[at] if isinstance(at, int) else call.kwargs[at], Given)]
    if d.chance(0.2) or not places:
        places = whole
    if not places or call.name in ("diff", "len", *OPERATORS, *UNARY) or call.name.startswith((".", "[")):
        return call
    at, value = d.pick(places), d.pick(_ODD)
    if isinstance(at, int):
        return Call(call.name, (*call.args[:at], value, *call.args[at + 1 :]), call.kwargs, True)
    return Call(call.name, call.args, {**call.kwargs, at: value}, True)


def _chained(d: Draw, call: Call) -> Call:
    """Put results of other functions in place of the first array of a call."""
    if not call.args or call.name.startswith((".", "[")):
        return call
    first = call.args[0]
    if not (isinstance(first, Given) and first.how in ON_GPU and first.items.ndim == 1):
        return call
    if (
        first.items.dtype.name not in ("int32", "uint32", "float32")
        or "out" in call.kwargs
        or TWINS[call.name].in_place
    ):
        return call
    if first.items.dtype.kind == "f":  # so that every order of additions has the same result
        first = Given(np.round(np.clip(np.nan_to_num(first.items), -1000, 1000)).astype(first.items.dtype), "gpu")
    alone = (
        call.name in _ENDS
        and not any(isinstance(arg, (Given, tuple, list)) for arg in call.args[1:])
        and not any(isinstance(arg, Given) for arg in call.kwargs.values())
    )
    links: object = first
    if alone and d.chance(0.2):
        return Call(call.name, (_pair_of_shapes(d, first), *call.args[1:]), call.kwargs)
    for _ in range(d.pick((1, 1, 2))):
        links = d.pick((*_SAME_LENGTH, *_SHORTER, *_SHORTER) if alone else _SAME_LENGTH)(d, links)
    return Call(call.name, (links, *call.args[1:]), call.kwargs)
