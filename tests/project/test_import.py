"""Importing is cheap: no device, no packages that only some commands need; and it gives the public names."""

import re
import subprocess
import sys
import tomllib
import types
from importlib import metadata

import pytest

import gridwise_py as gw
from gridwise_py.cli import exit_codes
from helpers.paths import ROOT


def _run(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=1200, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_importing_is_cheap_and_silent_and_planning_needs_no_device():
    code = """
import sys, wgpu
def must_not(*a, **k): raise SystemExit("asked for an adapter")
for name in dir(type(wgpu.gpu)):
    if name.startswith(("enumerate", "request")):
        setattr(type(wgpu.gpu), name, must_not)
import gridwise_py as gw
parts = ("functions", "planning", "primitives.", "profiling", "runtime", "types")
core = tuple(f"gridwise_py.{name}" for name in parts)
assert {name for name in sys.modules if name.startswith(core)} == set()
from gridwise_py.runtime import device
heavy = {
    "scipy", "altair", "vl_convert", "jsonschema", "pandas", "polars", "click", "rich", "pygfx",
    "hypothesis", "pytest",
}
late = tuple(f"gridwise_py.{name}" for name in ("bench", "browser", "cli", "dask", "fleet", "internals"))
assert {name for name in sys.modules if name.partition(".")[0] in heavy or name.startswith(late)} == set()
plan = gw.Scan.plan_for(capabilities=gw.Capabilities(), lengths={"input": 10**6, "output": 10**6})
assert plan.kernels
from gridwise_py.primitives import REGISTRY
files = [cls.__module__ for cls in REGISTRY.values()]
assert files == sorted(files) and "vector_add" in REGISTRY, "whichever was loaded before"
assert not device._default
assert gw.measure.__module__ == "gridwise_py.bench.sampling.measure"
"""
    assert _run(code) == ""


# ---- without the extra

# None in sys.modules: an import of that name fails as it does where the package is not installed.
WITHOUT_EXTRAS = """
import sys
extras = ["altair", "click", "jsonschema", "matplotlib", "pandas", "polars", "pynvml", "rich", "scipy", "vl_convert"]
sys.modules.update(dict.fromkeys(extras))
"""
SAID = (
    r"needs the extra 'bench', of which click, rich, scipy are not installed: "
    r"pip install 'gridwise-py\[bench\]'"
)


def test_the_core_works_without_the_extra(device, tmp_path):
    code = f"""{WITHOUT_EXTRAS}
import json
import numpy as np, gridwise_py as gw
x = np.random.default_rng(1).integers(0, 1000, 5000, dtype=np.uint32)
assert gw.asarray(x[:3]).copy().tolist() == x[:3].tolist(), "methods load the kernels that they need"
assert "gridwise_py.primitives.sort" not in sys.modules
with gw.profile() as prof:
    summed, ordered = gw.cumsum(gw.asarray(x)), gw.sort(gw.asarray(x))
np.testing.assert_array_equal(summed.to_numpy(), np.cumsum(x, dtype=np.uint32))
np.testing.assert_array_equal(ordered.to_numpy(), np.sort(x))
table = prof.key_averages().table()
assert all(word in table for word in ("GPU total", "Scan", "Sort")), table
assert "<table" in prof.key_averages()._repr_html_()
prof.export_chrome_trace({str(tmp_path / "trace.json")!r})
assert "Sort" in {{event.get("name") for event in json.load(open({str(tmp_path / "trace.json")!r}))["traceEvents"]}}
print(sorted(name for name in extras if sys.modules[name] is not None))
"""
    assert _run(code) == "[]"


def test_benchmarks_without_the_extra_say_what_to_install():
    code = f"""{WITHOUT_EXTRAS}
import gridwise_py as gw
for name in ("measure", "benchmark", "to_dataframe"):
    try:
        getattr(gw, name)
    except ImportError as error:
        print(error)
assert not {{"measure", "benchmark", "to_dataframe"}} & {{*dir(gw), *gw.__all__}}
exec("from gridwise_py import *")
"""
    said = _run(code).splitlines()
    assert [line.partition(" ")[0] for line in said] == [
        f"gridwise_py.{n}" for n in ("measure", "benchmark", "to_dataframe")
    ]
    assert all(re.fullmatch(rf"\S+ {SAID}", line) for line in said)


def test_only_what_is_missing_is_named():
    code = """
import sys
sys.modules["scipy"] = None
import gridwise_py as gw
try:
    gw.measure
except ImportError as error:
    print(error)
"""
    assert "the extra 'bench', of which scipy is not installed: pip" in _run(code)


@pytest.mark.parametrize(
    ("start", "words"),
    [
        ("import gridwise_py.__main__ as command; command.main()", ["info"]),
        ("import runpy; runpy.run_module('gridwise_py', run_name='__main__')", []),
    ],
    ids=["gridwise", "python -m gridwise_py"],
)
def test_the_command_without_the_extra_says_in_one_line_what_to_install(start, words):
    done = subprocess.run(
        [sys.executable, "-c", f"{WITHOUT_EXTRAS}\n{start}", *words],
        capture_output=True, text=True, timeout=1200, check=False,
    )  # fmt: skip
    assert done.returncode == exit_codes.BAD_INPUT
    assert done.stdout == ""
    assert re.fullmatch(rf"gridwise: the command gridwise {SAID}\n", done.stderr)


def test_all_has_the_public_names_and_no_others():
    assert len(set(gw.__all__)) == len(gw.__all__)
    for name in gw.__all__:
        getattr(gw, name)  # some are loaded when they are first used
    public = {
        name for name, value in vars(gw).items() if not name.startswith("_") and not isinstance(value, types.ModuleType)
    }
    assert public == set(gw.__all__)


def test_public_names_are_documented():
    for name in gw.__all__:
        value = getattr(gw, name)
        if isinstance(value, type) or callable(value):
            assert (value.__doc__ or "").strip(), name


def test_no_name_hides_a_module_of_the_package():
    """`gw.reduce` is the function; the modules of that name are reached by their full path."""
    for name in ("add", "max", "min", "prod", "reduce", "scan", "sum", "cumsum"):
        assert callable(getattr(gw, name))


def test_the_version_stands_in_one_place():
    """The build reads it from the package; an installed wheel has the same in its metadata."""
    project = ROOT / "pyproject.toml"
    given = tomllib.loads(project.read_text(encoding="utf-8")) if project.is_file() else None
    if given is not None:
        assert "version" in given["project"]["dynamic"]
        assert "version" not in given["project"]
    source = ROOT / "gridwise_py" / "_version.py"
    if given is not None and source.is_file():
        assert (ROOT / given["tool"]["hatch"]["version"]["path"]).samefile(source)
        assert f'__version__ = "{gw.__version__}"' in source.read_text(encoding="utf-8")
    else:  # the tests of a wheel, with the sources gone
        assert gw.__version__ == metadata.version("gridwise-py")
