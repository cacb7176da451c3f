"use strict";
(() => {
  const shared = JSON.parse(document.getElementById("shared").textContent);
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const views = new Map();
  const chosen = {};

  // ---- charts

  // Letters are about this wide at the size of labels.
  const letter = 6.5;

  // The longest name in a chart's rows: what its legend has to show.
  function longestName(spec) {
    let longest = 0;
    for (const rows of Object.values(spec.datasets ?? {})) {
      for (const row of rows) longest = Math.max(longest, ...["line", "case", "kernel", "file"].map((key) => row[key]?.length ?? 0));
    }
    return longest;
  }

  function look(width, spec) {
    const style = getComputedStyle(document.documentElement);
    const [ink, soft, line, card] = ["--ink", "--soft", "--line", "--card"].map((name) => style.getPropertyValue(name).trim());
    const longest = longestName(spec) * letter;
    const narrow = width < 480 || longest > width / 2 - 70;
    const nameSize = longest > width - 100 ? 10 : 12;
    const label = {labelColor: ink, titleColor: soft, labelFontSize: 12, titleFontSize: 12, titleFontWeight: "normal"};
    return {
      background: card,
      font: getComputedStyle(document.body).fontFamily,
      view: {stroke: null},
      axis: {...label, gridColor: line, domainColor: soft, tickColor: soft, labelLimit: 260, titlePadding: 8, labelSeparation: 8},
      legend: {...label, orient: "bottom", direction: "vertical", columns: narrow ? 1 : 2, labelLimit: Math.max(120, (narrow ? width : width / 2) - 70), symbolStrokeWidth: 2, labelFontSize: nameSize,
        layout: {bottom: {anchor: "start", direction: narrow ? "vertical" : "horizontal"}}},
      range: {category: dark.matches ? shared.colours.dark : shared.colours.light},
      text: {color: ink, fontSize: nameSize, limit: width - 12},
      tick: {color: ink},
    };
  }

  async function draw(element) {
    const name = element.dataset.chart;
    try {
      views.get(name)?.finalize();
      const spec = name === "drift" ? drift() : shared.charts[name];
      const made = await vegaEmbed(element, spec, {
        renderer: "svg",
        ast: true, // no code is made from text: the page's policy forbids it
        config: look(element.clientWidth, spec),
        actions: {export: true, source: false, compiled: false, editor: false},
        downloadFileName: `gridwise-${name}`,
        tooltip: {theme: dark.matches ? "dark" : "light"},
      });
      views.set(name, made);
      for (const [parameter, value] of Object.entries(chosen)) set(made.view, parameter, value);
      await made.view.runAsync();
      element.dataset.drawn = "yes";
    } catch (error) {
      const text = document.createElement("p");
      text.className = "failed";
      text.textContent = `This chart could not be drawn: ${error}`;
      element.replaceChildren(text);
      console.error(error);
    }
  }

  function set(view, parameter, value) {
    // Not every chart has every parameter.
    if (parameter in view.getState().signals) view.signal(parameter, value);
  }

  async function drawAll() {
    for (const element of document.querySelectorAll("[data-chart]")) await draw(element);
    document.documentElement.dataset.drawn = "yes";
  }

  for (const select of document.querySelectorAll("#controls select")) {
    select.addEventListener("change", () => {
      chosen[`shown_${select.name}`] = select.value;
      for (const {view} of views.values()) {
        set(view, `shown_${select.name}`, select.value);
        view.runAsync();
      }
    });
  }

  // ---- samples

  // As quantities.format_time: three digits, always.
  function time(ns) {
    for (const [scale, unit] of [[1e9, "s"], [1e6, "ms"], [1e3, "µs"]]) {
      if (Math.abs(ns) >= 0.9995 * scale) return `${digits(ns / scale)} ${unit}`;
    }
    return Math.abs(ns) >= 99.95 || Number.isInteger(ns) ? `${ns.toFixed(0)} ns` : `${digits(ns)} ns`;
  }

  function digits(value) {
    return Math.abs(value) >= 999.5 ? value.toFixed(0) : value.toPrecision(3);
  }

  function percent(share) {
    return `${share < 0 ? "−" : "+"}${(100 * Math.abs(share)).toFixed(2)} %`;
  }

  function middle(values) {
    const sorted = [...values].sort((a, b) => a - b);
    return (sorted[(sorted.length - 1) >> 1] + sorted[sorted.length >> 1]) / 2;
  }

  function drift() {
    const found = shared.samples[document.getElementById("case").value];
    const rows = [];
    for (const {file, time_ns, count, at, ns, rounds, canary_ns} of found.series) {
      at.forEach((index, i) => {
        const off = ns[i] / time_ns - 1;
        rows.push({kind: "sample", file, at: index + 1, off, sample: `${index + 1} of ${count}`, time: time(ns[i]), percent: percent(off)});
      });
      const usual = middle(canary_ns);
      canary_ns.forEach((value, i) => {
        rows.push({kind: "canary", file, at: 1 + (i * Math.max(count - 1, 1)) / Math.max(canary_ns.length - 1, 1), off: value / usual - 1});
      });
      for (const begin of rounds) rows.push({kind: "round", file, at: begin + 0.5});
    }
    document.getElementById("drift-text").textContent = found.series
      .map(({file, of, count, ns, time}) => `${file}: ${of}, ${time}, ${count} samples` + (ns.length < count ? `, ${ns.length} drawn` : ""))
      .join("; ");
    const kinds = new Set(rows.map(({kind}) => kind));
    const spec = shared.charts.drift;
    return {...spec, layer: spec.layer.filter(({name}) => kinds.has(name)), datasets: {samples: rows}};
  }

  document.getElementById("case")?.addEventListener("change", () => draw(document.querySelector("[data-chart=drift]")));

  // ---- tables

  // The second column that stays in sight stands right of the first, however wide that is.
  function place() {
    for (const table of document.querySelectorAll("table")) {
      const first = table.querySelector("th.stays.first");
      if (first !== null) table.style.setProperty("--first", `${first.offsetWidth}px`);
    }
  }
  place();
  addEventListener("resize", place);

  for (const table of document.querySelectorAll("table")) {
    const body = table.tBodies[0];
    table.querySelectorAll("[data-sort]").forEach((button, column) => {
      button.addEventListener("click", () => {
        const heading = button.closest("th");
        const down = heading.getAttribute("aria-sort") === "ascending";
        for (const other of table.querySelectorAll("th")) other.removeAttribute("aria-sort");
        heading.setAttribute("aria-sort", down ? "descending" : "ascending");
        const numeric = heading.classList.contains("number");
        const rows = [...body.rows].map((row) => {
          const cell = row.cells[column];
          return {row, key: numeric ? (cell.dataset.value === undefined ? null : Number(cell.dataset.value)) : cell.textContent};
        });
        rows.sort((a, b) => {
          // What is not known comes last, either way.
          if (a.key === null || b.key === null) return (a.key === null) - (b.key === null);
          const order = numeric ? a.key - b.key : a.key.localeCompare(b.key, "en", {numeric: true});
          return down ? -order : order;
        });
        body.append(...rows.map(({row}) => row));
      });
    });
    table.closest(".table").querySelector("[data-filter]")?.addEventListener("input", (event) => {
      const words = event.target.value.toLowerCase().split(/\s+/).filter(Boolean);
      for (const row of body.rows) {
        const text = [...row.cells].map((cell) => cell.textContent).join(" ").toLowerCase();
        row.hidden = !words.every((word) => text.includes(word));
      }
    });
  }

  // ---- raw files

  for (const button of document.querySelectorAll("[data-save]")) {
    button.addEventListener("click", async () => {
      const packed = document.querySelector(`[data-raw="${Number(button.dataset.save)}"]`).textContent;
      const bytes = Uint8Array.from(atob(packed), (character) => character.charCodeAt(0));
      let blob = new Blob([bytes]);
      let name = button.dataset.name;
      if (globalThis.DecompressionStream) {
        blob = await new Response(blob.stream().pipeThrough(new DecompressionStream("gzip"))).blob();
      } else {
        name += ".gz";
      }
      const link = document.createElement("a");
      link.href = URL.createObjectURL(blob);
      link.download = name;
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 10000);
    });
  }

  // ---- begin, and whenever light, dark or the width changes

  let again = 0;
  let width = innerWidth;
  function redraw() {
    clearTimeout(again);
    again = setTimeout(drawAll, 200);
  }
  dark.addEventListener("change", redraw);
  addEventListener("resize", () => {
    // A phone's address bar changes the height only.
    if (innerWidth !== width) redraw();
    width = innerWidth;
  });
  drawAll();
})();
