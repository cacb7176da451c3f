"""Whether the allocator ever gives one memory to two live Arrays, and whether its memory stays flat.

Usage: python benchmarks/memory_soak.py [--calls N] [--seed N]

Arrays of random sizes are made in all ways, filled with a number of their own, sliced, dropped, recorded on encoders
that are submitted later, destroyed, handed out and forgotten in cycles. Each Array that is alive must keep its number.
"""

from __future__ import annotations

import gc
import random
import sys
import time
from typing import Any

import click
import numpy as np
import wgpu

import gridwise_py as gw

MOST_LIVE = 40
MOST_ITEMS = 5000


class Soak:
    """Live Arrays on one device, each with the number that all of its items have."""

    def __init__(self, device: wgpu.GPUDevice, seed: int):
        self.device = device
        self.random = random.Random(seed)
        self.live: list[tuple[gw.Array, int]] = []
        self.pending: list[Any] = []  # finished command buffers, with the numbers that their outputs will have
        self.copy, self.add = gw.Copy(device), gw.VectorAdd(device)
        self.number = 0
        self.checked = 0

    def _pick(self) -> tuple[gw.Array, int]:
        return self.live[self.random.randrange(len(self.live))]

    def _upload(self) -> None:
        self.number += 1
        n = int(2 ** self.random.uniform(0, np.log2(MOST_ITEMS)))
        items = np.full(n, self.number, dtype=np.uint32)
        if self.random.random() < 0.5:
            array = gw.asarray(items, self.device)
        else:
            array = gw.empty(n, "u32", self.device).copy_from(items)
        self.live.append((array, self.number))

    def _copy(self) -> None:
        array, number = self._pick()
        self.live.append((self.copy.execute(input=array).output, number))

    def _double(self) -> None:
        array, number = self._pick()
        self.live.append((self.add.execute(a=array, b=array).output, 2 * number % (1 << 32)))

    def _slice(self) -> None:
        array, number = self._pick()
        begin = self.random.randrange(array.size)
        self.live.append((array[begin : begin + 1 + self.random.randrange(array.size)], number))

    def _record(self) -> None:
        """Record a copy, and drop what only the recording needs."""
        array, number = self._pick()
        encoder = self.device.create_command_encoder()
        output = self.copy.record(encoder, input=array, output=None)["output"]
        self.copy.release()
        keeps = self.random.random() < 0.5
        self.pending.append((encoder.finish(), output if keeps else None, number))

    def _submit(self) -> None:
        self.random.shuffle(self.pending)
        while self.pending:
            commands, output, number = self.pending.pop()
            if self.random.random() < 0.7:
                self.device.queue.submit([commands])
                if output is not None:
                    self.live.append((output, number))

    def _end(self) -> None:
        """Drop an Array, in one of the ways in which one goes."""
        array, number = self.live.pop(self.random.randrange(len(self.live)))
        how = self.random.random()
        if how < 0.02 and not self.pending:  # a submission with a destroyed Array is refused
            array.destroy()
            self.live = [(a, n) for a, n in self.live if a.lease is not array.lease]
        elif how < 0.05:
            assert array.buffer.size >= array.nbytes  # whoever has it may keep it
            if self.random.random() < 0.5:
                self.live.append((array, number))
        elif how < 0.1:
            cycle: list[Any] = [array]
            cycle.append(cycle)

    def _check(self, array: gw.Array, number: int) -> None:
        found = array.to_numpy()
        assert (found == number).all(), f"{array!r} has {np.unique(found)[:5]}, not {number}"
        self.checked += 1

    def step(self) -> None:
        """Do one thing."""
        if not self.live:
            self._upload()
        doing = self.random.choices(
            [self._upload, self._copy, self._double, self._slice, self._record, self._submit],
            [4, 4, 3, 2, 1, 0.5],
        )[0]
        doing()
        while len(self.live) > MOST_LIVE or (self.live and self.random.random() < 0.4):
            self._end()
        if self.live and self.random.random() < 0.05:
            self._check(*self._pick())
        if self.random.random() < 0.001:
            gw.empty_cache(self.device)

    def run(self, calls: int) -> list[int]:
        """Do many things; return what the device's memory was in tenths of the way, in bytes."""
        levels: list[int] = []
        for i in range(calls):
            self.step()
            if i % max(1, calls // 10) == 0:
                gc.collect()
                stats = gw.memory_stats(self.device)
                levels.append(stats.in_use_bytes + stats.cached_bytes)
        self._submit()
        for array, number in self.live:
            self._check(array, number)
        return levels


@click.command()
@click.option("--adapter", help="Adapter by index or part of its name.")
@click.option("--calls", default=100_000, show_default=True)
@click.option("--seed", default=0, show_default=True)
def main(adapter: str | None, calls: int, seed: int) -> None:
    """Soak the allocator; exit 1 where an Array lost its content or memory grows."""
    device = gw.request_device(adapter)
    soak = Soak(device, seed)
    begin = time.monotonic()
    levels = soak.run(calls)
    print(
        f"{gw.capabilities(device).adapter}: {calls} calls in {time.monotonic() - begin:.0f} s, {soak.checked} checks"
    )
    print(f"memory in use and kept, KiB: {', '.join(str(level >> 10) for level in levels)}")
    print(gw.memory_stats(device))
    # What leaked with every call would be twice as much.
    sys.exit(int(max(levels[5:]) > 2 * max(levels[:5])))


if __name__ == "__main__":
    main()
