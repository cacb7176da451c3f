"""Faults that tests inject into kernels whose workgroups wait for each other, to run the code that recovers.

No constructor has an option for them. `faulty` returns a subclass with the faults, so that a primitive has them for
life or not at all: plans, which are kept by their content, and primitives, which are kept by their class, never mix.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar, cast

from ..errors import ArgumentError
from ..types.options import integer

ClassT = TypeVar("ClassT", bound=type)


@dataclass(frozen=True)
class Faults:
    """Faults of a primitive's kernels.

    Attributes
    ----------
    stall_every : int
        Every `stall_every`-th tile or block never publishes its total; 0 for none.
    epoch_bits : int or None
        Bits of the epoch in a state word, so that epochs wrap after few dispatches; None for all bits that there are.
    """

    stall_every: int = 0
    epoch_bits: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "stall_every", integer("stall_every", self.stall_every, 0))
        if self.epoch_bits is not None:
            object.__setattr__(self, "epoch_bits", integer("epoch_bits", self.epoch_bits))


HEALTHY = Faults()


def faulty(cls: ClassT, *, stall_every: int = 0, epoch_bits: int | None = None) -> ClassT:
    """Return a subclass of a primitive's class whose kernels have faults; see `Faults`.

    Raises
    ------
    ArgumentError
        If workgroups of the primitive do not wait for each other, or a number is out of range.
    """
    if not isinstance(getattr(cls, "_faults", None), Faults):
        raise ArgumentError(f"{cls.__name__} has no kernel whose workgroups wait for each other, so none can stall")
    faults = Faults(stall_every, epoch_bits)
    namespace = {"_faults": faults, "__doc__": cls.__doc__, "__module__": cls.__module__}
    return cast(ClassT, type(cls)(cls.__name__, (cls,), namespace))
