"""The classes of devices that a page has plans for: its runner takes the largest class that its device has."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from .. import Capabilities, LookbackVerdict

#: The properties that plans depend on, and the values of each, ascending.
CLASSES: Mapping[str, tuple[Any, ...]] = {
    "subgroups": (0, 4, 8, 16, 32, 64, 128),
    "invocations": (256, 1024),
    "storage": (16_384, 32_768),
    "software": (False, True),
    "lookback": ("safe", "tickets", "no"),
}
_VERDICTS = {
    "safe": LookbackVerdict(coherent=True, progress=True, needs_tickets=False, recovers=True),
    "tickets": LookbackVerdict(coherent=True, progress=True, needs_tickets=True, recovers=True),
    "no": LookbackVerdict(coherent=True, progress=False, needs_tickets=False, recovers=True),
}
#: The largest buffer of a page. Browsers promise 128 MiB: the runner leaves out a case that its device has no room for.
MOST_BUFFER_BYTES = 1 << 30
#: Of the adapters that browsers have on the CPU.
_SOFTWARE_SUBGROUPS = (0, 4, 8)


class DeviceClass(NamedTuple):
    """Some devices that get the same plans.

    Attributes
    ----------
    subgroups : int
        Lanes; 0 without subgroups.
    invocations : int
        Of a workgroup, at most.
    storage : int
        Bytes of workgroup memory.
    software : bool
        Whether it is a CPU.
    lookback : {"safe", "tickets", "no"}
        The verdict of the self-test of look-back.
    """

    subgroups: int
    invocations: int
    storage: int
    software: bool
    lookback: str

    @property
    def key(self) -> str:
        """Its name in a bundle, such as ``32/1024/32768/false/safe``."""
        return "/".join(str(value).lower() for value in self)

    def capabilities(self) -> Capabilities:
        """Return the capabilities of such a device."""
        return Capabilities(
            adapter="a browser",
            adapter_type="CPU" if self.software else "Unknown",
            backend="WebGPU",
            features=frozenset({"subgroup"} if self.subgroups else ()),
            subgroup_size=self.subgroups or None,
            subgroup_min_size=min(self.subgroups or 4, 32),
            limits={
                "max-compute-invocations-per-workgroup": self.invocations,
                "max-compute-workgroup-size-x": self.invocations,
                "max-compute-workgroup-storage-size": self.storage,
                "max-storage-buffer-binding-size": MOST_BUFFER_BYTES,
                "max-buffer-size": MOST_BUFFER_BYTES,
            },
            lookback=_VERDICTS[self.lookback],
            tick_period_ns=1.0,
            tick_step_ns=1.0,
        )


def device_classes() -> Iterator[DeviceClass]:
    """Yield every class."""
    for values in itertools.product(*CLASSES.values()):
        found = DeviceClass(*values)
        if not found.software or found.subgroups in _SOFTWARE_SUBGROUPS:
            yield found


def own_class(*, software: bool) -> DeviceClass:
    """Return the smallest class, for kernels that every device runs alike."""
    return DeviceClass(0, 256, 16_384, software, "no")
