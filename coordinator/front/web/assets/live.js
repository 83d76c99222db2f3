// Keeps a page up to date with server-sent events; without it the page shows what was known when it
// was loaded.
(() => {
  "use strict";
  const bar = document.getElementById("live");
  const line = document.getElementById("live-state");
  const abort = document.getElementById("live-abort");
  let source = null, page = null, asked = false, told = "", link = "connecting";

  // the counterpart of feed.py
  const changed = (before, how) => {
    if (how === undefined) return before;
    if ("=" in how) return how["="];
    if ("+" in how) return before.slice(0, how["+"][0]).concat(how["+"][1]);
    const after = Array.isArray(before) ? before.slice() : {...before};
    for (const key of Object.keys(how["~"])) after[key] = changed(before[key], how["~"][key]);
    return after;
  };

  const text = lines => lines.join("\n");

  const say = state => {
    link = state;
    bar.dataset.link = state;
    const parts = [page ? page.line : bar.dataset.line];
    if (asked && !(page && page.over)) parts.push("told to end");
    parts.push({connecting: "connecting", connected: "connected", lost: "connection lost, trying again",
      paused: "paused while hidden", ended: ""}[state]);
    line.textContent = parts.filter(Boolean).join(", ") + (told ? `. ${told}` : "");
  };

  const show = next => {
    const before = page;
    page = next;
    for (const name of ["now", "failures", "log", "list"]) {
      const place = document.getElementById("live-" + name);
      if (place && name in next && (!before || before[name] !== next[name])) replace(place, text(next[name]));
    }
    const counted = document.getElementById("live-log-line");
    if (counted && "log_line" in next) counted.textContent = next.log_line;
    addButtons();
    const report = window.osbench;
    const same = before && before.charts === next.charts && before.overview === next.overview;
    if (report && report.update && "charts" in next && !same) {
      const charts = next.charts.map(chart => ({...chart, html: Object.fromEntries(
        Object.entries(chart.html).map(([id, lines]) => [id, text(lines)]))}));
      try { report.update({overview: text(next.overview), charts}); } catch (error) { console.error(error); }
    }
    hideTwins();
    if (abort) {
      abort.disabled = asked || next.over;
      abort.hidden = next.over;
    }
  };

  // workloads under load have their figures above: those of the report are some seconds older
  const hideTwins = () => {
    const loads = [...document.querySelectorAll("#live-now .live-load")];
    const anchors = new Set(loads.map(one => `#w${Number(one.dataset.workload) + 1}`));
    for (const table of document.querySelectorAll("#overview table.figures")) {
      const rows = [...table.tBodies[0].rows];
      for (const row of rows) row.hidden = anchors.has(row.querySelector("th a").getAttribute("href"));
      table.hidden = rows.every(row => row.hidden);
    }
  };

  // what was ticked in a list stays ticked, and what was opened or closed stays so
  const replace = (place, html) => {
    const opened = new Map([...place.querySelectorAll("details[data-keep]")].map(one => [one.dataset.keep, one.open]));
    const summary = document.activeElement && place.contains(document.activeElement)
      && document.activeElement.closest("details[data-keep]");
    const ticked = new Set([...place.querySelectorAll("input:checked")].map(one => one.value));
    const focused = document.activeElement && place.contains(document.activeElement)
      ? document.activeElement.value : null;
    // who reads the end goes on reading it
    const atEnd = place.scrollTop + place.clientHeight >= place.scrollHeight - 4;
    place.innerHTML = html;
    for (const one of place.querySelectorAll("details[data-keep]")) {
      one.open = opened.get(one.dataset.keep) || false;
      if (summary && summary.dataset.keep === one.dataset.keep) one.querySelector("summary").focus();
    }
    if (atEnd && place.id === "live-log") place.scrollTop = place.scrollHeight;
    for (const one of place.querySelectorAll("input")) {
      one.checked = ticked.has(one.value);
      if (focused && one.value === focused) one.focus();
    }
  };

  // who may change the load has buttons in the head of each workload
  const addButtons = () => {
    const place = document.getElementById("live-now");
    if (!place || !bar.dataset.control || (page && page.over)) return;
    const focused = document.activeElement && document.activeElement.value;
    for (const row of place.querySelectorAll(".live-load")) {
      if (row.querySelector("button") || !["running", "paused"].includes(row.dataset.phase)) continue;
      const cell = row.querySelector(".acts");
      const open = row.dataset.open === "yes";
      const make = (label, act) => {
        const button = document.createElement("button");
        button.type = "button";
        button.textContent = label;
        button.value = row.dataset.workload + label;
        // a row that is replaced between press and release would lose a click
        button.addEventListener("pointerdown", event => { event.preventDefault(); act(); });
        button.addEventListener("click", event => { if (event.detail === 0) act(); });
        cell.append(" ", button);
      };
      if (row.dataset.phase === "paused") make("Go on", () => change(row, {resume_load: true}));
      else make("Pause", () => change(row, {pause: true}));
      make(open ? "Rate" : "Users", () => {
        const asked = prompt(`${open ? "Arrivals per second" : "Virtual users"} of ${row.dataset.name}:`);
        if (asked === null || asked.trim() === "") return;
        const number = Number(asked);
        if (!(number >= 0)) { told = `${asked} is not a number`; say(link); return; }
        change(row, open ? {rate: number} : {users: number});
      });
    }
    for (const button of place.querySelectorAll("button")) if (focused && button.value === focused) button.focus();
  };

  const change = async (row, what) => {
    told = "asking for the change";
    say(link);
    try {
      const answer = await fetch(bar.dataset.control, {
        method: "POST",
        headers: {"X-Osbench-Key": bar.dataset.key},
        body: JSON.stringify({workload: Number(row.dataset.workload), ...what}),
      });
      const said = await answer.text();
      told = answer.ok ? JSON.parse(said).said : said.trim();
    } catch (error) {
      told = error.message;
    }
    say(link);
  };

  // the report may be a moment away; the server of a command that ended with an error goes away
  const reload = tries => {
    const again = () => { if (tries > 1) setTimeout(() => reload(tries - 1), 1000); };
    fetch(location.href, {method: "HEAD"}).then(answer => answer.ok ? location.reload() : again(), again);
  };

  const close = state => {
    if (source) source.close();
    source = null;
    say(state);
  };

  const open = () => {
    if (source || (page && page.over)) return;
    say("connecting");
    source = new EventSource(bar.dataset.frames);
    source.onopen = () => say("connected");
    source.onmessage = event => {
      show(changed(page, JSON.parse(event.data)));
      if (page.over) {
        close("ended");
        // a server that goes on has the report now; that of the run itself ends with it, and a
        // browser that asked again would have no page at all
        if (bar.dataset.after === "reload") {
          reload(10);
        }
        return;
      }
      // what has begun since then has no section on this page
      const unseen = page.charts && page.charts.length > Number(bar.dataset.workloads);
      if (unseen || (page.begun && bar.dataset.begun === "no")) return location.reload();
      say("connected");
    };
    source.onerror = () => {
      if (source && source.readyState === EventSource.CLOSED) {
        // refused, perhaps by a server that was started again: look once more, later
        close("lost");
        setTimeout(() => { if (!document.hidden) open(); }, 5000);
      } else say("lost");
    };
  };

  // six connections to a server are all that a browser has for it
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) { if (source) close("paused"); } else open();
  });

  if (abort) abort.addEventListener("click", async () => {
    if (!confirm("End this run? Iterations that are running end, then the run reports.")) return;
    abort.disabled = asked = true;
    say(link);
    try {
      const answer = await fetch(abort.dataset.url, {method: "POST", headers: {"X-Osbench-Key": abort.dataset.key}});
      if (!answer.ok) throw new Error((await answer.text()).trim());
    } catch (error) {
      asked = false;
      abort.disabled = false;
      say(link);
      line.textContent += ": " + error.message;
    }
  });

  const level = document.getElementById("live-level"), log = document.getElementById("live-log");
  if (level) {
    const filter = () => { log.dataset.from = level.value; log.scrollTop = log.scrollHeight; };
    level.addEventListener("change", filter);
    log.closest("details").addEventListener("toggle", filter);
    filter();
  }

  addButtons();
  hideTwins();
  open();
})();
