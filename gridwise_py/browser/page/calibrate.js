"use strict";
// The device's properties: lanes, look-back, class, clocks, floors and ceilings. Raw: Python judges them.

const INFO_KEYS = [
  "vendor", "architecture", "device", "description", "driver", "backend", "type", "d3dShaderModel", "vkDriverVersion",
  "subgroupMinSize", "subgroupMaxSize", "isFallbackAdapter",
];
const MOST_TEXT = 500;  // characters of a name in the file
const WARM_UP_MS = 300;
const STAMPS_WANTED = 24;  // distinct ones, for the step of the clock
const LEAST_STEPS = 100;  // of the clock in a span that is long enough
const TICK_CHECK_NS = 6e7;
const MANY_DISPATCHES = 101;
const SUBMISSIONS = 50;
const CEILING_REPEATS = 7;
const MOST_CEILING_DISPATCHES = 512;
const MOST_CEILING_BYTES = {software: 1 << 26, hardware: 1 << 30};

/** @param {Gpu} gpu @param {string|null} renderer @returns {Promise<any>} the raw file's `device` */
async function describe(gpu, renderer) {
  const {device, adapter, info} = gpu;
  const known = INFO_KEYS.filter((key) => ["string", "number", "boolean"].includes(typeof info[key]));
  const limits = {};
  for (const key in device.limits) if (Number.isSafeInteger(device.limits[key])) limits[key] = device.limits[key];
  const cut = (value) => (typeof value === "string" ? value.slice(0, MOST_TEXT) : value);
  return {
    info: Object.fromEntries(known.map((key) => [key, cut(info[key])])),
    limits, features: [...device.features].sort(), adapter_features: [...adapter.features].sort(),
    webgl_renderer: cut(renderer), subgroup_size: await probeSubgroupSize(gpu),
  };
}

/** What the adapter says about its lanes is not always so: a kernel counts them. @param {Gpu} gpu @returns {Promise<number|null>} */
async function probeSubgroupSize(gpu) {
  const {device} = gpu;
  if (!device.features.has("subgroups")) return null;
  const module = device.createShaderModule({code: gpu.bundle.subgroup_probe});
  const pipeline = await device.createComputePipelineAsync({layout: "auto", compute: {module}});
  const buffer = gpu.buffer(4);
  const group = device.createBindGroup(
    {layout: pipeline.getBindGroupLayout(0), entries: [{binding: 0, resource: {buffer}}]});
  gpu.submit(gpu.commands((encoder) => {
    const pass = encoder.beginComputePass();
    pass.setPipeline(pipeline);
    pass.setBindGroup(0, group);
    pass.dispatchWorkgroups(1);
    pass.end();
  }));
  const [size] = new Uint32Array(await gpu.read(buffer, 4));
  buffer.destroy();
  gpu.check();
  return size >= 4 && size <= 128 ? size : null;
}

// ---- the self-test of look-back

/** @param {Gpu} gpu @param {boolean} tickets @param {boolean} stalled @returns {Promise<object>} counts, as Python's ProbeCounts */
async function lookbackCounts(gpu, tickets, stalled) {
  const {plans, ...test} = gpu.bundle.lookback;
  const dispatches = stalled ? test.stalled_dispatches : test.dispatches;
  const bound = await gpu.bind(gpu.plan(plans[`${gpu.software}/${tickets}/${stalled}`]));
  const {counts} = bound.buffers;
  gpu.submit(gpu.commands((encoder) => gpu.encode(encoder, bound, dispatches)));
  const [wrong, again, finished] = new Uint32Array(await gpu.read(counts, 12));
  bound.own.forEach((buffer) => buffer.destroy());
  gpu.check();
  return {tickets, stalled, dispatches, wrong, again, finished};
}

/** @param {Gpu} gpu @returns {Promise<{verdict: string, tests: object[]}>} */
async function testLookback(gpu) {
  const {tiles, again_at_most} = gpu.bundle.lookback;
  const right = (test) => test.wrong === 0 && test.finished === test.dispatches * tiles;
  const progresses = (test) => test.again <= again_at_most * test.dispatches * tiles;
  const tests = [await lookbackCounts(gpu, false, false)];
  if (!progresses(tests[0])) tests.push(await lookbackCounts(gpu, true, false));
  const last = tests[tests.length - 1];
  const stalled = await lookbackCounts(gpu, last.tickets, true);
  const safe = tests.every(right) && progresses(last) && right(stalled) && stalled.again > 0;
  tests.push(stalled);
  // The bundle's plans for software take tickets whenever they look back.
  return {verdict: !safe ? "no" : last.tickets || gpu.software ? "tickets" : "safe", tests};
}

/**
 * The largest class of devices that the bundle has plans for and that this device belongs to.
 * @param {Gpu} gpu @param {number|null} lanes @param {string} verdict @returns {string}
 */
function classOf(gpu, lanes, verdict) {
  const {classes, class_keys} = gpu.bundle, {limits} = gpu.device;
  const largest = (values, most) => values.reduce((best, value) => (value <= most ? value : best), values[0]);
  const invocations = Math.min(limits.maxComputeInvocationsPerWorkgroup, limits.maxComputeWorkgroupSizeX);
  const rest = [
    largest(classes.invocations, invocations), largest(classes.storage, limits.maxComputeWorkgroupStorageSize),
    gpu.software, verdict,
  ];
  // Software has plans for few lanes only.
  const known = classes.subgroups.filter((size) => class_keys.includes([size, ...rest].join("/")));
  return [largest(known, lanes ?? 0), ...rest].join("/");
}

// ---- the clock

/** @param {Gpu} gpu */
async function keepBusy(gpu) {
  const until = now() + WARM_UP_MS;
  while (now() < until) {
    for (let i = 0; i < 2; ++i) gpu.submit(gpu.commands((encoder) => gpu.encode(encoder, gpu.canary, 50)));
    await gpu.idle();
  }
}

const greatestDivisor = (a, b) => (b ? greatestDivisor(b, a % b) : a);

/** @param {Gpu} gpu @returns {Promise<number|null>} of which all differences between stamps are multiples */
async function tickStepOf(gpu) {
  const seen = new Set();
  for (let i = 0, trials = 1; i < 40 && seen.size < STAMPS_WANTED; ++i, trials = Math.min(2 * trials, 256)) {
    const {ticks} = await gpu.timedPasses(gpu.canary, 16, trials);
    for (const tick of ticks.flat()) if (tick !== null) seen.add(tick);
  }
  const sorted = [...seen].sort((a, b) => a - b);
  return sorted.slice(1).reduce((step, tick, i) => greatestDivisor(tick - sorted[i], step), 0) || null;
}

/** The same work on both clocks: whether a tick is as long as it should be. @param {Gpu} gpu @returns {Promise<Passes[]>} */
async function checkTick(gpu) {
  const long = await gpu.bind(gpu.plan(gpu.bundle.own.tick));
  await gpu.timedPasses(long);
  let trials = 1, took = 0;
  for (; trials < 1 << 16; trials *= 2) {
    [took] = await gpu.bracket(gpu.commands((encoder) => gpu.encode(encoder, long, trials)));
    if (took >= 1e7) break;
  }
  trials = Math.max(1, Math.ceil(trials * TICK_CHECK_NS / took));
  const checks = [];
  while (checks.length < 4) {  // another process may delay the second reading of the CPU's clock
    const check = await gpu.timedPasses(long, 1, trials);
    checks.push(check);
    const ratio = (spanOf(check.ticks) ?? 0) / check.wall, tooShort = check.wall < 0.9 * TICK_CHECK_NS;
    if (tooShort) trials = Math.ceil(1.1 * trials * TICK_CHECK_NS / check.wall);
    else if (ratio >= 0.8 && ratio <= 1.02) break;
  }
  long.own.forEach((buffer) => buffer.destroy());
  return checks;
}

// ---- floors and ceilings

/** @param {Gpu} gpu */
async function floorsOf(gpu) {
  const nothing = await gpu.bind(gpu.plan(gpu.bundle.own.nothing));
  await gpu.timedPasses(nothing);
  const one = await gpu.timedPasses(nothing, 64), many = await gpu.timedPasses(nothing, 16, MANY_DISPATCHES);
  const submissions = [];
  while (submissions.length < SUBMISSIONS) {
    const [wall, submit] = await gpu.bracket(gpu.commands((encoder) => gpu.encode(encoder, nothing)));
    submissions.push([submit, wall - submit]);
  }
  return {one, many, submissions};
}

/** Speeds of a copy and a triad, by bytes of one array. @param {Gpu} gpu */
async function ceilingsOf(gpu) {
  const most = Math.min(MOST_CEILING_BYTES[gpu.software ? "software" : "hardware"], bindableBytes(gpu));
  const sizes = gpu.bundle.ceilings.filter((size) => size.software === gpu.software && size.array_bytes <= most);
  if (!sizes.length) return [];
  const largest = Math.max(...sizes.map((size) => size.array_bytes));
  const buffers = [1, 2, 3].map((seed) => gpu.buffer(
    largest, itemsOf({words: largest / 4, steps: [["hash", seed]], as: "u32"})));
  const [a, b, output] = buffers, found = [];
  for (const size of sizes) {
    found.push(await ceilingOf(gpu, "copy", size, {input: a, output}), await ceilingOf(gpu, "triad", size, {a, b, output}));
  }
  buffers.forEach((buffer) => buffer.destroy());
  return found;
}

async function ceilingOf(gpu, name, size, given) {
  const bound = await gpu.bind(gpu.plan(size[name]), given);
  const least_ns = Math.max(1e6, LEAST_STEPS * (gpu.tickStep ?? 1));
  const trials = await gpu.trialsFor(bound, least_ns, MOST_CEILING_DISPATCHES), passes = [];
  while (passes.length < CEILING_REPEATS) passes.push(await gpu.timedPasses(bound, 1, trials));
  bound.own.forEach((buffer) => buffer.destroy());
  return {name, array_bytes: size.array_bytes, plan: String(size[name]), passes};
}

/** f32 multiply-adds: the smallest dispatch that takes 5 ms, then passes of 20 ms. @param {Gpu} gpu */
async function multiplyAddsOf(gpu) {
  const {plans} = gpu.bundle.own.fma, sizes = Object.keys(plans).map(Number).sort((a, b) => a - b);
  const least_ns = Math.max(5e6, 20 * (gpu.tickStep ?? 1));
  for (const workgroups of sizes) {
    const bound = await gpu.bind(gpu.plan(plans[workgroups]));
    await gpu.timedPasses(bound);
    const span_ns = spanOf((await gpu.timedPasses(bound)).ticks);
    if (span_ns === null) return [];
    if (span_ns < least_ns && workgroups !== sizes[sizes.length - 1]) continue;
    const trials = Math.max(1, Math.floor(2e7 / Math.max(span_ns, 1))), found = [];
    while (found.length < 5) found.push({workgroups, ...await gpu.timedPasses(bound, 1, trials)});
    return found;
  }
  return [];
}

/** @param {Gpu} gpu @returns {number} */
const bindableBytes = (gpu) => Math.min(gpu.device.limits.maxBufferSize, gpu.device.limits.maxStorageBufferBindingSize);

/**
 * @param {Gpu} gpu
 * @param {(what: string) => void} say  may throw to stop
 * @returns {Promise<object|null>} the raw file's `calibration`; null without timestamps
 */
async function calibrate(gpu, say) {
  say("Warming up the GPU");
  gpu.canary = await gpu.bind(gpu.plan(gpu.bundle.own.canary));
  await keepBusy(gpu);
  if (!gpu.hasTimestamps) return null;
  say("Finding the step of the GPU's clock");
  gpu.tickStep = await tickStepOf(gpu);
  gpu.canaryTrials = await gpu.trialsFor(gpu.canary, LEAST_STEPS * (gpu.tickStep ?? 1), 1 << 16);
  say("Comparing the GPU's clock with the CPU's");
  const tick_checks = await checkTick(gpu);
  say("Measuring what an empty kernel costs");
  const floors = await floorsOf(gpu);
  say("Measuring the speed of memory");
  const ceilings = await ceilingsOf(gpu);
  say("Measuring the speed of multiply-adds");
  const fma = await multiplyAddsOf(gpu);
  gpu.check();
  return {tick_step: gpu.tickStep, tick_checks, floors, ceilings, fma};
}
