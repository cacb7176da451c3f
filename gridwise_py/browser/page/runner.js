"use strict";
// Runs a bundle (gridwise_py/browser/bundle.py describes it) and returns the raw file's content
// (bench/results/browser_model.py). Needs no page.

/**
 * The surroundings of the runner.
 * @typedef {object} Host
 * @property {GPU|undefined} gpu
 * @property {string} bundle_sha256
 * @property {() => object} context  the raw file's `context`, without clocks
 * @property {() => string|null} renderer  the name of the GPU elsewhere in the browser
 * @property {(hidden: () => void) => (() => void)} watch  calls back when the page is in the background; ends with what it returns
 */

/**
 * @typedef {object} Listener
 * @property {(state: {what: string, done: number, total: number, left_s: number|null}) => void} [progress]
 * @property {(raw: object) => void} [device]  once the device is known
 * @property {(found: object, rough: Rough, kernels: string[]) => void} [row]  for each result
 * @property {() => boolean} [isStopped]
 */

/** @typedef {{ns: number|null, gbs: number|null, kernels: {label: string, ns: number}[], gaps_ns: number|null}} Rough */

/** @returns {number} the step of the CPU's clock, in ns */
function wallStepOf() {
  let step_ms = Infinity;
  for (let i = 0, last = now(); i < 1e5; ++i) {
    const time = now();
    if (time > last) step_ms = Math.min(step_ms, time - last);
    last = time;
  }
  return Number.isFinite(step_ms) ? nsOf(step_ms) : 1e6;
}

/** Bytes or operations: what makes a case long. */
const weightOf = ({work}) => Math.max(work.read_bytes + work.write_bytes, work.flops);

/**
 * Small cases of a round come first: on a slow device they tell which larger ones would take too long.
 * @param {object} bundle @returns {object[]} its jobs
 */
function jobsInOrder(bundle) {
  return bundle.jobs.map((job, i) => ({job, i, weight: weightOf(bundle.cases[job.case])}))
    .sort((a, b) => a.job.round - b.job.round || a.weight - b.weight || a.i - b.i).map(({job}) => job);
}

/**
 * Medians for the screen. What the figures are worth is judged from the file.
 * @param {Gpu} gpu @param {object} found @param {string[]} labels @returns {Rough}
 */
function roughOf(gpu, found, labels) {
  const none = {ns: null, gbs: null, kernels: [], gaps_ns: null};
  const trials = found.batch_trials;
  if (!gpu.hasTimestamps) {
    const walls = found.blocks.flatMap((block) => block.walls.map((wall, i) => wall / block.counts[i] / trials));
    return {...none, ...ratesOf(found, roughMedian(walls))};
  }
  const samples = [];
  for (const {ticks} of found.blocks) {
    for (let i = 0; i < ticks.length; i += labels.length) samples.push(ticks.slice(i, i + labels.length));
  }
  const median = (spans) => roughMedian(spans.filter((span) => span !== null).map((span) => span / trials));
  const kernels = labels.map((label, k) => ({label, ns: median(samples.map((sample) => spanOf([sample[k]]))) ?? 0}));
  const ns = median(samples.map(spanOf));
  const gaps_ns = ns === null ? null : Math.max(0, ns - kernels.reduce((sum, kernel) => sum + kernel.ns, 0));
  return {...ratesOf(found, ns), kernels, gaps_ns};
}

function ratesOf({work}, ns) {
  return {ns, gbs: ns ? (work.read_bytes + work.write_bytes) / ns : null};
}

class BundleRun {
  /** @param {object} bundle @param {Host} host @param {Listener} listener */
  constructor(bundle, host, listener) {
    this.bundle = bundle;
    this.host = host;
    this.listener = {progress() {}, device() {}, row() {}, isStopped: () => false, ...listener};
    this.isStopped = () => this.listener.isStopped();
    this.wallStep_ns = wallStepOf();
    this.hidden = false;
    /** Times of trials that were measured, by what is the same in all sizes of a case. @type {Map<string, {weight: number, ns: number}>} */
    this.known = new Map();
    this.jobs = jobsInOrder(bundle);
  }

  /** @returns {Promise<object>} the raw file's content */
  async run() {
    const {bundle, host} = this;
    this.gpu = await Gpu.open(bundle, host.gpu);
    const unwatch = host.watch(() => (this.hidden = true));
    try {
      this.raw = this.#header();
      await this.#prepare();
      this.started = now();
      for (const job of this.jobs) await this.#runJob(job);
      this.raw.complete = true;
    } catch (error) {
      if (!(error instanceof Stopped)) throw error;
    } finally {
      unwatch();
      this.gpu.device.destroy();
    }
    this.raw.context.hidden = this.hidden;
    this.raw.tick_base = String(this.gpu.tickBase ?? 0n);
    return this.raw;
  }

  #header() {
    const {bundle, host} = this;
    return {
      schema: "gridwise.browser", schema_version: 1, bundle_sha256: host.bundle_sha256, gridwise_py: bundle.gridwise_py,
      suite: bundle.suite, name: null, class: "", complete: false, planned: bundle.jobs.length, tick_base: "0",
      protocol: bundle.protocol, context: {...host.context(), now_step_ns: this.wallStep_ns, hidden: false},
      device: null, lookback: null, calibration: null, plans: {}, results: [],
    };
  }

  async #prepare() {
    const {gpu, raw, host} = this;
    this.#say("Looking at the GPU");
    raw.device = await describe(gpu, host.renderer());
    this.#say("Testing whether workgroups make progress together");
    raw.lookback = await testLookback(gpu);
    raw.class = classOf(gpu, raw.device.subgroup_size, raw.lookback.verdict);
    this.listener.device(raw);
    raw.calibration = await calibrate(gpu, (what) => this.#say(what));
    this.listener.device(raw);
  }

  #say(what) {
    if (this.isStopped()) throw new Stopped();
    const {results} = this.raw, total = this.jobs.length, done = results.length;
    // By the cases that are done: later ones are larger, so it is a lower bound.
    const left_s = done ? (total - done) * (now() - this.started) / 1e3 / done : null;
    this.listener.progress({what, done, total, left_s});
  }

  async #runJob(job) {
    const {raw, bundle} = this, one = bundle.cases[job.case];
    this.#say(nameOfCase(one.primitive, one.axes, job.mode, one.n));
    await pause(0);  // the page shows that, and heeds Stop, before data are made
    const number = one.variants[bundle.class_keys.indexOf(raw.class)] ?? null;
    const caseRun = new CaseRun(this.gpu, job, number, this);
    const tooLong = this.#tooLong(one);
    const found = tooLong === null ? await caseRun.measure() : Object.assign(caseRun.found, {error: tooLong});
    const labels = number === null ? [] : await this.#addPlan(number);
    raw.results.push(found);
    if (found.error === null) this.known.set(this.#family(one), {weight: weightOf(one), ns: Math.min(found.trial_ns, ...found.warmup)});
    this.listener.row(found, roughOf(this.gpu, found, labels), labels);
    if (this.gpu.lost !== null) await this.#reopen();
  }

  async #addPlan(number) {
    const plan = this.gpu.plan(number), kernels = plan.steps.filter((step) => step.kind === "kernel");
    this.raw.plans[number] ??= {
      primitive: plan.primitive, parameters: plan.parameters,
      kernels: kernels.map(({label, workgroups}) => ({label, workgroups})),
      shaders: await Promise.all([...new Set(kernels.map((kernel) => kernel.shader))].map((shader) => this.gpu.shaderSha256(shader))),
    };
    return kernels.map((kernel) => kernel.label);
  }

  /** A trial that is too long for a watchdog would end the device. @returns {string|null} why a case is left out */
  #tooLong(one) {
    const known = this.known.get(this.#family(one));
    // Small sizes of a fast device take their time for launches, which does not grow with n.
    const isSlow = known !== undefined && known.ns > LONG_TRIAL_NS;
    const ns = isSlow ? known.ns * weightOf(one) / known.weight : this.#least_ns(one);
    if (ns <= MOST_TRIAL_NS) return null;
    return `TooLong: one trial would take about ${(ns / 1e9).toPrecision(2)} s on this device, and ` +
      `${MOST_TRIAL_NS / 1e9} s is the most that this page tries`;
  }

  #family({primitive, axes}) {
    return JSON.stringify([primitive, axes]);
  }

  /** At the speeds that were measured: no case is faster. */
  #least_ns({work}) {
    const {ceilings = [], fma = []} = this.raw.calibration ?? {};
    const best = (passes, amount) => Math.max(0, ...passes.map((pass) => amount(pass) * pass.trials / (spanOf(pass.ticks) || Infinity)));
    const moved = best(ceilings.flatMap((ceiling) => ceiling.passes.map((pass) => ({...pass, ceiling}))),
      ({ceiling}) => (ceiling.name === "copy" ? 2 : 3) * ceiling.array_bytes);
    const flops = best(fma, ({workgroups}) => workgroups * this.bundle.own.fma.flops_per_workgroup);
    return Math.max(moved ? (work.read_bytes + work.write_bytes) / moved : 0, flops ? work.flops / flops : 0);
  }

  async #reopen() {
    const lost = this.gpu;
    this.gpu = await Gpu.open(this.bundle, this.host.gpu);
    await this.gpu.continue(lost);
  }
}

/**
 * @param {object} bundle
 * @param {Host} host
 * @param {Listener} [listener]
 * @returns {Promise<object>} the raw file's content
 */
function run(bundle, host, listener = {}) {
  return new BundleRun(bundle, host, listener).run();
}
