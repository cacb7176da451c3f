"""The worker processes of a host, as ``gridwise worker`` runs them: a Nanny per GPU, until all have ended."""

# Dask's annotations leave many types open:
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from distributed import Nanny, Security

from ..errors import ClusterError
from .cluster import check_address, chosen_adapters, memory_options, tagged, worker_options


@dataclass(frozen=True)
class Certificates:
    """Paths of PEM files: the cluster's own authority, and this host's certificate and key."""

    authority: str
    certificate: str
    key: str

    def security(self) -> Security:
        """Return what Dask takes; it refuses connections without TLS."""
        return Security(
            tls_ca_file=self.authority, require_encryption=True,
            tls_worker_cert=self.certificate, tls_worker_key=self.key,
            tls_client_cert=self.certificate, tls_client_key=self.key,
        )  # fmt: skip


@dataclass(frozen=True)
class WorkerLimits:
    """What each worker may use: threads, memory of its host and its GPU, and a folder for what does not fit."""

    threads: int | None
    memory_limit: str
    device_memory_limit: str | None
    local_directory: str | None


def serve(
    address: str,
    adapters: Iterable[int | str] | str,
    limits: WorkerLimits,
    *,
    certificates: Certificates | None,
    insecure: bool,
    death_timeout_s: float,
    say: Callable[[str], None],
) -> None:
    """Run the workers until the scheduler ends them or a signal does.

    Parameters
    ----------
    address : str
        As in `check_address`.
    adapters : "all", or iterable of int or str
        As in `chosen_adapters`.
    limits : WorkerLimits
    certificates : Certificates, optional
        By default those of Dask's configuration.
    insecure : bool
        Whether an address outside of this host may be without TLS.
    death_timeout_s : float
        How long a worker looks for the scheduler before it ends.
    say : callable
        Prints a line.

    Raises
    ------
    ClusterError
        If the address is refused, or no worker could start.
    """
    checked = check_address(address, insecure=insecure, remedy="give --insecure")
    chosen = tagged(chosen_adapters(adapters))
    options = memory_options(limits.memory_limit, limits.device_memory_limit, len(chosen))
    options["death_timeout"] = death_timeout_s
    if limits.local_directory is not None:
        options["local_directory"] = limits.local_directory
    if certificates is not None:
        options["security"] = certificates.security()
    every = [
        {**options, **worker_options(tag, adapter, len(chosen), limits.threads)} for tag, adapter in chosen.items()
    ]
    for tag, adapter in chosen.items():
        say(f"{tag}: {adapter}, joins {checked}")
    asyncio.run(_run(checked, every))


def _reasons(error: BaseException) -> str:
    """Return what Dask says, and why: its own message is "Nanny failed to start."."""
    said: list[str] = []
    found: BaseException | None = error
    while found is not None:
        if (text := str(found)) and text not in said:
            said.append(text)
        found = found.__cause__
    return "; ".join(said)


async def _run(address: str, every: list[dict[str, Any]]) -> None:
    nannies = [Nanny(address, **options) for options in every]
    task = asyncio.current_task()
    assert task is not None
    loop = asyncio.get_running_loop()
    with contextlib.suppress(NotImplementedError):  # Windows: Ctrl-C interrupts all the same
        loop.add_signal_handler(signal.SIGTERM, task.cancel)
    try:
        started = await asyncio.gather(*nannies, return_exceptions=True)
        failed = [error for error in started if isinstance(error, BaseException)]
        if failed:
            raise ClusterError(f"no worker joined the cluster at {address}: {_reasons(failed[0])}") from failed[0]
        await asyncio.gather(*(nanny.finished() for nanny in nannies))
    except asyncio.CancelledError:
        pass  # SIGTERM: an orderly end
    finally:
        await asyncio.gather(*(nanny.close(timeout=5) for nanny in nannies), return_exceptions=True)
