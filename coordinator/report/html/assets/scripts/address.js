// The view in the address, behind the #: where the reader is, the zoom of each workload, the table of iterations. A copied
// address opens the same view, and Back returns to the one before. Values that are none of this page are ignored.

const here = { place: "", kind: "", applied: "", applying: false, timer: 0 };

const rounded = (value) => Number(value.toFixed(3));

function addressNow() {
  const found = new URLSearchParams();
  for (const stage of stages) {
    if (stage?.view) found.set(`zoom${stage.number + 1}`, `${rounded(stage.view.from)}-${rounded(stage.view.to)}`);
  }
  for (const [name, value] of Object.entries(data.table ? tableAddress() : {})) found.set(name, value);
  const query = found.toString();
  return here.place || query ? `#${here.place}${query && `?${query}`}` : "";
}

// Changes of one kind in a row, such as typed letters, are one step back.
function note(kind = "") {
  if (here.applying) return;
  clearTimeout(here.timer);
  const hash = addressNow();
  if (hash === here.applied) return;
  const way = kind && kind === here.kind ? "replaceState" : "pushState";
  history[way](null, "", location.href.split("#")[0] + hash);
  here.kind = kind;
  here.applied = hash;
}

// A wheel zooms many times a second.
function noteZoom() {
  clearTimeout(here.timer);
  here.timer = setTimeout(note, 250);
}

function goTo(id) {
  here.place = id;
  note();
  showPlace(id);
}

function showPlace(id) {
  const found = id && byId(id);
  if (!found) return;
  for (let fold = found.closest("details"); fold; fold = fold.parentElement.closest("details")) fold.open = true;
  found.scrollIntoView({ block: "start" });
  if (found.matches("details.trace")) found.querySelector("summary").focus({ preventScroll: true });
}

function zoomOf(text, end) {
  const found = /^(\d{1,9}(?:\.\d{1,3})?)-(\d{1,9}(?:\.\d{1,3})?)$/.exec(text || "");
  if (!found) return null;
  const [from, to] = [Number(found[1]), Number(found[2])];
  return from < to && to <= end + 1e-3 ? { from, to: Math.min(to, end) } : null;
}

function placeOf(text) {
  try {
    const id = decodeURIComponent(text);
    return byId(id) ? id : "";
  } catch {
    return "";
  }
}

function applyAddress() {
  const [text, ...rest] = location.hash.slice(1).split("?");
  const wanted = new URLSearchParams(rest.join("?"));
  const before = here.place;
  clearTimeout(here.timer);
  here.applying = true;
  here.kind = "";
  here.applied = location.hash;
  here.place = placeOf(text);
  for (const stage of stages) if (stage) setView(stage, zoomOf(wanted.get(`zoom${stage.number + 1}`), stage.chart.end));
  if (data.table) applyTable(wanted);
  if (before.startsWith("t-") && before !== here.place) byId(before).open = false;
  here.applying = false;
  showPlace(here.place);
}

function followAddress() {
  if (location.hash !== here.applied) applyAddress();
}

// An opened trace is a place; it is told after it was opened, by a click or by the address.
function followTrace(event) {
  const trace = event.target;
  if (!trace.matches("details.trace") || trace.open === (here.place === trace.id)) return;
  if (trace.open) here.place = trace.id;
  else here.place = "";
  note();
}

function followLink(event) {
  const link = event.target.closest('a[href^="#"]');
  if (!link || event.defaultPrevented || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  goTo(link.hash.slice(1));
  const found = byId(link.hash.slice(1));
  if (!link.matches(".skip") || !found) return;
  found.tabIndex = -1;
  found.focus({ preventScroll: true });
}

function setUpAddress() {
  document.addEventListener("toggle", followTrace, true);
  document.addEventListener("click", followLink);
  addEventListener("popstate", followAddress);
  addEventListener("hashchange", followAddress);
  if (location.hash) applyAddress();
}
