"""Signatures of functions whose result has a type of its own for each kind of input, for type checkers and editors.

A family of functions has one Protocol, whose overloads have only what the result depends on; all else is a TypedDict.
`typed_as` gives it to a function, which stays itself: `help()` and the site show its own signature.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, Protocol, TypeAlias, TypedDict, TypeVar, Unpack, cast, overload

import numpy as np
import wgpu
from numpy.typing import NDArray

from ..primitives.engines.merge_order import Less
from ..primitives.scan import ScanKind
from ..runtime.array import Array
from ..runtime.chunked_array import Items, ItemsT
from ..types.datatype import ItemDatatypeLike
from ..types.expression import Expression
from ..types.operators import BinOpLike
from .arguments import HostItems

# Signatures are read in rows.
# fmt: off

#: What numpy calls ways to sort, all of which are one here.
SortKind: TypeAlias = Literal["quicksort", "heapsort", "mergesort", "stable"]
#: The axes that a reduction combines items along; None means all.
AxisLike: TypeAlias = int | Sequence[int] | None
#: What is combined in front of all items.
Initial: TypeAlias = complex | np.generic | tuple[Any, ...] | NDArray[Any] | Array
#: Which items count.
Where: TypeAlias = bool | HostItems | Array | Expression
SecondT = TypeVar("SecondT", bound=np.generic)
OutT = TypeVar("OutT", bound=np.ndarray)
ScalarT = TypeVar("ScalarT", bound=np.number[Any])
FloatT = TypeVar("FloatT", bound=np.floating[Any])
ProtocolT = TypeVar("ProtocolT")


def typed_as(_kind: type[ProtocolT]) -> Callable[[Callable[..., Any]], ProtocolT]:
    """Give a function the signatures of a Protocol, for type checkers; it stays itself."""

    def decorate(function: Callable[..., Any]) -> ProtocolT:
        return cast(ProtocolT, function)

    return decorate


# ---- reductions


class _Options(TypedDict, total=False):
    """What has no place among numpy's first arguments, or is seldom given there."""

    initial: Initial | None
    where: Where
    device: wgpu.GPUDevice | None


class _SumOptions(_Options, total=False):
    deterministic: bool
    compensated: bool


class _ReduceOptions(_SumOptions, total=False):
    dtype: ItemDatatypeLike | None


class _ExtremeOptions(_Options, total=False):
    dtype: ItemDatatypeLike | None


class ReduceCall(Protocol):
    """`reduce`."""

    @overload
    def __call__(
        self, x: Items, op: BinOpLike = ..., *, axis: AxisLike = ..., keepdims: bool = ..., out: Array | None = ...,
        **options: Unpack[_ReduceOptions]
    ) -> Array: ...
    @overload
    def __call__(  # pyright: ignore[reportOverlappingOverload]  # HostItems has structured arrays, too
        self, x: NDArray[np.void], op: BinOpLike = ..., *, axis: None = ..., keepdims: Literal[False] = ...,
        out: None = ..., **options: Unpack[_SumOptions]
    ) -> np.void: ...
    @overload
    def __call__(
        self, x: NDArray[ScalarT], op: BinOpLike = ..., *, axis: None = ..., keepdims: Literal[False] = ...,
        out: None = ..., **options: Unpack[_SumOptions]
    ) -> ScalarT: ...
    @overload
    def __call__(
        self, x: HostItems, op: BinOpLike = ..., *, axis: None = ..., keepdims: Literal[False] = ..., out: None = ...,
        **options: Unpack[_ReduceOptions]
    ) -> np.number[Any]: ...
    @overload
    def __call__(
        self, x: HostItems, op: BinOpLike = ..., *, axis: int | Sequence[int], keepdims: bool = ..., out: None = ...,
        **options: Unpack[_ReduceOptions]
    ) -> NDArray[Any]: ...
    @overload
    def __call__(
        self, x: HostItems, op: BinOpLike = ..., *, axis: None = ..., keepdims: Literal[True], out: None = ...,
        **options: Unpack[_ReduceOptions]
    ) -> NDArray[Any]: ...
    @overload
    def __call__(
        self, x: HostItems, op: BinOpLike = ..., *, axis: AxisLike = ..., keepdims: bool = ..., out: OutT,
        **options: Unpack[_ReduceOptions]
    ) -> OutT: ...


class SumCall(Protocol):
    """`sum` and `prod`."""

    @overload
    def __call__(
        self, x: Items, axis: AxisLike = ..., dtype: ItemDatatypeLike | None = ..., out: Array | None = ...,
        keepdims: bool = ..., **options: Unpack[_SumOptions]
    ) -> Array: ...
    @overload
    def __call__(
        self, x: NDArray[FloatT], axis: None = ..., dtype: None = ..., out: None = ...,
        keepdims: Literal[False] = ..., **options: Unpack[_SumOptions]
    ) -> FloatT: ...
    @overload
    def __call__(
        self, x: HostItems, axis: None = ..., dtype: ItemDatatypeLike | None = ..., out: None = ...,
        keepdims: Literal[False] = ..., **options: Unpack[_SumOptions]
    ) -> np.number[Any]: ...
    @overload
    def __call__(
        self, x: HostItems, axis: int | Sequence[int], dtype: ItemDatatypeLike | None = ..., out: None = ...,
        keepdims: bool = ..., **options: Unpack[_SumOptions]
    ) -> NDArray[Any]: ...
    @overload
    def __call__(
        self, x: HostItems, axis: None = ..., dtype: ItemDatatypeLike | None = ..., out: None = ..., *,
        keepdims: Literal[True], **options: Unpack[_SumOptions]
    ) -> NDArray[Any]: ...
    @overload
    def __call__(
        self, x: HostItems, axis: AxisLike, dtype: ItemDatatypeLike | None, out: OutT, keepdims: bool = ...,
        **options: Unpack[_SumOptions]
    ) -> OutT: ...
    @overload
    def __call__(
        self, x: HostItems, axis: AxisLike = ..., dtype: ItemDatatypeLike | None = ..., *, out: OutT,
        keepdims: bool = ..., **options: Unpack[_SumOptions]
    ) -> OutT: ...


class ExtremeCall(Protocol):
    """`min` and `max`."""

    @overload
    def __call__(
        self, x: Items, axis: AxisLike = ..., out: Array | None = ..., keepdims: bool = ...,
        **options: Unpack[_ExtremeOptions]
    ) -> Array: ...
    @overload
    def __call__(
        self, x: NDArray[ScalarT], axis: None = ..., out: None = ..., keepdims: Literal[False] = ...,
        **options: Unpack[_Options]
    ) -> ScalarT: ...
    @overload
    def __call__(
        self, x: HostItems, axis: None = ..., out: None = ..., keepdims: Literal[False] = ...,
        **options: Unpack[_ExtremeOptions]
    ) -> np.number[Any]: ...
    @overload
    def __call__(
        self, x: HostItems, axis: int | Sequence[int], out: None = ..., keepdims: bool = ...,
        **options: Unpack[_ExtremeOptions]
    ) -> NDArray[Any]: ...
    @overload
    def __call__(
        self, x: HostItems, axis: None = ..., out: None = ..., *, keepdims: Literal[True],
        **options: Unpack[_ExtremeOptions]
    ) -> NDArray[Any]: ...
    @overload
    def __call__(
        self, x: HostItems, axis: AxisLike, out: OutT, keepdims: bool = ..., **options: Unpack[_ExtremeOptions]
    ) -> OutT: ...
    @overload
    def __call__(
        self, x: HostItems, axis: AxisLike = ..., *, out: OutT, keepdims: bool = ...,
        **options: Unpack[_ExtremeOptions]
    ) -> OutT: ...


# ---- scans


class _SumScanOptions(TypedDict, total=False):
    deterministic: bool
    compensated: bool
    device: wgpu.GPUDevice | None


class _InitialScanOptions(_SumScanOptions, total=False):
    initial: Initial | None


class _CumulativeOptions(TypedDict, total=False):
    axis: int | None
    dtype: ItemDatatypeLike | None
    include_initial: bool
    device: wgpu.GPUDevice | None


class ScanCall(Protocol):
    """`scan`."""

    @overload
    def __call__(
        self, x: ItemsT, op: BinOpLike = ..., kind: ScanKind = ..., *, dtype: ItemDatatypeLike | None = ...,
        out: ItemsT | None = ..., **options: Unpack[_InitialScanOptions]
    ) -> ItemsT: ...
    @overload
    def __call__(
        self, x: NDArray[ScalarT], op: BinOpLike = ..., kind: ScanKind = ..., *, dtype: None = ...,
        out: NDArray[ScalarT] | None = ..., **options: Unpack[_InitialScanOptions]
    ) -> NDArray[ScalarT]: ...
    @overload
    def __call__(
        self, x: HostItems, op: BinOpLike = ..., kind: ScanKind = ..., *, dtype: ItemDatatypeLike | None = ...,
        out: NDArray[Any] | None = ..., **options: Unpack[_InitialScanOptions]
    ) -> NDArray[Any]: ...


class CumSumCall(Protocol):
    """`cumsum` and `cumprod`."""

    @overload
    def __call__(
        self, x: ItemsT, axis: int | None = ..., dtype: ItemDatatypeLike | None = ..., out: ItemsT | None = ...,
        **options: Unpack[_SumScanOptions]
    ) -> ItemsT: ...
    @overload
    def __call__(
        self, x: NDArray[FloatT], axis: int | None = ..., dtype: None = ..., out: NDArray[FloatT] | None = ...,
        **options: Unpack[_SumScanOptions]
    ) -> NDArray[FloatT]: ...
    @overload
    def __call__(
        self, x: HostItems, axis: int | None = ..., dtype: ItemDatatypeLike | None = ...,
        out: NDArray[Any] | None = ..., **options: Unpack[_SumScanOptions]
    ) -> NDArray[Any]: ...


class CumulativeCall(Protocol):
    """`cumulative_sum` and `cumulative_prod`."""

    @overload
    def __call__(self, x: ItemsT, *, out: ItemsT | None = ..., **options: Unpack[_CumulativeOptions]) -> ItemsT: ...
    @overload
    def __call__(
        self, x: HostItems, *, out: NDArray[Any] | None = ..., **options: Unpack[_CumulativeOptions]
    ) -> NDArray[Any]: ...


# ---- sorts


class _PairsOptions(TypedDict, total=False):
    descending: bool
    device: wgpu.GPUDevice | None


class _ArgSortOptions(_PairsOptions, total=False):
    stable: bool | None


class _SortOptions(_ArgSortOptions, total=False):
    less: Less | None


class SortCall(Protocol):
    """`sort`."""

    @overload
    def __call__(
        self, x: ItemsT, axis: int | None = ..., kind: SortKind | None = ..., order: None = ..., *,
        out: ItemsT | None = ..., **options: Unpack[_SortOptions]
    ) -> ItemsT: ...
    @overload
    def __call__(
        self, x: NDArray[ScalarT], axis: int | None = ..., kind: SortKind | None = ..., order: None = ..., *,
        out: NDArray[ScalarT] | None = ..., **options: Unpack[_SortOptions]
    ) -> NDArray[ScalarT]: ...
    @overload
    def __call__(
        self, x: HostItems, axis: int | None = ..., kind: SortKind | None = ..., order: None = ..., *,
        out: NDArray[Any] | None = ..., **options: Unpack[_SortOptions]
    ) -> NDArray[Any]: ...


class ArgSortCall(Protocol):
    """`argsort`."""

    @overload
    def __call__(
        self, x: ItemsT, axis: int | None = ..., kind: SortKind | None = ..., order: None = ..., *,
        out: ItemsT | None = ..., **options: Unpack[_ArgSortOptions]
    ) -> ItemsT: ...
    @overload
    def __call__(
        self, x: HostItems | float, axis: int | None = ..., kind: SortKind | None = ..., order: None = ..., *,
        out: NDArray[np.intp] | None = ..., **options: Unpack[_ArgSortOptions]
    ) -> NDArray[np.intp]: ...


class SortPairsCall(Protocol):
    """`sort_pairs`."""

    @overload
    def __call__(
        self, keys: ItemsT, values: ItemsT | HostItems, *, out: tuple[ItemsT, ItemsT] | None = ...,
        **options: Unpack[_PairsOptions]
    ) -> tuple[ItemsT, ItemsT]: ...
    @overload
    def __call__(
        self, keys: HostItems, values: ItemsT, *, out: tuple[ItemsT, ItemsT] | None = ...,
        **options: Unpack[_PairsOptions]
    ) -> tuple[ItemsT, ItemsT]: ...
    @overload
    def __call__(
        self, keys: NDArray[ScalarT], values: NDArray[SecondT], *,
        out: tuple[NDArray[ScalarT], NDArray[SecondT]] | None = ..., **options: Unpack[_PairsOptions]
    ) -> tuple[NDArray[ScalarT], NDArray[SecondT]]: ...
    @overload
    def __call__(
        self, keys: HostItems, values: HostItems, *, out: tuple[NDArray[Any], NDArray[Any]] | None = ...,
        **options: Unpack[_PairsOptions]
    ) -> tuple[NDArray[Any], NDArray[Any]]: ...


# ---- sums and products of arrays


class _MatMulOptions(TypedDict, total=False):
    m: int | None
    n: int | None
    k: int | None
    device: wgpu.GPUDevice | None


class AddCall(Protocol):
    """`add`."""

    @overload
    def __call__(
        self, a: ItemsT, b: ItemsT | HostItems, out: ItemsT | None = ..., *, device: wgpu.GPUDevice | None = ...
    ) -> ItemsT: ...
    @overload
    def __call__(
        self, a: HostItems, b: ItemsT, out: ItemsT | None = ..., *, device: wgpu.GPUDevice | None = ...
    ) -> ItemsT: ...
    @overload
    def __call__(
        self, a: NDArray[ScalarT], b: HostItems, out: NDArray[ScalarT] | None = ..., *,
        device: wgpu.GPUDevice | None = ...
    ) -> NDArray[ScalarT]: ...
    @overload
    def __call__(
        self, a: HostItems, b: HostItems, out: NDArray[Any] | None = ..., *, device: wgpu.GPUDevice | None = ...
    ) -> NDArray[Any]: ...


class MatMulCall(Protocol):
    """`matmul`."""

    @overload
    def __call__(
        self, a: ItemsT, b: ItemsT | HostItems, out: ItemsT | None = ..., **options: Unpack[_MatMulOptions]
    ) -> ItemsT: ...
    @overload
    def __call__(
        self, a: HostItems, b: ItemsT, out: ItemsT | None = ..., **options: Unpack[_MatMulOptions]
    ) -> ItemsT: ...
    @overload
    def __call__(
        self, a: HostItems, b: HostItems, out: NDArray[Any] | None = ..., **options: Unpack[_MatMulOptions]
    ) -> Any: ...  # two vectors give a number, as in numpy
