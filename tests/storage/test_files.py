"""Files are written whole or not at all, where they were asked for and nowhere else; of several writers, one writes."""

import errno
import os
import secrets
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from gridwise_py.errors import DeviceTimeoutError
from gridwise_py.storage import files, locks
from gridwise_py.storage.files import whole_file, write_whole
from gridwise_py.storage.locks import Locked, locked

posix = pytest.mark.needs("posix")


def _mode(path):
    return stat.S_IMODE(path.stat().st_mode)


@posix
def test_a_new_file_has_the_usual_permissions_and_an_older_one_keeps_its_own(tmp_path):
    new, private = tmp_path / "new", tmp_path / "private"
    private.write_text("older")
    private.chmod(0o600)
    before = os.umask(0o027)
    try:
        write_whole(new, b"1")
        write_whole(private, b"2")
    finally:
        os.umask(before)
    assert (_mode(new), _mode(private)) == (0o640, 0o600)
    assert (new.read_bytes(), private.read_bytes()) == (b"1", b"2")
    assert sorted(os.listdir(tmp_path)) == ["new", "private"]


@posix
@pytest.mark.parametrize("there", [True, False], ids=["to a file", "to nothing yet"])
def test_a_link_is_followed_or_on_demand_replaced(tmp_path, there):
    (tmp_path / "folder").mkdir()
    target, link = tmp_path / "folder" / "target", tmp_path / "link"
    if there:
        target.write_text("older")
    link.symlink_to(target)
    write_whole(link, b"new")
    assert link.is_symlink()
    assert target.read_bytes() == b"new"
    write_whole(link, b"mine", follow_links=False)
    assert not link.is_symlink()
    assert (link.read_bytes(), target.read_bytes()) == (b"mine", b"new")
    assert os.listdir(tmp_path / "folder") == ["target"]


@posix
def test_a_device_stays_one(tmp_path):
    ours, theirs = os.openpty()
    try:
        name = tmp_path / "link-to-a-terminal"
        name.symlink_to(os.ttyname(theirs))
        write_whole(name, b"seen")
        assert os.read(ours, 100) == b"seen"
        assert stat.S_ISCHR(name.stat().st_mode)
        assert name.is_symlink()
    finally:
        os.close(ours)
        os.close(theirs)


@posix
def test_the_output_of_the_process_is_written_in_its_place(tmp_path, monkeypatch):
    out = tmp_path / "out"
    with out.open("w") as stdout:
        monkeypatch.setattr(sys, "__stdout__", stdout)
        monkeypatch.setattr(sys, "stdout", stdout)
        print("before")
        write_whole(Path(f"/dev/fd/{stdout.fileno()}"), b"file\n")
        print("after")
    assert out.read_text() == "before\nfile\nafter\n"


@posix
def test_nothing_is_written_through_a_link_at_the_name_of_the_part(tmp_path, monkeypatch):
    """Somebody who guesses the name in a shared folder gains nothing; and it cannot be guessed."""
    victim = tmp_path / "victim"
    victim.write_text("precious")
    names = iter(["planted", "planted", "free"])
    monkeypatch.setattr(secrets, "token_hex", lambda count: next(names))
    (tmp_path / ".planted.part").symlink_to(victim)
    write_whole(tmp_path / "out", b"new")
    assert victim.read_text() == "precious"
    assert (tmp_path / "out").read_bytes() == b"new"
    monkeypatch.undo()
    seen = set()
    real = os.open
    monkeypatch.setattr(os, "open", lambda path, *rest, **more: (seen.add(str(path)), real(path, *rest, **more))[1])
    for _ in range(3):
        write_whole(tmp_path / "out", b"new")
    assert len(seen) == 3


def test_a_file_system_that_became_read_only_says_so_once(tmp_path, monkeypatch):
    def refuse(*paths):
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), *paths[:1])

    monkeypatch.setattr(files.os, "replace", refuse)
    monkeypatch.setattr(files.os, "unlink", refuse)
    with pytest.raises(OSError, match="Read-only") as caught:
        write_whole(tmp_path / "out", b"x")
    assert caught.value.filename == str(tmp_path / "out")


def test_what_goes_wrong_in_the_block_leaves_nothing(tmp_path):
    path = tmp_path / "out"

    def interrupted():
        with whole_file(path) as file:
            file.write(b"half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    "error",
    [FileNotFoundError(errno.ENOENT, "missing", "another file"), DeviceTimeoutError("the GPU did not answer")],
)
@pytest.mark.parametrize("in_place", [False, pytest.param(True, marks=posix)])
def test_an_error_of_the_block_that_is_not_about_the_file_passes_unchanged(tmp_path, error, in_place):
    with pytest.raises(type(error)) as raised, whole_file(Path(os.devnull) if in_place else tmp_path / "out"):
        raise error
    assert raised.value is error
    assert os.listdir(tmp_path) == []


def test_of_two_files_that_are_written_together_the_error_names_the_right_one(tmp_path):
    inner = tmp_path / "missing folder" / "arrays"
    with pytest.raises(FileNotFoundError) as raised, whole_file(tmp_path / "out"), whole_file(inner):
        pass
    assert raised.value.filename == str(inner)


def test_a_failed_write_in_the_block_names_the_file(tmp_path):
    path = tmp_path / "out"
    with pytest.raises(OSError, match="No space") as raised, whole_file(path):
        raise OSError(errno.ENOSPC, "No space left on device")  # as `write` raises it: without a name
    assert (raised.value.errno, raised.value.filename) == (errno.ENOSPC, str(path))


def test_on_demand_the_content_is_on_the_disk_before_it_gets_its_name(tmp_path, monkeypatch):
    log, replace, fsync = [], os.replace, os.fsync
    monkeypatch.setattr(os, "fsync", lambda descriptor: (log.append(os.fstat(descriptor).st_size), fsync(descriptor)))
    monkeypatch.setattr(os, "replace", lambda *paths: (log.append("named"), replace(*paths)))
    with whole_file(tmp_path / "out", sync=True) as file:
        file.write(b"content")
    assert log == [7, "named"]
    write_whole(tmp_path / "out", b"another")
    assert log[2:] == ["named"]


# ---- locks


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
