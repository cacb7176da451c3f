"""The names of the core that this library's own applications use beyond the public ones.

`bench`, `browser`, `fleet`, `dask` and `cli` take from the core what ``gridwise_py`` exports, what the small shared
packages have (errors, settings, storage, display, …), and what is named here; a contract in pyproject.toml refuses the
rest. So all else in the core changes without a look at them. Nothing in the core imports this module.
"""

from .backend.clock import hold as hold_adapters_clock
from .backend.device_errors import is_lost
from .backend.device_state import queue_uses
from .backend.gpu import EnergySensor
from .backend.queues import guard_queue, submit, wait_idle, wait_method, write_timestamp
from .planning.layout import COUNT
from .planning.plan import BufferSpec
from .planning.plan import Kernel as PlannedKernel
from .planning.shaders import prologue, where_in_shader
from .primitives import REGISTRY
from .primitives.base import ReferenceParts, reference_parts
from .primitives.engines.elementwise import Elementwise, elementwise_arguments
from .primitives.engines.operator import OperatorPrimitive, wider
from .primitives.group_by import SortedItems, sorted_items
from .primitives.reduce import fold
from .primitives.select import FlatNonzero
from .primitives.sort import SortPrimitive
from .runtime.array import OnGpu, check_usable
from .runtime.chunked_array import Items, parts
from .runtime.compile_threads import compile_threads
from .runtime.context import context_of
from .runtime.device import SUBGROUP_PROBE, device_key, device_with_checks, engine_description, expect_software
from .runtime.encodable import Spans
from .runtime.executor import BoundPlan, BufferRange
from .runtime.gpu_clock import clock_held, observe
from .runtime.gpu_identity import gpu_of, pci_of
from .runtime.internal_kernels import bind_nothing, bind_own, own_plan
from .runtime.lookback_selftest import (
    AGAIN_AT_MOST,
    DISPATCHES,
    STALLED,
    STALLED_DISPATCHES,
    TILES,
    ProbeCounts,
    lookback_verdict,
    probe_plan,
    verdict_of,
)
from .runtime.memory import Lease
from .runtime.run import Timed, bracket
from .runtime.sequence import kernel_labels
from .runtime.shared_items import overlapping
from .timing.chrome_trace import ChromeTrace, GpuSlice
from .timing.queries import MAX_PAIRS, Edges
from .tuning.candidates import candidates
from .tuning.model import KERNELS, shape_of
from .tuning.store import TUNING_KIND, keep_facts, keep_tuning, kept_tuning, load_tuning
from .types.datatype import ITEM_DATATYPES, MATMUL_DATATYPES, VALUE_DATATYPES, as_datatype
from .types.nudging import Nudging
from .types.operators import BinOpLike, as_binop
from .types.options import integer
from .types.struct_operators import field_operators
from .types.unary_operators import ulps_of

__all__ = [  # noqa: RUF022 - by what they are for
    # arguments and datatypes, read and refused as the core does it
    "COUNT",
    "ITEM_DATATYPES",
    "MATMUL_DATATYPES",
    "VALUE_DATATYPES",
    "BinOpLike",
    "as_binop",
    "as_datatype",
    "integer",
    # primitives as a list and by kind: what there is to measure, and over which axes
    "REGISTRY",
    "Elementwise",
    "OperatorPrimitive",
    "SortPrimitive",
    "elementwise_arguments",
    # references: in which type and order numpy adds for a check, and how far a right result may be off
    "Nudging",
    "ReferenceParts",
    "SortedItems",
    "field_operators",
    "fold",
    "reference_parts",
    "sorted_items",
    "ulps_of",
    "wider",
    # whichever arrays on the GPU, and their memory
    "Items",
    "Lease",
    "OnGpu",
    "check_usable",
    "overlapping",
    "parts",
    # a device: what is kept for it, what findings about it hold for, which GPU it is, whether it is lost
    "context_of",
    "device_key",
    "device_with_checks",
    "engine_description",
    "expect_software",
    "gpu_of",
    "is_lost",
    "pci_of",
    # submitting and waiting, so that a wall clock shows the GPU's work and nothing else
    "bracket",
    "compile_threads",
    "guard_queue",
    "queue_uses",
    "submit",
    "wait_idle",
    "wait_method",
    # timestamps in places of the caller's choice, and the limit of their number; traces
    "MAX_PAIRS",
    "ChromeTrace",
    "Edges",
    "GpuSlice",
    "Spans",
    "Timed",
    "kernel_labels",
    "write_timestamp",
    # the clock of a GPU, held and observed, and its energy
    "EnergySensor",
    "clock_held",
    "hold_adapters_clock",
    "observe",
    # plans: of kernels that measure the device itself, and of users' own kernels for a page
    "BoundPlan",
    "BufferRange",
    "BufferSpec",
    "PlannedKernel",
    "bind_nothing",
    "bind_own",
    "own_plan",
    # shaders: for a page's compiler; the line that an error names
    "prologue",
    "where_in_shader",
    # the self-test of look-back, here and in a page that runs it itself
    "AGAIN_AT_MOST",
    "DISPATCHES",
    "STALLED",
    "STALLED_DISPATCHES",
    "SUBGROUP_PROBE",
    "TILES",
    "ProbeCounts",
    "lookback_verdict",
    "probe_plan",
    "verdict_of",
    # shapes of kernels: which there are to try, and how findings are kept
    "KERNELS",
    "TUNING_KIND",
    "FlatNonzero",
    "candidates",
    "keep_facts",
    "keep_tuning",
    "kept_tuning",
    "load_tuning",
    "shape_of",
]
