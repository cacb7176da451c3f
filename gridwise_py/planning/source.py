"""Sources: expressions as operands of a kernel, which computes their items where it reads them.

A kernel reads every operand through ``load_NAME(i)`` and ``load4_NAME(i)``. For an expression the builder declares the
accessors of its leaves, ``load_NAME_0`` and so on, and this module writes ``load_NAME`` and ``load4_NAME``: the bits of
a value, bools as 0 and 1. Of a struct it writes ``load_acc_NAME`` and ``load4_acc_NAME`` (lib/accumulators.wgsl).

Names in the text are numbers, so equal programs give equal texts. Numbers, lengths and the first item of a window are
fields of `Params`. Operators serve four items at once; what is read at other items, and functions in WGSL, go one by
one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import lru_cache

from ..types.datatype import STORAGE_DATATYPES
from ..types.operations import operation_text
from ..types.program import Program, Spread, Step
from ..types.wgsl_function import function_texts
from .layout import Operand

_NOTHING = Program((), (), ())
_LANES = "xyzw"


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
    """An expression, as a kernel reads it. Its length counts words: an item of a struct has several.

    Attributes
    ----------
    program : Program
    leaves : tuple of Operand
    numbers, scalars : tuple of int
        The numbers of the expression, and those that a call gave, as words.
    first, end : int
        The index of its first item, in a window that of the window's; and that of the last one of all.
    is_struct : bool
        Whether kernels read its items as accumulators.
    is_pair : bool
        Whether its two results are the words of one item of 8 bytes, the low one first, which are read one by one.
    """

    program: Program = _NOTHING
    leaves: tuple[Operand, ...] = ()
    numbers: tuple[int, ...] = ()
    scalars: tuple[int, ...] = ()
    first: int = 0
    end: int = 0
    is_struct: bool = False
    is_pair: bool = False

    @property
    def parts(self) -> tuple[Operand, ...]:
        """The parts of all leaves."""
        return tuple(part for leaf in self.leaves for part in leaf.parts)

    @property
    def nbytes(self) -> int:
        """Bytes of the items of all leaves."""
        return sum(leaf.nbytes for leaf in self.leaves)

    @property
    def words(self) -> int:
        """How much of its length an item is: its words, but for a pair."""
        return 1 if self.is_pair else len(self.program.results)

    @property
    def streams(self) -> tuple[tuple[Operand, int], ...]:
        """The leaves that are read at the item that is computed, and nowhere else."""
        return tuple((self.leaves[k], self.words) for k in sorted(self.program.streamed))

    def overlaps(self, other: Operand) -> bool:
        """Whether a leaf shares bytes with another operand."""
        return any(leaf.overlaps(other) for leaf in self.leaves)

    def window(self, first: int, length: int, part: Callable[[Operand, int, int], Operand]) -> Operand:
        """Return it for a range of items: its leaves are cut, unless they are read anywhere."""
        streamed, words = self.program.streamed, self.words
        leaves = tuple(
            part(leaf, first // words, length // words) if k in streamed else leaf for k, leaf in enumerate(self.leaves)
        )
        return replace(self, length=length, leaves=leaves, first=self.first + first // words)

    def named_leaves(self, name: str) -> dict[str, Operand]:
        """Return the operands of the leaves by the names that they have in a kernel."""
        return {f"{name}_{k}": leaf for k, leaf in enumerate(self.leaves)}

    def params(self, name: str, fields: tuple[str, ...]) -> dict[str, int]:
        """Return the values of its fields of `Params`."""
        values = {f"{name}_first": self.first, f"{name}_end": self.end}
        values |= {f"{name}_number_{k}": word for k, word in enumerate(self.numbers)}
        values |= {f"{name}_scalar_{k}": word for k, word in enumerate(self.scalars)}
        for k, leaf in enumerate(self.leaves):
            values[f"{name}_last_{k}"] = max(leaf.length // self.program.leaves[k].components, 1) - 1
        return {field: values[field] for field in fields}


@lru_cache(maxsize=512)
def source_text(name: str, program: Program, is_struct: bool, rows: bool, is_pair: bool = False) -> SourceText:
    """Return the text by which a kernel reads an expression.

    Parameters
    ----------
    name : str
        ``load_NAME`` reads it.
    program : Program
    is_struct : bool
        Whether it reads accumulators.
    rows : bool
        Whether the kernel loads rows of 16 bytes.
    is_pair : bool
        Whether it reads two words as one item.
    """
    fields: dict[str, None] = {}
    functions, names = function_texts(name, program)
    lines = [f"// {name} is computed in {len(program.steps)} steps.", *functions]
    for lanes in (1,) if is_pair else (1, 4):
        one = lanes == 1
        writer = Writer(name, program, lanes, fields, names)
        if is_struct:
            lines.append(f"fn load{'' if one else 4}_acc_{name}(i: u32) -> {'Acc' if one else 'Quad'} {{")
            body = writer.struct()
        elif is_pair:
            lines.append(f"fn load_{name}(i: u32) -> vec2<u32> {{")
            before, bits = writer.bits()
            body = [*before, f"return vec2<u32>({', '.join(bits)});"]
        else:
            lines.append(f"fn load{'' if one else 4}_{name}(i: u32) -> {'u32' if one else 'vec4<u32>'} {{")
            body = writer.single()
        lines += [*(f"  {line}" for line in body), "}"]
    if rows and not is_struct:
        lines += [f"fn load_row_{name}(i: u32) -> vec4<u32> {{", f"  return load4_{name}(i);", "}"]
    return SourceText("\n".join(lines) + "\n", tuple(fields))


@dataclass(frozen=True)
class _Position:
    """Where steps are computed.

    Attributes
    ----------
    at : str
        The text of the item's index in the whole array.
    end : str
        That of the last item; empty where there is no end.
    lanes : int
        Of 4, also the three items behind it.
    is_root : bool
        Whether it is the item that the kernel asked for, whose index in the window is ``i``.
    """

    at: str
    end: str
    lanes: int = 1
    is_root: bool = False

    def type(self, name: str) -> str:
        """Return the type of values."""
        return name if self.lanes == 1 else f"vec4<{name}>"


class Writer:
    """Writes the body of a function: one ``let`` for each step at each position."""

    def __init__(self, name: str, program: Program, lanes: int, fields: dict[str, None], functions: dict[object, str]):
        self._name = name
        self._program = program
        self._fields = fields
        self._functions = functions
        self._lines: list[str] = []
        self._values: dict[tuple[object, str], str] = {}
        self._root = _Position("at", "", lanes, is_root=True)

    def single(self) -> list[str]:
        """Return the statements that return the bits of one result."""
        (bits,) = self._bits()
        return [*self._lines, f"return {bits};"]

    def struct(self) -> list[str]:
        """Return the statements that return an accumulator, or four."""
        bits = self._bits()
        if self._root.lanes == 1:
            return [*self._lines, f"return Acc({', '.join(bits)});"]
        words = [self._let(each) for each in bits]
        lanes = (f"Acc({', '.join(f'{word}.{lane}' for word in words)})" for lane in _LANES)
        return [*self._lines, f"return Quad({', '.join(lanes)});"]

    def bits(self) -> tuple[list[str], list[str]]:
        """Return the statements that compute the results, and the texts of their bits."""
        bits = self._bits()
        return self._lines, bits

    def _bits(self) -> list[str]:
        found: list[str] = []
        for k, value in zip(self._program.results, self._at(self._program.results, self._root), strict=True):
            kind, word = self._program.steps[k].type, self._root.type("u32")
            if kind == "bool":
                found.append(f"select({word}(0u), {word}(1u), {value})")
            else:
                found.append(value if kind == "u32" else f"bitcast<{word}>({value})")
        return found

    def _let(self, text: str) -> str:
        name = f"v{len(self._lines)}"
        self._lines.append(f"let {name} = {text};")
        return name

    def _shared(self, key: object, position: _Position, text: Callable[[], str]) -> str:
        """Return the name of a value that several steps may need."""
        found = self._values.get((key, position.at))
        if found is None:
            found = self._values[key, position.at] = self._let(text())
        return found

    def _field(self, name: str) -> str:
        self._fields[f"{self._name}_{name}"] = None
        return f"params.{self._name}_{name}"

    def _index(self, position: _Position) -> str:
        """Return the index of the (first) item in the whole array."""
        if not position.is_root:
            return position.at
        return self._shared("index", position, lambda: f"{self._field('first')} + i")

    def _end(self, position: _Position) -> str:
        return self._field("end") if position.is_root else position.end

    def _at(self, roots: Iterable[int], position: _Position) -> list[str]:
        """Return the names of the values of steps at a position."""
        roots = list(roots)
        for k in self._program.within(roots):
            if (k, position.at) not in self._values:
                text = self._step(self._program.steps[k], position)
                self._values[k, position.at] = self._let(text)
        return [self._values[k, position.at] for k in roots]

    def _step(self, step: Step, position: _Position) -> str:
        kind = position.type(step.type)
        if step.kind in ("leaf", "component"):
            return self._loaded(step, position)
        if step.kind == "spread":
            return self._repeated(step, position)
        if step.kind == "index":
            at = self._index(position)
            return at if position.lanes == 1 else f"vec4<u32>({at}) + vec4<u32>(0u, 1u, 2u, 3u)"
        if step.kind in ("number", "scalar"):
            if step.type == "bool":
                return f"{kind}({'true' if step.value else 'false'})"
            word = self._field(f"{step.kind}_{step.value}")
            text = word if step.type == "u32" else f"bitcast<{step.type}>({word})"
            return text if position.lanes == 1 else f"{kind}({text})"
        if step.kind == "gather":
            return self._gathered(step, position)
        if step.kind in ("previous", "next", "flip"):
            return self._moved(step, position)
        args = [self._values[k, position.at] for k in step.args]
        if step.kind == "function":
            return self._called(self._functions[step.value], kind, args, position)
        takes = self._program.steps[step.args[0]].type
        return operation_text(step.kind, step.type, takes, args, position.lanes)

    def _called(self, function: str, kind: str, args: list[str], position: _Position) -> str:
        if position.lanes == 1:
            return f"{function}({', '.join(args)})"
        calls = (f"{function}({', '.join(f'{a}.{lane}' for a in args)})" for lane in _LANES)
        return f"{kind}({', '.join(calls)})"

    # ---- leaves

    def _loaded(self, step: Step, position: _Position) -> str:
        if step.kind == "component":
            return self._component(step, position)
        load, datatype = f"{self._name}_{step.value}", self._program.leaves[step.number].datatype
        # A leaf that is read at other items, too, is bound as a whole.
        at = "i" if position.is_root and step.value in self._program.streamed else self._index(position)
        if position.lanes == 1:
            return _widened(f"load_{load}({at})", datatype, 1)
        return _widened(self._quad(load, at, position), datatype, 4)

    def _quad(self, load: str, at: str, position: _Position) -> str:
        return self._shared(("quad", load, at), position, lambda: f"load4_{load}({at})")

    def _component(self, step: Step, position: _Position) -> str:
        leaf, place = step.number, step.component
        form, load, at = self._program.leaves[leaf], f"{self._name}_{leaf}", self._index(position)
        count = form.components
        if position.lanes == 1:
            return _widened(f"load_{load}({count}u * {at} + {place}u)", form.datatype, 1)
        # Four items are `count` vec4.
        rows = [
            self._shared(
                ("row", leaf, row),
                position,
                lambda row=row: _widened(self._quad(load, f"{count}u * {at} + {4 * row}u", position), form.datatype, 4),
            )
            for row in range(count)
        ]
        elements = [count * lane + place for lane in range(4)]
        return f"{position.type(step.type)}({', '.join(f'{rows[e // 4]}.{_LANES[e % 4]}' for e in elements)})"

    # ---- other items

    def _moved(self, step: Step, position: _Position) -> str:
        x, at, kind = step.args[0], self._index(position), position.type(step.type)

        def scalar(key: str, text: str) -> str:
            place = self._shared((step.kind, key), position, lambda: text)
            return self._at([x], _Position(place, self._end(position)))[0]

        if step.kind == "flip":
            end = self._end(position)
            if position.lanes == 1:
                return scalar("0", f"{end} - {at}") if end else self._at([x], position)[0]
            return f"{kind}({', '.join(scalar(str(k), f'{end} - {at} - {k}u') for k in range(4))})"
        before = step.kind == "previous"
        if before:
            text = f"max({at}, 1u) - 1u"
        else:
            end = self._end(position)
            behind = f"{at} + {position.lanes}u"
            text = f"min({behind}, {end})" if end else behind
        if position.lanes == 1:
            return scalar("0", text)
        (four,) = self._at([x], position)
        edge = scalar("0", text)
        return f"{kind}({edge}, {four}.xyz)" if before else f"{kind}({four}.yzw, {edge})"

    def _gathered(self, step: Step, position: _Position) -> str:
        x, indices = step.args
        place, kind = self._values[indices, position.at], position.type("u32")
        if self._program.steps[indices].type == "i32":
            place = f"{kind}(max({place}, {position.type('i32')}(0)))"
        last = self._last(step)
        if last:
            place = f"min({place}, {last if position.lanes == 1 else f'{kind}({last})'})"
        place = self._let(place)
        if position.lanes == 1:
            return self._at([x], _Position(place, last))[0]
        found = [self._at([x], _Position(f"{place}.{lane}", last))[0] for lane in _LANES]
        return f"{position.type(step.type)}({', '.join(found)})"

    def _last(self, step: Step) -> str:
        """Return the index of the last item of an operand that has a length of its own; "" if it has none."""
        if step.last is not None:
            return self._field(f"number_{step.last}")
        domain = self._program.domain(step)
        return self._field(f"last_{domain[0]}") if domain else ""

    # ---- operands that are repeated

    def _repeated(self, step: Step, position: _Position) -> str:
        (x,), spread, kind = step.args, step.value, position.type(step.type)

        def value(lane: int, lanes: int = 1) -> str:
            at = self._reached(spread, position, lane)
            return self._at([x], _Position(at, self._last(step) if self._moves(x) else "", lanes))[0]

        if position.lanes == 1:
            return value(0)
        if not spread.in_fours:
            return f"{kind}({', '.join(map(value, range(4)))})"
        is_row = spread.axes and spread.axes[-1]
        return value(0, 4) if is_row else f"{kind}({value(0)})"

    def _moves(self, operand: int) -> bool:
        """Whether steps at the place of an operand read it at other items."""
        return any(self._program.steps[k].kind in ("next", "flip") for k in self._program.within([operand]))

    def _reached(self, spread: Spread, position: _Position, lane: int) -> str:
        """Return the index of the item of the operand of a spread that an item of a position is."""
        if not spread.axes:
            return "0u"
        rest, terms, stride = self._index(position), list[str](), ""
        for is_kept, number in zip(spread.axes[:0:-1], spread.lengths[::-1], strict=True):
            length = self._field(f"number_{number}")
            rest, place = self._divided(rest, length, position)
            if lane:
                rest, place = self._divided_behind(lane, rest, place, length, position)
                lane = 0
            if is_kept:
                terms.append(f"{stride}{place}")
                stride += f"{length} * "
        if spread.axes[0]:
            terms.append(f"{stride}{rest}")
        return self._shared(("reached", spread, *terms), position, lambda: " + ".join(terms))

    def _divided(self, index: str, length: str, position: _Position) -> tuple[str, str]:
        """Return the quotient and the remainder."""
        quotient = self._shared(("quotient", index, length), position, lambda: f"{index} / {length}")
        return quotient, self._shared(("rest", index, length), position, lambda: f"{index} - {quotient} * {length}")

    def _divided_behind(self, lane: int, quotient: str, rest: str, length: str, position: _Position) -> tuple[str, str]:
        """Return quotient and remainder of one of the next three indices.

        At most one row ends among the four, also where rows have 2 items: the first index is a multiple of 4.
        """
        carry = self._shared(("carry", lane, length), position, lambda: f"select(0u, 1u, {rest} + {lane}u >= {length})")
        return f"({quotient} + {carry})", f"({rest} + {lane}u - {carry} * {length})"


def _widened(text: str, datatype: str, lanes: int) -> str:
    """Return the value of one item in memory, or of four, as it is computed with."""
    found = STORAGE_DATATYPES[datatype]
    kind, size = found.dtype.kind, found.itemsize_bytes

    def vector(name: str) -> str:
        return name if lanes == 1 else f"vec4<{name}>"

    if size == 4:
        return text if kind == "u" else f"bitcast<{vector(found.wgsl)}>({text})"
    if kind == "f":
        return f"unpack2x16float({text}).x" if lanes == 1 else (
            f"vec4<f32>(unpack2x16float({text}.x), unpack2x16float({text}.y))"
        )  # fmt: skip
    unused = 32 - 8 * size
    if lanes == 1:
        high = f"({text} << {unused}u)"
    elif size == 1:
        high = f"vec4<u32>({text} << 24u, {text} << 16u, {text} << 8u, {text})"
    else:
        high = f"vec4<u32>({text}.x << 16u, {text}.x, {text}.y << 16u, {text}.y)"
    if kind == "i":
        return f"bitcast<{vector('i32')}>({high}) >> {vector('u32')}({unused}u)"
    item = f"({high} >> {vector('u32')}({unused}u))"
    return f"{item} != {vector('u32')}(0u)" if kind == "b" else item
