"""The one-shot function that joins: which rows of two tables have equal keys.

With columns of the host the positions are numpy arrays. With an Array among them they are Arrays on the GPU.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, cast, get_args

import numpy as np
import wgpu

from ..errors import ArgumentError, DatatypeError
from ..primitives import Repeat
from ..primitives.fusion import EXPRESSIONS
from ..runtime.array import Array, asarray, is_python
from ..runtime.chunked_array import Items
from ..runtime.context import context_of
from ..runtime.host_items import cast_items, extremes
from ..types.expression import gather, i32, index, u32, u64
from ..types.expression_functions import isnan, maximum, where
from ..types.options import one_of
from .arguments import Call, check_not_counted, is_beyond, is_mixed, keep_primitive, same_bits
from .arrays import arange, full, searchsorted, take
from .labels import Labels, labels_of
from .reductions import sum as sum_of
from .repeated_calls import one_shot
from .scans import scan
from .sorts import argsort, sort
from .table_arguments import is_column

#: Which rows of the left table there are: those with a match, or all.
JoinHow: TypeAlias = Literal["inner", "left"]
_CALL = "gw.join()"
#: No position, and no code of a key on the right: there are fewer rows.
_ABSENT = 2**32 - 1
_ZONED = "dates with a time zone"
#: What messages call columns by the kind of their dtype; of labels "text", and else "numbers".
_KINDS = {"M": "dates", "m": "durations", "S": "bytes"}


@one_shot()
def join(
    left: Any,
    right: Any,
    how: JoinHow = "inner",
    *,
    size: int | None = None,
    device: wgpu.GPUDevice | None = None,
) -> tuple[Any, Any]:
    """Return the positions of the rows of two tables whose keys are equal.

    They are in the order of the left rows, and for each of these in that of the right ones.

    Parameters
    ----------
    left, right : numpy.ndarray or Array, or a tuple or list of these
        One column of keys, or several, as many on both sides; on the host also columns of pandas, polars and pyarrow.
    how : {"inner", "left"}, default "inner"
        With ``"left"``, a left row without a match is there once, too, with the right position −1.
    size : int, optional
        The pairs that there is room for; others are left out. Arrays carry their count then, and nothing is read back.
        By default the call waits for the number of pairs.
    device : wgpu.GPUDevice, optional
        By default that of an Array among the keys, else `default_device()`.

    Returns
    -------
    tuple of two numpy.ndarray or Array
        Positions on the left and on the right, of intp for numpy, of u32 and i32 for Arrays.

    Raises
    ------
    DatatypeError
        If a column is of text, dates or numbers, and the other one is not.
    LengthError
        If columns of one side have different lengths.
    ArgumentError
        If the sides have different numbers of columns, or 2³² pairs or more have equal keys.

    Notes
    -----
    What is missing (NaN, None, NaT, null) equals what is missing, as in ``pandas.merge``. Numbers of two dtypes are
    compared in that which numpy promotes them to, but int64 and uint64 exactly.

    The right keys are sorted, and each left key is searched for among them.

    Examples
    --------
    >>> import numpy as np, gridwise_py as gw
    >>> orders, cities = np.array(["Rome", "Oslo", "Bern", "Rome"]), np.array(["Oslo", "Rome"])
    >>> gw.join(orders, cities)
    (array([0, 1, 3]), array([1, 0, 1]))
    >>> rows, places = gw.join(orders, cities, "left")
    >>> people = np.array([0.7, 2.8])
    >>> {"city": orders[rows].tolist(), "people": np.where(places < 0, np.nan, people[places]).tolist()}
    {'city': ['Rome', 'Oslo', 'Bern', 'Rome'], 'people': [2.8, 0.7, nan, 2.8]}
    """
    call = Call(_CALL, device)
    one_of(f"{call}: how", how, get_args(JoinHow))
    sides = [_take_side(call, name, keys) for name, keys in (("left", left), ("right", right))]
    if len(sides[0]) != len(sides[1]):
        raise ArgumentError(
            f"{call}: left has {len(sides[0])} columns of keys, but right has {len(sides[1])}; give as many for each"
        )
    pairs = [_match(first, second) for first, second in zip(*sides, strict=True)]
    if size is not None:
        size = call.integer("size", size, 1)
    rows_left, rows_right = (side[0].items.size for side in sides)
    if rows_left and rows_right:
        columns = [column for pair in pairs for column in _uploaded(*pair, call.device)]
        rows, places = _find_pairs(_as_one(columns), how == "left", size)
    else:
        rows = arange(rows_left if how == "left" else 0, dtype="u32", device=call.device)
        places = full(rows.size, -1, "i32", call.device)
    return call.result(rows, np.intp), call.result(places, np.intp)


# ---- columns


@dataclass
class _Column:
    """A column of keys.

    Attributes
    ----------
    name : str
    items : numpy.ndarray or Array
        Those of labels are their codes.
    missing : numpy.ndarray, optional
        Which integers or bools of a nullable column are nulls.
    labels : Labels, optional
        Of what is neither numbers nor dates.
    is_untyped : bool
        Whether it is an empty list, which fits any other column.
    """

    name: str
    items: Any
    missing: np.ndarray | None
    labels: Labels | None
    is_untyped: bool

    @property
    def kind(self) -> str:
        """What it is of; only columns of one kind are compared."""
        if self.labels is not None:
            if any(getattr(label, "tzinfo", None) for label in self.labels.labels[:1]):
                return _ZONED
            return "bytes" if self.labels.labels.dtype.kind == "S" else "text"
        return {"M": "dates", "m": "durations"}.get(self.items.dtype.kind, "numbers")

    def use_numbers(self, known: np.ndarray) -> None:
        """Take the labels' numbers or dates in place of codes, if they are these."""
        labels = Labels(self.items, known)
        if known.dtype.kind in "biu":
            missing = labels.missing(self.items)
            self.missing = missing if missing.any() else None
            self.items, self.labels = np.append(known, known.dtype.type(0))[self.items], None
        elif known.dtype.kind in "fMm":
            self.items, self.labels = labels.of(self.items), None


def _take_side(call: Call, name: str, keys: Any) -> list[_Column]:
    """Return the columns of one side; raise where one is none, or lengths differ."""
    if isinstance(keys, Mapping) or hasattr(keys, "columns"):
        raise ArgumentError(
            f"{call}: {name} is a {type(cast(Any, keys)).__name__}; give a tuple of its columns of keys"
        )
    if is_column(keys):
        return [_take(call, name, keys)]
    columns = [_take(call, f"{name}[{k}]", each) for k, each in enumerate(keys)]
    call.check_lengths(*(column.name for column in columns), of="rows")
    return columns


def _take(call: Call, name: str, value: Any) -> _Column:
    """Take a column of keys."""
    labels, dtype = None, getattr(value, "dtype", None)
    if not isinstance(value, (Items, *EXPRESSIONS)) and not (isinstance(dtype, np.dtype) and dtype.kind in "Mm"):
        labels = labels_of(call.name, name, value)
    items = call.items(name, value) if labels is None else labels.codes
    if isinstance(items, Array):
        check_not_counted(call.name, items)
    elif items.dtype.byteorder not in "=|":
        items = items.astype(items.dtype.newbyteorder("="))
    call.check_dimension(name, items)
    call.hold(name, items.view(np.int64) if items.dtype.kind in "Mm" else items, value)
    column = _Column(name, items, None, labels, is_python(value) and not items.size)
    if labels is not None:  # nullable columns and categories may be of numbers or dates
        column.use_numbers(labels.labels.astype(getattr(dtype, "numpy_dtype", labels.labels.dtype), copy=False))
    return column


def _match(first: _Column, second: _Column) -> tuple[_Column, _Column]:
    """Return a column of each side, of one kind; labels have the codes of the first one's."""
    for column, other in ((first, second), (second, first)):
        if column.is_untyped:
            column.items = other.items[:0]
            column.labels = other.labels and Labels(column.items, other.labels.labels)
        elif column.labels is not None and other.kind == "numbers":
            column.use_numbers(_numbers_among(column.labels.labels))
    if first.kind != second.kind:
        kinds = {first.kind: first.name, second.kind: second.name}
        dtype = "str" if {"text", "bytes", _ZONED} & {*kinds} else "np.int64"
        names = [
            f"{x.name}.to_numpy()" if isinstance(x.items, Array) else f"np.asarray({x.name})" for x in (first, second)
        ]
        remedy = f"convert both, for example to {names[0]}.astype({dtype}) and {names[1]}.astype({dtype})"
        if {*kinds} == {_ZONED, "dates"}:
            remedy = f"give {kinds[_ZONED]}.dt.tz_convert(None), which is UTC"
        raise DatatypeError(
            f"{_CALL}: {first.name} is of {first.kind}, but {second.name} of {second.kind}, of which none are equal; "
            f"{remedy}"
        )
    if first.labels is not None and second.labels is not None:
        second.items = first.labels.codes_of(second.labels)
    return first, second


def _numbers_among(labels: np.ndarray) -> np.ndarray:
    """Return objects that are Python's numbers as numpy's, others as they are."""
    types: set[Any] = {*map(type, labels)} if labels.dtype.kind == "O" else set()
    if not types or types - {bool, int, float}:
        return labels
    made = np.array(labels.tolist())
    if made.dtype.kind == "f" and types == {int}:  # numpy would round them
        return labels if labels[0] < 0 else labels.astype(np.uint64)
    return made


def _in_unit(items: np.ndarray, dtype: np.dtype[Any]) -> np.ndarray:
    """Return dates or durations in a finer unit; those that it does not hold wrap, or are NaT where numpy raises."""
    try:
        return items.astype(dtype, copy=False)
    except OverflowError:  # NumPy 2.4
        ends = np.array([2**40 - 2**63, 2**63 - 2**40])  # rounding to the other unit wraps at the very ends
        least, most = ends.view(dtype).astype(items.dtype)
        return np.where((least < items) & (items < most), items, items.dtype.type("NaT")).astype(dtype)


def _uploaded(first: _Column, second: _Column, device: wgpu.GPUDevice) -> list[list[Array]]:
    """Return columns of 4 or 8 bytes on the GPU, one of each side: keys are equal where all of these are.

    The first has the keys; what follows tells keys apart that have the same bits.
    """
    pair: list[Any] = [first.items, second.items]
    missing, marks = [first.missing, second.missing], list[list[Any]]()
    if first.kind in ("dates", "durations"):
        wide = [_in_unit(items, np.result_type(*pair)) for items in pair]
        # Those that the finer unit does not hold wrap.
        wrapped = [(w.astype(x.dtype) != x) & ~np.isnat(x) for w, x in zip(wide, pair, strict=True)]
        if any(each.any() for each in wrapped):
            marks.append(wrapped)
        pair = [items.view(np.int64) for items in wide]
    dtype = _common_dtype(*pair)
    if dtype.kind == "f" and is_mixed(*pair):
        dtype, pair = np.dtype(np.uint64), [same_bits(items) for items in pair]
        marks.append([is_beyond(asarray(pair[0], device)), np.zeros(pair[1].size, bool)])
    if dtype.kind == "f":
        pair = [x if m is None else np.where(m, np.nan, x) for x, m in zip(pair, missing, strict=True)]
    elif any(m is not None for m in missing):
        marks.append([np.zeros(x.size, bool) if m is None else m for x, m in zip(pair, missing, strict=True)])
    for k, items in enumerate(pair):
        if items.dtype != dtype:
            pair[k] = cast_items(items, dtype) if isinstance(items, np.ndarray) else items.astype(dtype)
    return [[asarray(items, device) for items in pair]] + [
        [asarray(u32(asarray(mark, device))) for mark in each] for each in marks
    ]


def _common_dtype(first: Any, second: Any) -> np.dtype[Any]:
    """Return the dtype of 4 or 8 bytes in which numbers are compared: of 4 where integers of the host fit."""
    dtype = np.result_type(first.dtype, second.dtype)
    if dtype.itemsize < 4:
        return np.dtype(f"{'u' if dtype.kind == 'b' else dtype.kind}4")
    sides = (first, second)
    if dtype.itemsize == 8 and all(isinstance(x, np.ndarray) and x.dtype.kind in "biu" and x.size for x in sides):
        ends = [int(end) for items in sides for end in extremes(items)]
        for narrow in (np.int32, np.uint32):
            if np.iinfo(narrow).min <= min(ends) and max(ends) <= np.iinfo(narrow).max:
                return np.dtype(narrow)
    return dtype


# ---- rows


def _as_one(columns: list[list[Array]]) -> list[Array]:
    """Return one column of each side, whose rows are equal where those of all columns are."""
    found, *others = columns
    for column in others:
        highs, lows = _words(found), _words(column)
        found = [asarray((u64(high) << 32) | u64(low)) for high, low in zip(highs, lows, strict=True)]
    return found


def _words(column: list[Array]) -> list[Array]:
    """Return u32 for keys of both sides, which are equal where the keys are."""
    left, right = column
    if left.dtype.kind in "iu" and left.dtype.itemsize == 4:
        return [left.view("u32"), right.view("u32")]
    ordered = sort(right)
    begins, ends = _bounds(ordered, left)
    return [asarray(where(ends > begins, begins, _ABSENT)), searchsorted(ordered, right)]


def _bounds(ordered: Array, keys: Array) -> tuple[Array, Array]:
    """Return before and behind which of the ordered keys others go.

    Ordered keys find their ends in few cache lines, so that others need one search and a look at what it found.
    """
    begins = searchsorted(ordered, keys)
    if not ordered.size:
        return begins, begins
    if keys.datatype.name == "f64" and not context_of(keys.device).has_float64:
        return begins, searchsorted(ordered, keys, "right")
    ends, found = searchsorted(ordered, ordered, "right"), gather(ordered, begins)
    is_found = found == keys
    if keys.dtype.kind == "f":
        is_found = is_found | (isnan(found) & isnan(keys))
    return begins, asarray(where(is_found & (begins < ordered.size), gather(ends, begins), begins))


def _find_pairs(column: list[Array], keeps_all: bool, size: int | None) -> tuple[Array, Array]:
    """Return the positions of equal keys, of those of the left side without others once, if asked for."""
    left, right = column
    order = argsort(right)  # stable: right rows with one key stay in their order
    begins, ends = _bounds(take(right, order), left)
    counts = asarray(maximum(ends - begins, int(keeps_all)))
    room = int(sum_of(counts).item()) if size is None else size
    if room > _ABSENT:
        raise ArgumentError(f"{_CALL}: {room} pairs of rows are equal, but fewer than 2^32 fit; join parts of left")
    rows = keep_primitive(Repeat, left.device, None, size=max(room, 1)).run_once(counts=counts)["output"]
    # Of the pairs of a row, the first one has the place `begins` among the ordered keys. Without a match there is one
    # pair, which gets the place that is none.
    shifts = asarray(where(ends > begins, begins, _ABSENT) - scan(counts, kind="exclusive"))
    if size is None:
        rows = rows.viewed_as(rows.shape)[:room]
    places = gather(shifts, rows) + index
    return rows, asarray(where(places == _ABSENT, i32(-1), i32(gather(order, places))))
