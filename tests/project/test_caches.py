"""What is remembered between calls stands in the table of the architecture page, with its limit."""

import ast
import functools
import re
from pathlib import Path

import pytest

from helpers.paths import ROOT

PACKAGE = ROOT / "gridwise_py"
PAGE = ROOT / "docs" / "contribute" / "architecture.md"
#: What is kept for the whole process without being a cache, and why.
STATE = {
    "device": "the default device; warnings that were given",
    "registry": "all primitives, set once",
    "own_files": "the workloads of a user's file",
    "benchmarked": "the benchmarks of a file that is imported now",
    "experiments": "all experiments, set once",
    "queues": "whether it was said that a first call compiles",
    "datatype": "all datatypes, set once",
    "device_state": "the devices that live",
    "mapped_memory": "buffers whose mapping is under way",
    "files": "the standard output while JSON goes there",
    "worker": "Dask: a client's GPUs, names of Arrays that live",
    "shared": "Dask: which processes share memory",
    "stages": "Dask: the last stages, for its page",
}
_EMPTY = frozenset(
    (
        "OrderedDict",
        "defaultdict",
        "deque",
        "dict",
        "list",
        "set",
        "local",
        "WeakKeyDictionary",
        "WeakSet",
        "WeakValueDictionary",
    )
)


def _name(node: ast.expr) -> str:
    while isinstance(node, (ast.Call, ast.Subscript)):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def _is_empty(value: ast.expr | None) -> bool:
    """Whether an expression is a container without items, to be filled later."""
    if isinstance(value, (ast.Dict, ast.List, ast.Set)):
        return not ast.unparse(value).strip("{}[]")
    return isinstance(value, ast.Call) and _name(value) in _EMPTY


def _is_bounded_by_one(decorator: ast.expr) -> bool:
    return isinstance(decorator, ast.Call) and any(
        word.arg == "maxsize" and ast.unparse(word.value) == "1" for word in decorator.keywords
    )


def remembers(text: str) -> list[str]:
    """Return what a module keeps between calls: cached functions, containers of its own, objects of a device, and
    containers of which the oldest entry goes.
    """
    found = []
    tree = ast.parse(text)
    for node in tree.body:
        if isinstance(node, (ast.Assign, ast.AnnAssign)) and _is_empty(node.value):
            found.append(ast.unparse(node).split("=")[0].strip())
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            found += [
                f"{node.name}()"
                for decorator in node.decorator_list
                if _name(decorator) in ("lru_cache", "cache")
                and not _is_bounded_by_one(decorator)
                and (node.args.args or node.args.kwonlyargs)
            ]
        elif isinstance(node, ast.Call) and _name(node) == "cached" and node.args:
            found.append(f"cached({ast.unparse(node.args[0])})")
        elif isinstance(node, ast.Call) and _name(node) == "pop" and node.args and _name(node.args[0]) == "next":
            found.append(ast.unparse(node.func))
    return found


@functools.cache
def _remembered() -> dict[Path, list[str]]:
    """What each module remembers."""
    return {path: remembers(path.read_text(encoding="utf-8")) for path in PACKAGE.rglob("*.py")}


def _tabled() -> set[str]:
    table = PAGE.read_text(encoding="utf-8").split("## What is remembered where")[1].split("\n## ")[0]
    rows = [row.rsplit("|", 2)[-2] for row in table.splitlines() if row.startswith("|")]
    return {name for row in rows for name in re.findall(r"`(\w+)`", row)}


def test_each_cache_stands_in_the_table():
    tabled = _tabled()
    unsaid = {
        path.relative_to(ROOT).as_posix(): names
        for path, names in _remembered().items()
        if names and path.stem not in tabled | STATE.keys()
    }
    assert unsaid == {}, "a cache that the table of the architecture page lacks, or state that STATE lacks"


def test_the_table_names_modules_that_there_are():
    stems = {path.stem for path in PACKAGE.rglob("*.py")}
    assert _tabled() <= stems
    remembering = {path.stem for path, names in _remembered().items() if names}
    assert STATE.keys() <= remembering


@pytest.mark.parametrize(
    "text",
    [
        "_seen = {}", "_seen: dict[str, int] = {}", "_of = WeakKeyDictionary()", "_local = threading.local()",
        "@lru_cache(maxsize=64)\ndef f(x): ...", "@functools.cache\ndef f(x): ...",
        "class A:\n def f(self): context.cached('k', make)",
        "def f(kept):\n    kept.pop(next(iter(kept)))",
    ],
)  # fmt: skip
def test_a_cache_is_seen(text):
    assert remembers(text)


@pytest.mark.parametrize("text", ["A = {'x': 1}", "@lru_cache(maxsize=1)\ndef f(): ...", "def f():\n    found = {}"])
def test_what_is_no_cache_is_not(text):
    assert not remembers(text)
