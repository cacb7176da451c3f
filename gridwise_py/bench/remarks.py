"""What has to be said of results before their figures are read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from .distributions import UNIFORM
from .series import CLOCK_MOVED, LEFT_OUT

__all__ = ["Remark", "case_label", "remarks"]


class Remark(NamedTuple):
    """One thing to be said.

    Attributes
    ----------
    kind : str
        ``"error"`` (a case failed or is wrong), ``"warning"`` (of a result itself), ``"clock"``, ``"software"`` (the
        adapter is no GPU) or ``"no GPU"`` (times).
    text : str
    cases : tuple of str
        Which results it is about, with n; empty where it is about all.
    """

    kind: str
    text: str
    cases: tuple[str, ...] = ()


def case_label(entry: Mapping[str, Any]) -> str:
    """Return a result's name, without n."""
    # The usual mode and data are left out, as every row would have them.
    usual = ("batch", UNIFORM)
    words = [entry["primitive"], entry["op"], entry["datatype"], entry["case"].get("distribution"), entry["mode"]]
    return " ".join(word for word in words if word and word not in usual)


def remarks(device: Mapping[str, Any], results: Sequence[Mapping[str, Any]]) -> list[Remark]:
    """Return what is to be said of pooled results: what failed first, then warnings, one for all cases of each.

    Parameters
    ----------
    device : mapping
        Of a results document.
    results : sequence of mapping
    """
    found = []
    by_warning: dict[str, list[str]] = {}
    moved, left_out = [], []
    for entry in results:
        where = f"{case_label(entry)} n={entry['n']:,}"
        problem = entry["error"] or entry["mismatch"]
        if problem:
            found.append(Remark("error", f"{where}: {problem}", (where,)))
        # One line for all of each kind that has to do with the clock.
        moved += [where] * entry["clock_moved"]
        left_out += [where] * any(LEFT_OUT in warning for warning in entry["warnings"])
        for warning in entry["warnings"]:
            if CLOCK_MOVED not in warning and LEFT_OUT not in warning:
                by_warning.setdefault(warning, []).append(where)
    found += [Remark("warning", warning, tuple(by_warning[warning])) for warning in sorted(by_warning)]
    if moved:
        text = f"The clock moved all through {len(moved)} of {len(results)} cases."
        found.append(Remark("clock", text, tuple(moved)))
    if left_out:
        text = f"In {len(left_out)} of {len(results)} cases some samples were {LEFT_OUT}, and are left out."
        found.append(Remark("clock", text, tuple(left_out)))
    if device["adapter_type"] == "CPU":
        text = "This adapter is software on the CPU: these figures are the CPU's, and say nothing about any GPU."
        found.append(Remark("software", text))
    if not any(entry["whole"]["gpu_span_ns"] for entry in results):
        text = "No GPU times: the adapter has no timestamps. Rates are from the CPU wall."
        found.append(Remark("no GPU", text))
    return found
