"""The command line: help, exit codes, what is printed and what is written."""

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import gridwise_py as gw
from helpers.commands import COMMANDS, being_written, gridwise
from helpers.remedies import commands_in
from helpers.results import measure_here, measure_nothing

PACKAGE = Path(gw.__file__).parent
SHORT = ["--processes", "1", "--warmup-s", "0", "--sampling-s", "0", "--trials", "2"]


def test_every_command_and_option_has_help():
    for words in ([], *([name] for name in COMMANDS)):
        result = gridwise(*words, "--help")
        assert result.exit_code == 0
        assert result.output.startswith("Usage: ")
        assert gridwise(*words, "-h").output == result.output
    shown = gridwise("--help").output
    for name, command in COMMANDS.items():
        assert name in shown
        for parameter in command.params:
            is_option = parameter.param_type_name == "option"
            assert not is_option or parameter.help, f"{name} {parameter.opts}"
    assert gridwise("--version").output.startswith("gridwise, version ")


def _texts(path):
    """The texts of a module, f-strings with X for what is put into them."""
    source = path.read_text()
    for node in ast.walk(ast.parse(source if "gridwise " in source else "")):
        if isinstance(node, ast.JoinedStr):
            yield "".join(getattr(part, "value", "") if isinstance(part, ast.Constant) else "X" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def test_commands_that_texts_advise_have_the_options_that_these_name():
    """An option that was renamed would stay in an error's advice."""
    options = {name: {word for each in command.params for word in each.opts} for name, command in COMMANDS.items()}
    found = 0
    for path in (each for name in ("bench", "cli", "fleet", "dask") for each in PACKAGE.joinpath(name).rglob("*.py")):
        for text in _texts(path):
            for name, named in commands_in(text):
                found += name in options
                assert {*named} <= options.get(name, {*named}) | {"--help"}, f"{path.name}: {text}"
    assert found > 25


@pytest.fixture
def invented(device, monkeypatch):
    """Runs measure nothing, and are quick."""
    measure_nothing(monkeypatch, device)


@pytest.fixture
def here(device, monkeypatch):
    """Runs measure on the device that tests share."""
    measure_here(monkeypatch, device)
    return device


def test_the_table(here):
    result = gridwise("bench", "scan", "--n", "2^12", "--datatype", "u32", *SHORT)
    assert result.exit_code == 0, result.output
    lines = result.output.splitlines()
    assert any(line.split()[:3] == ["copy", "u32", "2^12"] and line.split()[-1] == "right" for line in lines)
    assert any(line.split()[:4] == ["scan", "add", "u32", "2^12"] and line.split()[-1] == "right" for line in lines)
    assert "2 trials a sample" in result.stdout


def test_a_suite(here, tmp_path):
    (tmp_path / "tiny.toml").write_text(
        "processes = 1\n[protocol]\nwarmup_s = 0\ntimeout_s = 0.001\nbatch_trials = 3\n"
        "[[sweep]]\nprimitives = ['scan']\naxes = ['n=100', 'datatype=u32']\n"
    )
    path = tmp_path / "out.json"
    result = gridwise("bench", "--suite", tmp_path / "tiny.toml", "--trials", 4, "--json", path, "--order", "given")
    assert result.exit_code == 0, result.output
    document = gw.read_results(path)
    assert document.context.suite == "tiny"
    # What is typed goes before what the suite says.
    assert document.protocol["batch_trials"] == 4
    assert document.protocol["warmup_s"] == 0
    assert [entry.primitive for entry in document.results] == ["copy", "scan"]
    assert all(entry.trials == 4 for entry in document.results)


def test_a_suite_is_narrowed(invented, tmp_path):
    (tmp_path / "tiny.toml").write_text(
        "[protocol]\nwarmup_s = 0\ntimeout_s = 0.001\n"
        "[[sweep]]\nprimitives = ['scan', 'vector_add']\naxes = ['n=2^30', 'datatype=u32', 'mode=hot,batch']\n"
        "[[sweep]]\nprimitives = ['reduce']\naxes = ['n=2^29']\n"
    )
    path = tmp_path / "out.json"
    words = ["--suite", tmp_path / "tiny.toml", "scan", "-a", "n=10,20", "--mode", "hot", "--processes", 1]
    result = gridwise("bench", *words, "--json", path, "--order", "given")
    assert result.exit_code == 0, result.output
    found = [(entry.primitive, entry.n, entry.mode) for entry in gw.read_results(path).results]
    assert found == [(name, n, "hot") for n in (10, 20) for name in ("copy", "scan")]
    assert gridwise("bench", "--suite", tmp_path / "tiny.toml", "copy").exit_code == 2


def test_rounds_are_results_of_their_own_and_one_row(invented, tmp_path):
    path = tmp_path / "out.json"
    result = gridwise("bench", "copy", "--n", "2^12", "--datatype", "u32", *SHORT, "--rounds", 3, "--json", path)
    assert result.exit_code == 0, result.output
    assert [(entry.round, entry.position) for entry in gw.read_results(path).results] == [(0, 0), (1, 0), (2, 0)]
    assert sum("2^12" in line for line in result.stdout.splitlines()) == 1


@pytest.mark.slow
def test_what_the_device_can_do_is_in_the_file_and_its_share_in_the_table(device, require, tmp_path):
    require("timestamp-query")
    path = tmp_path / "out.json"
    result = gridwise("bench", "scan", "--n", "2^12", "--mode", "hot,cold", *SHORT, "--json", path)
    assert result.exit_code == 0, result.output
    document = gw.read_results(path)
    assert document.device.floors["empty_pass_ns"] > 0
    calibration = document.device.calibration
    assert calibration.tick_check["ratio"] > 0
    assert calibration.fma_gflops > 0
    # The size of the run, and one of which no part stays in a cache.
    beyond_caches = 1 << 26 if gw.capabilities(device).is_cpu else 1 << 28
    assert [point.array_bytes for point in calibration.copy] == [4 << 12, beyond_caches]
    for entry in document.results:
        small, large = (max(getattr(calibration, name)[i].gbytes_per_s for name in ("copy", "triad")) for i in (0, 1))
        peak = large if entry.mode == "cold" else small
        assert entry.rates.peak_gbytes_per_s == peak
        assert entry.rates.share_of_peak == pytest.approx(entry.rates.gbytes_per_s / peak)
        assert (entry.rates.share_of_fma is not None) == (entry.datatype == "f32")
    # On a CPU it is in the file alone, and the table says why.
    assert ("  of peak  " in result.stdout) != gw.capabilities(device).is_cpu
    assert ("Of peak is left out" in result.stdout) == gw.capabilities(device).is_cpu


def test_all_adapters_in_turn(device, monkeypatch, tmp_path):
    measure_nothing(monkeypatch, device)
    asked = []
    monkeypatch.setattr("gridwise_py.bench.sweep.runner.request_device", lambda which: asked.append(which) or device)
    path = tmp_path / "out.json"
    result = gridwise("bench", "copy", "--n", 100, "--datatype", "u32", *SHORT, "--adapter", "all", "--json", path)
    assert result.exit_code == 0, result.output
    assert asked == [adapter.index for adapter in gw.list_adapters()]
    assert sorted(os.listdir(tmp_path)) == sorted(f"out.adapter{index}.json" for index in asked)
    for index in asked:
        assert [entry.n for entry in gw.read_results(tmp_path / f"out.adapter{index}.json").results] == [100]


def test_a_wrong_result_is_shown_and_is_4(here, monkeypatch, tmp_path):
    monkeypatch.setattr(gw.Scan, "reference", lambda self, input: np.cumsum(input, dtype=np.uint32) + np.uint32(1))
    path = tmp_path / "out.json"
    result = gridwise("bench", "scan", "--n", 1000, "--datatype", "u32", *SHORT, "--json", path)
    assert result.exit_code == 4, result.output
    assert "WRONG" in result.output
    assert "item 0 is" in result.output
    assert "1,000 wrong items" in " ".join(result.output.split())
    scan = next(entry for entry in gw.read_results(path).results if entry.primitive == "scan")
    assert scan.correct is False
    assert scan.mismatch.startswith("item 0 is")


def test_a_case_that_fails_is_2_and_the_rest_goes_on(here, tmp_path):
    path = tmp_path / "out.json"
    result = gridwise("bench", "reduce", "--n", "0,100", "--op", "min", "--datatype", "u32", *SHORT, "--json", path)
    assert result.exit_code == 2, result.output
    assert "failed" in result.output
    errors = {(e.primitive, e.n): e.error for e in gw.read_results(path).results}
    assert errors.pop(("reduce", 0)).startswith("EmptyReductionError")
    assert set(errors.values()) == {None}


BAD_INPUT = [
    (["sort_of"], "No such command 'sort_of'"),
    (["bench", "quicksort"], "'quicksort' is not one of"),
    (["bench", "scna"], "did you mean 'scan'?"),
    (["tune", "--max-n", "2^x"], "'2^x' is not a count"),
    (["bench", "copy", "--rounds", "100000000"], "but a run has at most 1,000,000"),
    (["bench", "--n", "12,x"], "'x' is not a count"),
    (["bench", "-a", "n[pow2]=[16:x]"], "column 13"),
    (["bench", "-a", "n=1", "--n", "2"], "'n' is given twice"),
    (["bench", "--trials", "0"], "--trials"),
    (["bench", "--suite", "slow"], "no suite 'slow'"),
    (["bench", "--suite", "quick", "copy"], "the suite 'quick' has none of copy"),
    (["bench", "--rounds", "0"], "--rounds"),
    (["bench", "--adapter", "no such adapter"], "no adapter has 'no such adapter'"),
    (["bench", "--json", "no/such/folder/x.json"], "does not exist; make it first"),
    (["bench", "--resume", "none.json"], "none.json"),
    (["plot", "none.json", "-o", "x.png"], "none.json: cannot be read"),
    (["plot", "none.json", "-o", "no/such/folder/x.png"], "does not exist; make it first"),
    (["bench", "copy", "--warmup-s", "5min"], "'5min' is not a number of seconds; write one without a unit: 300"),
    (
        ["bench", "copy", "--sampling-s", "2 s"],
        "'2 s' is not a number of seconds; write one without a unit: 2",
    ),
    (["reproduce", "--idle-s", "long"], "'long' is not a number of seconds; write one such as 0.5"),
    (["ab", ".", ".", "--turn-s", "11"], "11.0 is not in the range 0.001<=x<=10"),
    (["bench", "copy", "--toggles", "a"], "the engine wgpu has no toggles; add --engine dawn"),
    (["bench", "copy", "--processes", "10001"], "10001 is not in the range 1<=x<=10000"),
    (["bench", "copy", "--budget", "5 parsecs"], "'5 parsecs' is not a time; write 60s, 5min or 1h"),
]


@pytest.mark.needs("module:vl_convert")
def test_bad_input_is_2_and_says_what_is_wrong(device, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for words, said in BAD_INPUT:
        result = gridwise(*words)
        assert (result.exit_code, said in result.output) == (2, True), (words, result.output)
        assert os.listdir(tmp_path) == []


def test_files_that_cannot_be_resumed_are_2(device, tmp_path):
    path = tmp_path / "out.json"
    path.write_text('{"schema": "gridwise.bench", "schema_version": 99}')
    result = gridwise("bench", "copy", "--n", 10, *SHORT, "--resume", path)
    assert result.exit_code == 2
    assert "$.schema_version: 99 is newer" in result.output
    result = gridwise("bench", "copy", "--n", 10, *SHORT, "--resume", path, "--adapter", "all")
    assert result.exit_code == 2
    assert "--adapter all" in result.output
    assert path.read_text() == '{"schema": "gridwise.bench", "schema_version": 99}'


def test_the_partial_file_of_another_run_is_not_replaced(invented, tmp_path):
    """It has the finished cases of a run that was interrupted, or that another process is making now."""
    path, partial = tmp_path / "out.json", tmp_path / "out.partial.json"
    partial.write_text("finished cases")
    words = ["bench", "copy", "--n", 10, *SHORT, "--json", path]
    refused = gridwise(*words)
    assert (refused.exit_code, partial.read_text(), path.exists()) == (2, "finished cases", False)
    assert f"--resume {partial}" in refused.output
    assert gridwise(*words, "--overwrite").exit_code == 0
    assert path.is_file()


def test_two_runs_do_not_write_the_same_file(invented, tmp_path):
    """The later one would replace the file of the first, and mix their timestamps; --overwrite does not ask for it."""
    bench = ["bench", "copy", "--n", 10, *SHORT]
    for words, name in (
        (bench, "out.json"),
        ([*bench, "--adapter", "all"], "out.adapter0.json"),
        (["reproduce", "trials", "--repeats", 2, "--warmup-s", 0], "out.json"),
    ):
        with being_written(tmp_path / name):
            refused = gridwise(*words, "--json", tmp_path / "out.json", "--overwrite")
            assert (refused.exit_code, os.listdir(tmp_path)) == (2, [f".{name}.lock"])
        said = f"process {os.getpid()}) writes {tmp_path / name} now; wait for its end, or name another"
        assert said in refused.output
        if words[0] == "bench":
            assert gridwise(*words, "--json", tmp_path / "out.json", "--overwrite").exit_code == 0
            written = os.listdir(tmp_path)
            assert name in written
            for each in written:
                os.unlink(tmp_path / each)


@pytest.mark.slow
@pytest.mark.parametrize("words", [["info"], ["bench", "copy"], ["bench", "copy", "--adapter", "all"]], ids=" ".join)
def test_no_adapter_is_5(words):
    environment = os.environ | {"VK_DRIVER_FILES": "/nonexistent", "VK_ICD_FILENAMES": "/nonexistent"}
    environment["WGPU_BACKEND_TYPE"] = "Vulkan"
    run = subprocess.run([sys.executable, "-m", "gridwise_py", *words], env=environment, capture_output=True, text=True)
    assert run.returncode == 5, run.stdout + run.stderr
    assert "no GPU adapter was found" in run.stderr


def test_info_as_json(device, monkeypatch):
    monkeypatch.setattr(gw, "request_device", lambda adapter: device)
    result = gridwise("info", "--format", "json")
    assert result.exit_code == 0
    document = json.loads(result.stdout)
    assert document["adapters"][0]["index"] == 0
