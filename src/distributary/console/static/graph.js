// The overlay as a graph: brokers where their delays put them, coloured by load, links by traffic.

import { bytes, percent, rate, s, write } from "./dom.js";

const WIDTH = 960;
const HEIGHT = 640;
const MARGIN = 70;
// So many of the nearest are drawn as neighbours when nothing goes over their links.
const NEAREST = 3;
// Of links with traffic so many are drawn for each broker, those with most, and things are seen to
// move on so many altogether: more would hide each other.
const BUSIEST = 2;
const FLOWS = 24;
const MANY = 30;

/**
 * Places for brokers such that distances are like delays: stress majorisation from a circle.
 * Delays are drawn half as different as they are, as names must stay readable.
 */
function places(names, links) {
  const count = names.length;
  const index = new Map(names.map((name, k) => [name, k]));
  const delays = links.map((one) => one.delay_ms).filter((one) => one > 0);
  const mean = delays.reduce((sum, one) => sum + one, 0) / (delays.length || 1) || 1;
  const wanted = Array.from({ length: count }, () => new Float64Array(count).fill(1));
  for (const { from, to, delay_ms: delay } of links) {
    const [a, b] = [index.get(from), index.get(to)];
    if (a === undefined || b === undefined) continue;
    wanted[a][b] = wanted[b][a] = 0.6 + 0.4 * Math.min(3, delay / mean);
  }
  let at = names.map((_, k) => [Math.cos((2 * Math.PI * k) / count), Math.sin((2 * Math.PI * k) / count)]);
  for (let round = 0; round < 150; round += 1) {
    at = at.map((own, a) => {
      let [x, y, weights] = [0, 0, 0];
      at.forEach((other, b) => {
        if (a === b) return;
        const [dx, dy] = [own[0] - other[0], own[1] - other[1]];
        const apart = Math.hypot(dx, dy) || 1e-6;
        const weight = 1 / wanted[a][b] ** 2;
        x += weight * (other[0] + (wanted[a][b] * dx) / apart);
        y += weight * (other[1] + (wanted[a][b] * dy) / apart);
        weights += weight;
      });
      return weights ? [x / weights, y / weights] : own;
    });
  }
  const range = (k) => [Math.min(...at.map((one) => one[k])), Math.max(...at.map((one) => one[k]))];
  const fit = (value, [low, high], size) => (high > low ? MARGIN + ((value - low) / (high - low)) * (size - 2 * MARGIN) : size / 2);
  const [xs, ys] = [range(0), range(1)];
  return new Map(names.map((name, k) => [name, [fit(at[k][0], xs, WIDTH), fit(at[k][1], ys, HEIGHT)]]));
}

function nearest(links) {
  const kept = new Set();
  const taken = new Map();
  for (const link of [...links].sort((a, b) => a.delay_ms - b.delay_ms)) {
    const [a, b] = [taken.get(link.from) ?? 0, taken.get(link.to) ?? 0];
    if (a >= NEAREST && b >= NEAREST) continue;
    taken.set(link.from, a + 1);
    taken.set(link.to, b + 1);
    kept.add(link);
  }
  return kept;
}

export class Graph {
  #names = "";
  #nodes = new Map();
  #edges = s("g");
  #points = s("g");

  constructor(open) {
    this.open = open;
    this.element = s("svg", { class: "overlay", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "group", "aria-label": "Brokers and the links between them" }, this.#edges, this.#points);
  }

  update(state) {
    const names = state.brokers.map((one) => one.broker);
    const known = names.join(" ") + (state.links.length ? " linked" : "");
    if (known !== this.#names) {
      this.#names = known;
      this.at = places(names, state.links);
      this.#draw(state.brokers);
    }
    for (const broker of state.brokers) this.#paint(broker);
    this.#paintLinks(state.links);
  }

  /** Shows that a broker has just planned a publication. */
  ring(name) {
    const node = this.#nodes.get(name)?.group;
    node?.classList.remove("root");
    requestAnimationFrame(() => node?.classList.add("root"));
  }

  #draw(brokers) {
    const radius = brokers.length > MANY ? 12 : brokers.length > 14 ? 17 : 24;
    this.#nodes.clear();
    this.#points.replaceChildren(
      ...brokers.map(({ broker: name }) => {
        const [x, y] = this.at.get(name);
        const title = s("title");
        const sub = s("text", { class: "sub", y: radius + 34 });
        const few = brokers.length <= MANY;
        const group = s("a", { class: few ? "node" : "node many", href: `#/operations?broker=${name}`, transform: `translate(${x} ${y})` },
          s("circle", { class: "ring", r: radius }), s("circle", { class: "body", r: radius }), s("circle", { class: "work", r: radius + 5 }),
          s("text", { y: radius + (few ? 20 : 13) }, name.slice(0, few ? 10 : 4)), few && sub, title);
        this.#nodes.set(name, { group, title, sub });
        return group;
      }),
    );
  }

  #paint(broker) {
    const { group, title, sub } = this.#nodes.get(broker.broker);
    const state = broker.state === "up" ? "" : broker.state;
    group.classList.toggle("away", state === "away");
    group.classList.toggle("draining", state === "draining");
    group.classList.toggle("converting", broker.converting > 0);
    group.style.setProperty("--load", Math.min(1, broker.load ?? 0).toFixed(3));
    write(sub, state || (broker.converting ? `converting ${broker.converting}` : `${percent(broker.load ?? 0)} busy`));
    const told = state === "away" ? "does not answer" : `load ${percent(broker.load ?? 0)}, ${broker.subscriptions ?? 0} subscriptions, ${broker.queued ?? 0} waiting, ${broker.owed ?? 0} owed`;
    write(title, `Broker ${broker.broker}: ${told}`);
  }

  #paintLinks(links) {
    const near = nearest(links);
    const most = Math.max(0.01, ...links.map((one) => one.messages_per_s ?? 0));
    const lines = [];
    const flows = [];
    const traffic = (link) => link.messages_per_s ?? 0;
    const busiest = [...links].sort((a, b) => traffic(b) - traffic(a)).slice(0, BUSIEST * this.#nodes.size);
    const busy = new Set(busiest);
    const flowing = new Set(busiest.slice(0, FLOWS));
    const [widest, opaque] = this.#nodes.size > MANY ? [4, 0.55] : [7.5, 0.6];
    for (const link of links) {
      const used = busy.has(link) && (link.messages_per_s > 0 || link.bytes_per_s > 0);
      if (!used && !near.has(link)) continue;
      const [a, b] = [this.at.get(link.from), this.at.get(link.to)];
      if (!a || !b) continue;
      const ends = { x1: a[0], y1: a[1], x2: b[0], y2: b[1] };
      const share = Math.sqrt((link.messages_per_s ?? 0) / most);
      const told = `${link.from} – ${link.to}: ${rate(link.messages_per_s)} messages/s, ${bytes(link.bytes_per_s ?? 0)}/s, delay ${link.delay_ms?.toFixed(1)} ms`;
      lines.push(s("line", { ...ends, class: used ? "edge used" : "edge", "stroke-width": used ? (1.5 + widest * share).toFixed(1) : 1, opacity: used ? (0.3 + opaque * share).toFixed(2) : 1 }, s("title", {}, told)));
      if (share > 0.35 && flowing.has(link)) flows.push(s("line", { ...ends, class: "edge moving" }));
    }
    this.#edges.replaceChildren(...lines.sort((a, b) => a.classList.contains("used") - b.classList.contains("used")), ...flows);
  }
}
