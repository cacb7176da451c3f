"""Commits of this repository that are said to be the same code, checked by a second way.

``python benchmarks/same_code.py --json FILE`` runs ``gridwise diff COMMIT^ COMMIT`` for each of the last commits, and
says how many units each took: CPU seconds of all its processes, by those of ten million turns of a loop of Python. The
second way has its own program in each revision: it plans the same cases, takes comments out of the composed texts by
its own rule, and has texts, constants, workgroups and contents of buffers as they are. Exit code 1 if a pair is said to
be the same and these differ, or the other way round. Pairs whose files of the library are equal byte by byte are
skipped, and counted. FILE keeps each pair when it is done, so a run that was stopped goes on.
"""

import argparse
import hashlib
import json
import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

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


def hash_of(commit: str) -> str | None:
    """The second way: one hash of all that a revision would ask; None if it does not run."""
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
    return hashlib.sha256(done.stdout.encode()).hexdigest() if done.returncode == 0 else None


def ask(commit: str, hashes: dict[str, str | None]) -> dict[str, Any]:
    """Ask both ways about a commit and the one before; `hashes` keeps the second way's, by trees."""
    unit, begin = unit_s(), children_s()
    words = [sys.executable, "-m", "gridwise_py", "diff", f"{commit}^", commit]
    done = subprocess.run(words, capture_output=True, text=True, cwd=ROOT)
    units = (children_s() - begin) / unit
    sides = {trees(one): one for one in (f"{commit}^", commit)}
    for tree, one in sides.items():
        if tree not in hashes:
            hashes[tree] = hash_of(one)
    old, new = (hashes[tree] for tree in sides)
    touched = git("diff", "--name-only", f"{commit}^", commit).splitlines()
    return {
        "commit": commit,
        "said": {0: "same", 1: "differs"}.get(done.returncode, "cannot tell"),
        "second_way": "cannot tell" if None in (old, new) else "same" if old == new else "differs",
        "units": round(units, 2),
        "touches": [path for path in touched if path.startswith(CODE)][:3],
        "first_line": (done.stdout or done.stderr).partition("\n")[0][:200],
    }


def summary(pairs: list[dict[str, Any]], equal: int) -> dict[str, Any]:
    """Return what all pairs say together."""
    spared = [one for one in pairs if not one["touches"]]
    of = {said: sum(one["said"] == said for one in pairs) for said in ("same", "differs", "cannot tell")}
    return {
        "equal_trees": equal,
        "asked": len(pairs),
        "said": of,
        "same_but_texts_differ": sum(one["said"] == "same" and one["second_way"] != "same" for one in pairs),
        "wrong": sum(one["said"] != one["second_way"] for one in pairs),
        "touch_neither_kernels_nor_plans": len(spared),
        "of_these_not_same": [one["commit"] for one in spared if one["said"] != "same"],
        "most_units": max((one["units"] for one in pairs), default=None),
        "over_30_units": sum(one["units"] > 30 for one in pairs),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--last", type=int, default=300)
    parser.add_argument("--until", default="HEAD", help="the newest of them")
    parser.add_argument("--sample", type=int, default=0, help="how many of them; 0: all")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path, help="keeps what is done, and is gone on with")
    options = parser.parse_args()
    kept: dict[str, Any] = {"pairs": [], "hashes": {}}
    if options.json and options.json.exists():
        kept = json.loads(options.json.read_text())
    commits = git("log", f"-{options.last}", "--no-merges", "--format=%H", options.until).split()
    commits = [one for one in commits if git("rev-list", "--parents", "-1", one).count(" ")]  # not the first of all
    if options.sample:
        commits = random.Random(options.seed).sample(commits, min(options.sample, len(commits)))
    others = [commit for commit in commits if trees(f"{commit}^") != trees(commit)]
    done = {one["commit"] for one in kept["pairs"]}
    for commit in others:
        if commit in done:
            continue
        one = ask(commit, kept["hashes"])
        kept["pairs"].append(one)
        kept["summary"] = summary(kept["pairs"], len(commits) - len(others))
        wrong = "" if one["said"] == one["second_way"] else f" WRONG, the second way says {one['second_way']}"
        where = f"touches {one['touches'][0]}" if one["touches"] else "no kernels, no plans"
        print(f"{commit[:10]} {one['said']}{wrong}, {one['units']} units, {where}: {one['first_line']}", flush=True)
        if options.json:
            new = options.json.with_suffix(".new")
            new.write_text(json.dumps(kept, indent=1) + "\n")
            new.replace(options.json)
    found = summary(kept["pairs"], len(commits) - len(others))
    print(json.dumps(found, indent=1))
    return 1 if found["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())
