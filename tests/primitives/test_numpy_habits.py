"""Calls as numpy's users write them: positions, options, errors and dtypes, with numpy itself as the reference.

`make peers` makes random ones.
"""

import inspect
from functools import partial

import numpy as np
import pytest

import gridwise_py as gw
from helpers.strategies import quick_first

F = np.array([[1.5, -2.5, 4.0], [np.nan, 0.5, 9.0]], np.float32)
N = ~np.isnan(F)
L = np.array([[3, -1, 4], [1, -5, 9]])
I = L.astype(np.int32)  # noqa: E741  # for what is computed in expressions
D = F.astype(np.float64)
U = np.array([3, 200, 255], np.uint8)


# numpy warns of rows of NaN.
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


class _Functions:
    """The functions of a module, on a device."""

    def __init__(self, device):
        self._device = device

    def __getattr__(self, name):
        return partial(getattr(gw, name), device=self._device)


def _value(text, m, **named):
    """What a line of a table gives; m is numpy or this library."""
    return eval(text, {**globals(), "m": m, **named})


def _fails(lines, check):
    """Return the lines of a table for which `check` raises, and what."""
    failed = []
    for text in lines.strip().splitlines():
        try:
            check(text)
        except Exception as error:
            failed.append(f"{text}: {error!r}")
    return "\n".join(failed)


def _same(got, want):
    assert np.shape(got) == np.shape(want)
    assert np.asarray(got).dtype == np.asarray(want).dtype
    assert isinstance(got, (np.ndarray if isinstance(want, np.ndarray) else np.generic))
    np.testing.assert_allclose(got, want, rtol=2e-6, atol=1e-6)


CALLS = """
m.sum(L, 0)
m.sum(L, 1, None, None, True, 5, L > 0)
m.sum(L, out=np.zeros((), np.uint8))
m.sum(L, 0, out=np.zeros((3, 2), np.int64)[:, 1])
m.max(L * 100, out=np.zeros((), np.int8))
m.sum(abs(F[:1]), 1, out=np.zeros(1, ">i4"))
m.sum([1, -1], out=np.zeros((), bool))
m.sum(L[0, 0], -1)
m.max(L, 0, None, True, 3)
m.max(L, initial=2, where=[True, False, True], axis=0)
m.max(np.zeros((2, 0), np.int32), axis=1, initial=4)
m.prod(L, where=L > 0)
m.cumsum(L, 0, np.uint8)
m.cumsum(L, out=np.zeros(12, np.int64)[::2])
m.cumprod(L[0, 0], 0)
m.mean(F, 0)
m.mean(D[0], dtype=np.float16)
m.mean(F, (0, 1), None, None, True, where=N)
m.mean(L, 0, np.float64, where=L > 2)
m.mean(F[:, 1:], 0, None, np.zeros(4)[::2])
m.mean(np.complex64([1j, 2]))
m.var(F, 0, None, None, 1)
m.var(np.float32([[np.nan], [np.inf], [3]]), axis=1)
m.any(L, 0, np.zeros(3, np.int32))
m.all(F, 1, None, True, where=F > 0)
m.argmax(F, 0)
m.argmin(L, 1, np.zeros(2, np.uint32))
m.argmax([1, 1 + 1e-12])
m.any([1e-300])
m.count_nonzero([1e-300, 0])
m.count_nonzero(L, 0)
m.add(1, 2.5)
m.add(L, 1, np.zeros((3, 2), np.int64).T)
m.take(L, [1], 0, np.zeros((3, 1), np.int64).T)
m.sqrt(F)
m.floor([2])
m.floor(I.astype(">i4"))
m.absolute(I)
m.absolute([-(2**31)])
m.absolute(L > 0)
m.isnan(F)
m.isnan(L)
m.round(F)
m.clip(I, 0, 3)
m.clip(U, -5, 2**40)
m.clip(L[0, 0], None, None)
m.maximum(U, 7)
m.minimum(L, D)
m.where(F > 0, F, 0)
m.where(L > 0, L, D.astype(">f8"))
m.where([True, False])[0]
m.average(L, 1, [1, 2, 3])
m.average(L, 0, [1, 2.5], True)[1]
m.diff(L > 0)
m.diff(L, 0, None)
m.diff(np.zeros(0, ">i8"))
m.diff(L, prepend=0, append=[[1], [2]])
m.ediff1d(L, [5, 6], 1)
m.quantile(L, [0, 0.3, 1], 1)
m.quantile(U, [0, 1])
m.percentile(D, 25, keepdims=True)
m.nanmedian(F, 1)
m.nanpercentile(D, [10, 33.3], 0)
m.nanprod(D)
m.nanmean(F, 0)
m.nanmean(np.float32([[np.inf, 1], [0, np.nan]]), 0)
m.nanmin(F[:, :1], 1)
m.nanstd(F)
m.sort(F, 0)
m.sort(L, None, kind="stable")
m.argsort(L, -1, stable=True)
m.argsort(L, 0, "quicksort")
m.partition(np.array([]), 0)
m.lexsort(L[None], 0)
m.take(U, [True, False])
m.repeat(U, [True, False, True])
m.repeat([], [])
m.repeat(L, [2, 0], 0)
m.compress([0, 1], L, 1)
m.compress([True, False, True], L, None, np.zeros(2, np.int64))
m.roll(L, np.array(2))
m.searchsorted(U, -1, "right")
m.searchsorted(np.float32([0.1, 0.2]), 0.1, "right")
m.digitize(F, [np.nan] * 3)
m.bincount(np.int64([]), [], 3)
m.unique(U, False, False, False, 0)
m.mean(F.astype(">f2"), 0)
m.percentile(np.float32([-1e9, 1, 2, 3]), 100 / 3)
m.var(F.astype(">f2"), 0)
"""


@pytest.mark.needs("shader-f64")
def test_a_call_gives_what_numpy_gives(device):
    assert not _fails(CALLS, lambda text: _same(_value(text, _Functions(device)), _value(text, np)))


METHODS = (
    "inverted_cdf averaged_inverted_cdf closest_observation interpolated_inverted_cdf hazen weibull linear "
    "median_unbiased normal_unbiased lower higher midpoint nearest"
)


def _equal(got, want):
    _same(got, want)
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("dtype", quick_first([np.float32, np.int32], [np.float16, np.float64, np.uint8, np.int64]))
def test_quantiles_are_numpys_to_the_bit(device, dtype):
    """Whatever `q` is: its datatype decides on that of the ranks, shares and results, unless it is a Python number."""
    rng = np.random.default_rng(1)
    parts = np.array([0, 0.1, 0.25, 0.3, 0.5, 0.6, 0.7, 0.9, 0.95, 1])
    asked = [1, 0.1, 0.7, True, [0.1, 0.7], [0, 1], np.bool_(True), np.int64(1), parts.reshape(2, 5)]
    asked += [of for kind in (np.float16, np.float32, np.float64) for of in (kind(0.7), parts.astype(kind))]
    items = rng.normal(100, 40, 2048).clip(0).astype(dtype)
    if items.dtype.kind == "f":
        items[3:5] = np.inf, -np.inf
    for method in METHODS.split():
        for q in asked:
            _equal(gw.quantile(items[:11], q, method=method, device=device), np.quantile(items[:11], q, method=method))
        for q in (95, 99.9, np.float32(99.9)):
            _equal(gw.percentile(items, q, method=method, device=device), np.percentile(items, q, method=method))
    rows = items[20:80].reshape(3, 20)
    if rows.dtype.kind == "f":
        rows[0, 3:9] = rows[1, 4] = np.nan
    for method in METHODS.split():
        for q in (0.7, np.float32(0.7), parts):
            found = gw.nanquantile(rows, q, 1, method=method, device=device)
            _equal(found, np.nanquantile(rows, q, 1, method=method))


def test_quantiles_that_cannot_be_are_refused_before_the_gpu_moves_anything(device, monkeypatch):
    x = gw.asarray(np.ones((3, 4), np.float32), device)
    monkeypatch.setattr("gridwise_py.functions.order_statistics.transpose", lambda *_: pytest.fail("it moved items"))
    for name, q, problem in (
        ("quantile", 1.5, "must lie within 0 to 1"), ("percentile", [101], "must lie within 0 to 100"),
        ("quantile", "a", "q is of"), ("quantile", [[[0.5]]], "at most 2"),
        ("nanquantile", 0.5, "known to the GPU alone"),
    ):  # fmt: skip
        with pytest.raises(gw.ArgumentError, match=problem):
            getattr(gw, name)(x, q, 0)
    with pytest.raises(gw.ArgumentError, match="known to the GPU alone"):
        gw.nanmedian(x, 0)


def test_ranks_of_an_array_are_those_of_numpy(device):
    x = np.arange(1001, dtype=np.float32)
    on_gpu = gw.asarray(x, device)
    for q in (7, 29, 57, 58, 99.9, np.float32(57), np.float32([7, 29, 99.9])):
        for method in ("lower", "higher", "nearest"):
            found = gw.percentile(on_gpu, q, method=method).to_numpy()
            np.testing.assert_array_equal(found, np.percentile(x, q, method=method))


def test_ranks_that_float16_does_not_hold_are_right(device):
    x = np.arange(70_001, dtype=np.float32)
    found = gw.quantile(x, np.float16([0, 0.25, 1]), device=device)
    np.testing.assert_array_equal(found, [0, 17_500, 70_000])


def test_the_median_of_an_odd_number_of_items_is_one_of_them(device):
    x = np.float32([3e38, 1, 3.2e38])
    assert gw.median(x, device=device) == x[0] == gw.median(gw.asarray(x, device)).item()


ON_GPU = """
m.sum(X, 1, initial=5, keepdims=True)
m.max(X, 0, where=N, initial=-4)
m.mean(X, 0, where=N)
m.nanvar(X, 0)
m.nanmax(X, 1)
m.nansum(X, dtype=np.int32)
m.nanprod(X[0].reshape(3)[2:].reshape(()), dtype=np.int32)
m.nanargmin(X[0], -1)
m.all(X, 1, keepdims=True, where=N)
m.median(X, 1)
m.quantile(X[0], 0.7)
m.quantile(X[0], [0.1, 0.6], method="hazen")
m.ptp(X, 1)
m.average(X, 1, [1, 2, 3])
m.diff(X)
"""


@pytest.mark.needs("shader-f64")
def test_a_call_on_an_array_stays_on_the_gpu_and_gives_what_it_gives_of_numpys(device):
    def check(text):
        want, got = _value(text, np, X=F), _value(text, gw, X=gw.asarray(F, device))
        _same(_value(text, _Functions(device), X=F), want)
        assert isinstance(got, gw.Array)
        assert got.shape == np.shape(want)
        np.testing.assert_allclose(got.to_numpy(), want, rtol=3e-6, atol=1e-6)

    assert not _fails(ON_GPU, check)


def test_results_are_cast_to_out_on_the_gpu(device):
    for call, items, dtype, shape in (
        (lambda m, x, out: m.max(x, 1, out), L * 100, np.int8, 2),
        (lambda m, x, out: m.mean(x, 0, out=out), abs(F[:1]), np.float16, 3),
    ):
        out = gw.empty(shape, np.dtype(dtype), device)
        assert call(gw, gw.asarray(items, device), out) is out
        np.testing.assert_array_equal(out.to_numpy(), call(np, items, np.empty(shape, dtype)))
    with pytest.raises(gw.DatatypeError, match="out is of i32"):
        gw.std(gw.asarray(F, device), out=gw.empty((), "i32", device))


ERRORS = """
m.take(L, [99])
m.take(L, [0], 5)
m.sum(L, axis=5)
m.sum(L, axis=(0, 0))
m.cumsum(L, 5)
m.argmax(L, axis=5)
m.sum(L, axis=1.0)
m.mean(L, axis=1.0)
m.max(L, where=L > 0)
m.quantile(F, 2.0)
m.quantile(F, 0.5, method="unknown")
m.nanargmax(F[1:, :1])
m.nanargmax(F, "0")
m.nanargmax(F, 2**31)
m.nanmax([])
m.nanmean(F, out=np.zeros((), int))
m.std(F, out=np.zeros((), int))
m.argmax(F, out=np.zeros((), np.uint64))
m.sum(L[0, 0], (0,))
m.ediff1d([True, False])
m.average(L, weights=[1, 2])
m.average(L, weights=L * 0)
m.put(L.copy(), [99], 1)
m.put([1, 2], [0], 1)
m.sort(L, 2)
m.sort(3)
m.argsort(L, kind="unknown")
m.argsort(L, order="name")
m.argsort(L, 1.0)
m.argpartition(L[0], 1.0)
m.partition(L, 9)
m.flip(L, (0, 0))
m.roll(L, 1, 5)
m.lexsort([])
m.lexsort(F[0], 5)
m.repeat(L, [1, 2])
m.compress([1] * 7, L)
m.delete(L, 9)
m.histogram(L, 3.5)
m.histogram(L, range=10)
m.bincount(L)
m.sum(L, keepdims=0.5)
m.min(L, keepdims="yes")
m.unique(U, return_index=np.array([1.0, 2.0]))
m.digitize(U, [1, 2], right=np.array([1, 2]))
m.mean(L, axis="")
m.cumsum(L, (0,))
m.bincount([1], weights=[[1, 2], [3]])
m.histogram(L, [[1, 2], [3]])
m.histogram(L, range=[[1], [2, 3]])
m.flip(L, np.float32)
m.flip(L, axes=0)
m.roll(L, [[1, 2], [3]])
m.roll(L, "")
m.var(F, ddof=np.zeros(0), correction=1)
m.roll(L, np.zeros((1, 2), int))
m.transpose(L, [[0], [1, 1]])
m.sort(L, kind=0.5)
m.take(L, [0], mode=int)
m.searchsorted(U, 1, side=3)
m.partition(L[0], [])
m.argpartition(L[0], [[0], [1, 1]])
m.round(F, [0, 1])
m.put(F.copy(), [0], 1j)
m.put(L.copy(), [0], np.nan)
m.put(L.copy(), [0], np.inf)
"""


def test_an_error_is_numpys_and_this_librarys(device):
    def check(text):
        with pytest.raises(Exception) as wanted:  # noqa: PT011  # numpy's says which
            _value(text, np)
        with pytest.raises(gw.GridwiseError) as found:
            _value(text, _Functions(device))
        for kind in (IndexError, TypeError, ValueError, np.exceptions.AxisError):
            assert isinstance(found.value, kind) or not isinstance(wanted.value, kind)

    assert not _fails(ERRORS, check)


def test_what_cannot_be_computed_has_a_remedy(device):
    wide = gw.asarray(L.astype(np.complex64), device)
    for call, remedy in (
        (lambda: gw.exp(D, device=device), r"x\.astype\(np\.float32\)"),
        (lambda: gw.mean(L, dtype=int), "f16, f32, f64"),
        (lambda: gw.var(F, ddof=1, correction=1), "one number"),
        (lambda: gw.sum(L, where=L), "compare it"),
        (lambda: gw.sum(wide, 0, where=L > 0), r"gw\.compress\(where, x\)"),
        (lambda: gw.round(F, 2), r"np\.round"),
        (lambda: gw.nanmedian(gw.asarray(F, device)), "to_numpy"),
        (lambda: gw.arange(0, 300, 7, dtype="bool"), "2 of them"),
        (lambda: gw.arange(0, (1, 2)), "not a number"),
        (lambda: gw.arange(3, dtype=[]), "no field"),
        (lambda: gw.asarray([[1], [2, 3]], device), "numpy makes no array"),
        (lambda: gw.full(3, [[1], [2, 3]], device=device), "numpy makes no array"),
        (lambda: gw.add([[1], [2, 3]], L, device=device), "numpy makes no array"),
        (lambda: gw.histogram(L, range=np.complex64([1, 2]), device=device), "two numbers"),
        (lambda: gw.sort(L, descending=[1.0], device=device), "True or False"),
        (lambda: gw.nanmax(F, [0, 2], device=device), "out of bounds"),
        (lambda: gw.segmented_sort_pairs(L[0], None, [0, 3], device=device), "gw.segmented_sort sorts"),
        (lambda: gw.reduce_by_index(L[0] * 0, None, length=2, device=device), "gw.bincount counts"),
        (lambda: gw.bitcast(np.zeros(2), gw.asarray(F, device)), "u32, i32, f32, u64"),
        (lambda: gw.average(gw.asarray(F[0], device), 0, gw.asarray(F, device)), "weights has shape"),
        (lambda: gw.stream(gw.Reduce(device, "i32"), np.arange(5, dtype=np.int32)), "array_split"),
    ):
        with pytest.raises(gw.ArgumentError, match=remedy):
            call()


def test_the_length_of_a_counted_array_is_not_told(device):
    x = gw.asarray(np.arange(3, dtype=np.int32), device)
    kept = gw.compress(x > 0, x)
    with pytest.raises(TypeError, match=r"array\.count.*array\.trim\(\)"):
        len(kept)
    with pytest.raises(gw.ArgumentError, match="trim"):
        kept.item(0)
    assert len(kept.trim()) == 2


def test_one_is_neutral_in_products_of_complex_numbers(device):
    items = np.ones(3000, np.complex64)
    items[1500] = np.inf
    for deterministic in (False, True):
        found = gw.cumprod(items, deterministic=deterministic, device=device)
        np.testing.assert_array_equal(found, np.where(np.arange(3000) < 1500, 1, items[1500]))


#: What numpy calls the first argument, and others.
_NAMES = {"a": "x", "ary": "x", "arr": "x", "m": "x", "ar": "x", "ind": "indices", "obj": "indices", "v": "values"}
_NAMES_OF = {"searchsorted": {"a": "x1", "v": "x2"}}
FUNCTIONS = (
    "sum prod min max any all argmin argmax count_nonzero mean average var std cumsum cumprod cumulative_sum "
    "cumulative_prod take median percentile quantile ptp nansum nanprod nanmin nanmax nanargmin nanargmax nanmean "
    "nanvar nanstd nanmedian nanpercentile nanquantile diff ediff1d round sort argsort partition argpartition lexsort "
    "transpose flip roll put compress extract delete flatnonzero nonzero unique unique_values unique_counts "
    "unique_inverse unique_all union1d intersect1d setdiff1d setxor1d isin repeat searchsorted digitize histogram "
    "histogram2d histogram_bin_edges bincount"
)


def test_positions_are_numpys():
    """Of each function the arguments by position are those of numpy's namesake, in its order."""
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    for name in FUNCTIONS.split():
        names = _NAMES | _NAMES_OF.get(name, {})
        ours, theirs = (
            [names.get(p.name, p.name) for p in inspect.signature(function).parameters.values() if p.kind in positional]
            for function in (getattr(gw, name), getattr(np, name))
        )
        assert ours == theirs, name


@pytest.mark.parametrize("name", ["sum", "cumprod"])
def test_a_name_of_a_dtype_that_numpy_reads_otherwise_is_told(device, name):
    function = getattr(gw, name)
    with pytest.warns(gw.GridwiseWarning, match=r"'u8' is uint8 here.*np\.uint64") as told:
        assert function(U, dtype="u8", device=device).dtype == np.uint8
    assert told[0].filename == __file__
    for dtype in (np.uint8, "u32", "uint8"):
        function(U, dtype=dtype, device=device)


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64", "uint16", "uint64"])
def test_offsets_and_counts_on_the_gpu_are_of_any_integers(dtype, device):
    x = gw.arange(4, dtype="i32", device=device)
    offsets, counts = (gw.asarray(np.array(items, dtype), device) for items in ([0, 3, 4], [2, 0, 1, 0]))
    assert gw.segmented_reduce(x, offsets).tolist() == [3, 3]
    assert gw.segmented_scan(x, offsets).tolist() == [0, 1, 3, 3]
    assert gw.segment_ids(offsets, size=4).trim().tolist() == [0, 0, 0, 1]
    assert gw.repeat(x, counts, size=4).trim().tolist() == [0, 0, 2]
    best = gw.segmented_top_k(x, offsets, gw.asarray(np.array([2, 1], dtype), device), size=4)
    assert best.values.trim().tolist() == [2, 1, 3]
    target = gw.zeros(4, "i32", device)
    gw.copy_ranges(x, target, *(gw.asarray(np.array([each], dtype), device) for each in (1, 0, 2)))
    assert target.tolist() == [1, 2, 0, 0]


def test_numpys_names_of_arguments_are_taken():
    assert gw.sum(a=np.arange(3)) == 3
    assert gw.searchsorted(a=np.arange(3), v=2) == 2
    assert (
        gw.clip(np.arange(4), a_min=1, a_max=2).tolist() == gw.clip(np.arange(4), min=1, max=2).tolist() == [1, 1, 2, 2]
    )
    for wrong in ({"a": 1}, {"b": 1}):
        with pytest.raises(gw.CallError, match="has no argument"):
            gw.sum(np.arange(3), **wrong)
    with pytest.raises(gw.CallError, match=r"gw\.clip\(\): min= and a_min= both stand for low="):
        gw.clip(np.arange(4), min=1, a_min=2)


def test_numpys_ellipsis_and_single_items_as_out():
    assert type(gw.add(1, 2, out=...)) is type(gw.sum([1, 2], out=...)) is np.ndarray
    one = np.zeros(1)
    assert gw.percentile(np.ones(5), 5, out=one) is one
    assert one.tolist() == [1]


def test_first_letters_of_kinds():
    assert gw.sort([2, 1], kind="q").tolist() == [1, 2]
    with pytest.raises(gw.ArgumentError, match="kind='x' is unknown"):
        gw.sort([2, 1], kind="x")


def test_medians_and_maxima_of_bools_and_medians_of_nothing(device):
    bools = np.array([[True, False, True], [True, True, False]])
    np.testing.assert_array_equal(gw.median(bools, axis=0), np.median(bools, axis=0))
    assert gw.median(gw.asarray(bools, device)).item() == 1
    assert gw.maximum(*bools, device=device).all()
    assert np.isnan(gw.median(np.zeros(0, np.float32)))
    assert np.isnan(gw.quantile(np.zeros((0, 2)), 0.5, axis=0)).all()


@pytest.mark.parametrize("ends", [{"to_end": 0.75}, {"to_begin": [5.7]}, {"to_end": np.nan}, {"to_begin": 65540}])
def test_ends_of_differences_are_not_cut(ends):
    with pytest.raises(gw.DatatypeError, match=f"^gw.ediff1d.*{next(iter(ends))}"):
        gw.ediff1d(np.int16([1, 2]), **ends)


def test_weights_of_arrays_along_an_axis(device):
    x, weights = np.arange(6, dtype=np.float32).reshape(2, 3), np.float32([1, 2, 5])
    found = gw.average(gw.asarray(x, device), 1, gw.asarray(weights, device))
    np.testing.assert_allclose(found.to_numpy(), np.average(x, 1, weights), rtol=1e-6)


def test_products_of_matrices_by_their_operator(device):
    x = np.arange(4, dtype=np.float32).reshape(2, 2)
    np.testing.assert_array_equal((gw.asarray(x, device) @ gw.asarray(x, device)).to_numpy(), x @ x)


def test_primitives_say_what_they_work_on(device):
    assert repr(gw.Scan(device, "i32", "max")).startswith("Scan(i32, BinOp('max'), ")


def test_equal_numbers_far_from_zero_have_no_bins():
    with pytest.raises(gw.ArgumentError, match=r"have no width; give range=\(low, high\)$"):
        gw.histogram(np.full(3, 1.7e18))


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_what_takes_the_place_of_nan_may_be_an_array(device, dtype):
    x = np.array([[np.nan, 1, np.inf], [-np.inf, 2, np.nan]], dtype)
    for options in ({"nan": [4, 5, 6]}, {"nan": np.ones((2, 3)), "posinf": np.int8([[8], [9]]), "neginf": 7.0}):
        _equal(gw.nan_to_num(x, **options, device=device), np.nan_to_num(x, **options))
    with pytest.raises(gw.LengthError, match="but the numbers"):
        gw.nan_to_num(x, np.ones((2, 2, 3)), device=device)
    items = x.astype(np.float32)
    found = gw.nan_to_num(gw.asarray(items, device), items[1])
    np.testing.assert_array_equal(gw.asarray(found).to_numpy(), np.nan_to_num(items, nan=items[1]))
