// Asks for the API key when the server wants one.

import { apiKey } from "./api.js";
import { byId } from "./dom.js";

/** `changed` is called when there is another key, or none. */
export class KeyDialog {
  constructor(changed) {
    this.dialog = byId("key-dialog");
    this.changed = changed;
    byId("key-button").addEventListener("click", () => this.ask());
    byId("key-cancel").addEventListener("click", () => this.dialog.close());
    byId("key-forget").addEventListener("click", () => this.#use(null));
    byId("key-form").addEventListener("submit", (event) => {
      event.preventDefault();
      this.#use(byId("key").value.trim());
    });
  }

  /** Opens the dialog, with the reason why a key was refused. */
  ask(reason = "") {
    const error = byId("key-error");
    error.textContent = reason;
    error.hidden = !reason;
    byId("key-forget").hidden = !apiKey.get();
    if (!this.dialog.open) this.dialog.showModal();
    byId("key").focus();
  }

  #use(key) {
    if (key) apiKey.set(key);
    else apiKey.forget();
    byId("key").value = "";
    this.dialog.close();
    this.changed();
  }
}
