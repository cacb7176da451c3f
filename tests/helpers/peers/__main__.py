"""Random calls against numpy, for some minutes; exit 1 if something was found. See the package."""

from __future__ import annotations

import itertools
import json
import multiprocessing.connection
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

import gridwise_py as gw

from .chains import BLOCK
from .stored import STORED
from .work import Report, Task, Worker, bounded, call_of, report_of


class Run:
    """What was tried and found."""

    def __init__(self, seed: int, only: tuple[str, ...], dry: bool = False):
        self.seed, self.only, self.dry = seed, only, dry
        self.counts: Counter[str] = Counter()
        self.results: Counter[str] = Counter()
        self.known: Counter[str] = Counter()
        self.doubted: Counter[str] = Counter()
        self.findings: dict[tuple[str, str, str], dict[str, Any]] = {}
        self.begun = time.monotonic()

    @property
    def calls(self) -> int:
        return sum(self.counts.values())

    def take(self, task: Task, report: Report) -> None:
        self.counts[report.name] += 1
        self.results[report.name] += report.outcome == "result"
        for reason in (report.refusal, report.allowed):
            if reason:
                self.known[reason] += 1
        if report.doubted and report.finding is None:
            self.doubted[f"{report.name} ({report.doubted})"] += 1
        if report.finding is None:
            return
        found = report.finding
        at = task.text or f"{task.seed}:{task.index}"
        if found.group in self.findings:
            self.findings[found.group]["times"] += 1
            return
        self.findings[found.group] = {
            "function": found.name,
            "kind": found.kind,
            "detail": found.detail,
            "call": report.call,
            "at": at,
            "after_calls": self.calls,
            "times": 1,
        }
        print(
            f"\n{found.kind} in {found.name}, after {self.calls} calls, "
            f"{'a stored call' if task.text else f'--replay {at}'}{' --dry' * self.dry}:\n  {found.detail}",
            flush=True,
        )
        print(_indented(report.paste if len(report.call) < 3000 else f"{report.call[:300]} …"), flush=True)

    def lost(self, task: Task, what: str, only: tuple[str, ...]) -> None:
        from .calls import text
        from .judge import Finding
        from .work import pasted

        call = call_of(task, only, self.dry)
        self.take(task, Report(call.name, Finding(call.name, what, f"the process {what}"), text(call), pasted(call)))

    def summary(self) -> str:
        minutes = (time.monotonic() - self.begun) / 60
        lines = [
            f"\n{self.calls:,} calls of {len(self.counts)} functions in {minutes:.1f} minutes, "
            f"{self.calls / max(60 * minutes, 1e-9):.0f} a second; documented differences: {self.known.total():,}"
        ]
        lines += [f"  {n:6,}  {reason}" for reason, n in self.known.most_common()]
        each = [f"{name} {n} ({self.results[name]})" for name, n in sorted(self.counts.items(), key=lambda x: x[1])]
        if self.doubted:
            lines.append(f"{self.doubted.total():,} calls were made with kernels, too, and are as they should be:")
            lines += [f"  {n:6,}  {what}" for what, n in self.doubted.most_common(10)]
        lines.append(f"calls, in brackets those with a result: {', '.join(each)}")
        times = sum(found["times"] for found in self.findings.values())
        lines.append(f"{len(self.findings)} findings in {times:,} calls" if self.findings else "nothing was found")
        return "\n".join(lines)

    def to_json(self) -> dict[str, Any]:
        return {
            "seed": self.seed,
            "dry": self.dry,
            "minutes": round((time.monotonic() - self.begun) / 60, 2),
            "calls": self.calls,
            "functions": dict(self.counts),
            "results": dict(self.results),
            "known": dict(self.known),
            "findings": list(self.findings.values()),
        }


def _indented(lines: str) -> str:
    return "\n".join(f"    {line}" for line in lines.splitlines())


def _tasks(seed: int, only: tuple[str, ...], stored: bool, first: int, step: int) -> Iterator[Task]:
    """Return the tasks of a process: every so many stored calls, then every so many blocks of calls."""
    for case in STORED[first::step] if stored else ():
        if not only or any(f"m.{name}(" in case.call for name in only):
            yield Task(text=case.call)
    for block in itertools.count(first, step):
        yield from (Task(seed, block * BLOCK + i) for i in range(BLOCK))


def run(
    minutes: float, seed: int, only: tuple[str, ...], processes: int, stored: bool, most: int | None, dry: bool
) -> Run:
    """Make calls until the time is over."""
    result = Run(seed, only, dry)
    workers = [Worker(only, dry) for _ in range(processes)]
    print(f"seed {seed}; gridwise_py is {workers[0].where}", flush=True)
    tasks = {worker: _tasks(seed, only, stored, i, processes) for i, worker in enumerate(workers)}
    end, given, tried = time.monotonic() + 60 * minutes, 0, set()
    try:
        while time.monotonic() < end and (most is None or result.calls < most):
            for worker in workers:
                if worker.task is None and (most is None or given < most):
                    given += 1
                    worker.give(next(tasks[worker]))
            ready = multiprocessing.connection.wait([w.pipe for w in workers if w.task is not None], timeout=1.0)
            for worker in workers:
                if worker.task is None:
                    continue
                task, code = worker.task, 0
                if worker.pipe in ready:
                    try:
                        result.take(task, worker.pipe.recv())
                        worker.task = None
                        continue
                    except (EOFError, OSError):
                        code = worker.restart()
                        what = f"ends with exit code {code}"
                elif worker.is_late():
                    worker.restart()
                    what = "does not end in time"
                else:
                    continue
                if task in tried:
                    result.lost(task, what, only)
                else:  # once more, when kernels are compiled, and without the time to make it smaller
                    tried.add(task := Task(task.seed, task.index, task.text, shrink=False))
                    tasks[worker] = itertools.chain([task], tasks[worker])
    finally:
        for worker in workers:
            worker.stop()
    return result


@click.command()
@click.option("--minutes", default=5.0, show_default=True)
@click.option("--seed", type=int, help="By default another one each time.")
@click.option("--only", default="", help="Functions, with commas between.")
@click.option("--replay", help="SEED:INDEX, one call again.")
@click.option("--stored/--no-stored", default=True, show_default=True, help="Whether stored calls come first.")
@click.option(
    "--dry", is_flag=True, help="Without kernels: compare what does not depend on items, a hundred times as fast."
)
@click.option("--calls", type=int, help="At most.")
@click.option("--processes", default=2, show_default=True)
@click.option("--json", "json_path", type=click.Path(path_type=Path), help="Write here what was found.")
def main(
    minutes: float,
    seed: int | None,
    only: str,
    replay: str | None,
    stored: bool,
    dry: bool,
    calls: int | None,
    processes: int,
    json_path: Path | None,
) -> None:
    """Compare random calls with numpy; exit 1 if one differs where no documentation says so."""
    names = tuple(name for name in only.split(",") if name)
    if replay:
        seed_, index = map(int, replay.split(":"))
        task = Task(seed_, index)
        bounded()
        gw.default_device()  # of which it may warn
        report, result = report_of(task, names, dry=dry), Run(seed_, names, dry)
        from .calls import text

        print(text(call_of(task, names, dry), most=200))
        result.take(task, report)
    else:
        result = run(
            minutes, int(time.time()) % 1_000_000 if seed is None else seed, names, processes, stored, calls, dry
        )
    print(result.summary())
    if json_path:
        json_path.write_text(json.dumps(result.to_json(), indent=1) + "\n")
    sys.exit(1 if result.findings else 0)


if __name__ == "__main__":
    main()
