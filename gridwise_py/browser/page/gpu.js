"use strict";
// A WebGPU device that runs plans and reads timestamps. Times are in ns.

/**
 * @typedef {{trials: number, wall: number, ticks: (number|null)[][]}} Passes  of one submission, as the raw file has them
 * @typedef {{steps: any[], buffers: Record<string, GPUBuffer>, own: GPUBuffer[], labels: string[]}} BoundPlan
 */

const MAX_QUERIES = 4096;  // of a query set, by the specification
const BINDING_TYPES = {uniform: "uniform", read: "read-only-storage", read_write: "storage"};
/** @type {GPUFeatureName[]} */
const OPTIONAL_FEATURES = ["timestamp-query", "subgroups", "shader-f16"];
const WANTED_LIMITS = [
  "maxBufferSize", "maxStorageBufferBindingSize", "maxStorageBuffersPerShaderStage",
  "maxComputeInvocationsPerWorkgroup", "maxComputeWorkgroupSizeX", "maxComputeWorkgroupStorageSize",
];
const MOST_MESSAGES = 3;  // of the compiler, in an error
const LOST_AFTER_MS = 50;  // a failure may be reported before the loss of the device that caused it

const now = () => performance.now();
/** @param {number} ms @returns {number} ns */
const nsOf = (ms) => Math.round(ms * 1e6);
/** @param {number} ms */
const pause = (ms) => new Promise((done) => setTimeout(done, ms));

/** An error whose name says what kind it is. */
class CaseError extends Error {
  /** @param {string} name @param {string} message */
  constructor(name, message) {
    super(message);
    this.name = name;
  }
}

class Gpu {
  /**
   * @param {object} bundle
   * @param {GPU|undefined} gpu  navigator.gpu, or another host's
   * @returns {Promise<Gpu>}
   */
  static async open(bundle, gpu) {
    if (!gpu) throw new CaseError("NoWebGPU", "this browser has no WebGPU, or this page is not in a secure context");
    const adapter = await gpu.requestAdapter({powerPreference: "high-performance"});
    if (!adapter) throw new CaseError("NoAdapter", "the browser has WebGPU, but gives no adapter for this computer's GPU");
    // The texts use subgroup_id and num_subgroups, which came to WGSL after the feature subgroups.
    const hasSubgroupId = gpu.wgslLanguageFeatures?.has("subgroup_id") ?? false;
    const requiredFeatures = OPTIONAL_FEATURES.filter(
      (feature) => adapter.features.has(feature) && (feature !== "subgroups" || hasSubgroupId));
    const requiredLimits = Object.fromEntries(WANTED_LIMITS.map((name) => [name, adapter.limits[name]]));
    return new Gpu(bundle, adapter, await adapter.requestDevice({requiredFeatures, requiredLimits}));
  }

  /** @param {object} bundle @param {GPUAdapter} adapter @param {GPUDevice} device */
  constructor(bundle, adapter, device) {
    this.bundle = bundle;
    this.adapter = adapter;
    this.device = device;
    /** With keys that only some browsers have. @type {any} */
    this.info = adapter.info ?? {};
    this.software = Boolean(this.info.isFallbackAdapter) || this.info.type === "CPU";
    /** @type {string|null} */
    this.lost = null;
    /** @type {string[]} */
    this.errors = [];
    this.pipelines = new Map();
    device.addEventListener("uncapturederror", (event) => {
      event.preventDefault?.();
      this.errors.push(event.error.message);
    });
    device.lost.then((info) => (this.lost = `${info.reason}: ${info.message}`));
    this.hasTimestamps = device.features.has("timestamp-query");
    this.spans = 0;
    /** @type {bigint|null} */
    this.tickBase = null;
    /** @type {number|null} */
    this.tickStep = null;
    /** @type {BoundPlan|null} */
    this.canary = null;
    this.canaryTrials = 1;
    if (this.hasTimestamps) this.#makeQueries();
  }

  #makeQueries() {
    this.queries = this.device.createQuerySet({type: "timestamp", count: MAX_QUERIES});
    this.resolved = this.device.createBuffer(
      {size: 8 * MAX_QUERIES, usage: GPUBufferUsage.QUERY_RESOLVE | GPUBufferUsage.COPY_SRC});
  }

  /** Throws what went wrong since the last call. */
  check() {
    if (this.lost !== null) throw new CaseError("DeviceLost", this.lost);
    if (this.errors.length) throw new CaseError("GPUError", this.errors.splice(0).join("; "));
  }

  /** Forgets errors, and what was recorded but not read. */
  async reset() {
    await this.idle();
    this.errors.length = 0;
    this.spans = 0;
  }

  /** Another device was lost: takes over what was measured with it. @param {Gpu} other */
  async continue(other) {
    this.tickBase = other.tickBase;
    this.tickStep = other.tickStep;
    this.canaryTrials = other.canaryTrials;
    this.canary = await this.bind(this.plan(this.bundle.own.canary));
  }

  // ---- plans

  /** @param {number} number @returns {{primitive: string, buffers: any[], steps: any[], parameters: object}} */
  plan(number) {
    const {plans, buffers, steps, parameters} = this.bundle;
    const plan = plans[number];
    return {
      primitive: plan.primitive, parameters: parameters[plan.parameters],
      buffers: plan.buffers.map((i) => buffers[i]), steps: plan.steps.map((i) => steps[i]),
    };
  }

  /** @param {number} number @returns {string[]} the lines of a text */
  lines(number) {
    const [, ...runs] = this.bundle.shaders[number], lines = [];
    for (let i = 0; i < runs.length; i += 2) lines.push(...this.bundle.lines.slice(runs[i], runs[i] + runs[i + 1]));
    return lines;
  }

  /** @param {number} number @returns {Promise<string>} of the text without the lines that only browsers need */
  shaderSha256(number) {
    const [prologue] = this.bundle.shaders[number];
    return sha256Of(new TextEncoder().encode(this.lines(number).slice(prologue).join("\n")));
  }

  async #pipeline(step) {
    const key = JSON.stringify(
      [step.shader, step.entry_point, step.constants, step.bindings.map((binding) => [binding.index, binding.access])]);
    if (!this.pipelines.has(key)) this.pipelines.set(key, await this.#compiled(step));
    return this.pipelines.get(key);
  }

  async #compiled(step) {
    const entries = step.bindings.map((binding) => ({
      binding: binding.index, visibility: GPUShaderStage.COMPUTE, buffer: {type: BINDING_TYPES[binding.access]},
    }));
    const layout = this.device.createBindGroupLayout({entries});
    const lines = this.lines(step.shader);
    this.device.pushErrorScope("validation");
    const module = this.device.createShaderModule({code: lines.join("\n")});
    const refusal = this.device.popErrorScope();
    if (await refusal) throw new CaseError("ShaderError", `${step.label}: ${await this.#compilerWords(module, lines)}`);
    const pipeline = await this.device.createComputePipelineAsync({
      layout: this.device.createPipelineLayout({bindGroupLayouts: [layout]}),
      compute: {module, entryPoint: step.entry_point, constants: step.constants},
    });
    return {layout, pipeline};
  }

  async #compilerWords(module, lines) {
    const {messages} = await module.getCompilationInfo();
    const errors = [...messages].filter((message) => message.type === "error").slice(0, MOST_MESSAGES);
    const texts = errors.map(({lineNum, message}) => {
      const line = lines[lineNum - 1]?.trim();
      return `line ${lineNum}: ${message}` + (line ? `, in \`${line}\`` : "");
    });
    return `the browser's compiler refused the text: ${texts.join("; ") || "it gave no reason"}`;
  }

  // ---- buffers

  /** @param {number} size_bytes @param {ArrayBufferView} [data] @returns {GPUBuffer} */
  buffer(size_bytes, data) {
    const {STORAGE, COPY_SRC, COPY_DST} = GPUBufferUsage;
    const size = Math.max(16, 16 * Math.ceil(size_bytes / 16));
    const made = this.device.createBuffer({size, usage: STORAGE | COPY_SRC | COPY_DST});
    if (data?.byteLength) this.write(made, data);
    return made;
  }

  write(buffer, data) {
    const whole = data.byteLength - data.byteLength % 4;  // writes are of whole words
    const bytes = new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
    this.device.queue.writeBuffer(buffer, 0, bytes, 0, whole);
    if (whole < bytes.length) {
      const last = new Uint8Array(4);
      last.set(bytes.subarray(whole));
      this.device.queue.writeBuffer(buffer, whole, last);
    }
  }

  /**
   * @param {ReturnType<Gpu["plan"]>} plan
   * @param {Record<string, GPUBuffer>} [given]  the buffers of arguments, by name
   * @returns {Promise<BoundPlan>}
   */
  async bind(plan, given = {}) {
    /** @type {BoundPlan} */
    const bound = {steps: [], buffers: {...given}, own: [], labels: []};
    for (const spec of plan.buffers) if (!bound.buffers[spec.name]) bound.own.push(this.#addBuffer(bound.buffers, spec));
    for (const step of plan.steps) {
      bound.steps.push(step.kind === "kernel" ? await this.#boundKernel(step, bound.buffers) : step);
      if (step.kind === "kernel") bound.labels.push(step.label);
    }
    this.check();
    return bound;
  }

  #addBuffer(buffers, spec) {
    const {UNIFORM, STORAGE, COPY_SRC, COPY_DST} = GPUBufferUsage;
    const usage = (spec.role === "params" ? UNIFORM : STORAGE) | COPY_SRC | COPY_DST;
    const made = this.device.createBuffer({size: spec.size_bytes, usage});
    if (spec.words) this.device.queue.writeBuffer(made, 0, new Uint32Array(spec.words));
    buffers[spec.name] = made;
    return made;
  }

  async #boundKernel(step, buffers) {
    const {layout, pipeline} = await this.#pipeline(step);
    const entries = step.bindings.map(({index, buffer, offset_bytes, size_bytes}) => ({
      binding: index,
      resource: {buffer: buffers[buffer], offset: offset_bytes, size: size_bytes ?? buffers[buffer].size - offset_bytes},
    }));
    return {...step, pipeline, group: this.device.createBindGroup({layout, entries})};
  }

  /** @param {GPUBuffer} buffer @param {number} size_bytes @returns {Promise<ArrayBuffer>} */
  async read(buffer, size_bytes) {
    const size = Math.max(4, 4 * Math.ceil(size_bytes / 4));
    const copy = this.device.createBuffer({size, usage: GPUBufferUsage.MAP_READ | GPUBufferUsage.COPY_DST});
    this.submit(this.commands((encoder) => encoder.copyBufferToBuffer(buffer, 0, copy, 0, size)));
    try {
      await copy.mapAsync(GPUMapMode.READ);
      return copy.getMappedRange().slice(0, size_bytes);
    } finally {
      copy.destroy();
    }
  }

  // ---- recording and submitting

  idle() {
    return this.device.queue.onSubmittedWorkDone();
  }

  submit(...commands) {
    this.device.queue.submit(commands);
  }

  /** @param {(encoder: GPUCommandEncoder) => void} record @returns {GPUCommandBuffer} */
  commands(record) {
    const encoder = this.device.createCommandEncoder();
    record(encoder);
    return encoder.finish();
  }

  #timestampWrites() {
    const first = 2 * this.spans++;
    if (first + 2 > MAX_QUERIES) throw new CaseError("LimitError", `more than ${MAX_QUERIES} timestamps in one block`);
    return {querySet: this.queries, beginningOfPassWriteIndex: first, endOfPassWriteIndex: first + 1};
  }

  /**
   * Records the steps of a plan; each kernel `trials` times in a row, and in a pass with timestamps if `timed`.
   * @param {GPUCommandEncoder} encoder
   * @param {BoundPlan} bound
   * @param {number} [trials]
   * @param {boolean} [timed]
   */
  encode(encoder, bound, trials = 1, timed = false) {
    /** @type {GPUComputePassEncoder|null} */
    let pass = null;
    for (const step of bound.steps) {
      if (pass && (timed || step.kind !== "kernel")) {
        pass.end();
        pass = null;
      }
      if (step.kind === "kernel") {
        pass ??= encoder.beginComputePass(timed ? {timestampWrites: this.#timestampWrites()} : undefined);
        pass.setPipeline(step.pipeline);
        pass.setBindGroup(0, step.group);
        const [x, y, z] = step.workgroups;
        for (let i = 0; i < trials; ++i) pass.dispatchWorkgroups(x, y, z);
      } else {
        encodeTransfer(encoder, bound.buffers, step);
      }
    }
    pass?.end();
  }

  /** Submits to an idle GPU and waits. @param {...GPUCommandBuffer} commands @returns {Promise<[number, number]>} ns until all was done, and of submitting */
  async bracket(...commands) {
    await this.idle();
    const begin = now();
    this.submit(...commands);
    const submitted = now();
    await this.idle();
    return [nsOf(now() - begin), nsOf(submitted - begin)];
  }

  /**
   * Begin and end of each span that was recorded since the last call, relative to the first of all; null was never
   * written. Resolved after the work is done, in a submission of its own: some drivers read older values otherwise.
   * @returns {Promise<(number|null)[][]>}
   */
  async stamps() {
    const count = this.spans;
    this.spans = 0;
    if (!count) return [];
    await this.idle();
    this.submit(this.commands((encoder) => encoder.resolveQuerySet(this.queries, 0, 2 * count, this.resolved, 0)));
    const ticks = new BigUint64Array(await this.read(this.resolved, 16 * count));
    this.tickBase ??= ticks.find((tick) => tick !== 0n) ?? null;
    const relative = (tick) => (tick === 0n ? null : Number(tick - this.tickBase));
    return Array.from({length: count}, (_, i) => [relative(ticks[2 * i]), relative(ticks[2 * i + 1])]);
  }

  /** @param {BoundPlan} bound @param {number} [passes] @param {number} [trials] @returns {Promise<Passes>} of one submission */
  async timedPasses(bound, passes = 1, trials = 1) {
    const [wall] = await this.bracket(this.commands((encoder) => {
      for (let i = 0; i < passes; ++i) this.encode(encoder, bound, trials, true);
    }));
    return {trials, wall, ticks: await this.stamps()};
  }

  /**
   * How many dispatches of each kernel make a trial last so long, by the GPU's clock: walls include the submission.
   * @param {BoundPlan} bound @param {number} wanted_ns @param {number} most @returns {Promise<number>}
   */
  async trialsFor(bound, wanted_ns, most) {
    const measured = async (trials) => spanOf((await this.timedPasses(bound, 1, trials)).ticks);
    for (let trials = 1; ; ) {
      let span_ns = await measured(trials);
      // Other work may have made it long: it counts when it is long twice.
      if (span_ns !== null && span_ns >= wanted_ns) span_ns = Math.min(span_ns, await measured(trials) ?? span_ns);
      if (span_ns === null || span_ns >= wanted_ns || trials >= most) return Math.min(trials, most);
      const estimate = 1.2 * wanted_ns * trials / Math.max(span_ns, this.tickStep ?? 1);
      trials = Math.min(most, Math.max(2 * trials, Math.floor(estimate)));
    }
  }
}

/** @param {GPUCommandEncoder} encoder @param {Record<string, GPUBuffer>} buffers @param {object} step */
function encodeTransfer(encoder, buffers, step) {
  if (step.kind === "fill") {
    encoder.clearBuffer(buffers[step.buffer], step.offset_bytes, step.size_bytes);
  } else {
    encoder.copyBufferToBuffer(
      buffers[step.source], step.source_offset_bytes,
      buffers[step.destination], step.destination_offset_bytes, step.size_bytes);
  }
}

/** @param {(number|null)[][]} ticks @returns {number|null} from the first begin to the last end, if both are valid */
function spanOf(ticks) {
  const begin = ticks[0]?.[0] ?? null, end = ticks[ticks.length - 1]?.[1] ?? null;
  return begin === null || end === null || end < begin ? null : end - begin;
}

/** @param {number[]} values @returns {number|null} rough: for the screen and for sizes, never for the file */
function roughMedian(values) {
  if (!values.length) return null;
  const sorted = [...values].sort((a, b) => a - b), half = sorted.length >> 1;
  return sorted.length % 2 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
}
