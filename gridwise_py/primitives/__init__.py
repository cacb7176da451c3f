"""The primitives, one algorithm per file. The names here are public: ``gw.Scan`` and so on."""

from .. import namespace as _namespace

# Loaded when they are first used: a process needs few of them.
PLACES = _namespace.places_of(
    {
        "base": "Primitive",
        "by_key": "ReduceByKey ScanByKey",
        "copy": "Copy",
        "copy_ranges": "CopyRanges",
        "custom_kernel": "Kernel",
        "every": "REGISTRY",
        "find_if": "FindIf",
        "group_by": "GroupBy",
        "group_spec": "count",
        "histogram": "Histogram Histogram2D",
        "map": "Map",
        "matmul": "MatMul",
        "merge": "Merge",
        "merge_sort": "MergeSort",
        "nth_element": "NthElement",
        "partition": "Partition",
        "reduce": "Reduce",
        "reduce_axis": "ReduceAxis",
        "reduce_by_index": "ReduceByIndex",
        "repeat": "Repeat",
        "run_length": "RunLength",
        "scan": "Scan",
        "scan_axis": "ScanAxis",
        "scatter": "Scatter",
        "search": "Search",
        "segmented": "SegmentedReduce SegmentedScan",
        "segmented_sort": "SegmentedSort",
        "select": "Select",
        "sort": "ArgSort Sort SortPairs",
        "top_k": "SegmentedTopK TopK",
        "transpose": "Transpose",
        "unique": "Unique",
        "vector_add": "VectorAdd",
    }
)
__all__ = sorted(PLACES.keys() - {"REGISTRY"})  # pyright: ignore[reportUnsupportedDunderAll]
__getattr__ = _namespace.loaded_late(__name__, PLACES)
