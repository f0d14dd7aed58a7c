// One row of the timeline.

import { el, glyph } from "./dom.js";
import { clock, day, moment, score } from "./format.js";

const NAMES = { live: "Live", shadow: "Shadow", witness: "Live, a witness" };

function spoken(item, kind, pairs) {
  const parts = [`${NAMES[kind]}.`, `${moment(item.at)}.`, item.text];
  if (item.shadow) {
    const witness = pairs.get(item.shadow.witness);
    parts.push(witness ? `Contradicted on ${day(witness.at)} by: ${witness.text}` : "Contradicted.");
    parts.push("Enter goes to the witness.");
  }
  return parts.join(" ");
}

function tags(item, pairs, scope) {
  const open = ["user_id", "agent_id", "run_id"].filter((field) => !scope[field]);
  const words = [item.speaker, ...open.map((field) => item[field]), item.session];
  return [
    ...[...new Set(words.filter(Boolean))].map((word) => el("span", {}, word)),
    verdict(item, pairs),
  ];
}

function verdict(item, pairs) {
  if (item.shadow) {
    const witness = pairs.get(item.shadow.witness);
    const when = witness ? day(witness.at) : "a newer one";
    // A pointer's way to the witness; the keyboard's is Enter on the row.
    return el("span", { class: "jump", "data-jump": item.shadow.witness },
      ["shadowed by", when, score(item.shadow.score)].filter(Boolean).join(" "));
  }
  const shadows = pairs.shadowsOf(item.id).length;
  return shadows ? el("span", { class: "holds" }, `shadows ${shadows}`) : null;
}

export function row(item, { index, pairs, scope, classes }) {
  const kind = pairs.kindOf(item);
  return el(
    "div",
    {
      id: `row-${index}`,
      class: ["row", kind, ...classes].join(" "),
      role: "option",
      "data-id": item.id,
      "data-index": index,
      "aria-selected": classes.includes("active") ? "true" : "false",
      "aria-posinset": index + 1,
      "aria-setsize": -1,
      "aria-label": spoken(item, kind, pairs),
    },
    glyph(kind),
    el("time", { datetime: item.at }, day(item.at), el("small", {}, clock(item.at))),
    el("div", { class: "body" },
      el("p", { class: "text" }, item.text),
      el("p", { class: "meta" }, ...tags(item, pairs, scope))),
  );
}
