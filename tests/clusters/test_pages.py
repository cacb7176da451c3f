"""The programs of the pages about clusters, on a cluster of this machine with software adapters."""

import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from helpers import needs
from helpers.paths import ROOT

with needs.modules("distributed") as distributed_is_needed:
    import dask.array as da

pytestmark = [pytest.mark.dask, pytest.mark.slow, pytest.mark.gpu, distributed_is_needed]

SUITE = """
[[sweep]]
primitives = ["copy"]
axes = ["n=2^10", "datatype=u32", "mode=batch"]
"""


def _programs(page: str) -> list[str]:
    """The blocks of Python that a page marks as those of a cluster."""
    text = (ROOT / "docs" / "howto" / page).read_text(encoding="utf-8")
    return re.findall(r"<!-- cluster -->\n```python\n(.*?)```", text, re.DOTALL)


def _run(program: str, folder: Path) -> str:
    (folder / "program.py").write_text(program, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "program.py"], cwd=folder, env=os.environ | {"GRIDWISE_DASK_CPU": "1"},
        capture_output=True, text=True, timeout=1200, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


@pytest.mark.needs("module:zarr")
def test_arrays_of_several_gpus(device, tmp_path):
    """The first program, and inside its cluster the one about chunks on the GPUs."""
    da.arange(4000, chunks=1000, dtype="float32").to_zarr(str(tmp_path / "x.zarr"))
    first, second, *_ = _programs("distributed.md")
    more = second + "print(low.compute(), high.compute(), ranks.compute()[-1])\n"
    printed = _run(first + textwrap.indent(more, " " * 8), tmp_path).split()
    assert [float(word) for word in printed] == [7998000.0, 0.0, 3999.0, 7998000.0]
    assert da.from_zarr(str(tmp_path / "sums.zarr"))[-1].compute() == 7998000.0


def test_a_fleet(device, tmp_path):
    (program,) = _programs("fleet.md")
    (tmp_path / "small.toml").write_text(SUITE, encoding="utf-8")
    small = program.replace('suite="quick", rounds=3', 'suite="small.toml"')
    assert small != program
    _run(small, tmp_path)
    assert (tmp_path / "today.fleet.json").exists()
