"""What a person sees in a notebook: README's examples and the results in a kernel of Jupyter, run through nbclient."""

import json
import os
import re
import sys
from html.parser import HTMLParser
from pathlib import Path

import nbformat
import pytest
from _results import document, measurement
from jupyter_client import AsyncKernelManager
from jupyter_client.kernelspec import KernelSpecManager
from nbclient import NotebookClient

ROOT = Path(__file__).resolve().parent.parent
README = ROOT / "README.md"
pytestmark = pytest.mark.skipif(not README.exists(), reason="needs the repository")

HEADINGS = ["name", "kind", "self CPU", "CPU total", "self GPU", "GPU total", "calls", "allocated", "shapes"]
TIME = r"\d[\d.]* (ns|µs|ms|s)"

#: Cells that follow README's, by what they show. The last line of a cell is shown, as notebooks do.
CELLS = {
    "timing result": "result = run.get_timing_result()\nresult",
    "imports": (
        "import json\n"
        "from gridwise_py.bench.compare import compare\n"
        "from gridwise_py.bench.compare_render import render\n"
        "from gridwise_py.terminal import make_console"
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
        "           x=x, y=gw.empty_like(x))"
    ),
    "benchmark": "gw.benchmark(lambda: saxpy.execute(enable_gpu_timing=True), n_warmup=1, n_iters=5)",
    "capabilities": "gw.capabilities(device)",
    "adapters": "adapters = gw.list_adapters()\nadapters",
    "adapter": "adapters[0]",
    "console": "make_console().print('printed by rich')",
    "comparing": "run_file = json.load(open('run.json'))\ntext = render(compare(run_file, run_file), 'table')",
    "comparison": "print(text, end='')",
}
SHOWN_AS_HTML = ["timing result", "profile", "averages", "measurement", "benchmark", "capabilities", "adapter"]


def _readme_blocks():
    return re.findall(r"^```python\n(.*?)^```$", README.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def _kernel_manager(folder):
    """Return what starts this interpreter as a kernel, wherever Jupyter looks for kernels on this machine."""
    spec = folder / "kernels" / "here"
    spec.mkdir(parents=True)
    argv = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    (spec / "kernel.json").write_text(json.dumps({"argv": argv, "display_name": "here", "language": "python"}))
    return AsyncKernelManager(
        kernel_name="here",
        kernel_spec_manager=KernelSpecManager(kernel_dirs=[str(folder / "kernels")], ensure_native_kernel=False),
        connection_file=str(folder / "connection.json"),
    )


def _environment(folder):
    """Return the kernel's environment: all that it writes goes to `folder`."""
    # With this name ipykernel would keep back what drivers write to the process's stderr.
    kept = {name: value for name, value in os.environ.items() if name != "PYTEST_CURRENT_TEST"}
    return kept | {"IPYTHONDIR": str(folder / "ipython"), "XDG_RUNTIME_DIR": str(folder)}


@pytest.fixture(scope="module")
def notebook(device, tmp_path_factory):
    """The notebook after it was run; the fixture `device` skips where there is no adapter."""
    folder = tmp_path_factory.mktemp("notebook")
    sources = [*_readme_blocks(), *CELLS.values()]
    assert len(sources) > len(CELLS)
    nb = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in sources])
    (folder / "run.json").write_text(json.dumps(document([measurement()])), encoding="utf-8")
    client = NotebookClient(nb, km=_kernel_manager(folder), timeout=120, allow_errors=True)
    client.execute(cwd=str(folder), env=_environment(folder))
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


def test_no_cell_fails_or_writes_to_stderr(notebook):
    for cell in notebook.cells:
        for output in cell.outputs:
            assert output.output_type != "error", "\n".join(output.traceback)
            assert output.get("name") != "stderr", (cell.source, output.text)


def test_readme_prints_what_it_shows(notebook):
    first, second = (cell.outputs for cell in notebook.cells[: -len(CELLS)])
    assert re.match(rf"TimingResult\(per trial of 10: scan {TIME}; GPU span {TIME}, CPU wall {TIME}\)\n", first[0].text)
    assert first[0].text.endswith("[      1       2       3 ...  999998  999999 1000000]\n")
    assert re.match(rf"TimingResult\(per trial of 20: saxpy {TIME}; .*\) \[1\. 3\. 5\.\]\n$", second[0].text)


@pytest.mark.parametrize("name", SHOWN_AS_HTML)
def test_results_are_shown_as_tables_with_a_line_of_text(notebook, name):
    shown = _shown(notebook, name)
    assert "\n" not in shown["text/plain"]
    assert not re.search(r"\d{5} ns| at 0x", shown["text/plain"])
    table = _Table(shown["text/html"])
    assert len(table.rows) >= 2
    assert len({len(row) for row in table.rows}) == 1
    assert not re.search(r"\d{5} ns|nan|None", table.text)


def test_times_are_in_the_tables(notebook):
    assert [row[0] for row in _table(notebook, "timing result").rows] == ["saxpy", "GPU span", "CPU wall"]
    rows = {row[0]: row for row in _table(notebook, "measurement").rows}
    for name in ("saxpy", "GPU span"):
        assert re.fullmatch(TIME, rows[name][1])
        assert re.fullmatch(r"±[<\d.]+ %", rows[name][2])
    assert re.match(rf"Measurement\(.*: GPU span {TIME} ±.* %, right\)", _shown(notebook, "measurement")["text/plain"])
    rows = {row[0]: row for row in _table(notebook, "benchmark").rows}
    for name in ("GPU span", "CPU wall"):
        assert re.fullmatch(TIME, rows[name][1])
    text = _shown(notebook, "benchmark")["text/plain"]
    assert re.match(rf"BenchmarkResult\(GPU span of 5 calls: median {TIME}, mean {TIME}", text)


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


def test_a_profile_and_its_averages_show_all_columns(notebook):
    profile, averages = (_table(notebook, name) for name in ("profile", "averages"))
    assert profile.rows == averages.rows
    assert averages.rows[0] == HEADINGS
    names = [row[0] for row in averages.rows]
    assert {"forward, with a name that is long enough to be folded", "Scan", "Reduce", "upload", "download"} <= {*names}
    assert averages.rows[names.index("Scan")][-1] == "input f32[300007], output f32[300007]"


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


def test_everything_that_rich_shows_is_printed(notebook):
    """A console writes to its file, or to stdout: never to the page instead."""
    assert _printed(notebook, "console") == "printed by rich\n"
    assert _outputs(notebook, "comparing") == []
    assert re.search(r"^ *scan ", _printed(notebook, "comparison"), re.MULTILINE)
