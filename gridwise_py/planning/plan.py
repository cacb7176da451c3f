"""Plans: the work of a primitive's call, as plain data.

A primitive makes a `Plan` from its configuration, the layout of its arguments and the capabilities of a device. Plans
can be made, read, compared and written to JSON without a device; only the executor turns one into wgpu objects.
Shader texts are kept without the prologue that a target needs (`gridwise_py.planning.shaders.prologue`).
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from types import MappingProxyType
from typing import Any, Literal

from ..errors import ArgumentError, LimitError
from ..settings import ShaderChecks
from .layout import COUNT
from .shaders import sha256

Role = Literal["argument", "scratch", "params", "constant"]
Access = Literal["uniform", "read", "read_write"]


@dataclass(frozen=True)
class BufferSpec:
    """A buffer that a plan uses.

    Attributes
    ----------
    name : str
    role : {"argument", "scratch", "params", "constant"}
        The owner: arguments come from the caller; the executor makes scratch, params and constants.
    size_bytes : int
        Minimum size.
    words : tuple of int, optional
        Initial contents, as 32-bit words (params and constants). Scratch starts as zeros and keeps the contents that
        earlier dispatches left.
    """

    name: str
    role: Role
    size_bytes: int
    words: tuple[int, ...] | None = None


@dataclass(frozen=True)
class Binding:
    """One ``@group(0) @binding(index)`` of a kernel: a buffer, or `size_bytes` of it from `offset_bytes` on."""

    index: int
    buffer: str
    access: Access
    offset_bytes: int = 0
    size_bytes: int | None = None


@dataclass(frozen=True)
class Shader:
    """A composed WGSL text without prologue.

    Attributes
    ----------
    text : str
    shader_checks : {"none", "bounds", "all"}
        Which run-time checks it is compiled with: none, as texts of this library, whose indices and loops are known to
        be in bounds; of indices; or of indices and of loops, which then end.
    features : tuple of str
    origin : {"library", "user", "file"}
        Who wrote some of it. Texts from a file have all checks on any device.
    """

    text: str
    shader_checks: ShaderChecks = "none"
    features: tuple[str, ...] = ()
    origin: Literal["library", "user", "file"] = field(default="library", compare=False)


@dataclass(frozen=True)
class Kernel:
    """A dispatch of one compute shader.

    Attributes
    ----------
    label : str
        Its name in tables of times.
    shader : str
        Key into `Plan.shaders`: the sha256 of the text.
    bindings : tuple of Binding
    workgroups : tuple of int
        Workgroup counts (x, y, z).
    constants : mapping from str to int or float
        Values of WGSL overrides.
    entry_point : str
    """

    label: str
    shader: str
    bindings: tuple[Binding, ...]
    workgroups: tuple[int, int, int]
    constants: Mapping[str, int | float] = field(default_factory=dict[str, int | float])
    entry_point: str = "main"

    def __hash__(self) -> int:
        return hash((self.label, self.shader, self.bindings, self.workgroups))


@dataclass(frozen=True)
class Fill:
    """Zeroes `size_bytes` of `buffer`, from `offset_bytes` on."""

    buffer: str
    offset_bytes: int
    size_bytes: int


@dataclass(frozen=True)
class Copy:
    """Copies `size_bytes` between buffers."""

    source: str
    source_offset_bytes: int
    destination: str
    destination_offset_bytes: int
    size_bytes: int


@dataclass(frozen=True)
class CountedWork:
    """A part of the work that depends on a number that only the GPU knows.

    Attributes
    ----------
    count : str
        The argument that holds the number: ``n`` for the items of the inputs, or an output.
    items : int
        The most that the number may be: larger ones stand for this one.
    read_bytes, write_bytes : int
        Of each of these items.
    """

    count: str
    items: int
    read_bytes: int
    write_bytes: int


@dataclass(frozen=True)
class Work:
    """The minimum work of the job, whatever the algorithm.

    Of counted items it is that of all for which there is room.

    Attributes
    ----------
    items : int
        Of the input.
    read_bytes, write_bytes : int
    flops : int
        How often operators are applied.
    counted : tuple of CountedWork
        What depends on numbers that only the GPU knows.
    """

    items: int
    read_bytes: int
    write_bytes: int
    flops: int = 0
    counted: tuple[CountedWork, ...] = ()

    @property
    def moved_bytes(self) -> int:
        """Bytes read and bytes written."""
        return self.read_bytes + self.write_bytes

    def with_counts(self, counts: Mapping[str, int]) -> Work:
        """Return the work of the true numbers, by the arguments that hold them."""
        items, read, written, flops = self.items, self.read_bytes, self.write_bytes, self.flops
        left = [part for part in self.counted if part.count not in counts]
        for part in self.counted:
            if part in left:
                continue
            found = min(counts[part.count], part.items)
            read -= (part.items - found) * part.read_bytes
            written -= (part.items - found) * part.write_bytes
            if part.count == COUNT and part.items:
                items, flops = found, self.flops * found // part.items
        return Work(items, read, written, flops, tuple(left))

    def totals(self) -> dict[str, int]:
        """Return the numbers of the whole, by their names."""
        return {
            "items": self.items, "read_bytes": self.read_bytes, "write_bytes": self.write_bytes, "flops": self.flops
        }  # fmt: skip


Step = Kernel | Fill | Copy


@dataclass(frozen=True)
class Plan:
    """What the host does for a call of a primitive.

    Attributes
    ----------
    primitive : str
    buffers : tuple of BufferSpec
    steps : tuple of Kernel, Fill, Copy
        Each sees the writes of earlier ones.
    shaders : mapping from str to Shader
        By the sha256 of the text.
    work : Work
    parameters : mapping
        Choices, such as the strategy.
    siblings : tuple of Kernel
        Kernels for other lengths, which are compiled together with its own.
    """

    primitive: str
    buffers: tuple[BufferSpec, ...]
    steps: tuple[Step, ...]
    shaders: Mapping[str, Shader]
    work: Work
    parameters: Mapping[str, Any] = field(default_factory=dict[str, Any])
    siblings: tuple[Kernel, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "shaders", MappingProxyType(dict(self.shaders)))
        object.__setattr__(self, "parameters", MappingProxyType(dict(self.parameters)))
        names = [spec.name for spec in self.buffers]
        if len(set(names)) != len(names):
            raise ValueError(f"buffer names of plan {self.primitive!r} are not unique: {names}")
        for name in self._names_used():
            if name not in names:
                raise ValueError(f"plan {self.primitive!r} uses buffer {name!r}, but has only {names}")
        for kernel in self.kernels + self.siblings:
            if kernel.shader not in self.shaders:
                raise ValueError(f"kernel {kernel.label!r} has no shader {kernel.shader!r} in its plan")

    @functools.cached_property
    def _hash(self) -> int:
        return hash((self.primitive, self.buffers, self.steps))

    def __hash__(self) -> int:
        return self._hash  # made once: each call looks its plan up

    def _names_used(self) -> set[str]:
        names: set[str] = set()
        for step in self.steps:
            if isinstance(step, Kernel):
                names.update(b.buffer for b in step.bindings)
            elif isinstance(step, Fill):
                names.add(step.buffer)
            else:
                names.update((step.source, step.destination))
        return names

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        """The dispatches among the steps."""
        return tuple(step for step in self.steps if isinstance(step, Kernel))

    @property
    def copied_from(self) -> frozenset[str]:
        """The buffers that copies read."""
        return frozenset(step.source for step in self.steps if isinstance(step, Copy))

    @property
    def copied_to(self) -> frozenset[str]:
        """The buffers that copies and fills write."""
        return frozenset(
            step.destination if isinstance(step, Copy) else step.buffer
            for step in self.steps
            if not isinstance(step, Kernel)
        )

    @property
    def features(self) -> frozenset[str]:
        """wgpu features that it needs."""
        return frozenset(f for shader in self.shaders.values() for f in shader.features)

    @property
    def scratch_bytes(self) -> int:
        """Temporary memory that it needs in addition to its arguments."""
        return sum(spec.size_bytes for spec in self.buffers if spec.role != "argument")

    def buffer(self, name: str) -> BufferSpec:
        """Return the buffer of that name."""
        return next(spec for spec in self.buffers if spec.name == name)

    @property
    def shader_checks(self) -> tuple[ShaderChecks, ...]:
        """The run-time checks of each dispatch."""
        return tuple(self.shaders[kernel.shader].shader_checks for kernel in self.kernels)

    def with_checks(self, level: ShaderChecks) -> Plan:
        """Return the plan with one level of run-time checks; refuse less than all for texts from a file."""
        shaders = {key: replace(shader, shader_checks=level) for key, shader in self.shaders.items()}
        if level != "all" and any(shader.origin == "file" for shader in shaders.values()):
            raise ArgumentError(
                f"{self.primitive}: the plan was read from a file, so its texts need all run-time checks, but the "
                f"device has {level!r} for all shaders; leave out GRIDWISE_SHADER_CHECKS={level}, or Dawn's toggle"
            )
        return replace(self, shaders=shaders)

    def to_json(self, *, indent: int | None = None) -> str:
        """Return the plan as JSON, for `from_json`."""
        data = {
            "primitive": self.primitive,
            "buffers": [asdict(spec) for spec in self.buffers],
            "steps": [_step_to_dict(step) for step in self.steps],
            "shaders": {key: {"text": one.text, "features": one.features} for key, one in self.shaders.items()},
            "siblings": [_step_to_dict(kernel) for kernel in self.siblings],
            "work": asdict(self.work),
            "parameters": dict(self.parameters),
        }
        return json.dumps(data, indent=indent, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> Plan:
        """Return the plan of `to_json`, with all run-time checks.

        Raises
        ------
        ArgumentError
            If the text is none.
        """
        try:
            return cls._from_dict(json.loads(text))
        except (LookupError, TypeError, ValueError, AttributeError, RecursionError) as error:
            problem = f"{type(error).__name__}: {error}"[:200]
            raise ArgumentError(f"this text is no plan ({problem}); write one by gw.Plan.to_json()") from error

    @classmethod
    def _from_dict(cls, data: Mapping[str, Any]) -> Plan:
        shaders = {
            sha256(shader["text"]): Shader(shader["text"], "all", tuple(shader["features"]), "file")
            for shader in data["shaders"].values()
        }
        if shaders.keys() != data["shaders"].keys():  # modules are kept by it: one text would run in another's place
            raise ArgumentError("the plan has a text whose sha256 is another than it says; write it anew by to_json()")
        return cls(
            primitive=data["primitive"],
            buffers=tuple(
                BufferSpec(**spec | {"words": None if spec["words"] is None else tuple(spec["words"])})
                for spec in data["buffers"]
            ),
            steps=tuple(_step_from_dict(step) for step in data["steps"]),
            shaders=shaders,
            work=_work_from_dict(data["work"]),
            parameters=data["parameters"],
            siblings=tuple(_kernel_from_dict(kernel) for kernel in data.get("siblings", ())),
        )


def _work_from_dict(data: Mapping[str, Any]) -> Work:
    totals: dict[str, Any] = {key: value for key, value in data.items() if key != "counted"}
    return Work(**totals, counted=tuple(CountedWork(**part) for part in data.get("counted", ())))


_STEP_KINDS: dict[str, type[Step]] = {"kernel": Kernel, "fill": Fill, "copy": Copy}


def _step_to_dict(step: Step) -> dict[str, Any]:
    kind = next(kind for kind, cls in _STEP_KINDS.items() if isinstance(step, cls))
    return {"kind": kind, **asdict(step)}


def _step_from_dict(data: Mapping[str, Any]) -> Step:
    if data["kind"] == "kernel":
        return _kernel_from_dict(data)
    return _STEP_KINDS[data["kind"]](**{key: value for key, value in data.items() if key != "kind"})


def _kernel_from_dict(data: Mapping[str, Any]) -> Kernel:
    values = {key: value for key, value in data.items() if key != "kind"}
    values["bindings"] = tuple(Binding(**binding) for binding in values["bindings"])
    values["workgroups"] = tuple(values["workgroups"])
    return Kernel(**values)


_WORD = 0xFFFFFFFF


def workgroup_grid(count: int, limit: int) -> tuple[int, int, int]:
    """Spread `count` workgroups over three dimensions of at most `limit` each.

    The grid may hold more workgroups than `count`; the surplus ones do nothing.

    Raises
    ------
    ValueError
        If three dimensions do not suffice.
    """
    if count <= limit:
        return (count, 1, 1)
    rows = -(-count // limit)
    if rows <= limit:
        return (-(-count // rows), rows, 1)
    layers = -(-rows // limit)
    if layers > limit:
        raise ValueError(f"{count} workgroups do not fit in three dimensions of {limit}")
    rows = -(-rows // layers)
    return (-(-count // (rows * layers)), rows, layers)


def pack_words(values: Mapping[str, int]) -> tuple[int, ...]:
    """Return 32-bit words for a uniform buffer, padded to a multiple of 16 bytes.

    Parameters
    ----------
    values : mapping from str to int
        Of u32 or i32, by the names of the fields.

    Raises
    ------
    LimitError
        If one does not fit 32 bits: a kernel would compute with another number.
    """
    for name, value in values.items():
        if not -(1 << 31) <= value < 1 << 32:
            raise LimitError(
                f"the parameter {name!r} of a kernel is {value}, which 32 bits do not hold; split the data into "
                f"smaller parts, or give a smaller number"
            )
    words = [int(value) & _WORD for value in values.values()]
    return tuple(words + [0] * (-len(words) % 4))
