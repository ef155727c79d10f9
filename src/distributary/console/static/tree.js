// Trees of brokers, drawn as nested lists: what a reader of the screen hears is what one sees.

import { h } from "./dom.js";

/**
 * @param nodes rows with `broker` and `parent`
 * @param stop  returns what stands in the box of a broker
 * @param hop   returns what stands on the link to a broker
 */
export function tree(nodes, { stop, hop, name }) {
  const below = new Map();
  for (const node of nodes) {
    if (!below.has(node.parent)) below.set(node.parent, []);
    below.get(node.parent).push(node);
  }
  const known = new Set(nodes.map((one) => one.broker));
  const roots = nodes.filter((one) => one.parent === null || !known.has(one.parent));
  const drawn = new Set();
  function item(node, root) {
    if (drawn.has(node.broker)) return null;
    drawn.add(node.broker);
    const children = below.get(node.broker) ?? [];
    return h("li", {}, root ? null : h("div", { class: "hop" }, hop(node)), stop(node, root),
      children.length ? [h("span", { class: "stem" }), h("ul", {}, children.map((one) => item(one, false)))] : null);
  }
  return h("div", { class: "tree-scroll", tabindex: "0", role: "region", "aria-label": name }, h("ul", { class: "tree" }, roots.map((one) => item(one, true))));
}
