// ---- scale.js: the one colour scale, in five steps, and what they mean by mode.

const colour = {};   // name -> CSS colour, read anew when the theme changes

function readColours() {
  const style = getComputedStyle(document.documentElement);
  for (const name of ["s0", "s1", "s2", "s3", "s4", "s0-text", "s1-text", "s2-text", "s3-text", "s4-text", "none", "muted", "text", "line", "surface", "accent"]) {
    colour[name] = style.getPropertyValue("--" + name).trim();
  }
}

// A mode colours ranks: value(run, i) is the number, edges are the upper bounds of the first four steps, inclusive.
const modes = {
  lag: {
    edges: [1, 4, 19, 99],
    value: (run, i) => run.lag[i],
    labels: ["0–1 steps behind", "2–4", "5–19", "20–99", "100 or more"],
    short: (value) => (value === 0 ? "0" : `−${compact.format(value)}`),
  },
  silence: {
    edges: [15, 60, 300, 1800],
    value: (run, i) => run.age[i],
    labels: ["heard in the last 15 s", "15–60 s", "1–5 min", "5–30 min", "longer"],
    short: (value) => (value < 60 ? `${Math.round(value)}s` : value < 3600 ? `${Math.floor(value / 60)}m` : `${Math.floor(value / 3600)}h`),
  },
  errors: {
    edges: [0, 3, 30, 300],
    value: (run, i) => run.errors[i],
    labels: ["no errors", "1–3", "4–30", "31–300", "more"],
    short: (value) => compact.format(value),
  },
};

// stepOf is the step of the scale, 0 to 4; -1 for a value that is not known.
function stepOf(edges, value) {
  if (!known(value)) return -1;
  for (let step = 0; step < edges.length; step++) if (value <= edges[step]) return step;
  return edges.length;
}

// drawLegend shows the steps of the scale, and how a cell without a colour looks: outlined or blank.
function drawLegend(element, labels, without, name) {
  const items = labels.map((label, step) => make("li", null, make("span", { class: `swatch s${step}` }), label));
  if (without) items.push(make("li", null, make("span", { class: `swatch ${without}` }), name));
  if (element.textContent !== items.map((item) => item.textContent).join("")) element.replaceChildren(...items);
}
