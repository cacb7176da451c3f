"""The table of shapes, what `gridwise tune` finds, where that is kept, and what uses it."""

import dataclasses
import itertools
import json

import numpy as np
import pytest
from click.testing import CliRunner

import gridwise_py as gw
from gridwise_py.bench.cases.mode import Mode
from gridwise_py.bench.checks.check import Mismatch, mismatch
from gridwise_py.bench.results.context import run_context
from gridwise_py.bench.sampling.interleave import random_arguments
from gridwise_py.bench.sampling.measurement import Measurement
from gridwise_py.bench.stats.series import Series
from gridwise_py.bench.sweep import tune as tune_module
from gridwise_py.bench.sweep.tune import TUNED_KERNELS, tune
from gridwise_py.cli import main
from gridwise_py.runtime.context import context_of
from gridwise_py.runtime.device import device_key
from gridwise_py.storage import cache
from gridwise_py.tuning import store as tuned
from gridwise_py.tuning.shapes import KERNELS, Shape, candidates_for, shape_of, shapes_for, tuning_of
from gridwise_py.tuning.store import load_tuning
from gridwise_py.types.capabilities import SubgroupMode
from helpers.cases import BARE, CPU, FULL
from helpers.strategies import shape_data

ROOMY = dataclasses.replace(
    FULL, limits={"max-compute-invocations-per-workgroup": 1024, "max-compute-workgroup-size-x": 1024}
)
KEY = {"adapter": "some GPU"}
LENGTHS = {"input": 1000, "output": 1}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("GRIDWISE_CACHE_DIR", str(tmp_path))
    monkeypatch.delenv("GRIDWISE_TUNING", raising=False)
    return tmp_path


def _keep(shapes, key=KEY):
    cache.save(tuned.TUNING_KIND, key, tuned.TUNING_FORMAT, {"shapes": shapes, "choices": []})


# ---- the table


def test_every_row_runs_on_every_device():
    modes = (None, SubgroupMode("native", 128), SubgroupMode("none", 1), SubgroupMode("emulated", 64))
    for capabilities, kernel, mode in itertools.product((BARE, FULL, ROOMY, CPU), KERNELS, modes):
        shapes = shapes_for(kernel, capabilities, mode)
        assert shapes.source == "default"
        lengths = [up_to for up_to, _ in shapes.rows]
        assert lengths[-1] is None
        assert lengths[:-1] == sorted(set(lengths[:-1]))
        for n in (1, 1 << 20, (1 << 20) + 1, 1 << 31):
            assert {shapes.at(n), *shapes.others(n)} == {shape for _, shape in shapes.rows}
            assert shapes.at(n) not in shapes.others(n)


def test_a_length_on_the_boundary_belongs_to_the_row():
    shapes = shapes_for("reduce", ROOMY)
    ((up_to, small), (_, large)) = shapes.rows
    assert small != large
    assert shapes.at(up_to) == small
    assert shapes.at(up_to + 1) == large


def test_candidates_are_those_that_a_device_can_run():
    for kernel in KERNELS:
        assert max(s.workgroup_size for s in candidates_for(kernel, BARE)) <= 256
        assert len(candidates_for(kernel, ROOMY)) > 3
        wide = candidates_for(kernel, ROOMY, SubgroupMode("native", 128))
        assert all(s.workgroup_size % 128 == 0 for s in wide)


# ---- what is kept, and who uses it


def test_what_was_tuned_is_used_and_said():
    tuned = dataclasses.replace(
        ROOMY,
        tuning={
            "reduce": [
                [500, shape_data(64, 2, 8)],
                [None, shape_data(128, 1, 4)],
            ]
        },
    )
    small = gw.Reduce.plan_for(capabilities=tuned, lengths={"input": 500, "output": 1}).parameters
    assert (small["workgroup_size"], small["vecs"], small["shape"]) == (64, 2, "tuned")
    large = gw.Reduce.plan_for(capabilities=tuned, lengths={"input": 501, "output": 1}).parameters
    assert (large["workgroup_size"], large["vecs"], large["shape"]) == (128, 1, "tuned")
    wished = gw.Reduce.plan_for(capabilities=tuned, lengths=LENGTHS, tuning=gw.ReduceTuning(vecs=3)).parameters
    assert (wished["vecs"], wished["shape"]) == (3, "argument")
    other = gw.VectorAdd.plan_for(capabilities=tuned, lengths={"a": 5, "b": 5, "output": 5}).parameters
    assert other["shape"] == "default"


def test_what_a_device_cannot_run_is_not_used():
    too_large = dataclasses.replace(BARE, tuning={"reduce": [[None, shape_data(1024, 4, 64)]]})
    assert gw.Reduce.plan_for(capabilities=too_large, lengths=LENGTHS).parameters["shape"] == "default"
    narrow = dataclasses.replace(FULL, tuning={"reduce": [[None, shape_data(16, 4, 64)]]})
    assert gw.Reduce.plan_for(capabilities=narrow, lengths=LENGTHS).parameters["shape"] == "default"
    no_subgroups = gw.Reduce.plan_for(capabilities=narrow, lengths=LENGTHS, tuning=gw.ReduceTuning(subgroups=False))
    assert no_subgroups.parameters["shape"] == "tuned"


def test_findings_of_an_earlier_format_are_ignored_and_replaced(renewed_device, folder, timed):
    """Format 1 had three numbers for a shape."""
    key = device_key(renewed_device)
    cache.save(tuned.TUNING_KIND, key, 1, {"shapes": {"reduce": [[None, [64, 2, 8]]]}, "choices": [5]})
    assert load_tuning(key) is None
    assert gw.capabilities(renewed_device).tuning is None
    shown = CliRunner().invoke(main, ["tune", "--show"])
    assert "nothing is stored" in shown.output, shown.output
    timed(1.0, 0.7)
    tune(renewed_device, ["reduce"], max_items=1000)
    assert load_tuning(key).keys() == {"reduce"}


def test_findings_are_tunings():
    for kernel in KERNELS:
        for up_to, shape in shapes_for(kernel, ROOMY).rows:
            data = json.loads(json.dumps(tuning_of(kernel, shape).to_dict()))
            assert shape_of(kernel, data) == shape
            assert shapes_for(kernel, ROOMY, tuning=tuning_of(kernel, shape)).rows == ((None, shape),), up_to


def test_a_file_that_makes_no_sense_is_ignored(folder):
    """Without workgroups, for one, every reduction would divide by zero."""
    good = shape_data(64, 2, 8)
    _keep({"reduce": [[100, good], [None, good]], "elementwise": [[None, shape_data(256, 1)]]})
    assert load_tuning(KEY).keys() == {"reduce", "elementwise"}
    for shapes in (
        None, [], {}, "x", {"sorting": [[None, good]]}, {"reduce": 5}, *({"reduce": rows} for rows in (
            [], [[None]], [[None, shape_data(64, 2)]], [[5, good]], [[9, good], [5, good], [None, good]],
            [[10**40, good], [None, good]], [[None, shape_data("a", 2, 8)]], [[None, shape_data(64, 2, True)]],
            [[None, shape_data(64, 4, 0)]], [[None, shape_data(64, 0, 8)]], [[None, shape_data(0, 4, 8)]],
            [[None, shape_data(64, 4, 10**30)]],
        )),
    ):  # fmt: skip
        _keep(shapes)
        assert load_tuning(KEY) is None, shapes


def test_the_variable_ignores_what_is_kept(folder, monkeypatch):
    _keep({"reduce": [[None, shape_data(64, 2, 8)]]})
    assert load_tuning(KEY) == {"reduce": ((None, shape_data(64, 2, 8)),)}
    monkeypatch.setenv("GRIDWISE_TUNING", "on")
    assert load_tuning(KEY) is not None
    monkeypatch.setenv("GRIDWISE_TUNING", "off")
    assert load_tuning(KEY) is None
    monkeypatch.setenv("GRIDWISE_TUNING", "never")
    with pytest.raises(gw.ArgumentError, match=r"GRIDWISE_TUNING='never'.*on, off"):
        load_tuning(KEY)


def test_a_new_device_finds_what_was_tuned(renewed_device, folder):
    _keep({"reduce": [[None, shape_data(64, 2, 8)]]}, device_key(renewed_device))
    context_of(renewed_device).forget("capabilities")
    x = np.arange(10_000, dtype=np.uint32)
    run = gw.Reduce(renewed_device).execute(input=gw.asarray(x, renewed_device))
    assert (run.plan.parameters["workgroup_size"], run.plan.parameters["shape"]) == (64, "tuned")
    assert run.output.to_numpy()[0] == x.sum()
    described = run_context(renewed_device)["device"]
    assert json.loads(json.dumps(described))["tuning"] == {"reduce": [[None, shape_data(64, 2, 8)]]}, (
        "as every results file says"
    )


# ---- the search


def _measurement(time_ns, wrong=False, seed=0):
    samples = time_ns * (1 + 0.005 * np.random.default_rng(seed).standard_normal(40))
    series = Series("gpu_span", tuple(samples), None)
    return Measurement(
        "reduce", Mode.BATCH, 1000, whole={"gpu_span": series}, mismatches=(Mismatch(0, 1, 2, 1),) if wrong else ()
    )


@pytest.fixture
def timed(monkeypatch):
    """Return a function that sets what each shape of each search takes; the first one is the table's own."""

    def set_times(*factors, wrong=()):
        def interleaved(primitives, arrays, *, rounds, **_):
            found = {}
            for i, name in enumerate(primitives):
                factor = factors[i] if i < len(factors) else 2.0
                found[name] = [_measurement(1e4 * factor, i in wrong, 100 * i + r) for r in range(rounds)]
            return found

        monkeypatch.setattr(tune_module, "interleaved", interleaved)

    return set_times


def test_the_fastest_wins_and_is_kept_and_used(renewed_device, folder, timed):
    timed(1.0, 0.9, 0.7, 0.8)
    steps = []
    rows = shapes_for("reduce", gw.capabilities(renewed_device)).rows
    (last,) = tune(renewed_device, ["reduce"], max_items=1000, progress=steps.append)
    assert len(steps) == 1 < len(rows), "the second row is for lengths that are not measured"
    assert (last.kernel, last.up_to, last.n, last.changed) == ("reduce", 1000, 1000, True)
    assert last.winner == last.trials[2].shape
    assert last.ratio == pytest.approx(0.7, rel=0.02)
    assert [t.verdict for t in last.trials[:4]] == ["default", "faster", "faster", "faster"]
    parameters = gw.Reduce(renewed_device).plan(gw.Layout.separate(**LENGTHS)).parameters
    assert parameters["shape"] == "tuned"
    again = renewed_device.adapter.request_device_sync(required_features=list(renewed_device.features))
    # What was not measured keeps the table's shapes.
    kept = [(1000, last.winner), *rows]
    assert gw.capabilities(again).tuning["reduce"] == tuple(
        (up_to, tuning_of("reduce", one).to_dict()) for up_to, one in kept
    )
    # A second search starts from the table, and a kernel that is not searched stays.
    timed(1.0)
    tune(renewed_device, ["elementwise"], max_items=1000)
    assert set(gw.capabilities(renewed_device).tuning) == {"reduce"}
    tune(renewed_device, ["reduce"], max_items=1000)
    assert gw.capabilities(renewed_device).tuning is None
    assert load_tuning(device_key(renewed_device)) is None


def test_spoilt_findings_of_another_kernel_are_not_used_after_a_search(renewed_device, folder, timed):
    timed(1.0, 0.7)
    for rows in (5, [], [[None, shape_data("a", 2, 8)]]):
        _keep({"scan": rows}, device_key(renewed_device))
        tune(renewed_device, ["reduce"], max_items=1000)
        assert set(gw.capabilities(renewed_device).tuning) == {"reduce"}
        scan = gw.Scan(renewed_device, strategy="reduce_then_scan")
        assert scan.plan(gw.Layout.separate(input=1000, output=1000)).parameters["shape"] == "default"


@pytest.mark.parametrize(("max_items", "up_to"), [(None, None), (1000, None), (999, 999)])
def test_a_winner_is_for_the_lengths_that_were_measured(renewed_device, folder, timed, monkeypatch, max_items, up_to):
    """The default size stands for all longer inputs; a smaller one that was asked for, for no longer ones."""
    for name in ("_LARGE_ITEMS", "_LARGE_ITEMS_CPU"):
        monkeypatch.setattr(tune_module, name, 1000)
    timed(1.0, 0.7)
    (choice,) = tune(renewed_device, ["elementwise"], max_items=max_items)
    assert (choice.up_to, choice.n, choice.changed) == (up_to, max_items or 1000, True)
    found = gw.capabilities(renewed_device).tuning["elementwise"]
    fields = [tuning_of("elementwise", shape).to_dict() for shape in (choice.winner, choice.trials[0].shape)]
    assert found[0] == (up_to, fields[0])
    assert found[1:] == (() if up_to is None else ((None, fields[1]),))


def test_noise_and_wrong_results_do_not_win(renewed_device, folder, timed):
    timed(1.0, 0.995, 0.5, wrong=(2,))
    (choice, *_) = tune(renewed_device, ["elementwise"], max_items=1000)
    assert not choice.changed
    assert choice.ratio == 1.0
    assert choice.trials[1].verdict in ("same", "ambiguous")
    assert (choice.trials[2].verdict, choice.trials[2].time_ns) == ("wrong", None)


def test_a_table_that_is_wrong_here_is_an_error_and_nothing_is_kept(renewed_device, folder, timed):
    timed(1.0, wrong=(0,))
    with pytest.raises(gw.ArgumentError, match=r"table's own shape.*item 0 is 1, expected 2"):
        tune(renewed_device, ["elementwise"], max_items=1000)
    assert list(folder.iterdir()) == []


def test_every_kernel_of_the_table_can_be_tuned(device):
    """And its primitive at that size uses the shapes of its row."""
    assert set(TUNED_KERNELS) == set(KERNELS)
    plain = dataclasses.replace(gw.capabilities(device), tuning=None)
    for kernel in KERNELS:
        shape = shapes_for(kernel, plain).at(70_000)
        primitive = tune_module.make_for(kernel, device, plain, shape, 70_000)
        lengths = primitive.at_size(70_000, **tune_module.axes_for(kernel))[1]
        for output in primitive.signature.outputs:
            length = primitive.signature.output_length(output, lengths)
            lengths = {**lengths, output: 70_000 if length is None else length}
        plan = primitive.plan(gw.Layout.separate(**lengths))
        found = json.dumps({kernel: [[None, tuning_of(kernel, shape).to_dict()]]})
        tuned_capabilities = dataclasses.replace(plain, tuning=tuned.findings_of(json.loads(found)))
        again = type(primitive)(device, capabilities=tuned_capabilities, **tune_module.options_for(kernel, 70_000))
        assert plan.parameters["shape"] == "argument", kernel
        assert again.plan(gw.Layout.separate(**lengths)).parameters["shape"] == "tuned", kernel


def test_unknown_kernels_are_refused(device):
    with pytest.raises(gw.ArgumentError, match=r"'sorting'.*elementwise"):
        tune(device, ["sorting"])


def test_a_wrong_candidate_is_found_by_its_result(renewed_device, folder, monkeypatch):
    """For real: a candidate that leaves out an item."""
    make = tune_module.make_for

    class _Off(gw.Reduce):
        def plan(self, layout):
            operand = layout["input"]
            return super().plan(gw.Layout({**layout, "input": dataclasses.replace(operand, length=operand.length - 1)}))

    def make_for(kernel, device, plain, shape, n):
        good = make(kernel, device, plain, shape, n)
        return _Off(device, capabilities=good.capabilities) if shape.workgroup_size == 32 else good

    monkeypatch.setattr(tune_module, "make_for", make_for)
    monkeypatch.setattr(tune_module, "candidates_for", lambda *_: (Shape(32, 1, 4), Shape(128, 1, 4)))
    protocol = gw.SamplingProtocol(samples=3, warmup_s=0.0, max_warmup_s=0.0, check_unit=False)
    for choice in tune(renewed_device, ["reduce"], rounds=3, protocol=protocol, max_items=3000):
        verdicts = {trial.shape.workgroup_size: trial.verdict for trial in choice.trials[1:]}
        assert verdicts[32] == "wrong"
        assert verdicts[128] != "wrong"


@pytest.mark.slow
@pytest.mark.parametrize("kernel", TUNED_KERNELS)
def test_every_candidate_gives_right_results_on_this_adapter(device, kernel):
    plain = dataclasses.replace(gw.capabilities(device), tuning=None)
    n = 70_001
    for shape in candidates_for(kernel, plain, plain.subgroup_mode(None)):
        primitive = tune_module.make_for(kernel, device, plain, shape, n)
        inputs, arrays = random_arguments(primitive, n, **tune_module.axes_for(kernel))
        run = primitive.execute(**arrays)
        assert run.plan.parameters["workgroup_size"] == shape.workgroup_size
        got = {name: array.to_numpy() for name, array in run.outputs.items()}
        assert mismatch(primitive, inputs, got) is None, str(shape)


@pytest.mark.gpu
def test_the_command(folder, timed, monkeypatch):
    timed(1.0, 0.7)
    runner = CliRunner()
    assert "nothing is stored" in runner.invoke(main, ["tune", "--show"]).output
    done = runner.invoke(main, ["tune", "--kernels", "reduce", "--max-n", "1000"])
    assert done.exit_code == 0, done.output
    assert "70." in done.output
    assert "tuned (reduce; gridwise tune --show)" in " ".join(runner.invoke(main, ["info"]).output.split())
    document = json.loads(runner.invoke(main, ["tune", "--show", "--format", "json"]).stdout)
    assert set(document["shapes"]) == {"reduce"}
    monkeypatch.setenv("GRIDWISE_TUNING", "off")
    assert "GRIDWISE_TUNING=off" in runner.invoke(main, ["tune", "--show"]).output
    assert "forgotten" in runner.invoke(main, ["tune", "--clear"]).output
    assert list(folder.glob("tuning-*")) == []
    assert runner.invoke(main, ["tune", "--show", "--clear"]).exit_code == 2
    assert runner.invoke(main, ["tune", "--kernels", "sorting"]).exit_code == 2
