"use strict";
(() => {
  const facts = JSON.parse(document.getElementById("facts").textContent);
  const picture = document.getElementById("picture");
  const stage = document.getElementById("stage");
  const tip = document.getElementById("tip");
  const found = document.getElementById("found");
  const named = document.getElementById("named");
  const count = facts.nodes.length;
  const largestRadius = facts.radii.reduce((a, b) => Math.max(a, b), 0);
  const hasCards = picture.querySelector(".card") !== null;
  const svgElement = (tag) => document.createElementNS("http://www.w3.org/2000/svg", tag);

  // By how much a picture may be shrunk or stretched, and still be read with ease.
  const READABLE = 0.75;
  const LARGEST = 1.7;

  // The view is the part of the drawing that the stage shows: [left, top, width, height],
  // always in the stage's proportions.
  let view = null;
  let moved = false;
  let drawPending = false;

  function fitted() {
    const [left, top, width, height] = facts.box;
    const ratio = (stage.clientWidth || 1) / (stage.clientHeight || 1);
    const wide = Math.max(width, height * ratio, (stage.clientWidth || 1) / LARGEST);
    const tall = wide / ratio;
    return [left - (wide - width) / 2, top - (tall - height) / 2, wide, tall];
  }

  // Where words would be too small to read, the page begins with the root and what is near it.
  function first() {
    const all = fitted();
    const wide = stage.clientWidth || 1;
    if (!hasCards || wide / all[2] >= READABLE) return all;
    const tall = (wide * all[3]) / all[2];
    const [left, top, width, height] = facts.box;
    const x = width < wide ? left - (wide - width) / 2 : left;
    const y = Math.max(top, Math.min(top + height - tall, facts.ys[0] - tall / 2));
    return [x, height < tall ? top - (tall - height) / 2 : y, wide, tall];
  }

  function redraw() {
    if (drawPending) return;
    drawPending = true;
    requestAnimationFrame(() => {
      drawPending = false;
      picture.setAttribute("viewBox", view.join(" "));
      markMatches();
      nameNodes();
    });
  }

  function zoom(factor, x, y) {
    const widest = fitted()[2] * 4;
    const width = Math.min(widest, Math.max(20, view[2] * factor));
    const by = width / view[2];
    moved = true;
    view = [x - (x - view[0]) * by, y - (y - view[1]) * by, width, view[3] * by];
    redraw();
  }

  function pointOf(event) {
    const box = picture.getBoundingClientRect();
    return [
      view[0] + ((event.clientX - box.left) / box.width) * view[2],
      view[1] + ((event.clientY - box.top) / box.height) * view[3],
    ];
  }

  // A grid over the drawing finds the nodes near a point without asking all of them.
  const side = Math.max(1, Math.ceil(Math.sqrt(count)));
  const cellWidth = facts.box[2] / side || 1;
  const cellHeight = facts.box[3] / side || 1;
  const cells = new Map();
  const column = (x) => Math.floor((x - facts.box[0]) / cellWidth);
  const row = (y) => Math.floor((y - facts.box[1]) / cellHeight);
  for (let v = 0; v < count; v++) {
    const cell = row(facts.ys[v]) * side + column(facts.xs[v]);
    if (!cells.has(cell)) cells.set(cell, []);
    cells.get(cell).push(v);
  }

  function nodesWithin(left, top, right, bottom) {
    const inside = [];
    const lastColumn = Math.min(side, column(right));
    const lastRow = Math.min(side, row(bottom));
    for (let r = Math.max(0, row(top)); r <= lastRow; r++) {
      for (let c = Math.max(0, column(left)); c <= lastColumn; c++) {
        for (const v of cells.get(r * side + c) || []) {
          const x = facts.xs[v];
          const y = facts.ys[v];
          if (x >= left && x <= right && y >= top && y <= bottom) inside.push(v);
        }
      }
    }
    return inside;
  }

  function nearestNode(event) {
    const card = event.target.closest("[data-node]");
    if (card) return Number(card.dataset.node);
    if (hasCards) return null;
    const [x, y] = pointOf(event);
    const slack = (6 * view[2]) / picture.clientWidth;
    const reach = slack + largestRadius;
    let best = null;
    let bestDistance = slack;
    for (const v of nodesWithin(x - reach, y - reach, x + reach, y + reach)) {
      const distance = Math.hypot(facts.xs[v] - x, facts.ys[v] - y) - facts.radii[v];
      if (distance <= bestDistance) [best, bestDistance] = [v, distance];
    }
    return best;
  }

  // Strands are thin, so a link also answers when the pointer is a little beside it.
  function nearestLink(event) {
    for (const [dx, dy] of [[0, 0], [3, 0], [-3, 0], [0, 3], [0, -3]]) {
      const hit = document.elementFromPoint(event.clientX + dx, event.clientY + dy);
      const strand = hit && hit.closest(".strands [data-v], .idle-links [data-v]");
      if (strand) return Number(strand.dataset.v);
    }
    return null;
  }

  // Tooltips. Names reach the page as text nodes only.
  const amount = (value) => Number(value.toPrecision(4)).toLocaleString("en");
  const share = (value) =>
    facts.totalCost > 0 ? ` (${((100 * value) / facts.totalCost).toPrecision(2)} % of the total)` : "";

  function kindLabel(k) {
    const label = document.createElement("span");
    const swatch = document.createElement("i");
    swatch.style.background = facts.colours[k];
    label.append(swatch, facts.kinds[k]);
    return label;
  }

  function listed(kinds) {
    const parts = [];
    for (const k of kinds) parts.push(parts.length ? ", " : "", kindLabel(k));
    return parts.length ? parts : ["nothing"];
  }

  function showTip(event, title, rows) {
    const heading = document.createElement("b");
    heading.textContent = title;
    const list = document.createElement("dl");
    for (const [term, content] of rows) {
      const dt = document.createElement("dt");
      const dd = document.createElement("dd");
      dt.textContent = term;
      dd.append(...content);
      list.append(dt, dd);
    }
    tip.replaceChildren(heading, list);
    tip.hidden = false;
    const x = event.clientX + 16 + tip.offsetWidth > innerWidth ? event.clientX - 12 - tip.offsetWidth : event.clientX + 16;
    const y = Math.min(event.clientY + 14, innerHeight - tip.offsetHeight - 6);
    tip.style.left = `${Math.max(4, x)}px`;
    tip.style.top = `${Math.max(4, y)}px`;
  }

@@tips@@  function describe(event) {
    const node = nearestNode(event);
    if (node !== null) return describeNode(event, node);
    const link = nearestLink(event);
    if (link !== null) return describeLink(event, link);
    tip.hidden = true;
  }

  // Following one format.
  let followed = null;
  const buttons = document.querySelectorAll("button[data-kind]");

  function follow(kind) {
    followed = followed === kind ? null : kind;
    picture.classList.toggle("following", followed !== null);
    for (const lit of picture.querySelectorAll(".lit")) lit.classList.remove("lit");
    if (followed !== null) for (const part of picture.querySelectorAll(`.f${followed}`)) part.classList.add("lit");
    for (const button of buttons) {
      const chosen = Number(button.dataset.kind) === followed;
      button.setAttribute("aria-pressed", String(chosen));
      button.closest("tr").classList.toggle("chosen", chosen);
    }
  }
  for (const button of buttons) {
    const kind = Number(button.dataset.kind);
    button.closest("tr").style.cursor = "pointer";
    button.closest("tr").addEventListener("click", () => follow(kind));
  }

  // Finding nodes by name.
  const search = document.getElementById("wanted-name");
  const matchCount = document.getElementById("matches");
  const folded = facts.nodes.map((name) => name.toLowerCase());
  let matches = [];
  let current = -1;

  function find() {
    const asked = search.value.trim().toLowerCase();
    matches = [];
    current = -1;
    if (asked) for (let v = 0; v < count; v++) if (folded[v].includes(asked)) matches.push(v);
    matches.sort((a, b) => (folded[b] === asked) - (folded[a] === asked) || a - b);
    matchCount.textContent = asked ? (matches.length ? `${matches.length} found` : "none found") : "";
    redraw();
  }

  function markMatches() {
    if (hasCards) {
      for (const card of picture.querySelectorAll(".node")) {
        card.classList.toggle("found", matches.includes(Number(card.dataset.node)));
      }
      return;
    }
    const unit = view[2] / (picture.clientWidth || 1);
    found.replaceChildren(
      ...matches.slice(0, 400).map((v, index) => {
        const circle = svgElement("circle");
        circle.setAttribute("cx", facts.xs[v]);
        circle.setAttribute("cy", facts.ys[v]);
        circle.setAttribute("r", facts.radii[v] + (index === current ? 9 : 5) * unit);
        circle.setAttribute("pointer-events", "none");
        return circle;
      }),
    );
  }

  function visitNext() {
    if (!matches.length) return;
    current = (current + 1) % matches.length;
    matchCount.textContent = `${current + 1} of ${matches.length}`;
    const width = Math.min(view[2], hasCards ? 1000 : 700);
    const height = (width * view[3]) / view[2];
    const v = matches[current];
    moved = true;
    view = [facts.xs[v] - width / 2, facts.ys[v] - height / 2, width, height];
    redraw();
  }
  search.addEventListener("input", find);
  document.getElementById("search").addEventListener("submit", (event) => {
    event.preventDefault();
    visitNext();
  });

  // Names appear beside the nodes once few enough of them are in view; before that, those of the
  // largest, if some are larger than the others.
  const smallestRadius = facts.radii.reduce((a, b) => Math.min(a, b), largestRadius);
  const bySize = (a, b) => facts.radii[b] - facts.radii[a] || a - b;
  function nameNodes() {
    if (hasCards) return;
    const [left, top, width, height] = view;
    let shown = nodesWithin(left, top, left + width, top + height);
    if (shown.length > 160 && facts.links) shown = shown.filter((v) => facts.radii[v] > 2 * smallestRadius);
    const labels = [];
    if (shown.length <= 160) {
      shown.sort(bySize);
      const unit = width / (picture.clientWidth || 1);
      const size = 11 * unit;
      const taken = [];
      for (const v of shown) {
        const name = facts.nodes[v].length > 26 ? `${facts.nodes[v].slice(0, 25)}…` : facts.nodes[v];
        const long = name.length * size * 0.62;
        let x = facts.xs[v] + facts.radii[v] + 4 * unit;
        if (x + long > left + width) x = facts.xs[v] - facts.radii[v] - 4 * unit - long;
        const y = facts.ys[v];
        const box = [x, y - size * 0.7, x + long, y + size * 0.7];
        if (taken.some((other) => box[0] < other[2] && other[0] < box[2] && box[1] < other[3] && other[1] < box[3])) continue;
        taken.push(box);
        const label = svgElement("text");
        label.setAttribute("x", x);
        label.setAttribute("y", y + size * 0.35);
        label.setAttribute("font-size", size);
        label.setAttribute("stroke-width", 3 * unit);
        label.textContent = name;
        labels.push(label);
      }
    }
    named.replaceChildren(...labels);
    const fixed = picture.querySelector(".names");
    if (fixed) fixed.style.display = labels.length ? "none" : "";
  }

  // Moving about.
  let grip = null;
  let lastMove = null;
  picture.addEventListener("wheel", (event) => {
    event.preventDefault();
    const pixels = event.deltaMode === 1 ? event.deltaY * 16 : event.deltaY;
    zoom(Math.exp(Math.max(-120, Math.min(120, pixels)) * 0.0025), ...pointOf(event));
  }, { passive: false });
  picture.addEventListener("pointerdown", (event) => {
    grip = [event.clientX, event.clientY, view];
    picture.setPointerCapture(event.pointerId);
    picture.classList.add("dragging");
    tip.hidden = true;
  });
  const release = () => {
    grip = null;
    picture.classList.remove("dragging");
  };
  picture.addEventListener("pointerup", release);
  picture.addEventListener("pointercancel", release);
  picture.addEventListener("pointermove", (event) => {
    if (grip) {
      const unit = view[2] / (picture.clientWidth || 1);
      const [x, y, from] = grip;
      moved = true;
      view = [from[0] - (event.clientX - x) * unit, from[1] - (event.clientY - y) * unit, view[2], view[3]];
      redraw();
      return;
    }
    if (lastMove === null) {
      requestAnimationFrame(() => {
        const move = lastMove;
        lastMove = null;
        if (move && !grip) describe(move);
      });
    }
    lastMove = event;
  });
  picture.addEventListener("pointerleave", () => {
    lastMove = null;
    tip.hidden = true;
  });

  const middle = () => [view[0] + view[2] / 2, view[1] + view[3] / 2];
  const commands = {
    in: () => zoom(0.7, ...middle()),
    out: () => zoom(1 / 0.7, ...middle()),
    fit: () => {
      moved = false;
      view = fitted();
      redraw();
    },
  };
  for (const button of document.querySelectorAll("button[data-zoom]")) {
    button.addEventListener("click", () => commands[button.dataset.zoom]());
  }
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") {
      if (followed !== null) follow(followed);
      search.value = "";
      find();
    } else if (event.target !== search && !event.ctrlKey && !event.metaKey) {
      const command = { "+": "in", "=": "in", "-": "out", 0: "fit" }[event.key];
      if (command) commands[command]();
    }
  });
  addEventListener("resize", () => {
    if (!moved) return begin();
    const [x, y] = middle();
    const height = (view[2] * (stage.clientHeight || 1)) / (stage.clientWidth || 1);
    view = [x - view[2] / 2, y - height / 2, view[2], height];
    redraw();
  });
  function begin() {
    view = first();
    redraw();
  }
  begin();
})();
