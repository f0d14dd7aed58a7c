// The conflict model: how well it did when it was measured, and what it may do.

import { el } from "./dom.js";

const percent = (share) => `${Math.round(share * 100)} %`;

const CLASSES = {
  optimal: (rule) => [
    "very reliable",
    `In its test it found at least ${percent(rule.optimal_from)} of the contradictions, and at least ${percent(rule.optimal_from)} of what it found was right.`,
  ],
  marginal: (rule) => [
    "fairly reliable",
    `In its test it found more than ${percent(rule.unfit_at_or_below)} of the contradictions, and more than ${percent(rule.unfit_at_or_below)} of what it found was right; it did not reach ${percent(rule.optimal_from)} in both. Some outdated memories will stay.`,
  ],
  unfit: (rule) => [
    "not reliable",
    `In its test it found only ${percent(rule.unfit_at_or_below)} of the contradictions or fewer, or only ${percent(rule.unfit_at_or_below)} of what it found was right or less.`,
  ],
};
const UNKNOWN = () => ["never measured", "Measure it with: gcmem qualify"];

export function showOracle(host, reply) {
  const [quality, meaning] = (CLASSES[reply.class] ?? UNKNOWN)(reply.rule);
  const duty = reply.may_remove ? "removes outdated memories" : "marks outdated memories, removes none";
  host.replaceChildren(
    el("span", {}, "Conflict model ", el("span", { class: "oracle-id" }, reply.id)),
    el("span", { class: `class ${reply.class ?? "unmeasured"}`, title: meaning }, quality),
    el("span", {}, duty),
    el("span", { class: "sr" }, meaning),
  );
}
