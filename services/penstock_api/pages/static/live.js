// Keeps what a page shows true: listens to what changes, and takes the page's live parts anew from the server.
// A browser has six connections to a host: a page that nobody sees gives its own back.
const SOON = 80; // milliseconds, so that changes that come together are shown together
const LEAST = 300; // between two looks; a slow server is asked less often
const shown = new Map(); // what the server said last of each part, by its id

let source = null;
let timer = 0;
let looking = false;
let again = false;
let next = 0;

export function watch() {
  const { stream, every } = document.body.dataset;
  const pulse = document.querySelector("[data-pulse]");
  if (stream === undefined && every === undefined) return;
  if (pulse) pulse.hidden = false;
  const say = (word, off) => {
    if (!pulse) return;
    pulse.classList.toggle("off", off);
    pulse.querySelector("span").textContent = word;
  };
  const open = () => {
    if (stream === undefined || source) return;
    source = new EventSource(stream);
    source.onopen = () => { say("live", false); look(); };
    source.onerror = () => {
      say("connecting", true);
      if (source && source.readyState === EventSource.CLOSED) { source = null; setTimeout(() => document.hidden || open(), 5000); }
    };
    for (const kind of ["turn", "reset"]) source.addEventListener(kind, () => look());
  };
  const close = () => { source?.close(); source = null; say("paused", true); };
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) return close();
    say("live", false);
    open();
    look();
  });
  addEventListener("pagehide", close);
  addEventListener("pageshow", (event) => { if (event.persisted) { open(); look(); } });
  if (every !== undefined) setInterval(() => document.hidden || look(), Number(every) * 1000);
  if (!document.hidden) open();
}

/** Look again soon; at once where `now` is given. */
export function look(now = false) {
  if (looking) { again = true; return; }
  if (timer) return;
  timer = setTimeout(take, now ? 0 : Math.max(SOON, next - performance.now()));
}

async function take() {
  timer = 0;
  looking = true;
  const began = performance.now();
  try {
    const answer = await fetch(location.href, { headers: { accept: "text/html", "x-look": "again" }, credentials: "same-origin" });
    if (answer.redirected && new URL(answer.url).pathname === "/sign-in") { location.reload(); return; }
    if (answer.ok) swap(new DOMParser().parseFromString(await answer.text(), "text/html"));
  } catch { /* it is not there for a moment: the next look finds it again */ }
  looking = false;
  next = performance.now() + Math.max(LEAST, 2 * (performance.now() - began));
  if (again) { again = false; look(); }
}

function swap(fresh) {
  clear(fresh);
  for (const part of fresh.querySelectorAll("[data-live][id]")) {
    const here = document.getElementById(part.id);
    const html = part.innerHTML;
    if (!here) { place(part); shown.set(part.id, html); continue; }
    if (shown.get(part.id) === html || busy(here)) continue;
    const kept = [...here.querySelectorAll("details[id][open]")].map((one) => one.id);
    const scrolled = [...here.querySelectorAll(".scroll, .json")].map((one) => [one.scrollLeft, one.scrollTop]);
    const at = here.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
    here.replaceChildren(...part.childNodes);
    shown.set(part.id, html);
    if (at !== null) refocus(here, at);
    for (const id of kept) document.getElementById(id)?.setAttribute("open", "");
    [...here.querySelectorAll(".scroll, .json")].forEach((one, n) => {
      if (scrolled[n]) [one.scrollLeft, one.scrollTop] = scrolled[n];
    });
  }
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
  return (at && at !== document.body && part.contains(at) && at.matches("input, select, textarea, button, summary"))
    || part.querySelector("details.action[open], form[data-dirty]") !== null;
}
