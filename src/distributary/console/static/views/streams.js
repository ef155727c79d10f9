// Streams: which way each takes, how far copies lag behind, and moves of adaptation.

import { chart } from "../chart.js";
import { clock, count, h, percent, rate, show } from "../dom.js";
import { get, live } from "../gateway.js";
import { tree } from "../tree.js";

const PERIOD_MS = 2000;
const HISTORY = 150;
const UNITS = { absolute: (one) => String(Number(one.toPrecision(6))), relative: percent, changes: (one) => `${one} changes`, edit: (one) => `${one} edits`, age: (one) => `${one} s` };

/** Rows of one object at all brokers, by object. */
function objects(rows) {
  const found = new Map();
  for (const row of rows) {
    const key = JSON.stringify([row.tenant, row.source, row.subject]);
    if (!found.has(key)) found.set(key, []);
    found.get(key).push(row);
  }
  return found;
}

const mean = (values) => (values.length ? values.reduce((sum, one) => sum + one, 0) / values.length : 0);

// Many number versions by nanoseconds, which are no numbers to a browser, and tell nobody anything.
const version = (latest) => (latest < 0 ? "no version yet · " : Number.isSafeInteger(latest) ? `version ${count(latest)} · ` : "");

/** A change in a tree: a move of adaptation, or a broker that has another parent. */
function change(one, objects) {
  const about = objects.length ? ` in the tree of ${objects.slice(0, 2).join(", ")}${objects.length > 2 ? ` and ${objects.length - 2} more` : ""}` : "";
  const told = one.what === "adapted" ? [h("span", { class: "badge good" }, one.move), " by ", h("span", { class: "mono" }, one.broker), `, which makes the loss of fidelity smaller${about}`]
    : one.parent ? [h("span", { class: "mono" }, one.broker), " now gets it from ", h("span", { class: "mono" }, one.parent), about]
      : [h("span", { class: "mono" }, one.broker), " gets it from nobody else any more", about];
  return h("li", { class: "small" }, h("span", { class: "soft" }, `${clock(one.at_ns)} `), told);
}

export function enter(main, query) {
  const list = h("ul", { class: "list picks" });
  const place = h("div", {}, h("p", { class: "empty" }, "Asking the brokers…"));
  const moves = h("ul", { class: "list moves", tabindex: "0", "aria-label": "Moves in trees" });
  show(main, h("h1", {}, "Streams"),
    h("p", { class: "lead" }, "Values that change all the time, such as prices. Each follower says how far off it may be; a broker passes on only the changes that somebody below it needs."),
    h("div", { class: "grid half" },
      h("div", {}, h("section", { class: "card", "aria-labelledby": "objects" }, h("h2", { id: "objects" }, "Objects"), list),
        h("section", { class: "card", "aria-labelledby": "moves" }, h("h2", { id: "moves" }, "Moves in trees"), moves)),
      h("section", { class: "card", "aria-live": "off" }, place)));
  const history = new Map();
  let members = new Map();
  let chosen = query.get("object");
  let over = false;

  function pick(key) {
    chosen = key;
    look();
  }

  function draw(found, trees) {
    const keys = [...found.keys()].sort();
    if (!keys.length) {
      show(list, h("li", { class: "soft" }, "No stream was announced yet (PUT /objects)."));
      show(place, h("p", { class: "empty" }, "Nothing to follow."));
      return;
    }
    if (!found.has(chosen)) [chosen] = keys;
    show(list, keys.map((key) => {
      const [, source, subject] = JSON.parse(key);
      const rows = found.get(key);
      const lost = mean(rows.filter((one) => one.followers).map((one) => one.loss));
      return h("li", {}, h("button", { type: "button", "data-key": key, "aria-pressed": String(key === chosen), onclick: () => pick(key) },
        h("div", {}, h("strong", {}, subject), h("span", { class: "soft" }, ` of ${source}`)),
        h("div", { class: "soft small" }, `${version(Math.max(...rows.map((one) => one.sequence)))}loss of fidelity ${percent(lost)}`)));
    }));
    const rows = found.get(chosen);
    const rates = new Map(trees.filter((one) => one.tree === rows[0].tree).flatMap((one) => one.children.map((child) => [child.broker, child.rate])));
    const latest = Math.max(...rows.map((one) => one.sequence));
    const [, source, subject] = JSON.parse(chosen);
    show(place, h("h2", {}, `${subject} of ${source}`),
      tree(rows, {
        name: "Tree of the stream",
        stop: (node, root) => h("div", { class: root ? "stop root" : "stop" }, h("div", {}, h("span", { class: "name mono" }, node.broker), root ? h("span", { class: "soft small" }, " root") : null),
          h("div", { class: "line" }, h("span", { class: "does" }, `${count(node.followers)} follower${node.followers === 1 ? "" : "s"}, `), latest < 0 ? "no version yet" : node.sequence === latest ? "newest version" : Number.isSafeInteger(latest) ? `${count(latest - node.sequence)} behind` : "an older version"),
          tolerance(node), node.loss ? h("div", { class: "line bad" }, `${percent(node.loss)} of the time outside`) : null),
        hop: (node) => h("span", { class: "time" }, `${rate(rates.get(node.broker) ?? 0)} per second`),
      }),
      h("h3", {}, "Loss of fidelity, mean of all brokers with followers"), chart(history.get(chosen) ?? [], "Loss of fidelity", (value) => `${Number((100 * value).toPrecision(2))} %`, 0.02),
      h("p", { class: "soft small" }, "The share of time in which a copy is further from its source than its followers tolerate."));
  }

  function note(found) {
    for (const [key, rows] of found) {
      const points = history.get(key) ?? history.set(key, []).get(key);
      points.push([Date.now() / 1000, mean(rows.filter((one) => one.followers).map((one) => one.loss))]);
      if (points.length > HISTORY) points.shift();
    }
    members = new Map();
    for (const rows of found.values()) for (const { tree: name, subject } of rows) members.set(name, (members.get(name) ?? new Set()).add(subject));
    tell();
  }

  function tell() {
    if (live.moves.length) show(moves, live.moves.slice(0, 40).map((one) => change(one, [...(members.get(one.tree) ?? [])])));
    else show(moves, h("li", { class: "soft" }, "None yet: trees are as they were made."));
  }

  async function look() {
    try {
      const [{ streams }, { trees }] = await Promise.all([get("/streams"), get("/trees")]);
      if (over) return;
      const found = objects(streams);
      note(found);
      draw(found, trees);
    } catch (error) {
      if (!over) show(place, h("p", { class: "empty" }, error.message));
    }
  }

  look();
  tell();
  live.addEventListener("moves", tell);
  const timer = setInterval(look, PERIOD_MS);
  return () => {
    over = true;
    clearInterval(timer);
    live.removeEventListener("moves", tell);
  };
}

function tolerance(node) {
  const told = (node.tolerances ?? []).map((one) => `${one.value} may be off by ${UNITS[one.divergence]?.(one.amount) ?? `${one.amount} (${one.divergence})`}`);
  return told.length ? h("div", { class: "line soft" }, told.join(", ")) : null;
}
