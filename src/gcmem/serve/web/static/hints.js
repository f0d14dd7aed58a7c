// What an empty view says: what to do first.

import { el } from "./dom.js";

export function noMemories({ scope, asOf }) {
  if (asOf) {
    return el("div", { class: "empty" },
      el("h3", {}, "Nothing had happened yet"),
      el("p", {}, "No memory of this scope is that old. Move the slider to the right, or press Now."));
  }
  const user = scope.user_id || "ana";
  const scoped = Object.values(scope).some(Boolean);
  const body = JSON.stringify({ messages: "I live in Porto.", user_id: user }).replaceAll("'", "’");
  return el("div", { class: "empty" },
    el("h3", {}, scoped ? "Nothing is remembered in this scope" : "Nothing is remembered yet"),
    scoped
      ? el("p", {}, "Check the spelling of the fields above; an empty field matches everything. Or add the first memory:")
      : el("p", {}, "Add the first memory:"),
    el("pre", {}, el("code", {}, `curl ${new URL("v1/memories", document.baseURI).href.split("#")[0]} \\\n  -H 'Content-Type: application/json' \\\n  -d '${body}'`)),
    el("p", {}, "Then add one that replaces it, “I moved to Lyon.”, and ask where that user lives."));
}

export function noQuestion() {
  const step = (...parts) => el("li", {}, ...parts);
  return el("div", { class: "empty wide" },
    el("h3", {}, "Ask something whose answer has changed"),
    el("ol", {},
      step("Say whose memory it is in the fields above, or leave them empty for all of it."),
      step("Type a question. With options, such as ", el("q", {}, "Porto, Lyon"), ", each column has to choose one."),
      step("Compare. gcmem leaves out what a newer memory replaced, and shows it. The other two columns read everything.")),
    el("p", {}, "The slider asks the same about another day: nothing was deleted."));
}

export function noCandidates() {
  return el("div", { class: "empty wide" },
    el("h3", {}, "No memory to answer from"),
    el("p", {}, "Nothing in this scope matches the question. Widen the scope, or move the slider to a later day."));
}
