// Forms that are requests to the API: data-api is "METHOD address", and perhaps a body; each field says where in the body it
// goes (data-at) and as what (data-kind).
import { look } from "./live.js";
import { ofField } from "./times.js";

export function listen() {
  document.addEventListener("submit", (event) => {
    const form = event.target;
    if (form.dataset.api) { event.preventDefault(); send(form, event.submitter); }
    else if (form.hasAttribute("data-clean")) clean(form);
  });
  document.addEventListener("change", (event) => { if (event.target.closest(".filter .chips")) event.target.form.requestSubmit(); });
  document.addEventListener("input", (event) => event.target.closest("form[data-api]")?.setAttribute("data-dirty", ""));
  document.addEventListener("click", (event) => {
    for (const one of document.querySelectorAll("details.action[open]")) if (!one.contains(event.target)) one.open = false;
  });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    for (const one of document.querySelectorAll("details.action[open]")) { one.open = false; one.querySelector("summary").focus(); }
  });
}

async function send(form, button) {
  const problem = form.querySelector(".problem");
  const show = (text) => { if (problem) { problem.textContent = text; problem.hidden = !text; } };
  show("");
  const [, method, named, given] = form.dataset.api.match(/^(\w+) (\S+)(?: (.*))?$/s);
  const address = named.replace("{name}", encodeURIComponent(form.querySelector("[data-name-of]")?.value ?? ""));
  let body;
  try {
    body = collect(form, given ? JSON.parse(given) : {});
    if (button?.dataset.at) put(body, JSON.parse(button.dataset.at), JSON.parse(button.value));
  } catch (error) { show(error.message); return; }
  const headers = { "content-type": "application/json", accept: "application/json" };
  if (form.hasAttribute("data-keyed")) headers["idempotency-key"] = form.dataset.key ??= key();
  if (form.hasAttribute("data-new")) headers["if-none-match"] = "*";
  if (button) button.disabled = true;
  try {
    const bare = method === "DELETE" || method === "GET";
    const answer = await fetch(document.body.dataset.base + address, { method, headers, body: bare ? undefined : JSON.stringify(body), credentials: "same-origin" });
    const said = answer.status === 204 ? {} : await answer.json().catch(() => ({}));
    if (!answer.ok) { show(refusal(form, said) ?? `The server answered with status ${answer.status}.`); delete form.dataset.key; return; }
    form.removeAttribute("data-dirty");
    delete form.dataset.key;
    if (form.dataset.shows && said[form.dataset.shows]) { reveal(form, said[form.dataset.shows], said.warnings); look(); return; }
    if (form.dataset.then) { location.assign(document.body.dataset.base + form.dataset.then.replace("{id}", encodeURIComponent(said.id ?? ""))); return; }
    form.closest("details.action")?.removeAttribute("open");
    button?.blur();
    tell(said.notice ?? counted(said, form.dataset.counts) ?? "Done.");
    look();
  } catch {
    show("The server did not answer. Try again: nothing is started twice.");
  } finally {
    if (button) button.disabled = false;
  }
}

/** Return what a refusal says. The faults of a request name the fields of the form instead of those of the API. */
function refusal(form, { detail, hint, faults }) {
  const lines = (faults ?? []).map(({ at, says }) => {
    const [part, name] = at.split(".");
    const fields = [...form.querySelectorAll("[data-at]")].filter((field) => JSON.parse(field.dataset.at)[0] === name);
    const field = part === "path" ? form.querySelector("[data-name-of]") : fields[0];
    if (!field) return null;
    const group = field.closest("[role=group]")?.getAttribute("aria-label").replace(" (required)", "");
    if (field.dataset.kind === "list" && says === "is missing") return `Choose at least one ${group ? `of ${group}` : "entry"}.`;
    return `${group ?? field.labels?.[0]?.textContent.trim() ?? name} ${says}.`;
  });
  if (lines.length && lines.every(Boolean)) return lines.join("\n");
  return [detail, hint].filter(Boolean).join("\n") || null;
}

/** Return how many entries of the answer start an execution, or null if the form does not ask for this. */
function counted(answer, name) {
  if (!name || !Array.isArray(answer)) return null;
  const starts = answer.filter((entry) => entry[name]).length;
  if (!answer.length) return "This range has no start time in the past.";
  if (!starts) return "No execution was started: each start time in this range already has one.";
  return `${starts} ${starts === 1 ? "execution was" : "executions were"} started.`;
}

/** What the fields say, as one document. What is left empty is left out. In a form of changes (data-changes) a field that is as
    it came is left out too, and one that was emptied is named in `unset`. */
function collect(form, body) {
  const changes = form.hasAttribute("data-changes");
  for (const field of form.querySelectorAll("[data-at]")) {
    const place = JSON.parse(field.dataset.at);
    if (changes && place[0] === "parameters") { change(field, place, body); continue; }
    if (field.dataset.kind === "list") { if (field.checked) put(body, place, [...(at(body, place) ?? []), field.value]); continue; }
    if (field.value === "") continue;
    put(body, place, field.dataset.kind === "words" ? [...(at(body, place) ?? []), ...read(field)] : read(field));
  }
  return body;
}

function change(field, place, body) {
  const before = initial(field);
  if (field.value === before) return;
  const unset = (name) => put(body, ["unset"], [...(body.unset ?? []), name]);
  if (place.length > 1) { field.value === "" ? unset(place[1]) : put(body, place, read(field)); return; }
  const value = field.value === "" ? {} : read(field);
  for (const name of Object.keys(before === "" ? {} : JSON.parse(before))) if (!Object.hasOwn(value, name)) unset(name);
  put(body, place, value);
}

/** The value with which a field came, as the browser reads it. */
function initial(field) {
  if (field.options) return [...field.options].find((option) => option.defaultSelected)?.value ?? field.options[0].value;
  if (field.tagName === "TEXTAREA") return field.defaultValue;
  const probe = document.createElement("input");
  probe.type = field.type;
  probe.value = field.defaultValue;
  return probe.value;
}

function read(field) {
  const { kind } = field.dataset;
  const text = field.value;
  if (kind === "integer" || kind === "number") return Number(text);
  if (kind === "date-time") return ofField(text);
  if (kind === "words") return text.split(/[\s,]+/).filter(Boolean);
  if (kind === "mixed") return mixed(text, field.dataset.types.split(" "));
  if (kind !== "json") return text;
  try { return JSON.parse(text); } catch (error) {
    const name = field.labels?.[0]?.textContent.trim() ?? "this field";
    throw new Error(`${name} is not JSON: ${error.message}\nWrite texts in double quotes: "like this".`);
  }
}

/** A value of one of these types of JSON Schema: as JSON, or else the text as it stands. */
function mixed(text, types) {
  let value;
  try { value = JSON.parse(text); } catch { return text; }
  const type = value === null ? "null" : Array.isArray(value) ? "array" : Number.isInteger(value) && types.includes("integer") ? "integer" : typeof value;
  return types.includes(type) ? value : text;
}

function put(body, place, value) {
  let here = body;
  for (const name of place.slice(0, -1)) here = Object.hasOwn(here, name) ? here[name] : define(here, name, {});
  define(here, place.at(-1), value);
}

/** Also where the name is one that objects have of themselves. */
function define(object, name, value) {
  Object.defineProperty(object, name, { value, enumerable: true, writable: true, configurable: true });
  return value;
}

function at(body, place) {
  return place.reduce((here, name) => here?.[name], body);
}

function key() {
  return [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** An address without what says nothing, and with instants instead of times in the zone of the browser. */
function clean(form) {
  const instants = [];
  for (const field of form.elements) {
    if (field.name && field.value === "") field.disabled = true;
    if (field.type !== "datetime-local" || field.value === "") continue;
    instants.push(Object.assign(document.createElement("input"), { type: "hidden", name: field.name, value: ofField(field.value) }));
    field.disabled = true;
  }
  form.append(...instants);
  addEventListener("pageshow", () => {
    for (const instant of instants) instant.remove();
    for (const field of form.elements) field.disabled = false;
  }, { once: true });
}

/** Show a secret that only this answer contains, and the warnings that came with it. */
function reveal(form, secret, warnings) {
  const place = form.querySelector("[data-secret]");
  place.querySelector("code").textContent = secret;
  const warning = form.querySelector("[data-warning]");
  if (warning) {
    warning.textContent = (warnings || []).join(" ");
    warning.hidden = !warning.textContent;
  }
  place.hidden = false;
  place.focus();
}

export function tell(text) {
  const told = document.querySelector("[data-told]");
  if (!told) return;
  told.textContent = text;
  told.hidden = false;
  clearTimeout(tell.timer);
  tell.timer = setTimeout(() => { told.hidden = true; }, Math.max(4000, 60 * text.length));
}
