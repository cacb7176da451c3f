"""The registry with all primitives, whichever were loaded before."""

from __future__ import annotations

import importlib

from . import PLACES
from .registry import REGISTRY as REGISTRY

__all__ = ["REGISTRY"]

for _place in dict.fromkeys(PLACES.values()):
    importlib.import_module(f"{__package__}.{_place}")
# In the order of their files, not in that in which a process came to need them.
_in_order = sorted(REGISTRY.items(), key=lambda item: item[1].__module__)
REGISTRY.clear()
REGISTRY.update(_in_order)
