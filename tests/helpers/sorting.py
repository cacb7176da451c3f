"""Keys to sort, and numpy's stable order of them."""

import numpy as np

import gridwise_py as gw
from gridwise_py.types.datatype import STORAGE_DATATYPES

DATATYPES = tuple(STORAGE_DATATYPES)
KINDS = {
    "keys": (gw.Sort, None),
    "pairs": (gw.SortPairs, "i32"),
    "pairs of 8": (gw.SortPairs, "f64"),
    "argsort": (gw.ArgSort, None),
}


def keys_of(datatype, n, seed=0):
    """Random bits, with few distinct keys among them, so that stability shows."""
    rng = np.random.default_rng([seed, n, list(gw.STORAGE_DATATYPES).index(datatype)])
    dtype = gw.STORAGE_DATATYPES[datatype].dtype
    bits = rng.integers(0, 2 if datatype == "bool" else 256, n * dtype.itemsize, dtype=np.uint8)
    keys = bits.view(dtype).copy()
    if n > 4:
        common = rng.random(n) < 0.3
        keys[common] = rng.choice(keys[:4], int(common.sum()))
    return keys


def order_of(keys, descending=False):
    """Return numpy's stable order, by nothing of the library's."""
    if not descending:
        return np.argsort(keys, kind="stable")
    return np.argsort(-keys if keys.dtype.kind == "f" else ~keys, kind="stable")
