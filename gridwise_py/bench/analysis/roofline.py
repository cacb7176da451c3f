"""The roofline of a results file: measured times against the limits of memory and arithmetic.

Source: Williams, Waterman, Patterson, "Roofline: an insightful visual performance model for multicore architectures",
Communications of the ACM 52(4), 2009. The ceilings are copies by size, and multiply-adds of the type in which a case
computes. A calibration measures them on the device; they are not from a data sheet.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import numpy as np

from ...display.quantities import format_time
from ...errors import ArgumentError, BadResultsFile
from ...internals import REGISTRY
from ..cases.mode import Mode
from ..results.model import CalibrationData, Result, Results, Work
from ..results.reader import content_of, parse_json
from ..results.rounds import pooled
from ..results.schema import check_fields

_AT_THE_ROOF = 1.10
_FASTER = 0.95
# Properties that a calibration and results must share.
_SAME = ("adapter", "driver", "backend")


@dataclass(frozen=True)
class Ceilings:
    """Speeds of a device in its calibration.

    Attributes
    ----------
    copies : tuple of (int, float)
        Bytes moved, and bytes per ns (GB/s), by size.
    fma_gflops : float or None
        Multiply-adds in f32.
    floors_ns : mapping
        Of a kernel that does nothing: ``empty_pass``, ``gap_between_passes``.
    peaks_gops : mapping
        Those of other types, by the type's name.
    """

    copies: tuple[tuple[int, float], ...]
    fma_gflops: float | None
    floors_ns: Mapping[str, float | None]
    peaks_gops: Mapping[str, float] = field(default_factory=dict[str, float])

    @property
    def memory_gbytes_per_s(self) -> float:
        """The speed of the largest copy."""
        return self.copies[-1][1]

    @property
    def ridge(self) -> float | None:
        """Operations per byte above which arithmetic is the limit, in f32."""
        return self.ridge_of("f32")

    def ridge_of(self, peak: str) -> float | None:
        """Return the operations per byte above which the arithmetic of a peak is the limit."""
        gops = self.gops_of(peak)
        return None if gops is None else gops / self.memory_gbytes_per_s

    def gops_of(self, peak: str) -> float | None:
        """Return a peak in 10^9 operations per second; None if it was not measured."""
        return self.fma_gflops if peak == "f32" else self.peaks_gops.get(peak)

    def peak_of(self, result: Result) -> str:
        """Return which peak limits the arithmetic of a result: its type's, or that of f32 if that was not measured."""
        wanted = _computes_in(result)
        return wanted if self.gops_of(wanted) is not None else "f32"

    def copy_gbytes_per_s(self, moved_bytes: float) -> float:
        """Return the speed of a copy of that size, caches and launch included, between those measured."""
        sizes = np.array([size for size, _ in self.copies], dtype=np.float64)
        speeds = np.array([speed for _, speed in self.copies], dtype=np.float64)
        at: float = np.interp(float(np.log(moved_bytes)), np.log(sizes), np.log(speeds))
        return float(np.exp(at))


@dataclass(frozen=True)
class Point:
    """A case on the roofline.

    Attributes
    ----------
    name : str
    n : int
    intensity : float
        Operations per byte that had to move.
    gflops : float
        Reached.
    measured_ns, predicted_ns : float
        Median GPU span per trial; the longer of a copy of the same number of bytes and of the arithmetic at its
        ceiling.
    bound : str
        ``"memory"`` or ``"arithmetic"``: which of the two it is.
    peak : str
        The type whose multiply-adds are the ceiling of its arithmetic.
    kernels : tuple of (str, float)
        Labels, and shares of the measured time.
    why : str
        The likely cause of the gap.
    share : float or None
        Predicted over measured: 1 is the roof. None on a CPU, whose memory is as fast as other work lets it be: a
        ceiling of another second is no ceiling.
    """

    name: str
    n: int
    intensity: float
    gflops: float
    measured_ns: float
    predicted_ns: float
    bound: str
    peak: str
    kernels: tuple[tuple[str, float], ...]
    why: str
    share: float | None


def read_calibration(path: str | Path) -> CalibrationData:
    """Read what ``gridwise calibrate --format json`` printed.

    Raises
    ------
    BadResultsFile
        If it is something else.
    """
    path = Path(path)
    data = parse_json(content_of(path), path.name)
    content = cast(dict[str, Any], data) if isinstance(data, dict) else {}
    known = {"copy", "fma_gflops", "floors_ns", "device"} <= content.keys()
    if not known or not isinstance(content["device"], dict):
        raise BadResultsFile(
            f"{path.name} is not a calibration; make one with: gridwise calibrate --format json > calibration.json"
        )
    check_fields(content, CalibrationData, path.name)
    return CalibrationData.from_json(content)


def ceilings_of(document: Results, calibration: CalibrationData | None = None) -> Ceilings:
    """Return the ceilings for a results file: from a calibration, or from the file itself.

    Parameters
    ----------
    document : Results
    calibration : CalibrationData, optional
        As `read_calibration` returns it.

    Raises
    ------
    ArgumentError
        If there is none, or it is of another device.
    """
    device = document.device
    measured = calibration if calibration is not None else device.calibration
    if measured is None or not measured.copy:
        raise ArgumentError(
            "the results file has no measured ceilings; give some of the same device: gridwise calibrate --format "
            "json > calibration.json, then --calibration calibration.json"
        )
    for name in _SAME if calibration is not None else ():
        of_results, of_calibration = getattr(device, name), measured.of_device(name)
        if of_calibration != of_results:
            raise ArgumentError(
                f"the results are of {name} {of_results!r}, the calibration is of {of_calibration!r}; ceilings hold "
                f"for one device and driver only"
            )
    copies = tuple(sorted((int(speed.moved_bytes), float(speed.gbytes_per_s)) for speed in measured.copy))
    # A results file has units in its names: empty_pass_ns.
    floors = {name.removesuffix("_ns"): ns for name, ns in (measured.floors_ns or device.floors or {}).items()}
    return Ceilings(copies, measured.fma_gflops, floors, dict(measured.peaks_gops or {}))


def _computes_in(result: Result) -> str:
    """Return the type in which a result's kernels compute.

    This library's own kernels compute f16 in f32. Integers of less than 32 bits are those of 32; of 64-bit integers
    there is no peak, and that of 32 bits is above it.
    """
    datatype = result.datatype or "f32"
    if datatype in ("f16", "f64"):
        return "f32" if datatype == "f16" and result.primitive in REGISTRY else datatype
    return "i32" if re.fullmatch(r"[iu]\d+|bool", datatype) else "f32"


def points(document: Results, ceilings: Ceilings) -> list[Point]:
    """Return the right cases with a GPU time and known work, in the order that was asked for.

    Processes and rounds of a case are one point, as in the table of a run.
    """
    return [
        _point(result, result.whole.gpu_span_ns, result.work, ceilings, on_cpu=document.device.is_cpu)
        for result in pooled(document).in_order()
        if result.correct and result.whole.gpu_span_ns and result.work is not None and result.work.moved_bytes
    ]


def _point(result: Result, measured: float, work: Work, ceilings: Ceilings, *, on_cpu: bool) -> Point:
    moved, flops = work.moved_bytes, work.flops or 0
    # Cold caches: every byte comes from memory, however few they are.
    speed = ceilings.memory_gbytes_per_s if result.mode is Mode.COLD else ceilings.copy_gbytes_per_s(moved)
    memory_ns = moved / speed
    peak = ceilings.peak_of(result)
    gops = ceilings.gops_of(peak)
    arithmetic_ns = flops / gops if gops else 0.0
    predicted = max(memory_ns, arithmetic_ns)
    bound = "memory" if memory_ns >= arithmetic_ns else "arithmetic"
    kernels = tuple((kernel.name, (kernel.gpu_ns or 0.0) / measured) for kernel in result.kernels)
    return Point(
        result.name, result.n, flops / moved, flops / measured, measured, predicted,
        bound, peak, kernels, _why(result, measured, predicted, bound, kernels, ceilings, on_cpu),
        None if on_cpu else predicted / measured,
    )  # fmt: skip


def _why(
    result: Result,
    measured_ns: float,
    predicted_ns: float,
    bound: str,
    kernels: Sequence[tuple[str, float]],
    ceilings: Ceilings,
    on_cpu: bool,
) -> str:
    """Return the likely cause of the gap between prediction and measurement: the first that explains it."""
    ratio = measured_ns / predicted_ns
    if ratio < _FASTER:
        other = "other work slowed the copy" if on_cpu else "the clock was higher now"
        return f"faster than the copy of the calibration: its bytes were in a cache, or {other}"
    if ratio <= _AT_THE_ROOF:
        return "at the roof"
    if result.clock_moved:
        return "the clock moved while it was measured: measure again"
    passes, trials = len(kernels), result.trials if result.mode is Mode.BATCH else 1
    floor = ceilings.floors_ns.get("empty_pass") or 0.0
    gap = ceilings.floors_ns.get("gap_between_passes") or 0.0
    floors_ns = (passes * floor + (passes - 1) * gap) / trials
    if floors_ns >= 0.5 * (measured_ns - predicted_ns):
        return f"launch: passes that do nothing, with the gaps between, take {format_time(floors_ns)} of it"
    gaps_ns = (None if result.gaps is None else result.gaps.time_ns) or 0.0
    if gaps_ns >= 0.5 * (measured_ns - predicted_ns):
        return f"gaps between its {passes} kernels: {format_time(gaps_ns)} of {format_time(measured_ns)}"
    parameters = result.parameters or {}
    if parameters.get("strategy") == "reduce_then_scan":
        # Each item is read once more: three moves instead of two.
        if ratio <= 1.5 * _AT_THE_ROOF:
            return "the algorithm: reduce-then-scan reads each item twice, 1.5 times the bytes that had to move"
        return "reduce-then-scan reads each item twice (1.5 times the bytes), and it is slower than that"
    if parameters.get("strategy") == "lookback":
        return "waiting for the tiles before: the look-back's chain, or too few bytes in flight"
    if bound == "arithmetic":
        return "multiply-adds wait: for workgroup memory, at barriers, or because too few workgroups fill the device"
    return "too few bytes in flight, or work between the loads: neither bytes, arithmetic nor launch explain it"
