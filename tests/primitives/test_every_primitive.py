"""What every primitive must do: found by its signature, compared with its twin in numpy; and what one does for all."""

import dataclasses
import functools
import gc
import re
import weakref

import numpy as np
import pytest
import wgpu

import gridwise_py as gw
from helpers import inside
from helpers.every_primitive import OF_ONE_KERNEL, Call, axes, covering, each_once, fewer_bindings, is_possible, lengths
from helpers.strategies import (
    AFFINE,
    SMALL,
    assert_same,
    exact_items,
    make_primitive,
    quick_first,
    reduce_reference,
    scan_reference,
    strategy_options,
    tuning_of,
)


@pytest.fixture(params=gw.primitives.REGISTRY)
def name(request):
    return request.param


def _call(device, name, n):
    """Its first configuration, which the test below compiles."""
    return Call(device, next(row for row in covering() if row["name"] == name and is_possible(device, row)), n)


@pytest.mark.parametrize(
    "rows",
    [each_once, covering, pytest.param(functools.partial(covering, of_each=True), marks=pytest.mark.slow)],
    ids=["once", "pairs", "pairs of each"],
)
def test_configurations_at_every_length(device, name, rows):
    """Datatypes, operators, strategies, subgroups; views, windows, chunks, counts, in place: each, and every two."""
    for row in rows():
        if row["name"] == name and is_possible(device, row):
            for turn, n in enumerate(lengths(row)):
                with fewer_bindings(device):
                    Call(device, row, n).run(turn)


def test_every_two_values_meet():
    """What the test above runs is what it says."""
    for name, cls in gw.primitives.REGISTRY.items():
        alike = [name]
        if tuning_of(cls) in OF_ONE_KERNEL:
            alike = [
                other for other in gw.primitives.REGISTRY if tuning_of(gw.primitives.REGISTRY[other]) is tuning_of(cls)
            ]
        rows = [row for row in covering() if row["name"] in alike]
        assert name in {row["name"] for row in rows}
        for axis in ("form", "place"):
            assert {row[axis] for row in rows} >= set(axes(name)[axis])
    met = {(row.get("strategy"), row["form"], row.get("subgroups")) for row in covering()}
    for strategy in ("lookback-u64", "lookback-u32x2", "lookback-u32x2-tickets", "reduce_then_scan"):
        assert {form for s, form, _ in met if s == strategy} >= {"whole", "windows", "chunks", "counted"}
        assert {mode for s, _, mode in met if s == strategy} >= {"native", "none", "emulated-16"}
    assert {row["datatype"] for row in covering()} == set(gw.STORAGE_DATATYPES)


def test_what_does_not_fit_is_refused_and_nothing_changes(device, name):
    call = _call(device, name, 64)
    signature, arrays = call.signature, call.upload()
    for argument in signature.inputs:
        rule = signature.arguments[argument]
        if rule.length is not None:
            with pytest.raises(gw.LengthError, match=argument):
                call.primitive.execute(**arrays | {argument: arrays[argument][: call.lengths[argument] - 1]})
        other = "f32" if signature.datatype(argument).name != "f32" else "u32"
        with pytest.raises(gw.DatatypeError, match=argument):
            call.primitive.execute(**arrays | {argument: gw.empty(call.lengths[argument], other, device)})
        if not rule.chunked:
            with pytest.raises(gw.ArgumentError, match="must be one Array"):
                call.primitive.execute(**arrays | {argument: gw.ChunkedArray([arrays[argument]])})
        for output in signature.outputs:
            length, of_input, of_output = call.lengths[output], call.dtype(argument), call.dtype(output)
            if of_input.itemsize != of_output.itemsize or call.lengths[argument] < length:
                continue
            same = call.lengths[argument] == length and of_input == of_output
            if not signature.may_overlap(output, argument, identical=same):
                target = gw.Array(arrays[argument].buffer, signature.datatype(output), length)
                with pytest.raises(gw.OverlapError):
                    call.primitive.execute(**arrays, **{output: target})
    for argument, array in arrays.items():
        np.testing.assert_array_equal(array.to_numpy(), call.inputs[argument])


def test_a_plan_needs_no_device_and_survives_json(name):
    cls = gw.primitives.REGISTRY[name]
    for n in (0, 1, 1000, 1 << 20):
        options, given = cls.at_size(int(n**0.5) if name == "matmul" else n)
        options["dtype"] = next(iter(cls.datatypes))
        planner = cls(None, capabilities=gw.Capabilities(), **options)
        for output in planner.signature.outputs:
            given = {**given, output: planner.signature.output_length(output, given)}
        plan = cls.plan_for(capabilities=gw.Capabilities(), lengths=given, **options)
        assert gw.Plan.from_json(plan.to_json()) == plan.with_checks("all")
        items = [given[argument] for argument in planner.signature.inputs]
        assert plan.work.items == (sum(items) if name == "merge" else items[0]) or name == "matmul"


def test_a_bound_call_keeps_its_arguments(device, name):
    call, other = _call(device, name, 257), _call(device, name, 17)
    bound = call.primitive.bind(**call.place())
    other.check(other.primitive.execute(**other.place()).outputs)
    call.check(bound.execute().outputs)
    call.check(bound.execute(enable_cpu_timing=True).outputs)
    assert bound.get_timing_result().cpu_total_time_ns > 0
    bound.release()
    with pytest.raises(gw.ArgumentError, match="released"):
        bound.execute()


# ---- what is the same code for all: shown with those whose workgroups wait for nobody, for each other, for all ----

NAMES = ("vector_add", "reduce", "reduce_then_scan", "lookback-u32x2")


class _Case:
    """A primitive on one input, with the result that it should have."""

    def __init__(self, device, name, datatype="u32", op="add", **options):
        self.device, self.name, self.op = device, name, op
        cls = {"vector_add": gw.VectorAdd, "reduce": gw.Reduce}.get(name, gw.Scan)
        if cls is gw.Scan:
            options |= strategy_options(name)
        if cls is gw.VectorAdd:
            self.gpu = make_primitive(cls, device, datatype, workgroup_size=64, vecs=1, **options)
        else:
            self.gpu = make_primitive(cls, device, datatype, AFFINE if op == "affine" else op, **SMALL, **options)

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
        assert_same(run.output.to_numpy(), self.want(x), f"{self.name}, n={x.size}")
        return run


@pytest.fixture(params=NAMES)
def primitive(request, device):
    return _Case(device, request.param)


def test_without_subgroups_there_are_barriers_and_no_atomics():
    scan = gw.Scan(
        None, tuning=gw.ScanTuning(subgroups=False), strategy="reduce_then_scan", capabilities=gw.Capabilities()
    )
    plan = scan.plan(gw.Layout.separate(input=10_000_000, output=10_000_000))
    for shader in plan.shaders.values():
        code = re.sub(r"//.*", "", shader.text)
        assert "workgroupBarrier()" in code
        assert "atomic" not in code
        assert not re.search(r"subgroup(?!s\b)[A-Z_]", code)


def test_another_length_compiles_nothing(device):
    for name in NAMES:
        case = _Case(device, name)
        case.check(exact_items("add", "u32", 5000))
        compiled = inside.compiled(device)
        for n in (3, 64, 0, 65, 50_000, 1, 4096):
            case.check(exact_items("add", "u32", n))
        assert inside.compiled(device) == compiled, name


def test_a_dispatch_limit_of_7(device):
    """Workgroups in a grid of three dimensions; what has more is refused, but by those that give a workgroup more."""
    measured = gw.capabilities(device)
    few = dataclasses.replace(measured, limits={**measured.limits, "max-compute-workgroups-per-dimension": 7})
    for name in NAMES:
        case = _Case(device, name, op="add" if name == "vector_add" else "affine", capabilities=few)
        for tiles in (7, 8, 49, 50, 57, 200, 343):
            run = case.check(exact_items("affine", "u32", 256 * tiles - 3), trials=2)
            assert all(max(kernel.workgroups) <= 7 for kernel in run.plan.kernels)
        more = exact_items("affine", "u32", 256 * 343 + 1)
        if name in ("vector_add", "lookback-u32x2"):
            with pytest.raises(gw.LimitError, match="max-compute-workgroups-per-dimension is 7"):
                case.execute(more)
        else:
            case.check(more)
    one = dataclasses.replace(measured, limits={**measured.limits, "max-compute-workgroups-per-dimension": 1})
    _Case(device, "reduce", capabilities=one).check(exact_items("add", "u32", 3000))


def test_past_65535_workgroups(device):
    x = exact_items("add", "u32", 256 * 65_536 + 65)
    for name in NAMES:
        workgroups = np.prod(_Case(device, name).check(x).plan.kernels[0].workgroups)
        assert (workgroups > 65_535) == (name in ("vector_add", "lookback-u32x2")), "others give each many tiles"


# ---- timed calls ----


@pytest.mark.needs("timestamp-query")
def test_each_timed_call_has_a_time_of_its_own(primitive):
    """In whatever order they are read, if at all: the cold first one is not mixed into a mean."""
    x = np.ones(10_000, np.uint32)
    runs = [primitive.execute(x, enable_gpu_timing=True) for _ in range(20)]
    results = [run.get_timing_result() for run in runs[:5:-1]]
    assert all(ns > 0 for result in results for ns in result.gpu_total_time_ns)
    begins = [result.spans[0].begin_ticks for result in results]
    assert begins == sorted(set(begins), reverse=True)
    assert results[0].cpu_total_time_ns is None
    on_cpu = primitive.execute(x, enable_cpu_timing=True).get_timing_result()
    assert on_cpu.cpu_total_time_ns > 0
    assert on_cpu.gpu_total_time_ns is None


@pytest.mark.needs("timestamp-query")
def test_timed_primitives_on_one_encoder(device):
    x = np.ones(10_000, np.uint32)
    encoder = device.create_command_encoder()
    runs = [_Case(device, name).execute(x, encoder=encoder, enable_gpu_timing=True) for name in NAMES]
    with pytest.raises(gw.TimingNotReady):
        runs[0].get_timing_result()
    device.queue.submit([encoder.finish()])
    for run in runs:
        result = run.get_timing_result()
        assert result.labels == tuple(kernel.label for kernel in run.plan.kernels)
        assert all(ns > 0 for ns in result.gpu_total_time_ns)


@pytest.mark.needs("timestamp-query")
def test_timestamps_are_finer_than_65536_ns(device):
    step = gw.capabilities(device).tick_step_ns
    assert step is not None
    assert 0 < step < 65_536
    add, x = _Case(device, "vector_add"), np.ones(1000, np.uint32)
    runs = [add.execute(x, enable_gpu_timing=True) for _ in range(20)]
    assert any(span.ns % 65_536 for run in runs for span in run.get_timing_result().spans)


@pytest.mark.needs("timestamp-query")
def test_two_devices(device, fresh_device):
    x = np.ones(10_000, np.uint32)
    for name in ("vector_add", "lookback-u32x2"):
        cases = [_Case(each, name) for each in (device, fresh_device)]
        for case in (*cases, cases[0]):
            run = case.check(x, enable_gpu_timing=True)
            assert run.output.device is case.device
            assert all(ns > 0 for ns in run.get_timing_result().gpu_total_time_ns)
    with pytest.raises(gw.BufferUsageError, match="another device"):
        gw.Scan(device, "u32").execute(input=gw.asarray(x, fresh_device))


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
    _Case(device, "lookback-u32x2").check(np.ones(100, np.uint32))


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
    scan = _Case(device, "lookback-u32x2").gpu
    scan.execute(**arrays)
    arrays[which].destroy()
    for arguments in (arrays, {}):
        with pytest.raises(gw.BufferUsageError, match="destroyed"):
            scan.execute(**arguments)


# ---- lifetimes ----


def test_arguments_are_freed_with_their_last_reference(fresh_device):
    """Arguments of one-shot and of repeated calls go when the caller lets them go."""
    scan = _Case(fresh_device, "lookback-u32x2").gpu
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
    assert inside.counts(fresh_device)["bindings"] == 0


@pytest.mark.usefixtures("device")
def test_a_device_is_freed_with_its_last_reference():
    """What this library keeps for a device hangs on the device, and goes with it."""
    own = gw.request_device()
    _Case(own, "lookback-u32x2").check(np.ones(1000, np.uint32))
    alive = weakref.ref(own)
    del own
    gc.collect()
    assert alive() is None


# ---- special items ----

FLOATS = (
    [1.0, np.nan, 2.0],
    [np.inf, 1.0, np.inf, -1.0],
    [-np.inf] * 3,
    [1.0, np.inf, -np.inf, 1.0],
    [-0.0, 0.0, -0.0],
    [2.5] * 3,
)


@pytest.mark.parametrize("op", ["add", "min", "max"])
@pytest.mark.parametrize("name", quick_first(["reduce", "lookback-u32x2"], ["reduce_then_scan"]))
def test_special_floats(device, name, op):
    """NaN spreads from where it stands; −0 orders below +0; sums of both infinities are NaN."""
    case = _Case(device, name, "f32", op)
    for values in FLOATS:
        for before in (0, 1, 62, 300):
            x = np.concatenate([np.full(before, values[0]), values]).astype(np.float32)
            got, want = case.execute(x).output.to_numpy(), case.want(x)
            if op == "add":  # the sign of a sum of zeros depends on what it begins with
                np.testing.assert_array_equal(got, want)
            else:
                assert_same(got, want, f"{before} items before {values}")
