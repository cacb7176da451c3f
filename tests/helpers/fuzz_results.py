"""Feeds the readers of results files with what they never wrote.

As a program, under atheris (coverage guides what is tried; `make check-fuzz` installs it):
``PYTHONPATH=tests python -m helpers.fuzz_results [-max_total_time=300] [CORPUS-FOLDER …]``. Options are libFuzzer's.
The input that ends it is written to ``crash-…``; give that file to see it again.

Whatever the bytes are, reading them gives a document that the library's other commands take, or a `BadResultsFile`.
"""

from __future__ import annotations

import contextlib
import copy
import io
import json
import random
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

from helpers.page_files import page_file, raw_result, two_blocks
from helpers.paths import RESULTS
from helpers.results import header, loaded, measurement

# What stands where something else should.
_ODD = [
    None, True, False, 0, 1, -1, 2**31, 2**63, -(2**70), 1e308, -1e-320, 0.5, "", "u32", "\x1b[31m", "[red]x[/red]",
    "</script><script>alert(1)</script>", "\ud800", "\x00", "../../x", "🧨" * 9, [], [None], [[]], {},
    {"": None}, "NaN",
]  # fmt: skip


def files(largest_bytes: int = 400_000) -> list[bytes]:
    """Return the content of real results files."""
    found = sorted(RESULTS.rglob("*.json"))
    return [path.read_bytes() for path in found if path.stat().st_size <= largest_bytes]


def mutate(document: Any, rng: random.Random, times: int = 1) -> Any:
    """Return a document in which values were replaced, dropped, doubled, exchanged or renamed."""
    document = copy.deepcopy(document)
    for _ in range(times):
        node: Any = document
        # Somewhere down: a few steps, so that what many entries share is reached as often as what is deep.
        for _ in range(rng.randrange(9)):
            below = list(node.values() if isinstance(node, dict) else node if isinstance(node, list) else ())
            below = [value for value in below if isinstance(value, (dict, list)) and value]
            if not below:
                break
            node = rng.choice(below[:3] + below[-2:] + [rng.choice(below)])
        if not isinstance(node, (dict, list)) or not node:
            continue
        key = rng.choice(list(node)) if isinstance(node, dict) else rng.randrange(len(node))
        kind = rng.randrange(6)
        if kind == 0:
            del node[key]
        elif kind == 1:
            other = rng.choice(list(node)) if isinstance(node, dict) else rng.randrange(len(node))
            node[key], node[other] = node[other], node[key]
        elif kind == 2 and isinstance(node, dict):
            node[rng.choice(["", "n", "mode", "ticks", "\x1b]0;x\x07", *node])] = node.pop(key)
        elif kind == 3 and isinstance(node[key], (int, float)):
            node[key] = rng.choice([-node[key], node[key] * 10**12, node[key] + 1, float(node[key]), node[key] / 3])
        elif kind == 4 and isinstance(node, list):
            node.insert(key, node[key])
        else:
            node[key] = copy.deepcopy(rng.choice(_ODD))
    return document


def try_document(content: bytes) -> bool:
    """Read, and hand on what was read: to comparing, tables, frames and pictures' data. Return whether it was taken."""
    from rich.console import Console

    from gridwise_py.bench.analysis.compare import compare
    from gridwise_py.bench.report.comparison import render, render_rich
    from gridwise_py.bench.results.reader import parse
    from gridwise_py.errors import BadResultsFile
    from gridwise_py.storage.json_files import json_text

    try:
        document = parse(content, "fuzzed.json")
    except BadResultsFile as error:
        if len(str(error)) > 2000:
            raise AssertionError("the message repeats the file") from error
        return False
    text = json_text(document.to_json())
    if json.loads(content)["schema"] == "gridwise.bench":
        assert json.loads(text) == json.loads(content), "it is written as it was read"
    parse(text.encode("utf-8", "surrogatepass").replace(b"\xed\xa0\x80", b"?"), "again.json")
    found = compare(document, document, force=True)
    for form in ("table", "markdown", "json", "junit"):
        render(found, form)
    render_rich(found, Console(file=io.StringIO(), force_terminal=True, width=100))
    return True


def try_ticks(content: bytes) -> bool:
    """Read timestamps from an archive; return whether it was taken."""
    from gridwise_py.bench.results.entries import result_of
    from gridwise_py.bench.results.model import TicksReference
    from gridwise_py.bench.results.ticks import read_ticks
    from gridwise_py.errors import BadResultsFile

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.json"
        path.with_name("run.ticks.npz").write_bytes(content)
        reference = TicksReference(array="ticks_0", sha256="0" * 64)
        result = replace(result_of(measurement()), ticks=reference, samples=(), kernels=())
        document = loaded(header(ticks_file="run.ticks.npz"))
        try:
            read_ticks(path, document, result)
        except BadResultsFile:
            return False
    return True


def _mutator(data: bytes, max_size: int, seed: int) -> bytes:
    """LibFuzzer's own mutation of the bytes, or one of the document."""
    import atheris

    rng = random.Random(seed)
    if rng.random() < 0.15:
        return atheris.Mutate(data, max_size)
    with contextlib.suppress(ValueError, RecursionError):
        found = json.dumps(mutate(json.loads(data), rng, rng.choice([1, 1, 2, 4]))).encode()
        if len(found) <= max_size:
            return found
    return atheris.Mutate(data, max_size)


def main() -> None:
    """Fuzz until libFuzzer's options say stop."""
    try:
        import atheris
    except ImportError:
        sys.exit("this needs atheris (Linux, Python 3.11 to 3.13): python -m pip install -c constraints.txt atheris")
    with atheris.instrument_imports(include=["gridwise_py.bench"]):
        from gridwise_py.bench.report import comparison as compare_render  # noqa: F401
        from gridwise_py.bench.results import reader, schema, writer  # noqa: F401

    def one(data: bytes) -> None:
        if data[:2] == b"PK":
            try_ticks(data)
        else:
            try_document(data)

    with tempfile.TemporaryDirectory(prefix="gridwise-corpus-") as folder:
        page = json.dumps(page_file([raw_result(two_blocks(count=3))])).encode()
        for i, content in enumerate([page, *small_files()]):
            (Path(folder) / f"real-{i}").write_bytes(content)
        for path in sorted(RESULTS.rglob("*.npz")):
            (Path(folder) / path.name).write_bytes(path.read_bytes())
        atheris.Setup([*sys.argv, "-max_len=60000", "-timeout=60", folder], one, custom_mutator=_mutator)
        atheris.Fuzz()


def small_files() -> list[bytes]:
    """Return real files with but a few results and samples: what is small is tried often."""
    found = []
    for content in files(largest_bytes=2_000_000):
        document = json.loads(content)
        if document.get("schema") == "gridwise.bench":
            document["results"] = document["results"][:2]
            for entry in document["results"]:
                entry["samples"] = entry["samples"][:3]
            content = json.dumps(document).encode()
        if len(content) < 60_000:
            found.append(content)
    return found


if __name__ == "__main__":
    main()
