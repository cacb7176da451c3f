"""Formats numbers for people, the same everywhere: times, counts, rates, shares and uncertainties.

Every time has three significant digits, even if it is uncertain, so the same median is the same text in every table,
picture and page. Next to it stands its uncertainty: half of its interval, in percent.
"""

from __future__ import annotations

import math

_NOTHING = "–"
_ENERGY_UNITS = ((1.0, "J"), (1e3, "mJ"), (1e6, "µJ"))
_TIME_UNITS = ((1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1.0, "ns"))


def format_time(time_ns: float | None, missing: str = _NOTHING) -> str:
    """Return a time with three significant digits and its unit: ``"15.9 ms"``; `missing` for None.

    Raises
    ------
    ValueError
        If the time is infinite or NaN.
    """
    if time_ns is None:
        return missing
    if not math.isfinite(time_ns):
        raise ValueError(f"a time of {time_ns} ns cannot be shown; pass None where there is none")
    size = abs(time_ns)
    for scale, unit in _TIME_UNITS:
        # 999.6 µs would round to 1000 µs; with three digits it is 1.00 ms.
        if size >= 0.9995 * scale and scale > 1.0:
            return f"{_three_digits(time_ns / scale)} {unit}"
    # Times below a microsecond may be means over trials, with fractions of a nanosecond.
    return f"{time_ns:.0f} ns" if size >= 99.95 or float(time_ns).is_integer() else f"{_three_digits(time_ns)} ns"


def format_each(times_ns: tuple[float, float]) -> str:
    """Return the least and the greatest of several times: ``"97.0 to 225 µs each"``."""
    least, greatest = map(format_time, times_ns)
    return f"{least.removesuffix(greatest[greatest.index(' ') :])} to {greatest} each"


def format_number(value: float | None, suffix: str = "") -> str:
    """Return a number with three significant digits, and all digits before the point; "–" for None."""
    return _NOTHING if value is None else f"{_three_digits(value)}{suffix}"


def format_energy(joules: float | None) -> str:
    """Return an energy with three significant digits and its unit: ``"1.55 mJ"``; "–" for None."""
    if joules is None:
        return _NOTHING
    scale, unit = next((one for one in _ENERGY_UNITS if abs(joules) * one[0] >= 0.9995), (1e9, "nJ"))
    return f"{_three_digits(joules * scale)} {unit}"


def format_percent(share: float | None) -> str:
    """Return a share, such as 0.886, in percent; "–" for None."""
    return format_number(None if share is None else 100 * share, " %")


def format_count(count: int) -> str:
    """Return a count with commas, or as a power of two if it is a large one."""
    return f"2^{count.bit_length() - 1}" if count >= 1024 and count & (count - 1) == 0 else f"{count:,}"


def relative_uncertainty(time_ns: float, low_ns: float, high_ns: float, resolution_ns: float = 0.0) -> float | None:
    """Return the larger half of the interval around a time as a share of it; None for a time of 0.

    Parameters
    ----------
    time_ns, low_ns, high_ns : float
        A median and its interval.
    resolution_ns : float, default 0
        Half a step of the clock, divided by the number of dispatches between two timestamps: the minimum.
    """
    if not time_ns:
        return None
    return max(time_ns - low_ns, high_ns - time_ns, resolution_ns) / abs(time_ns)


def format_uncertainty(relative: float | None) -> str:
    """Return an uncertainty such as ``"±0.3 %"``, two digits below 10 %, whole percents above; empty for None.

    No time is known exactly: one whose samples are all equal is ``"±<0.1 %"``.
    From 1,000 % on it is ``"±>999 %"``: more digits would say no more.
    """
    if relative is None:
        return ""
    percents = 100 * relative
    if percents < 0.095:
        return "±<0.1 %"
    if percents >= 999.5:
        return "±>999 %"
    return f"±{percents:.1f} %" if percents < 9.95 else f"±{percents:.0f} %"


def _three_digits(value: float) -> str:
    size = abs(value)
    if not size:
        return "0"
    decimals = max(2 - math.floor(math.log10(size)), 0)
    rounded = round(value, decimals)
    # Rounding up may have added a digit: 9.996 is 10.0.
    decimals = 2 - math.floor(math.log10(abs(rounded)))
    return f"{rounded:.{max(decimals, 0)}f}"
