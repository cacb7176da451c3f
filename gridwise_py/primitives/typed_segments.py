"""The signatures of the primitives on segments; see `typed`."""

# A method with explicit names cannot replace one that takes any names; here that is intended.
# pyright: reportIncompatibleMethodOverride=false

from __future__ import annotations

import wgpu

from ..call_errors import LEFT_OUT, explained, given
from ..runtime.array import Array
from ..runtime.bound_call import ASYNC_REMEDIES, BoundCall
from ..runtime.run import Run
from ..timing.queries import TimingSession
from .base import Primitive

__all__ = [
    "ItemsIndices",
    "ItemsOffsets",
    "ItemsOffsetsRanked",
    "KeysItems",
    "KeysItemsReduced",
    "KeysValuesOffsets",
    "ValuesRepeated",
]


class KeysItems(Primitive):
    """Primitives with keys, items, and a result for each item."""

    @explained()
    def bind(
        self,
        *,
        keys: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        items: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        output: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        n: int | Array | wgpu.GPUBuffer | None = LEFT_OUT,
    ) -> BoundCall[Array]:
        arrays = given(keys=keys, items=items, output=output, n=n)
        return self._bind(arrays)

    @explained()
    def record(
        self,
        encoder: wgpu.GPUCommandEncoder,
        *,
        keys: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        items: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        output: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        n: int | Array | wgpu.GPUBuffer | None = LEFT_OUT,
        trials: int = 1,
        timing: TimingSession | None = None,
    ) -> dict[str, Array]:
        arrays = given(keys=keys, items=items, output=output, n=n)
        return self._record(arrays, encoder, trials, timing)

    @explained()
    def execute(
        self,
        *,
        keys: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        items: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        output: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        n: int | Array | wgpu.GPUBuffer | None = LEFT_OUT,
        encoder: wgpu.GPUCommandEncoder | None = None,
        enable_gpu_timing: bool = False,
        enable_cpu_timing: bool = False,
        trials: int = 1,
    ) -> Run[Array]:
        arrays = given(keys=keys, items=items, output=output, n=n)
        return self._execute(arrays, encoder, enable_gpu_timing, enable_cpu_timing, trials)

    @explained(ASYNC_REMEDIES)
    async def execute_async(
        self,
        *,
        keys: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        items: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        output: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        n: int | Array | wgpu.GPUBuffer | None = LEFT_OUT,
        enable_gpu_timing: bool = False,
        enable_cpu_timing: bool = False,
        trials: int = 1,
    ) -> Run[Array]:
        arrays = given(keys=keys, items=items, output=output, n=n)
        return await self._execute_async(arrays, enable_gpu_timing, enable_cpu_timing, trials)


class KeysItemsReduced(Primitive):
    """Primitives with keys, items, and a result for each run of equal keys."""

    @explained()
    def bind(
        self,
        *,
        keys: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        items: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        output_keys: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        output_values: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        count: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        n: int | Array | wgpu.GPUBuffer | None = LEFT_OUT,
    ) -> BoundCall[Array]:
        arrays = given(keys=keys, items=items, output_keys=output_keys, output_values=output_values, count=count, n=n)
        return self._bind(arrays)

    @explained()
    def record(
        self,
        encoder: wgpu.GPUCommandEncoder,
        *,
        keys: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        items: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        output_keys: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        output_values: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        count: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        n: int | Array | wgpu.GPUBuffer | None = LEFT_OUT,
        trials: int = 1,
        timing: TimingSession | None = None,
    ) -> dict[str, Array]:
        arrays = given(keys=keys, items=items, output_keys=output_keys, output_values=output_values, count=count, n=n)
        return self._record(arrays, encoder, trials, timing)

    @explained()
    def execute(
        self,
        *,
        keys: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        items: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        output_keys: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        output_values: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        count: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        n: int | Array | wgpu.GPUBuffer | None = LEFT_OUT,
        encoder: wgpu.GPUCommandEncoder | None = None,
        enable_gpu_timing: bool = False,
        enable_cpu_timing: bool = False,
        trials: int = 1,
    ) -> Run[Array]:
        arrays = given(keys=keys, items=items, output_keys=output_keys, output_values=output_values, count=count, n=n)
        return self._execute(arrays, encoder, enable_gpu_timing, enable_cpu_timing, trials)

    @explained(ASYNC_REMEDIES)
    async def execute_async(
        self,
        *,
        keys: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        items: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        output_keys: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        output_values: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        count: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        n: int | Array | wgpu.GPUBuffer | None = LEFT_OUT,
        enable_gpu_timing: bool = False,
        enable_cpu_timing: bool = False,
        trials: int = 1,
    ) -> Run[Array]:
        arrays = given(keys=keys, items=items, output_keys=output_keys, output_values=output_values, count=count, n=n)
        return await self._execute_async(arrays, enable_gpu_timing, enable_cpu_timing, trials)


class ItemsIndices(Primitive):
    """Primitives with items, and a place in the output for each."""

    @explained()
    def bind(
        self,
        *,
        items: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        indices: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        output: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        n: int | Array | wgpu.GPUBuffer | None = LEFT_OUT,
    ) -> BoundCall[Array]:
        arrays = given(items=items, indices=indices, output=output, n=n)
        return self._bind(arrays)

    @explained()
    def record(
        self,
        encoder: wgpu.GPUCommandEncoder,
        *,
        items: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        indices: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        output: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        n: int | Array | wgpu.GPUBuffer | None = LEFT_OUT,
        trials: int = 1,
        timing: TimingSession | None = None,
    ) -> dict[str, Array]:
        arrays = given(items=items, indices=indices, output=output, n=n)
        return self._record(arrays, encoder, trials, timing)

    @explained()
    def execute(
        self,
        *,
        items: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        indices: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        output: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        n: int | Array | wgpu.GPUBuffer | None = LEFT_OUT,
        encoder: wgpu.GPUCommandEncoder | None = None,
        enable_gpu_timing: bool = False,
        enable_cpu_timing: bool = False,
        trials: int = 1,
    ) -> Run[Array]:
        arrays = given(items=items, indices=indices, output=output, n=n)
        return self._execute(arrays, encoder, enable_gpu_timing, enable_cpu_timing, trials)

    @explained(ASYNC_REMEDIES)
    async def execute_async(
        self,
        *,
        items: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        indices: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        output: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        n: int | Array | wgpu.GPUBuffer | None = LEFT_OUT,
        enable_gpu_timing: bool = False,
        enable_cpu_timing: bool = False,
        trials: int = 1,
    ) -> Run[Array]:
        arrays = given(items=items, indices=indices, output=output, n=n)
        return await self._execute_async(arrays, enable_gpu_timing, enable_cpu_timing, trials)


class ItemsOffsets(Primitive):
    """Primitives with items in segments that offsets delimit."""

    @explained()
    def bind(
        self,
        *,
        items: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        offsets: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        output: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        n: int | Array | wgpu.GPUBuffer | None = LEFT_OUT,
    ) -> BoundCall[Array]:
        arrays = given(items=items, offsets=offsets, output=output, n=n)
        return self._bind(arrays)

    @explained()
    def record(
        self,
        encoder: wgpu.GPUCommandEncoder,
        *,
        items: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        offsets: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        output: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        n: int | Array | wgpu.GPUBuffer | None = LEFT_OUT,
        trials: int = 1,
        timing: TimingSession | None = None,
    ) -> dict[str, Array]:
        arrays = given(items=items, offsets=offsets, output=output, n=n)
        return self._record(arrays, encoder, trials, timing)

    @explained()
    def execute(
        self,
        *,
        items: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        offsets: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        output: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        n: int | Array | wgpu.GPUBuffer | None = LEFT_OUT,
        encoder: wgpu.GPUCommandEncoder | None = None,
        enable_gpu_timing: bool = False,
        enable_cpu_timing: bool = False,
        trials: int = 1,
    ) -> Run[Array]:
        arrays = given(items=items, offsets=offsets, output=output, n=n)
        return self._execute(arrays, encoder, enable_gpu_timing, enable_cpu_timing, trials)

    @explained(ASYNC_REMEDIES)
    async def execute_async(
        self,
        *,
        items: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        offsets: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        output: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        n: int | Array | wgpu.GPUBuffer | None = LEFT_OUT,
        enable_gpu_timing: bool = False,
        enable_cpu_timing: bool = False,
        trials: int = 1,
    ) -> Run[Array]:
        arrays = given(items=items, offsets=offsets, output=output, n=n)
        return await self._execute_async(arrays, enable_gpu_timing, enable_cpu_timing, trials)


class KeysValuesOffsets(Primitive):
    """Primitives that order keys, or keys and values, within segments."""

    @explained()
    def bind(
        self,
        *,
        keys: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        values: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        offsets: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        output_keys: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        output_values: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        n: int | Array | wgpu.GPUBuffer | None = LEFT_OUT,
    ) -> BoundCall[Array]:
        arrays = given(
            keys=keys, values=values, offsets=offsets, output_keys=output_keys, output_values=output_values, n=n
        )
        return self._bind(arrays)

    @explained()
    def record(
        self,
        encoder: wgpu.GPUCommandEncoder,
        *,
        keys: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        values: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        offsets: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        output_keys: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        output_values: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        n: int | Array | wgpu.GPUBuffer | None = LEFT_OUT,
        trials: int = 1,
        timing: TimingSession | None = None,
    ) -> dict[str, Array]:
        arrays = given(
            keys=keys, values=values, offsets=offsets, output_keys=output_keys, output_values=output_values, n=n
        )
        return self._record(arrays, encoder, trials, timing)

    @explained()
    def execute(
        self,
        *,
        keys: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        values: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        offsets: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        output_keys: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        output_values: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        n: int | Array | wgpu.GPUBuffer | None = LEFT_OUT,
        encoder: wgpu.GPUCommandEncoder | None = None,
        enable_gpu_timing: bool = False,
        enable_cpu_timing: bool = False,
        trials: int = 1,
    ) -> Run[Array]:
        arrays = given(
            keys=keys, values=values, offsets=offsets, output_keys=output_keys, output_values=output_values, n=n
        )
        return self._execute(arrays, encoder, enable_gpu_timing, enable_cpu_timing, trials)

    @explained(ASYNC_REMEDIES)
    async def execute_async(
        self,
        *,
        keys: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        values: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        offsets: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        output_keys: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        output_values: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        n: int | Array | wgpu.GPUBuffer | None = LEFT_OUT,
        enable_gpu_timing: bool = False,
        enable_cpu_timing: bool = False,
        trials: int = 1,
    ) -> Run[Array]:
        arrays = given(
            keys=keys, values=values, offsets=offsets, output_keys=output_keys, output_values=output_values, n=n
        )
        return await self._execute_async(arrays, enable_gpu_timing, enable_cpu_timing, trials)


class ValuesRepeated(Primitive):
    """Primitives that repeat values by counts, or over segments."""

    @explained()
    def bind(
        self,
        *,
        values: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        counts: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        offsets: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        output: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        count: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        n: int | Array | wgpu.GPUBuffer | None = LEFT_OUT,
    ) -> BoundCall[Array]:
        arrays = given(values=values, counts=counts, offsets=offsets, output=output, count=count, n=n)
        return self._bind(arrays)

    @explained()
    def record(
        self,
        encoder: wgpu.GPUCommandEncoder,
        *,
        values: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        counts: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        offsets: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        output: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        count: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        n: int | Array | wgpu.GPUBuffer | None = LEFT_OUT,
        trials: int = 1,
        timing: TimingSession | None = None,
    ) -> dict[str, Array]:
        arrays = given(values=values, counts=counts, offsets=offsets, output=output, count=count, n=n)
        return self._record(arrays, encoder, trials, timing)

    @explained()
    def execute(
        self,
        *,
        values: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        counts: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        offsets: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        output: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        count: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        n: int | Array | wgpu.GPUBuffer | None = LEFT_OUT,
        encoder: wgpu.GPUCommandEncoder | None = None,
        enable_gpu_timing: bool = False,
        enable_cpu_timing: bool = False,
        trials: int = 1,
    ) -> Run[Array]:
        arrays = given(values=values, counts=counts, offsets=offsets, output=output, count=count, n=n)
        return self._execute(arrays, encoder, enable_gpu_timing, enable_cpu_timing, trials)

    @explained(ASYNC_REMEDIES)
    async def execute_async(
        self,
        *,
        values: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        counts: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        offsets: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        output: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        count: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        n: int | Array | wgpu.GPUBuffer | None = LEFT_OUT,
        enable_gpu_timing: bool = False,
        enable_cpu_timing: bool = False,
        trials: int = 1,
    ) -> Run[Array]:
        arrays = given(values=values, counts=counts, offsets=offsets, output=output, count=count, n=n)
        return await self._execute_async(arrays, enable_gpu_timing, enable_cpu_timing, trials)


class ItemsOffsetsRanked(Primitive):
    """Primitives that choose items of each segment, and tell where they were."""

    @explained()
    def bind(
        self,
        *,
        input: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        offsets: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        values: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        indices: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        n: int | Array | wgpu.GPUBuffer | None = LEFT_OUT,
    ) -> BoundCall[Array]:
        return self._bind(given(input=input, offsets=offsets, values=values, indices=indices, n=n))

    @explained()
    def record(
        self,
        encoder: wgpu.GPUCommandEncoder,
        *,
        input: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        offsets: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        values: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        indices: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        n: int | Array | wgpu.GPUBuffer | None = LEFT_OUT,
        trials: int = 1,
        timing: TimingSession | None = None,
    ) -> dict[str, Array]:
        arrays = given(input=input, offsets=offsets, values=values, indices=indices, n=n)
        return self._record(arrays, encoder, trials, timing)

    @explained()
    def execute(
        self,
        *,
        input: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        offsets: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        values: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        indices: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        n: int | Array | wgpu.GPUBuffer | None = LEFT_OUT,
        encoder: wgpu.GPUCommandEncoder | None = None,
        enable_gpu_timing: bool = False,
        enable_cpu_timing: bool = False,
        trials: int = 1,
    ) -> Run[Array]:
        arrays = given(input=input, offsets=offsets, values=values, indices=indices, n=n)
        return self._execute(arrays, encoder, enable_gpu_timing, enable_cpu_timing, trials)

    @explained(ASYNC_REMEDIES)
    async def execute_async(
        self,
        *,
        input: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        offsets: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        values: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        indices: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        n: int | Array | wgpu.GPUBuffer | None = LEFT_OUT,
        enable_gpu_timing: bool = False,
        enable_cpu_timing: bool = False,
        trials: int = 1,
    ) -> Run[Array]:
        arrays = given(input=input, offsets=offsets, values=values, indices=indices, n=n)
        return await self._execute_async(arrays, enable_gpu_timing, enable_cpu_timing, trials)
