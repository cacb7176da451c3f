"""Runs plans in headless Chromium, from their JSON: another compiler (Tint) and another adapter (SwiftShader)."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

import gridwise_py as gw
from gridwise_py.planning.shaders import prologue
from helpers import tint

#: What SwiftShader in Chromium is, with WebGPU's lowest limits: subgroups of 4, on a CPU, so that tickets are taken.
SWIFTSHADER = gw.Capabilities(
    adapter="SwiftShader", adapter_type="CPU", features=frozenset({"subgroup"}), subgroup_size=4
)

_PAGE = """<!doctype html><meta charset="utf-8"><script>
const TYPES = {uniform: "uniform", read: "read-only-storage", read_write: "storage"};
const {STORAGE, UNIFORM, COPY_SRC, COPY_DST, MAP_READ} = GPUBufferUsage;
const pipelines = new Map();

function pipelineOf(device, plan, step) {
  const key = JSON.stringify([step.shader, step.entry_point, step.constants, step.bindings.map((b) => b.access)]);
  if (!pipelines.has(key)) {
    const layout = device.createBindGroupLayout({entries: step.bindings.map((b) => (
      {binding: b.index, visibility: GPUShaderStage.COMPUTE, buffer: {type: TYPES[b.access]}}))});
    const pipeline = device.createComputePipeline({
      layout: device.createPipelineLayout({bindGroupLayouts: [layout]}),
      compute: {module: device.createShaderModule({code: plan.shaders[step.shader].text}),
                entryPoint: step.entry_point, constants: step.constants},
    });
    pipelines.set(key, {layout, pipeline});
  }
  return pipelines.get(key);
}

function encode(device, encoder, plan, buffers, step) {
  if (step.kind == "fill") {
    encoder.clearBuffer(buffers[step.buffer], step.offset_bytes, step.size_bytes);
  } else if (step.kind == "copy") {
    encoder.copyBufferToBuffer(buffers[step.source], step.source_offset_bytes,
                               buffers[step.destination], step.destination_offset_bytes, step.size_bytes);
  } else {
    const {layout, pipeline} = pipelineOf(device, plan, step);
    const entries = step.bindings.map((b) => ({binding: b.index, resource:
      {buffer: buffers[b.buffer], offset: b.offset_bytes, size: b.size_bytes ?? undefined}}));
    const pass = encoder.beginComputePass();
    pass.setPipeline(pipeline);
    pass.setBindGroup(0, device.createBindGroup({layout, entries}));
    pass.dispatchWorkgroups(...step.workgroups);
    pass.end();
  }
}

async function run(device, {plan, inputs, outputs, trials}) {
  const buffers = {};
  for (const spec of plan.buffers) {
    const usage = (spec.role == "params" ? UNIFORM : STORAGE) | COPY_SRC | COPY_DST;
    const buffer = buffers[spec.name] = device.createBuffer({size: spec.size_bytes, usage});
    if (spec.words) device.queue.writeBuffer(buffer, 0, new Uint32Array(spec.words));
    if (inputs[spec.name]) device.queue.writeBuffer(buffer, 0, Uint8Array.fromBase64(inputs[spec.name]));
  }
  const encoder = device.createCommandEncoder();
  for (let trial = 0; trial < trials; ++trial)
    for (const step of plan.steps) encode(device, encoder, plan, buffers, step);
  // No items need no buffer.
  const copies = outputs.map((name) => {
    if (!buffers[name]) return null;
    const size = buffers[name].size;
    const copy = device.createBuffer({size, usage: MAP_READ | COPY_DST});
    encoder.copyBufferToBuffer(buffers[name], 0, copy, 0, size);
    return copy;
  });
  device.queue.submit([encoder.finish()]);
  const results = [];
  for (const copy of copies) {
    if (!copy) { results.push(""); continue; }
    await copy.mapAsync(GPUMapMode.READ);
    results.push(new Uint8Array(copy.getMappedRange()).toBase64());
    copy.destroy();
  }
  for (const buffer of Object.values(buffers)) buffer.destroy();
  return results;
}

(async () => {
  const report = {results: []};
  try {
    const adapter = await navigator.gpu.requestAdapter();
    if (!adapter) throw new Error("no WebGPU adapter");
    report.adapter = `${adapter.info.vendor} ${adapter.info.architecture} ${adapter.info.description}`;
    const device = await adapter.requestDevice({requiredFeatures: ["subgroups"]});
    const errors = [];
    device.addEventListener("uncapturederror", (e) => { e.preventDefault(); errors.push(e.error.message); });
    for (const job of await (await fetch("data")).json()) {
      report.results.push(await run(device, job));
      if (errors.length) throw new Error(`${job.plan.primitive}: ${errors.join("; ")}`);
    }
  } catch (error) {
    report.error = String(error);
  }
  await fetch("report", {method: "POST", body: JSON.stringify(report)});
})();
</script>
"""


@dataclass(frozen=True)
class Job:
    """A plan whose arguments each start at the first item of a buffer of their own.

    Attributes
    ----------
    plan : Plan
    inputs : mapping from str to ndarray
        Items of buffers, by name.
    outputs : mapping from str to dtype
        The buffers to read.
    trials : int
        How often the steps are done, on buffers that keep what they hold: twice finds what is not put back.
    """

    plan: gw.Plan
    inputs: Mapping[str, np.ndarray]
    outputs: Mapping[str, np.dtype]
    trials: int = 2


def _whole_items(data: bytes, dtype: np.dtype) -> np.ndarray:
    """Return the items of a buffer, whose length is a multiple of 16 bytes, and so not always of an item's."""
    return np.frombuffer(data[: len(data) // dtype.itemsize * dtype.itemsize], dtype)


def replay(
    jobs: Sequence[Job], *, chromium: str | None = None, timeout_s: float = 300.0
) -> tuple[str, list[dict[str, np.ndarray]]]:
    """Run plans; return the adapter, and of each plan the outputs: all items that their buffers hold.

    Raises
    ------
    tint.TintError
        If there is no Chromium, or it reports an error.
    """
    report = tint.ask(_PAGE, [_described(job) for job in jobs], chromium=chromium, timeout_s=timeout_s)
    results = [
        {
            name: _whole_items(base64.b64decode(data), job.outputs[name])
            for name, data in zip(job.outputs, found, strict=True)
        }
        for found, job in zip(report["results"], jobs, strict=True)
    ]
    return report["adapter"], results


def _described(job: Job) -> dict[str, object]:
    plan = json.loads(job.plan.to_json())
    for shader in plan["shaders"].values():
        shader["text"] = prologue("tint", shader["text"]) + shader["text"]
    inputs = {}
    for name, items in job.inputs.items():
        data = items.tobytes()
        inputs[name] = base64.b64encode(data + bytes(-len(data) % 4)).decode()
    return {"plan": plan, "inputs": inputs, "outputs": list(job.outputs), "trials": job.trials}
