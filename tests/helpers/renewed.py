"""The device that tests share: it compiles each kernel once, and can be as if new for a test that needs that."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import wgpu

from gridwise_py.backend.device_state import state_of
from gridwise_py.runtime.context import context_of
from gridwise_py.runtime.executor import Executor
from gridwise_py.runtime.pipelines import Pipeline, PipelineCache, _Order

_KEY = "pipelines of tests"


class KeptPipelines(PipelineCache):
    """Asks for, counts and forgets pipelines as any other, and yet has each compiled once for its device."""

    def __init__(self, device: wgpu.GPUDevice) -> None:
        super().__init__(device)
        self._kept: dict[_Order, Pipeline] = context_of(device).cached(_KEY, dict)

    def _compiled(self, device: wgpu.GPUDevice, order: _Order, *rest) -> Pipeline:
        if order not in self._kept:
            self._kept[order] = super()._compiled(device, order, *rest)
        return replace(self._kept[order])  # another one, which goes when nobody uses it


def new_executor(device: wgpu.GPUDevice) -> Executor:
    """Return an executor that has nothing yet."""
    executor = Executor(device)
    executor.pipelines = KeptPipelines(device)
    return executor


@contextmanager
def renewed(device: wgpu.GPUDevice) -> Iterator[wgpu.GPUDevice]:
    """Let a device have no memory, plans, pipelines and queries inside; only what was measured of it stays."""
    state, old = state_of(device), context_of(device)
    kept = {"capabilities": old.capabilities, _KEY: old.cached(_KEY, dict)}
    ends = list(state.end.afterwards)
    state.context = None
    try:
        new = context_of(device)
        new._kept.update(kept)
        new.lookback_verdicts.update(old.lookback_verdicts)
        new.checked_operators.update(old.checked_operators)
        new.executor.pipelines = KeptPipelines(device)
        yield device
    finally:
        state.context = old
        state.end.afterwards[:] = ends
