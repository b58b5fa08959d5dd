// What every page runs. Each module finds its own elements; a page that has none of them does nothing.
import { watch } from "./live.js";
import { listen } from "./actions.js";
import { follow } from "./logs.js";
import { steer } from "./keys.js";

listen();
follow();
steer();
watch();

const units = [["d", 86400, Infinity], ["h", 3600, 172800], ["min", 60, 6000], ["s", 1, 100]];

function span(seconds) {
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  const [unit, size] = units.find(([, size, most]) => seconds >= size && seconds < most && (size === 1 || seconds >= size * 1.6)) ?? units[3];
  return `${Math.round(seconds / size)} ${unit}`;
}

function age() {
  for (const one of document.querySelectorAll("time[data-ago]")) {
    const seconds = (Date.now() - Date.parse(one.dateTime)) / 1000;
    one.textContent = Math.abs(seconds) < 1 ? "now" : seconds > 0 ? `${span(seconds)} ago` : `in ${span(-seconds)}`;
  }
}

setInterval(age, 5000);
