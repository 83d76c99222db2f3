// What scenarios put out: pies, stacked areas and lines.

const LINES = [[], [6, 3], [2, 3], [8, 3, 2, 3]];

function shades() {
  return [colour.accent, colour.span, colour["accent-soft"], colour.ink2, colour["warn-fill"], colour.ink, colour.h4, colour.h2];
}

function pieOption(output) {
  return {
    animation: false,
    textStyle: FONT,
    color: shades(),
    series: [
      {
        type: "pie",
        radius: ["0%", "72%"],
        itemStyle: { borderColor: colour.paper, borderWidth: 2 },
        label: { color: colour.ink, ...FONT, formatter: (params) => `${params.name} ${significant(params.value)}` },
        labelLine: { lineStyle: { color: colour.rule2 } },
        data: output.series.map(([name, value]) => ({ name, value })),
      },
    ],
  };
}

function linesOption(output) {
  const stacked = output.figure === "stacked";
  const ramp = shades();
  const instants = output.series.flatMap(([, points]) => points.map((point) => point[0]));
  const axis = instants.every((value) => typeof value === "number") ? { type: "value", min: "dataMin", max: "dataMax" } : { type: "category" };
  return {
    animation: false,
    textStyle: FONT,
    grid: { ...gutters(), right: narrow() ? 80 : 140, top: 12, bottom: 24 },
    tooltip: { show: false },
    xAxis: {
      ...axis,
      axisLine: { lineStyle: { color: colour.rule2 } },
      axisTick: { lineStyle: { color: colour.rule2 } },
      splitLine: { show: false },
      axisLabel: { color: colour.ink2, ...FONT },
    },
    yAxis: valueAxis({ type: "value", splitNumber: 4, axisLabel: { formatter: (value) => significant(value) } }),
    series: output.series.map(([name, points], number) => ({
      type: "line",
      name,
      data: points,
      symbol: points.length > 1 ? "none" : "circle",
      stack: stacked ? "all" : undefined,
      areaStyle: stacked ? { color: ramp[number % ramp.length], opacity: 0.4 } : undefined,
      lineStyle: { color: ramp[number % ramp.length], width: 1.4, type: LINES[Math.floor(number / ramp.length) % LINES.length] },
      itemStyle: { color: ramp[number % ramp.length] },
      endLabel: endLabel(name.length > 20 ? name.slice(0, 19) + "…" : name, ramp[number % ramp.length]),
      labelLayout: { moveOverlap: "shiftY" },
    })),
  };
}

const outputOption = (output) => (output.figure === "pie" ? pieOption(output) : linesOption(output));
