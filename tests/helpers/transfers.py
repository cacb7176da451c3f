"""Uploads and downloads as tests want them: in small parts, by one route, with what can go wrong on the way."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import wgpu

import gridwise_py as gw
from gridwise_py.backend import pages
from gridwise_py.runtime import array, pinned, transfers
from gridwise_py.runtime.context import context_of

RING_BYTES, CHUNK_BYTES = 1 << 16, 1 << 15


def random_items(n: int, dtype: Any = np.uint32, seed: int = 0) -> np.ndarray:
    """Return items of random bits."""
    bits = np.random.default_rng([n, seed]).integers(0, 256, n * np.dtype(dtype).itemsize, dtype=np.uint8)
    return bits.view(dtype)


def same_bits(found: np.ndarray, wanted: np.ndarray) -> None:
    """Fail unless items are the same, NaN included."""
    assert found.dtype == wanted.dtype
    np.testing.assert_array_equal(found.view(np.uint8), np.ascontiguousarray(wanted).view(np.uint8))


def use_small_chunks(monkeypatch: pytest.MonkeyPatch, mapped_bytes: int) -> None:
    """Let mapped Arrays be copied in chunks of so many bytes, by several threads."""
    for name, value in {
        "_MAPPED_BYTES": mapped_bytes, "_PIECE_BYTES": 1 << 12, "_INLINE_BYTES": 1 << 11, "MAPPED_UP_BYTES": 1 << 10,
    }.items():  # fmt: skip
        monkeypatch.setattr(transfers, name, value)


def use_small_rings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let small Arrays go round the staging buffers several times, with several threads and pieces for each chunk."""
    for module in (transfers, array):
        monkeypatch.setattr(module, "RING_BYTES", RING_BYTES)
    monkeypatch.setattr(transfers, "_CHUNK_BYTES", CHUNK_BYTES)
    monkeypatch.setattr(transfers, "_LEAST_CHUNK_BYTES", 1 << 13)
    use_small_chunks(monkeypatch, CHUNK_BYTES)


def copy_through_staging(monkeypatch: pytest.MonkeyPatch, device: wgpu.GPUDevice) -> None:
    """Let no Array be mapped, of this device and of new ones."""
    monkeypatch.setattr(context_of(device).memory, "is_mappable", False)
    monkeypatch.setenv("GRIDWISE_MAP_ARRAYS", "0")


def kept_staging(device: wgpu.GPUDevice) -> tuple[list[int], list[int]]:
    """Return the sizes in bytes of the staging buffers that are kept for uploads, and for downloads."""
    own = context_of(device).transfers
    return [buffer.size for buffer in own._up._kept], [buffer.size for buffer in own._down._kept]


def time_out_at_mapping(monkeypatch: pytest.MonkeyPatch, number: int = 1) -> None:
    """Let the wait for the mapping of that number end by a timeout, while it is on its way."""
    calls: list[int] = []
    real = transfers.map_buffer

    def late(*arguments: Any) -> None:
        calls.append(1)
        if len(calls) == number:
            arguments[1].map_async(arguments[2])
            raise gw.DeviceTimeoutError("of a test")
        real(*arguments)

    for module in (transfers, pinned):
        monkeypatch.setattr(module, "map_buffer", late)


def hide_mapped_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let wgpu have no call that gives the memory of a mapped buffer."""
    for module in (transfers, pinned):
        monkeypatch.setattr(module, "memory_of_mapped", lambda *_: None)


def start_no_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no thread be started, and none be there that copies."""

    def refuse(_self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    alone = transfers._Workers(2)
    monkeypatch.setattr(transfers, "copy_workers", lambda _count: alone)
    monkeypatch.setattr(threading.Thread, "start", refuse)


def have_workers_made_by_two_at_once(monkeypatch: pytest.MonkeyPatch) -> Callable[[], object]:
    """Return a function that asks for the process's threads; two that ask first at once both make some."""
    both_make = threading.Barrier(2)

    class Waiting(transfers._Workers):
        def __init__(self, count: int) -> None:
            both_make.wait(60)
            super().__init__(count)

    monkeypatch.setattr(transfers, "_of_process", {})
    monkeypatch.setattr(transfers, "_Workers", Waiting)
    return lambda: transfers.copy_workers(2)


def note_requests_for_pages(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """Return a list that gets the address and the length of what the system is asked to find pages for."""
    asked: list[tuple[int, int]] = []
    real = pages._madvise()

    def note(first: int, count: int, advice: int) -> int:
        asked.append((first, count))
        return real(first, count, advice) if real else -1

    monkeypatch.setattr(pages, "_madvise", lambda: note)
    return asked


def refuse_requests_for_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the system have no such request."""
    monkeypatch.setattr(pages, "_madvise", lambda: None)
