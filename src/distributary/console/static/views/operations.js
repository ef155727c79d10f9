// Operations: how brokers are, what they hold, and who may do what.

import { bytes, count, doing, duration, h, percent, show, toast } from "../dom.js";
import { ask, get, isOperator, live, may, send } from "../gateway.js";

const LOOK_MS = 4000;

/** Asks before something that cannot be undone. */
function sure(question, yes) {
  return new Promise((done) => {
    const dialog = h("dialog", { onclose: () => { done(dialog.returnValue === "yes"); dialog.remove(); } },
      h("form", { method: "dialog" }, h("p", {}, question), h("div", { class: "row" }, h("button", { value: "yes" }, yes), h("button", { value: "no", class: "plain" }, "Cancel"))));
    document.body.append(dialog);
    dialog.showModal();
  });
}

function errors(row) {
  const told = [row.lost && `${count(row.lost)} messages lost`, row.refused && `${count(row.refused)} refused by NATS`, row.room_low && "disk nearly full", !row.connected && "no connection", row.reports?.Misbehaved && `${count(row.reports.Misbehaved)} broken messages`, row.reports?.SetAsideMessage && `${count(row.reports.SetAsideMessage)} set aside`].filter(Boolean);
  return told.length ? h("span", { class: "bad" }, told.join(", ")) : h("span", { class: "soft" }, "none");
}

function line(name, row, load, chosen, drain) {
  const state = !row ? ["bad", "away"] : row.draining ? ["", "draining"] : ["good", "up"];
  const cells = !row ? [h("td", { colspan: 9, class: "soft" }, "does not answer")] : [
    h("td", {}, h("span", { class: "meter" }, h("i", { style: { width: percent(Math.min(1, load)).replace(" ", ""), "--load": load } })), percent(load)),
    h("td", { class: "right" }, count(row.queued), h("span", { class: "soft small" }, ` ${bytes(row.queued_bytes)}`)), h("td", { class: "right" }, count(row.outbox)), h("td", { class: "right" }, count(row.owed)),
    h("td", { class: "right" }, count(row.converting)), h("td", { class: "right" }, bytes(row.journal_bytes)), h("td", { class: "right" }, bytes(row.room_bytes)), h("td", {}, errors(row)),
    h("td", {}, h("span", { class: "soft small" }, `${row.version} · ${duration(row.up_s)} · ${bytes(row.memory_bytes)} · ${row.pid}`))];
  return h("tr", { class: name === chosen ? "new" : null }, h("th", { scope: "row", class: "mono" }, name), h("td", {}, h("span", { class: `badge ${state[0]}` }, state[1])), cells,
    h("td", { class: "right" }, row && !row.draining ? h("button", { type: "button", class: "plain", "data-key": name, "aria-label": `Drain broker ${name}`, onclick: doing(() => drain(name)) }, "Drain") : null));
}

function tokens() {
  const body = h("tbody");
  const name = h("input", { id: "token-name", required: true, pattern: "[A-Za-z0-9][A-Za-z0-9._\\-]*", placeholder: "gauge-north" });
  const source = h("input", { id: "token-source", placeholder: "/river/ (any, if left empty)" });
  const tenant = h("input", { id: "token-tenant", placeholder: "your own" });
  const scopes = ["publish", "subscribe", "admin"].map((one) => h("input", { type: "checkbox", value: one, checked: one !== "admin" }));
  const secret = h("div", { role: "status" });
  async function look() {
    const { tokens: found } = await get("/tokens");
    show(body, found.map((one) => h("tr", {}, h("th", { scope: "row" }, one.name), h("td", {}, one.tenant || "first"), h("td", {}, one.scopes.join(", ")), h("td", { class: "wrap" }, one.sources.map((prefix) => prefix || "any").join(", ")),
      h("td", {}, one.expires ? new Date(one.expires).toLocaleString("en-GB") : "never"),
      h("td", { class: "right" }, h("button", { type: "button", class: "danger", "aria-label": `Revoke token ${one.name}`, onclick: doing(async () => {
        if (!(await sure(`Revoke the token ${one.name}? Whoever is connected by it is cut off within seconds.`, "Revoke"))) return;
        await ask(`/tokens/${encodeURIComponent(one.name)}?tenant=${encodeURIComponent(one.tenant)}`, { method: "DELETE" });
        await look();
      }) }, "Revoke")))));
  }
  const create = doing(async () => {
    const wanted = { name: name.value, scopes: scopes.filter((one) => one.checked).map((one) => one.value), ...(source.value ? { sources: [source.value] } : {}), ...(tenant.value ? { tenant: tenant.value } : {}) };
    const made = await (await send("POST", "/tokens", wanted)).json();
    show(secret, h("p", {}, "The new token, told this once: ", h("code", { class: "wrap" }, made.token)));
    await look();
  });
  look().catch((error) => toast(error.message, true));
  return h("section", { class: "card", "aria-labelledby": "tokens" }, h("h2", { id: "tokens" }, "Tokens"),
    h("div", { class: "table-scroll", tabindex: "0", role: "region", "aria-label": "Tokens" }, h("table", {}, h("thead", {}, h("tr", {}, ["Name", "Tenant", "May", "Sources", "Expires"].map((one) => h("th", { scope: "col" }, one)), h("td", {}))), body)),
    h("form", { onsubmit: create, style: { "margin-top": "1rem" } },
      h("div", { class: "grid", style: { "grid-template-columns": "repeat(auto-fit, minmax(190px, 1fr))", "align-items": "end" } },
        h("div", {}, h("label", { for: "token-name" }, "Name"), name), h("div", {}, h("label", { for: "token-source" }, "Sources begin with"), source), h("div", {}, h("label", { for: "token-tenant" }, "Tenant"), tenant),
        h("fieldset", {}, h("legend", {}, "May"), h("div", { class: "row" }, scopes.map((one) => h("label", { class: "inline" }, one, one.value)))), h("div", {}, h("button", { type: "submit" }, "Make a token"))), secret));
}

export function enter(main, query) {
  const body = h("tbody");
  const heads = ["Broker", "State", "Load", "Waiting", "Outbox", "Owed", "Converting", "Journal", "Disk left", "Errors", "Version, up, memory, process"];
  const right = new Set(["Waiting", "Outbox", "Owed", "Converting", "Journal", "Disk left"]);
  show(main, h("h1", {}, "Operations"), h("p", { class: "lead" }, "Brokers keep what they accepted in a journal until it is acknowledged. A drained broker gives its clients to others, then leaves; nothing is lost."),
    isOperator() ? h("section", { class: "card", "aria-labelledby": "brokers" }, h("h2", { id: "brokers" }, "Brokers"),
      h("div", { class: "table-scroll", tabindex: "0", role: "region", "aria-label": "Brokers" }, h("table", {}, h("thead", {}, h("tr", {}, heads.map((one) => h("th", { scope: "col", class: right.has(one) ? "right" : null }, one)), h("td", {}))), body))) : null,
    may("admin") ? tokens() : null);
  let over = false;

  async function drain(name) {
    if (!(await sure(`Drain broker ${name}? Its clients move to others, then it leaves.`, "Drain"))) return;
    await ask(`/brokers/${encodeURIComponent(name)}/drain`, { method: "POST" });
    toast(`${name} gives its clients away.`);
    await look();
  }

  async function look() {
    const { brokers } = await get("/brokers");
    if (over) return;
    const loads = new Map((live.state?.brokers ?? []).map((one) => [one.broker, one.load ?? 0]));
    show(body, Object.entries(brokers).map(([name, row]) => line(name, row, loads.get(name) ?? 0, query.get("broker"), drain)));
  }

  if (!isOperator()) return undefined;
  const again = () => look().catch(() => {});
  again();
  const timer = setInterval(again, LOOK_MS);
  return () => {
    over = true;
    clearInterval(timer);
  };
}
