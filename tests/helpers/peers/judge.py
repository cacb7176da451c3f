"""Whether what gridwise_py makes of a call is what its twin makes of it."""

from __future__ import annotations

import contextlib
import re
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

import gridwise_py as gw

from .calls import OPERATORS, UNARY, Call, Given, is_on_gpu, made, names, walk
from .known import ALLOWED, REFUSALS
from .references import Unspecified
from .twins import TWINS, Twin

#: Classes of errors that numpy's users catch. A MemoryError of numpy's says that a number was absurd.
_CLASSES: tuple[type[BaseException], ...] = (np.exceptions.AxisError, IndexError, TypeError, ValueError)
#: Functions whose shape depends on items: without these, the number of dimensions is compared.
_BY_ITEMS = re.compile(
    r"\[\]|\.?trim|bincount|compress|extract|(flat)?nonzero|group_by|histogram_bin_edges|join|partition_by|reduce_by_key|repeat"
    r"|run_length_encode|segment_ids|intersect1d|setdiff1d|setxor1d|union1d|unique(_\w+)?"
)


@dataclass(frozen=True)
class Finding:
    """A difference from the twin that nothing documents."""

    name: str
    kind: str
    detail: str
    #: What tells one fault from another of the same kind.
    mark: str = ""

    @property
    def group(self) -> tuple[str, str, str]:
        return self.name, self.kind, self.mark


@dataclass
class Outcome:
    """What came of a call: a value or an error, what was warned of, and the arguments as they were afterwards."""

    value: Any = None
    error: BaseException | None = None
    warned: tuple[str, ...] = ()
    arguments: dict[int, Any] = field(default_factory=dict)


class Judged:
    """The verdict on one call."""

    __slots__ = ("allowed", "finding", "gridwise", "numpy", "refusal")

    def __init__(self, numpy: Outcome, gridwise: Outcome):
        self.numpy, self.gridwise = numpy, gridwise
        self.finding: Finding | None = None
        self.refusal: str | None = None
        self.allowed: str | None = None


# ---- both sides


def _function(name: str, gridwise: bool) -> Callable[..., Any]:
    if not gridwise:
        return TWINS[name].numpy
    own = TWINS[name].gridwise
    if own is not None:
        return own
    if name in OPERATORS or name in UNARY:
        return {**OPERATORS, **UNARY}[name]
    if name == "[]":
        return lambda x, key: x[key]
    if name.startswith("."):
        return lambda x, *args, **kwargs: getattr(x, name[1:])(*args, **kwargs)
    return getattr(gw, name)


def _value(of: Any, gridwise: bool, known: dict[int, Any]) -> Any:
    """Return what an argument or a call is on one side; one that is used twice is made once, and its count is one."""
    if isinstance(of, (tuple, list)):
        return type(of)(_value(item, gridwise, known) for item in of)
    if isinstance(of, dict):
        return {key: _value(item, gridwise, known) for key, item in of.items()}
    if isinstance(of, (Given, Call)) and id(of) not in known:
        if isinstance(of, Given):
            known[id(of)] = made(of, gridwise)
        else:
            args, kwargs = _value(of.args, gridwise, known), _value(of.kwargs, gridwise, known)
            known[id(of)] = _function(of.name, gridwise)(*args, **kwargs)
    return known[id(of)] if isinstance(of, (Given, Call)) else of


def evaluate(call: Call, gridwise: bool) -> Outcome:
    """Make the call on one side."""
    outcome = Outcome()
    with warnings.catch_warnings(record=True) as warned, np.errstate(all="ignore"):
        warnings.simplefilter("always")
        try:
            outcome.value = _value(call, gridwise, outcome.arguments)
            if gridwise:
                outcome.value = _read(outcome.value)
        except Exception as error:
            outcome.error = error
    outcome.warned = tuple(f"{warning.category.__name__}: {warning.message}" for warning in warned)
    return outcome


class OnGpu:
    """A result that lay on the GPU, read back."""

    def __init__(self, items: np.ndarray):
        self.items = items


def _read(value: Any) -> Any:
    if isinstance(value, gw.Expression):
        value = gw.asarray(value)
    if isinstance(value, gw.Array):
        return OnGpu(value.to_numpy())
    if isinstance(value, gw.Groups):
        return tuple(_read(value[name]) for name in value.columns)
    if isinstance(value, (tuple, list)):
        return tuple(_read(item) for item in value) if isinstance(value, tuple) else value
    return value


# ---- the verdict


def judged(call: Call, deep: bool = True, items: bool = True) -> Judged:
    """Make a call on both sides and compare.

    Parameters
    ----------
    call : Call
    deep : bool
        Whether other calls are made, too, where both sides raise.
    items : bool
        Whether results have the right items; else only what does not depend on items is compared.
    """
    expected, found = evaluate(call, gridwise=False), evaluate(call, gridwise=True)
    result = Judged(expected, found)
    finding = _difference(call, expected, found, items)
    if finding is None:
        return result
    finding = replace(finding, name=finding.name or call.name)
    for allowed in ALLOWED:
        if allowed.holds(call, finding):
            result.allowed = allowed.reason
            return result
    if finding.kind in ("refusal", "error class"):
        # A call that is wrong in two ways may be told either.
        shown = replace(finding, kind="refusal", detail=_shown(found.error))
        for refusal in REFUSALS:
            if refusal.holds(call, shown):
                result.refusal = refusal.reason
                return result
    if call.is_odd and (finding.kind == "refusal" or (finding.kind == "error class" and not hasattr(np, call.name))):
        result.refusal = "what is no value of an argument is refused, by the library's own errors"
        return result
    if deep and finding.kind == "error class" and _is_wrong_in_two_ways(call, result, items):
        result.allowed = "wrong in two ways: either may be told"
        return result
    result.finding = finding
    return result


def _is_wrong_in_two_ways(call: Call, found: Judged, items: bool) -> bool:
    """Say whether, with another argument, one side's error stays as it is, and nothing else is to be said."""
    for candidate in _with_another_argument(call):
        other = judged(replace(candidate, is_odd=False), deep=False, items=items)
        if other.finding is None and (
            repr(other.numpy.error) == repr(found.numpy.error)
            or repr(other.gridwise.error) == repr(found.gridwise.error)
        ):
            return True
    return False


def _with_another_argument(call: Call) -> Iterator[Call]:
    """Return calls with an option less, or with an argument that is hardly wrong."""
    for key in call.kwargs:
        yield replace(call, kwargs={k: v for k, v in call.kwargs.items() if k != key})
    yield replace(call, args=call.args[:-1])
    for at in (*range(len(call.args)), *call.kwargs):
        value = call.args[at] if isinstance(at, int) else call.kwargs[at]
        easy: tuple[Any, ...] = (0, 1, np.float32)
        if isinstance(value, Given):
            easy = tuple(replace(value, items=each) for each in _easy(value.items))
        for each in easy:
            if isinstance(at, int):
                yield replace(call, args=(*call.args[:at], each, *call.args[at + 1 :]))
            else:
                yield replace(call, kwargs={**call.kwargs, at: each})


def _easy(x: np.ndarray) -> tuple[np.ndarray, ...]:
    return np.zeros(x.shape, x.dtype), np.zeros(x.shape, np.int64), np.arange(6), np.zeros((), x.dtype)


def _difference(call: Call, expected: Outcome, found: Outcome, items: bool) -> Finding | None:
    twin = TWINS[call.name]
    error = found.error
    if isinstance(error, gw.GridwiseError) or (expected.error is not None and _is_pythons(error, call)):
        pass
    elif error is not None:
        where = _raised_in(error)
        return Finding("", "leak", f"{type(error).__name__}: {error} ({where})", f"{type(error).__name__} {where}")
    if isinstance(expected.error, Unspecified):
        return None
    touched = _touched(call, twin, expected, found)
    if touched is not None:
        return touched
    if expected.error is not None:
        if error is None:
            return Finding(
                "",
                "accepts",
                f"numpy: {_shown(expected.error)}; here {_value_text(found.value)}",
                type(expected.error).__name__,
            )
        return _class_of_error(expected.error, error)
    if error is not None:
        return Finding("", "refusal", _shown(error), _normal(str(error)))
    if found.warned and not expected.warned:
        return Finding(
            "", "warning", f"numpy warns of nothing, here {'; '.join(found.warned)}", _normal(found.warned[0])
        )
    return _compare(call, twin, expected, found, items)


def _is_pythons(error: BaseException | None, call: Call) -> bool:
    """Say whether Python itself raises so of the operands of an operator."""
    return isinstance(error, TypeError) and (call.name in OPERATORS or call.name in UNARY)


def _raised_in(error: BaseException) -> str:
    trace, place = error.__traceback__, ""
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        if "gridwise_py" in file:
            place = f"{file.rpartition('gridwise_py/')[2]}:{trace.tb_frame.f_code.co_name}"
        trace = trace.tb_next
    return place


def _shown(error: BaseException) -> str:
    return f"{type(error).__name__}: {str(error)[:300]}"


def _normal(message: str) -> str:
    return re.sub(r"[-\d.,()\[\]\s]+|'[^']*'|u\d+|i\d+|f\d+|bool|float|int", " ", message)[:50]


def _class_of_error(expected: BaseException, error: BaseException) -> Finding | None:
    wanted = next((cls for cls in _CLASSES if isinstance(expected, cls)), None)
    if isinstance(expected, OverflowError):
        wanted = ValueError
    if wanted is None or isinstance(error, wanted):
        return None
    return Finding("", "error class", f"numpy: {_shown(expected)}; here {_shown(error)}", wanted.__name__)


def _touched(call: Call, twin: Twin, expected: Outcome, found: Outcome) -> Finding | None:
    """Return a finding if arguments were changed that are none of the call's business."""
    written = _written(call, twin)
    for at, given in enumerate(walk(call)):
        now = found.arguments.get(id(given))
        if now is None:
            continue
        may = given is written and found.error is None
        if may or isinstance(now, (int, float, complex, bool, np.generic, range)):
            continue
        if isinstance(now, gw.Expression):
            continue
        if isinstance(now, (list, tuple)):
            if repr(now) != repr(type(now)(given.items.tolist())):
                return Finding("", "input", f"argument {at} was changed")
            continue
        try:
            items = now.to_numpy() if isinstance(now, gw.Array) else np.asarray(now, given.items.dtype)
        except gw.GridwiseError as error:
            return Finding("", "input", f"argument {at} cannot be read: {_shown(error)}")
        if items.shape != given.items.shape or not same_bits(items, given.items):
            what = "out of a call that failed" if given is written else f"argument {at}"
            return Finding("", "input", f"{what} was changed")
    if twin.in_place or written is None or found.error is not None or expected.error is not None:
        return None
    if isinstance(found.arguments[id(written)], np.ndarray) and found.value is not found.arguments[id(written)]:
        return Finding("", "out", "what was returned is not out")
    return None


def _written(call: Call, twin: Twin) -> Given | None:
    if twin.in_place:
        return call.args[0] if call.args and isinstance(call.args[0], Given) else None
    out = call.kwargs.get("out")
    if out is None and twin.out_at is not None and len(call.args) > twin.out_at:
        out = call.args[twin.out_at]
    return out if isinstance(out, Given) else None


# ---- results


def same_bits(a: np.ndarray, b: np.ndarray) -> bool:
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    if a.dtype.kind not in "fc":
        return bool(np.array_equal(a, b, equal_nan=a.dtype.kind in "Mm"))
    parts = [np.ascontiguousarray(x).view(f"f{x.dtype.itemsize // (2 if x.dtype.kind == 'c' else 1)}") for x in (a, b)]
    nan = [np.isnan(x) for x in parts]
    with np.errstate(all="ignore"):
        return bool(
            np.array_equal(*nan)
            and np.all(nan[0] | ((parts[0] == parts[1]) & (np.signbit(parts[0]) == np.signbit(parts[1]))))
        )


def _value_text(value: Any) -> str:
    if isinstance(value, OnGpu):
        return f"on the GPU {_value_text(value.items)}"
    if isinstance(value, tuple):
        return f"({', '.join(map(_value_text, value))})"
    if isinstance(value, np.ndarray):
        return f"{np.array2string(value, threshold=12, separator=', ')} {value.dtype} {value.shape}"
    return repr(value)[:300]


def _compare(call: Call, twin: Twin, expected: Outcome, found: Outcome, items: bool) -> Finding | None:
    if twin.in_place:
        want = expected.arguments[id(call.args[0])]
        got = found.arguments[id(call.args[0])]
        if expected.value is not None or found.value is not None:
            return Finding("", "value", f"numpy returns {expected.value!r}, here {found.value!r}")
        got = OnGpu(got.to_numpy()) if isinstance(got, gw.Array) else got
    else:
        want, got = expected.value, found.value
    return _same(call, twin, want, got, 0, expected, items)


def _same(call: Call, twin: Twin, want: Any, got: Any, at: int, expected: Outcome, items_count: bool) -> Finding | None:
    if isinstance(want, (tuple, list)) and not (isinstance(want, list) and isinstance(got, list)):
        if not isinstance(got, tuple) or len(got) != len(want):
            return Finding("", "shape", f"numpy returns {len(want)} results, here {_value_text(got)}")
        for i, (one, other) in enumerate(zip(want, got, strict=True)):
            finding = _same(call, twin, one, other, i, expected, items_count)
            if finding is not None:
                return finding
        return None
    where = f"result {at}: " if isinstance(expected.value, tuple) else ""
    both = f"{where}numpy: {_value_text(want)}; here {_value_text(got)}"
    on_gpu = is_on_gpu(call)
    lies = isinstance(got, OnGpu) == (on_gpu or twin.resides == "gpu") or at in twin.host_results
    if twin.resides and not lies:
        return Finding("", "residence", both, f"{at}")
    items = got.items if isinstance(got, OnGpu) else got
    if not isinstance(items, (np.ndarray, np.generic)):
        if isinstance(want, (np.ndarray, np.generic)) and not twin.python_results:
            return Finding("", "type", both)
        items = np.asarray(items)
    if (
        isinstance(got, np.ndarray)
        and not isinstance(want, np.ndarray)
        and not (twin.python_results or _written(call, twin) is not None)
    ):
        return Finding("", "type", both)
    wanted = np.asarray(want)
    may_differ = not items_count and any(_BY_ITEMS.fullmatch(name) for name in names(call))
    if items.ndim != wanted.ndim or (items.shape != wanted.shape and not may_differ):
        return Finding("", "shape", both)
    if not items.flags.writeable and isinstance(items, np.ndarray) and isinstance(want, np.ndarray):
        of_series = any(given.how == "series" for given in walk(call))  # they are read-only
        if want.flags.writeable and not of_series:
            return Finding("", "read-only", both)
    out = _written(call, twin)
    own = {items.dtype.newbyteorder("=")} if out is not None and items.dtype == made(out, True).dtype else {items.dtype}
    if not twin.python_results and not own & {wanted.dtype, wanted.dtype.newbyteorder("=")}:
        allowed = twin.dtypes(call, wanted.dtype.newbyteorder("="), on_gpu or isinstance(got, OnGpu), at)
        if items.dtype not in allowed:
            return Finding("", "dtype", both, f"{wanted.dtype} {items.dtype} {on_gpu}")
    if not items_count:
        return None
    if twin.check is not None:
        wrong = twin.check(call, wanted, items)
    else:
        wrong = _wrong_items(call, twin, wanted, items, at)
    if wrong is not None and wrong.startswith("zero"):
        return Finding("", "zero", f"{wrong}{both}", "")
    if wrong is not None:
        return Finding("", "value", f"{wrong}{both}", f"{'gpu' if on_gpu else 'host'} {items.dtype.kind} {at}")
    return None


def _wrong_items(call: Call, twin: Twin, want: np.ndarray, got: np.ndarray, at: int) -> str | None:
    """Say which item is wrong, if one is."""
    if want.size == 0:
        return None
    compare = twin.compare
    if compare == "any":  # an array that was not filled
        return None
    chained = any(isinstance(arg, Call) for arg in call.args)  # sorts put −0 before +0
    if compare == "bits" and got.dtype == want.dtype and not chained:
        return None if same_bits(want, got) else "bits differ; "
    if want.dtype.kind == "M":
        return None if same_bits(want, got) else "dates differ; "
    if want.dtype.kind in "UO":
        return None if np.array_equal(want.astype(object), got.astype(object)) else "labels differ; "
    want, got = (x.astype(x.dtype.newbyteorder("=")) for x in (want, got))
    float_ = want.dtype.kind in "fc" or got.dtype.kind in "fc"
    if not float_:
        same = (got == want) if {got.dtype.kind, want.dtype.kind} <= set("iub") else np.equal(got, want)
        if got.dtype.itemsize < want.dtype.itemsize:  # integers wrap on the GPU; an index of −1 is 2³² − 1 there
            same = got == want.astype(got.dtype)
        return None if np.all(same) else _first(~np.asarray(same))
    with np.errstate(all="ignore"):
        value, scale = _exact(call, twin, want, got, at)
        if "c" in (want.dtype.kind, got.dtype.kind):  # part by part: an infinity is in one of them
            parts = [(np.real(x), np.imag(x)) for x in (np.asarray(value), want, got)]
            value, want, got = (np.stack(each) for each in parts)
            scale = np.stack([np.asarray(scale)] * 2)
        both_nan = np.isnan(value) & np.isnan(got)
        eps = _eps(got.dtype, want.dtype, *_asked_dtype(call))
        tiny = _tiny(got.dtype, scale)
        most = float(np.finfo(got.dtype).max) if got.dtype.kind in "fc" else np.inf
        near = (value == got) | (want == got) | (np.abs(got - value) <= eps * scale + tiny) | both_nan
        # What overflows in one order may not in another; a finite value beyond the dtype is an infinity.
        unsure = np.isinf(scale) | (scale * 1.0 >= most)
        over = (np.abs(value) * (1 + eps) >= most) & np.isinf(got) & np.isfinite(np.abs(value))
        ok = near | over | (unsure & (np.isfinite(np.abs(value)) | np.isnan(got) | np.isinf(got)))
        if unsure.any() and twin.zeros_stay:  # a product with a factor of 0 is 0
            zero = (value == 0) & (want == 0) & np.isnan(got)
            if zero.any() and np.all(ok):
                return "zero times an infinity; "
    return None if np.all(ok) else _first(~ok)


def _exact(call: Call, twin: Twin, want: np.ndarray, got: np.ndarray, at: int) -> tuple[Any, Any]:
    """Return exact values, and by how many eps a result may differ."""
    if twin.exact is None:
        return want, np.zeros(want.shape)
    args, kwargs = _value(call.args, False, {}), _value(call.kwargs, False, {})
    exact = twin.exact(want, got, *args, **kwargs)
    if isinstance(exact, list):  # for each result
        exact = exact[at]
    if exact is None:
        return want, np.zeros(want.shape)
    return np.broadcast_to(exact[0], want.shape), np.broadcast_to(np.asarray(exact[1], np.longdouble), want.shape)


def _eps(*dtypes: np.dtype) -> float:
    return max((float(np.finfo(dtype).eps) for dtype in dtypes if dtype.kind in "fc"), default=0.0)


def _asked_dtype(call: Call) -> list[np.dtype]:
    """Return the dtype that a call computes in, which out= may be wider than; by name or place."""
    found: list[np.dtype] = []
    for value in [*call.args, *call.kwargs.values()]:
        if isinstance(value, (str, type, np.dtype)):
            with contextlib.suppress(TypeError):
                found.append(np.dtype(value))
    return found


def _tiny(dtype: np.dtype, scale: np.ndarray) -> Any:
    """Return what a GPU may flush: subnormal numbers, where results are rounded at all."""
    return np.where(scale > 0, float(np.finfo(dtype).smallest_normal) if dtype.kind in "fc" else 0.0, 0.0)


def _first(wrong: np.ndarray) -> str:
    wrong = np.atleast_1d(wrong)
    where = tuple(int(i[0]) for i in np.nonzero(wrong))
    return f"{int(wrong.sum())} of {wrong.size} wrong, the first at {where}; "
