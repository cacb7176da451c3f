"""Chrome traces: what was timed, as slices on a time line, for Perfetto (ui.perfetto.dev) or chrome://tracing.

Times are integers of nanoseconds until the trace's origin is subtracted; only then they become the floating-point
microseconds that the format wants: a large count does not fit into a double exactly.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .files import write_whole

APPROXIMATE = (
    "approximate: WebGPU does not relate the GPU's clock to the CPU's. Lengths on each lane are right; where GPU lanes "
    "lie against host lanes is only known as well as it was waited for."
)


@dataclass(frozen=True)
class GpuSlice:
    """What the GPU did between two stamps."""

    name: str
    begin_ticks: int
    end_ticks: int
    args: Mapping[str, Any]
    category: str = "kernel"
    flow: tuple[tuple[int, int], int] | None = None  # the host's lane and time that it comes from


class ChromeTrace:
    """Collects lanes and slices, and writes them in the Trace Event Format.

    Parameters
    ----------
    origin_ns : int
        Subtracted from every time.
    metadata : mapping
        Goes into ``otherData``; can be added to.
    """

    def __init__(self, origin_ns: int = 0, metadata: Mapping[str, Any] | None = None):
        self._origin_ns = origin_ns
        self.metadata: dict[str, Any] = dict(metadata or {})
        self._names: list[dict[str, Any]] = []
        self._events: list[dict[str, Any]] = []
        self._pids: dict[str, int] = {}
        self._lanes: dict[tuple[str, str], tuple[int, int]] = {}
        self._flows = 0

    def lane(self, process: str, thread: str) -> tuple[int, int]:
        """Return a lane, making it at the first call."""
        lane = self._lanes.get((process, thread))
        if lane is None:
            pid = self._pids.get(process)
            if pid is None:
                pid = self._pids[process] = len(self._pids) + 1
                self._name("process_name", pid, 0, {"name": process})
                self._name("process_sort_index", pid, 0, {"sort_index": pid})
            tid = 1 + sum(known == process for known, _ in self._lanes)
            lane = self._lanes[process, thread] = (pid, tid)
            self._name("thread_name", pid, tid, {"name": thread})
            self._name("thread_sort_index", pid, tid, {"sort_index": tid})
        return lane

    def _name(self, name: str, pid: int, tid: int, args: dict[str, Any]) -> None:
        self._names.append({"ph": "M", "name": name, "pid": pid, "tid": tid, "args": args})

    def _us(self, time_ns: float) -> float:
        # An integer minus an integer first; below a picosecond nothing is meant.
        return round((time_ns - self._origin_ns) / 1e3, 6)

    def slice(
        self,
        lane: tuple[int, int],
        name: str,
        begin_ns: float,
        duration_ns: float,
        args: Mapping[str, Any] | None = None,
        category: str = "host",
    ) -> None:
        """Add what lasted from `begin_ns` for `duration_ns`."""
        event: dict[str, Any] = {
            "ph": "X", "name": name, "cat": category, "pid": lane[0], "tid": lane[1],
            "ts": self._us(begin_ns), "dur": round(duration_ns / 1e3, 6),
        }  # fmt: skip
        known = {key: value for key, value in (args or {}).items() if value is not None}
        if known:
            event["args"] = known
        self._events.append(event)

    def flow(self, source: tuple[tuple[int, int], float], target: tuple[tuple[int, int], float]) -> None:
        """Add an arrow between two slices, each told by a lane and a time inside of it."""
        self._flows += 1
        for phase, (lane, time_ns) in (("s", source), ("f", target)):
            event = {
                "ph": phase, "id": self._flows, "name": "submission", "cat": "submission",
                "pid": lane[0], "tid": lane[1], "ts": self._us(time_ns),
            }  # fmt: skip
            self._events.append(event | ({"bp": "e"} if phase == "f" else {}))

    def gpu_slices(
        self,
        queue: str,
        slices: Iterable[GpuSlice],
        period_ns: float,
        anchor: tuple[int, int],
        *,
        drift: float = 0.0,
        process: str = "GPU",
    ) -> None:
        """Add slices to the lane of a GPU queue.

        Parameters
        ----------
        queue : str
            Name of the lane.
        slices : iterable of GpuSlice
        period_ns : float
            Nanoseconds in a tick.
        anchor : tuple of int
            A count of ticks, and the host's time in nanoseconds that it is taken for.
        drift : float, default 0.0
            By what share the host's clock runs faster than the GPU's.
        """
        ticks0, host0_ns = anchor
        ends: list[int] = []
        for piece in sorted(slices, key=lambda s: (s.begin_ticks, -s.end_ticks)):
            # A GPU may begin a pass before the one before has ended; slices of one lane must not overlap.
            row = next((i for i, end in enumerate(ends) if end <= piece.begin_ticks), len(ends))
            ends[row : row + 1] = [piece.end_ticks]
            lane = self.lane(process, queue if row == 0 else f"{queue}, overlapping {row}")
            # Both ends are rounded, and not the length: neighbours must not overlap by a rounding.
            begin_ns, end_ns = (
                host0_ns + round((ticks - ticks0) * period_ns * (1 + drift))
                for ticks in (piece.begin_ticks, piece.end_ticks)
            )
            ticks = {"begin_ticks": piece.begin_ticks, "end_ticks": piece.end_ticks}
            self.slice(lane, piece.name, begin_ns, end_ns - begin_ns, {**piece.args, **ticks}, piece.category)
            # The clocks are aligned to some µs only: no arrow ends before it begins, or outside of its slice.
            if piece.flow is not None and piece.flow[1] <= end_ns:
                self.flow(piece.flow, (lane, max(begin_ns, piece.flow[1])))

    def to_dict(self) -> dict[str, Any]:
        """Return the trace as JSON data, in the order of time, which begins at 0 at the latest."""
        before = min((event["ts"] for event in self._events), default=0.0)
        if before < 0:
            for event in self._events:
                event["ts"] = round(event["ts"] - before, 6)
            self._origin_ns += round(before * 1e3)
        return {
            "displayTimeUnit": "ns",
            "otherData": {"clock_alignment": APPROXIMATE, **self.metadata},
            "traceEvents": self._names + sorted(self._events, key=lambda e: (e["ts"], -e.get("dur", 0.0))),
        }

    def write(self, path: str | Path) -> None:
        """Write it as a file, whole or not at all."""
        write_whole(Path(path), json.dumps(self.to_dict(), allow_nan=False).encode())
