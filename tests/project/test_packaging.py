"""What is built from this repository: the wheel, the source archive, pinned versions.

Needs the repository itself, so a run against an installed wheel leaves this file out.
"""

import email
import os
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import gridwise_py as gw
from helpers.paths import ROOT

pytestmark = pytest.mark.slow
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def _build(target: str, source: Path, folder: Path) -> Path:
    """Build offline, with the hatchling of this environment."""
    command = [sys.executable, "-m", "hatchling", "build", "--target", target, "--directory", str(folder)]
    subprocess.run(command, cwd=source, check=True, capture_output=True, text=True)
    (built,) = folder.iterdir()
    return built


def _names(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


@pytest.fixture(scope="module")
def wheel(tmp_path_factory, require):
    require("module:hatchling")
    return _build("wheel", ROOT, tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def sdist(tmp_path_factory, require):
    require("module:hatchling")
    return _build("sdist", ROOT, tmp_path_factory.mktemp("sdist"))


def _files_below(folder: str, pattern: str) -> set[str]:
    return {path.relative_to(ROOT).as_posix() for path in (ROOT / folder).rglob(pattern)}


def test_the_wheel_holds_every_module_and_shader_and_nothing_else(wheel):
    modules = {path for kind in ("py", "pyi") for path in _files_below("gridwise_py", f"*.{kind}")}
    modules |= _files_below("gridwise_pytest", "*.py")
    shaders = {f"gridwise_py/_{name}" for name in _files_below("shaders", "*.wgsl")}
    held = {name for name in _names(wheel) if ".dist-info/" not in name}
    suites = {f"gridwise_py/_suites/{Path(name).name}" for name in _files_below("benchmarks/suites", "*.toml")}
    assert suites
    pages = {path for kind in ("html", "css", "js") for path in _files_below("gridwise_py", f"*.{kind}")}
    assert {"bench/report/assets/report.js", "browser/page/runner.js", "fleet/chapter.html"} <= {
        path.removeprefix("gridwise_py/") for path in pages
    }
    found = _files_below("gridwise_py", "*.json")
    assert "gridwise_py/tuning/data/nvidia-h100.json" in found
    assert held == modules | shaders | suites | pages | found | {"gridwise_py/py.typed"}
    assert "gridwise_py/_shaders/scan.wgsl" in held
    assert "gridwise_py/_shaders/lib/subgroup.wgsl" in held


def test_the_wheel_says_what_it_is(wheel):
    with zipfile.ZipFile(wheel) as archive:
        folder = f"gridwise_py-{gw.__version__}.dist-info"
        metadata = email.message_from_bytes(archive.read(f"{folder}/METADATA"))
        scripts = archive.read(f"{folder}/entry_points.txt").decode()
        assert "Apache License" in archive.read(f"{folder}/licenses/LICENSE").decode()
        assert "shaders" in archive.read(f"{folder}/licenses/NOTICE").decode()
    assert metadata["Version"] == gw.__version__
    assert metadata["License-Expression"] == "Apache-2.0"
    assert metadata["Requires-Python"] == ">=3.11"
    assert "gridwise = gridwise_py.__main__:main" in scripts
    assert "[pytest11]\ngridwise_pytest = gridwise_pytest\n" in scripts


def test_the_wheel_works_alone_in_an_empty_folder(wheel, tmp_path):
    installed, empty = tmp_path / "installed", tmp_path / "empty"
    empty.mkdir()
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(installed)
    code = (
        "import gridwise_py as gw\n"
        "from gridwise_py.planning.shaders import shader_directory\n"
        "lengths = {'input': 9, 'output': 9}\n"
        "plan = gw.Scan.plan_for(capabilities=gw.Capabilities(), lengths=lengths, dtype='u32')\n"
        "assert plan.kernels\n"
        "from gridwise_py.bench.sweep.suite import load_suite\n"
        "from gridwise_py.bench.report.page import PAGE_FOLDER\n"
        "assert load_suite('quick').sweeps\n"
        "assert (PAGE_FOLDER / 'report.html').is_file()\n"
        "print(gw.__file__, shader_directory(), sep='\\n')"
    )
    # PYTHONPATH comes before site-packages, and so before the editable install
    environment = os.environ | {"PYTHONPATH": str(installed)}
    run = subprocess.run(
        [sys.executable, "-c", code], cwd=empty, env=environment, check=True, capture_output=True, text=True
    )
    module, shaders = map(Path, run.stdout.splitlines())
    assert module == installed / "gridwise_py" / "__init__.py"
    assert shaders == installed / "gridwise_py" / "_shaders"


def test_the_wheel_brings_pytest_its_plug_in(wheel, tmp_path):
    installed, empty = tmp_path / "installed", tmp_path / "empty"
    empty.mkdir()
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(installed)
    (empty / "test_it.py").write_text("def test_it(gpu_benchmark): raise AssertionError\n")
    environment = os.environ | {"PYTHONPATH": str(installed)}
    environment.pop("PYTEST_DISABLE_PLUGIN_AUTOLOAD", None)
    command = [sys.executable, "-m", "pytest", "-rs"]
    run = subprocess.run(command, cwd=empty, env=environment, check=True, capture_output=True, text=True)
    assert "1 skipped" in run.stdout
    assert "pytest --gridwise" in run.stdout


def test_a_wheel_built_from_the_source_archive_is_the_same(wheel, sdist, tmp_path):
    shutil.unpack_archive(sdist, tmp_path)
    (source,) = tmp_path.iterdir()
    again = _build("wheel", source, tmp_path / "again")
    assert again.name == wheel.name
    assert _names(again) == _names(wheel)


def test_the_source_archive_has_what_the_two_commands_need(sdist):
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert names >= {
        "Makefile",
        "constraints.txt",
        "pyproject.toml",
        "scripts/setup.sh",
        "LICENSE",
        "README.md",
    }
    assert names >= _files_below("tests", "*.py") | _files_below("shaders", "*.wgsl")
    assert not {name for name in names if name.startswith((".venv", ".git/", "dist/"))}


def _requirements() -> list[Requirement]:
    groups = PROJECT["dependency-groups"]
    texts = [*PROJECT["project"]["dependencies"], *PROJECT["build-system"]["requires"], *groups["test"]]
    texts += [entry for group in ("dev", "docs", "release") for entry in groups[group] if isinstance(entry, str)]
    texts += [entry for extra in PROJECT["project"]["optional-dependencies"].values() for entry in extra]
    return [Requirement(text) for text in texts]


def test_constraints_pin_what_is_required_within_its_range():
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pins = [Requirement(line.partition("#")[0]) for line in lines if line.partition("#")[0].strip()]
    versions = {canonicalize_name(pin.name): next(iter(pin.specifier)).version for pin in pins}
    assert all(str(pin.specifier).startswith("==") for pin in pins)
    for requirement in _requirements():
        assert requirement.specifier.contains(versions[canonicalize_name(requirement.name)]), requirement
