"""Down-sample a point cloud: one point for each cube of space that has some, their mean.

docs/howto/group-by.md explains it. Usage: python examples/voxels.py [points] [picture.png]
"""

import sys
import time

import numpy as np

import gridwise_py as gw

SIZE = 0.04  # of a voxel
BITS = 10  # of each of its three coordinates, so keys have 30


def spread(x):
    """Return u32 of 10 bits with two zeros between neighbouring ones."""
    x = (x | x << 16) & 0x030000FF
    x = (x | x << 8) & 0x0300F00F
    x = (x | x << 4) & 0x030C30C3
    return (x | x << 2) & 0x09249249


def morton(x, y, z):
    """Return the Morton code of each point's voxel: neighbours in space have neighbouring codes."""
    cells = (spread(gw.u32(gw.clip(gw.floor(c / SIZE), 0.0, 2.0**BITS - 1.0))) for c in (x, y, z))
    i, j, k = cells
    return i | j << 1 | k << 2


def down_sampling(device):
    """Return the primitive: it takes points, shape (n, 3), and gives mean x, y and z and the number of each voxel."""
    p = gw.f32("points", components=3)
    means = {name: (coordinate, "mean") for name, coordinate in zip("xyz", p, strict=True)}
    return gw.GroupBy(device, morton(*p), means, rows=gw.count, key_bits=3 * BITS)


def scene(points):
    """Return points with noise on a torus, a ball and the ground, shape (n, 3)."""
    rng = np.random.default_rng(0)
    u, v = rng.random((2, points), dtype=np.float32) * np.float32(2 * np.pi)
    torus = np.stack([(1 + 0.35 * np.cos(v)) * np.cos(u), (1 + 0.35 * np.cos(v)) * np.sin(u), 0.35 * np.sin(v)], 1)
    ball = rng.normal(size=(points, 3)).astype(np.float32)
    ball *= 0.45 / np.linalg.norm(ball, axis=1, keepdims=True)
    ground = np.stack([3 * rng.random(points) - 1.5, 3 * rng.random(points) - 1.5, np.full(points, -0.5)], 1)
    kind = rng.integers(0, 3, (points, 1))
    chosen = np.where(kind == 0, torus, np.where(kind == 1, ball, ground))
    return np.ascontiguousarray(chosen + rng.normal(scale=0.01, size=(points, 3)) + [2, 2, 1], dtype=np.float32)


def by_numpy(points):
    """Return the codes, the means and the numbers of points of all voxels."""
    code = morton(*gw.f32("points", components=3)).numpy(points=points.reshape(-1))
    found, voxel, rows = np.unique(code, return_inverse=True, return_counts=True)
    return found, np.stack([np.bincount(voxel, points[:, k]) / rows for k in range(3)], 1), rows


def picture(path, before, after, rows):
    """Draw some of the points, and the means; a brighter one stands for more points."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    figure = plt.figure(figsize=(12, 5.4), facecolor="white")
    shown = before[:: max(1, len(before) // 30000)]
    titles = f"{len(before):,} points", f"{len(after):,} voxels of {SIZE}"
    for place, (points, title, shade) in enumerate(
        zip((shown, after), titles, (shown[:, 2], np.log10(rows)), strict=True), 121
    ):
        axes = figure.add_subplot(place, projection="3d", computed_zorder=False)
        axes.scatter(*points.T, c=shade, s=1.2 if place == 121 else 3, cmap="viridis", linewidths=0)
        axes.set(title=title, xlim=(0.7, 3.3), ylim=(0.7, 3.3), zlim=(0.2, 1.8), xlabel="x", ylabel="y", zlabel="z")
        axes.set_box_aspect((2.6, 2.6, 1.6))
        axes.view_init(32, -60)
    figure.tight_layout()
    figure.savefig(path, dpi=110)
    print(f"picture: {path}")


def main(count, path):
    """Down-sample, time it, and compare with numpy."""
    device = gw.request_device()
    points = scene(count)
    on_gpu = gw.asarray(points, device)
    voxels = down_sampling(device)
    for _ in range(3):  # the first time compiles
        begin = time.perf_counter()
        found = voxels.execute(points=on_gpu).outputs
        gw.synchronize(device)
        seconds = time.perf_counter() - begin
    means = np.stack([found[name].to_numpy() for name in "xyz"], 1)
    rows = found["rows"].to_numpy()
    print(f"{count:,} points, {len(means):,} voxels, {seconds * 1e3:.2f} ms, {count / seconds:.3g} points/s")

    codes, expected, expected_rows = by_numpy(points)
    # Divisions of a GPU may round otherwise, so points on the edge of two voxels may be in the other one.
    _, here, there = np.intersect1d(found["output_keys"].to_numpy(), codes, return_indices=True)
    same = rows[here] == expected_rows[there]
    error = np.max(np.abs(means[here] - expected[there])[same])
    print(f"voxels with the same points as numpy's: {same.mean():.2%} of {len(codes):,}; all: {rows.sum() == count}")
    print(f"largest difference of a mean: {error:.1e}, right: {error < 1e-4 and same.mean() > 0.999}")
    if path:
        picture(path, points, means, rows)


if __name__ == "__main__":
    is_cpu = gw.capabilities(gw.default_device()).is_cpu
    main(int(float(sys.argv[1])) if len(sys.argv) > 1 else 10**6 if is_cpu else 10**8, "".join(sys.argv[2:3]))
