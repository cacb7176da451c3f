"""gw.Kernel and Primitive subclasses outside the package: run, timed and checked like the library's own."""

import itertools
import os
import re
import subprocess
import sys
from dataclasses import replace
from functools import partial
from typing import ClassVar

import numpy as np
import pytest

import gridwise_py as gw
from gridwise_py.planning.plan import Binding, BufferSpec, Kernel, Plan, Shader, Work
from gridwise_py.planning.shaders import sha256
from helpers import inside
from helpers.levels import level_on

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


def test_it_is_timed(device, require):
    require("timestamp-query")
    x = gw.asarray(X, device)
    kernel = gw.Kernel(device, SCALE, {"x": "read", "y": "write"}, _groups, label="scale")
    run = kernel.execute(x=x, y=gw.empty_like(x), enable_gpu_timing=True, enable_cpu_timing=True, trials=5)
    result = kernel.get_timing_result()
    assert result.labels == ("scale",)
    assert result.trials == 5
    assert len(result.gpu_total_time_ns) == 1
    assert 0 < result.gpu_total_time_ns[0] <= result.cpu_total_time_ns
    np.testing.assert_array_equal(run.output.to_numpy(), 2 * X)


def test_trials_repeat_the_same_work(device):
    """A kernel that may read what it writes has one trial, as a primitive in place."""
    text = SCALE.replace("y[id.x] = FACTOR", "y[id.x] += FACTOR")
    x, y = gw.asarray(X, device), gw.asarray(X, device)
    adding = gw.Kernel(device, text, BINDINGS, _groups)
    for call in (partial(adding.execute, x=x, y=y), adding.bind(x=x, y=y).execute):
        with pytest.raises(
            gw.OverlapError, match=r"trials=2 .*'read_write' in a gw\.Kernel.*says 'write' in bindings="
        ):
            call(trials=2)
    np.testing.assert_array_equal(y.to_numpy(), X)
    np.testing.assert_array_equal(adding.execute(x=x, y=y).output.to_numpy(), 3 * X)
    once = gw.Kernel(device, SCALE, {"x": "read", "y": "write"}, _groups).execute(x=x, y=y, trials=3)
    np.testing.assert_array_equal(once.output.to_numpy(), 2 * X)


def test_workgroups_as_a_number_a_tuple_and_a_callable(device):
    text = """
@group(0) @binding(0) var<storage, read_write> y: array<atomic<u32>>;
@compute @workgroup_size(1)
fn main(@builtin(workgroup_id) g: vec3<u32>) {
  atomicAdd(&y[0], 1u); atomicMax(&y[1], g.x); atomicMax(&y[2], g.y); atomicMax(&y[3], g.z);
}
"""
    for workgroups, counts in (
        (5, (5, 1, 1)), ((5,), (5, 1, 1)), ((2, 3), (2, 3, 1)), ([2, 3, 4], (2, 3, 4)),
        (lambda n: n["y"], (4, 1, 1)), (lambda n: (2, n["y"]), (2, 4, 1)),
        (np.int64(5), (5, 1, 1)), ((np.uint8(2), np.int64(3)), (2, 3, 1)), (lambda n: np.int64(4), (4, 1, 1)),
    ):  # fmt: skip
        y = gw.asarray(np.zeros(4, dtype=np.uint32), device)
        out = gw.Kernel(device, text, {"y": "read_write"}, workgroups).execute(y=y).output.to_numpy()
        assert out.tolist() == [np.prod(counts), *(c - 1 for c in counts)]


def test_impossible_workgroups_are_refused(device):
    x, y = gw.asarray(X, device), gw.asarray(X, device)
    for workgroups in (0, -1, (), (1, 2, 3, 4), (1, 0), 1.5, (1.0, 2), lambda n: 0, lambda n: (1, None)):
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
    "not WGSL": SCALE + "#version 450\nvoid main() {}",
    "another entry point": SCALE.replace("fn main", "fn other"),
    "read-only written": SCALE.replace("y[id.x] = ", "x[id.x] = "),
}  # fmt: skip
BROKEN["binding that is not given"] = "@group(0) @binding(5) var<storage> z: array<f32>;" + SCALE.replace(
    "FACTOR * x", "z[0] * x"
)


@pytest.mark.parametrize("name", BROKEN)
def test_broken_wgsl_is_an_error_with_the_numbered_text(device, name, wgpu_errors):
    x, y = gw.asarray(X, device), gw.asarray(X, device)
    for _ in range(2):
        with pytest.raises(gw.ShaderError, match="mine") as caught:
            gw.Kernel(device, BROKEN[name], BINDINGS, _groups, label="mine")
    wgpu_errors.clear()  # naga logs some of these as well
    lines = BROKEN[name].splitlines()
    for i, line in enumerate(lines, 1):
        assert f"{i:>{len(str(len(lines)))}} | {line}" in str(caught.value)
    assert caught.value.text == BROKEN[name]
    assert ("declares z as well" in str(caught.value)) == (name == "binding that is not given")
    np.testing.assert_array_equal(_scale(device).execute(x=x, y=y).output.to_numpy(), 2 * X)


def test_constants_that_the_text_lacks_name_those_that_it_has(device):
    numbered = SCALE.replace("override FACTOR", "@id(7) override FACTOR")
    assert numbered != SCALE
    for text, constants, told in (
        (SCALE, {"NOTHING": 1}, "has 'NOTHING', but the WGSL has no such override; there are FACTOR"),
        (numbered, {"FACTOR": 3}, "has 'FACTOR', but the WGSL has no such override; there are 7 (of FACTOR)"),
        (SCALE.replace("override FACTOR", "const FACTOR"), {"FACTOR": 3}, "there are none"),
    ):
        with pytest.raises(gw.ArgumentError, match=re.escape(told)):
            gw.Kernel(device, text, BINDINGS, _groups, constants=constants)
    x = gw.asarray(X, device)
    for key in (7, "7"):  # as it says
        run = gw.Kernel(device, numbered, BINDINGS, _groups, constants={key: 3}).execute(x=x, y=gw.empty_like(x))
        np.testing.assert_array_equal(run.output.to_numpy(), 3 * X)


def test_a_texture_is_no_argument(device):
    text = "@group(0) @binding(5) var t: texture_2d<f32>;" + SCALE
    with pytest.raises(
        gw.ArgumentError, match=r"t is a texture_2d<f32>, .*read from a var<storage, read> t: array<f32>"
    ):
        gw.Kernel(device, text, {**BINDINGS, "t": "read"}, _groups)


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


_POINTER_CALLS["another name of the type"] = (
    _POINTER_CALLS["kernel"].replace("fn g(p: ptr<function, f32>)", "alias P = ptr<function, f32>; fn g(p: P)")
)  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", _POINTER_CALLS)
def test_a_pointer_to_an_element_does_not_end_the_process(device, name):
    done = subprocess.run(
        [sys.executable, "-c", _POINTER.format(call=_POINTER_CALLS[name])],
        capture_output=True,
        text=True,
        timeout=1200,
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
    with pytest.raises(gw.ArgumentError, match=r"'output'.*read, read_write, write, uniform"):
        gw.Kernel(device, SCALE, {"x": "output"}, 1)
    with pytest.raises(gw.ArgumentError, match=r"bindings says 'write' of x, but the WGSL declares it as 'read'"):
        gw.Kernel(device, SCALE, {"x": "write"}, 1)
    with pytest.raises(gw.ArgumentError, match="at least one binding"):
        gw.Kernel(device, SCALE, {}, 1)
    with pytest.raises(gw.ArgumentError, match=r"unknown bindings \['z'\]"):
        _scale(device, dtypes={"z": "f32"})
    kernel = _scale(device, dtypes={"x": "f32"})
    with pytest.raises(gw.DatatypeError, match="x is of u32"):
        kernel.execute(x=gw.empty(5, "u32", device), y=x)
    with pytest.raises(gw.ArgumentError, match="y has 0 items"):
        kernel.execute(x=x, y=gw.empty(0, "f32", device))
    with pytest.raises(gw.ArgumentError, match=r"needs y=.*size cannot be told.*gw\.empty_like\(x\)"):
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
    with pytest.raises(gw.LimitError, match=r"5.*max-storage-buffers-per-shader-stage is 4"):
        gw.Kernel(device, text, dict.fromkeys(names, "read_write"), 1, capabilities=few)


OUT_OF_RANGE = """
@group(0) @binding(0) var<storage, read> x: array<u32>;
@group(0) @binding(1) var<storage, read_write> y: array<u32>;
@group(0) @binding(2) var<storage, read_write> z: array<u32>;
@group(0) @binding(3) var<uniform> far: u32;
var<workgroup> a: array<u32, 64>;
var<workgroup> b: array<u32, 64>;
var<workgroup> c: array<u32, 64>;
@compute @workgroup_size(64) fn main(@builtin(local_invocation_index) i: u32) {
  a[i] = 7u;
  b[i] = 7u;
  c[i] = 7u;
  workgroupBarrier();
  b[far + i] = 9u;  // of b's own, or nothing
  workgroupBarrier();
  y[i] = select(9u, 7u, a[i] == 7u && c[i] == 7u && (b[i] == 7u || b[i] == 9u)) + x[far + i];
  y[far + i] = 9u;
  y[0u - 1u - i] = 9u;
  z[i] = a[far + i];
}"""


@pytest.mark.parametrize("level", ["bounds", "all"])
def test_an_index_out_of_range_stays_in_what_is_bound(device, level):
    access = {"x": "read", "y": "read_write", "z": "read_write", "far": "uniform"}
    kernel = gw.Kernel(device, OUT_OF_RANGE, access, workgroups=1, shader_checks=level)
    n = max(64, device.limits["min-storage-buffer-offset-alignment"] // 4)
    for far in (n, 2 * n, 1 << 20, 0xFFFFFF00):
        around = [gw.asarray(np.full(4 * n, 5, np.uint32), device) for _ in range(2)]
        z, before = gw.zeros(64, "u32", device), gw.asarray(np.full(n, 3, np.uint32), device)
        inside = [array[n : 2 * n] for array in around]
        inside[0].copy_from(before)
        run = kernel.execute(x=inside[0], y=inside[1], z=z, far=far)
        assert run.plan.shader_checks == (level_on(device, level),)
        found = around[1].to_numpy()
        np.testing.assert_array_equal(found[:n], 5, err_msg="before the view")
        np.testing.assert_array_equal(found[2 * n :], 5, err_msg="behind it")
        # What is read is an item of its own range, or 0; arrays in workgroup memory have only their own writes.
        assert set(found[n : n + 64].tolist()) <= {7, 7 + 3, 9}, far
        assert set(z.to_numpy().tolist()) <= {0, 7}, far
        np.testing.assert_array_equal(around[0].to_numpy(), np.repeat(np.uint32([5, 3, 5, 5]), n))


def test_levels_that_there_are(device):
    for make in (
        lambda level: gw.Kernel(device, SCALE, BINDINGS, _groups, shader_checks=level),
        lambda level: gw.BinOp("plus", 0, np.add, expression="a + b", shader_checks=level),
        lambda level: gw.UnaryOp("twice", np.abs, expression="abs(x)", shader_checks=level),
        lambda level: gw.function("fn f(x: u32) -> u32 { return x; }", shader_checks=level),
    ):
        with pytest.raises(gw.ArgumentError, match="shader_checks='some' is unknown; known are none, bounds, all"):
            make("some")
        with pytest.raises(gw.DatatypeError, match="shader_checks=None is unknown; known are none, bounds, all"):
            make(None)


def test_it_is_planned_without_a_device():
    plan = gw.Kernel.plan_for(
        capabilities=gw.Capabilities(), lengths={"x": 100, "y": 100}, wgsl=SCALE, bindings=BINDINGS, workgroups=_groups
    )
    assert plan.kernels[0].workgroups == (2, 1, 1)
    assert plan.work == Work(100, 800, 400)
    assert plan.shader_checks == ("bounds",)


class Histogram(gw.Primitive):
    """A primitive outside the package: counts of 16 values, in two kernels of which the first clears."""

    datatype = gw.DATATYPES["u32"]
    arguments = (gw.Argument("input"), gw.Argument("output", is_output=True, length=16))
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
        return Plan("histogram", tuple(buffers), kernels, {key: Shader(self.text, "all")}, Work(n, 4 * n, 64))


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
    assert Plan.from_json(plan.to_json()) == plan.with_checks("all")


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
    kernel = gw.Kernel(device, text, BINDINGS, _groups, dtypes={"x": "f16", "y": "f32"})
    items = np.linspace(-3, 3, 151).astype(np.float16)
    y = gw.asarray(np.full(100, 9, np.float32), device)
    kernel.execute(x=gw.asarray(items, device), y=y)
    np.testing.assert_array_equal(y.to_numpy()[:77], np.append(items[::2], np.float32(9))[:77])
    with pytest.raises(gw.DatatypeError, match="x is of f32, but this kernel was made for f16"):
        kernel.execute(x=y, y=y)


# ---- names, numbers and types of the text's variables

SUBTRACT = """
alias F = f32;
/* @group(0) @binding(7) var<storage> c: array<u32>; /* nested */ */
@binding(1) /* the second */ @group(0) var<storage> b : array<F>;  // @binding(0) var<storage> b
@group(0) @binding(0u)
var<storage, read>
  a: array<vec4f>;
@group(0) @binding(0x2) var<storage,read_write> y: array<F>;
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  if (id.x < arrayLength(&y)) { y[id.x] = a[id.x / 4u][id.x % 4u] - b[id.x]; }
}
"""


def test_arguments_go_to_the_variable_of_their_name(device):
    access = {"a": "read", "b": "read", "y": "read_write"}
    a, b = X[:100] + 100, X[:100] ** 2
    for order in itertools.permutations("aby"):
        kernel = gw.Kernel(device, SUBTRACT, {name: access[name] for name in order}, 2)
        y = kernel.execute(b=gw.asarray(b, device), a=gw.asarray(a, device), y=gw.empty(100, "f32", device)).output
        np.testing.assert_array_equal(y.to_numpy(), a - b)


@pytest.mark.parametrize(
    ("text", "bindings", "match"),
    [
        (SCALE, {"x": "read", "out": "read_write"}, r"'out'.*it declares x \(@binding\(0\)\), y \(@binding\(1\)\)"),
        ("", BINDINGS, "'x'.*declares none with @binding"),
        (SCALE.replace("var<storage, read> x", "var<storage, read_write> x"), BINDINGS, "'read' of x.*'read_write'"),
        (SCALE, {"x": "read_write", "y": "read_write"}, "'read_write' of x.*'read'"),
        (SCALE.replace("@group(0) @binding(1)", "@group(1) @binding(1)"), BINDINGS, r"y is in @group\(1\)"),
        (SCALE.replace("@binding(0)", "@binding(0 + 0)"), BINDINGS, r"@binding\(0\+0\); write integers"),
    ],
)
def test_bindings_that_the_text_does_not_have(device, text, bindings, match):
    with pytest.raises(gw.ArgumentError, match=match):
        gw.Kernel(device, text, bindings, 1)


def test_a_binding_cannot_have_the_name_of_an_option(device):
    for name in ("trials", "encoder", "timing", "enable_gpu_timing", "enable_cpu_timing"):
        text = SCALE.replace("> x", f"> {name}").replace("&x", f"&{name}").replace("x[", f"{name}[")
        with pytest.raises(gw.ArgumentError, match=f"{name!r}.*option of execute.*rename"):
            gw.Kernel(device, text, {name: "read", "y": "read_write"}, 1)


def test_an_array_is_of_the_type_that_the_text_declares(device):
    x, y = gw.asarray(X.astype(np.uint32), device), gw.asarray(X, device)
    with pytest.raises(gw.DatatypeError, match=r"x is of u32.*array<f32>.*dtypes=\{'x': …\}"):
        _scale(device).execute(x=x, y=y)
    np.testing.assert_array_equal(y.to_numpy(), X)
    bits = gw.asarray(X.view(np.uint32), device)
    for datatypes in ({"x": "u32"}, {"x": None}):
        got = _scale(device, dtypes=datatypes).execute(x=bits, y=y).output.to_numpy()
        np.testing.assert_array_equal(got, 2 * X)
    with pytest.raises(gw.DatatypeError, match="x is of f32, but this scale was made for u32"):
        _scale(device, dtypes={"x": "u32"}).execute(x=y, y=bits)


COPY_PAIRS = SCALE.replace("array<f32>", "array<vec2<u32>>").replace("FACTOR * x", "x")


def test_pairs_of_words_are_items_of_8_bytes_or_two_of_4(device):
    for datatype in ("u64", "f64", "u32"):
        items = (np.arange(1000) * 12345).astype(gw.STORAGE_DATATYPES[datatype].dtype)
        x = gw.asarray(items, device)
        run = gw.Kernel(device, COPY_PAIRS, BINDINGS, _groups).execute(x=x, y=gw.empty_like(x))
        np.testing.assert_array_equal(run.output.to_numpy(), items)
        assert run.plan.work == Work(1000, 2 * items.nbytes, items.nbytes)


def test_a_kernel_that_writes_nothing_has_no_output(device):
    text = "@group(0) @binding(0) var<storage> x: array<u32>;\n@compute @workgroup_size(1) fn main() { _ = x[0]; }"
    run = gw.Kernel(device, text, {"x": "read"}, 1).execute(x=gw.asarray(np.ones(4, np.uint32), device))
    assert run.outputs == {}
    with pytest.raises(gw.ArgumentError, match="kernel has no output"):
        _ = run.output


# ---- uniforms

AXPY = """
struct P { alpha: f32, n: u32, shift: vec3<f32>, last: i32, }
@group(0) @binding(3) var<uniform> p: P;
@group(0) @binding(2) var<uniform> beta: f32;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@group(0) @binding(0) var<storage, read> x: array<f32>;
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  let shift = p.shift;
  if (id.x < p.n) { y[id.x] = p.alpha * x[id.x] + beta + shift[id.x % 3u] + f32(p.last); }
}
"""
AXPY_BINDINGS = {"x": "read", "y": "read_write", "p": "uniform", "beta": "uniform"}


def _axpy(x, p, beta):
    shift = np.asarray(p["shift"], dtype=np.float32)[np.arange(x.size) % 3]
    y = np.float32(p["alpha"]) * x + np.float32(beta) + shift + np.float32(p["last"])
    return np.where(np.arange(x.size) < p["n"], y, np.float32(-7))


def test_uniforms_are_given_by_value(device):
    kernel = gw.Kernel(device, AXPY, AXPY_BINDINGS, _groups, label="axpy")
    x = gw.asarray(X, device)

    def fresh():
        return gw.asarray(np.full(X.size, -7, dtype=np.float32), device)

    p = {"alpha": 2.5, "n": 900, "shift": (1, 2, 3), "last": -4}
    with pytest.raises(gw.ArgumentError, match=r"^axpy needs p= \(P\), beta= \(f32\)"):
        kernel.execute(x=x, y=fresh())
    for beta in (1.5, np.float32(-3), 8):
        got = kernel.execute(x=x, y=fresh(), p=p, beta=beta).output.to_numpy()
        np.testing.assert_array_equal(got, _axpy(X, p, beta))
    compiled = inside.compiled(device)
    p = {**p, "n": np.uint32(77), "shift": np.array([0.5, 0, -1])}
    got = kernel.execute(x=x, y=fresh(), p=p).output.to_numpy()
    np.testing.assert_array_equal(got, _axpy(X, p, 8), err_msg="beta is that of the call before")
    np.testing.assert_array_equal(kernel.execute(y=fresh()).output.to_numpy(), _axpy(X, p, 8))
    assert inside.compiled(device) == compiled, "a new value compiles nothing"
    measured = gw.measure(kernel, protocol=gw.SamplingProtocol(samples=2), x=x, y=fresh(), beta=2.0)
    assert measured.n == 1000


def test_what_is_recorded_keeps_its_values(device):
    kernel = gw.Kernel(device, AXPY, AXPY_BINDINGS, _groups)
    x, first, second = gw.asarray(X, device), gw.empty(1000, "f32", device), gw.empty(1000, "f32", device)
    p = {"alpha": 1, "n": 1000, "shift": (0, 0, 0), "last": 0}
    encoder = device.create_command_encoder()
    kernel.record(encoder, x=x, y=first, p=p, beta=1.0)
    kernel.record(encoder, x=x, y=second, beta=2.0)
    device.queue.submit([encoder.finish()])
    np.testing.assert_array_equal(first.to_numpy(), X + 1)
    np.testing.assert_array_equal(second.to_numpy(), X + 2)


@pytest.mark.parametrize(
    ("name", "value", "match"),
    [
        ("beta", "2", "f32: give a number"),
        ("beta", [1.0], "f32: give a number"),
        ("beta", 1e300, "cannot hold"),
        ("beta", 2j, "give a number"),
        ("beta", [[1.0], [2.0, 3.0]], "f32: give a number"),
        ("beta", 10**400, "f32: give a number"),
        ("p", {"alpha": 1, "n": 1, "shift": np.ma.array([1, 2, 3], mask=[0, 1, 0]), "last": 0}, "3 numbers"),
        ("p", 1.0, "give a mapping with alpha, n, shift, last"),
        ("p", {"alpha": 1}, "give a mapping"),
        ("p", {"alpha": 1, "n": 1.5, "shift": (0, 0, 0), "last": 0}, r"p\['n'\] is 1.5.*cannot hold"),
        ("p", {"alpha": 1, "n": -1, "shift": (0, 0, 0), "last": 0}, "cannot hold"),
        ("p", {"alpha": 1, "n": 1, "shift": (0, 0), "last": 0}, "3 numbers"),
    ],
)
def test_values_that_a_uniform_cannot_be(device, name, value, match):
    kernel = gw.Kernel(device, AXPY, AXPY_BINDINGS, _groups)
    x, y = gw.asarray(X, device), gw.empty(1000, "f32", device)
    good = {"p": {"alpha": 1, "n": 1000, "shift": (0, 0, 0), "last": 0}, "beta": 3.0}
    kernel.execute(x=x, y=y, **good)
    with pytest.raises(gw.DatatypeError, match=match):
        kernel.execute(**{name: value})
    with pytest.raises(gw.ArgumentError, match="no argument 'z'"):
        kernel.execute(z=x, beta=5.0)
    np.testing.assert_array_equal(kernel.execute().output.to_numpy(), X + 3, err_msg="as it was")


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"constants": {"FACTOR": "2"}}, "the constant FACTOR is '2' of type str; give a number"),
        ({"constants": {"FACTOR": None}}, "the constant FACTOR is None"),
        ({"constants": ["FACTOR"]}, "constants must be a mapping by name, not list"),
        ({"bindings": ["x", "y"]}, "bindings must be a mapping by name, not list"),
        ({"dtypes": ["f32"]}, "dtypes must be a mapping by name, not list"),
        ({"entry_point": 5}, "entry_point must be a str, not int"),
        ({"label": 5}, "label must be a str, not int"),
        ({"label": "a\ud800"}, "label has '.ud800' at 1"),
        ({"wgsl": "//\ud800\n" + SCALE}, "wgsl has '.ud800' at 2"),
        ({"wgsl": SCALE.replace("binding(1)", f"binding({'9' * 5000})")}, "write integers"),
        ({"wgsl": SCALE.replace("binding(1)", "binding(0)")}, r"x and y are both @binding\(0\)"),
    ],
)
def test_options_of_another_type_are_refused(device, options, match):
    with pytest.raises((gw.ArgumentError, gw.DatatypeError), match=match):
        gw.Kernel(device, **{"wgsl": SCALE, "bindings": BINDINGS, "workgroups": 1, "label": "mine", **options})


def test_constants_are_any_numbers(device):
    x = gw.asarray(X, device)
    for value in (2, 2.0, np.float32(2), np.int8(2), -0.5):
        run = _scale(device, constants={"FACTOR": value}).execute(x=x, y=gw.empty(1000, "f32", device))
        np.testing.assert_array_equal(run.output.to_numpy(), np.float32(value) * X)


@pytest.mark.parametrize(
    ("declared", "value"),
    [("C: u32 = 8", 1.5), ("C = 8u", -1), ("C: i32 = 8", 2**31), ("C = 8", 0.5), ("C: bool = true", 2),
     ("C = 1.5", 1e39), ("@id(7) override C: u32", 1.5), ("C: u32 = 2u * 4u", float("nan"))],
)  # fmt: skip
def test_an_override_holds_what_it_is_given(declared, value):
    text = SCALE.replace("override FACTOR: f32 = 2.0", declared if "@" in declared else f"override {declared}")
    name = "7" if "@" in declared else "C"
    options = {"wgsl": text.replace("FACTOR", "f32(C)"), "bindings": BINDINGS, "workgroups": 1}
    with pytest.raises(gw.DatatypeError, match=r"the constant C is .*, which an override of type \w+ cannot hold"):
        gw.Kernel(None, **options, constants={name: value}, capabilities=gw.Capabilities())
    gw.Kernel(None, **options, constants={name: 1}, capabilities=gw.Capabilities())


#: A type, how many f32 there may be, how many not, and what the message says of it.
LENGTHS = [
    ("array<vec4<f32>>", (4, 1000), (3, 1001), r"a multiple of 16 bytes: give (4|1,000) items"),
    ("array<vec4f>", (1000,), (1002,), "16 bytes"),
    ("array<vec3<f32>>", (1000,), (1001,), "16 bytes"),
    ("array<f32, 16>", (16,), (15, 17), "array<f32,16>, which takes 64 bytes: give 16 items"),
    ("array<vec2<f32>, 2 * SIZE + 1>", (34,), (33, 35), "136 bytes"),
    ("array<mat3x3<f32>>", (12, 24), (9, 13), "48 bytes"),
    ("array<Inner>", (16, 80), (8, 12), "64 bytes"),
    ("Open", (12, 16), (8, 14), "a multiple of 16 bytes behind 32"),
    ("f32", (1,), (2,), "4 bytes"),
    ("array<Unknown>", (3,), (), ""),
]


@pytest.mark.parametrize(("kind", "fitting", "others", "match"), LENGTHS)
def test_lengths_fit_what_the_text_declares(kind, fitting, others, match):
    text = f"""
const SIZE = HALF * 2u; override HALF: u32 = 1;
alias Four = vec4<f32>; // in two words
struct Inner {{ a: vec3<f32>, @align(32) b: f32, c: f32, }}
struct Open {{ head: f32, @size(20) next: u32, items: array<Four> }}
@group(0) @binding(0) var<storage, read_write> y: {kind};
@compute @workgroup_size(1) fn main() {{ }}"""
    options = {"wgsl": text, "bindings": {"y": "read_write"}, "workgroups": 1, "dtypes": {"y": "f32"}}

    def plan(n):
        return gw.Kernel.plan_for(capabilities=gw.Capabilities(), lengths={"y": n}, constants={"HALF": 4}, **options)

    for n in fitting:
        plan(n)
    for n in others:
        with pytest.raises(gw.LengthError, match=rf"y has {n:,} items of 4 bytes, but the WGSL declares .*{match}"):
            plan(n)


def test_half_a_word_at_the_end_is_read_as_one(device):
    text = SCALE.replace("array<f32>", "array<u32>").replace("FACTOR * x", "x")
    kernel = gw.Kernel(device, text, BINDINGS, 8, dtypes={"x": "f16", "y": "f16"})
    x = gw.asarray(np.arange(301, dtype=np.float16), device)
    np.testing.assert_array_equal(kernel.execute(x=x, y=gw.empty_like(x)).output.to_numpy(), np.arange(301))


TILE = """
override X: u32 = 8; override Y = 8u; const Z: u32 = 1; @id(3 + 4u) override HUGE: u32 = 4096; override F: f32 = 8;
@group(0) @binding(0) var<storage, read_write> y: array<u32>;
var<workgroup> tile: array<u32, X * (Y * 2)>;
var<workgroup> other: array<vec3<u32>, 1 << 11>;
fn used(i: u32) -> u32 { tile[i % X] = i; return tile[i % X]; }
@compute @workgroup_size(X, Y, Z) fn main(@builtin(local_invocation_index) i: u32) { y[i] = used(i); }
struct Point { other: u32 }
fn named(other: u32) -> u32 { let tile = Point(other); return tile.other + u32(tile.other > other); }
@compute @workgroup_size(HUGE) fn alone(@builtin(local_invocation_index) i: u32) { y[i] = named(i); }
@compute @workgroup_size(u32(F / 16 * 64)) fn halves(@builtin(local_invocation_index) i: u32) { y[i] = used(i); }
@compute @workgroup_size(64) fn beside(@builtin(local_invocation_index) i: u32) { y[i] = other[i].x; }
"""


@pytest.mark.parametrize(
    ("constants", "entry_point", "match"),
    [
        ({"X": 64, "Y": 64}, "main", r"64 × 64 × 1, but max-compute-invocations-per-workgroup is 256"),
        ({"X": 512, "Y": 0.0}, "main", r"512 × 0 × 1, but must be at least 1"),
        ({"X": 512}, "main", r"512 × 8 × 1, but max-compute-workgroup-size-x is 256"),
        ({"X": 256, "Y": 1}, "main", None),
        ({"X": 256, "Y": 32, "7": 64}, "alone", None),  # whose tile and other are no workgroup memory
        ({"7": 512}, "alone", "of alone is 512, but"),
        ({"F": 0.5}, "halves", None),
        (
            {},
            "beside",
            r"beside takes 32,768 bytes of workgroup memory, but max-compute-workgroup-storage-size is 16,384",
        ),
    ],
)
def test_workgroups_fit_the_device_with_their_constants(constants, entry_point, match):
    limits = gw.Capabilities().limits
    assert (limits["max-compute-workgroup-storage-size"], limits["max-compute-workgroup-size-x"]) == (16384, 256)
    options = {"wgsl": TILE, "bindings": {"y": "read_write"}, "workgroups": 1, "entry_point": entry_point}
    make = partial(gw.Kernel, None, **options, constants=constants, capabilities=gw.Capabilities())
    if match is None:
        make()
        return
    with pytest.raises(gw.LimitError, match=match):
        make()


def test_extensions_that_a_text_enables(device, require):
    """What the standard demands is taken by every engine, and asks for the device's feature."""
    require("subgroup")
    text = """// enable nothing;
enable
subgroups;
@group(0) @binding(0) var<storage, read_write> y: array<u32>;
@compute @workgroup_size(64) fn main(@builtin(local_invocation_index) i: u32) { y[i] = subgroupMax(i);
if (i > 0) { // no need to enable subgroups
return; }
y[i] = 7; }"""
    y = gw.empty(64, "u32", device)
    assert gw.Kernel(device, text, {"y": "read_write"}, 1).execute(y=y).output.to_numpy()[[0, -1]].tolist() == [7, 63]
    with pytest.raises(gw.ShaderError, match="wgsl:5:"):
        gw.Kernel(device, text.replace("subgroupMax(i)", "missing"), {"y": "read_write"}, 1)
    bare_device = device.adapter.request_device_sync(label="no features", required_features=[])
    for name, feature in (
        ("subgroups", "subgroup"),
        ("f16", "shader-f16"),
        ("f16, subgroups", "shader-f16', 'subgroup"),
    ):
        other = text.replace("enable\nsubgroups", f"enable {name}").replace("subgroupMax(i)", "i")
        with pytest.raises(gw.ShaderError, match=rf"needs the features \['{feature}'\].*gw\.request_device\(\)"):
            gw.Kernel(bare_device, other, {"y": "read_write"}, 1)


def test_workgroups_of_an_argument_that_is_not_there(device):
    text = """@group(0) @binding(0) var<storage, read_write> y: array<u32>;
@compute @workgroup_size(1) fn main() { y[0] = 1; }"""
    kernel = gw.Kernel(device, text, {"y": "write"}, lambda n: n["X"])
    with pytest.raises(gw.ArgumentError, match="asks for the length of 'X'; known are y"):
        kernel.execute(y=gw.empty(4, "u32", device))


def test_types_that_no_uniform_can_be(device):
    text = AXPY.replace("var<uniform> beta: f32", "var<uniform> beta: array<vec4<f32>, 2>")
    with pytest.raises(gw.ArgumentError, match=r"beta is of type array<vec4<f32>,2>.*use a storage binding"):
        gw.Kernel(device, text, AXPY_BINDINGS, _groups)
