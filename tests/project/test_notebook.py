"""What a person sees in a notebook: README's examples and the results in a kernel of Jupyter, run through nbclient."""

import json
import re
from html.parser import HTMLParser

import pytest

import gridwise_py as gw
from gridwise_py.bench.cases.mode import Mode
from gridwise_py.bench.sampling.samples import make_series
from helpers import needs
from helpers.paths import ROOT
from helpers.results import document, measurement

with needs.modules("nbformat", "nbclient", "ipykernel") as pytestmark:
    import nbformat

    from helpers.kernels import execute

README = ROOT / "README.md"

HEADINGS = ["name", "kind", "self CPU", "CPU total", "self GPU", "GPU total", "calls", "allocated", "shapes"]
TIME = r"\d[\d.]* (ns|µs|ms|s)"

#: Cells that follow README's, by what they show. The last line of a cell is shown, as notebooks do.
CELLS = {
    "own kernel": """device = x.device
saxpy = gw.Kernel(
    device,
    '''
    @group(0) @binding(0) var<storage, read> x: array<f32>;
    @group(0) @binding(1) var<storage, read_write> y: array<f32>;
    @group(0) @binding(2) var<uniform> alpha: f32;
    @compute @workgroup_size(256) fn main(@builtin(global_invocation_id) id: vec3<u32>) {
      if (id.x < arrayLength(&x)) { y[id.x] = alpha * x[id.x] + 1.0; }
    }''',
    bindings={"x": "read", "y": "write", "alpha": "uniform"},
    workgroups=lambda n: -(-n["x"] // 256),
    label="saxpy",
)
x = gw.asarray(np.arange(1_000_000, dtype=np.float32), device)
run = saxpy.execute(x=x, y=gw.empty_like(x), alpha=2.0, enable_gpu_timing=True, trials=20)
print(run.get_timing_result(), run.output.to_numpy()[:3])""",
    "timing result": "result = run.get_timing_result()\nresult",
    "imports": (
        "from gridwise_py.bench.analysis.compare import compare\n"
        "from gridwise_py.bench.report.comparison import render\n"
        "from gridwise_py.bench.report.console import make_console"
    ),
    "profiling": (
        "with gw.profile(device) as prof:\n"
        "    with prof.region('forward, with a name that is long enough to be folded'):\n"
        "        gw.cumsum(gw.asarray(np.ones(300_007, dtype=np.float32), device)).to_numpy()\n"
        "        gw.sum(gw.asarray(np.ones(1_000, dtype=np.float32), device))"
    ),
    "profile": "prof",
    "averages": "averages = prof.key_averages()\naverages",
    "assignment": "table = averages.table()",
    "table": "print(table, end='')",
    "table's type": "[type(table).__name__, len(table) > 0]",
    "measurement": (
        "gw.measure(saxpy, mode='hot', protocol=gw.SamplingProtocol(samples=20, warmup_s=0.05, max_warmup_s=0.1),\n"
        "           x=x, y=gw.empty_like(x), alpha=2.0)"
    ),
    "benchmark": "gw.benchmark(lambda: saxpy.execute(enable_gpu_timing=True), n_warmup=1, n_iters=5)",
    "capabilities": "gw.capabilities(device)",
    "adapters": "adapters = gw.list_adapters()\nadapters",
    "adapter": "adapters[0]",
    "console": "make_console().print('printed by rich')",
    "comparing": "run_file = gw.read_results('run.json')\ntext = render(compare(run_file, run_file), 'table')",
    "comparison": "print(text, end='')",
}
SHOWN_AS_HTML = ["timing result", "profile", "averages", "measurement", "benchmark", "capabilities", "adapter"]


def _readme_blocks():
    return re.findall(r"^```python\n(.*?)^```$", README.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def notebook(device, require, tmp_path_factory):
    """The notebook after it was run; the fixture `device` skips where there is no adapter."""
    require("the repository")
    folder = tmp_path_factory.mktemp("notebook")
    sources = [*_readme_blocks(), *CELLS.values()]
    assert len(sources) > len(CELLS)
    nb = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in sources])
    (folder / "run.json").write_text(json.dumps(document([measurement()])), encoding="utf-8")
    execute(nb, folder, timeout_s=120)
    nbformat.write(nb, folder / "notebook.ipynb")
    return nb


def _outputs(notebook, name):
    return notebook.cells[-len(CELLS) + list(CELLS).index(name)].outputs


def _shown(notebook, name):
    """Return what a cell shows by type; it shows one thing."""
    (output,) = _outputs(notebook, name)
    assert output.output_type == "execute_result"
    return output.data


def _printed(notebook, name):
    """Return what a cell prints; it shows nothing else."""
    (output,) = _outputs(notebook, name)
    assert (output.output_type, output.name) == ("stream", "stdout")
    return output.text


class _Table(HTMLParser):
    """Collects the cells of a table, and what the page could not show as it stands."""

    def __init__(self, text):
        super().__init__()
        self.rows, self.text, self._open = [], "", []
        self.feed(text)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag, attributes):
        self._open.append(tag)
        style = dict(attributes).get("style", "")
        # Colours of its own are wrong on either a light or a dark page, and what is hidden is cut.
        assert not re.search(r"background|color:(?!inherit)|overflow:hidden|ellipsis", style), style
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_endtag(self, tag):
        assert self._open.pop() == tag

    def handle_data(self, data):
        self.text += data
        if {"td", "th"} & set(self._open):
            self.rows[-1][-1] += data


def _table(notebook, name):
    return _Table(_shown(notebook, name)["text/html"])


@pytest.mark.slow
def test_no_cell_fails_or_writes_to_stderr(notebook):
    for cell in notebook.cells:
        for output in cell.outputs:
            assert output.output_type != "error", "\n".join(output.traceback)
            assert output.get("name") != "stderr", (cell.source, output.text)


@pytest.mark.slow
def test_readme_prints_what_it_shows(notebook):
    # A busy kernel sends one line in several messages.
    table, compared = ("".join(each.text for each in cell.outputs) for cell in notebook.cells[: -len(CELLS)])
    assert table == re.search(r"^```text\n(.*?)^```$", README.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)[1]
    assert re.match(rf"down columns +{TIME}  the baseline\nalong rows +{TIME}  \w", compared)
    text = _printed(notebook, "own kernel")
    assert re.match(rf"TimingResult\(per trial of 20: saxpy {TIME}; .*\) \[1\. 3\. 5\.\]\n$", text)


@pytest.mark.parametrize("name", SHOWN_AS_HTML)
@pytest.mark.slow
def test_results_are_shown_as_tables_with_a_line_of_text(notebook, name):
    shown = _shown(notebook, name)
    assert "\n" not in shown["text/plain"]
    assert not re.search(r"\d{5} ns| at 0x", shown["text/plain"])
    table = _Table(shown["text/html"])
    assert len(table.rows) >= 2
    assert len({len(row) for row in table.rows}) == 1
    assert not re.search(r"\d{5} ns|nan|None", table.text)


@pytest.mark.slow
def test_times_are_in_the_tables(notebook):
    assert [row[0] for row in _table(notebook, "timing result").rows] == ["saxpy", "GPU span", "CPU wall"]
    rows = {row[0]: row for row in _table(notebook, "measurement").rows}
    for name in ("saxpy", "GPU span"):
        assert re.fullmatch(TIME, rows[name][1])
        assert re.fullmatch(r"±[<\d.]+ %", rows[name][2])
    shown = _shown(notebook, "measurement")["text/plain"]
    assert re.match(
        rf"Measurement\(.*: GPU span {TIME} ±.* %, shader_checks=bounds; not checked(; other work .*)?\)", shown
    )
    rows = {row[0]: row for row in _table(notebook, "benchmark").rows}
    for name in ("GPU span", "CPU wall"):
        assert re.fullmatch(TIME, rows[name][1])
    text = _shown(notebook, "benchmark")["text/plain"]
    assert re.match(rf"BenchmarkResult\(GPU span of 5 calls: median {TIME}, mean {TIME}", text)


@pytest.mark.slow
def test_the_table_of_a_profile_is_text(notebook):
    """Where rich sees a notebook, it shows a table as a side effect, and its text stays empty."""
    assert _outputs(notebook, "assignment") == []
    assert _shown(notebook, "table's type")["text/plain"] == "['str', True]"
    text = _printed(notebook, "table")
    lines = text.splitlines()
    assert re.split(r" {2,}", lines[1].strip()) == HEADINGS
    assert max(map(len, lines)) <= 115
    assert "…" not in text
    squeezed = re.sub(r"\s", "", text)
    for row in _table(notebook, "averages").rows[1:]:
        for cell in row[1:-1]:
            assert re.sub(r"\s", "", cell) in squeezed
    for word in ("forward,", "folded", "f32[300007],", "workgroups"):
        assert word in text


@pytest.mark.slow
def test_a_profile_and_its_averages_show_all_columns(notebook):
    profile, averages = (_table(notebook, name) for name in ("profile", "averages"))
    assert profile.rows == averages.rows
    assert averages.rows[0] == HEADINGS
    names = [row[0] for row in averages.rows]
    assert {"forward, with a name that is long enough to be folded", "Scan", "Reduce", "upload", "download"} <= {*names}
    assert averages.rows[names.index("Scan")][-1] == "input f32[300007], output f32[300007]"


@pytest.mark.slow
def test_devices_are_described(notebook):
    rows = dict(_table(notebook, "capabilities").rows)
    assert {"type", "backend", "driver", "subgroups", "features", "max-buffer-size"} <= set(rows)
    adapter = dict(_table(notebook, "adapter").rows)
    assert [rows[name] for name in ("type", "backend", "driver")] == [
        adapter[name] for name in ("type", "backend", "driver")
    ]
    listed = _shown(notebook, "adapters")["text/plain"]
    assert listed.startswith("[AdapterDescription([0] ")
    assert "timestamp-query" not in listed  # the features are in the table of each


@pytest.mark.slow
def test_everything_that_rich_shows_is_printed(notebook):
    """A console writes to its file, or to stdout: never to the page instead."""
    assert _printed(notebook, "console") == "printed by rich\n"
    assert _outputs(notebook, "comparing") == []
    assert re.search(r"^ *scan ", _printed(notebook, "comparison"), re.MULTILINE)


# ---- the same without a GPU: what is doubtful must show


def test_the_repr_of_a_measurement_says_which_clock_its_time_is_of():
    timed = measurement(count=40)
    assert re.match(rf"Measurement\(scan add u32 hot n=2\^20: GPU span {TIME} ±\S+ %, right\)$", repr(timed))
    invalid = make_series("gpu_span", [], {"zero": 12, "longer_than_wall": 3})
    wall = make_series("cpu_wall", [470_823.0] * 5)
    doubtful = measurement(whole={"gpu_span": invalid, "cpu_wall": wall})
    assert repr(doubtful) == (
        "Measurement(scan add u32 hot n=2^20: CPU wall 471 µs (5 samples) "
        "(no GPU time is valid: 12 zero, 3 longer than wall), right)"
    )
    rows = {row[0]: row for row in _Table(doubtful._repr_html_()).rows}
    assert rows["GPU span"][1:] == ["not measured", "", "–", "0", "12 zero, 3 longer than wall"]
    assert rows["CPU wall"][1] == "471 µs"
    assert "by the CPU wall" in _Table(doubtful._repr_html_()).text
    assert "GPU" not in repr(measurement(whole={"cpu_wall": wall}))  # no timestamps: nothing to excuse


def test_a_measurement_that_failed_says_why_on_one_line():
    failed = gw.Measurement("<scan>", Mode.HOT, 5, error="ShaderError: no\nfn main() {…}")
    assert repr(failed) == "Measurement(<scan> hot n=5: no time, ShaderError: no)"
    assert "<scan>" not in failed._repr_html_()
    assert "&lt;scan&gt; hot n=5: ShaderError: no<" in failed._repr_html_()


def test_the_repr_of_a_benchmark_counts_the_calls_that_were_timed():
    wall = make_series("cpu_wall", [84_312_772.0] * 50)
    result = gw.BenchmarkResult(wall, None, 5, 50, "device_poll")
    assert repr(result) == (
        "BenchmarkResult(CPU wall of 50 calls: median 84.3 ms, mean 84.3 ms, standard deviation 0 ns)"
    )
    some = gw.BenchmarkResult(wall, make_series("gpu_span", [256_098.0] * 5), 5, 50, "device_poll")
    assert repr(some).startswith("BenchmarkResult(GPU span of 5 of 50 calls: median 256 µs, ")
    rows = {row[0]: row for row in _Table(result._repr_html_()).rows}
    assert rows["GPU span"][1:] == ["not measured", "–", "–", "–", "0"]
    assert rows["CPU wall"][1:] == ["84.3 ms", "84.3 ms", "0 ns", "84.3 ms", "50"]


def test_the_repr_of_capabilities_is_one_line():
    invented = gw.Capabilities(adapter="a & b", subgroup_size=32, tick_step_ns=32.0, features={"subgroup"})
    assert repr(invented) == (
        "Capabilities(a & b, DiscreteGPU, Vulkan, driver not known: subgroups of 32, timestamps in steps of 32 ns, "
        "1 feature)"
    )
    assert "no subgroups, no timestamps" in repr(gw.Capabilities())
    table = _Table(invented._repr_html_())
    assert dict(table.rows)["max-buffer-size"] == "268,435,456"
    assert "Software" not in table.text
    assert "Software on the CPU" in gw.Capabilities(adapter_type="CPU")._repr_html_()
