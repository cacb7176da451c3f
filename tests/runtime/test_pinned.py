"""Pinned memory: what a caller writes goes up, what comes down is read, and no order of ends touches freed memory."""

import itertools
import os

import numpy as np
import pytest

import gridwise_py as gw
from helpers.running import in_threads, python
from helpers.transfers import hide_mapped_memory, random_items, same_bits, time_out_at_mapping


def _up(device, data):
    up = gw.pinned_empty(data.size, data.dtype, "up", device)
    with up.mapped() as items:
        assert items.shape == data.shape
        assert items.dtype == data.dtype
        items[:] = data
    return up


def _down(x):
    down = gw.pinned_empty(x.size, x.datatype, "down", x.device)
    assert x.to_numpy(out=down) is down
    with down.mapped() as items:
        assert not items.flags.writeable
        return items.copy()


def test_there_and_back(device):
    for (name, datatype), n in itertools.product(gw.STORAGE_DATATYPES.items(), (0, 1, 2, 3, 1001)):
        data = random_items(n, datatype.dtype)
        x = gw.asarray(_up(device, data), device)
        assert x.datatype.name == name
        same_bits(x.to_numpy(), data)
        same_bits(_down(x), data)


def test_memory_is_used_again_and_again(device):
    up, down, x = (
        gw.pinned_empty(5000, "u32", "up", device),
        gw.pinned_empty(5000, "u32", "down", device),
        gw.empty(5000, "u32", device),
    )
    wanted = None
    for seed in range(5):
        with up.mapped() as items:
            if wanted is not None:
                np.testing.assert_array_equal(items, wanted)  # what was written stays
            items[:] = wanted = random_items(5000, seed=seed)
        assert x.copy_from(up) is x
        with gw.scan(x).to_numpy(out=down).mapped() as items:
            np.testing.assert_array_equal(items, np.cumsum(wanted, dtype=np.uint32))
    up.destroy()
    with pytest.raises(gw.ArgumentError, match="holds no items yet"):
        x.copy_from(up)


def test_views(device):
    data, part = random_items(100), random_items(40, seed=1)
    x = gw.asarray(data, device)
    assert x[7:47].copy_from(_up(device, part)).offset == 7
    data[7:47] = part
    same_bits(x.to_numpy(), data)
    same_bits(_down(x[3:99]), data[3:99])


def test_halves_of_words(device):
    data = random_items(9, np.float16)
    x = gw.asarray(data, device)
    same_bits(_down(x[2:5]), data[2:5])
    with pytest.raises(gw.ArgumentError, match="within a word"):
        _down(x[1:5])
    for view in (x[2:5], x[1:5]):
        with pytest.raises(gw.ArgumentError, match="shares a word"):
            view.copy_from(_up(device, data[: view.size]))
    same_bits(x.to_numpy(), data)


def test_the_gpu_is_done_before_the_cpu_writes(device):
    up, x, copy, kept = (
        gw.pinned_empty(300_000, "u32", "up", device),
        gw.empty(300_000, "u32", device),
        gw.Copy(device),
        [],
    )
    for i in range(5):
        with up.mapped() as items:
            items[:] = i
        kept.append(copy.execute(input=x.copy_from(up)).output)
    for i, found in enumerate(kept):
        assert (found.to_numpy() == i).all()


def test_what_does_not_fit(device, fresh_device):
    x = gw.asarray(random_items(9), device)
    up, down = _up(device, random_items(9)), gw.pinned_empty(9, "u32", "down", device)
    for call, error, message in (
        (lambda: gw.pinned_empty(9, "u32", "both", device), gw.ArgumentError, "'up' is for memory to upload from"),
        (lambda: gw.pinned_empty(-1, "u32", "up", device), gw.ArgumentError, "at least 0"),
        (lambda: gw.pinned_empty(9, np.complex128, "up", device), gw.DatatypeError, "complex128"),
        (lambda: gw.pinned_empty(1 << 40, "u32", "up", device), gw.LimitError, "max-buffer-size"),
        (lambda: x.copy_from(down), gw.ArgumentError, r"goes down; .*pinned_empty\(9, 'u32', 'up'\)"),
        (lambda: gw.asarray(down), gw.ArgumentError, "goes down"),
        (lambda: x.to_numpy(out=up), gw.ArgumentError, r"goes up; .*pinned_empty\(9, 'u32', 'down'\)"),
        (lambda: x[1:].copy_from(up), gw.DatatypeError, "same datatype and size"),
        (lambda: x[1:].to_numpy(out=down), gw.DatatypeError, "same datatype and size"),
        (lambda: gw.asarray(up, dtype="f32"), gw.DatatypeError, "not of f32"),
        (lambda: gw.asarray(up, fresh_device), gw.BufferUsageError, "another device"),
        (lambda: gw.empty(9, "u32", fresh_device).copy_from(up), gw.BufferUsageError, "another device"),
        (lambda: x.copy_from(gw.pinned_empty(9, "u32", "up", device)), gw.ArgumentError, "holds no items"),
        (lambda: down.mapped().__enter__(), gw.ArgumentError, "holds no items yet; fill it with array.to_numpy"),
        (lambda: np.asarray(up), gw.ImplicitConversionError, "with pinned.mapped"),
        (lambda: gw.sum(up), gw.ImplicitConversionError, "with pinned.mapped"),
    ):
        with pytest.raises(error, match=message):
            call()


def test_what_is_mapped_stays_with_the_cpu(device):
    up, x = _up(device, random_items(9)), gw.empty(9, "u32", device)
    with up.mapped() as items:
        for call in (lambda: x.copy_from(up), lambda: gw.asarray(up), up.destroy, lambda: up.mapped().__enter__()):
            with pytest.raises(gw.ArgumentError, match=r"is mapped.*block"):
                call()
        items[:] = 5
    assert (x.copy_from(up).to_numpy() == 5).all()


def test_an_error_in_a_block_leaves_the_memory_as_it_is(device):
    up, x = gw.pinned_empty(9, "u32", "up", device), gw.empty(9, "u32", device)

    def fail():
        with up.mapped() as items:
            items[:] = 5
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert (x.copy_from(up).to_numpy() == 5).all()


def test_a_mapping_that_fails_costs_the_content_only(device, monkeypatch):
    up, x = _up(device, random_items(9)), gw.empty(9, "u32", device)
    with monkeypatch.context() as patch:
        time_out_at_mapping(patch)
        with pytest.raises(gw.DeviceTimeoutError), up.mapped():
            pass
    with up.mapped() as items:
        items[:] = 6
    assert (x.copy_from(up).to_numpy() == 6).all()


def test_wgpu_without_its_call_for_mapped_memory(device, monkeypatch):
    hide_mapped_memory(monkeypatch)
    for n in (0, 1, 1001):
        data = random_items(n, np.float16)
        same_bits(gw.asarray(_up(device, data), device).to_numpy(), data)


def test_threads(device):
    def work(number):
        x = gw.empty(20_000, "u32", device)
        for turn in range(5):
            data = random_items(20_000, seed=10 * number + turn)
            same_bits(_down(x.copy_from(_up(device, data))), data)

    in_threads(work)


# ---- ends: on devices of a process of their own, which touching freed memory would end

START = """
import gc, os
import numpy as np
import gridwise_py as gw
device = gw.request_device()
n = 17_000_000  # wgpu keeps the memory of smaller buffers for others
up, down = gw.pinned_empty(n, "u32", "up", device), gw.pinned_empty(n, "u32", "down", device)
x = gw.empty(n, "u32", device)
with up.mapped() as items:
    items[:] = 7
x.copy_from(up)
x.to_numpy(out=down)

def look_for_freed_memory():
    gc.collect()
    try:
        gw.synchronize(device)  # wgpu frees memory when it is asked what is done
    except gw.DeviceLostError:
        pass
"""

ENDS = {
    "a forked process": """
x.to_numpy()
child = os.fork()
if not child:
    try:
        up.mapped().__enter__()
    except gw.ForkError:
        os._exit(7)
    os._exit(1)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
with up.mapped() as items:
    print(items[::999].sum())
""",
    "destroyed in the block": """
with up.mapped() as items, down.mapped() as found:
    device.destroy()
    look_for_freed_memory()
    items[::999] += 1
    print(items[::999].sum(), found[::999].sum())
for call in (lambda: up.mapped().__enter__(), lambda: x.copy_from(up), lambda: gw.asarray(up), x.to_numpy,
             lambda: gw.empty(5, "u32", device).to_numpy()):
    try:
        call()
    except gw.DeviceLostError:
        print("lost")
print(items[::999].sum(), found[999::999].sum())
""",
    "destroyed behind the block": """
with up.mapped() as items:
    part = items[3:].reshape(1, -1)
del items
device.destroy()
look_for_freed_memory()
print(part[0, 996::999].sum())
""",
    "destroyed without arrays": """
with up.mapped() as items:
    del items
device.destroy()
try:
    gw.wait = device.create_buffer(size=4, usage=1)
except Exception as error:
    print("really", type(error).__name__)
""",
    "all else is gone": """
with down.mapped() as found:
    pass
with up.mapped() as items:
    pass
up.destroy()
del up, down, x, device
gc.collect()
print(items.size, int(items[-1]) in (0, 7), int(found[-1]) in (0, 7))
""",
    "at the end of the process": """
import atexit
block = down.mapped()
found = block.__enter__()
atexit.register(lambda: print(found[::999].sum()))
class Late:
    def __init__(self, items): self.items = items
    def __del__(self): self.items.sum()
late = Late(found)
""",
}
SEVENS, EIGHTS = (k * len(range(0, 17_000_000, 999)) for k in (7, 8))
SAID = {
    "a forked process": [7, SEVENS],
    "destroyed in the block": [EIGHTS, SEVENS, *5 * ["lost"], EIGHTS, SEVENS - 7],
    "destroyed behind the block": [SEVENS - 7],
    "destroyed without arrays": ["really", "GPUValidationError"],
    "all else is gone": [17_000_000, True, True],
    "at the end of the process": [SEVENS],
}


def test_ends(device):
    ends = {name: end for name, end in ENDS.items() if hasattr(os, "fork") or "fork" not in name}
    done = python(f"""
import warnings
warnings.simplefilter("ignore")
for name, end in {ends!r}.items():
    print(name, flush=True)
    names = {{}}
    exec({START!r} + end, names)
""")
    assert done.stdout.split() == [str(word) for name in ends for word in (*name.split(), *SAID[name])]
