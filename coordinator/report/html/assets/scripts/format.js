// Numbers as the page writes them, and the colours of the theme in force.

const NARROW = "\u202f";
const root = document.documentElement;
const byId = (id) => document.getElementById(id);

const TOKENS = [
  "paper", "ink", "ink2", "ink3", "rule", "rule2", "accent", "accent-soft", "p90", "p95", "p99", "span", "warn",
  "warn-fill", "error", "error-fill", "h1", "h2", "h3", "h4", "h5",
];
const colour = {};

function readColours() {
  const style = getComputedStyle(root);
  for (const name of TOKENS) colour[name] = style.getPropertyValue(`--${name}`).trim();
}

function withAlpha(hex, alpha) {
  const value = parseInt(hex.slice(1), 16);
  return `rgba(${value >> 16},${(value >> 8) & 255},${value & 255},${alpha})`;
}

function significant(value, digits = 3) {
  if (!value) return "0";
  const exponent = Math.floor(Math.log10(Math.abs(value)));
  const options = { maximumFractionDigits: Math.max(0, digits - 1 - exponent) };
  if (exponent >= digits) options.maximumSignificantDigits = digits;
  return value.toLocaleString("en", options);
}

function duration(ms, digits = 3) {
  if (ms == null) return "–";
  if (!ms) return "0";
  if (ms < 0) return "-" + duration(-ms, digits);
  if (ms < 1e-3) return significant(ms * 1e6, digits) + NARROW + "ns";
  if (ms < 1) return significant(ms * 1e3, digits) + NARROW + "µs";
  if (ms < 999.5) return significant(ms, digits) + NARROW + "ms";
  if (ms < 120e3) return significant(ms / 1e3, digits) + NARROW + "s";
  return significant(ms / 60e3, digits) + NARROW + "min";
}

function instant(seconds) {
  if (seconds && Math.abs(seconds) < 0.9995) return duration(seconds * 1e3, 3);
  if (seconds < 120) return significant(seconds, seconds < 10 ? 2 : 3) + NARROW + "s";
  const whole = Math.round(seconds);
  const two = (value) => String(value).padStart(2, "0");
  const [hours, minutes, rest] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60, whole % 60];
  return hours ? `${hours}:${two(minutes)}:${two(rest)}` : `${minutes}:${two(rest)}`;
}

// Numbers are plain. Text that a spreadsheet would take for a formula begins with an apostrophe.
function csvCell(text) {
  const value = String(text).trim();
  if (/^-?\d+(\.\d+)?(e-?\d+)?$/.test(value)) return value;
  const safe = /^[=+\-@\t\r]/.test(value) && !/^-?[\d.,]+$/.test(value) ? `'${value}` : value;
  return `"${safe.replace(/"/g, '""')}"`;
}

function copy(button, text) {
  const said = button.textContent;
  const show = (word) => {
    button.textContent = word;
    setTimeout(() => { button.textContent = said; }, 2000);
  };
  if (!navigator.clipboard) { copyOld(text) ? show("Copied") : show("Clipboard refused"); return; }
  navigator.clipboard.writeText(text).then(() => show("Copied"), () => show(copyOld(text) ? "Copied" : "Clipboard refused"));
}

// Pages that were opened from a file have no clipboard in some browsers.
function copyOld(text) {
  const area = document.createElement("textarea");
  area.value = text;
  area.className = "vh";
  document.body.append(area);
  area.select();
  const done = document.execCommand("copy");
  area.remove();
  return done;
}

function element(name, text, className) {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = text;
  if (className) made.className = className;
  return made;
}
