// ---- main.js: where it begins.

let chartGrid, chartHeat;
let lastHeard = 0;   // ms, when the numbers that are shown were true; 0: never

// shownRun is the run of the address, else the one that was seen last.
const shownRun = () => state.run ?? state.runs[0]?.id ?? null;

// show draws the answers, and asks for the run to show, unless nothing has changed.
async function show(runs, pipelines, health) {
  state.runs = runs.runs;
  const id = shownRun();
  const steps = (state.runs.find((run) => run.id === id)?.ranks ?? 0) > 2000 ? 32 : 64;
  if (runs !== drawn.runs || state.detail?.id !== id) {
    const answer = id === null ? null : await ask(`api/runs/${encodeURIComponent(id)}?steps=${steps}`);
    state.detail = answer && runOf(answer);
  }
  if (id !== shownRun()) { refresh.soon(true); return; }  // the address has changed meanwhile
  $("login").hidden = true;
  $("shell").hidden = false;
  drawRuns(runs, id);
  drawPipelines(pipelines);
  drawOverall(health);
  drawRun(id);
}

function drawRun(id) {
  const run = state.detail;
  $("run").hidden = !run;
  $("ranks").hidden = !run;
  $("empty").hidden = Boolean(run);
  document.title = run ? `${runName(run.id)} – lenscol` : "lenscol";
  if (!run) {
    setText($("empty-title"), id === null ? "No run has sent anything yet" : "This run is not here");
    setText($("empty-text"), id === null ? "The collector listens. What a training run sends will be shown here."
      : `Nothing of ${runName(id)} has arrived, or it ended so long ago that newer runs took its place.`);
    $("empty-how").hidden = id !== null;
    return;
  }
  drawFacts(run);
  drawWorst(run);
  drawDetail(run);
  drawTable(run);
  drawGrid();
  heat.show(run);
  chartHeat.update();
}

function drawGrid() {
  const mode = modes[grid.mode];
  drawLegend($("grid-legend"), mode.labels, grid.mode !== "silence" && "hollow", "silent, or not known");
  grid.show(state.detail);
  chartGrid.update();
}

// selected draws anew what depends on the rank that is selected, and asks for nothing.
function selected() {
  const before = state.run;
  readAddress();
  for (const input of $("mode").querySelectorAll("input")) input.checked = input.value === grid.mode;
  if (!state.detail || state.run !== before) {
    if (drawn.runs) drawRuns(drawn.runs, shownRun());
    refresh.soon(true);
    return;
  }
  select(state.detail);
  drawRun(state.detail.id);
}

// ---- connection

function connected() {
  lastHeard = Date.now();
  const live = $("live");
  live.className = "live on";
  setText(live, feed.live() ? "Live" : "Asking every 2 s");
  $("notice").hidden = true;
}

function disconnected(error) {
  const live = $("live");
  live.className = "live off";
  setText(live, "Disconnected");
  const notice = $("notice");
  const why = error.name === "TimeoutError" ? "it does not answer" : error instanceof TypeError ? "it cannot be reached" : error.message;
  setText(notice, `No connection to the collector: ${why}. ` +
    (lastHeard ? `What is shown is from ${clock(lastHeard)}. ` : "") + "It is tried again by itself; if the job has ended, so has its collector.");
  notice.hidden = false;
}

function askForToken() {
  feed.stop();
  $("shell").hidden = true;
  $("notice").hidden = true;
  $("overall").replaceChildren();
  const live = $("live");
  live.className = "live";
  setText(live, "Not logged in");
  if ($("login").hidden) {
    $("login").hidden = false;
    $("token").focus();
  }
}

async function login(event) {
  event.preventDefault();
  const error = $("login-error");
  setText(error, "");
  try {
    const response = await fetch("login", { method: "POST", credentials: "same-origin", body: new URLSearchParams({ token: $("token").value }), signal: AbortSignal.timeout(patience) });
    if (!response.ok) {
      $("token").select();
      setText(error, response.status === 401 ? "This is not the token." : `The collector answers ${response.status}.`);
      return;
    }
    $("token").value = "";
    feed.start();
  } catch {
    setText(error, "The collector cannot be reached.");
  }
}

// ---- dark and light

const prefersDark = matchMedia("(prefers-color-scheme: dark)");

function isDark() {
  const kept = load("theme");
  return kept ? kept === "dark" : prefersDark.matches;
}

function applyTheme() {
  const dark = isDark();
  document.documentElement.toggleAttribute("data-dark", dark);
  setText($("theme"), dark ? "Light" : "Dark");
  $("theme").setAttribute("aria-label", dark ? "Light colours" : "Dark colours");
  readColours();
  chartGrid?.draw();
  chartHeat?.draw();
}

// ---- begin

applyTheme();
prefersDark.addEventListener("change", applyTheme);
$("theme").addEventListener("click", () => {
  const dark = !isDark();
  save("theme", dark === prefersDark.matches ? "" : dark ? "dark" : "light");
  applyTheme();
});
$("skip").addEventListener("click", () => $("main").focus());
$("login-form").addEventListener("submit", login);
$("filter").addEventListener("input", (event) => {
  table.filter = event.target.value;
  table.page = 0;
  if (state.detail) drawTable(state.detail);
});
$("mode").addEventListener("change", (event) => {
  grid.mode = event.target.value;
  history.replaceState(null, "", state.detail ? link(state.detail.id, state.service, state.rank) : "#");
  if (state.detail) { drawGrid(); drawRuns(drawn.runs, state.detail.id); }
});
window.addEventListener("hashchange", selected);
window.addEventListener("scroll", hideTip, { passive: true, capture: true });
document.addEventListener("keydown", (event) => { if (event.key === "Escape") hideTip(); });
document.addEventListener("visibilitychange", () => (document.hidden ? feed.stop() : feed.start()));
chartGrid = new Chart($("grid"), grid);
chartHeat = new Chart($("heat"), heat);
readAddress();
for (const input of $("mode").querySelectorAll("input")) input.checked = input.value === grid.mode;
feed.start();
