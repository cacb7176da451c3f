"""Observers of AMD and Intel GPUs on Linux, from the files that their drivers show in sysfs.

The packages that exist need ROCm of their own version (amdsmi), or compile (pyamdgpuinfo). The same numbers stand in
small text files, which need no privilege:

- amdgpu: ``device/pp_dpm_sclk`` and ``pp_dpm_mclk`` (all levels, the current one with a star), ``mem_info_vram_used``,
  and in ``device/hwmon/hwmon*/`` ``freq1_input`` (Hz), ``power1_average`` or ``power1_input`` (µW), ``temp1_input``
  (1/1000 °C), ``energy1_input`` (µJ, a counter, on some).
- i915: ``gt/gt0/rps_act_freq_mhz`` and ``rps_RP0_freq_mhz``, before Linux 5.18 ``gt_act_freq_mhz`` and
  ``gt_RP0_freq_mhz``.
- xe: ``device/tile0/gt0/freq0/act_freq`` and ``rp0_freq`` (MHz).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Literal

from .gpu import EnergySensor, Gpu, pci_address

_ROOT = Path("/sys/class/drm")
_AMD, _INTEL = 0x1002, 0x8086  # PCI vendors


def sysfs_gpus(info: Mapping[str, Any], root: Path = _ROOT) -> list[Gpu]:
    """Return the cards that have the PCI vendor and device of an adapter."""
    look = {_AMD: _look_amd, _INTEL: _look_intel}.get(info.get("vendor_id", 0))
    if look is None:
        return []
    wanted = info["vendor_id"], info.get("device_id")
    cards = [card for card in sorted(root.glob("card*")) if re.fullmatch(r"card\d+", card.name)]
    same = [card for card in cards if (_hex(card / "device/vendor"), _hex(card / "device/device")) == wanted]
    # The folder of a card's device is a link to that of its PCI address.
    return [
        Gpu(
            pci_address((card / "device").resolve().name),
            partial(look, card),
            partial(_used, card),
            partial(_sensor, card),
        )
        for card in same
    ]


def _used(card: Path) -> int | None:
    return _number([card / "device/mem_info_vram_used"])


def _hwmon(card: Path) -> Path:
    device = card / "device"
    return next(iter(sorted(device.glob("hwmon/hwmon*"))), device / "none")


def _sensor(card: Path) -> EnergySensor | None:
    """Return the counter of energy, or else the power, of a driver that shows one in hwmon."""
    files: tuple[tuple[Literal["counter", "power"], str], ...] = (
        ("counter", "energy1_input"), ("power", "power1_average"), ("power", "power1_input"),
    )  # fmt: skip
    for kind, name in files:
        path = _hwmon(card) / name
        if _number([path]) is not None:
            return EnergySensor(f"hwmon's {name}", kind, partial(_millionth, path))
    return None


def _millionth(path: Path) -> float | None:
    value = _number([path])
    return None if value is None else value * 1e-6


def _look_amd(card: Path) -> dict[str, Any]:
    device, hwmon = card / "device", _hwmon(card)
    clocks, memory_clocks = _levels(device / "pp_dpm_sclk"), _levels(device / "pp_dpm_mclk")
    return _known(
        sm_clock_mhz=_scaled(_number([hwmon / "freq1_input"]), 1e-6) or clocks.get("current"),
        max_sm_clock_mhz=clocks.get("max"),
        memory_clock_mhz=memory_clocks.get("current"),
        power_w=_scaled(_number([hwmon / "power1_average", hwmon / "power1_input"]), 1e-6, digits=2),
        temperature_c=_scaled(_number([hwmon / "temp1_input"]), 1e-3),
        memory_used_bytes=_number([device / "mem_info_vram_used"]),
    )


def _look_intel(card: Path) -> dict[str, Any]:
    xe = card / "device/tile0/gt0/freq0"
    return _known(
        sm_clock_mhz=_number([xe / "act_freq", card / "gt/gt0/rps_act_freq_mhz", card / "gt_act_freq_mhz"]),
        max_sm_clock_mhz=_number([xe / "rp0_freq", card / "gt/gt0/rps_RP0_freq_mhz", card / "gt_RP0_freq_mhz"]),
    )


# ---- files


def _known(**values: float | None) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii", errors="replace").strip()
    except OSError:  # no such file, or a GPU that is asleep
        return ""


def _hex(path: Path) -> int | None:
    text = _text(path)
    return int(text, 16) if re.fullmatch(r"0x[0-9a-fA-F]+", text) else None


def _number(paths: Iterable[Path]) -> int | None:
    """Return the number in the first of some files that has one."""
    return next((int(text) for path in paths if (text := _text(path)).isdecimal()), None)


def _scaled(value: int | None, factor: float, digits: int = 0) -> float | None:
    if value is None:
        return None
    return round(value * factor, digits) if digits else round(value * factor)


def _levels(path: Path) -> dict[str, int]:
    """Read a file of lines such as ``1: 800Mhz *``: the level in use, and the highest."""
    found = re.findall(r"^\s*\w+:\s*(\d+)\s*mhz\s*(\*?)", _text(path), re.IGNORECASE | re.MULTILINE)
    levels = {"max": max(int(mhz) for mhz, _ in found)} if found else {}
    in_use = [int(mhz) for mhz, star in found if star]
    return levels | ({"current": in_use[0]} if in_use else {})
