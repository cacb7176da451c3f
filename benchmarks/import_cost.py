"""What `import gridwise_py` costs beside `import wgpu, numpy`, which it needs anyway.

    python benchmarks/import_cost.py [--repeats 15] [--limit-s 0.15] [--imports] [--json FILE]

Each sample is a new interpreter, and the two kinds take turns, so that a machine that slows down slows both. The median
counts. Exits 1 if the difference is over the limit. `--imports` lists what costs most.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
from pathlib import Path

import click

from gridwise_py.bench.results.context import host_context
from gridwise_py.storage.json_files import write_json

BASE = "import wgpu, numpy"
OURS = "import wgpu, numpy, gridwise_py"
ROOT = Path(__file__).resolve().parent.parent


def import_time_s(statement: str) -> float:
    """Run the statement in a new interpreter, which takes the time itself: its own start does not count."""
    code = f"import time; t = time.perf_counter(); {statement}; print(time.perf_counter() - t)"
    return float(_output([sys.executable, "-c", code]).stdout)


def _output(command: list[str]) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True, env=environment)


def slowest_imports(top: int) -> list[tuple[float, str]]:
    """Modules that importing this package adds, by their own time in ms, the slowest first."""

    def times(statement: str) -> dict[str, float]:
        command = [sys.executable, "-X", "importtime", "-c", statement]
        run = _output(command)
        rows = (line.removeprefix("import time:").split("|") for line in run.stderr.splitlines() if "|" in line)
        return {row[2].strip(): int(row[0]) / 1000 for row in rows if row[0].strip().isdigit()}

    known = times(BASE)
    added = [(ms, name) for name, ms in times(OURS).items() if name not in known]
    return sorted(added, reverse=True)[:top]


@click.command()
@click.option("--repeats", default=15, show_default=True)
@click.option("--limit-s", default=0.15, show_default=True, help="Exit 1 if it is more.")
@click.option("--imports", is_flag=True, help="List the modules that cost most.")
@click.option("--json", "json_path", type=click.Path(path_type=Path), help="Write the figures here.")
def main(repeats: int, limit_s: float, imports: bool, json_path: Path | None) -> None:
    """Measure, print, and compare with the limit."""
    # Compiles to __pycache__, as the installation of a package does; reads files into the page cache.
    import_time_s(OURS)
    samples: dict[str, list[float]] = {BASE: [], OURS: []}
    for _ in range(repeats):
        for statement, times_s in samples.items():
            times_s.append(import_time_s(statement))
    for statement, times_s in samples.items():
        print(
            f"{statement:34} {statistics.median(times_s):6.3f} s   "
            f"(median of {len(times_s)}; {min(times_s):.3f} to {max(times_s):.3f})"
        )
    added_s = statistics.median(samples[OURS]) - statistics.median(samples[BASE])
    print(f"{'gridwise_py adds':34} {added_s:6.3f} s   (limit {limit_s} s)")
    if imports:
        for ms, name in slowest_imports(15):
            print(f"  {ms:7.1f} ms  {name}")
    if json_path is not None:
        write_json(json_path, {"context": host_context(), "samples_s": samples, "added_s": added_s})
    sys.exit(int(added_s > limit_s))


if __name__ == "__main__":
    main()
