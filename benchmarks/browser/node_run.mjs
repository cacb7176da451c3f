// Runs the bundle of a page of `gridwise browser` under Node, on Dawn (npm's "webgpu"): another WebGPU and another
// compiler than the library's, without a browser.
//
//   node benchmarks/browser/node_run.mjs PAGE.html OUT.json DAWN [FLAG…]
//
// DAWN is the folder of the package "webgpu", or its dawn.node alone. A FLAG is one of Dawn's, such as
// enable-dawn-features=allow_unsafe_apis. OUT.json is what the page would save; `gridwise compare`, `plot` and `report`
// read it. Exits with 1 if a result was wrong or a case failed.

import {createRequire} from "node:module";
import {readFileSync, statSync, writeFileSync} from "node:fs";
import {cpus} from "node:os";
import path from "node:path";
import {fileURLToPath} from "node:url";
import vm from "node:vm";
import {inflateSync} from "node:zlib";

const SCRIPTS = ["data.js", "gpu.js", "calibrate.js", "format.js", "sample.js", "runner.js"];
const FOLDER = path.join(path.dirname(fileURLToPath(import.meta.url)), "../../gridwise_py/browser/page");

function dawnOf(where) {
  const file = statSync(where).isDirectory() ? path.join(where, `dist/${process.platform}-${process.arch}/dawn.node`) : where;
  return createRequire(import.meta.url)(path.resolve(file));
}

function bundleOf(page) {
  const [, bundle_sha256, packed] = /id="bundle" data-sha256="(\w+)">([^<]*)</.exec(readFileSync(page, "utf8"));
  return {bundle_sha256, bundle: JSON.parse(inflateSync(Buffer.from(packed, "base64")).toString())};
}

function hostOf(gpu, bundle_sha256) {
  return {
    gpu, bundle_sha256,
    context: () => ({
      time: new Date().toISOString(), user_agent: `Node/${process.versions.node} (${process.platform}) Dawn`,
      platform: process.platform, brands: [{brand: "Dawn under Node", version: process.versions.node}],
      cpu_count: cpus().length, isolated: true,
    }),
    renderer: () => null,
    watch: () => () => {},
  };
}

const [page, out, where, ...flags] = process.argv.slice(2);
if (!where) {
  console.error("usage: node node_run.mjs PAGE.html OUT.json DAWN [FLAG…]");
  process.exit(2);
}
const dawn = dawnOf(where);
Object.assign(globalThis, dawn.globals);
for (const name of SCRIPTS) vm.runInThisContext(readFileSync(path.join(FOLDER, name), "utf8"), {filename: name});
const {run, nameOfCase} = vm.runInThisContext("({run, nameOfCase})");
const {bundle, bundle_sha256} = bundleOf(page);

let bad = 0;
let said = "";
const raw = await run(bundle, hostOf(dawn.create(flags), bundle_sha256), {
  progress({what}) {
    if (what !== said) console.error(what);
    said = what;
  },
  row(found, rough) {
    const wrong = found.error ?? found.checks.find((check) => check.wrong !== null)?.wrong ?? null;
    bad += wrong === null ? 0 : 1;
    const figures = rough.ns === null ? "" : `${(rough.ns / 1e3).toFixed(1)} µs, ${rough.gbs.toFixed(2)} GB/s, `;
    console.log(`${nameOfCase(found.primitive, found.axes, found.mode, found.n)}: ${figures}${wrong ?? "right"}`);
  },
});
// Dawn's description may be the driver's version; the device is the GPU.
const {device, description} = raw.device.info;
writeFileSync(out, `${JSON.stringify({...raw, name: device || description || null})}\n`);
console.log(JSON.stringify({
  adapter: raw.device.info, class: raw.class, lookback: raw.lookback, tick_step_ns: raw.calibration.tick_step ?? null,
  cases: raw.results.length, bad, recorded_ns_per_pass: recordedNsPerPass(raw),
}, null, 1));
process.exit(bad ? 1 : 0);  // Dawn keeps Node's loop alive

/** The CPU's time to record a timed pass, over all samples. */
function recordedNsPerPass({results, plans}) {
  let [ns, passes] = [0, 0];
  for (const {blocks, plan} of results) {
    for (const {encodes, counts} of blocks) {
      ns += encodes.reduce((a, b) => a + b, 0);
      passes += counts.reduce((a, b) => a + b, 0) * plans[plan].kernels.length;
    }
  }
  return passes ? Math.round(ns / passes) : null;
}
