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
from .map import Map
from .matmul import MatMul
from .partition import Partition
from .reduce import Reduce
from .reduce_axis import ReduceAxis
from .registry import REGISTRY as REGISTRY
from .repeat import Repeat
from .run_length import RunLength
from .scan import Scan
from .scan_axis import ScanAxis
from .search import Search
from .segmented import SegmentedReduce, SegmentedScan
from .select import Select
from .sort import ArgSort, Sort, SortPairs
from .unique import Unique
from .vector_add import VectorAdd

__all__ = [
    "ArgSort",
    "Copy",
    "GroupBy",
    "Kernel",
    "Map",
    "MatMul",
    "Partition",
    "Primitive",
    "Reduce",
    "ReduceAxis",
    "ReduceByKey",
    "Repeat",
    "RunLength",
    "Scan",
    "ScanAxis",
    "ScanByKey",
    "Search",
    "SegmentedReduce",
    "SegmentedScan",
    "Select",
    "Sort",
    "SortPairs",
    "Unique",
    "VectorAdd",
    "count",
]

OPERATIONS.update(METHODS, evaluate=evaluated)  # what methods of Array run
