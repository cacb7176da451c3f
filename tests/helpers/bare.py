"""Devices with fewer features than `request_device` asks for, of either engine."""

import wgpu

from gridwise_py.backend.engine import engine_of


def device_with(device: wgpu.GPUDevice, *features: str, label: str = "bare") -> wgpu.GPUDevice:
    """Return another device of the same adapter, with these features and no others."""
    return engine_of(device).request_device(device.adapter, label, features, {})
