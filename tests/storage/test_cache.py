"""Files of findings: whole or not at all, for one device and form, in a folder that can be chosen."""

import os
import sys
import types

import pytest

from gridwise_py.bench.calibrate import calibration
from gridwise_py.runtime import lookback_selftest as lookback
from gridwise_py.runtime.context import context_of
from gridwise_py.runtime.device import device_key
from gridwise_py.storage import cache

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


def test_without_a_home_nothing_is_kept_and_nothing_fails(monkeypatch):
    def no_home(*args, **options):
        raise RuntimeError("could not determine the home directory")

    monkeypatch.delenv("GRIDWISE_CACHE_DIR")
    fake = types.ModuleType("platformdirs")
    fake.user_cache_path = no_home
    monkeypatch.setitem(sys.modules, "platformdirs", fake)
    assert not cache.save("tuning", KEY, 1, {})
    assert cache.load("tuning", KEY, 1) is None
    assert list(cache.documents("tuning")) == []
    assert not cache.remove("tuning", KEY)


@pytest.mark.needs("named pipes")
def test_a_planted_link_or_pipe_leads_nowhere(folder, tmp_path):
    """In a folder that others can write, too."""
    victim = tmp_path / "victim"
    victim.write_text("precious")
    cache.save("tuning", KEY, 1, {"shapes": {}})
    (path,) = folder.iterdir()
    path.unlink()
    path.symlink_to(victim)
    assert cache.save("tuning", KEY, 1, {"shapes": {}})
    assert victim.read_text() == "precious"
    assert cache.load("tuning", KEY, 1) is not None
    path.unlink()
    os.mkfifo(path)
    assert cache.load("tuning", KEY, 1) is None, "and does not wait for somebody who writes"


# ---- values that were not written by this package

CALIBRATION = {
    "device": KEY, "tick_period_ns": 1.0, "tick_step_ns": 1.0, "tick_check": {"span_ns": 99.0, "wall_ns": 100.0},
    "floors_ns": {"empty_pass": 1.0}, "synchronising_ns": {"submit": None}, "wait_method": "device_poll",
    "copy": [{"array_bytes": 4, "moved_bytes": 8, "gbytes_per_s": 1.0}], "triad": [], "cache_bytes": 1 << 20,
    "fma_gflops": 1.0,
}  # fmt: skip
KEPT = {"canary_ns": 10.0, "fma_gflops": 1.0, "tick_check": CALIBRATION["tick_check"], "calibration": CALIBRATION}


# What makes the calibration as good as none.
SPOILT = [
    {"canary_ns": 10**400}, {"canary_ns": 0}, {"canary_ns": "x"}, {"canary_ns": True}, {"fma_gflops": 10**400},
    {"fma_gflops": -1}, {"tick_check": {"span_ns": 1.0, "wall_ns": 0.0}}, {"tick_check": [1]},
    {"tick_check": {"span_ns": 1.0}}, {"calibration": []}, {"calibration": {}},
    *(
        {"calibration": {**CALIBRATION, name: value}}
        for name, value in (
            ("cache_bytes", "abc"), ("cache_bytes", -5), ("cache_bytes", 0), ("cache_bytes", 1.5), ("copy", [1, 2]),
            ("copy", 5), ("copy", [{"array_bytes": 0, "moved_bytes": 8, "gbytes_per_s": 1.0}]), ("floors_ns", [1]),
            ("floors_ns", {"empty_pass": "x"}), ("floors_ns", {"empty_pass": 10**400}), ("tick_period_ns", 0),
            ("fma_gflops", 10**400), ("wait_method", 5),
        )
    ),
]  # fmt: skip


def test_a_calibration_with_values_that_cannot_be_is_as_good_as_none(folder):
    cache.save("calibration", KEY, 2, KEPT)
    assert calibration._load(KEY).keys() == KEPT.keys()
    for change in SPOILT:
        cache.save("calibration", KEY, 2, KEPT | change)
        assert calibration._load(KEY) == {}, change


def test_a_verdict_with_values_that_cannot_be_is_as_good_as_none(folder, device, monkeypatch):
    context, key = context_of(device), device_key(device) | {"state": "u64"}

    def known(found):
        monkeypatch.setattr(context, "lookback_verdicts", {})
        cache.save("lookback", key, lookback._FORMAT, {"verdict": found})
        return lookback.known_verdict(device, "u64")

    verdict = {"coherent": True, "progress": True, "needs_tickets": False, "recovers": True, "duration_ns": 1.0}
    assert known(verdict).safe
    for change in (
        {"needs_tickets": "x"}, {"duration_ns": "y"}, {"duration_ns": 10**400}, {"error": [1]}, {"safe": True},
    ):  # fmt: skip
        assert known(verdict | change) is None, change
