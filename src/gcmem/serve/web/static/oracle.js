// The oracle, and what it may do by its qualification.

import { el } from "./dom.js";

const CLASSES = {
  optimal: ["●", "Sees nearly every contradiction, and is hardly ever wrong."],
  marginal: ["◐", "Sees most contradictions; some stale memories will stay."],
  unfit: ["○", "Was measured and found unfit."],
  unqualified: ["○", "Was never measured: run gcmem qualify."],
};

export function showOracle(host, reply) {
  const kind = reply.class ?? "unqualified";
  const [mark, meaning] = CLASSES[kind] ?? ["?", ""];
  const duty = reply.may_remove ? "removes shadows" : "only annotates";
  host.replaceChildren(
    el("span", {}, "oracle "),
    el("span", { class: "oracle-id" }, reply.id),
    el("span", { class: `class ${kind}`, title: meaning }, `${mark} ${kind}, ${duty}`),
    el("span", { class: "sr" }, meaning),
  );
}
