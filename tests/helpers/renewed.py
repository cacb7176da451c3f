"""The device that tests share, as if it were new: a device of a test's own would compile all of its kernels again."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import wgpu

from gridwise_py.backend.device_state import state_of
from gridwise_py.planning.plan import Kernel, Plan
from gridwise_py.runtime.context import DeviceContext, context_of
from gridwise_py.runtime.pipelines import Pipeline, PipelineCache, _Order

_kept: dict[_Order, Pipeline] = {}


class _SharedPipelines(PipelineCache):
    """Finds what was compiled for any test, and counts only what this one has asked for."""

    def __init__(self, device: wgpu.GPUDevice, others: PipelineCache) -> None:
        super().__init__(device)
        self._others = others

    def _ask(self, plan: Plan, kernel: Kernel):
        order = _Order.of(plan, kernel)
        if order not in self._pipelines:
            known = _kept.get(order) or self._others._pipelines.get(order)
            if known is not None:
                _kept[order] = self._pipelines[order] = known
        return super()._ask(plan, kernel)

    def _compile(self, order: _Order, *rest) -> Pipeline:
        pipeline = _kept[order] = super()._compile(order, *rest)
        return pipeline


@contextmanager
def renewed(device: wgpu.GPUDevice) -> Iterator[wgpu.GPUDevice]:
    """Let a device have no memory, no plans and no queries inside; what was measured of it and compiled stays."""
    state, old = state_of(device), context_of(device)
    capabilities, ends = old.capabilities, list(state.end.afterwards)
    state.context = None
    try:
        new: DeviceContext = context_of(device)
        new._kept["capabilities"] = capabilities
        new.lookback_verdicts.update(old.lookback_verdicts)
        new.checked_operators.update(old.checked_operators)
        new.executor.pipelines = _SharedPipelines(device, old.executor.pipelines)
        yield device
    finally:
        state.context = old
        state.end.afterwards[:] = ends
