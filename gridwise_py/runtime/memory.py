"""The caching allocator of a device: blocks of GPU memory that live on when their Array goes, for the next Array.

A block is a buffer of one of a few sizes. Whoever uses one holds a `Lease`, shared by all views of an Array; when the
last holder goes, the block is free. The GPU may still be at work on it: a later holder's work is submitted later, and
the queue keeps that order. Commands that are not yet submitted hold the leases of what they use.

A lease may end between any two bytecodes of any thread, also inside this module, because the garbage collector ends it.
So nothing that its end does takes a lock or counts: the lists and dicts that it changes are each changed by one call.
"""

from __future__ import annotations

import itertools
import threading
import time
import weakref
from bisect import insort
from collections.abc import Callable
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

import wgpu

from ..backend.device_errors import check_not_lost, lacks_memory
from ..backend.device_state import state_of
from ..backend.mapped_memory import MAP_USAGE, take_large_pages
from ..backend.queues import destroyed_flag, submit, wait_idle

#: The usage of all blocks, without that for mapping.
ARRAY_USAGE = wgpu.BufferUsage.STORAGE | wgpu.BufferUsage.COPY_SRC | wgpu.BufferUsage.COPY_DST

_LABEL = "gridwise array"  # of a buffer that its maker gave none
_LEAST_STEP_BYTES = 64
_MOST_STEP_BYTES = 32 << 20  # at most an eighth of what is at least 256 MiB
#: Free blocks below this size are bounded by size, those above together.
_SMALL_BYTES = 256 << 10
_MOST_SMALL_BLOCKS = 256
_MOST_SMALL_BYTES = 4 << 20  # of one size
#: From this size on, to fill a free block with zeros costs less than a new one, which has them.
_CLEARED_BYTES = 1 << 20
#: What may be free although less is in use. wgpu does not say how much memory a GPU has; laptops have 4 GiB and more.
_FREE_BYTES = 1 << 30
#: A block that is made so soon after one of its size was given back should have been kept: a loop needs it each time.
_REGRET_S = 10.0

_RANK = attrgetter("rank")


def block_bytes(size_bytes: int) -> int:
    """Return the size of the block for an Array: four sizes for each power of two, so that others find it fitting.

    At most a quarter of what is asked for is left over (of less than 256 bytes, up to 64 bytes), and never more than 32
    MiB.
    """
    step = min(max(_LEAST_STEP_BYTES, 1 << max(0, (size_bytes - 1).bit_length() - 3)), _MOST_STEP_BYTES)
    return max(step, -(-size_bytes // step) * step)


class Lease:
    """The use of a buffer. All Arrays on the buffer share it, and so does what will be submitted with it.

    Attributes
    ----------
    buffer : wgpu.GPUBuffer
    destroyed : list of bool
        The buffer's `destroyed_flag`.
    label : str
        What the holder calls it.
    number : int
        The buffer's, which no other one of the process has.
    """

    __slots__ = ("__weakref__", "_block", "buffer", "destroyed", "label", "number")

    def __init__(self, buffer: wgpu.GPUBuffer, destroyed: list[bool], label: str = "", block: _Block | None = None):
        self._block = block
        self.buffer: wgpu.GPUBuffer = buffer
        self.destroyed: list[bool] = destroyed
        self.label: str = label
        if block is None:
            self.number: int = buffer.uid
        else:
            self.number = block.number
            block.lease = weakref.ref(self)

    def hand_out(self) -> wgpu.GPUBuffer:
        """Return the buffer for good: it is not reused, because its holder may use it after the lease has ended."""
        block = self._block
        if block is not None:
            block.home.hand_out(self.buffer, self.destroyed)
            self._block = None
        return self.buffer

    def __del__(self) -> None:
        try:
            block = self._block
        except AttributeError:  # an interrupt ended __init__
            return
        if block is not None:
            block.home.take_back(block)


class _Block:
    """A buffer that belongs to the pool, whether somebody has its lease or not."""

    __slots__ = ("buffer", "destroyed", "home", "lease", "number", "rank")

    def __init__(self, buffer: wgpu.GPUBuffer, destroyed: list[bool], home: BlockSize):
        self.home: BlockSize = home
        self.buffer: wgpu.GPUBuffer = buffer
        self.destroyed: list[bool] = destroyed
        self.lease: weakref.ref[Lease] | None = None  # the last one
        self.number: int = buffer.uid
        self.rank: int = -self.number  # the one made first comes last


class _HandedOut(weakref.ref[wgpu.GPUBuffer]):
    """A buffer that will not be reused, as long as it lives."""

    __slots__ = ("destroyed", "number")

    destroyed: list[bool]
    number: int


class BlockSize:
    """All blocks of one size; of those that are free, the one made first is reused.

    So a loop gets the same blocks for the same Arrays in each turn, in whatever order they came back, and finds its
    bindings made. The last one that came back would not do: the blocks of a turn would change places for many turns.

    The pool holds all of its buffers. If only leases held those in use, the garbage collector could find a lease and
    its buffer in one cycle, and finalize the buffer before the lease brings it back.
    """

    __slots__ = (
        "_is_mappable", "_most", "_pool", "_uses", "blocks", "free", "handed_out", "last_use", "size_bytes", "trimmed",
        "trimmed_s",
    )  # fmt: skip

    def __init__(self, pool: MemoryPool, size_bytes: int):
        self._pool = pool
        self._is_mappable = pool.is_mappable
        self.size_bytes = size_bytes
        self.blocks: dict[int, _Block] = {}
        self.free: list[_Block] = []  # by rank; another thread may put a block beside its place, which is no harm
        self.handed_out: dict[int, _HandedOut] = {}
        self.last_use = 0  # its number among all uses of blocks of the pool
        self.trimmed = 0  # blocks that `trim` gave back, and nobody has made again since
        self.trimmed_s = 0.0  # when it gave back the last one
        self._uses = pool.uses
        small = size_bytes < _SMALL_BYTES
        self._most = min(_MOST_SMALL_BLOCKS, _MOST_SMALL_BYTES // size_bytes) if small else None

    def reuse(self, label: str) -> Lease | None:
        """Return a free block with contents of earlier holders, if there is one."""
        try:
            block = self.free.pop()
        except IndexError:
            return None
        self.last_use = next(self._uses)
        return Lease(block.buffer, block.destroyed, label, block)

    def lend_new(self, buffer: wgpu.GPUBuffer, destroyed: list[bool], label: str) -> Lease:
        """Return the lease of a new block."""
        block = _Block(buffer, destroyed, self)
        lease = Lease(buffer, destroyed, label, block)
        self.blocks[block.number] = block
        self.last_use = next(self._uses)
        return lease

    def hand_out(self, buffer: wgpu.GPUBuffer, destroyed: list[bool]) -> None:
        """Leave a buffer to its holders; it counts as in use until it goes."""
        handed_out = self.handed_out

        def forget(one: Any) -> None:
            handed_out.pop(one.number, None)

        one = _HandedOut(buffer, forget)
        one.destroyed, one.number = destroyed, buffer.uid
        handed_out[one.number] = one
        self.blocks.pop(one.number, None)
        self._pool.wait_unmapped()

    def forget(self, block: _Block) -> None:
        """Free a buffer, when its last holder goes."""
        self.blocks.pop(block.number, None)

    def take_back(self, block: _Block) -> None:
        """Keep a block for the next one who needs it, within the bounds."""
        if block.number not in self.blocks:
            return
        # Mapped where an interrupt left it so. The state is a property of wgpu's: 0.2 µs of a call with a new output.
        is_mapped = self._is_mappable and block.buffer.map_state != "unmapped"
        if is_mapped or block.destroyed[0] or self._pool.closed:
            self.forget(block)
            return
        if self.free:
            insort(self.free, block, key=_RANK)
        else:
            self.free.append(block)
        if self._most is None:
            self._pool.trim(self.size_bytes)
        elif len(self.free) > self._most:
            self.drop()

    def drop(self) -> bool:
        """Give the memory of the free block made last back to the device; return whether there was one."""
        try:
            block = self.free.pop(0)
        except IndexError:  # another thread took the last one
            return False
        self.forget(block)
        return True

    def forget_lost(self) -> None:
        """Free blocks that an interrupt took from their last lease, or from the list, and brought nowhere.

        A block that another thread has just taken from the list looks like them. That thread can use it all the same.
        """
        free = set(map(id, self.free))
        for block in tuple(self.blocks.values()):
            if id(block) not in free and (block.lease is None or block.lease() is None):
                self.forget(block)


@dataclass(frozen=True, slots=True)
class _Wanted:
    """How much may be free because loops need it again.

    Attributes
    ----------
    most_bytes : int
        So much; 0 as long as nothing was made again soon after it was given back.
    least_free_bytes : int
        The least that was free since the period began, when a block came back: what nobody needed in it.
    since_s : float
        When the period began.
    """

    most_bytes: int = 0
    least_free_bytes: int = 0
    since_s: float = 0.0


@dataclass(frozen=True, slots=True)
class MemoryStats:
    """The memory of a device that Arrays and the temporary memory of primitives take; see `memory_stats`.

    It leaves out what the caller made, staging buffers, parameters and queries. Arrays take whole blocks. A device that
    was destroyed uses and keeps nothing.

    Attributes
    ----------
    in_use_bytes, in_use_blocks : int
        Of Arrays that are alive, of commands that wait to be submitted, and of primitives for themselves.
    cached_bytes, cached_blocks : int
        Free, and kept for the next Arrays.
    peak_bytes : int
        The most that both took together.
    allocations : int
        How often a block was made.
    reuses : int
        How often a block was found in the cache.
    emptied : int
        How often the whole cache was given back, by `empty_cache` or because the device was short of memory.
    """

    in_use_bytes: int
    in_use_blocks: int
    cached_bytes: int
    cached_blocks: int
    peak_bytes: int
    allocations: int
    reuses: int
    emptied: int


class MemoryPool:
    """The blocks of one device.

    Parameters
    ----------
    device : wgpu.GPUDevice
    make_room : callable
        Frees what else of this library can be made again, when emptying the cache did not suffice.
    is_mappable : bool, default False
        Whether the CPU is to reach the blocks: they are then made with the usage `MAP_USAGE`.
    """

    def __init__(
        self,
        device: wgpu.GPUDevice,
        make_room: Callable[[], object] = lambda: None,
        *,
        is_mappable: bool = False,
    ):
        self._device = weakref.ref(device)
        self.is_mappable: bool = is_mappable
        self._usage = ARRAY_USAGE | MAP_USAGE if is_mappable else ARRAY_USAGE
        self._make_room = make_room
        self._most_bytes: int = device.limits["max-buffer-size"]
        self._sizes: dict[int, BlockSize] = {}
        self.uses: itertools.count[int] = itertools.count(1)
        self._lock = threading.RLock()  # of the counts; reentrant for signal handlers and __del__ of callers
        self.closed: bool = False
        self._allocations = self._emptied = self._peak_bytes = 0
        self._wanted = _Wanted()

    @property
    def device(self) -> wgpu.GPUDevice:
        """The device."""
        device = self._device()
        assert device is not None, "a pool outlived its device"
        return device

    def size_for(self, size_bytes: int) -> BlockSize:
        """Return the blocks that have room for so many bytes."""
        rounded = block_bytes(size_bytes)
        if rounded > self._most_bytes:
            rounded = size_bytes
        size = self._sizes.get(rounded)
        return size if size is not None else self._sizes.setdefault(rounded, BlockSize(self, rounded))

    def may_map(self, buffer: wgpu.GPUBuffer) -> bool:
        """Whether the library can map a buffer: a mappable block that no caller has, and no label of its own keeps."""
        size = self._sizes.get(buffer.size) if self.is_mappable else None
        return size is not None and buffer.uid in size.blocks

    def wait_unmapped(self) -> None:
        """Return when no block is mapped."""
        end = state_of(self.device).end
        if end.mapped:
            with end.lock:
                end.wait_unmapped()

    def reuse(self, size_bytes: int, label: str = "") -> Lease | None:
        """Return a free block with contents of earlier holders, if there is one."""
        return self.size_for(size_bytes).reuse(label)

    def has_free(self, size_bytes: int) -> bool:
        """Whether `reuse` would return a block, unless another thread takes it first."""
        return bool(self.size_for(size_bytes).free)

    def make(self, size_bytes: int, label: str = "", *, buffer_label: str = "", mapped: bool = False) -> Lease:
        """Return a new block, which holds zeros; `mapped` for writing. With a label, its buffer is not reused.

        Raises
        ------
        wgpu.GPUError
            As wgpu raises it, for a lack of memory only when all that is kept was freed.
        """
        size = self.size_for(size_bytes)
        buffer = self._make_buffer(size.size_bytes, buffer_label, mapped=mapped)
        destroyed = destroyed_flag(buffer, fresh=True)
        if buffer_label:
            size.hand_out(buffer, destroyed)
            size.last_use = next(self.uses)
            lease = Lease(buffer, destroyed, label or buffer_label)
        else:
            lease = size.lend_new(buffer, destroyed, label)
        with self._lock:
            self._allocations += 1
            self._peak_bytes = max(self._peak_bytes, self._reserved_bytes())
            if size.trimmed:
                self._regret(size)
        return lease

    def take(self, size_bytes: int, label: str = "") -> Lease:
        """Return a block with any contents; raises as `make`."""
        return self.reuse(size_bytes, label) or self.make(size_bytes, label)

    def take_zeroed(self, size_bytes: int, label: str = "") -> Lease:
        """Return a block that holds zeros by the time of the next submission; raises as `make`.

        While calls of the thread are captured or held back, which a submission would end, the block is a new one.
        """
        submits = threading.get_ident() not in state_of(self.device).recorders
        lease = self.reuse(size_bytes, label) if submits and size_bytes >= _CLEARED_BYTES else None
        if lease is None:
            return self.make(size_bytes, label)
        encoder = self.device.create_command_encoder(label="gridwise zeros")
        encoder.clear_buffer(lease.buffer, 0, lease.buffer.size)
        submit(self.device, [encoder.finish()], "zeros")
        return lease

    def _make_buffer(self, size_bytes: int, label: str, *, mapped: bool) -> wgpu.GPUBuffer:
        for make_room in (self.empty, self._make_all_room, None):
            try:
                check_not_lost(self.device, "making memory")  # of Dawn, which goes on as if it were not
                buffer = self.device.create_buffer(
                    label=label or _LABEL, size=size_bytes, usage=self._usage, mapped_at_creation=mapped
                )
                if self.is_mappable and not mapped:
                    take_large_pages(self.device, buffer)
                return buffer
            except wgpu.GPUError as error:
                if make_room is None or not lacks_memory(error):
                    raise
            make_room()  # outside of the handler: inside it, the error keeps objects alive
        raise AssertionError("the last attempt returns or raises")

    def _make_all_room(self) -> None:
        self._make_room()
        self.empty()

    def empty(self) -> int:
        """Give all free blocks back to the device; return how many bytes they had. Waits for the GPU, which may use
        them still.
        """
        if self.closed:  # nothing is kept, and there is no device to wait for
            return 0
        freed_bytes = self._forget_free()
        with self._lock:
            self._emptied += 1
        wait_idle(self.device)
        return freed_bytes

    def close(self) -> None:
        """Keep nothing from now on: the device was destroyed."""
        self.closed = True
        self._forget_free()

    def _forget_free(self) -> int:
        freed_bytes = 0
        for size in tuple(self._sizes.values()):
            while size.drop():
                freed_bytes += size.size_bytes
            size.forget_lost()
        return freed_bytes

    def _regret(self, size: BlockSize) -> None:
        """Keep more from now on, if a block that was just made had been given back a moment ago."""
        now_s = time.monotonic()
        if now_s - size.trimmed_s > _REGRET_S:
            size.trimmed = 0
            return
        size.trimmed -= 1
        before = self._wanted
        most_bytes = min(max(before.most_bytes, _FREE_BYTES) + size.size_bytes, self._peak_bytes)
        self._wanted = _Wanted(most_bytes, 0, now_s)

    def trim(self, came_back_bytes: int) -> None:
        """Keep no more free than is in use, or a GiB, or what loops need again; sizes not needed for longest go first.

        `came_back_bytes` were in use until now. Called where a lease ends, so it takes no lock. Threads that call it at
        once free too much rather than too little.
        """
        if self._peak_bytes <= _FREE_BYTES:
            return
        sizes = tuple(self._sizes.values())
        free_bytes = 0
        for size in sizes:
            free_bytes += len(size.free) * size.size_bytes
        wanted_bytes = self._still_wanted_bytes(free_bytes, came_back_bytes)
        if free_bytes <= _FREE_BYTES:
            return
        excess_bytes = free_bytes - max(_FREE_BYTES, self._reserved_bytes() - free_bytes, wanted_bytes)
        if excess_bytes > 0:
            now_s = time.monotonic()
            for size in sorted(sizes, key=lambda size: size.last_use):
                while excess_bytes > 0 and size.drop():
                    excess_bytes -= size.size_bytes
                    size.trimmed += 1
                    size.trimmed_s = now_s

    def _still_wanted_bytes(self, free_bytes: int, came_back_bytes: int) -> int:
        """Return how much may be free because loops need it again, without what nobody needed for some seconds."""
        wanted = self._wanted
        if not wanted.most_bytes:
            return 0
        least_bytes, now_s = min(wanted.least_free_bytes, free_bytes - came_back_bytes), time.monotonic()
        if now_s - wanted.since_s <= _REGRET_S:
            self._wanted = _Wanted(wanted.most_bytes, least_bytes, wanted.since_s)
            return wanted.most_bytes
        most_bytes = wanted.most_bytes - least_bytes
        self._wanted = _Wanted(most_bytes, free_bytes, now_s) if most_bytes > _FREE_BYTES else _Wanted()
        return most_bytes

    def _reserved_bytes(self) -> int:
        """All that is in use, and what is kept."""
        return sum((len(size.blocks) + len(size.handed_out)) * size.size_bytes for size in tuple(self._sizes.values()))

    def stats(self) -> MemoryStats:
        """Return what is in use and what is kept."""
        sizes = tuple(self._sizes.values())
        # The memory of Arrays went with a destroyed device.
        living = () if self.closed else sizes
        # Of each size at one moment; between two of them another thread may take or return a block.
        cached = [(len(size.free), size.size_bytes) for size in living]
        alive = [
            (
                sum(not one.destroyed[0] for one in (*size.blocks.values(), *size.handed_out.values())),
                size.size_bytes,
            )
            for size in living
        ]
        cached_blocks, cached_bytes = sum(n for n, _ in cached), sum(n * each for n, each in cached)
        blocks, reserved_bytes = sum(n for n, _ in alive), sum(n * each for n, each in alive)
        return MemoryStats(
            in_use_bytes=reserved_bytes - cached_bytes,
            in_use_blocks=blocks - cached_blocks,
            cached_bytes=cached_bytes,
            cached_blocks=cached_blocks,
            peak_bytes=self._peak_bytes,
            allocations=self._allocations,
            reuses=max((size.last_use for size in sizes), default=0) - self._allocations,
            emptied=self._emptied,
        )
