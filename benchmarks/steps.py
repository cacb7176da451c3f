"""Steps of a measurement on a machine that is rented for minutes: what was measured stays, whatever comes later.

After each step the document is written. A step that raises is recorded, and the next one begins. A step that hangs ends
the program, and after the time is over no step begins: both are in the document.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gridwise_py.bench.results.context import host_context

#: The exit code of a program whose step hung.
HUNG = 3


class Steps:
    """The document of a measurement, made step by step.

    Parameters
    ----------
    path : Path or None
        Where the document is written.
    minutes : float
        After these, no step begins.
    **document
        What is known from the start.
    """

    def __init__(self, path: Path | None, minutes: float, **document: Any):
        self.document: dict[str, Any] = {
            "context": host_context(), **document, "seconds": {}, "errors": {}, "left_out": [],
        }  # fmt: skip
        self._path = path
        self._begin_s = time.monotonic()
        self._deadline_s = self._begin_s + 60 * minutes

    @property
    def left_s(self) -> float:
        """Seconds until no step begins any more."""
        return self._deadline_s - time.monotonic()

    @property
    def is_whole(self) -> bool:
        """Whether every step was done, without an error."""
        return not self.document["errors"] and not self.document["left_out"]

    def run(self, name: str, function: Callable[[], Any], limit_s: float) -> Any:
        """Return what a step returns; None if it failed, or did not begin.

        Parameters
        ----------
        name : str
        function : callable
        limit_s : float
            A step that takes longer hangs: the program ends.
        """
        if self.left_s <= 0:
            self.document["left_out"].append(name)
            self.say(f"{name}: left out, the time is over")
            return None
        self.say(name)
        begin_s = time.monotonic()
        watch = threading.Timer(limit_s, self._give_up, (name, limit_s))
        watch.daemon = True
        watch.start()
        try:
            return function()
        except Exception as error:
            self.document["errors"][name] = f"{type(error).__name__}: {error}"
            self.say(f"{name}: FAILED: {type(error).__name__}: {error}")
            traceback.print_exc()
            return None
        finally:
            watch.cancel()
            self.document["seconds"][name] = round(time.monotonic() - begin_s, 2)
            self.save()

    def say(self, text: str) -> None:
        """Print a line with the seconds since the start."""
        print(f"[{time.monotonic() - self._begin_s:6.1f} s] {text}", flush=True)

    def save(self) -> None:
        """Write the document, whole or not at all."""
        if self._path is None:
            return
        beside = self._path.with_name(f"{self._path.name}.part")
        beside.write_text(json.dumps(self.document, indent=1, default=str) + "\n", encoding="utf-8")
        beside.replace(self._path)

    def _give_up(self, name: str, limit_s: float) -> None:
        self.document["errors"][name] = f"hung: no end after {limit_s:g} s"
        self.say(f"{name}: HUNG: no end after {limit_s:g} s; the program ends")
        self.save()
        sys.stdout.flush()
        os._exit(HUNG)
