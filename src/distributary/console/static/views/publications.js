// Publications: all that are remembered, found by their source or id.

import { clock, cost, h, publicationLink, show } from "../dom.js";
import { get, live } from "../gateway.js";

const ROW_PX = 38;
const SPARE = 8;

export function enter(main) {
  const search = h("input", { type: "search", id: "search", placeholder: "source or id", autocomplete: "off" });
  const body = h("tbody");
  const above = h("tr", { "aria-hidden": "true" });
  const below = h("tr", { "aria-hidden": "true" });
  const scroller = h("div", { class: "table-scroll", tabindex: "0", role: "region", "aria-label": "Publications", style: { "max-height": "70vh", "overflow-y": "auto" } },
    h("table", {}, h("thead", {}, h("tr", {}, ["Time", "Source", "Id", "Brokers", "Plan", "Cost"].map((one) => h("th", { scope: "col" }, one)))), body));
  const told = h("p", { class: "soft small", role: "status" });
  show(main, h("h1", {}, "Publications"), h("p", { class: "lead" }, "What brokers have planned and remember, the newest first."),
    h("section", { class: "card" }, h("div", { class: "field" }, h("label", { for: "search" }, "Find"), search), told, scroller));
  let found = [];

  // Only the rows in sight are in the page: ten thousand stay as quick as ten.
  function draw() {
    const first = Math.max(0, Math.floor(scroller.scrollTop / ROW_PX) - SPARE);
    const last = Math.min(found.length, first + Math.ceil((scroller.clientHeight || 600) / ROW_PX) + 2 * SPARE);
    above.style.height = `${first * ROW_PX}px`;
    below.style.height = `${(found.length - last) * ROW_PX}px`;
    show(body, above, found.slice(first, last).map((one) => h("tr", { style: { height: `${ROW_PX}px` } },
      h("td", {}, clock(one.at_ns)), h("td", { class: "cut" }, one.source), h("td", { class: "cut" }, h("a", { href: publicationLink(one) }, one.id)),
      h("td", {}, one.brokers), h("td", {}, one.chosen), h("td", {}, cost(one.cost.transmission + one.cost.conversion)))), below);
  }

  function update() {
    const wanted = search.value.toLowerCase();
    found = wanted ? live.publications.filter((one) => `${one.source} ${one.id}`.toLowerCase().includes(wanted)) : live.publications;
    told.textContent = `${found.length.toLocaleString("en")} publication${found.length === 1 ? "" : "s"}`;
    draw();
  }

  search.addEventListener("input", update);
  scroller.addEventListener("scroll", draw);
  live.addEventListener("publications", update);
  get("/plans").then((answer) => live.add(answer.plans)).catch((error) => (told.textContent = error.message));
  update();
  return () => live.removeEventListener("publications", update);
}
