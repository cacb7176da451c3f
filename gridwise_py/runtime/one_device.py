"""What belongs to one device of one process, and so is neither pickled nor deep-copied."""

from __future__ import annotations

from typing import Any, ClassVar, NoReturn, Self, cast

from ..errors import DatatypeError


class OfOneDevice:
    """Base of what holds objects of a device; a shallow copy shares them."""

    __slots__ = ()

    #: What to do in place of a pickle or a deep copy.
    _instead: ClassVar[str]

    def __copy__(self) -> Self:
        copied = object.__new__(type(self))
        state: Any = object.__getstate__(self)
        parts: Any = cast(tuple[Any, ...], state) if isinstance(state, tuple) else (state,)
        for part in parts:  # the attributes in the instance's dict, and those in slots
            attributes: dict[str, Any] = part or {}
            for name, value in attributes.items():
                object.__setattr__(copied, name, value)
        return copied

    def __reduce_ex__(self, _protocol: object) -> NoReturn:
        name = type(self).__name__
        article = "an" if name[0] in "AEIOU" else "a"
        raise DatatypeError(
            f"{article} {name} belongs to a device of this process and is neither pickled nor deep-copied; "
            f"{self._instead}"
        )
