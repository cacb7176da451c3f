"""A running cub_stream_peer: it keeps data on the GPU, and answers each command with a line of JSON."""

from __future__ import annotations

import json
import select
import subprocess
from pathlib import Path
from typing import Any

import numpy as np

#: A case at 2^28 takes below a second; a program that is silent for longer hangs.
_ANSWER_S = 60.0


class PeerError(Exception):
    """The other side cannot do a case, or failed; the message says why."""


class CubServer:
    """CUB in a process of its own, so that its data stays on the GPU while both sides take turns.

    Parameters
    ----------
    program : Path
        What was built from cub_stream_peer.cu.
    folder : Path
        For the files through which data goes; each is removed after it was read.
    """

    def __init__(self, program: Path, folder: Path):
        self._program, self._folder = program, folder
        self._process: subprocess.Popen[str] | None = None
        self._loaded: dict[str, np.ndarray] = {}

    def ask(self, *words: object) -> dict[str, Any]:
        """Send a command, and return the answer.

        Raises
        ------
        PeerError
            If the program fails or is silent. It is then ended, and the next command starts another one.
        """
        if self._process is None:
            try:
                self._process = subprocess.Popen(
                    [str(self._program)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
                )
            except OSError as error:
                raise PeerError(f"{self._program}: {error.strerror}") from error
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(" ".join(map(str, words)) + "\n")
            process.stdin.flush()
        except BrokenPipeError:
            self.close()
            raise PeerError(f"{self._program.name} ended before {words[0]}") from None
        ready, _, _ = select.select([process.stdout], [], [], _ANSWER_S)
        line = process.stdout.readline() if ready else ""
        answer = json.loads(line) if line else {"error": "ended" if ready else f"no answer in {_ANSWER_S:g} s"}
        if "error" in answer:
            # After an error on the GPU a CUDA context is of no use, so it is left with its process.
            self.close()
            raise PeerError(f"{self._program.name} {' '.join(map(str, words[:2]))}: {answer['error']}")
        return answer

    def load(self, name: str, items: np.ndarray) -> None:
        """Copy data to the GPU, if it is not there yet; other data of the same name is replaced."""
        if self._loaded.get(name) is items:
            return
        path = self._folder / f"{name.replace('/', '_of_')}.bin"
        items.tofile(path)
        try:
            self.ask("load", name, path, items.nbytes)
        finally:
            path.unlink()
        self._loaded[name] = items

    def forget(self) -> None:
        """Free all data."""
        for name in sorted(self._loaded):
            self.ask("free", name)
        self._loaded.clear()

    def close(self) -> None:
        """End the program; its data goes."""
        process, self._process = self._process, None
        self._loaded.clear()
        if process is not None:
            process.kill()
            process.communicate()
