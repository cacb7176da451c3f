"""A process that is asked in lines of JSON on its standard input, and answers each with one on its standard output."""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import tempfile
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import IO, Any, Self

from ... import settings

# A process without work ends at once; a driver may hang at its end.
_END_TIMEOUT_S = 20.0


class ProcessEnded(Exception):
    """A process ended or hung before it answered. The message lacks its subject: "was ended by SIGABRT: no luck".

    Attributes
    ----------
    is_interrupted : bool
        Whether SIGINT or SIGTERM ended it.
    """

    def __init__(self, message: str, *, is_interrupted: bool = False):
        super().__init__(message)
        self.is_interrupted = is_interrupted


class LineProcess:
    """A process that is running; `close` or `kill` must follow, as at the end of a ``with`` block.

    What it writes to its standard error is kept, for its last line.

    Parameters
    ----------
    command : sequence of str
    environment : mapping, optional
        Its environment variables; by default those of this process.
    """

    def __init__(self, command: Sequence[str], environment: Mapping[str, str] | None = None):
        self._errors: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115  # closed in `kill`
        # If an interrupt loses the process here, its input is closed with the object, and it ends.
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors, env=environment,
            cwd=settings.START if os.path.isdir(settings.START) else None,
        )  # fmt: skip
        self.pid: int = self._process.pid
        self._answers: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        threading.Thread(target=self._read, name="gridwise worker answers", daemon=True).start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as answers:
            for line in answers:
                self._answers.put(line)
        self._answers.put(None)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self.end()  # by itself, so that it destroys its device
        self.kill()

    @property
    def returncode(self) -> int | None:
        """As of `subprocess.Popen`."""
        return self._process.returncode

    def request(self, request: Mapping[str, Any]) -> None:
        """Send a request, and do not wait for its answer."""
        assert self._process.stdin is not None
        # If it has ended, its output ends, too.
        with suppress(OSError):
            self._process.stdin.write(json.dumps(request).encode() + b"\n")
            self._process.stdin.flush()

    def reply(self, timeout_s: float) -> dict[str, Any]:
        """Return the answer to the last request.

        Raises
        ------
        ProcessEnded
            If there is none. The process is gone then.
        """
        try:
            line = self._answers.get(timeout=timeout_s)
        except queue.Empty:
            self.kill()
            raise ProcessEnded(f"was ended after {timeout_s:g} s without a result") from None
        if line is None:
            how, said = self.end() or "ended with 0", self._last_words()
            self.kill()
            is_interrupted = self.returncode in (-signal.SIGINT, -signal.SIGTERM)
            raise ProcessEnded(how + (f": {said}" if said else ""), is_interrupted=is_interrupted)
        try:
            return json.loads(line)
        except ValueError:  # killed while it wrote
            self.kill()
            raise ProcessEnded(f"ended in the middle of an answer: {line[:80]!r}") from None

    def _last_words(self) -> str:
        self._errors.seek(0)
        lines = self._errors.read().decode(errors="replace").strip().splitlines()
        return lines[-1][:500] if lines else ""

    def end(self) -> str:
        """End the process when it is idle, and return how it ended; empty if it ended well."""
        assert self._process.stdin is not None
        with suppress(OSError):
            self._process.stdin.close()
        try:
            code = self._process.wait(_END_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self.kill()
            return "did not end"
        return _ending(code) if code else ""

    def close(self) -> str:
        """As `end`, and forget what it wrote."""
        how = self.end()
        self.kill()
        return how

    def kill(self) -> None:
        """End the process at once, and forget what it wrote."""
        self._process.kill()
        self._process.wait()
        self._errors.close()


def _ending(returncode: int) -> str:
    if returncode >= 0:
        return f"ended with {returncode}"
    try:
        return f"was ended by {signal.Signals(-returncode).name}"
    except ValueError:
        return f"was ended by signal {-returncode}"
