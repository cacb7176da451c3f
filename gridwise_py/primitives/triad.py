"""Triad: ``output = a + 3 · b``, whose speed with two reads and a write a calibration measures."""

from __future__ import annotations

from typing import ClassVar

from .engines.elementwise import Elementwise, elementwise_arguments


class Triad(Elementwise):
    """``output = a + 3 · b``."""

    shader: ClassVar[str] = "triad"
    flops_per_item: ClassVar[int] = 2
    arguments = elementwise_arguments("a", "b")
