"""Selections, runs, segments, maps and reductions beside CUB's on the same GPU: same data, in turns, in one run.

Usage: python benchmarks/peers/stream_peer.py [--sizes 2^20,2^24,2^28] [--cases marks] [--budget-s 150] [--json FILE]
       python benchmarks/peers/stream_peer.py --ours-only --sizes 2^12     (any GPU, also a software one)
       python benchmarks/peers/stream_peer.py --tuning "select:stage=0|2048,vecs=8|16" --sizes 2^28

CUB's side, cub_stream_peer.cu, is built with nvcc where there is one; or give the built program with --cub. That one
needs no toolkit where it runs, only NVIDIA's driver, so it may be built on another machine:

    nvcc -O3 -std=c++17 --extended-lambda -arch=sm_90 -o cub_stream_peer benchmarks/peers/cub_stream_peer.cu

With the headers of a newer CUB it has top-k, too: pip download nvidia-cuda-cccl, unzip, -I nvidia/cu13/include/cccl.

Cases are groups (marks, shares, runs, datatypes, others, segments) or beginnings of names, by semicolons. Times are
medians over all rounds; both sides are kept busy before each round, and take turns:

single        one call: ours from the first timestamp to the last, CUB's between two CUDA events
back to back  so many calls at once, per call: ours as dispatches in one pass, CUB's as a CUDA graph. Below 2^26 this is
              the one to compare: the launch from the host lies between the events of a single call, but not between its
              timestamps.

`ratio` is CUB's time over ours: above 1, this library is faster. GB/s counts the bytes that must move: inputs once,
values of runs where they are kept, and the results. `mark` is the ratio that single calls are to reach.

Results of both sides are compared by checksums of each output, and up to --reference items with numpy, too.

A case that takes longer than --case-s ends the program with a traceback: a kernel that hangs is not waited for, and the
rows before it are in the file.

With --tuning, a primitive of ours in all combinations of the given fields, in turns, beside the library's choice, and
no CUB. The name before the colon is the beginning of a case.
"""

from __future__ import annotations

import faulthandler
import itertools
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_args, get_type_hints

import click
import numpy as np
from cub_server import CubServer, PeerError
from cuda_peers import build_cub
from stream_tasks import DOT_OF_HALF, REDUCE, ROWS, SEGMENTS, Data, Task, all_tasks, checksum, chosen

import gridwise_py as gw
from gridwise_py.bench.cases.case import warm_up
from gridwise_py.bench.checks.check import mismatch
from gridwise_py.bench.results.context import run_context
from gridwise_py.cli.options import AxisList
from gridwise_py.runtime.executor import RawTransfer
from gridwise_py.storage.json_files import write_json

_SETTLE_ITEMS = 1 << 26
#: Of continuous work before the first round of a case: its data was made meanwhile, and the clock fell.
_FIRST_WARMUP_S = 0.25
#: Of all back-to-back calls of a round, and of all its single calls.
_BACK_TO_BACK_S, _SINGLE_S = 0.02, 0.1
_MOST_LAUNCHES = 100


@dataclass
class Figures:
    """Times of one side.

    Attributes
    ----------
    single_ns, back_to_back_ns : list of float
    skipped : str or None
        Why there are none.
    more : dict
        What else is told of this side.
    """

    single_ns: list[float] = field(default_factory=list)
    back_to_back_ns: list[float] = field(default_factory=list)
    skipped: str | None = None
    more: dict[str, Any] = field(default_factory=dict)

    def median(self, which: str) -> float | None:
        """Return the median of a figure, or None."""
        times = getattr(self, which)
        return statistics.median(times) if times else None

    def described(self) -> dict[str, Any]:
        """Return what the results file says."""
        if self.skipped is not None:
            return {"skipped": self.skipped}
        return {
            "single": self.median("single_ns"), "back_to_back": self.median("back_to_back_ns"),
            "single_ns": self.single_ns, "back_to_back_ns": self.back_to_back_ns or None, **self.more,
        }  # fmt: skip


class Ours:
    """A primitive of this library with its arguments bound."""

    def __init__(self, primitive: gw.Primitive, arrays: Mapping[str, gw.Array]):
        self.primitive = primitive
        self.run = primitive.execute(**arrays)
        self.call = primitive.bind()
        self._device = primitive.device
        self._helper = gw.timing_helper(self._device)

    def outputs(self) -> dict[str, np.ndarray]:
        """Return the results, cut to their counts."""
        return {name: array.to_numpy() for name, array in self.run.outputs.items()}

    def warm_up(self, seconds: float) -> None:
        """Keep the GPU busy."""
        warm_up(self.call, seconds)

    def single_ns(self) -> float:
        """Return the time of one call."""
        ns = self.primitive.execute(enable_gpu_timing=True).get_timing_result().gpu_span_ns
        if ns is None:
            raise PeerError("no valid timestamps")
        return ns

    def back_to_back_ns(self, launches: int) -> float | None:
        """Return the time of a call among `launches`; None where a call has copies, which would split the pass."""
        steps = self.call.bound_plan.steps
        if any(isinstance(step, RawTransfer) for step in steps):
            return None
        session = self._helper.session()
        encoder = self._device.create_command_encoder()
        compute = encoder.begin_compute_pass(timestamp_writes=session.span("back to back"))
        for _, step in itertools.product(range(launches), steps):
            compute.set_pipeline(step.pipeline)
            compute.set_bind_group(0, step.group)
            compute.dispatch_workgroups(*step.workgroups)
        compute.end()
        self._device.queue.submit([encoder.finish()])
        session.submitted()
        return session.spans()[0].ns / launches

    def pilot(self) -> float:
        """Return about how long a call takes, in seconds."""
        return max(self.single_ns(), 1e3) * 1e-9


def settle(device: Any, seconds: float) -> None:
    """Copy for `seconds`, beyond every cache, so that the first case does not find a clock that is still rising."""
    if seconds:
        copy = gw.Copy(device, "u32")
        arrays = {"input": gw.empty(_SETTLE_ITEMS, "u32", device), "output": gw.empty(_SETTLE_ITEMS, "u32", device)}
        warm_up(copy.bind(**arrays), seconds)
        for array in arrays.values():
            array.destroy()


def counts_of(call_s: float, samples: int) -> tuple[int, int]:
    """Return how many single calls, and how many calls back to back, a round takes of a call of this length."""
    single = min(samples, max(1, int(_SINGLE_S / call_s)))
    return single, min(_MOST_LAUNCHES, max(1, int(_BACK_TO_BACK_S / call_s)))


@dataclass(frozen=True)
class Options:
    """How often what is measured."""

    rounds: int
    samples: int
    warmup_s: float
    first_warmup_s: float
    reference: int


class Comparison:
    """Measures tasks of one n."""

    def __init__(self, device: Any, data: Data, cub: CubServer | str, options: Options):
        self._device, self._data, self._cub, self._options = device, data, cub, options

    # ---- one side each

    def prepare_ours(self, task: Task, tuning: Any = None) -> Ours | str:
        """Return our side, or why there is none."""
        missing = task.missing()
        if missing is not None:
            return f"gw.{missing} is not there"
        try:
            primitive = task.make(self._device, self._data.n, tuning)
            return Ours(primitive, {name: self._data.array(data) for name, data in task.arguments.items()})
        except (gw.GridwiseError, NotImplementedError) as error:
            return f"{type(error).__name__}: {error}"

    def prepare_cub(self, task: Task) -> dict[str, Any] | str:
        """Return CUB's answer, or why there is none."""
        if isinstance(self._cub, str):
            return self._cub
        if task.cub is None:
            return "CUB has none"
        try:
            for name in task.cub_data.values():
                self._cub.load(name, self._data.host(name))
            algorithm, options = task.cub(self._data.n)
            pairs = [f"{key}={value}" for key, value in {**options, **task.cub_data}.items()]
            return self._cub.ask("case", algorithm, task.datatype, self._data.n, *pairs)
        except PeerError as error:
            return str(error)

    def reference_error(self, task: Task, ours: Ours, outputs: Mapping[str, np.ndarray]) -> str | None:
        """Return how our results differ from numpy's, or None."""
        inputs = {name: self._data.host(data) for name, data in task.arguments.items()}
        found = mismatch(ours.primitive, inputs, dict(outputs))
        return None if found is None else str(found)

    # ---- a row

    def compare(self, task: Task) -> dict[str, Any]:
        """Measure both sides in turns; return the row."""
        n = self._data.n
        ours, answer = self.prepare_ours(task), self.prepare_cub(task)
        figures = {"gridwise_py": Figures(), "cub": Figures()}
        row: dict[str, Any] = {"case": task.name, "group": task.group, "n": n, "datatype": task.datatype}
        sums: dict[str, list[str]] = {}
        sizes: list[int] | None = None
        if isinstance(ours, str):
            figures["gridwise_py"].skipped = ours
        else:
            outputs = ours.outputs()
            # CUB writes the fields of a struct to arrays.
            arrays = dict(outputs)
            for items in outputs.values():
                arrays |= {field: np.ascontiguousarray(items[field]) for field in items.dtype.names or ()}
            sizes = [arrays[name].size for name in task.outputs]
            if not isinstance(answer, str):
                sums["gridwise_py"] = [str(checksum(arrays[name])) for name in task.outputs]
            if n <= self._options.reference:
                row["differs_from_numpy"] = self.reference_error(task, ours, outputs)
            figures["gridwise_py"].more = {"parameters": dict(ours.run.plan.parameters)}
        if isinstance(answer, str):
            figures["cub"].skipped = answer
        else:
            sums["cub"], sizes = answer["checksums"], sizes or answer["counts"]
            figures["cub"].more = {"version": answer["cub_version"], "temp_bytes": answer["temp_bytes"]}
        row["equal"] = sums["gridwise_py"] == sums["cub"] if len(sums) == 2 else None
        if row["equal"] is False:
            row["checksums"] = sums
        self.take(None if isinstance(ours, str) else ours, figures)
        # A case of CUB's alone may give outputs that differ from what ours will give; its bytes need none of them.
        row["moved_bytes"] = None if sizes is None else task.bytes_of(n, sizes)
        row["sides"] = {side: each.described() for side, each in figures.items()}
        row["ratio"], row["back_to_back_ratio"] = (_ratio(figures, which) for which in ("single_ns", "back_to_back_ns"))
        row["mark"], row["stretch"] = task.marks.get(n, (None, None))
        if not isinstance(ours, str):
            ours.primitive.release()
        return row

    def take(self, ours: Ours | None, figures: dict[str, Figures]) -> None:
        """Take turns, and note the times in `figures`."""
        sides: dict[str, Callable[[float], None]] = {}
        if ours is not None:
            sides["gridwise_py"] = lambda warmup_s: self._time_ours(ours, figures["gridwise_py"], warmup_s)
        if figures["cub"].skipped is None:
            sides["cub"] = lambda warmup_s: self._time_cub(figures["cub"], warmup_s)
        for number in range(self._options.rounds):
            warmup_s = self._options.warmup_s if number else self._options.first_warmup_s
            for side in list(sides) if number % 2 else list(reversed(sides)):
                try:
                    sides[side](warmup_s)
                except PeerError as error:
                    figures[side].skipped = str(error)
                    del sides[side]

    def _time_ours(self, ours: Ours, figures: Figures, warmup_s: float) -> None:
        ours.warm_up(warmup_s)
        singles, launches = counts_of(ours.pilot(), self._options.samples)
        figures.single_ns += [ours.single_ns() for _ in range(singles)]
        figures.more["launches"] = launches
        for _ in range(singles):
            time_ns = ours.back_to_back_ns(launches)
            if time_ns is not None:
                figures.back_to_back_ns.append(time_ns)

    def _time_cub(self, figures: Figures, warmup_s: float) -> None:
        assert isinstance(self._cub, CubServer)
        pilot_ns = self._cub.ask("time", warmup_s, 1, 0)["single_ns"][0]
        singles, launches = counts_of(max(pilot_ns, 1e3) * 1e-9, self._options.samples)
        answer = self._cub.ask("time", 0, singles, launches)
        figures.single_ns += answer["single_ns"]
        figures.back_to_back_ns += answer["back_to_back_ns"]
        figures.more["launches"] = launches

    # ---- tunings

    def tune(self, task: Task, tunings: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Measure our side with each tuning in turns; return rows, the fastest first."""
        sides: dict[str, Ours] = {}
        for name, tuning in tunings.items():
            made = self.prepare_ours(task, tuning)
            if isinstance(made, str):
                click.echo(f"  {name}: not here: {made:.200}")
            else:
                sides[name] = made
        figures = {name: Figures() for name in sides}
        wanted: dict[str, bytes] | None = None
        rows: list[dict[str, Any]] = []
        for name, ours in sides.items():
            outputs = ours.outputs()
            differs = self.reference_error(task, ours, outputs) if self._data.n <= self._options.reference else None
            sums = {key: checksum(array) for key, array in outputs.items()}
            wanted = wanted or sums
            rows.append(
                {"case": task.name, "datatype": task.datatype, "n": self._data.n, "tuning": name,
                 "differs_from_numpy": differs, "equal": sums == wanted,
                 "moved_bytes": task.bytes_of(self._data.n, [outputs[output].size for output in task.outputs]),
                 "parameters": dict(ours.run.plan.parameters)}
            )  # fmt: skip
        rng = np.random.default_rng(self._data.n)
        for number in range(self._options.rounds):
            for name in map(str, rng.permutation(list(sides))):
                warmup_s = self._options.warmup_s if number else self._options.first_warmup_s
                self._time_ours(sides[name], figures[name], warmup_s)
        for row in rows:
            row |= figures[row["tuning"]].described()
        for ours in sides.values():
            ours.primitive.release()
        return sorted(rows, key=lambda row: row["single"])


def _ratio(figures: Mapping[str, Figures], which: str) -> float | None:
    mine, theirs = figures["gridwise_py"].median(which), figures["cub"].median(which)
    return None if mine is None or theirs is None else theirs / mine


# ---- what is printed


def _cell(value: float | None, form: str, width: int) -> str:
    return f"{'–' if value is None else format(value, form):>{width}}"


def _rate(row: Mapping[str, Any], side: str) -> float | None:
    time_ns = row["sides"][side].get("single")
    return None if time_ns is None or row["moved_bytes"] is None else row["moved_bytes"] / time_ns


def _power(n: int) -> str:
    return f"2^{n.bit_length() - 1}" if n & (n - 1) == 0 else str(n)


HEAD = (
    f"{'case':32}{'type':>5}{'n':>6} |{'ours µs':>10}{'CUB µs':>11}{'ratio':>7}{'mark':>6}      |"
    f"{'b2b µs':>10}{'CUB':>11}{'ratio':>7} |{'GB/s':>6}{'CUB':>6} | equal"
)


def line_of(row: Mapping[str, Any]) -> str:
    """Return a row of the table."""

    def micros(side: str, which: str) -> float | None:
        time_ns = row["sides"][side].get(which)
        return None if time_ns is None else time_ns / 1e3

    verdict = ""
    if row["mark"] is not None and row["ratio"] is not None:
        reached = row["ratio"] >= row["mark"]
        verdict = "above" if row["stretch"] and row["ratio"] >= row["stretch"] else "ok" if reached else "BELOW"
    right = {None: "–", True: "yes", False: "NO"}[row["equal"]]
    if row.get("differs_from_numpy"):
        right = f"NO: {row['differs_from_numpy']}"
    elif "differs_from_numpy" in row:
        right += ", numpy's"
    said = "".join(
        f"; {name}: {row['sides'][side]['skipped']}"
        for side, name in (("gridwise_py", "ours"), ("cub", "CUB"))
        if row["sides"][side].get("skipped") not in (None, "not asked for", "CUB has none")
    )
    return (
        f"{row['case']:32}{row['datatype']:>5}{_power(row['n']):>6} |"
        f"{_cell(micros('gridwise_py', 'single'), '.1f', 10)}{_cell(micros('cub', 'single'), '.1f', 11)}"
        f"{_cell(row['ratio'], '.2f', 7)}{_cell(row['mark'], 'g', 6)} {verdict:5}|"
        f"{_cell(micros('gridwise_py', 'back_to_back'), '.1f', 10)}{_cell(micros('cub', 'back_to_back'), '.1f', 11)}"
        f"{_cell(row['back_to_back_ratio'], '.2f', 7)} |"
        f"{_cell(_rate(row, 'gridwise_py'), '.0f', 6)}{_cell(_rate(row, 'cub'), '.0f', 6)} | {right}{said}"
    )


def is_wrong(row: Mapping[str, Any]) -> bool:
    """Return whether results differ."""
    return row.get("equal") is False or bool(row.get("differs_from_numpy"))


def print_spread(rows: list[dict[str, Any]]) -> None:
    """Print the worst and the best rate of the lengths of segments, and how far they are apart."""
    kinds = (("gridwise_py", SEGMENTS), ("gridwise_py", ROWS), ("cub", SEGMENTS))
    for n, (side, text) in itertools.product(sorted({row["n"] for row in rows}), kinds):
        rates: dict[str, float] = {}
        for row in rows:
            rate = _rate(row, side)
            if (
                rate is not None
                and (row["group"], row["n"]) == ("segments", n)
                and row["case"].startswith(f"{text} of")
            ):
                rates[row["case"]] = rate
        if len(rates) > 1:
            worst, best = min(rates, key=rates.__getitem__), max(rates, key=rates.__getitem__)
            click.echo(
                f"{side}, {_power(n)}: worst {rates[worst]:.0f} GB/s ({worst}), best {rates[best]:.0f} ({best}): "
                f"{rates[worst] / rates[best]:.2f}"
            )


def print_dot(rows: list[dict[str, Any]]) -> None:
    """Print the time of a product that is summed over that of a sum of as many bytes."""
    marks = [row for row in rows if row["group"] == "marks"]
    times = {(row["case"], row["n"]): row["sides"]["gridwise_py"].get("single") for row in marks}
    for n in sorted({row["n"] for row in rows}):
        dot, plain = times.get((DOT_OF_HALF, n)), times.get((REDUCE, n))
        if dot is not None and plain is not None:
            click.echo(f"{_power(n)}: the dot product takes {dot / plain:.3f} of the time of a sum of as many bytes")


# ---- tunings from words


def _value_of(word: str) -> Any:
    known = {"true": True, "false": False, "none": None}
    return known[word.lower()] if word.lower() in known else int(word) if word.lstrip("-").isdigit() else word


def tunings_of(task: Task, words: str) -> dict[str, Any]:
    """Return the tunings that ``stage=0|2048,vecs=8|16`` means, by their words; the library's choice is the first."""
    missing = task.missing()
    if missing is not None:
        raise click.UsageError(f"gw.{missing} is not there, so {task.name!r} has no tunings")
    hint = get_type_hints(getattr(gw, task.needs).__init__)["tuning"]
    (cls,) = (each for each in get_args(hint) if each is not type(None))
    fields = [part.partition("=") for part in words.split(",")]
    found: dict[str, Any] = {"the library's": None}
    for values in itertools.product(*(choices.split("|") for _, _, choices in fields)):
        given = {name.strip(): value for (name, _, _), value in zip(fields, values, strict=True)}
        try:
            found[" ".join(f"{k}={v}" for k, v in given.items())] = cls(**{k: _value_of(v) for k, v in given.items()})
        except (gw.ArgumentError, TypeError) as error:
            raise click.UsageError(f"--tuning {words!r}: {error}") from None
    return found


def print_tunings(rows: list[dict[str, Any]]) -> None:
    """Print a row for each tuning."""
    if not rows:
        return
    base = next(row["single"] for row in rows if row["tuning"] == "the library's")
    first = rows[0]
    click.echo(
        f"{first['case']}, {first['datatype']}, {_power(first['n'])}: µs single, of the library's; back to back; GB/s"
    )
    for row in rows:
        wrong = "  WRONG" if is_wrong(row) else ""
        back = row["back_to_back"]
        click.echo(
            f"  {row['tuning']:44}{row['single'] / 1e3:10.1f}{row['single'] / base:7.3f}"
            f"{_cell(back and back / 1e3, '.1f', 10)}{row['moved_bytes'] / row['single']:7.0f}{wrong}"
        )


# ---- the command


@contextmanager
def ended_after(seconds: float) -> Generator[None]:
    """End the program where the block takes longer: a wait for a kernel that hangs never comes back to Python."""
    faulthandler.dump_traceback_later(seconds, exit=True, file=sys.__stderr__)
    try:
        yield
    finally:
        faulthandler.cancel_dump_traceback_later()


@click.command()
@click.option("--sizes", type=AxisList("n"), default="2^20,2^24,2^28", show_default=True, help="Items.")
@click.option("--cases", default="marks", show_default=True, help="Groups or beginnings of names, by semicolons.")
@click.option("--rounds", default=5, show_default=True, help="Turns of each side.")
@click.option("--samples", default=5, show_default=True, help="Of each side, turn and figure.")
@click.option("--warmup-s", default=0.03, show_default=True, help="Before each turn.")
@click.option("--settle-s", default=2.0, show_default=True, help="Of copying, before the first case.")
@click.option("--budget-s", type=float, help="No case begins later; what is left out is told.")
@click.option(
    "--reference", type=AxisList("n"), default="2^20", show_default=True, help="Also compared with numpy up to here."
)
@click.option("--case-s", default=60.0, show_default=True, help="A case that takes longer ends the program.")
@click.option("--ours-only", is_flag=True, help="Without CUB.")
@click.option(
    "--cub", "cub_program", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="Built before."
)
@click.option("--tuning", "tuning_words", multiple=True, help='Such as "select:stage=0|2048,vecs=8|16"; ours only.')
@click.option("--adapter", help="Adapter by index or part of its name.")
@click.option("--json", "json_path", type=click.Path(path_type=Path), help="Write the figures here.")
def main(
    sizes: list[int], cases: str, rounds: int, samples: int, warmup_s: float, settle_s: float, budget_s: float | None,
    case_s: float, reference: list[int], ours_only: bool, cub_program: Path | None, tuning_words: tuple[str, ...],
    adapter: str | None, json_path: Path | None,
) -> None:  # fmt: skip
    """Measure, check and print."""
    begin = time.perf_counter()
    tasks = all_tasks(max(sizes))
    try:
        wanted = chosen(tasks, cases)
        tuned = [
            (task, tunings_of(task, words.partition(":")[2]))
            for words in tuning_words
            for task in chosen(tasks, words.partition(":")[0])
        ]
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    device = gw.request_device(adapter)
    context = run_context(device)
    options = Options(rounds, samples, warmup_s, _FIRST_WARMUP_S if settle_s else warmup_s, max(reference))
    rows: list[dict[str, Any]] = []
    left_out: list[str] = []

    def keep() -> None:
        if json_path is not None:
            write_json(json_path, {**context, "rounds": rounds, "left_out": left_out, "results": rows})

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        program: Path | str = "not asked for" if ours_only or tuning_words else cub_program or build_cub(
            folder, "cub_stream_peer"
        )  # fmt: skip
        if isinstance(program, str) and program != "not asked for":
            click.echo(f"without CUB: {program}")
        cub: CubServer | str = program if isinstance(program, str) else CubServer(program.resolve(), folder)
        click.echo(
            f"{gw.capabilities(device).adapter}; medians of {rounds} × {samples}; began after "
            f"{time.perf_counter() - begin:.1f} s"
        )
        settle(device, settle_s)
        click.echo("" if tuned else HEAD)
        try:
            for n in sorted(sizes):
                data = Data(device, n)
                comparison = Comparison(device, data, cub, options)
                for task, tunings in tuned or [(task, None) for task in wanted]:
                    why = "too few items" if n < task.least else None
                    if budget_s is not None and time.perf_counter() - begin > budget_s:
                        why = "budget"
                    if why is not None:
                        left_out.append(f"{task.name} at {_power(n)} ({why})")
                        continue
                    with ended_after(case_s):
                        found = [comparison.compare(task)] if tunings is None else comparison.tune(task, tunings)
                    print_tunings(found) if tunings is not None else click.echo(line_of(found[0]))
                    sys.stdout.flush()
                    rows += found
                    keep()  # after each case, so that a run that is cut off leaves what it has
                data.forget()
                if isinstance(cub, CubServer):
                    cub.forget()
        finally:
            if isinstance(cub, CubServer):
                cub.close()
    keep()
    if not tuned:
        print_spread(rows)
        print_dot(rows)
    if left_out:
        click.echo(f"left out: {'; '.join(left_out)}")
    click.echo(f"{len(rows)} rows in {time.perf_counter() - begin:.1f} s")
    if any(map(is_wrong, rows)):
        raise SystemExit(4)


if __name__ == "__main__":
    main()
