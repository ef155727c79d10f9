// Lines over time.

import { s } from "./dom.js";

/** A line without axes, for beside a figure. */
export class Spark {
  #line = s("path", { class: "spark" });
  #area = s("path", { class: "spark-area" });
  element = s("svg", { viewBox: "0 0 100 30", preserveAspectRatio: "none", "aria-hidden": "true" }, this.#area, this.#line);

  update(values) {
    if (values.length < 2) return;
    const most = Math.max(...values, 1e-9);
    const points = values.map((one, k) => `${((100 * k) / (values.length - 1)).toFixed(2)} ${(28 - (26 * one) / most).toFixed(2)}`);
    this.#line.setAttribute("d", `M${points.join("L")}`);
    this.#area.setAttribute("d", `M0 30L${points.join("L")}L100 30Z`);
  }
}

/** A line with its scale, which reaches to `least` at least; values are numbers over seconds. */
export function chart(points, label, tell, least) {
  const [width, height, left, bottom] = [800, 170, 46, 20];
  const most = Math.max(...points.map((one) => one[1]), least);
  const [first, last] = [points[0]?.[0] ?? 0, points.at(-1)?.[0] ?? 1];
  const x = (value) => left + ((value - first) / (last - first || 1)) * (width - left - 6);
  const y = (value) => height - bottom - (value / most) * (height - bottom - 12);
  const path = points.map(([a, b]) => `${x(a).toFixed(1)} ${y(b).toFixed(1)}`).join("L");
  return s("svg", { class: "chart", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `${label}: now ${tell(points.at(-1)?.[1] ?? 0)}` },
    [0, 0.5, 1].map((share) => [
      s("line", { class: "grid-line", x1: left, x2: width, y1: y(share * most), y2: y(share * most) }),
      s("text", { x: left - 6, y: y(share * most) + 4, "text-anchor": "end" }, tell(share * most)),
    ]),
    s("text", { x: left, y: height - 4 }, `${Math.round(last - first)} s ago`), s("text", { x: width - 4, y: height - 4, "text-anchor": "end" }, "now"),
    points.length > 1 && [s("path", { class: "spark-area", d: `M${x(first)} ${y(0)}L${path}L${x(last)} ${y(0)}Z` }), s("path", { class: "spark", d: `M${path}` })]);
}
