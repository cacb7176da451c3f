"""Random inputs are seeded, so that a failure repeats."""

import re
from pathlib import Path

import gridwise_py as gw
from helpers.paths import ROOT, TESTS

UNSEEDED = re.compile(r"default_rng\(\s*\)|np\.random\.(rand|randn|randint|random|uniform|normal)\(")


def test_random_inputs_are_seeded():
    folders = [TESTS, Path(gw.__file__).parent, ROOT / "benchmarks"]
    paths = [path for folder in folders for path in folder.rglob("*.py") if path != Path(__file__).resolve()]
    texts = {path: path.read_text(encoding="utf-8") for path in paths}
    assert any("default_rng(" in text for text in texts.values())
    assert [str(path) for path, text in texts.items() if UNSEEDED.search(text)] == []
