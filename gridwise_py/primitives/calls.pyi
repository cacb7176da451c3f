# Made by scripts/make_stubs.py.
# ruff: noqa
from typing import Generic, TypedDict, Unpack

import wgpu

from ..runtime.array import Array
from ..runtime.bound_call import BoundCall
from ..runtime.chunked_array import Items, ItemsT
from ..runtime.run import Run
from ..timing.queries import GpuTiming, TimingSession
from .base import Primitive

class _Timed(TypedDict, total=False):
    enable_gpu_timing: GpuTiming
    enable_cpu_timing: bool
    trials: int

class _ByOffsetsArrays(TypedDict, total=False):
    items: Array | wgpu.GPUBuffer | None
    offsets: Array | wgpu.GPUBuffer | None
    output: Array | wgpu.GPUBuffer | None
    n: int | Array | wgpu.GPUBuffer | None

class _ByOffsetsCall(_ByOffsetsArrays, _Timed, total=False): ...

class ByOffsetsCalls(Primitive):
    def bind(self, **arrays: Unpack[_ByOffsetsArrays]) -> BoundCall[Array]: ...
    def record(
        self,
        encoder: wgpu.GPUCommandEncoder,
        *,
        trials: int = 1,
        timing: TimingSession | None = None,
        **arrays: Unpack[_ByOffsetsArrays],
    ) -> dict[str, Array]: ...
    def execute(
        self, *, encoder: wgpu.GPUCommandEncoder | None = None, **call: Unpack[_ByOffsetsCall]
    ) -> Run[Array]: ...
    async def execute_async(self, **call: Unpack[_ByOffsetsCall]) -> Run[Array]: ...

class _CopyRangesArrays(TypedDict, total=False):
    source: Items | wgpu.GPUBuffer | None
    source_offsets: Array | wgpu.GPUBuffer | None
    destination_offsets: Array | wgpu.GPUBuffer | None
    lengths: Array | wgpu.GPUBuffer | None
    output: Items | wgpu.GPUBuffer | None

class _CopyRangesCall(_CopyRangesArrays, _Timed, total=False): ...

class CopyRangesCalls(Primitive):
    def bind(self, **arrays: Unpack[_CopyRangesArrays]) -> BoundCall[Items]: ...
    def record(
        self,
        encoder: wgpu.GPUCommandEncoder,
        *,
        trials: int = 1,
        timing: TimingSession | None = None,
        **arrays: Unpack[_CopyRangesArrays],
    ) -> dict[str, Items]: ...
    def execute(
        self, *, encoder: wgpu.GPUCommandEncoder | None = None, **call: Unpack[_CopyRangesCall]
    ) -> Run[Items]: ...
    async def execute_async(self, **call: Unpack[_CopyRangesCall]) -> Run[Items]: ...

class _FindIfArrays(TypedDict, total=False):
    input: Items | wgpu.GPUBuffer | None
    output: Array | wgpu.GPUBuffer | None
    n: int | Array | wgpu.GPUBuffer | None

class _FindIfCall(_FindIfArrays, _Timed, total=False): ...

class FindIfCalls(Primitive):
    def bind(self, **arrays: Unpack[_FindIfArrays]) -> BoundCall[Array]: ...
    def record(
        self,
        encoder: wgpu.GPUCommandEncoder,
        *,
        trials: int = 1,
        timing: TimingSession | None = None,
        **arrays: Unpack[_FindIfArrays],
    ) -> dict[str, Array]: ...
    def execute(self, *, encoder: wgpu.GPUCommandEncoder | None = None, **call: Unpack[_FindIfCall]) -> Run[Array]: ...
    async def execute_async(self, **call: Unpack[_FindIfCall]) -> Run[Array]: ...

class _HistogramArrays(TypedDict, total=False):
    input: Items | wgpu.GPUBuffer | None
    edges: Array | wgpu.GPUBuffer | None
    weights: Items | wgpu.GPUBuffer | None
    output: Array | wgpu.GPUBuffer | None
    n: int | Array | wgpu.GPUBuffer | None

class _HistogramCall(_HistogramArrays, _Timed, total=False): ...

class HistogramCalls(Primitive):
    def bind(self, **arrays: Unpack[_HistogramArrays]) -> BoundCall[Array]: ...
    def record(
        self,
        encoder: wgpu.GPUCommandEncoder,
        *,
        trials: int = 1,
        timing: TimingSession | None = None,
        **arrays: Unpack[_HistogramArrays],
    ) -> dict[str, Array]: ...
    def execute(
        self, *, encoder: wgpu.GPUCommandEncoder | None = None, **call: Unpack[_HistogramCall]
    ) -> Run[Array]: ...
    async def execute_async(self, **call: Unpack[_HistogramCall]) -> Run[Array]: ...

class _Histogram2DArrays(TypedDict, total=False):
    x: Items | wgpu.GPUBuffer | None
    y: Items | wgpu.GPUBuffer | None
    x_edges: Array | wgpu.GPUBuffer | None
    y_edges: Array | wgpu.GPUBuffer | None
    weights: Items | wgpu.GPUBuffer | None
    output: Array | wgpu.GPUBuffer | None
    n: int | Array | wgpu.GPUBuffer | None

class _Histogram2DCall(_Histogram2DArrays, _Timed, total=False): ...

class Histogram2DCalls(Primitive):
    def bind(self, **arrays: Unpack[_Histogram2DArrays]) -> BoundCall[Array]: ...
    def record(
        self,
        encoder: wgpu.GPUCommandEncoder,
        *,
        trials: int = 1,
        timing: TimingSession | None = None,
        **arrays: Unpack[_Histogram2DArrays],
    ) -> dict[str, Array]: ...
    def execute(
        self, *, encoder: wgpu.GPUCommandEncoder | None = None, **call: Unpack[_Histogram2DCall]
    ) -> Run[Array]: ...
    async def execute_async(self, **call: Unpack[_Histogram2DCall]) -> Run[Array]: ...

class _InputOutputArrays(TypedDict, Generic[ItemsT], total=False):
    input: ItemsT | wgpu.GPUBuffer | None
    output: ItemsT | wgpu.GPUBuffer | None
    n: int | Array | wgpu.GPUBuffer | None

class _InputOutputCall(_InputOutputArrays[ItemsT], _Timed, Generic[ItemsT], total=False): ...

class InputOutputCalls(Primitive):
    def bind(self, **arrays: Unpack[_InputOutputArrays[ItemsT]]) -> BoundCall[ItemsT]: ...
    def record(
        self,
        encoder: wgpu.GPUCommandEncoder,
        *,
        trials: int = 1,
        timing: TimingSession | None = None,
        **arrays: Unpack[_InputOutputArrays[ItemsT]],
    ) -> dict[str, ItemsT]: ...
    def execute(
        self, *, encoder: wgpu.GPUCommandEncoder | None = None, **call: Unpack[_InputOutputCall[ItemsT]]
    ) -> Run[ItemsT]: ...
    async def execute_async(self, **call: Unpack[_InputOutputCall[ItemsT]]) -> Run[ItemsT]: ...

class _MergeArrays(TypedDict, Generic[ItemsT], total=False):
    a: ItemsT | wgpu.GPUBuffer | None
    b: ItemsT | wgpu.GPUBuffer | None
    a_values: ItemsT | wgpu.GPUBuffer | None
    b_values: ItemsT | wgpu.GPUBuffer | None
    a_count: Array | wgpu.GPUBuffer | None
    b_count: Array | wgpu.GPUBuffer | None
    output: ItemsT | wgpu.GPUBuffer | None
    output_values: ItemsT | wgpu.GPUBuffer | None
    count: Array | wgpu.GPUBuffer | None

class _MergeCall(_MergeArrays[ItemsT], _Timed, Generic[ItemsT], total=False): ...

class MergeCalls(Primitive):
    def bind(self, **arrays: Unpack[_MergeArrays[ItemsT]]) -> BoundCall[ItemsT]: ...
    def record(
        self,
        encoder: wgpu.GPUCommandEncoder,
        *,
        trials: int = 1,
        timing: TimingSession | None = None,
        **arrays: Unpack[_MergeArrays[ItemsT]],
    ) -> dict[str, ItemsT]: ...
    def execute(
        self, *, encoder: wgpu.GPUCommandEncoder | None = None, **call: Unpack[_MergeCall[ItemsT]]
    ) -> Run[ItemsT]: ...
    async def execute_async(self, **call: Unpack[_MergeCall[ItemsT]]) -> Run[ItemsT]: ...

class _MergeSortArrays(TypedDict, Generic[ItemsT], total=False):
    input: ItemsT | wgpu.GPUBuffer | None
    values: ItemsT | wgpu.GPUBuffer | None
    output: ItemsT | wgpu.GPUBuffer | None
    output_values: ItemsT | wgpu.GPUBuffer | None
    n: int | Array | wgpu.GPUBuffer | None

class _MergeSortCall(_MergeSortArrays[ItemsT], _Timed, Generic[ItemsT], total=False): ...

class MergeSortCalls(Primitive):
    def bind(self, **arrays: Unpack[_MergeSortArrays[ItemsT]]) -> BoundCall[ItemsT]: ...
    def record(
        self,
        encoder: wgpu.GPUCommandEncoder,
        *,
        trials: int = 1,
        timing: TimingSession | None = None,
        **arrays: Unpack[_MergeSortArrays[ItemsT]],
    ) -> dict[str, ItemsT]: ...
    def execute(
        self, *, encoder: wgpu.GPUCommandEncoder | None = None, **call: Unpack[_MergeSortCall[ItemsT]]
    ) -> Run[ItemsT]: ...
    async def execute_async(self, **call: Unpack[_MergeSortCall[ItemsT]]) -> Run[ItemsT]: ...

class _NthElementArrays(TypedDict, total=False):
    input: Items | wgpu.GPUBuffer | None
    places: Array | wgpu.GPUBuffer | None
    values: Array | wgpu.GPUBuffer | None
    n: int | Array | wgpu.GPUBuffer | None

class _NthElementCall(_NthElementArrays, _Timed, total=False): ...

class NthElementCalls(Primitive):
    def bind(self, **arrays: Unpack[_NthElementArrays]) -> BoundCall[Array]: ...
    def record(
        self,
        encoder: wgpu.GPUCommandEncoder,
        *,
        trials: int = 1,
        timing: TimingSession | None = None,
        **arrays: Unpack[_NthElementArrays],
    ) -> dict[str, Array]: ...
    def execute(
        self, *, encoder: wgpu.GPUCommandEncoder | None = None, **call: Unpack[_NthElementCall]
    ) -> Run[Array]: ...
    async def execute_async(self, **call: Unpack[_NthElementCall]) -> Run[Array]: ...

class _PartitionArrays(TypedDict, total=False):
    input: Items | wgpu.GPUBuffer | None
    flags: Items | wgpu.GPUBuffer | None
    second_flags: Items | wgpu.GPUBuffer | None
    first: Array | wgpu.GPUBuffer | None
    second: Array | wgpu.GPUBuffer | None
    rest: Array | wgpu.GPUBuffer | None
    counts: Array | wgpu.GPUBuffer | None
    n: int | Array | wgpu.GPUBuffer | None

class _PartitionCall(_PartitionArrays, _Timed, total=False): ...

class PartitionCalls(Primitive):
    def bind(self, **arrays: Unpack[_PartitionArrays]) -> BoundCall[Array]: ...
    def record(
        self,
        encoder: wgpu.GPUCommandEncoder,
        *,
        trials: int = 1,
        timing: TimingSession | None = None,
        **arrays: Unpack[_PartitionArrays],
    ) -> dict[str, Array]: ...
    def execute(
        self, *, encoder: wgpu.GPUCommandEncoder | None = None, **call: Unpack[_PartitionCall]
    ) -> Run[Array]: ...
    async def execute_async(self, **call: Unpack[_PartitionCall]) -> Run[Array]: ...

class _ReduceArrays(TypedDict, total=False):
    input: Items | wgpu.GPUBuffer | None
    output: Array | wgpu.GPUBuffer | None
    n: int | Array | wgpu.GPUBuffer | None

class _ReduceCall(_ReduceArrays, _Timed, total=False): ...

class ReduceCalls(Primitive):
    def bind(self, **arrays: Unpack[_ReduceArrays]) -> BoundCall[Array]: ...
    def record(
        self,
        encoder: wgpu.GPUCommandEncoder,
        *,
        trials: int = 1,
        timing: TimingSession | None = None,
        **arrays: Unpack[_ReduceArrays],
    ) -> dict[str, Array]: ...
    def execute(self, *, encoder: wgpu.GPUCommandEncoder | None = None, **call: Unpack[_ReduceCall]) -> Run[Array]: ...
    async def execute_async(self, **call: Unpack[_ReduceCall]) -> Run[Array]: ...

class _ReduceByIndexArrays(TypedDict, total=False):
    indices: Items | wgpu.GPUBuffer | None
    items: Items | wgpu.GPUBuffer | None
    output: Array | wgpu.GPUBuffer | None
    n: int | Array | wgpu.GPUBuffer | None

class _ReduceByIndexCall(_ReduceByIndexArrays, _Timed, total=False): ...

class ReduceByIndexCalls(Primitive):
    def bind(self, **arrays: Unpack[_ReduceByIndexArrays]) -> BoundCall[Array]: ...
    def record(
        self,
        encoder: wgpu.GPUCommandEncoder,
        *,
        trials: int = 1,
        timing: TimingSession | None = None,
        **arrays: Unpack[_ReduceByIndexArrays],
    ) -> dict[str, Array]: ...
    def execute(
        self, *, encoder: wgpu.GPUCommandEncoder | None = None, **call: Unpack[_ReduceByIndexCall]
    ) -> Run[Array]: ...
    async def execute_async(self, **call: Unpack[_ReduceByIndexCall]) -> Run[Array]: ...

class _ReduceByKeyArrays(TypedDict, total=False):
    keys: Array | wgpu.GPUBuffer | None
    items: Array | wgpu.GPUBuffer | None
    output_keys: Array | wgpu.GPUBuffer | None
    output_values: Array | wgpu.GPUBuffer | None
    count: Array | wgpu.GPUBuffer | None
    n: int | Array | wgpu.GPUBuffer | None

class _ReduceByKeyCall(_ReduceByKeyArrays, _Timed, total=False): ...

class ReduceByKeyCalls(Primitive):
    def bind(self, **arrays: Unpack[_ReduceByKeyArrays]) -> BoundCall[Array]: ...
    def record(
        self,
        encoder: wgpu.GPUCommandEncoder,
        *,
        trials: int = 1,
        timing: TimingSession | None = None,
        **arrays: Unpack[_ReduceByKeyArrays],
    ) -> dict[str, Array]: ...
    def execute(
        self, *, encoder: wgpu.GPUCommandEncoder | None = None, **call: Unpack[_ReduceByKeyCall]
    ) -> Run[Array]: ...
    async def execute_async(self, **call: Unpack[_ReduceByKeyCall]) -> Run[Array]: ...

class _RepeatArrays(TypedDict, total=False):
    values: Array | wgpu.GPUBuffer | None
    counts: Array | wgpu.GPUBuffer | None
    offsets: Array | wgpu.GPUBuffer | None
    output: Array | wgpu.GPUBuffer | None
    count: Array | wgpu.GPUBuffer | None
    n: int | Array | wgpu.GPUBuffer | None

class _RepeatCall(_RepeatArrays, _Timed, total=False): ...

class RepeatCalls(Primitive):
    def bind(self, **arrays: Unpack[_RepeatArrays]) -> BoundCall[Array]: ...
    def record(
        self,
        encoder: wgpu.GPUCommandEncoder,
        *,
        trials: int = 1,
        timing: TimingSession | None = None,
        **arrays: Unpack[_RepeatArrays],
    ) -> dict[str, Array]: ...
    def execute(self, *, encoder: wgpu.GPUCommandEncoder | None = None, **call: Unpack[_RepeatCall]) -> Run[Array]: ...
    async def execute_async(self, **call: Unpack[_RepeatCall]) -> Run[Array]: ...

class _RunLengthArrays(TypedDict, total=False):
    keys: Items | wgpu.GPUBuffer | None
    values: Array | wgpu.GPUBuffer | None
    starts: Array | wgpu.GPUBuffer | None
    lengths: Array | wgpu.GPUBuffer | None
    count: Array | wgpu.GPUBuffer | None
    n: int | Array | wgpu.GPUBuffer | None

class _RunLengthCall(_RunLengthArrays, _Timed, total=False): ...

class RunLengthCalls(Primitive):
    def bind(self, **arrays: Unpack[_RunLengthArrays]) -> BoundCall[Array]: ...
    def record(
        self,
        encoder: wgpu.GPUCommandEncoder,
        *,
        trials: int = 1,
        timing: TimingSession | None = None,
        **arrays: Unpack[_RunLengthArrays],
    ) -> dict[str, Array]: ...
    def execute(
        self, *, encoder: wgpu.GPUCommandEncoder | None = None, **call: Unpack[_RunLengthCall]
    ) -> Run[Array]: ...
    async def execute_async(self, **call: Unpack[_RunLengthCall]) -> Run[Array]: ...

class _ScanArrays(TypedDict, Generic[ItemsT], total=False):
    input: ItemsT | wgpu.GPUBuffer | None
    initial: Array | wgpu.GPUBuffer | None
    output: ItemsT | wgpu.GPUBuffer | None
    n: int | Array | wgpu.GPUBuffer | None

class _ScanCall(_ScanArrays[ItemsT], _Timed, Generic[ItemsT], total=False): ...

class ScanCalls(Primitive):
    def bind(self, **arrays: Unpack[_ScanArrays[ItemsT]]) -> BoundCall[ItemsT]: ...
    def record(
        self,
        encoder: wgpu.GPUCommandEncoder,
        *,
        trials: int = 1,
        timing: TimingSession | None = None,
        **arrays: Unpack[_ScanArrays[ItemsT]],
    ) -> dict[str, ItemsT]: ...
    def execute(
        self, *, encoder: wgpu.GPUCommandEncoder | None = None, **call: Unpack[_ScanCall[ItemsT]]
    ) -> Run[ItemsT]: ...
    async def execute_async(self, **call: Unpack[_ScanCall[ItemsT]]) -> Run[ItemsT]: ...

class _ScanByKeyArrays(TypedDict, total=False):
    keys: Array | wgpu.GPUBuffer | None
    items: Array | wgpu.GPUBuffer | None
    output: Array | wgpu.GPUBuffer | None
    n: int | Array | wgpu.GPUBuffer | None

class _ScanByKeyCall(_ScanByKeyArrays, _Timed, total=False): ...

class ScanByKeyCalls(Primitive):
    def bind(self, **arrays: Unpack[_ScanByKeyArrays]) -> BoundCall[Array]: ...
    def record(
        self,
        encoder: wgpu.GPUCommandEncoder,
        *,
        trials: int = 1,
        timing: TimingSession | None = None,
        **arrays: Unpack[_ScanByKeyArrays],
    ) -> dict[str, Array]: ...
    def execute(
        self, *, encoder: wgpu.GPUCommandEncoder | None = None, **call: Unpack[_ScanByKeyCall]
    ) -> Run[Array]: ...
    async def execute_async(self, **call: Unpack[_ScanByKeyCall]) -> Run[Array]: ...

class _ScatterArrays(TypedDict, total=False):
    items: Array | wgpu.GPUBuffer | None
    indices: Array | wgpu.GPUBuffer | None
    output: Array | wgpu.GPUBuffer | None
    n: int | Array | wgpu.GPUBuffer | None

class _ScatterCall(_ScatterArrays, _Timed, total=False): ...

class ScatterCalls(Primitive):
    def bind(self, **arrays: Unpack[_ScatterArrays]) -> BoundCall[Array]: ...
    def record(
        self,
        encoder: wgpu.GPUCommandEncoder,
        *,
        trials: int = 1,
        timing: TimingSession | None = None,
        **arrays: Unpack[_ScatterArrays],
    ) -> dict[str, Array]: ...
    def execute(self, *, encoder: wgpu.GPUCommandEncoder | None = None, **call: Unpack[_ScatterCall]) -> Run[Array]: ...
    async def execute_async(self, **call: Unpack[_ScatterCall]) -> Run[Array]: ...

class _SearchArrays(TypedDict, Generic[ItemsT], total=False):
    sorted: Items | wgpu.GPUBuffer | None
    queries: ItemsT | wgpu.GPUBuffer | None
    sorter: Items | wgpu.GPUBuffer | None
    output: ItemsT | wgpu.GPUBuffer | None

class _SearchCall(_SearchArrays[ItemsT], _Timed, Generic[ItemsT], total=False): ...

class SearchCalls(Primitive):
    def bind(self, **arrays: Unpack[_SearchArrays[ItemsT]]) -> BoundCall[ItemsT]: ...
    def record(
        self,
        encoder: wgpu.GPUCommandEncoder,
        *,
        trials: int = 1,
        timing: TimingSession | None = None,
        **arrays: Unpack[_SearchArrays[ItemsT]],
    ) -> dict[str, ItemsT]: ...
    def execute(
        self, *, encoder: wgpu.GPUCommandEncoder | None = None, **call: Unpack[_SearchCall[ItemsT]]
    ) -> Run[ItemsT]: ...
    async def execute_async(self, **call: Unpack[_SearchCall[ItemsT]]) -> Run[ItemsT]: ...

class _SegmentedSortArrays(TypedDict, total=False):
    keys: Array | wgpu.GPUBuffer | None
    values: Array | wgpu.GPUBuffer | None
    offsets: Array | wgpu.GPUBuffer | None
    output_keys: Array | wgpu.GPUBuffer | None
    output_values: Array | wgpu.GPUBuffer | None
    n: int | Array | wgpu.GPUBuffer | None

class _SegmentedSortCall(_SegmentedSortArrays, _Timed, total=False): ...

class SegmentedSortCalls(Primitive):
    def bind(self, **arrays: Unpack[_SegmentedSortArrays]) -> BoundCall[Array]: ...
    def record(
        self,
        encoder: wgpu.GPUCommandEncoder,
        *,
        trials: int = 1,
        timing: TimingSession | None = None,
        **arrays: Unpack[_SegmentedSortArrays],
    ) -> dict[str, Array]: ...
    def execute(
        self, *, encoder: wgpu.GPUCommandEncoder | None = None, **call: Unpack[_SegmentedSortCall]
    ) -> Run[Array]: ...
    async def execute_async(self, **call: Unpack[_SegmentedSortCall]) -> Run[Array]: ...

class _SegmentedTopKArrays(TypedDict, total=False):
    input: Items | wgpu.GPUBuffer | None
    values: Array | wgpu.GPUBuffer | None
    indices: Array | wgpu.GPUBuffer | None
    offsets: Array | wgpu.GPUBuffer | None
    ks: Array | wgpu.GPUBuffer | None
    starts: Array | wgpu.GPUBuffer | None
    n: int | Array | wgpu.GPUBuffer | None

class _SegmentedTopKCall(_SegmentedTopKArrays, _Timed, total=False): ...

class SegmentedTopKCalls(Primitive):
    def bind(self, **arrays: Unpack[_SegmentedTopKArrays]) -> BoundCall[Array]: ...
    def record(
        self,
        encoder: wgpu.GPUCommandEncoder,
        *,
        trials: int = 1,
        timing: TimingSession | None = None,
        **arrays: Unpack[_SegmentedTopKArrays],
    ) -> dict[str, Array]: ...
    def execute(
        self, *, encoder: wgpu.GPUCommandEncoder | None = None, **call: Unpack[_SegmentedTopKCall]
    ) -> Run[Array]: ...
    async def execute_async(self, **call: Unpack[_SegmentedTopKCall]) -> Run[Array]: ...

class _SelectArrays(TypedDict, total=False):
    input: Items | wgpu.GPUBuffer | None
    flags: Items | wgpu.GPUBuffer | None
    output: Array | wgpu.GPUBuffer | None
    count: Array | wgpu.GPUBuffer | None
    n: int | Array | wgpu.GPUBuffer | None

class _SelectCall(_SelectArrays, _Timed, total=False): ...

class SelectCalls(Primitive):
    def bind(self, **arrays: Unpack[_SelectArrays]) -> BoundCall[Array]: ...
    def record(
        self,
        encoder: wgpu.GPUCommandEncoder,
        *,
        trials: int = 1,
        timing: TimingSession | None = None,
        **arrays: Unpack[_SelectArrays],
    ) -> dict[str, Array]: ...
    def execute(self, *, encoder: wgpu.GPUCommandEncoder | None = None, **call: Unpack[_SelectCall]) -> Run[Array]: ...
    async def execute_async(self, **call: Unpack[_SelectCall]) -> Run[Array]: ...

class _SortPairsArrays(TypedDict, Generic[ItemsT], total=False):
    keys: ItemsT | wgpu.GPUBuffer | None
    values: ItemsT | wgpu.GPUBuffer | None
    output_keys: ItemsT | wgpu.GPUBuffer | None
    output_values: ItemsT | wgpu.GPUBuffer | None
    n: int | Array | wgpu.GPUBuffer | None

class _SortPairsCall(_SortPairsArrays[ItemsT], _Timed, Generic[ItemsT], total=False): ...

class SortPairsCalls(Primitive):
    def bind(self, **arrays: Unpack[_SortPairsArrays[ItemsT]]) -> BoundCall[ItemsT]: ...
    def record(
        self,
        encoder: wgpu.GPUCommandEncoder,
        *,
        trials: int = 1,
        timing: TimingSession | None = None,
        **arrays: Unpack[_SortPairsArrays[ItemsT]],
    ) -> dict[str, ItemsT]: ...
    def execute(
        self, *, encoder: wgpu.GPUCommandEncoder | None = None, **call: Unpack[_SortPairsCall[ItemsT]]
    ) -> Run[ItemsT]: ...
    async def execute_async(self, **call: Unpack[_SortPairsCall[ItemsT]]) -> Run[ItemsT]: ...

class _TopKArrays(TypedDict, total=False):
    input: Items | wgpu.GPUBuffer | None
    values: Array | wgpu.GPUBuffer | None
    indices: Array | wgpu.GPUBuffer | None
    n: int | Array | wgpu.GPUBuffer | None

class _TopKCall(_TopKArrays, _Timed, total=False): ...

class TopKCalls(Primitive):
    def bind(self, **arrays: Unpack[_TopKArrays]) -> BoundCall[Array]: ...
    def record(
        self,
        encoder: wgpu.GPUCommandEncoder,
        *,
        trials: int = 1,
        timing: TimingSession | None = None,
        **arrays: Unpack[_TopKArrays],
    ) -> dict[str, Array]: ...
    def execute(self, *, encoder: wgpu.GPUCommandEncoder | None = None, **call: Unpack[_TopKCall]) -> Run[Array]: ...
    async def execute_async(self, **call: Unpack[_TopKCall]) -> Run[Array]: ...

class _TwoInputsArrays(TypedDict, Generic[ItemsT], total=False):
    a: ItemsT | wgpu.GPUBuffer | None
    b: ItemsT | wgpu.GPUBuffer | None
    output: ItemsT | wgpu.GPUBuffer | None
    n: int | Array | wgpu.GPUBuffer | None

class _TwoInputsCall(_TwoInputsArrays[ItemsT], _Timed, Generic[ItemsT], total=False): ...

class TwoInputsCalls(Primitive):
    def bind(self, **arrays: Unpack[_TwoInputsArrays[ItemsT]]) -> BoundCall[ItemsT]: ...
    def record(
        self,
        encoder: wgpu.GPUCommandEncoder,
        *,
        trials: int = 1,
        timing: TimingSession | None = None,
        **arrays: Unpack[_TwoInputsArrays[ItemsT]],
    ) -> dict[str, ItemsT]: ...
    def execute(
        self, *, encoder: wgpu.GPUCommandEncoder | None = None, **call: Unpack[_TwoInputsCall[ItemsT]]
    ) -> Run[ItemsT]: ...
    async def execute_async(self, **call: Unpack[_TwoInputsCall[ItemsT]]) -> Run[ItemsT]: ...

class _UniqueArrays(TypedDict, total=False):
    keys: Items | wgpu.GPUBuffer | None
    values: Items | wgpu.GPUBuffer | None
    output: Array | wgpu.GPUBuffer | None
    output_keys: Array | wgpu.GPUBuffer | None
    output_values: Array | wgpu.GPUBuffer | None
    count: Array | wgpu.GPUBuffer | None
    n: int | Array | wgpu.GPUBuffer | None

class _UniqueCall(_UniqueArrays, _Timed, total=False): ...

class UniqueCalls(Primitive):
    def bind(self, **arrays: Unpack[_UniqueArrays]) -> BoundCall[Array]: ...
    def record(
        self,
        encoder: wgpu.GPUCommandEncoder,
        *,
        trials: int = 1,
        timing: TimingSession | None = None,
        **arrays: Unpack[_UniqueArrays],
    ) -> dict[str, Array]: ...
    def execute(self, *, encoder: wgpu.GPUCommandEncoder | None = None, **call: Unpack[_UniqueCall]) -> Run[Array]: ...
    async def execute_async(self, **call: Unpack[_UniqueCall]) -> Run[Array]: ...
