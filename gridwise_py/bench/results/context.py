"""What every file of measurements says first: versions, host, time, and the device with its limits."""

from __future__ import annotations

import os
import platform
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import wgpu

from ..._version import __version__
from ...backend.wgpu_native import wait_method
from ...runtime.context import capabilities, context_of
from ...storage.json_files import json_data
from .model import SCHEMA, SCHEMA_VERSION, Results

__all__ = ["host_context", "run_context", "run_header"]


def host_context() -> dict[str, Any]:
    """Return versions, host and time."""
    return {
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": {
            "gridwise_py": __version__,
            "wgpu": wgpu.__version__,
            "numpy": np.__version__,
            "python": platform.python_version(),
        },
        "host": {
            "system": platform.system(),
            "release": platform.release(),
            "machine": platform.machine(),
            "cpu_count": os.cpu_count(),
        },
        "byteorder": sys.byteorder,
        "git": git_state(Path(__file__).resolve().parents[3]),
    }


def git_state(folder: Path) -> dict[str, Any] | None:
    """Return the commit of a checkout and whether it has changes; None where `folder` is not the top of one."""
    if not (folder / ".git").exists():
        return None

    def git(*words: str) -> str:
        done = subprocess.run(
            ["git", "-C", str(folder), *words], capture_output=True, text=True, timeout=10, check=True
        )
        return done.stdout.strip()

    try:
        # Untracked files do not count: results are written beside the sources.
        return {"commit": git("rev-parse", "HEAD"), "dirty": bool(git("status", "--porcelain", "-uno"))}
    except (OSError, subprocess.SubprocessError):
        return None


def without_paths(words: Sequence[str]) -> list[str]:
    """Return a command line without the folders in it, which say more of a machine than of a measurement."""
    return [re.sub(r"(?:(?<==)|^)(?:[/~]|[A-Za-z]:[\\/]).*[\\/]", "", word) for word in words]


def run_context(device: wgpu.GPUDevice) -> dict[str, Any]:
    """Return what every file of figures must say: versions, host, time, and the device with its limits."""
    described = capabilities(device).to_dict()
    # Verdicts are reached when a primitive first asks: those that are known by now, by form of the state words.
    verdicts = context_of(device).lookback_verdicts
    described["lookback"] = {form: asdict(verdict) for form, verdict in verdicts.items()} or None
    # Ticks are turned into ns with what the queue says; where a calibration has checked that, it says so itself.
    source = None if described["tick_period_ns"] is None else "wgpuQueueGetTimestampPeriod"
    return {
        "context": host_context(),
        "device": {**described, "tick_period_source": source, "wait_method": wait_method(device)},
    }


def run_header(
    device: wgpu.GPUDevice,
    *,
    protocol: Mapping[str, Any],
    seed: int,
    command: Sequence[str] | None = None,
    floors: Mapping[str, Any] | None = None,
    calibration: Mapping[str, Any] | None = None,
    suite: str | None = None,
) -> Results:
    """Return a results document without results.

    Parameters
    ----------
    device : wgpu.GPUDevice
    protocol : mapping
        How cases are sampled: what was asked for.
    seed : int
        Of the random data and of the order of cases.
    command : sequence of str, optional
        The words of the command line; folders are taken out.
    floors, calibration : mapping, optional
        What an empty pass, dispatch and submission take; ceilings of copying and computing.
    suite : str, optional
    """
    header: dict[str, Any] = {"schema": SCHEMA, "schema_version": SCHEMA_VERSION, **run_context(device)}
    header["context"] |= {
        "seed": seed,
        "command": None if command is None else without_paths(command),
        "suite": suite,
    }
    header["device"] |= {"floors": floors, "calibration": calibration}
    return Results.from_json(
        json_data(header | {"protocol": dict(protocol), "complete": True, "ticks_file": None, "results": []})
    )
