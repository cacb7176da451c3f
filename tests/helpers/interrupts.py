"""Sends SIGINT at each place where Python looks for signals, one after another, and looks what is left after each.

Python does so behind calls and in loops: of this library, of the engine, in callbacks of C, and in what runs while
objects are freed. An interrupted call may end the process the next time something is submitted: hence a script, run by
test_interrupts.py.

    PYTHONPATH=tests python -m helpers.interrupts JOB[,JOB…] [PLACES]

``PLACES`` bounds how many places are tried of each job, spread over it; all by default. Prints what it found, and how
many places each job had, as JSON.
"""

from __future__ import annotations

import dis
import functools
import gc
import itertools
import json
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import gridwise_py as gw
from gridwise_py.runtime.context import context_of

HANG_S = 120.0
LOST_S = 2.0

device = gw.request_device()
timed = "timestamp-query" in device.features
X = np.random.default_rng(0).integers(0, 1 << 32, 5000, dtype=np.uint32)
SUMS = np.cumsum(X, dtype=np.uint32)
x = gw.asarray(X, device)
LARGE = np.arange((9 << 20) // 4, dtype=np.uint32)  # several chunks, by several threads
LARGE_SUMS = np.cumsum(LARGE, dtype=np.uint32)
large = gw.asarray(LARGE, device)
pinned, up = gw.empty(X.size, "u32", device), gw.pinned_empty(X.size, "u32", "up", device)
scan, sort, reduce = gw.Scan(device), gw.Sort(device), gw.Reduce(device)
protocol = gw.SamplingProtocol(
    samples=5, warmup_s=0.001, max_warmup_s=0.002, timeout_s=0.05, check_unit=False, canary_passes=1
)


def check_equal(found: np.ndarray, wanted: np.ndarray) -> None:
    np.testing.assert_array_equal(found, wanted)


def job_to_numpy() -> None:
    check_equal(x.to_numpy(), X)


def job_large_download() -> None:
    out = np.empty_like(LARGE)
    check_equal(large.to_numpy(), LARGE)
    check_equal(large.to_numpy(out=out), LARGE)


def job_large_upload() -> None:
    large.copy_from(LARGE[::-1])
    check_equal(large.to_numpy(), LARGE[::-1])
    large.copy_from(LARGE)


def check_large() -> None:
    """The rings of both directions work, whatever an interrupted upload has left in the array."""
    large.copy_from(LARGE)
    check_equal(large.to_numpy(), LARGE)


def job_asarray() -> None:
    check_equal(gw.asarray(X[:100], device).to_numpy(), X[:100])


def job_stream() -> None:
    check_equal(np.concatenate(list(gw.stream(scan, iter(np.array_split(X, 3))))), SUMS)


def job_windows() -> None:
    """A one-shot function on several windows, with staging memory that is kept."""
    out = np.empty_like(LARGE)
    check_equal(gw.cumsum(LARGE, out=out, device=device), LARGE_SUMS)
    assert gw.sum(LARGE, dtype=np.uint32, device=device) == LARGE_SUMS[-1]


def job_pinned() -> None:
    with up.mapped() as items:
        items[:] = X
    down = gw.pinned_empty(X.size, "u32", "down", device)
    with pinned.copy_from(up).to_numpy(out=down).mapped() as items:
        check_equal(items, X)


def job_sort() -> None:
    check_equal(sort.execute(input=x).output.to_numpy(), np.sort(X))


def job_recipes() -> None:
    """Functions whose recipes are written, and run: of an Array, and of an expression."""
    context_of(device).recipes.clear()
    for _ in range(2):
        check_equal(gw.scan(x, kind="inclusive").to_numpy(), SUMS)
        assert gw.max(x ^ 1).item() == (X ^ 1).max()


def job_first_call() -> None:
    """Its pipelines compile in threads, and that of another shape behind it."""
    context_of(device).executor.clear()
    check_equal(reduce.execute(input=x).output.to_numpy(), X.sum(dtype=np.uint32, keepdims=True))


def job_timed() -> None:
    run = scan.execute(input=x, enable_gpu_timing=timed, enable_cpu_timing=True, trials=2)
    assert run.get_timing_result().cpu_total_time_ns > 0
    check_equal(run.output.to_numpy(), SUMS)


def job_event() -> None:
    event = gw.Event(device, enable_timing=timed)
    event.record()
    event.synchronize()
    encoder = device.create_command_encoder()
    event.record(encoder)
    device.queue.submit([encoder.finish()])
    event.synchronize()


def job_measure() -> None:
    assert gw.measure(scan, protocol=protocol, input=x).correct


def job_batch() -> None:
    """Whatever is interrupted, the calls that returned are done once: `steps` counts them."""
    array, items = gw.asarray(X, device), X
    copy, in_place = gw.Copy(device), gw.Scan(device, strategy="reduce_then_scan")
    try:
        with gw.batch(device):
            for _ in range(3):
                in_place.execute(input=array, output=array)
                items = np.cumsum(items, dtype=np.uint32)
            copied = copy.execute(input=array).output
            timing = in_place.execute(input=array, output=array, enable_gpu_timing=timed)
            items = np.cumsum(items, dtype=np.uint32)
    finally:
        CALLED.append((array, items))
    check_equal(array.to_numpy(), items)
    assert copied.size == X.size
    if timed:
        assert timing.get_timing_result().gpu_span_ns is not None


#: What interrupted batches have left: an array, and what it holds if each call that returned was done once. A call
#: that was interrupted itself may have been done or not.
CALLED: list[tuple[gw.Array, np.ndarray]] = []


def check_batches() -> None:
    for array, items in CALLED:
        found = array.to_numpy()
        if not np.array_equal(found, items):
            check_equal(found, np.cumsum(items, dtype=np.uint32))
    CALLED.clear()


def job_sequence() -> None:
    with gw.capture(device) as sequence:
        y = scan.execute(input=x).output
        z = sort.execute(input=x).output
    sequence.execute(enable_gpu_timing=timed)
    with gw.batch(device):
        sequence.execute()
    check_equal(y.to_numpy(), SUMS)
    check_equal(z.to_numpy(), np.sort(X))


JOBS: dict[str, Callable[[], None]] = {
    name.removeprefix("job_"): value for name, value in list(globals().items()) if name.startswith("job_")
}
CHECKS = (job_to_numpy, job_timed, job_asarray, check_large, check_batches, job_pinned)


@functools.cache
def signal_places(code: Any) -> frozenset[int]:
    """Return the offsets of the instructions before which Python looks for signals: behind calls, and in loops."""
    steps = list(dis.get_instructions(code))
    ends = [step.argval for step in steps if step.opname == "JUMP_BACKWARD"]
    for before, after in itertools.pairwise(steps):
        if before.opname.startswith(("CALL", "RESUME")):
            ends.append(after.offset)
    return frozenset(ends)


def interrupt_at(job: Callable[[], None], place: int) -> tuple[str | None, int, list[str]]:
    """Run a job, interrupted at a place.

    Returns
    -------
    where : str or None
        None: the place was not reached.
    count : int
        How many places came.
    wrong : list of str
        What came instead of a KeyboardInterrupt.
    """
    count, where, wrong = 0, None, []

    def inside(frame: Any, event: str, _argument: Any) -> Any:
        nonlocal count, where
        if event == "opcode" and frame.f_lasti in signal_places(frame.f_code):
            count += 1
            if count == place + 1:
                where = f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno} {frame.f_code.co_name}"
                signal.raise_signal(signal.SIGINT)
        return inside

    def outside(frame: Any, event: str, _argument: Any) -> Any:
        if frame.f_code.co_filename == __file__:
            return None
        frame.f_trace_lines, frame.f_trace_opcodes = False, True
        return inside

    sys._getframe().f_trace_opcodes = True  # Python 3.12 traces opcodes only if a frame wants it by then
    sys.settrace(outside)
    try:
        job()
        sys.settrace(None)
        end_s = time.monotonic() + LOST_S
        while where is not None and time.monotonic() < end_s:
            time.sleep(0.01)
        if where is not None:
            wrong = ["lost"]
    except KeyboardInterrupt:
        pass
    except Exception as error:
        wrong = [f"{type(error).__name__} in its place: {error}"]
    finally:
        sys.settrace(None)
    return where, count, wrong


def look_after(pairs: int) -> list[str]:
    """Return what is not as it was before the interrupt."""
    context, found = context_of(device), []
    if any(recorder() is not None for recorder in context.recorders.values()):
        context.recorders.clear()
        found.append("a batch or a capture stays open")
    if not gc.isenabled():
        gc.enable()
        found.append("the garbage collector stays off")
    if context.observer is not None:
        context.observer = None
        found.append("a profile stays open")
    if context.builders:
        context.builders.clear()
        found.append("a recipe stays open")

    def use() -> None:
        for check in CHECKS:
            try:
                check()
            except Exception as error:
                found.append(f"{check.__name__}: {type(error).__name__}: {error}")

    # In a thread: a lock that is still held is free to this one.
    thread = threading.Thread(target=use, daemon=True)
    thread.start()
    thread.join(HANG_S)
    if thread.is_alive():
        found.append("what is used next hangs")
    if timed and context.timing_helper.pairs_in_use > pairs:
        found.append(f"{context.timing_helper.pairs_in_use - pairs} pairs of queries stay in use")
    return found


def main() -> None:
    names, wanted = sys.argv[1].split(","), int(sys.argv[2]) if len(sys.argv) > 2 else sys.maxsize
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for use in (*CHECKS, *(JOBS[name] for name in names for _ in range(2))):
        use()
    gc.collect()
    pairs = context_of(device).timing_helper.pairs_in_use if timed else 0
    found: dict[str, list[str]] = {}
    places = {}
    for name in names:
        _, places[name], _ = interrupt_at(JOBS[name], sys.maxsize)
        for place in range(0, places[name], max(1, places[name] // wanted)):
            where, _, wrong = interrupt_at(JOBS[name], place)
            if where is None:  # a measurement does not always take the same way
                continue
            wrong += look_after(pairs)
            if wrong:
                found[where] = wrong
            if "what is used next hangs" in wrong:
                break
    if timed:
        # Nor is a query lost for good: as many as one set has can still be lent at once.
        session = context_of(device).timing_helper.session()
        for _ in range(2048 - pairs):
            session.span("one")
        sets = len(context_of(device).timing_helper._sets)
        if sets > 1:
            found["in the end"] = [f"there are {sets} sets of queries, where one should do"]
    print(json.dumps({"places": places, "found": found}))


if __name__ == "__main__":
    main()
