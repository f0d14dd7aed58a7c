// The page: reads what is asked for, and keeps the views in step.

import { Problem, apiKey, ask, memory, qualify, setPin, setVerdict, whoami } from "./api.js";
import { AsOf } from "./asof.js";
import { byId } from "./dom.js";
import { count } from "./format.js";
import { noCandidates, noMemories, noQuestion } from "./hints.js";
import { inspect } from "./inspector.js";
import { KeyDialog } from "./keydialog.js";
import { showOracle } from "./oracle.js";
import { shadowsOf, showPaths, showWaiting, spokenAnswers } from "./paths.js";
import { startTheme } from "./theme.js";
import { Timeline } from "./timeline.js";
import { showTimings } from "./timings.js";
import { Words } from "./words.js";

const FIELDS = ["user_id", "agent_id", "run_id"];
const state = { scope: {}, question: null, reply: null, inspected: null };
const words = new Words();
let asking = new AbortController();

// ---- what went wrong

function fail(error) {
  if (error.name === "AbortError") return;
  if (error.status === 401) {
    keyDialog.ask(apiKey.get() ? error.detail || error.title : "");
    return;
  }
  if (!(error instanceof Problem)) console.error(error);
  byId("error-title").textContent = error.title ?? "Something went wrong in this page.";
  byId("error-detail").textContent = error.detail ?? error.message ?? "";
  byId("error-id").textContent = error.requestId ? `request ${error.requestId}` : "";
  byId("error").hidden = false;
}

const clearError = () => {
  byId("error").hidden = true;
};

// ---- the views

const keyDialog = new KeyDialog(() => start());
const asOf = new AsOf(() => refresh());
const timeline = new Timeline(byId("timeline"), {
  loaded: showCount,
  selected: show,
  failed: fail,
  empty: () => noMemories({ scope: state.scope, asOf: asOf.value }),
});

function showCount({ pairs, ended }) {
  const number = count(pairs.items.length, "memory", "memories") + (ended ? "" : " so far");
  const names = { shadow: "outdated", partly: "partly", doubtful: "doubtful", unjudged: "not judged yet" };
  const states = Object.entries(names)
    .map(([kind, name]) => [pairs.count(kind), name])
    .filter(([many]) => many)
    .map(([many, name]) => `${many.toLocaleString("en")} ${name}`);
  byId("timeline-count").textContent = pairs.items.length ? [number, ...states].join(", ") : "";
  byId("timeline-hint").hidden = !pairs.count("unjudged");
}

/** Shows a memory in the inspector, or empties it. */
function show(item) {
  state.inspected = item;
  const found = item && state.reply && shadowsOf(state.reply).get(item.id);
  const asked = found && { ...found.conflict, witness: found.witness.id, isRead: found.isRead };
  inspect(byId("inspector"), item, { pairs: timeline.pairs, words, asked, go, say, pin });
}

/** Shows a chunk in the timeline, or alone where it is too far down. */
async function go(id) {
  try {
    if (await timeline.goTo(id)) {
      if (matchMedia("(max-width: 900px)").matches) byId("timeline").scrollIntoView({ block: "start" });
      return;
    }
    show(await alone(id));
  } catch (error) {
    fail(error);
  }
}

/** Reads one chunk. What the server knows about it holds for now, not for another day. */
async function alone(id) {
  const item = await memory(id, state.scope);
  return asOf.value ? { ...item, outcome: undefined, shadowed_by: null, rejected: [] } : item;
}

// ---- a person's word: it outranks every model

const say = (word, older, newer) =>
  act(() => setVerdict({ word, older, newer, scope: state.scope }), ["Undo", "Yes, outdated"]);
const pin = (id, isPinned) =>
  act(() => setPin(id, { isPinned, scope: state.scope }), ["Pin", "Unpin"]);

/** Sends a word, then shows what follows from it. The focus goes to the first of `next` that is there. */
async function act(send, next) {
  const host = byId("inspector");
  const buttons = () => [...host.querySelectorAll("[data-act]")];
  clearError();
  for (const button of buttons()) button.disabled = true;
  try {
    await send();
    await timeline.reload();
    answer({ isAgain: true });
    await inspectAgain();
  } catch (error) {
    fail(error);
  }
  const isElsewhere = document.activeElement !== document.body && !host.contains(document.activeElement);
  show(state.inspected);
  if (!isElsewhere) buttons().find((button) => next.includes(button.dataset.act))?.focus();
}

/** Reads the inspected chunk again where the timeline, which was, does not hold it. */
async function inspectAgain() {
  const { inspected } = state;
  if (!inspected || timeline.pairs.get(inspected.id)) return;
  const item = await alone(inspected.id);
  if (state.inspected === inspected) state.inspected = item;
}

// ---- scope, day and question

function readScope() {
  state.scope = Object.fromEntries(FIELDS.map((field) => [field, byId(field).value.trim()]));
}

function readQuestion() {
  const question = byId("question").value.trim();
  const options = byId("options").value.split(",").map((option) => option.trim()).filter(Boolean);
  const k = Math.max(1, Number.parseInt(byId("k").value, 10) || 10);
  state.question = question ? { question, options, k, mode: byId("mode").value } : null;
}

/** Asks the question; if it is the same one again, what is shown stays until the reply is there. */
async function answer({ isAgain = false } = {}) {
  asking.abort();
  asking = new AbortController();
  const { signal } = asking;
  if (!isAgain) state.reply = null;
  if (!state.question) {
    byId("paths").replaceChildren(noQuestion());
    byId("timings").hidden = true;
    return;
  }
  byId("paths").setAttribute("aria-busy", "true");
  byId("ask-status").textContent = "Asking…";
  if (!isAgain) showWaiting(byId("paths"));
  try {
    const reply = await ask({ ...state.question, scope: state.scope, asOf: asOf.value, signal });
    if (signal.aborted) return;
    state.reply = reply;
    showAnswers();
    showTimings(byId("timings"), reply.timings_ms);
    byId("ask-status").textContent = `Answered. ${spokenAnswers(reply)}`;
  } catch (error) {
    if (signal.aborted) return;
    byId("paths").replaceChildren();
    byId("ask-status").textContent = "";
    fail(error);
  } finally {
    if (!signal.aborted) byId("paths").removeAttribute("aria-busy");
  }
}

function showAnswers() {
  const { reply } = state;
  if (!reply) return;
  if (reply.candidates.length) showPaths(byId("paths"), reply, { pairs: timeline.pairs, go });
  else byId("paths").replaceChildren(noCandidates());
}

/** A question judges what it reads and nobody has judged before, so the timeline may have changed. */
async function showFindings() {
  if (!state.reply) return;
  await timeline.reload();
  showAnswers();
}

async function refresh() {
  clearError();
  remember();
  await Promise.all([answer(), timeline.open({ scope: state.scope, asOf: asOf.value })]);
  await showFindings();
}

async function openScope() {
  readScope();
  readQuestion();
  await Promise.all([refresh(), asOf.open(state.scope).catch(fail)]);
}

// ---- the address: what is shown can be opened again, and never leaves the browser

function remember() {
  const { question = "", options = [] } = state.question ?? {};
  const shown = { ...state.scope, q: question, options: options.join(", "), as_of: asOf.value ?? "" };
  const kept = Object.entries(shown).filter(([, value]) => value);
  const hash = new URLSearchParams(kept).toString();
  history.replaceState(null, "", hash ? `#${hash}` : location.pathname + location.search);
}

function recall() {
  const kept = new URLSearchParams(location.hash.slice(1));
  for (const field of FIELDS) if (kept.has(field)) byId(field).value = kept.get(field);
  if (kept.has("q")) byId("question").value = kept.get("q");
  if (kept.has("options")) byId("options").value = kept.get("options");
  const at = new Date(kept.get("as_of") ?? "");
  if (!Number.isNaN(at.getTime())) asOf.value = at.toISOString();
}

// ---- who is asking

/** A key that is bound to a field leaves no choice in it. */
function showIdentity(caller) {
  byId("whoami").textContent = caller.name ? `key: ${caller.name}` : "";
  for (const field of FIELDS) {
    const bound = caller[field] ?? null;
    byId(field).readOnly = bound !== null;
    if (bound !== null) byId(field).value = bound;
  }
}

async function start() {
  clearError();
  try {
    words.caller = await whoami();
    showIdentity(words.caller);
  } catch (error) {
    fail(error);
    if (error.status === 401) return;
  }
  qualify().then((reply) => showOracle(byId("oracle"), reply), fail);
  await openScope();
}

byId("error-close").addEventListener("click", clearError);
byId("scope-form").addEventListener("submit", (event) => {
  event.preventDefault();
  asOf.value = null;
  openScope();
});
byId("ask-form").addEventListener("submit", async (event) => {
  event.preventDefault();
  clearError();
  readQuestion();
  remember();
  await answer();
  await showFindings();
});

startTheme();
recall();
byId("paths").replaceChildren(noQuestion());
start();
