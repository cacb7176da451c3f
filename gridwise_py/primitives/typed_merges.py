"""The signatures of merges; see `typed`."""

# A method with explicit names cannot replace one that takes any names; here that is intended.
# pyright: reportIncompatibleMethodOverride=false

from __future__ import annotations

import wgpu

from ..call_errors import LEFT_OUT, explained, given
from ..runtime.array import Array
from ..runtime.bound_call import ASYNC_REMEDIES, BoundCall
from ..runtime.chunked_array import ItemsT
from ..runtime.run import Run
from ..timing.queries import TimingSession
from .base import Primitive

__all__ = ["SortedItems", "TwoSorted"]


class SortedItems(Primitive):
    """Primitives that sort items, and values with them."""

    @explained()
    def bind(
        self,
        *,
        input: ItemsT | wgpu.GPUBuffer | None = LEFT_OUT,
        values: ItemsT | wgpu.GPUBuffer | None = LEFT_OUT,
        output: ItemsT | wgpu.GPUBuffer | None = LEFT_OUT,
        output_values: ItemsT | wgpu.GPUBuffer | None = LEFT_OUT,
        n: int | Array | wgpu.GPUBuffer | None = LEFT_OUT,
    ) -> BoundCall[ItemsT]:
        return self._bind(
            given(
                input=input,
                values=values,
                output=output,
                output_values=output_values,
                n=n,
            )
        )

    @explained()
    def record(
        self,
        encoder: wgpu.GPUCommandEncoder,
        *,
        input: ItemsT | wgpu.GPUBuffer | None = LEFT_OUT,
        values: ItemsT | wgpu.GPUBuffer | None = LEFT_OUT,
        output: ItemsT | wgpu.GPUBuffer | None = LEFT_OUT,
        output_values: ItemsT | wgpu.GPUBuffer | None = LEFT_OUT,
        n: int | Array | wgpu.GPUBuffer | None = LEFT_OUT,
        trials: int = 1,
        timing: TimingSession | None = None,
    ) -> dict[str, ItemsT]:
        arrays = given(
            input=input,
            values=values,
            output=output,
            output_values=output_values,
            n=n,
        )
        return self._record(arrays, encoder, trials, timing)

    @explained()
    def execute(
        self,
        *,
        input: ItemsT | wgpu.GPUBuffer | None = LEFT_OUT,
        values: ItemsT | wgpu.GPUBuffer | None = LEFT_OUT,
        output: ItemsT | wgpu.GPUBuffer | None = LEFT_OUT,
        output_values: ItemsT | wgpu.GPUBuffer | None = LEFT_OUT,
        n: int | Array | wgpu.GPUBuffer | None = LEFT_OUT,
        encoder: wgpu.GPUCommandEncoder | None = None,
        enable_gpu_timing: bool = False,
        enable_cpu_timing: bool = False,
        trials: int = 1,
    ) -> Run[ItemsT]:
        arrays = given(
            input=input,
            values=values,
            output=output,
            output_values=output_values,
            n=n,
        )
        return self._execute(arrays, encoder, enable_gpu_timing, enable_cpu_timing, trials)

    @explained(ASYNC_REMEDIES)
    async def execute_async(
        self,
        *,
        input: ItemsT | wgpu.GPUBuffer | None = LEFT_OUT,
        values: ItemsT | wgpu.GPUBuffer | None = LEFT_OUT,
        output: ItemsT | wgpu.GPUBuffer | None = LEFT_OUT,
        output_values: ItemsT | wgpu.GPUBuffer | None = LEFT_OUT,
        n: int | Array | wgpu.GPUBuffer | None = LEFT_OUT,
        enable_gpu_timing: bool = False,
        enable_cpu_timing: bool = False,
        trials: int = 1,
    ) -> Run[ItemsT]:
        arrays = given(
            input=input,
            values=values,
            output=output,
            output_values=output_values,
            n=n,
        )
        return await self._execute_async(arrays, enable_gpu_timing, enable_cpu_timing, trials)


class TwoSorted(Primitive):
    """Primitives with two sorted inputs, and the values and counts of both."""

    @explained()
    def bind(
        self,
        *,
        a: ItemsT | wgpu.GPUBuffer | None = LEFT_OUT,
        b: ItemsT | wgpu.GPUBuffer | None = LEFT_OUT,
        a_values: ItemsT | wgpu.GPUBuffer | None = LEFT_OUT,
        b_values: ItemsT | wgpu.GPUBuffer | None = LEFT_OUT,
        a_count: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        b_count: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        output: ItemsT | wgpu.GPUBuffer | None = LEFT_OUT,
        output_values: ItemsT | wgpu.GPUBuffer | None = LEFT_OUT,
        count: Array | wgpu.GPUBuffer | None = LEFT_OUT,
    ) -> BoundCall[ItemsT]:
        return self._bind(
            given(
                a=a,
                b=b,
                a_values=a_values,
                b_values=b_values,
                a_count=a_count,
                b_count=b_count,
                output=output,
                output_values=output_values,
                count=count,
            )
        )

    @explained()
    def record(
        self,
        encoder: wgpu.GPUCommandEncoder,
        *,
        a: ItemsT | wgpu.GPUBuffer | None = LEFT_OUT,
        b: ItemsT | wgpu.GPUBuffer | None = LEFT_OUT,
        a_values: ItemsT | wgpu.GPUBuffer | None = LEFT_OUT,
        b_values: ItemsT | wgpu.GPUBuffer | None = LEFT_OUT,
        a_count: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        b_count: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        output: ItemsT | wgpu.GPUBuffer | None = LEFT_OUT,
        output_values: ItemsT | wgpu.GPUBuffer | None = LEFT_OUT,
        count: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        trials: int = 1,
        timing: TimingSession | None = None,
    ) -> dict[str, ItemsT]:
        arrays = given(
            a=a,
            b=b,
            a_values=a_values,
            b_values=b_values,
            a_count=a_count,
            b_count=b_count,
            output=output,
            output_values=output_values,
            count=count,
        )
        return self._record(arrays, encoder, trials, timing)

    @explained()
    def execute(
        self,
        *,
        a: ItemsT | wgpu.GPUBuffer | None = LEFT_OUT,
        b: ItemsT | wgpu.GPUBuffer | None = LEFT_OUT,
        a_values: ItemsT | wgpu.GPUBuffer | None = LEFT_OUT,
        b_values: ItemsT | wgpu.GPUBuffer | None = LEFT_OUT,
        a_count: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        b_count: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        output: ItemsT | wgpu.GPUBuffer | None = LEFT_OUT,
        output_values: ItemsT | wgpu.GPUBuffer | None = LEFT_OUT,
        count: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        encoder: wgpu.GPUCommandEncoder | None = None,
        enable_gpu_timing: bool = False,
        enable_cpu_timing: bool = False,
        trials: int = 1,
    ) -> Run[ItemsT]:
        arrays = given(
            a=a,
            b=b,
            a_values=a_values,
            b_values=b_values,
            a_count=a_count,
            b_count=b_count,
            output=output,
            output_values=output_values,
            count=count,
        )
        return self._execute(arrays, encoder, enable_gpu_timing, enable_cpu_timing, trials)

    @explained(ASYNC_REMEDIES)
    async def execute_async(
        self,
        *,
        a: ItemsT | wgpu.GPUBuffer | None = LEFT_OUT,
        b: ItemsT | wgpu.GPUBuffer | None = LEFT_OUT,
        a_values: ItemsT | wgpu.GPUBuffer | None = LEFT_OUT,
        b_values: ItemsT | wgpu.GPUBuffer | None = LEFT_OUT,
        a_count: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        b_count: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        output: ItemsT | wgpu.GPUBuffer | None = LEFT_OUT,
        output_values: ItemsT | wgpu.GPUBuffer | None = LEFT_OUT,
        count: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        enable_gpu_timing: bool = False,
        enable_cpu_timing: bool = False,
        trials: int = 1,
    ) -> Run[ItemsT]:
        arrays = given(
            a=a,
            b=b,
            a_values=a_values,
            b_values=b_values,
            a_count=a_count,
            b_count=b_count,
            output=output,
            output_values=output_values,
            count=count,
        )
        return await self._execute_async(arrays, enable_gpu_timing, enable_cpu_timing, trials)
