"""JSON for people to read: plain values, and one line per list of numbers or texts."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from enum import Enum
from pathlib import Path
from typing import Any, cast

import numpy as np

from .files import write_whole


def json_data(value: Any) -> Any:
    """Return a value as JSON data: numpy's numbers become Python's, and non-finite ones None."""
    if isinstance(value, Mapping):
        return {str(key): json_data(item) for key, item in cast(Mapping[Any, Any], value).items()}
    if isinstance(value, np.ndarray):
        return json_data(value.tolist())
    if isinstance(value, (list, tuple)):
        return [json_data(item) for item in cast(Sequence[Any], value)]
    if isinstance(value, Enum):
        return json_data(value.value)
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, (bool, int, str)) else str(value)


def json_text(value: Any, indent: int = 1) -> str:
    """Return JSON text in which a list of plain values takes one line."""
    text = json.dumps(value, indent=indent, allow_nan=False, ensure_ascii=False)
    # JSON strings contain no line ends, so this changes layout only.
    return re.sub(r"\[\n\s*([^\[\]{}\n]*(?:\n[^\[\]{}\n]*)*?)\n\s*\]", _one_line, text)


def _one_line(match: re.Match[str]) -> str:
    return "[" + re.sub(r"\n\s*", " ", match[1]) + "]"


def write_json(path: str | Path, data: Any) -> None:
    """Write JSON data completely or not at all; raise OSError if it cannot be written."""
    write_whole(Path(path), (json_text(data) + "\n").encode())
