"""Plans are plain data: made without any device, equal for equal input, and the same after JSON."""

import json
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gridwise_py as gw
from gridwise_py.planning.builder import PlanBuilder
from gridwise_py.planning.plan import (
    Binding,
    BufferSpec,
    Copy,
    Fill,
    Kernel,
    Plan,
    Shader,
    Work,
    pack_words,
    workgroup_grid,
)
from gridwise_py.planning.shaders import sha256
from helpers.cases import BARE, CPU, FULL, MATRICES, Case, cases, few_cases, layouts
from helpers.strategies import plan_from

SIZES = (1, 3, 4096, 100_003)
#: Lengths on both sides of everything that a primitive decides by them.
DISTANT = (1, 5, 4096, 100_000, 2**21 + 3, 2**24, 2**25 + 5)


class Planned(NamedTuple):
    """A plan, and what it was made of."""

    case: Case
    how: str
    n: int
    layout: gw.Layout
    plan: Plan

    def __str__(self) -> str:
        return f"{self.case}, {self.n} items, {self.how}"


@pytest.fixture(scope="module", params=["few", pytest.param("every", marks=pytest.mark.slow)])
def planned(request) -> list[Planned]:
    """Plans of every case in all ways of `layouts`; or of a few cases, each in one way and of two lengths."""
    found = []
    for number, case in enumerate([*cases(FULL), *cases(CPU)] if request.param == "every" else [
        *few_cases(), *few_cases(CPU)[::3]
    ]):  # fmt: skip
        for turn, n in enumerate(SIZES if request.param == "every" else (SIZES[number % 3], SIZES[-1]), number):
            ways = list(layouts(case, n))
            for how, layout in ways if request.param == "every" else [ways[turn % len(ways)]]:
                found.append(Planned(case, how, n, layout, case.plan(layout)))
    assert len({how for _, how, *_ in found}) == 5
    return found


def test_the_same_layout_gives_an_equal_plan(planned):
    """Whether another instance makes it, or one that planned others between."""
    for one in planned:
        instance = one.case.make(one.layout)
        instance.plan(next(layouts(one.case, one.n + 12_345))[1])
        assert instance.plan(gw.Layout(dict(one.layout))) == one.plan, str(one)


def _pipelines(plan):
    return {
        (k.shader, tuple(sorted(k.constants.items())), tuple((b.index, b.access) for b in k.bindings))
        for k in plan.kernels + plan.siblings
    }


@pytest.mark.parametrize("every", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_a_new_n_needs_no_new_pipeline(every):
    """Whatever the first n was: a plan brings those of the other lengths along."""
    for number, case in enumerate(few_cases() + few_cases(CPU)[::7]):
        # Of a search, the length decides about whole stages: samples. Of a transpose each n is another matrix, on whose
        # shape its kernel depends, as that of a product in tensor cores; and the best k of fewer items than k are
        # another primitive.
        if case.name in ("search", "transpose") or case.options.get("k", 0) >= 1024 or case.capabilities is MATRICES:
            continue
        sizes = DISTANT if every else DISTANT[number % 2 :: 2]
        ways = zip(*(layouts(case, n) for n in sizes), strict=False)
        for turn, way in enumerate(ways):
            if every or turn == number % 4:
                plans = [case.plan(layout) for _, layout in way]
                for plan in plans:
                    assert _pipelines(plan) == _pipelines(plans[0]), (str(case), way[0][0], plan.work.items)
                    assert set(plan.shaders) == {shader for shader, *_ in _pipelines(plan)}
                    assert all(sibling.workgroups == (0, 0, 0) for sibling in plan.siblings)


@pytest.mark.parametrize(("name", "kernel"), [("find_if", "top_k"), ("nth_element", "histogram")])
def test_shapes_that_were_tuned_for_some_lengths_come_along(name, kernel):
    tuned = {"workgroup_size": 64, "vecs": 4} | ({"max_blocks": 8} if kernel == "histogram" else {})
    case = Case(name, {}, replace(FULL, tuning={kernel: ((0, 1000, tuned),)}))
    small, large = (case.plan(gw.Layout.separate(**case.lengths(n))) for n in (500, 1 << 24))
    assert small.parameters["workgroup_size"] == 64 != large.parameters["workgroup_size"]
    assert _pipelines(small) == _pipelines(large)


def test_small_inputs_have_a_shape_of_their_own_where_the_table_says_so():
    roomy = {"max-compute-invocations-per-workgroup": 1024, "max-compute-workgroup-size-x": 1024}
    for name, options, siblings in (("reduce", {}, 1), ("scan", {"strategy": "lookback"}, 3)):
        case = Case(name, options, replace(FULL, limits=roomy))
        small, large = (case.plan(gw.Layout.separate(**case.lengths(n))) for n in (2**20, 2**24))
        if name == "scan":
            for field in ("workgroup_size", "look_back_window"):
                assert small.parameters[field] > large.parameters[field]
        else:
            assert small.kernels[0].workgroups < large.kernels[0].workgroups
        assert small.parameters["shape"] == large.parameters["shape"] == "default"
        assert len(small.siblings) == len(large.siblings) == siblings
        layout = gw.Layout.separate(**case.lengths(2**18))
        wished = Case(name, options | {"workgroup_size": 64}, FULL).plan(layout)
        assert len(wished.siblings) == siblings // 2  # the scan with another window
        assert wished.parameters["shape"] == "argument"
        # The table's shapes are cut to what a device allows.
        least = Case(name, options, BARE).plan(layout)
        assert least.parameters["workgroup_size"] == 256


def test_plans_are_consistent(planned):
    for one in planned:
        plan = one.plan
        for kernel in plan.kernels:
            assert [b.index for b in kernel.bindings] == list(range(len(kernel.bindings)))
            assert all(1 <= count <= 65_535 for count in kernel.workgroups)
            buffers = [b.buffer for b in kernel.bindings]
            assert len(set(buffers)) == len(buffers), f"{one}: one buffer in two bindings"
            text = plan.shaders[kernel.shader].text
            assert all(f"@group(0) @binding({binding.index})" in text for binding in kernel.bindings)
        for spec in plan.buffers:
            assert spec.size_bytes > 0
            assert spec.role in ("argument", "scratch", "params", "constant")
            assert spec.role == "argument" or spec.size_bytes % 4 == 0
            assert spec.role != "params" or spec.size_bytes % 16 == 0
            if spec.words is not None:
                assert len(spec.words) * 4 == spec.size_bytes
                assert all(0 <= word < 2**32 for word in spec.words)
        is_product = one.case.name == "matmul"
        assert plan.work.items == (sum(one.case.lengths(one.n)[name] for name in "ab") if is_product else one.n)
        assert plan.features == {feature for shader in plan.shaders.values() for feature in shader.features}
        assert plan.scratch_bytes == sum(b.size_bytes for b in plan.buffers if b.role != "argument")


def test_work_is_the_bytes_that_must_move():
    n = 1000

    def work(case: str, **options) -> Work:
        made = Case(case, options, FULL)
        return made.plan(gw.Layout.separate(**made.lengths(n))).work

    assert work("copy") == Work(n, 4 * n, 4 * n, 0)
    assert work("vector_add") == Work(n, 8 * n, 4 * n, n)
    assert work("reduce") == Work(n, 4 * n, 4, n - 1)
    assert work("scan") == Work(n, 4 * n, 4 * n, n - 1)
    assert work("vector_add").moved_bytes == 12 * n
    assert work("matmul", dtype="f16") == Work(2 * 31**2, 2 * 2 * 31**2, 2 * 31**2, 2 * 31**3)


def test_no_items_need_no_kernel():
    for case in few_cases():
        if case.name == "reduce" and not case.options["op"].empty:
            with pytest.raises(gw.EmptyReductionError):
                case.plan(gw.Layout.separate(**case.lengths(0)))
            continue
        plan = case.plan(gw.Layout.separate(**case.lengths(0)))
        # A copy moves whole words, of which a small result is only a part.
        is_part = case.name == "reduce" and case.item_bytes("output") < 4
        assert len(plan.kernels) == (1 if is_part else 0)


def test_without_features_plans_need_none():
    for name in ("copy", "vector_add", "reduce", "scan"):
        case = Case(name, {}, BARE)
        assert case.plan(gw.Layout.separate(**case.lengths(100_000))).features == frozenset()


def test_only_our_own_texts_have_no_checks(planned):
    for case, *_, plan in planned:
        own = "op" not in case.options or case.options["op"].builtin
        assert all((shader.shader_checks == "none") == own for shader in plan.shaders.values()), case


def test_choices_are_validated():
    lengths = {"input": 10, "output": 10}

    def refused(match, capabilities=FULL, cls=gw.Scan, **options):
        with pytest.raises(gw.ArgumentError, match=match):
            plan_from(cls, capabilities=capabilities, lengths=lengths, **options)

    refused("kind='both'.*inclusive, exclusive", kind="both")
    refused("strategy='fast'.*reduce_then_scan, lookback", strategy="fast")
    refused("state='u128'.*u64, u32x2", state="u128")
    refused("shader-int64", BARE, state="u64")
    refused("epoch_bits=31", epoch_bits=31)
    refused("epoch_bits=0", epoch_bits=0)
    refused("spin_limit must be an integer of at least 1, not 0", spin_limit=0)
    refused("emulated-N", subgroups="emulated-3")
    refused("vecs=0", vecs=0)
    refused("subgroups of 32", workgroup_size=16)
    refused("shader-f64.*float32", BARE, dtype="f64")
    refused("complex128.*complex64", dtype=np.complex128)
    refused("planning only, capabilities=", None)


def test_a_window_that_holds_no_tile_is_an_error_with_the_limits_name():
    tiny = replace(FULL, limits={"max-storage-buffer-binding-size": 1024})
    for name in ("copy", "vector_add", "reduce", "scan"):
        case = Case(name, {}, tiny)
        with pytest.raises(gw.LimitError, match=r"2000 items.*binding-size is 1024 bytes.*workgroup_size="):
            case.plan(gw.Layout.separate(**case.lengths(2000)))


@pytest.mark.parametrize("limit", [1, 2, 7, 100, 65_535])
@given(data=st.data())
def test_workgroup_grid(limit, data):
    count = data.draw(st.integers(1, limit**3))
    grid = workgroup_grid(count, limit)
    x, y, z = grid
    assert all(1 <= side <= limit for side in grid)
    assert x * y * z >= count
    # Idle workgroups are few, so that a plan does not launch twice the work.
    assert x * y * z - count < y * z, "the surplus is less than one item per row"
    if count <= limit:
        assert grid == (count, 1, 1)


@given(limit=st.integers(1, 70_000), more=st.integers(1, 10**6))
def test_workgroup_grid_refuses_what_does_not_fit(limit, more):
    with pytest.raises(ValueError, match=str(limit)):
        workgroup_grid(limit**3 + more, limit)
    assert workgroup_grid(limit**3, limit) == (limit, limit, limit)


@given(st.lists(st.integers(-(2**31), 2**32 - 1), max_size=9))
def test_params_are_words_padded_to_16_bytes(values):
    words = pack_words({f"p{k}": value for k, value in enumerate(values)})
    assert len(words) % 4 == 0
    assert len(words) - len(values) < 4
    assert all(0 <= word < 2**32 for word in words)
    assert [word & 0xFFFFFFFF for word in values] == list(words[: len(values)])


@pytest.mark.parametrize("value", [1 << 32, (1 << 32) + 4, -(1 << 31) - 1])
def test_a_parameter_that_32_bits_do_not_hold_is_refused(value):
    with pytest.raises(gw.LimitError, match=f"'length' of a kernel is {value}, which 32 bits"):
        pack_words({"n": 7, "length": value})


_names = st.sampled_from(["a", "b", "c"])
_counts = st.integers(0, 2**40)


@st.composite
def _any_plan(draw) -> Plan:
    text = draw(st.text(max_size=50))
    kernel = st.builds(
        Kernel,
        label=st.text(max_size=5),
        shader=st.just(sha256(text)),
        bindings=st.lists(
            st.builds(Binding, st.integers(0, 9), _names, st.sampled_from(["uniform", "read", "read_write"])),
            max_size=3,
        ).map(tuple),
        workgroups=st.tuples(_counts, _counts, _counts),
        constants=st.dictionaries(
            st.text(max_size=3), st.integers() | st.floats(allow_nan=False, allow_infinity=False)
        ),
    )
    step = kernel | st.builds(Fill, _names, _counts, _counts)
    step |= st.builds(Copy, _names, _counts, _names, _counts, _counts)
    words = st.none() | st.lists(st.integers(0, 2**32 - 1), max_size=4).map(tuple)
    return Plan(
        draw(st.text(max_size=5)),
        tuple(
            BufferSpec(name, draw(st.sampled_from(["argument", "scratch"])), draw(_counts), draw(words))
            for name in "abc"
        ),
        tuple(draw(st.lists(step, max_size=4))),
        {sha256(text): Shader(text, draw(st.booleans()), draw(st.sampled_from([(), ("subgroup",)])))},
        Work(draw(_counts), draw(_counts), draw(_counts)),
        draw(st.dictionaries(st.text(max_size=3), st.integers() | st.text() | st.none() | st.booleans(), max_size=3)),
    )


@settings(max_examples=60)
@given(_any_plan())
def test_any_plan_survives_json(plan):
    text = plan.to_json()
    again = Plan.from_json(text)
    assert again == plan.with_checks("all")
    assert hash(again) == hash(plan)
    assert again.to_json() == text
    assert json.loads(plan.to_json(indent=1)) == json.loads(text)


def test_a_plan_checks_itself():
    work = Work(1, 4, 4)
    spec = BufferSpec("a", "argument", 16)
    with pytest.raises(ValueError, match="not unique"):
        Plan("p", (spec, spec), (), {}, work)
    with pytest.raises(ValueError, match="uses buffer 'b'"):
        Plan("p", (spec,), (Fill("b", 0, 4),), {}, work)
    with pytest.raises(ValueError, match="uses buffer 'b'"):
        Plan("p", (spec,), (Copy("a", 0, "b", 0, 4),), {}, work)
    with pytest.raises(ValueError, match="has no shader"):
        Plan("p", (spec,), (Kernel("k", "00", (Binding(0, "a", "read"),), (1, 1, 1)),), {}, work)


def test_a_plan_cannot_be_changed():
    plan = Case("scan", {}, FULL).plan(gw.Layout.separate(input=10, output=10))
    with pytest.raises(TypeError):
        plan.parameters["strategy"] = "other"
    with pytest.raises(TypeError):
        plan.shaders["x"] = None
    with pytest.raises(AttributeError):
        plan.work = None


def test_not_a_number_does_not_get_into_json():
    plan = Plan("p", (), (), {}, Work(1, 1, 1), {"x": float("nan")})
    with pytest.raises(ValueError, match="JSON"):
        plan.to_json()


def test_a_users_kernel_survives_json_too():
    wgsl = (
        "override K: f32 = 1.0;\n@group(0) @binding(0) var<storage, read_write> y: array<u32>;\n"
        "@compute @workgroup_size(1) fn main() { y[0] = 1u; }"
    )
    plan = gw.Kernel.plan_for(
        capabilities=BARE,
        lengths={"y": 5},
        wgsl=wgsl,
        bindings={"y": "read_write"},
        workgroups=lambda lengths: (lengths["y"], 2),
        constants={"K": 1.5},
    )
    assert plan.kernels[0].workgroups == (5, 2, 1)
    assert Plan.from_json(plan.to_json()) == plan.with_checks("all")


def test_layouts_are_values():
    a = gw.Layout.separate(input=5, output=7)
    b = gw.Layout.separate(input=5, output=7)
    assert a == b
    assert hash(a) == hash(b)
    assert a != gw.Layout.separate(input=5, output=8)
    assert list(a) == ["input", "output"]
    assert a["input"].size_bytes == 32
    assert not a.shares("input", "output")
    assert "input" in repr(a)


def test_temporary_memory_has_room_for_every_kernel(monkeypatch):
    """Kernels that inputs of other lengths need are planned along, and may need less of it."""
    asked: dict[str, int] = {}
    scratch = PlanBuilder.scratch

    def remembered(self, name, items, item_bytes=4, **options):
        operand = scratch(self, name, items, item_bytes, **options)
        asked[operand.buffer] = max(asked.get(operand.buffer, 0), items * item_bytes)
        return operand

    monkeypatch.setattr(PlanBuilder, "scratch", remembered)
    several = [Case("merge_sort", {"dtype": dtype}, FULL) for dtype in ("u32", "u64")]
    for case in [*few_cases(), *several]:
        for n in (3000, 300_000):
            asked.clear()
            plan = case.plan(gw.Layout.separate(**case.lengths(n)))
            room = {each.name: each.size_bytes for each in plan.buffers}
            short = {name: (need, room[name]) for name, need in asked.items() if name in room and room[name] < need}
            assert not short, f"{case}, {n} items: {short}"


def test_capabilities_are_json_data():
    data = FULL.to_dict()
    assert json.loads(json.dumps(data)) == data
    assert replace(FULL, limits={"max-buffer-size": 5}).limits["max-storage-buffers-per-shader-stage"] == 8
    assert hash(replace(FULL)) == hash(FULL)
    assert CPU.is_cpu
    assert not FULL.is_cpu


def test_work_without_operators_has_no_flops():
    """As that of copies and sorts: a rate of operations must not come out of it."""
    work = gw.Work(items=3, read_bytes=12, write_bytes=24)
    assert (work.flops, work.moved_bytes) == (0, 36)
    assert gw.Copy.plan_for(capabilities=gw.Capabilities(), lengths={"input": 5, "output": 5}).work.flops == 0


@pytest.mark.parametrize("text", ["", "[]", "{}", "[" * 100_000, '{"shaders": {}, "buffers": [{}], "steps": [null]}'])
def test_a_text_that_is_no_plan_is_an_argument_error(text):
    with pytest.raises(gw.ArgumentError, match=r"this text is no plan \(.*\); write one by gw\.Plan\.to_json\(\)"):
        Plan.from_json(text)
