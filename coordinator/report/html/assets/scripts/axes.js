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

// Labels stand in the top chart only, and where they fit; all marks stand in words below.
function labelPlacer(chart) {
  const width = Math.min(1152, root.clientWidth - (narrow() ? 32 : 64)) - gutters().left - gutters().right;
  let last = -1e9;
  return (from, text, centred) => {
    const x = (from / chart.end) * width;
    const length = text.length * 6.2;
    const begin = centred ? x - length / 2 : from > chart.end * 0.8 ? x - length : x;
    if (begin < last + 8) return false;
    last = begin + length;
    return true;
  };
}

function marksOf(chart, withLabels) {
  const areas = [];
  const lines = [];
  const fits = labelPlacer(chart);
  const least = chart.end / 300;
  const all = chart.marks.concat(chart.spoilt.map(([from, to]) => ({ kind: "spoilt", from, to })));
  all.sort((a, b) => a.from - b.from);
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
    const atEnd = mark.from > chart.end * 0.8;
    if (mark.to > mark.from) areas.push([{ xAxis: Math.max(0, mark.from), itemStyle: { color: tint } }, { xAxis: end }]);
    lines.push({
      xAxis: Math.max(0, mark.from),
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

function timeChart(chart, top, bottom) {
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
