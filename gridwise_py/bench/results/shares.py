"""The ceilings of a run's device, and the share of them that each result reached."""

from __future__ import annotations

from dataclasses import replace

from ... import STORAGE_DATATYPES, MatMul
from ...storage.json_files import json_data
from ..calibrate.calibration import Calibration
from ..cases.case import YARDSTICK, array_items
from ..cases.mode import Mode
from ..cases.workloads import WORKLOADS
from .model import CalibrationData, CaseKey, Device, Result, Results

# A rate may exceed the peak by this much: both are measured, some seconds apart.
_PEAK_TOLERANCE = 0.05
# If a larger share of the results exceeds it, it was not the peak.
_MOST_ABOVE_PEAK = 0.1


def calibrated(device: Device, calibration: Calibration | None) -> Device:
    """Return the device of a results file with the floors and ceilings that were measured."""
    if calibration is None:
        return replace(device, floors=None, calibration=None)
    data = json_data(calibration.to_json())
    floors = {f"{name}_ns": value for name, value in data.pop("floors_ns").items()}
    # These keys belong to the device.
    for name in ("device", "tick_period_ns", "tick_step_ns", "wait_method"):
        del data[name]
    return replace(device, floors=floors, calibration=CalibrationData.from_json(data))


def array_bytes(primitive: str, n: int, datatype: str | None) -> int:
    """Return the bytes of the longest array of a case; without a datatype, items have 4."""
    return (STORAGE_DATATYPES[datatype].itemsize_bytes if datatype else 4) * array_items(primitive, n)


def copy_shares(document: Results) -> dict[CaseKey, float | None]:
    """Return the rate of each case of a pooled document as a share of the copy kernel's, for an array of equal bytes.

    The copy is of the same mode; of several with equal bytes, it is the one of the same datatype, else the first.
    """
    copies: dict[tuple[int | None, Mode], dict[str | None, float]] = {}
    for result in document.in_order():
        if result.primitive == YARDSTICK and result.correct and result.rates.gbytes_per_s and _array_bytes(result):
            of_size = copies.setdefault((_array_bytes(result), result.mode), {})
            of_size.setdefault(result.datatype, result.rates.gbytes_per_s)
    shares: dict[CaseKey, float | None] = {}
    for result in document.results:
        of_size, rate = copies.get((_array_bytes(result), result.mode)), result.rates.gbytes_per_s
        copy = None if of_size is None else of_size.get(result.datatype, next(iter(of_size.values())))
        shares[result.key] = rate / copy if copy and rate else None
    return shares


def _array_bytes(result: Result) -> int | None:
    """Return the bytes of the longest array of a result; None if a file names a datatype that is unknown here.

    Of a kernel of a user only its work is known: the array whose copy moves as many bytes.
    """
    if result.primitive not in WORKLOADS:
        return None if result.work is None else result.work.moved_bytes // 2
    known = result.datatype is None or result.datatype in STORAGE_DATATYPES
    return array_bytes(result.primitive, result.n, result.datatype) if known else None


def with_shares(result: Result, calibration: Calibration | None) -> Result:
    """Return a result with its ceiling, and its shares of the ceiling and of the multiply-adds.

    The ceiling is the faster of copy and triad with arrays of the same size; in mode cold, with the largest arrays,
    which exceed the caches.
    """
    if calibration is None or result.error is not None:
        none = replace(result.rates, peak_gbytes_per_s=None, share_of_peak=None, share_of_fma=None)
        return replace(result, rates=none)
    peak = calibration.peak_gbytes_per_s(None if result.mode is Mode.COLD else _array_bytes(result))
    rate = result.rates.gbytes_per_s
    time_ns = result.whole.gpu_span_ns
    flops = result.work.flops if result.work is not None and result.datatype in MatMul.datatypes else None
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
