// ---- heat.js: step times, a row a rank and a column a step.

// More ranks than rows share rows, and a row shows the slowest of its ranks.
const heatRows = 300;
const heatAxis = 46;  // pixels left of the cells, for ranks
const heatFoot = 22;  // pixels below them, for steps
const slowEdges = [1.1, 1.25, 1.5, 2];

const heat = {
  run: null,
  perRow: 1,

  show(run) {
    this.run = run;
    this.perRow = Math.max(1, Math.ceil(run.size / heatRows));
    this.edges = slowEdges.map((edge) => edge * run.medianStep);
    const at = (edge) => seconds(edge * run.medianStep);
    const note = run.steps.length ? `the run’s median is ${seconds(run.medianStep)}` + (this.perRow > 1 ? `; a row is ${this.perRow} ranks and shows the slowest` : "") : "";
    setText($("heat-note"), note);
    drawLegend($("heat-legend"), !run.steps.length ? [] : [`up to ${at(1.1)}`, `to ${at(1.25)}`, `to ${at(1.5)}`, `to ${at(2)}`, "longer than twice the median"],
      run.steps.length && "blank", "not known");
  },

  rows() { return Math.ceil(this.run.size / this.perRow); },
  columns() { return this.run.steps.length; },
  size() { return this.rows() * this.columns(); },
  rankOf(cell) {
    const [row, column] = this.cell(cell);
    return this.slowest(row, column).i;
  },
  chosen(cell) { return this.rankOf(cell) === this.run.selected; },
  choose(cell) { choose(this.rankOf(cell)); },
  cell(index) { return [Math.floor(index / this.columns()), index % this.columns()]; },

  // slowest is the longest step time among the ranks of a row, and whose it is.
  slowest(row, column) {
    let value = NaN, i = row * this.perRow;
    for (let rank = i; rank < Math.min(this.run.size, (row + 1) * this.perRow); rank++) {
      const time = this.run.time(rank, column);
      if (known(time) && !(time <= value)) { value = time; i = rank; }
    }
    return { value, i };
  },

  describe(index, lines) {
    const [row, column] = this.cell(index), { value, i } = this.slowest(row, column);
    const from = row * this.perRow, to = Math.min(this.run.size, from + this.perRow) - 1;
    const parts = [`Step ${count(this.run.steps[column])}`];
    if (from === to) parts.push(`${rankName(this.run, i)}, ${this.run.host[i] || "host not known"}`, known(value) ? seconds(value) : "not known");
    else parts.push(`ranks ${this.run.rank[from]} to ${this.run.rank[to]}`, known(value) ? `slowest is rank ${this.run.rank[i]} with ${seconds(value)}` : "not known");
    return parts.join(lines ? "\n" : ", ");
  },

  layout(width) {
    const rows = this.rows(), columns = this.columns();
    if (!columns) return { height: 40, empty: true };
    const h = rows <= 16 ? 18 : rows <= 70 ? 7 : rows <= 150 ? 3 : 2;
    return { h, w: (width - heatAxis - 4) / columns, height: rows * h + heatFoot + 12, top: 8, columns, rows };
  },

  box(plan, index) {
    if (plan.empty) return { x: 0, y: 0, w: 0, h: 0 };
    const [row, column] = this.cell(index);
    return { x: heatAxis + column * plan.w, y: plan.top + row * plan.h, w: plan.w, h: plan.h };
  },

  at(plan, x, y) {
    if (plan.empty) return -1;
    const column = Math.floor((x - heatAxis) / plan.w), row = Math.floor((y - plan.top) / plan.h);
    return column >= 0 && column < plan.columns && row >= 0 && row < plan.rows ? row * plan.columns + column : -1;
  },

  move(plan, index, dx, dy) {
    const [row, column] = this.cell(index);
    const clamp = (value, size) => Math.min(Math.max(value, 0), size - 1);
    return clamp(row + dy, plan.rows) * plan.columns + clamp(column + dx, plan.columns);
  },

  draw(ctx, plan, top, bottom) {
    ctx.font = font(12);
    ctx.fillStyle = colour.muted;
    ctx.textBaseline = "middle";
    if (plan.empty) {
      ctx.textAlign = "left";
      ctx.fillText("No rank has finished a step yet.", 0, 20);
      return;
    }
    const first = Math.max(0, Math.floor((top - plan.top) / plan.h)), last = Math.min(plan.rows - 1, Math.ceil((bottom - plan.top) / plan.h));
    const gapX = plan.w > 5 ? 1 : 0, gapY = plan.h > 5 ? 1 : 0;
    for (let row = first; row <= last; row++) {
      for (let column = 0; column < plan.columns; column++) {
        const step = stepOf(this.edges, this.slowest(row, column).value);
        ctx.fillStyle = step < 0 ? colour.none : colour[`s${step}`];
        const x = heatAxis + column * plan.w;
        ctx.fillRect(x, plan.top + row * plan.h, plan.w - gapX + (gapX ? 0 : 0.5), plan.h - gapY);
      }
    }
    this.axes(ctx, plan);
  },

  axes(ctx, plan) {
    ctx.textAlign = "right";
    ctx.fillStyle = colour.muted;
    const every = 2 ** Math.max(0, Math.ceil(Math.log2(17 / plan.h)));  // rows from label to label
    const own = this.run.selected < 0 ? -1 : Math.floor(this.run.selected / this.perRow);
    for (let row = 0; row < plan.rows; row += every) {
      if (own >= 0 && Math.abs(row - own) < every) continue;
      ctx.fillText(this.run.rank[row * this.perRow], heatAxis - 8, plan.top + row * plan.h + plan.h / 2);
    }
    if (own >= 0) {
      const y = plan.top + own * plan.h;
      ctx.fillStyle = colour.accent;
      ctx.font = font(12, 650);
      ctx.fillText(this.run.rank[this.run.selected], heatAxis - 8, y + plan.h / 2);
      ctx.font = font(12);
      ctx.strokeStyle = colour.accent;
      ctx.lineWidth = 2;
      ctx.strokeRect(heatAxis - 2, y - 1.5, plan.columns * plan.w + 3, plan.h + 2);
    }
    const y = plan.top + plan.rows * plan.h + heatFoot / 2 + 1, steps = this.run.steps;
    ctx.fillStyle = colour.muted;
    const middle = Math.floor((plan.columns - 1) / 2);
    ctx.textAlign = "left";
    ctx.fillText(`step ${count(steps[0])}`, heatAxis, y);
    ctx.textAlign = "right";
    if (plan.columns > 1) ctx.fillText(count(steps[plan.columns - 1]), heatAxis + plan.columns * plan.w, y);
    ctx.textAlign = "center";
    if (plan.columns > 4) ctx.fillText(count(steps[middle]), heatAxis + (middle + 0.5) * plan.w, y);
  },
};
