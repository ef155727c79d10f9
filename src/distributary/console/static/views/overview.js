// Overview: what the whole overlay does now.

import { Spark } from "../chart.js";
import { chip, clock, cost, count, h, percent, publicationLink, rate, show, write } from "../dom.js";
import { get, isOperator, live } from "../gateway.js";
import { Graph } from "../graph.js";

const SHOWN = 40;

function tile(what, why, spark) {
  const figure = h("span", { class: "figure" }, "–");
  const note = h("span", { class: "why" }, why);
  return { element: h("div", { class: "tile" }, h("span", { class: "what" }, what), figure, note, spark?.element), figure, note, spark };
}

const per = (value) => [rate(value), h("small", {}, " per second")];

const converted = (one) => one.formats.some((name) => name !== one.media_type);

/** What is passed on as it is, one after the other, is one entry: it would hide what is converted. */
function gathered(publications) {
  const entries = [];
  for (const one of publications) {
    const last = entries.at(-1);
    if (last && !converted(one) && !converted(last.one)) last.more.push(one.source);
    else if (entries.length === SHOWN) break;
    else entries.push({ one, more: [] });
  }
  return entries;
}

function entry({ one, more }, fresh) {
  const worth = one.cost ? ` · cost ${cost(one.cost.transmission + one.cost.conversion)}` : "";
  const sources = new Set([one.source, ...more]).size;
  return h("li", { class: fresh ? "new" : null },
    h("a", { href: publicationLink(one) },
      h("div", { class: "row spread" }, h("span", { class: "title" }, `${one.source} ${one.id}`), h("span", { class: "soft small" }, clock(one.at_ns))),
      h("div", { class: "row" }, chip(one.media_type), converted(one) ? ["→", one.formats.slice(0, 6).map((name) => chip(name))] : h("span", { class: "soft small" }, "as it is")),
      h("div", { class: "soft small" }, more.length ? `and ${count(more.length)} before it${sources > 1 ? ` from ${sources} sources` : ""}` : `tree of ${one.brokers} broker${one.brokers === 1 ? "" : "s"}${worth}`)));
}

export function enter(main) {
  const sentence = h("p", { class: "lead" }, "Asking the brokers…");
  const sparks = { publications: new Spark(), deliveries: new Spark(), conversions: new Spark() };
  const tiles = {
    publications: tile("Published", "events that came in", sparks.publications),
    deliveries: tile("Delivered", "to subscribers that match", sparks.deliveries),
    conversions: tile("Converted", "into formats of devices", sparks.conversions),
    saved: tile("Saved", "against simple plans"),
    owed: tile("Owed", "accepted, not yet delivered"),
  };
  const graph = new Graph();
  const feed = h("ul", { class: "list feed", tabindex: "0", "aria-label": "Recent publications" });
  const nothing = h("p", { class: "empty" }, "Nothing was published yet. ", h("a", { href: "#/publish" }, "Publish something"), ".");
  show(main,
    h("h1", {}, "What happens now"), sentence,
    h("div", { class: "tiles" }, Object.values(tiles).map((one) => one.element)),
    h("div", { class: "grid two" },
      h("section", { class: "card", "aria-labelledby": "map" }, h("h2", { id: "map" }, "The overlay"),
        isOperator() ? graph.element : h("p", { class: "empty" }, "Only operators see brokers: log in with a token of the first tenant that has the scope admin."),
        h("div", { class: "legend" },
          h("span", {}, "load of a broker: idle", h("span", { class: "scale" }), "busy"),
          h("span", {}, h("span", { class: "dash" }), "converting"),
          h("span", {}, "traffic of a link: little", h("span", { class: "stroke" }), "much"),
          h("span", {}, "nearer means less delay"))),
      h("section", { class: "card", "aria-labelledby": "just" }, h("h2", { id: "just" }, "Just published"), nothing, feed)));

  function update() {
    const state = live.state;
    if (!state) return;
    const up = state.brokers.filter((one) => one.state !== "away").length;
    const away = state.brokers.length - up;
    write(sentence, `${up} broker${up === 1 ? " carries" : "s carry"} what is published to ${count(state.subscriptions)} subscription${state.subscriptions === 1 ? "" : "s"}. ` +
      "Each gets what matches its filter, in the format its device can use; the brokers decide where each conversion costs least." +
      (away ? ` ${away} broker${away === 1 ? " does" : "s do"} not answer.` : ""));
    for (const [name, spark] of Object.entries(sparks)) {
      show(tiles[name].figure, ...per(state.rates[name]));
      spark.update(live.history.map((one) => one[name]));
    }
    const { saved } = state;
    const simple = [["at the root", saved["all-in-root"]], ["at the leaves", saved["all-in-leaves"]]];
    if (saved.plans && simple.some(([, one]) => one > 0)) {
      const [[better, least], [worse, most]] = simple.sort((a, b) => a[1] - b[1]);
      const share = (one) => (one > 0 ? Math.max(0, 1 - saved.cost / one) : 0);
      write(tiles.saved.figure, percent(share(least)));
      write(tiles.saved.note, `of the cost of converting all ${better}, the better simple plan; ${percent(share(most))} of that ${worse} (last ${saved.plans} plans)`);
    }
    write(tiles.owed.figure, count(state.owed));
    write(tiles.owed.note, state.queued ? `${count(state.queued)} not yet acknowledged by subscribers` : state.owed ? "on their way" : "everything was delivered");
    if (isOperator()) graph.update(state);
  }

  function list(event) {
    const fresh = new Set(event?.detail ?? []);
    nothing.hidden = live.publications.length > 0;
    show(feed, gathered(live.publications).map((item) => entry(item, fresh.has(item.one))));
    for (const one of fresh) graph.ring(one.root ?? one.broker);
  }

  get("/plans").then((found) => live.add(found.plans.slice(0, 200))).catch(() => {});
  live.addEventListener("state", update);
  live.addEventListener("publications", list);
  update();
  list();
  return () => {
    live.removeEventListener("state", update);
    live.removeEventListener("publications", list);
  };
}
