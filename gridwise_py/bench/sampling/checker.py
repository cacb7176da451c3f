"""Whether results are right: by the reference that a user gave, a function of the user, or a primitive's own."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias, cast

import numpy as np
import wgpu

from ... import Array, ChunkedArray, Primitive, Run
from ...errors import ArgumentError
from ...internals import Oracle, parts
from ..cases.benchmarked import Benchmark
from ..checks.check import Mismatch, difference, mismatch
from .measurement import CHANGES_ITSELF
from .pristine import Pristine, fill
from .subjects import Subject, Submitted

#: What each byte of an output is before a run. Zeros first: what reads them ends, as it may not on other items. The
#: others are large as floats, too: 203 in 16 bits, 1.5e16 in 32.
_ZEROS, _GARBAGE = 0x00, 0x5A

Check: TypeAlias = bool | Callable[[Any], Mismatch | None]


def checker_of(subject: Subject, benchmark: Benchmark, check: Check = True) -> Checker:
    """Return what checks a subject, before its first run.

    Parameters
    ----------
    subject : Subject
    benchmark : Benchmark
        What it was made of.
    check : bool or callable
        Whether to check; or what takes its results, and returns a `Mismatch` or None.
    """
    run = benchmark.run
    if check is not True:
        return Checker(None, subject, check)
    if benchmark.reference is None and isinstance(run, Primitive) and run.has_reference:
        return Checker(run, subject, True)
    return Checker(None, subject, OwnCheck(subject, benchmark))


def expected_results(subject: Subject, benchmark: Benchmark) -> dict[str, np.ndarray]:
    """Return the right outputs by name, by a benchmark's reference, before its first run.

    Raises
    ------
    ArgumentError
        If the reference does not fit the outputs.
    """
    expected = OwnCheck(subject, benchmark).expected
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
    """

    def __init__(self, primitive: Primitive | None, subject: Subject, check: Check):
        self._primitive, self._subject = primitive, subject
        self._check = check
        self._last: tuple[dict[str, np.ndarray], tuple[Mismatch, ...]] | None = None
        self._inputs: dict[str, np.ndarray] | None = None
        #: What outputs that were given held before the first run; None if nothing was checked.
        self.held: Pristine | None = None
        #: What each check found.
        self.results: list[tuple[Mismatch, ...]] = []
        if check is True and primitive is not None and Oracle.of(primitive).reference is not None:
            # Downloaded now: the first run may change them.
            self._inputs = {k: a.to_numpy() for k, a in subject.arrays.items() if k not in subject.outputs}

    @property
    def checks(self) -> bool:
        """Whether anything is compared: the caller may not want it, and a primitive may have no reference."""
        if isinstance(self._check, OwnCheck):
            return self._check.compares
        return callable(self._check) or self._inputs is not None

    def first(self, run: Callable[[], object], pristine: Pristine, restored: Sequence[str]) -> tuple[Mismatch, ...]:
        """Run the subject on outputs that hold filler, so that no earlier run has left what is right.

        What is restored holds what it was given. All that was given is put back. Returns the mismatches.

        Parameters
        ----------
        run : callable
            Runs it once.
        pristine : Pristine
            Of what is restored.
        restored : sequence of str

        Raises
        ------
        ArgumentError
            If nothing is written, or if results are right only on what an output held before.
        """
        subject = self._subject
        names = [name for name in subject.outputs if name not in restored] if subject.knows_outputs else []
        if not self.checks and not (isinstance(self._check, OwnCheck) and _can_be_filled(subject, names)):
            names = []
        # What was made for this run holds nothing that counts.
        given = [part for name in names if name not in subject.unread for part in parts(subject.outputs[name])]
        self.held = held = Pristine(subject.device, given)
        try:
            if any(part.size for name in names for part in parts(subject.outputs[name])):
                found = self._on_filler(run, pristine, names, has_given=bool(given))
            else:
                if not isinstance(subject.runnable, Submitted):
                    run()
                found = self._wrong()
        except BaseException:
            pristine.put_back()
            raise
        finally:
            held.put_back()
        self.results.append(found)
        return found

    def _on_filler(
        self, run: Callable[[], object], pristine: Pristine, names: Sequence[str], *, has_given: bool
    ) -> tuple[Mismatch, ...]:
        subject, is_own = self._subject, isinstance(self._check, OwnCheck)
        arrays = [part for name in names for part in parts(subject.outputs[name]) if part.size]

        def wrong_on(filler: int | None) -> tuple[Mismatch, ...]:
            if filler is not None:
                fill(arrays, filler)
            elif self.held is not None:
                self.held.put_back()
            pristine.put_back()
            run()
            return self._wrong()

        def unwritten(filler: int) -> list[np.ndarray]:
            return [_holds(array, filler) for array in arrays] if is_own else [np.zeros(1, bool)]

        found = wrong_on(_ZEROS)
        still = unwritten(_ZEROS)
        counts = bool(found) and has_given and not wrong_on(None)
        if not counts and (all(map(np.all, still)) or (self.checks and not found)):
            found = wrong_on(_GARBAGE)
            still = [a & b for a, b in zip(still, unwritten(_GARBAGE), strict=True)]
            if all(map(np.all, still)):
                raise ArgumentError(
                    f"{subject.name} writes nothing: after a run {', '.join(names)} "
                    f"{'is' if len(names) == 1 else 'are'} as before; look at its workgroups and conditions"
                )
            counts = not wrong_on(None) if found and has_given else self.checks and any(map(np.any, still))
        if counts:
            raise ArgumentError(
                f"{subject.name} is right only on what {', '.join(names)} held before the run: not every item is "
                f"written, or some are read before. If what it held is an input, name it in restore=, or, for a "
                f"gw.Sequence, in inputs= of its gw.Benchmark"
            )
        return found

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
        if self._last is None or any(self._last[0][k].tobytes() != v.tobytes() for k, v in outputs.items()):
            found = mismatch(self._primitive, self._inputs, outputs)
            self._last = outputs, () if found is None else (found,)
        return self._last[1]


class OwnCheck:
    """Compares the outputs of a subject with a reference.

    Made before the first run, because that may change the inputs.

    Parameters
    ----------
    subject : Subject
    benchmark : Benchmark
    """

    def __init__(self, subject: Subject, benchmark: Benchmark):
        self._subject, self._benchmark = subject, benchmark
        ran = isinstance(subject.runnable, Submitted)
        if not subject.outputs and not ran:
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
        self._inputs: dict[str, Any] = {}
        if callable(benchmark.reference):
            # What a function that submits was given as numpy arrays is still as it was.
            known = {
                key: array
                for key, array in subject.arrays.items()
                if (key in benchmark.inputs or key not in subject.outputs)
                and not (ran and isinstance(benchmark.inputs.get(key), np.ndarray))
            }
            self._inputs = {**benchmark.inputs, **_downloaded(known)}
        #: The right outputs; of what submits by itself after its first result.
        self.expected: dict[str, np.ndarray] | None = None
        if self.compares and not ran:
            self.expected = self.wanted(subject.outputs)

    @property
    def compares(self) -> bool:
        """Whether there is a reference of the user."""
        return self._benchmark.reference is not None

    def __call__(self, results: Any) -> Mismatch | None:
        """Return the first wrong item of `Subject.results`.

        Raises
        ------
        ArgumentError
            If the reference has another shape.
        """
        return self._mismatch(_named(results)) if self.compares else None

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
            given = given(**chosen)
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
    return value.to_numpy() if isinstance(value, (Array, ChunkedArray)) else np.asarray(value)


def _can_be_filled(subject: Subject, names: Sequence[str]) -> bool:
    uses = wgpu.BufferUsage.COPY_SRC | wgpu.BufferUsage.COPY_DST
    return all(part.lease.buffer.usage & uses == uses for name in names for part in parts(subject.outputs[name]))


def _holds(array: Array, filler: int) -> np.ndarray:
    """Return which items of an Array hold a filler, byte for byte."""
    items = np.frombuffer(array.to_numpy().tobytes(), np.uint8).reshape(array.size, -1)
    return (items == filler).all(axis=1)


def _downloaded(arrays: Mapping[str, Any]) -> dict[str, np.ndarray]:
    return {key: array.to_numpy() for key, array in arrays.items() if isinstance(array, (Array, ChunkedArray))}
