"""How much of the machine's processors other processes use while a case is measured."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path

_STAT = Path("/proc/stat")
# The counters advance in steps of 10 ms.
_LEAST_S = 0.1
# Other processes that use less of the machine hardly change the times of a CPU adapter.
_BUSY = 0.1


def is_busy(share: float | None) -> bool:
    """Whether other processes used so much of the machine that the times of a CPU are theirs, too."""
    return (share or 0.0) > _BUSY


def load_note(share: float | None) -> str:
    """Return a note about other work on the machine; empty if there was little, or it is not known."""
    return f"other work used {100 * (share or 0.0):.0f} % of this machine's processors" if is_busy(share) else ""


class LoadWatch:
    """Watches the load from its creation on. Only Linux has the counters.

    Parameters
    ----------
    pids : sequence of int
        Processes that measure for this one.
    """

    def __init__(self, pids: Sequence[int] = ()) -> None:
        self._pids = pids
        self._begin = self._read()

    def _read(self) -> tuple[float, float, float] | None:
        """Return the time, the time that all processors were busy, and what these processes used of it, in s."""
        try:
            fields = [float(word) for word in _STAT.read_text().splitlines()[0].split()[1:9]]
            ticks_per_s = os.sysconf("SC_CLK_TCK")
            own = os.times()
            own_s = own.user + own.system
            for pid in self._pids:
                # The name of the program, in brackets, may have spaces.
                words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
                own_s += (int(words[11]) + int(words[12])) / ticks_per_s
        except (OSError, ValueError, IndexError, AttributeError):
            return None
        if len(fields) < 8:
            return None
        user, nice, system, _idle, _waits_for_disk, hard, soft, stolen = fields
        busy_s = (user + nice + system + hard + soft + stolen) / ticks_per_s
        return time.perf_counter(), busy_s, own_s

    def share(self) -> float | None:
        """Return the share of all processors that others used, from 0 to 1; None if it cannot be told."""
        end = self._read()
        if self._begin is None or end is None:
            return None
        passed_s, busy_s, own_s = (after - before for before, after in zip(self._begin, end, strict=True))
        if passed_s < _LEAST_S:
            return None
        return min(max((busy_s - own_s) / (passed_s * (os.cpu_count() or 1)), 0.0), 1.0)
