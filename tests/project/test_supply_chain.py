"""Packages by their hashes, and the question whether a vulnerability is known of one."""

import json
import os
import re
import subprocess
import sys
import tomllib

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from helpers.paths import ROOT

LOCK = ROOT / "requirements-ci.lock"
pytestmark = [pytest.mark.needs("the repository", "posix"), pytest.mark.slow]


def _pins(text):
    lines = [line.partition(" #")[0].rstrip(" \\") for line in text.splitlines() if re.match(r"[\w.-]+==", line)]
    found = [Requirement(line) for line in lines]
    return {canonicalize_name(pin.name): next(iter(pin.specifier)).version for pin in found}


def test_the_lock_has_the_versions_of_the_constraints_and_hashes_of_all():
    locked = _pins(LOCK.read_text(encoding="utf-8"))
    pinned = _pins((ROOT / "constraints.txt").read_text(encoding="utf-8"))
    assert len(locked) > 40
    assert {name: version for name, version in locked.items() if pinned.get(name) != version} == {}, "make lock"
    groups = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["dependency-groups"]
    # No test runs on what these groups bring.
    texts = [text for name in ("docs", "tools", "release") for text in groups[name] if isinstance(text, str)]
    assert set(pinned) - set(locked) <= {canonicalize_name(Requirement(text).name) for text in texts}, "make lock"
    blocks = re.split(r"^(?=[\w.-]+==)", LOCK.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    assert all(re.search(r"--hash=sha256:[0-9a-f]{64}\b", block) for block in blocks)
    assert not re.search(r"https?://|--index|--find-links", LOCK.read_text(encoding="utf-8"))


@pytest.fixture
def audit(tmp_path):
    """A function that runs the script with a pip-audit which prints a text and ends with a code."""

    def run(text, code=0, seconds=0.0):
        program = tmp_path / "pip-audit"
        said = text if isinstance(text, str) else json.dumps(text)
        program.write_text(
            f"#!{sys.executable}\nimport sys, time\ntime.sleep({seconds})\nprint({said!r}, end='')\nsys.exit({code})\n"
        )
        program.chmod(0o755)
        command = ["sh", ROOT / "scripts" / "audit.sh", program if text is not None else "/nonexistent/pip-audit"]
        limit = {"AUDIT_S": "2" if seconds else "60"}
        done = subprocess.run(command, env=os.environ | limit, capture_output=True, text=True)
        return done.returncode, done.stdout

    return run


def test_a_known_vulnerability_fails(audit):
    known = {"name": "x", "version": "1", "vulns": [{"id": "PYSEC-1", "fix_versions": ["2"]}]}
    code, text = audit({"dependencies": [{"name": "y", "version": "3", "vulns": []}, known]}, 1)
    assert code == 1
    assert "PYSEC-1" in text


def test_nothing_known_is_said_with_how_many_were_asked_for(audit):
    skipped = {"name": "z", "skip_reason": "not found"}
    code, text = audit({"dependencies": [{"name": "y", "version": "3", "vulns": []}, skipped]})
    assert (code, text) == (0, "audit: no vulnerability is known of 1 packages, 1 not found there\n")


@pytest.mark.parametrize("answer", ["", "no json", "[]", {"dependencies": [{"name": "z", "skip_reason": "not found"}]}])
def test_an_unreachable_database_is_no_failure_and_is_said(audit, answer):
    code, text = audit(answer, 1)
    assert code == 0
    assert "NOTHING WAS AUDITED" in text


def test_neither_a_program_that_hangs_nor_none_is_a_failure(audit):
    for code, text in (audit("", seconds=30), audit(None)):
        assert code == 0
        assert "NOTHING WAS AUDITED" in text
