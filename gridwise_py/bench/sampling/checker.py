"""Whether results are right: by the reference that a user gave, a function of the user, or a primitive's own."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias, cast

import numpy as np
import wgpu

from ... import Array, ChunkedArray, Primitive, Run
from ...errors import ArgumentError
from ...internals import OnGpu
from ..cases.benchmarked import Benchmark
from ..checks.check import Mismatch, difference, mismatch
from ..checks.oracle import Oracle
from .measurement import CHANGES_ITSELF
from .subjects import Subject, Submitted

__all__ = ["Check", "Checker", "checker_of", "expected_results"]

Check: TypeAlias = bool | Callable[[Any], Mismatch | None]


def checker_of(
    subject: Subject,
    benchmark: Benchmark,
    check: Check = True,
    guarded: Callable[[Callable[[], Any]], Any] = lambda call: call(),
    *,
    is_new: bool = False,
) -> Checker:
    """Return what checks a subject, before its first run.

    Parameters
    ----------
    subject : Subject
    benchmark : Benchmark
        What it was made of.
    check : bool or callable
        Whether to check; or what takes its results, and returns a `Mismatch` or None.
    guarded : callable
        As of `OwnCheck`.
    is_new : bool
        Whether all arguments were made for this run, so that outputs that stay as they are were not written.
    """
    if check is not True:
        return Checker(None, subject, check)
    run = benchmark.run
    if benchmark.reference is None and isinstance(run, Primitive) and run.has_reference:
        if is_new:
            subject.forget_outputs()
        return Checker(run, subject, True)
    own_check = OwnCheck(subject, benchmark, guarded, is_new=is_new)
    return Checker(None, subject, own_check, compares=own_check.compares)


def expected_results(subject: Subject, benchmark: Benchmark) -> dict[str, np.ndarray]:
    """Return the right outputs by name, by a benchmark's reference, before its first run.

    Raises
    ------
    ArgumentError
        If the reference does not fit the outputs.
    """
    expected = OwnCheck(subject, benchmark, lambda call: call(), is_new=True).expected
    assert expected is not None, "there is a reference, and commands that are encoded"
    return expected


class Checker:
    """Compares results with the expected ones.

    Parameters
    ----------
    primitive : Primitive or None
        The one whose reference is used, if `check` is True.
    subject : Subject
    check : bool or callable
    compares : bool
        Whether a callable has anything to compare with.
    """

    def __init__(self, primitive: Primitive | None, subject: Subject, check: Check, *, compares: bool = True):
        self._primitive, self._subject = primitive, subject
        self._check, self._compares = check, compares
        self._first: dict[str, np.ndarray] | None = None
        self._inputs: dict[str, np.ndarray] | None = None
        #: What each check found.
        self.results: list[tuple[Mismatch, ...]] = []
        if check is True and primitive is not None and Oracle.of(primitive).reference is not None:
            # Downloaded now: the first run may change them.
            self._inputs = {k: a.to_numpy() for k, a in subject.arrays.items() if k not in subject.outputs}

    @property
    def checks(self) -> bool:
        """Whether anything is compared: the caller may not want it, and a primitive may have no reference."""
        return (callable(self._check) and self._compares) or self._inputs is not None

    def wrong(self) -> tuple[Mismatch, ...]:
        """Return the mismatches of the current outputs."""
        found = self._wrong()
        self.results.append(found)
        return found

    def notes(self) -> list[str]:
        """Return what may explain the last result."""
        if len(self.results) > 1 and not self.results[0] and self.results[-1]:
            return [CHANGES_ITSELF]
        return []

    def _wrong(self) -> tuple[Mismatch, ...]:
        if callable(self._check):
            found = cast(Any, self._check(self._subject.results()))
            if found is not None and not isinstance(found, Mismatch):
                raise ArgumentError(
                    f"{self._subject.name}: check= returned {found!r:.60}; return None where the outputs are right, "
                    f"else gw.Mismatch(index, got, expected, wrong_items)"
                )
            return () if found is None else (found,)
        if self._inputs is None or self._primitive is None:
            return ()
        outputs = {name: array.to_numpy() for name, array in self._subject.outputs.items()}
        if self._first is not None and all(self._first[k].tobytes() == v.tobytes() for k, v in outputs.items()):
            return ()  # equal to the first result, which was checked then
        self._first = outputs
        found = mismatch(self._primitive, self._inputs, outputs)
        return () if found is None else (found,)


class OwnCheck:
    """Compares the outputs of a subject with a reference, and tells where nothing was written.

    Made before the first run, because that may change the inputs.

    Parameters
    ----------
    subject : Subject
    benchmark : Benchmark
    guarded : callable
        Calls the user's code, and turns what it raises into an ArgumentError.
    is_new : bool
        As of `checker_of`.
    """

    def __init__(
        self, subject: Subject, benchmark: Benchmark, guarded: Callable[[Callable[[], Any]], Any], *, is_new: bool
    ):
        self._subject, self._benchmark, self._guarded = subject, benchmark, guarded
        if not subject.outputs and not isinstance(subject.runnable, Submitted):
            if benchmark.reference is not None:
                raise ArgumentError(
                    f"{subject.name}: there is a reference, but no output to compare; let it name what is written, "
                    f"{{'y': …}}"
                )
            if subject.arrays and not callable(benchmark.run):
                raise ArgumentError(
                    f"{subject.name} writes nothing: none of {', '.join(subject.arrays)} is 'read_write', so its work "
                    f"has no effect"
                )
        if benchmark.reference is not None:
            for key, output in subject.outputs.items():
                _refuse_raw(f"{subject.name}: the output {key}", output)
        subject.forget_outputs()
        # Another run may have left the right results in memory of the caller's.
        on_gpu = (OnGpu, wgpu.GPUBuffer)
        is_new = is_new or not any(isinstance(benchmark.inputs.get(key), on_gpu) for key in subject.outputs)
        ran = isinstance(subject.runnable, Submitted)
        self._before = _downloaded(subject.outputs) if is_new and not ran else {}
        self._inputs: dict[str, Any] = {}
        if callable(benchmark.reference):
            written = set(subject.unread)
            if ran:  # what it was given as numpy arrays is still as it was
                written |= {key for key, value in benchmark.inputs.items() if isinstance(value, np.ndarray)}
            known = {key: array for key, array in subject.arrays.items() if key not in written}
            self._inputs = {**benchmark.inputs, **_downloaded(known)}
        #: The right outputs; of what submits by itself after its first result.
        self.expected: dict[str, np.ndarray] | None = None
        if self.compares and not ran:
            self.expected = self.wanted(subject.outputs)
        self._is_first = True

    @property
    def compares(self) -> bool:
        """Whether there is a reference of the user."""
        return self._benchmark.reference is not None

    def __call__(self, results: Any) -> Mismatch | None:
        """Return the first wrong item of `Subject.results`.

        Raises
        ------
        ArgumentError
            If nothing was written, or the reference has another shape.
        """
        if not self.compares and not self._before:
            return None
        got = _named(results)
        found = self._mismatch(got) if self.compares else None
        is_first, self._is_first = self._is_first, False
        before = self._before
        unchanged = bool(before) and all(got[key].tobytes() == before[key].tobytes() for key in before)
        if is_first and unchanged and (found is not None or not self.compares):
            raise ArgumentError(
                f"{self._subject.name} writes nothing: after a run {', '.join(got)} {'is' if len(got) == 1 else 'are'} "
                f"as before; look at its workgroups and conditions"
                + ("" if self.compares else ", or give reference= if these are the right items")
            )
        return found

    def _mismatch(self, got: Mapping[str, np.ndarray]) -> Mismatch | None:
        if self.expected is None:
            self.expected = self.wanted(got)
        for key, right in self.expected.items():
            argument = key if len(got) > 1 else ""
            found = difference(got[key], right, self._benchmark.rtol, self._benchmark.atol, argument)
            if found is not None:
                return found
        return None

    def wanted(self, got: Mapping[str, Any]) -> dict[str, np.ndarray]:
        """Return the right outputs by name, in the shapes of those that are given, as arrays or Arrays."""
        name, given = self._subject.name, self._benchmark.reference
        if callable(given):
            parameters = inspect.signature(given).parameters
            takes_all = any(one.kind is one.VAR_KEYWORD for one in parameters.values())
            lacking = [
                one.name
                for one in parameters.values()
                if one.name not in self._inputs and one.default is one.empty and one.kind is one.POSITIONAL_OR_KEYWORD
            ]
            if lacking:
                raise ArgumentError(
                    f"{name}: the reference has a parameter {lacking[0]!r}, which is none of the inputs "
                    f"{', '.join(self._inputs)}"
                )
            chosen = {key: value for key, value in self._inputs.items() if takes_all or key in parameters}
            for key, value in chosen.items():
                _refuse_raw(f"{name}: {key}, which the reference takes,", value)
            given = self._guarded(lambda: cast(Callable[..., Any], self._benchmark.reference)(**chosen))
        if isinstance(given, Array):
            given = given.to_numpy()
        if not isinstance(given, Mapping):
            plain = cast(Any, given)
            listed: list[Any] = (
                list(cast("tuple[Any, ...]", plain)) if len(got) > 1 and type(plain) is tuple else [plain]
            )
            if len(listed) != len(got):
                raise ArgumentError(
                    f"{name}: of {', '.join(got)} the reference gives one, and not its name; let it be a mapping by "
                    f"name, {{'{list(got)[-1]}': …}}"
                )
            given = dict(zip(got, listed, strict=True))
        found: dict[str, np.ndarray] = {}
        for key, value in cast(Mapping[str, Any], given).items():
            if key not in got:
                raise ArgumentError(f"{name}: the reference has {key!r}, which is none of its outputs {', '.join(got)}")
            right = np.asarray(value)
            if right.dtype.kind not in "biufcV":
                raise ArgumentError(f"{name}: the reference of {key or 'the result'} is {value!r:.60}, not of numbers")
            if right.shape != got[key].shape and not right.size == got[key].size == 1:
                raise ArgumentError(
                    f"{name}: the reference of {key or 'the result'} has shape {right.shape}, but the output has "
                    f"{got[key].shape}; give {got[key].size} items in that shape"
                )
            found[key] = right.reshape(got[key].shape)
        return found


def _named(results: Any) -> dict[str, np.ndarray]:
    """Return results as numpy arrays by name; of a function that submits, what it returned."""
    if isinstance(results, Run):
        results = cast(Run[Any], results).outputs
    if isinstance(results, tuple):
        results = dict(enumerate(cast("tuple[Any, ...]", results)))
    if isinstance(results, Mapping):
        return {str(key): _numpy(value) for key, value in cast(Mapping[Any, Any], results).items()}
    if results is None:
        raise ArgumentError("there is a reference, but the function returned None; let it return the result")
    _refuse_raw("what the function returned", results)
    return {"": _numpy(results)}


def _refuse_raw(what: str, value: Any) -> None:
    if isinstance(value, wgpu.GPUBuffer):
        raise ArgumentError(
            f"{what} is a raw wgpu.GPUBuffer, and nobody knows of which items; give it as gw.Array(buffer, 'f32'), "
            f"with its datatype"
        )


def _numpy(value: Any) -> np.ndarray:
    return value.to_numpy() if isinstance(value, OnGpu) else np.asarray(value)


def _downloaded(arrays: Mapping[str, Any]) -> dict[str, np.ndarray]:
    return {key: array.to_numpy() for key, array in arrays.items() if isinstance(array, (Array, ChunkedArray))}
