"""MatMul: the product of two matrices."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, ClassVar

import numpy as np
import wgpu

from ..call_errors import explained
from ..errors import LimitError
from ..planning.builder import PlanBuilder
from ..planning.kernel_request import KernelFile, Memory
from ..planning.layout import Layout
from ..planning.plan import Plan, Work
from ..planning.signature import Argument, Product
from ..tuning.matmul_shapes import MatMulShape, SubgroupShape, matmul_shapes_for, subgroup_shape_for
from ..tuning.options import MatMulTuning
from ..types.capabilities import Capabilities
from ..types.datatype import MATMUL_DATATYPES, Datatype, MatMulDatatypeLike, as_datatype
from ..types.options import MOST_U32, integer
from .base import Primitive
from .calls import TwoInputsCalls
from .registry import register

# lavapipe ends all loops of an invocation after 65,535 iterations in total.
_MOST_ITERATIONS_CPU = 65_000


@register("matmul")
class MatMul(TwoInputsCalls, Primitive):
    """Multiply two matrices: ``output = a @ b``.

    Arrays hold the matrices row by row. Another size needs no compilation; in tensor cores it may.

    Parameters
    ----------
    device : wgpu.GPUDevice
    dtype : Datatype, str or numpy dtype, default "f32"
        f32, or f16, which is summed in f32, in tensor cores where the engine has them.
    m, n, k : int
        `a` is m × k, `b` is k × n, and the output is m × n.
    tuning : MatMulTuning, optional
        Shape of the kernel; affects only the speed, and whether tensor cores are used, which have shapes of their own.
        By default the library's.
    capabilities : Capabilities, optional
        The capabilities to plan for, with None as device. By default those measured on the device.

    See Also
    --------
    execute : takes ``a``, ``b`` and ``output``, shapes (m·k,), (k·n,) and (m·n,).
    matmul : the one-shot function, for numpy arrays of two dimensions.

    Notes
    -----
    Products are fused into f32 sums (fma) in the order of k, so a result is the same from run to run on one device; in
    tensor cores in an order of their own. It
    differs from the exact one by at most k·eps·(|a| @ |b|), with eps of f32, before it is rounded to the datatype. With
    k = 0 the output is zeros. It takes 2·m·n·k operations; the roofline is the measured rate of multiply-adds (see
    ``gridwise roofline``). Rows of a multiple of 4 items, in tensor cores of 8, are faster.

    Examples
    --------
    >>> import numpy as np, gridwise_py as gw
    >>> device = gw.request_device()
    >>> a = gw.asarray(np.array([1, 2, 3, 4, 5, 6], dtype=np.float32), device)
    >>> gw.MatMul(device, m=2, n=2, k=3).execute(a=a, b=a).output.to_numpy().reshape(2, 2)
    array([[22., 28.],
           [49., 64.]], dtype=float32)
    """

    datatypes: ClassVar[Mapping[str, Datatype]] = MATMUL_DATATYPES
    arguments = (
        Argument("a", length=Product(("m", "k")), chunked=True),
        Argument("b", length=Product(("k", "n")), chunked=True),
        Argument("output", is_output=True, length=Product(("m", "n")), chunked=True),
    )

    @explained(MatMulTuning.remedies())
    def __init__(
        self,
        device: wgpu.GPUDevice | None,
        dtype: MatMulDatatypeLike = "f32",
        *,
        m: int,
        n: int,
        k: int,
        tuning: MatMulTuning | None = None,
        capabilities: Capabilities | None = None,
    ):
        super().__init__(device, capabilities=capabilities)
        self.datatype: Datatype = as_datatype(dtype, self.datatypes)
        self.m: int = integer("MatMul: m", m, 0, MOST_U32)
        self.n: int = integer("MatMul: n", n, 0, MOST_U32)
        self.k: int = integer("MatMul: k", k, 0, MOST_U32)
        self.tuning: MatMulTuning = MatMulTuning.of(tuning)
        self._shapes = matmul_shapes_for(self.capabilities, self.tuning)
        self._subgroup_shape: SubgroupShape | None = (
            subgroup_shape_for(self.capabilities, self.tuning, self.m * self.n)
            if self.datatype.itemsize_bytes == 2
            else None
        )

    @classmethod
    def at_size(cls, n: int, **axes: Any) -> tuple[dict[str, Any], dict[str, int]]:
        """Return the options and lengths for two matrices of n × n."""
        return {"m": n, "n": n, "k": n}, {"a": n * n, "b": n * n}

    def plan(self, layout: Layout) -> Plan:
        """Return the plan: one dispatch."""
        items, item_bytes = self.m * self.n, self.datatype.itemsize_bytes
        by_subgroups = self._subgroup_shape if self.k else None
        shape = by_subgroups or self._shapes.at(items)
        builder = PlanBuilder("matmul", layout, self.capabilities)
        if items:
            self._check_loops(shape)
            # An empty array cannot be bound, and nothing is read then.
            reads = {
                name: layout[name] if self.k else builder.scratch(f"no_{name}", 0, item_bytes) for name in ("a", "b")
            }
            for each in (shape,) if by_subgroups else self._shapes.all_for(items):
                self._add(builder, each, reads, layout, sibling=each != shape)
        inputs = self.m * self.k + self.k * self.n
        return builder.build(
            Work(inputs, inputs * item_bytes, items * item_bytes, 2 * items * self.k),
            {
                "m": self.m,
                "n": self.n,
                "k": self.k,
                **asdict(shape),
                "workgroup_size": shape.workgroup_size,
                "shape": self._shapes.source_of(shape) if isinstance(shape, MatMulShape) else "subgroups",
            },
        )

    def _add(
        self,
        builder: PlanBuilder,
        shape: MatMulShape | SubgroupShape,
        reads: Mapping[str, Any],
        layout: Layout,
        *,
        sibling: bool,
    ) -> None:
        tiles_m, tiles_n = shape.tiles(self.m, self.n)
        by_subgroups = isinstance(shape, SubgroupShape)
        context: dict[str, Any] = {**asdict(shape), "half": self.datatype.itemsize_bytes == 2, "natively": by_subgroups}
        constants: dict[str, int] = {}
        units: dict[str, int] | None = None
        if isinstance(shape, SubgroupShape):
            whole, (steps, rest) = self.k % 8 == 0 and self.n % 8 == 0, divmod(self.k, shape.tile_k)
            constants["STEPS"] = steps if whole else steps + (rest > 0)
            units = {"a": 16, "b": 16, "output": 16} if whole else None
            context |= {
                "whole": whole,
                "quads": self.k % 4 == 0 and self.n % 4 == 0,
                "steps": steps > 0,
                "tail": rest > 0,
                "storage_bytes": shape.storage_bytes,
                "exchanged_n": shape.exchanged_n,
            }
        else:
            context["lanes_m"] = min(4, shape.tile_m // shape.thread_m)
            context["lanes_n"] = min(8, shape.tile_n // shape.thread_n)
        # If rows are not whole vec4, two invocations write parts of one.
        output = layout["output"] if units else layout["output"].by_words()
        builder.kernel(
            "matmul",
            KernelFile(
                "matmul_subgroups.wgsl" if by_subgroups else "matmul.wgsl",
                context=context,
                constants=constants,
                features=SubgroupShape.FEATURES if by_subgroups else (),
            ),
            Memory(reads=reads, writes={"output": output}, units=units),
            params={
                "m": self.m,
                "n": self.n,
                "k": self.k,
                "tiles_m": tiles_m,
                "tiles_n": tiles_n,
                "blocks": tiles_m * tiles_n,
            },
            extent="blocks",
            sibling=sibling,
        )

    def _check_loops(self, shape: MatMulShape | SubgroupShape) -> None:
        if isinstance(shape, SubgroupShape):
            return  # no CPU adapter has them
        most = _MOST_ITERATIONS_CPU // (1 + shape.tile_k // shape.unroll) * shape.tile_k
        if self.capabilities.is_cpu and self.k > most:
            raise LimitError(
                f"MatMul: k={self.k}, but CPU adapters end loops early (lavapipe after 65,535 iterations), so that k "
                f"is at most {most} there; multiply parts of at most {most} columns of a and rows of b, and add them"
            )

    def _reference(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """Return the product in float64, rounded once, shape (m·n,)."""
        with np.errstate(all="ignore"):
            return (self._matrix(a, "a") @ self._matrix(b, "b")).astype(self.datatype.dtype).reshape(-1)

    def error_bound(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """Return the largest error allowed for each item: (k + 1)·eps·(|a| @ |b|), and the rounding of the output.

        Source: Higham, "Accuracy and stability of numerical algorithms" (2002), section 3.5; this is twice its bound.
        """
        with np.errstate(all="ignore"):
            magnitudes = np.abs(self._matrix(a, "a")) @ np.abs(self._matrix(b, "b"))
        bound = (self.k + 1) * float(np.finfo(np.float32).eps) * magnitudes.reshape(-1)
        if self.datatype.itemsize_bytes == 2:
            limits = np.finfo(np.float16)
            rounded = np.abs(self.reference(a, b).astype(np.float64))
            bound += float(limits.eps) * rounded + float(limits.smallest_subnormal)
        return bound

    def _matrix(self, items: np.ndarray, name: str) -> np.ndarray:
        return items.astype(np.float64).reshape((self.m, self.k) if name == "a" else (self.k, self.n))
