"""The executor makes everything once, lets go of what callers drop, and refuses what would abort the process."""

import dataclasses
import gc
import itertools
import json
import logging
import weakref

import numpy as np
import pytest
import wgpu

import gridwise_py as gw
from gridwise_py.backend.device_errors import watch_errors
from gridwise_py.planning.plan import BufferSpec, Copy, Fill, Plan, Work
from gridwise_py.primitives import REGISTRY
from gridwise_py.runtime import executor, pipelines
from gridwise_py.runtime.context import context_of
from gridwise_py.runtime.device import device_key
from gridwise_py.runtime.executor import BufferRange, Executor
from helpers import inside
from helpers.running import python
from helpers.strategies import shape_data

X = np.random.default_rng(3).integers(0, 1000, 100_003, dtype=np.uint32)
PREFIX = np.cumsum(X, dtype=np.uint32)
USAGE = wgpu.BufferUsage


MAKERS = (
    "create_shader_module", "create_compute_pipeline", "create_pipeline_layout", "create_bind_group_layout",
    "create_bind_group", "create_buffer", "create_buffer_with_data", "create_query_set",
)  # fmt: skip


def _primitives(device):
    x, y = gw.asarray(X, device), gw.asarray(X[::-1].copy(), device)
    out, one = gw.empty_like(x), gw.empty(1, "u32", device)
    return [
        (gw.VectorAdd(device), {"a": x, "b": y, "output": out}),
        (gw.Copy(device), {"input": x, "output": out}),
        (gw.Reduce(device), {"input": x, "output": one}),
        (gw.Scan(device, strategy="reduce_then_scan"), {"input": x, "output": out}),
        (gw.Scan(device, strategy="lookback"), {"input": x, "output": out}),
    ]


def test_a_repeated_execute_makes_nothing_and_another_primitive_compiles_nothing(renewed_device, monkeypatch):
    made, timed = inside.note_calls(monkeypatch, renewed_device, *MAKERS), "timestamp-query" in renewed_device.features
    primitives = _primitives(renewed_device)
    for primitive, arrays in primitives:
        primitive.execute(**arrays, enable_gpu_timing=timed)
    assert {"create_bind_group", "create_buffer_with_data"} <= set(made)
    counts, compiled = inside.counts(renewed_device), inside.compiled(renewed_device)
    made.clear()
    for primitive, arrays in primitives:
        primitive.execute(**arrays)
        primitive.execute(enable_gpu_timing=timed)
        primitive.execute(trials=3)
    assert made == []
    assert inside.counts(renewed_device) == counts
    for primitive, arrays in _primitives(renewed_device):
        primitive.execute(**arrays)
    assert inside.compiled(renewed_device) == compiled > 4
    assert not {"create_shader_module", "create_compute_pipeline", "create_query_set"} & set(made)


def test_a_repeated_execute_composes_and_plans_nothing(renewed_device, monkeypatch):
    primitives = _primitives(renewed_device)
    for primitive, arrays in primitives:
        primitive.execute(**arrays)

    def must_not(*_args, **_kwargs):
        raise AssertionError("composed or planned again")

    inside.refuse_to_compose(monkeypatch)
    for primitive, arrays in primitives:
        monkeypatch.setattr(primitive, "plan", must_not)
        primitive.execute(**arrays)
        primitive.execute()


@pytest.mark.ahead
@pytest.mark.parametrize("strategy", ["reduce_then_scan", "lookback"])
def test_a_new_n_compiles_nothing(renewed_device, strategy):
    scan = gw.Scan(renewed_device, strategy=strategy)
    x = gw.asarray(X, renewed_device)
    scan.execute(input=x[:5])  # a single block, which needs fewer kernels
    inside.finish_compiling()
    compiled = inside.compiled(renewed_device)
    for n in (1, 4, 77, 5000, 50_001, X.size - 4):
        np.testing.assert_array_equal(scan.execute(input=x[:n]).output.to_numpy(), PREFIX[:n])
    assert inside.compiled(renewed_device) == compiled


@pytest.mark.ahead
def test_a_new_n_with_another_shape_compiles_nothing(renewed_device):
    rows = {
        "reduce": ((0, 1000, shape_data(64, 1, 8)), (1000, X.size, shape_data(128, 2, 16))),
        "elementwise": ((0, 1000, shape_data(64, 1)), (1000, X.size, shape_data(128, 2))),
    }
    tuned = dataclasses.replace(gw.capabilities(renewed_device), tuning=rows)
    x = gw.asarray(X, renewed_device)
    for primitive in (gw.Reduce(renewed_device, capabilities=tuned), gw.Copy(renewed_device, capabilities=tuned)):
        sizes = [primitive.execute(input=x[:5]).plan.parameters["workgroup_size"]]
        inside.finish_compiling()
        compiled = inside.compiled(renewed_device)
        for n in (1000, 1001, X.size - 4):
            run = primitive.execute(input=x[:n])
            np.testing.assert_array_equal(run.output.to_numpy(), primitive.reference(X[:n]))
            sizes.append(run.plan.parameters["workgroup_size"])
        assert sizes == [64, 64, 128, 128]
        assert inside.compiled(renewed_device) == compiled


def test_caches_are_bounded(renewed_device):
    own = context_of(renewed_device).executor
    scan, x = gw.Scan(renewed_device), gw.asarray(X, renewed_device)

    def bind(plan, output):
        size = plan.buffer("input").size_bytes
        own.bind(plan, {"input": BufferRange(x.buffer, 0, size), "output": BufferRange(output.buffer, 0, size)})

    out = gw.empty_like(x)
    plans = [scan.plan(gw.Layout.separate(input=n, output=n)) for n in range(1, 301)]
    for plan in plans:
        bind(plan, out)
    assert own.counts["plans"] <= 256
    assert own.counts["pipelines"] <= 3
    outs = [gw.empty_like(x) for _ in range(100)]
    for other in outs:
        bind(plans[-1], other)
    assert own.counts["bindings"] <= 256 + 64
    own.clear()
    assert set(own.counts.values()) == {0}


def test_one_plan_may_have_more_pipelines_than_are_kept(renewed_device, monkeypatch):
    monkeypatch.setattr(executor, "_MAX_PIPELINES", 1)
    scan = gw.Scan(renewed_device, strategy="reduce_then_scan")
    x = gw.asarray(X, renewed_device)
    for _ in range(2):
        np.testing.assert_array_equal(scan.execute(input=x).output.to_numpy(), PREFIX)
        assert inside.counts(renewed_device)["pipelines"] > 1


class Steps(gw.Primitive):
    """output = input shifted by one item, with zeros around: a fill and a copy, no kernel; and memory of its own."""

    datatype = gw.DATATYPES["u32"]
    arguments = (
        gw.Argument("input"),
        gw.Argument("output", is_output=True, length=lambda lengths: lengths["input"] + 2),
    )

    def plan(self, layout):
        input, output = layout["input"], layout["output"]
        steps = (
            Fill(output.buffer, 4 * output.offset, 4 * output.length),
            Copy(input.buffer, 4 * input.offset, output.buffer, 4 * output.offset + 4, 4 * input.length),
        )
        buffers = [BufferSpec(o.buffer, "argument", o.size_bytes) for o in layout.values()]
        n = input.length
        return Plan("steps", (*buffers, BufferSpec("own", "scratch", 4 * n)), steps, {}, Work(n, 4 * n, 4 * n))


def test_temporary_memory_is_bounded_whatever_the_lengths(renewed_device, monkeypatch):
    """Calls of many lengths need as much temporary memory as the largest, not as all; plans that need little stay."""
    monkeypatch.setattr(executor, "_MAX_OWN_BYTES", 3 << 19)
    x, own = gw.asarray(X, renewed_device), context_of(renewed_device).executor
    scan, steps = gw.Scan(renewed_device), Steps(renewed_device)
    scan.execute(input=x)
    for n in range(99_000, 100_000, 100):
        np.testing.assert_array_equal(steps.execute(input=x[:n]).output.to_numpy()[1:-1], X[:n])
        assert 390_000 < own.counts["own_bytes"] <= 3 << 19
    steps.execute(input=gw.empty(300_000, "u32", renewed_device))  # several have to go for it
    assert 1_200_000 <= own.counts["own_bytes"] <= 3 << 19
    compiled = own.pipelines.compiled
    np.testing.assert_array_equal(scan.execute(input=x).output.to_numpy(), PREFIX)
    assert own.pipelines.compiled == compiled
    assert own.counts["plans"] == 2


def test_what_is_kept_makes_room_for_what_is_needed(renewed_device, monkeypatch):
    x, own = gw.asarray(X, renewed_device), context_of(renewed_device).executor
    gw.Copy(renewed_device).execute(input=x)
    scan, real = gw.Scan(renewed_device), executor.Executor.take_scratch
    full = True
    made = []

    def take_scratch(self, label, size_bytes):
        if full and made:
            if own.counts["plans"] or full == "for good":
                raise wgpu.GPUOutOfMemoryError("Not enough memory left.")
            assert made[0]() is None, "what was made in vain is in the way"
        lease = real(self, label, size_bytes)
        if not made:
            made.append(weakref.ref(lease))
        return lease

    monkeypatch.setattr(executor.Executor, "take_scratch", take_scratch)
    np.testing.assert_array_equal(scan.execute(input=x).output.to_numpy(), PREFIX)
    assert own.counts["plans"] == 1, "the copy's has gone"
    full = "for good"
    with pytest.raises(gw.DeviceMemoryError, match="drop Arrays"):
        gw.Reduce(renewed_device).execute(input=x)
    full = False
    np.testing.assert_array_equal(scan.execute(input=x).output.to_numpy(), PREFIX)


@pytest.mark.parametrize("goes", ["by clear", "as the least recently used"])
def test_a_plan_that_goes_leaves_nothing_on_a_buffer_that_lives_on(renewed_device, monkeypatch, goes):
    """Else the temporary memory of every length of an input stays for as long as the input."""
    monkeypatch.setattr(executor, "_MAX_PLANS", 1)
    scan = gw.Scan(renewed_device)
    x, y = gw.asarray(X, renewed_device), gw.empty(X.size, "u32", renewed_device)
    gone = [weakref.ref(buffer) for buffer in scan.bind(input=x, output=y).bound_plan.own_buffers.values()]
    assert gone
    scan.release()
    if goes == "by clear":
        inside.forget_plans(renewed_device)
    else:
        gw.Copy(renewed_device).execute(input=x, output=y)
    gc.collect()
    gw.empty_cache(renewed_device)
    assert [ref() for ref in gone] == [None] * len(gone)


def test_outputs_do_not_pile_up(renewed_device):
    """A caller that drops each output has at most the last one alive; also where it is copied to, of no items."""
    x = gw.asarray(X, renewed_device)
    for primitive, items in ((gw.Scan(renewed_device), x), (gw.Reduce(renewed_device), x[:0])):
        alive = weakref.WeakSet()
        for _ in range(30):
            alive.add(primitive.execute(input=items).output.buffer)
        gc.collect()
        assert len(alive) <= 1
        primitive.release()
        gc.collect()
        assert len(alive) == 0


def test_fills_and_copies(device):
    steps = Steps(device)
    x = gw.asarray(X, device)
    for part in (x[:10], x[3:500], x[777:]):
        output = gw.asarray(np.full(part.size + 2, 7, dtype=np.uint32), device)
        run = steps.execute(input=part, output=output)
        expected = np.concatenate([[0], part.to_numpy(), [0]])
        np.testing.assert_array_equal(run.output.to_numpy(), expected)
    surrounding = gw.asarray(np.full(40, 7, dtype=np.uint32), device)
    steps.execute(input=x[:10], output=surrounding[5:17])
    expected = np.full(40, 7, dtype=np.uint32)
    expected[5:17] = np.concatenate([[0], X[:10], [0]])
    np.testing.assert_array_equal(surrounding.to_numpy(), expected)


def test_an_output_that_is_filled_needs_copy_dst(device):
    raw = device.create_buffer(size=64, usage=USAGE.STORAGE | USAGE.COPY_SRC)
    with pytest.raises(gw.BufferUsageError, match="COPY_DST"):
        Steps(device).execute(input=gw.asarray(X[:4], device), output=raw)
    with pytest.raises(gw.BufferUsageError, match="COPY_DST"):
        gw.Reduce(device).execute(input=gw.asarray(X[:0], device), output=raw)
    assert gw.Reduce(device).execute(input=gw.asarray(X, device), output=raw).output.size == 1


@pytest.mark.parametrize("strategy", ["reduce_then_scan", "lookback"])
def test_launch_blocking(device, require, monkeypatch, strategy):
    """Every step is submitted by itself, and results and times are as ever."""
    require("timestamp-query")
    monkeypatch.setenv("GRIDWISE_LAUNCH_BLOCKING", "1")
    submissions = inside.note_calls(monkeypatch, device.queue, "submit")
    scan = gw.Scan(device, strategy=strategy)
    run = scan.execute(input=gw.asarray(X, device), trials=2, enable_gpu_timing=True, enable_cpu_timing=True)
    assert len(submissions) == len(run.plan.steps)
    np.testing.assert_array_equal(run.output.to_numpy(), PREFIX)
    result = run.get_timing_result()
    assert len(result.gpu_total_time_ns) == len(run.plan.kernels)
    assert all(ns > 0 for ns in result.gpu_total_time_ns)
    assert result.cpu_total_time_ns > 0
    monkeypatch.setenv("GRIDWISE_LAUNCH_BLOCKING", "0")
    submissions.clear()
    gw.Scan(device, strategy=strategy).execute(input=gw.asarray(X, device))
    assert len(submissions) == 1


def test_launch_blocking_raises_at_the_step_that_failed(device, monkeypatch):
    logger = logging.getLogger("wgpu")
    x = gw.asarray(X, device)
    monkeypatch.setenv("GRIDWISE_LAUNCH_BLOCKING", "1")
    scan = gw.Scan(device, strategy="reduce_then_scan")
    scan.execute(input=x)
    waits = []

    def failing_wait(_device):
        waits.append(1)
        if len(waits) == 2:
            # As wgpu's log would, but not on the logger itself, where a test's error check listens.
            record = logger.makeRecord("wgpu", logging.ERROR, __file__, 1, "device lost: %s", ("on fire",), None)
            watch_errors().handle(record)

    monkeypatch.setattr(executor, "wait_idle", failing_wait)
    with pytest.raises(gw.DeviceError, match=r"step 'scan totals' failed: device lost: on fire"):
        scan.execute()
    assert len(waits) == 2


def _levels(device, monkeypatch, *plans):
    """Return the levels that modules are compiled with."""
    seen, create = [], pipelines.create_shader_module

    def noting(device, *, label, code, checks):
        seen.append(checks)
        return create(device, label=label, code=code, checks=checks)

    monkeypatch.setattr(pipelines, "create_shader_module", noting)
    Executor(device).pipelines_of(*plans)
    return seen


@pytest.mark.parametrize("value", ["", "none", "bounds", "all"])
def test_the_level_of_the_process_is_that_of_all_shaders(fresh_device, monkeypatch, value):
    monkeypatch.delenv("GRIDWISE_SHADER_CHECKS", raising=False)
    plain = device_key(gw.request_device(fresh_device.adapter))
    monkeypatch.setenv("GRIDWISE_SHADER_CHECKS", value)
    device = gw.request_device(fresh_device.adapter)
    key = device_key(device)
    assert (key == plain) == (value == "")
    assert key.get("shader_checks", "") == value
    layout = gw.Layout.separate(input=64, output=64)
    ours, plans = gw.Copy(device).plan(layout), []
    for level in ("bounds", "all", "none"):
        plans.append(gw.Map(device, "u32", op=_twice(level)).plan(layout))
    own = _levels(device, monkeypatch, ours, *plans)
    assert sorted(own) == sorted([value] * 2 if value else ["none", "bounds", "all", "none"])


def _twice(level):
    return gw.UnaryOp("twice", lambda x: x * 2, expression="x * 2", check=False, shader_checks=level)


def test_a_module_has_the_strictest_level_of_its_texts(device):
    texts = {level: f"fn f(x: u32) -> u32 {{ return x + {k}u; }}" for k, level in enumerate(("none", "bounds", "all"))}
    calls = {level: gw.function(text, shader_checks=level) for level, text in texts.items()}
    x, plain = gw.u32("x"), gw.BinOp("plus", 0, np.add, expression="a + b", check=False, shader_checks="none")
    for first, other in itertools.product(calls, repeat=2):
        plan = gw.Reduce(device, calls[first](calls[other](x)), op=plain).plan(gw.Layout.separate(x=64, output=1))
        assert plan.shader_checks == (max(first, other, key=list(texts).index),)
    same = gw.BinOp("plus", 0, np.add, expression="a + b", check=False, shader_checks="all")
    assert same != plain
    assert gw.Reduce(device, calls["none"](x), op=same).plan(gw.Layout.separate(x=64, output=1)).shader_checks == (
        "all",
    )


def test_plans_from_files_have_all_checks_or_are_refused(fresh_device, monkeypatch):
    monkeypatch.delenv("GRIDWISE_SHADER_CHECKS", raising=False)
    device = gw.request_device(fresh_device.adapter)
    plan = gw.Copy(device).plan(gw.Layout.separate(input=64, output=64))
    claims = json.loads(plan.to_json())
    for shader in claims["shaders"].values():
        shader |= {"shader_checks": "none", "trusted": True, "origin": "library"}
    read = gw.Plan.from_json(json.dumps(claims))
    assert read.shader_checks == ("all",)
    next(iter(claims["shaders"].values()))["text"] += "// another"
    with pytest.raises(gw.ArgumentError, match=r"sha256.*to_json"):  # it would stand for the first text of a cache
        gw.Plan.from_json(json.dumps(claims))
    assert _levels(device, monkeypatch, read) == ["all"]
    for level in ("none", "bounds"):
        monkeypatch.setenv("GRIDWISE_SHADER_CHECKS", level)
        device = gw.request_device(fresh_device.adapter)
        with pytest.raises(gw.ArgumentError, match=f"read from a file.*'{level}'.*GRIDWISE_SHADER_CHECKS={level}"):
            Executor(device).pipelines_of(read)


CHECKED = [
    ("copy", {}), ("vector_add", {}), ("reduce", {}), ("scan", {"strategy": "reduce_then_scan"}),
    ("scan", {"strategy": "lookback"}), ("matmul", {"m": 96, "n": 96, "k": 96}),
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "options", "kind"),
    [
        *((name, options, kind) for name, options in CHECKED for kind in ("CPU", "DiscreteGPU")),
        ("sort", {"strategy": "reduce_then_scan"}, "CPU"),
        ("sort_pairs", {"strategy": "onesweep"}, "DiscreteGPU"),
    ],
    ids=lambda value: value if isinstance(value, str) else str(value.get("strategy", "")),
)
def test_with_the_checks_every_index_finds_its_own_element(fresh_device, monkeypatch, name, options, kind):
    """The checks turn an index that is out of range into that of another element; without them anything may happen."""
    monkeypatch.setenv("GRIDWISE_SHADER_CHECKS", "all")
    x, y = X[:30_003], X[-30_003:].copy()  # of several full tiles, and a part of one
    if name == "matmul":
        x, y = (items[: 96 * 96].astype(np.float32) % 8 for items in (x, y))
    order = np.argsort(x, kind="stable")
    wanted = {
        "copy": lambda: [x],
        "vector_add": lambda: [x + y],
        "reduce": lambda: [x.sum(keepdims=True, dtype=np.uint32)],
        "scan": lambda: [np.cumsum(x, dtype=np.uint32)],
        "matmul": lambda: [(x.reshape(96, 96) @ y.reshape(96, 96)).ravel()],  # of small integers: exact
        "sort": lambda: [x[order]],
        "sort_pairs": lambda: [x[order], y[order]],
    }[name]()
    caps = dataclasses.replace(gw.capabilities(fresh_device), adapter_type=kind)  # whose shapes differ
    primitive = REGISTRY[name](fresh_device, capabilities=caps, **options)
    names = [argument.name for argument in primitive.signature.arguments.values() if not argument.is_output]
    inputs = {name: gw.asarray(items, fresh_device) for name, items in zip(names, (x, y), strict=False)}
    outputs = primitive.execute(**inputs).outputs.values()
    for output, want in zip(outputs, wanted, strict=True):
        np.testing.assert_array_equal(output.to_numpy(), want)


# What would abort the process, were it submitted, runs in a process of its own.
_PREAMBLE = """
import numpy as np, wgpu, gridwise_py as gw
U = wgpu.BufferUsage
X = np.arange(1000, dtype=np.uint32)
device = gw.request_device()
def made():
    x = gw.asarray(X, device)
    return x, device.create_buffer(size=4000, usage=U.STORAGE | U.COPY_SRC | U.COPY_DST)
def refused(call, kind=gw.BufferUsageError):
    try:
        call()
    except kind as error:
        assert "destroyed" in str(error), error
    else:
        raise SystemExit("not refused")
"""

_KERNEL = (
    "gw.Kernel(device, '@group(0) @binding(0) var<storage, read_write> y: array<u32>;"
    " @compute @workgroup_size(1) fn main() { y[0] = 1u; }', {'y': 'read_write'}, 1)"
)
_RISKY = {
    "bound to a kernel": f"""
scan = gw.Scan(device)
bound = gw.Scan(device)
bound.execute(input=raw)
view = x[5:]
raw.destroy()
refused(lambda: scan.execute(input=raw))
refused(lambda: scan.execute(input=x, output=raw))
refused(lambda: {_KERNEL}.execute(y=gw.asarray(raw, dtype='u32')))
refused(bound.execute)
refused(bound.bind)
x.buffer.destroy()
refused(lambda: scan.execute(input=x))
refused(lambda: gw.cumsum(x))
refused(lambda: gw.sum(view))
""",
    "raw buffer wrapped after": "raw.destroy(); refused(lambda: gw.asarray(raw, dtype='u32').to_numpy())",
    "raw buffer wrapped before": "y = gw.asarray(raw, dtype='u32'); raw.destroy(); refused(y.to_numpy)",
    "our array, by its buffer, read": "x.buffer.destroy(); refused(x.to_numpy)",
    "our array, by its buffer, written": "x.buffer.destroy(); refused(lambda: x.copy_from(X))",
    "target of an empty reduction": (
        "raw.destroy(); refused(lambda: gw.Reduce(device).execute(input=x[:0], output=raw))"
    ),
}


def test_a_destroyed_buffer_is_an_error_and_not_the_end_of_the_process(device):
    code = _PREAMBLE
    for name, uses in _RISKY.items():
        code += f"\nx, raw = made()\n{uses}\nassert gw.sum(X, device=device) == X.sum()\nprint({name!r}, flush=True)"
    assert python(code).stdout.splitlines() == list(_RISKY)
