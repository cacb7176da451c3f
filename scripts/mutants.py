"""The mutants that scripts/mutate.py tries: small changes of the text of a module or a shader.

Those of scripts/mutants.json are stored, so that two suites of tests can be compared by them. They are found by their
text, wherever it has moved. `sample` makes new ones: a number, an operator or a statement is changed.
"""

from __future__ import annotations

import ast
import json
import random
import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from functools import lru_cache
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
    kept = {place for name, (_, globs) in GROUPS.items() if name == "arguments" for place in _files(globs)}
    places = [place for place in _files(GROUPS[group][1]) if group == "arguments" or place not in kept]
    texts = {place: (ROOT / place).read_text(encoding="utf-8") for place in places}
    left = {place: list(candidates(place, text)) for place, text in texts.items()}
    rng.shuffle(places)
    for found in left.values():
        rng.shuffle(found)
    chosen: list[Mutant] = []
    while len(chosen) < count and any(left.values()):
        for place in places:
            mutant = None
            while left[place] and len(chosen) < count and mutant is None:
                mutant = _mutant(group, place, texts[place], *left[place].pop())
            chosen += [mutant] if mutant else []
    return chosen


def _files(globs: list[str]) -> list[str]:
    return sorted({path.relative_to(ROOT).as_posix() for each in globs for path in ROOT.glob(each)})


def _mutant(group: str, place: str, text: str, begin: int, end: int, new: str) -> Mutant | None:
    """The mutant in as few whole lines as stand once in the file; None if it means the same, or nothing."""
    number, first, last = text.count("\n", 0, begin) + 1, text.rfind("\n", 0, begin) + 1, text.find("\n", end)
    if _meaning(place, text[:begin] + new + text[end:]) in ("", _meaning(place, text)):
        return None
    what = f"{text[begin:end].strip()} → {new.strip() or 'nothing'}"
    while True:
        mutant = Mutant(group, place, number, text[first:last], text[first:begin] + new + text[end:last], what)
        try:
            mutant.find(text)
        except LookupError:
            first = text.rfind("\n", 0, first - 1) + 1  # with one line more before it
        else:
            return mutant


@lru_cache(maxsize=8)
def _meaning(place: str, text: str) -> str:
    """What of a text can change what it does: no comments, annotations, texts and overloads; "" if it is no code."""
    if place.endswith(".wgsl"):
        return re.sub(r"//.*", "", text)
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return ""
    for node in ast.walk(tree):
        for name in {"annotation", "returns"} & {*node._fields}:
            setattr(node, name, None)
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            node.value = ""
        if isinstance(node, ast.FunctionDef) and ast.unparse(node.body[-1]) == "...":
            node.args.defaults = node.args.kw_defaults = []
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            node.body = []
    return ast.dump(tree)


def candidates(place: str, text: str) -> Iterator[tuple[int, int, str]]:
    """Yield changes of a text, which may mean nothing: from one place to another, and what stands there instead."""
    of_module = place.endswith(".py")
    symbols = _MODULE if of_module else _SHADER
    for match in re.finditer("|".join(_pattern(symbol) for symbol in sorted(symbols, key=len, reverse=True)), text):
        yield from ((match.start(), match.end(), new) for new in symbols[match[0]])
    for match in re.finditer(r"(?<![\w.@])(?:0x[0-9a-fA-F]+|(?:0|[1-9]\d*)(\.\d+)?(e-?\d+)?)u?\b(?!\.)", text):
        if of_module or (text[match.start() - 1] != "(" and not match[1]):
            number = ast.literal_eval(match[0].rstrip("u"))
            larger = number + 1 if isinstance(number, int) else 2 * number or 1.0
            yield match.start(), match.end(), f"{larger}{'u' if match[0].endswith('u') else ''}"
    for match in re.finditer(r"^ +((?:raise\b|[\w.]+\().*)$", text if of_module else "", re.MULTILINE):
        yield match.start(1), match.end(1), "pass"


def _pattern(symbol: str) -> str:
    return (r"(?<![\w.])(?<!def )" if symbol[0].isalpha() else "") + re.escape(symbol)


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
