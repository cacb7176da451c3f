"""Files of findings: whole or not at all, for one device and form, in a folder that can be chosen."""

import json
import subprocess
import sys
import types

import pytest

from gridwise_py import cache

KEY = {"adapter": "some GPU", "driver": "1.2"}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("GRIDWISE_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_the_folder_is_the_users_unless_it_is_chosen(monkeypatch, tmp_path):
    fake = types.ModuleType("platformdirs")
    fake.user_cache_path = lambda name, appauthor: f"/cache/{name}"
    monkeypatch.setitem(sys.modules, "platformdirs", fake)
    for nothing in (None, ""):
        if nothing is None:
            monkeypatch.delenv("GRIDWISE_CACHE_DIR")
        else:
            monkeypatch.setenv("GRIDWISE_CACHE_DIR", nothing)
        assert cache.cache_folder() == "/cache/gridwise_py"
    monkeypatch.setenv("GRIDWISE_CACHE_DIR", str(tmp_path))
    assert cache.cache_folder() == tmp_path


def test_a_user_without_a_home_has_no_folder_and_everything_else():
    """As in a container that runs under a number that has no name, and without HOME."""
    code = """
import os, sys
try:
    import pwd
except ImportError:
    sys.exit("skipped")  # Windows
for name in ("HOME", "XDG_CACHE_HOME", "GRIDWISE_CACHE_DIR"):
    os.environ.pop(name, None)
def nobody(*_):
    raise KeyError("getpwuid(): uid not found")
pwd.getpwuid = nobody
from gridwise_py import cache
assert cache.cache_folder() is None, cache.cache_folder()
key = {"adapter": "some GPU"}
assert cache.load("tuning", key, 1) is None
assert cache.save("tuning", key, 1, {}) is False
assert cache.remove("tuning", key) is False
assert list(cache.documents("tuning")) == []
import numpy as np, gridwise_py as gw
from gridwise_py.cli import main
if gw.list_adapters():
    assert gw.sum(np.ones(1000, np.uint32)) == 1000
    sys.argv = ["gridwise", "info"]
    main()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0 or "skipped" in done.stderr, done.stderr


def test_what_is_kept_is_found_again_for_the_same_device_and_form_only(folder):
    assert cache.load("tuning", KEY, 1) is None
    assert cache.save("tuning", KEY, 1, {"shapes": {"reduce": [256, 4]}})
    assert cache.load("tuning", KEY, 1)["shapes"] == {"reduce": [256, 4]}
    assert cache.load("tuning", KEY, 2) is None
    assert cache.load("calibration", KEY, 1) is None
    assert cache.load("tuning", KEY | {"driver": "1.3"}, 1) is None
    cache.save("tuning", KEY | {"driver": "1.3"}, 1, {})
    assert len(list(cache.documents("tuning"))) == 2
    assert [path.name[:7] for path in folder.iterdir()] == ["tuning-"] * 2, "nothing half written is left"
    assert cache.remove("tuning", KEY)
    assert not cache.remove("tuning", KEY)
    assert [data["device"]["driver"] for _, data in cache.documents("tuning")] == ["1.3"]


@pytest.mark.parametrize(
    "content", [b"", b"[]", b"null", b"\xff\xfe\x00", b'{"format": 1', b'{"format": 1, "device": {}}']
)
def test_a_broken_file_is_as_good_as_none(folder, content):
    cache.save("tuning", KEY, 1, {"shapes": {}})
    (path,) = folder.iterdir()
    path.write_bytes(content)
    assert cache.load("tuning", KEY, 1) is None
    assert cache.save("tuning", KEY, 1, {"shapes": {}})
    assert json.loads(path.read_text())["device"] == KEY


def test_a_folder_that_cannot_be_written_is_no_error(folder):
    folder.write_text("a file where the folder should be")
    assert not cache.save("tuning", KEY, 1, {})
    assert cache.load("tuning", KEY, 1) is None
    assert list(cache.documents("tuning")) == []
