"""Fleets on a Dask cluster of two workers on lavapipe: deaths, lost devices, poison, wrong results, resuming."""

import json
import threading
import time
import types
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

import gridwise_py as gw
from gridwise_py.bench.cases.mode import Mode
from gridwise_py.bench.results.reader import read_results
from gridwise_py.bench.sweep.axes import collect_axes
from gridwise_py.bench.sweep.suite import DEFAULT_AXES, Sweep
from gridwise_py.cli import main
from gridwise_py.fleet.model import Fleet, Status, Verdict
from helpers import clusters, needs

with needs.modules("distributed") as distributed_is_needed:
    import gridwise_py.dask as gwd
    from gridwise_py.dask.worker import gpu_workers
    from gridwise_py.fleet import run as fleet_module
    from gridwise_py.fleet.run import request_of, run_fleet
    from helpers import fleet_faults

pytestmark = [pytest.mark.dask, pytest.mark.gpu, distributed_is_needed]


SUITE = """
[[sweep]]
primitives = ["copy", "reduce"]
axes = ["n=2^12", "datatype=u32", "op=add", "mode=batch"]
"""


@pytest.fixture(scope="module")
def request_():
    """Three small cases."""
    sweeps = (Sweep(("copy", "reduce"), collect_axes(("n=2^10", "datatype=u32", "mode=batch"), {}, DEFAULT_AXES)),)
    made = request_of(sweeps)
    return replace(made, protocol=replace(made.protocol, warmup_s=0.0, timeout_s=1e-6, batch_trials=1))


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """Two workers with the first adapter, and a client."""
    import dask

    folder = tmp_path_factory.mktemp("hosts")
    with pytest.MonkeyPatch.context() as patch, dask.config.set({"distributed.deploy.lost-worker-timeout": "1h"}):
        patch.setenv("GRIDWISE_FLEET_DIR", str(folder))
        with gwd.local_cluster(adapters=[0, 0]) as made, gwd.connect(made) as client:
            yield types.SimpleNamespace(client=client, address=made.scheduler_address, folder=folder)


@pytest.fixture(autouse=True)
def mended(request):
    """Undo what a test did to the workers."""
    yield
    if "cluster" in request.fixturenames:
        request.getfixturevalue("cluster").client.run(fleet_faults.mend)


def _devices(client):
    """The two devices, by id. A worker that has just come back is listed a moment before its GPU is."""
    end = time.monotonic() + 60
    while len(gpu_workers(client)) < 2 and time.monotonic() < end:
        time.sleep(0.05)
    first, second = gwd.identities(client)
    return first, second


def _on(client, identity, fault, *given):
    client.run(fault, *given, workers=[identity.address])


def _by_id(fleet):
    return {member.id: member for member in fleet.members}


@pytest.mark.slow
def test_a_run_writes_ordinary_results_files_and_a_document(cluster, request_, tmp_path):
    seen = []
    path = tmp_path / "today.fleet.json"
    fleet = run_fleet(
        cluster.client, request_, path=path, at_once=1,
        progress=lambda states: seen.append([state.state for state in states]),
    )  # fmt: skip
    first, second = _devices(cluster.client)
    assert list(_by_id(fleet)) == [first.id, second.id]
    assert {member.verdict for member in fleet.members} == {Verdict.ALONE}
    assert fleet.complete
    assert max(states.count("running") for states in seen) == 1  # one at a time on the host
    assert seen[-1] == ["complete", "complete"]
    written = json.loads(path.read_text())
    assert Fleet.from_json(written) == fleet
    for member in fleet.members:
        document = read_results(tmp_path / member.file)
        assert len(document.results) == len(request_.jobs) == 2
        assert document.device.adapter == member.adapter
        assert document.ticks_file is None
        assert member.wall_s > 0
    assert list(cluster.folder.iterdir()) == []  # nothing stays on the hosts


@pytest.mark.slow
def test_a_device_that_dies_goes_on_and_a_wrong_result_is_found(cluster, request_, tmp_path):
    first, second = _devices(cluster.client)
    _on(cluster.client, first, fleet_faults.die_in, 1)
    _on(cluster.client, second, fleet_faults.be_wrong)
    fleet = run_fleet(
        cluster.client, request_, path=tmp_path / "a.json"
    )  # fmt: skip
    died, wrong = (_by_id(fleet)[device.id] for device in (first, second))
    assert (died.status, died.attempts) == (Status.COMPLETE, 2)
    document = read_results(tmp_path / died.file)
    assert document.context.resumed  # the case before the death was kept
    assert len(document.results) == 2
    assert (wrong.verdict, wrong.cases_wrong) == (Verdict.WRONG, 2)
    # Another process has the same device now.
    assert {device.id for device in gwd.identities(cluster.client)} == {first.id, second.id}


@pytest.mark.slow
def test_a_poisonous_case_costs_itself_alone(cluster, request_):
    first, second = _devices(cluster.client)
    cluster.client.register_plugin(fleet_faults.Poison(first.tag, "reduce"))
    try:
        fleet = run_fleet(cluster.client, request_)
    finally:
        cluster.client.unregister_worker_plugin("poison")
    poisoned = _by_id(fleet)[first.id]
    assert (poisoned.status, poisoned.attempts, poisoned.errors) == (Status.COMPLETE, 2, 1)
    (failed,) = [each for each in poisoned.measured if each.error]
    assert fleet.cases[failed.case].name.startswith("reduce")
    assert "ended with 9" in failed.error
    assert _by_id(fleet)[second.id].errors == 0


@pytest.mark.slow
def test_a_device_that_does_not_answer_is_lost_and_a_resumed_run_measures_it_alone(cluster, request_, tmp_path):
    first, second = _devices(cluster.client)
    flag, path = tmp_path / "go on", tmp_path / "today.fleet.json"
    _on(cluster.client, first, fleet_faults.hang_in, 1, str(flag))
    try:
        fleet = run_fleet(cluster.client, request_, path=path, device_timeout_s=6)
    finally:
        flag.touch()
    lost, done = (_by_id(fleet)[device.id] for device in (first, second))
    assert (lost.status, lost.verdict, lost.error) == (Status.LOST, None, "no sign of life for 6 s")
    assert done.status is Status.COMPLETE
    assert not fleet.complete
    file = tmp_path / done.file
    before = file.stat().st_mtime_ns
    _on(cluster.client, second, fleet_faults.be_wrong)  # it must not be measured again
    whole = run_fleet(cluster.client, request_, path=path, resume=path)
    assert {member.status for member in whole.members} == {Status.COMPLETE}
    assert whole.run == fleet.run
    assert file.stat().st_mtime_ns == before
    assert {member.verdict for member in whole.members} == {Verdict.ALONE}
    with pytest.raises(gw.ArgumentError, match="of another suite"):
        run_fleet(cluster.client, replace(request_, jobs=request_.jobs[:1]), resume=path)


@pytest.mark.slow
def test_an_interrupted_run_leaves_what_was_measured(cluster, request_, tmp_path):
    path, other = tmp_path / "today.fleet.json", tmp_path / "elsewhere/again.json"
    other.parent.mkdir()

    def interrupt(states):
        if any(state.state == "complete" for state in states):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_fleet(cluster.client, request_, path=path, at_once=1, progress=interrupt)
    found = Fleet.from_json(json.loads(path.read_text()))
    assert sorted(member.status for member in found.members) == [Status.COMPLETE, Status.INCOMPLETE]
    assert not found.complete
    # The document may be continued at another place: files of what is complete come along.
    whole = run_fleet(cluster.client, request_, path=other, resume=path)
    assert whole.complete
    assert all((other.parent / member.file).is_file() for member in whole.members)


@pytest.mark.slow
def test_a_run_outlives_its_nanny_and_can_be_continued_after_the_scheduler(request_, tmp_path, monkeypatch):
    """By phase: in the second case of the first run the Nanny is killed, in that of the second one the scheduler."""
    monkeypatch.setenv("GRIDWISE_FLEET_DIR", str(tmp_path / "host"))
    path = tmp_path / "today.fleet.json"
    with clusters.by_hand() as (address, scheduler, start):
        worker = start()
        with gwd.connect(address, timeout_s=60) as client:
            (device,) = gwd.identities(client)
            _on(client, device, fleet_faults.kill_in, 1, str(tmp_path / "nanny"))
            threading.Thread(target=lambda: worker.wait() and start(), daemon=True).start()  # as systemd does
            (member,) = run_fleet(client, request_, device_timeout_s=120).members
            assert (member.status, member.attempts) == (Status.COMPLETE, 2)
            assert (tmp_path / "nanny").exists()
            (device,) = gwd.identities(client)
            _on(client, device, fleet_faults.kill_in, 1, str(tmp_path / "scheduler"), scheduler.pid)
            with pytest.raises(gw.ClusterError, match=r"scheduler does not answer .*--resume goes on with it"):
                run_fleet(client, request_, path=path)
    (member,) = Fleet.from_json(json.loads(path.read_text())).members
    assert member.status is Status.INCOMPLETE
    with clusters.by_hand() as (address, _, start):
        start()
        with gwd.connect(address, timeout_s=60) as client:
            (member,) = run_fleet(client, request_, path=path, resume=path).members
    assert (member.status, member.attempts) == (Status.COMPLETE, 2)
    document = read_results(tmp_path / member.file)
    assert document.context.resumed, "the case before the death was kept"
    assert len(document.results) == 2


@pytest.mark.slow
def test_alone_and_together_and_a_full_disk(cluster, request_):
    cluster.client.run(fleet_faults.fill_disk)
    try:
        fleet = run_fleet(cluster.client, replace(request_, jobs=request_.jobs[:1]), contention=True)
    finally:
        cluster.client.run(fleet_faults.free_disk)
    assert {member.status for member in fleet.members} == {Status.COMPLETE}
    assert all(each.alone_ns and each.rounds_ns for member in fleet.members for each in member.measured)


@pytest.mark.slow
def test_the_command(cluster, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    first, second = _devices(cluster.client)
    (tmp_path / "small.toml").write_text(SUITE)
    words = [
        "fleet", "--scheduler", cluster.address, "--suite", "small.toml", "-a", "n=2^10", "--warmup-s", "0",
        "--sampling-s", "0", "--trials", "1", "--json", "a.fleet.json",
    ]  # fmt: skip
    _on(cluster.client, second, fleet_faults.be_wrong)
    done = CliRunner().invoke(main, [*words, "--devices", second.id])
    assert done.exit_code == 4, done.output
    assert f"{second.id}: complete (1 of 1 devices)" in done.stderr
    assert first.id not in done.stdout.replace(second.id, "")
    assert "1 wrong" in done.stdout
    again = CliRunner().invoke(main, words)
    assert again.exit_code == 2
    assert "exists already" in again.stderr
    none = CliRunner().invoke(main, [*words[:-1], "b.json", "--devices", "no such"])
    assert none.exit_code == 2
    assert "no device has 'no such'" in none.stderr
    tls = CliRunner().invoke(main, ["fleet", "--scheduler", "tcp://192.0.2.1:8786"])
    assert tls.exit_code == 2
    assert "neither TLS nor on this host" in tls.stderr


# ---- without a cluster


def _identity(identifier, worker):
    return gwd.DeviceIdentity(
        identifier, worker, "h", worker, f"tcp://{worker}", 1, "GPU", "1", "Vulkan", "DiscreteGPU", 1
    )


def test_one_device_at_two_workers_is_refused():
    found = [_identity("h/0000:1b:00.0", "a"), _identity("h/0000:1b:00.0", "b"), _identity("h/1", "c")]
    with pytest.raises(
        gw.ClusterError, match=r"2 workers have the device h/0000:1b:00\.0: a \(tcp://a\), b \(tcp://b\)"
    ):
        fleet_module._choose(found, ())
    assert [device.id for device in fleet_module._choose(found[1:], ("1B:00",))] == ["h/0000:1b:00.0"]


def test_files_have_tame_names_whatever_hosts_are_called():
    names = fleet_module._file_names(
        ["../../etc/passwd", "a/0", "A:0", "a 0", "\x1b[2J", "node7/0000:1b:00.0", "x" * 500]
    )
    assert len({name.casefold() for name in names.values()}) == 7
    assert names["node7/0000:1b:00.0"] == "node7-0000-1b-00-0"
    for name in names.values():
        assert Path(name).name == name
        assert name[0] not in ".-"
        assert name.replace("-", "").replace("_", "").isalnum()
        assert len(name) < 110


class _Gone:
    """A client whose scheduler ended."""

    status = "connecting"

    def subscribe_topic(self, *given): ...
    def unsubscribe_topic(self, *given): ...

    def submit(self, *given, **options):
        return types.SimpleNamespace(status="cancelled", cancel=lambda: None)


def test_what_is_no_client_is_named():
    with pytest.raises(gw.ArgumentError, match=r"a client is needed .*such as gwd\.connect\(…\), not 'tcp://x'"):
        run_fleet("tcp://x")


def test_without_its_scheduler_a_run_ends_and_says_how_to_go_on(monkeypatch, request_, tmp_path):
    monkeypatch.setattr(fleet_module, "identities", lambda client: [_identity("h/0", "a")])
    monkeypatch.setattr(fleet_module, "_GONE_S", 0.3)
    path = tmp_path / "a.json"
    with pytest.raises(gw.ClusterError, match=r"scheduler does not answer .*a\.json, --resume"):
        run_fleet(_Gone(), request_, path=path)
    (member,) = Fleet.from_json(json.loads(path.read_text())).members
    assert (member.status, member.error) == (Status.INCOMPLETE, "was not measured")


def test_events_of_strangers_are_data(request_):
    asked = fleet_module._Asked(_Gone(), request_, None, 1.0, 0.03, None, lambda states: None)
    run = fleet_module._Run(asked, [_identity("h/0", "a")], None)
    for said in ("text", None, {}, {"run": run.name}, {"run": run.name, "id": "other"}, {"run": run.name, "id": "h/0"}):
        run._heard((0.0, said))
    run._heard((0.0, {"run": run.name, "id": "h/0", "done": 1, "of": 2, "case": "x" * 5000, "attempt": 2}))
    shown = run._devices["h/0"].shown
    assert (shown.done, shown.of, len(shown.case), shown.attempts) == (1, 2, 80, 2)


def test_devices_wait_for_each_other_where_a_case_waits_for_its_caller(request_):
    latency = [replace(job, mode=Mode.LATENCY) for job in request_.jobs]
    assert fleet_module._least_at_once(request_) is None
    assert fleet_module._least_at_once(replace(request_, jobs=latency)) == 1
