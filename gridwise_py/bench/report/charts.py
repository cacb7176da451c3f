"""Charts of results, as Vega-Lite specifications: for the page of `gridwise report`, and for pictures."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from ...display.quantities import format_count, format_number, format_percent, format_time
from ...display.terminal import clean
from ..analysis.compare import Comparison
from ..analysis.lines import Line, clock_of, gpu_text, places, timed_text
from ..analysis.roofline import Ceilings, Point
from ..cases.case import YARDSTICK
from ..cases.mode import Mode
from ..cases.names import case_name
from ..results.model import Result
from ..stats.series import Summary
from .vega import (
    ALL,
    GREY,
    KERNEL_COLOURS,
    SECONDS,
    SHAPES,
    Datasets,
    Spec,
    again,
    arrows,
    chosen,
    dashes_of,
    ends_of,
    fitted,
    load_altair,
    marks,
    n_axis,
    quantity,
    tips,
)

if TYPE_CHECKING:
    import altair

Row: TypeAlias = Mapping[str, Any]
#: Title, explanation and specification.
Chart: TypeAlias = tuple[str, str, Spec]

# Pixels: height of a row with its name above, height of a bar, and offset of marks below the middle of a row.
_ROW = 36
_BAR_HEIGHT = 14
_BELOW_NAME = 8
_MOST_BARS = 24
_GAPS, _GAP_COLOUR = "gaps between kernels", "#d9d9d9"
_MOST_RATIOS = 40
# If rates of files differ by more than this factor, the axis is logarithmic.
_FAR_APART = 8.0
_FARTHEST_RATIO = 100.0
# Length of a bar axis relative to the longest bar, with room for texts at the ends of bars.
_ROOM_FOR_TEXT = 1.6
_LEAST_ROOM = 1.5
# Ticks of an axis of ratios, by the quotient of its end and its begin.
_RATIO_TICKS = (
    (1.3, (0.8, 0.85, 0.9, 0.92, 0.94, 0.96, 0.98, 1, 1.02, 1.04, 1.06, 1.08, 1.1, 1.15, 1.2, 1.25)),
    (3, (0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1, 1.1, 1.2, 1.4, 1.6, 1.8, 2, 2.5)),
    (30, (0.05, 0.07, 0.1, 0.15, 0.2, 0.3, 0.5, 0.7, 1, 1.5, 2, 3, 5, 7, 10, 15, 20)),
    (math.inf, (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)),
)
_VERDICTS = {"faster": "#009E73", "same": GREY, "same code": GREY, "ambiguous": "#E69F00", "slower": "#D55E00"}


# ---- a primitive


def primitive_charts(
    primitive: str, lines: Sequence[Line], yardsticks: Sequence[Line], files: Sequence[str]
) -> list[Chart]:
    """Return title, explanation and specification of each chart of a primitive.

    Parameters
    ----------
    primitive : str
    lines : sequence of Line
        Its own.
    yardsticks : sequence of Line
        The copy kernel of each file.
    files : sequence of str
        Names.
    """
    rows, copies = _rows(lines, files), _rows(yardsticks if primitive != YARDSTICK else (), files)
    cases = list(dict.fromkeys(row["case"] for row in rows))
    found: list[Chart] = []
    if any("rate" in row for row in rows):
        explained = "GB/s of bytes that had to move, with their 95 % interval. An arrow: the interval continues."
        grey = " Grey: the copy kernel." if copies else ""
        found.append(("Throughput over n", explained + grey, _throughput(rows, copies, cases)))
    clock = clock_of([result for line in lines for result in line.results])
    several = any(result.timed is not None and result.timed.levels_ns for line in lines for result in line.results)
    which = "the geometric mean of the medians of the processes" if several else "medians"
    found.append(("Time over n", f"{clock}: {which}, with the 95 % interval.", _times(rows, cases, clock)))
    if any(result.kernels for line in lines for result in line.results):
        found.append(_kernels(lines, files))
    if any("gpu_s" in row for row in rows):
        explained = (
            "The time from the call to its result against the time on the GPU. On the dashed line, the call costs "
            "nothing more than the GPU's work."
        )
        found.append(("CPU wall against GPU span", explained, _cpu_against_gpu(rows, cases)))
    ratios = _cold_over_hot(lines, files)
    if ratios:
        explained = (
            "Time with the last-level cache flushed before each trial, divided by time with warm caches. The bar is "
            "the widest that both intervals allow."
        )
        found.append(("Cold against hot", explained, _ratio_chart(ratios)))
    return found


def _rows(lines: Sequence[Line], files: Sequence[str]) -> list[dict[str, Any]]:
    place_of = places(lines)
    return [_row(line, one, files, place_of[line.primitive, line.name]) for line in lines for one in line.results]


def _row(line: Line, result: Result, files: Sequence[str], place: float) -> dict[str, Any]:
    timed, moved = result.timed, result.moved_bytes
    assert timed is not None, "a line has no results without times"
    row: dict[str, Any] = {
        "at": result.n * place,
        "items": result.n,
        "n": format_count(result.n),
        "case": clean(line.case),
        "file": files[line.file],
        "mode": result.mode.value,
        "time": timed_text(line.document, result),
        "interval": "none of so few samples",
        "count": timed.count,
        "s": timed.time_ns / 1e9,
    }
    times_ns = {"rate": timed.time_ns}
    if timed.interval_ns is not None:
        low_ns, high_ns = timed.interval_ns
        row |= {"interval": f"{format_time(low_ns)} to {format_time(high_ns)}"}
        row |= {"s_low": low_ns / 1e9, "s_high": high_ns / 1e9}
        times_ns |= {"rate_low": high_ns, "rate_high": low_ns}
    if moved:
        row |= {name: moved / max(time_ns, 1e-3) for name, time_ns in times_ns.items()}
        row["rate_text"] = format_number(row["rate"], " GB/s")
    gpu, cpu = (None if series is None else series.summary for series in (result.gpu_span, result.cpu_wall))
    if gpu is not None and cpu is not None and gpu.time_ns > 0:
        row |= {"gpu_s": gpu.time_ns / 1e9, "cpu_s": cpu.time_ns / 1e9, "cpu": cpu.text()}
    return row


def _axis_of_n(rows: Sequence[Row]) -> altair.X:
    return n_axis(sorted({row["items"] for row in rows}))


_TIPS = {"case": "case", "file": "file", "n": "n", "time": "time"}


def _chart(
    datasets: Datasets, rows: Sequence[Row], x: altair.X, y: altair.Y, tooltip: Sequence[altair.Tooltip], *,
    behind: Sequence[altair.Chart] = (), filters: Sequence[str] = ("file", "mode"), **of_marks: Any,
) -> Spec:  # fmt: skip
    """Return a chart of marks that the page's selects filter, with layers behind them; `of_marks`: see `marks`."""
    params, shown = chosen(*filters)
    cases = of_marks.pop("cases", None) or list(dict.fromkeys(row["case"] for row in rows))
    layers = marks(datasets, rows, x, y, tooltip, cases=cases, **of_marks)
    layers = [layer.transform_filter(shown) for layer in layers]
    return datasets.spec(load_altair().layer(*behind, *layers).add_params(*params))


def _dashed(datasets: Datasets, rows: Sequence[Row], **channels: Any) -> altair.Chart:
    """Return a dashed line, or rule, to compare marks with."""
    chart = load_altair().Chart(datasets.data(rows))
    marked = chart.mark_line if len(rows) > 1 else chart.mark_rule
    return marked(color=GREY, strokeDash=[6, 3]).encode(**channels)


def _throughput(rows: Sequence[Row], copies: Sequence[Row], cases: Sequence[str]) -> Spec:
    alt, datasets = load_altair(), Datasets()
    rows, copies = ([row for row in some if "rate" in row] for some in (rows, copies))
    best: dict[str, float] = {}
    for row in [*rows, *copies]:
        best[row["file"]] = max(best.get(row["file"], 0.0), row["rate"])
    # Compares files, not n: small inputs are slow on every device, and a linear axis shows zero.
    far = max(best.values()) > _FAR_APART * min(best.values())
    x, y = _axis_of_n([*rows, *copies]), quantity(alt.Y, "rate", "GB/s", [r["rate"] for r in [*rows, *copies]], log=far)
    named = tips(**_TIPS, rate_text="rate", interval="95 % of time", count="samples")
    behind: list[altair.Chart] = []
    if copies:
        # The page's mode filter applies to cases, not to the copy kernel.
        grey = alt.Chart(datasets.data(copies)).encode(x=x, y=y)
        grey = grey.transform_filter(f"shown_file == '{ALL}' || datum.file == shown_file")
        of_copy = tips(rate_text="copy", case="case", file="file", n="n", time="time")
        dashes = dashes_of([row["file"] for row in rows])
        behind = [
            grey.mark_line(color=GREY, strokeWidth=4, opacity=0.55).encode(strokeDash=dashes),
            grey.mark_tick(color=GREY, thickness=4, width=14, opacity=0.6).encode(tooltip=of_copy),
        ]
    return _chart(datasets, rows, x, y, named, cases=cases, span=("rate_low", "rate_high"), behind=behind)


def _times(rows: Sequence[Row], cases: Sequence[str], clock: str) -> Spec:
    y = quantity(load_altair().Y, "s", clock, [row["s"] for row in rows], labels=SECONDS)
    named = tips(**_TIPS, interval="95 %", count="samples")
    return _chart(Datasets(), rows, _axis_of_n(rows), y, named, cases=cases, span=("s_low", "s_high"))


def _cpu_against_gpu(rows: Sequence[Row], cases: Sequence[str]) -> Spec:
    alt, datasets = load_altair(), Datasets()
    rows = [row for row in rows if "gpu_s" in row]
    seen = [row[key] for row in rows for key in ("gpu_s", "cpu_s")]
    x = quantity(alt.X, "gpu_s", "GPU span per trial", seen, labels=SECONDS)
    y = quantity(alt.Y, "cpu_s", "CPU wall per trial", seen, labels=SECONDS)
    diagonal = _dashed(datasets, [{"gpu_s": end, "cpu_s": end} for end in (min(seen), max(seen))], x=x, y=y)
    named = tips(**{**_TIPS, "time": "GPU span", "cpu": "CPU wall"})
    return _chart(datasets, rows, x, y, named, cases=cases, behind=[diagonal])


def _kernels(lines: Sequence[Line], files: Sequence[str]) -> Chart:
    """Stacked bars of the kernels and the gaps between them, and a mark for the whole.

    At the n that most lines have, the largest of these. The gaps are those that were recorded: the median of the whole
    less the medians of its parts would be no time of anything.
    """
    ns = [result.n for line in lines for result in line.results]
    largest = max(set(ns), key=lambda n: (ns.count(n), n))
    cases = [(line, result) for line in lines for result in line.results if result.n == largest]
    left_out = f" The first {_MOST_BARS} of {len(cases)} cases." if len(cases) > _MOST_BARS else ""
    explained = (
        f"At n = {format_count(largest)}. Bars: the time of each kernel and of the recorded gaps between them. The "
        f"mark is the GPU span, from the first begin to the last end. Each is a median by itself, so the bars of noisy "
        f"times may end before the mark or beyond it.{left_out}"
    )
    return "Kernels against the whole", explained, _kernel_bars(cases[:_MOST_BARS], files)


def _parts(line: Line, result: Result) -> Iterator[Row]:
    """Yield the kernels of a result and its gaps, each behind the one before, as seconds."""
    end = 0.0
    gaps = None if result.gaps is None else result.gaps.summary
    parts = [(clean(kernel.name), kernel.gpu_ns or 0.0, kernel.summary) for kernel in result.kernels]
    for name, time_ns, summary in [*parts, *([] if gaps is None else [(_GAPS, max(gaps.time_ns, 0.0), gaps)])]:
        begin, end = end, end + time_ns / 1e9
        text = "–" if summary is None else gpu_text(line.document, result, summary)
        yield {"kernel": name, "begin": begin, "end": end, "text": text}


def _kernel_bars(cases: Sequence[tuple[Line, Result]], files: Sequence[str]) -> Spec:
    alt, datasets = load_altair(), Datasets()
    rows: list[Row] = []
    wholes: list[Row] = []
    named: list[Row] = []
    for line, result in cases:
        common = {"line": clean(line.name), "file": files[line.file], "mode": result.mode.value}
        parts = list(_parts(line, result))
        named.append(common)
        rows += [{**common, **part} for part in parts]
        whole = None if result.gpu_span is None else result.gpu_span.summary
        if whole is not None:
            end = whole.time_ns / 1e9
            # The sum of overlapping kernels may exceed the whole: the text is right of the longer one.
            text_at = max(end, parts[-1]["end"] if parts else 0.0)
            text = gpu_text(line.document, result, whole)
            wholes.append({**common, "end": end, "text_at": text_at, "text": text})
    y = _named_rows()
    room = _ROOM_FOR_TEXT * max([row["end"] for row in [*rows, *wholes]], default=0.0)
    axis = alt.Axis(labelExpr=SECONDS, labelOverlap="greedy", tickCount=5)
    x = alt.X("begin:Q", title="GPU time per trial", axis=axis, scale=alt.Scale(domain=[0, room or 1.0]))
    params, shown = chosen("file", "mode")
    pick = alt.selection_point(name="pick", fields=["kernel"], bind="legend")
    # None of them is the colour of a case, and gaps come last.
    kinds = sorted(dict.fromkeys(row["kernel"] for row in rows), key=lambda kind: kind == _GAPS)
    shades = [_GAP_COLOUR if kind == _GAPS else KERNEL_COLOURS[i % len(KERNEL_COLOURS)] for i, kind in enumerate(kinds)]
    colour = alt.Color("kernel:N", title="kernel", sort=None, scale=alt.Scale(domain=kinds, range=shades))
    whole = alt.Chart(datasets.data(wholes)).encode(y=y, x=again(x, "end"), tooltip=tips(line="case", text="whole"))
    layers = (
        alt.Chart(datasets.data(rows))
        .mark_bar(height=_BAR_HEIGHT, yOffset=_BELOW_NAME)
        .encode(
            y=y, x=x, x2="end:Q", color=colour, opacity=alt.condition(pick, alt.value(1.0), alt.value(0.15)),
            tooltip=tips(line="case", kernel="kernel", text="time"),
        )
        .add_params(pick),
        _names(alt.Chart(datasets.data(named)).encode(y=y), "line"),
        whole.mark_tick(orient="vertical", thickness=2.5, height=_BAR_HEIGHT + 4, yOffset=_BELOW_NAME),
        whole.mark_text(align="left", dx=6, dy=_BELOW_NAME).encode(x=again(x, "text_at"), text="text:N"),
    )  # fmt: skip
    return datasets.spec(alt.layer(*layers).transform_filter(shown).add_params(*params), height=_ROW * len(named))


def _named_rows(field: str = "line", *, lines: bool = False) -> altair.Y:
    """Return a y channel of rows with names above their marks, so that long names fit on a narrow page.

    With `lines`, a line separates two rows, and links a name on the left to a mark on the right.
    """
    alt = load_altair()
    # In the order of the data: Vega would turn a listed order into an expression that contains the labels.
    axis = alt.Axis(grid=lines, tickBand="extent", labels=False, ticks=False, domain=False)
    return alt.Y(f"{field}:N", title=None, sort=None, axis=axis)


def _names(base: altair.Chart, field: str) -> altair.Chart:
    """Return the layer with the names of rows."""
    alt = load_altair()
    return base.mark_text(align="left", dx=1, dy=_BELOW_NAME - 16).encode(x=alt.value(0), text=f"{field}:N")


def _cold_over_hot(lines: Sequence[Line], files: Sequence[str]) -> list[Row]:
    found: dict[tuple[str, str, int], dict[Mode, Summary]] = {}
    for line in lines:
        for result in line.results:
            # One case in two modes, so its name has no mode.
            key = (case_name(result.primitive, result.axes), files[line.file], result.n)
            if result.timed is not None:
                found.setdefault(key, {})[result.mode] = result.timed
    rows: list[Row] = []
    for (case, file, n), modes in found.items():
        if {Mode.COLD, Mode.HOT} <= modes.keys():
            cold, hot = modes[Mode.COLD], modes[Mode.HOT]
            ratio, ends = cold.time_ns / hot.time_ns, {"interval": "none of so few samples"}
            if cold.interval_ns is not None and hot.interval_ns is not None:
                low = cold.interval_ns[0] / hot.interval_ns[1]
                high = cold.interval_ns[1] / max(hot.interval_ns[0], 1e-3)
                ends = {"low": low, "high": high, "interval": f"{format_number(low)} to {format_number(high)}"}
            rows.append({
                "at": n, "items": n, "n": format_count(n), "case": clean(case), "file": file, "ratio": ratio,
                "text": format_number(ratio), "cold": cold.text(), "hot": hot.text(), **ends,
            })  # fmt: skip
    return rows


def _ratio_chart(rows: Sequence[Row]) -> Spec:
    datasets = Datasets()
    y = quantity(load_altair().Y, "ratio", "cold over hot", [row["ratio"] for row in rows])
    named = tips(case="case", file="file", n="n", cold="cold", hot="hot", text="cold over hot", interval="interval")
    behind = [_dashed(datasets, [{"ratio": 1}], y=y)]
    return _chart(datasets, rows, _axis_of_n(rows), y, named, span=("low", "high"), behind=behind, filters=("file",))


# ---- of several primitives


def roofline_chart(ceilings: Ceilings, found: Sequence[Point]) -> Spec | None:
    """Return operations per second over operations per byte, with the ceilings; None where no case has operations."""
    alt, datasets = load_altair(), Datasets()
    shown = [p for p in found if p.intensity > 0]
    if not shown:
        return None
    ridges = {peak: ceilings.ridge_of(peak) for peak in dict.fromkeys(p.peak for p in shown)}
    intensities = [p.intensity for p in shown] + [ridge for ridge in ridges.values() if ridge]
    ends = [min(intensities) / 4, max(intensities) * 8]
    roof: list[dict[str, Any]] = [
        {"peak": peak, "flop_per_byte": at, "gflops": min(at * ceilings.memory_gbytes_per_s, gops)}
        for peak, ridge in ridges.items()
        for gops in (ceilings.gops_of(peak) or float("inf"),)
        for at in (ends[0], *([ridge] if ridge and ends[0] < ridge < ends[1] else []), ends[1])
    ]
    rows: list[dict[str, Any]] = [
        {
            "case": clean(p.name), "n": format_count(p.n), "flop_per_byte": p.intensity, "gflops": p.gflops, "file": "",
            "measured": format_time(p.measured_ns), "predicted": f"{format_time(p.predicted_ns)} ({p.bound})",
            "share": format_percent(p.share), "why": p.why,
        }
        for p in shown
    ]  # fmt: skip
    across, up = ([row[key] for row in [*roof, *rows]] for key in ("flop_per_byte", "gflops"))
    title = "operations per byte that had to move"
    x = quantity(alt.X, "flop_per_byte", title, across, labels="format(datum.value, '~g')", log=True)
    y = quantity(alt.Y, "gflops", "GFLOP/s", up, labels="format(datum.value, ',~r')", log=True)
    line = alt.Chart(datasets.data(roof)).mark_line(strokeWidth=2.5, color=GREY).encode(x=x, y=y, detail="peak:N")
    named = tips(case="case", n="n", measured="measured", predicted="predicted", share="of the roof", why="likely")
    cases = list(dict.fromkeys(row["case"] for row in rows))
    points = marks(datasets, rows, x, y, named, cases=cases, joined=False)
    return datasets.spec(alt.layer(line, *points), height=360)


def verdict_chart(comparison: Comparison) -> tuple[Spec, int] | None:
    """Return the ratios of the whole primitives with their intervals, and how many are left out; None without any."""
    alt, datasets = load_altair(), Datasets()
    judged = [(row, row.verdict) for row in comparison.rows if row.verdict is not None and row.part == "whole"]
    if not judged:
        return None
    # The largest differences first.
    judged.sort(key=lambda one: -abs(math.log(max(one[1].ratio, 1e-9))))
    rows: list[dict[str, Any]] = [
        {
            "case": clean(row.case if row.name == "gpu_span" else f"{row.case}, {row.name}"),
            "ratio": verdict.ratio, "low": verdict.low, "high": verdict.high,
            "verdict": verdict.kind.value, "text": _ratio_text(verdict.ratio),
            "interval": f"{_ratio_text(verdict.low)} to {_ratio_text(verdict.high)}",
            "old": format_time(verdict.old_ns), "new": format_time(verdict.new_ns),
            "why": clean(verdict.reason),
        }
        for row, verdict in judged[:_MOST_RATIOS]
    ]  # fmt: skip
    y = _named_rows("case", lines=True)
    x = _ratio_axis(rows)
    rows, cut = fitted(rows, x, ("low", "high"))
    bottom, top = ends_of(x)
    rows = [{**row, "ratio_drawn": min(max(row["ratio"], bottom), top)} for row in rows]
    verdicts = alt.Scale(domain=list(_VERDICTS), range=list(_VERDICTS.values()))
    shapes = alt.Scale(domain=list(_VERDICTS), range=list(SHAPES[:4]))
    colour = alt.Color("verdict:N", scale=verdicts, title="verdict")
    base = alt.Chart(datasets.data(rows)).encode(y=y)
    titles = {name: name for name in ("case", "verdict", "interval", "old", "new", "why")}
    named = tips(**{"case": "case", "verdict": "verdict", "text": "new over old", **titles})
    layers = [
        _dashed(datasets, [{"ratio": 1}], x=x),
        _names(base, "case"),
        base.mark_rule(strokeWidth=3, opacity=0.5, yOffset=_BELOW_NAME).encode(
            x=again(x, "low_drawn"), x2="high_drawn:Q", color=colour
        ),
        base.mark_point(size=90, filled=True, opacity=1, yOffset=_BELOW_NAME).encode(
            x=again(x, "ratio_drawn"),
            color=colour,
            shape=alt.Shape("verdict:N", scale=shapes, title="verdict"),
            tooltip=named,
        ),
    ]
    layers += arrows(datasets, cut, ("triangle-left", "triangle-right"), x=again(x, "cut_at"), y=y, color=colour,
                     tooltip=named, y_offset=_BELOW_NAME)  # fmt: skip
    return datasets.spec(alt.layer(*layers), height=_ROW * len(rows)), len(judged) - len(rows)


def _ratio_text(ratio: float) -> str:
    return f"{ratio:.3f}" if ratio < 10 else format_number(ratio)


def _ratio_axis(rows: Sequence[Mapping[str, Any]]) -> altair.X:
    """Return a logarithmic axis that separates all ratios, even if their intervals are wide."""
    alt = load_altair()
    ratios = [1.0, *(min(max(row["ratio"], 1 / _FARTHEST_RATIO), _FARTHEST_RATIO) for row in rows)]
    # Intervals are drawn in full, or up to half the range of the ratios beyond them.
    room = max(_LEAST_ROOM, math.sqrt(max(ratios) / min(ratios)))
    low = max(min([*ratios, *(row["low"] for row in rows)]), min(ratios) / room) / 1.02
    high = min(max([*ratios, *(row["high"] for row in rows)]), max(ratios) * room) * 1.02
    steps = next(steps for most, steps in _RATIO_TICKS if high / low <= most)
    values = [tick for tick in steps if low <= tick <= high]
    return alt.X(
        "ratio:Q",
        title="new / old; below 1 is faster",
        scale=alt.Scale(type="log", nice=False, domain=[low, high]),
        axis=alt.Axis(values=values, labelOverlap="greedy", format="~g"),
    )


def drift_chart(files: Sequence[str]) -> Spec:
    """Return the chart of samples in the order in which they were taken.

    The page sets the data of a case, and removes, by name, layers for which the case has no data.
    """
    alt = load_altair()
    domain = list(files)
    x = alt.X(
        "at:Q", title="sample, in the order taken", scale=alt.Scale(nice=False, padding=8), axis=alt.Axis(tickMinStep=1)
    )
    scale, axis = alt.Scale(zero=False, padding=10), alt.Axis(format="+~%", tickCount=6)
    y = alt.Y("off:Q", title="difference from the time in the table", scale=scale, axis=axis)
    legend = alt.Legend() if len(domain) > 1 else None
    colour = alt.Color("file:N", scale=alt.Scale(domain=domain), title="file", legend=legend)
    shapes = alt.Scale(domain=domain, range=[SHAPES[i % len(SHAPES)] for i in range(len(domain))])
    shape = alt.Shape("file:N", scale=shapes, title="file", legend=legend)
    pick = alt.selection_point(name="pick", fields=["file"], bind="legend")
    faded = alt.condition(pick, alt.value(0.85), alt.value(0.05))

    def of_kind(kind: str) -> altair.Chart:
        made = alt.Chart(alt.NamedData("samples")).properties(name=kind).transform_filter(f"datum.kind == '{kind}'")
        return made.encode(x=x, color=colour)

    named = tips(file="file", sample="sample", time="time", percent="from the time in the table")
    layers = (
        of_kind("round").mark_rule(strokeDash=[3, 3], opacity=0.5),
        of_kind("canary").mark_line(interpolate="step", strokeWidth=1.2, opacity=0.8).encode(y=y),
        of_kind("sample")
        .mark_point(size=22, filled=True)
        .encode(y=y, shape=shape, opacity=faded, tooltip=named)
        .add_params(pick),
    )
    return Datasets().spec(alt.layer(*layers), height=320)
