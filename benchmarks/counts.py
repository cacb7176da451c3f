"""What a count on the GPU costs, and what a readback would.

    python benchmarks/counts.py [--sizes 20 24 28] [--samples 21]

First table: GPU spans of single calls, in µs, of a plain array of 2^k items, of a counted one of which all items
count, and of counted ones of which a half, a hundredth and none count, with the plain time of that half beside it.
The span begins with the first kernel, so it leaves out the copy of the count.

Second table: µs from the first call of a chain to the idle queue. A count that a kernel writes (half of the room)
says how many items are copied, sorted and summed: once with the count on the GPU, once with the count read and a
slice taken. Variants take turns; medians.
"""

import argparse
import statistics
import time

import numpy as np

import gridwise_py as gw


def gpu_span_us(execute, samples):
    """Return the median of the GPU's time of single calls."""
    spans = []
    for _ in range(samples + 2):
        span = execute().get_timing_result().gpu_span_ns
        spans.append(span / 1e3)
    return statistics.median(spans[2:])


def number(value, device):
    return gw.asarray(np.array([value], dtype=np.uint32), device)


def spans(device, n, samples):
    """Print a row for each primitive."""
    x = gw.asarray(np.random.default_rng(0).integers(0, 1 << 32, n, dtype=np.uint32), device)
    out = gw.empty(n, "u32", device)
    shares = {"all": n, "half": n // 2, "1/100": n // 100, "none": 0}
    counts = {name: number(count, device) for name, count in shares.items()}
    for primitive in (gw.Copy(device), gw.Reduce(device), gw.Scan(device), gw.Sort(device)):
        output = None if isinstance(primitive, gw.Reduce) else out

        def run(input, count=None, primitive=primitive, output=output):
            return primitive.execute(input=input, n=count, output=output, enable_gpu_timing=True)

        row = [gpu_span_us(lambda run=run: run(x), samples)]
        row += [gpu_span_us(lambda run=run, c=count: run(x, c), samples) for count in counts.values()]
        row.append(gpu_span_us(lambda run=run: run(x[: n // 2]), samples))
        print(f"| {primitive.name} 2^{n.bit_length() - 1} | " + " | ".join(f"{value:.1f}" for value in row) + " |")


def chains(device, n, samples):
    """Print a row: without a readback, and with one."""
    x = gw.asarray(np.random.default_rng(0).integers(0, 1 << 32, n, dtype=np.uint32), device)
    source = gw.asarray(np.array([n // 2, n], dtype=np.uint32), device)
    least, copy, sort, reduce = gw.Reduce(device, "u32", gw.Min), gw.Copy(device), gw.Sort(device), gw.Reduce(device)

    def on_gpu():
        count = least.execute(input=source).output
        some = copy.execute(input=x, n=count).output
        return reduce.execute(input=sort.execute(input=some).output).output

    def read():
        count = int(least.execute(input=source).output.item())
        some = copy.execute(input=x[:count]).output
        return reduce.execute(input=sort.execute(input=some).output).output

    def batched():
        with gw.batch(device):
            return on_gpu()

    times = {on_gpu: [], batched: [], read: []}
    assert len({chain().item() for chain in times}) == 1, "all give the same"
    for _ in range(samples):
        for chain, found in times.items():
            gw.synchronize(device)
            begin = time.perf_counter_ns()
            chain()
            gw.synchronize(device)
            found.append((time.perf_counter_ns() - begin) / 1e3)
    medians = [statistics.median(found) for found in times.values()]
    print(f"| 2^{n.bit_length() - 1} | " + " | ".join(f"{value:.1f}" for value in medians) + " |")


def main():
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=[20, 24, 28])
    parser.add_argument("--samples", type=int, default=21)
    options = parser.parse_args()
    device = gw.request_device()
    print(f"{gw.capabilities(device)}\n")
    print(
        "| GPU span, µs | plain | all count | half | 1/100 | none | plain half |\n"
        "| --- | --- | --- | --- | --- | --- | --- |"
    )
    for size in options.sizes:
        spans(device, 1 << size, options.samples)
    print("\n| chain, µs | count on the GPU | the same in a batch | count read |\n| --- | --- | --- | --- |")
    for size in options.sizes:
        chains(device, 1 << size, options.samples)


if __name__ == "__main__":
    main()
