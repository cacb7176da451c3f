"""Is one of these GPUs bad? One suite on every GPU of this host, each judged against the others.

    python examples/fleet.py

A process per GPU runs the suite. On a machine without a GPU, two processes share its software adapter. Needs the extras
`dask` and `bench`; docs/howto/fleet.md has the command, and fleets from files without Dask.
"""

import tempfile
from dataclasses import replace
from pathlib import Path

import gridwise_py as gw
import gridwise_py.dask as gwd
from gridwise_py.bench.sweep.axes import collect_axes
from gridwise_py.bench.sweep.suite import DEFAULT_AXES, Sweep
from gridwise_py.fleet import request_of, run_fleet


def main() -> None:
    """Measure, and print what stands out."""
    is_gpu = any(adapter.type != "CPU" for adapter in gw.list_adapters())
    # A short suite; run_fleet(client, "quick") takes one by its name.
    axes = collect_axes(["n=2^16" if is_gpu else "n=2^10", "datatype=u32", "mode=batch"], {}, DEFAULT_AXES)
    request = request_of([Sweep(("copy", "reduce", "scan"), axes)], rounds=2)
    request = replace(request, protocol=replace(request.protocol, warmup_s=0.05, timeout_s=0.05))
    with (
        tempfile.TemporaryDirectory() as folder,
        gwd.local_cluster("all" if is_gpu else [0, 0]) as cluster,
        gwd.connect(cluster) as client,
    ):
        fleet = run_fleet(client, request, path=Path(folder, "today.fleet.json"))
        print(f"{len(fleet.members)} devices, {len(fleet.cases)} cases, complete: {fleet.complete}")
        for device in fleet.members:
            print(f"{device.id}: {device.verdict}, results in {device.file}")
        for device in fleet.outliers:
            print(f"look at {device.id}: {device.ratio:.2f} times, because of {', '.join(device.because)}")


if __name__ == "__main__":
    main()
