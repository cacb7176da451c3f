"""Our own primitives in other forms (kinds, datatypes, operators, data), measured in turns against the usual one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import gridwise_py as gw
from gridwise_py.bench.cases.distributions import DISTRIBUTIONS, UNIFORM, random_items
from gridwise_py.bench.sampling.interleave import interleaved, samples_ns

LAUNCHES = 100


@dataclass(frozen=True)
class Form:
    """What is made, and from which data."""

    make: Callable[..., gw.Primitive]
    datatype: str = "u32"
    options: Mapping[str, Any] = field(default_factory=dict)
    distribution: str = UNIFORM

    def described(self) -> dict[str, Any]:
        """Return what a results file says of it."""
        data = {} if self.distribution == UNIFORM else {"distribution": self.distribution}
        return {"datatype": self.datatype, **self.options, **data}


def _scan(datatype: str, op: str = "add", kind: str = "inclusive") -> Form:
    return Form(gw.Scan, datatype, {"op": op, "kind": kind})


#: By primitive and name; all are measured by the first.
FORMS: dict[str, dict[str, Form]] = {
    "scan": {
        "u32 add": _scan("u32"),
        "u32 add, exclusive": _scan("u32", kind="exclusive"),
        "i32 add": _scan("i32"),
        "f32 add": _scan("f32"),
        "u32 min": _scan("u32", "min"),
        "u32 max": _scan("u32", "max"),
        "u32 multiply": _scan("u32", "multiply"),
        "f32 min": _scan("f32", "min"),
    },
    "sort": {
        "u32": Form(gw.Sort),
        "u32, descending": Form(gw.Sort, options={"descending": True}),
        "i32": Form(gw.Sort, "i32"),
        "f32": Form(gw.Sort, "f32"),
        "f32, descending": Form(gw.Sort, "f32", {"descending": True}),
        "u32, reduce then scan": Form(gw.Sort, options={"strategy": "reduce_then_scan"}),
        "u32, 16 bits": Form(gw.Sort, options={"end_bit": 16}),
        "u64": Form(gw.Sort, "u64"),
        "f64": Form(gw.Sort, "f64"),
        "positions of u32": Form(gw.ArgSort),
        **{
            f"u32, {name}": Form(gw.Sort, distribution=name)
            for name in DISTRIBUTIONS
            if name not in (UNIFORM, "specials")
        },
        "f32, specials": Form(gw.Sort, "f32", distribution="specials"),
        "f32, zipf": Form(gw.Sort, "f32", distribution="zipf"),
    },
}


def measure_forms(device, which: str, n: int, rounds: int, seconds: float = 0.1) -> list[dict[str, Any]]:
    """Measure all forms in turns, and print their times over that of the first.

    The data of a form is on the GPU while it is measured, so that large n fit.
    """
    primitives, launches = {}, LAUNCHES if n <= 1 << 24 and which == "scan" else 10
    arrays: dict[tuple[str, str], gw.Array] = {}
    for name, form in FORMS[which].items():
        key = form.datatype, form.distribution
        if key not in arrays:
            rng = np.random.default_rng(n)
            arrays[key] = gw.asarray(
                random_items(form.distribution, rng, n, gw.STORAGE_DATATYPES[form.datatype].dtype),
                device,
            )
        primitives[name] = form.make(device, form.datatype, **form.options)
        primitives[name].execute(input=arrays[key])  # what is measured below
    protocol = gw.SamplingProtocol(
        min_samples=10, block_trials=10, timeout_s=seconds, warmup_s=seconds / 2, max_warmup_s=seconds,
        canary_passes=1, check_unit=False, batch_trials=launches,
    )  # fmt: skip
    taken = interleaved(primitives, {}, rounds=rounds, protocol=protocol, check=True)
    times = {name: np.concatenate(samples_ns(ms)) if ms[0].correct else None for name, ms in taken.items()}
    base = times[next(iter(FORMS[which]))]
    found = []
    for name, form in FORMS[which].items():
        time_ns = None if times[name] is None else float(np.median(times[name]))
        ratio = None if time_ns is None or base is None else time_ns / float(np.median(base))
        row = {"primitive": which, "name": name, "n": n, **form.described(), "correct": time_ns is not None}
        found.append({**row, "back_to_back": time_ns, "ratio": ratio, "parameters": dict(taken[name][0].parameters)})
        shown = "WRONG" if time_ns is None else f"{time_ns / 1e3:9.2f} us  {ratio or 0:6.3f}"
        print(f"{which} {name:26} 2^{n.bit_length() - 1:<3}{shown}", flush=True)
    for primitive in primitives.values():
        primitive.release()
    return found
