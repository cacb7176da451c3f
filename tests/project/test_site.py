"""What the build of the site makes and checks: links, tables, the import graph, the command line. Needs no Sphinx."""

import importlib.util
import json
import re
import sys
import zlib
from pathlib import Path

import click
import pytest

import gridwise_py as gw
from gridwise_py import cli
from helpers.paths import ROOT
from helpers.results import document, measurement

pytestmark = [pytest.mark.needs("the repository"), pytest.mark.slow]

SCREEN = "start/made/first-screen.md"
NEWCOMERS = ROOT / "tests" / "project" / "newcomers_questions.json"


def _module(folder, name):
    spec = importlib.util.spec_from_file_location(name, ROOT / folder / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look for it
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def peers():
    return _module("docs/_ext", "benchmark_pages")


# ---- questions


def test_each_question_has_a_page():
    questions = json.loads(NEWCOMERS.read_text(encoding="utf-8"))
    assert len({question for question, _ in questions}) == len(questions) >= 100
    for question, page in questions:
        assert question
        assert (ROOT / "docs" / f"{page}.md").exists(), page


# ---- pages of the folder above


@pytest.fixture(scope="module")
def pages():
    with pytest.MonkeyPatch.context() as patch:
        for folder in ("scripts", "benchmarks", "docs/_ext"):
            patch.syspath_prepend(ROOT / folder)
        yield _module("docs/_ext", "made_pages")


def test_links_of_a_page_from_above_lead_to_the_same_files(pages):
    text = "[a](docs/start/install.md#linux) [b](CHANGELOG.md) [c](scripts/setup.sh) [d](https://x.y/z) [e](#tests)"
    assert pages.relocated(text, "contribute/contributing.md") == (
        "[a](../start/install.md#linux) [b](changelog.md) [c](../../scripts/setup.sh) [d](https://x.y/z) [e](#tests)"
    )
    for path, text in pages.made().items():
        for link in re.findall(r"\]\(([^)\s]+)\)", text) if path in {*pages.ABOVE.values(), SCREEN} else ():
            if not re.match(r"[a-z]+:|#", link):
                # The start page includes its beginning, so that its links are those of docs/.
                target = ROOT / "docs" / ("" if path == SCREEN else Path(path).parent) / link.partition("#")[0]
                assert target.exists() or target.name in {"contributing.md", "changelog.md", "security.md"}, link


# ---- the first screen


@pytest.fixture
def screen(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "scripts")
    return _module("scripts", "make_first_screen")


def test_readme_says_what_the_results_files_and_the_version_say(screen):
    text = screen.README.read_text(encoding="utf-8")
    assert screen.filled(text) == text, "run: python scripts/make_first_screen.py"
    with pytest.raises(ValueError, match="made: tested on"):
        screen.filled(text.replace("<!-- made: tested on -->", ""))
    assert len(text.splitlines()) <= 70
    assert len(text.split()) <= 500


def test_the_citation_has_the_version_and_ruff_is_the_same_everywhere(screen):
    text = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert screen.cited(text) == text, "run: python scripts/make_first_screen.py"
    assert f"version: {gw.__version__.partition('.dev')[0]}\n" in text
    pinned = re.search(r"^ruff==(\S+)$", (ROOT / "constraints.txt").read_text(encoding="utf-8"), re.MULTILINE)[1]
    assert f"rev: v{pinned}\n" in (ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8")


def test_machines_are_tested_once_a_file_of_theirs_is_there(screen, tmp_path):
    host, versions = {"system": "Darwin"}, {"wgpu": "0.32.0"}
    suite = {
        "time": "2026-11-26T00:00:00", "versions": versions, "host": host, "outcomes": {"passed": 1234, "failed": 1},
        "adapters": ["Apple M4, 10 cores, Metal, 26.1"] * 2,
    }  # fmt: skip
    device = {"adapter": "Apple M4, 10 cores", "backend": "Metal", "driver": "26.1"}

    def bench(day):
        return {"context": {"time": f"2026-11-{day}T00:00:00", "versions": versions, "host": host}, "device": device}

    contents = {
        "suite.json": suite, "a.json": bench(22), "b.json": bench(20), "random_plans.json": bench(19),
        "no_machine.json": {"context": {"time": "2026-11-30"}}, "numbers.json": [1],
    }  # fmt: skip
    untested = [line.split(" | ")[0].removeprefix("| ") for line in screen.machine_table(tmp_path)[2:]]
    assert untested == ["AMD and Intel GPUs", "macOS", "Windows"]
    for name, content in contents.items():
        (tmp_path / name).write_text(json.dumps(content), encoding="utf-8")
    first, *rest = screen.machine_table(tmp_path)[2:]
    assert first == (
        "| Apple M4, 10 cores | 26.1 | wgpu-py 0.32.0, Metal | suite: 1,234 passed, 1 failed, 0 skipped, 2026-11-26; "
        "random plans: 2026-11-19 | 2026-11-20 to 2026-11-22 |"
    )
    assert [line.split(" | ")[0] for line in rest] == ["| AMD and Intel GPUs", "| Windows"]
    (line,) = screen.readme_line(tmp_path)
    assert line.startswith("Tested on Apple M4, 10 cores. Untested: AMD and Intel GPUs, Windows. [")
    card = document([measurement("scan", 16), measurement("sort", 16)])
    card["device"] |= {"adapter": "AMD Radeon", "driver": "9"}
    card["context"] |= {"suite": "card"}
    card["results"][1]["correct"] = False
    (tmp_path / "card.json").write_text(json.dumps(card), encoding="utf-8")
    (row,) = (line for line in screen.machine_table(tmp_path) if "Radeon" in line)
    assert row == "| AMD Radeon | 9 | wgpu-py 0.32.0, Vulkan | card: 1 of 2 cases right, 2026-01-02 | 2026-01-02 |"
    assert screen.readme_line(tmp_path)[0].startswith("Tested on AMD Radeon, Apple M4, 10 cores. Untested: Windows.")


def test_figures_of_tables_and_kernels_are_said_with_their_machine(screen, pages, tmp_path):
    """Of files of benchmarks/when_a_gpu_pays.py and readme_output.py."""
    assert "when_a_gpu_pays.py" in pages.rows_that_pay(tmp_path / "no.json")[0]
    host, resident = pages.when_a_gpu_pays.HOST, pages.when_a_gpu_pays.RESIDENT

    def row(n, ours, on_gpu, datatype="f64"):
        sides = {"pandas": 9e6, "polars": 4e6, host: ours, resident: on_gpu}
        return {"operation": "join", "datatype": datatype, "n": n, "sides": sides, "wrong": []}

    made = {
        "context": {
            "time": "2026-11-29T00:00:00", "host": {"cpu_count": 16},
            "versions": {"gridwise_py": "0.2.0", "wgpu": "0.32"},
        },
        "device": {"adapter": "NVIDIA H200", "driver": "1.2", "backend": "Vulkan"},
        "cpu": "A Xeon", "peers": {"pandas": "3", "polars": None}, "printed": "old  1 ms\nnew  2 ms\n",
        "results": [
            row(1 << 12, 5e6, 4.5e6), row(1 << 14, 5e6, 2e6), row(1 << 16, 2e6, None), row(1 << 10, 1e6, 1e6, "f32"),
        ],
    }  # fmt: skip
    about = (
        "NVIDIA H200 (driver 1.2, Vulkan), A Xeon (16 cores), wgpu-py 0.32, gridwise_py 0.2.0, pandas 3; "
        "29 November 2026."
    )
    (tmp_path / "pays.json").write_text(json.dumps(made))
    _, _, line, *rest = pages.rows_that_pay(tmp_path / "pays.json")
    assert line == "| join | 2^16 | – | 2.00× | – | polars |"
    assert about in rest
    made["results"][2]["sides"][resident] = 1e6
    (tmp_path / "pays.json").write_text(json.dumps(made))
    assert pages.rows_that_pay(tmp_path / "pays.json")[2] == "| join | 2^16 | 2^14 | 2.00× | 4.00× | polars |"
    assert screen.output(made)[0] == "On NVIDIA H200 (1.2, 29 November 2026):"
    assert screen.output(made)[2:4] == ["old  1 ms", "new  2 ms"]


def test_the_start_page_begins_as_readme_does(pages):
    text = pages.first_screen((ROOT / "README.md").read_text(encoding="utf-8"))
    assert "](assets/first-light.svg){.only-light}\n" in text
    assert "](assets/first-dark.svg){.only-dark}\n" in text
    assert "<picture>" not in text
    assert "(start/install.md)" in text
    assert "(contribute/changelog.md)" in text
    assert all(part in text for part in ("pip install './gridwise_py[bench]'", "<!-- run -->", "(start/tested-on.md)"))


# ---- the command line


def test_the_page_has_every_command_and_option(pages):
    text = pages.command_line()
    for name, command in cli.main.commands.items():
        section = text.partition(f"\n## gridwise {name}\n")[2].partition("\n## ")[0]
        assert section, name
        for option in command.params:
            if isinstance(option, click.Option) and not option.hidden:
                assert re.search(rf"^ +.*{re.escape(option.opts[-1])}\b", section, re.MULTILINE), (name, option.opts)
    assert "PRIMITIVE is one of vector_add" in text  # filled in
    assert "  --datatype [u32|i32|f32|u64|i64|f64|f16],…\n" in text  # as the terminal shows it


# ---- comparisons with peers


def _written(folder, name, day, gpu="An H100", **more):
    (folder / "gpu").mkdir(exist_ok=True)
    about = {
        "context": {"time": f"2026-11-{day}T00:00:00", "versions": {"gridwise_py": "0.2.0", "wgpu": "0.32.0"}},
        "device": {"adapter": gpu, "driver": "1.2", "backend": "Vulkan"},
    }
    (folder / "gpu" / name).write_text(json.dumps(about | more))


def test_of_two_files_with_a_case_the_newest_counts(peers, tmp_path, monkeypatch):
    def results(ours, cases=("select 1/2",)):
        sides = {"gridwise_py": {"single": ours, "back_to_back": None}, "cub": {"single": 900.0, "back_to_back": 5.0}}
        return [{"case": case, "n": 1 << 24, "datatype": "u32", "group": "select", "correct": case != "wrong",
                 "sides": sides}
                for case in cases]  # fmt: skip

    _written(tmp_path, "stream_peer.json", 21, results=results(300.0, ("select 1/2", "argmax", "wrong")))
    _written(tmp_path, "more_peer.json", 22, results=results(1000.0))
    _written(tmp_path, "other_peer.json", 24, other="not read")
    older = {
        "subject": peers.STREAM, "case": "merge", "n": 1 << 24, "peer": "CUB", "version": "", "how": "single",
        "ours_ns": 1.0, "theirs_ns": 2.0, "source": "gpu/merge_peer.json", "day": "2026-11-20", "own": "0.1.0",
        "engine": "0.32.0", "gpu": "An H100", "driver": "1.2",
    }  # fmt: skip
    (tmp_path / "gpu/peers_of_older_programs.json").write_text(json.dumps({"comparisons": [older]}))
    monkeypatch.setattr(peers, "RESULTS", tmp_path)
    found = {row.case: row for row in peers.comparisons()}
    assert set(found) == {"select 1/2", "argmax", "merge"}  # neither the wrong one, nor that without our time
    row = found["select 1/2"]
    assert (row.ours_ns, row.ratio, row.how, row.source) == (1000.0, 0.9, "single", "gpu/more_peer.json")
    assert peers.table([row])[0] == "| case | H100, µs | CUB, µs | times as fast |"
    assert peers.table([row])[2:] == ["| select 1/2 | 1.00 | 0.900 | **0.90** |"]
    assert peers.measured([row]) == (
        "H100: driver 1.2, Vulkan, wgpu-py 0.32.0, gridwise_py 0.2.0; CUB (version not stored); "
        "[2026-11-22](../../benchmarks/results/gpu/more_peer.json)."
    )
    losses = peers.losses(list(found.values()))
    assert "| H100 | select 1/2 | 2^24 | single | CUB | 1.00 | 0.900 | **0.90** |" in losses
    assert not any("argmax" in line or "merge" in line for line in losses)


def test_files_of_the_peers_harness_are_read(peers, tmp_path, monkeypatch):
    """Ours is the first side; of CUB's algorithms the fastest counts, and no wrong row. GPUs stand side by side."""
    sides = {
        "offsets": {"single": 40.0, "back_to_back": 20.0},
        "length": {"single": 1.0, "back_to_back": 1.0},
        "cub a": {"single": 100.0, "back_to_back": None, "program": [{"cub_version": 300500}]},
        "cub b": {"single": 80.0, "back_to_back": 30.0},
        "torch": {"skipped": "PyTorch is not installed"},
    }
    right = {"case": "segments of 256, f32", "group": "marks", "n": 1 << 28, "correct": True, "sides": sides}
    rows = [right, {**right, "case": "wrong", "correct": False}, {**right, "case": "100 largest", "group": "top k"}]
    _written(tmp_path, "segmented_sort_peer.json", 27, results=rows)
    slower = {**right, "sides": {**sides, "offsets": {"single": 160.0, "back_to_back": 1.0}}}
    _written(tmp_path, "stream_peer.json", 20, "An H200", results=[slower])
    sort = {**right, "group": "sorts", "case": "sort_pairs, u32", "primitive": "sort_pairs", "datatype": "u32"}
    _written(tmp_path, "sort_peer.json", 28, results=[sort, {**sort, "distribution": "few", "case": "few"}])
    monkeypatch.setattr(peers, "RESULTS", tmp_path)
    rows = peers.comparisons()
    found = {(row.case, row.how, row.machine): row for row in rows}
    assert {case for case, *_ in found} == {"segments of 256, f32", "100 largest", "sort pairs"}
    both = [found["segments of 256, f32", how, "H100"].ratio for how in ("single", "back to back")]
    assert both == [2.0, 1.5]
    assert found["100 largest", "single", "H100"].subject == peers.SUBJECTS["top k"]
    assert found["sort pairs", "single", "H100"].subject == peers.FIRST
    assert found["sort pairs", "single", "H100"].version == "3.5.0"
    text = peers.page(rows, {})
    assert "| case | H100, µs | CUB, µs | times as fast | H200, µs | CUB, µs | times as fast |" in text
    assert "| segments of 256, f32 | 0.0400 | 0.0800 | 2.00 | 0.160 | 0.0800 | **0.50** |" in text
    assert "sort pairs" not in text
    assert "sort pairs" in "\n".join(peers.tables([row for row in rows if row.subject == peers.FIRST], "###"))


def test_the_pages_of_benchmarks_have_each_file_its_day_and_what_lost(peers):
    rows = peers.comparisons()
    text = peers.page(rows, {}) + "\n".join(peers.tables([row for row in rows if row.subject == peers.FIRST], "###"))
    text += "\n".join([*peers.losses(rows), (ROOT / "docs/benchmarks/index.md").read_text(encoding="utf-8")])
    links = set(re.findall(r"\[(\d{4}-\d\d-\d\d)\]\(\.\./\.\./benchmarks/results/([\w./]+)\)", text))
    files = {path for _, path in links}
    kinds = ("axis", "search", "top_k", "merge", "segmented_sort", "stream")
    assert {"h200/peers.json", "h200/sort.json", *(f"h200/{kind}_peer.json" for kind in kinds)} <= files
    assert {f"h100/{name}" for name in ("stream_peer.json", "sort_peer.json", "cub_list.json", "peers.json")} <= files
    for day, path in links:
        document = json.loads((ROOT / "benchmarks" / "results" / path).read_text(encoding="utf-8"))
        assert (document.get("context") or document)["time"].startswith(day)
    assert {row.peer for row in rows} == {"CUB", "PyTorch"}
    assert all(row.ours_ns > 0 and row.theirs_ns > 0 for row in rows)
    # Each case that is slower by 5 % at some length of a table is named.
    lost = {(row.machine, row.case, row.n >= 1 << 24) for row in rows if row.ratio < 0.95}
    assert len(peers.losses(rows)) == len(lost) + 5


@pytest.mark.needs("module:altair", "module:vl_convert")
def test_a_picture_has_a_mark_for_each_case_and_says_what_it_was_measured_on(peers):
    rows = [row for row in peers.comparisons() if row.subject == peers.STREAM]
    for mode, ink in peers.INK.items():
        svg = peers.picture(rows, mode)
        assert all(row.case in svg for row in rows if row.how == "single")
        assert all(
            words in svg for words in ("H100: driver 580.159.04", "H200: driver 580.159.04", "CUB 3.5.0", "2026-11-27")
        )
        assert ink in svg
        assert not re.search(r"<rect[^>]*fill=\"(white|#fff)", svg)


# ---- the import graph


@pytest.mark.parametrize(
    ("container", "known"),
    [
        (
            "gridwise_py",
            {("cli", "bench"), ("fleet", "dask"), ("bench", "internals"), ("runtime", "backend"), ("types", "errors")},
        ),
        ("gridwise_py.bench", {("report", "analysis"), ("sampling", "calibrate")}),
    ],
)
def test_the_import_graph_has_every_package_and_no_line_upwards(container, known):
    graph = _module("docs/_ext", "import_graph")
    svg = graph.drawing(container)
    boxes = re.findall(r'<rect x="(\d+)" y="(\d+)" width="(\d+)"', svg)
    names = re.findall(r"<text [^>]*>(\w+)</text>", svg)
    assert names == [name for row in graph.layers(container) for name in row]
    folder = Path(gw.__file__).parent.joinpath(*container.split(".")[1:])
    here = {path.stem for path in folder.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()}
    assert set(names) == here - {"__init__", "__main__"}
    assert all(int(x) >= 0 and int(x) + int(width) <= graph.WIDTH for x, _, width in boxes)
    lines = re.findall(r'class="import" d="M\d+ (\d+) C.* \d+ (\d+)"', svg)
    drawn = re.findall(r"<title>(\w+) imports (\w+): (\d+) imports of modules</title>", svg)
    assert len(lines) == len(drawn) > len(names)
    assert all(int(begin) < int(end) for begin, end in lines)
    assert known <= {(a, b) for a, b, _ in drawn}
    assert all(int(count) > 0 for *_, count in drawn)


# ---- the check of what was built


@pytest.fixture
def check(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "scripts")
    return _module("scripts", "check_site")


PAGE = '<html><body><h1 id="top">A</h1><a href="{}">x</a><img src="{}"></body></html>'


@pytest.mark.parametrize(
    ("link", "image", "said"),
    [
        ("b.html#there", "p.png", None),
        ("#top", "p.png", None),
        ("https://elsewhere.org/page", "data:image/png;base64,AA", None),
        ("b.html#gone", "p.png", "index.html links b.html#gone, but b.html has no such anchor"),
        ("c.html", "p.png", "index.html links c.html, which is not there"),
        ("b.html", "q.png", "index.html links q.png, which is not there"),
        ("b.html", "https://elsewhere.org/p.png", "index.html loads https://elsewhere.org/p.png: the site must work"),
    ],
)
def test_a_broken_link_is_found(check, tmp_path, link, image, said):
    (tmp_path / "index.html").write_text(PAGE.format(link, image))
    (tmp_path / "b.html").write_text('<h2 id="there">B</h2>')
    (tmp_path / "p.png").write_bytes(b"")
    found = list(check.broken_links(tmp_path))
    if said is None:
        assert found == []
    else:
        assert found[0].startswith(said)


def test_words_of_an_article_are_counted_without_its_code(check):
    text = (
        "<nav>not this</nav><article><h1>Two words<a class='headerlink' href='#'>¶ link</a></h1>"
        "<p>and <code>x + y</code><br>, four.<table><tr><td>in a table</td></tr></table>"
        "<div class='cell_output'><p>printed</p></div><div><pre>x = <span>1</span></pre></div>"
        "<dl><dt class='sig py'>f(x)</dt><dd>what it does</dd></dl></article>after"
    )
    # Two words | and x y | four. | in a table | what it does
    assert check.Page(text).words == 2 + 3 + 1 + 3 + 3


def test_pages_and_sites_that_are_too_long_are_found(check):
    one = {"howto/a.html": check.PAGE, "contribute/b.html": 2 * check.PAGE}
    assert list(check.too_many_words(one)) == []
    assert list(check.too_many_words({"howto/a.html": check.PAGE + 1})) == [
        "howto/a.html has 1,801 words, more than 1,800"
    ]
    users = {f"howto/{i}.html": check.PAGE for i in range(check.USERS // check.PAGE)} | {
        "howto/rest.html": check.USERS % check.PAGE
    }
    contributors = {"contribute/b.html": check.SITE - check.USERS}
    assert list(check.too_many_words(users | contributors)) == []
    made = {f"reference/python/{i}.html": check.REFERENCE // 10 for i in range(10)}
    assert list(check.too_many_words(made)) == []
    assert list(check.too_many_words(made | {"reference/python/sum.html": 1})) == [
        "17,001 words for docstrings, more than 17,000"
    ]
    assert list(check.too_many_words(users | contributors | {"index.html": 1})) == [
        f"{check.USERS + 1:,} words for users, more than {check.USERS:,}",
        f"{check.SITE + 1:,} words for the site, more than {check.SITE:,}",
    ]


@pytest.mark.needs("module:sphinx")
def test_names_and_commands_that_only_one_side_has_are_found(check, tmp_path, monkeypatch):
    lines = "gridwise_py.Scan py:class 1 a.html#$ -\ngridwise_py.old py:function 1 a.html#$ -\n"
    head = b"# Sphinx inventory version 2\n# Project: x\n# Version: 1\n# The remainder is compressed using zlib.\n"
    (tmp_path / "objects.inv").write_bytes(head + zlib.compress(lines.encode()))
    (tmp_path / "reference").mkdir()
    sections = "".join(f'<section id="gridwise-{name}"></section>' for name in cli.main.commands if name != "tune")
    (tmp_path / "reference" / "command-line.html").write_text(sections)
    monkeypatch.setattr(gw, "__all__", ["Scan", "new"])
    assert list(check.disagreements(tmp_path)) == [
        "the reference lacks the name new",
        "the reference has the name old, which does not exist",
        "the reference lacks the command tune",
    ]
