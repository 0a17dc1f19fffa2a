// The live part of a run's page: the log and the curves as they grow, told by the server.
import { HEIGHT, WIDTH, element, number, path, scale, shape } from "./drawing.js";

const main = document.getElementById("main");
const log = document.getElementById("log");
const note = document.getElementById("log-note");
const place = document.getElementById("curves");
const FINAL = new Set(["done", "failed", "cancelled"]);
const MOST_CHARACTERS = 400000;
const wasFinal = main.dataset.final === "yes";
const curves = new Map();
let offset = 0, dropped = false, failures = 0;

function append(text) {
  const atEnd = log.scrollHeight - log.scrollTop - log.clientHeight < 40;
  log.append(text);
  if (log.textContent.length > MOST_CHARACTERS) {
    log.textContent = log.textContent.slice(-MOST_CHARACTERS / 2);
    dropped = true;
  }
  if (atEnd) log.scrollTop = log.scrollHeight;
}

function tell(state) {
  const shown = document.getElementById("state");
  shown.textContent = state;
  shown.dataset.word = state;
  if (!offset && !FINAL.has(state)) note.textContent = "Nothing has been printed yet.";
}

// the browser opens a stream that was cut again by itself; one that was refused it does not
function follow() {
  const source = new EventSource(`${main.dataset.run}/events?offset=${offset}`);
  const on = (name, act) => source.addEventListener(name, (event) => act(JSON.parse(event.data)));
  source.onopen = () => { failures = 0; note.textContent = ""; };
  source.onerror = () => {
    note.textContent = "The connection was lost; trying again.";
    if (source.readyState !== EventSource.CLOSED) return;
    failures += 1;
    setTimeout(follow, 1000 * Math.min(30, 2 ** failures));
  };
  on("state", (found) => tell(found.state));
  on("log", (found) => {
    append(found.text);
    offset = found.offset;
    note.textContent = dropped ? "Only the end is shown here; the whole log is there as text." : "";
  });
  on("curves", (found) => found.forEach(extend));
  on("end", () => {
    source.close();
    if (!offset) note.textContent = "This run has no log.";
    if (!wasFinal) location.reload();
  });
}

function extend(found) {
  const name = found.run === "." ? found.tag : `${found.run}/${found.tag}`;
  const known = curves.get(name) || { points: [], figure: null };
  known.points = found.anew ? found.points : known.points.concat(found.points);
  const figure = chart(name, known.points);
  if (known.figure) known.figure.replaceWith(figure);
  else if (curves.size) place.append(figure);
  else place.replaceChildren(figure);
  curves.set(name, { points: known.points, figure });
}

function chart(name, points) {
  const finite = points.filter((point) => point[1] !== null);
  const last = points.at(-1);
  const caption = element("figcaption", "", element("code", "", name), element("strong", "", last ? (last[1] === null ? "NaN" : number(last[1])) : ""));
  const steps = points.map((point) => point[0]);
  const values = finite.map((point) => point[1]);
  const first = Math.min(...steps), end = Math.max(...steps);
  const reach = finite.length ? `${number(Math.min(...values))} to ${number(Math.max(...values))}` : "no finite value";
  const drawing = shape("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", role: "img" });
  drawing.setAttribute("aria-label", `${name}: ${finite.length} values, ${reach}`);
  const x = scale(steps, 2, WIDTH - 2), y = scale(values, HEIGHT - 4, 4);
  drawing.append(shape("line", { class: "axis", x1: 0, x2: WIDTH, y1: HEIGHT - 1, y2: HEIGHT - 1 }));
  drawing.append(shape("path", { class: "line", d: path(points, x, y) }));
  if (finite.length === 1) drawing.append(shape("path", { class: "dot", d: `M${x(finite[0][0])} ${y(finite[0][1])}h.01` }));
  const ends = element("div", "ends", element("span", "", `step ${first}`),
    element("span", "", reach), element("span", "", `${end}`));
  return element("figure", "chart", caption, drawing, ends);
}

follow();
