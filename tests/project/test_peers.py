"""`make peers` looks at every public function, and finds what it is there to find. No adapter is needed but for one."""

import inspect
import re
import warnings
from dataclasses import replace

import numpy as np
import pytest

import gridwise_py as gw
from helpers import inside
from helpers.paths import ROOT
from helpers.peers import known
from helpers.peers.calls import Call, Given, parsed, text
from helpers.peers.chains import drawn, drawn_at
from helpers.peers.dry import DryRuns
from helpers.peers.judge import judged
from helpers.peers.smaller import smaller
from helpers.peers.stored import STORED
from helpers.peers.twins import EXEMPT, TWINS

FUNCTIONS = [name for name in gw.__all__ if callable(getattr(gw, name)) and not inspect.isclass(getattr(gw, name))]
FUNCTIONS = [name for name in FUNCTIONS if inspect.isroutine(getattr(gw, name))]
X = np.array([3, 1, 2], np.int32)
#: Calls for which numpy makes arrays of 16 GB; `make peers` replays them, too.
NUMPYS_GIGABYTES = re.compile(r"histogram.*(2\*\*31|2147483647)\)$")


def test_every_public_function_has_a_twin_or_a_reason_why_not():
    assert not [name for name in FUNCTIONS if (name in TWINS) == (name in EXEMPT)]
    assert not EXEMPT.keys() - set(FUNCTIONS)


@pytest.mark.slow
def test_what_was_found_once_is_not_found_again(device, monkeypatch):
    monkeypatch.setattr(gw.runtime.device, "_default", [device])
    found = [(fault, judged(parsed(call)).finding) for fault, call in STORED if not NUMPYS_GIGABYTES.search(call)]
    assert not [(fault, finding) for fault, finding in found if finding is not None]


@pytest.mark.slow
def test_a_call_follows_from_its_seed_and_index_and_can_be_stored():
    names = set()
    for index in range(1500):
        one, other = (drawn(np.random.default_rng([5, index])) for _ in range(2))
        assert text(one) == text(other)
        names.add(one.name)
        if index < 300:
            assert text(parsed(text(one))) == text(one)
    assert names == TWINS.keys()


def _raising(error):
    def function(*args, **kwargs):
        raise error

    return function


@pytest.mark.slow
@pytest.mark.parametrize(
    ("function", "call", "kind"),
    [
        (lambda x, axis=None: x, Call("flip", (Given(X),)), "value"),
        (lambda x, axis=None: x[::-1].astype(np.int64), Call("flip", (Given(X),)), "dtype"),
        (lambda x, axis=None: x[:1], Call("flip", (Given(X),)), "shape"),
        (lambda x, axis=None: x[::-1].tolist(), Call("flip", (Given(X),)), "type"),
        (lambda x, axis=None: x.sort() or x[::-1].copy(), Call("flip", (Given(X),)), "input"),
        (_raising(KeyError("input")), Call("flip", (Given(X),)), "leak"),
        (_raising(gw.ArgumentError("no")), Call("flip", (Given(X),)), "refusal"),
        (_raising(gw.ArgumentError("no")), Call("flip", (Given(X), 5)), "error class"),
        (lambda x, axis=None: x, Call("flip", (Given(X), 5)), "accepts"),
        (lambda x, out=None: np.cumsum(x), Call("cumsum", (Given(X),), {"out": Given(np.zeros(3, int))}), "out"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_each_kind_of_fault_is_found(monkeypatch, function, call, kind):
    assert judged(call).finding is None or kind == "out"  # numpy's own
    monkeypatch.setattr(gw, call.name, function)
    assert judged(call).finding.kind == kind


@pytest.fixture(autouse=True)
def _numpy_in_place_of_what_needs_a_gpu(request, monkeypatch):
    if "device" not in request.fixturenames:
        for name in ("flip", "cumsum"):
            monkeypatch.setattr(gw, name, _as_here(getattr(np, name)))


def _as_here(function):
    def answered(*args, **kwargs):
        try:
            return function(*args, **kwargs)
        except np.exceptions.AxisError as error:
            raise gw.AxisError(str(error)) from None

    return answered


@pytest.mark.slow
def test_without_kernels_nothing_is_compiled_and_what_does_not_depend_on_items_is_found(device, monkeypatch):
    monkeypatch.setattr(gw.runtime.device, "_default", [device])
    bound_call = gw.runtime.bound_call
    monkeypatch.setattr(bound_call, "launch", bound_call.launch)
    without_kernels = DryRuns()

    def kind_of(call):
        with without_kernels():
            assert gw.default_device() is not device
            finding = judged(call, items=False).finding
            assert inside.compiled(gw.default_device()) == 0
        return finding and finding.kind

    calls = (
        Call("sort", (Given(X, "gpu"),)),
        Call("cumsum", (Given(X),), {"out": Given(np.zeros(3, np.int32))}),
        Call("unique", (Given(np.array([1, 1, 2], np.float32)),)),
        Call("take", (Given(X), Given(np.array([9])))),
    )
    assert [kind_of(call) for call in calls] == [None] * 4
    sort, take = gw.sort, gw.take
    for name, function, call, kind in (
        ("sort", lambda x: sort(x).astype("f32"), calls[0], "dtype"),
        ("sort", lambda x: sort(x)[:1], calls[0], "shape"),
        ("sort", lambda x: sort(x).to_numpy(), calls[0], "residence"),
        ("take", lambda x, i: take(x, i % 3), calls[3], "accepts"),
        ("take", lambda x, i: warnings.warn("slow", stacklevel=2) or take(x, i), calls[3], None),
        ("unique", lambda x: warnings.warn("slow", stacklevel=2) or x, calls[2], "warning"),
        ("unique", lambda x: np.broadcast_to(x[0], 2), calls[2], "read-only"),
    ):
        monkeypatch.setattr(gw, name, function)
        assert kind_of(call) == kind
    assert gw.default_device() is device
    assert sort(X, device=device).tolist() == [1, 2, 3]


@pytest.mark.slow
def test_odd_arguments_may_be_refused_and_only_by_the_librarys_errors(monkeypatch):
    odd = Call("flip", (Given(X),), {"axis": 2.5}, is_odd=True)
    for error, kind in ((gw.DatatypeError("no"), None), (gw.ArgumentError("no"), "error class")):
        monkeypatch.setattr(gw, "flip", _raising(error))
        finding = judged(odd).finding
        assert (finding.kind if finding else None) == kind
    fits = replace(odd, kwargs={"axis": 0})
    assert judged(fits).refusal
    assert judged(replace(fits, is_odd=False)).finding.kind == "refusal"
    assert any(drawn_at(5, index, alone=True).is_odd for index in range(40))


@pytest.mark.slow
def test_sums_of_floats_may_be_rounded_and_no_more(monkeypatch):
    x = np.random.default_rng(0).standard_normal(3000).astype(np.float32)
    call = Call("cumsum", (Given(x),))
    for error, kind in ((0, None), (2.0**-20, None), (2.0**-5, "value")):
        monkeypatch.setattr(
            gw, "cumsum", lambda x, e=error: np.cumsum(x, dtype=np.float64).astype(x.dtype) + np.float32(e)
        )
        finding = judged(call).finding
        assert (finding.kind if finding else None) == kind


@pytest.mark.slow
def test_a_finding_is_made_smaller_and_its_lines_show_it(monkeypatch):
    monkeypatch.setattr(gw, "flip", lambda x, axis=None: x if 7 in x else x[::-1])
    call = Call("flip", (Given(np.arange(1000, dtype=np.int32), "strided"),), {"axis": 0})
    small = smaller(call, lambda each: judged(each).finding is not None)
    assert judged(small).finding.kind == "value"
    assert not small.kwargs
    assert small.args[0].items.size <= 4
    assert small.args[0].how == "numpy"
    shown = eval(text(small, "np"), {"np": np})
    assert np.array_equal(shown, np.flip(small.args[0].items))


@pytest.mark.slow
def test_a_documented_difference_is_none_and_only_where_it_is_documented(monkeypatch):
    entry = known.Known("a reason", "flip", "of floats", when=lambda call: call.args[0].items.dtype.kind == "f")
    monkeypatch.setattr("helpers.peers.judge.REFUSALS", (entry,))
    monkeypatch.setattr(gw, "flip", _raising(gw.ArgumentError("not of floats")))
    of_floats, of_integers = (judged(Call("flip", (Given(X.astype(dtype)),))) for dtype in (np.float32, np.int32))
    assert (of_floats.finding, of_floats.refusal) == (None, "a reason")
    assert of_integers.finding.kind == "refusal"


@pytest.mark.slow
def test_pages_of_documented_differences_exist():
    if not (ROOT / "docs").exists():
        pytest.skip("needs the repository")
    pages = {
        found for entry in (*known.REFUSALS, *known.ALLOWED) for found in re.findall(r"docs/\S+?\.md", entry.reason)
    }
    assert pages
    assert not [page for page in pages if not (ROOT / page).exists()]
