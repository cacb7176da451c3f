"""Checks the file that a page of `gridwise browser` saves: raw timestamps, walls and what the page's checks found.

Such files come from strangers. They are data: bounded in size, and refused where they contradict themselves.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import fields
from functools import lru_cache
from pathlib import Path
from typing import Any, NoReturn, cast

from ...errors import ArgumentError, BadResultsFile
from ..sampling.protocol import SamplingProtocol
from .validator import Validator, first_error, problem_of, quick_validator

__all__ = [
    "BROWSER_SCHEMA", "BROWSER_SCHEMA_FILE", "BROWSER_SCHEMA_VERSION", "check_browser_file", "protocol_of",
    "with_integers",
]  # fmt: skip

BROWSER_SCHEMA = "gridwise.browser"
BROWSER_SCHEMA_VERSION = 1
BROWSER_SCHEMA_FILE = Path(__file__).resolve().with_name("gridwise.browser.schema.json")

_MOST_STAMPS = 2_000_000
_MOST_SAMPLES = 200_000
_MOST_COUNT = (1 << 64) - 1
#: What sampling leaves in a result.
_SAMPLED = (
    "warmup", "warmup_s", "trial_ns", "batch_trials", "submission_trials", "block_samples", "sampling_s", "stop_reason"
)  # fmt: skip


def with_integers(value: Any) -> Any:
    """Return JSON data in which whole numbers are integers: neither JSON Schema nor JavaScript tells them apart."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, dict):
        return {name: with_integers(item) for name, item in cast(dict[str, Any], value).items()}
    if isinstance(value, list):
        return [with_integers(item) for item in cast(list[Any], value)]
    return value


def check_browser_file(data: Mapping[str, Any], name: str) -> None:
    """Raise BadResultsFile unless JSON data, as `with_integers` returns it, is a page's file, called `name`."""

    def fail(where: str, problem: str) -> NoReturn:
        raise BadResultsFile(f"{name}: {where}: {problem}")

    version = data.get("schema_version")
    if version != BROWSER_SCHEMA_VERSION or isinstance(version, bool):
        fail(
            "$.schema_version",
            f"{version!r:.40} is not {BROWSER_SCHEMA_VERSION}, the version of a page's file that this gridwise_py "
            f"reads; update gridwise_py, or measure again",
        )
    error = first_error(_validator(), data)
    if error is not None:
        fail(*problem_of(error))
    for where, problem in _contradictions(data):
        fail(where, problem)


@lru_cache(maxsize=1)
def _validator() -> Validator:
    return quick_validator(json.loads(BROWSER_SCHEMA_FILE.read_text(encoding="utf-8")))


def protocol_of(data: Mapping[str, Any]) -> SamplingProtocol:
    """Return the protocol of a page's file.

    Raises
    ------
    ArgumentError
        If one of its values is not valid.
    """
    known = {field.name for field in fields(SamplingProtocol)}
    return SamplingProtocol(**{name: value for name, value in data["protocol"].items() if name in known})


def _contradictions(data: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield where and how values contradict each other, or exceed what a file may have."""
    try:
        protocol_of(data)
    except (ArgumentError, TypeError) as error:
        yield "$.protocol", str(error)
    stamps, base = list(_stamps(data)), int(data["tick_base"])
    if len(stamps) > _MOST_STAMPS:
        yield "$", f"{len(stamps):,} timestamps; a file has at most {_MOST_STAMPS:,}"
    if any(not 0 <= base + stamp <= _MOST_COUNT for stamp in stamps):
        yield "$.tick_base", f"with {base} some timestamps are below 0 or have more than 64 bits"
    samples = sum(sum(block["counts"]) for result in data["results"] for block in result["blocks"])
    if samples > _MOST_SAMPLES:
        yield "$.results", f"{samples:,} samples; a file has at most {_MOST_SAMPLES:,}"
    is_timed = bool(data["calibration"])
    for i, result in enumerate(data["results"]):
        if result["error"] is None and result["blocks"]:
            for where, problem in _result_contradictions(data["plans"], result, is_timed):
                yield f"$.results[{i}]{where}", problem


def _stamps(data: Mapping[str, Any]) -> Iterator[int]:
    """Yield all timestamps that were written."""
    pairs: list[list[int | None]] = []
    calibration: Mapping[str, Any] = data["calibration"] or {}
    passes: list[Mapping[str, Any]] = [*calibration.get("tick_checks", ()), *calibration.get("fma", ())]
    passes += [calibration["floors"][name] for name in ("one", "many")] if "floors" in calibration else []
    passes += [one for ceiling in calibration.get("ceilings", ()) for one in ceiling["passes"]]
    for one in passes:
        pairs += one["ticks"]
    for result in data["results"]:
        for block in result["blocks"]:
            for name in ("before", "ticks", "after"):
                pairs += block.get(name, ())
    for pair in pairs:
        yield from (stamp for stamp in pair if stamp is not None)


def _result_contradictions(
    plans: Mapping[str, Any], result: Mapping[str, Any], is_timed: bool
) -> Iterator[tuple[str, str]]:
    """Yield the contradictions of a result that has samples."""
    missing = [name for name in _SAMPLED if result.get(name) is None]
    if missing:
        yield "", f"it has samples, but no {', '.join(missing)}"
    plan = cast(Mapping[str, Any] | None, plans.get(str(result["plan"])))
    if plan is None:
        yield ".plan", f"there is no plan {result['plan']!r:.40} in $.plans"
        return
    counts = Counter(check["output"] for check in result["checks"])
    once = [output for output, count in counts.items() if count != 2]
    if not counts or once:
        outputs = ", ".join(repr(output[:40]) for output in once[:3]) or "no output"
        yield ".checks", f"each output is checked after the first run and after the last one, but {outputs} was not"
    kernels = len(plan["kernels"])
    for i, block in enumerate(result["blocks"]):
        submissions, samples = len(block["counts"]), sum(block["counts"])
        if any(len(block[name]) != submissions for name in ("walls", "submits", "encodes")):
            yield f".blocks[{i}]", f"it has {submissions} submissions, but not as many walls, submits and encodes"
        if not is_timed:
            continue
        if not block.get("before") or not block.get("after"):
            yield f".blocks[{i}]", "it has timestamps, but no canary before and after it"
        if len(block.get("ticks", ())) != samples * kernels:
            found = len(block.get("ticks", ()))
            yield f".blocks[{i}].ticks", f"{samples} samples of {kernels} kernels have {found} pairs of timestamps"
    if is_timed and result.get("canary_trials") is None:
        yield "", "it has timestamps, but no canary_trials"
