"""The names of the core that this library's own applications use beyond the public ones.

`bench`, `browser`, `fleet`, `dask` and `cli` take from the core what ``gridwise_py`` exports, what the small shared
packages have (errors, settings, storage, display, …), and what is named here; a contract in pyproject.toml refuses the
rest. So all else in the core changes without a look at them. Nothing in the core imports this module.
"""
# ruff: noqa: F401, I001 - names by what they are for
# pyright: reportUnusedImport=false

# arguments and datatypes, read and refused as the core does it
from .planning.layout import COUNT
from .types.datatype import ITEM_DATATYPES, MATMUL_DATATYPES, VALUE_DATATYPES, as_datatype
from .types.operators import BinOpLike, as_binop
from .types.options import integer

# primitives as a list and by kind: what there is to measure, and over which axes
from .primitives import REGISTRY
from .primitives.engines.elementwise import Elementwise, elementwise_arguments
from .primitives.engines.operator import OperatorPrimitive
from .primitives.sort import SortPrimitive

# references: in which type and order numpy adds for a check, and how far a right result may be off
from .primitives.base import ReferenceParts, reference_parts
from .primitives.engines.operator import wider
from .primitives.group_by import SortedItems, sorted_items
from .primitives.reduce import fold
from .types.nudging import Nudging
from .types.struct_operators import field_operators
from .types.unary_operators import ulps_of

# whichever arrays on the GPU, and their memory
from .runtime.array import OnGpu, check_usable
from .runtime.chunked_array import Items, parts
from .runtime.memory import Lease
from .runtime.shared_items import overlapping

# a device: what is kept for it, what findings about it hold for, which GPU it is, whether it is lost
from .backend.device_errors import is_lost
from .runtime.context import context_of
from .runtime.device import device_key, device_with_checks, engine_description, expect_software
from .runtime.gpu_identity import gpu_of, pci_of

# submitting and waiting, so that a wall clock shows the GPU's work and nothing else
from .backend.device_state import queue_uses
from .backend.queues import guard_queue, submit, wait_idle, wait_method
from .runtime.compile_threads import compile_threads
from .runtime.run import bracket

# timestamps in places of the caller's choice, and the limit of their number; traces
from .backend.queues import write_timestamp
from .runtime.encodable import Spans
from .runtime.run import Timed
from .runtime.sequence import kernel_labels
from .timing.chrome_trace import ChromeTrace, GpuSlice
from .timing.queries import MAX_PAIRS, Edges

# the clock of a GPU, held and observed, and its energy
from .backend.clock import hold as hold_adapters_clock
from .backend.gpu import EnergySensor
from .runtime.gpu_clock import clock_held, observe

# plans: of kernels that measure the device itself, and of users' own kernels for a page
from .planning.plan import Kernel as PlannedKernel
from .planning.plan import BufferSpec
from .runtime.executor import BoundPlan, BufferRange
from .runtime.internal_kernels import bind_nothing, bind_own, own_plan

# shaders: for a page's compiler; the line that an error names
from .planning.shaders import prologue, where_in_shader

# the self-test of look-back, here and in a page that runs it itself
from .runtime.device import SUBGROUP_PROBE
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

# shapes of kernels: which there are to try, and how findings are kept
from .primitives.select import FlatNonzero
from .tuning.candidates import candidates
from .tuning.model import KERNELS, shape_of
from .tuning.store import TUNING_KIND, keep_facts, keep_tuning, kept_tuning, load_tuning
