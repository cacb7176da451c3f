"""``gridwise worker``: the workers of this host's GPUs, for a Dask cluster."""

from __future__ import annotations

import click

from .. import extras
from ..errors import ArgumentError
from .options import Seconds
from .output import note


@click.command(short_help="Join a Dask cluster with a worker per GPU of this host.")
@click.argument("address")
@click.option(
    "--adapter", "adapters", multiple=True, metavar="INDEX|NAME",
    help="An adapter, by index or a part of its line in `gridwise info`; may be repeated. By default all GPUs.",
)  # fmt: skip
@click.option("--threads", type=click.IntRange(1), help="Threads of each worker; by default up to 4.")
@click.option("--memory-limit", default="auto", show_default=True, help="Host memory of each worker, such as 64GiB.")
@click.option("--device-memory-limit", help="Most bytes of Arrays on each GPU; others move to host memory.")
@click.option("--local-directory", type=click.Path(file_okay=False), help="Folder for what does not fit the memory.")
@click.option("--tls-ca", type=click.Path(exists=True, dir_okay=False), help="The cluster's certificate authority.")
@click.option("--tls-cert", type=click.Path(exists=True, dir_okay=False), help="This host's certificate.")
@click.option("--tls-key", type=click.Path(exists=True, dir_okay=False), help="Its key.")
@click.option("--insecure", is_flag=True, help="Allow an address without TLS outside of this host.")
@click.option(
    "--death-timeout", "death_timeout_s", type=Seconds(0, min_open=True), default=60.0, show_default=True,
    help="End after so many seconds without a scheduler.",
)  # fmt: skip
def worker(
    address: str,
    adapters: tuple[str, ...],
    threads: int | None,
    memory_limit: str,
    device_memory_limit: str | None,
    local_directory: str | None,
    tls_ca: str | None,
    tls_cert: str | None,
    tls_key: str | None,
    insecure: bool,
    death_timeout_s: float,
) -> None:
    """Join the Dask cluster at ADDRESS with a worker process per GPU of this host, until it ends.

    ADDRESS is tls://HOST:PORT, or the scheduler's file. A process that dies is started again. Ctrl-C and SIGTERM end
    all. Run one per host, under systemd, Slurm or Kubernetes.
    """
    try:
        extras.check_dask_is_installed("gridwise worker")
    except ImportError as error:
        raise click.UsageError(str(error)) from error
    from ..dask.serving import Certificates, serve

    certificates = Certificates(tls_ca, tls_cert, tls_key) if tls_ca and tls_cert and tls_key else None
    if certificates is None and (tls_ca or tls_cert or tls_key):
        raise ArgumentError("--tls-ca, --tls-cert and --tls-key belong together: give all three, or none")
    serve(
        address,
        list(adapters) or "all",
        threads=threads,
        memory_limit=memory_limit,
        device_memory_limit=device_memory_limit,
        local_directory=local_directory,
        certificates=certificates,
        insecure=insecure,
        death_timeout_s=death_timeout_s,
        say=note,
    )
