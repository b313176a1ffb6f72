// ---- chart.js: a canvas of cells that a mouse, a keyboard and a screen reader can use.
//
// The canvas is as high as what is seen of it, and drawn anew as it scrolls: its memory does not grow with the ranks. To a screen
// reader it is a listbox, of which the one option at the focus is an element.

class Chart {
  // part has: layout(width) -> {height, …}; draw(ctx, layout, top, bottom); size(); at(layout, x, y) -> index or -1;
  // box(layout, index) -> {x, y, w, h}; move(layout, index, dx, dy) -> index; describe(index) -> text; choose(index).
  constructor(element, part) {
    this.element = element;
    this.part = part;
    this.active = -1;
    this.canvas = make("canvas", { "aria-hidden": "true" });
    this.canvas.style.position = "sticky";
    this.canvas.style.top = "0";
    this.option = make("div", { class: "hidden", role: "option", id: element.id + "-option", "aria-selected": "false" });
    this.spacer = make("div", null, this.canvas);
    element.append(this.spacer, this.option);
    this.context = this.canvas.getContext("2d");
    this.listen();
  }

  listen() {
    const { element, canvas } = this;
    new ResizeObserver(() => this.update()).observe(element);
    element.addEventListener("scroll", () => this.draw(), { passive: true });
    element.addEventListener("focus", () => this.activate(this.active >= 0 ? this.active : 0));
    element.addEventListener("blur", () => this.draw());
    element.addEventListener("keydown", (event) => this.key(event));
    canvas.addEventListener("mousemove", (event) => {
      const index = this.under(event);
      if (index >= 0) showTip(this.part.describe(index, true), event.clientX, event.clientY);
      else hideTip();
    });
    canvas.addEventListener("mouseleave", hideTip);
    canvas.addEventListener("click", (event) => {
      const index = this.under(event);
      if (index < 0) return;
      this.activate(index);
      this.part.choose(index);
    });
  }

  under(event) {
    const box = this.canvas.getBoundingClientRect();
    return this.plan ? this.part.at(this.plan, event.clientX - box.left, event.clientY - box.top + this.element.scrollTop) : -1;
  }

  key(event) {
    const size = this.part.size();
    if (!size || event.altKey || event.ctrlKey || event.metaKey) return;
    const steps = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1], PageUp: [0, -10], PageDown: [0, 10] };
    const from = Math.max(0, this.active);
    if (steps[event.key]) this.activate(this.part.move(this.plan, from, ...steps[event.key]));
    else if (event.key === "Home") this.activate(0);
    else if (event.key === "End") this.activate(size - 1);
    else if (event.key === "Enter" || event.key === " ") this.part.choose(from);
    else return;
    event.preventDefault();
  }

  // activate moves the focus within the chart.
  activate(index) {
    const size = this.part.size();
    if (!size || !this.plan) return;
    this.active = Math.min(Math.max(index, 0), size - 1);
    this.describe();
    const { y, h } = this.part.box(this.plan, this.active);
    const { scrollTop, clientHeight } = this.element;
    if (y < scrollTop) this.element.scrollTop = Math.max(0, y - 24);
    else if (y + h > scrollTop + clientHeight) this.element.scrollTop = y + h - clientHeight + 8;
    this.draw();
  }

  describe() {
    const size = this.part.size();
    if (this.active >= size) this.active = size - 1;
    if (this.active < 0) {
      this.element.removeAttribute("aria-activedescendant");
      setText(this.option, "None");
      return;
    }
    setText(this.option, this.part.describe(this.active));
    this.option.setAttribute("aria-posinset", this.active + 1);
    this.option.setAttribute("aria-setsize", size);
    this.option.setAttribute("aria-selected", String(this.part.chosen(this.active)));
    this.element.setAttribute("aria-activedescendant", this.option.id);
  }

  // update lays out and draws what the part has now.
  update() {
    const width = this.element.clientWidth;
    if (!width) return;
    this.plan = this.part.layout(width);
    this.spacer.style.height = this.plan.height + "px";
    const height = Math.max(1, Math.min(this.plan.height, this.element.clientHeight || this.plan.height));
    const scale = window.devicePixelRatio || 1;
    const pixels = [Math.round(width * scale), Math.round(height * scale)];
    if (this.canvas.width !== pixels[0] || this.canvas.height !== pixels[1]) {
      [this.canvas.width, this.canvas.height] = pixels;
      this.canvas.style.width = width + "px";
      this.canvas.style.height = height + "px";
    }
    this.describe();
    this.draw();
  }

  draw() {
    if (!this.plan) return;
    const { context: ctx, canvas, element } = this;
    const scale = window.devicePixelRatio || 1;
    const top = element.scrollTop;
    ctx.setTransform(scale, 0, 0, scale, 0, 0);
    ctx.clearRect(0, 0, canvas.width, canvas.height);
    ctx.translate(0, -top);
    this.part.draw(ctx, this.plan, top, top + canvas.height / scale);
    if (this.active >= 0 && document.activeElement === element) this.frame(this.active, 2);
  }

  // frame draws a frame around a cell, in two colours so that it is seen on any.
  frame(index, width) {
    const { x, y, w, h } = this.part.box(this.plan, index);
    for (const [line, grow, style] of [[width + 2, width, colour.surface], [width, width, colour.text]]) {
      this.context.lineWidth = line;
      this.context.strokeStyle = style;
      this.context.strokeRect(x - grow + 0.5, y - grow + 0.5, w + 2 * grow - 1, h + 2 * grow - 1);
    }
  }
}

const font = (size, weight) => `${weight || 400} ${size}px system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif`;

// clip shortens a text to a width.
function clip(ctx, text, width) {
  if (ctx.measureText(text).width <= width) return text;
  let low = 0, high = Math.min(text.length, 80);
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (ctx.measureText(text.slice(0, middle) + "…").width <= width) low = middle;
    else high = middle - 1;
  }
  return low ? text.slice(0, low) + "…" : "";
}

function showTip(text, x, y) {
  const tip = $("tip");
  setText(tip, text);
  tip.hidden = false;
  const box = tip.getBoundingClientRect();
  tip.style.left = Math.max(4, Math.min(x + 14, window.innerWidth - box.width - 8)) + "px";
  tip.style.top = (y + 18 + box.height > window.innerHeight ? Math.max(4, y - box.height - 10) : y + 18) + "px";
}
function hideTip() { $("tip").hidden = true; }
