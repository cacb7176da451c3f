"""Which GPU of the host each adapter is, by its PCI address: for a host with several GPUs of one model.

    python benchmarks/which_gpu.py [--rounds 3]

Prints JSON: for each adapter the address that was found (null: not certain), and how long the search took. The rounds
must agree. With ``--together`` all adapters are looked for at the same time, each by a process, as a fleet does.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import time
from typing import Any

import gridwise_py as gw
from gridwise_py.runtime.gpu_identity import pci_of


def found(index: int) -> dict[str, Any]:
    """Return the address of an adapter's GPU, and the seconds of the search."""
    device = gw.request_device(index)
    begin_s = time.perf_counter()
    address = pci_of(device)
    return {"pci": address, "seconds": round(time.perf_counter() - begin_s, 3)}


def main() -> None:
    """Look for every GPU, and print what was found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--together", action="store_true")
    options = parser.parse_args()
    adapters = [each for each in gw.list_adapters() if each.type != "CPU"]
    indices = [each.index for each in adapters]
    with multiprocessing.get_context("spawn").Pool(len(indices) or 1, maxtasksperchild=1) as pool:
        rounds = [
            pool.map(found, indices, chunksize=1) if options.together else [pool.apply(found, (i,)) for i in indices]
            for _ in range(options.rounds)
        ]
    rows = [
        {"index": each.index, "name": each.name, "rounds": [found_in[k] for found_in in rounds]}
        for k, each in enumerate(adapters)
    ]
    known = [[row["rounds"][r]["pci"] for row in rows if row["rounds"][r]["pci"]] for r in range(options.rounds)]
    alike = all(len({r["pci"] for r in row["rounds"] if r["pci"]}) <= 1 for row in rows)
    distinct = all(len(set(of_round)) == len(of_round) for of_round in known)
    print(json.dumps({"together": options.together, "adapters": rows, "agree": alike and distinct}, indent=1))


if __name__ == "__main__":
    main()
