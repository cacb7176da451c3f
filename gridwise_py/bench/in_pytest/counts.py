"""The fixture ``gpu_counts``: what a GPU is asked to do, counted and gated without one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import wgpu

from ...errors import ArgumentError
from ...internals import Code, context_of
from ...storage.json_files import write_json
from ...warn import warn
from ..analysis.counts import count_changes, counts_document, counts_of
from ..cases.benchmarked import Measurable
from ..cases.device_classes import DEVICE_CLASSES
from ..sampling.codes import code_of, recorded
from ..sampling.subjects import benchmark_of, device_of, subject_of
from .store import waiting_for

#: For another process that has the file.
_LONGEST_WAIT_S = 60.0


class GpuCounts:
    """The value of the fixture ``gpu_counts``, in one test.

    Parameters
    ----------
    test : str
        Its name in the file.
    path : Path or None
        The file of ``--gridwise-counts``.
    """

    def __init__(self, test: str, path: Path | None):
        self._test, self._path = test, path
        self._counted: set[str] = set()

    def device(self, name: str = "WebGPU's defaults") -> wgpu.GPUDevice:
        """Return a device that only records, of a class of `gridwise diff`: to make what is counted on."""
        if name not in DEVICE_CLASSES:
            raise ArgumentError(f"gpu_counts.device({name!r}): classes are {'; '.join(DEVICE_CLASSES)}")
        return Code.device(DEVICE_CLASSES[name])

    def __call__(self, subject: Measurable, /, *, name: str = "", **arrays: Any) -> dict[str, int | None]:
        """Count what `measure` takes; the test fails if a count is more than in the file of ``--gridwise-counts``.

        What the file does not have is added to it.

        Parameters
        ----------
        subject : Primitive, Sequence, callable, sequence or mapping of primitives, or Benchmark
            A function must be given arrays on `device`.
        name : str, optional
            Needed for the second and further calls in one test.
        **arrays
            The arguments.

        Returns
        -------
        dict from str to int or None
        """
        __tracebackhide__ = True
        benchmark = benchmark_of("gpu_counts", subject, arrays)
        made = subject_of(device_of(benchmark), name, benchmark)
        records = context_of(made.device).log is not None
        code = Code.of(**recorded(made, benchmark)) if records else code_of(made, benchmark)
        if code is None:
            raise ArgumentError(
                "gpu_counts sees what a function asks of gpu_counts.device() only: make its arrays there"
            )
        self._judge(f"{self._test} {name}".rstrip(), code.counts)
        return code.counts

    def _judge(self, name: str, counts: dict[str, int | None]) -> None:
        if name in self._counted:
            raise ArgumentError(
                f"{name} calls gpu_counts twice: give a second call a name, gpu_counts(…, name='second')"
            )
        self._counted.add(name)
        if self._path is None:
            return
        with waiting_for(self._path, _LONGEST_WAIT_S):
            kept = dict(counts_of(self._path.read_bytes(), self._path.name)) if self._path.exists() else {}
            if name not in kept:
                write_json(self._path, counts_document({**kept, name: counts}))
                warn(f"{self._path} had no counts of {name}: they are added, and nothing was judged")
                return
        more = [text for is_more, text in count_changes({name: kept[name]}, {name: counts}) if is_more]
        if more:
            pytest.fail(f"more than in {self._path.name}: {'; '.join(more)}", pytrace=False)
