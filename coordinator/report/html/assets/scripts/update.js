// The live page: new numbers into the page that is open.

// `frame.overview` is the first screen as HTML; each of `frame.charts` has the numbers of a workload, and in `html`
// the parts of its section that are text, by the id of their element.
function update(frame) {
  if (frame.overview !== undefined) replaceText(byId("overview"), frame.overview);
  (frame.charts || []).forEach((chart, number) => {
    for (const [id, html] of Object.entries(chart.html || {})) replaceText(byId(id), html);
    const stage = stages[number];
    if (!stage) return;
    stage.chart = data.workloads[number] = chart;
    const zoom = stage.plots.load.getOption().dataZoom[0];
    const zoomed = zoom.start > 0.01 || zoom.end < 99.99;
    for (const [name, option] of Object.entries(OPTIONS)) stage.plots[name].setOption(option(chart), true);
    for (const name of OVER_TIME) armZoom(stage.plots[name]);
    if (zoomed) zoomTo(stage, zoom.startValue, zoom.endValue);
  });
  markWide();
}

// What the reader has opened stays open.
function replaceText(holder, html) {
  if (!holder) return;
  const open = [...holder.querySelectorAll("details")].map((details) => details.open);
  holder.innerHTML = html;
  holder.querySelectorAll("details").forEach((details, number) => { details.open = open[number] || false; });
}

globalThis.osbench = { update };
