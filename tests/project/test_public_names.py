"""The public names, frozen: one that comes or goes is a decision, and is in the changelog."""

import importlib.util
import re
import types

import numpy as np
import pytest

import gridwise_py as gw
from gridwise_py.namespace import ATTRIBUTES_INSTEAD, INSTEAD
from helpers.paths import ROOT

#: Since which version; what a primitive brings is written down when it is released. A name that goes was deprecated
#: in a minor version (CONTRIBUTING.md), and moves to GONE.
SINCE = {
    "0.1.0": """
        DATATYPES AdapterDescription AdapterError Add Argument ArgumentError Array BadResultsFile BenchmarkResult BinOp
        BufferUsageError Capabilities Copy Datatype DatatypeError DeviceError EmptyReductionError GridwiseError
        GridwiseWarning ImplicitConversionError Kernel Layout LengthError LimitError Max Measurement Min Multiply
        Operand OverlapError PerTrial Plan Primitive Reduce Run SamplingProtocol Scan ShaderError Span TimingError
        TimingHelper TimingNotReady TimingResult TimingSession TimingUnavailable VectorAdd Work add asarray benchmark
        capabilities cumsum default_device empty empty_like list_adapters max measure min prod reduce request_device
        scan sum timing_helper
    """,
    "0.2.0": """
        Expression f32 f64 i32 i64 index isfinite isinf leaf nan_to_num trunc u32 u64
        scalar bitcast ceil clip cos exp flip floor function gather
        isnan log maximum minimum next popcount previous result rint sign sin sqrt struct tanh where
        STORAGE_DATATYPES ArgSort ChunkedArray DeviceLostError DeviceMemoryError DeviceTimeoutError Event ForkError
        KeyAverage KeyAverages LookbackVerdict MatMul Profile Sort SortPairs argsort matmul profile read_results sort
        sort_pairs stream synchronize to_dataframe
        Benchmark benchmarked
        KernelComparison compare_kernels write_results BoundCall Product SameAs Signature UnaryOp UpTo hold_clock
        ElementwiseTuning MatMulTuning ReduceTuning ScanTuning SortTuning Sequence SequenceRun batch capture warm_up
        MemoryStats PinnedArray Struct empty_cache memory_stats pinned_empty arange full full_like ones ones_like take
        zeros zeros_like cumprod AxisTuning ReduceAxis Search digitize searchsorted StreamTuning
        ReduceByKey Repeat ScanByKey SegmentedReduce SegmentedScan ScanAxis cumulative_prod cumulative_sum
        compress count_nonzero flatnonzero nonzero partition_by run_length_encode unique unique_all
        delete extract histogram_bin_edges
        unique_counts unique_inverse unique_values
        And ArgMax ArgMin First Last MinAndMax MinMax Moments Or Xor all any argmax argmin find mean minmax std var
        Scatter SegmentedSort SegmentedSortTuning Transpose lexsort put roll segmented_sort segmented_sort_pairs
        transpose
        TopItems TopK argpartition partition top_k SegmentedTopK segmented_top_k
        ReducedByKey reduce_by_key repeat scan_by_key segment_ids segmented_reduce segmented_scan
        HistogramTuning bincount histogram histogram2d reduce_by_index scatter_add
        Merge MergeSort MergedPairs intersect1d isin merge setdiff1d setxor1d union1d
        GroupBy Groups count group_by join
        ClusterError AxisError BoundsError CallError
        abs absolute average diff ediff1d median nanargmax nanargmin nanmax nanmean nanmedian nanmin nanpercentile
        nanprod nanquantile nanstd nansum nanvar percentile ptp quantile round
        StampCost TimingOverhead TimingOverheads timing_overhead
        EnergyResult EnergyWindow
        ArgMinAndMax ArgMinMax CopyRanges SegmentedTopItems argminmax copy_ranges find_if
        nth_element
        Mismatch
        Rolling rolling concatenate stack tile
    """,
}
#: Public once, and why no more.
GONE: dict[str, str] = {}
#: Names that come with another one, which the changelog has.
COMES_WITH = {
    "Profile": "gw.profile", "KeyAverage": "gw.profile", "KeyAverages": "gw.profile",
    "STORAGE_DATATYPES": "Arrays of f16", "LookbackVerdict": "self-test",
    "MergedPairs": "merge", "StampCost": "gw.timing_overhead", "TimingOverhead": "gw.timing_overhead",
    "TimingOverheads": "gw.timing_overhead", "EnergyResult": "energy_windows", "EnergyWindow": "energy_windows",
}  # fmt: skip


def _frozen():
    return {name: version for version, names in SINCE.items() for name in names.split()}


def test_the_public_names_are_those_that_were_decided_on():
    frozen = set(_frozen())
    assert set(gw.__all__) - frozen - set(gw.primitives.__all__) == set(), (
        "new: put it into SINCE, with an entry in CHANGELOG.md"
    )
    assert frozen - set(gw.__all__) == set(), "gone: deprecate first (CONTRIBUTING.md), then move it to GONE"
    assert not frozen & set(GONE)
    assert sum(len(names.split()) for names in SINCE.values()) == len(frozen), "each name once"


@pytest.mark.needs("the repository")
def test_the_changelog_tells_of_each_name_since_the_first_version():
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    sections = dict(re.findall(r"^## \[([\w.]+)\][^\n]*\n(.*?)(?=^## \[|\Z)", text, re.MULTILINE | re.DOTALL))
    assert set(SINCE) <= set(sections)
    for name, version in _frozen().items():
        if version != "0.1.0":
            assert re.search(rf"\b{re.escape(COMES_WITH.get(name, name))}\b", sections[version]), name
    first = SINCE["0.1.0"].split()
    for name in [*GONE, *(name for name in gw.primitives.__all__ if name not in first)]:
        assert re.search(rf"\b{name}\b", text), name


# ---- what a user meets who types a name


def test_completion_shows_the_public_names_and_no_module():
    shown = [name for name in dir(gw) if not name.startswith("__")]
    assert shown == sorted(gw.__all__)
    assert {"__all__", "__doc__", "__version__"} <= set(dir(gw))


def test_the_first_screen_of_help_shows_the_way():
    text = gw.__doc__
    lists = re.findall(r"``gw\.([\w ]+)``", text)
    named = set(re.findall(r"gw\.(\w+)", text)) | {name for names in lists for name in names.split()}
    assert named <= set(gw.__all__)
    assert {"sum", "asarray", "Scan", "Kernel", "ChunkedArray", "measure", "benchmark", "request_device"} <= named


def test_functions_are_found_where_modules_have_their_name():
    from gridwise_py import capabilities, stream

    assert stream is gw.stream
    assert capabilities is gw.capabilities
    assert importlib.import_module("gridwise_py.types.capabilities").Capabilities is gw.Capabilities


def test_a_name_of_numpy_that_is_missing_says_what_takes_its_place():
    with pytest.raises(AttributeError, match=r"gw\.asarray"):
        gw.array([1, 2, 3])


def test_names_of_numpy_that_are_missing_have_an_answer():
    functions = {name for name, value in vars(np).items() if callable(value) and not isinstance(value, type)}
    assert {name for name in functions if not name.startswith("_")} <= {*gw.__all__, *INSTEAD}
    for name, answer in INSTEAD.items():
        assert name not in gw.__all__, f"{name} is here: take it out of INSTEAD"
        if not isinstance(vars(gw).get(name), types.ModuleType):
            with pytest.raises(AttributeError, match=rf"'gridwise_py' has no attribute '{name}': ") as caught:
                getattr(gw, name)
            assert "{name" not in str(caught.value)
        assert {*re.findall(r"gw\.(\w+)", answer)} <= {*gw.__all__}, name


def test_attributes_that_arrays_have_elsewhere_have_an_answer(device):
    x = gw.asarray(np.arange(4, dtype=np.uint32), device)
    for name, answer in ATTRIBUTES_INSTEAD.items():
        expressions = () if name == "numpy" else (x + 1, gw.u32("x"))  # which have that one
        for value in (x, gw.ChunkedArray([x, x]), *expressions):
            assert not hasattr(value, name), f"{name} is here: take it out of ATTRIBUTES_INSTEAD"
            assert name not in dir(value)
            kind = type(value).__name__
            with pytest.raises(AttributeError, match=rf"^'{kind}' object has no attribute '{name}': \w"):
                getattr(value, name)
        assert {*re.findall(r"gw\.(\w+)", answer)} <= {*gw.__all__}, name
        assert all(hasattr(x, found) for found in re.findall(r"x\.(\w+)", answer)), name


def test_answers_take_nothing_from_what_is_there(device):
    x = gw.asarray(np.arange(4, dtype=np.uint32), device)
    assert {"size", "dtype", "to_numpy"} <= set(dir(x))
    with pytest.raises(AttributeError, match=r"^'Array' object has no attribute 'xyzzy'$"):
        _ = x.xyzzy
    pairs = gw.struct(sum=x, mean=x)  # fields may have these names
    assert gw.asarray(pairs.sum + pairs.mean).tolist() == [0, 2, 4, 6]


def test_any_other_missing_name_is_pythons_own_error():
    with pytest.raises(AttributeError, match=r"^module 'gridwise_py' has no attribute 'xyzzy'$"):
        _ = gw.xyzzy
    assert not hasattr(gw, "__wrapped__")


@pytest.mark.needs("the repository")
def test_the_page_about_numpy_names_what_is_not_here(monkeypatch):
    text = (ROOT / "docs" / "reference" / "numpy-and-cupy.md").read_text(encoding="utf-8")
    assert set(re.findall(r"\bgw\.(\w+)", text)) <= set(gw.__all__)
    monkeypatch.syspath_prepend(ROOT / "docs" / "_ext")
    assert "{include} made/numpy-missing.txt\n" in text
    made = importlib.import_module("reference").missing_names()
    rows = [line.split(" | ") for line in made.splitlines()[2:]]
    assert sorted(name for names, _ in rows for name in re.findall(r"`(\w+)`", names)) == sorted(INSTEAD)
