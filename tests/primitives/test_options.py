"""Options by purpose: the tuning of each family, faults for tests, and constructors that submit nothing."""

import dataclasses
import inspect
import json

import numpy as np
import pytest

import gridwise_py as gw
from gridwise_py.bench.cases.case import Case
from gridwise_py.bench.cases.workloads import USUAL_AXES
from gridwise_py.runtime import lookback_selftest as lookback
from helpers import inside
from helpers.cases import CPU, FULL
from helpers.strategies import quick_first

TUNINGS = {
    "copy": gw.ElementwiseTuning(workgroup_size=64, vecs=2),
    "repeat": gw.ElementwiseTuning(workgroup_size=64, vecs=2),
    "reduce_axis": gw.AxisTuning(workgroup_size=64, vecs=2, team=8, strip=8, max_blocks=7, subgroups="emulated-8"),
    "map": gw.ElementwiseTuning(workgroup_size=64, vecs=2),
    "find_if": gw.ElementwiseTuning(workgroup_size=64, vecs=2),
    "search": gw.ElementwiseTuning(workgroup_size=32, vecs=2),
    "merge": gw.ElementwiseTuning(workgroup_size=32, vecs=5),
    "merge_sort": gw.ElementwiseTuning(workgroup_size=32, vecs=5),
    "top_k": gw.ElementwiseTuning(workgroup_size=32, vecs=4),
    "vector_add": gw.ElementwiseTuning(workgroup_size=128, vecs=2),
    "reduce": gw.ReduceTuning(
        workgroup_size=64, vecs=2, max_blocks=7, state="u32x2", spin_limit=9, subgroups="emulated-8"
    ),
    "scan": gw.ScanTuning(
        workgroup_size=64, vecs=2, max_blocks=7, look=3, tickets=True, state="u32x2", spin_limit=9, subgroups=False
    ),
    "sort": gw.SortTuning(
        workgroup_size=256, items=6, parts=3, look=4, tickets=True, spin_limit=9, subgroups="emulated-8"
    ),
    "segmented_sort": gw.SegmentedSortTuning(workgroup_size=256, items=6, window=400, subgroups="emulated-8"),
    "transpose": gw.ElementwiseTuning(workgroup_size=256, vecs=4),
    "matmul": gw.MatMulTuning(tile_m=32, tile_n=16, tile_k=8, thread_m=4, thread_n=4, stages=2, unroll=2),
}
TUNINGS |= dict.fromkeys(("sort_pairs", "argsort"), TUNINGS["sort"])
SEGMENTS = ("scan_by_key", "reduce_by_key", "segmented_scan", "segmented_reduce")
# On a GPU they take no subgroups by default.
TUNINGS |= dict.fromkeys(SEGMENTS, dataclasses.replace(TUNINGS["scan"], subgroups="emulated-8"))
TUNINGS |= dict.fromkeys(
    ("histogram", "reduce_by_index", "nth_element"),
    gw.HistogramTuning(workgroup_size=64, vecs=2, max_blocks=3, memory_words=1024, copies=2, merge="quad"),
)
# Of `items` the value that is not the default.
STREAMS = {"select": "late", "partition": "late", "unique": "held", "run_length": "held"}
TUNINGS |= {
    name: gw.StreamTuning(
        workgroup_size=64, vecs=2, stage=256, items=items, order="tile" if items == "late" else "subgroup", look=3,
        tickets=True, spin_limit=9, subgroups="emulated-8",
    )
    for name, items in STREAMS.items()
}  # fmt: skip


ROOMY = dataclasses.replace(
    FULL, limits={"max-compute-invocations-per-workgroup": 1024, "max-compute-workgroup-size-x": 1024,
                  "max-compute-workgroup-storage-size": 65_536},
)  # fmt: skip


def _plan(name, tuning=None, n=50_000, capabilities=ROOMY, **options):
    cls = gw.primitives.REGISTRY[name]
    sizes, inputs = cls.at_size(64 if name == "matmul" else n)
    options = ({"dtype": "f32"} if name in ("map", "matmul") else {}) | sizes | options
    signature = cls(None, capabilities=capabilities, **options).signature
    outputs = {output: signature.output_length(output, inputs) for output in signature.outputs}
    return cls.plan_for(capabilities=capabilities, lengths=inputs | outputs, tuning=tuning, **options)


# ---- the tuning of each family


def test_every_field_of_every_family_is_tried_here():
    assert TUNINGS.keys() == gw.primitives.REGISTRY.keys()
    for tuning in TUNINGS.values():
        assert all(getattr(tuning, field.name) is not None for field in dataclasses.fields(tuning)), tuning


#: Fields that a strategy of a scan, or an axis, has no use for.
UNUSED = {
    "lookback": {"max_blocks"}, "reduce_then_scan": {"look", "tickets", "state", "spin_limit"},
    "rows": {"strip"}, "columns": {"team"}, "nth_element": {"memory_words", "copies", "merge"},
}  # fmt: skip
FORMS = {name: ("lookback", "reduce_then_scan") for name in ("scan", *SEGMENTS)} | {"reduce_axis": ("rows", "columns")}


def _form(name, form):
    if name == "reduce_axis":
        return {"shape": (256, 2048), "axis": 1 if form == "rows" else 0}
    return {} if form is None else {"strategy": form}


@pytest.mark.parametrize(
    ("name", "form"), [(name, form) for name in gw.primitives.REGISTRY for form in FORMS.get(name, (None,))]
)
def test_every_field_changes_the_plan_and_none_leaves_it(name, form):
    tuning, options = TUNINGS[name], _form(name, form)
    assert _plan(name, type(tuning)(), **options) == _plan(name, **options)
    full = _plan(name, tuning, **options)
    for field in tuning.to_dict():
        without = _plan(name, dataclasses.replace(tuning, **{field: None}), **options)
        # A reduction of segments has blocks in either strategy, but the last one of few items polls their states.
        unused = {"look", "tickets"} if name == "segmented_reduce" else UNUSED.get(form or name, ())
        assert (without == full) == (field in unused), field


def test_a_tuning_survives_json():
    for name, tuning in {type(tuning): (name, tuning) for name, tuning in TUNINGS.items()}.values():
        data = json.loads(json.dumps(tuning.to_dict()))
        again = type(tuning).from_dict(data)
        assert again == tuning
        assert hash(again) == hash(tuning)
        assert _plan(name, again) == _plan(name, tuning)
        assert eval(f"gw.{tuning!r}") == tuning
        with pytest.raises(gw.ArgumentError, match=f"is not a {type(tuning).__name__}; its fields are"):
            type(tuning).from_dict(data | {"stall_every": 3})


@pytest.mark.parametrize("name", quick_first(["scan", "run_length", "merge"], gw.primitives.REGISTRY))
def test_results_stay_what_they_are(device, name):
    """In a shape, a form of subgroups and a way to wait that nobody would choose."""
    n = 33 if name == "matmul" else 12_345
    for strategy in ("lookback", "reduce_then_scan") if name == "scan" else (None,):
        case = Case.build(
            name, n, "f32" if name == "matmul" else "u32", **{**USUAL_AXES, "segment": "100", "bins": "100"}
        )
        options = case.options | ({} if strategy is None else {"strategy": strategy})
        primitive = gw.primitives.REGISTRY[name](device, tuning=TUNINGS[name], **options)
        inputs = case.inputs(primitive, seed=0)
        run = primitive.execute(**{key: gw.asarray(items, device) for key, items in inputs.items()})
        assert inside.mismatch(primitive, inputs, {key: array.to_numpy() for key, array in run.outputs.items()}) is None


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: gw.ScanTuning(workgroup_size=100), "workgroup_size=100 must be a power of two"),
        (lambda: gw.ElementwiseTuning(vecs=17), "vecs=17 must be from 1 to 16"),
        (lambda: gw.ReduceTuning(max_blocks=0), "max_blocks must be an integer of at least 1, not 0"),
        (lambda: gw.ReduceTuning(spin_limit=1 << 32), "spin_limit=4294967296 does not fit"),
        (lambda: gw.ScanTuning(look=0), "look=0 must be from 1 to 32"),
        (lambda: gw.ScanTuning(look=33), "look=33 must be from 1 to 32"),
        (lambda: gw.ScanTuning(tickets=1), "tickets=1 must be True, False or None"),
        (lambda: gw.ScanTuning(state="u16"), "state='u16' is unknown; known are u64, u32x2"),
        (lambda: gw.SortTuning(subgroups="emulated-3"), "subgroups='emulated-3' is unknown"),
        (lambda: gw.SortTuning(workgroup_size=128), "workgroup_size=128 must be a multiple of 128, and at least 256"),
        (lambda: gw.SortTuning(workgroup_size=300), "workgroup_size=300 must be a multiple of 128"),
        (lambda: gw.SortTuning(parts=0), "parts must be an integer of at least 1, not 0"),
        (lambda: gw.MatMulTuning(tile_k=3), "tile_k=3 must be a power of two from 4 to 64"),
    ],
)
def test_a_value_that_no_device_can_have_is_refused_without_one(make, message):
    with pytest.raises(gw.ArgumentError, match=message):
        make()


def test_a_value_that_this_device_cannot_have_is_refused_with_its_limit():
    with pytest.raises(gw.ArgumentError, match=r"512 must be a power of two of at most 256 \(max-compute-invocations"):
        gw.Scan(None, tuning=gw.ScanTuning(workgroup_size=512), capabilities=gw.Capabilities())
    with pytest.raises(gw.ArgumentError, match="subgroups=True, but the device of 'invented' has no feature"):
        gw.Sort(None, tuning=gw.SortTuning(subgroups=True), capabilities=gw.Capabilities())


def test_numpys_integers_become_pythons():
    tuning = gw.ScanTuning(workgroup_size=np.int64(64), vecs=np.uint8(2))
    assert json.dumps(tuning.to_dict()) == '{"workgroup_size": 64, "vecs": 2}'


def test_signatures_have_every_option_and_no_knob():
    for name, cls in gw.primitives.REGISTRY.items():
        parameters = inspect.signature(cls).parameters
        assert all(p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL) for p in parameters.values()), name
        assert {"tuning", "capabilities"} <= parameters.keys(), name
        knobs = {field.name for field in dataclasses.fields(type(TUNINGS[name]))}
        assert not (knobs | {"stall_every", "epoch_bits"}) & parameters.keys(), name
        text = inspect.getdoc(cls).split("See Also")[0]
        assert all(parameter in text for parameter in parameters), f"the docstring of {name} has them, too"


# ---- faults


@pytest.mark.parametrize("cls", [gw.Scan, gw.ScanByKey, gw.Sort, gw.SortPairs, gw.ArgSort])
def test_a_faulty_class_is_another_class_with_other_plans(cls):
    other = inside.faulty(cls, stall_every=3)
    lengths = {a.name: 100_000 for a in cls.arguments}
    plans = [each.plan_for(capabilities=FULL, lengths=lengths) for each in (cls, other, cls)]
    assert plans[0] == plans[2]
    assert plans[0] != plans[1]
    stalls = [{k.constants["STALL_EVERY"] for k in plan.kernels if "STALL_EVERY" in k.constants} for plan in plans]
    assert stalls == [{0}, {3}, {0}]
    assert cls._faults != other._faults
    assert other.__name__ == cls.__name__
    assert issubclass(other, cls)


def test_faults_do_not_reach_a_healthy_primitive_on_the_same_device(device):
    """Neither by the plans and scratch that a device keeps, nor by the primitives that functions keep."""
    x = np.random.default_rng(0).integers(0, 1 << 32, 20_001, dtype=np.uint32)
    array = gw.asarray(x, device)
    tuning = gw.ScanTuning(workgroup_size=64, vecs=1, state="u32x2", spin_limit=2, subgroups=False)

    def words(cls):
        run = cls(device, "u32", strategy="lookback", tuning=tuning).execute(input=array)
        np.testing.assert_array_equal(run.output.to_numpy(), np.cumsum(x, dtype=np.uint32))
        tiles = run.plan.parameters["tiles"]
        return inside.state_words(device, run.plan, tiles).any(axis=1)

    stalled, healthy, again = (
        words(inside.faulty(gw.Scan, stall_every=2)),
        words(gw.Scan),
        words(inside.faulty(gw.Scan)),
    )
    assert 0 < stalled.sum() < stalled.size
    assert healthy.all()
    assert again.all()
    np.testing.assert_array_equal(gw.cumsum(array, dtype=np.uint32).to_numpy(), np.cumsum(x, dtype=np.uint32))


def test_faults_that_nothing_can_have_are_refused():
    with pytest.raises(gw.ArgumentError, match="Copy has no kernel whose workgroups wait for each other"):
        inside.faulty(gw.Copy, stall_every=2)
    with pytest.raises(gw.ArgumentError, match="words of sorts always have 1"):
        inside.faulty(gw.Sort, epoch_bits=2)(None, capabilities=FULL)
    with pytest.raises(gw.ArgumentError, match="stall_every must be an integer of at least 0, not -1"):
        inside.faulty(gw.Scan, stall_every=-1)


# ---- constructors


def test_constructing_makes_nothing_on_the_device(fresh_device, tmp_path, monkeypatch):
    """Not even where the self-test decides the strategy, an operator must be checked, and the environment is wrong."""
    monkeypatch.setenv("GRIDWISE_CACHE_DIR", str(tmp_path))
    gpu = dataclasses.replace(gw.capabilities(fresh_device), adapter_type="DiscreteGPU")
    op = gw.BinOp("mine", 0, np.add, expression="a + b")
    calls = []
    for name in ("create_command_encoder", "create_shader_module", "create_buffer", "create_compute_pipeline"):
        monkeypatch.setattr(fresh_device, name, lambda *_, name=name, **__: calls.append(name))
    monkeypatch.setenv("GRIDWISE_SCAN_STRATEGY", "fastest")
    for name in gw.primitives.REGISTRY:
        Case.build(name, 8, "f32", **USUAL_AXES).make(fresh_device, gpu)
    scan = gw.Scan(fresh_device, "f32", op, capabilities=gpu)
    gw.Reduce(fresh_device, "f32", op, capabilities=gpu)
    assert calls == []
    assert list(tmp_path.iterdir()) == []
    assert inside.lookback_verdicts(fresh_device) == {}
    monkeypatch.undo()
    monkeypatch.setenv("GRIDWISE_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(lookback.LookbackProbe, "TILES", 512)
    monkeypatch.setattr(lookback.LookbackProbe, "DISPATCHES", 6)
    assert scan.strategy == "auto", "the environment counts when it is first asked"
    x = np.arange(1000, dtype=np.float32)
    run = scan.execute(input=gw.asarray(x, fresh_device))
    np.testing.assert_array_equal(run.output.to_numpy(), np.cumsum(x))
    assert inside.lookback_verdicts(fresh_device).keys() == {scan.state}, "now it was asked"


def test_the_strategy_that_is_said_before_the_first_plan_is_the_one_that_is_used(monkeypatch):
    lengths = {"input": 10_000, "output": 10_000}
    for capabilities in (FULL, CPU):
        for word in ("auto", "lookback", "reduce_then_scan"):
            monkeypatch.setenv("GRIDWISE_SCAN_STRATEGY", word)
            scan = gw.Scan(None, capabilities=capabilities)
            said = scan.strategy
            monkeypatch.setenv("GRIDWISE_SCAN_STRATEGY", "lookback" if word != "lookback" else "reduce_then_scan")
            used = scan.plan(gw.Layout.separate(**lengths)).parameters["strategy"]
            assert said == word
            assert used == word or (word == "auto" and scan.strategy == "auto")
