// How many iterations took how long; failures below them, with counts of their own.

const place10 = (isLog, ms) => (isLog ? Math.log10(ms) : ms);

// Labels of percentiles that are near each other stand in rows.
function percentileMarks(chart, width) {
  const { log, edges } = chart.histogram;
  const [low, high] = [place10(log, edges[0]), place10(log, edges.at(-1))];
  const ends = [];
  return Object.entries(chart.percentiles)
    .filter(([, ms]) => ms >= edges[0] && ms <= edges.at(-1))
    .map(([name, ms]) => {
      const at = place10(log, ms);
      const x = ((at - low) / (high - low)) * width;
      let row = ends.findIndex((end) => x - 14 > end);
      if (row < 0) row = ends.length;
      ends[row] = x + 14;
      const style = percentileStyle(name);
      return {
        xAxis: at,
        lineStyle: style,
        label: { show: true, formatter: name, position: "end", distance: 2 + 13 * row, color: style.color, ...FONT, fontSize: 11 },
      };
    });
}

function durationTicks({ log, edges }) {
  const [low, high] = [edges[0], edges.at(-1)];
  if (log) return logTicks(Math.log10(low), Math.log10(high));
  const every = Math.ceil((edges.length - 1) / (narrow() ? 4 : 10));
  return edges.filter((_, number) => number % every === 0);
}

function histogramOption(chart, of, holder) {
  const { log, edges } = chart.histogram;
  if (!edges.length) return { series: [] };
  const counts = chart.histogram[of];
  const isLast = of === "failed";
  const right = narrow() ? 20 : 84;
  const ticks = durationTicks(chart.histogram);
  const fill = colour[of === "ok" ? "accent-soft" : "error-fill"];
  const marks = of === "ok" ? percentileMarks(chart, holder.clientWidth - gutters().left - right) : [];
  return {
    animation: false,
    textStyle: FONT,
    grid: { left: gutters().left, right, top: of === "ok" ? 46 : 8, bottom: 24, outerBoundsMode: "none" },
    tooltip: { show: false },
    xAxis: {
      type: "value",
      min: place10(log, edges[0]),
      max: place10(log, edges.at(-1)),
      axisLine: { lineStyle: { color: colour.rule2 } },
      axisTick: { customValues: ticks, lineStyle: { color: colour.rule2 } },
      splitLine: { show: false },
      axisLabel: {
        customValues: ticks,
        hideOverlap: true,
        color: colour.ink2,
        ...FONT,
        formatter: (value) => duration(log ? 10 ** value : value, log ? 1 : 3),
      },
    },
    yAxis: valueAxis({
      type: "value",
      min: 0,
      max: Math.max(...counts) ? null : 1,
      minInterval: 1,
      splitNumber: isLast ? 2 : 4,
      axisLabel: { formatter: (value) => (Number.isInteger(value) ? value.toLocaleString("en") : "") },
    }),
    series: [
      {
        type: "custom",
        name: of,
        data: counts.map((count, number) => [place10(log, edges[number]), place10(log, edges[number + 1]), count]),
        encode: { x: [0, 1], y: 2 },
        z: 3,
        renderItem(params, api) {
          if (!api.value(2)) return null;
          const [left, top] = api.coord([api.value(0), api.value(2)]);
          const [end, bottom] = api.coord([api.value(1), 0]);
          // one iteration among thousands is seen, too
          const height = Math.max(2, bottom - top);
          return {
            type: "rect",
            shape: { x: left, y: bottom - height, width: Math.max(1, end - left - 1), height },
            style: { fill },
          };
        },
        markLine: { silent: true, symbol: "none", animation: false, data: marks },
      },
    ],
  };
}

const durationsOption = (chart, view, holder) => histogramOption(chart, "ok", holder);
const failedDurationsOption = (chart, view, holder) => histogramOption(chart, "failed", holder);
