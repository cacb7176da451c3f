"""Sinks: outputs into which a kernel stores an expression of its results.

A kernel writes every operand through ``store_NAME`` and ``store4_NAME``, of a struct through ``store_acc_NAME`` and
``store4_acc_NAME``. For an expression of the results the builder declares the accessors of the array as
``store_NAME_0`` and so on, and this module writes those that the kernel calls.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from typing import Any

from ..types.program import Program
from ..types.wgsl_function import function_texts
from ..types.wide_text import WIDE_TYPES
from .layout import Operand
from .source import SourceText, Writer, four_items, item_type, joined, lane_of

_NOTHING = Program((), (), ())


@dataclass(frozen=True)
class Sink(Operand):
    """An output that takes an expression of a kernel's results.

    Attributes
    ----------
    program : Program
        Its leaves are the words of a result.
    words : int
        Of a result, where that is a struct; 0 for a number.
    numbers, scalars : tuple of int
        As in `Source`.
    first : int
        The index of its first item: in a window that of the window's.
    kind : str
        The WGSL type of a result that is a struct.
    """

    program: Program = _NOTHING
    words: int = 0
    numbers: tuple[int, ...] = ()
    scalars: tuple[int, ...] = ()
    first: int = 0
    kind: str = "Acc"

    @classmethod
    def of(cls, operand: Operand, **values: Any) -> Sink:
        """Return an operand as a sink."""
        return cls(**{each.name: getattr(operand, each.name) for each in fields(Operand)}, **values)

    @property
    def array(self) -> Operand:
        """The array itself."""
        return Operand(**{each.name: getattr(self, each.name) for each in fields(Operand)})

    @property
    def streams(self) -> tuple[tuple[Operand, int], ...]:
        """The array; windows count the words of results."""
        return ((self.array, max(self.words, 1)),)

    def window(self, first: int, length: int, part: Callable[[Operand, int, int], Operand]) -> Operand:
        """Return it for a range of results."""
        words = max(self.words, 1)
        own = {each.name: getattr(self, each.name) for each in fields(self) if each not in fields(Operand)}
        cut = part(self.array, first // words, length // words)
        return replace(Sink.of(cut, **own), first=self.first + first // words)

    def params(self, name: str, wanted: tuple[str, ...]) -> dict[str, int]:
        """Return the values of its fields of `Params`."""
        values = {f"{name}_first": self.first}
        values |= {f"{name}_number_{k}": word for k, word in enumerate(self.numbers)}
        values |= {f"{name}_scalar_{k}": word for k, word in enumerate(self.scalars)}
        return {field: values[field] for field in wanted}


class _SinkWriter(Writer):
    """Writes the expression of one result, or of four."""

    def __init__(
        self, name: str, program: Program, words: int, lanes: int, found: dict[str, None], functions: Any, pairs: bool
    ):
        super().__init__(name, program, lanes, found, functions, pairs)
        self._words = words

    def _leaf_word(self, k: int, lanes: int) -> str:
        """Return the bits of a word of the result."""
        if not self._words:
            return "x"
        word = f"[{k}]" if self._words > 1 else ""
        return f"x{word}" if lanes == 1 else f"vec4<u32>({', '.join(f'x.{lane}{word}' for lane in 'xyzw')})"

    def _loaded(self, step: Any, position: Any) -> str:
        bits = self._leaf_word(step.value, position.lanes)
        if step.type in WIDE_TYPES:
            return self._wide(step.type, bits)
        return bits if step.type == "u32" else f"bitcast<{position.type(step.type)}>({bits})"


@lru_cache(maxsize=512)
def sink_text(name: str, program: Program, words: int, of: str = "Acc", *, pairs: bool = False) -> SourceText:
    """Return the text by which a kernel stores an expression of its results; see `source_text`."""
    found: dict[str, None] = {}
    functions, names = function_texts(name, program)
    if program.is_wide:
        return _wide_sink_text(
            name, program, words, functions, _SinkWriter(name, program, words, 1, found, names, pairs)
        )
    lines = [f"// {name} is computed from the results in {len(program.steps)} steps.", *functions]
    for lanes in (1, 4) if of == "Acc" else (1,):  # there is no type of four others
        four = "" if lanes == 1 else "4"
        kind = ("Quad" if four else of) if words else ("vec4<u32>" if four else "u32")
        writer = _SinkWriter(name, program, words, lanes, found, names, pairs)
        body, bits = writer.bits()
        lines.append(f"fn store{four}{'_acc' if words else ''}_{name}(i: u32, x: {kind}) {{")
        lines += [*(f"  {line}" for line in body), f"  store{four}_{name}_0(i, {bits[0]});", "}"]
    return SourceText("\n".join(lines) + "\n", tuple(found))


def _wide_sink_text(name: str, program: Program, words: int, functions: list[str], writer: _SinkWriter) -> SourceText:
    """Return the text for an expression with numbers of 8 bytes: the function of one result, and its calls."""
    body, bits = writer.bits()
    result = "u32" if not program.leaves else program.leaves[0].datatype
    is_wide = program.types[0] in WIDE_TYPES
    one, four = ("Acc", "Quad") if words else (item_type(result), four_items(item_type(result)))
    lanes = [f"x.{lane}" if words else lane_of("x", result, k) for k, lane in enumerate("xyzw")]
    given = item_type("u64" if is_wide else "u32")
    calls = [f"item_{name}(i + {k}u, {lane})" for k, lane in enumerate(lanes)]
    acc = "_acc" if words else ""
    lines = [
        f"// {name} is computed from the results in {len(program.steps)} steps.", *functions,
        f"fn item_{name}(i: u32, x: {one}) -> {given} {{", *(f"  {line}" for line in body), f"  return {bits[0]};", "}",
        f"fn store{acc}_{name}(i: u32, x: {one}) {{ store_{name}_0(i, item_{name}(i, x)); }}",
        f"fn store4{acc}_{name}(i: u32, x: {four}) {{ store4_{name}_0(i, {joined(given, calls)}); }}",
    ]  # fmt: skip
    return SourceText("\n".join(lines) + "\n", tuple(writer.fields))
