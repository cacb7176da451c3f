"""What the first calls of a process cost: imports, the device, the call itself, with and without `gw.warm_up`.

    python benchmarks/first_call.py [--n 2^20] [--repeats 3] [--functions sort,sum] [--ways usual,new] [--against TREE]
        [--cpus 2] [--driver-cache] [--pipelines] [--json FILE]

Each sample is a new process that calls one function twice. The driver's cache of compiled shaders is off (NVIDIA's and
Mesa's), unless `--driver-cache`. The findings of this library on disk (`GRIDWISE_CACHE_DIR`) are there, except in the
line "new", a new machine, whose first call also tests look-back and reads templates. Times are medians in ms:

    import      of gridwise_py, after wgpu and numpy
    backend     loading of wgpu's native backend, which the first search for adapters does
    adapters    the search for adapters
    device      the request for a device
    measure     of what the device can do
    warm-up     gw.warm_up, where it is called
    first       the first call, from numpy to numpy
    second      the second call
    ahead       from the second call to the end of the compilations in the background
    exit        from the end of the script, which does not wait for the background, to the end of the process

`--pipelines` lists when each compilation of one more process began and ended, and in which thread. `--against` names
another checkout of this library, whose processes take turns with those of this one.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import click

ROOT = Path(__file__).resolve().parent.parent
FUNCTIONS = ("sum", "cumsum", "sort", "argsort")
WAYS = ("usual", "warm_up", "new")
PARTS = ("import", "backend", "adapters", "device", "measure", "warm-up", "first", "second", "ahead", "exit")

CHILD = r"""
import json, os, sys, time
options = json.loads(sys.argv[1])
if options["cpus"]:
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:options["cpus"]])
times_ms, last = {}, time.monotonic()
def lap(name):
    global last
    now = time.monotonic()
    times_ms[name] = (now - last) * 1e3
    last = time.monotonic()
import numpy as np, wgpu
lap("import wgpu, numpy")
import gridwise_py as gw
lap("import")
import wgpu.backends.auto
lap("backend")
gw.list_adapters()
lap("adapters")
device = gw.request_device(os.environ.get("GRIDWISE_ADAPTER") or 0)
lap("device")
capabilities = gw.capabilities(device)
lap("measure")
log = []
if options["pipelines"]:
    import threading
    from gridwise_py.runtime.pipelines import PipelineCache
    compiled = PipelineCache._compiled
    def logged(self, *arguments):
        begin = time.monotonic()
        pipeline = compiled(self, *arguments)
        log.append((pipeline.compute.label, begin, time.monotonic(), threading.current_thread().name))
        return pipeline
    PipelineCache._compiled = logged
x = np.random.default_rng(1).integers(0, 2**32, options["n"], dtype=np.uint32)
# These give u32 of u32, as the peers' do: sums of gw.sum and gw.cumsum are numbers of 64 bits.
name = {"sum": "reduce", "cumsum": "scan"}.get(options["function"], options["function"])
function = getattr(gw, name)
start = last = time.monotonic()
if options["warm_up"]:
    gw.warm_up(device, name)
    lap("warm-up")
function(x, device=device)
lap("first")
function(x, device=device)
lap("second")
if options["wait"]:
    from gridwise_py.runtime.compile_threads import compile_threads
    compile_threads().finish()
    lap("ahead")
rows = [(label, (b - start) * 1e3, (e - start) * 1e3, thread) for label, b, e, thread in log]
print(json.dumps({"times_ms": times_ms, "adapter": capabilities.adapter, "driver": capabilities.driver,
                  "pipelines": rows, "end": time.monotonic()}))
sys.stdout.flush()
"""


def _child(root: Path, cache: Path, *, driver_cache: bool, **options: Any) -> dict[str, Any]:
    """Run a process of a checkout, and return what it printed, with the time that it took to end."""
    paths = filter(None, (str(root), os.environ.get("PYTHONPATH")))
    environment = dict(os.environ, GRIDWISE_CACHE_DIR=str(cache), PYTHONPATH=os.pathsep.join(paths))
    # Modules come as bytecode, as from an installed package.
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    environment["PYTHONPYCACHEPREFIX"] = str(cache.parent / "bytecode")
    if not driver_cache:
        environment |= {"__GL_SHADER_DISK_CACHE": "0", "MESA_SHADER_CACHE_DISABLE": "true"}
    command = [sys.executable, "-c", CHILD, json.dumps(options)]
    run = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=environment)
    ended = time.monotonic()  # the same clock in all processes
    found = json.loads(run.stdout.splitlines()[-1])
    if not options["wait"]:
        found["times_ms"]["exit"] = (ended - found["end"]) * 1e3
    return found


def _measure(
    roots: list[Path], folder: Path, repeats: int, way: str, *, pipelines: bool, **options: Any
) -> list[dict[str, Any]]:
    """Return medians of the parts for each checkout; all take turns, also those that wait for the background."""
    samples: list[dict[str, list[float]]] = [{} for _ in roots]
    logs: list[Any] = [[] for _ in roots]
    options["warm_up"] = way == "warm_up"
    for repeat in range(repeats + pipelines):
        is_logged = repeat == repeats
        for wait in (True,) if is_logged else (False,) if way == "new" else (True, False):
            for number, root in enumerate(roots):
                cache = folder / f"{options['function']}{number}{repeat}" if way == "new" else folder / f"kept{number}"
                found = _child(root, cache, wait=wait, pipelines=is_logged, **options)
                if is_logged:
                    logs[number] = found["pipelines"]
                    continue
                for name, ms in found["times_ms"].items():
                    samples[number].setdefault(name, []).append(ms)
    medians = [{name: statistics.median(values) for name, values in each.items()} for each in samples]
    return [
        {"root": number, "function": options["function"], "way": way, "times_ms": times_ms, "pipelines": log}
        for number, (times_ms, log) in enumerate(zip(medians, logs, strict=True))
    ]


def _print_pipelines(found: dict[str, Any]) -> None:
    for label, begin_ms, end_ms, thread in found["pipelines"]:
        print(f"    {label:34} {begin_ms:7.0f} to {end_ms:7.0f} ms   {end_ms - begin_ms:7.0f} ms   {thread}")


@click.command()
@click.option("--n", "size", default="2^20", show_default=True)
@click.option("--repeats", default=3, show_default=True)
@click.option("--functions", default=",".join(FUNCTIONS), show_default=True)
@click.option("--ways", default=",".join(WAYS), show_default=True)
@click.option("--against", type=click.Path(exists=True, path_type=Path), help="Another checkout, measured in turns.")
@click.option("--cpus", default=0, help="Let the processes use only so many CPUs (Linux).")
@click.option("--driver-cache", is_flag=True, help="With the driver's cache of compiled shaders.")
@click.option("--pipelines", is_flag=True, help="List the compilations of one more process for each line.")
@click.option("--json", "json_path", type=click.Path(path_type=Path), help="Write the figures here.")
def main(
    size: str, repeats: int, functions: str, ways: str, against: Path | None, cpus: int, driver_cache: bool,
    pipelines: bool, json_path: Path | None,
) -> None:  # fmt: skip
    """Measure and print."""
    base, _, exponent = size.partition("^")
    n = int(base) ** int(exponent or 1)
    roots = [ROOT] if against is None else [against.resolve(), ROOT]
    names = [""] if against is None else ["before", "after"]
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as kept:
        folder = Path(kept)
        common: dict[str, Any] = {"driver_cache": driver_cache, "n": n, "cpus": cpus}
        first: dict[str, Any] = {"function": "argsort", "warm_up": False, "wait": False, "pipelines": False}
        about, *_ = [_child(root, folder / f"kept{k}", **first, **common) for k, root in enumerate(roots)]
        print(
            f"{about['adapter']}, {about['driver']}; n = {n}; {cpus or os.cpu_count()} CPUs; medians of {repeats}, ms"
        )
        print(f"{'':25}" + "".join(f"{part:>10}" for part in PARTS))
        for function in functions.split(","):
            for way in ways.split(","):
                for row in _measure(roots, folder, repeats, way, function=function, pipelines=pipelines, **common):
                    times_ms = row["times_ms"]
                    cells = "".join(f"{times_ms[part]:10.1f}" if part in times_ms else f"{'':10}" for part in PARTS)
                    print(f"{function:9}{way:9}{names[row['root']]:7}{cells}", flush=True)
                    _print_pipelines(row)
                    rows.append(row)
    if json_path is not None:
        from gridwise_py.bench.results.context import host_context
        from gridwise_py.storage.json_files import write_json

        write_json(json_path, {"context": host_context(), "about": about, "n": n, "cpus": cpus, "rows": rows})


if __name__ == "__main__":
    main()
