"""The registry of all primitives: to import this module loads each of their modules."""

from __future__ import annotations

import importlib

from . import PLACES
from .registry import REGISTRY as REGISTRY

__all__ = ["REGISTRY"]

for _place in dict.fromkeys(PLACES.values()):
    importlib.import_module(f"{__package__}.{_place}")
# Sorted by module, whichever was loaded first; in place, because others hold this dict.
_in_order = sorted(REGISTRY.items(), key=lambda item: item[1].__module__)
REGISTRY.clear()
REGISTRY.update(_in_order)
