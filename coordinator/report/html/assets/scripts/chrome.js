// Around the charts: copies of tables, theme, printing, the bar of sections.

function addCsvButtons(within) {
  for (const twin of within.querySelectorAll("details.twin")) {
    if (twin.querySelector("button")) continue;
    const button = element("button", "Copy as CSV");
    button.type = "button";
    button.addEventListener("click", () => {
      const rows = [...twin.querySelectorAll("tr")];
      // what is not written plainly stands beside it: seconds, without a unit
      const plain = (cell) => csvCell(cell.dataset.v ?? cell.textContent);
      copy(button, rows.map((row) => [...row.cells].map(plain).join(",")).join("\n"));
    });
    twin.append(button);
  }
}

function setUpCommands() {
  document.addEventListener("click", (event) => {
    const button = event.target.closest("button[data-copy]");
    if (button) copy(button, button.previousElementSibling.textContent);
  });
}

// --- theme, printing ----------------------------------------------------------

const THEMES = [
  { label: "◐ Auto", said: "as the system" },
  { label: "○ Light", said: "light", theme: "light" },
  { label: "● Dark", said: "dark", theme: "dark" },
];
let theme = 0;

function applyTheme(name) {
  if (name) root.dataset.theme = name;
  else delete root.dataset.theme;
  redraw();
}

function redraw() {
  readColours();
  for (const entry of drawn) entry.draw();
  for (const stage of stages) {
    if (stage) for (const name of OVER_TIME) if (stage.plots[name]) armZoom(stage.plots[name]);
  }
}

// On paper charts are pictures that are scaled; drawn again, without a height, they would vanish.
const onPaper = matchMedia("print");

function resizeAll() {
  if (onPaper.matches) return;
  for (const { plot } of drawn) plot.resize();
}

function setUpTheme() {
  byId("theme").addEventListener("click", (event) => {
    theme = (theme + 1) % THEMES.length;
    event.target.textContent = THEMES[theme].label;
    event.target.setAttribute("aria-label", `Colour theme: ${THEMES[theme].said}`);
    applyTheme(THEMES[theme].theme);
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
  const ended = () => {
    applyTheme(THEMES[theme].theme);
    resizeAll();
  };
  addEventListener("beforeprint", () => applyTheme("light"));
  addEventListener("afterprint", ended);
  // a preview of the paper, without those events
  onPaper.addEventListener("change", () => (onPaper.matches ? applyTheme("light") : ended()));
}

function followWidth() {
  let wasNarrow = narrow();
  document.addEventListener("toggle", markWide, true);
  new ResizeObserver(() => {
    resizeAll();
    markWide();
    if (narrow() !== wasNarrow && !onPaper.matches) redraw();
    wasNarrow = narrow();
  }).observe(byId("main"));
}

// Tables that are wider than their place say so; what is folded has a width once it is open.
function markWide() {
  for (const holder of document.querySelectorAll(".scrollx, .scroll")) {
    holder.toggleAttribute("data-wide", holder.scrollWidth > holder.clientWidth + 1);
  }
}

// --- the bar of sections --------------------------------------------------------

function setUpBar() {
  const links = [...document.querySelectorAll(".bar a")];
  const sections = links.map((link) => byId(link.hash.slice(1)));
  const mark = () => {
    let current = 0;
    sections.forEach((section, number) => {
      if (section.getBoundingClientRect().top < 120) current = number;
    });
    links.forEach((link, number) => {
      if (number === current) link.setAttribute("aria-current", "true");
      else link.removeAttribute("aria-current");
    });
  };
  addEventListener("scroll", mark, { passive: true });
  mark();
  byId("jump")?.addEventListener("change", (event) => {
    if (event.target.value) goTo(event.target.value);
  });
}
