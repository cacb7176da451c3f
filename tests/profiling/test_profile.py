"""gw.profile: regions, primitives, kernels, transfers and passes of one's own, on both clocks."""

import concurrent.futures
import gc
import re
import sys
import threading
import time

import numpy as np
import pytest
import wgpu
from rich.cells import cell_len

import gridwise_py as gw
from helpers.bare import copy_by_staging, device_with
from helpers.traces import load

X = np.random.default_rng(1).integers(0, 99, 300_007, dtype=np.uint32)
MINE = """
@group(0) @binding(0) var<storage, read_write> x: array<u32>;
@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  if (id.x < arrayLength(&x)) { x[id.x] += 1u; }
}"""


@pytest.fixture
def timed(device, require):
    require("timestamp-query", "timestamp-query-inside-encoders")
    return device


@pytest.fixture
def staging(timed, monkeypatch):
    """Copies go through staging buffers, also where CPU and GPU share memory."""
    copy_by_staging(monkeypatch, timed)


def _rows(prof, **options):
    return {(row.name, row.kind): row for row in prof.key_averages(**options)}


def test_regions_primitives_and_kernels(timed):
    scan = gw.Scan(timed, strategy="reduce_then_scan")
    x, out = gw.asarray(X, timed), None
    with gw.profile(timed) as prof:
        with prof.region("forward"):
            for _ in range(3):
                with prof.region("inner"):
                    out = scan.execute(input=x).output
        gw.sum(x)
    np.testing.assert_array_equal(out.to_numpy(), np.cumsum(X, dtype=np.uint32))
    rows = _rows(prof)
    forward, inner, scans = rows["forward", "region"], rows["inner", "region"], rows["Scan", "primitive"]
    kernels = [row for row in prof.key_averages() if row.kind == "kernel"]
    assert {row.name for row in kernels} == {"reduce blocks", "scan totals", "scan blocks", "reduce"}
    assert (forward.calls, inner.calls, scans.calls) == (1, 3, 3)
    assert all(row.calls == (1 if row.name == "reduce" else 3) for row in kernels)
    ours = sum(row.gpu_time_total_ns for row in kernels if row.name != "reduce")
    assert forward.gpu_time_total_ns == inner.gpu_time_total_ns == scans.gpu_time_total_ns == pytest.approx(ours)
    assert ours > 0
    assert scans.shapes == ("input u32[300007], output u32[300007]",)
    assert forward.cpu_time_total_ns >= inner.cpu_time_total_ns >= scans.cpu_time_total_ns > 0
    assert forward.self_cpu_time_ns == forward.cpu_time_total_ns - inner.cpu_time_total_ns
    assert rows["submit", "host"].calls == 4
    # Self times sum up to the whole.
    inside = [row for row in prof.key_averages() if row.name not in ("Reduce", "reduce")]
    assert sum(row.self_gpu_time_ns or 0 for row in inside) == pytest.approx(forward.gpu_time_total_ns)


def test_the_gpu_times_are_those_of_the_timing_result(timed):
    x = gw.asarray(X, timed)
    scan = gw.Scan(timed)
    with gw.profile(timed) as prof:
        run = scan.execute(input=x, enable_gpu_timing=True, trials=3)
    rows = _rows(prof)
    result = run.get_timing_result()
    assert rows["Scan", "primitive"].gpu_time_total_ns == pytest.approx(sum(result.gpu_total_time_ns))


def test_transfers_and_allocations(timed, staging):
    with gw.profile(timed) as prof, prof.region("all"):
        x = gw.asarray(X, timed)
        y = gw.empty_like(x)
        y.copy_from(X[::-1])
        np.testing.assert_array_equal(y.to_numpy(), X[::-1])
    np.testing.assert_array_equal(x.to_numpy(), X)
    rows = _rows(prof)
    assert rows["upload", "transfer"].calls == 2
    assert rows["download", "transfer"].calls == 1
    for name in ("copy to GPU", "copy to host"):
        assert rows[name, "copy"].gpu_time_total_ns > 0
    assert rows["all", "region"].allocated_bytes == 2 * -(-x.nbytes // 16) * 16, "what was asked for, not whole blocks"
    assert rows["copy to staging", "host"].cpu_time_total_ns > 0


@pytest.mark.needs("memory that CPU and GPU share")
def test_copies_of_mapped_arrays_are_steps_of_the_host(timed):
    with gw.profile(timed) as prof:
        x = gw.asarray(X, timed)
        np.testing.assert_array_equal(x.to_numpy(), X)
    rows = _rows(prof)
    for transfer, copied in (("upload", "copy to GPU memory"), ("download", "copy from GPU memory")):
        assert rows[transfer, "transfer"].calls == rows[copied, "host"].calls == 1
        assert rows[copied, "host"].cpu_time_total_ns > 0
    assert not any(kind == "copy" for _, kind in rows), "the GPU copies nothing"


def test_passes_of_ones_own(timed):
    x = gw.asarray(X, timed)
    kernel = gw.Kernel(timed, MINE, {"x": "read_write"}, -(-x.size // 64), label="mine")
    scratch = timed.create_buffer(size=x.nbytes, usage=wgpu.BufferUsage.COPY_DST)
    with gw.profile(timed) as prof, prof.region("custom"):
        encoder = timed.create_command_encoder()
        writes = prof.timestamp_writes(encoder, "raw pass", workgroups=(1, 1, 1), moved_bytes=8)
        step = kernel.bind(x=x).bound_plan.steps[0]
        compute = encoder.begin_compute_pass(timestamp_writes=writes)
        compute.set_pipeline(step.pipeline)
        compute.set_bind_group(0, step.group)
        compute.dispatch_workgroups(*step.workgroups)
        compute.end()
        with prof.commands(encoder, "raw copy", moved_bytes=2 * x.nbytes):
            encoder.copy_buffer_to_buffer(x.buffer, 0, scratch, 0, x.nbytes)
            with prof.commands(encoder, "a part of it"):
                encoder.clear_buffer(scratch)
            assert prof.timestamp_writes(encoder, "a pass in it") is None
            gw.Copy(timed).record(encoder, input=x)  # in the time of "raw copy", and not counted again
            gw.Copy(timed).execute(encoder=encoder, input=x)
        kernel.execute(encoder=encoder, x=x)
        kernel.record(encoder, x=x)
        timed.queue.submit([encoder.finish()])
    rows = _rows(prof)
    custom = rows["custom", "region"]
    parts = [rows["raw pass", "pass"], rows["raw copy", "commands"], rows["mine", "kernel"]]
    assert [part.calls for part in parts] == [1, 1, 2]
    assert custom.gpu_time_total_ns == pytest.approx(sum(part.gpu_time_total_ns for part in parts))
    assert not {"copy", "a part of it", "a pass in it"} & {name for name, kind in rows if kind != "primitive"}


def test_what_is_submitted_inside_of_commands_counts_by_itself(timed, staging):
    """It is on an encoder of its own, so the time of the commands does not hold it."""
    x, copy = gw.asarray(X, timed), gw.Copy(timed)
    copy.execute(input=x)
    with gw.profile(timed) as prof, prof.region("all"):
        encoder = timed.create_command_encoder()
        with prof.commands(encoder, "mine"):
            y = gw.asarray(X, timed)
            copy.record(encoder, input=x)  # in the time of "mine", also after an upload
            gw.sum(y)
        timed.queue.submit([encoder.finish()])
    rows = _rows(prof)
    on_gpu = {name: row for (name, kind), row in rows.items() if kind in ("kernel", "copy", "commands")}
    assert {name: row.calls for name, row in on_gpu.items()} == {"copy to GPU": 1, "reduce": 1, "mine": 1}
    total_ns = sum(row.gpu_time_total_ns for row in on_gpu.values())
    assert rows["all", "region"].gpu_time_total_ns == pytest.approx(total_ns)


def test_the_session_of_a_caller_is_used(timed):
    x, session = gw.asarray(X, timed), gw.timing_helper(timed).session()
    encoder = timed.create_command_encoder()
    encoder.begin_compute_pass(timestamp_writes=session.span("before")).end()
    with gw.profile(timed) as prof:
        gw.Copy(timed).record(encoder, timing=session, input=x)
        timed.queue.submit([encoder.finish()])
        session.submitted()
    spans = session.spans()
    assert [span.label for span in spans] == ["before", "copy"]
    assert _rows(prof)["copy", "kernel"].gpu_time_total_ns == spans[1].ns


def test_what_was_not_submitted_is_not_measured_yet(timed):
    x = gw.asarray(X, timed)
    encoder = timed.create_command_encoder()
    with gw.profile(timed) as prof, prof.region("late"):
        gw.Copy(timed).execute(encoder=encoder, input=x)
    assert _rows(prof)["copy", "kernel"].gpu_time_total_ns is None
    assert _rows(prof)["late", "region"].gpu_time_total_ns is None
    assert "not measured" in prof.key_averages().table()
    timed.queue.submit([encoder.finish()])
    assert _rows(prof)["late", "region"].gpu_time_total_ns > 0


def test_without_timestamps_the_cpus_times_stay(device):
    bare = device_with(device)
    prof = gw.profile(bare)
    with pytest.warns(gw.GridwiseWarning, match="timestamp-query"):
        prof.__enter__()
    with prof.region("r"):
        x = gw.asarray(X, bare)
        gw.sum(x)
        encoder = bare.create_command_encoder()
        assert prof.timestamp_writes(encoder, "mine") is None
        np.testing.assert_array_equal(x.to_numpy(), X)
    prof.__exit__(None, None, None)
    rows = _rows(prof)
    assert rows["r", "region"].gpu_time_total_ns is None
    assert rows["Reduce", "primitive"].cpu_time_total_ns > 0


# ---- the table


def test_the_table(timed):
    x = gw.asarray(X, timed)
    with gw.profile(timed) as prof, prof.region("[bold]markup[/bold]"):
        gw.cumsum(x)
        gw.sum(x[:100])
        gw.sum(x)
    text = prof.key_averages().table()
    encode = next(row for row in text.splitlines() if row.startswith("encode "))
    assert "0 ns" not in encode, "it has no time on the GPU"
    text = prof.key_averages().table(sort_by="gpu_time_total", row_limit=2)
    assert text.startswith(gw.capabilities(timed).adapter)
    assert "[bold]markup[/bold]" in text
    assert f"{len(prof.key_averages()) - 2} more rows; row_limit=-1 shows all" in text
    assert "more rows" not in prof.key_averages().table(row_limit=-1)
    for heading in ("self CPU", "CPU total", "self GPU", "GPU total", "calls", "allocated", "shapes"):
        assert heading in text
    averages = prof.key_averages()
    for key, column in (
        ("gpu_time_total", "gpu_time_total_ns"),
        ("self_cuda_time_total", "self_gpu_time_ns"),
        ("cpu_time_total", "cpu_time_total_ns"),
        ("count", "calls"),
    ):
        values = [getattr(row, column) for row in averages.sorted_by(key)]
        known = [value for value in values if value is not None]
        assert known == sorted(known, reverse=True)
        assert values[: len(known)] == known
    with pytest.raises(gw.ArgumentError, match="gpu_time_total"):
        averages.table(sort_by="time")
    with pytest.raises(gw.ArgumentError, match="row_limit"):
        averages.table(row_limit=-2)
    by_shape = _rows(prof, group_by_input_shape=True)
    assert len(list(prof.key_averages(group_by_input_shape=True))) > len(averages)
    assert by_shape


SHAPES = ("input u32[1048576], output u32[1048576]", "input u32[300007], output u32[300007]")
LONG = "a_region_whose_name_has_no_place_to_fold_it, and then some words"


def _invented():
    """Averages of which every cell is told from all others."""
    rows = [
        gw.KeyAverage(LONG, "region", 3, 1_010.0, 2_020.0, None, 3_030.0, (), 123_456),
        gw.KeyAverage("Scan", "primitive", 41, 4_040.0, 5_050.0, None, 6_060.0, SHAPES, 0),
        gw.KeyAverage("scan", "kernel", 52, None, None, 7_070.0, 8_080.0, ("64 × 1 × 1 workgroups",), 0),
    ]
    return gw.KeyAverages(rows, "an adapter")


@pytest.mark.parametrize("width", [20, 60, 80, 300])
def test_no_width_cuts_a_name_and_columns_stay_in_line(width):
    """Whatever characters a name has: rich has its own tables of how wide one is in a terminal."""
    names = ["スキャンと並べ替え", "e\u0301te\u0301 u\u0308ber", "a plain name", "並べ sort 替え" * 5, LONG]
    rows = [gw.KeyAverage(name, "region", 3, 1_010.0, 2_020.0, None, 3_030.0, (), 123_456) for name in names]
    lines = gw.KeyAverages(rows, "an adapter").table(sort_by=None, width=width).splitlines()
    assert max(map(cell_len, lines)) <= max(width, 56)  # there, what is never left out is as narrow as it can be
    rule = next(i for i, line in enumerate(lines) if line.startswith("─"))
    pieces = "".join(re.split(r"  +|left out", line)[0] for line in lines[rule + 1 :])
    assert pieces.replace(" ", "").startswith("".join(names).replace(" ", ""))
    assert len({cell_len(line.partition("3.03 µs")[0]) for line in lines if "3.03 µs" in line}) == 1
    assert sum("3.03 µs" in line for line in lines) == len(names)


def test_columns_that_matter_least_are_left_out_first():
    averages = _invented()
    found = []
    for width in range(140, 20, -1):
        note = re.search(r"left out at a width of \d+: (.*); width", " ".join(averages.table(width=width).split()))
        left_out = set(note[1].split(", ")) if note else set()
        assert left_out >= set(found)
        found += left_out - set(found)
    assert found == ["allocated", "self CPU", "kind", "self GPU", "CPU total"]


def test_the_width_is_that_of_the_terminal_and_that_of_a_notebook_without_one(monkeypatch):
    averages = _invented()
    assert averages.table() == averages.table(width=115)
    assert "left out" not in averages.table()
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "80")
    assert averages.table() == averages.table(width=80) != averages.table(width=115)
    with pytest.raises(gw.ArgumentError, match="width"):
        averages.table(width=0)


def test_reprs_of_a_profile(timed):
    prof = gw.profile(timed)
    adapter = gw.capabilities(timed).adapter
    assert repr(prof) == f"Profile({adapter}, not used, 0 entries)"
    assert prof._repr_html_() is None
    with prof, prof.region("<b>"):
        assert re.fullmatch(r"Profile\(.*, open, \d[\d.]* (ns|µs|ms|s), 1 entry\)", repr(prof))
        assert prof._repr_html_() is None  # it would wait for the GPU
    assert "closed" in repr(prof)
    assert "&lt;b&gt;" in prof._repr_html_()
    assert repr(prof.key_averages()).startswith(f"KeyAverages(1 row, {adapter}")


# ---- opening, closing, threads


def test_a_profile_opens_once_and_alone(timed):
    prof = gw.profile(timed)
    for early in (prof.key_averages, lambda: prof.region("x").__enter__()):
        with pytest.raises(gw.ArgumentError, match=r"with gw\.profile"):
            early()
    with prof, pytest.raises(gw.ArgumentError, match="open on this device already"):
        gw.profile(timed).__enter__()
    with pytest.raises(gw.ArgumentError, match="used before"):
        prof.__enter__()
    with pytest.raises(gw.ArgumentError, match="not open"):
        prof.timestamp_writes(timed.create_command_encoder(), "late")


def test_an_error_closes_it(timed):
    prof = gw.profile(timed)
    with pytest.raises(ZeroDivisionError), prof, prof.region("fails"):
        raise ZeroDivisionError
    with gw.profile(timed):  # no other is open
        pass
    assert _rows(prof)["fails", "region"].calls == 1


def test_off_it_takes_no_queries_and_no_passes_more(timed, monkeypatch):
    x = gw.asarray(X, timed)
    scan = gw.Scan(timed, strategy="reduce_then_scan")
    scan.execute(input=x)
    begun = []
    encoder_class = type(timed.create_command_encoder())
    begin = encoder_class.begin_compute_pass

    def noting(self, **options):
        begun.append(options)
        return begin(self, **options)

    monkeypatch.setattr(encoder_class, "begin_compute_pass", noting)
    with gw.profile(timed):
        scan.execute()
    # Those of the clock's alignment are stamps, no passes.
    assert [("timestamp_writes" in options) for options in begun] == [True] * 3
    begun.clear()
    scan.execute()
    assert not any("timestamp_writes" in options for options in begun)
    assert len(begun) <= 1, "none by wgpu-py's wrappers, or the one that all kernels share"
    gc.collect()


def _in_threads(*functions):
    """Run functions at the same time, a thread each; raise what the first of them raised."""
    with concurrent.futures.ThreadPoolExecutor(len(functions)) as pool:
        return [future.result(60) for future in [pool.submit(function) for function in functions]]


class _Moments:
    """Stands for `Profile._records`: counts how often calls ask it, and closes the profile at one of these moments."""

    def __init__(self, close_at=None):
        self.close_at, self.count = close_at, 0

    def __get__(self, prof, owner, records=gw.Profile._records):
        self.count += 1
        if self.count == self.close_at:
            prof.__exit__(None, None, None)
        return records.__get__(prof, owner)


@pytest.mark.slow
@pytest.mark.parametrize("job", ["execute", "record", "asarray", "copy_from", "to_numpy", "stream", "synchronize"])
def test_a_call_during_which_the_profile_closes_works(timed, monkeypatch, job):
    """At whatever moment that is: each is tried in turn."""
    x, expected = gw.asarray(X[:999], timed), np.cumsum(X[:999], dtype=np.uint32)
    scan = gw.Scan(timed)
    scan.execute(input=x)

    def record():
        encoder = timed.create_command_encoder()
        out = scan.record(encoder, input=x, output=gw.empty_like(x))["output"]
        timed.queue.submit([encoder.finish()])
        return out.to_numpy()

    jobs = {
        "execute": lambda: scan.execute(input=x).output.to_numpy(),
        "record": record,
        "asarray": lambda: gw.asarray(expected, timed).to_numpy(),
        "copy_from": lambda: gw.empty_like(x).copy_from(expected).to_numpy(),
        "to_numpy": lambda: gw.cumsum(x).to_numpy(),
        "stream": lambda: np.concatenate(list(gw.stream(scan, [X[:500], X[500:999]]))),
        "synchronize": lambda: gw.synchronize(timed) or expected,
    }

    def profiled(moments):
        with monkeypatch.context() as patch, gw.profile(timed) as prof:
            patch.setattr(gw.Profile, "_records", moments)
            result = jobs[job]()
        np.testing.assert_array_equal(result, expected)
        with gw.profile(timed):  # no other is open
            pass
        prof.key_averages()
        return moments.count

    count = profiled(_Moments())
    assert count > 0
    for moment in range(1, count + 1):
        profiled(_Moments(moment))


def test_a_call_that_is_under_way_when_the_profile_closes_is_recorded_whole(timed):
    scan, x = gw.Scan(timed, strategy="reduce_then_scan"), gw.asarray(X, timed)
    scan.execute(input=x)
    prof = gw.profile(timed).__enter__()
    with prof.region("late"):
        prof.__exit__(None, None, None)
        with prof.span("Scan", "primitive"):  # as a call that looked before the profile closed
            pass
    with prof.span("too late", "primitive"):
        pass
    assert {name for name, _ in _rows(prof)} == {"late", "Scan"}


def test_closing_twice_closes_no_other(timed):
    first, second = gw.profile(timed), gw.profile(timed)
    with first:
        pass
    with second:
        first.__exit__(None, None, None)
        gw.sum(gw.asarray(X, timed))
    assert ("Reduce", "primitive") in _rows(second)
    assert _rows(first) == {}


def test_of_two_threads_that_open_a_profile_one_may(timed, monkeypatch):
    """The clocks' alignment takes long enough for the other thread to come by."""
    both = threading.Barrier(2)
    align = gw.Profile._align
    monkeypatch.setattr(gw.Profile, "_align", lambda self: (threading.Event().wait(0.05), align(self)))

    def open_one():
        both.wait(60)
        try:
            with gw.profile(timed) as prof:
                both.wait(60)  # until the other one was refused
                gw.cumsum(gw.asarray(X, timed))
        except gw.ArgumentError as error:
            both.wait(60)
            return str(error)
        return prof

    found = _in_threads(open_one, open_one)
    (refusal,) = (one for one in found if isinstance(one, str))
    assert "open on this device already" in refusal
    (prof,) = (one for one in found if isinstance(one, gw.Profile))
    assert _rows(prof)["Scan", "primitive"].calls == 1


def test_a_profile_that_cannot_open_leaves_the_way_free(timed, monkeypatch):
    prof = gw.profile(timed)
    with monkeypatch.context() as patch:
        patch.setattr(gw.Profile, "_align", lambda self: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            prof.__enter__()
    with prof:
        gw.sum(gw.asarray(X, timed))
    assert ("Reduce", "primitive") in _rows(prof)


def test_threads_one_after_the_other_keep_their_records(timed, tmp_path):
    """The system gives a later thread the number of one that has ended."""
    x, scan = gw.asarray(X, timed), gw.Scan(timed)
    with gw.profile(timed) as prof:
        for _ in range(3):
            thread = threading.Thread(target=lambda: scan.execute(input=x), name="worker")
            thread.start()
            thread.join()
    assert _rows(prof)["Scan", "primitive"].calls == 3
    prof.export_chrome_trace(tmp_path / "t.json")
    _, lanes = load(tmp_path / "t.json")
    assert {name for name in lanes if name.startswith("host")} == {f"host, worker{n}" for n in ("", " (2)", " (3)")}


# ---- the trace


def test_the_trace(timed, staging, tmp_path):
    scan = gw.Scan(timed, strategy="reduce_then_scan")
    with gw.profile(timed) as prof, prof.region("all"):
        x = gw.asarray(X, timed)
        run = scan.execute(input=x, enable_cpu_timing=True)
        run.output.to_numpy()
        gw.synchronize(timed)
    prof.export_chrome_trace(tmp_path / "t.json")
    trace, lanes = load(tmp_path / "t.json")
    host = {e["name"] for e in lanes["host"]}
    assert host >= {"all", "upload", "Scan", "encode", "submit", "wait", "download", "copy to staging"}
    (queue,) = (name for name in lanes if name.startswith("GPU queue"))
    assert "approximate" in queue
    assert trace["otherData"]["clock_alignment_uncertainty_ns"] > 0
    gpu = lanes[queue]
    assert [e["name"] for e in gpu] == ["copy to GPU", "reduce blocks", "scan totals", "scan blocks", "copy to host"]
    kernels = [e["args"] for e in gpu if e["cat"] == "kernel"]
    assert [a["workgroups"] for a in kernels] == [list(k.workgroups) for k in run.plan.kernels]
    assert all(a["bytes"] == run.plan.work.moved_bytes and a["trials"] == 1 for a in kernels)
    assert gpu[0]["args"]["bytes"] == 4 * X.size
    assert sum(e["ph"] == "f" for e in trace["traceEvents"]) == len(gpu)
    # As far as the clocks are known, the GPU is at work while the host waits for it.
    uncertain_us = trace["otherData"]["clock_alignment_uncertainty_ns"] / 1e3
    whole = next(e for e in lanes["host"] if e["name"] == "all")
    assert gpu[0]["ts"] >= whole["ts"] - uncertain_us
    assert gpu[-1]["ts"] + gpu[-1]["dur"] <= whole["ts"] + whole["dur"] + uncertain_us


def test_the_trace_follows_the_drift_of_the_clocks(timed, tmp_path, monkeypatch):
    """A clock of the host that runs faster by 1 %: the slices lie where it says."""
    real, start = time.perf_counter_ns, time.perf_counter_ns()
    x = gw.asarray(X, timed)
    gw.sum(x)

    def fast():
        return start + (real() - start) * 101 // 100

    with monkeypatch.context() as patch:
        patch.setattr("gridwise_py.profiling.profile.time.perf_counter_ns", fast)
        with gw.profile(timed) as prof:
            time.sleep(0.3)
            begin_ns = fast()
            gw.sum(x)
            gw.synchronize(timed)
            end_ns = fast()
    prof.export_chrome_trace(tmp_path / "t.json")
    trace, lanes = load(tmp_path / "t.json")
    told = trace["otherData"]
    assert abs(told["clock_drift_ppm"] - 1e4) <= told["clock_drift_uncertainty_ppm"] + 300  # and the clocks' own drift
    (queue,) = (name for name in lanes if name.startswith("GPU queue"))
    begin_us, end_us = ((ns - prof._begin_ns) / 1e3 for ns in (begin_ns, end_ns))
    uncertain_us = told["clock_alignment_uncertainty_ns"] / 1e3
    # By the GPU's clock alone it would lie 3,000 µs earlier.
    assert begin_us - uncertain_us <= lanes[queue][-1]["ts"] <= end_us + uncertain_us


def test_work_on_other_devices_is_told(timed, fresh_device):
    """A profile of one device does not see it, as of a function on the default device."""
    x = gw.asarray(np.ones(100, np.uint32), fresh_device)
    gw.sum(x)  # measures the device, too
    with gw.profile(timed) as prof:
        gw.ones(5, "u32", timed)
        assert not [warning for warning in prof.warnings if "other devices" in warning]
        x.copy_from(np.zeros(100, np.uint32))
        gw.sum(x)
    gw.sum(x)
    told = f"{fresh_device.adapter.info['device']}: 2 submissions or transfers"
    for text in (repr(prof), " ".join(prof.warnings), str(prof.key_averages())):
        assert "work on other devices is not in this profile" in " ".join(text.split())
        assert told in " ".join(text.split())
