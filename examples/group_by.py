"""Sum, mean, largest value and number of rows of each key: this library beside pandas, polars and PyTorch.

docs/howto/group-by.md explains it. Usage: python examples/group_by.py [rows]
"""

import importlib
import sys
import time

import numpy as np

import gridwise_py as gw

ROWS_OF_A_GROUP = 100


def table(rows):
    """Return keys and values; keys come in any order."""
    rng = np.random.default_rng(0)
    groups = max(rows // ROWS_OF_A_GROUP, 1)
    return rng.integers(0, groups, rows, dtype=np.uint32), rng.random(rows, dtype=np.float32)


def ours(key, x, **options):
    """Aggregate columns of numpy or of the GPU; what is on the GPU stays there."""
    aggregates = {"total": (x, "sum"), "mean": (x, "mean"), "peak": (x, "max"), "rows": gw.count}
    return gw.group_by(key, aggregates, **options)


def by_numpy(key, x):
    """Do the same with numpy, with sums in f64."""
    rows = np.bincount(key)
    found = np.flatnonzero(rows)
    total = np.bincount(key, x)[found]
    peak = np.full(rows.size, -np.inf, np.float32)
    np.maximum.at(peak, key, x)
    return {"key": found, "total": total, "mean": total / rows[found], "peak": peak[found], "rows": rows[found]}


def in_pandas(key, x):
    """Return a call that does the same to a table of pandas."""
    pandas = importlib.import_module("pandas")
    frame = pandas.DataFrame({"key": key, "x": x})
    return lambda: frame.groupby("key")["x"].agg(total="sum", mean="mean", peak="max", rows="size").reset_index()


def in_polars(key, x):
    """Return a call that does the same to a table of polars."""
    polars = importlib.import_module("polars")
    frame, column = polars.DataFrame({"key": key, "x": x}), polars.col("x")
    aggregates = {"total": column.sum(), "mean": column.mean(), "peak": column.max(), "rows": polars.len()}
    return lambda: frame.group_by("key").agg(**aggregates).sort("key")


def in_torch(key, x):
    """Return a call that does the same to tensors of PyTorch: reductions by the number of each row's group."""
    torch = importlib.import_module("torch")
    place = "cuda" if torch.cuda.is_available() else "cpu"
    keys, values = torch.from_numpy(key.astype(np.int32)).to(place), torch.from_numpy(x).to(place)

    def call():
        found, group, rows = torch.unique(keys, return_inverse=True, return_counts=True)
        total = torch.zeros(len(found), device=place).scatter_add_(0, group, values)
        peak = torch.empty(len(found), device=place).scatter_reduce_(0, group, values, "amax", include_self=False)
        columns = {"key": found, "total": total, "mean": total / rows, "peak": peak, "rows": rows}
        return {name: column.cpu().numpy() for name, column in columns.items()}  # waits for the GPU

    return call


#: Other libraries, and functions that prepare a call: their tables are made before the time is taken.
OTHERS = {"polars": in_polars, "pandas": in_pandas, "torch": in_torch}


def fastest(call, repeats=3):
    """Return the shortest time of a call in seconds, and its last result; the first call compiles."""
    times = []
    for _ in range(repeats + 1):
        begin = time.perf_counter()
        result = call()
        times.append(time.perf_counter() - begin)
    return min(times[1:]), result


def agree(got, expected):
    """Whether two tables have the same groups; sums differ by their rounding."""
    got = {name: np.asarray(got[name]) for name in expected}
    exact = all(np.array_equal(got[name], expected[name]) for name in ("key", "peak", "rows"))
    return exact and all(np.allclose(got[name], expected[name], rtol=1e-4) for name in ("total", "mean"))


def compared(took, seconds):
    """Say how a time compares with that of the GPU."""
    return f"{took / seconds:.1f} times as long" if took >= seconds else f"{seconds / took:.1f} times as fast"


def main(rows):
    """Time all sides, and compare their tables with numpy's."""
    device = gw.request_device()
    key, x = table(rows)
    on_gpu = gw.asarray(key, device), gw.asarray(x, device)
    key_bits = int(key.max()).bit_length()  # fewer digits to sort by
    expected = by_numpy(key, x)

    def on_the_gpu():
        groups = ours(*on_gpu, key_bits=key_bits)
        gw.synchronize(device)
        return groups

    seconds, groups = fastest(on_the_gpu)
    print(f"{rows:,} rows, {len(expected['key']):,} groups")
    print(f"{'gridwise_py':<28}{seconds * 1e3:10.2f} ms  same groups as numpy: {agree(groups.to_numpy(), expected)}")
    sides = {"gridwise_py with transfers": lambda key, x: lambda: ours(key, x, device=device).to_numpy(), **OTHERS}
    for name, prepare in sides.items():
        try:
            took, result = fastest(prepare(key, x))
        except ImportError as error:
            print(f"{name:<28}is not installed: {error.name}")
            continue
        print(f"{name:<28}{took * 1e3:10.2f} ms  {compared(took, seconds):>18}, same groups: {agree(result, expected)}")


if __name__ == "__main__":
    is_cpu = gw.capabilities(gw.default_device()).is_cpu
    main(int(float(sys.argv[1])) if len(sys.argv) > 1 else 10**6 if is_cpu else 10**8)
