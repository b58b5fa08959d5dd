// Instants: their age, and their date and time in the zone of the browser. Without this script they are in UTC.
const units = [["d", 86400, Infinity], ["h", 3600, 172800], ["min", 60, 6000], ["s", 1, 100]];
const clock = new Intl.DateTimeFormat("sv-SE", { dateStyle: "short", timeStyle: "medium" });
const named = new Intl.DateTimeFormat("en-GB", { timeZoneName: "short" });

/** Show the times of a part of the page, or of all of it, in the zone of the browser. */
export function showTimes(part = document) {
  for (const time of part.querySelectorAll("time[datetime]:not([data-zoned])")) {
    const utc = time.title || time.dateTime;
    time.dataset.zoned = "";
    if (time.hasAttribute("data-clock")) time.textContent = inZone(time.dateTime);
    time.title = utc === inZone(time.dateTime) ? utc : `${inZone(time.dateTime)} (${utc})`;
  }
  for (const field of part.querySelectorAll("input[data-instant]")) {
    field.value = forField(field.dataset.instant);
    field.removeAttribute("data-instant");
  }
  for (const word of part.querySelectorAll("[data-zone]")) word.textContent = `(${zone(new Date())})`;
}

/** Show the ages again every few seconds. */
export function age() {
  setInterval(() => {
    for (const time of document.querySelectorAll("time[data-ago]")) {
      const seconds = (Date.now() - Date.parse(time.dateTime)) / 1000;
      time.textContent = Math.abs(seconds) < 1 ? "now" : seconds > 0 ? `${span(seconds)} ago` : `in ${span(-seconds)}`;
    }
    for (const time of document.querySelectorAll("time[data-lasting]")) {
      time.textContent = `for ${span(Math.max(0, (Date.now() - Date.parse(time.dateTime)) / 1000))}`;
    }
  }, 5000);
}

/** Return a date and time in the zone of the browser, to the millisecond. */
export function inZone(text) {
  const instant = new Date(text);
  return `${clock.format(instant)}.${String(instant.getMilliseconds()).padStart(3, "0")} ${zone(instant)}`;
}

/** Return the instant of a field with a date and time, which is in the zone of the browser. */
export function ofField(text) {
  return new Date(text).toISOString();
}

function forField(text) {
  const instant = new Date(text);
  return Number.isNaN(instant.getTime()) ? "" : clock.format(instant).slice(0, 16).replace(" ", "T");
}

function zone(instant) {
  return named.formatToParts(instant).find(({ type }) => type === "timeZoneName").value;
}

function span(seconds) {
  if (seconds < 0.9995) return `${Math.round(seconds * 1000)} ms`;
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  const [unit, size] = units.find(([, size, most]) => seconds >= size && seconds < most && (size === 1 || seconds >= size * 1.6)) ?? units[3];
  return `${Math.round(seconds / size)} ${unit}`;
}
