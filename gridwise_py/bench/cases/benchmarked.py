"""`benchmarked` and `Benchmark`: how a file of a user declares what `gridwise bench FILE` measures."""

from __future__ import annotations

import inspect
import math
import numbers
import re
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, fields
from typing import Any, TypeAlias, TypeVar, cast

import numpy as np
import wgpu

from ... import Primitive, Work
from ... import Sequence as CapturedSequence
from ...errors import ArgumentError
from .mode import MODES

AxisValue: TypeAlias = int | float | str | bool
#: What a benchmark can run.
Run: TypeAlias = Primitive | CapturedSequence | Callable[..., Any] | Sequence[Primitive] | Mapping[str, Primitive]
_Decorated = TypeVar("_Decorated", bound=Callable[..., Any])

#: Parameters that the library supplies: they are never axes.
_GIVEN = ("device", "rng")
_NAME = re.compile(r"[A-Za-z_][\w-]*")


@dataclass(frozen=True)
class Benchmark:
    """What to run at one point of the axes.

    Attributes
    ----------
    run : Primitive, Sequence, callable, or sequence or mapping of primitives
        As for `measure`; a function gets the inputs by name.
    inputs : mapping from str to numpy.ndarray, Array or number
    reference : callable or mapping, optional
        The right outputs: an array, a mapping by name, or a function of inputs by name. A primitive has its own.
    outputs : sequence of str or mapping from str to Array, optional
        What a callable or a `Sequence` writes.
    work : Work, optional
        For rates.
    rtol, atol : float, optional
        A float may differ by ``atol + rtol * abs(reference)``. By default `rtol` is 1e-5 (f16: 1e-2, f64: 1e-12), and
        `atol` a hundredth of that of the largest item.
    restore : sequence of str
        As for `measure`.
    """

    run: Run
    inputs: Mapping[str, Any] = field(default_factory=dict[str, Any])
    reference: Callable[..., Any] | Mapping[str, Any] | None = None
    _: KW_ONLY
    outputs: Sequence[str] | Mapping[str, Any] | None = None
    work: Work | None = None
    rtol: float | None = None
    atol: float | None = None
    restore: Sequence[str] = ()

    def __post_init__(self) -> None:
        given: Mapping[str, Any] = vars(self)
        if not isinstance(given["inputs"], Mapping):
            raise ArgumentError(
                f"a benchmark's inputs are {type(given['inputs']).__name__}, but must be a mapping by name: "
                f"inputs={{'x': x}}"
            )
        if given["work"] is not None and not isinstance(given["work"], Work):
            raise ArgumentError(
                f"a benchmark's work is {given['work']!r:.60}, but must be a gw.Work(items, read_bytes, write_bytes)"
            )
        for name in ("rtol", "atol"):
            value = given[name]
            if value is None:
                continue
            if given["reference"] is None:
                raise ArgumentError(f"{name}= is how far floats may be from reference=, which is missing; give both")
            if isinstance(value, bool) or not isinstance(value, numbers.Real) or not 0 <= float(value) < math.inf:
                raise ArgumentError(f"{name}={value!r:.60} must be a number of 0 or more")
        restore = given["restore"]
        object.__setattr__(self, "restore", (restore,) if isinstance(restore, str) else tuple(restore or ()))


#: What can be measured.
Measurable: TypeAlias = Run | Benchmark


def _benchmark_of(made: Any, name: str) -> Benchmark:
    """Return what a benchmark's function returned, or an object with attributes of these names."""
    if isinstance(made, Benchmark):
        return made
    if isinstance(made, (Primitive, CapturedSequence)) or getattr(made, "run", None) is None:
        raise ArgumentError(f"{name} returned {type(made).__name__}, but must return gw.Benchmark(run=…, inputs={{…}})")
    known = {one.name: getattr(made, one.name) for one in fields(Benchmark) if hasattr(made, one.name)}
    for one, value in known.items():
        if one not in ("run", "reference") and callable(value):
            known[one] = value()
    return Benchmark(**known)


@dataclass(frozen=True)
class Declared:
    """A benchmark as it was declared.

    Attributes
    ----------
    name : str
    make : callable
        The function or class: called with the device and a value of each axis, it returns what to run.
    axes : mapping from str to tuple
        Values by axis; ``mode`` is among them where it was given.
    size : callable or None
        Returns n, of the axes that it has parameters for.
    baseline : str or None
        ``"AXIS=VALUE,…"``, or the name of another benchmark of the file.
    module : str
    line : int
        Where it is in its file.
    tune : tuple of str
        The axes whose values do the same work in other ways.
    """

    name: str
    make: Callable[..., Any]
    axes: Mapping[str, tuple[AxisValue, ...]]
    size: Callable[..., int] | None
    baseline: str | None
    module: str
    line: int
    tune: tuple[str, ...] = ()

    @property
    def takes_rng(self) -> bool:
        """Whether it wants a generator of random numbers."""
        return "rng" in inspect.signature(self.make).parameters

    def call(self, device: wgpu.GPUDevice, values: Mapping[str, AxisValue], seed: Sequence[int]) -> Benchmark:
        """Return what it runs at a point of its axes."""
        given: dict[str, Any] = {"rng": np.random.default_rng(seed)} if self.takes_rng else {}
        return _benchmark_of(self.make(device, **values, **given), self.name)


#: Where the benchmarks go that are declared while this thread loads a file.
_collected = threading.local()


class collecting:  # a context manager
    """Yields the list of what is declared inside of a ``with`` block, in this thread."""

    def __enter__(self) -> list[Declared]:
        self._before: list[Declared] | None = getattr(_collected, "into", None)
        found: list[Declared] = []
        _collected.into = found
        return found

    def __exit__(self, *error: object) -> None:
        _collected.into = self._before


def benchmarked(
    *,
    name: str | None = None,
    baseline: str | None = None,
    tune: str | Iterable[str] = (),
    **axes: Iterable[AxisValue] | AxisValue,
) -> Callable[[_Decorated], _Decorated]:
    """Declare a benchmark that ``gridwise bench FILE`` runs at each point of its axes.

    The function gets a device and a value of each axis, and returns a `Benchmark`; a class has its attributes. A
    parameter ``rng`` gets a numpy Generator.

    Parameters
    ----------
    name : str, optional
        By default that of the function.
    baseline : str, optional
        What its times are relative to: values of axes (``"method=naive,size=64"``), or another benchmark.
    tune : str or iterable of str, optional
        Axes for ``gridwise tune FILE``: their values do the same work.
    **axes : iterable of int, float, str or bool
        Values, such as ``n=[2**16, 2**20]``, the size, or ``n=lambda rows, cols: rows * cols``, of other
        axes. ``mode`` has modes of `measure`.

    Raises
    ------
    ArgumentError
        If an axis has no values, values of another kind or one twice, or the function lacks a parameter for it; or if
        `tune` names none that can be tuned.

    Examples
    --------
    >>> import numpy as np, gridwise_py as gw
    >>> @gw.benchmarked(n=[2**12, 2**16])
    ... def total(device, n):
    ...     x = np.arange(n, dtype=np.uint32)
    ...     return gw.Benchmark(run=gw.Reduce(device, "u32"), inputs={"input": x}, reference=lambda input: input.sum())
    >>> total(gw.request_device(), 2**12).inputs["input"].size
    4096
    """
    size, values = None, dict[str, tuple[AxisValue, ...]]()
    for axis, given in axes.items():
        if axis == "n" and callable(given):
            size = cast(Callable[..., int], given)
        else:
            values[axis] = _values(axis, given)
    if baseline is not None:
        _check_baseline(baseline, values)
    tuned = tuple(dict.fromkeys((tune,) if isinstance(tune, str) else tune))
    for axis in tuned:
        if axis not in values or axis in ("n", "mode"):
            own = [one for one in values if one not in ("n", "mode")]
            raise ArgumentError(
                f"tune names {axis!r}, which is no axis that can be tuned; there are {', '.join(own) or 'none'}"
            )

    def declare(made: _Decorated) -> _Decorated:
        own_name = name or made.__name__
        if not _NAME.fullmatch(own_name):
            raise ArgumentError(f"a benchmark's name is {own_name!r}, but must be letters, digits, _ and -")
        _check_parameters(own_name, made, values)
        code: Any = getattr(made, "__code__", None) or getattr(getattr(made, "__init__", None), "__code__", None)
        line = 0 if code is None else int(code.co_firstlineno)
        found = Declared(own_name, made, values, size, baseline, made.__module__, line, tuned)
        into: list[Declared] | None = getattr(_collected, "into", None)
        if into is not None:
            into.append(found)
        return made

    return declare


def _values(axis: str, given: Any) -> tuple[AxisValue, ...]:
    """Return the values of an axis."""
    if axis in _GIVEN or axis == "primitive":
        raise ArgumentError(f"an axis cannot be called {axis!r}; give it another name")
    listed: list[Any] = [given] if isinstance(given, (str, int, float)) else list(given)
    values: list[Any] = [value.item() if isinstance(value, np.generic) else value for value in listed]
    if not values:
        raise ArgumentError(f"the axis {axis!r} has no values; give some, as in {axis}=[1024, 4096]")
    for value in values:
        if not isinstance(value, (int, float, str)) or (isinstance(value, str) and not _is_word(value)):
            raise ArgumentError(
                f"the axis {axis!r} has the value {value!r:.60}; values are numbers, booleans and words without "
                f"blanks, commas and brackets: give names, and look up what they stand for in the function"
            )
    texts = [axis_text(value) for value in values]
    twice = next((text for i, text in enumerate(texts) if text in texts[:i]), None)
    if twice is not None:
        raise ArgumentError(f"the axis {axis!r} has the value {twice!r} twice; leave one out")
    if axis == "n" and not all(type(value) is int and value >= 1 for value in values):
        raise ArgumentError(f"the axis 'n' is {values!r:.80}, but is the size: whole numbers of at least 1")
    if axis == "mode" and not set(texts) <= set(MODES):
        raise ArgumentError(f"the axis 'mode' is {values!r:.80}; modes are {', '.join(MODES)}")
    return tuple(values)


def axis_text(value: AxisValue) -> str:
    """Return the value of an axis as results files and the command line have it."""
    short = f"{value:g}" if isinstance(value, float) else ""
    return short if short and float(short) == value else str(value)


def _is_word(text: str) -> bool:
    return re.fullmatch(r"[^\s,\[\]:=]+", text) is not None


def axes_of_baseline(baseline: str) -> dict[str, str]:
    """Return the values of axes that a baseline names, as in ``"size=64,method=naive"``."""
    return {axis.strip(): value.strip() for axis, _, value in (word.partition("=") for word in baseline.split(","))}


def _check_baseline(baseline: str, axes: Mapping[str, tuple[AxisValue, ...]]) -> None:
    for axis, value in axes_of_baseline(baseline).items() if "=" in baseline else ():
        if axis not in axes or axis in ("n", "mode"):
            own = [name for name in axes if name not in ("n", "mode")]
            raise ArgumentError(
                f"baseline={baseline!r} is of no axis that can have a baseline; there are {', '.join(own) or 'none'}"
            )
        texts = [axis_text(one) for one in axes[axis]]
        if value not in texts:
            raise ArgumentError(f"baseline={baseline!r} names no value of {axis}; it has {', '.join(texts)}")


def _check_parameters(name: str, made: Callable[..., Any], axes: Mapping[str, Any]) -> None:
    """Raise unless a function takes a device and its axes."""
    parameters = inspect.signature(made).parameters
    wanted = {axis: 0 for axis in axes if axis != "mode"}
    rng = {"rng": 0} if "rng" in parameters else {}
    if "mode" in axes and "mode" in parameters:
        wanted["mode"] = 0
    try:
        inspect.signature(made).bind(None, **wanted, **rng)
    except TypeError as error:
        raise ArgumentError(
            f"{name}({', '.join(parameters)}) cannot be called with its axes ({error}); its parameters are "
            f"{', '.join(('device', *wanted))}, and rng if it needs random numbers"
        ) from None
