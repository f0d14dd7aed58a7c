// Outdated sentences are struck out one by one; the rest of the memory still holds.

import { el } from "./dom.js";

/** Returns a text in pieces, with the given sentences struck out; they come in the order of the text. */
export function struck(text, sentences) {
  const pieces = [];
  let end = 0;
  for (const sentence of sentences) {
    const start = text.indexOf(sentence, end);
    if (!sentence || start < 0) continue;
    pieces.push(text.slice(end, start), el("s", {}, sentence));
    end = start + sentence.length;
  }
  return [...pieces, text.slice(end)].filter((piece) => piece !== "");
}

/** Tells whether something else is said in a text than these sentences. */
export const saysMore = (text, sentences) =>
  struck(text, sentences).some((piece) => typeof piece === "string" && /[\p{L}\p{N}]/u.test(piece));
