"""Whether the outputs of a user's benchmark are right, by the reference that the user gave."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, cast

import numpy as np

from ...errors import ArgumentError
from ...runtime.array import Array
from ...runtime.chunked_array import ChunkedArray
from ..cases.benchmarked import Benchmark
from ..checks.check import Mismatch, difference
from .subjects import Subject

__all__ = ["OwnCheck"]


class OwnCheck:
    """Compares the outputs of a subject with a reference, and tells where nothing was written.

    Made before the first run, because that may change the inputs.

    Parameters
    ----------
    subject : Subject
    benchmark : Benchmark
    guarded : callable
        Calls the user's code, and turns what it raises into an ArgumentError.
    """

    def __init__(self, subject: Subject, benchmark: Benchmark, guarded: Callable[[Callable[[], Any]], Any]):
        self._subject, self._benchmark, self._guarded = subject, benchmark, guarded
        if not subject.outputs:
            if benchmark.reference is not None:
                raise ArgumentError(
                    f"{subject.name}: there is a reference, but no output to compare; name what is written: outputs=…"
                )
            if subject.arrays and not callable(benchmark.run):
                raise ArgumentError(
                    f"{subject.name} writes nothing: none of {', '.join(subject.arrays)} is 'read_write', so its work "
                    f"has no effect"
                )
        subject.forget_outputs()
        self._before = _downloaded(subject.outputs)
        self._inputs: dict[str, Any] = {}
        if callable(benchmark.reference):
            written = set(subject.unread)
            known = {key: array for key, array in subject.arrays.items() if key not in written}
            self._inputs = {**benchmark.inputs, **_downloaded(known)}
        self._expected: dict[str, np.ndarray] | None = None
        self._is_first = True

    @property
    def compares(self) -> bool:
        """Whether there is a reference of the user."""
        return self._benchmark.reference is not None

    def __call__(self, outputs: Mapping[str, Any]) -> Mismatch | None:
        """Return the first wrong item.

        Raises
        ------
        ArgumentError
            If nothing was written, or the reference has another shape.
        """
        got = _downloaded(outputs)
        found = self._mismatch(got) if self.compares else None
        is_first, self._is_first = self._is_first, False
        unchanged = bool(got) and all(got[key].tobytes() == self._before[key].tobytes() for key in got)
        if is_first and unchanged and (found is not None or not self.compares):
            raise ArgumentError(
                f"{self._subject.name} writes nothing: after a run {', '.join(got)} {'is' if len(got) == 1 else 'are'} "
                f"as before; look at its workgroups and conditions"
                + ("" if self.compares else ", or give a reference if these are the right items")
            )
        return found

    def _mismatch(self, got: Mapping[str, np.ndarray]) -> Mismatch | None:
        if self._expected is None:
            self._expected = self._wanted(got)
        for key, right in self._expected.items():
            argument = key if len(self._subject.outputs) > 1 else ""
            found = difference(got[key], right, self._benchmark.rtol, self._benchmark.atol, argument)
            if found is not None:
                return found
        return None

    def _wanted(self, got: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Return the right outputs by name, in the shapes of the outputs."""
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
            given = self._guarded(lambda: cast(Callable[..., Any], self._benchmark.reference)(**chosen))
        if not isinstance(given, Mapping):
            plain = cast(Any, given)
            listed: list[Any] = (
                list(cast("tuple[Any, ...]", plain)) if len(got) > 1 and type(plain) is tuple else [plain]
            )
            if len(listed) != len(got):
                raise ArgumentError(
                    f"{name}: of {', '.join(got)} the reference gives one, and not its name; let it return a mapping "
                    f"by name, or say outputs=['{list(got)[-1]}']"
                )
            given = dict(zip(got, listed, strict=True))
        found: dict[str, np.ndarray] = {}
        for key, value in cast(Mapping[str, Any], given).items():
            if key not in got:
                raise ArgumentError(f"{name}: the reference has {key!r}, which is none of its outputs {', '.join(got)}")
            right = np.asarray(value)
            if right.shape != got[key].shape and not right.size == got[key].size == 1:
                raise ArgumentError(
                    f"{name}: the reference of {key} has shape {right.shape}, but the output has {got[key].shape}; "
                    f"return {got[key].size} items in that shape"
                )
            found[key] = right.reshape(got[key].shape)
        return found


def _downloaded(arrays: Mapping[str, Any]) -> dict[str, np.ndarray]:
    return {key: array.to_numpy() for key, array in arrays.items() if isinstance(array, (Array, ChunkedArray))}
