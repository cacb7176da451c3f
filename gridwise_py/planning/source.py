"""Sources: expressions as operands of a kernel, which computes their items where it reads them.

A kernel reads every operand through ``load_NAME(i)`` and ``load4_NAME(i)``. For an expression the builder declares the
accessors of its leaves, ``load_NAME_0`` and so on, and this module writes ``load_NAME`` and ``load4_NAME``: the bits of
a value, bools as 0 and 1. Of a struct it writes ``load_acc_NAME`` and ``load4_acc_NAME`` (lib/accumulators.wgsl).

Names in the text are numbers, so equal programs give equal texts. Numbers, lengths and the first item of a window are
fields of `Params`. Operators serve four items at once; what is read at other items, and functions in WGSL, go one by
one. So do programs with numbers of 8 bytes: four items read their leaves at once, and call the function of one item.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from ..types.datatype import STORAGE_DATATYPES
from ..types.operations import operation_text
from ..types.program import Program, Spread, Step
from ..types.wgsl_function import function_texts
from ..types.wide_text import WIDE_TYPES
from .layout import Operand
from .shaders import compose

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
def source_text(
    name: str, program: Program, is_struct: bool, rows: bool, is_pair: bool = False, *, pairs: bool = False
) -> SourceText:
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
    pairs : bool
        Whether integers of 8 bytes are pairs of words.
    """
    if program.is_wide:
        return _wide_text(name, program, is_struct, rows, pairs)
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


def _wide_text(name: str, program: Program, is_struct: bool, rows: bool, pairs: bool) -> SourceText:
    """Return the text for an expression with numbers of 8 bytes: the function of an item, given those of its leaves."""
    fields: dict[str, None] = {}
    functions, names = function_texts(name, program)
    writer = _WideWriter(name, program, 1, fields, names, pairs)
    body = writer.struct() if is_struct else writer.single()
    item = "Acc" if is_struct else item_type(program.types[0])
    leaves = {k: program.leaves[k].datatype for k in writer.leaves}
    heads = "".join(f", x_{k}: {item_type(each)}" for k, each in leaves.items())
    ones = "".join(f", load_{name}_{k}({at})" for k, at in writer.leaves.items())
    parts = ["".join(f", {lane_of(f'x_{k}', each, lane)}" for k, each in leaves.items()) for lane in range(4)]
    calls = [f"item_{name}(i + {lane}u{part})" for lane, part in enumerate(parts)]
    acc = "_acc" if is_struct else ""
    lines = [
        f"// {name} is computed in {len(program.steps)} steps.", *functions,
        f"fn item_{name}(i: u32{heads}) -> {item} {{", *(f"  {line}" for line in body), "}",
        f"fn load{acc}_{name}(i: u32) -> {item} {{ return item_{name}(i{ones}); }}",
        f"fn load4{acc}_{name}(i: u32) -> {'Quad' if is_struct else four_items(item)} {{",
        *(f"  let x_{k} = load4_{name}_{k}({at});" for k, at in writer.leaves.items()),
        f"  return {joined(item, calls)};", "}",
    ]  # fmt: skip
    if rows and not is_struct:
        is_wide = program.types[0] in WIDE_TYPES
        row = f"vec4<u32>(load_{name}(i), load_{name}(i + 1u))" if is_wide else f"load4_{name}(i)"
        lines.append(f"fn load_row_{name}(i: u32) -> vec4<u32> {{ return {row}; }}")
    return SourceText("\n".join(lines) + "\n", tuple(fields))


def item_type(datatype: str) -> str:
    """Return the type of an item as it is in memory."""
    return "vec2<u32>" if STORAGE_DATATYPES[datatype].itemsize_bytes == 8 else "u32"


def four_items(item: str) -> str:
    """Return the type of four items of a type in memory."""
    return {"vec2<u32>": "array<vec4<u32>, 2>", "u32": "vec4<u32>"}[item]


def joined(item: str, four: Sequence[str]) -> str:
    """Return the text of four items of a type, as a kernel stores them."""
    if item == "Acc":
        return f"Quad({', '.join(four)})"
    if item == "vec2<u32>":
        four = [f"vec4<u32>({', '.join(four[:2])})", f"vec4<u32>({', '.join(four[2:])})"]
    return f"{four_items(item)}({', '.join(four)})"


def lane_of(four: str, datatype: str, lane: int) -> str:
    """Return one of four items that were read at once; behind the bits of a small one there may be others."""
    size = STORAGE_DATATYPES[datatype].itemsize_bytes
    if size == 8:
        return f"{four}[{lane // 2}].{('xy', 'zw')[lane % 2]}"
    if size == 4:
        return f"{four}.{_LANES[lane]}"
    word = four if size == 1 else f"{four}.{_LANES[lane // 2]}"
    return f"({word} >> {8 * size * lane % 32}u)"


@lru_cache(maxsize=512)
def wide_functions(text: str, pairs: bool) -> str:
    """Return the functions for numbers of 8 bytes that a text calls, and those that these call."""
    library = compose("lib/wide_pairs.wgsl" if pairs else "lib/wide_native.wgsl")
    known = {found[1]: found[0] for found in re.finditer(r"^fn (\w+)\([^\n]*(?:\}|\{\n.*?\n\})$", library, re.M | re.S)}
    needed, waiting = set[str](), [text]
    while waiting:
        called = known.keys() & set(re.findall(r"\w+(?=\()", waiting.pop())) - needed
        needed |= called
        waiting += [known[name] for name in called]
    return "".join(f"{function}\n" for name, function in known.items() if name in needed)


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

    def __init__(
        self, name: str, program: Program, lanes: int, fields: dict[str, None], functions: dict[object, str],
        pairs: bool = False,
    ):  # fmt: skip
        self._name = name
        self._program = program
        self.fields: dict[str, None] = fields
        #: Whether integers of 8 bytes are pairs of words.
        self._pairs = pairs
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
            if kind in WIDE_TYPES:
                found.append(value if self._pairs else f"words_of_{kind}({value})")
            elif kind == "bool":
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
        self.fields[f"{self._name}_{name}"] = None
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
            if step.type in WIDE_TYPES:
                return self._wide(step.type, f"vec2<u32>({word}, {self._field(f'{step.kind}_{step.value + 1}')})")
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
        return operation_text(step.kind, step.type, takes, args, position.lanes, pairs=self._pairs)

    def _wide(self, kind: str, words: str) -> str:
        """Return the value of two words."""
        return words if self._pairs else f"{kind}_of_words({words})"

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
            return self._widened(f"load_{load}({at})", datatype)
        return _widened(self._quad(load, at, position), datatype, 4)

    def _widened(self, text: str, datatype: str) -> str:
        """Return the value of one item in memory."""
        return self._wide(datatype, text) if datatype in WIDE_TYPES else _widened(text, datatype, 1)

    def _quad(self, load: str, at: str, position: _Position) -> str:
        return self._shared(("quad", load, at), position, lambda: f"load4_{load}({at})")

    def _component(self, step: Step, position: _Position) -> str:
        leaf, place = step.number, step.component
        form, load, at = self._program.leaves[leaf], f"{self._name}_{leaf}", self._index(position)
        count = form.components
        if position.lanes == 1:
            return self._widened(f"load_{load}({count}u * {at} + {place}u)", form.datatype)
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


class _WideWriter(Writer):
    """Writes the body of the function of one item, whose leaves at this item are its parameters."""

    def __init__(self, *args: Any):
        super().__init__(*args)
        #: Those leaves, and the texts of the index that they are read at.
        self.leaves: dict[int, str] = {}

    def _loaded(self, step: Step, position: _Position) -> str:
        if step.kind != "leaf" or not position.is_root:
            return super()._loaded(step, position)
        at = "i" if step.number in self._program.streamed else f"{self._field('first')} + i"
        self.leaves[step.number] = at
        return self._widened(f"x_{step.number}", self._program.leaves[step.number].datatype)


def _widened(text: str, datatype: str, lanes: int) -> str:
    """Return the value of one item of up to 4 bytes in memory, or of four, as it is computed with."""
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
