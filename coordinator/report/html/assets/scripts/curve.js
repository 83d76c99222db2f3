// The percentile curve: how rare on the axis below, how slow on the other, both logarithmic.

const rarity = (share) => -Math.log10(1 - share);
const CURVE_NAMES = [[0, "0"], [rarity(0.5), "50"], [1, "90"], [2, "99"], [3, "99.9"], [4, "99.99"], [5, "99.999"], [6, "99.9999"]];

function shadedIntervals(intervals) {
  return {
    type: "custom",
    data: intervals.map(([share, bounds]) => [rarity(share), Math.log10(bounds[0]), Math.log10(bounds[1])]),
    z: 1,
    renderItem(params, api) {
      const [x, top] = api.coord([api.value(0), api.value(2)]);
      const bottom = api.coord([api.value(0), api.value(1)])[1];
      return {
        type: "rect",
        shape: { x: x - 7, y: top, width: 14, height: Math.max(1, bottom - top) },
        style: { fill: withAlpha(colour.accent, 0.22) },
      };
    },
  };
}

function limitStrokes(limits) {
  return {
    type: "custom",
    data: limits.map((limit) => [rarity(limit.percent / 100), Math.log10(limit.ms)]),
    z: 5,
    renderItem(params, api) {
      const [x, y] = api.coord([api.value(0), api.value(1)]);
      const text = {
        text: `at most ${duration(10 ** api.value(1))}`,
        x: x - 20,
        y: y - 6,
        align: "right",
        fill: colour.error,
        fontSize: 11,
        fontFamily: FONT.fontFamily,
      };
      return {
        type: "group",
        children: [
          { type: "line", shape: { x1: x - 16, y1: y, x2: x + 16, y2: y }, style: { stroke: colour.error, lineWidth: 1.6 } },
          { type: "text", style: text },
        ],
      };
    },
  };
}

function curveOption(chart) {
  const logs = (points) => points.filter((point) => point[1] > 0).map((point) => [point[0], Math.log10(point[1])]);
  const main = logs(chart.curve);
  const other = logs(chart.otherCurve);
  if (!main.length) return { series: [] };
  const end = main[main.length - 1][0];
  const limits = chart.limits.filter((limit) => limit.percent < 100 && rarity(limit.percent / 100) <= end);
  const intervals = chart.intervals.filter((one) => one[1] && rarity(one[0]) <= end);
  const least = Math.min(main[0][1], chart.open || !other.length ? 1e9 : other[0][1]);
  const ends = [main, other].filter((line) => line.length).map((line) => line[line.length - 1][1]);
  const most = Math.max(...ends, ...limits.map((limit) => Math.log10(limit.ms)));
  const [low, high] = [least - 0.04, most + 0.05];
  const names = CURVE_NAMES.filter(([place]) => place <= end);
  const ticks = names.map(([place]) => place);
  const otherName = chart.open ? "service" : "response";
  const close = ends.length > 1 && Math.abs(ends[0] - ends[1]) < 0.12;
  const below = close && ends[1] < ends[0] ? 9 : close ? -9 : 0;
  return {
    animation: false,
    textStyle: FONT,
    grid: { left: gutters().left, right: 64, top: 14, bottom: 40, outerBoundsMode: "none" },
    tooltip: SILENT,
    xAxis: {
      type: "value",
      min: 0,
      max: end,
      name: "% of iterations were faster",
      nameLocation: "middle",
      nameGap: 24,
      nameTextStyle: { color: colour.ink2, ...FONT },
      axisLine: { lineStyle: { color: colour.rule2 } },
      axisTick: { customValues: ticks, lineStyle: { color: colour.rule2 } },
      splitLine: { show: false },
      axisLabel: {
        customValues: ticks,
        color: colour.ink2,
        ...FONT,
        formatter: (value) => names.find(([place]) => Math.abs(place - value) < 1e-6)?.[1] ?? "",
      },
      axisPointer: { show: true, label: { show: false }, lineStyle: { color: colour.ink, opacity: 0.5, type: "solid" } },
    },
    yAxis: valueAxis({
      type: "value",
      min: low,
      max: high,
      axisLabel: { customValues: logTicks(low, high), formatter: (value) => duration(10 ** value, 1) },
      splitLine: { show: false },
    }),
    series: [
      shadedIntervals(intervals),
      {
        type: "line",
        name: otherName,
        data: other,
        symbol: "none",
        lineStyle: { color: colour.ink2, width: 1.1, type: [4, 3] },
        endLabel: endLabel(otherName, colour.ink2, { offset: [0, below] }),
      },
      {
        type: "line",
        name: chart.kind,
        data: main,
        symbol: "none",
        lineStyle: { color: colour.accent, width: 2.2 },
        endLabel: endLabel(chart.kind, colour.accent, { offset: [0, -below] }),
        markLine: {
          silent: true,
          symbol: "none",
          data: ticks.slice(1).map((place) => ({
            xAxis: place,
            lineStyle: { color: colour.rule, type: "solid" },
            label: { show: false },
          })),
        },
      },
      {
        type: "scatter",
        data: chart.intervals.filter((one) => rarity(one[0]) <= end).map((one) => [rarity(one[0]), Math.log10(one[2])]),
        symbolSize: 6,
        itemStyle: { color: colour.accent, borderColor: colour.paper, borderWidth: 1 },
        label: {
          show: true,
          position: "right",
          distance: 9,
          offset: [0, 11],
          formatter: (params) => duration(10 ** params.value[1]),
          color: colour.ink,
          ...FONT,
          textBorderColor: colour.paper,
          textBorderWidth: 3,
        },
        z: 6,
      },
      limitStrokes(limits),
    ],
  };
}
