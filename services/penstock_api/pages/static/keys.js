// The keyboard: / to search, j and k through a list, Enter to open, g and a letter to go to a page (o: overview ...).
let going = false;

export function steer() {
  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, select, textarea, button, summary")) return;
    if (going) {
      going = false;
      const place = document.querySelector(`[data-key="${CSS.escape(event.key)}"]`);
      if (place) { event.preventDefault(); place.click(); }
      return;
    }
    if (event.key === "g") { going = true; setTimeout(() => { going = false; }, 1500); }
    if (event.key === "/") { event.preventDefault(); document.querySelector("[data-search]")?.focus(); }
    if (event.key === "j" || event.key === "k") move(event.key === "j" ? 1 : -1);
    if (event.key === "Enter" && event.target.closest("a") === null) document.querySelector("tr[data-on] a")?.click();
  });
}

function move(step) {
  const rows = [...document.querySelectorAll("tr[data-row]")];
  if (!rows.length) return;
  const now = rows.findIndex((row) => row.hasAttribute("data-on"));
  rows[now]?.removeAttribute("data-on");
  const row = rows[Math.min(rows.length - 1, Math.max(0, now + step))];
  row.setAttribute("data-on", "");
  row.querySelector("a")?.focus({ preventScroll: true });
  row.scrollIntoView({ block: "nearest" });
}
