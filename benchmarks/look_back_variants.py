"""Look-backs that load less, or from other lines of memory: variants of how tiles find what comes before them.

Usage: python benchmarks/look_back_variants.py [--n 2^28] [--cases select,scan] [--variants "as it is;narrow 4"]
       [--pauses "library,0,128"] [--rounds 5] [--json FILE]

Tiles that wait load the states of the tiles before them again and again. Neighbouring states share a line of memory, so
all waiting tiles load the same few lines, and whoever publishes writes to them. Prediction for an H200, 2^28 items, on
which a select takes 559 µs, 436 without look-back: if these lines are what a select waits for, a variant that loads a
quarter of them after an unsuccessful poll, or spreads neighbours over 32 lines, saves 20 to 50 µs. If the time is the
way of a word from one multiprocessor to another, nothing changes.

narrow K            after an unsuccessful poll, only the nearest K states are loaded until the nearest one is there
narrow K at first   the first poll loads K states, too
window K            each poll loads K states
spread              neighbouring states are 32 states apart

A pause is the number of steps that a tile computes before its first poll, where kernels have one; «library» is the
library's. All variants of a case take turns. Times are medians of GPU spans of single calls; the last column is the
time relative to the first variant. Results at 2^20 items are compared with numpy's, and at n with the first variant's.
"""

from __future__ import annotations

import contextlib
import re
import statistics
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any
from unittest import mock

import click
import numpy as np
from changed_text import Change, changed_texts
from stream_variants import CASES, RUNS, check, parse_count, random_words, with_values

import gridwise_py as gw
from gridwise_py.bench.results.context import run_context
from gridwise_py.bench.sampling.interleave import samples_ns
from gridwise_py.storage.json_files import write_json

WINDOW = "  let window = sg_size * LOOK;\n"
#: A lane beyond the window polls nothing, since `window - first` wraps around, and must not count as inclusive.
INSIDE: Change = (
    re.compile(r"(first \+ \d+u), (published_\d+\.flag == INCLUSIVE)\)"),
    lambda found: f"{found[1]}, {found[2]} && {found[1]} <= window)",
)


def windowed(states: int) -> tuple[Change, ...]:
    """Return the changes for a window of so many states."""
    return ((WINDOW, f"  let window = min(sg_size * LOOK, {states}u);\n"), INSIDE)


def narrow(states: int, *, at_first: bool = False) -> tuple[Change, ...]:
    """Return the changes for polls of few states where the one before found nothing."""
    few = f"min({states}u, sg_size * LOOK)"
    return (
        (WINDOW, f"  var window = {few if at_first else 'sg_size * LOOK'};\n"),
        INSIDE,
        ("      nearest -= window;\n      continue;\n",
         "      nearest -= window;\n      window = sg_size * LOOK;\n      continue;\n"),
        ("    if (moved > 0u) { continue; }\n",
         "    if (moved > 0u) {\n      window = sg_size * LOOK;\n      continue;\n    }\n"
         f"    window = {few};\n"),
    )  # fmt: skip


#: Within each group of 1,024 states, of which the array has all, the bits of a tile's place in it change sides.
SPREAD = """fn spread(tile: u32) -> u32 {
  let apart = (tile & ~1023u) | ((tile & 31u) << 5u) | ((tile >> 5u) & 31u);
  return select(tile, apart, ((tile | 1023u) + 1u) * STATE_WORDS + 4u <= arrayLength(&states));
}
"""
STATE_USE = re.compile(r"&states\[(?:(\d+)u \+ )?(?:(\d+)u \* )?tile(?: \+ (\d+)u)?\]")


def spread_states() -> tuple[Change, ...]:
    """Return the change for states that neighbours do not share a line with."""

    def changed(found: re.Match[str]) -> str:
        text = found[0]
        uses = list(STATE_USE.finditer(text))
        if not uses:
            return text
        words = max(int(use[2] or 1) for use in uses)
        return SPREAD.replace("STATE_WORDS", f"{words}u") + STATE_USE.sub(
            lambda use: use[0].replace("tile", "spread(tile)"), text
        )

    return ((re.compile(r"fn state_publish\(.*\Z", re.DOTALL), changed),)


VARIANTS: dict[str, tuple[Change, ...]] = {
    "as it is": (),
    "narrow 1": narrow(1),
    "narrow 4": narrow(4),
    "narrow 8": narrow(8),
    "narrow 4 at first": narrow(4, at_first=True),
    "narrow 8 at first": narrow(8, at_first=True),
    "window 8": windowed(8),
    "window 16": windowed(16),
    "spread": spread_states(),
    "spread, narrow 4": (*spread_states(), *narrow(4)),
}
Make = Callable[[Any], gw.Primitive]


def made_by(case: str, share: Fraction) -> tuple[Make, Callable[..., dict[str, np.ndarray]]]:
    """Return how to make a case's primitive, and its data."""
    if case == "scan":
        return lambda device: gw.Scan(device, "u32", strategy="lookback"), _input
    if case == "reduce_by_key":
        return lambda device: gw.ReduceByKey(device, "u32", "u32", strategy="lookback"), _with_items
    if case == "scan_by_key":
        return lambda device: gw.ScanByKey(device, "u32", "u32", strategy="lookback"), _with_items
    make, data = CASES[case]
    return lambda device: make(device, share, gw.StreamTuning()), data


def _with_items(rng: np.random.Generator, n: int, share: Fraction) -> dict[str, np.ndarray]:
    data = with_values(rng, n, share)
    return {"keys": data["keys"], "items": data["values"]}


def _input(rng: np.random.Generator, n: int, share: Fraction) -> dict[str, np.ndarray]:
    return {"input": random_words(rng, n, share)["x"]}


ALL_CASES = (*CASES, "reduce_by_key", "scan_by_key", "scan")
BY_RUNS = (*RUNS, "reduce_by_key", "scan_by_key")


@contextlib.contextmanager
def surroundings(variant: str, pause: str) -> Iterator[None]:
    """Plan kernels in a variant."""
    with contextlib.ExitStack() as stack:
        if VARIANTS[variant]:
            stack.enter_context(changed_texts(*VARIANTS[variant]))
        if pause != "library":
            stack.enter_context(mock.patch("gridwise_py.primitives.engines.stream._PAUSE", int(pause)))
            stack.enter_context(mock.patch("gridwise_py.primitives.engines.stream._ITEMS_OF_NO_PAUSE", 0))
        yield


def measured(
    device: Any, case: str, n: int, names: list[tuple[str, str]], rounds: int, protocol: Any
) -> dict[str, Any]:
    """Measure a case in all variants; end the program where a result is wrong."""
    share = Fraction(1, 8) if case in BY_RUNS else Fraction(1, 2)
    make, data_of = made_by(case, share)
    data = data_of(np.random.default_rng(1), n, share)
    arrays = {name: gw.asarray(array, device) for name, array in data.items()}
    made: dict[str, gw.Primitive] = {}
    given: dict[str, gw.Array] = {}
    first: dict[str, np.ndarray] = {}
    for variant, pause in names:
        name = variant if pause == "library" else f"{variant}, pause {pause}"
        with surroundings(variant, pause):
            primitive = make(device)
            check(primitive, data, f"{case} {name}")
            # Planned here, for arrays that all variants share: so they differ in nothing else.
            outputs = primitive.execute(**arrays, **given).outputs
        found = {output: array.trim().to_numpy() for output, array in outputs.items()}
        if not given:
            first = found
            given = {
                output: gw.Array(array.buffer, array.datatype, array.size)
                for output, array in dict(primitive.execute(**arrays).outputs).items()
            }
            with surroundings(variant, pause):
                primitive.execute(**arrays, **given)
        for output, array in found.items():
            if not np.array_equal(array, first[output]):
                raise SystemExit(f"{case} {name}: {output} is not that of {names[0][0]}")
        made[name] = primitive
    times: dict[str, list[float]] = {name: [] for name in made}
    rng = np.random.default_rng(n)
    for _ in range(rounds):
        for name in map(str, rng.permutation(list(made))):
            taken = gw.measure(made[name], protocol=protocol, check=False, **arrays, **given)
            times[name].append(statistics.median(samples_ns([taken])[0]))
    for primitive in made.values():
        primitive.release()
    return {"case": case, "n": n, "rounds_ns": times, "median_ns": {k: statistics.median(v) for k, v in times.items()}}


@click.command()
@click.option("--adapter", help="Adapter by index or part of its name.")
@click.option("--n", "counts", default="2^28", show_default=True, help="Items, by commas.")
@click.option("--cases", default=",".join(ALL_CASES), show_default=True, help="By commas.")
@click.option("--variants", "wanted", default=";".join(VARIANTS), show_default=True, help="By semicolons.")
@click.option("--pauses", default="library", show_default=True, help="By commas: library, or steps.")
@click.option("--rounds", default=5, show_default=True)
@click.option("--seconds", default=0.03, show_default=True, help="Of one measurement; the warm-up is half of that.")
@click.option("--json", "json_path", type=click.Path(path_type=Path), help="Write the figures here, after each case.")
def main(adapter, counts, cases, wanted, pauses, rounds, seconds, json_path) -> None:
    """Measure and print."""
    device = gw.request_device(adapter)
    context = run_context(device)
    protocol = gw.SamplingProtocol(timeout_s=seconds, warmup_s=seconds / 2, max_warmup_s=seconds)
    names = [(variant, pause) for variant in wanted.split(";") for pause in pauses.split(",")]
    print(f"{gw.capabilities(device).adapter}; medians of {rounds} rounds")
    print(f"{'case':14} {'n':>11} {'variant':30} {'µs':>10} {'time':>7}")
    rows: list[dict[str, Any]] = []
    for n in map(parse_count, counts.split(",")):
        for case in cases.split(","):
            row = measured(device, case, n, names, rounds, protocol)
            rows.append(row)
            base = next(iter(row["median_ns"].values()))
            for name, ns in row["median_ns"].items():
                print(f"{case:14} {n:>11} {name:30} {ns / 1e3:10.1f} {ns / base:7.3f}", flush=True)
            if json_path is not None:
                write_json(json_path, {**context, "rounds": rounds, "results": rows})


if __name__ == "__main__":
    main()
