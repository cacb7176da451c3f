"""Builds plans: the one place that knows how a kernel's parameters, bindings and text fit together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from .capabilities import Capabilities
from .errors import LimitError
from .layout import Layout, Operand
from .plan import Binding, BufferSpec, Kernel, Plan, Shader, Step, Work, pack_words, workgroup_grid
from .shaders import compose, sha256

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
        for operand in layout.values():
            if operand.length:
                self._buffers[operand.buffer] = BufferSpec(operand.buffer, "argument", operand.size_bytes)

    def scratch(self, name: str, items: int, item_bytes: int = 4) -> Operand:
        """Add temporary memory of `items` items, zeroed once, and return it as an operand."""
        size_bytes = -(-max(items * item_bytes, 16) // 16) * 16
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
        atomics: Mapping[str, str] | None = None,
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
            What ``load_NAME`` and ``store_NAME`` reach in the text. Operands that share a buffer share a binding.
        params : mapping from str to int
            Fields of the uniform ``params``; ``NAME_offset`` of each operand is added.
        workgroups : int
            How many; spread over three dimensions.
        constants : mapping from str to int
            Values of overrides.
        context : mapping
            Values for the template.
        atomics : mapping from str to str, optional
            Further scratch buffers (by name) that the text uses under their own names, with their WGSL types.
        trusted : bool
            Whether the text holds no user's WGSL.
        features : tuple of str
            wgpu features that the text needs.
        sibling : bool
            Do not dispatch it: other lengths need its pipeline, with the same names of parameters.
        """
        operands = {**reads, **writes}
        written = {operand.buffer for operand in writes.values()}
        elements = {
            buffer: _element([operand for operand in operands.values() if operand.buffer == buffer], buffer in written)
            for buffer in {operand.buffer for operand in operands.values()}
        }
        names = list(dict.fromkeys(operand.buffer for operand in operands.values()))
        bindings = [Binding(0, "", "uniform")]
        buffers = []
        for index, buffer in enumerate(names, 1):
            access = "read_write" if buffer in written else "read"
            bindings.append(Binding(index, buffer, access))
            # Names in the text must not depend on how an argument is called where the kernel does the same.
            kind = f"array<{elements[buffer]}>"
            buffers.append({"index": index, "var": f"words_{index}", "access": access, "type": kind})
        for index, (buffer, element) in enumerate((atomics or {}).items(), len(names) + 1):
            bindings.append(Binding(index, buffer, "read_write"))
            buffers.append({"index": index, "var": buffer, "access": "read_write", "type": element})
        values = {**params, **{f"{name}_offset": operand.offset for name, operand in operands.items()}}
        described = [
            {
                "name": name,
                "var": f"words_{names.index(operand.buffer) + 1}",
                "element": elements[operand.buffer],
                **_access(f"words_{names.index(operand.buffer) + 1}", elements[operand.buffer]),
                "item_bytes": operand.item_bytes,
                "offset": f"params.{name}_offset",
                "writable": name in writes,
            }
            for name, operand in operands.items()
        ]
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
        limit = self._capabilities.limits["max-storage-buffer-binding-size"]
        for spec in self._buffers.values():
            if spec.size_bytes > limit:
                raise LimitError(
                    f"{self._primitive}: buffer {spec.name!r} needs a binding of {spec.size_bytes} bytes, but the "
                    f"device's max-storage-buffer-binding-size is {limit} bytes; split the input into smaller parts"
                )
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
    """Return how a word of a binding is read and written, as formats of the index and of the value."""
    if element == "atomic<u32>":
        return {"word_read": f"atomicLoad(&{var}[%s])", "word_write": f"atomicStore(&{var}[%s], %s)"}
    return {"word_read": f"{var}[%s]", "word_write": f"{var}[%s] = %s"}


def _names(step: Step) -> tuple[str, ...]:
    return tuple(getattr(step, name) for name in ("buffer", "source", "destination") if hasattr(step, name))
