"""``gridwise counts``: what own benchmarks ask of a GPU, in numbers; none is needed."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from .exit_codes import BAD_INPUT
from .options import AxisText, OutputFile
from .output import check_output, write_document


@click.command(short_help="Count what your own benchmarks ask of a GPU; none is needed.")
@click.argument("words", nargs=-1, required=True, metavar="FILE.py [NAME]…")
@click.option("-a", "--axis", "axes", type=AxisText(), multiple=True, metavar="AXIS", help="As for `gridwise bench`.")
@click.option("--json", "json_path", type=OutputFile(), help="Write the counts here; `gridwise compare` takes two.")
@click.option("--overwrite", is_flag=True, help="Replace the --json file if it exists.")
def counts(words: tuple[str, ...], axes: Any, json_path: Path | None, *, overwrite: bool) -> None:
    """Count, on ten classes of devices, what a call of each benchmark of FILE.py asks of a GPU.

    Launches, workgroups, invocations, pipelines, barriers between launches, bytes bound, declared by work= and of
    scratch, transfers, uploads and allocations. gridwise compare OLD.json NEW.json exits with 1 if any is more.
    """
    from ..bench.analysis.counts import counts_document
    from ..bench.cases.device_classes import DEVICE_CLASSES
    from ..bench.sampling.codes import record_case
    from ..bench.sweep.suite import plan_jobs
    from ..internals import Code
    from .bench import benchmarks_of_files

    check_output(json_path, "--json", overwrite=overwrite)
    found: dict[str, dict[str, int | None]] = {}
    failed = False
    for job in plan_jobs(benchmarks_of_files(words, axes, {}, with_baselines=False)):
        case, own = job.case, job.case.own_workload
        assert own is not None, "the words name a file"
        place: dict[str, Any] = {"n": case.n, "mode": job.mode.value, "axes": dict(case.others), "seed": 0}
        by_counts: dict[str, list[str]] = {}
        known = len(found)
        for name, capabilities in DEVICE_CLASSES.items():
            work = record_case(capabilities, str(own.path), own.declared.name, **place)
            text = str(work.get("refused", ""))
            if not text:
                told = found[f"{case}, {name}"] = Code.of(**work).counts
                text = ", ".join(f"{key} {value}" for key, value in told.items())
            by_counts.setdefault(text, []).append(name)
        failed |= len(found) == known
        for text, names in by_counts.items():
            where = "all classes" if len(names) == len(DEVICE_CLASSES) else "; ".join(names)
            click.echo(f"{case} ({where}): {text}")
    if json_path is not None:
        write_document(json_path, counts_document(found))
    if failed:  # a case runs on no class
        sys.exit(BAD_INPUT)
