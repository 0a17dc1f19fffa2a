// The live part of a run's page: the log from where we are, and the curves as they stand.
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
  let offset = 0, dropped = false;

  const pause = (seconds) => new Promise((done) => setTimeout(done, seconds * 1000));

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
  }

  async function followLog() {
    for (let failures = 0; ;) {
      let wait = 1;
      try {
        const answer = await fetch(`${main.dataset.run}/log?offset=${offset}`, { cache: "no-store" });
        if (!answer.ok) throw new Error(String(answer.status));
        const text = await answer.text();
        const next = Number(answer.headers.get("X-Offset"));
        const state = answer.headers.get("X-State") || "";
        if (text) append(text);
        const more = next > offset;
        offset = next;
        failures = 0;
        note.textContent = dropped ? "Only the end is shown here; the whole log is there as text." : "";
        if (state) tell(state);
        if (FINAL.has(state) && !more) {
          if (!offset) note.textContent = "This run has no log.";
          if (!wasFinal) location.reload();
          return;
        }
        if (more) wait = 0.1;
        else if (!offset) note.textContent = "Nothing has been printed yet.";
      } catch {
        failures += 1;
        wait = Math.min(30, 2 ** failures);
        note.textContent = "The connection was lost; trying again.";
      }
      await pause(wait);
    }
  }

  async function followCurves() {
    for (let wait = 2; ;) {
      try {
        const answer = await fetch(`${main.dataset.run}/curves.json`, { cache: "no-store" });
        if (!answer.ok) throw new Error(String(answer.status));
        const found = await answer.json();
        if (found.curves.length) place.replaceChildren(...found.curves.map(chart));
        if (FINAL.has(found.state)) return;
        wait = 2;
      } catch {
        wait = Math.min(30, wait * 2);
      }
      await pause(wait);
    }
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

  function chart(curve) {
    const finite = curve.points.filter((point) => point[1] !== null);
    const last = curve.points.at(-1);
    const name = curve.run === "." ? curve.tag : `${curve.run}/${curve.tag}`;
    const caption = element("figcaption", "", element("code", "", name), element("strong", "", last ? number(last[1]) : ""));
    const steps = curve.points.map((point) => point[0]);
    const values = finite.map((point) => point[1]);
    const low = Math.min(...values), high = Math.max(...values);
    const first = Math.min(...steps), end = Math.max(...steps);
    const drawing = shape("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", role: "img" });
    drawing.setAttribute("aria-label", `${name}: ${finite.length} values from ${number(low)} to ${number(high)}`);
    const x = (step) => (end === first ? WIDTH / 2 : ((step - first) / (end - first)) * (WIDTH - 4) + 2);
    const y = (value) => (high === low ? HEIGHT / 2 : HEIGHT - 4 - ((value - low) / (high - low)) * (HEIGHT - 8));
    drawing.append(shape("line", { class: "axis", x1: 0, x2: WIDTH, y1: HEIGHT - 1, y2: HEIGHT - 1 }));
    drawing.append(shape("path", { class: "line", d: path(curve.points, x, y) }));
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

  followLog();
  followCurves();
})();
