"""Arrays larger than a binding may be: in windows, in segments; first with small limits, then at real size."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gridwise_py as gw
from gridwise_py.planning.builder import PlanBuilder
from gridwise_py.planning.kernel_request import KernelFile, Memory
from gridwise_py.planning.windows import windows_of
from gridwise_py.runtime.context import context_of
from helpers.strategies import (
    AFFINE,
    KINDS,
    SMALL,
    assert_same,
    exact_items,
    make_primitive,
    quick_first,
    reduce_reference,
    scan_reference,
)

TILE = 256
LIMIT = 4 * 4 * TILE + 256 + 16  # a window of four tiles, whatever its alignment
WINDOW = 4 * TILE
EDGES = (WINDOW, 2 * WINDOW - 1, 2 * WINDOW, 2 * WINDOW + 1, 3 * WINDOW + TILE, 3 * WINDOW + 5 * TILE // 2)
OFFSETS = (0, 1, 2, 3, 64, 65)


def _limited(device, limit=LIMIT, **limits):
    """Capabilities of the device, but with small bindings that begin where every device lets them."""
    found = gw.capabilities(device)
    alignment = {"min-storage-buffer-offset-alignment": 256}
    limits = {"max-storage-buffer-binding-size": limit, **alignment, **limits}
    return replace(found, limits={**found.limits, **limits})


def _view(device, x, offset):
    """The items somewhere in a buffer, between items that must stay as they are."""
    padded = np.full(x.size + offset + 7, 0xDD, dtype=x.dtype)
    padded[offset : offset + x.size] = x
    return gw.asarray(padded, device)[offset : offset + x.size]


def _assert_guards(view):
    whole = gw.Array(view.buffer, view.datatype).to_numpy()
    rest = np.concatenate([whole[: view.offset], whole[view.offset + view.size :][:7]])
    assert (rest == rest.dtype.type(0xDD)).all()


def _scan(device, datatype, op, kind, how, **options):
    strategy, _, state = how.partition("-")
    return make_primitive(
        gw.Scan,
        device,
        datatype,
        op,
        kind,
        strategy=strategy,
        **({"state": state} if state else {}),
        **{**SMALL, **options},
    )


# ---- what a window is ----


@given(
    chunks=st.lists(st.integers(1, 3000), min_size=1, max_size=4),
    other=st.lists(st.integers(1, 3000), min_size=1, max_size=4),
    offsets=st.tuples(st.integers(0, 300), st.integers(0, 300)),
    limit=st.sampled_from([1300, 2048, 4096, 1 << 20]),
    alignment=st.sampled_from([32, 256]),
    multiple=st.sampled_from([1, 64, 128]),
    item_bytes=st.sampled_from([2, 4, 8]),
)
def test_windows_reach_every_item_once(chunks, other, offsets, limit, alignment, multiple, item_bytes):
    def argument(name, lengths, offset):
        parts = tuple(
            gw.Operand(n, f"{name}_{i}", offset + i, False, -(-(offset + i + n) * item_bytes // 16) * 16, item_bytes)
            for i, n in enumerate(lengths)
        )
        return parts[0] if len(parts) == 1 else gw.Operand(sum(lengths), "", item_bytes=item_bytes, chunks=parts)

    n = min(sum(chunks), sum(other))
    lengths = []
    for found in (chunks, other):
        cut, left = [], n
        for length in found:
            if left:
                cut.append(min(length, left))
                left -= cut[-1]
        lengths.append(cut)
    layout = gw.Layout({name: argument(name, lengths[i], offsets[i]) for i, name in enumerate("ab")})
    caps = gw.Capabilities(
        limits={"max-storage-buffer-binding-size": limit, "min-storage-buffer-offset-alignment": alignment}
    )
    windows = windows_of(layout, ["a", "b"], caps, multiple)
    # Where each item of an argument lies: its buffer and its byte there.
    places = {
        name: [(p.buffer, (p.offset + i) * item_bytes) for p in layout[name].parts for i in range(p.length)]
        for name in "ab"
    }
    assert sum(window.length for window in windows) == n
    done = 0
    for number, window in enumerate(windows):
        assert (window.index, window.count, window.first) == (number, len(windows), done)
        for name, operand in window.operands.items():
            assert operand.length == window.length
            assert operand.size_bytes <= limit
            assert operand.begin_bytes % alignment == 0
            first = operand.begin_bytes + operand.offset * item_bytes
            wanted = [(operand.buffer, first + i * item_bytes) for i in range(window.length)]
            assert wanted == places[name][done : done + window.length]
            last = first + window.length * item_bytes
            assert last <= operand.begin_bytes + operand.size_bytes
            if operand.vec4:
                assert operand.offset % 4 == 0
        done += window.length


def test_what_fits_is_one_window_with_the_operands_as_they_are():
    layout = gw.Layout.separate(a=1000, b=1000)
    (window,) = windows_of(layout, ["a", "b"], gw.Capabilities(), 256)
    assert dict(window.operands) == {name: layout[name] for name in "ab"}
    assert window.label("scan") == "scan"


def test_2_to_the_30_items_are_planned_as_on_a_gpu_with_bindings_of_2_gib():
    """Lengths beyond 32 bits of bytes, in Python; a device's limits as an H200 has them."""
    caps = gw.Capabilities(limits={
        "max-storage-buffer-binding-size": 2147483644, "max-buffer-size": 4292870144,
        "min-storage-buffer-offset-alignment": 32, "max-storage-buffers-per-shader-stage": 524288,
    })  # fmt: skip
    n = 4292870144 // 4
    for primitive, extra in ((gw.VectorAdd, ("a", "b")), (gw.Reduce, ("input",)), (gw.Scan, ("input",))):
        lengths = dict.fromkeys(extra, n) | {"output": 1 if primitive is gw.Reduce else n}
        plan = primitive.plan_for(capabilities=caps, lengths=lengths)
        assert plan.parameters["windows"] == 2
        assert plan.work.items == n
        for kernel in plan.kernels:
            for binding in kernel.bindings:
                assert (binding.size_bytes or plan.buffer(binding.buffer).size_bytes) <= 2147483644
                assert binding.offset_bytes % 32 == 0
    # A fixed order has 528 blocks, of which a binding reaches 263: not 263, 263 and 2, which would idle the device.
    plan = gw.Reduce.plan_for(
        capabilities=caps, lengths={"input": n, "output": 1}, dtype="f32", deterministic=True
    )  # fmt: skip
    assert [kernel.workgroups[0] for kernel in plan.kernels] == [176, 176, 176, 1]
    plan = gw.Sort.plan_for(capabilities=caps, lengths={"input": n, "output": n})
    assert max(b.offset_bytes + (b.size_bytes or 0) for k in plan.kernels for b in k.bindings) == 4 * n
    assert gw.Plan.from_json(plan.to_json()) == plan.with_checks("all")


# ---- reduce ----


def test_reduce_in_windows(device):
    """Also of more blocks than the 64 invocations that combine the totals: each takes one, two or three neighbours."""
    reduce = make_primitive(gw.Reduce, device, "u32", AFFINE, capabilities=_limited(device), **SMALL)
    more = (16 * WINDOW - 7, 17 * WINDOW - 7, 40 * WINDOW - 7)
    for n, offset in zip((*EDGES, *more), (*OFFSETS, 0, 0, 0), strict=True):
        x = exact_items("affine", "u32", n, seed=1)
        run = reduce.execute(input=_view(device, x, offset), trials=2)
        assert run.plan.parameters["windows"] == -(-n // WINDOW)
        assert run.plan.parameters["blocks"] == 4 * -(-n // WINDOW) or n not in more
        assert_same(run.output.to_numpy(), reduce_reference("affine", x))


def test_the_result_of_a_reduction_may_lie_in_its_input(device):
    """Its windows are bound for reading, and its last kernel binds another part of the same buffer for writing."""
    x = exact_items("add", "u32", 3 * WINDOW + 9)
    view = _view(device, x, 5)
    make_primitive(gw.Reduce, device, "u32", capabilities=_limited(device), **SMALL).execute(
        input=view, output=view[-1:]
    )
    assert_same(view.to_numpy(), np.append(x[:-1], reduce_reference("add", x)))


# ---- scan ----


@pytest.mark.parametrize(("stall_every", "kind"), quick_first([(1, "inclusive"), (2, "exclusive")], [(3, "exclusive")]))
def test_a_stalled_first_tile_of_a_window_still_has_the_carry(device, stall_every, kind):
    """Tile 0 of a window never posts, so later tiles compute it again, and must not forget what came before it."""
    x = exact_items("affine", "u32", 3 * WINDOW + 1)
    scan = _scan(device, "u32", AFFINE, kind, "lookback-u32x2", capabilities=_limited(device),
                 stall_every=stall_every, spin_limit=1)  # fmt: skip
    assert_same(scan.execute(input=gw.asarray(x, device)).output.to_numpy(), scan_reference("affine", x, kind))


@pytest.mark.parametrize("kind", quick_first(["inclusive"], KINDS))
def test_only_the_last_tile_of_a_window_leaves_the_carry(device, kind):
    """Tile 0 takes its time where it scans its items, after it has posted: other tiles are done before it.

    On a GPU, that is. A CPU adapter often does one workgroup after the other, and then nothing is to be seen.
    """
    slow = """
fn combine(a: T, b: T) -> T {
  var x = 1u;  // and odd forever, which no compiler knows
  for (var i = select(0u, 50000u, a == 123456u && b == 7u); i > 0u; i -= 1u) {
    x = x * 747796405u + (2u & (x >> 7u));
    x = x * 747796405u + (2u & (x >> 7u));
    x = x * 747796405u + (2u & (x >> 7u));
  }
  return a + b + select(0u, 1u, x == 0u);
}"""
    x = exact_items("add", "u32", 3 * WINDOW + 5)
    # What comes first in the order of a scan, and not in that of a sum of four.
    x[:4] = 123400, 56, 7, 8
    op = gw.BinOp("slow sum", 0, np.add, wgsl=slow)
    # By number: if a CPU adapter has several threads at work, the first half of the tiles is in one of them.
    scan = _scan(device, "u32", op, kind, "lookback-u32x2", capabilities=_limited(device), tickets=False, spin_limit=2)
    run = scan.execute(input=gw.asarray(x, device))
    assert run.plan.parameters["windows"] == 4
    assert_same(run.output.to_numpy(), scan_reference("add", x, kind))


@pytest.mark.parametrize("kind", quick_first(["inclusive"], KINDS))
def test_scan_in_windows_in_place_and_beside_itself(device, kind):
    x = exact_items("affine", "u32", 3 * WINDOW + 1)
    scan = make_primitive(gw.Scan, device, "u32", AFFINE, kind, capabilities=_limited(device), **SMALL)
    view = _view(device, x, 3)
    scan.execute(input=view, output=view)
    assert_same(view.to_numpy(), scan_reference("affine", x, kind))
    _assert_guards(view)
    # Input and output in one buffer that no binding reaches: both are bound as writable.
    both = gw.asarray(np.concatenate([x, np.zeros(x.size + 5, np.uint32)]), device)
    scan.execute(input=both[: x.size], output=both[x.size + 5 :])
    assert_same(both.to_numpy()[x.size + 5 :], scan_reference("affine", x, kind))
    assert_same(both.to_numpy()[: x.size], x)


def test_an_epoch_of_one_bit_survives_many_dispatches_in_windows(device):
    """Windows have states of their own, since the last one has fewer tiles than the others.

    A word of the epoch before last would only be believed by a tile that looks before its writer posts, which nothing
    here can bring about: hence the look at the plan.
    """
    x = exact_items("add", "u32", 2 * WINDOW + 300)
    scan = _scan(device, "u32", "add", "inclusive", "lookback-u32x2", capabilities=_limited(device), epoch_bits=1)
    data = gw.asarray(x, device)
    for trials in (1, 2, 3, 1):
        run = scan.execute(input=data, trials=trials)
        assert_same(run.output.to_numpy(), scan_reference("add", x))
    bound = [{b.buffer for b in kernel.bindings} for kernel in run.plan.kernels]
    for kind in ("states", "control"):
        assert len({name for names in bound for name in names if name.startswith(kind)}) == len(bound) == 3


# ---- bits ----


@pytest.mark.parametrize(("option", "offset"), [("deterministic", 3), ("compensated", 0)])
def test_windows_change_no_bit_of_a_fixed_order(device, option, offset):
    """Of floats of many sizes, whose sum depends on the order; 4,096 items a tile, and blocks of several of them."""
    n = 600 * 4096 + 77  # more tiles than a reduction has blocks
    rng = np.random.default_rng(7)
    x = (rng.standard_normal(n) * 10.0 ** rng.integers(-6, 7, n)).astype(np.float32)
    view = _view(device, x, offset)
    small = _limited(device, 1 << 20)
    for make in (
        lambda **more: make_primitive(gw.Reduce, device, "f32", **{option: True}, **more),
        lambda **more: make_primitive(gw.Scan, device, "f32", **{option: True}, **more),
    ):
        whole, parts = make().execute(input=view), make(capabilities=small).execute(input=view)
        assert whole.plan.parameters["windows"] == 1
        assert parts.plan.parameters["windows"] > 8
        assert_same(parts.output.to_numpy().view(np.uint32), whole.output.to_numpy().view(np.uint32))


# ---- sorts and matrix products: segments ----

FEW = {"items": 4, "parts": 1}  # keys per invocation: a CPU adapter compiles each access to each segment


def _keys(datatype, n):
    rng = np.random.default_rng([n, 3])
    dtype = gw.STORAGE_DATATYPES[datatype].dtype
    if dtype.kind == "f":
        return (rng.standard_normal(n) * 3).astype(dtype)
    return rng.integers(0, np.iinfo(dtype).max, n, dtype=dtype, endpoint=True)


def _segments(plan, buffer="input"):
    return max(sum(b.buffer == buffer for b in kernel.bindings) for kernel in plan.kernels)


@pytest.mark.slow
def test_sort_in_place_pairs_and_positions_in_segments(device):
    keys, values = _keys("i32", 9001), np.arange(9001, dtype=np.uint64)
    caps = _limited(device, 4 * 9001 // 2 + 1040)
    order = np.argsort(keys, kind="stable")
    x = _view(device, keys, 5)
    make_primitive(gw.Sort, device, "i32", overwrite_input=True, capabilities=caps, **FEW).execute(input=x)
    assert_same(x.to_numpy(), keys[order])
    _assert_guards(x)
    assert_same(
        make_primitive(gw.ArgSort, device, "i32", capabilities=caps, **FEW)
        .execute(input=_view(device, keys, 1))
        .output.to_numpy(),
        order.astype(np.uint32),
    )
    pairs = make_primitive(
        gw.SortPairs, device, "i32", "u64", capabilities=_limited(device, 8 * 9001 // 2 + 1040), **FEW
    )
    run = pairs.execute(keys=_view(device, keys, 0), values=_view(device, values, 0))
    assert_same(run.outputs["output_keys"].to_numpy(), keys[order])
    assert_same(run.outputs["output_values"].to_numpy(), values[order])


def test_what_is_not_segmented_has_the_text_that_it_had(device):
    """Small arrays pay nothing: one binding for each argument, by its name alone."""
    plan = gw.Sort.plan_for(capabilities=gw.capabilities(device), lengths={"input": 9001, "output": 9001})
    assert all(binding.size_bytes is None for kernel in plan.kernels for binding in kernel.bindings)
    assert not any(re.search(r"words_\d+_\d", shader.text) for shader in plan.shaders.values())


def test_too_many_segments_are_refused_by_the_limits_name(device, wgpu_errors):
    caps = _limited(device, 4096, **{"max-storage-buffers-per-shader-stage": 8})
    x = gw.asarray(_keys("u32", 9001), device)
    with pytest.raises(gw.LimitError, match="max-storage-buffers-per-shader-stage is 8") as caught:
        gw.Sort(device, "u32", capabilities=caps).execute(input=x)
    assert "bindings are of at most 4096 bytes" in str(caught.value)
    assert "36016 bytes" in str(caught.value)
    assert "split the data" in str(caught.value)


@pytest.mark.slow
def test_temporary_memory_beyond_the_largest_buffer(device):
    """Copies of the keys then lie in several buffers; tables do not."""
    caps, x = _limited(device, 12_288, **{"max-buffer-size": 30_000}), _keys("u32", 9001)
    run = make_primitive(gw.Sort, device, "u32", capabilities=caps, **FEW).execute(input=gw.asarray(x, device))
    assert [b.size_bytes for b in run.plan.buffers if b.name.startswith("temporary_keys")] == [30_000, 6_016]
    assert_same(run.output.to_numpy(), np.sort(x))
    tiny = gw.Sort(
        device,
        "u32",
        strategy="onesweep",
        tuning=gw.SortTuning(workgroup_size=256, items=1, parts=1),
        capabilities=caps,
    )
    with pytest.raises(gw.LimitError, match=r"'states' needs 36880 bytes.*max-buffer-size is 30000"):
        tiny.execute(input=gw.asarray(x, device))


def test_a_kernel_of_your_own_is_not_split(device):
    kernel = gw.Kernel(
        device,
        "@group(0) @binding(0) var<storage, read_write> x: array<u32>; @compute @workgroup_size(1) fn main() "
        "{ x[0] = 1u; }",
        {"x": "read_write"},
        1,
        capabilities=_limited(device, 1024),
    )
    with pytest.raises(gw.LimitError, match=r"max-storage-buffer-binding-size is 1024.*at most 256 items"):
        kernel.execute(x=gw.empty(257, "u32", device))


def test_a_plan_without_windows_is_refused_by_the_limits_name(device):
    """A primitive of a user's own, say, whose plan was made by hand for one binding."""

    class OneBinding(gw.VectorAdd):
        def plan(self, layout):
            return gw.VectorAdd.plan_for(capabilities=gw.capabilities(device), lengths=layout)

    x = gw.empty(1000, "u32", device)
    with pytest.raises(gw.LimitError, match=r"binds 4000 bytes of a.*max-storage-buffer-binding-size is 1024 bytes"):
        OneBinding(device, "u32", capabilities=_limited(device, 1024)).execute(a=x, b=x)


def test_a_kernel_that_writes_vec4_in_segments(device):
    """Not one of the library's own: those that go through their arguments in order take windows."""

    class Segmented(gw.Copy):
        def plan(self, layout):
            n = layout["input"].length
            builder = PlanBuilder("copy", layout, self.capabilities)
            blocks = -(-n // TILE)
            builder.kernel(
                "copy",
                KernelFile(
                    "copy.wgsl", context={"datatype": "u32", "vecs": 1, "regions": 1}, constants={"WORKGROUP_SIZE": 64}
                ),
                Memory(reads={"input": layout["input"]}, writes={"output": layout["output"]}),
                params={"n": n, "blocks": blocks},
                extent="blocks",
            )
            return builder.build(gw.Work(n, 4 * n, 4 * n), {})

    x = exact_items("add", "u32", 3 * WINDOW + 5)
    for offset in (0, 3):
        run = Segmented(device, "u32", capabilities=_limited(device)).execute(input=_view(device, x, offset))
        assert _segments(run.plan) == _segments(run.plan, "output") == 3
        assert_same(run.output.to_numpy(), x)


# ---- recording and timing ----


def test_windows_are_one_submission_and_a_timed_kernel_each(device, require, monkeypatch):
    require("timestamp-query")
    x = gw.asarray(exact_items("add", "u32", 3 * WINDOW), device)
    scan = _scan(device, "u32", "add", "inclusive", "lookback-u32x2", capabilities=_limited(device))
    submitted = []
    queue = type(device.queue)
    submit = queue.submit
    monkeypatch.setattr(queue, "submit", lambda self, buffers: (submitted.append(len(buffers)), submit(self, buffers)))
    run = scan.execute(input=x, enable_gpu_timing=True, trials=2)
    assert submitted == [1]
    result = run.get_timing_result()
    assert result.labels == tuple(f"scan (window {i} of 3)" for i in (1, 2, 3))
    assert len(result.gpu_total_time_ns) == 3
    reduce = make_primitive(gw.Reduce, device, "u32", capabilities=_limited(device), **SMALL).execute(input=x)
    assert [k.label for k in reduce.plan.kernels] == [*(f"reduce (window {i} of 3)" for i in (1, 2, 3)), "combine"]


@pytest.mark.ahead
def test_another_length_in_windows_compiles_nothing(device):
    scan = _scan(device, "u32", "add", "inclusive", "lookback-u32x2", capabilities=_limited(device))
    reduce = make_primitive(gw.Reduce, device, "u32", capabilities=_limited(device), **SMALL)
    x = gw.empty(8 * WINDOW, "u32", device)
    counts = []
    for n in (2 * WINDOW, 3 * WINDOW + 4, 8 * WINDOW - 8):
        scan.execute(input=x[:n])
        reduce.execute(input=x[:n])
        counts.append(context_of(device).executor.pipelines.compiled)
    assert counts[0] == counts[1] == counts[2]


# ---- at real size ----


def _real(device, over=1 << 14):
    """As many words as do not fit into one binding; 128 MiB where it could hold more."""
    limit = gw.capabilities(device).limits["max-storage-buffer-binding-size"]
    caps = gw.capabilities(device)
    if limit > 1 << 27:
        caps = replace(caps, limits={**caps.limits, "max-storage-buffer-binding-size": 1 << 27})
    return caps, (1 << 25) + over


@pytest.mark.slow
def test_add_reduce_and_scan_beyond_128_mib(device):
    caps, n = _real(device)
    x = (np.arange(n, dtype=np.uint32) * np.uint32(2654435761)) >> np.uint32(7)
    want = np.cumsum(x, dtype=np.uint32)
    data, out = gw.asarray(x, device), gw.empty(n, "u32", device)
    assert data.nbytes > 1 << 27
    for primitive, inputs in (
        (gw.VectorAdd(device, "u32", capabilities=caps), {"a": data, "b": data}),
        (gw.Scan(device, "u32", capabilities=caps), {"input": data}),
        (gw.Reduce(device, "u32", capabilities=caps), {"input": data}),
    ):
        # The library's own limits on a device with such small bindings, as lavapipe; else invented ones.
        run = primitive.execute(**inputs, output=out)
        assert run.plan.parameters["windows"] == 2
        found = run.output.to_numpy()
        assert np.array_equal(found, {"vector_add": x + x, "scan": want, "reduce": want[-1:]}[run.plan.primitive])
    for array in (data, out):
        array.destroy()


@pytest.mark.slow
def test_sort_beyond_128_mib(device):
    """By one digit, so that it is done in one pass: a CPU adapter takes seconds for each."""
    caps, n = _real(device)
    keys = np.arange(n, dtype=np.uint32) * np.uint32(2654435761)
    data = gw.asarray(keys, device)
    assert data.nbytes > 1 << 27
    sort = gw.Sort(
        device, "u32", end_bit=8, strategy="reduce_then_scan", tuning=gw.SortTuning(items=8), capabilities=caps
    )
    run = sort.execute(input=data)
    assert _segments(run.plan) == 2
    assert np.array_equal(run.output.to_numpy(), keys[np.argsort(keys.astype(np.uint8), kind="stable")])
    data.destroy()
