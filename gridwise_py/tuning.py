"""The shapes of kernels, in one place, each row with its reason.

Chosen by what can be measured (kind of adapter, limits), never by a name. The notebook behind the figures is
docs/performance.md.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from .capabilities import Capabilities, SubgroupMode
from .errors import ArgumentError

__all__ = ["Shape", "look_back_tiles", "shape_for"]


@dataclass(frozen=True)
class Shape:
    """The shape of a kernel.

    Attributes
    ----------
    workgroup_size : int
        Invocations.
    vecs : int
        vec4 loads per invocation and tile.
    max_blocks : int
        Most workgroups of kernels that give each workgroup a block of tiles.
    """

    workgroup_size: int
    vecs: int
    max_blocks: int = 0

    @property
    def tile_items(self) -> int:
        """Items that a workgroup does at once."""
        return self.workgroup_size * self.vecs * 4


# elementwise: one vec4 per invocation and many workgroups are fastest on an H200: 4,369 GB/s against 4,316 with four
# (vector add, 2^28).
# reduce, scan: four loads in flight per invocation reach the bandwidth of an H200; its 132 multiprocessors want 4
# blocks each from a reduction (fewer totals to combine at the end) and 8 from a scan of blocks. A CPU adapter runs a
# workgroup per core at a time: more blocks only add barriers.
# scan_lookback: 128 × 16 is the best of the shapes tried on an H200 at 2^28 and 2^24 (docs/performance.md): large tiles
# make the chain short, small workgroups let more of them overlap. At 2^20 that is few workgroups: 256 × 8 would take
# 6.5 µs instead of 7.9, but a second shape would be a pipeline that depends on n.
_SHAPES = {
    "elementwise": (Shape(256, 1), Shape(256, 4)),
    "reduce": (Shape(256, 4, 528), Shape(256, 4, 64)),
    "scan": (Shape(256, 4, 1056), Shape(256, 4, 64)),
    "scan_lookback": (Shape(128, 16), Shape(256, 8)),
}


def look_back_tiles(mode: SubgroupMode) -> int:
    """Return how many tiles a lane looks at in one round of a look-back.

    The window is 32 tiles whatever the subgroup size: on an H200 wider ones were slower (64 tiles 5 %, 128 tiles 6 %,
    256 tiles 19 % at 2^28), since waiting workgroups then poll more.
    """
    return max(1, min(8, 32 // mode.size))


def shape_for(
    kernel: str,
    capabilities: Capabilities,
    mode: SubgroupMode | None = None,
    *,
    workgroup_size: int | None = None,
    vecs: int | None = None,
) -> Shape:
    """Return the shape of `kernel` on a device, with the caller's wishes worked in.

    Raises
    ------
    ArgumentError
        If a workgroup would not hold whole subgroups, or is over the device's limit.
    """
    shape = _SHAPES[kernel][1 if capabilities.is_cpu else 0]
    if workgroup_size is not None:
        shape = replace(shape, workgroup_size=workgroup_size)
    if vecs is not None:
        shape = replace(shape, vecs=vecs)
    limit = min(
        capabilities.limits["max-compute-invocations-per-workgroup"],
        capabilities.limits["max-compute-workgroup-size-x"],
    )
    if not (1 <= shape.workgroup_size <= limit and shape.workgroup_size & (shape.workgroup_size - 1) == 0):
        raise ArgumentError(
            f"workgroup_size={shape.workgroup_size} must be a power of two of at most {limit} "
            f"(max-compute-invocations-per-workgroup)"
        )
    if not 1 <= shape.vecs <= 16:
        raise ArgumentError(f"vecs={shape.vecs} must be from 1 to 16")
    if mode is not None and shape.workgroup_size % mode.size:
        raise ArgumentError(
            f"workgroup_size={shape.workgroup_size} does not hold whole subgroups of {mode.size} ({mode}); "
            f"use a multiple of {mode.size}, or subgroups=False"
        )
    if shape.max_blocks:
        grid = capabilities.limits["max-compute-workgroups-per-dimension"]
        shape = replace(shape, max_blocks=min(shape.max_blocks, grid**3))
    return shape
