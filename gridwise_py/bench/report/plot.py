"""The picture of results files: the charts that the report shows, on one sheet.

From the top, for each primitive: GB/s and time over n, its kernels against the whole, CPU wall against GPU span, cold
against hot.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...errors import ArgumentError
from ..analysis.lines import result_lines, yardsticks
from ..cases.case import YARDSTICK
from ..results.model import Results
from ..results.rounds import pooled
from .charts import Chart, primitive_charts
from .picture import below, beside, still, titled
from .vega import Spec

# Sizes of drawing areas, without axis labels.
_HALF, _WHOLE, _HEIGHT = 390, 720, 220
_PRIMITIVE_SIZE = 17
# With a longer name, the legend of a half-width chart has room for one name per line only.
_LONG_NAME = 26


def results_picture(documents: Sequence[Results], names: Sequence[str]) -> Spec:
    """Return the specification of the picture.

    Raises
    ------
    ArgumentError
        If there is nothing to draw.
    """
    documents = [pooled(document) for document in documents]
    lines = result_lines(documents, names)
    if not lines:
        raise ArgumentError(f"{', '.join(names)}: no result with a time that was right, so there is nothing to draw")
    primitives = list(dict.fromkeys(line.primitive for line in lines))
    copies = yardsticks(lines)
    # The copy kernel is a line in the others' charts; it has its own charts only if it is alone.
    drawn = [name for name in primitives if name != YARDSTICK] or primitives
    # One flat list of rows: a PDF limits nested groups.
    rows: list[Spec] = []
    for name in drawn:
        first, *others = _rows(
            primitive_charts(name, [line for line in lines if line.primitive == name], copies, names)
        )
        rows += [titled(first, [name], size=_PRIMITIVE_SIZE), *others]
    columns = 1 if max(len(line.case) for line in lines) > _LONG_NAME else 2
    return titled(below(rows), _titles(documents, names)) | {"config": {"legend": {"columns": columns}}}


def _rows(charts: Sequence[Chart]) -> list[Spec]:
    """Return the charts of a primitive: those over n side by side, with one legend; bars across the whole width."""
    by_title = {title: (title, text, spec) for title, text, spec in charts}
    over_n = [by_title[title] for title in ("Throughput over n", "Time over n") if title in by_title]
    bars = [by_title[title] for title in ("Kernels against the whole",) if title in by_title]
    others = [one for one in charts if one not in (*over_n, *bars)]
    rows = [beside([_panel(*one, _HALF, _HEIGHT) for one in over_n], shared=True)]
    rows += [_panel(*one, _WHOLE) for one in bars]
    if others:
        rows.append(beside([_panel(*one, _HALF, _HEIGHT) for one in others]))
    return rows


def _panel(title: str, text: str, spec: Spec, width: int, height: int | None = None) -> Spec:
    return titled(still(spec, width, height), [title], text, width=width)


def _titles(documents: Sequence[Results], names: Sequence[str]) -> Iterator[str]:
    for document, name in zip(documents, names, strict=True):
        device, context = document.device, document.context
        software = ", software on the CPU" if device.is_cpu else ""
        yield (
            f"{name}: {device.adapter} ({device.backend}, {device.driver}{software}), "
            f"gridwise_py {context.versions['gridwise_py']}, {context.time[:10]}"
        )
