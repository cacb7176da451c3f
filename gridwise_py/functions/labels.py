"""Keys that are no numbers: strings, categories, dates and other labels, as codes in their order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from ..errors import ArgumentError
from ..runtime.host_items import integers_and_nulls, with_missing

#: Kinds of numpy dtypes that hold labels: strings, bytes, objects, dates and durations.
_KINDS = "USTOMm"


@dataclass(frozen=True)
class Labels:
    """A column of labels.

    Attributes
    ----------
    codes : numpy.ndarray
        Of u32: of each item the place of its label; what is missing has the place behind the last.
    labels : numpy.ndarray
        In their order.
    """

    codes: np.ndarray
    labels: np.ndarray

    def of(self, codes: np.ndarray) -> np.ndarray:
        """Return the labels of codes; for what is missing None, NaN of numbers and NaT of dates."""
        missing = self.missing(codes)
        if not missing.any():
            return self.labels[codes]
        found = np.zeros(codes.shape, self.labels.dtype)
        found[~missing] = self.labels[codes[~missing]]
        return with_missing(found, missing)

    def missing(self, codes: np.ndarray) -> np.ndarray:
        """Return which codes are those of missing items."""
        return codes >= self.labels.size

    def codes_of(self, other: Labels) -> np.ndarray:
        """Return the codes that the items of another column have here; one that none has where they have no label."""
        places = {label: k for k, label in enumerate(self.labels.tolist())}
        missing, none = len(places), len(places) + 1
        codes = [places.get(label, none) for label in other.labels.tolist()]
        return np.array([*codes, missing], np.uint32)[other.codes]


def _coded(codes: Any, labels: Any) -> Labels:
    """Return labels whose codes are −1 for what is missing, as pandas has them."""
    places: np.ndarray = np.asarray(codes)
    known: np.ndarray = np.asarray(labels)
    return Labels(np.where(places < 0, known.size, places).astype(np.uint32), known)


def numbered(items: np.ndarray, missing: np.ndarray | None = None) -> Labels:
    """Return the numbers of a column as labels; NaN and NaT are missing, if it is not said which are."""
    missing = np.asarray(items != items) if missing is None else missing
    if missing.any():
        labels, places = np.unique(items[~missing], return_inverse=True)
        codes = np.full(items.size, labels.size, np.uint32)
        codes[~missing] = places
        return Labels(codes, labels)
    labels, codes = np.unique(items, return_inverse=True)
    return Labels(codes.astype(np.uint32), labels)


def _is_missing(label: Any) -> bool:
    return label is None or type(label).__name__ in ("NAType", "NaTType") or bool(label != label)


def _hashed(call: str, name: str, listed: list[Any], dtype: np.dtype[Any]) -> Labels:
    """Return the labels of strings or objects: a dict finds them faster than a sort."""
    try:
        found = dict.fromkeys(listed)
        missing = [label for label in found if _is_missing(label)]
        labels = sorted(found.keys() - missing)
    except TypeError as error:
        raise ArgumentError(
            f"{call}: {name} has keys that cannot be put in order ({error}); make them of one type, for example "
            f"[str(key) for key in {name}]"
        ) from error
    places = {label: k for k, label in enumerate(labels)} | dict.fromkeys(missing, len(labels))
    codes = np.fromiter((places[label] for label in listed), np.uint32, len(listed))
    made, plain = np.empty(len(labels), object), np.empty(len(labels), dtype)
    for k, label in enumerate(labels):  # one by one: a label may be a tuple
        made[k] = plain[k] = label
    # numpy's own strings lose NULs at their ends.
    return Labels(codes, plain if plain.tolist() == labels else made)


def labels_of(call: str, name: str, value: Any) -> Labels | None:
    """Return a column of keys as labels; None where it is of numbers, or no column.

    Categories of pandas, polars' Enum and pyarrow's ordered dictionaries are in their own order. pandas' other columns
    that are not of numpy's numbers number themselves. Nothing of these libraries is imported.

    Raises
    ------
    ArgumentError
        If labels of several types have no order.
    """
    holders: tuple[Any, Any] = value, getattr(value, "cat", None)
    for holder in holders:
        if hasattr(holder, "codes") and hasattr(holder, "categories"):
            return _coded(holder.codes, holder.categories)
    dtype = getattr(value, "dtype", None)
    if type(dtype).__name__ == "Enum":  # of polars
        return _coded(value.to_physical().cast(int).fill_null(-1), cast(Any, dtype).categories)
    if getattr(getattr(value, "type", None), "ordered", False):  # of pyarrow
        whole = value.unify_dictionaries().combine_chunks() if hasattr(value, "chunks") else value
        return _coded(whole.indices.cast("int64").fill_null(-1), whole.dictionary)
    if isinstance(dtype, np.dtype) and dtype.kind not in _KINDS:
        return None
    nullable = integers_and_nulls(value)
    if nullable is not None:
        return numbered(*nullable)
    if hasattr(value, "factorize") and hasattr(value, "array") and not isinstance(dtype, np.dtype):
        return _coded(*cast(tuple[Any, Any], value.factorize(sort=True)))
    if not isinstance(value, (list, tuple)) and not hasattr(value, "__array__"):
        return None
    try:
        items: np.ndarray = np.asarray(cast(Any, value))
    except (TypeError, ValueError):
        return None  # whoever takes numbers says so
    if items.dtype == np.float64 and items.size and all(type(each) is int for each in cast(Any, value)):
        # numpy makes floats of integers of which int64 does not hold all.
        whole = list(cast(Any, value))
        if min(whole) >= 0 and max(whole) < 2**64:
            return numbered(np.array(whole, np.uint64))
        return _hashed(call, name, whole, np.dtype(object))
    if items.ndim != 1 or items.dtype.kind not in _KINDS:
        return None
    if items.dtype.kind in "Mm":
        return numbered(items)
    given: Any = items if isinstance(dtype, np.dtype) or items.dtype.kind == "O" else cast(Any, value)
    listed: Any = (
        given.to_list() if hasattr(given, "to_list") else given.tolist() if hasattr(given, "tolist") else given
    )
    return _hashed(call, name, list(listed), items.dtype.newbyteorder("="))
