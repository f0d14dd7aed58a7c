// What is known about the memories that were loaded, and which of them replaces which.

/** Chunks in timeline order, found by id, with the links between shadows and witnesses. */
export class Pairs {
  items = [];
  #index = new Map();
  #ended = new Map(); // by witness: what it ended
  #doubted = new Map(); // by witness: what it may have ended

  add(chunks) {
    for (const chunk of chunks) {
      if (this.#index.has(chunk.id)) continue;
      this.#index.set(chunk.id, this.items.length);
      this.items.push(chunk);
      if (!chunk.shadowed_by) continue;
      const links = chunk.outcome === "doubtful" ? this.#doubted : this.#ended;
      const { witness } = chunk.shadowed_by;
      links.set(witness, [...(links.get(witness) ?? []), chunk.id]);
    }
  }

  get(id) {
    const index = this.#index.get(id);
    return index === undefined ? undefined : this.items[index];
  }

  indexOf(id) {
    return this.#index.get(id) ?? -1;
  }

  /** The ids of the loaded chunks that a chunk ended. */
  endedBy(id) {
    return this.#ended.get(id) ?? [];
  }

  /** The ids of the loaded chunks that a chunk may have ended. */
  doubtedBy(id) {
    return this.#doubted.get(id) ?? [];
  }

  /** How many loaded chunks are of a kind. */
  count(kind) {
    return this.items.filter((item) => this.kindOf(item) === kind).length;
  }

  /**
   * "shadow" (outdated), "partly" (some sentences are), "doubtful", "witness" (current, and ended
   * another one), "current", "unjudged", or "unknown" for a chunk that did not come from the timeline.
   */
  kindOf(item) {
    if (item.outcome === undefined) return "unknown";
    if (item.outcome === "doubtful") return "doubtful";
    if (item.outcome === "outdated") return item.shadowed_by.ended.length ? "partly" : "shadow";
    // Only a judged memory is called current: of the others nobody knows.
    if (!item.judged) return "unjudged";
    return this.#ended.has(item.id) ? "witness" : "current";
  }
}
