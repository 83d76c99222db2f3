// The charts over time: the load, what ended well, what failed, percentiles, every iteration. Each has one unit. `view`
// are the seconds of a zoom, or null: what is not shown scales no axis.

function steps(values, width, end) {
  const points = values.map((value, number) => [Math.min((number + 0.5) * width, end), value]);
  if (!points.length) return points;
  points.unshift([0, values[0]]);
  points.push([end, values[values.length - 1]]);
  return points;
}

function loadOption(chart, view) {
  const { load } = chart;
  const [name, wish] = [chart.open ? "started" : "in use", "target"];
  const real = withinView(steps(chart.open ? load.started : load.running, load.width, chart.end), view);
  const asked = withinView(chart.asked, view);
  const [found, wanted] = [real.at(-1)?.[1] ?? 0, asked.at(-1)?.[1] ?? 0];
  const most = [...real, ...asked].reduce((top, point) => Math.max(top, point[1]), 0);
  const close = Math.abs(found - wanted) < 0.15 * most;
  const up = !close ? 0 : found > wanted ? -8 : 8;
  return {
    ...timeChart(view, 22, 8),
    xAxis: timeAxis(chart, false),
    yAxis: valueAxis({
      type: "value",
      min: 0,
      splitNumber: 3,
      axisLabel: { formatter: (value) => significant(value) + (chart.open ? "/s" : "") },
    }),
    series: [
      {
        type: "line",
        name,
        data: real,
        step: chart.open ? "middle" : false,
        symbol: "none",
        lineStyle: { color: colour.accent, width: 1.3 },
        areaStyle: { color: withAlpha(colour.accent, 0.12) },
        endLabel: endLabel(name, colour.accent, { offset: [0, up] }),
        z: 3,
        ...marksOf(chart, view, true),
      },
      {
        type: "line",
        name: wish,
        data: asked,
        symbol: "none",
        lineStyle: { color: colour.ink, width: 1.2, type: [5, 4] },
        endLabel: endLabel(wish, colour.ink, { offset: [0, -up] }),
        z: 4,
      },
    ],
  };
}

const rateAxis = () =>
  valueAxis({ type: "value", min: 0, splitNumber: 2, axisLabel: { formatter: (value) => `${significant(value)}/s` } });

function ratesOption(chart, view) {
  const { load } = chart;
  return {
    ...timeChart(view, 12, 8),
    xAxis: timeAxis(chart, false),
    yAxis: rateAxis(),
    series: [
      {
        type: "line",
        name: "ok",
        data: withinView(steps(load.ok, load.width, chart.end), view),
        step: "middle",
        symbol: "none",
        lineStyle: { color: colour.accent, width: 1.3 },
        endLabel: endLabel("ok", colour.accent),
        z: 3,
        ...marksOf(chart, view, false),
      },
    ],
  };
}

// Failures are few beside what ended well: on one axis they would be a line of dots.
function failuresOption(chart, view) {
  const { load } = chart;
  const part = shownPart(chart, view);
  const bars = load.failed.map((value, number) => [(number + 0.5) * load.width, value || null]);
  return {
    ...timeChart(view, 12, 8),
    xAxis: timeAxis(chart, false),
    yAxis: rateAxis(),
    series: [
      {
        type: "bar",
        name: "failed",
        data: bars.filter(([x]) => x > part.from - load.width && x < part.to + load.width),
        barWidth: "70%",
        itemStyle: { color: colour["error-fill"] },
        z: 5,
        ...marksOf(chart, view, false),
      },
    ],
  };
}

// Direct labels at the right end, pushed apart so that they never overlap.
function labelOffsets(last, top, height) {
  const labels = last.map(([name, value]) => ({ name, value })).sort((a, b) => a.value - b.value);
  const found = {};
  let previous = 1e9;
  for (const label of labels) {
    const y = height - (label.value / top) * height;
    const offset = Math.min(0, previous - 15 - y);
    previous = y + offset;
    found[label.name] = [0, offset];
  }
  return found;
}

const lastKnown = (rows, column) => {
  for (let at = rows.length - 1; at >= 0; at--) if (rows[at][column] != null) return rows[at][column];
  return null;
};

const BAND_COLUMNS = { p50: 2, p90: 3, p95: 4 };

// Rows from end to end; the last one only carries the labels, with what was known last.
function bandRows(chart, view) {
  const { rows } = chart.bands;
  if (!rows.length) return [];
  const { from, to } = shownPart(chart, view);
  const shown = view ? withinView(rows, view).slice(0, -1) : [[from, ...rows[0].slice(1)], ...rows];
  return [...shown, [to, 0, ...[2, 3, 4, 5, 6].map((at) => lastKnown(shown, at))]];
}

function bandsOption(chart, view) {
  const spread = bandRows(chart, view);
  const column = (at) => spread.map((row) => [row[0], row[at]]);
  const p99 = chart.p99.rows;
  const whole = p99.length ? [[0, p99[0][1]], ...p99, [chart.end, p99[p99.length - 1][1]]] : [];
  const stairs = withinView(whole, view);
  const values = [...spread.map((row) => row[4] ?? row[2] ?? 0), ...stairs.map((row) => row[1])];
  const found = Math.max(0, ...values);
  // a limit far above all that happened would flatten it
  const limits = chart.limits.filter((limit) => limit.ms < 4 * found || !found);
  const top = Math.max(found, ...limits.map((limit) => limit.ms), 1e-6) * 1.12;
  const last = Object.entries(BAND_COLUMNS).map(([name, at]) => [name, lastKnown(spread, at)]);
  if (stairs.length) last.push(["p99", stairs[stairs.length - 1][1]]);
  const offsets = labelOffsets(last.filter((one) => one[1] != null), top, 200);
  const hidden = { type: "line", symbol: "none", lineStyle: { opacity: 0 }, silent: true };
  const band = [
    { ...hidden, stack: "band", data: column(2) },
    {
      ...hidden,
      stack: "band",
      data: spread.map((row) => [row[0], row[2] != null && row[4] != null ? row[4] - row[2] : null]),
      areaStyle: { color: withAlpha(colour.accent, 0.14) },
    },
  ];
  const line = (name, data) => ({
    type: "line",
    name,
    data,
    symbol: "none",
    connectNulls: false,
    lineStyle: percentileStyle(name),
    endLabel: endLabel(name, percentileStyle(name).color, { offset: offsets[name] || [0, 0] }),
    z: 4,
  });
  const median = { ...line("p50", column(2)), ...marksOf(chart, view, false) };
  median.markLine.data.push(...limits.map((limit) => ({
    yAxis: limit.ms,
    lineStyle: { color: colour.error, width: 1, type: [2, 3] },
    label: {
      show: true,
      position: "insideStartTop",
      formatter: `p${limit.percent} at most ${duration(limit.ms)}`,
      color: colour.error,
      ...FONT,
      fontSize: 11,
      distance: [4, 2],
    },
  })));
  return {
    ...timeChart(view, 10, 10),
    xAxis: timeAxis(chart, false),
    yAxis: valueAxis({
      type: "value",
      min: 0,
      max: top,
      splitNumber: 4,
      axisLabel: { formatter: (value) => (value > top * 0.98 ? "" : duration(value, 2)) },
    }),
    series: [...band, median, line("p90", column(3)), line("p95", column(4)), { ...line("p99", stairs), step: "middle" }],
  };
}

// From light to dark in the light theme, from dark to light in the dark one: many is far from the page.
function heatScale(most) {
  const ramp = ["h1", "h2", "h3", "h4", "h5"].map((name) => parseInt(colour[name].slice(1), 16));
  return (count) => {
    const place = most > 1 ? (Math.log(count) / Math.log(most)) * 4 : 4;
    const step = Math.min(3, Math.floor(place));
    const part = place - step;
    const mix = (shift) =>
      Math.round(((ramp[step] >> shift) & 255) * (1 - part) + ((ramp[step + 1] >> shift) & 255) * part);
    return `rgb(${mix(16)},${mix(8)},${mix(0)})`;
  };
}

function heatCells(chart, view, cells) {
  const { heat } = chart;
  const fill = heatScale(heat.cells.reduce((most, cell) => Math.max(most, cell[2]), 1));
  return {
    type: "custom",
    name: "cells",
    data: cells,
    encode: { x: 0, y: 1 },
    clip: true,
    z: 3,
    renderItem(params, api) {
      const x = api.value(0) * heat.width;
      const y = api.value(1);
      const [left, top] = api.coord([x, (y + 1) / heat.perDecade]);
      const [right, bottom] = api.coord([Math.min(x + heat.width, chart.end), y / heat.perDecade]);
      const gap = right - left > 5 ? 0.6 : 0;
      return {
        type: "rect",
        shape: { x: left, y: top, width: Math.max(1, right - left - gap), height: Math.max(1, bottom - top - 0.6) },
        style: { fill: fill(api.value(2)) },
      };
    },
    ...marksOf(chart, view, false),
  };
}

// Height of the strip of failures above the cells, with the gap below it, and of the map below both.
const STRIP = { height: 12, gap: 6, map: 228 };

// Failures stand above the map, by when they were due: among the cells they would cover them.
function failedStrip(chart, columns) {
  const { heat } = chart;
  const most = Math.max(1, ...columns.map((column) => column[1]));
  return {
    type: "custom",
    name: "failed",
    data: columns,
    encode: { x: 0 },
    clip: true,
    z: 5,
    renderItem(params, api) {
      const x = api.value(0) * heat.width;
      const [left] = api.coord([x, 0]);
      const [right] = api.coord([Math.min(x + heat.width, chart.end), 0]);
      const share = most > 1 ? Math.log(api.value(1)) / Math.log(most) : 1;
      return {
        type: "rect",
        shape: { x: left, y: params.coordSys.y, width: Math.max(2, right - left - 0.6), height: STRIP.height },
        style: { fill: withAlpha(colour["error-fill"], 0.45 + 0.55 * share) },
      };
    },
  };
}

const stripName = (chart) => ({
  type: "custom",
  name: "name of the strip",
  data: [[0, 0]],
  encode: { x: 0 },
  silent: true,
  clip: false,
  renderItem: (params) => ({
    type: "text",
    style: {
      text: "failed",
      x: params.coordSys.x + params.coordSys.width + 6,
      y: params.coordSys.y,
      fill: colour.error,
      fontSize: 12,
      fontFamily: FONT.fontFamily,
    },
  }),
});

function failedColumns(chart, isShown) {
  const found = new Map();
  for (const [due] of chart.failed) {
    const column = Math.floor(due / chart.heat.width);
    if (isShown(due)) found.set(column, (found.get(column) || 0) + 1);
  }
  return [...found];
}

function heatOption(chart, view) {
  const { heat } = chart;
  const part = shownPart(chart, view);
  const isShown = (x) => x >= part.from && x <= part.to;
  const cells = heat.cells.filter(([at]) => at * heat.width < part.to && (at + 1) * heat.width > part.from);
  const examples = chart.examples.filter((one) => isShown(one.x));
  const columns = failedColumns(chart, isShown);
  const points = examples.map((one) => Math.log10(one.y));
  const rows = cells.map((cell) => cell[1]);
  const least = (values, none) => values.reduce((a, b) => Math.min(a, b), none);
  const most = (values, none) => values.reduce((a, b) => Math.max(a, b), none);
  const low = Math.min(least(rows, 1e9) / heat.perDecade, least(points, 1e9) - 0.05);
  const high = Math.max((most(rows, -1e9) + 1) / heat.perDecade, most(points, -1e9) + 0.1);
  const [bottom, top] = low < high ? [low, high] : [0, 3];
  const ticks = logTicks(bottom, top);
  const strip = columns.length ? ((top - bottom) * (STRIP.height + STRIP.gap)) / (STRIP.map - STRIP.height - STRIP.gap) : 0;
  return {
    ...timeChart(view, 8, 24),
    xAxis: timeAxis(chart, true),
    yAxis: valueAxis({
      type: "value",
      min: bottom,
      max: top + strip,
      axisLabel: { customValues: ticks, formatter: (value) => duration(10 ** value, 1) },
      axisTick: { show: false, customValues: ticks },
      splitLine: { show: false },
    }),
    series: [
      heatCells(chart, view, cells),
      ...(columns.length ? [failedStrip(chart, columns), stripName(chart)] : []),
      {
        type: "scatter",
        name: "examples",
        data: examples.map((one) => ({
          value: [one.x, Math.log10(one.y)],
          example: one,
          itemStyle: { borderColor: one.kind === "error" ? colour.error : colour.ink },
        })),
        symbol: "diamond",
        symbolSize: 11,
        itemStyle: { color: colour.paper, borderWidth: 1.5 },
        cursor: "pointer",
        z: 6,
      },
    ],
  };
}
