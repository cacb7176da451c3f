"""The signatures of the primitives that combine items by bins; see `typed`."""

# A method with explicit names cannot replace one that takes any names; here that is intended.
# pyright: reportIncompatibleMethodOverride=false

from __future__ import annotations

import wgpu

from ..call_errors import LEFT_OUT, explained, given
from ..runtime.array import Array
from ..runtime.bound_call import ASYNC_REMEDIES, BoundCall
from ..runtime.chunked_array import Items
from ..runtime.run import Run
from ..timing.queries import TimingSession
from .base import Primitive

__all__ = ["IndicesBinned", "InputBinned", "PairBinned"]


class InputBinned(Primitive):
    """Primitives with an input whose items are in bins."""

    @explained()
    def bind(
        self,
        *,
        input: Items | wgpu.GPUBuffer | None = LEFT_OUT,
        edges: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        weights: Items | wgpu.GPUBuffer | None = LEFT_OUT,
        output: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        n: int | Array | wgpu.GPUBuffer | None = LEFT_OUT,
    ) -> BoundCall[Array]:
        arrays = given(input=input, edges=edges, weights=weights, output=output, n=n)
        return self._bind(arrays)

    @explained()
    def record(
        self,
        encoder: wgpu.GPUCommandEncoder,
        *,
        input: Items | wgpu.GPUBuffer | None = LEFT_OUT,
        edges: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        weights: Items | wgpu.GPUBuffer | None = LEFT_OUT,
        output: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        n: int | Array | wgpu.GPUBuffer | None = LEFT_OUT,
        trials: int = 1,
        timing: TimingSession | None = None,
    ) -> dict[str, Array]:
        arrays = given(input=input, edges=edges, weights=weights, output=output, n=n)
        return self._record(arrays, encoder, trials, timing)

    @explained()
    def execute(
        self,
        *,
        input: Items | wgpu.GPUBuffer | None = LEFT_OUT,
        edges: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        weights: Items | wgpu.GPUBuffer | None = LEFT_OUT,
        output: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        n: int | Array | wgpu.GPUBuffer | None = LEFT_OUT,
        encoder: wgpu.GPUCommandEncoder | None = None,
        enable_gpu_timing: bool = False,
        enable_cpu_timing: bool = False,
        trials: int = 1,
    ) -> Run[Array]:
        arrays = given(input=input, edges=edges, weights=weights, output=output, n=n)
        return self._execute(arrays, encoder, enable_gpu_timing, enable_cpu_timing, trials)

    @explained(ASYNC_REMEDIES)
    async def execute_async(
        self,
        *,
        input: Items | wgpu.GPUBuffer | None = LEFT_OUT,
        edges: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        weights: Items | wgpu.GPUBuffer | None = LEFT_OUT,
        output: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        n: int | Array | wgpu.GPUBuffer | None = LEFT_OUT,
        enable_gpu_timing: bool = False,
        enable_cpu_timing: bool = False,
        trials: int = 1,
    ) -> Run[Array]:
        arrays = given(input=input, edges=edges, weights=weights, output=output, n=n)
        return await self._execute_async(arrays, enable_gpu_timing, enable_cpu_timing, trials)


class PairBinned(Primitive):
    """Primitives with pairs of items that are in bins."""

    @explained()
    def bind(
        self,
        *,
        x: Items | wgpu.GPUBuffer | None = LEFT_OUT,
        y: Items | wgpu.GPUBuffer | None = LEFT_OUT,
        x_edges: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        y_edges: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        weights: Items | wgpu.GPUBuffer | None = LEFT_OUT,
        output: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        n: int | Array | wgpu.GPUBuffer | None = LEFT_OUT,
    ) -> BoundCall[Array]:
        arrays = given(x=x, y=y, x_edges=x_edges, y_edges=y_edges, weights=weights, output=output, n=n)
        return self._bind(arrays)

    @explained()
    def record(
        self,
        encoder: wgpu.GPUCommandEncoder,
        *,
        x: Items | wgpu.GPUBuffer | None = LEFT_OUT,
        y: Items | wgpu.GPUBuffer | None = LEFT_OUT,
        x_edges: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        y_edges: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        weights: Items | wgpu.GPUBuffer | None = LEFT_OUT,
        output: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        n: int | Array | wgpu.GPUBuffer | None = LEFT_OUT,
        trials: int = 1,
        timing: TimingSession | None = None,
    ) -> dict[str, Array]:
        arrays = given(x=x, y=y, x_edges=x_edges, y_edges=y_edges, weights=weights, output=output, n=n)
        return self._record(arrays, encoder, trials, timing)

    @explained()
    def execute(
        self,
        *,
        x: Items | wgpu.GPUBuffer | None = LEFT_OUT,
        y: Items | wgpu.GPUBuffer | None = LEFT_OUT,
        x_edges: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        y_edges: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        weights: Items | wgpu.GPUBuffer | None = LEFT_OUT,
        output: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        n: int | Array | wgpu.GPUBuffer | None = LEFT_OUT,
        encoder: wgpu.GPUCommandEncoder | None = None,
        enable_gpu_timing: bool = False,
        enable_cpu_timing: bool = False,
        trials: int = 1,
    ) -> Run[Array]:
        arrays = given(x=x, y=y, x_edges=x_edges, y_edges=y_edges, weights=weights, output=output, n=n)
        return self._execute(arrays, encoder, enable_gpu_timing, enable_cpu_timing, trials)

    @explained(ASYNC_REMEDIES)
    async def execute_async(
        self,
        *,
        x: Items | wgpu.GPUBuffer | None = LEFT_OUT,
        y: Items | wgpu.GPUBuffer | None = LEFT_OUT,
        x_edges: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        y_edges: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        weights: Items | wgpu.GPUBuffer | None = LEFT_OUT,
        output: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        n: int | Array | wgpu.GPUBuffer | None = LEFT_OUT,
        enable_gpu_timing: bool = False,
        enable_cpu_timing: bool = False,
        trials: int = 1,
    ) -> Run[Array]:
        arrays = given(x=x, y=y, x_edges=x_edges, y_edges=y_edges, weights=weights, output=output, n=n)
        return await self._execute_async(arrays, enable_gpu_timing, enable_cpu_timing, trials)


class IndicesBinned(Primitive):
    """Primitives with an item for each index."""

    @explained()
    def bind(
        self,
        *,
        indices: Items | wgpu.GPUBuffer | None = LEFT_OUT,
        items: Items | wgpu.GPUBuffer | None = LEFT_OUT,
        output: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        n: int | Array | wgpu.GPUBuffer | None = LEFT_OUT,
    ) -> BoundCall[Array]:
        arrays = given(indices=indices, items=items, output=output, n=n)
        return self._bind(arrays)

    @explained()
    def record(
        self,
        encoder: wgpu.GPUCommandEncoder,
        *,
        indices: Items | wgpu.GPUBuffer | None = LEFT_OUT,
        items: Items | wgpu.GPUBuffer | None = LEFT_OUT,
        output: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        n: int | Array | wgpu.GPUBuffer | None = LEFT_OUT,
        trials: int = 1,
        timing: TimingSession | None = None,
    ) -> dict[str, Array]:
        arrays = given(indices=indices, items=items, output=output, n=n)
        return self._record(arrays, encoder, trials, timing)

    @explained()
    def execute(
        self,
        *,
        indices: Items | wgpu.GPUBuffer | None = LEFT_OUT,
        items: Items | wgpu.GPUBuffer | None = LEFT_OUT,
        output: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        n: int | Array | wgpu.GPUBuffer | None = LEFT_OUT,
        encoder: wgpu.GPUCommandEncoder | None = None,
        enable_gpu_timing: bool = False,
        enable_cpu_timing: bool = False,
        trials: int = 1,
    ) -> Run[Array]:
        arrays = given(indices=indices, items=items, output=output, n=n)
        return self._execute(arrays, encoder, enable_gpu_timing, enable_cpu_timing, trials)

    @explained(ASYNC_REMEDIES)
    async def execute_async(
        self,
        *,
        indices: Items | wgpu.GPUBuffer | None = LEFT_OUT,
        items: Items | wgpu.GPUBuffer | None = LEFT_OUT,
        output: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        n: int | Array | wgpu.GPUBuffer | None = LEFT_OUT,
        enable_gpu_timing: bool = False,
        enable_cpu_timing: bool = False,
        trials: int = 1,
    ) -> Run[Array]:
        arrays = given(indices=indices, items=items, output=output, n=n)
        return await self._execute_async(arrays, enable_gpu_timing, enable_cpu_timing, trials)
