"""The shapes of the matrix product's kernel: the model's, those that were tuned, or the caller's."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from ..errors import ArgumentError
from ..types.capabilities import Capabilities, SubgroupMatrices
from .model import KERNELS
from .options import MatMulTuning
from .rows import Shapes, overlay
from .shapes import ranges_of


class _Tiled:
    """A shape whose workgroups compute a tile of the output each."""

    tile_m: int
    tile_n: int

    def tiles(self, m: int, n: int) -> tuple[int, int]:
        """Return rows and columns of tiles."""
        return -(-m // self.tile_m), -(-n // self.tile_n)


@dataclass(frozen=True)
class MatMulShape(_Tiled):
    """The shape of the kernel of a matrix product.

    Attributes
    ----------
    tile_m, tile_n : int
        Rows and columns of the output that a workgroup computes.
    tile_k : int
        Steps along k that go through workgroup memory at once.
    thread_m, thread_n : int
        Rows and columns of the output that an invocation computes.
    stages : int
        1, or 2: whether the next step is written to workgroup memory while this one is read, which takes twice as much
        of it, and one barrier less per step.
    unroll : int
        Steps along k that are written out.
    """

    tile_m: int
    tile_n: int
    tile_k: int
    thread_m: int
    thread_n: int
    stages: int
    unroll: int

    @property
    def workgroup_size(self) -> int:
        """Invocations."""
        return (self.tile_m // self.thread_m) * (self.tile_n // self.thread_n)

    @property
    def storage_bytes(self) -> int:
        """Workgroup memory."""
        return 4 * self.stages * self.tile_k * (self.tile_m + self.tile_n)


@dataclass(frozen=True)
class SubgroupShape(_Tiled):
    """The shape of the kernel of a product by matrices that subgroups multiply, of 16 × 16 f16 items.

    Attributes
    ----------
    tile_m, tile_n, tile_k : int
        As of `MatMulShape`.
    part_m, part_n : int
        Rows and columns of the output that a subgroup computes.
    items_n : int
        Columns of the matrices that it multiplies, 8 or 16.
    """

    FEATURES: ClassVar[tuple[str, ...]] = ("subgroup", "shader-f16", "chromium-experimental-subgroup-matrix")

    tile_m: int = 128
    tile_n: int = 256
    tile_k: int = 32
    part_m: int = 64
    part_n: int = 64
    items_n: int = 8

    @property
    def workgroup_size(self) -> int:
        """Invocations."""
        return 32 * (self.tile_m // self.part_m) * (self.tile_n // self.part_n)

    @property
    def storage_bytes(self) -> int:
        """Workgroup memory: tiles, with the gaps between rows, and later sums in their place."""
        return 2 * (self.tile_m * (self.tile_k + 8) + self.tile_k * (self.tile_n + 8))

    @property
    def exchanged_n(self) -> int:
        """Columns of a subgroup's sums that are in workgroup memory at a time."""
        return next(n for n in (64, 32, 16) if n <= self.part_n and self._sums_bytes(n) <= self.storage_bytes)

    def _sums_bytes(self, columns: int) -> int:
        return 4 * 16 * (columns + 4) * (self.workgroup_size // 32)


#: By the least items of the output: of large tiles, small outputs have too few for all multiprocessors.
_SUBGROUP_SHAPES = (
    (1 << 21, SubgroupShape()),
    (1 << 19, SubgroupShape(tile_m=64, tile_n=64, tile_k=64, part_m=32, part_n=32)),
    (0, SubgroupShape(tile_m=32, tile_n=64, tile_k=64, part_m=16, part_n=32)),
)


def subgroup_shape_for(capabilities: Capabilities, tuning: MatMulTuning | None, items: int) -> SubgroupShape | None:
    """Return the shape for a device whose subgroups multiply matrices of f16; None for others, and with a tuning.

    Parameters
    ----------
    capabilities : Capabilities
    tuning : MatMulTuning or None
    items : int
        Of the output.
    """
    able = capabilities.features.issuperset(SubgroupShape.FEATURES) and capabilities.subgroup_size == 32
    matrices = (n for n in (8, 16) if SubgroupMatrices("f16", "f32", 16, n, 16) in capabilities.subgroup_matrices)
    items_n = next(matrices, None)
    if not able or items_n is None or MatMulTuning.of(tuning).to_dict():
        return None
    most_invocations = capabilities.limits["max-compute-invocations-per-workgroup"]
    most_bytes = capabilities.limits["max-compute-workgroup-storage-size"]
    fit = (
        replace(shape, items_n=items_n)
        for least, shape in _SUBGROUP_SHAPES
        if items >= least and shape.workgroup_size <= most_invocations and shape.storage_bytes <= most_bytes
    )
    return next(fit, None)


def matmul_shapes_for(capabilities: Capabilities, tuning: MatMulTuning | None = None) -> Shapes[MatMulShape]:
    """Return the shapes by the items of the output: the caller's, else those that were tuned, else the model's.

    Parameters
    ----------
    capabilities : Capabilities
    tuning : MatMulTuning, optional
        The caller's. With any field there is one shape for all outputs; what is left open is as for large ones.

    Raises
    ------
    ArgumentError
        If the numbers do not fit each other, or the shape is over the device's limits.
    """
    rows = tuple((up_to, MatMulShape(**fields)) for up_to, fields in KERNELS["matmul"].rows(capabilities))
    chosen = MatMulTuning.of(tuning).to_dict()
    if not chosen:
        tuned = [(above, up_to, MatMulShape(**fields)) for above, up_to, fields in ranges_of("matmul", capabilities)]
        return overlay(rows, [one for one in tuned if _objection(one[2], capabilities) is None])
    shape = replace(rows[-1][1], **chosen)
    if "unroll" not in chosen:
        shape = replace(shape, unroll=min(shape.unroll, shape.tile_k))
    objection = _objection(shape, capabilities)
    if objection is not None:
        raise ArgumentError(f"MatMul: {objection}")
    return Shapes(((None, shape),), "argument")


def _objection(shape: MatMulShape, capabilities: Capabilities) -> str | None:
    """Return why a device cannot run a shape, whose single numbers `MatMulTuning` has checked."""
    if shape.unroll > shape.tile_k:
        return f"unroll={shape.unroll} must be at most tile_k={shape.tile_k}"
    for tile, thread in (("tile_m", "thread_m"), ("tile_n", "thread_n")):
        if getattr(shape, thread) > getattr(shape, tile):
            return f"{thread}={getattr(shape, thread)} must be at most {tile}={getattr(shape, tile)}"
    invocations = capabilities.most_invocations
    if shape.workgroup_size > invocations:
        return (
            f"tiles of {shape.tile_m} × {shape.tile_n} in parts of {shape.thread_m} × {shape.thread_n} need "
            f"{shape.workgroup_size} invocations, but max-compute-invocations-per-workgroup allows {invocations}"
        )
    storage_bytes = capabilities.limits["max-compute-workgroup-storage-size"]
    if shape.storage_bytes > storage_bytes:
        return (
            f"the tiles need {shape.storage_bytes} bytes of workgroup memory, but max-compute-workgroup-storage-size "
            f"is {storage_bytes} bytes; use a smaller tile_k, or stages=1"
        )
    return None
