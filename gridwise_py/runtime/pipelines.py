"""Pipelines of one device, and the modules and layouts that they are made of: each lives for as long as it is used."""

from __future__ import annotations

import functools
import threading
import time
import weakref
from dataclasses import dataclass
from typing import TypeAlias
from weakref import WeakValueDictionary

import wgpu

from ..backend.device_errors import is_trouble
from ..backend.device_state import state_of
from ..backend.queues import create_shader_module, tell_of_compiling
from ..errors import DeviceLostError, ShaderError
from ..planning.plan import Kernel, Plan, Shader
from ..planning.shaders import complete, dump, refuse_fatal_text, shader_error
from ..settings import ShaderChecks
from .compile_threads import Task, compile_threads

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


#: The sha256 of a text, and its run-time checks.
_ModuleKey: TypeAlias = tuple[str, ShaderChecks]


@dataclass(frozen=True)
class _Order:
    """All that a pipeline depends on."""

    shader: str
    checks: ShaderChecks
    bindings: tuple[tuple[int, str], ...]
    entry_point: str
    constants: tuple[tuple[str, float], ...]

    @staticmethod
    def of(plan: Plan, kernel: Kernel) -> _Order:
        return _Order(
            kernel.shader,
            plan.shaders[kernel.shader].shader_checks,
            tuple((binding.index, binding.access) for binding in kernel.bindings),
            kernel.entry_point,
            tuple(sorted(kernel.constants.items())),
        )


class PipelineCache:
    """Finds pipelines that somebody still keeps, and has threads compile the others. Any thread may ask."""

    def __init__(self, device: wgpu.GPUDevice):
        self._device_reference = weakref.ref(device)
        self._lock = threading.RLock()
        # Weak: a pipeline goes with the last plan that uses it (one of lavapipe's takes megabytes), its parts with the
        # last pipeline.
        self._modules = WeakValueDictionary[_ModuleKey, wgpu.GPUShaderModule]()
        self._module_locks = WeakValueDictionary[_ModuleKey, threading.Lock]()
        self._layouts = WeakValueDictionary[tuple[tuple[int, str], ...], _Layout]()
        self._pipelines = WeakValueDictionary[_Order, Pipeline]()
        self._tasks = WeakValueDictionary[_Order, Task[Pipeline]]()
        #: How many compilations were asked for so far; some may be under way, or not have begun.
        self.compiled: int = 0

    def __len__(self) -> int:
        return len(self._pipelines)

    @property
    def modules(self) -> int:
        """How many modules are kept."""
        return len(self._modules)

    def begin(self, *plans: Plan) -> list[Pipeline | Task[Pipeline]]:
        """Have the pipelines of plans compiled side by side; return them, or what becomes them, kernel by kernel.

        They are kept for as long as the caller keeps this.
        """
        asked = [self._ask(plan, kernel) for plan in plans for kernel in plan.kernels]
        compile_threads().need(item for item in asked if isinstance(item, Task))
        return asked

    def get(self, *plans: Plan) -> list[Pipeline]:
        """Return the pipelines of plans, as `begin` has them compiled, when all of them are there.

        They are kept for as long as the caller keeps them.

        Raises
        ------
        ShaderError
            If a text does not compile; the first one in the order of the kernels.
        """
        begin_ns, asked, device = time.perf_counter_ns(), self.begin(*plans), self._device_reference()
        found = [item.result() if isinstance(item, Task) else item for item in asked]
        if found != asked and device is not None:
            tell_of_compiling(device, begin_ns)
            state_of(device).compiled_ns = time.perf_counter_ns()
        return found

    def get_siblings_ahead(self, plan: Plan) -> list[Pipeline | Task[Pipeline]]:
        """Have the pipelines of a plan's siblings compiled when nothing is needed; return them, or what becomes them.

        They are kept for as long as the caller keeps this, and not compiled if the caller drops it before.

        Errors are raised when a pipeline is needed.
        """
        asked = [self._ask(plan, kernel) for kernel in plan.siblings]
        compile_threads().make_ahead(item for item in asked if isinstance(item, Task))
        return asked

    def _ask(self, plan: Plan, kernel: Kernel) -> Pipeline | Task[Pipeline]:
        """Return a pipeline or the task that compiles it."""
        order = _Order.of(plan, kernel)
        with self._lock:
            item = self._pipelines.get(order) or self._tasks.get(order)
            if item is not None:
                return item
            label = f"{plan.primitive} {kernel.label}" if kernel.label != plan.primitive else kernel.label
            compile_it = functools.partial(self._compile, order, plan.shaders[kernel.shader], label, kernel.label)
            task = self._tasks[order] = Task(compile_it)
            self.compiled += 1
            return task

    def _compile(self, order: _Order, shader: Shader, label: str, kernel_label: str) -> Pipeline:
        device = self._device_reference()
        try:
            if device is None:
                raise DeviceLostError(f"{label}: the device is gone")  # nobody is left who waits for this
            pipeline = self._compiled(device, order, shader, label, kernel_label)
        except BaseException:
            with self._lock:
                self._tasks.pop(order, None)  # the next one who needs it tries again
            raise
        with self._lock:
            self._pipelines[order] = pipeline
        return pipeline

    def _compiled(
        self, device: wgpu.GPUDevice, order: _Order, shader: Shader, label: str, kernel_label: str
    ) -> Pipeline:
        module = self._module(device, (order.shader, order.checks), shader, label)
        layout = self._layout(device, order.bindings)
        try:
            compute = device.create_compute_pipeline(
                label=label,
                layout=layout.pipeline,
                compute={"module": module, "entry_point": order.entry_point, "constants": dict(order.constants)},
            )
        except wgpu.GPUError as error:
            if is_trouble(error):
                raise
            what = f"the pipeline of kernel {kernel_label!r} cannot be made"
            raise shader_error(what, shader.text, str(error)) from error
        return Pipeline(compute, module, layout)

    def _module(self, device: wgpu.GPUDevice, key: _ModuleKey, shader: Shader, label: str) -> wgpu.GPUShaderModule:
        with self._lock:
            lock = self._module_locks.setdefault(key, threading.Lock())
        with lock:  # pipelines of one text are compiled side by side, but its module is made once
            module = self._modules.get(key)
            if module is None:
                module = self._modules[key] = self._compiled_module(device, shader, label)
            return module

    def _compiled_module(self, device: wgpu.GPUDevice, shader: Shader, label: str) -> wgpu.GPUShaderModule:
        missing = [f for f in shader.features if f not in device.features]
        if missing:
            raise ShaderError(
                f"shader {label!r} needs the features {missing}, which this device was not made with; "
                f"gw.request_device() asks for all that an adapter has of them"
            )
        text = complete(state_of(device).engine.LANGUAGE, shader.text)
        dump(label, text)
        if shader.origin != "library":
            refuse_fatal_text(label, text)
        return create_shader_module(device, label=label, code=text, checks=shader.shader_checks)

    def _layout(self, device: wgpu.GPUDevice, bindings: tuple[tuple[int, str], ...]) -> _Layout:
        with self._lock:
            layout = self._layouts.get(bindings)
            if layout is None:
                group_layout = device.create_bind_group_layout(
                    entries=[
                        {
                            "binding": index,
                            "visibility": wgpu.ShaderStage.COMPUTE,
                            "buffer": {"type": _BINDING_TYPES[access]},
                        }
                        for index, access in bindings
                    ]
                )
                pipeline_layout = device.create_pipeline_layout(bind_group_layouts=[group_layout])
                layout = self._layouts[bindings] = _Layout(group_layout, pipeline_layout)
            return layout
