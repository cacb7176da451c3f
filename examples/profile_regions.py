"""Where the time goes: a profile with named regions, its table, and a trace for ui.perfetto.dev."""

import tempfile
from pathlib import Path

import numpy as np

import gridwise_py as gw

device = gw.request_device()
values = np.random.default_rng(0).integers(0, 100, 1_000_000, dtype=np.uint32)
vector_add, scan, reduce = gw.VectorAdd(device), gw.Scan(device), gw.Reduce(device)


def forward(x):
    """Run a few primitives."""
    doubled = vector_add.execute(a=x, b=x).output
    return scan.execute(input=doubled).output


forward(gw.asarray(values, device))  # the first call compiles; leave it out

with gw.profile(device) as prof:
    x = gw.asarray(values, device)
    with prof.region("forward pass"):
        y = forward(x)
    with prof.region("total"):
        total = reduce.execute(input=y).output.to_numpy()[0]

print(prof.key_averages().table(sort_by="gpu_time_total", row_limit=15))
path = Path(tempfile.mkdtemp()) / "trace.json"
prof.export_chrome_trace(path)
print(f"a trace of {path.stat().st_size} bytes; open it in ui.perfetto.dev")
print(f"right: {total == np.cumsum(2 * values, dtype=np.uint32).sum(dtype=np.uint32)}")
