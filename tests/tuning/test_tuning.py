"""What `gridwise tune` finds, where that is kept, and what uses it."""

import dataclasses
import itertools
import json
import re

import numpy as np
import pytest
from click.testing import CliRunner

import gridwise_py as gw
from gridwise_py.bench.checks.check import differences
from gridwise_py.bench.results.context import run_context
from gridwise_py.bench.sampling.machine_load import LoadWatch
from gridwise_py.bench.sweep import contest as contest_module
from gridwise_py.bench.sweep import tune as tune_module
from gridwise_py.bench.sweep.tune import tune
from gridwise_py.cli import main
from gridwise_py.internals import Oracle
from gridwise_py.runtime.context import context_of
from gridwise_py.runtime.device import device_key
from gridwise_py.storage import cache
from gridwise_py.tuning import store as tuned
from gridwise_py.tuning.facts import measured_facts
from gridwise_py.tuning.model import KERNELS
from gridwise_py.tuning.shapes import shapes_for
from gridwise_py.tuning.store import TuningStore
from helpers.bare import device_with
from helpers.cases import BARE, FULL
from helpers.strategies import shape_data

ROOMY = dataclasses.replace(
    FULL, limits={"max-compute-invocations-per-workgroup": 1024, "max-compute-workgroup-size-x": 1024}
)
KEY = {"adapter": "some GPU"}
LENGTHS = {"input": 1000, "output": 1}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A cache without findings, and no findings of the package for the adapter at hand."""
    monkeypatch.setenv("GRIDWISE_CACHE_DIR", str(tmp_path))
    monkeypatch.delenv("GRIDWISE_TUNING", raising=False)
    monkeypatch.setattr(tuned, "_DATA", tmp_path / "data")
    tuned._data.cache_clear()
    yield tmp_path
    tuned._data.cache_clear()


def _keep(shapes, key=KEY):
    cache.save(tuned.TUNING_KIND, key, tuned.TUNING_FORMAT, {"shapes": shapes, "choices": []})


# ---- what is kept, and who uses it


def test_what_was_tuned_is_used_and_said():
    tuned = dataclasses.replace(
        ROOMY,
        tuning={
            "reduce": [
                [100, 500, shape_data(64, 2, 8)],
                [500, 900, shape_data(128, 1, 4)],
            ]
        },
    )
    small = gw.Reduce.plan_for(capabilities=tuned, lengths={"input": 500, "output": 1}).parameters
    assert (small["workgroup_size"], small["vecs"], small["shape"]) == (64, 2, "tuned")
    large = gw.Reduce.plan_for(capabilities=tuned, lengths={"input": 501, "output": 1}).parameters
    assert (large["workgroup_size"], large["vecs"], large["shape"]) == (128, 1, "tuned")
    for n in (100, 901):  # not measured
        usual = gw.Reduce.plan_for(capabilities=ROOMY, lengths={"input": n, "output": 1})
        assert gw.Reduce.plan_for(capabilities=tuned, lengths={"input": n, "output": 1}).parameters == usual.parameters
    wished = gw.Reduce.plan_for(capabilities=tuned, lengths=LENGTHS, tuning=gw.ReduceTuning(vecs=3)).parameters
    assert (wished["vecs"], wished["shape"]) == (3, "argument")
    other = gw.VectorAdd.plan_for(capabilities=tuned, lengths={"a": 5, "b": 5, "output": 5}).parameters
    assert other["shape"] == "default"


def test_what_a_device_cannot_run_is_not_used():
    too_large = dataclasses.replace(BARE, tuning={"reduce": [[0, 9999, shape_data(1024, 4, 64)]]})
    assert gw.Reduce.plan_for(capabilities=too_large, lengths=LENGTHS).parameters["shape"] == "default"
    narrow = dataclasses.replace(FULL, tuning={"reduce": [[0, 9999, shape_data(16, 4, 64)]]})
    assert gw.Reduce.plan_for(capabilities=narrow, lengths=LENGTHS).parameters["shape"] == "default"
    no_subgroups = gw.Reduce.plan_for(capabilities=narrow, lengths=LENGTHS, tuning=gw.ReduceTuning(subgroups=False))
    assert no_subgroups.parameters["shape"] == "tuned"


@pytest.mark.parametrize(
    ("kernel", "fields", "plan"),
    [
        ("sort_keys", {"workgroup_size": 256, "items": 6, "parts": 2, "look": 1},
         lambda c, n: gw.Sort.plan_for(capabilities=c, lengths={"input": n, "output": n})),
        ("segmented_sort", {"workgroup_size": 256, "items": 6},
         lambda c, n: gw.SegmentedSort.plan_for(
             capabilities=c, lengths={"keys": n, "offsets": 9, "output_keys": n})),
        ("axis_rows", {"workgroup_size": 128, "vecs": 2, "max_blocks": 7},
         lambda c, n: gw.ReduceAxis.plan_for(
             capabilities=c, lengths={"input": n, "output": n // 500}, shape=(n // 500, 500), axis=1)),
        ("matmul", {"tile_m": 32, "tile_n": 32, "tile_k": 8, "thread_m": 4, "thread_n": 4, "stages": 1, "unroll": 8},
         lambda c, n: gw.MatMul.plan_for(capabilities=c, lengths=dict.fromkeys(("a", "b", "output"), n),
                                         m=n // 100, n=100, k=100)),
    ],
)  # fmt: skip
def test_sorts_and_matrices_use_what_was_tuned_too(kernel, fields, plan):
    def kernels(n, shape):
        found = plan(dataclasses.replace(ROOMY, tuning={kernel: [[9999, 10_000, shape]]}), n)
        return found.kernels

    usual = {n: plan(ROOMY, n).kernels for n in (10_000, 10_500)}
    assert kernels(10_000, fields) != usual[10_000]
    assert kernels(10_500, fields) == usual[10_500]
    if kernel != "axis_rows":  # whose sizes are cut to the limits
        size = "tile_m" if kernel == "matmul" else "workgroup_size"
        assert kernels(10_000, fields | {size: 1 << 14}) == usual[10_000]


def test_a_file_that_makes_no_sense_is_ignored(folder):
    """Without workgroups, for one, every reduction would divide by zero."""
    good = shape_data(64, 2, 8)
    _keep({"reduce": [[0, 100, good], [200, 300, good]], "elementwise": [[0, 9, shape_data(256, 1)]]})
    assert TuningStore(KEY).findings().keys() == {"reduce", "elementwise"}
    for shapes in (
        None, [], {}, "x", {"sorting": [[0, 9, good]]}, {"reduce": 5}, *({"reduce": ranges} for ranges in (
            [], [[0, 9]], [[0, 9, shape_data(64, 2)]], [[0, None, good]], [[9, 5, good]], [[5, 5, good]],
            [[5, 9, good], [0, 5, good]], [[0, 9, good], [5, 12, good]], [[0, 10**40, good]], [[-1, 9, good]],
            [[0, True, good]], [[0, 9, shape_data("a", 2, 8)]], [[0, 9, shape_data(64, 2, True)]],
            [[0, 9, shape_data(64, 4, 0)]], [[0, 9, shape_data(64, 0, 8)]], [[0, 9, shape_data(0, 4, 8)]],
            [[0, 9, shape_data(64, 4, 10**30)]], [[0, 9, None]], [[0, 9, good | {"look": 2}]],
        )),
    ):  # fmt: skip
        _keep(shapes)
        assert TuningStore(KEY).findings() is None, shapes


def test_the_variable_ignores_what_is_kept(folder, monkeypatch):
    _keep({"reduce": [[0, 9, shape_data(64, 2, 8)]]})
    TuningStore(KEY).keep_facts({"multiprocessors": 7})
    for word, used in (("on", True), ("off", False)):
        monkeypatch.setenv("GRIDWISE_TUNING", word)
        assert TuningStore(KEY).findings() == ({"reduce": ((0, 9, shape_data(64, 2, 8)),)} if used else None)
        assert TuningStore(KEY).facts() == ({"multiprocessors": 7} if used else None)
    monkeypatch.setenv("GRIDWISE_TUNING", "never")
    with pytest.raises(gw.ArgumentError, match=r"GRIDWISE_TUNING='never'.*on, off"):
        TuningStore(KEY).findings()


def test_a_new_device_finds_what_was_tuned(renewed_device, folder):
    _keep({"reduce": [[0, 10_000, shape_data(64, 2, 8)]]}, device_key(renewed_device))
    context_of(renewed_device).forget("capabilities")
    x = np.arange(10_000, dtype=np.uint32)
    run = gw.Reduce(renewed_device).execute(input=gw.asarray(x, renewed_device))
    assert (run.plan.parameters["workgroup_size"], run.plan.parameters["shape"]) == (64, "tuned")
    assert run.output.to_numpy()[0] == x.sum()
    described = run_context(renewed_device)["device"]
    assert json.loads(json.dumps(described))["tuning"] == {"reduce": [[0, 10_000, shape_data(64, 2, 8)]]}, (
        "as every results file says"
    )


def test_what_the_package_has_for_an_adapter_holds_for_its_name_and_vendor(folder):
    file = {
        "format": 3, "device": {"adapter": "some GPU", "vendor": "V"}, "facts": {"multiprocessors": 50},
        "shapes": {"reduce": [[0, 100, shape_data(64, 2, 8)], [200, 300, shape_data(64, 2, 9)]]},
    }  # fmt: skip
    data = folder / "data"
    data.mkdir()
    (data / "some.json").write_text(json.dumps(file))
    ours, others = {"adapter": "some GPU", "vendor": "V"}, {"adapter": "some GPU", "vendor": "W"}
    assert TuningStore(others).findings() is None
    assert TuningStore(others).facts() is None
    assert TuningStore(ours).facts() == {"multiprocessors": 50}
    # This machine's own win where both have something.
    _keep({"reduce": [[50, 250, shape_data(128, 2, 8)]]}, ours)
    TuningStore(ours).keep_facts({"multiprocessors": 51})
    assert TuningStore(ours).facts() == {"multiprocessors": 51}
    # Also the model's shape, where that was the fastest here.
    choice = {"kernel": "reduce", "above": 50, "up_to": 250, "winner": shape_data(128, 2, 8), "changed": False,
              "trials": []}  # fmt: skip
    TuningStore(ours).keep([choice], None)
    shapes = shapes_for("reduce", dataclasses.replace(ROOMY, tuning=TuningStore(ours).findings()))
    found = [(shapes.at(n).workgroup_size, shapes.at(n).max_blocks) for n in (50, 51, 250, 251, 300)]
    assert found == [(64, 8), (128, 8), (128, 8), (64, 9), (64, 9)]
    assert shapes.source_of(shapes.at(301)) == "default"


def test_the_files_of_the_package_are_as_a_search_writes_them():
    tuned._data.cache_clear()
    for (adapter, vendor), file in tuned._data().items():
        assert adapter
        assert vendor
        assert {"date", "facts", "shapes", "device"} <= set(file)
        assert file["device"]["driver"]
        assert set(tuned.findings_of(file["shapes"])) == set(file["shapes"]), "no range is spoilt"
        assert measured_facts(file["facts"]) == file["facts"]


# ---- the search


@pytest.fixture
def timed(monkeypatch):
    """Return a function that sets what each shape of each search takes; the first one is the model's own."""

    def set_times(*factors, again=None, on_cpu=False):
        seeds = itertools.count()

        class Turns:
            def __init__(self, *_):
                self.calls, self.on_cpu = 0, on_cpu

            def warm_up(self, calls, seconds):
                del seconds
                self.calls = len(calls)

            def round(self, calls):
                noise = np.random.default_rng(next(seeds))
                known = factors if again is None or self.calls != 2 else again
                return {
                    key: tuple(1e4 * (known[key] if key < len(known) else 2.0) * (1 + 0.003 * noise.standard_normal(3)))
                    for key in calls
                }

        monkeypatch.setattr(tune_module, "Turns", Turns)
        monkeypatch.setattr(tune_module, "_MOST_CANDIDATES", max(2, len(factors) - 1))

    return set_times


def test_the_fastest_wins_and_is_kept_and_used(renewed_device, folder, timed):
    timed(1.0, 0.9, 0.7, 0.8)
    steps = []
    (last,) = tune(renewed_device, ["reduce"], max_items=1000, progress=steps.append)
    assert [step for step in steps if "items" in step] == ["reduce, 1,000 items"], "other lengths are not measured"
    assert (last.kernel, last.above, last.up_to, last.n, last.changed) == ("reduce", 0, 1000, 1000, True)
    assert last.winner == last.trials[2].shape
    assert last.ratio == pytest.approx(0.7, rel=0.02)
    assert [t.verdict for t in last.trials[:4]] == ["default", "faster", "faster", "faster"]
    parameters = gw.Reduce(renewed_device).plan(gw.Layout.separate(**LENGTHS)).parameters
    assert parameters["shape"] == "tuned"
    again = device_with(renewed_device, *renewed_device.features)
    assert gw.capabilities(again).tuning["reduce"] == ((0, 1000, last.winner),)
    # A second search starts from the model, and a kernel that is not searched stays.
    timed(1.0)
    tune(renewed_device, ["elementwise"], max_items=1000)
    assert set(gw.capabilities(renewed_device).tuning) == {"reduce"}
    tune(renewed_device, ["reduce"], max_items=1000)
    assert gw.capabilities(renewed_device).tuning is None
    assert TuningStore(device_key(renewed_device)).findings() is None


def test_other_work_on_a_cpu_lets_no_shape_win(renewed_device, folder, timed, monkeypatch):
    monkeypatch.setattr(LoadWatch, "share", lambda self: 0.5)
    for on_cpu, judges, verdict in ((False, "0", "faster"), (True, "0", "ambiguous"), (True, "1", "faster")):
        monkeypatch.setenv("GRIDWISE_JUDGE_BUSY", judges)
        timed(1.0, 0.7, on_cpu=on_cpu)
        (last,) = tune(renewed_device, ["reduce"], max_items=1000)
        assert (last.trials[1].verdict, last.changed) == (verdict, verdict == "faster")


def test_what_is_not_faster_once_more_does_not_win(renewed_device, folder, timed):
    """The best of many shapes was the luckiest, too."""
    timed(1.0, 0.8, again=(1.0, 1.0))
    (choice,) = tune(renewed_device, ["elementwise"], max_items=1000)
    assert not choice.changed
    assert choice.ratio == 1.0
    assert choice.trials[1].verdict == "not again"


def test_a_shape_that_is_slower_towards_the_end_of_its_range_does_not_win(renewed_device, folder, timed, monkeypatch):
    monkeypatch.setattr(tune_module, "_RANGES", ((0, 2000, 1000),))
    timed(1.0, 0.7)
    seen = []
    real = tune_module._again

    def again(turns, contest, key, **options):
        seen.append(contest.n)
        verdict = real(turns, contest, key, **options)
        return dataclasses.replace(verdict, ratio=1.02) if contest.n == 2000 else verdict

    monkeypatch.setattr(tune_module, "_again", again)
    (choice,) = tune(renewed_device, ["elementwise"])
    assert seen == [1000, 500, 2000]
    assert (choice.changed, choice.trials[1].verdict) == (False, "not again")


def test_wrong_results_do_not_win(renewed_device, folder, timed, monkeypatch):
    """For real: a shape that leaves out an item."""
    make = contest_module.make_for

    class _Off(gw.Reduce):
        def plan(self, layout):
            operand = layout["input"]
            return super().plan(gw.Layout({**layout, "input": dataclasses.replace(operand, length=operand.length - 1)}))

    def make_for(kernel, device, plain, fields, n):
        good = make(kernel, device, plain, fields, n)
        return _Off(device, capabilities=good.capabilities) if fields["workgroup_size"] == 32 else good

    monkeypatch.setattr(contest_module, "make_for", make_for)
    shapes = [shape_data(32, 1, 4), shape_data(128, 1, 4)]
    monkeypatch.setattr("gridwise_py.tuning.model.candidates", lambda *_: iter(shapes))
    timed(1.0, 0.6, 0.7)
    (choice,) = tune(renewed_device, ["reduce"], max_items=3000)
    assert [(t.verdict, t.time_ns is None) for t in choice.trials] == [
        ("default", False), ("wrong", True), ("faster", False),
    ]  # fmt: skip
    assert choice.winner == shapes[1]
    # The model's own shape is compared with numpy.
    model = KERNELS["reduce"].shape(gw.capabilities(renewed_device), 3000)[2]
    monkeypatch.setattr(
        contest_module, "make_for", lambda kernel, device, plain, fields, n: _Off(device, capabilities=plain)
    )
    with pytest.raises(gw.ArgumentError, match=r"model's own shape .* of reduce gives wrong results"):
        tune(renewed_device, ["reduce"], max_items=3000)
    assert model["workgroup_size"] != 32


def test_ctrl_c_keeps_the_kernels_that_were_done(renewed_device, folder, timed):
    timed(1.0, 0.7)

    def progress(step):
        if step.startswith("transpose"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        tune(renewed_device, ["reduce", "transpose"], max_items=1000, progress=progress)
    assert TuningStore(device_key(renewed_device)).findings().keys() == {"reduce"}


def test_a_search_ends_when_its_time_is_up(renewed_device, folder, timed):
    timed(1.0, 0.7)
    assert tune(renewed_device, ["reduce", "transpose"], max_items=1000, budget_s=-1.0) == ()


@pytest.mark.parametrize("kernel", KERNELS)
def test_every_kernel_is_tuned_with_a_primitive_that_uses_its_shape(device, kernel):
    plain = dataclasses.replace(gw.capabilities(device), tuning=None)
    n = 70_000 if kernel != "matmul" else 64 * 64
    fields = KERNELS[kernel].shape(plain, n)[2]
    try:
        primitive = contest_module.make_for(kernel, device, plain, fields, n)
    except gw.ArgumentError:
        assert "wide" in kernel or not contest_module.SUBJECTS[kernel].runs_on(plain), "the others run everywhere"
        return
    lengths = {name: items.size for name, items in contest_module.inputs_of(kernel, primitive, n).items()}
    for output in primitive.signature.outputs:
        length = primitive.signature.output_length(output, lengths)
        lengths = {**lengths, output: n if length is None else length}
    sizes = {name: datatype.element_bytes for name in lengths if (datatype := primitive.signature.datatype(name))}
    layout = gw.Layout.separate(sizes, **lengths)
    # The nearest shape that it can run changes the plan, given and tuned alike.
    for other in KERNELS[kernel].near(fields):
        try:
            given = contest_module.make_for(kernel, device, plain, other, n)
        except gw.ArgumentError:
            continue
        if given.plan(layout) != primitive.plan(layout):
            break
    found = tuned.findings_of(json.loads(json.dumps({kernel: [[0, n, other]]})))
    options = {"capabilities": dataclasses.replace(plain, tuning=found), "tuning": None}
    assert primitive.replace(**options).plan(layout).kernels == given.plan(layout).kernels


def test_unknown_kernels_are_refused(device):
    with pytest.raises(gw.ArgumentError, match=r"'sorting'.*elementwise"):
        tune(device, ["sorting"])


@pytest.mark.slow
@pytest.mark.parametrize("kernel", KERNELS)
def test_near_shapes_give_right_results_on_this_adapter(device, kernel):
    plain = dataclasses.replace(gw.capabilities(device), tuning=None)
    n = 70_001 if kernel != "matmul" else 64 * 64
    contest = contest_module.Contest(kernel, device, plain, KERNELS[kernel].shape(plain, n)[2], n)
    contest.add(list(itertools.islice(KERNELS[kernel].near(contest.fields), 6)))
    wanted = Oracle.of(contest.primitives[0]).expected(contest.inputs)
    for index, fields in enumerate(contest.shapes):
        assert differences(contest.primitives[0], contest.inputs, contest.results(index), wanted) is None, fields


# ---- the command, and tuning by itself


@pytest.mark.gpu
def test_the_command(folder, timed, monkeypatch, tmp_path):
    timed(1.0, 0.7)
    runner = CliRunner()
    assert "nothing is stored" in runner.invoke(main, ["tune", "--show"]).output
    file = tmp_path / "found.json"
    done = runner.invoke(main, ["tune", "--kernels", "reduce", "--max-n", "1000", "--json", str(file)])
    assert done.exit_code == 0, done.output
    assert re.search(r"(69|70)(\.\d+)? %", done.output), done.output
    assert "tuned (reduce; gridwise tune --show)" in " ".join(runner.invoke(main, ["info"]).output.split())
    document = json.loads(runner.invoke(main, ["tune", "--show", "--format", "json"]).stdout)
    assert set(document["shapes"]) == {"reduce"}
    assert document == json.loads(file.read_text())
    assert {"adapter", "vendor", "driver"} <= set(document["device"])
    assert document["date"].startswith("20")
    checked = runner.invoke(main, ["tune", "--check", "--format", "json"])
    checks = json.loads(checked.stdout)["checks"]
    assert [(check["kernel"], check["n"]) for check in checks] == [("reduce", 1000), ("reduce", 500)]
    assert checks[0]["used"] == document["choices"][0]["winner"]
    assert "reduce" in runner.invoke(main, ["tune", "--check"]).output
    monkeypatch.setenv("GRIDWISE_TUNING", "off")
    assert "GRIDWISE_TUNING=off" in runner.invoke(main, ["tune", "--show"]).output
    assert "forgotten" in runner.invoke(main, ["tune", "--clear"]).output
    assert list(folder.glob("tuning-*")) == []
    assert runner.invoke(main, ["tune", "--show", "--clear"]).exit_code == 2
    assert runner.invoke(main, ["tune", "--kernels", "sorting"]).exit_code == 2


@pytest.mark.gpu
def test_the_command_measures_within_a_small_budget(folder):
    done = CliRunner().invoke(
        main, ["tune", "--kernels", "transpose", "--max-n", "5000", "--budget", "9s", "--format", "json"]
    )
    assert done.exit_code == 0, done.output
    (choice,) = json.loads(done.stdout)["choices"]
    assert (choice["kernel"], choice["n"], choice["up_to"]) == ("transpose", 5000, 5000)
    assert choice["trials"][0]["time_ns"] > 0
