"""The signatures of the library's primitives, for editors, ``help()`` and type checkers.

`Primitive` accepts any argument names, so an editor cannot complete them. Each class here has the same four methods
with explicit names; their documentation is that of `Primitive`. By their types, chunked inputs give chunked outputs.
"""

# A method with explicit names cannot replace one that takes any names; here that is intended.
# pyright: reportIncompatibleMethodOverride=false

from __future__ import annotations

import wgpu

from ..call_errors import LEFT_OUT, explained, given
from ..runtime.array import Array
from ..runtime.bound_call import ASYNC_REMEDIES, BoundCall
from ..runtime.chunked_array import Items, ItemsT
from ..runtime.run import Run
from ..timing.queries import TimingSession
from .base import Primitive

__all__ = [
    "InputInitialOutput",
    "InputOutput",
    "InputTotal",
    "KeysValues",
    "SortedQueries",
    "TwoInputs",
    "ValuesIndices",
]


class InputOutput(Primitive):
    """Primitives with one input and one output of the same kind."""

    @explained()
    def bind(
        self,
        *,
        input: ItemsT | wgpu.GPUBuffer | None = LEFT_OUT,
        output: ItemsT | wgpu.GPUBuffer | None = LEFT_OUT,
        n: int | Array | wgpu.GPUBuffer | None = LEFT_OUT,
    ) -> BoundCall[ItemsT]:
        return self._bind(given(input=input, output=output, n=n))

    @explained()
    def record(
        self,
        encoder: wgpu.GPUCommandEncoder,
        *,
        input: ItemsT | wgpu.GPUBuffer | None = LEFT_OUT,
        output: ItemsT | wgpu.GPUBuffer | None = LEFT_OUT,
        n: int | Array | wgpu.GPUBuffer | None = LEFT_OUT,
        trials: int = 1,
        timing: TimingSession | None = None,
    ) -> dict[str, ItemsT]:
        return self._record(given(input=input, output=output, n=n), encoder, trials, timing)

    @explained()
    def execute(
        self,
        *,
        input: ItemsT | wgpu.GPUBuffer | None = LEFT_OUT,
        output: ItemsT | wgpu.GPUBuffer | None = LEFT_OUT,
        n: int | Array | wgpu.GPUBuffer | None = LEFT_OUT,
        encoder: wgpu.GPUCommandEncoder | None = None,
        enable_gpu_timing: bool = False,
        enable_cpu_timing: bool = False,
        trials: int = 1,
    ) -> Run[ItemsT]:
        arrays = given(input=input, output=output, n=n)
        return self._execute(arrays, encoder, enable_gpu_timing, enable_cpu_timing, trials)

    @explained(ASYNC_REMEDIES)
    async def execute_async(
        self,
        *,
        input: ItemsT | wgpu.GPUBuffer | None = LEFT_OUT,
        output: ItemsT | wgpu.GPUBuffer | None = LEFT_OUT,
        n: int | Array | wgpu.GPUBuffer | None = LEFT_OUT,
        enable_gpu_timing: bool = False,
        enable_cpu_timing: bool = False,
        trials: int = 1,
    ) -> Run[ItemsT]:
        arrays = given(input=input, output=output, n=n)
        return await self._execute_async(arrays, enable_gpu_timing, enable_cpu_timing, trials)


class InputInitialOutput(Primitive):
    """Primitives with one input, one output of the same kind, and a value to start from."""

    @explained()
    def bind(
        self,
        *,
        input: ItemsT | wgpu.GPUBuffer | None = LEFT_OUT,
        initial: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        output: ItemsT | wgpu.GPUBuffer | None = LEFT_OUT,
        n: int | Array | wgpu.GPUBuffer | None = LEFT_OUT,
    ) -> BoundCall[ItemsT]:
        return self._bind(given(input=input, initial=initial, output=output, n=n))

    @explained()
    def record(
        self,
        encoder: wgpu.GPUCommandEncoder,
        *,
        input: ItemsT | wgpu.GPUBuffer | None = LEFT_OUT,
        initial: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        output: ItemsT | wgpu.GPUBuffer | None = LEFT_OUT,
        n: int | Array | wgpu.GPUBuffer | None = LEFT_OUT,
        trials: int = 1,
        timing: TimingSession | None = None,
    ) -> dict[str, ItemsT]:
        arrays = given(input=input, initial=initial, output=output, n=n)
        return self._record(arrays, encoder, trials, timing)

    @explained()
    def execute(
        self,
        *,
        input: ItemsT | wgpu.GPUBuffer | None = LEFT_OUT,
        initial: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        output: ItemsT | wgpu.GPUBuffer | None = LEFT_OUT,
        n: int | Array | wgpu.GPUBuffer | None = LEFT_OUT,
        encoder: wgpu.GPUCommandEncoder | None = None,
        enable_gpu_timing: bool = False,
        enable_cpu_timing: bool = False,
        trials: int = 1,
    ) -> Run[ItemsT]:
        arrays = given(input=input, initial=initial, output=output, n=n)
        return self._execute(arrays, encoder, enable_gpu_timing, enable_cpu_timing, trials)

    @explained(ASYNC_REMEDIES)
    async def execute_async(
        self,
        *,
        input: ItemsT | wgpu.GPUBuffer | None = LEFT_OUT,
        initial: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        output: ItemsT | wgpu.GPUBuffer | None = LEFT_OUT,
        n: int | Array | wgpu.GPUBuffer | None = LEFT_OUT,
        enable_gpu_timing: bool = False,
        enable_cpu_timing: bool = False,
        trials: int = 1,
    ) -> Run[ItemsT]:
        arrays = given(input=input, initial=initial, output=output, n=n)
        return await self._execute_async(arrays, enable_gpu_timing, enable_cpu_timing, trials)


class InputTotal(Primitive):
    """Primitives with one input and an output of one item."""

    @explained()
    def bind(
        self,
        *,
        input: Items | wgpu.GPUBuffer | None = LEFT_OUT,
        output: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        n: int | Array | wgpu.GPUBuffer | None = LEFT_OUT,
    ) -> BoundCall[Array]:
        return self._bind(given(input=input, output=output, n=n))

    @explained()
    def record(
        self,
        encoder: wgpu.GPUCommandEncoder,
        *,
        input: Items | wgpu.GPUBuffer | None = LEFT_OUT,
        output: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        n: int | Array | wgpu.GPUBuffer | None = LEFT_OUT,
        trials: int = 1,
        timing: TimingSession | None = None,
    ) -> dict[str, Array]:
        return self._record(given(input=input, output=output, n=n), encoder, trials, timing)

    @explained()
    def execute(
        self,
        *,
        input: Items | wgpu.GPUBuffer | None = LEFT_OUT,
        output: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        n: int | Array | wgpu.GPUBuffer | None = LEFT_OUT,
        encoder: wgpu.GPUCommandEncoder | None = None,
        enable_gpu_timing: bool = False,
        enable_cpu_timing: bool = False,
        trials: int = 1,
    ) -> Run[Array]:
        arrays = given(input=input, output=output, n=n)
        return self._execute(arrays, encoder, enable_gpu_timing, enable_cpu_timing, trials)

    @explained(ASYNC_REMEDIES)
    async def execute_async(
        self,
        *,
        input: Items | wgpu.GPUBuffer | None = LEFT_OUT,
        output: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        n: int | Array | wgpu.GPUBuffer | None = LEFT_OUT,
        enable_gpu_timing: bool = False,
        enable_cpu_timing: bool = False,
        trials: int = 1,
    ) -> Run[Array]:
        arrays = given(input=input, output=output, n=n)
        return await self._execute_async(arrays, enable_gpu_timing, enable_cpu_timing, trials)


class TwoInputs(Primitive):
    """Primitives with two inputs and one output of the same kind."""

    @explained()
    def bind(
        self,
        *,
        a: ItemsT | wgpu.GPUBuffer | None = LEFT_OUT,
        b: ItemsT | wgpu.GPUBuffer | None = LEFT_OUT,
        output: ItemsT | wgpu.GPUBuffer | None = LEFT_OUT,
        n: int | Array | wgpu.GPUBuffer | None = LEFT_OUT,
    ) -> BoundCall[ItemsT]:
        return self._bind(given(a=a, b=b, output=output, n=n))

    @explained()
    def record(
        self,
        encoder: wgpu.GPUCommandEncoder,
        *,
        a: ItemsT | wgpu.GPUBuffer | None = LEFT_OUT,
        b: ItemsT | wgpu.GPUBuffer | None = LEFT_OUT,
        output: ItemsT | wgpu.GPUBuffer | None = LEFT_OUT,
        n: int | Array | wgpu.GPUBuffer | None = LEFT_OUT,
        trials: int = 1,
        timing: TimingSession | None = None,
    ) -> dict[str, ItemsT]:
        return self._record(given(a=a, b=b, output=output, n=n), encoder, trials, timing)

    @explained()
    def execute(
        self,
        *,
        a: ItemsT | wgpu.GPUBuffer | None = LEFT_OUT,
        b: ItemsT | wgpu.GPUBuffer | None = LEFT_OUT,
        output: ItemsT | wgpu.GPUBuffer | None = LEFT_OUT,
        n: int | Array | wgpu.GPUBuffer | None = LEFT_OUT,
        encoder: wgpu.GPUCommandEncoder | None = None,
        enable_gpu_timing: bool = False,
        enable_cpu_timing: bool = False,
        trials: int = 1,
    ) -> Run[ItemsT]:
        arrays = given(a=a, b=b, output=output, n=n)
        return self._execute(arrays, encoder, enable_gpu_timing, enable_cpu_timing, trials)

    @explained(ASYNC_REMEDIES)
    async def execute_async(
        self,
        *,
        a: ItemsT | wgpu.GPUBuffer | None = LEFT_OUT,
        b: ItemsT | wgpu.GPUBuffer | None = LEFT_OUT,
        output: ItemsT | wgpu.GPUBuffer | None = LEFT_OUT,
        n: int | Array | wgpu.GPUBuffer | None = LEFT_OUT,
        enable_gpu_timing: bool = False,
        enable_cpu_timing: bool = False,
        trials: int = 1,
    ) -> Run[ItemsT]:
        arrays = given(a=a, b=b, output=output, n=n)
        return await self._execute_async(arrays, enable_gpu_timing, enable_cpu_timing, trials)


class KeysValues(Primitive):
    """Primitives with keys and values as inputs and outputs."""

    @explained()
    def bind(
        self,
        *,
        keys: ItemsT | wgpu.GPUBuffer | None = LEFT_OUT,
        values: ItemsT | wgpu.GPUBuffer | None = LEFT_OUT,
        output_keys: ItemsT | wgpu.GPUBuffer | None = LEFT_OUT,
        output_values: ItemsT | wgpu.GPUBuffer | None = LEFT_OUT,
        n: int | Array | wgpu.GPUBuffer | None = LEFT_OUT,
    ) -> BoundCall[ItemsT]:
        return self._bind(given(keys=keys, values=values, output_keys=output_keys, output_values=output_values, n=n))

    @explained()
    def record(
        self,
        encoder: wgpu.GPUCommandEncoder,
        *,
        keys: ItemsT | wgpu.GPUBuffer | None = LEFT_OUT,
        values: ItemsT | wgpu.GPUBuffer | None = LEFT_OUT,
        output_keys: ItemsT | wgpu.GPUBuffer | None = LEFT_OUT,
        output_values: ItemsT | wgpu.GPUBuffer | None = LEFT_OUT,
        n: int | Array | wgpu.GPUBuffer | None = LEFT_OUT,
        trials: int = 1,
        timing: TimingSession | None = None,
    ) -> dict[str, ItemsT]:
        return self._record(
            given(keys=keys, values=values, output_keys=output_keys, output_values=output_values, n=n),
            encoder,
            trials,
            timing,
        )

    @explained()
    def execute(
        self,
        *,
        keys: ItemsT | wgpu.GPUBuffer | None = LEFT_OUT,
        values: ItemsT | wgpu.GPUBuffer | None = LEFT_OUT,
        output_keys: ItemsT | wgpu.GPUBuffer | None = LEFT_OUT,
        output_values: ItemsT | wgpu.GPUBuffer | None = LEFT_OUT,
        n: int | Array | wgpu.GPUBuffer | None = LEFT_OUT,
        encoder: wgpu.GPUCommandEncoder | None = None,
        enable_gpu_timing: bool = False,
        enable_cpu_timing: bool = False,
        trials: int = 1,
    ) -> Run[ItemsT]:
        arrays = given(keys=keys, values=values, output_keys=output_keys, output_values=output_values, n=n)
        return self._execute(arrays, encoder, enable_gpu_timing, enable_cpu_timing, trials)

    @explained(ASYNC_REMEDIES)
    async def execute_async(
        self,
        *,
        keys: ItemsT | wgpu.GPUBuffer | None = LEFT_OUT,
        values: ItemsT | wgpu.GPUBuffer | None = LEFT_OUT,
        output_keys: ItemsT | wgpu.GPUBuffer | None = LEFT_OUT,
        output_values: ItemsT | wgpu.GPUBuffer | None = LEFT_OUT,
        n: int | Array | wgpu.GPUBuffer | None = LEFT_OUT,
        enable_gpu_timing: bool = False,
        enable_cpu_timing: bool = False,
        trials: int = 1,
    ) -> Run[ItemsT]:
        arrays = given(keys=keys, values=values, output_keys=output_keys, output_values=output_values, n=n)
        return await self._execute_async(arrays, enable_gpu_timing, enable_cpu_timing, trials)


class SortedQueries(Primitive):
    """Primitives that search in sorted items for others."""

    @explained()
    def bind(
        self,
        *,
        sorted: Items | wgpu.GPUBuffer | None = LEFT_OUT,
        queries: ItemsT | wgpu.GPUBuffer | None = LEFT_OUT,
        sorter: Items | wgpu.GPUBuffer | None = LEFT_OUT,
        output: ItemsT | wgpu.GPUBuffer | None = LEFT_OUT,
    ) -> BoundCall[ItemsT]:
        return self._bind(given(sorted=sorted, queries=queries, sorter=sorter, output=output))

    @explained()
    def record(
        self,
        encoder: wgpu.GPUCommandEncoder,
        *,
        sorted: Items | wgpu.GPUBuffer | None = LEFT_OUT,
        queries: ItemsT | wgpu.GPUBuffer | None = LEFT_OUT,
        sorter: Items | wgpu.GPUBuffer | None = LEFT_OUT,
        output: ItemsT | wgpu.GPUBuffer | None = LEFT_OUT,
        trials: int = 1,
        timing: TimingSession | None = None,
    ) -> dict[str, ItemsT]:
        arrays = given(sorted=sorted, queries=queries, sorter=sorter, output=output)
        return self._record(arrays, encoder, trials, timing)

    @explained()
    def execute(
        self,
        *,
        sorted: Items | wgpu.GPUBuffer | None = LEFT_OUT,
        queries: ItemsT | wgpu.GPUBuffer | None = LEFT_OUT,
        sorter: Items | wgpu.GPUBuffer | None = LEFT_OUT,
        output: ItemsT | wgpu.GPUBuffer | None = LEFT_OUT,
        encoder: wgpu.GPUCommandEncoder | None = None,
        enable_gpu_timing: bool = False,
        enable_cpu_timing: bool = False,
        trials: int = 1,
    ) -> Run[ItemsT]:
        arrays = given(sorted=sorted, queries=queries, sorter=sorter, output=output)
        return self._execute(arrays, encoder, enable_gpu_timing, enable_cpu_timing, trials)

    @explained(ASYNC_REMEDIES)
    async def execute_async(
        self,
        *,
        sorted: Items | wgpu.GPUBuffer | None = LEFT_OUT,
        queries: ItemsT | wgpu.GPUBuffer | None = LEFT_OUT,
        sorter: Items | wgpu.GPUBuffer | None = LEFT_OUT,
        output: ItemsT | wgpu.GPUBuffer | None = LEFT_OUT,
        enable_gpu_timing: bool = False,
        enable_cpu_timing: bool = False,
        trials: int = 1,
    ) -> Run[ItemsT]:
        arrays = given(sorted=sorted, queries=queries, sorter=sorter, output=output)
        return await self._execute_async(arrays, enable_gpu_timing, enable_cpu_timing, trials)


class ValuesIndices(Primitive):
    """Primitives that choose items, and tell where they were."""

    @explained()
    def bind(
        self,
        *,
        input: Items | wgpu.GPUBuffer | None = LEFT_OUT,
        values: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        indices: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        n: int | Array | wgpu.GPUBuffer | None = LEFT_OUT,
    ) -> BoundCall[Array]:
        return self._bind(given(input=input, values=values, indices=indices, n=n))

    @explained()
    def record(
        self,
        encoder: wgpu.GPUCommandEncoder,
        *,
        input: Items | wgpu.GPUBuffer | None = LEFT_OUT,
        values: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        indices: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        n: int | Array | wgpu.GPUBuffer | None = LEFT_OUT,
        trials: int = 1,
        timing: TimingSession | None = None,
    ) -> dict[str, Array]:
        arrays = given(input=input, values=values, indices=indices, n=n)
        return self._record(arrays, encoder, trials, timing)

    @explained()
    def execute(
        self,
        *,
        input: Items | wgpu.GPUBuffer | None = LEFT_OUT,
        values: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        indices: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        n: int | Array | wgpu.GPUBuffer | None = LEFT_OUT,
        encoder: wgpu.GPUCommandEncoder | None = None,
        enable_gpu_timing: bool = False,
        enable_cpu_timing: bool = False,
        trials: int = 1,
    ) -> Run[Array]:
        arrays = given(input=input, values=values, indices=indices, n=n)
        return self._execute(arrays, encoder, enable_gpu_timing, enable_cpu_timing, trials)

    @explained(ASYNC_REMEDIES)
    async def execute_async(
        self,
        *,
        input: Items | wgpu.GPUBuffer | None = LEFT_OUT,
        values: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        indices: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        n: int | Array | wgpu.GPUBuffer | None = LEFT_OUT,
        enable_gpu_timing: bool = False,
        enable_cpu_timing: bool = False,
        trials: int = 1,
    ) -> Run[Array]:
        arrays = given(input=input, values=values, indices=indices, n=n)
        return await self._execute_async(arrays, enable_gpu_timing, enable_cpu_timing, trials)
