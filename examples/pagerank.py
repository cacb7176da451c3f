"""PageRank of a generated graph, from a list of edges to the ranks; the loop stays on the GPU.

The list of edges becomes a sparse matrix (CSR): sort by row and column, add up duplicates, search where each row begins.
Its product with a vector is one dispatch. docs/sparse.md explains each step.

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
    merged = gw.ReduceByKey(rows.device, "u64", "f32", gw.Add).execute(keys=keys, items=values).outputs
    keys, values = merged["output_keys"].trim(), merged["output_values"].trim()  # the only time that the CPU waits
    words = keys.view(np.uint32)
    columns, rows = (gw.asarray(words[2 * gw.index + k], size=keys.size) for k in (0, 1))
    return gw.searchsorted(rows, gw.index, size=size + 1), columns, values


def pagerank(matrix, total, iterations):
    """Return the ranks and how much the last iteration changed them; `total` is the weight that leaves each node."""
    indptr, columns, values = matrix
    device, nodes = indptr.device, total.size
    rank = gw.full(nodes, 1 / nodes, np.float32, device)
    share = gw.asarray(gw.where(total > 0, DAMPING / total, 0.0))
    with gw.capture(device) as iteration:
        sent = gw.asarray(share * rank)
        stuck = gw.sum(gw.where(total > 0, 0.0, rank))  # of the nodes that no edge leaves
        arrived = gw.SegmentedReduce(device, values * sent[columns], gw.Add).execute(offsets=indptr).output
        ranked = arrived + (DAMPING * stuck + (1 - DAMPING)) / nodes
        change = gw.sum(abs(ranked - rank))
        gw.Map(device, ranked).execute(output=rank)
    for _ in range(iterations):
        iteration.execute()
    return rank, change


# ---- the rest makes a graph, takes times and checks


def generated(nodes, edges, seed=0):
    """Return source, target and weight of random edges; as in the web, few nodes have many and most have few."""
    rng = np.random.default_rng(seed)
    names = rng.permutation(nodes).astype(np.uint32)
    source, target = (names[(nodes * rng.random(edges) ** 3).astype(np.uint32)] for _ in range(2))
    return source, target, rng.integers(1, 5, edges).astype(np.float32)


def leaving(source, weight, nodes):
    """Return the weight of the edges that leave each node."""
    by_source = gw.sort_pairs(source, weight)
    offsets = gw.searchsorted(by_source[0], gw.index, size=nodes + 1)
    return gw.SegmentedReduce(source.device, "f32", gw.Add).execute(items=by_source[1], offsets=offsets).output


def reference(source, target, weight, nodes, iterations):
    """Return the matrix, the ranks and the change of the last iteration, computed by scipy in double precision."""
    matrix = scipy.sparse.coo_array((weight.astype(np.float64), (target, source)), (nodes, nodes)).tocsr()
    matrix.sum_duplicates()
    total = np.bincount(source, weight, nodes)
    share = np.divide(DAMPING, total, out=np.zeros(nodes), where=total > 0)
    rank = np.full(nodes, 1 / nodes)
    for _ in range(iterations):
        before = rank
        rank = matrix @ (share * rank) + (DAMPING * rank[total == 0].sum() + (1 - DAMPING)) / nodes
    return matrix, rank, np.abs(rank - before).sum()


def timed_ms(device, function):
    """Return the result of a function's second call and how long it took, until the GPU was done."""
    function()
    gw.synchronize(device)
    begin = time.perf_counter()
    result = function()
    gw.synchronize(device)
    return result, (time.perf_counter() - begin) * 1e3


def main():
    """Run it, and compare with scipy."""
    device = gw.request_device()
    edges = int(float(sys.argv[1])) if len(sys.argv) > 1 else 10**6 if gw.capabilities(device).is_cpu else 10**8
    nodes = max(edges // 16, 1)
    graph = generated(nodes, edges)
    source, target, weight = (gw.asarray(items, device) for items in graph)

    matrix, ms = timed_ms(device, lambda: csr(target, source, weight, nodes))
    entries = matrix[2].size
    print(f"matrix: {entries:,} entries of {edges:,} edges, {ms:.2f} ms, {edges / ms * 1e3:.3g} edges/s")
    total = leaving(source, weight, nodes)
    (rank, change), ms = timed_ms(device, lambda: pagerank(matrix, total, ITERATIONS))
    print(f"ranks:  {ITERATIONS} iterations, {ms / ITERATIONS:.3f} ms each; the last one changed {change.item():.2e}")

    expected, wanted, last = reference(*graph, nodes, ITERATIONS)
    parts = zip(matrix, (expected.indptr, expected.indices, expected.data), strict=True)
    print(f"matrix equal to scipy's: {all(np.array_equal(ours.to_numpy(), theirs) for ours, theirs in parts)}")
    error = np.max(np.abs(rank.to_numpy() - wanted) / wanted)
    print(f"ranks within 1e-5 of scipy's in double precision: {error < 1e-5} ({error:.1e}; its last change {last:.2e})")


if __name__ == "__main__":
    main()
