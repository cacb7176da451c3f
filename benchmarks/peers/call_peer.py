"""Calls from Python beside cuda.compute (CUB from Python), PyTorch and CuPy: the first, many in a loop, one awaited.

Usage: python benchmarks/peers/call_peer.py [--n 2^12] [--calls 1000] [--sides gridwise_py,torch] [--json FILE]

Each side and function is measured in a process of its own, with items of u32 that lie on the GPU (PyTorch: i32):

first   from the call to an idle GPU, in ms. Compilers run here: ours, NVIDIA's driver, NVRTC. No cache on disk is used,
        neither ours nor the driver's. Imports, devices and arrays come before.
loop    of many calls with one wait after the last, per call in µs
wait    a call and the wait for its end, in µs; the median of as many calls

"function" is the call that a user writes first, with a result that it makes. "object" is what is made once and called
with all arguments: a primitive with its output here, ``make_…`` with its memory in cuda.compute. Few items: the calls
are measured, not the GPU.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import click
from harness import AxisList

import gridwise_py as gw
from gridwise_py.bench.results.context import run_context
from gridwise_py.storage.json_files import write_json

ROOT = Path(__file__).resolve().parents[2]
FUNCTIONS = ("sum", "cumsum", "sort")
SIDES = ("gridwise_py", "cuda.compute", "torch", "cupy")
WAYS = {"gridwise_py": ("function", "object"), "cuda.compute": ("function", "object")}
_CHILD_S = 120

CHILD = r"""
import json, statistics, sys, time
import numpy as np
side, way, name, n, calls = json.loads(sys.argv[1])
keys = np.random.default_rng(1).integers(0, 1 << 20, n, dtype=np.uint32)
expected = {"sum": keys.sum(dtype=np.uint32), "cumsum": keys.cumsum(dtype=np.uint32), "sort": np.sort(keys)}[name]

def ours():
    import gridwise_py as gw
    device = gw.request_device()
    gw.capabilities(device)
    x = gw.asarray(keys, device)
    wait = lambda: gw.synchronize(device)
    function = {"sum": gw.reduce, "cumsum": gw.scan, "sort": gw.sort}[name]
    if way == "function":
        return (lambda: function(x)), wait, (lambda result: result.to_numpy())
    primitive = {"sum": gw.Reduce, "cumsum": gw.Scan, "sort": gw.Sort}[name](device)
    output = gw.empty(1 if name == "sum" else n, "u32", device)
    return (lambda: primitive.execute(input=x, output=output)), wait, (lambda result: output.to_numpy())

def of_torch():
    import torch
    x = torch.from_numpy(keys.view(np.int32)).cuda()
    torch.cuda.synchronize()
    call = {"sum": lambda: torch.sum(x, dtype=torch.int32), "cumsum": lambda: torch.cumsum(x, 0, dtype=torch.int32),
            "sort": lambda: torch.sort(x).values}[name]
    return call, torch.cuda.synchronize, lambda result: result.cpu().numpy()

def of_cupy():
    import cupy
    x = cupy.asarray(keys)
    wait = cupy.cuda.Device().synchronize
    wait()
    call = {"sum": lambda: x.sum(dtype=cupy.uint32), "cumsum": lambda: x.cumsum(dtype=cupy.uint32),
            "sort": lambda: cupy.sort(x)}[name]
    return call, wait, lambda result: result.get()

def of_compute():
    import cupy
    import cuda.compute as cc
    x, output = cupy.asarray(keys), cupy.empty(1 if name == "sum" else n, cupy.uint32)
    wait = cupy.cuda.Device().synchronize
    wait()
    ends = {"d_in": x, "d_out": output}
    if name == "sum":
        fixed, more, make, function = ends, {"op": cc.OpKind.PLUS, "h_init": np.zeros(1, np.uint32)}, \
            cc.make_reduce_into, cc.reduce_into
    elif name == "cumsum":
        fixed, more, make, function = ends, {"op": cc.OpKind.PLUS, "init_value": None}, \
            cc.make_inclusive_scan, cc.inclusive_scan
    else:
        fixed = {"d_in_keys": x, "d_out_keys": output}
        more, make, function = {"order": cc.SortOrder.ASCENDING}, cc.make_radix_sort, cc.radix_sort
    get = lambda result: output.get()
    if way == "function":
        return (lambda: function(**fixed, **more, num_items=n)), wait, get
    made = []
    values = {"d_in_values": None, "d_out_values": None} if name == "sort" else {}
    arguments = {**fixed, **values, **({} if name == "sort" else more), "num_items": n}
    def call():
        if not made:
            one = make(**fixed, **values, **more)
            made.append(one)
            made.append(cupy.empty(max(1, one(temp_storage=None, **arguments)), cupy.uint8))
        made[0](temp_storage=made[1], **arguments)
    return call, wait, get

call, wait, get = {"gridwise_py": ours, "torch": of_torch, "cupy": of_cupy, "cuda.compute": of_compute}[side]()
wait()
begin = time.perf_counter_ns()
result = call()
wait()
first_ns = time.perf_counter_ns() - begin
right = bool((np.asarray(get(result)).reshape(-1).view(np.uint32) == np.atleast_1d(expected)).all())
for _ in range(calls):
    call()
wait()
loops = []
for _ in range(5):
    begin = time.perf_counter_ns()
    for _ in range(calls):
        call()
    wait()
    loops.append((time.perf_counter_ns() - begin) / calls)
waits = []
for _ in range(calls):
    begin = time.perf_counter_ns()
    call()
    wait()
    waits.append(time.perf_counter_ns() - begin)
print(json.dumps({"correct": right, "first_ns": first_ns, "loop_ns": statistics.median(loops),
                  "wait_ns": statistics.median(waits)}))
"""


def measured(side: str, way: str, name: str, n: int, calls: int, folder: Path) -> dict[str, Any]:
    """Return the figures of a process; or why there are none."""
    paths = filter(None, (str(ROOT), os.environ.get("PYTHONPATH")))
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join(paths), "GRIDWISE_CACHE_DIR": str(folder / "ours"),
        "CUPY_CACHE_DIR": str(folder / f"{side}-{way}-{name}"), "CUDA_CACHE_DISABLE": "1",
        "__GL_SHADER_DISK_CACHE": "0", "MESA_SHADER_CACHE_DISABLE": "true",
    }  # fmt: skip
    command = [sys.executable, "-c", CHILD, json.dumps([side, way, name, n, calls])]
    try:
        run = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=_CHILD_S)
    except subprocess.TimeoutExpired:
        return {"skipped": f"not done within {_CHILD_S} s"}
    if run.returncode:
        return {"skipped": (run.stderr.strip().splitlines() or ["no message"])[-1]}
    return json.loads(run.stdout.splitlines()[-1])


@click.command(help=__doc__.split("\n\n")[0])
@click.option("--n", "counts", type=AxisList("n"), default="2^12", show_default=True, help="Items; one number.")
@click.option("--calls", default=1000, show_default=True, help="Of each figure.")
@click.option("--sides", default=",".join(SIDES), show_default=True, help="By commas.")
@click.option("--json", "json_path", type=click.Path(path_type=Path), help="Write the figures here.")
def main(counts: list[int], calls: int, sides: str, json_path: Path | None) -> None:
    """Measure and print."""
    (n,) = counts
    device = gw.request_device()
    rows = []
    print(f"{gw.capabilities(device).adapter}; n = {n}; {calls} calls; first in ms, others in µs")
    print(f"{'':30}{'first':>10}{'loop':>10}{'wait':>10}")
    with tempfile.TemporaryDirectory() as folder:
        for name in FUNCTIONS:
            for side in sides.split(","):
                for way in WAYS.get(side, ("function",)):
                    found = measured(side, way, name, n, calls, Path(folder))
                    rows.append({"function": name, "side": side, "way": way, **found})
                    label = f"{name:8}{side} {way}"
                    if "skipped" in found:
                        print(f"{label:30}{found['skipped'][:70]}", flush=True)
                        continue
                    times = found["first_ns"] * 1e-6, found["loop_ns"] * 1e-3, found["wait_ns"] * 1e-3
                    wrong = "" if found["correct"] else "  WRONG"
                    print(f"{label:30}" + "".join(f"{time:10.1f}" for time in times) + wrong, flush=True)
    if json_path is not None:
        write_json(json_path, {**run_context(device), "n": n, "calls": calls, "results": rows})
    if any(row.get("correct") is False for row in rows):
        sys.exit(4)


if __name__ == "__main__":
    main()
