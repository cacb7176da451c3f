"""Measures what taking timestamps adds to a call: kernels that do nothing, with timestamps and without, in turns."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import wgpu

from ..backend.queues import wait_idle
from ..backend.raw_commands import RawDispatch
from ..errors import TimingUnavailable
from ..planning.plan import Plan
from ..timing.overhead import OVERHEAD, StampCost, TimingOverheads
from ..timing.queries import TimingSession
from .context import DeviceContext, context_of
from .device import default_device
from .executor import BoundPlan
from .internal_kernels import NOTHING
from .run import launch

_MANY = 16  # kernels
_SAMPLES = 51
_BUSY_S = 0.3  # an idle GPU's clock needs some tenths of a second


def timing_overhead(device: wgpu.GPUDevice | None = None, *, refresh: bool = False) -> TimingOverheads:
    """Measure what taking timestamps adds to a call; once per device, in about half a second.

    `TimingResult.overhead` has it from then on.

    Parameters
    ----------
    device : wgpu.GPUDevice, optional
        By default `default_device()`.
    refresh : bool, default False
        Measure again.

    Returns
    -------
    TimingOverheads

    Raises
    ------
    TimingUnavailable
        If the device has no timestamps.

    Notes
    -----
    Calls of one kernel and of 16 kernels that do nothing, and of which each depends on the one before, run without
    timestamps, with a pass for each kernel, and with timestamps inside of one pass, one after another, 51 times. The
    GPU's part is the difference of the medians of the time from the begin of the first pass to the end of the last, for
    16 kernels; the CPU's part that of the time from the call to the idle queue.

    Examples
    --------
    >>> import gridwise_py as gw
    >>> overheads = gw.timing_overhead()
    >>> overheads.costs["passes"].gpu_unit_ns is not None
    True
    """
    of = device if device is not None else default_device()
    context = context_of(of)
    if not context.has_timestamps:
        raise TimingUnavailable(
            "this device was made without the feature 'timestamp-query', so nothing is timed on it and nothing added; "
            "request_device() of gridwise_py asks for it where the adapter has it"
        )
    if refresh:
        context.forget(OVERHEAD)
    with context.at_once():
        return context.cached(OVERHEAD, lambda: _measured(context))


def _bound(context: DeviceContext, kernels: int) -> BoundPlan:
    one = NOTHING.plan()
    return context.executor.bind(
        Plan(f"{kernels} times nothing", one.buffers, one.steps * kernels, one.shaders, one.work), {}
    )


def _measured(context: DeviceContext) -> TimingOverheads:
    device, helper = context.device, context.timing_helper
    kinds: dict[str, Callable[[], TimingSession]] = {"passes": helper.session}
    if helper.stamps_passes:
        kinds["inside"] = lambda: helper.session(inside=True)
    one, many = _bound(context, 1), _bound(context, _MANY)

    def plain_span(bound: BoundPlan) -> TimingSession:
        """Run it as without timing, but for two timestamps around."""
        session = helper.session()
        encoder = device.create_command_encoder()
        compute = encoder.begin_compute_pass(timestamp_writes=session.span("all"))
        for step in bound.steps:
            assert isinstance(step, RawDispatch)
            compute.set_pipeline(step.pipeline)
            compute.set_bind_group(0, step.group)
            compute.dispatch_workgroups(*step.workgroups)
        compute.end()
        wait_idle(device)
        device.queue.submit([encoder.finish()])
        session.submitted()
        return session

    def wall_ns(bound: BoundPlan, new_session: Callable[[], TimingSession] | None) -> tuple[int, TimingSession | None]:
        wait_idle(device)
        begin = time.perf_counter_ns()
        session = None if new_session is None else new_session()
        launch(device, bound, 1, "timing overhead", session)
        return wait_idle(device) - begin, session

    deadline, round_number = time.perf_counter() + _BUSY_S, 0
    walls: dict[tuple[str, int], list[int]] = {}
    spans: dict[str, list[float | None]] = {}
    # Rounds before the deadline warm up. In turns: what drifts is in all of them.
    while time.perf_counter() < deadline or round_number < _SAMPLES:
        if time.perf_counter() < deadline:
            walls, spans, round_number = {}, {}, 0
        sessions: list[tuple[str, TimingSession]] = [("", plain_span(many))]
        for bound in (one, many):
            for kind, new_session in {"": None, **kinds}.items():
                ns, session = wall_ns(bound, new_session)
                walls.setdefault((kind, len(bound.steps)), []).append(ns)
                if session is not None and bound is many:
                    sessions.append((kind, session))
        for kind, session in sessions:  # one submission reads a session, so after all the walls of the round
            spans.setdefault(kind, []).append(_span_ns(session))
        round_number += 1
    return _judged(walls, spans, tuple(kinds))


def _span_ns(session: TimingSession) -> float | None:
    """Return the time from the begin of the first pass to the end of the last."""
    passes = session.passes() or session.spans()
    if not all(span.valid for span in passes):
        return None
    return (passes[-1].end_ticks - passes[0].begin_ticks) * passes[0].tick_period_ns


def _judged(
    walls: dict[tuple[str, int], list[int]], spans: dict[str, list[float | None]], kinds: tuple[str, ...]
) -> TimingOverheads:
    def span(kind: str) -> float | None:
        valid = [ns for ns in spans[kind] if ns is not None]
        return float(np.median(valid)) if valid else None

    def added_to_wall(kind: str, kernels: int) -> float:
        # By differences within a round, of which a drift has no part.
        return float(np.median(np.subtract(walls[kind, kernels], walls["", kernels])))

    costs: dict[str, StampCost] = {}
    plain = span("")
    for kind in kinds:
        timed, units = span(kind), _MANY if kind == "inside" else _MANY - 1
        gpu = None if timed is None or plain is None else (timed - plain) / units
        first, all_of_them = added_to_wall(kind, 1), added_to_wall(kind, _MANY)
        costs[kind] = StampCost(gpu, first, (all_of_them - first) / (_MANY - 1))
    return TimingOverheads(costs, len(spans[""]))
