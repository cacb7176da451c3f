"""The scripts in benchmarks/: they start, and do a small round of what they are for. CUDA's side is invented."""

import contextlib
import importlib.util
import json
import subprocess
import sys
import time
import types
from collections import Counter

import numpy as np
import pytest
from click.testing import CliRunner

import gridwise_py as gw
from gridwise_py.internals import context_of
from helpers.paths import ROOT

FOLDER = ROOT / "benchmarks"
SCRIPTS = sorted(FOLDER.rglob("*.py"))
pytestmark = [pytest.mark.needs("the repository"), pytest.mark.slow]


def _script(name):
    path = next(p for p in SCRIPTS if p.stem == name)
    if str(path.parent) not in sys.path:  # as for a script that is run: those beside it can be imported
        sys.path.append(str(path.parent))
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def _run(name, *words):
    return CliRunner().invoke(_script(name).main, [str(word) for word in words])


@pytest.mark.parametrize("name", [p.stem for p in SCRIPTS])
def test_it_starts(name, monkeypatch):
    """Imports what it needs of the library; those with options explain themselves."""
    module = _script(name)
    assert module.__doc__
    if hasattr(getattr(module, "main", None), "callback"):
        done = CliRunner().invoke(module.main, ["--help"])
        assert done.exit_code == 0, done.output
    elif hasattr(module, "main"):
        monkeypatch.setattr(sys, "argv", [name, "--help"])
        with pytest.raises(SystemExit) as ended:
            module.main()
        assert ended.value.code == 0


def test_transfers_are_measured(device, tmp_path):
    path = tmp_path / "transfers.json"
    done = _run("transfers", "--sizes", "2^12,2^23", "--threads", "1,all", "--rounds", 1, "--json", path)
    assert done.exit_code == 0, done.output
    rows = json.loads(path.read_text())["results"]
    assert [row["size_bytes"] for row in rows] == [1 << 12, 1 << 23] * (len(rows) // 2)
    assert all(speed > 0 for row in rows for speed in row["gbytes_per_s"].values())
    assert {"memcpy", "asarray", "copy_from", "to_numpy", "to_numpy_out"} <= set(rows[0]["over_memcpy"])


# ---- soak


@pytest.mark.parametrize(
    ("kind", "strategy"),
    [
        ("scan", "lookback"),
        ("scan", "reduce_then_scan"),
        ("sort", "onesweep"),
        ("select", "lookback"),
        ("reduce_by_key", "lookback"),
        ("segmented_reduce", None),
    ],
)
def test_a_soak_of_every_form(device, tmp_path, kind, strategy):
    path = tmp_path / "soak.json"
    asked = strategy or "lookback"
    done = _run("soak", kind, "--n", "20000,70000", "--runs", 7, "--strategy", asked, "--json", path)
    assert done.exit_code == 0, done.output
    rows = json.loads(path.read_text())["results"]
    # The script makes a device of its own, with what the adapter has.
    wide = {"shader-int64", "shader-int64-atomic-all-ops"} <= set(device.adapter.features)
    forms = [None] if (kind, strategy) != ("scan", "lookback") else ["u64", "u32x2"] if wide else ["u32x2"]
    assert [(row["n"], row["state"]) for row in rows] == [(n, form) for n in (20000, 70000) for form in forms]
    for row in rows:
        assert (row["wrong_items"], row["runs"], row["runs_asked_for"]) == (0, 7, 7)
        assert row["strategy"] == strategy


def test_a_soak_ends_when_its_time_is_up(device):
    row = _script("soak").soak(gw.Scan(device, strategy="reduce_then_scan"), 3000, 1_000_000, seconds=0.3)
    assert 0 < row["runs"] < 1_000_000
    assert row["seconds"] < 60


def test_a_soak_finds_a_wrong_item(device, monkeypatch):
    monkeypatch.setattr(gw.Scan, "reference", lambda self, x: x.cumsum(dtype="u4") + (x == x[77]))
    row = _script("soak").soak(gw.Scan(device, strategy="reduce_then_scan"), 3000, 3, seconds=60)
    assert row["wrong_items"] >= 3


@pytest.mark.parametrize("datatype", ["u32", "f32"])
def test_arrays_are_compared_on_the_gpu(device, datatype):
    """Past the 262,144 items that one round of the grid reads."""
    differences = _script("soak").Differences(device)
    items = np.random.default_rng(3).integers(0, 1000, 600_001).astype(gw.DATATYPES[datatype].dtype)
    other = items.copy()
    other[[70_003, 262_144, 600_000]] += 1
    expected, same, got = (gw.asarray(values, device) for values in (items, items, other))
    for compared, total in ((same, 0), (got, 3), (got, 6)):
        encoder = device.create_command_encoder()
        differences.record(encoder, compared, expected)
        device.queue.submit([encoder.finish()])
        assert differences.total() == total
    with pytest.raises(ValueError, match="one length"):
        differences.record(encoder, got[:5], expected)


def test_rows_from_which_a_gpu_pays(device, tmp_path):
    """Every operation is right beside numpy, pandas and polars; from n on means at n and at all larger ones."""
    path = tmp_path / "pays.json"
    done = _run("when_a_gpu_pays", "--sizes", "9-10", "--rows", 700, "--datatypes", "f64", "--json", path)
    assert done.exit_code == 0, done.output
    found = json.loads(path.read_text())
    assert found["complete"]
    assert Counter(row["n"] for row in found["results"]) == {700: 3, 512: 11, 1024: 11}
    assert all(not row["wrong"] and len(row["sides"]) >= 3 for row in found["results"])
    script = sys.modules["when_a_gpu_pays"]

    def row(n, ours, **peers):
        return {"n": n, "sides": {script.HOST: ours, "polars": 3.0, "pandas": 2.0, **peers}}

    rows = [row(8, 1.0), row(16, 2.5), row(32, 1.9), row(64, 1.0)]
    assert script.pays_from(rows, script.HOST) == 32
    assert script.pays_from([*rows, row(128, None)], script.HOST) is None
    assert script.agree([np.arange(9.0)], [np.arange(9.0) + 1e-12], "f64")
    for wrong in (np.arange(9.0) + (np.arange(9) == 4), np.arange(8.0)):
        assert not script.agree([wrong], [np.arange(9.0)], "f64")


def test_what_a_call_costs(device, tmp_path, monkeypatch):
    script, path = _script("host_overhead"), tmp_path / "host.json"
    monkeypatch.setattr(script, "LOOP", 100)
    monkeypatch.setattr(script, "LOOPS", 1)
    done = CliRunner().invoke(script.main, ["--rounds", "1", "--json", str(path)])
    assert done.exit_code == 0, done.output
    found = json.loads(path.read_text())
    assert len(found["results"]) == 8
    assert all(row[f"{way}_ns"] > 0 for row in found["results"] for way in script.WAYS)
    assert all(times["each_ns"] >= times["cpu_ns"] > 0 for times in found["loop"].values())


# ---- gates


def test_the_audit_of_gates_is_of_the_stored_pairs():
    """The pairs are those of the stored figures; of one of them the verdicts, as it is and slower."""
    gates = _script("gates")
    stored = json.loads((FOLDER / "results" / "gates_audit.json").read_text(encoding="utf-8"))
    pairs = list(gates.stored_pairs())
    counts = Counter(name for name, *_ in pairs)
    assert list(counts.values()) == [found["pairs_of_runs"] for found in stored["sets"]]
    (row,) = gates.judge_pairs([next(pair for pair in pairs if pair[0] == "h100, 7 processes")], "2%")
    assert row["pairs_of_rows"] == 32
    assert row["false"]["share"] == 0
    assert row["missed"]["10 %"]["share"] == 0
    assert "| median, 5 % |" in gates.summary(stored)


def test_invented_levels_are_judged_as_the_studies_say(monkeypatch):
    gates = _script("gates")
    for name, value in (("SHAPES", {"normal": None}), ("APART", (0.0, 0.05)), ("PROCESSES", (5,))):
        monkeypatch.setattr(gates, name, value)
    equal, apart = gates.judge_invented(20, "2%", seed=1)
    assert (equal["false"], equal["open"], equal["found"], apart["false"]) == (0, 0, 1, 0)
    assert min(equal["contained"], apart["contained"]) > 0.8
    assert apart["open"] > 0.8


# ---- the peers

_FEW = ("--rounds", 1, "--samples", 1, "--warmup-s", 0, "--settle-s", 0)


def _document(tmp_path):
    return json.loads((tmp_path / "peer.json").read_text())


def _cases(tmp_path, script, *words, code=0):
    """Run a script of peers/, and return its output and the rows by the names of their cases."""
    path = tmp_path / "peer.json"
    done = _run(script, *_FEW, "--json", path, *words)
    assert done.exit_code == code, done.output
    return done.output, {row["case"]: row for row in json.loads(path.read_text())["results"]}


@pytest.mark.parametrize(
    "cases",
    [
        "arrays;sorts;marks;shares;runs;datatypes;others;segments", "segmented sorts;moves;axis;axis scans",
        "reductions;top k;search;gather;find;both ends;nth;ranges",
    ],
)  # fmt: skip
def test_all_cases_of_peers_are_right_and_none_is_skipped(device, require, tmp_path, cases):
    """With the file's reason for each peer that was not asked for."""
    require("timestamp-query", "subgroup")
    _, rows = _cases(tmp_path, "cases", "--n", "2^12", "--peers", "none", "--cases", cases)
    document = _document(tmp_path)
    assert document["protocol"] == {"rounds": 1, "samples": 1, "warmup_s": 0.0, "settle_s": 0.0}
    assert len(rows) > 15
    for name, row in rows.items():
        ours = next(iter(row["sides"]))
        for side, found in row["sides"].items():
            if side.partition(" ")[0] in ("cub", "torch", "cupy"):
                assert found == {"skipped": "not asked for"}, name
            else:
                assert "skipped" not in found or "f64" in name or "u64" in name, (name, found)
        assert row["correct"] is (None if "skipped" in row["sides"][ours] else True), name
        single = row["sides"][ours].get("single") or row["sides"][ours].get("wall")
        assert single is None or single > 0, name


def test_products_are_right_and_a_wrong_one_is_seen(device, tmp_path, monkeypatch):
    words = ("--n", "70", "--peers", "none", "--cases", "products")
    _, rows = _cases(tmp_path, "cases", *words)
    assert [(row["datatype"], row["correct"]) for row in rows.values()] == [("f16", True), ("f32", True)]
    monkeypatch.setattr(gw.Array, "to_numpy", lambda self: np.zeros(self.size, self.dtype.name))
    _cases(tmp_path, "cases", *words, code=4)


def test_rows_say_what_the_pictures_need(device, require, tmp_path):
    require("timestamp-query")
    words = ("--datatypes", "f32", "--distributions", "uniform,few", "--cases", "sorts;scan, f32")
    _, rows = _cases(tmp_path, "cases", "--n", "5000", "--peers", "none", *words)
    sorts = [row for row in rows.values() if row.get("primitive") in ("sort", "sort_pairs")]
    assert {(row["primitive"], row["distribution"]) for row in sorts} == {
        ("sort", "uniform"), ("sort", "few"), ("sort_pairs", "uniform"), ("sort_pairs", "few")
    }  # fmt: skip
    side = sorts[0]["sides"]["gridwise_py"]
    assert side["kernels"]
    assert side["launches"] >= 1
    assert all(kernel["ns"] > 0 for kernel in side["kernels"])
    in_one_workgroup = side["parameters"]["strategy"] == "one workgroup"
    assert (side["temp_bytes"] >= 5000 * 4) == (not in_one_workgroup), "a GPU's workgroups hold so few keys"


def test_our_sums_of_floats_are_checked_to_the_bit(device, require, tmp_path, monkeypatch):
    require("timestamp-query")
    real = gw.Scan.reference

    def reference(self, input):
        found = real(self, input).copy()
        found[400] = np.nextafter(found[400], np.float32(np.inf))  # well within the tolerance for other items
        return found

    monkeypatch.setattr(gw.Scan, "reference", reference)
    words = ("--n", "700", "--peers", "none", "--cases", "scan, f32", "--datatypes", "f32")
    output, _ = _cases(tmp_path, "cases", *words, code=4)
    assert "WRONG: its floats are not exactly numpy's" in output


def test_sides_take_turns_and_one_that_ends_takes_nothing_along(monkeypatch):
    harness = _script("harness")
    log = []

    class Steady(harness.Side):
        def __init__(self, name, time_ns, ends_in=99, **more):
            super().__init__(**more)
            self.name, self.time_ns, self.ends_in = name, time_ns, ends_in

        def times(self, warmup_s, samples):
            log.append((self.name, warmup_s))
            if log.count((self.name, 0.5)) + log.count((self.name, 2.0)) >= self.ends_in:
                raise harness.PeerError("no more")
            return {"single": [self.time_ns] * samples, "wall": [self.time_ns + 1]}

    def missing():
        raise harness.PeerError("not installed")

    sides = {
        "ours": lambda: Steady("ours", 10.0, correct=True), "cub": lambda: Steady("cub", 15.0, correct=False),
        "torch": missing, "cupy": lambda: Steady("cupy", 9.0, ends_in=2),
    }  # fmt: skip
    case = harness.Case("a", 8, sides, "group", 40.0, {"datatype": "u32"}, {"cub": ("single", 1.2, 1.4)})
    monkeypatch.setattr(harness, "_FIRST_WARMUP_S", 2.0)
    row = harness.measure(case, harness.Protocol(3, 2, 0.5, 1.0))
    assert log == [
        ("cupy", 2.0), ("cub", 2.0), ("ours", 2.0), ("ours", 0.5), ("cub", 0.5), ("cupy", 0.5), ("cub", 0.5),
        ("ours", 0.5),
    ]  # fmt: skip
    assert (row["case"], row["datatype"], row["correct"]) == ("a", "u32", False)
    assert row["sides"]["torch"] == {"skipped": "not installed"}
    assert row["sides"]["cupy"] == {"skipped": "ended in round 2: no more"}
    assert row["sides"]["cub"]["ratio"] == {"single": 1.5, "wall": 16 / 11}
    assert (row["sides"]["ours"]["single_ns"], row["sides"]["ours"]["back_to_back"]) == ([10.0] * 6, None)
    lines = harness.lines_of(row)
    assert "1.50 x" in lines[2]
    assert "mark 1.2 x single: above" in lines[2]
    assert "WRONG" in lines[2]
    assert "not here: not installed" in lines[3]


# ---- PyTorch


class Event:
    def __init__(self, enable_timing):
        assert enable_timing
        self.at = self.waited = None

    def record(self, stream=None):
        assert stream == "stream"
        self.at, self.waited = time.perf_counter(), False

    def synchronize(self):
        self.waited = True

    def elapsed_time(self, end):
        assert end.waited, "asked before it was synchronised"
        return (end.at - self.at) * 1e3


def _torch(monkeypatch, captures):
    """An invented PyTorch; the real one needs a CUDA GPU."""
    replayed = []

    def capture(graph, stream):
        if not captures:
            raise RuntimeError("this call cannot be captured")
        return contextlib.nullcontext()

    torch = types.ModuleType("torch")
    torch.__version__ = "0.0+invented"
    torch.cuda = types.SimpleNamespace(
        is_available=lambda: True, Event=Event, synchronize=lambda: None, empty_cache=lambda: None,
        Stream=lambda: "stream", stream=contextlib.nullcontext, graph=capture,
        CUDAGraph=lambda: types.SimpleNamespace(replay=lambda: replayed.append(1)),
    )  # fmt: skip
    monkeypatch.setitem(sys.modules, "torch", torch)
    return replayed


@pytest.mark.parametrize("captures", [True, False])
def test_calls_of_pytorch_are_timed_by_events_and_by_graphs_where_it_can_be_captured(monkeypatch, captures):
    harness, replayed = _script("harness"), _torch(monkeypatch, captures)
    calls = []
    side = harness.Called(harness.Library("torch"), lambda: calls.append(1) or 7, lambda result: result == 8)
    assert side.correct is False
    found = side.times(0.0, 3)
    assert (len(found["single"]), len(found["back_to_back"])) == (3, 3)
    assert min(*found["single"], *found["back_to_back"]) > 0
    assert side.facts["graph"] is captures
    launches = side.facts["launches"]
    assert len(replayed) == (4 if captures else 0), "once to upload it"
    # One to see the result, a pilot, the singles, and a capture or all of those back to back.
    assert len(calls) == 1 + 1 + 3 + (launches if captures else 4 * launches)


class Tensor(np.ndarray):
    """A numpy array that can do what the scripts ask of a tensor."""

    def cuda(self):
        return self

    cpu = cuda

    def numpy(self):
        return np.asarray(self)

    def copy_(self, other):
        self[...] = other
        return self


def _numpys(torch):
    """Give an invented PyTorch numpy's functions."""

    def into(function):
        def call(*given, out=None, **ignored):
            found = np.asarray(function(*given)).view(Tensor)
            return found if out is None else out.copy_(found)

        return call

    torch.int32, torch.int64, torch.float32 = np.int32, np.int64, np.float32
    torch.from_numpy = lambda items: items.copy().view(Tensor)
    torch.empty_like = np.empty_like
    torch.add, torch.sum, torch.cumsum = into(np.add), into(np.sum), into(np.cumsum)
    torch.topk = lambda x, k: (np.sort(x)[: -k - 1 : -1].view(Tensor), None)
    torch.searchsorted = into(lambda *x: np.searchsorted(*x).astype(np.int32))
    torch.index_select = into(lambda x, axis, places: x[places])


def test_results_of_pytorch_are_compared(device, require, tmp_path, monkeypatch):
    require("timestamp-query", "subgroup")
    _torch(monkeypatch, False)
    torch = sys.modules["torch"]
    _numpys(torch)
    words = ("--n", "2^12", "--peers", "torch", "--datatypes", "f32")
    words = (*words, "--cases", "arrays;axis;axis scans;top k;search;gather")
    _, rows = _cases(tmp_path, "cases", *words)
    sides = [row["sides"]["torch"] for row in rows.values() if "torch" in row["sides"]]
    assert len(sides) > 30
    assert all(side["single"] > 0 and side["version"] == "0.0+invented" and side["correct"] for side in sides)
    assert _document(tmp_path)["peers"] == {"torch": "0.0+invented"}
    right = torch.cumsum
    monkeypatch.setattr(torch, "cumsum", lambda *given, **named: right(*given, **named) + 1)
    _, rows = _cases(tmp_path, "cases", *words, code=4)
    wrong = {name for name, row in rows.items() if row["sides"].get("torch", {}).get("correct") is False}
    assert wrong == {name for name in rows if "cumsum" in name or name == "scan, f32"}


def test_what_is_missing_of_the_libraries_is_said(monkeypatch):
    harness = _script("harness")
    monkeypatch.setitem(sys.modules, "torch", None)
    for name, words in (("torch", "PyTorch is not installed"), ("cupy", r"PyTorch is not installed \(its events")):
        with pytest.raises(harness.PeerError, match=words):
            harness.Library(name)
    bench = harness.Bench(None, [1], ["torch"], [], None)
    with pytest.raises(harness.PeerError, match="not asked for"):
        bench.library("cupy")


# ---- kernels beside CUDA


def _beside_cuda(tmp_path, device, *words, code=0):
    words = ("--quick", "--n", "2^12", "--engines", context_of(device).engine.name, "--levels", "bounds", *words)
    return _cases(tmp_path, "beside_cuda", *words, code=code)


def test_kernels_beside_cuda_are_numpys(device, require, tmp_path):
    """On a GPU these are the texts that are timed; numpy does their work by other means."""
    require("timestamp-query")
    output, rows = _beside_cuda(tmp_path, device, "--peers", "none")
    ours = {name: [side for key, side in row["sides"].items() if key != "cupy"] for name, row in rows.items()}
    assert len(ours) == 10
    assert all(side.get("correct") is True for sides in ours.values() for side in sides), output
    assert set(_document(tmp_path)["marks"]) == {"over_cuda", "bounds_over_none"}


def _invented_cupy(monkeypatch, wrong=0):
    """Gathers with numpy; a launch takes 2 ms and an event 5."""
    clock_ms = [0.0]

    class Event(types.SimpleNamespace):
        def record(self):
            clock_ms[0] += 5
            self.at_ms = clock_ms[0]

        def synchronize(self):
            pass

    class Items(types.SimpleNamespace):
        def get(self):
            return self.items.copy()

    def kernel(grid, block, arguments):
        x, places, y, count = arguments
        assert (grid[0] * grid[1] * block[0], count.dtype) == (count, np.uint32)
        y.items[:] = x.items[places.items]
        y.items[-1] += wrong
        clock_ms[0] += 2

    cupy = types.ModuleType("cupy")
    cupy.__version__, cupy.asarray = "0.0+invented", lambda items: Items(items=items.copy())
    cupy.RawKernel = lambda text, name, options: kernel
    cupy.cuda = types.SimpleNamespace(
        Event=Event, get_elapsed_time=lambda begin, end: end.at_ms - begin.at_ms,
        nvrtc=types.SimpleNamespace(getVersion=lambda: (13, 0)),
    )  # fmt: skip
    cupy.get_default_memory_pool = lambda: types.SimpleNamespace(free_all_blocks=lambda: None)
    monkeypatch.setitem(sys.modules, "cupy", cupy)


def test_cudas_side_is_a_slope_and_is_compared(device, require, tmp_path, monkeypatch):
    require("timestamp-query")
    _invented_cupy(monkeypatch)
    _, rows = _beside_cuda(tmp_path, device, "--cases", "gather")
    cuda = rows["gather"]["sides"]["cupy"]
    assert (cuda["correct"], cuda["back_to_back"], cuda["nvrtc"]) == (True, 2e6, "13.0")
    _invented_cupy(monkeypatch, wrong=1)
    output, rows = _beside_cuda(tmp_path, device, "--cases", "gather", code=4)
    assert "WRONG: its results are not numpy's" in output
    assert rows["gather"]["sides"]["cupy"]["correct"] is False


# ---- the first picture


@pytest.mark.needs("module:altair", "module:vl_convert")
def test_the_first_picture_has_the_tables_of_a_file(tmp_path):
    sides = {"pandas": 9e9, "polars": 1e9, "gridwise_py, numpy to numpy": 2e8, "gridwise_py, resident": 1e7}
    row = {"operation": "join", "datatype": "f64", "n": 10**8, "sides": sides, "wrong": []}
    path = tmp_path / "pays.json"
    made = {"device": {"adapter": "NVIDIA H200"}, "results": [row, {**row, "n": 4096, "operation": "sum"}]}
    path.write_text(json.dumps(made))
    done = _run("first_picture", path, "-o", tmp_path / "first")
    assert done.exit_code == 0, done.output
    for theme in ("light", "dark"):
        text = (tmp_path / f"first-{theme}.svg").read_text(encoding="utf-8")
        assert sys.modules["first_picture"].THEMES[theme].page in text
        assert all(words in text for words in ("NVIDIA H200", "200 ms, 5 ×", "10.0 ms, 100 ×", "9.00 s<", "join"))
        assert "sum" not in text
    path.write_text(json.dumps({**made, "results": [{**row, "wrong": ["polars"]}]}))
    assert "no right tables" in _run("first_picture", path).output


# ---- chains, and CUB beside us

#: Speaks like cub_peer and cub_chain_peer, and computes with numpy; after WRONG its words are others.
_INVENTED_CUDA = """#!{python}
import sys
import numpy as np

WRONG = {wrong}
data = {{}}


def of(name, dtype=np.uint32):
    return data[name].view(dtype)


def checksum(items):
    words = np.ascontiguousarray(items).view(np.uint32).ravel()
    return sum((i + 1) * int(word) for i, word in enumerate(words)) % 2**64


def select(n, input, bound):
    return [of(input)[of(input) < int(bound) - WRONG]]


def run_length(n, input):
    x = of(input)
    starts = np.flatnonzero(np.append(True, x[1:] != x[:-1]))
    return [x[starts], np.diff(np.append(starts, n)).astype(np.uint32)]


def sort_pairs(n, keys, values):
    order = np.argsort(of(keys), kind="stable")
    return [of(keys)[order], of(values)[order] + WRONG]


def scan(n, input):
    found = np.cumsum(of(input, np.float32), dtype=np.float32)
    found[n // 2] += WRONG
    return [found]


def group(n, bits):
    order = np.argsort(of("keys") & np.uint32(2**bits - 1), kind="stable")
    keys, values = of("keys")[order], of("values")[order]
    heads = np.flatnonzero(np.append(True, keys[1:] != keys[:-1]))
    return [keys[heads], np.add.reduceat(values, heads, dtype=np.uint32) + WRONG]


for line in sys.stdin:
    command, *words = line.split()
    if command == "load":
        data[words[0]] = np.fromfile(words[1], np.uint8)
        assert data[words[0]].nbytes == int(words[2])
        print("{{}}", flush=True)
    elif command == "free":
        del data[words[0]]
        print("{{}}", flush=True)
    elif command == "time":
        times = {{name: int(words[1]) * [ns] for name, ns in
                 (("single_ns", 5000.0), ("back_to_back_ns", 4000.0), ("gpu_ns", 5e9), ("wall_ns", 6e9))}}
        print(str(times).replace("'", '"'), flush=True)
    elif words[0] == "reduce":
        sys.exit(3)
    elif command != "case" or words[0] in globals():
        if command == "case":
            named = dict(word.split("=") for word in words[3:])
            found = globals()[words[0]](int(words[2]), **named)
        else:
            found = globals()[command](*map(int, words))
        sums = ", ".join('"%d"' % checksum(items) for items in found)
        print('{{"cub_version": 1, "temp_bytes": 2, "counts": %s, "checksums": [%s]}}'
              % ([items.size for items in found], sums), flush=True)
    else:
        print('{{"error": "no case"}}', flush=True)
"""


def _invented_cub(tmp_path, wrong=0):
    program = tmp_path / "invented_cub"
    program.write_text(_INVENTED_CUDA.format(python=sys.executable, wrong=wrong))
    program.chmod(0o755)
    return program


def _chains(tmp_path, *words, code=0):
    return _cases(tmp_path, "chains", *words, code=code)


def test_group_by_beside_cub(device, require, tmp_path):
    """Each case has data of its own on the other side, too."""
    require("timestamp-query")
    small = ("--groups", "70", "--cases", "group")
    for n in (700, 5000):
        output, rows = _chains(tmp_path, "--n", n, *small, "--cub", _invented_cub(tmp_path))
        sides = rows["group, keys below 70"]["sides"]
        assert list(sides) == ["ours, key_bits=7", "ours", "cub, 32 bits", "cub, 7 bits"]
        assert all(side["correct"] for side in sides.values())
        known, used = sides["ours, key_bits=7"], sides["cub, 7 bits"]
        assert [kernel["label"] for kernel in known["kernels"]][-1] == "reduction: reduce"
        assert all(kernel["ns"] > 0 for kernel in known["kernels"])
        assert used["ratio"] == {figure: used[figure] / known[figure] for figure in ("single", "wall")}
        assert used["mark"] == ["single", 1.0]
        assert "mark 1 x single: reached" in output
    output, rows = _chains(tmp_path, "--n", 700, *small, "--cub", _invented_cub(tmp_path, wrong=1), code=4)
    sides = rows["group, keys below 70"]["sides"]
    assert [side["correct"] for side in sides.values()] == [True, True, False, False]


@pytest.mark.needs("module:pandas")
def test_tables_beside_those_that_are_installed(device, require, monkeypatch, tmp_path):
    require("timestamp-query")
    monkeypatch.setitem(sys.modules, "polars", None)
    monkeypatch.setitem(sys.modules, "torch", None)
    _, rows = _chains(tmp_path, "--peers", "none", "--cases", "table", "--table", "5000")
    sides = rows["table"]["sides"]
    assert sides["polars"] == {"skipped": "polars is not installed"}
    ours, transfers, pandas = sides["ours"], sides["ours, with transfers"], sides["pandas"]
    assert [side["correct"] for side in (ours, transfers, pandas)] == [True, True, True]
    assert ours["single"] > 0
    assert (transfers["single"], pandas["single"]) == (None, None)
    assert pandas["ratio"] == {"wall": pandas["wall"] / ours["wall"]}
    example = _script("chains").load_example("group_by")
    expected = example.by_numpy(*example.table(5000))
    assert not example.agree({**expected, "total": expected["total"] * 1.001}, expected)


def test_splats_and_graphs_are_numpys_and_scipys(device, require, tmp_path):
    require("timestamp-query")
    words = ("--cases", "host;splats;graph", "--n", "700", "--splats", "300", "--edges", "3000", "--peers", "none")
    _, rows = _chains(tmp_path, *words)
    assert list(rows) == ["from numpy to numpy: sort, u32", "splats", "build", "product", "rank"]
    for row in rows.values():
        ours, *others = row["sides"].values()
        assert row["correct"]
        assert (ours.get("wall") or ours["single"]) > 0
        assert all(side == {"skipped": "not asked for"} for side in others if "wall" not in side)
    assert 3000 > rows["rank"]["entries"] > 0


def test_a_wrong_graph_is_found(device, monkeypatch):
    chains = _script("chains")
    example = _script("chains").load_example("pagerank")
    graph = chains.Graph(example, 3000)
    matrix, vector = graph.matrix, graph.product.astype(np.float32)
    assert graph.is_matrix(matrix.indptr, matrix.indices, matrix.data.astype(np.float32))
    assert not graph.is_matrix(matrix.indptr, matrix.indices, matrix.data + (matrix.data == 9))
    assert not graph.is_matrix(np.append(matrix.indptr[:-1], 0), matrix.indices, matrix.data)
    assert graph.is_product(vector)
    assert not graph.is_product(np.where(np.arange(vector.size) == 5, vector * np.float32(1.001), vector))
    assert graph.is_rank(graph.rank.astype(np.float32))
    assert not graph.is_rank(graph.rank * (1 + 2e-5))
    found = example.csr
    monkeypatch.setattr(example, "csr", lambda rows, columns, *rest: found(columns, rows, *rest))
    sides = chains.graph_of_ours(graph, device)
    assert [make().correct for make in sides.values()] == [False] * 3


def test_cases_beside_cub(device, require, tmp_path):
    """Both sides in the file, and why a side is missing; a peer that ends or refuses takes nothing along."""
    require("timestamp-query")
    cases = ("select 1/2", "run lengths, runs of 8", "sort_pairs, u32", "scan, f32")
    words = ("--n", "2^12", "--cases", ";".join((*cases, "reduce", "top 8")), "--cub")
    _, rows = _cases(tmp_path, "cases", *words, _invented_cub(tmp_path))
    for name in cases:
        row = rows[name]
        ours, cub = row["sides"]["gridwise_py"], row["sides"]["cub"]
        assert (row["correct"], ours["correct"], cub["correct"], cub["single"]) == (True, True, True, 5000), name
        assert cub["ratio"] == {"single": 5000 / ours["single"], "back_to_back": 4000 / ours["back_to_back"]}
    assert 1.8 < rows["select 1/2"]["moved_bytes"] / (4096 * 3.3) < 1.9  # about 6 bytes an item
    for name, why in (("reduce", "case reduce: ended"), ("top 8", "case top_k: no case")):
        assert rows[name]["sides"]["cub"] == {"skipped": f"invented_cub {why}"}
        assert rows[name]["sides"]["gridwise_py"]["single"] > 0


def test_what_differs_from_cubs_ends_the_run(device, require, tmp_path):
    """Of floats, too: their sums are exact. Beyond the reference CUB's checksums alone say what is right."""
    require("timestamp-query")
    words = ("--n", "2^12", "--cases", "select 1/2;sort_pairs, u32;scan, f32", "--cub")
    for options, correct in (((), True), (("--reference", "2^4"), None)):
        _, rows = _cases(tmp_path, "cases", *words, _invented_cub(tmp_path, wrong=1 << 24), *options, code=4)
        for name in ("select 1/2", "sort_pairs, u32", "scan, f32"):
            sides = rows[name]["sides"]
            assert (sides["gridwise_py"]["correct"], sides["cub"]["correct"]) == (correct, False), name
    unknown = _run("cases", *_FEW, "--n", "2^12", "--peers", "none", "--cases", "selects")
    assert (unknown.exit_code, "--cases 'selects'" in unknown.output) == (2, True)


def test_checksums_in_parts(monkeypatch):
    harness, data = _script("harness"), _script("data")
    monkeypatch.setattr(harness, "_PART_ITEMS", 8)
    rng = np.random.default_rng(0)
    for items in (rng.integers(0, 2**32, 37, np.uint32), rng.integers(0, 2**64, 12, np.uint64), np.zeros(0, np.uint32)):
        wanted = sum((i + 1) * int(word) for i, word in enumerate(items.view(np.uint32))) % 2**64
        assert harness.checksum(items) == wanted, items.dtype
    assert data.make_data("words@40", 9)[:17].tolist() == data.make_data("words", 17).tolist()


# ---- fleets


def test_a_small_fleet_of_files_is_judged_as_expected(tmp_path, monkeypatch, capsys):
    script = _script("fleet_scale")
    path = tmp_path / "scale.json"
    monkeypatch.setattr(sys, "argv", ["fleet_scale", "--members", "80", "--samples", "3", "--json", str(path)])
    with pytest.raises(SystemExit) as ended:
        script.main()
    assert ended.value.code == 0, capsys.readouterr().out
    assert json.loads(path.read_text())["named"] == {
        "node2-gpu3": "wrong", "node5-gpu1": "slow", "node9-gpu0": "slow",
    }  # fmt: skip


# ---- on a machine that is rented for minutes


def test_what_was_measured_stays_whatever_comes_later(tmp_path, capsys):
    path = tmp_path / "found.json"
    steps = _script("steps").Steps(path, 5.0, gpus=2)
    assert steps.run("first", lambda: 7, 60) == 7
    assert "first" in json.loads(path.read_text())["seconds"]
    assert steps.run("second", lambda: 1 // 0, 60) is None
    assert steps.run("third", lambda: 8, 60) == 8
    steps._deadline_s = 0.0
    assert steps.run("fourth", lambda: pytest.fail("the time is over"), 60) is None
    found = json.loads(path.read_text())
    assert (found["gpus"], list(found["seconds"])) == (2, ["first", "second", "third"])
    assert found["errors"] == {"second": "ZeroDivisionError: integer division or modulo by zero"}
    assert steps.document["left_out"] == ["fourth"]
    assert not steps.is_whole
    assert "fourth: left out, the time is over" in capsys.readouterr().out


@pytest.mark.needs("module:distributed")
@pytest.mark.gpu
@pytest.mark.dask
@pytest.mark.parametrize(
    ("name", "words", "code"),
    [
        ("multi_gpu", "--adapters 0,0 --items 2^12 --seconds 0.01 --task-seconds 0.01", 0),
        ("multi_gpu", "--adapters 0 --items 2^12 --seconds 0.01 --parts processes --minutes 0", 4),
        ("larger_than_memory", "--adapters 0 --budget 1MiB --times 2", 0),
    ],
)
def test_programs_for_several_gpus_run_on_any_adapter(name, words, code, tmp_path):
    path = tmp_path / "found.json"
    command = [sys.executable, str(FOLDER / f"{name}.py"), *words.split(), "--json", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=400, check=False, cwd=tmp_path)
    assert done.returncode == code, done.stdout + done.stderr[-3000:]
    found = json.loads(path.read_text())
    assert found["errors"] == {}
    assert bool(found["left_out"]) == ("--minutes 0" in words)


# ---- the same code


def _main(name, monkeypatch, *words):
    module = _script(name)
    monkeypatch.setattr(sys, "argv", [name, *map(str, words)])
    return module, module.main


def test_pairs_of_the_same_code_and_of_others(device, tmp_path, monkeypatch):
    path = tmp_path / "times.json"
    module, main = _main("same_code_times", monkeypatch, "--alike", 3, "--others", 3, "--most-n", 4096, "--json", path)
    monkeypatch.setattr(module, "PROTOCOL", gw.SamplingProtocol(samples=12, warmup_s=0.001, max_warmup_s=0.01))
    assert main() == 0
    found = json.loads(path.read_text())
    assert found["alike"]["same_code"] == found["alike"]["rows"] >= 3
    assert found["others"]["same_code"] == 0 < found["others"]["rows"]
    words = {"same code": ["same code"] * 2, "one that differs": ["same code", "slower"]}
    for verdicts, code in ((words["same code"], 1), (words["one that differs"], 1), ([], 0)):
        monkeypatch.setattr(module, "judge", lambda device, old, new, verdicts=verdicts: (verdicts, 0, []))
        assert main() == code


def test_commits_said_to_be_the_same_whose_texts_differ_are_counted(tmp_path, monkeypatch, require):
    require("git")
    path, asked = tmp_path / "same.json", []
    module, main = _main("same_code", monkeypatch, "--last", 3, "--json", path)

    def ask(commit, hashes):
        asked.append(commit)
        said, truth = [("same", "same"), ("differs", "differs"), ("same", "differs")][len(asked) - 1]
        return {"commit": commit, "said": said, "second_way": truth, "units": 31, "touches": [], "first_line": ""}

    monkeypatch.setattr(module, "trees", lambda commit: commit)
    monkeypatch.setattr(module, "ask", ask)
    assert (main(), len(asked)) == (1, 3)
    found = json.loads(path.read_text())["summary"]
    assert (found["same_but_texts_differ"], found["wrong"], found["over_30_units"], found["equal_trees"]) == (
        1,
        1,
        3,
        0,
    )
    assert found["of_these_not_same"] == [asked[1]]
    assert (main(), len(asked)) == (1, 3), "what is done is kept"
    monkeypatch.setattr(module, "trees", lambda commit: "")
    path.unlink()
    assert main() == 0
    assert len(asked) == 3, "equal trees are not asked about"


def test_commits_of_a_bisected_repository(tmp_path, require):
    require("git")
    module = _script("bisect_commits")
    asked = types.SimpleNamespace(commits=16, slow_at=6, slower=0.05, turns=2000, n=4096, mode="hot")
    commits, slow, counts = module.make_commits(tmp_path, asked)
    texts = [module.git(tmp_path, "show", f"{commit}:loop.wgsl") for commit in commits]
    assert ["i < 2100u" in text for text in texts] == [number >= 6 for number in range(1, 17)]
    assert (commits.index(slow), len(set(commits)), sum(counts.values())) == (5, 16, 16)
    assert (counts["slower"], min(counts.values())) == (1, 1)
