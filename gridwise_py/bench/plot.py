"""Pictures of results files, by matplotlib.

A column per primitive. In it, from the top: GB/s over n, time over n, both with the 95 % interval of the median; the
kernels stacked, against the whole; the CPU wall against the GPU time. Colour and marker are the case (datatype,
operator, mode), line style and filling are the file, so that nothing is told by colour alone. Kernels have colours
that no case has. Marks at one n stand side by side, so that equal results do not hide each other.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..display.quantities import format_count
from ..display.terminal import clean
from ..errors import ArgumentError
from ..storage.files import whole_file
from .documents import moved_bytes, timed_summary, whole_summary
from .lines import YARDSTICK, Line, clock_of, gpu_text, places, result_lines, yardsticks
from .rounds import pooled

__all__ = [
    "COLOURS", "KERNEL_COLOURS", "MARKERS", "STYLE", "SUFFIXES", "as_written", "label_log_axis", "load_figure",
    "plot_results", "save_figure", "time_axis", "write_title",
]  # fmt: skip

SUFFIXES = (".png", ".svg", ".pdf")

# Okabe and Ito: told apart also by the colour-blind, and, in this order, mostly by lightness in print.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#999933")
# Of kernels: none of them is the colour of a case. They are seen on white and on black.
KERNEL_COLOURS = ("#7b8794", "#a87b4f", "#7d9460", "#9a86b8", "#b0a14e", "#6fa3a8")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
_LINES = ("-", "--", ":", "-.")
_HATCHES = ("", "///", "...", "xxx", "\\\\\\")
_MOST_BARS = 12
# Files whose rates differ by more cannot share a linear axis.
_FAR_APART = 8.0
# An interval may reach this much beyond the medians; a longer one is cut, so that it does not squeeze all others.
_ROOM = 1.3
# Of a letter, as a share of the size of its font.
_LETTER_WIDTH = 0.56
STYLE: dict[str, Any] = {
    "font.size": 9, "axes.titlesize": 10, "axes.spines.top": False, "axes.spines.right": False, "axes.grid": True,
    "grid.color": "#d9d9d9", "grid.linewidth": 0.6, "axes.axisbelow": True, "legend.frameon": False,
    "legend.fontsize": 8, "lines.linewidth": 1.4, "lines.markersize": 5, "savefig.dpi": 160,
    "svg.hashsalt": "gridwise", "svg.fonttype": "none", "hatch.linewidth": 0.6,
    # Labels come from files: a dollar sign in them begins no formula.
    "text.parse_math": False,
}  # fmt: skip


def _style(line: Line) -> dict[str, Any]:
    colour = COLOURS[line.variant % len(COLOURS)]
    return {
        "color": colour,
        # Beyond eight variants the colours come again, with other markers.
        "marker": MARKERS[(line.variant + line.variant // len(COLOURS)) % len(MARKERS)],
        "linestyle": _LINES[line.file % len(_LINES)],
        "markerfacecolor": colour if line.file == 0 else "white",
        "label": as_written(line.name),
    }


def as_written(text: str) -> str:
    """Return a text of a file as a picture shows it; that a dollar sign begins no formula is in `STYLE`."""
    return clean(text)


def load_figure(out: Path) -> tuple[Any, Any]:
    """Return matplotlib, and its class of figures, for a picture of that name.

    Raises
    ------
    ArgumentError
        If matplotlib is not installed, or the suffix is another.
    """
    if out.suffix.lower() not in SUFFIXES:
        raise ArgumentError(f"{out.name}: a picture ends in {', '.join(SUFFIXES)}")
    try:
        import matplotlib
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ArgumentError(
            "plotting needs matplotlib, the extra 'plot' of this package: pip install 'matplotlib>=3.8'"
        ) from error
    return matplotlib, Figure


def save_figure(figure: Any, out: Path) -> None:
    """Write a picture, whole or not at all; the same data make the same file, so it has no date."""
    suffix = out.suffix.lower()
    # No date in an SVG and in a PDF: matplotlib writes one where it is not told otherwise.
    dated = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}
    with whole_file(out) as file:
        figure.savefig(file, format=suffix.removeprefix("."), metadata=dated.get(suffix))


def plot_results(documents: Sequence[Mapping[str, Any]], names: Sequence[str], out: str | Path) -> None:
    """Draw results and write the picture.

    Parameters
    ----------
    documents : sequence of mapping
        As `read_results` returns them.
    names : sequence of str
        What each is called in the legend.
    out : str or Path
        ``.png``, ``.svg`` or ``.pdf``.

    Raises
    ------
    ArgumentError
        If matplotlib is not installed, the suffix is another, or there is nothing to draw.
    """
    out = Path(out)
    matplotlib, figure_class = load_figure(out)
    documents = [pooled(document) for document in documents]
    lines = result_lines(documents, names)
    if not lines:
        raise ArgumentError(f"{', '.join(names)}: no result with a time that was right, so there is nothing to draw")
    primitives = list(dict.fromkeys(line.primitive for line in lines))
    # The yardstick is a line in the others' panels, and has a column of its own only where it is alone.
    columns = [name for name in primitives if name != YARDSTICK] or primitives
    with matplotlib.rc_context(STYLE):
        # A column has room for this many letters of a legend.
        long = max(len(line.name) for line in lines) > 24
        rows = [sum(line.primitive == name for line in lines) + len(documents) for name in columns]
        legend_inches = 0.4 + 0.17 * (max(rows) if long else (max(rows) + 1) // 2)
        bars_inches = max(2.4, 0.45 * min(max(rows), _MOST_BARS))
        inches = (2.9, 2.9, bars_inches + 0.6, 2.9)
        size = (0.4 + 4.4 * len(columns), sum(inches) + legend_inches + 1)
        figure = figure_class(figsize=size, layout="constrained")
        axes = figure.subplots(4, len(columns), squeeze=False, height_ratios=inches)
        for column, primitive in enumerate(columns):
            own = [line for line in lines if line.primitive == primitive]
            _rates(axes[0][column], own, [] if primitive == YARDSTICK else yardsticks(lines))
            _times(axes[1][column], own)
            _kernels(axes[2][column], own)
            _cpu_against_gpu(axes[3][column], own)
            # One legend above the column, where it covers no data.
            shown = axes[0 if axes[0][column].get_legend_handles_labels()[1] else 1][column]
            axes[0][column].legend(
                *shown.get_legend_handles_labels(), loc="lower left", bbox_to_anchor=(-0.02, 1.02),
                ncols=1 if long else 2, borderaxespad=0, columnspacing=1.2, title=as_written(primitive),
                title_fontproperties={"weight": "bold", "size": 10}, alignment="left",
            )  # fmt: skip
        write_title(figure, _titles(documents, names))
        save_figure(figure, out)


def write_title(figure: Any, lines: Iterable[str]) -> None:
    """Write lines above a figure, wrapped at its right edge."""
    size = 9
    letters = int(figure.get_figwidth() * 72 / (_LETTER_WIDTH * size))
    wrapped = [part for line in lines for part in textwrap.wrap(as_written(line), letters, subsequent_indent="    ")]
    figure.suptitle("\n".join(wrapped), fontsize=size, x=0.01, ha="left")


def _titles(documents: Sequence[Mapping[str, Any]], names: Sequence[str]) -> Iterator[str]:
    for document, name in zip(documents, names, strict=True):
        device, context = document["device"], document["context"]
        software = ", software on the CPU" if device["adapter_type"] == "CPU" else ""
        yield (
            f"{name}: {device['adapter']} ({device['backend']}, {device['driver']}{software}), "
            f"gridwise_py {context['versions']['gridwise_py']}, {context['time'][:10]}"
        )


def time_axis(axis: Any, scale: Callable[[str], None], values: Sequence[float]) -> None:
    """Ticks with their units; logarithmic only where the values spread over more than a decade."""
    from matplotlib.ticker import EngFormatter, LogLocator, MaxNLocator, NullFormatter

    if values and min(values) > 0 and max(values) > 10 * min(values):
        scale("log")
        steps = (1.0,) if max(values) > 300 * min(values) else (1.0, 2.0, 5.0)
        axis.set_major_locator(LogLocator(subs=steps, numticks=8))
        axis.set_minor_formatter(NullFormatter())
    else:
        axis.set_major_locator(MaxNLocator(5))
    axis.set_major_formatter(EngFormatter(unit="s"))


def label_log_axis(axis: Any) -> None:
    """Write plain numbers at the decades of a logarithmic axis: matplotlib's own labels are formulas."""
    from matplotlib.ticker import FuncFormatter, NullFormatter

    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}" if value >= 1 else f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())


Points = list[tuple[float, float, float, float]]


def _over_n(axes: Any, points: Points, style: Mapping[str, Any]) -> None:
    """Draw (n, value, low, high): the interval as a bar at each point."""
    if points:
        ns, values, lows, highs = (list(column) for column in zip(*points, strict=True))
        below = [max(0.0, value - low) for value, low in zip(values, lows, strict=True)]
        above = [max(0.0, high - value) for value, high in zip(values, highs, strict=True)]
        axes.errorbar(ns, values, yerr=[below, above], capsize=2.5, elinewidth=1, **style)


def _fit(axes: Any, drawn: Sequence[tuple[Points, Mapping[str, Any]]]) -> None:
    """Set the y axis by the medians, and put an arrow where an interval runs out of it."""
    values = [value for points, _ in drawn for _, value, _, _ in points]
    if not values:
        return
    if axes.get_yscale() == "log":
        bottom, top = min(values) / _ROOM**2, max(values) * _ROOM**2
    else:
        bottom, top = 0.0, max(values) * _ROOM
        top = min(top, 1.05 * max(high for points, _ in drawn for _, _, _, high in points))
    axes.set_ylim(bottom, top)
    for points, style in drawn:
        for n, _, low, high in points:
            for runs_out, at, marker in ((high > top, 1.0, "^"), (low < bottom, 0.0, "v")):
                if runs_out:
                    axes.plot([n], [at], marker=marker, markersize=6, color=style["color"], clip_on=False,
                              transform=axes.get_xaxis_transform(), zorder=5)  # fmt: skip


def _n_axis(axes: Any, lines: Sequence[Line]) -> None:
    ns = sorted({entry["n"] for line in lines for entry in line.entries if entry["n"]})
    if not ns:
        return
    axes.set_xscale("log", base=2)
    powers = [n for n in ns if n & (n - 1) == 0] or ns
    # Labels nearer to each other than this would overprint each other.
    least = max(1.6, (powers[-1] / powers[0]) ** (1 / 7))
    apart: list[int] = []
    for n in powers:
        if not apart or n >= least * apart[-1]:
            apart.append(n)
    axes.set_xticks(apart, [format_count(n) for n in apart])
    axes.minorticks_off()
    if len(ns) == 1:
        axes.set_xlim(ns[0] / 2, ns[0] * 2)
    axes.set_xlabel("n, items")


def _rates(axes: Any, lines: Sequence[Line], copies: Sequence[Line]) -> None:
    best: dict[int, float] = {}
    drawn = []
    place_of = places([*copies, *lines])
    for line in (*copies, *lines):
        style = _copy_style(line) if line in copies else _style(line)
        place, keys = place_of[line.primitive, line.name], ("median_ns", "ci_high_ns", "ci_low_ns")
        points = [
            (entry["n"] * place, *(moved_bytes(entry) / max(timed[key], 1e-3) for key in keys))
            for entry in line.entries
            if (timed := timed_summary(entry)) is not None and moved_bytes(entry)
        ]
        _over_n(axes, points, style)
        drawn.append((points, style))
        if points:
            best[line.file] = max(best.get(line.file, 0.0), *(point[1] for point in points))
    _n_axis(axes, [*lines, *copies])
    if best and max(best.values()) > _FAR_APART * min(best.values()):
        axes.set_yscale("log")
        label_log_axis(axes.yaxis)
    _fit(axes, drawn)
    axes.set_ylabel("rate, GB/s (bytes that had to move)")


def _copy_style(line: Line) -> dict[str, Any]:
    """Return the look of the copy kernel of a file: a wide band, in a grey and a line style of the file's own."""
    grey = ("#7f7f7f", "#404040", "#a6a6a6", "#595959")[line.file % 4]
    return _style(line) | {
        "color": grey, "marker": "_", "markersize": 9, "linewidth": 2.5, "alpha": 0.55, "markerfacecolor": grey,
    }  # fmt: skip


def _times(axes: Any, lines: Sequence[Line]) -> None:
    drawn, entries = [], []
    place_of = places(lines)
    for line in lines:
        points = [
            (
                entry["n"] * place_of[line.primitive, line.name],
                *(timed[key] / 1e9 for key in ("median_ns", "ci_low_ns", "ci_high_ns")),
            )
            for entry in line.entries
            if (timed := timed_summary(entry)) is not None
        ]
        _over_n(axes, points, _style(line))
        drawn.append((points, _style(line)))
        entries += line.entries
    _n_axis(axes, lines)
    time_axis(axes.yaxis, axes.set_yscale, [value for points, _ in drawn for _, value, _, _ in points])
    _fit(axes, drawn)
    axes.set_ylabel(clock_of(entries))


def _kernels(axes: Any, lines: Sequence[Line]) -> None:
    """Stacked bars of the kernels at the n that most lines have, the largest of these; a mark where the whole ends."""
    ns = [entry["n"] for line in lines for entry in line.entries]
    largest = max(set(ns), key=lambda n: (ns.count(n), n))
    bars = [(line, entry) for line in lines for entry in line.entries if entry["n"] == largest][:_MOST_BARS]
    labels = list(dict.fromkeys(kernel["label"] for _, entry in bars for kernel in entry["kernels"]))
    if not labels:
        _no_gpu_times(axes)
        return
    used = set()
    for row, (line, entry) in enumerate(bars):
        left = 0.0
        # The name above its bar, where it takes no width from the panel.
        axes.annotate(as_written(line.name), (0, row - 0.23), xytext=(2, 1), textcoords="offset points", va="bottom",
                      fontsize=8)  # fmt: skip
        for kernel in entry["kernels"]:
            time_s = (kernel["gpu_ns"] or 0.0) / 1e9
            i = labels.index(kernel["label"])
            axes.barh(
                row, time_s, left=left, height=0.46, color=KERNEL_COLOURS[i % len(KERNEL_COLOURS)],
                edgecolor="white", hatch=_HATCHES[i % len(_HATCHES)],
                label=None if i in used else as_written(kernel["label"]),
            )  # fmt: skip
            used.add(i)
            left += time_s
        whole = whole_summary(entry, "gpu_span")
        if whole is not None:
            axes.plot([whole["median_ns"] / 1e9] * 2, [row - 0.3, row + 0.3], color="black", linewidth=2,
                      label=None if "whole" in used else "GPU span: first begin to last end")  # fmt: skip
            used.add("whole")
            # The number, too: beside a slower file a bar can be too short to be seen.
            axes.annotate(gpu_text(line.document, entry, whole), (whole["median_ns"] / 1e9, row), xytext=(5, 0),
                          textcoords="offset points", va="center", fontsize=8)  # fmt: skip
    axes.set_yticks([])
    axes.set_ylim(len(bars) - 0.5, -0.7)
    axes.grid(visible=False, axis="y")
    axes.set_xlim(0, 1.45 * axes.get_xlim()[1])
    time_axis(axes.xaxis, axes.set_xscale, [])
    axes.set_xlabel(f"GPU time per trial at n = {format_count(largest)}")
    axes.legend(loc="upper left", bbox_to_anchor=(-0.02, -0.16), ncols=2, columnspacing=1.2, borderaxespad=0.3)


def _no_gpu_times(axes: Any) -> None:
    axes.text(0.5, 0.5, "no GPU times", ha="center", va="center", transform=axes.transAxes)


def _cpu_against_gpu(axes: Any, lines: Sequence[Line]) -> None:
    seen = []
    for line in lines:
        points = [
            (gpu["median_ns"] / 1e9, cpu["median_ns"] / 1e9)
            for entry in line.entries
            if (gpu := whole_summary(entry, "gpu_span"))
            and (cpu := whole_summary(entry, "cpu_wall"))
            and gpu["median_ns"] > 0
        ]
        if points:
            axes.plot(*zip(*points, strict=True), **_style(line))
            seen += [value for point in points for value in point]
    if not seen:
        _no_gpu_times(axes)
        return
    ends = [min(seen) / 1.3, max(seen) * 1.3]
    axes.plot(ends, ends, color="#7f7f7f", linewidth=1, linestyle=(0, (6, 3)))
    axes.text(0.98, 0.02, "dashed: all of it on the GPU", transform=axes.transAxes, ha="right", va="bottom",
              fontsize=8, color="#595959")  # fmt: skip
    time_axis(axes.xaxis, axes.set_xscale, seen)
    time_axis(axes.yaxis, axes.set_yscale, seen)
    axes.set_xlabel("GPU span per trial")
    axes.set_ylabel("CPU wall per trial")
