"""The other side of compare_peers.py: CUB (cub_peer.cu), PyTorch and CuPy, timed by CUDA events and CUDA graphs."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from gridwise_py.primitives.base import Primitive

HERE = Path(__file__).resolve().parent
#: A build that takes longer, and a case of CUB's (seconds at 2^28), are given up.
_BUILD_S, _RUN_S = 600, 120


@dataclass(frozen=True)
class Work:
    """What all sides do.

    Attributes
    ----------
    name : str
        As cub_peer.cu calls it.
    datatype : str
    primitive : Primitive
        Ours.
    inputs : mapping from str to numpy.ndarray
    expected : tuple of numpy.ndarray
        What must come out.
    launches : int
        Calls back to back.
    checked : tuple of numpy.ndarray
        Other items of the same number and what must come out for them, for sums of floats, whose bits depend on the
        order of the additions; see `exact_items`. Else empty.
    """

    name: str
    datatype: str
    primitive: Primitive
    inputs: Mapping[str, np.ndarray]
    expected: tuple[np.ndarray, ...]
    launches: int
    checked: tuple[np.ndarray, ...] = field(default=())

    @property
    def n(self) -> int:
        """Items."""
        return next(iter(self.inputs.values())).size


#: Whole numbers up to here are floats of 32 bits.
_EXACT = 1 << 24


def exact_items(n: int) -> np.ndarray:
    """Return whole numbers as f32, of which every order of additions gives the same sums, to the bit.

    The sum of their magnitudes is at most 2²⁴. So the sum of any of them is a whole number of at most 2²⁴, which is a
    float: no addition rounds, and a right result needs no tolerance. Of other items it would need about h·2⁻²⁴·Σ|x|,
    where the depth h of the additions grows with the number of tiles in a chain. At 2²⁸ items that is more than the
    sum of a tile, and a scan that leaves out a tile would pass.
    """
    rng = np.random.default_rng(n)
    if n <= _EXACT:
        most = _EXACT // max(n, 1)
        return rng.integers(-most, most, n, endpoint=True).astype(np.float32)
    each = -(-n // _EXACT)  # one of so many consecutive items is not 0
    items = np.zeros(n, np.float32)
    places = np.arange(0, n - each + 1, each)
    items[places + rng.integers(0, each, places.size)] = rng.choice(np.array([-1, 1], np.float32), places.size)
    return items


def checksum(arrays: tuple[np.ndarray, ...]) -> int:
    """Return the sum of all 32-bit words, each times its place plus one, modulo 2⁶⁴: of a whole result, in order."""
    total = 0
    for array in arrays:
        words = array.view(np.uint32)
        for begin in range(0, words.size, 1 << 24):
            part = words[begin : begin + (1 << 24)].astype(np.uint64)
            total += int((part * np.arange(begin + 1, begin + part.size + 1, dtype=np.uint64)).sum(dtype=np.uint64))
    return total % (1 << 64)


def build_cub(folder: Path, source: str = "cub_peer") -> Path | str:
    """Build CUB's side from `source`, a .cu file beside this one; return the program, or why there is none."""
    nvcc = shutil.which("nvcc") or shutil.which("/usr/local/cuda/bin/nvcc")
    if nvcc is None:
        return "nvcc is not installed"
    program = folder / source
    command = [nvcc, "-O3", "-std=c++17", "--extended-lambda", "-arch=native", "-o", str(program)]
    print(
        f"building {source} with nvcc, some minutes (a program that was built before is given with --cub)", flush=True
    )
    try:
        build = subprocess.run(
            [*command, str(HERE / f"{source}.cu")], capture_output=True, text=True, timeout=_BUILD_S, check=False
        )
    except subprocess.TimeoutExpired:
        return f"nvcc took longer than {_BUILD_S} s"
    return program if build.returncode == 0 else f"nvcc failed: {build.stderr.strip()[-500:]}"


def cub(program: Path | str, work: Work, folder: Path, rounds: int, warmup_s: float) -> dict[str, object]:
    """Return CUB's times; vector add is cub::DeviceFor::Bulk, copy is cudaMemcpyAsync."""
    if isinstance(program, str):
        return {"skipped": program}
    files = [folder / f"{name}.bin" for name in work.inputs]
    for path, values in zip(files, work.inputs.values(), strict=True):
        values.tofile(path)
    checked = [folder / "checked.bin"] if work.checked else []
    for path in checked:
        work.checked[0].tofile(path)
    command = [str(program), work.name, work.datatype, str(work.n), str(files[0]), str(files[-1])]
    try:
        result = subprocess.run(
            [*command, str(warmup_s), str(rounds), str(work.launches), *map(str, checked)],
            capture_output=True, text=True, timeout=_RUN_S, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return {"skipped": f"cub_peer had no answer in {_RUN_S} s"}
    if result.returncode:
        return {"skipped": f"cub_peer failed: {result.stderr.strip()[-300:]}"}
    answer = json.loads(result.stdout)
    answer["correct"] = int(answer.pop("checksum")) == checksum(work.checked[1:] or work.expected)
    return answer


def python_peer(name: str, work: Work, rounds: int, warmup_s: float) -> dict[str, object]:
    """Return the times of PyTorch or CuPy, by CUDA events, and of CUDA graphs where they can capture the call."""
    try:
        import torch
    except ImportError:
        return {"skipped": "PyTorch is not installed (its events and graphs are used for CuPy, too)"}
    try:
        call, version = {"torch": _torch_call, "cupy": _cupy_call}[name](work)
    except ImportError:
        return {"skipped": f"{name} is not installed"}
    except NotImplementedError as error:
        return {"skipped": str(error)}
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    stream = torch.cuda.Stream()

    def timed(run: Callable[[], object]) -> float:
        begin.record(stream)
        run()
        end.record(stream)
        end.synchronize()
        return begin.elapsed_time(end) * 1e6

    with torch.cuda.stream(stream):
        for _ in range(3):
            call()
        stream.synchronize()
        graph = torch.cuda.CUDAGraph()
        try:
            with torch.cuda.graph(graph, stream=stream):
                for _ in range(work.launches):
                    call()
        except RuntimeError:
            graph = None
        elapsed = 0.0
        while elapsed < warmup_s * 1e9:
            elapsed += timed(graph.replay if graph is not None else lambda: [call() for _ in range(work.launches)])
        single, back_to_back = [], []
        for _ in range(rounds):
            single.append(timed(call))
            if graph is not None:
                back_to_back.append(timed(graph.replay) / work.launches)
    torch.cuda.empty_cache()
    return {"single_ns": single, "back_to_back_ns": back_to_back or None, "version": version}


def _torch_call(work: Work) -> tuple[Callable[[], object], str]:
    import torch

    # It has no kernels for unsigned words of these sizes; signed ones move the same bytes.
    signed = {np.dtype(np.uint32): np.int32, np.dtype(np.uint64): np.int64}
    tensors = [torch.from_numpy(v.view(signed.get(v.dtype, v.dtype))).cuda() for v in work.inputs.values()]
    first = tensors[0]
    if work.name == "scan_exclusive":
        raise NotImplementedError("PyTorch has no exclusive scan")
    if work.name == "sort":
        # It gives the positions (int64) as well.
        places = (torch.empty_like(first), torch.empty_like(first, dtype=torch.int64))
        return lambda: torch.sort(first, stable=True, out=places), torch.__version__
    if work.name == "sort_pairs":
        raise NotImplementedError("torch.sort moves positions along, and no values; see the row of sort")
    if work.name == "reduce":
        one = torch.empty((), dtype=first.dtype, device="cuda")
        return lambda: torch.sum(first, dim=0, dtype=first.dtype, out=one), torch.__version__
    out = torch.empty_like(first)
    calls = {
        "copy": lambda: out.copy_(first),
        "vector_add": lambda: torch.add(first, tensors[-1], out=out),
        "scan": lambda: torch.cumsum(first, 0, dtype=out.dtype, out=out),
    }
    return calls[work.name], torch.__version__


def _cupy_call(work: Work) -> tuple[Callable[[], object], str]:
    import cupy
    import torch

    arrays = [cupy.asarray(v) for v in work.inputs.values()]
    out = cupy.empty_like(arrays[0])
    one = cupy.empty((), dtype=out.dtype)
    calls = {
        "copy": lambda: cupy.copyto(out, arrays[0]),
        "vector_add": lambda: cupy.add(arrays[0], arrays[-1], out=out),
        "reduce": lambda: cupy.sum(arrays[0], dtype=out.dtype, out=one),
        "scan": lambda: cupy.cumsum(arrays[0], dtype=out.dtype, out=out),
        "sort": lambda: cupy.sort(arrays[0]),
    }
    if work.name not in calls:
        raise NotImplementedError(f"CuPy has no {work.name.replace('_', ' ')}")
    inner = calls[work.name]

    def call() -> None:
        with cupy.cuda.ExternalStream(torch.cuda.current_stream().cuda_stream):
            inner()

    return call, cupy.__version__
