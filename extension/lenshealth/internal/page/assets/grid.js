// ---- grid.js: the ranks by node, one cell each.

// Sizes of a cell, the largest first. The first one is taken with which the grid is no higher than the first of gridHeights, else the
// second; a grid that is higher even so scrolls.
const cellSizes = [{ w: 52, h: 36 }, { w: 38, h: 34 }, { w: 30, h: 22 }, { w: 22, h: 18 }, { w: 15, h: 13 }, { w: 10, h: 9 }, { w: 7, h: 7 }, { w: 5, h: 5 }];
const withNumbers = 30;  // pixels of width from which on a cell has room for its rank
const gridHeights = [320, 540];

const grid = {
  run: null,
  mode: "lag",
  order: [],     // position -> index of a rank
  position: [],  // index of a rank -> position
  nodes: [],     // {name, from, to}: positions

  show(run) {
    this.run = run;
    this.group();
  },

  // group sorts the ranks by node, and the nodes by their lowest rank.
  group() {
    const byNode = new Map();
    for (let i = 0; i < this.run.size; i++) {
      const node = this.run.node[i];
      if (!byNode.has(node)) byNode.set(node, []);
      byNode.get(node).push(i);
    }
    this.order = [];
    this.nodes = [];
    for (const [name, ranks] of byNode) {
      this.nodes.push({ name, from: this.order.length, to: this.order.length + ranks.length });
      this.order.push(...ranks);
    }
    this.position = [];
    this.order.forEach((rank, at) => { this.position[rank] = at; });
  },

  size() { return this.order.length; },
  chosen(at) { return this.order[at] === this.run.selected; },
  choose(at) { choose(this.order[at]); },
  describe(at, lines) { return describeRank(this.run, this.order[at], lines ? "\n" : ", "); },

  layout(width) {
    const plans = cellSizes.map((size) => this.place(width, size));
    const [low, high] = gridHeights.map((height) => plans.find((plan) => plan.height <= height));
    return low?.w >= withNumbers ? low : high || plans.at(-1);
  },

  place(width, { w, h }) {
    const gap = w > 10 ? 2 : 1, between = w > 22 ? 14 : w > 10 ? 10 : 5, label = w > 10 ? 18 : 0;
    const pad = 3;
    const most = Math.max(1, ...this.nodes.map((node) => node.to - node.from));
    const fit = Math.max(1, Math.floor((width - 2 * pad + gap) / (w + gap)));
    const columns = Math.min(fit, this.nodes.length === 1 ? most : Math.min(most, 8));
    const block = columns * (w + gap) - gap;
    const perRow = Math.max(1, Math.floor((width - 2 * pad + between) / (block + between)));
    const plan = { w, h, gap, label, columns, block, blocks: [], height: 0 };
    let y = pad, tallest = 0;
    this.nodes.forEach((node, n) => {
      if (n && n % perRow === 0) { y += tallest + between; tallest = 0; }
      const rows = Math.ceil((node.to - node.from) / columns);
      const height = label + rows * (h + gap) - gap;
      plan.blocks.push({ x: pad + (n % perRow) * (block + between), y, height, node });
      tallest = Math.max(tallest, height);
    });
    plan.height = Math.ceil(y + tallest + pad);
    return plan;
  },

  // blockOf finds the block of a position by halving.
  blockOf(plan, at) {
    let low = 0, high = plan.blocks.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (plan.blocks[middle].node.from <= at) low = middle;
      else high = middle - 1;
    }
    return plan.blocks[low];
  },

  box(plan, at) {
    const block = this.blockOf(plan, at), n = at - block.node.from;
    return {
      x: block.x + (n % plan.columns) * (plan.w + plan.gap),
      y: block.y + plan.label + Math.floor(n / plan.columns) * (plan.h + plan.gap),
      w: plan.w, h: plan.h,
    };
  },

  at(plan, x, y) {
    const block = plan.blocks.find((b) => x >= b.x && x < b.x + plan.block && y >= b.y && y < b.y + b.height);
    if (!block) return -1;
    const column = Math.floor((x - block.x) / (plan.w + plan.gap)), row = Math.floor((y - block.y - plan.label) / (plan.h + plan.gap));
    const at = block.node.from + row * plan.columns + column;
    return row >= 0 && column < plan.columns && at < block.node.to ? at : -1;
  },

  // move goes to the nearest cell in that direction; sideways in the order of ranks.
  move(plan, at, dx, dy) {
    if (dx) return at + dx;
    let best = at;
    for (let i = 0; i < Math.abs(dy); i++) best = this.vertical(plan, best, Math.sign(dy));
    return best;
  },

  // vertical finds the cell above or below whose row is the nearest, and in it the one whose column is.
  vertical(plan, at, way) {
    const here = this.box(plan, at);
    let best = at, nearest = Infinity;
    for (let other = 0; other < this.order.length; other++) {
      const box = this.box(plan, other), down = (box.y - here.y) * way;
      const distance = down * 1e5 + Math.abs(box.x - here.x);
      if (down > 0 && distance < nearest) { nearest = distance; best = other; }
    }
    return best;
  },

  draw(ctx, plan, top, bottom) {
    ctx.textBaseline = "middle";
    for (const block of plan.blocks) {
      if (block.y + block.height < top || block.y > bottom) continue;
      if (plan.label) {
        ctx.font = font(12);
        ctx.fillStyle = colour.muted;
        ctx.textAlign = "left";
        ctx.fillText(clip(ctx, block.node.name || "node not known", plan.block), block.x, block.y + 8);
      }
      for (let at = block.node.from; at < block.node.to; at++) this.cell(ctx, plan, at);
    }
  },

  cell(ctx, plan, at) {
    const { x, y, w, h } = this.box(plan, at), i = this.order[at], mode = modes[this.mode];
    const value = mode.value(this.run, i), step = stepOf(mode.edges, value);
    const hollow = step < 0 || (this.run.silent[i] && this.mode !== "silence");
    ctx.fillStyle = hollow ? colour.none : colour[`s${step}`];
    ctx.fillRect(x, y, w, h);
    if (hollow) {
      const line = this.run.silent[i] && w > 10 ? 2 : 1;
      ctx.lineWidth = line;
      ctx.strokeStyle = this.run.silent[i] ? colour.muted : colour.line;
      ctx.strokeRect(x + line / 2, y + line / 2, w - line, h - line);
    }
    if (this.chosen(at)) {
      ctx.lineWidth = 2;
      ctx.strokeStyle = colour.accent;
      ctx.strokeRect(x - 1, y - 1, w + 2, h + 2);
    }
    if (w < withNumbers) return;
    const text = hollow ? colour.text : colour[`s${step}-text`];
    ctx.fillStyle = text;
    ctx.textAlign = "center";
    ctx.font = font(h > 30 ? 13 : 11, 600);
    ctx.fillText(this.run.rank[i], x + w / 2, h > 30 ? y + 12 : y + h / 2 + 0.5);
    if (h > 30) {
      ctx.font = font(11);
      ctx.fillText(step < 0 ? none : mode.short(value), x + w / 2, y + 26);
    }
  },
};

const rankName = (run, i) => `Rank ${run.rank[i]}` + (run.several ? ` of ${run.service(i) || "a service without a name"}` : "");

// describeRank is what a cell says: rank, host, last step, last seen, and what is wrong.
function describeRank(run, i, separator) {
  const parts = [rankName(run, i), run.host[i] || "host not known"];
  if (run.node[i] !== run.host[i]) parts.push(`node ${run.node[i]}`);
  parts.push(known(run.step[i]) ? `step ${count(run.step[i])}` + (run.lag[i] > 0 ? `, ${plural(run.lag[i], "step")} behind` : "") : "no step yet");
  parts.push(`last seen ${ago(run.age[i])}` + (run.silent[i] ? ", silent" : ""));
  if (run.errors[i]) parts.push(plural(run.errors[i], "error"));
  return parts.join(separator);
}
