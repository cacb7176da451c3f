"""Streaming: a primitive over data larger than the GPU's memory, chunk by chunk.

Two staging buffers take turns: while the GPU works on one chunk, the CPU copies out the previous result and fills the
other buffer with the next chunk. State that passes from chunk to chunk stays on the GPU. One submission is in flight at
a time, and buffers are mapped between submissions, because wgpu maps a buffer only after all submitted work is done.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, cast

import numpy as np
import wgpu

from .backend.device_errors import device_errors
from .backend.wgpu_native import map_buffer, submit, wait_idle
from .errors import ArgumentError, DatatypeError, LengthError
from .primitives import REGISTRY, Reduce, Scan
from .primitives.base import Primitive
from .primitives.elementwise import Elementwise
from .runtime.array import Array, asarray, empty, refuse_masked
from .runtime.context import context_of
from .runtime.observer import step
from .types.datatype import Datatype

__all__ = ["stream"]

_USAGE = wgpu.BufferUsage
_PARTIALS = 1024
_ALIGNMENT_BYTES = 16
_END = object()  # unlike None, which may be a (wrong) chunk


def stream(primitive: Primitive, chunks: Iterable[Any], *, overlap: bool = True) -> Any:
    """Run a primitive over data that arrives in chunks, of any number and total size.

    The result is that of one call on the concatenation of all chunks. While the GPU works on a chunk, the next one is
    taken from `chunks` and copied. So a generator that reads or computes chunks runs at the same time as the GPU.

    Parameters
    ----------
    primitive : Reduce, Scan, or an elementwise primitive: VectorAdd, Map, Copy
        Its bound arguments stay bound.
    chunks : iterable
        numpy arrays, shape (n,) of any n, of the primitive's dtype. For more than one input: tuples of arrays in the
        order of the primitive's inputs, or dicts by their names.
    overlap : bool, default True
        False finishes each chunk before it takes the next one; this serial loop is for comparison.

    Returns
    -------
    numpy scalar, or iterator of numpy.ndarray
        A scalar for Reduce. Otherwise the result of each chunk, in order, shape (n,).

    Raises
    ------
    ArgumentError
        If the primitive cannot be streamed, or a chunk is invalid, for example None. The results of earlier chunks are
        yielded first, also before an error that `chunks` raises.
    LimitError
        If a chunk is larger than a buffer of the device.
    EmptyReductionError
        For a minimum or maximum of no items.

    Notes
    -----
    Reduce keeps a partial result per chunk and reduces these in order. Scan puts the total of all earlier chunks in
    front of each chunk's items. So operators need only be associative. Float sums are rounded in a different order than
    in one call.

    Examples
    --------
    >>> import numpy as np, gridwise_py as gw
    >>> device = gw.request_device()
    >>> chunks = (np.full(1000, i, dtype=np.uint32) for i in range(5))
    >>> int(gw.stream(gw.Reduce(device, "u32"), chunks))
    10000
    """
    for kind, job in _JOBS.items():
        if isinstance(primitive, kind):
            made = job(primitive)
            results = _pipeline(made, chunks, overlap)
            return made.total(results) if isinstance(made, _ReduceJob) else results
    known = ", ".join(cls.__name__ for cls in REGISTRY.values() if issubclass(cls, tuple(_JOBS)))
    raise ArgumentError(f"{primitive.name} cannot be streamed; these can: {known}")


class _Job(ABC):
    """The work on a chunk on the GPU."""

    lead = 0  # items in front of the chunk's items in the inputs
    returns_items = True

    def __init__(self, primitive: Primitive, names: Sequence[str], datatype: Datatype):
        self.primitive = primitive
        self.device = primitive.device
        self.names = tuple(names)
        self.datatype = datatype
        self.capacity = 0
        self.inputs: dict[str, Array] = {}
        self.output: Array | None = None

    def check(self, chunk: Any) -> list[np.ndarray]:
        """Return a chunk's arrays, one per input."""
        arrays: list[Any]
        if isinstance(chunk, Mapping):
            named = cast(Mapping[str, Any], chunk)
            if set(named) != set(self.names):
                raise ArgumentError(f"a chunk has {sorted(named)}, but {self.primitive.name} takes {list(self.names)}")
            arrays = [named[name] for name in self.names]
        else:
            arrays = list(cast(Sequence[Any], chunk)) if isinstance(chunk, (tuple, list)) else [chunk]
        if len(arrays) != len(self.names):
            raise ArgumentError(
                f"a chunk has {len(arrays)} arrays, but {self.primitive.name} takes {len(self.names)} "
                f"({', '.join(self.names)}); give tuples of arrays, or dicts"
            )
        for name, array in zip(self.names, arrays, strict=True):
            refuse_masked(array)
            items = cast(np.ndarray, array) if isinstance(array, np.ndarray) else None
            if items is None or items.dtype != self.datatype.dtype or items.ndim != 1:
                found = type(array).__name__ if items is None else f"{items.dtype} of shape {items.shape}"
                raise DatatypeError(
                    f"a chunk's {name} is {found}, but must be a numpy array of {self.datatype.dtype} with one "
                    f"dimension; convert it with astype and ravel"
                )
        if len({array.size for array in arrays}) > 1:
            lengths = ", ".join(f"{name} {array.size}" for name, array in zip(self.names, arrays, strict=True))
            raise LengthError(f"the arrays of a chunk differ in length: {lengths}; slice them alike")
        return arrays

    def reserve(self, n: int) -> None:
        """Make room for a chunk; the queue must be idle."""
        if n > self.capacity:
            self.capacity = n
            self.inputs = {name: empty(n + self.lead, self.datatype, self.device) for name in self.names}
            self.output = self.make_output(n)

    def make_output(self, n: int) -> Array:
        """Return room for the result of a chunk."""
        return empty(n + self.lead, self.datatype, self.device)

    @abstractmethod
    def record(self, encoder: wgpu.GPUCommandEncoder, n: int) -> Array:
        """Record the work on a chunk whose items are in the inputs; return the array of the result."""

    def finish(self) -> None:
        """Release all arrays."""
        self.inputs, self.output = {}, None


class _ElementwiseJob(_Job):
    def __init__(self, primitive: Elementwise):
        super().__init__(primitive, primitive.signature.inputs, primitive.datatype)

    def record(self, encoder: wgpu.GPUCommandEncoder, n: int) -> Array:
        assert self.output is not None
        arrays = {name: array[:n] for name, array in self.inputs.items()}
        self.primitive.bind(**arrays, output=self.output[:n]).record(encoder)
        return self.output[:n]


class _ScanJob(_Job):
    """An inclusive scan of the carry and the chunk. Results are its items without the first, or without the last."""

    lead = 1

    def __init__(self, primitive: Scan):
        same = primitive
        if primitive.kind != "inclusive":
            same = Scan(primitive.device, primitive.datatype, primitive.op, strategy=primitive.strategy)
        super().__init__(same, ["input"], primitive.datatype)
        self._exclusive = primitive.kind == "exclusive"
        identity = np.array([primitive.op.identity_for(primitive.datatype)], dtype=primitive.datatype.dtype)
        self._carry = asarray(identity, self.device)
        self._begun = False

    def record(self, encoder: wgpu.GPUCommandEncoder, n: int) -> Array:
        assert self.output is not None
        items, output, size = self.inputs["input"], self.output, self.datatype.itemsize_bytes
        # Nothing precedes the first chunk: an identity would turn −0 into +0.
        first = 0 if self._begun else 1
        target = items.lease.buffer if self._begun else output.lease.buffer
        encoder.copy_buffer_to_buffer(self._carry.lease.buffer, 0, target, 0, size)
        self.primitive.bind(input=items[first : n + 1], output=output[first : n + 1]).record(encoder)
        encoder.copy_buffer_to_buffer(output.lease.buffer, n * size, self._carry.lease.buffer, 0, size)
        self._begun = True
        return output[:n] if self._exclusive else output[1 : n + 1]


class _ReduceJob(_Job):
    """A partial result per chunk. When there are too many, they are combined into one, which becomes the first."""

    returns_items = False

    def __init__(self, primitive: Reduce):
        super().__init__(primitive, ["input"], primitive.datatype)
        self._partials = empty(_PARTIALS, primitive.datatype, self.device)
        self._one = empty(1, primitive.datatype, self.device)
        self._count = 0

    def make_output(self, n: int) -> Array:
        return self._one

    def _combine(self, encoder: wgpu.GPUCommandEncoder) -> None:
        self.primitive.bind(input=self._partials[: self._count], output=self._one).record(encoder)
        self._keep(encoder, 0)

    def _keep(self, encoder: wgpu.GPUCommandEncoder, place: int) -> None:
        size = self.datatype.itemsize_bytes
        encoder.copy_buffer_to_buffer(self._one.lease.buffer, 0, self._partials.lease.buffer, place * size, size)
        self._count = place + 1

    def record(self, encoder: wgpu.GPUCommandEncoder, n: int) -> Array:
        if self._count == _PARTIALS:
            self._combine(encoder)
        self.primitive.bind(input=self.inputs["input"][:n], output=self._one).record(encoder)
        self._keep(encoder, self._count)
        return self._one

    def total(self, results: Iterator[np.ndarray]) -> Any:
        for _ in results:
            pass
        partials = self._partials[: self._count]
        # A single partial is the result: reducing it again could turn −0 into +0.
        if self._count != 1:
            partials = self.primitive.bind(input=partials, output=self._one).execute().output
        return partials.to_numpy()[0]


_JOBS: dict[type, type] = {Reduce: _ReduceJob, Scan: _ScanJob, Elementwise: _ElementwiseJob}


class _Staging:
    """Host memory that the GPU copies from and to, for one chunk."""

    def __init__(self, device: wgpu.GPUDevice):
        self._device = device
        self._transfers = context_of(device).transfers
        self.upload: wgpu.GPUBuffer | None = None
        self.download: wgpu.GPUBuffer | None = None
        self.offsets: list[int] = []
        self.items = 0

    def fill(self, job: _Job, arrays: Sequence[np.ndarray]) -> None:
        """Copy a chunk into the mapped buffer."""
        stride = -(-arrays[0].nbytes // _ALIGNMENT_BYTES) * _ALIGNMENT_BYTES
        size = max(_ALIGNMENT_BYTES, stride * len(arrays))
        if self.upload is None or self.upload.size < size:
            if self.upload is not None:
                self.upload.destroy()
            self.upload = self._device.create_buffer(
                label="gridwise stream up", size=size, usage=_USAGE.MAP_WRITE | _USAGE.COPY_SRC, mapped_at_creation=True
            )
        down = job.datatype.itemsize_bytes * (arrays[0].size if job.returns_items else 0)
        if down and (self.download is None or self.download.size < down):
            if self.download is not None:
                self.download.destroy()
            self.download = self._device.create_buffer(
                label="gridwise stream down", size=down, usage=_USAGE.MAP_READ | _USAGE.COPY_DST
            )
        self.offsets = [stride * i for i in range(len(arrays))]
        self.items = arrays[0].size
        for offset, array in zip(self.offsets, arrays, strict=True):
            if array.size:
                self._transfers.fill(self._device, self.upload, offset, array)
        self.upload.unmap()

    def map(self, job: _Job) -> None:
        """Map both buffers for the host; the queue is idle."""
        assert self.upload is not None
        map_buffer(self._device, self.upload, "WRITE")
        if job.returns_items and self.items:
            assert self.download is not None
            map_buffer(self._device, self.download, "READ_NOSYNC")

    def read(self, job: _Job) -> np.ndarray:
        """Copy the result out of the mapped buffer."""
        out = np.empty(self.items if job.returns_items else 0, dtype=job.datatype.dtype)
        if out.size:
            assert self.download is not None
            self._transfers.empty(self._device, self.download, out)
            self.download.unmap()
        return out

    def destroy(self) -> None:
        for buffer in (self.upload, self.download):
            if buffer is not None:
                buffer.destroy()


def _pipeline(job: _Job, chunks: Iterable[Any], overlap: bool) -> Iterator[np.ndarray]:
    """Run a job over chunks; yield each result when it is complete."""
    device = job.device
    context = context_of(device)
    stagings = (_Staging(device), _Staging(device))
    source = iter(chunks)

    def fill(staging: _Staging) -> bool:
        chunk = next(source, _END)
        if chunk is _END:
            return False
        arrays = job.check(chunk)
        with step(context.observer, "copy to staging"), device_errors(f"stream of {job.primitive.name}", device):
            staging.fill(job, arrays)
        return True

    def read(staging: _Staging) -> np.ndarray:
        with step(context.observer, "copy from staging"):
            return staging.read(job)

    def wait(staging: _Staging) -> None:
        with step(context.observer, "wait"):
            wait_idle(device)
            staging.map(job)

    try:
        number, done, failed = 0, None, None
        more = fill(stagings[0])
        while more:
            current, other = stagings[number % 2], stagings[1 - number % 2]
            job.reserve(current.items)
            _submit(job, current)
            if overlap:
                # The GPU works meanwhile. Copy out the previous result first, because its staging is filled next.
                if done is not None:
                    yield read(done)
                try:
                    more = fill(other)
                except Exception as error:  # raised after the result of the current chunk was yielded
                    more, failed = False, error
                wait(current)
            else:
                wait(current)
                yield read(current)
                more = fill(other)
            done, number = current, number + 1
        if overlap and done is not None:
            yield read(done)
        if failed is not None:
            raise failed
    finally:
        try:
            wait_idle(device)
        finally:
            job.finish()
            for staging in stagings:
                staging.destroy()


def _submit(job: _Job, staging: _Staging) -> None:
    """Record upload, work and download of a chunk, and submit."""
    n, size = staging.items, job.datatype.itemsize_bytes
    if not n:
        return
    observer = context_of(job.device).observer
    assert staging.upload is not None
    with step(observer, "encode"):
        encoder = job.device.create_command_encoder(label="gridwise stream")
        with step(observer, "copy to GPU", encoder, n * size * len(job.names)):
            for offset, array in zip(staging.offsets, job.inputs.values(), strict=True):
                encoder.copy_buffer_to_buffer(staging.upload, offset, array.lease.buffer, job.lead * size, n * size)
        result = job.record(encoder, n)
        if job.returns_items:
            assert staging.download is not None
            with step(observer, "copy to host", encoder, n * size):
                encoder.copy_buffer_to_buffer(result.lease.buffer, result.offset_bytes, staging.download, 0, n * size)
        with device_errors(f"stream of {job.primitive.name}", job.device):
            commands = encoder.finish()
    with step(observer, "submit"), device_errors(f"stream of {job.primitive.name}", job.device):
        submit(job.device, [commands], f"stream of {job.primitive.name}")
