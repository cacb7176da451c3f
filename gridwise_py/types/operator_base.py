"""What operators of one and of two arguments have in common."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from numbers import Complex, Real
from typing import Any, ClassVar

import numpy as np

from ..errors import ArgumentError, DatatypeError
from ..settings import SHADER_CHECKS, ShaderChecks
from .datatype import DATATYPES, Datatype, Struct
from .operator_text import TextForm, check_expression, check_functions, scoped, type_of, written_type
from .options import one_of


class Operator:
    """Base of operators: a name, a numpy twin, a WGSL text that stays where it is put, and values to check them with.

    Subclasses are frozen dataclasses with these fields. They are compared by everything that they say.
    """

    name: str
    numpy: Callable[..., Any]
    wgsl: str | None
    expression: str | None
    check: bool | Sequence[Any]
    shader_checks: ShaderChecks
    #: What the text looks like.
    form: ClassVar[TextForm]
    #: Operators of this library's own, by name.
    builtins: ClassVar[dict[str, Any]]

    def _check_definition(self) -> None:
        """Refuse what cannot be an operator.

        Raises
        ------
        ArgumentError, DatatypeError
        """
        form = self.form
        one_of("shader_checks", self.shader_checks, SHADER_CHECKS)
        for option in ("wgsl", "expression"):
            text = getattr(self, option)
            if text is not None and not isinstance(text, str):
                raise DatatypeError(
                    f"{option}= of {self._title} must be a str of WGSL, not {type(text).__name__}; a Python "
                    f"function cannot run on the GPU: it is what numpy= takes"
                )
        if (self.wgsl is None) == (self.expression is None):
            raise ArgumentError(
                f"{self._title} needs exactly one of wgsl= (a function {form.function!r}) and expression=."
            )
        if self.wgsl is not None:
            check_functions(form, self.name, self.wgsl)
        else:
            check_expression(form, self.name, self.expression or "")
        if not callable(self.numpy):
            takes, arrays = ", ".join(form.arguments), "a numpy array" if len(form.arguments) == 1 else "numpy arrays"
            raise ArgumentError(
                f"{self._title}: numpy= must be a callable f({takes}) that does on {arrays} what the WGSL does, not "
                f"{self.numpy!r}; results are checked against it"
            )
        if not isinstance(self.check, bool):
            object.__setattr__(self, "check", _values(self.check))

    def _key(self) -> tuple[Any, ...]:
        """What tells two operators apart."""
        return (self.name, self.numpy, self.wgsl, self.expression, self.check, self.shader_checks)

    def __eq__(self, other: object) -> bool:
        return self._key() == other._key() if isinstance(other, type(self)) else NotImplemented

    # Of what is hashable in any case: a name and a text say what an operator is.
    def __hash__(self) -> int:
        return hash((self.name, self.wgsl, self.expression))

    def __reduce_ex__(self, protocol: Any) -> Any:
        # Copies of a built-in operator, and what comes back from a pickle, are that operator.
        known = self is self.builtins.get(self.name)
        return (_builtin, (type(self), self.name)) if known else super().__reduce_ex__(protocol)

    @property
    def builtin(self) -> bool:
        """Whether the text is this library's own."""
        return self in self.builtins.values()

    def text_for(self, datatype: Datatype) -> str | None:
        """Return the text of its function for items of a datatype; None where it is an expression."""
        return self.wgsl

    def checks_for(self, datatype: Datatype) -> ShaderChecks | None:
        """Return the run-time checks that the text for items of a datatype asks for; None of the library's own."""
        return None if self.builtin else self.shader_checks

    @classmethod
    def find(cls, value: Any) -> Any:
        """Return an operator for itself or for the name of a built-in one.

        Raises
        ------
        ArgumentError
        """
        if isinstance(value, cls):
            return value
        if isinstance(value, str) and value in cls.builtins:
            return cls.builtins[value]
        raise ArgumentError(
            f"operator {value!r} is unknown; known are {', '.join(cls.builtins)}, or give a "
            f"gridwise_py.{cls.form.kind} (for datatypes {', '.join(DATATYPES)})"
        )

    def number(self, value: Any, datatype: Datatype, what: str) -> Any:
        """Return a value as a numpy scalar; refuse what is another number in `datatype`, or none.

        An item of a `Struct` is a tuple or a mapping of such values.
        """
        if isinstance(datatype, Struct):
            values = datatype.values_of(value, f"{what} of {self._title}")
            numbers = tuple(self.number(values[field], of, f"{what}.{field}") for field, of in datatype.fields)
            return np.array(numbers, dtype=datatype.dtype)[()]

        def refuse(why: str) -> DatatypeError:
            return DatatypeError(f"{what} {value!r:.60} of {self._title} {why}: no value of {datatype}")

        if isinstance(value, np.ndarray) and value.ndim == 0:
            value = value[()]
        if datatype.dtype.kind == "c" and isinstance(value, Complex):
            parts = (self.number(part, DATATYPES["f32"], what) for part in (value.real, value.imag))
            return np.array(complex(*parts), dtype=datatype.dtype)[()]
        if not _is_number(value):
            raise refuse(f"is of type {type(value).__name__}, not a number")
        if datatype.dtype.kind != "f" and value != value // 1:
            raise refuse("is not a whole number")
        with np.errstate(over="ignore"):
            try:
                found = np.array(value).astype(datatype.dtype)[()]
            except (OverflowError, TypeError) as error:
                raise refuse(f"cannot be held ({error})") from error
        if datatype.dtype.kind != "f" and int(found) != int(value):
            raise refuse(f"is not from {datatype.lowest} to {datatype.highest}")
        if np.isinf(found) and not np.isinf(float(value)):
            raise refuse("is beyond the largest float")
        return found

    @property
    def _title(self) -> str:
        """What messages call it."""
        return f"{self.form.kind} {self.name!r}"

    def __repr__(self) -> str:
        return f"{self.form.kind}({self.name!r})"


def _is_number(value: object) -> bool:
    return isinstance(value, (Real, np.bool_))


def _values(given: Any) -> tuple[Any, ...]:
    """Return the values to check with: numbers, in one row, or items of a struct."""
    if not isinstance(given, np.ndarray):
        items = list(given)
        if any(isinstance(item, (tuple, Mapping, np.void)) for item in items):
            return tuple(items)
    return tuple(np.asarray(given).ravel().tolist())


def _builtin(cls: type[Operator], name: str) -> Any:
    return cls.builtins[name]


def text_context(op: Operator, datatype: Datatype, wgsl_type: str, function: str = "") -> dict[str, str | None]:
    """Return an operator's text for a template; `wgsl_type` is that of its arguments on items of `datatype`.

    Its function is called `function` there, by default by its own name.

    Raises
    ------
    DatatypeError
        If the text is written for another type.
    """
    wgsl = op.text_for(datatype)
    if wgsl is None:
        return {"expression": op.expression, "wgsl": None}
    form, written_for = op.form, type_of(op.form, wgsl)
    if written_for is None and datatype.is_several and written_type(op.form, wgsl) != "T":
        written_for = "Acc"
    if written_for not in (None, wgsl_type):
        title = op._title  # pyright: ignore[reportPrivateUsage]  # of this module's class
        raise DatatypeError(
            f"{form.function!r} of {title} is written for {written_for}, but the items are of {datatype}; write T "
            f"for the type, which is each datatype in turn: {form.signature}"
        )
    return {"expression": None, "wgsl": scoped(form, wgsl, function)}
