"""Benchmarks of a user's file for the page: plans of `gw.Kernel`, arguments as they are, results by their reference.

The kernels are planned with a device of this machine, and are the same for all devices: their texts are the user's.
What a device cannot run fails there, with the compiler's words.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np
import wgpu

from .. import Array, Kernel, Layout, Plan, Work
from ..bench.cases.case import Case
from ..bench.checks.check import tolerances
from ..bench.sampling.checker import expected_results
from ..bench.sampling.subjects import subject_of
from ..errors import ArgumentError, GridwiseError, LimitError

#: Of the arguments and results of all cases in a page, which has them as they are.
MOST_OWN_BYTES = 64 << 20


def own_case(case: Case, device: wgpu.GPUDevice, mode: str, seed: int) -> tuple[Plan, dict[str, Any]]:
    """Return the plan of a user's benchmark, and its entry of the bundle without variants.

    Raises
    ------
    ArgumentError
        If a page cannot run it, or has nothing to check its results with.
    LimitError
        If its arguments are too large.
    """
    own = case.own_workload
    assert own is not None, "the case is of a user's file"
    try:
        return own.guarded(lambda: _make(case, device, mode, seed))
    except LimitError as error:
        raise LimitError(f"{case}: {error}") from error
    except GridwiseError as error:
        raise ArgumentError(f"{case}: {error}") from error


def _make(case: Case, device: wgpu.GPUDevice, mode: str, seed: int) -> tuple[Plan, dict[str, Any]]:
    own = case.own_workload
    if own is not None and own.device(device, dict(case.others)) is not device:
        raise ArgumentError("a page has the run-time checks of its browser; leave out the axis shader_checks")
    benchmark = case.benchmark(device, mode, seed)
    run: Any = benchmark.run
    named: dict[str, Any] = dict(cast(Mapping[str, Any], run)) if isinstance(run, Mapping) else {}
    kernels: list[Any] = list(cast(Sequence[Any], run)) if isinstance(run, (list, tuple)) else [run]
    kernels = list(named.values()) or kernels
    other = next((one for one in kernels if not isinstance(one, Kernel)), None)
    if other is not None:
        raise ArgumentError(
            f"a page runs gw.Kernels, one or several, not a {type(other).__name__}; name the benchmarks of these: "
            f"FILE.py NAME"
        )
    if benchmark.restore:
        raise ArgumentError("a page puts nothing back between trials (restore=); time it with gridwise bench")
    if benchmark.reference is None:
        raise ArgumentError("it has no reference=, so a page cannot check its results; give one")
    subject = subject_of(device, case.primitive, benchmark)
    expected = expected_results(subject, benchmark)
    arrays = {name: array.to_numpy() for name, array in subject.arrays.items() if isinstance(array, Array)}
    if sum(array.nbytes for array in (*arrays.values(), *expected.values())) > MOST_OWN_BYTES:
        raise LimitError(
            f"its arguments have over {MOST_OWN_BYTES >> 20} MiB, which a page does not carry; take a smaller n"
        )
    plans = [_plan(kernel, arrays, benchmark.inputs) for kernel in kernels]
    plan = _join(case.primitive, plans, list(named))
    work = subject.work or (plan.work if len(kernels) == 1 else Work(0, 0, 0)).totals()
    return plan, {
        "primitive": case.primitive, "n": case.n, "axes": case.axes,
        "inputs": [
            {"name": name, "bytes": int(array.nbytes), "recipe": {"base64": _base64(array)}}
            for name, array in arrays.items()
        ],
        "outputs": [
            {
                "name": name, "capacity_bytes": int(arrays[name].nbytes), "bytes": right.size * arrays[name].itemsize,
                **_check(name, right, arrays[name].dtype, benchmark.rtol, benchmark.atol),
            }
            for name, right in expected.items()
        ],
        "work": dict(work),
    }  # fmt: skip


def _plan(kernel: Kernel, arrays: Mapping[str, np.ndarray], inputs: Mapping[str, Any]) -> Plan:
    own = {name: arrays[name] for name in kernel.signature.arguments}
    kinds = {name: kernel.signature.datatype(name) for name in own}
    sizes = {
        name: array.itemsize if (kind := kinds[name]) is None else kind.element_bytes for name, array in own.items()
    }
    layout = Layout.separate(sizes, **{name: array.nbytes // sizes[name] for name, array in own.items()})
    return kernel.plan(layout, **{name: inputs[name] for name in kernel.signature.values if name in inputs})


def _join(name: str, plans: list[Plan], labels: list[str]) -> Plan:
    """Return one plan of kernels that run one after the other."""
    buffers: dict[str, Any] = {}
    steps: list[Any] = []
    for i, plan in enumerate(plans):
        called = {
            spec.name: spec.name if spec.role == "argument" else f"{spec.name} of kernel {i + 1}"
            for spec in plan.buffers
        }
        buffers |= {called[spec.name]: replace(spec, name=called[spec.name]) for spec in plan.buffers}
        for kernel in plan.kernels:
            bindings = tuple(replace(binding, buffer=called[binding.buffer]) for binding in kernel.bindings)
            steps.append(replace(kernel, bindings=bindings, label=labels[i] if labels else kernel.label))
    shaders = {key: shader for plan in plans for key, shader in plan.shaders.items()}
    return Plan(name, tuple(buffers.values()), tuple(steps), shaders, plans[0].work, plans[0].parameters)


def _base64(array: np.ndarray) -> str:
    return base64.b64encode(np.ascontiguousarray(array).tobytes()).decode("ascii")


def _check(
    name: str, expected: np.ndarray, dtype: np.dtype[Any], rtol: float | None, atol: float | None
) -> dict[str, Any]:
    """Return what a page compares an output with: a hash, or floats and by how much they may differ."""
    with np.errstate(invalid="ignore", over="ignore"):
        right = expected.astype(dtype)
    if right.dtype.kind not in "fc":
        if not np.array_equal(right, expected):
            raise ArgumentError(f"the reference of {name} has items that are none of {dtype}; return such")
        return {"sha256": hashlib.sha256(np.ascontiguousarray(right).tobytes()).hexdigest()}
    if right.dtype != np.float32 or not np.isfinite(right).all():
        what = right.dtype if right.dtype != np.float32 else "numbers that are not finite"
        raise ArgumentError(f"{name} has {what}, which a page cannot compare; it has floats of f32, and integers")
    relative, absolute = tolerances(right, rtol, atol)
    return {"datatype": "f32", "base64": _base64(right), "rtol": relative, "atol": absolute}
