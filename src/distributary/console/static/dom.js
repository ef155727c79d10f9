// Elements, and figures as people read them.

const SVG = "http://www.w3.org/2000/svg";

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "style") for (const [key, one] of Object.entries(value)) element.style.setProperty(key, one);
    else if (name in element && typeof value !== "string" && !(element instanceof SVGElement)) element[name] = value;
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat(Infinity).filter((one) => one !== null && one !== undefined && one !== false));
  return element;
}

/** An element. Texts become text nodes, never markup. */
export const h = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);

/** An element of a drawing. */
export const s = (tag, attributes, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);

/** Puts something in the place of what was there; whoever had the focus keeps it, by its key. */
export function show(place, ...children) {
  const key = place.contains(document.activeElement) ? document.activeElement.dataset.key : undefined;
  place.replaceChildren(...children.flat(Infinity).filter(Boolean));
  if (key !== undefined) place.querySelector(`[data-key="${CSS.escape(key)}"]`)?.focus();
}

/** Changes a text only when it differs, so that readers of the screen are left in peace. */
export function write(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

const trim = (number) => String(Number(number));

export function count(value) {
  if (value === undefined || value === null) return "–";
  return Math.round(value).toLocaleString("en");
}

export function rate(value) {
  if (!value) return "0";
  if (value >= 100) return count(value);
  return trim(value.toFixed(value >= 10 ? 0 : value >= 1 ? 1 : 2));
}

export function bytes(value) {
  if (value === undefined || value === null) return "–";
  let size = value;
  for (const unit of ["B", "kB", "MB", "GB"]) {
    if (size < 1000) return `${trim(size.toPrecision(3))} ${unit}`;
    size /= 1000;
  }
  return `${trim(size.toPrecision(3))} TB`;
}

export function duration(seconds) {
  if (seconds === undefined || seconds === null) return "–";
  if (seconds < 1) return `${trim((seconds * 1000).toPrecision(2))} ms`;
  if (seconds < 90) return `${trim(seconds.toPrecision(2))} s`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min`;
  if (seconds < 129600) return `${Math.round(seconds / 3600)} h`;
  return `${Math.round(seconds / 86400)} d`;
}

export const cost = (value) => (value === undefined || value === null ? "–" : trim(value.toPrecision(3)));

export const percent = (share) => `${Math.round(100 * share)} %`;

export const clock = (ns) => new Date(ns / 1e6).toLocaleTimeString("en-GB");

const NAMES = [
  [/^application\/pdf/, "PDF"], [/^image\/jpeg/, "JPEG"], [/^image\/png/, "PNG"], [/^image\/svg/, "SVG"], [/^image\/(\w+)/, null],
  [/^text\/plain/, "text"], [/^text\/html/, "HTML"], [/^text\/markdown/, "Markdown"], [/^audio\/(x-)?wav/, "speech"],
  [/^audio\//, "sound"], [/^video\//, "video"], [/json/, "JSON"],
];

/** The name of a format, short: what it is, and what sets it apart. */
export function format(name) {
  if (!name) return "none";
  const [type, ...parameters] = name.split(";").map((one) => one.trim());
  const found = NAMES.find(([pattern]) => pattern.test(type));
  const short = found ? found[1] ?? type.split("/")[1].toUpperCase() : type;
  const details = parameters.map((one) => one.replace(/^width=(\d+)$/, "$1 px").replace(/^charset=/, "").replace(/=/, " "));
  return [short, ...details].join(" ");
}

/** The kind of a format, by which it is coloured. */
export function kind(name) {
  if (/^(application\/pdf)/.test(name)) return "document";
  if (/^image\//.test(name)) return "image";
  if (/^audio\//.test(name)) return "audio";
  if (/^video\//.test(name)) return "video";
  if (/^text\//.test(name)) return "text";
  return "data";
}

export const chip = (name) => h("span", { class: `chip ${kind(name ?? "")}`, title: name }, format(name));

export const publicationLink = (one) =>
  `#/publication?${new URLSearchParams({ source: one.source, id: one.id, ...(one.tenant ? { tenant: one.tenant } : {}) })}`;

/** Says something for a moment. */
export function toast(text, bad = false) {
  const note = h("div", { class: bad ? "toast bad" : "toast" }, text);
  document.getElementById("toasts").append(note);
  setTimeout(() => note.remove(), bad ? 9000 : 4500);
}

/** Has a button do something that may fail, and say so. */
export function doing(work) {
  return async (event) => {
    event.preventDefault?.();
    const button = event.submitter ?? event.currentTarget;
    if (button instanceof HTMLButtonElement) button.disabled = true;
    try {
      await work(event);
    } catch (error) {
      if (error.name !== "AbortError") toast(error.message, true);
    } finally {
      if (button instanceof HTMLButtonElement) button.disabled = false;
    }
  };
}
