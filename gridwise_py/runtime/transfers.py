"""Transfers between numpy arrays and the memory of the GPU, through staging buffers that are kept.

A large transfer takes a ring of staging buffers. Threads copy between the numpy array and one mapped buffer, while the
GPU copies between others and its own memory. The buffers are kept because fresh ones cost more than the copy: page
faults, and the zeros that wgpu writes. Several threads, because one does not reach the speed of the memory, and because
page faults of a fresh result are shared among them; numpy releases the GIL while it copies.

A small transfer takes one staging buffer, or none: what threads and mapping cost is more than what they gain.

Where CPU and GPU share memory, and the device lets the blocks of `memory` be mapped, no staging buffer is needed: the
range itself is mapped for the time of the copy.
"""

from __future__ import annotations

import contextlib
import os
import queue
import sys
import threading
from collections import deque
from typing import Protocol

import numpy as np
import wgpu

from ..backend.device_errors import check_not_lost, lost_error
from ..backend.device_state import DeviceEnd, state_of
from ..backend.mapped_memory import MAP_ALIGNMENT_BYTES, Mapping, flush
from ..backend.pages import advise_pages
from ..backend.queues import map_buffer, memory_of_mapped, submit, wait_idle
from ..errors import GridwiseError
from ..settings import copy_threads
from .memory import MemoryPool
from .observer import Observer, step

#: Transfers of at least so many bytes take the ring. Below, memory that wgpu has already costs less than the steps: at
#: 8 MiB they still cost 2 ms more on lavapipe (2 busy cores), at 16 MiB the ring is as fast or twice as fast, at 64 MiB
#: up to 5 times. On an H200, by the costs of each step, the lines cross at some 2 MiB.
RING_BYTES = 8 << 20

_SLOTS = 4  # two that threads copy, two with the GPU
_CHUNK_BYTES = 16 << 20  # what a slot costs apart from the copy is a tenth of it; larger ones leave the CPU's caches
_LEAST_CHUNK_BYTES = 1 << 20
_LEAST_STAGING_BYTES = 1 << 16
_KEPT_SMALL = 4  # staging buffers for small downloads; as many threads read at once without making one
_THREADS = 8  # more were not faster on 16 cores
# Of a chunk, one for each thread. Two chunks at once keep 8 threads busy, and more pieces would ask for the GIL often.
_PIECES = 4
_PIECE_BYTES = 1 << 20  # a smaller piece is not worth a thread
_INLINE_BYTES = _PIECE_BYTES  # one piece only: a thread would do no more than this one
#: Uploads of at least so many bytes into a block that can be mapped are copied straight there. Smaller ones are left to
#: the queue, which does not wait for the GPU.
MAPPED_UP_BYTES = 64 << 10
# What is mapped at once. Submissions of other threads wait for it; to map, and to wake threads, costs a twentieth.
_MAPPED_BYTES = 32 << 20
_MADV_POPULATE_WRITE = 23  # Linux 5.14

_DOING, _MAPPING = "copying through a staging buffer", "copying to or from mapped memory"  # in messages

_UP = wgpu.BufferUsage.MAP_WRITE | wgpu.BufferUsage.COPY_SRC
_DOWN = wgpu.BufferUsage.MAP_READ | wgpu.BufferUsage.COPY_DST


def _power_of_two(size_bytes: int, least: int) -> int:
    return max(least, 1 << max(0, size_bytes - 1).bit_length())


def _chunk_bytes(total_bytes: int) -> int:
    """Return how much one staging buffer takes: a share of the transfer, so that its steps overlap."""
    if total_bytes < RING_BYTES:
        return _power_of_two(total_bytes, _LEAST_STAGING_BYTES)
    return min(_CHUNK_BYTES, _power_of_two(-(-total_bytes // _SLOTS), _LEAST_CHUNK_BYTES))


def usable_cpus() -> int:
    """Return how many CPUs this process may use."""
    if hasattr(os, "sched_getaffinity"):  # a container may have fewer than the machine
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def copying_threads() -> int:
    """Return how many threads copy at once: as many as the user says, else one for each CPU, at most 8."""
    return copy_threads() or max(1, min(_THREADS, usable_cpus()))


def _find_pages(target: np.ndarray) -> None:
    """Have the system find the pages of fresh memory all at once: less than a page fault for each.

    The content stays as it is. Where the system does not know the request, the faults come with the copy.
    """
    advise_pages(target.__array_interface__["data"][0], target.nbytes, _MADV_POPULATE_WRITE)


class _Piece:
    """A copy by a thread. It holds the staging buffer, so that the memory lives as long as the copy, whoever is
    interrupted meanwhile.
    """

    __slots__ = ("_end", "_error", "_is_fresh", "_latch", "_source", "_staging", "_target", "wanted")

    def __init__(
        self, end: DeviceEnd, staging: wgpu.GPUBuffer, target: np.ndarray, source: np.ndarray, *, is_fresh: bool
    ):
        self._end, self._staging, self._target, self._source = end, staging, target, source
        self._is_fresh = is_fresh  # the target's memory was never touched
        self._error: BaseException | None = None
        self.wanted: bool = True
        self._latch = threading.Lock()
        self._latch.acquire()

    def run(self) -> None:
        """Copy, once."""
        try:
            with self._end.memory_in_use() as is_there:
                if not is_there:
                    raise lost_error("destroyed", _DOING)
                if self.wanted:
                    if self._is_fresh:
                        _find_pages(self._target)
                    np.copyto(self._target, self._source, casting="unsafe")  # a stream may convert on the way
        except BaseException as error:
            self._error = error
        finally:
            self._latch.release()

    def wait(self) -> None:
        """Return when it has run."""
        with self._latch:
            pass

    def result(self) -> None:
        """Wait, and raise what it raised."""
        self.wait()
        if self._error is not None:
            raise self._error


class _HandedOut(Exception):
    """A caller got the buffer in the middle of a transfer; the library does not map it any more."""


class _MappedChunk:
    """A range of a block that is mapped while threads copy its pieces; whoever ends the last piece unmaps it.

    It is mapped and unmapped by the threads of `_Workers` alone, which no interrupt reaches. A thread that takes it up
    copies all pieces that are left, so that it ends although an interrupt kept it from the other threads.
    """

    def __init__(
        self,
        transfers: Transfers,
        device: wgpu.GPUDevice,
        buffer: wgpu.GPUBuffer,
        mapping: Mapping,
        lead_bytes: int,
        items: np.ndarray,
        piece_items: int,
        *,
        reads: bool,
    ):
        self._transfers, self._device, self._mapping, self.buffer = transfers, device, mapping, buffer
        self._lead_bytes, self._items, self._reads = lead_bytes, items, reads
        starts = range(0, items.size, piece_items)
        self._pieces = deque(slice(first, first + piece_items) for first in starts)
        self._left = len(starts)
        self._lock = threading.Lock()  # of what follows
        self._memory: np.ndarray | None = None
        self._error: BaseException | None = None
        self._wanted = True
        self._latch = threading.Lock()
        self._latch.acquire()

    def run(self) -> None:
        """Copy what no other thread does; any number of threads may call it."""
        while True:
            try:
                piece = self._pieces.popleft()
            except IndexError:
                return
            try:
                self._copy(piece)
            except BaseException as error:
                self._error = error
            finally:
                self._end_piece()

    def _copy(self, piece: slice) -> None:
        memory = self._opened()
        if memory is None:
            return
        items = self._items[piece]
        begin = self._lead_bytes + piece.start * items.itemsize
        mapped = memory[begin : begin + items.nbytes].view(items.dtype.newbyteorder("="))
        # Pages of fresh memory are not asked for: the copy of a piece is faster while the zeros of a page are in the
        # CPU's cache still. 256 MiB take 23 to 38 ms so, and 40 to 75 ms with `_find_pages` (2 CPUs).
        target, source = (items, mapped) if self._reads else (mapped, items)
        np.copyto(target, source, casting="equiv")

    def _opened(self) -> np.ndarray | None:
        """Return the mapped memory; None where nothing is to be copied any more."""
        with self._lock:
            if not self._wanted or self._error is not None:
                return None
            if self._memory is None:
                try:
                    self._memory = self._open()
                except BaseException as error:
                    self._error = error
                    raise
            return self._memory

    def _open(self) -> np.ndarray:
        device, end = self._device, state_of(self._device).end
        with end.lock:
            if not self._transfers.may_map_now(device, self.buffer):
                raise _HandedOut
            end.mapped.append(self)
        try:
            return self._mapping.map(lambda: self._wanted)
        except BaseException:
            end.mapped.remove(self)
            raise

    def _end_piece(self) -> None:
        with self._lock:
            self._left -= 1
            if self._left:
                return
            try:
                if self._memory is not None:
                    self._memory = None
                    self._mapping.unmap()
                    state_of(self._device).end.mapped.remove(self)
            except BaseException as error:
                self._error = error
            finally:
                self._latch.release()

    def wait(self) -> None:
        """Return when it is unmapped.

        Raises
        ------
        GridwiseError
            In a thread that copies, which would wait for itself: the garbage collector has run a finalizer there.
        """
        if _this_thread.copies:
            raise GridwiseError("a finalizer cannot use the GPU from a thread that copies to its memory")
        self.wait_to_end()

    def wait_to_end(self) -> None:
        """As `wait`, in any thread."""
        with self._latch:
            pass

    def cancel(self) -> None:
        """Copy no more; return when it is unmapped."""
        self._wanted = False
        self.run()
        self.wait_to_end()

    def result(self) -> None:
        """Wait, and raise what was raised."""
        self.wait_to_end()
        if self._error is not None:
            raise self._error


def _wait_for_others(end: DeviceEnd, buffer: wgpu.GPUBuffer) -> None:
    """Return when no other thread has the buffer mapped; the lock is held, so that none maps it from now on."""
    for one in tuple(end.mapped):
        if isinstance(one, _MappedChunk) and one.buffer is buffer:
            one.wait_to_end()


class _ThisThread(threading.local):
    copies: bool = False


_this_thread = _ThisThread()


class _Runs(Protocol):
    def run(self) -> None: ...


class _Workers:
    """Threads that copy pieces, for the whole process.

    Not a ThreadPoolExecutor: an interrupt that arrives in its semaphore leaves a lock held, and every later call hangs.
    What is used here is written in C, and is interrupted before or after.
    """

    def __init__(self, count: int):
        self._count = count
        self._lock = threading.Lock()
        self._threads: list[threading.Thread] = []
        self._queue: queue.SimpleQueue[_Runs] = queue.SimpleQueue()

    def put(self, piece: _Runs) -> None:
        """Have a piece copied by the next thread that is free; by this one where there are no threads."""
        if len(self._threads) < self._count:
            self._start()
        if not self._threads or sys.is_finalizing():  # then daemons have ended
            piece.run()
        else:
            self._queue.put(piece)

    def put_chunk(self, chunk: _MappedChunk, count: int) -> bool:
        """Have up to `count` threads copy a chunk; return False where there are no threads."""
        if len(self._threads) < self._count:
            self._start()
        if not self._threads or sys.is_finalizing():
            return False
        for _ in range(min(count, len(self._threads))):
            self._queue.put(chunk)
        return True

    def _start(self) -> None:
        with self._lock, contextlib.suppress(RuntimeError):  # the system has no thread left, or the process ends
            while len(self._threads) < self._count:
                thread = threading.Thread(target=self._work, name="gridwise copy", daemon=True)
                thread.start()
                self._threads.append(thread)

    def _work(self) -> None:
        _this_thread.copies = True
        while True:
            self._queue.get().run()


_of_process: dict[int, _Workers] = {}


def copy_workers(count: int) -> _Workers:
    """Return the threads of the process, as many as asked for."""
    found = _of_process.get(count)
    # Not an lru_cache, which calls twice if two threads ask first: each set would then start as many threads.
    return found if found is not None else _of_process.setdefault(count, _Workers(count))


def _copy_here(device: wgpu.GPUDevice, target: np.ndarray, source: np.ndarray) -> None:
    with state_of(device).end.lock:  # nobody destroys the device, and with it the memory, in the middle
        check_not_lost(device, _DOING)
        np.copyto(target, source, casting="unsafe")


class _Copies:
    """Copies by threads; when the context is left, none of them is under way."""

    def __init__(self, device: wgpu.GPUDevice, threads: int):
        self._device, self._threads = device, threads
        self._started: list[_Piece] = []

    def __enter__(self) -> _Copies:
        return self

    def __exit__(self, *_exception: object) -> None:
        for piece in self._started:
            piece.wanted = False
        for piece in self._started:
            piece.wait()

    def start(
        self, staging: wgpu.GPUBuffer, target: np.ndarray, source: np.ndarray, *, is_fresh: bool = False
    ) -> list[_Piece]:
        """Begin to copy `source` to `target`, one of which is memory of `staging`."""
        if source.nbytes <= _INLINE_BYTES:
            _copy_here(self._device, target, source)
            return []
        end, workers = state_of(self._device).end, copy_workers(self._threads)
        share = max(_PIECE_BYTES // source.itemsize, -(-source.size // min(_PIECES, self._threads)))
        pieces: list[_Piece] = []
        for first in range(0, source.size, share):
            last = first + share
            piece = _Piece(end, staging, target[first:last], source[first:last], is_fresh=is_fresh)
            workers.put(piece)
            self._started.append(piece)
            pieces.append(piece)
        return pieces

    def fill(
        self, staging: wgpu.GPUBuffer, offset_bytes: int, items: np.ndarray, dtype: np.dtype | None = None
    ) -> list[_Piece]:
        """Begin to copy items into a buffer that is mapped for writing, converted to a dtype if one is given."""
        dtype = items.dtype.newbyteorder("=") if dtype is None else dtype
        end_bytes = offset_bytes + items.size * dtype.itemsize
        memory = memory_of_mapped(staging, -(-end_bytes // 4) * 4)
        if memory is not None:
            target = memory[offset_bytes:end_bytes].view(dtype)
            return self.start(staging, target, items)
        with state_of(self._device).end.lock:
            check_not_lost(self._device, _DOING)
            staging.write_mapped(as_bytes(items.astype(dtype, copy=False)), offset_bytes)
        return []


class _Ring:
    """Staging buffers of one direction, for the one transfer that holds the lock."""

    def __init__(self, label: str, usage: int):
        self._label, self._usage = label, usage
        self.lock: threading.RLock = threading.RLock()
        self._kept: list[wgpu.GPUBuffer] = []

    def take(self, chunk_bytes: int) -> list[wgpu.GPUBuffer]:
        """Return the buffers that are large enough; `put_back` is for after a transfer that went well.

        After any other, one may be mapped, or be so at any time: to copy into it then would end the process.
        """
        kept, self._kept = self._kept, []
        return [buffer for buffer in kept if buffer.size >= chunk_bytes]

    def slot(
        self, device: wgpu.GPUDevice, taken: list[wgpu.GPUBuffer], chunk_bytes: int, number: int
    ) -> wgpu.GPUBuffer:
        """Return the buffer of a chunk, by its number; a buffer that is missing is made."""
        while number % _SLOTS >= len(taken):
            taken.append(device.create_buffer(label=self._label, size=chunk_bytes, usage=self._usage))
        return taken[number % _SLOTS]

    def put_back(self, taken: list[wgpu.GPUBuffer]) -> None:
        """Keep the buffers for the next transfer."""
        self._kept = taken


class Transfers:
    """What moves items between numpy arrays and the buffers of one device.

    Attributes
    ----------
    threads : int
        How many threads copy at once; by default as many as there are CPUs, at most 8.
    """

    def __init__(self, memory: MemoryPool) -> None:
        self.threads: int = copying_threads()
        self._memory = memory
        # Whether the queue may hold back what it was given to write into blocks; of the lock of submissions.
        self._has_queued = False
        self._up = _Ring("gridwise staging up", _UP)
        self._down = _Ring("gridwise staging down", _DOWN)
        self._small: deque[wgpu.GPUBuffer] = deque(maxlen=_KEPT_SMALL)

    def upload(
        self,
        device: wgpu.GPUDevice,
        buffer: wgpu.GPUBuffer,
        offset_bytes: int,
        items: np.ndarray,
        observer: Observer | None = None,
    ) -> None:
        """Copy items into a buffer, in the order of the queue; `items` may change as soon as this returns.

        Parameters
        ----------
        device : wgpu.GPUDevice
        buffer : wgpu.GPUBuffer
        offset_bytes : int
            A multiple of 4.
        items : numpy.ndarray
            One dimension, any stride and byte order, a multiple of 4 bytes.
        observer : Observer, optional
            Sees each step by itself: the steps do not overlap then.
        """
        state_of(device).uses += 1
        if items.nbytes >= MAPPED_UP_BYTES and self._memory.may_map(buffer):
            copied = self._copy_mapped(device, buffer, offset_bytes, items, observer, reads=False)
            items, offset_bytes = items[copied:], offset_bytes + copied * items.itemsize
        if not items.size:
            return
        if observer is None and items.nbytes < RING_BYTES:
            self._write(device, buffer, offset_bytes, as_bytes(items))
            return
        chunk_bytes = _chunk_bytes(items.nbytes)
        share = chunk_bytes // items.itemsize
        filling: deque[tuple[wgpu.GPUBuffer, list[_Piece], int, int]] = deque()

        def send() -> None:
            staging, copies, offset, size = filling.popleft()
            with step(observer, "copy to staging"):
                for copy in copies:
                    copy.result()
            staging.unmap()
            encoder = device.create_command_encoder(label="gridwise upload")
            with step(observer, "copy to GPU", encoder, size):
                encoder.copy_buffer_to_buffer(staging, 0, buffer, offset, size)
            with step(observer, "submit"):
                submit(device, [encoder.finish()], "upload", is_transfer=True)

        with self._up.lock, _Copies(device, self.threads) as copies:
            taken = self._up.take(chunk_bytes)
            for number, first in enumerate(range(0, items.size, share)):
                part, staging = items[first : first + share], self._up.slot(device, taken, chunk_bytes, number)
                with step(observer, "wait"):
                    map_buffer(device, staging, "WRITE", 0, part.nbytes)
                started = copies.fill(staging, 0, part)
                filling.append((staging, started, offset_bytes + first * items.itemsize, part.nbytes))
                if observer is not None or len(filling) > 1:  # the threads are at work on the newest meanwhile
                    send()
            while filling:
                send()
            self._up.put_back(taken)

    def download(
        self,
        device: wgpu.GPUDevice,
        buffer: wgpu.GPUBuffer,
        offset_bytes: int,
        out: np.ndarray,
        observer: Observer | None = None,
        *,
        is_fresh: bool = False,
    ) -> None:
        """Copy from a buffer into a numpy array; waits for the work that was submitted before.

        Parameters
        ----------
        device : wgpu.GPUDevice
        buffer : wgpu.GPUBuffer
        offset_bytes : int
            Any; the GPU copies the words of 4 bytes around it.
        out : numpy.ndarray
            Contiguous and writeable.
        observer : Observer, optional
            As for `upload`.
        is_fresh : bool, default False
            The memory of `out` was never touched, so that the system has to find its pages.
        """
        target = out.view(np.uint8).reshape(-1)
        state_of(device).uses += 1
        if self._memory.may_map(buffer):
            copied = self._copy_mapped(device, buffer, offset_bytes, target, observer, reads=True)
            target, offset_bytes = target[copied:], offset_bytes + copied
        if not target.size:
            return
        begin, end = offset_bytes, offset_bytes + target.size
        first_word, last_word = begin // 4 * 4, -(-end // 4) * 4
        chunk_bytes = _chunk_bytes(last_word - first_word)
        starts = range(first_word, last_word, chunk_bytes)
        emptying: deque[tuple[int, wgpu.GPUBuffer, list[_Piece]]] = deque()

        def size_of(start: int) -> int:
            return min(chunk_bytes, last_word - start)

        def request(number: int, staging: wgpu.GPUBuffer) -> None:
            start = starts[number]
            encoder = device.create_command_encoder(label="gridwise read")
            with step(observer, "copy to host", encoder, size_of(start)):
                encoder.copy_buffer_to_buffer(buffer, start, staging, 0, size_of(start))
            with step(observer, "submit"):
                submit(device, [encoder.finish()], "read", is_transfer=True)

        def map_and_copy(number: int, staging: wgpu.GPUBuffer, copies: _Copies) -> None:
            start = starts[number]
            with step(observer, "wait"):
                map_buffer(device, staging, "READ", 0, size_of(start))
            memory = np.frombuffer(staging.read_mapped(0, size_of(start), copy=False), dtype=np.uint8)
            low, high = max(begin, start), min(end, start + size_of(start))
            with step(observer, "copy from staging"):
                part = target[low - begin : high - begin]
                started = copies.start(staging, part, memory[low - start : high - start], is_fresh=is_fresh)
                if observer is not None:
                    for piece in started:
                        piece.wait()
            emptying.append((number, staging, started))

        def release() -> None:
            number, staging, started = emptying.popleft()
            for copy in started:
                copy.result()
            staging.unmap()
            if number + _SLOTS < len(starts):
                request(number + _SLOTS, staging)

        if last_word - first_word < RING_BYTES:
            staging = self._take_small(device, chunk_bytes)
            request(0, staging)
            with _Copies(device, self.threads) as copies:
                map_and_copy(0, staging, copies)
                release()
            self._small.append(staging)
            return
        with self._down.lock, _Copies(device, self.threads) as copies:
            taken = self._down.take(chunk_bytes)
            for number in range(min(_SLOTS, len(starts))):
                request(number, self._down.slot(device, taken, chunk_bytes, number))
            for number in range(len(starts)):
                map_and_copy(number, taken[number % _SLOTS], copies)
                if len(emptying) > 1:  # the threads are at work on the newest meanwhile
                    release()
            while emptying:
                release()
            self._down.put_back(taken)

    def _copy_mapped(
        self,
        device: wgpu.GPUDevice,
        buffer: wgpu.GPUBuffer,
        offset_bytes: int,
        items: np.ndarray,
        observer: Observer | None,
        *,
        reads: bool,
    ) -> int:
        """Copy between a block and items of one dimension; return how many were copied, the others need staging."""
        if not items.size:
            return 0
        with step(observer, "wait"):
            wait_idle(device)
        with step(observer, "copy from GPU memory" if reads else "copy to GPU memory"):
            if items.nbytes <= _INLINE_BYTES:
                return self._copy_mapped_here(device, buffer, offset_bytes, items, reads)
            workers, share = copy_workers(self.threads), _MAPPED_BYTES // items.itemsize
            for first in range(0, items.size, share):
                part = items[first : first + share]
                lead_bytes, mapping = self._mapping(device, buffer, offset_bytes + first * items.itemsize, part, reads)
                piece = max(_PIECE_BYTES // part.itemsize, -(-part.size // (_PIECES * self.threads)))
                chunk = _MappedChunk(self, device, buffer, mapping, lead_bytes, part, piece, reads=reads)
                try:
                    if not workers.put_chunk(chunk, self.threads):
                        return first
                    chunk.result()
                except _HandedOut:
                    return first
                finally:
                    chunk.cancel()
        return items.size

    def _copy_mapped_here(
        self, device: wgpu.GPUDevice, buffer: wgpu.GPUBuffer, offset_bytes: int, items: np.ndarray, reads: bool
    ) -> int:
        """As `_copy_mapped`, by this thread."""
        with state_of(device).end.lock:
            if not self.may_map_now(device, buffer):
                return 0
            while True:
                wait_idle(device)  # for what others have submitted since: no interrupt ends a chain of C calls
                lead_bytes, mapping = self._mapping(device, buffer, offset_bytes, items, reads)
                if mapping.copy(lead_bytes, items):
                    return items.size

    def may_map_now(self, device: wgpu.GPUDevice, buffer: wgpu.GPUBuffer) -> bool:
        """Return whether a buffer is still a block that can be mapped, when nothing is before that any more.

        The lock of submissions is held.
        """
        check_not_lost(device, _MAPPING)
        if not self._memory.may_map(buffer):
            return False
        _wait_for_others(state_of(device).end, buffer)
        if self._has_queued:
            flush(device)
            self._has_queued = False
        return True

    def _write(self, device: wgpu.GPUDevice, buffer: wgpu.GPUBuffer, offset_bytes: int, items: np.ndarray) -> None:
        """Have the queue write bytes into a buffer."""
        check_not_lost(device, _DOING)  # of Dawn, which goes on as if it were not
        if not self._memory.may_map(buffer):
            device.queue.write_buffer(buffer, offset_bytes, items)
            return
        end = state_of(device).end
        with end.lock:
            _wait_for_others(end, buffer)
            self._has_queued = True
            device.queue.write_buffer(buffer, offset_bytes, items)

    def _mapping(
        self, device: wgpu.GPUDevice, buffer: wgpu.GPUBuffer, offset_bytes: int, items: np.ndarray, reads: bool
    ) -> tuple[int, Mapping]:
        """Return where items begin in a range that can be mapped, and what maps it."""
        lead_bytes = offset_bytes % MAP_ALIGNMENT_BYTES
        size_bytes = -(-(lead_bytes + items.nbytes) // 4) * 4
        return lead_bytes, Mapping(device, buffer, "READ" if reads else "WRITE", offset_bytes - lead_bytes, size_bytes)

    def fill(
        self,
        device: wgpu.GPUDevice,
        staging: wgpu.GPUBuffer,
        offset_bytes: int,
        items: np.ndarray,
        dtype: np.dtype | None = None,
    ) -> None:
        """Copy items into a caller's buffer that is mapped for writing, converted to a dtype if one is given."""
        if items.size:
            with _Copies(device, self.threads) as copies:
                for copy in copies.fill(staging, offset_bytes, items, dtype):
                    copy.result()

    def empty(
        self, device: wgpu.GPUDevice, staging: wgpu.GPUBuffer, out: np.ndarray, *, is_fresh: bool = False
    ) -> None:
        """Copy the first bytes of a caller's buffer that is mapped for reading into a contiguous array."""
        if out.size:
            memory = np.frombuffer(staging.read_mapped(0, -(-out.nbytes // 4) * 4, copy=False), dtype=np.uint8)
            with _Copies(device, self.threads) as copies:
                for copy in copies.start(staging, out.view(np.uint8), memory[: out.nbytes], is_fresh=is_fresh):
                    copy.result()

    def _take_small(self, device: wgpu.GPUDevice, size_bytes: int) -> wgpu.GPUBuffer:
        """Return a staging buffer that nobody else has; it is put back as those of a ring are."""
        with contextlib.suppress(IndexError):
            staging = self._small.pop()
            if staging.size >= size_bytes:
                return staging
        return device.create_buffer(label="gridwise staging", size=size_bytes, usage=_DOWN)


def as_bytes(items: np.ndarray) -> np.ndarray:
    """Return the bytes of items in this machine's order, without a copy where they lie so."""
    return np.ascontiguousarray(items, dtype=items.dtype.newbyteorder("=")).view(np.uint8)
