"""Checks the file that a page of `gridwise browser` saves: raw timestamps, walls and what the page's checks found.

Such files come from strangers. They are data: bounded in size, and refused where they contradict themselves.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import Any, cast

from ...errors import ArgumentError, BadResultsFile
from ..sampling.protocol import SamplingProtocol
from .browser_model import PageFile, PagePlan, PageResult, Passes
from .schema import check_fields, check_version

_MOST_STAMPS = 2_000_000
_MOST_SAMPLES = 200_000
_MOST_COUNT = (1 << 64) - 1
#: What sampling leaves in a result.
_SAMPLED = (
    "warmup", "warmup_s", "trial_ns", "batch_trials", "submission_trials", "block_samples", "sampling_s", "stop_reason"
)  # fmt: skip


def page_of(data: Mapping[str, Any], name: str) -> PageFile:
    """Return the page's file, called `name`, of JSON data; raise BadResultsFile unless it is one."""
    data = cast(dict[str, Any], _with_integers(data))
    check_version(data, PageFile, name)
    if data.get("calibration") == {}:
        data["calibration"] = None  # as earlier pages wrote
    check_fields(data, PageFile, name)
    page = PageFile.from_json(data)
    for where, problem in _contradictions(page):
        raise BadResultsFile(f"{name}: {where}: {problem}")
    return page


def _with_integers(value: Any) -> Any:
    """Return JSON data in which whole numbers are integers: neither JSON Schema nor JavaScript tells them apart."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, dict):
        return {name: _with_integers(item) for name, item in cast(dict[str, Any], value).items()}
    if isinstance(value, list):
        return [_with_integers(item) for item in cast(list[Any], value)]
    return value


def protocol_of(page: PageFile) -> SamplingProtocol:
    """Return the protocol of a page's file.

    Raises
    ------
    ArgumentError
        If one of its values is not valid.
    """
    known = {field.name for field in fields(SamplingProtocol)}
    return SamplingProtocol(**{name: value for name, value in page.protocol.items() if name in known})


def _contradictions(page: PageFile) -> Iterator[tuple[str, str]]:
    """Yield where and how values contradict each other, or exceed what a file may have."""
    try:
        protocol_of(page)
    except (ArgumentError, TypeError) as error:
        yield "$.protocol", str(error)
    stamps, base = list(_stamps(page)), int(page.tick_base)
    if len(stamps) > _MOST_STAMPS:
        yield "$", f"{len(stamps):,} timestamps; a file has at most {_MOST_STAMPS:,}"
    if any(not 0 <= base + stamp <= _MOST_COUNT for stamp in stamps):
        yield "$.tick_base", f"with {base} some timestamps are below 0 or have more than 64 bits"
    samples = sum(sum(block.counts) for result in page.results for block in result.blocks)
    if samples > _MOST_SAMPLES:
        yield "$.results", f"{samples:,} samples; a file has at most {_MOST_SAMPLES:,}"
    for i, result in enumerate(page.results):
        if result.error is None and result.blocks:
            for where, problem in _result_contradictions(page.plans, result, page.calibration is not None):
                yield f"$.results[{i}]{where}", problem


def _stamps(page: PageFile) -> Iterator[int]:
    """Yield all timestamps that were written."""
    passes: list[Passes] = []
    found = page.calibration
    if found is not None:
        passes += [*found.tick_checks, *found.fma, found.floors.one, found.floors.many]
        passes += [one for ceiling in found.ceilings for one in ceiling.passes]
    blocks = [block for result in page.results for block in result.blocks]
    for pairs in (
        *(one.ticks for one in passes),
        *(pairs or () for block in blocks for pairs in (block.before, block.ticks, block.after)),
    ):
        for pair in pairs:
            yield from (stamp for stamp in pair if stamp is not None)


def _result_contradictions(
    plans: Mapping[str, PagePlan], result: PageResult, is_timed: bool
) -> Iterator[tuple[str, str]]:
    """Yield the contradictions of a result that has samples."""
    missing = [name for name in _SAMPLED if getattr(result, name) is None]
    if missing:
        yield "", f"it has samples, but no {', '.join(missing)}"
    plan = plans.get(str(result.plan))
    if plan is None:
        yield ".plan", f"there is no plan {result.plan!r:.40} in $.plans"
        return
    counts = Counter(check.output for check in result.checks)
    once = [output for output, count in counts.items() if count != 2]
    if not counts or once:
        outputs = ", ".join(repr(output[:40]) for output in once[:3]) or "no output"
        yield ".checks", f"each output is checked after the first run and after the last one, but {outputs} was not"
    kernels = len(plan.kernels)
    for i, block in enumerate(result.blocks):
        submissions, samples = len(block.counts), sum(block.counts)
        if any(len(each) != submissions for each in (block.walls, block.submits, block.encodes)):
            yield f".blocks[{i}]", f"it has {submissions} submissions, but not as many walls, submits and encodes"
        if not is_timed:
            continue
        if not block.before or not block.after:
            yield f".blocks[{i}]", "it has timestamps, but no canary before and after it"
        found = len(block.ticks or ())
        if found != samples * kernels:
            yield f".blocks[{i}].ticks", f"{samples} samples of {kernels} kernels have {found} pairs of timestamps"
    if is_timed and result.canary_trials is None:
        yield "", "it has timestamps, but no canary_trials"
