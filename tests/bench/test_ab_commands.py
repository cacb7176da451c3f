"""`gridwise ab --command`: commands run in turns, read, judged by pairs of runs, and refused with a remedy."""

import json
import os
import shlex
import subprocess
import sys
import time
from types import SimpleNamespace

import pytest
from click.testing import CliRunner

import gridwise_py as gw
from gridwise_py.bench.ab import commands
from gridwise_py.bench.ab.commands import CommandSettings, find_command, measure_commands
from gridwise_py.bench.ab.judged import judge
from gridwise_py.bench.ab.taken import SIDES, MeasuredRows, TakenRow
from gridwise_py.bench.ab.turns import MeasuredCase
from gridwise_py.bench.results.tool_files import ToolFormat, ToolRow, ToolRun
from gridwise_py.cli import main

#: Prints the times of two benchmarks as hyperfine does. Words: a scale, a file or "-", the name of the second.
PROGRAM = """
import json, sys
scale, out, name = float(sys.argv[1]), sys.argv[2], sys.argv[3]
results = [
    {"command": "first", "mean": 1.0, "times": [0.010, 0.0101, 0.0102, 0.0103]},
    {"command": name, "mean": 1.0, "times": [scale * t for t in (0.02, 0.0201, 0.0203, 0.0202)]},
]
text = json.dumps({"results": results})
print(text) if out == "-" else open(out, "w").write(text)
"""


@pytest.fixture
def program(tmp_path):
    path = tmp_path / "a program.py"
    path.write_text(PROGRAM)

    def command(scale, out="{out}", name="second"):
        return f"{shlex.quote(sys.executable)} {shlex.quote(str(path))} {scale} {out} {name}"

    return command


def _ab(*words):
    return CliRunner().invoke(main, ["ab", "--command", *map(str, words)])


# ---- with processes


def test_a_program_that_writes_a_file_and_one_that_prints(program, tmp_path):
    out = tmp_path / "ab.json"
    done = _ab(program(1), program(1.2, out="-"), "--pairs", 2, "--format", "hyperfine", "--json", out)
    assert done.exit_code == 1, done.output
    data = json.loads(out.read_text())
    rows = {row["case"]: row for row in data["rows"]}
    assert {name: row["verdict"]["kind"] for name, row in rows.items()} == {"first": "same", "second": "slower"}
    assert rows["second"]["verdict"]["ratio"] == pytest.approx(1.2)
    assert rows["second"]["old_ns"] == pytest.approx(20.15e6)
    assert "a program.py" in data["sides"]["OLD"]["given"]
    assert str(tmp_path) not in out.read_text(), "folders describe the machine"
    assert "2 pairs of runs in turns" in done.output


def test_a_benchmark_of_one_side_is_a_note_and_single_ones_are_a_pair(program):
    done = _ab(program(1), program(1, name="third"), "--pairs", 2)
    assert done.exit_code == 0, done.output
    assert "only in OLD: second" in done.output
    assert "only in NEW: third" in done.output
    one = ["--format", "numbers", "--unit", "us", "--pairs", 2]
    done = _ab(f"{sys.executable} -c 'print(1.25)'", f"{sys.executable} -c 'print(1.5)'", *one)
    assert "time cpu_wall" in " ".join(done.output.split())
    assert "1.25 µs" in done.output


PYTHON = shlex.quote(sys.executable)


@pytest.mark.parametrize(
    ("new", "options", "why"),
    [
        (f"{PYTHON} -c 'raise SystemExit(\"no GPU\")'", (), "failed with exit code 1: no GPU"),
        ("no-such-program --json {out}", (), "does not start: No such file or directory"),
        (f"{PYTHON} -c ''", (), "printed nothing: give it its option that writes a file of JSON"),
        (f"{PYTHON} -c 'print(\"Hello\")'", (), "printed 'Hello', not JSON"),
        (f"{PYTHON} -c '0' {{out}}", (), "wrote no file to {out}"),
        (f"{PYTHON} -c 0 > {{out}}", (), f"no shell reads it; write it as sh -c '{PYTHON} -c 0 > {{out}}', in quotes"),
        (f"{PYTHON} -c 'print(1.5)'", (), "add --format numbers and --unit"),
        (f"{PYTHON} -c 'print(dict())'", (), "this is JSON, but not of nvbench"),
        ("a 'b", (), 'NEW: "a \'b" is no command: No closing quotation'),
        ("''", (), "NEW is an empty command"),
        ("x", ("--format", "numbers"), "add --unit ns, us, ms or s"),
        ("x", ("--n", "2^10"), "--n has no meaning with --command"),
        ("x", ("scan",), "'scan' has no meaning with --command"),
    ],
)
def test_commands_that_cannot_be_measured(program, new, options, why):
    done = _ab(program(1), new, *options)
    assert done.exit_code == 2
    assert why in done.output, done.output
    assert "Traceback" not in done.output


def test_no_benchmark_in_common(program, tmp_path):
    nothing = tmp_path / "other.py"
    nothing.write_text(PROGRAM.replace('"first"', '"another"'))
    done = _ab(program(1), program(1, name="third").replace("a program.py", "other.py"))
    assert done.exit_code == 2
    assert "OLD has first, second; NEW has another, third; give them the same names" in done.output


def test_options_of_commands_need_command():
    done = CliRunner().invoke(main, ["ab", "HEAD", ".", "--unit", "ms"])
    assert (done.exit_code, "add --command" in done.output) == (2, True)


def test_a_run_that_hangs_is_ended_with_what_it_started(tmp_path):
    # The program starts another one, which holds its output open, until it may go on or a minute has passed.
    go_on, pid, mark = tmp_path / "go on", tmp_path / "pid", tmp_path / "mark"
    inner = (
        f"import os, time; open({str(pid)!r}, 'w').write(str(os.getpid()))\n"
        f"for _ in range(6000): os.path.exists({str(go_on)!r}) or time.sleep(0.01)\n"
        f"open({str(mark)!r}, 'w')"
    )
    outer = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {inner!r}])"
    command = find_command(f"{PYTHON} -c {shlex.quote(outer)}", "OLD")
    with pytest.raises(gw.ArgumentError, match=r"did not end within 0.5 s; raise --timeout"):
        measure_commands(dict.fromkeys(SIDES, command), CommandSettings(timeout_s=0.5))
    assert not mark.exists(), "it was not waited for"
    go_on.touch()
    if os.name != "nt" and pid.exists():  # a busy machine may not have come so far
        _wait_for_the_end_of([pid.read_text()])
        assert not mark.exists(), "it was ended"


@pytest.mark.skipif(os.name == "nt", reason="Windows has no process groups")
def test_what_a_run_leaves_behind_does_not_run_beside_the_next(tmp_path):
    pids = tmp_path / "pids"
    program = (
        "import subprocess, sys; p = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)']); "
        f"open({str(pids)!r}, 'a').write(f'{{p.pid}}\\n'); print(1.5)"
    )
    command = find_command(f"{PYTHON} -c {shlex.quote(program)}", "OLD")
    settings = CommandSettings(pairs=2, form="numbers", unit="ms")
    measured = measure_commands(dict.fromkeys(SIDES, command), settings)
    assert len(measured.cases[0].taken) == 2
    left = pids.read_text().split()
    assert len(left) == 6
    _wait_for_the_end_of(left)


def _wait_for_the_end_of(pids):
    deadline_s = time.monotonic() + 60
    while any(map(_runs, pids)):
        assert time.monotonic() < deadline_s, f"processes {pids} go on"
        time.sleep(0.01)


def _runs(pid):
    done = subprocess.run(["ps", "-o", "stat=", "-p", pid], capture_output=True, text=True, check=False)
    return done.stdout.strip() != "" and not done.stdout.startswith("Z")


def test_output_with_a_mark_of_its_encoding_and_output_that_is_too_long(monkeypatch):
    text = json.dumps({"results": [{"command": "a", "mean": 1.0, "times": [1.0, 1.1]}]})
    marked = find_command(f"{PYTHON} -c {shlex.quote(f'print(chr(0xfeff) + {text!r})')}", "OLD")
    monkeypatch.setenv("PYTHONIOENCODING", "utf-8")
    measured = measure_commands(dict.fromkeys(SIDES, marked), CommandSettings(pairs=2))
    assert [case.name for case in measured.cases] == ["a"]
    monkeypatch.setattr(commands, "_MOST_BYTES", 10)
    with pytest.raises(gw.ArgumentError, match=r"bytes, and at most 10 are read"):
        measure_commands(dict.fromkeys(SIDES, marked), CommandSettings(pairs=2))


# ---- without processes


@pytest.fixture
def runs(monkeypatch):
    """Replaces runs: returns the order of the sides; `times` has what each returns."""

    made = SimpleNamespace(order=[], times=lambda side, run: {"a": [100.0 + run, 101.0 + run]})

    def run(command, side, settings):
        made.order.append(side)
        found = made.times(side, made.order.count(side))
        if isinstance(found, BaseException):
            raise found
        rows = [
            ToolRow(name, (), {}, error=times) if isinstance(times, str) else ToolRow(name, (tuple(times),), {})
            for name, times in found.items()
        ]
        return ToolRun(ToolFormat.HYPERFINE, tuple(rows), "unknown machine")

    monkeypatch.setattr(commands, "_run", run)
    return made


def _judged(pairs=6, threshold=0.01):
    settings = CommandSettings(pairs=pairs)
    sides = {side: find_command(side.lower(), side) for side in SIDES}
    return judge(sides, measure_commands(sides, settings), settings, threshold=threshold, gate=threshold)


def test_runs_alternate_and_the_first_of_each_does_not_count(runs):
    runs.times = lambda side, run: {"a": [1e9 if run == 1 else 100.0, 1e9 if run == 1 else 100.5]}
    judged = _judged(pairs=4)
    first, second = runs.order[:2]
    assert {first, second} == set(SIDES)
    assert runs.order[2:] == [first, second, second, first] * 2
    assert judged.rows[0].old_ns == 100.25


def test_a_drift_of_the_machine_is_no_difference(runs):
    """Each run is 2 % longer than the one before: the sum over OLD NEW NEW OLD is 0."""
    level = iter(1.02**i for i in range(100))
    runs.times = lambda side, run: {"a": [1000.0 * next(level)]}
    (row,) = _judged(pairs=8).rows
    assert row.verdict.ratio == pytest.approx(1, abs=1e-9)
    assert row.verdict.kind.value == "ambiguous", "the drift is part of the spread"


def test_a_benchmark_that_only_new_fails_no_longer_runs(runs):
    runs.times = lambda side, run: {"a": [1.0, 2.0], "b": "out of memory" if side == "NEW" else [1.0]}
    judged = _judged()
    assert (judged.broken, judged.regressed) == (("b: out of memory",), True)
    runs.times = lambda side, run: {"a": [1.0, 2.0], "b": "out of memory" if side == "OLD" else [1.0]}
    assert not _judged().broken


def test_a_run_that_fails_later_leaves_what_was_measured(runs):
    good = runs.times
    for error in (gw.ArgumentError("NEW failed"), KeyboardInterrupt()):
        runs.order.clear()
        runs.times = lambda side, run, error=error: error if (side, run) == ("NEW", 4) else good(side, run)
        judged = _judged()
        assert [row.verdict.pairs for row in judged.rows] == [2]
        assert judged.stopped is not None
        assert judged.measured.pairs == (2, 2)
    runs.order.clear()
    runs.times = lambda side, run: gw.ArgumentError("NEW failed") if side == "NEW" else good(side, run)
    with pytest.raises(gw.ArgumentError, match="NEW failed"):
        _judged()


def test_the_step_of_a_gpus_clock_is_not_in_cpu_walls():
    for kind, error in ((MeasuredRows, 0.1), (MeasuredCase, 0.0)):
        case = kind("a")
        case.step_ns = 10.0
        row = TakenRow([0.0], {side: [100.0] for side in SIDES})
        case.taken.append({"gpu_span": row, "cpu_wall": row})
        assert case.error == {"gpu_span": pytest.approx(0.1), "cpu_wall": pytest.approx(error)}


def test_times_in_whole_steps_of_a_clock_are_as_uncertain_as_the_step(runs):
    # Whole milliseconds: 12 and 13 may be 12.4 and 12.6.
    runs.times = lambda side, run: {"a": [12e6 if side == "OLD" else 13e6] * 2}
    (row,) = _judged().rows
    assert row.verdict.kind.value == "ambiguous"
    assert row.verdict.low < 1.01
    # The same with times of a fine clock.
    runs.times = lambda side, run: {"a": [(12e6 if side == "OLD" else 13e6) + 7 * run + len(side)]}
    (row,) = _judged().rows
    assert row.verdict.kind.value == "slower"
