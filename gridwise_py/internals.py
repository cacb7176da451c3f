"""The interface of the core for this library's own applications, beside the public names.

`bench`, `browser`, `fleet`, `dask` and `cli` take from the core what ``gridwise_py`` exports, what the small shared
packages have (errors, settings, storage, display, …), and what is named here; a contract in pyproject.toml refuses the
rest. So all else in the core changes without a look at them. Nothing in the core imports this module. The comment
before a name says why it is here; docs/contribute/architecture.md shows them all.
"""
# ruff: noqa: F401, I001 - names by what they are for
# pyright: reportUnusedImport=false

# What is kept for a device, and what is known of it: its key, engine, executor, timing, and a place for findings.
from .runtime.context import context_of

# A command that names its adapter itself need not be warned of software.
from .runtime.device import expect_software

# The GPU that a device certainly is: its address, and clock, power and memory as the driver tells them.
from .runtime.gpu_identity import gpu_of

# Joules of a GPU's board, for energy per call.
from .backend.gpu import EnergySensor

# The clock of a GPU stays up while a command measures, without the warnings of `gw.hold_clock`.
from .runtime.gpu_clock import clock_held

# Times on the CPU's clock that show the GPU's work and nothing else.
from .runtime.run import bracket

# Submissions of other commands than calls, in which errors name what was submitted.
from .backend.queues import submit

# Which devices a function of a user submits to: it does not say.
from .backend.device_state import queue_uses

# One span around what a function of a user records, whose passes are its own.
from .runtime.internal_kernels import stamped

# What a call is encoded by, beside other commands, and any number of times.
from .runtime.executor import BoundPlan

# Kernels that measure the device itself: canary, flush of the caches, arithmetic.
from .runtime.internal_kernels import OwnKernel

# The second ceiling of memory, with two reads and a write; the first is `gw.Copy`.
from .primitives.triad import Triad

# The arrays of an argument: a `gw.ChunkedArray` has several.
from .runtime.chunked_array import parts

# Whether arguments share items: a trial may change what the next one reads.
from .runtime.shared_items import overlapping

# Refuses arrays that cannot be restored, before anything ran.
from .runtime.chunked_array import check_usable

# Datatypes that applications take as arguments, refused with the core's remedies.
from .types.datatype import ITEM_DATATYPES, as_datatype

# Whole numbers that applications take as arguments, refused with the core's words.
from .types.options import integer

# All primitives by name: what there is to measure.
from .primitives import REGISTRY

# The one primitive without a public name whose shape is tuned.
from .primitives.select import FlatNonzero

# The right result of a primitive, for checks.
from .references.oracle import Oracle

# How much a right result may differ: a page compares without this library.
from .references.error_bounds import error_bound

# Which items of a result are not right.
from .references.error_bounds import wrong_items

# The self-test of look-back for `gridwise info`, and for pages, which run it themselves.
from .runtime.lookback_selftest import LookbackProbe

# How many lanes a subgroup has, for pages, which run it themselves.
from .runtime.device import SUBGROUP_PROBE

# What a browser's compiler needs before a text of this library.
from .planning.shaders import prologue

# The line of a user's shader that an error names, for reports in one line.
from .planning.shaders import where_in_shader

# Which kernels have shapes, what the model gives them, and which others are near.
from .tuning.model import KERNELS

# Where shapes and facts of a device that were measured are kept.
from .tuning.store import TuningStore

# What a case asks of a GPU, compared and counted without one: by plans, and by devices that only record.
from .runtime.asked import Code
