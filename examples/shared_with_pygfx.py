"""Compute on pygfx's device, into a buffer that pygfx draws: nothing goes through the host.

A random walk is the scan of its steps; a kernel of one's own puts it into the positions of a line.
"""

import numpy as np
import pygfx as gfx
import wgpu
from pygfx.renderers.wgpu.engine.update import ensure_wgpu_object
from rendercanvas.offscreen import RenderCanvas

import gridwise_py as gw

PLACE = """
@group(0) @binding(0) var<storage, read> walk: array<f32>;
@group(0) @binding(1) var<storage, read_write> positions: array<f32>;
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  let i = id.x;
  if (i < arrayLength(&walk)) {
    positions[3u * i] = f32(i);
    positions[3u * i + 1u] = walk[i];
  }
}"""

# pygfx asks for few features. Without this line all of it works, too, but GPU times are None.
gfx.renderers.wgpu.enable_wgpu_features("timestamp-query")
device = gfx.renderers.wgpu.get_shared().device

n = 4096
steps = np.random.default_rng(0).choice(np.array([-1, 1], dtype=np.float32), n)
scan = gw.Scan(device, "f32", gw.Add)
# Once before it is timed: drivers may still compile in the first dispatch.
scan.execute(input=gw.asarray(steps, device))
run = scan.execute(enable_gpu_timing=True)
print(run.get_timing_result())

usage = wgpu.BufferUsage.STORAGE | wgpu.BufferUsage.VERTEX
buffer = gfx.Buffer(nitems=n, nbytes=12 * n, format="3xf4", usage=usage)  # pygfx's buffer
positions = gw.asarray(ensure_wgpu_object(buffer), dtype="f32")  # the same memory, as an Array
place = gw.Kernel(device, PLACE, {"walk": "read", "positions": "read_write"}, -(-n // 64))
place.execute(walk=run.output, positions=positions)

canvas = RenderCanvas(size=(320, 240), pixel_ratio=1)
renderer = gfx.renderers.WgpuRenderer(canvas)
scene = gfx.Scene().add(gfx.Line(gfx.Geometry(positions=buffer), gfx.LineMaterial(thickness=2)))
camera = gfx.OrthographicCamera(n, 512, maintain_aspect=False)
camera.local.position = (n / 2, 0, 10)
canvas.request_draw(lambda: renderer.render(scene, camera))
image = np.asarray(canvas.draw())
print(f"drawn columns: {np.count_nonzero(image[..., :3].any(axis=(0, 2)))} of {image.shape[1]}")
