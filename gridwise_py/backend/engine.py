"""What an engine of WebGPU gives, and which engines there are: wgpu, and Dawn with the extra ``dawn``.

An engine is a Python package with wgpu-py's API, and a module of this package for what that API lacks or names
otherwise. Everything else is written for wgpu-py's API, and does not know which engine runs.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import wgpu

from ..errors import AdapterError
from ..settings import ShaderChecks
from ..types.capabilities import SubgroupMatrices
from . import dawn, recording, wgpu_native
from .native_functions import NativeFunctions


class Engine(Protocol):
    """A module for one engine. All names are this library's: of features those of wgpu.

    Attributes
    ----------
    NAME : str
    LANGUAGE : {"naga", "tint"}
        The compiler of WGSL, as `planning.shaders.prologue` takes it.
    LOGGER : str
        Where the engine logs what it cannot raise.
    HAS_MAPPED_MEMORY : bool
        Whether the C functions of `mapped_memory` are the engine's. Otherwise memory is mapped by the public calls.
    HAS_TICKS : bool
        Whether queries are resolved to ticks of a period; otherwise, as WebGPU says, to nanoseconds.
    """

    @property
    def NAME(self) -> str: ...
    @property
    def LANGUAGE(self) -> str: ...
    @property
    def LOGGER(self) -> str: ...
    @property
    def HAS_MAPPED_MEMORY(self) -> bool: ...
    @property
    def HAS_TICKS(self) -> bool: ...

    def version(self) -> str:
        """Return the version of the engine, and of the package around it."""
        ...

    def switches(self, device: wgpu.GPUDevice) -> dict[str, bool]:
        """Return which of the engine's own switches were set for a device, by the engine's names."""
        ...

    def prepare(self) -> None:
        """Load the engine."""
        ...

    def adapters(self) -> list[wgpu.GPUAdapter]:
        """Return the adapters of this machine, in the engine's order."""
        ...

    def features_of(self, thing: wgpu.GPUAdapter | wgpu.GPUDevice) -> set[str]:
        """Return the features of an adapter or a device."""
        ...

    def subgroup_matrices(self, device: wgpu.GPUDevice) -> list[SubgroupMatrices]:
        """Return the kinds of matrices that subgroups of a device multiply."""
        ...

    def request_device(
        self, adapter: wgpu.GPUAdapter, label: str, features: Sequence[str], toggles: Mapping[str, bool]
    ) -> wgpu.GPUDevice:
        """Make a device with some features, the adapter's limits, and some of the engine's switches set.

        Raises
        ------
        AdapterError
            If the engine has no such switches.
        """
        ...

    def check_lives(self, device: wgpu.GPUDevice) -> None:
        """Raise wgpu.GPUError if a device is lost."""
        ...

    def polled(self, device: wgpu.GPUDevice) -> bool | None:
        """Whether all submitted work is done, without waiting and without checks; None if that is unknown."""
        ...

    def blocking_wait(
        self, device: wgpu.GPUDevice
    ) -> tuple[str, Callable[[wgpu.GPUDevice, Callable[[], bool]], Callable[[], object]]] | None:
        """Return the name of a way to wait, and what makes the call that blocks until the queue is idle.

        What makes it takes the device, and a function that says whether the device was destroyed meanwhile.
        """
        ...

    def map_idle(self, device: wgpu.GPUDevice, buffer: wgpu.GPUBuffer, mode: str, offset: int, size: int) -> None:
        """Map a buffer that no work uses any more, so that its methods know."""
        ...

    def native_functions(self) -> NativeFunctions | None:
        """Return the C functions that encode and submit; None where the public calls are to do that."""
        ...

    def tick_period_ns(self, device: wgpu.GPUDevice) -> float:
        """Return the nanoseconds per tick of a timestamp."""
        ...

    def write_timestamp(
        self, encoder: wgpu.GPUCommandEncoder | wgpu.GPUComputePassEncoder, query_set: wgpu.GPUQuerySet, index: int
    ) -> None:
        """Write a timestamp at the current place of an encoder, or of an open pass."""
        ...

    def checks_of_all(self, device: wgpu.GPUDevice, wanted: ShaderChecks | None) -> ShaderChecks | None:
        """Return the run-time checks of all modules of a device; None: each has those that it asks for.

        `wanted` is what the process wants for all.
        """
        ...

    def create_module(
        self, device: wgpu.GPUDevice, label: str, code: str, checks: ShaderChecks
    ) -> wgpu.GPUShaderModule:
        """Compile WGSL with some run-time checks, which the engine has for the device."""
        ...


_ENGINES: dict[str, Engine] = {wgpu_native.NAME: wgpu_native, dawn.NAME: dawn}
#: Their names; the first is the default.
ENGINES = tuple(_ENGINES)


def engine_of(thing: Any) -> Engine:
    """Return the engine of an adapter, a device, or an object of a device."""
    module = type(thing).__module__
    if module == recording.__name__:
        return recording.ENGINE
    return dawn if module.startswith(f"{dawn.PACKAGE}.") else wgpu_native


def engine_named(name: str) -> Engine:
    """Return an engine by its name.

    Raises
    ------
    AdapterError
        If there is no such engine, or its package is not installed.
    """
    engine = _ENGINES.get(name)
    if engine is None:
        raise AdapterError(f"engine={name!r} is unknown; known are {', '.join(ENGINES)}")
    if engine is dawn and importlib.util.find_spec(dawn.PACKAGE) is None:
        raise AdapterError(
            f"engine='dawn' needs the package {dawn.PACKAGE}, which is not installed: pip install 'gridwise-py[dawn]'"
        )
    return engine
