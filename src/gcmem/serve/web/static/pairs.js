// Which memory replaces which, and which ones were judged, among those that were loaded.

/** The contract's `shadowed_by` as {witness, score, oracle}, or null where nothing replaces it. */
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
  #judged = new Set(); // by a question; it may name chunks that are not loaded yet
  #marks = new Map();

  add(chunks) {
    for (const chunk of chunks) {
      if (this.#index.has(chunk.id)) continue;
      this.#index.set(chunk.id, this.items.length);
      this.items.push({ ...chunk, shadow: null });
      this.mark(chunk.id, shadowOf(chunk));
      this.mark(chunk.id, this.#marks.get(chunk.id));
    }
  }

  /** Notes that a chunk is a shadow, or a score that was not known; returns whether that was news. */
  mark(id, shadow) {
    if (!shadow) return false;
    const item = this.get(id);
    if (!item) {
      this.#marks.set(id, shadow);
      return false;
    }
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

  /** Notes that a question compared these chunks; returns whether that was news. */
  judge(ids) {
    const news = ids.filter((id) => !this.#judged.has(id));
    for (const id of news) this.#judged.add(id);
    return news.length > 0;
  }

  /** A chunk that is not part of the timeline as loaded, with what is known of it. */
  alone(chunk) {
    return { ...chunk, shadow: this.#marks.get(chunk.id) ?? null };
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

  get unjudgedCount() {
    return this.items.filter((item) => this.kindOf(item) === "unjudged").length;
  }

  /** Only a judged memory is called current: of the others nobody knows. */
  kindOf(item) {
    if (item.shadow) return "shadow";
    if (this.#shadows.has(item.id)) return "witness";
    return item.judged || this.#judged.has(item.id) ? "current" : "unjudged";
  }
}
