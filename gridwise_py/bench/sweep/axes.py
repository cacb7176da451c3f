"""Axes of a sweep: the arguments of ``-a``, such as ``n[pow2]=[16:28:2]`` or ``datatype=u32,f32``.

An axis is ``NAME[MODIFIER]=VALUES``. Values are a list (``u32,f32``, also in brackets) or a range that includes both
ends (``[first:last:step]``, by default step 1). With the modifiers ``pow2`` and ``pow10``, values are exponents.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from ... import STORAGE_DATATYPES
from ...call_errors import nearest
from ...errors import ArgumentError
from ..cases.distributions import DISTRIBUTIONS
from ..cases.mode import MODES

#: Names of axes, and their possible values; None: counts, a float: numbers from 0 to it.
Kinds: TypeAlias = Mapping[str, tuple[str, ...] | float | None]

#: Those of the primitives. What they mean, beyond n, datatype, op and mode, is up to the workloads that name them.
AXES: Kinds = {
    "n": None,
    "datatype": tuple(STORAGE_DATATYPES),
    "op": ("add", "min", "max", "multiply"),
    "distribution": tuple(DISTRIBUTIONS),
    "run": None,
    "segment": None,
    "share": 1.0,
    "bins": None,
    "k": None,
    "along": ("rows", "columns"),
    "mode": MODES,
}
_MODIFIERS = {"pow2": 2, "pow10": 10}
_MOST_VALUES = 10_000
_LARGEST_COUNT = 1 << 64


def _error(text: str, position: int, problem: str) -> ArgumentError:
    """Return an error that shows its place in the text of an axis."""
    return ArgumentError(f"axis, column {position + 1}: {problem}\n  {text}\n  {' ' * position}^")


#: Counts, or words.
Values: TypeAlias = tuple[int, ...] | tuple[str, ...]


@dataclass(frozen=True)
class Axis:
    """A name and its values, in order, without duplicates."""

    name: str
    values: Values


def parse_count(word: str) -> int | None:
    """Return the count that a word says (``1000``, ``1_000_000``, ``2^24``, ``2**24``, ``1e6``), or None."""
    power = re.fullmatch(r"(\d{1,2})(?:\^|\*\*)(\d{1,2})", word)
    if power:
        count = int(power[1]) ** int(power[2])
    elif re.fullmatch(r"\d[\d_]{0,30}", word):
        count = int(word.replace("_", ""))
    elif re.fullmatch(r"\d{1,20}(\.\d{1,20})?[eE]\d{1,2}", word) and float(word).is_integer():
        count = int(float(word))
    else:
        return None
    return count if count <= _LARGEST_COUNT else None


#: Axes that divide n, or are lengths that something must have.
_LEAST_1 = ("run", "segment", "bins")


def _words(text: str, start: int, separator: str) -> Iterator[tuple[int, str]]:
    """Words between separators, without the blanks around them, each with its column in the whole text."""
    for word in text.split(separator):
        yield start + len(word) - len(word.lstrip()), word.strip()
        start += len(word) + 1


def parse_axis(text: str, known: Kinds = AXES) -> Axis:
    """Read one axis.

    Parameters
    ----------
    text : str
        As ``n[pow2]=[16:28:2]``, ``n=1000,2^20``, ``datatype=u32,f32``.
    known : mapping
        The axes that there are.

    Raises
    ------
    ArgumentError
        If it cannot be parsed; the message has the column.
    """
    head = re.match(r"\s*(\w*)(?:\[(\w*)\])?\s*", text)
    assert head is not None
    name, modifier = head[1], head[2]
    if name not in known:
        there_are = f"there are {', '.join(known)}{nearest(name, known)}"
        raise _error(text, head.start(1), f"there is no axis {name!r}; {there_are}")
    if modifier is not None and (modifier not in _MODIFIERS or known[name] is not None):
        counts = ", ".join(name for name, values in known.items() if values is None)
        remedy = f"{counts or 'axes of counts'} take {' and '.join(_MODIFIERS)}, the others none"
        raise _error(text, head.start(2), f"{name!r} has no modifier {modifier!r}; {remedy}")
    if text[head.end() : head.end() + 1] != "=":
        raise _error(text, head.end(), "expected NAME=VALUES or NAME[MODIFIER]=VALUES: '=' is missing")
    start = head.end() + 1
    values = _values(text, start, known[name], _MODIFIERS.get(modifier or ""), signed=known is not AXES)
    if known is AXES and name in _LEAST_1 and 0 in values:
        raise _error(text, start, f"0 is no value of {name!r}: it must be at least 1")
    if len(set(values)) != len(values):
        twice = next(value for i, value in enumerate(values) if value in values[:i])
        raise _error(text, start, f"the value {twice!r} is there twice")
    return Axis(name, values)


def _values(text: str, start: int, known: tuple[str, ...] | float | None, base: int | None, *, signed: bool) -> Values:
    # A user's axis may have negative numbers.
    body = text[start:]
    bracket = re.fullmatch(r"(\s*\[)(.*?)(\]\s*)", body)
    if bracket:
        start, body = start + bracket.end(1), bracket[2]
    elif stray := re.search(r"[\[\]]", body):
        raise _error(text, start + stray.start(), f"this {stray[0]!r} has no partner around all values")
    if ":" in body and bracket is None:
        raise _error(text, start, "a range stands in brackets: [first:last:step]")
    if isinstance(known, (float, int)):
        return tuple(_number(text, at, word, known) for at, word in _words(body, start, ","))
    if known is not None:
        words = list(_words(body, start, ","))
        for at, word in words:
            if word not in known:
                raise _error(text, at, f"{word!r} is not one of {', '.join(known)}")
        return tuple(word for _, word in words)
    numbers = _range(text, body, start) if ":" in body else list(_words(body, start, ","))
    return tuple(
        int(word) if signed and re.fullmatch(r"-\d{1,19}", word) else _count(text, at, word, base)
        for at, word in numbers
    )


def _range(text: str, body: str, start: int) -> list[tuple[int, str]]:
    parts = list(_words(body, start, ":"))
    if len(parts) > 3:
        raise _error(text, parts[3][0], "a range has at most three parts: [first:last:step]")
    counts = [_count(text, at, word, None) for at, word in parts]
    first, last, step = counts if len(counts) == 3 else (*counts, 1)
    if step < 1:
        raise _error(text, parts[2][0], "the step must be at least 1")
    if last < first:
        raise _error(text, parts[1][0], f"the range ends at {last}, before its begin {first}")
    if (last - first) // step >= _MOST_VALUES:
        raise _error(text, start, f"the range has more than {_MOST_VALUES:,} values; a larger step makes fewer")
    return [(parts[0][0], str(value)) for value in range(first, last + 1, step)]


def _count(text: str, at: int, word: str, base: int | None) -> int:
    count = parse_count(word)
    if count is None:
        raise _error(text, at, f"{word!r} is not a count; write 1000, 1_000_000, 2^24 or 1e6, up to 2^64")
    if base is None:
        return count
    if count > 64 or base**count > _LARGEST_COUNT:
        raise _error(text, at, f"{base}^{count} is too large: counts go up to 2^64")
    return base**count


def _number(text: str, at: int, word: str, most: float) -> str:
    """Return a number in the form that all its spellings have."""
    if not re.fullmatch(r"\d{0,10}\.?\d{1,10}", word) or float(word) > most:
        raise _error(text, at, f"{word!r} is not a number from 0 to {most:g}")
    return f"{float(word):g}"


def axis_hint(text: str) -> str | None:
    """Return a hint about an axis that is valid, but probably means something else; else None.

    A range of small counts, as ``n=[12:24]``, looks like one of exponents.
    """
    axis = parse_axis(text)
    if axis.name != "n" or "[pow" in text or ":" not in text or max(int(value) for value in axis.values) > 64:
        return None
    first, last = axis.values[0], axis.values[-1]
    values = ", ".join(str(value) for value in axis.values[:3]) + (", …" if len(axis.values) > 3 else "")
    powers = re.sub(r"\s*n\s*=\s*", "n[pow2]=", text, count=1).strip()
    return f"{text.strip()} is n = {values}; for 2^{first} to 2^{last} write {powers}"


def collect_axes(
    texts: Iterable[str], short: Mapping[str, str | None], defaults: Mapping[str, str], known: Kinds = AXES
) -> dict[str, Axis]:
    """Return all axes, from the arguments of ``-a``, the short options, and defaults for the rest.

    Parameters
    ----------
    texts : iterable of str
        Behind ``-a``.
    short : mapping from str to str or None
        Values of ``--n``, ``--datatype``, …; None if not given.
    defaults : mapping from str to str
    known : mapping
        The axes that there are.

    Raises
    ------
    ArgumentError
        If an axis cannot be read, or is given twice.
    """
    axes: dict[str, Axis] = {}
    for text in (*texts, *(f"{name}={value}" for name, value in short.items() if value is not None)):
        axis = parse_axis(text, known)
        if axis.name in axes:
            raise _error(text, 0, f"the axis {axis.name!r} is given twice; put all its values into one")
        axes[axis.name] = axis
    return {name: axes.get(name) or parse_axis(f"{name}={value}", known) for name, value in defaults.items()} | axes


def points(axes: Mapping[str, Axis]) -> Iterator[dict[str, int | str]]:
    """Yield every combination of the axes' values, the last axis fastest."""
    for values in itertools.product(*(axis.values for axis in axes.values())):
        yield dict(zip(axes, values, strict=True))
