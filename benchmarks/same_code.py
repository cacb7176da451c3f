"""Commits of this repository that are said to be the same code, checked by a second way.

``python benchmarks/same_code.py --last 300 --sample 40`` runs ``gridwise diff COMMIT^ COMMIT`` for a sample of the last
commits, and says how many units each took: CPU seconds of all its processes, by those of ten million turns of a loop of
Python. The second way has its own program in each revision: it plans the same cases, takes comments out of the texts by
its own rule, and hashes texts, constants, workgroups and contents of buffers. Exit code 1 if a pair is said to be the
same and the hashes differ, or the other way round. Where all files of the library are equal, so are the hashes.
"""

import argparse
import functools
import json
import random
import re
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from gridwise_py.bench.ab.turns import recipe
from gridwise_py.bench.cases.device_classes import DEVICE_CLASSES
from gridwise_py.cli.diff import usual_jobs

ROOT = Path(__file__).parents[1]
#: Touched by a change of kernels or plans.
CODE = ("gridwise_py/planning", "gridwise_py/primitives", "gridwise_py/tuning", "gridwise_py/types", "shaders")
PROGRAM = r"""
import dataclasses, hashlib, json, re, sys
import gridwise_py as gw
from gridwise_py.bench.cases.workloads import WORKLOADS
asked = json.load(sys.stdin)
comment = re.compile(r"//[^\n]*|/\*[^*]*\*/")
found = {}
for name, fields in asked["classes"].items():
    fields = {**fields, "lookback": gw.LookbackVerdict(**fields["lookback"])}
    for case in asked["cases"]:
        try:
            kind = WORKLOADS[case["workload"]].kind
            made = kind(None, case["datatype"], capabilities=gw.Capabilities(**fields), **case["options"])
            lengths = dict(case["lengths"])
            lengths |= {out: made.signature.output_length(out, case["lengths"]) for out in made.signature.outputs}
            types = {one: made.signature.datatype(one) for one in lengths}
            sizes = {one: kind.element_bytes for one, kind in types.items() if kind is not None}
            counted = {one: n * (1 if types[one] is None else types[one].elements) for one, n in lengths.items()}
            plan = made.plan(gw.Layout.separate(sizes, **counted))
        except gw.GridwiseError as error:
            told = type(error).__name__
        else:
            bare = {key: re.sub(r"\s+", "", comment.sub("", shader.text)) for key, shader in plan.shaders.items()}
            kernels = [(bare[one.shader], sorted(one.constants.items()), one.workgroups) for one in plan.kernels]
            told = repr((kernels, [(b.role, b.size_bytes, b.words) for b in plan.buffers]))
        found[f"{name}: {case['workload']} {case['lengths']}"] = hashlib.sha256(told.encode()).hexdigest()
print(json.dumps(found))
"""


def git(*words: str) -> str:
    return subprocess.run(["git", "-C", str(ROOT), *words], capture_output=True, text=True, check=True).stdout.strip()


def unit_s() -> float:
    """The CPU seconds of ten million turns at module level, where names are global."""
    begin = time.process_time()
    exec("x = 0\nfor i in range(10_000_000): x += i", {})
    return time.process_time() - begin


def children_s() -> float:
    """The CPU seconds of all processes that this one has waited for, and of those they have waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def trees(commit: str) -> str:
    """What git knows the files of the library by."""
    return git("rev-parse", f"{commit}:gridwise_py", f"{commit}:shaders")


@functools.cache
def hashes(commit: str) -> dict[str, str] | None:
    """The second way."""
    cases = [{**recipe(job.case), "lengths": job.case.lengths} for job in usual_jobs((), None)]
    classes = {
        name: {
            **{key: value for key, value in one.to_dict().items() if value and key != "lookback"},
            "lookback": {
                key: one.to_dict()["lookback"][key] for key in ("coherent", "progress", "needs_tickets", "recovers")
            },
        }
        for name, one in DEVICE_CLASSES.items()
    }
    with tempfile.TemporaryDirectory() as folder:
        packed = subprocess.run(
            ["git", "-C", str(ROOT), "archive", commit, "gridwise_py", "shaders"], capture_output=True, check=True
        )
        subprocess.run(["tar", "-x", "-C", folder], input=packed.stdout, check=True)
        asked = json.dumps({"cases": cases, "classes": classes})
        done = subprocess.run(
            [sys.executable, "-P", "-c", PROGRAM], input=asked, capture_output=True, text=True, check=False,
            env={"PYTHONPATH": folder, "PATH": ""},
        )  # fmt: skip
    return json.loads(done.stdout) if done.returncode == 0 else None


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--last", type=int, default=300)
    parser.add_argument("--sample", type=int, default=0, help="how many of them; 0: all")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    commits = git("log", f"-{options.last}", "--no-merges", "--format=%H").split()
    if options.sample:
        commits = random.Random(options.seed).sample(commits, min(options.sample, len(commits)))
    wrong, most, told = 0, 0.0, {"same": 0, "differs": 0, "cannot tell": 0}
    for commit in commits:
        unit, begin = unit_s(), children_s()
        done = subprocess.run(
            [sys.executable, "-m", "gridwise_py", "diff", f"{commit}^", commit],
            capture_output=True,
            text=True,
            cwd=ROOT,
        )
        units = (children_s() - begin) / unit
        touched = [
            path for path in git("diff", "--name-only", f"{commit}^", commit).splitlines() if path.startswith(CODE)
        ]
        said = {0: "same", 1: "differs"}.get(done.returncode, "cannot tell")
        before = git("rev-parse", f"{commit}^")
        alike = trees(before) == trees(commit)  # byte by byte
        old, new = ({}, {}) if alike else (hashes(before), hashes(commit))
        truth = "cannot tell" if old is None or new is None else "same" if old == new else "differs"
        is_wrong = said != truth
        wrong, most = wrong + is_wrong, max(most, units)
        told[said] += 1
        first = (done.stdout or done.stderr).partition("\n")[0][:140]
        print(
            f"{commit[:10]} {said}{' WRONG, the second way says ' + truth if is_wrong else ''}, {units:.1f} units, "
            f"{'touches ' + re.sub('^gridwise_py/', '', touched[0]) if touched else 'no kernels, no plans'}: {first}",
            flush=True,
        )
    print(f"{len(commits)} commits: {told}; {wrong} wrong; at most {most:.1f} units")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
