"""Kernel: a user's own WGSL, run and timed like the library's primitives."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
import wgpu

from ..arguments import Argument, Ready
from ..capabilities import Capabilities
from ..datatype import STORAGE_DATATYPES, Datatype, as_datatype
from ..errors import ArgumentError, DatatypeError, LimitError, ShaderError
from ..kernel_text import Uniform, Variable, variables
from ..layout import Layout
from ..options import integer
from ..pipelines import Pipeline
from ..plan import Binding, BufferSpec, Plan, Shader, Work
from ..plan import Kernel as PlanKernel
from ..primitive import Primitive
from ..process import check_process
from ..shaders import sha256

__all__ = ["Kernel"]

Access: TypeAlias = Literal["read", "read_write", "uniform"]
_ACCESS: tuple[Access, ...] = get_args(Access)
# What these take for themselves cannot be the name of an argument.
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
    """A compute shader of your own.

    Parameters
    ----------
    device : wgpu.GPUDevice
    wgsl : str
        The whole text. Its bindings stand in ``@group(0)``. It is compiled at once, with run-time checks.
    bindings : mapping from str to str
        For each variable of the text, by its name, ``"read"`` or ``"read_write"`` for storage, or ``"uniform"``. The
        ``@binding`` of the variable is its number, so the order of the mapping says nothing.
    workgroups : int, tuple of int, or callable
        Workgroup counts; a callable gets the lengths of the arguments by name and returns them.
    label : str, default "kernel"
        What tables and debuggers call it.
    entry_point : str, default "main"
    constants : mapping from str to number, optional
        Values of overrides.
    datatypes : mapping from str to datatype, optional
        Datatypes that arguments must have, instead of those that the text declares: for a kernel that reads f16 as
        ``array<u32>``, say. None takes any. Without it an argument must be of the scalar type of its array or vectors;
        any is taken for structures and for ``vec2<u32>`` (a raw GPUBuffer is then seen as u32).

    Raises
    ------
    ArgumentError
        If `bindings` and the text do not fit.
    ShaderError
        If the text does not compile, or has no such entry point.

    Notes
    -----
    ``execute`` takes the storage variables as arrays, and uniforms as values: a number, a sequence for a vector, a
    mapping from the names of its members for a structure of these. A value that is left out is that of the call before.
    What is recorded on an encoder keeps the values that it was recorded with. A new value compiles nothing.

    A view can be bound only where it starts at a multiple of the device's min-storage-buffer-offset-alignment.
    ``trials`` dispatches repeat the kernel on what the one before left, so it should not change what it reads.

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
        datatypes: Mapping[str, Any] | None = None,
        capabilities: Capabilities | None = None,
    ):
        super().__init__(device, capabilities=capabilities)
        for option, text in (("label", label), ("wgsl", wgsl), ("entry_point", entry_point)):
            _check_text(label, option, text)
        for option, mapping in (("bindings", bindings), ("constants", constants), ("datatypes", datatypes)):
            if mapping is not None and not isinstance(mapping, Mapping):
                raise ArgumentError(f"{label}: {option} must be a mapping by name, not {type(mapping).__name__}")
        for name, value in (constants or {}).items():
            if not isinstance(value, (Real, np.bool_)):
                raise DatatypeError(
                    f"{label}: the constant {name} is {value!r:.80} of type {type(value).__name__}; give a number"
                )
        if not bindings:
            raise ArgumentError("a kernel needs at least one binding, else its work cannot be seen")
        self._label = label
        self._wgsl = wgsl
        self._workgroups = workgroups
        self._entry_point = entry_point
        self._constants = dict(constants or {})
        declared = variables(wgsl)
        self._bindings: dict[str, Variable] = {
            name: self._variable(name, access, declared) for name, access in bindings.items()
        }
        self._uniforms: dict[str, Uniform] = {
            name: self._uniform(variable) for name, variable in self._bindings.items() if variable.access == "uniform"
        }
        self._values: dict[str, tuple[int, ...]] = {}  # words of the uniforms, as given by now
        storage = {name: each for name, each in self._bindings.items() if name not in self._uniforms}
        self._datatypes: dict[str, Datatype | None] = {name: variable.datatype for name, variable in storage.items()}
        unknown = set(datatypes or {}) - set(storage)
        if unknown:
            raise ArgumentError(f"datatypes of unknown bindings {sorted(unknown)}; there are {list(storage)}")
        for name, value in (datatypes or {}).items():
            self._datatypes[name] = None if value is None else as_datatype(value, STORAGE_DATATYPES)
        self.arguments: tuple[Argument, ...] = tuple(  # pyright: ignore[reportIncompatibleVariableOverride]
            Argument(name, is_output=variable.access == "read_write", aligned=True, cast=self._cast(name))
            for name, variable in storage.items()
        )
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
        self._check_limits()
        # Compiled now, so that what is wrong with the text is said here; kept for the plans to come.
        self._pipelines = [] if device is None else self._compiled(set(declared) - set(bindings))

    def _variable(self, name: str, access: str, declared: Mapping[str, Variable]) -> Variable:
        """Return the variable of the text that a binding is about."""
        if access not in _ACCESS:
            raise ArgumentError(f"binding {name!r} has access {access!r}; known are {', '.join(_ACCESS)}")
        if name in _TAKEN:
            raise ArgumentError(
                f"binding {name!r} has the name of an option of execute(); rename it, in the text as well"
            )
        variable = declared.get(name)
        if variable is None:
            there = ", ".join(f"{each.name} (@binding({each.binding}))" for each in declared.values())
            raise ArgumentError(
                f"{self._label}: bindings names {name!r}, but the WGSL declares no such variable; it declares "
                f"{there or 'none with @binding'}"
            )
        if variable.group != 0:
            raise ArgumentError(f"{self._label}: {name} is in @group({variable.group}); put it into @group(0)")
        if variable.access != access:
            raise ArgumentError(
                f"{self._label}: bindings says {access!r} of {name}, but the WGSL declares it as {variable.access!r}; "
                f"make both the same"
            )
        return variable

    def _compiled(self, unnamed: set[str]) -> list[Pipeline]:
        try:
            return self._context.executor.pipelines_of(self._plan({}, (1, 1, 1)))
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
        """Return what to do where an array is of another datatype than the text declares."""
        if self._datatypes[name] != self._bindings[name].datatype:
            return None
        return (
            f"the WGSL declares it as {self._bindings[name].type}. If the kernel means the bits of other items, say so "
            f"by datatypes={{{name!r}: …}} of gw.Kernel; if not, change the declaration, or the data"
        )

    def _check_limits(self) -> None:
        limit = "max-storage-buffers-per-shader-stage"
        most, count = self.capabilities.limits[limit], len(self.arguments)
        if count > most:
            raise LimitError(
                f"{self._label}: {count} bindings, but {limit} is {most}; put arrays together in one buffer"
            )

    @property
    def name(self) -> str:
        """The label."""
        return self._label

    def argument_datatype(self, name: str) -> Datatype | None:
        """What `datatypes` says, or the declaration."""
        return self._datatypes.get(name)

    def _bind(self, arrays: Mapping[str, Any], trials: int = 1) -> Ready:
        """As of every primitive, with the values of uniforms, which are part of the plan."""
        if not self._uniforms:
            return super()._bind(arrays, trials)
        check_process()  # before the lock
        given = {
            name: self._uniforms[name].words(value, f"{self._label}: {name}")
            for name, value in arrays.items()
            if name in self._uniforms
        }
        with self._lock:
            before = self._values, self._ready
            if any(self._values.get(name) != words for name, words in given.items()):
                self._values, self._ready = {**self._values, **given}, None
                self._plans.clear()
            try:
                return super()._bind({k: v for k, v in arrays.items() if k not in self._uniforms}, trials)
            except BaseException:
                if before[0] != self._values:
                    self._plans.clear()
                self._values, self._ready = before
                raise

    def plan(self, layout: Layout) -> Plan:
        """Return the plan: one dispatch."""
        empty = [name for name, operand in layout.items() if operand.length == 0]
        if empty:
            raise ArgumentError(f"{self._label}: {', '.join(empty)} has 0 items, which cannot be bound")
        shared = {name for name in layout if any(layout.shares(name, o) for o in layout if o != name)}
        if shared:
            raise ArgumentError(
                f"{self._label}: {', '.join(sorted(shared))} lie in one buffer, one of them writable, which WebGPU "
                f"does not allow for two bindings; use separate buffers"
            )
        missing = [name for name in self._uniforms if name not in self._values]
        if missing:
            described = ", ".join(f"{name}= ({self._uniforms[name].name})" for name in missing)
            raise ArgumentError(f"{self._label}.execute() needs {described}")
        # At least: each binding is read or written once.
        bytes_of = {name: operand.length * operand.item_bytes for name, operand in layout.items()}
        written = sum(bytes_of[argument.name] for argument in self.arguments if argument.is_output)
        return self._plan(
            {name: BufferSpec(o.buffer, "argument", o.size_bytes) for name, o in layout.items()},
            self._grid({name: operand.length for name, operand in layout.items()}),
            Work(max(o.length for o in layout.values()), sum(bytes_of.values()) - written, written),
        )

    def _plan(
        self, arguments: Mapping[str, BufferSpec], workgroups: tuple[int, int, int], work: Work | None = None
    ) -> Plan:
        """Return the plan on these buffers; where there are none, what has to be compiled for it."""
        values = {name: BufferSpec(name, "params", 4 * len(words), words) for name, words in self._values.items()}
        nowhere = {name: BufferSpec(name, "argument", 16) for name in self._bindings}
        specs = {**nowhere, **values, **arguments}
        key = sha256(self._wgsl)
        bindings = sorted(
            (Binding(each.binding, specs[name].name, each.access) for name, each in self._bindings.items()),
            key=lambda binding: binding.index,
        )
        kernel = PlanKernel(self._label, key, tuple(bindings), workgroups, self._constants, self._entry_point)
        return Plan(
            self._label,
            tuple(specs.values()),
            (kernel,),
            {key: Shader(self._wgsl, trusted=False)},
            work if work is not None else Work(0, 0, 0),
            {"workgroups": list(workgroups)},
        )

    def _grid(self, lengths: Mapping[str, int]) -> tuple[int, int, int]:
        asked = self._workgroups(lengths) if callable(self._workgroups) else self._workgroups
        counts = tuple(asked) if isinstance(asked, Sequence) else (asked,)
        try:
            counts = tuple(integer("workgroups", count, 1) for count in counts)
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
