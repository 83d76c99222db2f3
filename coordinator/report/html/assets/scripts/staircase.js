// Throughput and latency by load, with the knee.

function lawAt(fit, concurrency) {
  const others = concurrency - 1;
  const [sigma, kappa] = [fit.contention.value, fit.coherency.value];
  return (fit.rate.value * concurrency) / (1 + sigma * others + kappa * concurrency * others);
}

// What the law says: over all loads where these are virtual users, else for each step.
function lawPoints(staircase) {
  const { fit, steps } = staircase;
  if (!fit) return [];
  if (staircase.is_open) return steps.map((step) => [step.load, lawAt(fit, step.concurrency)]);
  const [low, high] = [steps[0].load, steps.at(-1).load];
  return Array.from({ length: 81 }, (_, at) => low + ((high - low) * at) / 80).map((users) => [users, lawAt(fit, users)]);
}

function kneeMarks(staircase, withLabel) {
  const { knee } = staircase;
  if (!knee) return {};
  const label = { show: withLabel, formatter: "knee", position: "end", color: colour.ink2, ...FONT, fontSize: 11 };
  return {
    markArea: { silent: true, data: [[{ xAxis: knee.below, itemStyle: { color: withAlpha(colour.ink2, 0.1) } }, { xAxis: knee.above }]] },
    markLine: {
      silent: true,
      symbol: "none",
      animation: false,
      data: [{ xAxis: knee.load, lineStyle: { color: colour.ink2, type: "solid", width: 1 }, label }],
    },
  };
}

function loadAxis(staircase) {
  const high = staircase.steps.at(-1).load;
  return {
    type: "value",
    min: 0,
    max: high * 1.02,
    name: staircase.is_open ? "arrivals per second" : "virtual users",
    nameLocation: "middle",
    nameGap: 24,
    nameTextStyle: { color: colour.ink2, ...FONT },
    axisLine: { lineStyle: { color: colour.rule2 } },
    axisTick: { lineStyle: { color: colour.rule2 } },
    splitLine: { show: false },
    axisLabel: { color: colour.ink2, ...FONT, formatter: (value) => significant(value), showMaxLabel: false },
  };
}

function stepLine(name, points, style, more) {
  return {
    type: "line",
    name,
    data: points,
    symbol: "circle",
    symbolSize: 5,
    connectNulls: false,
    itemStyle: { color: style.color },
    lineStyle: style,
    endLabel: endLabel(name, style.color),
    ...more,
  };
}

const stepChart = (staircase) => ({
  animation: false,
  textStyle: FONT,
  grid: { ...gutters(), top: 22, bottom: 40, outerBoundsMode: "none" },
  xAxis: loadAxis(staircase),
});

function stepsOption(staircase) {
  const law = lawPoints(staircase);
  const measured = staircase.steps.map((step) => [step.load, step.throughput]);
  const top = Math.max(1e-9, ...[...measured, ...law].map((point) => point[1]));
  const lawLine = {
    type: "line",
    name: "law",
    data: law,
    symbol: "none",
    lineStyle: { color: colour.ink2, width: 1.1, type: [4, 3] },
  };
  return {
    ...stepChart(staircase),
    yAxis: valueAxis({ type: "value", min: 0, max: top * 1.08, splitNumber: 4, axisLabel: { formatter: (value) => (value > top * 1.05 ? "" : significant(value)) } }),
    series: [lawLine, stepLine("ok/s", measured, percentileStyle("p50"), kneeMarks(staircase, true))],
  };
}

function stepTimesOption(staircase) {
  const logs = (key) => staircase.steps.map((step) => [step.load, step[key] > 0 ? Math.log10(1e3 * step[key]) : null]);
  const lines = { p50: logs("p50_s"), p95: logs("p95_s"), p99: logs("p99_s") };
  const known = Object.values(lines).flat().map((point) => point[1]).filter((value) => value != null);
  if (!known.length) return { series: [] };
  const [low, high] = [Math.min(...known) - 0.08, Math.max(...known) + 0.08];
  return {
    ...stepChart(staircase),
    yAxis: valueAxis({
      type: "value",
      min: low,
      max: high,
      axisLabel: { customValues: logTicks(low, high), formatter: (value) => duration(10 ** value, 1) },
      splitLine: { show: false },
    }),
    series: [
      stepLine("p50", lines.p50, percentileStyle("p50"), kneeMarks(staircase, false)),
      stepLine("p95", lines.p95, percentileStyle("p95"), {}),
      stepLine("p99", lines.p99, percentileStyle("p99"), {}),
    ],
  };
}

function buildStaircase(number) {
  const { staircase } = data.workloads[number];
  const anchor = `w${number + 1}`;
  if (!staircase || !byId(`${anchor}-steps`)) return;
  place(byId(`${anchor}-steps`), () => stepsOption(staircase));
  place(byId(`${anchor}-stept`), () => stepTimesOption(staircase));
}
