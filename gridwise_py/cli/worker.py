"""``gridwise worker``: the workers of this host's GPUs, for a Dask cluster."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from .. import extras
from .options import File, Seconds, certificates_of, tls_options
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
@click.option("--local-directory", type=File(folder=True), help="Folder for what does not fit the memory.")
@tls_options
@click.option("--insecure", is_flag=True, help="Allow an address without TLS outside of this host.")
@click.option(
    "--death-timeout", "death_timeout_s", type=Seconds(0, min_open=True), default=60.0, show_default=True,
    help="End after so many seconds without a scheduler.",
)  # fmt: skip
def worker(address: str, adapters: tuple[str, ...], local_directory: Path | None, **options: Any) -> None:
    """Join the Dask cluster at ADDRESS with a worker process per GPU of this host, until it ends.

    ADDRESS is tls://HOST:PORT, or the scheduler's file. A process that dies is started again. Ctrl-C and SIGTERM end
    all. Run one per host, under systemd, Slurm or Kubernetes.
    """
    try:
        extras.check_dask_is_installed("gridwise worker")
    except ImportError as error:
        raise click.UsageError(str(error)) from error
    from ..dask.serving import serve

    folder = None if local_directory is None else str(local_directory)
    certificates = certificates_of(options)
    serve(address, list(adapters) or "all", local_directory=folder, certificates=certificates, say=note, **options)
