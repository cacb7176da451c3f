"""Benchmarks of a user's file: how they are declared and loaded, what they run, what every command makes of them."""

import json
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import gridwise_py as gw
from gridwise_py.bench.ab.environments import find_side
from gridwise_py.bench.analysis.remarks import remarks
from gridwise_py.bench.cases.case import Case
from gridwise_py.bench.cases.mode import Mode
from gridwise_py.bench.cases.own_files import load_benchmarks
from gridwise_py.bench.results.dataframe import records_of
from gridwise_py.bench.results.entries import result_of, results_document
from gridwise_py.bench.results.reader import read_results
from gridwise_py.bench.sampling.measure import measure_case
from gridwise_py.bench.sampling.own_run import OwnRun
from gridwise_py.bench.sweep.suite import own_sweeps, plan_jobs
from gridwise_py.cli import main
from gridwise_py.timing.queries import TimingHelper
from helpers.levels import level_on
from helpers.paths import ROOT
from helpers.results import measure_here

EXAMPLE = ROOT / "examples" / "my_kernels.py"
SHORT = ["--processes", "1", "--warmup-s", "0", "--sampling-s", "0"]
PROTOCOL = gw.SamplingProtocol(
    min_samples=2, block_trials=2, warmup_s=0.0, max_warmup_s=0.001, timeout_s=0.001, check_unit=False, batch_trials=3
)
HEAD = "import numpy as np\nimport gridwise_py as gw\n"
SQUARE = '''
WGSL = """
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  if (id.x < arrayLength(&x)) { y[id.x] = CODE; }
}"""
def kernel(device, code="x[id.x] * x[id.x]", label="square"):
    text = WGSL.replace("CODE", code)
    return gw.Kernel(device, text, {"x": "read", "y": "read_write"}, lambda n: -(-n["x"] // 64), label=label)
def inputs(n):
    return {"x": np.arange(1, n + 1, dtype=np.float32), "y": np.zeros(n, np.float32)}
'''


def _run(*words):
    return CliRunner().invoke(main, [str(word) for word in words])


@pytest.fixture
def write(tmp_path, monkeypatch):
    """A function that writes a file of benchmarks into the working directory."""
    monkeypatch.chdir(tmp_path)

    def write(text, name="mine.py"):
        path = tmp_path / name
        path.write_text(HEAD + SQUARE + text)
        return path

    yield write
    sys.path[:] = [folder for folder in sys.path if folder != str(tmp_path)]


@pytest.fixture
def measure(write, device):
    """A function that measures the only benchmark of a text at the first point of its axes."""

    def measure(text, mode="hot", check=True):
        (workload,) = load_benchmarks(write(text)).values()
        (job, *_) = plan_jobs(own_sweeps([workload], [], {"mode": mode}))
        return measure_case(device, job.case, PROTOCOL, job.mode.value, check=check)

    return measure


# ---- declarations


def test_what_is_not_in_a_file(write):
    write("@gw.benchmarked(n=[4], kind=['a', 'b'])\ndef total(device, n, kind): ...")
    for words, message in [
        (["nothing.py"], f"nothing.py: there is no such file of benchmarks; this folder is {Path.cwd()}"),
        (["mine.py", "totl"], "mine.py has no benchmark 'totl'; it has total; did you mean 'total'?"),
        (["total", "mine.py"], "'total' stands before the file"),
        (["total"], "A benchmark of your own stands behind its file: FILE.py total"),
        (["mine.py", "-a", "size=3"], "there is no axis 'size'; there are n, kind, mode, shader_checks\n"),
        (
            ["mine.py", "-a", "knd=a"],
            "there are n, kind, mode, shader_checks; did you mean 'kind'?",
        ),
        (["mine.py", "-a", "kind=c"], "'c' is not one of a, b"),
        (["mine.py", "-a", "shader_checks=most"], "'most' is not one of none, bounds, all"),
        (["mine.py", "--n", "many"], "'many' is not a count"),
        (["mine.py", "--suite", "quick"], "--suite is for primitives"),
    ]:
        result = _run("bench", *words)
        assert result.exit_code == 2
        assert message in result.output


def test_cases_are_the_points_of_the_axes(write):
    found = load_benchmarks(
        write("""
@gw.benchmarked(n=[4, 8], kind=["a", "b"], half=[0.5], baseline="kind=a")
def one(device, n, kind, half): ...
@gw.benchmarked(rows=[2], columns=[3, 4], n=lambda rows, columns: rows * columns, mode=["batch", "cold"])
def two(device, rows, columns): ...
@gw.benchmarked(flag=[True, False], baseline="three", name="four")
@gw.benchmarked(flag=[True, False])
def three(device, flag): ...
@gw.benchmarked(kind=["b", "c"])
def five(device, kind): ...
@gw.benchmarked(kind=["a", "b"], size=[4, 8], baseline="kind=a, size=8")
def six(device, kind, size): ...
""")
    )
    assert list(found) == ["one", "two", "three", "four", "five", "six"]

    def names(asked=(), workloads=(), **short):
        return {str(job) for job in plan_jobs(own_sweeps(workloads or list(found.values()), asked, short))}

    assert names(workloads=[found["one"]]) == {
        f"mine.one kind={kind} half=0.5 hot n={n}" for kind in "ab" for n in (4, 8)
    }
    assert names(workloads=[found["two"]]) == {
        f"mine.two rows=2 columns={columns}{mode} n={n}" for columns, n in ((3, 6), (4, 8)) for mode in ("", " cold")
    }
    assert names(["kind=b"], [found["one"]], n="2^10") == {"mine.one kind=b half=0.5 hot n=2^10"}
    assert names(["half=0.25", "kind=a"], [found["one"]], n="4", mode="batch") == {"mine.one kind=a half=0.25 n=4"}
    both = [found["one"], found["five"]]
    assert names(["kind=a,c"], both, n="4") == {"mine.one kind=a half=0.5 hot n=4", "mine.five kind=c hot n=1"}
    assert names(["kind=c"], both) == {"mine.five kind=c hot n=1"}, "one has no such word"
    assert len(names(["flag=True"])) == 4 + 4 + 2 + 2 + 4, "an axis is for those that have it"
    job = plan_jobs(own_sweeps([found["one"]], ["kind=b"], {"n": "4"}))[0]
    assert (job.case.baseline.primitive, job.case.baseline.axes) == ("mine.one", {"kind": "a", "half": "0.5"})
    assert Case.of_own(found["one"], {"n": 4, "kind": "a", "half": "0.5"}).baseline is None
    (job, _) = plan_jobs(own_sweeps([found["four"]], [], {}))
    assert (job.case.n, job.case.baseline.primitive, job.case.baseline.axes) == (1, "mine.three", {"flag": "True"})
    of_six = [job.case.baseline for job in plan_jobs(own_sweeps([found["six"]], [], {}))]
    assert [None if one is None else one.axes for one in of_six].count({"kind": "a", "size": "8"}) == 3
    assert of_six.count(None) == 1


def test_values_are_those_that_were_declared(write, device):
    (workload,) = load_benchmarks(
        write("""
seen = []
@gw.benchmarked(n=[4], kind=["a"], half=[0.5], flag=[True], count=[3])
def one(device, rng, **axes):
    seen.append((axes, rng.integers(1 << 30)))
    return gw.Benchmark(run=kernel(device), inputs=inputs(4))
""")
    ).values()
    seen = sys.modules[workload.declared.make.__module__].seen
    for seed, count in ((0, "3"), (0, "5"), (1, "3")):
        workload.benchmark(device, 4, "hot", {"kind": "a", "half": "0.5", "flag": "True", "count": count}, seed)
    assert seen[0][0] == {"n": 4, "kind": "a", "half": 0.5, "flag": True, "count": 3}
    assert seen[1][0]["count"] == 5
    assert seen[0][1] == seen[1][1] != seen[2][1], "random numbers follow the seed"


def test_two_files_of_one_name(write, tmp_path):
    text = "@gw.benchmarked(n=[4])\ndef f(device, n): ..."
    write(text)
    (tmp_path / "other").mkdir()
    write(text, "other/mine.py")
    assert (
        "two files are called mine.py, and both have a benchmark 'f'"
        in _run("bench", "mine.py", "other/mine.py").output
    )


def test_each_file_has_its_own_helper_modules(write, tmp_path):
    text = "import sizes\n@gw.benchmarked(n=sizes.N)\ndef NAME(device, n): ..."
    for folder, name, n in (("one", "f", 4), ("two", "g", 8)):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "sizes.py").write_text(f"N = [{n}]\n")
        found = load_benchmarks(write(text.replace("NAME", name), f"{folder}/mine.py"))
        assert found[name].declared.axes["n"] == (n,)


# ---- what is measured

KINDS = {
    "kernel": """
@gw.benchmarked(n=[1000])
def f(device, n):
    return gw.Benchmark(kernel(device), inputs(n), reference=lambda x: x * x)
""",
    "several": """
@gw.benchmarked(n=[1000])
def f(device, n):
    twice = gw.Kernel(device, '''
        @group(0) @binding(0) var<storage, read> y: array<f32>;
        @group(0) @binding(1) var<storage, read_write> z: array<f32>;
        @compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3<u32>) {
          if (id.x < arrayLength(&y)) { z[id.x] = 2.0 * y[id.x]; }
        }''', {"y": "read", "z": "read_write"}, lambda n: -(-n["y"] // 64), label="twice")
    given = {**inputs(n), "z": np.zeros(n, np.float32)}
    return gw.Benchmark([kernel(device), twice], given, reference=lambda x: {"y": x * x, "z": 2 * x * x})
""",
    "sequence": """
@gw.benchmarked(n=[1000])
def f(device, n):
    x = gw.asarray(np.arange(n, dtype=np.uint32), device)
    with gw.capture(device) as sequence:
        prefix = gw.cumsum(x)
        total = gw.max(prefix)
    return gw.Benchmark(sequence, {"x": x}, lambda x: {"total": np.cumsum(x).max()}, outputs={"total": total})
""",
    "function": """
@gw.benchmarked(n=[1000])
def f(device, n):
    square = kernel(device)
    return gw.Benchmark(
        lambda encoder, x, y: square.record(encoder, x=x, y=y), inputs(n), lambda x: x * x, outputs=["y"]
    )
""",
    "class": """
@gw.benchmarked(n=[1000])
class f:
    rtol = 1e-6
    def __init__(self, device, n):
        self.square, self.inputs = kernel(device), inputs(n)
    def run(self, encoder, x, y):
        self.square.record(encoder, x=x, y=y)
    def reference(self, x):
        return {"y": x * x}
    def work(self):
        return gw.Work(items=7, read_bytes=8, write_bytes=9)
""",
    "primitive": """
@gw.benchmarked(n=[1000])
def f(device, n):
    return gw.Benchmark(gw.Reduce(device, "u32"), {"input": np.arange(n, dtype=np.uint32)})
""",
}
LABELS = {
    "kernel": ("square",), "several": ("square", "twice"), "sequence": None, "function": ("f",), "class": ("f",),
    "primitive": None,
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_is_run_checked_and_timed(measure, device, kind):
    for mode in ("hot", "batch", "latency"):
        found = measure(KINDS[kind], mode)
        assert found.error is None
        assert (found.primitive, found.n, found.mode) == ("mine.f", 1000, Mode(mode))
        assert found.checked
        assert found.correct
        level = level_on(device, "none" if kind in ("sequence", "primitive") else "bounds")
        assert set(found.shader_checks) == {level}, "also of what a function runs"
        assert (f"shader_checks={level}" in repr(found)) == (level != "none")
        labels = tuple(series.name.removeprefix("mine.") for series in found.kernels)
        assert labels == LABELS[kind] or LABELS[kind] is None
        if found.tick_period_ns is not None:
            assert found.whole["gpu_span"].samples_ns, "its timestamps are valid"
    if kind == "class":
        assert found.work == {"items": 7, "read_bytes": 8, "write_bytes": 9, "flops": 0}
    if kind in ("several", "sequence", "function"):
        assert found.work == {}, "nobody said what must be moved"


def test_the_axis_of_run_time_checks(write, device):
    texts = {"kernel": KINDS["kernel"], "function": KINDS["function"]}
    found, names = [], set()
    for name, text in texts.items():
        (workload,) = load_benchmarks(write(text, f"{name}.py")).values()
        jobs = plan_jobs(own_sweeps([workload], ["shader_checks=bounds,all,none"], {}))
        measured = [measure_case(device, job.case, PROTOCOL, job.mode.value) for job in jobs]
        assert [one.shader_checks for one in measured] == [("bounds",), ("all",), ("none",)]
        assert all(one.error is None and one.correct for one in measured)
        names |= {str(job) for job in jobs}
        found += [result_of(one, position=k) for k, one in enumerate(measured, len(found))]
    assert "kernel.f shader_checks=all hot n=1,000" in names
    assert {result.shader_checks for result in found} == {"none", "bounds", "all"}
    document = replace(results_document(device, []), results=tuple(found))
    assert {(row["process"], row["shader_checks"]) for row in records_of(document)} >= {(0, "none"), (0, "all")}
    assert [kernel["shader_checks"] for kernel in document.to_json()["results"][1]["kernels"]] == ["all"]
    said = [one.text for one in remarks(document.device, found) if one.kind == "checks"]
    assert [text[:41] for text in said] == [f"What checks cost {name}.f, n = 1,000: bounds"[:41] for name in texts]
    # Nothing of this stays, and a file may have an axis of this name itself.
    assert measure_case(device, replace(jobs[0].case, others=()), PROTOCOL).shader_checks == (
        level_on(device, "bounds"),
    )
    own = "@gw.benchmarked(shader_checks=['bounds', 'all'])\ndef f(device, shader_checks): ..."
    (workload,) = load_benchmarks(write(own, "own.py")).values()
    (job, _) = plan_jobs(own_sweeps([workload], [], {}))
    assert workload.device(device, job.case.axes) is device


def test_without_timestamps_between_passes_empty_passes_take_them(measure, device, monkeypatch):
    monkeypatch.setattr(TimingHelper, "stamps_encoders", property(lambda self: False))
    found = measure(KINDS["function"])
    assert found.correct
    if found.tick_period_ns is not None:
        assert found.whole["gpu_span"].samples_ns
        assert all(begin < end for ((begin, end),) in found.ticks)


@pytest.mark.parametrize(
    ("made", "message"),
    [
        ("gw.Benchmark(kernel(device), inputs(n), lambda x: x[:7])",
         "the reference of y has shape (7,), but the output has (100,); give 100 items in that shape"),
        ("gw.Benchmark(kernel(device), inputs(n), lambda z: z)",
         "the reference has a parameter 'z', which is none of the inputs x, y"),
        ("gw.Benchmark(kernel(device), inputs(n), lambda x: x.nothing)", "line 17: AttributeError: "),
        ("gw.Benchmark(kernel(device, 'y[id.x]'), inputs(n))", "square writes nothing: after a run y is as before"),
        ("gw.Benchmark(lambda encoder, x, y: None, inputs(n), lambda x: x)",
         "of x, y the reference gives one, and not its name"),
        ("gw.Benchmark(lambda encoder, x, y: None, inputs(n), outputs=['z'])",
         "outputs names 'z', which is none of x, y"),
        ("gw.Benchmark([kernel(device)], {**inputs(n), 'z': 1})", "no kernel has an argument 'z'; they have x, y"),
        ("gw.Benchmark(3, inputs(n))", "run is int, but must be a gw.Kernel"),
        ("gw.Benchmark(kernel(device), 3)",
         "line 17: ArgumentError: a benchmark's inputs are int, but must be a mapping"),
        ("gw.Benchmark(kernel(device), inputs(n), restore=['z'])", "restore names 'z', which square does not have"),
        ("gw.Benchmark(kernel(gw.request_device()), inputs(n))", "is on another device than the one it was given"),
        ("gw.Benchmark(kernel(device, '}'), inputs(n))", "line 12: ShaderError: "),
        ("gw.Benchmark(kernel(device, 'z'), inputs(n))",
         ", in line 5 of the shader: if (id.x < arrayLength(&x)) { y[id.x] = z; }"),
        ("kernel(device)", "f returned Kernel, but must return gw.Benchmark(run=…, inputs={…})"),
        ("1 / 0", "line 17: ZeroDivisionError: division by zero"),
    ],
)  # fmt: skip
def test_a_benchmark_that_cannot_be_measured_says_why(measure, made, message):
    found = measure(f"@gw.benchmarked(n=[100])\ndef f(device, n):\n    return {made}")
    assert message in found.error
    assert "\n" not in found.error


@pytest.mark.needs("timestamp-query")
def test_ab_puts_back_what_a_run_overwrites(write, device):
    text = """
@gw.benchmarked(n=[100])
def f(device, n):
    x = gw.asarray(np.ones(n, np.uint32), device)
    return gw.Benchmark(gw.Scan(device, "u32", strategy="reduce_then_scan"), {"input": x, "output": x})
"""
    workload = load_benchmarks(write(text))["f"]
    run = OwnRun(device, workload, 100, "hot", {}, 0, check=True)
    assert run.wrong is None
    run.run(enable_cpu_timing=True, trials=3)
    run.run(enable_gpu_timing=True)
    np.testing.assert_array_equal(run._subject.outputs["output"].to_numpy(), np.arange(1, 101))
    for restore in ("y", ("z",)):
        wrong = load_benchmarks(write(text.replace('"output": x})', f'"output": x}}, restore={restore!r})')))["f"]
        with pytest.raises(gw.ArgumentError, match="which scan does not have"):
            OwnRun(device, wrong, 100, "hot", {}, 0, check=True)
    with pytest.raises(gw.OverlapError, match="mode 'batch' repeats the work"):
        OwnRun(device, load_benchmarks(write(text))["f"], 100, "batch", {}, 0, check=True)


def test_a_size_that_is_none_is_refused_in_one_line(write):
    for size in ("None", "float('nan')", "float('inf')", "'12'", "1.5", "0", "True"):
        write(f"@gw.benchmarked(rows=[4], n=lambda rows: {size})\ndef f(device, rows): ...")
        done = _run("bench", "mine.py")
        assert "n=… of the axes gives" in done.output, done.output
        assert (done.exit_code, len(done.output.splitlines())) == (2, 1)


# ---- commands


@pytest.fixture
def example(tmp_path, monkeypatch):
    """The example in the working directory."""
    monkeypatch.chdir(tmp_path)
    shutil.copy(EXAMPLE, "my_kernels.py")
    yield
    sys.path[:] = [folder for folder in sys.path if folder != str(tmp_path)]


@pytest.mark.needs("timestamp-query")
def test_a_file_with_three_kernels(device, example, monkeypatch):
    measure_here(monkeypatch, device)
    words = ["-a", "n=64", "-a", "groups=4", "-a", "values=uniform", *SHORT]
    result = _run("bench", "my_kernels.py", *words, "--json", "old.json")
    assert result.exit_code == 0, result.output
    assert " baseline " in result.output
    document = read_results("old.json")
    assert {r.name_with_n for r in document.results} == {
        "my_kernels.total groups=4 hot n=64", "my_kernels.matmul tile=4 hot n=64", "my_kernels.matmul tile=8 hot n=64",
        "my_kernels.histogram values=uniform hot n=64",
    }  # fmt: skip
    assert all(result.correct and result.checked for result in document.results)
    assert document.context.command == ("bench", "my_kernels.py", *words, "--json", "old.json")
    tiles = {r.case["tile"]: r for r in document.results if (r.primitive, r.n) == ("my_kernels.matmul", 64)}
    assert tiles["4"].baseline is None
    assert tiles["8"].baseline_key == tiles["4"].key
    sums = next(result for result in document.results if result.primitive == "my_kernels.total")
    assert [kernel.name for kernel in sums.kernels] == ["partial sums", "total"]
    words = ["my_kernels.py", "total", "-a", "n=64", "-a", "groups=4", *SHORT]
    result = _run("bench", *words, "--json", "new.json")
    assert result.exit_code == 0, result.output
    result = _run("compare", "old.json", "new.json", "--threshold", "50%", "--gate", "90%")
    assert "my_kernels.total groups=4 hot n=64" in result.output
    assert "partial sums" in result.output
    assert _run("trace", "old.json", "-o", "trace.json").exit_code == 0
    assert "partial sums" in Path("trace.json").read_text(encoding="utf-8")
    before = read_results("new.json").results
    result = _run("bench", *words, "--resume", "new.json")
    assert result.exit_code == 0, result.output
    assert read_results("new.json").results == before, "what was measured stays"


def _git(*words):
    identity = ["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", *identity, *words], check=True, capture_output=True)


@pytest.mark.needs("git")
def test_what_a_side_of_ab_is(write, tmp_path, tmp_path_factory, monkeypatch):
    monkeypatch.setenv("GRIDWISE_CACHE_DIR", str(tmp_path / "cache"))
    (tmp_path / "kernels").mkdir()
    path = write("old = 1", "kernels/mine.py")
    (path.parent / "beside.wgsl").write_text("// old")
    _git("init", "-q")
    _git("add", "kernels")
    _git("commit", "-q", "-m", "one")
    path.write_text("new = 2")
    monkeypatch.chdir(path.parent)  # not the top of the repository
    old, new = find_side("HEAD", Path("mine.py")), find_side("..", Path("mine.py"))
    assert (old.kind, new.kind, new.commit, new.changed) == ("revision", "folder", old.commit, True)
    assert "old = 1" in old.file.read_text()
    assert (old.file.parent / "beside.wgsl").read_text() == "// old"
    assert new.file == path
    assert find_side(".", Path("mine.py")).file == path, "by its name"
    for side in (old, new):
        assert side.folder is None, "the library is that of this interpreter"
    one = find_side("mine.py:total", None)
    assert (one.kind, one.file, one.benchmark) == ("file", path, "total")
    assert find_side(sys.executable, Path("mine.py")).file == path, "another version of the library"
    outside = tmp_path_factory.mktemp("outside") / "real.py"
    outside.write_text("elsewhere = 3")
    Path("linked.py").symlink_to(outside)
    assert find_side("..", Path("linked.py")).file.read_text() == "elsewhere = 3"
    (tmp_path / "empty").mkdir()
    for given, file, message in [
        ("HEAD", "other.py", "has no file kernels/other.py"),
        (str(tmp_path / "empty"), "mine.py", "empty has no file mine.py"),
        ("other.py:total", None, "other.py: there is no such file of benchmarks"),
        ("HEAD", None, "'HEAD' is no file of benchmarks, as the other side is; write FILE.py:NAME"),
        ("nonsense", "mine.py", "'nonsense' is no side of a comparison"),
        (sys.executable, "other.py", "other.py: there is no such file of benchmarks"),
    ]:
        with pytest.raises(gw.ArgumentError, match=re.escape(message)):
            find_side(given, None if file is None else Path(file))


@pytest.mark.slow
@pytest.mark.needs("git")
def test_a_benchmark_without_a_reference_is_not_called_right(write):
    write("""
@gw.benchmarked(n=[100], mode="hot")
def f(device, n):
    return gw.Benchmark(kernel(device), inputs(n))
@gw.benchmarked(n=[100], mode="hot")
def g(device, n):
    return gw.Benchmark(kernel(device), inputs(n), reference=lambda x: x * x)
@gw.benchmarked(n=[100], mode="hot")
def h(device, n):
    return gw.Benchmark(gw.Reduce(device, "f32"), {"input": inputs(n)["x"]})
""")
    result = _run("bench", "mine.py", *SHORT, "--json", "new.json")
    assert result.exit_code == 0, result.output
    assert re.search(r"^mine\.f .* not checked$", result.output, re.MULTILINE)
    assert "Not checked: mine.f hot n=100. A wrong result passes; give a reference=" in result.output
    checked = {one.primitive: one.checked for one in read_results("new.json").results}
    assert checked == {"mine.f": False, "mine.g": True, "mine.h": True}
    rows = {row["primitive"]: row["checked"] for row in records_of(read_results("new.json"))}
    assert {name: rows[name] for name in checked} == checked


def test_two_states_and_two_functions(device, write, monkeypatch):
    path = write(KINDS["kernel"] + KINDS["class"].replace("class f", "class g"))
    _git("init", "-q")
    _git("add", path.name)
    _git("commit", "-q", "-m", "one")
    path.write_text(path.read_text().replace("x[id.x] * x[id.x]", "x[id.x] * x[id.x] + 1.0"))
    few = ["--pairs", "2", "--rounds", "1", "--turn-s", "0.005"]
    result = _run("ab", "HEAD", ".", *few, "--json", "ab.json", "--", "mine.py", "f")
    assert result.exit_code == 4, result.output
    assert "wrong result: NEW: mine.f hot n=1,000: item 0 is 2.0, expected 1.0" in result.output
    _git("checkout", "-q", "--", "mine.py")
    path.write_text(path.read_text().replace(", reference=lambda x: x * x)", ")", 1))
    result = _run("ab", "mine.py:f", "mine.py:g", *few, "--threshold", "50%", "--gate", "90%", "--json", "two.json")
    assert "not checked: mine.g hot n=1,000: a wrong result passes; give each a reference=" in result.output
    _git("checkout", "-q", "--", "mine.py")
    assert result.exit_code in (0, 1), result.output
    data = json.loads(Path("two.json").read_text())
    assert [row["case"] for row in data["rows"]] == ["mine.g hot n=1,000"]
    assert data["complete"]


@pytest.mark.slow
def test_a_file_in_processes_of_its_own(device, write):
    write(KINDS["kernel"])
    result = _run(
        "bench", "mine.py", "f", "--processes", "2", "--warmup-s", "0", "--sampling-s", "0", "--json", "r.json"
    )
    assert result.exit_code == 0, result.output
    assert [(r.process, r.checked, r.correct) for r in read_results("r.json").results] == [
        (0, True, True),
        (1, False, True),
    ]
    assert _run("bench", "mine.py", "f", *SHORT, "--isolate", "-q").exit_code == 0
