"""`gridwise ab`: environments, the worker, the turns, and verdicts on paired differences."""

import contextlib
import csv
import io
import json
import math
import os
import shutil
import signal
import stat
import subprocess
import sys
import time
import zipfile
from collections import defaultdict
from dataclasses import replace
from itertools import cycle
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from click.testing import CliRunner
from rich.console import Console

import gridwise_py as gw
from gridwise_py.bench.ab import environments, process, turns, worker
from gridwise_py.bench.ab.environments import Environment, find_environment
from gridwise_py.bench.ab.judge import JudgedRow, judge
from gridwise_py.bench.ab.process import SideError, Worker
from gridwise_py.bench.ab.table import JudgedTable
from gridwise_py.bench.ab.turns import SIDES, MeasuredCase, Progress, Settings, TakenRow, measure_in_turns
from gridwise_py.bench.cases.case import Case
from gridwise_py.bench.cases.mode import Mode
from gridwise_py.bench.cases.own_files import OwnCodeError
from gridwise_py.bench.sampling import machine_load
from gridwise_py.bench.stats.verdict import Pair, VerdictKind, judge_all
from gridwise_py.bench.sweep.suite import Job
from gridwise_py.cli import main
from gridwise_py.cli.progress import TurnsProgress

ROOT = Path(gw.__file__).resolve().parents[1]
HERE = Environment("here", "checkout", Path(sys.executable), ROOT)


def _run(*words):
    return CliRunner().invoke(main, [str(word) for word in words])


# ---- environments


@pytest.fixture
def cache(tmp_path, monkeypatch):
    folder = tmp_path / "cache"
    monkeypatch.setenv("GRIDWISE_CACHE_DIR", str(folder))
    return folder


def _package(folder, version):
    """Make a library that says its version, and has no GPU."""
    (folder / "gridwise_py").mkdir(parents=True)
    (folder / "gridwise_py" / "__init__.py").write_text(f"__version__ = {version!r}\n")
    (folder / "shaders").mkdir()
    (folder / "shaders" / "a.wgsl").write_text("// nothing")
    return folder


def _version(environment):
    """Return the version of the library that an environment imports."""
    command = [str(environment.python), "-P", "-c", "import gridwise_py; print(gridwise_py.__version__)"]
    done = subprocess.run(command, env=environment.variables(), capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.fixture
def repository(tmp_path, monkeypatch, require):
    """A repository whose first revision is version 1, and whose second is version 2."""
    require("git")
    folder = _package(tmp_path / "repository", "1")
    (folder / "notes.txt").write_text("not needed")

    def git(*words):
        identity = ["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false"]
        subprocess.run(["git", "-C", str(folder), *identity, *words], check=True, capture_output=True)

    git("init", "-q")
    git("add", ".")
    git("commit", "-q", "-m", "one")
    git("tag", "v1")
    (folder / "gridwise_py" / "__init__.py").write_text("__version__ = '2'\n")
    git("commit", "-q", "-a", "-m", "two")
    monkeypatch.chdir(folder)
    return folder


def test_a_revision_is_unpacked_for_each_run(repository):
    """A benchmark may write into its tree, so none is used again."""
    old, new = find_environment("v1"), find_environment("HEAD")
    assert (_version(old), _version(new)) == ("1", "2")
    assert (old.kind, len(old.commit), old.changed) == ("revision", 40, False)
    assert old.describe() == f"revision v1 ({old.commit[:10]})"
    assert sorted(path.name for path in old.folder.iterdir()) == ["gridwise_py", "shaders"]
    (old.folder / "gridwise_py" / "__init__.py").write_text("__version__ = '7'")
    os.chdir(repository / "shaders")
    again = find_environment("HEAD~1")
    assert (again.commit, _version(again)) == (old.commit, "1")
    assert stat.S_IMODE(again.folder.stat().st_mode) == 0o700, "code of nobody else gets there"


def test_a_checkout_has_its_changes(repository):
    assert not find_environment(".").changed
    (repository / "gridwise_py" / "__init__.py").write_text("__version__ = '3'\n")
    found = find_environment(".")
    assert (found.kind, found.changed, _version(found)) == ("checkout", True, "3")
    assert found.describe().endswith("with changes)")


def test_a_repository_of_another_user_names_the_remedy(repository, cache, monkeypatch):
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
    remedy = f"git config --global --add safe.directory {repository}"
    with pytest.raises(
        gw.ArgumentError, match=r"the repository of another user; if you trust it: git config"
    ) as caught:
        find_environment("v1")
    assert remedy in str(caught.value)
    found = find_environment(".")  # its files run, without git
    assert (found.commit, _version(found)) == (None, "2")
    assert remedy in found.describe()


def test_a_folder_without_git_is_a_checkout(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(_package(tmp_path / "other", "9")))
    found = find_environment(str(_package(tmp_path / "plain", "4")))
    assert (found.commit, _version(found)) == (None, "4")
    assert found.variables()["PYTHONPATH"].endswith("other"), "what the interpreter needs may lie there"


@pytest.mark.parametrize("layout", ["bin/python", "Scripts/python.exe"])
def test_interpreters_and_virtual_environments(tmp_path, layout, monkeypatch):
    python = tmp_path / "venv" / layout
    python.parent.mkdir(parents=True)
    python.symlink_to(sys.executable)
    (tmp_path / "venv" / "pyvenv.cfg").touch()
    for given in (python, tmp_path / "venv"):
        found = find_environment(str(given))
        # Not what the link leads to: that would be another environment.
        assert (found.kind, found.python, found.folder) == ("interpreter", python, None)
    monkeypatch.setenv("PYTHONPATH", "elsewhere")
    assert "PYTHONPATH" not in found.variables()


def test_a_wheel(tmp_path):
    wheel = tmp_path / "gridwise_py-5-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("gridwise_py/__init__.py", "__version__ = '5'\n")
    found = find_environment(str(wheel))
    assert (found.kind, _version(found)) == ("wheel", "5")
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("gridwise_py/__init__.py", "__version__ = '6'\n")
    assert _version(find_environment(str(wheel))) == "6", "another content under the same name"
    wheel.write_bytes(b"no zip")
    with pytest.raises(gw.ArgumentError, match="is no wheel"):
        find_environment(str(wheel))
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("other/__init__.py", "")
    with pytest.raises(gw.ArgumentError, match="has no package gridwise_py"):
        find_environment(str(wheel))


def test_a_requirement_is_installed_by_pip(cache, monkeypatch):
    commands = []

    def run(command, problem):
        commands.append(command)
        if "venv" in command:
            Path(command[-1], "bin").mkdir(parents=True)
            Path(command[-1], "Scripts").mkdir()
        elif len(commands) == 2:
            raise gw.ArgumentError("no network")

    monkeypatch.setattr(environments, "_need", run)
    with pytest.raises(gw.ArgumentError, match="no network"):
        find_environment("gridwise-py==0.1.0")
    found = find_environment("gridwise-py==0.1.0")  # half an environment is made again
    assert (found.kind, found.folder) == ("requirement", None)
    assert found.python.parent.parent.parent == cache / "environments"
    assert [command[-1] for command in commands[1::2]] == ["gridwise-py==0.1.0"] * 2
    assert find_environment("gridwise-py==0.1.0") == found
    assert len(commands) == 4, "the complete one is used again"
    assert find_environment("gridwise_py[bench] >= 0.1").python != found.python
    # Whoever can write there decides what runs.
    (cache / "environments").chmod(0o777)
    apart = find_environment("gridwise-py==0.1.0")
    assert not apart.python.is_relative_to(cache)


def test_what_is_no_side(monkeypatch):
    monkeypatch.chdir(ROOT)
    for given in ("nonsense", "--help", "", "README.md", "tests"):
        with pytest.raises(gw.ArgumentError, match=r"is no side of a comparison: give an interpreter"):
            find_environment(given)


def test_a_revision_without_the_library(repository):
    subprocess.run(["git", "rm", "-r", "-q", "gridwise_py"], check=True)
    identity = ["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", *identity, "commit", "-q", "-m", "gone"], check=True)
    with pytest.raises(gw.ArgumentError, match="has no package gridwise_py"):
        find_environment("HEAD")


# ---- the worker


@pytest.fixture
def program(tmp_path, monkeypatch):
    """A function that replaces the worker's program."""

    def replace(text):
        path = tmp_path / "program.py"
        path.write_text("import sys, json, os, time\n" + text)
        monkeypatch.setattr(process, "_PROGRAM", path)

    return replace


def test_commands_and_answers(program):
    program("for line in sys.stdin: print(json.dumps({'got': json.loads(line)}), flush=True)")
    with Worker(HERE) as worker:
        assert worker.ask("add", a=1)["got"] == {"do": "add", "a": 1}
        worker.send("one")
        assert worker.answer()["got"] == {"do": "one"}


@pytest.mark.parametrize(
    ("text", "message", "is_dead"),
    [
        ("sys.stdin.readline(); print('{\"error\": \"KeyError: x\"}', flush=True); input()", "KeyError: x", False),
        ("sys.stdin.readline(); print('the driver says no', file=sys.stderr); sys.exit(7)",
         "its process ended with 7: the driver says no", True),
        ("sys.exit(3)", "its process ended with 3$", True),
        ("sys.stdin.readline(); os.kill(os.getpid(), 9)", "its process was ended by SIGKILL$", True),
        ("time.sleep(60)", "its process was ended after 1 s without a result", True),
        ("sys.stdin.readline(); print('{\"a', end='', flush=True); os.kill(os.getpid(), 9)",
         "its process ended in the middle of an answer: b'{\"a'", True),
    ],
    ids=["error", "ends", "ends at once", "killed", "hangs", "half an answer"],
)  # fmt: skip
def test_a_worker_that_fails(program, monkeypatch, text, message, is_dead):
    program(text)
    monkeypatch.setattr(process, "_TIMEOUT_S", 1.0 if "sleep" in text else 60.0)
    with Worker(HERE) as worker:
        with pytest.raises(SideError, match=message) as caught:
            worker.ask("hello")
        assert caught.value.is_dead is is_dead
    assert worker.returncode is not None


def test_the_worker_imports_the_library_of_its_side_only(tmp_path):
    """The program lies in this library's package; the one of its side has the last word."""
    other = _package(tmp_path / "other", "7")
    (other / "gridwise_py" / "__init__.py").write_text(
        "def request_device(adapter):\n    raise LookupError(__file__ + ' ' + str(adapter))\n"
    )
    environment = Environment("other", "checkout", Path(sys.executable), other)
    with Worker(environment) as worker, pytest.raises(SideError, match=r"other.gridwise_py.__init__.py 3"):
        worker.ask("hello", adapter=3)


def test_the_worker_does_not_find_the_modules_beside_its_program(tmp_path):
    other = _package(tmp_path / "other", "7")
    (other / "gridwise_py" / "__init__.py").write_text("import turns\n")
    environment = Environment("other", "checkout", Path(sys.executable), other)
    with Worker(environment) as worker, pytest.raises(SideError, match="No module named 'turns'"):
        worker.ask("hello", adapter=None)


# ---- verdicts

P5 = 5


def _row(logs, step_ns=0.0):
    """Return a row of pairs of processes: of each the logarithms of NEW by OLD of its A B B A."""
    flat = [log for of_pair in logs for log in of_pair]
    processes = [number for number, of_pair in enumerate(logs) for _ in of_pair]
    old, new = [[1e5] * 2 for _ in flat], [[1e5 * math.exp(log)] * 2 for log in flat]
    return Pair(old, new, step_ns, old_processes=processes, new_processes=processes, in_turns=True)


def _judge(rows, threshold=0.01):
    return judge_all(rows, threshold=threshold, most_p=0.01)


def _pairs(rng, difference, between, within=0.001, pairs=P5, turns_each=4):
    levels = math.log1p(difference) + rng.normal(0, between, pairs)
    return _row([list(level + rng.normal(0, within, turns_each)) for level in levels])


def test_how_often_verdicts_are_right():
    for difference, between, right in [
        (0.0, 0.003, "same"),
        (0.02, 0.003, "slower"),
        (-0.02, 0.003, "faster"),
        (0.0, 0.04, "ambiguous"),
    ]:
        rng = np.random.default_rng(0)
        found = [v for _ in range(5) for v in _judge([_pairs(rng, difference, between) for _ in range(20)])]
        kinds = [v.kind.value for v in found]
        assert kinds.count(right) >= 0.97 * len(kinds)
        assert sum(v.low <= 1 + difference <= v.high for v in found) >= 0.91 * len(found)


def test_noise_of_any_size_is_hardly_ever_called_a_difference():
    rng = np.random.default_rng(1)
    kinds = [v.kind for _ in range(100) for v in _judge([_pairs(rng, 0.0, 0.05) for _ in range(4)])]
    assert sum(kind in (VerdictKind.FASTER, VerdictKind.SLOWER) for kind in kinds) <= 0.015 * len(kinds)


def test_a_single_row_of_any_noise_is_wrong_in_one_of_a_hundred():
    """An interval beyond the threshold alone would be wrong in four."""
    rng = np.random.default_rng(6)
    kinds = [_judge([_pairs(rng, 0.0, 0.05)])[0].kind for _ in range(400)]
    assert 0 < sum(kind in (VerdictKind.FASTER, VerdictKind.SLOWER) for kind in kinds) <= 8


def test_two_levels_are_not_called_a_difference():
    """A process has one of two levels, 3 % apart, and repeats it to the tick."""
    rng = np.random.default_rng(2)
    rows = [_row([[math.log(1.03) * rng.choice([-1, 0, 0, 1])] * 4 for _ in range(5)]) for _ in range(400)]
    kinds = [verdict.kind for i in range(0, 400, 2) for verdict in _judge(rows[i : i + 2])]
    assert sum(kind in (VerdictKind.FASTER, VerdictKind.SLOWER) for kind in kinds) <= 4


def test_pairs_that_agree_by_chance_are_no_more_alike_than_their_turns_allow():
    alike = [[-0.03, 0.03, -0.03, 0.03]] * 3
    (verdict,) = _judge([_row(alike)])
    assert verdict.kind is VerdictKind.AMBIGUOUS
    assert verdict.between_sd == 0
    assert verdict.within_sd > 0.01


def test_the_step_of_the_clock_counts_for_gpu_times_only():
    case = MeasuredCase(Job(CASES[0].case, Mode.LATENCY, 0))
    case.step_ns = 32.0
    taken = TakenRow([0.0] * 4, {side: [6400.0] * 8 for side in SIDES})
    case.taken = [dict.fromkeys(("gpu_span", "cpu_wall"), taken)] * 5
    stepped, wall = judge_all([case.pair("gpu_span"), case.pair("cpu_wall")])
    assert (stepped.step_share, wall.step_share) == (pytest.approx(32 / 6400), 0)
    assert math.log(stepped.high) == pytest.approx(32 / 6400)
    case.step_ns = math.inf
    assert case.pair("gpu_span").tick_step_ns == 0


def test_the_interval_is_that_of_students_t():
    logs = [0.010, 0.014, 0.012, 0.016, 0.013]
    (verdict,) = _judge([_row([[x, x] for x in logs])], threshold=0.005)
    half = 2.7764451 * np.std(logs, ddof=1) / math.sqrt(5)
    assert math.log(verdict.low) == pytest.approx(0.013 - half)
    assert math.log(verdict.high) == pytest.approx(0.013 + half)
    assert verdict.kind is VerdictKind.SLOWER


def test_what_settles_an_ambiguous_row():
    rng = np.random.default_rng(3)
    spread = rng.normal(0, 1, 5)
    spread = (spread - spread.mean()) / spread.std(ddof=1)

    def settle(centre, sd):
        (verdict,) = _judge([_row([[centre + sd * x] * 3 for x in spread])])
        assert verdict.kind is VerdictKind.AMBIGUOUS
        return JudgedRow("case", "gpu_span", 1.0, 1.0, verdict, past_gate=False)

    found = settle(0.0, 0.012)
    assert 5 < int(found.settle.removeprefix("--pairs ")) < 25
    assert "standard deviation 1.2 %" in found.verdict.reason
    assert settle(math.log(1.0101), 0.003).settle == "another --threshold: the difference is about as large"
    assert settle(0.0, 0.2).settle.endswith("a machine with less other work")
    assert settle(0.0, 0.9).verdict.too_noisy


def test_many_rows_need_more_evidence():
    rng = np.random.default_rng(4)
    slower = _row([[0.02 + x] * 2 for x in (-0.007, 0.007, -0.003, 0.003, 0.0)])
    assert _judge([slower])[0].kind is VerdictKind.SLOWER
    many = _judge([slower, *(_pairs(rng, 0.0, 0.05) for _ in range(200))])
    assert many[0].kind is VerdictKind.AMBIGUOUS
    assert "the test for any difference does not agree" in many[0].reason


# ---- turns, with invented workers


ADAPTER = {"device": "Fake GPU", "vendor": "Fake", "vendor_id": 1, "adapter_type": "DiscreteGPU"}


class FakeWorker:
    """Takes exact times; a process has a level, and there is a drift that both sides share."""

    drift, pid = 1.0, os.getpid()

    def __init__(self, environment):
        self.side = environment.given
        self.log.append((self.side, "start"))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.log.append((self.side, "end"))

    def send(self, do, **options):
        self._sent = (do, options)

    def answer(self):
        do, options = self._sent
        return self.ask(do, **options)

    def ask(self, do, **options):
        self.log.append((self.side, do, options))
        answer = self.said.get((self.side, do), {})
        if isinstance(answer, BaseException):
            raise answer
        return answer(options) if callable(answer) else answer


@pytest.fixture
def fake(monkeypatch):
    """The class of invented workers; NEW takes 3 % longer, and everything drifts by 1 % a turn."""

    class Fake(FakeWorker):
        pass

    Fake.log, Fake.said, Fake.factor = [], {}, {"OLD": 1.0, "NEW": 1.03}

    def turn_of(side):
        def turn(options):
            Fake.drift *= 1.01
            span = 10_000.0 * options["trials"] * Fake.drift * Fake.factor[side]
            return {
                "gpu_span": [span] * options["samples"], "cpu_wall": [None] * options["samples"],
                "labels": ["a", "b"], "kernels": [[0.25 * span, 0.75 * span]] * options["samples"],
            }  # fmt: skip

        return turn

    for side in SIDES:
        Fake.said |= {
            (side, "hello"): {"versions": {}, "adapter": dict(ADAPTER), "has_timestamps": True},
            (side, "warm"): {"trial_ns": 10_000.0},
            (side, "turn"): turn_of(side),
            (side, "prepare"): {"outputs": {}},
        }
    monkeypatch.setattr(turns, "Worker", Fake)
    monkeypatch.setattr(turns.os, "cpu_count", lambda: 2)  # a pair starts when the one before has ended
    monkeypatch.setattr(turns._Inputs, "wrong", lambda self, case, outputs: None)
    return Fake


ENVIRONMENTS = {side: Environment(side, "checkout", Path("python")) for side in SIDES}
CASES = [
    Job(Case.build("copy", 64, "u32", "add"), Mode.BATCH, 0),
    Job(Case.build("scan", 64, "u32", "add"), Mode.HOT, 1),
]


def _measured(settings, jobs=CASES):
    return measure_in_turns(ENVIRONMENTS, lambda is_cpu: jobs, settings)


def test_a_drift_that_both_share_cancels(fake):
    measured = _measured(Settings(pairs=3, rounds=2, seed=5))
    for case in measured.cases:
        assert [len(logs) for logs in case.logs["gpu_span"]] == [2, 2, 2]
        np.testing.assert_allclose(case.logs["gpu_span"], math.log(1.03), rtol=1e-9)
    assert measured.clock == "not held"


def test_the_order_of_turns(fake):
    _measured(Settings(pairs=4, rounds=3), CASES[:1])
    asked = [(side, words[0]) for side, *words in fake.log]
    assert len([1 for _, do in asked if do == "start"]) == len([1 for _, do in asked if do == "end"]) == 8
    order = [side for side, do in asked if do == "turn"]
    quads = {"".join(side[0] for side in order[i : i + 4]) for i in range(0, len(order), 4)}
    assert quads == {"ONNO", "NOON"}, "in random order"
    options = [words[1] for _, *words in fake.log if words[0] == "turn"]
    assert all(one == options[0] for one in options), "the same work on both sides and in all processes"
    assert options[0]["trials"] == 50, "about half a millisecond"


def test_rows_of_kernels(fake):
    measured = _measured(Settings(pairs=2, rounds=1, kernels=True), CASES[:1])
    assert set(measured.cases[0].logs) == {"gpu_span", "kernel a", "kernel b"}
    assert measured.cases[0].median_ns("kernel a", "OLD") == pytest.approx(
        measured.cases[0].median_ns("gpu_span", "OLD") / 4
    )


def test_passes_of_one_kernel_have_numbers(fake):
    for side in SIDES:
        own = fake.said[side, "turn"]
        fake.said[side, "turn"] = lambda options, own=own: own(options) | {"labels": ["pass", "pass"]}
    measured = _measured(Settings(pairs=2, rounds=1, kernels=True), CASES[:1])
    assert set(measured.cases[0].logs) == {"gpu_span", "kernel pass 1", "kernel pass 2"}


def test_a_kernel_of_one_side_has_no_row(fake):
    old = fake.said["OLD", "turn"]
    fake.said["OLD", "turn"] = lambda options: old(options) | {"labels": ["a", "c"]}
    measured = _measured(Settings(pairs=2, rounds=1, kernels=True), CASES[:1])
    assert set(measured.cases[0].logs) == {"gpu_span", "kernel a"}


def _judged(fake, settings=None, jobs=CASES, gate=0.01):
    settings = settings or Settings(pairs=3, rounds=2)
    return judge(ENVIRONMENTS, _measured(settings, jobs), settings, threshold=0.01, gate=gate)


def test_a_regression(fake):
    judged = _judged(fake)
    assert [row.verdict.kind for row in judged.rows] == [VerdictKind.SLOWER] * 2
    assert judged.regressed
    assert not _judged(fake, gate=0.05).regressed


def test_a_case_that_only_new_fails_is_a_regression(fake):
    fake.said["NEW", "prepare"] = SideError("ShaderError: no")
    judged = _judged(fake, jobs=CASES[:1])
    assert judged.broken == ("copy u32 n=64: ShaderError: no",)
    assert judged.regressed
    assert not judged.rows


def test_a_case_that_old_lacks_is_a_note(fake):
    fake.said["OLD", "prepare"] = SideError("AttributeError: Sort")
    judged = _judged(fake, jobs=CASES[:1])
    assert not judged.regressed
    assert judged.notes == ("copy u32 n=64: not judged: OLD: AttributeError: Sort",)
    fake.said["NEW", "prepare"] = SideError("too large")
    assert not _judged(fake, jobs=CASES[:1]).regressed


def test_a_process_that_dies_is_replaced(fake):
    times = iter([SideError("killed", is_dead=True)])
    working = fake.said["NEW", "turn"]

    def turn(options):
        error = next(times, None)
        if error is not None:
            raise error
        return working(options)

    fake.said["NEW", "turn"] = turn
    judged = _judged(fake, Settings(pairs=2, rounds=1))
    assert len(judged.broken) == 1
    assert len(judged.rows) == 1
    assert [word[1] for word in fake.log if word[0] == "NEW"].count("start") == 3


# ---- a measurement that ends early


def _at_turn(fake, number, what):
    """Have NEW do something at its turn of this number, from 1; with one round there are two a case and pair."""
    working, count = fake.said["NEW", "turn"], 0

    def turn(options):
        nonlocal count
        count += 1
        if count == number:
            what()
        return working(options)

    fake.said["NEW", "turn"] = turn


def _raising(error):
    def raise_it():
        raise error

    return raise_it


def _no_more_starts(fake):
    """End the process of NEW, and let none start again."""
    fake.said["NEW", "hello"] = SideError("no memory on the GPU", is_dead=True)
    raise SideError("killed", is_dead=True)


def test_an_interrupt_keeps_the_pairs_that_measured(fake):
    settings = Settings(pairs=5, rounds=1)
    _at_turn(fake, 11, _raising(KeyboardInterrupt()))  # the second case of the third pair
    measured = _measured(settings)
    assert isinstance(measured.stopped, KeyboardInterrupt)
    assert measured.pairs == (2, 3)
    assert sorted(len(case.times_ns["gpu_span"]["OLD"]) for case in measured.cases) == [4, 6]
    judged = judge(ENVIRONMENTS, measured, settings, threshold=0.01, gate=0.01)
    assert sorted(row.verdict.old_units for row in judged.rows) == [2, 3]
    assert (judged.stopped, judged.to_json()["complete"]) == ("interrupted", False)
    starts, ends = ([word[1] for word in fake.log].count(do) for do in ("start", "end"))
    assert starts == ends


def test_the_table_says_what_its_numbers_are_and_keeps_the_lines_of_an_error(fake):
    judged = replace(_judged(fake), broken=("scan: ShaderError: no such function\n  line 3: f(x)",))
    for side in SIDES:
        judged.measured.sides[side]["versions"] = {"gridwise_py": "1", "wgpu": "1", "python": "3"}
    console = Console(width=120, file=io.StringIO())
    console.print(JudgedTable(judged))
    lines = console.file.getvalue().splitlines()
    at = lines.index("no longer runs: scan: ShaderError: no such function")
    assert lines[at + 1] == "  line 3: f(x)"
    text = " ".join(" ".join(lines).split())
    assert "OLD, NEW: medians of all turns. NEW − OLD: the mean of what neighbouring turns differ by" in text
    assert not judged.undecided_share
    ambiguous = replace(judged.rows[0], verdict=replace(judged.rows[0].verdict, kind=VerdictKind.AMBIGUOUS))
    assert replace(judged, rows=(ambiguous,)).undecided_share
    assert not replace(judged, rows=(replace(ambiguous, gated=False),)).undecided_share


def test_other_work_on_a_cpu_leaves_rows_open_and_is_printed(fake, monkeypatch):
    for side in SIDES:
        fake.said[side, "hello"]["adapter"]["adapter_type"] = "CPU"
        fake.said[side, "hello"]["versions"] = {"gridwise_py": "1", "wgpu": "1", "python": "3"}
    kinds = {}
    for load, judges in ((0.05, "0"), (0.45, "0"), (0.45, "1")):
        monkeypatch.setattr(machine_load.LoadWatch, "share", lambda self, load=load: load)
        monkeypatch.setenv("GRIDWISE_JUDGE_BUSY", judges)
        judged = _judged(fake)
        kinds[load, judges] = {str(row.verdict.kind) for row in judged.rows}
        console = Console(width=200, file=io.StringIO())
        console.print(JudgedTable(judged))
        text = console.file.getvalue()
        assert "(software on the CPU)" in text
        assert ("other work used 45 % of this machine's processors" in text) == (load > 0.1)
        assert ("GRIDWISE_JUDGE_BUSY=1 judges beside other work" in text) == ((load, judges) == (0.45, "0"))
    assert kinds == {(0.05, "0"): {"slower"}, (0.45, "0"): {"ambiguous"}, (0.45, "1"): {"slower"}}


def test_the_load_is_without_the_processes_that_measure():
    child = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        watches = machine_load.LoadWatch([child.pid]), machine_load.LoadWatch()
        time.sleep(0.5)
        without, with_it = (watch.share() for watch in watches)
    finally:
        child.kill()
        child.wait()
    assert without is None or with_it >= without


def test_one_pair_is_no_verdict(fake):
    settings = Settings(pairs=5, rounds=1)
    _at_turn(fake, 7, _raising(KeyboardInterrupt()))  # the second case of the second pair
    judged = judge(ENVIRONMENTS, _measured(settings), settings, threshold=0.01, gate=0.01)
    assert [row.verdict.old_units for row in judged.rows] == [2]
    (text,) = judged.notes
    assert "gpu_span: not judged: 1 pair of processes has measured it, of 5; a verdict needs 2" in text
    logs = [case["log_ratios"]["gpu_span"] for case in judged.to_json()["cases"]]
    assert sorted(map(len, logs)) == [1, 2], "and is kept"


def test_sides_with_other_run_time_checks_say_so(fake):
    settings = Settings(pairs=2, rounds=1)
    measured = _measured(settings)
    for case, levels in zip(measured.cases, (("all", "bounds"), ("all", "all"), ("all", None)), strict=False):
        case.shader_checks.update(zip(("OLD", "NEW"), levels, strict=True))
    (text,) = judge(ENVIRONMENTS, measured, settings, threshold=0.01, gate=0.01).notes
    assert text.endswith(f"take time: {measured.cases[0].name} (OLD all, NEW bounds)")


def test_an_interrupt_before_anything_was_measured_is_one(fake):
    _at_turn(fake, 1, _raising(KeyboardInterrupt()))
    with pytest.raises(KeyboardInterrupt):
        _measured(Settings(pairs=5, rounds=1))


def test_a_process_that_ctrl_c_ends_is_no_fault_of_its_case(fake, monkeypatch):
    """The terminal interrupts the processes, too, and theirs may be the news that comes first."""
    _at_turn(fake, 9, _raising(SideError("ended by SIGINT", is_dead=True, is_interrupted=True)))
    monkeypatch.setattr(turns._Both, "replace", lambda self, side: _raising(KeyboardInterrupt())())
    judged = _judged(fake, Settings(pairs=5, rounds=1))
    assert (len(judged.rows), judged.broken, judged.stopped) == (2, (), "interrupted")


def test_a_crash_is_not_forgotten_when_ctrl_c_comes_next(fake, monkeypatch):
    _at_turn(fake, 9, _raising(SideError("its process was ended by SIGSEGV", is_dead=True)))
    monkeypatch.setattr(turns._Both, "replace", lambda self, side: _raising(KeyboardInterrupt())())
    judged = _judged(fake, Settings(pairs=5, rounds=1))
    assert (len(judged.rows), judged.stopped) == (1, "interrupted")
    assert [text.rpartition(": ")[2] for text in judged.broken] == ["its process was ended by SIGSEGV"]


def test_a_process_that_starts_again_on_another_adapter_keeps_the_pairs_that_measured(fake, monkeypatch):
    monkeypatch.setattr(turns.os, "cpu_count", lambda: 2)

    def gpu_lost():
        hello = fake.said["NEW", "hello"]
        fake.said["NEW", "hello"] = {**hello, "adapter": {**hello["adapter"], "device": "llvmpipe"}}
        raise SideError("killed", is_dead=True)

    _at_turn(fake, 11, gpu_lost)
    judged = _judged(fake, Settings(pairs=5, rounds=1))
    assert "NEW (NEW) does not start again on the same adapter: device" in judged.stopped
    assert [row.verdict.old_units for row in judged.rows] == [3]


def test_a_process_that_does_not_start_again_keeps_the_pairs_that_measured(fake, monkeypatch):
    _at_turn(fake, 11, lambda: _no_more_starts(fake))
    judged = _judged(fake, Settings(pairs=5, rounds=1))
    assert judged.stopped == "NEW (NEW) does not start: no memory on the GPU"
    assert [row.verdict.old_units for row in judged.rows] == [3]
    assert [text.rpartition(": ")[2] for text in judged.broken] == ["killed"]


def test_a_later_pair_that_does_not_start_keeps_the_pairs_that_measured(fake, monkeypatch):
    monkeypatch.setattr(turns.os, "cpu_count", lambda: 2)

    def no_memory():
        fake.said["OLD", "hello"] = SideError("no memory on the GPU", is_dead=True)

    _at_turn(fake, 8, no_memory)
    judged = _judged(fake, Settings(pairs=5, rounds=1))
    assert judged.stopped == "OLD (OLD) does not start: no memory on the GPU"
    assert [row.verdict.old_units for row in judged.rows] == [2, 2]
    assert not judged.broken


@pytest.mark.parametrize(
    ("end", "code", "said"),
    [
        (lambda fake: os.kill(os.getpid(), signal.SIGTERM), 143, "ended by SIGTERM"),
        (lambda fake: os.kill(os.getpid(), signal.SIGINT), 130, "interrupted"),
        (_no_more_starts, 6, "NEW (.) does not start: no memory on the GPU"),
    ],
    ids=["SIGTERM", "Ctrl-C", "no start"],
)
def test_the_command_writes_what_was_measured(fake, monkeypatch, tmp_path, interruptible, end, code, said):
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(turns, "Worker", lambda environment: fake(next(sides)))
    monkeypatch.setattr(turns.random.Random, "sample", lambda self, items, count: list(items))  # OLD starts first
    monkeypatch.setattr(turns.os, "cpu_count", lambda: 2)
    versions = {"gridwise_py": "1", "wgpu": "1", "python": "3"}
    for side in SIDES:
        fake.said[side, "hello"]["versions"] = versions
    sides = iter([Environment(side, "checkout", Path("python")) for side in SIDES * 20])
    if code == 6:  # the process of NEW is started again
        sides = iter([Environment(side, "checkout", Path("python")) for side in (*SIDES * 3, "NEW")])
    _at_turn(fake, 11, lambda: end(fake))
    before = signal.getsignal(signal.SIGTERM)
    path = tmp_path / "ab.json"
    words = ["--mode", "batch,hot", "--n", 64, "--pairs", 5, "--rounds", 1, "--json", path]
    result = _run("ab", ".", ".", "copy", *words)
    assert result.exit_code == code, result.output
    assert signal.getsignal(signal.SIGTERM) == before
    document = json.loads(path.read_text())
    assert (document["complete"], document["stopped"].lower()) == (False, said.lower())
    assert sorted(row["verdict"]["pairs"] for row in document["rows"]) == ([3] if code == 6 else [2, 3])
    words = " ".join(result.output.split())
    assert f"STOPPED EARLY, this is a part of what was asked: {said}" in words
    assert "of a part of what was asked: " in words
    assert f"wrote {path}" in result.stderr.replace("\n", "")


def test_the_time_left():
    cases = [MeasuredCase(job) for job in CASES]
    pace = turns._Pace(5, together=2)  # processes start before pairs 1, 3 and 5
    pace.started(7.0)
    assert pace.left_s(1, cases, cases) is None, "nothing tells"
    pace.took(cases[0], 2.0)
    assert pace.left_s(1, cases[1:], cases) == 2 * 7 + 2.0 + 4 * (2.0 + 2.0), "the other one is taken for as long"
    pace.took(cases[1], 10.0)
    pace.took(cases[0], 1.0)
    assert pace.left_s(2, cases[:1], cases) == 2 * 7 + 1.0 + 3 * 11.0
    assert pace.left_s(3, (), cases) == 7 + 2 * 11.0
    cases[1].errors["NEW"] = "it fails"
    assert pace.left_s(3, (), cases) == 7 + 2 * 1.0, "and is left out of the others"
    assert pace.left_s(5, (), cases) == 0


@pytest.mark.parametrize("is_terminal", [False, True])
def test_what_is_said_of_progress(monkeypatch, capsys, is_terminal):
    monkeypatch.setenv("TTY_COMPATIBLE", "1" if is_terminal else "0")
    said = []
    progress = TurnsProgress(said.append)
    progress.step("pair 1 of 5, case 1 of 2: copy", None)
    progress.step("pair 1 of 5, case 2 of 2: scan", 100.0)
    progress.pair_done(1, 5, 80.0)
    progress.pair_done(5, 5, 0.0)
    assert said == ["pair 1 of 5, case 1 of 2: copy", "pair 1 of 5, case 2 of 2: scan; about 1 min 40 s left"]
    lines = ["pair 1 of 5: measured; about 1 min 20 s left", "pair 5 of 5: measured"]
    assert capsys.readouterr().err.splitlines() == ([] if is_terminal else lines)


def test_each_pair_is_told(fake):
    class Heard(Progress):
        def __init__(self):
            self.pairs = []

        def pair_done(self, pair, pairs, left_s):
            self.pairs.append((pair, pairs))

    heard = Heard()
    measure_in_turns(ENVIRONMENTS, lambda is_cpu: CASES, Settings(pairs=3, rounds=1), progress=heard)
    assert heard.pairs == [(1, 3), (2, 3), (3, 3)]


def test_different_adapters_cannot_be_compared(fake):
    fake.said["NEW", "hello"]["adapter"]["device"] = "Another GPU"
    with pytest.raises(turns.NotComparable, match="device: OLD runs on 'Fake GPU', NEW on 'Another GPU'"):
        _measured(Settings(pairs=2))
    fake.said["NEW", "hello"]["adapter"]["device"] = "Fake GPU"
    fake.said["NEW", "hello"]["has_timestamps"] = False
    with pytest.raises(turns.NotComparable, match="timestamps"):
        _measured(Settings(pairs=2))


def test_engines_name_one_adapter_each_in_its_way(fake, monkeypatch):
    fake.said["NEW", "hello"]["adapter"] |= {"vendor": "fake", "description": "a driver"}
    with pytest.raises(turns.NotComparable, match="vendor"):
        _measured(Settings(pairs=2))
    engines = dict(zip(SIDES, ("wgpu", "dawn"), strict=True))
    both = {side: replace(ENVIRONMENTS[side], engine=engines[side]) for side in SIDES}
    assert measure_in_turns(both, lambda is_cpu: CASES, Settings(pairs=2)).cases
    assert [both[side].variables()["GRIDWISE_ENGINE"] for side in SIDES] == ["wgpu", "dawn"]
    monkeypatch.chdir(ROOT)
    asked = []
    monkeypatch.setattr(
        "gridwise_py.bench.ab.turns.measure_in_turns",
        lambda environments, *_, **__: asked.append(environments) or 1 / 0,
    )
    _run("ab", ".", ".", "scan", "--engines", "wgpu,dawn")
    assert [asked[0][side].describe().rpartition(" on ")[2] for side in SIDES] == ["wgpu", "dawn"]
    for wrong in ("wgpu", "wgpu,blink"):
        assert f"{wrong!r} is not two of wgpu, dawn" in _run("ab", ".", ".", "scan", "--engines", wrong).output


def test_a_side_that_does_not_start(fake):
    fake.said["OLD", "hello"] = SideError("ModuleNotFoundError: wgpu", is_dead=True)
    with pytest.raises(gw.ArgumentError, match=r"OLD \(OLD\) does not start: ModuleNotFoundError: wgpu"):
        _measured(Settings(pairs=2))


def test_the_clock_is_held_by_the_process_that_waits(fake, monkeypatch):
    held = []

    class Held:
        def release(self):
            held.append("released")

    def hold(info, *, pci):
        held.append((info["device"], pci()))
        return Held()

    monkeypatch.setattr("gridwise_py.backend.clock.hold", hold)
    assert _measured(Settings(pairs=2, rounds=1)).clock == "held"
    fake.said["NEW", "hello"]["pci"] = "0000:1b:00.0"  # an older version does not tell
    assert _measured(Settings(pairs=2, rounds=1)).clock == "held"
    assert held == [("Fake GPU", None), "released", ("Fake GPU", "0000:1b:00.0"), "released"]
    for side in SIDES:
        fake.said[side, "hello"]["adapter"]["adapter_type"] = "CPU"
    assert _measured(Settings(pairs=2, rounds=1)).clock == "not applicable"
    assert len(held) == 4


def test_cpu_walls_are_shown_and_pass_the_gate(fake):
    working = {side: fake.said[side, "turn"] for side in SIDES}
    for side in SIDES:

        def turn(options, side=side):
            found = working[side](options)
            walls = [2 * x * (1.5 if side == "NEW" else 1) for x in found["gpu_span"]]
            return found | {"cpu_wall": walls, "gpu_span": [x / fake.factor[side] for x in found["gpu_span"]]}

        fake.said[side, "turn"] = turn
    judged = _judged(fake, jobs=[Job(CASES[0].case, Mode.LATENCY, 0)])
    kinds = {row.name: (row.verdict.kind.value, row.past_gate) for row in judged.rows}
    assert kinds == {"gpu_span": ("same", False), "cpu_wall": ("slower", False)}
    assert not judged.regressed


def test_how_much_a_turn_measures():
    for trial_ns, mode, trials, samples in (
        (10_000.0, Mode.BATCH, 50, 40), (3_300.0, Mode.BATCH, 200, 30), (100.0, Mode.BATCH, 1000, 200),
        (4e6, Mode.BATCH, 1, 5), (3e8, Mode.BATCH, 1, 5), (10_000.0, Mode.HOT, 1, 200), (4e6, Mode.COLD, 1, 5),
    ):  # fmt: skip
        case = MeasuredCase(Job(CASES[0].case, mode, 0))
        turns._size(case, trial_ns, Settings())
        assert (case.trials, case.samples) == (trials, samples)


# ---- the command


BAD_INPUT = [
    (["nonsense", "."], "is no side of a comparison"),
    ([".", ".", "scna"], "did you mean 'scan'"),
    ([".", ".", "--threshold", "0"], "must be over 0"),
    ([".", ".", "sort", "--datatype", "nonsense"], "is not one of"),
    ([".", ".", "matmul", "--datatype", "i32"], "matmul has no datatype i32"),
]


def test_bad_input(monkeypatch):
    monkeypatch.chdir(ROOT)
    for words, message in BAD_INPUT:
        result = _run("ab", *words)
        assert (result.exit_code, message in result.output) == (2, True), words


def test_options_may_stand_behind_the_dashes(fake, monkeypatch):
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(turns, "_check_same", lambda *_: None)
    asked = []
    monkeypatch.setattr(
        "gridwise_py.bench.ab.turns.measure_in_turns",
        lambda environments, jobs_at, settings, progress: asked.append((jobs_at(False), jobs_at(True))) or 1 / 0,
    )
    _run("ab", ".", ".", "--", "scan", "reduce", "--mode", "hot")
    gpu, cpu = asked[0]
    assert [str(job) for job in gpu[:2]] == ["scan add u32 hot n=2^16", "reduce add u32 hot n=2^16"]
    assert len(gpu) == 6
    assert len(cpu) == 2
    _run("ab", ".", ".", "quick", "scan")
    assert {job.case.primitive for job in asked[1][0]} == {"scan"}


class _Here:
    """The worker's program in this process, on the device that tests share."""

    pid = os.getpid()

    def __init__(self, environment):
        self._program = worker._Worker()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def send(self, do, **options):
        self._sent = {"do": do, **options} | ({"seconds": 0.0} if do == "warm" else {})

    def answer(self):
        found = json.loads(json.dumps(worker._answer(self._program, json.loads(json.dumps(self._sent)))))
        if "error" in found:
            raise SideError(found["error"])
        return found

    def ask(self, do, **options):
        self.send(do, **options)
        return self.answer()


def test_kernels_are_measured_in_every_mode(device, tmp_path, monkeypatch):
    """Of a class that is not public: each side has it from its own bench."""
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(turns, "Worker", _Here)
    monkeypatch.setattr(worker, "_FLUSH_ITEMS", 1 << 12)
    monkeypatch.setattr(gw, "request_device", lambda adapter: device)
    path = tmp_path / "ab.json"
    words = ["--n", 1000, "--datatype", "u32", "--pairs", 2, "--rounds", 1, "--turn-s", "0.001", "--gate", "99%"]
    result = _run("ab", ".", ".", "scatter", *words, "--mode", "batch,cold,latency", "--all", "--json", path)
    assert result.exit_code in (0, 1), result.output
    document = json.loads(path.read_text())
    found = {(row["case"].split(" n=")[0], row["name"]) for row in document["rows"]}
    spans = ("scatter u32", "scatter u32 cold", "scatter u32 latency")
    if "timestamp-query" in device.features:
        assert found == {*((case, "gpu_span") for case in spans), ("scatter u32 latency", "cpu_wall")}
        kinds = {row["name"]: row["verdict"]["kind"] for row in document["rows"]}
        assert (kinds["gpu_span"], kinds["cpu_wall"] == "same code") == ("same code", False), "both are this version"
        only = _run("ab", ".", ".", "scatter", *words, "--mode", "batch,latency", "--json", path, "--overwrite")
        cases = {row["case"] for row in json.loads(path.read_text())["rows"]}
        assert (only.exit_code, cases) == (0, {"scatter u32 latency n=1,000"}), only.output
        none = _run("ab", ".", ".", "scatter", *words, "--mode", "batch")
        assert (none.exit_code, "Same code: nothing had to be measured." in none.stdout) == (0, True), none.output
    else:
        assert {name for _, name in found} == {"cpu_wall"}
    assert all(row["old_ns"] > 0 and row["new_ns"] > 0 for row in document["rows"])
    assert document["complete"]
    assert worker._Worker()._class("Copy", "copy") is gw.Copy
    with pytest.raises(RuntimeError, match="its gridwise_py measures no newer_one"):
        worker._Worker()._class("_NewerOne", "newer_one")


def test_tables_and_a_limit_of_ambiguous_rows_as_compare_has_them(fake, monkeypatch, tmp_path, capfd):
    monkeypatch.chdir(ROOT)
    rows, sides = tmp_path / "rows.csv", cycle(ENVIRONMENTS.values())
    monkeypatch.setattr(turns, "Worker", lambda environment: fake(next(sides)))
    monkeypatch.setattr(turns.random.Random, "sample", lambda self, items, count: list(items))  # OLD starts first
    factors = cycle([1.0, 1.0, 1.5, 1.5])  # of both turns in each pair
    fake.factor = defaultdict(lambda: 1.0)
    for side in SIDES:
        fake.said[side, "hello"]["versions"] = {"gridwise_py": "1", "wgpu": "1", "python": "3"}
    turn = fake.said["NEW", "turn"]

    def slower(options):
        fake.factor["NEW"] = next(factors)
        return turn(options)

    fake.said["NEW", "turn"] = slower
    words = ["ab", ".", ".", "copy", "--n", 64, "--pairs", 2, "--rounds", 1, "--csv", rows, "--markdown", "-"]
    done = _run(*words)
    assert done.exit_code == 0, done.output
    assert _run(*words, "--max-ambiguous", "50%").exit_code == 7
    with rows.open(newline="") as file:
        (row,) = csv.DictReader(file)
    assert (row["case"], row["name"], row["verdict"]) == ("copy u32 n=64", "gpu_span", "ambiguous")
    assert float(row["new_ns"]) > float(row["old_ns"]) > 0
    assert "| copy u32 n=64 | gpu\\_span |" in capfd.readouterr().out
    assert "NEW − OLD" in done.stderr


@pytest.mark.slow
@pytest.mark.gpu
def test_the_command(tmp_path, monkeypatch):
    monkeypatch.chdir(ROOT)
    path = tmp_path / "ab.json"
    words = ["--n", 1000, "--pairs", 2, "--rounds", 1, "--turn-s", "0.001", "--json", path]
    result = _run(
        "ab", ".", sys.executable, "--", "reduce", *words, "--gate", "99%", "--mode", "batch,latency", "--all"
    )
    assert result.exit_code == 0, result.output
    assert "OLD: checkout . (" in result.stdout
    assert f"NEW: interpreter {sys.executable}: gridwise_py {gw.__version__}" in " ".join(result.stdout.split())
    document = json.loads(path.read_text())
    assert str(ROOT) not in path.read_text()
    assert [row["name"] for row in document["rows"]] in (["gpu_span", "gpu_span", "cpu_wall"], ["cpu_wall"] * 2)
    assert document["sides"]["OLD"]["versions"] == document["sides"]["NEW"]["versions"]
    assert all(row["old_ns"] > 0 and row["new_ns"] > 0 for row in document["rows"])


def test_a_wrong_result_is_not_timed(fake, monkeypatch):
    monkeypatch.setattr(turns._Inputs, "wrong", lambda self, case, outputs: outputs.get("output"))
    fake.said["NEW", "prepare"] = {"outputs": {"output": "item 3 is 1, expected 2"}}
    judged = _judged(fake, jobs=CASES[:1])
    assert judged.wrong == ("NEW: copy u32 n=64: item 3 is 1, expected 2",)
    assert not judged.rows
    assert not judged.broken
    assert [word[1] for word in fake.log].count("turn") == 0
    assert [word[1] for word in fake.log].count("start") == 2, "no further process for nothing"


@pytest.mark.parametrize(
    ("error", "told"),
    [(OwnCodeError("line 3: KeyError: 'x'"), "line 3: KeyError: 'x'"), (OSError("no room"), "OSError: no room")],
)
def test_an_error_of_a_users_file_has_no_other_name(error, told):
    def release():
        raise error

    assert worker._answer(SimpleNamespace(release=release), {"do": "release"}) == {"error": told}


@pytest.mark.gpu
@pytest.mark.slow
def test_a_wrong_result_has_its_exit_code(tmp_path, monkeypatch):
    """A copy of the library, whose reduce adds one."""
    for name in ("gridwise_py", "shaders"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    with (tmp_path / "gridwise_py" / "runtime" / "array.py").open("a") as file:
        file.write("\nArray.to_numpy = lambda self, _real=Array.to_numpy: _real(self) + 1\n")
    result = _run("ab", ROOT, tmp_path, "reduce", "--n", 100, "--pairs", 2, "--rounds", 1, "--turn-s", "0.001")
    assert result.exit_code == 4, result.output
    assert "wrong result: NEW: reduce add u32 n=100: item 0 is" in " ".join(result.output.split())


def test_the_files_of_inputs_have_a_limit(fake, tmp_path, monkeypatch):
    """A suite for GPUs has 143 GiB of inputs."""
    jobs = [Job(Case.build("copy", n, "u32", "add"), Mode.BATCH, i) for i, n in enumerate((1000, 2000, 3000, 4000))]
    read, kept = {}, []

    def prepare(options):
        (path,) = options["inputs"].values()
        read.setdefault(np.load(path).size, set()).add(np.load(path).tobytes())
        folder = Path(path).parent
        kept.append(sum(file.stat().st_size for file in folder.glob("*.npy")))
        return {"outputs": {}}

    for side in SIDES:
        fake.said[side, "prepare"] = prepare
    monkeypatch.setattr(turns, "_MOST_KEPT_BYTES", 20_000)
    measured = _measured(Settings(pairs=3, rounds=1), jobs)
    assert not any(case.errors for case in measured.cases)
    assert {size: len(contents) for size, contents in read.items()} == dict.fromkeys((1000, 2000, 3000, 4000), 1)
    assert max(kept) <= 20_000 + 4 * 4000 + 200, "and those of the case that is measured"


def test_inputs_that_do_not_fit_are_no_fault_of_a_side(fake, monkeypatch):
    def full(path, items):
        if items.size == 64:
            raise OSError(28, "No space left on device")
        save(path, items)

    save = np.save
    monkeypatch.setattr(turns.np, "save", full)
    jobs = [CASES[0], Job(Case.build("copy", 128, "u32", "add"), Mode.BATCH, 1)]
    measured = _measured(Settings(pairs=2, rounds=1), jobs)
    judged = judge(ENVIRONMENTS, measured, Settings(), threshold=0.01, gate=0.5)
    assert (len(judged.rows), judged.broken, judged.regressed) == (1, (), False)
    assert "OLD: its inputs cannot be kept: [Errno 28] No space left on device" in judged.notes[0]


def test_nothing_is_left_behind(fake, tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    import tempfile

    monkeypatch.setattr(tempfile, "tempdir", None)
    fake.said["NEW", "turn"] = KeyboardInterrupt()
    with contextlib.suppress(KeyboardInterrupt):
        _measured(Settings(pairs=2))
    assert list(tmp_path.iterdir()) == []
    assert [word[1] for word in fake.log].count("start") == [word[1] for word in fake.log].count("end") == 2
