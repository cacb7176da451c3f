"""Primitive: the base of all data-parallel primitives and of users' kernels."""

from __future__ import annotations

import copy
import functools
import inspect
import threading
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, ClassVar, Self, cast

import numpy as np
import wgpu

from .. import settings
from ..backend.device_state import state_of
from ..backend.fork_guard import check_process
from ..backend.waits import in_thread
from ..call_errors import explained
from ..errors import ArgumentError, GridwiseError
from ..planning.layout import COUNT, Layout
from ..planning.plan import Plan
from ..planning.signature import Argument, Signature, ValueRule
from ..planning.windows import check_bindings
from ..runtime.arguments import ParsedCall, call_key, parse
from ..runtime.arithmetic_selftest import warn_of_faults
from ..runtime.array import Array
from ..runtime.bound_call import BoundCall
from ..runtime.chunked_array import check_usable
from ..runtime.context import context_of
from ..runtime.counts import has_count, with_count
from ..runtime.encoders import check_encoder, check_session
from ..runtime.one_device import OfOneDevice
from ..runtime.recipes import Step
from ..runtime.run import Measurement, Run
from ..runtime.runnable import (
    ASYNC_REMEDIES,
    PLAIN,
    Asked,
    check_in_place,
    check_trials,
    timing_result,
    to_the_end,
)
from ..timing.queries import GpuTiming, TimingSession
from ..timing.result import TimingResult
from ..types.capabilities import Capabilities
from ..types.datatype import DATATYPES, Datatype
from ..types.evaluation import value_of
from ..types.nudging import inexact_places
from ..types.operators import BinOp
from ..types.program import Flat
from .call_signatures import with_arrays
from .fusion import FUSED, Fusion, flat_of
from .mapped_output import MappedOutput
from .waiting import Waiting

_MAX_LAYOUTS = 64
_MAX_STEPS = 64
#: The methods that take the arrays of a call.
_CALLS = ("bind", "record", "execute", "execute_async")


class Primitive(OfOneDevice, ABC):
    """Base of all primitives. Construct one once and execute it often.

    A primitive remembers only its last call, which `execute` without arguments repeats.

    Parameters
    ----------
    device : wgpu.GPUDevice or None
        None for planning only, with `capabilities`.
    capabilities : Capabilities, optional
        By default those measured on the device.

    Notes
    -----
    How a subclass is made, in this order:

    1. The class declares `arguments`, the usual rules of its calls. A base class of ``calls`` declares their names for
       type checkers and ``help()``.
    2. Its constructor checks options and keeps them as attributes. `_take` takes items that may be an expression. It
       sets no arguments.
    3. `_arguments` returns the rules for these options, a function of the attributes alone; by default those declared.
    4. This class puts the leaves of expressions in their places, and checks the rules, when the constructor is done.
       The result is `signature`.
    5. `plan` turns a `Layout` into a `Plan`: a function of the layout, the attributes and the capabilities.
    6. A copy with other options is made by `replace`, never by hand.
    """

    _instead = "construct another one where it is needed, with the same arguments"
    #: Datatypes of the items that it works on, by name.
    datatypes: ClassVar[Mapping[str, Datatype]] = DATATYPES
    #: The usual arguments of ``execute``, in order; `signature` has those of an instance.
    arguments: ClassVar[tuple[Argument, ...]] = ()
    #: Whether an output that `Argument.replaces` an input is that input, where the caller gives none.
    overwrite_input: bool = False
    #: Whether calls take ``n=``, the number of items that count.
    takes_count: bool = False
    #: The arrays that calls may be given, with their annotations, for the signatures that people see.
    call_arrays: ClassVar[dict[str, str]] = {}
    #: The expression that it reads in place of an array.
    _fusion: Fusion | None = None
    #: The expression of its results that it stores.
    _mapped: MappedOutput | None = None
    #: What evaluates an expression in numpy, for references.
    _value_of: Callable[..., np.ndarray] = staticmethod(value_of)

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        for base in cls.__bases__:
            if arrays := vars(base).get("call_arrays"):
                for name in _CALLS:
                    setattr(cls, name, with_arrays(getattr(Primitive, name), arrays))
        if "__init__" in vars(cls):
            init = cast(Any, cls).__init__

            @functools.wraps(init)
            def construct(self: Primitive, /, *args: Any, **kwargs: Any) -> None:
                self._construct(init, args, kwargs)

            setattr(cls, "__init__", construct)  # noqa: B010  # type checkers refuse the plain form

    def _construct(self, init: Callable[..., None], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Call a constructor; note what it is given, for `replace`, and check the arguments of calls at its end."""
        if "_given" in vars(self):  # called by that of a subclass
            init(self, *args, **kwargs)
            return
        self._given: tuple[tuple[Any, ...], dict[str, Any]] = (args, kwargs)
        init(self, *args, **kwargs)
        cast(Any, self.signature)

    def __init__(self, device: wgpu.GPUDevice | None, *, capabilities: Capabilities | None = None):
        self._context = context_of(device) if device is not None else None
        if capabilities is None:
            if self._context is None:
                raise ArgumentError(
                    f"{type(self).__name__}: device is None; give gw.default_device() or gw.request_device() (or, for "
                    f"planning only, capabilities=)"
                )
            capabilities = self._context.capabilities
        self._device = device
        self._capabilities: Capabilities = capabilities
        self._launch_blocking = settings.launch_blocking()
        self._plans: OrderedDict[Any, Plan] = OrderedDict()
        self._steps: dict[Any, Step] = {}
        self._plans_lock = threading.Lock()
        # Of the last call; nothing else of a primitive changes, and each is replaced as a whole.
        self._last_call: BoundCall[Any] | None = None
        self._last_timed: Measurement | None = None

    @property
    def _fusions(self) -> tuple[Fusion, ...]:
        """The expressions that it reads in place of arrays."""
        return () if self._fusion is None else (self._fusion,)

    @property
    def _asked_fusions(self) -> tuple[Fusion, ...]:
        """Those of them that a caller gave."""
        return self._fusions

    @functools.cached_property
    def _fused_arrays(self) -> dict[str, Array]:
        """The Arrays that are part of its expressions, by the names of their leaves."""
        return {name: array for fusion in self._fusions for name, array in fusion.arrays.items()}

    def _reads(self, layout: Layout) -> Layout:
        """Return what kernels read and write: the arguments, or expressions in their place."""
        for fusion in self._fusions:
            layout = fusion.reads(layout)
        return layout if self._mapped is None else self._mapped.writes(layout)

    def reference(self, *args: Any, **arrays: Any) -> Any:
        """Return what numpy computes of the same inputs; an expression's leaves are given by their names."""
        results = self._reference(*args, **self._evaluated(arrays))
        return results if self._mapped is None else self._mapped.value(results)

    def _evaluated(self, arrays: Mapping[str, Any]) -> dict[str, Any]:
        """Return inputs with the items of each expression in place of its leaves."""
        found = dict(arrays)
        for fusion in self._asked_fusions:
            names = [*fusion.flat.names, *(name for name, _ in fusion.flat.scalars)]
            leaves = {name: found.pop(name) for name in names if name in found}
            found[fusion.argument] = self._value_of(fusion.flat, leaves)
        return found

    @property
    def has_reference(self) -> bool:
        """Whether it has a twin in numpy; a kernel of a user has one that was set as its `reference`."""
        cls = type(self)
        given = "reference" in vars(self) or cls.reference is not Primitive.reference
        return given or cls._reference is not Primitive._reference

    def _reference(self, *args: Any, **arrays: Any) -> Any:
        """Return what numpy computes, for `reference`: with the items of each expression in place of its leaves.

        It is what is combined, before an expression of it is stored.
        """
        raise NotImplementedError(f"{self.name} has no twin in numpy")

    def _take(self, items: Any, argument: str = "input") -> Any:
        """Return the datatype of an argument's items. If they are an expression, its leaves become the arguments."""
        if not isinstance(items, FUSED):
            return items
        self._fusion = Fusion(items if isinstance(items, Flat) else flat_of(items), argument)
        return self._fusion.datatype

    def replace(self, **options: Any) -> Self:
        """Return another one, made with the same options of the constructor but these."""
        args, kwargs = self._given
        call = inspect.signature(type(self)).bind(*args, **kwargs)
        return type(self)(**{**call.arguments, **options})

    # ---- what a subclass says ----

    def _arguments(self) -> tuple[Argument, ...]:
        """Return the arguments for these options, with expressions as what they are; a function of the attributes."""
        return self.arguments

    def _value_rules(self) -> Mapping[str, ValueRule]:
        """Return the rules of the arguments that are values, not arrays: here the numbers of expressions."""
        values = {name: rule for fusion in self._fusions for name, rule in fusion.values.items()}
        return values if self._mapped is None else values | self._mapped.values

    def _with_leaves(self, arguments: tuple[Argument, ...]) -> tuple[Argument, ...]:
        """Return the arguments with the leaves of expressions in their places."""
        for fusion in self._fusions:
            arguments = fusion.arguments(arguments)
        return arguments

    @abstractmethod
    def plan(self, layout: Layout) -> Plan:
        """Return the plan for arguments with this layout. Pure: the same layout gives the same plan."""

    @classmethod
    def at_size(cls, n: int, **axes: Any) -> tuple[dict[str, Any], dict[str, int]]:
        """Return the constructor's options for a benchmark of size n, and the lengths of the inputs.

        Both may depend on further axes of a benchmark, such as the length of segments; each has a default.
        """
        return {}, {argument.name: n for argument in cls.arguments if not argument.is_output}

    @property
    def name(self) -> str:
        """Its name in reports."""
        return type(self).__name__

    @functools.cached_property
    def signature(self) -> Signature:
        """The rules for its arguments: datatypes, lengths, and which of them may overlap."""
        return Signature.of(self, self._with_leaves(self._arguments()), self._value_rules())

    # ---- planning ----

    @property
    def device(self) -> wgpu.GPUDevice:
        """The device it runs on."""
        if self._device is None:
            raise self._no_device()
        return self._device

    def _no_device(self) -> ArgumentError:
        return ArgumentError(
            f"this {self.name} was made without a device, for planning only; to run it, make one on a device: "
            f"gw.default_device() or gw.request_device()"
        )

    @property
    def capabilities(self) -> Capabilities:
        """The capabilities that plans are made for."""
        return self._capabilities

    @classmethod
    def plan_for(cls, *, capabilities: Capabilities, lengths: Mapping[str, int] | Layout, **options: Any) -> Plan:
        """Return a plan without any device.

        Parameters
        ----------
        capabilities : Capabilities
            Of a device, or made up.
        lengths : mapping from str to int, or Layout
            Number of items of each argument, each in its own buffer; or the whole layout.
        **options
            Options of the constructor.
        """
        primitive = cls(None, capabilities=capabilities, **options)
        if isinstance(lengths, Layout):
            return primitive.plan(lengths)
        datatypes = {name: primitive.signature.datatype(name) for name in lengths}
        known = {name: datatype for name, datatype in datatypes.items() if datatype is not None}
        sizes = {name: datatype.element_bytes for name, datatype in known.items()}
        counted = {name: n * (known[name].elements if name in known else 1) for name, n in lengths.items()}
        return primitive.plan(Layout.separate(sizes, **counted))

    def _check_on_device(self) -> None:
        """Check what only the device can tell, before the first plan that is bound; constructors use no GPU."""
        return

    def _plan_with(self, layout: Layout, values: Mapping[str, tuple[int, ...]]) -> Plan:
        """Return the plan for a layout and the words of the arguments that are values."""
        return self.plan(layout.with_values(values) if values else layout)

    def _plan_cached(self, layout: Layout, values: Mapping[str, tuple[int, ...]]) -> Plan:
        key = (layout, tuple(values.items()))
        with self._plans_lock:
            plan = self._plans.get(key)
        if plan is None:
            assert self._context is not None, "a primitive with a device has its context"
            with self._context.at_once():
                self._check_on_device()
            plan = self._context.executor.as_run(self._plan_with(layout, values))
            check_bindings(plan, self.capabilities)
            with self._context.at_once():
                warn_of_faults(self._context.device, plan)
            with self._plans_lock:
                self._plans[key] = plan
                while len(self._plans) > _MAX_LAYOUTS:
                    self._plans.popitem(last=False)
        return plan

    def _compile_meanwhile(self, layout: Layout, values: Mapping[str, tuple[int, ...]]) -> object:
        """Have what a call most likely needs compiled, while this is kept, where the device is tested first."""
        waiting: Waiting | None = getattr(self, "_waiting", None)  # of those whose workgroups wait for each other
        likely = None if waiting is None else waiting.likely()
        if likely is None or self._context is None:
            return None
        executor = self._context.executor
        with suppress(GridwiseError):  # the true plan may need less, and be possible
            plan = self.replace(capabilities=likely)._plan_with(layout, values)
            return executor.pipelines.begin(executor.as_run(plan))

    # ---- binding ----

    @explained()
    def bind(self, **arrays: Any) -> BoundCall[Any]:
        """Check the arguments, make the outputs that are missing, and return a call that is ready to run.

        Later calls of the primitive do not change it. An argument that is left out is that of the primitive's last
        `execute` or `record`.

        Returns
        -------
        BoundCall

        Raises
        ------
        ArgumentError
            If an argument is wrong; nothing was changed.
        """
        return self._bind(arrays)

    def _bind(self, arrays: Mapping[str, Any], trials: int = 1) -> BoundCall[Any]:
        """Take a call through its stations: arguments, plan, binding. Nothing changes before all checks are done."""
        if self._fused_arrays:
            arrays = {**self._fused_arrays, **arrays}
        check_process()  # before any lock, which a thread may have held when the process was forked
        check_trials(trials)
        context, last = self._context, self._last_call
        known = None if last is None else last.known
        device = self._device
        if context is None or device is None:
            raise self._no_device()
        if COUNT in arrays and arrays[COUNT] is None and self.takes_count:
            arrays = {name: array for name, array in arrays.items() if name != COUNT}
        key = None if known is None or last is None else last.key_if_given(arrays)
        if key is None:
            if has_count(arrays):
                arrays = with_count(self.signature, arrays)
            if last is not None:
                arrays = last.parsed.with_given(self.signature, arrays)
            key = call_key(self.signature, arrays)
            known = self._steps.get(key)
        if known is not None:
            if trials > 1:
                check_in_place(known.name, trials, known.in_place)
            again = known.again(key, arrays, context, device)
            if again is not None:
                return BoundCall(known.name, context, device, *again, self._launch_blocking, known)
        parsed = parse(self.signature, arrays, None if last is None else last.parsed, device, self.capabilities)
        check_in_place(self.name, trials, parsed.in_place)
        _begun = self._compile_meanwhile(parsed.layout, parsed.values)
        plan = self._plan_cached(parsed.layout, parsed.values)
        if len(plan.kernels) < len(plan.steps):
            self._check_transfers(plan, parsed)
        names = {spec.name for spec in plan.buffers if spec.role == "argument"}
        bound_plan = context.executor.bind(plan, {k: v for k, v in parsed.ranges.items() if k in names})
        # With the executor's own one of several equal plans, which is found by its identity.
        known = Step.of(self.signature, arrays, parsed, bound_plan.plan, context.memory)
        if known is not None:
            self._remember(key, known)
        return BoundCall(self.name, context, device, parsed, bound_plan, self._launch_blocking, known)

    def _check_transfers(self, plan: Plan, parsed: ParsedCall) -> None:
        """Raise where an argument that a plan copies lacks the usage."""
        sources, destinations = plan.copied_from, plan.copied_to
        for name, operand in parsed.layout.items():
            buffers = {part.buffer for part in operand.parts}
            if buffers & sources:
                check_usable(parsed.arrays[name], "COPY_SRC", f"{self.name}: {name}")
            if buffers & destinations:
                check_usable(parsed.arrays[name], "COPY_DST", f"{self.name}: {name}")

    def _remember(self, key: Any, known: Step) -> None:
        with self._plans_lock:
            self._steps[key] = known
            while len(self._steps) > _MAX_STEPS:
                self._steps.pop(next(iter(self._steps)))

    def _call(self, arrays: Mapping[str, Any], trials: int) -> BoundCall[Any]:
        """Return the call with these arguments: the last one, where nothing changed."""
        last = self._last_call
        # A call that names its inputs but no output gets a new output, so that an earlier one stays as it is.
        if last is not None and (
            not arrays
            or (
                not (last.known is not None and last.known.makes_outputs)
                and last.is_repeated_by(self.signature, arrays)
            )
        ):
            last.check(trials)
            return last
        self._last_call = call = self._bind(arrays, trials)
        return call

    def release(self) -> None:
        """Drop the arguments of the last call, so that their memory can be freed."""
        self._last_call = None

    # ---- running ----

    @explained()
    def record(
        self,
        encoder: wgpu.GPUCommandEncoder,
        *,
        trials: int = 1,
        timing: TimingSession | None = None,
        **arrays: Any,
    ) -> dict[str, Any]:
        """Record the primitive on an encoder, without submitting.

        Parameters
        ----------
        encoder : wgpu.GPUCommandEncoder
        trials : int, default 1
            How often each dispatch is recorded.
        timing : TimingSession, optional
            From this device's `timing_helper`: each kernel then gets its own pass with timestamps, or, of
            ``session(inside=True)``, timestamps inside of a shared one. The caller calls ``timing.submitted()`` after
            submitting, or ``timing.mark(encoder)`` before finishing the encoder.
        **arrays
            The arguments.

        Returns
        -------
        dict from str to Array or ChunkedArray
            The outputs.
        """
        check_encoder(self.name, encoder, self.device)
        if timing is not None:
            check_session(self.name, timing, self.device)
        return self._call(arrays, trials).encode(encoder, trials, timing)

    @explained()
    def execute(
        self,
        *,
        encoder: wgpu.GPUCommandEncoder | None = None,
        enable_gpu_timing: GpuTiming = False,
        enable_cpu_timing: bool = False,
        trials: int = 1,
        **arrays: Any,
    ) -> Run[Any]:
        """Run the primitive.

        Parameters
        ----------
        encoder : wgpu.GPUCommandEncoder, optional
            Record on this encoder, without submitting. By default the primitive submits, and does not wait.
        enable_gpu_timing : bool or "inside", default False
            Take timestamps around each kernel. Without ``timestamp-query`` GPU times are None, with a warning. True
            gives each kernel a pass of its own; ``"inside"`` leaves the passes as they are without timing, and takes
            timestamps inside of them (feature ``timestamp-query-inside-passes``).
        enable_cpu_timing : bool, default False
            Measure the time from the submission to an idle queue; the queue is idle before.
        trials : int, default 1
            Dispatch each kernel this many times in a row. The result is that of one trial.
        **arrays : Array, ChunkedArray or wgpu.GPUBuffer
            The arguments, by name. One that is left out is that of the previous call. An output that was never given,
            or is None, is allocated. With ``n``, an int or an Array of one u32 on the GPU, only the first `n` items of
            the inputs of this call count (docs/concepts/counts.md). Arrays with a `count` bring it along. Nothing is
            read.

        Returns
        -------
        Run

        Raises
        ------
        ArgumentError
            If an argument is wrong; nothing was submitted or changed.
        TimingUnavailable
            For ``enable_gpu_timing="inside"``, if the device cannot; nothing was submitted or changed.
        """
        if encoder is None and not (enable_gpu_timing or enable_cpu_timing) and trials == 1:
            asked = PLAIN
        else:
            asked = Asked(enable_gpu_timing, enable_cpu_timing, trials, encoder)
            asked.check(self.name, self.device)
        context = self._context
        observer = None if context is None else context.observer
        if observer is None:
            run = self._call(arrays, trials).run(asked, None)
        else:
            with observer.span(self.name, "primitive") as node:
                call = self._call(arrays, trials)
                node.shapes = call.shapes()
                run = call.run(asked, observer)
        if asked is not PLAIN and run.measurement is not None:
            self._last_timed = run.measurement
        return run

    def run_once(self, **arrays: Any) -> dict[str, Any]:
        """Return the outputs of a call that is not kept: as ``bind(…).execute().outputs``, for one-shot functions."""
        context = self._context
        builder = None if context is None or not context.builders else context.builders.get(threading.get_ident())
        uses = 0 if builder is None else state_of(self.device).uses
        outputs = self.repeat(call_key(self.signature, arrays), arrays)
        if outputs is None:
            outputs = self._bind(arrays).execute().outputs
        if builder is not None:
            builder.add(self, uses, arrays, outputs)
        return outputs

    def repeat(self, key: tuple[Any, ...], arrays: Mapping[str, Any]) -> dict[str, Any] | None:
        """Run a call with an earlier one's `call_key`, and return its outputs; None where more is to be done."""
        context, device, step = self._context, self._device, self._steps.get(key)
        if step is None or context is None or device is None or context.observer is not None or context.recorders:
            return None
        if self._last_call is not None:  # of which arguments may be left out
            return None
        return step.run(key, arrays, context, device, blocking=self._launch_blocking)

    @explained(ASYNC_REMEDIES)
    async def execute_async(
        self, *, enable_gpu_timing: GpuTiming = False, enable_cpu_timing: bool = False, trials: int = 1, **arrays: Any
    ) -> Run[Any]:
        """Like `execute`, without blocking the event loop; returns when the work is done.

        The arguments are those of `execute`, except ``encoder``.
        """
        options = {"enable_gpu_timing": enable_gpu_timing, "enable_cpu_timing": enable_cpu_timing, "trials": trials}
        return await to_the_end(self.device, lambda: self.execute(**options, **arrays))

    def get_timing_result(self) -> TimingResult:
        """Return the times of the last timed call; see `Run.get_timing_result`."""
        return timing_result(self.name, self._last_timed)

    async def get_timing_result_async(self) -> TimingResult:
        """Like `get_timing_result`, without blocking the event loop."""
        return await in_thread(self.get_timing_result)

    def __repr__(self) -> str:
        parts = [str(getattr(self, name)) for name in ("datatype", "op") if hasattr(self, name)]
        return f"{self.name}({', '.join([*parts, self.capabilities.adapter])})"


@dataclass(frozen=True)
class ReferenceParts:
    """The steps of a reference, for error bounds.

    Attributes
    ----------
    whole : callable
        The reference: takes inputs by name.
    evaluated : callable
        Takes inputs by name; returns them with the items of each expression in place of its leaves.
    combined : callable
        Takes these; returns what the primitive combines them to.
    stored : callable or None
        Takes that; returns what is stored, where that is an expression of it.
    rounds : bool
        Whether items of an expression may differ from numpy's.
    """

    whole: Callable[..., Any]
    evaluated: Callable[[Mapping[str, Any]], dict[str, Any]]
    combined: Callable[..., Any]
    stored: Callable[[np.ndarray], np.ndarray] | None
    rounds: bool


def reference_parts(
    primitive: Primitive, op: BinOp | None = None, value_of: Callable[..., np.ndarray] | None = None
) -> ReferenceParts:
    """Return the steps of a primitive's reference; with an operator, or an evaluation, in place of its own."""
    own = cast(Any, primitive if op is value_of is None else copy.copy(primitive))
    if op is not None:
        own.op = op
    if value_of is not None:
        own._value_of = value_of
    stored = None if own._mapped is None else own._mapped.value
    rounds = any(inexact_places(fusion.flat) for fusion in own._fusions)
    return ReferenceParts(own.reference, own._evaluated, own._reference, stored, rounds)
