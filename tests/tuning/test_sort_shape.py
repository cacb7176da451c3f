"""Shapes of the sort's kernels, without any GPU: they fit every device, and wishes are met or refused."""

import itertools
import re

import pytest

import gridwise_py as gw
from gridwise_py.tuning.sort_shapes import sort_shapes_for
from gridwise_py.types.capabilities import SubgroupMode

NATIVE, NONE, EMULATED = SubgroupMode("native", 32), SubgroupMode("none", 1), SubgroupMode("emulated", 64)
U32, U64 = gw.DATATYPES["u32"], gw.STORAGE_DATATYPES["u64"]
# A datatype of keys, and words of a value.
WORDS = {
    "keys": (U32, 0),
    "floats": (gw.DATATYPES["f32"], 0),
    "pairs": (U32, 1),
    "float pairs": (gw.DATATYPES["f32"], 1),
    "wide": (U64, 0),
    "wide pairs": (U64, 1),
    "wide values": (U32, 2),
}


def _caps(storage_bytes=49_152, invocations=1024, size_x=1024, adapter_type="DiscreteGPU"):
    return gw.Capabilities(
        limits={"max-compute-workgroup-storage-size": storage_bytes, "max-storage-buffer-binding-size": 2**31 - 4,
                "max-compute-invocations-per-workgroup": invocations, "max-compute-workgroup-size-x": size_x},
        adapter_type=adapter_type, features=frozenset({"subgroup", "shader-int64"}), subgroup_size=32,
    )  # fmt: skip


def _shape(*, mode=NATIVE, words="keys", n=1 << 22, caps=None, **tuning):
    return sort_shapes_for(caps or _caps(), mode, *WORDS[words], gw.SortTuning(**tuning)).at(n)


def _workgroup_bytes(shader, constants):
    """Return the workgroup memory that a text declares, all of it words of 4 or 8 bytes."""
    values = dict(constants)
    for name, expression in re.findall(r"^(?:const|override) (\w+): u32 = ([^;]+);", shader.text, re.MULTILINE):
        values.setdefault(
            name, eval(re.sub(r"\b(\d+|0x[0-9a-f]+)u\b", r"\1", expression).replace("/", "//"), {}, values)
        )
    aliases = dict(re.findall(r"^alias (\w+) = ([^;]+);", shader.text, re.MULTILINE))
    sizes = {"u32": 4, "atomic<u32>": 4, "u64": 8, "vec2<u32>": 8}
    found = 0
    for kind in re.findall(r"var<workgroup> \w+: ([^;]+);", shader.text):
        array = re.fullmatch(r"array<(.+), ([^,]+)>", kind)
        element, count = (array[1], eval(array[2], {}, values)) if array else (kind, 1)
        found += count * sizes[aliases.get(element, element)]
    return found


def test_kernels_fit_into_any_device():
    """Large workgroups with little memory, too, as some phones have them."""
    memories, workgroups = (16_384, 20_480, 24_576, 49_152), (256, 300, 512, 1024)
    # Each pair of a memory, a workgroup and a way of subgroups.
    for i, (storage_bytes, invocations) in enumerate(itertools.product(memories, workgroups)):
        mode = ("native", "none", "emulated-64")[(i + i // 4) % 3]
        for j, (key, value) in enumerate(itertools.product(["u32", "u64"], [None, "u32", "u64"])):
            adapter_type = ("IntegratedGPU", "CPU")[(i + i // 4 + j) % 2]
            caps = _caps(storage_bytes, invocations, 2048, adapter_type)
            if value is None:
                make, names, datatypes = gw.Sort, ("input", "output"), {"dtype": key}
            else:
                make, names = gw.SortPairs, ("keys", "values", "output_keys", "output_values")
                datatypes = {"dtype": key, "value_dtype": value}
            tuning = gw.SortTuning(subgroups=mode)
            plan = make.plan_for(capabilities=caps, lengths=dict.fromkeys(names, 1 << 22), tuning=tuning, **datatypes)
            for kernel in plan.kernels:
                used = _workgroup_bytes(plan.shaders[kernel.shader], kernel.constants)
                assert used <= storage_bytes, (kernel.label, datatypes, adapter_type)
                assert kernel.constants["WORKGROUP_SIZE"] <= invocations


def _rank(shape):
    return shape.workgroup_size, shape.items, shape.parts


def test_large_workgroups_only_where_there_is_memory_for_their_counters():
    assert _rank(_shape(caps=_caps(49_152))) == _rank(_shape(caps=_caps(24_576))) == (512, 20, 2)
    assert _rank(_shape(caps=_caps(16_384))) == (384, 16, 2)
    assert _rank(_shape(caps=_caps(16_384), mode=EMULATED)) == (256, 20, 2)
    assert _rank(_shape(caps=_caps(invocations=256))) == _rank(_shape(caps=_caps(size_x=300))) == (256, 20, 2)
    with pytest.raises(gw.ArgumentError, match=r"workgroups of 512 need more than .* 16384 bytes; use a smaller"):
        _shape(caps=_caps(16_384), workgroup_size=512)


@pytest.mark.parametrize(("words", "most"), [("keys", 22), ("pairs", 22), ("wide", 11), ("wide pairs", 11)])
def test_as_many_items_as_fit_and_no_more(words, most):
    """48 KiB less a word per bin, one per invocation and 16 single ones hold 22 words of each of 512 invocations."""
    assert (49_152 // 4 - 256 - 512 - 16) // 512 == 22
    assert _shape(words=words, items=most, parts=1).items == most
    assert _shape(words=words, items=3 * most, parts=3).stage_words == 512 * 22
    with pytest.raises(gw.ArgumentError, match=f"items={most + 1} .* parts=1 and at most {most}: more does not fit"):
        _shape(words=words, items=most + 1, parts=1)


def test_a_number_of_items_comes_with_parts_that_go_into_it():
    assert _rank(_shape(items=18)) == (512, 18, 2), "the usual parts"
    assert _rank(_shape(items=15)) == (512, 15, 1), "the fewest that fit"
    assert _rank(_shape(items=45)) == (512, 45, 3)
    assert _rank(_shape(parts=3)) == (512, 18, 3), "the usual items, cut to a multiple"
    assert _rank(_shape(items=1, workgroup_size=256)) == (256, 1, 1)
    for tuning in ({"items": 23}, {"items": 9, "parts": 2}):
        with pytest.raises(gw.ArgumentError, match="must be a multiple of parts="):
            _shape(**tuning)


@pytest.mark.parametrize(("workgroup_size", "mode"), [(1152, NATIVE), (384, SubgroupMode("native", 256))])
def test_workgroup_sizes_that_cannot_be(workgroup_size, mode):
    with pytest.raises(
        gw.ArgumentError, match=f"workgroup_size={workgroup_size} must be a multiple of 128, from 256 to"
    ):
        _shape(workgroup_size=workgroup_size, mode=mode)
    assert _shape(workgroup_size=1024, look=7, items=2).workgroup_size == 1024


def test_which_shape_is_used_for_how_many_keys():
    shapes = sort_shapes_for(_caps(), NATIVE, *WORDS["keys"])
    assert [_rank(shapes.at(n)) for n in (1, 1 << 20, (1 << 20) + 1)] == [(512, 8, 1), (512, 8, 1), (512, 20, 2)]
    assert shapes.source == "default"
    for words in WORDS:
        few, many = _shape(words=words, n=1 << 20), _shape(words=words, n=(1 << 20) + 1)
        assert (few, many) == (_shape(words=words, n=1), _shape(words=words, n=1 << 30))
        assert few.items < 0.6 * many.items, "a tile for each place on the GPU"
        assert few.parts == 1
        assert few.workgroup_size == many.workgroup_size == 512
    tuned = sort_shapes_for(_caps(), NATIVE, *WORDS["keys"], gw.SortTuning(look=5))
    assert [tuned.at(n).look for n in (1, 1 << 22)] == [5, 5]
    assert (tuned.source, len(tuned.rows)) == ("argument", 2), "how far it looks goes with any shape"
    for one in (gw.SortTuning(workgroup_size=256), gw.SortTuning(items=4), gw.SortTuning(parts=1)):
        assert len(sort_shapes_for(_caps(), NATIVE, *WORDS["keys"], one).rows) == 1
