"""Pictures: they are made of any results, say what they show, and need no more than matplotlib."""

import sys
import xml.etree.ElementTree as ET

import pytest
from _results import DEVICE, document, header, measurement

import gridwise_py as gw
from gridwise_py.bench.measurement import Mode
from gridwise_py.bench.plot import plot_results
from gridwise_py.bench.results import write_results

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
        "scan", "copy f32 hot", "u32 add hot", "f32 add cold", "reduce blocks", "scan blocks", "n, items",
        "rate, GB/s (bytes that had to move)", "time per trial", "CPU wall per trial", "GPU span per trial",
        "whole: first begin to last end",
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
    assert any("u32 add hot, fast" in text for text in texts)
    assert any("u32 add hot, slow" in text for text in texts)
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
    from gridwise_py.bench.lines import result_lines
    from gridwise_py.bench.plot import _style

    many = document([measurement(datatype=f"type {i}") for i in range(30)])
    styles = [_style(line) for line in result_lines([many, many], ["a", "b"])]
    assert len({(s["color"], s["marker"], s["linestyle"], s["markerfacecolor"]) for s in styles}) == 60
    assert len({(s["marker"], s["linestyle"]) for s in styles}) == 16


def test_nothing_to_draw(tmp_path):
    failed = measurement(error="x", kernels=(), whole={}, ticks=())
    for made in (header(), document([failed])):
        with pytest.raises(gw.ArgumentError, match=r"a\.json: no result with a time that was right"):
            plot_results([made], ["a.json"], tmp_path / "a.svg")
    with pytest.raises(gw.ArgumentError, match=r"a\.gif: a picture ends in \.png"):
        plot_results([document([measurement()])], ["a"], tmp_path / "a.gif")


def test_the_command(tmp_path):
    from click.testing import CliRunner

    from gridwise_py.cli import main

    write_results(tmp_path / "run.json", document([measurement()]))
    out = tmp_path / "run.png"
    result = CliRunner().invoke(main, ["plot", str(tmp_path / "run.json"), "-o", str(out)])
    assert result.exit_code == 0, result.output
    assert out.read_bytes().startswith(b"\x89PNG")


def test_without_matplotlib_the_extra_is_named(tmp_path, monkeypatch):
    from click.testing import CliRunner

    from gridwise_py.cli import main

    write_results(tmp_path / "run.json", document([measurement()]))
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    result = CliRunner().invoke(main, ["plot", str(tmp_path / "run.json"), "-o", str(tmp_path / "a.png")])
    assert result.exit_code == 2
    assert "pip install 'matplotlib>=3.8'" in result.output
    assert not (tmp_path / "a.png").exists()
