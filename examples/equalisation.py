"""Histogram equalisation: a picture of few grey levels gets all of them; histogram, scan and take, without a readback.

docs/howto/equalisation.md explains it. Usage: python examples/equalisation.py [rows] [picture.png]
"""

import sys
import time

import numpy as np

import gridwise_py as gw

LEVELS = 256


def equalised(image):
    """Return a picture of u8 whose levels are spread over 0 to 255; nothing is read back. Up to 2^24 pixels."""
    counts, _ = gw.histogram(image, LEVELS, range=(0, LEVELS))
    upto = gw.cumsum(counts, dtype=np.uint32)  # pixels of each level or a darker one
    darkest = gw.min(gw.where(counts > 0, upto, image.size))  # pixels of the darkest level that there is
    most = gw.maximum(image.size - darkest, 1)
    # Rounded to the nearest in integers: 255 times 2^24 pixels are still below 2^32.
    level = (gw.where(counts > 0, upto - darkest, 0) * (LEVELS - 1) + most // 2) // most
    table = gw.asarray(level).astype(np.uint8)
    return gw.take(table, image)


def by_numpy(image):
    """Do the same with numpy, in integers of 64 bits."""
    counts = np.bincount(image.ravel(), minlength=LEVELS)
    upto = np.cumsum(counts)
    darkest = upto[counts > 0][0]
    most = max(image.size - darkest, 1)
    table = (np.where(counts > 0, upto - darkest, 0) * (LEVELS - 1) + most // 2) // most
    return table.astype(np.uint8)[image]


def picture(rows):
    """Return ridges in fog, shape (rows, 3 * rows // 2): levels from some 120 to 190."""
    rng = np.random.default_rng(7)
    columns = 3 * rows // 2
    x, y = np.meshgrid(np.linspace(0, 1.5, columns), np.linspace(0, 1, rows))
    light = 0.9 - 0.25 * y
    for ridge in range(7):
        depth = 0.25 + 0.1 * ridge
        waves = zip(rng.uniform(3, 30, 6), rng.uniform(0, 7, 6), 0.012 + 0.05 / np.arange(1, 7), strict=True)
        top = depth + sum(a * np.sin(f * x + p) / (1 + f / 9) for f, p, a in waves)
        shade = 0.75 - 0.09 * ridge + 0.25 * (y - top) + 0.04 * np.sin(60 * (x + y * ridge) + 9 * np.sin(14 * y))
        light = np.where(y > top, shade, light)
    noise = rng.normal(0, 0.01, light.shape)
    return (120 + 70 * np.clip(light + noise, 0, 1)).astype(np.uint8)


def main(rows, path):
    """Equalise a picture, compare it with numpy's, and draw both."""
    device = gw.request_device()
    host = picture(rows)
    image = gw.asarray(host, device)
    with gw.capture(device) as calls:
        result = equalised(image)
    for _ in range(3):  # the first time compiles
        begin = time.perf_counter()
        calls.execute()
        gw.synchronize(device)
        seconds = time.perf_counter() - begin
    begin = time.perf_counter()
    expected = by_numpy(host)
    numpy_seconds = time.perf_counter() - begin
    got = result.to_numpy()
    print(f"{host.shape[1]} x {host.shape[0]} pixels: {seconds * 1e3:.2f} ms, numpy {numpy_seconds * 1e3:.2f} ms")
    print(f"levels: {host.min()} to {host.max()}, equalised {got.min()} to {got.max()}")
    print(f"pixels that differ from numpy's: {np.count_nonzero(got != expected)}")
    if path:
        save(path, host, got)


def save(path, before, after):
    """Draw both pictures with their histograms."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(2, 2, figsize=(11, 5.2), height_ratios=(5, 1), constrained_layout=True)
    for column, (title, image) in zip(axes.T, (("before", before), ("after", after)), strict=True):
        column[0].imshow(image, cmap="gray", vmin=0, vmax=255)
        column[0].set_title(title)
        column[0].axis("off")
        column[1].bar(range(LEVELS), np.bincount(image.ravel(), minlength=LEVELS), width=1, color="0.3")
        column[1].set_yticks([])
        column[1].set_xlim(0, 255)
    figure.savefig(path, dpi=80)
    print(f"picture: {path}")


if __name__ == "__main__":
    is_cpu = gw.capabilities(gw.default_device()).is_cpu
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 480 if is_cpu else 2730, "".join(sys.argv[2:3]))
