"""A worker process of one side: started, asked one command after another, and ended."""

from __future__ import annotations

import contextlib
import json
import queue
import subprocess
import tempfile
import threading
from pathlib import Path
from types import TracebackType
from typing import IO, Any

from .environments import Environment

__all__ = ["SideError", "Worker"]

_PROGRAM = Path(__file__).with_name("worker.py")
#: A command that takes longer counts as hanging.
_TIMEOUT_S = 600.0
_ENDING_S = 10.0


class SideError(Exception):
    """A side could not do what it was asked; the message has its own words.

    Attributes
    ----------
    is_dead : bool
        Whether its process is gone.
    """

    def __init__(self, message: str, *, is_dead: bool = False):
        super().__init__(message)
        self.is_dead = is_dead


class Worker:
    """A process in the environment of one side; use it in a ``with`` block.

    Parameters
    ----------
    environment : Environment
    """

    def __init__(self, environment: Environment):
        self._log: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115  # closed in __exit__
        # -P: the folder of the program, which is that of this package, is not searched for modules.
        self._process = subprocess.Popen(
            [str(environment.python), "-P", str(_PROGRAM)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log, env=environment.variables(),
            text=True, encoding="utf-8",
        )  # fmt: skip
        self._answers: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._answers.put(line)
        self._answers.put(None)

    def __enter__(self) -> Worker:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        process = self._process
        with contextlib.suppress(OSError):
            assert process.stdin is not None
            process.stdin.close()  # it ends by itself, and destroys its device
        if kind is not None:
            process.kill()
        try:
            process.wait(_ENDING_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        self._log.close()

    def ask(self, do: str, **options: Any) -> dict[str, Any]:
        """Send a command and return the answer.

        Raises
        ------
        SideError
            If the command failed, or the process died or hangs.
        """
        self.send(do, **options)
        return self.answer()

    def send(self, do: str, **options: Any) -> None:
        """Send a command, and do not wait for its answer."""
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):  # if it has ended, so has its output
            self._process.stdin.write(json.dumps({"do": do, **options}) + "\n")
            self._process.stdin.flush()

    def answer(self) -> dict[str, Any]:
        """Return the answer to the last command; raises as `ask`."""
        try:
            answer = self._answers.get(timeout=_TIMEOUT_S)
        except queue.Empty:
            self._process.kill()
            raise SideError(f"no answer after {_TIMEOUT_S:g} s", is_dead=True) from None
        if answer is None:
            raise SideError(self._last_words(), is_dead=True)
        found: dict[str, Any] = json.loads(answer)
        if "error" in found:
            raise SideError(found["error"])
        return found

    def _last_words(self) -> str:
        code = self._process.wait(_ENDING_S)
        self._log.seek(0)
        said = self._log.read().decode("utf-8", "replace").strip().splitlines()
        how = f"exit code {code}" if code >= 0 else f"signal {-code}"
        return f"its process ended ({how})" + (f": {said[-1][:500]}" if said else "")
