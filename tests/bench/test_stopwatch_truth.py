"""What the stopwatch says of samples that are no times, and of protocols that do not fit a device."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import gridwise_py as gw
from gridwise_py.bench.cases.mode import Mode
from gridwise_py.bench.sampling.conditions import Conditions
from gridwise_py.bench.sampling.protocol import SamplingProtocol
from gridwise_py.bench.sampling.sampler import Sampler, WarmUp
from gridwise_py.bench.sampling.samples import Samples
from gridwise_py.timing.result import Span, TimingResult

X = np.arange(1000, dtype=np.uint32)


def _result(begin, end):
    spans = (Span("k", begin, end, 1.0),)
    fields = {field.name: None for field in dataclasses.fields(TimingResult)}
    return TimingResult(**{**fields, "labels": ("k",), "trials": 1, "spans": spans, "warnings": ()})


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


# ---- more timestamps than a device has


def _sampler(device, **protocol):
    scan = gw.Scan(device, "u32", strategy="reduce_then_scan", tuning=gw.ScanTuning(workgroup_size=64))
    bound = scan.bind(input=gw.asarray(X, device)).bound_plan
    return Sampler(device, bound, Mode.HOT, SamplingProtocol(warmup_s=0.0, check_unit=False, **protocol))


def test_more_canaries_than_timestamps_are_refused_before_anything_is_submitted(device, require):
    require("timestamp-query")
    kernels = _sampler(device).kernels
    most = (gw.TimingHelper.MAX_PAIRS - kernels) // 2
    used = gw.timing_helper(device).pairs_in_use
    with pytest.raises(gw.ArgumentError, match=rf"100,000 times .*\(canary_passes\) .* is {most:,}$"):
        _sampler(device, canary_passes=100_000)
    with pytest.raises(gw.ArgumentError):
        _sampler(device, canary_passes=most + 1)
    assert gw.timing_helper(device).pairs_in_use == used
    with pytest.raises(gw.ArgumentError, match="canary_passes"):
        gw.measure(gw.Copy(device), protocol=SamplingProtocol(canary_passes=100_000), input=X)


def test_a_block_has_no_more_samples_than_there_are_timestamps(device, require):
    require("timestamp-query")
    kernels = _sampler(device).kernels
    sampler = _sampler(device, canary_passes=(gw.TimingHelper.MAX_PAIRS - 4 * kernels) // 2)
    sampler._size(1e3)
    assert sampler.block_samples == 4
    plain = _sampler(device)
    plain._size(1e3)
    assert plain.block_samples == 100


# ---- warnings


def test_a_long_trial_is_never_as_long_as_what_it_exceeds():
    for trial_ns, said in [(99e6, False), (100.4e6, False), (106e6, True), (2.5e9, True)]:
        warm = WarmUp(0.3, trial_ns, stationary=True)
        conditions = Conditions(SamplingProtocol(), Mode.HOT, warm, 1, 1, 1, 1.0, "device_poll", True)
        found = [w for w in conditions.warnings(Samples(["k"], Mode.HOT, 1, False)) if "one trial takes" in w]
        assert bool(found) == said
        for text in found:
            taken, limit = text.removeprefix("one trial takes ").split(" of GPU time")[0].split(", more than the ")
            assert taken != limit
