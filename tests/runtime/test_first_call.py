"""A first call waits for the pipelines that it needs, and for no others; `warm_up` has them compiled before."""

import dataclasses
import gc
import math
import threading
import time
import weakref

import numpy as np
import pytest
import wgpu

import gridwise_py as gw
from gridwise_py.backend import queues
from gridwise_py.backend.device_state import state_of
from gridwise_py.planning.plan import Shader
from gridwise_py.runtime import compile_threads as threads_module
from gridwise_py.runtime import lookback_selftest, pipelines
from gridwise_py.runtime.context import context_of
from gridwise_py.runtime.executor import Executor
from gridwise_py.runtime.pipelines import PipelineCache
from gridwise_py.tuning.rows import MOST_ITEMS
from gridwise_py.types.capabilities import LookbackVerdict
from helpers import inside
from helpers.renewed import KeptPipelines, new_executor
from helpers.running import LONG_S, in_threads, python, wait_until
from helpers.strategies import shape_data

pytestmark = pytest.mark.ahead

X = np.random.default_rng(7).integers(0, 1000, 100_003, dtype=np.uint32)
# Two shapes: up to 1,000 items, and above.
ROWS = {"reduce": ((0, 1000, shape_data(64, 1, 8)), (1000, MOST_ITEMS, shape_data(128, 2, 16)))}


class Compilations:
    """Those that have begun, by their numbers of threads; some are held up."""

    def __init__(self, monkeypatch, cache):
        self.begun: list[int] = []
        self.ended: list[int] = []
        self.held: set[int] = set()
        self.gate = threading.Event()
        compiled = cache._compiled

        def held_up(cache, device, order, *rest):
            size = int(dict(order.constants).get("WORKGROUP_SIZE", 0))
            self.begun.append(size)
            if size in self.held:
                assert self.gate.wait(LONG_S)
            pipeline = compiled(cache, device, order, *rest)
            self.ended.append(size)
            return pipeline

        monkeypatch.setattr(cache, "_compiled", held_up)


@pytest.fixture(params=[KeptPipelines])
def compilations(request, monkeypatch):
    """Those for the shared device; with `on_own_devices`, those for other ones."""
    inside.finish_compiling()  # what earlier tests have left
    found = Compilations(monkeypatch, request.param)
    yield found
    found.gate.set()
    inside.finish_compiling()


@pytest.fixture
def at_once(monkeypatch):
    """What is compiled ahead begins as soon as nothing is needed."""
    monkeypatch.setattr(threads_module, "_QUIET_S", 0.0)


on_own_devices = pytest.mark.parametrize("compilations", [PipelineCache], indirect=True, ids=[""])


def _reduce(device, measured):
    """A reduction of two shapes on a device; `measured` is another one of the same adapter."""
    return gw.Reduce(device, capabilities=dataclasses.replace(gw.capabilities(measured), tuning=ROWS))


@pytest.fixture
def reduce(renewed_device):
    return _reduce(renewed_device, renewed_device)


def test_a_call_does_not_wait_for_the_pipelines_of_other_lengths(reduce, compilations, at_once):
    compilations.held = {128}
    x = gw.asarray(X, reduce.device)
    assert reduce.execute(input=x[:5]).output.to_numpy()[0] == X[:5].sum()
    wait_until(lambda: compilations.begun == [64, 128])
    for n in (1, 77, 1000):  # nor do those after it
        assert reduce.execute(input=x[:n]).output.to_numpy()[0] == X[:n].sum()
    assert compilations.ended == [64]
    compilations.gate.set()
    inside.finish_compiling()
    assert reduce.execute(input=x).output.to_numpy()[0] == X.sum()
    assert compilations.begun == compilations.ended == [64, 128], "each is compiled once"


def test_a_call_waits_for_the_pipeline_that_compiles_already(reduce, compilations, at_once):
    compilations.held = {128}
    x = gw.asarray(X, reduce.device)
    reduce.execute(input=x[:5])
    wait_until(lambda: compilations.begun == [64, 128])
    results = []
    caller = threading.Thread(target=lambda: results.append(int(reduce.execute(input=x).output.to_numpy()[0])))
    caller.start()
    caller.join(0.1)
    assert not results
    # Meanwhile, calls with what is there go on.
    assert gw.Reduce(reduce.device, capabilities=reduce.capabilities).execute(input=x[:9]).output.to_numpy()[0] == (
        X[:9].sum()
    )
    compilations.gate.set()
    caller.join(LONG_S)
    assert results == [int(X.sum())]
    assert compilations.begun == [64, 128]


def test_what_a_call_needs_is_compiled_side_by_side(device, monkeypatch):
    """The kernels of a scan in three steps: no compilation ends before another has begun."""
    own = threads_module.CompileThreads(cpus=2)
    monkeypatch.setattr(pipelines, "compile_threads", lambda: own)
    scan = gw.Scan(device, strategy="reduce_then_scan")
    plan = scan.plan(gw.Layout.separate(input=X.size, output=X.size))
    assert len(plan.kernels) > 1
    meeting, compiled = threading.Barrier(2), KeptPipelines._compiled

    def meet(cache, *arguments):
        if not meeting.broken and len(met) < 2:
            met.append(1)
            meeting.wait(LONG_S)
        return compiled(cache, *arguments)

    met: list[int] = []
    monkeypatch.setattr(KeptPipelines, "_compiled", meet)
    assert len(new_executor(device).pipelines_of(plan)) == len(plan.kernels)
    assert not meeting.broken
    own._end()


def test_the_module_of_pipelines_that_compile_side_by_side_is_made_once(device, monkeypatch):
    plan = gw.Copy(device).plan(gw.Layout.separate(input=64, output=64))
    kernels = [dataclasses.replace(plan.kernels[0], constants={"WORKGROUP_SIZE": size}) for size in (32, 64)]
    made, create = [], pipelines.create_shader_module

    def slow(device, **options):
        made.append(options["label"])
        time.sleep(0.05)
        return create(device, **options)

    monkeypatch.setattr(pipelines, "create_shader_module", slow)
    own = threads_module.CompileThreads(cpus=2)
    monkeypatch.setattr(pipelines, "compile_threads", lambda: own)
    found = Executor(device).pipelines_of(dataclasses.replace(plan, steps=tuple(kernels)))
    assert len(found) == 2
    assert found[0].module is found[1].module
    assert len(made) == 1
    own._end()


def test_what_was_compiled_for_a_plan_that_is_gone_is_gone(reduce):
    """A task that is done keeps no pipeline, nor one that waits the device."""
    device = reduce.device
    reduce.execute(input=gw.asarray(X[:5], device))
    inside.finish_compiling()
    assert inside.counts(device)["pipelines"] == 2
    inside.forget_plans(device)
    wait_until(lambda: inside.counts(device)["pipelines"] == 0)
    assert inside.counts(device)["modules"] == 0


@on_own_devices
def test_pipelines_ahead_keep_no_device(device, compilations):
    own = gw.request_device(device.adapter)
    _reduce(own, device).execute(input=gw.asarray(X[:5], own))
    gone = weakref.ref(own)
    del own
    gc.collect()
    assert gone() is None, "what waits to be compiled keeps it"
    inside.finish_compiling()
    assert compilations.begun == [64]


@on_own_devices
def test_a_device_that_goes_while_it_compiles(device, compilations, at_once):
    compilations.held = {128}
    own = gw.request_device(device.adapter)
    _reduce(own, device).execute(input=gw.asarray(X[:5], own))
    wait_until(lambda: compilations.begun == [64, 128])
    gone = weakref.ref(own)
    del own
    gc.collect()
    compilations.gate.set()
    wait_until(lambda: compilations.ended == [64, 128])
    wait_until(lambda: gc.collect() >= 0 and gone() is None)


@on_own_devices
def test_a_device_that_is_destroyed_while_it_compiles(device, compilations, wgpu_errors):
    """The call raises; the process lives on, and so do other devices."""
    compilations.held = {64}
    own, raised = gw.request_device(device.adapter), []
    reduce, x = _reduce(own, device), gw.asarray(X[:5], own)

    def call():
        with pytest.raises(gw.DeviceError) as error:
            reduce.execute(input=x)
        raised.append(error)

    caller = threading.Thread(target=call)
    caller.start()
    wait_until(lambda: compilations.begun == [64])
    own.destroy()
    compilations.gate.set()
    caller.join(LONG_S)
    assert len(raised) == 1
    with pytest.raises(gw.DeviceLostError):
        reduce.execute(input=x)
    wgpu_errors.clear()


# ---- errors


def _with_broken(plan, where):
    """Return the plan with a kernel more, whose text does not compile, dispatched or as a sibling."""
    kernel = dataclasses.replace(plan.kernels[0], label="broken", shader="broken", constants={})
    shaders = {**plan.shaders, "broken": Shader("fn main() { this is no WGSL }")}
    return dataclasses.replace(plan, shaders=shaders, **{where: (*getattr(plan, where), kernel)})


def test_an_error_ahead_is_raised_where_the_pipeline_is_needed(device):
    executor = new_executor(device)
    plan = gw.Copy(device).plan(gw.Layout.separate(input=64, output=64))
    ahead = executor.pipelines.get_siblings_ahead(_with_broken(plan, "siblings"))
    inside.finish_compiling()
    assert len(executor.pipelines_of(plan)) == len(plan.kernels)
    broken = _with_broken(plan, "steps")
    for _ in range(2):  # and every time
        with pytest.raises(gw.ShaderError, match="does not compile"):
            executor.pipelines_of(broken)
    assert len(ahead) == len(plan.siblings) + 1


def test_what_failed_ahead_is_tried_again_where_it_is_needed(reduce, monkeypatch):
    """The device may have been short of memory."""
    compiled, failed = KeptPipelines._compiled, []

    def failing_once(cache, device, order, *rest):
        if dict(order.constants)["WORKGROUP_SIZE"] == 128 and not failed:
            failed.append(1)
            raise wgpu.GPUOutOfMemoryError("not enough memory left")
        return compiled(cache, device, order, *rest)

    monkeypatch.setattr(KeptPipelines, "_compiled", failing_once)
    x = gw.asarray(X, reduce.device)
    reduce.execute(input=x[:5])
    inside.finish_compiling()
    assert failed
    assert reduce.execute(input=x).output.to_numpy()[0] == X.sum()


def test_an_error_comes_to_the_caller_of_that_text_alone(device):
    plan = gw.Copy(device).plan(gw.Layout.separate(input=64, output=64))
    broken = _with_broken(plan, "steps")

    def work(number):
        for _ in range(10):
            if number % 2:
                assert len(new_executor(device).pipelines_of(plan)) == len(plan.kernels)
            else:
                with pytest.raises(gw.ShaderError, match="broken"):
                    new_executor(device).pipelines_of(broken)

    in_threads(work)


# ---- while the device is tested


@pytest.mark.parametrize("is_safe", [True, False])
def test_what_a_gpu_most_likely_needs_compiles_while_it_is_tested(
    renewed_device, compilations, monkeypatch, tmp_path, is_safe
):
    def test_it(device, state):
        wait_until(lambda: compilations.ended == [256])
        return LookbackVerdict(is_safe, is_safe, needs_tickets=True, recovers=is_safe)

    monkeypatch.setenv("GRIDWISE_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(lookback_selftest, "_test", test_it)
    inside.lookback_verdicts(renewed_device).clear()
    gpu = dataclasses.replace(gw.capabilities(renewed_device), adapter_type="DiscreteGPU", lookback=None)
    tuning = gw.ScanTuning(workgroup_size=256, vecs=1, tickets=True)
    scan = gw.Scan(renewed_device, capabilities=gpu, tuning=tuning)
    for n in (5000, 4000):  # no plan is made for nothing when the device was tested
        run = scan.execute(input=gw.asarray(X[:n], renewed_device))
        np.testing.assert_array_equal(run.output.to_numpy(), np.cumsum(X[:n], dtype=np.uint32))
        assert run.plan.parameters["strategy"] == ("lookback" if is_safe else "reduce_then_scan")
    assert inside.compiled(renewed_device) == len(run.plan.kernels) + len(run.plan.siblings) + (not is_safe)


# ---- the end of the process

_AT_THE_END = """
import atexit, os, signal, sys, threading
import gridwise_py as gw
import dataclasses
from gridwise_py.runtime import compile_threads as module
from gridwise_py.runtime.context import context_of
from gridwise_py.runtime.pipelines import PipelineCache

module._QUIET_S = 0.0
begun, compiled = threading.Event(), PipelineCache._compiled

def noting(cache, device, order, *rest):
    if threading.current_thread() is not threading.main_thread() and armed:
        begun.set()
    try:
        return compiled(cache, device, order, *rest)
    finally:
        if armed:
            print("ended", flush=True)

armed = False
PipelineCache._compiled = noting
device = gw.request_device()
sort = gw.Sort(device)
plan = sort.plan(gw.Layout.separate(input=1_000_000, output=1_000_000))
armed = True
ahead = context_of(device).executor.pipelines.get_siblings_ahead(
    dataclasses.replace(plan, steps=(), siblings=plan.kernels[1:])
)
assert begun.wait(60)
"""


@pytest.mark.parametrize(
    ("end", "status"),
    [
        pytest.param("", 0, marks=pytest.mark.slow),
        pytest.param("sys.exit(3)", 3, marks=pytest.mark.slow),
        pytest.param("device.destroy(); raise RuntimeError('an error of the user')", 1, marks=pytest.mark.slow),
        pytest.param("raise KeyboardInterrupt", -2, marks=pytest.mark.needs("posix")),
        pytest.param(
            # Not sys.exit(): the driver may not survive its own handlers at exit in a fork.
            "pid = os.fork()\nif pid == 0:\n    signal.alarm(120)\n    atexit._run_exitfuncs()\n    os._exit(0)\n"
            "sys.exit(os.waitpid(pid, 0)[1])",
            0,
            marks=pytest.mark.needs("fork"),
        ),
    ],
    ids=["end", "exit", "error", "interrupt", "fork"],
)
def test_the_process_ends_well_while_something_compiles(device, end, status):
    done = python(_AT_THE_END + end, status=status)
    assert done.stdout == "ended\n", "what is under way is waited for, and nothing is begun"
    assert ("Traceback" in done.stderr) == (status not in (0, 3)), done.stderr


# ---- times


@pytest.mark.parametrize("clock", ["gpu", "cpu"])
def test_a_timed_call_has_nothing_compile_beneath_it(reduce, compilations, monkeypatch, require, clock):
    if clock == "gpu":
        require("timestamp-query")
    monkeypatch.setattr(threads_module, "_QUIET_S", 1e9)
    x = gw.asarray(X, reduce.device)
    reduce.execute(input=x[:5])
    assert compilations.begun == [64]
    reduce.execute(input=x[:5], **{f"enable_{clock}_timing": True})
    assert compilations.ended == [64, 128]


def test_a_measurement_has_nothing_compile_beneath_it(reduce, compilations, monkeypatch, steady_clock):
    monkeypatch.setattr(threads_module, "_QUIET_S", 1e9)
    protocol = gw.SamplingProtocol(samples=5, warmup_s=0.001, max_warmup_s=0.002, timeout_s=0.05, check_unit=False)
    begun_before = []
    from gridwise_py.bench.sampling.sampler import Sampler

    warm_up = Sampler.warm_up
    monkeypatch.setattr(
        Sampler, "warm_up", lambda self, *a, **k: (begun_before.extend(compilations.ended), warm_up(self, *a, **k))[1]
    )
    gw.measure(reduce, protocol=protocol, input=gw.asarray(X[:5], reduce.device))
    assert {64, 128} <= set(begun_before)


# ---- on a CPU


@pytest.fixture
def long_calls(renewed_device, monkeypatch):
    """A device that may be a CPU; each call is a long one."""
    monkeypatch.setattr(queues, "TOLD_OF_COMPILING", [])
    monkeypatch.setattr(queues, "_SLOW_NS", -1)
    monkeypatch.setattr(state_of(renewed_device), "is_cpu", True)
    return renewed_device


def test_a_first_call_of_seconds_says_so_once_on_a_cpu(long_calls, monkeypatch):
    monkeypatch.setattr(queues, "_SOON_NS", -(1 << 62))  # what waits say is tested below
    monkeypatch.setattr(state_of(long_calls), "is_cpu", False)
    assert gw.max(X[:9], device=long_calls) == X[:9].max()
    monkeypatch.setattr(state_of(long_calls), "is_cpu", True)
    assert gw.max(X[:9], device=long_calls) == X[:9].max(), "it was compiled before"
    with pytest.warns(
        gw.GridwiseWarning, match="seconds, in which .* compiles; later ones compile nothing.*gw.warm_up"
    ):
        gw.sum(X[:9], device=long_calls)
    assert gw.min(X[:9], device=long_calls) == X[:9].min()


def test_so_does_the_wait_for_a_kernel_that_is_compiled_where_it_runs(long_calls, monkeypatch):
    state, looked = state_of(long_calls), []
    own = state.polled

    def looks(wait, _limit_s):
        looked.append(state.compiled_ns)
        yield
        wait_until(lambda: wait.done)

    monkeypatch.setattr(state, "compiled_ns", -math.inf)
    monkeypatch.setattr(pipelines, "tell_of_compiling", lambda device, begin_ns: None)
    monkeypatch.setattr(queues.Wait, "looks", looks)
    monkeypatch.setattr(
        state, "polled", lambda device: own(device) if state.compiled_ns in (*looked, -math.inf) else False
    )
    inside.never_poll(monkeypatch)
    with pytest.warns(gw.GridwiseWarning, match="first call"):
        gw.sum(X[:9], device=long_calls)
    queues.TOLD_OF_COMPILING.clear()
    looked.clear()
    monkeypatch.setattr(queues, "_SOON_NS", 0)
    assert gw.sum(X[:9], device=long_calls) == X[:9].sum()
    assert looked, "it waited, for the kernel alone"


# ---- warm_up


def test_after_a_warm_up_calls_compile_nothing(renewed_device):
    compiled = gw.warm_up(renewed_device, "sum", "cumsum", dtype=["u32", "f32"])
    assert compiled == inside.compiled(renewed_device) > 0
    for n in (1, 1000, X.size):
        assert gw.sum(X[:n], device=renewed_device) == X[:n].sum()
        assert gw.sum(X[:n].astype(np.float32), device=renewed_device) > 0
        np.testing.assert_array_equal(gw.cumsum(X[:n], device=renewed_device), np.cumsum(X[:n]))
    assert inside.compiled(renewed_device) == compiled
    assert gw.warm_up(renewed_device, "sum", "cumsum") == 0, "nor is anything left to compile"


def test_a_warm_up_of_a_primitive(reduce, compilations):
    device = reduce.device
    assert gw.warm_up(device, reduce) == 2
    assert compilations.ended.count(64) == compilations.ended.count(128) == 1
    reduce.execute(input=gw.asarray(X, device))
    assert inside.compiled(device) == 2


def test_a_warm_up_for_one_length_waits_for_that(reduce, compilations, at_once):
    compilations.held = {128}
    gw.warm_up(reduce.device, reduce, n=10)
    assert compilations.ended == [64]


def test_a_warm_up_without_names_measures_the_device(fresh_device):
    assert gw.warm_up(fresh_device) == 0
    assert "capabilities" in context_of(fresh_device)._kept


@pytest.mark.slow
def test_every_function_can_be_warmed_up(renewed_device):
    from typing import get_args

    from gridwise_py.warming import FunctionName

    assert gw.warm_up(renewed_device, *get_args(FunctionName), counted=True) > 30
    assert gw.warm_up(renewed_device, *get_args(FunctionName), counted=True) == 0


def test_after_a_warm_up_for_counts_calls_with_counts_compile_nothing(renewed_device):
    counts = gw.asarray(np.array([900], dtype=np.uint32), renewed_device)
    x = gw.asarray(X[:1000], renewed_device)
    scan = gw.Scan(renewed_device, "u32")
    plain = gw.warm_up(renewed_device, "sum", scan)
    assert gw.warm_up(renewed_device, "sum", scan, "searchsorted", counted=True) > 0, "they are other texts"
    compiled = inside.compiled(renewed_device)
    assert gw.sum(x.counted_by(counts)).item() == X[:900].sum(dtype=np.uint32)
    found = scan.execute(input=x, n=counts).output.to_numpy()
    np.testing.assert_array_equal(found, np.cumsum(X[:900], dtype=np.uint32))
    assert inside.compiled(renewed_device) == compiled > plain > 0


def test_selections_segments_and_reductions_to_structs_are_warmed_up(renewed_device):
    names = ("compress", "reduce_by_key", "segmented_reduce", "repeat", "argmax")
    assert gw.warm_up(renewed_device, *names) == inside.compiled(renewed_device) > 5
    compiled = inside.compiled(renewed_device)
    x, keys, offsets = X[:1000], X[:1000] % 7, np.array([0, 10, 10, 1000], dtype=np.uint32)
    np.testing.assert_array_equal(gw.compress(x % 2 == 0, x, device=renewed_device), x[x % 2 == 0])
    assert gw.reduce_by_key(keys, x, device=renewed_device).values.sum(dtype=np.uint32) == x.sum(dtype=np.uint32)
    assert gw.segmented_reduce(x, offsets, device=renewed_device)[1] == 0
    assert gw.repeat(x, keys, device=renewed_device).size == keys.sum()
    assert gw.argmax(x, device=renewed_device) == x.argmax()
    assert inside.compiled(renewed_device) == compiled


def test_mistakes_are_refused_before_anything_is_compiled(renewed_device, fresh_device):
    kernel = gw.Kernel(
        renewed_device,
        "@group(0) @binding(0) var<storage, read_write> x: array<u32>;\n"
        "@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3<u32>) { x[id.x] = 1u; }",
        bindings={"x": "read_write"},
        workgroups=1,
    )
    compiled = inside.compiled(renewed_device)
    for arguments, options, message in [
        (("sort",), {}, "device first"),
        ((renewed_device, "sort", "cumsun"), {}, "did you mean 'cumsum'"),
        ((renewed_device, gw.sum), {}, "no one-shot function or primitive"),
        ((renewed_device, gw.Reduce(fresh_device)), {}, "another device"),
        ((renewed_device, kernel), {}, "compiled when it was made"),
        ((renewed_device, "sum"), {"n": 0}, "at least 1"),
        ((renewed_device, "sum"), {"n": True}, "at least 1"),
        ((renewed_device, "segmented_sum"), {}, "did you mean 'segmented_scan'"),
    ]:
        with pytest.raises(gw.ArgumentError, match=message):
            gw.warm_up(*arguments, **options)
    with pytest.raises(gw.DatatypeError, match="complex64"):
        gw.warm_up(renewed_device, "sort", dtype="c64")
    with pytest.raises(gw.DatatypeError, match="complex128"):
        gw.warm_up(renewed_device, "sum", dtype=np.complex128)
    assert inside.compiled(renewed_device) == compiled
