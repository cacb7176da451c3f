"""How evidence becomes a verdict, and what would settle an ambiguous one."""

from __future__ import annotations

import math
from dataclasses import replace

from .verdict import LEAST_UNITS, TESTABLE, Verdict, VerdictKind

__all__ = ["decide", "settle"]


def decide(v: Verdict) -> Verdict:
    """Turn evidence, whose `reason` is a word for what limits it, into a verdict."""
    over, limit = 1 + v.threshold, v.threshold
    span = f"the whole interval, {v.low:.4f} to {v.high:.4f},"
    blocked = v.reason in ("few", "moved")
    level = 1 - v.confidence
    cleared = VerdictKind.SLOWER if v.low > over else VerdictKind.FASTER if v.high < 1 / over else None
    if not blocked and cleared is not None and v.p_corrected <= level:
        side = f"above {over:.4g}" if cleared is VerdictKind.SLOWER else f"below {1 / over:.4g}"
        reason = f"{span} lies {side}, and the rank test agrees (p = {v.p_corrected:.2g})"
        return replace(v, kind=cleared, reason=reason)
    if not blocked and 1 / over < v.same_low and v.same_high < over:
        interval = f"the whole interval of {100 * (2 * v.confidence - 1):g} %, {v.same_low:.4f} to {v.same_high:.4f},"
        return replace(v, kind=VerdictKind.SAME, reason=f"{interval} lies within {100 * limit:g} %")
    if cleared is None:
        reason = f"the interval, {v.low:.4f} to {v.high:.4f}, reaches over {over:.4g} or {1 / over:.4g}"
    else:
        reason = f"{span} lies over the threshold, but the rank test does not agree (p = {v.p_corrected:.2g})"
    return replace(v, reason=reason, settle=settle(v, cleared is not None))


def settle(v: Verdict, cleared: bool) -> str:
    samples = f"now {v.old_count} and {v.new_count}"
    if v.reason == "few":
        return (
            f"take more samples: {samples}, worth {v.old_units} and {v.new_units} independent ones; at least "
            f"{LEAST_UNITS} of each are needed"
        )
    if v.reason == "moved":
        return "measure again after a longer warm-up: the GPU's clock moved during a run"
    if v.reason == "clock":
        return "measure both again at the same clock: the canary kernel, too, ran at another speed"
    if v.reason == "step":
        return "put more trials into a sample (mode batch): the step of the clock is as large as the threshold"
    if v.reason == "untested":
        return f"take at least {TESTABLE} samples of each ({samples}): fewer do not show how they depend on each other"
    if v.reason == "drift":
        return f"take many more samples of each ({samples}), or warm up longer: the times wander while they are taken"
    if v.reason == "blocks":
        return "take more rounds of each: runs of the same thing differ by more than samples within a run"
    if cleared:
        return f"take more samples of each ({samples}), or compare fewer rows at once"
    centre, limit = math.log(v.ratio), math.log1p(v.threshold)
    margin = abs(abs(centre) - limit)
    half = max(math.log(v.high) - centre, centre - math.log(v.low))
    factor = (half / margin) ** 2 if margin else math.inf
    if factor > 100:
        return f"choose another threshold: the difference is about the {100 * v.threshold:g} % asked about"
    needed = math.ceil(max(factor, 1.2) * max(v.old_count, v.new_count))
    return f"take about {needed:,} samples of each ({samples})"
