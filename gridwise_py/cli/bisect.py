"""``gridwise bisect``: find the commit that made a case slower."""

from __future__ import annotations

import functools
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import click

from ..errors import ArgumentError
from .ab import ApartWords, find_sides
from .diff import usual_jobs
from .exit_codes import BAD_INPUT, REGRESSION, SKIP
from .output import note

_WORDS = {0: "not slower", REGRESSION: "slower", SKIP: "not known"}


@click.command(cls=ApartWords, short_help="Find the commit that made a case slower.")
@click.argument("good")
@click.argument("bad")
@click.argument("cases", nargs=-1, required=True, metavar="[--] PRIMITIVE|FILE.py NAME")
@click.option("--threshold", default="1%", show_default=True, help="As for `gridwise ab`.")
@click.option("--pairs", type=click.IntRange(2, 50), default=5, show_default=True, help="As for `gridwise ab`.")
@click.option("--adapter", help="As for `gridwise ab`.")
def bisect(good: str, bad: str, cases: tuple[str, ...], **options: Any) -> None:
    """Find the first commit between GOOD and BAD after which a case is slower, by `gridwise ab` against GOOD.

    A commit that asks the same of a GPU as one that was judged is not measured: it gets the same answer. If BAD is a
    folder, its state alone is judged, as in: git bisect run gridwise bisect GOOD . -- CASE.

    Exits with 0 if BAD is not slower, 1 if it is, 2 for bad input, and 125 if a verdict is ambiguous or a commit does
    not run, so that the commit is not known.
    """
    commits = [] if Path(bad).is_dir() else _commits(good, bad)
    code = _judge(good, bad, cases, options)
    if code == REGRESSION and commits:
        left = _halved(good, commits, cases, options)
        click.echo(f"the first slower commit is {'one of ' * (len(left) > 1)}{', '.join(left) or 'none of these'}")
        sys.exit(REGRESSION if len(left) == 1 else SKIP)
    click.echo(f"{bad} is {_WORDS[code]} than {good}" if code != SKIP else f"whether {bad} is slower is not known")
    sys.exit(code)


def _halved(good: str, left: list[str], cases: tuple[str, ...], options: dict[str, Any]) -> list[str]:
    """Return the commits that may be the first slower one, given those after `good`, of which the last is slower."""
    codes, before = {good: 0, left[-1]: REGRESSION}, good
    is_same = functools.cache(functools.partial(_is_same, cases))
    while untried := [one for one in left if one not in codes]:
        middle = untried[len(untried) // 2]
        judged = (one for one in (before, *left) if one in codes)
        alike = next((one for one in judged if is_same(one, middle)), "")
        code = codes[middle] = codes[alike] if alike else _judge(good, middle, cases, options)
        note(f"{middle[:10]}: {_WORDS[code]}{f', same code as {alike[:10]}' if alike else ''}")
        at = left.index(middle) + 1
        if code == REGRESSION:
            left = left[:at]
        elif code == 0:
            before, left = middle, left[at:]
    return [one for last, one in zip([before, *left], left, strict=False) if not is_same(last, one)]


def _commits(good: str, bad: str) -> list[str]:
    """Return the commits after GOOD up to BAD, oldest first."""
    words = ["git", "rev-list", "--reverse", "--first-parent", "--end-of-options", f"{good}..{bad}", "--"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if not done.stdout.split():
        said = done.stderr.strip().partition("\n")[0] or "there is no commit between them"
        raise ArgumentError(f"{good}..{bad}: {said}; name two revisions, the older one first")
    return done.stdout.split()


def _is_same(cases: tuple[str, ...], one: str, other: str) -> bool:
    """Whether two commits ask the same of a GPU, as far as that can be told."""
    from ..bench.ab.differ import differences, same_files

    try:
        environments, own = find_sides((one, other), cases, {"n": None, "axes": ()}, lambda _: None)
        jobs = usual_jobs(cases, None) if own is None else own
        return same_files(environments) or all(found.same for found in differences(environments, jobs))
    except ArgumentError:  # it does not run
        return False


def _judge(good: str, commit: str, cases: tuple[str, ...], options: dict[str, Any]) -> int:
    """Return whether a commit is slower, as exit codes say it; `SKIP` if nobody knows."""
    given = [word for name, value in options.items() if value is not None for word in (f"--{name}", str(value))]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "judged.json"
        words = [sys.executable, "-m", "gridwise_py", "ab", good, commit, "--fail-ambiguous", "--json", str(path)]
        done = subprocess.run([*words, *given, "--", *cases], capture_output=True, text=True, check=False)
        told = json.loads(path.read_text()) if path.exists() else dict.fromkeys(("broken", "wrong", "notes"), ())
    # A commit that does not run fails a gate, and is neither slower nor not.
    if told["broken"] or done.returncode not in (0, REGRESSION):
        why = [*told["broken"], *told["wrong"], *(told["notes"] if done.returncode == BAD_INPUT else ())]
        note(f"{commit[:10]}: {(why or (done.stderr or done.stdout).strip().splitlines())[-1][:200]}")
        return SKIP
    return done.returncode
