"""What a user's file does while a command runs: it changes folders, prints, or writes; outputs stay what was asked."""

import csv
import json
import os
import subprocess
import sys

import pytest

from gridwise_py.bench.results.reader import read_results

pytestmark = [pytest.mark.gpu, pytest.mark.needs("linux")]

TEXT = """
import os, numpy as np, gridwise_py as gw
os.chdir("other")  # from the folder that the command was started in, in each process
print("printed at import")
os.system("echo printed by a child")

@gw.benchmarked(n=[64], k=[1, 2], mode="hot")
def sums(device, n, k):
    print("printed by the benchmark")
    x = np.ones(n, np.float32)
    return gw.Benchmark(gw.Reduce(device, "f32"), inputs={"input": x}, reference=lambda: np.float32(n))
"""
SHORT = ["--warmup-s", "0.01", "--sampling-s", "0.02", "-q"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "other").mkdir()
    (tmp_path / "first.py").write_text(TEXT)
    (tmp_path / "second.py").write_text(TEXT.replace('os.chdir("other")', ""))
    (tmp_path / "other" / "out.json").write_text("precious")
    monkeypatch.setenv("GRIDWISE_CACHE_DIR", "cache")
    return tmp_path


def _run(*words, **options):
    command = [sys.executable, "-m", "gridwise_py", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)


@pytest.mark.slow
def test_what_a_file_does_moves_and_spoils_no_output(folder):
    done = _run("bench", "first.py", "second.py", *SHORT, "--processes", "2", "--json", "out.json", "--csv", "-")
    assert done.returncode == 0, done.stderr
    assert {row["primitive"] for row in csv.DictReader(done.stdout.splitlines())} == {"first.sums", "second.sums"}
    assert "printed" not in done.stdout
    for said in ("printed at import", "printed by a child"):
        assert said in done.stderr
    assert "wrote out.json" in done.stderr
    assert {one.primitive for one in read_results(folder / "out.json").results} == {"first.sums", "second.sums"}
    assert (folder / "other" / "out.json").read_text() == "precious"
    assert sorted(os.listdir(folder / "other")) == ["out.json"]
    assert (folder / "cache").is_dir()


@pytest.mark.slow
def test_json_on_stdout_is_json_whatever_a_file_prints(folder):
    done = _run("bench", "first.py", *SHORT, "--processes", "1", "--json", "-")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["schema"] == "gridwise.bench"
    assert "printed by the benchmark" in done.stderr
    done = _run("tune", "first.py", "--tune", "k", "--rounds", "3", "--format", "json")
    assert json.loads(done.stdout)["rounds"] == 3, done.stderr


@pytest.mark.slow
def test_a_benchmark_that_exits_or_forks_fails_alone(folder):
    """The exit code of a command is a verdict, and a child is not the command."""
    (folder / "mine.py").write_text(
        TEXT.replace('os.chdir("other")', "")
        + """
@gw.benchmarked(n=[64], mode="hot", how=["exit", "fork"])
def bad(device, n, how):
    if how == "exit":
        raise SystemExit(0)
    if os.fork():
        os.wait()
    return gw.Benchmark(gw.Reduce(device, "f32"), inputs={"input": np.ones(n, np.float32)})
"""
    )
    done = _run("bench", "mine.py", *SHORT, "--processes", "1", "--json", "out.json")
    assert (done.returncode, done.stderr.count("wrote out.json")) == (2, 1)
    results = read_results(folder / "out.json").results
    errors = {one.axes["how"]: one.error for one in results if one.primitive == "mine.bad"}
    assert errors == {"exit": "line 16: SystemExit: 0", "fork": None}


@pytest.mark.parametrize("command", ["bench mine.py --json out.json", "ab . . mine.py"])
def test_a_file_that_ends_the_process_is_an_error(folder, command):
    """No exit code of its own stands for results, and none is missing in silence."""
    (folder / "mine.py").write_text("from os import _exit\n_exit(0)\n")
    done = _run(*command.split())
    assert (done.returncode, "mine.py cannot be imported: line 2: SystemExit: os._exit(0)" in done.stderr) == (2, True)


@pytest.mark.parametrize("words", ["compare x good.json", "report x -o out.html", "trace x -o t"])
def test_what_is_no_regular_file_or_too_large_is_not_read(tmp_path, words):
    os.mkfifo(tmp_path / "pipe")
    with (tmp_path / "huge").open("wb") as file:
        file.truncate(5 << 30)
    (tmp_path / "good.json").write_text("{}")
    (tmp_path / "zero").symlink_to("/dev/zero")
    for name in ("pipe", "zero", "huge"):
        (tmp_path / "x").unlink(missing_ok=True)
        (tmp_path / "x").symlink_to(name)
        said = "bytes, and files have at most" if name == "huge" else "it is no regular file"
        done = _run(*words.split(), cwd=tmp_path, timeout=60)
        assert (done.returncode, said in done.stderr) == (2, True), (name, done.stderr)
