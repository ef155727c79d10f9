// Publish: a file that is dropped, or an event that is written; and its way through the overlay.

import { bytes, doing, h, publicationLink, show } from "../dom.js";
import { ask, get, live } from "../gateway.js";
import { TYPE_OF_SUFFIX } from "../file_types.js";
import { details } from "./publication.js";

function guessed(file) {
  const known = TYPE_OF_SUFFIX[`.${file.name.split(".").at(-1).toLowerCase()}`];
  if (known === "text/plain") return "text/plain;charset=utf-8";
  return known || file.type || "application/octet-stream";
}

// What headers of the binary mode cannot hold is written with percent signs (CloudEvents, HTTP, 3.1.3.2).
const header = (text) => text.replace(/[^\x21\x23\x24\x26-\x7e]/gu, (one) => encodeURIComponent(one));

export function enter(main) {
  let file = null;
  const leaving = new AbortController();
  const field = (id, label, value, more) => {
    const input = h("input", { id, value, ...more });
    return { input, element: h("div", { class: "field" }, h("label", { for: id }, label), input) };
  };
  const type = field("type", "Type, by which most filters choose", "map", { required: true });
  const source = field("source", "Source", "/console", { required: true });
  const id = field("event-id", "Id; a new one if left empty", "");
  const subject = field("subject", "Subject (optional)", "");
  const format = field("format", "Format of the content", "text/plain;charset=utf-8");
  const text = h("textarea", { id: "text", rows: 7 });
  const chosen = h("p", {}, "Drop a file here, or ");
  const picker = h("input", { type: "file", id: "file", class: "hidden-text", "aria-label": "File to publish" });
  const drop = h("div", { class: "drop" }, chosen, h("label", { for: "file", class: "button", style: { display: "inline-block" } }, "Choose a file"), picker);
  const outcome = h("div");

  function take(one) {
    file = one;
    if (!file) return;
    format.input.value = guessed(file);
    show(chosen, h("strong", {}, file.name), ` ${bytes(file.size)} `, h("button", { type: "button", class: "quiet", onclick: () => { file = null; picker.value = ""; show(chosen, "Drop a file here, or "); } }, "remove"));
  }
  picker.addEventListener("change", () => take(picker.files[0]));
  drop.addEventListener("dragover", (event) => { event.preventDefault(); drop.classList.add("over"); });
  drop.addEventListener("dragleave", () => drop.classList.remove("over"));
  drop.addEventListener("drop", (event) => { event.preventDefault(); drop.classList.remove("over"); take(event.dataTransfer.files[0]); });

  async function publish() {
    const name = { source: source.input.value, id: id.input.value || crypto.randomUUID() };
    const attributes = { specversion: "1.0", ...name, type: type.input.value, ...(subject.input.value ? { subject: subject.input.value } : {}) };
    const headers = Object.fromEntries(Object.entries(attributes).map(([key, value]) => [`ce-${key}`, header(value)]));
    const began = performance.now();
    await ask("/events", { method: "POST", body: file ?? text.value, headers: { ...headers, "Content-Type": format.input.value } });
    const took = Math.round(performance.now() - began);
    show(outcome, h("section", { class: "card" }, h("div", { class: "row spread" }, h("h2", {}, "Published"), h("a", { href: publicationLink(name) }, "Link to this publication")), h("p", { role: "status" }, `Stored by a broker after ${took} ms; now on its way…`)));
    if (await live.planned(name, leaving.signal)) {
      const plan = await get(`/plans?${new URLSearchParams(name)}`, leaving);
      show(outcome, h("section", { class: "card" }, h("div", { class: "row spread" }, h("h2", {}, "Published and sent"), h("a", { href: publicationLink(name) }, "Link to this publication"))), details(plan, leaving));
    } else if (!leaving.signal.aborted) {
      show(outcome, h("section", { class: "card" }, h("h2", {}, "Published"), h("p", {}, "It is stored. Nobody's filter matched, so that there was nothing to send. ", h("a", { href: "#/subscriptions" }, "Subscribe"), " and publish again.")));
    }
  }

  show(main, h("h1", {}, "Publish"), h("p", { class: "lead" }, "Once, in one format. Whoever has a filter that matches gets it, each in a format of its own."),
    h("form", { class: "card", onsubmit: doing(publish) },
      h("div", { class: "grid half" },
        h("div", {}, drop, h("p", { class: "soft", style: { "text-align": "center", margin: ".6rem 0" } }, "or write"), h("div", { class: "field" }, h("label", { for: "text" }, "Content"), text)),
        h("div", {}, h("div", { class: "fields" }, type.element, source.element, id.element, subject.element), format.element, h("button", { type: "submit" }, "Publish")))),
    h("div", { style: { "margin-top": "1rem" } }, outcome));
  return () => leaving.abort();
}
