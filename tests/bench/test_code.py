"""`gridwise diff`: what two versions ask of a GPU, without one; a device that records; counts."""

import json
import random
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import gridwise_py as gw
from gridwise_py.bench.ab.differ import CaseDifference
from gridwise_py.bench.analysis.counts import count_changes
from gridwise_py.bench.cases.case import Case
from gridwise_py.bench.cases.device_classes import DEVICE_CLASSES, SOURCES
from gridwise_py.bench.sampling.codes import record_case
from gridwise_py.cli import bisect as _command
from gridwise_py.cli import main
from gridwise_py.internals import Code, context_of
from gridwise_py.runtime.asked import bare_lines

bisecting = sys.modules[_command.callback.__module__]
ROOT = Path(gw.__file__).resolve().parents[1]
FILE = '''
from pathlib import Path
import numpy as np, gridwise_py as gw

TEXT = Path(__file__).with_name("part.wgsl").read_text() + """
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@group(0) @binding(2) var<uniform> factor: f32;
override SIZE: u32 = 64;
override LEVEL: u32 = 1;
var<workgroup> kept: array<f32, 64>;
@compute @workgroup_size(SIZE) fn main(
  @builtin(global_invocation_id) id: vec3<u32>, @builtin(local_invocation_index) lane: u32,
) {
  kept[lane % 64] = scaled(x[id.x], factor);  // of this lane
  workgroupBarrier();
  var sum = 0f;
  for (var i = 0u; i < 4u; i++) { sum += kept[(lane + i * LEVEL) % 64]; }
  y[id.x] = sum;
}"""

@gw.benchmarked(n=[4096])
def work(device, n):
    size = 64 if gw.capabilities(device).subgroup_size != 64 else 64
    kernel = gw.Kernel(
        device, TEXT, {"x": "read", "y": "write", "factor": "uniform"}, workgroups=n // size,
        constants={"SIZE": size, "LEVEL": 1},
    )
    x = np.random.default_rng(1).random(n, dtype=np.float32)
    return gw.Benchmark(run=kernel, inputs={"x": x, "y": np.empty_like(x), "factor": 2.0})

@gw.benchmarked(n=[4096])
def total(device, n):
    x = gw.asarray(np.arange(n, dtype=np.uint32), device)
    return gw.Benchmark(run=lambda: gw.sum(gw.cumsum(x)))

@gw.benchmarked(n=[4096])
def recorded(device, n):
    scan, x = gw.Scan(device, "u32"), gw.asarray(np.arange(n, dtype=np.uint32), device)
    return gw.Benchmark(run=lambda encoder: scan.record(encoder, input=x))

@gw.benchmarked(n=[4096])
def reads(device, n):
    x = gw.asarray(np.arange(n, dtype=np.uint32), device)
    return gw.Benchmark(run=lambda: gw.sum(x).item())
'''
PART = "fn scaled(value: f32, by: f32) -> f32 { return value * by + 1.0; }\n"


def _of(rng, low, high, but):
    return rng.choice([value for value in range(low, high) if value != but])


#: By kind: the file, what is replaced, by what, and what the first line must say.
SEEDED = {
    "constant": (FILE, '"LEVEL": 1', lambda rng: f'"LEVEL": {_of(rng, 2, 60, 1)}', "constant LEVEL"),
    "barrier": (FILE, "  workgroupBarrier();\n", lambda rng: rng.choice(["", "  storageBarrier();\n"]), "Barrier()"),
    "loop bound": (FILE, "i < 4u", lambda rng: f"i < {_of(rng, 5, 99, 4)}u", "for (var i"),
    "include": (PART, "+ 1.0", lambda rng: f"+ {rng.randint(2, 99)}.0", "fn scaled"),
    "shape of a class": (FILE, "else 64", lambda rng: f"else {rng.choice([32, 128])}", "constant SIZE"),
    "uniform": (FILE, '"factor": 2.0', lambda rng: f'"factor": {rng.randint(3, 99)}.5', "uniform 2"),
    "seed": (FILE, "default_rng(1)", lambda rng: f"default_rng({rng.randint(2, 999)})", "items of x"),
    "comment": (FILE, "// of this lane", lambda rng: rng.choice(["", "/* a /* nested */ one */", "// other"]), ""),
}


def _codes(folder, classes, file=FILE, part=PART, name="work"):
    folder.mkdir()
    (folder / "kernels.py").write_text(file)
    (folder / "part.wgsl").write_text(part)
    case = {"file": str(folder / "kernels.py"), "name": name, "n": 4096, "mode": "hot", "axes": {}, "seed": 0}
    return {one: Code.of(**record_case(DEVICE_CLASSES[one], **case)) for one in classes}


def _seeded_are_found(folder, changes, classes):
    rng, right = random.Random(5), _codes(folder / "right", classes)
    for number in range(changes):
        kind, (text, old, new, said) = list(SEEDED.items())[number % len(SEEDED)]
        assert text.count(old) == 1
        changed = text.replace(old, new(rng))
        texts = {"file": changed} if text is FILE else {"part": changed}
        found = _codes(folder / str(number), classes, **texts)
        differing = {one: (right[one], found[one]) for one in classes if right[one].digests != found[one].digests}
        wanted = {
            "comment": [],
            "shape of a class": [one for one in classes if DEVICE_CLASSES[one].subgroup_size == 64],
        }
        assert [*differing] == wanted.get(kind, [*classes]), (kind, changed)
        line = str(CaseDifference("work", len(classes), differing))
        assert said in line, (kind, line)
        assert f"differs on {len(differing)} of" in line or kind == "comment"


def test_seeded_changes_are_found_and_named_first(tmp_path):
    _seeded_are_found(tmp_path, len(SEEDED), ("H100, wgpu", "AMD, wave64"))


@pytest.mark.slow
def test_a_hundred_seeded_changes_are_found_on_all_classes(tmp_path):
    _seeded_are_found(tmp_path, 114, tuple(DEVICE_CLASSES))  # of which 14 are comments


def test_a_device_that_records_is_asked_what_a_gpu_is_asked(device):
    """The launches of a call are those of the plan that this call has on a real device of these capabilities."""
    capabilities = gw.capabilities(device)
    known = gw.LookbackVerdict(coherent=True, progress=True, needs_tickets=False, recovers=True)
    one = gw.Capabilities(**{**capabilities.__dict__, "lookback": known})
    recording = Code.device(one)
    x = np.arange(100_000, dtype=np.uint32)
    run = gw.Sort(recording, "u32").execute(input=gw.asarray(x, recording))
    plan, inputs = context_of(recording).log.plan({})
    kernels = [step for step in plan["steps"] if step["kind"] == "kernel"]
    wanted = gw.Sort(None, "u32", capabilities=one).plan(gw.Layout.separate(input=x.size, output=x.size))
    assert [kernel["workgroups"] for kernel in kernels] == [[*kernel.workgroups] for kernel in wanted.kernels]
    texts = [bare_lines(plan["shaders"][kernel["shader"]]["text"]) for kernel in kernels]
    own = [bare_lines(wanted.shaders[kernel.shader].text) for kernel in wanted.kernels]
    assert [text[-len(bare) :] for text, bare in zip(texts, own, strict=True)] == own, "but for what a compiler needs"
    assert [kernel["constants"] for kernel in kernels] == [dict(one.constants) for one in wanted.kernels]
    assert len(inputs) == 1
    with pytest.raises(gw.ArgumentError, match="only records"):
        run.output.to_numpy()
    with pytest.raises(gw.ArgumentError, match="only records"):
        gw.sum(run.output).item()
    assert context_of(device).log is None


def test_counts_are_those_of_the_plan(tmp_path):
    (code,) = _codes(tmp_path / "one", ["H100, wgpu"]).values()
    assert code.counts == {
        "launches": 1, "transfers": 0, "workgroups": 64, "invocations": 4096, "pipelines": 1, "barriers": 0,
        "bound_bytes": 2 * 4 * 4096 + 4, "scratch_bytes": 4, "allocations": 0, "uploads": 0,
        "declared_bytes": 3 * 4 * 4096,
    }  # fmt: skip
    (two,) = _codes(tmp_path / "two", ["H100, wgpu"], name="total").values()
    assert two.counts["launches"] >= 2
    assert two.counts["barriers"] >= 1, "the sum waits for the cumsum"
    assert two.counts["allocations"] == 2, "a result of each"
    (three,) = _codes(tmp_path / "three", ["H100, wgpu"], name="recorded").values()
    assert (three.counts["launches"], three.counts["uploads"]) == (1, 0)


def test_the_same_layout_in_other_memory_is_other_code():
    """Two calls that share an array, and two that do not, have equal plans each."""
    plan = Code.data_of(gw.Copy.plan_for(capabilities=gw.Capabilities(), lengths={"input": 64, "output": 64}))
    chained = [{**plan, "memory": {"input": "a", "output": "b"}}, {**plan, "memory": {"input": "b", "output": "c"}}]
    apart = [chained[0], {**plan, "memory": {"input": "d", "output": "c"}}]
    one, other = Code.of(chained, {}), Code.of(apart, {})
    assert one.digests["launches"] != other.digests["launches"]
    assert (one.counts["barriers"], other.counts["barriers"]) == (1, 0)
    unknown = Code.of([plan], {"input": None})
    assert "inputs" not in unknown.digests


@pytest.mark.parametrize("name", ["scan", "sort", "copy", "group_by", "matmul"])
def test_a_plan_is_the_same_as_itself_on_all_classes(name):
    case = Case.usual(name, 512)
    for capabilities in DEVICE_CLASSES.values():
        plans = [
            case.make(None, capabilities).plan(
                gw.Layout.separate(
                    **{**case.lengths, **dict.fromkeys(case.make(None, capabilities).signature.outputs, 512)}
                )
            )
            for _ in range(2)
        ]
        one, other = (Code.of([Code.data_of(plan)], {}) for plan in plans)
        assert one.digests == other.digests
        assert list(one.changes(other)) == []
    assert SOURCES.keys() == DEVICE_CLASSES.keys()


def test_counts_are_gated_without_a_threshold(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "part.wgsl").write_text(PART)
    for name, file in (("old", FILE), ("new", FILE.replace("gw.sum(gw.cumsum(x))", "gw.sum(gw.cumsum(gw.cumsum(x)))"))):
        (tmp_path / "kernels.py").write_text(file)
        made = CliRunner().invoke(main, ["counts", "kernels.py", "total", "work", "--json", f"{name}.json"])
        assert made.exit_code == 0, made.output
        assert "kernels.work n=2^12 (all classes): launches 1, " in made.stdout
    found = json.loads((tmp_path / "old.json").read_text())["cases"]
    assert found["kernels.work n=2^12, Apple"]["workgroups"] == 64
    (tmp_path / "none.py").write_text(FILE.replace("gw.sum(gw.cumsum(x))", "gw.sum(1 / 0)"))
    none = CliRunner().invoke(main, ["counts", "none.py", "total"])
    assert (none.exit_code, "ZeroDivisionError" in none.output) == (2, True), none.output
    more = CliRunner().invoke(main, ["compare", "old.json", "new.json"])
    assert (more.exit_code, "MORE: kernels.total n=2^12, Apple: launches: 2 → 3" in more.stdout) == (1, True), (
        more.output
    )
    fewer = CliRunner().invoke(main, ["compare", "new.json", "old.json"])
    assert (fewer.exit_code, "launches: 3 → 2" in fewer.stdout) == (0, True), fewer.output
    same = CliRunner().invoke(main, ["compare", "old.json", "old.json"])
    assert (same.exit_code, same.stdout) == (0, "0 counts changed, 0 of them must not\n")
    (tmp_path / "bad.json").write_text('{"schema": "gridwise.counts", "cases": [1]}')
    bad = CliRunner().invoke(main, ["compare", "bad.json", "old.json"])
    assert (bad.exit_code, "bad.json has no counts" in bad.output) == (2, True)
    gone = dict(count_changes({"a": {"launches": 1}, "b": {"x": None}}, {"b": {"x": 1}, "c": {}}))
    assert gone == {True: "a: only in OLD", False: "c: only in NEW"}
    assert list(count_changes({"a": {"x": 1}}, {"a": {}})) == [(True, "a: x: 1 → None")], "nobody knows it any more"


def _git(folder, *words):
    identity = ["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", "-C", str(folder), *identity, *words], check=True, capture_output=True)


def _diff(*words):
    return CliRunner().invoke(main, ["diff", *map(str, words)])


@pytest.mark.slow
def test_the_command_tells_revisions_of_a_users_file_apart(tmp_path, monkeypatch, require):
    require("git")
    folder = tmp_path / "theirs"
    folder.mkdir()
    _git(folder, "init", "-q")
    for file in (FILE, FILE.replace("i < 4u", "i < 5u"), FILE.replace("def recorded", "def renamed")):
        (folder / "kernels.py").write_text(file)
        (folder / "part.wgsl").write_text(PART)
        _git(folder, "add", ".")
        _git(folder, "commit", "-q", "-m", "one")
    monkeypatch.chdir(folder)
    same = _diff("HEAD", "HEAD", "--", "kernels.py", "work", "total")
    assert (same.exit_code, same.stdout.splitlines()) == (0, ["same on 10 of 10 classes: 2 of 2 cases"]), same.output
    differs = _diff("HEAD~2", "HEAD~1", "--json", "found.json", "--", "kernels.py", "work")
    assert differs.exit_code == 1, differs.output
    first, *rest = differs.stdout.splitlines()
    assert first.startswith("kernels.work n=2^12: differs on 10 of 10 classes: kernel: text: 1 line: - for (var i")
    assert any(line.startswith("+  for (var i = 0u; i < 5u") for line in rest)
    found = json.loads(Path("found.json").read_text())
    assert (found["schema"], found["cases"][0]["verdict"]) == ("gridwise.diff", "differs")
    assert found["cases"][0]["counts"]["Apple"]["NEW"]["launches"] == 1
    unknown = _diff("HEAD", "HEAD", "--", "kernels.py", "reads")
    assert (unknown.exit_code, "a result is read" in unknown.stdout) == (2, True), unknown.output
    one_side = _diff("HEAD~1", "HEAD", "--", "kernels.py", "renamed")
    assert (one_side.exit_code, "OLD does not run: kernels.py has no benchmark 'renamed'" in one_side.stdout) == (
        1,
        True,
    )


def test_a_version_that_does_not_import_cannot_be_told(tmp_path):
    for name, text in (("old", "raise RuntimeError('broken')"), ("new", "__version__ = '1'")):
        (tmp_path / name / "gridwise_py").mkdir(parents=True)
        (tmp_path / name / "gridwise_py" / "__init__.py").write_text(text)
        (tmp_path / name / "shaders").mkdir()
    found = _diff(tmp_path / "old", tmp_path / "new", "--", "copy")
    assert found.exit_code == 2, found.output
    assert "cannot be asked: its process ended with 1: RuntimeError: broken" in found.output
    wrong = _diff(".", ".", "--", "scann")
    assert (wrong.exit_code, "is no primitive" in wrong.output) == (2, True)


def test_the_same_files_are_the_same_without_a_process(tmp_path):
    for name in ("old", "new"):
        shutil.copytree(ROOT / "gridwise_py" / "types", tmp_path / name / "gridwise_py" / "types")
        (tmp_path / name / "gridwise_py" / "__init__.py").write_text("")
        (tmp_path / name / "shaders").mkdir()
    few = _diff(tmp_path / "old", tmp_path / "new", "--n", "2^10,2^12", "--", "copy", "matmul")
    assert (few.exit_code, few.stdout) == (0, "same on 10 of 10 classes: 4 of 4 cases\n"), few.output
    found = _diff(tmp_path / "old", tmp_path / "new")
    assert (found.exit_code, found.stdout[:24]) == (0, "same on 10 of 10 classes"), found.output


@pytest.mark.parametrize(
    ("slow_from", "unknown", "code", "said"),
    [
        (5, (), 1, "the first slower commit is 5"), (1, (), 1, "the first slower commit is 1"),
        (9, (), 1, "the first slower commit is 9"), (99, (), 0, "HEAD is not slower than v1"),
        (5, (7,), 1, "the first slower commit is 5"), (5, (3,), 125, "the first slower commit is one of 3, 5"),
        (5, (1, 3, 5), 125, "is one of 1, 3, 5, 7"), (5, (9,), 125, "whether HEAD is slower is not"),
    ],
)  # fmt: skip
def test_bisecting_skips_same_code_and_what_is_not_known(monkeypatch, slow_from, unknown, code, said):
    """Commits 0 to 9, of which the odd ones change what is asked of a GPU."""
    judged, number_of = [], {"v1": 0, "HEAD": 9} | {str(number): number for number in range(10)}

    def judge(good, commit, cases, options):
        assert (good, cases) == ("v1", ("scan",))
        judged.append((number_of[commit] + 1) // 2)  # what it asks
        change = max(2 * judged[-1] - 1, 0)
        return bisecting.SKIP if change in unknown else int(change >= slow_from)

    def is_same(cases, one, other):
        assert cases == ("scan",)
        return len({(number_of[commit] + 1) // 2 for commit in (one, other)}) == 1

    monkeypatch.setattr(bisecting, "_commits", lambda good, bad: [str(number) for number in range(10)])
    monkeypatch.setattr(bisecting, "_is_same", is_same)
    monkeypatch.setattr(bisecting, "_judge", judge)
    found = CliRunner().invoke(main, ["bisect", "v1", "HEAD", "--", "scan"])
    assert (found.exit_code, said in found.stdout) == (code, True), found.output
    assert len(judged) == len(set(judged)), "none is measured twice"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("file", "said"),
    [
        (FILE.replace("workgroups=n // size", "workgroups=(1 << 16,)"), "max-compute-workgroups-per-dimension"),
        (FILE + "raise ValueError(3)\n", "ValueError: 3"),
    ],
)  # fmt: skip
def test_a_commit_that_does_not_run_is_neither_slower_nor_not(device, require, tmp_path, monkeypatch, file, said):
    require("git")
    _git(tmp_path, "init", "-q")
    for text in (FILE, file):
        (tmp_path / "kernels.py").write_text(text)
        (tmp_path / "part.wgsl").write_text(PART)
        _git(tmp_path, "add", ".")
        _git(tmp_path, "commit", "-q", "-m", "one")
    monkeypatch.chdir(tmp_path)
    found = CliRunner().invoke(main, ["bisect", "HEAD~1", "HEAD", "--pairs", "2", "--", "kernels.py", "work"])
    assert (found.exit_code, said in found.output) == (125, True), found.output
    assert "whether HEAD is slower is not known" in found.output


def test_a_folder_alone_is_judged_as_git_bisect_run_needs_it(monkeypatch, tmp_path):
    for code, said in ((0, "is not slower"), (1, "is slower"), (125, "is not known")):
        monkeypatch.setattr(bisecting, "_judge", lambda *_, code=code: code)
        found = CliRunner().invoke(main, ["bisect", "v1", str(tmp_path), "--", "scan"])
        assert (found.exit_code, said in found.stdout) == (code, True), found.output
    wrong = CliRunner().invoke(main, ["bisect", "no-such-one", "HEAD", "--", "scan"])
    assert (wrong.exit_code, "name two revisions, the older one first" in wrong.output) == (2, True), wrong.output
