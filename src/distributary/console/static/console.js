// The shell: who is here, which view is shown, and whether the gateway answers.

import { h, show, write } from "./dom.js";
import { isOperator, live, logIn, may, session } from "./gateway.js";

const VIEWS = [
  { path: "", title: "Overview", file: "overview" },
  { path: "publications", title: "Publications", file: "publications" },
  { path: "publication", title: "Publication", file: "publication", under: "publications" },
  { path: "streams", title: "Streams", file: "streams" },
  { path: "subscriptions", title: "Subscriptions", file: "subscriptions", scope: "subscribe" },
  { path: "publish", title: "Publish", file: "publish", scope: "publish" },
  { path: "operations", title: "Operations", file: "operations", scope: "admin" },
];

const main = document.getElementById("main");
const nav = document.getElementById("nav");
let leave = null;
let shown = 0;

/** Shows the view that the address names; deep links are addresses. */
async function route(focus) {
  const [path, query] = location.hash.replace(/^#\/?/, "").split("?");
  const view = VIEWS.find((one) => one.path === path) ?? VIEWS[0];
  const turn = ++shown;
  const module = await import(`./views/${view.file}.js`);
  if (turn !== shown) return;
  leave?.();
  leave = null;
  document.title = `${view.title} · distributary`;
  for (const link of nav.children) {
    if (link.dataset.path === (view.under ?? view.path)) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  show(main);
  leave = module.enter(main, new URLSearchParams(query)) ?? null;
  window.scrollTo(0, 0);
  if (focus) main.focus({ preventScroll: true });
}

function dress() {
  const button = document.getElementById("theme");
  const wanted = localStorage.getItem("theme");
  if (wanted) document.documentElement.dataset.theme = wanted;
  button.onclick = () => {
    const root = document.documentElement;
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
    localStorage.setItem("theme", root.dataset.theme);
  };
}

function watch() {
  const state = document.getElementById("link");
  live.addEventListener("connection", () => {
    state.classList.toggle("on", live.connected);
    write(state, live.connected ? "live" : "reconnecting");
  });
  live.start();
}

async function start() {
  dress();
  try {
    await logIn();
  } catch (error) {
    write(document.getElementById("link"), "not logged in");
    show(main, h("div", { class: "card" }, h("h1", {}, "Please log in"),
      h("p", {}, error.status === 401
        ? "Open the link that distributary up has printed; it works once. The command distributary token login prints another."
        : error.message)));
    return;
  }
  write(document.getElementById("who"), session.tenant ? `${session.name} · ${session.tenant}` : session.name);
  show(nav, VIEWS.filter((one) => !one.under && (!one.scope || (one.scope === "admin" ? isOperator() || may("admin") : may(one.scope))))
    .map((one) => h("a", { href: `#/${one.path}`, "data-path": one.path }, one.title)));
  watch();
  addEventListener("hashchange", () => route(true));
  await route(false);
}

start();
