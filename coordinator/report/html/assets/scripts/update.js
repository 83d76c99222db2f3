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
    for (const follow of FOLLOWERS) follow(stage, chart);
    for (const [name, plot] of Object.entries(stage.plots)) {
      plot.setOption(OPTIONS[name](chart, stage.view, plot.getDom()), true);
    }
    for (const name of OVER_TIME) if (stage.plots[name]) armZoom(stage.plots[name]);
  });
  markWide();
}

const written = new WeakMap();

// What the reader has opened stays open, and what is unchanged stays as it is.
function replaceText(holder, html) {
  if (!holder || written.get(holder) === html) return;
  written.set(holder, html);
  const open = [...holder.querySelectorAll("details")].map((details) => details.open);
  holder.innerHTML = html;
  holder.querySelectorAll("details").forEach((details, number) => { details.open = open[number] || false; });
  addCsvButtons(holder);
}

globalThis.osbench = { update };
