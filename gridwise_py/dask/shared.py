"""Host memory of a worker's results: used again where nobody has it any more, and shared with workers of one host.

Pages that are new to a process cost more than a copy into them: 1 GiB comes from an H100 at 10.8 GB/s into new memory,
and at 25 into memory that was used before. So what a worker downloads lies in blocks that it keeps.

On Linux a block is a file without a name (`memfd_create`), which other processes can map. A worker of the same host
then gets the place of the items, not their bytes. The system frees a block with the last process that maps it, whoever
was killed. A block that another process may still read is not used again: each reader has a byte in the block's first
page, which it sets when it has mapped the block and when it has finished. Until a reader has mapped a block, its sender
keeps it.

A place is only sent to a process that this one sees in ``/proc``, at the other end of the connection, with the right to
look at its files. All others get the bytes.
"""

from __future__ import annotations

import bisect
import contextlib
import mmap
import os
import threading
import time
import weakref
from collections import deque
from collections.abc import Mapping
from typing import Any
from uuid import uuid4

import numpy as np

#: Smaller arrays are ordinary ones: pages are found in microseconds, and a message carries them as fast.
LEAST_BYTES = 1 << 20
#: Free memory that a worker keeps, unless its plugin says otherwise.
_MOST_FREE_BYTES = 1 << 30
_PAGE_BYTES = mmap.PAGESIZE
_MAPPED, _FINISHED = 1, 2  # what a reader writes
#: How long a block waits for a reader to map it. One that comes later is told that it is gone, and Dask asks again.
_READER_TIMEOUT_S = 60.0

#: Where items are: process, number of its file, name of the file, its length, the reader's number, first byte, length.
Place = tuple[int, int, str, int, int, int, int]


class _Block:
    """Memory of one array at a time."""

    def __init__(self, size_bytes: int):
        self.size_bytes = size_bytes
        self.readers = 0
        self.name = f"gridwise-{uuid4().hex}"
        self.file: int | None = None
        if hasattr(os, "memfd_create"):
            self.file = os.memfd_create(self.name)
            os.ftruncate(self.file, _PAGE_BYTES + size_bytes)
            self.memory = mmap.mmap(self.file, _PAGE_BYTES + size_bytes)
        else:
            self.memory = mmap.mmap(-1, _PAGE_BYTES + size_bytes)

    def array(self) -> np.ndarray:
        return np.frombuffer(self.memory, np.uint8, self.size_bytes, _PAGE_BYTES)

    def is_unread(self) -> bool:
        """Whether no other process can read it any more."""
        return self.memory[: self.readers] == bytes([_FINISHED]) * self.readers

    def __del__(self) -> None:
        if getattr(self, "file", None) is not None:
            with contextlib.suppress(OSError):
                os.close(self.file)  # pyright: ignore[reportArgumentType] - not None here


def _block_bytes(size_bytes: int) -> int:
    """Return the size of a block: four for each power of two, so that parts of nearly one length share them."""
    step = 1 << max(size_bytes.bit_length() - 3, 12)
    return -(-size_bytes // step) * step


class HostMemory:
    """Blocks of host memory of this process; any number of threads may take them.

    Attributes
    ----------
    most_free_bytes : int
        Of blocks that nobody uses; what is beyond goes back to the system.
    """

    def __init__(self, most_free_bytes: int = _MOST_FREE_BYTES):
        self.most_free_bytes = most_free_bytes
        self._lock = threading.Lock()
        self._free: list[_Block] = []  # by size
        self._free_bytes = 0
        #: Blocks whose array has gone. The garbage collector puts them here, between any two steps of any thread: no
        #: lock is taken there.
        self._returned: deque[tuple[_Block, float]] = deque()
        self._used: dict[int, _Block] = {}
        #: What readers were told and may not have mapped yet: the block, the reader, the items, and since when.
        self._sent: deque[tuple[_Block, int, np.ndarray, float]] = deque()

    def empty(self, count: int, dtype: np.dtype) -> np.ndarray:
        """Return an array of one dimension with any contents."""
        size_bytes = count * dtype.itemsize
        if size_bytes < LEAST_BYTES:
            return np.empty(count, dtype)
        wanted = _block_bytes(size_bytes)
        with self._lock:
            self._collect()
            block = self._taken(wanted)
        if block is None:
            try:
                block = _Block(wanted)
            except OSError:  # no more files, or no memory of this kind
                return np.empty(count, dtype)
        whole = block.array()
        address = whole.__array_interface__["data"][0]
        self._used[address] = block
        weakref.finalize(whole, self._give_back, address).atexit = False
        return whole[:size_bytes].view(dtype)

    def place(self, items: np.ndarray) -> Place | None:
        """Return the place of contiguous items, for one reader; None where they are in no block that can be shared."""
        root = items
        while isinstance(root.base, np.ndarray):
            root = root.base
        address = items.__array_interface__["data"][0]
        first = root.__array_interface__["data"][0]
        with self._lock:
            block = self._used.get(first)
            if block is None or block.file is None or block.readers == _PAGE_BYTES or not items.flags.c_contiguous:
                return None
            reader = block.readers
            block.readers += 1
            self._sent.append((block, reader, items, time.monotonic()))
        whole = _PAGE_BYTES + block.size_bytes
        return os.getpid(), block.file, block.name, whole, reader, _PAGE_BYTES + address - first, items.nbytes

    def _give_back(self, address: int) -> None:
        self._returned.append((self._used.pop(address), time.monotonic()))

    def _collect(self) -> None:
        for _ in range(len(self._sent)):
            sent = block, reader, _, since_s = self._sent.popleft()
            if block.memory[reader] < _MAPPED and time.monotonic() - since_s < _READER_TIMEOUT_S:
                self._sent.append(sent)
        for _ in range(len(self._returned)):
            returned = block, since_s = self._returned.popleft()
            if not block.is_unread():
                if time.monotonic() - since_s < _READER_TIMEOUT_S:
                    self._returned.append(returned)
                continue  # after that time it goes when its reader does, who may have died
            block.memory[: block.readers] = bytes(block.readers)
            block.readers = 0
            bisect.insort(self._free, block, key=_size_of)
            self._free_bytes += block.size_bytes
        while self._free_bytes > self.most_free_bytes:
            self._free_bytes -= self._free.pop().size_bytes

    def _taken(self, size_bytes: int) -> _Block | None:
        place = bisect.bisect_left(self._free, size_bytes, key=_size_of)
        if place == len(self._free) or self._free[place].size_bytes > 2 * size_bytes:
            return None
        block = self._free.pop(place)
        self._free_bytes -= block.size_bytes
        return block


def _size_of(block: _Block) -> int:
    return block.size_bytes


#: Of this process.
host_memory = HostMemory()


def opened(place: Place) -> np.ndarray:
    """Return the bytes at a place of another process of this host, for reading.

    Raises
    ------
    FileNotFoundError
        If that process has no such block any more.
    """
    process, file, name, whole_bytes, reader, first, size_bytes = place
    own = os.open(f"/proc/{process}/fd/{file}", os.O_RDWR)
    try:
        # The number may be another file's by now.
        if name not in os.readlink(f"/proc/self/fd/{own}"):
            raise FileNotFoundError(f"process {process} has no block {name} any more")
        memory = mmap.mmap(own, whole_bytes)
    finally:
        os.close(own)
    items = np.frombuffer(memory, np.uint8, size_bytes, first)
    items.flags.writeable = False
    memory[reader] = _MAPPED
    weakref.finalize(items, _finished, memory, reader).atexit = False
    return items


def _finished(memory: mmap.mmap, reader: int) -> None:
    memory[reader] = _FINISHED


# ---- who is at the other end of a connection

_seen: dict[tuple[str, str], bool] = {}
_processes: set[int] = set()
_MOST_SEEN = 1024


def are_on_one_host(context: Mapping[str, Any] | None) -> bool:
    """Whether the other end of a connection of Dask is a process of this host that can map this one's blocks.

    Parameters
    ----------
    context : mapping or None
        What Dask tells of a connection when it serializes for it; None for files.
    """
    if context is None or not hasattr(os, "memfd_create"):
        return False
    sender: Mapping[str, Any] = context.get("sender") or {}
    recipient: Mapping[str, Any] = context.get("recipient") or {}
    ends = str(sender.get("address")), str(recipient.get("address"))
    found = _seen.get(ends)
    if found is None:
        if len(_seen) >= _MOST_SEEN:
            _seen.clear()
        found = _seen[ends] = _is_here(*ends)
    return found


def _is_here(own: str, other: str) -> bool:
    try:
        ports = [int(address.rpartition(":")[2]) for address in (own, other)]
    except ValueError:
        return False
    inode = _inode_of_connection(ports[1], ports[0])
    return inode is not None and _owns_socket(f"socket:[{inode}]")


def _inode_of_connection(local_port: int, remote_port: int) -> str | None:
    """Return the number of a socket of this network; of the two ends of a connection each host lists its own."""
    for table in ("tcp", "tcp6"):
        with contextlib.suppress(OSError), open(f"/proc/net/{table}", encoding="ascii") as lines:
            next(lines, None)
            for line in lines:
                words = line.split()
                if [int(words[i].rpartition(":")[2], 16) for i in (1, 2)] == [local_port, remote_port]:
                    return words[9]
    return None


def _owns_socket(link: str) -> bool:
    """Whether a process whose files this one may look at has a socket open."""
    others = (int(name) for name in os.listdir("/proc") if name.isdecimal())
    for process in (*_processes, *(one for one in others if one not in _processes)):
        folder = f"/proc/{process}/fd"
        with contextlib.suppress(OSError):
            for file in os.listdir(folder):
                with contextlib.suppress(OSError):
                    if os.readlink(f"{folder}/{file}") == link:
                        _processes.add(process)
                        return True
    return False
