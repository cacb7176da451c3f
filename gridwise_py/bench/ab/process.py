"""A worker process of one side: started, asked one command after another, and ended."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..sweep.line_process import LineProcess, ProcessEnded
from .environments import Environment

_PROGRAM = Path(__file__).with_name("worker.py")
#: A command that takes longer counts as hanging.
_TIMEOUT_S = 600.0


class SideError(Exception):
    """A side could not do what it was asked; the message has its own words.

    Attributes
    ----------
    is_dead : bool
        Whether its process is gone.
    is_interrupted : bool
        Whether it was ended as Ctrl-C ends it.
    """

    def __init__(self, message: str, *, is_dead: bool = False, is_interrupted: bool = False):
        super().__init__(message)
        self.is_dead = is_dead
        self.is_interrupted = is_interrupted


class Worker(LineProcess):
    """A process in the environment of one side; use it in a ``with`` block.

    Parameters
    ----------
    environment : Environment
    """

    def __init__(self, environment: Environment):
        # -P: the folder of the program, which is that of this package, is not searched for modules.
        super().__init__([str(environment.python), "-P", str(_PROGRAM)], environment.variables())

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
        self.request({"do": do, **options})

    def answer(self) -> dict[str, Any]:
        """Return the answer to the last command; raises as `ask`."""
        try:
            found = self.reply(_TIMEOUT_S)
        except ProcessEnded as ended:
            raise SideError(f"its process {ended}", is_dead=True, is_interrupted=ended.is_interrupted) from None
        if "error" in found:
            raise SideError(found["error"])
        return found
