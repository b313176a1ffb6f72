// ---- table.js: all ranks with their numbers, a page at a time.

const pageRows = 25;

const columns = [
  { name: "Rank", number: true, value: (run, i) => run.rank[i], text: (run, i) => rankLink(run, i) },
  { name: "Host", value: (run, i) => run.host[i], text: (run, i) => run.host[i] || none },
  { name: "Step", number: true, value: (run, i) => run.step[i], text: (run, i) => count(run.step[i]) },
  { name: "Behind", number: true, value: (run, i) => run.lag[i], text: (run, i) => count(run.lag[i]) },
  { name: "Last seen", number: true, value: (run, i) => run.age[i], text: (run, i) => ago(run.age[i]) + (run.silent[i] ? ", silent" : "") },
  { name: "Last step", number: true, value: (run, i) => run.last[i], text: (run, i) => seconds(run.last[i]) },
  { name: "Median step", number: true, value: (run, i) => run.median[i], text: (run, i) => seconds(run.median[i]) },
  { name: "Spans", number: true, value: (run, i) => run.spans[i], text: (run, i) => count(run.spans[i]) },
  { name: "Points", number: true, value: (run, i) => run.points[i], text: (run, i) => count(run.points[i]) },
  { name: "Records", number: true, value: (run, i) => run.records[i], text: (run, i) => count(run.records[i]) },
  { name: "Dropped", number: true, value: (run, i) => run.dropped[i], text: (run, i) => count(run.dropped[i]) },
  { name: "Errors", number: true, value: (run, i) => run.errors[i], text: (run, i) => count(run.errors[i]) },
];

const table = { sort: 0, down: false, page: 0, filter: "" };

// rankLink leads to a rank. Where several services have ranks, it names the service.
function rankLink(run, i, where) {
  const service = run.several ? run.service(i) : null;
  const href = link(run.id, service, run.rank[i]);
  return make("a", { href, "data-key": `${where || "table"} ${href}` }, service ? `${service} ${run.rank[i]}` : String(run.rank[i]));
}

function matching(run) {
  const text = table.filter.trim().toLowerCase();
  const found = [];
  for (let i = 0; i < run.size; i++) {
    if (!text || String(run.rank[i]) === text || run.host[i].toLowerCase().includes(text) || run.node[i].toLowerCase().includes(text)) found.push(i);
  }
  return found;
}

function sorted(run, ranks) {
  const { value } = columns[table.sort], way = table.down ? -1 : 1;
  return ranks.sort((a, b) => {
    const x = value(run, a), y = value(run, b);
    if (known(x) !== known(y)) return known(x) ? -1 : 1;  // what is not known comes last either way
    if (!known(x) || x === y) return run.rank[a] - run.rank[b];
    return (x < y ? -1 : 1) * way;
  });
}

function drawTable(run) {
  const ranks = sorted(run, matching(run));
  const pages = Math.max(1, Math.ceil(ranks.length / pageRows));
  table.page = Math.min(table.page, pages - 1);
  const from = table.page * pageRows, shown = ranks.slice(from, from + pageRows);
  const turn = (to) => () => { table.page = to; drawTable(run); };
  fill($("table"),
    make("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": "Table of all ranks", "data-key": "table-scroll" },
      make("table", null, make("thead", null, make("tr", null, columns.map(heading(run)))), make("tbody", null, shown.map((i) => row(run, i))))),
    make("div", { class: "pages" },
      make("button", { type: "button", "data-key": "before", disabled: table.page === 0, onclick: turn(table.page - 1) }, "Previous"),
      make("button", { type: "button", "data-key": "after", disabled: table.page >= pages - 1, onclick: turn(table.page + 1) }, "Next"),
      make("span", { role: "status" }, ranks.length ? `${count(from + 1)} to ${count(from + shown.length)} of ${plural(ranks.length, "rank")}` : "No rank has this number or such a host.")));
}

function heading(run) {
  return (column, at) => {
    const current = table.sort === at;
    const order = () => {
      table.down = current ? !table.down : column.number && at > 0;
      table.sort = at;
      table.page = 0;
      drawTable(run);
    };
    return make("th", { scope: "col", class: column.number ? "n" : null, "aria-sort": current ? (table.down ? "descending" : "ascending") : null },
      make("button", { type: "button", "data-key": "sort-" + at, "data-dir": current ? (table.down ? "↓" : "↑") : null, onclick: order }, column.name));
  };
}

function row(run, i) {
  return make("tr", { class: i === run.selected ? "picked" : null },
    columns.map((column) => make("td", { class: column.number ? "n" : "host" }, column.text(run, i))));
}
