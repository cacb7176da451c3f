"""The WGSL by which a kernel reaches its arguments: variables, and functions that load and store items.

A kernel reads and writes items only through ``load_NAME``, ``load4_NAME``, ``store_NAME`` and ``store4_NAME``. Each
argument gets these four, one set for each pair of element type (of the binding) and item size. An item is a u32 word,
the low part of one (1 or 2 bytes), or a vec2 of a low and a high word (8 bytes); ``lift`` and ``lower`` of
lib/operator.wgsl and lib/convert.wgsl give it a type. The offset of an argument is a field of `Params`, so a view that
starts elsewhere needs no other text. Kernels for items that do not have 4 bytes also reach 16 bytes at once, by
``load_row_NAME`` and ``store_row_NAME``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

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

    Items of 1 and 2 bytes are written by atomics, since another invocation may write the rest of the word.
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

    def swap(self, index: str, before: str, after: str) -> str:
        """Return the expression that replaces an atomic element if it is as `before`: whether it did."""
        return f"atomicCompareExchangeWeak(&{self.name}[{index}], {before}, {after}).exchanged"


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

    def swap(self, index: str, before: str, after: str) -> str:
        """Return the expression that replaces an atomic element if it is as `before`: whether it did."""
        return f"{self.name}_swap({index}, {before}, {after})"

    def functions(self, *, swaps: bool) -> Iterator[str]:
        """Return the lines of the functions; with `swaps` also of the one that `swap` calls."""
        value = "u32" if self.element == "atomic<u32>" else self.element
        yield f"// Chooses among {len(self.ranges)} bindings."
        yield f"fn {self.name}_read(k: u32) -> {value} {{"
        for last, each in _marked(self.ranges):
            read = each.variable.read(shifted("k", each.shift))
            yield f"  return {read};" if last else f"  if (k < {each.end}u) {{ return {read}; }}"
        yield "}"
        if not self.writable:
            return
        # Of chunks that are written, some may be reached by atomics: those whose buffer holds halves of words, too.
        is_atomic = all(each.variable.is_atomic for each in self.ranges)
        if swaps:
            yield f"fn {self.name}_swap(k: u32, before: u32, after: u32) -> bool {{"
            for last, each in _marked(self.ranges):
                done = each.variable.swap(shifted("k", each.shift), "before", "after")
                yield f"  return {done};" if last else f"  if (k < {each.end}u) {{ return {done}; }}"
            yield "}"
        for kind in ("write", "write_and", "write_or") if is_atomic else ("write",):
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
        words = {"vec4<u32>": f"{at('k >> 4u')}[(k >> 2u) & 3u]", "vec2<u32>": f"{at('k >> 3u')}[(k >> 2u) & 1u]"}
        return f"({words.get(element, at('k >> 2u'))} >> (8u * (k & 3u))) & 0xffu"
    if item_bytes == 2:
        if element == "vec4<u32>":
            return f"({at('k >> 3u')}[(k >> 1u) & 3u] >> (16u * (k & 1u))) & 0xffffu"
        word = f"{at('k >> 2u')}[(k >> 1u) & 1u]" if element == "vec2<u32>" else at("k >> 1u")
        return f"({word} >> (16u * (k & 1u))) & 0xffffu"
    words = {"vec4<u32>": f"{at('k >> 2u')}[k & 3u]", "vec2<u32>": f"{at('k >> 1u')}[k & 1u]"}
    return words.get(element, at("k"))


_ELEMENT_WORDS = {"u32": 1, "atomic<u32>": 1, "vec2<u32>": 2, "vec4<u32>": 4}
_VECTOR = {1: "u32", 2: "vec2<u32>", 4: "vec4<u32>"}


def _log2(n: int) -> int:
    return n.bit_length() - 1


def _words(place: Variable | Chooser, item_bytes: int, count: int) -> list[str]:
    """Return the statements that return 1, 2 or 4 words from item `k` on, which begins a group of so many bytes."""
    each = _ELEMENT_WORDS[place.element]
    if each > 1 and item_bytes == 8:
        first = f"k >> {_log2(each // 2)}u" if each > 2 else "k"
    elif each > 1:
        first = f"k >> {_log2(4 * each // item_bytes)}u"
    else:
        first = "2u * k" if item_bytes == 8 else "k" if item_bytes == 4 else f"k >> {_log2(4 // item_bytes)}u"
    if each == count:
        lines = [f"let words = {place.read(first)};"]
    elif each > count:  # a part of an element
        part = f"(k >> {_log2(4 // item_bytes)}u) & {each - 1}u" if item_bytes < 4 else f"k & {each - 1}u"
        if count == 1:
            return [f"return {place.read(first)}[{part}];"]
        return [f"let row = {place.read(first)};", f"return select(row.xy, row.zw, (({part}) & 2u) != 0u);"]
    else:
        parts = ", ".join(place.read("first" if j == 0 else f"first + {j}u") for j in range(count // each))
        lines = [f"let first = {first};", f"let words = {_VECTOR[count]}({parts});"]
    per_word = max(1, 4 // item_bytes)
    if per_word == 1 or each > 1:  # such elements hold whole groups
        return [*lines, "return words;"]
    if count == each:
        lines.insert(0, f"let first = {first};")
    after = place.read(f"first + {count}u")
    rest = {1: after, 2: f"vec2<u32>(words.y, {after})", 4: f"vec4<u32>(words.yzw, {after})"}[count]
    shift = {1: "shift", 2: "vec2<u32>(shift)", 4: "vec4<u32>(shift)"}[count]
    back = {1: "(32u - shift)", 2: "vec2<u32>(32u - shift)", 4: "vec4<u32>(32u - shift)"}[count]
    return [
        *lines,
        f"let shift = {8 * item_bytes}u * (k & {per_word - 1}u);",
        "if (shift == 0u) { return words; }",
        f"return (words >> {shift}) | ({rest} << {back});",
    ]


def quad_type(item_bytes: int) -> str:
    """Return the type in which a kernel that reaches rows loads and stores four items."""
    return {1: "u32", 2: "vec2<u32>", 4: "vec4<u32>", 8: "array<vec4<u32>, 2>"}[item_bytes]


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
    contended : bool
        Whether invocations may store the same item at the same time.
    """

    name: str
    place: Variable | Chooser
    item_bytes: int
    writable: bool
    segments: tuple[Range, ...] = ()
    rows: bool = False
    contended: bool = False

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
            if self.writable:
                yield from self._store_item()
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
        yield from self._store_part()
        yield "// One of neighbouring items: with the next one, or unless it was stored with the one before."
        yield from self._function(
            f"store_in_run_{name}(i: u32, item: u32, next: u32, joined: bool, joins: bool)",
            f"if ((k & 1u) == 0u && joins) {{ {place.write('k >> 1u', 'item | (next << 16u)')}; return; }}",
            f"if ((k & 1u) == 0u || !joined) {{ store_{name}(i, item); }}",
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

    # ---- quads, and rows of 16 bytes

    @property
    def _quad(self) -> str:
        """The type of four items."""
        return quad_type(self.item_bytes)

    def _rows(self) -> Iterator[str]:
        """Functions for four items, and for the 16 bytes from an item on whose index is a multiple of a row's items."""
        name, size = self.name, self.item_bytes
        yield from self._function(f"load_row_{name}(i: u32) -> vec4<u32>", *_words(self.place, size, 4))
        if size == 8:
            rows = f"load_row_{name}(i), load_row_{name}(i + 2u)"
            yield from (f"fn load4_{name}(i: u32) -> {self._quad} {{", f"  return {self._quad}({rows});", "}")
        elif size == 4:
            yield from (f"fn load4_{name}(i: u32) -> {self._quad} {{", f"  return load_row_{name}(i);", "}")
        else:
            yield from self._function(f"load4_{name}(i: u32) -> {self._quad}", *_words(self.place, size, size))
        if self.writable:
            yield from self._store_item()
            yield from self._store_row()
            yield from self._store4()

    def _store_item(self) -> Iterator[str]:
        """One item: whole words, or a part of one whose rest this invocation writes, too, or that is atomic."""
        name, place, size = self.name, self.place, self.item_bytes
        each = _ELEMENT_WORDS[place.element]
        head = f"store_{name}(i: u32, item: {self._type})"
        if size == 8:
            if each == 4:
                row = f"{place.name}[k >> 1u]"
                yield from self._function(
                    head, f"if ((k & 1u) == 0u) {{ {row}.x = item.x; {row}.y = item.y; return; }}",
                    f"{row}.z = item.x;", f"{row}.w = item.y;",
                )  # fmt: skip
            elif each == 2:
                yield from self._function(head, f"{place.write('k', 'item')};")
            else:
                yield from self._function(
                    head, f"{place.write('2u * k', 'item.x')};", f"{place.write('2u * k + 1u', 'item.y')};"
                )
            return
        if size == 4:
            if each > 1:
                yield from self._function(head, f"{place.name}[k >> {_log2(each)}u][k & {each - 1}u] = item;")
            else:
                yield from self._function(head, f"{place.write('k', 'item')};")
            return
        if place.element == "atomic<u32>":
            yield from self._store_part()
            return
        per_word, mask = 4 // size, (1 << 8 * size) - 1
        word = f"k >> {_log2(per_word)}u"
        at = f"{place.name}[{word}]" if each == 1 else (
            f"{place.name}[k >> {_log2(per_word * each)}u][({word}) & {each - 1}u]"
        )  # fmt: skip
        yield from self._function(
            head, f"let shift = {8 * size}u * (k & {per_word - 1}u);",
            f"{at} = ({at} & ~({mask:#x}u << shift)) | (item << shift);",
        )  # fmt: skip

    def _store_part(self) -> Iterator[str]:
        """One item that is a part of an atomic word."""
        place, size = self.place, self.item_bytes
        per_word, mask = 4 // size, (1 << 8 * size) - 1
        word = f"k >> {_log2(per_word)}u"
        if self.contended:
            # Clearing bits and then setting some is two steps, between which another value's bits may be set.
            yield "// Others may write this item, too, or the rest of the word: one of the values stays."
            change = (
                "loop {",
                f"  let before = {place.read(word)};",
                f"  let after = (before & ~({mask:#x}u << shift)) | (item << shift);",
                f"  if ({place.swap(word, 'before', 'after')}) {{ break; }}",
                "}",
            )
        else:
            yield "// Another invocation may write the rest of the word: only the bits of this item change."
            change = (
                f"{place.write_and(word, f'~({mask:#x}u << shift)')};",
                f"{place.write_or(word, 'item << shift')};",
            )
        yield from self._function(
            f"store_{self.name}(i: u32, item: u32)", f"let shift = {8 * size}u * (k & {per_word - 1}u);", *change
        )

    def _store_row(self) -> Iterator[str]:
        name, place, size = self.name, self.place, self.item_bytes
        each = _ELEMENT_WORDS[place.element]
        head = f"store_row_{name}(i: u32, row: vec4<u32>)"
        if each == 4:
            yield from self._function(head, f"{place.name}[k >> {_log2(16 // size)}u] = row;")
        elif size == 8:
            yield from (f"fn {head} {{", f"  store_{name}(i, row.xy);", f"  store_{name}(i + 1u, row.zw);", "}")
        elif size == 4:
            yield from (f"fn {head} {{", *(f"  store_{name}(i + {j}u, row.{c});" for j, c in enumerate("xyzw")), "}")
        elif each == 2:
            yield from self._function(
                head, f"let first = k >> {_log2(8 // size)}u;", f"{place.write('first', 'row.xy')};",
                f"{place.write('first + 1u', 'row.zw')};",
            )  # fmt: skip
        else:
            yield from self._store_words(head, "row", 4)

    def _store_words(self, head: str, value: str, count: int) -> Iterator[str]:
        """Words of small items: whole ones where the view begins with one, else item by item."""
        place, size = self.place, self.item_bytes
        per_word, mask = 4 // size, (1 << 8 * size) - 1
        words = [value] if count == 1 else [f"{value}.{c}" for c in "xyzw"[:count]]
        whole = [f"  {place.write(f'first + {j}u' if j else 'first', word)};" for j, word in enumerate(words)]
        parts = [
            f"store_{self.name}(i + {j}u, ({words[j // per_word]} >> {8 * size * (j % per_word)}u) & {mask:#x}u);"
            for j in range(per_word * count)
        ]
        yield from self._function(
            head, f"if ((k & {per_word - 1}u) == 0u) {{", f"  let first = k >> {_log2(per_word)}u;", *whole,
            "  return;", "}", *parts,
        )  # fmt: skip

    def _store4(self) -> Iterator[str]:
        name, place, size = self.name, self.place, self.item_bytes
        each = _ELEMENT_WORDS[place.element]
        head = f"store4_{name}(i: u32, items: {self._quad})"
        if size == 8:
            rows = (f"  store_row_{name}(i, items[0]);", f"  store_row_{name}(i + 2u, items[1]);")
            yield from (f"fn {head} {{", *rows, "}")
        elif size == 4:
            yield from (f"fn {head} {{", f"  store_row_{name}(i, items);", "}")
        elif each == size and place.element != "atomic<u32>":  # one element, which begins with item i
            yield from self._function(head, f"{place.write('k >> 2u', 'items')};")
        elif each > size:
            parts = ["items"] if size == 1 else ["items.x", "items.y"]
            row = f"{place.name}[k >> {_log2(4 * each // size)}u]"
            yield from self._function(
                head, f"let part = (k >> {_log2(4 // size)}u) & {each - 1}u;",
                *(f"{row}[part{f' + {j}u' if j else ''}] = {part};" for j, part in enumerate(parts)),
            )  # fmt: skip
        else:
            yield from self._store_words(head, "items", size)

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


@lru_cache(maxsize=512)
def bindings(
    declarations: tuple[str, ...],
    places: tuple[Variable | Chooser, ...],
    arguments: tuple[Accessors, ...],
    *,
    by_segment: bool,
) -> str:
    """Return the text behind the declaration of `Params`: all bindings, and the functions that reach them.

    Parameters
    ----------
    declarations : tuple of str
        Of the storage bindings; see `declaration`.
    places : tuple of Variable or Chooser
        The parts of buffers and chunks that are bound.
    arguments : tuple of Accessors
    by_segment : bool
        Whether the kernel chooses the segment of a whole tile.
    """
    lines = ["@group(0) @binding(0) var<uniform> params: Params;", *declarations, ""]
    contended = [each.place for each in arguments if each.contended and each.item_bytes < 4]
    for place in places:
        if isinstance(place, Chooser):
            lines += [*place.functions(swaps=place in contended), ""]
    for each in arguments:
        lines += each.functions(by_segment=by_segment)
    return "\n".join(lines) + "\n"
