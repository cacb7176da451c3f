"""Calls that do not fit a signature: answered with the names that it has, before Python's bare TypeError."""

from __future__ import annotations

import inspect
import sys
import warnings
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from functools import wraps
from typing import Any, TypeVar, cast

from .errors import ArgumentError, CallError, GridwiseWarning

__all__ = ["LEFT_OUT", "explained", "given"]

FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])


# Earlier names of arguments, which go in a later version: one word, dtype, is for all.
_RENAMED = {"datatype": "dtype", "value_datatype": "value_dtype", "datatypes": "dtypes"}


class _LeftOut:
    """What an argument is that a caller leaves out, where None says something else."""

    def __repr__(self) -> str:
        return "<left out>"


# Of the type of None for type checkers: of Any, it would say what the other arguments of a call may be.
LEFT_OUT: None = cast(None, _LeftOut())


def given(**arguments: Any) -> dict[str, Any]:
    """Return those arguments that were not left out."""
    for value in arguments.values():
        if value is LEFT_OUT:
            break
    else:
        return arguments
    return {name: value for name, value in arguments.items() if value is not LEFT_OUT}


def explained(remedies: Mapping[str, str] | None = None) -> Callable[[FunctionT], FunctionT]:
    """Make a function or a method answer arguments that it does not have with a CallError.

    An argument under its earlier name is taken with a GridwiseWarning.

    Parameters
    ----------
    remedies : mapping from str to str, optional
        What to do, by the name of an argument that callers may expect; ``{x}`` stands for the first argument, and
        ``{value}`` for the value that was given.
    """

    def decorate(function: FunctionT) -> FunctionT:
        parameters = list(inspect.signature(function).parameters.values())
        most = sum(p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) for p in parameters)
        known = {p.name for p in parameters}
        takes_any = any(p.kind is p.VAR_KEYWORD for p in parameters)
        if any(p.kind is p.VAR_POSITIONAL for p in parameters):
            most = sys.maxsize
        renamed = {old: new for old, new in _RENAMED.items() if new in known and old not in known}
        refused = {*(remedies or ()), *renamed} - known

        fits: Callable[[Mapping[str, Any]], bool] = refused.isdisjoint if takes_any else known.issuperset

        def checked(args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
            """Return the named arguments under their names of today, or raise."""
            named = _with_new_names(parameters, renamed, args, kwargs)
            if len(args) > most or not fits(named):
                raise CallError(_explanation(function, parameters, args, named, remedies or {}))
            return named

        if inspect.iscoroutinefunction(function):

            @wraps(function)
            async def call_async(*args: Any, **kwargs: Any) -> Any:
                if not fits(kwargs) or len(args) > most:
                    kwargs = checked(args, kwargs)
                return await function(*args, **kwargs)

            return cast(FunctionT, call_async)

        @wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            if len(args) > most or (kwargs and not fits(kwargs)):
                kwargs = checked(args, kwargs)
            if not kwargs:
                return function(*args)
            return function(*args, **kwargs)

        return cast(FunctionT, call)

    return decorate


def _with_new_names(
    parameters: list[inspect.Parameter],
    renamed: Mapping[str, str],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> dict[str, Any]:
    """Return named arguments with those of earlier names under today's; warn of each."""
    found = {old: new for old, new in renamed.items() if old in kwargs}
    positional = [p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD][: len(args)]
    for old, new in found.items():
        if new in kwargs or new in positional:
            raise ArgumentError(f"{new}= and {old}= are the same option; give only {new}=")
        warnings.warn(f"{old}= is called {new}= now; the earlier name goes in a later version", GridwiseWarning, 4)
    return {found.get(name, name): value for name, value in kwargs.items()}


def _explanation(
    function: Callable[..., Any],
    parameters: list[inspect.Parameter],
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    remedies: Mapping[str, str],
) -> str:
    """Return what is wrong with a call, and what the function takes."""
    is_method = parameters[0].name in {"self", "cls"}
    own = parameters[1:] if is_method else parameters
    if not is_method:
        call = f"gw.{function.__name__}()"
    elif parameters[0].name == "cls":
        call = f"{args[0].__name__}.{function.__name__}()"
    elif function.__name__ == "__init__":
        call = type(args[0]).__name__
    else:
        call = f"{args[0].name}.{function.__name__}()"
    positional = [p.name for p in own if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    named = [p.name for p in own if p.kind is p.KEYWORD_ONLY]
    if is_method and any(p.kind is p.VAR_KEYWORD for p in own):  # a primitive names its arguments when it is made
        named = [argument.name for argument in args[0].arguments] + named
    for name, value in kwargs.items():
        if name not in {*positional, *named}:
            if name in remedies:
                first = positional[0] if positional else "x"
                return f"{call} has no argument {name!r}: {remedies[name].format(x=first, value=repr(value))}"
            near = get_close_matches(name, [*positional, *named], 1)
            hint = f"did you mean {near[0]!r}? It" if near else "it"
            return f"{call} has no argument {name!r}; {hint} takes {', '.join([*positional, *named])}"
    count, plural = len(positional), "" if len(positional) == 1 else "s"
    takes = f"{count} argument{plural} by position ({', '.join(positional)})" if count else "no argument by position"
    return (
        f"{call} takes {takes}, but was given {len(args) - is_method}; name {'the others' if count else 'them'}: "
        f"{', '.join(f'{name}=' for name in named)}"
    )
