"""Every primitive's plans, run from their JSON in Chromium: Tint instead of naga, SwiftShader instead of lavapipe.

Subgroups are of 4 there, workgroup memory is zeroed, limits are WebGPU's lowest. The host is a page that knows nothing
but the plan's JSON. Each plan is done twice on the same buffers, and compared with numpy.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pytest

import gridwise_py as gw
from helpers.chromium import find_chromium
from helpers.every_primitive import Call, covering, is_possible
from helpers.replay import SWIFTSHADER, Job, replay

#: Around one item, a vec4, and tiles of 256 items.
LENGTHS = (0, 1, 3, 5, 255, 257, 1_025, 4_099)


class Replayed(NamedTuple):
    """A call, of how many items, and its job."""

    call: Call
    count: int | None
    job: Job


def _rows(name: str) -> list[dict[str, Any]]:
    """Return the configurations of a primitive that SwiftShader has, whose arguments lie apart."""
    rows = [row | {"form": "counted" if row["form"] == "counted" else "whole", "place": "aligned"}
            for row in covering() if row["name"] == name and is_possible(SWIFTSHADER, row)]  # fmt: skip
    return [row for number, row in enumerate(rows) if row not in rows[:number]]


def _replayed(name: str) -> Iterator[Replayed]:
    for row in _rows(name):
        for n in LENGTHS:
            call = Call(None, row, n, capabilities=SWIFTSHADER)
            if name == "reduce" and not call.case.n and not call.primitive.op.empty:
                continue
            count = call.case.n // 2 + 1 if row["form"] == "counted" else None
            if count is not None and count < call.case.options.get("k", 0):
                continue  # what fills up is said by test_top_k.py
            words = {each: call.signature.datatype(each).elements for each in call.lengths}  # layouts count these
            lengths = {each: words[each] * size for each, size in call.lengths.items()}
            sizes = {each: call.dtype(each).itemsize // words[each] for each in lengths}
            lengths |= {} if count is None else {"n": 1}
            plan = call.primitive.plan(gw.Layout.separate(sizes, **lengths))
            outputs = {each: call.dtype(each) for each in call.signature.outputs}
            yield Replayed(call, count, Job(gw.Plan.from_json(plan.to_json()), call.with_count(count), outputs))


@pytest.mark.tint
@pytest.mark.needs("chromium")
@pytest.mark.parametrize("name", gw.primitives.REGISTRY)
def test_plans_equal_numpy(name):
    every = list(_replayed(name))
    adapter, results = replay([each.job for each in every], chromium=find_chromium())
    assert "swiftshader" in adapter.lower()
    for (call, count, _), outputs in zip(every, results, strict=True):
        counted = call.signature.is_counted
        found = call.primitive.reference(**{k: x[:count] if counted(k) else x for k, x in call.inputs.items()})
        sizes = [each.size for each in (found if isinstance(found, tuple) else (found,))]
        for output, size in zip(outputs, sizes, strict=True):
            behind = outputs[output][size : call.lengths[output]]
            assert not behind.view(np.uint8).any(), f"{output} of {call.row}: the buffer stays behind its items"
            outputs[output] = outputs[output][:size]
        call.check(outputs, count)
    print(f"{len(every)} plans of {name} on {adapter}")
