// The page: reads what is asked for, and keeps the views in step.

import { Problem, apiKey, ask, memory, qualify, whoami } from "./api.js";
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

const FIELDS = ["user_id", "agent_id", "run_id"];
const state = { scope: {}, question: null };
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
  selected: (item) => inspect(byId("inspector"), item, { pairs: timeline.pairs, go }),
  failed: fail,
  empty: () => noMemories({ scope: state.scope, asOf: asOf.value }),
});

function showCount({ pairs, ended }) {
  const number = count(pairs.items.length, "memory", "memories") + (ended ? "" : " so far");
  const states = [[pairs.shadowCount, "outdated"], [pairs.unjudgedCount, "not judged yet"]]
    .filter(([many]) => many)
    .map(([many, state]) => `${many.toLocaleString("en")} ${state}`);
  byId("timeline-count").textContent = pairs.items.length ? [number, ...states].join(", ") : "";
  byId("timeline-hint").hidden = !pairs.unjudgedCount;
}

/** Shows a chunk in the timeline, or alone where it is too far down. */
async function go(id) {
  try {
    if (await timeline.goTo(id)) {
      if (matchMedia("(max-width: 900px)").matches) byId("timeline").scrollIntoView({ block: "start" });
      return;
    }
    const { pairs } = timeline;
    inspect(byId("inspector"), pairs.alone(await memory(id, state.scope)), { pairs, go });
  } catch (error) {
    fail(error);
  }
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

async function answer() {
  asking.abort();
  asking = new AbortController();
  const { signal } = asking;
  if (!state.question) {
    byId("paths").replaceChildren(noQuestion());
    byId("timings").hidden = true;
    return;
  }
  byId("paths").setAttribute("aria-busy", "true");
  byId("ask-status").textContent = "Asking…";
  showWaiting(byId("paths"));
  try {
    const reply = await ask({ ...state.question, scope: state.scope, asOf: asOf.value, signal });
    if (signal.aborted) return;
    if (reply.candidates.length) showPaths(byId("paths"), reply, { go });
    else byId("paths").replaceChildren(noCandidates());
    showTimings(byId("timings"), reply.timings_ms);
    byId("ask-status").textContent = `Answered. ${spokenAnswers(reply)}`;
    return reply;
  } catch (error) {
    if (signal.aborted) return;
    byId("paths").replaceChildren();
    byId("ask-status").textContent = "";
    fail(error);
  } finally {
    if (!signal.aborted) byId("paths").removeAttribute("aria-busy");
  }
}

/** A question judges all of its candidates, so the timeline can show what it found out. */
function mark(reply) {
  timeline.mark({
    judged: reply.candidates.map(({ memory: { id } }) => id),
    shadows: shadowsOf(reply),
  });
}

/** The timeline first: a question may find outdated memories that it then has to show. */
async function refresh() {
  clearError();
  remember();
  const [reply] = await Promise.all([
    answer(),
    timeline.open({ scope: state.scope, asOf: asOf.value }),
  ]);
  if (reply) mark(reply);
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
    showIdentity(await whoami());
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
  const reply = await answer();
  if (reply) mark(reply);
});

startTheme();
recall();
byId("paths").replaceChildren(noQuestion());
start();
