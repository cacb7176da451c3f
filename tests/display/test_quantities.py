"""How numbers are written for people."""

from __future__ import annotations

import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gridwise_py.display.quantities import (
    format_count,
    format_number,
    format_percent,
    format_time,
    format_uncertainty,
    relative_uncertainty,
)

SECONDS = {"ns": 1.0, "µs": 1e3, "ms": 1e6, "s": 1e9}


def test_times_have_three_digits():
    for time_ns, text in (
        (None, "–"), (0, "0 ns"), (0.25, "0.250 ns"), (8.37, "8.37 ns"), (64, "64 ns"), (999.4, "999 ns"),
        (999.6, "1.00 µs"), (1_000, "1.00 µs"), (9_996, "10.0 µs"), (99_960, "100 µs"), (999_600, "1.00 ms"),
        (15_887_000, "15.9 ms"), (2_094_000_000, "2.09 s"), (100_000_000_000, "100 s"),
        (12_345_000_000_000, "12345 s"), (-15_887_000, "-15.9 ms"),
    ):  # fmt: skip
        assert format_time(time_ns) == text
    for time_ns in (math.nan, math.inf):
        with pytest.raises(ValueError, match="cannot be shown"):
            format_time(time_ns)


@given(st.floats(1.0, 9.9e11))
def test_a_time_reads_back_within_half_of_its_third_digit(time_ns):
    number, unit = format_time(time_ns).split()
    assert float(number) * SECONDS[unit] == pytest.approx(time_ns, rel=5.1e-3)
    assert len(re.sub(r"\D", "", number)) == 3 or float(time_ns).is_integer()


def test_numbers_shares_and_counts():
    assert [format_number(v) for v in (None, 0.0, 0.00456, 0.3, 9.996, 88.62, 4298.4)] == [
        "–", "0", "0.00456", "0.300", "10.0", "88.6", "4298"
    ]  # fmt: skip
    assert format_percent(0.886) == "88.6 %"
    assert format_percent(None) == "–"
    assert [format_count(n) for n in (0, 512, 1000, 1024, 262_144, 268_435_457)] == [
        "0", "512", "1,000", "2^10", "2^18", "268,435,457"
    ]  # fmt: skip


def test_an_uncertainty_is_the_larger_half_and_never_below_the_clocks_resolution():
    assert relative_uncertainty(100.0, 90.0, 105.0) == pytest.approx(0.10)
    assert relative_uncertainty(100.0, 100.0, 100.0, resolution_ns=16.0) == pytest.approx(0.16)
    assert relative_uncertainty(0.0, 0.0, 0.0) is None
    texts = [format_uncertainty(share) for share in (None, 0.0, 0.0004, 0.0031, 0.0994, 0.0996, 0.31, 4.2)]
    assert texts == ["", "±<0.1 %", "±<0.1 %", "±0.3 %", "±9.9 %", "±10 %", "±31 %", "±420 %"]
