// Counters of the system under test, on the time axis of the load: used parts of resources together, queues one by one.

const SHARE_STYLES = ["p50", "p90", "p95", "p99"];
const NEARLY_FULL = 0.9;

const counterRows = (counters, values, end) =>
  values.map((value, number) => [Math.min(number * counters.step, end), value]);

// The line style of a resource by its place; the fifth has the last colour that is left.
const shareStyle = (place) =>
  place < SHARE_STYLES.length ? percentileStyle(SHARE_STYLES[place]) : { color: colour.ink2, type: [1, 2], width: 1.6 };

function sharesOption(chart, view) {
  const { counters } = chart;
  if (!counters?.shares.length) return {};
  const lines = counters.shares.map((share) => withinView(counterRows(counters, share.values, chart.end), view));
  const last = lines.map((rows, place) => [`${place + 1}`, lastKnown(rows, 1)]).filter((one) => one[1] != null);
  const offsets = labelOffsets(last, 1, 110);
  const series = lines.map((rows, place) => ({
    type: "line",
    name: `${place + 1}`,
    data: rows,
    symbol: "none",
    connectNulls: false,
    lineStyle: shareStyle(place),
    endLabel: endLabel(`${place + 1}`, shareStyle(place).color, { offset: offsets[`${place + 1}`] || [0, 0] }),
    z: 4,
  }));
  Object.assign(series[0], marksOf(chart, view, false));
  series[0].markLine.data.push({
    yAxis: NEARLY_FULL,
    lineStyle: { color: colour.error, width: 1, type: [2, 3] },
    label: { show: false },
  });
  return {
    ...timeChart(view, 10, 10),
    xAxis: timeAxis(chart, false),
    yAxis: valueAxis({
      type: "value",
      min: 0,
      max: 1,
      splitNumber: 2,
      axisLabel: { formatter: (value) => `${Math.round(100 * value)} %` },
    }),
    series,
  };
}

function queueOption(chart, view, place) {
  const { counters } = chart;
  const queue = counters?.queues[place];
  if (!queue) return {};
  const rows = withinView(counterRows(counters, queue.values, chart.end), view);
  const text = (value) => (queue.unit === "%" ? `${significant(100 * value)} %` : significant(value));
  return {
    ...timeChart(view, 12, 8),
    xAxis: timeAxis(chart, false),
    yAxis: valueAxis({ type: "value", min: 0, splitNumber: 2, axisLabel: { formatter: text } }),
    series: [
      {
        type: "line",
        name: queue.label,
        data: rows,
        symbol: "none",
        connectNulls: false,
        lineStyle: { color: colour.accent, width: 1.3 },
        areaStyle: { color: withAlpha(colour.accent, 0.12) },
        z: 3,
        ...marksOf(chart, view, false),
      },
    ],
  };
}

// The resource that is fullest at a moment; null if none is known there.
function fullestAt(chart, x) {
  const { counters } = chart;
  if (!counters) return null;
  const at = Math.round(x / counters.step);
  const known = counters.shares.map((share) => ({ label: share.label, value: share.values[at] })).filter((one) => one.value != null);
  return known.reduce((most, one) => (!most || one.value > most.value ? one : most), null);
}

// Counters come, and change their places, while the page is open.
function showCounters(stage, { shares, queues, caption }) {
  const put = (name, isKnown, ...text) => {
    const holder = byId(`${stage.anchor}-${name}`);
    const figure = holder.parentElement;
    figure.hidden = !isKnown;
    if (!isKnown) return;
    figure.querySelector("figcaption").replaceChildren(...text);
    if (!stage.plots[name]) addPlot(stage, name);
  };
  put("shares", shares.length > 0, "System under test ", element("span", caption));
  for (let place = 0; place < 3; place++) {
    const name = `queue${place + 1}`;
    const { label, unit } = queues[place] || {};
    put(name, queues[place], `${label} `, element("span", unit));
    byId(`${stage.anchor}-${name}`).setAttribute("aria-label", `${label} over time`);
  }
}

Object.assign(OPTIONS, {
  shares: sharesOption,
  queue1: (chart, view) => queueOption(chart, view, 0),
  queue2: (chart, view) => queueOption(chart, view, 1),
  queue3: (chart, view) => queueOption(chart, view, 2),
});
OVER_TIME.push("shares", "queue1", "queue2", "queue3");
READINGS.push((chart, x) => {
  const full = fullestAt(chart, x);
  return full && [full.label, `${significant(100 * full.value)} %`];
});
FOLLOWERS.push((stage, chart) => showCounters(stage, chart.counters || { shares: [], queues: [] }));
