"""Builds plans: the one place that knows how a kernel's parameters, bindings and text fit together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from .capabilities import Capabilities
from .errors import LimitError
from .layout import Layout, Operand
from .plan import Access, Binding, BufferSpec, Kernel, Plan, Shader, Step, Work, pack_words, workgroup_grid
from .shaders import compose, sha256
from .windows import binding_limit

__all__ = ["PlanBuilder"]


@lru_cache(maxsize=512)
def _shader(name: str, trusted: bool, features: tuple[str, ...], context: tuple) -> tuple[str, Shader]:
    text = compose(name, **{key: _thaw(value) for key, value in context})
    return sha256(text), Shader(text, trusted, features)


class _Frozen(tuple):
    """A dict as a hashable tuple of pairs."""


def _freeze(value: Any) -> Any:
    if isinstance(value, Mapping):
        return _Frozen((key, _freeze(item)) for key, item in value.items())
    if isinstance(value, (list, tuple)):
        return tuple(_freeze(item) for item in value)
    return value


def _thaw(value: Any) -> Any:
    if isinstance(value, _Frozen):
        return {key: _thaw(item) for key, item in value}
    if isinstance(value, tuple):
        return [_thaw(item) for item in value]
    return value


class PlanBuilder:
    """Collects buffers and kernels, then gives a `Plan`.

    Parameters
    ----------
    primitive : str
        Name of the primitive.
    layout : Layout
        Its arguments.
    capabilities : Capabilities
        Whose limits the plan must keep.
    """

    def __init__(self, primitive: str, layout: Layout, capabilities: Capabilities):
        self._primitive = primitive
        self._capabilities = capabilities
        self._buffers: dict[str, BufferSpec] = {}
        self._steps: list[Step] = []
        self._siblings: list[Kernel] = []
        self._shaders: dict[str, Shader] = {}
        for operand in (part for argument in layout.values() for part in argument.parts if part.length):
            known = self._buffers.get(operand.buffer)
            size_bytes = max(operand.begin_bytes + operand.size_bytes, known.size_bytes if known else 0)
            self._buffers[operand.buffer] = BufferSpec(operand.buffer, "argument", size_bytes)

    def scratch(self, name: str, items: int, item_bytes: int = 4) -> Operand:
        """Add temporary memory of `items` items, zeroed once, and return it as an operand."""
        size_bytes = -(-max(items * item_bytes, 16) // 16) * 16
        limit = self._capabilities.limits["max-buffer-size"]
        if size_bytes > limit:
            raise LimitError(
                f"{self._primitive}: temporary memory {name!r} needs {size_bytes} bytes, but the device's "
                f"max-buffer-size is {limit} bytes; split the input into smaller parts"
            )
        self._buffers[name] = BufferSpec(name, "scratch", size_bytes)
        return Operand(items, name, 0, True, size_bytes, item_bytes)

    def constant(self, name: str, words: tuple[int, ...]) -> str:
        """Add a buffer with fixed contents and return its name."""
        self._buffers[name] = BufferSpec(name, "constant", 4 * len(words), words)
        return name

    def step(self, step: Step) -> None:
        """Add a step that is not a kernel."""
        self._steps.append(step)

    def kernel(
        self,
        label: str,
        shader: str,
        *,
        reads: Mapping[str, Operand],
        writes: Mapping[str, Operand],
        params: Mapping[str, int],
        workgroups: int,
        constants: Mapping[str, int],
        context: Mapping[str, Any],
        atomics: Mapping[str, tuple[str, str]] | None = None,
        trusted: bool = True,
        features: tuple[str, ...] = (),
        sibling: bool = False,
    ) -> None:
        """Add a dispatch of a shader file.

        Parameters
        ----------
        label, shader : str
            Name for people, and file name.
        reads, writes : mapping from str to Operand
            What ``load_NAME`` and ``store_NAME`` reach in the text. Operands that share a buffer share a binding,
            unless they were given parts of it. What is larger than a binding may be gets several, its segments.
        params : mapping from str to int
            Fields of the uniform ``params``; ``NAME_offset`` of each operand is added.
        workgroups : int
            How many; spread over three dimensions.
        constants : mapping from str to int
            Values of overrides.
        context : mapping
            Values for the template.
        atomics : mapping from str to (str, str), optional
            Further variables of the text, with the scratch buffer that each stands for, and their WGSL types.
        trusted : bool
            Whether the text holds no user's WGSL.
        features : tuple of str
            wgpu features that the text needs.
        sibling : bool
            Do not dispatch it: other lengths need its pipeline, with the same names of parameters.
        """
        operands = {**reads, **writes}
        parts = self._bound_parts(operands, writes)
        if sibling and any(part.segments > 1 for part in parts.values()):
            return  # lengths that want another shape want other bindings, too
        bindings = [Binding(0, "", "uniform")]
        buffers: list[dict[str, Any]] = []
        for number, ((buffer, begin, _), part) in enumerate(parts.items(), 1):
            for segment in range(part.segments):
                index = len(bindings)
                whole = begin == 0 and part.segments == 1 and part.size_bytes == self._buffers[buffer].size_bytes
                place = () if whole else (begin + segment * part.segment_bytes, part.bytes_of(segment))
                bindings.append(Binding(index, buffer, part.access, *place))
                # Names in the text must not depend on how an argument is called where the kernel does the same.
                var = f"words_{number}" if part.segments == 1 else f"words_{number}_{segment}"
                kind = f"array<{part.element}>"
                buffers.append({"index": index, "var": var, "access": part.access, "type": kind})
        for index, (var, (buffer, element)) in enumerate((atomics or {}).items(), len(bindings)):
            bindings.append(Binding(index, buffer, "read_write"))
            buffers.append({"index": index, "var": var, "access": "read_write", "type": element})
        self._check_bindings(label, len(buffers), parts)
        values = {**params, **{f"{name}_offset": operand.offset for name, operand in operands.items()}}
        vars_of = {key: f"words_{number}" for number, key in enumerate(parts, 1)}
        described = [
            {
                "name": name,
                "var": vars_of[_part_key(operand)],
                "element": parts[_part_key(operand)].element,
                **parts[_part_key(operand)].access_of(vars_of[_part_key(operand)]),
                **parts[_part_key(operand)].describe_items(vars_of[_part_key(operand)], operand.item_bytes),
                "offset": f"params.{name}_offset",
                "writable": name in writes,
            }
            for name, operand in operands.items()
        ]
        segmented = [part.describe_segments(vars_of[key]) for key, part in parts.items() if part.segments > 1]
        key, text = _shader(
            shader,
            trusted,
            features,
            tuple(
                (name, _freeze(value))
                for name, value in {
                    **context,
                    "params": list(values),
                    "buffers": buffers,
                    "operands": described,
                    "segmented": segmented,
                }.items()
            ),
        )
        self._shaders[key] = text
        if sibling:
            self._siblings.append(Kernel(label, key, tuple(bindings), (0, 0, 0), dict(constants)))
            return
        params_name = f"params_{len(self._steps)}"
        words = pack_words(list(values.values()))
        self._buffers[params_name] = BufferSpec(params_name, "params", 4 * len(words), words)
        bindings[0] = Binding(0, params_name, "uniform")
        self._steps.append(Kernel(label, key, tuple(bindings), self._grid(workgroups, label), dict(constants)))

    def _bound_parts(
        self, operands: Mapping[str, Operand], writes: Mapping[str, Operand]
    ) -> dict[tuple[str, int, int], _BoundPart]:
        """Return the parts of buffers that a kernel binds."""
        limit = binding_limit(self._capabilities)
        alignment = max(16, self._capabilities.limits["min-storage-buffer-offset-alignment"])
        # WebGPU allows no binding for reading beside a writable one of the same buffer.
        written = {operand.buffer for operand in writes.values()}
        parts = {}
        for key in dict.fromkeys(_part_key(operand) for operand in operands.values()):
            members = {name: operand for name, operand in operands.items() if _part_key(operand) == key}
            size_bytes = key[2]
            segmented = size_bytes > limit
            segment_bytes = limit // alignment * alignment if segmented else size_bytes
            # A segment's vec4 is written as a whole only.
            by_words = segmented and any(name in writes for name in members)
            element = _element([o.by_words() if by_words else o for o in members.values()], key[0] in written)
            access = "read_write" if key[0] in written else "read"
            parts[key] = _BoundPart(element, access, size_bytes, segment_bytes, -(-size_bytes // max(segment_bytes, 1)))
            if any(operand.offset + operand.length >= 1 << 32 for operand in members.values()):
                raise LimitError(
                    f"{self._primitive}: {', '.join(members)} end behind item 2^32 of a binding, but kernels count "
                    f"items in 32 bits; split the data into smaller parts"
                )
        return parts

    def _check_bindings(self, label: str, count: int, parts: Mapping[tuple[str, int, int], _BoundPart]) -> None:
        most = self._capabilities.limits["max-storage-buffers-per-shader-stage"]
        if count <= most:
            return
        large = ", ".join(f"{key[0]} of {part.size_bytes} bytes" for key, part in parts.items() if part.segments > 1)
        limit = binding_limit(self._capabilities)
        raise LimitError(
            f"{self._primitive}: kernel {label!r} needs {count} storage bindings"
            + (f" (bindings are of at most {limit} bytes, and it has {large})" if large else "")
            + f", but the device's max-storage-buffers-per-shader-stage is {most}; "
            + ("split the data into smaller parts" if large else "use a device with more")
        )

    def _grid(self, workgroups: int, label: str) -> tuple[int, int, int]:
        limit = self._capabilities.limits["max-compute-workgroups-per-dimension"]
        try:
            return workgroup_grid(workgroups, limit)
        except ValueError as error:
            raise LimitError(
                f"kernel {label!r} needs {workgroups} workgroups, but max-compute-workgroups-per-dimension is {limit}"
            ) from error

    def build(self, work: Work, parameters: Mapping[str, Any]) -> Plan:
        """Return the plan."""
        used = {b.buffer for s in self._steps if isinstance(s, Kernel) for b in s.bindings}
        used |= {name for s in self._steps if not isinstance(s, Kernel) for name in _names(s)}
        return Plan(
            self._primitive,
            tuple(spec for name, spec in self._buffers.items() if name in used),
            tuple(self._steps),
            self._shaders,
            work,
            parameters,
            tuple(self._siblings),
        )


@dataclass(frozen=True)
class _BoundPart:
    """A part of a buffer, as a kernel binds it."""

    element: str
    access: Access
    size_bytes: int
    segment_bytes: int
    segments: int

    def bytes_of(self, segment: int) -> int:
        """Return the size of a segment; the last one has the rest."""
        return min(self.segment_bytes, self.size_bytes - segment * self.segment_bytes)

    def access_of(self, var: str) -> dict[str, str]:
        """Return how an element is read and written, as formats of the index and of the value."""
        if self.segments == 1:
            return _access(var, self.element)
        return {kind: f"{var}_{kind}(%s{', %s' if kind != 'read' else ''})" for kind in _access(var, self.element)}

    def describe_items(self, var: str, item_bytes: int) -> dict[str, Any]:
        """Return how item `k` is read: wherever it lies, and in each segment if there are several."""
        length = self.segment_bytes // item_bytes  # whole items: segments begin at multiples of 16 bytes
        parts = self.describe_segments(var)["segments"] if self.segments > 1 else []
        return {
            "item_bytes": item_bytes,
            "type": "vec2<u32>" if item_bytes == 8 else "u32",
            "item": _item(self.access_of(var)["read"], self.element, item_bytes),
            "segments": [
                {"begin": s * length, "end": (s + 1) * length,
                 "item": _item(part["read"], self.element, item_bytes, part["begin"])}
                for s, part in enumerate(parts)
            ],
        }  # fmt: skip

    def describe_segments(self, var: str) -> dict[str, Any]:
        """Return what lib/bindings.wgsl needs for the functions that choose among segments."""
        length = self.segment_bytes // _ELEMENT_BYTES[self.element]
        return {
            "var": var,
            "value": "u32" if self.element == "atomic<u32>" else self.element,
            "writable": self.access == "read_write",
            "segments": [
                {"begin": s * length, "end": (s + 1) * length, **_access(f"{var}_{s}", self.element)}
                for s in range(self.segments)
            ],
        }


def _item(read: str, element: str, item_bytes: int, first: int = 0) -> str:
    """Return the text that reads item `k`, from elements of which the first is number `first`."""

    def at(index: str) -> str:
        return read % (f"({index}) - {first}u" if first else index)

    if item_bytes == 8:
        return at("k") if element == "vec2<u32>" else f"vec2<u32>({at('2u * k')}, {at('2u * k + 1u')})"
    if item_bytes == 2:
        word = f"{at('k >> 2u')}[(k >> 1u) & 1u]" if element == "vec2<u32>" else at("k >> 1u")
        return f"({word} >> (16u * (k & 1u))) & 0xffffu"
    return f"{at('k >> 2u')}[k & 3u]" if element == "vec4<u32>" else at("k")


_ELEMENT_BYTES = {"u32": 4, "atomic<u32>": 4, "vec2<u32>": 8, "vec4<u32>": 16}


def _part_key(operand: Operand) -> tuple[str, int, int]:
    return (operand.buffer, operand.begin_bytes, operand.size_bytes)


def _element(operands: Sequence[Operand], written: bool) -> str:
    """Return the WGSL type by which a binding is declared: the widest that all its operands can be reached by.

    Items of 2 bytes are written as halves of words, and another invocation may write the other half.
    """
    sizes = {operand.item_bytes for operand in operands}
    if 2 in sizes and written:
        return "atomic<u32>"
    if sizes == {2}:
        return "vec2<u32>" if all(operand.vec4 for operand in operands) else "u32"
    if sizes == {8}:
        return "vec2<u32>"
    return "vec4<u32>" if sizes == {4} and all(operand.vec4 for operand in operands) else "u32"


def _access(var: str, element: str) -> dict[str, str]:
    """Return how an element of a variable is read and written, as formats of the index and of the value."""
    if element == "atomic<u32>":
        return {
            "read": f"atomicLoad(&{var}[%s])", "write": f"atomicStore(&{var}[%s], %s)",
            "write_and": f"atomicAnd(&{var}[%s], %s)", "write_or": f"atomicOr(&{var}[%s], %s)",
        }  # fmt: skip
    return {"read": f"{var}[%s]", "write": f"{var}[%s] = %s"}


def _names(step: Step) -> tuple[str, ...]:
    return tuple(getattr(step, name) for name in ("buffer", "source", "destination") if hasattr(step, name))
