// The answer of each path over the same candidates, side by side.

import { el, glyph } from "./dom.js";
import { count, day, excerpt, score } from "./format.js";

// gcmem stands first: it is what a person asks for, the others are there to compare.
const PATHS = {
  gcmem: ["gcmem", "only what is still true"],
  standard: ["Plain search", "all matches, most similar first"],
  timestamp: ["Newest first", "all matches, by date"],
};

const SHOWN = 7;
const LONG_ANSWER = 60; // characters; longer ones are set smaller and cut after some lines
const REMOVED_SHOWN = 4; // as many as fit above the fold of a small laptop

const entry = ({ candidate, witness, conflict }) => ({
  id: candidate.memory.id,
  shadow: { witness: witness.memory.id, score: conflict.score, oracle: conflict.oracle },
  candidate,
  witness,
});

/** The shadows that the gcmem path found, as {id, shadow, candidate, witness}. */
export function shadowsOf(reply) {
  const gcmem = reply.answers.find((answer) => answer.path === "gcmem");
  return (gcmem?.shadows ?? []).map(entry);
}

function hit(candidate, { kind, go, figure, note = null }) {
  const { memory } = candidate;
  return el("li", { class: `hit ${kind}` },
    el("button", { type: "button", on: { click: () => go(memory.id) }, "aria-label": spoken(memory, kind) },
      glyph(kind),
      el("span", { class: "when" }, day(memory.at), el("small", {}, figure)),
      el("span", { class: "text" }, memory.text)),
    note);
}

const spoken = (memory, kind) => `${kind === "shadow" ? "Outdated" : "Current"}. ${day(memory.at)}. ${memory.text}`;

function proof({ witness }, go) {
  const { id, at, text } = witness.memory;
  const words = `Replaced ${day(at)} by: ${excerpt(text, 200)}`;
  return el("button", { type: "button", class: "witness-link", title: words, "aria-label": words, on: { click: () => go(id) } },
    `→ ${excerpt(text, 120)}`);
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

function column(answer, { byId, shadows, go, reference }) {
  const [name, what] = PATHS[answer.path] ?? [answer.path, ""];
  const stale = new Map(shadows.map((found) => [found.id, found]));
  const kept = answer.kept.map((id) => byId.get(id)).filter(Boolean);
  const staleRead = kept.filter((candidate) => stale.has(candidate.memory.id)).length;
  const own = answer.path === "gcmem" ? shadows.filter(({ id }) => !answer.kept.includes(id)) : [];
  const differs = answer.path !== "gcmem" && reference && (answer.choice ?? answer.text) !== reference;
  return el("article", { class: `path ${answer.path}`, "data-path": answer.path, "aria-label": name },
    el("header", {}, el("h3", {}, name), el("p", {}, what)),
    el("div", { class: "said" }, ...answerLine(answer, differs).filter(Boolean)),
    own.length ? removed(own, go) : null,
    el("p", { class: "reads" }, `Read ${count(kept.length, "memory", "memories")}`, staleRead ? `, ${staleRead} outdated` : ""),
    ...folded(`What ${name} read`, SHOWN,
      kept.map((candidate) => {
        const found = stale.get(candidate.memory.id);
        // A model that may only mark leaves what it finds among the kept: the proof stands there.
        const note = found && answer.path === "gcmem" ? proof(found, go) : null;
        return hit(candidate, { kind: found ? "shadow" : "current", go, note, figure: `match ${score(candidate.relevance)}` });
      })));
}

function removed(shadows, go) {
  return el("div", { class: "removed" },
    el("h4", {}, `Left out: ${count(shadows.length, "outdated memory", "outdated memories")}`),
    ...folded("What gcmem left out", REMOVED_SHOWN,
      shadows.map((found) =>
        hit(found.candidate, { kind: "shadow", go, note: proof(found, go), figure: `conflict ${score(found.shadow.score)}` }))));
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

export function showPaths(host, reply, { go }) {
  const byId = new Map(reply.candidates.map((candidate) => [candidate.memory.id, candidate]));
  const shadows = shadowsOf(reply);
  const gcmem = reply.answers.find((answer) => answer.path === "gcmem");
  const reference = gcmem ? (gcmem.choice ?? gcmem.text) : null;
  host.replaceChildren(
    ...reply.answers.map((answer) => column(answer, { byId, shadows, go, reference })),
  );
}

export function showWaiting(host) {
  host.replaceChildren(
    ...Object.entries(PATHS).map(([path, [name, what]]) =>
      el("article", { class: `path waiting ${path}`, "aria-hidden": "true" },
        el("header", {}, el("h3", {}, name), el("p", {}, what)),
        el("div", { class: "ghost" }), el("div", { class: "ghost" }), el("div", { class: "ghost" }))),
  );
}

/** What a screen reader says when the answers are there. */
export const spokenAnswers = (reply) =>
  reply.answers.map(({ path, choice, text }) => `${PATHS[path]?.[0] ?? path}: ${choice ?? text}`).join(". ");
