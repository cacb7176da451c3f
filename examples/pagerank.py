"""PageRank, from a list of edges to the ranks; the loop stays on the GPU. docs/howto/sparse.md explains each step.

Usage: python examples/pagerank.py [edges]
"""

import sys
import time

import numpy as np
import scipy.sparse

import gridwise_py as gw

DAMPING, ITERATIONS = 0.85, 20


def csr(rows, columns, values, size):
    """Return row pointer, columns and values of a sparse matrix; its entries come in any order, and may repeat."""
    half = gw.index >> 1
    words = gw.asarray(gw.where((gw.index & 1) == 0, columns[half], rows[half]), size=2 * rows.size)
    keys, values = gw.sort_pairs(words.view(np.uint64), values)  # a key is row · 2³² + column
    keys, values = (found.trim() for found in gw.reduce_by_key(keys, values))  # reads how many there are, so it waits
    words = keys.view(np.uint32)
    columns, rows = (gw.asarray(words[2 * gw.index + k], size=keys.size) for k in (0, 1))
    return gw.searchsorted(rows, gw.index, size=size + 1), columns, values


def row_sums(rows, values, size):
    """Return the sums of the values with each row; they come in any order."""
    rows, values = gw.sort_pairs(rows, values)
    return gw.segmented_reduce(values, gw.searchsorted(rows, gw.index, size=size + 1))


def pagerank(matrix, total, iterations=ITERATIONS):
    """Return the ranks and how much the last iteration changed them; `total` is the weight that leaves each node."""
    (indptr, columns, values), nodes = matrix, total.size
    rank = gw.full(nodes, 1 / nodes, np.float32, total.device)
    share = gw.asarray(gw.where(total > 0, DAMPING / total, 0.0))
    with gw.capture(total.device) as iteration:
        sent = gw.asarray(share * rank)
        stuck = gw.sum(gw.where(total > 0, 0.0, rank))  # of the nodes that no edge leaves
        arrived = gw.segmented_reduce(values * gw.gather(sent, columns), indptr)
        ranked = arrived + (DAMPING * stuck + (1 - DAMPING)) / nodes
        change = gw.sum(abs(ranked - rank))
        gw.Map(total.device, ranked).execute(output=rank)
    for _ in range(iterations):
        iteration.execute()
    return rank, change


def random_graph(nodes, edges):
    """Return source, target and weight of edges; as in the web, few nodes have many and most have few."""
    rng = np.random.default_rng(0)
    names = rng.permutation(nodes).astype(np.uint32)
    source, target = (names[(nodes * rng.random(edges) ** 3).astype(np.uint32)] for _ in range(2))
    return source, target, rng.integers(1, 5, edges).astype(np.float32)


def main(edges):
    """Make a graph, time both steps, and compare with scipy."""
    nodes = edges // 16
    source, target, weight = random_graph(nodes, edges)
    on_gpu = [gw.asarray(items, device) for items in (target, source, weight)]
    leaving = row_sums(*on_gpu[1:], nodes)
    for _ in range(2):  # the first time compiles
        begin = time.perf_counter()
        matrix = csr(*on_gpu, nodes)
        gw.synchronize(device)
        built = time.perf_counter()
        rank, change = pagerank(matrix, leaving)
        changed = change.item()
        ranked = time.perf_counter()
    print(f"matrix: {matrix[2].size:,} entries of {edges:,} edges, {edges / (built - begin):.3g} edges/s")
    print(f"ranks: {(ranked - built) / ITERATIONS * 1e3:.3f} ms an iteration; the last one changed {changed:.1e}")

    expected = scipy.sparse.coo_array((weight.astype(float), (target, source)), (nodes, nodes)).tocsr()
    expected.sum_duplicates()
    parts = zip(matrix, (expected.indptr, expected.indices, expected.data), strict=True)
    print("matrix equals scipy's:", all(np.array_equal(ours.to_numpy(), theirs) for ours, theirs in parts))
    total = np.bincount(source, weight, nodes)
    share = np.divide(DAMPING, total, out=np.zeros(nodes), where=total > 0)
    wanted = np.full(nodes, 1 / nodes)
    for _ in range(ITERATIONS):
        wanted = expected @ (share * wanted) + (DAMPING * wanted[share == 0].sum() + (1 - DAMPING)) / nodes
    error = np.max(np.abs(rank.to_numpy() - wanted) / wanted)
    print(f"largest relative difference from scipy's ranks in double precision: {error:.1e}, right: {error < 1e-5}")


if __name__ == "__main__":
    device = gw.request_device()
    main(int(float(sys.argv[1])) if len(sys.argv) > 1 else 10**6 if gw.capabilities(device).is_cpu else 10**8)
