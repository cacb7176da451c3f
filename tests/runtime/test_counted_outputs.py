"""Outputs whose length only the GPU knows: they have room for the most, and carry their count."""

import numpy as np
import pytest

import gridwise_py as gw
from gridwise_py.bench.checks.check import mismatch
from gridwise_py.planning.plan import Binding, BufferSpec, Kernel, Plan, Shader, Work, pack_words
from gridwise_py.planning.shaders import sha256

TEXT = """
struct Params { n: u32, x_offset: u32, output_offset: u32, count_offset: u32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> x: array<u32>;
@group(0) @binding(2) var<storage, read_write> output: array<u32>;
@group(0) @binding(3) var<storage, read_write> count: array<u32>;

@compute @workgroup_size(1)
fn main() {
  var kept = 0u;
  for (var i = 0u; i < params.n; i++) {
    let item = x[params.x_offset + i];
    if ((item & 1u) == 1u) {
      output[params.output_offset + kept] = item;
      kept++;
    }
  }
  count[params.count_offset] = kept;
}
"""


class Odd(gw.Primitive):
    """The odd items, in order."""

    datatype = gw.DATATYPES["u32"]
    arguments = (
        gw.Argument("x"),
        gw.Argument("output", is_output=True, length=gw.UpTo("x", count="count")),
        gw.Argument("count", is_output=True, length=1),
    )

    def plan(self, layout):
        operands = [layout[name] for name in ("x", "output", "count")]
        specs = tuple(BufferSpec(o.buffer, "argument", o.size_bytes) for o in operands)
        words = pack_words({"n": operands[0].length, **{f"{o.buffer}_offset": o.offset for o in operands}})
        key = sha256(TEXT)
        bindings = (
            Binding(0, "params", "uniform"),
            Binding(1, operands[0].buffer, "read"),
            Binding(2, operands[1].buffer, "read_write"),
            Binding(3, operands[2].buffer, "read_write"),
        )
        return Plan(
            "odd",
            (BufferSpec("params", "params", 4 * len(words), words), *specs),
            (Kernel("odd", key, bindings, (1, 1, 1)),),
            {key: Shader(TEXT, "all")},
            Work(operands[0].length, 4 * operands[0].length, 4),
        )

    def reference(self, x):
        odd = x[x % 2 == 1]
        return odd, np.array([odd.size], dtype=np.uint32)


@pytest.mark.parametrize("items", [[2], [1], [1, 2, 3, 4, 5], [2, 4, 6], list(range(1000))])
def test_what_the_gpu_counted_comes_back_and_no_more(device, items):
    x = np.array(items, dtype=np.uint32)
    primitive = Odd(device)
    run = primitive.execute(x=gw.asarray(x, device))
    assert run.output.size == x.size, "room for the most"
    assert run.output.count is run.outputs["count"]
    np.testing.assert_array_equal(run.output.to_numpy(), x[x % 2 == 1])
    assert mismatch(primitive, {"x": x}, {name: array.to_numpy() for name, array in run.outputs.items()}) is None
    trimmed = run.output.trim()
    assert trimmed.size == (x % 2 == 1).sum()
    assert trimmed.count is None
    assert trimmed.buffer is run.output.buffer


def test_a_wrong_count_is_seen(device):
    primitive, x = Odd(device), np.arange(9, dtype=np.uint32)
    run = primitive.execute(x=gw.asarray(x, device))
    run.outputs["count"].copy_from(np.array([3], dtype=np.uint32))
    assert mismatch(primitive, {"x": x}, {name: array.to_numpy() for name, array in run.outputs.items()}) is not None


def test_it_is_measured_and_checked_like_any_other(device):
    protocol = gw.SamplingProtocol(min_samples=3, timeout_s=0.1, warmup_s=0.0, max_warmup_s=0.01, check_unit=False)
    measured = gw.measure(Odd(device), x=np.arange(64, dtype=np.uint32), protocol=protocol)
    assert measured.correct


def test_given_outputs_have_room_for_the_most(device):
    x = gw.asarray(np.arange(10, dtype=np.uint32), device)
    room, count = gw.empty(12, "u32", device), gw.empty(1, "u32", device)
    run = Odd(device).execute(x=x, output=room, count=count)
    np.testing.assert_array_equal(run.output.to_numpy(), [1, 3, 5, 7, 9])
    assert run.output.count is count
    assert room.count is None, "the caller's array stays as it is"
    with pytest.raises(gw.LengthError, match="room for 5 items"):
        Odd(device).execute(x=x, output=room[:5])


def test_an_array_of_unknown_length_is_not_taken_for_a_whole_one(device):
    run = Odd(device).execute(x=gw.asarray(np.arange(10, dtype=np.uint32), device))
    assert gw.Reduce(device).execute(input=run.output).output.item() == 25
    with pytest.raises(gw.ArgumentError, match=r"trim\(\)"):
        run.output[1:]
    assert gw.Reduce(device).execute(input=run.output.trim()).output.item() == 25
    assert "at most 10 items" in repr(run.output)


def test_rules_that_refer_to_nothing_are_refused(device):
    class Wrong(Odd):
        arguments = (gw.Argument("x"), gw.Argument("output", is_output=True, length=gw.SameAs("y")))

    with pytest.raises(gw.ArgumentError, match="refers to 'y'"):
        Wrong(device).bind(x=gw.empty(1, "u32", device))
