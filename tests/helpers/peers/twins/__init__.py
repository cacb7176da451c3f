"""One table: of each public function its twin, how its arguments are drawn, and how results are compared."""

from . import bins, groups, items, making, orders, reductions, segments, selections, statistics  # noqa: F401  # fill it
from .table import EXEMPT, TWINS, Twin

__all__ = ["EXEMPT", "TWINS", "Twin"]
