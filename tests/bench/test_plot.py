"""`gridwise plot`: what a picture says, and the files that come out. Its charts are those of the page (test_report)."""

import importlib
import sys
import xml.etree.ElementTree as ET

import pytest

from helpers.commands import gridwise
from helpers.results import DEVICE, document, header, measurement, series, write

pytestmark = pytest.mark.needs("module:altair", "module:vl_convert")

#: What must be drawn as it is: in the names of files, adapters, primitives and kernels.
ODD = r"a$x^$ \frac${b} <i> &"
#: A median has three digits, however uncertain it is: the same text as in the other outputs.
SPREAD = [10e6, 12e6, 13e6, 15.887e6, 16e6, 21e6, 30e6]


@pytest.fixture
def texts(tmp_path):
    """A function that draws documents, by the names of their files, and returns every text of the picture."""

    def texts(**documents):
        paths = [write(tmp_path / f"{name}.json", made) for name, made in documents.items()]
        done = gridwise("plot", *paths, "-o", tmp_path / "a.svg")
        assert done.exit_code == 0, done.output
        found = [element for element in ET.parse(tmp_path / "a.svg").iter() if element.tag.endswith("}text")]
        return [" ".join(element.itertext()) for element in found]

    return texts


def test_what_a_picture_says(texts):
    sweep = document([
        measurement(primitive, n, mode, datatype=datatype, op=op, labels=labels, scale_ns=n / 1000)
        for primitive, op, labels in (("copy", None, ("copy",)), ("scan", "add", ("reduce blocks", "scan blocks")))
        for n in (1 << 20, 1 << 24)
        for datatype in ("u32", "f32")
        for mode in ("hot", "cold")
    ])  # fmt: skip
    odd = document(
        [measurement(ODD, n=1 << 20, datatype=ODD, labels=(ODD, "b")),
         measurement(labels=("scan",), whole={"gpu_span": series("gpu_span", SPREAD)}, ticks=())],
        device={**DEVICE, "adapter": ODD, "driver": ODD, "adapter_type": "CPU"},
    )  # fmt: skip
    found = texts(fast=sweep, odd=odd)
    summary = odd["results"][1]["whole"]["series"]["gpu_span"]["summary"]
    half = max(summary["median_ns"] - summary["ci_low_ns"], summary["ci_high_ns"] - summary["median_ns"])
    for wanted in (
        "scan", "scan add u32 hot, fast", "scan add f32 cold, fast", "reduce blocks", "scan blocks", "n, items", "GB/s",
        "CPU wall per trial", "GPU span per trial", "2^24", "GPU time per trial", "cold over hot", ODD,
        "scan add u32 hot, odd", f"15.9 ms ±{100 * half / 15.887e6:.0f} %",
    ):  # fmt: skip
        assert wanted in found, wanted
    assert any(text.startswith("fast: invented (Vulkan, 1.0)") for text in found)
    said = f"odd: {ODD} (Vulkan, {ODD}, software on the CPU)"
    assert any(said in " ".join(text.split()) for text in found)


def test_the_clock_of_times_is_named(texts):
    wall = {"cpu_wall": measurement().whole["cpu_wall"]}
    without = measurement(n=1 << 10, kernels=(), whole=wall, ticks=())
    for made, wanted in (
        ([measurement(n=1 << 12)], "GPU span per trial"),
        ([without], "CPU wall per trial"),
        ([without, measurement(n=1 << 12)], "GPU span per trial (CPU wall where there is none)"),
        ([measurement("copy", op=None)], "copy"),  # which has charts of its own where it is alone
        ([measurement("a", work={}), measurement("b", n=1)], "a"),
    ):
        assert wanted in texts(a=document(made))


def test_the_suffix_says_the_kind_and_the_same_results_make_the_same_picture(tmp_path):
    path = write(tmp_path / "a.json", document([measurement()]))
    for name, magic in (("a.pdf", b"%PDF"), ("a.SVG", b"<svg"), ("b.svg", b"<svg")):
        assert gridwise("plot", path, "-o", tmp_path / name).exit_code == 0
        assert (tmp_path / name).read_bytes().startswith(magic)
    assert (tmp_path / "a.SVG").read_bytes() == (tmp_path / "b.svg").read_bytes()


def test_what_cannot_be_drawn(tmp_path, monkeypatch):
    good = document([measurement()])
    nothing = "a.json: no result with a time that was right"
    for made, out, why in (
        (header(), "a.svg", nothing),
        (document([measurement(error="x", kernels=(), whole={}, ticks=())]), "a.svg", nothing),
        (good, "a.gif", "a.gif: a picture ends in .png"),
        (good, "a.html", "`gridwise report FILE -o PAGE.html`"),
        (good, "a.png", "pip install 'gridwise-py[bench]'"),
    ):
        if out == "a.png":
            monkeypatch.setitem(sys.modules, "vl_convert", None)
        done = gridwise("plot", write(tmp_path / "a.json", made), "-o", tmp_path / out)
        assert done.exit_code == 2
        assert why.removeprefix("a.json: ") in " ".join(done.output.split())
        assert not (tmp_path / out).exists()


def test_the_command_says_its_steps_only_where_it_takes_long(tmp_path, monkeypatch):
    path, out = write(tmp_path / "run.json", document([measurement()])), tmp_path / "run.png"
    for patience_s, steps in ((0.0, ["reading run.json", "drawing run.png"]), (600.0, [])):
        monkeypatch.setattr(importlib.import_module("gridwise_py.cli.plot"), "PATIENCE_S", patience_s)
        result = gridwise("plot", path, "-o", out)
        assert result.exit_code == 0, result.output
        assert result.stderr.splitlines() == [*steps, f"wrote {out}"]
        assert out.read_bytes().startswith(b"\x89PNG")
