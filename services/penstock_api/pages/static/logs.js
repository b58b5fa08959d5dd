// What an execution and its tasks print, as it comes.
import { inZone } from "./times.js";

const MOST = 5000; // lines that are kept on the page
const PAUSE = 700; // milliseconds between two looks

// Controls that change the order of a text are shown as escapes, as the server shows them on pages.
const BIDI = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;
const visible = (text) => text.replace(BIDI, (one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, "0")}`);

export function follow() {
  const box = document.querySelector("[data-log]");
  if (!box) return;
  const empty = document.querySelector("[data-log-empty]");
  const state = document.querySelector("[data-log-state]");
  const after = {};

  async function turn() {
    if (document.hidden) return setTimeout(turn, PAUSE);
    try {
      const answer = await fetch(box.dataset.log, {
        method: "POST",
        headers: { "content-type": "application/json", accept: "application/json" },
        body: JSON.stringify({ after }),
        credentials: "same-origin",
      });
      if (!answer.ok) throw new Error(String(answer.status));
      const { lines, ended, left_out: left } = await answer.json();
      add(lines);
      empty.hidden = box.childElementCount > 0;
      state.textContent = left ? `of the workflow and the 299 oldest executions of its tasks. The output of ${left} newer executions is not shown.` : ended ? "" : "live";
      if (!ended || lines.length) setTimeout(turn, lines.length ? 50 : PAUSE);
    } catch {
      setTimeout(turn, 5 * PAUSE);
    }
  }

  function add(lines) {
    const down = box.scrollHeight - box.scrollTop - box.clientHeight < 40;
    const rows = document.createDocumentFragment();
    for (const one of lines) {
      after[one.id] = [one.attempt, one.seq];
      rows.append(row(one));
    }
    box.append(rows);
    while (box.childElementCount > MOST) box.firstElementChild.remove();
    if (down) box.scrollTop = box.scrollHeight;
  }

  turn();
}

function row({ at, task, line, stream }) {
  const row = document.createElement("div");
  row.className = stream === "stderr" ? "stderr" : "";
  const time = document.createElement("time");
  time.dateTime = at;
  time.textContent = inZone(at).slice(11, 23);
  time.title = inZone(at);
  row.append(time);
  if (task) {
    const name = document.createElement("b");
    name.textContent = `${visible(task)} `;
    row.append(name);
  }
  row.append(visible(line));
  return row;
}
