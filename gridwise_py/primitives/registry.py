"""The registry: a primitive is named once, where its class is."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from .base import Primitive

PrimitiveT = TypeVar("PrimitiveT", bound=type[Primitive])

#: The primitives by the names that the command line uses. The benchmark suites, the API reference and the tests that
#: every primitive goes through find them here.
REGISTRY: dict[str, type[Primitive]] = {}


def register(name: str) -> Callable[[PrimitiveT], PrimitiveT]:
    """Make a decorator that adds a class to the registry under a name.

    The class needs ``reference``, its twin in numpy, and takes a device and a datatype first; what else its constructor
    must be told at a size says `Primitive.at_size`.
    """

    def add(cls: PrimitiveT) -> PrimitiveT:
        other = REGISTRY.setdefault(name, cls)
        if other is not cls:
            raise ValueError(f"the name {name!r} is taken by {other.__module__}.{other.__name__}")
        return cls

    return add
