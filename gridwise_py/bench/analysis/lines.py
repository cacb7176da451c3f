"""Results as lines over n, for pictures and reports."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from ...display.quantities import format_time
from ..cases.case import YARDSTICK
from ..cases.mode import Mode
from ..results.model import Result, Results
from ..stats.series import Summary

# Distance between marks at one n, as a share of the width of an axis.
_APART = 0.018


@dataclass(frozen=True)
class Line:
    """The results of one variant of a primitive in one file, by n.

    Attributes
    ----------
    name : str
        Of the variant, and of the file where there are several.
    case : str
        The variant alone: as `Result.name` calls it.
    primitive : str
    file : int
    results : tuple of Result
    document : Results
        That of the file.
    """

    name: str
    case: str
    primitive: str
    file: int
    results: tuple[Result, ...]
    document: Results = field(compare=False, repr=False)


def result_lines(documents: Sequence[Results], names: Sequence[str]) -> list[Line]:
    """Return the lines of pooled documents, in the order asked for: of all results that are right and have a time."""
    # By primitive, then by the rest of the case, then by file, each in the order of first appearance.
    found: dict[str, dict[tuple[Mode, tuple[tuple[str, str], ...]], dict[int, list[Result]]]] = {}
    for number, document in enumerate(documents):
        for result in document.in_order():
            if result.correct and result.timed is not None:
                variants = found.setdefault(result.primitive, {})
                variants.setdefault((result.mode, result.key.axes), {}).setdefault(number, []).append(result)
    lines: list[Line] = []
    for primitive, variants in found.items():
        for files in variants.values():
            for number, results in sorted(files.items()):
                case = results[0].name
                name = case if len(documents) == 1 else f"{case}, {names[number]}"
                ordered = tuple(sorted(results, key=lambda result: result.n))
                lines.append(Line(name, case, primitive, number, ordered, documents[number]))
    return lines


def yardsticks(lines: Sequence[Line]) -> list[Line]:
    """Return the copy kernel of each file, in one mode only."""
    files: dict[int, Line] = {}
    for line in lines:
        if line.primitive == YARDSTICK:
            known = files.get(line.file)
            if known is None or _rank(line) < _rank(known):
                files[line.file] = line
    return [files[file] for file in sorted(files)]


def _rank(line: Line) -> int:
    return (Mode.BATCH, Mode.HOT, Mode.COLD, Mode.LATENCY).index(line.results[0].mode)


def places(lines: Sequence[Line]) -> dict[tuple[str, str], float]:
    """Return factors on n that put marks of one n side by side, so that equal results stay visible."""
    octaves = sorted({math.log2(result.n) for line in lines for result in line.results if result.n > 0})
    count = max(2, len(lines))
    if len(octaves) < 2:
        step = 1 / count
    else:
        nearest = min(b - a for a, b in itertools.pairwise(octaves))
        step = min(_APART * (octaves[-1] - octaves[0]), nearest / (2 * count))
    middle = (len(lines) - 1) / 2
    return {(line.primitive, line.name): 2 ** ((i - middle) * step) for i, line in enumerate(lines)}


# ---- times


def gpu_text(document: Results, result: Result, summary: Summary) -> str:
    """Return a median by the GPU's clock, of the whole or of a kernel; its interval is at least one step wide."""
    return summary.text(document.tick_step_ns(result))


def timed_text(document: Results, result: Result) -> str:
    """Return the median that rates use: of the GPU span, or of the CPU wall if there is none."""
    if result.timed is None:
        return format_time(None)
    return gpu_text(document, result, result.timed) if result.is_timed_by_gpu else result.timed.text()


def clock_of(results: Sequence[Result]) -> str:
    """Return which clock timed the results: that of the GPU span, or of the CPU wall if there is none."""
    by_gpu = {result.is_timed_by_gpu for result in results}
    if by_gpu == {True, False}:
        return "GPU span per trial (CPU wall where there is none)"
    return "GPU span per trial" if by_gpu == {True} else "CPU wall per trial"
