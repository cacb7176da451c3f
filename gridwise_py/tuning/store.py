"""What was measured of adapters for the shapes of their kernels: kept on this machine, or part of the package.

Findings are ranges of lengths with the shape that was fastest there; all other lengths have the model's. Those of this
machine are kept in the cache folder and hold for an adapter, a driver and the versions. Those of the package, in
``tuning/data``, hold for an adapter's name and vendor; this machine's own win over them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeAlias, cast

from .. import settings
from ..storage import cache
from .facts import measured_facts
from .model import KERNELS, Fields
from .rows import MOST_ITEMS
from .shapes import fields_of

TUNING_KIND, FACTS_KIND = "tuning", "facts"
TUNING_FORMAT = 3  # of both files; others are ignored
_DATA = Path(__file__).with_name("data")

#: By kernel: above so many items, up to so many, the fields of a tuning, as `Tuning.to_dict` writes them.
Findings: TypeAlias = Mapping[str, tuple[tuple[int, int, Fields], ...]]


class TuningStore:
    """The findings and facts of one device; `key` says which, and with which versions, as `DeviceContext.key`."""

    def __init__(self, key: Mapping[str, str]):
        self._key = key
        #: The file of the package for an adapter of its name and vendor; empty where there is none.
        self._shipped = _data().get((key["adapter"], key.get("vendor", "")), {})

    def findings(self) -> Findings | None:
        """Return the findings that hold for the device, by kernel; None where there are none."""
        if not settings.uses_tuning():
            return None
        of_package = findings_of(self._shipped.get("shapes"))
        own = findings_of((cache.load(TUNING_KIND, self._key, TUNING_FORMAT) or {}).get("shapes"))
        # The later range wins where two overlap.
        found = {name: (*of_package.get(name, ()), *own.get(name, ())) for name in KERNELS}
        return {name: ranges for name, ranges in found.items() if ranges} or None

    def kept(self) -> dict[str, Any] | None:
        """Return all that is stored: ``shapes`` and ``choices``; None where nothing is, or it is spoilt."""
        data = cache.load(TUNING_KIND, self._key, TUNING_FORMAT)
        if data is None or not isinstance(data.get("shapes"), dict) or not isinstance(data.get("choices"), list):
            return None
        choices = [cast(dict[str, Any], one) for one in cast(list[object], data["choices"]) if isinstance(one, dict)]
        return data | {"choices": [one for one in choices if {"kernel", "trials", "winner", "changed"} <= set(one)]}

    def keep(self, choices: Sequence[Mapping[str, Any]], facts: Mapping[str, Any] | None) -> None:
        """Store what was found for kernels; what is stored for others stays.

        Parameters
        ----------
        choices : sequence of mapping
            For each range of lengths that was measured: ``kernel``, ``above``, ``up_to``, ``winner``, ``changed`` and
            whatever else is to be shown.
        facts : mapping or None
            That the model had.
        """
        before = self.kept() or {"shapes": {}, "choices": []}
        searched = {choice["kernel"] for choice in choices}
        shapes = {kernel: ranges for kernel, ranges in before["shapes"].items() if kernel not in searched}
        of_package = self._shipped.get("shapes", ())
        for choice in choices:
            # The model's own shape, too, where the package has another one.
            if choice["changed"] or choice["kernel"] in of_package:
                found = [choice["above"], choice["up_to"], dict(choice["winner"])]
                shapes.setdefault(choice["kernel"], []).append(found)
        content = {
            "date": datetime.now(UTC).date().isoformat(),
            "facts": None if facts is None else dict(facts),
            "shapes": dict(sorted(shapes.items())),
            "choices": [one for one in before["choices"] if one["kernel"] not in searched] + list(choices),
        }
        cache.save(TUNING_KIND, self._key, TUNING_FORMAT, content)

    def remove(self) -> bool:
        """Forget what was found for kernels; return whether there was anything."""
        return cache.remove(TUNING_KIND, self._key)

    def facts(self) -> dict[str, Any] | None:
        """Return what is known of the device by measurement; None where it was not measured."""
        if not settings.uses_tuning():
            return None
        data = cache.load(FACTS_KIND, self._key, TUNING_FORMAT) or self._shipped
        return measured_facts(data.get("facts"))

    def keep_facts(self, facts: Mapping[str, Any]) -> None:
        """Store what was measured of the device."""
        cache.save(FACTS_KIND, self._key, TUNING_FORMAT, {"facts": dict(facts)})


@lru_cache(maxsize=1)
def _data() -> Mapping[tuple[str, str], Mapping[str, Any]]:
    files = (json.loads(path.read_text(encoding="utf-8")) for path in sorted(_DATA.glob("*.json")))
    return {(file["device"]["adapter"], file["device"]["vendor"]): file for file in files}


def findings_of(by_kernel: Any) -> Findings:
    """Return the findings of a file, without kernels that are unknown or spoilt."""
    if not isinstance(by_kernel, Mapping):
        return {}
    read = {kernel: _ranges(kernel, ranges) for kernel, ranges in cast(Mapping[str, Any], by_kernel).items()}
    return {kernel: ranges for kernel, ranges in read.items() if ranges}


def _ranges(kernel: str, ranges: Any) -> tuple[tuple[int, int, Fields], ...]:
    """Return the ranges of a kernel; none where the file was written by hand, or spoilt.

    Lengths must be in order, with shapes that the kernel can have. Whether this device can run them is checked with its
    limits, when a primitive is made.
    """
    if kernel not in KERNELS:
        return ()
    try:
        read = tuple((above, up_to, fields_of(kernel, data)) for above, up_to, data in ranges)
    except (TypeError, ValueError):  # an ArgumentError is a ValueError
        return ()
    ends = [end for above, up_to, _ in read for end in (above, up_to)]
    in_order = all(type(end) is int and 0 <= end <= MOST_ITEMS for end in ends) and ends == sorted(ends)
    return read if in_order and all(above < up_to for above, up_to, _ in read) else ()
