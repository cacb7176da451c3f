"""Random kills of workers: reductions, scans, sorts and groups on a Dask cluster, each compared with numpy bit for bit.

    python benchmarks/soak_dask.py [--kills 200] [--minutes 20] [--adapters 0,0] [--json soak_dask.json]

Every run computes something new, and a worker is killed at a random moment of it, in each third run two. It counts
kills, wrong results, runs that failed, and runs that hung. It ends with 1 if there was any but a kill.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as FutureTimeout
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import numpy as np

import gridwise_py.dask as gwd
from gridwise_py.bench.results.context import host_context
from gridwise_py.dask import collections
from gridwise_py.storage.json_files import write_json

ITEMS = 200_000
CHUNKS = 8
HANGS_S = 180.0


def chunk(seed: int, index: int, kind: str) -> np.ndarray:
    """Return the items of a chunk; every worker makes the same."""
    random = np.random.default_rng([seed, index])
    size = ITEMS // CHUNKS
    if kind == "u4":
        return random.integers(0, 1 << 16, size, dtype=np.uint32)
    items = random.standard_normal(size).astype(np.float32)
    items[::100], items[1::100], items[2::100] = np.nan, -0.0, 0.0
    return items


def source(seed: int, kind: str) -> tuple[da.Array, np.ndarray]:
    """Return items that workers make themselves, and all of them here."""
    make = dask.delayed(chunk, pure=True)
    parts = [da.from_delayed(make(seed, i, kind), (ITEMS // CHUNKS,), dtype=kind) for i in range(CHUNKS)]
    return da.concatenate(parts), np.concatenate([chunk(seed, i, kind) for i in range(CHUNKS)])


def jobs(seed: int) -> dict[str, Any]:
    """Return what is computed, with the expected result, by name."""
    floats, host_floats = source(seed, "f4")
    codes, host_codes = source(seed, "u4")
    order = np.argsort(host_floats, kind="stable")
    few = codes % 100
    return {
        "reduce": (gwd.reduce(codes), lambda: host_codes.sum(dtype="u4")),
        "scan": (gwd.scan(codes), lambda: np.cumsum(host_codes, dtype="u4")),
        "sort": (gwd.sort(floats), lambda: host_floats[order]),
        "sort of held chunks": (gwd.sort(gwd.on_gpu(floats)), lambda: host_floats[order]),
        "argsort": (gwd.argsort(floats), lambda: order.astype("u8")),
        "groups": (gwd.groupby(few, codes, "count"), lambda: np.unique(host_codes % 100, return_counts=True)),
    }


def is_right(found: Any, expected: Any) -> bool:
    """Whether a result has the bits that it must have."""
    if isinstance(found, tuple):
        return all(np.array_equal(one, other) for one, other in zip(found, expected, strict=True))
    found, expected = np.asarray(found), np.asarray(expected)
    return found.dtype == expected.dtype and found.tobytes() == expected.tobytes()


def main() -> int:
    """Run until there were so many kills, or the time is over."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--minutes", type=float, default=20.0)
    parser.add_argument("--adapters", default=None, help="indices, such as 0,0; by default all GPUs")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json")
    given = parser.parse_args()
    collections._TOGETHER_BYTES = collections._UNASKED_BYTES = 0  # or one worker would sort so few items alone
    adapters = "all" if given.adapters is None else [int(one) for one in given.adapters.split(",")]
    context = host_context()
    found = {"kills": 0, "runs": 0, "wrong": 0, "failed": 0, "hung": 0, "finished_before_the_kill": 0}
    names = ["reduce", "scan", "sort", "sort of held chunks", "argsort", "groups"]
    runs_of = {name: {"kills": 0, "runs": 0, "plain_s": 0.0, "killed_s": []} for name in names}
    random = np.random.default_rng(given.seed)
    deadline = time.monotonic() + given.minutes * 60
    with (
        dask.config.set({
            "distributed.scheduler.allowed-failures": 10, "distributed.logging": {"distributed": "critical"},
        }),
        gwd.local_cluster(adapters, memory_limit="1.2GiB", threads=1, silence_logs=50) as cluster,
        gwd.connect(cluster, timeout_s=120) as client,
        ThreadPoolExecutor(1) as killer,
    ):  # fmt: skip
        workers = len(cluster.workers)
        for name, (lazy, expected) in jobs(0).items():
            begin = time.perf_counter()
            if not is_right(client.gather(client.compute(lazy)), expected()):
                raise SystemExit(f"{name} is wrong without any kill")
            begin = time.perf_counter()
            client.gather(client.compute(jobs(-1 % 1000)[name][0]))
            runs_of[name]["plain_s"] = time.perf_counter() - begin
        seed = given.seed * 100_000
        while found["kills"] < given.kills and time.monotonic() < deadline:
            seed += 1
            name = names[seed % len(names)]
            lazy, expected = jobs(seed)[name]
            pids = [one.pid for one in gwd.identities(client)]
            moments = sorted(random.uniform(0.02, 0.95, 1 + (seed % 3 == 2)) * runs_of[name]["plain_s"])
            begin = time.perf_counter()
            future = client.compute(lazy)
            kills = killer.submit(kill, future, pids, moments, begin, random)
            try:
                right = is_right(future.result(timeout=HANGS_S), expected())
                found["wrong"] += not right
                outcome = "right" if right else "WRONG"
            except (FutureTimeout, TimeoutError):
                found["hung"] += 1
                outcome = "HUNG"
            except Exception as error:
                found["failed"] += 1
                outcome = f"FAILED: {type(error).__name__}: {str(error)[:150]}"
            took_s = time.perf_counter() - begin
            count = kills.result()
            found["kills"] += count
            found["runs"] += 1
            found["finished_before_the_kill"] += count == 0
            runs_of[name]["kills"] += count
            runs_of[name]["runs"] += 1
            if count:
                runs_of[name]["killed_s"].append(round(took_s, 2))
            print(
                f"{found['kills']:4d} kills, run {seed}: {name}, {count} killed, {took_s:.1f} s, {outcome}", flush=True
            )
            future.release()
            client.wait_for_workers(workers, timeout=120)
            if given.json:
                facts = {"workers": workers, "items": ITEMS, "chunks": CHUNKS, "of": runs_of}
                write_json(Path(given.json), {"context": context, **found, **facts})
    print(", ".join(f"{count} {what.replace('_', ' ')}" for what, count in found.items()))
    return int(bool(found["wrong"] or found["failed"] or found["hung"]))


def kill(future: Any, pids: list[int], moments: list[float], begin: float, random: np.random.Generator) -> int:
    """Kill a worker at each moment, as long as the work is going on; return how many were killed."""
    count = 0
    for moment, pid in zip(moments, random.permutation(pids), strict=False):
        time.sleep(max(0.0, moment - (time.perf_counter() - begin)))
        if future.done():
            break
        os.kill(int(pid), signal.SIGKILL)
        count += 1
    return count


if __name__ == "__main__":
    sys.exit(main())
