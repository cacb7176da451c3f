"""What tests must know of the inside, in one place: to look at what is kept, and to change what comes next."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import wgpu

import gridwise_py as gw
from gridwise_py.backend import queues as queues
from gridwise_py.backend.activity import Activity as Activity
from gridwise_py.backend.dawn import prepare as prepare_dawn  # noqa: F401
from gridwise_py.backend.device_state import state_of
from gridwise_py.backend.engine import engine_of
from gridwise_py.backend.mapped_memory import Mapping as Mapping
from gridwise_py.bench.checks.check import mismatch as mismatch
from gridwise_py.planning import builder as plan_builder
from gridwise_py.planning.faults import faulty as faulty
from gridwise_py.planning.shaders import compose_kernel
from gridwise_py.planning.shaders import prologue as prologue
from gridwise_py.runtime import batch, context, event, memory, run, runnable, sequence
from gridwise_py.runtime import device as device_module
from gridwise_py.runtime.batch import MOST_PENDING as MOST_PENDING
from gridwise_py.runtime.compile_threads import compile_threads
from gridwise_py.runtime.context import DeviceContext, context_of
from gridwise_py.runtime.lookback_selftest import lookback_verdict
from gridwise_py.timing import queries as timing_queries

# ---- looks (the names that are imported as themselves are for programs of their own, which hook them)


def counts(device: wgpu.GPUDevice) -> dict[str, int]:
    """Return how many plans, pipelines, bindings, … are kept for a device."""
    return context_of(device).executor.counts


def compiled(device: wgpu.GPUDevice) -> int:
    """Return how many pipelines were asked for that were not there, once all are compiled."""
    compile_threads().finish()
    return context_of(device).executor.pipelines.compiled


def own_words(device: wgpu.GPUDevice, plan: gw.Plan, name: str) -> np.ndarray:
    """Return what is in a buffer that a plan has for itself."""
    return gw.Array(context_of(device).executor._plans[plan].own[name], "u32").to_numpy()


def state_words(device: wgpu.GPUDevice, plan: gw.Plan, tiles: int) -> np.ndarray:
    """Return two words for each tile. States of many tiles, and all on CPU adapters, lie 32 bytes apart."""
    apart = 8 if gw.capabilities(device).is_cpu else 2
    return own_words(device, plan, "states")[: apart * tiles].reshape(tiles, apart)[:, :2]


def kept(device: wgpu.GPUDevice, cls: type[gw.Primitive]) -> dict[Any, Any]:
    """Return the primitives of a class that one-shot functions keep."""
    return context_of(device).cached(("one-shot functions", cls), dict)


def kept_stagings(device: wgpu.GPUDevice) -> list[Any]:
    """Return the staging buffers that streams left for the next ones."""
    return context_of(device).cached("stagings of streams", list)._kept


def is_observed(device: wgpu.GPUDevice) -> bool:
    """Return whether a profile watches a device."""
    return context_of(device).observer is not None


def is_lookback_safe(device: wgpu.GPUDevice, state: str) -> bool:
    """Return what the self-test of look-back found."""
    return lookback_verdict(device, state).safe


def lookback_verdicts(device: wgpu.GPUDevice) -> dict[str, Any]:
    """Return what is known of look-back so far."""
    return context_of(device).lookback_verdicts


def take_doubles(monkeypatch: pytest.MonkeyPatch, device: wgpu.GPUDevice) -> None:
    """Let a device have no float64."""
    monkeypatch.setattr(context_of(device), "has_float64", False)


def pairs_in_use(device: wgpu.GPUDevice) -> int:
    """Return how many pairs of timestamp queries are lent, once those of garbage and of what was submitted are back."""
    if "timestamp-query" not in device.features:
        return 0
    gw.timing_helper(device).collect()
    return gw.timing_helper(device).pairs_in_use


def pending(device: wgpu.GPUDevice) -> list[str]:
    """Return the names of the calls that a batch holds back."""
    return [call[0] for call in state_of(device).pending]


def is_idle(device: wgpu.GPUDevice) -> bool | None:
    """Return whether the queue is idle; None: that cannot be told."""
    return queues.queue_is_idle(device)


def is_mappable(device: wgpu.GPUDevice) -> bool:
    """Return whether Arrays are copied to and from while they are mapped."""
    return context_of(device).memory.is_mappable


def engine_name(device: wgpu.GPUDevice) -> str:
    """Return the name of a device's engine."""
    return context_of(device).engine.name


def is_ending(device: wgpu.GPUDevice) -> bool:
    """Return whether the end of a device has begun."""
    return state_of(device).end.reached


def mapped_buffers(device: wgpu.GPUDevice) -> list[Any]:
    """Return the buffers that are mapped just now."""
    return state_of(device).end.mapped


def locks_of(device: wgpu.GPUDevice, primitive: gw.Primitive) -> list[Any]:
    """Return every lock that calls of a primitive take."""
    own = context_of(device)
    locks = [primitive._plans_lock, own.lock, own.executor._lock, device_module._default_lock, context._creation_lock]
    return [*locks, own.timing_helper._lock] if own.has_timestamps else locks


def switches(device: wgpu.GPUDevice) -> dict[str, bool]:
    """Return the switches of a device's engine."""
    return dict(context_of(device).engine.switches)


def findings_key(device: wgpu.GPUDevice) -> dict[str, Any]:
    """Return what findings about a device are kept under."""
    return device_module.device_key(device)


def block(array: gw.Array) -> Any:
    """Return what tells the memory of an Array; it does not keep the allocator from reusing it."""
    return array.lease.buffer.uid


# ---- what comes next


def let_adapters_make(monkeypatch: pytest.MonkeyPatch, device: wgpu.GPUDevice, make: Callable[..., Any]) -> None:
    """Let the adapters of a device's engine make devices by a function of the adapter and more."""
    monkeypatch.setattr(engine_of(device), "request_device", make)


def let_the_adapter_be_a_cpu(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[wgpu.GPUAdapter]]:
    """Let there be one adapter, a CPU, and no default device; return what finds it anew."""
    info, find = dict(gw.request_device().adapter.info), device_module._adapters

    def find_cpu(*_: Any) -> list[wgpu.GPUAdapter]:
        adapter = next(each for each in find(False) if dict(each.info) == info)
        monkeypatch.setitem(adapter.info, "adapter_type", "CPU")
        return [adapter]

    monkeypatch.setattr(device_module, "_adapters", find_cpu)
    forget_default_device(monkeypatch)
    return find_cpu


def forget_default_device(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let there be no default device yet."""
    monkeypatch.setattr(device_module, "_default", [])


def forget_software_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let nobody have been told yet that a CPU computes."""
    monkeypatch.setattr(device_module, "_told_of_software", [])


def finish_compiling() -> None:
    """Wait for what earlier tests have left to compile."""
    compile_threads().finish()


def forget_plans(device: wgpu.GPUDevice) -> None:
    """Drop all plans, bindings and pipelines that are kept."""
    context_of(device).executor.clear()


def forget_checks(device: wgpu.GPUDevice) -> None:
    """Drop the verdicts of look-back and of users' operators: they are found out once more."""
    context_of(device).lookback_verdicts.clear()
    context_of(device).checked_operators.clear()


def note_calls(monkeypatch: pytest.MonkeyPatch, owner: Any, *names: str) -> list[str]:
    """Return a list that gets the name of each call of these functions; they do what they did."""
    noted: list[str] = []
    for name in names:
        real = getattr(owner, name)

        def noting(*arguments: Any, _name: str = name, _real: Any = real, **options: Any) -> Any:
            noted.append(_name)
            return _real(*arguments, **options)

        monkeypatch.setattr(owner, name, noting, raising=False)
    return noted


def note_native_calls(monkeypatch: pytest.MonkeyPatch, device: wgpu.GPUDevice, *names: str) -> list[str]:
    """Note calls of wgpu's C functions."""
    return note_calls(monkeypatch, state_of(device).engine.native_functions(), *names)


def use_public_calls(monkeypatch: pytest.MonkeyPatch, device: wgpu.GPUDevice) -> None:
    """Let a device have no C functions, as with another version of wgpu-py."""
    monkeypatch.setattr(state_of(device).engine, "native_functions", lambda: None)


def refuse_downloads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let whatever reads from a GPU fail."""
    monkeypatch.setattr(DeviceContext, "read_buffer", None)


def limit_queries(monkeypatch: pytest.MonkeyPatch, *, sets: int, pairs: int) -> None:
    """Let a device have so few sets of timestamp queries, of so few pairs each."""
    monkeypatch.setattr(timing_queries, "_MAX_SETS", sets)
    monkeypatch.setattr(timing_queries, "_PAIRS_PER_SET", pairs)


def share_memory_of_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the calls of a sequence share their plan's temporary memory, as where it is large."""
    monkeypatch.setattr(sequence, "_MOST_APART_BYTES", 0)


def submit_ahead(monkeypatch: pytest.MonkeyPatch, least_bytes: int) -> list[str]:
    """Let sequences submit calls ahead that move so many bytes; return a list of their submissions."""
    monkeypatch.setattr(sequence, "_AHEAD_BYTES", least_bytes)
    return note_calls(monkeypatch, sequence, "launch")


def let_devices_be_in_use(monkeypatch: pytest.MonkeyPatch, default: wgpu.GPUDevice) -> dict[wgpu.GPUDevice, int]:
    """Return what an event takes for the devices in use; where none is, it takes the default."""
    uses: dict[wgpu.GPUDevice, int] = {}
    monkeypatch.setattr(event, "queue_uses", lambda: uses)
    monkeypatch.setattr(event, "default_device", lambda: default)
    return uses


def never_poll(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let waits block at once."""
    monkeypatch.setattr(queues, "_POLLING_NS", 0)


def let_queue_be_busy(monkeypatch: pytest.MonkeyPatch, answer: bool | None = False) -> None:
    """Let events hear that the queue is still at work; None: that it cannot be told."""
    monkeypatch.setattr(event, "queue_is_idle", lambda _device: answer)


def once_a_batch_is_encoded(monkeypatch: pytest.MonkeyPatch, do: Callable[[], Any]) -> list[int]:
    """Do something in the middle of the next submission of a batch; return a list that tells whether that was."""
    encode, entered = batch._encode, []

    def encode_and_do(*arguments: Any) -> Any:
        commands = encode(*arguments)
        if not entered:
            entered.append(1)
            do()
        return commands

    monkeypatch.setattr(batch, "_encode", encode_and_do)
    return entered


def refuse_submissions_of_batches(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    """Let each submission of a batch raise."""

    def refuse() -> None:
        raise error

    monkeypatch.setattr(batch, "prepared_submission", lambda *_: refuse)


def spoil_dispatches(call: gw.BoundCall) -> Callable[[], None]:
    """Let a call dispatch more workgroups than its device has, as no plan does; return what mends it."""
    raw = call.bound_plan.raw
    right, most = raw._steps, call.device.limits["max-compute-workgroups-per-dimension"]
    raw._steps = [(pipeline, group, most + 1, 1, 1) for pipeline, group, *_ in right]
    return lambda: setattr(raw, "_steps", right)


def before_waits(monkeypatch: pytest.MonkeyPatch, do: Callable[[wgpu.GPUDevice], Any]) -> None:
    """Do something before each wait of a call, of an awaited call, and of an event."""
    for module in (run, runnable, event):
        wait = module.wait_idle

        def hooked(device: wgpu.GPUDevice, _wait: Any = wait) -> Any:
            do(device)
            return _wait(device)

        monkeypatch.setattr(module, "wait_idle", hooked)


def let_only_waits_take_time(monkeypatch: pytest.MonkeyPatch, works: list[Any], each_ns: int) -> Callable[[], int]:
    """Let the clock of timed calls stand still but for waits, so long for each of `works`; return that clock."""
    now_ns, wait = 0, run.wait_idle

    def wait_for_works(device: wgpu.GPUDevice) -> int:
        nonlocal now_ns
        wait(device)
        now_ns += each_ns * len(works)
        works.clear()
        return now_ns

    monkeypatch.setattr(run, "time", SimpleNamespace(perf_counter_ns=lambda: now_ns))
    monkeypatch.setattr(run, "wait_idle", wait_for_works)
    return lambda: now_ns


def during_timed_calls(monkeypatch: pytest.MonkeyPatch, around: Callable[[Callable[[], None]], Any]) -> None:
    """Replace the submission of calls that the CPU times by `around(submission)`."""
    real = run.bracket
    monkeypatch.setattr(run, "bracket", lambda device, submit, *rest: real(device, lambda: around(submit), *rest))


def fill_memory(monkeypatch: pytest.MonkeyPatch, device: wgpu.GPUDevice, *lengths: int) -> None:
    """Let blocks of these lengths, in words, be used again that hold no zeros, however small they are."""
    monkeypatch.setattr(memory, "_CLEARED_BYTES", 0)
    garbage = [gw.asarray(np.full(n, 0xFFFFFFFF, np.uint32), device) for n in lengths * 3]
    del garbage


def change_texts(monkeypatch: pytest.MonkeyPatch, change: Callable[[str, str], str]) -> None:
    """Change each WGSL text that is composed from now on: ``change(file, text)`` returns the new one.

    Texts that were composed before are not used; call `forget_texts` at the end.
    """

    def compose(name: str, *rest: Any) -> str:
        return change(name, compose_kernel(name, *rest))

    forget_texts()
    monkeypatch.setattr(plan_builder, "compose_kernel", compose)


def forget_texts() -> None:
    """Compose all texts anew from now on."""
    plan_builder._shader.cache_clear()


def refuse_to_compose(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let it fail the test when a text is composed."""

    def refuse(*_: Any) -> str:
        raise AssertionError("composed again")

    monkeypatch.setattr(plan_builder, "compose_kernel", refuse)
