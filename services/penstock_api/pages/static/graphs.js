// The graphs of workflows: each fits its frame or is as large as drawn, says whether it scrolls, and zooms.
const SMALLEST = 0.45; // below this scale its words cannot be read
const OUTLINE = 0.2; // a graph that fits at this scale is shown whole: its boxes and statuses can be seen
const LARGEST = 2;
const STEP = 1.25;
const ZOOMS = [["fit", "Fit", "Fit the graph into its frame"], ["full", "100 %", "Show the graph at its full size (100 %)"], ["out", "−", "Zoom out"], ["in", "+", "Zoom in"]];
const scales = new Map(); // the scale of each graph that a person has chosen, by its place on the page

/** Give each graph its buttons and its scale. `zoomed` is the button with the focus before the server sent the part again. */
export function showGraphs(part = document, zoomed = null) {
  for (const [n, frame] of part.querySelectorAll(".graph").entries()) {
    const drawing = frame.querySelector("svg");
    const graph = { frame, drawing, id: `${frame.closest("[id]")?.id} ${n}`, width: drawing.viewBox.baseVal.width, height: drawing.viewBox.baseVal.height };
    const bar = document.createElement("div");
    bar.className = "zoom";
    for (const [word, text, name] of ZOOMS) {
      const button = document.createElement("button");
      button.type = "button";
      button.dataset.zoom = word;
      button.textContent = text;
      button.setAttribute("aria-label", name);
      button.addEventListener("click", () => { scales.set(graph.id, chosen(word, graph)); scale(graph, bar); });
      bar.append(button);
    }
    bar.append(Object.assign(document.createElement("span"), { className: "hint" }));
    frame.before(bar);
    scale(graph, bar);
    if (zoomed) bar.querySelector(`[data-zoom="${zoomed}"]`)?.focus({ preventScroll: true });
  }
}

addEventListener("resize", () => {
  for (const bar of document.querySelectorAll(".zoom")) bar.remove();
  showGraphs();
});

function fitting({ frame, width }) {
  const whole = Math.min(1, (frame.clientWidth - 20) / width);
  return whole >= OUTLINE ? whole : SMALLEST;
}

function chosen(word, graph) {
  const now = scales.get(graph.id) ?? fitting(graph);
  if (word === "fit") return fitting(graph);
  if (word === "full") return 1;
  return Math.max(SMALLEST / 2, Math.min(LARGEST, word === "in" ? now * STEP : now / STEP));
}

function scale(graph, bar) {
  const now = scales.get(graph.id) ?? fitting(graph);
  graph.drawing.setAttribute("width", Math.round(graph.width * now));
  graph.drawing.setAttribute("height", Math.round(graph.height * now));
  const scrolls = graph.frame.scrollWidth > graph.frame.clientWidth + 1 || graph.frame.scrollHeight > graph.frame.clientHeight + 1;
  bar.querySelector(".hint").textContent = `Zoom ${Math.round(100 * now)} %${scrolls ? ". Scroll for more." : ""}`;
}
