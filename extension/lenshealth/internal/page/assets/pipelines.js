// ---- pipelines.js: what goes through the collector: receivers, processors, exporters.

const marks = { healthy: "●", degraded: "▲", unhealthy: "✕", unknown: "?", starting: "◌", stopping: "◌" };

// statusMark says a status by shape and word, and in colour only besides.
function statusMark(status) {
  return [make("span", { class: "mark", "aria-hidden": "true" }, marks[status] || "?"), make("span", null, status)];
}

function drawOverall(health) {
  const overall = $("overall");
  if (overall.dataset.status === health.status) return;  // it is announced when it changes
  overall.dataset.status = health.status;
  overall.className = "status " + health.status;
  const [mark, word] = statusMark(health.status);
  overall.replaceChildren(mark, make("span", { class: "what" }, "Collector"), word);
}

function drawPipelines(answer) {
  setText($("pipelines-note"), answer.source === "none" ? "The collector’s own metrics cannot be read, so there are no numbers."
    : `Spans, data points and log records, of a component in several pipelines of a signal all together; rates are of the last ${span(answer.rate_seconds)}.`);
  fill($("pipeline-list"), answer.pipelines.length ? answer.pipelines.map(drawPipeline) : make("p", { class: "muted" }, "They have not started yet."),
    answer.decisions.length && drawDecisions(answer.decisions));
}

// drawDecisions says what was kept and dropped, by strategy and reason.
function drawDecisions(decisions) {
  const heads = ["Component", "Signal", "Strategy", "Outcome", "Reason"].map((name) => ({ name }));
  return make("section", { class: "decisions", "aria-label": "Kept and dropped" }, make("h3", null, "Kept and dropped"),
    numbers("Kept and dropped", [...heads, { name: "Items", n: true }],
      decisions.map((d) => [d.component, d.signal, d.strategy || none, d.outcome, d.reason, count(d.items)])));
}

function drawPipeline(pipeline) {
  const columns = [
    pipeline.receivers.map((stage) => drawStage(stage, [["accepted", stage.accepted], ["refused", stage.refused, true]])),
    ...pipeline.processors.map((stage) => [drawStage(stage, processed(stage))]),
    pipeline.exporters.map((stage) => drawStage(stage, [
      ["sent", stage.sent], ["in flight", stage.in_flight || null], ["not sent", stage.dropped.send_failed, true], ["not queued", stage.dropped.queue_full, true],
    ])),
  ].filter((column) => column.length);
  return make("section", { class: "pipeline", "aria-label": `Pipeline ${pipeline.id}` },
    make("div", null, make("h3", null, pipeline.id), make("p", { class: "status " + pipeline.status }, statusMark(pipeline.status))),
    make("ol", { class: "strip" }, columns.map((stages) => make("li", null, make("div", { class: "column" }, stages)))));
}

// processed shows what a processor keeps back, which is its work and no loss.
function processed({ incoming, outgoing }) {
  return incoming > outgoing ? [["in", incoming], ["passed on", outgoing], ["kept back", incoming - outgoing]] : [["passed on", outgoing]];
}

// drawStage shows counts as [name, number, whether it is a loss]; losses only where there are any.
function drawStage(stage, counts) {
  const lines = [make("div", { class: "name" }, stage.id)];
  if (stage.counted) {
    lines.push(make("div", null, rate(stage.rate)));
    for (const [name, value, loss] of counts) {
      if (!known(value) || (loss && !value)) continue;
      lines.push(make("div", { class: loss ? "lost" : "muted" }, `${count(value)} ${name}`));
    }
  } else if (stage.kind !== "processor") {
    lines.push(make("div", { class: "muted" }, "nothing yet"));
  }
  if (stage.queue) lines.push(drawQueue(stage));
  if (stage.status !== "healthy") lines.unshift(make("div", { class: "status " + stage.status }, statusMark(stage.status)));
  for (const reason of stage.reasons) lines.push(make("div", { class: "why" }, reason.text));
  return make("div", { class: `stage ${stage.status}` }, lines);
}

function drawQueue({ id, queue: { size, capacity } }) {
  const meter = make("meter", { min: 0, max: Math.max(1, capacity), low: capacity * 0.5, high: capacity * 0.8, optimum: 0, value: size, "aria-label": `Queue of ${id}` });
  return make("div", null, make("div", { class: "muted" }, `queue ${count(size)} of ${count(capacity)}`), meter);
}
