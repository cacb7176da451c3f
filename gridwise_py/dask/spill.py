"""Where a worker keeps results: Arrays on its GPU up to a limit, then as host memory, then on disk.

Three levels, each least recently used first: the GPU, up to `device_limit_bytes`; host memory, up to
`host_limit_bytes`; files in the worker's folder. Where none can be written, results stay in host memory. An Array that
was moved is uploaded again when a task needs it. Columns of a sort that were moved stay where they are, and tasks take
pieces of them.
"""

# Dask's annotations leave many types open:
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import logging
import os
import sys
from collections import OrderedDict
from collections.abc import Generator, Iterator, MutableMapping
from contextlib import contextmanager
from dataclasses import dataclass
from threading import RLock
from typing import Any

import numpy as np
import zict
from dask.sizeof import sizeof
from distributed.protocol.serialize import deserialize_bytes, serialize_bytelist

from .. import Array, asarray, default_device
from .chunks import Columns, host

logger = logging.getLogger("gridwise_py")


@dataclass(frozen=True)
class Moved:
    """The items of an Array that was moved to host memory."""

    items: np.ndarray

    def __sizeof__(self) -> int:
        return int(self.items.nbytes)


class GpuSpill(MutableMapping[Any, Any]):
    """The results of a worker, for its option ``data``; `local_cluster` and ``gridwise worker`` set it.

    Parameters
    ----------
    device_limit_bytes : int or None
        Most bytes of Arrays that stay on the GPU. What tasks use beside them is not counted. None: as many as it has
        room for.
    host_limit_bytes : int
        Most bytes in host memory.
    worker_local_directory : str
        Folder for files; Dask passes it.
    """

    def __init__(self, device_limit_bytes: int | None, host_limit_bytes: int, worker_local_directory: str):
        self._device_limit_bytes = sys.maxsize if device_limit_bytes is None else device_limit_bytes
        self._gpu: OrderedDict[Any, Array | Columns] = OrderedDict()
        self._gpu_bytes = 0
        self._lock = RLock()
        # Windows removes no file that is mapped.
        self._folder = os.path.join(worker_local_directory, "gridwise")
        files: Any = zict.File(self._folder, memmap=os.name == "posix")
        disk: Any = zict.Func(serialize_bytelist, _read, files)
        #: By `_name` of a key: files have texts as keys.
        self._host: Any = zict.Buffer({}, disk, host_limit_bytes, weight=_weight)
        self._keys: dict[str, Any] = {}
        #: How often an Array was moved from the GPU, and back.
        self.moved: int = 0
        self.returned: int = 0

    @property
    def device_limit_bytes(self) -> int | None:
        """Most bytes of Arrays that stay on the GPU; None without a limit."""
        return None if self._device_limit_bytes == sys.maxsize else self._device_limit_bytes

    @property
    def gpu_bytes(self) -> int:
        """Bytes of Arrays that are on the GPU."""
        return self._gpu_bytes

    def __getitem__(self, key: Any) -> Any:
        with self._lock:
            if key in self._gpu:
                self._gpu.move_to_end(key)
                return self._gpu[key]
            value = self._from_host(key)
            if not isinstance(value, Moved):
                return value
            array = asarray(value.items, default_device())
            self._remove_from_host(key)
            self.returned += 1
            self._put(key, array)
            return array

    def __setitem__(self, key: Any, value: Any) -> None:
        with self._lock:
            self.pop(key, None)
            if isinstance(value, Array) or (isinstance(value, Columns) and value.is_on_gpu):
                self._put(key, value)
            else:
                self._put_on_host(key, value)

    def __delitem__(self, key: Any) -> None:
        with self._lock:
            if key in self._gpu:
                self._gpu_bytes -= self._gpu.pop(key).nbytes
            else:
                self._remove_from_host(key)

    def __contains__(self, key: object) -> bool:
        return key in self._gpu or _name(key) in self._keys

    def __iter__(self) -> Iterator[Any]:
        with self._lock:
            return iter([*self._gpu, *self._keys.values()])

    def __len__(self) -> int:
        return len(self._gpu) + len(self._keys)

    def pop(self, key: Any, *default: Any) -> Any:
        """Remove a result and return it, without an upload."""
        with self._lock:
            if key not in self:
                if default:
                    return default[0]
                raise KeyError(key)
            value = self._gpu.get(key)
            if value is None:
                value = self._from_host(key)
            del self[key]
            return value.items if isinstance(value, Moved) else value

    @contextmanager
    def _staying(self, name: str | None = None) -> Generator[None]:
        """Leave in host memory what cannot be written to disk, and raise where a result itself cannot be read."""
        try:
            yield
        except OSError as error:
            if name is not None and name not in self.fast:
                raise
            logger.warning(
                "gridwise_py: results stay in host memory, since none can be written to %s: %s; free room there, or "
                "start workers with --local-directory and another folder", self._folder, error
            )  # fmt: skip

    def _from_host(self, key: Any) -> Any:
        name = _name(key)
        with self._staying(name):
            return self._host[name]
        return self.fast[name]

    def _put_on_host(self, key: Any, value: Any) -> None:
        with self._staying(_name(key)):
            self._host[_name(key)] = value
        self._keys[_name(key)] = key

    def _remove_from_host(self, key: Any) -> None:
        del self._host[_name(key)]
        del self._keys[_name(key)]

    def _put(self, key: Any, array: Array | Columns) -> None:
        self._gpu[key] = array
        self._gpu_bytes += array.nbytes
        while self._gpu_bytes > self._device_limit_bytes and len(self._gpu) > 1:
            self._move_one()

    def make_room(self, size_bytes: int) -> None:
        """Move what was used longest ago, so that a result of this size can be put on the GPU."""
        with self._lock:
            while self._gpu and self._gpu_bytes + size_bytes > self._device_limit_bytes:
                self._move_one()

    def _move_one(self) -> None:
        key, array = next(iter(self._gpu.items()))
        # Read before anything changes: a lost device raises here.
        self._put_on_host(key, array.on_host() if isinstance(array, Columns) else Moved(host(array)))
        del self._gpu[key]
        self._gpu_bytes -= array.nbytes
        self.moved += 1

    def move_all(self) -> bool:
        """Move all Arrays to host memory; return whether there were any."""
        with self._lock:
            found = bool(self._gpu)
            while self._gpu:
                self._move_one()
            return found

    # What Dask calls where the process comes near its limit of host memory.

    @property
    def fast(self) -> Any:
        """What `evict` takes from."""
        return self._host.fast

    def evict(self) -> int:
        """Write the result that was used longest ago from host memory to disk; return its bytes, −1 if none was."""
        with self._lock:
            with self._staying():
                if self.fast:
                    _, _, weight = self.fast.evict()
                    return int(weight)
            return -1


def _name(key: object) -> str:
    return repr(key)


def _weight(_key: Any, value: Any) -> int:
    return int(sizeof(value))


def _read(data: Any) -> Any:
    return deserialize_bytes(data)
