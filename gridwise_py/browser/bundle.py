"""The bundle of a page: everything that a browser needs to run a suite, as JSON data.

A plan depends on the device, which is not known here. So there is a plan for each class of devices (`classes`); their
texts share most lines, and are kept as numbers of lines. Inputs are recipes (`data`), so that the right results are
known here: the page compares hashes.

Format, version 1. Times are in ns, sizes in bytes, unless a name says otherwise.

``schema``, ``schema_version``
    ``"gridwise.browser.bundle"``, 1.
``gridwise_py``, ``suite``, ``protocol``
    The version; the name of the suite or null; the fields of `SamplingProtocol`.
``classes``, ``class_keys``
    The values of ``subgroups``, ``invocations``, ``storage``, ``software`` and ``lookback``, ascending. A class is
    named by the largest value of each that its devices have (of ``lookback`` the verdict), joined by ``/`` in this
    order: ``32/1024/32768/false/safe``. ``class_keys`` has all of them, in the order of ``variants``; those of software
    have at most 8 lanes.
``subgroup_probe``
    A WGSL text whose binding 0 receives the number of lanes (u32).
``lines``, ``shaders``
    All distinct lines; by number a text as ``[prologue, first, count, first, count, …]``: runs of consecutive lines, of
    which the first ``prologue`` are for Tint. The text is these lines joined by newlines. Without the prologue its
    sha256 is that of the library's text, which results name.
``buffers``, ``steps``, ``parameters``
    What plans consist of, as in `Plan.to_json`, each once. ``shader`` of a step is a number.
``plans``
    By number: ``primitive``; numbers of its ``buffers``, of its ``steps`` in order, and of its ``parameters``.
``own``
    Numbers of plans: ``canary``; ``nothing`` (a dispatch that does nothing); ``tick`` (a long canary); ``fma``: its
    ``plans`` by workgroups (as text), and ``flops_per_workgroup`` of a dispatch.
``lookback``
    The self-test: ``tiles`` of a dispatch, ``dispatches``, ``stalled_dispatches``, ``again_at_most`` (the share of
    tiles that may be computed again), and ``plans`` by ``software/tickets/stalled``, such as ``false/true/false``.
``ceilings``
    For each array size, and software or not: ``array_bytes``, and the plans ``copy`` and ``triad``.
``cases``
    Each: ``primitive``, ``n``, ``axes``; ``inputs`` with ``name``, ``bytes`` and ``recipe`` (`Recipe.to_json`, or
    ``base64``: the bytes); ``outputs`` with ``name``, ``capacity_bytes`` (of the buffer) and ``bytes`` (how many of
    these are the result), and either ``sha256`` of the result, or ``datatype``, ``values`` and ``errors``: each item
    may differ from its value by the error; or the values as ``base64``, with ``rtol`` and ``atol``. An output that is
    an input, too, begins as that. ``work`` (`Work.totals`); ``variants``: for each class the number of its plan, or
    null if the primitive cannot run on such a device.
``jobs``
    In the order to run: ``case`` (an index), ``mode``, ``position``, ``round``.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import wgpu

from .. import Copy, Layout, Plan, Primitive, __version__
from ..bench.calibrate.kernels import CANARY, NOTHING
from ..bench.calibrate.probes import MOST_FMA_WORKGROUPS, TICK, fma_flops, fma_kernel
from ..bench.cases.case import Case, array_items
from ..bench.cases.distributions import UNIFORM
from ..bench.cases.mode import Mode
from ..bench.sampling.protocol import SamplingProtocol
from ..bench.sweep.suite import Sweep, in_rounds, plan_jobs
from ..errors import ArgumentError, GridwiseError, LimitError
from ..internals import SUBGROUP_PROBE, LookbackProbe, Oracle, Triad, error_bound, prologue
from .classes import CLASSES, MOST_BUFFER_BYTES, device_classes, own_class
from .data import Recipe, Wanted, recipe_for
from .own import own_case

SCHEMA = "gridwise.browser.bundle"
SCHEMA_VERSION = 1

#: The most items of a result that are in the page one by one.
_MOST_VALUES = 1024
#: The largest whole numbers to try in place of random reals: for long sums, for products, for long sums of products.
_WHOLE_NUMBERS = (1024, 16, 1)
#: f32 has all whole numbers up to twice this.
_MOST_WHOLE = 2.0**23


@dataclass
class _Table:
    """JSON values, each once, by number."""

    numbers: dict[str, int] = field(default_factory=dict[str, int])

    def number(self, value: Any) -> int:
        """Return the number of a value."""
        return self.numbers.setdefault(json.dumps(value, sort_keys=True), len(self.numbers))

    def values(self) -> list[Any]:
        """Return all values by their numbers."""
        return [json.loads(text) for text in self.numbers]


class _Plans:
    """Plans and their texts, each part once."""

    def __init__(self) -> None:
        self._lines: dict[str, int] = {}
        self._shaders: dict[str, int] = {}
        self._texts: list[list[int]] = []
        self._tables = {name: _Table() for name in ("buffers", "steps", "parameters", "plans")}

    def add(self, plan: Plan) -> int:
        """Add a plan, and return its number."""
        data = json.loads(plan.to_json())
        for step in data["steps"]:
            if "shader" in step:
                step["shader"] = self._shader(step["shader"], plan.shaders[step["shader"]].text)
        buffers, steps = (self._tables[name] for name in ("buffers", "steps"))
        return self._tables["plans"].number(
            {
                "primitive": plan.primitive,
                "buffers": [buffers.number(spec) for spec in data["buffers"]],
                "steps": [steps.number(step) for step in data["steps"]],
                "parameters": self._tables["parameters"].number(data["parameters"]),
            }
        )

    def _shader(self, sha256: str, text: str) -> int:
        if sha256 not in self._shaders:
            self._shaders[sha256] = len(self._texts)
            before = prologue("tint", text)
            lines = (before + text).split("\n")
            runs = _runs([self._lines.setdefault(line, len(self._lines)) for line in lines])
            self._texts.append([before.count("\n"), *runs])
        return self._shaders[sha256]

    def to_json(self) -> dict[str, Any]:
        """Return the tables of the bundle."""
        tables = {name: table.values() for name, table in self._tables.items()}
        return {**tables, "shaders": self._texts, "lines": list(self._lines)}


def _runs(numbers: Sequence[int]) -> list[int]:
    """Return numbers as pairs: the first of a consecutive run, and how many there are."""
    found: list[int] = []
    for number in numbers:
        if found and number == found[-2] + found[-1]:
            found[-1] += 1
        else:
            found += [number, 1]
    return found


# ---- cases


@dataclass(frozen=True)
class _Checked:
    """A case with its data and its right results.

    Attributes
    ----------
    case : Case
    recipes : dict
        By input.
    inputs, expected : dict
        Arrays by name.
    bounds : dict
        By output that rounds: how much each item may differ; empty if all are exact.
    """

    case: Case
    recipes: dict[str, Recipe]
    inputs: dict[str, np.ndarray]
    expected: dict[str, np.ndarray]
    bounds: dict[str, np.ndarray]


def _check(case: Case, primitive: Primitive, seed: int) -> _Checked:
    """Return a case with random reals, or, if its results then depend on the order of additions, whole numbers.

    Sums and products of small whole numbers are exact, however they are grouped. Results that round all the same, such
    as a mean, keep an error bound.
    """
    found = _with_data(case, primitive, seed, None)
    for largest in _WHOLE_NUMBERS:
        if not found.bounds:
            break
        found = _with_data(case, primitive, seed, largest)
    return found


def _with_data(case: Case, primitive: Primitive, seed: int, largest: int | None) -> _Checked:
    recipes = _recipes(case, primitive, seed, largest)
    inputs = {name: recipe.items(_dtype(case, primitive, name)) for name, recipe in recipes.items()}
    oracle = Oracle.of(primitive)
    if oracle.reference is None:
        raise ArgumentError(f"{case}: {case.primitive} has no reference in numpy to check results with")
    wanted = [np.atleast_1d(np.asarray(right)) for right in oracle.expected(inputs)]
    expected = dict(zip(primitive.signature.outputs, wanted, strict=True))
    bounds: dict[str, np.ndarray] = {}
    for place, (name, right) in enumerate(expected.items()):
        if right.dtype.kind != "f" or _is_whole(right):
            continue
        errors = np.broadcast_to(np.asarray(error_bound(primitive, inputs, right, place).error), right.shape)
        if errors.any():
            bounds[name] = errors
    return _Checked(case, recipes, inputs, expected, bounds)


def _is_whole(right: np.ndarray) -> bool:
    """Whether results are whole numbers, and so small that those on the way to them were exact, too."""
    return bool(((right == np.rint(right)) & (np.abs(right) < _MOST_WHOLE)).all())


def _dtype(case: Case, primitive: Primitive, argument: str) -> np.dtype[Any]:
    datatype = primitive.signature.datatype(argument)
    return (datatype or case.items).dtype


def _recipes(case: Case, primitive: Primitive, seed: int, largest: int | None) -> dict[str, Recipe]:
    lengths = case.lengths
    distributed = case.workload.distributed or next(iter(lengths))
    return {
        name: recipe_for(
            primitive.signature.arguments[name],
            Wanted(length, _dtype(case, primitive, name), case.numbers, seed + i),
            maker=case.workload.data.get(name),
            distribution=case.distribution if case.distribution and name == distributed else UNIFORM,
            op=case.op,
            largest=largest,
        )
        for i, (name, length) in enumerate(lengths.items())
    }


def _case_json(plans: _Plans, case: Case, seed: int) -> dict[str, Any]:
    primitive = case.make(None, own_class(software=False).capabilities())
    for name, length in case.lengths.items():
        size_bytes = length * _dtype(case, primitive, name).itemsize
        if size_bytes > MOST_BUFFER_BYTES:
            raise LimitError(
                f"{case}: {name} needs a buffer of {size_bytes:,} bytes, and a page has buffers of up to "
                f"{MOST_BUFFER_BYTES:,}; take a smaller n"
            )
    checked = _check(case, primitive, seed)
    capacities = _capacities(primitive, case.lengths)
    variants: list[int | None] = []
    work: dict[str, int] | None = None
    for one in device_classes():
        plan = _plan(case, checked.inputs, capacities, one.capabilities())
        variants.append(None if plan is None else plans.add(plan))
        if plan is not None and work is None:
            counts = {part.count: int(checked.expected[part.count].item()) for part in plan.work.counted}
            work = plan.work.with_counts(counts).totals()
    if work is None:
        raise ArgumentError(f"{case}: no device that a browser has can run it")
    outputs = [
        _output_json(case, name, right, checked.bounds.get(name), capacities[name])
        for name, right in checked.expected.items()
    ]
    inputs = [
        {"name": name, "bytes": int(checked.inputs[name].nbytes), "recipe": recipe.to_json()}
        for name, recipe in checked.recipes.items()
    ]
    return {
        "primitive": case.primitive, "n": case.n, "axes": case.axes, "inputs": inputs, "outputs": outputs,
        "work": work, "variants": variants,
    }  # fmt: skip


def _capacities(primitive: Primitive, lengths: Mapping[str, int]) -> dict[str, int]:
    """Return for how many items each output has room."""
    found: dict[str, int] = {}
    for name in primitive.signature.outputs:
        length = primitive.signature.output_length(name, lengths)
        assert length is not None, "a benchmark gives no outputs"
        found[name] = length
    return found


def _plan(
    case: Case, inputs: Mapping[str, np.ndarray], capacities: Mapping[str, int], capabilities: Any
) -> Plan | None:
    """Return the plan for a class of devices; None if its limits or features are too small for the primitive."""
    try:
        primitive = case.make(None, capabilities)
        datatypes = {name: primitive.signature.datatype(name) for name in (*inputs, *capacities)}
        given = case.items
        known = {name: datatype or given for name, datatype in datatypes.items()}
        lengths = {**case.lengths, **capacities}
        sizes = {name: known[name].element_bytes for name in lengths}
        counted = {name: length * known[name].elements for name, length in lengths.items()}
        return primitive.plan(Layout.separate(sizes, **counted))
    except GridwiseError:
        return None


def _output_json(case: Case, name: str, right: np.ndarray, errors: np.ndarray | None, capacity: int) -> dict[str, Any]:
    entry: dict[str, Any] = {"name": name, "capacity_bytes": capacity * right.itemsize, "bytes": int(right.nbytes)}
    if errors is None:
        return entry | {"sha256": hashlib.sha256(np.ascontiguousarray(right).tobytes()).hexdigest()}
    if right.size > _MOST_VALUES or right.dtype != np.float32:
        raise ArgumentError(
            f"{case}: {name} has {right.size:,} items of {right.dtype} that may differ by rounding; a page checks at "
            f"most {_MOST_VALUES:,} items of float32 so"
        )
    return entry | {"datatype": "f32", "values": right.astype(np.float64).tolist(), "errors": errors.tolist()}


# ---- the bundle


def _refuse(error: GridwiseError) -> None:
    raise error


def bundle_of(
    sweeps: Iterable[Sweep],
    protocol: SamplingProtocol,
    *,
    rounds: int = 1,
    suite: str | None = None,
    progress: Callable[[str], None] = lambda step: None,
    device: wgpu.GPUDevice | None = None,
    leave_out: Callable[[GridwiseError], None] = _refuse,
) -> dict[str, Any]:
    """Return the bundle of a page, as JSON data in the format that this module describes.

    Parameters
    ----------
    sweeps : iterable of Sweep
    protocol : SamplingProtocol
        Its seed is also that of the data and of the order of cases.
    rounds : int, default 1
        Visits to each case.
    suite : str, optional
        The name of the suite.
    progress : callable
        Called with the name of each case.
    device : wgpu.GPUDevice, optional
        To plan the kernels of users' benchmarks; of other sweeps none is needed.
    leave_out : callable, optional
        Called with the error of each user's benchmark that a page cannot run, unless it can run none.

    Raises
    ------
    ArgumentError
        If the page cannot make the data of a case, cannot check its results, or no browser can run it.
    LimitError
        If a case needs larger buffers than pages have.
    """
    jobs = in_rounds(plan_jobs(sweeps), rounds, protocol.seed)
    if any(job.mode is Mode.COLD for job in jobs):
        raise ArgumentError(
            f"a page has no mode {Mode.COLD.value!r}: it does not know the size of the cache to empty; it has "
            f"{', '.join(mode.value for mode in Mode if mode is not Mode.COLD)}"
        )
    plans = _Plans()
    made: dict[Case, dict[str, Any]] = {}
    problems: list[GridwiseError] = []
    for case, mode in {job.case: job.mode for job in sorted(jobs, key=lambda job: job.position)}.items():
        progress(str(case))
        if case.own_workload is None:
            made[case] = _case_json(plans, case, protocol.seed)
            continue
        assert device is not None, "the kernels of users' benchmarks are planned with a device"
        try:
            plan, entry = own_case(case, device, mode.value, protocol.seed)
            made[case] = {**entry, "variants": [plans.add(plan)] * len(list(device_classes()))}
        except (ArgumentError, LimitError) as error:
            problems.append(error)
    for problem in problems:
        (leave_out if made else _refuse)(problem)
    numbers = {case: i for i, case in enumerate(made)}
    return {
        "schema": SCHEMA,
        "schema_version": SCHEMA_VERSION,
        "gridwise_py": __version__,
        "suite": suite,
        "protocol": protocol.to_dict(),
        "classes": {name: list(values) for name, values in CLASSES.items()},
        "class_keys": [one.key for one in device_classes()],
        "subgroup_probe": prologue("tint", SUBGROUP_PROBE) + SUBGROUP_PROBE,
        "own": _own(plans),
        "lookback": _lookback(plans),
        "ceilings": _ceilings(plans, {_array_bytes(case, entry) for case, entry in made.items()}),
        "cases": list(made.values()),
        "jobs": [
            {"case": numbers[job.case], "mode": job.mode.value, "position": job.position, "round": job.round}
            for job in jobs
            if job.case in numbers
        ],
        **plans.to_json(),
    }


def _own(plans: _Plans) -> dict[str, Any]:
    workgroups = [16]
    while workgroups[-1] < MOST_FMA_WORKGROUPS:
        workgroups.append(4 * workgroups[-1])
    kernels = {"canary": CANARY, "nothing": NOTHING, "tick": TICK}
    return {
        **{name: plans.add(kernel.plan()) for name, kernel in kernels.items()},
        "fma": {
            "flops_per_workgroup": fma_flops(1),
            "plans": {str(count): plans.add(fma_kernel(count).plan()) for count in workgroups},
        },
    }


def _lookback(plans: _Plans) -> dict[str, Any]:
    by_form: dict[str, int] = {}
    for software in (False, True):
        capabilities = own_class(software=software).capabilities()
        for tickets in (False, True):
            for stalled in (False, True):
                plan = LookbackProbe.plan(capabilities, "u32x2", tickets=tickets, stalled=stalled)
                by_form["/".join(str(value).lower() for value in (software, tickets, stalled))] = plans.add(plan)
    return {
        "tiles": LookbackProbe.TILES,
        "dispatches": LookbackProbe.DISPATCHES,
        "stalled_dispatches": LookbackProbe.STALLED_DISPATCHES,
        "again_at_most": LookbackProbe.AGAIN_AT_MOST,
        "plans": by_form,
    }  # fmt: skip


def _array_bytes(case: Case, entry: Mapping[str, Any]) -> int:
    """Return the bytes of a case's longest array; of a user's kernel, of the array whose copy moves as many bytes."""
    if case.own_workload is None:
        return 4 * array_items(case.primitive, case.n)
    return max(4096, (entry["work"]["read_bytes"] + entry["work"]["write_bytes"]) // 8 * 4)


def _ceilings(plans: _Plans, sizes: Iterable[int]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for software in (False, True):
        capabilities = own_class(software=software).capabilities()
        copy, triad = Copy(None, "u32", capabilities=capabilities), Triad(None, "u32", capabilities=capabilities)
        for size in sorted(sizes):
            n = size // 4
            found.append(
                {
                    "software": software,
                    "array_bytes": size,
                    "copy": plans.add(copy.plan(Layout.separate(input=n, output=n))),
                    "triad": plans.add(triad.plan(Layout.separate(a=n, b=n, output=n))),
                }
            )
    return found
