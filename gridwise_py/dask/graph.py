"""One graph of tasks per call, with a layer per step. Layers of steps that need a GPU have the resource for it.

Steps that need a GPU and steps on the host take turns, so they cannot share two layers: these would depend on each
other. Keys of tasks are ``(layer, …)``, so a task's arguments say which layers its own depends on.
"""

# Dask's annotations leave many types open:
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeAlias

import dask.array as da
import numpy as np
from dask.base import tokenize
from dask.core import flatten
from dask.delayed import Delayed
from dask.highlevelgraph import HighLevelGraph, MaterializedLayer

from .worker import RESOURCE, run_on_gpu

Key: TypeAlias = "tuple[Any, ...]"
#: Chunks whose results one task combines.
TREE_WIDTH = 16


def blocks(x: da.Array) -> list[Key]:
    """Return the keys of the chunks of an array of one dimension."""
    keys: Any = flatten(x.__dask_keys__())
    return list(keys)


def _layers(x: Any) -> Iterable[str]:
    return x.__dask_layers__()


@dataclass
class _Layer:
    on_gpu: bool
    tasks: dict[Key, Any] = field(default_factory=dict)
    dependencies: set[str] = field(default_factory=set)


class Graph:
    """A graph that is being built on top of those of dask arrays.

    Parameters
    ----------
    name : str
        Of the function that builds it; keys begin with it.
    inputs : sequence of dask.array.Array
    options : object
        What else the result depends on. Equal inputs and options give equal keys.
    """

    def __init__(self, name: str, inputs: Sequence[da.Array], *options: Any):
        self._inputs = inputs
        self._token = tokenize(name, [x.name for x in inputs], *options)
        self._name = f"gridwise-{name}"
        self._layers: dict[str, _Layer] = {}
        #: The layers that have the keys of a name, where these are no layer of this graph.
        self._owners: dict[str, set[str]] = {x.name: set(_layers(x)) for x in inputs}

    def step(self, step: str, *, on_gpu: bool = False) -> str:
        """Return the name of a step's layer, which the first call adds."""
        name = self._layer_of(step)
        layer = self._layers.setdefault(name, _Layer(on_gpu))
        assert layer.on_gpu == on_gpu
        return name

    def add(
        self,
        step: str,
        function: Callable[..., Any],
        *arguments: Any,
        index: Sequence[int] = (),
        on_gpu: bool = False,
    ) -> Key:
        """Add a task.

        Parameters
        ----------
        step : str
            The empty one is that of the result.
        function : callable
        *arguments
            Keys of tasks, lists of these, and numbers.
        index : sequence of int
            What tells the tasks of a step apart.
        on_gpu : bool, default False
            Whether it runs on a worker with a GPU, whose device becomes the first argument.
        """
        name = self.step(step, on_gpu=on_gpu)
        layer = self._layers[name]
        for argument in arguments:
            for key in argument if isinstance(argument, list) else (argument,):
                if isinstance(key, tuple):
                    layer.dependencies.add(key[0])
        key = (name, *index)
        layer.tasks[key] = (partial(run_on_gpu, function) if on_gpu else function, *arguments)
        return key

    def each(self, step: str, function: Callable[..., Any], *lists: Sequence[Any], on_gpu: bool = False) -> list[Key]:
        """Add a task for each position of lists of arguments; return the keys."""
        positions = enumerate(zip(*lists, strict=True))
        return [self.add(step, function, *own, index=(i,), on_gpu=on_gpu) for i, own in positions]

    def tree(
        self, step: str, function: Callable[..., Any], keys: Sequence[Key], *, width: int, on_gpu: bool = False
    ) -> list[Key]:
        """Combine results, from left to right, until there are at most `width`; return their keys.

        Parameters
        ----------
        step : str
        function : callable
            Takes a list of results.
        keys : sequence of keys
        width : int
            How many a task combines.
        on_gpu : bool
            Whether the function takes a device first.
        """
        keys, level = list(keys), 0
        while len(keys) > width:
            groups = [[keys[i : i + width]] for i in range(0, len(keys), width)]
            keys = self.each(f"{step}-{level}", function, *zip(*groups, strict=True), on_gpu=on_gpu)
            level += 1
        return keys

    # ---- what comes out

    def array(self, chunks: Sequence[float], dtype: np.dtype, *, step: str = "") -> da.Array:
        """Return the results of a step, which has a task per chunk, as a dask array of one dimension."""
        array: Any = da.Array
        return array(self._finished(), self._layer_of(step), (tuple(chunks),), dtype=dtype)

    def scalar(self, dtype: np.dtype) -> da.Array:
        """Return the result of the one task of the last step as a dask array without dimensions."""
        array: Any = da.Array
        return array(self._finished(), self._layer_of(""), (), dtype=dtype)

    def delayed(self) -> Delayed:
        """Return the result of the one task of the last step."""
        name = self._layer_of("")
        return Delayed((name,), self._finished(), layer=name)

    def _layer_of(self, step: str) -> str:
        return f"{self._name}-{step}-{self._token}" if step else f"{self._name}-{self._token}"

    def _finished(self) -> HighLevelGraph:
        base = HighLevelGraph.merge(*(x.__dask_graph__() for x in self._inputs))
        layers: dict[str, Any] = dict(base.layers)
        dependencies = {name: set(of) for name, of in base.dependencies.items()}
        for name, layer in self._layers.items():
            annotations = {"resources": {RESOURCE: 1}} if layer.on_gpu else None
            layers[name] = MaterializedLayer(layer.tasks, annotations=annotations)
            dependencies[name] = set[str]().union(*(self._owners.get(used, {used}) for used in layer.dependencies))
        return HighLevelGraph(layers, dependencies)
