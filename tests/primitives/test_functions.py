"""The one-shot functions: numpy in, numpy out; Array in, Array out."""

import numpy as np
import pytest

import gridwise_py as gw
from helpers.strategies import (
    AFFINE,
    assert_same,
)

pytestmark = pytest.mark.thin(1)


def test_no_items_under_an_operator_of_ones_own_give_its_identity(device):
    assert gw.reduce(np.array([], np.uint32), AFFINE, device=device) == 0x00010000


def test_outputs_are_separate_from_one_call_to_the_next(device):
    x = gw.asarray(np.ones(10, np.uint32), device)
    first, second = gw.cumsum(x), gw.cumsum(x)
    assert first.buffer is not second.buffer
    assert_same(first.to_numpy(), second.to_numpy())


@pytest.mark.parametrize("dtype", [np.longdouble, "M8[s]"])
def test_other_dtypes_are_refused_with_the_remedy(device, dtype):
    with pytest.raises(gw.DatatypeError, match=r"astype|x\.view"):
        gw.sum(np.ones(3, dtype), device=device)


def test_arguments_on_two_devices_are_refused(device, fresh_device):
    a, b = (gw.asarray(np.ones(3, np.uint32), d) for d in (device, fresh_device))
    with pytest.raises(gw.BufferUsageError, match="different devices"):
        gw.add(a, b)


# ---- what is refused, and what the message says to do; nothing of it needs a device

F = np.ones(4, np.float32)
M = np.ones((3, 4), np.float32)


def _refusal(call, kind=gw.ArgumentError):
    with pytest.raises(kind) as caught:
        call()
    return str(caught.value)


def test_a_remedy_names_the_argument_and_where_it_lies(device):
    whole = gw.asarray(np.eye(3, dtype=np.int32), device)
    assert "give a.astype(np.float32)" in _refusal(lambda: gw.matmul(whole, whole), gw.DatatypeError)
    assert "b.astype(np.float32)" in _refusal(lambda: gw.matmul(M, np.eye(4, dtype=int)), gw.DatatypeError)
    assert "a.astype(np.float32)" in _refusal(lambda: gw.matmul(np.eye(3, dtype=np.int32), M), gw.DatatypeError)
    assert "values: " in _refusal(lambda: gw.sort_pairs(F, F.astype(complex)), gw.DatatypeError)


def test_two_datatypes_are_refused_before_anything_is_uploaded(device, monkeypatch):
    made = []
    x = gw.asarray(F, device)
    monkeypatch.setattr(type(device), "create_buffer", lambda *a, **k: made.append(1), raising=False)
    message = _refusal(lambda: gw.matmul(x.reshape(2, 2), np.ones((2, 2), np.float16)), gw.DatatypeError)
    assert "b is of f16 (numpy float16), but a of f32" in message
    assert "b.astype(np.float32)" in message
    assert not made


def test_a_single_item_is_no_array(device):
    assert "axis=None" in _refusal(lambda: gw.sort(5), gw.AxisError)
    for function in (gw.argsort, lambda x: gw.argpartition(x, 0)):
        np.testing.assert_array_equal(function(np.int32(1)), [0])


@pytest.mark.gpu
def test_sorts_refuse_what_numpy_does_not_have():
    """test_numpy_habits.py has what numpy refuses."""
    for error, call in (
        (gw.ArgumentError, lambda: gw.sort(M, less=lambda a, b: a < b)),
        (gw.AxisError, lambda: gw.top_k(M, 1, axis=2)),
        (gw.LengthError, lambda: gw.argsort(M, out=np.empty(3, int))),
    ):
        with pytest.raises(error):
            call()


def test_a_matrix_and_an_axis_are_refused_with_what_there_is():
    message = _refusal(lambda: gw.scan(M, axis=0))
    assert "gw.scan()" in message
    assert "one dimension" in message
    assert "x.ravel()" in message
    assert "rows" in message


@pytest.mark.parametrize("name", ["initial", "where"])
def test_what_numpy_takes_and_this_does_not_has_a_remedy(name):
    message = _refusal(lambda: gw.cumsum(F, **{name: None}))
    assert message.startswith(f"gw.cumsum() has no argument {name!r}: ")
    assert "{" not in message


def test_keywords_that_are_not_there_are_named_with_those_that_are():
    assert "did you mean 'deterministic'?" in _refusal(lambda: gw.sum(F, determinstic=True))
    assert "it takes x, axis, kind, order, stable, descending, less, out, device" in _refusal(
        lambda: gw.sort(F, xyzzy=1)
    )
    assert "the result is in the datatype of x" in _refusal(lambda: gw.sort(F, dtype="f32"))
    message = _refusal(lambda: gw.sort_pairs(F, F, True))
    assert "takes 2 arguments by position (keys, values), but was given 3" in message
    assert "descending=" in message


def test_ragged_lists_are_refused_in_our_words():
    assert "numpy makes no array of x" in _refusal(lambda: gw.sum([[1], [2, 3]]))


def test_python_complex_numbers_are_complex64(device):
    x = gw.asarray(1j, device)
    assert (x.dtype, x.shape, x.item()) == (np.complex64, (), 1j)
    assert gw.asarray([[1j], [2]], device).to_numpy().tolist() == [[1j], [2]]
    assert gw.sum([1j, 2], device=device) == np.complex64(2 + 1j)
    for wrong in (np.complex128(1j), np.ones(2, complex), [1e300j]):
        with pytest.raises(gw.DatatypeError):
            gw.asarray(wrong, device)
