"""What the stopwatch says of samples that are no times, and of protocols that do not fit a device."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import gridwise_py as gw

X = np.arange(1000, dtype=np.uint32)


def _result(begin, end):
    spans = (gw.Span("k", begin, end, 1.0),)
    fields = {field.name: None for field in dataclasses.fields(gw.TimingResult)}
    return gw.TimingResult(**{**fields, "labels": ("k",), "trials": 1, "spans": spans, "warnings": ()})


def _benchmark(device, stamps):
    """Benchmark a call that returns one pair of stamps after the other."""
    calls = iter([(1, 2), *stamps])
    return gw.benchmark(lambda: _result(*next(calls)), n_warmup=0, n_iters=len(stamps), device=device)


def test_benchmark_counts_the_spans_that_are_no_times(device):
    """A span is never longer than its call: 10^15 ns are 12 days."""
    bad = [(0, 5), (5, 0), (9, 5), (9, 5), (7, 7), (1, 10**15)]
    result = _benchmark(device, [(100, 105), *bad, (100, 107), (100, 109)])
    assert result.gpu_span.samples_ns == (5.0, 7.0, 9.0)
    assert result.gpu_span.invalid == {"equal": 1, "longer_than_wall": 1, "reversed": 2, "zero": 2}
    assert result.median_ns == 7.0
    text = repr(result)
    assert text.startswith("BenchmarkResult(GPU span of 3 of 9 calls: median 7 ns, mean 7 ns")
    assert "invalid GPU spans: 1 equal, 1 longer_than_wall, 2 reversed, 2 zero" in text


def test_benchmark_of_a_clock_that_never_works_says_so(device):
    result = _benchmark(device, [(0, 0)] * 4)
    assert result.gpu_span.summary is None
    assert result.gpu_span.invalid == {"zero": 4}
    assert result.median_ns == result.cpu_wall.median_ns
    assert repr(result).startswith("BenchmarkResult(CPU wall of 4 calls: median ")
    assert "invalid GPU spans: 4 zero" in repr(result)


def test_benchmark_of_calls_without_a_flaw_says_nothing_of_it(device):
    result = _benchmark(device, [(100, 105)] * 3)
    assert result.gpu_span.invalid == {}
    assert repr(result).startswith("BenchmarkResult(GPU span of 3 calls: median 5 ns")
    assert "no time" not in repr(result)
    assert gw.benchmark(lambda: None, n_warmup=0, n_iters=2, device=device).gpu_span is None


# ---- protocols that do not fit


def _measure(device, **protocol):
    scan = gw.Scan(device, "u32", strategy="reduce_then_scan", tuning=gw.ScanTuning(workgroup_size=64))
    protocol = gw.SamplingProtocol(warmup_s=0.0, max_warmup_s=0.01, check_unit=False, **protocol)
    return gw.measure(scan, protocol=protocol, input=X)


def test_more_canaries_than_timestamps_are_refused_before_anything_is_submitted(device, require):
    require("timestamp-query")
    used = gw.timing_helper(device).pairs_in_use
    with pytest.raises(gw.ArgumentError, match=r"100,000 times .*\(canary_passes\) .* is [\d,]+$") as refused:
        _measure(device, canary_passes=100_000)
    most = int(str(refused.value).rpartition(" ")[2].replace(",", ""))
    with pytest.raises(gw.ArgumentError, match="canary_passes"):
        _measure(device, canary_passes=most + 1)
    assert gw.timing_helper(device).pairs_in_use == used


def test_a_block_has_no_more_samples_than_there_are_timestamps(device, require, monkeypatch):
    require("timestamp-query")
    monkeypatch.setattr(gw.TimingHelper, "MAX_PAIRS", 64)
    options = {"samples": 9, "submission_trials": 1}
    few, plain = (_measure(device, canary_passes=passes, **options).protocol for passes in (30, 3))
    assert few["block_samples"][0] == 4, "of its one kernel"
    assert plain["block_samples"][0] == 9
