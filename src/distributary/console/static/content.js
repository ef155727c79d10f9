// Content that somebody published, shown so that it can do nothing but be looked at.

import { bytes, chip, format, h, publicationLink } from "./dom.js";
import { ask } from "./gateway.js";

const TEXT_MAX = 20_000;

/** What came for this browser, newest first, so that a publication can be shown as it was got. */
export const received = [];

function decoded(event) {
  if (event.data_base64 === undefined) return null;
  return Uint8Array.from(atob(event.data_base64), (one) => one.charCodeAt(0));
}

function isMarkup(type) {
  return /^(text\/html|application\/xhtml\+xml|image\/svg\+xml|(text|application)\/xml)/.test(type);
}

function charset(type) {
  const name = /charset="?([\w-]+)/i.exec(type)?.[1] ?? "utf-8";
  try {
    return new TextDecoder(name);
  } catch {
    return new TextDecoder();
  }
}

/** Markup may come with scripts and addresses: a frame without any right shows it, and only so. */
function framed(text, name) {
  return h("iframe", { sandbox: "", srcdoc: text, title: `${name}, shown without scripts`, loading: "lazy" });
}

function shown(type, data, text, name) {
  if (isMarkup(type)) return framed(text ?? charset(type).decode(data), name);
  if (/^text\/|json/.test(type) || data === null) {
    const whole = text ?? charset(type).decode(data);
    return h("pre", { tabindex: "0" }, whole.slice(0, TEXT_MAX), whole.length > TEXT_MAX ? "…" : "");
  }
  const source = URL.createObjectURL(new Blob([data], { type: type.split(";")[0] }));
  if (/^image\//.test(type)) return h("img", { src: source, alt: `${name} as ${format(type)}` });
  if (/^audio\//.test(type)) return h("audio", { src: source, controls: true, "aria-label": `${name} as sound` });
  if (/^video\//.test(type)) return h("video", { src: source, controls: true, "aria-label": `${name} as video` });
  return h("a", { href: source, download: "content", class: "empty" }, `Save ${format(type)}, ${bytes(data.length)}`);
}

async function fetched(reference) {
  // Only ours: what a publisher points to elsewhere is never asked for.
  if (!/^\/content\/[0-9a-f]{64}$/.test(reference)) throw new Error("its content is elsewhere");
  return new Uint8Array(await (await ask(reference)).arrayBuffer());
}

/** Content that is kept by its digest. */
export function stored(type, reference, name) {
  const body = h("div", { class: "body" }, h("span", { class: "soft" }, "Loading…"));
  fetched(reference).then(
    (data) => body.replaceChildren(shown(type, data, null, name)),
    (error) => body.replaceChildren(h("span", { class: "soft small" }, error.message)),
  );
  return body;
}

/** Lets go of the content of a card that is not shown any more. */
export function forget(card) {
  for (const one of card.querySelectorAll("[src^='blob:'], [href^='blob:']")) URL.revokeObjectURL(one.src ?? one.href);
  card.remove();
}

/** An event that was delivered, as a card. */
export function delivery(event, { number, fresh } = {}) {
  const type = event.datacontenttype ?? "application/json";
  const name = `${event.source} ${event.id}`;
  const body = event.dataref ? stored(type, event.dataref, name) : h("div", { class: "body" });
  if (event.data !== undefined || event.data_base64 !== undefined) {
    const text = event.data_base64 !== undefined ? null : typeof event.data === "string" ? event.data : JSON.stringify(event.data, null, 1);
    body.append(shown(type, decoded(event), text, name));
  } else if (!event.dataref) body.append(h("span", { class: "soft" }, "no content"));
  return h("article", { class: fresh ? "delivery new" : "delivery", "aria-label": name },
    body,
    h("div", { class: "foot" },
      h("div", { class: "row spread" }, h("a", { href: publicationLink(event) }, name), chip(type)),
      h("div", { class: "soft" }, [event.type, number && `delivery ${number}`, event.datasize && bytes(event.datasize)].filter(Boolean).join(" · "))));
}
