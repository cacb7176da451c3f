"""Sources: expressions as operands of a kernel, which computes their items where it reads them.

A kernel reads every operand through ``load_NAME(i)`` and ``load4_NAME(i)``. For an expression the builder declares the
accessors of its leaves, ``load_NAME_0`` and so on, and this module writes ``load_NAME`` and ``load4_NAME``. Names in
the text are numbers, so that equal programs give equal texts. Numbers are fields of `Params`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache

from ..types.program import Program, Step
from .layout import Operand

__all__ = ["Source", "SourceText", "source_text"]


_NOTHING = Program((), (), ())


_NOTHING = Program((), (), ())


@dataclass(frozen=True)
class SourceText:
    """The functions by which a kernel reads an expression.

    Attributes
    ----------
    text : str
    fields : tuple of str
        Of `Params`, besides the offsets of the leaves.
    """

    text: str
    fields: tuple[str, ...]


@dataclass(frozen=True)
class Source(Operand):
    """An expression, as a kernel reads it. Its length counts items.

    Attributes
    ----------
    program : Program
    leaves : tuple of Operand
    numbers : tuple of int
        The numbers of the expression, as words.
    first : int
        The index of its first item: in a window that of the window's.
    trusted : bool
        Whether it holds no user's WGSL.
    """

    program: Program = _NOTHING
    leaves: tuple[Operand, ...] = ()
    numbers: tuple[int, ...] = ()
    first: int = 0
    trusted: bool = True

    @property
    def parts(self) -> tuple[Operand, ...]:
        """The parts of all leaves."""
        return tuple(part for leaf in self.leaves for part in leaf.parts)

    @property
    def nbytes(self) -> int:
        """Bytes of the items of all leaves."""
        return sum(leaf.nbytes for leaf in self.leaves)

    @property
    def streams(self) -> tuple[Operand, ...]:
        """The leaves that are read at the item that is computed, and nowhere else."""
        return tuple(self.leaves[k] for k in sorted(self.program.streamed))

    def overlaps(self, other: Operand) -> bool:
        """Whether a leaf shares bytes with another operand."""
        return any(leaf.overlaps(other) for leaf in self.leaves)

    def window(self, first: int, length: int, part: Callable[[Operand], Operand]) -> Operand:
        """Return it for a range of items: its leaves are cut, unless they are read anywhere."""
        streamed = self.program.streamed
        leaves = tuple(part(leaf) if k in streamed else leaf for k, leaf in enumerate(self.leaves))
        return replace(self, length=length, leaves=leaves, first=self.first + first)

    def named_leaves(self, name: str) -> dict[str, Operand]:
        """Return the operands of the leaves by the names that they have in a kernel."""
        return {f"{name}_{k}": leaf for k, leaf in enumerate(self.leaves)}

    def params(self, name: str, fields: tuple[str, ...]) -> dict[str, int]:
        """Return the values of its fields of `Params`."""
        values = {f"{name}_number_{k}": word for k, word in enumerate(self.numbers)}
        values[f"{name}_first"] = self.first
        return {field: values[field] for field in fields}


@lru_cache(maxsize=512)
def source_text(name: str, program: Program, rows: bool) -> SourceText:
    """Return the text by which a kernel reads an expression.

    Parameters
    ----------
    name : str
        ``load_NAME`` reads it.
    program : Program
    rows : bool
        Whether the kernel loads rows of 16 bytes.
    """
    fields: dict[str, None] = {}
    lines: list[str] = []
    for lanes in (1, 4):
        body = _Function(name, program, lanes, fields)
        word = "u32" if lanes == 1 else "vec4<u32>"
        lines.append(f"fn load{'' if lanes == 1 else 4}_{name}(i: u32) -> {word} {{")
        lines += [f"  {line}" for line in body.lines()]
        lines.append("}")
    if rows:
        lines += [f"fn load_row_{name}(i: u32) -> vec4<u32> {{", f"  return load4_{name}(i);", "}"]
    head = f"// {name} is computed: {len(program.steps)} steps."
    return SourceText("\n".join([head, *lines]) + "\n", tuple(fields))


class _Function:
    """The body of ``load_NAME`` or ``load4_NAME``: one ``let`` for each step."""

    def __init__(self, name: str, program: Program, lanes: int, fields: dict[str, None]):
        self._name = name
        self._program = program
        self._lanes = lanes
        self._fields = fields

    def lines(self) -> list[str]:
        """Return the statements."""
        lines = [f"let v{k} = {self._text(step)};" for k, step in enumerate(self._program.steps)]
        result = self._program.results[0]
        lines.append(f"return {self._bits(f'v{result}', self._program.steps[result].type)};")
        return lines

    def _type(self, name: str) -> str:
        return name if self._lanes == 1 else f"vec4<{name}>"

    def _bits(self, text: str, type_name: str) -> str:
        if type_name == "u32":
            return text
        word = self._type("u32")
        return f"select({word}(0u), {word}(1u), {text})" if type_name == "bool" else f"bitcast<{word}>({text})"

    def _field(self, name: str) -> str:
        self._fields[f"{self._name}_{name}"] = None
        return f"params.{self._name}_{name}"

    def _text(self, step: Step) -> str:
        args = [f"v{k}" for k in step.args]
        kind = self._type(step.type)
        if step.kind == "leaf":
            load = f"load{'' if self._lanes == 1 else 4}_{self._name}_{step.value}(i)"
            return load if step.type == "u32" else f"bitcast<{kind}>({load})"
        if step.kind == "index":
            at = f"{self._field('first')} + i"
            return at if self._lanes == 1 else f"vec4<u32>({at}) + vec4<u32>(0u, 1u, 2u, 3u)"
        if step.kind == "number":
            if step.type == "bool":
                return f"{kind}({'true' if step.value else 'false'})"
            word = self._field(f"number_{step.value}")
            text = word if step.type == "u32" else f"bitcast<{step.type}>({word})"
            return text if self._lanes == 1 else f"{kind}({text})"
        if step.kind == "select":
            return f"select({args[2]}, {args[1]}, {args[0]})"
        if step.kind == "cast":
            return f"{kind}({args[0]})"
        return f"{args[0]} {step.kind} {args[1]}"
