"""Gaussian splats: each tile of a picture gets the splats that it shows, the nearest first; the counts stay on the GPU.

docs/howto/splats.md explains each step. Usage: python examples/splats.py [splats] [picture.png]
"""

import sys
import time

import numpy as np

import gridwise_py as gw

TILE, WIDTH, HEIGHT, FOCAL, DISTANCE = 16, 960, 640, 1100.0, 5.0

RENDER = """
@group(0) @binding(0) var<storage, read> tiles: array<u32>;
@group(0) @binding(1) var<storage, read> starts: array<u32>;
@group(0) @binding(2) var<storage, read> lengths: array<u32>;
@group(0) @binding(3) var<storage, read> count: array<u32>;
@group(0) @binding(4) var<storage, read> owners: array<u32>;
@group(0) @binding(5) var<storage, read> order: array<u32>;
@group(0) @binding(6) var<storage, read> splats: array<f32>;  // x, y, radius, red, green, blue
@group(0) @binding(7) var<storage, read_write> image: array<f32>;
@group(0) @binding(8) var<uniform> width: u32;

// A workgroup for each tile that shows something; an invocation for each pixel.
@compute @workgroup_size(16, 16)
fn main(@builtin(workgroup_id) run: vec3<u32>, @builtin(local_invocation_id) place: vec3<u32>) {
  if (run.x >= count[0]) { return; }
  let tiles_x = (width + 15u) / 16u;
  let pixel = vec2<u32>(tiles[run.x] % tiles_x, tiles[run.x] / tiles_x) * 16u + place.xy;
  var colour = vec3<f32>(0.0);
  var through = 1.0;  // the light that gets this far
  for (var k = starts[run.x]; k < starts[run.x] + lengths[run.x] && through > 0.004; k++) {
    let splat = 6u * order[owners[k]];
    let d = (vec2<f32>(pixel) + 0.5 - vec2<f32>(splats[splat], splats[splat + 1u])) / splats[splat + 2u];
    let alpha = 0.9 * exp(-4.5 * dot(d, d));  // the radius is three standard deviations
    if (dot(d, d) < 1.0) {
      colour += through * alpha * vec3<f32>(splats[splat + 3u], splats[splat + 4u], splats[splat + 5u]);
      through *= 1.0 - alpha;
    }
  }
  let first = 3u * (pixel.y * width + pixel.x);
  if (pixel.x >= width || first + 2u >= arrayLength(&image)) { return; }
  image[first] = colour.x;
  image[first + 1u] = colour.y;
  image[first + 2u] = colour.z;
}
"""


def tiles_of(length):
    """Return how many tiles an edge of the picture has."""
    return -(-length // TILE)


def rectangle(x, y, radius, width, height):
    """Return the tiles that a square touches as one u32: left, top and how many to the right and down, 8 bits each."""

    def cut(at, tiles):
        return gw.u32(gw.clip(gw.floor(at / TILE), 0.0, float(tiles)))

    left, top = cut(x - radius, tiles_of(width)), cut(y - radius, tiles_of(height))
    right, bottom = cut(x + radius + TILE, tiles_of(width)), cut(y + radius + TILE, tiles_of(height))
    return left | top << 8 | right - left << 16 | bottom - top << 24


def bin_splats(x, y, depth, radius, room, width=WIDTH, height=HEIGHT):
    """Return the splats in order of depth, places in that order for each tile, and the runs of tiles.

    `room` is that of pairs of a tile and a splat. Nothing is read back.
    """
    order = gw.argsort(depth)
    # Stored before they are put in order: one number of each splat lies anywhere in memory, not three.
    rectangles = gw.asarray(gw.asarray(rectangle(x, y, radius, width, height))[order])
    across, down = rectangles >> 16 & 0xFF, rectangles >> 24
    offsets = gw.cumulative_sum(across * down, dtype=np.uint32, include_initial=True)
    owner = gw.segment_ids(offsets, size=room)  # of each pair; the GPU knows how many there are
    # The numbers of a splat's tiles are computed where the sort reads them, and stored nowhere.
    rank, mine = gw.index - gw.gather(offsets, owner), gw.gather(rectangles, owner)
    columns = gw.maximum(mine >> 16 & 0xFF, 1)
    tile = ((mine >> 8 & 0xFF) + rank // columns) * tiles_of(width) + (mine & 0xFF) + rank % columns
    # Pairs come in order of depth, and the sort is stable: so it only sorts by the bits of a tile's number.
    bits = (tiles_of(width) * tiles_of(height) - 1).bit_length()
    pairs = gw.SortPairs(x.device, tile, "u32", end_bit=bits).execute(values=owner).outputs
    return order, pairs["output_values"], gw.run_length_encode(pairs["output_keys"])


def project(points, size, angle):
    """Return x, y, depth and radius on the picture of points around which the camera turns."""
    x, y, z = (gw.asarray(np.ascontiguousarray(points[:, k]), size.device) for k in range(3))
    cos, sin = gw.cos(angle), gw.sin(angle)
    depth = gw.asarray(z * cos - x * sin + DISTANCE)
    scale = FOCAL / depth
    across, down = (x * cos + z * sin) * scale + WIDTH / 2, HEIGHT / 2 - y * scale
    return gw.asarray(across), gw.asarray(down), depth, gw.asarray(size * scale)


def scene(count):
    """Return points, sizes and colours of splats on a knot."""
    rng = np.random.default_rng(0)
    t, u = rng.random((2, count)) * 2 * np.pi
    ring = np.stack([(1 + 0.42 * np.cos(3 * t)) * np.cos(2 * t), 0.5 * np.sin(3 * t),
                     (1 + 0.42 * np.cos(3 * t)) * np.sin(2 * t)], 1)  # fmt: skip
    tube = rng.normal(size=(count, 3))
    tube *= 0.2 / np.linalg.norm(tube, axis=1, keepdims=True)
    light = 0.35 + 0.65 * np.clip(tube @ [0.3, 0.8, -0.5] / 0.2, 0, 1)
    colours = (0.5 + 0.5 * np.cos(2 * t[:, None] + np.array([0.0, 2.1, 4.2]))) * light[:, None]
    size = 0.03 * (20000 / count) ** 0.4 * (0.6 + 0.8 * u / (2 * np.pi))
    return [np.ascontiguousarray(each, dtype=np.float32) for each in (ring + tube, size, colours)]


def by_numpy(x, y, depth, radius, room, width=WIDTH, height=HEIGHT):
    """Return the same tiles and splats as `bin_splats`, pair by pair."""
    leaves = gw.f32("x"), gw.f32("y"), gw.f32("radius")
    rectangles = rectangle(*leaves, width, height).numpy(x=x, y=y, radius=radius)
    order = np.argsort(depth, kind="stable")
    mine = rectangles[order]
    counts = ((mine >> 16 & 0xFF) * (mine >> 24)).astype(np.int64)
    owner = np.repeat(np.arange(len(order)), counts)[:room]
    rank = np.arange(owner.size) - (np.cumsum(counts) - counts)[owner]
    of = mine[owner].astype(np.int64)
    columns = of >> 16 & 0xFF
    tile = ((of >> 8 & 0xFF) + rank // columns) * tiles_of(width) + (of & 0xFF) + rank % columns
    by_tile = np.argsort(tile, kind="stable")
    return tile[by_tile], order[owner[by_tile]]


def render(device, binned, splats):
    """Return the picture as an Array of f32, shape (HEIGHT, WIDTH, 3)."""
    order, owners, (tiles, starts, lengths) = binned
    names = ["tiles", "starts", "lengths", "count", "owners", "order", "splats"]
    kernel = gw.Kernel(
        device, RENDER, {**dict.fromkeys(names, "read"), "image": "read_write", "width": "uniform"},
        workgroups=(tiles_of(WIDTH) * tiles_of(HEIGHT), 1, 1),
    )  # fmt: skip
    arrays = {"tiles": tiles, "starts": starts, "lengths": lengths, "owners": owners, "order": order, "splats": splats}
    buffers = {name: array.buffer for name, array in arrays.items()}  # whole: the kernel looks at the count itself
    image = gw.zeros(HEIGHT * WIDTH * 3, np.float32, device)
    kernel.execute(**buffers, count=tiles.count.buffer, image=image, width=WIDTH)
    return image.reshape(HEIGHT, WIDTH, 3)


def main(count, path):
    """Bin the splats of some frames, compare the last one with numpy, and draw it."""
    device = gw.request_device()
    points, size, colours = scene(count)
    angle = gw.asarray(np.float32([0.5]), device)
    projected = project(points, gw.asarray(size, device), angle)
    room = 8 * count + tiles_of(WIDTH) * tiles_of(HEIGHT)
    with gw.capture(device) as frame:  # the calls of a frame, made once
        binned = bin_splats(*projected, room)
    for _ in range(3):  # the first time compiles
        begin = time.perf_counter()
        frame.execute()
        gw.synchronize(device)
        seconds = time.perf_counter() - begin
    order, owners, runs = binned
    pairs = owners.to_numpy()
    print(f"{count:,} splats, {pairs.size:,} pairs with tiles, {seconds * 1e3:.2f} ms a frame without a readback")

    tiles, splats = by_numpy(*(each.to_numpy() for each in projected), room)
    got = np.repeat(runs.values.to_numpy(), runs.lengths.to_numpy())
    print(
        "tiles equal numpy's:",
        np.array_equal(got, tiles),
        "splats, too:",
        np.array_equal(order.to_numpy()[pairs], splats),
    )
    if path:
        x, y, _, radius = (each.to_numpy() for each in projected)
        attributes = gw.asarray(np.column_stack([x, y, radius, colours]).ravel(), device)
        save(path, render(device, binned, attributes).to_numpy(), runs)


def save(path, image, runs):
    """Draw the picture, and how many splats each tile has."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    numbers = np.zeros(tiles_of(WIDTH) * tiles_of(HEIGHT))
    numbers[runs.values.to_numpy()] = runs.lengths.to_numpy()
    figure, (left, right) = plt.subplots(1, 2, figsize=(13, 4.6), constrained_layout=True)
    left.imshow(np.clip(image, 0, 1) ** 0.6)
    left.set_title("splats, the nearest first")
    shown = right.imshow(numbers.reshape(tiles_of(HEIGHT), tiles_of(WIDTH)), cmap="magma")
    right.set_title(f"splats of each tile of {TILE} × {TILE} pixels")
    figure.colorbar(shown, ax=right, shrink=0.8)
    for axes in (left, right):
        axes.set_xticks([])
        axes.set_yticks([])
    figure.savefig(path, dpi=100)
    print(f"picture: {path}")


if __name__ == "__main__":
    is_cpu = gw.capabilities(gw.default_device()).is_cpu
    main(int(float(sys.argv[1])) if len(sys.argv) > 1 else 20_000 if is_cpu else 3_000_000, "".join(sys.argv[2:3]))
