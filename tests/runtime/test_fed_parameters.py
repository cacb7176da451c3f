"""How many items count may lie on the GPU: what was made of a call takes the number from there when it runs.

What kernels make of it, at each length and place, is in tests/primitives/test_counts.py.
"""

import numpy as np
import pytest
import wgpu

import gridwise_py as gw

N = 1000
X = np.arange(1, N + 1, dtype=np.uint32)
USAGE = wgpu.BufferUsage


def number(value, device):
    return gw.asarray(np.array([value], dtype=np.uint32), device)


def zeros(device):
    return gw.asarray(np.zeros(N, dtype=np.uint32), device)


def check(output, n):
    """What lies behind the items that count stays as it was."""
    np.testing.assert_array_equal(output.to_numpy(), np.where(np.arange(N) < n, X, 0))


@pytest.mark.parametrize("blocking", ["0", "1"])
def test_calls_in_one_submission_each_get_theirs(device, monkeypatch, blocking):
    monkeypatch.setenv("GRIDWISE_LAUNCH_BLOCKING", blocking)
    copy, x = gw.Copy(device), gw.asarray(X, device)
    numbers, outs = [3, 600, 1], [zeros(device) for _ in range(3)]
    arrays = [number(n, device) for n in numbers]
    with gw.batch(device):
        for n, out in zip(arrays, outs, strict=True):
            copy.execute(input=x, n=n, output=out)
    for n, out in zip(numbers, outs, strict=True):
        check(out, n)


def test_bound_calls_and_sequences_read_it_each_time(device):
    copy, x, n, two = gw.Copy(device), gw.asarray(X, device), number(4, device), number(2, device)
    out, other = zeros(device), zeros(device)
    with gw.capture(device) as sequence:
        copy.execute(input=x, n=n, output=out)
        copy.execute(input=out, n=two, output=other)
    bound = copy.bind(input=x, n=n, output=out)
    for run, count in ((sequence, 4), (bound, 9), (sequence, 90), (bound, 300)):
        n.copy_from(np.array([count], dtype=np.uint32))
        run.execute()
        check(out, count)
    check(other, 2)


@pytest.mark.parametrize("timed", [False, True])
def test_on_an_encoder_of_the_callers(device, timed):
    n, out, encoder = number(321, device), zeros(device), device.create_command_encoder()
    gw.Copy(device).execute(
        encoder=encoder, enable_gpu_timing=timed, input=gw.asarray(X, device), n=n, output=out, trials=3
    )
    n.copy_from(np.array([123], dtype=np.uint32))  # before the submission
    device.queue.submit([encoder.finish()])
    check(out, 123)


def test_only_the_arguments_that_are_copied_need_the_usages_of_copies(device):
    data, copy = np.array([7], dtype=np.uint32), gw.Copy(device)
    x = gw.asarray(X, device)
    fixed = device.create_buffer_with_data(data=data, usage=USAGE.STORAGE)
    with pytest.raises(gw.BufferUsageError, match=r"n.*usage=wgpu\.BufferUsage\.COPY_SRC"):
        copy.execute(input=x, n=fixed)
    source = device.create_buffer_with_data(data=data, usage=USAGE.COPY_SRC)
    kept = device.create_buffer(size=4 * N, usage=USAGE.STORAGE | USAGE.COPY_SRC)
    np.testing.assert_array_equal(copy.execute(input=x, n=source, output=kept).output.to_numpy(), X[:7])
    source.destroy()
    with pytest.raises(gw.BufferUsageError, match="destroyed"):
        copy.execute()


def test_a_destroyed_or_foreign_source_is_refused(device, fresh_device):
    copy, x, n, out = gw.Copy(device), gw.asarray(X, device), number(7, device), zeros(device)
    call = copy.bind(input=x, n=n, output=out)
    with gw.capture(device) as sequence:
        call.execute()
    encoder = device.create_command_encoder()
    copy.record(encoder, input=x, n=n, output=out)
    commands = encoder.finish()
    n.destroy()
    for run in (call.execute, sequence.execute, copy.execute, lambda: copy.bind(input=x, n=n)):
        with pytest.raises(gw.BufferUsageError, match="destroyed"):
            run()
    with pytest.raises(gw.BufferUsageError, match="destroyed"):
        device.queue.submit([commands])
    with pytest.raises(gw.BufferUsageError, match="another device"):
        copy.execute(input=x, n=number(7, fresh_device), output=out)
