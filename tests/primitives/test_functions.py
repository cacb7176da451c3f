"""The one-shot functions: numpy in, numpy out; Array in, Array out."""

import numpy as np
import pytest

import gridwise_py as gw
from gridwise_py.runtime.context import context_of
from helpers.strategies import (
    AFFINE,
    DATATYPES,
    assert_same,
    exact_items,
    reduce_reference,
    scan_reference,
)

pytestmark = pytest.mark.thin(1)

REDUCTIONS = {"sum": gw.sum, "prod": gw.prod, "min": gw.min, "max": gw.max}
OP_OF = {"sum": "add", "prod": "multiply", "min": "min", "max": "max"}


def test_reductions_give_a_scalar_of_numpys_or_an_array_of_no_dimensions(device):
    for (name, function), datatype in zip(REDUCTIONS.items(), ("u32", "i32", "f32", "f32"), strict=True):
        x = exact_items(OP_OF[name], datatype, 1001)
        got, wanted = function(x, dtype=x.dtype, device=device), reduce_reference(OP_OF[name], x)
        assert type(got) is x.dtype.type
        assert_same(np.array([got]), wanted)
        got = function(gw.asarray(x, device), dtype=datatype)
        assert isinstance(got, gw.Array)
        assert (got.shape, got.device) == ((), device)
        assert_same(got.reshape(1).to_numpy(), wanted)


@pytest.mark.parametrize("datatype", DATATYPES)
@pytest.mark.parametrize("as_array", [False, True], ids=["numpy", "Array"])
def test_add_and_cumsum(device, datatype, as_array):
    a, b = (exact_items("add", datatype, 1001, seed) for seed in (1, 2))
    given = [gw.asarray(x, device) if as_array else x for x in (a, b)]
    for got, want in (
        (gw.add(*given, device=device), a + b),
        (gw.cumsum(given[0], dtype=datatype, device=device), scan_reference("add", a)),
    ):
        assert isinstance(got, gw.Array if as_array else np.ndarray)
        assert_same(got.to_numpy() if as_array else got, want)


def test_numpy_and_array_mixed_give_an_array(device):
    a = exact_items("add", "u32", 77)
    got = gw.add(gw.asarray(a, device), a)
    assert isinstance(got, gw.Array)
    assert_same(got.to_numpy(), a + a)


def test_scan_and_reduce_take_an_operator_or_its_name(device):
    x = exact_items("affine", "u32", 1001)
    assert_same(gw.scan(x, AFFINE, "exclusive", device=device), scan_reference("affine", x, "exclusive"))
    got = gw.reduce(x, AFFINE, device=device)
    assert type(got) is np.uint32
    assert_same(np.array([got]), reduce_reference("affine", x))
    assert_same(gw.scan(x, "max", device=device), scan_reference("max", x))
    assert_same(np.array([gw.reduce(x, "max", device=device)]), reduce_reference("max", x))


@pytest.mark.parametrize("datatype", DATATYPES)
def test_no_items(device, datatype):
    nothing = np.array([], gw.DATATYPES[datatype].dtype)
    for got, want in (
        (gw.sum(nothing, device=device), nothing.sum()),
        (gw.prod(nothing, device=device), nothing.prod()),
    ):
        assert type(got) is type(want)
        assert got == want
    assert_same(gw.cumsum(nothing, device=device), np.cumsum(nothing))
    for got in (
        gw.add(nothing, nothing, device=device),
        gw.scan(nothing, gw.Max, "exclusive", device=device),
    ):
        assert_same(got, nothing)
    for extreme in (gw.min, gw.max):
        with pytest.raises(gw.EmptyReductionError):
            extreme(nothing, device=device)
    with pytest.raises(ValueError, match="0 items"):
        gw.reduce(nothing, gw.Min, device=device)


def test_no_items_under_an_operator_of_ones_own_give_its_identity(device):
    assert gw.reduce(np.array([], np.uint32), AFFINE, device=device) == 0x00010000


@pytest.mark.parametrize("datatype", ["u32", "i32"])
def test_integers_wrap_where_a_dtype_of_theirs_is_asked_for(device, datatype):
    dtype = gw.DATATYPES[datatype].dtype
    x = np.full(3, np.iinfo(dtype).max, dtype)
    assert gw.sum(x, device=device) == x.sum()
    assert_same(gw.scan(x, device=device), np.cumsum(x, dtype=dtype))
    assert gw.sum(x, dtype=dtype, device=device) == x.sum(dtype=dtype) != x.sum()
    assert_same(gw.cumsum(x, dtype=datatype, device=device), np.cumsum(x, dtype=dtype))


def test_nan_infinities_and_zeros(device):
    zeros = np.array([0.0, -0.0, 0.0], np.float32)
    assert np.signbit(gw.min(zeros, device=device))
    assert not np.signbit(gw.max(zeros, device=device))
    assert np.isnan(gw.min(np.array([1, np.nan, -np.inf], np.float32), device=device))
    assert np.isnan(gw.max(np.array([np.nan, np.inf], np.float32), device=device))
    assert np.isnan(gw.sum(np.array([np.inf, -np.inf], np.float32), device=device))
    assert gw.prod(np.array([np.inf, -2], np.float32), device=device) == -np.inf


def test_outputs_are_separate_from_one_call_to_the_next(device):
    x = gw.asarray(np.ones(10, np.uint32), device)
    first, second = gw.cumsum(x), gw.cumsum(x)
    assert first.buffer is not second.buffer
    assert_same(first.to_numpy(), second.to_numpy())


def test_a_second_call_compiles_nothing_and_keeps_no_argument(device):
    x = np.ones(1000, np.float32)
    gw.cumsum(x, device=device)
    compiled = context_of(device).executor.pipelines.compiled
    gw.cumsum(x[:7], device=device)
    assert context_of(device).executor.pipelines.compiled == compiled


@pytest.mark.parametrize("dtype", [np.longdouble, "M8[s]"])
def test_other_dtypes_are_refused_with_the_remedy(device, dtype):
    with pytest.raises(gw.DatatypeError, match=r"astype|x\.view"):
        gw.sum(np.ones(3, dtype), device=device)


def test_arguments_on_two_devices_are_refused(device, fresh_device):
    a, b = (gw.asarray(np.ones(3, np.uint32), d) for d in (device, fresh_device))
    with pytest.raises(gw.BufferUsageError, match="different devices"):
        gw.add(a, b)


def test_strided_and_read_only_numpy_arrays(device):
    x = np.arange(100, dtype=np.uint32)
    x.flags.writeable = False
    assert_same(gw.cumsum(x[::3], device=device, dtype=np.uint32), np.cumsum(x[::3], dtype=np.uint32))
    assert_same(gw.cumsum(x[::-1], device=device, dtype=np.uint32), np.cumsum(x[::-1], dtype=np.uint32))


# ---- what is refused, and what the message says to do; nothing of it needs a device

F = np.ones(4, np.float32)
M = np.ones((3, 4), np.float32)


def _refusal(call, kind=gw.ArgumentError):
    with pytest.raises(kind) as caught:
        call()
    return str(caught.value)


def test_a_list_is_taken(device):
    for values in ([1, 2, 3], range(3)):
        assert gw.max(values, device=device) == np.max(values)
        assert gw.reduce(values, device=device) == np.asarray(values).dtype.type(np.sum(values))


def test_a_remedy_names_the_argument_and_where_it_lies(device):
    whole = gw.asarray(np.eye(3, dtype=np.int32), device)
    message = _refusal(lambda: gw.matmul(whole, whole), gw.DatatypeError)
    assert "gw.asarray(a.to_numpy().astype(np.float32))" in message
    assert "b.astype(np.float32)" in _refusal(lambda: gw.matmul(M, np.eye(4, dtype=int)), gw.DatatypeError)
    assert "a.astype(np.float32)" in _refusal(lambda: gw.matmul(np.eye(3, dtype=np.int32), M), gw.DatatypeError)
    assert "values: " in _refusal(lambda: gw.sort_pairs(F, F.astype(complex)), gw.DatatypeError)


def test_two_datatypes_are_refused_before_anything_is_uploaded(device, monkeypatch):
    made = []
    x = gw.asarray(F, device)
    monkeypatch.setattr(type(device), "create_buffer", lambda *a, **k: made.append(1), raising=False)
    message = _refusal(lambda: gw.matmul(x.reshape(2, 2), np.ones((2, 2), np.float16)), gw.DatatypeError)
    assert "b is of f16 (numpy float16), but a of f32" in message
    assert "np.asarray(b, dtype=np.float32)" in message
    assert not made


def test_a_single_item_is_no_array(device):
    assert "axis=None" in _refusal(lambda: gw.sort(5), gw.AxisError)
    for function in (gw.argsort, lambda x: gw.argpartition(x, 0)):
        np.testing.assert_array_equal(function(np.int32(1)), [0])


@pytest.mark.parametrize("axis", [-1, 1, 0, None])
@pytest.mark.parametrize("as_array", [False, True], ids=["numpy", "Array"])
def test_sorts_work_along_any_axis(device, as_array, axis):
    x = np.random.default_rng(0).integers(0, 9, (2, 3, 5)).astype(np.int32)
    given = gw.asarray(x, device) if as_array else x
    order = np.argsort(x, axis, kind="stable")
    for function, expected in (
        (gw.sort, np.sort(x, axis)), (gw.argsort, order), (lambda x, axis: gw.partition(x, 1, axis), np.sort(x, axis)),
        (lambda x, axis: gw.argpartition(x, 1, axis), order),
    ):  # fmt: skip
        found = function(given, axis)
        assert found.dtype == ((np.uint32 if as_array else np.int64) if expected is order else np.int32)
        np.testing.assert_array_equal(found.to_numpy() if as_array else found, expected)
    out = gw.empty(order.shape, "u32", device) if as_array else np.empty(order.shape[::-1], np.intp).T
    assert gw.argsort(given, axis, "stable", None, out=out) is out
    np.testing.assert_array_equal(out.to_numpy() if as_array else out, order)
    if axis is not None:
        best = gw.top_k(given, 2, axis=axis, mode="smallest")
        for found, expected in zip(best, (np.sort(x, axis), order), strict=True):
            np.testing.assert_array_equal(found.to_numpy() if as_array else found, expected.take([0, 1], axis))
    assert gw.sort(given[:, :0] if not as_array else gw.empty((2, 0), device=device), -1).size == 0


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


SQUARE = gw.UnaryOp("square", np.square, expression="x * x")
