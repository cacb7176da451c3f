"""``pytest --gridwise``: runs of pytest in runs of pytest, mostly in this process and with invented times."""

import itertools
import json
import re
import sys
import types
from dataclasses import replace

import numpy as np
import pytest
import scipy.special
import scipy.stats  # noqa: F401
from click.testing import CliRunner

import gridwise_py as gw
from gridwise_py.bench.cases.mode import Mode
from gridwise_py.bench.in_pytest import fixture, plugin, store
from gridwise_py.bench.sampling.samples import make_series
from gridwise_py.cli import main
from gridwise_py.storage.locks import locked
from helpers.paths import ROOT
from helpers.results import measurement

pytest_plugins = ["pytester"]

# Where the package is installed, the outer pytest has imported the plug-in already.
PLUGIN = ("-W", "ignore::pytest.PytestAssertRewriteWarning", "-p", "gridwise_pytest")
SHORT = """
import numpy as np, pytest
import gridwise_py as gw
from shared import device, kernel
SHORT = gw.SamplingProtocol(
    min_samples=10, block_trials=10, warmup_s=0.001, max_warmup_s=0.01, timeout_s=0.01, check_unit=False
)
X = np.arange(100, dtype=np.float32)
"""
WGSL = """
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  if (id.x < arrayLength(&x)) { y[id.x] = x[id.x] * x[id.x]; }
}"""
ONE = f"""{SHORT}
def test_one(gpu_benchmark):
    gpu_benchmark(kernel, x=X, y=gw.zeros(100, "f32", device))
"""


@pytest.fixture(autouse=True)
def alone(monkeypatch):
    """No other plug-ins, of which some import what is not to be imported, and no options from outside."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)
    monkeypatch.delenv("PYTEST_XDIST_WORKER", raising=False)
    # A file that is written anew within a second, in the same size, would be taken for the old one.
    monkeypatch.setattr(sys, "dont_write_bytecode", True)


@pytest.fixture(scope="module")
def kernel(device):
    return gw.Kernel(device, WGSL, {"x": "read", "y": "read_write"}, lambda n: -(-n["x"] // 64), label="square")


@pytest.fixture
def run(pytester, monkeypatch, device, kernel):
    """Run pytest in this process on files by name, whose module ``shared`` has this session's device and a kernel."""
    shared = types.ModuleType("shared")
    shared.device, shared.kernel = device, kernel
    monkeypatch.setitem(sys.modules, "shared", shared)

    def run(text, *options):
        pytester.makepyfile(test_it=text)
        return pytester.runpytest_inprocess(*PLUGIN, "-p", "no:cacheprovider", "--strict-markers", *options)

    return run


@pytest.fixture
def invented(monkeypatch):
    """Times that a test sets; they stand still, and no other work disturbs them."""
    given = types.SimpleNamespace(scale_ns=1e6, mode=Mode.BATCH, shaders=("a" * 64,), rounds=[], walls=False)

    def measure_rounds(ready, protocols):
        given.rounds.append(len(protocols))
        found = [
            measurement(
                mode=given.mode, labels=("square",), count=24, scale_ns=given.scale_ns * (1 + 1e-3 * i),
                shaders_sha256=given.shaders, shader_checks=("bounds",),
            )
            for i in range(len(protocols))
        ]  # fmt: skip
        if not given.walls:
            return found
        return [replace(m, whole={"cpu_wall": m.whole["cpu_wall"]}, kernels=(), ticks=()) for m in found]

    monkeypatch.setattr(fixture, "measure_rounds", measure_rounds)
    return given


def _said(result):
    return "\n".join(result.outlines + result.errlines)


# ---- without the option


def test_without_the_option_benchmarks_are_skipped_and_wgpu_is_not_imported(pytester):
    pytester.makepyfile(
        """
        import pytest, sys

        @pytest.fixture
        def costly():
            raise AssertionError("a skipped benchmark makes none of its fixtures")

        @pytest.mark.gridwise(gate=0.1)
        def test_timed(costly, gpu_benchmark):
            raise AssertionError

        def test_other():
            loaded = {name.partition(".")[0] for name in sys.modules}
            assert "gridwise_pytest" in loaded
            assert loaded.isdisjoint({"gridwise_py", "wgpu", "numpy", "scipy"})
        """
    )
    result = pytester.runpytest_subprocess(*PLUGIN, "--strict-markers", "-rs")
    result.assert_outcomes(passed=1, skipped=1)
    result.stdout.fnmatch_lines(["*test_*.py:*it runs with pytest --gridwise*"])


# ---- what is measured


SUBJECTS = f"""{SHORT}
def test_kernel(gpu_benchmark):
    y = gw.zeros(100, "f32", device)
    done = gpu_benchmark(kernel, reference=X * X, rounds=2, protocol=SHORT, x=X, y=y)
    assert done.time_ns > 0 and len(done.measurements) == 2 and done.comparison is None

def test_primitive(gpu_benchmark):
    gpu_benchmark(gw.Scan(device, "u32"), mode="hot", rounds=1, protocol=SHORT, input=np.ones(100, np.uint32))

@pytest.mark.parametrize("unchecked", [False, True])
def test_callable(gpu_benchmark, unchecked):
    x = gw.asarray(X, device)
    options = dict(reference=None if unchecked else np.cumsum(X), rounds=2, protocol=SHORT)
    gpu_benchmark(lambda: gw.cumsum(x), name="own", n=100, **options)

def test_sequence(gpu_benchmark):
    x = gw.asarray(X, device)
    with gw.capture(device) as calls:
        gw.sum(gw.cumsum(x))
    done = gpu_benchmark(calls, rounds=1, protocol=SHORT)
    assert len(done.measurements[0].kernels) == 2

def test_recorded(gpu_benchmark):
    def record(encoder, x, y):
        kernel.record(encoder, x=x, y=y)

    y = gw.zeros(100, "f32", device)
    gpu_benchmark(record, reference=dict(y=X * X), mode="batch", rounds=1, protocol=SHORT, x=X, y=y)

@pytest.mark.gridwise(mode="hot")
def test_submitted(gpu_benchmark):
    def twice(x):
        return kernel.execute(x=x, y=gw.zeros(100, "f32", device), enable_gpu_timing=True)

    gpu_benchmark(twice, reference=X * X, rounds=1, protocol=SHORT, x=gw.asarray(X, device))

def test_benchmark(gpu_benchmark):
    inputs = dict(x=X, y=np.zeros(100, np.float32))
    work = gw.Work(100, 400, 400)
    gpu_benchmark(gw.Benchmark([kernel], inputs, lambda x: x * x, work=work), rounds=1, protocol=SHORT)
"""


@pytest.mark.needs("timestamp-query")
def test_every_kind_of_subject_is_timed_checked_and_in_the_file(run, pytester, device):
    result = run(SUBJECTS, "--gridwise-json", "new.json")
    result.assert_outcomes(passed=8)
    path = pytester.path / "new.json"
    found = gw.read_results(path).results
    of = {r.primitive: [one for one in found if one.primitive == r.primitive] for r in found}
    names = ["kernel", "primitive", "callable[False] own", "callable[True] own", "sequence", "recorded",
             "submitted", "benchmark"]  # fmt: skip
    assert list(of) == [f"test_it.py::test_{name}" for name in names]
    firsts = [of[name][0] for name in of]
    assert [(r.n, r.mode, r.checked) for r in firsts] == [
        (100, "batch", True), (100, "hot", True), (100, "latency", True), (100, "latency", False),
        (0, "hot", False), (0, "batch", True), (0, "latency", True), (0, "hot", True),
    ]  # fmt: skip
    assert [[(r.process, r.round) for r in rounds] for rounds in of.values()] == [
        [(0, i) for i in range(count)] for count in (2, 1, 2, 2, 1, 1, 1, 1)
    ]
    timed = gw.capabilities(device).tick_period_ns is not None
    assert [r.gpu_span is not None for r in firsts] == [timed, timed, False, False, *[timed] * 4]
    assert all(r.cpu_wall.median_ns > 0 and r.correct for r in found)
    said = _said(result)
    adapter = device.adapter.info["device"]
    assert f"adapter: {adapter}" in said
    assert ("It is a CPU" in said) == gw.capabilities(device).is_cpu
    assert "results: new.json" in said
    shown = CliRunner().invoke(main, ["compare", str(path), str(path)])
    assert (shown.exit_code, "test_it.py::test_kernel" in shown.output) == (0, True), shown.output


def test_each_round_begins_with_the_inputs_of_the_first(run, pytester):
    """A kernel that changes what it reads: without restoring, later rounds would measure other data."""
    text = f"""{SHORT}
ADD = "@group(0) @binding(0) var<storage, read_write> x: array<f32>;" \\
    "@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3<u32>) {{" \\
    "if (id.x < arrayLength(&x)) {{ x[id.x] += 1.0; }} }}"

def test_it(gpu_benchmark):
    add = gw.Kernel(device, ADD, {{"x": "read_write"}}, 2)
    x = gw.asarray(X, device)
    gpu_benchmark(add, restore=["x"], reference=X + 1, rounds=3, protocol=SHORT, x=x)
    gpu_benchmark(add, name="unnamed", reference=X + 1, rounds=3, protocol=SHORT, x=X)
"""
    text += (
        f"""
WGSL = {WGSL!r}
"""
        + """
def test_two(gpu_benchmark):
    x, y = gw.asarray(X, device), gw.zeros(100, "f32", device)
    half = gw.Kernel(device, WGSL.replace("(id.x <", "(id.x % 2u == 0u && id.x <"), {"x": "read", "y": "read_write"}, 2)
    gpu_benchmark(kernel, reference=X * X, rounds=1, protocol=SHORT, x=x, y=y)
    gpu_benchmark(half, name="half", reference=X * X, rounds=1, protocol=SHORT, x=x, y=y)
"""
    )
    result = run(text, "--gridwise")
    result.assert_outcomes(failed=2)
    assert "right only on what y held before" in _said(result), "an earlier call had left it there"
    assert re.search(r"right only on what x held .*name it in restore=", _said(result))


@pytest.mark.needs("the repository")
def test_the_example_of_the_page_runs(run):
    """With short rounds; its mark is accepted, too."""
    example, mark = re.findall(
        r"^```python\n(.*?)^```", (ROOT / "docs/howto/pytest.md").read_text("utf-8"), re.M | re.S
    )
    short = mark.replace("rounds=10", "rounds=1, protocol=SHORT")
    assert short != mark
    run(f"{SHORT}\n{example}\n{short}", "--gridwise").assert_outcomes(passed=2)


# ---- comparisons


def test_only_what_is_slower_by_more_than_the_gate_fails(run, invented, pytester):
    run(ONE, "--gridwise-json", "base.json").assert_outcomes(passed=1)
    assert invented.rounds == [5]
    marked = ONE.replace("def test_one", "@pytest.mark.gridwise(gate=0.3, rounds=4)\ndef test_one")
    argument = marked.replace("gpu_benchmark(kernel,", "gpu_benchmark(kernel, gate=0.1,")
    for scale_ns, text, failed, line in [
        (1.001e6, ONE, 0, "same: 1.00"),
        (0.8e6, ONE, 0, "faster: 0.8"),
        (1.23e6, ONE, 1, "slower, past the gate: 1.2"),
        (1.23e6, marked, 0, "slower: 1.2"),
        (1.23e6, argument, 1, "slower, past the gate: 1.2"),
    ]:
        invented.scale_ns = scale_ns
        result = run(text, "--gridwise-compare", "base.json")
        result.assert_outcomes(passed=1 - failed, failed=failed)
        assert line in _said(result)
        told = "test_it.py::test_one is slower than in base.json by more than" in _said(result)
        assert (told, int(result.ret)) == (bool(failed), failed)
    assert invented.rounds[-2:] == [4, 4], "by the mark"
    assert "site-packages" not in _said(result), "a line, no traceback through the library"


def test_ambiguous_is_no_failure_unless_asked_and_says_what_to_do(run, invented, pytester):
    """A wall depends on the process, so that one process of each cannot decide."""
    invented.mode = Mode.LATENCY
    run(ONE, "--gridwise-json", "base.json").assert_outcomes(passed=1)
    invented.scale_ns = 1.5e6
    result = run(ONE, "--gridwise-compare", "base.json", "--gridwise-json", "new.json")
    result.assert_outcomes(passed=1)
    assert "1 ambiguous against base.json: measured in one process" in _said(result)
    assert "--gridwise-append" in _said(result)
    assert "gridwise bench" not in _said(result), "which measures no tests"
    result = run(ONE, "--gridwise-compare", "base.json", "--gridwise-fail-ambiguous")
    result.assert_outcomes(failed=1)
    assert "test_it.py::test_one is ambiguous: measured in one process" in _said(result)


def test_further_runs_are_further_processes_which_decide_together(run, invented, pytester):
    """Of walls, as they are the only times of a callable: then they are gated."""
    invented.mode, invented.walls = Mode.LATENCY, True
    for name, scale_ns in (("base.json", 1e6), ("new.json", 1.3e6)):
        for process in range(2):
            invented.scale_ns = scale_ns * (1 + 0.002 * process)
            run(ONE, "--gridwise-json", name, "--gridwise-append").assert_outcomes(passed=1)
    document = gw.read_results(pytester.path / "new.json")
    assert [(r.process, r.round, r.position) for r in document.results] == [
        (process, i, 0) for process in range(2) for i in range(5)
    ]
    assert len(document.context.resumed) == 1
    invented.scale_ns = 1.3e6
    options = ("--gridwise-json", "new.json", "--gridwise-append", "--gridwise-compare", "base.json")
    result = run(ONE, *options)
    result.assert_outcomes(failed=1)
    assert "CPU wall" in _said(result)
    assert "added to those of 2 earlier processes" in _said(result)
    passing = ONE.replace("gpu_benchmark(kernel,", "done = gpu_benchmark(kernel, gate=1.0,")
    passing += "    assert done.comparison.rows[0].verdict.new_processes == 4\n"
    run(passing, *options).assert_outcomes(passed=1)
    invented.shaders = ("b" * 64,)
    result = run(ONE, *options)
    result.assert_outcomes(failed=1)
    assert "--gridwise-append: test_it.py::test_one has other shaders than in new.json" in _said(result)
    invented.shaders, invented.walls = ("a" * 64,), False
    assert "test_one has shader_checks=bounds, not None as in new.json" in _said(run(ONE, *options))
    assert len(gw.read_results(pytester.path / "new.json").results) == 20, "nothing of other shaders was added"


def test_a_run_that_judged_nothing_fails(run, invented, pytester):
    run(ONE, "--gridwise-json", "base.json").assert_outcomes(passed=1)
    two = ONE.partition("def test_one")
    both = ONE + "".join(two[1:]).replace("test_one", "test_two")
    for text, passed, code in ((ONE.replace("test_one", "test_two"), 1, 1), (both, 2, 0)):
        result = run(text, "--gridwise-compare", "base.json")
        result.assert_outcomes(passed=passed)
        assert int(result.ret) == code
        assert ("no benchmark was judged against base.json; measure base.json again" in _said(result)) == bool(code)


def test_a_benchmark_that_the_stored_file_lacks_passes_and_is_named(run, invented, pytester):
    run(ONE, "--gridwise-json", "base.json").assert_outcomes(passed=1)
    result = run(ONE.replace("test_one", "test_two"), "--gridwise-compare", "base.json", "--gridwise-fail-ambiguous")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["test_it.py::test_two * not in base.json"])


# ---- bad input


@pytest.mark.parametrize(
    ("call", "said"),
    [
        ("gpu_benchmark(K, **ONCE); gpu_benchmark(K, **ONCE)", "calls gpu_benchmark twice: give each its own name="),
        (
            "gpu_benchmark(K, name='a', **ONCE); gpu_benchmark(K, name='a', **ONCE)",
            "has two benchmarks of the name 'a': give each its own name=",
        ),
        (
            "gpu_benchmark(K, reference=X * X + 1, **A)",
            "is wrong: item 0 is 0.0, expected 1.0 (100 wrong items); it was not timed",
        ),
        ("gpu_benchmark(K, reference=X[:5], **A)", "the reference of y has shape (5,), but the output has (100,)"),
        ("gpu_benchmark(K, reference={'z': X}, **A)", "the reference has 'z', which is none of its outputs y"),
        ("assert gpu_benchmark(K, **ONCE)", "returns times, not what it timed"),
        ("assert gpu_benchmark(K, **ONCE) == 6", "say what is right: gpu_benchmark(…, reference=…)"),
        ("np.testing.assert_allclose(gpu_benchmark(K, **ONCE), X)", "say what is right: gpu_benchmark(…, reference=…)"),
        ("gpu_benchmark.pedantic(print, rounds=3)", "has no pedantic, unlike the fixture of pytest-benchmark: write"),
        ("gpu_benchmark(np.sum, X)", "given 1 more without a name; write gpu_benchmark(lambda: sum(…)), or name"),
        (
            "gpu_benchmark(print, x=X)",
            "neither with an encoder and its inputs, (encoder, x), to record, nor with (x)",
        ),
        ("gpu_benchmark(print, mode='cold')", "mode 'cold' is not for a function that submits by itself"),
        ("gpu_benchmark(lambda encoder: 3)", "records on an encoder, but of which device? Give device="),
        ("gpu_benchmark(gw.Benchmark(K, A), x=X)", "x= is part of the gw.Benchmark that it is given"),
        ("gpu_benchmark(3)", "not int"),
        ("gpu_benchmark(lambda: 3)", "used no device"),
        ("gpu_benchmark(K, rounds=0, **A)", "rounds"),
        ("gpu_benchmark(K, gate=-1, **A)", "gate=-1.0; it is a share of at least 0: 0.05 for 5 %"),
        ("gpu_benchmark(K, threshold=2, **A)", "threshold=2.0; it is a share between 0 and 1: 0.02 for 2 %"),
    ],
)
def test_wrong_calls_fail_in_a_line_with_the_remedy(run, call, said):
    arrays = 'K, A = kernel, dict(x=X, y=gw.zeros(100, "f32", device), protocol=SHORT)\nONCE = dict(A, rounds=1)'
    result = run(f"{SHORT}\n{arrays}\ndef test_it(gpu_benchmark):\n    {call}\n", "--gridwise")
    result.assert_outcomes(failed=1)
    assert said in _said(result)
    assert "Measure what `measure` takes" not in _said(result)  # the text of __call__


def test_a_benchmark_that_times_nothing_has_a_warning(run, invented):
    idle = ONE + "\ndef test_idle(gpu_benchmark): pass\ndef test_other(): pass\n"
    result = run(idle, "--gridwise")
    result.assert_outcomes(passed=3, warnings=1)
    assert "gpu_benchmark was asked for, but not called: nothing was timed or judged" in _said(result)


def test_wrong_options_end_the_run_in_a_line_with_the_remedy(run, invented, pytester):
    run(ONE, "--gridwise-json", "base.json").assert_outcomes(passed=1)
    (pytester.path / "cut.json").write_text((pytester.path / "base.json").read_text()[:300])
    for options, said in [
        (("--gridwise-json=base.json",), "base.json exists; name another file, or add --gridwise-append"),
        (("--gridwise-compare=no.json",), "there is no file no.json; to write it, run pytest --gridwise-json"),
        (("--gridwise-compare=cut.json",), "cut.json: line"),
        (("--gridwise-json=nowhere/new.json",), "new.json cannot be written: No such file or directory"),
        (("--gridwise-append",), "needs the file to add to: --gridwise-json FILE"),
        (("--gridwise-fail-ambiguous",), "needs a file to compare with: --gridwise-compare FILE"),
        (
            ("--gridwise-json=base.json", "--gridwise-append", "--gridwise-compare=base.json"),
            "name one file, base.json: give an old and a new one",
        ),
    ]:
        result = run(ONE, *options)
        assert result.ret == pytest.ExitCode.USAGE_ERROR, options
        lines = [line for line in result.errlines if line.strip()]
        assert len(lines) == 1, lines
        assert said in lines[0]


def test_a_file_of_another_adapter_is_refused_before_anything_is_timed(run, invented, pytester):
    run(ONE, "--gridwise-json", "base.json").assert_outcomes(passed=1)
    path = pytester.path / "base.json"
    document = json.loads(path.read_text())
    document["device"]["adapter"] = "another"
    path.write_text(json.dumps(document))
    invented.rounds.clear()
    for options, said in [
        (("--gridwise-compare", "base.json"), "base.json was measured with adapter another, now "),
        (("--gridwise-json", "base.json", "--gridwise-append"), "base.json was measured with adapter another, now "),
    ]:
        result = run(ONE, *options)
        result.assert_outcomes(failed=1)
        assert said in _said(result)
    assert invented.rounds == []


def test_a_wrong_mark_is_told(run):
    result = run(ONE.replace("def test_one", "@pytest.mark.gridwise(gates=1)\ndef test_one"), "--gridwise")
    result.assert_outcomes(errors=1)
    assert "pytest.mark.gridwise does not take gates; it takes gate, mode, protocol, rounds, threshold" in _said(result)


def test_without_an_adapter_benchmarks_are_skipped_before_their_fixtures(run, monkeypatch):
    monkeypatch.setattr(plugin, "list_adapters", list)
    text = """
import pytest

@pytest.fixture
def device():
    raise LookupError("no adapter")

def test_it(device, gpu_benchmark): pass
def test_other(): pass
"""
    result = run(text, "--gridwise", "-rs")
    result.assert_outcomes(passed=1, skipped=1)
    assert "there is no GPU adapter here" in _said(result)


def test_a_file_that_cannot_be_written_at_the_end_is_told_and_the_times_are_shown(run, invented, monkeypatch):
    def write(*args, **options):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(plugin, "write", write)
    result = run(ONE, "--gridwise-json", "new.json")
    result.assert_outcomes(passed=1)
    assert result.ret != 0
    assert "new.json was not written: [Errno 28] No space left on device" in _said(result)
    assert "test_it.py::test_one  1.0" in _said(result)


def test_an_interrupted_run_leaves_what_it_measured(run, invented, pytester):
    run(ONE + "\ndef test_stop(): pytest.exit('enough')", "--gridwise-json", "new.json")
    document = gw.read_results(pytester.path / "new.json")
    assert (len(document.results), document.complete) == (5, False)


@pytest.mark.parametrize(
    ("end", "words", "complete"),
    [
        ("assert False", ["-x"], False),
        ("assert False", [], True),
        ("raise pytest.UsageError('as of a lock')", [], False),
    ],
)
def test_a_run_that_ends_before_all_tests_ran_is_not_complete(run, invented, pytester, end, words, complete):
    hook = f"def pytest_runtest_protocol(item):\n    if item.name == 'test_stop':\n        {end}\n"
    pytester.makeconftest(f"import pytest\n{hook}" if "raise" in end else "")
    run(ONE + f"\ndef test_stop(): {end}\ndef test_left(): ...", *words, "--gridwise-json", "new.json")
    document = gw.read_results(pytester.path / "new.json")
    assert (len(document.results), document.complete) == (5, complete)


def test_workers_with_names_of_their_own_have_no_number():
    assert [plugin._process_of(worker) for worker in (None, {"workerid": "gw0"}, {"workerid": "gw12"})] == [0, 0, 12]
    with pytest.raises(gw.ArgumentError, match=r"is called 'big', .* leave out id= in --tx"):
        plugin._process_of({"workerid": "big"})


# ---- several processes


XDIST_CONFTEST = """
from gridwise_py.bench.in_pytest import fixture
from gridwise_py.bench.sampling.samples import make_series

def measure_rounds(ready, protocols):
    m = fixture.Measurement("x", fixture.Mode.BATCH, 1, whole={"gpu_span": make_series("gpu_span", [1e3] * 60)})
    return [m] * len(protocols)

fixture.measure_rounds = measure_rounds
"""
XDIST_TESTS = """
import os, time
from pathlib import Path
import numpy as np
import pytest
import gridwise_py as gw

@pytest.fixture
def kernel():
    return gw.Scan(gw.default_device(), "u32")

@pytest.mark.parametrize("i", range(4))
def test_timed(kernel, gpu_benchmark, i):
    begin = time.monotonic()
    time.sleep(0.2)
    gpu_benchmark(kernel, input=np.ones(10, np.uint32))
    Path(f"{i}.times").write_text(f"{begin} {time.monotonic()} {os.getpid()}")
"""


@pytest.mark.gpu
@pytest.mark.needs("module:xdist")
def test_workers_of_xdist_measure_one_at_a_time_and_write_one_file(pytester):
    pytester.makeconftest(XDIST_CONFTEST)
    pytester.makepyfile(test_it=XDIST_TESTS)
    result = pytester.runpytest_subprocess(
        *PLUGIN, "-p", "xdist", "-n", "2", "--gridwise-json", "new.json", timeout=120
    )
    result.assert_outcomes(passed=4)
    spans = sorted(tuple(map(float, path.read_text().split())) for path in pytester.path.glob("*.times"))
    assert len({pid for _, _, pid in spans}) == 2, "both workers had tests"
    assert all(before[1] <= after[0] for before, after in itertools.pairwise(spans)), "one at a time"
    result.stdout.fnmatch_lines(["pytest-xdist: 2 workers measured, one at a time (a file lock)*", "results: new.json"])
    document = gw.read_results(pytester.path / "new.json")
    assert {r.primitive for r in document.results} == {f"test_it.py::test_timed[{i}]" for i in range(4)}
    assert {r.process for r in document.results} == {0, 1}


@pytest.mark.gpu
@pytest.mark.slow
@pytest.mark.needs("module:xdist")
def test_each_worker_of_xdist_can_be_a_process_of_the_measurement(pytester):
    pytester.makeconftest(XDIST_CONFTEST)
    pytester.makepyfile(test_it=XDIST_TESTS)
    pytester.runpytest_subprocess(*PLUGIN, "-k", "1", "--gridwise-json", "old.json").assert_outcomes(passed=1)
    each = pytester.runpytest_subprocess(
        *PLUGIN, "-p", "xdist", "-n", "2", "--dist", "each", "-k", "1", "--gridwise-json", "each.json",
        "--gridwise-compare", "old.json", timeout=120,
    )  # fmt: skip
    each.assert_outcomes(passed=2)
    assert sorted((r.process, r.round) for r in gw.read_results(pytester.path / "each.json").results) == [
        (process, i) for process in (0, 1) for i in range(5)
    ]
    each.stdout.fnmatch_lines(["test_it.py::test_timed?1? * same in each of 2 processes*"])


def test_waiting_for_a_lock_ends_and_names_who_has_it(tmp_path):
    path = tmp_path / "gpu"
    with locked(path), pytest.raises(store.StillLocked, match=r"process \d+ has had"), store.waiting_for(path, 0.05):
        pass
    with store.waiting_for(path, 0.05):
        pass


# ---- how often it is wrong


@pytest.mark.slow
def test_the_same_kernel_hardly_ever_fails_and_a_slower_one_mostly(run, invented, monkeypatch, pytester):
    """Noise of 2 % within rounds, of 0.5 % between them."""
    rng, slower = np.random.default_rng(39), 1.0

    def measure_rounds(ready, protocols):
        return [
            replace(
                measurement(mode=Mode.BATCH, labels=("k",), count=1, canary_ns=(10.0, 10.0)),
                kernels=(),
                ticks=(),
                whole={"gpu_span": make_series("gpu_span", level * rng.lognormal(0.0, 0.02, 60))},
            )
            for level in slower * 1e5 * rng.lognormal(0.0, 0.005, len(protocols))
        ]

    monkeypatch.setattr(fixture, "measure_rounds", measure_rounds)
    many = ONE.replace("def test_one(", "@pytest.mark.parametrize('i', range(200))\ndef test_one(i, ")
    many = many.replace("gpu_benchmark(kernel,", "gpu_benchmark(kernel, gate=0.0,")
    run(many, "--gridwise-json", "base.json").assert_outcomes(passed=200)
    failed = run(many, "--gridwise-compare", "base.json").parseoutcomes().get("failed", 0)
    assert failed <= 2, "at most 1 % false, even with a gate of 0"
    slower = 1.05
    found = run(many, "--gridwise-compare", "base.json").parseoutcomes().get("failed", 0)
    assert found >= 180


# ---- counts

_COUNTED = """
import numpy as np, gridwise_py as gw

def test_it(gpu_counts):
    device = gpu_counts.device("Apple")
    x = gw.asarray(np.arange(1000, dtype=np.uint32), device)
    found = gpu_counts(lambda: [gw.cumsum(x) for _ in range(TIMES)])
    assert found["launches"] == TIMES
    assert gpu_counts(gw.Copy(device, "u32"), name="copy", input=x)["launches"] == 1
"""


def test_counts_are_a_fixture_that_needs_no_gpu(pytester):
    def run(times, *words):
        pytester.makepyfile(test_them=f"TIMES = {times}\n{_COUNTED}")
        return pytester.runpytest_inprocess(*PLUGIN, "-p", "no:cacheprovider", "-W", "default", *words)

    run(2).assert_outcomes(passed=1)
    run(2, "--gridwise-counts", "counts.json").assert_outcomes(passed=1)
    kept = json.loads((pytester.path / "counts.json").read_text())["cases"]
    assert kept["test_them.py::test_it"]["launches"] == 2
    assert kept["test_them.py::test_it copy"]["workgroups"] == 1
    run(1, "--gridwise-counts", "counts.json").assert_outcomes(passed=1)
    more = run(3, "--gridwise-counts", "counts.json")
    more.assert_outcomes(failed=1)
    more.stdout.fnmatch_lines(["*more than in counts.json: *launches: 2 → 3*"])
    added = run(2, "--gridwise-counts", "absent.json")
    added.stdout.fnmatch_lines(["*absent.json had no counts of test_them.py::test_it: they are added*"])
    assert json.loads((pytester.path / "counts.json").read_text())["cases"] == kept
    pytester.makepyfile(test_twice=_COUNTED.replace('name="copy", ', "").replace("TIMES", "1"))
    twice = pytester.runpytest_inprocess(*PLUGIN, "-p", "no:cacheprovider", "test_twice.py")
    twice.stdout.fnmatch_lines(["*calls gpu_counts twice: give a second call a name*"])
