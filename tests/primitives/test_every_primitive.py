"""What must hold of each primitive: state, timing, errors, lifetimes, limits, edge lengths, special items."""

import dataclasses
import gc
import re
import weakref

import numpy as np
import pytest
import wgpu

import gridwise_py as gw
from gridwise_py.planning.plan import Kernel
from gridwise_py.runtime.context import context_of
from helpers.strategies import (
    AFFINE,
    DATATYPES,
    SHAPES,
    STRATEGIES,
    assert_same,
    exact_items,
    make_primitive,
    operator,
    reduce_reference,
    scan_reference,
    strategy_options,
)

pytestmark = pytest.mark.thin(1)

SMALL = {**SHAPES["small"], "subgroups": "none"}


@pytest.fixture(params=["vector_add", "reduce", *STRATEGIES])
def primitive(request, device, require):
    """Each primitive, and scan by each strategy."""
    name = request.param
    if "u64" in name:
        require("shader-int64", "shader-int64-atomic-all-ops")
    return _Case(device, name)


class _Case:
    """A primitive on one input, with the result that it should have."""

    def __init__(self, device, name, datatype="u32", op="add"):
        self.device, self.name, self.op = device, name, op
        if name == "vector_add":
            self.gpu = make_primitive(gw.VectorAdd, device, datatype, **SHAPES["small"])
        elif name == "reduce":
            self.gpu = make_primitive(gw.Reduce, device, datatype, operator(op, datatype), **SMALL)
        else:
            self.gpu = make_primitive(
                gw.Scan, device, datatype, operator(op, datatype), **strategy_options(name), **SMALL
            )

    def execute(self, x, **options):
        array = gw.asarray(x, self.device)
        names = ("a", "b") if self.name == "vector_add" else ("input",)
        return self.gpu.execute(**dict.fromkeys(names, array), **options)

    def want(self, x):
        if self.name == "vector_add":
            return x + x
        return reduce_reference(self.op, x) if self.name == "reduce" else scan_reference(self.op, x)

    def check(self, x, **options):
        """Run it, and compare."""
        run = self.execute(x, **options)
        assert_same(run.output.to_numpy(), self.want(x), f"n={x.size}")
        return run


@pytest.mark.parametrize("size", [4, 16, 64, 128])
@pytest.mark.parametrize("form", ["reduce", "reduce_then_scan", "lookback"])
def test_subgroups_of_any_size(device, form, size):
    """test_subgroup_sizes.py has the sizes that lavapipe really has."""
    options = {"subgroups": f"emulated-{size}", "workgroup_size": 128, "vecs": 1}
    x = exact_items("affine", "u32", 512 * 5 + 3)
    if form == "reduce":
        got = make_primitive(gw.Reduce, device, "u32", AFFINE, **options).execute(input=gw.asarray(x, device)).output
        assert_same(got.to_numpy(), reduce_reference("affine", x))
    else:
        scan = make_primitive(gw.Scan, device, "u32", AFFINE, strategy=form, state="u32x2", **options)
        assert_same(scan.execute(input=gw.asarray(x, device)).output.to_numpy(), scan_reference("affine", x))


def test_without_subgroups_there_are_barriers_and_no_atomics(device):
    """Without subgroups there are barriers, and no atomic to spin on."""
    scan = gw.Scan(device, "u32", tuning=gw.ScanTuning(subgroups=False), strategy="reduce_then_scan")
    plan = scan.plan(gw.Layout.separate(input=10_000_000, output=10_000_000))
    for shader in plan.shaders.values():
        assert "workgroupBarrier()" in shader.text
        assert "atomic" not in re.sub(r"//.*", "", shader.text)
        assert not re.search(r"subgroup(?!s\b)[A-Z_]", re.sub(r"//.*", "", shader.text))


def test_waits_for_other_workgroups_are_bounded(device):
    """The look-back and the end of a reduction, which do wait, end and are right though nobody ever posts."""
    x = exact_items("affine", "u32", 64 * 20)
    reduce = make_primitive(gw.Reduce, device, "u32", AFFINE, state="u32x2", stall_every=1, **SMALL)
    assert_same(reduce.execute(input=gw.asarray(x, device)).output.to_numpy(), reduce_reference("affine", x))
    scan = make_primitive(gw.Scan, device, "u32", AFFINE, strategy="lookback", state="u32x2", stall_every=1, **SMALL)
    assert_same(scan.execute(input=gw.asarray(x, device)).output.to_numpy(), scan_reference("affine", x))


def test_repeated_trials_do_not_see_earlier_state(primitive):
    """Of another input in the same buffers, so that a finished look-back would give old sums."""
    array = gw.empty(5000, "u32", primitive.device)
    names = ("a", "b") if primitive.name == "vector_add" else ("input",)
    for seed in range(3):
        x = exact_items("add", "u32", 5000, seed)
        array.copy_from(x)
        run = primitive.gpu.execute(**dict.fromkeys(names, array), trials=7)
        assert_same(run.output.to_numpy(), primitive.want(x), f"input {seed}")


def test_every_step_of_a_plan_works_on_items(primitive):
    """There is none at all: every step is a kernel that works on items."""
    plan = primitive.execute(np.ones(100_000, np.uint32)).plan
    assert all(isinstance(step, Kernel) for step in plan.steps)
    labels = {"vector_add", "reduce", "scan", "reduce blocks", "scan totals", "scan blocks"}
    assert {kernel.label for kernel in plan.kernels} <= labels


@pytest.mark.parametrize("name", ["vector_add", "reduce", "reduce_then_scan"])
def test_repeated_trials_in_place_are_refused(device, name):
    case, x = _Case(device, name), exact_items("add", "u32", 1000)
    array = gw.asarray(x, device)
    arguments = {"a": array, "b": array} if name == "vector_add" else {"input": array}
    output = array[:1] if name == "reduce" else array
    with pytest.raises(gw.OverlapError, match="trials=3"):
        case.gpu.execute(**arguments, output=output, trials=3)
    assert_same(array.to_numpy(), x)


def test_single_runs_have_their_own_times(primitive, require):
    """Each timed run has a time of its own: the cold first one is not mixed into a mean."""
    require("timestamp-query")
    x = np.ones(50_000, np.uint32)
    runs = [primitive.execute(x, enable_gpu_timing=True) for _ in range(5)]
    begins = [run.get_timing_result().spans[0].begin_ticks for run in runs]
    assert len(set(begins)) == 5
    assert begins == sorted(begins)


# ---- timed calls ----


def test_a_second_timed_call_before_the_first_is_read(primitive, require):
    require("timestamp-query")
    x = np.ones(10_000, np.uint32)
    first, second = (primitive.execute(x, enable_gpu_timing=True) for _ in "ab")
    for run in (second, first):
        assert all(ns > 0 for ns in run.get_timing_result().gpu_total_time_ns)


def test_timed_primitives_on_one_encoder(device, require):
    require("timestamp-query")
    x = np.ones(10_000, np.uint32)
    encoder = device.create_command_encoder()
    runs = [
        _Case(device, name).execute(x, encoder=encoder, enable_gpu_timing=True)
        for name in ("reduce_then_scan", "vector_add", "reduce")
    ]
    with pytest.raises(gw.TimingNotReady):
        runs[0].get_timing_result()
    device.queue.submit([encoder.finish()])
    for run in runs:
        result = run.get_timing_result()
        assert result.labels == tuple(kernel.label for kernel in run.plan.kernels)
        assert all(ns > 0 for ns in result.gpu_total_time_ns)


def test_timing_results_that_are_never_read(primitive, require):
    require("timestamp-query")
    x = np.ones(10_000, np.uint32)
    for _ in range(20):
        primitive.execute(x, enable_gpu_timing=True)
    assert all(ns > 0 for ns in primitive.execute(x, enable_gpu_timing=True).get_timing_result().gpu_total_time_ns)


def test_timed_calls_on_two_devices(device, fresh_device, require):
    require("timestamp-query")
    x = np.ones(10_000, np.uint32)
    runs = [_Case(d, "vector_add").check(x, enable_gpu_timing=True) for d in (device, fresh_device, device)]
    for run in runs:
        assert all(ns > 0 for ns in run.get_timing_result().gpu_total_time_ns)


def test_cpu_timing_alone(primitive):
    result = primitive.execute(np.ones(10_000, np.uint32), enable_cpu_timing=True).get_timing_result()
    assert result.cpu_total_time_ns > 0
    assert result.gpu_total_time_ns is None


def test_gpu_timing_alone(primitive, require):
    require("timestamp-query")
    result = primitive.execute(np.ones(10_000, np.uint32), enable_gpu_timing=True).get_timing_result()
    assert result.cpu_total_time_ns is None
    assert result.per_trial.cpu_total_time_ns is None


def test_timestamps_are_finer_than_65536_ns(device, require):
    require("timestamp-query")
    step = gw.capabilities(device).tick_step_ns
    assert step is not None
    assert 0 < step < 65_536
    x = np.ones(1000, np.uint32)
    spans = [
        span
        for _ in range(20)
        for span in _Case(device, "vector_add").execute(x, enable_gpu_timing=True).get_timing_result().spans
    ]
    assert any(span.ns % 65_536 for span in spans)


def test_one_primitive_on_one_encoder_at_several_sizes(primitive):
    inputs = [exact_items("add", "u32", n) for n in (5000, 3, 64, 5001, 0, 700)]
    encoder = primitive.device.create_command_encoder()
    runs = [primitive.execute(x, encoder=encoder) for x in inputs]
    primitive.device.queue.submit([encoder.finish()])
    for x, run in zip(inputs, runs, strict=True):
        assert_same(run.output.to_numpy(), primitive.want(x), f"n={x.size}")


# ---- errors ----

BROKEN = gw.BinOp("broken", 0, np.add, wgsl="fn combine(a: T, b: T) -> T { return a + nonsense; }")


@pytest.mark.parametrize("cls", [gw.Reduce, gw.Scan])
def test_a_shader_that_does_not_compile_raises(device, cls, wgpu_errors):
    x = gw.asarray(np.ones(100, np.uint32), device)
    output = gw.asarray(np.full(100 if cls is gw.Scan else 1, 42, np.uint32), device)
    with pytest.raises(gw.ShaderError, match=r"nonsense[\s\S]*\n +\d+.*nonsense"):
        cls(device, "u32", BROKEN).execute(input=x, output=output)
    wgpu_errors.clear()
    assert (output.to_numpy() == 42).all()
    assert_same(gw.cumsum(x, dtype=np.uint32).to_numpy(), np.arange(1, 101, dtype=np.uint32))


def test_invalid_commands_raise_and_leave_no_trace(device, wgpu_errors):
    """A pass that is left open makes finish() raise, and what was recorded leaves no trace."""
    x = np.ones(100, np.uint32)
    output = gw.asarray(np.full(100, 42, np.uint32), device)
    encoder = device.create_command_encoder()
    _Case(device, "reduce_then_scan").execute(x, output=output, encoder=encoder)
    encoder.begin_compute_pass()
    with pytest.raises(wgpu.GPUError):
        encoder.finish()
    wgpu_errors.clear()
    assert (output.to_numpy() == 42).all()
    _Case(device, "reduce_then_scan").check(x)


@pytest.mark.parametrize("which", ["input", "output"])
def test_a_destroyed_buffer_is_refused(device, which):
    arrays = {name: gw.asarray(np.ones(100, np.uint32), device) for name in ("input", "output")}
    scan = make_primitive(gw.Scan, device, "u32", **SMALL)
    scan.execute(**arrays)
    arrays[which].destroy()
    for arguments in (arrays, {}):
        with pytest.raises(gw.BufferUsageError, match="destroyed"):
            scan.execute(**arguments)


# ---- identities and lifetimes ----


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize(("op", "value"), [("min", np.inf), ("max", -np.inf)])
def test_extremes_of_infinite_items(device, require, op, value, strategy):
    if "u64" in strategy:
        require("shader-int64", "shader-int64-atomic-all-ops")
    for n in (1, 64, 65, 300):
        x = np.full(n, value, np.float32)
        for name in ("reduce", strategy):
            _Case(device, name, "f32", op).check(x)
    exclusive = make_primitive(gw.Scan, device, "f32", op, "exclusive", **SMALL).execute(input=gw.asarray(x, device))
    assert exclusive.output.to_numpy()[0] == value


def test_arguments_are_freed_with_their_last_reference(fresh_device):
    """Arguments of one-shot and of repeated calls go when the caller lets them go."""
    scan = make_primitive(gw.Scan, fresh_device, "u32", **SMALL)
    buffers = weakref.WeakSet()
    for n in range(1, 40):
        x = gw.asarray(np.ones(n, np.uint32), fresh_device)
        output = scan.execute(input=x).output
        total = gw.sum(x)
        buffers.update([x.buffer, output.buffer, total.buffer])
    assert len(buffers) >= 3
    scan.release()
    del x, output, total
    gc.collect()
    assert len(buffers) == 0
    assert context_of(fresh_device).executor.counts["bindings"] == 0


@pytest.mark.usefixtures("device")
def test_a_device_is_freed_with_its_last_reference():
    """What this library keeps for a device hangs on the device, and goes with it."""
    own = gw.request_device()
    _Case(own, "lookback-u32x2").check(np.ones(1000, np.uint32))
    gw.sum(gw.asarray(np.ones(5, np.uint32), own))
    alive = weakref.ref(own)
    del own
    gc.collect()
    assert alive() is None


# ---- limits ----


def test_more_workgroups_than_one_dimension_has(device, primitive):
    primitive.check(exact_items("add", "u32", 64 * 65_536 + 65))


def test_a_dispatch_limit_of_7(device):
    measured = gw.capabilities(device)
    limits = {**measured.limits, "max-compute-workgroups-per-dimension": 7}
    few = dataclasses.replace(measured, limits=limits)
    x = exact_items("affine", "u32", 64 * 300 + 1)
    for strategy in ("reduce_then_scan", "lookback"):
        scan = make_primitive(
            gw.Scan, device, "u32", AFFINE, strategy=strategy, state="u32x2", capabilities=few, **SMALL
        )
        run = scan.execute(input=gw.asarray(x, device))
        assert all(max(kernel.workgroups) <= 7 for kernel in run.plan.kernels)
        assert_same(run.output.to_numpy(), scan_reference("affine", x))


# ---- lengths and items ----


def test_no_items(primitive):
    primitive.check(np.array([], np.uint32))


def test_one_item(primitive):
    primitive.check(np.array([3_000_000_000], np.uint32))


def test_lengths_that_are_no_multiple_of_4(primitive):
    for n in (2, 3, 5, 61, 62, 63, 65, 66, 67, 4097, 4098, 4099):
        primitive.check(exact_items("add", "u32", n))


FLOATS = {
    "nan": [1.0, np.nan, 2.0],
    "infinities": [np.inf, 1.0, np.inf, -1.0],
    "both infinities": [1.0, np.inf, -np.inf, 1.0],
    "negative zero": [-0.0, 0.0, -0.0],
    "equal items": [2.5] * 3,
}


@pytest.mark.parametrize("op", ["add", "min", "max"])
@pytest.mark.parametrize("what", FLOATS)
@pytest.mark.parametrize("name", ["reduce", "reduce_then_scan", "lookback-u32x2"])
def test_special_floats(device, name, what, op):
    case = _Case(device, name, "f32", op)
    for before in (0, 1, 62, 200):
        x = np.concatenate([np.full(before, FLOATS[what][0], np.float32), FLOATS[what]]).astype(np.float32)
        got, want = case.execute(x).output.to_numpy(), case.want(x)
        if op == "add":  # the sign of a sum of zeros depends on what it begins with
            np.testing.assert_array_equal(got, want)
        else:
            assert_same(got, want, f"{before} items before")


@pytest.mark.parametrize("datatype", DATATYPES)
def test_equal_items(device, datatype):
    x = np.full(3001, 5, gw.DATATYPES[datatype].dtype)
    for name in ("vector_add", "reduce", "reduce_then_scan", "lookback-u32x2"):
        _Case(device, name, datatype).check(x)


def test_trials(primitive):
    x = exact_items("add", "u32", 3001)
    primitive.check(x, trials=1)
    primitive.check(x, trials=7)


def test_two_devices(device, fresh_device):
    x = exact_items("add", "u32", 3001)
    for name in ("vector_add", "reduce", "reduce_then_scan", "lookback-u32x2"):
        first, second = _Case(device, name), _Case(fresh_device, name)
        for case in (first, second, first):
            run = case.check(x)
            assert run.output.device is case.device


def test_an_array_of_another_device_is_refused(device, fresh_device):
    x = gw.asarray(np.ones(5, np.uint32), fresh_device)
    with pytest.raises(gw.BufferUsageError, match="another device"):
        gw.Scan(device, "u32").execute(input=x)
