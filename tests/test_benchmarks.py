"""The scripts in benchmarks/ start, and do a small round of what they are for."""

import importlib.util
import json
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

import gridwise_py as gw

FOLDER = Path(__file__).resolve().parent.parent / "benchmarks"
# torch_peer needs PyTorch, and says so.
SCRIPTS = sorted(p for p in FOLDER.rglob("*.py") if p.stem != "torch_peer")


def _script(name):
    path = next(p for p in SCRIPTS if p.stem == name)
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def _run(name, *words):
    return CliRunner().invoke(_script(name).main, [str(word) for word in words])


@pytest.mark.parametrize("name", [p.stem for p in SCRIPTS])
def test_it_starts(name):
    """Imports what it needs of the library; those with options explain themselves."""
    module = _script(name)
    assert module.__doc__
    if hasattr(module.main, "callback"):
        done = CliRunner().invoke(module.main, ["--help"])
        assert done.exit_code == 0, done.output


def test_shapes_are_measured_and_judged(device, tmp_path):
    path = tmp_path / "shapes.json"
    words = ("--n", "3000", "--kernels", "reduce", "--rounds", 3, "--seconds", 0.002, "--json", path)
    done = _run("variants", "shapes", *words)
    assert done.exit_code == 0, done.output
    rows = json.loads(path.read_text())["results"]
    assert len(rows) > 3
    assert all(row["correct"] and row["time_ns"] > 0 for row in rows)
    assert rows[0]["ratio"] is None
    assert {row["verdict"] for row in rows[1:]} <= {"faster", "slower", "same", "ambiguous"}
    assert len({(row["parameters"]["workgroup_size"], row["parameters"]["vecs"]) for row in rows}) >= 2


def test_variants_change_the_text_or_the_plan_and_stay_right(device, require):
    require("subgroup", "shader-int64", "shader-int64-atomic-all-ops")
    variants = _script("variants")
    made = variants.variants(device, 100_000)
    assert list(made) == list(variants.VARIANTS)
    inputs, arrays = variants.data(made["as it is"], 100_000)
    seen = set()
    for name, scan in made.items():
        run = scan.execute(**arrays)
        assert (run.output.to_numpy() == scan.reference(**inputs)).all(), name
        seen.add((run.plan.kernels[0].shader, run.plan.parameters.get("tickets")))
    # On a CPU adapter words are always read by atomicOr and tiles always taken by tickets; checks are no other text.
    assert len(seen) >= len(made) - 3
    assert gw.Scan(device, "u32", strategy="lookback").plan(gw.Layout.separate(input=100_000, output=100_000)) == made[
        "as it is"
    ].plan(gw.Layout.separate(input=100_000, output=100_000)), "nothing is left changed"


def test_a_variant_that_no_longer_applies_says_so(device):
    variants = _script("variants")
    with (
        pytest.raises(variants.click.ClickException, match="must be written anew"),
        variants.changed_text("no such", ""),
    ):
        gw.Scan(device, "u32", strategy="lookback").plan(gw.Layout.separate(input=100, output=100))
