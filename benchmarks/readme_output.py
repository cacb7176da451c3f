"""What README's lines print on this machine, for README and for whoever wants to see it run.

Usage: python benchmarks/readme_output.py [--json benchmarks/results/h200/readme.json]

`python scripts/make_first_screen.py` then puts what the last block printed into README.md.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import tempfile
from pathlib import Path
from typing import Any

import click

import gridwise_py as gw
from gridwise_py.bench.results.context import run_context
from gridwise_py.storage.json_files import write_json

README = Path(__file__).resolve().parents[1] / "README.md"


@click.command()
@click.option("--json", "json_path", type=click.Path(path_type=Path), help="Write what was printed here.")
def main(json_path: Path | None) -> None:
    """Run README's blocks one after another."""
    blocks = re.findall(r"^<!-- run -->\n```python\n(.*?)^```$", README.read_text(encoding="utf-8"), re.M | re.S)
    names: dict[str, Any] = {"__name__": "readme"}
    printed = [io.StringIO() for _ in blocks]
    path = json_path and json_path.absolute()
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for block, out in zip(blocks, printed, strict=True):
            with contextlib.redirect_stdout(out):
                exec(block, names)
            print(out.getvalue())
        os.chdir(before)
    if path is not None:
        write_json(path, {**run_context(gw.default_device()), "printed": printed[-1].getvalue()})


if __name__ == "__main__":
    main()
