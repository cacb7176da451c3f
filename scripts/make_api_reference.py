"""The reference of the site, from the docstrings: a page for each public name, and one for each subject.

    python scripts/make_api_reference.py FOLDER

Sphinx calls `write` before it reads its pages (docs/_ext/made_pages.py), and shortens the docstrings
(short_docstrings.py). What is made is not committed. A public name that no subject has is an error, here and
in the tests.
"""

from __future__ import annotations

import functools
import inspect
import re
import sys
from collections import Counter
from pathlib import Path

import short_docstrings

import gridwise_py as gw
from gridwise_py import primitives
from gridwise_py.namespace import INSTEAD
from gridwise_py.tuning.options import Tuning

#: Functions that come with a primitive.
FUNCTIONS = " ".join(name for name in primitives.__all__ if inspect.isfunction(getattr(primitives, name)))
CLASSES = " ".join(cls.__name__ for cls in primitives.REGISTRY.values())

#: Subjects, in the order of the site, with their public names.
AREAS = {
    "Devices": "request_device default_device list_adapters capabilities AdapterDescription Capabilities "
    "LookbackVerdict hold_clock warm_up memory_stats MemoryStats empty_cache",
    "Arrays": "asarray empty zeros ones full arange empty_like zeros_like ones_like full_like pinned_empty Array "
    "ChunkedArray PinnedArray Datatype DATATYPES STORAGE_DATATYPES Struct",
    "One-shot functions": "add take put copy_ranges group_by Groups count flip roll transpose lexsort "
    "segmented_sort segmented_sort_pairs segmented_top_k SegmentedTopItems reduce_by_key ReducedByKey scan_by_key "
    "segmented_reduce "
    "segmented_scan segment_ids repeat sum prod min max minmax MinAndMax ptp argmin argmax argminmax ArgMinAndMax any "
    "all "
    "find find_if mean average var std median percentile quantile nansum nanprod nanmin nanmax nanargmin nanargmax "
    "nanmean nanvar nanstd "
    "nanmedian nanpercentile nanquantile diff ediff1d "
    "reduce cumsum cumprod cumulative_sum cumulative_prod scan sort "
    "argsort sort_pairs top_k TopItems nth_element partition argpartition matmul "
    "searchsorted digitize histogram histogram2d histogram_bin_edges bincount reduce_by_index scatter_add "
    "compress extract delete flatnonzero nonzero count_nonzero partition_by run_length_encode unique "
    "unique_values unique_counts unique_inverse unique_all merge MergedPairs isin union1d intersect1d setdiff1d "
    f"setxor1d {FUNCTIONS} stream",
    "Expressions": "Expression f32 i32 u32 leaf scalar index result abs absolute bitcast ceil clip cos exp "
    "floor function gather isnan log maximum minimum next popcount previous rint round sign sin sqrt struct tanh "
    "where",
    "Operators": "Add Multiply Min Max And Or Xor ArgMin ArgMax ArgMinMax MinMax Moments First Last BinOp UnaryOp",
    "Primitives": f"{CLASSES} ScanAxis SegmentedTopK Scatter CopyRanges Histogram2D GroupBy Kernel Primitive Run "
    "BoundCall batch "
    "capture Sequence SequenceRun",
    "Tuning": "ScanTuning ReduceTuning AxisTuning SortTuning SegmentedSortTuning StreamTuning HistogramTuning "
    "MatMulTuning ElementwiseTuning",
    "Timing": "TimingResult PerTrial Span timing_helper TimingHelper TimingSession timing_overhead "
    "TimingOverheads TimingOverhead StampCost Event synchronize profile Profile "
    "KeyAverages KeyAverage",
    "Measuring": "benchmarked Benchmark measure SamplingProtocol Measurement Mismatch benchmark BenchmarkResult "
    "compare_kernels KernelComparison EnergyResult EnergyWindow "
    "read_results write_results to_dataframe",
    "Plans": "Plan Work Layout Operand Argument SameAs Product UpTo Signature",
    "Errors": "GridwiseError ArgumentError DatatypeError CallError BoundsError AxisError LengthError OverlapError "
    "BufferUsageError LimitError EmptyReductionError BadResultsFile AdapterError ShaderError TimingError "
    "TimingNotReady TimingUnavailable ClusterError ImplicitConversionError DeviceError DeviceLostError "
    "DeviceMemoryError DeviceTimeoutError ForkError "
    "GridwiseWarning",
}

#: Parts of a long page, with the names that people look for first; names in no part come last, under "More".
PARTS = {
    "One-shot functions": {
        "Sums, extremes and statistics": "sum prod min max minmax MinAndMax ptp mean average var std median percentile "
        "quantile any all count_nonzero argmin argmax argminmax ArgMinAndMax find find_if reduce",
        "Without NaN": "nansum nanprod nanmin nanmax nanargmin nanargmax nanmean nanvar nanstd nanmedian nanpercentile "
        "nanquantile",
        "Running sums": "cumsum cumprod cumulative_sum cumulative_prod scan",
        "Sorting and searching": "sort argsort sort_pairs lexsort top_k TopItems nth_element partition argpartition "
        "merge "
        "MergedPairs searchsorted digitize",
        "Arithmetic and items": "add diff ediff1d matmul take put copy_ranges repeat flip roll transpose",
        "Selections and sets": "compress extract delete nonzero flatnonzero partition_by unique unique_values "
        "unique_counts unique_inverse unique_all run_length_encode isin union1d intersect1d setdiff1d setxor1d",
        "Counts and bins": "histogram histogram2d histogram_bin_edges bincount reduce_by_index scatter_add",
        "By key": "group_by Groups count reduce_by_key ReducedByKey scan_by_key",
        "By segment": "segmented_reduce segmented_scan segmented_sort segmented_sort_pairs segmented_top_k "
        "SegmentedTopItems segment_ids",
        "Data larger than memory": "stream",
    },
    "Primitives": {
        "Reductions and scans": "Reduce ReduceAxis Scan ScanAxis",
        "Sorts, merges and searches": "Sort SortPairs ArgSort MergeSort Merge TopK NthElement Search",
        "Item by item": "Map VectorAdd Copy CopyRanges MatMul Transpose Repeat Scatter",
        "Selections, runs and bins": "Select FindIf Partition Unique RunLength Histogram Histogram2D ReduceByIndex",
        "By key and by segment": "GroupBy ReduceByKey ScanByKey SegmentedReduce SegmentedScan SegmentedSort "
        "SegmentedTopK",
        "Your own WGSL": "Kernel",
        "Calls": "Primitive Run BoundCall batch capture Sequence SequenceRun",
    },
}

#: Subjects of a single page: what each of their names needs is a few lines.
ON_ONE_PAGE = {"Expressions", "Operators", "Tuning", "Plans", "Errors"}
#: Names on pages whose first lines link the shared arguments.
LINKED_ONCE = {name for subject in ("Expressions", "Operators", "Tuning") for name in AREAS[subject].split()}
#: Names that are on the page of another one, which gives them.
COMPANIONS = {
    "Groups": "group_by",
    "SegmentedTopItems": "segmented_top_k",
    "ReducedByKey": "reduce_by_key",
    "MinAndMax": "minmax",
    "ArgMinAndMax": "argminmax",
    "TopItems": "top_k",
    "MergedPairs": "merge",
    "AdapterDescription": "list_adapters",
    "MemoryStats": "memory_stats",
    "LookbackVerdict": "Capabilities",
    "StampCost": "timing_overhead",
    "TimingOverhead": "timing_overhead",
    "TimingOverheads": "timing_overhead",
    "KeyAverage": "KeyAverages",
    "EnergyResult": "Measurement",
    "EnergyWindow": "Measurement",
    "Benchmark": "benchmarked",
    "BenchmarkResult": "benchmark",
    "KernelComparison": "compare_kernels",
    "SequenceRun": "Sequence",
    "Span": "TimingResult",
    "PerTrial": "TimingResult",
    "timing_helper": "TimingHelper",
    "STORAGE_DATATYPES": "DATATYPES",
}

#: Public members that the library's own modules call, and users have no use for; `help()` shows them.
INTERNAL = {
    "Array": "as_expression lease on place viewed_as",
    "PinnedArray": "direction download upload",
    "Datatype": "computed computed_as element_bytes elements highest is_several key lowest rounds",
    "ChunkedArray": "ravel",
    "Struct": "values_of",
    "Expression": "as_expression",
    "BinOp": "accumulator builtin empty_result find identity_for checks_for number rounded text_for",
    "UnaryOp": "builtin find checks_for number text_for twin",
    "Primitive": "at_size capabilities has_reference run_once signature",
    "Run": "measurement",
    "SequenceRun": "measurement",
    "BoundCall": "bound_plan check encode in_place key_if_given parsed plan repeats run shapes",
    "Sequence": "barriers name",
    "Capabilities": "facts subgroup_mode tuning",
    "TimingHelper": "collect device pairs_in_use stamps_encoders stamps_passes",
    "TimingSession": "abandon device edges is_read is_submitted shared_pass span_count",
    "TimingOverheads": "of",
    "StampCost": "of",
    "Event": "device session stamps",
    "Profile": "allocated copies kernels past_step record_primitive span times_kernels",
    "EnergyResult": "from_json to_json",
    "EnergyWindow": "from_json to_json",
    "SamplingProtocol": "stopping",
    "Layout": "separate shares with_values",
    "Operand": "begin_bytes by_words chunks first_byte overlaps parts size_bytes streams window",
    "Argument": "aligned ascending cast components fed in_order is_apart resolved",
    "UpTo": "item per plus room",
    "Product": "items",
    "SameAs": "of per times",
    "Signature": "check_lengths check_shapes datatype is_counted length_like may_overlap of output_length rule words",
    "Work": "counted moved_bytes totals with_counts",
    "Plan": "copied_from copied_to features scratch_bytes siblings",
}
#: What a class of primitives has beyond `Primitive`, and users call.
OF_PRIMITIVES = {"error_bound", "output_shape"}

#: What the first lines of a subject's page say.
ABOUT = {
    "Devices": "A device is a wgpu.GPUDevice. gridwise_py measures what it can do, and keeps caches with it.",
    "Arrays": "Data on the GPU. Nothing is copied from the GPU implicitly: `Array.to_numpy` and `Array.item` copy.",
    "One-shot functions": "Numpy in, numpy out; or `Array` in, `Array` out, which stays on the GPU. A function with "
    "the name of numpy's does what that does, but for what its page says.",
    "Expressions": "Of arrays of the host these functions compute at once. :doc:`/concepts/expressions`.",
    "Operators": "What reductions and scans combine items by. All are associative.",
    "Primitives": "Make a primitive once for a device and call it often. `Primitive` has what all of them share.",
    "Tuning": "Options that change only the speed, and the rounding of float sums, passed as ``tuning=``. All have "
    "``to_dict()``, and ``from_dict(data)``, which makes them of JSON.",
    "Timing": "Times of calls on the clocks of the GPU and the CPU. All are in nanoseconds.",
    "Measuring": "Many samples of a call, with intervals and checks. These need the extra ``bench``.",
    "Plans": "What a call does, as data that needs no GPU: for tests, reports, and primitives of your own.",
    "Errors": "All exceptions derive from `GridwiseError`. After an `ArgumentError` nothing was submitted.",
}

# Objects that are no functions and no classes have no docstring of their own.
OBJECTS = {
    "Add": "Sum. Identity 0; integers wrap.",
    "Multiply": "Product. Identity 1; integers wrap.",
    "Min": "Minimum. NaN propagates, −0 orders below +0; a reduction of no items raises.",
    "Max": "Maximum, as `Min`.",
    "And": "Bitwise and, of integers and bools. Identity: all bits.",
    "Or": "Bitwise or. Identity 0.",
    "Xor": "Bitwise exclusive or. Identity 0.",
    "ArgMin": "The struct with the smallest first field; of several the one with the smallest second, an index of u32. "
    "−0 equals +0, and NaN is smallest.",
    "ArgMax": "As `ArgMin`, with the largest first field; NaN is largest.",
    "ArgMinMax": "`ArgMin` of a struct's first two fields and `ArgMax` of its last two.",
    "MinMax": "The minimum of a struct's first field and the maximum of its second; NaN propagates.",
    "Moments": "Count (u32), mean and sum of squared distances from the mean (f32) as the fields of a struct.",
    "First": "The first struct whose first field, of u32, is not 0.",
    "Last": "The last such struct.",
    "result": "What a primitive computes for an item of its output; for ``output=``.",
    "count": "The number of rows of a group, for `group_by`.",
    "index": "The number of the item that is computed, from 0; of u32.",
    "DATATYPES": "The datatypes that kernels compute with, by name: " + ", ".join(gw.DATATYPES) + ".",
    "STORAGE_DATATYPES": "What arrays can hold, by name: " + ", ".join(gw.STORAGE_DATATYPES) + ".",
}


def own_members(cls: type) -> list[str]:
    """Return the public methods and properties that a class brings in; what it overrides is at its base.

    Bases that are not public count as a part of the class.
    """
    if issubclass(cls, Tuning):  # the page says what all of them have
        return []
    public = {value for name in gw.__all__ if inspect.isclass(value := getattr(gw, name))}
    own = [
        base for base in cls.__mro__ if base is cls or (base not in public and base.__module__.startswith("gridwise"))
    ]
    brought = {name: thing for base in reversed(own) for name, thing in vars(base).items()}
    kinds = (property, functools.cached_property, classmethod, staticmethod)
    internal = INTERNAL.get(cls.__name__, "").split()
    if unknown := [name for name in internal if not hasattr(cls, name) and name not in cls.__annotations__]:
        raise SystemExit(f"INTERNAL of {Path(__file__).name} has members that {cls.__name__} lacks: {unknown}")
    names = [
        name
        for name, thing in brought.items()
        if not name.startswith("_")
        and name not in internal
        and (isinstance(thing, kinds) or inspect.isfunction(thing))
        and not any(name in vars(base) for base in cls.__mro__ if base not in own)
    ]
    # What primitives share is at Primitive, but for the names of what each takes.
    if cls is not gw.Primitive and issubclass(cls, gw.Primitive):
        names = [name for name in names if name in OF_PRIMITIVES]
        names += ["execute"] if _parameters(cls.execute) != _parameters(gw.Primitive.execute) else []
    return sorted(names)


def _parameters(function: object) -> list[str]:
    return list(inspect.signature(function).parameters)  # type: ignore[arg-type]


def slug(subject: str) -> str:
    """Return the file name of a subject, without its ending."""
    return re.sub(r"\W+", "-", subject.lower())


def entry(name: str) -> list[str]:
    """Return the directive of one public name, as reStructuredText."""
    thing = getattr(gw, name)
    if name in OBJECTS:
        return [f".. py:data:: {name}", "", f"   {OBJECTS[name]}", ""]
    if not inspect.isclass(thing):
        return [f".. autofunction:: {name}", ""]
    if issubclass(thing, BaseException):
        return [f".. autoexception:: {name}", "   :show-inheritance:", ""]
    members = own_members(thing)
    return [f".. autoclass:: {name}", *([f"   :members: {', '.join(members)}"] if members else []), ""]


def subjects() -> dict[str, list[str]]:
    """Return the public names of each subject; every one must have exactly one."""
    found = {subject: [name for name in names.split() if name in gw.__all__] for subject, names in AREAS.items()}
    every = [name for names in found.values() for name in names]
    missing, twice = set(gw.__all__) - set(every), {name for name in every if every.count(name) > 1}
    if missing or twice:
        raise SystemExit(
            f"put each public name into one area of {Path(__file__).name}; "
            f"in none: {sorted(missing)}, in two: {sorted(twice)}"
        )
    return found


def parts(subject: str, names: list[str]) -> dict[str, list[str]]:
    """Return the names of a subject by the part of the page that has them; a short page is one part without a title."""
    found = {title: words.split() for title, words in PARTS.get(subject, {}).items()}
    placed = [name for part in found.values() for name in part]
    if wrong := sorted({name for name in placed if name not in names or placed.count(name) > 1}):
        raise SystemExit(f"PARTS of {Path(__file__).name} has names twice, or that {subject!r} lacks: {wrong}")
    if left := [name for name in names if name not in placed]:
        found["More" if found else ""] = left
    return found


def _said(name: str) -> str:
    """Return the first sentence of a docstring."""
    text = OBJECTS[name] if name in OBJECTS else inspect.getdoc(getattr(gw, name)) or ""
    return " ".join(text.partition("\n\n")[0].split())


def _short(text: str, details: str = ":;,") -> str:
    """Return a sentence up to its details."""
    short = re.match(rf"(?:``.*?``|:\w+:`|[^{details}]|,(?! \w+ \w))*", text)[0]  # type: ignore[index]
    return short if short == text else f"{short}."


@functools.cache
def _shorts() -> Counter[str]:
    return Counter(_short(_said(name)) for name in gw.__all__)


def summary(name: str) -> str:
    """Return what an overview says of a name, as reStructuredText: what tells it from others, without details."""
    text = _short(_said(name))
    text = short_docstrings.without_return(text if _shorts()[text] == 1 else _short(_said(name), ":;"))
    return re.sub(r"(``.*?``)|\|", lambda found: found[1] or r"\|", text)


def overview(names: list[str]) -> list[str]:
    """Return a table of names with their first sentences: a long page says first what it has."""
    lines = [".. list-table::", "   :widths: 25 75", "   :class: overview", ""]
    for name in names:
        lines += [f"   * - :py:obj:`{name} <gridwise_py.{name}>`", f"     - {summary(name)}"]
    return [*lines, ""]


def page_of(name: str, names: list[str]) -> str:
    """Return the file of a name's page, without its ending: not all systems tell ``profile`` from ``Profile``."""
    same = [other for other in names if other.lower() == name.lower()]
    return f"{name}-class" if len(same) > 1 and inspect.isclass(getattr(gw, name)) else name


def titled(title: str, text: list[str]) -> list[str]:
    """Return the lines of a page."""
    return [title, "=" * len(title), "", ".. py:currentmodule:: gridwise_py", "", *text]


def pages() -> dict[str, str]:
    """Return the text of each page by its file name."""
    made = {"shared.rst": short_docstrings.shared_page()}
    for subject, names in subjects().items():
        lines, below = [ABOUT[subject], ""], []
        lines += [":doc:`Shared arguments <shared>`.", ""] if LINKED_ONCE & {*names} else []
        for title, some in (found := parts(subject, names)).items():
            if subject in ON_ONE_PAGE:
                lines += [line for name in some for line in entry(name)]
                continue
            lines += [title, "-" * len(title), ""] if len(found) > 1 else []
            leading = [name for name in some if name not in COMPANIONS]
            lines += overview(leading)
            for name in leading:
                together = [name, *(other for other in names if COMPANIONS.get(other) == name)]
                text = [line for part in together for line in entry(part)]
                page = f"{slug(subject)}/{page_of(name, names)}"
                made[f"{page}.rst"] = "\n".join(titled(name, text))
                below.append(f"   {page}")
        if below:
            lines += [".. toctree::", "   :hidden:", "", *below, ""]
        made[f"{slug(subject)}.rst"] = "\n".join(titled(subject, lines))
    return made


def missing_names() -> str:
    """Return what takes the place of names of numpy and pandas that are missing here, as a table in Markdown."""
    places: dict[str, list[str]] = {}
    for name, place in INSTEAD.items():
        places.setdefault(place, []).append(f"`{name}`")
    rows = [f"| {', '.join(names)} | {place.replace('|', chr(92) + '|')} |" for place, names in places.items()]
    return "\n".join(["| name | in its place |", "| --- | --- |", *rows, ""])


def write(folder: Path) -> None:
    """Write the pages that changed, and remove those of subjects that are gone."""
    folder.mkdir(parents=True, exist_ok=True)
    made = pages()
    for path in folder.rglob("*.rst"):
        if path.relative_to(folder).as_posix() not in made:
            path.unlink()
    for name, text in made.items():
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write(Path(sys.argv[1]))
