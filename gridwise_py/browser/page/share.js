"use strict";
// What people take away: a table, a link that holds the figures, a text for an issue.

const LINK_VERSION = 1;
const MOST_LINK_CHARACTERS = 1 << 20;  // unpacked
const MOST_LINK_ROWS = 500;
const MOST_NAME = 120;

/** @typedef {{name: string, browser: string, date: string, version: string, step_ns: number|null, software: boolean, rows: Row[]}} Figures */

/** @param {ReadableStream<Uint8Array>} stream @param {number} [most] @returns {Promise<Uint8Array>} */
async function bytesOf(stream, most = Infinity) {
  const chunks = [], reader = stream.getReader();
  let size = 0;
  for (let part = await reader.read(); !part.done; part = await reader.read()) {
    size += part.value.length;
    if (size > most) {
      await reader.cancel();
      throw new Error(`it is longer than ${most} characters`);
    }
    chunks.push(part.value);
  }
  const whole = new Uint8Array(size);
  for (let i = 0, at = 0; i < chunks.length; at += chunks[i++].length) whole.set(chunks[i], at);
  return whole;
}

/** @param {string} base64 @param {CompressionFormat} format @param {number} [most] @returns {Promise<string>} */
async function unpacked(base64, format, most) {
  const bytes = Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream(format));
  return new TextDecoder().decode(await bytesOf(stream, most));
}

/** @param {Figures} figures @returns {Promise<string>} the part of a link after # */
async function fragmentOf(figures) {
  // Times and rates with the digits that are shown: with more, those could round to another third digit than here.
  const short = (value, count) => (value === null ? null : Number(value.toPrecision(count)));
  const rows = figures.rows.map(({primitive, axes, n, mode, ns, gbs, gflops, of, result, why}) => (
    [primitive, axes, n, mode, short(ns, 3), short(gbs, 3), short(gflops, 3), short(of, 6), result, why]));
  const text = JSON.stringify({...figures, v: LINK_VERSION, rows});
  const packed = await bytesOf(new Blob([text]).stream().pipeThrough(new CompressionStream("deflate-raw")));
  const base64 = btoa(Array.from(packed, (byte) => String.fromCharCode(byte)).join(""));
  return `#r=${base64.replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "")}`;
}

const isText = (value) => typeof value === "string" && value.length <= 1000;
const isNumber = (value) => value === null || (typeof value === "number" && Number.isFinite(value) && value >= 0);
const isAxes = (value) => typeof value === "object" && value !== null && !Array.isArray(value) &&
  Object.values(value).every((text) => text === null || isText(text)) && Object.keys(value).length <= 20;

function rowOf(values) {
  if (!Array.isArray(values)) throw new Error("a row is not a list");
  const [primitive, axes, n, mode, ns, gbs, gflops, of, result, why] = values;
  const good = isText(primitive) && isAxes(axes) && Number.isSafeInteger(n) && n >= 0 && isText(mode) &&
    [ns, gbs, gflops, of].every(isNumber) && ["right", "WRONG", "failed"].includes(result) && (why === null || isText(why));
  if (!good) throw new Error("a row has other fields than it should");
  return {primitive, axes, n, mode, ns, gbs, gflops, of, result, why};
}

/**
 * Anybody may write a link: only texts and numbers come out of it.
 * @param {string} fragment @returns {Promise<Figures|null>} null if there are no figures in it
 * @throws {Error} if they cannot be read
 */
async function figuresOf(fragment) {
  if (!fragment.startsWith("#r=")) return null;
  const base64 = fragment.slice(3).replaceAll("-", "+").replaceAll("_", "/");
  const found = JSON.parse(await unpacked(base64, "deflate-raw", MOST_LINK_CHARACTERS));
  if (found?.v !== LINK_VERSION) throw new Error(`its version is ${found?.v}, and this page reads version ${LINK_VERSION}`);
  const {name, browser, date, version, step_ns, software, rows} = found;
  if (![name, browser, date, version].every(isText) || !isNumber(step_ns ?? null)) throw new Error("its head is broken");
  if (!Array.isArray(rows) || rows.length > MOST_LINK_ROWS) throw new Error(`it has no rows, or more than ${MOST_LINK_ROWS}`);
  return {name, browser, date, version, step_ns: step_ns ?? null, software: software === true, rows: rows.map(rowOf)};
}

/** @param {unknown} text @returns {string} for a cell of a Markdown table */
const cell = (text) => String(text).replace(/[|\\`<>[\]*_\n\r]/g, (character) => (character < " " ? " " : `\\${character}`));

/** @param {Figures} figures @returns {string} */
function markdownOf({name, browser, date, version, rows, software, step_ns}) {
  const lines = rows.map((row) => {
    const result = row.why === null ? row.result : `${row.result}: ${row.why.slice(0, 100)}`;
    const values = [nameOfCase(row.primitive, row.axes, row.mode), itemsText(row.n), timeText(row.ns), speedText(row), percentText(row.of), result];
    return `| ${values.map(cell).join(" | ")} |`;
  });
  const clock = step_ns === null ? ", times by the CPU's clock" : step_ns > COARSE_STEP_NS ? `, GPU clock in steps of ${stepText(step_ns)}` : "";
  return [
    `**${cell(name)}**${software ? " (software on the CPU)" : ""}, ${cell(browser)}, gridwise_py ${cell(version)}, ${cell(date)}; medians per trial${clock}`, "",
    "| primitive | n | time | speed | of copy | result |", "| --- | ---: | ---: | ---: | ---: | --- |", ...lines, "",
  ].join("\n");
}

/** @param {Figures} figures @param {string} file @returns {string} a text for an issue or a pull request that adds a GPU */
function issueOf(figures, file) {
  return [
    `Add my GPU: ${cell(figures.name)}`, "",
    `The page saved the file \`${file}\`. It is attached, or this pull request puts it into \`benchmarks/results/browser/\`.`, "",
    "- Computer and operating system (a laptop on battery?): ",
    "- Anything else that used the GPU meanwhile: ", "",
    markdownOf(figures),
  ].join("\n");
}

/** @param {string} name @param {string} date @returns {string} */
function fileNameOf(name, date) {
  const stem = name.toLowerCase().replace(/[^a-z0-9]+/g, "-").replace(/^-+|-+$/g, "").slice(0, 60);
  return `gridwise-${stem || "gpu"}-${date}.json`;
}
