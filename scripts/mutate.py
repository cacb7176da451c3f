"""Changes one constant or operator at a time, and looks whether a test notices: mutation testing, by sample.

Usage: python scripts/mutate.py [--minutes 20] [--seed 0] [--kind python|wgsl|all] [--json FILE] [PLACE …]

Python modules are mutated by cosmic-ray's operators (``make mutate`` installs it); no such tool knows WGSL, so that its
numbers and operators are changed by a list of patterns here. Each mutant is tried in a copy of the repository, by the
tests that PYTHON and WGSL name for its place, which end at the first failure. One that does not come to an end in time,
or does not compile, is killed as well. Survivors are printed as a patch has them; docs/mutation.md says why some stay.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent

#: What is mutated, and the tests that are to notice.
PYTHON = {
    "gridwise_py/plan.py": "tests/test_plan.py tests/test_kernel.py tests/test_executor.py",
    "gridwise_py/timing.py": "tests/test_timing.py tests/test_event.py",
    "gridwise_py/timing_result.py": "tests/test_timing.py",
    "gridwise_py/bench/classify.py": "tests/test_classify.py",
    "gridwise_py/bench/statistics.py": "tests/test_statistics.py",
    "gridwise_py/bench/resampling.py": "tests/test_statistics.py tests/test_verdict.py",
    "gridwise_py/bench/verdict.py": "tests/test_verdict.py tests/test_compare.py",
    "gridwise_py/bench/verdict_rules.py": "tests/test_verdict.py",
    "gridwise_py/bench/rounds.py": "tests/test_rounds.py",
}
_SCAN = "tests/test_scan.py tests/test_lookback.py"
_SORT = "tests/test_sort.py"
_BOTH = "tests/test_reduce.py tests/test_scan.py"
WGSL = {
    "shaders/vector_add.wgsl": "tests/test_vector_add.py",
    "shaders/reduce.wgsl": "tests/test_reduce.py",
    "shaders/reduce_compensated.wgsl": "tests/test_float_sums.py",
    "shaders/scan.wgsl": _SCAN,
    "shaders/scan_compensated.wgsl": "tests/test_float_sums.py",
    "shaders/scan_lookback.wgsl": _SCAN,
    "shaders/matmul.wgsl": "tests/test_matmul.py",
    "shaders/sort_count.wgsl": _SORT,
    "shaders/sort_offsets.wgsl": _SORT,
    "shaders/sort_pass.wgsl": _SORT,
    "shaders/sort_small.wgsl": _SORT,
    "shaders/lib/bindings.wgsl": "tests/test_vector_add.py tests/test_views.py tests/test_matmul.py",
    "shaders/lib/control.wgsl": _SCAN,
    "shaders/lib/elementwise.wgsl": "tests/test_vector_add.py",
    "shaders/lib/operator.wgsl": _BOTH,
    "shaders/lib/pair.wgsl": "tests/test_float_sums.py",
    "shaders/lib/sort_key.wgsl": _SORT,
    "shaders/lib/sort_rank.wgsl": _SORT,
    "shaders/lib/sort_routes.wgsl": _SORT,
    "shaders/lib/sort_stage.wgsl": _SORT,
    "shaders/lib/sort_state.wgsl": _SORT,
    "shaders/lib/sort_write.wgsl": _SORT,
    "shaders/lib/state.wgsl": _SCAN,
    "shaders/lib/subgroup.wgsl": _BOTH,
    "shaders/lib/tile.wgsl": _BOTH,
    "shaders/lib/tile_scan.wgsl": _SCAN,
    "shaders/lib/workgroup.wgsl": _BOTH,
}

# Operators that are not between blanks are not arithmetic: `array<u32>`, `->`, `*pointer`.
_OPERATORS = {
    " + ": (" - ",), " - ": (" + ",), " * ": (" / ",), " / ": (" * ",), " % ": (" / ",),
    " << ": (" >> ",), " >> ": (" << ",), " & ": (" | ",), " | ": (" & ",), " ^ ": (" | ",),
    " < ": (" <= ", " > "), " <= ": (" < ",), " > ": (" >= ", " < "), " >= ": (" > ",),
    " == ": (" != ",), " != ": (" == ",), " && ": (" || ",), " || ": (" && ",),
    " += ": (" -= ", " = "), " -= ": (" += ",), "++": ("--",),
    "min(": ("max(",), "max(": ("min(",), "atomicAdd(": ("atomicOr(",), "atomicMax(": ("atomicMin(",),
    "storageBarrier();": ("",), "workgroupBarrier();": ("",),
}  # fmt: skip
_SYMBOL = re.compile("|".join(re.escape(symbol) for symbol in sorted(_OPERATORS, key=len, reverse=True)))
_NUMBER = re.compile(r"(?<![\w.@(])(?:0x[0-9a-fA-F]+|\d+)u?\b(?!\.)")


class Mutant(NamedTuple):
    """A file, a line of it, what stood there and stands there now, and the whole new text."""

    place: str
    line: int
    old: str
    new: str
    text: str


def _mutant(place: str, text: str, changed: str) -> Mutant:
    pairs = zip(text.splitlines(), changed.splitlines(), strict=False)
    number, (old, new) = next((i, pair) for i, pair in enumerate(pairs, 1) if pair[0] != pair[1])
    return Mutant(place, number, old.strip(), new.strip(), changed)


def wgsl_mutants(place: str) -> Iterator[Mutant]:
    """Every number and operator of a shader, outside of comments and of lines for the template."""
    text = (ROOT / place).read_text(encoding="utf-8")
    begin = 0
    for line in text.splitlines(keepends=True):
        code = "" if line.lstrip().startswith("//") else line.split("//")[0]
        for found in _SYMBOL.finditer(code):
            for other in _OPERATORS[found[0]]:
                yield _mutant(place, text, text[: begin + found.start()] + other + text[begin + found.end() :])
        for found in _NUMBER.finditer(code):
            value = int(found[0].rstrip("u"), 0) + 1
            other = f"{value}u" if found[0].endswith("u") else str(value)
            yield _mutant(place, text, text[: begin + found.start()] + other + text[begin + found.end() :])
        begin += len(line)


def python_mutants(place: str) -> Iterator[Mutant]:
    """What cosmic-ray makes of a module, but for annotations, which nothing runs."""
    from cosmic_ray import plugins
    from cosmic_ray.mutating import mutate_code

    text = (ROOT / place).read_text(encoding="utf-8")
    for name in plugins.operator_names():
        # Of the many that replace one operator by another, a few; those of variables want to be told which.
        if "Variable" in name or ("Operator_" in name and not _is_wanted(name)):
            continue
        for occurrence in range(10_000):
            changed = mutate_code(text, plugins.get_operator(name)(), occurrence)
            if changed is None:
                break
            mutant = _mutant(place, text, changed)
            if not re.search(r"\| None|-> |^def |^from |^@", mutant.old):
                yield mutant


def _is_wanted(name: str) -> bool:
    near = "Add_Sub Sub_Add Mul_Div Div_Mul FloorDiv_Mul Mod_Mul LShift_RShift RShift_LShift BitAnd_BitOr BitOr_BitAnd"
    compare = "Eq_NotEq NotEq_Eq Lt_LtE LtE_Lt Gt_GtE GtE_Gt Lt_Gt Gt_Lt Is_IsNot IsNot_Is"
    return name.partition("Operator_")[2] in {*near.split(), *compare.split()}


def is_killed(folder: Path, mutant: Mutant, tests: str, timeout_s: float) -> str | None:
    """Return how a mutant was noticed, or None."""
    path = folder / mutant.place
    original = path.read_text(encoding="utf-8")
    path.write_text(mutant.text, encoding="utf-8")
    environment = {
        **os.environ, "PYTHONPATH": str(folder), "XDG_RUNTIME_DIR": "/tmp", "PYTHONDONTWRITEBYTECODE": "1"
    }  # fmt: skip
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-m", "not slow and not tint",
               *tests.split()]  # fmt: skip
    process = subprocess.Popen(
        command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        start_new_session=True,
    )  # fmt: skip
    try:
        output, _ = process.communicate(timeout=timeout_s)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, 9)
        process.communicate()
        return "no end"
    finally:
        path.write_text(original, encoding="utf-8")
    if process.returncode == 0:
        return None
    failed = re.search(r"^(?:FAILED|ERROR) (\S+)", output, re.MULTILINE)
    return failed[1] if failed else f"exit code {process.returncode}"


def main() -> int:
    """Try a sample; 0 whatever survives: which of them matter is a judgement."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("places", nargs="*", help="Of those in PYTHON and WGSL; all by default.")
    parser.add_argument("--minutes", type=float, default=20.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kind", choices=["python", "wgsl", "all"], default="all")
    parser.add_argument("--timeout", type=float, default=150.0, help="Seconds for the tests of a mutant.")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    tests = {**(PYTHON if options.kind != "wgsl" else {}), **(WGSL if options.kind != "python" else {})}
    if options.places:
        tests = {place: names for place, names in (PYTHON | WGSL).items() if place in options.places}
    rng = random.Random(options.seed)
    found = {place: list((python_mutants if place in PYTHON else wgsl_mutants)(place)) for place in tests}
    for mutants in found.values():
        rng.shuffle(mutants)
    # One of each place by turns, so that whenever the time is up all had their share.
    turns = [m for turn in range(max(map(len, found.values()))) for ms in found.values() for m in ms[turn : turn + 1]]
    rows, begin = [], time.monotonic()
    with tempfile.TemporaryDirectory(prefix="gridwise-mutants-") as name:
        folder = Path(name) / "repository"
        skipped = shutil.ignore_patterns(".venv", ".git", "__pycache__", ".hypothesis", ".*_cache", "dist", ".gpu-kit")
        shutil.copytree(ROOT, folder, ignore=skipped)
        for mutant in turns:
            if time.monotonic() - begin > 60 * options.minutes:
                break
            killed = is_killed(folder, mutant, tests[mutant.place], options.timeout)
            rows.append({"place": mutant.place, "line": mutant.line, "old": mutant.old, "new": mutant.new,
                         "killed_by": killed})  # fmt: skip
            if killed is None:
                print(f"SURVIVED {mutant.place}:{mutant.line}\n  - {mutant.old}\n  + {mutant.new}", flush=True)
            if options.json is not None:
                options.json.write_text(json.dumps({"seed": options.seed, "mutants": rows}, indent=1) + "\n")
    survived = sum(row["killed_by"] is None for row in rows)
    print(
        f"{len(rows)} of {len(turns)} mutants tried in {(time.monotonic() - begin) / 60:.1f} minutes "
        f"(seed {options.seed}): {survived} survived"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
