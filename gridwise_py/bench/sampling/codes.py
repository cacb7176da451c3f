"""What a benchmark asks of a GPU: noted by a device that computes nothing, or of what is about to be measured."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, cast

import numpy as np

from ... import Array, Capabilities, Primitive
from ...errors import GridwiseError, LimitError, ShaderError
from ...internals import Code, context_of, parts
from ..cases.benchmarked import Benchmark
from ..cases.own_files import OWN_WORKLOADS, load_benchmarks
from .subjects import Subject, prepare_trials, subject_of

#: Arrays on the GPU with more items are not read: what they hold is unknown then.
_MOST_READ_BYTES = 64 << 20


def record_case(
    capabilities: Capabilities, file: str, name: str, n: int, mode: str, axes: Mapping[str, str], seed: int
) -> dict[str, Any]:
    """Return what a benchmark asks of a device, as `Code.of` takes it; or why it cannot run there.

    Parameters
    ----------
    capabilities : Capabilities
    file, name : str
    n : int
    mode : str
    axes : mapping from str to str
    seed : int

    Raises
    ------
    ArgumentError
        If the user's code raises, or reads a result.
    """
    path = Path(file).resolve()
    loaded = {one.declared.name: one for one in OWN_WORKLOADS.values() if one.path == path} or load_benchmarks(path)
    if name not in loaded:
        return {"missing": f"{path.name} has no benchmark {name!r}; it has {', '.join(loaded)}"}
    own = loaded[name]
    device = own.device(Code.device(capabilities), axes)

    def record() -> dict[str, Any]:
        benchmark = own.benchmark(device, n, mode, axes, seed)
        return recorded(subject_of(device, name, benchmark), benchmark)

    try:
        return own.guarded(record)
    except GridwiseError as error:
        if isinstance(error.__cause__ or error, (LimitError, ShaderError)):
            return {"refused": str(error)}
        raise


def recorded(subject: Subject, benchmark: Benchmark) -> dict[str, Any]:
    """Return what a call of a benchmark asks of a device that records, as `Code.of` takes it."""
    prepare_trials(subject.device, subject.runnable)()  # what is made once is made
    log = context_of(subject.device).log
    assert log is not None, "it is a device that records"
    log.restart()
    prepare_trials(subject.device, subject.runnable)()
    arrays = [(key, one) for key, array in subject.arrays.items() if hasattr(array, "shape") for one in parts(array)]
    plan, inputs = log.plan({one.lease.buffer.uid: key for key, one in arrays})
    unread = _only_written(benchmark.run)
    more: dict[str, int | None] = {"allocations": len(log.made_bytes), "uploads": len(log.written_bytes)}
    more["declared_bytes"] = subject.work["read_bytes"] + subject.work["write_bytes"] if subject.work else None
    return {"plans": [plan], "inputs": {key: inputs[key] for key in inputs if key not in unread}, **more}


def code_of(subject: Subject, benchmark: Benchmark) -> Code | None:
    """Return what is about to be measured, before it runs; None of a function, whose calls nobody sees."""
    plans = subject.plans
    if plans is None:
        return None
    data: list[dict[str, Any]] = []
    for bound, times in plans:
        place = {name: repr(held and (held.uid, *rest)) for name, (held, *rest) in _held(bound.arguments)}
        data.append({**Code.data_of(bound.plan), "memory": place, "times": times})
    unread = _only_written(benchmark.run)
    inputs: dict[str, str | None] = {
        name: _digest(value) for name, value in benchmark.inputs.items() if name not in unread
    }
    return Code.of(data, inputs)


def _held(arguments: Mapping[str, tuple[Any, int, int]]) -> Iterable[tuple[str, tuple[Any, int, int]]]:
    return ((name, (reference(), offset, size)) for name, (reference, offset, size) in arguments.items())


def _only_written(run: Any) -> set[str]:
    """Return the arguments that nothing reads before it is written."""
    listed = cast(Any, run.values() if isinstance(run, Mapping) else run if isinstance(run, (list, tuple)) else (run,))
    primitives = [one for one in listed if isinstance(one, Primitive)]
    arguments = [each for one in primitives for each in one.signature.arguments.values()]
    read = {each.name for each in arguments if each.is_read or not each.is_output}
    return {each.name for each in arguments} - read


def _digest(value: Any) -> str | None:
    """Return a digest of an input; None where it would have to be read from afar."""
    if isinstance(value, Array):
        return Code.digest_of(value.to_numpy()) if value.nbytes <= _MOST_READ_BYTES else None
    if isinstance(value, (np.ndarray, np.generic, int, float, bool)):
        return Code.digest_of(np.asarray(value))
    return None if not isinstance(value, (tuple, list)) else Code.digest_of(np.asarray(cast(Any, value)))
