"""Group-by, a table of 10^8 rows, and splat binning beside CUB, polars and pandas: same data, in turns, in one run.

Usage: python benchmarks/peers/chain_peer.py [--n 2^26] [--groups 10^6] [--table 10^8] [--splats 3e6] [--json FILE]
       python benchmarks/peers/chain_peer.py --peers none --n 2^14 --table 10^4 --splats 5000    (any GPU, also a
       software one); 0 leaves a part out

harness.py says what is measured, and how. CUDA's side is cub_chain_peer.cu.

group    --n rows of u32 keys below --groups and u32 values: the sum of each key. CUB: SortPairs by 32 bits, as a
         caller has it who does not know the keys, and by the bits that they need; then ReduceByKey. Ours: GroupBy,
         without and with key_bits.
table    examples/group_by.py: sum, mean, largest value and number of rows, 100 rows a key on average. Ours with columns
         and results on the GPU, and with their transfers; polars and pandas on the CPU, PyTorch on the GPU. Tables of
         the others are made before. Those that are not installed have the reason in place of times.
splats   examples/splats.py: the splats of each tile of a picture of 1920 × 1088 pixels, in order of depth. CUDA: as
         the program of the paper does it, with the copy of the number of pairs to the host and keys of 64 bits; and by
         depth first, as ours, with that copy.

For splats and tables wall is the one to compare, because CUDA waits for its number in between. Results of all sides
are compared with numpy's, CUDA's by checksums.

What was predicted and found is in docs/contribute/performance.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial
from typing import Any

import click
import harness
import numpy as np

import gridwise_py as gw
from gridwise_py.cli.options import AxisList

WIDTH, HEIGHT = 1920, 1088


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
    example = harness.load_example("group_by")
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
    example = harness.load_example("splats")
    points, size, _ = example.scene(count)
    angle = gw.asarray(np.float32([0.5]), bench.device)
    projected = example.project(points, gw.asarray(size, bench.device), angle)
    # To the size of the picture.
    scale = HEIGHT / example.HEIGHT
    x, y, depth, radius = (gw.asarray(each * scale) if k != 2 else each for k, each in enumerate(projected))
    host = {
        name: each.to_numpy() for name, each in zip(("x", "y", "depth", "radius"), (x, y, depth, radius), strict=True)
    }
    tiles, owners = example.by_numpy(*host.values(), None, WIDTH, HEIGHT)
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
        return harness.Cub(bench.cub, ("splats", count, WIDTH, HEIGHT, room, depth_first), host, sums)

    sides = {
        "ours": lambda: harness.Captured(
            bench.device, lambda: example.bin_splats(x, y, depth, radius, room, WIDTH, HEIGHT), right
        ),
        "cuda, as in the paper": lambda: cuda(0),
        "cuda, by depth first": lambda: cuda(1),
    }
    marks = {"cuda, as in the paper": ("wall", 1.5)}
    return harness.Case("splats", count, sides, "splats", facts={"pairs": int(tiles.size)}, marks=marks)


@harness.command(
    __doc__, n="2^26", peers="cub", samples=15, program="cub_chain_peer",
    more=[
        click.option("--groups", type=AxisList("n"), default="10^6", show_default=True),
        click.option("--table", "tables", type=AxisList("n"), default="10^8", show_default=True, help="Rows."),
        click.option("--splats", "counts", type=AxisList("n"), default="3000000", show_default=True),
    ],
)  # fmt: skip
def main(bench: harness.Bench, groups: list[int], tables: list[int], counts: list[int]) -> Iterator[harness.Case]:
    """Yield the cases."""
    for rows in filter(None, bench.sizes):
        for number in groups:
            yield group(bench, rows, number)
    for rows in filter(None, tables):
        yield table(bench, rows)
    for count in filter(None, counts):
        yield splats(bench, count)


if __name__ == "__main__":
    main()
