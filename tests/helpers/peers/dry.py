"""Calls without kernels: nothing is compiled and nothing is dispatched, so that a hundred are tried in a second.

Memory, transfers, plans and all that reads arguments are the library's own; outputs hold zeros, or what was copied
there. What does not depend on items is compared: errors and their classes, warnings, datatypes, shapes, where results
are, whether arguments were changed. What looks like a finding is made once more with kernels, and is one only if it is
found there.
"""

from __future__ import annotations

import contextlib
from collections.abc import Generator
from typing import Any

import gridwise_py as gw
from gridwise_py.runtime import bound_call
from gridwise_py.runtime.context import context_of
from gridwise_py.runtime.executor import BoundPlan, Executor
from gridwise_py.runtime.lookback_selftest import LookbackVerdict


class _NoKernels(Executor):
    """An executor whose plans do nothing."""

    def find(self, plan: Any, key: Any) -> None:
        return None

    def bind(self, plan: Any, arguments: Any) -> BoundPlan:
        return BoundPlan(plan, [])

    def pipelines_of(self, *plans: Any) -> list[Any]:
        return []


class DryRuns:
    """A device beside the default one, on which no kernels run."""

    def __init__(self) -> None:
        self._real = gw.default_device()
        self._device = gw.request_device()
        context = context_of(self._device)
        _ = context.capabilities
        context.executor.__class__ = _NoKernels
        context.lookback_verdicts.update(dict.fromkeys(("u64", "u32x2"), LookbackVerdict(True, True, True, True)))
        pool = context.memory
        pool.reuse = lambda size_bytes, label="": None  # memory of others would be what outputs hold
        pool.has_free = lambda size_bytes: False
        launched = bound_call.launch

        def launch(device: Any, *others: Any, **options: Any) -> None:
            if device is not self._device:
                launched(device, *others, **options)

        bound_call.launch = launch

    @contextlib.contextmanager
    def __call__(self) -> Generator[None]:
        """Make calls in here without kernels."""
        default = gw.runtime.device._default
        default[:] = [self._device]
        try:
            yield
        finally:
            default[:] = [self._real]
