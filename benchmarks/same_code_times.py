"""Is a time ever called the same code's that is not, and does the same code ever regress?

``python benchmarks/same_code_times.py --json FILE`` measures kernels and primitives in pairs, and asks ``compare``. A/A
pairs are the same work measured twice, judged with a gate of 0: a row past the gate is a false regression, and all rows
must be "same code". The other pairs differ in a uniform's value, or in the data: none of their rows may be called the
same code. Exit code 1 if any is wrong.
"""

import argparse
import json
import random
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

import gridwise_py as gw
from gridwise_py.bench.analysis.compare import compare
from gridwise_py.bench.results.entries import results_document
from gridwise_py.bench.stats.verdict import VerdictKind

TEXT = """
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@group(0) @binding(2) var<uniform> factor: f32;
@compute @workgroup_size(256) fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  var value = x[id.x];
  for (var i = 0u; i < 200u; i++) { value = fma(value, factor, 0.25); }
  y[id.x] = value;
}"""
PROTOCOL = gw.SamplingProtocol(samples=60, warmup_s=0.02, max_warmup_s=0.1)


def measure(device: Any, kind: str, n: int, factor: float, seed: int) -> gw.Measurement:
    """Measure one side of a pair."""
    rng = np.random.default_rng(seed)
    if kind == "kernel":
        bindings = {"x": "read", "y": "write", "factor": "uniform"}
        kernel = gw.Kernel(device, TEXT, bindings, workgroups=n // 256)
        x = rng.random(n, dtype=np.float32)
        return gw.measure(kernel, protocol=PROTOCOL, x=x, y=np.empty_like(x), factor=factor)
    made = {"scan": gw.Scan, "sort": gw.Sort, "reduce": gw.Reduce}[kind](device, "u32")
    return gw.measure(made, protocol=PROTOCOL, input=rng.integers(0, 1 << 32, n, dtype=np.uint32))


def judge(device: Any, old: gw.Measurement, new: gw.Measurement) -> tuple[list[str], int, list[str]]:
    """Return the verdicts on times of the GPU, how many are past a gate of 0, and what is said of the machine."""
    found = compare(*(results_document(device, [one]) for one in (old, new)), gate=0.0)
    words = [row.word for row in found.rows if row.name != "cpu_wall"]
    return words, len(found.regressions), [note for note in found.notes if "the machine differs" in note]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--alike", type=int, default=200, help="A/A pairs")
    parser.add_argument("--others", type=int, default=40, help="pairs of another uniform or other data")
    parser.add_argument("--most-n", type=int, default=1 << 22)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    device, rng = gw.request_device(), random.Random(0)
    sizes = [1 << power for power in range(12, options.most_n.bit_length())]
    found: dict[str, Any] = {
        "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "adapter": {key: device.adapter.info[key] for key in ("device", "backend_type", "description")},
        "alike": {"pairs": options.alike, "rows": 0, "same_code": 0, "false_regressions": 0, "findings": []},
        "others": {"pairs": options.others, "rows": 0, "same_code": 0, "kinds": {}},
    }
    for number in range(options.alike + options.others):
        is_alike = number < options.alike
        into, kind = found["alike" if is_alike else "others"], rng.choice(["kernel", "scan", "sort", "reduce"])
        n = rng.choice(sizes)
        change = "" if is_alike else rng.choice(["uniform", "data"] if kind == "kernel" else ["data"])
        old = measure(device, kind, n, 0.5, number)
        factor, seed = 0.5 + (change == "uniform") * rng.uniform(0.001, 0.4), number + 1000 * (change == "data")
        new = measure(device, kind, n, factor, seed)
        words, regressions, notes = judge(device, old, new)
        into["rows"] += len(words)
        into["same_code"] += words.count(VerdictKind.SAME_CODE.value)
        if is_alike:
            into["false_regressions"] += regressions
            into["findings"] += notes
        else:
            into["kinds"][f"{kind}, {change}"] = into["kinds"].get(f"{kind}, {change}", 0) + 1
        if number % 20 == 19:
            print(f"{number + 1} pairs", flush=True)
    print(json.dumps(found, indent=1))
    if options.json:
        options.json.write_text(json.dumps(found, indent=1) + "\n")
    alike, others = found["alike"], found["others"]
    is_right = alike["same_code"] == alike["rows"] and not alike["false_regressions"] and not others["same_code"]
    return 0 if is_right else 1


if __name__ == "__main__":
    sys.exit(main())
