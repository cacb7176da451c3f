"""Checks an operator of a user's own before it is used: the laws by its numpy twin, and its WGSL against the twin."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
import wgpu

from ..backend.device_errors import device_errors
from ..backend.queues import submit, wait_idle
from ..errors import ArgumentError, GridwiseError, GridwiseWarning
from ..planning.builder import PlanBuilder
from ..planning.kernel_request import KernelFile, Memory
from ..planning.layout import Layout
from ..planning.plan import Plan, Work
from ..types.capabilities import Capabilities
from ..types.datatype import DATATYPES, Datatype, Struct
from ..types.operator_base import Operator
from ..types.operators import BinOp, memory_context, operator_context
from ..types.unary_operators import UnaryOp, ulps_of, unary_context
from ..warn import warn
from .context import context_of
from .executor import BufferRange

# Items of almost any operator: what is wrong for them is an error.
_SMALL = (0, 1, 2, 3, 6, 77)
# An operator may have no use for these, one that packs two numbers into an item, say: what is wrong is a warning.
_OTHER: dict[str, tuple[float, ...]] = {
    "u32": (255, 65539, 2**31 - 1, 2**31 + 5, 2**32 - 1),
    "i32": (-1, -5, 65539, 2**31 - 1, -(2**31)),
    "f32": (0.5, -1.0, -2.5, 1e-3, 65539.0, 1e15, -1e15),
    "u64": (255, 65539, 2**32 - 1, 2**32, 2**32 + 5, 2**63 + 7, 2**64 - 1),
    "i64": (-1, -5, 65539, 2**32 - 1, 2**33 + 1, 2**63 - 1, -(2**63)),
    "f64": (0.5, -1.0, -2.5, 1e-3, 65539.0, 1e15, -1e15),
}
# Of floats: what the twin may lose by rounding, and what WGSL's built-in functions may be off by.
_ROUNDING = 1e-4
_IMPRECISION = 1e-3
_MOST_KNOWN = 1024


@dataclass(frozen=True)
class _Trial:
    """An operator on a datatype, and the values that it is tried with."""

    op: Operator
    datatype: Datatype
    small: np.ndarray
    other: np.ndarray

    @property
    def title(self) -> str:
        """What messages call the operator."""
        return f"{self.op.form.kind} {self.op.name!r}"

    def numpy(self, *arrays: np.ndarray) -> np.ndarray:
        """Return what the twin gives, in the datatype."""
        many = "one numpy array" if len(arrays) == 1 else "two numpy arrays"
        try:
            with np.errstate(all="ignore"):
                found = np.asarray(self.op.numpy(*arrays))
                if found.shape == arrays[0].shape and found.dtype.names == arrays[0].dtype.names:
                    return found.astype(self.datatype.dtype)
        except Exception as error:
            raise ArgumentError(
                f"numpy= of {self.title} raised {type(error).__name__}: {error}; it must work on {many} of "
                f"{self.datatype.dtype}, item by item"
            ) from error
        if isinstance(self.datatype, Struct) and found.dtype.names != arrays[0].dtype.names:
            columns = ", ".join(f"{field}=…" for field, _ in self.datatype.fields)
            raise ArgumentError(
                f"numpy= of {self.title} gave an array of {found.dtype}, but items are of {self.datatype!r}; return "
                f"one with its fields, as {self.datatype.name}.array({columns}) makes it"
            )
        raise ArgumentError(
            f"numpy= of {self.title} gave shape {found.shape} for {many} of shape {arrays[0].shape}; it must work item "
            f"by item"
        )

    def close(self, a: np.ndarray, b: np.ndarray, tolerance: np.ndarray | float = 0.0) -> np.ndarray:
        """Return which items are the same, or of floats within a tolerance: of several numbers, all of them."""
        right = np.ones(a.shape, dtype=bool)
        for x, y in zip(_numbers(a), _numbers(b), strict=True):
            same = x == y
            if x.dtype.kind == "f":
                with np.errstate(all="ignore"):
                    same |= np.abs(x.astype(np.float64) - y.astype(np.float64)) <= tolerance
                same |= np.isnan(x) & np.isnan(y)
            right &= same
        return right


@dataclass(frozen=True)
class _PairTrial(_Trial):
    """An operator of two arguments: it has an identity, and laws."""

    op: BinOp

    @property
    def identity(self) -> Any:
        """The identity, in the datatype."""
        return self.op.identity_for(self.datatype)


@dataclass(frozen=True)
class _ItemTrial(_Trial):
    """An operator of one argument."""

    op: UnaryOp


def check_operator(op: BinOp | UnaryOp, datatype: Datatype, device: wgpu.GPUDevice | None) -> None:
    """Check an operator of a user's own, once per datatype and device; see the notes of `BinOp` and `UnaryOp`.

    Raises
    ------
    ArgumentError
        If a law does not hold, or the WGSL text gives something else than the numpy twin.
    ShaderError
        If the WGSL text does not compile.
    """
    if op.builtin or op.check is False:
        return
    datatype = datatype.computed
    trial = _lawful(op, datatype) if isinstance(op, BinOp) else _item_trial(op, datatype)
    if device is None:
        return
    known = context_of(device).checked_operators
    if (op, datatype.key) in known:
        return
    if isinstance(trial, _PairTrial):
        _check_pairs_on(device, trial)
    else:
        _check_items_on(device, trial)
    if len(known) >= _MOST_KNOWN:
        known.clear()
    known.add((op, datatype.key))


def _values(op: Operator, datatype: Datatype) -> tuple[np.ndarray, np.ndarray]:
    """Return the values for which an operator must be right, and those for which it should be."""
    dtype = datatype.dtype
    if isinstance(op.check, Sequence):
        chosen = [op.number(value, datatype, "check") for value in op.check]
        return np.array(chosen, dtype=dtype), np.empty(0, dtype)
    if datatype.is_several:
        return _mixed(datatype, [_SMALL] * datatype.elements, (0, 1)), _mixed(datatype, _others(datatype), (1,))
    return np.array(_SMALL, dtype=dtype), np.array(_OTHER[datatype.name], dtype=dtype)


def _others(datatype: Datatype) -> list[tuple[float, ...]]:
    """Return the values of `_OTHER` for each number of an item."""
    numbers = datatype.fields if isinstance(datatype, Struct) else (("real", DATATYPES["f32"]),) * 2
    return [_OTHER[number.name] for _, number in numbers]


def _mixed(datatype: Datatype, columns: Sequence[Sequence[float]], steps: Sequence[int]) -> np.ndarray:
    """Return items of several numbers, some for each step: by so many values a column is ahead of the one before."""
    most = max(len(column) for column in columns)
    rows = [
        tuple(column[(i + step * k) % len(column)] for k, column in enumerate(columns))
        for step in steps
        for i in range(most)
    ]
    if isinstance(datatype, Struct):
        return np.array(rows, dtype=datatype.dtype)
    return np.array(rows, dtype=np.float32).view(datatype.dtype).reshape(-1)


def _numbers(items: np.ndarray) -> list[np.ndarray]:
    """Return the numbers that items consist of: the fields of a struct, the parts of complex numbers, or the items."""
    if items.dtype.names is not None:
        return [items[name] for name in items.dtype.names]
    if items.dtype.kind != "c":
        return [items]
    parts = np.ascontiguousarray(items).view(np.float32)
    return [parts[0::2], parts[1::2]]


def _magnitude(items: np.ndarray) -> np.ndarray:
    """Return the largest magnitude among the floats of each item; 0 where it has none."""
    floats = [np.abs(x.astype(np.float64)) for x in _numbers(items) if x.dtype.kind == "f"]
    return np.maximum.reduce([np.zeros(items.shape), *floats])


@lru_cache(maxsize=_MOST_KNOWN)
def _item_trial(op: UnaryOp, datatype: Datatype) -> _ItemTrial:
    """Check that an operator's numpy twin works on items of a datatype; return it with the values to try."""
    trial = _ItemTrial(op, datatype, *_values(op, datatype))
    trial.numpy(np.concatenate([trial.small, trial.other]))
    return trial


@lru_cache(maxsize=_MOST_KNOWN)
def _lawful(op: BinOp, datatype: Datatype) -> _PairTrial:
    """Check an operator's laws by its numpy twin; return it with those values for which they hold."""
    trial = _PairTrial(op, datatype, *_values(op, datatype))
    _keeps(trial, trial.small, ArgumentError)
    trial = replace(trial, other=trial.other[_keeps(trial, trial.other, GridwiseWarning)])
    for values, kind in ((trial.small, ArgumentError), (trial.other, GridwiseWarning)):
        if op.commutative:
            _check_order(trial, values, kind)
        _check_grouping(trial, values, kind)
    return trial


def _keeps(trial: _PairTrial, values: np.ndarray, kind: type[Exception]) -> np.ndarray:
    """Return which values the identity leaves as they are; complain about the others."""
    identity = np.full_like(values, trial.identity)
    a, b = np.concatenate([identity, values]), np.concatenate([values, identity])
    found = trial.numpy(a, b)
    both = np.concatenate([values, values])
    kept = trial.close(found, both, _ROUNDING * _magnitude(both))
    _complain(trial, kind, kept, lambda i: (
        f"its identity {trial.identity} changes a value: numpy({a[i]}, {b[i]}) is {found[i]}, not {both[i]}. "
        f"Give the e for which numpy(e, x) and numpy(x, e) are x"
    ))  # fmt: skip
    return kept[: values.size] & kept[values.size :]


def _check_order(trial: _PairTrial, values: np.ndarray, kind: type[Exception]) -> None:
    a, b = _combinations(values, 2)
    one, other = trial.numpy(a, b), trial.numpy(b, a)
    _complain(trial, kind, trial.close(one, other, _ROUNDING * _scale(one, a, b)), lambda i: (
        f"numpy({a[i]}, {b[i]}) is {one[i]}, but numpy({b[i]}, {a[i]}) is "
        f"{other[i]}. Give commutative=False, which keeps the order of the items"
    ))  # fmt: skip


def _check_grouping(trial: _PairTrial, values: np.ndarray, kind: type[Exception]) -> None:
    # A small float next to a large one is absorbed, whatever the operator.
    if kind is GridwiseWarning and trial.datatype.rounds:
        return
    a, b, c = _combinations(values, 3)
    one, other = trial.numpy(trial.numpy(a, b), c), trial.numpy(a, trial.numpy(b, c))
    _complain(trial, kind, trial.close(one, other, _ROUNDING * _scale(one, a, b, c)), lambda i: (
        f"it is not associative: of {a[i]}, {b[i]} and {c[i]}, numpy(numpy(a, b), c) is "
        f"{one[i]}, but numpy(a, numpy(b, c)) is {other[i]}"
    ))  # fmt: skip


def check_plan(op: BinOp, datatype: Datatype, capabilities: Capabilities, n: int) -> Plan:
    """Return the plan that combines n pairs of items, n being a multiple of 4; see shaders/operator_check.wgsl."""
    size, names = datatype.element_bytes, ("a", "b", "output")
    length = n * datatype.elements
    layout = Layout.separate(dict.fromkeys(names, size), a=length, b=length, output=2 * length)
    builder = PlanBuilder("operator_check", layout, capabilities)
    wide = size == 8
    memory = memory_context(datatype) if wide or datatype.is_several else None
    builder.kernel(
        "operator_check",
        KernelFile(
            "operator_check.wgsl",
            context=operator_context(op, datatype, capabilities.subgroup_mode(False), source=memory, sink=memory),
            constants={"WORKGROUP_SIZE": 64},
            shader_checks=op.checks_for(datatype),
        ),
        Memory(
            reads={"a": layout["a"], "b": layout["b"]},
            writes={"output": layout["output"]},
            units=dict.fromkeys(names, 4 * size) if wide else None,
        ),
        params={"n": n, **op.accumulator(datatype).params},
        extent=-(-n // 256),
    )
    return builder.build(Work(n, 0, 0), {})


def unary_check_plan(op: UnaryOp, datatype: Datatype, capabilities: Capabilities, n: int) -> Plan:
    """Return the plan for n items, n being a multiple of 4; see shaders/unary_operator_check.wgsl."""
    layout = Layout.separate(input=n, output=2 * n)
    builder = PlanBuilder("unary_operator_check", layout, capabilities)
    builder.kernel(
        "unary_operator_check",
        KernelFile(
            "unary_operator_check.wgsl",
            context=unary_context(op, datatype),
            constants={"WORKGROUP_SIZE": 64},
            shader_checks=op.checks_for(datatype),
        ),
        Memory(reads={"input": layout["input"]}, writes={"output": layout["output"]}),
        params={"n": n},
        extent=-(-n // 256),
    )
    return builder.build(Work(n, 0, 0), {})


def _check_items_on(device: wgpu.GPUDevice, trial: _ItemTrial) -> None:
    """Compare what the WGSL text of an operator of one argument gives on a device with the numpy twin."""
    values = np.concatenate([trial.small, trial.other])
    if not values.size:
        return
    items = np.concatenate([values, np.full(-values.size % 4, values[0], values.dtype)])
    plan = unary_check_plan(trial.op, trial.datatype, context_of(device).capabilities, items.size)
    got = _computed(device, trial, plan, {"input": items})
    wanted = trial.numpy(values)
    ulps = trial.op.max_ulps
    tolerance = _IMPRECISION * _scale(wanted) if ulps is None else ulps_of(wanted, ulps)
    unsure = np.arange(values.size) >= trial.small.size
    for found in (got[: values.size], got[items.size :][: values.size]):
        right = trial.close(found, wanted, tolerance)

        def describe(i: int, found: np.ndarray = found) -> str:
            limit = ""
            if ulps is not None and trial.datatype.dtype.kind == "f":
                limit = f", further away than max_ulps={ulps} allows: state the accuracy of what it calls"
            return f"its WGSL gives apply({values[i]}) = {found[i]}, but numpy= gives {wanted[i]}{limit}"

        _complain(trial, ArgumentError, right | unsure, describe)
        _complain(trial, GridwiseWarning, right | ~unsure, describe)
        if not right.all():
            return


def _check_pairs_on(device: wgpu.GPUDevice, trial: _PairTrial) -> None:
    """Compare what the WGSL text gives on a device with the numpy twin."""
    values = np.concatenate([trial.small, trial.other, np.array([trial.identity], dtype=trial.datatype.dtype)])
    a, b = _combinations(values, 2)
    padding = -a.size % 4
    pairs = [np.concatenate([items, np.full(padding, trial.identity, items.dtype)]) for items in (a, b)]
    plan = check_plan(trial.op, trial.datatype, context_of(device).capabilities, pairs[0].size)
    got = _computed(device, trial, plan, dict(zip("ab", pairs, strict=True)))
    wanted = trial.numpy(a, b)
    is_identity = np.arange(values.size) == values.size - 1
    special = np.logical_or(*_combinations(is_identity, 2))
    unsure = np.logical_or(*_combinations((np.arange(values.size) >= trial.small.size) & ~is_identity, 2))
    # An identity may be as large as floats go: it is no measure of what may be lost.
    scale = _of_scale(_magnitude(wanted), *(np.where(x == trial.identity, 0, _magnitude(x)) for x in (a, b)))
    for found in (got[: a.size], got[a.size + padding :][: a.size]):
        right = trial.close(found, wanted, _IMPRECISION * scale)

        def describe(i: int, found: np.ndarray = found) -> str:
            why = (
                ". Kernels combine the identity with items and with itself, so the text must handle them: return the "
                "other argument where one is the identity, or give an identity that needs no such case"
            )
            return (
                f"its WGSL gives combine({a[i]}, {b[i]}) = {found[i]}, but numpy= gives "
                f"{wanted[i]}{why if special[i] else ''}"
            )

        _complain(trial, ArgumentError, right | unsure, describe)
        _complain(trial, GridwiseWarning, right | ~unsure, describe)
        if not right.all():
            return


def _computed(device: wgpu.GPUDevice, trial: _Trial, plan: Plan, inputs: Mapping[str, np.ndarray]) -> np.ndarray:
    """Return what the WGSL text makes of items: four at a time, and then one by one."""
    context = context_of(device)
    (size, *_), dtype = (items.size for items in inputs.values()), trial.datatype.dtype
    usage = wgpu.BufferUsage.STORAGE | wgpu.BufferUsage.COPY_SRC
    what = f"check of {trial.title}"
    with device_errors(what):
        buffers = {
            name: device.create_buffer_with_data(label=f"gridwise operator check {name}", data=data, usage=usage)
            for name, data in {**inputs, "output": np.zeros(2 * size, dtype)}.items()
        }
        encoder = device.create_command_encoder(label="gridwise operator check")
        ranges = {name: BufferRange(buffer, 0, buffer.size) for name, buffer in buffers.items()}
        context.executor.bind(plan, ranges).encode(encoder)
        submit(device, [encoder.finish()], what)
        wait_idle(device)
    found = np.empty(2 * size, dtype=dtype)
    context.read_buffer(buffers["output"], 0, found)
    return found


def _combinations(values: np.ndarray, repeat: int) -> tuple[np.ndarray, ...]:
    """Return all pairs or triples of values, as arrays of first, second and third ones."""
    places = np.array(list(itertools.product(range(values.size), repeat=repeat)), dtype=np.intp).reshape(-1, repeat)
    return tuple(values[places].T)


def _scale(*arrays: np.ndarray) -> np.ndarray:
    """Return the magnitudes that a rounding error is measured by, of 1 at least."""
    return _of_scale(*(_magnitude(x) for x in arrays))


def _of_scale(*magnitudes: np.ndarray) -> np.ndarray:
    largest = np.maximum.reduce(magnitudes)
    return np.where(np.isfinite(largest), np.maximum(largest, 1.0), 1.0)


def _complain(trial: _Trial, kind: type[Exception], right: np.ndarray, describe: Callable[[int], str]) -> None:
    """Raise or warn about the first thing that is not right."""
    if right.all():
        return
    message = f"{trial.title} on {trial.datatype}: {describe(int(np.flatnonzero(~right)[0]))}."
    if issubclass(kind, GridwiseError):
        raise kind(
            f"{message} If your data have no such values, give the values to check with, check=[…]; check=False leaves "
            f"the check out"
        )
    warn(
        f"{message} Results are wrong if your data have such values. If not, give the values to check with, check=[…]; "
        f"check=False leaves the check out"
    )
