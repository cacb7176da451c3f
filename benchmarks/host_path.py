"""The way to the kernel and back, ours and PyTorch's in the same process: transfers, and one-shot functions.

Usage: python benchmarks/host_path.py [--parts transfers,one-shot,memory] [--n 2^28] [--threads 2] [--json FILE]

transfers   Items of 4 bytes up and down: memory that was used before, fresh memory, pinned memory.
one-shot    gw.sort, gw.cumsum and gw.sum of n u32, from a numpy array to a numpy array or number, against PyTorch from
            and to numpy: upload, function, download. PyTorch's items are i32, since it has no functions for u32.
memory      What fresh memory costs, on the GPU and on the host: why transfers into it are slower.

Timed is the whole on the CPU's clock, with the wait until the data is there. The ways take turns, round by round, so
that a change of the machine's speed meets all of them. The first round is shown apart: it makes what is kept. Each
result is compared once with numpy's. Memory of results is given back after the clock was stopped. `--threads` leaves
the process, and so PyTorch, that many CPUs. PyTorch is left out where it is missing, or finds no GPU.
"""

from __future__ import annotations

import importlib
import os
import statistics
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import click
import numpy as np
import wgpu

import gridwise_py as gw
from gridwise_py.backend.queues import wait_idle
from gridwise_py.bench.results.context import run_context
from gridwise_py.storage.json_files import write_json

Way = Callable[[], object]


def parse_count(text: str) -> int:
    """Read 2^22 or a number."""
    base, _, power = text.partition("^")
    return int(base) ** int(power) if power else int(base)


def find_torch(threads: int | None) -> Any:
    """Return PyTorch if it is there and finds a GPU, else None."""
    try:
        torch: Any = importlib.import_module("torch")
    except ImportError:
        return None
    if not torch.cuda.is_available():
        return None
    if threads is not None:
        torch.set_num_threads(threads)
    return torch


def leave_cpus(count: int) -> None:
    """Let this process, and all threads that it starts, run on so many CPUs."""
    if not hasattr(os, "sched_setaffinity"):
        raise click.ClickException("--threads needs a system where a process can be kept to some CPUs, such as Linux")
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:count])


def take_turns(ways: Mapping[str, Way], rounds: int, settle: Way) -> dict[str, list[int]]:
    """Return the times of each way in ns, the first round's first."""
    samples: dict[str, list[int]] = {name: [] for name in ways}
    for _ in range(rounds + 1):
        for name, way in ways.items():
            settle()
            begin = time.perf_counter_ns()
            kept = way()
            samples[name].append(time.perf_counter_ns() - begin)
            del kept  # to give memory back is not timed: it is the caller's
    return samples


def rows_of(part: str, samples: Mapping[str, list[int]], nbytes: int | None) -> list[dict[str, Any]]:
    """Return the figures of a part, for the table and the file."""
    rows: list[dict[str, Any]] = []
    for name, (first, *later) in samples.items():
        median = statistics.median(later)
        rows.append(
            {
                "part": part, "way": name, "first_ns": first, "samples_ns": later, "median_ns": median,
                "gbytes_per_s": None if nbytes is None else nbytes / median,
            }
        )  # fmt: skip
    return rows


def show(title: str, rows: list[dict[str, Any]]) -> None:
    """Print the figures of a part."""
    print(f"\n{title}")
    print(f"  {'':34} {'first, ms':>10} {'median, ms':>11} {'least':>9} {'GB/s':>7}")
    for row in rows:
        speed = "" if row["gbytes_per_s"] is None else f"{row['gbytes_per_s']:7.2f}"
        times = f"{row['first_ns'] / 1e6:10.2f} {row['median_ns'] / 1e6:11.2f} {min(row['samples_ns']) / 1e6:9.2f}"
        print(f"  {row['way']:34} {times} {speed}", flush=True)


def check(name: str, found: Any, wanted: Any) -> None:
    """End the program if a result is wrong."""
    if not np.array_equal(found, wanted):
        raise SystemExit(f"{name}: the result is wrong")


# ---- transfers


def our_transfers(device: wgpu.GPUDevice, data: np.ndarray) -> dict[str, Way]:
    """Return uploads and downloads of this library; each moves the whole array."""
    x, out = gw.empty(data.size, "u32", device), np.zeros_like(data)
    up, down = (gw.pinned_empty(data.size, "u32", direction, device) for direction in ("up", "down"))
    with up.mapped() as items:
        np.copyto(items, data)
    check("copy_from(pinned)", x.copy_from(up).to_numpy(), data)
    check("copy_from", x.copy_from(data).to_numpy(out=out), data)
    with x.to_numpy(out=down).mapped() as items:
        check("to_numpy(out=pinned)", items, data)

    def then_wait(way: Way) -> Way:
        def waited() -> object:
            result = way()
            wait_idle(device)
            return result

        return waited

    return {
        "up: copy_from": then_wait(lambda: x.copy_from(data)),
        "up, fresh: asarray": then_wait(lambda: gw.asarray(data, device)),
        "up, pinned: copy_from": then_wait(lambda: x.copy_from(up)),
        "down: to_numpy(out=)": lambda: x.to_numpy(out=out),
        "down, fresh: to_numpy": x.to_numpy,
        "down, pinned: to_numpy(out=)": then_wait(lambda: x.to_numpy(out=down)),
    }


def torch_transfers(torch: Any, data: np.ndarray) -> dict[str, Way]:
    """Return the same by PyTorch."""
    host = torch.from_numpy(data.view(np.int32))
    out, pinned, pinned_out = torch.zeros_like(host), host.pin_memory(), torch.zeros_like(host).pin_memory()
    x = host.cuda()

    def then_wait(way: Way) -> Way:
        def waited() -> object:
            result = way()
            torch.cuda.synchronize()
            return result

        return waited

    return {
        "torch up: copy_": then_wait(lambda: x.copy_(host)),
        "torch up, fresh: cuda()": then_wait(lambda: host.cuda()),
        "torch up, pinned: copy_": then_wait(lambda: x.copy_(pinned, non_blocking=True)),
        "torch down: copy_": then_wait(lambda: out.copy_(x)),
        "torch down, fresh: cpu()": then_wait(lambda: x.cpu()),
        "torch down, pinned: copy_": then_wait(lambda: pinned_out.copy_(x, non_blocking=True)),
    }


def measure_transfers(
    device: wgpu.GPUDevice, torch: Any, sizes: list[int], rounds: int, settle: Way
) -> list[dict[str, Any]]:
    """Measure and print transfers of each size, in bytes."""
    rows: list[dict[str, Any]] = []
    for size_bytes in sizes:
        data = np.random.default_rng(0).integers(0, 1 << 32, size_bytes // 4, dtype=np.uint32)
        ways = our_transfers(device, data) | (torch_transfers(torch, data) if torch else {})
        found = rows_of("transfers", take_turns(ways, rounds, settle), data.nbytes)
        show(f"transfers of {data.nbytes} bytes", found)
        rows += [{"size_bytes": data.nbytes, **row} for row in found]
    return rows


# ---- one-shot functions


def our_one_shots(device: wgpu.GPUDevice, x: np.ndarray, out: np.ndarray) -> dict[str, Way]:
    """Return the functions from numpy to numpy."""
    return {
        "sort": lambda: gw.sort(x, device=device),
        "sort, out=": lambda: gw.sort(x, out=out, device=device),
        "cumsum": lambda: gw.cumsum(x, dtype=np.uint32, device=device),
        "cumsum, out=": lambda: gw.cumsum(x, out=out, device=device),
        "sum": lambda: gw.sum(x, dtype=np.uint32, device=device),
    }


def torch_one_shots(torch: Any, x: np.ndarray) -> dict[str, Way]:
    """Return the same by PyTorch."""
    signed = x.view(np.int32)

    def up() -> Any:
        return torch.from_numpy(signed).cuda()

    return {
        "torch sort": lambda: torch.sort(up()).values.cpu().numpy(),
        "torch cumsum": lambda: torch.cumsum(up(), 0, dtype=torch.int32).cpu().numpy(),
        "torch sum": lambda: torch.sum(up()).item(),
    }


def measure_one_shots(device: wgpu.GPUDevice, torch: Any, n: int, rounds: int, settle: Way) -> list[dict[str, Any]]:
    """Measure and print one-shot functions of n items."""
    x = np.random.default_rng(0).integers(0, 1 << 32, n, dtype=np.uint32)
    out = np.zeros_like(x)
    ours = our_one_shots(device, x, out)
    samples = take_turns(ours | (torch_one_shots(torch, x) if torch else {}), rounds, settle)
    check("sum", ours["sum"](), x.sum(dtype=np.uint32))
    wanted = np.cumsum(x, dtype=np.uint32)
    check("cumsum", ours["cumsum"](), wanted)
    check("cumsum, out=", ours["cumsum, out="](), wanted)
    wanted = np.sort(x)
    check("sort", ours["sort"](), wanted)
    check("sort, out=", ours["sort, out="](), wanted)
    rows = rows_of("one-shot", samples, None)
    show(f"one-shot functions of {n} u32, numpy to numpy", rows)
    return [{"n": n, **row} for row in rows]


# ---- fresh memory


def pages_policy() -> str | None:
    """Return Linux's setting for huge pages."""
    path = Path("/sys/kernel/mm/transparent_hugepage/enabled")
    return path.read_text(encoding="utf-8").strip() if path.exists() else None


def measure_memory(device: wgpu.GPUDevice, n: int, rounds: int, settle: Way) -> list[dict[str, Any]]:
    """Measure and print the steps of getting, using and giving back memory of 4·n bytes."""
    samples: dict[str, list[int]] = {}

    def timed(name: str, step: Way) -> Any:
        settle()
        begin = time.perf_counter_ns()
        result = step()
        samples.setdefault(name, []).append(time.perf_counter_ns() - begin)
        return result

    usage = wgpu.BufferUsage.STORAGE | wgpu.BufferUsage.COPY_DST | wgpu.BufferUsage.COPY_SRC

    def clear(buffer: wgpu.GPUBuffer) -> None:
        encoder = device.create_command_encoder()
        encoder.clear_buffer(buffer)
        device.queue.submit([encoder.finish()])
        wait_idle(device)

    def free(buffer: wgpu.GPUBuffer) -> None:
        buffer.destroy()
        wait_idle(device)

    source = np.zeros(n, np.uint32)
    for _ in range(rounds + 1):
        buffer = timed("GPU: make", lambda: device.create_buffer(size=4 * n, usage=usage))
        timed("GPU: clear, first use", lambda b=buffer: clear(b))
        timed("GPU: clear again", lambda b=buffer: clear(b))
        timed("GPU: destroy", lambda b=buffer: free(b))
        fresh = timed("host: make", lambda: np.empty(n, np.uint32))
        timed("host: copy, first use, 1 thread", lambda f=fresh: np.copyto(f, source))
        timed("host: copy again, 1 thread", lambda f=fresh: np.copyto(f, source))
        kept = [fresh]
        del fresh
        timed("host: free", kept.clear)
    rows = rows_of("memory", samples, None)
    show(f"fresh memory of {4 * n} bytes; huge pages: {pages_policy()}", rows)
    return [{"size_bytes": 4 * n, **row} for row in rows]


PARTS = ("transfers", "one-shot", "memory")


@click.command()
@click.option("--adapter", help="Adapter by index or part of its name.")
@click.option("--parts", default=",".join(PARTS), show_default=True)
@click.option("--n", "n_text", default="2^28", show_default=True, help="Items of one-shot functions, and of memory.")
@click.option("--sizes", default="2^30", show_default=True, help="Of transfers, in bytes.")
@click.option("--threads", type=click.IntRange(1), help="Leave this process so many CPUs; all by default.")
@click.option("--rounds", type=click.IntRange(1), default=5, show_default=True)
@click.option("--json", "json_path", type=click.Path(path_type=Path), help="Write the figures here.")
def main(
    adapter: str | None, parts: str, n_text: str, sizes: str, threads: int | None, rounds: int, json_path: Path | None
) -> None:
    """Measure and print medians."""
    chosen = parts.split(",")
    if unknown := set(chosen) - set(PARTS):
        raise click.BadParameter(f"{', '.join(sorted(unknown))}; known are {', '.join(PARTS)}", param_hint="--parts")
    if threads is not None:
        leave_cpus(threads)
    device = gw.request_device(adapter)
    torch, n = find_torch(threads), parse_count(n_text)

    def settle() -> None:
        wait_idle(device)
        if torch:
            torch.cuda.synchronize()

    versus = f"PyTorch {torch.__version__}" if torch else "no PyTorch"
    cpus = f"{threads} CPUs" if threads is not None else "all CPUs"
    print(f"{gw.capabilities(device).adapter}, {versus}, {cpus}; medians of {rounds} rounds")
    rows: list[dict[str, Any]] = []
    if "transfers" in chosen:
        sizes_bytes = [parse_count(text) // 4 * 4 for text in sizes.split(",")]
        rows += measure_transfers(device, torch, sizes_bytes, rounds, settle)
    if "one-shot" in chosen:
        rows += measure_one_shots(device, torch, n, rounds, settle)
    if "memory" in chosen:
        rows += measure_memory(device, n, rounds, settle)
    if json_path is not None:
        facts = {"threads": threads, "torch": torch and torch.__version__, "huge_pages": pages_policy()}
        write_json(json_path, {**run_context(device), **facts, "rounds": rounds, "results": rows})


if __name__ == "__main__":
    main()
