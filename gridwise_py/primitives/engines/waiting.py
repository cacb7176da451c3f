"""How workgroups wait for each other in a look-back, as one value: what a caller, the device and its self-test say."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import Protocol

import wgpu

from ...planning.lookback_state import SPIN_LIMIT
from ...runtime.lookback_selftest import LookBackChoice, known_verdict, look_back_choice
from ...tuning.shapes import look_back_tiles
from ...types.capabilities import Capabilities, LookbackVerdict, SubgroupMode

_PASSED = LookbackVerdict(coherent=True, progress=True, needs_tickets=False, recovers=True)


class _Tuned(Protocol):
    """The fields that tunings of kernels with a look-back have; None leaves the choice to the library."""

    @property
    def look(self) -> int | None: ...
    @property
    def tickets(self) -> bool | None: ...
    @property
    def spin_limit(self) -> int | None: ...


class Waiting:
    """The policy of a primitive; the self-test is asked at the first plan that depends on it.

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
        self, capabilities: Capabilities, device: wgpu.GPUDevice | None, state: str, tuning: _Tuned,
        mode: SubgroupMode, spin_limit: int = SPIN_LIMIT,
    ):  # fmt: skip
        self._of = (capabilities, device, state)
        self._may_be_first = capabilities.lookback is None and not capabilities.is_cpu
        self._tuning = tuning
        #: Tiles that each lane reads at once.
        self.look: int = look_back_tiles(mode) if tuning.look is None else tuning.look
        #: Unsuccessful polls before a tile is computed again.
        self.spin_limit: int = spin_limit if tuning.spin_limit is None else tuning.spin_limit

    def likely(self) -> Capabilities | None:
        """Return, once, the capabilities of a GPU that passes the self-test, as most do, where that was not run yet.

        Of a CPU there are none: it has its cores for the test, or to compile.
        """
        (capabilities, device, state), may_be_first = self._of, self._may_be_first
        self._may_be_first = False
        if not may_be_first or device is None or known_verdict(device, state) is not None:
            return None
        return replace(capabilities, lookback=_PASSED)

    @cached_property
    def _choice(self) -> LookBackChoice:
        return look_back_choice(*self._of)

    @property
    def is_safe(self) -> bool:
        """Whether look-back is trusted on the device."""
        return self._choice.safe

    @property
    def tickets(self) -> bool:
        """Whether tiles are taken from a counter."""
        return self._choice.needs_tickets if self._tuning.tickets is None else self._tuning.tickets

    def chosen(self, strategy: str) -> str:
        """Return a strategy; for ``"auto"`` that which suits the device."""
        if strategy != "auto":
            return strategy
        return "lookback" if self.is_safe else "reduce_then_scan"
