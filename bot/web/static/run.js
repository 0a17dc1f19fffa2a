// The live part of a run's page: the log and the curves as they grow, told by the server.
"use strict";

(() => {
  const main = document.getElementById("main");
  const log = document.getElementById("log");
  const note = document.getElementById("log-note");
  const place = document.getElementById("curves");
  const FINAL = new Set(["done", "failed", "cancelled"]);
  const MOST_CHARACTERS = 400000;
  const SVG = "http://www.w3.org/2000/svg";
  const WIDTH = 300, HEIGHT = 100;
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

  const shape = (name, attributes) => {
    const made = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    return made;
  };
  const element = (name, className, ...children) => {
    const made = document.createElement(name);
    if (className) made.className = className;
    made.append(...children);
    return made;
  };
  const number = (value) => (value === null || value === undefined ? "NaN" : String(Number(value.toPrecision(4))));

  function chart(name, points) {
    const finite = points.filter((point) => point[1] !== null);
    const last = points.at(-1);
    const caption = element("figcaption", "", element("code", "", name), element("strong", "", last ? number(last[1]) : ""));
    const steps = points.map((point) => point[0]);
    const values = finite.map((point) => point[1]);
    const low = Math.min(...values), high = Math.max(...values);
    const first = Math.min(...steps), end = Math.max(...steps);
    const drawing = shape("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", role: "img" });
    drawing.setAttribute("aria-label", `${name}: ${finite.length} values from ${number(low)} to ${number(high)}`);
    const x = (step) => (end === first ? WIDTH / 2 : ((step - first) / (end - first)) * (WIDTH - 4) + 2);
    const y = (value) => (high === low ? HEIGHT / 2 : HEIGHT - 4 - ((value - low) / (high - low)) * (HEIGHT - 8));
    drawing.append(shape("line", { class: "axis", x1: 0, x2: WIDTH, y1: HEIGHT - 1, y2: HEIGHT - 1 }));
    drawing.append(shape("path", { class: "line", d: path(points, x, y) }));
    if (finite.length === 1) drawing.append(shape("path", { class: "dot", d: `M${x(finite[0][0])} ${y(finite[0][1])}h.01` }));
    const ends = element("div", "ends", element("span", "", `step ${first}`),
      element("span", "", finite.length ? `${number(low)} to ${number(high)}` : "no finite value"), element("span", "", `${end}`));
    return element("figure", "chart", caption, drawing, ends);
  }

  // what is not a number leaves a gap
  function path(points, x, y) {
    let drawing = "", pen = "M";
    for (const [step, value] of points) {
      if (value === null) { pen = "M"; continue; }
      drawing += `${pen}${x(step).toFixed(1)} ${y(value).toFixed(1)}`;
      pen = "L";
    }
    return drawing;
  }

  follow();
})();
