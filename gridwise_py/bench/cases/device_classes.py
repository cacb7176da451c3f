"""Some classes of devices, for questions that need no GPU: what would each be asked to do?

device_classes.json has what plans depend on, and where it is from: subgroups, limits, whether look-back is safe, and
facts that shapes follow from. The figures are no statement on a device of today: drivers change.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ... import Capabilities, LookbackVerdict

_ROWS: Mapping[str, Any] = json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))


def _capabilities(lookback: Mapping[str, Any], **fields: Any) -> Capabilities:
    return Capabilities(**fields, lookback=LookbackVerdict(**lookback))


#: By name: what a device of the class can do.
DEVICE_CLASSES: Mapping[str, Capabilities] = {name: _capabilities(**row["capabilities"]) for name, row in _ROWS.items()}
#: Where that is from.
SOURCES: Mapping[str, str] = {name: row["source"] for name, row in _ROWS.items()}
