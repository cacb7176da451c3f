"""Bad input gets a clear Python error before anything is submitted, and nothing is changed."""

import asyncio
import itertools
import re
from dataclasses import replace

import numpy as np
import pytest
import wgpu

import gridwise_py as gw
from gridwise_py import errors
from gridwise_py.runtime.compile_threads import compile_threads
from gridwise_py.runtime.context import context_of
from helpers.bare import device_with
from helpers.strategies import make_primitive

N = 1000
X = np.arange(N, dtype=np.uint32)
OLD = np.full(N, 7, dtype=np.uint32)
USAGE = wgpu.BufferUsage
COPY_ITEMS = """
@group(0) @binding(0) var<storage, read> a: array<u32>;
@group(0) @binding(1) var<storage, read_write> b: array<u32>;
@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3<u32>) { b[id.x] = a[id.x]; }"""
DOUBLE = """
@group(0) @binding(0) var<storage, read_write> x: array<u32>;
@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3<u32>) { x[id.x] = 2u * x[id.x]; }
"""


# ---- the tree


def _drawn() -> dict[str, set[str]]:
    """From the drawing in the docstring: each class with its bases."""
    tree: dict[str, set[str]] = {}
    parents: list[str] = []
    for line in errors.__doc__.splitlines():
        found = re.match(
            r"    ([│├└─ ]*)(Gridwise\w+|\w+Error|Timing\w+|BadResultsFile)(?: \((?:numpy\.)?(\w+)\))?(?:\s+.*)?$", line
        )
        if found:
            depth = len(found[1]) // 4
            parents[depth:] = [found[2]]
            tree[found[2]] = {parents[depth - 1]} if depth else set()
            if found[3]:
                tree[found[2]].add(found[3])
    return tree


@pytest.mark.slow
def test_the_tree_is_as_drawn():
    tree = _drawn()
    assert set(tree) == set(errors.__all__)
    for name, bases in tree.items():
        real = {base.__name__ for base in getattr(errors, name).__bases__}
        assert real == (bases or {"Exception"}), name


def test_every_error_is_public_and_has_a_docstring():
    defined = {n for n, v in vars(errors).items() if isinstance(v, type) and v.__module__ == errors.__name__}
    assert defined == set(errors.__all__)
    assert errors.__all__ == sorted(errors.__all__)
    for name in defined:
        assert getattr(gw, name) is getattr(errors, name)
        assert getattr(errors, name).__doc__


# ---- bad input


@pytest.fixture
def calm(device, monkeypatch):
    """Call it to check that an error is raised before anything is submitted, and that nothing changes."""
    compile_threads().finish()  # what earlier tests have compiled behind them is counted, too
    submissions = []
    submit = device.queue.submit
    write = device.queue.write_buffer
    monkeypatch.setattr(device.queue, "submit", lambda c: (submissions.append(1), submit(c))[1], raising=False)
    monkeypatch.setattr(
        device.queue, "write_buffer", lambda *a, **k: (submissions.append(1), write(*a, **k))[1], raising=False
    )

    def check(primitive, kind, match, *watched, **arguments):
        call_before, timed_before = primitive._last_call, primitive._last_timed
        before = [array.to_numpy() for array in watched]
        compile_threads().finish()  # what earlier tests left to do counts, too
        counts = context_of(device).executor.counts
        helper = gw.timing_helper(device) if "timestamp-query" in device.features else None
        in_use = helper and helper.pairs_in_use
        submissions.clear()
        for call in (primitive.execute, primitive.bind):
            if call == primitive.bind and {"trials", "encoder"} & set(arguments):
                continue
            with pytest.raises(kind, match=match) as caught:
                call(**arguments)
            assert isinstance(caught.value, gw.GridwiseError)
        assert not submissions, "nothing was submitted"
        after = context_of(device).executor.counts
        assert all(after[kind] <= counts[kind] for kind in counts), "nothing was made"
        assert primitive._last_call is call_before, "arguments of earlier calls stay bound"
        assert primitive._last_timed is timed_before
        assert helper is None or helper.pairs_in_use <= in_use, "fewer, if garbage of earlier tests went"
        for array, contents in zip(watched, before, strict=True):
            np.testing.assert_array_equal(array.to_numpy(), contents)
        return str(caught.value)

    return check


@pytest.fixture
def x(device):
    return gw.asarray(X, device)


@pytest.fixture
def out(device):
    return gw.asarray(OLD, device)


@pytest.fixture(params=["fresh", "used"])
def scan(device, request):
    """A scan that has no call behind it, or one."""
    scan = gw.Scan(device)
    if request.param == "used":
        scan.execute(input=gw.asarray(X[:10], device), output=gw.asarray(OLD[:10], device))
    return scan


def test_wrong_dtype(device, calm, scan, x, out):
    floats = gw.asarray(X.astype(np.float32), device)
    message = calm(scan, gw.DatatypeError, "input is of f32.*made for u32", out, input=floats, output=out)
    assert "input.astype('u32'), or make a Scan for f32" in message
    calm(scan, gw.DatatypeError, "output is of f32.*give an Array of u32", floats, input=x, output=floats)
    assert isinstance(gw.DatatypeError(""), TypeError)


def test_what_is_no_array(device, calm, scan, x, out):
    calm(scan, gw.DatatypeError, r"numpy array.*asarray\(input, device\)", out, input=X, output=out)
    for value in ([1, 2], 5, "x", object()):
        calm(
            scan,
            gw.DatatypeError,
            r"must be an Array, a ChunkedArray or a wgpu.GPUBuffer.*gw\.asarray",
            out,
            input=value,
            output=out,
        )
    calm(scan, gw.DatatypeError, "output is a numpy array", input=x, output=OLD)


def test_lengths_that_differ(device, calm, x, out):
    add = gw.VectorAdd(device)
    message = calm(add, gw.LengthError, "a has 1000 items, b has 999 items", out, a=x, b=x[1:], output=out)
    assert "slice" in message


def test_an_output_that_is_too_small(device, calm, scan, x, out):
    message = calm(scan, gw.LengthError, "output has room for 999 items.*1000", out, input=x, output=out[1:])
    assert "at least 1000" in message
    calm(gw.Reduce(device), gw.LengthError, "room for 0 items.*has 1", input=x, output=out[:0])


def test_a_larger_output_is_fine_and_the_rest_is_kept(device, out):
    part = gw.asarray(X[:10], device)
    run = gw.Scan(device).execute(input=part, output=out[3:])
    assert run.output.size == 10
    contents = out.to_numpy()
    np.testing.assert_array_equal(contents[3:13], np.cumsum(X[:10], dtype=np.uint32))
    assert (contents[:3] == 7).all()
    assert (contents[13:] == 7).all()


def test_overlap(device, calm, scan, x):
    message = calm(
        scan, gw.OverlapError, r"output \(items 1 to 501.*overlaps.*input \(items 0 to 500", x,
        input=x[:500], output=x[1:501],
    )  # fmt: skip
    assert "or exactly the same view" in message
    lookback = gw.Scan(device, strategy="lookback")
    message = calm(lookback, gw.OverlapError, "overlaps", x, input=x, output=x)
    assert "exactly the same" not in message
    calm(gw.VectorAdd(device), gw.OverlapError, "overlaps b", x, a=x[:400], b=x[400:800], output=x[500:900])


def test_views_that_do_not_overlap_are_fine(device, x):
    for first, second in ((0, 400), (400, 0)):  # next to each other, in either order
        x.copy_from(X)
        run = gw.Scan(device).execute(input=x[first : first + 400], output=x[second : second + 400])
        np.testing.assert_array_equal(run.output.to_numpy(), np.cumsum(X[first : first + 400], dtype=np.uint32))


def test_another_device(device, calm, scan, fresh_device, x, out):
    foreign = gw.asarray(X, fresh_device)
    message = calm(scan, gw.BufferUsageError, "input lies on another device", out, input=foreign, output=out)
    assert "to_numpy(), device)" in message
    calm(scan, gw.BufferUsageError, "output lies on another device", foreign, input=x, output=foreign)
    calm(scan, gw.BufferUsageError, "another device", out, input=foreign.buffer, output=out)


def test_an_encoder_of_another_device(device, calm, scan, fresh_device, x, out):
    encoder = fresh_device.create_command_encoder()
    calm(scan, gw.ArgumentError, "device", out, input=x, output=out, encoder=encoder)


def test_an_encoder_that_is_finished_or_none(device, calm, scan, x, out):
    finished = device.create_command_encoder()
    finished.finish()
    other = device.create_command_encoder()
    compute = other.begin_compute_pass()
    event = gw.Event(device, enable_timing="timestamp-query" in device.features)
    for encoder, message in (
        (finished, r"the encoder is finished; record before encoder\.finish\(\).*create_command_encoder\(\)"),
        (compute, r"must be a wgpu\.GPUCommandEncoder, not GPUComputePassEncoder; where you have a pass, end it"),
        (5, r"must be a wgpu\.GPUCommandEncoder, not int"),
    ):
        calm(scan, gw.ArgumentError, message, out, input=x, output=out, encoder=encoder)
        for record in (lambda e=encoder: scan.record(e, input=x, output=out), lambda e=encoder: event.record(e)):
            with pytest.raises(gw.ArgumentError, match=message):
                record()
    assert not event.query()
    compute.end()


def test_recording_while_a_pass_is_open(device, x, out):
    """As everywhere in WebGPU, the encoder is spoilt, and its finish() says why; the primitive goes on."""
    scan, encoder = gw.Scan(device), device.create_command_encoder()
    compute = encoder.begin_compute_pass()
    scan.record(encoder, input=x, output=out)
    compute.end()
    with pytest.raises(wgpu.GPUValidationError, match=r"(the pass must be ended|is locked while)"):
        encoder.finish()
    scan.execute(input=x, output=out)
    np.testing.assert_array_equal(out.to_numpy(), np.cumsum(X, dtype=np.uint32))


def test_a_timing_session_of_another_device(device, fresh_device, require, x, out):
    require("timestamp-query")
    scan = gw.Scan(device)
    encoder = device.create_command_encoder()
    for session, message in (
        (gw.timing_helper(fresh_device).session(), r"of another device.*timing_helper\(primitive\.device\)"),
        (True, r"must be a TimingSession, not bool.*timing_helper\(device\)\.session\(\)"),
    ):
        with pytest.raises(gw.ArgumentError, match=message):
            scan.record(encoder, input=x, output=out, timing=session)
    assert gw.timing_helper(fresh_device).pairs_in_use == 0
    device.queue.submit([encoder.finish()])  # nothing is on it


@pytest.mark.parametrize("timed", [False, True])
@pytest.mark.parametrize("when", ["before finish", "after finish"])
def test_an_array_that_is_destroyed_before_its_encoder_is_submitted(device, monkeypatch, require, timed, when):
    """Submitting it would end the process, also where somebody had replaced `submit` and put it back."""
    if timed:
        require("timestamp-query")
    monkeypatch.setattr(device.queue, "submit", type(device.queue).submit.__get__(device.queue), raising=False)
    scan, x = gw.Scan(device), gw.asarray(X, device)
    encoder = device.create_command_encoder()
    scan.execute(input=x, encoder=encoder, enable_gpu_timing=timed)
    commands = encoder.finish() if when == "after finish" else None
    x.destroy()
    fine = device.create_command_encoder()
    run = scan.execute(input=gw.asarray(X, device), encoder=fine)
    for _ in range(2):
        with pytest.raises(gw.BufferUsageError, match=r"scan's input was destroyed after it was recorded.*Nothing was"):
            device.queue.submit(iter([commands or encoder.finish()]))
    device.queue.submit([fine.finish()])
    np.testing.assert_array_equal(run.output.to_numpy(), np.cumsum(X, dtype=np.uint32))


def test_commands_that_are_submitted_twice(device, x, out):
    """wgpu would end the process."""
    scan, encoder = gw.Scan(device), device.create_command_encoder()
    scan.execute(input=x, output=out, encoder=encoder)
    commands = encoder.finish()
    device.queue.submit([commands])
    with pytest.raises(gw.ArgumentError, match="submitted before; record and finish again"):
        device.queue.submit([commands])
    np.testing.assert_array_equal(out.to_numpy(), np.cumsum(X, dtype=np.uint32))


def test_a_destroyed_buffer(device, calm, scan, x, out):
    gone = gw.asarray(X, device)
    gone.destroy()
    calm(
        scan,
        gw.BufferUsageError,
        "input: the buffer of .* was destroyed; make a new Array",
        out,
        input=gone,
        output=out,
    )
    calm(scan, gw.BufferUsageError, "output: the buffer of .* was destroyed", input=x, output=gone)


def test_a_mapped_buffer(device, calm, scan, out):
    mapped = device.create_buffer(size=4 * N, usage=USAGE.STORAGE, mapped_at_creation=True)
    calm(scan, gw.BufferUsageError, r"mapped; call buffer\.unmap\(\)", out, input=mapped, output=out)


def test_a_missing_usage_flag(device, calm, scan, x, out):
    raw = device.create_buffer(size=4 * N, usage=USAGE.COPY_SRC | USAGE.COPY_DST)
    message = calm(scan, gw.BufferUsageError, "input: .* lacks the usage STORAGE", out, input=raw, output=out)
    assert "usage=wgpu.BufferUsage.STORAGE" in message
    calm(scan, gw.BufferUsageError, "output: .* lacks the usage STORAGE", input=x, output=raw)


@pytest.mark.parametrize("name", ["copy", "vector_add", "reduce", "scan"])
def test_a_window_that_holds_no_tile(device, calm, x, out, name):
    """With an invented limit: real ones hold any tile."""
    tiny = replace(
        gw.capabilities(device),
        limits={**gw.capabilities(device).limits, "max-storage-buffer-binding-size": 1024},
    )
    primitive = gw.primitives.REGISTRY[name](device, capabilities=tiny)
    arrays = {a.name: out if a.is_output else x for a in primitive.signature.arguments.values()}
    message = calm(primitive, gw.LimitError, "max-storage-buffer-binding-size is 1024 bytes", out, **arrays)
    assert "1000 items" in message
    assert "workgroup_size=" in message


def test_a_buffer_over_the_limit(device):
    limit = device.limits["max-buffer-size"]
    for make in (gw.empty, lambda n, *_: gw.empty(n, device=device)):
        with pytest.raises(gw.LimitError, match=f"max-buffer-size is {limit} bytes"):
            make(limit, "u32", device)


def test_trials(device, calm, scan, x, out):
    for trials in (0, -1, 1.0, "3", None, True):
        wrong = {"input": x, "output": out, "trials": trials}
        calm(scan, gw.ArgumentError, "trials must be an integer of at least 1", out, **wrong)
        calm(scan, gw.ArgumentError, "trials", out, **wrong, enable_gpu_timing=True, enable_cpu_timing=True)


def test_trials_of_numpy_are_fine(device, x, out):
    gw.Scan(device).execute(input=x, output=out, trials=np.int64(2))
    np.testing.assert_array_equal(out.to_numpy(), np.cumsum(X, dtype=np.uint32))


def _makes(name):
    """Each primitive that has an integer option, made with it."""
    return {
        "workgroup_size": lambda v: gw.Scan(None, tuning=gw.ScanTuning(workgroup_size=v), capabilities=CAPABILITIES),
        "vecs": lambda v: gw.Reduce(None, tuning=gw.ReduceTuning(vecs=v), capabilities=CAPABILITIES),
        "spin_limit": lambda v: gw.Scan(None, tuning=gw.ScanTuning(spin_limit=v), capabilities=CAPABILITIES),
        "stall_every": lambda v: make_primitive(gw.Reduce, None, stall_every=v, capabilities=CAPABILITIES),
        "epoch_bits": lambda v: make_primitive(gw.Scan, None, epoch_bits=v, capabilities=CAPABILITIES),
        "begin_bit": lambda v: gw.Sort(None, begin_bit=v, capabilities=CAPABILITIES),
        "end_bit": lambda v: gw.Sort(None, end_bit=v, capabilities=CAPABILITIES),
        "items": lambda v: gw.Sort(None, tuning=gw.SortTuning(items=v, parts=1), capabilities=CAPABILITIES),
        "parts": lambda v: gw.Sort(None, tuning=gw.SortTuning(parts=v), capabilities=CAPABILITIES),
        "look": lambda v: gw.Sort(None, tuning=gw.SortTuning(look=v), capabilities=CAPABILITIES),
        "tile_k": lambda v: gw.MatMul(None, m=8, n=8, k=8, tuning=gw.MatMulTuning(tile_k=v), capabilities=CAPABILITIES),
    }[name]


CAPABILITIES = gw.Capabilities()
# Each with a value that it may have.
INTEGER_OPTIONS = {"workgroup_size": 64, "vecs": 2, "spin_limit": 9, "stall_every": 3, "epoch_bits": 5, "begin_bit": 3,
                   "end_bit": 20, "items": 1, "parts": 1, "look": 2, "tile_k": 8}  # fmt: skip


@pytest.mark.parametrize("option", INTEGER_OPTIONS)
def test_an_option_is_any_integer_and_nothing_else(option):
    for wrong in (2.0, np.float32(2), True, "2", [2], 2.5):
        with pytest.raises(gw.ArgumentError, match=f"{option} must be an integer.*, not {re.escape(repr(wrong))}$"):
            _makes(option)(wrong)
    right = INTEGER_OPTIONS[option]
    plain = _makes(option)(right)
    layout = gw.Layout.separate(
        **{a.name: 64 if option == "tile_k" else 10_000 for a in plain.signature.arguments.values()}
    )
    for integer in (np.int8, np.uint8, np.int64):
        plan = _makes(option)(integer(right)).plan(layout)
        assert plan == plain.plan(layout)
        assert gw.Plan.from_json(plan.to_json()) == plan.with_checks("all")


def test_trials_in_place(device, calm, scan, x):
    calm(
        scan,
        gw.OverlapError,
        "trials=2.*overlaps an input.*separate output, or trials=1",
        x,
        input=x,
        output=x,
        trials=2,
    )


def test_cpu_timing_with_a_callers_encoder(device, calm, scan, x, out):
    encoder = device.create_command_encoder()
    message = calm(
        scan, gw.ArgumentError, "enable_cpu_timing", out,
        input=x, output=out, encoder=encoder, enable_cpu_timing=True,
    )  # fmt: skip
    assert "leave out encoder=" in message
    encoder.finish()


def test_unknown_and_missing_arguments(device, calm, x, out):
    scan = gw.Scan(device)
    calm(scan, gw.ArgumentError, "no argument 'x'; it takes input, output, n", out, x=x, output=out)
    calm(scan, gw.ArgumentError, "Scan needs input=; it was given nothing", out, output=None)
    calm(gw.VectorAdd(device), gw.ArgumentError, "needs b=; it was given a", out, a=x, output=None)


def test_arguments_by_position_are_answered_with_their_names(device, x):
    kernel = gw.Kernel(device, COPY_ITEMS, {"a": "read", "b": "read_write"}, workgroups=1)
    for primitive, names in (
        (gw.Scan(device), "input=, output="),
        (gw.SortPairs(device), "keys=, values=, output_keys=, output_values="),
        (kernel, "a=, b="),
    ):
        encoder = device.create_command_encoder()
        for call in (primitive.execute, primitive.bind, lambda *a, p=primitive, e=encoder: p.record(e, *a)):
            with pytest.raises(gw.ArgumentError, match=rf"by position.*was given .*; name .*: {names}"):
                call(x)
        with pytest.raises(gw.ArgumentError, match=names):
            asyncio.run(primitive.execute_async(x))


def test_a_slip_in_a_name_is_answered_with_the_name(device, calm, scan, x, out):
    calm(scan, gw.ArgumentError, "no argument 'inptu'; did you mean 'input'[?]", out, inptu=x, output=out)
    with pytest.raises(gw.ArgumentError, match="did you mean 'descending'"):
        gw.ArgSort(device, descendin=True)


def test_a_tuning_that_is_given_as_an_option_is_answered_with_the_tuning():
    for make, answer in (
        (lambda: gw.Scan(None, "u32", vecs=2, capabilities=CAPABILITIES),
         "Scan has no argument 'vecs': give tuning=gw.ScanTuning(vecs=2)"),
        (lambda: gw.Reduce(None, state="u64", capabilities=CAPABILITIES), "gw.ReduceTuning(state='u64')"),
        (lambda: gw.ArgSort(None, subgroups=False, capabilities=CAPABILITIES), "gw.SortTuning(subgroups=False)"),
        (lambda: gw.Copy(None, vecs=4, capabilities=CAPABILITIES), "gw.ElementwiseTuning(vecs=4)"),
        (lambda: gw.MatMul(None, m=1, n=1, k=1, tile_m=32, capabilities=CAPABILITIES), "gw.MatMulTuning(tile_m=32)"),
        (lambda: gw.Sort.plan_for(capabilities=CAPABILITIES, lengths={}, items=4), "gw.SortTuning(items=4)"),
        (lambda: gw.Scan(None, tuning=gw.SortTuning(items=4), capabilities=CAPABILITIES),
         "tuning= takes a gw.ScanTuning, not SortTuning(items=4)"),
    ):  # fmt: skip
        with pytest.raises(gw.ArgumentError, match=re.escape(answer)):
            make()


def test_numpys_integers_are_integers(device, x):
    scan = gw.Scan(
        device, tuning=gw.ScanTuning(workgroup_size=np.int64(64), vecs=np.uint8(1), spin_limit=np.int32(300))
    )
    np.testing.assert_array_equal(scan.execute(input=x).output.to_numpy(), np.cumsum(X, dtype=np.uint32))
    sort = gw.Sort(device, begin_bit=np.int8(0), end_bit=np.uint8(32))
    np.testing.assert_array_equal(sort.execute(input=x).output.to_numpy(), np.sort(X))


def test_a_device_that_is_none(device):
    """0 is the first GPU elsewhere, and counts as False."""
    items = np.arange(6, dtype=np.float32)
    for call in (
        lambda x, d: gw.sum(x, device=d), lambda x, d: gw.sort(x, device=d), lambda x, d: gw.mean(x, device=d),
        lambda x, d: gw.take(x, [0], device=d), lambda x, d: gw.isin(x, x, device=d),
        lambda x, d: gw.roll(x, 1, device=d), lambda x, d: gw.flip(x, 0, device=d),
        lambda x, d: gw.transpose(x, device=d), lambda x, d: gw.histogram(x, 2, (0, 6), device=d),
        lambda x, d: gw.group_by(x, rows=gw.count, device=d), lambda x, d: gw.add(x, x, device=d),
        lambda x, d: gw.top_k(x, 2, device=d), lambda x, d: gw.unique(x, device=d),
        lambda x, d: gw.cumsum(x, device=d), lambda x, d: gw.searchsorted(x, x, device=d),
        lambda x, d: gw.segmented_reduce(x, [0, 3], device=d), lambda x, d: gw.asarray(x, d),
        lambda x, d: gw.zeros(3, device=d),
    ):  # fmt: skip
        for x, wrong in itertools.product((items, gw.asarray(items, device)), (0, "cuda:0", gw.Scan)):
            with pytest.raises(gw.ArgumentError, match=r"device must be a wgpu\.GPUDevice .*request_device"):
                call(x, wrong)


def test_no_device(device):
    for device_or_not, words in ((None, r"device is None; give gw\.default_device\(\)"), ("f32", "not str")):
        with pytest.raises(gw.ArgumentError, match=words):
            gw.Scan(device_or_not, "f32")


def test_measure_and_benchmark_name_each_other(device):
    with pytest.raises(gw.DatatypeError, match=r"measure takes a gw\.Kernel .* or a gw\.Benchmark, not int"):
        gw.measure(3)
    with pytest.raises(gw.DatatypeError, match=r"benchmark takes a callable.*gw\.measure\("):
        gw.benchmark(gw.Scan(device))


def test_an_output_whose_size_cannot_be_told(device, x):
    kernel = gw.Kernel(device, COPY_ITEMS, {"a": "read", "b": "read_write"}, workgroups=1)
    with pytest.raises(gw.ArgumentError, match=r"needs b=.*gw\.empty_like\(a\)"):
        kernel.execute(a=x)


def test_the_warning_about_missing_timestamps_is_of_the_callers_line(device):
    for primitive, run in (
        (gw.Scan, lambda p, x: p.execute(input=x, enable_gpu_timing=True)),
        (gw.VectorAdd, lambda p, x: p.execute(a=x, b=x, enable_gpu_timing=True)),
        (None, lambda p, x: p.execute(x=x, enable_gpu_timing=True)),
    ):
        bare = device_with(device)
        made = gw.Kernel(bare, DOUBLE, {"x": "read_write"}, 1) if primitive is None else primitive(bare)
        with pytest.warns(gw.GridwiseWarning, match="timestamp-query") as caught:
            run(made, gw.asarray(X, bare))
        assert [warning.filename for warning in caught] == [__file__]


def test_an_unknown_adapter_lists_what_there_is(device):
    with pytest.raises(gw.AdapterError) as caught:
        gw.request_device("no such adapter")
    for adapter in gw.list_adapters():
        assert str(adapter) in str(caught.value)
    assert isinstance(caught.value, LookupError)


@pytest.mark.parametrize(
    "body",
    ["return a + nonsense;", "return a +;", "return vec2<T>(a, b);", "", "loop {}"],
    ids=["name", "syntax", "type", "no return", "endless"],
)
def test_a_broken_operator(device, calm, x, out, body, wgpu_errors):
    """Said when it is first run, also without the check: in the author's words and line numbers."""
    text = f"\nconst two = 2u;\nfn combine(a: T, b: T) -> T {{\n  {body}\n}}"
    for cls, checked in ((gw.Scan, True), (gw.Reduce, False)):
        op = gw.BinOp("broken", 0, np.add, wgsl=text, check=checked)
        message = calm(cls(device, op=op), gw.ShaderError, "does not compile", out, input=x, output=out)
        assert re.search(rf"^4 \| {re.escape('  ' + body)}$", message, re.MULTILINE)
        assert re.search(r"┌─ the operator's text:[345]:", message)
        assert "fn combine4" not in message
        assert len(message.splitlines()) < 35
    wgpu_errors.clear()  # naga logs some of these as well
    assert gw.sum(x, dtype=np.uint32).item() == X.sum(dtype=np.uint32)


@pytest.mark.parametrize(("expression", "of_four"), [("a +", False), ("a + nonsense", False), ("u32(a + b)", True)])
@pytest.mark.parametrize("deterministic", [False, True])
def test_a_broken_expression(device, expression, of_four, deterministic, wgpu_errors):
    """Said in the author's words, without the lines of the library around them."""
    op = gw.BinOp("broken", 0, np.add, expression=expression)
    with pytest.raises(gw.ShaderError, match="does not compile") as caught:
        gw.Reduce(device, "f32", op=op, deterministic=deterministic).execute(input=gw.empty(8, "f32", device))
    message = str(caught.value)
    assert "┌─ the operator's expression, in line" in message
    assert f"\nThe expression of the operator:\n{expression}\n" in message
    if context_of(device).engine.name == "wgpu":  # Tint begins with the one for single items
        assert ("vectors of four items" in message) == of_four
    assert "alias Acc" not in message
    wgpu_errors.clear()


def test_an_operator_without_an_identity_for_the_datatype(device):
    op = gw.BinOp("x", {"i32": 0}, np.add, wgsl="fn combine(a: T, b: T) -> T { return a + b; }")
    with pytest.raises(gw.ArgumentError, match="no identity for u32"):
        gw.Scan(device, op=op)


@pytest.mark.parametrize("op", [gw.Min, gw.Max], ids=repr)
def test_an_empty_minimum(device, calm, x, out, op):
    calm(gw.Reduce(device, op=op), gw.EmptyReductionError, "0 items.*at least one", out, input=x[:0], output=out)


def test_one_shot_functions(device, x):
    with pytest.raises(gw.LengthError, match=r"shapes \(3,\) \(4,\)"):
        gw.add(X[:3], X[:4], device=device)
    with pytest.raises(gw.DatatypeError, match="astype"):
        gw.cumsum(X.astype(np.longdouble), device=device)
    with pytest.raises(gw.DatatypeError, match=r"longdouble|float128"):
        gw.add(x, X.astype(np.longdouble))
    with pytest.raises(gw.EmptyReductionError):
        gw.min(X[:0], device=device)
    with pytest.raises(gw.ArgumentError, match="one dimension"):
        gw.sort_pairs(X.reshape(10, 100), X.reshape(10, 100), device=device)
    with pytest.raises(gw.ArgumentError, match="kind='both'"):
        gw.scan(X, kind="both", device=device)
    with pytest.raises(gw.ArgumentError, match="'xor' is unknown"):
        gw.reduce(X, "xor", device=device)
    np.testing.assert_array_equal(gw.cumsum(X, device=device, dtype=np.uint32), np.cumsum(X, dtype=np.uint32))


def test_a_primitive_for_planning_cannot_run(x):
    scan = gw.Scan(None, capabilities=gw.Capabilities())
    for call in (lambda: scan.execute(input=x), lambda: scan.bind(input=x), lambda: scan.device):
        with pytest.raises(gw.ArgumentError, match="without a device"):
            call()


def test_an_unknown_word_on_the_command_line(device):
    from click.testing import CliRunner

    from gridwise_py.cli import main

    for words in (["sort_of"], ["bench", "no_such_primitive"], ["bench", "--nonsense"], ["bench", "--datatype", "f63"]):
        result = CliRunner().invoke(main, words)
        assert result.exit_code == 2, result.output
        assert words[-1] in result.output


def test_after_an_error_the_earlier_call_is_repeated(device, x, out):
    scan = gw.Scan(device)
    scan.execute(input=x, output=out)
    out.copy_from(OLD)
    other = gw.asarray(X[:5], device)
    for wrong in ({"input": other, "trials": 0}, {"input": out}, {"input": X}):
        with pytest.raises(gw.ArgumentError):
            scan.execute(**wrong, **({} if "trials" in wrong else {"trials": 2}))
    run = scan.execute()
    assert run.output.size == N
    np.testing.assert_array_equal(out.to_numpy(), np.cumsum(X, dtype=np.uint32))
