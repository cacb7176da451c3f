"""The environment variables of this library. No other module reads one.

Each function reads its variable when it is called; its docstring says when the library calls it. An empty variable
counts as unset. A flag is on with ``1`` or ``on`` and off with ``0`` or ``off``. Any other value raises `ArgumentError`
with the variable, the value and the values that are known.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal, TypeAlias, TypeVar, get_args

from .errors import ArgumentError

PREFIX = "GRIDWISE_"
#: When the library reads each of its variables; docs/reference/environment.md has the same table.
VARIABLES: dict[str, str] = {
    "GRIDWISE_ADAPTER": "when a device is requested",
    "GRIDWISE_ENGINE": "when a device is requested",
    "GRIDWISE_TOGGLES": "when a device is requested",
    "GRIDWISE_HOLD_CLOCK": "when a device is requested",
    "GRIDWISE_LAUNCH_BLOCKING": "when a primitive is made",
    "GRIDWISE_MAP_ARRAYS": "when a device is requested, and when it is first used",
    "GRIDWISE_TIMEOUT_S": "when a device is first waited for",
    "GRIDWISE_SHADER_CHECKS": "when a device is first used",
    "GRIDWISE_SCAN_STRATEGY": "when a `Scan` is first bound",
    "GRIDWISE_TUNING": "when a device is first used",
    "GRIDWISE_COPY_THREADS": "when a device is first used, and at conversions",
    "GRIDWISE_CACHE_DIR": "when they are looked up",
    "GRIDWISE_JUDGE_BUSY": "when times are judged",
    "GRIDWISE_DASK_CPU": "when a worker of a Dask cluster starts",
    "GRIDWISE_FLEET_DIR": "when a device of a fleet is measured",
    "GRIDWISE_DUMP_SHADERS": "when a shader module is made",
    "GRIDWISE_TRACEBACK": "when one happens",
}

ScanStrategy = Literal["auto", "reduce_then_scan", "lookback"]
SCAN_STRATEGIES: tuple[ScanStrategy, ...] = get_args(ScanStrategy)

ShaderChecks: TypeAlias = Literal["none", "bounds", "all"]
#: Run-time checks of a shader, the weakest first: none; of indices; of indices, and counters that end loops.
SHADER_CHECKS: tuple[ShaderChecks, ...] = get_args(ShaderChecks)


_LONGEST_S = 1e9  # some 30 years: no clock of a system waits longer
_FLAGS = {"1": True, "0": False, "on": True, "off": False}

ENGINES = {name: name for name in ("wgpu", "dawn")}

_Value = TypeVar("_Value")


# ---- per device


def adapter() -> str | None:
    """``GRIDWISE_ADAPTER``: the adapter for a device that is requested without one; read at each request."""
    return _text("GRIDWISE_ADAPTER")


def engine() -> str:
    """``GRIDWISE_ENGINE``: the engine for a device that is requested without one; read at each request."""
    return _one_of("GRIDWISE_ENGINE", ENGINES, "wgpu")


def set_engine(name: str) -> None:
    """Set ``GRIDWISE_ENGINE`` for this process and its children, as an option of the command asks for."""
    os.environ["GRIDWISE_ENGINE"] = name


def toggles() -> dict[str, bool]:
    """``GRIDWISE_TOGGLES``: the toggles for a device of Dawn that is requested without any; read at each request."""
    return toggles_of(_text("GRIDWISE_TOGGLES") or "", "GRIDWISE_TOGGLES")


def toggles_of(text: str, name: str) -> dict[str, bool]:
    """Return the toggles that a text names, separated by commas: ``a,b=off``; `name` is where it stands."""
    found: dict[str, bool] = {}
    for each in filter(None, map(str.strip, text.split(","))):
        toggle, _, flag = each.partition("=")
        if flag and flag not in _FLAGS:
            raise ArgumentError(f"{name}={text!r}: {toggle} is {flag!r}; known are {', '.join(_FLAGS)}")
        found[toggle] = _FLAGS[flag] if flag else True
    return found


def set_toggles(text: str) -> None:
    """Set ``GRIDWISE_TOGGLES`` for this process and its children, as an option of the command asks for."""
    os.environ["GRIDWISE_TOGGLES"] = text


def hold_clock() -> bool:
    """``GRIDWISE_HOLD_CLOCK``: whether a device that is requested holds its GPU's clock; read at each request."""
    return _one_of("GRIDWISE_HOLD_CLOCK", _FLAGS, False)


def map_arrays() -> bool:
    """``GRIDWISE_MAP_ARRAYS``: whether Arrays are mapped where CPU and GPU share memory, by default yes; read when a
    device is requested, and when it is first used.
    """
    return _one_of("GRIDWISE_MAP_ARRAYS", _FLAGS, True)


def timeout_s() -> float | None:
    """``GRIDWISE_TIMEOUT_S``: the limit of a wait for the GPU, None without one; read at a device's first wait."""
    return checked_timeout_s(_text("GRIDWISE_TIMEOUT_S"), "GRIDWISE_TIMEOUT_S")


def uses_tuning() -> bool:
    """``GRIDWISE_TUNING``: whether tuned shapes are used, by default yes; read when a device is first used."""
    return _one_of("GRIDWISE_TUNING", _FLAGS, True)


def copy_threads() -> int | None:
    """``GRIDWISE_COPY_THREADS``: how many threads copy or convert host memory; None by default."""
    text = _text("GRIDWISE_COPY_THREADS")
    if text is None:
        return None
    if not re.fullmatch(r"[1-9]\d{0,2}", text):
        raise ArgumentError(f"GRIDWISE_COPY_THREADS={text!r} must be an integer from 1 to 999, such as 4; unset it")
    return int(text)


def judge_busy() -> bool:
    """``GRIDWISE_JUDGE_BUSY``: whether times of a CPU beside other work are judged; read when times are judged."""
    return _one_of("GRIDWISE_JUDGE_BUSY", _FLAGS, False)


# ---- per primitive and pipeline


def launch_blocking() -> bool:
    """``GRIDWISE_LAUNCH_BLOCKING``: whether each step is submitted and waited for; read when a primitive is made."""
    return _one_of("GRIDWISE_LAUNCH_BLOCKING", _FLAGS, False)


def scan_strategy() -> ScanStrategy:
    """``GRIDWISE_SCAN_STRATEGY``: the strategy of a `Scan` without ``strategy=``; read when it is first bound."""
    known: dict[str, ScanStrategy] = {name: name for name in SCAN_STRATEGIES}
    return _one_of("GRIDWISE_SCAN_STRATEGY", known, "auto")


def shader_checks() -> ShaderChecks | None:
    """``GRIDWISE_SHADER_CHECKS``: the run-time checks of all shaders, whatever they ask for; None: what they ask for.

    Read when a device is first used.
    """
    known: dict[str, ShaderChecks | None] = {name: name for name in SHADER_CHECKS}
    return _one_of("GRIDWISE_SHADER_CHECKS", known, None)


def strictest(levels: Iterable[ShaderChecks | None]) -> ShaderChecks | None:
    """Return the strictest of what the texts of a module ask for; None, as of the library's own text, asks for none."""
    return max(levels, key=(None, *SHADER_CHECKS).index, default=None)


def dump_shaders() -> Path | None:
    """``GRIDWISE_DUMP_SHADERS``: the folder for every WGSL text that is compiled; read per shader module."""
    return _folder("GRIDWISE_DUMP_SHADERS")


# ---- per process


def cache_dir() -> Path | None:
    """``GRIDWISE_CACHE_DIR``: the folder in place of the user's cache folder; read at each look-up."""
    return _folder("GRIDWISE_CACHE_DIR")


def fleet_dir() -> Path | None:
    """``GRIDWISE_FLEET_DIR``: where workers keep finished cases of a fleet run; read when a device is measured."""
    return _folder("GRIDWISE_FLEET_DIR")


def traceback() -> bool:
    """``GRIDWISE_TRACEBACK``: whether the command prints tracebacks of unexpected errors; read when one happens."""
    return _one_of("GRIDWISE_TRACEBACK", _FLAGS, False)


def dask_cpu() -> bool:
    """``GRIDWISE_DASK_CPU``: whether workers of a Dask cluster may compute on software adapters; read as one starts."""
    return _one_of("GRIDWISE_DASK_CPU", _FLAGS, False)


# ---- of other software


def terminal_columns() -> int | None:
    """``COLUMNS``: the width that the user sets for the terminal; read at each table."""
    return int(variables_of_consoles().get("COLUMNS", 0)) or None


def variables_of_consoles() -> dict[str, str]:
    """Return all variables but a ``COLUMNS`` or ``LINES`` that is no size of a terminal; read per console."""
    sizes = {"COLUMNS", "LINES"}
    return {name: text for name, text in os.environ.items() if name not in sizes or re.fullmatch(r"[1-9]\d{0,4}", text)}


def has_wayland() -> bool:
    """Whether libwayland can look for a server: by a socket, or in a folder; read at each search for adapters."""
    paths = (_text("XDG_RUNTIME_DIR"), _text("WAYLAND_DISPLAY"))
    return "WAYLAND_SOCKET" in os.environ or any(path is not None and path.startswith("/") for path in paths)


def wayland_display() -> str | None:
    """``WAYLAND_DISPLAY``, to restore it after a search for adapters."""
    return os.environ.get("WAYLAND_DISPLAY")


# ---- how values are read


def checked_timeout_s(value: Any, name: str) -> float | None:
    """Return a number of seconds; None for infinity and for None.

    Parameters
    ----------
    value : object
        A number, or its text.
    name : str
        Name of the argument or variable, for the message.

    Raises
    ------
    ArgumentError
        If it is not a number over 0.
    """
    if value is None or value == "":
        return None
    try:
        seconds = float(value)
    except (TypeError, ValueError):
        seconds = math.nan
    if isinstance(value, bool) or not seconds > 0:
        raise ArgumentError(f"{name}={value!r} must be a number of seconds over 0; leave it out to wait without end")
    return seconds if seconds < _LONGEST_S else None


def variables_of_children() -> dict[str, str]:
    """Return all variables, for a child process; read when it starts."""
    return dict(os.environ)


def unknown_variables() -> list[str]:
    """Return the names of variables that begin as those of this library, and are none; read per device."""
    return [name for name in os.environ if name.upper().startswith(PREFIX) and name not in VARIABLES]


def _folder_now() -> str:
    try:
        return os.getcwd()
    except OSError:  # it is gone
        return ""


#: The folder of this process as it imports the library; relative ones count from it, whoever changes to another.
START = _folder_now()


def _text(name: str) -> str | None:
    return os.environ.get(name) or None


def _folder(name: str) -> Path | None:
    text = _text(name)
    return None if text is None else Path(START, os.path.expanduser(text))


def _one_of(name: str, known: dict[str, _Value], default: _Value) -> _Value:
    text = _text(name)
    if text is None:
        return default
    if text not in known:
        raise ArgumentError(f"{name}={text!r} is unknown; known are {', '.join(known)}; unset it for the default")
    return known[text]
