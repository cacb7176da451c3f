"""How often does gpu_benchmark fail a test whose kernel did not change, and how often does it find a change?

Usage: python benchmarks/false_regressions.py [--tests 200] [--round-s 0.02] [--json FILE]

Three runs of pytest, one after the other, each a process of its own as in CI: one writes the stored file; in the
second, the same tests are compared with it; in the third, each kernel has --more of its work more. All tests are of one
kernel, a chain of multiply-adds. A test of the second run that fails is a false regression; one of the third that
passes is a miss, or ambiguous. The gate is 0 here by default, so that each verdict «slower» fails; the gate of 5 % that
tests have by default lets more pass.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ET
from collections import Counter
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

import click
from scipy.stats import binomtest

import gridwise_py as gw
from gridwise_py.bench.in_pytest.judgement import judge
from gridwise_py.bench.results.rounds import by_case
from gridwise_py.storage.json_files import write_json

ROOT = Path(__file__).resolve().parent.parent
TESTS = '''
import os
import numpy as np, pytest
import gridwise_py as gw

WGSL = """
override STEPS: u32;
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  var a = x[id.x];
  for (var i = 0u; i < STEPS; i++) { a = fma(a, 0.999, 0.001); }
  y[id.x] = a;
}"""
N = int(os.environ["N"])

@pytest.fixture(scope="module")
def chain():
    constants = {"STEPS": int(os.environ["STEPS"])}
    return gw.Kernel(
        gw.default_device(), WGSL, {"x": "read", "y": "read_write"}, N // 64, constants=constants, label="chain"
    )

@pytest.mark.parametrize("test", range(int(os.environ["TESTS"])))
def test_chain(chain, gpu_benchmark, test):
    protocol = gw.SamplingProtocol(
        timeout_s=float(os.environ["ROUND_S"]), warmup_s=float(os.environ["WARMUP_S"]), max_warmup_s=0.1,
        max_clock_warmup_s=0.1, min_samples=20, block_trials=20, check_unit=False,
    )
    gpu_benchmark(
        chain, rounds=int(os.environ["ROUNDS"]), protocol=protocol, threshold=float(os.environ["THRESHOLD"]),
        gate=float(os.environ["GATE"]), x=np.ones(N, np.float32), y=gw.zeros(N, "f32"),
    )
'''


def run(folder: Path, name: str, settings: dict[str, Any], against: str | None) -> int:
    """Run pytest once, and return how many tests it failed."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "gridwise_pytest", "-p", "no:cacheprovider"]
    command += [f"--gridwise-json={name}.json", f"--junitxml={name}.xml"]
    command += [] if against is None else [f"--gridwise-compare={against}.json"]
    paths = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = {
        **os.environ, "PYTHONPATH": paths, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        **{key: str(value) for key, value in settings.items()},
    }  # fmt: skip
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):
        raise click.ClickException(f"pytest ended with {done.returncode}:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    suite = ET.parse(folder / f"{name}.xml").getroot()
    counts = {key: sum(int(one.get(key, 0)) for one in suite.iter("testsuite")) for key in ("tests", "failures")}
    if counts["tests"] != settings["TESTS"]:
        raise click.ClickException(f"pytest ran {counts['tests']} of {settings['TESTS']} tests:\n{done.stdout[-2000:]}")
    return counts["failures"]


def verdicts(old: Path, new: Path, threshold: float, gate: float) -> dict[str, Any]:
    """Return how often each verdict came, by the judgement of the fixture, and why ambiguous ones are that."""
    baseline, document = gw.read_results(old), gw.read_results(new)
    kinds, causes = Counter[str](), Counter[str]()
    ratios: list[float] = []
    for visits in by_case(document.results).values():
        case = replace(document, results=tuple(visits))
        judgement = judge(visits[0].primitive, baseline, case, old.name, threshold=threshold, gate=gate)
        verdict = None if judgement is None else judgement.comparison.rows[0].verdict
        if verdict is None:
            kinds["not judged"] += 1
            continue
        kinds[verdict.kind.value] += 1
        ratios.append(verdict.ratio)
        if verdict.cause is not None:
            causes[verdict.cause.value] += 1
    return {"verdicts": dict(kinds), "causes": dict(causes), "median_ratio": median(ratios) if ratios else None}


def share(hits: int, count: int) -> dict[str, float]:
    """Return a share of tests with its 95 % interval."""
    interval = binomtest(hits, count).proportion_ci()
    return {"share": hits / count, "low": float(interval.low), "high": float(interval.high)}


@click.command()
@click.option("--tests", type=click.IntRange(min=1), default=200, show_default=True)
@click.option("--items", type=click.IntRange(min=64), default=1 << 16, show_default=True)
@click.option("--steps", type=click.IntRange(min=50), default=2000, show_default=True, help="Of the chain.")
@click.option("--more", type=click.FloatRange(min=0), default=0.03, show_default=True, help="0: no third run.")
@click.option("--rounds", type=click.IntRange(min=1), default=5, show_default=True)
@click.option("--round-s", type=click.FloatRange(min=0.001), default=0.1, show_default=True)
@click.option("--warmup-s", type=click.FloatRange(min=0), default=0.03, show_default=True)
@click.option("--threshold", type=click.FloatRange(min=0.001), default=0.02, show_default=True)
@click.option("--gate", type=click.FloatRange(min=0), default=0.0, show_default=True)
@click.option("--json", "json_path", type=click.Path(path_type=Path), help="Write the figures here.")
def main(
    tests: int, items: int, steps: int, more: float, rounds: int, round_s: float, warmup_s: float, threshold: float,
    gate: float, json_path: Path | None,
) -> None:  # fmt: skip
    """Run the tests three times, and count."""
    begin_s = time.perf_counter()
    settings = {
        "TESTS": tests, "N": items // 64 * 64, "STEPS": steps, "ROUNDS": rounds, "ROUND_S": round_s,
        "WARMUP_S": warmup_s, "THRESHOLD": threshold, "GATE": gate,
    }  # fmt: skip
    longer = settings | {"STEPS": round(steps * (1 + more))}
    found: dict[str, Any] = {}
    texts = {"same": "false regressions, the same kernel", "more": f"failed, {100 * more:g} % more work"}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "test_chain.py").write_text(TESTS)
        (folder / "pytest.ini").write_text("[pytest]\n")  # so that no other configuration counts
        run(folder, "old", settings, None)
        for run_name, what in (("same", settings), ("more", longer))[: 2 if more else 1]:
            failed = run(folder, run_name, what, "old")
            judged = verdicts(folder / "old.json", folder / f"{run_name}.json", threshold, gate)
            found[run_name] = {"failed": share(failed, tests), "steps": what["STEPS"], **judged}
            said = found[run_name]["failed"]
            click.echo(
                f"{texts[run_name]}: {100 * said['share']:.1f} % ({100 * said['low']:.1f} to "
                f"{100 * said['high']:.1f}); verdicts {judged['verdicts']}, ambiguous by {judged['causes']}"
            )
        document = gw.read_results(folder / "old.json")
    click.echo(f"{document.device.title}, {tests} tests, {time.perf_counter() - begin_s:.0f} s")
    if json_path is not None:
        head = {"context": document.to_json()["context"], "device": document.to_json()["device"]}
        write_json(json_path, {**head, "settings": settings, "more": more, "results": found})
        click.echo(f"wrote {json_path.name}")


if __name__ == "__main__":
    main()
