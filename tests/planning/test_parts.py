"""Plans that include other primitives' plans: what each part names stays apart."""

import gridwise_py as gw
from gridwise_py.planning.builder import PlanBuilder
from gridwise_py.planning.plan import Copy, Kernel
from helpers.cases import FULL

N = 100_000
SORT = gw.Sort(None, "u32", capabilities=FULL)


class Twice:
    """A part of two parts: it sorts into temporary memory, and from there into its output."""

    def add_to(self, builder, layout):
        between = builder.scratch("between", layout["input"].length)
        first = builder.include("first", SORT, {"input": layout["input"], "output": between}, counted=True)
        builder.include("second", SORT, {"input": between, "output": layout["output"]}, counted=False)
        return {"passes": first["passes"]}


def _plan(*, n=None):
    layout = gw.Layout.separate(input=N, output=N, **({} if n is None else {"n": n}))
    builder = PlanBuilder("sorts", layout, FULL)
    between = builder.scratch("between", N)
    reported = builder.include("twice", Twice(), {"input": layout["input"], "output": between}, counted=True)
    builder.include("last", SORT, {"input": between, "output": layout["output"]}, counted=False)
    return builder.build(gw.Work(N, 4 * N, 4 * N), {"of twice": reported})


def _alone():
    return SORT.plan(gw.Layout.separate(input=N, output=N))


def test_memory_of_parts_is_apart():
    """Of parts of parts, too, and of constants and temporary memory that go by the same name in each."""
    names = [spec.name for spec in _plan().buffers if spec.role == "scratch"]
    own = [spec.name for spec in _alone().buffers if spec.role == "scratch"]
    wanted = [f"{part}/{name}" for part in ("twice/first", "twice/second", "last") for name in own]
    assert sorted(names) == sorted(["between", "twice/between", *wanted])


def test_each_part_binds_its_own_memory():
    """Also what kernels reach as atomics, which have no accessors."""
    plan, alone = _plan(), _alone()
    assert any("states" in binding.buffer for kernel in alone.kernels for binding in kernel.bindings)
    arguments = {
        "twice/first": ("input", "twice/between"), "twice/second": ("twice/between", "between"),
        "last": ("between", "output"),
    }  # fmt: skip
    for number, (part, ends) in enumerate(arguments.items()):
        kernels = plan.kernels[number * len(alone.kernels) : (number + 1) * len(alone.kernels)]
        known = dict(zip(("input", "output"), ends, strict=True))
        for kernel, own in zip(kernels, alone.kernels, strict=True):
            assert [b.buffer for b in kernel.bindings[1:]] == [
                known.get(b.buffer, f"{part}/{b.buffer}") for b in own.bindings[1:]
            ]
    params = [kernel.bindings[0].buffer for kernel in plan.kernels]
    assert len(set(params)) == len(params)


def test_labels_say_the_part():
    labels, own = [kernel.label for kernel in _plan().kernels], [kernel.label for kernel in _alone().kernels]
    assert labels == [f"{part}: {label}" for part in ("twice: first", "twice: second", "last") for label in own]


def test_texts_are_those_of_the_parts():
    assert dict(_plan().shaders) == dict(_alone().shaders)


def test_a_part_reports_to_its_caller():
    assert dict(_plan().parameters) == {"of twice": {"passes": 4}}


def test_only_parts_of_the_calls_items_take_its_count():
    plan = _plan(n=1)
    kernels = [step.bindings[0].buffer for step in plan.steps if isinstance(step, Kernel)]
    fed = {step.destination for step in plan.steps if isinstance(step, Copy)}
    labels = {kernel.label for kernel, params in zip(plan.kernels, kernels, strict=True) if params in fed}
    assert labels
    assert all(label.startswith("twice: first: ") for label in labels)
    # Copies come before all kernels: each ends a pass.
    assert all(isinstance(step, Copy) for step in plan.steps[: len(fed)])
