"""The primitives, one algorithm per file."""

from .base import Primitive
from .copy import Copy
from .custom_kernel import Kernel
from .matmul import MatMul
from .reduce import Reduce
from .scan import Scan
from .sort import ArgSort, Sort, SortPairs
from .vector_add import VectorAdd

__all__ = ["REGISTRY", "ArgSort", "Copy", "Kernel", "MatMul", "Reduce", "Scan", "Sort", "SortPairs", "VectorAdd"]

#: By the names that the command line uses. The compose, edge-size and benchmark suites find primitives here.
REGISTRY: dict[str, type[Primitive]] = {
    "copy": Copy,
    "vector_add": VectorAdd,
    "reduce": Reduce,
    "scan": Scan,
    "sort": Sort,
    "sort_pairs": SortPairs,
    "argsort": ArgSort,
    "matmul": MatMul,
}
