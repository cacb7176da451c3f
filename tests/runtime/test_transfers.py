"""Uploads and downloads through rings of staging buffers, against what numpy has."""

import concurrent.futures
import itertools
import mmap
import threading
import time

import numpy as np
import pytest

import gridwise_py as gw
from helpers import inside, transfers
from helpers.running import in_threads, python
from helpers.transfers import CHUNK_BYTES, RING_BYTES, random_items, same_bits

RING, CHUNK = RING_BYTES // 4, CHUNK_BYTES // 4  # in items of 4 bytes
DIRECT = "as the device allows"


@pytest.fixture(autouse=True)
def small_rings(monkeypatch):
    """Rings that small arrays go round several times, with several threads and pieces for each chunk."""
    transfers.use_small_rings(monkeypatch)


@pytest.fixture(autouse=True, params=[DIRECT, "staging"])
def route(request, device, monkeypatch):
    """Copies straight to and from mapped arrays, where the device allows it, and through staging buffers."""
    if request.param == "staging":
        transfers.copy_through_staging(monkeypatch, device)


through_staging = pytest.mark.parametrize("route", ["staging"], indirect=True)


def test_there_and_back(device):
    for n in (0, 1, RING - 1, RING, RING + 1, 4 * CHUNK - 1, 4 * CHUNK, 4 * CHUNK + 1, 5 * CHUNK, 13 * CHUNK + 3):
        data, out = random_items(n), np.zeros(n, np.uint32)
        x = gw.asarray(data, device)
        same_bits(x.to_numpy(), data)
        assert x.copy_from(data[::-1]) is x
        assert x.to_numpy(out=out) is out
        same_bits(out, data[::-1])
        same_bits(x.to_numpy(), data[::-1])


def test_all_datatypes(device):
    for datatype, n in itertools.product(gw.STORAGE_DATATYPES.values(), (5 * CHUNK + 1, RING // 2, 3)):
        data = random_items(n, datatype.dtype)
        same_bits(gw.asarray(data, device).to_numpy(), data)


def test_views_of_f16_share_words_with_their_neighbours(device):
    lengths = 1, 2, 7, 2 * RING - 1, 2 * RING, 2 * RING + 1, 11 * CHUNK + 1
    for n, first in itertools.product(lengths, range(4)):
        everything, part = random_items(n + 8, np.float16), random_items(n, np.float16, seed=1)
        x = gw.asarray(everything, device)
        view = x[first : first + n]
        same_bits(view.to_numpy(), everything[first : first + n])
        view.copy_from(part)
        everything[first : first + n] = part
        same_bits(view.to_numpy(), part)
        same_bits(x.to_numpy(), everything)


def test_views(device):
    data, n = random_items(9 * CHUNK), 6 * CHUNK + 5
    x, changed = gw.asarray(data, device), random_items(6 * CHUNK + 5, seed=1)
    x[7 : 7 + n].copy_from(changed)
    data[7 : 7 + n] = changed
    same_bits(x.to_numpy(), data)
    out = np.zeros(n + 2, np.uint32)
    x[5 : 5 + n].to_numpy(out=out[1:-1])
    assert out[0] == out[-1] == 0
    same_bits(out[1:-1], data[5 : 5 + n])


def _layouts(n, code):
    native = np.dtype(code)
    data = random_items(n, native)
    read_only = data.copy()
    read_only.flags.writeable = False
    shifted = np.frombuffer(b"?" + data.tobytes(), dtype=np.uint8)[1:].view(native)  # items at odd addresses
    return {
        "reversed": data[::-1],
        "strided": random_items(3 * n, native)[::3],
        "column": random_items(2 * n, native).reshape(n, 2)[:, 1],
        "repeated": np.broadcast_to(data[:1], (n,)),
        "read-only": read_only,
        "unaligned": shifted,
        "swapped": data.byteswap().view(native.newbyteorder()),
        "swapped and strided": random_items(2 * n, native).view(native.newbyteorder())[::-2],
    }


@pytest.mark.parametrize("code", ["u4", "f2", "i8"])
@pytest.mark.parametrize("n", [5, 6 * CHUNK + 3])
def test_any_layout_and_byte_order(device, code, n):
    for data in _layouts(n, code).values():
        wanted = np.ascontiguousarray(data).astype(code)
        before = data.tobytes()
        for x in (
            gw.asarray(data, device),
            gw.empty(n, np.dtype(code), device).copy_from(data),
            gw.ChunkedArray.from_numpy(data, chunk_items=max(2, n // 3 // 2 * 2), device=device),
            gw.ChunkedArray.empty(n, np.dtype(code), device).copy_from(data),
        ):
            assert x.dtype == np.dtype(code)
            same_bits(x.to_numpy(), wanted)
        assert gw.empty_like(data, device=device).dtype == np.dtype(code)
        assert data.tobytes() == before


@pytest.mark.parametrize("n", [100, 6 * CHUNK])
def test_what_was_uploaded_may_change_at_once(device, n):
    x, copy = gw.empty(n, "u32", device), gw.Copy(device)
    kept = []
    for seed in range(5):
        data = random_items(n, seed=seed)
        x.copy_from(data)
        kept.append(copy.execute(input=x).output)
        data[:] = 0
    for seed, found in enumerate(kept):  # each copy came between two uploads
        same_bits(found.to_numpy(), random_items(n, seed=seed))


WRONG = (
    (lambda n: [0] * n, gw.ArgumentError, "not list; give np.empty"),
    (lambda n: np.ma.zeros(n, np.uint32), gw.ArgumentError, "without a mask"),
    (lambda n: np.zeros(n, np.float32), gw.DatatypeError, "out is of <f4, but .* of <u4"),
    (lambda n: np.zeros(n, ">u4"), gw.DatatypeError, "out is of >u4"),
    (lambda n: np.zeros(n - 1, np.uint32), gw.LengthError, r"out has shape \("),
    (lambda n: np.zeros(n + 1, np.uint32), gw.LengthError, r"out has shape \("),
    (lambda n: np.zeros((n, 1), np.uint32), gw.LengthError, r"out has shape \("),
    (lambda n: np.zeros(2 * n, np.uint32)[::2], gw.ArgumentError, "must be contiguous"),
    (lambda n: np.zeros(n, np.uint32)[::-1], gw.ArgumentError, "must be contiguous"),
    (lambda n: np.broadcast_to(np.zeros(n, np.uint32), (n,)), gw.ArgumentError, "read-only"),
)


@through_staging
def test_an_out_that_does_not_fit(device, monkeypatch):
    x = gw.asarray(np.arange(6, dtype=np.uint32), device)
    inside.refuse_downloads(monkeypatch)
    for source, (make, error, message) in itertools.product((x, gw.ChunkedArray([x[:2], x[2:]])), WRONG):
        out = make(6)
        with pytest.raises(error, match=message):
            source.to_numpy(out=out)
        assert not np.any(out)


def test_out_of_other_kinds_of_arrays(device):
    data = random_items(5 * CHUNK)
    chunked = gw.ChunkedArray.from_numpy(data, chunk_items=CHUNK + 2, device=device)
    out = np.zeros_like(data)
    assert chunked.to_numpy(out=out) is out
    same_bits(out, data)
    x = gw.asarray(data, device)
    counted = x.counted_by(gw.asarray(np.array([3], np.uint32), device))
    with pytest.raises(gw.ArgumentError, match=r"only the GPU knows .*array\.trim\(\)"):
        counted.to_numpy(out=out)
    three = np.zeros(3, np.uint32)
    same_bits(counted.trim().to_numpy(out=three), data[:3])
    assert x[:0].to_numpy(out=np.zeros(0, np.uint32)).size == 0


@through_staging
def test_staging_buffers_are_kept_and_bounded(fresh_device, monkeypatch):
    made = inside.note_calls(monkeypatch, fresh_device, "create_buffer")
    data = random_items(40 * CHUNK)
    x = gw.asarray(data, fresh_device)
    out = np.zeros_like(data)
    for n in (RING, 40 * CHUNK, 8 * CHUNK, RING + 1):
        x[:n].copy_from(data[:n])
        same_bits(x[:n].to_numpy(out=out[:n]), data[:n])
    for kept in transfers.kept_staging(fresh_device):
        assert kept == 4 * [CHUNK_BYTES]
    before = list(made)
    for _ in range(3):
        same_bits(x.copy_from(data).to_numpy(), data)
    assert made == before


@pytest.mark.parametrize("way", ["up", "down"])
def test_an_error_in_a_thread_is_the_callers(device, way, monkeypatch):
    data = random_items(9 * CHUNK)
    x = gw.asarray(data, device)
    x.to_numpy()
    copyto, calls, under_way = np.copyto, [], set()

    def fail(*args, **kwargs):
        thread = threading.current_thread()
        calls.append(thread)
        if len(calls) == 5:
            raise MemoryError("of a test")
        under_way.add(thread)
        time.sleep(0.01)
        copyto(*args, **kwargs)
        under_way.remove(thread)

    with monkeypatch.context() as patch:
        patch.setattr(np, "copyto", fail)
        with pytest.raises(MemoryError, match="of a test"):
            x.copy_from(data) if way == "up" else x.to_numpy()
        assert not under_way, "what was given is touched after the call"
    assert threading.current_thread() not in calls
    if not inside.is_mappable(device):
        assert transfers.kept_staging(device)[way == "down"] == []
    same_bits(x.copy_from(data).to_numpy(), data)


@through_staging
@pytest.mark.parametrize("way", ["up", "down"])
def test_a_timeout_in_the_middle(device, way, monkeypatch):
    data = random_items(9 * CHUNK)
    x = gw.asarray(data, device)
    with monkeypatch.context() as patch:
        transfers.time_out_at_mapping(patch, number=3)
        with pytest.raises(gw.DeviceTimeoutError):
            x.copy_from(data) if way == "up" else x.to_numpy()
    same_bits(x.copy_from(data).to_numpy(), data)


def test_a_device_with_a_timeout(device):
    slow = gw.request_device(device.adapter, timeout_s=60)
    data = random_items(9 * CHUNK + 1)
    same_bits(gw.asarray(data, slow).to_numpy(), data)


@through_staging
def test_wgpu_without_its_call_for_mapped_memory(device, monkeypatch):
    transfers.hide_mapped_memory(monkeypatch)
    for data in _layouts(6 * CHUNK + 2, "f4").values():
        same_bits(gw.asarray(data, device).to_numpy(), np.ascontiguousarray(data).astype("f4"))


def test_several_threads_at_once(device):
    def work(number):
        n = 7 * CHUNK + number
        x, out = gw.empty(n, "u32", device), np.zeros(n, np.uint32)
        for turn in range(5):
            data = random_items(n, seed=10 * number + turn)
            x.copy_from(data)
            y = gw.asarray(data[: 100 * number], device)
            same_bits(x.to_numpy(out=out), data)
            same_bits(y.to_numpy(), data[: 100 * number])

    in_threads(work, 5)


def test_where_no_thread_can_be_started(device, monkeypatch):
    transfers.start_no_threads(monkeypatch)
    data = random_items(6 * CHUNK + 1)
    same_bits(gw.asarray(data, device).to_numpy(), data)


@through_staging
def test_threads_that_ask_first_at_once_get_the_same_workers(monkeypatch):
    ask = transfers.have_workers_made_by_two_at_once(monkeypatch)
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        assert len({id(each) for each in pool.map(lambda _: ask(), range(2))} | {id(ask())}) == 1


@through_staging
def test_pages_of_fresh_memory_are_found_without_a_change_of_what_is_around(device, monkeypatch):
    """Asked of the system for whole pages within the target only; without the request the copy is the same."""
    data = random_items(1 << 20)
    x = gw.asarray(data, device)
    asked = transfers.note_requests_for_pages(monkeypatch)
    found = x.to_numpy()
    same_bits(found, data)
    begin = found.__array_interface__["data"][0]
    assert asked
    assert all(a % mmap.PAGESIZE == n % mmap.PAGESIZE == 0 and n > 0 for a, n in asked)
    assert begin <= min(a for a, _ in asked)
    assert max(a + n for a, n in asked) <= begin + found.nbytes
    asked.clear()
    x.to_numpy(out=found)
    assert asked == []
    transfers.refuse_requests_for_pages(monkeypatch)
    same_bits(x.to_numpy(), data)


@pytest.mark.parametrize("overlap", [True, False])
def test_streams_take_any_layout(device, overlap):
    data = random_items(12 * CHUNK)
    chunks = [data[: 4 * CHUNK][::-1], data[4 * CHUNK : 4 * CHUNK + 3], data[5 * CHUNK :: 2]]
    found = np.concatenate(list(gw.stream(gw.Scan(device), chunks, overlap=overlap)))
    same_bits(found, np.cumsum(np.concatenate(chunks), dtype=np.uint32))


@through_staging
def test_a_profile_shows_each_chunk(device, require):
    require("timestamp-query")
    data = random_items(5 * CHUNK)
    x = gw.asarray(data, device)
    with gw.profile(device) as prof:
        x.copy_from(data)
        same_bits(x.to_numpy(), data)
    rows = {(row.name, row.kind): row for row in prof.key_averages()}
    assert rows["upload", "transfer"].calls == rows["download", "transfer"].calls == 1
    for name in ("copy to GPU", "copy to host"):
        assert rows[name, "copy"].calls == 5
        assert rows[name, "copy"].gpu_time_total_ns > 0
    for name in ("copy to staging", "copy from staging"):
        assert rows[name, "host"].calls == 5


def test_a_profile_shows_the_steps_of_mapped_copies(device):
    data = random_items(5 * CHUNK)
    x = gw.asarray(data, device)
    with gw.profile(device) as prof:
        x.copy_from(data)
        same_bits(x.to_numpy(), data)
    calls = {row.name: row.calls for row in prof.key_averages() if row.kind in ("host", "transfer")}
    assert calls["upload"] == calls["download"] == 1
    steps = [calls.get(f"copy {word} GPU memory", 0) for word in ("to", "from")]
    assert steps == ([1, 1] if inside.is_mappable(device) else [0, 0])


def test_streams_copy_through_mapped_memory(device, monkeypatch):
    """Never by the path that blocks; but for the carry that a scan begins with."""
    write = device.queue.write_buffer

    def must_not(*arguments):
        assert len(arguments) == 3, "a copy that is not through mapped memory"
        assert len(arguments[2]) <= 16, "a copy that is not through mapped memory"
        return write(*arguments)

    data = random_items(12 * CHUNK)[::-1]
    for name in ("write_buffer", "read_buffer"):
        monkeypatch.setattr(device.queue, name, must_not, raising=False)
    found = np.concatenate(list(gw.stream(gw.Scan(device), [data[: 5 * CHUNK], data[5 * CHUNK :]])))
    same_bits(found, np.cumsum(data, dtype=np.uint32))


# ---- the end of a device, and of a process ----


def test_destroying_a_device_waits_for_threads_that_copy(fresh_device, monkeypatch, wgpu_errors):
    """With the device the mapped memory goes; a thread that touches it then ends the process."""
    data = random_items(9 * CHUNK)
    x = gw.asarray(data, fresh_device)
    x.to_numpy()
    copyto, copying, go_on, ended = np.copyto, threading.Event(), threading.Event(), []

    def slow(*args, **kwargs):
        copying.set()
        assert go_on.wait(60)
        assert not ended, "the device was destroyed in the middle of a copy"
        copyto(*args, **kwargs)

    monkeypatch.setattr(np, "copyto", slow)
    raised = []

    def read():
        try:
            x.to_numpy()
        except gw.DeviceLostError as error:
            raised.append(error)

    reader = threading.Thread(target=read)
    reader.start()
    assert copying.wait(60)
    destroyer = threading.Thread(target=lambda: (fresh_device.destroy(), ended.append(1)))
    destroyer.start()
    while not inside.is_ending(fresh_device):
        assert destroyer.is_alive()
    destroyer.join(0.2)
    assert destroyer.is_alive()
    go_on.set()
    destroyer.join(60)
    reader.join(60)
    assert not destroyer.is_alive()
    assert not reader.is_alive()
    assert len(raised) == 1
    wgpu_errors.clear()
    with pytest.raises(gw.GridwiseError):
        x.to_numpy()
    wgpu_errors.clear()


START = """
import os, sys, threading, time
import numpy as np
import gridwise_py as gw
data = np.arange(3_000_000, dtype=np.uint32)
device = gw.request_device()
x = gw.asarray(data, device)
"""

DESTROYED = (
    START
    + """
lost = 0
for turn in range(6):
    device = gw.request_device()
    x = gw.asarray(data, device)
    killer = threading.Timer(0.004 * turn, device.destroy)
    killer.start()
    try:
        while True:
            x.copy_from(data) if turn % 2 else x.to_numpy()
    except gw.DeviceLostError:
        lost += 1
    killer.join()
print("lost", lost)
"""
)

AT_THE_END = (
    START
    + """
import atexit
atexit.register(lambda: print("equal", np.array_equal(x.copy_from(data[::-1]).to_numpy(), data[::-1])))
x.to_numpy()
"""
)


@pytest.mark.parametrize(
    ("route", "program", "said"),
    [
        pytest.param(DIRECT, DESTROYED, "lost 6", id="destroyed"),
        pytest.param("staging", AT_THE_END, "equal True", id="at the end"),
        pytest.param("staging", DESTROYED, "lost 6", id="destroyed, by staging", marks=pytest.mark.slow),
        pytest.param(DIRECT, AT_THE_END, "equal True", id="at the end, mapped", marks=pytest.mark.slow),
    ],
    indirect=["route"],
)
def test_ends(device, program, said):
    done = python(program)
    assert done.stdout.strip() == said, done.stderr[-3000:]
