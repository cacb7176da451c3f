"""gw.Kernel and Primitive subclasses outside the package: run, timed and checked like the library's own."""

import os
import subprocess
import sys
from dataclasses import replace
from typing import ClassVar

import numpy as np
import pytest

import gridwise_py as gw
from gridwise_py.arguments import Argument
from gridwise_py.plan import Binding, BufferSpec, Kernel, Plan, Shader, Work
from gridwise_py.shaders import sha256

SCALE = """
override FACTOR: f32 = 2.0;
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  if (id.x < arrayLength(&x)) { y[id.x] = FACTOR * x[id.x]; }
}
"""
BINDINGS = {"x": "read", "y": "read_write"}
X = np.arange(1000, dtype=np.float32)


def _groups(lengths):
    return -(-lengths["x"] // 64)


def _scale(device, **options):
    return gw.Kernel(device, SCALE, BINDINGS, _groups, label="scale", **options)


def test_it_runs(device):
    x = gw.asarray(X, device)
    run = _scale(device).execute(x=x, y=gw.empty_like(x))
    np.testing.assert_array_equal(run.output.to_numpy(), 2 * X)
    assert list(run.outputs) == ["y"]


def test_it_is_timed(device, require):
    require("timestamp-query")
    x = gw.asarray(X, device)
    kernel = _scale(device)
    run = kernel.execute(x=x, y=gw.empty_like(x), enable_gpu_timing=True, enable_cpu_timing=True, trials=5)
    result = kernel.get_timing_result()
    assert result.labels == ("scale",)
    assert result.trials == 5
    assert len(result.gpu_total_time_ns) == 1
    assert 0 < result.gpu_total_time_ns[0] <= result.cpu_total_time_ns
    np.testing.assert_array_equal(run.output.to_numpy(), 2 * X)


@pytest.mark.parametrize("factor", [3.0, -0.5, 7])
def test_constants(device, factor):
    x = gw.asarray(X, device)
    run = _scale(device, constants={"FACTOR": factor}).execute(x=x, y=gw.empty_like(x))
    np.testing.assert_array_equal(run.output.to_numpy(), np.float32(factor) * X)


def test_workgroups_as_a_number_a_tuple_and_a_callable(device):
    text = """
@group(0) @binding(0) var<storage, read_write> y: array<atomic<u32>>;
@compute @workgroup_size(1)
fn main(@builtin(workgroup_id) g: vec3<u32>) {
  atomicAdd(&y[0], 1u); atomicMax(&y[1], g.x); atomicMax(&y[2], g.y); atomicMax(&y[3], g.z);
}
"""
    for workgroups, counts in (
        (5, (5, 1, 1)),
        ((5,), (5, 1, 1)),
        ((2, 3), (2, 3, 1)),
        ([2, 3, 4], (2, 3, 4)),
        (lambda n: n["y"], (4, 1, 1)),
        (lambda n: (2, n["y"]), (2, 4, 1)),
    ):
        y = gw.asarray(np.zeros(4, dtype=np.uint32), device)
        out = gw.Kernel(device, text, {"y": "read_write"}, workgroups).execute(y=y).output.to_numpy()
        assert out.tolist() == [np.prod(counts), *(c - 1 for c in counts)]


@pytest.mark.parametrize(
    "workgroups", [0, -1, (), (1, 2, 3, 4), (1, 0), 1.5, (1.0, 2), lambda n: 0, lambda n: (1, None)]
)
def test_impossible_workgroups_are_refused(device, workgroups):
    x = gw.asarray(X, device)
    y = gw.asarray(X, device)
    with pytest.raises(gw.ArgumentError, match="one to three integers of at least 1"):
        gw.Kernel(device, SCALE, BINDINGS, workgroups).execute(x=x, y=y)
    np.testing.assert_array_equal(y.to_numpy(), X)


def test_too_many_workgroups_are_an_error_with_the_limit(device):
    limit = device.limits["max-compute-workgroups-per-dimension"]
    x = gw.asarray(X, device)
    with pytest.raises(gw.LimitError, match=f"max-compute-workgroups-per-dimension is {limit}"):
        gw.Kernel(device, SCALE, BINDINGS, (1, limit + 1)).execute(x=x, y=gw.empty_like(x))


def test_another_entry_point(device):
    text = SCALE.replace("fn main", "fn other")
    x = gw.asarray(X, device)
    run = gw.Kernel(device, text, BINDINGS, _groups, entry_point="other").execute(x=x, y=gw.empty_like(x))
    np.testing.assert_array_equal(run.output.to_numpy(), 2 * X)


BROKEN = {
    "syntax": SCALE.replace("if (", "if if ("),
    "unknown name": SCALE.replace("FACTOR * x", "NOTHING * x"),
    "type": SCALE.replace("FACTOR * x[id.x]", "1u * x[id.x]"),
    "empty": "",
    "not WGSL": "#version 450\nvoid main() {}",
    "another entry point": SCALE.replace("fn main", "fn other"),
    "too large a workgroup": SCALE.replace("workgroup_size(64)", "workgroup_size(65536)"),
    "read-only written": SCALE.replace("var<storage, read_write> y", "var<storage, read> y"),
    "access differs": SCALE.replace("var<storage, read> x", "var<storage, read_write> x"),
    "unknown constant": SCALE,
}  # fmt: skip
BROKEN["binding that is not given"] = "@group(0) @binding(5) var<storage> z: array<f32>;" + SCALE.replace(
    "FACTOR * x", "z[0] * x"
)


@pytest.mark.parametrize("name", BROKEN)
def test_broken_wgsl_is_an_error_with_the_numbered_text(device, name, wgpu_errors):
    x, y = gw.asarray(X, device), gw.asarray(X, device)
    constants = {"NOTHING": 1} if name == "unknown constant" else None
    kernel = gw.Kernel(device, BROKEN[name], BINDINGS, _groups, constants=constants, label="mine")
    for _ in range(2):
        with pytest.raises(gw.ShaderError, match="mine") as caught:
            kernel.execute(x=x, y=y)
    wgpu_errors.clear()  # naga logs some of these as well
    lines = BROKEN[name].splitlines()
    for i, line in enumerate(lines, 1):
        assert f"{i:>{len(str(len(lines)))}} | {line}" in str(caught.value)
    np.testing.assert_array_equal(y.to_numpy(), X)
    np.testing.assert_array_equal(_scale(device).execute(x=x, y=y).output.to_numpy(), 2 * X)


# naga panics on a pointer to an element as an argument, which ends the process.
_POINTER = """
import numpy as np, gridwise_py as gw
device = gw.request_device()
try:
    {call}
except gw.ShaderError as error:
    assert "&" in str(error)
else:
    pass
assert gw.sum(np.arange(5, dtype=np.uint32), device=device) == 10
print("alive")
"""
_POINTER_CALLS = {
    "kernel": (
        "gw.Kernel(device, 'fn g(p: ptr<function, f32>) -> f32 { return *p; }"
        " @group(0) @binding(0) var<storage, read_write> y: array<f32>;"
        " @compute @workgroup_size(1) fn main() { var a = array<f32, 2>(1.0, 2.0); y[0] = g(&a[1]); }',"
        " {'y': 'read_write'}, 1).execute(y=gw.empty(4, 'f32', device))"
    ),
    "operator": (
        "gw.sum; gw.scan(np.ones(9, dtype=np.uint32), gw.BinOp('bad', 0, np.add, wgsl='"
        "fn g(p: ptr<function, T>) -> T { return *p; }"
        " fn combine(a: T, b: T) -> T { var v = array<T, 2>(a, b); return g(&v[0]) + g(&v[1]); }'), device=device)"
    ),
}


@pytest.mark.parametrize("name", _POINTER_CALLS)
def test_a_pointer_to_an_element_does_not_end_the_process(device, name):
    done = subprocess.run(
        [sys.executable, "-c", _POINTER.format(call=_POINTER_CALLS[name])],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "RUST_BACKTRACE": "0"},
        check=False,
    )
    assert done.returncode == 0, done.stderr[-500:]
    assert done.stdout.strip() == "alive"


def test_a_misaligned_view_is_refused_with_the_alignment(device):
    alignment = device.limits["min-storage-buffer-offset-alignment"] // 4
    x = gw.asarray(X, device)
    kernel = _scale(device)
    with pytest.raises(gw.BufferUsageError, match=f"multiple of {alignment} items"):
        kernel.execute(x=x[1:], y=gw.empty_like(x))
    with pytest.raises(gw.BufferUsageError, match="min-storage-buffer-offset-alignment"):
        kernel.execute(x=x, y=gw.empty(X.size + 1, "f32", device)[1:])
    part = x[2 * alignment :]
    out = kernel.execute(x=part, y=gw.empty_like(part)).output
    np.testing.assert_array_equal(out.to_numpy(), 2 * X[2 * alignment :])


def test_what_a_kernel_cannot_be_given(device):
    x = gw.asarray(X, device)
    with pytest.raises(gw.ArgumentError, match=r"'write'.*read, read_write"):
        gw.Kernel(device, SCALE, {"x": "write"}, 1)
    with pytest.raises(gw.ArgumentError, match="at least one binding"):
        gw.Kernel(device, SCALE, {}, 1)
    with pytest.raises(gw.ArgumentError, match=r"unknown bindings \['z'\]"):
        _scale(device, datatypes={"z": "f32"})
    kernel = _scale(device, datatypes={"x": "f32"})
    with pytest.raises(gw.DatatypeError, match="x is of u32"):
        kernel.execute(x=gw.empty(5, "u32", device), y=x)
    with pytest.raises(gw.ArgumentError, match="y has 0 items"):
        kernel.execute(x=x, y=gw.empty(0, "f32", device))
    with pytest.raises(gw.ArgumentError, match=r"needs y=.*size cannot be told"):
        kernel.execute(x=x)
    with pytest.raises(gw.OverlapError):
        kernel.execute(x=x, y=x)
    with pytest.raises(gw.ArgumentError, match="separate buffers"):
        kernel.execute(x=x[:64], y=x[512:576])
    with pytest.raises(gw.ArgumentError, match="no argument 'z'; it takes x, y"):
        kernel.execute(x=x, z=x)
    np.testing.assert_array_equal(x.to_numpy(), X)


def test_more_bindings_than_the_device_has_are_an_error_with_the_limit(device):
    real = gw.capabilities(device)
    few = replace(real, limits={**real.limits, "max-storage-buffers-per-shader-stage": 4})
    names = [f"y{i}" for i in range(5)]
    text = "".join(
        f"@group(0) @binding({i}) var<storage, read_write> {name}: array<u32>;\n" for i, name in enumerate(names)
    )
    text += "@compute @workgroup_size(1) fn main() {" + " ".join(f"{name}[0] = 1u;" for name in names) + "}"
    kernel = gw.Kernel(device, text, dict.fromkeys(names, "read_write"), 1, capabilities=few)
    with pytest.raises(gw.LimitError, match=r"5.*max-storage-buffers-per-shader-stage is 4"):
        kernel.execute(**{name: gw.empty(4, "u32", device) for name in names})


def test_it_is_planned_without_a_device():
    plan = gw.Kernel.plan_for(
        capabilities=gw.Capabilities(), lengths={"x": 100, "y": 100}, wgsl=SCALE, bindings=BINDINGS, workgroups=_groups
    )
    assert plan.kernels[0].workgroups == (2, 1, 1)
    assert plan.work == Work(100, 400, 400)
    assert not next(iter(plan.shaders.values())).trusted


class Histogram(gw.Primitive):
    """A primitive outside the package: counts of 16 values, in two kernels of which the first clears."""

    arguments = (Argument("input"), Argument("output", is_output=True))
    text: ClassVar[str] = """
struct Params { n: u32, input_offset: u32, output_offset: u32, pad: u32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> input: array<u32>;
@group(0) @binding(2) var<storage, read_write> output: array<atomic<u32>>;
@compute @workgroup_size(16) fn clear(@builtin(global_invocation_id) id: vec3<u32>) {
  atomicStore(&output[params.output_offset + id.x], 0u);
}
@compute @workgroup_size(64) fn count(@builtin(global_invocation_id) id: vec3<u32>) {
  if (id.x >= params.n) { return; }
  let digit = input[params.input_offset + id.x] & 15u;
  atomicMax(&output[params.output_offset + digit], id.x + 1u);
}
"""

    def argument_datatype(self, name):
        return gw.DATATYPES["u32"]

    def output_length(self, name, lengths):
        return 16

    def plan(self, layout):
        n = layout["input"].length
        words = (n, layout["input"].offset, layout["output"].offset, 0)
        buffers = [BufferSpec("params", "params", 16, words)]
        buffers += [BufferSpec(o.buffer, "argument", o.size_bytes) for o in layout.values()]
        bindings = (
            Binding(0, "params", "uniform"),
            Binding(1, layout["input"].buffer, "read"),
            Binding(2, layout["output"].buffer, "read_write"),
        )
        key = sha256(self.text)
        kernels = (
            Kernel("clear", key, bindings, (1, 1, 1), entry_point="clear"),
            Kernel("count", key, bindings, (-(-n // 64), 1, 1), entry_point="count"),
        )
        return Plan("histogram", tuple(buffers), kernels, {key: Shader(self.text, False)}, Work(n, 4 * n, 64))


def test_a_primitive_outside_the_package_is_run_and_timed_like_ours(device, require):
    require("timestamp-query")
    data = np.random.default_rng(5).integers(0, 2**32, 5003, dtype=np.uint32)

    def expected(items):
        last = np.zeros(16, dtype=np.uint32)
        np.maximum.at(last, items & 15, np.arange(1, items.size + 1, dtype=np.uint32))
        return last

    x = gw.asarray(data, device)
    histogram = Histogram(device)
    run = histogram.execute(input=x, enable_gpu_timing=True, enable_cpu_timing=True, trials=3)
    np.testing.assert_array_equal(run.output.to_numpy(), expected(data))
    result = histogram.get_timing_result()
    assert result.labels == ("clear", "count")
    assert len(result.gpu_total_time_ns) == 2
    assert 0 < sum(result.gpu_total_time_ns) <= result.cpu_total_time_ns
    # Views that start anywhere, and an output that is larger than needed.
    surrounding = gw.asarray(np.full(64, 9, dtype=np.uint32), device)
    histogram.execute(input=x[77:1003], output=surrounding[5:])
    got = surrounding.to_numpy()
    np.testing.assert_array_equal(got[5:21], expected(data[77:1003]))
    assert set(got[:5]) | set(got[21:]) == {9}
    # Recorded with another primitive on one encoder.
    encoder = device.create_command_encoder()
    scan = gw.Scan(device)
    first = histogram.execute(input=x, output=gw.empty(16, "u32", device), encoder=encoder, enable_gpu_timing=True)
    second = scan.execute(input=first.output, encoder=encoder, enable_gpu_timing=True)
    device.queue.submit([encoder.finish()])
    np.testing.assert_array_equal(second.output.to_numpy(), np.cumsum(expected(data), dtype=np.uint32))
    assert len(second.get_timing_result().gpu_total_time_ns) == len(second.plan.kernels)
    assert len(first.get_timing_result().gpu_total_time_ns) == 2
    plan = Histogram.plan_for(capabilities=gw.Capabilities(), lengths={"input": 10, "output": 16})
    assert Plan.from_json(plan.to_json()) == plan


def test_an_abstract_primitive_cannot_be_made(device):
    with pytest.raises(TypeError, match="abstract"):
        gw.Primitive(device)


def test_items_of_f16_come_two_to_a_word(device):
    """An odd number of them is bound up to the end of the last word."""
    text = """
@group(0) @binding(0) var<storage, read> x: array<u32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  if (id.x < arrayLength(&x)) { y[id.x] = unpack2x16float(x[id.x]).x; }
}
"""
    kernel = gw.Kernel(device, text, BINDINGS, _groups, datatypes={"x": "f16", "y": "f32"})
    items = np.linspace(-3, 3, 151).astype(np.float16)
    y = gw.asarray(np.full(100, 9, np.float32), device)
    kernel.execute(x=gw.asarray(items, device), y=y)
    np.testing.assert_array_equal(y.to_numpy()[:77], np.append(items[::2], np.float32(9))[:77])
    with pytest.raises(gw.DatatypeError, match="x is of f32, but this kernel was made for f16"):
        kernel.execute(x=y, y=y)
