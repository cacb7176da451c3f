"""``gridwise worker``: the workers of this host's GPUs, for a Dask cluster."""

from __future__ import annotations

from typing import Any

import click

from .options import File, Seconds, certificate_options, certificates_of, check_dask
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
@certificate_options
@click.option(
    "--death-timeout", "death_timeout_s", type=Seconds(0, min_open=True), default=60.0, show_default=True,
    help="End after so many seconds without a scheduler.",
)  # fmt: skip
def worker(address: str, adapters: tuple[str, ...], **options: Any) -> None:
    """Join the Dask cluster at ADDRESS with a worker process per GPU of this host, until it ends.

    ADDRESS is tls://HOST:PORT, or the scheduler's file. A process that dies is started again. Ctrl-C and SIGTERM end
    all. Run one per host, under systemd, Slurm or Kubernetes.
    """
    check_dask("gridwise worker")
    from ..dask.serving import WorkerLimits, serve

    folder = options["local_directory"]
    limits = WorkerLimits(
        options["threads"],
        options["memory_limit"],
        options["device_memory_limit"],
        folder and str(folder),
    )
    serve(
        address, list(adapters) or "all", limits, certificates=certificates_of(options),
        insecure=options["insecure"], death_timeout_s=options["death_timeout_s"], say=note,
    )  # fmt: skip
