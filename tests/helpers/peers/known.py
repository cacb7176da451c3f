"""Differences from numpy that the documentation states: what is refused, and what is answered in another way."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .calls import Call, Given, is_on_gpu, walk


@dataclass(frozen=True)
class Known:
    """A documented difference.

    Attributes
    ----------
    reason : str
        What is different, and where that stands.
    names : str
        A regular expression for the function.
    kinds : str
        One for the kind of difference, with its mark.
    message : str
        One that is found in the message.
    when : callable, optional
        Says whether it holds for a call.
    """

    reason: str
    names: str = ".*"
    kinds: str = "refusal"
    message: str = ""
    when: Callable[[Call], bool] | None = None

    def holds(self, call: Call, finding: Any) -> bool:
        return bool(
            re.fullmatch(self.names, call.name)
            and re.match(self.kinds, finding.kind)
            and re.search(self.message, finding.detail)
            and (self.when is None or self.when(call))
        )


def has_dtype(*names: str) -> Callable[[Call], bool]:
    wanted = {np.dtype(name) for name in names}
    return lambda call: any(given.items.dtype in wanted for given in walk(call))


def on_gpu(call: Call) -> bool:
    return is_on_gpu(call)


def mixed(call: Call) -> bool:
    hows = {given.how for given in walk(call)}
    return is_on_gpu(call) and bool(hows - {"gpu", "view", "expr"})


def dims_of_first(call: Call) -> int:
    first = call.args[0]
    return first.items.ndim if isinstance(first, Given) else 1


#: What is refused that numpy takes.
REFUSALS: tuple[Known, ...] = ()
#: What is answered in another way.
ALLOWED: tuple[Known, ...] = ()
