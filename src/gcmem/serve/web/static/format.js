// Times are shown in UTC, as the memory keeps them, so that two operators see the same.

const pad = (number) => String(number).padStart(2, "0");

export function day(iso) {
  const at = new Date(iso);
  if (!iso || Number.isNaN(at.getTime())) return "undated";
  return `${at.getUTCFullYear()}-${pad(at.getUTCMonth() + 1)}-${pad(at.getUTCDate())}`;
}

export function clock(iso) {
  const at = new Date(iso);
  if (!iso || Number.isNaN(at.getTime())) return "";
  return `${pad(at.getUTCHours())}:${pad(at.getUTCMinutes())}`;
}

export const moment = (iso) => `${day(iso)} ${clock(iso)}`.trim();

/** A score from 0 to 1; empty where it is not known yet. */
export const score = (value) => (typeof value === "number" ? value.toFixed(2) : "");

export function milliseconds(value) {
  if (value >= 1000) return `${(value / 1000).toFixed(2)} s`;
  return value >= 10 ? `${Math.round(value)} ms` : `${value.toFixed(1)} ms`;
}

export const count = (number, one, many = `${one}s`) =>
  `${number.toLocaleString("en")} ${number === 1 ? one : many}`;

export function excerpt(text, length = 90) {
  const letters = Array.from(text);
  return letters.length <= length ? text : `${letters.slice(0, length - 1).join("")}…`;
}
