"""Whole tasks beside CUB, PyTorch, CuPy, polars, pandas and numpy: same data, in turns, in one run.

Usage: python benchmarks/peers/chains.py [--cases group] [--n 2^26] [--table 10^8] [--splats 3e6] [--edges 10^8]
       python benchmarks/peers/chains.py --peers none --n 2^14 --table 10^4 --splats 5000 --edges 3000    (any GPU, also
       a software one); 0 leaves a part out

harness.py says what is measured, and how. CUDA's side is cub_chain_peer.cu.

host     a sort of --n u32 from numpy to numpy, beside numpy's stable sort
group    --n rows of u32 keys below --groups and u32 values: the sum of each key. CUB: SortPairs by 32 bits, as a
         caller has it who does not know the keys, and by the bits that they need; then ReduceByKey. Ours: GroupBy,
         without and with key_bits.
table    examples/group_by.py: sum, mean, largest value and number of rows, 100 rows a key on average. Ours with columns
         and results on the GPU, and with their transfers; polars and pandas on the CPU, PyTorch on the GPU. Tables of
         the others are made before. Those that are not installed have the reason in place of times.
splats   examples/splats.py: the splats of each tile of a picture of 1920 × 1088 pixels, in order of depth. CUDA: as
         the program of the paper does it, with the copy of the number of pairs to the host and keys of 64 bits; and by
         depth first, as ours, with that copy.
graph    examples/pagerank.py: random edges, a sixteenth as many nodes; f32 weights that are small integers, so that a
         sum of duplicates is exact. "build": from rows, columns and values on the GPU to CSR, duplicates added up;
         "product" with a dense vector (cuSPARSE with indices of int64, as they come from a COO tensor, and of int32);
         "rank": an iteration of PageRank, of twenty in a row

Wall is the one to compare where a side waits for a number in between: in splats, tables, builds. Results of all sides
are compared with numpy's and scipy's, CUDA's by checksums; matrices to the bit, products within the bound of float32
around the product in double precision, ranks within 1e-5.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial
from types import ModuleType
from typing import Any

import click
import harness
import numpy as np

import gridwise_py as gw

WIDTH, HEIGHT = 1920, 1088
ITERATIONS = 20


def load_example(name: str) -> ModuleType:
    """Return an example as a module."""
    path = harness.HERE.parents[1] / "examples" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(f"{name}_example", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def host(bench: harness.Bench, n: int) -> harness.Case:
    """Return what a caller with numpy arrays waits for a sort: on the GPU, up and down, and numpy's stable sort."""
    keys = np.random.default_rng(n).integers(0, 1 << 32, n, dtype=np.uint32)
    sides = {
        harness.OURS: lambda: harness.Walls(
            lambda: gw.sort(gw.asarray(keys, bench.device)).to_numpy(),
            check=lambda got: np.array_equal(got, np.sort(keys)),
        ),
        "numpy": lambda: harness.Walls(lambda: np.sort(keys, kind="stable")),
    }
    return harness.Case("from numpy to numpy: sort, u32", n, sides, "host", facts={"of": "sort", "datatype": "u32"})


def group(bench: harness.Bench, rows: int, groups: int) -> harness.Case:
    """Return the group-by."""
    rng = np.random.default_rng(0)
    keys = rng.integers(0, groups, rows, dtype=np.uint32)
    values = rng.integers(0, 1000, rows, dtype=np.uint32)
    bits = (groups - 1).bit_length()
    found = np.unique(keys)
    expected = found, np.bincount(keys, values, groups).astype(np.uint64).astype(np.uint32)[found]
    k, x = gw.asarray(keys, bench.device), gw.asarray(values, bench.device)

    def ours(**more: Any) -> harness.Side:
        return harness.Captured(
            bench.device, lambda: gw.group_by(k, total=(x, gw.Add), size=groups, **more),
            lambda made: all(map(np.array_equal, (made.keys.to_numpy(), made.total.to_numpy()), expected)),
        )  # fmt: skip

    def cub(sorted_bits: int) -> harness.Side:
        sums = [harness.checksum(each) for each in expected]
        return harness.Cub(bench.cub, ("group", rows, sorted_bits), {"keys": keys, "values": values}, sums)

    used = f"cub, {bits} bits"
    sides = {
        f"ours, key_bits={bits}": partial(ours, key_bits=bits), "ours": ours,
        "cub, 32 bits": lambda: cub(32), used: lambda: cub(bits),
    }  # fmt: skip
    return harness.Case(f"group, keys below {groups:,}", rows, sides, "group", marks={used: ("single", 1.0)})


def table(bench: harness.Bench, rows: int) -> harness.Case:
    """Return the example of group-by."""
    example = load_example("group_by")
    key, x = example.table(rows)
    expected = example.by_numpy(key, x)
    bits = int(key.max()).bit_length()
    on_gpu = cache(lambda: (gw.asarray(key, bench.device), gw.asarray(x, bench.device)))

    def right(made: Any) -> bool:
        got = made if isinstance(made, Mapping) else made.to_numpy()
        return example.agree(dict(zip(expected, got.values(), strict=True)), expected)

    def other(prepare: Callable[..., Any]) -> harness.Side:
        try:
            call = prepare(key, x)
        except ImportError as error:
            raise harness.PeerError(f"{error.name} is not installed") from None
        return harness.Walls(call, check=lambda got: example.agree(got, expected))

    sides: dict[str, Callable[[], harness.Side]] = {
        "ours": lambda: harness.Captured(bench.device, lambda: example.ours(*on_gpu(), key_bits=bits), right),
        "ours, with transfers": lambda: harness.Walls(
            lambda: example.ours(key, x, device=bench.device).to_numpy(), check=right
        ),
        **{name: partial(other, prepare) for name, prepare in example.OTHERS.items()},
    }
    marks = {"polars": ("wall", 20.0)}
    return harness.Case("table", rows, sides, "table", facts={"groups": len(expected["key"])}, marks=marks)


def splats(bench: harness.Bench, count: int) -> harness.Case:
    """Return the binning."""
    example = load_example("splats")
    points, size, _ = example.scene(count)
    angle = gw.asarray(np.float32([0.5]), bench.device)
    projected = example.project(points, gw.asarray(size, bench.device), angle)
    # To the size of the picture.
    scale = HEIGHT / example.HEIGHT
    on_gpu = [gw.asarray(each * scale) if k != 2 else each for k, each in enumerate(projected)]
    names = ("x", "y", "depth", "radius")
    data = {name: each.to_numpy() for name, each in zip(names, on_gpu, strict=True)}
    tiles, owners = example.by_numpy(*data.values(), None, WIDTH, HEIGHT)
    room = int(1.25 * tiles.size) + 1024

    def right(made: Any) -> bool:
        order, places, runs = made
        of_tiles = np.repeat(runs.values.to_numpy(), runs.lengths.to_numpy())
        return np.array_equal(of_tiles, tiles) and np.array_equal(order.to_numpy()[places.to_numpy()], owners)

    begin = np.zeros((example.tiles_of(WIDTH) * example.tiles_of(HEIGHT), 2), np.uint32)
    numbers = np.bincount(tiles, minlength=len(begin))
    begin[:, 1] = np.cumsum(numbers)
    begin[:, 0] = begin[:, 1] - numbers
    begin[numbers == 0] = 0

    def cuda(depth_first: int) -> harness.Side:
        sums = [harness.checksum(begin), harness.checksum(owners.astype(np.uint32))]
        return harness.Cub(bench.cub, ("splats", count, WIDTH, HEIGHT, room, depth_first), data, sums)

    sides = {
        "ours": lambda: harness.Captured(
            bench.device, lambda: example.bin_splats(*on_gpu, room, WIDTH, HEIGHT), right
        ),
        "cuda, as in the paper": lambda: cuda(0),
        "cuda, by depth first": lambda: cuda(1),
    }  # fmt: skip
    marks = {"cuda, as in the paper": ("wall", 1.5)}
    return harness.Case("splats", count, sides, "splats", facts={"pairs": int(tiles.size)}, marks=marks)


# ---- a sparse matrix, its product, and PageRank


class Graph:
    """Edges on the host, and what comes out in double precision.

    Parameters
    ----------
    example : module
    edges : int
    """

    def __init__(self, example: ModuleType, edges: int):
        import scipy.sparse

        self.example, self.nodes, self.damping = example, max(edges // 16, 2), example.DAMPING
        self.source, self.target, self.weight = example.random_graph(self.nodes, edges)
        entries = (self.weight.astype(np.float64), (self.target, self.source))
        self.matrix = scipy.sparse.coo_array(entries, (self.nodes, self.nodes)).tocsr()
        self.matrix.sum_duplicates()
        self.total = np.bincount(self.source, self.weight, self.nodes)
        self.vector = np.random.default_rng(1).random(self.nodes, dtype=np.float32)
        self.product = self.matrix @ self.vector.astype(np.float64)
        share = np.divide(self.damping, self.total, out=np.zeros(self.nodes), where=self.total > 0)
        self.rank = np.full(self.nodes, 1 / self.nodes)
        for _ in range(ITERATIONS):
            stuck = self.damping * self.rank[self.total == 0].sum()
            self.rank = self.matrix @ (share * self.rank) + (stuck + 1 - self.damping) / self.nodes

    def is_matrix(self, *parts: np.ndarray) -> bool:
        """Whether pointers, columns and values are those of the matrix."""
        expected = (self.matrix.indptr, self.matrix.indices, self.matrix.data)
        return all(np.array_equal(got, want) for got, want in zip(parts, expected, strict=True))

    def is_product(self, got: np.ndarray) -> bool:
        """Whether a product is right: all items are positive, so the error of a sum is relative to the sum."""
        # Of sums in any order, of some tens of consecutive additions and a tree above them.
        return bool(np.all(np.abs(got - self.product) <= 128 * np.finfo(np.float32).eps * self.product))

    def is_rank(self, got: np.ndarray) -> bool:
        """Whether the ranks are right."""
        return bool(np.max(np.abs(got - self.rank) / self.rank) < 1e-5)


Stages = dict[str, Callable[[], harness.Side]]


def graph_of_ours(graph: Graph, device: Any) -> Stages:
    """Return our side of each stage; the functions are those of the example."""
    entries = [gw.asarray(items, device) for items in (graph.target, graph.source, graph.weight)]
    total, vector = (gw.asarray(items.astype(np.float32), device) for items in (graph.total, graph.vector))
    wait = partial(gw.synchronize, device)

    def build() -> Any:
        return graph.example.csr(*entries, graph.nodes)

    matrix = build()

    def product() -> harness.Side:
        offsets, columns, values = matrix
        made = gw.SegmentedReduce(device, values * gw.gather(vector, columns), gw.Add)
        return harness.Ours(made, {"offsets": offsets}, lambda outputs: graph.is_product(outputs["output"]))

    return {
        "build": lambda: harness.Walls(
            build, wait, check=lambda made: graph.is_matrix(*(part.to_numpy() for part in made))
        ),
        "product": product,
        "rank": lambda: harness.Walls(
            lambda: graph.example.pagerank(matrix, total, ITERATIONS), wait, ITERATIONS,
            check=lambda made: graph.is_rank(made[0].to_numpy()),
        ),
    }  # fmt: skip


def graph_of_library(graph: Graph, library: harness.Library, index: str) -> Stages:
    """Return the sides of PyTorch with one kind of indices, or of CuPy."""
    module, nodes, is_torch = library.module, graph.nodes, library.name == "torch"
    size, dtype = (nodes, nodes), getattr(library.module, index)
    if is_torch:  # as a user has them: COO tensors hold indices of int64
        places = library.array(np.stack([graph.target, graph.source]).astype(np.int64))
    else:
        places = tuple(library.array(x.astype(np.int32)) for x in (graph.target, graph.source))
    weight, vector = library.array(graph.weight), library.array(graph.vector)
    total = library.array(graph.total.astype(np.float32))

    def build() -> Any:
        if not is_torch:
            sparse = importlib.import_module("cupyx.scipy.sparse")
            # A copy, since it sorts its own arrays and remembers that it did.
            return sparse.coo_matrix((weight, places), size, copy=True).tocsr()
        found = module.sparse_coo_tensor(places, weight, size).coalesce().to_sparse_csr()
        if index == "int64":
            return found
        parts = (found.crow_indices().to(dtype), found.col_indices().to(dtype), found.values())
        return module.sparse_csr_tensor(*parts, size)

    def parts_of(made: Any) -> list[np.ndarray]:
        if is_torch:
            return [library.numpy(part) for part in (made.crow_indices(), made.col_indices(), made.values())]
        return [library.numpy(part) for part in (made.indptr, made.indices, made.data)]

    library.wait()
    with library.current():
        matrix = build()
    library.wait()

    def pagerank() -> Any:
        rank = module.full((nodes,), 1 / nodes, dtype=module.float32, **({"device": "cuda"} if is_torch else {}))
        share = module.where(total > 0, graph.damping / total, 0.0)
        share = share if is_torch else share.astype("f4")
        for _ in range(ITERATIONS):
            stuck = module.where(total > 0, 0.0, rank).sum()
            before, rank = rank, matrix @ (share * rank) + (graph.damping * stuck + (1 - graph.damping)) / nodes
            change = abs(rank - before).sum()
        return rank, change

    def walls(call: Callable[[], Any], each: int, right: Callable[[Any], bool]) -> harness.Side:
        def call_on_stream() -> Any:
            with library.current():
                return call()

        return harness.Walls(call_on_stream, library.wait, each, right, version=library.version)

    return {
        "build": lambda: walls(build, 1, lambda made: graph.is_matrix(*parts_of(made))),
        # cuSPARSE makes buffers in a call, which a graph cannot hold.
        "product": lambda: harness.Called(
            library, lambda: matrix @ vector, lambda made: graph.is_product(library.numpy(made)), capture=False
        ),
        "rank": lambda: walls(pagerank, ITERATIONS, lambda made: graph.is_rank(library.numpy(made[0]))),
    }


GRAPH_PEERS = {"torch": ("torch", "int64"), "torch32": ("torch", "int32"), "cupy": ("cupy", "int32")}


def graphs(bench: harness.Bench, edges: int) -> Iterator[harness.Case]:
    """Yield the stages of a graph."""
    graph = Graph(load_example("pagerank"), edges)

    def stages_of(name: str) -> Stages:
        if name == harness.OURS:
            return graph_of_ours(graph, bench.device)
        library, index = GRAPH_PEERS[name]
        return graph_of_library(graph, bench.library(library), index)

    made = cache(stages_of)
    facts = {"nodes": graph.nodes, "entries": int(graph.matrix.nnz), "iterations": ITERATIONS}
    # Of a product, besides the vector: 8 bytes for an entry, and 4 for each row's pointer and result.
    moved = {"product": 8 * graph.matrix.nnz + 8 * graph.nodes + 4}
    for stage in ("build", "product", "rank"):
        sides = {
            name: lambda name=name, stage=stage: made(name)[stage]() for name in (harness.OURS, *GRAPH_PEERS)
        }  # fmt: skip
        yield harness.Case(stage, edges, sides, "graph", moved.get(stage), facts)


@harness.command(
    __doc__, n="2^26", peers="cub,torch,cupy", samples=15, rounds=3, source="cub_chain_peer",
    more=[
        click.option("--groups", type=harness.AxisList("n"), default="10^6", show_default=True),
        click.option("--table", "tables", type=harness.AxisList("n"), default="10^8", show_default=True, help="Rows."),
        click.option("--splats", "counts", type=harness.AxisList("n"), default="3000000", show_default=True),
        click.option("--edges", "edges", type=harness.AxisList("n"), default="10^8", show_default=True),
    ],
)  # fmt: skip
def main(
    bench: harness.Bench, groups: list[int], tables: list[int], counts: list[int], edges: list[int]
) -> Iterator[harness.Case]:
    """Yield the cases."""
    parts: list[tuple[str, list[int], Callable[[int], Any]]] = [
        ("host", bench.sizes, lambda n: [host(bench, n)]),
        ("group", bench.sizes, lambda n: [group(bench, n, number) for number in groups]),
        ("table", tables, lambda n: [table(bench, n)]),
        ("splats", counts, lambda n: [splats(bench, n)]),
        ("graph", edges, lambda n: graphs(bench, n)),
    ]
    for name, sizes, make in parts:
        # Data is made only of what is asked for.
        if not bench.words or name in bench.words:
            for n in filter(None, sizes):
                yield from make(n)


if __name__ == "__main__":
    main()
