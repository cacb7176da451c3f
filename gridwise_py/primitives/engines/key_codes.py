"""Codes of keys: unsigned integers whose order is that of the keys (shaders/lib/key_code_1.wgsl, key_code_2.wgsl)."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...types.datatype import Datatype


def key_words(datatype: Datatype) -> int:
    """Return the 32-bit words of a code."""
    return -(-datatype.itemsize_bytes // 4)


def key_context(datatype: Datatype, *, descending: bool = False) -> dict[str, Any]:
    """Return the template values of these files."""
    return {
        "key_words": key_words(datatype),
        "key_bytes": datatype.itemsize_bytes,
        "key_kind": datatype.dtype.kind,
        "descending": descending,
    }


def key_codes(keys: np.ndarray, descending: bool = False) -> np.ndarray:
    """Return unsigned integers whose order is the order of the keys.

    Parameters
    ----------
    keys : numpy.ndarray
        Items of 1 to 8 bytes.
    descending : bool, default False
        Order of the keys; NaN comes last in both directions.
    """
    unsigned = np.dtype(f"u{keys.dtype.itemsize}")
    sign = unsigned.type(1 << (8 * unsigned.itemsize - 1))
    bits = keys.view(unsigned)
    if keys.dtype.kind in "ub":
        codes = bits
    elif keys.dtype.kind == "i":
        codes = bits ^ sign
    else:
        bits = np.where(keys == 0, unsigned.type(0), bits)
        codes = np.where(bits & sign, ~bits, bits | sign)
    codes = ~codes if descending else codes
    return np.where(np.isnan(keys), ~unsigned.type(0), codes) if keys.dtype.kind == "f" else codes
