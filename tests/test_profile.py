"""gw.profile: regions, primitives, kernels, transfers and passes of one's own, on both clocks."""

import gc
import threading

import numpy as np
import pytest
import wgpu
from _trace import load

import gridwise_py as gw
from gridwise_py.context import context_of

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


def test_self_times_sum_up_to_the_whole(timed):
    x = gw.asarray(X, timed)
    with gw.profile(timed) as prof, prof.region("all"):
        gw.cumsum(x)
        gw.sum(x)
    rows = list(prof.key_averages())
    total = next(row for row in rows if row.name == "all")
    assert sum(row.self_cpu_time_ns or 0 for row in rows) == pytest.approx(total.cpu_time_total_ns)
    assert sum(row.self_gpu_time_ns for row in rows) == pytest.approx(total.gpu_time_total_ns)


def test_the_gpu_times_are_those_of_the_timing_result(timed):
    x = gw.asarray(X, timed)
    scan = gw.Scan(timed)
    with gw.profile(timed) as prof:
        run = scan.execute(input=x, enable_gpu_timing=True, trials=3)
    rows = _rows(prof)
    result = run.get_timing_result()
    assert rows["Scan", "primitive"].gpu_time_total_ns == pytest.approx(sum(result.gpu_total_time_ns))


def test_a_region_inside_of_one_of_its_own_name_counts_once(timed):
    x = gw.asarray(X, timed)
    with gw.profile(timed) as prof, prof.region("again"), prof.region("again"):
        gw.sum(x)
    rows = _rows(prof)
    assert rows["again", "region"].calls == 2
    assert rows["again", "region"].gpu_time_total_ns == rows["reduce", "kernel"].gpu_time_total_ns


def test_transfers_and_allocations(timed):
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
    assert rows["all", "region"].allocated_bytes == 2 * x.buffer.size
    assert rows["copy to staging", "host"].cpu_time_total_ns > 0


@pytest.mark.parametrize("n", [0, 1, 5])
def test_small_uploads_and_none(timed, n):
    with gw.profile(timed) as prof:
        x = gw.asarray(X[:n], timed)
        x.copy_from(X[1 : n + 1])
        np.testing.assert_array_equal(x.to_numpy(), X[1 : n + 1])
        view = gw.asarray(X[:9], timed)[3 : 3 + n]
        view.copy_from(X[:n])
        np.testing.assert_array_equal(view.to_numpy(), X[:n])
    assert ("upload", "transfer") in _rows(prof)


def test_passes_of_ones_own(timed):
    x = gw.asarray(X, timed)
    kernel = gw.Kernel(timed, MINE, {"x": "read_write"}, -(-x.size // 64), label="mine")
    scratch = timed.create_buffer(size=x.nbytes, usage=wgpu.BufferUsage.COPY_DST)
    with gw.profile(timed) as prof, prof.region("custom"):
        encoder = timed.create_command_encoder()
        writes = prof.timestamp_writes(encoder, "raw pass", workgroups=(1, 1, 1), moved_bytes=8)
        step = kernel.bind(x=x).steps[0]
        compute = encoder.begin_compute_pass(timestamp_writes=writes)
        compute.set_pipeline(step.pipeline)
        compute.set_bind_group(0, step.group)
        compute.dispatch_workgroups(*step.workgroups)
        compute.end()
        with prof.commands(encoder, "raw copy", moved_bytes=2 * x.nbytes):
            encoder.copy_buffer_to_buffer(x.buffer, 0, scratch, 0, x.nbytes)
            gw.Copy(timed).record(encoder, input=x)  # in the time of "raw copy", and not counted again
        kernel.execute(encoder=encoder, x=x)
        kernel.record(encoder, x=x)
        timed.queue.submit([encoder.finish()])
    rows = _rows(prof)
    custom = rows["custom", "region"]
    parts = [rows["raw pass", "pass"], rows["raw copy", "commands"], rows["mine", "kernel"]]
    assert [part.calls for part in parts] == [1, 1, 2]
    assert custom.gpu_time_total_ns == pytest.approx(sum(part.gpu_time_total_ns for part in parts))
    assert ("copy", "kernel") not in rows


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
    bare = device.adapter.request_device_sync(label="bare", required_features=[])
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
    text = prof.key_averages().table(sort_by="gpu_time_total", row_limit=2)
    assert text.startswith(context_of(timed).capabilities.adapter)
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
    assert context_of(timed).profiler is None
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
    assert [("timestamp_writes" in options) for options in begun] == [False]
    gc.collect()


def test_threads_have_lanes_of_their_own(timed, tmp_path):
    x = gw.asarray(X, timed)
    with gw.profile(timed) as prof:

        def work():
            with prof.region("other"):
                gw.Copy(timed).execute(input=x)

        with prof.region("main"):
            thread = threading.Thread(target=work, name="helper")
            thread.start()
            gw.Copy(timed).execute(input=x)
            thread.join()
    prof.export_chrome_trace(tmp_path / "t.json")
    _, lanes = load(tmp_path / "t.json")
    assert {e["name"] for e in lanes["host"]} >= {"main", "Copy"}
    assert {e["name"] for e in lanes["host, helper"]} >= {"other", "Copy"}
    assert "other" not in {e["name"] for e in lanes["host"]}


# ---- the trace


def test_the_trace(timed, tmp_path):
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
