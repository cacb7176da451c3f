"use strict";
// Charts, as SVG elements without styles of their own: the style sheet has the colours.

const COLOURS = 8;
const LABEL_HEIGHT = 15;
const CHARACTER_WIDTH = 7.2;  // of labels, about

/** @param {string} name @param {Record<string, string|number>} attributes @param {...(Node|string)} children @returns {SVGElement} */
function svg(name, attributes, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, String(value));
  element.append(...children);
  return element;
}

/**
 * Rows with a speed in GB/s, by what is the same in all sizes.
 * @param {Row[]} rows @returns {{label: string, points: {n: number, gbs: number}[]}[]}
 */
function seriesOf(rows) {
  /** @type {Map<string, {n: number, gbs: number}[]>} */
  const series = new Map();
  for (const row of rows) {
    if (row.result !== "right" || !row.gbs || row.gflops !== null || !row.n) continue;
    const label = nameOfCase(row.primitive, row.axes, row.mode);
    series.set(label, [...(series.get(label) ?? []), {n: row.n, gbs: row.gbs}]);
  }
  return [...series].map(([label, points]) => ({label, points: points.sort((a, b) => a.n - b.n)}));
}

/** @param {number} low @param {number} high @returns {number[]} at most six powers of ten, or 1, 2 and 5 times these */
function ticksOf(low, high) {
  const ticks = [], first = Math.floor(Math.log10(low)), last = Math.ceil(Math.log10(high));
  for (let i = first; i <= last; ++i) for (const k of [1, 2, 5]) ticks.push(k * 10 ** i);
  const inside = ticks.filter((tick) => tick >= 0.999 * low && tick <= 1.001 * high);
  if (inside.length <= 6) return inside;
  const powers = inside.filter((tick) => Number.isInteger(Math.round(1e6 * Math.log10(tick)) / 1e6));
  return powers.filter((_, i) => i % Math.ceil(powers.length / 6) === 0);
}

/** Moves labels apart that would cover each other. @param {number[]} wanted  ascending @param {number} low @param {number} high */
function spread(wanted, low, high) {
  const places = [];
  for (const y of wanted) places.push(Math.max(y, low, (places[places.length - 1] ?? -Infinity) + LABEL_HEIGHT));
  for (let i = places.length - 1, most = high; i >= 0; --i, most -= LABEL_HEIGHT) places[i] = Math.min(places[i], most);
  return places;
}

/**
 * Speeds over n, both logarithmic. Names are at the ends of the curves, or, where these are too narrow, in a list below.
 * @param {Row[]} rows @param {number} width  in pixels
 * @returns {Element[]} empty if there is nothing to show
 */
function speedChart(rows, width) {
  const series = seriesOf(rows);
  if (!series.length) return [];
  const points = series.flatMap(({points}) => points);
  const longest = Math.max(...series.map(({label}) => label.length)) * CHARACTER_WIDTH + 24;
  const isNarrow = longest > 0.4 * width;
  const area = {
    left: 52, right: isNarrow ? width - 8 : width - longest, top: 24,
    bottom: 24 + (isNarrow ? 240 : Math.max(220, series.length * LABEL_HEIGHT + 10)),
  };
  const [x, y] = [scaleOf(points.map((point) => point.n), area.left + 16, area.right - 16),
    scaleOf(points.map((point) => point.gbs), area.bottom - 12, area.top + 12)];
  const title = `Speed in GB/s over n, of ${series.length} cases; the table has the numbers`;
  const chart = svg("svg",
    {viewBox: `0 0 ${width} ${area.bottom + 40}`, width, height: area.bottom + 40, role: "img", "aria-label": title},
    axesOf(points, x, y, area), ...curvesOf(series, x, y), ...(isNarrow ? [] : labelsOf(series, x, y, area)));
  return isNarrow ? [chart, legendOf(series)] : [chart];
}

/** @param {{label: string, points: {n: number, gbs: number}[]}[]} series @returns {HTMLUListElement} the fastest first */
function legendOf(series) {
  const list = document.createElement("ul");
  list.className = "legend";
  const last = ({points}) => points[points.length - 1].gbs;
  for (const {one, i} of series.map((one, i) => ({one, i})).sort((a, b) => last(b.one) - last(a.one))) {
    const item = document.createElement("li");
    item.append(svg("svg", {class: `c${i % COLOURS}`, width: 12, height: 12, "aria-hidden": "true"}, markOf(i, 6, 6)), one.label);
    list.append(item);
  }
  return list;
}

/** @param {number} i  of the series @param {number} x @param {number} y @returns {SVGElement} a circle, or a square where colours repeat */
function markOf(i, x, y) {
  return i < COLOURS ? svg("circle", {cx: x, cy: y, r: 4}) : svg("rect", {x: x - 3.5, y: y - 3.5, width: 7, height: 7});
}

/** @returns {(value: number) => number} logarithmic, from values to pixels */
function scaleOf(values, from, to) {
  const low = Math.log(Math.min(...values)), high = Math.log(Math.max(...values));
  if (high - low < 1e-9) return () => (from + to) / 2;
  return (value) => from + (to - from) * (Math.log(value) - low) / (high - low);
}

function axesOf(points, x, y, area) {
  const group = svg("g", {class: "axes"}), speeds = points.map((point) => point.gbs);
  group.append(svg("text", {x: area.left, y: 14}, "GB/s"));
  for (const tick of ticksOf(Math.min(...speeds), Math.max(...speeds))) {
    group.append(svg("line", {x1: area.left, x2: area.right, y1: y(tick), y2: y(tick)}),
      svg("text", {x: area.left - 6, y: y(tick) + 4, "text-anchor": "end"}, String(Number(tick.toPrecision(2)))));
  }
  let free = -Infinity;
  for (const n of [...new Set(points.map((point) => point.n))].sort((a, b) => a - b)) {
    const text = itemsText(n), half = text.length * CHARACTER_WIDTH / 2;
    if (x(n) - half < free) continue;
    free = x(n) + half + 6;
    group.append(svg("text", {x: x(n), y: area.bottom + 18, "text-anchor": "middle"}, text));
  }
  group.append(svg("line", {x1: area.left, x2: area.right, y1: area.bottom, y2: area.bottom, class: "base"}),
    svg("text", {x: (area.left + area.right) / 2, y: area.bottom + 36, "text-anchor": "middle"}, "n"));
  return group;
}

function curvesOf(series, x, y) {
  return series.map(({label, points}, i) => {
    const group = svg("g", {class: `series c${i % COLOURS}`}, svg("title", {}, label));
    if (points.length > 1) {
      group.append(svg("polyline", {points: points.map(({n, gbs}) => `${x(n)},${y(gbs)}`).join(" ")}));
    }
    for (const {n, gbs} of points) {
      const mark = markOf(i, x(n), y(gbs));
      mark.append(svg("title", {}, `${label}, n=${itemsText(n)}: ${digits(gbs)} GB/s`));
      group.append(mark);
    }
    return group;
  });
}

function labelsOf(series, x, y, area) {
  const ends = series.map(({label, points}, i) => ({label, i, ...points[points.length - 1]}));
  ends.sort((a, b) => y(a.gbs) - y(b.gbs));
  const places = spread(ends.map(({gbs}) => y(gbs)), area.top, area.bottom);
  return ends.map(({label, i, n, gbs}, k) => svg("g", {class: `label c${i % COLOURS}`},
    svg("polyline", {points: `${x(n) + 5},${y(gbs)} ${area.right},${places[k]} ${area.right + 6},${places[k]}`}),
    svg("text", {x: area.right + 9, y: places[k] + 4}, label)));
}

/**
 * Kernels and the gaps between them as shares of the whole, for the largest size of each case that has several kernels.
 * @param {(Row & {kernels: {label: string, ns: number}[], gaps_ns: number|null})[]} rows
 * @returns {HTMLLIElement[]}
 */
function kernelBars(rows) {
  const largest = new Map();
  for (const row of rows) {
    if (row.result !== "right" || !row.ns || row.gaps_ns === null || row.kernels.length < 2) continue;
    const name = nameOfCase(row.primitive, row.axes, row.mode);
    if (!largest.has(name) || largest.get(name).n < row.n) largest.set(name, row);
  }
  return [...largest.values()].map(kernelBar);
}

function kernelBar(row) {
  const parts = [...joined(row.kernels), {label: "between kernels", ns: row.gaps_ns, isGap: true}];
  const total = parts.reduce((sum, part) => sum + part.ns, 0);
  let left = 0;
  const pieces = parts.map(({label, ns, isGap}, i) => {
    const width = 100 * ns / total;
    const piece = svg("rect", {x: left, y: 0, width, height: 10, class: isGap ? "gap" : `k${i % 4}`}, svg("title", {}, label));
    left += width;
    return piece;
  });
  const name = nameOfCase(row.primitive, row.axes, row.mode, row.n);
  const texts = parts.map(({label, ns}) => `${label} ${percentText(ns / total)}`);
  const item = document.createElement("li"), heading = document.createElement("div"), list = document.createElement("small");
  heading.textContent = `${name}: ${timeText(row.ns)}`;
  list.textContent = texts.join(" · ");
  item.append(heading, svg("svg", {viewBox: "0 0 100 10", preserveAspectRatio: "none", "aria-hidden": "true"}, ...pieces), list);
  return item;
}

/** Kernels of the same name, such as the passes of a sort, as one. */
function joined(kernels) {
  const sums = new Map();
  for (const {label, ns} of kernels) sums.set(label, [...(sums.get(label) ?? []), ns]);
  return [...sums].map(([label, times]) => (
    {label: times.length > 1 ? `${times.length} × ${label}` : label, ns: times.reduce((a, b) => a + b, 0), isGap: false}));
}
