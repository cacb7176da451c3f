"""Outcomes of experiments as text for a terminal."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from rich.text import Text

from ...display.terminal import clean
from .model import Experiment, Verdict

_STYLES = {Verdict.HOLDS: "bold green", Verdict.DOES_NOT: "bold red", Verdict.CANNOT: "yellow"}


def _lines(width: int, *lines: tuple[str, str]) -> Iterator[Text]:
    for word, text in lines:
        filled = textwrap.fill(f"{word}: {clean(text)}", width, initial_indent="  ", subsequent_indent="    ")
        yield Text(filled, no_wrap=True)


def claims(experiments: Iterable[Experiment], width: int) -> Iterator[Text]:
    """Yield names, claims and sources, in lines of that width."""
    for each in experiments:
        yield Text(each.name, style="bold")
        yield from _lines(width, ("claim", each.claim), ("source", each.source))


def outcomes(document: Mapping[str, Any], width: int) -> Iterator[Text]:
    """Yield the outcome of each experiment, and how often each verdict came, in lines of that width."""
    device, counts = document["device"], dict.fromkeys(Verdict, 0)
    software = ", software on the CPU" if device["adapter_type"] == "CPU" else ""
    scale = document["protocol"]["scale"]
    sizes = "" if scale == 1 else f"; all sizes times {scale:g} (--scale)"
    yield Text(clean(f"{device['adapter']} ({device['backend']}, {device['driver']}{software}){sizes}"))
    for each in document["experiments"]:
        verdict = Verdict(each["verdict"])
        counts[verdict] += 1
        yield Text("")
        yield Text.assemble((f"{each['name']}: ", "bold"), (verdict.value, _STYLES[verdict]))
        yield from _lines(width, ("claim", each["claim"]), ("source", each["source"]), ("here", each["reason"]))
    yield Text("")
    yield Text(", ".join(f"{verdict.value}: {count}" for verdict, count in counts.items() if count))
