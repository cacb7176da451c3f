"""Cases of a benchmark: primitive, or benchmark of a user's file, size and data."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import wgpu

from ... import STORAGE_DATATYPES, BoundCall, Capabilities, Datatype, Multiply, Primitive, synchronize
from ...errors import LimitError
from .benchmarked import AxisValue, Benchmark
from .distributions import UNIFORM, random_input
from .names import case_name
from .own_files import OWN_WORKLOADS, Baseline, OwnWorkload
from .workloads import USUAL_AXES, WORKLOADS, Workload

#: The primitive that the others are compared with: it runs at each n.
YARDSTICK = "copy"


@dataclass(frozen=True)
class Case:
    """One primitive at one size, or one benchmark of a user's file.

    Attributes
    ----------
    primitive : str
        A key of `WORKLOADS`, or of `OWN_WORKLOADS`.
    n : int
        Items; of a matrix product rows and columns.
    datatype : str or None
        None for a benchmark of a user, whose axes are all among the others.
    op : str or None
        None if the primitive has no operator.
    distribution : str or None
        Of one input; None if the primitive's time does not depend on the data, which is then uniform.
    others : tuple of (str, str)
        Further axes, which the primitive's workload names, with their values, such as ``("run", "8")``.
    """

    primitive: str
    n: int
    datatype: str | None
    op: str | None = None
    distribution: str | None = None
    others: tuple[tuple[str, str], ...] = ()

    @property
    def workload(self) -> Workload:
        """What runs under its name, where that is of this library."""
        return WORKLOADS[self.primitive]

    @property
    def own_workload(self) -> OwnWorkload | None:
        """The benchmark of a user's file that runs under its name; None if it is of this library."""
        return OWN_WORKLOADS.get(self.primitive)

    @property
    def baseline(self) -> Baseline | None:
        """What its times are shown relative to."""
        own = self.own_workload
        return None if own is None else own.baseline(dict(self.others))

    def benchmark(self, device: wgpu.GPUDevice, mode: str, seed: int) -> Benchmark:
        """Return what it runs, with its inputs: the door through which all cases come.

        Raises
        ------
        LimitError
            If the device's buffers are too small.
        ArgumentError
            If the code of a user raises.
        """
        own = self.own_workload
        if own is not None:
            return own.benchmark(device, self.n, mode, dict(self.others), seed)
        primitive = self.make(device)
        return Benchmark(run=primitive, inputs=self.inputs(primitive, seed))

    @property
    def items(self) -> Datatype:
        """The datatype of a primitive's items."""
        assert self.datatype is not None, "only benchmarks of users have none"
        return self.workload.datatypes[self.datatype]

    @property
    def numbers(self) -> dict[str, str | int | float]:
        """The further axes, and n, as the makers of data receive them."""
        return {name: _number(value) for name, value in self.others} | {"n": self.n}

    @property
    def _at_size(self) -> tuple[dict[str, Any], dict[str, int]]:
        return self.workload.kind.at_size(self.n, **{name: _number(value) for name, value in self.others})

    @property
    def options(self) -> dict[str, Any]:
        """The options of the constructor; the operator and the datatype by their names."""
        options, _ = self._at_size
        given = {self.workload.datatype: self.datatype} | ({} if self.op is None else {"op": self.op})
        return options | given

    def make(self, device: wgpu.GPUDevice | None, capabilities: Capabilities | None = None) -> Primitive:
        """Make the primitive; without a device, for planning only, with `capabilities`."""
        options = self.options | ({} if capabilities is None else {"capabilities": capabilities})
        make = cast(Callable[..., Primitive], self.workload.kind)  # it takes a datatype, unlike its base class
        return make(device, **options)

    def inputs(self, primitive: Primitive, seed: int) -> dict[str, np.ndarray]:
        """Return random data for it, the same for the same seed.

        Raises
        ------
        LimitError
            If the device's buffers are too small; raised before memory is allocated on the host.
        """
        rng = np.random.default_rng([seed, self.n])
        found: dict[str, np.ndarray] = {}
        lengths = self.lengths
        distributed = self.workload.distributed or next(iter(lengths))
        axes = self.numbers
        for argument, length in lengths.items():
            # An argument of any datatype has that of the case.
            dtype = (primitive.signature.datatype(argument) or STORAGE_DATATYPES[self.datatype or "u32"]).dtype
            size_bytes, limit = length * dtype.itemsize, primitive.capabilities.limits["max-buffer-size"]
            if size_bytes > limit:
                raise LimitError(
                    f"{self} needs buffers of {size_bytes} bytes, but the device's max-buffer-size is {limit}"
                )
            make = self.workload.data.get(argument)
            if make is not None:
                found[argument] = make(rng, length, dtype, axes)
            elif self.op == Multiply.name and dtype.kind == "f":
                # ±1: a product of many other floats would overflow or underflow.
                found[argument] = rng.choice(np.array([-1, 1], dtype=dtype), length)
            else:
                name = self.distribution if self.distribution and argument == distributed else UNIFORM
                rule = primitive.signature.arguments[argument]
                found[argument] = random_input(rule, name, rng, length, dtype)
        return found

    @property
    def axes(self) -> dict[str, str | None]:
        """The rest of the identity, besides primitive and n."""
        axes = {"datatype": self.datatype, "op": self.op, **dict(self.others)}
        return axes if self.distribution is None else axes | {"distribution": self.distribution}

    @classmethod
    def build(
        cls, primitive: str, n: int, datatype: str, op: str, distribution: str = UNIFORM, **others: str | int
    ) -> Case:
        """Return a case with those of the axes that its primitive has.

        Raises
        ------
        KeyError
            If an axis is missing.
        """
        axes = {"op": op, "distribution": distribution, **others}
        given = {name: str(axes[name]) for name in WORKLOADS[primitive].axes}
        return cls(primitive, n, datatype, given.pop("op", None), given.pop("distribution", None), tuple(given.items()))

    @classmethod
    def usual(cls, primitive: str, n: int, **axes: Any) -> Case:
        """Return a case with the usual value of each axis but those given, of u32 where the primitive has that."""
        known = WORKLOADS[primitive].datatypes
        return cls.build(primitive, n, "u32" if "u32" in known else next(iter(known)), **{**USUAL_AXES, **axes})

    @classmethod
    def of_own(cls, workload: OwnWorkload, values: Mapping[str, str | int]) -> Case:
        """Return the case of a user's benchmark at a point of its axes."""
        others = tuple((name, str(value)) for name, value in values.items() if name not in ("n", "mode"))
        known: dict[str, AxisValue] = {name: workload.value(name, text) for name, text in others}
        if "n" in values:
            known["n"] = int(values["n"])
        return cls(workload.full_name, workload.size(known), None, others=others)

    @property
    def lengths(self) -> dict[str, int]:
        """The lengths of the inputs."""
        return self._at_size[1]

    def __str__(self) -> str:
        return case_name(self.primitive, self.axes, n=self.n)


def _number(value: str) -> str | int | float:
    """Return the number that an axis says, or its word."""
    for kind in (int, float):
        with suppress(ValueError):
            return kind(value)
    return value


def array_items(primitive: str, n: int) -> int:
    """Return how many items the longest array of a primitive has at size n: n, but of matrices n²."""
    workload = WORKLOADS.get(primitive)
    longest = n if workload is None else max(workload.kind.at_size(n)[1].values())
    return longest if longest > n + 1 else n  # offsets are one more than segments


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
        synchronize(device)
        now = time.perf_counter()
        if now >= deadline:
            return
        if now - begin < 2 * _WARMUP_SUBMISSION_S:
            trials = min(2 * trials, _MAX_WARMUP_TRIALS)
