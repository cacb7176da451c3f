"""What stands in a module or a shader, changed in one place at a time: the mutants that scripts/mutate.py tries.

Python modules are mutated by cosmic-ray's operators. No such tool knows WGSL, so that its numbers and operators are
changed by a list of patterns here.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent

# Operators that are not between blanks are not arithmetic: `array<u32>`, `->`, `*pointer`.
_OPERATORS = {
    " + ": (" - ",), " - ": (" + ",), " * ": (" / ",), " / ": (" * ",), " % ": (" / ",),
    " << ": (" >> ",), " >> ": (" << ",), " & ": (" | ",), " | ": (" & ",), " ^ ": (" | ",),
    " < ": (" <= ", " > "), " <= ": (" < ",), " > ": (" >= ", " < "), " >= ": (" > ",),
    " == ": (" != ",), " != ": (" == ",), " && ": (" || ",), " || ": (" && ",),
    " += ": (" -= ", " = "), " -= ": (" += ",), "++": ("--",),
    "min(": ("max(",), "max(": ("min(",), "atomicAdd(": ("atomicOr(",), "atomicMax(": ("atomicMin(",),
    "storageBarrier();": ("",), "workgroupBarrier();": ("",),
}  # fmt: skip
_SYMBOL = re.compile("|".join(re.escape(symbol) for symbol in sorted(_OPERATORS, key=len, reverse=True)))
_NUMBER = re.compile(r"(?<![\w.@(])(?:0x[0-9a-fA-F]+|\d+)u?\b(?!\.)")


class Mutant(NamedTuple):
    """A file, a line of it, what stood there and stands there now, and the whole new text."""

    place: str
    line: int
    old: str
    new: str
    text: str

    @property
    def key(self) -> tuple[str, int, str, str]:
        """By what a mutant is known from run to run."""
        return self.place, self.line, self.old, self.new


def _mutant(place: str, text: str, changed: str) -> Mutant:
    pairs = zip(text.splitlines(), changed.splitlines(), strict=False)
    number, (old, new) = next((i, pair) for i, pair in enumerate(pairs, 1) if pair[0] != pair[1])
    return Mutant(place, number, old.strip(), new.strip(), changed)


def wgsl_mutants(place: str) -> Iterator[Mutant]:
    """Every number and operator of a shader, outside of comments and of lines for the template."""
    text = (ROOT / place).read_text(encoding="utf-8")
    begin = 0
    for line in text.splitlines(keepends=True):
        code = "" if line.lstrip().startswith("//") else line.split("//")[0]
        for found in _SYMBOL.finditer(code):
            for other in _OPERATORS[found[0]]:
                yield _mutant(place, text, text[: begin + found.start()] + other + text[begin + found.end() :])
        for found in _NUMBER.finditer(code):
            value = int(found[0].rstrip("u"), 0) + 1
            other = f"{value}u" if found[0].endswith("u") else str(value)
            yield _mutant(place, text, text[: begin + found.start()] + other + text[begin + found.end() :])
        begin += len(line)


def python_mutants(place: str) -> Iterator[Mutant]:
    """What cosmic-ray makes of a module, but for annotations, which nothing runs, and what is no Python."""
    from cosmic_ray import plugins
    from cosmic_ray.mutating import mutate_code

    text = (ROOT / place).read_text(encoding="utf-8")
    original = _without_annotations(text)
    for name in plugins.operator_names():
        # Of the many that replace one operator by another, a few; those of variables want to be told which.
        if "Variable" in name or ("Operator_" in name and not _is_wanted(name)):
            continue
        for occurrence in range(10_000):
            changed = mutate_code(text, plugins.get_operator(name)(), occurrence)
            if changed is None:
                break
            if (now := _without_annotations(changed)) is not None and now != original:
                mutant = _mutant(place, text, changed)
                if "/," not in mutant.new:  # the star in a signature, which is no multiplication
                    yield mutant


def _without_annotations(text: str) -> str | None:
    """Return what runs of a module, None if it is no Python."""
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return None
    for node in ast.walk(tree):
        for name in ("annotation", "returns"):
            if getattr(node, name, None) is not None:
                setattr(node, name, ast.Constant(value=None))
    return ast.dump(tree)


def _is_wanted(name: str) -> bool:
    near = "Add_Sub Sub_Add Mul_Div Div_Mul FloorDiv_Mul Mod_Mul LShift_RShift RShift_LShift BitAnd_BitOr BitOr_BitAnd"
    compare = "Eq_NotEq NotEq_Eq Lt_LtE LtE_Lt Gt_GtE GtE_Gt Lt_Gt Gt_Lt Is_IsNot IsNot_Is"
    return name.partition("Operator_")[2] in {*near.split(), *compare.split()}
