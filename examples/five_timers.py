"""One job, timed in five ways, with warm-up and without: `gridwise timers` in small, as one calls it from Python."""

from rich.console import Console

from gridwise_py.bench.report.timers import timers_table
from gridwise_py.bench.sweep.timers import Workload, run_timers

document = run_timers(
    repeats=5,
    cold_repeats=2,
    warmup_s=0.05,
    idle_s=0.1,
    workloads=[
        Workload("vector add with upload and download", 500_000, True),
        Workload("vector add", 1_000_000, False),
    ],
)
Console(width=150).print(timers_table(document))

medians = {row["timer"]: row["warm"]["summary"]["median_ns"] for row in document["workloads"][1]["timers"]}
print(f"submit only: {medians['submit only'] / medians['GPU timestamps']:.1%} of what the GPU took")
