"""The scripts in benchmarks/: that they run here, with small sizes and, for PyTorch, with something in its place."""

import importlib.util
import json
import sys
import time
import types
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

FOLDER = Path(__file__).resolve().parent.parent / "benchmarks"
pytestmark = pytest.mark.skipif(not FOLDER.exists(), reason="needs the repository")


def _script(name):
    spec = importlib.util.spec_from_file_location(Path(name).stem, FOLDER / name)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("path", sorted(FOLDER.rglob("*.py")), ids=lambda path: path.name)
def test_every_script_has_help(path):
    done = CliRunner().invoke(_script(path.relative_to(FOLDER).as_posix()).main, ["--help"])
    assert done.exit_code == 0, done.output
    assert done.output.startswith("Usage: ")


# ---- PyTorch


class Tensor:
    """A numpy array that can do what the script asks of a tensor."""

    def __init__(self, values):
        self.values = np.asarray(values)

    def cuda(self):
        return self

    cpu = cuda

    def numpy(self):
        return self.values

    def copy_(self, other):
        self.values[...] = other.values
        return self


def _into(out, values):
    out.values[...] = values
    return out


class Event:
    waited = True

    def __init__(self, enable_timing):
        assert enable_timing

    def record(self):
        Event.waited = False
        self.at = time.perf_counter()

    def elapsed_time(self, end):
        assert Event.waited, "asked before it was synchronised"
        return (end.at - self.at) * 1e3


def _synchronize():
    Event.waited = True


def _torch(available=True, wrong=False):
    torch = types.ModuleType("torch")
    torch.__version__ = "0.0+invented"
    torch.version = types.SimpleNamespace(cuda="0.0")
    torch.from_numpy = lambda values: Tensor(values.copy())
    torch.empty_like = lambda tensor: Tensor(np.empty_like(tensor.values))
    torch.add = lambda a, b, out: _into(out, a.values + b.values + wrong)
    torch.sum = lambda a: Tensor(a.values.sum())
    torch.cumsum = lambda a, axis, out: _into(out, np.cumsum(a.values, axis))
    torch.cuda = types.SimpleNamespace(
        is_available=lambda: available, get_device_name=lambda index: "invented", Event=Event,
        synchronize=_synchronize, empty_cache=lambda: None,
    )  # fmt: skip
    return torch


def _peer(tmp_path, *words):
    path = tmp_path / "new" / "peer.json"
    small = ["--n", "1000", "--rounds", "2", "--samples", "20", "--warmup-s", "0.01", "--json", str(path)]
    done = CliRunner().invoke(_script("peers/torch_peer.py").main, [*small, *words])
    return done, path


def test_both_instruments_are_in_the_file(device, require, tmp_path, monkeypatch):
    require("timestamp-query")
    monkeypatch.setitem(sys.modules, "torch", _torch())
    done, path = _peer(tmp_path)
    assert done.exit_code == 0, done.output
    document = json.loads(path.read_text())
    assert document["peer"]["device"] == "invented"
    assert document["device"]["adapter"]
    rows = {(row["primitive"], row["n"]): row for row in document["results"]}
    assert list(rows) == [(name, n) for n in (1000,) for name in ("copy", "vector_add", "reduce", "scan")]
    for (name, n), row in rows.items():
        assert row["correct"] == {"ours": True, "torch": True}, (name, n)
        assert row["moved_bytes"] == {"copy": 8, "vector_add": 12, "scan": 8}.get(name, 4) * n + 4 * (name == "reduce")
        for side in ("ours", "torch"):
            for figure in ("single", "batch"):
                found = row[side][figure]
                assert found["ci_low_ns"] <= found["median_ns"] <= found["ci_high_ns"]
                assert found["gbytes_per_s"] == pytest.approx(row["moved_bytes"] / found["median_ns"])
        assert row["torch"]["single"]["count"] == 40
        assert row["ratio"]["single"] == row["torch"]["single"]["median_ns"] / row["ours"]["single"]["median_ns"]
    assert sum(line.split()[0] == "scan" for line in done.output.splitlines()) == 2


def test_a_wrong_peer_is_told(device, require, tmp_path, monkeypatch):
    require("timestamp-query")
    monkeypatch.setitem(sys.modules, "torch", _torch(wrong=True))
    done, path = _peer(tmp_path, "--primitives", "vector_add", "--rounds", "1")
    assert json.loads(path.read_text())["results"][0]["correct"] == {"ours": True, "torch": False}
    assert "False" in done.output


@pytest.mark.parametrize(
    ("torch", "said"), [(None, "PyTorch is not installed"), (_torch(available=False), "PyTorch sees no CUDA device")]
)
def test_without_cuda_it_says_so(tmp_path, monkeypatch, torch, said):
    monkeypatch.setitem(sys.modules, "torch", torch)
    done, path = _peer(tmp_path)
    assert done.exit_code == 2
    assert said in done.output
    assert not path.exists()


# ---- the study of false verdicts


def test_the_study_counts_every_pair(device, require, tmp_path, steady_clock):
    require("timestamp-query")
    path = tmp_path / "study.json"
    words = ["--pairs", 4, "--kernel-us", 30, "--most-items", 4000, "--sampling-s", 0.01, "--warmup-s", 0.0]
    done = CliRunner().invoke(_script("false_verdicts.py").main, [*map(str, words), "--json", str(path)])
    assert done.exit_code == 0, done.output
    document = json.loads(path.read_text())
    assert [found["kernel"] for found in document["results"]] == ["vector_add", "fma"]
    for found in document["results"]:
        assert found["amount_of_the_slower"] == 1.05 * found["amount"]
        for study in ("same", "slower"):
            assert found[study]["pairs"] == sum(found[study]["counts"].values()) == 2
            assert found[study]["false"]["low"] <= found[study]["false"]["share"] <= found[study]["false"]["high"]


def test_what_the_study_counts_as_false():
    study = _script("false_verdicts.py")
    kind = study.VerdictKind

    def verdicts(*kinds):
        return [types.SimpleNamespace(kind=k, ratio=1.0, settle="more") for k in kinds]

    every = verdicts(kind.SAME, kind.SAME, kind.FASTER, kind.SLOWER, kind.AMBIGUOUS)
    found = study.counted(every, (kind.FASTER, kind.SLOWER), kind.SAME)
    assert (found["false"]["share"], found["right"]["share"], found["ambiguous"]["share"]) == (0.4, 0.4, 0.2)
    assert found["counts"] == {"faster": 1, "slower": 1, "same": 2, "ambiguous": 1}
    none = study.counted(verdicts(*[kind.SAME] * 200), (kind.FASTER, kind.SLOWER), kind.SAME)
    assert none["false"]["high"] == pytest.approx(0.018, abs=0.001), "none of 200 is at most 1.8 %"
