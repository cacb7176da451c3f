"""Whether `gridwise fleet` finds a GPU that shares its time with another program, on a host with several GPUs.

    python benchmarks/fleet_disturbed.py [--rounds 2] [--minutes 5] [--json OUT]

Measures all GPUs undisturbed, which is the baseline, then while another process keeps one of them at work, then again
undisturbed. Against the baseline, that GPU has to be slow in the second fleet and no other, and the third has to be
healthy. Without the baseline, fewer than five GPUs have to be alone (mark M7). Needs the extras dask and bench.

With --json, the document is written after each fleet, and the fleets' own documents lie beside it: what comes out can
be judged again without the GPUs. It ends with 0 if all is as expected, 1 if something is not, 3 if a step hung, 4 if
something is missing.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from steps import Steps

import gridwise_py as gw
import gridwise_py.dask as gwd
from gridwise_py.bench.sweep.axes import collect_axes
from gridwise_py.bench.sweep.suite import DEFAULT_AXES, Sweep
from gridwise_py.fleet import request_of, run_fleet
from gridwise_py.fleet.judge import LEAST_PEERS, judge
from gridwise_py.fleet.model import Fleet


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
    try:
        if not ready.wait(60):
            raise RuntimeError(f"the process that disturbs did not begin; it ended with {process.exitcode}")
        yield
        if not process.is_alive():
            raise RuntimeError(f"the process that disturbs ended with {process.exitcode} before the fleet did")
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


def main() -> int:
    """Measure the three fleets."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--n", default="2^24,2^26")
    parser.add_argument("--sampling-s", type=float, default=0.5, help="of a case, at most")
    parser.add_argument("--disturb-items", type=int, default=1 << 27, help="that the other program sorts at a time")
    parser.add_argument("--adapters", type=int, nargs="*", help="by default all GPUs")
    parser.add_argument("--minutes", type=float, default=5.0, help="after these, no fleet begins")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    axes = collect_axes([f"n={options.n}", "datatype=u32,f32", "mode=batch"], {}, DEFAULT_AXES)
    made = request_of([Sweep(("copy", "reduce", "scan", "sort"), axes)], rounds=options.rounds)
    request = replace(made, protocol=replace(made.protocol, warmup_s=0.2, timeout_s=options.sampling_s))
    steps = Steps(options.json, options.minutes, rounds=options.rounds, visits=len(request.jobs))
    document = steps.document

    def measured(name: str, baseline: Fleet | None = None) -> Fleet:
        path = None if options.json is None else options.json.with_name(f"{options.json.stem}.{name}.fleet.json")
        fleet = run_fleet(client, request, baseline=baseline, path=path, device_timeout_s=90)
        document[name] = shown(fleet)
        for member in fleet.members:
            ratio = "" if member.ratio is None else f" {member.ratio:.3f}"
            steps.say(f"    {member.id}: {member.status}, {member.verdict}{ratio} {member.error or ''}")
        if not fleet.complete:
            raise RuntimeError("a device is not complete")
        return fleet

    def disturbed_fleet() -> Fleet:
        with disturbed(adapter, options.disturb_items):
            return measured("disturbed", baseline)

    today: Fleet | None = None
    again: Fleet | None = None
    with gwd.local_cluster(options.adapters or "all") as cluster, gwd.connect(cluster, timeout_s=60) as client:
        devices = steps.run("the devices", lambda: gwd.identities(client), 60.0)
        if not devices:
            return 4
        sick = devices[0]
        adapter = int((sick.tag or "/0").rpartition("/")[2].partition("#")[0])
        document["devices"], document["sick"] = [each.id for each in devices], sick.id
        # What the mark needs comes first: a run that ends early has it.
        baseline = steps.run("baseline", lambda: measured("baseline"), 400.0)
        if baseline is not None:
            today = steps.run("disturbed", disturbed_fleet, 400.0)
            again = steps.run("undisturbed", lambda: measured("undisturbed", baseline), 400.0)
    if today is not None:
        slow = [member.id for member in today.members if member.verdict == "slow"]
        without = sorted({str(member.verdict) for member in judge(today).members})
        document["without_baseline"] = without
        document["finds_the_disturbed_one"] = slow == [sick.id]
        document["alone_without_baseline"] = len(today.members) >= LEAST_PEERS or without == ["alone"]
    if again is not None:
        document["healthy_is_healthy"] = all(member.verdict in ("as peers", "fast") for member in again.members)
    asked = ("finds_the_disturbed_one", "alone_without_baseline", "healthy_is_healthy")
    document["as_expected"] = None if any(name not in document for name in asked) else all(map(document.get, asked))
    steps.save()
    for name in asked:
        print(f"M7 {name.replace('_', ' ')}: {document.get(name, 'not measured')}")
    for name, error in document["errors"].items():
        print(f"FAILED {name}: {error}")
    if document["as_expected"] is None or not steps.is_whole:
        return 4
    return int(not document["as_expected"])


if __name__ == "__main__":
    sys.exit(main())
