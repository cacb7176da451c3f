"""Pipelines of one device, and the modules and layouts that they are made of: each lives for as long as it is used."""

from __future__ import annotations

import weakref
from dataclasses import dataclass
from typing import Any
from weakref import WeakValueDictionary

import wgpu

from .. import settings
from ..backend.device_errors import is_trouble
from ..backend.wgpu_native import create_shader_module
from ..errors import ShaderError
from ..planning.plan import Kernel, Plan, Shader
from ..planning.shaders import dump, prologue, refuse_fatal_text, shader_error

__all__ = ["Pipeline", "PipelineCache"]

_BINDING_TYPES = {"uniform": "uniform", "read": "read-only-storage", "read_write": "storage"}


@dataclass(frozen=True)
class _Layout:
    group: wgpu.GPUBindGroupLayout
    pipeline: wgpu.GPUPipelineLayout


@dataclass(frozen=True)
class Pipeline:
    """A pipeline in the cache, with the parts that others may be made of."""

    compute: wgpu.GPUComputePipeline
    module: wgpu.GPUShaderModule
    layout: _Layout


class PipelineCache:
    """Finds pipelines that somebody still keeps, and compiles the others. The executor has the lock."""

    def __init__(self, device: wgpu.GPUDevice):
        self._device_reference = weakref.ref(device)
        # Weak: a pipeline goes with the last plan that uses it (one of lavapipe's takes megabytes), its parts with the
        # last pipeline.
        self._modules = WeakValueDictionary[tuple[str, bool], wgpu.GPUShaderModule]()
        self._layouts = WeakValueDictionary[tuple[tuple[int, str], ...], _Layout]()
        self._pipelines = WeakValueDictionary[tuple[Any, ...], Pipeline]()
        #: How many were compiled so far.
        self.compiled: int = 0

    def __len__(self) -> int:
        return len(self._pipelines)

    @property
    def modules(self) -> int:
        """How many modules are kept."""
        return len(self._modules)

    @property
    def _device(self) -> wgpu.GPUDevice:
        device = self._device_reference()
        assert device is not None, "pipelines outlived their device"
        return device

    def find(self, plan: Plan, kernel: Kernel) -> Pipeline:
        """Return the pipeline of a kernel. It is kept for as long as the caller keeps it."""
        shader = plan.shaders[kernel.shader]
        trusted = shader.trusted and not settings.shader_checks()
        access = tuple(binding.access for binding in kernel.bindings)
        key = (
            kernel.shader,
            trusted,
            access,
            tuple(b.index for b in kernel.bindings),
            kernel.entry_point,
            tuple(sorted(kernel.constants.items())),
        )
        found = self._pipelines.get(key)
        if found is not None:
            return found
        label = f"{plan.primitive} {kernel.label}" if kernel.label != plan.primitive else kernel.label
        module = self._module(kernel.shader, shader, trusted, label)
        layout = self._layout(kernel)
        try:
            compute = self._device.create_compute_pipeline(
                label=label,
                layout=layout.pipeline,
                compute={
                    "module": module,
                    "entry_point": kernel.entry_point,
                    "constants": dict(kernel.constants),
                },
            )
        except wgpu.GPUError as error:
            if is_trouble(error):
                raise
            what = f"the pipeline of kernel {kernel.label!r} cannot be made"
            raise shader_error(what, shader.text, str(error)) from error
        self.compiled += 1
        pipeline = self._pipelines[key] = Pipeline(compute, module, layout)
        return pipeline

    def _module(self, key: str, shader: Shader, trusted: bool, label: str) -> wgpu.GPUShaderModule:
        module = self._modules.get((key, trusted))
        if module is None:
            missing = [f for f in shader.features if f not in self._device.features]
            if missing:
                raise ShaderError(f"shader {label!r} needs the features {missing}, which this device was not made with")
            text = prologue("naga", shader.text) + shader.text
            dump(label, text)
            if not shader.trusted:
                refuse_fatal_text(label, text)
            module = create_shader_module(self._device, label=label, code=text, trusted=trusted)
            self._modules[(key, trusted)] = module
        return module

    def _layout(self, kernel: Kernel) -> _Layout:
        key = tuple((b.index, b.access) for b in kernel.bindings)
        layout = self._layouts.get(key)
        if layout is None:
            group_layout = self._device.create_bind_group_layout(
                entries=[
                    {
                        "binding": b.index,
                        "visibility": wgpu.ShaderStage.COMPUTE,
                        "buffer": {"type": _BINDING_TYPES[b.access]},
                    }
                    for b in kernel.bindings
                ]
            )
            pipeline_layout = self._device.create_pipeline_layout(bind_group_layouts=[group_layout])
            layout = self._layouts[key] = _Layout(group_layout, pipeline_layout)
        return layout
