"""Wrong kernels are never called right, right ones never wrong, whichever way they are measured.

The outputs hold the right items already, as an earlier run leaves them: only a kernel that writes them is right.
"""

import re

import numpy as np
import pytest

import gridwise_py as gw

SHORT = gw.SamplingProtocol(
    min_samples=2, block_trials=2, warmup_s=0, max_warmup_s=0.001, timeout_s=0.001, check_unit=False, batch_trials=2
)
N = 300
FAULTS = ("none", "writes nothing", "writes a third", "all but the last", "a step too few", "NaN", "another input")
WGSL = """
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@group(0) @binding(2) var<uniform> fault: u32;
@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  let n = arrayLength(&x);
  let i = id.x;
  if (i >= n || fault == 1u || (fault == 2u && i % 3u != 0u) || (fault == 3u && i == n - 1u)) { return; }
  var value = x[select(i, n - 1u - i, fault == 6u)];
  for (var step = select(0u, 1u, fault == 4u); step < 4u; step++) { value = 2.0 * value + 1.0; }
  if (fault == 5u) { value = bitcast<f32>(0x7fc00000u + u32(i) % n); }
  y[i] = value;
}"""
X = np.arange(N, dtype=np.float32)
RIGHT = 16 * X + 15


@pytest.fixture(scope="module")
def kernel(device):
    return gw.Kernel(device, WGSL, {"x": "read", "y": "read_write", "fault": "uniform"}, lambda n: -(-n["x"] // 64))


def _sequence(kernel, x, y, fault):
    with gw.capture(kernel.device) as calls:
        kernel.execute(x=x, y=y, fault=fault)
    return gw.Benchmark(calls, {"x": x}, {"y": RIGHT}, outputs={"y": y})


#: How a kernel with a fault is measured: a function of it, of x, of y, and of the number of the fault.
WAYS = {
    "measure": lambda kernel, x, y, fault: gw.measure(
        kernel, protocol=SHORT, x=x, y=y, fault=fault, reference=RIGHT
    ),
    "several": lambda kernel, x, y, fault: gw.measure([kernel], protocol=SHORT, x=x, y=y, fault=fault, reference=RIGHT),
    "compare_kernels": lambda kernel, x, y, fault: gw.compare_kernels(
        {
            name: gw.Benchmark(kernel, {"x": x, "y": y, "fault": number}, RIGHT)
            for name, number in (("a", 0), ("b", fault))
        },
        rounds=3, protocol=SHORT,
    ).measurements["b"][0],
    "sequence": lambda kernel, x, y, fault: gw.measure(_sequence(kernel, x, y, fault), protocol=SHORT),
    "named sequence": lambda kernel, x, y, fault: gw.measure(
        _sequence(kernel, x, y, fault).run, protocol=SHORT, x=x, y=y, reference={"y": RIGHT}
    ),
    "records": lambda kernel, x, y, fault: gw.measure(
        lambda encoder, x, y: kernel.record(encoder, x=x, y=y, fault=fault).clear(),
        protocol=SHORT, device=kernel.device, x=x, y=y, reference={"y": RIGHT},
    ),
    "records alone": lambda kernel, x, y, fault: gw.measure(
        gw.Benchmark(
            lambda encoder: kernel.record(encoder, x=x, y=y, fault=fault).clear(), {}, RIGHT, outputs={"y": y}
        ),
        protocol=SHORT, device=kernel.device,
    ),
    "submits": lambda kernel, x, y, fault: gw.measure(
        lambda x, y: kernel.execute(x=x, y=y, fault=fault),
        protocol=SHORT, device=kernel.device, x=x, y=y, reference={"y": RIGHT},
    ),
}  # fmt: skip


@pytest.mark.parametrize("way", WAYS)
def test_no_wrong_kernel_is_called_right(kernel, way):
    device = kernel.device
    x = gw.asarray(X, device)
    for number, fault in enumerate(FAULTS):
        y = gw.asarray(RIGHT, device)
        try:
            found = WAYS[way](kernel, x, y, number)
            assert found.checked
            verdict = found.correct
        except gw.ArgumentError as error:
            verdict = not re.search("writes nothing|right only on what y held before", str(error))
        assert verdict == (fault == "none"), fault
        assert np.isfinite(y.to_numpy()).all() or fault == "NaN"
        if not verdict:  # nothing was timed, and nothing of the caller's is lost
            assert way == "compare_kernels" or fault in FAULTS[4:] or (y.to_numpy() == RIGHT).all(), fault


def test_no_single_wrong_output_of_several_is_missed(device):
    """Each of the two is compared, what is restored begins each run as it was, and the caller's items stay."""
    text = """
@group(0) @binding(0) var<storage, read_write> a: array<u32>;
@group(0) @binding(1) var<storage, read_write> b: array<u32>;
@compute @workgroup_size(64) fn main(@builtin(local_invocation_index) i: u32) { A; if (CASE) { b[i] = i + 1u; } }"""
    ones, right = np.ones(64, np.uint32), np.arange(1, 65, dtype=np.uint32)

    def measured(case, what="a[i] = i + 1u", before=right, **options):
        kernel = gw.Kernel(
            device, text.replace("CASE", case).replace("A;", f"{what};"), dict.fromkeys("ab", "read_write"), 1
        )
        a, b = gw.asarray(before, device), gw.asarray(right, device)
        try:
            return gw.measure(kernel, protocol=SHORT, a=a, b=b, reference={"a": right, "b": right}, **options)
        finally:
            if options or case != "true":
                np.testing.assert_array_equal(b.to_numpy(), right)

    assert measured("true").correct
    assert measured("true", "a[i] += i", before=ones, restore=["a"]).correct
    with pytest.raises(gw.ArgumentError, match="right only on what a, b held"):
        measured("i != 63u")
    with pytest.raises(gw.ArgumentError, match="right only on what b held"):
        measured("i != 63u", "a[i] += i", before=ones, restore=["a"])


def _of_y(device, body, kind="f32", head="", **options):
    """Return a kernel of one array, in which `body` does something with item i."""
    text = f"""{head}
@group(0) @binding(0) var<storage, read_write> y: array<{kind}>;
@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3<u32>) {{
  let i = id.x;
  if (i < arrayLength(&y)) {{ {body} }}
}}"""
    return gw.Kernel(device, text, {"y": "read_write"}, 5, **options)


PAIR = np.dtype([("at", "u4"), ("share", "f4")])
PAIRS = np.array([(i, i / 2) for i in range(N)], PAIR)
WORDS = np.arange(N, dtype=np.uint32)
#: Kernels that are right: what `_of_y` takes, what y holds, what is right, and the options of `measure`.
RIGHT_KERNELS = {
    "in place": (("y[i] += 1.0;",), X, X + 1, {"restore": ["y"]}),
    "of its own writes": (("y[i] = 0.0; for (var k = 0u; k <= i; k++) { y[i] += 1.0; }",), X, X + 1, {}),
    "zeros": (("y[i] = 0.0;",), X * 0, X * 0, {}),
    "zeros of words": (("y[i] = 0u;", "u32"), WORDS, WORDS * 0, {}),
    "garbage": (("y[i] = 0x5a5a5a5au;", "u32"), WORDS, np.full(N, 0x5A5A5A5A, np.uint32), {}),
    "NaN": (("y[i] = bitcast<f32>(0x7fc00000u + i);",), X, np.full(N, np.nan, np.float32), {}),
    "counter": (("atomicAdd(&y[0], 1u);", "atomic<u32>"), WORDS[:1] * 0, np.array([1], np.uint32), {"restore": "y"}),
    "structs": (("y[i] = Pair(i, f32(i) / 2.0);", "Pair", "struct Pair { at: u32, share: f32 }"), PAIRS, PAIRS, {}),
    "rows of three": (
        ("y[i] = vec3f(f32(i));", "vec3f"), np.zeros((60, 4), np.float32),
        np.repeat(np.arange(60, dtype=np.float32), 4).reshape(60, 4) * [1, 1, 1, 0], {"restore": "y"},
    ),
    "halves": (
        ("y[i] = pack2x16float(vec2f(f32(2u * i), f32(2u * i + 1u)));", "u32"),
        np.zeros(301, np.float16), np.arange(301, dtype=np.float16), {},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", RIGHT_KERNELS)
def test_no_right_kernel_is_called_wrong(device, name):
    what, given, right, options = RIGHT_KERNELS[name]
    kernel = _of_y(device, *what, dtypes={"y": "f16"} if name == "halves" else None)
    before = 256 // given.itemsize
    around = np.concatenate([np.ones(before, given.dtype), given.reshape(-1), np.ones(before, given.dtype)])
    whole = gw.asarray(around, device)
    arrays = [gw.asarray(given, device)] + [whole[before : before + given.size]] * (
        given.ndim == 1 and given.nbytes % 4 == 0
    )
    for y in arrays:
        found = gw.measure(kernel, protocol=SHORT, y=y, reference=right, **options)
        assert (found.checked, found.correct) == (True, True), found
    after = np.delete(whole.to_numpy(), np.s_[before : before + given.size])
    np.testing.assert_array_equal(after, np.delete(around, np.s_[before : before + given.size]))


def test_what_a_recording_reads_first_is_put_back(device):
    """Of calls of the library that is known; of a kernel that may read what it writes, the error says what to name."""
    x = gw.asarray(WORDS, device)
    scan = gw.Scan(device, "u32", strategy="reduce_then_scan")
    with gw.capture(device) as calls:
        scan.execute(input=x, output=x)
    found = gw.measure(gw.Benchmark(calls, outputs={"x": x}, reference={"x": np.cumsum(WORDS)}), protocol=SHORT)
    assert (found.checked, found.correct, found.protocol["restored"]) == (True, True, ["x"])
    clamp, right = _of_y(device, "y[i] = min(y[i], 9u);", "u32"), {"y": np.minimum(WORDS, 9)}
    y = gw.asarray(WORDS, device)
    with gw.capture(device) as calls:
        clamp.execute(y=y)
    for run in (calls, lambda encoder: clamp.record(encoder, y=y).clear()):
        for named in ({}, {"restore": "y"}, {"inputs": {"y": y}}):
            benchmark = gw.Benchmark(run, outputs={"y": y}, reference=right, **named)
            if named and (run is calls or "restore" in named):
                assert gw.measure(benchmark, protocol=SHORT, device=device).correct
                y.copy_from(WORDS)
            elif not named:
                with pytest.raises(gw.ArgumentError, match=r"right only on what y held.*restore=.*inputs="):
                    gw.measure(benchmark, protocol=SHORT, device=device)
                np.testing.assert_array_equal(y.to_numpy(), WORDS)
