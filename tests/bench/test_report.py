"""Reports without a browser: what is in the page, and that nothing in a results file becomes part of its markup."""

import base64
import gzip
import hashlib
import importlib
import json
import re
import sys
from dataclasses import replace
from html.parser import HTMLParser
from types import SimpleNamespace

import numpy as np
import pytest
from click.testing import CliRunner

import gridwise_py as gw
from gridwise_py.bench.analysis.compare import Row, compare
from gridwise_py.bench.cases.mode import Mode
from gridwise_py.bench.report.charts import verdict_chart
from gridwise_py.bench.report.comparison import row_cells
from gridwise_py.bench.report.page import _DARK_COLOURS, read_sources, report_html
from gridwise_py.bench.report.samples import thin
from gridwise_py.bench.report.vega import COLOURS, KERNEL_COLOURS, vegalite_version
from gridwise_py.bench.results.model import CalibrationData
from gridwise_py.bench.results.rounds import pooled
from gridwise_py.bench.stats.verdict import VerdictKind
from gridwise_py.cli import main
from gridwise_py.display.quantities import format_time, format_uncertainty
from gridwise_py.storage.json_files import write_json
from helpers.hostile_results import HOSTILE, hostile_document, source, sweep
from helpers.results import DEVICE, document, header, loaded, measurement, series

pytestmark = pytest.mark.needs("module:altair", "module:vl_convert")

CALIBRATION = {
    "device": {key: DEVICE[key] for key in ("adapter", "driver", "backend")},
    "copy": [{"moved_bytes": 1 << 16, "gbytes_per_s": 50.0}, {"moved_bytes": 1 << 28, "gbytes_per_s": 400.0}],
    "fma_gflops": 5000.0,
    "floors_ns": {"empty_pass": 1000.0, "gap_between_passes": 200.0},
}
MEASURED = CalibrationData.from_json(CALIBRATION)


def _with_ceilings(name, made):
    """A source whose file has measured ceilings."""
    plain = source(name, made)
    device = replace(plain.document.device, calibration=MEASURED)
    return replace(plain, document=replace(plain.document, device=device))


class Page(HTMLParser):
    """A page as elements, with the texts of its scripts, tables and headings."""

    def __init__(self, html):
        super().__init__()
        self.elements, self.scripts, self.tables, self.text = [], [], {}, []
        self._in, self._table = [], None
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.elements.append((tag, attrs))
        if tag not in ("meta", "link", "input", "br"):
            self._in.append(tag)
        if tag == "script":
            self.scripts.append((attrs, []))
        if tag == "div" and attrs.get("class") == "scroll":
            self._table = self.tables.setdefault(attrs["aria-label"], [])
        if tag == "tr":
            self._table.append([])
        if tag in ("td", "th"):
            self._table[-1].append(["", attrs])

    def handle_endtag(self, tag):
        while self._in and self._in.pop() != tag:
            pass

    def handle_data(self, data):
        if self._in and self._in[-1] == "script":
            self.scripts[-1][1].append(data)
        elif self._in and self._in[-1] != "style":
            self.text.append(data)
            if "td" in self._in or "th" in self._in:
                self._table[-1][-1][0] += data

    def shared(self):
        return json.loads(next("".join(texts) for attrs, texts in self.scripts if attrs.get("id") == "shared"))

    def column(self, table, heading):
        rows = self.tables[table]
        at = [cell[0].strip() for cell in rows[0]].index(heading)
        return [row[at] for row in rows[1:]]


@pytest.fixture(scope="module")
def two_files():
    """The page of two files of one device."""
    return Page(report_html([_with_ceilings("old", sweep()), _with_ceilings("new", sweep(scale=1.5))]))


@pytest.fixture(scope="module")
def one_file(tmp_path_factory):
    """The page of a file that was read, and the file."""
    path = tmp_path_factory.mktemp("report") / "run.json"
    write_json(path, document([measurement()]))
    sources, _, _ = read_sources([path])
    return Page(report_html(sources)), path


# ---- what is in it


def test_the_sections_are_there_and_the_summary_comes_first(two_files):
    ids = [attrs["id"] for tag, attrs in two_files.elements if "id" in attrs and tag in ("section", "h2")]
    assert [name for name in ids if not name.endswith("-title")][:2] == ["summary", "warnings"]
    for wanted in ("devices", "comparison", "primitive-0", "roofline", "drift", "results", "raw"):
        assert wanted in ids
    assert ids.index("devices") < ids.index("comparison") < ids.index("results")


def test_every_chart_has_its_specification_and_every_kind_is_there(two_files):
    charts = two_files.shared()["charts"]
    places = [attrs["data-chart"] for _, attrs in two_files.elements if "data-chart" in attrs]
    assert sorted(places) == sorted(charts)
    titles = {attrs["aria-label"] for _, attrs in two_files.elements if "data-chart" in attrs}
    assert titles == {
        "Throughput over n", "Time over n", "Kernels against the whole", "CPU wall against GPU span",
        "Cold against hot", "Operations over bytes", "Samples over time", "Ratio of times of the whole",
    }  # fmt: skip


def _rows(spec):
    """All rows of data in a specification."""
    text = json.dumps(spec)
    found = [spec.get("data", {}).get("values", [])]
    found += [layer.get("data", {}).get("values", []) for layer in spec.get("layer", [])]
    assert "url" not in text
    return [row for values in found for row in values] + [
        row for values in spec.get("datasets", {}).values() for row in values
    ]


def test_figures_are_those_of_the_file(two_files):
    """In a chart and in the table, against the samples themselves."""
    made = sweep()
    wanted = {}
    for entry in made["results"]:
        median = float(np.median(entry["whole"]["series"]["gpu_span"]["samples_ns"]))
        moved = entry["work"]["read_bytes"] + entry["work"]["write_bytes"]
        wanted[entry["primitive"], entry["n"], entry["mode"]] = (median, moved / median)
    titles = {attrs["data-chart"]: attrs["aria-label"] for _, attrs in two_files.elements if "data-chart" in attrs}
    headings = {attrs["id"] for tag, attrs in two_files.elements if tag == "h2"}
    charts = two_files.shared()["charts"]
    drawn = {
        (row["items"], row["mode"]): row
        for name, spec in charts.items()
        if titles[name] == "Throughput over n" and name.startswith("primitive-1-")
        for row in _rows(spec)
        if row.get("file") == "old" and row["case"].startswith("scan add u32")
    }
    assert "primitive-1" in headings
    scans = {key[1:]: value for key, value in wanted.items() if key[0] == "scan"}
    assert {key: row["s"] * 1e9 for key, row in drawn.items()} == pytest.approx({k: v[0] for k, v in scans.items()})
    assert {key: row["rate"] for key, row in drawn.items()} == pytest.approx({k: v[1] for k, v in scans.items()})
    assert {row["n"] for row in drawn.values()} == {"2^16", "1,000,003", "2^20"}
    for row in drawn.values():
        bounds = row["rate"] * row["s"] / row["s_high"], row["rate"] * row["s"] / row["s_low"]
        assert (row["rate_low"], row["rate_high"]) == pytest.approx(bounds)
        assert row["rate_low"] < row["rate"] < row["rate_high"]
    cells = zip(*(two_files.column("Results", name) for name in ("file", "case", "n", "part", "GPU time")), strict=True)
    shown = {
        (case[0].split()[0], int(float(n[1]["data-value"])), case[0].split()[-1]): float(time[1]["data-value"])
        for file, case, n, part, time in cells
        if (file[0], part[0]) == ("old", "whole")
    }
    assert shown == pytest.approx({key: value[0] for key, value in wanted.items()})


def test_the_verdicts_are_those_of_compare(two_files):
    found = compare(loaded(sweep()), loaded(sweep(scale=1.5)))
    assert [cell[0] for cell in two_files.column("Verdicts", "verdict")] == [row_cells(row)[-1] for row in found.rows]
    assert [cell[0] for cell in two_files.column("Verdicts", "new / old")] == [row_cells(row)[4] for row in found.rows]
    assert "slower" in {cell[0].split(",")[0] for cell in two_files.column("Verdicts", "verdict")}


def test_files_of_two_devices_are_ranked_and_each_has_its_own_ceilings():
    made = [measurement("copy", op=None, labels=("copy",)), measurement()]
    other = document(made, device={**DEVICE, "adapter": "another"})
    page = Page(report_html([_with_ceilings("a", document(made)), source("b", other)]))
    assert len(page.tables["Roofline"]) > 1
    assert "no measured ceilings" in " ".join(page.text)
    assert [name for name in page.shared()["charts"] if name.startswith("roofline")] == ["roofline-0"]
    assert "adapter: OLD has invented, NEW has another" in " ".join(page.text)
    assert "Verdicts" not in page.tables
    assert {cell[0] for cell in page.column("Ranks", "file")} == {"A", "B"}
    assert "A: invented · B: another" in " ".join(page.text)


# ---- summary, names, figures


def test_the_summary_has_the_fastest_case_of_the_largest_n_and_its_share_of_copy():
    made = document([
        measurement("copy", 1 << 20, op=None, labels=("copy",), scale_ns=1e6),
        measurement("scan", 1 << 20, datatype="u32", labels=("scan",), scale_ns=4e6),
        measurement("scan", 1 << 20, datatype="f32", labels=("scan",), scale_ns=2e6),
        # Faster, and of a smaller n; and larger, and wrong.
        measurement("scan", 1 << 10, datatype="f32", labels=("scan",), scale_ns=1e3),
        measurement("scan", 1 << 24, datatype="f32", labels=("scan",), scale_ns=1e3),
    ])  # fmt: skip
    made["results"][-1] |= {"correct": False, "mismatch": "item 0"}
    page = Page(report_html([source("a", made)]))
    copy, scan = (float(np.median(made["results"][i]["whole"]["series"]["gpu_span"]["samples_ns"])) for i in (0, 2))
    assert [cell[0] for cell in page.column("Summary", "case")] == ["copy u32 hot", "scan add f32 hot"]
    assert [cell[0] for cell in page.column("Summary", "n")] == ["2^20", "2^20"]
    rates = [float(cell[1]["data-value"]) for cell in page.column("Summary", "GB/s")]
    assert rates == pytest.approx([8 * 2**20 / copy, 8 * 2**20 / scan])
    assert float(page.column("Summary", "of copy")[1][1]["data-value"]) == pytest.approx(copy / scan)
    assert "1 failed or wrong" in " ".join(page.text)


def test_the_summary_counts_the_verdicts(two_files):
    counts = compare(loaded(sweep()), loaded(sweep(scale=1.5))).counts()
    assert counts["slower"] > 0
    text = " ".join(" ".join(two_files.text).split())
    summary = text[text.index("Summary Warnings") : text.index("Devices and runs")]
    for kind, count in counts.items():
        assert f"{count} {kind}" in summary
    assert "slower by more than the gate of 5 %" in summary


def test_a_median_is_one_text_with_three_digits_and_its_uncertainty_everywhere():
    """However uncertain it is."""
    spread = [10e6, 12e6, 13e6, 15.887e6, 16e6, 21e6, 30e6]
    whole = {name: series(name, spread) for name in ("gpu_span", "cpu_wall")}
    made = document([measurement(labels=("scan",), whole=whole, ticks=())])
    summary = made["results"][0]["whole"]["series"]["gpu_span"]["summary"]
    half = max(summary["median_ns"] - summary["ci_low_ns"], summary["ci_high_ns"] - summary["median_ns"])
    wanted = f"{format_time(15.887e6)} {format_uncertainty(half / 15.887e6)}"
    assert wanted.startswith("15.9 ms ±")
    page = Page(report_html([source("a", made)]))
    for table, heading in (("Summary", "time"), ("Results", "GPU time"), ("Results", "CPU wall")):
        assert [cell[0] for cell in page.column(table, heading)] == [wanted]
    shared = page.shared()
    assert [one["time"] for case in shared["samples"] for one in case["series"]] == [wanted]
    drawn = [row for spec in shared["charts"].values() for row in _rows(spec)]
    assert {row["time"] for row in drawn if "time" in row} == {wanted}
    assert {row["text"] for row in drawn if "text_at" in row} == {wanted}
    assert {row["cpu"] for row in drawn if "cpu" in row} == {wanted}


def test_a_case_has_one_name_everywhere(two_files):
    shared = two_files.shared()
    cases = {cell[0] for cell in two_files.column("Results", "case")}
    assert "scan add u32 hot" in cases
    assert cases >= {cell[0] for cell in two_files.column("Summary", "case")}
    charts = {row["case"] for name, spec in shared["charts"].items() if name.startswith("primitive")
              for row in _rows(spec) if "mode" in row and "case" in row}  # fmt: skip
    assert charts == cases
    assert {cell[0] for cell in two_files.column("Roofline", "case")} - {"case"} == cases
    menu = [case["name"] for case in shared["samples"]]
    assert menu[0] == "copy u32 hot n=2^16"
    assert {name.rsplit(" n=", 1)[0] for name in menu} == cases
    # In the order asked for: not by the alphabet, in which reduce is before scan and cold before hot.
    assert [cell[0] for cell in two_files.column("Summary", "case")][::2] == [
        "copy u32 hot", "reduce add u32 hot", "scan add u32 hot",
    ]  # fmt: skip


# ---- axes


def _domains(spec):
    """Every domain of a scale in a specification that is a range of numbers."""
    if isinstance(spec, list):
        for one in spec:
            yield from _domains(one)
    elif isinstance(spec, dict):
        scale = spec.get("scale") or {}
        if isinstance(scale.get("domain"), list) and not isinstance(scale["domain"][0], str):
            yield scale["domain"]
        for key, value in spec.items():
            if key != "datasets":
                yield from _domains(value)


def test_an_axis_of_ratios_is_logarithmic_and_one_wide_interval_does_not_set_it():
    kinds = VerdictKind
    made = [(1.1, 1.05, 1.15, kinds.SLOWER), (0.5, 0.0, 54923.0, kinds.AMBIGUOUS), (1.0, 0.99, 1.01, kinds.SAME)]
    rows = [
        Row(f"case {i}", "whole", "gpu_span", SimpleNamespace(
            ratio=ratio, low=low, high=high, kind=kind, reason="", old_ns=100.0, new_ns=100.0 * ratio))
        for i, (ratio, low, high, kind) in enumerate(made)
    ]  # fmt: skip
    spec, left_out = verdict_chart(SimpleNamespace(rows=rows))
    assert left_out == 0
    domains = list(_domains(spec))
    assert domains
    for low, high in domains:
        assert 0.1 < low < 0.5
        assert 1.15 < high < 10
    assert '"type": "log"' in json.dumps(spec)
    drawn = {(row["case"], row.get("beyond")): row for row in _rows(spec) if "case" in row}
    # The interval that runs out is cut, has an arrow at each end, and the tooltip has it whole.
    assert {key for key in drawn if key[1]} == {("case 1", "below"), ("case 1", "above")}
    low, high = domains[0]
    assert (drawn["case 1", None]["low_drawn"], drawn["case 1", None]["high_drawn"]) == (low, high)
    assert drawn["case 1", "above"]["interval"] == "0.000 to 54923"
    assert (drawn["case 0", None]["low_drawn"], drawn["case 0", None]["high_drawn"]) == (1.05, 1.15)


def test_the_interval_of_one_case_does_not_set_an_axis_of_times_or_rates():
    wild = {"gpu_span": series("gpu_span", [1e3, 1e3, 2e3, 2e6, 2e9, 3e9, 3e9])}
    made = document([
        measurement(n=1 << 16, labels=("scan",), scale_ns=1e6),
        measurement(n=1 << 17, labels=("scan",), whole=wild, ticks=()),
    ])  # fmt: skip
    charts = Page(report_html([source("a", made)])).shared()["charts"]
    for name, value in (("primitive-0-0", "rate"), ("primitive-0-1", "s")):
        rows = _rows(charts[name])
        values = [row[value] for row in rows if value in row]
        tops = [high for low, high in _domains(charts[name]) if high < 10 * max(values)]
        assert max(values) < max(tops) < 1.5 * max(values)
        assert {row["beyond"] for row in rows if "beyond" in row} >= {"above"}
        drawn = [row for row in rows if f"{value}_high_drawn" in row]
        assert all(row[f"{value}_high_drawn"] <= max(tops) for row in drawn)


def test_the_copy_kernels_of_two_files_are_told_apart(two_files):
    charts = two_files.shared()["charts"]
    titles = {attrs["data-chart"]: attrs["aria-label"] for _, attrs in two_files.elements if "data-chart" in attrs}
    name = next(name for name in titles if titles[name] == "Throughput over n")
    grey = next(layer for layer in charts[name]["layer"] if layer["mark"].get("type") == "line")
    assert grey["encoding"]["strokeDash"]["field"] == "file"
    dashes = grey["encoding"]["strokeDash"]["scale"]
    assert dashes["domain"] == ["old", "new"]
    assert dashes["range"][0] != dashes["range"][1]
    kernels = [spec for spec in charts.values() if '"kernel' in json.dumps(spec)]
    assert kernels
    assert all(KERNEL_COLOURS[0] in json.dumps(spec) for spec in kernels)
    assert not set(KERNEL_COLOURS) & {*COLOURS, *_DARK_COLOURS}, "no case has a kernel's colour"


# ---- warnings


def test_warnings_what_is_wrong_comes_first_and_alike_ones_are_one():
    made = document(
        [
            measurement(n=n, clock_moved=True,
                        warnings=(f"times were not stationary after {n} s of warm-up", "the clock moved: x"))
            for n in (1 << 16, 1 << 18)
        ]
        + [measurement("reduce", error="it broke", kernels=(), whole={}, ticks=())],
        device={**DEVICE, "adapter_type": "CPU"},
        complete=False,
        planned=9,
    )  # fmt: skip
    page = Page(report_html([source("a", made)]))
    notes = [attrs["class"] for tag, attrs in page.elements if tag == "div" and "note" in attrs.get("class", "")]
    assert notes == ["note error", "note important", "note warning", "note warning", "note warning"]
    # Folded, but for errors.
    assert [attrs for tag, attrs in page.elements if attrs.get("class") == "fold"] == [{"class": "fold", "open": None}]
    text = " ".join(" ".join(page.text).split())
    assert text.index("it broke") < text.index("software on the CPU: these figures") < text.index("not stationary")
    assert "(2 such warnings, each with its own figures.)" in text
    assert "The speed of this machine moved all through 2 of 3 cases." in text
    assert "The run was interrupted: 3 of 9 cases" in text


# ---- raw files, sizes


def test_the_raw_file_is_in_it_byte_by_byte(one_file):
    page, path = one_file
    content = path.read_bytes()
    (packed,) = ["".join(texts) for attrs, texts in page.scripts if "data-raw" in attrs]
    assert gzip.decompress(base64.b64decode(packed)) == content
    text = " ".join(page.text)
    assert hashlib.sha256(content).hexdigest() in text
    assert "Nothing. Every case, every sample and every file is here." in text
    assert "None: every case ran" in text, "no warnings"


@pytest.mark.slow
def test_raw_files_that_do_not_fit_are_left_out_and_named():
    sources = [
        source("small", sweep()),
        source("large", sweep(scale=1.1), padding=np.random.default_rng(0).bytes(60_000)),
    ]
    page = Page(report_html(sources, raw_limit_mib=0.05))
    assert [attrs["data-raw"] for attrs, _ in page.scripts if "data-raw" in attrs] == ["0"]
    assert "The raw file large.json: compressed it takes 0.1 MiB" in " ".join(page.text)
    # Each of the two would fit, but not both.
    alike = [source(name, made := sweep()) for name in "ab"]
    packed = len(base64.b64encode(gzip.compress(json.dumps(made).encode(), mtime=0)))
    page = Page(report_html(alike, raw_limit_mib=1.5 * packed / 2**20))
    assert [attrs["data-raw"] for attrs, _ in page.scripts if "data-raw" in attrs] == ["0"]
    none = Page(report_html(sources, raw_limit_mib=0))
    assert not [attrs for attrs, _ in none.scripts if "data-raw" in attrs]
    with pytest.raises(gw.ArgumentError, match="at least 0"):
        report_html(sources, raw_limit_mib=-1.0)


def test_thinning_keeps_what_lies_far_off():
    rng = np.random.default_rng(3)
    for count, most in ((0, 10), (10, 10), (11, 10), (5_000, 60), (100_000, 1_000)):
        values = rng.normal(100.0, 1.0, count).tolist()
        kept = thin(values, most)
        assert len(kept) <= max(most, 2) or count <= most
        assert kept == sorted(set(kept))
        if count:
            assert {0, count - 1, int(np.argmin(values)), int(np.argmax(values))} <= set(kept)
    assert thin([1.0, 2.0, 3.0], 3) == [0, 1, 2]


def test_many_samples_are_thinned_and_it_says_how_many():
    made = document([measurement(count=2_500, ticks=())])
    page = Page(report_html([source("a", made)]))
    (case,) = page.shared()["samples"]
    (series,) = case["series"]
    samples = made["results"][0]["whole"]["series"]["gpu_span"]["samples_ns"]
    assert series["count"] == len(samples) > len(series["ns"])
    assert series["ns"] == pytest.approx([samples[i] for i in series["at"]], rel=1e-5)
    assert series["time_ns"] == np.median(samples)
    assert f"{len(samples) - len(series['ns']):,} of {len(samples):,} samples" in " ".join(page.text)


def test_the_picture_of_drift_is_relative_to_the_time_in_the_table():
    made = document([measurement(count=6, scale_ns=level) for level in (1e5, 1e5, 4e5)])
    for process, result in enumerate(made["results"]):
        result |= {"process": process, "position": 0}
    page = Page(report_html([source("a", made)]))
    (case,) = page.shared()["samples"]
    (time,) = (result.time_ns for result in pooled(loaded(made)).results)
    assert case["series"][0]["time_ns"] == pytest.approx(time)
    assert case["series"][0]["time"].startswith(format_time(time))


@pytest.mark.slow
def test_a_large_file_makes_no_large_page():
    many = [measurement(n=1000 + i, datatype=f"t{i % 40}", labels=tuple("abcde"), ticks=()) for i in range(350)]
    html = report_html([source("a", document(many))], raw_limit_mib=0)
    page = Page(html)
    assert len(page.tables["Results"]) - 1 == 2_000
    assert "The table of results: 100 of 2,100 rows." in " ".join(page.text)
    assert len(html) < 8e6


def test_rounds_follow_each_other():
    first, second = document([measurement()]), document([measurement(scale_ns=1200.0)])
    second["results"][0]["round"] = 1
    both = {**first, "results": [*second["results"], *first["results"]]}
    (case,) = Page(report_html([source("a", both)])).shared()["samples"]
    (series,) = case["series"]
    ordered = [
        value for made in (first, second) for value in made["results"][0]["whole"]["series"]["gpu_span"]["samples_ns"]
    ]
    assert series["ns"] == pytest.approx(ordered)
    assert series["rounds"] == [7]


# ---- little in it


@pytest.mark.parametrize(
    "made",
    [
        header(),
        document([measurement(error="x", kernels=(), whole={}, ticks=())]),
        document([measurement("copy", op=None)]),
        document([
            measurement("a", work={}),
            measurement("b", n=1),
            measurement("c", kernels=(), whole={"cpu_wall": measurement().whole["cpu_wall"]}, ticks=()),
            measurement("d", canary_ns=()),
        ]),
    ],
    ids=["no results", "failed", "copy alone", "no bytes, one item, no GPU times, no canary"],
)  # fmt: skip
def test_results_with_little_in_them(made):
    page = Page(report_html([_with_ceilings("a", made)]))
    assert page.tables["Results"]
    places = [attrs["data-chart"] for _, attrs in page.elements if "data-chart" in attrs]
    assert sorted(places) == sorted(page.shared()["charts"])


# ---- nothing in a file becomes markup


def _page_with(label):
    """The page of two files with such labels."""
    made = hostile_document(label, few=True)
    return report_html([source("label-of-a-file 1", made), source("label-of-a-file 2", made)])


@pytest.fixture(scope="module")
def wild_html():
    return _page_with(lambda i, text: f"{text} label-of-a-file")


def _expressions(node):
    """Every text in a Vega specification that is run."""
    if isinstance(node, list):
        for one in node:
            yield from _expressions(one)
    elif isinstance(node, dict):
        for key, value in node.items():
            if isinstance(value, str) and key in ("expr", "update", "signal", "test", "init", "events", "filter"):
                yield value
            elif key != "values":
                yield from _expressions(value)


def test_no_label_becomes_part_of_an_expression(wild_html):
    """Of what Vega-Lite makes of the charts: it puts some lists of labels, such as orders, into expressions."""
    import vl_convert

    charts = Page(wild_html).shared()["charts"]
    assert {name.split("-")[0] for name in charts} == {"primitive", "verdicts", "drift"}
    for name, spec in charts.items():
        expressions = list(_expressions(vl_convert.vegalite_to_vega(spec, vl_version=vegalite_version())))
        assert expressions
        assert [text for text in expressions if "label-of-a-file" in text] == [], name


def _skeleton(page):
    """Elements and names of attributes; values only of those that are ours alone."""
    ours = ("class", "id", "type", "name", "scope", "role", "for", "tabindex")
    return [(tag, sorted(attrs), [attrs.get(key) for key in ours]) for tag, attrs in page.elements]


@pytest.mark.slow
def test_labels_cannot_change_the_structure_of_the_page(wild_html):
    tame = Page(_page_with(lambda i, text: f"label {chr(97 + i)}"))
    wild = Page(wild_html)
    assert _skeleton(wild) == _skeleton(tame)
    assert len(wild.scripts) == len(tame.scripts)


def test_labels_come_through_as_they_are_in_data_and_text(wild_html):
    page = Page(wild_html)
    data = json.dumps(page.shared(), ensure_ascii=False)
    for text in HOSTILE:
        shown = re.sub("[\x00\x1b\ud800]", "�", text)
        assert json.dumps(shown, ensure_ascii=False)[1:-1] in data
        assert any(shown in cell[0] for row in page.tables["Results"] for cell in row), shown


def test_no_script_data_can_end_its_element(wild_html):
    for body in re.findall(r"<script[^>]*>(.*?)</script>", wild_html, re.DOTALL):
        assert "<!--" not in body
        assert "<script" not in body.lower()
    data = re.search(r'<script type="application/json" id="shared">(.*?)</script>', wild_html, re.DOTALL)[1]
    assert not set(data) & set("<>&\u2028\u2029")


def test_the_policy_lets_our_two_scripts_run_and_nothing_out(one_file):
    page, _ = one_file
    (policy,) = [attrs["content"] for tag, attrs in page.elements if tag == "meta" and "http-equiv" in attrs]
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    run = ["".join(texts) for attrs, texts in page.scripts if not attrs]
    digests = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in run]
    assert rules["default-src"] == "'none'"
    assert rules["script-src"].split() == [f"'sha256-{digest}'" for digest in digests]
    assert len(run) == 2
    assert "connect-src" not in rules
    assert set(rules["img-src"].split()) == {"data:", "blob:"}
    keys = ("src", "href", "action", "srcset")
    referring = [attrs[key] for _, attrs in page.elements for key in keys if key in attrs]
    assert referring
    assert [value for value in referring if not value.startswith(("#", "data:"))] == []


# ---- the command


def _report(*arguments):
    return CliRunner().invoke(main, ["report", *map(str, arguments)])


def test_the_command(tmp_path, monkeypatch):
    monkeypatch.setattr(importlib.import_module("gridwise_py.cli.report"), "PATIENCE_S", 0.0)
    (tmp_path / "sub").mkdir()
    write_json(tmp_path / "run.json", document([measurement()]))
    write_json(tmp_path / "sub" / "run.json", document([measurement(scale_ns=1500)]))
    out = tmp_path / "report.html"
    result = _report(tmp_path / "run.json", tmp_path / "sub" / "run.json", "-o", out)
    assert result.exit_code == 0, result.output
    said = result.stderr.splitlines()
    assert said[:2] == ["reading run.json, run.json", "drawing report.html"]
    assert said[2].startswith(f"wrote {out}")
    page = Page(out.read_text(encoding="utf-8"))
    # Files of one name are told apart by their folders.
    assert {cell[0] for cell in page.column("Results", "file")} == {f"{tmp_path.name}/run", "sub/run"}


def test_what_the_command_refuses(tmp_path, monkeypatch):
    run = tmp_path / "run.json"
    write_json(run, sweep())
    cut = tmp_path / "cut.json"
    cut.write_bytes(run.read_bytes()[:500])
    out = tmp_path / "report.html"
    kept = run.read_bytes()
    for arguments, said in (
        ([cut, "-o", out], "cut.json: line "),
        ([tmp_path / "none.json", "-o", out], "none.json: cannot be read"),
        ([run, "-o", tmp_path / "no" / "report.html"], "make it first"),
        ([run, "-o", tmp_path / "report.pdf"], "ends in .html"),
        ([run, "-o", run], "is one of the files to read"),
        ([run, "-o", out, "--raw-limit", "-1"], "raw-limit"),
    ):
        result = _report(*arguments)
        assert result.exit_code == 2, result.output
        assert said in result.output
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    result = _report(run, "-o", out)
    assert result.exit_code == 2
    assert "pip install 'gridwise-py[bench]'" in result.output
    assert run.read_bytes() == kept
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cut.json", "run.json"]


def test_cold_over_hot_is_the_ratio_of_the_medians(two_files):
    made = sweep()
    medians = {
        (e["primitive"], e["n"], e["mode"]): np.median(e["whole"]["series"]["gpu_span"]["samples_ns"])
        for e in made["results"]
    }
    titles = {attrs["data-chart"]: attrs["aria-label"] for _, attrs in two_files.elements if "data-chart" in attrs}
    name = next(name for name in titles if titles[name] == "Cold against hot" and name.startswith("primitive-1-"))
    rows = {row["items"]: row for row in _rows(two_files.shared()["charts"][name]) if row.get("file") == "old"}
    modes = (Mode.COLD.value, Mode.HOT.value)
    wanted = {n: medians["scan", n, modes[0]] / medians["scan", n, modes[1]] for n in rows}
    assert len(rows) == 3
    assert {n: row["ratio"] for n, row in rows.items()} == pytest.approx(wanted)
    assert all(row["low"] <= row["ratio"] <= row["high"] for row in rows.values())
