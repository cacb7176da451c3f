"""The self-test of look-back, its verdict, where it is kept, and which strategy follows from it."""

import dataclasses
import json

import numpy as np
import pytest
from click.testing import CliRunner

import gridwise_py as gw
from gridwise_py.bench.results.context import run_context
from gridwise_py.cli import main
from gridwise_py.primitives import waiting
from gridwise_py.runtime import lookback_selftest as lookback
from gridwise_py.runtime.context import context_of
from gridwise_py.runtime.lookback_selftest import LookbackProbe, lookback_verdict
from gridwise_py.types.capabilities import LookbackVerdict
from helpers import inside
from helpers.bare import device_with
from helpers.cases import CPU, FULL
from helpers.renewed import new_executor
from helpers.strategies import plan_from

SAFE = LookbackVerdict(coherent=True, progress=True, needs_tickets=False, recovers=True, duration_ns=1e8)
TICKETS = dataclasses.replace(SAFE, needs_tickets=True)
UNSAFE = [dataclasses.replace(SAFE, **{name: False}) for name in ("coherent", "progress", "recovers")]
LENGTHS = {"input": 10**6, "output": 10**6}


@pytest.fixture(autouse=True)
def as_for_users(monkeypatch):
    """Other tests have bounds that no busy machine reaches."""
    monkeypatch.setattr(LookbackProbe, "LIMIT_NS", 1_000_000_000)
    monkeypatch.setattr(LookbackProbe, "AGAIN_AT_MOST", 0.01)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A cache with nothing in it."""
    monkeypatch.setenv("GRIDWISE_CACHE_DIR", str(tmp_path))
    return tmp_path


@pytest.fixture
def untested(renewed_device, monkeypatch):
    """A device without a verdict."""
    monkeypatch.setattr(lookback, "Executor", new_executor)
    context_of(renewed_device).lookback_verdicts.clear()
    return renewed_device


@pytest.fixture
def quick(monkeypatch):
    """A shorter test than that of users."""
    monkeypatch.setattr(LookbackProbe, "TILES", 512)
    monkeypatch.setattr(LookbackProbe, "DISPATCHES", 6)


@pytest.fixture(params=["u64", "u32x2"])
def state(request, require):
    """A form of the state that the device can do."""
    if request.param == "u64":
        require("shader-int64", "shader-int64-atomic-all-ops")
    return request.param


@pytest.fixture
def spoilt(monkeypatch):
    """Return a function that changes the texts that are composed from now on."""

    def spoil(*changes):
        def change(name, text):
            for old, new in changes:
                assert old in text
                text = text.replace(old, new)
            return text

        inside.change_texts(monkeypatch, change)

    yield spoil
    inside.forget_texts()


def _strategy(capabilities=FULL, **options):
    plan = plan_from(gw.Scan, capabilities=capabilities, lengths=LENGTHS, **options)
    return plan.parameters["strategy"], plan.parameters.get("tickets")


# ---- the test, on a real device


def test_the_verdict_of_this_adapter(untested, state, folder):
    """As users get it: any adapter that the tests run on is coherent and recovers."""
    found = lookback_verdict(untested, state)
    assert found.coherent
    assert found.recovers
    assert found.progress
    if found.error is None or not gw.capabilities(untested).is_cpu:
        assert found.safe
        assert found.error is None
    else:
        assert "did not finish" in found.error  # on a CPU with much other work
    assert 0 < found.duration_ns < 60e9
    assert lookback_verdict(untested, state) is found
    assert context_of(untested).executor.counts["pipelines"] == 0, "nothing of it is kept on the device"


def test_a_results_file_has_the_verdicts_that_are_known(untested, folder, quick):
    assert run_context(untested)["device"]["lookback"] is None
    lookback_verdict(untested, "u32x2")
    assert json.loads(json.dumps(run_context(untested)))["device"]["lookback"]["u32x2"]["coherent"] is True


def test_a_device_of_the_users_without_any_feature(device, folder, quick):
    bare = device_with(device)
    found = lookback_verdict(bare, "u32x2")
    assert found.coherent
    assert found.recovers
    assert lookback_verdict(bare, "u64").error.startswith("ArgumentError")
    assert not lookback_verdict(bare, "u64").safe


@pytest.mark.parametrize("tickets", [False, True], ids=["by number", "by ticket"])
def test_tiles_in_a_grid_of_three_dimensions_are_as_many_as_in_one(untested, state, monkeypatch, tickets):
    """Where a dimension holds few workgroups, more than are needed start: those do not count, post or take a ticket."""
    monkeypatch.setattr(LookbackProbe, "TILES", 50)
    measured = gw.capabilities(untested)
    few = dataclasses.replace(measured, limits={**measured.limits, "max-compute-workgroups-per-dimension": 7})
    plan = LookbackProbe.plan(few, state, tickets=tickets)
    assert np.prod(plan.kernels[0].workgroups) > 7 * 7
    wrong, _, finished = lookback._count(untested, new_executor(untested), plan, 6)
    assert (wrong, finished) == (0, 6 * 50)


def test_tiles_that_are_computed_again_are_counted(untested, state, monkeypatch):
    """Where no tile posts, each computes all before it."""
    monkeypatch.setattr(LookbackProbe, "TILES", 50)
    plan = LookbackProbe.plan(gw.capabilities(untested), state, tickets=True, stalled=True, stall_every=1, spin_limit=1)
    counts = lookback._count(untested, new_executor(untested), plan, 3)
    assert counts == (0, 3 * 50 * 49 // 2, 3 * 50)


def test_words_of_an_earlier_dispatch_are_found(untested, folder, quick, spoilt):
    """In every second dispatch nothing is posted, and what was there before is shown, as from a stale cache."""
    spoilt(
        ("(tag_0 >> 2u) == epoch", "true"),
        ("if (stalls(tile)) {", "if (stalls(tile) || (epoch & 1u) == 1u) {"),
    )
    found = lookback_verdict(untested, "u32x2")
    assert not found.coherent
    assert "sums were wrong" in str(found)
    assert len(list(folder.iterdir())) == 1, "which no busy machine explains"


def test_torn_words_are_found(untested, folder, quick, spoilt):
    spoilt(("(pack(value) >> 16u)", "(pack(value) >> 17u)"))
    assert not lookback_verdict(untested, "u32x2").coherent


def test_workgroups_that_do_not_finish_are_found(untested, folder, quick, spoilt):
    """Every second one ends too early, as lavapipe ends long loops."""
    spoilt(("if (sum != sum_up_to(tile))", "if (tile % 2u == 1u) { return; }\n  if (sum != sum_up_to(tile))"))
    found = lookback_verdict(untested, "u32x2")
    assert not found.coherent
    assert not found.recovers


def test_workgroups_that_never_see_the_others_are_found(untested, folder, quick, spoilt):
    """All sums are right, by the fallback, but that is slow: another process tries again."""
    spoilt(("(tag_0 >> 2u) == epoch", "false"))
    found = lookback_verdict(untested, "u32x2")
    assert (found.coherent, found.progress, found.recovers, found.safe) == (True, False, True, False)
    assert "made no progress" in str(found)
    assert list(folder.iterdir()) == []


def test_a_fallback_that_is_wrong_is_found(untested, folder, quick, spoilt):
    spoilt(("before.sum + total_of(next)", "before.sum + total_of(next + 1u)"))
    found = lookback_verdict(untested, "u32x2")
    assert not found.recovers


@pytest.mark.parametrize("progress", [True, False])
def test_an_adapter_that_is_too_slow_for_the_test_is_not_safe(untested, folder, monkeypatch, progress):
    """SwiftShader's Vulkan takes 0.2 s for a dispatch: no user waits for 36 of them."""
    counts, clock = [], [0]

    def count(_device, _executor, _plan, dispatches):
        counts.append(dispatches)
        clock[0] += dispatches * LookbackProbe.LIMIT_NS // 10
        return 0, (1 if progress else 500) * dispatches, dispatches * LookbackProbe.TILES

    monkeypatch.setattr(lookback, "_count", count)
    monkeypatch.setattr(lookback.time, "perf_counter_ns", lambda: clock[0])
    found = lookback_verdict(untested, "u32x2")
    assert not found.safe
    said = "the self-test failed: it did not finish within 1 s" if progress else "workgroups made no progress"
    assert said in str(found)
    assert max(counts) <= 8
    assert clock[0] <= 3 * LookbackProbe.LIMIT_NS
    assert list(folder.iterdir()) == []


def test_a_test_that_cannot_run_is_a_verdict_and_is_not_kept(untested, folder, monkeypatch):
    def fail(*_, **__):
        raise gw.DeviceError("the device was lost")

    monkeypatch.setattr(lookback, "_count", fail)
    found = lookback_verdict(untested, "u32x2")
    assert not found.safe
    assert str(found) == "not safe: the self-test failed: DeviceError: the device was lost"
    assert list(folder.iterdir()) == []


# ---- where it is kept


def test_it_is_kept_per_adapter_driver_and_form(untested, folder, quick, monkeypatch):
    found = lookback_verdict(untested, "u32x2")
    (path,) = folder.iterdir()
    assert json.loads(path.read_text())["device"]["state"] == "u32x2"
    known = context_of(untested).lookback_verdicts
    monkeypatch.setattr(lookback, "_test", lambda device, state: UNSAFE[1])
    known.clear()  # as another process
    assert lookback_verdict(untested, "u32x2") == found
    known.clear()
    key = lookback.device_key(untested) | {"driver": "another"}
    monkeypatch.setattr(lookback, "device_key", lambda device: key)
    assert lookback_verdict(untested, "u32x2") == UNSAFE[1]


def test_a_broken_file_is_ignored(untested, folder, quick):
    lookback_verdict(untested, "u32x2")
    (path,) = folder.iterdir()
    for spoil in (
        lambda d: d.pop("verdict"),
        lambda d: d.update(verdict=None),
        lambda d: d["verdict"].update(coherent="yes"),
        lambda d: d["verdict"].pop("progress"),
    ):
        document = json.loads(path.read_text())
        spoil(document)
        path.write_text(json.dumps(document))
        context_of(untested).lookback_verdicts.clear()
        assert lookback_verdict(untested, "u32x2").safe
        assert json.loads(path.read_text())["verdict"]["coherent"] is True


# ---- what follows from it


def test_an_unsafe_device_reduces_then_scans():
    for unsafe in (*UNSAFE, dataclasses.replace(UNSAFE[0], error="lost")):
        capabilities = dataclasses.replace(FULL, lookback=unsafe)
        assert _strategy(capabilities) == ("reduce_then_scan", None)
        assert _strategy(capabilities, strategy="auto") == ("reduce_then_scan", None)
        assert _strategy(capabilities, strategy="lookback")[0] == "lookback", "the argument overrules it"


def test_a_safe_device_looks_back_with_tickets_where_they_are_needed():
    assert _strategy(dataclasses.replace(FULL, lookback=SAFE)) == ("lookback", False)
    assert _strategy(dataclasses.replace(FULL, lookback=TICKETS)) == ("lookback", True)
    assert _strategy(dataclasses.replace(FULL, lookback=TICKETS), tickets=False) == ("lookback", False)
    assert _strategy(FULL) == ("lookback", False), "not tested, and not on a CPU"


def test_a_cpu_adapter_must_be_tested_and_takes_tickets():
    assert _strategy(CPU) == ("reduce_then_scan", None)
    assert _strategy(dataclasses.replace(CPU, lookback=UNSAFE[1])) == ("reduce_then_scan", None)
    assert _strategy(dataclasses.replace(CPU, lookback=SAFE)) == ("lookback", True)
    assert _strategy(CPU, strategy="lookback") == ("lookback", True)


@pytest.mark.slow
def test_the_device_is_asked_once_and_only_where_it_matters(device, monkeypatch):
    asked = []
    monkeypatch.setattr(waiting, "lookback_verdict", lambda device, state: asked.append(state) or UNSAFE[1])
    gpu = dataclasses.replace(gw.capabilities(device), adapter_type="DiscreteGPU")
    x = gw.asarray(np.arange(100, dtype=np.uint32), device)
    gw.VectorAdd(device, capabilities=gpu)
    gw.Reduce(device, capabilities=gpu)
    gw.Scan(device, strategy="reduce_then_scan", capabilities=gpu)
    gw.Scan(device, capabilities=dataclasses.replace(gpu, lookback=SAFE))
    assert asked == []
    scan = gw.Scan(device, tuning=gw.ScanTuning(state="u32x2"), capabilities=gpu)
    sort = gw.Sort(device, capabilities=gpu)
    assert scan.strategy == "auto"
    assert asked == [], "constructing asks nothing"
    assert sort.execute(input=x).plan.parameters["strategy"] == "one workgroup"
    asked.clear()
    run = scan.execute(input=x)
    assert run.plan.parameters["strategy"] == "reduce_then_scan"
    np.testing.assert_array_equal(run.output.to_numpy(), np.cumsum(np.arange(100)))
    scan.execute(input=x[:50])
    assert asked == ["u32x2"]
    tuning = gw.ScanTuning(state="u32x2", tickets=True)
    gw.Scan(device, strategy="lookback", tuning=tuning, capabilities=gpu).execute(input=x)
    assert asked == ["u32x2"], "neither the strategy nor the tickets are open"


def test_the_environment_overrules_the_verdict_and_the_argument_the_environment(monkeypatch):
    unsafe = dataclasses.replace(FULL, lookback=UNSAFE[1])
    monkeypatch.setenv("GRIDWISE_SCAN_STRATEGY", "lookback")
    assert _strategy(unsafe)[0] == "lookback"
    assert _strategy(CPU) == ("lookback", True)
    assert _strategy(unsafe, strategy="reduce_then_scan")[0] == "reduce_then_scan"
    assert _strategy(unsafe, strategy="auto")[0] == "reduce_then_scan"
    in_place = gw.Layout({k: gw.Operand(1000, "both", size_bytes=4000) for k in ("input", "output")})
    plan = gw.Scan.plan_for(capabilities=FULL, lengths=in_place)
    assert plan.parameters["strategy"] == "reduce_then_scan", "which look-back cannot do"
    monkeypatch.setenv("GRIDWISE_SCAN_STRATEGY", "reduce_then_scan")
    assert _strategy(FULL)[0] == "reduce_then_scan"
    assert _strategy(FULL, strategy="lookback")[0] == "lookback"
    for nothing in ("auto", ""):
        monkeypatch.setenv("GRIDWISE_SCAN_STRATEGY", nothing)
        assert _strategy(FULL)[0] == "lookback"


def test_a_word_in_the_environment_that_is_unknown_is_refused(monkeypatch):
    monkeypatch.setenv("GRIDWISE_SCAN_STRATEGY", "fastest")
    with pytest.raises(gw.ArgumentError, match=r"GRIDWISE_SCAN_STRATEGY='fastest'.*auto, reduce_then_scan, lookback"):
        _strategy(FULL)
    assert _strategy(FULL, strategy="auto")[0] == "lookback"


# ---- the command


def test_the_command_shows_the_verdict(device, folder, quick):
    runner = CliRunner()
    done = runner.invoke(main, ["info", "--format", "json"])
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)["lookback"]
    assert found["safe"] is True
    assert found["recovers"] is True
    assert found["state"] == json.loads(done.stdout)["scan"]["state"]
    done = runner.invoke(main, ["info"])
    assert "look-back, self-tested" in done.output
    assert "safe" in done.output
