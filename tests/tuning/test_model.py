"""Shapes by a model: an H200's are those that were measured, and all others run on their device; of the sort, too."""

import dataclasses
import itertools
import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gridwise_py as gw
from gridwise_py.bench.calibrate.residency import measure_facts, most_at_once
from gridwise_py.errors import ArgumentError
from gridwise_py.tuning.facts import DISCRETE, facts_of, measured_facts
from gridwise_py.tuning.matmul_shapes import matmul_shapes_for
from gridwise_py.tuning.model import KERNELS, code_counts, group_table_fields, scan_axis_parts
from gridwise_py.tuning.options import ElementwiseTuning, HistogramTuning, ReduceTuning, ScanTuning, StreamTuning
from gridwise_py.tuning.shapes import shapes_for
from gridwise_py.tuning.sort_shapes import segmented_sort_shape_for, sort_shapes_for
from gridwise_py.types.capabilities import SubgroupMode
from helpers.cases import FULL

# What was fastest on an H200 (benchmarks/results/h200, docs/contribute/performance.md): up to so many items, and the
# numbers of a shape in their order.
H200 = {
    "elementwise": [(None, 256, 1)],
    "reduce": [(1 << 22, 256, 4, 264), (None, 256, 4, 528)],
    "scan": [(None, 256, 4, 1056)],
    "scan_lookback": [(1 << 18, 512, 2), (1 << 22, 512, 4), (None, 256, 8)],
    "search": [(1 << 20, 256, 1), (None, 256, 4)],
    "transpose": [(None, 128, 2)],
    "merge": [(1 << 18, 256, 1), (None, 256, 3)],
    "merge_network": [(1 << 25, 256, 4), (None, 256, 16)],
    "top_k": [(None, 256, 8)],
    "by_key": [(1 << 18, 512, 2), (1 << 20, 512, 4), (None, 256, 8)],
    "segmented": [(1 << 18, 512, 2), (1 << 22, 512, 4), (None, 128, 8)],
    "segmented_reduce": [(1 << 22, 256, 4, 264), (None, 128, 8, 528)],
    "segmented_reduce_tiny": [(1 << 22, 256, 4, 264), (None, 256, 4, 792)],
    "segmented_reduce_medium": [(1 << 22, 256, 4, 264), (None, 256, 4, 528)],
    "histogram": [(1 << 20, 256, 2, 264), (None, 512, 4, 528)],
    "histogram_ranges": [(None, 1024, 4, 264)],
    "stream": [(1 << 18, 512, 2), (1 << 22, 512, 4), (None, 256, 8)],
    "stream_wide": [(1 << 18, 512, 2), (None, 512, 4)],
    "stream_flags": [(1 << 18, 512, 2), (1 << 22, 512, 4), (None, 256, 16)],
    "sort_keys": [(1 << 20, 512, 8, 1, 2), (None, 512, 20, 2, 3)],
    "sort_floats": [(1 << 20, 512, 8, 1, 2), (None, 512, 20, 2, 2)],
    "sort_pairs": [(1 << 20, 512, 8, 1, 2), (None, 512, 16, 2, 2)],
    "sort_computed_pairs": [(1 << 20, 512, 8, 1, 2), (None, 512, 14, 2, 2)],
    "sort_wide": [(1 << 20, 512, 4, 1, 2), (None, 512, 12, 3, 2)],
    "sort_wide_pairs": [(1 << 20, 512, 4, 1, 2), (None, 512, 10, 2, 2)],
    "segmented_sort": [(None, 512, 10)],
    "segmented_sort_wide": [(None, 512, 8)],
    "matmul": [(1 << 19, 32, 32, 16, 4, 4, 2, 8), (1 << 21, 64, 64, 16, 8, 4, 2, 8), (None, 128, 128, 16, 8, 8, 1, 16)],
    "axis_rows": [(None, 256, 4, 528)],
    "axis_columns": [(None, 256, 4, 4224)],
}
#: What `gridwise tune` measured on an H100, which has as many multiprocessors as an H200.
MEASURED = {"multiprocessors": 132, "storage_bytes": 1 << 16, "invocations": 2048}
SHAPED = (ElementwiseTuning, HistogramTuning, ReduceTuning, ScanTuning, StreamTuning)


@pytest.mark.parametrize("facts", [None, MEASURED], ids=["not measured", "measured"])
def test_the_model_says_what_was_measured_on_an_h200(facts):
    capabilities = dataclasses.replace(FULL, facts=facts)
    found = {
        kernel: [(up_to, *fields.values()) for up_to, fields in known.rows(capabilities)]
        for kernel, known in KERNELS.items()
    }
    assert found == H200
    assert scan_axis_parts(capabilities) == ((264, 1056), (1 << 15, 1 << 17)) == scan_axis_parts(None)
    assert group_table_fields(capabilities) == {"workgroup_size": 512, "vecs": 2, "max_blocks": 528}
    assert code_counts(_device(facts, 32, 1024, 49_152)) == (1 << 21, 1024, 4, 264)


def _device(facts, subgroup_size=32, invocations=256, storage_bytes=16_384, adapter_type="DiscreteGPU"):
    limits = {
        "max-compute-workgroup-storage-size": storage_bytes, "max-compute-invocations-per-workgroup": invocations,
        "max-compute-workgroup-size-x": invocations, "max-storage-buffer-binding-size": 2**31 - 4,
    }  # fmt: skip
    return gw.Capabilities(
        adapter_type=adapter_type, features=frozenset({"subgroup"}), subgroup_size=subgroup_size, limits=limits,
        facts=facts,
    )  # fmt: skip


DEVICES = st.builds(
    _device,
    st.none()
    | st.builds(
        lambda *values: dict(zip(MEASURED, values, strict=True)),
        st.integers(1, 400), st.sampled_from([1 << 14, 1 << 15, 1 << 16, 1 << 17]),
        st.sampled_from([256, 512, 768, 1024, 1536, 2048, 2560]),
    ),
    st.sampled_from([4, 8, 16, 32, 64, 128]), st.sampled_from([256, 384, 512, 1024]),
    st.sampled_from([16_384, 32_768, 49_152, 65_536]), st.sampled_from(["DiscreteGPU", "IntegratedGPU", "CPU"]),
)  # fmt: skip


@settings(max_examples=60)
@given(DEVICES)
def test_shapes_run_on_the_device_whose_facts_they_are_from(device):
    """Each constructor checks limits, and raises ArgumentError for a shape that is over one."""
    modes = [device.subgroup_mode(None), SubgroupMode("none", 1)]
    for mode, (kernel, known) in itertools.product(modes, KERNELS.items()):
        rows = KERNELS[kernel].rows(device)
        lengths = [up_to for up_to, _ in rows]
        assert lengths[-1] is None
        assert lengths[:-1] == sorted(set(lengths[:-1]))
        assert all(one != other for (_, one), (_, other) in itertools.pairwise(rows)), "each row is another pipeline"
        for _, fields in rows:
            assert tuple(fields) == known.fields
            known.family.from_dict(fields)
        if known.family in SHAPED:
            assert len(shapes_for(kernel, device, mode).rows) == len(rows)
    for mode, datatype, words in itertools.product(modes, ("u32", "f32", "u64"), (0, 1, 2)):
        sort_shapes_for(device, mode, gw.STORAGE_DATATYPES[datatype], words)
    for mode, words in itertools.product(modes, (1, 2)):
        segmented_sort_shape_for(device, mode, words, gw.SegmentedSortTuning())
    for _, shape in matmul_shapes_for(device).rows:
        assert shape.workgroup_size <= device.limits["max-compute-invocations-per-workgroup"]
        assert shape.storage_bytes <= device.limits["max-compute-workgroup-storage-size"]


def test_another_gpu_gets_other_shapes():
    """As many workgroups as its multiprocessors want, and no more workgroup memory than two of them share."""
    amd = _device(MEASURED | {"multiprocessors": 96}, 64, 1024, 65_536)
    apple = _device(
        {"multiprocessors": 10, "storage_bytes": 1 << 15, "invocations": 1024}, 32, 1024, 32_768, "IntegratedGPU"
    )
    for device, count in ((amd, 96), (apple, 10)):
        assert shapes_for("reduce", device).rows[-1][1].max_blocks == 4 * count
        assert shapes_for("scan_lookback", device).rows[0][0] <= 4096 * count, "these are few tiles for each"
        sort = sort_shapes_for(device, device.subgroup_mode(None), gw.DATATYPES["u32"], 0).rows[-1][1]
        assert 2 * 4 * sort.stage_words <= device.facts["storage_bytes"]
    assert facts_of(_device(None, adapter_type="IntegratedGPU")).multiprocessors < DISCRETE.multiprocessors


def test_facts_that_make_no_sense_are_left_out():
    assert measured_facts(MEASURED) == MEASURED
    spoilt = {"multiprocessors": 0, "storage_bytes": "64", "invocations": True, "registers": 65536, "other": 7}
    assert measured_facts(json.loads(json.dumps(spoilt))) == {"registers": 65536}
    assert measured_facts([]) is measured_facts({}) is measured_facts(None) is None
    assert facts_of(dataclasses.replace(FULL, facts={"multiprocessors": 20})) == dataclasses.replace(
        DISCRETE, multiprocessors=20
    )


@pytest.mark.parametrize("places", [1, 2, 3, 132, 1000])
def test_workgroups_at_once_are_counted_by_their_times(places):
    assert most_at_once(lambda workgroups: 100.0 * -(-workgroups // places)) == places
    assert most_at_once(lambda workgroups: 100.0, most=4096) is None
    assert most_at_once(lambda workgroups: None) is None


@pytest.mark.needs("timestamp-query")
def test_facts_are_measured(device):
    """On a CPU other work may hide some of them: those are left out."""
    found = measure_facts(device)
    assert measured_facts(found) == (found or None), "all of them known, and in bounds"


def test_candidates_are_near_and_none_is_the_shape_itself():
    for kernel, known in KERNELS.items():
        for _, fields in KERNELS[kernel].rows(FULL):
            found = list(KERNELS[kernel].near(fields))
            assert fields not in found
            assert len(found) > 4
            assert all(set(one) == set(known.fields) for one in found)
            differ = [sum(one[name] != fields[name] for name in fields) for one in found]
            assert set(differ) <= {1, 2}
            makes = 0
            for one in found:
                try:
                    known.family.from_dict(one)
                    makes += 1
                except ArgumentError:
                    pass
            assert makes > 4, kernel


# ---- the sort


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


#: Sums of three words are what reductions by key combine at most.
TRIPLE = gw.Struct("triple", a="u32", b="u32", c="u32")


def _caps(storage_bytes=49_152, invocations=1024, size_x=1024, adapter_type="DiscreteGPU"):
    return gw.Capabilities(
        limits={"max-compute-workgroup-storage-size": storage_bytes, "max-storage-buffer-binding-size": 2**31 - 4,
                "max-compute-invocations-per-workgroup": invocations, "max-compute-workgroup-size-x": size_x},
        adapter_type=adapter_type, features=frozenset({"subgroup", "shader-int64"}), subgroup_size=32,
    )  # fmt: skip


def _shape(*, mode=NATIVE, words="keys", n=1 << 22, caps=None, **tuning):
    return sort_shapes_for(caps or _caps(), mode, *WORDS[words], gw.SortTuning(**tuning)).at(n)


def _workgroup_bytes(shader, constants):
    """Return the workgroup memory that a text declares: words, vectors, and the result of a look-back."""
    values = dict(constants)
    for name, expression in re.findall(r"^(?:const|override) (\w+): u32 = ([^;]+);", shader.text, re.MULTILINE):
        values.setdefault(
            name, eval(re.sub(r"\b(\d+|0x[0-9a-f]+)u\b", r"\1", expression).replace("/", "//"), {}, values)
        )
    aliases = dict(re.findall(r"^alias (\w+) = ([^;]+);", shader.text, re.MULTILINE))
    sizes = {"u32": 4, "atomic<u32>": 4, "u64": 8, "vec2<u32>": 8, "vec3<u32>": 16, "vec4<u32>": 16, "LookBack": 32}
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
        for j, (key, value) in enumerate(itertools.product(["u32", "u64"], [None, "u32", "u64", TRIPLE])):
            adapter_type = ("IntegratedGPU", "CPU", "DiscreteGPU")[(i + i // 4 + j) % 3]
            caps = _caps(storage_bytes, invocations, 2048, adapter_type)
            datatypes, tuning = {"dtype": key, "value_dtype": value}, gw.SortTuning(subgroups=mode)
            make, names = gw.SortPairs, ("keys", "values", "output_keys", "output_values")
            if value is None:
                make, names, datatypes = gw.Sort, ("input", "output"), {"dtype": key}
            elif value is TRIPLE:
                if storage_bytes < 20_480:
                    continue
                make, names, tuning = gw.ReduceByKey, ("keys", "items", "output_keys", "output_values", "count"), None
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
    # Pairs with keys of 1 and 2 bytes take fewer.
    pairs = [sort_shapes_for(_caps(), NATIVE, gw.STORAGE_DATATYPES[name], 1).at(1 << 24) for name in ("u32", "u16")]
    assert [_rank(shape) for shape in pairs] == [(512, 16, 2), (512, 14, 2)]
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
