"""Families of functions that differ by data: one has the signature, and each its name, its data and its docstring."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, Concatenate, ParamSpec, TypeVar, cast

from .repeated_calls import one_shot

FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])
DataP = ParamSpec("DataP")


def describe(function: FunctionT, name: str, sentence: str, **parts: str) -> FunctionT:
    """Give a function a name, and a sentence in front of its docstring, whose ``{names}`` are filled in."""
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"{sentence}\n\n{(inspect.getdoc(function) or '').format(**parts)}"
    return function


def family(
    remedies: Mapping[str, str] | None = None,
) -> Callable[
    [Callable[Concatenate[str, DataP], FunctionT]], Callable[DataP, Callable[[Callable[[], None]], FunctionT]]
]:
    """Make a decorator of what makes a function; the decorator gives it to functions that have only a docstring.

    What makes it takes what messages call the function, ``"gw.sum()"``, and the data of the decorator. The docstring
    may have a line ``{parameters}``, in place of which that of the made function comes.

    Parameters
    ----------
    remedies : mapping from str to str, optional
        As for `explained`.
    """

    def decorate(
        make: Callable[Concatenate[str, DataP], FunctionT],
    ) -> Callable[DataP, Callable[[Callable[[], None]], FunctionT]]:
        def member(*args: DataP.args, **kwargs: DataP.kwargs) -> Callable[[Callable[[], None]], FunctionT]:
            def name(own: Callable[[], None]) -> FunctionT:
                function = cast(Any, make(f"gw.{own.__name__}()", *args, **kwargs))
                function.__doc__ = (inspect.getdoc(own) or "").replace("{parameters}", inspect.getdoc(function) or "")
                for kept in ("__name__", "__qualname__", "__module__"):
                    setattr(function, kept, getattr(own, kept))
                return cast(FunctionT, one_shot(remedies)(function))

            return name

        return member

    return decorate
