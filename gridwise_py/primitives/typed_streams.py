"""The signatures of the primitives on streams; see `typed`."""

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

__all__ = ["InputFlags", "InputParts", "KeysKept", "KeysRuns"]


class InputFlags(Primitive):
    """Primitives that select from an input by flags."""

    @explained()
    def bind(
        self,
        *,
        input: Items | wgpu.GPUBuffer | None = LEFT_OUT,
        flags: Items | wgpu.GPUBuffer | None = LEFT_OUT,
        output: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        count: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        n: int | Array | wgpu.GPUBuffer | None = LEFT_OUT,
    ) -> BoundCall[Array]:
        arrays = given(input=input, flags=flags, output=output, count=count, n=n)
        return self._bind(arrays)

    @explained()
    def record(
        self,
        encoder: wgpu.GPUCommandEncoder,
        *,
        input: Items | wgpu.GPUBuffer | None = LEFT_OUT,
        flags: Items | wgpu.GPUBuffer | None = LEFT_OUT,
        output: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        count: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        n: int | Array | wgpu.GPUBuffer | None = LEFT_OUT,
        trials: int = 1,
        timing: TimingSession | None = None,
    ) -> dict[str, Array]:
        arrays = given(input=input, flags=flags, output=output, count=count, n=n)
        return self._record(arrays, encoder, trials, timing)

    @explained()
    def execute(
        self,
        *,
        input: Items | wgpu.GPUBuffer | None = LEFT_OUT,
        flags: Items | wgpu.GPUBuffer | None = LEFT_OUT,
        output: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        count: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        n: int | Array | wgpu.GPUBuffer | None = LEFT_OUT,
        encoder: wgpu.GPUCommandEncoder | None = None,
        enable_gpu_timing: bool = False,
        enable_cpu_timing: bool = False,
        trials: int = 1,
    ) -> Run[Array]:
        arrays = given(input=input, flags=flags, output=output, count=count, n=n)
        return self._execute(arrays, encoder, enable_gpu_timing, enable_cpu_timing, trials)

    @explained(ASYNC_REMEDIES)
    async def execute_async(
        self,
        *,
        input: Items | wgpu.GPUBuffer | None = LEFT_OUT,
        flags: Items | wgpu.GPUBuffer | None = LEFT_OUT,
        output: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        count: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        n: int | Array | wgpu.GPUBuffer | None = LEFT_OUT,
        enable_gpu_timing: bool = False,
        enable_cpu_timing: bool = False,
        trials: int = 1,
    ) -> Run[Array]:
        arrays = given(input=input, flags=flags, output=output, count=count, n=n)
        return await self._execute_async(arrays, enable_gpu_timing, enable_cpu_timing, trials)


class InputParts(Primitive):
    """Primitives that split an input into parts by flags."""

    @explained()
    def bind(
        self,
        *,
        input: Items | wgpu.GPUBuffer | None = LEFT_OUT,
        flags: Items | wgpu.GPUBuffer | None = LEFT_OUT,
        second_flags: Items | wgpu.GPUBuffer | None = LEFT_OUT,
        first: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        second: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        rest: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        counts: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        n: int | Array | wgpu.GPUBuffer | None = LEFT_OUT,
    ) -> BoundCall[Array]:
        arrays = given(
            input=input, flags=flags, second_flags=second_flags, first=first, second=second, rest=rest,
            counts=counts, n=n,
        )  # fmt: skip
        return self._bind(arrays)

    @explained()
    def record(
        self,
        encoder: wgpu.GPUCommandEncoder,
        *,
        input: Items | wgpu.GPUBuffer | None = LEFT_OUT,
        flags: Items | wgpu.GPUBuffer | None = LEFT_OUT,
        second_flags: Items | wgpu.GPUBuffer | None = LEFT_OUT,
        first: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        second: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        rest: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        counts: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        n: int | Array | wgpu.GPUBuffer | None = LEFT_OUT,
        trials: int = 1,
        timing: TimingSession | None = None,
    ) -> dict[str, Array]:
        arrays = given(
            input=input, flags=flags, second_flags=second_flags, first=first, second=second, rest=rest,
            counts=counts, n=n,
        )  # fmt: skip
        return self._record(arrays, encoder, trials, timing)

    @explained()
    def execute(
        self,
        *,
        input: Items | wgpu.GPUBuffer | None = LEFT_OUT,
        flags: Items | wgpu.GPUBuffer | None = LEFT_OUT,
        second_flags: Items | wgpu.GPUBuffer | None = LEFT_OUT,
        first: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        second: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        rest: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        counts: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        n: int | Array | wgpu.GPUBuffer | None = LEFT_OUT,
        encoder: wgpu.GPUCommandEncoder | None = None,
        enable_gpu_timing: bool = False,
        enable_cpu_timing: bool = False,
        trials: int = 1,
    ) -> Run[Array]:
        arrays = given(
            input=input, flags=flags, second_flags=second_flags, first=first, second=second, rest=rest,
            counts=counts, n=n,
        )  # fmt: skip
        return self._execute(arrays, encoder, enable_gpu_timing, enable_cpu_timing, trials)

    @explained(ASYNC_REMEDIES)
    async def execute_async(
        self,
        *,
        input: Items | wgpu.GPUBuffer | None = LEFT_OUT,
        flags: Items | wgpu.GPUBuffer | None = LEFT_OUT,
        second_flags: Items | wgpu.GPUBuffer | None = LEFT_OUT,
        first: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        second: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        rest: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        counts: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        n: int | Array | wgpu.GPUBuffer | None = LEFT_OUT,
        enable_gpu_timing: bool = False,
        enable_cpu_timing: bool = False,
        trials: int = 1,
    ) -> Run[Array]:
        arrays = given(
            input=input, flags=flags, second_flags=second_flags, first=first, second=second, rest=rest,
            counts=counts, n=n,
        )  # fmt: skip
        return await self._execute_async(arrays, enable_gpu_timing, enable_cpu_timing, trials)


class KeysKept(Primitive):
    """Primitives that keep some keys, and the values that go with them."""

    @explained()
    def bind(
        self,
        *,
        keys: Items | wgpu.GPUBuffer | None = LEFT_OUT,
        values: Items | wgpu.GPUBuffer | None = LEFT_OUT,
        output: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        output_keys: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        output_values: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        count: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        n: int | Array | wgpu.GPUBuffer | None = LEFT_OUT,
    ) -> BoundCall[Array]:
        arrays = given(
            keys=keys, values=values, output=output, output_keys=output_keys, output_values=output_values,
            count=count, n=n,
        )  # fmt: skip
        return self._bind(arrays)

    @explained()
    def record(
        self,
        encoder: wgpu.GPUCommandEncoder,
        *,
        keys: Items | wgpu.GPUBuffer | None = LEFT_OUT,
        values: Items | wgpu.GPUBuffer | None = LEFT_OUT,
        output: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        output_keys: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        output_values: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        count: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        n: int | Array | wgpu.GPUBuffer | None = LEFT_OUT,
        trials: int = 1,
        timing: TimingSession | None = None,
    ) -> dict[str, Array]:
        arrays = given(
            keys=keys, values=values, output=output, output_keys=output_keys, output_values=output_values,
            count=count, n=n,
        )  # fmt: skip
        return self._record(arrays, encoder, trials, timing)

    @explained()
    def execute(
        self,
        *,
        keys: Items | wgpu.GPUBuffer | None = LEFT_OUT,
        values: Items | wgpu.GPUBuffer | None = LEFT_OUT,
        output: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        output_keys: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        output_values: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        count: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        n: int | Array | wgpu.GPUBuffer | None = LEFT_OUT,
        encoder: wgpu.GPUCommandEncoder | None = None,
        enable_gpu_timing: bool = False,
        enable_cpu_timing: bool = False,
        trials: int = 1,
    ) -> Run[Array]:
        arrays = given(
            keys=keys, values=values, output=output, output_keys=output_keys, output_values=output_values,
            count=count, n=n,
        )  # fmt: skip
        return self._execute(arrays, encoder, enable_gpu_timing, enable_cpu_timing, trials)

    @explained(ASYNC_REMEDIES)
    async def execute_async(
        self,
        *,
        keys: Items | wgpu.GPUBuffer | None = LEFT_OUT,
        values: Items | wgpu.GPUBuffer | None = LEFT_OUT,
        output: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        output_keys: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        output_values: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        count: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        n: int | Array | wgpu.GPUBuffer | None = LEFT_OUT,
        enable_gpu_timing: bool = False,
        enable_cpu_timing: bool = False,
        trials: int = 1,
    ) -> Run[Array]:
        arrays = given(
            keys=keys, values=values, output=output, output_keys=output_keys, output_values=output_values,
            count=count, n=n,
        )  # fmt: skip
        return await self._execute_async(arrays, enable_gpu_timing, enable_cpu_timing, trials)


class KeysRuns(Primitive):
    """Primitives that encode runs of keys."""

    @explained()
    def bind(
        self,
        *,
        keys: Items | wgpu.GPUBuffer | None = LEFT_OUT,
        values: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        starts: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        lengths: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        count: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        n: int | Array | wgpu.GPUBuffer | None = LEFT_OUT,
    ) -> BoundCall[Array]:
        arrays = given(keys=keys, values=values, starts=starts, lengths=lengths, count=count, n=n)
        return self._bind(arrays)

    @explained()
    def record(
        self,
        encoder: wgpu.GPUCommandEncoder,
        *,
        keys: Items | wgpu.GPUBuffer | None = LEFT_OUT,
        values: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        starts: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        lengths: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        count: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        n: int | Array | wgpu.GPUBuffer | None = LEFT_OUT,
        trials: int = 1,
        timing: TimingSession | None = None,
    ) -> dict[str, Array]:
        arrays = given(keys=keys, values=values, starts=starts, lengths=lengths, count=count, n=n)
        return self._record(arrays, encoder, trials, timing)

    @explained()
    def execute(
        self,
        *,
        keys: Items | wgpu.GPUBuffer | None = LEFT_OUT,
        values: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        starts: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        lengths: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        count: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        n: int | Array | wgpu.GPUBuffer | None = LEFT_OUT,
        encoder: wgpu.GPUCommandEncoder | None = None,
        enable_gpu_timing: bool = False,
        enable_cpu_timing: bool = False,
        trials: int = 1,
    ) -> Run[Array]:
        arrays = given(keys=keys, values=values, starts=starts, lengths=lengths, count=count, n=n)
        return self._execute(arrays, encoder, enable_gpu_timing, enable_cpu_timing, trials)

    @explained(ASYNC_REMEDIES)
    async def execute_async(
        self,
        *,
        keys: Items | wgpu.GPUBuffer | None = LEFT_OUT,
        values: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        starts: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        lengths: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        count: Array | wgpu.GPUBuffer | None = LEFT_OUT,
        n: int | Array | wgpu.GPUBuffer | None = LEFT_OUT,
        enable_gpu_timing: bool = False,
        enable_cpu_timing: bool = False,
        trials: int = 1,
    ) -> Run[Array]:
        arrays = given(keys=keys, values=values, starts=starts, lengths=lengths, count=count, n=n)
        return await self._execute_async(arrays, enable_gpu_timing, enable_cpu_timing, trials)
