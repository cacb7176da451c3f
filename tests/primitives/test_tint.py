"""Every composed text compiles under Tint, too, the compiler that browsers have."""

import re
import stat
import time
from collections import Counter

import numpy as np
import pytest

import gridwise_py as gw
from gridwise_py.planning.shaders import numbered, prologue
from helpers import tint
from helpers.cases import texts
from helpers.chromium import find_chromium
from helpers.float_sums import TILE, compensated_scan_twin, compensated_twin, ill_conditioned, reduce_twin, scan_twin
from helpers.replay import Job, replay
from helpers.strategies import assert_same

pytestmark = [pytest.mark.tint, pytest.mark.needs("chromium")]

# Tint has no 64-bit integers, and no feature for them.
EXEMPT_FEATURES = {"shader-int64", "shader-int64-atomic-all-ops"}
# Nor has it doubles, and in Chromium no matrices of subgroups unless a switch allows them.
DOUBLES, MATRICES = "shader-f64", "chromium-experimental-subgroup-matrix"


@pytest.fixture(scope="module")
def chromium():
    return find_chromium()


def _exempt(shader) -> bool:
    return bool((EXEMPT_FEATURES | {MATRICES}) & set(shader.features))


def _kernel(shader) -> str:
    """Return the first line of a text, which all forms of a kernel share."""
    return shader.text.splitlines()[0]


def test_exemptions_are_64_bit_texts_only_and_have_a_twin():
    """Each exempt text has 64-bit state words, and the same with two 32-bit words is compiled; or computes doubles."""
    found = list(texts().values())
    doubles = [shader for _, shader in found if DOUBLES in shader.features]
    assert all(re.search(r"\bf64\b", shader.text) for shader in doubles)
    found = [(name, shader) for name, shader in found if not {DOUBLES, MATRICES} & set(shader.features)]
    exempt = [(name, shader) for name, shader in found if _exempt(shader)]
    assert exempt
    for name, shader in exempt:
        assert "-u64-" in name
        assert re.search(r"\bu64\b", shader.text)
    twins = Counter(_kernel(shader) for name, shader in found if "-u32x2-" in name)
    # Some of those with two words have no state in them, so there may be more.
    missing = Counter(_kernel(shader) for _, shader in exempt) - twins
    assert not missing
    assert len(exempt) < 0.5 * len(found)


def test_every_text_compiles_without_a_word(chromium):
    chosen = [(name, shader) for name, shader in texts().values() if not _exempt(shader)]
    complete = [prologue("tint", shader.text) + shader.text for _, shader in chosen]
    report = tint.compile_texts(complete, chromium=chromium, timeout_s=300)
    assert "subgroups" in report.features, "or subgroup operations were not checked"
    complaints = [
        (name, text, messages)
        for (name, _), text, messages in zip(chosen, complete, report.messages, strict=True)
        if messages
    ]
    print(f"{len(complete)} texts compiled, {len(texts()) - len(complete)} with 64-bit words exempt")
    if complaints:
        name, text, messages = complaints[0]
        kinds = sorted({re.sub(r"line \d+", "line …", m) for _, _, ms in complaints for m in ms})
        pytest.fail(
            f"{len(complaints)} of {len(complete)} texts; all complaints:\n"
            + "\n".join(kinds)
            + f"\n\nthe first, {name}:\n"
            + "\n".join(messages)
            + "\n"
            + numbered(text)
        )


def test_reproducible_floats_are_the_same_bits_on_another_adapter(chromium):
    """Tint and SwiftShader, from the plans' JSON, against the fixed order in numpy, which wgpu's adapters meet, too."""
    jobs, wanted = [], []
    for n in (7, 5 * TILE + 3):
        rng = np.random.default_rng(n)
        x = (rng.standard_normal(n) * np.exp2(rng.integers(-12, 13, n))).astype(np.float32)
        ill = ill_conditioned(n, 1e6)
        for cls, options, items, want in (
            (gw.Reduce, {"deterministic": True}, x, reduce_twin(x)),
            (gw.Scan, {"deterministic": True}, x, scan_twin(x, "inclusive")),
            (gw.Scan, {"deterministic": True, "kind": "exclusive"}, x, scan_twin(x, "exclusive")),
            (gw.Reduce, {"compensated": True}, x, compensated_twin(x)),
            (gw.Scan, {"compensated": True}, ill, compensated_scan_twin(ill, "inclusive")),
            (gw.Scan, {"compensated": True, "kind": "exclusive"}, ill, compensated_scan_twin(ill, "exclusive")),
            (gw.Reduce, {"compensated": True}, ill, compensated_twin(ill)),
        ):
            lengths = {"input": n, "output": want.size}
            plan = cls.plan_for(capabilities=gw.Capabilities(), lengths=lengths, dtype="f32", **options)
            jobs.append(Job(plan, {"input": items}, {"output": items.dtype}))
            wanted.append(want)
    adapter, results = replay(jobs, chromium=chromium)
    print(adapter)
    for job, got, want in zip(jobs, results, wanted, strict=True):
        note = f"{job.plan.primitive} {job.plan.parameters} on {adapter}"
        assert_same(got["output"][: want.size], want, note)


def test_the_harness_sees_errors_and_warnings(chromium):
    good = "@compute @workgroup_size(1) fn main() {}"
    report = tint.compile_texts(
        [
            good,
            "fn main() { nonsense; }",
            "const x = bitcast<f32>(0x7f800000u);",
            "enable subgroups;\n" + good,
            "fn f() { let x = subgroupAdd(1u); }",
            "var<private> x: u64;",
            "fn f() { return; let x = 1; }",
            good,
        ],
        chromium=chromium,
    )
    kinds = [{m.split(",")[0] for m in messages} for messages in report.messages]
    assert kinds == [set(), {"error"}, {"error"}, set(), {"error"}, {"error"}, {"warning"}, set()]


def _is_alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as status:
            return status.read().rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_no_chromium_is_left_behind_when_it_hangs(tmp_path):
    """Neither it nor its helpers, however it ends."""
    note = tmp_path / "pids"
    fake = tmp_path / "chromium"
    fake.write_text(f"#!/bin/sh\nsleep 3000 &\necho $$ $! >> {note}\nwait\n")
    fake.chmod(fake.stat().st_mode | stat.S_IXUSR)
    with pytest.raises(tint.TintError, match="no report"):
        tint.compile_texts(["fn f() {}"], chromium=str(fake), timeout_s=1, attempts=2)
    pids = [int(pid) for pid in note.read_text().split()]
    assert len(pids) == 4
    end = time.monotonic() + 60
    while alive := [pid for pid in pids if _is_alive(pid)]:
        assert time.monotonic() < end, f"processes {alive} are alive"
        time.sleep(0.02)
