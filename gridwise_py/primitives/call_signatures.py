"""What calls of primitives take, said once: for type checkers, editors and ``help()``.

`scripts/make_stubs.py` makes ``calls.pyi`` of it, the methods that take these arrays as type checkers see them.
"""

from __future__ import annotations

import inspect
import types
from typing import Any, cast

#: By family: the arrays of its calls, in order. One with ``:Items`` may be a ChunkedArray, too; those with ``:ItemsT``
#: are of one kind, which the results have.
CALLS = {
    "ByOffsets": "items offsets output n",
    "CopyRanges": "source:Items source_offsets destination_offsets lengths output:Items",
    "FindIf": "input:Items output n",
    "Histogram": "input:Items edges weights:Items output n",
    "Histogram2D": "x:Items y:Items x_edges y_edges weights:Items output n",
    "InputOutput": "input:ItemsT output:ItemsT n",
    "Merge": "a:ItemsT b:ItemsT a_values:ItemsT b_values:ItemsT a_count b_count output:ItemsT output_values:ItemsT "
    "count",
    "MergeSort": "input:ItemsT values:ItemsT output:ItemsT output_values:ItemsT n",
    "NthElement": "input:Items places values n",
    "Partition": "input:Items flags:Items second_flags:Items first second rest counts n",
    "Reduce": "input:Items output n",
    "ReduceByIndex": "indices:Items items:Items output n",
    "ReduceByKey": "keys items output_keys output_values count n",
    "Repeat": "values counts offsets output count n",
    "RunLength": "keys:Items values starts lengths count n",
    "Scan": "input:ItemsT initial output:ItemsT n",
    "ScanByKey": "keys items output n",
    "Scatter": "items indices output n",
    "Search": "sorted:Items queries:ItemsT sorter:Items output:ItemsT",
    "SegmentedSort": "keys values offsets output_keys output_values n",
    "SegmentedTopK": "input:Items values indices offsets ks starts n",
    "Select": "input:Items flags:Items output count n",
    "SortPairs": "keys:ItemsT values:ItemsT output_keys:ItemsT output_values:ItemsT n",
    "TopK": "input:Items values indices n",
    "TwoInputs": "a:ItemsT b:ItemsT output:ItemsT n",
    "Unique": "keys:Items values:Items output output_keys output_values count n",
}
_KINDS = {"n": "int | Array"}


def arrays_of(family: str, one_kind: str = "ItemsT") -> dict[str, str]:
    """Annotations of the arrays of a family's calls, by name, with a name for those that are of one kind."""
    split = [name.replace("ItemsT", one_kind).partition(":") for name in CALLS[family].split()]
    return {name: f"{kind or _KINDS.get(name, 'Array')} | wgpu.GPUBuffer | None" for name, _, kind in split}


class _LeftOut:
    """What is shown as the default of an array: one that is left out is that of the call before."""

    def __repr__(self) -> str:
        return "..."


_LEFT_OUT = _LeftOut()


def with_arrays(method: types.FunctionType, arrays: dict[str, str]) -> types.FunctionType:
    """Return a method of `Primitive` whose signature names these arrays, in place of ``**arrays``."""
    shown = inspect.signature(method)
    named = [
        inspect.Parameter(
            name, inspect.Parameter.KEYWORD_ONLY, default=_LEFT_OUT, annotation=kind.replace("ItemsT", "Items")
        )
        for name, kind in arrays.items()
    ]
    own = [parameter for name, parameter in shown.parameters.items() if name != "arrays"]
    first = sum(parameter.kind is not inspect.Parameter.KEYWORD_ONLY for parameter in own)
    # A copy, which costs a call nothing.
    copy = types.FunctionType(
        method.__code__, method.__globals__, method.__name__, method.__defaults__, method.__closure__
    )
    copy.__kwdefaults__ = method.__kwdefaults__
    # Without what `functools.wraps` leaves: it would lead Sphinx to a definition with fewer arguments.
    copy.__dict__.update({name: value for name, value in method.__dict__.items() if name != "__wrapped__"})
    copy.__doc__, copy.__qualname__, copy.__module__ = method.__doc__, method.__qualname__, method.__module__
    cast(Any, copy).__signature__ = shown.replace(parameters=[*own[:first], *named, *own[first:]])
    return copy
