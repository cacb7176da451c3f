"use strict";
// Inputs from recipes (gridwise_py/browser/data.py makes the same items), and the check of outputs.

/** @typedef {{words: number, steps: [string, ...number[]][], as: string, scale?: number, offset?: number, base64?: string}} Recipe */
/** @typedef {{name: string, bytes: number, sha256?: string, values?: number[], errors?: number[], base64?: string, rtol?: number, atol?: number}} Output */

const GOLDEN = 0x9E3779B9;
const ARRAYS = {u8: Uint8Array, u16: Uint16Array};

/** @param {number} x @param {number} seed @returns {number} a hash of a number: 32 bits, as a signed integer */
function mixed(x, seed) {
  let h = (Math.imul(x, GOLDEN) + seed) | 0;
  h = Math.imul(h ^ (h >>> 16), 0x21F0AAAD);
  h = Math.imul(h ^ (h >>> 15), 0x735A2D97);
  return h ^ (h >>> 15);
}

/**
 * Replaces each number. A result beyond 32 bits keeps its lowest 32, as Uint32Array stores numbers.
 * @param {Uint32Array} x
 * @param {(value: number, index: number) => number} change
 */
function changeEach(x, change) {
  for (let i = 0; i < x.length; ++i) x[i] = change(x[i], i);
}

function addUp(x) {
  let total = 0;
  changeEach(x, (value) => (total = (total + value) >>> 0));
}

function subtractPrevious(x) {
  let previous = 0;
  changeEach(x, (value) => {
    const difference = value - previous;
    previous = value;
    return difference;
  });
}

/** Each changes the numbers in place. @type {Record<string, (x: Uint32Array, k?: number) => unknown>} */
const STEPS = {
  hash: (x, seed) => changeEach(x, (value) => mixed(value, seed)),
  and_hash: (x, seed) => changeEach(x, (value, i) => value & mixed(i, seed)),
  and: (x, k) => changeEach(x, (value) => value & k),
  or: (x, k) => changeEach(x, (value) => value | k),
  xor: (x, k) => changeEach(x, (value) => value ^ k),
  shift: (x, k) => changeEach(x, (value) => value >>> k),
  mod: (x, k) => changeEach(x, (value) => value % k),
  times: (x, k) => changeEach(x, (value) => Math.imul(value, k)),
  times_around: (x, k) => changeEach(x, (value) => (value * k) % x.length),
  min: (x, k) => changeEach(x, (value) => Math.min(value, k)),
  less: (x, k) => changeEach(x, (value) => (value < k ? 1 : 0)),
  sum: addUp,
  sort: (x) => x.sort(),
  reverse: (x) => x.reverse(),
  differences: subtractPrevious,
  last: (x, value) => x.fill(value, Math.max(0, x.length - 1)),
};

/** @param {string} text @returns {Uint8Array} */
function bytesOfBase64(text) {
  return Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
}

/** @param {Recipe} recipe @returns {Uint8Array|Uint16Array|Uint32Array|Float32Array} */
function itemsOf(recipe) {
  if (recipe.base64 !== undefined) return bytesOfBase64(recipe.base64);
  const x = new Uint32Array(recipe.words);
  for (let i = 0; i < x.length; ++i) x[i] = i;
  for (const [name, ...numbers] of recipe.steps) STEPS[name](x, ...numbers);
  if (recipe.as === "u64") {
    const words = new Uint32Array(2 * x.length);
    for (let i = 0; i < x.length; ++i) words[2 * i] = x[i];
    return words;
  }
  if (recipe.as !== "f32") return recipe.as === "u32" ? x : new ARRAYS[recipe.as](x);
  const reals = new Float32Array(x.length);
  for (let i = 0; i < x.length; ++i) reals[i] = x[i] * recipe.scale + recipe.offset;
  return reals;
}

/** @param {BufferSource} bytes @returns {Promise<string>} in hexadecimal digits */
async function sha256Of(bytes) {
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
  return Array.from(digest, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/**
 * @param {Output} output
 * @param {ArrayBuffer} bytes
 * @returns {Promise<string|null>} how the output differs from what it must be; null if it does not
 */
async function mismatchOf(output, bytes) {
  if (output.sha256 !== undefined) {
    const found = await sha256Of(bytes);
    if (found === output.sha256) return null;
    return `the sha256 of ${output.name} is ${found.slice(0, 16)}…, and should be ${output.sha256.slice(0, 16)}…`;
  }
  const items = new Float32Array(bytes);
  const values = output.values ?? new Float32Array(bytesOfBase64(output.base64).buffer);
  if (values.length !== items.length) return `${output.name} has ${items.length} items, and should have ${values.length}`;
  const errorOf = (i) => output.errors?.[i] ?? output.atol + output.rtol * Math.abs(values[i]);
  const wrong = [];
  values.forEach((value, i) => Math.abs(items[i] - value) <= errorOf(i) || wrong.push(i));
  if (!wrong.length) return null;
  const i = wrong[0];
  return `${wrong.length} of ${items.length} items of ${output.name} are wrong: item ${i} is ${items[i]}, and should be ` +
    `${values[i]} ± ${errorOf(i)}`;
}
