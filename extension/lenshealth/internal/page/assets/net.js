// ---- net.js: the answers of the collector, live by server-sent events, by asking where there are none.

const askEvery = 2000;        // ms, where events do not come
const listenAgain = 15000;    // ms, until events are tried again
const patience = 10000;       // ms, for one answer

class NotAllowed extends Error {}

// ask returns the JSON of an answer, or null for 404. /health is JSON at 503 too.
async function ask(path) {
  const response = await fetch(path, { headers: { Accept: "application/json" }, credentials: "same-origin", signal: AbortSignal.timeout(patience) });
  if (response.status === 401) throw new NotAllowed();
  if (response.status === 404) return null;
  if (!response.ok && !(path === "health" && response.status === 503)) throw new Error(`${path.split("?")[0]} answers ${response.status}`);
  return response.json();
}

const feed = {
  source: null,
  timer: 0,
  heard: {},      // event name -> its latest answer, not drawn yet

  start() {
    this.stop();
    this.listen();
    refresh.soon();
  },

  stop() {
    clearTimeout(this.timer);
    this.source?.close();
    this.source = null;
  },

  listen() {
    const source = new EventSource("api/events");
    this.source = source;
    this.tried = Date.now();
    for (const name of ["runs", "pipelines", "health"]) {
      source.addEventListener(name, (event) => {
        this.heard[name] = JSON.parse(event.data);
        this.quiet = false;
        this.expect();
        refresh.soon();
      });
    }
    source.onopen = () => this.expect();
    source.onerror = () => this.poll();
  },

  // expect takes a stream that says nothing for a while, which a healthy one never does, for a broken one.
  expect() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.poll(), patience);
  },

  live() { return !this.quiet && this.source?.readyState === EventSource.OPEN; },

  // poll asks until events come again. The browser tries to connect again by itself, unless the answer was an error.
  poll() {
    clearTimeout(this.timer);
    this.quiet = true;
    if (this.source?.readyState === EventSource.CLOSED && Date.now() - this.tried > listenAgain) {
      this.listen();
      return;
    }
    refresh.soon();
    this.timer = setTimeout(() => this.poll(), askEvery);
  },

  // take returns what an event has said since it was asked last, or asks.
  async take(name, path) {
    const heard = this.heard[name];
    delete this.heard[name];
    if (heard || (this.live() && drawn[name])) return heard || drawn[name];
    return ask(path);
  },
};

const drawn = {};  // the latest answers by name

// refresh asks for what is shown and draws it: once at a time, and never busier than a third of the time.
const refresh = {
  timer: 0,
  due: 0,
  running: false,
  again: false,
  hurry: false,

  // soon refreshes when it is due, or now; while one runs, after it.
  soon(now) {
    this.hurry ||= Boolean(now);
    this.again = this.running;
    if (this.running) return;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.run(), this.hurry ? 0 : Math.max(0, this.due - Date.now()));
  },

  async run() {
    const began = performance.now();
    this.running = true;
    this.again = this.hurry = false;
    try {
      const [runs, pipelines, health] = await Promise.all([feed.take("runs", "api/runs"), feed.take("pipelines", "api/pipelines"), feed.take("health", "health")]);
      await show(runs, pipelines, health);
      Object.assign(drawn, { runs, pipelines, health });
      connected();
    } catch (error) {
      if (error instanceof NotAllowed) askForToken();
      else disconnected(error);
    }
    performance.clearMeasures("drawn");
    const took = performance.measure("drawn", { start: began }).duration;  // for the browser's profiler, and for the benchmark
    this.due = Date.now() + Math.max(900 - took, 2 * took);
    this.running = false;
    if (this.again) this.soon();
  },
};
