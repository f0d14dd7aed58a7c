// One row of the timeline.

import { el, glyph } from "./dom.js";
import { clock, day, moment } from "./format.js";
import { struck } from "./sentences.js";

const NAMES = {
  current: "Current",
  shadow: "Outdated",
  partly: "Partly outdated",
  doubtful: "May be outdated",
  witness: "Current, replaces an older memory",
  unjudged: "Not judged yet",
};

function spoken(item, kind, { pairs }) {
  const parts = [`${NAMES[kind]}.`, item.pinned ? "Pinned." : "", `${moment(item.at)}.`, item.text];
  if (item.shadowed_by) {
    const { witness: id, ended } = item.shadowed_by;
    const witness = pairs.get(id);
    const [known, unknown] = kind === "doubtful"
      ? ["See", "See a newer memory."]
      : ["Replaced on", "Replaced by a newer one."];
    if (ended.length) parts.push(`Outdated in it: ${ended.join(" ")}`);
    parts.push(witness ? `${known} ${day(witness.at)}${kind === "doubtful" ? "" : " by"}: ${witness.text}` : unknown);
    parts.push("Enter goes to the newer memory.");
  }
  return parts.filter(Boolean).join(" ");
}

function tags(item, kind, { pairs, scope }) {
  const open = ["user_id", "agent_id", "run_id"].filter((field) => !scope[field]);
  const words = [item.speaker, ...open.map((field) => item[field]), item.session];
  return [
    ...[...new Set(words.filter(Boolean))].map((word) => el("span", {}, word)),
    item.pinned ? el("span", { class: "pinned" }, "pinned") : null,
    verdict(item, kind, pairs),
  ];
}

function verdict(item, kind, pairs) {
  if (item.shadowed_by) {
    const witness = pairs.get(item.shadowed_by.witness);
    const when = witness && day(witness.at);
    const words = {
      shadow: when ? `replaced ${when}` : "replaced by a newer one",
      partly: when ? `partly replaced ${when}` : "partly replaced by a newer one",
      doubtful: when ? `may be outdated: see ${when}` : "may be outdated: see a newer one",
    };
    // A pointer's way to the witness; the keyboard's is Enter on the row.
    return el("span", { class: "jump", "data-jump": item.shadowed_by.witness }, words[kind]);
  }
  if (kind === "unjudged") return el("span", { class: "unknown" }, "not judged yet");
  const ended = pairs.endedBy(item.id).length;
  return ended ? el("span", { class: "holds" }, `replaces ${ended}`) : null;
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
      "aria-label": spoken(item, kind, { pairs }),
    },
    glyph(kind),
    el("time", { datetime: item.at }, day(item.at), el("small", {}, clock(item.at))),
    el("div", { class: "body" },
      el("p", { class: "text" }, ...struck(item.text, item.shadowed_by?.ended ?? [])),
      el("p", { class: "meta" }, ...tags(item, kind, { pairs, scope }))),
  );
}
