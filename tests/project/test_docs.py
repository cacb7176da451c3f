"""The pages keep what they promise: their code runs, their links lead somewhere, their tables are those of the code."""

import contextlib
import importlib.util
import io
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

import gridwise_py as gw
from gridwise_py import settings
from gridwise_py.cli import exit_codes
from gridwise_py.planning.shaders import shader_directory
from helpers.paths import ROOT, TESTS

# Wherever it was installed: the tests also run on a wheel with the sources gone.
PACKAGE = Path(gw.__file__).parent
SHADERS = shader_directory()
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("benchmarks/**/*.md")])
TUTORIAL = ROOT / "docs" / "contribute" / "adding-a-primitive.md"


def _name(page):
    return page.relative_to(ROOT).as_posix()


# ---- code in pages


class Block(NamedTuple):
    """A fenced block, and the HTML comment on the line before it."""

    mark: str
    language: str
    text: str
    line: int


def _blocks(page):
    pattern = r"^<!-- (?P<mark>[^>]*) -->\n```(?P<language>\w*)\n(?P<text>.*?)^```$"
    text = page.read_text(encoding="utf-8")
    for found in re.finditer(pattern, text, re.MULTILINE | re.DOTALL):
        line = text.count("\n", 0, found.start("text")) + 1
        yield Block(found["mark"], found["language"], found["text"], line)


@pytest.mark.parametrize("page", [p for p in PAGES if any(b.mark == "run" for b in _blocks(p))], ids=_name)
def test_code_in_pages_runs(device, page):
    """The blocks of a page marked with run, one after another, as one program."""
    # The fixture is not used: it skips where there is no adapter.
    namespace = {"__name__": "page"}
    for block in _blocks(page):
        if block.mark == "run":
            assert block.language == "python"
            code = compile("\n" * (block.line - 1) + block.text, page, "exec")
            with contextlib.redirect_stdout(io.StringIO()):
                exec(code, namespace)


def test_marks_are_known():
    for page in PAGES:
        for block in _blocks(page):
            assert re.fullmatch(r"run|file: \S+|patch: \S+|timers: \S+", block.mark), (page.name, block.line)


# ---- the tutorial


def _apply(patch, text):
    """Put each line with + behind the last line without one, which must occur once."""
    lines = text.splitlines()
    at = None
    for line in patch.splitlines():
        sign, content = line[:1], line[1:]
        if sign == "+":
            at += 1
            lines.insert(at, content)
        else:
            assert lines.count(content) == 1, content
            at = lines.index(content)
    return "\n".join(lines) + "\n"


@pytest.fixture(scope="module")
def tutorial(tmp_path_factory):
    """A copy of the project in which the first part of the tutorial was followed."""
    folder = tmp_path_factory.mktemp("tutorial")
    ignore = shutil.ignore_patterns("__pycache__", "_shaders")
    for name, source in {"gridwise_py": PACKAGE, "shaders": SHADERS, "tests": TESTS}.items():
        shutil.copytree(source, folder / name, ignore=ignore)
    shutil.copy(ROOT / "pyproject.toml", folder)
    written = []
    for block in _blocks(TUTORIAL):
        kind, _, path = block.mark.partition(": ")
        if kind == "file":
            assert not (folder / path).exists()
            (folder / path).write_text(block.text, encoding="utf-8")
            written.append(path)
        elif kind == "patch":
            (folder / path).write_text(
                _apply(block.text, (folder / path).read_text(encoding="utf-8")), encoding="utf-8"
            )
    assert len(written) == 3
    return folder


def _python(folder, *arguments):
    """Run Python in `folder`, whose package comes before the installed one."""
    paths = [str(folder), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths), "PYTEST_ADDOPTS": ""}
    environment.pop("PYTEST_XDIST_WORKER", None)
    return subprocess.run(
        [sys.executable, *arguments], cwd=folder, env=environment, capture_output=True, text=True, timeout=300
    )


def test_the_tutorial_works(device, tutorial):
    run = _python(tutorial, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/primitives/test_square.py")
    assert run.returncode == 0, run.stdout + run.stderr
    assert " passed" in run.stdout, run.stdout


@pytest.mark.slow
def test_the_suites_find_the_primitive_of_the_tutorial(device, tutorial):
    run = _python(
        tutorial, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", "square",
        "tests/planning",
    )  # fmt: skip
    assert run.returncode == 0, run.stdout + run.stderr
    assert re.search(r"^\d+ passed", run.stdout, re.MULTILINE), run.stdout


@pytest.mark.slow
def test_benchmarks_take_the_primitive_of_the_tutorial(device, tutorial):
    code = (
        "import gridwise_py as gw\n"
        "from gridwise_py.bench.cases.case import Case\n"
        "from gridwise_py.bench.sampling.measure import measure_case\n"
        "cases = [Case.build('square', 10_007, datatype, 'add') for datatype in gw.DATATYPES]\n"
        "protocol = gw.SamplingProtocol(samples=2, warmup_s=0.01, max_warmup_s=0.01, check_unit=False)\n"
        "device = gw.request_device()\n"
        "for case in cases:\n"
        "    result = measure_case(device, case, protocol)\n"
        "    assert result.correct, (result.error, result.mismatches)\n"
        "    print(*(kernel.name for kernel in result.kernels))\n"
    )
    run = _python(tutorial, "-c", code)
    assert run.returncode == 0, run.stderr
    assert run.stdout.split() == ["square"] * 3


if importlib.util.find_spec("ruff"):  # of the group `dev`, which not everybody who tests has

    def test_the_tutorial_keeps_the_style(tutorial):
        files = [block.mark.partition(": ")[2] for block in _blocks(TUTORIAL) if block.mark.startswith("file")]
        files = [path for path in files if path.endswith(".py")]
        for arguments in (["check"], ["format", "--check"]):
            run = _python(tutorial, "-m", "ruff", *arguments, "--no-cache", *files)
            assert run.returncode == 0, run.stdout + run.stderr


# ---- links


def _anchors(page):
    """The anchors of a page's headings, as GitHub makes them."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    titles = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_links_lead_to_files_and_headings(page):
    for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8")):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = page.parent / path if path else page
        assert target.exists(), link
        assert not anchor or anchor in _anchors(target), link


# ---- tables


def _rows(page, heading):
    """The rows of the first table under a heading, as lists of cells."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8").partition(f"\n## {heading}\n")[2]
    table = re.search(r"(?:^\|.*\n)+", text, re.MULTILINE)[0]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()[2:]]


def test_the_table_says_when_each_environment_variable_is_read():
    rows = {row[0].strip("`"): row[3] for row in _rows("reference/environment.md", "Environment variables")}
    assert {name: read for name, read in rows.items() if read != "by the tests"} == settings.VARIABLES


def test_every_environment_variable_is_in_the_table():
    files = [*PACKAGE.rglob("*.py"), *ROOT.glob("scripts/*"), *ROOT.glob("benchmarks/**/*.py")]
    files += [ROOT / "Makefile", TESTS / "conftest.py"]
    texts = [path.read_text(encoding="utf-8") for path in files if path.is_file()]
    used = {name for text in texts for name in re.findall(r"GRIDWISE_[A-Z_]*[A-Z]", text)}
    assert {row[0].strip("`") for row in _rows("reference/environment.md", "Environment variables")} == used


def test_every_exit_code_is_in_the_table():
    codes = {value for name, value in vars(exit_codes).items() if name.isupper()}
    assert {int(row[0]) for row in _rows("reference/environment.md", "Exit codes")} == codes | {0}


# ---- what is made


def test_the_api_reference_is_what_its_script_makes():
    spec = importlib.util.spec_from_file_location("make_api_reference", ROOT / "scripts" / "make_api_reference.py")
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    assert script.PAGE.read_text(encoding="utf-8") == script.reference(), "run python scripts/make_api_reference.py"
