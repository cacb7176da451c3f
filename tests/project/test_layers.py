"""The contract of imports in pyproject.toml: packages in one direction, no circles, nested imports included."""

import ast
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import gridwise_py
from helpers.paths import ROOT

pytestmark = pytest.mark.slow  # `make lint` asks for the contract itself
PACKAGE = Path(gridwise_py.__file__).resolve().parent


def _lint(folder):
    code = "from importlinter.cli import lint_imports_command; lint_imports_command()"
    paths = [str(folder), *filter(None, [os.environ.get("PYTHONPATH")])]
    return subprocess.run(
        [sys.executable, "-c", code, "--config", str(ROOT / "pyproject.toml"), "--no-cache"],
        cwd=folder, env=os.environ | {"PYTHONPATH": os.pathsep.join(paths), "PYTHONIOENCODING": "utf-8"},
        capture_output=True, encoding="utf-8", timeout=1200, check=False,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("module", "text", "said"),
    [
        ("planning/plan.py", "def f():\n    from ..runtime import device\n    return device\n", "planning"),
        (
            "types/datatype.py",
            "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from ..primitives import Scan\n",
            "types",
        ),
        ("runtime/executor.py", "def f():\n    from .context import context_of\n    return context_of\n", "circle"),
        ("new.py", "", "new"),
        (
            "fleet/judge.py",
            "def f():\n    from ..planning.layout import Layout\n    return Layout\n",
            "gridwise_py.fleet is not allowed to import gridwise_py.planning",
        ),
        (
            "browser/data.py",
            "from ..fleet import model\n",
            "gridwise_py.browser is not allowed to import gridwise_py.fleet",
        ),
        ("display/terminal.py", "def f():\n    import rich\n    return rich\n", "rich"),
    ],
    ids=[
        "nested",
        "TYPE_CHECKING",
        "circle",
        "a module that is on no floor",
        "an application, of the core's internals",
        "an application, of another one",
        "a package of an extra",
    ],
)
def test_a_module_that_breaks_it_fails(tmp_path, module, text, said):
    shutil.copytree(PACKAGE, tmp_path / "gridwise_py", ignore=shutil.ignore_patterns("__pycache__"))
    with (tmp_path / "gridwise_py" / module).open("a", encoding="utf-8") as file:
        file.write(f"\n\n{text}")
    done = _lint(tmp_path)
    assert done.returncode == 1, done.stdout + done.stderr
    assert said in done.stdout


def test_the_interface_for_applications_is_small_and_says_why():
    text = (PACKAGE / "internals.py").read_text(encoding="utf-8")
    imports = [one for one in ast.parse(text).body if isinstance(one, ast.ImportFrom)]
    assert sum(len(one.names) for one in imports) <= 30
    lines = text.splitlines()
    assert all(lines[one.lineno - 2].startswith("# ") for one in imports), "a comment before each says why"
