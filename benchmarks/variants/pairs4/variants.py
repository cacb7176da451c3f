"""Variants of the sort's kernels: the set V of switches that the templates of this tree know; for measurements.
recount: a stalled tile is counted again by a small loop, not by read_codes. guard, clamp: one text of full and partial tiles. items: the place is chosen
for each load. writer: one writer, the place is chosen for each store. loop: parts in a loop. one: reads from the input, writes to the output (right for one digit)."""
import contextlib

from gridwise_py.planning import accessors, builder, shaders
from gridwise_py.primitives.engines import radix_sort

WRONG = {"one"}
_small = radix_sort._Sort.small
_made = shaders._environment.__wrapped__
NOW = frozenset()


def _environment():
    environment = _made()
    environment.globals["V"] = NOW
    return environment


import functools
shaders._environment = functools.lru_cache(maxsize=1)(_environment)


@contextlib.contextmanager
def applied(names):
    global NOW
    NOW = frozenset(names)
    caches = (shaders._environment, builder._shader, accessors.bindings)
    for cache in caches:
        cache.cache_clear()
    radix_sort._Sort.small = lambda self: None
    try:
        yield
    finally:
        NOW = frozenset()
        for cache in caches:
            cache.cache_clear()
        radix_sort._Sort.small = _small
