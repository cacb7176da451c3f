"""What a run says of its device's ceilings, and which share of them each result reached."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..datatype import MATMUL_DATATYPES, STORAGE_DATATYPES, as_datatype
from .calibration import Calibration
from .case import array_items
from .measurement import Mode

__all__ = ["described", "shares"]


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
