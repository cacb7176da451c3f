"""The part of wgpu-py 0.32 that gridwise_py calls, for the type checker alone.

wgpu-py has annotations, but writes ``dict`` and ``set`` without the types of their items, so that a strict type checker
takes whatever touches them for unknown. The test of this folder compares each name and each parameter with wgpu-py.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Generic, TypeVar

import numpy as np
from typing_extensions import Buffer

from . import backends as backends

__version__: str

_T = TypeVar("_T")
_Data = Buffer | np.ndarray[Any, Any]  # numpy's annotations call an array a Buffer from Python 3.12 on
_Descriptor = Mapping[str, object]

class BufferUsage:
    MAP_READ: int
    MAP_WRITE: int
    COPY_SRC: int
    COPY_DST: int
    INDEX: int
    VERTEX: int
    UNIFORM: int
    STORAGE: int
    INDIRECT: int
    QUERY_RESOLVE: int

class ShaderStage:
    VERTEX: int
    FRAGMENT: int
    COMPUTE: int

class QueryType:
    occlusion: str
    timestamp: str

class GPUError(Exception):
    @property
    def message(self) -> str: ...

class GPUOutOfMemoryError(GPUError, MemoryError): ...
class GPUValidationError(GPUError): ...

class GPUPromise(Generic[_T]):
    def sync_wait(self) -> _T: ...

class GPUObjectBase:
    _device: GPUDevice
    _internal: object
    @property
    def uid(self) -> int: ...
    @property
    def label(self) -> str: ...

# Names of the adapter and its driver are str, its PCI numbers are int.
class GPUAdapterInfo(dict[str, Any]): ...

class GPUAdapter:
    @property
    def features(self) -> set[str]: ...
    @property
    def limits(self) -> dict[str, int]: ...
    @property
    def info(self) -> GPUAdapterInfo: ...
    def request_device_sync(
        self,
        *,
        label: str = "",
        required_features: Sequence[str] = (),
        required_limits: dict[str, int | None] | None = None,
        default_queue: _Descriptor | None = None,
    ) -> GPUDevice: ...

class GPU:
    def enumerate_adapters_sync(self) -> list[GPUAdapter]: ...

gpu: GPU

class GPUDevice(GPUObjectBase):
    @property
    def features(self) -> set[str]: ...
    @property
    def limits(self) -> dict[str, int]: ...
    @property
    def queue(self) -> GPUQueue: ...
    @property
    def adapter(self) -> GPUAdapter: ...
    def destroy(self) -> None: ...
    def create_buffer(
        self, *, label: str = "", size: int, usage: int | str, mapped_at_creation: bool = False
    ) -> GPUBuffer: ...
    def create_buffer_with_data(self, *, label: str = "", data: _Data, usage: int | str) -> GPUBuffer: ...
    def create_bind_group_layout(self, *, label: str = "", entries: Sequence[_Descriptor]) -> GPUBindGroupLayout: ...
    def create_bind_group(
        self, *, label: str = "", layout: GPUBindGroupLayout, entries: Sequence[_Descriptor]
    ) -> GPUBindGroup: ...
    def create_pipeline_layout(
        self, *, label: str = "", bind_group_layouts: Sequence[GPUBindGroupLayout], immediate_size: int = 0
    ) -> GPUPipelineLayout: ...
    def create_shader_module(
        self, *, label: str = "", code: str, compilation_hints: Sequence[_Descriptor] = ()
    ) -> GPUShaderModule: ...
    def create_compute_pipeline(
        self, *, label: str = "", layout: GPUPipelineLayout | str, compute: _Descriptor
    ) -> GPUComputePipeline: ...
    def create_command_encoder(self, *, label: str = "") -> GPUCommandEncoder: ...
    def create_query_set(self, *, label: str = "", type: str, count: int) -> GPUQuerySet: ...

class GPUBuffer(GPUObjectBase):
    @property
    def size(self) -> int: ...
    @property
    def usage(self) -> int: ...
    @property
    def map_state(self) -> str: ...
    def map_async(self, mode: int | str, offset: int = 0, size: int | None = None) -> GPUPromise[None]: ...
    def unmap(self) -> None: ...
    def read_mapped(
        self, buffer_offset: int | None = None, size: int | None = None, *, copy: bool = True
    ) -> memoryview: ...
    def write_mapped(self, data: _Data, buffer_offset: int | None = None) -> None: ...
    def destroy(self) -> None: ...

class GPUBindGroupLayout(GPUObjectBase): ...
class GPUBindGroup(GPUObjectBase): ...
class GPUPipelineLayout(GPUObjectBase): ...
class GPUShaderModule(GPUObjectBase): ...
class GPUCommandBuffer(GPUObjectBase): ...
class GPUQuerySet(GPUObjectBase): ...

class GPUComputePipeline(GPUObjectBase):
    def get_bind_group_layout(self, index: int) -> GPUBindGroupLayout: ...

class GPUComputePassEncoder(GPUObjectBase):
    def set_pipeline(self, pipeline: GPUComputePipeline) -> None: ...
    def set_bind_group(
        self,
        index: int,
        bind_group: GPUBindGroup,
        dynamic_offsets_data: Sequence[int] = (),
        dynamic_offsets_data_start: int | None = None,
        dynamic_offsets_data_length: int | None = None,
    ) -> None: ...
    def dispatch_workgroups(
        self, workgroup_count_x: int, workgroup_count_y: int = 1, workgroup_count_z: int = 1
    ) -> None: ...
    def end(self) -> None: ...

class GPUCommandEncoder(GPUObjectBase):
    def begin_compute_pass(
        self, *, label: str = "", timestamp_writes: _Descriptor | None = None
    ) -> GPUComputePassEncoder: ...
    def clear_buffer(self, buffer: GPUBuffer, offset: int = 0, size: int | None = None) -> None: ...
    def copy_buffer_to_buffer(
        self,
        source: GPUBuffer,
        source_offset: int,
        destination: GPUBuffer,
        destination_offset: int,
        size: int | None = None,
    ) -> None: ...
    def resolve_query_set(
        self,
        query_set: GPUQuerySet,
        first_query: int,
        query_count: int,
        destination: GPUBuffer,
        destination_offset: int,
    ) -> None: ...
    def insert_debug_marker(self, marker_label: str) -> None: ...
    def finish(self, *, label: str = "") -> GPUCommandBuffer: ...

class GPUQueue(GPUObjectBase):
    def submit(self, command_buffers: Sequence[GPUCommandBuffer]) -> None: ...
    def write_buffer(
        self, buffer: GPUBuffer, buffer_offset: int, data: _Data, data_offset: int = 0, size: int | None = None
    ) -> None: ...
    def read_buffer(self, buffer: GPUBuffer, buffer_offset: int = 0, size: int | None = None) -> memoryview: ...
    def on_submitted_work_done_sync(self) -> None: ...
