"""Smaller calls with the same finding."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from .calls import ON_GPU, OPERATORS, Call, Given, changed, text, walk

_MOST_TRIES, _MOST_S = 60, 4.0


def size(call: Call) -> int:
    """Return how long the text of a call is, about."""
    items = sum(given.items.size for given in walk(call))
    return 12 * items + len(text(call, most=0)) + sum(len(repr(given.items.dtype)) for given in walk(call))


def smaller(call: Call, holds: Callable[[Call], bool]) -> Call:
    """Return a smaller call for which `holds` still is true, after a bounded number of tries."""
    tries, begin, found = 0, time.monotonic(), True
    while found:
        found = False
        for candidate in _candidates(call):
            if size(candidate) >= size(call):
                continue
            tries += 1
            if tries > _MOST_TRIES or time.monotonic() - begin > _MOST_S:
                return call
            if holds(candidate):
                call, found = candidate, True
                break
    return call


def _candidates(call: Call) -> Iterator[Call]:
    for key in call.kwargs:
        yield replace(call, kwargs={k: v for k, v in call.kwargs.items() if k != key})
    if len(call.args) > 1 and call.name not in OPERATORS and call.name != "[]":
        yield replace(call, args=call.args[:-1])
    for i, arg in enumerate(call.args):
        if isinstance(arg, Call) and arg.args:  # a link of a chain
            yield replace(call, args=(*call.args[:i], arg.args[0], *call.args[i + 1 :]))
    arrays = walk(call)
    for cut in _cuts(arrays):
        yield changed(call, cut)
    for given in arrays:
        if given.how not in ("numpy", *ON_GPU):
            yield changed(call, _for(given, lambda g: Given(g.items)))
        if given.how in ("view", "expr"):
            yield changed(call, _for(given, lambda g: Given(g.items, "gpu")))
    if any(given.how in ON_GPU for given in arrays):
        yield changed(call, lambda v: Given(v.items) if isinstance(v, Given) else v)
    for given in arrays:
        if given.items.size and given.items.size <= 64:
            for simple in _simpler(given.items):
                yield changed(call, _for(given, lambda g, simple=simple: Given(simple, g.how)))


def _for(given: Given, make: Callable[[Given], Given]) -> Callable[[Any], Any]:
    return lambda value: make(value) if value is given else value


def _cuts(arrays: list[Given]) -> Iterator[Callable[[Any], Any]]:
    """Cut all arrays of a length together: they may have to be of one length."""
    for n in sorted({given.items.shape[0] for given in arrays if given.items.ndim}, reverse=True):
        for part in (slice(0, n // 2), slice(n // 2, n), slice(0, n - 1), slice(1, n)):
            if n:
                yield (
                    lambda v, n=n, part=part: (
                        Given(v.items[part], v.how)
                        if isinstance(v, Given) and v.items.ndim and v.items.shape[0] == n
                        else v
                    )
                )
    for given in arrays:
        if given.items.ndim and given.items.shape[0] > 1:
            for part in (slice(0, given.items.shape[0] // 2), slice(0, given.items.shape[0] - 1), slice(1, None)):
                yield _for(given, lambda g, part=part: Given(g.items[part], g.how))
        if given.items.ndim > 1 and given.items.shape[0]:
            yield _for(given, lambda g: Given(g.items[0], g.how))


def _simpler(x: np.ndarray) -> Iterator[np.ndarray]:
    if x.dtype.kind in "iuf":
        with np.errstate(all="ignore"):
            for other in (np.zeros_like(x), np.ones_like(x), np.arange(x.size).reshape(x.shape).astype(x.dtype)):
                if len(repr(other.tolist())) < len(repr(x.tolist())):
                    yield other
            if x.dtype.kind == "f" and np.isfinite(x).all():
                rounded = np.round(x, 1)
                if len(repr(rounded.tolist())) < len(repr(x.tolist())):
                    yield rounded
