"""The words by which workgroups of one dispatch tell each other their totals (shaders/lib/state.wgsl)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..errors import ArgumentError
from ..types.capabilities import Capabilities
from ..types.options import integer, one_of
from .builder import PlanBuilder
from .faults import HEALTHY, Faults
from .kernel_constants import SPREAD_WORDS

STATES = ("u64", "u32x2")
#: Unsuccessful polls, unless a caller asks for another number.
SPIN_LIMIT = 256
# Bits of the epoch in a state word of each form.
_EPOCH_BITS = {"u64": 30, "u32x2": 14}
_WIDE = ("shader-int64", "shader-int64-atomic-all-ops")


def reads_by_rmw(capabilities: Capabilities) -> bool:
    """Whether words are read by a read-modify-write, which sees what a plain load might be given from a cache.

    On CPU adapters: they lose nothing by it.
    """
    return capabilities.is_cpu


@dataclass(frozen=True)
class ChainedState:
    """The words by which workgroups of one dispatch tell each other their totals (shaders/lib/state.wgsl).

    Attributes
    ----------
    form : {"u64", "u32x2"}
    spin_limit : int
        Unsuccessful polls after which a workgroup recomputes unpublished totals.
    by_rmw : bool
        Whether words are read by a read-modify-write.
    faults : Faults
        For tests: which words are never published, and how many bits the epoch has.
    """

    form: str
    spin_limit: int
    by_rmw: bool
    faults: Faults = HEALTHY

    @classmethod
    def choose(
        cls,
        capabilities: Capabilities,
        form: str | None = None,
        spin_limit: int | None = None,
        faults: Faults = HEALTHY,
    ) -> ChainedState:
        """Return the state for a device: 64-bit atomics where it has them, unless `form` says otherwise.

        Raises
        ------
        ArgumentError
            If the device cannot do it, or a number is out of range.
        """
        wide = capabilities.features.issuperset(_WIDE)
        if form is None:
            form = "u64" if wide else "u32x2"
        one_of("state", form, STATES)
        if form == "u64" and not wide:
            raise ArgumentError(
                f"state='u64' needs the features {' and '.join(map(repr, _WIDE))}, which the device of "
                f"{capabilities.adapter!r} was not made with; use state='u32x2'"
            )
        most, epoch_bits = _EPOCH_BITS[form], faults.epoch_bits
        if epoch_bits is not None and not 1 <= epoch_bits <= most:
            raise ArgumentError(f"epoch_bits={epoch_bits} must be from 1 to {most} for state={form!r}")
        return cls(
            form,
            integer("spin_limit", SPIN_LIMIT if spin_limit is None else spin_limit, 1),
            reads_by_rmw(capabilities),
            faults,
        )

    @property
    def epoch_bits(self) -> int:
        """Bits of the epoch in a state word."""
        return _EPOCH_BITS[self.form] if self.faults.epoch_bits is None else self.faults.epoch_bits

    def add_to(
        self, builder: PlanBuilder, tiles: int, suffix: str = "", *, words: int = 1, spread: bool = False
    ) -> dict[str, Any]:
        """Add the scratch buffers for that many tiles or blocks, and return what a kernel with them takes.

        These are its constants, atomics and features, and values for its template. Dispatches of other numbers of tiles
        need states of their own (the epoch), named by `suffix`. `words` is the size of an accumulator. States that are
        `spread` lie 32 bytes apart: while some tiles publish, others poll their neighbours (H200, unique of 2^24 items:
        34.9 µs to 31.9, of as many runs 54.7 to 46.6).
        """
        wide = self.form == "u64"
        control = builder.scratch(f"control{suffix}", 4)
        states = builder.scratch(f"states{suffix}", max(2 * words, SPREAD_WORDS if spread else 0) * tiles)
        return {
            "constants": {
                "SPIN_LIMIT": self.spin_limit,
                "EPOCH_BITS": self.epoch_bits,
                "STALL_EVERY": self.faults.stall_every,
            },
            "atomics": {
                "control": (control, "array<atomic<u32>>"),
                "states": (states, f"array<atomic<{'u64' if wide else 'u32'}>>"),
            },
            "features": _WIDE if wide else (),
            "control": "control",
            "state": self.form,
            "read_by_rmw": self.by_rmw,
        }

    @staticmethod
    def add_sum_to(builder: PlanBuilder) -> dict[str, Any]:
        """Add one word for a sum of integers and the number of blocks in it, and return what a kernel with it takes."""
        states = builder.scratch("states", 2), "array<atomic<u64>>"
        return {"atomics": {"states": states}, "features": _WIDE, "sums": True}

    def parameters(self) -> dict[str, Any]:
        """Return what a plan reports."""
        return {"state": self.form, "spin_limit": self.spin_limit, "read_by_rmw": self.by_rmw}
