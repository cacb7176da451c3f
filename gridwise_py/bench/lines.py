"""Results as lines over n: what pictures and reports draw."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .documents import timed_summary

__all__ = ["YARDSTICK", "Line", "places", "result_lines", "variant", "yardsticks"]

#: The primitive that others are held against.
YARDSTICK = "copy"


@dataclass(frozen=True)
class Line:
    """The results of one variant of a primitive in one file, by n.

    Attributes
    ----------
    name : str
        Of the variant, and of the file where there are several.
    primitive : str
    variant : int
        Its number among those of the primitive, the same in every file.
    file : int
    entries : tuple of mapping
    """

    name: str
    primitive: str
    variant: int
    file: int
    entries: tuple[Mapping[str, Any], ...]


def variant(entry: Mapping[str, Any]) -> str:
    """Return what tells results of one primitive and n apart, as text."""
    words = [str(value) for value in entry["case"].values() if value is not None]
    return " ".join([*words, *([] if entry["mode"] == "batch" else [entry["mode"]])])


def result_lines(documents: Sequence[Mapping[str, Any]], names: Sequence[str]) -> list[Line]:
    """Return the lines of pooled documents: of all results that are right and have a time."""
    found: dict[tuple[str, str, int], list[Mapping[str, Any]]] = {}
    for number, document in enumerate(documents):
        for entry in document["results"]:
            if entry["correct"] and timed_summary(entry) is not None:
                found.setdefault((entry["primitive"], variant(entry), number), []).append(entry)
    variants: dict[str, list[str]] = {}
    for primitive, text, _ in sorted(found):
        # The copy kernel is a reference in grey; it takes no colour from the others.
        known = variants.setdefault(primitive, [])
        if text not in known:
            known.append(text)
    lines = []
    for (primitive, text, number), entries in sorted(found.items()):
        name = text if len(documents) == 1 else f"{text}, {names[number]}"
        ordered = tuple(sorted(entries, key=lambda entry: entry["n"]))
        lines.append(Line(name, primitive, variants[primitive].index(text), number, ordered))
    return lines


def yardsticks(lines: Sequence[Line]) -> list[Line]:
    """Return the copy kernel of each file, once: it is no news in every mode."""
    files: dict[int, Line] = {}
    for line in lines:
        if line.primitive == YARDSTICK:
            known = files.get(line.file)
            if known is None or _rank(line) < _rank(known):
                files[line.file] = line
    return list(files.values())


def _rank(line: Line) -> int:
    return ("batch", "hot", "cold", "latency").index(line.entries[0]["mode"])


def places(lines: Sequence[Line]) -> dict[tuple[str, str], float]:
    """Return factors on n that put lines side by side where they would be points on top of each other."""
    if len({entry["n"] for line in lines for entry in line.entries}) > 1:
        return {(line.primitive, line.name): 1.0 for line in lines}
    middle = (len(lines) - 1) / 2
    return {(line.primitive, line.name): 2 ** ((i - middle) / max(2, len(lines))) for i, line in enumerate(lines)}
