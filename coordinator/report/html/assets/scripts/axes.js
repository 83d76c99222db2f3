// What all charts over time share: gutters, axes, cursor, zoom and marks.

const FONT = { fontFamily: getComputedStyle(document.body).fontFamily, fontSize: 12 };
const narrow = () => innerWidth < 720;
const gutters = () => (narrow() ? { left: 54, right: 54 } : { left: 56, right: 84 });

// The tooltip moves the linked cursor, and what it shows is empty: the readout line speaks. (Without content the
// text mode of ECharts 6.1 throws when a tip is shown again; the HTML mode writes style attributes.)
const SILENT = {
  show: true,
  trigger: "axis",
  renderMode: "richText",
  formatter: () => " ",
  backgroundColor: "transparent",
  // a width of 0 alone leaves a border in the rich text mode
  borderColor: "transparent",
  borderWidth: 0,
  padding: 0,
  shadowBlur: 0,
  shadowColor: "transparent",
  transitionDuration: 0,
  axisPointer: { type: "line" },
};

function hatching() {
  const canvas = document.createElement("canvas");
  canvas.width = canvas.height = 8;
  const pen = canvas.getContext("2d");
  pen.strokeStyle = withAlpha(colour["warn-fill"], 0.75);
  pen.lineWidth = 1.4;
  for (const offset of [-8, 0, 8]) {
    pen.beginPath();
    pen.moveTo(offset, 8);
    pen.lineTo(offset + 8, 0);
    pen.stroke();
  }
  return { image: canvas, repeat: "repeat" };
}

// The line style of each percentile, in all charts: colour, dashes and width all differ.
const PERCENTILES = {
  p50: { token: "accent", type: "solid", width: 2.2 },
  p90: { token: "p90", type: [2, 3], width: 1.6 },
  p95: { token: "p95", type: [8, 3], width: 1.6 },
  p99: { token: "p99", type: [9, 3, 2, 3], width: 1.6 },
};

function percentileStyle(name) {
  const { token, type, width } = PERCENTILES[name];
  return { color: colour[token], type, width };
}

// The seconds that a chart shows: those of a zoom, else all of the load.
const shownPart = (chart, view) => view || { from: 0, to: chart.end };

function betweenRows(before, after, x) {
  if (!before || !after) return [x, ...(before || after).slice(1)];
  const part = after[0] > before[0] ? (x - before[0]) / (after[0] - before[0]) : 0;
  const between = (a, b) => (a == null || b == null ? null : a + (b - a) * part);
  return [x, ...before.slice(1).map((value, at) => between(value, after[at + 1]))];
}

// The rows of a line that a zoom shows, and one at either end of it: axes are scaled by them, and labels of lines stand
// at the last one.
function withinView(rows, view) {
  if (!view || !rows.length) return rows;
  const first = rows.findIndex((row) => row[0] > view.from);
  const end = rows.findIndex((row) => row[0] >= view.to);
  const [begin, stop] = [first < 0 ? rows.length : first, end < 0 ? rows.length : end];
  return [
    betweenRows(rows[begin - 1], rows[begin], view.from),
    ...rows.slice(begin, stop),
    betweenRows(rows[stop - 1], rows[stop], view.to),
  ];
}

// Labels stand in the top chart only, and where they fit; all marks stand in words below.
// What lasts (warm-up, a late generator) yields to events.
function labelPlacer({ from, to }) {
  const width = Math.min(1152, root.clientWidth - (narrow() ? 32 : 64)) - gutters().left - gutters().right;
  const taken = [];
  return (at, text, centred) => {
    const share = (at - from) / (to - from);
    const x = share * width;
    const length = text.length * 6.2;
    const begin = centred ? x - length / 2 : share > 0.8 ? x - length : x;
    if (taken.some(([from, to]) => begin < to + 8 && begin + length > from - 8)) return false;
    taken.push([begin, begin + length]);
    return true;
  };
}

function marksOf(chart, view, withLabels) {
  const areas = [];
  const lines = [];
  const part = shownPart(chart, view);
  const fits = labelPlacer(part);
  const least = (part.to - part.from) / 300;
  const all = chart.marks
    .concat(chart.spoilt.map(([from, to]) => ({ kind: "spoilt", from, to })))
    .filter((mark) => mark.from <= part.to && mark.to >= part.from)
    .map((mark) => ({ ...mark, from: Math.max(mark.from, part.from), to: Math.min(mark.to, part.to) }));
  const lasts = ({ kind }) => kind === "warmup" || kind === "spoilt";
  all.sort((a, b) => lasts(a) - lasts(b) || a.from - b.from);
  let said = false;
  for (const mark of all) {
    const end = Math.max(mark.to, mark.from + least);
    if (mark.kind === "spoilt") {
      const show = withLabels && !said && fits(mark.from, chart.late, true);
      said ||= show;
      areas.push([
        {
          xAxis: mark.from,
          itemStyle: { color: hatching(), opacity: 1 },
          label: { show, formatter: chart.late, position: "top", distance: 3, color: colour.warn, ...FONT, fontSize: 11 },
        },
        { xAxis: end },
      ]);
      continue;
    }
    const bad = mark.kind === "loss" || mark.kind === "breach" || mark.kind === "stop";
    const tint = bad ? withAlpha(colour["error-fill"], 0.13) : withAlpha(colour.ink2, 0.1);
    const atEnd = mark.from > part.from + (part.to - part.from) * 0.8;
    if (mark.to > mark.from) areas.push([{ xAxis: mark.from, itemStyle: { color: tint } }, { xAxis: end }]);
    lines.push({
      xAxis: mark.from,
      lineStyle: { color: bad ? colour.error : colour.ink2, type: "solid", width: 1 },
      label: {
        show: withLabels && !!mark.label && !(narrow() && mark.kind === "warmup") && fits(mark.from, mark.label, false),
        formatter: () => mark.label,
        position: "end",
        align: atEnd ? "right" : "left",
        distance: [atEnd ? 0 : -1, 3],
        color: bad ? colour.error : colour.ink2,
        ...FONT,
        fontSize: 11,
      },
    });
  }
  return {
    markArea: { silent: true, data: areas },
    markLine: { silent: true, symbol: "none", animation: false, data: lines },
  };
}

function timeAxis(chart, bottom) {
  return {
    type: "value",
    // bars would pad the axis, and seconds would not stand above seconds
    containShape: false,
    min: 0,
    max: chart.end,
    axisLine: { show: bottom, lineStyle: { color: colour.rule2 } },
    axisTick: { show: bottom, lineStyle: { color: colour.rule2 } },
    splitLine: { show: true, lineStyle: { color: colour.rule } },
    axisLabel: { show: bottom, color: colour.ink2, ...FONT, formatter: instant, showMaxLabel: false },
    splitNumber: narrow() ? 4 : 9,
    axisPointer: {
      show: true,
      snap: false,
      label: { show: false },
      lineStyle: { color: colour.ink, width: 1, type: "solid", opacity: 0.55 },
    },
  };
}

function valueAxis(options) {
  return {
    axisLine: { show: false },
    axisTick: { show: false },
    splitLine: { lineStyle: { color: colour.rule } },
    ...options,
    axisLabel: { color: colour.ink2, ...FONT, ...(options.axisLabel || {}) },
  };
}

function timeChart(view, top, bottom) {
  return {
    animation: false,
    textStyle: FONT,
    // the same gutters in all charts, whatever their labels: seconds stand above seconds
    grid: { ...gutters(), top, bottom, outerBoundsMode: "none" },
    tooltip: SILENT,
    toolbox: {
      itemSize: 0,
      top: -99,
      feature: { dataZoom: { yAxisIndex: "none", brushStyle: { color: withAlpha(colour.accent, 0.18) } } },
    },
    dataZoom: [
      {
        type: "inside",
        xAxisIndex: 0,
        zoomOnMouseWheel: "ctrl",
        moveOnMouseMove: false,
        moveOnMouseWheel: false,
        filterMode: "none",
        ...(view ? { startValue: view.from, endValue: view.to } : {}),
      },
    ],
  };
}

const endLabel = (name, color, more) => ({ show: true, formatter: () => name, color, ...FONT, distance: 6, ...more });

// Values 1, 2 and 5 of each power of ten, as logarithms.
function logTicks(low, high) {
  const ticks = [];
  for (let power = Math.floor(low); power <= Math.ceil(high); power++) {
    for (const factor of [1, 2, 5]) {
      const value = power + Math.log10(factor);
      if (value >= low && value <= high) ticks.push(value);
    }
  }
  return ticks;
}
