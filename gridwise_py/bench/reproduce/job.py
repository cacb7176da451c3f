"""A process of the experiment on processes: reads what to measure from stdin, and prints the times."""

from __future__ import annotations

import json
import sys

from ... import VectorAdd, request_device
from ...errors import GridwiseError
from ...internals import expect_software
from .lab import Lab, known

__all__ = ["main"]


def main() -> None:
    """Measure a vector add, and print its GPU spans in ns, or the error, as one line of JSON."""
    spec = json.loads(sys.stdin.read())
    expect_software()
    try:
        device = request_device(spec["adapter"])
        lab = Lab(device, repeats=spec["repeats"], warmup_s=spec["warmup_s"])
        times = lab.timed(VectorAdd(device, "f32"), a=lab.floats(spec["n"]), b=lab.floats(spec["n"]))
    except GridwiseError as error:
        # Several lines, of which stderr would not show which ones belong to it.
        print(json.dumps({"error": str(error)}))
        sys.exit(1)
    print(json.dumps({"times_ns": known([one.gpu_span_ns for one in times])}))
