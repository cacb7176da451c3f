"""Workloads: the data that cases are measured on, the options of their primitives, and the checks of their results."""

import itertools
import json

import numpy as np
import pytest

import gridwise_py as gw
from gridwise_py.bench.cases.case import Case
from gridwise_py.bench.cases.mode import Mode
from gridwise_py.bench.cases.own_primitives import STRUCT_REDUCTIONS
from gridwise_py.bench.cases.workloads import USUAL_AXES, WORKLOADS
from gridwise_py.bench.checks.check import mismatch
from gridwise_py.bench.sampling.measure import measure_case
from gridwise_py.bench.sweep import worker
from gridwise_py.bench.sweep.axes import AXES, collect_axes
from gridwise_py.bench.sweep.suite import DEFAULT_AXES, Job, Sweep, plan_jobs
from helpers.cases import FULL

SHORT = gw.SamplingProtocol(
    batch_trials=1, warmup_s=0.0, max_warmup_s=0.01, timeout_s=1e-6, block_trials=2, check_unit=False
)


def _case(name, n=10_000, datatype="u32", **axes):
    return Case.build(name, n, datatype, **{**USUAL_AXES, "segment": "100", "bins": "100", **axes})


def _inputs(case, seed=0):
    return case.inputs(case.make(None, FULL), seed)


# ---- the data


def test_flags_have_the_share():
    for name, (share, least, most) in itertools.product(
        ("select", "partition"), (("0", 0, 0), ("0.01", 50, 160), ("0.5", 4800, 5200), ("1", 10_000, 10_000))
    ):
        flags = _inputs(_case(name, share=share))["flags"]
        assert flags.dtype == np.bool_
        assert least <= flags.sum() <= most


def test_keys_have_runs_of_the_mean_length_whatever_their_datatype():
    for name, datatype in itertools.product(("unique", "run_length"), ("u32", "f32", "f16", "u8", "bool", "i64")):
        keys = _inputs(_case(name, 100_000, datatype, run="20"))["keys"]
        assert keys.dtype == gw.STORAGE_DATATYPES[datatype].dtype
        assert 4000 < 1 + np.count_nonzero(keys[1:] != keys[:-1]) < 6000
        alone = _inputs(_case(name, 5000, datatype, run="1"))["keys"]
        assert (alone[1:] != alone[:-1]).all()


def test_segments_have_the_length_and_the_last_one_the_rest():
    for n in (0, 1, 99, 100, 101, 1050):
        inputs = _inputs(_case("segmented_reduce", n))
        assert inputs["items"].size == n
        np.testing.assert_array_equal(inputs["offsets"], [*range(0, n, 100), n])


def test_a_search_has_sorted_keys_and_the_queries_of_the_distribution():
    for distribution in ("uniform", "sorted"):
        inputs = _inputs(_case("search", distribution=distribution))
        assert (np.diff(inputs["sorted"].astype(np.int64)) >= 0).all()
        assert (np.diff(inputs["queries"].astype(np.int64)) >= 0).all() == (distribution == "sorted")


def test_the_same_seed_gives_the_same_data():
    for name in WORKLOADS:
        case = _case(name, 64, next(iter(WORKLOADS[name].datatypes)))
        one, other, third = _inputs(case), _inputs(case), _inputs(case, seed=1)
        assert all(one[k].tobytes() == other[k].tobytes() for k in one), name
        assert any(one[k].tobytes() != third[k].tobytes() for k in one), name


# ---- names and axes


def test_a_worker_gets_the_case_that_was_asked_for():
    for name in WORKLOADS:
        job = Job(Case.usual(name, 1000), Mode.HOT, position=3, round=1, process=2)
        assert worker._job_of(json.loads(json.dumps(worker._job_data(job)))) == job


def test_a_case_has_the_axes_that_its_time_depends_on():
    names = {"segment": "segmented_scan", "run": "unique", "share": "select", "along": "reduce_axis"}
    for axis, name in names.items():
        assert axis in dict(_case(name).others)
    assert str(_case("reduce_by_key", 1 << 20, run="1000")) == "reduce_by_key add u32 run=1000 n=2^20"
    assert str(_case("argmax", 5, "f32")) == "argmax f32 n=5"
    for name, workload in WORKLOADS.items():
        assert set(workload.axes) <= set(AXES), name
        assert set(workload.axes) <= set(DEFAULT_AXES), name


def test_an_axis_that_a_primitive_lacks_makes_no_further_case():
    axes = collect_axes(["n=5", "datatype=u32", "run=1,8", "share=0,1", "segment=2,4"], {}, DEFAULT_AXES)
    jobs = plan_jobs([Sweep(("scan", "unique", "segmented_reduce", "select"), axes)])
    assert [str(job) for job in jobs] == [
        "copy u32 n=5", "scan add u32 n=5",
        "unique u32 run=1 n=5", "unique u32 run=8 n=5",
        "segmented_reduce add u32 segment=2 n=5", "segmented_reduce add u32 segment=4 n=5",
        "select u32 share=0 n=5", "select u32 share=1 n=5",
    ]  # fmt: skip


# ---- checks


def _measure_right(device, name, datatype, n=5001):
    measured = measure_case(device, _case(name, n, datatype), SHORT, "latency")
    assert measured.error is None
    assert measured.correct, measured.mismatches
    return measured


def test_a_reduction_to_a_struct_is_measured_and_checked(device):
    assert _measure_right(device, "std", "f32").work["read_bytes"] == 4 * 5001


@pytest.mark.slow
@pytest.mark.parametrize("name", [*STRUCT_REDUCTIONS, "group_by"])
def test_results_of_several_values_are_measured_and_checked(device, name):
    for datatype in ("f32",) if name == "std" else ("u32", "f32"):
        _measure_right(device, name, datatype)


def test_a_wrong_reduction_to_a_struct_is_found():
    for name in STRUCT_REDUCTIONS:
        case = _case(name, 5001, "f32")
        primitive, inputs = case.make(None, FULL), _inputs(case)
        right = primitive.reference(**inputs)
        assert mismatch(primitive, inputs, {"output": right}) is None
        if name == "minmax":
            wrong = np.array([(right["max"][0], right["min"][0])], dtype=right.dtype)
        elif name == "argminmax":
            wrong = right.copy()
            wrong["argmax"] += 1
        elif name in ("argmin", "argmax"):
            wrong = right + np.uint32(1)
        else:
            wrong = right * np.float32(1.01) + np.float32(1e-4)
        assert mismatch(primitive, inputs, {"output": wrong}) is not None, name


def test_a_scatter_puts_each_item_in_a_place_of_its_own(device):
    case = _case("scatter", 3001)
    inputs = _inputs(case)
    assert sorted(inputs["indices"].tolist()) == list(range(3001))
    _measure_right(device, "scatter", "u32", 3001)
    primitive = case.make(None, FULL)
    wrong = inputs["items"][np.argsort(inputs["indices"])]
    assert mismatch(primitive, inputs, {"output": wrong}) is None
    wrong[7] += 1
    assert mismatch(primitive, inputs, {"output": wrong}).index == 7


def test_a_wrong_sum_of_a_group_is_found():
    case = _case("group_by", 3001, "f32")
    primitive, inputs = case.make(None, FULL), _inputs(case)
    right = dict(zip(primitive.signature.outputs, primitive.reference(**inputs), strict=True))
    assert mismatch(primitive, inputs, right | {"total": right["total"] * np.float32(1 + 1e-7)}) is None
    wrong = right["total"].copy()
    wrong[5] += np.float32(1e-3)
    assert mismatch(primitive, inputs, right | {"total": wrong}).index == 5


@pytest.mark.parametrize("name", ["scan_by_key", "reduce_by_key", "segmented_scan", "segmented_reduce", "reduce_axis"])
def test_sums_of_floats_in_groups_may_round_and_not_more(name):
    """By how much, the items of the group say: a group of small numbers beside one of large ones has a small bound."""
    case = _case(name, 1000, "f32", run="50")
    primitive, inputs = case.make(None, FULL), _inputs(case)
    items = inputs[primitive.grouped]
    items[items.size // 2 :] *= np.float32(1e6)
    right = primitive.reference(**inputs)
    outputs = dict(zip(primitive.signature.outputs, right if isinstance(right, tuple) else (right,), strict=True))
    results = next(output for output in reversed(outputs) if outputs[output].dtype == np.float32)

    def nudged(place, factor):
        changed = {key: array.copy() for key, array in outputs.items()}
        changed[results][place] += np.float32(factor) * np.abs(changed[results][place])
        return mismatch(primitive, inputs, changed)

    assert nudged(0, 0) is None
    for place in (0, -1):
        assert nudged(place, 2e-7) is None
        assert nudged(place, 1e-2) is not None
