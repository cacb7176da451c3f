"""Write the stubs that type checkers read: the public names by module, and the calls of primitives by their arrays.

python scripts/make_stubs.py            # writes them
python scripts/make_stubs.py --check    # exit 1 if one differs from what would be written
"""

import subprocess
import sys
from pathlib import Path

import gridwise_py
import gridwise_py.dask
import gridwise_py.fleet
import gridwise_py.primitives
from gridwise_py.primitives.call_signatures import CALLS, arrays_of

PACKAGE = Path(gridwise_py.__file__).parent
MADE = "# Made by scripts/make_stubs.py.\n# ruff: noqa\n"
HEAD = """from typing import Generic, TypedDict, Unpack

import wgpu

from ..runtime.array import Array
from ..runtime.bound_call import BoundCall
from ..runtime.chunked_array import Items, ItemsT
from ..runtime.run import Run
from ..timing.queries import GpuTiming, TimingSession
from .base import Primitive

class _Timed(TypedDict, total=False):
    enable_gpu_timing: GpuTiming
    enable_cpu_timing: bool
    trials: int
"""
FAMILY = """
class _{family}Arrays(TypedDict, {generic}total=False):
    {fields}

class _{family}Call(_{family}Arrays{of}, _Timed, {generic}total=False): ...

class {family}Calls(Primitive):
    def bind(self, **arrays: Unpack[_{family}Arrays{of}]) -> BoundCall[{result}]: ...
    def record(
        self,
        encoder: wgpu.GPUCommandEncoder,
        *,
        trials: int = 1,
        timing: TimingSession | None = None,
        **arrays: Unpack[_{family}Arrays{of}],
    ) -> dict[str, {result}]: ...
    def execute(
        self, *, encoder: wgpu.GPUCommandEncoder | None = None, **call: Unpack[_{family}Call{of}]
    ) -> Run[{result}]: ...
    async def execute_async(self, **call: Unpack[_{family}Call{of}]) -> Run[{result}]: ...
"""


def stub_family(family: str) -> str:
    arrays = arrays_of(family)
    kinds = {name: kind.partition(" ")[0] for name, kind in arrays.items()}
    result = "ItemsT" if "ItemsT" in kinds.values() else kinds.get("output", "Array")
    generic, of = ("Generic[ItemsT], ", "[ItemsT]") if result == "ItemsT" else ("", "")
    fields = "\n    ".join(f"{name}: {kind}" for name, kind in arrays.items())
    return FAMILY.format(family=family, fields=fields, generic=generic, of=of, result=result)


def stub_names(places: dict[str, str]) -> str:
    sorted_places = sorted((module, name) for name, module in places.items())
    return "".join(f"from .{module} import {name} as {name}\n" for module, name in sorted_places)


def make_stubs() -> dict[Path, str]:
    """Text of each stub, by its path."""
    stubs = {PACKAGE / "primitives/calls.pyi": HEAD + "".join(stub_family(family) for family in CALLS)}
    eager = {"__version__": "_version"} | dict.fromkeys(gridwise_py.errors.__all__, "errors")
    primitives = gridwise_py.primitives.PLACES
    for name, text in {
        "": stub_names(gridwise_py._PLACES | eager),
        "dask/": stub_names(gridwise_py.dask._PLACES),
        "fleet/": stub_names(gridwise_py.fleet._PLACES),
        "primitives/": "PLACES: dict[str, str]\n__all__: list[str]\n" + stub_names(primitives),
    }.items():
        stubs[PACKAGE / f"{name}__init__.pyi"] = text
    return {path: format_stub(MADE + text) for path, text in stubs.items()}


def format_stub(text: str) -> str:
    command = [sys.executable, "-m", "ruff", "format", "--stdin-filename", "made.pyi", "-"]
    return subprocess.run(command, input=text, cwd=PACKAGE.parent, check=True, capture_output=True, text=True).stdout


def main() -> int:
    stubs = make_stubs()
    if "--check" in sys.argv:
        return any(not path.exists() or path.read_text(encoding="utf-8") != text for path, text in stubs.items())
    for path, text in stubs.items():
        path.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
