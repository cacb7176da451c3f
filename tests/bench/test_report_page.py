"""Reports in a browser: charts are drawn, nothing is asked of the network, no label runs, phones can read it."""

import hashlib
import json

import pytest

from helpers.chromium import browser, contrast, find_chromium, luminance
from helpers.hostile_results import hostile_document, report, sweep

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
    pages = {"two": {"old": sweep(), "new": sweep(scale=1.5)}}
    wild = hostile_document(lambda i, text: text, few=True)
    pages["wild"] = {f"{name}<script>window.pwned=9": {**wild, "planned": k + 99} for k, name in enumerate("ab")}
    for name, documents in pages.items():
        (folder / f"{name}.html").write_text(report(folder, documents), encoding="utf-8")
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


def test_times_in_the_page_are_written_as_everywhere_else(two):
    """The page writes the time of a sample itself: as `format_time` does, at the same limits."""
    text = two.evaluate("document.scripts[document.scripts.length - 1].textContent")
    begin = text.index("  function time(ns)")
    functions = text[begin : text.index("  function percent(share)")]
    times = {0.5: "0.500 ns", 99.96: "100 ns", 999: "999 ns", 999.6: "1.00 µs", 15887: "15.9 µs", 2.5e6: "2.50 ms"}
    two.evaluate(f"window.texts = (() => {{ {functions} return {list(times)}.map(time); }})()")
    assert two.evaluate("window.texts") == list(times.values())


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
    assert luminance(seen[False][0]) > 0.9
    assert luminance(seen[True][0]) < 0.05
    for paper, ink, soft, card, label, title, slower in seen.values():
        assert min(contrast(paper, ink), contrast(card, label)) > 7
        assert min(contrast(paper, soft), contrast(card, title), contrast(paper, slower)) > 4.5


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


def test_the_raw_file_is_saved_as_it_was(two, files):
    two.evaluate(
        "HTMLAnchorElement.prototype.click = function () { window.savedName = this.download; };"
        "URL.createObjectURL = (blob) => { blob.arrayBuffer().then((b) => crypto.subtle.digest('SHA-256', b))"
        ".then((digest) => { window.saved = [...new Uint8Array(digest)]; }); return '#'; };"
        "document.querySelectorAll('[data-save]')[1].click()"
    )
    two.wait("window.saved")
    assert bytes(two.evaluate("window.saved")) == hashlib.sha256((files / "new.json").read_bytes()).digest()
    assert two.evaluate("window.savedName") == "new.json"
    assert _own_file_only(two)
