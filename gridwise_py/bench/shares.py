"""What a run says of its device's ceilings, and which share of them each result reached."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..types.datatype import MATMUL_DATATYPES, STORAGE_DATATYPES, as_datatype
from .calibration import Calibration
from .case import array_items
from .measurement import Mode

__all__ = ["described", "peak_problem", "shares"]

# A rate may exceed the peak by this much: each of them is measured, some seconds apart.
_PEAK_TOLERANCE = 0.05
# If more of the results exceed it than this, it was no peak.
_MOST_ABOVE_PEAK = 0.1


def described(calibration: Calibration | None) -> dict[str, Any]:
    """Return ``floors`` and ``calibration`` of a results file's device."""
    if calibration is None:
        return {"floors": None, "calibration": None}
    found = calibration.to_dict()
    floors = {f"{name}_ns": value for name, value in found.pop("floors_ns").items()}
    # These are the device's own keys.
    for name in ("device", "tick_period_ns", "tick_step_ns", "wait_method"):
        del found[name]
    return {"floors": floors, "calibration": found}


def shares(entry: Mapping[str, Any], calibration: Calibration | None) -> dict[str, float | None]:
    """Return the ceiling of a result, and the shares of it and of the multiply-adds that it reached.

    The ceiling is the faster of copy and triad with arrays as large as those of n items. In mode cold it is that of
    the largest arrays, which come from memory.
    """
    none = {"peak_gbytes_per_s": None, "share_of_peak": None, "share_of_fma": None}
    if calibration is None or entry["error"] is not None:
        return none
    itemsize_bytes = as_datatype(entry["datatype"], STORAGE_DATATYPES).itemsize_bytes if entry["datatype"] else 4
    items = array_items(entry["primitive"], entry["n"])
    peak = calibration.peak_gbytes_per_s(None if entry["mode"] == Mode.COLD else itemsize_bytes * items)
    rate = entry["rates"]["gbytes_per_s"]
    time_ns = entry["whole"]["gpu_span_ns"]
    flops = (entry["work"] or {}).get("flops") if entry["datatype"] in MATMUL_DATATYPES else None
    return {
        "peak_gbytes_per_s": peak,
        "share_of_peak": rate / peak if rate and peak else None,
        "share_of_fma": flops / time_ns / calibration.fma_gflops
        if flops and time_ns and calibration.fma_gflops
        else None,
    }


def peak_problem(document: Mapping[str, Any]) -> str | None:
    """Return why shares of the peak are not to be shown for a pooled document; None where they can be."""
    if document["device"]["adapter_type"] == "CPU":
        return "Of peak is left out: on a CPU, memory is as fast as the other work of the machine lets it be."
    found = [share for entry in document["results"] if (share := entry["rates"].get("share_of_peak")) is not None]
    above = sum(share > 1 + _PEAK_TOLERANCE for share in found)
    if above > _MOST_ABOVE_PEAK * len(found):
        return (
            f"Of peak is left out: {above} of {len(found)} cases were faster than the peak that was measured before "
            f"them, so it is none. Measure again on an idle machine."
        )
    return None
