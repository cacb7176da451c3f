"""A sparse matrix from a list of edges, its product with a vector, and PageRank, beside PyTorch, CuPy and scipy.

Usage: python benchmarks/graph_peer.py [--edges 10^8] [--rounds 5] [--peers torch,cupy] [--stages] [--json FILE]

The graph and our side are those of examples/pagerank.py: random edges, a sixteenth as many nodes, few of them with many
edges; f32 weights that are small integers, so that a sum of duplicates is exact. All sides take turns, round after
round, and the figure is the median of the rounds.

build    from rows, columns and values on the GPU to CSR: sorted, duplicates added up. PyTorch: coalesce() and
         to_sparse_csr(), which sorts keys of int64; CuPy: coo_matrix.tocsr(). The time on the CPU's clock from an idle
         GPU to an idle GPU, because every side waits for the number of entries in between.
product  the matrix with a dense vector. Ours: dispatches in one pass between two timestamps; others: calls between two
         CUDA events, of cuSPARSE, with indices of int64 (as they come from a COO tensor) and of int32.
         GB/s counts 8 bytes for an entry, and 4 for each row's pointer and result; `gathered` also 4 for the item of
         the vector that an entry reads.
rank     an iteration of PageRank, of so many in a row, on the CPU's clock from an idle GPU to an idle GPU.

Every side's matrix must equal scipy's bit for bit, its product lie within the bound of float32 around the product in
double precision, and its ranks within 1e-5 of those in double precision.

With --stages a profile of our build shows the time of each kernel.

Bytes and predictions for an H200, 10^8 edges, 6.25 · 10^6 nodes, about 9.5 · 10^7 entries, at 4,250 GB/s: pack 1.6 GB,
0.4 ms; sort by 6 digits of 46 bits, 0.8 GB read and 24 bytes an edge and digit, 15.2 GB, 4.0 ms; duplicates 2.3 GB, 0.7
ms; halves of keys 1.5 and 1.5 GB (a word of two is read), 0.8 ms; row pointer 0.1 ms. In all 6 ms and the wait for the
count: 1.6 · 10^10 edges/s. Product: 0.81 GB streamed, 0.19 ms; the vector of 25 MB lies in the L2 of 50 MB, and
9.5 · 10^7 gathers of 32 bytes are 3 GB of L2, 0.6 ms at 5 TB/s, unless neighbouring columns share sectors.
"""

from __future__ import annotations

import importlib.util
import statistics
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import click
import numpy as np
import scipy.sparse

import gridwise_py as gw
from gridwise_py.bench.results.context import run_context
from gridwise_py.cli.options import AxisList
from gridwise_py.storage.json_files import write_json

EXAMPLE = Path(__file__).resolve().parent.parent / "examples" / "pagerank.py"
CALLS = 10  # between two events
STAGES = ("build", "product", "rank")


def load_example() -> ModuleType:
    """Return the example as a module."""
    spec = importlib.util.spec_from_file_location("pagerank_example", EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


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

    def __init__(self, graph: Graph, example: ModuleType, device: Any, samples: int):
        self._graph, self._example, self._device, self._samples = graph, example, device, samples
        source, target, weight = (gw.asarray(x, device) for x in (graph.source, graph.target, graph.weight))
        self._entries = (target, source, weight)
        self._total = gw.asarray(graph.total.astype(np.float32), device)
        self._vector = gw.asarray(graph.vector, device)
        self.version = gw.__version__
        self._matrix = self.build()

    def build(self) -> Any:
        """Build the matrix."""
        return self._example.csr(*self._entries, self._graph.nodes)

    def check(self) -> dict[str, bool]:
        """Return whether each stage is right."""
        product = self._product().execute(offsets=self._matrix[0]).output
        rank, _ = self._example.pagerank(self._matrix, self._total, self._graph.iterations)
        return {
            "build": self._graph.is_matrix(*(part.to_numpy() for part in self._matrix)),
            "product": self._graph.is_product(product.to_numpy()),
            "rank": self._graph.is_rank(rank.to_numpy()),
        }

    def _product(self) -> Any:
        _, columns, values = self._matrix
        return gw.SegmentedReduce(self._device, values * gw.gather(self._vector, columns), gw.Add)

    def times_ns(self, warmup_s: float) -> dict[str, float]:
        """Return the time of each stage."""
        found = {"build": walls_ns(self.build, self.wait, self._samples)}
        protocol = replace(
            gw.SamplingProtocol(), samples=self._samples, warmup_s=warmup_s, max_warmup_s=2 * warmup_s, canary_passes=1,
            batch_trials=CALLS, check_unit=False,
        )  # fmt: skip
        product = self._product()
        run = product.execute(offsets=self._matrix[0])
        arrays = {"offsets": self._matrix[0], "output": run.outputs["output"]}
        measured = gw.measure(product, mode="batch", protocol=protocol, check=False, **arrays)
        span = measured.whole.get("gpu_span")
        if span is None:
            raise SystemExit(f"product: no valid timestamps ({'; '.join(measured.warnings)}); take more --edges")
        found["product"] = statistics.median(span.samples_ns)
        iterations = self._graph.iterations
        ranks = walls_ns(
            lambda: self._example.pagerank(self._matrix, self._total, iterations), self.wait, self._samples
        )
        return {**found, "rank": ranks / iterations}

    def wait(self) -> None:
        """Wait until the GPU is idle."""
        gw.synchronize(self._device)


def walls_ns(call: Callable[[], Any], wait: Callable[[], None], samples: int) -> float:
    """Return the median time of a call on the CPU's clock, from an idle GPU to an idle GPU, without the first one."""
    times: list[float] = []
    for _ in range(samples + 1):
        wait()
        begin = time.perf_counter_ns()
        call()
        wait()
        times.append(time.perf_counter_ns() - begin)
    return statistics.median(times[1:])


class Torch:
    """PyTorch on the same GPU."""

    def __init__(self, graph: Graph, index: str, samples: int):
        torch = self._torch = importlib.import_module("torch")
        if not torch.cuda.is_available():
            raise ImportError("PyTorch sees no GPU")
        self._graph, self._samples, self._index = graph, samples, getattr(torch, index)
        # As a user has them: COO tensors hold indices of int64.
        self._places = torch.from_numpy(np.stack([graph.target, graph.source]).astype(np.int64)).cuda()
        self._weight = torch.from_numpy(graph.weight).cuda()
        self._vector = torch.from_numpy(graph.vector).cuda()
        self._total = torch.from_numpy(graph.total.astype(np.float32)).cuda()
        self.version = torch.__version__
        self._matrix = self.build()

    def build(self) -> Any:
        """Build the matrix."""
        size = (self._graph.nodes, self._graph.nodes)
        found = self._torch.sparse_coo_tensor(self._places, self._weight, size).coalesce().to_sparse_csr()
        if self._index is self._torch.int64:
            return found
        parts = (found.crow_indices().to(self._index), found.col_indices().to(self._index), found.values())
        return self._torch.sparse_csr_tensor(*parts, size)

    def _rank(self) -> Any:
        torch, nodes, damping, total = self._torch, self._graph.nodes, self._graph.damping, self._total
        rank = torch.full((nodes,), 1 / nodes, device="cuda")
        share = torch.where(total > 0, damping / total, 0.0)
        for _ in range(self._graph.iterations):
            stuck = torch.where(total > 0, 0.0, rank).sum()
            before, rank = rank, self._matrix @ (share * rank) + (damping * stuck + (1 - damping)) / nodes
            change = (rank - before).abs().sum()
        return rank, change

    def check(self) -> dict[str, bool]:
        """Return whether each stage is right."""
        m = self._matrix
        parts = (m.crow_indices(), m.col_indices(), m.values())
        return {
            "build": self._graph.is_matrix(*(part.cpu().numpy() for part in parts)),
            "product": self._graph.is_product((m @ self._vector).cpu().numpy()),
            "rank": self._graph.is_rank(self._rank()[0].cpu().numpy()),
        }

    def _events_ns(self, call: Callable[[], Any]) -> float:
        pairs = []
        for _ in range(self._samples + 1):
            begin, end = (self._torch.cuda.Event(enable_timing=True) for _ in range(2))
            begin.record()
            for _ in range(CALLS):
                call()
            end.record()
            pairs.append((begin, end))
        self._torch.cuda.synchronize()
        return statistics.median(begin.elapsed_time(end) * 1e6 / CALLS for begin, end in pairs[1:])

    def times_ns(self, warmup_s: float) -> dict[str, float]:
        """Return the time of each stage."""
        wait = self._torch.cuda.synchronize
        return {
            "build": walls_ns(self.build, wait, self._samples),
            "product": self._events_ns(lambda: self._matrix @ self._vector),
            "rank": walls_ns(self._rank, wait, self._samples) / self._graph.iterations,
        }


class Cupy:
    """CuPy on the same GPU."""

    def __init__(self, graph: Graph, samples: int):
        self._cupy = importlib.import_module("cupy")
        self._sparse = importlib.import_module("cupyx.scipy.sparse")
        self._graph, self._samples = graph, samples
        self._places = tuple(self._cupy.asarray(x.astype(np.int32)) for x in (graph.target, graph.source))
        self._weight, self._vector = self._cupy.asarray(graph.weight), self._cupy.asarray(graph.vector)
        self._total = self._cupy.asarray(graph.total.astype(np.float32))
        self.version = self._cupy.__version__
        self._matrix = self.build()

    def build(self) -> Any:
        """Build the matrix."""
        size = (self._graph.nodes, self._graph.nodes)
        # A copy, since it sorts its own arrays and remembers that it did.
        return self._sparse.coo_matrix((self._weight, self._places), size, copy=True).tocsr()

    def _rank(self) -> Any:
        cupy, nodes, damping, total = self._cupy, self._graph.nodes, self._graph.damping, self._total
        rank = cupy.full(nodes, 1 / nodes, cupy.float32)
        share = cupy.where(total > 0, cupy.float32(damping) / total, cupy.float32(0))
        for _ in range(self._graph.iterations):
            stuck = cupy.where(total > 0, cupy.float32(0), rank).sum()
            before, rank = rank, self._matrix @ (share * rank) + (damping * stuck + (1 - damping)) / nodes
            change = cupy.abs(rank - before).sum()
        return rank, change

    def check(self) -> dict[str, bool]:
        """Return whether each stage is right."""
        m = self._matrix
        return {
            "build": self._graph.is_matrix(*(part.get() for part in (m.indptr, m.indices, m.data))),
            "product": self._graph.is_product((m @ self._vector).get()),
            "rank": self._graph.is_rank(self._rank()[0].get()),
        }

    def _events_ns(self, call: Callable[[], Any]) -> float:
        pairs = []
        for _ in range(self._samples + 1):
            begin, end = (self._cupy.cuda.Event() for _ in range(2))
            begin.record()
            for _ in range(CALLS):
                call()
            end.record()
            pairs.append((begin, end))
        self._cupy.cuda.Device().synchronize()
        return statistics.median(self._cupy.cuda.get_elapsed_time(b, e) * 1e6 / CALLS for b, e in pairs[1:])

    def times_ns(self, warmup_s: float) -> dict[str, float]:
        """Return the time of each stage."""
        wait = self._cupy.cuda.Device().synchronize
        return {
            "build": walls_ns(self.build, wait, self._samples),
            "product": self._events_ns(lambda: self._matrix @ self._vector),
            "rank": walls_ns(self._rank, wait, self._samples) / self._graph.iterations,
        }


PEERS: dict[str, Callable[[Graph, int], Any]] = {
    "torch": lambda graph, samples: Torch(graph, "int64", samples),
    "torch32": lambda graph, samples: Torch(graph, "int32", samples),
    "cupy": Cupy,
}


def peers_of(names: str, graph: Graph, samples: int) -> dict[str, Any]:
    """Return the libraries that are installed and see a GPU."""
    found: dict[str, Any] = {}
    for name in filter(None, names.split(",")):
        try:
            found[name] = PEERS[name](graph, samples)
        except Exception as error:
            click.echo(f"{name}: not here: {str(error).splitlines()[0]:.100}")
    return found


def row_of(graph: Graph, side: str, stage: str, time_ns: float, rounds_ns: list[float], right: bool) -> dict[str, Any]:
    """Return a row of the results."""
    row: dict[str, Any] = {
        "side": side, "stage": stage, "right": right, "time_ns": time_ns, "rounds_ns": rounds_ns,
    }  # fmt: skip
    if stage == "build":
        row["edges_per_s"] = graph.source.size / time_ns * 1e9
    if stage == "product":
        row["gbytes_per_s"] = graph.streamed_bytes / time_ns
        row["gathered_gbytes_per_s"] = (graph.streamed_bytes + 4 * graph.matrix.nnz) / time_ns
    return row


def rows_of(
    graph: Graph, times: dict[str, dict[str, list[float]]], right: dict[str, dict[str, bool]]
) -> list[dict[str, Any]]:
    """Return the rows of what was timed, stage by stage."""
    rows: list[dict[str, Any]] = []
    for stage in STAGES:
        own_ns = statistics.median(times["gridwise"][stage])
        for side, of_side in times.items():
            if of_side[stage]:
                time_ns = statistics.median(of_side[stage])
                row = row_of(graph, side, stage, time_ns, of_side[stage], right[side][stage])
                rows.append({**row, "ratio": time_ns / own_ns})
    return rows


def shown(row: dict[str, Any]) -> str:
    """Return a row as a line of text."""
    rate = ""
    if "edges_per_s" in row:
        rate = f"{row['edges_per_s']:.3g} edges/s"
    if "gbytes_per_s" in row:
        rate = f"{row['gbytes_per_s']:.0f} GB/s, {row['gathered_gbytes_per_s']:.0f} gathered"
    wrong = "" if row["right"] else "  WRONG"
    return f"  {row['side']:10}{row['time_ns'] / 1e6:10.3f} ms  {row['ratio']:6.2f}  {rate}{wrong}"


@click.command()
@click.option("--edges", "counts", type=AxisList("n"), default="10^8", show_default=True)
@click.option("--iterations", default=20, show_default=True, help="Of PageRank.")
@click.option("--rounds", default=5, show_default=True)
@click.option("--samples", default=3, show_default=True, help="Of each side, stage and round.")
@click.option("--warmup-s", default=0.1, show_default=True, help="Before our products.")
@click.option("--peers", default="torch,torch32,cupy", show_default=True)
@click.option("--stages", is_flag=True, help="Show the kernels of our build.")
@click.option("--adapter", help="Adapter by index or part of its name.")
@click.option("--json", "json_path", type=click.Path(path_type=Path), help="Write the figures here.")
def main(
    counts: list[int], iterations: int, rounds: int, samples: int, warmup_s: float, peers: str, stages: bool,
    adapter: str | None, json_path: Path | None,
) -> None:  # fmt: skip
    """Measure, check and print."""
    (edges,) = counts
    example, device = load_example(), gw.request_device(adapter)
    graph = Graph(example, edges, iterations)
    ours = Ours(graph, example, device, samples)
    sides = {"gridwise": ours, **peers_of(peers, graph, samples)}
    if stages:
        with gw.profile(device) as prof:
            ours.build()
        click.echo(prof.key_averages().table())
    facts = {"edges": edges, "nodes": graph.nodes, "entries": graph.matrix.nnz, "iterations": iterations}
    head = {
        **run_context(device), "graph": facts,
        "scipy": {"version": scipy.__version__, "build_s": graph.build_s, "product_s": graph.product_s},
        "versions": {side: library.version for side, library in sides.items()},
    }  # fmt: skip
    right: dict[str, dict[str, bool]] = {}
    times: dict[str, dict[str, list[float]]] = {side: {stage: [] for stage in STAGES} for side in sides}
    rows: list[dict[str, Any]] = []
    for number in range(rounds):
        for side in list(sides):
            try:
                right[side] = right.get(side) or sides[side].check()
                for stage, time_ns in sides[side].times_ns(warmup_s).items():
                    times[side][stage].append(time_ns)
            except Exception as error:  # of a peer, such as no memory: the others are still worth their time
                if side == "gridwise":
                    raise
                click.echo(f"{side}: ended in round {number + 1}: {str(error).splitlines()[0]:.100}")
                del sides[side]
        rows = rows_of(graph, times, right)
        if json_path is not None:  # after each round, so that a run that is cut off leaves what it has
            write_json(json_path, {**head, "results": rows})
    click.echo(
        f"{gw.capabilities(device).adapter}: {edges:,} edges, {graph.nodes:,} nodes, {graph.matrix.nnz:,} entries; "
        f"median of {rounds} rounds, and the time of each side as a multiple of ours"
    )
    click.echo(f"scipy, on the CPU, once: build {graph.build_s:.2f} s, product {graph.product_s * 1e3:.1f} ms")
    for stage in STAGES:
        click.echo(stage)
        for row in rows:
            if row["stage"] == stage:
                click.echo(shown(row))
    if not all(row["right"] for row in rows):
        raise SystemExit(4)


if __name__ == "__main__":
    main()
