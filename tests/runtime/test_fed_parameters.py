"""Fields of a kernel's parameters whose values lie on the GPU: a copy step of the plan puts them there."""

import numpy as np
import pytest
import wgpu

import gridwise_py as gw
from gridwise_py.errors import ShaderError
from gridwise_py.planning.builder import PlanBuilder
from gridwise_py.planning.kernel_request import KernelFile, Memory
from gridwise_py.planning.plan import Copy, Kernel, Plan, Work
from gridwise_py.runtime.context import context_of
from gridwise_py.runtime.executor import BufferRange

N = 1000
X = np.arange(1, N + 1, dtype=np.uint32)
USAGE = wgpu.BufferUsage
U32 = gw.DATATYPES["u32"]


class Head(gw.Primitive):
    """The first `items` items; what lies behind them in the output stays as it is."""

    datatype = U32
    fed = "n"
    arguments = (
        gw.Argument("input"),
        gw.Argument("items", length=1, fed=True),
        gw.Argument("output", is_output=True, length=gw.SameAs("input")),
    )

    def plan(self, layout):
        builder = PlanBuilder("head", layout, self.capabilities)
        n = layout["input"].length
        for part in ("first", "again"):  # two kernels, of which each has its own parameters
            builder.kernel(
                part,
                KernelFile("copy.wgsl", context={"vecs": 1, "regions": 1}, constants={"WORKGROUP_SIZE": 64}),
                Memory(reads={"input": layout["input"].by_words()}, writes={"output": layout["output"].by_words()}),
                params={"n": n, "blocks": -(-n // 256)},
                extent="blocks",
                fed={self.fed: layout["items"]},
            )
        return builder.build(Work(n, 4 * n, 4 * n), {})


def number(value, device):
    return gw.asarray(np.array([value], dtype=np.uint32), device)


def zeros(device, n=N):
    return gw.asarray(np.zeros(n, dtype=np.uint32), device)


def check(output, n):
    np.testing.assert_array_equal(output.to_numpy(), np.where(np.arange(output.size) < n, X[: output.size], 0))


@pytest.fixture
def head(device):
    return Head(device)


def test_the_value_is_read_on_the_gpu_when_the_call_runs(head, device):
    x, n = gw.asarray(X, device), number(5, device)
    check(head.execute(input=x, items=n, output=zeros(device)).output, 5)
    n.copy_from(np.array([700], dtype=np.uint32))
    check(head.execute(input=x, items=n, output=zeros(device)).output, 700)  # a call that is known
    n.copy_from(np.array([0], dtype=np.uint32))
    out = zeros(device)
    call = head.bind(input=x, items=n, output=out)
    call.execute()
    check(out, 0)
    n.copy_from(np.array([9], dtype=np.uint32))
    call.execute()
    check(out, 9)
    check(head.execute(input=x, items=number(77, device), output=zeros(device), trials=3).output, 77)


def test_it_may_be_computed_by_the_call_before(head, device):
    x = gw.asarray(X, device)
    n = gw.Reduce(device).execute(input=x[:10]).output  # 55
    check(head.execute(input=x, items=n, output=zeros(device)).output, 55)


@pytest.mark.parametrize("blocking", ["0", "1"])
def test_calls_in_one_submission_each_get_theirs(device, monkeypatch, blocking):
    monkeypatch.setenv("GRIDWISE_LAUNCH_BLOCKING", blocking)
    head, x = Head(device), gw.asarray(X, device)
    counts, outs = [3, 600, 1], [zeros(device) for _ in range(3)]
    arrays = [number(n, device) for n in counts]
    with gw.batch(device):
        for n, out in zip(arrays, outs, strict=True):
            head.execute(input=x, items=n, output=out)
    for n, out in zip(counts, outs, strict=True):
        check(out, n)


def test_a_sequence_reads_it_in_each_replay(head, device):
    x, n, out = gw.asarray(X, device), number(4, device), zeros(device)
    two, other = number(2, device), zeros(device)
    with gw.capture(device) as sequence:
        head.execute(input=x, items=n, output=out)
        head.execute(input=out, items=two, output=other)
    for count in (4, 90, 300):
        n.copy_from(np.array([count], dtype=np.uint32))
        sequence.execute()
        check(out, count)
        check(other, 2)


@pytest.mark.parametrize("timed", [False, True])
def test_on_an_encoder_of_the_callers(head, device, timed):
    x, n, out = gw.asarray(X, device), number(321, device), zeros(device)
    encoder = device.create_command_encoder()
    head.execute(encoder=encoder, enable_gpu_timing=timed, input=x, items=n, output=out)
    n.copy_from(np.array([123], dtype=np.uint32))  # before the submission
    device.queue.submit([encoder.finish()])
    check(out, 123)


def test_views_and_shared_buffers(head, device):
    block = gw.asarray(np.arange(2 * N, dtype=np.uint32), device)
    check(head.execute(input=gw.asarray(X, device), items=block[33:34], output=zeros(device)).output, 33)
    out = gw.asarray(np.zeros(N + 101, dtype=np.uint32), device)
    out[5:6].copy_from(np.array([44], dtype=np.uint32))
    check(head.execute(input=gw.asarray(X, device), items=out[5:6], output=out[101:]).output, 44)


def test_a_plan_with_fed_fields_is_data(head, device):
    layout = gw.Layout.separate(input=N, items=1, output=N)
    plan = head.plan(layout)
    assert [type(step) for step in plan.steps] == [Copy, Copy, Kernel, Kernel]
    words = plan.buffer("params_0").words
    assert words[0] == N, "a host that knows nothing of the argument runs all items"
    again = Plan.from_json(plan.to_json())
    assert again == plan.with_checks("all")
    arrays = {"input": gw.asarray(X, device), "items": number(88, device), "output": zeros(device)}
    ranges = {name: BufferRange(a.buffer, 0, a.buffer.size) for name, a in arrays.items()}
    bound = context_of(device).executor.bind(again, ranges)
    encoder = device.create_command_encoder()
    bound.encode(encoder)
    device.queue.submit([encoder.finish()])
    check(arrays["output"], 88)


def test_only_the_arguments_that_are_copied_need_the_usages_of_copies(head, device):
    data = np.array([7], dtype=np.uint32)
    x, out = gw.asarray(X, device), zeros(device)
    fixed = device.create_buffer_with_data(data=data, usage=USAGE.STORAGE)
    with pytest.raises(gw.BufferUsageError, match=r"items.*usage=wgpu\.BufferUsage\.COPY_SRC"):
        head.execute(input=x, items=fixed, output=out)
    source = device.create_buffer_with_data(data=data, usage=USAGE.COPY_SRC)
    kept = device.create_buffer(size=4 * N, usage=USAGE.STORAGE | USAGE.COPY_SRC)
    check(head.execute(input=x, items=source, output=kept).output, 7)
    source.destroy()
    with pytest.raises(gw.BufferUsageError, match="destroyed"):
        head.execute()


def test_a_destroyed_or_foreign_source_is_refused(head, device, fresh_device):
    x, n, out = gw.asarray(X, device), number(7, device), zeros(device)
    call = head.bind(input=x, items=n, output=out)
    with gw.capture(device) as sequence:
        call.execute()
    encoder = device.create_command_encoder()
    head.record(encoder, input=x, items=n, output=out)
    commands = encoder.finish()
    n.destroy()
    for run in (call.execute, sequence.execute, head.execute, lambda: head.bind(input=x, items=n)):
        with pytest.raises(gw.BufferUsageError, match="destroyed"):
            run()
    with pytest.raises(gw.BufferUsageError, match="destroyed"):
        device.queue.submit([commands])
    with pytest.raises(gw.BufferUsageError, match="another device"):
        head.execute(input=x, items=number(7, fresh_device), output=out)
    with pytest.raises(gw.DatatypeError, match="u32"):
        head.execute(input=x, items=gw.asarray(np.ones(1, np.float32), device), output=out)


def test_a_field_that_is_not_there_is_refused(device):
    class Wrong(Head):
        fed = "m"

    with pytest.raises(ShaderError, match="no field 'm'"):
        Wrong(device).plan(gw.Layout.separate(input=N, items=1, output=N))
