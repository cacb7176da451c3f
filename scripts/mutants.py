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
from collections.abc import Iterator
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
                       "gridwise_py/primitives/base.py", "gridwise_py/functions/arguments.py",
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
    kept = {place for name, (_, globs) in GROUPS.items() if name == "arguments" for place in _places(globs)}
    places = [place for place in _places(GROUPS[group][1]) if group == "arguments" or place not in kept]
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


def _places(globs: list[str]) -> list[str]:
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
    for begin, end, new in (_of_python if place.endswith(".py") else _of_wgsl)(text):
        yield begin, end, new, f"{text[begin:end].strip()} → {new.strip() or 'nothing'}"


# ---- shaders

# Operators that are not between blanks are not arithmetic: `array<u32>`, `->`, `*pointer`.
_WGSL = {
    " + ": (" - ",), " - ": (" + ",), " * ": (" / ",), " / ": (" * ",), " % ": (" / ",),
    " << ": (" >> ",), " >> ": (" << ",), " & ": (" | ",), " | ": (" & ",), " ^ ": (" | ",),
    " < ": (" <= ", " > "), " <= ": (" < ",), " > ": (" >= ", " < "), " >= ": (" > ",),
    " == ": (" != ",), " != ": (" == ",), " && ": (" || ",), " || ": (" && ",),
    " += ": (" -= ", " = "), " -= ": (" += ",), "++": ("--",),
    "min(": ("max(",), "max(": ("min(",), "atomicAdd(": ("atomicOr(",), "atomicMax(": ("atomicMin(",),
    "storageBarrier();": ("",), "workgroupBarrier();": ("",),
}  # fmt: skip
_SYMBOL = re.compile("|".join(re.escape(symbol) for symbol in sorted(_WGSL, key=len, reverse=True)))
_NUMBER = re.compile(r"(?<![\w.@(])(?:0x[0-9a-fA-F]+|\d+)u?\b(?!\.)")


def _of_wgsl(text: str) -> Iterator[tuple[int, int, str]]:
    """Numbers and operators, outside of comments and of lines for the template."""
    begin = 0
    for line in text.splitlines(keepends=True):
        code = "" if line.lstrip().startswith("//") else line.split("//")[0]
        for found in _SYMBOL.finditer(code):
            for new in _WGSL[found[0]]:
                yield begin + found.start(), begin + found.end(), new
        for found in _NUMBER.finditer(code):
            suffix = "u" if found[0].endswith("u") else ""
            yield begin + found.start(), begin + found.end(), f"{int(found[0].rstrip('u'), 0) + 1}{suffix}"
        begin += len(line)


# ---- modules

_PYTHON = {
    "+": "-", "-": "+", "*": "+", "/": "*", "//": "*", "%": "//", "<<": ">>", ">>": "<<", "&": "|", "|": "&",
    "<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "==", "+=": "-=", "-=": "+=",
    "and": "or", "or": "and", "True": "False", "False": "True", "min": "max", "max": "min", "any": "all", "all": "any",
    "if": "if not", "not": "",
}  # fmt: skip
_LEFT_OPERAND = (tokenize.NAME, tokenize.NUMBER, tokenize.STRING)


def _of_python(text: str) -> Iterator[tuple[int, int, str]]:
    """Numbers, operators and words of expressions, calls and raises that are statements; no annotations."""
    starts = [0]
    for line in text.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))

    def place(position: tuple[int, int]) -> int:
        return starts[position[0] - 1] + position[1]

    skipped = set()
    for node in ast.walk(ast.parse(text)):
        for part in (getattr(node, "annotation", None), getattr(node, "returns", None)):
            if part is not None:
                skipped.update(
                    range(part.lineno * 1000 + part.col_offset, part.end_lineno * 1000 + part.end_col_offset)
                )
        is_stub = isinstance(node, ast.FunctionDef) and ast.unparse(node.body[-1]) == "..."  # an overload
        if is_stub or (isinstance(node, ast.AnnAssign) and ast.unparse(node.annotation) == "TypeAlias"):
            skipped.update(range(node.lineno * 1000, node.end_lineno * 1000 + 999))
        is_call = isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)
        if (is_call or isinstance(node, ast.Raise)) and node.lineno == node.end_lineno:
            yield place((node.lineno, node.col_offset)), place((node.lineno, node.end_col_offset)), "pass"
    before = None
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        (row, column), found = token.start, token.string
        if row * 1000 + column not in skipped and found in _PYTHON and token.type in (tokenize.OP, tokenize.NAME):
            is_binary = before.type in _LEFT_OPERAND or before.string in (")", "]")
            is_word = found.isalpha()
            rest = text[place(token.end) :]
            fits = before.string not in ("*", ".", "is") if is_word else is_binary and rest[:1] == " "
            if found in ("min", "max", "any", "all"):
                fits = fits and rest[:1] == "(" and before.string != "def"
            if found == "not":
                fits = fits and not rest.startswith(" in ")
            if found == "if":
                fits = fits and not rest.startswith(" TYPE_CHECKING")
            if fits:
                yield place(token.start), place(token.end) + (found == "not"), _PYTHON[found]
        elif row * 1000 + column not in skipped and token.type == tokenize.NUMBER:
            value = ast.literal_eval(found)
            yield place(token.start), place(token.end), repr(value + 1 if isinstance(value, int) else 2 * value or 1.0)
        if token.type not in (tokenize.NL, tokenize.COMMENT):
            before = token
