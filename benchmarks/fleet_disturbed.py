"""Whether `gridwise fleet` finds a GPU that shares its time with another program, on a host with several GPUs.

    python benchmarks/fleet_disturbed.py [--rounds 3] [--json OUT]

Measures all GPUs undisturbed, which is the baseline, then again undisturbed, then while another process keeps one of
them at work. Against the baseline, the second fleet has to be healthy, and in the third that GPU has to be slow and no
other. Without the baseline, fewer than five GPUs have to be alone. Needs the extras dask and bench.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

import gridwise_py as gw
import gridwise_py.dask as gwd
from gridwise_py.bench.fleet.judge import LEAST_PEERS, judge
from gridwise_py.bench.fleet.model import Fleet
from gridwise_py.bench.sweep.axes import collect_axes
from gridwise_py.bench.sweep.suite import DEFAULT_AXES, Sweep
from gridwise_py.dask.fleet import request_of


def keep_at_work(adapter: int, items: int, ready: Any, stop: Any) -> None:
    """Sort on an adapter until told to stop."""
    device = gw.request_device(adapter)
    keys = gw.asarray(np.random.default_rng(0).integers(0, 1 << 32, items, dtype=np.uint32), device)
    sort = gw.Sort(device, "u32")
    sort.execute(input=keys).output.to_numpy()
    ready.set()
    while not stop.is_set():
        for _ in range(8):
            run = sort.execute(input=keys)
        run.output[:1].to_numpy()


@contextmanager
def disturbed(adapter: int, items: int) -> Iterator[None]:
    """Keep an adapter at work by another process."""
    context = multiprocessing.get_context("spawn")
    ready, stop = context.Event(), context.Event()
    process = context.Process(target=keep_at_work, args=(adapter, items, ready, stop), daemon=True)
    process.start()
    if not ready.wait(120):
        sys.exit("the process that disturbs did not begin")
    try:
        yield
    finally:
        stop.set()
        process.join(30)
        process.kill()


def shown(fleet: Fleet) -> list[dict[str, Any]]:
    """Return what was found of each device."""
    return [
        {"id": member.id, "verdict": member.verdict, "ratio": member.ratio, "low": member.low, "high": member.high,
         "cases_slow": member.cases_slow, "cases": member.cases, "because": list(member.because)}
        for member in fleet.members
    ]  # fmt: skip


def main() -> None:
    """Measure the three fleets."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--n", default="2^24,2^26")
    parser.add_argument("--disturb-items", type=int, default=1 << 27, help="that the other program sorts at a time")
    parser.add_argument("--adapters", type=int, nargs="*", help="by default all GPUs")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    axes = collect_axes([f"n={options.n}", "datatype=u32,f32", "mode=batch"], {}, DEFAULT_AXES)
    request = request_of([Sweep(("copy", "reduce", "scan", "sort"), axes)], rounds=options.rounds)
    with gwd.local_cluster(options.adapters or "all") as cluster, gwd.connect(cluster) as client:
        begin_s = time.perf_counter()
        baseline = gwd.run_fleet(client, request)
        fleet_s = time.perf_counter() - begin_s
        again = gwd.run_fleet(client, request, baseline=baseline)
        sick = gwd.identities(client)[0]
        adapter = int((sick.tag or "/0").rpartition("/")[2].partition("#")[0])
        with disturbed(adapter, options.disturb_items):
            today = gwd.run_fleet(client, request, baseline=baseline)
    slow = [member.id for member in today.members if member.verdict == "slow"]
    without = {str(member.verdict) for member in judge(today).members}
    report = {
        "devices": len(today.members), "cases": len(today.cases), "rounds": options.rounds,
        "fleet_s": round(fleet_s, 1), "disturbed": sick.id,
        "undisturbed": shown(again), "today": shown(today), "without_baseline": sorted(without),
        "as_expected": slow == [sick.id]
        and all(member.verdict in ("as peers", "fast") for member in again.members)
        and (len(today.members) >= LEAST_PEERS or without == {"alone"}),
    }  # fmt: skip
    text = json.dumps(report, indent=1)
    print(text)
    if options.json is not None:
        options.json.write_text(text + "\n", encoding="utf-8")
    sys.exit(not report["as_expected"])


if __name__ == "__main__":
    main()
