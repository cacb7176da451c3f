"""Map: an operator of one argument, applied to each item."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import wgpu

from ..call_errors import explained
from ..errors import ArgumentError
from ..planning.accessors import quad_type
from ..planning.signature import Argument
from ..runtime.operator_check import check_operator
from ..tuning.options import ElementwiseTuning
from ..types.capabilities import Capabilities
from ..types.datatype import STORAGE_DATATYPES, ComputeDatatypeLike, as_datatype
from ..types.expression import Operators
from ..types.unary_operators import Square, UnaryOp, UnaryOpLike, as_unaryop, unary_context
from .calls import InputOutputCalls
from .engines.elementwise import Elementwise, elementwise_arguments
from .registry import register


@register("map")
class Map(InputOutputCalls, Elementwise):
    """Apply an operator to each item: ``output[i] = op(input[i])``.

    Parameters
    ----------
    device : wgpu.GPUDevice
    dtype : Datatype, str or numpy dtype
        Datatype of the items and of the results.
    op : UnaryOp or str
        Your own operator, or ``"negate"``, ``"abs"`` or ``"square"``, which wrap integers.
    tuning : ElementwiseTuning, optional
        Shape of the kernel; affects only the speed. By default the library's, or the one from ``gridwise tune``.
    capabilities : Capabilities, optional
        The capabilities to plan for, with None as device. By default those measured on the device.

    See Also
    --------
    execute : takes ``input`` and ``output``, shape (n,) each. The output may be the input.

    Examples
    --------
    >>> import numpy as np, gridwise_py as gw
    >>> device = gw.request_device()
    >>> x = gw.asarray(np.array([3, -1, 2], dtype=np.int32), device)
    >>> gw.Map(device, "i32", "square").execute(input=x).output.to_numpy()
    array([9, 1, 4], dtype=int32)
    """

    shader: ClassVar[str] = "map"
    arguments = elementwise_arguments("input")

    @explained(ElementwiseTuning.remedies())
    def __init__(
        self,
        device: wgpu.GPUDevice | None,
        dtype: ComputeDatatypeLike | Operators,
        op: UnaryOpLike | None = None,
        *,
        tuning: ElementwiseTuning | None = None,
        capabilities: Capabilities | None = None,
    ):
        super().__init__(device, dtype, tuning=tuning, capabilities=capabilities)
        if op is None and self._fusion is None:
            raise ArgumentError("Map of items needs an operator; give op=, or an expression in place of the datatype")
        self._stores_bools = self._fusion is not None and op is None and self._fusion.flat.types == ("bool",)
        if self._fusion is not None and self._fusion.flat.fields:
            raise ArgumentError("Map has one output, but the expression is a struct; make a Map for each field")
        self.op: UnaryOp | None = None if op is None else as_unaryop(op)
        if self.op is not None:
            as_datatype(self.datatype)
            self._shader_checks = self.op.checks_for(self.datatype)
            check_operator(self.op, self.datatype, None)

    def _arguments(self) -> tuple[Argument, ...]:
        *inputs, output = self.arguments
        return (*inputs, replace(output, datatype=STORAGE_DATATYPES["bool"]) if self._stores_bools else output)

    def _check_on_device(self) -> None:
        if self.op is not None:
            check_operator(self.op, self.datatype, self._device)

    @classmethod
    def at_size(cls, n: int, **axes: Any) -> tuple[dict[str, Any], dict[str, int]]:
        """Return the constructor's options for a benchmark of size n, and the lengths of the inputs."""
        options, lengths = super().at_size(n)
        return {**options, "op": Square}, lengths

    def _template_values(self) -> dict[str, Any]:
        if self._stores_bools:
            return {"bools": True, "quad": quad_type(1)}
        if self.op is None:
            return {"bools": False, **({"quad": quad_type(8)} if self.datatype.itemsize_bytes == 8 else {})}
        return {"bools": False, **unary_context(self.op, self.datatype)}

    def _units(self) -> dict[str, int] | None:
        size = 1 if self._stores_bools else self.datatype.itemsize_bytes
        return None if size == 4 else {"input": 16, "output": 4 * size}

    def _reference(self, input: np.ndarray) -> np.ndarray:
        """Return the result of the operator's numpy function for the same input."""
        return (input != 0 if self._stores_bools else input) if self.op is None else self.op.twin(input)
