// The selected memory in full: what replaced it or what it replaced, who says so, and a person's word.

import { el, glyph } from "./dom.js";
import { day, excerpt, moment, score } from "./format.js";
import { struck } from "./sentences.js";

const MOST_LINKS = 3;
const JUDGES = { model: "the model", "language model": "the language model" };
const LABELS = {
  shadow: "Replaced",
  partly: "Partly replaced",
  doubtful: "May be outdated: see",
};

const UNDO = "Take this word back, so that the models decide again";

function fact(name, value) {
  return value === null || value === undefined || value === "" ? [] : [el("dt", {}, name), el("dd", {}, value)];
}

function link(label, item, go) {
  return el("button", { type: "button", class: "quote", on: { click: () => go(item.id) } },
    el("span", { class: "when" }, item.at ? `${label} ${day(item.at)}` : label),
    el("span", {}, excerpt(item.text)));
}

const note = (...words) => el("p", { class: "proof" }, ...words);

/** Who judged, how sure, and why. A person is always sure, so a score would say nothing. */
function proof({ by, oracle, score: sure, reason }) {
  const known = score(sure);
  const who = by === "person" ? `Said by ${oracle}` : `Judged by ${JUDGES[by] ?? "the model"} ${oracle}`;
  return [
    note(who, by !== "person" && known ? `, score ${known}` : "", by ? "" : ", for this question only"),
    reason ? note(`Why: ${reason}`) : null,
  ];
}

const button = (label, title, click) =>
  el("button", { type: "button", title, "data-act": label, on: { click } }, label);

/** The buttons for a person's word about two memories. */
function wordButtons(item, against, context) {
  const { pairs, words, say } = context;
  const newer = pairs.get(against.witness);
  if (item.rejected.includes(against.witness)) return null; // its Undo stands further down
  if (!words.maySay(item, ...(newer ? [newer] : []))) return null;
  const offer = (label, title, word) => button(label, title, () => say(word, item.id, against.witness));
  const isSaid = against.by === "person";
  return el("div", { class: "words" },
    isSaid ? null : offer("Yes, outdated", "The newer memory replaced this one", "confirm"),
    offer("No, still true", "The newer memory did not replace this one", "reject"),
    isSaid ? offer("Undo", UNDO, "undo") : null);
}

/** The same for pairs of which somebody said that both are true. */
function rejections(item, { pairs, words, go, say }) {
  return item.rejected.flatMap((id) => [
    link("Said to be still true, despite", named(id, pairs), go),
    words.maySay(item, ...[pairs.get(id)].filter(Boolean))
      ? el("div", { class: "words" }, button("Undo", UNDO, () => say("undo", item.id, id)))
      : null,
  ]);
}

const named = (id, pairs) => pairs.get(id) ?? { id, text: "not in this view" };

function pinButton(item, { words, pin }) {
  if (!words.mayPin()) return null;
  return item.pinned
    ? button("Unpin", "Newer memories may replace this one again", () => pin(item.id, false))
    : button("Pin", "Never leave this memory out, whatever contradicts it", () => pin(item.id, true));
}

/** What speaks against a memory: what the timeline says, and what the last question found. */
function doubts(item, kind, context) {
  const { pairs, go, asked } = context;
  const known = item.shadowed_by;
  const parts = [];
  if (known) parts.push([LABELS[kind], known]);
  if (asked && asked.witness !== known?.witness) {
    parts.push([asked.isRead ? "Outdated for this question: see" : "Left out of this answer: see", asked]);
  }
  return parts.flatMap(([label, against]) => [
    link(label, named(against.witness, pairs), go),
    ...proof(against),
    wordButtons(item, against, context),
  ]);
}

/** What else there is to say about its state. */
function state(item, kind) {
  if (item.pinned) return note("Pinned: never left out.");
  if (kind === "unjudged") {
    return note("Not judged yet: nobody knows whether this is still true. The server judges new memories in the background; gcmem judge does it now.");
  }
  return kind === "unknown" ? note("Too far down the timeline to show its state here. Scroll down to it.") : null;
}

function replaced(label, ids, { pairs, go }) {
  const more = ids.length - MOST_LINKS;
  return [
    ...ids.slice(0, MOST_LINKS).map((id) => link(label, pairs.get(id), go)),
    more > 0 ? note(`and ${more} more`) : null,
  ];
}

/**
 * Shows a memory, or nothing. `asked` is what the last question found against it; `say` and `pin`
 * send a person's word.
 */
export function inspect(host, item, context) {
  host.hidden = !item;
  if (!item) {
    host.replaceChildren();
    return;
  }
  const { pairs } = context;
  const kind = pairs.kindOf(item);
  const metadata = Object.keys(item.metadata ?? {}).length ? JSON.stringify(item.metadata) : "";
  host.replaceChildren(
    el("div", { class: "head" },
      el("p", { class: `full ${kind}` }, glyph(kind), el("span", {}, ...struck(item.text, item.shadowed_by?.ended ?? []))),
      pinButton(item, context)),
    ...[
      ...doubts(item, kind, context),
      ...rejections(item, context),
      state(item, kind),
      ...replaced("Replaces", pairs.endedBy(item.id), context),
      ...replaced("May replace", pairs.doubtedBy(item.id), context),
    ].filter(Boolean),
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
