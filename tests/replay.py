"""Runs plans in headless Chromium, from their JSON: another compiler (Tint) and another adapter (SwiftShader)."""

from __future__ import annotations

import json
from collections.abc import Sequence

import numpy as np
import tint

import gridwise_py as gw
from gridwise_py.shaders import prologue

__all__ = ["replay"]

_PAGE = """<!doctype html><meta charset="utf-8"><script>
const TYPES = {uniform: "uniform", read: "read-only-storage", read_write: "storage"};
const {STORAGE, UNIFORM, COPY_SRC, COPY_DST, MAP_READ} = GPUBufferUsage;

async function run(device, plan, inputs, output) {
  const buffers = {};
  for (const spec of plan.buffers) {
    const usage = (spec.role == "params" ? UNIFORM : STORAGE) | COPY_SRC | COPY_DST;
    const buffer = buffers[spec.name] = device.createBuffer({size: spec.size_bytes, usage});
    const words = inputs[spec.name] ?? spec.words;
    if (words) device.queue.writeBuffer(buffer, 0, new Uint32Array(words));
  }
  const encoder = device.createCommandEncoder();
  for (const step of plan.steps) {
    if (step.kind != "kernel") throw new Error(`a step that is a ${step.kind}`);
    const layout = device.createBindGroupLayout({entries: step.bindings.map((b) => (
      {binding: b.index, visibility: GPUShaderStage.COMPUTE, buffer: {type: TYPES[b.access]}}))});
    const entries = step.bindings.map((b) => ({binding: b.index, resource:
      {buffer: buffers[b.buffer], offset: b.offset_bytes, size: b.size_bytes ?? undefined}}));
    const pass = encoder.beginComputePass();
    pass.setPipeline(device.createComputePipeline({
      layout: device.createPipelineLayout({bindGroupLayouts: [layout]}),
      compute: {module: device.createShaderModule({code: plan.shaders[step.shader].text}), constants: step.constants},
    }));
    pass.setBindGroup(0, device.createBindGroup({layout, entries}));
    pass.dispatchWorkgroups(...step.workgroups);
    pass.end();
  }
  const size = plan.buffers.find((spec) => spec.name == output).size_bytes;
  const copy = device.createBuffer({size, usage: MAP_READ | COPY_DST});
  encoder.copyBufferToBuffer(buffers[output], 0, copy, 0, size);
  device.queue.submit([encoder.finish()]);
  await copy.mapAsync(GPUMapMode.READ);
  return [...new Uint32Array(copy.getMappedRange())];
}

(async () => {
  const report = {results: []};
  try {
    const adapter = await navigator.gpu.requestAdapter();
    if (!adapter) throw new Error("no WebGPU adapter");
    report.adapter = `${adapter.info.vendor} ${adapter.info.architecture} ${adapter.info.description}`;
    const device = await adapter.requestDevice();
    const errors = [];
    device.addEventListener("uncapturederror", (e) => { e.preventDefault(); errors.push(e.error.message); });
    for (const {plan, inputs, output} of await (await fetch("data")).json()) {
      report.results.push(await run(device, plan, inputs, output));
      if (errors.length) throw new Error(`${plan.primitive}: ${errors.join("; ")}`);
    }
  } catch (error) {
    report.error = String(error);
  }
  await fetch("report", {method: "POST", body: JSON.stringify(report)});
})();
</script>
"""


def replay(
    jobs: Sequence[tuple[gw.Plan, np.ndarray]], *, chromium: str | None = None, timeout_s: float = 120.0
) -> tuple[str, list[np.ndarray]]:
    """Run plans from "input" to "output", both from their first item on; return the adapter and the outputs' items.

    Raises
    ------
    tint.TintError
        If there is no Chromium, or it reports an error.
    """
    described = []
    for plan, items in jobs:
        data = json.loads(plan.to_json())
        for shader in data["shaders"].values():
            shader["text"] = prologue("tint", shader["text"]) + shader["text"]
        described.append({"plan": data, "inputs": {"input": items.view(np.uint32).tolist()}, "output": "output"})
    report = tint.ask(_PAGE, described, chromium=chromium, timeout_s=timeout_s)
    results = [
        np.array(words, np.uint32).view(items.dtype) for words, (_, items) in zip(report["results"], jobs, strict=True)
    ]
    return report["adapter"], results
