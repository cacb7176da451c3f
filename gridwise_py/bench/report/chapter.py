"""What another package adds to a report: a chapter for each document of its own kind."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, TypeAlias

from .vega import Spec

#: Takes the name of a place in the page and the chart for it, and returns the name.
AddChart: TypeAlias = Callable[[str, Spec], str]


@dataclass(frozen=True)
class Chapter(ABC):
    """A document that is no results file, and what a report shows of it.

    Attributes
    ----------
    name : str
        Its unique name in the report.
    path : Path
    content : bytes
        The bytes of the file.
    """

    name: str
    path: Path
    content: bytes

    #: The id in the page of what all chapters of the kind stand in, and its name in the contents.
    KIND: ClassVar[str]
    TITLE: ClassVar[str]
    #: A template that shows `sections`: what `section` returned for each chapter of the kind. It may use the macros of
    #: report.html.
    TEMPLATE: ClassVar[Path]

    @abstractmethod
    def files(self, left_out: list[str]) -> list[tuple[str, Path, bytes]]:
        """Return name, path and content of results files that become part of the report.

        They are not compared with each other. What cannot be shown is named in `left_out`.
        """

    @abstractmethod
    def section(self, number: int, chart: AddChart, left_out: list[str]) -> dict[str, Any]:
        """Return what the template shows; `number` tells its charts from those of the kind's other chapters."""


#: Makes a chapter of the name, the path, the bytes and the JSON of a document; None if it is of another kind.
ChapterOf: TypeAlias = Callable[[str, Path, bytes, Any], Chapter | None]
