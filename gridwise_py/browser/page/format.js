"use strict";
// Names and numbers as people read them.

/** From here on, a browser's steps of the GPU's clock are worth a note. */
const COARSE_STEP_NS = 10_000;

/**
 * What the page shows of a result; links hold these, too.
 * @typedef {object} Row
 * @property {string} primitive
 * @property {Record<string, string|null>} axes
 * @property {number} n
 * @property {string} mode
 * @property {number|null} ns  of a trial
 * @property {number|null} gbs
 * @property {number|null} gflops  where operations limit the speed, not memory
 * @property {number|null} of  share of the speed of a copy of n items
 * @property {"right"|"WRONG"|"failed"} result
 * @property {string|null} why  the result is not right
 */

/** Axes whose values need no name; values of other axes follow the axis' name. */
const BARE_AXES = ["op", "datatype", "distribution"];
/** Nearly every case has them, so names do not. */
const USUAL = ["uniform", "batch"];

/**
 * The name of a case, as all commands write it.
 * @param {string} primitive @param {Record<string, string|null>} axes @param {string} mode @param {number|null} [n]
 * @returns {string}
 */
function nameOfCase(primitive, axes, mode, n = null) {
  const given = Object.entries(axes).filter(([, value]) => value !== null);
  const bare = BARE_AXES.flatMap((axis) => given.filter(([name]) => name === axis).map(([, value]) => value));
  const named = given.filter(([name]) => !BARE_AXES.includes(name)).map(([name, value]) => `${name}=${value}`);
  const name = [primitive, ...bare, ...named, mode].filter((word) => !USUAL.includes(word)).join(" ");
  return n === null ? name : `${name} n=${itemsText(n)}`;
}

/** @param {number} n @returns {string} a power of two as such */
function itemsText(n) {
  const exponent = Math.log2(n);
  return n >= 1024 && Number.isInteger(exponent) ? `2^${exponent}` : n.toLocaleString("en");
}

const TIME_UNITS = [{scale: 1e9, unit: "s"}, {scale: 1e6, unit: "ms"}, {scale: 1e3, unit: "µs"}];

/** @param {number|null} ns @returns {string} with three digits, as all commands write it */
function timeText(ns) {
  if (ns === null) return "–";
  for (const {scale, unit} of TIME_UNITS) if (ns >= 0.9995 * scale) return `${digits(ns / scale)} ${unit}`;
  // Shorter times may be means over trials, with fractions of a nanosecond.
  return `${ns >= 99.95 || Number.isInteger(ns) ? Math.round(ns) : digits(ns)} ns`;
}

/** @param {number} value @returns {string} with three digits, not in powers of ten */
function digits(value) {
  const rounded = Number(value.toPrecision(3));
  if (rounded >= 100) return rounded.toLocaleString("en");
  return rounded < 1e-4 ? "0" : rounded.toFixed(2 - Math.floor(Math.log10(rounded)));
}

/** @param {number} ns @returns {string} the step of a clock, which may be exact */
const stepText = (ns) => timeText(ns).replace(/\.0+ /, " ");

/** @param {Row} row @returns {string} */
function speedText({gbs, gflops}) {
  if (gflops !== null) return gflops >= 999.5 ? `${digits(gflops / 1e3)} TFLOP/s` : `${digits(gflops)} GFLOP/s`;
  return gbs === null ? "–" : `${digits(gbs)} GB/s`;
}

/** @param {number|null} share @returns {string} */
function percentText(share) {
  if (share === null) return "–";
  return share > 0 && share < 0.005 ? "< 1 %" : `${Math.round(100 * share)} %`;
}

/** @param {number} seconds @returns {string} */
function leftText(seconds) {
  return seconds < 90 ? `about ${Math.max(1, Math.round(seconds))} s left` : `about ${Math.round(seconds / 60)} min left`;
}

/** @param {{info: object, webgl_renderer: string|null}} device @returns {string} the GPU's name, as far as the browser tells */
function gpuName({info, webgl_renderer}) {
  const angle = /^ANGLE \([^,]*, (.*?)(?: \(0x[0-9A-F]+\))?(?: Direct3D.*| vs_.*)?, [^,]*\)$/.exec(webgl_renderer ?? "");
  const family = [info.vendor, info.architecture].filter(Boolean).join(" ");
  return info.description || (angle ? angle[1] : webgl_renderer) || family || "unknown GPU";
}

/** @param {{brands?: {brand: string, version: string}[]|null, user_agent: string}} context @returns {string} */
function browserName({brands, user_agent}) {
  const brand = brands?.find(({brand}) => !/Not|Chromium/.test(brand)) ?? brands?.find(({brand}) => !/Not/.test(brand));
  if (brand) return `${brand.brand} ${brand.version}`;
  const [, name, version] = /(Firefox|Edg|Chrome|Version)\/([\d.]+)/.exec(user_agent) ?? [];
  return name ? `${{Edg: "Edge", Version: "Safari"}[name] ?? name} ${version}` : "a browser";
}
