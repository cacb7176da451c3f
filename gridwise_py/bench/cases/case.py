"""Cases of a benchmark: primitive, size and data."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import wgpu

from ...backend.wgpu_native import wait_idle
from ...errors import LimitError
from ...primitives import REGISTRY
from ...primitives.base import Primitive
from ...primitives.operator import OperatorPrimitive
from ...primitives.sort import SortPrimitive
from ...runtime.bound_call import BoundCall
from ...types.capabilities import Capabilities
from ...types.datatype import as_datatype
from ...types.operators import Multiply, as_binop
from .distributions import UNIFORM, random_input
from .names import case_name

__all__ = ["YARDSTICK", "Case", "array_items", "warm_up"]

#: The primitive that the others are compared with: it runs at each n.
YARDSTICK = "copy"


@dataclass(frozen=True)
class Case:
    """One primitive at one size.

    Attributes
    ----------
    primitive : str
        A key of `REGISTRY`.
    n : int
        Items; of a matrix product rows and columns.
    datatype : str
    op : str or None
        None if the primitive has no operator.
    distribution : str or None
        Of the first input; None if the primitive's time does not depend on the data, which is then uniform.
    """

    primitive: str
    n: int
    datatype: str
    op: str | None = None
    distribution: str | None = None

    def make(self, device: wgpu.GPUDevice | None, capabilities: Capabilities | None = None) -> Primitive:
        """Make the primitive; without a device, for planning only, with `capabilities`."""
        cls = REGISTRY[self.primitive]
        options, _ = cls.at_size(self.n)
        if capabilities is not None:
            options["capabilities"] = capabilities
        make = cast(Callable[..., Primitive], cls)  # what is registered takes a datatype, unlike its base class
        if self.op is None:
            return make(device, self.datatype, **options)
        return make(device, self.datatype, as_binop(self.op), **options)

    def inputs(self, primitive: Primitive, seed: int) -> dict[str, np.ndarray]:
        """Return random data for it, the same for the same seed.

        Raises
        ------
        LimitError
            If the device's buffers are too small; raised before memory is allocated on the host.
        """
        rng = np.random.default_rng([seed, self.n])
        found: dict[str, np.ndarray] = {}
        for argument, length in primitive.at_size(self.n)[1].items():
            # An argument of any datatype has that of the case.
            dtype = (primitive.signature.datatype(argument) or as_datatype(self.datatype)).dtype
            size_bytes, limit = length * dtype.itemsize, primitive.capabilities.limits["max-buffer-size"]
            if size_bytes > limit:
                raise LimitError(
                    f"{self} needs buffers of {size_bytes} bytes, but the device's max-buffer-size is {limit}"
                )
            if self.op == Multiply.name and dtype.kind == "f":
                # ±1: a product of many other floats would overflow or underflow.
                found[argument] = rng.choice(np.array([-1, 1], dtype=dtype), length)
            else:
                name = UNIFORM if found or self.distribution is None else self.distribution
                rule = primitive.signature.arguments[argument]
                found[argument] = random_input(rule, name, rng, length, dtype)
        return found

    @property
    def axes(self) -> dict[str, str | None]:
        """The rest of the identity, besides primitive and n."""
        axes = {"datatype": self.datatype, "op": self.op}
        return axes if self.distribution is None else axes | {"distribution": self.distribution}

    @classmethod
    def build(cls, primitive: str, n: int, datatype: str, op: str, distribution: str = UNIFORM) -> Case:
        """Return a case, without the operator where the primitive has none, and with a distribution if it sorts."""
        kind = REGISTRY[primitive]
        takes_op, sorts = issubclass(kind, OperatorPrimitive), issubclass(kind, SortPrimitive)
        return cls(primitive, n, datatype, op if takes_op else None, distribution if sorts else None)

    def __str__(self) -> str:
        return case_name(self.primitive, self.axes, n=self.n)


def array_items(primitive: str, n: int) -> int:
    """Return how many items the longest input of a primitive has at size n."""
    kind = REGISTRY.get(primitive)
    return n if kind is None else max(kind.at_size(n)[1].values())


# Long enough that gaps between submissions do not lower the clock, short enough for any watchdog.
_WARMUP_SUBMISSION_S = 0.02
_MAX_WARMUP_TRIALS = 4096


def warm_up(call: BoundCall[Any], seconds: float) -> None:
    """Keep the GPU busy with a bound call for at least `seconds`, without pauses.

    While the CPU checks results, the idle GPU lowers its clock, and times become up to three times too long (an H200 at
    2^26). Only continuous work raises the clock, so the next submission is queued before the last one is done.
    """
    device = call.device
    deadline = time.perf_counter() + seconds
    trials = 1
    while True:
        begin = time.perf_counter()
        call.execute(trials=trials)
        call.execute(trials=trials)
        wait_idle(device)
        now = time.perf_counter()
        if now >= deadline:
            return
        if now - begin < 2 * _WARMUP_SUBMISSION_S:
            trials = min(2 * trials, _MAX_WARMUP_TRIALS)
