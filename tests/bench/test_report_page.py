"""Reports in a browser: charts are drawn, nothing is asked of the network, no label runs, phones can read it."""

import hashlib
import json

import pytest

from gridwise_py.bench.report.page import _DARK_COLOURS, report_html
from gridwise_py.display.quantities import format_time
from helpers.chromium import browser, find_chromium
from helpers.hostile_results import hostile_document, source, sweep

pytestmark = [pytest.mark.browser, pytest.mark.needs("module:altair", "module:vl_convert")]

DRAWN = "document.readyState == 'complete' && document.documentElement.dataset.drawn == 'yes'"
REPEATED = "document.documentElement.dataset.drawn = ''"


@pytest.fixture(scope="module")
def new_page(require):
    """A function that opens a page; the browser is the module's."""
    require("chromium")
    path = find_chromium()
    with browser(path) as new:
        yield new


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A tame report of two files, and one with hostile labels."""
    folder = tmp_path_factory.mktemp("reports")
    sources = [source("old", sweep()), source("new", sweep(scale=1.5))]
    (folder / "two.html").write_text(report_html(sources), encoding="utf-8")
    wild = [source(name + "</script><script>window.pwned=9</script>", hostile_document(lambda i, text: text, few=True))
            for name in ("old", "new")]  # fmt: skip
    (folder / "wild.html").write_text(report_html(wild), encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def two(new_page, files):
    """The tame report, opened."""
    page = new_page()
    page.look()
    page.open(files / "two.html", DRAWN)
    return page


@pytest.fixture(scope="module")
def wild(new_page, files):
    """The hostile one, opened."""
    page = new_page()
    page.look()
    page.open(files / "wild.html", DRAWN)
    return page


# Sets a select as a reader would.
CHOOSE = """
window.choose = (selector, value) => {
  const select = document.querySelector(selector);
  select.value = value;
  select.dispatchEvent(new Event("change"));
}
"""


def _own_file_only(page):
    return [url for url in page.requests if not url.startswith(("file:", "data:", "blob:"))] == []


@pytest.mark.parametrize("name", ["two", "wild"])
def test_every_chart_is_drawn_without_a_complaint_or_a_request(name, request):
    page = request.getfixturevalue(name)
    drawn = page.evaluate(
        "[...document.querySelectorAll('[data-chart]')].map(e => [e.dataset.chart, e.querySelectorAll("
        "'svg .mark-symbol path, svg .mark-line path, svg .mark-rect path').length])"
    )
    assert len(drawn) == page.evaluate(
        "Object.keys(JSON.parse(document.getElementById('shared').textContent).charts).length"
    )
    assert [chart for chart, marks in drawn if not marks] == []
    assert page.evaluate("document.querySelectorAll('.failed').length") == 0
    assert page.complaints == []
    assert _own_file_only(page)
    assert len([url for url in page.requests if url.startswith("file:")]) == 1


def test_no_label_runs(wild):
    """Not when it is shown, not under the pointer, not when all is sorted and chosen."""
    wild.look()
    wild.evaluate(CHOOSE)
    wild.evaluate("document.querySelectorAll('[data-sort]').forEach(b => b.click())")
    wild.evaluate(
        "document.querySelectorAll('select').forEach(s => [...s.options, s.options[0]].forEach(o => {"
        " s.value = o.value; s.dispatchEvent(new Event('change')); }))"
    )
    point = wild.evaluate(
        "(() => { const mark = document.querySelector('[data-chart] .mark-symbol.role-mark path');"
        "mark.scrollIntoView({block: 'center'}); const r = mark.getBoundingClientRect();"
        "return [r.x + r.width / 2, r.y + r.height / 2]; })()"
    )
    for step in (-1, 0):  # a pointer that moves
        wild.call("Input.dispatchMouseEvent", type="mouseMoved", x=point[0] + step, y=point[1])
    wild.wait("document.getElementById('vg-tooltip-element')?.classList.contains('visible')")
    tip = wild.evaluate("document.getElementById('vg-tooltip-element').innerHTML")
    assert "case" in tip
    elements = set(wild.evaluate(
        "[...document.getElementById('vg-tooltip-element').querySelectorAll('*')].map(e => e.localName)"))  # fmt: skip
    assert elements <= {"table", "tbody", "tr", "td", "h2"}
    assert wild.evaluate("window.pwned ?? null") is None
    assert wild.evaluate("document.querySelectorAll('img, iframe, object, [onload], [onerror]').length") == 0
    assert wild.evaluate("document.scripts.length") == wild.evaluate(
        "document.querySelectorAll('body > script').length"
    )
    assert wild.complaints == []


def test_the_policy_would_stop_what_got_in(new_page, files):
    page = new_page()
    page.open(files / "wild.html", DRAWN)
    page.evaluate(
        "(() => { const s = document.createElement('script'); s.textContent = 'window.pwned = 1';"
        "document.body.append(s); const d = document.createElement('div');"
        'd.innerHTML = \'<img src=x onerror="window.pwned = 2"><img src="http://127.0.0.1:9/x.png">\';'
        "document.body.append(d); })()"
    )
    assert page.evaluate("fetch('http://127.0.0.1:9/').then(() => 'sent', () => 'refused')") == "refused"
    assert page.evaluate("window.pwned ?? null") is None
    assert any("Content Security Policy" in text for text in page.complaints)
    page.close()


@pytest.mark.parametrize("name", ["two", "wild"])
def test_a_phone_shows_it_without_scrolling_sideways(new_page, files, name):
    page = new_page()
    page.look(width=360, height=740)
    page.open(files / f"{name}.html", DRAWN)
    assert page.evaluate("document.documentElement.scrollWidth") == 360
    outside = page.evaluate(
        "[...document.querySelectorAll('main *')].filter(e => !e.closest('.scroll, svg, .vega-embed')"
        " && e.getBoundingClientRect().right > 361).map(e => e.outerHTML.slice(0, 80))"
    )
    assert outside == []
    widths = page.evaluate("[...document.querySelectorAll('svg.marks')].map(e => e.getBoundingClientRect().width)")
    assert widths
    assert max(widths) <= 340
    assert page.complaints == []
    page.close()


def test_on_a_phone_the_rows_of_a_chart_can_be_told_apart(new_page, files):
    """Their names end in the mode and n, which must not be cut off."""
    page = new_page()
    page.look(width=500, height=740)
    page.open(files / "two.html", DRAWN)
    labels = page.evaluate(
        "[...document.querySelectorAll('[data-chart^=verdicts] .mark-text text')].map(e => e.textContent)"
    )
    assert any(" n=" in label for label in labels)
    assert [label for label in labels if "…" in label] == []
    page.close()


def test_on_a_phone_long_names_of_files_are_not_cut(new_page, tmp_path):
    """Each legend has the whole width, and the names of bars stand above them."""
    names = [f"{which}-of-a-long-name-that-somebody-gave" for which in ("old", "new")]
    (tmp_path / "long.html").write_text(report_html([source(name, sweep()) for name in names]), encoding="utf-8")
    page = new_page()
    page.look(width=500, height=740)
    page.open(tmp_path / "long.html", DRAWN)
    texts = page.evaluate(
        "[...document.querySelectorAll('[data-chart^=primitive] text')].map(e => [e.textContent,"
        " e.getBoundingClientRect().right - e.closest('svg').getBoundingClientRect().right])"
    )
    for wanted in (*names, *(f"scan add u32 hot, {name}" for name in names)):
        assert wanted in [text for text, _ in texts]
    assert [text for text, right in texts if right > 1 or "…" in text] == []
    page.close()


def test_on_a_phone_the_name_and_n_of_a_row_stay_in_sight(new_page, files):
    page = new_page()
    page.look(width=500, height=740)
    page.open(files / "two.html", DRAWN)
    table = "document.querySelector('[aria-label=Results]')"
    assert page.evaluate(f"{table}.scrollWidth > {table}.clientWidth + 50")
    # A shadow at the edge says that there is more.
    assert "gradient" in page.evaluate(f"getComputedStyle({table}).backgroundImage")
    edges = (
        f"[...{table}.querySelector('tbody tr').cells].slice(0, 3).map(c => Math.round(c.getBoundingClientRect().left"
        f" - {table}.getBoundingClientRect().left))"
    )
    before = page.evaluate(edges)
    page.evaluate(f"{table}.scrollLeft = 150")
    after = page.evaluate(edges)
    assert [abs(a - b) <= 1 for a, b in zip(before[:2], after[:2], strict=True)] == [True, True]
    assert after[2] == before[2] - 150
    # Neither covers the other, and what scrolls goes below them.
    heads = page.evaluate(f"[...{table}.querySelectorAll('th')].slice(0, 2).map(c => c.textContent.trim())")
    assert heads == ["case", "n"]
    assert page.evaluate(f"getComputedStyle({table}.querySelector('tbody td')).backgroundColor") != "rgba(0, 0, 0, 0)"
    page.close()


def test_tables_do_not_touch_their_frame(new_page, files):
    page = new_page()
    page.look(width=1400, height=900)
    page.open(files / "two.html", DRAWN)
    gaps = page.evaluate(
        "[...document.querySelectorAll('.scroll')].map(e => { const c = e.querySelector('th:last-child button');"
        "return e.getBoundingClientRect().left + e.clientWidth - c.getBoundingClientRect().right; })"
    )
    assert len(gaps) >= 3
    assert min(gaps) >= 16
    page.close()


def test_times_in_the_page_are_written_as_everywhere_else(two):
    """The page writes the time of a sample itself: as `format_time` does, at the same limits."""
    text = two.evaluate("document.scripts[document.scripts.length - 1].textContent")
    begin = text.index("  function time(ns)")
    functions = text[begin : text.index("  function percent(share)")]
    times = [0.5, 3.25, 42, 99.96, 100, 999, 999.6, 1000, 9996, 15887, 999_400, 999_600, 2.5e6, 1.2345e9, 9.9999e11]
    two.evaluate(f"window.texts = (() => {{ {functions} return {times}.map(time); }})()")
    assert two.evaluate("window.texts") == [format_time(time) for time in times]


def _luminance(colour):
    """Relative luminance as WCAG 2 defines it, of ``rgb(…)``."""
    parts = [int(part) / 255 for part in colour[colour.index("(") + 1 : -1].split(",")[:3]]
    linear = [p / 12.92 if p <= 0.03928 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def _contrast(a, b):
    high, low = sorted((_luminance(a), _luminance(b)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_light_and_dark_can_be_read_and_charts_follow(two):
    seen = {}
    for dark in (False, True):
        two.evaluate(REPEATED)
        two.look(dark=dark)
        if dark:
            two.wait(DRAWN)
        wanted = [
            ("body", "backgroundColor"), ("body", "color"), (".about", "color"), ("figure", "backgroundColor"),
            (".chart .mark-text text", "fill"), (".chart .role-axis-title text", "fill"), ("td.slower", "color"),
        ]  # fmt: skip
        seen[dark] = two.evaluate(
            f"{json.dumps(wanted)}.map(([q, p]) => getComputedStyle(document.querySelector(q))[p])"
        )
    two.evaluate(REPEATED)
    two.look()
    two.wait(DRAWN)
    assert _luminance(seen[False][0]) > 0.9
    assert _luminance(seen[True][0]) < 0.05
    for paper, ink, soft, card, label, title, slower in seen.values():
        assert min(_contrast(paper, ink), _contrast(card, label)) > 7
        assert min(_contrast(paper, soft), _contrast(card, title), _contrast(paper, slower)) > 4.5


def test_colours_are_told_from_a_dark_page():
    dark = [f"rgb({int(c[1:3], 16)},{int(c[3:5], 16)},{int(c[5:], 16)})" for c in _DARK_COLOURS]
    assert min(_contrast(colour, "rgb(29,34,40)") for colour in dark) > 3  # WCAG 2, for graphics
    assert len(set(dark)) == len(dark)


def _column(page, table, heading):
    return page.evaluate(
        f"(() => {{ const t = document.querySelector('[aria-label={json.dumps(table)}] table');"
        f"const i = [...t.rows[0].cells].findIndex(c => c.textContent.trim() == {json.dumps(heading)});"
        "return [...t.tBodies[0].rows].filter(r => !r.hidden).map(r => r.cells[i])"
        ".map(c => [c.textContent, c.dataset.value ?? null]); })()"
    )


def _sort(page, table, heading):
    page.evaluate(
        f"[...document.querySelectorAll('[aria-label={json.dumps(table)}] th')].find(c => c.textContent.trim() == "
        f"{json.dumps(heading)}).querySelector('button').click()"
    )


def test_tables_sort_by_value_and_filter(two):
    before = _column(two, "Results", "CPU wall")
    _sort(two, "Results", "CPU wall")
    up = _column(two, "Results", "CPU wall")
    _sort(two, "Results", "CPU wall")
    down = _column(two, "Results", "CPU wall")
    known = sorted(float(value) for _, value in before if value is not None)
    missing = len(before) - len(known)
    assert missing > 0
    assert len(set(known)) > 5
    # By nanoseconds, not by text; what is not known stays last.
    assert [value and float(value) for _, value in up] == known + [None] * missing
    assert [value and float(value) for _, value in down] == known[::-1] + [None] * missing
    _sort(two, "Results", "case")
    names = [text for text, _ in _column(two, "Results", "case")]
    assert names == sorted(names)
    two.evaluate(
        "(() => { const i = document.querySelector('#results [data-filter]'); i.value = 'reduce COLD';"
        "i.dispatchEvent(new Event('input')); })()"
    )
    left = {text for text, _ in _column(two, "Results", "case")}
    # The scan has a kernel "reduce blocks".
    assert left == {"reduce add u32 cold", "scan add u32 cold"}


def test_a_choice_of_file_and_mode_is_all_that_is_drawn(two):
    count = "document.querySelectorAll('[data-chart=\"primitive-1-1\"] .mark-symbol.role-mark path').length"
    two.evaluate(CHOOSE)
    assert two.evaluate(count) == 12  # two files, two modes, three sizes
    two.evaluate("choose('#controls [name=file]', 'new')")
    two.wait(f"{count} == 6")
    two.evaluate("choose('#controls [name=mode]', 'cold')")
    two.wait(f"{count} == 3")
    for name in ("file", "mode"):
        two.evaluate(f"choose('#controls [name={name}]', '/')")
    two.wait(f"{count} == 12")


def test_drift_shows_the_samples_of_the_case_that_is_chosen(two):
    text = "document.getElementById('drift-text').textContent"
    before = two.evaluate(text)
    assert "old: GPU span, " in before
    assert "40 samples" in before
    two.evaluate(CHOOSE)
    two.evaluate("choose('#case', '3')")
    two.wait(f"{text} != {json.dumps(before)}")
    two.wait("document.querySelectorAll('[data-chart=drift] .mark-symbol.role-mark path').length == 80")


def test_the_raw_file_is_saved_as_it_was(two):
    two.evaluate(
        "HTMLAnchorElement.prototype.click = function () { window.savedName = this.download; };"
        "URL.createObjectURL = (blob) => { blob.arrayBuffer().then((b) => crypto.subtle.digest('SHA-256', b))"
        ".then((digest) => { window.saved = [...new Uint8Array(digest)]; }); return '#'; };"
        "document.querySelectorAll('[data-save]')[1].click()"
    )
    two.wait("window.saved")
    content = source("new", sweep(scale=1.5)).content
    assert bytes(two.evaluate("window.saved")) == hashlib.sha256(content).digest()
    assert two.evaluate("window.savedName") == "new.json"
    assert _own_file_only(two)
