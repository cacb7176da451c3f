"""Which GPU of the host each adapter is, by its PCI address: for a host with several GPUs of one model.

    python benchmarks/which_gpu.py [--rounds 3] [--adapters 0,1] [--json OUT]

For each adapter the address that was found (null: not certain), and how long the search took: one adapter after the
other, then all at the same time, each in a process of its own, as a fleet does. It ends with 0 if every search found
an address, the rounds agree, and no two adapters have one address; else with 1, and the last line says why.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from steps import Steps

import gridwise_py as gw
from gridwise_py.dask.cluster import chosen_adapters
from gridwise_py.runtime.gpu_identity import pci_of

LIMIT_S = 60.0


def found(index: int) -> dict[str, Any]:
    """Return the address of an adapter's GPU, and the seconds of the search."""
    device = gw.request_device(index)
    begin_s = time.perf_counter()
    address = pci_of(device)
    return {"adapter": index, "pci": address, "seconds": round(time.perf_counter() - begin_s, 3)}


def search(indices: Sequence[int], *, together: bool) -> list[dict[str, Any]]:
    """Return what a round finds, each adapter in a new process."""
    spawned = get_context("spawn")
    if together:
        with ProcessPoolExecutor(len(indices), mp_context=spawned) as pool:
            return list(pool.map(found, indices))
    rows: list[dict[str, Any]] = []
    for index in indices:
        with ProcessPoolExecutor(1, mp_context=spawned) as pool:
            rows.append(pool.submit(found, index).result())
    return rows


def problems(rounds: dict[str, list[dict[str, Any]] | None], indices: Sequence[int]) -> list[str]:
    """Return what is wrong with the findings; nothing if every adapter has one address, and no other has it."""
    said = [f"{name}: no result" for name, rows in rounds.items() if rows is None]
    rows = [row for of_round in rounds.values() for row in of_round or ()]
    unknown = sum(row["pci"] is None for row in rows)
    if unknown:
        said.append(f"{unknown} of {len(rows)} searches were not certain")
    addresses = {index: {row["pci"] for row in rows if row["adapter"] == index} - {None} for index in indices}
    said += [f"adapter {index}: {sorted(found_of)}" for index, found_of in addresses.items() if len(found_of) > 1]
    owners = {address: [i for i in addresses if address in addresses[i]] for of in addresses.values() for address in of}
    said += [f"{address} is adapters {of}" for address, of in owners.items() if len(of) > 1]
    return said


def main() -> int:
    """Look for every GPU, and print what was found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--adapters", help="indices, by default all GPUs")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    wanted = "all" if given.adapters is None else [int(index) for index in given.adapters.split(",")]
    adapters = {adapter.index: str(adapter) for adapter in chosen_adapters(wanted)}
    steps = Steps(given.json, 2.0, adapters=adapters, rounds={})
    rounds: dict[str, list[dict[str, Any]] | None] = steps.document["rounds"]
    for name in [f"{how}, round {k + 1}" for how in ("one by one", "together") for k in range(given.rounds)]:
        together = name.startswith("together")
        rounds[name] = steps.run(name, lambda together=together: search(list(adapters), together=together), LIMIT_S)
        for row in rounds[name] or ():
            print(f"    [{row['adapter']}] {row['pci'] or 'not certain'} after {row['seconds']} s", flush=True)
    steps.document["problems"] = problems(rounds, list(adapters))
    steps.save()
    print("; ".join(steps.document["problems"]) or f"all {len(adapters)} adapters are known, and the rounds agree")
    return int(bool(steps.document["problems"]))


if __name__ == "__main__":
    sys.exit(main())
