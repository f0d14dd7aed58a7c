// The REST interface. Paths are relative, so that a prefix of a reverse proxy is kept.

const KEY = "gcmem-api-key";

/** A reply that is not a success, in the words of the server's problem details. */
export class Problem extends Error {
  constructor({ status = 0, title, detail = "", requestId = "" }) {
    super(title);
    Object.assign(this, { status, title, detail, requestId });
  }
}

export const apiKey = {
  get: () => sessionStorage.getItem(KEY),
  set: (key) => sessionStorage.setItem(KEY, key),
  forget: () => sessionStorage.removeItem(KEY),
};

function url(path, query) {
  const address = new URL(path, document.baseURI);
  address.hash = "";
  for (const [name, value] of Object.entries(query)) {
    if (value !== null && value !== undefined && value !== "") address.searchParams.set(name, value);
  }
  return address;
}

async function problemOf(response) {
  const requestId = response.headers.get("x-request-id") ?? "";
  let body = {};
  try {
    body = await response.json();
  } catch {
    // A proxy in between may answer in HTML: the status says enough.
  }
  return new Problem({
    status: response.status,
    title: typeof body.title === "string" ? body.title : `The server answered ${response.status}`,
    detail: typeof body.detail === "string" ? body.detail : "",
    requestId: body.request_id ?? requestId,
  });
}

async function call(path, { method, query = {}, body, signal } = {}) {
  const key = apiKey.get();
  const headers = { Accept: "application/json" };
  if (key) headers.Authorization = `Bearer ${key}`;
  if (body) headers["Content-Type"] = "application/json";
  let response;
  try {
    response = await fetch(url(path, query), {
      method: method ?? (body ? "POST" : "GET"),
      headers,
      body: body ? JSON.stringify(body) : undefined,
      signal,
    });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Problem({
      title: "The server can't be reached.",
      detail: "Is gcmem serve still running? Then try again.",
    });
  }
  if (!response.ok) throw await problemOf(response);
  return response.status === 204 ? null : response.json();
}

/** Leaves out what is not set: a field that is left out matches every value. */
const set = (fields) =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== null && value !== ""));

export const whoami = () => call("v1/whoami");
export const qualify = () => call("v1/qualify");
export const memory = (id, scope) =>
  call(`v1/memories/${encodeURIComponent(id)}`, { query: scope });

/** `word` is "confirm", "reject" or "undo". */
export const setVerdict = ({ word, older, newer, scope }) =>
  call("v1/verdicts", { body: { word, older, newer, ...set(scope) } });

export const setPin = (id, { isPinned, scope }) =>
  call(`v1/memories/${encodeURIComponent(id)}/pin`, { method: isPinned ? "POST" : "DELETE", query: scope });

export const history = ({ scope, asOf, before, limit, newestFirst = true, signal }) =>
  call("v1/history", {
    query: { ...scope, as_of: asOf, before, limit, newest_first: newestFirst },
    signal,
  });

export const ask = ({ question, options, k, mode, scope, asOf, signal }) =>
  call("v1/ask", {
    body: {
      question,
      k,
      mode,
      paths: ["gcmem", "standard", "timestamp"],
      ...set({ ...scope, as_of: asOf }),
      ...(options.length ? { options } : {}),
    },
    signal,
  });
