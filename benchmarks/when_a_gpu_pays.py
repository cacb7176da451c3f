"""From how many rows does a GPU pay? Functions and tables beside numpy, pandas and polars on the same machine.

Usage: python benchmarks/when_a_gpu_pays.py [--datatypes f64,f32] [--sizes 12-26] [--rows 10^8] [--json FILE]

Each side gets the same data and is timed as a caller waits for it: "numpy to numpy" has both copies, "resident" begins
and ends with Arrays on the GPU. A first call counts only if it is a peer's and takes over a second. Keys are int64
beside float64, uint32 beside float32; tables of pandas and polars are made before. A join has four left rows for each
right one.

Results are compared with those of the first side, large ones at 2^20 places; a wrong one has no time. --rows are those
of the picture of README.md: tables that are grouped, sorted and joined.
"""

from __future__ import annotations

import importlib
import platform
import re
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import click
import numpy as np

import gridwise_py as gw
from gridwise_py.bench.results.context import run_context
from gridwise_py.storage.json_files import write_json

HOST, RESIDENT = "gridwise_py, numpy to numpy", "gridwise_py, resident"
KEYS = {"f32": np.uint32, "f64": np.int64}
WINDOW, PLACES, ROWS_A_GROUP, ROWS_A_KEY = 100, 1 << 20, 100, 4
#: Calls of a side: at least 3 after the first, until 0.15 s; a peer's that takes over a second is made once.
LEAST_CALLS, MOST_CALLS, BUDGET_NS, LONG_NS = 3, 30, 150_000_000, 1_000_000_000

pd: Any = None
pl: Any = None


class Side(NamedTuple):
    """What is timed, and how its result becomes columns of numpy that can be compared."""

    call: Callable[[], Any]
    columns: Callable[[Any], Sequence[Any]] = lambda made: [made]


class Rows:
    """Keys and values of one size, on the host, in frames and on the GPU."""

    def __init__(self, n: int, datatype: str):
        rng, dtype = np.random.default_rng(n), np.dtype(datatype.replace("f", "float"))
        few = max(n // ROWS_A_KEY, 1)
        self.n = n
        self.key = rng.integers(0, max(n // ROWS_A_GROUP, 1), n).astype(KEYS[datatype])
        self.x = rng.standard_normal(n, dtype)
        self.left, self.right = (
            rng.integers(0, few, n).astype(self.key.dtype),
            rng.permutation(few).astype(self.key.dtype),
        )
        self.y = rng.standard_normal(few, dtype)
        self.on_gpu = {name: gw.asarray(each) for name, each in vars(self).items() if name != "n"}

    def arrays(self, *names: str) -> tuple[list[np.ndarray], list[gw.Array]]:
        """Return columns on the host and on the GPU."""
        return [getattr(self, name) for name in names], [self.on_gpu[name] for name in names]


def downloaded(made: Any) -> list[np.ndarray]:
    """Return results of a call as columns of numpy."""
    parts = made if isinstance(made, (tuple, list)) else (made,)
    return [part.to_numpy() if isinstance(part, gw.Array) else np.asarray(part) for part in parts]


def function(rows: Rows, name: str, ours: Callable[[Any], Any], others: Mapping[str, Side]) -> dict[str, Side]:
    """Return the sides of a function of one array."""
    ((host,), (array,)) = rows.arrays(name)

    def resident() -> Any:
        made = ours(array)
        gw.synchronize()
        return made

    return {**others, HOST: Side(lambda: ours(host), downloaded), RESIDENT: Side(resident, downloaded)}


def functions(rows: Rows) -> dict[str, Callable[[], dict[str, Side]]]:
    """Return the functions of arrays by name."""
    x, key = rows.x, rows.key
    q = [0.5, 0.99]

    def rolling() -> dict[str, Side]:
        series, column = pd and pd.Series(x), pl and pl.Series(x)
        others = {"pandas": Side(lambda: series.rolling(WINDOW).mean())} if pd else {}
        if pl:
            others["polars"] = Side(lambda: column.rolling_mean(WINDOW), lambda made: [made.fill_null(np.nan)])
        return function(rows, "x", lambda a: gw.rolling(a, WINDOW).mean(), others)

    def beside_numpy(name: str, ours: Callable[[Any], Any], numpys: Callable[[], Any]) -> Callable[[], dict[str, Side]]:
        return lambda: function(rows, name, ours, {"numpy": Side(numpys, downloaded)})

    return {
        "sum": beside_numpy("x", gw.sum, lambda: np.sum(x)),
        "cumsum": beside_numpy("x", gw.cumsum, lambda: np.cumsum(x)),
        "sort": beside_numpy("x", gw.sort, lambda: np.sort(x)),
        "argsort": beside_numpy("key", lambda a: gw.argsort(a), lambda: np.argsort(key, kind="stable")),
        "unique": beside_numpy("key", gw.unique, lambda: np.unique(key)),
        "histogram": beside_numpy(
            "x", lambda a: gw.histogram(a, 256, (-4, 4))[0], lambda: np.histogram(x, 256, (-4, 4))[0]
        ),
        "quantile": beside_numpy("x", lambda a: gw.quantile(a, q), lambda: np.quantile(x, q)),
        "rolling mean": rolling,
    }


# ---- tables


def table(
    rows: Rows,
    names: Sequence[str],
    ours: Callable[..., Any],
    pandas: Callable[[], Side],
    polars: Callable[[], Side],
    uploaded: bool = False,
) -> dict[str, Side]:
    """Return the sides of an operation on tables, whose columns are `names`; those of the peers have frames made."""
    host, arrays = rows.arrays(*names)

    def resident() -> Any:
        made = ours(*arrays)
        gw.synchronize()
        return made

    def from_numpy() -> Any:
        # With `uploaded` what is made on the way, such as positions, never leaves the GPU.
        made = ours(*(map(gw.asarray, host) if uploaded else host))
        return downloaded(made) if uploaded else made

    sides = {"pandas": pandas()} if pd else {}
    if pl:
        sides["polars"] = polars()
    return {**sides, HOST: Side(from_numpy, downloaded), RESIDENT: Side(resident, downloaded)}


def tables(rows: Rows) -> dict[str, Callable[[], dict[str, Side]]]:
    """Return the operations on tables by name; each makes whole columns."""
    words = ("sum", "mean", "min", "max")

    def columns(made: Any) -> list[Any]:
        return [made[name] for name in made.columns]

    def group() -> dict[str, Side]:
        def ours(key: Any, x: Any) -> Any:
            made = gw.group_by(key, rows="size", **{word: (x, word) for word in words})
            return made.keys, *(made[word] for word in (*words, "rows"))

        def pandas() -> Side:
            groups = pd.DataFrame({"key": rows.key, "x": rows.x}).groupby("key")
            return Side(lambda: groups["x"].agg([*words, "size"]).reset_index(), columns)

        def polars() -> Side:
            frame, x = pl.DataFrame({"key": rows.key, "x": rows.x}), pl.col("x")
            aggregates = [*(getattr(x, word)().alias(word) for word in words), pl.len()]
            return Side(lambda: frame.group_by("key").agg(aggregates), lambda made: columns(made.sort("key")))

        return table(rows, ("key", "x"), ours, pandas, polars)

    def sort() -> dict[str, Side]:
        def ours(key: Any, x: Any) -> Any:
            return gw.sort_pairs(key, x)

        def pandas() -> Side:
            frame = pd.DataFrame({"key": rows.key, "x": rows.x})
            return Side(lambda: frame.sort_values("key", kind="stable"), columns)

        def polars() -> Side:
            frame = pl.DataFrame({"key": rows.key, "x": rows.x})
            return Side(lambda: frame.sort("key", maintain_order=True), columns)

        return table(rows, ("key", "x"), ours, pandas, polars)

    def join() -> dict[str, Side]:
        def ours(left: Any, x: Any, right: Any, y: Any) -> Any:
            places, matches = gw.join(left, right)
            return gw.take(left, places), gw.take(x, places), gw.take(y, matches)

        def pandas() -> Side:
            left, right = (pd.DataFrame(each) for each in halves())
            return Side(lambda: left.merge(right, on="key"), columns)

        def polars() -> Side:
            left, right = (pl.DataFrame(each) for each in halves())
            return Side(lambda: left.join(right, on="key", maintain_order="left"), columns)

        def halves() -> tuple[dict[str, Any], dict[str, Any]]:
            return {"key": rows.left, "x": rows.x}, {"key": rows.right, "y": rows.y}

        return table(rows, ("left", "x", "right", "y"), ours, pandas, polars, uploaded=True)

    return {"group_by, 5 aggregates": group, "sort a table of two columns": sort, "join with a quarter as many": join}


# ---- measuring


def agree(got: Sequence[Any], expected: Sequence[Any], datatype: str) -> bool:
    """Whether columns are equal, floats within the rounding of sums; of long ones some places are compared."""
    for one, other in zip(got, expected, strict=True):
        a, b = np.atleast_1d(one), np.atleast_1d(other)
        if a.shape != b.shape:
            return False
        step = max(a.size // PLACES, 1)
        a, b = (np.asarray(each[::step], np.float64) for each in (a, b))
        most = np.nanmax(np.abs(b), initial=1.0)
        if not np.allclose(a, b, rtol=0, atol=most * (1e-3 if datatype == "f32" else 1e-9), equal_nan=True):
            return False
    return True


def time_ns(call: Callable[[], Any]) -> tuple[int, Any]:
    """Return how long a call takes, and what it makes."""
    begin_ns = time.perf_counter_ns()
    made = call()
    return time.perf_counter_ns() - begin_ns, made


def settle(call: Callable[[], Any]) -> None:
    """Call until three calls in a row are about as fast as the fastest, for a second: kernels are compiled beside."""
    best_ns, calm, end_s = float("inf"), 0, time.monotonic() + 1
    while calm < 3 and time.monotonic() < end_s:
        ns, _ = time_ns(call)
        best_ns = min(best_ns, ns)
        calm = calm + 1 if ns < 1.5 * best_ns else 0


def times_ns(side: Side, compiles: bool) -> tuple[list[int], Any]:
    """Return the times of calls, and the last result; the first one counts only if it is long and compiled nothing."""
    first_ns, made = time_ns(side.call)
    if first_ns > LONG_NS and not compiles:
        return [first_ns], made
    if compiles:
        settle(side.call)
    times: list[int] = []
    while len(times) < LEAST_CALLS or (sum(times) < BUDGET_NS and len(times) < MOST_CALLS):
        made = None  # what the last call made is free for the next one
        ns, made = time_ns(side.call)
        times.append(ns)
    return times, made


def measured(name: str, sides: Mapping[str, Side], n: int, datatype: str) -> dict[str, Any]:
    """Return a row of the file; the first side says what is right."""
    row: dict[str, Any] = {"operation": name, "datatype": datatype, "n": n, "sides": {}, "wrong": [], "calls": {}}
    expected: Any = None
    for label, side in sides.items():
        times, made = times_ns(side, compiles=label in (HOST, RESIDENT))
        got = [np.asarray(column) for column in side.columns(made)]
        expected = got if expected is None else expected
        right = agree(got, expected, datatype)
        row["calls"][label] = len(times)
        row["sides"][label] = statistics.median(times) if right else None
        if not right:
            row["wrong"].append(label)
    return row


def all_rows(datatypes: Sequence[str], sizes: Sequence[int], most: int, only: str) -> Iterator[dict[str, Any]]:
    """Yield what is measured, the rows of the picture first."""
    for n, datatype in [(most, "f64"), *((n, datatype) for n in sizes for datatype in datatypes)]:
        if not n:
            continue
        rows = Rows(n, datatype)
        made = tables(rows) if n == most else functions(rows) | tables(rows)
        for name, sides in made.items():
            if re.search(only, name):
                yield measured(name, sides(), n, datatype)


def best_peer(row: Mapping[str, Any]) -> tuple[str, float] | None:
    """Return the fastest side of a row that is not ours, and its time."""
    peers = {name: ns for name, ns in row["sides"].items() if name not in (HOST, RESIDENT) and ns is not None}
    return min(peers.items(), key=lambda one: one[1]) if peers else None


def pays_from(rows: Sequence[Mapping[str, Any]], label: str) -> int | None:
    """Return the least n of an operation's rows from which a side of ours is faster than every peer; None if never."""
    least = None
    for row in sorted(rows, key=lambda row: -row["n"]):
        ours, best = row["sides"].get(label), best_peer(row)
        if ours is None or best is None or ours >= best[1]:
            break
        least = row["n"]
    return least


def version_of(module: str) -> str | None:
    """Return the version of a peer, which is imported; None where it is not installed."""
    try:
        found = globals()[{"pandas": "pd", "polars": "pl"}[module]] = importlib.import_module(module)
    except ImportError:
        return None
    return found.__version__


def cpu_name() -> str:
    """Return the CPU's name."""
    path = Path("/proc/cpuinfo")
    found = re.search(r"model name\s*: (.*)", path.read_text(encoding="utf-8")) if path.exists() else None
    return found[1] if found else platform.processor()


@click.command(help=f"\b\n{__doc__}".replace("\n\n", "\n\n\b\n"))
@click.option("--datatypes", default="f64,f32", show_default=True)
@click.option("--sizes", default="12-26", show_default=True, help="Powers of two of the rows.")
@click.option("--rows", default="10^8", show_default=True, help="Rows of the picture's tables; 0 leaves them out.")
@click.option("--only", default="", help="Operations that this pattern finds.")
@click.option("--minutes", default=9.0, show_default=True, help="After these, nothing begins.")
@click.option("--json", "json_path", type=click.Path(path_type=Path), help="Write the figures here.")
def main(datatypes: str, sizes: str, rows: str, only: str, minutes: float, json_path: Path | None) -> None:
    """Print a line for each size and operation, then from how many rows a GPU pays."""
    peers = {name: version_of(name) for name in ("pandas", "polars")}
    device, begin_s = gw.default_device(), time.monotonic()
    first, _, last = sizes.partition("-")
    base, _, power = rows.partition("^")
    powers = [1 << k for k in range(int(first), int(last or first) + 1)]
    kept: list[dict[str, Any]] = []
    document = {**run_context(device), "cpu": cpu_name(), "peers": peers, "complete": False, "results": kept}
    print(f"{device.adapter.info['device']} beside {document['cpu']}, peers {peers}; milliseconds")
    for row in all_rows(datatypes.split(","), powers, int(base) ** int(power or 1), only):
        kept.append(row)
        shown = (f"{label} {ns / 1e6:.3g}" for label, ns in row["sides"].items() if ns is not None)
        wrong = f"; WRONG: {', '.join(row['wrong'])}" if row["wrong"] else ""
        print(f"{row['operation']}, {row['datatype']}, {row['n']:,}: {', '.join(shown)}{wrong}", flush=True)
        if json_path is not None:
            write_json(json_path, document)
        if time.monotonic() - begin_s > 60 * minutes:
            print("the time is over")
            break
    else:
        document["complete"] = True
    for name, datatype in dict.fromkeys((row["operation"], row["datatype"]) for row in kept):
        some = [row for row in kept if (row["operation"], row["datatype"]) == (name, datatype)]
        last, words = max(some, key=lambda row: row["n"]), []
        for label in (HOST, RESIDENT):
            ours, best = last["sides"].get(label), best_peer(last)
            times = f", at {last['n']:,} {best[1] / ours:.2f} times as fast as {best[0]}" if ours and best else ""
            words.append(f"{label} from {pays_from(some, label) or 'no'} rows{times}")
        print(f"{name}, {datatype}: {'; '.join(words)}")
    if json_path is not None:
        write_json(json_path, document)


if __name__ == "__main__":
    main()
