"""The ceilings of a run's device, and the share of them that each result reached."""

from __future__ import annotations

from dataclasses import replace

from ...storage.json_files import json_data
from ...types.datatype import MATMUL_DATATYPES, STORAGE_DATATYPES, as_datatype
from ..calibrate.calibration import Calibration
from ..cases.case import array_items
from ..cases.mode import Mode
from .model import CalibrationData, Device, Result, Results

__all__ = ["calibrated", "peak_problem", "with_shares"]

# A rate may exceed the peak by this much: both are measured, some seconds apart.
_PEAK_TOLERANCE = 0.05
# If a larger share of the results exceeds it, it was not the peak.
_MOST_ABOVE_PEAK = 0.1


def calibrated(device: Device, calibration: Calibration | None) -> Device:
    """Return the device of a results file with the floors and ceilings that were measured."""
    if calibration is None:
        return replace(device, floors=None, calibration=None)
    data = json_data(calibration.to_dict())
    floors = {f"{name}_ns": value for name, value in data.pop("floors_ns").items()}
    # These keys belong to the device.
    for name in ("device", "tick_period_ns", "tick_step_ns", "wait_method"):
        del data[name]
    return replace(device, floors=floors, calibration=CalibrationData.from_json(data))


def with_shares(result: Result, calibration: Calibration | None) -> Result:
    """Return a result with its ceiling, and its shares of the ceiling and of the multiply-adds.

    The ceiling is the faster of copy and triad with arrays of the same size; in mode cold, with the largest arrays,
    which exceed the caches.
    """
    if calibration is None or result.error is not None:
        none = replace(result.rates, peak_gbytes_per_s=None, share_of_peak=None, share_of_fma=None)
        return replace(result, rates=none)
    itemsize_bytes = as_datatype(result.datatype, STORAGE_DATATYPES).itemsize_bytes if result.datatype else 4
    items = array_items(result.primitive, result.n)
    peak = calibration.peak_gbytes_per_s(None if result.mode is Mode.COLD else itemsize_bytes * items)
    rate = result.rates.gbytes_per_s
    time_ns = result.whole.gpu_span_ns
    flops = result.work.flops if result.work is not None and result.datatype in MATMUL_DATATYPES else None
    fma_gflops = calibration.fma_gflops
    rates = replace(
        result.rates,
        peak_gbytes_per_s=peak,
        share_of_peak=rate / peak if rate and peak else None,
        share_of_fma=flops / time_ns / fma_gflops if flops and time_ns and fma_gflops else None,
    )
    return replace(result, rates=rates)


def peak_problem(document: Results) -> str | None:
    """Return why shares of the peak must not be shown for a pooled document; None if they may."""
    if document.device.is_cpu:
        return "Of peak is left out: on a CPU, memory is as fast as the other work of the machine lets it be."
    shares = [result.rates.share_of_peak for result in document.results if result.rates.share_of_peak is not None]
    above = sum(share > 1 + _PEAK_TOLERANCE for share in shares)
    if above > _MOST_ABOVE_PEAK * len(shares):
        return (
            f"Of peak is left out: {above} of {len(shares)} cases were faster than the peak that was measured before "
            f"them, so it is not the peak. Measure again on an idle machine."
        )
    return None
