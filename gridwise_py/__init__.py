"""Data-parallel GPU primitives in WGSL, and a stopwatch that measures them on the GPU.

Overview, after ``import gridwise_py as gw``:

functions like numpy's
    ``gw.sum mean var min argmax any cumsum sort argsort top_k unique nonzero isin histogram bincount take roll matmul``
    and more; of keys and segments ``gw.group_by reduce_by_key segmented_sort`` …
data on the GPU
    ``gw.asarray(x)`` uploads, ``y.to_numpy()`` reads back; ``gw.zeros ones full arange empty``
expressions, computed where they are read
    ``gw.sum(gw.where(x > 0, x * y, 0))``, ``gw.sqrt exp clip gather struct`` …
primitives, constructed once and executed often
    ``gw.Scan(device, "f32").execute(input=x).output``; ``gw.Reduce``, ``gw.Sort``, ``gw.Select``, ``gw.GroupBy`` …
your own operators, functions and kernels
    ``gw.BinOp``, ``gw.UnaryOp``, ``gw.Struct``, ``gw.function``, ``gw.Kernel``
many calls
    ``gw.batch`` submits them together, ``gw.capture`` records them once and replays them
data larger than a buffer or than GPU memory
    ``gw.ChunkedArray``, ``gw.stream``; clusters with ``gridwise_py.dask`` (extra ``dask``)
devices and their memory
    ``gw.default_device request_device list_adapters warm_up memory_stats empty_cache``
times of a call
    ``execute(…, enable_gpu_timing=True).get_timing_result()``, ``gw.Event``, ``gw.profile``
measurements with confidence intervals (extra ``bench``)
    ``gw.measure(primitive, …)``, ``gw.benchmark(callable)``, ``@gw.benchmarked(n=[…])``, the command ``gridwise``;
    joules: ``SamplingProtocol(energy_windows=6)``

Arrays have any number of dimensions and numpy's datatypes of 1 to 8 bytes, complex64 and structs; integers wrap. What
a function takes, and how it differs from numpy's, is in docs/reference/numpy-and-cupy.md. ``dir(gw)`` lists all public
names; see also ``help(gw.sum)`` and ``help(gw.Scan)``.

Examples
--------
>>> import numpy as np, gridwise_py as gw
>>> gw.cumsum([3, 1, 2])
array([3, 4, 6])
>>> x = gw.asarray(np.array([3, 1, 2], dtype=np.int32))
>>> gw.sort(x, descending=True).to_numpy()
array([3, 2, 1], dtype=int32)
"""

from . import errors as _errors
from . import extras as _extras
from . import namespace as _namespace
from . import primitives as _primitives
from ._version import __version__ as __version__

# Watches forks from here on.
from .backend import fork_guard as _fork_guard  # noqa: F401  # pyright: ignore[reportUnusedImport]
from .errors import *  # noqa: F403

# Loaded when they are first used: a process needs few of them. Those of `bench` need its extra.
_MODULES = {
    "bench.cases.benchmarked": "Benchmark benchmarked",
    "bench.checks.check": "Mismatch",
    "bench.results.dataframe": "to_dataframe",
    "bench.results.reader": "read_results",
    "bench.results.writer": "write_results",
    "bench.sampling.benchmark": "BenchmarkResult benchmark",
    "bench.sampling.compare_kernels": "KernelComparison compare_kernels",
    "bench.sampling.energy": "EnergyResult EnergyWindow",
    "bench.sampling.measure": "measure",
    "bench.sampling.measurement": "Measurement",
    "bench.sampling.protocol": "SamplingProtocol",
    "functions.arithmetic": "add diff ediff1d matmul",
    "functions.arrays": "arange digitize full full_like ones ones_like searchsorted take zeros zeros_like",
    "functions.bins": "bincount histogram histogram2d histogram_bin_edges reduce_by_index scatter_add",
    "functions.elementwise": (
        "abs absolute ceil clip cos exp floor isfinite isinf isnan log maximum minimum nan_to_num popcount rint round "
        "sign sin sqrt tanh trunc where"
    ),
    "functions.groups": "Groups group_by",
    "functions.joins": "join",
    "functions.order_statistics": "median nanmedian nanpercentile nanquantile percentile ptp quantile",
    "functions.orders": "copy_ranges flip lexsort put roll transpose",
    "functions.reductions": "max min nanmax nanmin nanprod nansum prod reduce sum",
    "functions.rolling": "Rolling rolling",
    "functions.scans": "cumprod cumsum cumulative_prod cumulative_sum scan",
    "functions.segments": (
        "ReducedByKey SegmentedTopItems reduce_by_key repeat scan_by_key segment_ids segmented_reduce "
        "segmented_scan segmented_sort segmented_sort_pairs segmented_top_k"
    ),
    "functions.selections": (
        "compress delete extract flatnonzero nonzero partition_by run_length_encode unique unique_all "
        "unique_counts unique_inverse unique_values"
    ),
    "functions.sets": "MergedPairs intersect1d isin merge setdiff1d setxor1d union1d",
    "functions.sorts": "TopItems argpartition argsort nth_element partition sort sort_pairs top_k",
    "functions.stacks": "concatenate stack tile",
    "functions.summaries": (
        "ArgMinAndMax MinAndMax all any argmax argmin argminmax average count_nonzero find find_if mean minmax "
        "nanargmax nanargmin nanmean nanstd nanvar std var"
    ),
    "planning.layout": "Layout Operand",
    "planning.plan": "Plan Work",
    "planning.signature": "Argument Product SameAs Signature UpTo",
    "profiling.profile": "Profile profile",
    "profiling.report": "KeyAverage KeyAverages",
    "runtime.array": "Array asarray empty empty_like pinned_empty",
    "runtime.batch": "batch",
    "runtime.bound_call": "BoundCall",
    "runtime.chunked_array": "ChunkedArray",
    "runtime.context": "capabilities empty_cache memory_stats timing_helper",
    "runtime.device": "AdapterDescription default_device list_adapters request_device",
    "runtime.event": "Event synchronize",
    "runtime.gpu_clock": "hold_clock",
    "runtime.memory": "MemoryStats",
    "runtime.pinned": "PinnedArray",
    "runtime.run": "Run",
    "runtime.sequence": "Sequence SequenceRun capture",
    "runtime.timing_overhead": "timing_overhead",
    "streaming": "stream",
    "timing.overhead": "StampCost TimingOverhead TimingOverheads",
    "timing.queries": "TimingHelper TimingSession",
    "timing.result": "PerTrial Span TimingResult",
    "tuning.options": (
        "AxisTuning ElementwiseTuning HistogramTuning MatMulTuning ReduceTuning ScanTuning "
        "SegmentedSortTuning SortTuning StreamTuning"
    ),
    "types.capabilities": "Capabilities LookbackVerdict",
    "types.datatype": "DATATYPES Datatype STORAGE_DATATYPES Struct",
    "types.expression": "Expression f32 f64 i32 i64 index leaf scalar u32 u64",
    "types.expression_functions": "bitcast function gather next previous result struct",
    "types.operators": "Add And BinOp Max Min Multiply Or Xor",
    "types.struct_operators": "ArgMax ArgMin ArgMinMax First Last MinMax Moments",
    "types.unary_operators": "UnaryOp",
    "warming": "warm_up",
}
#: The module of each public name that is loaded late. Primitives come from their files: their package has modules of
#: some names.
_PLACES = _namespace.places_of(_MODULES) | {
    name: f"primitives.{_primitives.PLACES[name]}" for name in _primitives.__all__
}

__all__ = sorted([*_PLACES, *_errors.__all__])  # pyright: ignore[reportUnsupportedDunderAll]


def _needs_bench(name: str) -> bool:
    return _PLACES.get(name, "").startswith("bench.")


def _check_is_installed(what: str) -> None:
    if _needs_bench(what.rpartition(".")[2]):
        _extras.check_bench_is_installed(what)


def __dir__() -> list[str]:
    """Return the public names: modules of the package are found by their full path."""
    return sorted([*__all__, *(name for name in globals() if name.startswith("__"))])


if not _extras.bench_is_installed():  # `from gridwise_py import *`, help() and completion work without
    __all__ = [name for name in __all__ if not _needs_bench(name)]  # pyright: ignore[reportUnsupportedDunderAll]

__getattr__ = _namespace.loaded_late(__name__, _PLACES, _check_is_installed)
