"""What calls of primitives take, said once: for type checkers, editors and ``help()``.

The arrays of a primitive's calls are a TypedDict, which its class names as `call_arrays`. The four methods that take
them (`bind`, `record`, `execute`, `execute_async`) are `Primitive`'s. A class declares them again for type checkers
only; its ``__signature__`` for people is made of the TypedDict.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypedDict, Unpack

import wgpu

from ..runtime.array import Array
from ..runtime.bound_call import BoundCall
from ..runtime.chunked_array import ItemsT
from ..runtime.run import Run
from ..timing.queries import TimingSession
from .base import Primitive
from .call_signatures import Timed


class InputOutputArrays(TypedDict, Generic[ItemsT], total=False):
    """The arrays of its calls."""

    input: ItemsT | wgpu.GPUBuffer | None
    output: ItemsT | wgpu.GPUBuffer | None
    n: int | Array | wgpu.GPUBuffer | None


class InputOutputCall(InputOutputArrays[ItemsT], Timed, Generic[ItemsT], total=False): ...


class InputOutput(Primitive):
    """Primitives with one input and one output of the same kind."""

    call_arrays = InputOutputArrays

    if TYPE_CHECKING:

        def bind(self, **arrays: Unpack[InputOutputArrays[ItemsT]]) -> BoundCall[ItemsT]: ...
        def record(
            self,
            encoder: wgpu.GPUCommandEncoder,
            *,
            trials: int = 1,
            timing: TimingSession | None = None,
            **arrays: Unpack[InputOutputArrays[ItemsT]],
        ) -> dict[str, ItemsT]: ...
        def execute(
            self, *, encoder: wgpu.GPUCommandEncoder | None = None, **call: Unpack[InputOutputCall[ItemsT]]
        ) -> Run[ItemsT]: ...
        async def execute_async(self, **call: Unpack[InputOutputCall[ItemsT]]) -> Run[ItemsT]: ...


class TwoInputsArrays(TypedDict, Generic[ItemsT], total=False):
    """The arrays of its calls."""

    a: ItemsT | wgpu.GPUBuffer | None
    b: ItemsT | wgpu.GPUBuffer | None
    output: ItemsT | wgpu.GPUBuffer | None
    n: int | Array | wgpu.GPUBuffer | None


class TwoInputsCall(TwoInputsArrays[ItemsT], Timed, Generic[ItemsT], total=False): ...


class TwoInputs(Primitive):
    """Primitives with two inputs and one output of the same kind."""

    call_arrays = TwoInputsArrays

    if TYPE_CHECKING:

        def bind(self, **arrays: Unpack[TwoInputsArrays[ItemsT]]) -> BoundCall[ItemsT]: ...
        def record(
            self,
            encoder: wgpu.GPUCommandEncoder,
            *,
            trials: int = 1,
            timing: TimingSession | None = None,
            **arrays: Unpack[TwoInputsArrays[ItemsT]],
        ) -> dict[str, ItemsT]: ...
        def execute(
            self, *, encoder: wgpu.GPUCommandEncoder | None = None, **call: Unpack[TwoInputsCall[ItemsT]]
        ) -> Run[ItemsT]: ...
        async def execute_async(self, **call: Unpack[TwoInputsCall[ItemsT]]) -> Run[ItemsT]: ...
