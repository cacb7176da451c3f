"""Write docs/api.md from the docstrings: every public name with its signature and its summary.

    python scripts/make_api_reference.py

A test fails where the committed file is not what this makes.
"""

from __future__ import annotations

import functools
import inspect
import sys
from pathlib import Path
from typing import Any

import gridwise_py as gw
from gridwise_py import primitives

#: Functions that come with a primitive.
FUNCTIONS = " ".join(name for name in primitives.__all__ if inspect.isfunction(getattr(primitives, name)))
CLASSES = " ".join(cls.__name__ for cls in primitives.REGISTRY.values())

PAGE = Path(__file__).resolve().parent.parent / "docs" / "api.md"

HEAD = """# API reference

Made by `scripts/make_api_reference.py` from the docstrings; do not edit it by hand. All names are in `gridwise_py`,
here `gw`. The docstrings say more: shapes, datatypes, units, errors (`help(gw.Scan)`).
"""

AREAS = {
    "Devices": "request_device default_device list_adapters capabilities AdapterDescription Capabilities "
    "LookbackVerdict hold_clock warm_up memory_stats MemoryStats empty_cache",
    "Arrays": "asarray empty zeros ones full arange empty_like zeros_like ones_like full_like pinned_empty Array "
    "ChunkedArray PinnedArray Datatype DATATYPES STORAGE_DATATYPES Struct",
    "One-shot functions": "add take put group_by Groups count flip roll transpose lexsort "
    "segmented_sort segmented_sort_pairs segmented_top_k reduce_by_key ReducedByKey scan_by_key segmented_reduce "
    "segmented_scan segment_ids repeat sum prod min max minmax MinAndMax argmin argmax any all find mean var std "
    "reduce cumsum cumprod cumulative_sum cumulative_prod scan sort "
    "argsort sort_pairs top_k TopItems partition argpartition matmul "
    "searchsorted digitize histogram histogram2d bincount reduce_by_index scatter_add "
    "compress flatnonzero nonzero count_nonzero partition_by run_length_encode unique "
    "unique_values unique_counts unique_inverse unique_all merge MergedPairs isin union1d intersect1d setdiff1d "
    f"setxor1d {FUNCTIONS} stream",
    "Expressions": "Expression f32 i32 u32 leaf scalar index result bitcast ceil clip cos exp floor "
    "function gather isnan log maximum minimum next popcount previous rint sign sin sqrt struct tanh "
    "where",
    "Operators": "Add Multiply Min Max And Or Xor ArgMin ArgMax MinMax Moments First Last BinOp UnaryOp",
    "Primitives": f"{CLASSES} ScanAxis SegmentedTopK Scatter Histogram2D GroupBy Kernel Primitive Run BoundCall batch "
    "capture Sequence SequenceRun",
    "Tuning": "ScanTuning ReduceTuning AxisTuning SortTuning SegmentedSortTuning StreamTuning HistogramTuning "
    "MatMulTuning ElementwiseTuning",
    "Timing": "TimingResult PerTrial Span timing_helper TimingHelper TimingSession Event synchronize profile Profile "
    "KeyAverages KeyAverage",
    "Measuring": "measure SamplingProtocol Measurement benchmark BenchmarkResult read_results to_dataframe",
    "Plans": "Plan Work Layout Operand Argument SameAs Product UpTo Signature",
    "Errors": "GridwiseError ArgumentError DatatypeError LengthError OverlapError BufferUsageError LimitError "
    "EmptyReductionError BadResultsFile AdapterError ShaderError TimingError TimingNotReady TimingUnavailable "
    "ClusterError ImplicitConversionError DeviceError DeviceLostError DeviceMemoryError DeviceTimeoutError ForkError "
    "GridwiseWarning",
}

# Objects that are no functions and no classes have no docstring of their own.
OBJECTS = {
    "Add": "Sum. Identity 0; integers wrap.",
    "Multiply": "Product. Identity 1; integers wrap.",
    "Min": "Minimum. NaN propagates, −0 orders below +0; a reduction of no items raises.",
    "Max": "Maximum. NaN propagates, −0 orders below +0; a reduction of no items raises.",
    "And": "Bitwise and, of integers and bools. Identity: all bits.",
    "Or": "Bitwise or, of integers and bools. Identity 0.",
    "Xor": "Bitwise exclusive or, of integers and bools. Identity 0.",
    "ArgMin": "The struct with the smallest first field; of several the one with the smallest second, an index of u32. "
    "−0 equals +0, and NaN is smallest.",
    "ArgMax": "The struct with the largest first field; of several the one with the smallest second, an index of u32. "
    "−0 equals +0, and NaN is largest.",
    "MinMax": "The minimum of a struct's first field and the maximum of its second; NaN propagates.",
    "Moments": "Count (u32), mean and sum of squared distances from the mean (f32) as the fields of a struct.",
    "First": "The first struct whose first field, of u32, is not 0.",
    "Last": "The last struct whose first field, of u32, is not 0.",
    "result": "What a primitive computes for an item of its output; for ``output=``.",
    "count": "The number of rows of a group, for `group_by`.",
    "index": "The number of the item that is computed, from 0; of u32.",
    "DATATYPES": "The datatypes that kernels compute with, by name: " + ", ".join(gw.DATATYPES) + ".",
    "STORAGE_DATATYPES": "What arrays can hold, by name: " + ", ".join(gw.STORAGE_DATATYPES) + ".",
}


def summary(thing: Any) -> str:
    """Return the first paragraph of a docstring in one line."""
    return " ".join((inspect.getdoc(thing) or "").split("\n\n")[0].split())


def signature(thing: Any) -> str:
    """Return names and defaults, without annotations (the docstrings have the types) and without self."""
    found = inspect.signature(thing)
    parameters = [p.replace(annotation=p.empty) for p in found.parameters.values() if p.name not in ("self", "cls")]
    return str(found.replace(parameters=parameters, return_annotation=found.empty))


def members(cls: type) -> list[str]:
    """Return a line per public method and property that the class brings in; what it overrides is at its base.

    Bases that are not public count as a part of the class.
    """
    lines, public = [], {value for name in gw.__all__ if inspect.isclass(value := getattr(gw, name))}
    own = [
        base for base in cls.__mro__ if base is cls or (base not in public and base.__module__.startswith("gridwise"))
    ]
    brought = {name: thing for base in reversed(own) for name, thing in vars(base).items()}
    for name, thing in sorted(brought.items()):
        if name.startswith("_") or any(name in vars(base) for base in cls.__mro__ if base not in own):
            continue
        if isinstance(thing, (property, functools.cached_property)):
            lines.append(f"- `.{name}`: {summary(thing)}")
        elif inspect.isfunction(thing) or isinstance(thing, (classmethod, staticmethod)):
            function = getattr(thing, "__func__", thing)
            awaited = "await " if inspect.iscoroutinefunction(function) else ""
            lines.append(f"- `{awaited}.{name}{signature(function)}`: {summary(function)}")
    # What primitives share is at Primitive, but for the names of what each takes.
    if issubclass(cls, gw.Primitive) and signature(cls.execute) != signature(gw.Primitive.execute):
        lines.append(f"- `.execute{signature(cls.execute)}`: {summary(cls.execute)}")
    return lines


def entry(name: str) -> list[str]:
    """Return the lines of one public name."""
    thing = getattr(gw, name)
    if name in OBJECTS:
        return [f"### `gw.{name}`", "", OBJECTS[name], ""]
    if inspect.isclass(thing) and issubclass(thing, BaseException):
        bases = ", ".join(base.__name__ for base in thing.__bases__)
        return [f"### `gw.{name}({bases})`", "", summary(thing), ""]
    lines = [f"### `gw.{name}{signature(thing)}`", "", summary(thing), ""]
    if inspect.isclass(thing) and (listed := members(thing)):
        lines += [*listed, ""]
    return lines


def reference() -> str:
    """Return the page."""
    areas = {area: [n for n in names.split() if n in gw.__all__] for area, names in AREAS.items()}
    missing = set(gw.__all__) - {name for names in areas.values() for name in names}
    if missing:
        raise SystemExit(f"put these public names into an area of {Path(__file__).name}: {sorted(missing)}")
    lines = [HEAD]
    for area, names in areas.items():
        lines += [f"## {area}", ""]
        for name in names:
            lines += entry(name)
    return "\n".join(lines).rstrip() + "\n"


if __name__ == "__main__":
    PAGE.write_text(reference(), encoding="utf-8")
    print(f"wrote {PAGE.name}", file=sys.stderr)
