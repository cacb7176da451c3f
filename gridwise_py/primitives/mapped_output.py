"""Expressions of a primitive's results, which it stores in their place."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import ArgumentError, DatatypeError
from ..planning.layout import Layout, Operand
from ..planning.sink import Sink
from ..types.datatype import VALUE_DATATYPES, Datatype, Struct
from ..types.evaluation import value_of
from ..types.expression import Expression, Later
from ..types.expression_functions import StructExpression
from ..types.program import Flat, Leaf, flatten
from .fusion import OfProgram


class MappedOutput(OfProgram):
    """What a primitive stores for each of its results.

    Parameters
    ----------
    output : Later or Expression
        An expression of ``gw.result``.
    result : Datatype
        Of the results.

    Raises
    ------
    ArgumentError, DatatypeError
        If the results have no type of expressions, or something else is read.
    """

    def __init__(self, output: Any, result: Datatype):
        self._result = result
        if not isinstance(result, Struct) and result.name not in VALUE_DATATYPES:
            raise DatatypeError(
                f"output= takes results of 4 or 8 bytes or structs of words, not of {result}; give result_dtype="
            )
        placeholder = _placeholder(result)
        found = output.resolve({"result": placeholder}, {}) if isinstance(output, Later) else output
        if isinstance(found, StructExpression) or not isinstance(found, Expression):
            raise DatatypeError(f"output= is one expression of gw.result, such as gw.result / 2, not {found!r:.60}")
        self.flat: Flat = flatten(found)
        kinds = {step.kind for step in self.flat.program.steps}
        others = [name for name in self.flat.names if not name.startswith("result")]
        moves = kinds & {"gather", "previous", "next", "flip", "component"}
        if self.flat.arrays or others or moves or self.flat.program.shader_checks is not None:
            raise ArgumentError(
                f"output= is made of gw.result, gw.index and numbers, but it reads {', '.join(others) or 'more'}; "
                f"store the results, and compute the rest with gw.asarray()"
            )

    def writes(self, layout: Layout, name: str = "output") -> Layout:
        """Return a layout whose output takes the expression, for the plan."""
        words = len(self._result.fields) if isinstance(self._result, Struct) else 0
        program = self.flat.program.with_leaves([_place(self._result, each) for each in self.flat.names])
        sink = Sink.of(
            layout[name], program=program, words=words, numbers=self.flat.numbers,
            scalars=self.flat.scalar_words(layout.values_given),
        )  # fmt: skip
        operands: dict[str, Operand] = dict(layout)
        return Layout(operands | {name: sink}, layout.values_given)

    def value(self, results: np.ndarray) -> np.ndarray:
        """Return what is stored for results, in numpy."""
        leaves = {name: results[name[7:]] if name[6:] else results for name in self.flat.names}
        return value_of(self.flat, leaves, results.size).astype(self.datatype.dtype, copy=False).reshape(results.shape)


def _placeholder(result: Datatype) -> Any:
    if isinstance(result, Struct):
        return StructExpression(
            {field: Expression("leaf", of.name, (), Leaf(f"result_{field}", of)) for field, of in result.fields}
        )
    return Expression("leaf", result.name, (), Leaf("result", result))


def _place(result: Datatype, name: str) -> int:
    """Return the word of a result that a leaf is."""
    return [field for field, _ in result.fields].index(name[7:]) if isinstance(result, Struct) else 0
