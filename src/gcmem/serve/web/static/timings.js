// Where the time of a question went: one bar, one part a stage.

import { el } from "./dom.js";
import { milliseconds } from "./format.js";

const STAGES = ["encode", "retrieve", "conflict", "dominance", "read"];
const NAMES = {
  encode: "encode",
  retrieve: "search",
  conflict: "find conflicts",
  dominance: "remove",
  read: "answer",
};

export function stages(timings) {
  const known = Object.entries(timings ?? {})
    .map(([name, spent]) => [name.replace(/_ms$/, ""), spent])
    .filter(([name, spent]) => name !== "total" && typeof spent === "number");
  const place = ([name]) => (STAGES.includes(name) ? STAGES.indexOf(name) : STAGES.length);
  return known.sort((a, b) => place(a) - place(b)).map(([name, spent]) => [NAMES[name] ?? name, spent]);
}

export function showTimings(host, timings) {
  const parts = stages(timings);
  const total = parts.reduce((sum, [, spent]) => sum + spent, 0);
  host.hidden = !parts.length;
  const words = parts.map(([name, spent]) => `${name} ${milliseconds(spent)}`);
  const bar = el("div", { class: "stack", role: "img", "aria-label": `${milliseconds(total)}: ${words.join(", ")}` });
  parts.forEach(([name, spent], index) => {
    const part = el("span", { class: `part p${index % 5}`, title: `${name} ${milliseconds(spent)}` });
    part.style.flexGrow = String(spent);
    bar.append(part);
  });
  host.replaceChildren(
    bar,
    el("ul", { "aria-hidden": "true" },
      parts.map(([name, spent], index) =>
        el("li", {}, el("span", { class: `swatch p${index % 5}` }), `${name} ${milliseconds(spent)}`)),
      el("li", { class: "total" }, `total ${milliseconds(total)}`)),
  );
}
