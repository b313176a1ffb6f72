// ---- model.js: what is shown, and the address that leads to it.

// The rank that is selected is a number in a service: of several services of a run each has a rank 0.
const state = { runs: null, run: null, service: null, rank: null, detail: null };

// runName is what a run is called: its id, but for what names no run.
const runName = (id) => (id === "(none)" ? "Ranks without a run" : id);

function readAddress() {
  const given = new URLSearchParams(location.hash.slice(1));
  const rank = given.get("rank");
  state.run = given.get("run");
  state.service = given.get("service");
  state.rank = rank !== null && /^\d+$/.test(rank) ? Number(rank) : null;
  const mode = given.get("colour");
  if (modes[mode]) grid.mode = mode;
}

// link is the address of a run, or of a rank in it.
function link(run, service, rank) {
  const params = new URLSearchParams();
  if (run !== null) params.set("run", run);
  if (known(rank)) {
    if (service) params.set("service", service);
    params.set("rank", rank);
  }
  if (grid.mode !== "lag") params.set("colour", grid.mode);
  return "#" + params;
}

// choose selects the rank with this index in the run that is shown, or none; to select it again is to let it go.
function choose(index) {
  const run = state.detail;
  const again = index === run.selected;
  location.hash = index === null || again ? link(run.id) : link(run.id, run.several ? run.service(index) : null, run.rank[index]);
}

// runOf makes of an answer of /api/runs/{id} what the page works with: columns, where what is not known is NaN.
function runOf(answer) {
  const { rows } = answer, now = Date.parse(answer.time);
  const from = (column, none) => column.map((value) => (value === none ? NaN : value));
  const names = (column, list) => column.map((at) => list[at] ?? "");
  const host = names(rows.host, answer.hosts), node = names(rows.node, answer.nodes);
  const begun = answer.steps.findIndex((_, column) => rows.recent.some((times) => times[column]));
  const unknown = begun < 0 ? answer.steps.length : begun;  // columns, before the first step that any rank's time is known of
  const run = {
    id: answer.id, size: rows.rank.length, silentAfter: answer.silent_after_seconds, active: answer.active,
    front: answer.front_step < 0 ? NaN : answer.front_step, medianStep: answer.step_seconds_p50 || NaN, maxLag: answer.max_lag < 0 ? NaN : answer.max_lag,
    world: answer.world_size, silentCount: answer.silent, errorCount: answer.errors, droppedBy: answer.dropped_by,
    items: answer.spans + answer.points + answer.records, lastSeen: (now - Date.parse(answer.last_seen)) / 1000,
    others: answer.services.filter((service) => !service.ranks),
    several: answer.services.filter((service) => service.ranks).length > 1,
    service: (i) => answer.services[rows.service[i]]?.name ?? "",
    rank: rows.rank, local: from(rows.local_rank, -1), host, node: node.map((name, i) => name || host[i]),
    age: rows.last_seen.map((at) => Math.max(0, (now - at) / 1000)), silent: rows.silent,
    step: from(rows.step, -1), lag: from(rows.lag, -1), last: from(rows.step_seconds, 0), median: from(rows.step_seconds_median, 0),
    spans: rows.spans, points: rows.points, records: rows.records, errors: rows.errors, dropped: rows.dropped,
    steps: answer.steps.slice(unknown), time: (i, column) => rows.recent[i][unknown + column] || NaN,
  };
  select(run);
  return run;
}

// select finds the rank of the address; without a service it is the first one with that number.
function select(run) {
  run.selected = -1;
  for (let i = 0; i < run.size && run.selected < 0; i++) {
    if (run.rank[i] === state.rank && (state.service === null || run.service(i) === state.service)) run.selected = i;
  }
}
