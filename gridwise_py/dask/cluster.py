"""Clusters: one of this host's GPUs, and clients of others, with the rule for TLS and the checks of workers."""

# Dask's annotations leave many types open:
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import ast
import asyncio
import contextlib
import inspect
import ipaddress
import json
import logging
import os
import socket
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Mapping
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from pathlib import Path
from typing import Any, TypeVar

import dask.config
from dask.utils import parse_bytes, parse_timedelta
from distributed import CancelledError, Client, KilledWorker, Nanny, Scheduler, Security, SpecCluster
from distributed.client import ClosedClientError
from distributed.core import Status
from distributed.scheduler import NoValidWorkerError
from distributed.system import MEMORY_LIMIT
from distributed.worker_memory import parse_memory_limit

from .. import AdapterDescription, list_adapters, settings
from ..errors import AdapterError, ArgumentError, ClusterError
from ..internals import integer
from ..storage.files import read_file
from .spill import GpuSpill
from .worker import (
    RESOURCE,
    GpuPlugin,
    differing_versions,
    gpu_tag,
    gpu_workers,
    no_gpu_message,
    register,
    versions,
    workers_of,
)  # fmt: skip

logger = logging.getLogger("gridwise_py")

Result = TypeVar("Result")

_GPU_TYPES = ("DiscreteGPU", "IntegratedGPU")
#: A worker's threads beside the one that waits for the GPU: they cut, count and read files.
_MOST_THREADS = 4
#: Threads that copy to and from a worker's GPU, where there are as many cores.
_COPY_THREADS = 8
_POLL_S = 0.05
#: Beyond twice the limit of a connection, for what Dask does after it.
_GRACE_S = 10.0
#: Schedulers and workers serve HTTP even without a dashboard, by default to everyone.
NO_DASHBOARD = {"dashboard": False, "dashboard_address": "127.0.0.1:0"}


class LocalCluster(SpecCluster):
    """A cluster of this host, which replaces a worker that does not come back.

    A Nanny starts its process again, and `distributed.SpecCluster` gives it up where that takes longer than
    ``distributed.deploy.lost-worker-timeout``, also where it was killed once more. What waits for its GPU would then
    wait for ever.
    """

    def _update_worker_status(self, op: str, msg: Any) -> None:
        # It may have gone before this cluster heard of it.
        lost = self.scheduler_info["workers"].get(msg, {}).get("name") if op == "remove" else None
        if op != "remove" or lost is not None:
            # Not SpecCluster's own, which gives it up.
            super(SpecCluster, self)._update_worker_status(op, msg)
        if lost is not None:
            loop = asyncio.get_running_loop()
            timeout_s = parse_timedelta(dask.config.get("distributed.deploy.lost-worker-timeout"))
            loop.call_later(timeout_s, lambda: self._futures.add(asyncio.ensure_future(self._replace(lost))))

    async def _replace(self, name: str) -> None:
        """Start another process in place of a worker, unless it is there again."""
        if self.status != Status.running or name not in self.workers or name not in self.worker_spec:
            return
        if any(worker["name"] == name for worker in self.scheduler_info["workers"].values()):
            return
        logger.warning("gridwise_py: worker %s did not come back; another process takes its place", name)
        nanny = self.workers.pop(name)
        with contextlib.suppress(Exception):  # it may have failed already
            await nanny.close()
        self.scale(len(self.worker_spec))


def local_cluster(
    adapters: Iterable[int | str] | str = "all",
    *,
    memory_limit: str | int | float = "auto",
    device_memory_limit: str | int | None = None,
    tls: bool = False,
    threads: int | None = None,
    **spec: Any,
) -> LocalCluster:
    """Start a Dask cluster on this host: a process per GPU. It listens on the loopback address only.

    Parameters
    ----------
    adapters : "all", or iterable of int or str, default "all"
        The adapters by index or by a part of their line in `list_adapters`. An adapter may be named several times.
        "all" stands for all GPUs; software adapters are used only where they are named.
    memory_limit : str or number, default "auto"
        Host memory of each worker, as Dask takes it; by default all workers share the host's memory evenly.
    device_memory_limit : str or int, optional
        Bytes, or a text such as "60GiB": when the Arrays that a worker holds have more, those used longest ago move to
        host memory. By default they stay until the GPU has no more room.
    tls : bool, default False
        Whether processes talk by TLS, with certificates made for this cluster. Needs the package cryptography.
    threads : int, optional
        Threads of each worker. One at a time uses the GPU; the others read, cut and count. By default up to 4.
    **spec
        Further options of `distributed.SpecCluster`.

    Returns
    -------
    LocalCluster
        A `distributed.SpecCluster` and a context manager; pass it to `connect`. A worker that does not come back within
        ``distributed.deploy.lost-worker-timeout`` (15 s) is replaced.

    Raises
    ------
    AdapterError
        If there is no such adapter, or no GPU.
    ClusterError
        If a script calls this outside of ``if __name__ == "__main__":``. Workers import the script that started them,
        and would start a cluster each.
    """
    _check_main_guard()
    chosen = chosen_adapters(adapters)
    host = "127.0.0.1"
    security = Security.temporary() if tls else None
    options: dict[str, Any] = {"protocol": "tls://" if tls else "tcp://", "host": host}
    if security is not None:
        options["security"] = security
    options |= memory_options(memory_limit, device_memory_limit, len(chosen))
    quiet = spec.pop("silence_logs", logging.WARNING)
    options_of = {tag: worker_options(tag, adapter, len(chosen), threads) for tag, adapter in tagged(chosen).items()}
    workers = {
        tag: {"cls": Nanny, "options": {**options, "silence_logs": quiet, **own}} for tag, own in options_of.items()
    }
    listening = {name: options[name] for name in ("protocol", "host", "security") if name in options}
    scheduler = {"cls": Scheduler, "options": {**listening, **NO_DASHBOARD}}
    return LocalCluster(workers=workers, scheduler=scheduler, security=security, silence_logs=quiet, **spec)


def _check_main_guard() -> None:
    """Raise ClusterError where workers, which import the script of this process, would come to the same call."""
    main: Any = sys.modules.get("__main__")
    path = getattr(main, "__file__", None)
    if path is None or dask.config.get("distributed.worker.multiprocessing-method") == "fork":
        return  # a notebook, or `python -c`: nothing is imported
    frame = inspect.currentframe()
    while frame is not None and (frame.f_code.co_name != "<module>" or frame.f_globals is not vars(main)):
        frame = frame.f_back
    if frame is None:
        return  # another thread, which the script started
    try:
        tree = ast.parse(Path(path).read_bytes())
    except (OSError, SyntaxError, ValueError):
        return
    line = frame.f_lineno
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and node.lineno <= line <= (node.end_lineno or 0):
            names = {getattr(each, "id", getattr(each, "attr", None)) for each in ast.walk(node.test)}
            if names & {"__name__", "parent_process", "current_process"}:
                return
    raise ClusterError(
        f"line {line} of {path} starts a cluster, and its workers would come to that line again, because they import "
        f'the script; put it below `if __name__ == "__main__":`'
    )


def chosen_adapters(adapters: Iterable[int | str] | int | str) -> list[AdapterDescription]:
    """Return the adapters that a choice names: ``"all"`` GPUs, or indices and parts of their lines.

    With ``GRIDWISE_DASK_CPU`` set, all are software adapters where there is no GPU.

    Raises
    ------
    AdapterError
        If there is no such adapter, or no GPU for ``"all"``.
    """
    known = list_adapters()
    listing = "\n".join(f"  {adapter}" for adapter in known) or "  none"
    if isinstance(adapters, int) or (isinstance(adapters, str) and adapters != "all"):
        adapters = [adapters]
    if adapters == "all":
        gpus = [adapter for adapter in known if adapter.type in _GPU_TYPES]
        if not gpus and settings.dask_cpu():
            gpus = known
        # On Windows a GPU is listed once per backend.
        chosen = [gpu for gpu in gpus if gpu.backend == gpus[0].backend]
    else:
        chosen = [_adapter(known, wanted, listing) for wanted in adapters]
    if not chosen:
        raise AdapterError(
            f"no GPU adapter was found; name another by adapters= (gridwise worker: --adapter), or set "
            f"GRIDWISE_DASK_CPU=1; there are:\n{listing}"
        )
    return chosen


def _adapter(known: list[AdapterDescription], wanted: int | str, listing: str) -> AdapterDescription:
    text = str(wanted).strip()
    if text.isdecimal():
        found = [adapter for adapter in known if str(adapter.index) == text]
    else:
        found = [adapter for adapter in known if text and text.casefold() in str(adapter).casefold()]
    if not found:
        raise AdapterError(f"adapter {wanted!r} does not exist; there are:\n{listing}")
    return found[0]


def tagged(adapters: list[AdapterDescription]) -> dict[str, AdapterDescription]:
    """Return adapters of this host by the resource of their worker alone."""
    host, seen = socket.gethostname(), Counter[int]()
    result: dict[str, AdapterDescription] = {}
    for adapter in adapters:
        seen[adapter.index] += 1
        result[gpu_tag(host, adapter.index, seen[adapter.index])] = adapter
    return result


def worker_options(tag: str, adapter: AdapterDescription, count: int, threads: int | None = None) -> dict[str, Any]:
    """Return the options of the Nanny of a worker: its name, resources, threads and environment.

    Parameters
    ----------
    tag : str
        From `tagged`.
    adapter : AdapterDescription
    count : int
        Number of workers on this host, which share its cores.
    threads : int, optional
        By default up to 4.
    """
    cores = os.cpu_count() or 1
    environment = {"GRIDWISE_ADAPTER": str(adapter.index)}
    if settings.copy_threads() is None:
        # All workers' threads together keep the host's memory busy; more of them take it from each other.
        environment["GRIDWISE_COPY_THREADS"] = str(max(2, min(_COPY_THREADS, cores // count)))
    if adapter.type not in _GPU_TYPES:
        environment["GRIDWISE_DASK_CPU"] = "1"  # this adapter was named
    return {
        **NO_DASHBOARD,
        "name": tag,
        "nthreads": max(1, min(_MOST_THREADS, cores // count)) if threads is None else integer("threads", threads, 1),
        "resources": {RESOURCE: 1, tag: 1},
        "env": environment,
    }


def memory_options(
    memory_limit: str | int | float, device_memory_limit: str | int | None, count: int
) -> dict[str, Any]:
    """Return the options of a Nanny for the memory of its worker.

    Parameters
    ----------
    memory_limit : str or number
        Of host memory; "auto" shares the host's evenly.
    device_memory_limit : str or int, optional
        See `local_cluster`.
    count : int
        Number of workers on this host.
    """
    if memory_limit == "auto":
        memory_limit = MEMORY_LIMIT // count
    elif isinstance(memory_limit, str):
        memory_limit = _bytes("memory_limit", memory_limit)
    device_bytes = None if device_memory_limit is None else _bytes("device_memory_limit", device_memory_limit)
    host_bytes = parse_memory_limit(memory_limit, 1, count, logger=logger) or MEMORY_LIMIT // count
    target: float = dask.config.get("distributed.worker.memory.target") or 1.0
    limits = {"device_limit_bytes": device_bytes, "host_limit_bytes": int(host_bytes * target)}
    return {"memory_limit": host_bytes, "data": (GpuSpill, limits)}


def _bytes(name: str, value: str | int) -> int:
    try:
        found = parse_bytes(value)
    except ValueError:
        found = -1
    if found < 0:
        raise ArgumentError(f"{name}={value!r} must be bytes, such as '60GiB'")
    return found


# ---- TLS


def check_address(address: str, *, insecure: bool, remedy: str) -> str:
    """Return an address with its protocol; a scheduler file's path gives the address in it.

    Parameters
    ----------
    address : str
        ``HOST:PORT`` (which means TCP), ``tcp://…``, ``tls://…``, ``inproc://…``, or the path of a scheduler file.
    insecure : bool
        Whether addresses without TLS may be outside of this host.
    remedy : str
        For the message: how the caller allows it.

    Raises
    ------
    ClusterError
        For an address without TLS that is not this host's loopback, unless `insecure`: who reaches such a port can run
        any code on all workers.
    """
    if address.endswith(".json"):
        address = _address_in(Path(address))
    protocol, separator, place = address.partition("://")
    if not separator:
        protocol, place = "tcp", address
    address = f"{protocol}://{place}"
    if protocol in ("tcp", "tls") and not place.rpartition(":")[2].isdecimal():
        raise ArgumentError(f"{address} has no port; give HOST:PORT, such as {protocol}://head:8786")
    if protocol in ("tls", "inproc") or insecure or _is_loopback(place):
        return address
    raise ClusterError(
        f"{address} is neither TLS nor on this host: whoever reaches it can run any code on all workers. Use tls://… "
        f"with certificates (docs/howto/distributed.md), or {remedy} in a network that you trust"
    )


def _address_in(path: Path) -> str:
    try:
        found = json.loads(read_file(path))["address"]
    except OSError as error:
        raise ArgumentError(f"the scheduler file {path} cannot be read: {error.strerror}") from error
    except (ValueError, KeyError, TypeError) as error:
        raise ArgumentError(f"{path} is no scheduler file of Dask: it has no address ({error})") from error
    return str(found)


def _is_loopback(place: str) -> bool:
    host = place.rpartition(":")[0] if not place.endswith("]") else place
    host = host.strip("[]").casefold()
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


# ---- clients


class GpuClient(Client):
    """A client whose errors about workers and the scheduler are `ClusterError`; what a chunk raises keeps its type."""

    def get(self, *arguments: Any, **options: Any) -> Any:
        """Compute, as ``x.compute()`` does."""
        with _cluster_errors():
            return super().get(*arguments, **options)

    def gather(self, *arguments: Any, **options: Any) -> Any:
        """Return the results of futures."""
        with _cluster_errors():
            return super().gather(*arguments, **options)


@contextlib.contextmanager
def _cluster_errors() -> Generator[None]:
    try:
        yield
    except KilledWorker as error:
        raise ClusterError(
            f"the work {error.task!r} was given up, because every worker that took it died: {error}"
        ) from error
    except NoValidWorkerError as error:
        raise ClusterError(f"no worker of the cluster can take the work: {error}") from error
    except ClosedClientError as error:
        raise ClusterError(f"this client was closed, or its scheduler is gone; connect again ({error})") from error
    except CancelledError as error:
        raise ClusterError(
            f"the work was cancelled: the scheduler is gone, or this client was closed ({error}). Nothing is left of "
            f"what the cluster held; start it again, and compute from the source"
        ) from error


def connect(
    address_or_cluster: str | Any,
    *,
    security: Security | None = None,
    insecure: bool = False,
    allow_versions: bool = False,
    timeout_s: float = 30.0,
) -> GpuClient:
    """Return a client of a Dask cluster whose workers are prepared for this package.

    Every worker, also one that comes later, gets a plugin: it makes the worker's device and registers how Arrays
    travel. ``optimization.fuse.active`` is set to False in this process and in the scheduler's, which optimizes graphs:
    Dask's fusion of tasks drops the annotations that bind work to workers with a GPU, and tasks of its own P2P shuffle.

    Parameters
    ----------
    address_or_cluster : str or cluster
        ``"tls://head:8786"``, the path of a scheduler file, or a cluster such as that of `local_cluster`.
    security : distributed.Security, optional
        Certificates; by default those of the cluster, or those of Dask's configuration.
    insecure : bool, default False
        Whether an address outside of this host may be without TLS.
    allow_versions : bool, default False
        Whether workers may have other versions of Python, gridwise_py, wgpu, numpy or Dask.
    timeout_s : float, default 30
        How long to wait for the scheduler, and for a first worker with a GPU.

    Returns
    -------
    GpuClient
        A `distributed.Client`.

    Raises
    ------
    ClusterError
        If the address is without TLS and outside of this host, the scheduler does not answer, no worker has a GPU, or
        versions differ; the message names those of each side.
    """
    address = address_or_cluster
    if not isinstance(address, str):
        address = getattr(address_or_cluster, "scheduler_address", None)
    if not isinstance(address, str):
        raise ArgumentError(f"gwd.connect() takes the address of a scheduler or a cluster, not {address_or_cluster!r}")
    address = check_address(address, insecure=insecure, remedy="pass insecure=True")
    target = address if isinstance(address_or_cluster, str) else address_or_cluster

    def connected() -> GpuClient:
        client = GpuClient(target, security=security, timeout=timeout_s)
        try:
            _prepare(client, allow_versions, timeout_s)
        except BaseException:
            client.close()
            raise
        return client

    try:
        return _within(2 * timeout_s + _GRACE_S, connected)
    except ClusterError:
        raise
    except (OSError, RuntimeError, TypeError) as error:  # RuntimeError: a closed cluster; TypeError: no certificates
        raise ClusterError(f"no scheduler answers at {address} within {timeout_s:g} s: {error}") from error


def _within(limit_s: float, function: Callable[[], Result]) -> Result:
    """Return what a function returns; raise TimeoutError if it takes longer.

    Dask's own limits do not cover all that a client waits for, such as the handshake of a server that speaks another
    protocol.
    """
    found: Future[Result] = Future()

    def call() -> None:
        try:
            found.set_result(function())
        except BaseException as error:
            found.set_exception(error)

    threading.Thread(target=call, name="gridwise connect", daemon=True).start()
    try:
        return found.result(limit_s)
    except FutureTimeoutError as error:
        if found.done():
            raise
        raise TimeoutError(f"no end after {limit_s:g} s") from error


def _prepare(client: Client, allow_versions: bool, timeout_s: float) -> None:
    register()
    deadline = time.monotonic() + timeout_s
    while not gpu_workers(client):
        if time.monotonic() > deadline:
            raise ClusterError(no_gpu_message(client))
        time.sleep(_POLL_S)
    own = versions()
    if not allow_versions:
        _check_versions(client, own)
    client.register_plugin(GpuPlugin(None if allow_versions else own))
    _leave_tasks_apart()
    run_on_scheduler: Any = client.run_on_scheduler
    run_on_scheduler(_leave_tasks_apart)


def _leave_tasks_apart() -> None:
    dask.config.set({"optimization.fuse.active": False})


def _check_versions(client: Client, own: Mapping[str, str]) -> None:
    names = {address: str(one["name"]) for address, one in workers_of(client).items()}
    run: Any = client.run
    found: dict[str, Any] = run(versions, on_error="return")
    failed = {names.get(a, a): error for a, error in found.items() if isinstance(error, BaseException)}
    if failed:
        raise ClusterError("; ".join(f"worker {name} has no gridwise_py: {error}" for name, error in failed.items()))
    differing = differing_versions({"this client": own, **{names.get(a, a): v for a, v in found.items()}})
    if differing:
        raise ClusterError(
            "versions differ: " + "; ".join(differing) + ". Install the same on all, or pass allow_versions=True"
        )
