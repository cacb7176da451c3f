"""Kernel: the user's WGSL, run and timed like the primitives of the library."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from math import prod
from numbers import Real
from typing import Any, Literal, TypeAlias, cast, get_args

import numpy as np
import wgpu

from ..call_errors import explained
from ..errors import ArgumentError, DatatypeError, LengthError, LimitError, ShaderError
from ..planning.kernel_text import KernelText, Uniform, Variable
from ..planning.layout import Layout, Operand
from ..planning.plan import Binding, BufferSpec, Plan, Shader, Work
from ..planning.plan import Kernel as PlanKernel
from ..planning.shaders import enabled_features, sha256
from ..planning.signature import Argument, ValueRule
from ..runtime.pipelines import Pipeline
from ..settings import SHADER_CHECKS, ShaderChecks
from ..types.capabilities import Capabilities
from ..types.datatype import ITEM_DATATYPES, Datatype, as_datatype
from ..types.options import integer, one_of
from .base import Primitive

Access: TypeAlias = Literal["read", "read_write", "write", "uniform"]
_ACCESS: tuple[Access, ...] = get_args(Access)
# Options of these methods cannot be names of arguments.
_TAKEN = frozenset(
    name
    for method in (Primitive.execute, Primitive.record, Primitive.bind)
    for name, parameter in inspect.signature(method).parameters.items()
    if parameter.kind is not inspect.Parameter.VAR_KEYWORD
)


def _check_text(label: Any, option: str, text: Any) -> None:
    """Refuse what is no text, or one that cannot be handed to a compiler."""
    if not isinstance(text, str):
        raise DatatypeError(f"{label}: {option} must be a str, not {type(text).__name__}")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ArgumentError(
            f"{label!a}: {option} has {text[error.start]!a} at {error.start}, half of a pair that stands for one "
            f"character; read the text as UTF-8"
        ) from error


class Kernel(Primitive):
    """Your own compute shader.

    Parameters
    ----------
    device : wgpu.GPUDevice
    wgsl : str
        The shader, with all bindings in ``@group(0)``, which is compiled immediately.
    bindings : mapping from str to str
        By variable: ``"read"``, ``"read_write"`` or ``"uniform"``; ``"write"`` is for a ``read_write`` one of which
        nothing is read that it held before.
    workgroups : int, tuple of int, or callable
        Workgroup counts; a callable gets the lengths of the Arrays by name: of vec4 as many as floats.
    label : str, default "kernel"
        In tables and debuggers.
    entry_point : str, default "main"
    constants : mapping from str to number, optional
        Values of WGSL overrides.
    dtypes : mapping from str to dtype, optional
        Datatypes that differ from the declaration, such as f16 read as ``array<u32>``; None accepts any.
    work : Work or callable, optional
        What a call must move and compute, for rates.
    shader_checks : {"bounds", "all", "none"}
        Run-time checks: indices stay in what is bound; loops are counted, too, which may take many times as long; none.

    Raises
    ------
    ArgumentError
        If `bindings` does not match the shader.
    DatatypeError
        If a constant cannot hold its value.
    LimitError
        If workgroups or their memory, with the values of the constants, are larger than the device's.
    ShaderError
        If the shader does not compile, or has no such entry point.

    Notes
    -----
    ``execute`` takes the storage variables as arrays, and uniforms as values: a number, a sequence for a vector, a
    mapping by member name for a structure of these. A value that is left out is that of the previous call.

    A view can be bound only if it starts at a multiple of the device's min-storage-buffer-offset-alignment.
    Several ``trials`` are refused where an argument is ``"read_write"``: each would work on the results of the last.

    Examples
    --------
    >>> import numpy as np, gridwise_py as gw
    >>> device = gw.request_device()
    >>> scale = gw.Kernel(device, '''
    ... @group(0) @binding(0) var<storage, read> x: array<f32>;
    ... @group(0) @binding(1) var<storage, read_write> y: array<f32>;
    ... @group(0) @binding(2) var<uniform> factor: f32;
    ... @compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    ...   if (id.x < arrayLength(&x)) { y[id.x] = factor * x[id.x]; }
    ... }''', {"x": "read", "y": "read_write", "factor": "uniform"}, workgroups=lambda n: -(-n["x"] // 64))
    >>> x = gw.asarray(np.ones(4, dtype=np.float32), device)
    >>> scale.execute(x=x, y=gw.empty_like(x), factor=2.0).output.to_numpy()
    array([2., 2., 2., 2.], dtype=float32)
    """

    @explained()
    def __init__(
        self,
        device: wgpu.GPUDevice | None,
        wgsl: str,
        bindings: Mapping[str, Access],
        workgroups: Any,
        *,
        label: str = "kernel",
        entry_point: str = "main",
        constants: Mapping[str, int | float] | None = None,
        dtypes: Mapping[str, Any] | None = None,
        work: Work | Callable[[Mapping[str, int]], Work] | None = None,
        shader_checks: ShaderChecks = "bounds",
        capabilities: Capabilities | None = None,
    ):
        super().__init__(device, capabilities=capabilities)
        for option, text in (("label", label), ("wgsl", wgsl), ("entry_point", entry_point)):
            _check_text(label, option, text)
        for option, mapping in (("bindings", bindings), ("constants", constants), ("dtypes", dtypes)):
            if mapping is not None and not isinstance(mapping, Mapping):
                raise ArgumentError(f"{label}: {option} must be a mapping by name, not {type(mapping).__name__}")
        for name, value in (constants or {}).items():
            if not isinstance(value, (Real, np.bool_)):
                raise DatatypeError(
                    f"{label}: the constant {name} is {value!r:.80} of type {type(value).__name__}; give a number"
                )
        if not bindings:
            raise ArgumentError("a kernel needs at least one binding, else it has no effect")
        self._label = label
        self._wgsl = wgsl
        self._workgroups = workgroups
        self._entry_point = entry_point
        self._constants = {str(name): value for name, value in (constants or {}).items()}
        self._work = work
        self._shader_checks: ShaderChecks = one_of("shader_checks", shader_checks, SHADER_CHECKS)
        self._in_place: list[str] = [name for name, access in bindings.items() if access == "read_write"]
        text = KernelText(wgsl, self._constants)
        text.check_constants(label)
        declared = text.variables()
        self._bindings: dict[str, Variable] = {
            name: self._variable(name, access, declared) for name, access in bindings.items()
        }
        self._uniforms: dict[str, Uniform] = {
            name: self._uniform(variable) for name, variable in self._bindings.items() if variable.access == "uniform"
        }
        storage = {name: each for name, each in self._bindings.items() if name not in self._uniforms}
        self._datatypes: dict[str, Datatype | None] = {name: variable.datatype for name, variable in storage.items()}
        unknown = set(dtypes or {}) - set(storage)
        if unknown:
            raise ArgumentError(f"dtypes of unknown bindings {sorted(unknown)}; there are {list(storage)}")
        for name, value in (dtypes or {}).items():
            self._datatypes[name] = None if value is None else as_datatype(value, ITEM_DATATYPES)
        by_number: dict[int, str] = {}
        for name, variable in self._bindings.items():
            other = by_number.setdefault(variable.binding, name)
            if other != name:
                raise ArgumentError(
                    f"{label}: {other} and {name} are both @binding({variable.binding}); an entry point can use only "
                    f"one of them: name that one, or make a Kernel for each entry point"
                )
        if not callable(workgroups):
            self._grid({})
        self._check_limits(text)
        # Compiled now, so that errors of the text are raised here; kept for later plans.
        self._pipelines = [] if device is None else self._compiled(set(declared) - set(bindings))

    def _arguments(self) -> tuple[Argument, ...]:
        return tuple(
            Argument(
                name,
                is_output=self._bindings[name].access == "read_write",
                is_read=name in self._in_place,
                datatype=datatype,
                aligned=True,
                any_shape=True,
                cast=self._cast(name),
            )
            for name, datatype in self._datatypes.items()
        )

    def _variable(self, name: str, access: str, declared: Mapping[str, Variable]) -> Variable:
        """Return the variable of the text that a binding names."""
        if access not in _ACCESS:
            raise ArgumentError(f"binding {name!r} has access {access!r}; known are {', '.join(_ACCESS)}")
        if name in _TAKEN:
            raise ArgumentError(f"binding {name!r} has the name of an option of execute(); rename it, also in the WGSL")
        variable = declared.get(name)
        if variable is None:
            there = ", ".join(f"{each.name} (@binding({each.binding}))" for each in declared.values())
            raise ArgumentError(
                f"{self._label}: bindings names {name!r}, but the WGSL declares no such variable; it declares "
                f"{there or 'none with @binding'}"
            )
        if variable.group != 0:
            raise ArgumentError(f"{self._label}: {name} is in @group({variable.group}); put it into @group(0)")
        if not variable.access:
            raise ArgumentError(
                f"{self._label}: {name} is a {variable.type}, and a Kernel binds arrays and uniforms only: read from a "
                f"var<storage, read> {name}: array<f32> instead"
            )
        if variable.access != ("read_write" if access == "write" else access):
            raise ArgumentError(
                f"{self._label}: bindings says {access!r} of {name}, but the WGSL declares it as {variable.access!r}; "
                f"make both the same"
            )
        return variable

    def _compiled(self, unnamed: set[str]) -> list[Pipeline]:
        assert self._context is not None, "only a kernel with a device is compiled"
        try:
            return self._context.executor.pipelines_of(self._plan({}, {}, (1, 1, 1)))
        except ShaderError as error:
            if not unnamed:
                raise
            names = ", ".join(sorted(unnamed))
            raise ShaderError(
                f"{error}\n\nThe WGSL declares {names} as well, which bindings= does not name.", error.text
            ) from error

    def _uniform(self, variable: Variable) -> Uniform:
        """Return the type of a uniform."""
        if variable.uniform is None:
            raise ArgumentError(
                f"{self._label}: the uniform {variable.name} is of type {variable.type}; f32, i32, u32, vectors of "
                f"them and structures of these can be given: for anything else use a storage binding"
            )
        return variable.uniform

    def _cast(self, name: str) -> str | None:
        """Return the remedy for an array of another datatype than the declared one."""
        if self._datatypes[name] != self._bindings[name].datatype:
            return None
        return (
            f"the WGSL declares it as {self._bindings[name].type}. If the kernel means the bits of other items, say so "
            f"by dtypes={{{name!r}: …}} of gw.Kernel; if not, change the declaration, or the data"
        )

    def _check_limits(self, text: KernelText) -> None:
        limits = self.capabilities.limits
        limit = "max-storage-buffers-per-shader-stage"
        most, count = limits[limit], len(self._datatypes)
        if count > most:
            raise LimitError(
                f"{self._label}: {count} bindings, but {limit} is {most}; put arrays together in one buffer"
            )
        # By hand: wgpu does not look at what follows from constants.
        size, memory = text.workgroup_size(self._entry_point), text.workgroup_bytes(self._entry_point)
        what = f"{self._label}: the workgroup size of {self._entry_point} is {' × '.join(map(str, size))}"
        if any(one < 1 for one in size):
            raise LimitError(f"{what}, but must be at least 1")
        for value, limit in (
            *zip(size, (f"max-compute-workgroup-size-{axis}" for axis in "xyz"), strict=False),
            (prod(size), "max-compute-invocations-per-workgroup"),
        ):
            if value > limits.get(limit, value):  # without a device, not all of them are known
                raise LimitError(f"{what}, but {limit} is {limits[limit]:,}; take a smaller one")
        limit = "max-compute-workgroup-storage-size"
        if memory > limits[limit]:
            raise LimitError(
                f"{self._label}: {self._entry_point} takes {memory:,} bytes of workgroup memory, but {limit} is "
                f"{limits[limit]:,}; take smaller arrays"
            )

    def _check_length(self, name: str, operand: Operand) -> None:
        """Refuse items that are no whole number of what the text declares: nobody would compute the rest."""
        variable, size = self._bindings[name], operand.length * operand.item_bytes
        extent = variable.extent
        if extent is None:
            return
        if self._cast(name) is None:  # read as other items than it has, in whole words
            size = -(-size // 4) * 4
        stride = extent.stride_bytes
        fitting = extent.size_bytes + (max(1, (size - extent.size_bytes) // stride) * stride if stride else 0)
        if size != fitting:
            takes = f"{extent.size_bytes:,} bytes" if not stride else f"a multiple of {stride} bytes"
            takes += f" behind {extent.size_bytes}" if stride and extent.size_bytes else ""
            raise LengthError(
                f"{self._label}: {name} has {operand.length:,} items of {operand.item_bytes} bytes, but the WGSL "
                f"declares {variable.type}, which takes {takes}: give "
                f"{fitting / operand.item_bytes:,.10g} items, say, or change the declaration"
            )

    @property
    def name(self) -> str:
        """The label."""
        return self._label

    def _value_rules(self) -> Mapping[str, ValueRule]:
        return self._uniforms

    def plan(self, layout: Layout, **values: Any) -> Plan:
        """Return the plan: one dispatch. `values` are the uniforms, as `execute` takes them."""
        return self._plan_with(layout, self.signature.words(values))

    def _plan_with(self, layout: Layout, values: Mapping[str, tuple[int, ...]]) -> Plan:
        empty = [name for name, operand in layout.items() if operand.length == 0]
        if empty:
            raise ArgumentError(f"{self._label}: {', '.join(empty)} has 0 items, which cannot be bound")
        for name, operand in layout.items():
            self._check_length(name, operand)
        shared = {name for name in layout if any(layout.shares(name, o) for o in layout if o != name)}
        if shared:
            raise ArgumentError(
                f"{self._label}: {', '.join(sorted(shared))} are in one buffer, and one of them is writable. WebGPU "
                f"does not allow two such bindings; use separate buffers"
            )
        lengths = {name: operand.length for name, operand in layout.items()}
        return self._plan(
            {name: BufferSpec(o.buffer, "argument", o.size_bytes) for name, o in layout.items()},
            values,
            self._grid(lengths),
            self._work_of(layout, lengths),
        )

    def _work_of(self, layout: Layout, lengths: Mapping[str, int]) -> Work:
        if self._work is not None:
            found: Any = self._work(lengths) if callable(self._work) else self._work
            if not isinstance(found, Work):
                raise DatatypeError(
                    f"{self._label}: work is {found!r:.60}, but must be a gw.Work(items, read_bytes, write_bytes)"
                )
            return found
        bytes_of = {name: operand.length * operand.item_bytes for name, operand in layout.items()}
        written = sum(bytes_of[argument.name] for argument in self.signature.arguments.values() if argument.is_output)
        return Work(max(lengths.values()), sum(bytes_of.values()), written)

    def _plan(
        self,
        arguments: Mapping[str, BufferSpec],
        values: Mapping[str, tuple[int, ...]],
        workgroups: tuple[int, int, int],
        work: Work | None = None,
    ) -> Plan:
        """Return the plan on these buffers; without any, a plan that is only compiled."""
        uniforms = {name: BufferSpec(name, "params", 4 * len(words), words) for name, words in values.items()}
        specs = {**{name: BufferSpec(name, "argument", 16) for name in self._bindings}, **uniforms, **arguments}
        key = sha256(self._wgsl)
        bindings = sorted(
            (Binding(each.binding, specs[name].name, cast(Any, each.access)) for name, each in self._bindings.items()),
            key=lambda binding: binding.index,
        )
        kernel = PlanKernel(self._label, key, tuple(bindings), workgroups, self._constants, self._entry_point)
        return Plan(
            self._label,
            tuple(specs.values()),
            (kernel,),
            {key: Shader(self._wgsl, self._shader_checks, enabled_features(self._wgsl), origin="user")},
            work if work is not None else Work(0, 0, 0),
            {"workgroups": list(workgroups)},
        )

    def _grid(self, lengths: Mapping[str, int]) -> tuple[int, int, int]:
        try:
            asked: Any = self._workgroups(lengths) if callable(self._workgroups) else self._workgroups
        except KeyError as error:
            known = ", ".join(lengths)
            raise ArgumentError(
                f"{self._label}: workgroups= asks for the length of {error}; known are {known}"
            ) from error
        wanted = cast(Sequence[Any], asked) if isinstance(asked, Sequence) else (asked,)
        counts: tuple[int, ...]
        try:
            counts = tuple(integer("workgroups", count, 1) for count in wanted)
        except ArgumentError:
            counts = ()
        if not 1 <= len(counts) <= 3:
            raise ArgumentError(f"{self._label}: workgroups are {asked!r}; give one to three integers of at least 1")
        limit = self.capabilities.limits["max-compute-workgroups-per-dimension"]
        if max(counts) > limit:
            raise LimitError(
                f"{self._label}: workgroups are {counts}, but max-compute-workgroups-per-dimension is {limit}; spread "
                f"them over three dimensions"
            )
        x, y, z = (*counts, 1, 1)[:3]
        return (x, y, z)
