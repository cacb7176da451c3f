"""Composed texts of a kernel of each kind, as stored in tests/planning/composed: read there, and compared in review.

``PYTHONPATH=tests .venv/bin/python -m helpers.composed`` writes them anew.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import gridwise_py as gw
from helpers.cases import FULL
from helpers.paths import ROOT

FOLDER = ROOT / "tests" / "planning" / "composed"
_N = 1 << 24
_ROWS = {"vecs": 2}  # rows are written out: a GPU takes 8 to 16 of them


def _primitives() -> Iterator[tuple[str, str, gw.Primitive, dict[str, int]]]:
    """Yield the name of a file, the label of a kernel, and whose it is with the lengths of its inputs."""
    more: Mapping[str, Any] = {"capabilities": FULL}
    stream = more | {"tuning": gw.StreamTuning(**_ROWS)}
    scan = more | {"tuning": gw.ScanTuning(**_ROWS)}
    yield "scan", "scan", gw.Scan(None, "u32", **scan), {"input": _N}
    yield "reduce", "reduce", gw.Reduce(None, "u32", tuning=gw.ReduceTuning(**_ROWS), **more), {"input": _N}
    yield "select", "select", gw.Select(None, "u32", **stream), {"input": _N, "flags": _N}
    yield "partition", "partition", gw.Partition(None, "u32", **stream), {"input": _N, "flags": _N}
    yield "unique", "unique", gw.Unique(None, "u32", **stream), {"keys": _N}
    yield "run_length", "run_length", gw.RunLength(None, "u32", outputs=("values", "lengths"), **stream), {"keys": _N}
    yield "reduce_by_key", "reduce", gw.ReduceByKey(None, "u32", "u32", **scan), {"keys": _N, "items": _N}
    yield "segmented_scan", "scan", gw.SegmentedScan(None, "u32", **scan), {"items": _N, "offsets": _N // 1000}
    yield "sort_pass", "pass 0", gw.Sort(None, "u32", tuning=gw.SortTuning(items=2, parts=2), **more), {"input": _N}
    yield "histogram", "histogram", gw.Histogram(None, "u32", bins=256, range=(0, 1000), **more), {"input": _N}
    yield "merge", "merge", gw.Merge(None, "u32", "u32", **more), {"a": _N, "b": _N, "a_values": _N, "b_values": _N}
    yield "top_k", "delegates_0", gw.TopK(None, "u32", k=100, **more), {"input": _N}
    yield "transpose", "transpose", gw.Transpose(None, "u32", rows=4096, columns=4096, **more), {"input": _N}


def composed() -> dict[str, str]:
    """Return each text by the name of its file."""
    found: dict[str, str] = {}
    for name, label, primitive, inputs in _primitives():
        signature = primitive.signature
        lengths = {**inputs, **{output: signature.output_length(output, inputs) for output in signature.outputs}}
        plan = primitive.plan(gw.Layout.separate(**lengths))
        (kernel,) = (each for each in plan.kernels if each.label == label)
        found[f"{name}.wgsl"] = plan.shaders[kernel.shader].text
    return found


def main() -> None:
    """Write all texts, and nothing else into their folder."""
    FOLDER.mkdir(exist_ok=True)
    texts = composed()
    for path in FOLDER.glob("*.wgsl"):
        if path.name not in texts:
            path.unlink()
    for name, text in texts.items():
        (FOLDER / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
