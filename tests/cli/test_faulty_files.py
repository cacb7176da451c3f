"""Every command under every fault of a file or of the output: one line, an exit code that says so, and no traceback."""

import contextlib
import copy
import errno
import gc
import hashlib
import importlib
import itertools
import json
import os
import subprocess
import sys
import time

import numpy as np
import pytest

import gridwise_py as gw
from helpers.commands import COMMANDS, gridwise
from helpers.paths import ROOT
from helpers.results import DEVICE, document, measure_here, measure_nothing, measurement, write

CEILINGS = {
    "copy": [
        {"array_bytes": size, "moved_bytes": 2 * size, "gbytes_per_s": 500.0 + i}
        for i, size in enumerate((1 << 12, 1 << 22, 1 << 28))
    ],
    "triad": [],
    "fma_gflops": 20_000.0,
    "cache_bytes": None,
}  # fmt: skip
HUGE = 10**400
WRITER = importlib.import_module("gridwise_py.bench.results.writer")
SHORT = ["--processes", "1", "--warmup-s", "0", "--sampling-s", "0", "--trials", "1", "--datatype", "u32"]
#: What each command is called with: the file of the test, and a good one beside it.
READERS = {
    "compare": ["compare", "bad.json", "good.json"],
    "compare the other way": ["compare", "good.json", "bad.json", "--format", "markdown"],
    "compare across": ["compare", "bad.json", "good.json", "--across"],
    "report": ["report", "bad.json", "-o", "out.html"],
    "plot": ["plot", "bad.json", "-o", "out.svg"],
    "roofline": ["roofline", "bad.json"],
    "trace": ["trace", "bad.json", "-o", "out.json"],
}


def _document():
    made = [measurement(mode=mode) for mode in ("hot", "batch")] + [measurement("copy", op=None, labels=("copy",))]
    return document(made, device={**DEVICE, "calibration": CEILINGS})


@pytest.fixture
def invented(device, monkeypatch):
    """Runs measure nothing, and are quick."""
    measure_nothing(monkeypatch, device)


@pytest.fixture
def here(device, monkeypatch):
    """Runs measure on the device that tests share."""
    measure_here(monkeypatch, device)


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Call a command in a folder with a good file and a bad one."""
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "good.json", _document())

    def call(words, bad=None, **options):
        if bad is not None:
            (tmp_path / "bad.json").write_text(bad if isinstance(bad, str) else json.dumps(bad))
        return gridwise(*words, **options)

    # Where the collector ends objects of other tests while a parser has used up the stack, Python writes lines, too.
    gc.disable()
    yield call
    gc.enable()


def _one_line(result, code, *, internal=False):
    assert result.exit_code == code, result.output
    assert internal or "internal error" not in result.output
    lines = result.stderr.strip().splitlines()
    assert len(lines) == 1, result.stderr
    assert lines[0].startswith("gridwise: "), lines
    return lines[0]


# ---- files to read


def _each(change):
    def changed(made):
        for entry in made["results"]:
            change(entry)

    return changed


def _stamps(*stamps):
    return lambda made: made["results"][0]["samples"][0].update(ticks=list(stamps))


def _beside(file, array="a"):
    def changed(made):
        made["ticks_file"] = file
        made["results"][0]["ticks"] = {"array": array, "sha256": "0" * 64}

    return changed


def _device(**values):
    return lambda made: made["device"].update(values)


def _speed(**values):
    return {**CEILINGS, "copy": [{"array_bytes": 4, "moved_bytes": 8, "gbytes_per_s": 1.0, **values}]}


#: What is refused, and where the message says that it is.
REFUSED = {
    "a sample of 400 digits": (_each(lambda e: e["kernels"][0]["samples_ns"].append(HUGE)), "line 1, column"),
    "a median of 400 digits": (_each(lambda e: e["whole"].update(gpu_span_ns=HUGE)), "line 1, column"),
    "n of 21 digits": (_each(lambda e: e.update(n=10**20)), "].n: 100000"),
    "a time of 1e300 ns": (_each(lambda e: e["whole"]["series"]["gpu_span"]["samples_ns"].append(1e300)), "line 1, "),
    "a time of 1e30 ns": (_each(lambda e: e["kernels"][0]["samples_ns"].append(1e30)), "samples_ns"),
    "a time of 1e-320 ns": (_each(lambda e: e["kernels"][0]["samples_ns"].append(1e-320)), "1e-320"),
    "an interval that ends before it begins": (
        _each(lambda e: e["whole"]["series"]["gpu_span"]["summary"].update(ci_low_ns=9e9, ci_high_ns=1.0)),
        "series.gpu_span.summary",
    ),
    "an interval with one end": (
        _each(lambda e: e["whole"]["series"]["gpu_span"]["summary"].update(ci_low_ns=None)), "series.gpu_span.summary",
    ),
    "a span shorter than its kernel": (_each(lambda e: e["whole"].update(gpu_span_ns=5.0)), "gpu_span_ns: 5, but"),
    "a canary that takes no time": (_each(lambda e: e.update(canary_ns=[0, 0, 0, 0])), "canary_ns"),
    "a tick of 1e30 ns": (_each(lambda e: e.update(tick_period_ns=1e30)), "tick_period_ns"),
    "stamps of more kernels": (_stamps([1, 2], [3, 4], [5, 6]), "$.results[0].samples"),
    "a stamp of 2^64": (_stamps([1, 2**64], [3, 4]), "samples[0].ticks"),
    "a sample without stamps": (_stamps(), "$.results[0].samples"),
    "stamps beside, in no file": (_beside(None), "$.results[0].ticks"),
    "stamps beside, in the folder": (_beside(".."), "$.ticks_file"),
    "floors that are words": (_device(floors={"empty_pass_ns": "x"}), "$.device.floors"),
    "a copy at no speed": (_device(calibration=_speed(gbytes_per_s=0)), "$.device.calibration"),
    "multiply-adds that are a word": (_device(calibration={**CEILINGS, "fma_gflops": "x"}), "$.device.calibration"),
    "observations that are a number": (_each(lambda e: e.update(observations={"blocks": 5})), "observations.blocks"),
    "a power that is a word": (
        _each(lambda e: e.update(observations={"blocks": [{"after": {"power_w": "x"}}]})), "power_w",
    ),
    "resumed runs that are a number": (lambda made: made["context"].update(resumed=5), "$.context.resumed"),
}  # fmt: skip


def _check_refused(call, command, made, place):
    said = _one_line(call(command, made), 2)
    assert said.startswith("gridwise: bad.json: ")
    assert place in said
    assert len(said) < 600
    assert not any(name.startswith("out") for name in os.listdir())


def _changed(change):
    made = _document()
    change(made)
    return made


@pytest.mark.needs("module:vl_convert")
def test_a_file_that_cannot_be_computed_with_is_refused_with_the_place(run):
    """By each command, of which one after the other gets a fault."""
    for (change, place), command in zip(REFUSED.values(), itertools.cycle(READERS.values())):
        _check_refused(run, command, _changed(change), place)


@pytest.mark.needs("module:vl_convert")
def test_a_file_that_is_nested_deeply(run):
    text = json.dumps(_document())
    for depth in (5_000, 200_000):
        deep = text.replace('"parameters": null', '"parameters": ' + "[" * depth + "]" * depth)
        for command in READERS.values():
            _check_refused(run, command, deep, "")


def _other_kernels(made):
    for entry in copy.deepcopy(made["results"]):
        made["results"].append({**entry, "round": 1, "kernels": entry["kernels"][:1], "samples": []})
        made["results"].append({**entry, "round": 2, "kernels": entry["kernels"] * 2, "samples": []})


ACCEPTED = {
    "formulas in labels": _each(lambda e: e["kernels"][0].update(label="$\\frac{$")),
    "formulas in axes": _each(lambda e: e["case"].update(distribution="$^$ _{$")),
    "formulas in the adapter": _device(adapter="NV $\\bad{ $ 1", driver="$x^$"),
    "half a character": _each(lambda e: e["kernels"][0].update(label="a\ud800b")),
    "rounds with other kernels": _other_kernels,
    "no work": _each(lambda e: e.update(work=None)),
    "no results": lambda made: made["results"].clear(),
}


def _check_shown_or_refused(result):
    assert "internal error" not in result.output, result.output
    assert result.exit_code in (0, 2, 3), result.output


@pytest.mark.needs("module:altair", "module:vl_convert")
def test_a_file_that_is_odd_is_shown_or_refused(run):
    """By the commands that are quick; a report is drawn of a file with all of it that can be in one."""
    for change in ACCEPTED.values():
        for name in ("compare", "compare across", "roofline", "trace"):
            _check_shown_or_refused(run(READERS[name], _changed(change)))
    odd = _document()
    for name in ACCEPTED.keys() - {"no results", "formulas in axes"}:
        ACCEPTED[name](odd)
    _check_shown_or_refused(run(READERS["report"], odd))


@pytest.mark.slow
@pytest.mark.parametrize("command", READERS.values(), ids=list(READERS))
def test_every_command_under_every_fault_and_oddity(run, command):
    for change, place in REFUSED.values():
        _check_refused(run, command, _changed(change), place)
    for change in ACCEPTED.values():
        _check_shown_or_refused(run(command, _changed(change)))


def test_timestamps_of_another_form_are_refused(run):
    for array in (
        np.array(["x", "y"]), np.arange(3, dtype=np.uint64), np.empty((0, 2, 2), np.uint64), np.array([np.nan, 1.0]),
        np.ones((50, 2, 2), np.uint64), np.zeros(3, dtype=[("a", "u8")]), np.ones((7, 2, 2), np.int64),
    ):  # fmt: skip
        made = _document()
        np.savez_compressed("bad.ticks.npz", a=array)
        _beside("bad.ticks.npz")(made)
        digest = hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()
        made["results"][0]["ticks"]["sha256"] = digest
        said = _one_line(run(READERS["trace"], made), 2)
        assert said.startswith("gridwise: bad.ticks.npz: the timestamps 'a' are ")
        assert "(7, 2, 2)" in said


def test_a_calibration_that_is_none(run, tmp_path):
    speed_0 = json.dumps({**_speed(gbytes_per_s=0), "floors_ns": {}, "device": {}})
    for text, place in (
        ("[" * 100_000, ""), ('{"copy": [], "fma_gflops": 1e999}', ""), ("{}", ""), ('{"copy": 1}', ""), ("\xff", ""),
        (speed_0, ": $.copy[0].gbytes_per_s"),
    ):  # fmt: skip
        (tmp_path / "c.json").write_text(text, encoding="latin-1")
        said = _one_line(run(["roofline", "good.json", "--calibration", "c.json"]), 2)
        assert said.startswith(f"gridwise: c.json{place}")


# ---- files to write

WRITERS = {
    "compare": ["compare", "good.json", "good.json", "-o"],
    "report": ["report", "good.json", "-o"],
    "plot": ["plot", "good.json", "-o"],
    "roofline": ["roofline", "good.json", "-o"],
    "trace": ["trace", "good.json", "--overwrite", "-o"],
}
SUFFIX = {"compare": ".txt", "report": ".html", "trace": ".json"}


@contextlib.contextmanager
def _no_room():
    """Let no file of this process become larger than 100 bytes. Not a fixture: pytest may write to a file itself."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.needs("module:altair", "module:vl_convert", "module:resource")
def test_without_room_the_older_file_stays(run):
    for command in (words for name, words in WRITERS.items() if name != "plot"):  # which writes as roofline does
        out = "old" + SUFFIX.get(command[0], ".svg")
        with open(out, "w") as file:
            file.write("older")
        if command[0] == "roofline":
            run([*command, "first" + out])  # what libraries write at first use, fonts say, is written now
            os.unlink("first" + out)
        with _no_room():
            result = run([*command, out])
        assert result.exit_code == 2, result.output
        assert "internal error" not in result.output
        assert "too large" in result.stderr.splitlines()[-1]
        with open(out) as file:
            assert file.read() == "older"
        assert sorted(os.listdir()) == ["good.json", out]
        os.unlink(out)


def test_a_name_that_is_too_long_is_refused_before_any_work(run):
    for command in (*WRITERS.values(), ["bench", "copy", "--json"], ["reproduce", "--json"]):
        out = "n" * 260 + SUFFIX.get(command[0], ".svg")
        assert "too long" in _one_line(run([*command, out]), 2)
    # The file itself could be written, but not what is beside it during the run.
    assert "too long" in _one_line(run(["bench", "copy", "--json", "n" * 245 + ".json"]), 2)
    assert os.listdir() == ["good.json"]


def test_a_run_without_room_measures_on_and_shows_its_table(invented, run, monkeypatch):
    def full(path, **options):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))

    monkeypatch.setattr(WRITER, "whole_file", full)
    result = run(["bench", "copy", "--n", "100,200,300", *SHORT, "--json", "out.json"])
    assert result.exit_code == 2, result.output
    assert [n for n in ("100", "200", "300") if f" {n} " in result.stdout] == ["100", "200", "300"]
    assert "gridwise: --json: out.json cannot be written: No space left on device" in result.stderr
    assert os.listdir() == ["good.json"]


def test_a_disk_that_is_full_for_a_while_loses_nothing(invented, run, monkeypatch):
    real, calls = WRITER.whole_file, []

    def full_at_first(path, **options):
        calls.append(path)
        if len(calls) <= 2:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
        return real(path, **options)

    monkeypatch.setattr(WRITER, "whole_file", full_at_first)
    monkeypatch.setattr(WRITER, "_SHARE_OF_TIME", 1e9)  # on a slow disk too, each case is written
    result = run(["bench", "copy", "--n", "100,200,300", *SHORT, "--json", "out.json"])
    assert result.exit_code == 0, result.output
    assert len(gw.read_results("out.json").results) == 3


def test_measurements_are_not_replaced_unless_it_is_said(here, run):
    words = ["bench", "copy", "--n", "100", *SHORT, "--json", "out.json"]
    open("out.json", "w").close()  # an empty file holds no measurements: mktemp makes such ones
    assert run(words).exit_code == 0
    first = gw.read_results("out.json")
    assert "--overwrite" in _one_line(run(words), 2)
    assert gw.read_results("out.json") == first
    assert run([*words, "--overwrite"]).exit_code == 0
    assert gw.read_results("out.json") != first
    assert "--overwrite" in _one_line(run(["reproduce", "--json", "out.json"]), 2)


def test_timestamps_beside_the_file_are_announced(here, require, run, monkeypatch):
    require("timestamp-query")
    monkeypatch.setattr(WRITER, "MAX_TICKS_INSIDE_BYTES", 10)
    os.mkdir("folder")
    os.symlink("folder/real.json", "out.json")
    result = run(["bench", "copy", "--n", "100", *SHORT, "--json", "out.json"])
    assert result.exit_code == 0, result.output
    assert "wrote out.json, and its timestamps in real.ticks.npz" in result.stderr
    assert sorted(os.listdir("folder")) == ["real.json", "real.ticks.npz"]
    # Both are found through the link, too.
    assert run(["trace", "out.json", "-o", "trace.json"]).exit_code == 0


@pytest.mark.needs("named pipes")
def test_results_go_through_a_pipe(invented, run):
    import stat
    import threading

    os.mkfifo("pipe")
    read = []
    reader = threading.Thread(target=lambda: read.append(open("pipe", "rb").read()), daemon=True)  # noqa: SIM115
    reader.start()
    result = run(["bench", "copy", "--n", "100,200", *SHORT, "--json", "pipe"])
    assert result.exit_code == 0, result.output
    reader.join(30)
    assert len(json.loads(read[0])["results"]) == 2
    assert stat.S_ISFIFO(os.stat("pipe").st_mode)
    assert sorted(os.listdir()) == ["good.json", "pipe"]


# ---- the output, and how a command ends


def _gridwise(words, **options):
    return subprocess.run([sys.executable, "-m", "gridwise_py", *words], stderr=subprocess.PIPE, text=True, **options)


@pytest.mark.slow
@pytest.mark.needs("linux")
def test_an_output_that_is_full_is_2(run):
    with open("/dev/full", "w") as full:
        done = _gridwise(["compare", "good.json", "good.json"], stdout=full)
    assert done.returncode == 2
    assert done.stderr == "gridwise: the output cannot be written: No space left on device\n"


@pytest.mark.slow
@pytest.mark.parametrize(
    "words", [["compare", "good.json", "good.json"], ["bench", "copy", "--n", "10", *SHORT, "-q", "--json", "-"]],
    ids=lambda words: words[0],
)  # fmt: skip
def test_a_reader_that_is_gone_is_141(run, words):
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as pipe:
        done = _gridwise(words, stdout=pipe)
    assert done.returncode == 141
    assert "cannot be written" not in done.stderr


def test_every_encoding_can_show_a_comparison(run):
    for encoding, form in (("ascii", "table"), ("latin-1", "markdown"), ("cp437", "table"), ("cp1252", "json")):
        result = run(["compare", "good.json", "good.json", "--format", form], charset=encoding)
        assert result.exit_code == 0, result.output
        assert "internal error" not in result.output


@pytest.mark.gpu
@pytest.mark.needs("linux")
@pytest.mark.parametrize(
    "words",
    [
        ["bench", "copy", "--n", "10", *SHORT, "-q"],
        pytest.param(
            ["ab", str(ROOT), str(ROOT), "copy", "--n", "10", "--pairs", "2", "--rounds", "1", "--turn-s", "0.001"],
            marks=pytest.mark.slow,
        ),
    ],
    ids=lambda words: words[0],
)
def test_json_on_stdout_has_nothing_beside_it(tmp_path, words):
    """So that a pipe into another program works; the table is on stderr."""
    done = _gridwise([*words, "--json", "-"], stdout=subprocess.PIPE, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["schema"] == f"gridwise.{words[0]}"
    assert "copy u32" in done.stderr
    assert os.listdir(tmp_path) == []


def test_several_files_are_no_stream(run):
    said = run(["bench", "copy", "--adapter", "all", "--json", "/dev/null"])
    assert (said.exit_code, "a file per adapter" in said.output) == (2, True)


ENDINGS = [
    (RuntimeError("of two\nlines"), 2, "internal error, a bug of gridwise: RuntimeError: of two lines; GRIDWISE_"),
    (RecursionError("deep"), 2, "RecursionError: deep"),
    (MemoryError(), 2, "MemoryError"),
    (PermissionError(errno.EACCES, "Permission denied", "some/file"), 2, "some/file: Permission denied"),
    (OSError(errno.ENOSPC, "No space left on device"), 2, "the output cannot be written: No space left"),
    (KeyboardInterrupt(), 130, "interrupted"),
]


def test_no_ending_is_taken_for_a_verdict(run, monkeypatch):
    """Each command has one of the errors, and one has them all."""
    needed = {
        "ab": ["ab", ".", "."], "import": ["import", "raw.json", "-o", "out.json"], "worker": ["worker", "tls://head:1"],
        "schema": ["schema", "bench"], "diff": ["diff", ".", "."], "bisect": ["bisect", "a", "b", "--", "scan"],
        "counts": ["counts", "file.py"],
    }  # fmt: skip
    cases = [*zip(sorted(COMMANDS), itertools.cycle(ENDINGS)), *(("compare", ending) for ending in ENDINGS)]
    for command, (error, code, said) in cases:

        def fail(*args, error=error, **options):
            raise error

        monkeypatch.setattr(COMMANDS[command], "invoke", fail)
        words = {**needed, **READERS}.get(command, [command])
        result = run([command, *words[1:]], _document())
        assert said in _one_line(result, code, internal=True), command


def test_an_interrupt_while_an_object_is_freed_is_not_lost(run, monkeypatch, interruptible):
    """Python prints that it ignores what a finalizer raises; wgpu-py's objects have finalizers."""

    class Freed:
        def __del__(self):
            raise KeyboardInterrupt

    def work(*args, **options):
        freed = Freed()
        del freed
        time.sleep(20)

    monkeypatch.setattr(COMMANDS["compare"], "invoke", work)
    result = run(["compare", "good.json", "good.json"])
    assert (result.exit_code, _one_line(result, 130)) == (130, "gridwise: interrupted")


def test_a_traceback_is_shown_on_demand(run, monkeypatch):
    def fail(*args, **options):
        raise RuntimeError("inside")

    monkeypatch.setattr(COMMANDS["compare"], "invoke", fail)
    for value in ("1", "a word that is unknown"):
        monkeypatch.setenv("GRIDWISE_TRACEBACK", value)
        result = run(["compare", "good.json", "good.json"])
        assert result.exit_code == 2
        assert "Traceback (most recent call last)" in result.stderr
        assert "in fail" in result.stderr
