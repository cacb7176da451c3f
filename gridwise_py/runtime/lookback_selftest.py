"""The self-test of look-back: whether workgroups of one dispatch can wait for each other on a device.

WGSL promises neither that a workgroup makes progress while another waits for it, nor when one sees what another wrote.
Kernels with look-back are right all the same, by a fallback, where words are not torn; but they are slow where the
fallback is the rule. So a device is tried before it is trusted, and the verdict is kept on disk.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import numpy as np
import wgpu

from ..backend.queues import submit, wait_idle
from ..errors import DeviceTimeoutError, GridwiseError
from ..planning.builder import PlanBuilder
from ..planning.faults import Faults
from ..planning.kernel_request import KernelFile, Memory
from ..planning.layout import Layout
from ..planning.lookback_state import SPIN_LIMIT, ChainedState
from ..planning.plan import Plan, Work
from ..storage import cache
from ..types.capabilities import Capabilities, LookbackVerdict
from .context import context_of
from .device import device_key
from .executor import BufferRange, Executor

_FORMAT = 1  # of the file
_KIND = "lookback"


@dataclass(frozen=True)
class LookbackProbe:
    """Counts of some dispatches of the self-test, whose plans and verdict are made here, too.

    Attributes
    ----------
    tickets, stalled : bool
        Whether tiles took tickets; whether some tiles never published.
    dispatches : int
        Those that were done.
    wrong, again, finished : int
        Tiles with a wrong sum, tiles that were computed again, tiles that finished.
    in_time : bool
        Whether all dispatches could be done within `LIMIT_NS`.
    """

    #: More workgroups than any GPU runs at once, so that some wait for others that have not started.
    TILES: ClassVar[int] = 8192
    DISPATCHES: ClassVar[int] = 32
    STALLED_DISPATCHES: ClassVar[int] = 4
    #: The share of tiles that may be computed again; a busy machine is no reason to give up half the speed.
    AGAIN_AT_MOST: ClassVar[float] = 0.01
    #: What each of its two or three parts may take; SwiftShader's Vulkan, without progress, would need 10 s in all.
    LIMIT_NS: ClassVar[int] = 1_000_000_000

    tickets: bool
    stalled: bool
    dispatches: int
    wrong: int
    again: int
    finished: int
    in_time: bool = True

    @classmethod
    def plan(
        cls, capabilities: Capabilities, state: str, *, tickets: bool, stalled: bool = False,
        stall_every: int = 5, spin_limit: int = 16,
    ) -> Plan:  # fmt: skip
        """Return the plan of one dispatch.

        Its argument ``counts`` is of three words, to which it adds the tiles whose sum was wrong, those that were
        computed again for want of a post, and those that finished. If some are to be `stalled`, every so many never
        publish: every poll for them fails, and few polls keep the test short.
        """
        layout = Layout.separate(counts=3)
        builder = PlanBuilder("lookback probe", layout, capabilities)
        faults, spins = (Faults(stall_every), spin_limit) if stalled else (Faults(0), SPIN_LIMIT)
        words = ChainedState.choose(capabilities, state, spins, faults).add_to(builder, cls.TILES)
        builder.kernel(
            "lookback probe",
            KernelFile(
                "lookback_probe.wgsl",
                context={"tickets": tickets, **{name: words[name] for name in ("control", "state", "read_by_rmw")}},
                constants=words["constants"] | {"WORKGROUP_SIZE": 64},
                features=words["features"],
            ),
            Memory(atomics=words["atomics"] | {"counts": (layout["counts"], "array<atomic<u32>>")}),
            params={"tiles": cls.TILES},
            extent="tiles",
        )
        return builder.build(Work(0, 0, 0), {"tickets": tickets})

    @property
    def right(self) -> bool:
        """Whether every sum was right and every tile finished."""
        return self.wrong == 0 and self.finished == self.dispatches * self.TILES

    @property
    def progress(self) -> bool:
        """Whether hardly any tile was computed again."""
        return self.again <= self.AGAIN_AT_MOST * self.dispatches * self.TILES

    @staticmethod
    def verdict_on(device: wgpu.GPUDevice, state: str) -> LookbackVerdict:
        """Return `lookback_verdict`, for applications."""
        return lookback_verdict(device, state)

    @classmethod
    def verdict(cls, tests: Sequence[LookbackProbe], duration_ns: float | None = None) -> LookbackVerdict:
        """Return the verdict from the counts of a self-test.

        Parameters
        ----------
        tests : sequence of LookbackProbe
            Without tickets, or not on a CPU, where they are always taken; if tiles then made no progress, with tickets;
            then with stalled tiles, with tickets or without as in the test before.
        duration_ns : float, optional
            Of the self-test.
        """
        plain, stalled = ([test for test in tests if test.stalled is kind] for kind in (False, True))
        last = plain[-1]
        coherent = all(test.right for test in plain)
        recovers = bool(stalled) and all(test.right and test.again > 0 for test in stalled)
        late = None if last.in_time or not last.progress else f"it did not finish within {cls.LIMIT_NS / 1e9:g} s"
        return LookbackVerdict(coherent, last.progress, last.progress and last.tickets, recovers, duration_ns, late)


def _count(device: wgpu.GPUDevice, executor: Executor, plan: Plan, dispatches: int) -> tuple[int, int, int]:
    """Run a probe; return how many tiles were wrong, were computed again, and finished."""
    size = plan.buffer("counts").size_bytes
    usage = wgpu.BufferUsage.STORAGE | wgpu.BufferUsage.COPY_SRC
    counts = device.create_buffer(label="gridwise lookback probe", size=size, usage=usage)
    encoder = device.create_command_encoder(label="gridwise lookback probe")
    executor.bind(plan, {"counts": BufferRange(counts, 0, size)}).encode(encoder, trials=dispatches)
    submit(device, [encoder.finish()], "self-test of look-back")
    wait_idle(device)
    found = np.zeros(3, dtype=np.uint32)
    context_of(device).read_buffer(counts, 0, found)
    wrong, again, finished = (int(count) for count in found)
    return wrong, again, finished


def _test(device: wgpu.GPUDevice, state: str) -> LookbackVerdict:
    begin = time.perf_counter_ns()
    capabilities = context_of(device).capabilities
    executor = Executor(device)  # of its own, so that nothing of the test is kept
    is_cpu = capabilities.is_cpu
    # Side by side; those with tickets are needed on few adapters that are no CPU.
    kinds = (False, True)
    _kept = executor.pipelines_of(
        *(LookbackProbe.plan(capabilities, state, tickets=is_cpu, stalled=kind) for kind in kinds)
    )

    def probe(*, tickets: bool, stalled: bool) -> LookbackProbe:
        plan = LookbackProbe.plan(capabilities, state, tickets=tickets, stalled=stalled)
        wanted, done = LookbackProbe.STALLED_DISPATCHES if stalled else LookbackProbe.DISPATCHES, 0
        wrong = again = finished = 0
        begin_ns, in_time = time.perf_counter_ns(), True
        while done < wanted and in_time:
            dispatches, round_ns = min(max(1, done), wanted - done), time.perf_counter_ns()
            counts = _count(device, executor, plan, dispatches)
            wrong, again, finished = wrong + counts[0], again + counts[1], finished + counts[2]
            done += dispatches
            now_ns = time.perf_counter_ns()
            # As many again, in the time that these took.
            next_ns = (now_ns - round_ns) * min(done, wanted - done) // dispatches
            in_time = done == wanted or now_ns + next_ns - begin_ns <= LookbackProbe.LIMIT_NS
        return LookbackProbe(tickets, stalled, done, wrong, again, finished, in_time)

    tests: list[LookbackProbe] = []
    for tickets in (True,) if is_cpu else kinds:
        tests.append(probe(tickets=tickets, stalled=False))
        if tests[-1].progress:
            break
    tests.append(probe(tickets=tests[-1].tickets, stalled=True))
    return LookbackProbe.verdict(tests, float(time.perf_counter_ns() - begin))


def known_verdict(device: wgpu.GPUDevice, state: str) -> LookbackVerdict | None:
    """Return what an earlier self-test found, of this process or another one; None without one."""
    known = context_of(device).lookback_verdicts
    if state not in known:
        data: Any = cache.load(_KIND, device_key(device) | {"state": state}, _FORMAT)
        with suppress(TypeError, KeyError, ValueError, OverflowError):  # of a broken file
            found = LookbackVerdict(**data["verdict"])
            if found.duration_ns is not None:
                cache.positive(found.duration_ns)
            answers = (found.coherent, found.progress, found.needs_tickets, found.recovers)
            if all(type(answer) is bool for answer in answers) and isinstance(found.error, str | None):
                known[state] = found
    return known.get(state)


def lookback_verdict(device: wgpu.GPUDevice, state: str) -> LookbackVerdict:
    """Return whether workgroups can wait for each other on a device: from memory, disk, or by a test.

    The test takes some 100 ms, and no more than 3 s on an adapter that is too slow for it, which is then not safe.

    Parameters
    ----------
    device : wgpu.GPUDevice
        Any, also one that was not made by `request_device`.
    state : {"u64", "u32x2"}
        Form of the state words (`ChainedState`) that the caller will use.
    """
    with context_of(device).lock:
        found = known_verdict(device, state)
        if found is None:
            try:
                found = _test(device, state)
            except DeviceTimeoutError:  # it was asked for, and says nothing about look-back
                raise
            except (GridwiseError, wgpu.GPUError) as error:
                found = LookbackVerdict(False, False, False, False, error=f"{type(error).__name__}: {error}")
            # A wait in vain or an error may be an accident of a busy machine: another process tries again.
            if found.safe or (found.error is None and not found.coherent):
                cache.save(_KIND, device_key(device) | {"state": state}, _FORMAT, {"verdict": asdict(found)})
            context_of(device).lookback_verdicts[state] = found
        return found
