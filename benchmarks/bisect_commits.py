"""A repository of commits, one of which makes a kernel slower: does `gridwise bisect` find it, and in how long?

``python benchmarks/bisect_commits.py --json FILE`` makes a temporary git repository of a file of benchmarks and its
kernel, a loop that is bound by arithmetic. Its commits change comments of the kernel, the file's Python, a page beside
it, or the kernel's text without its time; one adds 5 % to the turns of the loop. Then ``gridwise bisect`` runs from the
first commit to the last. Exit code 1 if it does not name that commit.

On a software adapter: ``--commits 8 --slower 1 --n 4096``.
"""

import argparse
import json
import platform
import random
import subprocess
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

import gridwise_py as gw

PYTHON = '''"""Benchmarks of a loop. {note}"""

from pathlib import Path

import numpy as np

import gridwise_py as gw

TEXT = Path(__file__).with_name("loop.wgsl").read_text()


@gw.benchmarked(n=[{n}], mode="{mode}")
def loop(device, n):
    kernel = gw.Kernel(device, TEXT, {{"x": "read", "y": "write"}}, workgroups=n // 256)
    x = np.linspace(0, 1, n, dtype=np.float32)
    return gw.Benchmark(run=kernel, inputs={{"x": x, "y": np.empty_like(x)}})
'''
KERNEL = """// {note}
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;

const SCALE = {scale};

@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {{
  var {name} = x[id.x];
  for (var i = 0u; i < {turns}u; i++) {{
    {name} = fma({name}, SCALE, 0.25);
  }}
  y[id.x] = {name};
}}
"""
#: What a commit changes, in turns; the last two change what is asked of the GPU, and not its time.
KINDS = ("comment", "host", "page", "comment", "host", "scale", "page", "name")


def git(folder: Path, *words: str) -> str:
    """Run git as nobody in particular."""
    identity = ("-c", "user.name=nobody", "-c", "user.email=nobody@example.org", "-c", "commit.gpgsign=false")
    done = subprocess.run(["git", "-C", str(folder), *identity, *words], check=True, capture_output=True, text=True)
    return done.stdout.strip()


def make_commits(folder: Path, options: argparse.Namespace) -> tuple[list[str], str, dict[str, int]]:
    """Make the repository; return its commits after the first, the slow one, and how many there are of each kind."""
    git(folder, "init", "-q")
    kernel: dict[str, Any] = {"note": "A loop.", "scale": 0.5, "name": "value", "turns": options.turns}
    python: dict[str, Any] = {"note": "", "n": options.n, "mode": options.mode}
    commits: list[str] = []
    slow, counts = "", dict.fromkeys([*KINDS, "slower"], 0)
    for number in range(options.commits + 1):
        kind = "slower" if number == options.slow_at else KINDS[number % len(KINDS)]
        if kind == "comment":
            kernel["note"] = f"A loop, said in another way ({number})."
        elif kind == "host":
            python["note"] = f"Version {number}."
        elif kind == "scale":
            kernel["scale"] = 0.5 + number / 1000
        elif kind == "name":
            kernel["name"] = f"value_{number}"
        elif kind == "slower":
            kernel["turns"] = round(options.turns * (1 + options.slower))
        (folder / "page.md").write_text(f"{number}\n" if kind == "page" or not number else f"{number // 8}\n")
        (folder / "loop.wgsl").write_text(KERNEL.format(**kernel))
        (folder / "kernels.py").write_text(PYTHON.format(**python))
        git(folder, "add", ".")
        git(folder, "commit", "-q", "--allow-empty", "-m", kind)
        if number:
            counts[kind] += 1
            commits.append(git(folder, "rev-parse", "HEAD"))
            slow = commits[-1] if kind == "slower" else slow
    return commits, slow, counts


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--commits", type=int, default=64)
    parser.add_argument("--slow-at", type=int, help="which of them is slower  [default: by the seed]")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--slower", type=float, default=0.05, help="by this share")
    parser.add_argument("--n", type=int, default=1 << 22, help="items")
    parser.add_argument("--turns", type=int, default=2000, help="of the loop, for each item")
    parser.add_argument("--mode", default="hot")
    parser.add_argument("--json", type=Path, help="the results")
    parser.add_argument("words", nargs="*", help="behind --: options of `gridwise bisect`")
    options = parser.parse_args()
    options.slow_at = options.slow_at or random.Random(options.seed).randint(2, options.commits - 1)
    device = gw.request_device()
    adapter = {key: device.adapter.info[key] for key in ("device", "backend_type", "description")}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        commits, slow, counts = make_commits(folder, options)
        words = [sys.executable, "-m", "gridwise_py", "bisect", f"HEAD~{options.commits}", "HEAD", *options.words]
        begin_s = time.perf_counter()
        said: list[str] = []
        with subprocess.Popen(
            [*words, "--", "kernels.py", "loop"],
            cwd=folder,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        ) as process:
            assert process.stdout is not None
            for line in process.stdout:
                said.append(f"{time.perf_counter() - begin_s:.1f} s: {line.strip()}")
                print(said[-1], flush=True)
        seconds = time.perf_counter() - begin_s
    last = next((line for line in said if "the first slower commit" in line), "")
    found = [commit for commit in commits if commit in last]
    is_right = process.returncode == 1 and found == [slow]
    places = [commits.index(one) + 1 for one in found]
    word = "right" if is_right else "WRONG"
    print(f"{word}: number {options.slow_at} of {options.commits} is slower, found {places} in {seconds:.1f} s")
    if options.json:
        document = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "adapter": adapter,
            "versions": {one: version(one) for one in ("wgpu", "numpy")} | {"python": platform.python_version()},
            "gridwise_py": gw.__version__,
            "commits": options.commits,
            "kinds": counts,
            "n": options.n,
            "turns": options.turns,
            "slower": options.slower,
            "mode": options.mode,
            "options": options.words,
            "slow_at": options.slow_at,
            "found": places,
            "is_right": is_right,
            "exit_code": process.returncode,
            "seconds": round(seconds, 1),
            "said": said,
        }
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps(document, indent=1) + "\n")
    return 0 if is_right else 1


if __name__ == "__main__":
    sys.exit(main())
