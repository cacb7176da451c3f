"""Each example runs as it stands, in a process of its own, and prints what it promises."""

import importlib.util
import os
import re
import subprocess
import sys

import numpy as np
import pytest
from click.testing import CliRunner

import gridwise_py as gw
from gridwise_py import cli
from helpers.paths import ROOT

EXAMPLES = ROOT / "examples"

TIME = r"\d[\d.]* (ns|µs|ms|s)"
#: Of a GPU that was idle, and whose clock nobody holds or tells.
DOUBT = "(; doubtful: time up to 3 times too long: .*)?"
ADDS = rf"TimingResult\(per trial of 1: vector_add {TIME}; GPU span {TIME}, CPU wall not measured{DOUBT}\)"
SCANS = rf"TimingResult\(per trial of \d+: .*scan.* {TIME}; GPU span {TIME}, CPU wall {TIME}{DOUBT}\)"

#: Regular expressions that lines must match, in this order.
LINES = {
    "time_a_scan.py": [SCANS, r"PerTrial\(gpu_total_time_ns=\[.*\], .*\)", r"\[ *1 +2 +3 \.\.\. .* 1000000\]"],
    "own_kernel.py": [
        rf"TimingResult\(per trial of 10: square {TIME}; GPU span {TIME}, CPU wall {TIME}{DOUBT}\)",
        r"\[ 0\.  1\.  4\.  9\. 16\.\]",
    ],
    "two_on_one_encoder.py": [
        "no times yet: the encoder is not submitted",
        rf"TimingResult\(per trial of 1: reduce.*; GPU span {TIME}, CPU wall not measured{DOUBT}\)",
        r"  reduce.*: [\d.]+ µs on the GPU",
        ADDS,
        r"  vector_add: [\d.]+ µs on the GPU",
        r"mean of a \+ b: 999\.342",
    ],
    "notebook_async.py": [SCANS, "last item: 1000000", "the event loop went on meanwhile: True"],
    "own_operator.py": ["xor: (0x[0-9a-f]{8}), numpy: \\1", "affine scan equals numpy: True"],
    "event_timing.py": [
        r"GPU: .+",
        r"too early: .*call (event\.synchronize|device).*|CPU, no wait: .*",
        r"CPU, with wait: [\d.]+ ms",
        r"GPU events: +[\d.]+ ms",
        r"mean of 10 calls: [\d.]+ ms",
        r"on one encoder: [\d.]+ ms",
    ],
    "benchmark_with_events.py": [
        r"by hand: +[\d.]+ ± [\d.]+ ms",
        r"gw\.benchmark: [\d.]+ ± [\d.]+ ms",
        r"gw\.measure: +[\d.]+ ms ±[\d.]+ %",
    ],
    "profile_regions.py": [
        r"name +kind +self CPU +CPU total +self GPU +GPU total +calls +allocated +shapes",
        r"forward pass +region .*",
        r"a trace of \d+ bytes; open it in ui\.perfetto\.dev",
        "right: True",
    ],
    "double_buffering.py": [
        r"total (\d+), last prefix sum \1",
        r"copy to staging: 17 times, [\d.]+ ms on the CPU",
        r"copy to GPU: 17 times, [\d.]+ ms on the GPU",
        r"reduce: 9 times, [\d.]+ ms on the GPU",
        r"wait: \d+ times, [\d.]+ ms on the CPU",
    ],
    "distributed_sort.py": [
        r".+/0: .*, process \d+",
        r".+/0#2: .*, process \d+",
        r"from -[\d.]+ to [\d.]+, parts in order: True, chunks \{50000\}",
        "distinct processes besides this one: 2",
    ],
    "distributed_table.py": [
        r"rain per station: \{0: \d+, 1: \d+, .*5: \d+\}",
        r"histogram: \[\d+, \d+, \d+, \d+, \d+\]",
        r"from 0 to 499, total \d+, equal to numpy: True",
    ],
    "fleet.py": [
        r"\d+ devices, 3 cases, complete: True",
        r".+/.+: (alone|as peers|slow|unsteady), results in today\.fleet/.*\.json",
    ],
    "matmul_roofline.py": [
        r"CPU clock, no wait: +[\d.]+ ms",
        r"CPU clock, with wait: +[\d.]+ ms",
        r"GPU events: +[\d.]+ ms a product",
        r"predicted: +[\d.]+ ms at \d+ GFLOP/s: \d+% of the roof",
        "equals numpy: True",
    ],
    "pagerank.py": [
        r"matrix: [\d,]+ entries of 1,000,000 edges, [\d.e+]+ edges/s",
        r"ranks: [\d.]+ ms an iteration; the last one changed [\d.]+e-\d+",
        "matrix equals scipy's: True",
        r"largest relative difference .*, right: True",
    ],
    "group_by.py": [
        r"1,000,000 rows, 10,000 groups",
        r"gridwise_py +[\d.]+ ms  same groups as numpy: True",
        r"gridwise_py with transfers .*same groups: True",
        r"polars .*(same groups: True|is not installed: polars)",
        r"pandas .*(same groups: True|is not installed: pandas)",
    ],
    "voxels.py": [
        r"1,000,000 points, [\d,]+ voxels, [\d.]+ ms, [\d.e+]+ points/s",
        r"voxels with the same points as numpy's: .*; all: True",
        r"largest difference of a mean: .*, right: True",
    ],
    "equalisation.py": [
        r"720 x 480 pixels: [\d.]+ ms, numpy [\d.]+ ms",
        r"levels: 1\d\d to 1\d\d, equalised 0 to 255",
        "pixels that differ from numpy's: 0",
    ],
    "splats.py": [
        r"20,000 splats, [\d,]+ pairs with tiles, [\d.]+ ms a frame without a readback",
        "tiles equal numpy's: True splats, too: True",
    ],
    "prebuilt_sequence.py": [
        r"three calls: \d+ µs each",
        r"a batch: \d+ µs each",
        r"a sequence: \d+ µs each",
        "right: True",
    ],
    "synchronization.py": [
        r"A: [\d.]+ ms on the CPU",
        r"B: .*",
        r"C: done True, [\d.]+ ms on the GPU",
        r"refused: .*one queue and no streams.*",
        "on the other device: 1000000",
    ],
    "shared_with_pygfx.py": [
        rf"TimingResult\(per trial of 1: .*scan.* {TIME}; GPU span {TIME}, CPU wall not measured{DOUBT}\)",
        "drawn columns: 320 of 320",
    ],
}


@pytest.mark.needs("timestamp-query", "module:pandas", "module:scipy")  # which it shows
def test_readme_prints_what_it_shows(device, capsys, monkeypatch, tmp_path):
    """As one program; the fixture skips where there is no adapter. Times are of another machine, names are not."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^<!-- run -->\n```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    shown = re.findall(r"^```text\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    monkeypatch.chdir(tmp_path)  # it writes a file
    names, printed = {"__name__": "page"}, []
    for block in blocks:
        exec(block, names)
        printed.append(capsys.readouterr().out)
    assert printed[0] == shown[0]
    lines = [
        [re.match(r"(.*?) +[\d.]+ (?:ns|µs|ms|s)  ", line)[1] for line in each.splitlines()[:2]]
        for each in (printed[1], shown[1])
    ]
    assert lines[0] == lines[1] == list(names["kernels"])
    done = CliRunner().invoke(cli.main, ["compare", "now.json", "now.json"])
    assert done.exit_code in (0, 3), done.output


#: Two workers on the first adapter, which may be a software one.
ARGUMENTS = {"distributed_sort.py": ["0", "0"], "distributed_table.py": ["0", "0"]}
NEEDS = {
    "shared_with_pygfx.py": ["module:pygfx"],
    **{key: ["module:distributed"] for key in ("distributed_sort.py", "distributed_table.py", "fleet.py")},
}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name == "own_kernel.py" else pytest.mark.slow) for name in LINES]
)
def test_it_runs(device, require, name):
    require(*NEEDS.get(name, ()))
    run = subprocess.run(
        [
            sys.executable,
            "-W",
            "error::UserWarning",
            "-W",
            "ignore:no GPU was found",
            EXAMPLES / name,
            *ARGUMENTS.get(name, []),
        ],
        capture_output=True,
        encoding="utf-8",
        env=os.environ | {"PYTHONIOENCODING": "utf-8"},
        timeout=1200,
    )
    assert run.returncode == 0, run.stderr
    printed = iter(run.stdout.splitlines())
    for line in LINES[name]:
        assert any(re.fullmatch(line, got) for got in printed), f"no line {line!r} in:\n{run.stdout}"


@pytest.mark.slow
def test_equalised_pictures_are_numpys(device):
    """Of one level, of two, of all, of one pixel, and of odd sizes."""
    spec = importlib.util.spec_from_file_location("equalisation", EXAMPLES / "equalisation.py")
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    rng = np.random.default_rng(0)
    pictures = {
        "one level": np.full((7, 5), 99, np.uint8),
        "one pixel": np.zeros((1, 1), np.uint8),
        "two levels": rng.choice(np.uint8([3, 255]), (33, 31)),
        "all levels": rng.integers(0, 256, (301, 99), dtype=np.uint8),
        "dark": (rng.exponential(9, (64, 257)) % 256).astype(np.uint8),
    }
    for name, host in pictures.items():
        got = example.equalised(gw.asarray(host, device))
        assert (got.dtype, got.shape) == (np.uint8, host.shape)
        np.testing.assert_array_equal(got.to_numpy(), example.by_numpy(host), err_msg=name)
    # The formula of textbooks, in floats and where nothing is halfway between two levels.
    host = pictures["all levels"]
    upto = np.cumsum(np.bincount(host.ravel(), minlength=256))
    wanted = (upto - upto[0]) / (host.size - upto[0]) * 255
    assert np.abs(example.by_numpy(host) - wanted[host]).max() <= 0.5
