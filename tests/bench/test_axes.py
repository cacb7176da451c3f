"""Axes of sweeps: what they mean, and where a wrong one is wrong."""

import pytest

from gridwise_py import ArgumentError
from gridwise_py.bench.sweep.axes import Axis, collect_axes, parse_axis, parse_count, points


def test_what_an_axis_means():
    for text, name, values in [
        ("n=1000", "n", (1000,)),
        ("n=1_000,2^10,2**3,1e6,1.5e3", "n", (1000, 1024, 8, 1_000_000, 1500)),
        ("n=0,1", "n", (0, 1)),
        ("n[pow2]=[16:28:2]", "n", tuple(2**i for i in range(16, 29, 2))),
        ("n[pow2]=[16:21:2]", "n", (2**16, 2**18, 2**20)),
        ("n[pow2]=3,5", "n", (8, 32)),
        ("n[pow10]=[0:2]", "n", (1, 10, 100)),
        ("n[pow2]=64", "n", (2**64,)),
        ("n=[5:5]", "n", (5,)),
        ("n=[10:30:10]", "n", (10, 20, 30)),
        ("n=[7,9]", "n", (7, 9)),
        (" n[pow2] = [ 1 : 3 ] ", "n", (2, 4, 8)),
        ("datatype=u32,f32", "datatype", ("u32", "f32")),
        ("datatype=[u32, f32]", "datatype", ("u32", "f32")),
        ("op=add,min", "op", ("add", "min")),
        ("mode=cold,hot,batch,latency", "mode", ("cold", "hot", "batch", "latency")),
    ]:
        assert parse_axis(text) == Axis(name, values)


def test_where_a_wrong_axis_is_wrong():
    for text, column, problem in [
        ("", 1, "no axis ''"),
        ("m=1", 1, "no axis 'm'; there are n, datatype, op, distribution, run, segment, share, bins, k, along, mode"),
        ("n", 2, "'=' is missing"),
        ("n[pow2]", 8, "'=' is missing"),
        ("n[pow3]=1", 3, "no modifier 'pow3'"),
        ("op[pow2]=add", 4, "no modifier 'pow2'"),
        ("n=", 3, "'' is not a count"),
        ("n=1,,2", 5, "'' is not a count"),
        ("n=10,x", 6, "'x' is not a count"),
        ("n=10, x", 7, "'x' is not a count"),
        ("n=-1", 3, "'-1' is not a count"),
        ("n=1.5", 3, "'1.5' is not a count"),
        ("n=2^65", 3, "not a count"),
        ("n[pow2]=65", 9, "too large"),
        ("n[pow10]=20", 10, "too large"),
        ("n[pow2]=[16:x:2]", 13, "'x' is not a count"),
        ("n[pow2]=[16:28:0]", 16, "at least 1"),
        ("n=[20:10]", 7, "before its begin 20"),
        ("n=[1:2:3:4]", 10, "at most three parts"),
        ("n=1:2", 3, "in brackets"),
        ("n=[1:2", 3, "no partner"),
        ("n=1:2]", 6, "no partner"),
        ("n=[0:1e9]", 4, "more than 10,000 values"),
        ("n=5,5", 3, "twice"),
        ("datatype=u32,f63", 14, "'f63' is not one of u32, i32, f32"),
        ("bins=256,0", 6, "0 is no value of 'bins': it must be at least 1"),
        ("run=0", 5, "at least 1"),
        ("segment=[0:3]", 9, "at least 1"),
        ("mode=warm", 6, "'warm' is not one of cold, hot, batch, latency"),
    ]:
        with pytest.raises(ArgumentError) as caught:
            parse_axis(text)
        headline, shown, caret = str(caught.value).split("\n")
        assert problem in headline
        assert f"column {column}:" in headline
        assert shown == f"  {text}"
        assert caret.index("^") == column + 1


def test_counts():
    for word, count in [("1000", 1000), ("2^0", 1), ("10^9", 10**9), ("2^64", 2**64), ("2^99", None), ("", None)]:
        assert parse_count(word) == count


def test_short_options_defaults_and_repeats():
    axes = collect_axes(["n=1,2"], {"op": "min", "mode": None}, {"n": "5", "op": "add", "datatype": "u32"})
    assert {name: axis.values for name, axis in axes.items()} == {"n": (1, 2), "op": ("min",), "datatype": ("u32",)}
    for texts, short in ((["n=1", "n=2"], {}), (["n=1"], {"n": "2"})):
        with pytest.raises(ArgumentError, match="'n' is given twice"):
            collect_axes(texts, short, {})


def test_points_are_every_combination_the_last_axis_fastest():
    axes = collect_axes(["n=1,2", "op=add,min"], {}, {})
    assert list(points(axes)) == [
        {"n": 1, "op": "add"}, {"n": 1, "op": "min"}, {"n": 2, "op": "add"}, {"n": 2, "op": "min"},
    ]  # fmt: skip
