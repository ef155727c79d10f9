// Streams: which way each takes, how far copies lag behind, and moves of adaptation.

import { chart } from "../chart.js";
import { count, h, percent, rate, show } from "../dom.js";
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

/** Parents of brokers in two looks, to see moves where brokers did not tell of them. */
function moved(before, rows) {
  return rows.filter((row) => before.has(row.broker) && before.get(row.broker) !== row.parent).map((row) => ({ ...row, from: before.get(row.broker) }));
}

export function enter(main, query) {
  const list = h("ul", { class: "list picks" });
  const place = h("div", {}, h("p", { class: "empty" }, "Asking the brokers…"));
  const moves = h("ul", { class: "list" }, h("li", { class: "soft" }, "None since this page was opened."));
  show(main, h("h1", {}, "Streams"),
    h("p", { class: "lead" }, "Values that change all the time, such as prices. Each follower says how far off it may be; a broker passes on only the changes that somebody below it needs."),
    h("div", { class: "grid half" },
      h("div", {}, h("section", { class: "card", "aria-labelledby": "objects" }, h("h2", { id: "objects" }, "Objects"), list),
        h("section", { class: "card", "aria-labelledby": "moves" }, h("h2", { id: "moves" }, "Moves in trees"), moves)),
      h("section", { class: "card", "aria-live": "off" }, place)));
  const history = new Map();
  const parents = new Map();
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
        h("div", { class: "soft small" }, `version ${count(Math.max(...rows.map((one) => one.sequence)))} · loss of fidelity ${percent(lost)}`)));
    }));
    const rows = found.get(chosen);
    const rates = new Map(trees.filter((one) => one.tree === rows[0].tree).flatMap((one) => one.children.map((child) => [child.broker, child.rate])));
    const latest = Math.max(...rows.map((one) => one.sequence));
    const [, source, subject] = JSON.parse(chosen);
    show(place, h("h2", {}, `${subject} of ${source}`),
      tree(rows, {
        name: "Tree of the stream",
        stop: (node, root) => h("div", { class: root ? "stop root" : "stop" }, h("div", {}, h("span", { class: "name mono" }, node.broker), root ? h("span", { class: "soft small" }, " root") : null),
          h("div", { class: "line" }, h("span", { class: "does" }, `${count(node.followers)} follower${node.followers === 1 ? "" : "s"}, `), node.sequence === latest ? "newest version" : `${count(latest - node.sequence)} behind`),
          tolerance(node), node.loss ? h("div", { class: "line bad" }, `${percent(node.loss)} of the time outside`) : null),
        hop: (node) => h("span", { class: "time" }, `${rate(rates.get(node.broker) ?? 0)} per second`),
      }),
      h("h3", {}, "Loss of fidelity, mean of all brokers with followers"), chart(history.get(chosen) ?? [], "Loss of fidelity", (value) => `${(100 * value).toFixed(value >= 0.1 || !value ? 0 : 1)} %`),
      h("p", { class: "soft small" }, "The share of time in which a copy is further from its source than its followers tolerate."));
  }

  function note(found) {
    for (const [key, rows] of found) {
      const points = history.get(key) ?? history.set(key, []).get(key);
      points.push([Date.now() / 1000, mean(rows.filter((one) => one.followers).map((one) => one.loss))]);
      if (points.length > HISTORY) points.shift();
      for (const one of moved(parents.get(key) ?? new Map(), rows)) {
        live.moves.unshift(`${new Date().toLocaleTimeString("en-GB")}: ${one.broker} has moved from ${one.from ?? "the root"} to ${one.parent ?? "the root"} for ${one.subject}`);
        live.moves.length = Math.min(live.moves.length, 100);
      }
      parents.set(key, new Map(rows.map((one) => [one.broker, one.parent])));
    }
    if (live.moves.length) show(moves, live.moves.slice(0, 20).map((one) => h("li", { class: "small" }, one)));
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
  const timer = setInterval(look, PERIOD_MS);
  return () => {
    over = true;
    clearInterval(timer);
  };
}

function tolerance(node) {
  const told = (node.tolerances ?? []).map((one) => `${one.value} may be off by ${UNITS[one.divergence]?.(one.amount) ?? `${one.amount} (${one.divergence})`}`);
  return told.length ? h("div", { class: "line soft" }, told.join(", ")) : null;
}
