// The answer of each path over the same candidates, side by side.

import { el, glyph } from "./dom.js";
import { count, day, excerpt, score } from "./format.js";

const PATHS = {
  standard: ["Standard", "everything, most similar first"],
  timestamp: ["Timestamp", "everything, newest first"],
  gcmem: ["gcmem", "only what is still true"],
};

const SHOWN = 7;

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

function chunk(candidate, { kind, go, note = null }) {
  const { memory, relevance } = candidate;
  return el("li", { class: `hit ${kind}` },
    el("button", { type: "button", on: { click: () => go(memory.id) }, "aria-label": spoken(memory, kind) },
      glyph(kind),
      el("span", { class: "when" }, day(memory.at), el("small", { title: "relevance" }, score(relevance))),
      el("span", { class: "text" }, memory.text)),
    note);
}

const spoken = (memory, kind) => `${kind === "shadow" ? "Shadow" : "Live"}. ${day(memory.at)}. ${memory.text}`;

function proof({ shadow, witness }, go) {
  return el("div", { class: "proof" },
    el("button", { type: "button", class: "witness-link", on: { click: () => go(witness.memory.id) } },
      `← ${day(witness.memory.at)} ${excerpt(witness.memory.text, 70)}`),
    el("span", {}, `score ${score(shadow.score)} · ${shadow.oracle}`));
}

function answerLine(answer, differs) {
  const words = answer.choice ?? answer.text ?? "";
  const detail = answer.choice && answer.text && answer.text !== answer.choice ? answer.text : null;
  return [
    el("p", { class: "answer" }, words || "no answer"),
    detail ? el("p", { class: "detail" }, detail) : null,
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
    el("p", { class: "reads" }, `reads ${count(kept.length, "chunk")}`, staleRead ? `, ${staleRead} of them stale` : ""),
    ...folded(`What ${name} reads`,
      kept.map((candidate) => {
        const found = stale.get(candidate.memory.id);
        // An oracle that may only annotate leaves its shadows among the kept: the proof stands there.
        const note = found && answer.path === "gcmem" ? proof(found, go) : null;
        return chunk(candidate, { kind: found ? "shadow" : "live", go, note });
      })),
    own.length ? removed(own, go) : null);
}

function removed(shadows, go) {
  return el("div", { class: "removed" },
    el("h4", {}, `leaves out ${count(shadows.length, "shadow")}`),
    el("ol", { class: "hits", "aria-label": "What gcmem leaves out" },
      shadows.map((found) => chunk(found.candidate, { kind: "shadow", go, note: proof(found, go) }))));
}

/** The first few are what matters; the rest is one click away. */
function folded(name, rows) {
  const rest = rows.slice(SHOWN);
  return [
    el("ol", { class: "hits", "aria-label": name }, rows.slice(0, SHOWN)),
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
    ...Object.values(PATHS).map(([name, what]) =>
      el("article", { class: "path waiting", "aria-hidden": "true" },
        el("header", {}, el("h3", {}, name), el("p", {}, what)),
        el("div", { class: "ghost" }), el("div", { class: "ghost" }), el("div", { class: "ghost" }))),
  );
}
