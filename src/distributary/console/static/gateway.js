// The gateway: its routes by the session of this browser, and what happens now.

export class Problem extends Error {
  constructor(status, detail) {
    super(detail);
    this.status = status;
  }
}

/** Who looks at this page: name, tenant, scopes, and the header that changes need. */
export let session = null;

export const may = (scope) => session?.scopes.includes(scope) ?? false;

export const isOperator = () => may("admin") && session.tenant === "";

/** Asks for something; returns the response, or raises what the gateway says is wrong. */
export async function ask(path, options = {}) {
  try {
    return await asked(path, options);
  } catch (error) {
    if (error.status !== 403 || !error.message.startsWith("X-CSRF-Token")) throw error;
    // Somebody has logged in anew in another tab.
    await logIn();
    return asked(path, options);
  }
}

async function asked(path, options) {
  const headers = { ...options.headers };
  if (options.method && options.method !== "GET" && session?.csrf) headers["X-CSRF-Token"] = session.csrf;
  let response;
  try {
    response = await fetch(path, { ...options, headers, credentials: "same-origin" });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Problem(0, "the gateway does not answer");
  }
  if (response.ok) return response;
  const text = await response.text();
  let detail = text || response.statusText;
  try {
    detail = JSON.parse(text).detail ?? detail;
  } catch {
    // What came was no problem document.
  }
  throw new Problem(response.status, detail);
}

/** Returns what JSON says; `leaving`, if given, is the controller that ends it. */
export const get = async (path, leaving) => (await ask(path, leaving ? { signal: leaving.signal } : {})).json();

export function send(method, path, body, options = {}) {
  const type = options.type ?? "application/json";
  return ask(path, { ...options, method, body: JSON.stringify(body), headers: { "Content-Type": type, ...options.headers } });
}

export async function logIn() {
  session = await get("/session");
}

const RECENT_MAX = 10_000;
const MOVES_MAX = 200;
const PLANNED_MS = 8000;

/** What happens now, for all views: they listen, and see what came before they did. */
class Live extends EventTarget {
  state = null;
  publications = [];
  moves = [];
  history = [];
  connected = false;
  #source = null;
  #newest = new Map();

  start() {
    // Browsers have few connections for all tabs together: nobody looks at what is hidden.
    document.addEventListener("visibilitychange", () => (document.hidden ? this.#stop() : this.#listen()));
    if (!document.hidden) this.#listen();
  }

  #stop() {
    this.#source?.close();
    this.#source = null;
  }

  #listen() {
    this.#stop();
    const source = new EventSource("/live");
    this.#source = source;
    source.onopen = () => this.#connect(true);
    source.onerror = () => {
      this.#connect(false);
      // Browsers give up when they are refused, as while a gateway starts.
      if (source.readyState === EventSource.CLOSED) setTimeout(() => source === this.#source && this.#listen(), 2000);
    };
    source.addEventListener("state", (event) => {
      this.state = JSON.parse(event.data);
      this.history.push({ at: this.state.at_ns / 1e9, ...this.state.rates });
      if (this.history.length > 300) this.history.shift();
      this.#tell("state");
    });
    source.addEventListener("plan", (event) => this.add([JSON.parse(event.data)]));
    for (const kind of ["adapted", "linked"]) source.addEventListener(kind, (event) => this.#move(JSON.parse(event.data)));
  }

  #move(one) {
    // Whoever connects anew is told of the last ones again.
    if (this.moves.some((other) => other.at_ns === one.at_ns && other.broker === one.broker && other.tree === one.tree)) return;
    this.moves = [one, ...this.moves].sort((a, b) => b.at_ns - a.at_ns).slice(0, MOVES_MAX);
    this.#tell("moves", one);
  }

  /** Takes plans; the newest stands for a publication that brokers planned again. */
  add(plans) {
    const fresh = [];
    for (const one of plans) {
      if (this.#newest.get(key(one))?.at_ns >= one.at_ns) continue;
      this.#newest.set(key(one), one);
      fresh.push(one);
    }
    if (!fresh.length) return;
    this.publications = [...this.#newest.values()].sort((a, b) => b.at_ns - a.at_ns);
    for (const one of this.publications.splice(RECENT_MAX)) this.#newest.delete(key(one));
    this.#tell("publications", fresh);
  }

  /** Waits until a publication is planned; returns false if that does not happen. */
  planned({ source, id }, signal) {
    const is = (one) => one.source === source && one.id === id;
    if (this.publications.some(is)) return Promise.resolve(true);
    return new Promise((done) => {
      const end = (found) => {
        clearTimeout(timer);
        this.removeEventListener("publications", look);
        done(found);
      };
      const look = (event) => event.detail.some(is) && end(true);
      const timer = setTimeout(() => end(false), PLANNED_MS);
      this.addEventListener("publications", look);
      signal.addEventListener("abort", () => end(false));
    });
  }

  #connect(connected) {
    this.connected = connected;
    this.#tell("connection");
  }

  #tell(kind, detail) {
    this.dispatchEvent(new CustomEvent(kind, { detail }));
  }
}

const key = (one) => JSON.stringify([one.tenant, one.source, one.id]);

export const live = new Live();
