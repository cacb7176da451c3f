"use strict";
// Measures one case: checks its results, warms up, and takes samples in blocks between canaries. Raw: Python judges them.

/**
 * @typedef {{counts: number[], walls: number[], submits: number[], encodes: number[], before?: (number|null)[][],
 *   after?: (number|null)[][], ticks?: (number|null)[][]}} Block
 * @typedef {{batch: number, perSubmission: number, perBlock: number}} Sizes  dispatches of each kernel in a pass, samples
 *   of a submission and of a block
 */

const CHUNK_MS = 4;  // of warm-up work per submission
const MOST_CHUNK_TRIALS = 2048;
const BLOCK_NS = 5e8;  // a block of slow work is cut, so that Stop and the time limit are heeded
const LONG_TRIAL_NS = 1e8;  // of a case whose next size may be too long
const MOST_TRIAL_NS = 2e9;
const MOST_ERROR_TEXT = 2000;

/** @param {number} step_ns  of the clock that times a sample @returns {number} its wanted length: at least 100 steps, and 1 ms */
const leastSampleNs = (step_ns) => 1.1 * Math.max(1e6, LEAST_STEPS * step_ns);

/** Thrown when a person stops the run: the case at hand is not in the file. */
class Stopped extends Error {}

class CaseRun {
  /**
   * @param {Gpu} gpu
   * @param {{case: number, mode: string, position: number, round: number}} job
   * @param {number|null} plan
   * @param {{isStopped: () => boolean, wallStep_ns: number}} run
   */
  constructor(gpu, job, plan, run) {
    this.gpu = gpu;
    this.case = gpu.bundle.cases[job.case];
    this.protocol = gpu.bundle.protocol;
    this.mode = job.mode;
    this.planNumber = plan;
    this.run = run;
    /** @type {GPUBuffer[]} */
    this.made = [];
    this.chunk = 1;
    const {primitive, n, axes, work} = this.case;
    this.found = {
      primitive, n, axes, mode: job.mode, position: job.position, round: job.round, plan: String(plan ?? ""), error: null,
      work, checks: [], warmup: [], blocks: [], cold_start: null, stop_reason: null,
    };
  }

  /** @returns {Promise<object>} an entry of the raw file's `results` */
  async measure() {
    try {
      await this.#measure();
    } catch (error) {
      if (error instanceof Stopped) throw error;
      this.found.error = await this.#textOf(error);
    } finally {
      this.made.forEach((buffer) => buffer.destroy());
      if (this.gpu.lost === null) await this.gpu.reset();
    }
    return this.found;
  }

  async #textOf(error) {
    await pause(LOST_AFTER_MS);
    const cause = this.gpu.lost === null ? error : new CaseError("DeviceLost", this.gpu.lost);
    return `${cause.name ?? "Error"}: ${cause.message ?? cause}`.slice(0, MOST_ERROR_TEXT);
  }

  async #measure() {
    const {gpu, found} = this;
    const plan = this.#possiblePlan();
    const given = this.#arguments();
    await gpu.idle();
    const compiled = gpu.pipelines.size, begin = now();
    this.bound = await gpu.bind(plan, given);
    this.made.push(...this.bound.own);
    gpu.submit(gpu.commands((encoder) => gpu.encode(encoder, this.bound)));
    await gpu.idle();
    if (gpu.pipelines.size > compiled) found.cold_start = nsOf(now() - begin);
    await this.#check(given);
    // So that the second check sees what the samples wrote, not the first run.
    this.#beginAgain(given);
    const trial_ns = await this.#warmUp();
    await this.#sample(await this.#sizes(trial_ns));
    await this.#check(given);
    gpu.check();
  }

  #possiblePlan() {
    const {gpu} = this;
    if (this.planNumber === null) {
      throw new CaseError("LimitError", "this primitive needs limits or features that this device does not have");
    }
    const plan = gpu.plan(this.planNumber), most = bindableBytes(gpu);
    const sizes = [...plan.buffers.map((spec) => spec.size_bytes), ...this.case.outputs.map((output) => output.capacity_bytes)];
    const largest = Math.max(0, ...sizes);
    if (largest > most) {
      throw new CaseError("LimitError", `it needs a buffer of ${largest} bytes, and this device binds ${most} at most`);
    }
    return plan;
  }

  /** @returns {Record<string, GPUBuffer>} by name */
  #arguments() {
    /** @type {Record<string, GPUBuffer>} */
    const given = {};
    for (const {name, bytes, recipe} of this.case.inputs) given[name] = this.#keep(this.gpu.buffer(bytes, itemsOf(recipe)));
    for (const {name, capacity_bytes} of this.case.outputs) given[name] ??= this.#keep(this.gpu.buffer(capacity_bytes));
    return given;
  }

  /** Outputs are as they were before the first run. */
  #beginAgain(given) {
    const {gpu} = this, {inputs, outputs} = this.case;
    const began = new Map(inputs.map(({name, recipe}) => [name, recipe]));
    gpu.submit(gpu.commands((encoder) => outputs.forEach(({name}) => began.has(name) || encoder.clearBuffer(given[name]))));
    for (const {name} of outputs) if (began.has(name)) gpu.write(given[name], itemsOf(began.get(name)));
  }

  #keep(buffer) {
    this.made.push(buffer);
    return buffer;
  }

  async #check(given) {
    for (const output of this.case.outputs) {
      const bytes = await this.gpu.read(given[output.name], output.bytes);
      this.gpu.check();
      this.found.checks.push({output: output.name, wrong: await mismatchOf(output, bytes)});
    }
  }

  #stopIfAsked() {
    if (this.run.isStopped()) throw new Stopped();
  }

  // ---- warming up

  #submitChunk() {
    const {gpu, bound} = this;
    gpu.submit(gpu.commands((encoder) => gpu.encode(encoder, bound, this.chunk)));
  }

  /** @returns {Promise<number>} the time of a trial at the end, in ns, by the CPU's clock */
  async #warmUp() {
    const {gpu, protocol, found} = this;
    const most_s = Math.max(protocol.warmup_s, protocol.max_warmup_s), start = now();
    for (;;) {
      const begin = now();
      // Two, so that the second waits in the queue when the first ends: an idle GPU clocks down.
      this.#submitChunk();
      this.#submitChunk();
      await gpu.idle();
      this.#stopIfAsked();
      const end = now(), elapsed_s = (end - start) / 1e3;
      const trial_ns = Math.max(1, nsOf(end - begin) / (2 * this.chunk));
      if (end - begin < CHUNK_MS && this.chunk < MOST_CHUNK_TRIALS) {
        this.chunk *= 2;
        found.warmup = [];
      } else {
        found.warmup.push(trial_ns);
      }
      if (elapsed_s >= most_s || (elapsed_s >= protocol.warmup_s && found.warmup.length >= 3)) {
        Object.assign(found, {warmup_s: elapsed_s, trial_ns});
        return trial_ns;
      }
    }
  }

  // ---- sizes

  /** @param {number} trial_ns @returns {Promise<Sizes>} */
  async #sizes(trial_ns) {
    const {gpu, protocol, mode, bound} = this;
    const most = Math.max(1, Math.floor(protocol.max_submission_gpu_s * 1e9 / trial_ns));
    const batch = mode === "batch" ? Math.min(most, Math.max(protocol.batch_trials ?? 1, await this.#batch(trial_ns, most))) : 1;
    const perSubmission = mode === "hot" ? Math.min(protocol.submission_trials, most) : 1;
    const timed = Math.floor((MAX_QUERIES / 2 - 2 * protocol.canary_passes) / Math.max(1, bound.labels.length));
    const slow = Math.floor(BLOCK_NS / (trial_ns * batch));
    const perBlock = Math.max(1, Math.min(protocol.block_trials, slow, gpu.hasTimestamps ? timed : Infinity));
    Object.assign(this.found, {
      batch_trials: batch, submission_trials: perSubmission, block_samples: perBlock, canary_trials: gpu.canaryTrials,
    });
    return {batch, perSubmission, perBlock};
  }

  /** @returns {Promise<number>} dispatches in a pass */
  async #batch(trial_ns, most) {
    const {gpu, bound, run} = this;
    if (!gpu.hasTimestamps) return Math.ceil(leastSampleNs(run.wallStep_ns) / trial_ns);
    return gpu.trialsFor(bound, leastSampleNs(gpu.tickStep ?? 1), most);
  }

  // ---- sampling

  /** @param {Sizes} sizes */
  async #sample(sizes) {
    const {protocol, found} = this;
    const wanted = protocol.samples ?? protocol.max_samples, start = now();
    for (let taken = 0; taken < wanted; ) {
      const samples = Math.min(sizes.perBlock, wanted - taken);
      found.blocks.push(await this.#block(samples, sizes));
      this.#stopIfAsked();
      taken += samples;
      found.sampling_s = (now() - start) / 1e3;
      found.stop_reason = taken >= wanted ? "count" : "timeout";
      if (found.sampling_s >= protocol.timeout_s) return;
    }
  }

  /** @param {number} samples @param {Sizes} sizes @returns {Promise<Block>} */
  async #block(samples, {batch, perSubmission}) {
    const {gpu, mode} = this;
    const block = {counts: [], walls: [], submits: [], encodes: []};
    for (let left = samples; left > 0; left -= perSubmission) block.counts.push(Math.min(left, perSubmission));
    this.#submitChunk();  // the GPU works while the CPU records, so that its clock stays up
    const before = gpu.hasTimestamps ? this.#canary() : null;
    const encoded = mode === "latency" ? [] : block.counts.map((count) => this.#encoded(count, batch));
    await gpu.idle();
    if (before) await gpu.bracket(before);
    for (const [i, count] of block.counts.entries()) {
      const [commands, encode_ns] = encoded[i] ?? this.#encoded(count, batch);
      const [wall, submit] = await gpu.bracket(commands);
      block.walls.push(wall);
      block.submits.push(submit);
      block.encodes.push(encode_ns);
    }
    if (gpu.hasTimestamps) await this.#addStamps(block);
    gpu.check();
    return block;
  }

  async #addStamps(block) {
    const {gpu, protocol} = this, passes = protocol.canary_passes;
    gpu.submit(this.#canary());
    const stamps = await gpu.stamps();
    block.before = stamps.slice(0, passes);
    block.ticks = stamps.slice(passes, -passes);
    block.after = stamps.slice(-passes);
  }

  /** @returns {GPUCommandBuffer} */
  #canary() {
    const {gpu, protocol} = this;
    return gpu.commands((encoder) => {
      for (let i = 0; i < protocol.canary_passes; ++i) gpu.encode(encoder, gpu.canary, gpu.canaryTrials, true);
    });
  }

  /** @returns {[GPUCommandBuffer, number]} commands, and the ns that recording them took */
  #encoded(count, batch) {
    const {gpu, bound} = this, begin = now();
    const commands = gpu.commands((encoder) => {
      for (let i = 0; i < count; ++i) gpu.encode(encoder, bound, batch, gpu.hasTimestamps);
    });
    return [commands, nsOf(now() - begin)];
  }
}
