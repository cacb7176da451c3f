"""Reports without a browser: what is in the page, and that nothing in a results file becomes part of its markup."""

import base64
import gzip
import hashlib
import importlib
import json
import re
import sys
from html.parser import HTMLParser

import numpy as np
import pytest

from helpers.commands import gridwise
from helpers.hostile_results import HOSTILE, hostile_document, report, sweep
from helpers.results import DEVICE, document, header, measurement, series, write

pytestmark = pytest.mark.needs("module:altair", "module:vl_convert")

CALIBRATION = {
    "device": {key: DEVICE[key] for key in ("adapter", "driver", "backend")},
    "copy": [{"moved_bytes": 1 << 16, "gbytes_per_s": 50.0}, {"moved_bytes": 1 << 28, "gbytes_per_s": 400.0}],
    "fma_gflops": 5000.0,
    "peaks_gops": {"i32": 5.0, "x": 7.0},
    "floors_ns": {"empty_pass": 1000.0, "gap_between_passes": 200.0},
}


def _measured(made):
    """A document whose file has measured ceilings."""
    return {**made, "device": {**made["device"], "calibration": CALIBRATION}}


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


@pytest.fixture
def page(tmp_path):
    """A function that returns the page of documents, by the names of their files."""
    return lambda *words, **documents: Page(report(tmp_path, documents, *words))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The folder of the files that several tests look at."""
    return tmp_path_factory.mktemp("report")


@pytest.fixture(scope="module")
def two_files(folder):
    """The page of two files of one device."""
    return Page(report(folder, {"old": _measured(sweep()), "new": _measured(sweep(scale=1.5))}))


@pytest.fixture(scope="module")
def one_file(folder):
    """The page of a file, and the file."""
    return Page(report(folder, {"run": document([measurement()])})), folder / "run.json"


# ---- what is in it


def test_the_sections_are_there_and_the_summary_comes_first(two_files):
    ids = [attrs["id"] for tag, attrs in two_files.elements if "id" in attrs and tag in ("section", "h2")]
    assert [name for name in ids if not name.endswith("-title")][:2] == ["summary", "warnings"]
    for wanted in ("devices", "comparison", "primitive-0", "roofline", "drift", "results", "raw"):
        assert wanted in ids
    assert ids.index("devices") < ids.index("comparison") < ids.index("results")
    assert "FMA 5000 GFLOP/s, i32 multiply-adds 5.00 · 10⁹/s, x 7.00 · 10⁹/s" in " ".join(two_files.text)


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


def test_the_verdicts_are_those_of_compare(two_files, folder):
    done = gridwise("compare", folder / "old.json", folder / "new.json", "--format", "json")
    rows = json.loads(done.stdout)["rows"]
    verdicts = [cell[0].split(",")[0] for cell in two_files.column("Verdicts", "verdict")]
    assert [verdict.split(":")[0] for verdict in verdicts] == [row["verdict"]["kind"] for row in rows]
    ratios = [cell[0] for cell in two_files.column("Verdicts", "new / old")]
    assert ratios == [f"{row['verdict']['ratio']:.3f}" for row in rows]
    text = " ".join(" ".join(two_files.text).split())
    summary = text[text.index("Summary Warnings") : text.index("Devices and runs")]
    for kind in set(verdicts):
        assert f"{verdicts.count(kind)} {kind}" in summary
    assert "slower by more than the gate of 5 %" in summary


def test_files_of_two_devices_are_ranked_and_each_has_its_own_ceilings(page):
    made = [measurement("copy", op=None, labels=("copy",)), measurement()]
    other = document(made, device={**DEVICE, "adapter": "another"})
    found = page(a=_measured(document(made)), b=other)
    assert len(found.tables["Roofline"]) > 1
    assert "no measured ceilings" in " ".join(found.text)
    assert [name for name in found.shared()["charts"] if name.startswith("roofline")] == ["roofline-0"]
    assert "adapter: OLD has invented, NEW has another" in " ".join(found.text)
    assert "Verdicts" not in found.tables
    assert {cell[0] for cell in found.column("Ranks", "file")} == {"A", "B"}
    assert "A: invented · B: another" in " ".join(found.text)


# ---- summary, names, figures


def test_the_summary_has_the_fastest_case_of_the_largest_n_and_its_share_of_copy(page):
    made = document([
        measurement("copy", 1 << 20, op=None, labels=("copy",), scale_ns=1e6),
        measurement("scan", 1 << 20, datatype="u32", labels=("scan",), scale_ns=4e6),
        measurement("scan", 1 << 20, datatype="f32", labels=("scan",), scale_ns=2e6),
        # Faster, and of a smaller n; and larger, and wrong.
        measurement("scan", 1 << 10, datatype="f32", labels=("scan",), scale_ns=1e3),
        measurement("scan", 1 << 24, datatype="f32", labels=("scan",), scale_ns=1e3),
    ])  # fmt: skip
    made["results"][-1] |= {"correct": False, "mismatch": "item 0"}
    found = page(a=made)
    copy, scan = (float(np.median(made["results"][i]["whole"]["series"]["gpu_span"]["samples_ns"])) for i in (0, 2))
    assert [cell[0] for cell in found.column("Summary", "case")] == ["copy u32 hot", "scan add f32 hot"]
    assert [cell[0] for cell in found.column("Summary", "n")] == ["2^20", "2^20"]
    rates = [float(cell[1]["data-value"]) for cell in found.column("Summary", "GB/s")]
    assert rates == pytest.approx([8 * 2**20 / copy, 8 * 2**20 / scan])
    assert float(found.column("Summary", "of copy")[1][1]["data-value"]) == pytest.approx(copy / scan)
    assert "1 failed or wrong" in " ".join(found.text)


def test_a_median_is_one_text_with_three_digits_and_its_uncertainty_everywhere(page):
    """However uncertain it is."""
    spread = [10e6, 12e6, 13e6, 15.887e6, 16e6, 21e6, 30e6]
    whole = {name: series(name, spread) for name in ("gpu_span", "cpu_wall")}
    made = document([measurement(labels=("scan",), whole=whole, ticks=())])
    summary = made["results"][0]["whole"]["series"]["gpu_span"]["summary"]
    half = max(summary["median_ns"] - summary["ci_low_ns"], summary["ci_high_ns"] - summary["median_ns"])
    wanted = f"15.9 ms ±{100 * half / 15.887e6:.0f} %"
    found = page(a=made)
    for table, heading in (("Summary", "time"), ("Results", "GPU time"), ("Results", "CPU wall")):
        assert [cell[0] for cell in found.column(table, heading)] == [wanted]
    shared = found.shared()
    assert [one["time"] for case in shared["samples"] for one in case["series"]] == [wanted]
    drawn = [row for spec in shared["charts"].values() for row in _rows(spec)]
    assert {row["time"] for row in drawn if "time" in row} == {wanted}
    assert {row["text"] for row in drawn if "text_at" in row} == {wanted}
    assert {row["cpu"] for row in drawn if "cpu" in row} == {wanted}


# ---- warnings


def test_warnings_what_is_wrong_comes_first_and_alike_ones_are_one(page):
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
    found = page(a=made)
    notes = [attrs["class"] for tag, attrs in found.elements if tag == "div" and "note" in attrs.get("class", "")]
    assert notes == ["note error", "note important", "note warning", "note warning", "note warning"]
    # Folded, but for errors.
    assert [attrs for tag, attrs in found.elements if attrs.get("class") == "fold"] == [{"class": "fold", "open": None}]
    text = " ".join(" ".join(found.text).split())
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


def test_raw_files_that_do_not_fit_are_left_out_and_named(page):
    large = {**sweep(scale=1.1), "padding": np.random.default_rng(0).bytes(30_000).hex()}

    def raw(found):
        return [attrs["data-raw"] for attrs, _ in found.scripts if "data-raw" in attrs]

    found = page("--raw-limit", 0.04, large=sweep(), larger=large)
    assert raw(found) == ["0"]
    assert "The raw file larger.json: compressed it takes 0.1 MiB" in " ".join(found.text)
    # Each of the two would fit, but not both.
    packed = len(base64.b64encode(gzip.compress(json.dumps(sweep()).encode(), mtime=0)))
    assert raw(page("--raw-limit", 1.5 * packed / 2**20, a=sweep(), b=sweep(scale=1.1))) == ["0"]
    assert raw(page("--raw-limit", 0, a=sweep())) == []


def test_many_samples_are_thinned_and_it_says_how_many(page):
    made = document([measurement(count=12_000, ticks=())])
    found = page(a=made)
    (case,) = found.shared()["samples"]
    (series,) = case["series"]
    samples = made["results"][0]["whole"]["series"]["gpu_span"]["samples_ns"]
    assert series["count"] == len(samples) > len(series["ns"])
    assert series["ns"] == pytest.approx([samples[i] for i in series["at"]], rel=1e-5)
    assert {0, len(samples) - 1, int(np.argmin(samples)), int(np.argmax(samples))} <= set(series["at"])
    assert series["time_ns"] == np.median(samples)
    assert f"{len(samples) - len(series['ns']):,} of {len(samples):,} samples" in " ".join(found.text)


def test_the_picture_of_drift_is_relative_to_the_time_in_the_table(page):
    made = document([measurement(count=6, scale_ns=level) for level in (1e5, 1e5, 4e5)])
    for process, result in enumerate(made["results"]):
        result |= {"process": process, "position": 0}
    found = page(a=made)
    (case,) = found.shared()["samples"]
    ((time, *_),) = found.column("Summary", "time")
    assert case["series"][0]["time"] == time


def test_rounds_follow_each_other(page):
    first, second = document([measurement()]), document([measurement(scale_ns=1200.0)])
    second["results"][0]["round"] = 1
    both = {**first, "results": [*second["results"], *first["results"]]}
    (case,) = page(a=both).shared()["samples"]
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
def test_results_with_little_in_them(page, made):
    found = page(a=_measured(made))
    assert found.tables["Results"]
    places = [attrs["data-chart"] for _, attrs in found.elements if "data-chart" in attrs]
    assert sorted(places) == sorted(found.shared()["charts"])


# ---- nothing in a file becomes markup


def _page_with(folder, label):
    """The page of two files with such labels."""
    made = hostile_document(label, few=True)
    return report(folder, {"label-of-a-file 1": made, "label-of-a-file 2": {**made, "planned": 99}})


@pytest.fixture(scope="module")
def wild_html(folder):
    return _page_with(folder, lambda i, text: f"{text} label-of-a-file")


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
        expressions = list(_expressions(vl_convert.vegalite_to_vega(spec)))
        assert expressions
        assert [text for text in expressions if "label-of-a-file" in text] == [], name


def _skeleton(page):
    """Elements and names of attributes; values only of those that are ours alone."""
    ours = ("class", "id", "type", "name", "scope", "role", "for", "tabindex")
    return [(tag, sorted(attrs), [attrs.get(key) for key in ours]) for tag, attrs in page.elements]


@pytest.mark.slow
def test_labels_cannot_change_the_structure_of_the_page(wild_html, folder):
    tame = Page(_page_with(folder, lambda i, text: f"label {chr(97 + i)}"))
    wild = Page(wild_html)
    assert _skeleton(wild) == _skeleton(tame)
    assert len(wild.scripts) == len(tame.scripts)


def test_labels_come_through_as_they_are_in_data_and_text(wild_html):
    page = Page(wild_html)
    data = json.dumps(page.shared(), ensure_ascii=False)
    for text in HOSTILE:
        shown = re.sub("[\x00\x1b]", "�", text.replace("\ud800", ""))
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


def test_the_command(tmp_path, monkeypatch):
    monkeypatch.setattr(importlib.import_module("gridwise_py.cli.report"), "PATIENCE_S", 0.0)
    (tmp_path / "sub").mkdir()
    write(tmp_path / "run.json", document([measurement()]))
    write(tmp_path / "sub" / "run.json", document([measurement(scale_ns=1500)]))
    out = tmp_path / "report.html"
    result = gridwise("report", tmp_path / "run.json", tmp_path / "sub" / "run.json", "-o", out)
    assert result.exit_code == 0, result.output
    said = result.stderr.splitlines()
    assert said[:2] == ["reading run.json, run.json", "drawing report.html"]
    assert said[2].startswith(f"wrote {out}")
    page = Page(out.read_text(encoding="utf-8"))
    # Files of one name are told apart by their folders.
    assert {cell[0] for cell in page.column("Results", "file")} == {f"{tmp_path.name}/run", "sub/run"}


def test_what_the_command_refuses(tmp_path, monkeypatch):
    run = tmp_path / "run.json"
    write(run, sweep())
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
        result = gridwise("report", *arguments)
        assert result.exit_code == 2, result.output
        assert said in result.output
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    result = gridwise("report", run, "-o", out)
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
    modes = ("cold", "hot")
    wanted = {n: medians["scan", n, modes[0]] / medians["scan", n, modes[1]] for n in rows}
    assert len(rows) == 3
    assert {n: row["ratio"] for n, row in rows.items()} == pytest.approx(wanted)
    assert all(row["low"] <= row["ratio"] <= row["high"] for row in rows.values())
