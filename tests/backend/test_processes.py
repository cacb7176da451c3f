"""Forked children get a clear error, whatever they call; and two processes use one adapter at once."""

import subprocess
import sys
import textwrap

import numpy as np
import pytest

from helpers.paths import with_helpers
from helpers.running import python

pytestmark = pytest.mark.needs("fork")

# What the parent of a fork does, and what tells how the child fared. A child that hangs is ended by an alarm.
_PRELUDE = """
import ctypes, gc, os, signal, sys, threading
import numpy as np
import gridwise_py as gw
X = np.arange(1000, dtype=np.uint32)

def in_child(call):
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        signal.alarm(120)
        try:
            print("returned", call())
        except gw.ForkError as error:
            print("ForkError", error)
        except BaseException as error:
            print("raised", repr(error))
        sys.stdout.flush()
        os._exit(0)
    print("status", os.waitpid(pid, 0)[1])
"""

_USE = """
device = gw.request_device()
x = gw.asarray(X, device)
scan = gw.Scan(device)
run = scan.execute(input=x, enable_gpu_timing="timestamp-query" in device.features, enable_cpu_timing=True)
event = gw.Event(device, enable_timing=False)
event.record()
"""


CALLS = [
    "scan.execute()",
    "scan.execute(input=x)",
    "scan.bind(input=x)",
    "x.to_numpy()",
    "x.copy_from(X)",
    "gw.asarray(X, device)",
    "gw.empty(3, 'u32', device)",
    "gw.sum(x)",
    "gw.sum(X)",
    "gw.Reduce(device)",
    "gw.synchronize(device)",
    "event.query()",
    "event.synchronize()",
    "event.record()",
    "gw.Event(device)",
    "gw.capabilities(device)",
    "gw.timing_helper(device)",
    "gw.profile(device)",
    "gw.request_device()",
    "gw.request_device(device.adapter)",
    "gw.default_device()",
    "gw.list_adapters()",
    "gw.measure(scan, input=x)",
    "gw.pinned_empty(3, 'u32', 'up', device).mapped().__enter__()",
    "list(gw.stream(scan, [X]))",
]


# Parts of one child process, which makes a device first: what the parent does, and what is said by the forked children
# that it makes, before the status of each.
_PARTS = {
    # What is held back in a batch is the parent's to submit, once; the child can leave the block.
    "a batch": (
        """
in_place = gw.Scan(device, strategy="reduce_then_scan").bind(input=x, output=x)
opened = gw.batch(device)
opened.__enter__()
in_place.execute()
in_child(lambda: device.queue.submit([]))
in_child(lambda: in_place.execute())
in_child(lambda: opened.__exit__(None, None, None))
opened.__exit__(None, None, None)
assert (x.to_numpy() == np.cumsum(X)).all()
x.copy_from(X)
""",
        ["ForkError", "ForkError", "returned"],
    ),
    # What the parent has read can be read; what it has not is the parent's.
    "times": (
        """
timed = "timestamp-query" in device.features
in_child(lambda: run.get_timing_result() if timed else scan.execute())
times = run.get_timing_result()
in_child(lambda: run.get_timing_result().cpu_total_time_ns == times.cpu_total_time_ns)
""",
        ["ForkError", "returned True"],
    ),
    # Another thread holds every lock of the library while the process forks.
    "locks": (
        """
from helpers.inside import locks_of
held, done = threading.Event(), threading.Event()
def hold():
    locks = locks_of(device, scan)
    for lock in locks:
        lock.acquire()
    held.set()
    done.wait()
    for lock in locks:
        lock.release()
thread = threading.Thread(target=hold)
thread.start()
held.wait()
for call in (scan.execute, x.to_numpy, gw.default_device, lambda: gw.sum(X)):
    in_child(call)
done.set()
thread.join()
""",
        ["ForkError"] * 4,
    ),
    # Without care the driver would wait for its threads, which the child does not have.
    "dropping all": (
        """
def drop():
    global device, x, scan, run, event
    x.destroy()
    del device, x, scan, run, event
    gc.collect()
in_child(drop)
assert scan.execute().output.to_numpy()[-1] == X.sum()
""",
        ["returned None"],
    ),
}


def test_a_forked_child_gets_one_clear_error_whatever_it_calls_and_hangs_nowhere(device):
    """A child can end by a regular exit, too, and the parent's objects stay."""
    code = "import wgpu\nwgpu.gpu.enumerate_adapters_sync()\nin_child(lambda: gw.request_device())\n"  # used by others
    code += _USE + "".join(f"\nin_child(lambda: {call})" for call in CALLS)
    code += "\nassert scan.execute().output.to_numpy()[-1] == X.sum(), 'the parent goes on'\n"
    for part, _ in _PARTS.values():
        code += part
    if sys.platform == "linux":
        code += """
sys.stdout.flush()
pid = os.fork()
if pid == 0:
    signal.alarm(60)
    ctypes.CDLL(None).printf(b"of C\\n")
    sys.exit(3)
print("exit code", os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
assert scan.execute().output.to_numpy()[-1] == X.sum()
"""
    lines = python(_PRELUDE + code, **with_helpers()).stdout.splitlines()
    if sys.platform == "linux":
        assert [lines.pop(), lines.pop()] == ["exit code 3", "of C"]
    assert set(lines[1::2]) == {"status 0"}, lines
    answers = lines[::2]
    for call, answer in zip(["after others used wgpu", *CALLS], answers, strict=False):
        assert answer.startswith("ForkError this process was forked"), f"{call}: {answer}"
        assert "spawn" in answer
        assert "make the device in the child" in answer
    wanted = [want for _, said in _PARTS.values() for want in said]
    for answer, want in zip(answers[1 + len(CALLS) :], wanted, strict=True):
        assert answer.startswith(want), lines


@pytest.mark.slow
def test_a_fork_before_the_first_use_makes_its_own_device(device):
    """Importing is no use of a GPU. Both of them work then, at the same time."""
    code = """
in_child(lambda: gw.sum(X))
print(gw.sum(X))
in_child(lambda: gw.sum(X))
"""
    lines = python(_PRELUDE + code).stdout.splitlines()
    total = str(np.arange(1000).sum())
    assert lines[:3] == [f"returned {total}", "status 0", total]
    assert lines[3].startswith("ForkError")


@pytest.mark.slow
def test_spawned_workers_of_a_pool_work(device, tmp_path):
    """The remedy that the error names, while the parent's device is in use."""
    script = tmp_path / "spawned.py"
    script.write_text(
        textwrap.dedent("""
        import multiprocessing
        import numpy as np
        import gridwise_py as gw

        def total(n):
            return int(gw.sum(np.arange(n, dtype=np.uint32)))

        if __name__ == "__main__":
            print(total(10))
            with multiprocessing.get_context("spawn").Pool(2) as pool:
                print(pool.map(total, [100, 1000]))
        """),
        encoding="utf-8",
    )
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=1200, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["45", "[4950, 499500]"]
