"""The mutants that scripts/mutate.py tries: small changes of the text of a module or a shader.

Those of scripts/mutants.json are stored, so that two suites of tests can be compared by them. They are found by their
text, wherever it has moved. `sample` makes new ones: a number, an operator or a statement is changed.
"""

from __future__ import annotations

import ast
import io
import json
import random
import re
import tokenize
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
STORED = Path(__file__).with_suffix(".json")

#: What is mutated, and how many of each group are stored. Mended faults of CHANGELOG are the group "faults".
GROUPS: dict[str, tuple[int, list[str]]] = {
    "kernels": (100, ["shaders/**/*.wgsl"]),
    "plans": (60, ["gridwise_py/planning/*.py", "gridwise_py/primitives/*.py", "gridwise_py/tuning/sort_shapes.py"]),
    "timing": (40, ["gridwise_py/timing/*.py", "gridwise_py/runtime/event.py", "gridwise_py/runtime/gpu_clock.py",
                    "gridwise_py/backend/clock.py"]),
    "statistics": (40, ["gridwise_py/bench/stats/*.py", "gridwise_py/bench/results/rounds.py",
                        "gridwise_py/bench/calibrate/classify.py"]),
    "arguments": (65, ["gridwise_py/types/*.py", "gridwise_py/functions/*.py", "gridwise_py/runtime/array.py",
                       "gridwise_py/runtime/argument*.py", "gridwise_py/runtime/chunked_array.py",
                       "gridwise_py/runtime/counts.py", "gridwise_py/runtime/shared_items.py",
                       "gridwise_py/planning/layout.py", "gridwise_py/planning/signature.py",
                       "gridwise_py/primitives/base.py", "gridwise_py/primitives/function_arguments.py",
                       "gridwise_py/primitives/custom_kernel.py"]),
    "allocator": (30, ["gridwise_py/runtime/memory.py", "gridwise_py/runtime/pinned.py",
                       "gridwise_py/runtime/transfers.py", "gridwise_py/backend/mapped_memory.py"]),
}  # fmt: skip


@dataclass
class Mutant:
    """A change of a file, and what tests made of it.

    Attributes
    ----------
    group, place, line
        The group, the file, and the line at the time.
    old, new
        Whole lines that stand once in the file, and what stands there instead.
    what
        What was changed, or which mended fault this is.
    struck
        Why no test can notice; then it is not tried.
    results
        What became of it, by the name of the suite: ``killed_by`` (a test, or None), ``seconds`` and ``tests``, the
        number that ran.
    """

    group: str
    place: str
    line: int
    old: str
    new: str
    what: str = ""
    struck: str = ""
    results: dict[str, dict] = field(default_factory=dict)

    @property
    def key(self) -> tuple[str, str, str]:
        """By what it is known."""
        return self.place, self.old, self.new

    def find(self, text: str) -> int:
        """Return where its text stands in the file; raises `LookupError` if nowhere, or more than once."""
        found = [m.start() for m in re.finditer(rf"^{re.escape(self.old)}$", text, re.MULTILINE)]
        if len(found) != 1:
            raise LookupError(f"{self.place}: the old text of a mutant stands {len(found)} times in it:\n{self.old}")
        return found[0]

    def changed(self, text: str) -> str:
        """Return the text of its file with the mutation."""
        begin = self.find(text)
        return text[:begin] + self.new + text[begin + len(self.old) :]


def read(path: Path) -> list[Mutant]:
    """Return the mutants of a file."""
    return [Mutant(**row) for row in json.loads(path.read_text(encoding="utf-8"))]


def write(path: Path, mutants: list[Mutant]) -> None:
    """Write the file, which is whole at any time."""
    part = path.with_name(path.name + ".part")
    rows = [{name: value for name, value in asdict(mutant).items() if value or name == "line"} for mutant in mutants]
    part.write_text(json.dumps(rows, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    part.replace(path)


def sample(group: str, count: int, seed: int) -> list[Mutant]:
    """Return so many mutants of a group, or all: of each file in turn, at random."""
    rng = random.Random(f"{seed} {group}")
    kept = {place for name, (_, globs) in GROUPS.items() if name == "arguments" for place in _files(globs)}
    places = [place for place in _files(GROUPS[group][1]) if group == "arguments" or place not in kept]
    left = {place: list(candidates(place)) for place in places}
    rng.shuffle(places)
    for found in left.values():
        rng.shuffle(found)
    chosen: list[Mutant] = []
    while len(chosen) < count and any(left.values()):
        for place in places:
            if left[place] and len(chosen) < count:
                begin, end, new, what = left[place].pop()
                chosen.append(_mutant(group, place, begin, end, new, what))
    return chosen


def _files(globs: list[str]) -> list[str]:
    return sorted({path.relative_to(ROOT).as_posix() for each in globs for path in ROOT.glob(each)})


def _mutant(group: str, place: str, begin: int, end: int, new: str, what: str) -> Mutant:
    """Return the mutant in as few whole lines as stand once in the file."""
    text = (ROOT / place).read_text(encoding="utf-8")
    number = text.count("\n", 0, begin) + 1
    first, last = text.rfind("\n", 0, begin) + 1, text.find("\n", end)
    while True:
        old = text[first:last]
        mutant = Mutant(group, place, number, old, text[first:begin] + new + text[end:last], what)
        try:
            mutant.find(text)
        except LookupError:
            first = text.rfind("\n", 0, first - 1) + 1  # with one line more before it
        else:
            return mutant


def candidates(place: str) -> Iterator[tuple[int, int, str, str]]:
    """Yield changes of a file: what stands from one place to another, its new text, and both for people."""
    text = (ROOT / place).read_text(encoding="utf-8")
    of_module = place.endswith(".py")
    symbols = _MODULE if of_module else _SHADER
    found: list[tuple[int, int, str]] = list(_statements(text)) if of_module else []
    code = _code_of_module(text) if of_module else _code_of_shader(text)
    for match in re.finditer("|".join(_pattern(symbol) for symbol in sorted(symbols, key=len, reverse=True)), code):
        found += [(match.start(), match.end(), new) for new in symbols[match[0]]]
    for match in re.finditer(r"(?<![\w.@])(?:0x[0-9a-fA-F]+|\d+(\.\d+)?(e-?\d+)?)u?\b(?!\.)", code):
        if of_module or (code[match.start() - 1] != "(" and not match[1]):
            number = ast.literal_eval(match[0].rstrip("u"))
            larger = number + 1 if isinstance(number, int) else 2 * number or 1.0
            found.append((match.start(), match.end(), f"{larger}{'u' if match[0].endswith('u') else ''}"))
    for begin, end, new in found:
        yield begin, end, new, f"{text[begin:end].strip()} → {new.strip() or 'nothing'}"


# Operators that are not between blanks are not arithmetic: `array<u32>`, `->`, `*pointer`, `**options`.
_BOTH: dict[str, tuple[str, ...]] = {
    " + ": (" - ",), " - ": (" + ",), " << ": (" >> ",), " >> ": (" << ",), " & ": (" | ",), " | ": (" & ",),
    " < ": (" <= ",), " <= ": (" < ",), " > ": (" >= ",), " >= ": (" > ",), " == ": (" != ",), " != ": (" == ",),
    " += ": (" -= ",), " -= ": (" += ",), "min(": ("max(",), "max(": ("min(",),
}  # fmt: skip
_SHADER = _BOTH | {
    " * ": (" / ",), " / ": (" * ",), " % ": (" / ",), " ^ ": (" | ",), " < ": (" <= ", " > "), " > ": (" >= ", " < "),
    " && ": (" || ",), " || ": (" && ",), " += ": (" -= ", " = "), "++": ("--",),
    "atomicAdd(": ("atomicOr(",), "atomicMax(": ("atomicMin(",),
    "storageBarrier();": ("",), "workgroupBarrier();": ("",),
}  # fmt: skip
_MODULE = _BOTH | {
    " * ": (" + ",), " / ": (" * ",), " // ": (" * ",), " % ": (" // ",), " and ": (" or ",), " or ": (" and ",),
    " not ": (" ",), " not in ": (" in ",), " is not ": (" is ",), " if ": (" if not ",), "any(": ("all(",),
    "all(": ("any(",), "True": ("False",), "False": ("True",),
}  # fmt: skip


def _pattern(symbol: str) -> str:
    return (r"(?<![\w.])(?<!def )" if symbol[0].isalpha() else "") + re.escape(symbol)


def _code_of_shader(text: str) -> str:
    """The text with blanks in place of comments and of lines for the template."""
    return re.sub(r"//.*", lambda found: " " * len(found[0]), text)


def _places(text: str) -> Callable[[int, int], int]:
    """Where a line and a column are in a text."""
    starts = [0, *(found.end() for found in re.finditer("\n", text))]
    return lambda line, column: starts[line - 1] + column


def _statements(text: str) -> Iterator[tuple[int, int, str]]:
    """Calls and raises that are statements of one line, to leave out."""
    place = _places(text)
    for node in ast.walk(ast.parse(text)):
        is_call = isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)
        if (is_call or isinstance(node, ast.Raise)) and node.lineno == node.end_lineno:
            yield place(node.lineno, node.col_offset), place(node.lineno, node.end_col_offset or 0), "pass"


def _code_of_module(text: str) -> str:
    """The text with blanks in place of strings, comments, annotations, overloads and what only type checkers read."""
    place = _places(text)
    spans = [
        (place(*token.start), place(*token.end))
        for token in tokenize.generate_tokens(io.StringIO(text).readline)
        if token.type in (tokenize.STRING, tokenize.COMMENT)
    ]
    for node in ast.walk(ast.parse(text)):
        parts = [getattr(node, "annotation", None), getattr(node, "returns", None)]
        is_stub = isinstance(node, ast.FunctionDef) and ast.unparse(node.body[-1]) == "..."
        is_alias = isinstance(node, ast.AnnAssign) and ast.unparse(node.annotation) == "TypeAlias"
        for_types = isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        parts += [node] if is_stub or is_alias or for_types else []
        spans += [(place(part.lineno, part.col_offset), place(part.end_lineno, part.end_col_offset))
                  for part in parts if part is not None]  # fmt: skip
    for begin, end in spans:
        text = text[:begin] + re.sub(r"[^\n]", " ", text[begin:end]) + text[end:]
    return text
