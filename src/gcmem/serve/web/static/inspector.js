// The selected memory in full, with what it contradicts or what contradicts it.

import { el, glyph } from "./dom.js";
import { day, excerpt, moment, score } from "./format.js";

const MOST_SHADOWS = 3;

function fact(name, value) {
  return value === null || value === undefined || value === "" ? [] : [el("dt", {}, name), el("dd", {}, value)];
}

function link(label, item, go) {
  return el("button", { type: "button", class: "quote", on: { click: () => go(item.id) } },
    el("span", { class: "when" }, `${label} ${day(item.at)}`),
    el("span", {}, excerpt(item.text)));
}

function proof(shadow) {
  const known = score(shadow.score);
  return [known && `conflict score ${known}`, `found by ${shadow.oracle}`].filter(Boolean).join(", ");
}

function relations(item, pairs, go) {
  if (item.shadow) {
    const known = pairs.get(item.shadow.witness) ?? { id: item.shadow.witness, text: "not in this view" };
    return [
      link("Replaced", known, go),
      el("p", { class: "proof" }, proof(item.shadow)),
    ];
  }
  if (pairs.kindOf(item) === "unjudged") {
    return [el("p", { class: "proof" }, "Not judged yet: nobody knows whether this is still true. Ask about it, or run gcmem link.")];
  }
  const shadows = pairs.shadowsOf(item.id);
  const more = shadows.length - MOST_SHADOWS;
  return [
    ...shadows.slice(0, MOST_SHADOWS).map((id) => link("Replaces", pairs.get(id), go)),
    more > 0 ? el("p", { class: "proof" }, `and ${more} more`) : null,
  ];
}

export function inspect(host, item, { pairs, go }) {
  host.hidden = !item;
  if (!item) {
    host.replaceChildren();
    return;
  }
  const kind = pairs.kindOf(item);
  const metadata = Object.keys(item.metadata ?? {}).length ? JSON.stringify(item.metadata) : "";
  host.replaceChildren(
    el("p", { class: `full ${kind}` }, glyph(kind), el("span", {}, item.text)),
    ...relations(item, pairs, go).filter(Boolean),
    el("dl", {},
      ...fact("happened", moment(item.at)),
      ...fact("recorded", moment(item.recorded_at)),
      ...fact("speaker", item.speaker),
      ...fact("user", item.user_id),
      ...fact("agent", item.agent_id),
      ...fact("run", item.run_id),
      ...fact("session", item.session),
      ...fact("metadata", metadata),
      ...fact("id", item.id)),
  );
}
