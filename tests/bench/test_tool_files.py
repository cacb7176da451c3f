"""Files of other benchmark tools: read, judged as one process each, and refused with a remedy.

The files in `tool_files` were written by google-benchmark 1.7, pytest-benchmark 5.3 and hyperfine 1.15; the name of the
host and the flags of its processor are taken out. That of nvbench, which needs CUDA, is by its json_printer.cu; the
file `test_ref.json` of its repository, which it wrote, was read as well.
"""

import json
import math
import shutil
from pathlib import Path

import jsonschema
import numpy as np
import pytest

import gridwise_py as gw
from helpers.commands import gridwise
from helpers.results import document, measurement, write

FILES = Path(__file__).resolve().parent / "tool_files"


def _raw(name):
    return json.loads((FILES / name).read_text(encoding="utf-8"))


def _times(name):
    """Return the times of a file by name, series and mode, in ns."""
    found = {}
    for result in gw.read_results(FILES / name).results:
        for series, values in result.whole.series.items():
            found.setdefault((result.name, series), []).extend(values.samples_ns)
    return found


# ---- what is read


def test_google_benchmark():
    repetitions = [one["real_time"] for one in _raw("google.json")["benchmarks"] if one.get("run_type") == "iteration"]
    assert _times("google.json") == {("BM_sum/1024", "cpu_wall"): repetitions[:4]}
    first, refused = gw.read_results(FILES / "google.json").results
    assert (first.trials, first.error) == (_raw("google.json")["benchmarks"][0]["iterations"], None)
    assert (refused.name, refused.error) == ("BM_refused", "no such device")
    assert any("without optimisation" in warning for warning in first.warnings)
    # The median of the aggregates is all that is left.
    (aggregate,) = gw.read_results(FILES / "google-aggregates.json").results
    assert aggregate.whole.cpu_wall_ns == _raw("google-aggregates.json")["benchmarks"][1]["real_time"]
    assert aggregate.whole.series["cpu_wall"].summary.count == 1
    assert any("leave out --benchmark_report_aggregates_only" in warning for warning in aggregate.warnings)


def test_units_and_statistics_that_are_no_numbers_of_google_benchmark(tmp_path):
    raw = _raw("google.json")
    raw["benchmarks"] = [raw["benchmarks"][0] | {"real_time": 1.5, "time_unit": "ms", "run_name": "a", "spread": 7}]
    path = tmp_path / "a.json"
    path.write_text(json.dumps(raw).replace("7}", "NaN}"))  # of a counter
    assert gw.read_results(path).results[0].whole.cpu_wall_ns == 1.5e6


def test_pytest_benchmark():
    raw = {entry["fullname"]: entry["stats"] for entry in _raw("pytest.json")["benchmarks"]}
    found = _times("pytest.json")
    for name, stats in raw.items():
        np.testing.assert_allclose(found[name, "cpu_wall"], np.array(stats["data"]) * 1e9)
        assert np.median(found[name, "cpu_wall"]) == pytest.approx(stats["median"] * 1e9)
    whole = gw.read_results(FILES / "pytest.json")
    commit = _raw("pytest.json")["commit_info"]["id"]
    assert (whole.context.git.commit, whole.context.tool) == (commit, "pytest-benchmark")
    assert whole.results[0].trials == 5
    assert whole.device.adapter == _raw("pytest.json")["machine_info"]["cpu"]["brand_raw"]
    saved = gw.read_results(FILES / "pytest-stats.json").results[0]
    assert saved.whole.cpu_wall_ns == pytest.approx(1e9 * _raw("pytest-stats.json")["benchmarks"][0]["stats"]["median"])
    assert saved.whole.series["cpu_wall"].summary.count == 1, "a median is one time, of however many rounds"
    assert any("--benchmark-save-data" in warning for warning in saved.warnings)


def test_hyperfine_has_a_process_for_each_time():
    raw = {entry["command"]: entry["times"] for entry in _raw("hyperfine.json")["results"]}
    assert {name: times for (name, _), times in _times("hyperfine.json").items()} == {
        name: pytest.approx([1e9 * time for time in times]) for name, times in raw.items()
    }
    found = gw.read_results(FILES / "hyperfine.json")
    assert [result.process for result in found.results] == [*range(6), *range(6)]
    assert [levels.processes for levels in found.levels] == [6, 6]
    (failed,) = gw.read_results(FILES / "hyperfine-failed.json").results
    assert failed.error == "2 of 2 runs failed (exit code 1)"


def test_many_runs_of_hyperfine_are_ten_groups(tmp_path):
    raw = {"results": [{"command": "a", "mean": 1.0, "times": [1 + 0.001 * i for i in range(95)]}]}
    found = gw.read_results(write(tmp_path / "a.json", raw)).results
    assert [len(result.positive_ns("cpu_wall")) for result in found] == [10] * 9 + [5]
    assert found[1].positive_ns("cpu_wall")[0] == pytest.approx(1.01e9), "runs that follow each other"


def test_nvbench_with_samples_and_without():
    found = {(result.name, result.mode): result for result in gw.read_results(FILES / "nvbench.json").results}
    samples = np.frombuffer((FILES / "nvbench.json-bin" / "0.bin").read_bytes(), "<f4").astype(np.float64) * 1e9
    cold = found["reduce T=I32 Elements=65536 cold", "cold"]
    assert cold.positive_ns("gpu_span") == samples.tolist()
    assert found["reduce T=I32 Elements=65536", "batch"].whole.gpu_span_ns == pytest.approx(4900)
    means = found["reduce T=I32 Elements=1048576 cold", "cold"]
    assert (means.positive_ns("gpu_span"), means.warnings) == (
        [pytest.approx(25_000)],
        ("the file has means only: --jsonbin FILE instead of --json FILE saves the samples",),
    )
    (skipped,) = (result for result in found.values() if result.error)
    assert (skipped.name, skipped.error) == ("reduce T=I32 Elements=17179869184 cold", "skipped: Not enough memory.")
    assert gw.read_results(FILES / "nvbench.json").device.adapter == "Invented 9000"


def test_samples_of_nvbench_that_are_not_beside_it(tmp_path):
    path = shutil.copy(FILES / "nvbench.json", tmp_path)
    alone = gw.read_results(path).results[0]
    assert alone.positive_ns("gpu_span") == [pytest.approx(5087.5)]
    assert "keep the folder nvbench.json-bin beside nvbench.json" in alone.warnings[0]
    # Where nvbench was started elsewhere, it names the folder from there.
    shutil.copytree(FILES / "nvbench.json-bin", tmp_path / "nvbench.json-bin")
    raw = _raw("nvbench.json")
    name = raw["benchmarks"][0]["states"][0]["summaries"][-1]["data"][0]
    name["value"] = "runs/new/nvbench.json-bin/0.bin"
    assert len(gw.read_results(write(Path(path), raw)).results[0].positive_ns("gpu_span")) == 8
    # A file may come from a stranger: nothing outside its folder is opened.
    (tmp_path / "below").mkdir()
    for outside in ("../nvbench.json-bin/0.bin", str(tmp_path / "nvbench.json-bin" / "0.bin")):
        name["value"] = outside
        found = gw.read_results(write(tmp_path / "below" / "nvbench.json", raw)).results[0]
        assert len(found.positive_ns("gpu_span")) == 1, outside
    name["value"] = "nvbench.json-bin/0.bin"
    (tmp_path / "nvbench.json-bin" / "0.bin").write_bytes(bytes(12))
    with pytest.raises(gw.BadResultsFile, match=r"0.bin has 12 bytes, but nvbench.json says 8 samples of 4 bytes"):
        gw.read_results(write(Path(path), raw))


def test_a_state_on_each_of_two_devices(tmp_path):
    raw = _raw("nvbench.json")
    raw["devices"].append({"id": 1, "name": "Invented 8000"})
    (bench, _), (state, *_) = raw["benchmarks"], raw["benchmarks"][0]["states"]
    bench["states"] = [state, state | {"device": 1}]
    shutil.copytree(FILES / "nvbench.json-bin", tmp_path / "nvbench.json-bin")
    found = gw.read_results(write(tmp_path / "a.json", raw))
    assert found.device.adapter == "Invented 9000, Invented 8000"
    assert len({result.key for result in found.results}) == 4


def test_numbers_on_lines(tmp_path):
    path, out = tmp_path / "times.txt", tmp_path / "out.json"

    def read(text, unit="ms"):
        path.write_text(text)
        done = gridwise("import", path, "--format", "numbers", "--unit", unit, "-o", out)
        return gw.read_results(out).results[0] if done.exit_code == 0 else done.output

    found = read("\ufeff1.5\n\n0\n2e0\n")
    assert (found.positive_ns("cpu_wall"), found.whole.series["cpu_wall"].invalid) == ([1.5e6, 2e6], {"zero": 1})
    assert read("0\n", "s").error == "no time is over 0: it is shorter than a step of the tool's clock"
    for text, why in (
        ("", "it has no numbers"),
        ("1\n2 ms\n", "line 2 is '2 ms', not a number"),
        ("1_000\n", "line 1 is '1_000', not a number"),
        ("-1", "-1e+06 ns is no time: check the unit"),
        ("nan", "nan ns is no time"),
        ("1e30", "is no time"),
    ):
        assert why in read(text)


def test_times_of_0_are_left_out_and_counted(tmp_path):
    raw = {"results": [{"command": "a", "mean": 1.0, "times": [0.0, 1.0]}]}
    (found,) = gw.read_results(write(tmp_path / "a.json", raw)).results
    assert found.whole.series["cpu_wall"].invalid == {"zero": 1}


def test_each_is_a_results_document(tmp_path):
    schema = jsonschema.Draft202012Validator(json.loads(gridwise("schema", "bench").stdout))
    for path in [path for path in FILES.glob("*.json") if path.name != "hyperfine-failed.json"]:
        found = gw.read_results(path)
        schema.validate(found.to_json())
        assert gridwise("import", path, "-o", tmp_path / path.name).exit_code == 0
        assert gw.read_results(tmp_path / path.name).to_json() == found.to_json()


# ---- what is judged


def _google(path, times, name="a"):
    """Write a file of google-benchmark with a repetition for each time."""
    raw = _raw("google.json")
    raw["benchmarks"] = [raw["benchmarks"][0] | {"run_name": name, "real_time": float(time)} for time in times]
    return write(path, raw)


def _runs(tmp_path, side, level, seed, count=6):
    rng = np.random.default_rng(seed)
    levels = level * np.exp(rng.normal(0, 0.003, count))
    paths = [
        _google(tmp_path / f"{side}{i}.json", one * np.exp(rng.normal(0, 0.003, 12))) for i, one in enumerate(levels)
    ]
    out = tmp_path / f"{side}.json"
    assert gridwise("import", *paths, "-o", out).exit_code == 0
    return paths[0], out


def _rows(old, new):
    done = gridwise("compare", old, new, "--format", "json")
    assert done.stdout.startswith("{"), done.output
    return json.loads(done.stdout)["rows"]


def test_single_files_are_not_judged_and_several_are(tmp_path):
    one_old, old = _runs(tmp_path, "old", 1000, 1)
    one_new, new = _runs(tmp_path, "new", 1100, 2)
    (row,) = _rows(one_old, one_new)
    assert row["verdict"]["kind"] == "ambiguous"
    assert "import several runs (gridwise import)" in " ".join(gridwise("compare", one_old, one_new).output.split())
    (row,) = _rows(old, new)
    assert (row["verdict"]["kind"], row["verdict"]["old_processes"], row["past_gate"]) == ("slower", 6, True)
    assert gridwise("compare", old, new).exit_code == 1
    (row,) = _rows(old, _runs(tmp_path, "other", 1000, 3)[1])
    assert row["verdict"]["kind"] == "same"


def test_gpu_times_of_single_files_of_nvbench_are_not_judged_either(tmp_path):
    """The interval of their samples is narrow, but it is of one process. That their JSON is equal does not matter."""
    for name, level in (("old", 5e-6), ("new", 6e-6)):
        (tmp_path / name / "nvbench.json-bin").mkdir(parents=True)
        shutil.copy(FILES / "nvbench.json", tmp_path / name)
        samples = level * np.exp(np.random.default_rng(1).normal(0, 0.002, 8))
        samples.astype("<f4").tofile(tmp_path / name / "nvbench.json-bin" / "0.bin")
    rows = _rows(*(tmp_path / name / "nvbench.json" for name in ("old", "new")))
    assert {row["name"] for row in rows} == {"gpu_span"}
    (row,) = (row for row in rows if row["case"] == "reduce T=I32 Elements=65536 cold")
    assert (row["verdict"]["kind"], row["verdict"]["old_count"]) == ("ambiguous", 8)


def test_a_benchmark_that_fails_now_is_a_regression(tmp_path):
    raw = _raw("google.json")
    old = _google(tmp_path / "old.json", [1, 2, 3])
    raw["benchmarks"] = [one | {"run_name": "a"} for one in raw["benchmarks"] if one.get("error_occurred")]
    done = gridwise("compare", old, write(tmp_path / "new.json", raw))
    assert done.exit_code == 1
    assert "no longer runs: a: no such device" in done.output


def test_files_that_cannot_be_compared(tmp_path):
    one = _google(tmp_path / "one.json", [1, 2, 3])
    other = _google(tmp_path / "other.json", [1, 2, 3], name="b")
    done = gridwise("compare", one, other)
    assert done.exit_code == 3
    assert "give the benchmarks the same names in both files" in " ".join(done.output.split())
    # Another machine, or another tool.
    raw = json.loads(one.read_text())
    raw["context"]["num_cpus"] += 1
    done = gridwise("compare", one, write(tmp_path / "third.json", raw))
    assert "adapter: OLD has 2 CPUs, NEW has 3 CPUs" in done.output
    done = gridwise("compare", FILES / "hyperfine.json", FILES / "hyperfine.json")
    assert "files of hyperfine do not name the machine" in " ".join(done.output.split())


def _hyperfine(path, *entries):
    """Write a file of hyperfine with runs of about a second times a factor, each factor with its parameters."""
    times = [[factor * (1 + 0.001 * i) for i in range(6)] for _, factor in entries]
    found = [
        {"command": "nap", "mean": 1.0, "times": one, "exit_codes": [0] * 6, **({"parameters": p} if p else {})}
        for one, (p, _) in zip(times, entries, strict=True)
    ]
    return write(path, {"results": found})


def test_a_row_is_its_name_and_its_parameters(tmp_path):
    old = _hyperfine(tmp_path / "old.json", *(({"n": str(n)}, n) for n in (1, 2, 3)))
    for order in ((3, 2, 1), (2, 3)):
        new = _hyperfine(tmp_path / "new.json", *(({"n": str(n)}, n * 1.0001) for n in order))
        done = gridwise("compare", old, new, "--csv", tmp_path / "rows.csv")
        assert done.exit_code == 0, done.output
        rows = (tmp_path / "rows.csv").read_text().splitlines()[1:]
        assert [(row.split(",")[0], row.split(",")[3]) for row in rows] == [
            (f"nap n={n}", "same") for n in sorted(order)
        ]
    gridwise("import", old, new, "-o", tmp_path / "both.json")
    assert {result.name for result in gw.read_results(tmp_path / "both.json").results} == {
        f"nap n={n}" for n in (1, 2, 3)
    }


def test_what_only_its_position_tells_apart_is_not_judged(tmp_path):
    old = _hyperfine(tmp_path / "old.json", (None, 1), (None, 2), ({"n": "1"}, 3))
    new = _hyperfine(tmp_path / "new.json", (None, 2), (None, 1), ({"n": "1"}, 3.0003))
    done = gridwise("compare", old, new)
    text = " ".join(done.output.split())
    assert (done.exit_code, "2 rows not judged: a file has several benchmarks of this name" in text) == (0, True)
    assert "give each its own name" in text
    assert [result.name for result in gw.read_results(old).results][::6] == ["nap #=1", "nap #=2", "nap n=1"]


def _of_host(path, tool, host, count, more):
    """Write a file of a tool, of a machine."""
    raw = _raw("pytest.json" if tool == "pytest" else "google.json")
    if tool == "pytest":
        info = raw["machine_info"]
        raw["machine_info"] = {**info, "node": host, "python_version": more, "cpu": {**info["cpu"], "count": count}}
    else:
        raw["context"] |= {"host_name": host, "num_cpus": count, "library_build_type": more}
    return write(path, raw)


@pytest.mark.parametrize(
    ("tool", "new", "said"),
    [
        ("pytest", ("b", 2, "3.11.9"), "host: OLD has a, NEW has b"),
        ("pytest", ("a", 64, "3.11.9"), "CPUs: OLD has 2, NEW has 64"),
        ("pytest", ("a", 2, "3.14.0"), "Python: OLD has 3.11, NEW has 3.14"),
        ("google", ("b", 2, "release"), "host: OLD has a, NEW has b"),
        ("google", ("a", 2, "debug"), "debug build: OLD has False, NEW has True"),
    ],
)
def test_another_machine_is_not_compared_and_not_mixed(tmp_path, tool, new, said):
    first = ("a", 2, "3.11.4" if tool == "pytest" else "release")
    old, other = (_of_host(tmp_path / f"{n}.json", tool, *of) for n, of in enumerate((first, new)))
    done = gridwise("compare", old, other)
    assert (done.exit_code, said in done.output) == (3, True), done.output
    assert gridwise("compare", old, other, "--force").exit_code == 0
    done = gridwise("import", old, other, "-o", tmp_path / "out.json")
    assert (done.exit_code, f"{said.partition(':')[0]} is " in done.output) == (2, True), done.output


def test_a_gate_that_judged_nothing_does_not_pass(tmp_path):
    def failing(name, times, code):
        entry = {"command": "bench", "mean": times[0], "times": times, "exit_codes": [code] * len(times)}
        return write(tmp_path / name, {"results": [entry]})

    failed = failing("a.json", [0.01, 0.02], 1), failing("b.json", [0.02, 0.02], 1)
    zero = failing("c.json", [0.0] * 6, 0), failing("d.json", [0.0] * 7, 0)
    for files, why in ((failed, "2 of 2 runs failed"), (zero, "shorter than a step of the tool's clock")):
        for more in ((), ("--fail-ambiguous",), ("--format", "json"), ("--format", "junit")):
            done = gridwise("compare", *files, *more)
            assert (done.exit_code, why in " ".join(done.output.split())) == (3, True), done.output
    assert 'errors="1"' in done.output
    # One row is enough, and it is one of two that --fail-ambiguous counts.
    good = [_hyperfine(tmp_path / f"{n}.json", (None, 1 + n / 1e6)) for n in (1, 2)]
    for path, other in zip(good, failed, strict=True):
        write(path, {"results": json.loads(path.read_text())["results"] + json.loads(other.read_text())["results"]})
    assert gridwise("compare", *good).exit_code == 0
    assert gridwise("compare", *good, "--fail-ambiguous").exit_code == 7


def test_two_runs_with_the_same_times_are_two(tmp_path):
    paths = []
    for day in (1, 4):
        raw = _raw("pytest.json")
        paths.append(write(tmp_path / f"{day}.json", raw | {"datetime": f"2026-11-0{day}T10:00:00"}))
    assert gridwise("import", *paths, "-o", tmp_path / "both.json").exit_code == 0
    assert "same measurement" not in gridwise("compare", *paths).output
    assert "same measurement" in gridwise("compare", paths[0], paths[0]).output


@pytest.mark.parametrize(
    ("tool", "text"),
    [
        ("asv", '{"commit_hash": "1", "results": {"b.T.time_sum": [[1e-7, NaN], -Infinity]}, "version": 2}'),
        ("pyperf", '{"benchmarks": [{"runs": [{"values": [1e-6]}]}], "metadata": {"name": "t"}, "version": "1.0"}'),
    ],
)
def test_a_file_of_a_tool_that_is_not_read_says_the_way(tmp_path, monkeypatch, tool, text):
    path = tmp_path / "a.json"
    path.write_text(text)
    said = gridwise("import", path, "-o", tmp_path / "b.json").output
    assert f"a file of {tool}, which is not read" in " ".join(said.split())
    # As it says.
    monkeypatch.chdir(tmp_path)
    Path("times.txt").write_text("1e-6\n2e-6\n")
    words = " ".join(said.split()).partition("gridwise import ")[2].split()
    assert gridwise("import", *words).exit_code == 0


def test_files_that_do_not_go_together(tmp_path):
    one = _google(tmp_path / "one.json", [1, 2, 3])
    native = write(tmp_path / "native.json", document([measurement()]))
    for other, why in (
        (one, "two are the same run"),
        (FILES / "hyperfine.json", "adapter is 2 CPUs and unknown machine"),
        (native, "native.json is of gridwise bench"),
    ):
        done = gridwise("import", one, other, "-o", tmp_path / "out.json")
        assert (done.exit_code, why in done.output) == (2, True), done.output
    both = tmp_path / "both.json"
    assert gridwise("import", FILES / "hyperfine.json", FILES / "hyperfine-failed.json", "-o", both).exit_code == 0
    assert sorted({result.process for result in gw.read_results(both).results}) == [*range(7)]


# ---- what is refused


def test_files_that_are_none(tmp_path):
    text = tmp_path / "times.txt"
    text.write_text("12.5\n12.6\n")
    other = write(tmp_path / "other.json", {"benchmarks": [{"name": "a"}]})
    out = tmp_path / "out.json"
    for words, why in (
        (
            [text],
            "it has numbers on lines, which do not say their unit; add --format numbers and --unit ns, us, ms or s",
        ),
        ([text, "--format", "numbers"], "lines do not say their unit; add --unit ns, us, ms or s"),
        ([FILES / "google.json", "--unit", "ms"], "--unit ms is for --format numbers"),
        ([FILES / "google.json", "--format", "hyperfine"], "a file of google-benchmark, but --format says hyperfine"),
        ([other], "nor a JSON file of nvbench, google-benchmark, pytest-benchmark or hyperfine"),
        ([other, "--format", "nvbench"], "this is JSON, but not of nvbench"),
    ):
        done = gridwise("import", *words, "-o", out)
        assert (done.exit_code, why in done.output) == (2, True), done.output
        assert len(done.output.splitlines()) == 1
    assert gridwise("import", text, "--format", "numbers", "--unit", "ms", "-o", out).exit_code == 0
    assert gw.read_results(out).results[0].whole.cpu_wall_ns == 12.55e6


def test_a_file_of_a_tool_that_is_not_as_it_writes_it(tmp_path):
    for name in ("google.json", "pytest.json", "hyperfine.json", "nvbench.json"):
        raw = _raw(name)
        content = raw.get("benchmarks") or raw["results"]
        del content[1:]
        broken = {
            "google.json": "real_time",
            "pytest.json": "stats",
            "hyperfine.json": "times",
            "nvbench.json": "states",
        }
        if name == "hyperfine.json":
            content[0]["times"] = 7
        else:
            del content[0][broken[name]]
        with pytest.raises(gw.BadResultsFile, match=r"a\.json: it looks like a file of .*; write it again with --"):
            gw.read_results(write(tmp_path / "a.json", raw))
        content.clear()
        if name != "hyperfine.json":  # which is known by its entries
            with pytest.raises(gw.BadResultsFile, match=r"without any benchmark: did a filter leave all out\?"):
                gw.read_results(write(tmp_path / "a.json", raw))


def test_a_time_that_is_no_number_is_not_one_of_0(tmp_path):
    for bad in (math.nan, math.inf, 10**60, -math.inf):
        raw = _raw("google.json")
        raw["benchmarks"][0]["real_time"] = bad
        with pytest.raises(gw.BadResultsFile, match=r"a\.json: .* (ns is no time|looks like a file of)"):
            gw.read_results(write(tmp_path / "a.json", raw))
    raw = _raw("google.json")
    raw["context"]["num_cpus"] = 10**60
    with pytest.raises(gw.BadResultsFile, match="it looks like a file of google-benchmark"):
        gw.read_results(write(tmp_path / "a.json", raw))


def test_odd_text(tmp_path):
    path = tmp_path / "a.json"
    path.write_bytes(b"\xef\xbb\xbf" + (FILES / "hyperfine.json").read_bytes())
    assert gw.read_results(path).results
    raw = _raw("hyperfine.json")
    for name, is_whole in (("\U0001f600", True), ("\ud83d", False), ("\ude00\ud83d", False)):
        raw["results"][0]["command"] = name
        path.write_text(json.dumps(raw))
        if is_whole:
            assert gw.read_results(path).results[0].primitive == name
            continue
        with pytest.raises(gw.BadResultsFile, match="half of a character"):  # which could not be written again
            gw.read_results(path)


@pytest.mark.parametrize("name", ["google.json", "pytest.json", "hyperfine.json", "nvbench.json"])
def test_values_of_other_types_are_refused_in_one_line(name, tmp_path):
    """Each value of a file in turn is another one: the file is read, or refused; nothing else happens."""
    raw = _raw(name)
    raw.get("benchmarks", [])[2:] = []
    said = []

    def try_others(inside):
        for key in list(inside) if isinstance(inside, dict) else range(len(inside[:1])):
            right = inside[key]
            for other in (None, [], {}, "x", -1, True):
                inside[key] = other
                try:
                    gw.read_results(write(tmp_path / "a.json", raw))
                except gw.BadResultsFile as error:
                    said.append(str(error))
            inside[key] = right
            if isinstance(right, (dict, list)):
                try_others(right)

    try_others(raw)
    assert [text for text in said if "\n" in text] == []
    assert len(said) > 20
