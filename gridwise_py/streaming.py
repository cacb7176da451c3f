"""Streaming: a primitive over data larger than the GPU's memory, chunk by chunk.

Two staging buffers take turns: while the GPU works on one chunk, the CPU copies out the previous result and fills the
other buffer with the next chunk. State that passes from chunk to chunk stays on the GPU. One submission is in flight at
a time, and buffers are mapped between submissions, because wgpu maps a buffer only after all submitted work is done.

One-shot functions on large numpy arrays work in the same way, on windows of the array (`in_windows`).
"""

from __future__ import annotations

import mmap
import weakref
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, cast

import numpy as np
import wgpu

from .backend.device_errors import check_not_lost, device_errors
from .backend.queues import map_buffer, submit, wait_idle
from .errors import ArgumentError, DatatypeError, LengthError
from .primitives import Reduce, Scan
from .primitives.base import Primitive
from .primitives.engines.elementwise import Elementwise
from .runtime.array import Array, asarray, empty, refuse_masked
from .runtime.context import context_of
from .runtime.observer import step
from .types.datatype import Datatype

_USAGE = wgpu.BufferUsage
_PARTIALS = 1024
_ALIGNMENT_BYTES = 16
# What a window costs apart from the copies, some 0.3 ms, is a fifth of the time of 32 MiB at 25 GB/s.
_WINDOW_BYTES = 32 << 20
_LEAST_WINDOW_BYTES = 2 << 20
_LEAST_WINDOWS = 4  # so that copies and work overlap
_WINDOWED_BYTES = 8 << 20  # as for the ring of a transfer: smaller arrays take one call
_STAGINGS = 2
_RESULTS = 3  # one that the caller has, one that it takes next, one that threads copy to
_END = object()  # unlike None, which may be a (wrong) chunk


def stream(primitive: Primitive, chunks: Iterable[Any], *, overlap: bool = True, initial: Any = None) -> Any:
    """Run a primitive over data that arrives in chunks, of any number and total size.

    The result is that of one call on all chunks together. While the GPU works on a chunk, the next one is taken and
    copied.

    Parameters
    ----------
    primitive : Reduce, Scan, or an elementwise primitive: VectorAdd, Map, Copy
        Its bound arguments stay bound.
    chunks : iterable
        Numpy arrays, shape (n,) of any n; of several inputs tuples, or dicts by their names.
    overlap : bool, default True
        False finishes each chunk before it takes the next one, for comparison.
    initial : numpy array or Array of one item, optional
        What a `Scan` with ``initial=True`` puts in front, in the datatype of the results.

    Returns
    -------
    numpy scalar, or iterator of numpy.ndarray
        A scalar for Reduce. Otherwise the result of each chunk, in order.

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
    if not isinstance(primitive, tuple(_JOBS)):
        from .primitives import REGISTRY  # here, since it loads all

        known = ", ".join(cls.__name__ for cls in REGISTRY.values() if issubclass(cls, tuple(_JOBS)))
        raise ArgumentError(f"{primitive.name} cannot be streamed; these can: {known}")
    whole = cast(Any, chunks)
    if isinstance(chunks, (Array, np.ndarray)) and whole.ndim < 2:  # whose items are no chunks
        raise DatatypeError(
            f"chunks is one array, {type(whole).__name__} of shape {whole.shape}, but must be several, such as a "
            f"list of numpy arrays; give np.array_split(x, 10), or call {primitive.name} on the whole"
        )
    job = _job_of(primitive, initial)
    results = _pipeline(job, whole, overlap)
    return job.total(results) if isinstance(job, _ReduceJob) else results


def takes_windows(primitive: Primitive, arrays: Sequence[np.ndarray], out: np.ndarray | None) -> bool:
    """Whether `in_windows` gives what one call on the whole arrays gives, and is worth its steps.

    Where a caller asked for a fixed order of additions, windows would change it. The results of the first windows are
    written before the last windows are read, so `out` must not lie across an input.
    """
    if not isinstance(primitive, tuple(_JOBS)) or sum(items.nbytes for items in arrays) < _WINDOWED_BYTES:
        return False
    if isinstance(primitive, (Reduce, Scan)) and primitive.fixes_order:
        return False
    if out is None or isinstance(primitive, Reduce):
        return True
    written = primitive.signature.datatype("output")
    same = written is not None and written.dtype == out.dtype
    return same and out.flags.c_contiguous and all(_is_apart(items, out) for items in arrays)


def _is_apart(items: np.ndarray, out: np.ndarray) -> bool:
    """Whether an array shares no memory with another, or is exactly the same view."""
    if not np.may_share_memory(items, out):
        return True
    first, second = items.__array_interface__["data"][0], out.__array_interface__["data"][0]
    return (first, items.strides, items.itemsize) == (second, out.strides, out.itemsize)


def in_windows(
    primitive: Primitive, arrays: Sequence[np.ndarray], out: np.ndarray | None, *, initial: Any = None
) -> Any:
    """Run a primitive over the windows of numpy arrays: upload, work and download of different windows overlap.

    Parameters
    ----------
    primitive : Reduce, Scan, or an elementwise primitive
    arrays : sequence of numpy.ndarray
        One per input, checked: of one length, in the datatype of the primitive's items, in any layout and byte order.
    out : numpy.ndarray or None
        Where to put the items of the result: shape (n,), contiguous. Not for Reduce.
    initial : numpy.ndarray or Array, optional
        Of a `Scan` that takes one; see `stream`.

    Returns
    -------
    numpy scalar or numpy.ndarray
        A scalar for Reduce, else `out` or a new array.
    """
    job, n = _job_of(primitive, initial), arrays[0].size
    item_bytes = max(len(arrays) * job.datatype.itemsize_bytes, job.result_datatype.itemsize_bytes)
    window_bytes = min(_WINDOW_BYTES, max(_LEAST_WINDOW_BYTES, n * item_bytes // _LEAST_WINDOWS))
    # Windows begin at whole vec4s, as the kernels read them.
    window = max(4, window_bytes // item_bytes // 4 * 4)
    chunks = (tuple(items[first : first + window] for items in arrays) for first in range(0, n, window))
    if isinstance(job, _ReduceJob):
        return job.total(_pipeline(job, chunks, overlap=True))
    is_fresh = out is None
    out = np.empty(n, job.returned.dtype) if out is None else out
    for _ in _pipeline(job, chunks, overlap=True, out=out, out_is_fresh=is_fresh):
        pass
    return out


def _whole_words(size_bytes: int) -> int:
    """Return the bytes of all words that so many bytes touch, as which buffers are copied."""
    return -(-size_bytes // 4) * 4


def _job_of(primitive: Primitive, initial: Any = None) -> _Job:
    if isinstance(primitive, Scan):
        return _ScanJob(primitive, initial)
    if initial is not None:
        raise ArgumentError(f"initial= is for a stream of a Scan, not of {primitive.name}; leave it out")
    return next(job for kind, job in _JOBS.items() if isinstance(primitive, kind))(primitive)


class _Job(ABC):
    """The work on a chunk on the GPU.

    Chunks are of the datatype `given`, and converted to `datatype` on the way to the GPU. There results are of
    `result_datatype`, and converted to `returned` on the way back.
    """

    most_lead = 0  # items for which there is room in front of the chunk's items in the inputs
    returns_items = True

    def __init__(
        self,
        primitive: Primitive,
        names: Sequence[str],
        given: Datatype,
        *,
        datatype: Datatype | None = None,
        result_datatype: Datatype | None = None,
        returned: Datatype | None = None,
    ):
        self.primitive = primitive
        self.device = primitive.device
        self.names = tuple(names)
        self.given = given
        self.datatype = given if datatype is None else datatype
        self.result_datatype = self.datatype if result_datatype is None else result_datatype
        self.returned = self.result_datatype if returned is None else returned
        self.capacity = 0
        self.inputs: dict[str, Array] = {}
        self.output: Array | None = None

    @property
    def lead(self) -> int:
        """The number of items in front of the items of the next chunk."""
        return self.most_lead

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
            if items is None or items.dtype.newbyteorder("=") != self.given.dtype or items.ndim != 1:
                found = type(array).__name__ if items is None else f"{items.dtype} of shape {items.shape}"
                raise DatatypeError(
                    f"a chunk's {name} is {found}, but must be a numpy array of {self.given.dtype} with one "
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
            self.inputs = {name: empty(n + self.most_lead, self.datatype, self.device) for name in self.names}
            self.output = self.make_output(n)

    def make_output(self, n: int) -> Array:
        """Return room for the result of a chunk."""
        return empty(n + self.most_lead, self.result_datatype, self.device)

    def narrowed(self, arrays: Sequence[np.ndarray]) -> Sequence[np.ndarray]:
        """Return a chunk's arrays as they are copied: of integers that results cannot hold, what these make of them."""
        if self.returned.itemsize_bytes >= 4 or np.can_cast(self.given.dtype, self.returned.dtype):
            return arrays
        return arrays if self.given.dtype.kind == "f" else [array.astype(self.returned.dtype) for array in arrays]

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

    most_lead = 1

    def __init__(self, primitive: Scan, initial: Any = None):
        # The carry is one of the items, and copied by whole words, so all of them are what is computed with.
        returned = primitive.result_datatype
        computed = returned.computed
        if primitive.datatype == returned == computed:
            scan = primitive.inclusive
        else:
            scan = primitive.inclusive_of(computed, computed)
        super().__init__(scan, ["input"], primitive.datatype, datatype=computed, returned=returned)
        self._exclusive = primitive.kind == "exclusive"
        identity = np.array([primitive.op.identity_for(returned)], dtype=returned.dtype)
        first = _initial_of(primitive, initial)
        self._carry = asarray((identity if first is None else first).astype(computed.dtype), self.device)
        # A value to start from is what comes of earlier chunks.
        self._begun = first is not None

    @property
    def lead(self) -> int:
        # Nothing precedes the first chunk: an identity would turn −0 into +0.
        return 1 if self._begun else 0

    def record(self, encoder: wgpu.GPUCommandEncoder, n: int) -> Array:
        assert self.output is not None
        items, output, size = self.inputs["input"], self.output, self.datatype.itemsize_bytes
        # The item of the output that is the carry so far, and the one behind it, with which an exclusive scan begins.
        before = 0 if self._begun else -1
        if self._begun:
            encoder.copy_buffer_to_buffer(self._carry.lease.buffer, 0, items.lease.buffer, 0, size)
        elif self._exclusive:
            before = 0
            encoder.copy_buffer_to_buffer(self._carry.lease.buffer, 0, output.lease.buffer, 0, size)
        first = 0 if self._begun else before + 1
        length = n + self.lead
        self.primitive.bind(input=items[:length], output=output[first : first + length]).record(encoder)
        encoder.copy_buffer_to_buffer(output.lease.buffer, (before + n) * size, self._carry.lease.buffer, 0, size)
        self._begun = True
        return output[:n] if self._exclusive else output[before + 1 : before + 1 + n]


def _initial_of(scan: Scan, initial: Any) -> np.ndarray | None:
    """Return what a streamed scan starts from: one item of its results; None if it takes none."""
    returned = scan.result_datatype
    if not scan.takes_initial:
        if initial is not None:
            raise ArgumentError("initial= is for a Scan that takes it; make it with gw.Scan(…, initial=True)")
        return None
    if not isinstance(initial, (Array, np.ndarray)) or initial.size != 1 or initial.dtype != returned.dtype:
        raise ArgumentError(
            f"this Scan takes a value to start from: give the stream initial=, one item of {returned}, for example "
            f"np.array([value], dtype=np.{returned.numpy_name}), not {initial!r:.60}"
        )
    return (initial.to_numpy() if isinstance(initial, Array) else initial).reshape(1)


class _ReduceJob(_Job):
    """A partial result per chunk. When there are too many, they are combined into one, which becomes the first."""

    returns_items = False

    def __init__(self, primitive: Reduce):
        # Partial results are copied by whole words.
        items, returned = primitive.datatype, primitive.result_datatype
        computed = returned.computed
        reduce = primitive.with_datatypes(items, computed)
        super().__init__(reduce, ["input"], items, result_datatype=computed, returned=returned)
        self._combined = reduce.with_datatypes(computed, computed)
        self._partials = empty(_PARTIALS, computed, self.device)
        self._one = empty(1, computed, self.device)
        self._count = 0

    def make_output(self, n: int) -> Array:
        return self._one

    def _combine(self, encoder: wgpu.GPUCommandEncoder) -> None:
        self._combined.bind(input=self._partials[: self._count], output=self._one).record(encoder)
        self._keep(encoder, 0)

    def _keep(self, encoder: wgpu.GPUCommandEncoder, place: int) -> None:
        size = self.result_datatype.itemsize_bytes
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
            partials = self._combined.bind(input=partials, output=self._one).execute().output
        with np.errstate(over="ignore"):
            return partials.to_numpy().astype(self.returned.dtype)[0]


_JOBS: dict[type, type] = {Reduce: _ReduceJob, Scan: _ScanJob, Elementwise: _ElementwiseJob}


class _Staging:
    """Host memory that the GPU copies from and to, for one chunk."""

    def __init__(self, device: wgpu.GPUDevice):
        self._transfers = context_of(device).transfers
        self.upload: wgpu.GPUBuffer | None = None
        self.download: wgpu.GPUBuffer | None = None
        self.offsets: list[int] = []
        self.items = 0

    def fill(self, device: wgpu.GPUDevice, job: _Job, arrays: Sequence[np.ndarray]) -> None:
        """Copy a chunk into the mapped buffer."""
        arrays = job.narrowed(arrays)
        stride = -(-arrays[0].size * job.datatype.itemsize_bytes // _ALIGNMENT_BYTES) * _ALIGNMENT_BYTES
        size = max(_ALIGNMENT_BYTES, stride * len(arrays))
        if self.upload is None or self.upload.size < size:
            if self.upload is not None:
                self.upload.destroy()
            self.upload = device.create_buffer(
                label="gridwise stream up", size=size, usage=_USAGE.MAP_WRITE | _USAGE.COPY_SRC, mapped_at_creation=True
            )
        down = _whole_words(job.result_datatype.itemsize_bytes * arrays[0].size) if job.returns_items else 0
        if down and (self.download is None or self.download.size < down):
            if self.download is not None:
                self.download.destroy()
            self.download = device.create_buffer(
                label="gridwise stream down", size=down, usage=_USAGE.MAP_READ | _USAGE.COPY_DST
            )
        self.offsets = [stride * i for i in range(len(arrays))]
        self.items = arrays[0].size
        for offset, array in zip(self.offsets, arrays, strict=True):
            if array.size:
                self._transfers.fill(device, self.upload, offset, array, job.datatype.dtype)
        self.upload.unmap()

    def map(self, device: wgpu.GPUDevice, job: _Job) -> None:
        """Map both buffers for the host; the queue is idle."""
        assert self.upload is not None
        map_buffer(device, self.upload, "WRITE")
        if job.returns_items and self.items:
            assert self.download is not None
            map_buffer(device, self.download, "READ")

    def read(self, device: wgpu.GPUDevice, out: np.ndarray, *, is_fresh: bool) -> None:
        """Copy the result out of the mapped buffer."""
        if out.size:
            assert self.download is not None
            self._transfers.empty(device, self.download, out, is_fresh=is_fresh)
            self.download.unmap()

    @property
    def nbytes(self) -> int:
        """Bytes of both buffers."""
        return sum(buffer.size for buffer in (self.upload, self.download) if buffer is not None)

    def destroy(self) -> None:
        for buffer in (self.upload, self.download):
            if buffer is not None:
                buffer.destroy()


class _KeptStagings:
    """The stagings of a device between streams: fresh ones cost more than a copy, as for `Transfers`.

    A staging is put back only by a stream that went well. Of any other, a buffer may be mapped at any time.
    """

    def __init__(self) -> None:
        self._kept: deque[_Staging] = deque()

    def take(self, device: wgpu.GPUDevice) -> _Staging:
        """Return a staging that nobody else has."""
        try:
            return self._kept.pop()
        except IndexError:
            return _Staging(device)

    def put_back(self, staging: _Staging) -> None:
        """Keep a staging whose upload buffer is mapped, for the next stream."""
        # Those of one stream, of windows at most.
        if staging.upload is None or len(self._kept) >= _STAGINGS or staging.nbytes > 3 * _WINDOW_BYTES:
            staging.destroy()
        else:
            self._kept.append(staging)


class _KeptResults:
    """Memory of results that nobody has any more: fresh memory costs more than a copy, for its pages."""

    def __init__(self) -> None:
        #: The garbage collector puts it here, between any two steps of any thread.
        self._free: deque[mmap.mmap] = deque(maxlen=_RESULTS)

    def empty(self, count: int, dtype: np.dtype) -> tuple[np.ndarray, bool]:
        """Return an array with any contents, and whether its memory was never touched."""
        size_bytes = count * dtype.itemsize
        if not _WINDOWED_BYTES <= size_bytes <= _WINDOW_BYTES:
            return np.empty(count, dtype), True
        try:
            memory, is_fresh = self._free.popleft(), False
        except IndexError:
            memory, is_fresh = mmap.mmap(-1, size_bytes), True
        if len(memory) < size_bytes:
            memory, is_fresh = mmap.mmap(-1, size_bytes), True
        # The array that all views of the result refer to.
        whole = np.frombuffer(memory, np.uint8, size_bytes)
        weakref.finalize(whole, self._free.append, memory).atexit = False
        return whole.view(dtype), is_fresh


def _fill(job: _Job, staging: _Staging, source: Iterator[Any]) -> bool:
    """Copy the next chunk into a mapped buffer; return whether there was one."""
    chunk = next(source, _END)
    if chunk is _END:
        return False
    arrays, device = job.check(chunk), job.device
    with step(context_of(device).observer, "copy to staging"), device_errors(f"stream of {job.primitive.name}", device):
        staging.fill(device, job, arrays)
    return True


def _wait(job: _Job, staging: _Staging) -> None:
    with step(context_of(job.device).observer, "wait"):
        wait_idle(job.device)
        staging.map(job.device, job)


def _pipeline(
    job: _Job, chunks: Iterable[Any], overlap: bool, out: np.ndarray | None = None, *, out_is_fresh: bool = False
) -> Iterator[np.ndarray]:
    """Run a job over chunks; yield each result when it is complete, put into `out` one behind the other if given."""
    device = job.device
    check_not_lost(device, f"stream of {job.primitive.name}")
    context = context_of(device)
    kept = context.cached("stagings of streams", _KeptStagings)
    stagings = [kept.take(device) for _ in range(_STAGINGS)]
    results = context.cached("results of streams", _KeptResults)
    source = iter(chunks)
    placed = 0

    def read(staging: _Staging) -> np.ndarray:
        nonlocal placed
        count = staging.items if job.returns_items else 0
        converts = job.result_datatype != job.returned
        if out is not None:
            result, is_fresh = out[placed : placed + count], out_is_fresh
        else:
            result, is_fresh = results.empty(count, job.returned.dtype)
        placed += count
        read_into = np.empty(count, dtype=job.result_datatype.dtype) if converts else result
        with step(context.observer, "copy from staging"), device_errors(f"stream of {job.primitive.name}", device):
            staging.read(device, read_into, is_fresh=converts or is_fresh)
        if converts:
            with np.errstate(over="ignore"):
                np.copyto(result, read_into, casting="unsafe")
        return result

    went_well = False
    try:
        number, done, failed = 0, None, None
        more = _fill(job, stagings[0], source)
        while more:
            current, other = stagings[number % 2], stagings[1 - number % 2]
            job.reserve(current.items)
            _submit(job, current)
            if overlap:
                # The GPU works meanwhile. Copy out the previous result first, because its staging is filled next.
                if done is not None:
                    yield read(done)
                try:
                    more = _fill(job, other, source)
                except Exception as error:  # raised after the result of the current chunk was yielded
                    more, failed = False, error
                _wait(job, current)
            else:
                _wait(job, current)
                yield read(current)
                more = _fill(job, other, source)
            done, number = current, number + 1
        if overlap and done is not None:
            yield read(done)
        if failed is not None:
            raise failed
        went_well = True
    finally:
        # Nothing waits here after an interrupt. What the GPU still uses, wgpu keeps.
        job.finish()
        if went_well:
            for staging in stagings:
                kept.put_back(staging)


def _submit(job: _Job, staging: _Staging) -> None:
    """Record upload, work and download of a chunk, and submit."""
    n, size = staging.items, job.datatype.itemsize_bytes
    up_bytes, down_bytes = _whole_words(n * size), _whole_words(n * job.result_datatype.itemsize_bytes)
    if not n:
        return
    observer = context_of(job.device).observer
    assert staging.upload is not None
    doing = f"stream of {job.primitive.name}"
    with device_errors(doing, job.device):
        with step(observer, "encode"):
            encoder = job.device.create_command_encoder(label="gridwise stream")
            with step(observer, "copy to GPU", encoder, up_bytes * len(job.names)):
                for offset, array in zip(staging.offsets, job.inputs.values(), strict=True):
                    encoder.copy_buffer_to_buffer(staging.upload, offset, array.lease.buffer, job.lead * size, up_bytes)
            result = job.record(encoder, n)
            if job.returns_items:
                assert staging.download is not None
                with step(observer, "copy to host", encoder, down_bytes):
                    encoder.copy_buffer_to_buffer(
                        result.lease.buffer, result.offset_bytes, staging.download, 0, down_bytes
                    )
            commands = encoder.finish()
        with step(observer, "submit"):
            submit(job.device, [commands], doing)
