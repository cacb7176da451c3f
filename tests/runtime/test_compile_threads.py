"""The threads that compile: what is needed comes first and side by side, what may be needed later comes behind."""

import concurrent.futures
import gc
import threading
import time
import weakref

import pytest

from gridwise_py.runtime import compile_threads as module
from gridwise_py.runtime.compile_threads import CompileThreads, Task
from helpers.running import LONG_S, wait_until


@pytest.fixture
def threads(monkeypatch):
    """Threads for two CPUs that end with the test."""
    monkeypatch.setattr(module, "_QUIET_S", 0.02)
    monkeypatch.setattr(module.atexit, "register", lambda _end: None)
    own = CompileThreads(cpus=2)
    yield own
    own._end()


def test_no_more_threads_than_cpus(threads):
    most, now, lock = 0, 0, threading.Lock()

    def make():
        nonlocal most, now
        with lock:
            now += 1
            most = max(most, now)
        time.sleep(0.002)
        with lock:
            now -= 1

    tasks = [Task(lambda: make() or True) for _ in range(20)]
    threads.need(tasks)
    assert all(task.result() for task in tasks)
    assert most <= 2


def test_what_is_ahead_waits_for_what_is_needed(threads):
    gate, order = threading.Event(), []
    needed = Task(lambda: gate.wait(LONG_S) and (order.append("needed") or True))
    ahead = Task(lambda: order.append("ahead") or True)
    threads.need([needed])
    threads.make_ahead([ahead])
    time.sleep(0.2)
    assert not ahead.done
    gate.set()
    ahead.wait()
    assert order == ["needed", "ahead"]


def test_what_is_needed_does_not_wait_for_what_is_made_ahead():
    """Not even with a single CPU."""
    own, gate, begun = CompileThreads(cpus=1), threading.Event(), threading.Event()
    ahead = Task(lambda: begun.set() or gate.wait(LONG_S))
    own.make_ahead([ahead])
    assert begun.wait(LONG_S)
    needed = Task(lambda: 5)
    own.need([needed])
    assert needed.result() == 5
    assert not ahead.done
    gate.set()
    assert ahead.result()
    own._end()


def test_what_is_ahead_and_needed_is_made_at_once_and_once(threads, monkeypatch):
    monkeypatch.setattr(module, "_QUIET_S", 1e9)
    runs = []
    task, other = Task(lambda: runs.append(1) or 7), Task(lambda: runs.append(2) or 8)
    threads.make_ahead([task, other])
    threads.need([task, task])
    assert task.result() == 7
    assert runs == [1]
    monkeypatch.setattr(module, "_QUIET_S", 0.0)
    assert other.result() == 8
    assert runs == [1, 2]


def test_what_nobody_keeps_is_not_made(threads):
    runs, gate = [], threading.Event()
    needed = Task(lambda: gate.wait(LONG_S))  # nothing is made ahead before it
    dropped, kept = Task(lambda: runs.append("dropped") or True), Task(lambda: runs.append("kept") or True)
    threads.need([needed])
    threads.make_ahead([dropped, kept])
    del dropped
    gate.set()
    assert kept.result()
    assert runs == ["kept"]
    wait_until(lambda: not threads._tasks_ahead)


def test_an_error_comes_to_all_who_wait_and_keeps_nothing_alive(threads):
    class Device:
        pass

    gate = threading.Event()
    seen, devices = [], []

    def fail():
        device = Device()
        devices.append(weakref.ref(device))
        assert gate.wait(LONG_S)
        try:
            raise KeyError("inside")
        except KeyError as error:
            raise ValueError("broken") from error

    task = Task(fail)

    def ask():
        threads.need([task])
        try:
            task.result()
        except ValueError as error:
            seen.append((str(error), repr(error.__cause__)))

    callers = [threading.Thread(target=ask) for _ in range(3)]
    for caller in callers:
        caller.start()
    gate.set()
    for caller in callers:
        caller.join(LONG_S)
    assert seen == [("broken", "KeyError('inside')")] * 3
    gc.disable()  # without cycles, too
    try:
        wait_until(lambda: devices[0]() is None)
    finally:
        gc.enable()


def test_without_threads_the_caller_makes_it(threads, monkeypatch):
    def no_thread(_self):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", no_thread)
    here = threading.get_ident()
    task, ahead = Task(threading.get_ident), Task(threading.get_ident)
    threads.need([task])
    threads.make_ahead([ahead])
    assert task.result() == here
    threads.finish()
    assert ahead.result() == here


def test_the_end_waits_for_what_is_under_way_and_begins_nothing(threads):
    begun, gate, runs = threading.Event(), threading.Event(), []
    under_way = Task(lambda: (begun.set(), gate.wait(LONG_S), runs.append("under way")))
    behind, ahead = Task(lambda: runs.append("behind")), Task(lambda: runs.append("ahead"))
    one = CompileThreads(cpus=1)
    one.need([under_way])
    assert begun.wait(LONG_S)
    one.need([behind])
    one.make_ahead([ahead])
    threading.Timer(0.05, gate.set).start()
    one._end()
    assert runs == ["under way"]
    assert not behind.done
    assert not ahead.done
    one.need([behind])  # as a handler at exit may
    behind.wait()
    assert runs == ["under way", "behind"]
    assert not any(thread.is_alive() for thread in one._threads)
    later = Task(threading.get_ident)
    one.need([later])
    assert later.result() == threading.get_ident(), "the caller makes it"


def test_threads_that_ask_first_at_once_get_the_same(monkeypatch):
    monkeypatch.setattr(module, "_of_process", {})
    both_ask = threading.Barrier(2)

    def count_cpus():
        both_ask.wait(60)
        return 1

    monkeypatch.setattr(module, "usable_cpus", count_cpus)
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        first, second = pool.map(lambda _: module.compile_threads(), range(2))
    assert first is second
