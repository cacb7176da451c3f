"""Data-parallel GPU primitives in WGSL, on every GPU, and a stopwatch for them that can be trusted."""

from .arguments import Argument
from .array import Array, asarray, empty, empty_like
from .bench.benchmark import BenchmarkResult, benchmark
from .bench.measure import measure
from .bench.measurement import Measurement
from .bench.protocol import SamplingProtocol
from .binop import Add, BinOp, Max, Min, Multiply
from .capabilities import Capabilities, LookbackVerdict
from .chunked import ChunkedArray
from .context import capabilities, timing_helper
from .datatype import DATATYPES, STORAGE_DATATYPES, Datatype
from .device import AdapterDescription, default_device, list_adapters, request_device
from .errors import (
    AdapterError,
    ArgumentError,
    BadResultsFile,
    BufferUsageError,
    DatatypeError,
    DeviceError,
    DeviceLostError,
    DeviceMemoryError,
    DeviceTimeoutError,
    EmptyReductionError,
    ForkError,
    GridwiseError,
    GridwiseWarning,
    ImplicitConversionError,
    LengthError,
    LimitError,
    OverlapError,
    ShaderError,
    TimingError,
    TimingNotReady,
    TimingUnavailable,
)
from .event import Event, synchronize
from .functions import add, argsort, cumsum, matmul, max, min, prod, reduce, scan, sort, sort_pairs, sum
from .layout import Layout, Operand
from .plan import Plan, Work
from .primitive import Primitive
from .primitives import ArgSort, Copy, Kernel, MatMul, Reduce, Scan, Sort, SortPairs, VectorAdd
from .profile_report import KeyAverage, KeyAverages
from .profiler import Profile, profile
from .run import Run
from .stream import stream
from .timing import TimingHelper, TimingSession
from .timing_result import PerTrial, Span, TimingResult

__version__ = "0.1.0"

__all__ = [
    "DATATYPES",
    "STORAGE_DATATYPES",
    "AdapterDescription",
    "AdapterError",
    "Add",
    "ArgSort",
    "Argument",
    "ArgumentError",
    "Array",
    "BadResultsFile",
    "BenchmarkResult",
    "BinOp",
    "BufferUsageError",
    "Capabilities",
    "ChunkedArray",
    "Copy",
    "Datatype",
    "DatatypeError",
    "DeviceError",
    "DeviceLostError",
    "DeviceMemoryError",
    "DeviceTimeoutError",
    "EmptyReductionError",
    "Event",
    "ForkError",
    "GridwiseError",
    "GridwiseWarning",
    "ImplicitConversionError",
    "Kernel",
    "KeyAverage",
    "KeyAverages",
    "Layout",
    "LengthError",
    "LimitError",
    "LookbackVerdict",
    "MatMul",
    "Max",
    "Measurement",
    "Min",
    "Multiply",
    "Operand",
    "OverlapError",
    "PerTrial",
    "Plan",
    "Primitive",
    "Profile",
    "Reduce",
    "Run",
    "SamplingProtocol",
    "Scan",
    "ShaderError",
    "Sort",
    "SortPairs",
    "Span",
    "TimingError",
    "TimingHelper",
    "TimingNotReady",
    "TimingResult",
    "TimingSession",
    "TimingUnavailable",
    "VectorAdd",
    "Work",
    "add",
    "argsort",
    "asarray",
    "benchmark",
    "capabilities",
    "cumsum",
    "default_device",
    "empty",
    "empty_like",
    "list_adapters",
    "matmul",
    "max",
    "measure",
    "min",
    "prod",
    "profile",
    "reduce",
    "request_device",
    "scan",
    "sort",
    "sort_pairs",
    "stream",
    "sum",
    "synchronize",
    "timing_helper",
]
