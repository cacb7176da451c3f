"use strict";
// The page: starts and stops a run, shows what it found, and hands it out.

/** @param {string} id @returns {any} */
const $ = (id) => document.getElementById(id);

const view = {
  bundle: null,
  bundle_sha256: "",
  /** The raw file's content, once there is some. @type {object|null} */
  raw: null,
  /** @type {(Row & {position: number, kernels: object[], gaps_ns: number|null})[]} */
  rows: [],
  /** What came with a link, in place of a run. @type {Figures|null} */
  linked: null,
  running: false,
  stopped: false,
  drawnWidth: 0,
};

/** @returns {Host} */
function browserHost() {
  /** Chromium's. @type {{platform: string, brands: {brand: string, version: string}[]}|undefined} */
  const agent = /** @type {any} */ (navigator).userAgentData;
  return {
    gpu: navigator.gpu,
    bundle_sha256: view.bundle_sha256,
    context: () => ({
      time: new Date().toISOString(), user_agent: navigator.userAgent.slice(0, 1000),
      platform: agent?.platform ?? navigator.platform ?? null, brands: agent?.brands ?? null,
      cpu_count: navigator.hardwareConcurrency ?? null, isolated: self.crossOriginIsolated ?? null,
    }),
    renderer: webglRenderer,
    watch(hidden) {
      const look = () => {
        if (document.visibilityState !== "visible") hidden();
      };
      look();
      document.addEventListener("visibilitychange", look);
      return () => document.removeEventListener("visibilitychange", look);
    },
  };
}

/** Browsers hide the adapter's name from WebGPU, but not from WebGL. @returns {string|null} */
function webglRenderer() {
  const gl = document.createElement("canvas").getContext("webgl");
  if (!gl) return null;
  const known = gl.getExtension("WEBGL_debug_renderer_info");
  const name = gl.getParameter(known ? known.UNMASKED_RENDERER_WEBGL : gl.RENDERER);
  gl.getExtension("WEBGL_lose_context")?.loseContext();
  return name;
}

// ---- showing

/** @param {string} tag @param {string} text @param {string} [className] @returns {HTMLElement} */
function element(tag, text, className = "") {
  const made = document.createElement(tag);
  made.textContent = text;
  made.className = className;
  return made;
}

/** @param {string} text */
function say(text) {
  $("status").textContent = text;
}

/** @param {[string, string|null][]} facts */
function showFacts(facts) {
  $("facts").replaceChildren(...facts.filter(([, value]) => value).flatMap(
    ([name, value]) => [element("dt", name), element("dd", value)]));
  $("device").hidden = false;
}

/** @param {(string|false|null)[]} texts */
function showNotes(texts) {
  const shown = texts.flatMap((text) => (text ? [element("li", text)] : []));
  $("notes").replaceChildren(...shown);
  $("notes").hidden = !shown.length;
}

/** @param {object} raw */
function showDevice(raw) {
  const {info, subgroup_size, features} = raw.device, step_ns = raw.calibration?.tick_step ?? null;
  const clock = !features.includes("timestamp-query") ? "none" : step_ns === null ? null : `steps of ${stepText(step_ns)}`;
  const looks = {safe: "works", tickets: "works, in the order of tickets", no: "does not work: slower kernels run instead"};
  showFacts([
    ["GPU", gpuName(raw.device)],
    ["As WebGPU names it", [info.vendor, info.architecture, info.device].filter(Boolean).join(", ")],
    ["Driver", [info.driver, info.backend].filter(Boolean).join(", ")],
    ["Browser", browserName(raw.context)],
    ["Subgroups", subgroup_size ? `${subgroup_size} lanes` : "none"],
    ["GPU clock", clock],
    ["Look-back", looks[raw.lookback.verdict]],
  ]);
  showNotes(notesOf(raw));
}

/** @param {object} raw @returns {(string|false)[]} */
function notesOf(raw) {
  const {info, features} = raw.device, step_ns = raw.calibration?.tick_step ?? 0;
  const isChromium = raw.context.brands?.some(({brand}) => brand === "Chromium") ?? false;
  const remedy = isChromium
    ? "To lift that, open chrome://flags/#enable-webgpu-developer-features, enable it, restart the browser, and start again."
    : "Chrome and Edge can lift that by a flag; this browser may have a setting of its own.";
  return [
    (info.isFallbackAdapter || info.type === "CPU") &&
      "This adapter is software that runs on the CPU. The figures are the CPU's: they say nothing about a GPU.",
    !features.includes("timestamp-query") &&
      "This browser gives no GPU timestamps. Times are by the CPU's clock, and include what submitting costs.",
    step_ns > COARSE_STEP_NS &&
      `This browser rounds the GPU's clock to ${stepText(step_ns)}, so each sample is a run of ${timeText(100 * step_ns)} or more. ${remedy}`,
    raw.context.hidden && "This tab was in the background for a while. Browsers slow such tabs down: times may be too long.",
  ];
}

/** @param {Figures} figures */
function showLinked(figures) {
  showFacts([
    ["GPU", figures.name], ["Browser", figures.browser], ["Measured", `${figures.date}, gridwise_py ${figures.version}`],
    ["GPU clock", figures.step_ns === null ? "none" : `steps of ${stepText(figures.step_ns)}`],
  ]);
  showNotes([
    "These figures came with the link, and nobody has checked them. Start measures this computer's GPU instead.",
    figures.software && "They were measured on an adapter that is software on the CPU: they say nothing about a GPU.",
  ]);
  view.rows = figures.rows.map((row, position) => ({...row, position, kernels: [], gaps_ns: null}));
  showRows();
}

/** All rows, in the order in which they were asked for: they run in another. */
function showRows() {
  view.rows.sort((a, b) => a.position - b.position);
  $("table").tBodies[0].replaceChildren(...view.rows.flatMap(tableRows));
  $("results").hidden = !view.rows.length;
  showCharts();
}

// Roles are said, because the layout for phones takes them from rows and cells.

/** @param {string} [className] @returns {HTMLTableRowElement} */
function rowElement(className = "") {
  const row = document.createElement("tr");
  row.className = className;
  row.setAttribute("role", "row");
  return row;
}

/** @param {string} text @param {string} [className] @returns {HTMLTableCellElement} */
function cellElement(text, className) {
  const made = /** @type {HTMLTableCellElement} */ (element("td", text, className));
  made.setAttribute("role", "cell");
  return made;
}

/** @param {Row} row @returns {HTMLTableRowElement[]} */
function tableRows(row) {
  const tr = rowElement();
  const name = element("th", nameOfCase(row.primitive, row.axes, row.mode));
  name.setAttribute("scope", "row");
  name.setAttribute("role", "rowheader");
  tr.append(name, ...[itemsText(row.n), timeText(row.ns), speedText(row), percentText(row.of)].map((text) => cellElement(text)),
    cellElement(row.result, row.result === "right" ? "right" : "bad"));
  if (row.why === null) return [tr];
  const why = cellElement(row.why);
  why.colSpan = tr.cells.length;
  const explained = rowElement("why");
  explained.append(why);
  return [tr, explained];
}

function showCharts() {
  const width = Math.floor($("results").clientWidth);
  view.drawnWidth = width;
  const charts = width ? speedChart(view.rows, width) : [];
  $("speeds").replaceChildren(...charts);
  $("speed-figure").hidden = !charts.length;
  const bars = kernelBars(view.rows);
  $("kernels").replaceChildren(...bars);
  $("kernel-figure").hidden = !bars.length;
}

// ---- running

/** @param {object} found @param {Rough} rough @returns {Row & {position: number, kernels: object[], gaps_ns: number|null}} */
function rowFrom(found, rough) {
  const wrong = found.checks.find((check) => check.wrong !== null)?.wrong ?? null;
  const {read_bytes, write_bytes, flops} = found.work;
  const isArithmetic = flops > 16 * (read_bytes + write_bytes);
  return {
    primitive: found.primitive, axes: found.axes, n: found.n, mode: found.mode, position: found.position,
    ns: rough.ns, gbs: rough.gbs, gflops: isArithmetic && rough.ns ? flops / rough.ns : null, of: null,
    result: found.error !== null ? "failed" : wrong !== null ? "WRONG" : "right", why: found.error ?? wrong,
    kernels: rough.kernels, gaps_ns: rough.gaps_ns,
  };
}

/** Shares of the speed of copying as many items. */
function addShares() {
  const key = ({n, mode}) => `${n} ${mode}`;
  const copies = new Map(view.rows.filter((row) => row.primitive === "copy" && row.result === "right").map((row) => [key(row), row.gbs]));
  for (const row of view.rows) {
    const copy = copies.get(key(row));
    row.of = copy && row.gbs !== null && row.gflops === null ? row.gbs / copy : null;
  }
}

/** @type {Listener} */
const listener = {
  progress({what, done, total, left_s}) {
    const left = left_s === null ? "" : `, ${leftText(left_s)}`;
    say(done || left_s !== null ? `${what} (${done + 1} of ${total}${left})` : `${what}…`);
    $("bar").value = done / total;
  },
  device(raw) {
    view.raw = raw;
    showDevice(raw);
  },
  row(found, rough) {
    view.rows.push(rowFrom(found, rough));
    addShares();
    showRows();
  },
  isStopped: () => view.stopped,
};

/** @param {boolean} running */
function setRunning(running) {
  view.running = running;
  $("start").hidden = running;
  $("stop").hidden = !running;
  $("stop").disabled = false;
  $("bar").hidden = !running;
  document.documentElement.dataset.done = running ? "" : "yes";
}

async function start() {
  Object.assign(view, {raw: null, rows: [], linked: null, stopped: false});
  setRunning(true);
  $("stop").focus();
  $("device").hidden = $("share").hidden = true;
  showNotes([]);
  showRows();
  $("bar").value = 0;
  try {
    view.raw = await run(view.bundle, browserHost(), listener);
    say(endText(view.raw));
  } catch (error) {
    say(`It could not be run. ${error.name ?? "Error"}: ${error.message ?? error}`);
  }
  if (view.raw?.results.length) finish();
  setRunning(false);
  if (document.activeElement === document.body) $("start").focus();
}

/** @param {object} raw @returns {string} */
function endText(raw) {
  const bad = view.rows.filter((row) => row.result !== "right").length;
  const problems = bad ? ` ${bad} of ${view.rows.length} cases failed or gave wrong results: see the table.` : "";
  if (!raw.complete) return `Stopped after ${raw.results.length} of ${raw.planned} cases.${problems}`;
  return `Done: ${raw.results.length} cases.${problems}`;
}

function finish() {
  showDevice(view.raw);
  $("name").value = gpuName(view.raw.device).slice(0, MOST_NAME);
  showContent();
  $("share").hidden = false;
}

function stop() {
  view.stopped = true;
  $("stop").disabled = true;
  say("Stopping after the work that the GPU has in hand…");
}

// ---- sharing

/** @returns {string} the raw file */
const fileText = () => `${JSON.stringify({...view.raw, name: $("name").value.trim().slice(0, MOST_NAME) || null})}\n`;
const fileName = () => fileNameOf($("name").value, view.raw.context.time.slice(0, 10));

function showContent() {
  const {results, plans, ...head} = view.raw;
  const text = JSON.stringify({...head, name: $("name").value, results: `${results.length} results, with each timestamp`, plans: `${Object.keys(plans).length} plans`}, null, 1);
  $("content").textContent = text;
}

/** @returns {Figures} */
function figures() {
  const {context, gridwise_py, calibration, device} = view.raw;
  return {
    name: $("name").value.trim() || "unknown GPU", browser: browserName(context), date: context.time.slice(0, 10), version: gridwise_py,
    step_ns: calibration?.tick_step ?? null, software: Boolean(device.info.isFallbackAdapter) || device.info.type === "CPU",
    rows: view.rows,
  };
}

function save() {
  const url = URL.createObjectURL(new Blob([fileText()], {type: "application/json"}));
  const anchor = document.createElement("a");
  anchor.href = url;
  anchor.download = fileName();
  anchor.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
  $("shared").textContent = `Saved as ${anchor.download}, in your downloads.`;
}

/** @param {string} text @param {string} what */
async function copyText(text, what) {
  $("copied").value = text;
  $("copied-label").hidden = false;
  try {
    await navigator.clipboard.writeText(text);
    $("shared").textContent = `${what} is in the clipboard.`;
  } catch {
    $("copied").select();
    $("shared").textContent = `The browser did not allow to copy. ${what} is selected below: copy it from there.`;
  }
}

const pageUrl = () => document.URL.split("#")[0];
const copyLink = async () => copyText(pageUrl() + await fragmentOf(figures()), "A link that holds these figures");

// ---- opening

async function showFragment() {
  const fragment = new URL(document.URL).hash;
  if (view.running || fragment === "") return;
  try {
    view.linked = await figuresOf(fragment);
    if (view.linked) {
      $("share").hidden = true;
      showLinked(view.linked);
    }
  } catch (error) {
    say(`This link's figures cannot be read: ${error.message}`);
  }
}

function connect() {
  $("start").addEventListener("click", start);
  $("stop").addEventListener("click", stop);
  $("save").addEventListener("click", save);
  $("markdown").addEventListener("click", () => copyText(markdownOf(figures()), "The table"));
  $("link").addEventListener("click", copyLink);
  $("issue").addEventListener("click", () => copyText(issueOf(figures(), fileName()), "A text that adds this GPU"));
  $("name").addEventListener("input", showContent);
  addEventListener("hashchange", showFragment);
  new ResizeObserver(() => {
    if (Math.floor($("results").clientWidth) !== view.drawnWidth) showCharts();
  }).observe($("results"));
}

async function begin() {
  try {
    connect();
    view.bundle = JSON.parse(await unpacked($("bundle").textContent, "deflate"));
    view.bundle_sha256 = $("bundle").dataset.sha256;
    const cases = view.bundle.jobs.length;
    $("what").textContent = `${cases} ${cases === 1 ? "case" : "cases"}: ${[...new Set(view.bundle.cases.map((one) => one.primitive))].join(", ")}.`;
    say(navigator.gpu ? "" : "This browser has no WebGPU here. Chrome, Edge, Firefox and Safari have it on most computers.");
    $("start").disabled = !navigator.gpu;
    await showFragment();
  } catch (error) {
    say(`This page is broken: ${error.message}`);
  }
  document.documentElement.dataset.ready = "yes";
}

begin();
