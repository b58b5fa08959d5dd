// Keeps what a page shows true: the server sends the page again whenever it has changed, and its live parts are put in place.
// A browser has six connections to a host: a page that nobody sees gives its own back.
import { showGraphs } from "./graphs.js";
import { showTimes } from "./times.js";

const shown = new Map(); // what the server said last of each part, by its id

let source = null;
let looking = false;
let again = false;

export function watch() {
  const pulse = document.querySelector("[data-pulse]");
  if (!("open" in document.body.dataset)) return;
  if (pulse) pulse.hidden = false;
  const say = (word, off) => {
    if (!pulse) return;
    pulse.classList.toggle("off", off);
    pulse.querySelector("span").textContent = word;
  };
  const open = () => {
    if (source) return;
    source = new EventSource(location.href);
    source.onopen = () => say("live", false);
    source.onerror = () => {
      say("connecting", true);
      if (source?.readyState !== EventSource.CLOSED) return;
      source = null;
      look(); // whoever may not look any more is told so
      setTimeout(() => document.hidden || open(), 5000);
    };
    source.addEventListener("page", ({ data }) => put(data));
    source.addEventListener("gone", () => location.reload());
  };
  const close = () => { source?.close(); source = null; say("paused", true); };
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) return close();
    open();
  });
  addEventListener("pagehide", close);
  addEventListener("pageshow", (event) => { if (event.persisted) open(); });
  if (!document.hidden) open();
}

/** Look at once, not waiting until the server has seen what was done here. */
export async function look() {
  if (looking) { again = true; return; }
  looking = true;
  try {
    const answer = await fetch(location.href, { headers: { accept: "text/html", "x-look": "again" }, credentials: "same-origin" });
    if (answer.redirected && new URL(answer.url).pathname === `${document.body.dataset.base}/sign-in`) { location.reload(); return; }
    if (answer.ok) put(await answer.text());
  } catch { /* it is not there for a moment: the stream finds it again */ }
  looking = false;
  if (again) { again = false; look(); }
}

function put(page) {
  const fresh = new DOMParser().parseFromString(page, "text/html");
  clear(fresh);
  for (const part of fresh.querySelectorAll("[data-live][id]")) {
    const here = document.getElementById(part.id);
    const html = part.innerHTML;
    if (!here) { place(part); shown.set(part.id, html); finish(document.getElementById(part.id)); continue; }
    if (shown.get(part.id) === html || busy(here)) continue;
    const kept = [...here.querySelectorAll("details[id][open]")].map((one) => one.id);
    const scrolled = [...here.querySelectorAll(".scroll, .json")].map((one) => [one.scrollLeft, one.scrollTop]);
    const focused = here.contains(document.activeElement) ? document.activeElement : null;
    const at = focused?.getAttribute("href") ?? null;
    here.replaceChildren(...part.childNodes);
    shown.set(part.id, html);
    finish(here, focused?.dataset.zoom);
    if (at !== null) refocus(here, at);
    for (const id of kept) document.getElementById(id)?.setAttribute("open", "");
    [...here.querySelectorAll(".scroll, .json")].forEach((one, n) => {
      if (scrolled[n]) [one.scrollLeft, one.scrollTop] = scrolled[n];
    });
  }
}

/** Add what only scripts know to a part that the server has sent: the zone of the browser, and the scale of a graph. */
function finish(part, zoomed = null) {
  showTimes(part);
  showGraphs(part, zoomed);
}

/** Put a part there that was not, before what comes after it. */
function place(part) {
  let next = part.nextElementSibling;
  while (next && !(next.id && document.getElementById(next.id))) next = next.nextElementSibling;
  const before = next && document.getElementById(next.id);
  (before?.parentNode ?? document.querySelector("main")).insertBefore(part, before);
}

/** Take parts away that are not there any more. */
function clear(fresh) {
  for (const part of document.querySelectorAll("[data-live][id]")) {
    if (!fresh.getElementById(part.id) && !busy(part)) part.remove();
  }
}

/** Whoever goes through a list with the keyboard stays where he is in it. */
function refocus(part, href) {
  const link = part.querySelector(`a[href="${CSS.escape(href)}"]`);
  link?.closest("tr[data-row]")?.setAttribute("data-on", "");
  link?.focus({ preventScroll: true });
}

/** Somebody is about to say something there, and must not be disturbed. */
function busy(part) {
  const at = document.activeElement;
  return (at && at !== document.body && part.contains(at) && at.matches("input, select, textarea, button:not([data-zoom]), summary"))
    || part.querySelector("details.action[open], form[data-dirty]") !== null;
}
