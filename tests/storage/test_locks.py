"""Of several processes that lock a path, one has it; a process that ends in any way locks nobody out."""

import errno
import os
import subprocess
import sys

import pytest

from gridwise_py.storage import locks
from gridwise_py.storage.locks import Locked, locked

OTHER = """
import sys
from pathlib import Path
from gridwise_py.storage.locks import locked
with locked(Path(sys.argv[1])):
    print("locked", flush=True)
    sys.stdin.readline()
"""


@pytest.fixture
def other(tmp_path):
    """Another process that has the lock of ``out.json``."""
    with subprocess.Popen(
        [sys.executable, "-c", OTHER, str(tmp_path / "out.json")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout.readline() == "locked\n"
        yield process
        process.kill()


def test_another_process_is_told_of_and_once_it_was_killed_has_no_lock(other, tmp_path):
    with pytest.raises(Locked) as refused, locked(tmp_path / "out.json"):
        pass
    assert refused.value.pid == other.pid
    with locked(tmp_path / "another.json"):
        pass
    other.kill()
    other.wait()
    assert os.listdir(tmp_path) == [".out.json.lock"]
    with locked(tmp_path / "out.json"):
        pass
    assert os.listdir(tmp_path) == []


def test_the_same_process_locks_itself_out(tmp_path):
    path = tmp_path / "out.json"
    with locked(path):
        with pytest.raises(Locked) as refused, locked(path):
            pass
        assert refused.value.pid == os.getpid()
    with pytest.raises(KeyError), locked(path):
        raise KeyError
    with locked(path):
        pass


def test_a_file_that_its_owner_removes_meanwhile_is_no_lock(tmp_path, monkeypatch):
    """The owner ends between the moment when the file is opened and the one when it is locked."""
    path, lock, removed = tmp_path / "out.json", locks._lock, []

    def lock_late(descriptor):
        if not removed:
            removed.append((tmp_path / ".out.json.lock").unlink())
        lock(descriptor)

    monkeypatch.setattr(locks, "_lock", lock_late)
    with locked(path):
        assert removed
        with pytest.raises(Locked), locked(path):
            pass


def test_a_file_system_without_locks_locks_nobody_out(tmp_path, monkeypatch):
    def refuse(_descriptor):
        raise OSError(errno.ENOLCK, "no locks")

    monkeypatch.setattr(locks, "_lock", refuse)
    with locked(tmp_path / "out.json"), locked(tmp_path / "out.json"):
        pass
    with locked(tmp_path / "no folder" / "out.json"):
        pass
