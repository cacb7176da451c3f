"""Pictures: they are made of any results, say what they show, and need no more than matplotlib."""

import importlib
import itertools
import sys
import xml.etree.ElementTree as ET

import numpy as np
import pytest

import gridwise_py as gw
from gridwise_py.bench.lines import places, result_lines
from gridwise_py.bench.mode import Mode
from gridwise_py.bench.plot import COLOURS, KERNEL_COLOURS, STYLE, _fit, plot_results, write_title
from gridwise_py.display.quantities import format_time, format_uncertainty
from gridwise_py.storage.json_files import write_json
from helpers.results import DEVICE, document, header, measurement, series

pytest.importorskip("matplotlib")


def _sweep(**fields):
    return document(
        [
            measurement(primitive, n, mode, datatype=datatype, op=op, labels=labels, scale_ns=n / 1000)
            for primitive, op, labels in (("copy", None, ("copy",)), ("scan", "add", ("reduce blocks", "scan blocks")))
            for n in (1 << 16, 1_000_003, 1 << 20, 1 << 24)
            for datatype in ("u32", "f32")
            for mode in (Mode.HOT, Mode.COLD)
        ],
        **fields,
    )


def _texts(path):
    return [element.text for element in ET.parse(path).iter() if element.tag.endswith("text")]


def test_what_a_picture_says(tmp_path):
    plot_results([_sweep()], ["a"], tmp_path / "a.svg")
    texts = [text for text in _texts(tmp_path / "a.svg") if text]
    for wanted in (
        "scan", "copy u32 hot", "scan add u32 hot", "scan add f32 cold", "reduce blocks", "scan blocks", "n, items",
        "rate, GB/s (bytes that had to move)", "CPU wall per trial", "GPU span per trial", "2^24",
        "GPU span: first begin to last end",
    ):  # fmt: skip
        assert any(wanted in text for text in texts), wanted
    assert any(text.startswith("a: invented (Vulkan, 1.0)") for text in texts)


@pytest.mark.parametrize(("suffix", "magic"), [(".png", b"\x89PNG"), (".pdf", b"%PDF"), (".SVG", b"<?xml")])
def test_the_suffix_says_the_kind(tmp_path, suffix, magic):
    path = tmp_path / f"a{suffix}"
    plot_results([document([measurement()])], ["a"], path)
    assert path.read_bytes().startswith(magic)


def test_the_same_results_make_the_same_picture(tmp_path):
    for name in ("a.svg", "b.svg"):
        plot_results([document([measurement()])], ["x"], tmp_path / name)
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()


def test_several_files_on_one_axis(tmp_path):
    slow = {**DEVICE, "adapter": "slow", "adapter_type": "CPU"}
    second = document([measurement(n=1 << 20, scale_ns=1e6)], device=slow)
    plot_results([_sweep(), second], ["fast", "slow"], tmp_path / "a.svg")
    texts = [text for text in _texts(tmp_path / "a.svg") if text]
    assert any("scan add u32 hot, fast" in text for text in texts)
    assert any("scan add u32 hot, slow" in text for text in texts)
    assert any("software on the CPU" in text for text in texts)


@pytest.mark.parametrize(
    "made",
    [
        [measurement("copy", op=None)],
        [measurement(work={})],
        [measurement(n=1)],
        [measurement(kernels=(), whole={"cpu_wall": measurement().whole["cpu_wall"]}, ticks=())],
        [measurement(datatype=f"type {i}", n=n) for i in range(20) for n in (10, 1000)],
    ],
    ids=["copy alone", "no bytes", "one item", "no GPU times", "many cases"],
)
def test_results_with_little_or_much_in_them(tmp_path, made):
    plot_results([document(made)], ["a"], tmp_path / "a.svg")
    assert (tmp_path / "a.svg").stat().st_size > 10_000


def test_lines_are_told_apart_without_colour(tmp_path):
    from gridwise_py.bench.plot import _style

    many = document([measurement(datatype=f"type {i}") for i in range(30)])
    styles = [_style(line) for line in result_lines([many, many], ["a", "b"])]
    assert len({(s["color"], s["marker"], s["linestyle"], s["markerfacecolor"]) for s in styles}) == 60
    assert len({(s["marker"], s["linestyle"]) for s in styles}) == 16


def test_kernels_have_colours_of_their_own():
    assert not set(KERNEL_COLOURS) & set(COLOURS)


def test_a_median_has_three_digits_and_its_uncertainty_beside_it(tmp_path):
    """However uncertain it is: the same text as in the other outputs."""
    spread = [10e6, 12e6, 15.887e6, 21e6, 30e6]
    made = document([measurement(labels=("scan",), whole={"gpu_span": series("gpu_span", spread)}, ticks=())])
    summary = made["results"][0]["whole"]["series"]["gpu_span"]["summary"]
    half = max(summary["median_ns"] - summary["ci_low_ns"], summary["ci_high_ns"] - summary["median_ns"])
    plot_results([made], ["a"], tmp_path / "a.svg")
    wanted = f"{format_time(15.887e6)} {format_uncertainty(half / 15.887e6)}"
    assert wanted.startswith("15.9 ms ±")
    assert wanted in _texts(tmp_path / "a.svg")


def test_the_clock_of_times_is_named(tmp_path):
    wall = {"cpu_wall": measurement().whole["cpu_wall"]}
    without = measurement(n=1 << 10, kernels=(), whole=wall, ticks=())
    for made, wanted in (
        ([measurement(n=1 << 12)], {"GPU span per trial"}),
        ([without], {"CPU wall per trial"}),
        ([without, measurement(n=1 << 12)], {"GPU span per trial (CPU wall where there is none)"}),
    ):
        plot_results([document(made)], ["a"], tmp_path / "a.svg")
        assert wanted <= set(_texts(tmp_path / "a.svg"))
        assert "time per trial" not in _texts(tmp_path / "a.svg")


def test_lines_are_in_the_order_asked_for_by_the_name_that_all_outputs_use():
    asked = [
        ("scan", "u32", Mode.HOT),
        ("scan", "f32", Mode.HOT),
        ("scan", "u32", Mode.COLD),
        ("copy", "u32", Mode.BATCH),
    ]
    made = document([
        measurement(primitive, n, mode, datatype=datatype, op=None if primitive == "copy" else "add")
        for n in (64, 128) for primitive, datatype, mode in asked
    ])  # fmt: skip
    # In the file they are as they were measured: in random order.
    made["results"].reverse()
    lines = result_lines([made], ["a"])
    assert [line.name for line in lines] == ["scan add u32 hot", "scan add f32 hot", "scan add u32 cold", "copy u32"]
    assert [line.variant for line in lines] == [0, 1, 2, 0]
    assert all([entry["n"] for entry in line.entries] == [64, 128] for line in lines)
    both = result_lines([made, made], ["a", "b"])
    assert [line.name for line in both[:3]] == ["scan add u32 hot, a", "scan add u32 hot, b", "scan add f32 hot, a"]


def test_equal_results_do_not_hide_each_other():
    for ns in ([1 << 20], [1 << 16, 1 << 17, 1 << 24]):
        made = document([measurement(n=n, datatype=f"t{i}") for n in ns for i in range(5)])
        lines = result_lines([made], ["a"])
        factors = np.array(list(places(lines).values()))
        assert len(set(factors)) == 5
        # Marks of one n stay nearer to it than to any other.
        nearest = min([b / a for a, b in itertools.pairwise(ns)], default=2)
        assert (np.abs(np.log2(factors)) < np.log2(nearest) / 2).all()
        assert np.prod(factors) == pytest.approx(1)


def _axes():
    from matplotlib.figure import Figure

    return Figure().subplots()


@pytest.mark.parametrize("scale", ["linear", "log"])
def test_no_interval_sets_an_axis_and_one_that_is_cut_has_an_arrow(scale):
    axes = _axes()
    axes.set_yscale(scale)
    # n, value, low, high: the second reaches far beyond all values.
    _fit(axes, [([(1, 2.0, 1.9, 2.1), (2, 3.0, 0.001, 500.0)], {"color": "red"})])
    bottom, top = axes.get_ylim()
    assert bottom < 2
    assert 3 < top < 10
    arrows = {(line.get_marker(), tuple(line.get_xdata())) for line in axes.lines}
    assert arrows == {("^", (2,))} | ({("v", (2,))} if scale == "log" else set())


def test_a_long_title_stays_in_the_picture():
    from matplotlib import rc_context
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    with rc_context(STYLE):
        figure = Figure(figsize=(4.8, 3), layout="constrained")
        figure.subplots()
        write_title(figure, ["run: llvmpipe (LLVM 15.0.6, 256 bits) (Vulkan, Mesa 22.3.6, software on the CPU), " * 2])
        canvas = FigureCanvasAgg(figure)
        canvas.draw()
        box = figure._suptitle.get_window_extent(canvas.get_renderer())
    assert box.x0 >= 0
    assert box.x1 <= figure.bbox.x1


def test_dollar_signs_are_no_formulas(tmp_path):
    """In the names of files, adapters, primitives and kernels: an unfinished formula ended the command."""
    text = r"a$x^$ \frac$"
    made = document(
        [measurement(text, datatype=text, labels=(text, "b"))], device={**DEVICE, "adapter": text, "driver": text}
    )
    plot_results([made, made], [text, "other"], tmp_path / "a.svg")
    texts = [one for one in _texts(tmp_path / "a.svg") if one]
    # As they are, and not set as a formula.
    assert text in texts
    assert any(f"{text}: {text} (Vulkan, {text})" in one for one in texts)
    assert any(one.endswith(f", {text}") for one in texts)


def test_nothing_to_draw(tmp_path):
    failed = measurement(error="x", kernels=(), whole={}, ticks=())
    for made in (header(), document([failed])):
        with pytest.raises(gw.ArgumentError, match=r"a\.json: no result with a time that was right"):
            plot_results([made], ["a.json"], tmp_path / "a.svg")
    with pytest.raises(gw.ArgumentError, match=r"a\.gif: a picture ends in \.png"):
        plot_results([document([measurement()])], ["a"], tmp_path / "a.gif")


@pytest.mark.parametrize("patience_s", [0.0, 600.0])
def test_the_command(tmp_path, monkeypatch, patience_s):
    from click.testing import CliRunner

    from gridwise_py.cli import main

    monkeypatch.setattr(importlib.import_module("gridwise_py.cli.plot"), "PATIENCE_S", patience_s)
    write_json(tmp_path / "run.json", document([measurement()]))
    out = tmp_path / "run.png"
    result = CliRunner().invoke(main, ["plot", str(tmp_path / "run.json"), "-o", str(out)])
    assert result.exit_code == 0, result.output
    # In a pipe a quick command says nothing of its steps.
    steps = [] if patience_s else ["reading run.json", "drawing run.png"]
    assert result.stderr.splitlines() == [*steps, f"wrote {out}"]
    assert out.read_bytes().startswith(b"\x89PNG")


def test_without_matplotlib_the_extra_is_named(tmp_path, monkeypatch):
    from click.testing import CliRunner

    from gridwise_py.cli import main

    write_json(tmp_path / "run.json", document([measurement()]))
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    result = CliRunner().invoke(main, ["plot", str(tmp_path / "run.json"), "-o", str(tmp_path / "a.png")])
    assert result.exit_code == 2
    assert "pip install 'matplotlib>=3.8'" in result.output
    assert not (tmp_path / "a.png").exists()
