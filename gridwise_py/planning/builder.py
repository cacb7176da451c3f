"""Builds plans: the one place that knows how a kernel's parameters, bindings and text fit together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, NamedTuple, Protocol, cast

from ..errors import LimitError, ShaderError
from ..settings import SHADER_CHECKS, ShaderChecks, strictest
from ..types.capabilities import FEATURES_OF_FLOAT64, Capabilities, check_float64
from . import accessors
from .bindings import BoundChunks, BoundPart, PartKey, apart, bound_parts, part_key
from .kernel_request import Extent, Invocations, KernelFile, Memory, declare, entry_point
from .layout import COUNT, Layout, Operand
from .plan import (
    Binding,
    BufferSpec,
    Copy,
    CountedWork,
    Kernel,
    Plan,
    Shader,
    Step,
    Work,
    pack_words,
    workgroup_grid,
)
from .shaders import compose_kernel, sha256
from .sink import Sink, sink_text
from .source import Source, SourceText, source_text, wide_functions
from .windows import binding_limit

#: How a text names what it has to do: of all items that there is room for, or of those that the GPU counted.
_USED = {
    "n": "params.n", "tiles": "params.tiles", "tiles_per_block": "params.tiles_per_block", "blocks": "params.blocks",
}  # fmt: skip
_USED_IF_COUNTED = {
    "n": "item_count()", "tiles": "used_tiles()", "tiles_per_block": "tiles_per_block()", "blocks": "used_blocks()",
}  # fmt: skip
# Of every kernel with these parameters.
_ITEM_COUNT = """
// The items of the window: the GPU may know how many the call has.
fn item_count() -> u32 { return min(max(params.n, params.first) - params.first, params.capacity); }"""


class _Header(NamedTuple):
    """What the text around an algorithm is made of; see `declare` and `entry_point`."""

    fields: tuple[str, ...]
    bindings: str
    extent: Extent
    sized: bool


@dataclass(frozen=True)
class _Reach:
    """How a kernel reaches its memory.

    Attributes
    ----------
    bindings : list of Binding
        The first is for the parameters.
    bindings_text : str
        Their declarations, and the functions that load, store and compute items.
    params : dict from str to int
        Parameters of these functions.
    context : dict
        What a template may ask of the memory.
    checks : tuple of ShaderChecks or None
        The run-time checks that expressions of users ask for.
    features : tuple of str
        Those of a device that expressions need.
    is_split : bool
        Whether an operand has several bindings.
    """

    bindings: list[Binding]
    bindings_text: str
    params: dict[str, int]
    context: dict[str, Any]
    checks: tuple[ShaderChecks | None, ...]
    features: tuple[str, ...]
    is_split: bool


@lru_cache(maxsize=512)
def _shader(
    name: str,
    header: _Header,
    checks: ShaderChecks | None,
    features: tuple[str, ...],
    context: tuple[tuple[str, Any], ...],
) -> tuple[str, Shader]:
    """Return the sha256 of a text, and the text."""
    fields, bindings, extent, sized = header
    values = {key: _thaw(value) for key, value in context}
    text = compose_kernel(
        name, declare(fields, bindings, sized=sized), lambda parameters: entry_point(parameters, extent), values
    )
    return sha256(text), Shader(text, checks or "none", features, "library" if checks is None else "user")


class _Frozen(tuple[tuple[str, Any], ...]):
    """A dict as a hashable tuple of pairs."""


def _freeze(value: Any) -> Any:
    if isinstance(value, (str, int)):  # most are, and asking whether something is a Mapping is slow
        return value
    if isinstance(value, (list, tuple)):
        return tuple([_freeze(item) for item in cast(Sequence[Any], value)])
    if isinstance(value, Mapping):
        return _Frozen([(key, _freeze(item)) for key, item in cast(Mapping[str, Any], value).items()])
    return value


def _thaw(value: Any) -> Any:
    if isinstance(value, _Frozen):
        return {key: _thaw(item) for key, item in value}
    if isinstance(value, tuple):
        return [_thaw(item) for item in cast(tuple[Any, ...], value)]
    return value


class Part(Protocol):
    """A primitive whose plan may be a part of another's; see `PlanBuilder.include`."""

    def add_to(self, builder: PlanBuilder, layout: Layout) -> dict[str, Any]:
        """Add its steps, and return what a plan reports of them; `layout` has its arguments by their names."""
        ...


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
        #: The argument with the number of items that count, where only the GPU knows it.
        self.count: Operand | None = layout.get(COUNT)
        self._buffers: dict[str, BufferSpec] = {}
        self._steps: list[Step] = []
        self._feeds: list[Copy] = []
        self._siblings: list[Kernel] = []
        self._shaders: dict[str, Shader] = {}
        #: The names of the part that is being added, and of those that it is in.
        self._part: tuple[str, ...] = ()
        for operand in (part for argument in layout.values() for part in argument.parts if part.length):
            known = self._buffers.get(operand.buffer)
            size_bytes = max(operand.begin_bytes + operand.size_bytes, known.size_bytes if known else 0)
            self._buffers[operand.buffer] = BufferSpec(operand.buffer, "argument", size_bytes)

    def include(self, name: str, part: Part, operands: Mapping[str, Operand], *, counted: bool) -> dict[str, Any]:
        """Add the steps of another primitive, as a part of this plan.

        Whatever names the parts of a plan use, they stay apart. A kernel of a part is called ``NAME: LABEL``, its
        temporary memory and constants ``NAME/BUFFER``; in a part of a part both names come first. The uniform buffers
        are numbered through the whole plan. What the part reports is returned, and is not in this plan's parameters
        unless the caller puts it there. The texts of the kernels are those of the part's own plan.

        Parameters
        ----------
        name : str
            What people call the part. Two of one name share their temporary memory: they must be of the same lengths.
        part : Part
            The other primitive.
        operands : mapping from str to Operand
            What the part has for its arguments, by their names: arguments of this plan, its temporary memory, or
            expressions of either.
        counted : bool
            Whether the count of the call, if it has one, is that of the part's items. Otherwise all of them count.

        Returns
        -------
        dict
            What the part reports.
        """
        before = self._part, self.count
        self._part = (*self._part, name)
        if not counted:
            self.count = None
        try:
            return part.add_to(self, Layout({**operands, **({} if self.count is None else {COUNT: self.count})}))
        finally:
            self._part, self.count = before

    def counted_work(self, items: int, read_bytes: int, write_bytes: int) -> tuple[CountedWork, ...]:
        """Return the part of the work that depends on the count: bytes of each of at most `items` items."""
        return () if self.count is None else (CountedWork(COUNT, items, read_bytes, write_bytes),)

    def scratch(self, name: str, items: int, item_bytes: int = 4, *, in_chunks: bool = False) -> Operand:
        """Add temporary memory of `items` items, zeroed once, and return it as an operand.

        Memory of one name is one buffer, with room for the most items that were asked for: kernels of other lengths
        need other amounts. With `in_chunks` it may be larger than a buffer: it then lies in several.
        """
        size_bytes = -(-max(items * item_bytes, 16) // 16) * 16
        limit = self._capabilities.limits["max-buffer-size"]
        if size_bytes > limit and in_chunks:
            step = limit // 16 * 16 // item_bytes
            firsts = range(0, items, step)
            chunks = [self.scratch(f"{name}_{i}", min(step, items - at), item_bytes) for i, at in enumerate(firsts)]
            return Operand(items, "", vec4=False, item_bytes=item_bytes, chunks=tuple(chunks))
        if size_bytes > limit:
            raise LimitError(
                f"{self._primitive}: temporary memory {name!r} needs {size_bytes} bytes, but the device's "
                f"max-buffer-size is {limit} bytes; split the input into smaller parts"
            )
        name = self._in_part(name)
        known_bytes = self._buffers[name].size_bytes if name in self._buffers else 0
        self._buffers[name] = BufferSpec(name, "scratch", max(size_bytes, known_bytes))
        return Operand(items, name, 0, True, size_bytes, item_bytes)

    def has(self, operand: Operand) -> bool:
        """Whether the plan has the buffer of an operand: it may lack that of an empty one."""
        return operand.buffer in self._buffers

    def constant(self, name: str, words: tuple[int, ...]) -> str:
        """Add a buffer with fixed contents and return its name."""
        name = self._in_part(name)
        self._buffers[name] = BufferSpec(name, "constant", 4 * len(words), words)
        return name

    def step(self, step: Step) -> None:
        """Add a step that is not a kernel."""
        self._steps.append(step)

    def _in_part(self, name: str) -> str:
        """Return the name in the plan of a buffer of the part that is being added."""
        return "/".join((*self._part, name))

    def kernel(
        self,
        label: str,
        file: KernelFile,
        memory: Memory,
        *,
        params: Mapping[str, int],
        extent: Extent,
        fed: Mapping[str, Operand] | None = None,
        sibling: bool = False,
        counted_from: int | None = None,
    ) -> None:
        """Add a dispatch of a shader file.

        Parameters
        ----------
        label : str
            Name for people.
        file : KernelFile
        memory : Memory
        params : mapping from str to int
            Values of the fields of `Params`; ``NAME_offset`` of each operand is added.
        extent : Extent
            How often it runs.
        fed : mapping from str to Operand, optional
            Fields of `Params` whose values lie on the GPU: the first item of each operand, of 4 bytes, is copied into
            the parameters before any kernel of the plan runs. The text does not know of it. Until then a field has its
            value from `params`, which must be one that the kernel can run with.
        sibling : bool
            Do not dispatch it: other lengths need its pipeline, with the same names of parameters.
        counted_from : int or None
            The first item of the window, where only so many items count as the call has on the GPU, if it has a
            `count`. The text is then another (``//$ if counted``): ``n`` is fed, and bounded by the items of the window
            (``params["n"]``); ``{{ used.n }}`` is the number. None where all items count.
        """
        label = ": ".join((*self._part, label))
        workgroups = _workgroups(extent, params, file)
        counted = False
        if counted_from is not None and self.count is not None:
            counted, fed = True, {**(fed or {}), "n": self.count}
            params = {**params, "n": counted_from + params["n"], "first": counted_from, "capacity": params["n"]}
        reach = self._reach(label, memory, counted=counted, by_segment="by_segment" in file.context)
        if sibling and reach.is_split:
            return  # lengths that want another shape want other bindings, too
        values = {**params, **reach.params}
        header = _Header(
            tuple(values),
            reach.bindings_text + (_ITEM_COUNT if {"n", "first", "capacity"} <= values.keys() else ""),
            0 if isinstance(extent, int) else extent,
            sized="WORKGROUP_SIZE" in file.constants,
        )
        used = _USED_IF_COUNTED if counted else _USED
        context = {**file.context, **reach.context, "counted": counted, "used": used}
        frozen = tuple((name, _freeze(value)) for name, value in context.items())
        features = tuple(dict.fromkeys((*file.features, *reach.features)))
        key, text = _shader(file.name, header, strictest((file.shader_checks, *reach.checks)), features, frozen)
        # The same text may come twice, from two that ask for other checks.
        self._shaders[key] = max(
            text, self._shaders.get(key, text), key=lambda one: SHADER_CHECKS.index(one.shader_checks)
        )
        bindings, constants = reach.bindings, dict(file.constants)
        if sibling:
            self._siblings.append(Kernel(label, key, tuple(bindings), (0, 0, 0), constants))
            return
        params_name = f"params_{len(self._steps)}"
        words = pack_words(values)
        self._buffers[params_name] = BufferSpec(params_name, "params", 4 * len(words), words)
        bindings[0] = Binding(0, params_name, "uniform")
        for name, operand in (fed or {}).items():
            self._feeds.append(_feed(file.name, operand, params_name, header.fields, name))
        self._steps.append(Kernel(label, key, tuple(bindings), self._grid(workgroups, label), constants))

    def _reach(self, label: str, memory: Memory, *, counted: bool, by_segment: bool) -> _Reach:
        """Return how a kernel reaches its memory."""
        rows = memory.units is not None
        sources = {name: operand for name, operand in memory.reads.items() if isinstance(operand, Source)}
        sinks = {name: operand for name, operand in memory.writes.items() if isinstance(operand, Sink)}
        for each in (*sources.values(), *sinks.values()):
            if each.program.doubles is not None:
                what = "a conversion" if each.program.doubles == "cast" else repr(each.program.doubles)
                check_float64(f"{what} in an expression", self._capabilities)
        pairs = "shader-int64" not in self._capabilities.features
        texts = _computing_texts(sources, sinks, rows=rows, counted=counted, pairs=pairs)
        leaves = {name: _leaves(name, operand) for name, operand in {**memory.reads, **memory.writes}.items()}
        written = {leaf for name in memory.writes for leaf in leaves[name]}
        operands = apart({leaf: operand for each in leaves.values() for leaf, operand in each.items()}, written)
        units = _units_of_leaves(memory.units, leaves, texts)
        parts, chunks = bound_parts(self._primitive, operands, written, self._capabilities, units=units)
        bindings, declarations = self._bindings(parts, memory.atomics)
        self._check_bindings(label, len(declarations), parts, chunks)
        params = {f"{name}_offset": operand.offset for name, operand in operands.items()}
        for name, source in (*sources.items(), *sinks.items()):
            params |= source.params(name, texts[name].fields)
        by_rows = {leaf for name in texts for leaf, operand in leaves[name].items() if operand.item_bytes != 4}
        computing = "".join(text.text for text in texts.values())
        features: tuple[str, ...] = ()
        if any(each.program.is_wide for each in (*sources.values(), *sinks.values())):
            computing = wide_functions(computing, pairs) + computing
            features = () if pairs else FEATURES_OF_FLOAT64 if "f64" in computing else FEATURES_OF_FLOAT64[1:]
        reached = {
            name: chunks[operand.chunks] if operand.chunks else parts[part_key(operand)]
            for name, operand in operands.items()
        }
        named = tuple(
            accessors.Accessors(
                name,
                reached[name].place,
                operand.item_bytes,
                writable=name in written,
                segments=reached[name].items(operand.item_bytes),
                rows=rows or name in by_rows,
                contended=name in memory.contended,
            )
            for name, operand in operands.items()
        )
        places = tuple(part.place for part in (*parts.values(), *chunks.values()))
        return _Reach(
            bindings,
            accessors.bindings(tuple(declarations), places, named, by_segment=by_segment) + computing,
            params,
            {
                "operand_names": list(leaves),
                "computed": [name for name, source in sources.items() if source.is_struct]
                + [name for name, sink in sinks.items() if sink.words],
                "segments": {each.name: len(each.segments) for each in named},
            },
            tuple(source.program.shader_checks for source in sources.values()),
            features,
            is_split=bool(chunks) or any(part.segments > 1 for part in parts.values()),
        )

    def _bindings(
        self, parts: Mapping[PartKey, BoundPart], atomics: Mapping[str, tuple[Operand, str]]
    ) -> tuple[list[Binding], list[str]]:
        """Return the bindings of a kernel, whose first is for its parameters, and the declarations of the others."""
        bindings = [Binding(0, "", "uniform")]
        declarations: list[str] = []
        for (buffer, begin, _), part in parts.items():
            for segment in range(part.segments):
                index = len(bindings)
                whole = begin == 0 and part.segments == 1 and part.size_bytes == self._buffers[buffer].size_bytes
                place = () if whole else (begin + segment * part.segment_bytes, part.bytes_of(segment))
                bindings.append(Binding(index, buffer, part.access, *place))
                kind = f"array<{part.element}>"
                declarations.append(accessors.declaration(index, part.access, part.var_of(segment), kind))
        for index, (var, (memory, element)) in enumerate(atomics.items(), len(bindings)):
            bindings.append(Binding(index, memory.buffer, "read_write"))
            declarations.append(accessors.declaration(index, "read_write", var, element))
        return bindings, declarations

    def _check_bindings(
        self, label: str, count: int, parts: Mapping[PartKey, BoundPart], chunks: Mapping[Any, BoundChunks]
    ) -> None:
        most = self._capabilities.limits["max-storage-buffers-per-shader-stage"]
        if count <= most:
            return
        large = [f"{key[0]} of {part.size_bytes} bytes" for key, part in parts.items() if part.segments > 1]
        has = ", ".join([*large, *(f"arguments of {part.segments} chunks" for part in chunks.values())])
        limit = binding_limit(self._capabilities)
        remedy = "use fewer chunks" if chunks else "use a device with more"
        raise LimitError(
            f"{self._primitive}: kernel {label!r} needs {count} storage bindings"
            + (f" (bindings are of at most {limit} bytes, and it has {has})" if has else "")
            + f", but the device's max-storage-buffers-per-shader-stage is {most}; "
            + ("split the data into smaller parts" if large else remedy)
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
        # Copies come before all kernels: each ends a pass.
        steps = (*self._feeds, *self._steps)
        used = {b.buffer for s in steps if isinstance(s, Kernel) for b in s.bindings}
        used |= {name for s in steps if not isinstance(s, Kernel) for name in _names(s)}
        return Plan(
            self._primitive,
            tuple(spec for name, spec in self._buffers.items() if name in used),
            steps,
            self._shaders,
            work,
            parameters,
            tuple(self._siblings),
        )


def _computing_texts(
    sources: Mapping[str, Source], sinks: Mapping[str, Sink], *, rows: bool, counted: bool, pairs: bool
) -> dict[str, SourceText]:
    """Return the functions of operands that compute what is loaded or stored; `rows`, `counted` as for a kernel."""
    texts = {
        name: source_text(name, each.program, each.is_struct, rows, each.is_pair, pairs=pairs)
        for name, each in sources.items()
    }
    texts |= {name: sink_text(name, each.program, each.words, each.kind, pairs=pairs) for name, each in sinks.items()}
    if counted:
        texts = {name: replace(text, text=_ending_with_the_count(name, text.text)) for name, text in texts.items()}
    return texts


def _leaves(name: str, operand: Operand) -> dict[str, Operand]:
    """Return the memory that an operand of a kernel reaches, by the names that the text has for it."""
    if isinstance(operand, Source):
        return operand.named_leaves(name)
    if isinstance(operand, Sink):
        return {f"{name}_0": operand.array}
    return {name: operand}


def _units_of_leaves(
    units: Mapping[str, int] | None, leaves: Mapping[str, Mapping[str, Operand]], texts: Mapping[str, SourceText]
) -> dict[str, int] | None:
    """Return the units of a kernel's operands for the memory that these reach: of what is computed, four items."""
    if units is None:
        return None
    return {
        leaf: 4 * operand.item_bytes if name in texts else units[name]
        for name, each in leaves.items()
        if name in units
        for leaf, operand in each.items()
    }


def _workgroups(extent: Extent, params: Mapping[str, int], file: KernelFile) -> int:
    """Return how many workgroups a kernel has work for."""
    if isinstance(extent, Invocations):
        return -(-params[extent.field] // file.constants["WORKGROUP_SIZE"])
    return params[extent] if isinstance(extent, str) else 1 if extent is None else extent


def _ending_with_the_count(name: str, text: str) -> str:
    """Return the text of an expression whose last item is the last one that counts."""
    end = f"params.{name}_end"
    return text.replace(end, f"min(max(params.n, 1u) - 1u, {end})")


def _feed(shader: str, source: Operand, params_name: str, fields: Sequence[str], field: str) -> Copy:
    """Return the copy of one item of 4 bytes into a field of the parameters."""
    if field not in fields:
        raise ShaderError(f"shader {shader!r} has no field {field!r} in Params to feed; it has {', '.join(fields)}")
    if source.item_bytes != 4 or source.length < 1 or source.chunks:
        raise ShaderError(f"shader {shader!r}: field {field!r} is fed by one item of 4 bytes, not by {source}")
    return Copy(source.buffer, source.first_byte, params_name, 4 * fields.index(field), 4)


def _names(step: Step) -> tuple[str, ...]:
    """Return the buffers of a step other than a kernel."""
    return tuple(getattr(step, name) for name in ("buffer", "source", "destination") if hasattr(step, name))
