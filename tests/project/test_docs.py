"""The pages keep what they promise: their code runs, their links lead somewhere, their tables are those of the code."""

import ast
import contextlib
import doctest
import functools
import importlib.util
import inspect
import io
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import click
import numpy as np
import pytest
import wgpu
from click.testing import CliRunner

import gridwise_py as gw
from gridwise_py import cli, settings
from gridwise_py.bench.cases.workloads import WORKLOADS
from gridwise_py.cli import exit_codes
from gridwise_py.planning.shaders import shader_directory
from helpers.paths import ROOT, TESTS

# Wherever it was installed: the tests also run on a wheel with the sources gone.
PACKAGE = Path(gw.__file__).parent
SHADERS = shader_directory()


def _committed(pattern):
    """The pages of a pattern without those that the build of the site makes (.gitignore names them)."""
    ignored = ROOT / ".gitignore"
    lines = ignored.read_text(encoding="utf-8").splitlines() if ignored.exists() else []
    made = [ROOT / line.rstrip("/") for line in lines if line.startswith("docs/")]
    return [page for page in ROOT.glob(pattern) if not any(page == path or path in page.parents for path in made)]


#: What README.md shows is run by `make test`, too: tests/project/test_examples.py.
pytestmark = pytest.mark.slow
PAGES = sorted(page for pattern in ("*.md", "docs/**/*.md", "benchmarks/**/*.md") for page in _committed(pattern))
TUTORIAL = ROOT / "docs" / "contribute" / "adding-a-primitive.md"


def _name(page):
    return page.relative_to(ROOT).as_posix()


# ---- code in pages


class Block(NamedTuple):
    """A fenced block, and the HTML comment on the line before it, if there is one."""

    mark: str
    language: str
    text: str
    line: int


def _blocks(page):
    pattern = r"^(?:<!-- (?P<mark>[^>]*) -->\n)?```(?P<language>[\w{}-]*).*?\n(?P<text>.*?)^```$"
    text = page.read_text(encoding="utf-8")
    for found in re.finditer(pattern, text, re.MULTILINE | re.DOTALL):
        line = text.count("\n", 0, found.start("text")) + 1
        yield Block(found["mark"] or "", found["language"], found["text"], line)


@pytest.mark.parametrize("page", [p for p in PAGES if any(b.mark == "run" for b in _blocks(p))], ids=_name)
def test_code_in_pages_runs(device, require, page, tmp_path, monkeypatch):
    """The blocks of a page marked with run, one after another, as one program, beside the results that some read."""
    if page.name in ("group-by.md", "results-file.md", "tables.md"):
        require("module:pandas")
    (tmp_path / "benchmarks").symlink_to(ROOT / "benchmarks")
    monkeypatch.chdir(tmp_path)
    # The fixture is not used: it skips where there is no adapter.
    namespace = {"__name__": "page"}
    for block in _blocks(page):
        if block.mark == "run":
            assert block.language == "python"
            code = compile("\n" * (block.line - 1) + block.text, page, "exec")
            with contextlib.redirect_stdout(io.StringIO()):
                exec(code, namespace)


#: What a block in each language must be: marked, so that a test runs it; or checked below; or no code of this project.
#: `cluster` needs several processes or hosts: its names are checked. `elsewhere` is for the shells of other hosts: the
#: commands `gridwise` in it are checked.
LANGUAGES = {
    "python": "run|cluster|file: .*",
    "wgsl": "file: .*",
    "diff": "patch: .*",
    "sh": "|elsewhere",
    "yaml": "elsewhere",
    "json": "",
    "text": "",  # what a command printed
    "powershell": "",  # how to install on Windows
}


def test_each_block_says_what_it_is_and_is_run_if_it_is_code():
    for page in PAGES:
        for block in _blocks(page):
            where = (page.name, block.line)
            if not block.language.startswith("{"):  # a directive of Sphinx
                assert block.language in LANGUAGES, where
                assert re.fullmatch(LANGUAGES[block.language], block.mark), where
                if block.language == "json":
                    json.loads(block.text)
        fences = re.findall(r"^```", page.read_text(encoding="utf-8"), re.MULTILINE)
        assert len(fences) == 2 * len(list(_blocks(page))), f"{page.name} has a block that is not found here"


def test_pages_that_the_package_names_exist():
    """In messages, comments and docstrings, of the shaders too."""
    folders = [
        ROOT / name for name in ("gridwise_py", "gridwise_pytest", "shaders", "scripts", "benchmarks", "examples")
    ]
    sources = [
        path for folder in folders for suffix in ("py", "wgsl", "js", "mjs") for path in folder.rglob(f"*.{suffix}")
    ]
    named = {
        (path.name, page) for path in sources for page in re.findall(r"docs/[\w/.-]+\.md", path.read_text("utf-8"))
    }
    assert len(named) > 5
    assert {(source, page) for source, page in named if not (ROOT / page).exists()} == set()


# ---- words in pages

#: Pages for users. Those of contributors have other readers.
FOR_USERS = [page for page in PAGES if page.is_relative_to(ROOT / "docs") and "contribute" not in page.parts]
MOST_WORDS, MOST_WORDS_OF_PAGES = 30, 26_000  # of a sentence, of all these pages together
#: These say what others call things.
OF_OTHERS = {"from-cuda-and-pytorch.md", "numpy-and-cupy.md", "array-api.md", "glossary.md"}


def _prose(text):
    """The paragraphs, list items, headings and cells of a page or docstring, without code, comments and addresses."""
    text = re.sub(r"\A---\n.*?^---$|^```.*?^```$|<!--.*?-->|^:::.*$", "", text, flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"^(?:    |:\w+:|>>>|\.\. ).*$", "", text, flags=re.MULTILINE)
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text)
    text = re.sub(r"``.*?``|`[^`]*`", "CODE", text, flags=re.DOTALL)
    text = re.sub(r"^ *(?:[-*]|\d+\.|#+) ", "\n", text, flags=re.MULTILINE)
    text = re.sub(r"(?<!\\)\|", "\n\n", text)
    return [" ".join(part.split()) for part in re.split(r"\n\s*\n", text) if part.strip()]


def _sentences(text):
    for paragraph in _prose(text):
        yield from re.split(r"(?<!i\.e\.)(?<=[.!?])[*_\")]*\s+", paragraph)


def _words(sentence):
    """How many words there are; names in a row count as one."""
    sentence = re.sub(r"CODE(?:,? (?:(?:and|or) )?CODE)+", "CODE", sentence)
    return sum(any(letter.isalnum() for letter in word) for word in sentence.split())


def test_sentences_are_told_apart():
    text = "# A title\n\nOne `x. y` two.\n**Three** is [a\nlink](b.md#c d). Four, i.e. five!\n\n- six\n- seven. f8 is."
    text += "\n\n| nine | **ten** |\n| --- | --- |\n```sh\nno. word\n```\n<!-- no -->\n    no\n"
    assert list(_sentences(text)) == [
        "A title", "One CODE two.", "**Three** is a link.", "Four, i.e. five!", "six", "seven.", "f8 is.", "nine",
        "**ten**", "---", "---",
    ]  # fmt: skip
    assert _words("One — `two`, 3 | −") == 3
    assert _words("Give CODE, CODE and CODE to CODE") == 4


@pytest.mark.parametrize("page", FOR_USERS, ids=_name)
def test_no_sentence_is_long(page):
    sentences = _sentences(page.read_text(encoding="utf-8"))
    assert [each for each in sentences if _words(each) > MOST_WORDS] == []


def test_no_sentence_of_the_reference_is_long(reference):
    long = []
    for name in gw.__all__:
        thing = getattr(gw, name)
        parts = {name: thing}
        if inspect.isclass(thing):
            parts |= {f"{name}.{each}": inspect.getattr_static(thing, each) for each in reference.own_members(thing)}
        for label, part in parts.items():
            if inspect.isclass(part) or inspect.isfunction(part) or isinstance(part, property):
                text = reference.page_text(f"gridwise_py.{label}", inspect.getdoc(part) or "")
                long += [(label, each) for each in _sentences(text) if _words(each) > MOST_WORDS]
    assert long == []


def test_pages_for_users_are_short():
    """As `wc -w` counts them: code, bars of tables and addresses, too."""
    words = {_name(page): len(page.read_text(encoding="utf-8").split()) for page in FOR_USERS}
    assert sum(words.values()) <= MOST_WORDS_OF_PAGES, sorted(words.items(), key=lambda each: -each[1])[:5]


def _avoided():
    """The words that the glossary says pages do not use, by the term in their place."""
    text = (ROOT / "docs" / "concepts" / "glossary.md").read_text(encoding="utf-8")
    found = re.findall(r"\*\*([^*]+)\*\* \(not ([^)]+)\)", text)
    return {word: term for term, words in found for word in re.findall(r"\*([^*]+)\*", words)}


def test_one_term_per_idea():
    avoided = _avoided()
    assert len(avoided) > 15
    assert avoided["element"] == "item"
    found = {
        (_name(page), word, avoided[word])
        for page in FOR_USERS if page.name not in OF_OTHERS
        for paragraph in _prose(page.read_text(encoding="utf-8"))
        for word in avoided if re.search(rf"\b({word}|{word.capitalize()})\b", paragraph)
    }  # fmt: skip
    assert found == set()


def test_pages_that_answer_begin_with_code():
    """A title and at most a sentence or two come first."""
    for page in sorted((ROOT / "docs" / "howto").glob("*.md")):
        text = re.sub(r"<!--.*?-->", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
        code = re.search(r"^```|^    \S", text, re.MULTILINE)
        if page.name != "index.md":
            assert _words(text[: code.start()]) <= 45, page.name


# ---- commands in pages


def _commands(page):
    """The commands of a page's shell blocks, as lists of words, with the line of their block."""
    for block in _blocks(page):
        if block.language == "sh" and block.mark != "elsewhere":
            for line in block.text.splitlines():
                if words := shlex.split(line.replace("…", ""), comments=True):
                    yield words, block.line


def _check_gridwise(words):
    """Parse the options of a command, and look at the names of its primitives."""
    name, *arguments = words
    command = cli.main.commands[name]
    # click keeps the first help option that it makes for a command, so this context has the names of the command's own.
    context = click.Context(command, info_name=name, parent=click.Context(cli.main, **cli.main.context_settings))
    values, _, _ = command.make_parser(context).parse_args(list(arguments))
    names = values.get("primitives")
    if isinstance(names, (list, tuple)) and any(word.endswith(".py") for word in names):
        return  # of a user's file, which `test_commands_in_pages_run` has
    assert set(names if isinstance(names, (list, tuple)) else ()) <= set(WORKLOADS), words


def test_commands_in_pages_exist():
    rules = re.findall(r"^([\w -]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    targets = {target for rule in rules for target in rule.split()}
    plugin = (ROOT / "gridwise_pytest" / "__init__.py").read_text(encoding="utf-8")
    for page, words, line in ((path, *command) for path in PAGES for command in _commands(path)):
        program, *arguments = words
        if Path(program).name == "gridwise":
            _check_gridwise(arguments)
        elif program == "make":
            assert arguments[0] in targets, (page.name, line, words)
        elif arguments and arguments[0].endswith((".py", ".mjs", ".sh")):
            assert (ROOT / arguments[0]).exists(), (page.name, line, words)
        else:
            known = (
                "git clone https://", "pip install", "python -m pip", "python -m venv", "python -m pytest",
                "$EDITOR shaders/", "pytest --gridwise",
            )  # fmt: skip
            text = " ".join([re.sub(r"^(\.venv/bin/)?python3?$", "python", program), *arguments])
            assert text.startswith(known), (page.name, line, words)
            for option in re.findall(r"--gridwise[\w-]*", text):
                assert f'"{option}"' in plugin, (page.name, line, words)


def _gridwise_in(text):
    """The arguments of each command `gridwise` within lines of a shell."""
    for line in text.splitlines():
        if found := re.search(r"(?:^|\s)gridwise (\w.*?)(?:\s+[&#].*)?$", line):
            yield shlex.split(found[1])


def _unknown_names(text, modules):
    """The attributes of modules that a program uses and that are not there; `modules` are by their name in it."""
    used = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Attribute)]
    names = {(node.value.id, node.attr) for node in used if isinstance(node.value, ast.Name)}
    return {f"{module}.{name}" for module, name in names if module in modules and not hasattr(modules[module], name)}


def test_names_and_commands_of_clusters_are_looked_at():
    assert _unknown_names("x = gw.sum(gw.summ(other.y))", {"gw": gw}) == {"gw.summ"}
    lines = "srun --overlap gridwise info --nothing 1 &\nssh host gridwise-x worker\n# gridwise\ngridwise info  # all\n"
    assert list(_gridwise_in(lines)) == [["info", "--nothing", "1"], ["info"]]
    with pytest.raises(click.NoSuchOption, match="--nothing"):
        _check_gridwise(["info", "--nothing", "1"])


def test_code_for_clusters_uses_what_is_here():
    modules = {"gw": gw}
    if importlib.util.find_spec("dask") and importlib.util.find_spec("gridwise_py.dask"):
        modules["gwd"] = importlib.import_module("gridwise_py.dask")
    for page in PAGES:
        for block in _blocks(page):
            if block.mark == "cluster":
                assert _unknown_names(block.text, modules) == set(), (page.name, block.line)
            elif block.mark == "elsewhere":
                for arguments in _gridwise_in(block.text):
                    _check_gridwise(arguments)


#: Sizes and times of a command of a page, as a test on a software adapter takes them.
SMALL = {"bench": ["--processes", "1", "--sampling-s", "0.05", "--warmup-s", "0.01", "--overwrite", "--quiet"]}


def _small(words):
    """The words of a command with small sizes in place of its own."""
    words = [re.sub(r"2\^\d+", "2^10", word) for word in words]
    if "--suite" in words:
        at = words.index("--suite")
        words[at : at + 2] = ["copy", "reduce", "--n", "2^10"]
    words = [re.sub(r"^(2\^10)(,2\^10)+$", r"\1", word) for word in words]
    return [*words, *SMALL.get(words[0], [])]


@pytest.mark.parametrize(
    "name",
    [
        "docs/start/own-kernels.md", "docs/howto/compare-two-gpus.md", "docs/howto/gate-a-change.md",
        "docs/howto/benchmark-my-kernels.md",
    ],
)  # fmt: skip
@pytest.mark.needs("module:altair", "module:vl_convert")
def test_commands_in_pages_run(device, name, tmp_path, monkeypatch):
    """One after another in one folder, with small sizes; inputs that a page does not make are a first run's."""
    monkeypatch.chdir(tmp_path)
    shutil.copy(ROOT / "examples" / "my_kernels.py", tmp_path)
    for block in _blocks(ROOT / name):
        if block.text.startswith("# my_kernels.py\n"):
            (tmp_path / "my_kernels.py").write_text(block.text, encoding="utf-8")
    first = _small(["bench", "copy", "reduce", "--n", "2^10", "--json", "first.json"])
    assert CliRunner().invoke(cli.main, first).exit_code == 0
    ran = 0
    for words, _ in _commands(ROOT / name):
        if words[0] != "gridwise" or words[1] in ("ab", "diff", "bisect"):  # tests/bench/test_ab.py, and below
            continue
        for word in words[2:]:
            if re.fullmatch(r"\w+\.json", word) and words[1] not in ("bench", "counts") and not Path(word).exists():
                shutil.copy("first.json", word)
        done = CliRunner().invoke(cli.main, _small(words[1:]))
        # 1, 3 and 7 are verdicts on files that were measured in a moment.
        assert done.exit_code in (0, 1, 3, 7), (words, done.output)
        ran += 1
    assert ran >= 2


def _told(name="gate-a-change.md"):
    """What the commands of a page answer that ask no clock, in a repository: words, exit code and output of each."""
    for words, _ in _commands(ROOT / "docs" / "howto" / name):
        if words[1] in ("diff", "counts", "bisect") or words[1:3] == ["compare", "main_counts.json"]:
            more = ["--overwrite"] if words[1] == "counts" else []
            done = CliRunner().invoke(cli.main, [*words[1:], *more])
            yield " ".join(words[:3]), (done.exit_code, done.stdout)


def test_the_page_of_ci_says_what_its_commands_answer(device, require, tmp_path, monkeypatch):
    """In a repository whose branch changes a comment; then its kernel, of which there are more workgroups, too."""
    require("git")
    monkeypatch.chdir(tmp_path)
    page = (ROOT / "docs" / "howto" / "gate-a-change.md").read_text(encoding="utf-8")
    promised = {"# 0: same on ten classes of devices; 1: what differs", "# 1: any count is more"}
    assert all(page.count(said) == 1 for said in promised)
    own = tmp_path / "my_kernels.py"
    text = (ROOT / "examples" / "my_kernels.py").read_text(encoding="utf-8")
    own.write_text(text)
    git = ["git", "-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false"]
    for words in ("init -q", "add .", "commit -q -m one", "tag v1.0", "update-ref refs/remotes/origin/main HEAD"):
        subprocess.run([*git, *words.split()], check=True)
    own.write_text(text.replace("  var sum = 0.0;\n", "  var sum = 0.0;  // of a lane\n"))
    subprocess.run([*git, "commit", "-q", "-a", "-m", "two"], check=True)
    found = dict(_told())
    assert found["gridwise diff origin/main"] == (0, "same on 10 of 10 classes: 12 of 12 cases\n")
    assert found["gridwise counts my_kernels.py"][0] == 0
    assert found["gridwise compare main_counts.json"] == (0, "0 counts changed, 0 of them must not\n")
    code, said = found["gridwise bisect v1.0"]
    assert (code, said) == (0, "HEAD is not slower than v1.0\n")
    shutil.copy("main_counts.json", "before.json")
    own.write_text(
        text.replace("sum += INPUT[i]", "sum += 2 * INPUT[i]").replace(", workgroups)\n", ", 2 * workgroups)\n")
    )
    found = dict(_told())
    code, said = found["gridwise diff origin/main"]
    assert (code, "differs on 10 of 10 classes" in said.splitlines()[0]) == (1, True), said
    assert any(line.startswith("+ ") and "{ sum += 2 * x[i]; }" in line for line in said.splitlines()), said
    more = CliRunner().invoke(cli.main, ["compare", "before.json", "counts.json"])
    assert (more.exit_code, "workgroups: 17 → 34" in more.output) == (1, True), more.output


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
    assert len(written) == 4
    return folder


def _python(folder, *arguments):
    """Run Python in `folder`, whose package comes before the installed one."""
    paths = [str(folder), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths), "PYTEST_ADDOPTS": ""}
    environment.pop("PYTEST_XDIST_WORKER", None)
    return subprocess.run(
        [sys.executable, *arguments], cwd=folder, env=environment, capture_output=True, text=True, timeout=1200
    )


def test_the_tutorial_works(device, tutorial):
    run = _python(tutorial, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/primitives/test_square.py")
    assert run.returncode == 0, run.stdout + run.stderr
    assert " passed" in run.stdout, run.stdout


def test_the_suites_find_the_primitive_of_the_tutorial(device, tutorial):
    run = _python(
        tutorial, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", "square",
        "tests/primitives/test_every_primitive.py",
    )  # fmt: skip
    assert run.returncode == 0, run.stdout + run.stderr
    assert re.search(r"^\d+ passed", run.stdout, re.MULTILINE), run.stdout


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


def test_links_lead_to_files_and_headings():
    made = {
        ROOT / line for line in (ROOT / ".gitignore").read_text(encoding="utf-8").splitlines() if line.endswith(".md")
    }
    for page in PAGES:
        for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8")):
            if not re.match(r"[a-z]+:", link):
                path, _, anchor = link.partition("#")
                target = page.parent / path if path else page
                if target.resolve() in made:  # by the build
                    continue
                assert target.exists(), (page.name, link)
                assert not anchor or anchor in _anchors(target), (page.name, link)


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


# ---- the reference


@pytest.fixture
def reference(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "docs" / "_ext")
    return importlib.import_module("reference")


def test_the_reference_has_every_public_name_once(reference):
    text = "\n".join(path.read_text(encoding="utf-8") for path in reference.PAGES.glob("*.rst"))
    tables = re.findall(r"^\.\. autosummary::\n(?:   :.*\n)+\n((?:   .*\n)+)", text + "\n", re.MULTILINE)
    names = re.findall(r"^\.\. (?:auto(?!summary)\w+|py:data):: (\w+)$", text, re.MULTILINE)
    names += " ".join(tables).split()
    names += [name for found in reference.COMPANIONS.values() for name in found]
    assert sorted(names) == sorted(gw.__all__)
    assert set(reference.COMPANIONS) <= set(names)
    assert all(inspect.getdoc(getattr(gw, name)) for name in " ".join(tables).split())


def test_members_that_the_reference_leaves_out_exist(reference):
    for name, internal in reference.INTERNAL.items():
        cls = getattr(gw, name)
        assert {
            each for each in internal.split() if not hasattr(cls, each) and each not in cls.__annotations__
        } == set()
    assert reference.own_members(gw.Copy) == ["execute"]
    assert {"to_numpy", "shape"} <= set(reference.own_members(gw.Array))
    assert "lease" not in reference.own_members(gw.Array)


DOCSTRING = """Do it.

More of it. The GPU may flush
denormals.

Parameters
----------
x : numpy.ndarray, Array or expression
    What it is done to.
kind : {"a", "b"}, default "a"
    Which.
n : int or sequence of int
device : wgpu.GPUDevice, optional
    By default `default_device()`.
keepdims : bool, default False
    Something that no other page says.
tuning : SortTuning, optional
    Said elsewhere of primitives.

Returns
-------
numpy.ndarray
    It.

Raises
------
LimitError, ArgumentError
    If there is too much.

Attributes
----------
first, last : int
    Ends.
lease : object
    Of memory; for the library's own use.

See Also
--------
execute : takes ``input``, shape (n,),
    and more, shape (n + 1,).

Notes
-----
A note.

It is old. Source: A. Author,
"Title" (2001).

Examples
--------
>>> 1 + 1
2
"""


def test_a_page_leaves_out_what_the_page_of_shared_arguments_says(reference):
    short = reference.shorten
    one = short(DOCSTRING, of_primitive=True)
    assert re.split(r"\n\n+", one.strip()) == [
        "Do it.", "More of it.", ">>> 1 + 1\n2", "``x``\n   What it is done to.",
        '``kind``\n   {"a", "b"}. Which.', "``keepdims``\n   Something that no other page says.",
        ":doc:`Others </reference/python/shared>`.", "Returns: It.", "Raises `LimitError`",
        'Source: A. Author, "Title" (2001).', ".. attribute:: first\n               last\n   :type: int", "   Ends.",
    ]  # fmt: skip
    assert "``tuning``\n   Said elsewhere" in short(DOCSTRING)
    assert "/shared" not in short(DOCSTRING, linked=False)
    alike = short("Return the k of x.\n\nParameters\n----------\na, b\n    As for `f`.\n")
    assert re.split(r"\n\n+", alike.strip()) == ["The k of x.", "Others as for `f`."]
    assert short("Return the items of `x`.").startswith("Items of `x`.")
    assert ".. attribute:: last\n   :type: int" in short(DOCSTRING, internal=["first"])
    assert "attribute" not in short(DOCSTRING, internal=["first", "last"])
    assert {"device", "out", "axis", "op", "tuning"} <= set(reference.SHARED)
    assert reference.page_text("gridwise_py.sum", "The |x| of ``a | b``.").startswith(r"The \|x\| of ``a | b``.")
    assert reference.page_text("gridwise_py.Sort.execute", "").startswith("Takes ``input``")


def _with_examples():
    """The public functions, classes, methods and properties that have examples, by name."""
    found = {}
    for name in gw.__all__:
        thing = getattr(gw, name)
        parts = {name: thing}
        if inspect.isclass(thing):
            parts |= {f"{name}.{part}": value for part, value in vars(thing).items() if not part.startswith("_")}
        for label, part in parts.items():
            if (
                inspect.isroutine(part)
                or inspect.isclass(part)
                or isinstance(part, (property, functools.cached_property))
            ):
                text = inspect.getdoc(part) or ""
                if ">>> " in text and text not in found.values():
                    found[label] = text
    return found


def _raised(name):
    """The exceptions that a docstring names, and, for each, what causes it."""
    device = gw.default_device()
    words, five, floats = (gw.asarray(np.arange(n, dtype=of), device) for n, of in ((8, "u4"), (5, "u4"), (8, "f4")))
    flags, fewer_flags = (gw.asarray(np.ones(n, dtype=bool), device) for n in (8, 5))
    other = device.create_buffer(size=64, usage=wgpu.BufferUsage.COPY_DST)

    def called(**arrays):
        return lambda: getattr(gw, name)(device, "u32").execute(**arrays)

    def made(*words, **options):
        return lambda: getattr(gw, name)(device, *words, **options)

    sort = {
        "DatatypeError": [made("complex64"), called(input=floats)],
        "ArgumentError": [made(strategy="nonsense"), made(begin_bit=9, end_bit=3)],
        "LengthError": [called(input=words, output=five)],
        "OverlapError": [called(input=words, output=words)],
    }
    pairs = {"keys": words, "values": words}
    return {
        "Scan": {
            "DatatypeError": [made("f32", gw.And), made("u31"), called(input=floats)],
            "ArgumentError": [made(kind="nonsense"), made("f32", "max", compensated=True)],
            "LengthError": [called(input=words, output=five)],
            "OverlapError": [called(input=words[:6], output=words[2:])],
        },
        "Reduce": {
            "DatatypeError": [made("f32", gw.And), made("u31"), called(input=floats)],
            "ArgumentError": [made("u32", "nonsense"), made("f32", "max", compensated=True)],
            "EmptyReductionError": [lambda: gw.Reduce(device, op="min").execute(input=words[:0])],
        },
        "Sort": sort,
        "ArgSort": sort,
        "SortPairs": {
            "DatatypeError": [made("complex64"), called(keys=words, values=floats)],
            "ArgumentError": sort["ArgumentError"],
            "LengthError": [called(keys=words, values=five), called(**pairs, output_keys=five)],
            "OverlapError": [called(**pairs, output_keys=words)],
        },
        "Select": {
            "DatatypeError": [made("u31"), called(input=floats, flags=flags)],
            "ArgumentError": [made(size=-1), made(strategy="nonsense")],
            "LengthError": [called(input=words, flags=fewer_flags)],
            "OverlapError": [called(input=words, flags=flags, output=words)],
        },
        "Array": {
            "ArgumentError": [lambda: gw.Array(words.buffer, "u32", 100)],
            "DatatypeError": [lambda: gw.Array(words.buffer, "u31"), lambda: gw.Array(b"", "u32")],
            "BufferUsageError": [
                lambda: gw.Array(words.buffer, "u32", device=gw.request_device()),
                lambda: gw.Array(other, "u32").to_numpy(),
            ],
            "ImplicitConversionError": [lambda: np.asarray(words)],
        },
        "measure": {
            "ArgumentError": [lambda: gw.measure(gw.Scan(device), mode="nonsense", input=words)],
            "DatatypeError": [lambda: gw.measure(3)],
            "TimingUnavailable": None,  # only on a device without timestamps; see tests/bench/test_measure.py
        },
        "benchmark": {
            "ArgumentError": [lambda: gw.benchmark(lambda: None, n_iters=0)],
            "DatatypeError": [lambda: gw.benchmark(3)],
        },
        "request_device": {
            "AdapterError": [lambda: gw.request_device("nonsense"), lambda: gw.request_device(1_000)],
            "DeviceError": None,  # only of a driver that is broken
            "ArgumentError": [lambda: gw.request_device(timeout_s=-1)],
            "ForkError": None,  # only in a child; see tests/backend
        },
    }[name]


@pytest.mark.parametrize(
    "name",
    ["Scan", "Reduce", "Sort", "SortPairs", "ArgSort", "Select", "Array", "measure", "benchmark", "request_device"],
)
def test_a_docstring_says_what_is_raised(device, name):
    """And has an example."""
    text, causes = inspect.getdoc(getattr(gw, name)), _raised(name)
    section = re.search(r"\nRaises\n------\n(.*?)\n\n(?=\w[\w ]*\n---|\Z)", text + "\n\n", re.DOTALL)
    assert section, "no section Raises"
    assert re.findall(r"^\w+$", section[1], re.MULTILINE) == list(causes)
    for error, ways in causes.items():
        for cause in ways or ():
            with pytest.raises(gw.GridwiseError) as caught:
                cause()
            assert type(caught.value).__name__ == error
    assert "\nExamples\n--------\n>>> " in text


@pytest.mark.parametrize(("name", "part"), [("Scan", "scan_lookback"), ("Select", "stream_lookback"),
    ("Sort", "sort_pass_lookback"), ("Reduce", "reduce_blocks"), ("Reduce", "reduce"), ("Scan", "scan")])  # fmt: skip
def test_a_docstring_names_the_sources_that_its_shader_names(name, part):
    lines = (SHADERS / f"{part}.wgsl").read_text(encoding="utf-8").splitlines()
    shader = " ".join(" ".join(line for line in lines if not line.startswith("//$")).replace("//", " ").split())
    found = re.search(r"Sources?: (.*?\))", shader) or re.search(r"the sample (\w+)", shader)
    titles = re.findall(r'"(.*?)"', found[1]) or [re.search(r"the sample (\w+)", shader)[1]]
    text = " ".join(inspect.getdoc(getattr(gw, name)).split())
    assert "Sources: " in text
    for title in titles:
        assert title in text


@pytest.mark.parametrize(("name", "text"), _with_examples().items(), ids=_with_examples())
def test_examples_in_docstrings_print_what_they_say(device, name, text):
    test = doctest.DocTestParser().get_doctest(text, {}, name, None, 0)
    said = []
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    runner.run(test, out=said.append)
    assert runner.summarize(verbose=False).failed == 0, "".join(said)
