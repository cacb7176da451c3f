"""The stopwatch: timestamp queries around passes, and the CPU bracket around a submission.

It knows nothing about primitives. A device has one `TimingHelper`; every timed run opens a
`TimingSession` on it, and takes one pair of queries per pass. Queries are resolved in a separate submission,
after the work is done (on macOS 26, timestamps that are resolved in the same submission are mostly wrong:
wgpu #9414), when the session is read; a session may be read late, in any order, or never.
"""

# The helper, its sessions and their leases are one mechanism, whose parts know each other.
# pyright: reportPrivateUsage=false

from __future__ import annotations

import contextlib
import threading
import weakref
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, TypeAlias

import numpy as np
import wgpu

from ..backend.device_errors import device_errors
from ..backend.device_state import submit_pending
from ..backend.engine import engine_of
from ..backend.fork_guard import check_process
from ..backend.queues import tick_period_ns, wait_idle, write_timestamp
from ..backend.submission_marks import Mark, look, mark_of, read_words
from ..errors import TimingNotReady, TimingUnavailable
from .result import Span

#: What a call is asked for: no timestamps, a pass with timestamps for each kernel, or timestamps inside of passes.
GpuTiming: TypeAlias = bool | Literal["inside"]
#: The native feature that the last needs.
INSIDE_PASSES = "timestamp-query-inside-passes"

_QUERIES_PER_SET = 4096  # WebGPU's limit
_PAIRS_PER_SET = _QUERIES_PER_SET // 2
_MAX_SETS = 16  # Metal allows 32 counter buffers in a process; they are made when needed
_RESOLVE_ALIGNMENT_BYTES = 256


@dataclass(frozen=True)
class _Pair:
    """Two neighbouring queries of one set."""

    set_index: int
    index: int


class _Lease:
    """The pairs that a session holds, as its helper sees them, also when the session is gone.

    A pair in no lease is free: that alone decides. Pairs leave one list before they enter another. So an interrupt may
    lose a pair between the two, which is found again, but none is ever lent twice.
    """

    __slots__ = ("mark", "owner", "pairs")

    def __init__(self, owner: TimingSession):
        self.owner: weakref.ref[TimingSession] = weakref.ref(owner)
        self.pairs: list[_Pair] = []
        self.mark: Mark | None = None

    def is_over(self) -> bool:
        """Whether its queries were read, or nothing that is not submitted yet will write them; does not wait."""
        owner = self.owner()
        if owner is not None and owner._lease is self:
            return owner.is_read
        # What was not submitted by now never will be, unless it is on somebody else's encoder.
        return self.mark is None or self.mark.seen or not self.mark.fate.can_be_submitted()


class TimingHelper:
    """Takes timestamps around compute passes on one device.

    All timing on the device shares the one of `timing_helper`.

    Parameters
    ----------
    device : wgpu.GPUDevice
        With the feature ``timestamp-query``.

    Attributes
    ----------
    tick_period_ns : float
    """

    #: Passes of a device that can be timed and not yet read.
    MAX_PAIRS: ClassVar[int] = _MAX_SETS * _PAIRS_PER_SET

    def __init__(self, device: wgpu.GPUDevice):
        if "timestamp-query" not in device.features:
            raise TimingUnavailable(
                "this device was made without the feature 'timestamp-query', so GPU times are not available; "
                "request_device() of gridwise_py asks for it where the adapter has it"
            )
        # A weak reference: the device owns the helper.
        self._device_reference = weakref.ref(device)
        self.tick_period_ns: float = tick_period_ns(device)
        self._lock = threading.RLock()
        self._sets: list[wgpu.GPUQuerySet] = []
        self._free: list[_Pair] = []  # not all of them, where a call was interrupted
        self._leases: dict[_Lease, None] = {}  # in order

    @property
    def device(self) -> wgpu.GPUDevice:
        """The device."""
        check_process()
        device = self._device_reference()
        if device is None:
            raise TimingUnavailable("the device of this TimingHelper is gone")
        return device

    def session(self, *, inside: bool = False) -> TimingSession:
        """Open a session: get a span for each pass, submit, then read it.

        Parameters
        ----------
        inside : bool, default False
            Whether primitives that are recorded with it take timestamps inside of passes that kernels share, as without
            timing.

        Raises
        ------
        TimingUnavailable
            With `inside`, if the device lacks ``timestamp-query-inside-passes`` (`stamps_passes`).
        """
        check_process()
        if inside and not self.stamps_passes:
            raise TimingUnavailable(without_inside(self.device))
        return TimingSession(self, inside=inside)

    @property
    def pairs_in_use(self) -> int:
        """Pairs of queries that are not free."""
        with self._lock:
            self._find_free()
            return sum(len(lease.pairs) for lease in self._leases)

    @property
    def stamps_encoders(self) -> bool:
        """Whether timestamps can be taken between passes, by `TimingSession.stamp`."""
        return "timestamp-query-inside-encoders" in self.device.features

    @property
    def stamps_passes(self) -> bool:
        """Whether timestamps can be taken inside of passes, by `TimingSession.around`."""
        return INSIDE_PASSES in self.device.features

    def _lend(self, lease: _Lease) -> _Pair:
        """Add a free pair to a lease, and return it."""
        with self._lock:
            if not self._free:
                self._find_free()
            if not self._free:
                self.collect()
            if not self._free:
                if len(self._sets) == _MAX_SETS:
                    raise TimingUnavailable(
                        f"all {_MAX_SETS * _PAIRS_PER_SET} pairs of timestamp queries belong to work that was recorded "
                        f"on encoders but not submitted; submit these encoders, time fewer passes in one submission, "
                        f"or record without timing"
                    )
                self._add_set()
            self._leases[lease] = None
            pair = self._free.pop()
            lease.pairs.append(pair)
            return pair

    def _add_set(self) -> None:
        with device_errors("timestamp queries", self.device):
            made = self.device.create_query_set(
                label="gridwise timing", type=wgpu.QueryType.timestamp, count=_QUERIES_PER_SET
            )
        self._sets.append(made)
        self._find_free()

    def _find_free(self) -> None:
        """Take back the queries of sessions that were read or dropped, and those that an interrupt lost."""
        self._leases = {lease: None for lease in self._leases if not lease.is_over()}
        lent = {pair for lease in self._leases for pair in lease.pairs}
        # Popped from the end: ascending order gives a session neighbours, which resolve in one command.
        self._free = [
            pair
            for set_index in range(len(self._sets))
            for index in reversed(range(_PAIRS_PER_SET))
            if (pair := _Pair(set_index, index)) not in lent
        ]

    def _end(self, lease: _Lease) -> None:
        with self._lock:
            if lease in self._leases:
                del self._leases[lease]
                self._free.extend(sorted(lease.pairs, key=lambda p: (p.set_index, p.index), reverse=True))

    def collect(self) -> None:
        """Read every submitted session into host memory, in one submission, and free its queries.

        Waits for all submitted work. Called automatically when no query is free.
        """
        check_process()
        submit_pending(self.device)
        with self._lock:
            look(self.device, [lease.mark for lease in self._leases if lease.mark is not None])
            owners = [owner for lease in self._leases if (owner := lease.owner()) is not None and not owner.is_read]
            self._read([session for session in owners if session._submitted or (session._mark and session._mark.seen)])
            self._find_free()

    def _read(self, sessions: Sequence[TimingSession]) -> None:
        """Resolve the queries of submitted sessions in one submission, and take them back."""
        pairs = [pair for session in sessions for pair in session._pairs]
        if not pairs:
            return
        ticks = self._resolve(pairs)
        begin = 0
        for session in sessions:
            end = begin + len(session._pairs)
            session._ticks = ticks[begin:end]
            self._end(session._lease)
            begin = end

    def _resolve(self, pairs: Sequence[_Pair]) -> np.ndarray:
        """Return begin and end ticks, shape (len(pairs), 2), uint64, of queries that were written."""
        device = self.device
        wait_idle(device)
        runs = _runs(pairs)
        size = 0
        offsets: list[int] = []
        for run in runs:
            offsets.append(size)
            size += -(-16 * len(run) // _RESOLVE_ALIGNMENT_BYTES) * _RESOLVE_ALIGNMENT_BYTES
        usage = wgpu.BufferUsage
        with device_errors("reading timestamps", device):
            resolved = device.create_buffer(
                label="gridwise resolve", size=size, usage=usage.QUERY_RESOLVE | usage.COPY_SRC
            )
            encoder = device.create_command_encoder(label="gridwise resolve")
            for offset, run in zip(offsets, runs, strict=True):
                first = run[0]
                encoder.resolve_query_set(self._sets[first.set_index], 2 * first.index, 2 * len(run), resolved, offset)
        data = read_words(device, [resolved], encoder).view(np.uint64)
        ticks: dict[_Pair, np.ndarray] = {}
        for offset, run in zip(offsets, runs, strict=True):
            for i, pair in enumerate(run):
                ticks[pair] = data[offset // 8 + 2 * i : offset // 8 + 2 * i + 2]
        return np.array([ticks[pair] for pair in pairs], dtype=np.uint64).reshape(-1, 2)


def without_inside(device: wgpu.GPUDevice) -> str:
    """Return why a device takes no timestamps inside of passes, and what to do."""
    has = INSIDE_PASSES in engine_of(device).features_of(device.adapter)
    missing = "this device was made without it" if has else f"the adapter {device.adapter.info['device']!r} lacks it"
    remedy = "make the device with request_device() of gridwise_py, which asks for it, or give" if has else "give"
    return (
        f"timestamps inside of passes need the feature {INSIDE_PASSES!r}, and {missing}: {remedy} "
        f"enable_gpu_timing=True, which takes them at the begin and the end of a pass for each kernel"
    )


def _runs(pairs: Sequence[_Pair]) -> list[list[_Pair]]:
    """Group pairs into runs of neighbours."""
    runs: list[list[_Pair]] = []
    for pair in sorted(set(pairs), key=lambda p: (p.set_index, p.index)):
        last = runs[-1][-1] if runs else None
        if last is not None and last.set_index == pair.set_index and last.index + 1 == pair.index:
            runs[-1].append(pair)
        else:
            runs.append([pair])
    return runs


class TimingSession:
    """The times of some passes that are submitted together.

    Call `submitted` after you submit the passes, or `mark` after the last pass if others do.

    Attributes
    ----------
    inside : bool
    """

    def __init__(self, helper: TimingHelper, *, inside: bool = False):
        self._helper = helper
        self.inside: bool = inside
        self._labels: list[str] = []
        self._shared: list[bool] = []  # of each pair, whether it is of a pass that several kernels share
        self._lease = _Lease(self)
        self._ticks: np.ndarray | None = None
        self._submitted = False
        self._failure: Exception | None = None

    @property
    def _pairs(self) -> list[_Pair]:
        return self._lease.pairs

    @property
    def _mark(self) -> Mark | None:
        return self._lease.mark

    @property
    def device(self) -> wgpu.GPUDevice:
        """The device whose passes it times."""
        return self._helper.device

    def _reserve(self, label: str, *, shared: bool = False) -> _Pair:
        if self._submitted or self._mark is not None:
            raise TimingUnavailable("this session is closed: its passes were marked or submitted already")
        pair = self._helper._lend(self._lease)
        self._labels.append(label)
        self._shared.append(shared)
        return pair

    def span(self, label: str) -> dict[str, object]:
        """Reserve timestamps for the next pass.

        Returns
        -------
        dict
            For ``begin_compute_pass(timestamp_writes=…)``.
        """
        return self._writes(self._reserve(label))

    def shared_pass(self, label: str) -> dict[str, object]:
        """Reserve a pair of timestamps for a pass whose kernels have their own; as `span`, but `passes` returns it."""
        return self._writes(self._reserve(label, shared=True))

    def _writes(self, pair: _Pair) -> dict[str, object]:
        return {
            "query_set": self._helper._sets[pair.set_index],
            "beginning_of_pass_write_index": 2 * pair.index,
            "end_of_pass_write_index": 2 * pair.index + 1,
        }

    def stamp(self, encoder: wgpu.GPUCommandEncoder, label: str) -> None:
        """Take a pair of timestamps at this point of an encoder, between passes.

        Needs the feature ``timestamp-query-inside-encoders``.
        """
        pair = self._reserve(label)
        # Both, though one would do: what resolving a query gives that was never written is not defined.
        for index in (2 * pair.index, 2 * pair.index + 1):
            write_timestamp(encoder, self._helper._sets[pair.set_index], index)

    @contextlib.contextmanager
    def around(self, compute: wgpu.GPUComputePassEncoder, label: str) -> Generator[None]:
        """Take timestamps around what is dispatched in the block, inside of an open pass.

        Needs the feature ``timestamp-query-inside-passes``.
        """
        if not self._helper.stamps_passes:
            raise TimingUnavailable(without_inside(self.device))
        pair = self._reserve(label)
        queries = self._helper._sets[pair.set_index]
        write_timestamp(compute, queries, 2 * pair.index)
        try:
            yield
        finally:
            write_timestamp(compute, queries, 2 * pair.index + 1)

    def submitted(self) -> None:
        """Declare that the passes have been submitted."""
        self._submitted = True

    def mark(self, encoder: wgpu.GPUCommandEncoder) -> None:
        """Record on the encoder of the passes what tells later whether they were submitted."""
        # With it the queries outlive this session: the encoder may be submitted later, and would then write them.
        self._lease.mark = mark_of(self._helper.device, encoder)

    def is_submitted(self) -> bool:
        """Whether the passes have been submitted, as far as is known without waiting for their end."""
        if not self._submitted and self._mark is not None:
            look(self._helper.device, [self._mark])
            self._submitted = self._mark.seen
        return self._submitted

    @property
    def labels(self) -> tuple[str, ...]:
        """Those of the spans reserved so far, without those of shared passes."""
        return tuple(label for label, of_pass in zip(self._labels, self._shared, strict=True) if not of_pass)

    @property
    def span_count(self) -> int:
        """Spans reserved so far, without those of shared passes."""
        return len(self._labels) - sum(self._shared)

    @property
    def is_read(self) -> bool:
        """Whether the timestamps are already in host memory."""
        return self._ticks is not None

    def abandon(self, because: Exception | None = None) -> None:
        """Free the queries; the passes were never submitted and never will be. Reading raises, and gives the reason."""
        self._failure = because
        # Without the helper's lock, which another thread may hold while it waits for the caller of this: that the
        # queries are free is noticed when some are needed.
        self._lease, self._labels, self._shared, self._submitted = _Lease(self), [], [], False

    def ticks(self) -> np.ndarray:
        """Return begin and end of each span, in ticks.

        Returns
        -------
        numpy.ndarray
            Shape (spans, 2), uint64.

        Raises
        ------
        TimingNotReady
            If the passes have not been submitted.
        TimingUnavailable
            If they could not be submitted.
        """
        ticks = self._all_ticks()
        return ticks[~np.array(self._shared)] if any(self._shared) else ticks

    def _all_ticks(self) -> np.ndarray:
        if self._ticks is not None:
            return self._ticks
        check_process()
        submit_pending(self._helper.device)
        with self._helper._lock:
            if self._ticks is None:
                if self._failure is not None:
                    raise TimingUnavailable(f"the timed passes never ran: {self._failure}") from self._failure
                if not self.is_submitted():
                    raise TimingNotReady(
                        "the timed passes have not been submitted: submit the encoder they were recorded on "
                        "(device.queue.submit([encoder.finish()])), then ask for times"
                    )
                if self._pairs:
                    self._helper._read([self])
                else:
                    self._ticks = np.empty((0, 2), dtype=np.uint64)
            assert self._ticks is not None
            return self._ticks

    def spans(self) -> list[Span]:
        """Return the times of the passes, in their order; waits for them."""
        return self._spans(self.ticks(), shared=False)

    def passes(self) -> list[Span]:
        """Return the times of passes whose kernels have timestamps of their own."""
        return self._spans(self._all_ticks()[np.array(self._shared, dtype=bool)], shared=True)

    def _spans(self, ticks: np.ndarray, *, shared: bool) -> list[Span]:
        labels = [label for label, of_pass in zip(self._labels, self._shared, strict=True) if of_pass is shared]
        period = self._helper.tick_period_ns
        return [Span(label, int(begin), int(end), period) for label, (begin, end) in zip(labels, ticks, strict=True)]
