"""Functions in WGSL that expressions call: a user's, and the library's own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..errors import ArgumentError, DatatypeError
from ..settings import ShaderChecks
from .operator_text import checked_function, renamed
from .program import Program


@dataclass(frozen=True, repr=False)
class WgslFunction:
    """A function in WGSL, with its numpy twin; made by `gridwise_py.function`.

    Attributes
    ----------
    text : str
    name : str
        Of the function that expressions call.
    takes : tuple of str
        The types of its parameters.
    gives : str
        The type of its result.
    numpy : callable or None
        The same function on numpy arrays.
    shader_checks : {"bounds", "all", "none"} or None
        The run-time checks that it asks for; None of the library's own.
    """

    text: str
    name: str
    takes: tuple[str, ...]
    gives: str
    numpy: Callable[..., Any] | None = field(default=None)
    shader_checks: ShaderChecks | None = "bounds"

    @classmethod
    def of(
        cls, text: Any, numpy: Callable[..., Any] | None = None, shader_checks: ShaderChecks | None = "bounds"
    ) -> WgslFunction:
        """Return the function that a text defines: the first one in it.

        Raises
        ------
        ArgumentError, DatatypeError
            If the text is something else.
        """
        if not isinstance(text, str):
            raise DatatypeError(
                f"gw.function() takes a str of WGSL, not {type(text).__name__}; a Python function cannot run on the "
                f"GPU: it is what numpy= takes"
            )
        if numpy is not None and not callable(numpy):
            raise ArgumentError(f"numpy= must be a callable that does on arrays what the WGSL does, not {numpy!r}")
        name, takes, gives = checked_function(text)
        return cls(text, name, takes, gives, numpy, shader_checks)

    def twin(self, *args: Any) -> Any:
        """Return the function's value in numpy."""
        if self.numpy is None:
            raise ArgumentError(
                f"the WGSL function {self.name!r} has no numpy twin to compute with; give one: gw.function(text, "
                f"numpy=lambda {', '.join('abcdefgh'[: len(self.takes)])}: …)"
            )
        dtype = {"u32": np.uint32, "i32": np.int32, "f32": np.float32, "bool": np.bool_}[self.gives]
        return np.asarray(self.numpy(*args)).astype(dtype)[()]

    def __repr__(self) -> str:
        return f"WgslFunction({self.name}({', '.join(self.takes)}) -> {self.gives})"


def function_texts(name: str, program: Program) -> tuple[list[str], dict[object, str]]:
    """Return the texts of the functions that a program calls, and the names that they are called by.

    All names that a text declares get a prefix, so that those of several texts do not clash.
    """
    texts: list[str] = []
    names: dict[object, str] = {}
    functions: list[WgslFunction] = [step.value for step in program.steps if step.kind == "function"]
    for number, function in enumerate(dict.fromkeys(functions)):
        text, prefix = renamed(function.text, f"own_{name}_{number}_")
        lines, is_own = [text.strip("\n")], function.shader_checks is None
        texts += lines if is_own else ["// ---- the user's text", *lines, "// ---- end of the user's text"]
        names[function] = prefix + function.name
    return texts, names
