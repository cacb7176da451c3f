"""How this library is measured beside CUB, PyTorch and CuPy on the same GPU: same data, in turns, in one run.

A script of this folder yields cases (`Case`), and `command` makes a program of it. Of each case all sides are prepared,
and what comes out is compared; then they take turns, round after round, each after a warm-up, with the GPU's clock
held. Figures are medians over all rounds:

single        one call: ours from the first timestamp to the last, theirs between two CUDA events
back to back  so many calls at once, per call: ours as dispatches in one pass, theirs as a CUDA graph, or where a call
              cannot be captured as calls between two events (``"graph": false``). Below 2^26 items this is the one to
              compare: the launch from the host lies between the events of a single call, not between its timestamps.
wall          on the CPU's clock, from an idle GPU to an idle GPU

``ratio`` is a side's time over that of the first side, which is ours: above 1, this library is faster. A mark is a
ratio that is to be reached. What is missing on a machine (nvcc, PyTorch, a GPU with CUDA) is ``skipped``, with the
reason.

The file of ``--json`` is written after each case, so that a run that is cut off leaves what it has. A case that takes
longer than --case-s ends the program with a traceback: a kernel that hangs is not waited for.
"""

from __future__ import annotations

import faulthandler
import importlib
import inspect
import itertools
import json
import os
import select
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import click
import numpy as np

import gridwise_py as gw
from gridwise_py.bench.cases.case import warm_up
from gridwise_py.bench.results.context import run_context
from gridwise_py.bench.sweep.axes import parse_axis
from gridwise_py.cli.options import AxisValues
from gridwise_py.runtime.executor import RawTransfer
from gridwise_py.storage.json_files import write_json

HERE = Path(__file__).resolve().parent
FIGURES = ("single", "back_to_back", "wall")
OURS = "gridwise_py"
#: A case of CUB's at 2^28 takes below a second, and a build minutes; what is silent for longer hangs.
_ANSWER_S, _BUILD_S = 60.0, 600
_SETTLE_ITEMS = 1 << 26
#: Of continuous work before the first round of a case: its data was made meanwhile, and the clock fell.
_FIRST_WARMUP_S = 0.25
#: Of all single calls of a round, of all its back-to-back calls, and of its calls on the CPU's clock.
_SINGLE_S, _BACK_TO_BACK_S, _WALL_S = 0.1, 0.02, 3.0
_MOST_LAUNCHES = 100
_PART_ITEMS = 1 << 22


class AxisList(AxisValues):
    """As `AxisValues`, but returns the list of values."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Check and read."""
        if isinstance(value, list):
            return value
        return list(parse_axis(f"{self.name}={super().convert(value, param, ctx)}").values)


class PeerError(Exception):
    """A side cannot do a case, or failed; the message says why."""


# ---- data


def checksum(items: np.ndarray) -> int:
    """Return the sum of all 32-bit words, each times its place plus one, modulo 2^64."""
    words = np.ascontiguousarray(items).reshape(-1).view(np.uint32)
    places = np.arange(1, min(words.size, _PART_ITEMS) + 1, dtype=np.uint64)

    def one(begin: int) -> int:
        part = words[begin : begin + _PART_ITEMS].astype(np.uint64)
        own = int((part * places[: part.size]).sum(dtype=np.uint64))
        return own + begin * int(part.sum(dtype=np.uint64))

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return sum(pool.map(one, range(0, words.size, _PART_ITEMS))) % (1 << 64)


# ---- sides


class Side:
    """What is timed.

    Attributes
    ----------
    correct : bool or None
        Whether its results are right; None if nobody looked.
    facts : dict
        What else the file says of it.
    """

    def __init__(self, correct: bool | None = None, **facts: Any):
        self.correct, self.facts = correct, facts

    def times(self, warmup_s: float, samples: int) -> Mapping[str, list[float]]:
        """Return times in ns by figure, after work of `warmup_s`."""
        raise NotImplementedError

    def release(self) -> None:
        """Free what it holds, where that is not left to the garbage collector."""


def _counts_of(call_ns: float, samples: int) -> tuple[int, int]:
    """Return how many single calls, and how many calls back to back, a round takes of a call of this length."""
    call_s = max(call_ns, 1e3) * 1e-9
    single = min(samples, max(1, int(_SINGLE_S / call_s)))
    return single, min(_MOST_LAUNCHES, max(1, int(_BACK_TO_BACK_S / call_s)))


class Ours(Side):
    """A primitive of this library with its arguments bound.

    Parameters
    ----------
    primitive : Primitive
    arrays : mapping from str to Array
    check : callable, optional
        Takes the results by name, and returns whether they are right, or what is wrong; None if nothing says it.
    """

    def __init__(
        self, primitive: gw.Primitive, arrays: Mapping[str, gw.Array],
        check: Callable[[Mapping[str, np.ndarray]], bool | str | None] | None = None,
    ):  # fmt: skip
        self._primitive, self._device = primitive, primitive.device
        self.run = primitive.execute(**arrays)
        self._call = primitive.bind()
        self._helper = gw.timing_helper(self._device)
        plan = self.run.plan
        scratch = sum(spec.size_bytes for spec in plan.buffers if spec.role == "scratch")
        super().__init__(parameters=dict(plan.parameters), temp_bytes=scratch)
        if check is not None:
            found = check(self.outputs())
            self.correct = None if found is None else found is True
            self.facts["wrong"] = found if isinstance(found, str) else None
        self._kernels: dict[str, list[float]] = {}

    def outputs(self) -> dict[str, np.ndarray]:
        """Return the results, cut to their counts."""
        return {name: array.to_numpy() for name, array in self.run.outputs.items()}

    def _single_ns(self) -> float:
        timing = self._primitive.execute(enable_gpu_timing=True).get_timing_result()
        if timing.gpu_span_ns is None:
            raise PeerError("no valid timestamps; take more items")
        for number, span in enumerate(timing.spans):
            if span.ns is not None:
                self._kernels.setdefault(f"{number} {span.label}", []).append(span.ns)
        return timing.gpu_span_ns

    def _back_to_back_ns(self, launches: int) -> float:
        session = self._helper.session()
        encoder = self._device.create_command_encoder()
        compute = encoder.begin_compute_pass(timestamp_writes=session.span("back to back"))
        for _, step in itertools.product(range(launches), self._call.bound_plan.steps):
            compute.set_pipeline(step.pipeline)
            compute.set_bind_group(0, step.group)
            compute.dispatch_workgroups(*step.workgroups)
        compute.end()
        self._device.queue.submit([encoder.finish()])
        session.submitted()
        return session.spans()[0].ns / launches

    def times(self, warmup_s: float, samples: int) -> Mapping[str, list[float]]:
        """Return single calls and calls back to back; not these where a call has copies, which would split a pass."""
        warm_up(self._call, warmup_s)
        singles, launches = _counts_of(self._single_ns(), samples)
        found = {"single": [self._single_ns() for _ in range(singles)]}
        self.facts["launches"] = launches
        if not any(isinstance(step, RawTransfer) for step in self._call.bound_plan.steps):
            found["back_to_back"] = [self._back_to_back_ns(launches) for _ in range(singles)]
        self.facts["kernels"] = [
            {"label": label.partition(" ")[2], "ns": statistics.median(times)} for label, times in self._kernels.items()
        ]
        return found

    def release(self) -> None:
        """Let go of the arrays."""
        self._primitive.release()


def walls_ns(call: Callable[[], Any], wait: Callable[[], Any], samples: int) -> list[float]:
    """Return times of a call on the CPU's clock, from an idle GPU to an idle GPU; fewer if they would take seconds."""
    found: list[float] = []
    while len(found) < samples and sum(found) < _WALL_S * 1e9:
        wait()
        begin = time.perf_counter_ns()
        call()
        wait()
        found.append(float(time.perf_counter_ns() - begin))
    return found


class Walls(Side):
    """A call on the CPU's clock alone.

    Parameters
    ----------
    call : callable
    wait : callable, optional
        Returns when the GPU is idle.
    each : int
        How many times a call does what the time is given of.
    check : callable, optional
        Takes what the first call returns; returns whether it is right.
    """

    def __init__(
        self, call: Callable[[], Any], wait: Callable[[], Any] = lambda: None, each: int = 1,
        check: Callable[[Any], bool] | None = None, **facts: Any,
    ):  # fmt: skip
        self._call, self._wait, self._each = call, wait, each
        result = call()
        super().__init__(None if check is None else bool(check(result)), **facts)

    def times(self, warmup_s: float, samples: int) -> Mapping[str, list[float]]:
        """Return walls."""
        return {"wall": [wall / self._each for wall in walls_ns(self._call, self._wait, samples)]}


class Captured(Side):
    """Calls of this library as a captured sequence.

    Parameters
    ----------
    device : wgpu.GPUDevice
    call : callable
        Makes the calls.
    check : callable
        Takes what it returned when it was captured, after a run; returns whether that is right.
    """

    def __init__(self, device: Any, call: Callable[[], Any], check: Callable[[Any], bool]):
        self._device = device
        call()  # compiles
        with gw.capture(device) as self._sequence:
            made = call()
        self._sequence.execute()
        super().__init__(bool(check(made)))
        self._events = gw.Event(device), gw.Event(device)

    def times(self, warmup_s: float, samples: int) -> Mapping[str, list[float]]:
        """Return single calls and walls."""

        def wait() -> None:
            gw.synchronize(self._device)

        deadline = time.perf_counter() + warmup_s
        while time.perf_counter() < deadline:
            self._sequence.execute()
            wait()
        found: dict[str, list[float]] = {"single": [], "wall": []}
        first, last = self._events
        for _ in range(samples):
            found["wall"] += walls_ns(self._sequence.execute, wait, 1)
            first.record()
            self._sequence.execute()
            last.record()
            last.synchronize()
            found["single"].append(first.elapsed_ns(last))
        self.facts["kernels"] = self._kernels(samples)
        return found

    def _kernels(self, samples: int) -> list[dict[str, Any]]:
        """Return the median time of each kernel of a call, in their order; a timestamp at each adds some to a call."""
        taken = [self._sequence.execute(enable_gpu_timing=True).get_timing_result() for _ in range(samples)]
        every = [
            [each.gpu_total_time_ns[i] for each in taken if each.gpu_total_time_ns] for i in range(len(taken[0].labels))
        ]
        valid = [[ns for ns in times if ns is not None] for times in every]
        return [
            {"label": label, "ns": statistics.median(times) if times else None}
            for label, times in zip(taken[0].labels, valid, strict=True)
        ]


# ---- PyTorch and CuPy


class Library:
    """PyTorch or CuPy on the same GPU, both timed by PyTorch's events and graphs.

    Attributes
    ----------
    name : str
    module : module
    torch : module
    version : str

    Raises
    ------
    PeerError
        If it is not installed, or sees no GPU.
    """

    def __init__(self, name: str):
        self.name = name
        self.torch = self._imported("torch", "PyTorch is not installed")
        if not self.torch.cuda.is_available():
            raise PeerError("PyTorch sees no GPU")
        self.module = self._imported(name, f"{name} is not installed")
        self.version: str = self.module.__version__
        self.stream = self.torch.cuda.Stream()

    def _imported(self, name: str, missing: str) -> Any:
        try:
            return importlib.import_module(name)
        except ImportError:
            more = "" if name == self.name else f" (its events and graphs are used for {self.name}, too)"
            raise PeerError(missing + more) from None

    def array(self, items: np.ndarray) -> Any:
        """Return items on the GPU. PyTorch has few kernels for unsigned words; signed ones move the same bytes."""
        signed = {np.dtype(np.uint32): np.int32, np.dtype(np.uint64): np.int64}
        if self.name == "cupy":
            return self.module.asarray(items)
        return self.module.from_numpy(items.view(signed.get(items.dtype, items.dtype))).cuda()

    def numpy(self, result: Any) -> np.ndarray:
        """Return a result."""
        return result.get() if self.name == "cupy" else result.cpu().numpy()

    @contextmanager
    def current(self) -> Generator[None]:
        """Have calls go to the stream that the events are on."""
        with self.torch.cuda.stream(self.stream):
            if self.name == "torch":
                yield
                return
            with self.module.cuda.ExternalStream(self.stream.cuda_stream):
                yield

    def wait(self) -> None:
        """Wait until the GPU is idle."""
        self.torch.cuda.synchronize()


class Called(Side):
    """A call of PyTorch or CuPy.

    Parameters
    ----------
    library : Library
    call : callable
    check : callable, optional
        Takes what it returns; returns whether that is right.
    capture : bool
        Whether a CUDA graph is tried.
    """

    def __init__(
        self, library: Library, call: Callable[[], Any], check: Callable[[Any], bool] | None = None, *,
        capture: bool = True,
    ):  # fmt: skip
        self._library, self._call, self._capture = library, call, capture
        self._begin, self._end = (library.torch.cuda.Event(enable_timing=True) for _ in range(2))
        self._graph: Any = None
        library.wait()
        with library.current():
            result = call()
        library.wait()
        super().__init__(None if check is None else bool(check(result)), version=library.version)

    def _timed_ns(self, run: Callable[[], Any]) -> float:
        self._begin.record(self._library.stream)
        run()
        self._end.record(self._library.stream)
        self._end.synchronize()
        return self._begin.elapsed_time(self._end) * 1e6

    def _several(self, launches: int) -> Callable[[], Any]:
        """Return what makes so many calls: a graph, if they can be captured."""

        def calls() -> None:
            for _ in range(launches):
                self._call()

        if self._graph is None and self._capture:
            torch = self._library.torch
            self._library.wait()
            graph = torch.cuda.CUDAGraph()
            try:
                with torch.cuda.graph(graph, stream=self._library.stream):
                    if self._library.name == "torch":
                        calls()
                    else:
                        with self._library.module.cuda.ExternalStream(torch.cuda.current_stream().cuda_stream):
                            calls()
                self._graph = graph
            except RuntimeError:
                self._capture = False
        self.facts["graph"] = self._graph is not None
        return calls if self._graph is None else self._graph.replay

    def times(self, warmup_s: float, samples: int) -> Mapping[str, list[float]]:
        """Return single calls, and calls back to back."""
        with self._library.current():
            begin = time.perf_counter()
            while True:
                pilot_ns = self._timed_ns(self._call)
                if time.perf_counter() - begin >= warmup_s:
                    break
            singles, launches = _counts_of(pilot_ns, samples)
            launches = self.facts.setdefault("launches", launches)  # of the first round, for which the graph is made
        several = self._several(launches)
        with self._library.current():
            self._timed_ns(several)  # the first launch uploads the graph
            return {
                "single": [self._timed_ns(self._call) for _ in range(singles)],
                "back_to_back": [self._timed_ns(several) / launches for _ in range(singles)],
            }

    def release(self) -> None:
        """Give the memory back to the others."""
        self._graph = self._call = None
        self._library.torch.cuda.empty_cache()


# ---- CUB


def build_cub(folder: Path, source: str = "cub_peer") -> Path | str:
    """Build CUB's side from `source`, a .cu file beside this one; return the program, or why there is none."""
    nvcc = shutil.which("nvcc") or shutil.which("/usr/local/cuda/bin/nvcc")
    if nvcc is None:
        return "nvcc is not installed"
    program = folder / source
    command = [nvcc, "-O3", "-std=c++17", "--extended-lambda", "-arch=native", "-o", str(program)]
    click.echo(f"building {source} with nvcc, some minutes (a program that was built before is given with --cub)")
    try:
        build = subprocess.run(
            [*command, str(HERE / f"{source}.cu")], capture_output=True, text=True, timeout=_BUILD_S, check=False
        )
    except subprocess.TimeoutExpired:
        return f"nvcc took longer than {_BUILD_S} s"
    return program if build.returncode == 0 else f"nvcc failed: {build.stderr.strip()[-500:]}"


class CubServer:
    """A CUDA program in a process of its own, whose data stays on the GPU while both sides take turns.

    It answers each command with a line of JSON; cub_peer.cu and cub_chain_peer.cu say which ones they know.

    Parameters
    ----------
    program : Path
    folder : Path
        For the files through which data goes; each is removed after it was read.
    """

    def __init__(self, program: Path, folder: Path):
        self._program, self._folder = program, folder
        self._process: subprocess.Popen[str] | None = None
        self._loaded: dict[str, np.ndarray] = {}
        #: The command of the case that was prepared last.
        self.prepared: tuple[object, ...] = ()

    def ask(self, *words: object) -> dict[str, Any]:
        """Send a command, and return the answer.

        Raises
        ------
        PeerError
            If the program fails or is silent. It is then ended, and the next command starts another one.
        """
        if self._process is None:
            try:
                self._process = subprocess.Popen(
                    [str(self._program)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
                )
            except OSError as error:
                raise PeerError(f"{self._program}: {error.strerror}") from error
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(" ".join(map(str, words)) + "\n")
            process.stdin.flush()
        except BrokenPipeError:
            self.close()
            raise PeerError(f"{self._program.name} ended before {words[0]}") from None
        ready, _, _ = select.select([process.stdout], [], [], _ANSWER_S)
        line = process.stdout.readline() if ready else ""
        answer = json.loads(line) if line else {"error": "ended" if ready else f"no answer in {_ANSWER_S:g} s"}
        if "error" in answer:
            # After an error on the GPU a CUDA context is of no use, so it is left with its process.
            self.close()
            raise PeerError(f"{self._program.name} {' '.join(map(str, words[:2]))}: {answer['error']}")
        return answer

    def load(self, name: str, items: np.ndarray) -> None:
        """Copy data to the GPU, if it is not there yet; other data of the same name is replaced."""
        if self._loaded.get(name) is items:
            return
        path = self._folder / f"{name.replace('/', '_of_')}.bin"
        items.tofile(path)
        try:
            self.ask("load", name, path, items.nbytes)
        finally:
            path.unlink()
        self._loaded[name] = items
        self.prepared = ()  # it may have read what had this name before

    def forget(self) -> None:
        """Free all data."""
        for name in sorted(self._loaded):
            self.ask("free", name)
        self._loaded.clear()
        self.prepared = ()

    def close(self) -> None:
        """End the program; its data goes."""
        process, self._process = self._process, None
        self._loaded.clear()
        self.prepared = ()
        if process is not None:
            process.kill()
            process.communicate()


class Cub(Side):
    """A case of a CUDA program.

    Parameters
    ----------
    server : CubServer
    command : sequence
        Prepares it.
    data : mapping from str to numpy.ndarray
        What is to be on the GPU, by the names that the command has.
    right : sequence of int, optional
        The checksums of its outputs.
    """

    def __init__(
        self,
        server: CubServer,
        command: Sequence[object],
        data: Mapping[str, np.ndarray],
        right: Sequence[int] | None = None,
    ):
        self._server, self._command, self._data = server, tuple(command), data
        answer = self._prepare()
        sums = [int(each) for each in answer["checksums"]]
        super().__init__(None if right is None else sums == list(right), checksums=[str(each) for each in sums])
        self.counts: list[int] = answer.get("counts", [])
        self.facts |= {name: answer[name] for name in ("cub_version", "temp_bytes") if name in answer}

    def _prepare(self) -> dict[str, Any]:
        for name, items in self._data.items():
            self._server.load(name, items)
        answer = self._server.ask(*self._command)
        self._server.prepared = self._command
        return answer

    def times(self, warmup_s: float, samples: int) -> Mapping[str, list[float]]:
        """Return what the program measures."""
        if self._server.prepared != self._command:
            self._prepare()
        if self._command[0] != "case":  # cub_chain_peer: no calls back to back
            answer = self._server.ask("time", warmup_s, samples)
            return {"single": answer["gpu_ns"], "wall": answer["wall_ns"]}
        pilot_ns = self._server.ask("time", warmup_s, 1, 0)["single_ns"][0]
        singles, launches = _counts_of(pilot_ns, samples)
        answer = self._server.ask("time", 0, singles, launches)
        self.facts |= {"launches": launches, "graph": answer.get("graph")}
        return {"single": answer["single_ns"], "back_to_back": answer["back_to_back_ns"]}


# ---- cases


@dataclass
class Case:
    """What is compared.

    Attributes
    ----------
    name, group : str
        By which it is chosen.
    n : int
    sides : mapping from str to callable
        Each makes a side; the first one is ours. A name whose beginning is ``cub``, ``torch`` or ``cupy`` is a peer's.
    moved_bytes : float or callable
        That must move: inputs once, and the results. A callable takes the sides by name.
    facts : dict
        What else the file says: the datatype, say.
    marks : mapping from str to (str, float) or (str, float, float)
        By side: a figure, the ratio to be reached, and a ratio beyond it.
    """

    name: str
    n: int
    sides: Mapping[str, Callable[[], Side]]
    group: str = ""
    moved_bytes: float | Callable[[Mapping[str, Side]], float | None] | None = None
    facts: Mapping[str, Any] = field(default_factory=dict[str, Any])
    marks: Mapping[str, tuple[Any, ...]] = field(default_factory=dict[str, tuple[Any, ...]])

    def is_chosen(self, words: Sequence[str]) -> bool:
        """Whether it has one of these groups or names, or begins so; any is chosen by no words."""
        return not words or any(word == self.group or self.name.startswith(word) for word in words)


class Bench:
    """What a script's cases are made with.

    Attributes
    ----------
    device : wgpu.GPUDevice
    sizes : list of int
    peers : tuple of str
        Those that are asked for.
    words : list of str
        Groups and beginnings of names, of which cases are asked for; all by none.
    """

    def __init__(
        self, device: Any, sizes: list[int], peers: Iterable[str], words: list[str], start_cub: Callable[[], CubServer]
    ):
        self.device, self.sizes, self.peers, self.words = device, sizes, tuple(peers), words
        self._start_cub = start_cub
        self._found: dict[str, Any] = {}

    def _make_once(self, name: str, make: Callable[[], Any]) -> Any:
        if name not in self.peers:
            raise PeerError("not asked for")
        if name not in self._found:
            try:
                self._found[name] = make()
            except PeerError as error:
                self._found[name] = error
        if isinstance(self._found[name], PeerError):
            raise self._found[name]
        return self._found[name]

    def library(self, name: str) -> Library:
        """Return PyTorch (``torch``) or CuPy (``cupy``); raise PeerError without it."""
        return self._make_once(name, lambda: Library(name))

    @property
    def cub(self) -> CubServer:
        """The CUDA program; raises PeerError without it."""
        return self._make_once("cub", self._start_cub)

    def forget(self) -> None:
        """Free CUDA's data, before data of another size is made."""
        if isinstance(self._found.get("cub"), CubServer):
            self._found["cub"].forget()

    def close(self) -> None:
        """End the CUDA program."""
        if isinstance(self._found.get("cub"), CubServer):
            self._found["cub"].close()

    def versions(self) -> dict[str, str]:
        """Return those of the libraries that were used."""
        return {name: found.version for name, found in self._found.items() if isinstance(found, Library)}


@dataclass(frozen=True)
class Protocol:
    """How cases are measured: turns of each side, samples of a turn at most, and work before them."""

    rounds: int
    samples: int
    warmup_s: float
    settle_s: float


class Turns:
    """The sides of a case, and the times that they took in turns.

    Parameters
    ----------
    case : Case
    """

    def __init__(self, case: Case):
        self._case, self._ours = case, next(iter(case.sides))
        self._sides: dict[str, Side] = {}
        self._skipped: dict[str, str] = {}
        for name, make in case.sides.items():
            try:
                self._sides[name] = make()
            except (PeerError, gw.GridwiseError) as error:
                self._skipped[name] = str(error) if isinstance(error, PeerError) else f"{type(error).__name__}: {error}"
            except Exception as error:
                if name == self._ours:
                    raise
                self._skipped[name] = f"{type(error).__name__}: {error!s:.300}"  # a peer's, such as no memory
        self._times: dict[str, dict[str, list[float]]] = {name: {} for name in self._sides}

    def take(self, protocol: Protocol) -> None:
        """Have the sides take turns; one that fails takes no further one."""
        first_warmup_s = _FIRST_WARMUP_S if protocol.settle_s else protocol.warmup_s
        running = list(self._sides)
        for number in range(protocol.rounds):
            for name in running if number % 2 else list(reversed(running)):
                try:
                    found = self._sides[name].times(protocol.warmup_s if number else first_warmup_s, protocol.samples)
                except (PeerError, RuntimeError) as error:
                    if name == self._ours and not isinstance(error, PeerError):
                        raise
                    self._skipped[name] = f"ended in round {number + 1}: {error!s:.300}"
                    running.remove(name)
                else:
                    for figure, taken in found.items():
                        self._times[name].setdefault(figure, []).extend(taken)

    def row(self) -> dict[str, Any]:
        """Return what the file says of the case, and free what the sides hold."""
        case, sides = self._case, self._sides
        correct = [side.correct for side in sides.values() if side.correct is not None]
        moved = case.moved_bytes(sides) if callable(case.moved_bytes) else case.moved_bytes
        row: dict[str, Any] = {
            "case": case.name, "group": case.group, "n": case.n, **case.facts,
            "correct": all(correct) if correct else None, "moved_bytes": moved, "sides": {},
        }  # fmt: skip
        medians = {
            name: {figure: statistics.median(taken) for figure, taken in found.items() if taken}
            for name, found in self._times.items()
        }
        ours = {} if self._ours in self._skipped else medians[self._ours]
        for name in case.sides:
            if name in self._skipped:
                row["sides"][name] = {"skipped": self._skipped[name]}
                continue
            ratio = {figure: time_ns / ours[figure] for figure, time_ns in medians[name].items() if figure in ours}
            row["sides"][name] = {
                **dict.fromkeys(FIGURES[:2]), **medians[name], "ratio": ratio, "correct": sides[name].correct,
                **({"mark": list(case.marks[name])} if name in case.marks else {}), **sides[name].facts,
                **{f"{figure}_ns": taken for figure, taken in self._times[name].items()},
            }  # fmt: skip
        for side in sides.values():
            side.release()
        return row


def measure(case: Case, protocol: Protocol) -> dict[str, Any]:
    """Prepare all sides of a case, have them take turns, and return its row."""
    turns = Turns(case)
    turns.take(protocol)
    return turns.row()


# ---- what is printed


def power(n: int) -> str:
    """Return 2^20, or a number."""
    return f"2^{n.bit_length() - 1}" if n & (n - 1) == 0 and n else f"{n:,}"


def lines_of(row: Mapping[str, Any]) -> list[str]:
    """Return a case's lines for people."""
    ours, *_ = row["sides"]
    lines = [f"{row['case']}, {power(row['n'])}"]
    for name, side in row["sides"].items():
        if "skipped" in side:
            if side["skipped"] != "not asked for":
                lines.append(f"  {name:26} not here: {side['skipped']}")
            continue
        words: list[str] = []
        for figure in (figure for figure in FIGURES if side.get(figure) is not None):
            rate = f"{row['moved_bytes'] / side[figure]:6.0f} GB/s" if row["moved_bytes"] else ""
            ratio = "" if name == ours or figure not in side["ratio"] else f"{side['ratio'][figure]:8.2f} x"
            words.append(f"{figure.replace('_', ' ')} {side[figure] / 1e3:11.1f} µs {rate}{ratio}")
        if "mark" in side:
            figure, mark, *more = side["mark"]
            ratio = side["ratio"].get(figure, 0.0)
            reached = "BELOW" if ratio < mark else "above" if more and ratio >= more[0] else "reached"
            words.append(f"mark {mark:g} x {figure.replace('_', ' ')}: {reached}")
        if side["correct"] is False:
            words.append(f"WRONG: {side.get('wrong') or 'its results differ'}")
        lines.append(f"  {name:26} {'   '.join(words)}")
    return lines


# ---- the command


def settle(device: Any, seconds: float) -> None:
    """Copy for `seconds`, beyond every cache, so that the first case does not find a clock that is still rising."""
    if seconds:
        copy = gw.Copy(device, "u32")
        arrays = {"input": gw.empty(_SETTLE_ITEMS, "u32", device), "output": gw.empty(_SETTLE_ITEMS, "u32", device)}
        warm_up(copy.bind(**arrays), seconds)
        for array in arrays.values():
            array.destroy()


@contextmanager
def ended_after(seconds: float) -> Generator[None]:
    """End the program where the block takes longer: a wait for a kernel that hangs never comes back to Python."""
    faulthandler.dump_traceback_later(seconds, exit=True, file=sys.__stderr__)
    try:
        yield
    finally:
        faulthandler.cancel_dump_traceback_later()


class Program:
    """A script of cases: what is asked for, and the file.

    Parameters
    ----------
    asked : mapping
        The options.
    source : str
        The name of its CUDA program.
    folder : Path
        For what is built, and for data.
    """

    def __init__(self, asked: Mapping[str, Any], source: str, folder: Path):
        self._asked, self._begin_s = asked, time.perf_counter()
        self.protocol = Protocol(*(asked[name] for name in ("rounds", "samples", "warmup_s", "settle_s")))
        self.device = gw.request_device(asked["adapter"])
        self._context = run_context(self.device)
        words = [word for word in (part.strip() for part in asked["cases"].split(";")) if word]

        def start_cub() -> CubServer:
            built = asked["cub"] or build_cub(folder, source)
            if isinstance(built, str):
                raise PeerError(built)
            return CubServer(built.resolve(), folder)

        self.bench = Bench(self.device, asked["sizes"], filter(None, asked["peers"].split(",")), words, start_cub)
        self.rows: list[dict[str, Any]] = []
        self.left_out: list[str] = []

    def save(self, **also: Any) -> None:
        """Write what there is."""
        if (path := self._asked["json_path"]) is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            more = {"peers": self.bench.versions(), "protocol": asdict(self.protocol), "left_out": self.left_out}
            write_json(path, {**self._context, **more, **also, "results": self.rows})

    def run(self, cases: Iterable[Case]) -> None:
        """Measure the cases that are asked for."""
        asked = self._asked
        with suppress(PeerError):  # each case says why; here it is built, while nothing is timed
            _ = self.bench.cub
        rounds, samples = self.protocol.rounds, self.protocol.samples
        click.echo(f"{gw.capabilities(self.device).adapter}; medians of {rounds} rounds of up to {samples}")
        settle(self.device, self.protocol.settle_s)
        for case in (case for case in cases if case.is_chosen(self.bench.words)):
            if asked["budget_s"] is not None and time.perf_counter() - self._begin_s > asked["budget_s"]:
                self.left_out.append(f"{case.name} at {power(case.n)}")
                continue
            with ended_after(asked["case_s"]):
                self.rows.append(measure(case, self.protocol))
            click.echo("\n".join(lines_of(self.rows[-1])))
            sys.stdout.flush()
            self.save()

    def end(self) -> None:
        """Say how it went; exit with 4 if a result is wrong."""
        if self.left_out:
            click.echo(f"left out, the time was over: {'; '.join(self.left_out)}")
        if not self.rows:
            words = self._asked["cases"]
            raise click.UsageError(f"no case has the group, or begins with, one of --cases {words!r}")
        click.echo(f"{len(self.rows)} cases in {time.perf_counter() - self._begin_s:.1f} s")
        if any(row["correct"] is False for row in self.rows):
            raise SystemExit(4)


def options_of(n: str, peers: str, rounds: int, samples: int, cases: str) -> list[Any]:
    """Return the options that all scripts have, with their defaults."""
    path = click.Path(path_type=Path)
    built = click.Path(exists=True, dir_okay=False, path_type=Path)
    return [
        click.option("--n", "sizes", type=AxisList("n"), default=n, show_default=True, help="Items."),
        click.option("--peers", default=peers, show_default=True, help="By commas; none: ours alone, on any GPU."),
        click.option("--cases", default=cases, show_default=True, help="Groups or beginnings of names, by semicolons."),
        click.option("--rounds", default=rounds, show_default=True, help="Turns of each side."),
        click.option("--samples", default=samples, show_default=True, help="Of each side, turn and figure, at most."),
        click.option("--warmup-s", default=0.03, show_default=True, help="Before each turn."),
        click.option("--settle-s", default=2.0, show_default=True, help="Of copying, before the first case."),
        click.option("--budget-s", type=float, help="No case begins later; what is left out is told."),
        click.option("--case-s", default=300.0, show_default=True, help="A case that takes longer ends the program."),
        click.option("--cub", type=built, help="A built CUDA program; by default nvcc builds it."),
        click.option("--adapter", help="Adapter by index or part of its name."),
        click.option("--json", "json_path", type=path, help="Write the figures here."),
    ]


def command(
    about: str | None, *, n: str, peers: str, rounds: int = 5, samples: int = 5, cases: str = "",
    source: str = "cub_peer", more: Sequence[Callable[[Any], Any]] = (),
    summary: Callable[[Sequence[Mapping[str, Any]]], Mapping[str, Any]] = lambda rows: {},
) -> Callable[[Callable[..., Iterator[Case]]], click.Command]:  # fmt: skip
    """Return what makes a program of a script's function, which takes a `Bench` and yields cases.

    Parameters
    ----------
    about : str
        The script's docstring.
    n, peers, cases : str
        Defaults of the options.
    rounds, samples : int
        Defaults, too.
    source : str
        The CUDA program, a .cu file beside this one.
    more : sequence of click.option
        Options of its own, which the function takes.
    summary : callable
        Takes the rows when all are there, and may print; returns what else the file says.
    """
    usual = options_of(n, peers, rounds, samples, cases)

    def made(cases_of: Callable[..., Iterator[Case]]) -> click.Command:
        def main(**given: Any) -> None:
            own = {name: given[name] for name in list(inspect.signature(cases_of).parameters)[1:]}
            with tempfile.TemporaryDirectory() as folder:
                program = Program(given, source, Path(folder))
                with gw.hold_clock(program.device):
                    try:
                        program.run(cases_of(program.bench, **own))
                    finally:
                        program.bench.close()
                program.save(**summary(program.rows))
                program.end()

        function: Any = main
        for option in reversed([*usual, *more]):
            function = option(function)
        return click.command(name=cases_of.__module__, help=f"\b\n{about}".replace("\n\n", "\n\n\b\n"))(function)

    return made
