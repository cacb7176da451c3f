"""Ten plain kernels beside CUDA: once in WGSL through gw.Kernel, once in CUDA C++ through CuPy, by level of checks.

Usage: python benchmarks/peers/beside_cuda.py [--engines wgpu,dawn] [--levels none,bounds,all] [--json FILE]
       python benchmarks/peers/beside_cuda.py --quick --peers none    (any GPU, also a software one)

harness.py says how sides take turns. The texts are in kernels/: the same algorithm, size of workgroups and data. NVRTC
gets `FLAGS` and nothing else: multiply-adds are contracted (--fmad=true), and there is no --use_fast_math. Inputs are
`read` in WGSL, and `const … __restrict__` in CUDA.

back to back  is here a slope: of R and 2R launches (ours in one pass between its timestamps, CUDA's between two
              events), their difference over R; what an event, a pass or a first launch costs drops out

Sizes are such that a launch takes over 500 µs on an H100. Results are numpy's, or those of a part are where numpy would
take minutes, and are the same on all sides: to the bit, but for floats that round (1e-4 for multiply-adds, 1e-3 for
n-body), and for at most 1 % of the points of the Mandelbrot set.

Sides of ours are an engine and a level of checks. Below the cases are the marks: geometric mean and worst over CUDA,
and what "bounds" costs kernels that are bound by memory (over "none"). benchmarks/results/h100/beside_cuda.json has
operators as texts, too, and a chain whose length stands in the text (at commit 79ce4883).
"""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any

import click
import harness
import numpy as np
from data import in_parts

import gridwise_py as gw
from gridwise_py.internals import context_of

#: Everything that the CUDA compiler is told.
FLAGS = ("-std=c++17",)
TEXTS = harness.HERE / "kernels"
LEVELS = ("none", "bounds", "all")
#: Launches of the first count; the second has twice as many.
_LAUNCHES = 4
#: Multiprocessors of an H100.
_MULTIPROCESSORS = 132

Agree = Callable[[np.ndarray, np.ndarray], bool]


# ---- data


def _within(tolerance: float) -> Agree:
    return lambda a, b: np.allclose(a, b, rtol=tolerance, atol=tolerance * float(np.abs(b).mean()))


@dataclass(frozen=True)
class Data:
    """What a kernel works on, in the order of its bindings and of CUDA's parameters.

    Attributes
    ----------
    inputs : mapping from str to numpy.ndarray
    output : (str, numpy.ndarray)
        Its name, and what it holds before.
    values : mapping from str to number
        The uniforms.
    block, grid : tuple of int
        Size of a workgroup, and how many.
    expected : numpy.ndarray
    part : callable
        Takes the output; returns what is as expected.
    agree : callable
        Whether two results are the same.
    moved_bytes : int or None
        Of kernels that are bound by memory.
    """

    inputs: Mapping[str, np.ndarray]
    output: tuple[str, np.ndarray]
    values: Mapping[str, Any]
    block: tuple[int, ...]
    grid: tuple[int, ...]
    expected: np.ndarray
    part: Callable[[np.ndarray], np.ndarray] = field(default=lambda y: y)
    agree: Agree = np.array_equal
    moved_bytes: int | None = None


def text_of(name: str, suffix: str) -> str:
    """Return the text of a kernel."""
    return (TEXTS / f"{name}{suffix}").read_text(encoding="utf-8")


@cache
def _words(n: int) -> np.ndarray:
    return in_parts(n, np.uint32, lambda rng, k: rng.integers(0, 1 << 32, k, dtype=np.uint32), 54)


def _fma(quick: bool) -> Data:
    n, turns = (128, 1000) if quick else (64 * _MULTIPROCESSORS, 300_000)
    x = (1 + np.arange(n) / n).astype(np.float32)
    # Each turn flips the sign, and all of them take a quarter of the amplitude: a turn too few or many is seen.
    factor, looked_at = np.float32(0.3 / turns - 1), n // 8
    expected = x[::looked_at].astype(np.float64)
    for _ in range(turns):
        expected = (expected * factor + 0.5).astype(np.float32).astype(np.float64)
    values = {"count": np.uint32(n), "turns": np.uint32(turns), "factor": factor}
    return Data(
        {"x": x}, ("y", np.zeros_like(x)), values, (64,), (n // 64,), expected, lambda y: y[::looked_at], _within(1e-4)
    )


def _strided(quick: bool) -> tuple[np.ndarray, int]:
    """Return words, and the workgroups that go over them in strides: as many as an H100 holds at once."""
    return (_words(50_001), 8) if quick else (_words(3 << 27), 8 * _MULTIPROCESSORS)


def _reduce(quick: bool) -> Data:
    x, groups = _strided(quick)
    return Data(
        {"x": x}, ("sums", np.zeros(groups, np.uint32)), {"count": np.uint32(x.size)}, (256,), (groups,),
        x.sum(dtype=np.uint32), lambda sums: sums.sum(dtype=np.uint32), moved_bytes=x.nbytes,
    )  # fmt: skip


def _matmul(quick: bool) -> Data:
    n = 64 if quick else 1536
    # Sums of these products are exact in any order.
    a, b = ((_words(2 * n * n)[part::2] >> 29).astype(np.float32).reshape(n, n) for part in (0, 1))
    c, grid = np.zeros(n * n, np.float32), (n // 16, n // 16)
    inputs = {"a": a.reshape(-1), "b": b.reshape(-1)}
    return Data(inputs, ("c", c), {"count": np.uint32(n)}, (16, 16), grid, (a @ b).reshape(-1))


def _histogram(quick: bool) -> Data:
    x, groups = _strided(quick)
    parts = np.array_split(x, 100)  # bincount makes words of 64 bits of all that it gets
    bins = sum(np.bincount(part >> 24, minlength=256) for part in parts).astype(np.uint32)
    return Data({"x": x}, ("bins", np.zeros_like(bins)), {"count": np.uint32(x.size)}, (256,), (groups,), bins)


def _nbody(quick: bool) -> Data:
    n, looked_at = (512 if quick else 1 << 16), 64
    bodies = np.random.default_rng(54).random((n, 4), dtype=np.float32)
    d = bodies[:, :3].astype(np.float64) - bodies[:looked_at, None, :3]
    pull = bodies[:, 3] * ((d * d).sum(2) + 0.001) ** -1.5
    expected = np.zeros((looked_at, 4))
    expected[:, :3] = (d * pull[..., None]).sum(1)
    return Data(
        {"bodies": bodies.reshape(-1)}, ("accelerations", np.zeros(4 * n, np.float32)), {"count": np.uint32(n)}, (256,),
        (n // 256,), expected.reshape(-1), lambda y: y[: 4 * looked_at], _within(1e-3),
    )  # fmt: skip


def _stencil(quick: bool) -> Data:
    width, height = (100, 70) if quick else (16384, 12288)
    x = (_words(width * height) >> 24).astype(np.float32).reshape(height, width)  # sums are exact
    y = x.copy()
    y[1:-1, 1:-1] = np.float32(0.25) * (x[1:-1, :-2] + x[1:-1, 2:] + x[:-2, 1:-1] + x[2:, 1:-1])
    values = {"width": np.uint32(width), "height": np.uint32(height)}
    return Data(
        {"x": x.reshape(-1)}, ("y", np.zeros(x.size, np.float32)), values, (32, 8), (-(-width // 32), -(-height // 8)),
        y.reshape(-1), moved_bytes=2 * x.nbytes,
    )  # fmt: skip


def _gather(quick: bool) -> Data:
    n, grid = (1 << 13, (4, 8)) if quick else (1 << 26, (1024, 256))
    x = (_words(n) >> 8).astype(np.float32)
    places = np.random.default_rng(54).integers(0, n, n, dtype=np.uint32)
    y = np.zeros_like(x)
    return Data(
        {"x": x, "places": places}, ("y", y), {"count": np.uint32(n)}, (256,), grid, x[places], moved_bytes=3 * x.nbytes
    )


def _mandelbrot(quick: bool) -> Data:
    side, turns, every = (64, 100, 1) if quick else (4096, 1024, 64)
    spacing = np.float32(2.5 / side)
    at = np.arange(0, side, every, dtype=np.float32) * spacing
    cx, cy = np.meshgrid(np.float32(-2) + at, np.float32(-1.25) + at)
    x, y, expected = np.zeros_like(cx), np.zeros_like(cx), np.zeros(cx.shape, np.uint32)
    for _ in range(turns):
        inside = x * x + y * y <= 4
        expected += inside
        x, y = (np.where(inside, new, old) for new, old in ((x * x - y * y + cx, x), (2 * x * y + cy, y)))
    values = {"side": np.uint32(side), "turns": np.uint32(turns), "spacing": spacing}
    return Data(
        {}, ("counts", np.zeros(side * side, np.uint32)), values, (16, 16), (side // 16, side // 16), expected,
        lambda counts: counts.reshape(side, side)[::every, ::every], lambda a, b: bool((a != b).mean() <= 0.01),
    )  # fmt: skip


def _scan(quick: bool) -> Data:
    grid = (8, 4) if quick else (1024, 512)
    x = _words(256 * grid[0] * grid[1])
    expected = x.reshape(-1, 256).cumsum(1, dtype=np.uint32).reshape(-1)
    return Data({"x": x}, ("y", np.zeros_like(x)), {}, (256,), grid, expected)


def _bytes(quick: bool) -> Data:
    n, groups = (1 << 17, 8) if quick else (1 << 29, 8 * _MULTIPROCESSORS)
    text = _words(n // 4) & np.uint32(0x03030303)  # four letters
    sought = np.array([0, 1, 1, 1, 2, 2, 3, 3], np.uint32)
    letters = text.view(np.uint8)
    letters[n // 3 : n // 3 + sought.size] = sought  # also in a short text
    starts = np.ones(n - sought.size + 1, bool)
    for k, letter in enumerate(sought):
        starts &= letters[k : k + starts.size] == letter
    expected = np.array([np.count_nonzero(starts), starts.argmax()], np.uint32)
    values = {"count": np.uint32(n), "length": np.uint32(sought.size)}
    before = np.array([0, 0xFFFFFFFF], np.uint32)
    return Data({"text": text, "sought": sought}, ("found", before), values, (256,), (groups,), expected)


KERNELS: Mapping[str, Callable[[bool], Data]] = {
    "fma": _fma, "reduce": _reduce, "matmul": _matmul, "histogram": _histogram, "nbody": _nbody, "stencil": _stencil,
    "gather": _gather, "mandelbrot": _mandelbrot, "scan": _scan, "bytes": _bytes,
}  # fmt: skip

# ---- sides


class Judge:
    """Says whether results are numpy's, and those of the side that was made first.

    Parameters
    ----------
    expected : numpy.ndarray
    part, agree : callable
        As of `Data`.
    """

    def __init__(self, expected: np.ndarray, part: Callable[[np.ndarray], np.ndarray], agree: Agree):
        self._expected, self._part, self._agree = expected, part, agree
        self._first: np.ndarray | None = None

    def judge(self, result: np.ndarray) -> str | bool:
        """Return what is wrong; True for nothing."""
        if not self._agree(self._part(result), self._expected):
            return "its results are not numpy's"
        if self._first is None:
            self._first = result
        return self._agree(result, self._first) or "its results are not those of the first side"


def slopes(span_ns: Callable[[int], float], launches: int, warmup_s: float, samples: int) -> dict[str, list[float]]:
    """Return the time of a launch as the slope of two counts; not where the clock is too coarse to tell."""
    deadline = time.perf_counter() + warmup_s
    while True:
        span_ns(launches)
        if time.perf_counter() >= deadline:
            break
    found = [(span_ns(2 * launches) - span_ns(launches)) / launches for _ in range(samples)]
    return {"back_to_back": [ns for ns in found if ns > 0]}


class Ours(harness.Ours):
    """A primitive of this library, by slopes.

    Parameters
    ----------
    primitive, arrays, judge
        As of `harness.Ours`; the judge looks at the only output.
    """

    def __init__(self, primitive: gw.Primitive, arrays: Mapping[str, Any], judge: Judge):
        super().__init__(primitive, arrays, lambda outputs: judge.judge(next(iter(outputs.values()))))
        engine = context_of(self._device).engine
        self.facts |= {"launches": _LAUNCHES, "engine": {"version": engine.version, "switches": dict(engine.switches)}}

    def times(self, warmup_s: float, samples: int) -> Mapping[str, list[float]]:
        """Return slopes."""
        return slopes(lambda count: count * self._back_to_back_ns(count), _LAUNCHES, warmup_s, samples)


class Cuda(harness.Side):
    """A kernel in CUDA C++, by slopes between events.

    Parameters
    ----------
    name : str
    data : Data
    judge : Judge
    """

    def __init__(self, name: str, data: Data, judge: Judge):
        try:
            import cupy
        except ImportError:
            raise harness.PeerError("cupy is not installed") from None
        self._cupy = cupy
        kernel = cupy.RawKernel(text_of(name, ".cu"), "kernel", options=FLAGS)
        output = cupy.asarray(data.output[1])
        arguments = (*map(cupy.asarray, data.inputs.values()), output, *data.values.values())
        self._launch: Callable[[], Any] | None = partial(kernel, data.grid, data.block, arguments)
        self._events = cupy.cuda.Event(), cupy.cuda.Event()
        self._launch()
        found = judge.judge(output.get())
        wrong = found if isinstance(found, str) else None
        nvrtc = ".".join(map(str, cupy.cuda.nvrtc.getVersion()))
        super().__init__(wrong is None, wrong=wrong, version=cupy.__version__, nvrtc=nvrtc, flags=list(FLAGS))

    def _span_ns(self, launches: int) -> float:
        assert self._launch is not None
        begin, end = self._events
        begin.record()
        for _ in range(launches):
            self._launch()
        end.record()
        end.synchronize()
        return self._cupy.cuda.get_elapsed_time(begin, end) * 1e6

    def times(self, warmup_s: float, samples: int) -> Mapping[str, list[float]]:
        """Return slopes."""
        return slopes(self._span_ns, _LAUNCHES, warmup_s, samples)

    def release(self) -> None:
        """Give the memory back to the others."""
        self._launch = None
        self._cupy.get_default_memory_pool().free_all_blocks()


# ---- cases


def kernel_case(
    bench: harness.Bench, device_of: Callable[[str], Any], of_ours: Sequence[tuple[str, str]], name: str, quick: bool
) -> harness.Case:
    """Return a kernel's case; sides of ours are engines and levels."""
    data = KERNELS[name](quick)
    inputs = cache(lambda engine: {key: gw.asarray(x, device_of(engine)) for key, x in data.inputs.items()})
    judge = Judge(data.expected, data.part, data.agree)
    text = text_of(name, ".wgsl")

    def ours(engine: str, level: str) -> harness.Side:
        device = device_of(engine)
        output, before = data.output
        access: Any = dict.fromkeys(data.inputs, "read") | dict.fromkeys(data.values, "uniform")
        access[output] = "read_write"
        kernel = gw.Kernel(device, text, access, data.grid, label=name, shader_checks=level)
        arrays = {**inputs(engine), output: gw.asarray(before, device), **data.values}
        return Ours(kernel, arrays, judge)

    def cuda() -> harness.Side:
        if "cupy" not in bench.peers:
            raise harness.PeerError("not asked for")
        return Cuda(name, data, judge)

    sides = {f"{engine} {level}": partial(ours, engine, level) for engine, level in of_ours} | {"cupy": cuda}
    size = max(x.size for x in (*data.inputs.values(), data.output[1]))
    facts = {"values": {key: value.item() for key, value in data.values.items()}}
    return harness.Case(name, size, sides, "kernels", data.moved_bytes, facts)


# ---- marks


def _over(row: Mapping[str, Any], side: str, other: str) -> float | None:
    time_ns, of_other = (row["sides"].get(each, {}).get("back_to_back") for each in (side, other))
    return time_ns / of_other if time_ns and of_other else None


def marks_of(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the marks by side; None for what was not measured."""
    marks: dict[str, Any] = {"over_cuda": {}, "bounds_over_none": {}}
    for side in (side for side in (rows[0]["sides"] if rows else ()) if side != "cupy"):
        ratios = {row["case"]: ratio for row in rows if (ratio := _over(row, side, "cupy")) is not None}
        marks["over_cuda"][side] = {
            "geometric_mean": statistics.geometric_mean(ratios.values()) if ratios else None,
            "worst": max(ratios.items(), key=lambda item: item[1]) if ratios else None,
        }
        engine, _, level = side.partition(" ")
        if level == "bounds":
            marks["bounds_over_none"][engine] = {
                row["case"]: _over(row, side, f"{engine} none") for row in rows if row["moved_bytes"]
            }
    return marks


def summary(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Print the marks, and return them for the file."""
    marks = marks_of(rows)
    click.echo(json.dumps(marks, indent=1))
    return {"marks": marks}


@harness.command(
    __doc__, n="2^24", peers="cupy", samples=3, summary=summary,
    more=[
        click.option("--engines", default="wgpu,dawn", show_default=True, help="By commas."),
        click.option("--levels", default=",".join(LEVELS), show_default=True, help="Of checks, by commas."),
        click.option("--quick", is_flag=True, help="Few items: whether the kernels are right, not how fast."),
    ],
)  # fmt: skip
def main(bench: harness.Bench, engines: str, levels: str, quick: bool) -> Iterator[harness.Case]:
    """Yield the cases."""
    adapter = bench.device.adapter.info["device"]
    device_of = cache(lambda engine: gw.request_device(adapter, engine=engine))  # without it its sides say why
    sides = [(engine, level) for engine in engines.split(",") for level in levels.split(",")]
    for name in KERNELS:
        if harness.Case(name, 0, {}, "kernels").is_chosen(bench.words):  # before its data is made
            yield kernel_case(bench, device_of, sides, name, quick)


if __name__ == "__main__":
    main()
