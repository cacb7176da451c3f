"""Await a primitive, its times and its items, as in a notebook: the event loop stays free meanwhile.

In a notebook, write the three ``await`` lines of `main` into cells as they stand. A cell that ends in a
`TimingResult` shows it as a table.
"""

import asyncio

import numpy as np

import gridwise_py as gw


async def count_ticks(ticks: list[int]) -> None:
    """Stand for whatever else the event loop has to do."""
    while True:
        ticks[0] += 1
        await asyncio.sleep(0.001)


async def main() -> None:
    """Run a scan without blocking the event loop."""
    device = gw.request_device()
    x = gw.asarray(np.ones(1_000_000, dtype=np.uint32), device)
    scan = gw.Scan(device, "u32", gw.Add)
    scan.execute(input=x)  # once before it is timed: drivers may still compile in the first dispatch
    ticks = [0]
    ticking = asyncio.create_task(count_ticks(ticks))

    run = await scan.execute_async(input=x, enable_gpu_timing=True, enable_cpu_timing=True, trials=5)
    result = await scan.get_timing_result_async()
    items = await run.output.to_numpy_async()

    ticking.cancel()
    print(result)
    print(f"last item: {items[-1]}")
    print(f"the event loop went on meanwhile: {ticks[0] > 1}")


asyncio.run(main())
