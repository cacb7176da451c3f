"""Invented fleets: devices with noise, some of them sick, as documents of a fleet and as results files."""

from __future__ import annotations

import json
from functools import lru_cache

import numpy as np

from gridwise_py.bench.cases.mode import Mode
from gridwise_py.fleet.judge import judge
from gridwise_py.fleet.model import Fleet, FleetCase, Measured, Member, Status
from helpers.commands import gridwise
from helpers.results import CONTEXT, DEVICE, document, measurement

KINDS = ("memory", "other", "host")


def fleet(
    devices, seed=0, *, cases=24, device_std=0.005, case_std=0.004, sick=None, rounds=1, shaken=None, group="a" * 16,
    half=0.003, canary=None, prefix="node",
):  # fmt: skip
    """A fleet that was not judged. `sick` maps a device's number to (kind of cases or "all", share).

    `shaken` maps one to the share by which its second round is slower; `canary` maps one to the canary's ratio.
    """
    rng = np.random.default_rng(seed)
    kinds = [KINDS[k * len(KINDS) // cases] for k in range(cases)]
    listed = tuple(
        FleetCase(
            name=f"case {k:02}", mode="latency" if kind == "host" else "batch", form="f" * 16,
            moved_bytes=10**9 if kind == "memory" else 10**7,
        )
        for k, kind in enumerate(kinds)
    )  # fmt: skip
    members = []
    for number in range(devices):
        level = rng.normal(0, device_std)
        measured = []
        for k, kind in enumerate(kinds):
            log = level + rng.normal(0, case_std)
            which, share = (sick or {}).get(number, (None, 0.0))
            log += np.log1p(share) if which in ("all", kind) else 0.0
            visits = [1e5 * np.exp(log + (rng.normal(0, 0.001) if rounds > 1 else 0)) for _ in range(rounds)]
            if number in (shaken or {}):
                visits[1] *= 1 + shaken[number]
            measured.append(Measured(case=k, rounds_ns=tuple(visits), half=half))
        members.append(
            Member(
                id=f"{prefix}{number // 8}-gpu{number % 8}", host=f"{prefix}{number // 8}", adapter="invented",
                adapter_type="DiscreteGPU", backend="Vulkan", driver="1", gridwise_py="0", group=group,
                status=Status.COMPLETE, canary_ns=None if canary is None else 2e4 * canary.get(number, 1.0),
                measured=tuple(measured),
            )
        )  # fmt: skip
    return Fleet(cases=listed, members=tuple(members), planned=tuple(member.id for member in members))


def fleet_page(folder, made):
    """Return the page that ``gridwise report`` makes of a fleet, which is judged first."""
    text = json.dumps(judge(made).to_json()).replace("\\ud800", "?")  # half of a character is in no file
    (folder / "today.fleet.json").write_text(text)
    done = gridwise("report", folder / "today.fleet.json", "-o", folder / "fleet.html")
    assert done.exit_code == 0, done.output
    return (folder / "fleet.html").read_text(encoding="utf-8")


def results(factor=1.0, *, seed=0, wrong=False, error=None, device=None, modes=(Mode.BATCH,), **fields):
    """The results document of a device, as JSON data: five sizes of two primitives, slower by a factor."""
    found = json.loads(_results(factor, seed, error, modes))
    found |= {"device": {**DEVICE, **(device or {})}, "context": {**CONTEXT, "suite": "quick"}, **fields}
    if wrong:
        found["results"][0] |= {"correct": False, "mismatch": "item 3"}
    return found


@lru_cache
def _results(factor, seed, error, modes):
    if error is not None:
        return json.dumps(document([measurement(n=3, error=error, kernels=(), whole={}, ticks=())]))
    rng = np.random.default_rng(seed)
    made = []
    for primitive in ("copy", "scan"):
        for power in (10, 12, 14, 16, 18):
            for mode in modes:
                scale_ns = factor * 1000.0 * power * np.exp(rng.normal(0, 0.002))
                made.append(measurement(primitive, 1 << power, mode, scale_ns=float(scale_ns), count=5))
    return json.dumps(document(made))
