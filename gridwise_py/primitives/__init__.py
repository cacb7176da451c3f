"""The primitives, one algorithm per file. The names here are public: ``gw.Scan`` and so on."""

import typing as _typing

from .. import namespace as _namespace

if _typing.TYPE_CHECKING:
    from .base import Primitive
    from .by_key import ReduceByKey, ScanByKey
    from .copy import Copy
    from .copy_ranges import CopyRanges
    from .custom_kernel import Kernel
    from .every import REGISTRY as REGISTRY
    from .find_if import FindIf
    from .group_by import GroupBy
    from .group_spec import count
    from .histogram import Histogram, Histogram2D
    from .map import Map
    from .matmul import MatMul
    from .merge import Merge
    from .merge_sort import MergeSort
    from .nth_element import NthElement
    from .partition import Partition
    from .reduce import Reduce
    from .reduce_axis import ReduceAxis
    from .reduce_by_index import ReduceByIndex
    from .repeat import Repeat
    from .run_length import RunLength
    from .scan import Scan
    from .scan_axis import ScanAxis
    from .scatter import Scatter
    from .search import Search
    from .segmented import SegmentedReduce, SegmentedScan
    from .segmented_sort import SegmentedSort
    from .select import Select
    from .sort import ArgSort, Sort, SortPairs
    from .top_k import SegmentedTopK, TopK
    from .transpose import Transpose
    from .unique import Unique
    from .vector_add import VectorAdd

# Loaded when they are first used: a process needs few of them.
PLACES = {
    "Primitive": "base",
    "ReduceByKey": "by_key",
    "ScanByKey": "by_key",
    "Copy": "copy",
    "CopyRanges": "copy_ranges",
    "Kernel": "custom_kernel",
    "FindIf": "find_if",
    "GroupBy": "group_by",
    "count": "group_spec",
    "Histogram": "histogram",
    "Histogram2D": "histogram",
    "Map": "map",
    "MatMul": "matmul",
    "Merge": "merge",
    "MergeSort": "merge_sort",
    "NthElement": "nth_element",
    "Partition": "partition",
    "Reduce": "reduce",
    "ReduceAxis": "reduce_axis",
    "ReduceByIndex": "reduce_by_index",
    "Repeat": "repeat",
    "RunLength": "run_length",
    "Scan": "scan",
    "ScanAxis": "scan_axis",
    "Scatter": "scatter",
    "Search": "search",
    "SegmentedReduce": "segmented",
    "SegmentedScan": "segmented",
    "SegmentedSort": "segmented_sort",
    "Select": "select",
    "ArgSort": "sort",
    "Sort": "sort",
    "SortPairs": "sort",
    "SegmentedTopK": "top_k",
    "TopK": "top_k",
    "Transpose": "transpose",
    "Unique": "unique",
    "VectorAdd": "vector_add",
    "REGISTRY": "every",
}

__all__ = [
    "ArgSort",
    "Copy",
    "CopyRanges",
    "FindIf",
    "GroupBy",
    "Histogram",
    "Histogram2D",
    "Kernel",
    "Map",
    "MatMul",
    "Merge",
    "MergeSort",
    "NthElement",
    "Partition",
    "Primitive",
    "Reduce",
    "ReduceAxis",
    "ReduceByIndex",
    "ReduceByKey",
    "Repeat",
    "RunLength",
    "Scan",
    "ScanAxis",
    "ScanByKey",
    "Scatter",
    "Search",
    "SegmentedReduce",
    "SegmentedScan",
    "SegmentedSort",
    "SegmentedTopK",
    "Select",
    "Sort",
    "SortPairs",
    "TopK",
    "Transpose",
    "Unique",
    "VectorAdd",
    "count",
]

if not _typing.TYPE_CHECKING:  # a type checker would take every name for one that is there
    __getattr__ = _namespace.loaded_late(__name__, PLACES)
