// The way of a publication in time: what each broker did, and for how long.

import { chip, duration, h } from "./dom.js";

const STEPS_MAX = 200;
const END_MIN_NS = 1e6;
// What is shorter is a moment.
const MOMENT_S = 1e-4;

const name = (broker) => h("span", { class: "mono" }, broker.slice(0, 10));
const plural = (count, noun) => `${count} ${noun}${count === 1 ? "" : "s"}`;

const TOLD = {
  published: (one) => [name(one.broker), " has stored it, and says so to the publisher"],
  planned: (one) => [name(one.broker), " is its root, and has planned where it goes and is converted"],
  sent: (one) => [name(one.broker), " → ", name(one.to), one.carries === "offer" ? " offered to its root " : " ", one.formats.map((each) => chip(each)), one.times > 1 ? ` sent ${one.times} times` : ""],
  converted: (one) => [name(one.broker), " converts ", chip(one.from), " → ", chip(one.to), one.failed ? " and fails" : ""],
  delivered: (one) => [name(one.broker), ` delivers to ${plural(one.count, "subscription")} `, chip(one.format)],
};

/** How long a step took, in seconds; undefined if nobody has said that it ended. */
export const took = (step) => (step?.ended_ns ? (step.ended_ns - step.began_ns) / 1e9 : undefined);

/** The last hop of a publication to a broker. */
export const hopTo = (way, broker) => way.findLast((one) => one.what === "sent" && one.carries === "portion" && one.to === broker);

/** Whether it is in all queues that it is for, as far as brokers have told. */
export function arrived({ way, plan }) {
  const wanted = plan.flatMap((node) => node.subscriptions).filter((one) => one.format).length;
  return way.filter((one) => one.what === "delivered").reduce((sum, one) => sum + one.count, 0) >= wanted;
}

/** When the last delivery was, in seconds after the publication. */
export function lasted({ way, published_ns: began }) {
  const ends = way.filter((one) => one.what === "delivered").map((one) => one.ended_ns);
  return ends.length ? Math.max(0, (Math.max(...ends) - began) / 1e9) : undefined;
}

export function timeline({ way, published_ns: published }) {
  if (!way.length) return h("p", { class: "empty" }, "No broker remembers when it went where.");
  const began = Math.min(published ?? Infinity, ...way.map((one) => one.began_ns));
  const whole = Math.max(END_MIN_NS, ...way.map((one) => (one.ended_ns ?? one.began_ns) - began));
  const share = (ns) => `${(100 * Math.min(1, Math.max(0, ns / whole))).toFixed(2)}%`;
  const row = (one) => {
    const seconds = took(one);
    const told = seconds === undefined ? "not known" : one.what !== "sent" && seconds < MOMENT_S ? "" : duration(Math.max(0, seconds));
    return h("li", {}, h("span", { class: "step" }, (TOLD[one.what] ?? (() => one.what))(one)),
      h("span", { class: "lane", "aria-hidden": "true" }, h("i", { class: one.what, style: { left: share(one.began_ns - began), width: share((one.ended_ns ?? one.began_ns) - one.began_ns) } })),
      h("span", { class: "right small" }, h("span", { class: "soft" }, `+${duration((one.began_ns - began) / 1e9)} `), h("strong", {}, told)));
  };
  return [h("ol", { class: "timeline" }, way.slice(0, STEPS_MAX).map(row)),
    way.length > STEPS_MAX ? h("p", { class: "soft" }, `and ${way.length - STEPS_MAX} more steps`) : null];
}
