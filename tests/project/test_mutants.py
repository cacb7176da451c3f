"""What tries mutants tells those that tests notice from those that they do not."""

import importlib
import json
import subprocess
import sys

import pytest

from helpers.paths import ROOT

SCRIPTS = ROOT / "scripts"
pytestmark = [pytest.mark.slow, pytest.mark.needs("the repository")]

MODULE = """
LIMIT = 3


def is_few(n: int) -> bool:
    return n < LIMIT


def counted_down(n: int) -> int:
    while n > 0:
        n -= 1
    return 0
"""
TESTS = """
from gridwise_py.few import counted_down, is_few


def test_few():
    assert is_few(2) and not is_few(3)


def test_counted_down():
    assert counted_down(2) == 0
"""
CONFTEST = """
from pathlib import Path


def pytest_addoption(parser):
    parser.addoption("--costs", type=Path)


def pytest_sessionfinish(session):
    if session.config.option.costs:
        session.config.option.costs.write_text("{}")
"""
#: What stands there, what is put there, and what notices it.
MUTANTS = [
    ("    return n < LIMIT", "    return n <= LIMIT", "tests/test_few.py::test_few"),
    ("LIMIT = 3", "LIMIT = 2", "tests/test_few.py::test_few"),  # runs at import
    ("        n -= 1", "        n += 1", "tests/test_few.py::test_counted_down (no end)"),
    ("    while n > 0:", "    while n > 1:", None),
]


def test_mutants_are_killed_or_live_and_lost_ones_are_named(tmp_path):
    tree, stored = tmp_path / "tree", tmp_path / "stored.json"
    for name, text in {"gridwise_py/few.py": MODULE, "tests/test_few.py": TESTS, "conftest.py": CONFTEST}.items():
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text(text)
    (tree / "gridwise_py/__init__.py").write_text("")
    common = {"group": "plans", "place": "gridwise_py/few.py", "line": 1, "what": "", "struck": ""}
    rows = [{**common, "old": old, "new": new} for old, new, _ in MUTANTS]
    stored.write_text(json.dumps([*rows, {**rows[0], "old": "gone", "struck": "not tried"}]))

    def run(*words):
        command = [sys.executable, SCRIPTS / "mutate.py", f"--file={stored}", f"--tree={tree}", "--cpu-s=1"]
        return subprocess.run([*command, *words], capture_output=True, text=True, timeout=300)

    def killers(name):
        return [row.get("results", {}).get(name, {}).get("killed_by") for row in json.loads(stored.read_text())]

    done = run("before")
    assert done.returncode == 0, done.stdout + done.stderr
    assert killers("before") == [*(by for *_, by in MUTANTS), None]
    assert "0 mutants to try" in run("before").stdout, "it goes on where it was"
    (tree / "tests/test_few.py").write_text(TESTS.replace("not is_few(3)", "is_few(1)"))
    done = run("after", "--table", "before", "after")
    assert killers("after") == [None, MUTANTS[1][2], MUTANTS[2][2], None, None]
    assert done.returncode == 1
    assert "| plans | 4 | 3 | 2 | 1 |" in done.stdout
    assert "LOST gridwise_py/few.py:1" in done.stdout
    assert "  - " + MUTANTS[0][0] in done.stdout


@pytest.mark.parametrize("group", ["timing", "kernels"])
def test_a_sample_is_of_code_that_still_reads(monkeypatch, group):
    monkeypatch.syspath_prepend(SCRIPTS)
    import mutants

    found = mutants.sample(group, 40, seed=1)
    assert [m.key for m in found] == [m.key for m in mutants.sample(group, 40, seed=1)]
    assert len(found) == 40
    for mutant in found:
        text = (ROOT / mutant.place).read_text(encoding="utf-8")
        changed = mutant.changed(text)
        assert changed != text
        assert not mutant.old.splitlines()[-1].lstrip().startswith(("//", "#"))
        if mutant.place.endswith(".py"):
            compile(changed, mutant.place, "exec")


def test_the_choice_takes_what_kills_most_for_its_cost_within_its_bounds(monkeypatch):
    monkeypatch.syspath_prepend(SCRIPTS)
    choose_tests = importlib.import_module("choose_tests")

    def test(name, core_s, **bits):
        return choose_tests.Candidate(f"tests/{name}", core_s, **bits)

    killer, dear = test("a.py::killer", 1.0, kills=0b11, pipelines=0b1), test("a.py::dear", 50.0, kills=0b111)
    shares = test("a.py::same[1]", 0.1, pipelines=0b1, lines=0b1111)
    alone = test("b.py::same[2]", 0.1, pipelines=0b110, lines=0b1111)
    chosen = choose_tests.choose([dear, alone, shares, killer], core_s=2.0, pipelines=2)
    assert [one.name.partition("::")[2] for one in chosen.tests] == ["killer", "same[1]"]
    assert chosen.killed == 0b11
    assert choose_tests.left_out([dear, alone, shares, killer], chosen) == {"a.py": {"dear": []}, "b.py": {"same": []}}
