"""The common part of scans: a tile needs the total of those before it, by a look-back or by kernels over blocks."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, ClassVar

from ... import settings
from ...errors import ArgumentError
from ...planning.lookback_state import ChainedState
from ...settings import SCAN_STRATEGIES, ScanStrategy
from ...tuning.options import ScanTuning
from ...tuning.rows import Shape, Shapes
from ...types.options import one_of
from ..waiting import Waiting
from .operator import BlockWindow, OperatorPrimitive, blocks_of


class LookBackPrimitive(OperatorPrimitive):
    """Base of scans, and of what works like one. A constructor sets `tuning`, and calls `_set_up` last."""

    #: Name of the table of shapes of the kernels with a look-back.
    _kernel: ClassVar[str]
    tuning: ScanTuning

    def _set_up(self, strategy: ScanStrategy | None) -> None:
        """Take the strategy that a caller asked for, and choose shapes and the form of state words.

        Raises
        ------
        ArgumentError
            If the strategy is unknown, or does not go with a fixed order; if the tuning does not suit the device.
        """
        #: None leaves the choice to the environment.
        self._requested: ScanStrategy | None = self._checked(strategy)
        self._state = ChainedState.choose(self.capabilities, self.tuning.state, self.tuning.spin_limit, self._faults)
        self._waiting = Waiting(self.capabilities, self._device, self._state.form, self.tuning, self.mode)
        self._blocks_shapes: Shapes[Shape] = self._shapes_for("scan", self.tuning)
        self._shapes: Shapes[Shape] = self._shapes_for("scan" if self._fixed_order else self._kernel, self.tuning)

    def _checked(self, strategy: ScanStrategy | None) -> ScanStrategy | None:
        if strategy is not None:
            one_of("strategy", strategy, SCAN_STRATEGIES)
        if self._fixed_order is None:
            return strategy
        if strategy == "lookback":
            raise ArgumentError(
                f"strategy='lookback' together with {self._fixed_order}: how a look-back groups its additions depends "
                f"on timing; leave out one of the two"
            )
        return "reduce_then_scan"

    @cached_property
    def strategy(self) -> ScanStrategy:
        """The requested strategy, by argument or environment; ``"auto"`` if none was requested.

        A fixed order (`deterministic`, `compensated`) requests reduce-then-scan. The environment is read once, when
        this or the first plan needs it.
        """
        return settings.scan_strategy() if self._requested is None else self._requested

    @property
    def state(self) -> str:
        """Form of the look-back's state words."""
        return self._state.form

    def choose_strategy(self) -> str:
        """Return the strategy for a call; with ``"auto"`` this may test the device."""
        return self._waiting.chosen(self.strategy)

    def _lookback_parameters(self, shape: Shape, tiles: Sequence[int], *, look: int) -> dict[str, Any]:
        """Return what a plan with a look-back reports, given the tiles of its windows."""
        return {
            "workgroup_size": shape.workgroup_size,
            "vecs": shape.vecs,
            "shape": self._shapes.source_of(shape),
            "tiles": sum(tiles),
            "windows": len(tiles),
            "tickets": self._waiting.tickets,
            "look_back_window": look * self.mode.size,
            **self._state.parameters(),
        }

    def _blocks_parameters(self, shape: Shape, shapes: Shapes[Shape], windows: Sequence[BlockWindow]) -> dict[str, Any]:
        """Return what a plan with kernels over blocks reports."""
        return {
            "workgroup_size": shape.workgroup_size,
            "vecs": shape.vecs,
            "shape": shapes.source_of(shape),
            "blocks": blocks_of(windows),
            "windows": len(windows),
        }
