"""What a worker of a Dask cluster has to have: a device, an identity, and the ways in which Arrays travel.

`connect` sends `GpuPlugin` to every worker. A worker with the resource ``gridwise`` gets a device from it. Tasks that
need a GPU run through `run_on_gpu`, which raises on any other worker: Dask loses annotations in some graphs, and would
otherwise compute on whatever adapter it finds there.
"""

# Dask's annotations leave many types open:
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import ast
import logging
import os
import platform
import socket
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any, cast
from uuid import uuid4
from weakref import WeakKeyDictionary

import numpy as np
from distributed import Client, Worker, WorkerPlugin, default_client, get_worker, wait

from .. import Array, __version__, asarray, default_device, empty_cache, settings
from ..errors import ArgumentError, ClusterError, DeviceMemoryError, GridwiseError
from ..internals import context_of, expect_software, gpu_of
from .chunks import Columns, host
from .shared import LEAST_BYTES, are_on_one_host, host_memory, opened
from .spill import GpuSpill
from .stages import stage

#: The resource of every worker with a GPU, one of it per GPU. Tasks that need a GPU ask for it.
RESOURCE = "gridwise"
#: A worker also has a resource of this form, which no other worker has: it binds a task to one GPU.
_TAG = "gridwise:"
#: Of a worker's host memory, blocks that nobody uses keep one in so many bytes at most.
_SHARE_OF_FREE_MEMORY = 8
#: The name of the plugin on a worker.
_PLUGIN = "gridwise"

logger = logging.getLogger("gridwise_py")

Versions = Mapping[str, str]


def gpu_tag(host: str, adapter: int, repeat: int = 1) -> str:
    """Return the resource that a worker has for its GPU alone; it outlives a restart of the worker.

    Parameters
    ----------
    host : str
    adapter : int
        Index of the adapter on this host.
    repeat : int
        Counts the workers of the same adapter, from 1.
    """
    return f"{_TAG}{host}/{adapter}" + (f"#{repeat}" if repeat > 1 else "")


def versions() -> Versions:
    """Return the versions that have to be the same on all sides."""
    packages = {name: version(name) for name in ("wgpu", "numpy", "dask", "distributed")}
    python = ".".join(platform.python_version_tuple()[:2])
    return {"gridwise_py": __version__, "python": python, **packages}


def differing_versions(sides: Mapping[str, Versions]) -> list[str]:
    """Return a line per package whose versions differ: the versions, and who has them.

    Parameters
    ----------
    sides : mapping
        Versions by the name of a side.
    """
    lines: list[str] = []
    for name in dict.fromkeys(name for found in sides.values() for name in found):
        holders: dict[str, list[str]] = {}
        for side, found in sides.items():
            holders.setdefault(found.get(name, "none"), []).append(side)
        if len(holders) > 1:
            lines.append(f"{name}: " + ", ".join(f"{v} ({_some(who)})" for v, who in sorted(holders.items())))
    return lines


def _some(names: list[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


@dataclass(frozen=True)
class DeviceIdentity:
    """The GPU of a worker.

    Attributes
    ----------
    id : str
        ``HOST/PCI`` where the PCI address is certain, else ``HOST/INDEX``. It stays when the worker is restarted.
    tag : str or None
        The resource that only this worker has; None if it was started without one.
    host, worker, address : str
        Host name, and the worker's name and address.
    pid : int
    adapter, driver, backend, type : str
        As in `AdapterDescription`.
    max_buffer_bytes : int
        The device's largest buffer.
    limit_bytes : int or None
        Most bytes of Arrays that the worker keeps on the GPU; None without a limit.
    """

    id: str
    tag: str | None
    host: str
    worker: str
    address: str
    pid: int
    adapter: str
    driver: str
    backend: str
    type: str
    max_buffer_bytes: int
    limit_bytes: int | None = None


class GpuPlugin(WorkerPlugin):
    """Gives a worker its device, once, and registers how Arrays are measured, sent and spilled.

    A worker without the resource ``gridwise`` gets the registrations only. `connect` sends the plugin; workers that
    come later receive it from the scheduler.

    Parameters
    ----------
    expected : mapping, optional
        Versions that the worker has to have, by package; by default any.
    """

    name = _PLUGIN

    def __init__(self, expected: Versions | None = None):
        self._expected = expected
        self._worker: Worker | None = None
        self._ready = threading.Event()
        self._identity: DeviceIdentity | None = None
        self._problem: str | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        # What setup found belongs to a process.
        return GpuPlugin, (self._expected,)

    def setup(self, worker: Worker) -> None:
        """Make the device in a thread: drivers take seconds, and a worker has to answer the scheduler meanwhile."""
        self._worker = worker
        register(in_worker=RESOURCE in worker.state.total_resources)
        manager = getattr(worker, "memory_manager", None)
        limit_bytes = getattr(manager, "memory_limit", None)
        if limit_bytes:
            host_memory.most_free_bytes = int(limit_bytes) // _SHARE_OF_FREE_MEMORY
        threading.Thread(target=self._prepare, name="gridwise device", daemon=True).start()

    def _prepare(self) -> None:
        try:
            self._identity = self._find()
        except Exception as error:
            self._problem = f"{type(error).__name__}: {error}"
        finally:
            self._ready.set()
        if self._problem is not None:
            logger.error("gridwise_py: this worker computes nothing: %s", self._problem)

    def _find(self) -> DeviceIdentity | None:
        worker = self._worker
        assert worker is not None
        if self._expected is not None:
            differing = differing_versions({"the client": self._expected, "this worker": versions()})
            if differing:
                raise ClusterError("versions differ: " + "; ".join(differing))
        if RESOURCE not in worker.state.total_resources:
            return None
        expect_software()  # it is refused below, unless it was asked for
        device = default_device()
        key = context_of(device).key
        if device.adapter.info["adapter_type"] == "CPU" and not settings.dask_cpu():
            raise ClusterError(
                f"the adapter {device.adapter.info['device']!r} is software on the CPU; name it in "
                f"gwd.local_cluster(adapters=…), or set GRIDWISE_DASK_CPU=1 for the worker, if you want that"
            )
        host = socket.gethostname()
        tag = next((name for name in worker.state.total_resources if name.startswith(_TAG)), None)
        gpu = gpu_of(device)
        pci = None if gpu is None else gpu.pci
        own = tag.removeprefix(_TAG) if tag is not None else f"{host}/{settings.adapter() or 0}"
        info = device.adapter.info
        return DeviceIdentity(
            f"{host}/{pci}" if pci is not None else own, tag, host, str(worker.name), worker.address, os.getpid(),
            info["device"], key["driver"], key["backend"], info["adapter_type"],
            int(device.limits["max-buffer-size"]), getattr(getattr(worker, "data", None), "device_limit_bytes", None),
        )  # fmt: skip

    def identity(self) -> DeviceIdentity | None:
        """Return the worker's GPU; None without one. Waits until the device is made.

        Raises
        ------
        ClusterError
            If the worker cannot compute, though it has the resource: a software adapter, no adapter, other versions.
        """
        self._ready.wait()
        if self._problem is not None:
            assert self._worker is not None
            raise ClusterError(f"worker {self._worker.name} ({self._worker.address}): {self._problem}")
        return self._identity


#: How long to wait for workers' answers before asking whether they are still there.
_ANSWERS_S = 0.5
#: One task at a time uses the GPU of a process: each has room for its chunk, its result and scratch.
_gpu_lock = threading.Lock()


def run_on_gpu(function: Callable[..., Any], /, *arguments: Any) -> Any:
    """Call ``function(device, *arguments)`` with the GPU of this worker, or of this process where there is no worker.

    Raises
    ------
    ClusterError
        If this is a worker without a GPU.
    """
    try:
        worker = get_worker()
    except ValueError:  # no cluster: Dask's schedulers of one process
        with _gpu_lock:
            return function(default_device(), *arguments)
    _check_has_gpu(worker)
    with _gpu_lock:
        try:
            return _with_room(worker, function, arguments)
        except Exception as error:
            error.add_note(f"in task {worker.get_current_task()!r} on worker {worker.name} ({worker.address})")
            raise


def _with_room(worker: Worker, function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    """Call a function; once more without the Arrays that the worker holds, if the GPU has no room."""
    try:
        found = function(default_device(), *arguments)
        if isinstance(worker.data, GpuSpill) and isinstance(found, (Array, Columns)):
            worker.data.make_room(found.nbytes)  # here: the event loop, which keeps results, would wait for it
        return found
    except DeviceMemoryError:
        if not (isinstance(worker.data, GpuSpill) and worker.data.move_all()):
            raise
    empty_cache(default_device())
    return function(default_device(), *arguments)


def _check_has_gpu(worker: Worker) -> None:
    plugin = worker.plugins.get(_PLUGIN)
    if not isinstance(plugin, GpuPlugin):
        raise ClusterError(
            f"worker {worker.name} ({worker.address}) has no device: the client was not made by gwd.connect(…), which "
            f"prepares workers"
        )
    if plugin.identity() is None:
        raise ClusterError(
            f"worker {worker.name} ({worker.address}) has no GPU (no resource {RESOURCE!r}), but got work for one: the "
            f"annotations of the graph were lost. gwd.connect(…) sets optimization.fuse.active to False, which keeps "
            f"them; set it in the processes of client and scheduler, or start workers by `gridwise worker`"
        )


def _identity_of(dask_worker: Worker) -> DeviceIdentity | str | None:
    plugin = dask_worker.plugins.get(_PLUGIN)
    if not isinstance(plugin, GpuPlugin):
        return f"worker {dask_worker.name} ({dask_worker.address}) has no plugin"
    try:
        return plugin.identity()
    except GridwiseError as error:
        return str(error)


def _answers(client: Client, workers: Iterable[str]) -> list[DeviceIdentity | str | None] | None:
    """Return what workers answer to the question for their GPU; None if one of them died meanwhile."""
    # In threads of the workers: the event loop has to go on while a driver starts.
    run = uuid4().hex
    futures = [
        client.submit(_own_identity, workers=[address], pure=False, key=f"gridwise-identity-{run}-{address}")
        for address in workers
    ]
    while any(not future.done() for future in futures):
        try:
            wait(futures, timeout=_ANSWERS_S)
        except TimeoutError:  # a task for a worker that is gone would wait for ever
            if not set(workers) <= set(gpu_workers(client)):
                client.cancel(futures)
                return None
    answers: Any = client.gather(futures)
    return answers


def identities(client: Client) -> list[DeviceIdentity]:
    """Return the GPUs of a cluster, sorted by id.

    Parameters
    ----------
    client : distributed.Client
        From `connect`.

    Raises
    ------
    ClusterError
        If a worker cannot compute though it has the resource, or if there is no worker with a GPU.
    """
    found = None
    while found is None:
        workers = gpu_workers(client)
        if not workers:
            raise ClusterError(no_gpu_message(client))
        found = _answers(client, workers)
    problems = [one for one in found if isinstance(one, str)]
    if problems:
        raise ClusterError("; ".join(problems))
    return sorted((one for one in found if isinstance(one, DeviceIdentity)), key=lambda one: one.id)


@dataclass
class _Gpus:
    most_bytes: int
    count: int
    asked_s: float


#: What the GPUs of each client's cluster take, and when they were asked.
_gpus: WeakKeyDictionary[Client, _Gpus] = WeakKeyDictionary()
#: Of the limit for a GPU's memory, one Array takes one in so many bytes.
_ARRAYS = 4
#: Workers come and go; to ask takes a message.
_ASK_AGAIN_S = 10.0
_UNKNOWN = 1, (1 << 32) - 1


def _share_of(one: DeviceIdentity) -> int:
    """Return what a task may put in one Array: it has an input, a result and scratch beside what is kept."""
    return one.max_buffer_bytes if one.limit_bytes is None else max(one.limit_bytes // _ARRAYS, 1)


def what_gpus_take(*, ask: bool) -> tuple[int, int]:
    """Return how many GPUs the current client's cluster has, and the most bytes of an Array that all of them take.

    Parameters
    ----------
    ask : bool
        Whether to ask the cluster, where this was not done before. Without it, and without a client that can be asked,
        the answer is one GPU, and buffers of 4 GiB.
    """
    try:
        client = default_client()
    except ValueError:
        return _UNKNOWN
    if not ask or client.asynchronous:  # its answers have to be awaited
        return _UNKNOWN
    known = _gpus.get(client)
    if known is None:
        found = identities(client)
        least = min(min(one.max_buffer_bytes, _share_of(one)) for one in found)
        known = _gpus[client] = _Gpus(least, len(found), time.monotonic())
    elif time.monotonic() - known.asked_s > _ASK_AGAIN_S:
        known.count, known.asked_s = len(gpu_workers(client)), time.monotonic()
    return max(known.count, 1), known.most_bytes


def _own_identity() -> DeviceIdentity | str | None:
    return _identity_of(get_worker())


def workers_of(client: Client) -> dict[str, Any]:
    """Return what the scheduler knows of each worker, by address.

    Raises
    ------
    ArgumentError
        If this is no client that can be asked.
    ClusterError
        If it was closed.
    """
    # Callers pass what they have.
    if not isinstance(cast(object, client), Client) or client.asynchronous:
        raise ArgumentError(f"a client is needed that is not asynchronous, such as gwd.connect(…), not {client!r}")
    found: Any = client.scheduler_info(n_workers=-1)
    if "workers" not in found:
        raise ClusterError(f"the client is {client.status}: it was closed, or its scheduler is gone; connect again")
    return found["workers"]


def gpu_workers(client: Client) -> dict[str, str]:
    """Return the names of the workers with the resource for GPUs, by address."""
    info = workers_of(client)
    return {address: str(one["name"]) for address, one in info.items() if RESOURCE in one["resources"]}


def no_gpu_message(client: Client) -> str:
    """Return what to say where no worker has a GPU."""
    scheduler: Any = client.scheduler
    workers = workers_of(client)
    there = ", ".join(f"{one['name']} ({address})" for address, one in workers.items()) or "none at all"
    return (
        f"no worker has a GPU (the resource {RESOURCE!r}). Workers: {there}. Start some with "
        f"`gridwise worker {scheduler.address}`"
    )


# ---- Arrays as results of tasks

_registered = False
#: Whether Arrays that arrive in this process are uploaded; elsewhere they become numpy arrays.
_uploads = False


def register(*, in_worker: bool = False) -> None:
    """Tell Dask what an Array is: its size in bytes, its token, and how it is sent and spilled.

    An Array arrives as an Array on a worker with a GPU, and as a numpy array everywhere else.

    Parameters
    ----------
    in_worker : bool
        Whether this is the process of a worker with a GPU.
    """
    global _registered, _uploads
    _uploads = _uploads or in_worker
    if _registered:
        return
    from dask.base import normalize_token
    from dask.sizeof import sizeof
    from distributed.protocol.serialize import dask_deserialize, dask_serialize

    sizeof.register((Array, Columns), _size_bytes)
    normalize_token.register(Array, _token)
    dask_serialize.register((Array, Columns))(_serialized)
    dask_deserialize.register((Array, Columns))(_deserialized)
    _registered = True


def _size_bytes(found: Array | Columns) -> int:
    return found.nbytes


#: A name for each piece of memory that an Array had when its token was asked for. Places alone are taken again.
_names: WeakKeyDictionary[Any, str] = WeakKeyDictionary()


def _token(array: Array) -> tuple[Any, ...]:
    # Two views of the same items are equal. Contents are not read: that would wait for the GPU.
    return ("gridwise_py.Array", _names.setdefault(array.lease, uuid4().hex), *array.place[1:])


def _serialized(found: Array | Columns, context: Any = None) -> tuple[dict[str, Any], list[memoryview]]:
    """Return a header and the items' bytes, without those that a worker of the same host maps."""
    is_here = found.nbytes >= LEAST_BYTES and are_on_one_host(context)
    columns, frames = [], []
    with stage("send", found.nbytes):
        for chunk in found if isinstance(found, Columns) else (found,):
            items = host(chunk)
            place = _placed(items) if is_here and items.nbytes >= LEAST_BYTES else None
            # As text: a header's lists and tuples arrive as lists, and a description has both.
            dtype = repr(np.lib.format.dtype_to_descr(items.dtype))
            columns.append({"dtype": dtype, "shape": items.shape, "place": place})
            if place is None:
                data: Any = items.reshape(-1).view(np.uint8)
                frames.append(memoryview(data))
    return {"columns": columns, "is_array": isinstance(found, Array)}, frames


def _placed(items: np.ndarray) -> Any:
    """Return the place of items in memory that another process can map; they are copied there if need be."""
    place = host_memory.place(items)
    if place is None and items.dtype.fields is None:
        copy = host_memory.empty(items.size, items.dtype)
        np.copyto(copy, items.reshape(-1))
        place = host_memory.place(copy)
    return place


def _deserialized(header: dict[str, Any], frames: list[Any]) -> Array | Columns | np.ndarray:
    left = iter(frames)
    columns: list[np.ndarray] = []
    for column in header["columns"]:
        dtype = np.lib.format.descr_to_dtype(ast.literal_eval(column["dtype"]))
        data = opened(column["place"]) if column["place"] else np.frombuffer(next(left, b""), np.uint8)
        columns.append(data.view(dtype).reshape(column["shape"]))
    if not header["is_array"]:
        return Columns(*columns)
    return asarray(columns[0], default_device()) if _uploads else columns[0]
