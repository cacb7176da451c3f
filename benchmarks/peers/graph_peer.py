"""A sparse matrix from a list of edges, its product with a vector, and PageRank, beside PyTorch, CuPy and scipy.

Usage: python benchmarks/peers/graph_peer.py [--n 10^8] [--peers torch,cupy] [--json FILE]
       python benchmarks/peers/graph_peer.py --n 3000 --peers none      (any GPU, also a software one)

The graph and our side are those of examples/pagerank.py: random edges, a sixteenth as many nodes, few of them with many
edges; f32 weights that are small integers, so that a sum of duplicates is exact. harness.py says what is measured.

build    from rows, columns and values on the GPU to CSR: sorted, duplicates added up. PyTorch: coalesce() and
         to_sparse_csr(), which sorts keys of int64; CuPy: coo_matrix.tocsr(). On the CPU's clock, because every side
         waits for the number of entries in between.
product  the matrix with a dense vector. Others: cuSPARSE, with indices of int64 (as they come from a COO tensor) and of
         int32. GB/s counts 8 bytes for an entry, and 4 for each row's pointer and result.
rank     an iteration of PageRank, of so many in a row, on the CPU's clock

Every side's matrix must equal scipy's bit for bit, its product lie within the bound of float32 around the product in
double precision, and its ranks within 1e-5 of those in double precision. What was predicted and found is in
docs/contribute/performance.md.
"""

from __future__ import annotations

import functools
import importlib
import time
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import click
import harness
import numpy as np
import scipy.sparse

import gridwise_py as gw


class Graph:
    """Edges on the host, and what comes out in double precision.

    Parameters
    ----------
    example : module
    edges, iterations : int
    """

    def __init__(self, example: ModuleType, edges: int, iterations: int):
        self.nodes = max(edges // 16, 2)
        self.damping = example.DAMPING
        self.iterations = iterations
        self.source, self.target, self.weight = example.random_graph(self.nodes, edges)
        begin = time.perf_counter()
        matrix = scipy.sparse.coo_array(
            (self.weight.astype(np.float64), (self.target, self.source)), (self.nodes, self.nodes)
        ).tocsr()
        matrix.sum_duplicates()
        self.build_s = time.perf_counter() - begin
        self.matrix = matrix
        self.total = np.bincount(self.source, self.weight, self.nodes)
        self.vector = np.random.default_rng(1).random(self.nodes, dtype=np.float32)
        begin = time.perf_counter()
        self.product = matrix @ self.vector.astype(np.float64)
        self.product_s = time.perf_counter() - begin
        share = np.divide(self.damping, self.total, out=np.zeros(self.nodes), where=self.total > 0)
        rank = np.full(self.nodes, 1 / self.nodes)
        for _ in range(iterations):
            stuck = self.damping * rank[self.total == 0].sum()
            rank = matrix @ (share * rank) + (stuck + 1 - self.damping) / self.nodes
        self.rank = rank

    @property
    def streamed_bytes(self) -> int:
        """Bytes that a product must read and write besides the vector."""
        return 8 * self.matrix.nnz + 8 * self.nodes + 4

    def is_matrix(self, indptr: np.ndarray, columns: np.ndarray, values: np.ndarray) -> bool:
        """Whether a matrix is this one."""
        parts = zip((indptr, columns, values), (self.matrix.indptr, self.matrix.indices, self.matrix.data), strict=True)
        return all(np.array_equal(got, want) for got, want in parts)

    def is_product(self, got: np.ndarray) -> bool:
        """Whether a product is right: all items are positive, so the error of a sum is relative to the sum."""
        # Of sums in any order, of some tens of consecutive additions and a tree above them.
        bound = 128 * np.finfo(np.float32).eps * self.product
        return bool(np.all(np.abs(got - self.product) <= bound))

    def is_rank(self, got: np.ndarray) -> bool:
        """Whether the ranks are right."""
        return bool(np.max(np.abs(got - self.rank) / self.rank) < 1e-5)


class Ours:
    """This library; the functions are those of the example."""

    def __init__(self, graph: Graph, example: ModuleType, device: Any):
        self._graph, self._example, self._device = graph, example, device
        source, target, weight = (gw.asarray(x, device) for x in (graph.source, graph.target, graph.weight))
        self._entries = (target, source, weight)
        self._total = gw.asarray(graph.total.astype(np.float32), device)
        self._vector = gw.asarray(graph.vector, device)
        self.matrix = self.build()

    def build(self) -> Any:
        """Build the matrix."""
        return self._example.csr(*self._entries, self._graph.nodes)

    def wait(self) -> None:
        """Wait until the GPU is idle."""
        gw.synchronize(self._device)

    def sides(self) -> dict[str, Callable[[], harness.Side]]:
        """Return its side of each stage."""
        graph, n = self._graph, self._graph.iterations
        _, columns, values = self.matrix
        pointer = {"offsets": self.matrix[0]}

        def product() -> harness.Side:
            made = gw.SegmentedReduce(self._device, values * gw.gather(self._vector, columns), gw.Add)
            return harness.Ours(made, pointer, lambda outputs: graph.is_product(outputs["output"]))

        return {
            "build": lambda: harness.Walls(
                self.build, self.wait, check=lambda made: graph.is_matrix(*(part.to_numpy() for part in made))
            ),
            "product": product,
            "rank": lambda: harness.Walls(
                lambda: self._example.pagerank(self.matrix, self._total, n), self.wait, n,
                check=lambda made: graph.is_rank(made[0].to_numpy()),
            ),
        }  # fmt: skip


class Other:
    """PyTorch with one kind of indices, or CuPy."""

    def __init__(self, graph: Graph, library: harness.Library, index: str):
        module = library.module
        self._graph, self._library, self._is_torch = graph, library, library.name == "torch"
        self._index = getattr(module, index)
        if self._is_torch:  # as a user has them: COO tensors hold indices of int64
            self._places = library.array(np.stack([graph.target, graph.source]).astype(np.int64))
        else:
            self._places = tuple(library.array(x.astype(np.int32)) for x in (graph.target, graph.source))
        self._weight, self._vector = library.array(graph.weight), library.array(graph.vector)
        self._total = library.array(graph.total.astype(np.float32))
        library.wait()
        with library.current():
            self._matrix = self._build()
        library.wait()

    def _build(self) -> Any:
        size = (self._graph.nodes, self._graph.nodes)
        if not self._is_torch:
            sparse = importlib.import_module("cupyx.scipy.sparse")
            # A copy, since it sorts its own arrays and remembers that it did.
            return sparse.coo_matrix((self._weight, self._places), size, copy=True).tocsr()
        torch = self._library.torch
        found = torch.sparse_coo_tensor(self._places, self._weight, size).coalesce().to_sparse_csr()
        if self._index is torch.int64:
            return found
        parts = (found.crow_indices().to(self._index), found.col_indices().to(self._index), found.values())
        return torch.sparse_csr_tensor(*parts, size)

    def _rank(self) -> Any:
        module, nodes, damping, total = self._library.module, self._graph.nodes, self._graph.damping, self._total
        place = {"device": "cuda"} if self._is_torch else {}
        rank = module.full((nodes,), 1 / nodes, dtype=module.float32, **place)
        share = module.where(total > 0, damping / total, 0.0)
        share = share if self._is_torch else share.astype("f4")
        for _ in range(self._graph.iterations):
            stuck = module.where(total > 0, 0.0, rank).sum()
            before, rank = rank, self._matrix @ (share * rank) + (damping * stuck + (1 - damping)) / nodes
            change = abs(rank - before).sum()
        return rank, change

    def _parts(self, made: Any) -> list[np.ndarray]:
        if self._is_torch:
            found = (made.crow_indices(), made.col_indices(), made.values())
        else:
            found = (made.indptr, made.indices, made.data)
        return [self._library.numpy(part) for part in found]

    def sides(self) -> dict[str, Callable[[], harness.Side]]:
        """Return its side of each stage."""
        graph, library = self._graph, self._library

        def walls(call: Callable[[], Any], each: int, right: Callable[[Any], bool]) -> harness.Side:
            def on_stream() -> Any:
                with library.current():
                    return call()

            return harness.Walls(on_stream, library.wait, each, right, version=library.version)

        return {
            "build": lambda: walls(self._build, 1, lambda made: graph.is_matrix(*self._parts(made))),
            # cuSPARSE makes buffers in a call, which a graph cannot hold.
            "product": lambda: harness.Called(
                library, lambda: self._matrix @ self._vector, lambda made: graph.is_product(library.numpy(made)),
                capture=False,
            ),
            "rank": lambda: walls(
                self._rank, graph.iterations, lambda made: graph.is_rank(library.numpy(made[0]))
            ),
        }  # fmt: skip


PEERS = {"torch": ("torch", "int64"), "torch32": ("torch", "int32"), "cupy": ("cupy", "int32")}


@harness.command(
    __doc__, n="10^8", peers="torch,cupy", samples=3,
    more=[click.option("--iterations", default=20, show_default=True, help="Of PageRank.")],
)  # fmt: skip
def main(bench: harness.Bench, iterations: int) -> Iterator[harness.Case]:
    """Yield the cases."""
    example = harness.load_example("pagerank")
    for edges in bench.sizes:
        graph = Graph(example, edges, iterations)
        sides = {harness.OURS: functools.cache(lambda graph=graph: Ours(graph, example, bench.device).sides())}
        for name, (library, index) in PEERS.items():
            sides[name] = functools.cache(
                lambda graph=graph, library=library, index=index: Other(graph, bench.library(library), index).sides()
            )
        facts = {"nodes": graph.nodes, "entries": int(graph.matrix.nnz), "iterations": iterations}
        click.echo(
            f"{edges:,} edges, {graph.nodes:,} nodes, {graph.matrix.nnz:,} entries; scipy, on the CPU, once: build "
            f"{graph.build_s:.2f} s, product {graph.product_s * 1e3:.1f} ms"
        )
        for stage in ("build", "product", "rank"):
            of_stage = {name: lambda made=made, stage=stage: made()[stage]() for name, made in sides.items()}
            moved = graph.streamed_bytes if stage == "product" else None
            yield harness.Case(stage, edges, of_stage, stage, moved, facts)


if __name__ == "__main__":
    main()
