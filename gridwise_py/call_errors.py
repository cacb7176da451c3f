"""Calls that do not fit a signature: answered with the names that it has, before Python's bare TypeError.

Arguments that are True or False are checked here, too: an array in their place would be ambiguous, or true.
"""

from __future__ import annotations

import inspect
import operator
import sys
from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from functools import wraps
from typing import Any, TypeVar, cast

from .errors import CallError, DatatypeError

FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])


def nearest(word: str, known: Iterable[str]) -> str:
    """Return a question that suggests the most similar known word, to stand behind a text; empty if none is similar."""
    near = get_close_matches(word, list(known), 1)
    return f"; did you mean {near[0]!r}?" if near else ""


def no_argument(call: str, name: str, names: Iterable[str]) -> CallError:
    """Return what to raise where a call is given an argument that is none of its names."""
    near = get_close_matches(name, names := list(names), 1)
    hint = f"did you mean {near[0]!r}? It" if near else "it"
    return CallError(f"{call} has no argument {name!r}; {hint} takes {', '.join(names)}")


def explained(remedies: Mapping[str, str] | None = None) -> Callable[[FunctionT], FunctionT]:
    """Make a function or a method answer arguments that it does not have with a CallError.

    What stands in place of a bool, and is neither one nor an integer, is answered with a DatatypeError.

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
        refused = {*(remedies or ())} - known
        fits: Callable[[Mapping[str, Any]], bool] = refused.isdisjoint if takes_any else known.issuperset
        flags = {
            p.name: sys.maxsize if p.kind is p.KEYWORD_ONLY else i
            for i, p in enumerate(parameters)
            if p.annotation in ("bool", "bool | None", bool)
        }
        optional = {p.name for p in parameters if p.annotation == "bool | None"}
        # Nearly all calls: nothing that is refused, and no flag.
        most_plain = min(most, *flags.values()) if flags else most
        is_plain: Callable[[Mapping[str, Any]], bool] = (
            (refused | flags.keys()).isdisjoint if takes_any else (known - flags.keys()).issuperset
        )

        def check(args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
            if not fits(kwargs):
                own = [p.name for p in parameters[len(args) :] if p.name not in kwargs]
                kwargs = _in_own_names(_called(function, parameters, args), own, kwargs)
            if len(args) > most or not fits(kwargs):
                raise _refusal(function, parameters, args, kwargs, remedies or {})
            for name, i in flags.items():
                value = kwargs.get(name, False) if i >= len(args) else args[i]
                if value is not True and value is not False and not (value is None and name in optional):
                    _check_flag(_called(function, parameters, args), name, value)
            return kwargs

        if inspect.iscoroutinefunction(function):

            @wraps(function)
            async def call_async(*args: Any, **kwargs: Any) -> Any:
                return await function(*args, **check(args, kwargs))

            return cast(FunctionT, call_async)

        @wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            if kwargs and kwargs.get("out") is ...:  # numpy's: no number but an array of shape ()
                found = call(*args, **{**kwargs, "out": None})
                return found[...] if type(found).__module__ == "numpy" else found
            if len(args) > most_plain or (kwargs and not is_plain(kwargs)):
                kwargs = check(args, kwargs)
            return function(*args, **kwargs)

        return cast(FunctionT, call)

    return decorate


#: What numpy calls arguments, and what they may be called here.
_NUMPY_NAMES = {
    "a": "x x1", "ar": "x", "arr": "x", "ary": "x", "m": "x", "prototype": "x", "ind": "indices", "obj": "indices",
    "v": "values x2", "a_min": "low", "min": "low", "a_max": "high", "max": "high",
}  # fmt: skip


def _in_own_names(call: str, own: list[str], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keywords of a call with the names that a function has itself in place of numpy's."""
    given: dict[str, str] = {}
    for name in kwargs:
        mine = next((each for each in _NUMPY_NAMES.get(name, "").split() if each in own), name)
        if given.setdefault(mine, name) != name:
            raise CallError(f"{call}: {given[mine]}= and {name}= both stand for {mine}=; leave one out")
    return {mine: kwargs[name] for mine, name in given.items()}


def _check_flag(call: str, name: str, value: Any) -> None:
    """Raise DatatypeError for what is neither a bool, numpy's included, nor an integer."""
    if getattr(getattr(value, "dtype", None), "kind", "") == "b" and getattr(value, "ndim", 1) == 0:
        return
    try:
        operator.index(value)
    except TypeError:
        raise DatatypeError(f"{call}: {name} must be True or False, not {value!r:.60}") from None


def _called(function: Callable[..., Any], parameters: list[inspect.Parameter], args: tuple[Any, ...]) -> str:
    """Return what messages call a function or a method."""
    first = parameters[0].name if parameters else ""
    if first not in {"self", "cls"} or not args:
        return f"gw.{function.__name__}()"
    if first == "cls":
        return f"{args[0].__name__}.{function.__name__}()"
    if function.__name__ == "__init__":
        return type(args[0]).__name__
    return f"{getattr(args[0], 'name', type(args[0]).__name__)}.{function.__name__}()"


def _refusal(
    function: Callable[..., Any],
    parameters: list[inspect.Parameter],
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    remedies: Mapping[str, str],
) -> CallError:
    """Return what is wrong with a call, and what the function takes."""
    is_method = parameters[0].name in {"self", "cls"}
    own = parameters[1:] if is_method else parameters
    call = _called(function, parameters, args)
    positional = [p.name for p in own if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    named = [p.name for p in own if p.kind is p.KEYWORD_ONLY]
    if is_method and function.__name__ != "__init__" and any(p.kind is p.VAR_KEYWORD for p in own):
        named = [*args[0].signature.arguments, *named]  # a primitive names its arguments when it is made
    for name, value in kwargs.items():
        if name not in {*positional, *named}:
            if name in remedies:
                first = positional[0] if positional else "x"
                remedy = remedies[name].format(x=first, value=repr(value))
                return CallError(f"{call} has no argument {name!r}: {remedy}")
            return no_argument(call, name, [*positional, *named])
    count, plural = len(positional), "" if len(positional) == 1 else "s"
    takes = f"{count} argument{plural} by position ({', '.join(positional)})" if count else "no argument by position"
    return CallError(
        f"{call} takes {takes}, but was given {len(args) - is_method}; name {'the others' if count else 'them'}: "
        f"{', '.join(f'{name}=' for name in named)}"
    )
