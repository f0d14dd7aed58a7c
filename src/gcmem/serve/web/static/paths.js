// The answer of each path over the same candidates, side by side.

import { el, glyph } from "./dom.js";
import { count, day, excerpt, score } from "./format.js";
import { saysMore, struck } from "./sentences.js";

// gcmem stands first: it is what a person asks for, the others are there to compare.
const PATHS = {
  gcmem: ["gcmem", ""], // what it reads is up to the question
  standard: ["Plain search", "all matches, most relevant first"],
  timestamp: ["Newest first", "all matches, by date"],
};

const VIEWS = {
  current: "only what is still true",
  past: "about the past: outdated ones too",
  changes: "about a change: outdated ones too, oldest first",
};

const SHOWN = 7;
const LONG_ANSWER = 60; // characters; longer ones are set smaller and cut after some lines
const REMOVED_SHOWN = 4; // as many as fit above the fold of a small laptop
const NAMES = {
  shadow: "Outdated",
  partly: "Partly outdated",
  doubtful: "May be outdated",
  unjudged: "Not judged yet",
  current: "Current",
};

/**
 * What the gcmem path found outdated, by memory: the newer memory, the outdated sentences (none if all
 * of it is), whether it was left out as a whole, and whether all of it was read nevertheless. The rest
 * of it can be true all the same.
 */
export function shadowsOf(reply) {
  const found = new Map();
  const { shadows = [], kept = [] } = gcmemOf(reply) ?? {};
  const cut = new Set(reply.candidates.filter(({ struck }) => struck.length).map(({ memory }) => memory.id));
  for (const { candidate: { memory }, witness, conflict, claim, whole } of shadows) {
    const ended = [...(found.get(memory.id)?.ended ?? []), ...(claim ? [claim] : [])];
    found.set(memory.id, {
      memory,
      witness: witness.memory,
      conflict,
      isWhole: whole,
      isRead: kept.includes(memory.id) && !cut.has(memory.id),
      ended,
      kind: ended.length && saysMore(memory.text, ended) ? "partly" : "shadow",
    });
  }
  return found;
}

const gcmemOf = (reply) => reply.answers.find((answer) => answer.path === "gcmem");

/** What is known about candidates: what the question found out, and what the timeline says. */
class Findings {
  constructor(reply, pairs) {
    const { doubtful = [], unjudged = [] } = gcmemOf(reply) ?? {};
    this.pairs = pairs;
    this.shadows = shadowsOf(reply);
    this.doubts = new Map(doubtful.map(({ candidate, witness }) => [candidate.memory.id, witness.memory]));
    this.unjudged = new Set(unjudged);
  }

  kindOf({ id }) {
    const shadow = this.shadows.get(id);
    if (shadow) return shadow.kind;
    const item = this.pairs.get(id);
    const kind = item && this.pairs.kindOf(item);
    if (this.doubts.has(id) || kind === "doubtful") return "doubtful";
    return this.unjudged.has(id) || kind === "unjudged" ? "unjudged" : "current";
  }

  /** The memory that replaced one, or may have. */
  witnessOf({ id }) {
    const known = this.shadows.get(id)?.witness ?? this.doubts.get(id);
    return known ?? this.pairs.get(this.pairs.get(id)?.shadowed_by?.witness);
  }
}

function hit(memory, { kind, go, figure, text = [memory.text], note = null }) {
  return el("li", { class: `hit ${kind}` },
    el("button", { type: "button", on: { click: () => go(memory.id) }, "aria-label": `${NAMES[kind]}. ${day(memory.at)}. ${memory.text}` },
      glyph(kind),
      el("span", { class: "when" }, day(memory.at), el("small", {}, figure)),
      el("span", { class: "text" }, ...text)),
    note);
}

function pointer({ id, at, text }, { kind, go }) {
  const isDoubt = kind === "doubtful";
  const words = `${isDoubt ? `May be outdated: see ${day(at)}` : `Replaced ${day(at)} by`}: ${excerpt(text, 200)}`;
  return el("button", { type: "button", class: `witness-link ${kind}`, title: words, "aria-label": words, on: { click: () => go(id) } },
    `${isDoubt ? "may be outdated: see " : "→ "}${excerpt(text, 120)}`);
}

function answerLine(answer, differs) {
  const words = answer.choice ?? answer.text ?? "";
  const detail = answer.choice && answer.text && answer.text !== answer.choice ? answer.text : null;
  return [
    el("p", { class: words.length > LONG_ANSWER ? "answer long" : "answer", title: words }, words || "no answer"),
    detail ? el("p", { class: "detail", title: detail }, detail) : null,
    differs ? el("p", { class: "differs" }, "differs from gcmem") : null,
  ];
}

/** A memory that a path read, with its state. */
function read(candidate, { findings, go, isGcmem }) {
  const { memory } = candidate;
  const kind = findings.kindOf(memory);
  const figure = `${kind === "unjudged" ? "not judged yet, " : ""}match ${score(candidate.relevance)}`;
  const shadow = findings.shadows.get(memory.id);
  if (isGcmem && candidate.struck.length) {
    // It read the rest of this memory, which still holds.
    return { kind: "current", node: hit(memory, { kind: "current", go, figure }) };
  }
  const witness = findings.witnessOf(memory);
  return {
    kind,
    node: hit(shadow?.memory ?? memory, {
      kind,
      go,
      figure,
      text: shadow ? struck(shadow.memory.text, shadow.ended) : undefined,
      // A model that may only mark leaves what it finds among the kept: the proof stands there.
      note: isGcmem && witness && kind !== "unjudged" ? pointer(witness, { kind, go }) : null,
    }),
  };
}

function readCounts(kinds) {
  const words = { shadow: "outdated", partly: "partly outdated", doubtful: "doubtful", unjudged: "not judged yet" };
  const number = (kind) => kinds.filter((other) => other === kind).length;
  return [
    `Read ${count(kinds.length, "memory", "memories")}`,
    ...Object.entries(words).filter(([kind]) => number(kind)).map(([kind, word]) => `${number(kind)} ${word}`),
  ].join(", ");
}

function column(answer, { byId, findings, go, reference }) {
  const isGcmem = answer.path === "gcmem";
  const [name, order] = PATHS[answer.path] ?? [answer.path, ""];
  const what = isGcmem ? VIEWS[answer.view] : order;
  const kept = answer.kept.map((id) => byId.get(id)).filter(Boolean);
  const hits = kept.map((candidate) => read(candidate, { findings, go, isGcmem }));
  const differs = !isGcmem && reference && (answer.choice ?? answer.text) !== reference;
  return el("article", { class: `path ${answer.path}`, "data-path": answer.path, "aria-label": name },
    el("header", {}, el("h3", {}, name), el("p", {}, what)),
    el("div", { class: "said" }, ...answerLine(answer, differs).filter(Boolean)),
    // In the other views nothing is left out for being outdated.
    isGcmem && answer.view === "current" ? removed(findings, { go }) : null,
    el("p", { class: "reads" }, readCounts(hits.map(({ kind }) => kind))),
    ...folded(`What ${name} read`, SHOWN, hits.map(({ node }) => node)));
}

/** What gcmem did not read: whole memories, and sentences of memories of which it read the rest. */
function removed(findings, { go }) {
  const gone = [...findings.shadows.values()].filter(({ isRead }) => !isRead);
  if (!gone.length) return null;
  const whole = (kind) => gone.filter((shadow) => shadow.isWhole && shadow.kind === kind).length;
  const sentences = gone.filter(({ isWhole }) => !isWhole).flatMap(({ ended }) => ended).length;
  const parts = [
    whole("shadow") && count(whole("shadow"), "outdated memory", "outdated memories"),
    whole("partly") && count(whole("partly"), "partly outdated one", "partly outdated ones"),
    sentences && count(sentences, "outdated sentence"),
  ];
  return el("div", { class: "removed" },
    el("h4", {}, `Left out: ${parts.filter(Boolean).join(", ")}`),
    ...folded("What gcmem left out", REMOVED_SHOWN,
      gone.map(({ memory, witness, conflict, ended, isWhole, kind }) =>
        hit(memory, {
          kind: isWhole ? kind : "shadow",
          go,
          text: isWhole ? struck(memory.text, ended) : [ended.join(" … ")],
          note: pointer(witness, { kind: "shadow", go }),
          figure: conflict.by === "person" ? `said by ${conflict.oracle}` : `conflict ${score(conflict.score)}`,
        }))));
}

/** The first few are what matters; the rest is one click away. */
function folded(name, shown, rows) {
  const rest = rows.slice(shown);
  return [
    el("ol", { class: "hits", "aria-label": name }, rows.slice(0, shown)),
    rest.length
      ? el("details", {},
          el("summary", {}, `and ${rest.length} more`),
          el("ol", { class: "hits", "aria-label": `${name}, the rest` }, rest))
      : null,
  ];
}

export function showPaths(host, reply, { pairs, go }) {
  const byId = new Map(reply.candidates.map((candidate) => [candidate.memory.id, candidate]));
  const findings = new Findings(reply, pairs);
  const gcmem = gcmemOf(reply);
  const reference = gcmem ? (gcmem.choice ?? gcmem.text) : null;
  host.replaceChildren(
    ...reply.answers.map((answer) => column(answer, { byId, findings, go, reference })),
  );
}

export function showWaiting(host) {
  host.replaceChildren(
    ...Object.entries(PATHS).map(([path, [name, what]]) =>
      el("article", { class: `path waiting ${path}`, "aria-hidden": "true" },
        el("header", {}, el("h3", {}, name), el("p", {}, what || "…")),
        el("div", { class: "ghost" }), el("div", { class: "ghost" }), el("div", { class: "ghost" }))),
  );
}

/** What a screen reader says when the answers are there. */
export const spokenAnswers = (reply) =>
  reply.answers.map(({ path, choice, text }) => `${PATHS[path]?.[0] ?? path}: ${choice ?? text}`).join(". ");
