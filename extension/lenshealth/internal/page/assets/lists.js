// ---- lists.js: the runs, what one is doing in numbers, its worst ranks, and the rank that is selected.

const worstRanks = 8;

function drawRuns({ runs, left, time }, current) {
  const now = Date.parse(time);
  fill($("run-list"), runs.map((run) => {
    const sub = [plural(run.ranks, "rank")];
    if (run.front_step >= 0) sub.push(`step ${count(run.front_step)}`);
    const flags = [run.silent && `${count(run.silent)} silent`, run.errors && plural(run.errors, "error")].filter(Boolean).join(", ");
    return make("li", null, make("a", { href: link(run.id), "data-key": "run " + run.id, title: run.id, "aria-current": run.id === current ? "page" : null },
      make("span", { class: "name" }, runName(run.id)), make("span", { class: "sub" }, sub.join(", ")),
      make("span", { class: "sub" }, `last seen ${ago((now - Date.parse(run.last_seen)) / 1000)}`),
      flags && make("span", { class: "sub flag" }, flags)));
  }));
  $("runs").hidden = !runs.length;
  $("shell").classList.toggle("alone", !runs.length);
  const gone = [left.evicted_runs && `${plural(left.evicted_runs, "run")} made room for newer ones`, left.evicted_ranks && `${plural(left.evicted_ranks, "silent rank")} made room for others`,
    (left.refused_runs || left.refused_ranks) && "there was no room for all that came"].filter(Boolean).join("; ");
  setText($("runs-more"), gone && `Not shown: ${gone}.`);
}

function drawFacts(run) {
  setText($("run-title"), runName(run.id));
  const fact = (name, value, more, alarm) => make("div", { class: alarm ? "alarm" : null }, make("dt", null, name),
    make("dd", null, value, more ? make("small", null, " " + more) : null));
  fill($("facts"),
    fact("Front step", count(run.front)),
    fact("Ranks", count(run.size), run.world ? `of ${count(run.world)}` : ""),
    fact("Step time", seconds(run.medianStep), known(run.medianStep) ? "median" : ""),
    fact("Farthest behind", count(run.maxLag), known(run.maxLag) ? (run.maxLag === 1 ? "step" : "steps") : ""),
    fact("Silent", count(run.silentCount), run.silentCount === 1 ? "rank" : "ranks", run.silentCount > 0),
    fact("Errors", count(run.errorCount), "", run.errorCount > 0),
    fact("Items", compact.format(run.items), "spans, points, records"),
    run.droppedBy.map((by) => fact(`Dropped by ${by.strategy}`, compact.format(by.items), "items")),
    run.others.map((other) => fact(other.name || "No service name", compact.format(other.spans + other.points + other.records), "items, no rank")));
}

// pick takes the first n ranks by a number, the largest first, of those that the number is known of.
function pick(run, n, value) {
  const found = [];
  for (let i = 0; i < run.size; i++) {
    const x = value(i);
    if (!known(x) || (found.length === n && x <= found[n - 1].x)) continue;
    found.push({ i, x });
    found.sort((a, b) => b.x - a.x || run.rank[a.i] - run.rank[b.i]);
    found.length = Math.min(found.length, n);
  }
  return found.map((f) => f.i);
}

// numbers is a table of heads and rows of cells; n of a head sets its column to the right. It may be wider than its place.
function numbers(name, heads, rows) {
  return make("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": name, "data-key": name }, make("table", null,
    make("thead", null, make("tr", null, heads.map((head) => make("th", { scope: "col", class: head.n ? "n" : null }, head.name)))),
    make("tbody", null, rows.map((cells) => make("tr", null, cells.map((cell, at) => make("td", { class: heads[at].n ? "n" : "host" }, cell)))))));
}

function drawWorst(run) {
  const slow = pick(run, worstRanks, (i) => run.median[i]);
  const times = (i) => (run.medianStep > 0 ? ` (${(run.median[i] / run.medianStep).toFixed(2)} ×)` : "");
  fill($("slow"), slow.length ? numbers("Slowest ranks", [{ name: "Rank" }, { name: "Host" }, { name: "Median step", n: true }, { name: "Behind", n: true }],
    slow.map((i) => [rankLink(run, i, "slow"), run.host[i] || none, seconds(run.median[i]) + times(i), count(run.lag[i])]))
    : make("p", { class: "muted" }, "No rank has finished a step yet."));
  const silent = pick(run, worstRanks, (i) => (run.silent[i] ? run.age[i] : NaN));
  fill($("silent"), silent.length ? numbers("Silent ranks", [{ name: "Rank" }, { name: "Host" }, { name: "Last step", n: true }, { name: "Silent for", n: true }],
    silent.map((i) => [rankLink(run, i, "silent"), run.host[i] || none, count(run.step[i]), span(run.age[i])]))
    : make("p", { class: "muted" }, `None: every rank was heard in the last ${span(run.silentAfter)}` + (run.active ? "." : " of the run.")),
  run.silentCount > silent.length && make("p", { class: "muted small" }, `And ${count(run.silentCount - silent.length)} more; sort the table below by when they were last seen.`));
}

function drawDetail(run) {
  const i = run.selected;
  if (i < 0) {
    setText($("detail-title"), state.rank === null ? "No rank is selected" : `Rank ${state.rank} is not here`);
    fill($("detail-body"), make("p", { class: "muted" }, state.rank === null ? "Select a cell to see its numbers here; the address then leads to it."
      : "Nothing of this rank has arrived."));
    return;
  }
  setText($("detail-title"), rankName(run, i));
  const rows = [["Host", run.host[i] || none], run.node[i] !== run.host[i] && ["Node", run.node[i]], ["Local rank", count(run.local[i])],
    ["Step", count(run.step[i])], ["Behind", known(run.lag[i]) ? plural(run.lag[i], "step") : none], ["Last seen", ago(run.age[i])],
    ["Last step", seconds(run.last[i])], ["Median step", seconds(run.median[i])], ["Spans", count(run.spans[i])], ["Points", count(run.points[i])],
    ["Records", count(run.records[i])], ["Errors", count(run.errors[i])], ["Dropped", count(run.dropped[i])]];
  fill($("detail-body"), run.silent[i] && make("p", { class: "bad" }, `Silent for ${span(run.age[i])}`),
    make("dl", null, rows.filter(Boolean).map(([name, value]) => [make("dt", null, name), make("dd", null, value)]).flat()),
    make("p", null, make("a", { href: link(run.id), "data-key": "unselect" }, "Clear selection")));
}
