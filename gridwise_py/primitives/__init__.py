"""The primitives, one algorithm per file. The names imported here are public: ``gw.Scan`` and so on."""

from ..runtime.array import OPERATIONS
from .array_methods import METHODS
from .base import Primitive
from .by_key import ReduceByKey, ScanByKey
from .copy import Copy
from .custom_kernel import Kernel
from .fused_calls import evaluated
from .group_by import GroupBy
from .group_spec import count
from .histogram import Histogram, Histogram2D
from .map import Map
from .matmul import MatMul
from .merge import Merge
from .merge_sort import MergeSort
from .partition import Partition
from .reduce import Reduce
from .reduce_axis import ReduceAxis
from .reduce_by_index import ReduceByIndex
from .registry import REGISTRY as REGISTRY
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

__all__ = [
    "ArgSort",
    "Copy",
    "GroupBy",
    "Histogram",
    "Histogram2D",
    "Kernel",
    "Map",
    "MatMul",
    "Merge",
    "MergeSort",
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

OPERATIONS.update(METHODS, evaluate=evaluated)  # what methods of Array run
