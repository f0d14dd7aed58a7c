// The time slider: the memory as it stood on another day.

import { history } from "./api.js";
import { byId } from "./dom.js";
import { day, moment } from "./format.js";

const STEPS = 1000;
const SETTLE_MS = 180;

export class AsOf {
  /** `changed` is called with an ISO time, or null for now, once the slider rests. */
  constructor(changed) {
    this.changed = changed;
    this.value = null;
    this.slider = byId("asof-slider");
    this.exact = byId("asof-exact");
    this.slider.addEventListener("input", () => this.#slide());
    this.exact.addEventListener("change", () => this.#type());
    byId("asof-now").addEventListener("click", () => this.set(null));
    this.#show();
  }

  #range = null;
  #timer = 0;

  /** Learns the first and the last day of a scope. */
  async open(scope) {
    const ends = await Promise.all(
      [false, true].map((newestFirst) => history({ scope, newestFirst, limit: 1 })),
    );
    const [first, last] = ends.map((page) => Date.parse(page.memories[0]?.at));
    this.#range = first < last ? [first, last] : null;
    for (const control of [this.slider, this.exact, byId("asof-now")]) control.disabled = !this.#range;
    byId("asof-from").textContent = this.#range ? day(new Date(first)) : "";
    byId("asof-to").textContent = this.#range ? day(new Date(last)) : "";
    this.#show();
  }

  set(value) {
    if (value === this.value) return;
    this.value = value;
    this.#show();
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.changed(this.value), SETTLE_MS);
  }

  #slide() {
    const step = Number(this.slider.value);
    if (step >= STEPS || !this.#range) {
      this.set(null);
      return;
    }
    const [first, last] = this.#range;
    // One millisecond more: stored times are finer than the browser's, and the first must be in.
    const at = Math.ceil(first + ((last - first) * step) / STEPS) + 1;
    this.set(new Date(at).toISOString());
  }

  #type() {
    const at = new Date(`${this.exact.value}Z`);
    this.set(Number.isNaN(at.getTime()) ? null : at.toISOString());
  }

  #show() {
    const label = this.value ? moment(this.value) : "now";
    byId("asof-label").textContent = label;
    this.slider.setAttribute("aria-valuetext", label);
    document.documentElement.toggleAttribute("data-past", this.value !== null);
    this.exact.value = this.value ? this.value.slice(0, 16) : "";
    if (!this.#range) return;
    const [first, last] = this.#range;
    const share = this.value ? (Date.parse(this.value) - first) / (last - first) : 1;
    const step = Math.round(Math.min(1, Math.max(0, share)) * STEPS);
    // Not while it is dragged: the thumb would fight the hand.
    if (Math.abs(step - Number(this.slider.value)) > 1) this.slider.value = String(step);
  }
}
