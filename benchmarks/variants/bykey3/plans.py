# name, log2 n, rows (lengths of runs), variants; the most valuable first
def t(shape, stage, *on, touch, **more): return r(shape, stage, *on, touch=touch, **more)
SU = ("sub", "unroll")
PLANS = [
    ("reduce", 24, ("1", "8", "2"), [
        e("reduce"), r("256x8", 16), r("512x4", 16), r("256x4", 8), r("128x8", 6),
        t("256x8", 16, touch=264), t("256x8", 16, touch=264, step=32), t("256x8", 16, touch=264, step=128),
        t("256x8", 16, "early", touch=264), t("256x8", 16, "late", touch=264), t("256x8", 16, touch=132), t("256x8", 16, touch=400), t("256x8", 16, "early", touch=400, step=32),
        t("512x4", 16, touch=264), t("512x4", 16, touch=264, step=32), t("512x4", 16, "early", touch=264), t("512x4", 16, touch=400),
        t("256x4", 8, touch=400), t("256x4", 8, touch=400, step=32), t("256x4", 8, touch=800), t("128x8", 6, touch=528),
        r("256x8", 16, "unroll"), r("256x8", 16, *SU, quads=2), r("256x8", 16, *SU, quads=1), r("256x8", 16, *SU), r("256x8", 16, "vec2", "unroll"), r("256x8", 16, "turns", "unroll"),
        r("512x4", 16, "unroll"), r("512x4", 16, *SU, quads=1), r("512x4", 16, *SU, quads=2), r("512x4", 16, *SU), r("512x4", 16, "vec2", "unroll"), r("512x4", 16, "vec2", *SU, quads=1), r("512x4", 16, "turns", "unroll"),
        r("256x4", 8, "unroll"), r("256x4", 8, *SU, quads=1), r("256x4", 8, "vec2", *SU, quads=1), r("256x4", 16, *SU, quads=2), r("128x8", 8, *SU, quads=2), r("128x4", 4, *SU, quads=1),
        t("256x8", 16, *SU, quads=2, touch=264), t("512x4", 16, *SU, quads=1, touch=264), t("256x4", 8, *SU, quads=1, touch=400), t("256x8", 16, "unroll", touch=264), t("512x4", 16, "unroll", touch=264),
        r("256x8", 12, "again"), r("512x4", 16, "again"), t("256x8", 12, "again", touch=400), t("256x8", 12, "again", *SU, quads=2, touch=400), t("256x4", 6, "again", touch=528),
        t("256x8", 10, "again", "again2", "unroll", touch=528), t("256x4", 6, "again", "again2", *SU, quads=1, touch=528),
        t("256x8", 16, "linear", touch=264), t("256x8", 16, "no_look", touch=264), r("512x4", 16, "linear"), r("512x4", 16, "no_look"), t("512x4", 16, "no_look", touch=264), r("512x4", 16, *SU, "no_look", quads=1),
        r("256x4", 8, "persist", grid=396), r("256x8", 16, "persist", grid=264),
    ]),
    ("unique", 24, ("1", "8"), [e("unique"), e("unique", touch=264), e("unique", touch=528), e("unique", touch=528, step=32), e("unique", "256x8", "early", touch=528), e("unique", words=1024), e("unique", "512x4", words=4096), e("unique", ahead=32)]),
    ("lengths", 24, ("1", "8"), [e("lengths"), e("lengths", touch=264), e("lengths", touch=528), e("lengths", "256x4", words=1024), e("lengths", "512x4", words=4096)]),
    ("scan", 24, ("1",), [e("scan"), e("scan", touch=264), e("scan", touch=660), e("scan", touch=660, step=32), e("scan", "", "early", touch=660)]),
    ("few", 20, ("1", "2", "8", "1000"), [e("reduce"), r("512x4", 32), r("512x4", 40), r("512x4", 32, "unroll"), r("512x4", 32, "vec2", "unroll"), r("512x4", 32, *SU, quads=2), r("512x4", 40, *SU, quads=1), r("512x4", 16, *SU, quads=1), r("512x2", 16, "unroll"), r("256x4", 16, "unroll"), r("512x4", 32, "no_look"), r("512x4", 32, "linear")]),
    ("select", 24, ("1",), [e("select"), e("select", touch=264), e("select", touch=528), e("select", touch=528, step=32)]),
    ("unique u64", 24, ("8",), [e("unique u64"), e("unique u64", touch=264), e("unique u64", touch=528), e("unique u64", "128x8"), e("unique u64", "256x4"), e("unique u64", "512x4"), e("unique u64", "256x4", touch=528)]),
]
