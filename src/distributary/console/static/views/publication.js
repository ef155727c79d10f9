// One publication: its tree, what it costs beside simple plans, who got it, and the content itself.

import { delivery, received, stored } from "../content.js";
import { bytes, chip, clock, cost, duration, format, h, percent, show } from "../dom.js";
import { get, live } from "../gateway.js";
import { arrived, hopTo, lasted, timeline, took } from "../timeline.js";
import { tree } from "../tree.js";

const LOOK_MS = 1000;
const LOOKS = 60;
const TITLES = {
  "all-in-root": "Convert all at the root",
  "all-in-leaves": "Convert all at the leaves",
  "single-format": "Send one format",
};

const total = (one) => one.transmission + one.conversion;

function bars(plan) {
  const rows = [["This plan", plan.cost, true], ...Object.entries(plan.baselines ?? {}).map(([name, one]) => [TITLES[name] ?? name, one, false])];
  const most = Math.max(...rows.map(([, one]) => total(one)), 1e-12);
  const part = (kind, value) => h("i", { class: kind, style: { width: `${(100 * value) / most}%` } });
  return h("div", { class: "bars" }, rows.map(([name, one, own]) => h("div", { class: "bar-row" },
    h("span", { class: own ? "name own" : "name" }, name),
    h("span", { class: own ? "track own" : "track" }, part("send", one.transmission), part("make", one.conversion)),
    h("span", { class: "right" }, cost(total(one)), h("span", { class: "soft small" }, own ? "" : ` (${total(one) >= total(plan.cost) ? "+" : "−"}${percent(Math.abs(total(one) / (total(plan.cost) || 1e-12) - 1))})`)))));
}

function saving(plan) {
  const simple = ["all-in-root", "all-in-leaves"].map((name) => plan.baselines?.[name]).filter(Boolean).map(total);
  if (!simple.length || !Math.max(...simple)) return "";
  const [least, most] = [Math.min(...simple), Math.max(...simple)];
  const share = (one) => percent(one > 0 ? Math.max(0, 1 - total(plan.cost) / one) : 0);
  return `It costs ${share(most)} less than the worse of the two simple plans, and ${share(least)} less than the better one.`;
}

function stop(node, root, way) {
  const chips = (names) => names.map((one) => chip(one));
  const clients = node.subscriptions.length;
  const making = ([from, to]) => way.find((one) => one.what === "converted" && one.broker === node.broker && one.from === from && one.to === to);
  return h("div", { class: ["stop", root && "root", node.converts.length && "converts"].filter(Boolean).join(" ") },
    h("div", {}, h("span", { class: "name mono" }, node.broker), root ? h("span", { class: "soft small" }, " root") : null),
    node.converts.map((pair) => h("div", { class: "line" }, h("span", { class: "does" }, "converts"), chip(pair[0]), "→", chip(pair[1]), making(pair) && h("span", { class: "soft" }, `in ${duration(took(making(pair)))}`))),
    clients ? h("div", { class: "line" }, h("span", { class: "does" }, `delivers to ${clients}`), chips(node.delivers)) : h("div", { class: "line" }, h("span", { class: "does" }, node.converts.length ? "" : "passes it on")));
}

function hop(node, way) {
  const step = hopTo(way, node.broker);
  const seconds = took(step);
  return [h("div", { class: "chips" }, node.receives.map((one) => chip(one))),
    // Brokers find other ways than was planned when one of them goes down.
    step && step.broker !== node.parent && h("span", { class: "time" }, `from ${step.broker}`),
    seconds !== undefined && h("span", { class: "time", title: "from when it was sent to when it was taken, by the clocks of the two" }, duration(Math.max(0, seconds)))];
}

function who(plan) {
  const rows = plan.plan.flatMap((node) => node.subscriptions.map((one) => ({ ...one, broker: node.broker })));
  if (!rows.length) return h("p", { class: "empty" }, "Nobody's filter matched.");
  return h("div", { class: "table-scroll" }, h("table", {}, h("thead", {}, h("tr", {}, ["Subscription", "At broker", "Got it as"].map((one) => h("th", { scope: "col" }, one)))),
    h("tbody", {}, rows.slice(0, 500).map((one) => h("tr", {},
      h("td", { class: "mono wrap" }, subscription(one.registration)), h("td", { class: "mono" }, one.broker),
      h("td", {}, one.format ? chip(one.format) : h("span", { class: "bad" }, one.reason || "no format"))))),
  ), rows.length > 500 ? h("p", { class: "soft" }, `and ${rows.length - 500} more`) : null);
}

/** The name that its owner knows: a registration has the length of the client's name before both. */
export function subscription(registration) {
  const found = /^(\d+)(@.*)$/s.exec(registration);
  return found ? found[2].slice(Number(found[1])) || registration : registration;
}

function contents(plan) {
  const cards = received.filter((one) => one.event.source === plan.source && one.event.id === plan.id).map((one) => delivery(one.event, one));
  const name = `${plan.source} ${plan.id}`;
  if (plan.digest) {
    cards.unshift(h("article", { class: "delivery" }, stored(plan.media_type, `/content/${plan.digest}`, name),
      h("div", { class: "foot" }, h("div", { class: "row spread" }, "as it was published", chip(plan.media_type)), h("div", { class: "soft" }, bytes(plan.size_bytes)))));
  } else if (plan.event) cards.unshift(delivery(JSON.parse(plan.event)));
  return cards.length ? h("div", { class: "deliveries" }, cards)
    : h("p", { class: "empty" }, "Its content is in the event itself. Subscribe to see what comes.");
}

function lead(plan) {
  const converted = plan.plan.reduce((sum, node) => sum + node.converts.length, 0);
  const subscribers = plan.plan.reduce((sum, node) => sum + node.subscriptions.length, 0);
  const formats = new Set(plan.plan.flatMap((node) => node.delivers));
  const end = lasted(plan);
  const from = plan.media_type ? `${format(plan.media_type)}, ${bytes(plan.size_bytes)}` : "It";
  return h("p", { class: "lead" }, `${from}: published at ${clock(plan.published_ns ?? plan.at_ns)}, sent along a tree of ${plan.plan.length} broker${plan.plan.length === 1 ? "" : "s"}, converted ${converted} time${converted === 1 ? "" : "s"}, ` +
    `and delivered to ${subscribers} subscription${subscribers === 1 ? "" : "s"} in ${formats.size} format${formats.size === 1 ? "" : "s"}${end === undefined ? "" : `, the last of them after ${duration(end)}`}.`);
}

/** Looks again while it is on its way. */
async function follow(plan, draw, leaving) {
  for (let turn = 0; turn < LOOKS && !arrived(plan); turn += 1) {
    await new Promise((done) => setTimeout(done, LOOK_MS));
    if (leaving.signal.aborted) return;
    const { tenant, source, id } = plan;
    plan = await get(`/plans?${new URLSearchParams({ source, id, ...(tenant ? { tenant } : {}) })}`, leaving).catch(() => null);
    if (!plan || leaving.signal.aborted) return;
    draw(plan);
  }
}

export function details(plan, leaving) {
  const moving = h("div", { class: "stack" });
  const draw = (one) => show(moving, lead(one),
    h("section", { class: "card", "aria-labelledby": "way" }, h("h2", { id: "way" }, "The way it took"), tree(one.plan, { stop: (node, root) => stop(node, root, one.way), hop: (node) => hop(node, one.way), name: "Tree of brokers" }),
      h("div", { class: "legend" }, h("span", {}, "on the links: the formats that were sent, and how long it took"), h("span", {}, "tinted: a broker that converts"))),
    h("section", { class: "card", "aria-labelledby": "steps" }, h("h2", { id: "steps" }, "Step by step"), timeline(one)));
  draw(plan);
  follow(plan, draw, leaving);
  return [
    moving,
    h("div", { class: "grid half" },
      h("section", { class: "card", "aria-labelledby": "costs" }, h("h2", { id: "costs" }, "What it costs"), bars(plan),
        h("div", { class: "legend" }, h("span", {}, h("i", { class: "key send" }), "sending"), h("span", {}, h("i", { class: "key make" }), "converting")),
        h("p", { class: "small" }, saving(plan)), h("p", { class: "soft small" }, `The brokers chose: ${plan.chosen}. Predicted delay of all deliveries together: ${duration(plan.cost.delay_s)}.`)),
      h("section", { class: "card", "aria-labelledby": "who-got" }, h("h2", { id: "who-got" }, "Who got it"), who(plan))),
    h("section", { class: "card", "aria-labelledby": "content" }, h("h2", { id: "content" }, "The content"), contents(plan)),
  ];
}

export function enter(main, query) {
  const place = h("div", {}, h("p", { class: "empty" }, "Asking the brokers…"));
  show(main, h("h1", { class: "wrap" }, `${query.get("source")} `, h("span", { class: "soft" }, query.get("id"))), place);
  const leaving = new AbortController();
  (async () => {
    const look = () => get(`/plans?${query}`, leaving);
    try {
      // It may be on its way to its root.
      show(place, details(await look().catch(async (error) => {
        if (error.status === 404 && (await live.planned(Object.fromEntries(query), leaving.signal))) return look();
        throw error;
      }), leaving));
    } catch (error) {
      if (leaving.signal.aborted) return;
      show(place, h("p", { class: "empty" }, error.status === 404 ? "No broker remembers a plan of this publication: nobody's filter matched, or it was long ago." : error.message));
    }
  })();
  return () => leaving.abort();
}
