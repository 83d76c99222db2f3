// Draws the charts of every workload, and links those over time: one cursor, one zoom, one readout line.

const data = JSON.parse(byId("data").textContent);
const drawn = [];
const stages = [];
// a finger scrolls the page; it zooms with the buttons
const fine = matchMedia("(pointer: fine)").matches;

const OPTIONS = {
  load: loadOption,
  rates: ratesOption,
  fails: failuresOption,
  bands: bandsOption,
  heat: heatOption,
  curve: curveOption,
  hist: durationsOption,
  histf: failedDurationsOption,
};
const OVER_TIME = ["load", "rates", "fails", "bands", "heat"];
// Of optional parts: [label, text] of what a chart knows at a moment, or null; and what follows new numbers.
const READINGS = [];
const FOLLOWERS = [];

function armZoom(plot) {
  if (!fine) return;
  plot.dispatchAction({ type: "takeGlobalCursor", key: "dataZoomSelect", dataZoomSelectActive: true });
}

function place(holder, make) {
  const plot = echarts.init(holder, null, { renderer: "canvas" });
  const entry = { holder, plot, draw: () => plot.setOption(make(), true) };
  entry.draw();
  drawn.push(entry);
  return plot;
}

function buildWorkload(number) {
  const anchor = `w${number + 1}`;
  if (!byId(`${anchor}-load`)) return;
  const stage = { number, anchor, chart: data.workloads[number], plots: {}, x: 0, view: null };
  stages[number] = stage;
  for (const name of Object.keys(OPTIONS)) addPlot(stage, name);
  echarts.connect(anchor);
  stage.plots.heat?.on("click", (event) => {
    if (event.seriesName === "examples") goTo(`t-${event.data.example.id}`);
    else if (event.seriesName === "cells") showHits(stage, event.value);
    else if (event.seriesName === "failed") showFailed(stage, event.value);
  });
}

// A chart of counters that are not known yet is hidden, and has no size to draw in.
function addPlot(stage, name) {
  const holder = byId(`${stage.anchor}-${name}`);
  if (!holder || holder.parentElement.hidden) return;
  stage.plots[name] = place(holder, () => OPTIONS[name](stage.chart, stage.view, holder));
  if (OVER_TIME.includes(name)) linkOverTime(stage, stage.plots[name], holder);
}

function linkOverTime(stage, plot, holder) {
  plot.group = stage.anchor;
  plot.on("updateAxisPointer", (event) => {
    const axis = (event.axesInfo || [])[0];
    if (axis) readOut(stage, axis.value);
  });
  plot.on("datazoom", () => followZoom(stage, plot));
  armZoom(plot);
  holder.addEventListener("keydown", (event) => moveByKey(event, stage, plot, holder));
}

// A zoom of one chart is that of all; their other axes follow what is shown.
function followZoom(stage, plot) {
  const zoom = plot.getOption().dataZoom[0];
  const isZoomed = zoom.start > 0.01 || zoom.end < 99.99;
  const view = isZoomed ? { from: zoom.startValue, to: zoom.endValue } : null;
  if (view?.from === stage.view?.from && view?.to === stage.view?.to) return;
  setView(stage, view);
  noteZoom();
}

function setView(stage, view) {
  stage.view = view;
  zoomButton(stage, "out").disabled = !view;
  if (stage.redraw) return;
  // not within the event: the chart is at work
  stage.redraw = requestAnimationFrame(() => {
    stage.redraw = 0;
    drawOverTime(stage);
  });
}

function drawOverTime(stage) {
  for (const name of OVER_TIME) {
    const plot = stage.plots[name];
    if (!plot) continue;
    plot.setOption(OPTIONS[name](stage.chart, stage.view, plot.getDom()), true);
    armZoom(plot);
  }
}

const zoomButton = (stage, what) =>
  document.querySelector(`button[data-workload="${stage.number}"][data-do=${what}]`);

// --- readout ---------------------------------------------------------------

function readOut(stage, x) {
  const { chart } = stage;
  const { load } = chart;
  const second = Math.max(0, Math.min(load.started.length - 1, Math.floor(x / load.width)));
  const rows = chart.bands.rows;
  const band = rows[Math.max(0, Math.min(rows.length - 1, Math.floor(x / chart.bands.width)))];
  const line = byId(`${stage.anchor}-read`);
  stage.x = x;
  line.replaceChildren();
  const put = (name, value, className) => {
    const part = element("span", `${name} `);
    part.append(element("b", value, className));
    line.append(part);
  };
  put("at", `${instant(second * load.width)} – ${instant((second + 1) * load.width)}`);
  if (chart.open) {
    const asked = askedAt(chart, x);
    if (asked != null) put("target", `${significant(asked)}/s`);
    put("started", `${significant(load.started[second] ?? 0)}/s`);
  } else {
    put("in use", significant(load.running[second] ?? 0));
    put("ok", `${significant(load.ok[second] ?? 0)}/s`);
  }
  if (band) {
    put("p50", duration(band[2]));
    put("p95", duration(band[4]));
  }
  const tail = chart.p99.rows.find((row) => Math.abs(row[0] - x) <= chart.p99.width / 2);
  if (tail) put("p99", duration(tail[1]));
  if (load.failed[second]) put("failed", `${significant(load.failed[second])}/s`, "err");
  for (const read of READINGS) {
    const known = read(chart, x);
    if (known) put(...known);
  }
  const late = chart.spoilt.some(([from, to]) => x >= from && x <= to);
  if (late) put("starts", chart.late, "warn");
}

function askedAt(chart, x) {
  const after = chart.asked.findIndex((point) => point[0] >= x);
  if (after < 0) return chart.asked.at(-1)?.[1];
  const [b, a] = [chart.asked[after], chart.asked[after - 1]];
  if (!a || b[0] === a[0]) return b[1];
  return a[1] + ((b[1] - a[1]) * (x - a[0])) / (b[0] - a[0]);
}

// --- keys, zoom -------------------------------------------------------------

function moveByKey(event, stage, plot, holder) {
  const { chart } = stage;
  const step = chart.load.width * (event.shiftKey ? 10 : 1);
  const places = {
    ArrowLeft: stage.x - step,
    ArrowRight: stage.x + step,
    Home: 0,
    End: chart.end - chart.load.width / 2,
  };
  if (event.key === "+") zoomButton(stage, "in").click();
  else if (event.key === "Escape") zoomButton(stage, "out").click();
  else if (event.key === "Enter") showColumn(stage);
  else if (event.key in places) {
    const x = Math.max(chart.load.width / 2, Math.min(chart.end - chart.load.width / 2, places[event.key]));
    plot.dispatchAction({ type: "showTip", x: plot.convertToPixel({ xAxisIndex: 0 }, x), y: holder.clientHeight / 2 });
    readOut(stage, x);
  } else return;
  event.preventDefault();
}

function zoomTo(stage, view) {
  setView(stage, view);
  noteZoom();
}

function zoomIn(stage) {
  const { from, to } = shownPart(stage.chart, stage.view);
  const middle = stage.x > from && stage.x < to ? stage.x : (from + to) / 2;
  const half = (to - from) / 4;
  zoomTo(stage, { from: Math.max(0, middle - half), to: Math.min(stage.chart.end, middle + half) });
}

document.addEventListener("click", (event) => {
  const button = event.target.closest("button[data-do]");
  if (!button) return;
  const stage = stages[Number(button.dataset.workload)];
  if (button.dataset.do === "in") zoomIn(stage);
  else zoomTo(stage, null);
});

// --- a cell of the heat map ---------------------------------------------------

function showHits(stage, cell) {
  const { heat } = stage.chart;
  const range = {
    workload: stage.number,
    from: cell[0] * heat.width,
    to: (cell[0] + 1) * heat.width,
    low: 10 ** (cell[1] / heat.perDecade),
    high: 10 ** ((cell[1] + 1) / heat.perDecade),
  };
  listHits(stage, range, cell[2], `of ${duration(range.low)} to ${duration(range.high)}`);
}

// The failed iterations of a column of the strip above the map.
function showFailed(stage, [column, count]) {
  const { heat } = stage.chart;
  const range = {
    workload: stage.number,
    from: column * heat.width,
    to: (column + 1) * heat.width,
    low: 0,
    high: Infinity,
    failed: true,
  };
  listHits(stage, range, count, "that failed,");
}

// What a keyboard reaches: all iterations at the cursor.
function showColumn(stage) {
  const { heat } = stage.chart;
  const column = Math.floor(stage.x / heat.width);
  const range = { workload: stage.number, from: column * heat.width, to: (column + 1) * heat.width, low: 0, high: Infinity };
  const count = heat.cells.filter((cell) => cell[0] === column).reduce((sum, cell) => sum + cell[2], 0);
  listHits(stage, range, count, "of any length");
}

function listHits(stage, range, counted, what) {
  const box = byId(`${stage.anchor}-hits`);
  const found = data.table ? rowsWithin(range) : [];
  const count = data.table && data.table.complete ? found.length : Math.max(counted, found.length);
  const noun = count === 1 ? "iteration" : "iterations";
  const when = `${instant(range.from)} – ${instant(range.to)}`;
  box.replaceChildren(element("span", `${count.toLocaleString("en")} ${noun} ${what} scheduled at ${when}: `));
  const known = found.filter((row) => shownTrace(row)).concat(found.filter((row) => !shownTrace(row)));
  for (const row of known.slice(0, 6)) {
    const number = data.table.iteration[row].toLocaleString("en");
    const shown = shownTrace(row);
    const part = element(shown ? "a" : "code", shown ? `iteration ${number}, waterfall` : `iteration ${number}`);
    if (shown) part.href = `#t-${shown}`;
    box.append(part, " ");
  }
  if (!found.length) return;
  const list = element("a", "list them");
  list.href = "#iterations";
  // the link itself is followed afterwards, and notes both in the address
  list.addEventListener("click", () => showRange(range));
  box.append(list);
}
