// A button that copies a text, for each text that is worth it. A browser lets pages copy over TLS and on this machine only.
import { tell } from "./actions.js";

export function offerCopies() {
  if (!navigator.clipboard) return;
  for (const text of document.querySelectorAll("[data-copy]")) {
    const button = Object.assign(document.createElement("button"), { type: "button", textContent: "Copy" });
    button.setAttribute("aria-label", `Copy ${text.getAttribute("aria-label")}`);
    button.addEventListener("click", async () => { await navigator.clipboard.writeText(text.textContent); tell("Copied."); });
    text.before(button);
  }
}
