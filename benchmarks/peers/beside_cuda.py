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

kernels    the ten, by engine and level
more       "fma" with the number of turns in the text; in no mean
operators  scan and reduce of --n u32: the built-in sum, `a + b` as a text, and a text with a loop of four turns; at the
           level that texts have by default

The table has µs, over CUDA's time in brackets. Below it are the marks: geometric mean and worst over CUDA, what
"bounds" costs kernels that are bound by memory (over "none"), cycles of a multiply-add, and the operators.
"""

from __future__ import annotations

import re
import shutil
import statistics
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from typing import Any

import click
import harness
import numpy as np

import gridwise_py as gw
from gridwise_py.internals import engine_description
from gridwise_py.runtime.gpu_clock import observe

#: Everything that the CUDA compiler is told.
FLAGS = ("-std=c++17",)
TEXTS = harness.HERE / "kernels"
LEVELS = ("none", "bounds", "all")
#: Launches of the first count; the second has twice as many. Operators take a tenth of a kernel's time.
_LAUNCHES, _OPERATOR_LAUNCHES = 4, 48
#: Of the loop of multiply-adds; with the number in the text, it is one that lavapipe finishes, too.
_TURNS, _CONSTANT_TURNS = 300_000, 60_000
#: Latency of a multiply-add on NVIDIA GPUs since Volta, and multiprocessors of an H100.
_FMA_CYCLES, _MULTIPROCESSORS = 4, 132

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
    """Return the text of a kernel; that with constant turns is the other one without the parameter."""
    if name != "fma_constant":
        return (TEXTS / f"{name}{suffix}").read_text(encoding="utf-8")
    text = text_of("fma", suffix)
    if suffix == ".wgsl":
        return re.sub(r"@group.* turns: u32;", f"const turns = {_CONSTANT_TURNS}u;", text)
    own = f"{{\n  const unsigned turns = {_CONSTANT_TURNS};\n"
    return text.replace(" unsigned turns,", "").replace("{\n", own, 1)


@cache
def _words(n: int) -> np.ndarray:
    return harness.in_parts(n, np.uint32, lambda rng, k: rng.integers(0, 1 << 32, k, dtype=np.uint32), 54)


def _fma(quick: bool, turns: int | None = None) -> Data:
    n = 128 if quick else 64 * _MULTIPROCESSORS
    turns = turns or (1000 if quick else _TURNS)
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


def _fma_constant(quick: bool) -> Data:
    """The number of turns stands in the text, so that a compiler may unroll the loop."""
    data = _fma(quick, _CONSTANT_TURNS)
    return replace(data, values={key: value for key, value in data.values.items() if key != "turns"})


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
#: Not one of the ten: made after them, to see what "fma" waits for.
MORE: Mapping[str, Callable[[bool], Data]] = {"fma_constant": _fma_constant}


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

    def wrong(self, result: np.ndarray) -> str | None:
        """Return what is wrong; None for nothing."""
        if not self._agree(self._part(result), self._expected):
            return "its results are not numpy's"
        if self._first is None:
            self._first = result
        return None if self._agree(result, self._first) else "its results are not those of the first side"


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
    launches : int
    looks_at_clock : bool
        Whether the clock right after a round is a fact.
    """

    def __init__(
        self, primitive: gw.Primitive, arrays: Mapping[str, Any], judge: Judge, launches: int = _LAUNCHES,
        looks_at_clock: bool = False,
    ):  # fmt: skip
        super().__init__(primitive, arrays, lambda outputs: judge.wrong(next(iter(outputs.values()))))
        self._launches, self._looks_at_clock = launches, looks_at_clock
        engine = engine_description(self._device)
        self.facts |= {"launches": launches, "engine": {"version": engine.version, "switches": dict(engine.switches)}}

    def times(self, warmup_s: float, samples: int) -> Mapping[str, list[float]]:
        """Return slopes."""
        found = slopes(lambda count: count * self._back_to_back_ns(count), self._launches, warmup_s, samples)
        if self._looks_at_clock:
            self.facts["sm_clock_mhz"] = clock_mhz(self._device)
        return found


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
        wrong = judge.wrong(output.get())
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


def clock_mhz(device: Any) -> float | None:
    """Return the clock of the multiprocessors, by NVIDIA's library or nvidia-smi; None if neither tells."""
    seen = observe(device).get("sm_clock_mhz")
    if seen is not None or shutil.which("nvidia-smi") is None:
        return seen
    words = ("nvidia-smi", "--query-gpu=clocks.sm", "--format=csv,noheader,nounits")
    lines = subprocess.run(words, capture_output=True, text=True, timeout=20, check=False).stdout.split()
    return float(lines[0]) if len(lines) == 1 and lines[0].isdigit() else None  # of several GPUs it is unknown which


# ---- cases


def kernel_case(
    bench: harness.Bench, device_of: Callable[[str], Any], of_ours: Sequence[tuple[str, str]], name: str, quick: bool
) -> harness.Case:
    """Return a kernel's case; sides of ours are engines and levels."""
    data = (KERNELS | MORE)[name](quick)
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
        return Ours(kernel, arrays, judge, looks_at_clock=name.startswith("fma"))

    def cuda() -> harness.Side:
        if "cupy" not in bench.peers:
            raise harness.PeerError("not asked for")
        return Cuda(name, data, judge)

    sides = {f"{engine} {level}": partial(ours, engine, level) for engine, level in of_ours} | {"cupy": cuda}
    size = max(x.size for x in (*data.inputs.values(), data.output[1]))
    facts = {"values": {key: value.item() for key, value in data.values.items()}}
    return harness.Case(name, size, sides, "kernels" if name in KERNELS else "more", data.moved_bytes, facts)


#: Adds the bytes of two words, each for itself.
_LOOP = """fn combine(a: T, b: T) -> T {
  var sum = T(0);
  for (var k = 0u; k < 32u; k += 8u) { sum |= (((a >> T(k)) + (b >> T(k))) & T(255)) << T(k); }
  return sum;
}"""


def _add_bytes(a: Any, b: Any) -> Any:
    even, odd = np.uint32(0x00FF00FF), np.uint32(0xFF00FF00)
    with np.errstate(over="ignore"):
        return (((a & even) + (b & even)) & even) | (((a & odd) + (b & odd)) & odd)


OPERATORS: Mapping[str, gw.BinOp] = {
    "built-in": gw.Add,
    "a + b": gw.BinOp("text sum", 0, np.add, wgsl="fn combine(a: T, b: T) -> T { return a + b; }"),
    "loop": gw.BinOp("sum of bytes", 0, _add_bytes, wgsl=_LOOP),
}


def operator_case(device_of: Callable[[str], Any], engines: Sequence[str], name: str, n: int) -> harness.Case:
    """Return the case of scan or reduce."""
    x = _words(n)
    inputs = cache(lambda engine: gw.asarray(x, device_of(engine)))
    primitive = {"scan": gw.Scan, "reduce": gw.Reduce}[name]

    @cache
    def judge(by_bytes: bool) -> Judge:
        items = x.view(np.uint8).reshape(-1, 4) if by_bytes else x.reshape(-1, 1)
        sums = items.cumsum(0, dtype=items.dtype) if name == "scan" else items.sum(0, dtype=items.dtype)
        return Judge(np.ascontiguousarray(sums).view(np.uint32).reshape(-1), lambda y: y, np.array_equal)

    def side(engine: str, op: str) -> harness.Side:
        made: Any = primitive(device_of(engine), "u32", OPERATORS[op])
        return Ours(made, {"input": inputs(engine)}, judge(op == "loop"), _OPERATOR_LAUNCHES)

    sides = {f"{engine} {op}": partial(side, engine, op) for engine in engines for op in OPERATORS}
    return harness.Case(f"{name}, operators", n, sides, "operators", x.nbytes)


# ---- marks


def _over(row: Mapping[str, Any], side: str, other: str) -> float | None:
    time_ns, of_other = (row["sides"].get(each, {}).get("back_to_back") for each in (side, other))
    return time_ns / of_other if time_ns and of_other else None


def marks_of(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the marks by side; None for what was not measured."""
    kernels = [row for row in rows if row["group"] == "kernels"]
    marks: dict[str, Any] = {"over_cuda": {}, "bounds_over_none": {}, "fma_over_4_cycles": {}, "operators": {}}
    for side in kernels[0]["sides"] if kernels else ():
        ratios = {row["case"]: ratio for row in kernels if (ratio := _over(row, side, "cupy")) is not None}
        if side != "cupy":
            marks["over_cuda"][side] = {
                "geometric_mean": statistics.geometric_mean(ratios.values()) if ratios else None,
                "worst": max(ratios.items(), key=lambda item: item[1]) if ratios else None,
            }
        engine, _, level = side.partition(" ")
        if level == "bounds":
            marks["bounds_over_none"][engine] = {
                row["case"]: _over(row, side, f"{engine} none") for row in kernels if row["moved_bytes"]
            }
    for row in (row for row in rows if row["case"].startswith("fma")):
        own = marks["fma_over_4_cycles"].setdefault(row["case"], {})
        clocks = [each["sm_clock_mhz"] for each in row["sides"].values() if each.get("sm_clock_mhz")]
        for side, found in row["sides"].items():
            time_ns = found.get("back_to_back")
            cycles = time_ns * statistics.median(clocks) / 1e3 if time_ns and clocks else None
            own[side] = cycles and cycles / row["values"].get("turns", _CONSTANT_TURNS) / _FMA_CYCLES
    for row in (row for row in rows if row["group"] == "operators"):
        own = marks["operators"].setdefault(row["case"], {})
        for engine in dict.fromkeys(side.partition(" ")[0] for side in row["sides"]):
            own[f"{engine}: a + b over built-in"] = _over(row, f"{engine} a + b", f"{engine} built-in")
        own["loop: wgpu over dawn"] = _over(row, "wgpu loop", "dawn loop")
    return marks


def table_of(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the table of the kernels: µs, and over CUDA's in brackets."""
    kernels = [row for row in rows if row["group"] in ("kernels", "more")]
    names = ["cupy", *(side for side in (kernels[0]["sides"] if kernels else ()) if side != "cupy")]
    lines = [f"{'µs (over CUDA)':16}" + "".join(f"{name:>20}" for name in names)]
    for row in kernels:
        cells = []
        for name in names:
            time_ns, ratio = row["sides"][name].get("back_to_back"), _over(row, name, "cupy")
            over = "" if ratio is None or name == "cupy" else f" ({ratio:.2f})"
            cells.append("–" if time_ns is None else f"{time_ns / 1e3:.1f}{over}")
        lines.append(f"{row['case']:16}" + "".join(f"{cell:>20}" for cell in cells))
    return lines if kernels else []


def _lines(name: str, value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        for key, each in value.items():
            yield from _lines(f"{name} {key}", each)
    else:
        yield f"{name}: {'not measured' if value is None else f'{value:.3f}' if isinstance(value, float) else value}"


def summary(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Print table and marks, and return the marks for the file."""
    marks = marks_of(rows)
    click.echo("\n".join(["", *table_of(rows), *(line for name, each in marks.items() for line in _lines(name, each))]))
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
    words = engines.split(",")
    for name in (*KERNELS, *MORE):
        if harness.Case(name, 0, {}, "kernels").is_chosen(bench.words):  # before its data is made
            sides = [(engine, level) for engine in words for level in levels.split(",")]
            yield kernel_case(bench, device_of, sides, name, quick)
    for n in bench.sizes:
        yield from (operator_case(device_of, words, name, n) for name in ("scan", "reduce"))


if __name__ == "__main__":
    main()
