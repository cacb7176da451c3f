"""Measure this checkout against the last release, in turns: `make compare-release`. Fails if something became slower.

Usage: python scripts/compare_release.py [--json FILE] [--summary FILE] [-- ARGUMENTS OF gridwise ab]

The last release is the newest tag v1.2.3 that this commit descends from and is not at itself. Without arguments for
`gridwise ab` it measures some primitives at sizes that suit the adapter: a gate of 5 % on a GPU, of 25 % in software.
--summary receives Markdown, as GITHUB_STEP_SUMMARY wants it.

Exit: that of `gridwise ab` (1 if a row is slower by more than the gate); 0 where no release exists, which is said in
capitals.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from packaging.version import InvalidVersion, Version

ROOT = Path(__file__).resolve().parent.parent
PRIMITIVES = ("vector_add", "reduce", "scan", "sort", "select")
ON_GPU = ("--n", "2^16,2^20,2^24", "--gate", "5%")
# Two processes on the cores that also run the kernels: only gross mistakes show.
IN_SOFTWARE = ("--n", "2^16", "--gate", "25%", "--pairs", "4", "--rounds", "3")


def last_release(folder: Path) -> str | None:
    """Return the newest tag of a final version before this commit; None if there is none."""
    tags = _git(folder, "tag", "--list", "v*", "--merged", "HEAD").split()
    here = set(_git(folder, "tag", "--points-at", "HEAD").split())
    versions = {tag: version for tag in tags if tag not in here and (version := _final_version(tag)) is not None}
    return max(versions, key=versions.__getitem__, default=None)


def _final_version(tag: str) -> Version | None:
    try:
        version = Version(tag.removeprefix("v"))
    except InvalidVersion:
        return None
    return None if version.is_prerelease else version


def _git(folder: Path, *words: str) -> str:
    done = subprocess.run(["git", *words], cwd=folder, check=False, capture_output=True, text=True)
    if done.returncode:  # git names the remedy, such as for a folder of another user
        print(f"git {' '.join(words)} failed:\n{done.stderr.strip()}", file=sys.stderr)
        sys.exit(2)  # 1 is a verdict
    return done.stdout


def default_arguments() -> tuple[str, ...]:
    """Return what is measured on the adapter of this machine."""
    import gridwise_py as gw

    adapters = gw.list_adapters()
    return (*PRIMITIVES, *(IN_SOFTWARE if adapters and adapters[0].type == "CPU" else ON_GPU))


def verdict(code: int, tag: str) -> str:
    """Return what an exit code of `gridwise ab` means."""
    known = {
        0: f"no regression against {tag} was found; rows that are ambiguous are none",
        1: f"SLOWER than {tag}: a row is slower by more than the gate, or a case no longer runs",
        3: f"not comparable with {tag}: the sides ran on different adapters",
        4: "a result is WRONG",
        5: "there is no adapter",
        6: f"only a part was compared with {tag}: a process did not start again",
    }
    return known.get(code, f"gridwise ab failed with {code}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Find the release, measure, say what was found."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--json", type=Path, help="verdicts and times, by gridwise ab")
    parser.add_argument("--summary", type=Path, help="Markdown is added to this file")
    parser.add_argument("rest", nargs="*", metavar="ARGUMENT", help="of gridwise ab, behind --")
    given = parser.parse_args(arguments)
    tag = last_release(ROOT)
    if tag is None:
        text = "There is no release before this commit, so NOTHING WAS COMPARED."
        print(f"::warning title=No release::{text}")
        _add(given.summary, text)
        return 0
    command = [sys.executable, "-m", "gridwise_py", "ab", tag, ".", *(given.rest or default_arguments())]
    if given.json is not None:
        command += ["--json", str(given.json), "--overwrite"]
    print(" ".join(command), flush=True)
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, encoding="utf-8")
    print(done.stdout)
    said = verdict(done.returncode, tag)
    print(said)
    _add(given.summary, f"**{said}**\n\n```text\n{done.stdout}```")
    return done.returncode


def _add(path: Path | None, text: str) -> None:
    if path is not None:
        with path.open("a", encoding="utf-8") as file:
            file.write(f"{text}\n")


if __name__ == "__main__":
    sys.exit(main())
