"""Histogram: how many items are in each bin."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from math import prod
from typing import Any, cast

import numpy as np
import wgpu

from ..call_errors import explained
from ..errors import ArgumentError, DatatypeError
from ..planning.signature import Argument, SameAs
from ..tuning.options import HistogramTuning
from ..types.capabilities import Capabilities
from ..types.datatype import STORAGE_DATATYPES, Datatype, ItemDatatypeLike
from ..types.expression import Operators
from ..types.operators import Add, BinOp
from ..types.options import integer
from .binned import Axis, BinnedPrimitive, BinStrategy, bins_of, edges_argument
from .calls import Histogram2DCalls, HistogramCalls
from .registry import register

_MOST_CHANNELS = 16


class _Histogram(BinnedPrimitive):
    """Base of histograms of one argument, and of two."""

    _label = "histogram"
    #: The arguments whose items are told apart.
    _told: tuple[str, ...]

    def _set_up(
        self, dtype: Any, bins: tuple[int, ...], ranges: tuple[Any, ...], edges: bool, weights: Any, closed: bool
    ) -> None:
        """Take the arguments; `ranges` has None where the default or edges are taken."""
        given: tuple[Any, ...] = cast(Any, dtype) if isinstance(dtype, tuple) else (dtype,) * len(self._told)
        kinds = [self._taken(name, each, STORAGE_DATATYPES) for name, each in zip(self._told, given, strict=True)]
        #: Of the items.
        self.datatype: Datatype = kinds[0][0]
        self._key_datatype = kinds[0][1]
        if any(read_as != self._key_datatype for _, read_as in kinds):
            raise DatatypeError(f"{self.name}: x is of {kinds[0][0]}, but y of {kinds[1][0]}; convert one of the two")
        if weights is not None:
            _, self.result_datatype = self._taken("weights", weights, STORAGE_DATATYPES)
            self._values = "weights"
            self.op: BinOp = Add  # for checks; counts are exact
        axes: list[Axis] = []
        for name, (own, read_as), count, each in zip(self._told, kinds, bins, ranges, strict=True):
            if edges:
                axes.append(Axis(name, "edges", count))
                continue
            low, high = _default_range(own) if each is None else _checked_range(self.name, each)
            axes.append(Axis.of_range(name, own.dtype, read_as, count, low, high, closed=closed))
        self.axes = tuple(axes)
        self._takes_edges: bool = edges
        self._finish()

    def _arguments(self) -> tuple[Argument, ...]:
        kept = {edges_argument(name) for name in self._told} if self._takes_edges else set[str]()
        names = {*self._told, "output", *kept, *([] if self._values is None else ["weights"])}
        return tuple(self._with_length(each) for each in self.arguments if each.name in names)

    def _with_length(self, argument: Argument) -> Argument:
        """Return an argument with what this histogram knows of it."""
        if argument.is_output:
            return replace(argument, datatype=self.result_datatype, length=self.bins)
        for axis in self.axes:
            if argument.name == edges_argument(axis.argument):
                return replace(argument, datatype=self._key_datatype, length=axis.bins + 1)
        return argument

    def _twin(self, items: tuple[np.ndarray, ...], edges: tuple[Any, ...], weights: Any) -> np.ndarray:
        """Return numpy's result."""
        places = np.zeros(items[0].size, dtype=np.int64)
        for axis, each, own in zip(self.axes, items, edges, strict=True):
            found = bins_of(axis, each.ravel().astype(self._key_datatype.dtype), own)
            places = np.where((places < 0) | (found < 0), -1, places * axis.bins + found)
        if self.channels > 1:
            channel = np.arange(places.size) % self.channels
            places = np.where(places < 0, -1, places + channel * self.axes[0].bins)
        valid = places >= 0
        dtype = self.result_datatype.dtype
        if weights is None:
            return np.bincount(places[valid], minlength=self.bins).astype(dtype)
        sums = np.zeros(self.bins, dtype=np.float64 if dtype.kind == "f" else dtype)
        np.add.at(sums, places[valid], weights.ravel()[valid].astype(sums.dtype))
        return sums.astype(dtype)


@register("histogram")
class Histogram(HistogramCalls, _Histogram):
    """Count the items in each bin, or add their weights: numpy's ``histogram``.

    Items outside and NaN are in no bin.

    Parameters
    ----------
    device : wgpu.GPUDevice
    dtype : Datatype, str, numpy dtype or Expression, default "u32"
        Of the items: bool or numbers; those of 64 bits take `edges` or a range.
    bins : int, default 256
        How many, for each channel.
    range : tuple of two numbers, optional
        Begin of the first bin and end of the last. By default all values of integers, and 0 to 1 for floats.
    edges : bool, default False
        Whether `execute` takes ``edges``: ``bins + 1``, which ascend.
    weights : Datatype, str, numpy dtype or Expression, optional
        Of ``weights``, if `execute` takes them: of up to 32 bits. Results have 32 bits.
    closed : bool, default True
        Whether the last bin has its upper end.
    channels : int, default 1
        Up to 16, each with its own bins: item i is of channel ``i % channels``.
    strategy : {"auto", "tables", "sort"}, default "auto"
        ``"tables"`` combines items in workgroup memory, ``"sort"`` sorts them by bins, which is faster for many bins,
        and the only way for results of 64 bits and for a fixed order.
    deterministic : bool, default False
        For floats: the same bits on every run, as for `ReduceByKey`, by a sort that keeps the order of the items.
    tuning : HistogramTuning, optional
        Options that affect only the speed. By default the library's, or those from ``gridwise tune``.
    capabilities : Capabilities, optional
        The capabilities to plan for, with None as device. By default those measured on the device.

    See Also
    --------
    execute : takes ``input``, of any shape, ``edges``, ``weights``, and ``output``, shape (channels · bins,), u32 or as
        the weights.
    ReduceByIndex : the items are the bins.
    histogram : the function.

    Notes
    -----
    Items are read once, or, beyond what workgroup memory holds (some 12,000 bins where a workgroup may have 48 KiB,
    4,000 with 16 KiB), once for each part of the bins. Nothing depends on timing but the order in which float weights
    are added. Counts are modulo 2³², which fewer than 2³² items cannot reach; integer weights wrap.

    The bin of an item is decided by comparisons with the edges, so it is exact, also where the width of a bin rounds.

    Examples
    --------
    >>> import numpy as np, gridwise_py as gw
    >>> device = gw.request_device()
    >>> x = gw.asarray(np.array([0, 1, 1, 5, 8, 9], dtype=np.uint32), device)
    >>> gw.Histogram(device, "u32", 4, range=(0, 8)).execute(input=x).output.to_numpy()
    array([3, 0, 1, 1], dtype=uint32)
    """

    arguments = (
        Argument("input", chunked=True, any_shape=True),
        Argument("edges", is_apart=True),
        Argument("weights", datatype="result_datatype", length=SameAs("input"), chunked=True, any_shape=True),
        Argument("output", is_output=True),
    )
    _told = ("input",)

    @explained(HistogramTuning.remedies())
    def __init__(
        self,
        device: wgpu.GPUDevice | None,
        dtype: ItemDatatypeLike | Operators = "u32",
        bins: int = 256,
        *,
        range: tuple[float, float] | None = None,
        edges: bool = False,
        weights: ItemDatatypeLike | Operators | None = None,
        closed: bool = True,
        channels: int = 1,
        strategy: BinStrategy = "auto",
        deterministic: bool = False,
        tuning: HistogramTuning | None = None,
        capabilities: Capabilities | None = None,
    ):
        super().__init__(
            device, strategy=strategy, deterministic=deterministic, tuning=tuning, capabilities=capabilities
        )
        self.channels = integer("channels", channels, 1)
        if self.channels > _MOST_CHANNELS:
            raise ArgumentError(f"channels={channels} must be at most {_MOST_CHANNELS}")
        if edges and range is not None:
            raise ArgumentError("Histogram: range= together with edges=True, which say both where bins begin")
        self._set_up(dtype, (integer("bins", bins, 1),), (range,), bool(edges), weights, bool(closed))

    @classmethod
    def at_size(cls, n: int, bins: int = 256, **axes: Any) -> tuple[dict[str, Any], dict[str, int]]:
        """Return the constructor's options for a benchmark of size n, and the lengths of the inputs."""
        return {"bins": bins}, {"input": n}

    def _reference(
        self, input: np.ndarray, edges: np.ndarray | None = None, weights: np.ndarray | None = None
    ) -> np.ndarray:
        """Return numpy's result for the same input."""
        return self._twin((input,), (edges,), weights)


class Histogram2D(Histogram2DCalls, _Histogram):
    """Count pairs of items by bins of both, or add their weights: numpy's ``histogram2d``.

    Parameters
    ----------
    device : wgpu.GPUDevice
    dtype : dtype, Expression, or a tuple of two, default "f32"
        Of ``x`` and ``y``, which are of one datatype.
    bins : int or tuple of two, default 16
        Of ``x`` and of ``y``.
    range : tuple of two tuples of two numbers, optional
        Of ``x`` and of ``y``.
    edges : bool, default False
        Whether `execute` takes ``x_edges`` and ``y_edges``.
    weights, closed, tuning, capabilities
        As for `Histogram`.

    See Also
    --------
    execute : takes ``x`` and ``y``, shape (n,) each, ``x_edges``, ``y_edges`` and ``weights``; gives ``output``, row by
        row: ``output.reshape(bins)``.
    """

    arguments = (
        Argument("x", chunked=True, any_shape=True),
        Argument("y", length=SameAs("x"), chunked=True, any_shape=True),
        Argument("x_edges", is_apart=True),
        Argument("y_edges", is_apart=True),
        Argument("weights", datatype="result_datatype", length=SameAs("x"), chunked=True, any_shape=True),
        Argument("output", is_output=True),
    )
    _told = ("x", "y")

    @explained(HistogramTuning.remedies())
    def __init__(
        self,
        device: wgpu.GPUDevice | None,
        dtype: Any = "f32",
        bins: int | tuple[int, int] = 16,
        *,
        range: tuple[tuple[float, float], tuple[float, float]] | None = None,
        edges: bool = False,
        weights: ItemDatatypeLike | Operators | None = None,
        closed: bool = True,
        strategy: BinStrategy = "auto",
        deterministic: bool = False,
        tuning: HistogramTuning | None = None,
        capabilities: Capabilities | None = None,
    ):
        super().__init__(
            device, strategy=strategy, deterministic=deterministic, tuning=tuning, capabilities=capabilities
        )
        counts = tuple(integer("bins", each, 1) for each in (bins if isinstance(bins, tuple) else (bins, bins)))
        if len(counts) != 2:
            raise ArgumentError(f"Histogram2D: bins={bins!r}, but must be a number or two")
        if edges and range is not None:
            raise ArgumentError("Histogram2D: range= together with edges=True, which say both where bins begin")
        ranges = (None, None) if range is None else tuple(range)
        if len(ranges) != 2:
            raise ArgumentError(f"Histogram2D: range={range!r}, but must be a pair of pairs")
        self._set_up(dtype, counts, ranges, bool(edges), weights, bool(closed))

    @property
    def shape(self) -> tuple[int, int]:
        """The bins of ``x`` and of ``y``."""
        x, y = self.axes
        assert prod((x.bins, y.bins)) == self.bins
        return x.bins, y.bins

    def _reference(
        self, x: np.ndarray, y: np.ndarray, x_edges: np.ndarray | None = None, y_edges: np.ndarray | None = None,
        weights: np.ndarray | None = None,
    ) -> np.ndarray:  # fmt: skip
        """Return numpy's result for the same input, shape (bins of x · bins of y,)."""
        return self._twin((x, y), (x_edges, y_edges), weights)


@dataclass(frozen=True)
class EvenRange:
    """A range as a key: 0.0 and a float32 of 0 are equal, but the edges that numpy makes of them are not."""

    ends: tuple[Any, Any]
    types: tuple[type, type]

    @classmethod
    def of(cls, low: Any, high: Any) -> EvenRange:
        """Return it of two numbers."""
        return cls((low, high), (low.__class__, high.__class__))


def _default_range(datatype: Datatype) -> tuple[float, float]:
    """Return all values of integers, and 0 to 1 for floats."""
    if datatype.dtype.kind == "f":
        return 0.0, 1.0
    return int(datatype.lowest), int(datatype.highest) + 1


def _checked_range(name: str, given: Any) -> tuple[Any, Any]:
    try:
        low, high = given.ends if isinstance(given, EvenRange) else tuple(given)
        finite = math.isfinite(low) and math.isfinite(high)
    except TypeError as error:
        raise DatatypeError(f"{name}: range={given!r}, but must be two numbers ({error})") from error
    except ValueError as error:
        raise ArgumentError(f"{name}: range={given!r}, but must be two numbers ({error})") from error
    if not finite or not low < high:
        raise ArgumentError(f"{name}: range=({low}, {high}) must be two finite numbers, the first one below the second")
    return low, high
