"""How workgroups wait for each other in a look-back, as one value: what a caller, the device and its self-test say."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import NamedTuple

import wgpu

from ..planning.lookback_state import SPIN_LIMIT
from ..runtime.lookback_selftest import known_verdict, lookback_verdict
from ..tuning.facts import facts_of
from ..tuning.model import WINDOW_TILES, few_items
from ..tuning.options import ScanTuning, SortTuning, StreamTuning
from ..tuning.rows import MOST_ITEMS, Shape, Shapes
from ..types.capabilities import Capabilities, LookbackVerdict, SubgroupMode

_PASSED = LookbackVerdict(coherent=True, progress=True, needs_tickets=False, recovers=True)


class Polls(NamedTuple):
    """How many tiles each lane reads at once, and whether their states lie 32 bytes apart, not side by side."""

    look: int
    spread: bool


class Waiting:
    """The policy of a primitive; the self-test is asked at the first plan that depends on it.

    `Capabilities.lookback` decides, else a test of the device; where there is neither, GPUs are taken for safe, and CPU
    adapters are not.

    Parameters
    ----------
    capabilities : Capabilities
    device : wgpu.GPUDevice or None
    state : str
        Form of the state words.
    tuning
    mode : SubgroupMode
    spin_limit : int
        Unless the tuning says another number.
    """

    def __init__(
        self, capabilities: Capabilities, device: wgpu.GPUDevice | None, state: str,
        tuning: ScanTuning | SortTuning | StreamTuning, mode: SubgroupMode, spin_limit: int = SPIN_LIMIT,
    ):  # fmt: skip
        self._capabilities, self._device, self._state = capabilities, device, state
        self._may_be_first = device is not None and capabilities.lookback is None and not capabilities.is_cpu
        self._tuning, self._mode = tuning, mode
        #: Unsuccessful polls before a tile is computed again.
        self.spin_limit = spin_limit if tuning.spin_limit is None else tuning.spin_limit

    def likely(self) -> Capabilities | None:
        """Return, once, the capabilities of a GPU that passes the self-test, as most do, where that was not run yet.

        Of a CPU there are none: it has its cores for the test, or to compile.
        """
        may_be_first, self._may_be_first = self._may_be_first, False
        if not may_be_first or self._device is None or known_verdict(self._device, self._state) is not None:
            return None
        return replace(self._capabilities, lookback=_PASSED)

    @cached_property
    def _verdict(self) -> LookbackVerdict | None:
        known = self._capabilities.lookback
        return lookback_verdict(self._device, self._state) if known is None and self._device is not None else known

    def looks(self, n: int, shapes: Shapes[Shape], words: int) -> list[tuple[Shape, Polls]]:
        """Return the shape for `n` items, and how its tiles are polled; then both for other lengths.

        A tile's state has so many `words`.
        """
        few = 0 if self._capabilities.is_cpu else few_items(facts_of(self._capabilities)) // 2
        # The text of a poll is repeated for each tile: with four of three words SwiftShader compiled for ever.
        most = max(1, 4 // words)
        lanes = [self._tuning.look or max(1, min(most, tiles // self._mode.size)) for tiles in WINDOW_TILES]
        looks = Polls(lanes[0], spread=False), Polls(lanes[1], spread=True)
        lengths = (n, few // 2, few, *(up_to or MOST_ITEMS for up_to, _ in shapes.rows))
        return list(dict.fromkeys((shapes.at(each), looks[each >= few]) for each in lengths))

    @property
    def is_safe(self) -> bool:
        """Whether look-back is trusted on the device."""
        return not self._capabilities.is_cpu if self._verdict is None else self._verdict.safe

    @property
    def tickets(self) -> bool:
        """Whether tiles are taken from a counter."""
        if self._tuning.tickets is not None:
            return self._tuning.tickets
        # lavapipe starts in the middle of the grid, whatever a busy machine made of the test.
        return self._capabilities.is_cpu or (self._verdict is not None and self._verdict.needs_tickets)

    def chosen(self, strategy: str) -> str:
        """Return a strategy; for ``"auto"`` that which suits the device."""
        if strategy != "auto":
            return strategy
        return "lookback" if self.is_safe else "reduce_then_scan"
