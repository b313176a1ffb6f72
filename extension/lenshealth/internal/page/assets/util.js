// ---- util.js: elements and numbers.

const $ = (id) => document.getElementById(id);

// make makes an element. Texts become text nodes, never HTML: a run called <script> is a name.
function make(tag, props, ...children) {
  const element = document.createElement(tag);
  for (const [key, value] of Object.entries(props || {})) {
    if (value === undefined || value === null || value === false) continue;
    if (key === "class") element.className = value;
    else if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else element.setAttribute(key, value === true ? "" : value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

// fill replaces the children of an element, and gives the focus back to the child with the same data-key.
function fill(element, ...children) {
  const focused = element.contains(document.activeElement) ? document.activeElement.dataset.key : undefined;
  element.replaceChildren(...children.flat().filter(Boolean));
  if (focused !== undefined) element.querySelector(`[data-key="${CSS.escape(focused)}"]`)?.focus({ preventScroll: true });
}

// setText leaves an element alone that says so already: screen readers announce every change of a live region.
function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

const grouped = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const compact = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });

const none = "–";
const known = (value) => value !== null && value !== undefined && !Number.isNaN(value);
const count = (value) => (known(value) ? grouped.format(value) : none);
const plural = (n, one, many) => `${count(n)} ${n === 1 ? one : many || one + "s"}`;

// rate is items a second.
function rate(value) {
  if (!known(value)) return none;
  if (value > 0 && value < 10) return `${value.toFixed(1)}/s`;
  return `${value < 10000 ? grouped.format(value) : compact.format(value)}/s`;
}

// seconds is a duration as people write it.
function seconds(value) {
  if (!known(value)) return none;
  if (value < 0.001) return `${(value * 1e6).toFixed(0)} µs`;
  if (value < 1) return `${(value * 1000).toFixed(value < 0.01 ? 1 : 0)} ms`;
  if (value < 100) return `${value.toFixed(value < 10 ? 2 : 1)} s`;
  return span(value);
}

// span is a duration to the second, and coarser the longer it is: its two largest units.
function span(value) {
  const s = Math.max(0, Math.round(value));
  if (s < 60) return `${s} s`;
  const units = [["d", 86400], ["h", 3600], ["min", 60], ["s", 1]];
  const at = units.findIndex(([, size]) => s >= size);
  const [[large, size], [small, part]] = units.slice(at, at + 2);
  const rest = Math.floor((s % size) / part);
  return `${Math.floor(s / size)} ${large}` + (rest ? ` ${rest} ${small}` : "");
}

const ago = (value) => (known(value) ? `${span(value)} ago` : "never");
const clock = (ms) => new Date(ms).toLocaleTimeString("en-GB");

// stored values are a convenience: a browser that keeps none is as good.
function load(key) {
  try { return localStorage.getItem(key); } catch { return null; }
}
function save(key, value) {
  try { localStorage.setItem(key, value); } catch { /* A private window. */ }
}
