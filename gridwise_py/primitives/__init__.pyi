# Made by scripts/make_stubs.py.
# ruff: noqa
PLACES: dict[str, str]
__all__: list[str]
from .base import Primitive as Primitive
from .by_key import ReduceByKey as ReduceByKey
from .by_key import ScanByKey as ScanByKey
from .copy import Copy as Copy
from .copy_ranges import CopyRanges as CopyRanges
from .custom_kernel import Kernel as Kernel
from .every import REGISTRY as REGISTRY
from .find_if import FindIf as FindIf
from .group_by import GroupBy as GroupBy
from .group_spec import count as count
from .histogram import Histogram as Histogram
from .histogram import Histogram2D as Histogram2D
from .map import Map as Map
from .matmul import MatMul as MatMul
from .merge import Merge as Merge
from .merge_sort import MergeSort as MergeSort
from .nth_element import NthElement as NthElement
from .partition import Partition as Partition
from .reduce import Reduce as Reduce
from .reduce_axis import ReduceAxis as ReduceAxis
from .reduce_by_index import ReduceByIndex as ReduceByIndex
from .repeat import Repeat as Repeat
from .run_length import RunLength as RunLength
from .scan import Scan as Scan
from .scan_axis import ScanAxis as ScanAxis
from .scatter import Scatter as Scatter
from .search import Search as Search
from .segmented import SegmentedReduce as SegmentedReduce
from .segmented import SegmentedScan as SegmentedScan
from .segmented_sort import SegmentedSort as SegmentedSort
from .select import Select as Select
from .sort import ArgSort as ArgSort
from .sort import Sort as Sort
from .sort import SortPairs as SortPairs
from .top_k import SegmentedTopK as SegmentedTopK
from .top_k import TopK as TopK
from .transpose import Transpose as Transpose
from .unique import Unique as Unique
from .vector_add import VectorAdd as VectorAdd
