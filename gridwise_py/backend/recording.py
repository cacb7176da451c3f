"""The engine that only records: devices without a GPU, which note what they are asked to do.

A device of it has wgpu-py's API as far as this library and own kernels use it, answers from given capabilities, and
computes nothing: who asks for a result gets an error. `Log.plan` says what was submitted, as a plan does. All other
methods raise NotImplementedError, as wgpu-py's base classes do: nothing is recorded by halves.
"""

# wgpu's stubs hide constructors, and options that nobody here gives.
# pyright: reportCallIssue=false, reportIncompatibleMethodOverride=false, reportPrivateUsage=false
# pyright: reportUnknownLambdaType=false

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, NoReturn, cast

import numpy as np
import wgpu

from ..errors import ArgumentError
from ..planning.plan import Shader
from ..planning.shaders import sha256
from ..settings import ShaderChecks
from ..types.capabilities import Capabilities
from ..types.wgsl_text import declarations
from . import wgpu_native

#: Contents of uniforms up to this size are kept word by word; of all else a digest is.
_MOST_WORDS_BYTES = 1 << 16
#: By what stands in ``var<…>``.
_ACCESS: dict[tuple[str, ...], str] = {
    ("storage",): "read", ("storage", "read"): "read", ("storage", "read_write"): "read_write", ("uniform",): "uniform"
}  # fmt: skip


def refuse_reading(*_arguments: object, **_options: object) -> NoReturn:
    """Raise: nothing was computed."""
    raise ArgumentError(
        "a result is read, but this device only records what it is asked to do, and computes nothing; return a "
        "gw.Benchmark, whose work is recorded and whose result is read where there is a GPU"
    )


@dataclass
class Log:
    """What a device was asked to do.

    Attributes
    ----------
    steps : list of mapping
        Of all submissions, as in the JSON of a `Plan`; with buffers in place of their names.
    made_bytes : list of int
        Of each buffer that was made.
    written_bytes : list of int
        Of each write from the host.
    """

    steps: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    made_bytes: list[int] = field(default_factory=list[int])
    written_bytes: list[int] = field(default_factory=list[int])

    def restart(self) -> None:
        """Forget what was noted until now."""
        for noted in (self.steps, self.made_bytes, self.written_bytes):
            noted.clear()

    def plan(self, arguments: Mapping[int, str]) -> tuple[dict[str, Any], dict[str, str | None]]:
        """Return the steps as the JSON data of a plan, and by argument digests of what the host wrote.

        `arguments` are names of buffers by their ``uid``; what else holds nothing from the host is scratch.
        """
        specs: dict[tuple[int, Any], dict[str, Any]] = {}
        inputs: dict[str, str | None] = {}
        shaders: dict[str, Any] = {}

        def name_of(buffer: _Buffer, words: Any = None) -> str:
            given, digest = arguments.get(buffer.uid), buffer.digest
            name = given or f"{buffer.label or 'buffer'} {len(specs)}"
            role = "params" if words is not None else "argument" if given or digest else "scratch"
            spec = {"name": name, "role": role, "size_bytes": buffer.size, "words": words}
            found: str = specs.setdefault((buffer.uid, words), spec)["name"]
            if words is None and digest:
                inputs[found] = digest
            return found

        def named(value: Any) -> Any:
            return name_of(*cast(tuple[Any, ...], value)) if isinstance(value, tuple) else value

        steps: list[dict[str, Any]] = []
        for step in self.steps:
            shader = step.get("module")
            steps.append({key: named(value) for key, value in step.items() if key != "module"})
            if shader is not None:
                shaders[step["shader"]] = {"text": shader.text, "checks": shader.shader_checks}
                steps[-1]["bindings"] = [{**one, "buffer": named(one["buffer"])} for one in step["bindings"]]
        return {"buffers": [*specs.values()], "steps": steps, "shaders": shaders}, inputs


class _Buffer(wgpu.GPUBuffer):
    """Notes what the host writes."""

    def __init__(self, label: str, device: _Device, size: int, usage: int, *, mapped: bool):
        super().__init__(label, None, device, size, usage, "mapped" if mapped else "unmapped")
        self._memory = bytearray(size) if usage & wgpu.BufferUsage.UNIFORM and size <= _MOST_WORDS_BYTES else None
        self._writes: dict[tuple[int, int], str] = {}
        self._log = device.log

    def note(self, offset: int, data: Any) -> None:
        """Note a write."""
        items = memoryview(cast(Any, np.ascontiguousarray(data))).cast("B")
        self._log.written_bytes.append(items.nbytes)
        if self._memory is not None:
            self._memory[offset : offset + items.nbytes] = items
        self._writes.pop((offset, items.nbytes), None)  # the last one counts
        self._writes[offset, items.nbytes] = hashlib.sha256(items).hexdigest()

    @property
    def words(self) -> tuple[int, ...] | None:
        """Its content, of a small one that may be a uniform."""
        return None if self._memory is None else tuple(np.frombuffer(self._memory, "<u4", self.size // 4).tolist())

    @property
    def digest(self) -> str:
        """A digest of all that the host wrote; empty if it wrote nothing."""
        return sha256(repr(list(self._writes.items()))) if self._writes else ""

    def write_mapped(self, data: Any, buffer_offset: int = 0) -> None:
        self.note(buffer_offset, data)

    def unmap(self) -> None:
        self._map_state = "unmapped"

    def destroy(self) -> None:
        pass

    map_sync = map_async = read_mapped = refuse_reading


def _bound(binding: Mapping[str, Any]) -> tuple[Any, ...]:
    buffer = binding["buffer"]
    return (buffer, buffer.words) if binding["access"] == "uniform" else (buffer,)


class _Pass(wgpu.GPUComputePassEncoder):
    def __init__(self, label: str, encoder: _Encoder):
        super().__init__(label, None, encoder._device)
        self._steps = encoder.steps
        self._pipeline: Any = None
        self._groups: dict[int, Any] = {}

    def set_pipeline(self, pipeline: wgpu.GPUComputePipeline) -> None:
        self._pipeline = pipeline

    def set_bind_group(self, index: int, bind_group: Any, *_offsets: Any) -> None:
        self._groups[index] = bind_group

    def dispatch_workgroups(
        self, workgroup_count_x: int, workgroup_count_y: int = 1, workgroup_count_z: int = 1
    ) -> None:
        bindings = [
            self._pipeline.binding(entry) for _, group in sorted(self._groups.items()) for entry in group._internal
        ]
        workgroups = [workgroup_count_x, workgroup_count_y, workgroup_count_z]
        self._steps.append({**self._pipeline.kernel, "bindings": bindings, "workgroups": workgroups})

    def end(self) -> None:
        pass


class _Encoder(wgpu.GPUCommandEncoder):
    def __init__(self, label: str, device: _Device):
        super().__init__(label, None, device)
        self.steps: list[dict[str, Any]] = []

    def begin_compute_pass(self, *, label: str = "", timestamp_writes: Any = None) -> _Pass:
        return _Pass(label, self)

    def clear_buffer(self, buffer: Any, offset: int = 0, size: int | None = None) -> None:
        size_bytes = buffer.size - offset if size is None else size
        self.steps.append({"kind": "fill", "buffer": (buffer,), "offset_bytes": offset, "size_bytes": size_bytes})

    def copy_buffer_to_buffer(
        self, source: Any, source_offset: int, destination: Any, destination_offset: int, size: int | None = None
    ) -> None:
        size_bytes = source.size - source_offset if size is None else size
        offsets = {"source_offset_bytes": source_offset, "destination_offset_bytes": destination_offset}
        self.steps.append(
            {"kind": "copy", "source": (source,), "destination": (destination,), **offsets, "size_bytes": size_bytes}
        )

    def insert_debug_marker(self, marker_label: str) -> None:
        pass

    push_debug_group = insert_debug_marker

    def pop_debug_group(self) -> None:
        pass

    def finish(self, *, label: str = "") -> wgpu.GPUCommandBuffer:
        return wgpu.GPUCommandBuffer(label, self.steps, self._device)


class _Queue(wgpu.GPUQueue):
    def submit(self, command_buffers: Sequence[Any]) -> None:
        for step in (step for commands in command_buffers for step in commands._internal):
            if "bindings" in step:  # a uniform may have other content at the next submission
                bindings = [{**one, "buffer": _bound(one)} for one in step["bindings"]]
                step = {**step, "bindings": bindings}
            cast(_Device, self._device).log.steps.append(step)

    def write_buffer(
        self, buffer: Any, buffer_offset: int, data: Any, data_offset: int = 0, size: int | None = None
    ) -> None:
        items = memoryview(cast(Any, np.ascontiguousarray(data))).cast("B")[data_offset:]
        buffer.note(buffer_offset, items if size is None else items[:size])

    read_buffer = refuse_reading


class _Pipeline(wgpu.GPUComputePipeline):
    """What a dispatch of it is, as far as a pipeline says, and how its text uses each binding."""

    def __init__(self, label: str, device: _Device, compute: Mapping[str, Any]):
        super().__init__(label, None, device)
        module: Shader = compute["module"]._internal
        declared = declarations(module.text)
        own = next((one.name for one in declared if one.kind == "fn" and "compute" in one.attributes), "main")
        self.kernel: dict[str, Any] = {
            "kind": "kernel", "label": label, "shader": sha256(module.text), "module": module,
            "constants": dict(compute.get("constants") or {}), "entry_point": compute.get("entry_point") or own,
        }  # fmt: skip
        self._access = {
            int(one.attributes["binding"].rstrip("iu")): _ACCESS[one.template]
            for one in declared
            if one.template in _ACCESS and "binding" in one.attributes
        }

    def binding(self, entry: Mapping[str, Any]) -> dict[str, Any]:
        """Return an entry of a bind group as a plan has it."""
        bound, access = entry["resource"], self._access.get(entry["binding"], "read_write")
        buffer, offset = bound["buffer"], bound.get("offset", 0)
        size = bound.get("size", buffer.size - offset)
        return {
            "index": entry["binding"], "buffer": buffer, "access": access, "offset_bytes": offset, "size_bytes": size
        }  # fmt: skip

    def get_bind_group_layout(self, index: int) -> wgpu.GPUBindGroupLayout:
        return wgpu.GPUBindGroupLayout("", index, self._device)


def _kept(kind: Any) -> Callable[..., Any]:
    """Return a method that makes an object which keeps its entries."""

    def create(self: Any, *, label: str = "", entries: Any = None, **_more: Any) -> Any:
        return kind(label, entries, self)

    return create


class _Device(wgpu.GPUDevice):
    def __init__(self, adapter: _Adapter, label: str = ""):
        super().__init__(label, None, adapter, set(adapter.features), dict(adapter.limits), _Queue("", None, None))
        self.log = Log()

    def create_buffer(self, *, label: str = "", size: int, usage: int, mapped_at_creation: bool = False) -> _Buffer:
        self.log.made_bytes.append(size)
        return _Buffer(label, self, size, usage, mapped=mapped_at_creation)

    create_bind_group_layout = _kept(wgpu.GPUBindGroupLayout)
    create_bind_group = _kept(wgpu.GPUBindGroup)
    create_pipeline_layout = _kept(wgpu.GPUPipelineLayout)

    def create_shader_module(self, *, label: str = "", code: str, compilation_hints: Any = ()) -> wgpu.GPUShaderModule:
        return _create_module(self, label, code, "all")

    def create_compute_pipeline(self, *, label: str = "", layout: Any, compute: Any) -> _Pipeline:
        return _Pipeline(label, self, compute)

    def create_command_encoder(self, *, label: str = "") -> _Encoder:
        return _Encoder(label, self)

    def destroy(self) -> None:
        pass


class _Adapter(wgpu.GPUAdapter):
    def __init__(self, capabilities: Capabilities):
        info: dict[str, Any] = {
            "vendor": capabilities.vendor, "architecture": "", "device": capabilities.adapter,
            "description": capabilities.driver, "adapter_type": capabilities.adapter_type,
            "backend_type": capabilities.backend, "vendor_id": 0, "device_id": 0,
        }  # fmt: skip
        known = wgpu.GPUAdapterInfo(cast(Any, info))
        super().__init__(None, set(capabilities.features), dict(capabilities.limits), known)

    def request_device_sync(self, *, label: str = "", **_options: Any) -> _Device:
        return _Device(self, label)


def make_device(capabilities: Capabilities) -> wgpu.GPUDevice:
    """Return a device that records, and answers from capabilities."""
    return _Device(_Adapter(capabilities))


def log_of(device: wgpu.GPUDevice) -> Log | None:
    """Return what a device of this engine was asked to do; None of others."""
    return device.log if isinstance(device, _Device) else None


def _create_module(device: wgpu.GPUDevice, label: str, code: str, checks: ShaderChecks) -> wgpu.GPUShaderModule:
    return wgpu.GPUShaderModule(label, Shader(code, checks), device)


#: The module of the engine: as that of wgpu where nothing else is said.
ENGINE: Any = SimpleNamespace(
    **{
        **vars(wgpu_native),
        "NAME": "recording",
        "HAS_MAPPED_MEMORY": False,
        "check_lives": lambda *_: None,
        "polled": lambda *_: True,
        "blocking_wait": lambda *_: None,
        "map_idle": refuse_reading,
        "native_functions": lambda: None,
        "tick_period_ns": lambda *_: 1.0,
        "checks_of_all": lambda *of: of[1],
        "create_module": _create_module,
    }
)
