"""What a test needs of the machine beyond an adapter: declared by a mark, ``@pytest.mark.needs("git", "shader-f64")``.

Where something is missing, the test is skipped, and says what. A name is one of those below, a feature of the device,
or a module after ``module:``. A file that imports such a module at its top does so within `modules`.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager

import pytest
import wgpu

import gridwise_py as gw
from gridwise_py.runtime.context import context_of

from .chromium import find_chromium
from .paths import ROOT

#: Reasons of skips begin with it.
PREFIX = "needs "
Check = Callable[[], bool]


def _limit(device: wgpu.GPUDevice, name: str) -> int:
    return device.limits[f"max-compute-{name}"]


#: Features of wgpu-native, and of Dawn, that tests name.
NATIVE_FEATURES = (
    "subgroup",
    "shader-f64",
    "shader-int64",
    "shader-int64-atomic-all-ops",
    "timestamp-query-inside-encoders",
    "timestamp-query-inside-passes",
    "mappable-primary-buffers",
    "chromium-experimental-subgroup-matrix",
)
#: Of the machine.
OF_MACHINE: dict[str, Check] = {
    "posix": lambda: os.name == "posix",
    "linux": lambda: sys.platform.startswith("linux"),
    "fork": lambda: hasattr(os, "fork"),
    "named pipes": lambda: hasattr(os, "mkfifo"),
    "git": lambda: shutil.which("git") is not None,
    "chromium": lambda: find_chromium() is not None,
    "the repository": lambda: (ROOT / "scripts").exists() and (ROOT / "CHANGELOG.md").exists(),
    "lavapipe": lambda: any("llvmpipe" in adapter.name for adapter in gw.list_adapters()),
    # Dawn refuses Mesa 22.3's lavapipe.
    "Dawn": lambda: importlib.util.find_spec("wgpudawn") is not None,
    "an adapter of Dawn": lambda: bool(importlib.util.find_spec("wgpudawn") and gw.list_adapters(engine="dawn")),
}
#: Of the device that tests share.
OF_DEVICE: dict[str, Callable[[wgpu.GPUDevice], bool]] = {
    "a CPU adapter": lambda device: gw.capabilities(device).is_cpu,
    "memory that CPU and GPU share": lambda device: context_of(device).memory.is_mappable,
    "wgpu": lambda device: context_of(device).engine.name == "wgpu",  # its messages and internals, or what Dawn drops
    "float64": lambda device: context_of(device).has_float64,
    "subgroups of at most 8": lambda device: _subgroup_size(device) <= 8,
    "workgroups of 512": lambda device: _workgroup(device) >= 512,
    "workgroups of 1024": lambda device: _workgroup(device) >= 1024,
    "14 storage buffers": lambda device: device.limits["max-storage-buffers-per-shader-stage"] >= 14,
}


def _subgroup_size(device: wgpu.GPUDevice) -> int:
    return gw.capabilities(device).subgroup_size or 0


def _workgroup(device: wgpu.GPUDevice) -> int:
    return min(_limit(device, "invocations-per-workgroup"), _limit(device, "workgroup-size-x"))


def _has_module(name: str) -> bool:
    return importlib.util.find_spec(name) is not None


@contextmanager
def modules(*names: str) -> Generator[pytest.MarkDecorator]:
    """Yield the mark of a file that imports modules inside; where one is missing, the file is skipped as a whole."""
    lacks = [f"module:{name}" for name in names if not _has_module(name)]
    if lacks:
        pytest.skip(PREFIX + ", ".join(lacks), allow_module_level=True)
    yield pytest.mark.needs(*(f"module:{name}" for name in names))


def missing(names: tuple[str, ...], device: Callable[[], wgpu.GPUDevice]) -> list[str]:
    """Return those of some needs that are not met here; the device is made only where one asks for it."""
    return [name for name in names if not _is_met(name, device)]


def _is_met(name: str, device: Callable[[], wgpu.GPUDevice]) -> bool:
    if name in OF_MACHINE:
        return OF_MACHINE[name]()
    if name.startswith("module:"):
        return _has_module(name.removeprefix("module:"))
    if name in OF_DEVICE:
        return OF_DEVICE[name](device())
    if name in wgpu.FeatureName or name in NATIVE_FEATURES:
        return name in device().features
    raise ValueError(f"no test can need {name!r}: known are {[*OF_MACHINE, *OF_DEVICE]}, features, and module:NAME")
