"""The WGSL by which a kernel reaches its arguments: variables, and functions that load and store items.

A kernel reads and writes items only through ``load_NAME``, ``load4_NAME``, ``store_NAME`` and ``store4_NAME``. Each
argument gets these four, one set for each pair of element type (of the binding) and item size. An item is a u32 word,
the low part of one (1 or 2 bytes), or a vec2 of a low and a high word (8 bytes); ``lift`` and ``lower`` of
lib/operator.wgsl and lib/convert.wgsl give it a type. Kernels of items that do not have 4 bytes also load and store rows:
``load_row_NAME`` and ``store_row_NAME`` reach 16 bytes at once. The offset of an argument is a field of `Params`, so a view that starts elsewhere needs no other text.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

__all__ = ["ELEMENT_BYTES", "Accessors", "Chooser", "Range", "Variable", "bindings", "declaration"]

#: Bytes of an element of a binding, by its WGSL type.
ELEMENT_BYTES = {"u32": 4, "atomic<u32>": 4, "vec2<u32>": 8, "vec4<u32>": 16}


def declaration(index: int, access: str, var: str, kind: str) -> str:
    """Return the declaration of a storage binding."""
    return f"@group(0) @binding({index}) var<storage, {access}> {var}: {kind};"


def shifted(index: str, first: int) -> str:
    """Return the text of an index, counted from element number `first`."""
    if not first:
        return index
    return f"{index} - {first}u" if first > 0 else f"{index} + {-first}u"


# ---- reaching one element


@dataclass(frozen=True)
class Variable:
    """A binding: an array of elements.

    Items of 2 bytes are written by atomics, since another invocation may write the other half of the word.
    """

    name: str
    element: str

    @property
    def is_atomic(self) -> bool:
        """Whether its elements are atomics."""
        return self.element == "atomic<u32>"

    def read(self, index: str) -> str:
        """Return the expression that reads an element."""
        return f"atomicLoad(&{self.name}[{index}])" if self.is_atomic else f"{self.name}[{index}]"

    def write(self, index: str, value: str) -> str:
        """Return the statement that writes an element, without its semicolon."""
        return f"atomicStore(&{self.name}[{index}], {value})" if self.is_atomic else f"{self.name}[{index}] = {value}"

    def write_and(self, index: str, value: str) -> str:
        """Return the statement that clears bits of an atomic element."""
        return f"atomicAnd(&{self.name}[{index}], {value})"

    def write_or(self, index: str, value: str) -> str:
        """Return the statement that sets bits of an atomic element."""
        return f"atomicOr(&{self.name}[{index}], {value})"


@dataclass(frozen=True)
class Range:
    """Elements `begin` to `end` of an argument: they lie in one binding, from its element `begin` - `shift` on."""

    begin: int
    end: int
    shift: int
    variable: Variable


@dataclass(frozen=True)
class Chooser:
    """Functions that choose among several bindings by the index: segments of a large buffer, or chunks."""

    name: str
    element: str
    ranges: tuple[Range, ...]
    writable: bool

    def read(self, index: str) -> str:
        """Return the expression that reads an element."""
        return f"{self.name}_read({index})"

    def write(self, index: str, value: str) -> str:
        """Return the statement that writes an element, without its semicolon."""
        return f"{self.name}_write({index}, {value})"

    def write_and(self, index: str, value: str) -> str:
        """Return the statement that clears bits of an atomic element."""
        return f"{self.name}_write_and({index}, {value})"

    def write_or(self, index: str, value: str) -> str:
        """Return the statement that sets bits of an atomic element."""
        return f"{self.name}_write_or({index}, {value})"

    def functions(self) -> Iterator[str]:
        """Return the lines of the functions."""
        value = "u32" if self.element == "atomic<u32>" else self.element
        yield f"// Chooses among {len(self.ranges)} bindings."
        yield f"fn {self.name}_read(k: u32) -> {value} {{"
        for last, each in _marked(self.ranges):
            read = each.variable.read(shifted("k", each.shift))
            yield f"  return {read};" if last else f"  if (k < {each.end}u) {{ return {read}; }}"
        yield "}"
        if not self.writable:
            return
        kinds = ["write"]
        # Of chunks that are written, some may be reached by atomics: those whose buffer holds halves of words, too.
        if all(each.variable.is_atomic for each in self.ranges):
            kinds += ["write_and", "write_or"]
        for kind in kinds:
            yield f"fn {self.name}_{kind}(k: u32, value: {value}) {{"
            for last, each in _marked(self.ranges):
                done = getattr(each.variable, kind)(shifted("k", each.shift), "value")
                yield f"  {done};" if last else f"  if (k < {each.end}u) {{ {done}; return; }}"
            yield "}"


def _marked(ranges: Sequence[Range]) -> Iterator[tuple[bool, Range]]:
    for number, each in enumerate(ranges, 1):
        yield number == len(ranges), each


# ---- reaching items


def item(place: Variable | Chooser, item_bytes: int, first: int = 0) -> str:
    """Return the expression that reads item `k`, from elements of which the first is number `first`."""

    def at(index: str) -> str:
        return place.read(shifted(f"({index})", first) if first else index)

    element = place.element
    if item_bytes == 8:
        if element == "vec4<u32>":
            return f"select({at('k >> 1u')}.xy, {at('k >> 1u')}.zw, (k & 1u) == 1u)"
        return at("k") if element == "vec2<u32>" else f"vec2<u32>({at('2u * k')}, {at('2u * k + 1u')})"
    if item_bytes == 1:
        word = f"{at('k >> 4u')}[(k >> 2u) & 3u]" if element == "vec4<u32>" else at("k >> 2u")
        return f"({word} >> (8u * (k & 3u))) & 0xffu"
    if item_bytes == 2:
        if element == "vec4<u32>":
            return f"({at('k >> 3u')}[(k >> 1u) & 3u] >> (16u * (k & 1u))) & 0xffffu"
        word = f"{at('k >> 2u')}[(k >> 1u) & 1u]" if element == "vec2<u32>" else at("k >> 1u")
        return f"({word} >> (16u * (k & 1u))) & 0xffffu"
    return f"{at('k >> 2u')}[k & 3u]" if element == "vec4<u32>" else at("k")


# log₂ of the items in a row of 16 bytes, by their size.
_ROW_SHIFT = {1: 4, 2: 3, 4: 2, 8: 1}


def _row(place: Variable | Chooser, item_bytes: int, element: str) -> list[str]:
    """Return the statements that return the 16 bytes from item `k` on."""
    if element == "vec4<u32>":
        return [f"return {place.read(f'k >> {_ROW_SHIFT[item_bytes]}u')};"]
    if element == "vec2<u32>" and item_bytes == 8:
        return [f"return vec4<u32>({place.read('k')}, {place.read('k + 1u')});"]
    assert element in ("u32", "atomic<u32>"), "rows lie in words, pairs of words, or rows"
    per_word = max(1, 4 // item_bytes)
    first = "2u * k" if item_bytes == 8 else "k" if item_bytes == 4 else f"k >> {per_word.bit_length() - 1}u"
    words = [place.read("first" if j == 0 else f"first + {j}u") for j in range(5)]
    lines = [f"let first = {first};", f"let words = vec4<u32>({', '.join(words[:4])});"]
    if per_word == 1:
        return [*lines, "return words;"]
    return [
        *lines,
        f"let shift = {8 * item_bytes}u * (k & {per_word - 1}u);",
        "if (shift == 0u) { return words; }",
        f"return (words >> vec4<u32>(shift)) | (vec4<u32>(words.yzw, {words[4]}) << vec4<u32>(32u - shift));",
    ]


@dataclass(frozen=True)
class Accessors:
    """The functions by which a kernel reaches one of its arguments.

    Attributes
    ----------
    name : str
        ``load_NAME`` reads it.
    place : Variable or Chooser
        The binding, or the functions that choose among several.
    item_bytes : int
        1, 2, 4 or 8.
    writable : bool
        Whether the kernel stores items.
    segments : tuple of Range
        Of several bindings, for ``segment_of_NAME``: begin and end in items, shift in elements.
    rows : bool
        Whether the kernel loads and stores rows of 16 bytes.
    """

    name: str
    place: Variable | Chooser
    item_bytes: int
    writable: bool
    segments: tuple[Range, ...] = ()
    rows: bool = False

    @property
    def _type(self) -> str:
        return "vec2<u32>" if self.item_bytes == 8 else "u32"

    @property
    def _at(self) -> str:
        """The text of the index in the binding of item `i`."""
        return f"params.{self.name}_offset + i"

    def functions(self, *, by_segment: bool) -> Iterator[str]:
        """Return the lines of the functions that load and store.

        With `by_segment` there are also functions by which a tile chooses a segment only once.
        """
        yield from self._function(
            f"load_{self.name}(i: u32) -> {self._type}", f"return {item(self.place, self.item_bytes)};"
        )
        if by_segment and self.segments:
            yield from self._segment_functions()
        if self.rows:
            yield from self._rows()
        elif self.item_bytes == 1:
            raise AssertionError("items of 1 byte are reached by rows")
        elif self.item_bytes == 2:
            yield from self._halves()
        elif self.item_bytes == 8:
            if self.writable:
                yield from self._store_pairs()
        elif self.place.element == "vec4<u32>":
            yield from self._quads()
        else:
            yield from self._words()

    def _function(self, head: str, *body: str) -> Iterator[str]:
        """Return a function in which `k` is the index of item `i` in the binding."""
        yield f"fn {head} {{"
        yield f"  let k = {self._at};"
        yield from (f"  {line}" for line in body)
        yield "}"

    def _segment_functions(self) -> Iterator[str]:
        offset = f"params.{self.name}_offset"
        yield "// The segment in which all items from `first` to `last` lie, or the number of segments."
        yield f"fn segment_of_{self.name}(first: u32, last: u32) -> u32 {{"
        yield f"  let begin = {offset} + first;"
        yield f"  let end = {offset} + last;"
        for number, each in enumerate(self.segments):
            yield f"  if (begin >= {each.begin}u && end < {each.end}u) {{ return {number}u; }}"
        yield f"  return {len(self.segments)}u;"
        yield "}"
        for number, each in enumerate(self.segments):
            read = item(each.variable, self.item_bytes, each.shift)
            yield from self._function(f"load_{self.name}_segment_{number}(i: u32) -> {self._type}", f"return {read};")

    def _halves(self) -> Iterator[str]:
        name, place = self.name, self.place
        pairs = place.element == "vec2<u32>"
        yield f"fn load_word_{name}(k: u32) -> u32 {{"
        yield f"  return {place.read('k >> 1u')}[k & 1u];" if pairs else f"  return {place.read('k')};"
        yield "}"
        yield "// Items i to i + 3, two to a word; i is a multiple of 4."
        head = f"load4_{name}(i: u32) -> vec2<u32>"
        if pairs:
            yield from (f"fn {head} {{", f"  return {place.read(f'({self._at}) >> 2u')};", "}")
        else:
            word = f"load_word_{name}"
            yield from self._function(
                head,
                f"let words = vec2<u32>({word}(k >> 1u), {word}((k >> 1u) + 1u));",
                "if ((k & 1u) == 0u) { return words; }",
                f"return (words >> vec2<u32>(16u)) | (vec2<u32>(words.y, {word}((k >> 1u) + 2u)) << vec2<u32>(16u));",
            )
        if not self.writable:
            return
        yield "// Another invocation may write the other half of the word: only the bits of this item change."
        yield from self._function(
            f"store_{name}(i: u32, item: u32)",
            "let shift = 16u * (k & 1u);",
            f"{place.write_and('k >> 1u', '~(0xffffu << shift)')};",
            f"{place.write_or('k >> 1u', 'item << shift')};",
        )
        yield from self._function(
            f"store4_{name}(i: u32, items: vec2<u32>)",
            "if ((k & 1u) == 0u) {",
            f"  {place.write('k >> 1u', 'items.x')};",
            f"  {place.write('(k >> 1u) + 1u', 'items.y')};",
            "  return;",
            "}",
            f"store_{name}(i, items.x & 0xffffu);",
            f"store_{name}(i + 1u, items.x >> 16u);",
            f"store_{name}(i + 2u, items.y & 0xffffu);",
            f"store_{name}(i + 3u, items.y >> 16u);",
        )

    # ---- rows of 16 bytes

    def _rows(self) -> Iterator[str]:
        """Functions for four items, and for the 16 bytes from an item on whose index is a multiple of a row's items."""
        yield from self._function(
            f"load_row_{self.name}(i: u32) -> vec4<u32>", *_row(self.place, self.item_bytes, self.place.element)
        )
        yield from self._load4()
        if not self.writable:
            return
        if self.place.element == "atomic<u32>":
            yield from self._store_atomic_rows()
        else:
            yield from self._store_rows()

    def _load4(self) -> Iterator[str]:
        name, size = self.name, self.item_bytes
        row = f"load_row_{name}"
        if size == 8:
            yield from (f"fn load4_{name}(i: u32) -> array<vec4<u32>, 2> {{",
                        f"  return array<vec4<u32>, 2>({row}(i), {row}(i + 2u));", "}")  # fmt: skip
        elif size == 4:
            yield from (f"fn load4_{name}(i: u32) -> vec4<u32> {{", f"  return {row}(i);", "}")
        else:
            kind = "u32" if size == 1 else "vec2<u32>"
            items = [f"load_{name}(i + {j}u)" for j in range(4)]
            shift = 8 * size
            if size == 1:
                value = " | ".join(f"({each} << {shift * j}u)" for j, each in enumerate(items))
            else:
                value = f"vec2<u32>({items[0]} | ({items[1]} << 16u), {items[2]} | ({items[3]} << 16u))"
            yield from (f"fn load4_{name}(i: u32) -> {kind} {{", f"  return {value};", "}")

    @property
    def _quad(self) -> str:
        """The type of four items."""
        return {1: "u32", 2: "vec2<u32>", 4: "vec4<u32>", 8: "array<vec4<u32>, 2>"}[self.item_bytes]

    def _store4_by_items(self) -> Iterator[str]:
        """Four items one by one, or in two rows."""
        name, size = self.name, self.item_bytes
        yield f"fn store4_{name}(i: u32, items: {self._quad}) {{"
        if size == 8:
            yield from (f"  store_row_{name}(i, items[0]);", f"  store_row_{name}(i + 2u, items[1]);")
        elif size == 4:
            yield f"  store_row_{name}(i, items);"
        else:
            words = ["items"] if size == 1 else ["items.x", "items.y"]
            per_word, mask = 4 // size, (1 << 8 * size) - 1
            for j in range(4):
                shift = 8 * size * (j % per_word)
                yield f"  store_{name}(i + {j}u, ({words[j // per_word]} >> {shift}u) & {mask:#x}u);"
        yield "}"

    def _store_rows(self) -> Iterator[str]:
        """Of elements that are no atomics: one invocation writes all items of an element."""
        name, place, size = self.name, self.place, self.item_bytes
        if place.element == "vec4<u32>":
            assert isinstance(place, Variable), "what is written in segments is written by words"
            row = f"{place.name}[k >> {_ROW_SHIFT[size]}u]"
            if size == 8:
                yield from self._function(
                    f"store_{name}(i: u32, item: vec2<u32>)",
                    f"if ((k & 1u) == 0u) {{ {row}.x = item.x; {row}.y = item.y; return; }}",
                    f"{row}.z = item.x;", f"{row}.w = item.y;",
                )  # fmt: skip
            elif size == 4:
                yield from self._function(f"store_{name}(i: u32, item: u32)", f"{row}[k & 3u] = item;")
            else:
                per_word, mask = 4 // size, (1 << 8 * size) - 1
                word = f"{row}[(k >> {per_word.bit_length() - 1}u) & 3u]"
                yield from self._function(
                    f"store_{name}(i: u32, item: u32)",
                    f"let shift = {8 * size}u * (k & {per_word - 1}u);",
                    f"{word} = ({word} & ~({mask:#x}u << shift)) | (item << shift);",
                )
            yield from self._function(f"store_row_{name}(i: u32, row: vec4<u32>)", f"{row} = row;")
        else:  # u32 or vec2<u32>: whole items
            assert size >= 4, "small items are written as parts of rows, or by atomics"
            if size == 8:
                yield from self._store_pairs()
                body = [f"store_{name}(i, row.xy);", f"store_{name}(i + 1u, row.zw);"]
            else:
                yield from self._function(f"store_{name}(i: u32, item: u32)", f"{place.write('k', 'item')};")
                body = [f"store_{name}(i + {j}u, row.{c});" for j, c in enumerate("xyzw")]
            yield from (f"fn store_row_{name}(i: u32, row: vec4<u32>) {{", *(f"  {line}" for line in body), "}")
        yield from self._store4_by_items()

    def _store_atomic_rows(self) -> Iterator[str]:
        """Of atomic words: another invocation may write the other part of a word."""
        name, place, size = self.name, self.place, self.item_bytes
        if size == 8:
            yield from self._function(
                f"store_{name}(i: u32, item: vec2<u32>)",
                f"{place.write('2u * k', 'item.x')};", f"{place.write('2u * k + 1u', 'item.y')};",
            )  # fmt: skip
            body = [f"store_{name}(i, row.xy);", f"store_{name}(i + 1u, row.zw);"]
            yield from (f"fn store_row_{name}(i: u32, row: vec4<u32>) {{", *(f"  {line}" for line in body), "}")
        elif size == 4:
            yield from self._function(f"store_{name}(i: u32, item: u32)", f"{place.write('k', 'item')};")
            body = [f"store_{name}(i + {j}u, row.{c});" for j, c in enumerate("xyzw")]
            yield from (f"fn store_row_{name}(i: u32, row: vec4<u32>) {{", *(f"  {line}" for line in body), "}")
        else:
            per_word, mask = 4 // size, (1 << 8 * size) - 1
            at = f"k >> {per_word.bit_length() - 1}u"
            yield "// Another invocation may write the rest of the word: only the bits of this item change."
            yield from self._function(
                f"store_{name}(i: u32, item: u32)",
                f"let shift = {8 * size}u * (k & {per_word - 1}u);",
                f"{place.write_and(at, f'~({mask:#x}u << shift)')};",
                f"{place.write_or(at, 'item << shift')};",
            )
            lines = [f"{place.write(f'first + {j}u', f'row.{c}')};" for j, c in enumerate("xyzw")]
            slow = [
                f"  store_{name}(i + {j}u, (row[{j // per_word}] >> {8 * size * (j % per_word)}u) & {mask:#x}u);"
                for j in range(16 // size)
            ]
            yield from self._function(
                f"store_row_{name}(i: u32, row: vec4<u32>)",
                f"if ((k & {per_word - 1}u) == 0u) {{", f"  let first = {at};", *(f"  {line}" for line in lines),
                "  return;", "}", *slow,
            )  # fmt: skip
        yield from self._store4_by_items()

    def _store_pairs(self) -> Iterator[str]:
        yield f"fn store_{self.name}(i: u32, item: vec2<u32>) {{"
        if self.place.element == "vec2<u32>":
            yield f"  {self.place.write(self._at, 'item')};"
        else:
            yield f"  let k = 2u * ({self._at});"
            yield f"  {self.place.write('k', 'item.x')};"
            yield f"  {self.place.write('k + 1u', 'item.y')};"
        yield "}"

    def _quads(self) -> Iterator[str]:
        name, place = self.name, self.place
        yield "// Items i to i + 3; i is a multiple of 4."
        yield from (f"fn load4_{name}(i: u32) -> vec4<u32> {{", f"  return {place.read(f'({self._at}) >> 2u')};", "}")
        if self.writable:
            yield "// A write to one component may touch the whole vec4: one invocation must write all items of a vec4."
            yield from self._function(f"store_{name}(i: u32, word: u32)", f"{place.name}[k >> 2u][k & 3u] = word;")
            yield f"fn store4_{name}(i: u32, words: vec4<u32>) {{"
            yield f"  {place.name}[({self._at}) >> 2u] = words;"
            yield "}"

    def _words(self) -> Iterator[str]:
        name = self.name
        yield f"fn load4_{name}(i: u32) -> vec4<u32> {{"
        loads = ", ".join(f"load_{name}(i + {j}u)" for j in range(4))
        yield f"  return vec4<u32>({loads});"
        yield "}"
        if self.writable:
            yield from self._function(f"store_{name}(i: u32, word: u32)", f"{self.place.write('k', 'word')};")
            yield f"fn store4_{name}(i: u32, words: vec4<u32>) {{"
            yield from (f"  store_{name}(i + {j}u, words.{c});" for j, c in enumerate("xyzw"))
            yield "}"


def bindings(
    declarations: Sequence[str],
    places: Sequence[Variable | Chooser],
    arguments: Sequence[Accessors],
    *,
    by_segment: bool,
) -> str:
    """Return the text behind the declaration of `Params`: all bindings, and the functions that reach them.

    Parameters
    ----------
    declarations : sequence of str
        Of the storage bindings; see `declaration`.
    places : sequence of Variable or Chooser
        The parts of buffers and chunks that are bound.
    arguments : sequence of Accessors
    by_segment : bool
        Whether the kernel chooses the segment of a whole tile.
    """
    lines = ["@group(0) @binding(0) var<uniform> params: Params;", *declarations, ""]
    for place in places:
        if isinstance(place, Chooser):
            lines += [*place.functions(), ""]
    for each in arguments:
        lines += each.functions(by_segment=by_segment)
    return "\n".join(lines) + "\n"
