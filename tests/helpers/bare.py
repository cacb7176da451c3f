"""Devices with fewer features than `request_device` asks for, of either engine."""

import wgpu

from gridwise_py.backend.engine import engine_of
from gridwise_py.runtime.context import context_of


def device_with(device: wgpu.GPUDevice, *features: str, label: str = "bare") -> wgpu.GPUDevice:
    """Return another device of the same adapter, with these features and no others."""
    return engine_of(device).request_device(device.adapter, label, features, {})


def copy_by_staging(monkeypatch, device: wgpu.GPUDevice) -> None:
    """Let copies go through staging buffers, also where CPU and GPU share memory."""
    monkeypatch.setattr(context_of(device).memory, "is_mappable", False)
