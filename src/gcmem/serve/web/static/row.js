// One row of the timeline.

import { el, glyph } from "./dom.js";
import { clock, day, moment } from "./format.js";

const NAMES = {
  current: "Current",
  shadow: "Outdated",
  witness: "Current, replaces an older memory",
  unjudged: "Not judged yet",
};

function spoken(item, kind, pairs) {
  const parts = [`${NAMES[kind]}.`, `${moment(item.at)}.`, item.text];
  if (item.shadow) {
    const witness = pairs.get(item.shadow.witness);
    parts.push(witness ? `Replaced on ${day(witness.at)} by: ${witness.text}` : "Replaced by a newer one.");
    parts.push("Enter goes to the newer memory.");
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
    // A pointer's way to the witness; the keyboard's is Enter on the row.
    return el("span", { class: "jump", "data-jump": item.shadow.witness },
      witness ? `replaced ${day(witness.at)}` : "replaced by a newer one");
  }
  const shadows = pairs.shadowsOf(item.id).length;
  if (shadows) return el("span", { class: "holds" }, `replaces ${shadows}`);
  return pairs.kindOf(item) === "unjudged" ? el("span", { class: "unknown" }, "not judged yet") : null;
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
