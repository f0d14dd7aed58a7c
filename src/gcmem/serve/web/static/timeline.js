// The timeline: rows of one height, of which only those in sight are in the document.

import { history } from "./api.js";
import { el } from "./dom.js";
import { count } from "./format.js";
import { Pairs } from "./pairs.js";
import { row } from "./row.js";

const PAGE = 100;
const MOST_AT_ONCE = 1000; // what the server gives at most in one page
const OVERSCAN = 8;
const AHEAD = 60; // rows before the end at which the next page is asked for
const TO_GLYPH = 15; // pixels from the top of a row to the middle of its mark
const MOST_LINKS = 40;
const PAGES_TO_A_JUMP = 5;

export class Timeline {
  /** `on` has loaded(timeline), selected(item | null), failed(error), empty() → Node. */
  constructor(host, on) {
    this.host = host;
    this.on = on;
    this.canvas = el("div", { class: "canvas", role: "presentation" });
    this.pairs = new Pairs();
    this.scope = {};
    this.active = -1;
    this.pair = null;
    this.rows = new Map();
    host.addEventListener("scroll", () => this.#schedule(), { passive: true });
    host.addEventListener("keydown", (event) => this.#key(event));
    host.addEventListener("click", (event) => this.#click(event));
    new ResizeObserver(() => this.#schedule()).observe(host);
  }

  #abort = new AbortController();
  #scheduled = false;
  #loading = null;
  #next = null;
  #ended = false;
  #failed = false;

  /** Starts anew with another scope or another day. */
  async open({ scope, asOf }) {
    this.#abort.abort();
    this.#abort = new AbortController();
    Object.assign(this, { scope, asOf, pairs: new Pairs(), active: -1, pair: null });
    this.#next = null;
    this.#ended = false;
    this.#failed = false;
    this.#loading = null;
    this.host.setAttribute("aria-busy", "true");
    this.host.replaceChildren(...Array.from({ length: 6 }, () => el("div", { class: "row ghost" })));
    this.on.selected(null);
    await this.more();
  }

  /** Loads the next page, once however often it is asked for. */
  more() {
    if (this.#ended) return Promise.resolve();
    this.#loading ??= this.#load(this.#abort.signal);
    return this.#loading;
  }

  async #load(signal) {
    try {
      const page = await this.#read({ before: this.#next, limit: PAGE, signal });
      if (signal.aborted) return;
      this.pairs.add(page.memories);
      this.#goOnAfter(page);
      this.#show();
    } catch (error) {
      if (signal.aborted) return;
      this.#loading = null;
      this.#failed = true; // a failing server is asked again by a person, not by every scroll
      this.#schedule();
      if (!this.pairs.items.length) this.host.replaceChildren();
      this.on.failed(error);
    } finally {
      if (!signal.aborted) this.host.removeAttribute("aria-busy");
    }
  }

  #read({ before, limit, signal }) {
    const { scope, asOf } = this;
    return history({ scope, asOf, before, limit, signal });
  }

  #goOnAfter(page) {
    this.#next = page.next;
    this.#ended = page.next === null || page.next === undefined;
    this.#loading = null;
  }

  /** Reads again what is loaded, since its states may have changed; keeps the place and the selection. */
  async reload() {
    const { signal } = this.#abort;
    await this.#loading;
    if (signal.aborted || !this.pairs.items.length) return;
    this.#loading = this.#loadAgain(signal);
    await this.#loading;
  }

  async #loadAgain(signal) {
    const { items } = this.pairs;
    const pairs = new Pairs();
    let page = { next: null };
    try {
      do {
        const limit = Math.min(MOST_AT_ONCE, items.length - pairs.items.length);
        page = await this.#read({ before: page.next, limit, signal });
        if (signal.aborted) return;
        pairs.add(page.memories);
      } while (page.next && pairs.items.length < items.length);
    } catch (error) {
      if (signal.aborted) return;
      this.#loading = null;
      this.on.failed(error);
      return;
    }
    this.#goOnAfter(page);
    const selected = items[this.active]?.id;
    const wasInView = this.#isInView(this.active);
    this.pairs = pairs;
    this.active = pairs.indexOf(selected);
    if (this.active >= 0) {
      this.on.selected(pairs.items[this.active]);
      if (wasInView) this.#bringIntoView(this.active);
    }
    this.#show();
  }

  #show() {
    const { items } = this.pairs;
    if (!items.length) {
      this.host.replaceChildren(this.on.empty());
    } else {
      if (this.canvas.parentNode !== this.host) {
        this.host.replaceChildren(this.canvas);
        this.host.scrollTop = 0;
      }
      this.canvas.style.height = `${(items.length + 1) * this.rowHeight}px`;
      this.redraw();
    }
    this.on.loaded(this);
  }

  get rowHeight() {
    return parseFloat(getComputedStyle(this.host).getPropertyValue("--row")) || 64;
  }

  get ended() {
    return this.#ended;
  }

  /** Draws all rows in sight anew, after their state has changed. */
  redraw() {
    this.rows.clear();
    this.canvas.replaceChildren();
    this.#draw();
  }

  #schedule() {
    if (this.#scheduled) return;
    this.#scheduled = true;
    requestAnimationFrame(() => {
      this.#scheduled = false;
      this.#draw();
    });
  }

  #draw() {
    const { items } = this.pairs;
    if (!items.length || this.canvas.parentNode !== this.host) return;
    const height = this.rowHeight;
    this.canvas.style.height = `${(items.length + 1) * height}px`;
    const first = Math.max(0, Math.floor(this.host.scrollTop / height) - OVERSCAN);
    const seen = Math.ceil(this.host.clientHeight / height) + 2 * OVERSCAN;
    const last = Math.min(items.length - 1, first + seen);
    for (const [index, node] of this.rows) {
      if (index < first || index > last) {
        node.remove();
        this.rows.delete(index);
      }
    }
    for (let index = first; index <= last; index += 1) {
      if (!this.rows.has(index)) this.#place(index, height);
    }
    this.#drawEnd(height);
    this.#drawLinks(height);
    this.#describeActive();
    if (last > items.length - AHEAD && !this.#failed) this.more();
  }

  #place(index, height) {
    const { pairs, scope } = this;
    const item = pairs.items[index];
    const node = row(item, { index, pairs, scope, classes: this.#classes(index) });
    node.style.transform = `translateY(${index * height}px)`;
    this.rows.set(index, node);
    // In order, so that a screen reader's virtual cursor reads them as they stand.
    const after = [...this.rows.keys()].filter((other) => other > index);
    const next = after.length ? this.rows.get(Math.min(...after)) : null;
    this.canvas.insertBefore(node, next);
  }

  #classes(index) {
    const { id } = this.pairs.items[index];
    const classes = index === this.active ? ["active"] : [];
    if (this.pair?.includes(id) || this.#linked().some((link) => link.includes(id))) {
      classes.push("paired");
    }
    return classes;
  }

  /** The [shadow, witness] pairs that belong to what is selected. */
  #linked() {
    if (this.pair) return [this.pair];
    const item = this.pairs.items[this.active];
    if (!item) return [];
    const own = item.shadowed_by ? [[item.id, item.shadowed_by.witness]] : [];
    const held = this.#olderOf(item).slice(0, MOST_LINKS).map((id) => [id, item.id]);
    return [...own, ...held];
  }

  #olderOf({ id }) {
    return [...this.pairs.endedBy(id), ...this.pairs.doubtedBy(id)];
  }

  #drawLinks(height) {
    this.canvas.querySelectorAll(".link").forEach((node) => node.remove());
    for (const link of this.#linked()) {
      const [from, to] = link.map((id) => this.pairs.indexOf(id)).sort((a, b) => a - b);
      if (from < 0) continue;
      const isDoubt = this.pairs.get(link[0])?.outcome === "doubtful";
      const node = el("div", { class: isDoubt ? "link doubtful" : "link", "aria-hidden": "true" });
      node.style.transform = `translateY(${from * height + TO_GLYPH}px)`;
      node.style.height = `${(to - from) * height}px`;
      this.canvas.append(node);
    }
  }

  #drawEnd(height) {
    const { items } = this.pairs;
    this.canvas.querySelector(".end")?.remove();
    let words = "Loading older ones…";
    if (this.#ended) words = `The beginning: ${count(items.length, "memory", "memories")}.`;
    if (this.#failed) words = "The older ones did not load. Click here or press End to try again.";
    const node = el("p", { class: "end", on: { click: () => this.#retry() } }, words);
    node.style.transform = `translateY(${items.length * height}px)`;
    this.canvas.append(node);
  }

  #retry() {
    if (!this.#failed) return;
    this.#failed = false;
    this.#schedule();
  }

  #describeActive() {
    if (this.rows.has(this.active)) this.host.setAttribute("aria-activedescendant", `row-${this.active}`);
    else this.host.removeAttribute("aria-activedescendant");
  }

  select(index, { pair = null } = {}) {
    const { items } = this.pairs;
    this.active = items.length ? Math.max(-1, Math.min(index, items.length - 1)) : -1;
    this.pair = pair;
    // First what is shown of it elsewhere: that takes space from the rows.
    this.on.selected(items[this.active] ?? null);
    if (this.active >= 0) this.#bringIntoView(this.active);
    this.redraw();
  }

  #isInView(index) {
    const height = this.rowHeight;
    const { scrollTop, clientHeight } = this.host;
    return index * height >= scrollTop && (index + 1) * height <= scrollTop + clientHeight;
  }

  #bringIntoView(index) {
    const height = this.rowHeight;
    const { scrollTop, clientHeight } = this.host;
    const top = index * height;
    const near = top > scrollTop - 3 * height && top < scrollTop + clientHeight + 2 * height;
    if (this.#isInView(index)) return;
    if (!near) this.host.scrollTop = top - clientHeight / 2 + height / 2;
    else this.host.scrollTop = top < scrollTop ? top : top + height - clientHeight;
  }

  /** Goes from a shadow to its witness, from a witness back to its shadow. */
  follow() {
    const item = this.pairs.items[this.active];
    if (!item) return;
    if (item.shadowed_by) {
      const { witness } = item.shadowed_by;
      this.goTo(witness, { pair: [item.id, witness] });
      return;
    }
    const back = this.pair?.[1] === item.id ? this.pair[0] : this.#olderOf(item)[0];
    if (back) this.goTo(back, { pair: [back, item.id] });
  }

  /** Selects a chunk, loading some pages if it takes them; returns whether it was found. */
  async goTo(id, { pair = null } = {}) {
    for (let page = 0; this.pairs.indexOf(id) < 0 && !this.#ended && !this.#failed && page < PAGES_TO_A_JUMP; page += 1) {
      await this.more();
    }
    const index = this.pairs.indexOf(id);
    if (index < 0) return false;
    this.select(index, { pair });
    this.host.focus({ preventScroll: true });
    return true;
  }

  #click(event) {
    const target = event.target.closest("[data-index]");
    if (!target) return;
    this.select(Number(target.dataset.index));
    if (event.target.closest("[data-jump]")) this.follow();
  }

  #key(event) {
    const page = Math.max(1, Math.floor(this.host.clientHeight / this.rowHeight) - 1);
    const end = this.pairs.items.length - 1;
    const moves = {
      ArrowDown: () => this.select(this.active + 1),
      ArrowUp: () => this.select(Math.max(0, this.active - 1)),
      PageDown: () => this.select(this.active + page),
      PageUp: () => this.select(Math.max(0, this.active - page)),
      Home: () => this.select(0),
      End: () => {
        this.#retry();
        this.select(end);
      },
      Enter: () => this.follow(),
      Escape: () => this.select(-1),
    };
    const move = moves[event.key];
    if (!move || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    move();
  }
}
