"""A report: results files as one self-contained HTML page.

The page has its own content security policy: it makes no requests, and runs only the two scripts that are written here,
identified by their hashes. Labels come from files, so they are escaped everywhere (Jinja2's autoescape in markup, its
JSON in data); the policy is a second protection.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ... import __version__
from ...display.own_page import content_policy, inline_text
from ...display.terminal import clean
from ...errors import ArgumentError
from ..analysis.compare import compare
from ..analysis.lines import result_lines, yardsticks
from ..analysis.roofline import ceilings_of, points
from ..cases.case import YARDSTICK
from ..results.model import Results
from ..results.reader import content_of, document_of, parse, parse_json
from ..results.rounds import pooled
from .chapter import AddChart, Chapter, ChapterOf
from .charts import drift_chart, primitive_charts, roofline_chart, verdict_chart
from .page_tables import (
    comparison_table,
    device_card,
    devices_table,
    headlines,
    page_warnings,
    results_table,
    shown_table,
)
from .roofline import ceilings_text, roofline_table
from .samples import samples_by_case
from .vega import ALL, COLOURS, Spec, javascript, load_altair

if TYPE_CHECKING:
    import jinja2

# Black is invisible on a dark page. The light blue is easier to see there than the dark one, the first colour of most
# charts.
_ON_DARK = {COLOURS[0]: COLOURS[5], COLOURS[5]: COLOURS[0], "#000000": "#ffffff"}
_DARK_COLOURS = tuple(_ON_DARK.get(colour, colour) for colour in COLOURS)

PAGE_FOLDER = Path(__file__).resolve().parent / "assets"


@dataclass(frozen=True)
class Source:
    """A results file.

    Attributes
    ----------
    name : str
        Its unique name in the report.
    file_name : str
    content : bytes
        The bytes of the file.
    document : Results
        What is in it.
    """

    name: str
    file_name: str
    content: bytes
    document: Results
    #: Whether it belongs to a chapter: it is not compared with other files.
    of_chapter: bool = False


def read_sources(
    paths: Sequence[Path], chapter_of: ChapterOf | None = None
) -> tuple[list[Source], list[Chapter], list[str]]:
    """Read and check results files and documents of other kinds.

    Parameters
    ----------
    paths : sequence of Path
    chapter_of : callable, optional
        Makes chapters of documents that are no results files.

    Returns
    -------
    sources : list of Source
        The results files, and those of the chapters.
    chapters : list of Chapter
    left_out : list of str
        Files of chapters that cannot be shown.

    Raises
    ------
    BadResultsFile
        If a file is not valid; the message has the place.
    """
    sources: list[Source] = []
    chapters: list[Chapter] = []
    left_out: list[str] = []
    for path, name in zip(paths, _names(paths), strict=True):
        content = content_of(path)
        data = parse_json(content, path.name)
        chapter = None if chapter_of is None else chapter_of(clean(name), path, content, data)
        if chapter is not None:
            chapters.append(chapter)
        else:
            sources.append(
                Source(clean(name), clean(path.name), content, document_of(data, path.name, folder=path.parent))
            )
    taken = {source.name for source in sources}
    for chapter in chapters:
        for identifier, path, content in chapter.files(left_out):
            name = clean(identifier) if clean(identifier) not in taken else f"{chapter.name}: {clean(identifier)}"
            taken.add(name)
            sources.append(Source(name, clean(path.name), content, parse(content, path.name), of_chapter=True))
    return sources, chapters, left_out


def _names(paths: Sequence[Path]) -> list[str]:
    """Return the names without suffix, made unique by folders or numbers."""
    names = [path.name.removesuffix(".json") for path in paths]
    if len(set(names)) < len(names):
        names = [f"{path.absolute().parent.name}/{name}" for path, name in zip(paths, names, strict=True)]
    if len(set(names)) < len(names):
        names = [f"{name} ({i})" for i, name in enumerate(names, start=1)]
    return names


def report_html(
    sources: Sequence[Source],
    *,
    chapters: Sequence[Chapter] = (),
    missing: Sequence[str] = (),
    raw_limit_mib: float = 8.0,
) -> str:
    """Return a report as HTML.

    Parameters
    ----------
    sources : sequence of Source
        The first is compared with each of the others.
    chapters : sequence of Chapter
    missing : sequence of str
        What could not be read, for the list of what is left out.
    raw_limit_mib : float
        The largest total size of the compressed files in the report, which names the files that it leaves out.

    Returns
    -------
    str
        Identical for identical files.

    Raises
    ------
    ArgumentError
        If Altair is not installed, or the limit is negative.
    """
    load_altair()
    if not raw_limit_mib >= 0:
        raise ArgumentError(f"the limit for raw files is {raw_limit_mib} MiB; it is at least 0, which leaves all out")
    names = [source.name for source in sources]
    documents = [_in_order(pooled(source.document)) for source in sources]
    charts: dict[str, Spec] = {}
    left_out: list[str] = list(missing)

    def chart(identifier: str, made: Spec) -> str:
        charts[identifier] = made
        return identifier

    plain = [source for source in sources if not source.of_chapter]
    parts = _parts(chapters, chart, left_out)
    raws = _raws([*chapters, *sources], raw_limit_mib, left_out)
    samples = samples_by_case(sources, documents, left_out)
    warnings = page_warnings(documents, names)
    context = {
        "version": __version__,
        "titles": [chapter.name for chapter in chapters] + [source.name for source in plain],
        "names": names,
        "parts": parts,
        "all": ALL,
        "modes": list(dict.fromkeys(result.mode.value for document in documents for result in document.results)),
        "headlines": headlines(documents, names, left_out),
        "by_device": devices_table(documents, names, left_out),
        "devices": _devices(documents, names),
        "warnings": warnings,
        "severities": Counter(warning["severity"] for warning in warnings),
        "cards": [device_card(source.document, source.name, source.file_name, source.content) for source in sources],
        "comparisons": [_comparison(plain[0], source, i, chart, left_out) for i, source in enumerate(plain) if i],
        "primitives": _primitives(documents, names, chart),
        "rooflines": [
            _roofline(source, document, i, chart, left_out)
            for i, (source, document) in enumerate(zip(sources, documents, strict=True))
        ],
        "results": results_table(documents, names, left_out),
        "samples": samples,
        "drift": chart("drift", drift_chart(names)) if samples else None,
        "raws": raws,
        "left_out": left_out,
    }
    shared = {"colours": {"light": COLOURS, "dark": _DARK_COLOURS}, "charts": charts, "samples": samples}
    return _render(context, shared)


def _in_order(document: Results) -> Results:
    """Return a document with its results in the order that was asked for, not the random order of measurement."""
    return replace(document, results=tuple(document.in_order()))


def _parts(chapters: Sequence[Chapter], chart: AddChart, left_out: list[str]) -> list[dict[str, Any]]:
    """Return for each kind of chapters its place in the page, its template, and what that shows."""
    kinds: dict[type[Chapter], list[Chapter]] = {}
    for chapter in chapters:
        kinds.setdefault(type(chapter), []).append(chapter)
    return [
        {
            "id": kind.KIND,
            "title": kind.TITLE,
            "template": _environment().from_string(kind.TEMPLATE.read_text(encoding="utf-8")),
            "sections": [chapter.section(i, chart, left_out) for i, chapter in enumerate(members)],
        }
        for kind, members in kinds.items()
    ]


def _devices(documents: Sequence[Results], names: Sequence[str]) -> list[dict[str, Any]]:
    """Return for each file its device, in one line, and the number of right cases."""
    return [
        {
            "name": name,
            "adapter": clean(document.device.adapter),
            "software": document.device.is_cpu,
            "cases": len(document.results),
            "bad": sum(not result.correct for result in document.results),
            "checked": any(result.checked for result in document.results),
        }
        for document, name in zip(documents, names, strict=True)
    ]


def _raws(sources: Sequence[Source | Chapter], limit_mib: float, left_out: list[str]) -> list[dict[str, Any]]:
    """Return the compressed files, up to the limit."""
    room = limit_mib * 2**20
    raws: list[dict[str, Any]] = []
    for source in sources:
        file_name = clean(source.path.name) if isinstance(source, Chapter) else source.file_name
        # Without a time stamp, so that identical files make identical reports.
        packed = base64.b64encode(gzip.compress(source.content, mtime=0)).decode("ascii")
        fits = len(packed) <= room
        if fits:
            room -= len(packed)
        else:
            left_out.append(
                f"The raw file {file_name}: compressed it takes {len(packed) / 2**20:.1f} MiB, and raw files "
                f"may take {limit_mib:g} MiB together (--raw-limit)."
            )
        raws.append(
            {
                "name": source.name,
                "file_name": file_name,
                "bytes": len(source.content),
                "sha256": hashlib.sha256(source.content).hexdigest(),
                "packed": packed if fits else None,
            }
        )
    return raws


def _comparison(old: Source, new: Source, number: int, chart: AddChart, left_out: list[str]) -> dict[str, Any]:
    found = compare(old.document, new.document)
    made: dict[str, Any] = {
        "old": old.name, "new": new.name, "comparable": found.comparable, "obstacles": found.obstacles,
    }  # fmt: skip
    if not found.comparable:
        # Files of other devices or modes can still be ranked by their common cases.
        found = compare(old.document, new.document, across=True)
    made["counts"] = found.counts() if found.rows else {}
    made["regressions"] = len(found.regressions)
    made["gate"] = f"{100 * found.gate:g} %"
    verdicts = verdict_chart(found)
    made["chart"] = None if verdicts is None else chart(f"verdicts-{number}", verdicts[0])
    made["not_drawn"] = 0 if verdicts is None else verdicts[1]
    return made | comparison_table(found, f"The comparison of {old.name} and {new.name}", left_out)


def _primitives(documents: Sequence[Results], names: Sequence[str], chart: AddChart) -> list[dict[str, Any]]:
    # Benchmarks of other tools have no n to be drawn over; the tables have them.
    lines = [line for line in result_lines(documents, names) if any(result.n for result in line.results)]
    copies = yardsticks(lines)
    primitives = list(dict.fromkeys(line.primitive for line in lines))
    # The copy kernel last.
    primitives.sort(key=lambda name: name == YARDSTICK)
    found: list[dict[str, Any]] = []
    for i, primitive in enumerate(primitives):
        own = [line for line in lines if line.primitive == primitive]
        made = [
            {"title": title, "text": text, "id": chart(f"primitive-{i}-{k}", spec)}
            for k, (title, text, spec) in enumerate(primitive_charts(primitive, own, copies, names))
        ]
        found.append({"name": clean(primitive), "id": f"primitive-{i}", "charts": made})
    return found


def _roofline(
    source: Source,
    document: Results,
    number: int,
    chart: AddChart,
    left_out: list[str],
) -> dict[str, Any]:
    try:
        ceilings = ceilings_of(document)
    except ArgumentError as error:
        return {"name": source.name, "missing": str(error)}
    found = points(document, ceilings)
    spec, table = roofline_chart(ceilings, found), roofline_table(document, ceilings, found, singles=True)
    return {
        "name": source.name,
        "missing": None if found else "No case is right and has a GPU time and known work.",
        "text": clean(ceilings_text(document, ceilings)),
        "chart": None if spec is None else chart(f"roofline-{number}", spec),
        "table": shown_table(table, f"The roofline of {source.name}", left_out),
    }


# ---- the page


@lru_cache(maxsize=1)
def _environment() -> jinja2.Environment:
    import jinja2

    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(PAGE_FOLDER),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _render(context: Mapping[str, Any], shared: Mapping[str, Any]) -> str:
    from markupsafe import Markup

    scripts = [inline_text(javascript()), inline_text((PAGE_FOLDER / "report.js").read_text(encoding="utf-8"))]
    policy = content_policy(scripts, images="data: blob:")
    style = Markup((PAGE_FOLDER / "report.css").read_text(encoding="utf-8"))
    template = _environment().get_template("report.html")
    return template.render(
        **context, shared=shared, policy=policy, scripts=[script.text for script in scripts], style=style
    )
