// Who shadows whom, among the chunks that were loaded.

/** The contract's `shadowed_by` as {witness, score, oracle}, or null for a live chunk. */
export function shadowOf(chunk) {
  const by = chunk.shadowed_by;
  return by ? { witness: by.witness, score: by.score, oracle: by.oracle } : null;
}

/** Chunks in timeline order, found by id, with the links between shadows and witnesses. */
export class Pairs {
  items = [];
  shadowCount = 0;
  #index = new Map();
  #shadows = new Map();

  add(chunks) {
    for (const chunk of chunks) {
      if (this.#index.has(chunk.id)) continue;
      this.#index.set(chunk.id, this.items.length);
      this.items.push({ ...chunk, shadow: null });
      this.mark(chunk.id, shadowOf(chunk));
    }
  }

  /** Notes that a chunk is a shadow, or a score that was not known; returns whether that was news. */
  mark(id, shadow) {
    const item = this.get(id);
    if (!item || !shadow) return false;
    if (item.shadow) {
      const scored = typeof item.shadow.score === "number" || item.shadow.witness !== shadow.witness;
      if (!scored) item.shadow = shadow;
      return !scored;
    }
    item.shadow = shadow;
    this.shadowCount += 1;
    const known = this.#shadows.get(shadow.witness) ?? [];
    this.#shadows.set(shadow.witness, [...known, id]);
    return true;
  }

  get(id) {
    const index = this.#index.get(id);
    return index === undefined ? undefined : this.items[index];
  }

  indexOf(id) {
    return this.#index.get(id) ?? -1;
  }

  /** The ids of the loaded chunks that a chunk is the witness against. */
  shadowsOf(id) {
    return this.#shadows.get(id) ?? [];
  }

  kindOf(item) {
    if (item.shadow) return "shadow";
    return this.#shadows.has(item.id) ? "witness" : "live";
  }
}
