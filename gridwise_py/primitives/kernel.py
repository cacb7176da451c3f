"""Kernel: a user's own WGSL, run and timed like the library's primitives."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias, get_args

import wgpu

from ..arguments import Argument
from ..capabilities import Capabilities
from ..datatype import STORAGE_DATATYPES, Datatype, as_datatype
from ..errors import ArgumentError, LimitError
from ..layout import Layout
from ..plan import Binding, BufferSpec, Plan, Shader, Work
from ..plan import Kernel as PlanKernel
from ..primitive import Primitive
from ..shaders import sha256

__all__ = ["Kernel"]

Access: TypeAlias = Literal["read", "read_write"]
_ACCESS: tuple[Access, ...] = get_args(Access)


class Kernel(Primitive):
    """A compute shader of your own.

    Parameters
    ----------
    device : wgpu.GPUDevice
    wgsl : str
        The whole text. Its storage bindings stand in ``@group(0)``, numbered from 0 in the order of `bindings`.
        It is compiled with run-time checks.
    bindings : mapping from str to str
        For each binding the name that ``execute`` takes it by, and ``"read"`` or ``"read_write"``.
    workgroups : int, tuple of int, or callable
        Workgroup counts; a callable gets the lengths of the arguments by name and returns them.
    label : str, default "kernel"
        What tables and debuggers call it.
    entry_point : str, default "main"
    constants : mapping from str to number, optional
        Values of overrides.
    datatypes : mapping from str to datatype, optional
        Datatypes that arguments must have; any where left out (a raw GPUBuffer is then seen as u32).

    Notes
    -----
    A view can be bound only where it starts at a multiple of the device's min-storage-buffer-offset-alignment.
    ``trials`` dispatches repeat the kernel on what the one before left, so it should not change what it reads.

    Examples
    --------
    >>> import numpy as np, gridwise_py as gw
    >>> device = gw.request_device()
    >>> double = gw.Kernel(device, '''
    ... @group(0) @binding(0) var<storage, read> x: array<f32>;
    ... @group(0) @binding(1) var<storage, read_write> y: array<f32>;
    ... @compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    ...   if (id.x < arrayLength(&x)) { y[id.x] = 2.0 * x[id.x]; }
    ... }''', {"x": "read", "y": "read_write"}, workgroups=lambda n: -(-n["x"] // 64))
    >>> x = gw.asarray(np.ones(4, dtype=np.float32), device)
    >>> double.execute(x=x, y=gw.empty_like(x)).output.to_numpy()
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
        for name, access in bindings.items():
            if access not in _ACCESS:
                raise ArgumentError(f"binding {name!r} has access {access!r}; known are {', '.join(_ACCESS)}")
        if not bindings:
            raise ArgumentError("a kernel needs at least one binding, else its work cannot be seen")
        unknown = set(datatypes or {}) - set(bindings)
        if unknown:
            raise ArgumentError(f"datatypes of unknown bindings {sorted(unknown)}; there are {list(bindings)}")
        self.arguments: tuple[Argument, ...] = tuple(  # pyright: ignore[reportIncompatibleVariableOverride]
            Argument(name, is_output=access == "read_write", aligned=True) for name, access in bindings.items()
        )
        self._label = label
        self._bindings = dict(bindings)
        self._wgsl = wgsl
        self._workgroups = workgroups
        self._entry_point = entry_point
        self._constants = dict(constants or {})
        self._datatypes = {name: as_datatype(value, STORAGE_DATATYPES) for name, value in (datatypes or {}).items()}

    @property
    def name(self) -> str:
        """The label."""
        return self._label

    def argument_datatype(self, name: str) -> Datatype | None:
        """What `datatypes` says."""
        return self._datatypes.get(name)

    def plan(self, layout: Layout) -> Plan:
        """Return the plan: one dispatch."""
        limit = self.capabilities.limits["max-storage-buffers-per-shader-stage"]
        if len(self._bindings) > limit:
            raise LimitError(
                f"{self._label}: {len(self._bindings)} bindings, but max-storage-buffers-per-shader-stage is "
                f"{limit}; put arrays together in one buffer"
            )
        empty = [name for name, operand in layout.items() if operand.length == 0]
        if empty:
            raise ArgumentError(f"{self._label}: {', '.join(empty)} has 0 items, which cannot be bound")
        shared = {name for name in layout if any(layout.shares(name, o) for o in layout if o != name)}
        if shared:
            raise ArgumentError(
                f"{self._label}: {', '.join(sorted(shared))} lie in one buffer, one of them writable, which WebGPU "
                f"does not allow for two bindings; use separate buffers"
            )
        key = sha256(self._wgsl)
        kernel = PlanKernel(
            self._label,
            key,
            tuple(Binding(i, layout[name].buffer, access) for i, (name, access) in enumerate(self._bindings.items())),
            self._grid({name: operand.length for name, operand in layout.items()}),
            self._constants,
            self._entry_point,
        )
        # At least: each binding is read or written once.
        read = sum(layout[n].length * 4 for n, access in self._bindings.items() if access == "read")
        written = sum(layout[n].length * 4 for n, access in self._bindings.items() if access != "read")
        return Plan(
            self._label,
            tuple(BufferSpec(o.buffer, "argument", o.size_bytes) for o in layout.values()),
            (kernel,),
            {key: Shader(self._wgsl, trusted=False)},
            Work(max(o.length for o in layout.values()), read, written),
            {"workgroups": list(kernel.workgroups)},
        )

    def _grid(self, lengths: Mapping[str, int]) -> tuple[int, int, int]:
        counts = self._workgroups(lengths) if callable(self._workgroups) else self._workgroups
        counts = tuple(counts) if isinstance(counts, (tuple, list)) else (counts,)
        if not 1 <= len(counts) <= 3 or any(not isinstance(c, int) or c < 1 for c in counts):
            raise ArgumentError(f"{self._label}: workgroups are {counts}; give one to three integers of at least 1")
        limit = self.capabilities.limits["max-compute-workgroups-per-dimension"]
        if max(counts) > limit:
            raise LimitError(
                f"{self._label}: workgroups are {counts}, but max-compute-workgroups-per-dimension is {limit}; spread "
                f"them over three dimensions"
            )
        x, y, z = (*counts, 1, 1)[:3]
        return (x, y, z)
