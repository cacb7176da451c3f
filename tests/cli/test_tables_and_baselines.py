"""What commands share for CI: tables as CSV and markdown, the share of ambiguous rows, named baselines."""

import csv
import json

import pytest

import gridwise_py as gw
from helpers.commands import gridwise
from helpers.results import document, measure_here, measurement, write

SHORT = [
    "--n", "2^10", "--datatype", "u32", "--processes", "1", "--warmup-s", "0", "--sampling-s", "0", "--trials", "2",
]  # fmt: skip


def _records(path):
    with path.open(newline="", encoding="utf-8") as lines:
        return list(csv.DictReader(lines))


@pytest.fixture
def files(tmp_path):
    """Two results files: the second is 10 % slower, in three cases."""
    paths = []
    for name, scale in (("old", 1000.0), ("new", 1100.0)):
        made = document([measurement(p, scale_ns=scale, count=60) for p in ("scan", "reduce", "sort")])
        paths.append(tmp_path / f"{name}.json")
        write(paths[-1], made)
    return paths


def test_compare_writes_its_rows(files, tmp_path, capfd):
    rows, table = tmp_path / "rows.csv", tmp_path / "table.md"
    done = gridwise("compare", *files, "--csv", rows, "--markdown", table)
    assert done.exit_code == 1, done.output
    records = _records(rows)
    whole = [row for row in records if row["part"] == "whole"]
    assert [row["case"] for row in whole] == [f"{p} add u32 hot n=2^20" for p in ("scan", "reduce", "sort")]
    medians = [result.whole.gpu_span_ns for result in gw.read_results(files[1]).in_order()]
    assert [float(row["new_ns"]) for row in whole] == medians
    assert {row["past_gate"] for row in records} == {"true"}
    assert table.read_text(encoding="utf-8") == gridwise("compare", *files, "--format", "markdown").stdout
    # On stdout, the table goes to stderr.
    done = gridwise("compare", *files, "--csv", "-")
    assert capfd.readouterr().out == rows.read_text(encoding="utf-8")
    assert (done.stdout, "new / old" in done.stderr) == ("", True)
    assert gridwise("compare", *files, "--across", "--csv", "-").exit_code == 0
    assert capfd.readouterr().out.startswith("case,file,adapter,time_ns")


def test_bench_writes_its_rows(device, monkeypatch, tmp_path, capfd):
    measure_here(monkeypatch, device)
    rows, table, out = tmp_path / "rows.csv", tmp_path / "table.md", tmp_path / "out.json"
    done = gridwise("bench", "reduce", *SHORT, "--csv", rows, "--markdown", table, "--json", out)
    assert done.exit_code == 0, done.output
    records = _records(rows)
    for result in gw.read_results(out).results:
        place = result.primitive, "whole", "cpu_wall"
        (row,) = (row for row in records if (row["primitive"], row["part"], row["series"]) == place)
        assert float(row["median_ns"]) == result.whole.cpu_wall_ns
    lines = table.read_text(encoding="utf-8").splitlines()
    assert any(line.startswith("| copy u32 | 2^10 |") and line.endswith("| right |") for line in lines)
    done = gridwise("bench", "copy", *SHORT, "--csv", "-")
    assert capfd.readouterr().out.startswith("primitive,n,mode")
    assert (done.stdout, "copy u32" in done.stderr) == ("", True)


def test_only_one_thing_is_on_stdout(files):
    for words in (["--csv", "-", "--markdown", "-"], ["--csv", "-", "--format", "json"]):
        done = gridwise("compare", *files, *words)
        assert (done.exit_code, done.stdout) == (2, "")
        assert "standard output" in done.stderr
    done = gridwise("bench", "--json", "-", "--csv", "-")
    assert (done.exit_code, "only one of --json and --csv" in done.stderr) == (2, True)
    assert gridwise("bench", "--adapter", "all", "--csv", "x.csv").exit_code == 2


def test_no_file_is_written_twice(files, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for words, names in (
        (["compare", *files, "--csv", "x", "--markdown", tmp_path / "x"], "--csv and --markdown"),
        (["compare", *files, "--out", "x", "--csv", "./x"], "--out and --csv"),
        (["bench", "copy", *SHORT, "--json", "x.json", "--markdown", "x.json"], "--json and --markdown"),
    ):
        done = gridwise(*map(str, words))
        assert (done.exit_code, f"{names} name one file" in done.stderr) == (2, True), done.stderr
    assert not (tmp_path / "x").exists()


@pytest.fixture
def one_of_three(tmp_path):
    """Two results files of which one row in three is ambiguous: it has three samples."""
    paths = []
    for name in ("old", "new"):
        counts = {"scan": 60, "reduce": 60, "sort": 3}
        scale_ns = 1001.0 if name == "new" else 1000.0
        made = document([measurement(p, count=n, labels=("only",), scale_ns=scale_ns) for p, n in counts.items()])
        paths.append(tmp_path / f"{name}.json")
        write(paths[-1], made)
    return paths


def test_a_share_of_ambiguous_rows(one_of_three):
    threshold = "--threshold", "10%"
    found = json.loads(gridwise("compare", *one_of_three, *threshold, "--format", "json").stdout)["rows"]
    assert [row["verdict"]["kind"] for row in found] == ["same", "same", "ambiguous"]
    for words, code in (
        ([], 0),
        (["--max-ambiguous", "50%"], 0),
        (["--max-ambiguous", "0.33"], 7),
        (["--max-ambiguous", "0%"], 7),
        (["--fail-ambiguous"], 7),
        (["--fail-ambiguous", "--max-ambiguous", "50%"], 7),
    ):
        done = gridwise("compare", *one_of_three, *threshold, *words)
        assert done.exit_code == code, words
        assert ("33.3 % of the rows that the gate applies to are undecided" in done.stderr) == (code == 7)


def test_no_ambiguous_row_is_no_more_than_none(files):
    assert gridwise("compare", files[0], files[0], "--max-ambiguous", "0%").exit_code == 0


# ---- baselines


def test_a_baseline_is_saved_and_compared_with(files, tmp_path, monkeypatch, device):
    monkeypatch.chdir(tmp_path)
    measure_here(monkeypatch, device)
    for _ in range(2):  # a baseline is replaced
        done = gridwise("bench", "copy", *SHORT, "--save-baseline", "main")
        assert done.exit_code == 0, done.output
    saved = tmp_path / ".gridwise" / "baselines" / "main.json"
    assert "same measurement" in gridwise("compare", "--baseline", "main", saved).output
    done = gridwise("compare", "--baseline", "main", files[0])
    assert done.exit_code == 3, "it is of another adapter"
    # Files of other tools and in another folder.
    out = tmp_path / "cache"
    assert gridwise("import", files[0], "--save-baseline", "v1.0", "--baselines", out).exit_code == 0
    assert gridwise("compare", "--baseline", "v1.0", files[1], "--baselines", out).exit_code == 1


def test_baselines_that_are_not_there(files, tmp_path):
    folder = tmp_path / "none"
    done = gridwise("compare", "--baseline", "main", files[0], "--baselines", folder)
    assert done.exit_code == 2
    assert "it has none; gridwise bench --save-baseline main --baselines" in done.output
    gridwise("import", files[0], "--save-baseline", "other", "--baselines", folder)
    assert "it has other;" in gridwise("compare", "--baseline", "main", files[0], "--baselines", folder).output
    for words, why in (
        (["compare", "--baseline", "../x", files[0]], "'../x' is no name of a baseline"),
        (["compare", files[0]], "1 file given; give OLD and NEW, or --baseline NAME and NEW"),
        (["compare", "--baseline", "main", *files], "2 files given; give NEW only"),
        (["import", files[0]], "give the results file with --out FILE, or --save-baseline NAME"),
        (["bench", "--save-baseline", "a", "--json", "b.json"], "leave out --json or --resume"),
        (["bench", "--save-baseline", "a", "--adapter", "all"], "leave out --adapter all"),
    ):
        done = gridwise(*words)
        assert (done.exit_code, why in done.output) == (2, True), done.output
