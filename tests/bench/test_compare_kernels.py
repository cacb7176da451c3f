"""Kernels of users, measured in turns, judged, and written to a file that every command reads."""

import numpy as np
import pytest
import wgpu

import gridwise_py as gw
from helpers.commands import gridwise
from helpers.results import measurement, series

MODULE = "gridwise_py.bench.sampling.compare_kernels"
SHORT = gw.SamplingProtocol(
    min_samples=10, block_trials=10, warmup_s=0.001, max_warmup_s=0.01, timeout_s=0.01, check_unit=False
)
WGSL = """
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3<u32>) {{
  if (id.x < arrayLength(&x)) {{ y[id.x] = {}; }}
}}"""


def _kernel(device, expression, **options):
    bindings = {"x": "read", "y": "read_write"}
    return gw.Kernel(device, WGSL.format(expression), bindings, lambda n: -(-n["x"] // 64), **options)


@pytest.fixture(scope="module")
def squares(device):
    return {"old": _kernel(device, "x[id.x] * x[id.x]"), "new": _kernel(device, "x[id.x] * x[id.x] + 0.0")}


@pytest.fixture
def x(device):
    return gw.asarray(np.arange(1000, dtype=np.float32), device)


@pytest.mark.needs("module:altair", "module:vl_convert")
def test_kernels_are_measured_in_turns_and_every_command_reads_the_file(squares, x, tmp_path, require):
    require("timestamp-query")
    found = gw.compare_kernels(squares, rounds=3, protocol=SHORT, mode="hot", x=x, y=gw.empty_like(x))
    assert {name: len(rounds) for name, rounds in found.measurements.items()} == {"old": 3, "new": 3}
    begun = sorted((m.begun_ns, name) for name, rounds in found.measurements.items() for m in rounds)
    assert all({a[1], b[1]} == {"old", "new"} for a, b in zip(begun[::2], begun[1::2], strict=True)), "in turns"
    assert (found.baseline, list(found.verdicts)) == ("old", ["new"])
    assert "results not checked" in repr(found)
    assert "gridwise bench" not in repr(found), "it measures no kernels of one's own"
    path = tmp_path / "squares.json"
    gw.write_results(path, found)
    with pytest.raises(gw.ArgumentError, match="overwrite=True"):
        gw.write_results(path, found)
    results = gw.read_results(path).results
    assert [(r.primitive, r.round) for r in results] == [(name, i) for name in ("old", "new") for i in range(3)]
    assert {(r.work.read_bytes, r.work.write_bytes) for r in results} == {(8000, 4000)}
    for command in (["compare", path, path], ["report", path, "-o", tmp_path / "r.html"]):
        shown = gridwise(*command)
        assert shown.exit_code == 0, (command, shown.output)


def test_other_work_on_the_machine_is_shown_and_written(device, squares, x, tmp_path, monkeypatch):
    """`gridwise compare` judges nothing faster or slower on a CPU that others used."""
    arrays = {"x": x, "y": gw.empty_like(x)}
    for load, is_shown in ((0.4, True), (0.05, False), (None, False)):
        monkeypatch.setattr("gridwise_py.bench.sampling.machine_load.LoadWatch.share", lambda watch, load=load: load)
        found = gw.compare_kernels(squares, rounds=3, protocol=SHORT, **arrays)
        single = gw.measure(squares["old"], protocol=SHORT, **arrays)
        assert found.other_load == single.other_load == load
        is_cpu = device.adapter.info["adapter_type"] == "CPU"
        assert not (is_shown and is_cpu) or str(found.verdicts["new"].kind) in ("same", "ambiguous")
        for one in (found, single):
            assert ("other work used 40 % of this machine's processors" in repr(one)) == is_shown
        assert ("other work" in single._repr_html_()) == is_shown
        for results in (found, [single]):
            gw.write_results(tmp_path / "a.json", results, device=device, overwrite=True)
            assert {result.other_load for result in gw.read_results(tmp_path / "a.json").results} == {load}


def test_functions_and_sequences_are_compared(device, squares, x, require):
    require("timestamp-query")
    y = gw.empty_like(x)

    def record(encoder, x, y):
        squares["old"].record(encoder, x=x, y=y)

    with gw.capture(device) as calls:
        squares["old"].execute(x=x, y=y)
    checked = gw.Benchmark([squares["new"]], {"x": x, "y": np.zeros(1000, np.float32)}, lambda x: x * x)
    both = {"kernel": squares["old"], "record": record, "calls": calls, "checked": checked}
    found = gw.compare_kernels(both, rounds=3, protocol=SHORT, x=x.to_numpy(), y=y)
    assert {m.mode.value for rounds in found.measurements.values() for m in rounds} == {"batch"}
    assert all(found.verdicts.values())
    assert [found.measurements[name][0].checked for name in both] == [False, False, False, True]
    called = {"with stamps": lambda: calls.execute(enable_gpu_timing=True), "without": lambda: calls.execute()}
    found = gw.compare_kernels(called, rounds=3, protocol=SHORT, device=device)
    assert "others only CPU times; a function has GPU times if it returns its timed Run" in repr(found)


def test_raw_buffers_are_arguments_as_arrays_are(device, squares, x):
    def raw(items):
        usage = wgpu.BufferUsage
        return device.create_buffer_with_data(data=items, usage=usage.STORAGE | usage.COPY_SRC | usage.COPY_DST)

    def record(encoder, x, y):
        squares["old"].record(encoder, x=x, y=y)

    items = x.to_numpy()
    arrays = {"x": raw(items), "y": raw(items * 0)}
    for _ in range(2):  # after the first run, y holds the right items already
        found = gw.measure(squares["old"], protocol=SHORT, reference=items * items, **arrays)
        assert (found.checked, found.correct) == (True, True)
        assert not gw.measure(squares["old"], protocol=SHORT, **arrays).checked
    assert gw.measure(record, protocol=SHORT, restore=["x"], **arrays).protocol["restored"] == ["x"]
    still = {"x": arrays["x"], "y": device.create_buffer(size=4 * x.size, usage=wgpu.BufferUsage.STORAGE)}
    assert not gw.measure(squares["old"], protocol=SHORT, **still).checked
    with pytest.raises(gw.BufferUsageError, match=r"restore= or check=: the buffer of .* lacks the usage COPY_SRC"):
        gw.measure(squares["old"], protocol=SHORT, reference=items, **still)
    with pytest.raises(gw.BufferUsageError, match=r"restore= or check=: the buffer of .* lacks the usage COPY_SRC"):
        gw.measure(record, protocol=SHORT, restore=["y"], **still)
    with pytest.raises(gw.ArgumentError, match="reference names 'z', which is none of x, y"):
        gw.measure(record, protocol=SHORT, reference={"z": items}, **arrays)
    typed = gw.Array(arrays["y"], "f32")
    named = gw.Benchmark(record, arrays, {"y": items * items}, outputs={"y": typed})
    assert gw.measure(named, protocol=SHORT).correct
    with pytest.raises(gw.ArgumentError, match=r"the output y is a raw wgpu\.GPUBuffer.*gw\.Array\(buffer, 'f32'\)"):
        gw.measure(record, protocol=SHORT, reference={"y": items}, **arrays)
    with pytest.raises(gw.ArgumentError, match=r"x, which the reference takes, is a raw"):
        gw.measure(gw.Benchmark(record, arrays, lambda x: {"y": x}, outputs={"y": typed}), protocol=SHORT)
    with pytest.raises(gw.ArgumentError, match="what the function returned is a raw"):
        gw.measure(lambda: arrays["y"], device=device, protocol=SHORT, reference=items)


def test_results_are_compared_with_a_reference(squares, x):
    items = x.to_numpy()
    arrays = {"protocol": SHORT, "x": items, "y": np.zeros_like(items)}
    for reference, options, is_right in (
        (lambda x: x * x, {}, True),
        (items * items, {}, True),
        (items * items * 1.01, {}, False),
        (items * items * 1.01, {"rtol": 0.02}, True),
        (items * items + 1.0, {"atol": 2.0}, True),
    ):
        found = gw.measure(squares["old"], reference=reference, **options, **arrays)
        both = gw.compare_kernels(squares, rounds=3, reference=reference, **options, **arrays)
        firsts = [found, both.measurements["old"][0], both.measurements["new"][0]]
        assert [(m.checked, m.correct) for m in firsts] == [(True, is_right)] * 3
    with pytest.raises(gw.ArgumentError, match="exclude each other"):
        gw.measure(squares["old"], reference=items, check=lambda outputs: None, **arrays)
    with pytest.raises(gw.ArgumentError, match=r"check= is ndarray, but must be True.*as reference="):
        gw.measure(squares["old"], check=items, **arrays)
    with pytest.raises(gw.ArgumentError, match=r"check= returned True; return None where the outputs are right"):
        gw.measure(squares["old"], check=lambda outputs: True, **arrays)
    two = lambda: (gw.sum(items, device=x.device), gw.asarray(items, x.device))  # noqa: E731
    for reference, is_right in (((items.sum(), items), True), ((items.sum(), items + 1), False)):
        assert gw.measure(two, reference=reference, protocol=SHORT).correct == is_right


def test_an_error_leaves_what_is_restored_as_it_was(device, x):
    adding, y = _kernel(device, "y[id.x] + x[id.x]"), gw.asarray(np.ones(x.size, np.float32), device)
    options = {"protocol": SHORT, "restore": ["y"], "x": x, "y": y}
    for more, error, problem in (
        ({"check": lambda outputs: 1 / 0}, ZeroDivisionError, "division"),
        ({"reference": lambda x: 1 / 0}, ZeroDivisionError, "division"),
        ({"reference": np.ones(3)}, gw.ArgumentError, r"the reference of y has shape \(3,\)"),
        ({"reference": "ones"}, gw.ArgumentError, "the reference of y is 'ones', not of numbers"),
        ({"reference": x, "rtol": -1}, gw.ArgumentError, "rtol=-1 must be a number of 0 or more"),
        ({"reference": x, "atol": "1"}, gw.ArgumentError, "atol='1' must be a number of 0 or more"),
        ({"rtol": 0.1}, gw.ArgumentError, "reference=, which is missing"),
    ):
        with pytest.raises(error, match=problem):
            gw.measure(adding, **options, **more)
        with pytest.raises(error, match=problem):
            gw.compare_kernels({"a": adding, "b": adding}, **options, **more)
        assert (y.to_numpy() == 1).all()


def test_kernels_that_change_what_they_read_begin_with_the_same_items(device, x):
    items = x.to_numpy()
    adding = {"old": _kernel(device, "y[id.x] + x[id.x]"), "new": _kernel(device, "x[id.x] + y[id.x]")}
    y = gw.asarray(items + 1.0, device)
    options = {"rounds": 3, "protocol": SHORT, "reference": lambda x, y: x + y}
    found = gw.compare_kernels(adding, restore=["y"], x=x, y=y, **options)
    assert all(m.correct and m.mode.value == "hot" for rounds in found.measurements.values() for m in rounds)
    np.testing.assert_array_equal(y.to_numpy(), items + 1.0)
    with pytest.raises(gw.ArgumentError, match=r"right only on what y held before.*name it in restore="):
        gw.measure(adding["old"], protocol=SHORT, x=x, y=items, reference=options["reference"])
    with pytest.raises(gw.ArgumentError, match="right only on what y held before"):
        gw.compare_kernels(adding, x=items, y=items, **options)


def test_benchmarks_keep_their_own_inputs(device):
    starts = {"ones": 1.0, "twos": 2.0}
    kernel, x = _kernel(device, "y[id.x] + x[id.x]"), np.arange(1000, dtype=np.float32)
    benchmarks = {
        name: gw.Benchmark(kernel, {"x": x, "y": np.full_like(x, start)}, x + start, restore=["y"])
        for name, start in starts.items()
    }
    found = gw.compare_kernels(benchmarks, rounds=3, protocol=SHORT)
    assert [m.correct for rounds in found.measurements.values() for m in rounds] == [True] * 6


def test_a_wrong_kernel_gets_no_verdict(device, squares, x):
    def check(outputs):
        got = outputs["y"].to_numpy()
        wrong = np.flatnonzero(got != np.arange(1000.0) ** 2)
        return gw.Mismatch(int(wrong[0]), got[wrong[0]], wrong[0] ** 2, wrong.size) if wrong.size else None

    kernels = {**squares, "wrong": _kernel(device, "x[id.x] + 1.0")}
    found = gw.compare_kernels(kernels, rounds=3, protocol=SHORT, check=check, x=x, y=gw.empty_like(x))
    assert found.verdicts["wrong"] is None
    assert len(found.measurements["wrong"]) == 1, "not measured again"
    assert found.verdicts["new"] is not None
    assert "wrong: " in repr(found)


@pytest.mark.parametrize(
    ("ratio", "kinds"),
    [
        (1.0, {"same", "ambiguous"}),
        (1.03, {"ambiguous", "slower"}),
        (3.0, {"slower"}),
        (0.3, {"faster"}),
    ],
)
def test_the_unit_of_a_verdict_is_the_round(device, squares, x, monkeypatch, ratio, kinds):
    """The machine changes its speed by far more than the kernels differ."""
    rng = np.random.default_rng(1)

    def synthetic(kernels, *, rounds, **options):
        states = [1.0, 1.6, 0.8, 1.1, 0.7]
        found = {name: [] for name in kernels}
        for number in range(rounds):
            for name, level in (("old", 1e5), ("new", ratio * 1e5)):
                times = level * states[number % 5] * (1 + 0.002 * rng.standard_normal(60))
                found[name].append(measurement(whole={"gpu_span": series("gpu_span", times, 0)}, ticks=()))
        return found

    monkeypatch.setattr(f"{MODULE}.measure_in_turns", synthetic)
    verdict = gw.compare_kernels(squares, rounds=5, x=x, y=gw.empty_like(x)).verdicts["new"]
    assert verdict.kind.value in kinds, verdict
    assert verdict.ratio == pytest.approx(ratio, rel=0.01)
    assert (verdict.old_rounds, verdict.new_rounds) == (5, 5)


@pytest.mark.parametrize(
    ("name", "times", "reason"),
    [("cpu_wall", [1e5] * 20, "only CPU times"), ("gpu_span", [], "no valid time")],
)
def test_rounds_that_are_not_alike_get_no_verdict(squares, x, monkeypatch, name, times, reason):
    """One round of one kernel differs: its timestamps were missing, or all invalid."""
    usual = measurement(whole={"gpu_span": series("gpu_span", [1e5] * 20, 0)}, ticks=())
    odd = measurement(whole={name: series(name, times, 0)}, ticks=())
    monkeypatch.setattr(f"{MODULE}.measure_in_turns", lambda *_, **__: {"old": [usual] * 5, "new": [*[usual] * 4, odd]})
    found = gw.compare_kernels(squares, rounds=5, x=x, y=gw.empty_like(x))
    assert found.verdicts["new"] is None
    assert reason in repr(found)


def test_a_uniform_may_be_a_numpy_array(device, x):
    """It stays on the host: only arguments of the shader's buffers are uploaded."""
    wgsl = WGSL.format("x[id.x] * f.y") + "\n@group(0) @binding(2) var<uniform> f: vec4<f32>;"
    bindings = {"x": "read", "y": "read_write", "f": "uniform"}
    kernel = gw.Kernel(device, wgsl, bindings, lambda n: -(-n["x"] // 64))
    y, factors = gw.empty_like(x), np.array([0, 3, 0, 0], np.float32)
    gw.compare_kernels({"one": kernel, "same": kernel}, rounds=3, protocol=SHORT, x=x.to_numpy(), y=y, f=factors)
    assert np.array_equal(y.to_numpy(), 3 * np.arange(1000, dtype=np.float32))


def test_what_cannot_be_compared_is_refused_before_anything_runs(device, fresh_device, squares, x, monkeypatch):
    monkeypatch.setattr(f"{MODULE}.measure_in_turns", lambda *_, **__: pytest.fail("it ran"))
    old = squares["old"]
    elsewhere = {"old": old, "new": _kernel(fresh_device, "x[id.x]")}
    for kernels, options, problem in (
        ({"old": old}, {}, "at least two"),
        ({"old": old, "new": 3}, {}, "new takes a gw.Kernel .* not int"),
        ({"old": old, "new": lambda: None}, {"mode": "hot"}, "not for a function that submits .* 'latency'"),
        (elsewhere, {}, "different devices"),
        (squares, {"baseline": "odl"}, "'odl' is none of old, new"),
        (squares, {"rounds": 2}, "at least 3"),
        (squares, {"rounds": 3.5}, "an integer"),
        (squares, {"threshold": 2}, "a share between 0 and 1"),
        (squares, {"z": x}, "no kernel has an argument 'z'; they have x, y"),
    ):
        with pytest.raises(gw.GridwiseError, match=problem):
            gw.compare_kernels(kernels, **{"x": x, **options})


def test_the_work_of_a_kernel_is_what_its_author_says(device, x):
    said = _kernel(device, "x[id.x]", work=lambda n: gw.Work(n["x"], 4 * n["x"], 4 * n["x"], flops=2 * n["x"]))
    plan = said.execute(x=x, y=gw.empty_like(x)).plan
    assert (plan.work.moved_bytes, plan.work.flops) == (8000, 2000)
    with pytest.raises(gw.DatatypeError, match="must be a gw\\.Work"):
        _kernel(device, "x[id.x]", work=8000).execute(x=x, y=gw.empty_like(x))
