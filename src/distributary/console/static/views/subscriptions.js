// Subscriptions: made with a filter that is checked while it is typed, and watched as they deliver.

import { delivery, forget, received } from "../content.js";
import { chip, count, doing, h, show, toast, write } from "../dom.js";
import { ask, get, send } from "../gateway.js";

const FORMATS = ["application/pdf", "image/jpeg", "image/png", "text/plain;charset=utf-8", "audio/wav", "video/mp4", "text/html", "application/json"];
const CHECK_MS = 250;
const CARDS = 60;
const LIMITS = { min: "≥", max: "≤", min_exclusive: ">", max_exclusive: "<" };
const LOOK_MS = 4000;

/** What was pointed to by a refusal, as the number of the character. */
function position(detail) {
  const found = /(?:position|character|column|at) (\d+)/.exec(detail);
  return found ? Number(found[1]) : null;
}

function summary(one) {
  const filters = (one.filters ?? []).map((filter) => {
    if (filter.sql) return filter.sql;
    const [[dialect, value]] = Object.entries(filter);
    if (["exact", "prefix", "suffix"].includes(dialect)) return Object.entries(value).map(([k, v]) => `${k} ${{ exact: "=", prefix: "begins with", suffix: "ends with" }[dialect]} ${v}`).join(" and ");
    if (dialect === "range") return Object.entries(value).flatMap(([k, limits]) => Object.entries(limits).map(([limit, v]) => `${k} ${LIMITS[limit] ?? limit} ${v}`)).join(" and ");
    return JSON.stringify(filter);
  });
  if (one.types) filters.unshift(`type ${one.types.join(" or ")}`);
  if (one.source) filters.unshift(`source ${one.source}`);
  return filters.join(" and ") || "everything";
}

function form(made) {
  const sql = h("textarea", { id: "filter", rows: 3, spellcheck: false, "aria-describedby": "filter-hint", autocapitalize: "off" });
  sql.value = "type = 'map'";
  const dialect = h("select", { id: "dialect" }, h("option", { value: "sql" }, "Expression (CESQL)"), h("option", { value: "json" }, "Filters as JSON"));
  const hint = h("div", { class: "hint", id: "filter-hint", "aria-live": "polite" });
  const boxes = FORMATS.map((name) => h("input", { type: "checkbox", value: name }));
  const other = h("input", { id: "other", placeholder: "image/webp, audio/*;q=0.5" });
  const pointer = h("input", { id: "pointer", placeholder: "/value" });
  const amount = h("input", { id: "amount", type: "number", min: "0", step: "any" });
  const divergence = h("select", { id: "divergence" }, ["absolute", "relative", "changes", "edit", "age"].map((one) => h("option", {}, one)));
  const button = h("button", { type: "submit" }, "Subscribe");

  function wanted() {
    const text = sql.value.trim();
    const document = { filters: !text ? [] : dialect.value === "sql" ? [{ sql: text }] : JSON.parse(text) };
    const accept = [...boxes.filter((one) => one.checked).map((one) => one.value), ...other.value.split(",").map((one) => one.trim()).filter(Boolean)];
    if (accept.length) document.profile = { accept };
    if (amount.value) document.tolerance = { value: pointer.value || "/value", divergence: divergence.value, amount: Number(amount.value) };
    return document;
  }

  let timer = 0;
  let turn = 0;
  async function check() {
    const own = ++turn;
    let problem = null;
    try {
      ({ problem } = await (await send("POST", "/subscriptions/check", wanted())).json());
    } catch (error) {
      problem = error.message;
    }
    if (own !== turn) return;
    sql.setAttribute("aria-invalid", String(problem !== null));
    hint.className = problem ? "hint bad" : "hint good";
    const at = problem === null ? null : position(problem);
    write(hint, problem === null ? "This filter is good." : at === null ? problem : `${problem} (${JSON.stringify(sql.value.slice(Math.max(0, at - 12), at))} ▸ ${JSON.stringify(sql.value.slice(at, at + 12))})`);
  }
  const later = () => {
    clearTimeout(timer);
    timer = setTimeout(check, CHECK_MS);
  };
  const element = h("form", { oninput: later, onsubmit: doing(async () => made(await (await send("POST", "/subscriptions", wanted())).json())) },
    h("div", { class: "field" }, h("div", { class: "row spread" }, h("label", { for: "filter" }, "Filter"), h("span", {}, h("label", { class: "hidden-text", for: "dialect" }, "Language of the filter"), dialect)), sql, hint),
    h("fieldset", {}, h("legend", {}, "Formats that the device can use, best first; any if none is chosen"), h("div", { class: "row" }, boxes.map((box, k) => h("label", { class: "inline" }, box, chip(FORMATS[k]))))),
    h("details", {}, h("summary", {}, "Other formats, and tolerance for streams"),
      h("div", { class: "field" }, h("label", { for: "other" }, "Other formats"), other),
      h("div", { class: "fields" }, h("div", { class: "field" }, h("label", { for: "pointer" }, "Value (JSON Pointer)"), pointer), h("div", { class: "field" }, h("label", { for: "divergence" }, "Divergence"), divergence)),
      h("div", { class: "field" }, h("label", { for: "amount" }, "Tolerated amount"), amount)),
    button);
  check();
  return element;
}

const OUSTED = 4000;
const ENDED = 4001;
const AGAIN_MS = 1000;

/** Events of one subscription for as long as it is looked at; what was shown is acknowledged. */
class Feed {
  constructor(id, place, told) {
    this.id = id;
    this.place = place;
    this.told = told;
    for (const one of received.filter((each) => each.subscription === id).reverse()) this.show(one);
    this.resume();
  }

  resume() {
    const address = new URL(`/subscriptions/${encodeURIComponent(this.id)}/events`, location.href);
    address.protocol = address.protocol.replace("http", "ws");
    // A WebSocket, as browsers have only six connections for all server-sent events of all tabs.
    const socket = new WebSocket(address, "cloudevents.json");
    this.socket = socket;
    socket.onopen = () => this.told("delivering");
    socket.onmessage = (message) => this.take(JSON.parse(message.data));
    socket.onclose = ({ code, reason }) => {
      if (this.socket !== socket) return;
      if (code === OUSTED || code === ENDED) this.told(reason, true);
      else {
        this.told("reconnecting");
        setTimeout(() => this.socket === socket && this.resume(), AGAIN_MS);
      }
    };
  }

  take(event) {
    // Versions of stream objects have numbers of their own, as texts, and need no answer.
    const number = typeof event.sequence === "number" ? event.sequence : null;
    const one = { subscription: this.id, event, number };
    received.unshift(one);
    received.length = Math.min(received.length, 500);
    this.show({ ...one, fresh: true });
    if (number !== null) this.socket.send(JSON.stringify({ ack: number }));
  }

  show(one) {
    this.place.querySelector(".empty")?.remove();
    this.place.prepend(delivery(one.event, one));
    while (this.place.children.length > CARDS) forget(this.place.lastChild);
  }

  pause() {
    const socket = this.socket;
    this.socket = null;
    socket?.close();
    this.told("paused: what comes is kept for you");
  }
}

export function enter(main, query) {
  const list = h("ul", { class: "list picks" });
  const place = h("div", {}, h("p", { class: "empty" }, "Choose a subscription to see what it gets, or make one."));
  show(main, h("h1", {}, "Subscriptions"), h("p", { class: "lead" }, "Say what you want and what your device can show. Everything that is published from then on, and matches, comes in the best format that can be made."),
    h("div", { class: "grid half" },
      h("div", {}, h("section", { class: "card", "aria-labelledby": "new" }, h("h2", { id: "new" }, "New subscription"), form(made)),
        h("section", { class: "card", "aria-labelledby": "own" }, h("h2", { id: "own" }, "Your subscriptions"), list)),
      h("section", { class: "card" }, place)));
  let chosen = query.get("id");
  let feed = null;
  let over = false;

  function made(one) {
    toast("Subscribed. What is published from now on comes here.");
    open(one);
    look();
  }

  function open(one) {
    feed?.pause();
    for (const card of place.querySelectorAll(".delivery")) forget(card);
    chosen = one.id;
    history.replaceState(null, "", `#/subscriptions?id=${encodeURIComponent(one.id)}`);
    const cards = h("div", { class: "deliveries", "aria-live": "polite", "aria-relevant": "additions" }, h("p", { class: "empty" }, "Nothing has come yet."));
    const told = h("span", { class: "badge", role: "status" }, "connecting");
    const pause = h("button", { type: "button", class: "plain" }, "Pause");
    pause.onclick = () => {
      const going = pause.textContent === "Pause";
      if (going) feed.pause();
      else feed.resume();
      pause.textContent = going ? "Resume" : "Pause";
    };
    const end = h("button", { type: "button", class: "danger", onclick: doing(async () => {
      feed?.pause();
      await ask(`/subscriptions/${encodeURIComponent(one.id)}`, { method: "DELETE" });
      toast("The subscription has ended.");
      feed = null;
      chosen = null;
      show(place, h("p", { class: "empty" }, "It has ended."));
      await look();
    }) }, "End");
    show(place, h("div", { class: "row spread" }, h("div", {}, h("h2", { class: "wrap" }, summary(one)), h("p", { class: "row" }, (one.profile?.accept ?? []).map((name) => chip(name)), told)), h("div", { class: "row" }, pause, end)), cards);
    feed = new Feed(one.id, cards, (text, resting) => {
      write(told, text);
      if (resting) write(pause, "Resume");
    });
    mark();
  }

  function mark() {
    for (const button of list.querySelectorAll("button")) button.setAttribute("aria-pressed", String(button.dataset.key === chosen));
  }

  async function look() {
    try {
      const answer = await get("/subscriptions");
      const subscriptions = answer.subscriptions ?? answer;
      if (over) return;
      show(list, subscriptions.length ? subscriptions.map((one) => h("li", {}, h("button", { type: "button", "data-key": one.id, "aria-pressed": String(one.id === chosen), onclick: () => open(one) },
        h("div", { class: "wrap" }, summary(one)),
        h("div", { class: "row" }, (one.profile?.accept ?? []).slice(0, 4).map((name) => chip(name)), one.tolerance && h("span", { class: "badge" }, `±${Number(one.tolerance.amount.toPrecision(6))}`), h("span", { class: "soft small" }, `${one.state} · ${count(one.last ?? 0)} delivered · ${count(one.waiting ?? 0)} not acknowledged`)))))
        : h("li", { class: "soft" }, "None yet."));
      const known = subscriptions.find((one) => one.id === chosen);
      if (known && !feed) open(known);
    } catch (error) {
      if (!over) show(list, h("li", { class: "soft" }, error.message));
    }
  }

  look();
  const timer = setInterval(look, LOOK_MS);
  return () => {
    over = true;
    clearInterval(timer);
    feed?.pause();
    for (const card of place.querySelectorAll(".delivery")) forget(card);
  };
}
