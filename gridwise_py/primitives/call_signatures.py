"""The signatures that ``help()`` and notebooks show of a primitive's calls, made of the arrays that its class names."""

from __future__ import annotations

import inspect
import types
from typing import Any, TypedDict, cast

from ..timing.queries import GpuTiming


class Timed(TypedDict, total=False):
    """Options of calls that submit."""

    enable_gpu_timing: GpuTiming
    enable_cpu_timing: bool
    trials: int


class _LeftOut:
    """What is shown as the default of an array: one that is left out is that of the call before."""

    def __repr__(self) -> str:
        return "..."


_LEFT_OUT = _LeftOut()


def with_arrays(method: types.FunctionType, arrays: type) -> types.FunctionType:
    """Return a method of `Primitive` whose signature names the arrays of a TypedDict, in place of ``**arrays``."""
    shown = inspect.signature(method)
    named = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=_LEFT_OUT, annotation=_text(annotation))
        for name, annotation in arrays.__annotations__.items()
    ]
    own = [parameter for name, parameter in shown.parameters.items() if name != "arrays"]
    first = sum(parameter.kind is not inspect.Parameter.KEYWORD_ONLY for parameter in own)
    # A copy, which costs a call nothing.
    copy = types.FunctionType(
        method.__code__, method.__globals__, method.__name__, method.__defaults__, method.__closure__
    )
    copy.__kwdefaults__ = method.__kwdefaults__
    # Without what `functools.wraps` leaves: it would lead Sphinx to a definition with fewer arguments.
    copy.__dict__.update({name: value for name, value in method.__dict__.items() if name != "__wrapped__"})
    copy.__doc__, copy.__qualname__, copy.__module__ = method.__doc__, method.__qualname__, method.__module__
    cast(Any, copy).__signature__ = shown.replace(parameters=[*own[:first], *named, *own[first:]])
    return copy


def _text(annotation: Any) -> str:
    """Return an annotation of a TypedDict, which is a ForwardRef, as its text."""
    return str(getattr(annotation, "__forward_arg__", annotation)).replace("ItemsT", "Items")
