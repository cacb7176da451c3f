"""``gridwise bisect``: find the commit that made a case slower."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import click

from ..errors import ArgumentError
from .ab import ApartWords, find_sides
from .diff import usual_jobs
from .exit_codes import REGRESSION, SKIP
from .output import note, showing_progress

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

    Commits that ask the same of a GPU as the one before are skipped: they cannot be it. If BAD is a folder, its state
    alone is judged, as in: git bisect run gridwise bisect GOOD . -- CASE.

    Exits with 0 if BAD is not slower, 1 if it is, 2 for bad input, and 125 if a verdict is ambiguous or a commit does
    not run, so that the commit is not known.
    """
    commits = [] if Path(bad).is_dir() else _commits(good, bad)
    code = _judge(good, bad, cases, options)
    if code == REGRESSION and commits:
        with showing_progress(every_s=60.0) as say:
            changing = _changing(good, commits, cases, say)
        note(f"{len(changing)} of {len(commits)} commits change what is asked of a GPU")
        left = _halved(good, changing, cases, options)
        click.echo(f"the first slower commit is {'one of ' * (len(left) > 1)}{', '.join(left) or 'none of these'}")
        sys.exit(REGRESSION if len(left) == 1 else SKIP)
    click.echo(f"{bad} is {_WORDS[code]} than {good}" if code != SKIP else f"whether {bad} is slower is not known")
    sys.exit(code)


def _halved(good: str, commits: list[str], cases: tuple[str, ...], options: dict[str, Any]) -> list[str]:
    """Return the commits that may be the first slower one, of which the last is slower."""
    unknown: set[str] = set()
    while untried := [one for one in commits[:-1] if one not in unknown]:
        middle = untried[len(untried) // 2]
        code = _judge(good, middle, cases, options)
        note(f"{middle[:10]}: {_WORDS[code]}")
        at = commits.index(middle) + 1
        if code == SKIP:
            unknown.add(middle)
        commits = commits[:at] if code == REGRESSION else commits[at:] if code == 0 else commits
    return commits


def _commits(good: str, bad: str) -> list[str]:
    """Return the commits after GOOD up to BAD, oldest first."""
    words = ["git", "rev-list", "--reverse", "--first-parent", "--end-of-options", f"{good}..{bad}", "--"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if not done.stdout.split():
        said = done.stderr.strip().partition("\n")[0] or "there is no commit between them"
        raise ArgumentError(f"{good}..{bad}: {said}; name two revisions, the older one first")
    return done.stdout.split()


def _changing(good: str, commits: list[str], cases: tuple[str, ...], say: Any) -> list[str]:
    """Return the commits that ask other things of a GPU than the one before, as far as that can be told."""
    from ..bench.ab.differ import differences, same_files

    found: list[str] = []
    for before, commit in zip([good, *commits], commits, strict=False):
        say(f"{commit[:10]}: does it change what is asked of a GPU?")
        try:
            environments, own = find_sides((before, commit), cases, {"n": None, "axes": ()}, say)
            asked = differences(environments, usual_jobs(cases, None) if own is None else own)
            is_same = same_files(environments) or all(one.same for one in asked)
        except ArgumentError:  # it does not run
            is_same = False
        if not is_same:
            found.append(commit)
    return found


def _judge(good: str, commit: str, cases: tuple[str, ...], options: dict[str, Any]) -> int:
    """Return whether a commit is slower, as exit codes say it; `SKIP` if nobody knows."""
    given = [word for name, value in options.items() if value is not None for word in (f"--{name}", str(value))]
    words = [sys.executable, "-m", "gridwise_py", "ab", good, commit, "--fail-ambiguous", *given, "--", *cases]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode not in (0, REGRESSION):
        note(f"{commit[:10]}: {(done.stderr or done.stdout).strip().splitlines()[-1][:200]}")
        return SKIP
    return done.returncode
