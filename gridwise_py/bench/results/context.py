"""The head of every file of measurements: versions, host, time, and the device with its limits."""

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

from ... import __version__, capabilities, settings
from ...internals import context_of
from ...storage.json_files import json_data
from ..calibrate.repeatability import known_spreads
from ..cases.own_files import OWN_WORKLOADS
from .model import SCHEMA, SCHEMA_VERSION, Results

_OURS = Path(__file__).resolve().parents[3]


def host_context() -> dict[str, Any]:
    """Return versions, host, time, and the settings that change times."""
    checks = settings.shader_checks()
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
        "settings": {
            "launch_blocking": settings.launch_blocking(),
            **({} if checks is None else {f"shader_checks.{checks}": True}),
        },
        "git": git_state(_OURS),
        **({} if (users := users_git()) is None else {"user_git": users}),
    }


def users_git() -> dict[str, Any] | None:
    """Return the state of the repository of a user's benchmarks, or of the working directory; None without another."""
    try:
        folder = next((one.path.resolve().parent for one in OWN_WORKLOADS.values()), None) or Path.cwd()
    except OSError:  # it was removed
        return None
    top = next((each for each in (folder, *folder.parents) if (each / ".git").exists()), _OURS)
    return None if top == _OURS else git_state(top)


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
        # Untracked files do not count: results are often written next to the sources.
        return {"commit": git("rev-parse", "HEAD"), "dirty": bool(git("status", "--porcelain", "-uno"))}
    except (OSError, subprocess.SubprocessError):
        return None


def without_paths(words: Sequence[str]) -> list[str]:
    """Return a command line without folders, which describe the machine, not the measurement."""
    return [re.sub(r"(?:(?<==)|^)(?:[/~]|[A-Za-z]:[\\/]).*[\\/]", "", word) for word in words]


def run_context(device: wgpu.GPUDevice) -> dict[str, Any]:
    """Return the head of a file of figures: versions, host, time, and the device with its limits."""
    described = capabilities(device).to_dict()
    if not described["subgroup_matrices"]:
        del described["subgroup_matrices"]
    # The verdicts known by now, by form of the state words; a primitive tests when it first needs one.
    kept = context_of(device)
    verdicts = kept.lookback_verdicts
    described["lookback"] = {form: asdict(verdict) for form, verdict in verdicts.items()} or None
    # The queue's period converts ticks into ns; a calibration states itself whether it was checked.
    engine = kept.engine
    source = "wgpuQueueGetTimestampPeriod" if engine.has_ticks else "WebGPU"
    if described["tick_period_ns"] is None:
        source = None
    context = host_context()
    context["versions"][engine.name] = engine.version
    context["settings"] |= {f"{engine.name}.{name}": is_on for name, is_on in engine.switches.items()}
    return {
        "context": context,
        "device": {**described, "tick_period_source": source, "wait_method": kept.wait_method},
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
        The sampling settings that were asked for.
    seed : int
        For the random data and the order of cases.
    command : sequence of str, optional
        The words of the command line; folders are taken out.
    floors, calibration : mapping, optional
        Times of an empty pass, dispatch and submission; ceilings of copies and arithmetic.
    suite : str, optional
    """
    header: dict[str, Any] = {"schema": SCHEMA, "schema_version": SCHEMA_VERSION, **run_context(device)}
    header["context"] |= {
        "seed": seed,
        "command": None if command is None else without_paths(command),
        "suite": suite,
    }
    spreads = [spread.to_json() for spread in known_spreads(device)]
    header["device"] |= {"floors": floors, "calibration": calibration, "repeatability": spreads}
    return Results.from_json(
        json_data(header | {"protocol": dict(protocol), "complete": True, "ticks_file": None, "results": []})
    )
