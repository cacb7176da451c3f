"""The words by which workgroups of one dispatch tell each other their totals (shaders/lib/state.wgsl)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..errors import ArgumentError
from ..types.capabilities import Capabilities
from ..types.options import integer
from .builder import PlanBuilder

__all__ = ["STATES", "ChainedState"]

STATES = ("u64", "u32x2")
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
    epoch_bits : int
    spin_limit : int
        Unsuccessful polls after which a workgroup recomputes unpublished totals.
    stall_every : int
        For tests: every k-th word is never published; 0 for none.
    by_rmw : bool
        Whether words are read by a read-modify-write.
    """

    form: str
    epoch_bits: int
    spin_limit: int
    stall_every: int
    by_rmw: bool

    @classmethod
    def choose(
        cls, capabilities: Capabilities, form: str | None, epoch_bits: int | None, spin_limit: int, stall_every: int
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
        if form not in STATES:
            raise ArgumentError(f"state={form!r} is unknown; known are {', '.join(STATES)}")
        if form == "u64" and not wide:
            raise ArgumentError(
                f"state='u64' needs the features {' and '.join(map(repr, _WIDE))}, which the device of "
                f"{capabilities.adapter!r} was not made with; use state='u32x2'"
            )
        most = _EPOCH_BITS[form]
        epoch_bits = most if epoch_bits is None else integer("epoch_bits", epoch_bits)
        if not 1 <= epoch_bits <= most:
            raise ArgumentError(f"epoch_bits={epoch_bits} must be from 1 to {most} for state={form!r}")
        spin_limit, stall_every = integer("spin_limit", spin_limit, 1), integer("stall_every", stall_every, 0)
        return cls(form, epoch_bits, spin_limit, stall_every, reads_by_rmw(capabilities))

    def add_to(self, builder: PlanBuilder, words: int, suffix: str = "") -> dict[str, Any]:
        """Add the scratch buffers for that many words, and return what a kernel with them takes.

        These are its constants, atomics and features, and values for its template. Dispatches of other numbers of words
        need states of their own (the epoch), named by `suffix`.
        """
        wide = self.form == "u64"
        control, states = f"control{suffix}", f"states{suffix}"
        builder.scratch(control, 4)
        builder.scratch(states, 2 * words)
        return {
            "constants": {
                "SPIN_LIMIT": self.spin_limit,
                "EPOCH_BITS": self.epoch_bits,
                "STALL_EVERY": self.stall_every,
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

    def parameters(self) -> dict[str, Any]:
        """Return what a plan reports."""
        return {"state": self.form, "spin_limit": self.spin_limit, "read_by_rmw": self.by_rmw}
