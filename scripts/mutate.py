"""Changes one constant or operator at a time, and looks whether a test notices: mutation testing, by sample.

Usage: python scripts/mutate.py [--minutes 20] [--seed 0] [--kind python|wgsl|all] [--jobs N] [--json FILE]
[--survivors] [PLACE …]

Each mutant is tried in a copy of the repository, one for each job, by the tests that PYTHON and WGSL name for its
place. These first run without a mutant: where they fail, nothing could be told, and the place is left out. Then those
that killed the mutants nearest by run first, and the first failure ends the trial. A mutant that does not come to an
end in time, or does not compile, is killed as well. Survivors are printed as a patch has them.
docs/contribute/mutation.md says why some stay.

What is tried goes into the JSON file at once. A later run with the same file goes on where that one was.

Python mutants want cosmic-ray (``make mutate`` installs it); without it shaders alone are tried.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from mutants import ROOT, Mutant, python_mutants, wgsl_mutants

# What is mutated, and the tests that are to notice: FOLDER/SUBJECT is tests/FOLDER/test_SUBJECT.py.
_PYTHON = {
    "gridwise_py/planning/plan.py": "planning/plan primitives/kernel runtime/executor",
    "gridwise_py/planning/shaders.py": "planning/shaders primitives/kernel",
    "gridwise_py/planning/accessors.py": "primitives/views primitives/matmul primitives/windows",
    "gridwise_py/planning/bindings.py": "runtime/chunked primitives/windows planning/shaders",
    "gridwise_py/planning/layout.py": "primitives/views primitives/windows planning/plan",
    "gridwise_py/tuning/sort_shapes.py": "tuning/sort_shape primitives/sort project/public_names",
    "gridwise_py/runtime/counts.py": "primitives/counts runtime/counted_outputs",
    "gridwise_py/runtime/event.py": "runtime/event timing/timing project/public_names",
    "gridwise_py/timing/queries.py": "timing/timing runtime/event project/public_names",
    "gridwise_py/timing/result.py": "timing/timing project/public_names",
    "gridwise_py/bench/calibrate/classify.py": "bench/classify project/public_names",
    "gridwise_py/bench/stats/statistics.py": "bench/statistics project/public_names",
    "gridwise_py/bench/stats/resampling.py": "bench/statistics",
    "gridwise_py/bench/stats/verdict.py": "bench/verdict bench/compare project/public_names",
    "gridwise_py/bench/results/rounds.py": "bench/rounds",
}
_PARTS = "primitives/views primitives/windows primitives/counts"
_SCAN = f"primitives/scan primitives/lookback {_PARTS}"
_SORT = "primitives/sort primitives/counts"
_BOTH = f"primitives/reduce primitives/scan {_PARTS}"
_PROBE = "runtime/lookback_verdict"
#: Tests of a shader; by default those of the primitive of its name.
_ARRAYS = "primitives/array_functions runtime/shapes"
_ORDER = "primitives/order_functions"
_STREAM = "primitives/select"
_BINS = "primitives/histogram"
_WGSL = {
    "shaders/reduce.wgsl": f"primitives/reduce {_PARTS}",
    "shaders/reduce_blocks.wgsl": _BOTH,
    "shaders/lib/reduce_partial.wgsl": "primitives/struct_reductions",
    "shaders/reduce_totals.wgsl": f"primitives/reduce {_PARTS}",
    "shaders/scan_columns.wgsl": "primitives/scan_axis",
    "shaders/scan_rows.wgsl": "primitives/scan_axis",
    "shaders/reduce_columns.wgsl": "primitives/reduce_axis",
    "shaders/reduce_narrow.wgsl": "primitives/reduce_axis",
    "shaders/reduce_rows.wgsl": "primitives/reduce_axis",
    "shaders/reduce_compensated.wgsl": "primitives/float_sums primitives/counts",
    "shaders/reduce_compensated_totals.wgsl": "primitives/float_sums primitives/counts",
    "shaders/scan.wgsl": _SCAN,
    "shaders/scan_initial.wgsl": "primitives/scan_initial",
    "shaders/scan_compensated.wgsl": "primitives/float_sums primitives/counts",
    "shaders/scan_compensated_totals.wgsl": "primitives/float_sums primitives/counts primitives/scan_initial",
    "shaders/scan_lookback.wgsl": _SCAN,
    "shaders/operator_check.wgsl": "types/binop",
    "shaders/unary_operator_check.wgsl": "types/unary_op",
    "shaders/copy.wgsl": "primitives/stream runtime/executor",
    "shaders/lookback_probe.wgsl": _PROBE,
    "shaders/arange.wgsl": _ARRAYS,
    "shaders/broadcast_add.wgsl": _ARRAYS,
    "shaders/convert.wgsl": _ARRAYS,
    "shaders/fill.wgsl": _ARRAYS,
    "shaders/take.wgsl": _ARRAYS,
    "shaders/search_samples.wgsl": "primitives/search",
    "shaders/group_tables.wgsl": "primitives/group_tables",
    "shaders/merge.wgsl": "primitives/merge",
    "shaders/merge_network.wgsl": "primitives/merge",
    "shaders/merge_partition.wgsl": "primitives/merge",
    "shaders/merge_sort_tile.wgsl": "primitives/merge",
    "shaders/lib/merge_bounds.wgsl": "primitives/merge",
    "shaders/lib/merge_order.wgsl": "primitives/merge",
    "shaders/lib/merge_path.wgsl": "primitives/merge",
    "shaders/lib/merge_runs.wgsl": "primitives/merge",
    "shaders/histogram_bins.wgsl": _BINS,
    "shaders/histogram_scatter.wgsl": _BINS,
    "shaders/histogram_totals.wgsl": _BINS,
    "shaders/lib/bins.wgsl": _BINS,
    "shaders/top_k_codes.wgsl": "primitives/top_k",
    "shaders/top_k_gather.wgsl": "primitives/top_k",
    "shaders/top_k_minima.wgsl": "primitives/top_k",
    "shaders/top_k_select.wgsl": "primitives/top_k",
    "shaders/lib/top_k_choose.wgsl": "primitives/top_k",
    "shaders/lib/top_k_entries.wgsl": "primitives/top_k",
    "shaders/lib/top_k_items.wgsl": "primitives/top_k",
    "shaders/lib/top_k_step.wgsl": "primitives/top_k",
    "shaders/canary.wgsl": "bench/measure bench/calibration",
    "shaders/flush.wgsl": "bench/measure",
    "shaders/fma.wgsl": "bench/calibration",
    "shaders/triad.wgsl": "bench/calibration",
    "shaders/sort_count.wgsl": _SORT,
    "shaders/sort_histogram.wgsl": _SORT,
    "shaders/sort_offsets.wgsl": _SORT,
    "shaders/sort_pass_lookback.wgsl": _SORT,
    "shaders/sort_pass_offsets.wgsl": _SORT,
    "shaders/sort_small.wgsl": _SORT,
    "shaders/reorder.wgsl": _ORDER,
    "shaders/scatter.wgsl": _ORDER,
    "shaders/transpose.wgsl": _ORDER,
    "shaders/transpose_narrow.wgsl": _ORDER,
    "shaders/segmented_sort_count.wgsl": "primitives/segmented_sort",
    "shaders/segmented_sort_list.wgsl": "primitives/segmented_sort",
    "shaders/segmented_sort_move.wgsl": "primitives/segmented_sort",
    "shaders/segmented_sort_offsets.wgsl": "primitives/segmented_sort",
    "shaders/segmented_sort_tiles.wgsl": "primitives/segmented_sort",
    "shaders/segmented_sort_totals.wgsl": "primitives/segmented_sort",
    "shaders/segmented_sort_windows.wgsl": "primitives/segmented_sort",
    "shaders/lib/long_tile.wgsl": "primitives/segmented_sort",
    "shaders/lib/segment_key.wgsl": "primitives/segmented_sort",
    "shaders/segmented_lookback.wgsl": "primitives/segments",
    "shaders/segmented_blocks.wgsl": "primitives/segments",
    "shaders/segmented_fixup.wgsl": "primitives/segments",
    "shaders/segmented_reduce.wgsl": "primitives/segments",
    "shaders/lib/heads_by_ends.wgsl": "primitives/segments",
    "shaders/lib/segmented_blocks.wgsl": "primitives/segments",
    "shaders/lib/merge_params.wgsl": "primitives/merge",
    "shaders/segmented_carries.wgsl": "primitives/segments",
    "shaders/expand.wgsl": "primitives/segments",
    "shaders/lib/chain.wgsl": "primitives/segments",
    "shaders/lib/emit_dense.wgsl": "primitives/segments",
    "shaders/lib/emit_ends.wgsl": "primitives/segments",
    "shaders/lib/emit_runs.wgsl": "primitives/segments",
    "shaders/lib/heads_by_keys.wgsl": "primitives/segments",
    "shaders/lib/heads_by_offsets.wgsl": "primitives/segments",
    "shaders/lib/segment_search.wgsl": "primitives/segments",
    "shaders/lib/segmented_complete.wgsl": "primitives/segments",
    "shaders/lib/segmented_short.wgsl": "primitives/segments",
    "shaders/lib/segmented_subgroup.wgsl": "primitives/segments",
    "shaders/lib/segmented_tile.wgsl": "primitives/segments",
    "shaders/stream_lookback.wgsl": _STREAM,
    "shaders/stream_count.wgsl": _STREAM,
    "shaders/stream_totals.wgsl": _STREAM,
    "shaders/stream_blocks.wgsl": _STREAM,
    "shaders/lib/stream_acc.wgsl": _STREAM,
    "shaders/lib/stream_carry.wgsl": _STREAM,
    "shaders/lib/stream_emit.wgsl": _STREAM,
    "shaders/lib/stream_end.wgsl": _STREAM,
    "shaders/lib/stream_marks.wgsl": _STREAM,
    "shaders/lib/stream_pack.wgsl": _STREAM,
    "shaders/lib/stream_params.wgsl": _STREAM,
    "shaders/lib/stream_quad.wgsl": _STREAM,
    "shaders/lib/stream_rounds.wgsl": _STREAM,
    "shaders/lib/stream_state.wgsl": _STREAM,
    "shaders/lib/stream_tile.wgsl": _STREAM,
    "shaders/lib/accumulators.wgsl": "primitives/item_datatypes",
    "shaders/lib/cast.wgsl": _ARRAYS,
    "shaders/lib/float64.wgsl": _ARRAYS,
    "shaders/lib/number.wgsl": _ARRAYS,
    "shaders/lib/quad.wgsl": _ARRAYS,
    "shaders/lib/quads.wgsl": _ARRAYS,
    "shaders/lib/control.wgsl": f"{_SCAN} {_PROBE}",
    "shaders/lib/convert.wgsl": "primitives/item_datatypes primitives/dtypes",
    "shaders/lib/used_blocks.wgsl": "primitives/counts",
    "shaders/lib/elementwise.wgsl": "primitives/vector_add primitives/views primitives/counts runtime/executor",
    "shaders/lib/fields.wgsl": "primitives/structs",
    "shaders/lib/half.wgsl": "primitives/matmul primitives/item_datatypes",
    "shaders/lib/matmul_items.wgsl": "primitives/matmul",
    "shaders/lib/operator.wgsl": _BOTH,
    "shaders/lib/pair.wgsl": "primitives/float_sums",
    "shaders/lib/items.wgsl": f"{_BOTH} primitives/reduce_axis primitives/scan_axis",
    "shaders/lib/masked.wgsl": "primitives/reduce_axis primitives/scan_axis",
    "shaders/lib/reduce_block.wgsl": _BOTH,
    "shaders/lib/seal.wgsl": "primitives/float_sums",
    "shaders/lib/sort_items.wgsl": _SORT,
    "shaders/lib/key_code.wgsl": f"{_SORT} primitives/search",
    "shaders/lib/sort_key.wgsl": _SORT,
    "shaders/lib/sort_rank.wgsl": _SORT + " primitives/subgroup_sizes",
    "shaders/lib/sort_counters.wgsl": _SORT,
    "shaders/lib/sort_read.wgsl": _SORT,
    "shaders/lib/sort_scan.wgsl": _SORT,
    "shaders/lib/sort_stage.wgsl": _SORT,
    "shaders/lib/sort_state.wgsl": _SORT,
    "shaders/lib/sort_write.wgsl": _SORT,
    "shaders/lib/look_back.wgsl": _SCAN,
    "shaders/lib/state.wgsl": f"{_SCAN} {_PROBE}",
    "shaders/lib/subgroup.wgsl": _BOTH + " primitives/subgroup_sizes",
    "shaders/lib/tail.wgsl": f"{_SCAN} primitives/float_sums",
    "shaders/lib/tile.wgsl": _BOTH,
    "shaders/lib/tile_scan.wgsl": _SCAN,
    "shaders/lib/unary_operator.wgsl": "primitives/map types/unary_op",
    "shaders/lib/wide.wgsl": "primitives/item_datatypes",
    "shaders/lib/workgroup.wgsl": _BOTH,
    "shaders/lib/workgroup_index.wgsl": _BOTH,
}


def _test_files(subjects: str) -> str:
    return " ".join(f"tests/{folder}/test_{name}.py" for folder, name in (word.split("/") for word in subjects.split()))


PYTHON = {place: _test_files(subjects) for place, subjects in _PYTHON.items()}
WGSL = {
    place: _test_files(_WGSL.get(place, f"primitives/{Path(place).stem}"))
    for place in (path.relative_to(ROOT).as_posix() for path in sorted((ROOT / "shaders").rglob("*.wgsl")))
}

# ---- one trial

_running: set[subprocess.Popen[str]] = set()
_stopped = threading.Event()  # by a signal or a fault: what still runs is killed, and tells nothing


def run_tests(folder: Path, tests: str, timeout_s: float, *options: str) -> tuple[int | None, str]:
    """Return the exit code of the tests in a copy of the repository, None if they were stopped, and what they wrote."""
    paths = [str(folder), str(Path(__file__).parent), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {
        "XDG_RUNTIME_DIR": "/tmp", **os.environ, "PYTHONPATH": os.pathsep.join(paths), "PYTHONDONTWRITEBYTECODE": "1"
    }  # fmt: skip
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-p", "mutation_order",
               "-m", "not slow and not tint", *options, *tests.split()]  # fmt: skip
    process = subprocess.Popen(
        command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        errors="replace", start_new_session=True,
    )  # fmt: skip
    _running.add(process)
    try:
        output, _ = process.communicate(timeout=max(timeout_s, 0.1))
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        return None, process.communicate()[0]
    finally:
        _running.discard(process)
    return process.returncode, output


def _how_it_failed(code: int, output: str) -> str:
    failed = re.search(r"^(?:FAILED|ERROR) (.+?)(?: - |$)", output, re.MULTILINE)
    return failed[1] if failed else f"exit code {code}"


def is_killed(folder: Path, mutant: Mutant, tests: str, timeout_s: float, first: Iterable[str] = ()) -> str | None:
    """Return how a mutant was noticed, or None; the tests with the node ids in `first` run first."""
    path = folder / mutant.place
    original = path.read_text(encoding="utf-8")
    order = folder / "order.json"
    order.write_text(json.dumps(list(first)), encoding="utf-8")
    path.write_text(mutant.text, encoding="utf-8")
    try:
        code, output = run_tests(folder, tests, timeout_s, "--in-order", str(order))
    finally:
        path.write_text(original, encoding="utf-8")
    if code is None:
        return "no end"
    return None if code == 0 else _how_it_failed(code, output)


# ---- what is known so far


class Record:
    """What was tried, in a file that is whole at any time, and how long each test takes without a mutant.

    Parameters
    ----------
    path
        The JSON file. What it holds is taken over; the times of tests only if neither they nor what they test has
        changed since. Without a path nothing is kept.
    """

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.rows: list[dict[str, Any]] = []
        self.test_files: dict[str, dict[str, Any]] = {}
        files = [
            file for folder in ("gridwise_py", "shaders", "tests") for file in sorted((ROOT / folder).rglob("*.*"))
        ]
        self.state = _digest(file for file in files if file.suffix in (".py", ".wgsl") and file.name[:5] != "test_")
        self._lock = threading.Lock()
        if path is not None and path.exists():
            content = json.loads(path.read_text(encoding="utf-8"))
            self.rows = content["mutants"]
            if content["state"] == self.state:
                known = content["test_files"].items()
                self.test_files = {name: row for name, row in known if row["sha256"] == _digest([ROOT / name])}

    def add(self, mutant: Mutant, killed_by: str | None, seconds: float) -> None:
        """Add what became of a mutant, in the place of what was known of it before."""
        row = {"place": mutant.place, "line": mutant.line, "old": mutant.old, "new": mutant.new,
               "killed_by": killed_by, "seconds": round(seconds, 1)}  # fmt: skip
        with self._lock:
            self.rows = [other for other in self.rows if key_of(other) != mutant.key] + [row]
            self._write()

    def add_test_file(self, name: str, content: dict[str, Any]) -> None:
        """Add how a file of tests fares without a mutant."""
        with self._lock:
            self.test_files[name] = {"sha256": _digest([ROOT / name]), **content}
            self._write()

    def _write(self) -> None:
        if self.path is None:
            return
        content = {"state": self.state, "mutants": self.rows, "test_files": self.test_files}
        part = self.path.with_name(self.path.name + ".part")
        part.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
        part.replace(self.path)

    def seconds(self, tests: str) -> float:
        """Return how long these files of tests take without a mutant, the start of Python included."""
        return sum(self.test_files[name]["seconds"] for name in tests.split())

    def order(self, mutant: Mutant, tests: str) -> list[str]:
        """Return node ids in the order that promises a quick end.

        Killers of the nearest lines come first, then the files by how long they take, of each at first one of each
        function, quick ones before slow ones.
        """
        with self._lock:
            near = sorted(
                (abs(row["line"] - mutant.line), row["killed_by"])
                for row in self.rows
                if row["place"] == mutant.place and "::" in (row["killed_by"] or "")
            )
        order = [name for _, name in near]
        for file in sorted(tests.split(), key=self.seconds):
            by_time = sorted(self.test_files[file]["tests"].items(), key=lambda item: item[1])
            of_each = {name.partition("[")[0]: name for name, _ in reversed(by_time)}
            order += [name for name, _ in by_time if name in of_each.values()]
            order += [name for name, _ in by_time]
        return list(dict.fromkeys(order))


def _digest(files: Iterable[Path]) -> str:
    digest = hashlib.sha256()
    for file in files:
        digest.update(file.read_bytes())
    return digest.hexdigest()


def key_of(row: dict[str, Any]) -> tuple[str, int, str, str]:
    """Return by what the mutant of a row is known."""
    return row["place"], row["line"], row["old"], row["new"]


# ---- many trials


def in_parallel(work: Iterable[Any], folders: list[Path], do: Callable[[Path, Any], None], deadline: float) -> None:
    """Call ``do(folder, item)`` for each item of the work, with as many at a time as there are folders."""
    left, lock, nothing = iter(work), threading.Lock(), object()

    def worker(folder: Path) -> None:
        while time.monotonic() < deadline and not _stopped.is_set():
            with lock:
                item = next(left, nothing)
            if item is nothing:
                return
            do(folder, item)

    with ThreadPoolExecutor(len(folders)) as pool:
        try:
            for future in [pool.submit(worker, folder) for folder in folders]:
                future.result()
        except BaseException:
            _stopped.set()
            for process in tuple(_running):
                os.killpg(process.pid, signal.SIGKILL)
            raise


def try_test_files(names: Iterable[str], folders: list[Path], record: Record, deadline: float) -> dict[str, str]:
    """Run each file of tests without a mutant; return those that fail, with how."""
    failed = {}

    def do(folder: Path, name: str) -> None:
        begin, times = time.monotonic(), folder / "seconds.json"
        code, output = run_tests(folder, name, deadline - begin, "--seconds-to", str(times))
        if code is None:
            failed[name] = "was stopped"
        elif code != 0:
            failed[name] = _how_it_failed(code, output)
        elif not (content := json.loads(times.read_text(encoding="utf-8")))["passed"]:
            failed[name] = f"all {content['skipped']} tests were skipped"
        else:
            record.add_test_file(name, {"seconds": round(time.monotonic() - begin, 1), **content})
            skipped = f", {content['skipped']} skipped" if content["skipped"] else ""
            print(f"{name}: {content['passed']} passed{skipped} in {time.monotonic() - begin:.0f} s", flush=True)

    in_parallel([name for name in names if name not in record.test_files], folders, do, deadline)
    return failed | {name: "was not reached" for name in names if name not in record.test_files and name not in failed}


def try_mutants(
    mutants: Sequence[Mutant], tests: dict[str, str], folders: list[Path], record: Record, timeout_s: float,
    deadline: float,
) -> int:  # fmt: skip
    """Try mutants until the deadline; return how many were.

    The next one is always of the place that has had the least time, so that whenever the time is up all had their
    share, and those with quick tests had many mutants.
    """
    tried, left = [], {place: [m for m in reversed(mutants) if m.place == place] for place in tests}
    spent_s = dict.fromkeys(tests, 0.0)

    def turns() -> Iterator[Mutant]:
        while places := [place for place in tests if left[place]]:
            place = min(places, key=spent_s.__getitem__)
            spent_s[place] += record.seconds(tests[place])  # what it may take, until it is known
            yield left[place].pop()

    def do(folder: Path, mutant: Mutant) -> None:
        begin, names = time.monotonic(), tests[mutant.place]
        # Four times what the tests take: other jobs and a busy machine slow them down too.
        limit = min(timeout_s, 30 + 4 * record.seconds(names))
        how = is_killed(folder, mutant, names, min(limit, deadline - begin), record.order(mutant, names))
        if _stopped.is_set() or (how == "no end" and time.monotonic() >= deadline):
            return  # cut off by the end of the run, which tells nothing
        took_s = time.monotonic() - begin
        spent_s[mutant.place] += took_s - record.seconds(names)
        record.add(mutant, how, took_s)
        tried.append(mutant)
        if how is None:
            print(f"SURVIVED {mutant.place}:{mutant.line}\n  - {mutant.old}\n  + {mutant.new}", flush=True)

    in_parallel(turns(), folders, do, deadline)
    return len(tried)


def _places(options: argparse.Namespace) -> dict[str, str]:
    """Return the places to mutate, with their tests; ends the program if they need what is not here."""
    chosen = {"python": PYTHON, "wgsl": WGSL, "all": PYTHON | WGSL}[options.kind]
    if unknown := set(options.places) - set(chosen):
        raise SystemExit(f"mutate.py: no tests are named for {', '.join(sorted(unknown))}; known: {', '.join(chosen)}")
    tests = {place: names for place, names in chosen.items() if not options.places or place in options.places}
    if importlib.util.find_spec("cosmic_ray") is None and (modules := tests.keys() & PYTHON.keys()):
        remedy = "pip install -c constraints.txt cosmic-ray"
        if len(modules) == len(tests):
            raise SystemExit(f"mutate.py: the mutants of Python modules need cosmic-ray: {remedy}")
        print(f"cosmic-ray is not installed: shaders alone are tried, not {len(modules)} modules. Remedy: {remedy}")
        tests = {place: names for place, names in tests.items() if place in WGSL}
    return tests


def main() -> int:
    """Try a sample; 0 whatever survives: which of them matter is a judgement. 1 if tests fail without a mutant."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("places", nargs="*", help="Of those in PYTHON and WGSL; all by default.")
    parser.add_argument("--minutes", type=float, default=20.0, help="For all of it.")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kind", choices=["python", "wgsl", "all"], default="all")
    parser.add_argument("--jobs", type=int, default=1, help="Mutants at a time, each in a copy of its own.")
    parser.add_argument("--timeout", type=float, default=300.0, help="Seconds at most for the tests of a mutant.")
    parser.add_argument("--json", type=Path, help="What was tried; a run goes on where the last one was.")
    parser.add_argument("--survivors", action="store_true", help="Try again those that survived, says the file.")
    options = parser.parse_args()
    begin = time.monotonic()
    deadline = begin + 60 * options.minutes
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    tests, record, rng = _places(options), Record(options.json), random.Random(options.seed)
    found = {place: list((python_mutants if place in PYTHON else wgsl_mutants)(place)) for place in tests}
    for mutants in found.values():
        rng.shuffle(mutants)
    every = list({mutant.key: mutant for mutants in found.values() for mutant in mutants}.values())
    before = {key_of(row): row["killed_by"] for row in record.rows}
    if options.survivors:
        todo = [mutant for mutant in every if before.get(mutant.key, "") is None]
    else:
        todo = [mutant for mutant in every if mutant.key not in before]
    with tempfile.TemporaryDirectory(prefix="gridwise-mutants-") as name:
        folders = [Path(name) / str(job) for job in range(options.jobs)]
        skipped = shutil.ignore_patterns(".venv", ".git", "__pycache__", ".hypothesis", ".*_cache", "dist", ".gpu-kit")
        for folder in folders:
            shutil.copytree(ROOT, folder, ignore=skipped)
        needed = dict.fromkeys(test for mutant in todo for test in tests[mutant.place].split())
        failed = try_test_files(needed, folders, record, deadline)
        for test, how in failed.items():
            print(f"LEFT OUT what is tried by {test}, which without a mutant {how}", flush=True)
        todo = [mutant for mutant in todo if not failed.keys() & set(tests[mutant.place].split())]
        tried = try_mutants(todo, tests, folders, record, options.timeout, deadline)
    keys = {mutant.key for mutant in every}
    outcomes = [row["killed_by"] for row in record.rows if key_of(row) in keys]
    print(
        f"{tried} mutants tried in {(time.monotonic() - begin) / 60:.1f} minutes (seed {options.seed}); in all "
        f"{len(outcomes)} of {len(every)}: {outcomes.count(None)} survived, {outcomes.count('no end')} had no end"
    )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
