"""Random calls of every primitive, compared with numpy: what a suite of chosen cases does not think of.

As a program: ``PYTHONPATH=tests python -m helpers.random_plans [--plans 10000] [--minutes 30] [--first 0] [--seed 0]
[--json FILE]``.
A plan follows from the seed and its number alone, so that a run that was stopped goes on with ``--first``, and a wrong
one is made again with ``--first N --plans 1``. With ``--json`` what the file already counts is not tried again. Exit
code 4 if an answer was wrong.
"""

from __future__ import annotations

import json
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import click
import numpy as np

import gridwise_py as gw
from gridwise_py.bench.results.context import run_context
from gridwise_py.primitives import REGISTRY
from gridwise_py.runtime.context import context_of
from gridwise_py.storage.json_files import write_json
from helpers.every_primitive import PARTED_LENGTHS, Call, axes, fewer_bindings, is_allowed, is_possible

#: How many times as many plans a primitive has as others.
_WEIGHTS = {"reduce": 6, "scan": 8, "sort": 2, "sort_pairs": 2, "argsort": 2, "matmul": 3}
_MOST = 1 << 17
#: So many plans in a row are of one configuration, with other lengths, offsets and items: kernels take long to compile.
_PER_CONFIGURATION = 5


def draw(device: Any, seed: int, number: int) -> Call:
    """Return the call of that number."""
    config = np.random.default_rng([seed, 0, number // _PER_CONFIGURATION])
    weights = np.array([_WEIGHTS.get(name, 1) for name in REGISTRY], float)
    name = str(config.choice(list(REGISTRY), p=weights / weights.sum()))
    space, row = axes(name), None
    while row is None or not (is_allowed(row) and is_possible(device, row)):
        row = {"name": name} | {key: values[int(config.integers(len(values)))] for key, values in space.items()}
    rng = np.random.default_rng([seed, 1, number])
    most = max(PARTED_LENGTHS.get(row["form"], (_MOST,)))
    return Call(device, row, _length(rng, 256, most), int(rng.integers(1 << 32)))


def _length(rng: np.random.Generator, tile: int, most: int) -> int:
    """Near a multiple of a tile, of a power of two, or of any magnitude."""
    kind = rng.integers(4)
    if kind == 0:
        n = tile * int(rng.choice((1, 2, 3, 5, 63, 64, 65))) + int(rng.integers(-4, 5))
    elif kind == 1:
        n = (1 << int(rng.integers(0, 18))) + int(rng.integers(-2, 3))
    else:
        n = int(2 ** rng.uniform(0, np.log2(most))) - 1
    return max(0, min(n, most))


def run(call: Call, turn: int) -> None:
    """Run a call in views that start anywhere; fail if an item is wrong or one around the outputs was written."""
    with fewer_bindings(call.device):
        call.run(turn)


def describe(call: Call) -> str:
    """Return what a person needs to see what a call was."""
    return f"{call.row} {call.lengths}"


@click.command()
@click.option("--plans", default=10_000, show_default=True, help="How many in total.")
@click.option("--minutes", default=30.0, show_default=True, help="At most.")
@click.option("--first", default=0, show_default=True, help="Number of the first.")
@click.option("--seed", default=0, show_default=True)
@click.option("--adapter", help="Adapter by index or part of its name.")
@click.option("--json", "json_path", type=click.Path(path_type=Path), help="Count here, and go on from it.")
def main(plans: int, minutes: float, first: int, seed: int, adapter: str | None, json_path: Path | None) -> None:
    """Try random plans; exit 4 if one was wrong."""
    device = gw.request_device(adapter)
    result: dict[str, Any] = {"seed": seed, "plans": 0, "wrong": [], "minutes": 0.0, "families": {}, "next": first}
    if json_path is not None and json_path.exists():
        found = json.loads(json_path.read_text(encoding="utf-8"))["results"][0]
        if found["seed"] == seed:
            result = found
    families, before = Counter(result["families"]), result["minutes"]
    begin = noted = time.monotonic()

    def note() -> None:
        result["minutes"] = before + (time.monotonic() - begin) / 60
        result["families"] = dict(sorted(families.items()))
        if json_path is not None:
            write_json(json_path, {**run_context(device), "results": [result]})

    while result["plans"] < plans and time.monotonic() - begin < 60 * minutes:
        number = result["next"]
        call = draw(device, seed, number)
        try:
            run(call, number)
        except AssertionError as error:
            result["wrong"].append({"number": number, "call": describe(call), "error": str(error)})
            print(f"WRONG: plan {number} of seed {seed}: {describe(call)}\n  {error}", flush=True)
        families[call.primitive.name] += 1
        result["plans"] += 1
        result["next"] += 1
        if result["plans"] % 100 == 0:
            context_of(device).executor.clear()  # kernels are for one configuration each
        if time.monotonic() - noted > 30:
            noted = time.monotonic()
            note()
            print(f"{result['plans']} plans, {len(result['wrong'])} wrong", flush=True)
    note()
    print(
        f"{result['plans']} plans of seed {seed} on {device.adapter.info['device']}: {len(result['wrong'])} wrong, in "
        f"{result['minutes']:.1f} minutes; {result['families']}"
    )
    sys.exit(4 if result["wrong"] else 0)


if __name__ == "__main__":
    main()
