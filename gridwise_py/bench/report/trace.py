"""Chrome traces of results files: every sample with its timestamps, on one time line."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import TimingUnavailable
from ...storage.chrome_trace import ChromeTrace, GpuSlice
from ..results.model import Result, Sample
from ..results.reader import read_results
from ..results.ticks import read_ticks

_DISPATCH = ("workgroup_size", "vecs", "tiles", "blocks")


def export_results_trace(source: str | Path, path: str | Path) -> None:
    """Write the Chrome trace of a results file, for ui.perfetto.dev; see `results_trace`.

    Parameters
    ----------
    source, path : str or Path
        The results file, and the trace to write.
    """
    results_trace(source).write(path)


def results_trace(source: str | Path) -> ChromeTrace:
    """Return the trace of a results file: a lane for the GPU's queue, and one for the host.

    The GPU's lane has the GPU's timestamps. A results file has no times of the host's steps: a sample's wait is placed
    to end with its last kernel, with submit and encode before it. Slices that would then overlap a neighbour are left
    out, and counted in ``otherData``.

    Parameters
    ----------
    source : str or Path

    Raises
    ------
    BadResultsFile
        If the file, or the second file with its timestamps, cannot be read.
    TimingUnavailable
        If it has no timestamps.
    """
    document = read_results(source)
    stamped: list[tuple[Result, np.ndarray, float]] = []
    for result in document.results:
        ticks = read_ticks(source, document, result)
        if ticks is not None and result.tick_period_ns:
            stamped.append((result, ticks, result.tick_period_ns))
    valid = [ticks[(ticks[..., 0] > 0) & (ticks[..., 1] >= ticks[..., 0])] for _, ticks, _ in stamped]
    if not any(found.size for found in valid):
        raise TimingUnavailable(f"{Path(source).name} has no timestamps; a device without timestamp-query takes none")
    first = min(int(found.min()) for found in valid if found.size)
    device, context = document.device, document.context
    metadata = {
        "adapter": device.adapter, "driver": device.driver, "time": context.time, "versions": dict(context.versions),
    }  # fmt: skip
    trace = ChromeTrace(0, metadata)
    host = _Host(trace)
    pieces: list[GpuSlice] = []
    period_ns = stamped[0][2]
    for result, ticks, _ in sorted(stamped, key=lambda one: int(one[1].max())):
        args = _args(result)
        for number, (sample, stamps) in enumerate(zip(result.samples, ticks, strict=True)):
            ends = _add_sample(pieces, result, stamps, {**args, "sample": number})
            if ends is not None:
                host.add(result.name_with_n, sample, round((ends - first) * period_ns))
    trace.gpu_slices("GPU queue", pieces, period_ns, (first, 0), process=f"GPU {device.adapter}")
    trace.metadata["host_samples_left_out"] = host.left_out
    return trace


def _args(result: Result) -> dict[str, Any]:
    parameters = result.parameters or {}
    return {
        "case": result.name_with_n,
        "trials": result.trials,
        "primitive_bytes": result.moved_bytes or None,
        "shader_checks": result.shader_checks,
        **{name: parameters[name] for name in _DISPATCH if name in parameters},
    }


def _add_sample(pieces: list[GpuSlice], result: Result, stamps: np.ndarray, args: Mapping[str, Any]) -> int | None:
    """Add a sample's kernels; return the ticks of its end."""
    ends = None
    for kernel, (begin, end) in zip(result.kernels, stamps.tolist(), strict=True):
        if 0 < begin <= end:
            pieces.append(GpuSlice(kernel.name, begin, end, args))
            ends = end if ends is None else max(ends, end)
    return ends


class _Host:
    """The host's lane."""

    def __init__(self, trace: ChromeTrace):
        self._trace = trace
        self._lane = trace.lane("host", "host (position is approximate)")
        self._free_ns: int | None = None
        self.left_out = 0

    def add(self, name: str, sample: Sample, end_ns: int) -> None:
        """Add encode, submit and wait of a sample that ended at a given time."""
        wall_ns = sample.cpu_total_ns
        if wall_ns is None:
            return
        submit_ns, encode_ns = round(sample.submit_ns or 0), round(sample.encode_ns or 0)
        begin_ns = end_ns - round(wall_ns)
        if self._free_ns is not None and begin_ns < self._free_ns:
            self.left_out += 1
            return
        if encode_ns and (self._free_ns is None or begin_ns - encode_ns >= self._free_ns):
            self._trace.slice(self._lane, f"encode {name}", begin_ns - encode_ns, encode_ns)
        if submit_ns:
            self._trace.slice(self._lane, f"submit {name}", begin_ns, submit_ns)
        self._trace.slice(self._lane, f"wait {name}", begin_ns + submit_ns, end_ns - begin_ns - submit_ns)
        self._free_ns = end_ns
