"""When the GPU of a device was last at work, as far as this process knows: its clock follows the load."""

from __future__ import annotations

from collections.abc import Callable

#: A GPU without work for this long lowers its clock: an H200 under Vulkan went from 1,980 to 555 MHz in pauses of 2 ms.
IDLE_NS = 1_000_000
#: A wait that took longer has waited for the GPU.
_WAITED_NS = 50_000


class Activity:
    """The current stretch of work of one device: submissions with no pause of `IDLE_NS` or more between them.

    Threads may change it at once, and an interrupt may come in between: it is for warnings only.

    Attributes
    ----------
    begin_ns : int or None
        When the stretch began, by `time.perf_counter_ns`; None before the first submission.
    idle_ns : int or None
        How long the GPU had been idle then; None for the first stretch.
    last_ns : int
        The last time at which it was at work for certain: a submission, or the end of a wait.
    """

    __slots__ = ("_is_pending", "begin_ns", "idle_ns", "last_ns")

    def __init__(self) -> None:
        self.begin_ns: int | None = None
        self.idle_ns: int | None = None
        self.last_ns: int = 0
        self._is_pending = False  # nobody has waited since the last submission

    def submitted(self, now_ns: int, is_idle: Callable[..., bool | None], *of: object) -> None:
        """Note that work is submitted now; `is_idle(*of)` says whether all earlier work is done, None if unknown."""
        if self.begin_ns is None:
            self.begin_ns = now_ns
        elif now_ns - self.last_ns >= IDLE_NS and not (self._is_pending and is_idle(*of) is False):
            self.begin_ns, self.idle_ns = now_ns, now_ns - self.last_ns
        self.last_ns, self._is_pending = now_ns, True

    def waited(self, begin_ns: int, end_ns: int) -> None:
        """Note a wait until all work was done."""
        if self._is_pending and end_ns - begin_ns >= _WAITED_NS:
            self.last_ns = end_ns
        self._is_pending = False

    @property
    def busy_ns(self) -> int:
        """How long the stretch has lasted, at the last submission or wait."""
        return 0 if self.begin_ns is None else self.last_ns - self.begin_ns
