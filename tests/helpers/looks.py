"""What tests of primitives look at behind the public names, in one place."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import wgpu

import gridwise_py as gw
from gridwise_py.bench.checks.check import mismatch as mismatch
from gridwise_py.planning.faults import faulty as faulty
from gridwise_py.runtime.compile_threads import compile_threads
from gridwise_py.runtime.context import context_of
from gridwise_py.runtime.lookback_selftest import lookback_verdict


def counts(device: wgpu.GPUDevice) -> dict[str, int]:
    """Return how many plans, pipelines, bindings, … are kept for a device."""
    return context_of(device).executor.counts


def compiled(device: wgpu.GPUDevice) -> int:
    """Return how many pipelines were asked for that were not there, once all are compiled."""
    compile_threads().finish()
    return context_of(device).executor.pipelines.compiled


def own_words(device: wgpu.GPUDevice, plan: gw.Plan, name: str) -> np.ndarray:
    """Return what is in a buffer that a plan has for itself."""
    return gw.Array(context_of(device).executor._plans[plan].own[name], "u32").to_numpy()


def kept(device: wgpu.GPUDevice, cls: type[gw.Primitive]) -> dict[Any, Any]:
    """Return the primitives of a class that one-shot functions keep."""
    return context_of(device).cached(("one-shot functions", cls), dict)


def kept_stagings(device: wgpu.GPUDevice) -> list[Any]:
    """Return the staging buffers that streams left for the next ones."""
    return context_of(device).cached("stagings of streams", list)._kept


def is_observed(device: wgpu.GPUDevice) -> bool:
    """Return whether a profile watches a device."""
    return context_of(device).observer is not None


def is_lookback_safe(device: wgpu.GPUDevice, state: str) -> bool:
    """Return what the self-test of look-back found."""
    return lookback_verdict(device, state).safe


def lookback_verdicts(device: wgpu.GPUDevice) -> dict[str, Any]:
    """Return what is known of look-back so far."""
    return context_of(device).lookback_verdicts


def take_doubles(monkeypatch: pytest.MonkeyPatch, device: wgpu.GPUDevice) -> None:
    """Let a device have no float64."""
    monkeypatch.setattr(context_of(device), "has_float64", False)
