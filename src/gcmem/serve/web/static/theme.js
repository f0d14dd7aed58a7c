// Light or dark: the system's choice until somebody makes another.

import { byId } from "./dom.js";

const KEY = "gcmem-theme";
const system = matchMedia("(prefers-color-scheme: dark)");

const current = () => document.documentElement.dataset.theme ?? (system.matches ? "dark" : "light");

function show() {
  const other = current() === "dark" ? "Light" : "Dark";
  const button = byId("theme-button");
  button.textContent = other;
  button.setAttribute("aria-label", `${other} theme`);
}

export function startTheme() {
  const chosen = localStorage.getItem(KEY);
  if (chosen) document.documentElement.dataset.theme = chosen;
  byId("theme-button").addEventListener("click", () => {
    document.documentElement.dataset.theme = current() === "dark" ? "light" : "dark";
    localStorage.setItem(KEY, document.documentElement.dataset.theme);
    show();
  });
  system.addEventListener("change", show);
  show();
}
