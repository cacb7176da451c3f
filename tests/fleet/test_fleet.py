"""Fleets: what is judged and what is not, how files are put together, and files of strangers."""

import json
import random
import re
from dataclasses import replace

import pytest

import gridwise_py as gw
from gridwise_py.bench.cases.mode import Mode
from gridwise_py.bench.results.model import Results
from gridwise_py.fleet import files as fleet_files
from gridwise_py.fleet.files import member_path, names_of, parse_fleet, read_fleet
from gridwise_py.fleet.judge import LEAST_PEERS, judge
from gridwise_py.fleet.members import fleet_of, host_of, merge
from gridwise_py.fleet.model import Status, Verdict
from gridwise_py.fleet.table import fleet_lines
from gridwise_py.internals import Code
from gridwise_py.storage import files
from gridwise_py.storage.json_files import json_text
from helpers.fleets import fleet, results
from helpers.fuzz_results import mutate
from helpers.hostile_results import HOSTILE
from helpers.results import loaded

SLOW = Verdict.SLOW
DIGESTS = Code.DIGESTS


def _verdicts(judged):
    return {member.id: member.verdict for member in judged.members}


def _by_id(judged, identifier):
    return next(member for member in judged.members if member.id == identifier)


# ---- the table of docs/contribute/statistics.md, seeded


def test_how_many_are_found_and_falsely_accused():
    for devices, sick, device_std, found, most_false in [
        (8, ("memory", 0.05), 0.005, (1.0, 1.0), 0.0),
        (64, ("all", 0.04), 0.005, (1.0, 1.0), 0.001),
        (64, ("host", 0.15), 0.005, (1.0, 1.0), 0.001),
        (64, ("all", 0.10), 0.03, (0.2, 0.9), 0.003),
        (64, ("all", 0.20), 0.03, (0.9, 1.0), 0.003),
        (64, (None, 0.0), 0.005, (0.0, 0.0), 0.001),
    ]:
        hits, false, trials = 0, 0, 5
        for seed in range(trials):
            judged = judge(fleet(devices, seed, sick={0: sick}, device_std=device_std))
            verdicts = _verdicts(judged)
            hits += verdicts.pop("node0-gpu0") is SLOW
            false += sum(verdict is SLOW for verdict in verdicts.values())
        assert found[0] <= hits / trials <= found[1]
        assert false / trials / (devices - 1) <= most_false


def test_a_thousand_members_are_put_together_and_judged():
    sick = {5: ("all", 0.08), 77: ("memory", 0.12), 901: ("host", 0.3)}
    whole = fleet(1000, 3, cases=18, sick=sick)
    parts = [replace(whole, members=(member,), planned=(member.id,)) for member in whole.members]
    judged = judge(merge(parts))
    assert len(judged.members) == 1000
    assert [group.count for group in judged.groups] == [1000]
    assert sum(member.cases for member in judged.members) == 18_000
    accused = {member.id: member.because[0] for member in judged.outliers}
    assert accused == {"node0-gpu5": "unknown", "node9-gpu5": "memory", "node112-gpu5": "host"}


def test_against_a_baseline_four_devices_are_judged_and_without_one_they_are_alone():
    """Four GPUs, one of which shares its time with another program, against the same four undisturbed."""
    good = judge(fleet(4, 1))
    today = fleet(4, 2, sick={2: ("all", 0.6)})
    assert set(_verdicts(good).values()) == {Verdict.ALONE}
    assert set(_verdicts(judge(today)).values()) == {Verdict.ALONE}
    judged = judge(today, baseline=good)
    assert _verdicts(judged) == {
        "node0-gpu0": Verdict.PEERS, "node0-gpu1": Verdict.PEERS, "node0-gpu2": SLOW, "node0-gpu3": Verdict.PEERS,
    }  # fmt: skip
    member = _by_id(judged, "node0-gpu2")
    assert member.low < 1.6 < member.high or member.ratio == pytest.approx(1.6, rel=0.02)
    assert judged.groups[0].has_baseline
    # A baseline of another group says nothing.
    assert set(_verdicts(judge(today, baseline=judge(fleet(4, 1, group="b" * 16)))).values()) == {Verdict.ALONE}


# ---- rules


def test_few_peers_accuse_nobody():
    for count in [LEAST_PEERS - 1, LEAST_PEERS]:
        judged = judge(fleet(count, sick={0: ("all", 1.0)}))
        assert (SLOW in _verdicts(judged).values()) == (count >= LEAST_PEERS)
        if count < LEAST_PEERS:
            assert set(_verdicts(judged).values()) == {Verdict.ALONE}
            assert "--baseline" in "\n".join(fleet_lines(judged))


def test_groups_are_never_mixed():
    fast, slow = fleet(6, 1, group="a" * 16), fleet(6, 2, group="b" * 16, prefix="other", sick={
        k: ("all", 3.0) for k in range(6)})  # fmt: skip
    both = replace(fast, members=fast.members + slow.members)
    judged = judge(both)
    assert set(_verdicts(judged).values()) == {Verdict.PEERS}
    assert [group.count for group in judged.groups] == [6, 6]


def test_members_of_another_adapter_driver_version_or_type_are_another_group():
    groups = set()
    for change in ({}, {"adapter": "x"}, {"driver": "2"}, {"backend": "Metal"}, {"adapter_type": "CPU"}):
        groups.add(fleet_of(loaded(results(device=change)), identifier="a", host="a").members[0].group)
    version = results()
    version["context"] = {**version["context"], "versions": {**version["context"]["versions"], "gridwise_py": "9"}}
    groups.add(fleet_of(loaded(version), identifier="a", host="a").members[0].group)
    assert len(groups) == 6


def test_kernels_of_another_form_are_other_cases():
    """A device that was tuned is not compared with those that were not."""
    plain, tuned = results(), results(2.0)
    for result in tuned["results"]:
        result["parameters"] = {"workgroup_size": 512}
    parts = [fleet_of(loaded(plain), identifier=f"n{k}", host="h") for k in range(6)]
    judged = judge(merge([*parts, fleet_of(loaded(tuned), identifier="tuned", host="h")]))
    assert _verdicts(judged).pop("tuned") is Verdict.ALONE
    assert SLOW not in _verdicts(judged).values()
    assert "several texts or shapes" in "\n".join(fleet_lines(judged))


def _with_code(factor=1.0, *, settings=None, digests=DIGESTS):
    """The results of a device that tell what it asked of its GPU, slower by a factor."""
    made = results(factor)
    for result in made["results"]:
        result["code"] = dict.fromkeys(digests, "a" * 64)
    made["context"] = {**made["context"], "settings": settings}
    return made


def _judged_beside(peers, one, **options):
    """One device beside six others: its verdict, the reasons, and all lines."""
    parts = [fleet_of(loaded(peers), identifier=f"n{k}", host="h") for k in range(6)]
    document = merge([*parts, fleet_of(loaded(one), identifier="one", host="h")]).to_json()
    judged = judge(parse_fleet(json.loads(json_text(document)), "x"), **options)
    assert SLOW not in {verdict for name, verdict in _verdicts(judged).items() if name != "one"}
    member = _by_id(judged, "one")
    return member.verdict, member.because, "\n".join(fleet_lines(judged))


def test_a_time_of_the_same_code_is_a_finding_about_the_machine():
    """By what `compare` knows it: digests, and what else a time depends on."""
    verdict, because, lines = _judged_beside(_with_code(), _with_code(1.2))
    assert (verdict, because) == (SLOW, ("unknown", "the machine differs: same code in 10 of 10 slow cases"))
    assert "by time alone" not in lines
    other = _with_code(1.2)
    for result in other["results"]:
        result["code"]["uniforms"] = "0" * 64
    for one in (other, _with_code(1.2, settings={"launch_blocking": True})):
        verdict, because, _ = _judged_beside(_with_code(), one)
        assert (verdict, because) == (SLOW, ("code", "asked other things of the GPU than its peers"))
    other["results"][0] = _with_code(1.2)["results"][0]
    assert _judged_beside(_with_code(), other)[1][1] == "the machine differs: same code in 1 of 10 slow cases"
    assert _judged_beside(_with_code(), _with_code())[:2] == (Verdict.PEERS, ())


def test_files_without_all_digests_are_judged_by_time():
    for peers, one, count in (
        (results(), results(1.2), 10), (_with_code(), results(1.2), 10),
        (_with_code(digests=DIGESTS[:3]), _with_code(1.2, digests=DIGESTS[:3]), 10),
    ):  # fmt: skip
        verdict, because, lines = _judged_beside(peers, one)
        assert (verdict, because) == (SLOW, ("unknown",))
        assert f"{count} cases judged by time alone" in lines


def test_a_baseline_says_what_it_asked_of_the_gpu():
    def good(document):
        return judge(fleet_of(loaded(document), identifier="good", host="h"))

    for baseline, wanted in (
        (good(_with_code()), "the machine differs: same code in 10 of 10 slow cases"),
        (good(_with_code(settings={"launch_blocking": True})), "asked other things of the GPU than its peers"),
        (good(results()), None),
    ):
        read = parse_fleet(json.loads(json_text(baseline.to_json())), "x")
        judged = judge(fleet_of(loaded(_with_code(1.2)), identifier="one", host="h"), baseline=read)
        (member,) = judged.members
        assert (member.verdict, member.because[1:]) == (SLOW, (wanted,) if wanted else ())


def test_three_slow_cases_or_one_far_off():
    def judged(slow, share):
        made = fleet(16, 4, device_std=0.0, case_std=0.001)
        first = made.members[0]
        measured = tuple(
            replace(each, rounds_ns=(each.rounds_ns[0] * (1 + share),)) if each.case < slow else each
            for each in first.measured
        )
        return judge(replace(made, members=(replace(first, measured=measured), *made.members[1:]))).members[0]

    assert judged(2, 0.06).verdict is Verdict.PEERS
    assert judged(2, 0.06).cases_slow == 2
    assert judged(3, 0.06).verdict is SLOW
    assert judged(1, 0.12).verdict is SLOW
    assert judged(24, 0.02).verdict is Verdict.PEERS  # below the gate
    assert judged(24, -0.2).verdict is Verdict.FAST


def test_the_gate_is_that_of_the_caller():
    made = fleet(32, 1, sick={0: ("all", 0.06)})
    assert judge(made, gate=0.03).members[0].verdict is SLOW
    assert judge(made, gate=0.08).members[0].verdict is Verdict.PEERS


def test_a_wide_interval_of_its_own_acquits():
    noisy = fleet(32, 1, sick={0: ("all", 0.06)}, half=0.003)
    measured = tuple(replace(each, half=0.08) for each in noisy.members[0].measured)
    acquitted = replace(noisy, members=(replace(noisy.members[0], measured=measured), *noisy.members[1:]))
    assert judge(noisy).members[0].verdict is SLOW
    assert judge(acquitted).members[0].verdict is Verdict.PEERS


def test_what_comes_first():
    made = fleet(16, 1, sick={k: ("all", 0.2) for k in (0, 1)}, rounds=3, shaken={3: 0.3})
    members = list(made.members)
    wrong = tuple(replace(each, wrong=each.case == 5) for each in members[0].measured)
    members[0] = replace(members[0], measured=wrong)
    members[2] = replace(members[2], status=Status.LOST, measured=(), group=None, error="did not answer")
    judged = judge(replace(made, members=tuple(members)))
    verdicts = _verdicts(judged)
    assert verdicts["node0-gpu0"] is Verdict.WRONG
    assert verdicts["node0-gpu1"] is SLOW
    assert verdicts["node0-gpu2"] is None
    assert verdicts["node0-gpu3"] is Verdict.UNSTEADY
    assert "rounds differ by 30 %" in _by_id(judged, "node0-gpu3").because[1]
    assert [member.id for member in judged.outliers] == ["node0-gpu0", "node0-gpu2", "node0-gpu1", "node0-gpu3"]
    assert not judged.complete
    # A median of three is not moved by one slow round.
    assert _by_id(judged, "node0-gpu3").ratio == pytest.approx(1.0, abs=0.02)


def test_a_wrong_result_says_nothing_about_time():
    made = fleet(8, 1)
    measured = tuple(replace(each, wrong=True, rounds_ns=(1.0,)) for each in made.members[0].measured)
    judged = judge(replace(made, members=(replace(made.members[0], measured=measured), *made.members[1:])))
    assert judged.members[0].cases == 0
    assert judged.members[0].cases_wrong == 24
    assert all(case.low > 0.9 for case in judged.groups[0].cases)


def test_why_a_device_is_slow():
    def because(**options):
        judged = judge(fleet(32, 1, **options))
        assert judged.members[0].verdict is SLOW
        return judged.members[0].because

    assert because(sick={0: ("memory", 0.12)})[0] == "memory"
    assert because(sick={0: ("host", 0.12)})[0] == "host"
    assert because(sick={0: ("all", 0.12)})[0] == "unknown"
    assert because(sick={0: ("all", 0.12)}, canary={0: 1.12})[:2] == ("clock", "canary 1.12 times")
    assert because(sick={0: ("all", 0.30)}, canary={0: 1.03})[0] == "unknown"  # not by the same ratio
    assert because(sick={0: ("memory", 0.12)}, canary={0: 1.0})[0] == "memory"


def test_a_device_that_is_slow_only_beside_its_neighbours_is_not_the_one_to_replace():
    made = fleet(16, 1, sick={0: ("all", 0.2), 1: ("all", 0.2)})
    members = [
        replace(member, measured=tuple(
            replace(each, alone_ns=each.rounds_ns[0] / (1.2 if member.id.endswith("gpu0") else 1.0))
            for each in member.measured))
        for member in made.members
    ]  # fmt: skip
    judged = judge(replace(made, members=tuple(members)))
    assert _by_id(judged, "node0-gpu0").because == ("shared", "1.20 times its time alone")
    assert _by_id(judged, "node0-gpu1").because[0] == "unknown"


def test_judging_again_changes_nothing_and_forgets_earlier_verdicts():
    made = fleet(16, 1, sick={3: ("all", 0.1)})
    once = judge(made)
    assert judge(once) == once
    healthy = replace(once, members=tuple(
        replace(member, measured=made.members[0].measured) for member in once.members))  # fmt: skip
    assert SLOW not in _verdicts(judge(healthy)).values()


# ---- from files


@pytest.fixture
def folder(tmp_path):
    """A function that writes files: of six devices, one of them slow, and what a test adds."""

    def write(**more):
        made = {f"n{k}-gpu0": results(1.3 if k == 4 else 1.0, seed=k) for k in range(6)}
        for name, content in (made | more).items():
            path = tmp_path / f"{name}.json"
            path.write_text(content if isinstance(content, str) else json.dumps(content))
        return sorted(tmp_path.glob("*.json"))

    return write


def test_files_of_devices_are_a_fleet(folder):
    judged = judge(read_fleet(folder()))
    assert _verdicts(judged) == {f"n{k}-gpu0": SLOW if k == 4 else Verdict.PEERS for k in range(6)}
    assert {member.host for member in judged.members} == {f"n{k}" for k in range(6)}
    assert judged.suite == "quick"
    member = _by_id(judged, "n4-gpu0")
    assert member.ratio == pytest.approx(1.3, rel=0.02)
    assert member.low < member.ratio < member.high


def test_the_order_of_files_does_not_matter(folder):
    paths = folder(broken="{", extra=results(error="device lost"))
    first = judge(read_fleet(paths))
    for seed in range(5):
        mixed = list(paths)
        random.Random(seed).shuffle(mixed)
        assert judge(read_fleet(mixed)) == first


def test_cells_are_put_together_from_their_documents(folder, tmp_path):
    paths = folder(other=results(wrong=True))
    whole = judge(read_fleet(paths))
    for name, part in (("first", paths[:3]), ("second", paths[3:])):
        text = json_text(judge(read_fleet(part)).to_json())
        (tmp_path / f"{name}.fleet.json").write_text(text)
    together = judge(read_fleet([tmp_path / "second.fleet.json", tmp_path / "first.fleet.json"]))
    assert together == whole
    # One that is there twice counts once, in a cell and by itself.
    assert judge(read_fleet([tmp_path / "first.fleet.json", *paths])) == whole


def test_rounds_and_modes(tmp_path):
    made = results(modes=(Mode.BATCH, Mode.LATENCY))
    rounds = [{**result, "round": k} for k in range(3) for result in made["results"]]
    found = fleet_of(Results.from_json({**made, "results": rounds}), identifier="a", host="a")
    assert {len(each.rounds_ns) for each in found.members[0].measured} == {3}
    latency = next(k for k, case in enumerate(found.cases) if case.mode == "latency")
    result = next(result for result in made["results"] if result["mode"] == "latency")
    # What a call costs its caller, not the GPU.
    assert found.members[0].measured[latency].rounds_ns[0] == result["whole"]["cpu_wall_ns"]


def test_lost_failed_and_incomplete_members_stay_in_the_fleet(folder, tmp_path):
    paths = folder(poison=results(error="device lost: the driver reset"), half=results(complete=False), bad="{]")
    judged = judge(read_fleet(paths))
    found = {member.id: (member.status, member.error) for member in judged.members}
    assert found["poison"] == (Status.FAILED, "device lost: the driver reset")
    assert found["half"][0] is Status.INCOMPLETE
    assert found["bad"][0] is Status.FAILED
    assert "bad.json: line 1, column 2" in found["bad"][1]
    assert not judged.complete
    planned = replace(judged, planned=(*judged.planned, "n9-gpu0"))
    missing = _by_id(merge([planned]), "n9-gpu0")
    assert (missing.status, missing.error, missing.host) == (Status.INCOMPLETE, "was not measured", "n9")


def test_no_file_that_can_be_read_is_an_error(folder, tmp_path):
    folder(bad="{")
    with pytest.raises(gw.ArgumentError, match="none of the files"):
        read_fleet([tmp_path / "bad.json", tmp_path / "absent.json"])
    with pytest.raises(gw.ArgumentError, match="no regular file"):
        read_fleet([tmp_path])


def test_names_are_as_long_as_they_must_be(tmp_path):
    paths = [tmp_path / "a/x.json", tmp_path / "b/x.json", tmp_path / "b/y.json"]
    assert names_of(paths) == ["a/x", "b/x", "b/y"]
    assert names_of(paths[1:]) == ["x", "y"]
    assert names_of([paths[0], paths[0]]) == ["x", "x"]
    assert [host_of(name) for name in ("node7-gpu3", "node7.gpu0", "node_gpu", "gpu1", "a/node1-gpu12")] == [
        "node7", "node7", "node_gpu", "gpu1", "a/node1",
    ]  # fmt: skip


def test_two_devices_of_one_id_are_numbered_whatever_came_first():
    first, second = (
        fleet_of(loaded(results(seed=k)), identifier="a", host="a", sha256=f"{k}" * 64) for k in (1, 2)
    )  # fmt: skip
    assert merge([first, second]) == merge([second, first])
    assert [member.id for member in merge([second, first]).members] == ["a", "a (2)"]


# ---- files of strangers


def test_the_document_is_read_as_it_was_written(folder, tmp_path):
    judged = judge(read_fleet(folder(), folder=tmp_path))
    text = json_text(judged.to_json())
    assert parse_fleet(json.loads(text), "a") == judged
    assert [member.file for member in judged.members] == [f"n{k}-gpu0.json" for k in range(6)]
    for member in judged.members:
        assert member_path(tmp_path / "x.fleet.json", member.file).is_file()


def _spoilt(change):
    data = judge(fleet(6)).to_json()
    change(data)
    return json.loads(json_text(data))


CONTRADICTIONS = [
        (lambda d: d.update(schema_version=2), "schema_version"),
        (lambda d: d.pop("members"), "members"),
        (lambda d: d["members"][0].update(status="fine"), "status"),
        (lambda d: d["members"][0]["measured"][0].update(case=24), "measured"),
        (lambda d: d["members"][0]["measured"][0].update(case=1), "measured"),
        (lambda d: d["members"][0]["measured"][0].update(rounds_ns=[-1.0]), "rounds_ns"),
        (lambda d: d["members"][0].update(file="../x.json"), "file"),
        (lambda d: d["members"][0].update(file="/etc/passwd"), "file"),
        (lambda d: d["members"][0].update(file="C:\\\\x.json"), "file"),
        (lambda d: d["members"][0].update(id="node0-gpu1"), "members"),
        (lambda d: d["groups"][0]["cases"][0].update(median_ns=0), "median_ns"),
        (lambda d: d.update(gate=1.5), "gate"),
    ]  # fmt: skip


def test_a_document_that_contradicts_its_schema_or_itself_is_refused():
    for change, where in CONTRADICTIONS:
        with pytest.raises(gw.BadResultsFile, match=re.escape(where)):
            parse_fleet(_spoilt(change), "a.json")


def test_a_link_out_of_the_folder_is_not_followed(tmp_path):
    (tmp_path / "inside").mkdir()
    (tmp_path / "secret.json").write_text("{}")
    (tmp_path / "inside/link.json").symlink_to(tmp_path / "secret.json")
    with pytest.raises(gw.BadResultsFile, match="not below"):
        member_path(tmp_path / "inside/a.fleet.json", "link.json")


def test_large_files_are_not_read(folder, tmp_path, monkeypatch):
    folder()
    monkeypatch.setattr(fleet_files, "_MOST_RESULTS_BYTES", 1000)
    with pytest.raises(gw.ArgumentError, match="at most 1,000"):
        read_fleet([tmp_path / "n0-gpu0.json"])
    monkeypatch.setattr(files, "_MOST_BYTES", 500)
    monkeypatch.setattr(files.os, "fdopen", lambda *args: pytest.fail("read"))
    with pytest.raises(gw.ArgumentError, match="at most 500"):
        read_fleet([tmp_path / "n0-gpu0.json"])


def test_hostile_texts_reach_no_terminal(tmp_path):
    for k, text in enumerate(HOSTILE):
        made = results(wrong=True, device={"adapter": text, "driver": text})
        made["results"][1] |= {"error": text, "correct": False, "primitive": text}
        (tmp_path / f"n{k}.json").write_text(json.dumps(made))
    judged = judge(read_fleet(sorted(tmp_path.glob("*.json"))))
    shown = "\n".join(fleet_lines(judged))
    assert "\x1b" not in shown
    assert "\x00" not in shown
    assert not re.search("[\ud800-\udfff]", shown)
    assert parse_fleet(json.loads(json_text(judged.to_json())), "a") == judged


def test_whatever_a_document_says_it_is_refused_or_judged():
    base = json.loads(json_text(judge(fleet(6, 1, cases=3, sick={0: ("all", 0.3)}, rounds=2)).to_json()))
    taken = 0
    for number in range(60):
        spoilt = mutate(base, random.Random(f"0 {number}"), 1 + number % 3)
        try:
            found = parse_fleet(spoilt, "a.json")
        except gw.BadResultsFile:
            continue
        taken += 1
        fleet_lines(judge(merge([found, fleet(6, 2)]), baseline=found))
        fleet_lines(found)
    assert 0 < taken < 60


def test_whatever_a_results_file_says_it_is_a_member(tmp_path):
    base = results()
    for number in range(40):
        content = json.dumps(mutate(base, random.Random(number), 1 + number % 3)).encode("utf-8", "surrogatepass")
        (tmp_path / f"n{number}.json").write_bytes(content)
    judged = judge(read_fleet(sorted(tmp_path.glob("*.json"))))
    assert len(judged.members) == 40
    statuses = {member.status for member in judged.members}
    assert {Status.COMPLETE, Status.FAILED} <= statuses
    assert parse_fleet(json.loads(json_text(judged.to_json())), "a") == judged
