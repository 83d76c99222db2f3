// The table of iterations: kept as columns, filtered and sorted here, twenty at a time.

const PAGE_ROWS = 20;
const OUTCOMES = ["ok", "failed", "timed out", "lost"];
const tableView = { rows: [], page: 0, range: null };
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
    table.workload[row] === range.workload &&
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

// What the field asks for: ">200ms", "failed", the number of an iteration, or the beginning of a trace id.
function queryOf(text) {
  const limit = /^([<>])\s*([\d.]+)\s*(ms|s)?$/.exec(text);
  const { table } = data;
  if (limit) {
    const bound = Number(limit[2]) * (limit[3] === "s" ? 1e4 : 10);
    return limit[1] === ">" ? (row) => table.latency[row] > bound : (row) => table.latency[row] < bound;
  }
  const digits = text.replace(/-/g, "");
  const byTrace = (row) => digits.length > 1 && traceOf(row).startsWith(digits);
  if (/^\d{1,9}$/.test(text)) return (row) => table.iteration[row] === Number(text) || byTrace(row);
  return (row) => OUTCOMES[table.outcome[row]].startsWith(text) || byTrace(row);
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
  const orders = {
    latency: (a, b) => table.latency[b] - table.latency[a],
    due: (a, b) => table.workload[a] - table.workload[b] || table.due[a] - table.due[b],
  };
  tableView.rows.sort(orders[byId("f-order").value]);
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
    cell(table.due[row] < 0 ? "–" : instant(table.due[row] / 1e3));
    cell(duration(table.latency[row] / 10));
    traceCell(line.insertCell(), row);
  }
  const pages = Math.max(1, Math.ceil(tableView.rows.length / PAGE_ROWS));
  const where = tableView.range ? " (one part of the heat map)" : "";
  byId("f-count").textContent =
    `${tableView.rows.length.toLocaleString("en")} of ${table.iteration.length.toLocaleString("en")}${where}`;
  byId("f-page").textContent = `page ${(tableView.page + 1).toLocaleString("en")} of ${pages.toLocaleString("en")}`;
  byId("f-previous").disabled = tableView.page === 0;
  byId("f-next").disabled = tableView.page >= pages - 1;
}

function rowsAsCsv() {
  const { table } = data;
  const lines = ["iteration,workload,outcome,due_s,latency_s,trace_id"];
  for (const row of tableView.rows) {
    const id = traceOf(row);
    const due = table.due[row] < 0 ? "" : table.due[row] / 1e3;
    lines.push([
      table.iteration[row], csvCell(data.names[table.workload[row]]), OUTCOMES[table.outcome[row]],
      due, table.latency[row] / 1e4, id && uuidForm(id),
    ].join(","));
  }
  return lines.join("\n");
}

function turnPage(by) {
  tableView.page += by;
  drawRows();
}

function setUpTable() {
  for (const id of ["f-query", "f-workload", "f-order"]) byId(id).addEventListener("input", () => filterRows());
  byId("f-previous").addEventListener("click", () => turnPage(-1));
  byId("f-next").addEventListener("click", () => turnPage(1));
  byId("f-csv").addEventListener("click", (event) => copy(event.target, rowsAsCsv()));
  filterRows();
}
