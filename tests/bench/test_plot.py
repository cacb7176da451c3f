"""Pictures of results: the charts that they are made of, by their data; and the files that come out."""

import importlib
import itertools
import json
import sys
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from click.testing import CliRunner

import gridwise_py as gw
from gridwise_py.bench.analysis import lines as lines_module
from gridwise_py.bench.analysis.lines import places, yardsticks
from gridwise_py.bench.cases.mode import Mode
from gridwise_py.bench.report import plot
from gridwise_py.bench.report.charts import primitive_charts
from gridwise_py.bench.report.picture import still, titled, write_picture
from gridwise_py.bench.report.vega import COLOURS, KERNEL_COLOURS
from gridwise_py.bench.stats.statistics import summarize
from gridwise_py.cli import main
from gridwise_py.display.quantities import format_time, format_uncertainty
from gridwise_py.storage.json_files import write_json
from helpers.results import DEVICE, document, header, loaded, measurement, series

pytestmark = pytest.mark.needs("module:altair", "module:vl_convert")


def plot_results(documents, names, out):
    write_picture(plot.results_picture([loaded(one) for one in documents], names), out)


def results_picture(documents, names):
    return plot.results_picture([loaded(one) for one in documents], names)


def result_lines(documents, names):
    return lines_module.result_lines([loaded(one) for one in documents], names)


def _sweep(sizes=(1 << 16, 1_000_003, 1 << 24), **fields):
    return document(
        [
            measurement(primitive, n, mode, datatype=datatype, op=op, labels=labels, scale_ns=n / 1000)
            for primitive, op, labels in (("copy", None, ("copy",)), ("scan", "add", ("reduce blocks", "scan blocks")))
            for n in sizes
            for datatype in ("u32", "f32")
            for mode in (Mode.HOT, Mode.COLD)
        ],
        **fields,
    )


def _texts(path):
    """Every text of a picture; lines of one text are joined."""
    return [" ".join(element.itertext()) for element in ET.parse(path).iter() if element.tag.endswith("}text")]


#: What must be drawn as it is: in the names of files, adapters, primitives and kernels.
ODD = r"a$x^$ \frac${b} <i> &"
#: A median has three digits, however uncertain it is: the same text as in the other outputs.
SPREAD = [10e6, 12e6, 13e6, 15.887e6, 16e6, 21e6, 30e6]


@pytest.fixture(scope="module")
def sheet():
    """A file with gaps between kernels, and its picture as a specification."""
    made = _sweep()
    for entry in made["results"]:
        if entry["primitive"] == "scan":
            entry["whole"]["series"]["gaps"] = {"samples_ns": [7e3] * 7, "summary": summarize([7e3] * 7).to_json()}
    return made, results_picture([made], ["a"])


@pytest.fixture(scope="module")
def two_files(tmp_path_factory):
    """The picture of two files, of which one has odd names: its specification, and its texts when it is drawn."""
    odd = document(
        [measurement(ODD, n=1 << 20, datatype=ODD, labels=(ODD, "b")),
         measurement(labels=("scan",), whole={"gpu_span": series("gpu_span", SPREAD)}, ticks=())],
        device={**DEVICE, "adapter": ODD, "driver": ODD, "adapter_type": "CPU"},
    )  # fmt: skip
    path = tmp_path_factory.mktemp("plots") / "a.svg"
    spec = results_picture([_sweep((1 << 20, 1 << 24)), odd], ["fast", ODD])
    write_picture(spec, path)
    return spec, _texts(path), odd


def _walk(part):
    """Every mapping in a specification but the rows of data."""
    if isinstance(part, dict):
        yield part
        for key, value in part.items():
            if key != "data":
                yield from _walk(value)
    elif isinstance(part, list):
        for one in part:
            yield from _walk(one)


def _charts(spec):
    """The charts of a picture by primitive and title: their rows, layer by layer."""
    found = {}
    primitive = ""
    for row in spec["vconcat"]:
        if "hconcat" in row and "title" in row:
            (primitive,) = row["title"]["text"]
        for chart in row.get("hconcat", [row]):
            found[primitive, chart["title"]["text"][0]] = [
                # Data that all layers have are the chart's.
                layer.get("data", chart.get("data"))["values"]
                for layer in chart["layer"]
            ]
    return found


def test_the_charts_have_the_figures_of_the_file(sheet):
    made, picture = sheet
    charts = _charts(picture)
    # The copy kernel is a line in the charts of the others, and has none of its own.
    assert set(charts) == {
        ("scan", title) for title in ("Throughput over n", "Time over n", "Kernels against the whole",
                                      "CPU wall against GPU span", "Cold against hot")
    }  # fmt: skip
    wanted = {
        (e["primitive"], e["datatype"], e["mode"], e["n"]): np.median(e["whole"]["series"]["gpu_span"]["samples_ns"])
        for e in made["results"]
    }
    scans = {key: ns for key, ns in wanted.items() if key[0] == "scan"}
    *_, points = charts["scan", "Time over n"]
    seen = {("scan", row["case"].split()[2], row["mode"], row["items"]): row["s"] * 1e9 for row in points}
    assert seen == pytest.approx(scans)
    throughput = charts["scan", "Throughput over n"]
    assert {row["case"].split()[0] for row in throughput[-1]} == {"scan"}
    assert {row["case"].split()[0] for row in throughput[0]} == {"copy"}
    for row in throughput[-1]:
        moved = next(e["work"]["read_bytes"] + e["work"]["write_bytes"] for e in made["results"]
                     if (e["primitive"], e["n"]) == ("scan", row["items"]))  # fmt: skip
        assert row["rate"] * row["s"] * 1e9 == pytest.approx(moved)
    kernels = charts["scan", "Kernels against the whole"]
    assert {row["kernel"] for row in kernels[0]} == {"reduce blocks", "scan blocks", "gaps between kernels"}
    gaps = [row["end"] - row["begin"] for row in kernels[0] if row["kernel"].startswith("gaps")]
    assert gaps == [pytest.approx(7e-6)] * 4, "what was recorded, not a difference of medians"
    ends = {}
    for row in kernels[0]:
        assert row["begin"] == pytest.approx(ends.get(row["line"], 0.0)), "kernels are stacked"
        ends[row["line"]] = row["end"]
    assert len(ends) == 4


def test_what_a_picture_says(two_files):
    _, texts, odd = two_files
    summary = odd["results"][1]["whole"]["series"]["gpu_span"]["summary"]
    half = max(summary["median_ns"] - summary["ci_low_ns"], summary["ci_high_ns"] - summary["median_ns"])
    uncertain = f"{format_time(15.887e6)} {format_uncertainty(half / 15.887e6)}"
    assert uncertain.startswith("15.9 ms ±")
    for wanted in (
        "scan", "scan add u32 hot, fast", "scan add f32 cold, fast", "reduce blocks", "scan blocks", "n, items", "GB/s",
        "CPU wall per trial", "GPU span per trial", "2^24", "GPU time per trial", "cold over hot", uncertain, ODD,
        f"scan add u32 hot, {ODD}",
    ):  # fmt: skip
        assert wanted in texts, wanted
    assert any(text.startswith("fast: invented (Vulkan, 1.0)") for text in texts)
    said = f"{ODD}: {ODD} (Vulkan, {ODD}, software on the CPU)"
    assert any(said in " ".join(text.split()) for text in texts)


def test_a_text_stands_right_of_its_bars_and_of_the_mark():
    """Kernels that overlap take longer together than the whole: there the text would lie on a bar."""
    made = document([measurement(labels=("a", "b"), count=20, ticks=())])
    entry = made["results"][0]
    for kernel, gpu_ns in zip(entry["kernels"], (3e6, 4e6), strict=True):
        kernel["gpu_ns"] = gpu_ns
    lines = result_lines([made], ["x"])
    (spec,) = [spec for title, _, spec in primitive_charts("scan", lines, [], ["x"]) if title.startswith("Kernels")]
    (whole,) = [row for rows in spec["datasets"].values() for row in rows if "text_at" in row]
    assert whole["end"] < 7e-3
    assert whole["text_at"] == pytest.approx(7e-3)


def test_the_same_chart_is_on_the_page_and_in_the_picture(sheet):
    made, picture = sheet
    lines = result_lines([made], ["a"])
    own = [line for line in lines if line.primitive == "scan"]
    drawn = _charts(picture)
    for title, _, spec in primitive_charts("scan", own, yardsticks(lines), ["a"]):
        rows = spec["datasets"]
        assert drawn["scan", title] == [rows[layer.get("data", spec.get("data"))["name"]] for layer in spec["layer"]]


def test_a_picture_has_nothing_that_only_a_page_can_do(two_files):
    for part in _walk(two_files[0]):
        assert not {"params", "tooltip", "datasets"} & part.keys()
        assert "condition" not in part
        assert "shown_" not in str(part.get("filter", ""))
        assert part.get("width") != "container"


def test_filters_of_a_chart_that_are_no_menu_of_the_page_stay():
    spec = {
        "data": {"name": "rows"}, "datasets": {"rows": [{"a": 1}]}, "width": "container", "height": 280,
        "transform": [{"filter": "datum.a > 0"}, {"filter": "(shown_file == '/' || datum.file == shown_file)"}],
        "encoding": {"opacity": {"condition": {"param": "pick", "value": 1.0}, "value": 0.1}},
    }  # fmt: skip
    assert still(spec, 300) == {
        "data": {"values": [{"a": 1}]}, "width": 300, "height": 280, "transform": [{"filter": "datum.a > 0"}],
        "encoding": {"opacity": {"value": 1.0}},
    }  # fmt: skip
    assert still(spec, 300, 200)["height"] == 200
    assert spec["width"] == "container"


def test_the_suffix_says_the_kind_and_the_same_results_make_the_same_picture(tmp_path):
    chart = {"data": {"values": [{"a": 1}]}, "mark": "bar", "encoding": {"x": {"field": "a", "type": "quantitative"}}}
    for name, magic in (("a.pdf", b"%PDF"), ("a.SVG", b"<svg"), ("b.svg", b"<svg")):
        write_picture(chart, tmp_path / name)
        assert (tmp_path / name).read_bytes().startswith(magic)
    assert (tmp_path / "a.SVG").read_bytes() == (tmp_path / "b.svg").read_bytes()
    one, other = (results_picture([document([measurement()])], ["x"]) for _ in range(2))
    assert one == other


@pytest.mark.parametrize(
    "made",
    [
        [measurement("copy", op=None)],
        [
            measurement("a", work={}),
            measurement("b", n=1),
            measurement("c", kernels=(), whole={"cpu_wall": measurement().whole["cpu_wall"]}, ticks=()),
        ],
    ],
    ids=["copy alone", "no bytes, one item, no GPU times"],
)
def test_results_with_little_in_them(tmp_path, made):
    plot_results([document(made)], ["a"], tmp_path / "a.svg")
    drawn = [element for element in ET.parse(tmp_path / "a.svg").iter() if element.get("class", "").startswith("mark-")]
    assert any(len(element) for element in drawn if "mark-symbol" in element.get("class"))


def test_cases_are_told_apart_without_colour():
    many = document([measurement(datatype=f"type {i}") for i in range(30)])
    spec = results_picture([many, many], ["a", "b"])
    scales = [part["scale"] for part in _walk(spec) if "scale" in part and part.get("field") == "case"]
    shapes = next(scale for scale in scales if "circle" in scale.get("range", ()))
    looks = {(COLOURS[i % len(COLOURS)], shape) for i, shape in enumerate(shapes["range"])}
    assert len(looks) == 30
    fills = [part["scale"]["range"] for part in _walk(spec) if "scale" in part and part.get("field") == "file"
             and "range" in part["scale"]]  # fmt: skip
    assert fills
    assert all(len({json.dumps(one) for one in values}) == 2 for values in fills)
    assert not set(KERNEL_COLOURS) & set(COLOURS)


def test_the_clock_of_times_is_named(tmp_path):
    wall = {"cpu_wall": measurement().whole["cpu_wall"]}
    without = measurement(n=1 << 10, kernels=(), whole=wall, ticks=())
    for made, wanted in (
        ([measurement(n=1 << 12)], "GPU span per trial"),
        ([without], "CPU wall per trial"),
        ([without, measurement(n=1 << 12)], "GPU span per trial (CPU wall where there is none)"),
    ):
        sheet = results_picture([document(made)], ["a"])
        titles = [part["y"]["title"] for part in _walk(sheet) if "y" in part and "title" in part.get("y", {})]
        assert wanted in titles


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
    assert all([result.n for result in line.results] == [64, 128] for line in lines)
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


def test_a_long_title_stays_in_the_picture(tmp_path):
    word = "llvmpipe (LLVM 15.0.6, 256 bits) (Vulkan, Mesa 22.3.6, software on the CPU), "
    chart = {"data": {"values": [{"a": 1}]}, "mark": "bar", "encoding": {"x": {"field": "a", "type": "quantitative"}}}
    write_picture(titled(chart | {"width": 480}, ["run: " + word * 4], word * 4, width=480), tmp_path / "a.svg")
    root = ET.parse(tmp_path / "a.svg").getroot()
    assert float(root.get("width")) < 560


def test_nothing_to_draw(tmp_path):
    failed = measurement(error="x", kernels=(), whole={}, ticks=())
    for made in (header(), document([failed])):
        with pytest.raises(gw.ArgumentError, match=r"a\.json: no result with a time that was right"):
            plot_results([made], ["a.json"], tmp_path / "a.svg")
    with pytest.raises(gw.ArgumentError, match=r"a\.gif: a picture ends in \.png"):
        plot_results([document([measurement()])], ["a"], tmp_path / "a.gif")
    with pytest.raises(gw.ArgumentError, match=r"a\.html: .* `gridwise report FILE -o PAGE\.html`"):
        plot_results([document([measurement()])], ["a"], tmp_path / "a.html")


def test_the_command(tmp_path, monkeypatch):
    write_json(tmp_path / "run.json", document([measurement()]))
    out = tmp_path / "run.png"
    for patience_s, steps in ((0.0, ["reading run.json", "drawing run.png"]), (600.0, [])):
        # In a pipe a quick command says nothing of its steps.
        monkeypatch.setattr(importlib.import_module("gridwise_py.cli.plot"), "PATIENCE_S", patience_s)
        result = CliRunner().invoke(main, ["plot", str(tmp_path / "run.json"), "-o", str(out)])
        assert result.exit_code == 0, result.output
        assert result.stderr.splitlines() == [*steps, f"wrote {out}"]
        assert out.read_bytes().startswith(b"\x89PNG")
        monkeypatch.setattr("gridwise_py.bench.report.picture.write_picture", lambda spec, path: None)  # once is enough
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    result = CliRunner().invoke(main, ["plot", str(tmp_path / "run.json"), "-o", str(tmp_path / "a.png")])
    assert result.exit_code == 2
    assert "pip install 'gridwise-py[bench]'" in result.output
    assert not (tmp_path / "a.png").exists()
