"""Where the time of a sort on a cluster goes: stage by stage, predicted from rates that are measured beside it.

    python benchmarks/sort_stages.py FILE.json PICTURE.svg      # of a file of multi_gpu.py --stages

Dask's scheduler tells when a task computed, and when what it needs was transferred; workers note when they uploaded,
computed, downloaded and sent. What is left of the time is waiting: for other tasks, and for messages.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections import defaultdict
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

#: Messages between tasks that depend on each other, from the first upload to the last part.
HOPS_TOGETHER, HOPS_APART = 4, 10
STAGES = ("reading", "upload", "GPU", "download", "send", "transfer", "merging", "other tasks", "waiting")
#: What counts where several go on at once.
INSIDE = ("download", "upload", "GPU", "send", "transfer", "merging", "reading", "other tasks")
#: Of Dask's tasks, by the step in their key, what no stage of a worker covers.
OF_STEP = {"from-value": "reading", "chunk": "reading", "concatenate": "reading", "merge": "merging"}


def _noted(_worker: Any = None) -> list[tuple[Any, ...]]:
    try:
        from gridwise_py.dask.stages import noted
    except ImportError:  # a version before
        return []
    return [tuple(one) for one in noted()]


def measured(client: Any, sort: Any) -> dict[str, Any]:
    """Return the stages of one call of `sort`, which computes and returns nothing."""
    client.run(_noted)
    with _tasks(client) as tasks:
        begin_s = time.time()
        sort()
        end_s = time.time()
    intervals: list[dict[str, Any]] = []
    for task in tasks:
        step = _step(task["key"])
        for one in task["startstops"]:
            what = {"compute": OF_STEP.get(step, "other tasks"), "transfer": "transfer"}.get(
                one["action"], "other tasks"
            )
            intervals.append(_interval(task["worker"], what, step, one["start"], one["stop"], begin_s))
    for worker, noted in client.run(_noted).items():
        for stage, _, start_s, stop_s, moved_bytes in noted:
            intervals.append(_interval(worker, stage, "", start_s, stop_s, begin_s, moved_bytes))
    wall_s = end_s - begin_s
    workers = sorted({one["worker"] for one in intervals})
    return {
        "wall_s": wall_s, "workers": len(workers), "intervals": [one for one in intervals if one["stop_s"] > 0],
        "of_worker_s": {worker: _shares([one for one in intervals if one["worker"] == worker], wall_s)
                        for worker in workers},
        "tasks": len(tasks),
        "bytes": {stage: sum(one["bytes"] for one in intervals if one["stage"] == stage) for stage in STAGES},
    }  # fmt: skip


class _tasks:
    """What the scheduler's task stream saw within the block."""

    def __init__(self, client: Any):
        self._client = client
        self._found: list[Any] = []

    def __enter__(self) -> list[Any]:
        self._client.get_task_stream(count=1)  # the first call starts it
        self._begin_s = time.time()
        return self._found

    def __exit__(self, *_exception: object) -> None:
        self._found.extend(self._client.get_task_stream(start=self._begin_s))


def _interval(
    worker: str, stage: str, step: str, start_s: float, stop_s: float, begin_s: float, moved_bytes: int = 0
) -> dict[str, Any]:
    return {"worker": worker, "stage": stage, "step": step, "start_s": start_s - begin_s, "stop_s": stop_s - begin_s,
            "bytes": moved_bytes}  # fmt: skip


def _step(key: Any) -> str:
    """Return the step of a key such as ``('gridwise-sort-keys-merge-0123…', 1)``."""
    name = str(key[0] if isinstance(key, tuple) else key)
    return next((word for word in reversed(name.split("-")) if word.isalpha() and len(word) < 16), name)


def _shares(own: list[dict[str, Any]], wall_s: float) -> dict[str, float]:
    """Return the seconds of each stage: where several run at once, the first of STAGES that is no task has them."""
    edges = sorted({0.0, wall_s, *(one[edge] for one in own for edge in ("start_s", "stop_s"))})
    # What a worker noted is inside a task.
    order = {stage: i for i, stage in enumerate(INSIDE)}
    shares: dict[str, float] = defaultdict(float)
    for begin, end in pairwise(edges):
        if begin < 0 or end > wall_s:
            continue
        at = (begin + end) / 2
        running = [one["stage"] for one in own if one["start_s"] <= at < one["stop_s"]]
        shares[min(running, key=lambda stage: order.get(stage, 99)) if running else "waiting"] += end - begin
    return dict(shares)


# ---- predictions


def rates(items: int) -> dict[str, float]:
    """Return what this worker's host and GPU do alone, on memory that was used before."""
    import gridwise_py as gw

    data = np.random.default_rng(0).integers(0, 1 << 32, items, dtype=np.uint32)
    back, held = np.zeros_like(data), gw.asarray(data)
    device = held.device

    def upload() -> None:
        held.copy_from(data)
        gw.synchronize(device)

    def sort() -> None:
        gw.sort(held)
        gw.synchronize(device)

    seconds = {name: _median_s(call) for name, call in (
        ("copy", lambda: np.copyto(back, data)), ("upload", upload), ("download", lambda: held.to_numpy(out=back)),
        ("fresh download", held.to_numpy), ("sort", sort))}  # fmt: skip
    return {
        "host_copy_bytes_per_s": data.nbytes / seconds["copy"], "upload_bytes_per_s": data.nbytes / seconds["upload"],
        "download_bytes_per_s": data.nbytes / seconds["download"],
        "fresh_download_bytes_per_s": data.nbytes / seconds["fresh download"],
        "sort_items_per_s": items / seconds["sort"],
    }  # fmt: skip


def _median_s(call: Any) -> float:
    call()
    times = []
    for _ in range(3):
        begin = time.perf_counter()
        call()
        times.append(time.perf_counter() - begin)
    return statistics.median(times)


def hop_s(client: Any) -> float:
    """Return how long it takes from the end of a task to the start of the next one."""
    count = 30
    future = client.submit(_next, 0, pure=False)
    for _ in range(count):
        future = client.submit(_next, future, pure=False)
    future.result()
    begin = time.perf_counter()
    future = client.submit(time.sleep, 0.05, pure=False)
    for _ in range(count):
        future = client.submit(_next, future, pure=False)
    future.result()
    return max(time.perf_counter() - begin - 0.05, 0.0) / count


def _next(_before: Any) -> int:
    return 0


def predicted(rate: dict[str, float], hop: float, nbytes: int, workers: int) -> dict[str, float]:
    """Return the seconds of each stage of the sort of 4-byte keys that lie evenly on the workers, of each worker."""
    own, away = nbytes / workers, 1 - 1 / workers
    apart = workers > 1
    found = {
        "upload": own * (1 + away) / rate["upload_bytes_per_s"],
        "GPU": (1 + apart) * own / 4 / rate["sort_items_per_s"],
        "download": own * (1 + away) / rate["download_bytes_per_s"],
        "waiting": hop * (HOPS_APART if apart else HOPS_TOGETHER),
    }
    return {**found, "sum": sum(found.values())}


def table(found: dict[str, Any]) -> str:
    """Return the table of a run."""
    guess, of_worker = found["predicted_s"], found["measured"]["of_worker_s"].values()
    lines = [
        f"{'':14}{'predicted, s':>14}{'measured, s':>14}{'GB':>8}   ({found['measured']['workers']} workers, mean)"
    ]
    for stage in STAGES:
        mean = statistics.mean(shares.get(stage, 0.0) for shares in of_worker)
        if stage in guess or mean > 0:
            moved = found["measured"]["bytes"].get(stage, 0) * 1e-9
            lines.append(f"{stage:14}{guess.get(stage, 0.0):14.4f}{mean:14.4f}" + (f"{moved:8.2f}" if moved else ""))
    lines.append(f"{'all':14}{guess['sum']:14.4f}{found['measured']['wall_s']:14.4f}")
    return "\n".join(lines)


# ---- a picture


def picture(document: dict[str, Any]) -> Any:
    """Return a chart with a row per worker and stage, and a panel per number of workers."""
    import altair as alt

    rows = []
    for name, own in document["dask"].items():
        for one in (own.get("stages") or {}).get("measured", {}).get("intervals", ()):
            rows.append({**one, "of": name, "row": one["worker"].rpartition(":")[2]})
    panels = [
        alt.Chart(alt.Data(values=[row for row in rows if row["of"] == name]))
        .mark_bar(opacity=0.8)
        .encode(
            x=alt.X("start_s:Q", title="s"), x2="stop_s:Q", y=alt.Y("stage:N", title=None, sort=list(STAGES)),
            row=alt.Row("row:N", title=None), color=alt.Color("stage:N", sort=list(STAGES), legend=None),
        )
        .properties(title=f"A sort on {name}", width=560)
        for name in dict.fromkeys(row["of"] for row in rows)
    ]  # fmt: skip
    return alt.vconcat(*panels)


if __name__ == "__main__":
    source, target = sys.argv[1:]
    picture(json.loads(Path(source).read_text(encoding="utf-8"))).save(target)
