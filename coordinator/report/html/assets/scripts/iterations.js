// The table of iterations: kept as columns, filtered and sorted here, twenty at a time.

const PAGE_ROWS = 20;
const OUTCOMES = ["ok", "failed", "timed out"];
const tableView = { rows: [], page: 0, range: null, order: "latency", falls: true };
// Columns that begin with the greatest.
const FALLING = ["latency", "outcome", "reason"];
const traceBytes = data.table ? Uint8Array.from(atob(data.table.traces), (char) => char.charCodeAt(0)) : new Uint8Array();

// 32 hexadecimal digits; "" where the iteration was not traced.
function traceOf(row) {
  let text = "";
  for (let at = 16 * row; at < 16 * row + 16; at++) text += traceBytes[at].toString(16).padStart(2, "0");
  return /[1-9a-f]/.test(text) ? text : "";
}

const uuidForm = (id) => [id.slice(0, 8), id.slice(8, 12), id.slice(12, 16), id.slice(16, 20), id.slice(20)].join("-");
const shownTrace = (row) => data.table.shown[traceOf(row)];

function isWithin(row, range) {
  const { table } = data;
  const [due, latency] = [table.due[row] / 1e3, table.latency[row] / 10];
  // both were rounded
  const slack = 0.002 * latency + 0.06;
  return (
    table.workload[row] === range.workload && !(range.failed && !table.outcome[row]) &&
    due >= range.from - 5e-4 && due < range.to + 5e-4 &&
    latency >= range.low - slack && latency < range.high + slack
  );
}

function rowsWithin(range) {
  const found = [];
  for (let row = 0; row < data.table.iteration.length; row++) if (isWithin(row, range)) found.push(row);
  return found;
}

function showRange(range) {
  byId("f-query").value = "";
  byId("f-workload").value = String(range.workload);
  filterRows(range);
}

const reasonOf = (row) => data.table.reasons[data.table.reason[row]];

// What the field asks for: ">200ms", the number of an iteration, or the beginning of an outcome or of a trace id, or a
// part of the reason: error, step, status.
function queryOf(text) {
  const limit = /^([<>])\s*([\d.]+)\s*(ms|s)?$/.exec(text);
  const { table } = data;
  if (limit) {
    const bound = Number(limit[2]) * (limit[3] === "s" ? 1e4 : 10);
    return limit[1] === ">" ? (row) => table.latency[row] > bound : (row) => table.latency[row] < bound;
  }
  if (OUTCOMES.includes(text)) return (row) => OUTCOMES[table.outcome[row]] === text;
  const digits = text.replace(/-/g, "");
  const isTrace = digits.length > 1 && /^[0-9a-f]+$/.test(digits);
  const number = /^\d{1,9}$/.test(text) ? Number(text) : -1;
  const told = table.reasons.map((reason) => reason.toLowerCase().includes(text));
  const named = OUTCOMES.map((outcome) => outcome.startsWith(text));
  return (row) =>
    table.iteration[row] === number || told[table.reason[row]] || named[table.outcome[row]] ||
    (isTrace && traceOf(row).startsWith(digits));
}

// What a column sorts by. Of equal rows the earlier one comes first.
const ORDERS = {
  iteration: (row) => data.table.iteration[row],
  workload: (row) => data.table.workload[row],
  outcome: (row) => data.table.outcome[row],
  due: (row) => data.table.due[row],
  latency: (row) => data.table.latency[row],
  reason: (row) => reasonOf(row),
  trace: (row) => traceOf(row),
};

function sortRows() {
  const { rows, order, falls } = tableView;
  const keys = new Map(rows.map((row) => [row, ORDERS[order](row)]));
  const way = falls ? -1 : 1;
  rows.sort((a, b) => {
    const [first, second] = [keys.get(a), keys.get(b)];
    return first === second ? a - b : first < second ? -way : way;
  });
  for (const head of byId("f-table").querySelectorAll("th")) {
    if (head.dataset.order === order) head.setAttribute("aria-sort", falls ? "descending" : "ascending");
    else head.removeAttribute("aria-sort");
  }
}

function sortBy(order) {
  tableView.falls = order === tableView.order ? !tableView.falls : FALLING.includes(order);
  tableView.order = order;
  sortRows();
  tableView.page = 0;
  drawRows();
  note();
}

function filterRows(range = null) {
  const { table } = data;
  const text = byId("f-query").value.trim().toLowerCase();
  const workload = byId("f-workload").value;
  const asked = text ? queryOf(text) : () => true;
  tableView.range = range;
  tableView.rows = [];
  for (let row = 0; row < table.iteration.length; row++) {
    if (workload !== "" && table.workload[row] !== Number(workload)) continue;
    if (range && !isWithin(row, range)) continue;
    if (asked(row)) tableView.rows.push(row);
  }
  sortRows();
  tableView.page = 0;
  drawRows();
}

function traceCell(cell, row) {
  const id = traceOf(row);
  const shown = data.table.shown[id];
  cell.className = id ? "l id" : "l dim";
  if (!shown) {
    cell.textContent = id ? uuidForm(id) : "not traced";
    return;
  }
  const link = element("a", uuidForm(id));
  link.href = `#t-${shown}`;
  cell.append(link);
}

function drawRows() {
  const { table } = data;
  const body = byId("f-body");
  const first = tableView.page * PAGE_ROWS;
  body.replaceChildren();
  for (const row of tableView.rows.slice(first, first + PAGE_ROWS)) {
    const line = body.insertRow();
    const cell = (text, className = "") => {
      const made = line.insertCell();
      made.textContent = text;
      made.className = className;
    };
    cell(table.iteration[row].toLocaleString("en"));
    cell(data.names[table.workload[row]], "l");
    cell(OUTCOMES[table.outcome[row]], table.outcome[row] ? "l err" : "l");
    cell(instant(table.due[row] / 1e3));
    cell(duration(table.latency[row] / 10));
    cell(reasonOf(row), "l wide reason");
    traceCell(line.insertCell(), row);
  }
  if (!tableView.rows.length) sayNothing(body);
  const pages = Math.max(1, Math.ceil(tableView.rows.length / PAGE_ROWS));
  const where = tableView.range ? " (one part of the heat map)" : "";
  byId("f-count").textContent =
    `${tableView.rows.length.toLocaleString("en")} of ${table.iteration.length.toLocaleString("en")}${where}`;
  byId("f-page").textContent = `page ${(tableView.page + 1).toLocaleString("en")} of ${pages.toLocaleString("en")}`;
  byId("f-previous").disabled = tableView.page === 0;
  byId("f-next").disabled = tableView.page >= pages - 1;
}

function sayNothing(body) {
  const asked = byId("f-query").value.trim();
  const cell = body.insertRow().insertCell();
  cell.colSpan = 7;
  cell.className = "l dim";
  cell.textContent = asked ? `Nothing found for “${asked}”.` : "No iterations.";
}

function rowsAsCsv() {
  const { table } = data;
  const lines = ["iteration,workload,outcome,due_s,latency_s,reason,trace_id"];
  for (const row of tableView.rows) {
    const id = traceOf(row);
    lines.push([
      table.iteration[row], csvCell(data.names[table.workload[row]]), OUTCOMES[table.outcome[row]],
      table.due[row] / 1e3, table.latency[row] / 1e4, csvCell(reasonOf(row)), id && uuidForm(id),
    ].join(","));
  }
  return lines.join("\n");
}

function turnPage(by) {
  tableView.page += by;
  drawRows();
  note();
}

// What of the table stands in the address, as far as it is not as at first.
function tableAddress() {
  const { range, order, falls, page } = tableView;
  const found = {};
  const [query, workload] = [byId("f-query").value.trim(), byId("f-workload").value];
  if (query) found.q = query;
  if (workload !== "") found.workload = String(Number(workload) + 1);
  if (order !== "latency" || !falls) found.sort = (falls ? "-" : "") + order;
  if (page) found.page = String(page + 1);
  if (range) {
    const ends = [range.from, range.to, range.low, range.high].map((value) => (value === Infinity ? "" : rounded(value)));
    found.range = ends.join("_") + (range.failed ? "_failed" : "");
  }
  return found;
}

function rangeOf(text, workload) {
  const [from, to, low, high, failed, ...more] = (text || "").split("_");
  const ends = [from, to, low].map((value) => (value ? Number(value) : NaN));
  ends.push(high === "" ? Infinity : Number(high));
  const isKnown = ends.every((value) => value >= 0) && ends[0] < ends[1] && ends[2] < ends[3] && workload !== "";
  if (!isKnown || more.length || ![undefined, "failed"].includes(failed)) return null;
  const range = { workload: Number(workload), from: ends[0], to: ends[1], low: ends[2], high: ends[3] };
  return failed ? { ...range, failed: true } : range;
}

function applyTable(wanted) {
  const select = byId("f-workload");
  const sort = /^(-?)([a-z]+)$/.exec(wanted.get("sort") || "");
  const isKnown = sort && Object.hasOwn(ORDERS, sort[2]);
  byId("f-query").value = (wanted.get("q") || "").slice(0, 200);
  select.value = /^\d{1,4}$/.test(wanted.get("workload") || "") ? String(Number(wanted.get("workload")) - 1) : "";
  if (select.selectedIndex < 0) select.value = "";
  tableView.order = isKnown ? sort[2] : "latency";
  tableView.falls = isKnown ? sort[1] === "-" : true;
  filterRows(rangeOf(wanted.get("range"), select.value));
  const page = /^\d{1,6}$/.test(wanted.get("page") || "") ? Number(wanted.get("page")) - 1 : 0;
  const last = Math.max(0, Math.ceil(tableView.rows.length / PAGE_ROWS) - 1);
  tableView.page = Math.min(Math.max(0, page), last);
  drawRows();
}

function setUpTable() {
  byId("f-query").addEventListener("input", () => {
    filterRows();
    note("typing");
  });
  byId("f-query").addEventListener("change", () => { here.kind = ""; });
  byId("f-workload").addEventListener("input", () => {
    filterRows();
    note();
  });
  byId("f-previous").addEventListener("click", () => turnPage(-1));
  byId("f-next").addEventListener("click", () => turnPage(1));
  byId("f-csv").addEventListener("click", (event) => copy(event.target, rowsAsCsv()));
  for (const head of byId("f-table").querySelectorAll("th")) {
    head.querySelector("button").addEventListener("click", () => sortBy(head.dataset.order));
  }
  filterRows();
}
