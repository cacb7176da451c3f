"""Joules per call: two kernels of which one does a tenth more are told apart, and a short call has no number.

"base" and "twin" are the same chains of multiply-adds, "more" has 10 % more of them, so it takes 10 % more energy at
the same power. "once" is one call of "base", which ends before the sensor steps. A copy and a scan of 2^26 items are
measured, too.

Run: python benchmarks/energy.py [--window 2] [--rounds 6] [--json FILE]
"""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click
import numpy as np

import gridwise_py as gw
from gridwise_py.planning.shaders import compose

ROUNDS = 2560
WORKGROUPS = 4096


def chains(device: Any, rounds: int) -> gw.BoundCall[Any]:
    """Return a call of so many rounds of multiply-adds."""
    text = compose("fma.wgsl", datatype="f32")
    kernel = gw.Kernel(device, text, {"state": "read_write"}, WORKGROUPS, constants={"ROUNDS": rounds})
    return kernel.bind(state=gw.zeros(64, "f32", device))


def as_data(result: gw.EnergyResult) -> dict[str, Any]:
    """Return a result as JSON data, with the mean power of each window."""
    return {**asdict(result), "windows": [{**asdict(w), "power_w": w.power_w} for w in result.windows]}


@click.command()
@click.option("--window", "window_s", default=2.0, show_default=True, help="Seconds of a window.")
@click.option("--rounds", default=6, show_default=True, help="Windows of each call.")
@click.option("--n", default=1 << 26, show_default=True, help="Items of the copy and the scan.")
@click.option("--json", "path", type=click.Path(path_type=Path), help="Write the figures to a file.")
def main(window_s: float, rounds: int, n: int, path: Path | None) -> None:
    """Print joules per call, and what is told apart."""
    device = gw.request_device()
    calls = {"base": chains(device, ROUNDS), "more": chains(device, ROUNDS * 11 // 10), "twin": chains(device, ROUNDS)}
    compared = gw.compare_energy(calls, window_s=window_s, rounds=rounds)
    print(compared)
    once = gw.measure_energy(calls["base"], windows=1, calls=1)
    print(f"once: {once}")
    x = gw.asarray(np.random.default_rng(0).integers(0, 1 << 32, n, dtype=np.uint32), device)
    memory = [
        gw.measure_energy(primitive, input=x, window_s=window_s, windows=3)
        for primitive in (gw.Copy(device), gw.Scan(device))
    ]
    for result in memory:
        print(result)
    verdicts = dict(compared.verdicts)
    if compared.results["base"].joules is not None:
        told = verdicts["more"] == "more" and verdicts["twin"] != "more" and once.joules is None
        print("10 % more told apart, the twin not, the short one None:", "yes" if told else "NO")
    if path is not None:
        found = {
            "device": device.adapter.info["device"],
            "results": {name: as_data(result) for name, result in compared.results.items()},
            "ratios": dict(compared.ratios), "verdicts": verdicts, "once": as_data(once),
            "memory": [as_data(result) for result in memory],
        }  # fmt: skip
        path.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
